//! Reads a `#[chare]` block: which methods are entries, and what is wrong with them.

use crate::errors::Errors;
use crate::options::{EntryOptions, Value};
use crate::types::{NOT_GENERIC, bare, lifetime_in, named_in, not_owned, without_self};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, ImplItem, ImplItemFn, ItemImpl, Pat, PathArguments,
    ReturnType, Signature, Type, Visibility, parse_quote,
};

/// Names of methods that every proxy has.
const RESERVED: [&str; 2] = ["contribute", "at_quiescence"];

/// A `#[chare]` block.
pub struct Block {
    /// The chare's name without its path.
    pub name: Ident,
    /// The chare's type.
    pub ty: Type,
    /// The sound entries, in the order written: the position is the entry's id.
    pub entries: Vec<Entry>,
    /// The entries with a mistake, which has been said.
    pub mistaken: Vec<Mistaken>,
    /// The block as rustc is to see it.
    pub item: ItemImpl,
}

/// A sound entry method.
pub struct Entry {
    /// Its name, and that of its message.
    pub name: Ident,
    /// Who may send to it.
    pub visibility: Visibility,
    /// Its documentation.
    pub docs: Vec<Attribute>,
    /// The fields of its message.
    pub arguments: Vec<Argument>,
    /// Its guard.
    pub when: Option<Guard>,
    /// The function that combines two contributions.
    pub reduce: Option<Value>,
}

/// An argument of an entry method, which is a field of its message.
pub struct Argument {
    /// Its name.
    pub name: Ident,
    /// Its type, in which the chare goes by its name.
    pub ty: Type,
    /// Its serde attributes.
    pub serde: Vec<Attribute>,
}

/// The condition that lets a message in.
pub struct Guard {
    /// The condition.
    pub condition: Value,
    /// The arguments that it names.
    pub named: Vec<Ident>,
}

/// What a mistaken entry method still tells its callers.
pub struct Mistaken {
    /// Its name.
    pub name: Ident,
    /// Who may send to it.
    pub visibility: Visibility,
    /// How many arguments a caller gives.
    pub arguments: usize,
}

impl Block {
    /// Reads the block.
    ///
    /// # Errors
    /// A block that no chare can have, which has been said: what rustc is to see of it.
    pub fn read(mut item: ItemImpl, errors: &mut Errors) -> Result<Self, TokenStream> {
        let Some(name) = chare_name(&item, errors) else {
            // Its entries would be blamed for calling a runtime that does not know the type.
            item.items.retain_mut(|part| take_marks(part).is_empty());
            return Err(if item.trait_.is_some() { TokenStream::new() } else { item.into_token_stream() });
        };
        let ty = (*item.self_ty).clone();
        let (mut entries, mut mistaken) = (Vec::<Entry>::new(), Vec::<Mistaken>::new());
        let mut marked = false;
        for mut part in std::mem::take(&mut item.items) {
            let marks = take_marks(&mut part);
            let Some(mark) = marks.first() else {
                item.items.push(part);
                continue;
            };
            marked = true;
            let ImplItem::Fn(mut method) = part else {
                errors.say(mark, "`#[entry]` marks methods: nothing else of a chare receives messages");
                item.items.push(part);
                continue;
            };
            let name = method.sig.ident.clone();
            if entries
                .iter()
                .map(|e| &e.name)
                .chain(mistaken.iter().map(|m| &m.name))
                .any(|other| *other == name)
            {
                errors.say(
                    &name,
                    format!("there is an entry `{name}` already: give this one a name of its own"),
                );
                continue;
            }
            let before = errors.count();
            if let Some(second) = marks.get(1) {
                errors.say(second, "`#[entry]` is written twice: put all keys in one");
            }
            let entry = Entry::read(&mut method, mark, &ty, errors);
            if errors.count() == before {
                entries.push(entry);
            } else {
                let arguments = given_arguments(&method.sig);
                mistaken.push(Mistaken { name, visibility: entry.visibility, arguments });
                // Nothing calls it until it is mended.
                method.attrs.push(parse_quote!(#[allow(unused)]));
                // Neither what waits in it nor the context's hidden lifetime is to be blamed.
                if method.sig.asyncness.take().is_some() {
                    method.block = parse_quote!({ ::core::unreachable!() });
                }
            }
            item.items.push(ImplItem::Fn(method));
        }
        if !marked {
            let sentence = format!(
                "`{name}` has no entry, so nothing can be sent to it: mark its methods with `#[entry]`"
            );
            errors.say(&item.self_ty, sentence);
        }
        // Every proxy has these already, so that their callers are not blamed.
        mistaken.retain(|m| !RESERVED.iter().any(|name| m.name == name));
        Ok(Self { name, ty, entries, mistaken, item })
    }
}

/// The name of the chare, if it is a concrete type and the block its own.
fn chare_name(item: &ItemImpl, errors: &mut Errors) -> Option<Ident> {
    if let Some((not, of, _)) = &item.trait_ {
        let name = of.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let sentence = format!(
            "`#[chare]` goes on an `impl` block of the type itself, not on one of the trait `{name}`"
        );
        errors.say(quote!(#not #of), sentence);
        return None;
    }
    let name = match bare(&item.self_ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last()?.ident.clone(),
        other => {
            errors.say(other, "a chare is a struct or an enum of your own");
            return None;
        }
    };
    let lifetime_parameter = item.generics.params.iter().find(|p| matches!(p, GenericParam::Lifetime(_)));
    let lifetime = lifetime_parameter.map(ToTokens::to_token_stream);
    if let Some(lifetime) = lifetime.or_else(|| lifetime_in(&item.self_ty).map(ToTokens::into_token_stream)) {
        errors.say(
            lifetime,
            "a chare owns its state, because it migrates: a type with a lifetime cannot be one",
        );
        return None;
    }
    if !item.generics.params.is_empty() {
        let sentence = format!(
            "a chare is one concrete type, because its messages are: write `#[chare]` on a block such as \
             `impl {name}<f64>`, and in a module of its own for each further type"
        );
        errors.say(&item.generics.params, sentence);
        return None;
    }
    Some(name)
}

/// Removes the `#[entry]` attributes of a part of an `impl` block.
fn take_marks(part: &mut ImplItem) -> Vec<Attribute> {
    let attributes = match part {
        ImplItem::Fn(part) => &mut part.attrs,
        ImplItem::Const(part) => &mut part.attrs,
        ImplItem::Type(part) => &mut part.attrs,
        ImplItem::Macro(part) => &mut part.attrs,
        _ => return Vec::new(),
    };
    attributes.extract_if(.., |attribute| attribute.path().is_ident("entry")).collect()
}

impl Entry {
    /// Reads an entry method and removes from it what rustc would not understand. The entry is sound if
    /// no error was added.
    fn read(method: &mut ImplItemFn, mark: &Attribute, chare: &Type, errors: &mut Errors) -> Self {
        let EntryOptions { when, reduce } = EntryOptions::read(mark, errors);
        if let Some(cfg) = method.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            let sentence =
                "an entry cannot come and go, because its number is on the wire: use `cfg!(..)` in its body";
            errors.say(cfg, sentence);
        }
        check_qualifiers(&method.sig, errors);
        check_receiver(&method.sig, errors);
        check_cx(&method.sig, chare, errors);
        if let Some(Value { key, .. }) = &reduce
            && let count = given_arguments(&method.sig)
            && count != 1
        {
            let sentence = format!(
                "an entry with `reduce` takes exactly one argument after `cx`, not {count}: several go into \
                 a tuple or a struct"
            );
            errors.say(key, sentence);
        }
        let arguments = read_arguments(&mut method.sig, chare, errors);
        let when = when.map(|condition| {
            let named = named_in(&condition.value, arguments.iter().map(|argument| &argument.name));
            Guard { condition, named }
        });
        for input in &mut method.sig.inputs {
            // The guard has used these, whether or not the body does.
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(pat) = &*typed.pat
                && when.as_ref().is_some_and(|guard| guard.named.contains(&pat.ident))
            {
                typed.attrs.push(parse_quote!(#[allow(unused_variables)]));
            }
        }
        Self {
            name: method.sig.ident.clone(),
            visibility: method.vis.clone(),
            docs: method.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect(),
            arguments,
            when,
            reduce,
        }
    }
}

fn check_qualifiers(sig: &Signature, errors: &mut Errors) {
    let name = &sig.ident;
    if RESERVED.iter().any(|reserved| name == reserved) {
        errors.say(name, format!("every proxy has a method `{name}` already: give the entry another name"));
    }
    if let Some(token) = &sig.asyncness {
        let sentence = "an entry method runs to completion and cannot be `async`: split it where it waits, \
            into an entry with `when`";
        errors.say(token, sentence);
    }
    if let Some(token) = &sig.unsafety {
        errors.say(
            token,
            "an entry method cannot be `unsafe`: the runtime calls it, and keeps no promises but its own",
        );
    }
    if !sig.generics.params.is_empty() {
        errors.say(&sig.generics.params, NOT_GENERIC);
    }
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, Type::Tuple(unit) if unit.elems.is_empty())
    {
        let sentence =
            "an entry method returns nothing, because its caller does not wait: send the result to a proxy";
        errors.say(ty, sentence);
    }
}

fn check_receiver(sig: &Signature, errors: &mut Errors) {
    let Some(FnArg::Receiver(receiver)) = sig.inputs.first() else {
        errors.say(&sig.ident, "an entry method takes `&mut self` first: it runs on an element");
        return;
    };
    let is_exclusive = matches!(&*receiver.ty, Type::Reference(reference)
        if reference.mutability.is_some()
            && matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("Self")));
    if !is_exclusive {
        errors.say(receiver, "an entry method takes `&mut self`: the runtime keeps the element and lends it");
    }
}

fn check_cx(sig: &Signature, chare: &Type, errors: &mut Errors) {
    let second = sig.inputs.iter().find(|input| matches!(input, FnArg::Typed(_)));
    match (second, second.and_then(cx_type)) {
        (Some(_), Some(ty)) if is_cx_of(ty, chare) => {}
        (Some(_), Some(ty)) => errors.say(ty, "the context of an entry method is of type `&Cx<Self>`"),
        (Some(other), None) => {
            errors.say(
                other,
                "an entry method takes `cx: &Cx<Self>` right after `&mut self`, before its arguments",
            );
        }
        (None, _) => errors.say(&sig.ident, "an entry method takes `cx: &Cx<Self>` after `&mut self`"),
    }
}

/// The type of an argument that is a context or seems meant to be: the last part of its path is `Cx`.
fn cx_type(input: &FnArg) -> Option<&Type> {
    let FnArg::Typed(typed) = input else { return None };
    let inner = match &*typed.ty {
        Type::Reference(reference) => &*reference.elem,
        other => other,
    };
    let Type::Path(path) = inner else { return None };
    (path.path.segments.last()?.ident == "Cx").then_some(&*typed.ty)
}

/// Whether the type is `&Cx<Self>`, or the same written with a lifetime or with the chare's name.
fn is_cx_of(ty: &Type, chare: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    let Some(PathArguments::AngleBracketed(arguments)) =
        path.path.segments.last().map(|last| &last.arguments)
    else {
        return false;
    };
    let types: Vec<String> = arguments
        .args
        .iter()
        .filter(|argument| !matches!(argument, GenericArgument::Lifetime(_)))
        .map(|argument| argument.to_token_stream().to_string())
        .collect();
    let is_chare = |of: &String| *of == "Self" || *of == chare.to_token_stream().to_string();
    reference.mutability.is_none() && types.len() == 1 && types.iter().all(is_chare)
}

/// How many arguments a caller gives: those after `self` and `cx`.
fn given_arguments(sig: &Signature) -> usize {
    sig.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_)) && cx_type(input).is_none()).count()
}

/// Reads the arguments after `self` and `cx`, and takes their serde attributes, which are for the fields
/// of the message.
fn read_arguments(sig: &mut Signature, chare: &Type, errors: &mut Errors) -> Vec<Argument> {
    let mut arguments = Vec::new();
    for input in &mut sig.inputs {
        if cx_type(input).is_some() {
            continue;
        }
        let FnArg::Typed(typed) = input else { continue };
        let serde = typed.attrs.extract_if(.., |attribute| attribute.path().is_ident("serde")).collect();
        if let Some(error) = not_owned(&typed.ty) {
            errors.add(error);
        }
        match &*typed.pat {
            Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => {
                arguments.push(Argument {
                    name: pat.ident.clone(),
                    ty: without_self(&typed.ty, chare),
                    serde,
                });
            }
            other => errors.say(other, "give this argument a name: it is a field of the message"),
        }
    }
    arguments
}

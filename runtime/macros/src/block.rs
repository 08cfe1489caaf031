//! Reads a `#[chare]` block: finds the entry methods and reports their errors.

use crate::errors::Errors;
use crate::options::{EntryOptions, Value};
use crate::types::{NOT_GENERIC, bare, lifetime_in, named_in, not_owned, self_in, without_self};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::{
    Attribute, FnArg, GenericArgument, GenericParam, Generics, ImplItem, ImplItemFn, ItemImpl, Meta, Pat,
    PathArguments, ReceiverKind, ReturnType, Safety, Signature, Token, Type, Visibility, parse_quote,
};

/// Names of methods that every proxy has.
const RESERVED: [&str; 7] =
    ["contribute", "contribute_in", "prefix", "callback", "after", "at_quiescence", "at_checkpoint"];

/// A `#[chare]` block.
pub struct Block {
    /// The chare's name without its path.
    pub name: Ident,
    /// The chare's type.
    pub ty: Type,
    /// The parameters of the block, which the generated items have, too.
    pub generics: Generics,
    /// The valid entries, in source order: the position is the entry's id.
    pub entries: Vec<Entry>,
    /// The flow.
    pub flow: Option<ImplItemFn>,
    /// The invalid entries, whose errors are reported.
    pub invalid: Vec<InvalidEntry>,
    /// The block to output.
    pub item: ItemImpl,
}

/// A valid entry method.
pub struct Entry {
    /// The name of the method and of its message.
    pub name: Ident,
    /// The visibility of the method.
    pub visibility: Visibility,
    /// Its documentation.
    pub docs: Vec<Attribute>,
    /// The fields of its message.
    pub arguments: Vec<Argument>,
    /// Its guard.
    pub when: Option<Condition>,
    /// The number that says which waiting messages go first.
    pub priority: Option<Condition>,
    /// The function that combines two contributions.
    pub reduce: Option<Value>,
    /// What receives its messages.
    pub receiver: Receiver,
}

/// What receives the messages of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Receiver {
    /// The entry method.
    Method,
    /// The flow: the entry has no body, or is the flow itself.
    Flow,
}

/// An argument of an entry method, which is a field of its message.
#[derive(Clone)]
pub struct Argument {
    /// Its name.
    pub name: Ident,
    /// Its type, with `Self` replaced by the chare's name.
    pub ty: Type,
    /// Its serde attributes.
    pub serde: Vec<Attribute>,
}

/// An expression about a message: the condition for its delivery, or its priority.
pub struct Condition {
    /// The expression.
    pub value: Value,
    /// The arguments that the expression names.
    pub named: Vec<Ident>,
}

/// The signature of an invalid entry method, for its callers.
pub struct InvalidEntry {
    /// Its name.
    pub name: Ident,
    /// The visibility of the method.
    pub visibility: Visibility,
    /// The number of arguments of a call.
    pub arguments: usize,
}

impl Block {
    /// Reads the block.
    ///
    /// # Errors
    /// For an invalid block, whose errors are reported: the tokens to output.
    pub fn read(mut item: ItemImpl, errors: &mut Errors) -> Result<Self, TokenStream> {
        let Some(name) = chare_name(&item, errors) else {
            // Without `#[entry]`, so that entries do not cause further errors.
            item.items.retain_mut(|part| take_marks(part).is_empty());
            return Err(if item.trait_.is_some() { TokenStream::new() } else { item.into_token_stream() });
        };
        let ty = (*item.self_ty).clone();
        let generics = item.generics.clone();
        let (mut entries, mut invalid) = (Vec::<Entry>::new(), Vec::<InvalidEntry>::new());
        let (mut marked, mut flow, mut flows) = (false, None, 0);
        for part in std::mem::take(&mut item.items) {
            let (mut part, bodiless) = with_body(part);
            let marks = take_marks(&mut part);
            let Some(mark) = marks.first() else {
                item.items.push(bodiless.unwrap_or(part));
                continue;
            };
            marked = true;
            let is_flow = mark.path().is_ident("flow");
            flows += u32::from(is_flow);
            let ImplItem::Fn(mut method) = part else {
                errors.report(mark, "`#[entry]` marks methods: only methods receive messages");
                item.items.push(part);
                continue;
            };
            let name = method.sig.ident.clone();
            if entries
                .iter()
                .map(|e| &e.name)
                .chain(invalid.iter().map(|entry| &entry.name))
                .any(|other| *other == name)
            {
                errors.report(
                    &name,
                    format!("there is an entry `{name}` already: give this entry another name"),
                );
                continue;
            }
            let before = errors.count();
            if let Some(second) = marks.get(1) {
                refuse_second(second, is_flow, errors);
            }
            if is_flow && flows > 1 {
                let sentence =
                    "a chare has one flow: write the second life cycle as entries, or as another chare";
                errors.report(mark, sentence);
            }
            let entry = Entry::read(&mut method, mark, bodiless.is_some(), &ty, errors);
            let is_valid = errors.count() == before;
            if is_valid {
                entries.push(entry);
            } else {
                let arguments = given_arguments(&method.sig);
                invalid.push(InvalidEntry { name, visibility: entry.visibility, arguments });
                // No code calls an invalid entry.
                method.attrs.push(parse_quote!(#[allow(unused)]));
                // Avoids further errors about `await` in the body or about the lifetime of the context.
                if method.sig.asyncness.take().is_some() {
                    method.block = parse_quote!({ ::core::unreachable!() });
                }
            }
            if is_flow && is_valid {
                flow = Some(method);
            } else if !is_flow && bodiless.is_none() {
                item.items.push(ImplItem::Fn(method));
            }
        }
        if flows == 0 {
            refuse_bodiless(&entries, errors);
        }
        if !marked {
            let sentence = format!(
                "`{name}` has no entry, so nothing can be sent to it: mark its methods with `#[entry]`"
            );
            errors.report(&item.self_ty, sentence);
        }
        // Every proxy has these methods already.
        invalid.retain(|entry| !RESERVED.iter().any(|name| entry.name == name));
        Ok(Self { name, ty, generics, entries, flow, invalid, item })
    }
}

/// The name of the chare, if its type is owned and the block is an inherent `impl`.
fn chare_name(item: &ItemImpl, errors: &mut Errors) -> Option<Ident> {
    if let Some((of, _)) = &item.trait_ {
        let not = &item.modifiers.polarity;
        let name = of.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let sentence =
            format!("`#[chare]` goes on an inherent `impl` block, not on an `impl` of the trait `{name}`");
        errors.report(quote!(#not #of), sentence);
        return None;
    }
    let name = match bare(&item.self_ty) {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last()?.ident.clone(),
        other => {
            errors.report(other, "a chare must be a struct or an enum that this crate defines");
            return None;
        }
    };
    let lifetime_parameter = item.generics.params.iter().find(|p| matches!(p, GenericParam::Lifetime(_)));
    let lifetime = lifetime_parameter.map(ToTokens::to_token_stream);
    if let Some(lifetime) = lifetime.or_else(|| lifetime_in(&item.self_ty).map(ToTokens::into_token_stream)) {
        errors.report(lifetime, "a chare owns its state, because it migrates: use a type without a lifetime");
        return None;
    }
    Some(name)
}

impl Block {
    /// The parameters of the block after a lifetime `'a`, for proxies.
    pub fn generics_of_proxies(&self) -> Generics {
        let mut generics = self.generics.clone();
        generics.params.insert(0, parse_quote!('a));
        generics
    }

    /// A variant that never exists, for the enums of a block with type parameters, because an enum must use its parameters.
    pub fn unused_variant(&self) -> Option<TokenStream> {
        let types: Vec<_> = self.generics.type_params().map(|parameter| &parameter.ident).collect();
        self.is_generic().then(|| quote!(__Parameters(::core::marker::PhantomData<fn() -> (#(#types,)*)>)))
    }

    /// For the enums of a block with type parameters, whose bounds suffice: bounds of serde in addition would be ambiguous.
    pub fn no_bound(&self) -> Option<TokenStream> {
        self.is_generic().then(|| quote!(#[serde(bound = "")]))
    }

    /// Whether the block has type parameters.
    pub fn is_generic(&self) -> bool {
        self.generics.type_params().next().is_some()
    }
}

/// Reports the second mark of a method.
fn refuse_second(second: &Attribute, is_flow: bool, errors: &mut Errors) {
    let sentence = match is_flow || second.path().is_ident("flow") {
        true => "a method is a flow or an entry: a flow is the entry of its name already",
        false => "`#[entry]` is written twice: put all keys in one `#[entry(..)]`",
    };
    errors.report(second, sentence);
}

/// Reports the entries without a body in a block without a flow.
fn refuse_bodiless(entries: &[Entry], errors: &mut Errors) {
    for Entry { name, .. } in entries.iter().filter(|entry| entry.receiver == Receiver::Flow) {
        let sentence = format!(
            "`{name}` has no body, and the block has no flow that receives it: write a body, or a method with `#[flow]`"
        );
        errors.report(name, sentence);
    }
}

/// An entry without a body, as a method with an empty body, and the entry itself; other parts as they are.
fn with_body(part: ImplItem) -> (ImplItem, Option<ImplItem>) {
    let ImplItem::Verbatim(tokens) = &part else { return (part, None) };
    let read = |input: ParseStream| -> syn::Result<ImplItemFn> {
        let attributes = input.call(Attribute::parse_outer)?;
        let (visibility, sig): (Visibility, Signature) = (input.parse()?, input.parse()?);
        input.parse::<Token![;]>()?;
        Ok(parse_quote!(#(#attributes)* #visibility #sig {}))
    };
    match read.parse2(tokens.clone()) {
        Ok(method) => (ImplItem::Fn(method), Some(part)),
        Err(_) => (part, None),
    }
}

/// Removes the `#[entry]` and `#[flow]` attributes of a part of an `impl` block.
fn take_marks(part: &mut ImplItem) -> Vec<Attribute> {
    let attributes = match part {
        ImplItem::Fn(part) => &mut part.attrs,
        ImplItem::Const(part) => &mut part.attrs,
        ImplItem::Type(part) => &mut part.attrs,
        ImplItem::Macro(part) => &mut part.attrs,
        _ => return Vec::new(),
    };
    let is_mark =
        |attribute: &mut Attribute| ["entry", "flow"].iter().any(|mark| attribute.path().is_ident(mark));
    attributes.extract_if(.., is_mark).collect()
}

impl Entry {
    /// Reads an entry method and removes the attributes that rustc does not accept. The entry is valid if
    /// no error was added.
    fn read(
        method: &mut ImplItemFn,
        mark: &Attribute,
        is_bodiless: bool,
        chare: &Type,
        errors: &mut Errors,
    ) -> Self {
        let is_flow = mark.path().is_ident("flow");
        let EntryOptions { when, reduce, priority } = match is_flow {
            true => {
                if !matches!(mark.meta, Meta::Path(_)) {
                    errors.report(mark, "`#[flow]` has no keys");
                }
                EntryOptions::default()
            }
            false => EntryOptions::read(mark, errors),
        };
        if let Some(cfg) = method.attrs.iter().find(|attribute| attribute.path().is_ident("cfg")) {
            let sentence = "an entry cannot have `#[cfg(..)]`, because messages contain the number of their entry: \
                use `cfg!(..)` in its body";
            errors.report(cfg, sentence);
        }
        check_qualifiers(&method.sig, errors);
        if is_bodiless && is_flow {
            errors.report(&method.sig.ident, "a flow is a life cycle from top to bottom: write its body");
        } else if is_bodiless {
            check_bodiless(&method.sig, when.as_ref(), errors);
        } else {
            check_receiver(&method.sig, errors);
            check_cx(&method.sig, chare, errors);
        }
        if let Some(Value { key, .. }) = &reduce
            && let count = given_arguments(&method.sig)
            && count != 1
        {
            let sentence = format!(
                "an entry with `reduce` takes exactly one argument after `cx`, not {count}: put several values \
                 into a tuple or a struct"
            );
            errors.report(key, sentence);
        }
        let arguments = read_arguments(&mut method.sig, chare, errors);
        if let Some(Value { value, .. }) = &priority
            && let Some(word) = self_in(value)
        {
            let sentence = "a priority cannot use `self`, because it is evaluated where the message waits and not in the element: \
                use arguments of the entry";
            errors.report(word, sentence);
        }
        let [when, priority] = [when, priority].map(|value| {
            value.map(|value| {
                let named = named_in(&value.value, arguments.iter().map(|argument| &argument.name));
                Condition { value, named }
            })
        });
        for input in &mut method.sig.inputs {
            // The guard or the priority uses these arguments, even if the body does not.
            if let FnArg::Typed(typed) = input
                && let Pat::Ident(pat) = &*typed.pat
                && [&when, &priority].into_iter().flatten().any(|part| part.named.contains(&pat.ident))
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
            priority,
            reduce,
            receiver: if is_flow || is_bodiless { Receiver::Flow } else { Receiver::Method },
        }
    }
}

/// An entry without a body has only the fields of its message.
fn check_bodiless(sig: &Signature, when: Option<&Value>, errors: &mut Errors) {
    let extra =
        sig.inputs.iter().find(|input| matches!(input, FnArg::Receiver(_)) || cx_type(input).is_some());
    if let Some(extra) = extra {
        let sentence = format!(
            "an entry without a body has only the fields of its message, as in `fn {}(value: f64);`",
            sig.ident
        );
        errors.report(extra, sentence);
    }
    if let Some(Value { key, .. }) = when {
        let sentence = "the guard of an entry without a body stands where the flow waits for it, as in \
            `when!(halo(i, edge) if i == iter => ..)`";
        errors.report(key, sentence);
    }
}

fn check_qualifiers(sig: &Signature, errors: &mut Errors) {
    let name = &sig.ident;
    if RESERVED.iter().any(|reserved| name == reserved) {
        errors
            .report(name, format!("every proxy has a method `{name}` already: give the entry another name"));
    }
    if let Some(token) = &sig.asyncness {
        let sentence = "an entry method runs to completion and cannot be `async`: move the code after each \
            `await` into an entry with `when`";
        errors.report(token, sentence);
    }
    if let Safety::Unsafe(token) = &sig.safety {
        errors.report(
            token,
            "an entry method cannot be `unsafe`: the runtime calls it and cannot ensure its safety conditions",
        );
    }
    if !sig.generics.params.is_empty() {
        errors.report(&sig.generics.params, NOT_GENERIC);
    }
    if let ReturnType::Type(_, ty) = &sig.output
        && !matches!(&**ty, Type::Tuple(unit) if unit.elems.is_empty())
    {
        let sentence =
            "an entry method returns nothing, because its caller does not wait: send the result to a proxy";
        errors.report(ty, sentence);
    }
}

fn check_receiver(sig: &Signature, errors: &mut Errors) {
    let Some(FnArg::Receiver(receiver)) = sig.inputs.first() else {
        errors.report(&sig.ident, "an entry method runs on an element: take `&mut self` first");
        return;
    };
    let is_exclusive = match &receiver.kind {
        ReceiverKind::Reference(_, _, mutability) => mutability.is_some(),
        ReceiverKind::Typed(_, ty) => matches!(&**ty, Type::Reference(reference)
            if reference.mutability.is_some()
                && matches!(&*reference.elem, Type::Path(path) if path.path.is_ident("Self"))),
        _ => false,
    };
    if !is_exclusive {
        errors.report(receiver, "an entry method takes `&mut self`, because the runtime owns the element");
    }
}

fn check_cx(sig: &Signature, chare: &Type, errors: &mut Errors) {
    let second = sig.inputs.iter().find(|input| matches!(input, FnArg::Typed(_)));
    match (second, second.and_then(cx_type)) {
        (Some(_), Some(ty)) if is_cx_of(ty, chare) => {}
        (Some(_), Some(ty)) => errors.report(ty, "the context of an entry method is of type `&Cx<Self>`"),
        (Some(other), None) => {
            errors.report(
                other,
                "an entry method takes `cx: &Cx<Self>` right after `&mut self`, before its arguments",
            );
        }
        (None, _) => errors.report(&sig.ident, "an entry method takes `cx: &Cx<Self>` after `&mut self`"),
    }
}

/// The type of an argument that is probably a context: the last part of its path is `Cx`.
fn cx_type(input: &FnArg) -> Option<&Type> {
    let FnArg::Typed(typed) = input else { return None };
    let inner = match &*typed.ty {
        Type::Reference(reference) => &*reference.elem,
        other => other,
    };
    let Type::Path(path) = inner else { return None };
    (path.path.segments.last()?.ident == "Cx").then_some(&*typed.ty)
}

/// Whether the type is `&Cx<Self>`, possibly with a lifetime or with the chare's name.
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

/// The number of arguments after `self` and `cx`.
fn given_arguments(sig: &Signature) -> usize {
    sig.inputs.iter().filter(|input| matches!(input, FnArg::Typed(_)) && cx_type(input).is_none()).count()
}

/// Reads the arguments after `self` and `cx`, and removes their serde attributes, which belong to the fields
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
            other => errors.report(other, "give this argument a name: it is a field of the message"),
        }
    }
    arguments
}

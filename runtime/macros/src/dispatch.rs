//! Generates the implementation of `Chare`: guards, delivery, combination and copies of messages.

use crate::block::{Argument, Block, Entry, Guard, Receiver};
use crate::flow::Flow;
use crate::names::{Names, local};
use crate::options::{ChareOptions, Value};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// The implementations of `Chare` and, for `sync` chares, of `Synced`.
pub fn write(block: &Block, options: &ChareOptions, names: &Names, flow: &Flow) -> TokenStream {
    let Block { ty, entries, .. } = block;
    let Names { message, proxy, proxies, .. } = names;
    let ChareOptions { index, sync, pinned, expedited, regroup } = options;
    let name = block.name.unraw().to_string();
    let entry_names = entries.iter().map(|entry| entry.name.unraw().to_string());
    let guarded = entries.iter().any(|entry| entry.when.is_some() || entry.receiver == Receiver::Flow);
    let [entry, combine, copy] = [entry, combine, copy].map(|write| write(entries, message));
    let [ready, deliver] = [ready, deliver].map(|write| write(entries, message, flow));
    let Flow { state, waits, .. } = flow;
    let regroup = match regroup {
        Some(Value { key, value }) => {
            // The error for a wrong function gets the span of `regroup`.
            let expected =
                quote_spanned!(key.span()=> fn(::std::vec::Vec<Self>, usize) -> ::std::vec::Vec<Self>);
            quote!({ let regroup: #expected = #value; ::core::option::Option::Some(regroup) })
        }
        None => quote!(::core::option::Option::None),
    };
    // Errors about the arguments of all entries get this span.
    let mut msg = message.clone();
    msg.set_span(ty.span());
    let synced = sync.then(|| quote!(impl ::equipoise::Synced for #ty {}));
    // Errors about the type get the span of its name.
    quote_spanned! {ty.span()=>
        #[allow(unreachable_code, unreachable_patterns, unused_qualifications, unused_variables, clippy::all)]
        impl ::equipoise::Chare for #ty {
            type Index = #index;
            type Msg = #msg;
            type Flow = #state;
            type Proxy<'a> = #proxy<'a>;
            type Proxies<'a> = #proxies<'a>;
            const NAME: &'static str = #name;
            const ENTRIES: &'static [&'static str] = &[#(#entry_names),*];
            const GUARDED: bool = #guarded;
            const SYNC: bool = #sync;
            const PINNED: bool = #pinned;
            const EXPEDITED: bool = #expedited;
            const REGROUP: ::core::option::Option<fn(::std::vec::Vec<Self>, usize) -> ::std::vec::Vec<Self>> = #regroup;
            #entry
            #ready
            #deliver
            #waits
            #combine
            #copy
        }
        #synced
    }
}

/// The entry of a message.
fn entry(entries: &[Entry], message: &Ident) -> TokenStream {
    let msg = local("msg");
    let arms = entries.iter().enumerate().map(|(id, Entry { name, .. })| quote!(#message::#name(..) => #id,));
    let none = none(entries);
    quote! {
        #[inline]
        fn entry(#msg: &#message) -> usize {
            match #msg { #(#arms)* #none }
        }
    }
}

/// The guards.
fn ready(entries: &[Entry], message: &Ident, of: &Flow) -> TokenStream {
    let this = &of.this;
    let (msg, flow, ready) = (local("msg"), local("flow"), local("ready"));
    let arms: Vec<_> = entries
        .iter()
        .filter_map(|Entry { name, arguments, when, .. }| {
            if let Some([ready, _]) = of.arms(name) {
                return Some(ready.clone());
            }
            let Guard { condition: Value { key, value }, named } = when.as_ref()?;
            let (mut fields, mut copies) = (Vec::new(), Vec::new());
            for (argument, mut field) in arguments.iter().zip(values(arguments)) {
                let Some(mention) = named.iter().find(|mention| **mention == argument.name) else {
                    fields.push(quote!(_));
                    continue;
                };
                // The error for an argument that is not `Copy` gets the span of its mention in the guard.
                field.set_span(field.span().located_at(mention.span()));
                copies.push(quote!(let #mention = ::equipoise::__private::guard_arg(#field);));
                fields.push(quote!(#field));
            }
            // The error for a guard that is not `bool` gets the span of `when`.
            let expected = quote_spanned!(key.span()=> bool);
            Some(quote! {
                #message::#name(#(#fields),*) => {
                    #(#copies)*
                    let #ready: #expected = #value;
                    #ready
                }
            })
        })
        .collect();
    let body = if arms.is_empty() { quote!(true) } else { quote!(match #msg { #(#arms)* _ => true }) };
    quote! {
        #[inline]
        fn ready(&#this, #flow: &<Self as ::equipoise::Chare>::Flow, #msg: &#message) -> bool { #body }
    }
}

/// The calls of the entry methods.
fn deliver(entries: &[Entry], message: &Ident, of: &Flow) -> TokenStream {
    let this = &of.this;
    let (msg, flow, cx) = (local("msg"), local("flow"), local("cx"));
    let arms = entries.iter().map(|Entry { name, arguments, receiver, .. }| {
        if let Some([_, deliver]) = of.arms(name) {
            return deliver.clone();
        }
        if *receiver == Receiver::Flow {
            // The flow is invalid, which is reported.
            return quote!(#message::#name(..) => {});
        }
        let values = values(arguments);
        quote!(#message::#name(#(#values),*) => Self::#name(#this, #cx, #(#values),*),)
    });
    let none = none(entries);
    quote! {
        #[inline]
        fn deliver(&mut #this, #flow: &mut <Self as ::equipoise::Chare>::Flow, #cx: &::equipoise::Cx<'_, Self>, #msg: #message) {
            match #msg { #(#arms)* #none }
        }
    }
}

/// The calls of the functions that combine contributions.
fn combine(entries: &[Entry], message: &Ident) -> TokenStream {
    let (a, b, combine) = (local("a"), local("b"), local("combine"));
    let arms = entries.iter().filter_map(|Entry { name, arguments, reduce, .. }| {
        let (Value { key, value }, Argument { ty, .. }) = (reduce.as_ref()?, arguments.first()?);
        // A function pointer type gives a closure the types of its arguments, and the error for a wrong function the
        // span of `reduce`.
        let expected = quote!(fn(#ty, #ty) -> #ty).into_iter().map(|mut token| {
            token.set_span(key.span());
            token
        });
        let expected: TokenStream = expected.collect();
        Some(quote! {
            (#message::#name(#a), #message::#name(#b)) => {
                let #combine: #expected = #value;
                #message::#name(#combine(#a, #b))
            }
        })
    });
    quote! {
        fn combine(#a: #message, #b: #message) -> #message {
            match (#a, #b) {
                #(#arms)*
                _ => ::core::unreachable!("contributions to different entries are different reductions"),
            }
        }
    }
}

/// The copy of a message whose arguments can be cloned.
fn copy(entries: &[Entry], message: &Ident) -> TokenStream {
    let msg = local("msg");
    let arms = entries.iter().map(|Entry { name, arguments, .. }| {
        let values = values(arguments);
        let copies = values.iter().map(|value| quote!(::equipoise::__private::CopyArg(#value).copy()));
        quote!(#message::#name(#(#values),*) => #message::#name(#(#copies),*),)
    });
    let none = none(entries);
    quote! {
        fn copy(#msg: &#message) -> #message {
            #[allow(unused_imports)]
            use ::equipoise::__private::ViaNothing as _;
            match #msg { #(#arms)* #none }
        }
    }
}

/// The arm of a match over an empty message enum, if all entries are invalid.
fn none(entries: &[Entry]) -> Option<TokenStream> {
    entries.is_empty().then(|| quote!(_ => ::core::unreachable!()))
}

fn values(arguments: &[Argument]) -> Vec<Ident> {
    (0..arguments.len()).map(|i| local(&format!("value{i}"))).collect()
}

//! Generates the implementation of `Chare`: guards, delivery, combination and copies of messages.

use crate::block::{Argument, Block, Condition, Entry, Receiver};
use crate::flow::Flow;
use crate::names::{Names, local};
use crate::options::{ChareOptions, Value};
use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// The implementations of `Chare` and, for `sync` chares, of `Synced`.
pub fn write(block: &Block, options: &ChareOptions, names: &Names, flow: &Flow) -> TokenStream {
    let Block { ty, generics, .. } = block;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let of_proxies = block.generics_of_proxies();
    let (_, proxy_generics, _) = of_proxies.split_for_impl();
    let entries = &block.entries;
    let Names { message, proxy, proxies, .. } = names;
    let ChareOptions { index, sync, pinned, expedited, regroup } = options;
    let name = block.name.unraw().to_string();
    let entry_names = entries.iter().map(|entry| entry.name.unraw().to_string());
    let guarded = entries.iter().any(|entry| entry.when.is_some() || entry.receiver == Receiver::Flow);
    let reduces = entries.iter().map(|entry| entry.reduce.is_some());
    let prioritized = entries.iter().any(|entry| entry.priority.is_some());
    let [entry, priority, combine, copy, from_argument] =
        [entry, priority, combine, copy, from_argument].map(|write| write(block, message));
    let [ready, deliver] = [ready, deliver].map(|write| write(block, message, flow));
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
    let synced = sync.then(|| quote!(impl #impl_generics ::equipoise::Synced for #ty #where_clause {}));
    // Errors about the type get the span of its name.
    quote_spanned! {ty.span()=>
        #[allow(unreachable_code, unreachable_patterns, unused_qualifications, unused_variables, clippy::all)]
        impl #impl_generics ::equipoise::Chare for #ty #where_clause {
            type Index = #index;
            type Msg = #msg #type_generics;
            type Flow = #state;
            type Proxy<'a> = #proxy #proxy_generics;
            type Proxies<'a> = #proxies #proxy_generics;
            const NAME: &'static str = #name;
            const ENTRIES: &'static [&'static str] = &[#(#entry_names),*];
            const REDUCES: &'static [bool] = &[#(#reduces),*];
            const GUARDED: bool = #guarded;
            const SYNC: bool = #sync;
            const PINNED: bool = #pinned;
            const EXPEDITED: bool = #expedited;
            const PRIORITIZED: bool = #prioritized;
            const REGROUP: ::core::option::Option<fn(::std::vec::Vec<Self>, usize) -> ::std::vec::Vec<Self>> = #regroup;
            #entry
            #ready
            #priority
            #deliver
            #waits
            #combine
            #copy
            #from_argument
        }
        #synced
    }
}

/// The entry of a message.
fn entry(block: &Block, message: &Ident) -> TokenStream {
    let message_type = message_type(block, message);
    let msg = local("msg");
    let arms =
        block.entries.iter().enumerate().map(|(id, Entry { name, .. })| quote!(#message::#name(..) => #id,));
    let none = none(block);
    quote! {
        #[inline]
        fn entry(#msg: &#message_type) -> usize {
            match #msg { #(#arms)* #none }
        }
    }
}

/// The guards.
fn ready(block: &Block, message: &Ident, of: &Flow) -> TokenStream {
    let message_type = message_type(block, message);
    let state = &of.state;
    let this = &of.this;
    let (msg, flow, ready) = (local("msg"), local("flow"), local("ready"));
    let mut arms: Vec<_> = of.arms.iter().map(|(_, ready)| ready.clone()).collect();
    arms.extend(conditions(
        block,
        message,
        |entry| entry.when.as_ref(),
        |Value { key, value }| {
            // The error for a guard that is not `bool` gets the span of `when`.
            let expected = quote_spanned!(key.span()=> bool);
            quote! {
                let #ready: #expected = #value;
                #ready
            }
        },
    ));
    let body = if arms.is_empty() { quote!(true) } else { quote!(match #msg { #(#arms)* _ => true }) };
    quote! {
        #[inline]
        fn ready(&#this, #flow: &#state, #msg: &#message_type) -> bool { #body }
    }
}

/// The priorities.
fn priority(block: &Block, message: &Ident) -> TokenStream {
    let message_type = message_type(block, message);
    let msg = local("msg");
    let arms = conditions(
        block,
        message,
        |entry| entry.priority.as_ref(),
        |Value { key, value }| {
            // The error for a priority that is no integer gets the span of `priority`.
            let mut priority = local("priority");
            priority.set_span(priority.span().located_at(key.span()));
            let check = quote_spanned!(key.span()=> ::equipoise::__private::priority);
            quote! {
                let #priority = #value;
                #check(#priority)
            }
        },
    );
    let body = if arms.is_empty() { quote!(0) } else { quote!(match #msg { #(#arms)* _ => 0 }) };
    quote! {
        #[inline]
        fn priority(#msg: &#message_type) -> i64 { #body }
    }
}

/// An arm for each entry with a condition, which sees copies of the arguments that it names.
fn conditions(
    block: &Block,
    message: &Ident,
    of: impl Fn(&Entry) -> Option<&Condition>,
    write: impl Fn(&Value) -> TokenStream,
) -> Vec<TokenStream> {
    let arm = |entry: &Entry| {
        let Condition { value, named } = of(entry)?;
        let Entry { name, arguments, .. } = entry;
        let (mut fields, mut copies) = (Vec::new(), Vec::new());
        for (argument, mut field) in arguments.iter().zip(values(arguments)) {
            let Some(mention) = named.iter().find(|mention| **mention == argument.name) else {
                fields.push(quote!(_));
                continue;
            };
            // The error for an argument that is not `Copy` gets the span of its mention.
            field.set_span(field.span().located_at(mention.span()));
            copies.push(quote!(let #mention = ::equipoise::__private::guard_arg(#field);));
            fields.push(quote!(#field));
        }
        let written = write(value);
        Some(quote! {
            #message::#name(#(#fields),*) => {
                #(#copies)*
                #written
            }
        })
    };
    block.entries.iter().filter_map(arm).collect()
}

/// The calls of the entry methods.
fn deliver(block: &Block, message: &Ident, of: &Flow) -> TokenStream {
    let message_type = message_type(block, message);
    let state = &of.state;
    let this = &of.this;
    let (msg, flow, cx) = (local("msg"), local("flow"), local("cx"));
    let to_methods = block.entries.iter().filter(|entry| !of.receives(&entry.name));
    let arms = to_methods.map(|Entry { name, arguments, receiver, .. }| {
        if *receiver == Receiver::Flow {
            // The flow is invalid, which is reported.
            return quote!(#message::#name(..) => {});
        }
        let values = values(arguments);
        quote!(#message::#name(#(#values),*) => Self::#name(#this, #cx, #(#values),*),)
    });
    let to_flow = of.method.as_ref().map(|method| {
        let method = &method.sig.ident;
        quote!(#msg => Self::#method(#this, #cx, #flow, #msg),)
    });
    let none = none(block);
    quote! {
        #[inline]
        fn deliver(&mut #this, #flow: &mut #state, #cx: &::equipoise::Cx<'_, Self>, #msg: #message_type) {
            match #msg { #(#arms)* #to_flow #none }
        }
    }
}

/// The calls of the functions that combine contributions.
fn combine(block: &Block, message: &Ident) -> TokenStream {
    let message_type = message_type(block, message);
    let (a, b, combine) = (local("a"), local("b"), local("combine"));
    let arms = block.entries.iter().filter_map(|Entry { name, arguments, reduce, .. }| {
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
        fn combine(#a: #message_type, #b: #message_type) -> #message_type {
            match (#a, #b) {
                #(#arms)*
                _ => ::core::unreachable!("contributions to different entries are different reductions"),
            }
        }
    }
}

/// The copy of a message whose arguments can be cloned. In a block with type parameters, the bounds of the block may not
/// say so: then the copy is made from the bytes of the message.
fn copy(block: &Block, message: &Ident) -> TokenStream {
    let message_type = message_type(block, message);
    let msg = local("msg");
    let [copy_arg, fallback] =
        if block.is_generic() { ["TryCopyArg", "ViaBytes"] } else { ["CopyArg", "ViaNothing"] }.map(local);
    let arms = block.entries.iter().map(|Entry { name, arguments, .. }| {
        let values = values(arguments);
        let copies = values.iter().map(|value| quote!(::equipoise::__private::#copy_arg(#value).copy()));
        if !block.is_generic() {
            return quote!(#message::#name(#(#values),*) => #message::#name(#(#copies),*),);
        }
        quote! {
            #message::#name(#(#values),*) => match (#(#copies,)*) {
                (#(::core::option::Option::Some(#values),)*) => #message::#name(#(#values),*),
                _ => ::equipoise::__private::copy_encoded::<Self>(#msg),
            },
        }
    });
    let none = none(block);
    quote! {
        fn copy(#msg: &#message_type) -> #message_type {
            #[allow(unused_imports)]
            use ::equipoise::__private::#fallback as _;
            match #msg { #(#arms)* #none }
        }
    }
}

/// The messages to entries with at most one argument, made from the argument.
fn from_argument(block: &Block, message: &Ident) -> TokenStream {
    let message_type = message_type(block, message);
    let (entry, argument) = (local("entry"), local("argument"));
    let arms = block.entries.iter().enumerate().filter_map(|(id, Entry { name, arguments, .. })| {
        let take = |ty| quote!(::equipoise::__private::take_argument::<#ty>(#argument));
        match &arguments[..] {
            [] => {
                let take = take(quote!(()));
                Some(quote!(#id => #take.map(|()| #message::#name()),))
            }
            [Argument { ty, .. }] => {
                let take = take(quote!(#ty));
                Some(quote!(#id => #take.map(#message::#name),))
            }
            _ => None,
        }
    });
    quote! {
        fn from_argument(
            #entry: usize,
            #argument: &mut dyn ::core::any::Any,
        ) -> ::core::option::Option<#message_type> {
            match #entry { #(#arms)* _ => ::core::option::Option::None }
        }
    }
}

/// The type of messages. It is not written as `Self::Msg`, which a variant of the chare may be, too.
fn message_type(block: &Block, message: &Ident) -> TokenStream {
    let (_, type_generics, _) = block.generics.split_for_impl();
    quote!(#message #type_generics)
}

/// The arm of a match over a message enum with no variant, if all entries are invalid, or with one that never exists.
fn none(block: &Block) -> Option<TokenStream> {
    (block.entries.is_empty() || block.is_generic()).then(|| quote!(_ => ::core::unreachable!()))
}

fn values(arguments: &[Argument]) -> Vec<Ident> {
    (0..arguments.len()).map(|i| local(&format!("value{i}"))).collect()
}

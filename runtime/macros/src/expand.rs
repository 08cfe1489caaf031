//! Assembles the output of `#[chare]`, and generates the message enum.

use crate::block::{Argument, Block, Entry};
use crate::dispatch;
use crate::errors::Errors;
use crate::flow;
use crate::names::Names;
use crate::options::ChareOptions;
use crate::proxies;
use crate::second::is_second;
use crate::types::{bound, is_numbers};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Error, ImplItem, Item};

/// The output of `#[chare(..)]` for an item. `source` reads the file of the item, if it is known.
pub fn chare(
    options: TokenStream,
    item: TokenStream,
    source: impl FnOnce() -> Option<String>,
) -> TokenStream {
    let mut errors = Errors::default();
    let options = ChareOptions::read(options, &mut errors);
    let written = match syn::parse2(item) {
        Ok(Item::Impl(item)) => {
            let is_second = source().is_some_and(|source| is_second(&item, &source));
            match Block::read(item, &mut errors) {
                Ok(block) if is_second => {
                    let Block { name, item, .. } = &block;
                    let sentence = format!(
                        "`{name}` has a `#[chare]` block already: move these entries into that block, and other methods \
                         into an `impl` block without `#[chare]`"
                    );
                    errors.report(&item.self_ty, sentence);
                    let stand_ins = proxies::stand_ins(&block, &Names::of(name));
                    quote!(#[allow(dead_code)] #item #stand_ins)
                }
                Ok(block) => write(block, &options, &mut errors),
                Err(rest) => rest,
            }
        }
        Ok(other) => {
            let tokens = other.into_token_stream();
            // The first keyword, such as `struct`, after the attributes.
            let word = tokens.clone().into_iter().find(|token| matches!(token, TokenTree::Ident(_)));
            errors.report(
                word,
                "`#[chare(..)]` goes on the `impl` block with the entry methods: move it there",
            );
            tokens
        }
        Err(error) => {
            errors.add(error);
            TokenStream::new()
        }
    };
    let errors = errors.into_tokens();
    quote!(#written #errors)
}

/// The output of `#[entry]` or `#[flow]` outside a `#[chare]` block: an error.
pub fn stray(mark: &str, item: TokenStream) -> TokenStream {
    let sentence = format!("`{mark}` marks methods of an `impl` block that has `#[chare(index = ..)]` on it");
    let error = Error::new(Span::call_site(), sentence).into_compile_error();
    quote!(#item #error)
}

/// The output of a wait outside a flow: an error.
pub fn stray_wait(name: &str) -> TokenStream {
    let sentence = format!("`{name}!` waits in a method that has `#[flow]` on it, in a `#[chare]` block");
    Error::new(Span::call_site(), sentence).into_compile_error()
}

fn write(mut block: Block, options: &ChareOptions, errors: &mut Errors) -> TokenStream {
    let names = Names::of(&block.name);
    let flow = flow::compile(&mut block, &names.message, errors);
    if let Some(method) = &flow.method {
        block.item.items.push(ImplItem::Fn(method.clone()));
    }
    let (item, state) = (&block.item, &flow.items);
    let message = message(&block, &names);
    let proxies = proxies::write(&block, &names);
    let chare = dispatch::write(&block, options, &names, &flow);
    quote!(#item #state #message #proxies #chare)
}

/// The message: one variant per entry, whose number is the entry's id.
fn message(block: &Block, Names { message, .. }: &Names) -> TokenStream {
    // Fields have no names, because serde generates much less code for tuple variants.
    let variants = block.entries.iter().map(|Entry { name, arguments, .. }| {
        let fields = arguments.iter().map(|Argument { ty, serde, .. }| {
            let is_bulk = serde.is_empty() && is_numbers(ty);
            let bulk = is_bulk.then(|| quote!(#[serde(with = "::equipoise::numbers")]));
            let bound = if is_bulk || !serde.is_empty() { None } else { bound(ty, "Argument") };
            quote!(#bulk #bound #(#serde)* #ty)
        });
        quote!(#name(#(#fields),*))
    });
    let generics = &block.generics;
    let where_clause = &generics.where_clause;
    let unused = block.unused_variant().map(|variant| quote!(#[serde(skip)] #variant));
    let no_bound = block.no_bound();
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, private_bounds, private_interfaces, dead_code, clippy::all)]
        #[derive(::equipoise::__private::serde::Serialize, ::equipoise::__private::serde::Deserialize)]
        #[serde(crate = "::equipoise::__private::serde")]
        #no_bound
        pub enum #message #generics #where_clause { #(#variants,)* #unused }
    }
}

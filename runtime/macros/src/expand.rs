//! Puts together what `#[chare]` writes, and writes the message.

use crate::block::{Argument, Block, Entry};
use crate::dispatch;
use crate::errors::Errors;
use crate::options::ChareOptions;
use crate::proxies;
use crate::types::is_numbers;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{Error, Item};

/// What follows a `#[chare(..)]` becomes this.
pub fn chare(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = ChareOptions::read(options, &mut errors);
    let written = match syn::parse2(item) {
        Ok(Item::Impl(item)) => match Block::read(item, &mut errors) {
            Ok(block) => write(&block, &options),
            Err(rest) => rest,
        },
        Ok(other) => {
            let tokens = other.into_token_stream();
            // Its first word, such as `struct`, after its attributes.
            let word = tokens.clone().into_iter().find(|token| matches!(token, TokenTree::Ident(_)));
            errors.say(word, "`#[chare(..)]` goes on the `impl` block with the entry methods, not here");
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

/// What follows an `#[entry]` that is not inside of a `#[chare]` block becomes this.
pub fn stray_entry(item: TokenStream) -> TokenStream {
    let sentence = "`#[entry]` marks methods of an `impl` block that has `#[chare(index = ..)]` on it";
    let error = Error::new(Span::call_site(), sentence).into_compile_error();
    quote!(#item #error)
}

fn write(block: &Block, options: &ChareOptions) -> TokenStream {
    let names = Names::of(&block.name);
    let item = &block.item;
    let message = message(block, &names);
    let proxies = proxies::write(block, &names);
    let chare = dispatch::write(block, options, &names);
    quote!(#item #message #proxies #chare)
}

/// The types that generated code defines.
pub struct Names {
    /// The enum of messages.
    pub message: Ident,
    /// Sends to one element.
    pub proxy: Ident,
    /// Sends to several elements.
    pub proxies: Ident,
    /// Contributes to reductions.
    pub reduction: Ident,
}

impl Names {
    fn of(chare: &Ident) -> Self {
        Self {
            message: format_ident!("{chare}Msg"),
            proxy: format_ident!("{chare}Proxy"),
            proxies: format_ident!("{chare}Proxies"),
            reduction: format_ident!("{chare}Reduction"),
        }
    }
}

/// The message: one variant per entry, whose number is the entry's id.
fn message(block: &Block, Names { message, .. }: &Names) -> TokenStream {
    // Fields without names are enough, and serde writes much less code for them.
    let variants = block.entries.iter().map(|Entry { name, arguments, .. }| {
        let fields = arguments.iter().map(|Argument { ty, serde, .. }| {
            let is_bulk = serde.is_empty() && is_numbers(ty);
            let bulk = is_bulk.then(|| quote!(#[serde(with = "::equipoise::numbers")]));
            quote!(#bulk #(#serde)* #ty)
        });
        quote!(#name(#(#fields),*))
    });
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, private_interfaces, clippy::all)]
        #[derive(::equipoise::__private::serde::Serialize, ::equipoise::__private::serde::Deserialize)]
        #[serde(crate = "::equipoise::__private::serde")]
        pub enum #message { #(#variants),* }
    }
}

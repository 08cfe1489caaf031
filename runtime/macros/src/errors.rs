//! The mistakes found in a block, each said once at the token at fault.

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::fmt::Display;
use syn::Error;

/// The mistakes found so far.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// Adds a mistake and the tokens at fault.
    pub fn say(&mut self, at: impl ToTokens, sentence: impl Display) {
        self.add(Error::new_spanned(at, sentence));
    }

    /// Adds a mistake.
    pub fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.into_iter().count())
    }

    /// One `compile_error!` for each.
    pub fn into_tokens(self) -> Option<TokenStream> {
        self.0.map(Error::into_compile_error)
    }
}

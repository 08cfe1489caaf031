//! Collects the errors of a block, each at the token at fault.

use proc_macro2::TokenStream;
use quote::ToTokens;
use std::fmt::Display;
use syn::Error;

/// The errors so far.
#[derive(Default)]
pub struct Errors(Option<Error>);

impl Errors {
    /// Adds an error with the tokens at fault.
    pub fn report(&mut self, at: impl ToTokens, sentence: impl Display) {
        self.add(Error::new_spanned(at, sentence));
    }

    /// Adds an error.
    pub fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// The number of errors.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(0, |all| all.into_iter().count())
    }

    /// One `compile_error!` per error.
    pub fn into_tokens(self) -> Option<TokenStream> {
        self.0.map(Error::into_compile_error)
    }
}

//! The names of generated types.

use proc_macro2::{Ident, Span};
use quote::format_ident;

/// A variable that the user's code cannot see.
pub fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
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
    /// Makes callbacks.
    pub callbacks: Ident,
}

impl Names {
    /// The names for a chare.
    pub fn of(chare: &Ident) -> Self {
        Self {
            message: format_ident!("{chare}Msg"),
            proxy: format_ident!("{chare}Proxy"),
            proxies: format_ident!("{chare}Proxies"),
            reduction: format_ident!("{chare}Reduction"),
            callbacks: format_ident!("{chare}Callbacks"),
        }
    }
}

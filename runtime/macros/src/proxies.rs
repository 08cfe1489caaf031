//! Writes the proxies: the types on which users call entries.

use crate::block::{Block, Entry, Mistaken};
use crate::expand::Names;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;

/// The proxy to one element, the proxy to several, and the one that contributes to reductions.
pub fn write(block: &Block, names: &Names) -> TokenStream {
    let Block { name: chare, ty, entries, mistaken, .. } = block;
    let Names { message, proxy, proxies, reduction } = names;
    let stand_ins: Vec<_> = mistaken.iter().map(stand_in).collect();
    let to_one = entries.iter().map(|entry| method(entry, message, false));
    let to_several = entries.iter().map(|entry| method(entry, message, true));
    let reduced = entries.iter().filter(|entry| entry.reduce.is_some());
    let to_reduction = reduced.map(|entry| method(entry, message, true));
    let to_one_doc = format!("Sends to one element of an array of `{chare}`: a method call is a message.");
    let to_several_doc = format!(
        "Sends to several elements of an array of `{chare}`: a method call is a message, cloned for each."
    );
    let to_reduction_doc =
        format!("Contributes to a reduction whose result is sent to an entry of `{chare}`.");
    let modifiers = quote! {
        /// Instead of sending, contributes to a reduction: when all elements of the caller's array have
        /// contributed, the combined contribution is sent.
        #[inline(always)]
        pub fn contribute(self) -> #reduction<'a> { #reduction(self.0.contribute()) }

        /// Sends when nothing else is in flight.
        #[inline(always)]
        pub fn at_quiescence(self) -> Self { Self(self.0.at_quiescence()) }
    };
    // Documentation is copied from the entries, and an entry that nobody calls is not reported.
    let allowed = quote! {
        #[allow(
            dead_code, missing_docs, private_bounds, private_interfaces, unused_lifetimes,
            unused_qualifications, clippy::all
        )]
    };
    quote! {
        #[doc = #to_one_doc]
        #[must_use = "nothing is sent until an entry method is called on the proxy"]
        pub struct #proxy<'a>(::equipoise::Target<'a, #ty>);

        #allowed
        impl<'a> #proxy<'a> { #(#to_one)* #(#stand_ins)* #modifiers }

        impl<'a> ::core::convert::From<::equipoise::Target<'a, #ty>> for #proxy<'a> {
            #[inline(always)]
            fn from(target: ::equipoise::Target<'a, #ty>) -> Self { Self(target) }
        }

        #[doc = #to_several_doc]
        #[must_use = "nothing is sent until an entry method is called on the proxy"]
        pub struct #proxies<'a>(::equipoise::Targets<'a, #ty>);

        #allowed
        impl<'a> #proxies<'a> { #(#to_several)* #(#stand_ins)* #modifiers }

        impl<'a> ::core::convert::From<::equipoise::Targets<'a, #ty>> for #proxies<'a> {
            #[inline(always)]
            fn from(targets: ::equipoise::Targets<'a, #ty>) -> Self { Self(targets) }
        }

        #[doc = #to_reduction_doc]
        #[must_use = "nothing is contributed until an entry method is called on the reduction"]
        pub struct #reduction<'a>(::equipoise::Contribution<'a, #ty>);

        #allowed
        impl<'a> #reduction<'a> { #(#to_reduction)* #(#stand_ins)* }
    }
}

/// The method that sends to an entry.
fn method(entry: &Entry, message: &Ident, cloned: bool) -> TokenStream {
    let Entry { name, visibility, docs, arguments, .. } = entry;
    let (names, types) = (|| arguments.iter().map(|a| &a.name), || arguments.iter().map(|a| &a.ty));
    let (parameters, parameter_types, values) = (names(), types(), names());
    // A bound on a concrete type is an error at once if it does not hold; a bound for all lifetimes is
    // looked at where the method is called.
    let bounds = types().map(|ty| quote_spanned!(ty.span()=> for<'clone> #ty: ::core::clone::Clone));
    let clone = cloned.then(|| quote_spanned!(name.span()=> where #(#bounds),*));
    // Who calls it wrongly is shown the entry.
    quote_spanned! {name.span()=>
        #(#docs)*
        #[inline(always)]
        #visibility fn #name(self, #(#parameters: #parameter_types),*) #clone {
            self.0.send(#message::#name(#(#values),*))
        }
    }
}

/// The method for an entry with a mistake: it takes whatever it is given.
fn stand_in(Mistaken { name, visibility, arguments }: &Mistaken) -> TokenStream {
    let types: Vec<Ident> = (0..*arguments).map(|i| format_ident!("A{i}")).collect();
    quote!(#visibility fn #name<#(#types),*>(self, #(_: #types),*) {})
}

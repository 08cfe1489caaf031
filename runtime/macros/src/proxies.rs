//! Generates the proxies: the types on which users call entries.

use crate::block::{Block, Entry, InvalidEntry};
use crate::names::Names;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// The proxy to one element, the proxy to several, and the proxy that contributes to reductions.
pub fn write(block: &Block, names: &Names) -> TokenStream {
    let Block { name: chare, ty, entries, invalid, .. } = block;
    let Names { message, proxy, proxies, reduction } = names;
    let stand_ins: Vec<_> = invalid.iter().map(InvalidEntry::stand_in).collect();
    let to_one = entries.iter().map(|entry| method(entry, message, false));
    let to_several = entries.iter().map(|entry| method(entry, message, true));
    let (reduced, others): (Vec<_>, Vec<_>) = entries.iter().partition(|entry| entry.reduce.is_some());
    let to_reduction = reduced.into_iter().map(|entry| method(entry, message, true));
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
        #[track_caller]
        pub fn contribute(self) -> #reduction<'a> { #reduction(self.0.contribute()) }

        /// Instead of sending, contributes to a reduction over a section, of which the caller is a member: when all members
        /// have contributed, the combined contribution is sent.
        #[inline(always)]
        #[track_caller]
        pub fn contribute_in<S: ::equipoise::Chare>(self, section: &::equipoise::Section<S>) -> #reduction<'a> {
            #reduction(self.0.contribute_in(section))
        }

        /// Postpones the message until no message is in flight.
        #[inline(always)]
        #[track_caller]
        pub fn at_quiescence(self) -> Self { Self(self.0.at_quiescence()) }

        /// Postpones the message until no message is in flight and, with `--checkpoint`, the state of the run is saved. A
        /// run that is restarted with this state begins with this message.
        #[inline(always)]
        #[track_caller]
        pub fn at_checkpoint(self) -> Self { Self(self.0.at_checkpoint()) }
    };
    let prefix = quote! {
        /// Each element that contributes receives the combination of the contributions up to its own, in rank order. The
        /// receivers must be the elements that contribute.
        #[inline(always)]
        #[track_caller]
        pub fn prefix(self) -> Self { Self(self.0.prefix()) }
    };
    // Entries may be undocumented or never called.
    let allowed = quote! {
        #[allow(
            dead_code, missing_docs, private_bounds, private_interfaces, unused_lifetimes,
            unused_qualifications, clippy::all
        )]
    };
    let without_reduce = others.into_iter().map(|entry| without_reduce(entry, block, reduction, &allowed));
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
        impl<'a> #reduction<'a> { #(#to_reduction)* #(#stand_ins)* #prefix }

        #(#without_reduce)*
    }
}

/// The method that sends to an entry.
fn method(entry: &Entry, message: &Ident, cloned: bool) -> TokenStream {
    let Entry { name, visibility, docs, arguments, .. } = entry;
    let (names, types) = (|| arguments.iter().map(|a| &a.name), || arguments.iter().map(|a| &a.ty));
    let (parameters, parameter_types, values) = (names(), types(), names());
    // A false bound on a concrete type is an error at the definition; with `for<'clone>` it is an error only at a
    // call of the method.
    let bounds =
        types().map(|ty| quote_spanned!(ty.span()=> for<'clone> #ty: ::equipoise::__private::CloneArg));
    let clone = cloned.then(|| quote_spanned!(name.span()=> where #(#bounds),*));
    // The span of the entry, so that errors in calls show the entry.
    quote_spanned! {name.span()=>
        #(#docs)*
        #[inline(always)]
        #[track_caller]
        #visibility fn #name(self, #(#parameters: #parameter_types),*) #clone {
            self.0.send(#message::#name(#(#values),*))
        }
    }
}

/// The method that reports a contribution to an entry without `reduce`. Its bound is false, and the trait in the bound
/// exists for its error message.
fn without_reduce(entry: &Entry, block: &Block, reduction: &Ident, allowed: &TokenStream) -> TokenStream {
    let Entry { name, visibility, arguments, .. } = entry;
    let (entry, chare) = (name.unraw(), block.name.unraw());
    let message =
        format!("the entry `{entry}` of `{chare}` has no `reduce`, so elements cannot contribute to it");
    let note = format!(
        "write a function that combines two contributions, as in `#[entry(reduce = equipoise::reduce::sum)]`, on \
         `{entry}`, whose only argument after `cx` is the value"
    );
    let types = arguments.iter().map(|argument| &argument.ty);
    quote_spanned! {name.span()=>
        const _: () = {
            #[diagnostic::on_unimplemented(message = #message, label = "an entry without `reduce`", note = #note)]
            pub trait HasReduce {}
            // Without an implementation, rustc would recommend to write one.
            #[diagnostic::do_not_recommend]
            impl HasReduce for [(); 0] {}

            #allowed
            impl<'a> #reduction<'a> {
                #[doc(hidden)]
                #visibility fn #name(self, #(_: #types),*) where for<'none> (): HasReduce {}
            }
        };
    }
}

/// Methods for all entries of a block without generated items of its own, on the proxies of another block.
pub fn stand_ins(block: &Block, Names { proxy, proxies, reduction, .. }: &Names) -> TokenStream {
    let valid = block.entries.iter().map(|Entry { name, visibility, arguments, .. }| {
        let (name, visibility) = (name.clone(), visibility.clone());
        InvalidEntry { name, visibility, arguments: arguments.len() }.stand_in()
    });
    let methods: Vec<_> = valid.chain(block.invalid.iter().map(InvalidEntry::stand_in)).collect();
    let written = |ty: &Ident| quote!(#[allow(dead_code)] impl #ty<'_> { #(#methods)* });
    [proxy, proxies, reduction].into_iter().map(written).collect()
}

impl InvalidEntry {
    /// The method for an invalid entry: it accepts arguments of any type.
    fn stand_in(&self) -> TokenStream {
        let Self { name, visibility, arguments } = self;
        let types: Vec<Ident> = (0..*arguments).map(|i| format_ident!("A{i}")).collect();
        quote!(#visibility fn #name<#(#types),*>(self, #(_: #types),*) {})
    }
}

//! Generates the proxies: the types on which users call entries.

use crate::block::{Block, Entry, InvalidEntry};
use crate::names::Names;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;

/// The proxy to one element, the proxy to several, and the proxy that contributes to reductions.
pub fn write(block: &Block, names: &Names) -> TokenStream {
    let Block { name: chare, ty, entries, invalid, .. } = block;
    let Names { message, proxy, proxies, reduction, .. } = names;
    let generics = block.generics_of_proxies();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
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
    let (one, several) = (quote!(::equipoise::Target<'a, #ty>), quote!(::equipoise::Targets<'a, #ty>));
    let [to_one_modifiers, to_several_modifiers] =
        [&one, &several].map(|target| modifiers(block, names, target));
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
    let callbacks = callbacks(block, names, [&one, &several], &allowed);
    quote! {
        #[doc = #to_one_doc]
        #[must_use = "nothing is sent until an entry method is called on the proxy"]
        #[allow(private_bounds)]
        pub struct #proxy #generics(::equipoise::Target<'a, #ty>) #where_clause;

        #allowed
        impl #impl_generics #proxy #type_generics #where_clause { #(#to_one)* #(#stand_ins)* #to_one_modifiers }

        impl #impl_generics ::core::convert::From<::equipoise::Target<'a, #ty>> for #proxy #type_generics #where_clause {
            #[inline(always)]
            fn from(target: ::equipoise::Target<'a, #ty>) -> Self { Self(target) }
        }

        #[doc = #to_several_doc]
        #[must_use = "nothing is sent until an entry method is called on the proxy"]
        #[allow(private_bounds)]
        pub struct #proxies #generics(::equipoise::Targets<'a, #ty>) #where_clause;

        #allowed
        impl #impl_generics #proxies #type_generics #where_clause { #(#to_several)* #(#stand_ins)* #to_several_modifiers }

        impl #impl_generics ::core::convert::From<::equipoise::Targets<'a, #ty>> for #proxies #type_generics #where_clause {
            #[inline(always)]
            fn from(targets: ::equipoise::Targets<'a, #ty>) -> Self { Self(targets) }
        }

        #[doc = #to_reduction_doc]
        #[must_use = "nothing is contributed until an entry method is called on the reduction"]
        #[allow(private_bounds)]
        pub struct #reduction #generics(::equipoise::Contribution<'a, #ty>) #where_clause;

        #allowed
        impl #impl_generics #reduction #type_generics #where_clause { #(#to_reduction)* #(#stand_ins)* #prefix }

        #(#without_reduce)*

        #callbacks
    }
}

/// The methods of a proxy that postpone a message, or use the receivers otherwise. `target` is the type behind the proxy.
fn modifiers(block: &Block, names: &Names, target: &TokenStream) -> TokenStream {
    let Names { reduction, callbacks, .. } = names;
    let generics = block.generics_of_proxies();
    let (_, type_generics, _) = generics.split_for_impl();
    quote! {
        /// Instead of sending, contributes to a reduction: when all elements of the caller's array have
        /// contributed, the combined contribution is sent.
        #[inline(always)]
        #[track_caller]
        pub fn contribute(self) -> #reduction #type_generics { #reduction(self.0.contribute()) }

        /// Instead of sending, contributes to a reduction over a section, of which the caller is a member: when all members
        /// have contributed, the combined contribution is sent.
        #[inline(always)]
        #[track_caller]
        pub fn contribute_in<S: ::equipoise::Chare>(self, section: &::equipoise::Section<S>) -> #reduction #type_generics {
            #reduction(self.0.contribute_in(section))
        }

        /// Instead of sending, makes a callback: a value that names an entry of these receivers with at most one argument. Others
        /// send to it without knowing the receivers.
        #[track_caller]
        pub fn callback(self) -> #callbacks<#target> { #callbacks(self.0) }

        /// Postpones the message until no message is in flight.
        #[inline(always)]
        #[track_caller]
        pub fn at_quiescence(self) -> Self { Self(self.0.at_quiescence()) }

        /// Postpones the message by at least this time: wall time, or virtual time on a simulated machine. Where the order of
        /// messages is sampled with a seed, it waits for an arbitrary number of deliveries. Meanwhile it counts as in
        /// flight: nothing that waits for quiescence goes on, and the run does not save itself.
        #[inline(always)]
        #[track_caller]
        pub fn after(self, duration: ::core::time::Duration) -> Self { Self(self.0.after(duration)) }

        /// Postpones the message until no message is in flight and, with `--checkpoint`, the state of the run is saved. A
        /// run that is restarted with this state begins with this message.
        #[inline(always)]
        #[track_caller]
        pub fn at_checkpoint(self) -> Self { Self(self.0.at_checkpoint()) }
    }
}

/// The type that makes callbacks to entries with at most one argument. `targets` are the types behind the proxies.
fn callbacks(block: &Block, names: &Names, targets: [&TokenStream; 2], allowed: &TokenStream) -> TokenStream {
    let Names { callbacks, .. } = names;
    let generics = block.generics_of_proxies();
    let (impl_generics, _, where_clause) = generics.split_for_impl();
    let stand_ins: Vec<_> = block.invalid.iter().map(InvalidEntry::stand_in).collect();
    let docs = format!("Makes callbacks to entries of `{}` with at most one argument.", block.name.unraw());
    let impls = targets.into_iter().zip([false, true]).map(|(target, cloned)| {
        let methods = block.entries.iter().enumerate().filter(|(_, entry)| entry.arguments.len() <= 1);
        let methods = methods.map(|(id, Entry { name, visibility, docs, arguments, .. })| {
            let ty = arguments.first().map_or(quote!(()), |argument| argument.ty.to_token_stream());
            let bound = quote_spanned!(ty.span()=> where for<'clone> #ty: ::equipoise::__private::CloneArg);
            let bound = cloned.then_some(bound);
            quote_spanned! {name.span()=>
                #(#docs)*
                #[must_use = "a callback sends nothing until a value is sent to it"]
                #visibility fn #name(self) -> ::equipoise::Callback<#ty> #bound { self.0.callback(#id) }
            }
        });
        quote!(#allowed impl #impl_generics #callbacks<#target> #where_clause { #(#methods)* })
    });
    quote! {
        #[doc = #docs]
        #[must_use = "no callback is made until an entry method is called"]
        pub struct #callbacks<K>(K);

        #(#impls)*

        #allowed
        impl<K> #callbacks<K> { #(#stand_ins)* }
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
    let message = quote_spanned!(name.span()=> #message::#name(#(#values),*));
    let send = match cloned {
        true => quote_spanned!(name.span()=> send(#message)),
        false => quote_spanned!(name.span()=> send_with(move || #message)),
    };
    let clone = cloned.then(|| quote_spanned!(name.span()=> where #(#bounds),*));
    // The span of the entry, so that errors in calls show the entry.
    quote_spanned! {name.span()=>
        #(#docs)*
        #[inline(always)]
        #[track_caller]
        #visibility fn #name(self, #(#parameters: #parameter_types),*) #clone {
            self.0.#send
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
    let generics = block.generics_of_proxies();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote_spanned! {name.span()=>
        const _: () = {
            #[diagnostic::on_unimplemented(message = #message, label = "an entry without `reduce`", note = #note)]
            pub trait HasReduce {}
            // Without an implementation, rustc would recommend to write one.
            #[diagnostic::do_not_recommend]
            impl HasReduce for [(); 0] {}

            #allowed
            impl #impl_generics #reduction #type_generics #where_clause {
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
    let generics = block.generics_of_proxies();
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let written = |ty: &Ident| quote!(#[allow(dead_code, unused_lifetimes)] impl #impl_generics #ty #type_generics #where_clause { #(#methods)* });
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

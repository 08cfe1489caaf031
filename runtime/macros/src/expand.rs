//! Writes the code of a chare: its message, its proxies and its implementation of `Chare`.

use crate::block::{Argument, Block, Entry, Guard, Mistaken};
use crate::errors::Errors;
use crate::options::ChareOptions;
use crate::types::is_numbers;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Item, Type};

/// What follows a `#[chare(..)]` becomes this.
pub fn chare(options: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let options = ChareOptions::read(options, &mut errors);
    let written = match syn::parse2(item) {
        Ok(Item::Impl(item)) => match Block::read(item, &mut errors) {
            Ok(block) => Names::of(&block).write(&block, &options),
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
    let error = syn::Error::new(Span::call_site(), sentence).into_compile_error();
    quote!(#item #error)
}

/// The names that generated code goes by.
struct Names {
    chare: Type,
    message: Ident,
    proxy: Ident,
    proxies: Ident,
    reduction: Ident,
}

impl Names {
    fn of(block: &Block) -> Self {
        let name = &block.name;
        Self {
            chare: block.ty.clone(),
            message: format_ident!("{name}Msg"),
            proxy: format_ident!("{name}Proxy"),
            proxies: format_ident!("{name}Proxies"),
            reduction: format_ident!("{name}Reduction"),
        }
    }

    fn write(&self, block: &Block, options: &ChareOptions) -> TokenStream {
        let Block { entries, item, .. } = block;
        let message = self.message(entries);
        let proxies = self.proxies(block);
        let chare = self.chare(block, options);
        quote!(#item #message #proxies #chare)
    }

    /// The message enum: one variant per entry.
    fn message(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let variants = entries.iter().map(|entry| {
            let name = &entry.name;
            let fields = entry.arguments.iter().map(|Argument { name, ty, serde }| {
                let bulk = (serde.is_empty() && is_numbers(ty))
                    .then(|| quote!(#[serde(with = "::equipoise::numbers")]));
                quote!(#bulk #(#serde)* #name: #ty)
            });
            quote!(#name { #(#fields),* })
        });
        quote! {
            #[doc(hidden)]
            #[allow(non_camel_case_types, private_interfaces, clippy::all)]
            #[derive(::equipoise::__private::serde::Serialize, ::equipoise::__private::serde::Deserialize)]
            #[serde(crate = "::equipoise::__private::serde")]
            pub enum #message { #(#variants),* }
        }
    }

    /// The three types that users call entries on.
    fn proxies(&self, block: &Block) -> TokenStream {
        let Self { chare, message, proxy, proxies, reduction } = self;
        let Block { name, entries, mistaken, .. } = block;
        let send = |entry: &Entry, cloned: bool| {
            let Entry { name, visibility, docs, arguments, .. } = entry;
            let (names, types) = names_and_types(arguments);
            // A bound on a concrete type is an error at once if it does not hold; with a lifetime in it,
            // it is checked where the method is called.
            let clone = cloned.then(|| {
                let bounds =
                    types.iter().map(|ty| quote_spanned!(ty.span()=> for<'clone> #ty: ::core::clone::Clone));
                quote!(where #(#bounds),*)
            });
            quote! {
                #(#docs)*
                #[inline(always)]
                #visibility fn #name(self, #(#names: #types),*) #clone {
                    self.0.send(#message::#name { #(#names),* })
                }
            }
        };
        let to_one = entries.iter().map(|entry| send(entry, false));
        let to_several = entries.iter().map(|entry| send(entry, true));
        let to_reduction =
            entries.iter().filter(|entry| entry.reduce.is_some()).map(|entry| send(entry, true));
        let mistaken: Vec<_> = mistaken.iter().map(stand_in).collect();
        let docs = [
            format!("Sends to one element of an array of `{name}`: a method call is a message."),
            format!(
                "Sends to several elements of an array of `{name}`: a method call is a message, cloned for each."
            ),
            format!("Contributes to a reduction whose result is sent to `{name}`."),
        ];
        let [to_one_doc, to_several_doc, to_reduction_doc] = &docs;
        let modifiers = quote! {
            /// Contributes to a reduction instead: what all elements of the calling element's array have
            /// contributed is combined and then sent.
            #[inline(always)]
            pub fn contribute(self) -> #reduction<'a> { #reduction(self.0.contribute()) }
            /// Sends when nothing else is in flight.
            #[inline(always)]
            pub fn at_quiescence(self) -> Self { Self(self.0.at_quiescence()) }
        };
        let proxy_type = |name: &Ident,
                          doc: &String,
                          target: TokenStream,
                          lost: &str,
                          methods: TokenStream| {
            quote! {
                #[doc = #doc]
                #[must_use = #lost]
                #[allow(private_interfaces)]
                pub struct #name<'a>(::equipoise::#target<'a, #chare>);

                #[allow(dead_code, missing_docs, private_bounds, private_interfaces, unused_lifetimes, clippy::all)]
                impl<'a> #name<'a> { #methods }
            }
        };
        let lost = "nothing is sent until an entry method is called on the proxy";
        let lost_reduction = "nothing is contributed until an entry method is called on the reduction";
        let one =
            proxy_type(proxy, to_one_doc, quote!(Target), lost, quote!(#(#to_one)* #(#mistaken)* #modifiers));
        let methods = quote!(#(#to_several)* #(#mistaken)* #modifiers);
        let several = proxy_type(proxies, to_several_doc, quote!(Targets), lost, methods);
        let methods = quote!(#(#to_reduction)* #(#mistaken)*);
        let contribution =
            proxy_type(reduction, to_reduction_doc, quote!(Contribution), lost_reduction, methods);
        quote!(#one #several #contribution)
    }

    /// The implementations of `Chare` and `Synced`.
    fn chare(&self, block: &Block, options: &ChareOptions) -> TokenStream {
        let Self { chare, message, proxy, proxies, .. } = self;
        let ChareOptions { index, sync, pinned } = options;
        let entries = &block.entries;
        let name = block.name.unraw().to_string();
        let names = entries.iter().map(|entry| entry.name.unraw().to_string());
        let guarded = entries.iter().any(|entry| entry.when.is_some());
        let (ready, combine) = (self.ready(entries), self.combine(entries));
        let [entry, deliver, copy] = [self.entry(entries), self.deliver(entries), self.copy(entries)];
        let from = [(proxy, quote!(Target)), (proxies, quote!(Targets))].map(|(proxy, target)| {
            quote! {
                impl<'a> ::core::convert::From<::equipoise::#target<'a, #chare>> for #proxy<'a> {
                    #[inline(always)]
                    fn from(target: ::equipoise::#target<'a, #chare>) -> Self { Self(target) }
                }
            }
        });
        let synced = sync.then(|| quote!(impl ::equipoise::Synced for #chare {}));
        quote! {
            #[allow(unused_variables, unreachable_patterns, unreachable_code, clippy::all)]
            impl ::equipoise::Chare for #chare {
                type Index = #index;
                type Msg = #message;
                type Proxy<'a> = #proxy<'a>;
                type Proxies<'a> = #proxies<'a>;
                const NAME: &'static str = #name;
                const ENTRIES: &'static [&'static str] = &[#(#names),*];
                const GUARDED: bool = #guarded;
                const SYNC: bool = #sync;
                const PINNED: bool = #pinned;
                #entry
                #ready
                #deliver
                #combine
                #copy
            }
            #synced
            #(#from)*
        }
    }

    /// Which entry a message is for.
    fn entry(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let arms =
            entries.iter().enumerate().map(|(id, Entry { name, .. })| quote!(#message::#name { .. } => #id,));
        let none = none(entries);
        quote! {
            #[inline]
            fn entry(msg: &Self::Msg) -> usize {
                match msg { #(#arms)* #none }
            }
        }
    }

    /// The guards.
    fn ready(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let arms: Vec<_> = entries
            .iter()
            .filter_map(|Entry { name, when, .. }| {
                let Guard { condition, named } = when.as_ref()?;
                let copies = named.iter().map(|argument| {
                    let copy = quote_spanned!(argument.span()=> ::equipoise::__private::guard_arg);
                    quote!(let #argument = #copy(#argument);)
                });
                // The guard's own tokens carry the type, so that a guard of another type is what is blamed.
                let ready = quote_spanned!(condition.span()=> let ready: bool = #condition;);
                Some(quote!(#message::#name { #(#named,)* .. } => { #(#copies)* #ready ready }))
            })
            .collect();
        let body = if arms.is_empty() { quote!(true) } else { quote!(match msg { #(#arms)* _ => true }) };
        quote! {
            #[inline]
            fn ready(&self, msg: &Self::Msg) -> bool { #body }
        }
    }

    /// The calls of the entry methods.
    fn deliver(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let cx = Ident::new("cx", Span::mixed_site());
        let arms = entries.iter().map(|Entry { name, arguments, .. }| {
            let (names, _) = names_and_types(arguments);
            let values = values(arguments);
            quote!(#message::#name { #(#names: #values),* } => Self::#name(self, #cx, #(#values),*),)
        });
        let none = none(entries);
        quote! {
            #[inline]
            fn deliver(&mut self, #cx: &::equipoise::Cx<'_, Self>, msg: Self::Msg) {
                match msg { #(#arms)* #none }
            }
        }
    }

    /// The calls of the functions that combine contributions.
    fn combine(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let arms = entries.iter().filter_map(|Entry { name, arguments, reduce, .. }| {
            let (function, Argument { name: field, ty, .. }) = (reduce.as_ref()?, arguments.first()?);
            // As a function pointer a closure knows its arguments' types, and a wrong function is told
            // the right signature.
            let pointer = quote_spanned!(function.span()=> let combine: fn(#ty, #ty) -> #ty = #function;);
            Some(quote! {
                (#message::#name { #field: a }, #message::#name { #field: b }) => {
                    #pointer
                    #message::#name { #field: combine(a, b) }
                }
            })
        });
        quote! {
            fn combine(a: Self::Msg, b: Self::Msg) -> Self::Msg {
                match (a, b) {
                    #(#arms)*
                    (a, b) => ::core::unreachable!(
                        "contributions to `{}` and `{}` of `{}` are parts of different reductions",
                        Self::ENTRIES[Self::entry(&a)], Self::ENTRIES[Self::entry(&b)], Self::NAME
                    ),
                }
            }
        }
    }

    /// The copy of a message whose arguments can be cloned.
    fn copy(&self, entries: &[Entry]) -> TokenStream {
        let message = &self.message;
        let arms = entries.iter().map(|Entry { name, arguments, .. }| {
            let (names, _) = names_and_types(arguments);
            let values = values(arguments);
            let copies = values.iter().map(|value| quote!(::equipoise::__private::CopyArg(#value).copy()));
            quote!(#message::#name { #(#names: #values),* } => #message::#name { #(#names: #copies),* },)
        });
        let none = none(entries);
        quote! {
            fn copy(msg: &Self::Msg) -> Self::Msg {
                #[allow(unused_imports)]
                use ::equipoise::__private::ViaNothing as _;
                match msg { #(#arms)* #none }
            }
        }
    }
}

/// A proxy method for an entry with a mistake: it takes what it is given.
fn stand_in(Mistaken { name, visibility, arguments }: &Mistaken) -> TokenStream {
    let types: Vec<Ident> = (0..*arguments).map(|i| format_ident!("A{i}")).collect();
    quote!(#visibility fn #name<#(#types),*>(self, #(_: #types),*) {})
}

/// The arm of a match over a message that cannot exist, because all entries have mistakes.
fn none(entries: &[Entry]) -> Option<TokenStream> {
    entries.is_empty().then(|| quote!(_ => ::core::unreachable!()))
}

fn names_and_types(arguments: &[Argument]) -> (Vec<&Ident>, Vec<&Type>) {
    arguments.iter().map(|argument| (&argument.name, &argument.ty)).unzip()
}

/// A variable for each argument that no name of the user's can collide with.
fn values(arguments: &[Argument]) -> Vec<Ident> {
    (0..arguments.len()).map(|i| Ident::new(&format!("value{i}"), Span::mixed_site())).collect()
}

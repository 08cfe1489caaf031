//! The output of `#[derive(Index)]`.

use crate::errors::Errors;
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Data, DataStruct, DeriveInput, Error, Fields, Member};

/// The most dimensions of an index.
const MAX_DIMENSIONS: usize = 6;

/// The implementation of `Index` for a struct with a field per dimension.
pub fn derive(item: TokenStream) -> TokenStream {
    let item: DeriveInput = match syn::parse2(item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    match dimensions(&item) {
        Ok(fields) => write(&item, &fields),
        Err(errors) => errors,
    }
}

/// The names of the fields, in order, with their types.
fn dimensions(item: &DeriveInput) -> Result<Vec<(Member, &syn::Type)>, TokenStream> {
    let mut errors = Errors::default();
    if !item.generics.params.is_empty() {
        errors.report(&item.generics, "an index cannot be generic: give its fields types such as `i32`");
    }
    let fields = match &item.data {
        Data::Struct(DataStruct { fields, .. }) => fields,
        Data::Enum(data) => {
            errors.add(Error::new(
                data.enum_token.span,
                "an index is a struct with a field per dimension, not an enum",
            ));
            &Fields::Unit
        }
        Data::Union(data) => {
            errors.add(Error::new(
                data.union_token.span,
                "an index is a struct with a field per dimension, not a union",
            ));
            &Fields::Unit
        }
    };
    if matches!(item.data, Data::Struct(_)) && fields.is_empty() {
        errors.report(
            &item.ident,
            "an index has a field per dimension: add one, or use `()` for an array with one element",
        );
    }
    if let Some(seventh) = fields.iter().nth(MAX_DIMENSIONS) {
        errors.report(
            seventh,
            format!("an index has at most {MAX_DIMENSIONS} dimensions: combine some of the fields"),
        );
    }
    match errors.into_tokens() {
        None => Ok(fields.members().zip(fields.iter().map(|field| &field.ty)).collect()),
        Some(errors) => Err(errors),
    }
}

fn write(item: &DeriveInput, fields: &[(Member, &syn::Type)]) -> TokenStream {
    let name = &item.ident;
    let members: Vec<&Member> = fields.iter().map(|(member, _)| member).collect();
    // With the span of the type, errors about it are there.
    let dimension = |ty: &syn::Type| {
        let span = syn::spanned::Spanned::span(ty).resolved_at(Span::mixed_site());
        quote::quote_spanned!(span=> <#ty as ::equipoise::__private::Dimension>)
    };
    let dimensions: Vec<TokenStream> = fields.iter().map(|(_, ty)| dimension(ty)).collect();
    let (last, first) = dimensions.split_last().expect("an index has a dimension");
    let (last_member, first_members) = members.split_last().expect("an index has a dimension");
    let backwards = members.iter().zip(&dimensions).rev().map(|(member, dimension)| {
        quote! { rank = #dimension::add_to_rank(self.#member, rank, shape.#member)?; }
    });
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl ::equipoise::Index for #name {
            fn count(shape: Self) -> ::core::option::Option<u32> {
                let count = 1u32;
                #( let count = u32::checked_mul(count, #dimensions::side(shape.#members)?)?; )*
                ::core::option::Option::Some(count)
            }
            #[inline(always)]
            fn rank(self, shape: Self) -> ::core::option::Option<u32> {
                let mut rank = 0u32;
                #(#backwards)*
                ::core::option::Option::Some(rank)
            }
            #[inline(always)]
            fn unrank(mut rank: u32, shape: Self) -> Self {
                Self {
                    #( #first_members: #first::take_from_rank(&mut rank, shape.#first_members), )*
                    #last_member: #last::of(rank),
                }
            }
            fn coordinates(self) -> ::equipoise::model::database::ObjectIndex {
                ::equipoise::model::database::ObjectIndex::new(&[#( #dimensions::coordinate(self.#members) as i32 ),*])
            }
        }
    }
}

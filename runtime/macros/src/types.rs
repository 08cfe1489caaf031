//! Inspects the tokens of types and guards.

use proc_macro2::{Group, Ident, Literal, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Error, Expr, ExprPath, GenericArgument, Lifetime, Macro, PathArguments, Type};
use syn::{TypeFnPtr, TypeImplTrait, TypeReference};

/// The error for an entry method with type parameters, explicit or as `impl Trait`.
pub const NOT_GENERIC: &str = "an entry method cannot be generic: its arguments are the fields of a message, \
    which have concrete types; write an entry per type, or take an enum";

/// Number types whose encoding equals their memory layout. `usize` and `isize` do not qualify, because their width
/// depends on the machine.
const NUMBERS: [&str; 12] =
    ["u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64"];

/// The error if a message cannot own a field of this type.
pub fn not_owned(ty: &Type) -> Option<Error> {
    struct Search(Option<Error>);
    impl Search {
        fn found(&mut self, at: impl ToTokens, sentence: &str) {
            self.0.get_or_insert_with(|| Error::new_spanned(at, sentence));
        }
    }
    impl<'a> Visit<'a> for Search {
        fn visit_type_reference(&mut self, reference: &'a TypeReference) {
            let owned = match &*reference.elem {
                Type::Path(path) if path.path.is_ident("str") => "String".to_owned(),
                Type::Slice(slice) => format!("Vec<{}>", plain(&slice.elem)),
                other => plain(other),
            };
            self.found(reference, &format!("a message owns its arguments: take `{owned}`, by value"));
        }
        fn visit_lifetime(&mut self, lifetime: &'a Lifetime) {
            if lifetime.ident != "static" {
                self.found(
                    lifetime,
                    "a message owns its arguments: this argument borrows; take an owned type",
                );
            }
        }
        fn visit_type_impl_trait(&mut self, hidden: &'a TypeImplTrait) {
            self.found(hidden, NOT_GENERIC);
        }
        // The arguments and the result of a function are not part of the message.
        fn visit_type_fn_ptr(&mut self, _: &'a TypeFnPtr) {}
    }
    let mut search = Search(None);
    search.visit_type(ty);
    search.0
}

/// The first lifetime named in a type, other than `'static`.
pub fn lifetime_in(ty: &Type) -> Option<Lifetime> {
    struct First(Option<Lifetime>);
    impl<'a> Visit<'a> for First {
        fn visit_lifetime(&mut self, lifetime: &'a Lifetime) {
            if lifetime.ident != "static" {
                self.0.get_or_insert_with(|| lifetime.clone());
            }
        }
    }
    let mut first = First(None);
    first.visit_type(ty);
    first.0
}

/// The attribute that makes serde's derives require our trait `of` in `__private` of a type, whose error says what to do,
/// in place of serde's traits.
///
/// A false bound on a concrete type is an error at the derives; with `for<'encoded>` it is one error, where `Chare`
/// requires that the message can be encoded. serde takes bounds as text, and text cannot hold the `$crate` of a macro:
/// then there is no bound, and the errors are serde's.
pub fn bound(ty: &Type, of: &str) -> Option<TokenStream> {
    let ty_text = ty.to_token_stream().to_string();
    let mut bound =
        Literal::string(&format!("for<'encoded> {ty_text}: ::equipoise::__private::{of}<'encoded>"));
    bound.set_span(ty.span());
    (!ty_text.contains('$')).then(|| quote!(#[serde(bound = #bound)]))
}

/// The type without the invisible brackets that a `macro_rules!` puts around `$t:ty`.
pub fn bare(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => bare(&group.elem),
        Type::Paren(paren) => bare(&paren.elem),
        other => other,
    }
}

/// Whether the type is written as a container of numbers that can be copied as one block of bytes: those of `numbers::Container`.
pub fn is_numbers(ty: &Type) -> bool {
    let Some((container, of)) = parameter(ty) else { return false };
    let is_slice = matches!(of, Type::Slice(slice) if is_number(&slice.elem));
    let is_vector = parameter(of).is_some_and(|(inner, of)| inner == "Vec" && is_number(of));
    match container.to_string().as_str() {
        "Vec" => is_number(of),
        "Box" => is_slice,
        "Arc" => is_slice || is_vector,
        _ => false,
    }
}

fn is_number(ty: &Type) -> bool {
    let Type::Path(path) = bare(ty) else { return false };
    path.path.get_ident().is_some_and(|of| NUMBERS.iter().any(|number| of == number))
}

/// The name of a type with one parameter, and the parameter.
fn parameter(ty: &Type) -> Option<(&Ident, &Type)> {
    let Type::Path(path) = bare(ty) else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let mut types = arguments.args.iter();
    match (types.next(), types.next()) {
        (Some(GenericArgument::Type(of)), None) => Some((&last.ident, bare(of))),
        _ => None,
    }
}

/// The type with `Self` replaced by the chare's type: in a field of a message, `Self` would be the
/// message.
pub fn without_self(ty: &Type, chare: &Type) -> Type {
    fn replace(tokens: TokenStream, chare: &Type) -> TokenStream {
        let mut tokens = tokens.into_iter().peekable();
        let mut replaced = TokenStream::new();
        while let Some(token) = tokens.next() {
            replaced.extend(match token {
                TokenTree::Ident(ident) if ident == "Self" => {
                    let written = match tokens.peek() {
                        Some(TokenTree::Punct(colon)) if colon.as_char() == ':' => quote!(<#chare>),
                        _ => quote!(#chare),
                    };
                    let at_self = |mut token: TokenTree| {
                        token.set_span(ident.span());
                        token
                    };
                    written.into_iter().map(at_self).collect::<TokenStream>()
                }
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), replace(group.stream(), chare));
                    inner.set_span(group.span());
                    TokenTree::Group(inner).into()
                }
                other => other.into(),
            });
        }
        replaced
    }
    syn::parse2(replace(ty.to_token_stream(), chare)).unwrap_or_else(|_| ty.clone())
}

/// The arguments that a guard names, each with the span of its first mention in the guard.
pub fn named_in<'a>(guard: &Expr, arguments: impl Iterator<Item = &'a Ident>) -> Vec<Ident> {
    let mut mentions = Mentions::default();
    mentions.visit_expr(guard);
    arguments.filter_map(|argument| mentions.0.iter().find(|name| *name == argument).cloned()).collect()
}

/// The names that code mentions and that may be variables.
#[derive(Default)]
pub struct Mentions(pub Vec<Ident>);

impl<'a> Visit<'a> for Mentions {
    fn visit_expr_path(&mut self, path: &'a ExprPath) {
        self.0.extend(path.path.get_ident().cloned());
        visit::visit_expr_path(self, path);
    }
    // The expansion of a macro is unknown here: a name in its tokens may be an argument, unless it is the name of a
    // field or part of a path.
    fn visit_macro(&mut self, call: &'a Macro) {
        self.tokens(call.tokens.clone());
    }
}

impl Mentions {
    fn tokens(&mut self, tokens: TokenStream) {
        let mut before = String::new();
        for token in tokens {
            match token {
                TokenTree::Punct(punct) => {
                    before.push(punct.as_char());
                    continue;
                }
                TokenTree::Ident(ident) => {
                    let is_field = before.ends_with('.') && !before.ends_with("..");
                    if !is_field && !before.ends_with("::") {
                        self.0.push(ident);
                    }
                }
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => self.captures(&literal),
            }
            before.clear();
        }
    }

    /// The names in the braces of a format string, as in `println!("{iter}")`.
    fn captures(&mut self, literal: &Literal) {
        let text = literal.to_string();
        for part in text.split('{').skip(1) {
            let end = part.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(part.len());
            if part[end..].starts_with([':', '}'])
                && let Ok(name) = syn::parse_str::<Ident>(&part[..end])
            {
                self.0.push(Ident::new(&name.to_string(), literal.span()));
            }
        }
    }
}

/// The first `self` in an expression.
pub fn self_in(value: &Expr) -> Option<Ident> {
    fn search(tokens: TokenStream) -> Option<Ident> {
        tokens.into_iter().find_map(|token| match token {
            TokenTree::Ident(ident) if ident == "self" => Some(ident),
            TokenTree::Group(group) => search(group.stream()),
            _ => None,
        })
    }
    search(value.to_token_stream())
}

/// The tokens of a type, spaced like hand-written code.
pub fn plain(tokens: &impl ToTokens) -> String {
    let spaces =
        [(" :: ", "::"), (":: ", "::"), (" <", "<"), ("< ", "<"), (" >", ">"), (" ,", ","), (" ;", ";")];
    let spaced = tokens.to_token_stream().to_string();
    spaces.iter().fold(spaced, |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_str;

    fn ty(text: &str) -> Type {
        parse_str(text).unwrap()
    }

    #[test]
    fn a_message_owns_its_arguments() {
        let check = |text: &str, expected: Option<&str>| {
            let error = not_owned(&ty(text)).map(|error| error.to_string());
            match expected {
                None => assert_eq!(error, None, "{text}"),
                Some(part) => assert!(error.as_ref().is_some_and(|e| e.contains(part)), "{text}: {error:?}"),
            }
        };
        check("&[f64]", Some("take `Vec<f64>`"));
        check("&'static str", Some("take `String`"));
        check("&std::collections::HashMap<u32, f64>", Some("take `std::collections::HashMap<u32, f64>`"));
        check("Option<&mut Grid>", Some("take `Grid`"));
        check("Cow<'_, str>", Some("borrows"));
        check("Vec<impl Copy>", Some("cannot be generic"));
        check("Cow<'static, str>", None);
        check("fn(&str) -> &str", None);
        check("(u32, Vec<[f64; 3]>)", None);
    }

    #[test]
    fn only_containers_of_fixed_width_numbers_take_the_bulk_path() {
        let all = [
            "Vec<f64>",
            "std::vec::Vec<u8>",
            "Vec<i128>",
            "Arc<Vec<f64>>",
            "std::sync::Arc<[u8]>",
            "Box<[f32]>",
        ];
        for text in all {
            assert!(is_numbers(&ty(text)), "{text}");
        }
        for text in [
            "Vec<usize>",
            "Vec<bool>",
            "Vec<[f64; 3]>",
            "Vec<Vec<f64>>",
            "f64",
            "[f64; 3]",
            "Map<u32, f64>",
            "Arc<f64>",
            "Arc<Vec<bool>>",
            "Arc<Arc<[f64]>>",
            "Box<Vec<f64>>",
            "Rc<[f64]>",
        ] {
            assert!(!is_numbers(&ty(text)), "{text}");
        }
    }

    #[test]
    fn self_becomes_the_chare() {
        let check = |text: &str, expected: &str| {
            assert_eq!(plain(&without_self(&ty(text), &ty("Block<f64>"))), plain(&ty(expected)), "{text}");
        };
        check("Self", "Block<f64>");
        check("Option<(Self, u32)>", "Option<(Block<f64>, u32)>");
        check("[f64; Self::N]", "[f64; <Block<f64>>::N]");
        check("<Self as Solver>::Edge", "<Block<f64> as Solver>::Edge");
        check("Vec<f64>", "Vec<f64>");
    }

    #[test]
    fn a_guard_names_arguments_but_not_fields_or_paths_of_the_same_name() {
        let check = |guard: &str, expected: &[&str]| {
            let arguments: Vec<Ident> =
                ["iter", "side", "row"].iter().map(|name| parse_str(name).unwrap()).collect();
            let named: Vec<String> =
                named_in(&parse_str(guard).unwrap(), arguments.iter()).iter().map(Ident::to_string).collect();
            assert_eq!(named, expected, "{guard}");
        };
        check("iter == self.iter", &["iter"]);
        check("self.iter > 0", &[]);
        check("self.side.row() && side == Side::Left", &["side"]);
        check("matches!(side, Side::Left)", &["side"]);
        check("matches!(self.n, 0..iter)", &["iter"]);
        check("self.expects(|n| n == iter, (side,))", &["iter", "side"]);
        check("{ let row = 1; row > 0 }", &["row"]);
        check("true", &[]);
    }
}

//! Every case in `runtime/tests/ui/own` gives the errors that its `.stderr` expects, at the expected lines and columns.
//! (`runtime/tests/all/ui.rs` compares the output of rustc, in the slow group.)

use crate::expand::{chare, stray};
use crate::index;
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::path::Path;
use syn::{Attribute, ImplItem, Item, Meta};

/// An error: sentence, line and column, both from 1.
type Located = (String, usize, usize);

/// Collects all `compile_error!`s; errors about the whole macro call are at `call`.
fn collect_errors(tokens: TokenStream, call: Span, all: &mut Vec<Located>) {
    let mut error_at = None;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "compile_error" => error_at = Some(ident.span()),
            TokenTree::Punct(_) => {}
            TokenTree::Group(group) => match error_at.take() {
                Some(span) => {
                    let sentence: syn::LitStr = syn::parse2(group.stream()).expect("a sentence");
                    // A span without a position is the span of the call.
                    let is_placed = span.byte_range() != Span::call_site().byte_range();
                    let start = if is_placed { span.start() } else { call.start() };
                    all.push((sentence.value(), start.line, start.column + 1));
                }
                None => collect_errors(group.stream(), call, all),
            },
            _ => error_at = None,
        }
    }
}

/// Removes and returns the attribute of that name.
fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<Attribute> {
    let at = attributes.iter().position(|attribute| attribute.path().is_ident(name))?;
    Some(attributes.remove(at))
}

/// The errors of `#[derive(Index)]` for an item, if the item has it.
fn errors_of_derive(item: &Item, all: &mut Vec<Located>) {
    let attributes = match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        _ => return,
    };
    let derives = attributes.iter().filter(|attribute| attribute.path().is_ident("derive"));
    let names = derives.map(|attribute| attribute.to_token_stream()).flat_map(flat);
    if names.into_iter().any(|name| name == "Index") {
        collect_errors(index::derive(item.to_token_stream()), Span::call_site(), all);
    }
}

/// The identifiers in tokens, however deep.
fn flat(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident.to_string()),
            TokenTree::Group(group) => found.extend(flat(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

/// The errors of the macros for a file.
fn found_errors(source: &str) -> Vec<Located> {
    let mut all = Vec::new();
    for mut item in syn::parse_file(source).expect("a case is Rust").items {
        errors_of_derive(&item, &mut all);
        let attributes = match &mut item {
            Item::Impl(item) => &mut item.attrs,
            Item::Struct(item) => &mut item.attrs,
            _ => continue,
        };
        if let Some(attribute) = take(attributes, "chare") {
            let options = match &attribute.meta {
                Meta::List(list) => list.tokens.clone(),
                _ => TokenStream::new(),
            };
            let expanded = chare(options, item.into_token_stream(), || Some(source.into()));
            collect_errors(expanded, attribute.pound_token.span, &mut all);
        } else if let Item::Impl(item) = item {
            for part in item.items {
                let ImplItem::Fn(mut method) = part else { continue };
                if let Some(attribute) = take(&mut method.attrs, "entry") {
                    collect_errors(
                        stray("#[entry]", method.into_token_stream()),
                        attribute.pound_token.span,
                        &mut all,
                    );
                }
            }
        }
    }
    all
}

/// The errors in a `.stderr` file.
fn expected_errors(stderr: &str) -> Vec<Located> {
    let mut lines = stderr.lines();
    let mut all = Vec::new();
    while let Some(line) = lines.next() {
        let Some(sentence) = line.strip_prefix("error: ") else { continue };
        let place = lines.find_map(|line| line.trim_start().strip_prefix("--> ")).expect("a place");
        let mut numbers = place.rsplit(':').map(|number| number.parse().expect("a number"));
        let (column, line) = (numbers.next().expect("a column"), numbers.next().expect("a line"));
        all.push((sentence.to_owned(), line, column));
    }
    all
}

#[test]
fn errors_are_at_the_token_at_fault() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/ui/own");
    let mut count = 0;
    for case in std::fs::read_dir(cases).expect("cases") {
        let path = case.expect("a case").path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let read = |path: &Path| std::fs::read_to_string(path).expect("a case and its errors");
        let mut found = found_errors(&read(&path));
        let mut expected = expected_errors(&read(&path.with_extension("stderr")));
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{}", path.display());
        count += 1;
    }
    assert!(count >= 57, "only {count} cases");
}

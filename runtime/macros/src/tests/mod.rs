//! The generated code and the errors of a block, without a compiler.

mod flows;
mod mistakes;

use crate::expand::{chare, stray};
use proc_macro2::{TokenStream, TokenTree};
use syn::{File, Item};

/// The expansion of `#[chare(options)]` for an item, both given as text.
fn expand(options: &str, item: &str) -> TokenStream {
    chare(options.parse().unwrap(), item.parse().unwrap(), || None)
}

/// A block with these entries, expanded.
fn block(entries: &str) -> TokenStream {
    expand("index = [i32; 2]", &format!("impl Block {{ {entries} }}"))
}

/// The sentences of all `compile_error!`s, however deep.
fn sentences(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    let mut after_error = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => after_error = ident == "compile_error",
            TokenTree::Group(group) if after_error => {
                let sentence: syn::LitStr = syn::parse2(group.stream()).unwrap();
                found.push(sentence.value());
                after_error = false;
            }
            TokenTree::Group(group) => found.extend(sentences(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

/// Checks that there is one error per part, and that each part occurs in an error.
#[track_caller]
fn check(tokens: TokenStream, parts: &[&str]) {
    let found = sentences(tokens);
    assert_eq!(found.len(), parts.len(), "{found:#?}");
    for part in parts {
        assert!(found.iter().any(|sentence| sentence.contains(part)), "`{part}` is not in {found:#?}");
    }
}

/// The generated items, as text without spaces.
fn items(tokens: TokenStream) -> Vec<String> {
    let file: File = syn::parse2(tokens).expect("the output is Rust");
    let text = |item: &Item| quote::quote!(#item).to_string().replace(' ', "");
    file.items.iter().map(text).collect()
}

#[test]
fn every_mistake_of_an_entry_is_reported_once() {
    check(block("#[entry] async fn f(&mut self, cx: &Cx<Self>) {}"), &["`async`"]);
    check(block("#[entry] unsafe fn f(&mut self, cx: &Cx<Self>) {}"), &["`unsafe`"]);
    check(block("#[entry] fn f(&mut self, cx: &Cx<Self>) -> u32 { 1 }"), &["returns nothing"]);
    check(block("#[entry] fn f(&self, cx: &Cx<Self>) {}"), &["takes `&mut self`"]);
    check(block("#[entry] fn f(self: Box<Self>, cx: &Cx<Self>) {}"), &["takes `&mut self`"]);
    check(block("#[entry] fn f(cx: &Cx<Self>) {}"), &["take `&mut self` first"]);
    check(block("#[entry] fn f(&mut self) {}"), &["`cx: &Cx<Self>`"]);
    check(block("#[entry] fn f(&mut self, n: u32) {}"), &["right after `&mut self`"]);
    check(block("#[entry] fn f(&mut self, n: u32, cx: &Cx<Self>) {}"), &["right after `&mut self`"]);
    check(block("#[entry] fn f(&mut self, cx: Cx<Self>) {}"), &["of type `&Cx<Self>`"]);
    check(block("#[entry] fn f(&mut self, cx: &Cx<Other>, n: u32) {}"), &["of type `&Cx<Self>`"]);
    check(block("#[entry] fn f(&mut self, cx: &Cx<Self>, row: &[f64]) {}"), &["take `Vec<f64>`"]);
    check(
        block("#[entry] fn f(&mut self, cx: &Cx<Self>, [a, b]: [u32; 2]) {}"),
        &["give this argument a name"],
    );
    check(block("#[entry] fn f(&mut self, cx: &Cx<Self>, _: u32) {}"), &["give this argument a name"]);
    check(block("#[entry] fn f<const N: usize>(&mut self, cx: &Cx<Self>) {}"), &["cannot be generic"]);
    check(block("#[entry] fn at_quiescence(&mut self, cx: &Cx<Self>) {}"), &["every proxy has a method"]);
    check(block("#[entry] fn callback(&mut self, cx: &Cx<Self>) {}"), &["every proxy has a method"]);
    check(block("#[entry] fn after(&mut self, cx: &Cx<Self>) {}"), &["every proxy has a method"]);
    check(block("#[entry(priority = self.n)] fn f(&mut self, cx: &Cx<Self>) {}"), &["cannot use `self`"]);
    check(
        block("#[entry(priority = f(|| n + self.n))] fn f(&mut self, cx: &Cx<Self>) {}"),
        &["cannot use `self`"],
    );
    check(block("#[entry(priority)] fn f(&mut self, cx: &Cx<Self>) {}"), &["`priority` needs a value"]);
    check(block("#[entry(priority = -n)] fn f(&mut self, cx: &Cx<Self>, n: i32) {}"), &[]);
    check(block("#[entry(reduce = f64::max)] fn f(&mut self, cx: &Cx<Self>) {}"), &["not 0"]);
    check(block("#[entry(reduce = f64::max)] fn f(&mut self, cx: &Cx<Self>, a: f64, b: f64) {}"), &["not 2"]);
    check(block("#[entry(when)] fn f(&mut self, cx: &Cx<Self>) {}"), &["`when` needs a value"]);
    check(block("#[entry(when = )] fn f(&mut self, cx: &Cx<Self>) {}"), &["`when` needs a value"]);
    check(block("#[entry(after = 3)] fn f(&mut self, cx: &Cx<Self>) {}"), &["unknown key `after`"]);
    check(block("#[entry(3)] fn f(&mut self, cx: &Cx<Self>) {}"), &["expected a key"]);
    check(block("#[entry(when = true when = true)] fn f(&mut self, cx: &Cx<Self>) {}"), &["expected `,`"]);
    check(block("#[entry(when = true, when = true)] fn f(&mut self, cx: &Cx<Self>) {}"), &["given twice"]);
    check(block("#[entry = 3] fn f(&mut self, cx: &Cx<Self>) {}"), &["in parentheses"]);
    check(block("#[entry] #[entry] fn f(&mut self, cx: &Cx<Self>) {}"), &["written twice"]);
    check(block("#[cfg(test)] #[entry] fn f(&mut self, cx: &Cx<Self>) {}"), &["cannot have `#[cfg(..)]`"]);
    check(block("#[entry] const N: u32 = 3;"), &["marks methods"]);
    check(block("fn f(&mut self, cx: &Cx<Self>) {}"), &["has no entry"]);
}

#[test]
fn every_mistake_of_the_block_is_reported_once() {
    let entry = "#[entry] fn f(&mut self, cx: &Cx<Self>) {}";
    let on = |head: &str| expand("index = ()", &format!("{head} {{ {entry} }}"));
    check(on("impl<'a, T> Block<'a, T>"), &["owns its state"]);
    check(on("impl<'a> Block<'a>"), &["owns its state"]);
    check(on("impl Block<'_>"), &["owns its state"]);
    check(on("impl Step for Block"), &["not on an `impl` of the trait `Step`"]);
    check(on("impl [Block; 3]"), &["struct or an enum"]);
    check(on("impl Block<f64>"), &[]);
    check(on("impl<T: Value, const N: usize> Block<T, N> where Vec<T>: Send"), &[]);
    check(on("impl grid::Block"), &[]);
    check(expand("index = ()", "#[derive(Clone)] struct Block;"), &["goes on the `impl` block"]);
    check(stray("#[entry]", "fn f(&mut self) {}".parse().unwrap()), &["`#[chare(index = ..)]`"]);
    let keyed = |options: &str| expand(options, &format!("impl Block {{ {entry} }}"));
    check(keyed(""), &["`index` is missing"]);
    check(keyed("sync"), &["`index` is missing"]);
    check(keyed("index"), &["`index` needs a value"]);
    check(keyed("index = 2"), &["expected the type"]);
    check(keyed("index = [i32, 2], sync"), &["expected the type"]);
    check(keyed("index = (), index = ()"), &["given twice"]);
    check(keyed("index = (), balanced"), &["unknown key `balanced`"]);
    check(
        keyed("index = (), sync = true, pinned(false)"),
        &["`sync` takes no value", "`pinned` takes no value"],
    );
    check(keyed("index = (), sync, pinned, expedited,"), &[]);
}

#[test]
fn several_mistakes_are_all_reported() {
    let both = "
        #[entry] async fn f(&mut self, cx: &Cx<Self>) -> u32 { 1 }
        #[entry] fn g(&self, cx: &Cx<Self>, row: &str, (a, b): (u32, u32)) {}
    ";
    check(block(both), &["`async`", "returns nothing", "takes `&mut self`", "take `String`", "a name"]);
}

#[test]
fn valid_entries_are_generated_despite_an_invalid_one() {
    let entries = "
        #[entry] fn bad(&mut self, cx: &Cx<Self>, iter: u32, row: &[f64]) {}
        #[entry] pub fn good(&mut self, cx: &Cx<Self>, n: u32) {}
    ";
    let written = items(block(entries));
    let find =
        |part: &str| written.iter().find(|item| item.contains(part)).unwrap_or_else(|| panic!("no {part}"));
    assert!(find("enumBlockMsg").contains("{good(#[serde("));
    assert!(find("ChareforBlock").contains("&[\"good\"]"));
    for proxy in ["impl<'a>BlockProxy<'a>", "impl<'a>BlockProxies<'a>"] {
        assert!(find(proxy).contains("pubfngood(self,n:u32)"), "{proxy}");
        assert!(find(proxy).contains("fnbad<A0,A1>(self,_:A0,_:A1){}"), "{proxy}");
    }
}

#[test]
fn the_number_of_an_entry_is_its_position() {
    let entries = "
        #[entry] fn b(&mut self, cx: &Cx<Self>) {}
        fn helper(&self) {}
        #[entry] fn r#type(&mut self, cx: &Cx<Self>, n: u32) {}
        #[entry] fn a(&mut self, cx: &Cx<Self>) {}
    ";
    let written = items(block(entries)).concat();
    assert!(written.contains("enumBlockMsg{b(),r#type(#["), "{written}");
    assert!(written.contains(r#"&["b","type","a"]"#), "{written}");
    assert!(
        written.contains("BlockMsg::b(..)=>0usize,BlockMsg::r#type(..)=>1usize,BlockMsg::a(..)=>2usize,")
    );
}

#[test]
fn without_a_guard_every_message_is_ready() {
    let none = items(block("#[entry] fn f(&mut self, cx: &Cx<Self>, n: u32) {}")).concat();
    assert!(none.contains("constGUARDED:bool=false;"));
    assert!(none.contains("fnready(&self,flow:&(),msg:&BlockMsg)->bool{true}"), "{none}");
    let some = items(block("#[entry(when = n > 3)] fn f(&mut self, cx: &Cx<Self>, n: u32) {}")).concat();
    assert!(some.contains("constGUARDED:bool=true;"));
}

#[test]
fn arrays_of_numbers_are_encoded_in_bulk_without_a_serde_attribute() {
    let entries = "
        #[entry] fn f(&mut self, cx: &Cx<Self>, a: Vec<f64>, #[serde(with = \"mine\")] b: Vec<f64>, c: Vec<bool>, d: Arc<[u8]>)
        {}
    ";
    let written = items(block(entries)).concat();
    let bound = r#"#[serde(bound="for<'encoded>Vec<bool>:::equipoise::__private::Argument<'encoded>")]"#;
    let numbers = r#"#[serde(with="::equipoise::numbers")]"#;
    let fields =
        format!(r#"f({numbers}Vec<f64>,#[serde(with="mine")]Vec<f64>,{bound}Vec<bool>,{numbers}Arc<[u8]>)"#);
    assert!(written.contains(&fields), "{written}");
    assert!(
        written.contains("fnf(&mutself,cx:&Cx<Self>,a:Vec<f64>,b:Vec<f64>,c:Vec<bool>,d:Arc<[u8]>){}"),
        "{written}"
    );
}

#[test]
fn documentation_and_visibility_are_those_of_the_entry() {
    let written =
        items(block("/// Takes a step.\n #[entry] pub(super) fn step(&mut self, cx: &Cx<Self>) {}")).concat();
    let methods = written
        .matches(r#"#[doc="Takesastep."]#[inline(always)]#[track_caller]pub(super)fnstep(self,)"#)
        .count();
    assert_eq!(methods, 2, "{written}");
}

#[test]
fn only_entries_with_reduce_take_contributions() {
    let entries = "
        #[entry] fn step(&mut self, cx: &Cx<Self>, n: u32) {}
        #[entry(reduce = |a, b| a + b)] fn total(&mut self, cx: &Cx<Self>, n: u32) {}
    ";
    let written = items(block(entries));
    let reduction = written.iter().find(|item| item.contains("impl<'a>BlockReduction<'a>")).unwrap();
    assert!(
        reduction.contains("fntotal(self,n:u32)wherefor<'clone>u32:::equipoise::__private::CloneArg"),
        "{reduction}"
    );
    assert!(!reduction.contains("fnstep"), "{reduction}");
    let refused = written.iter().find(|item| item.contains("traitHasReduce")).unwrap();
    assert!(refused.contains("theentry`step`of`Block`hasno`reduce`"), "{refused}");
    assert!(refused.contains("fnstep(self,_:u32)wherefor<'none>():HasReduce{}"), "{refused}");
    assert!(!refused.contains("total"), "{refused}");
}

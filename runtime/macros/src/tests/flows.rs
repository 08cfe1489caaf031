//! The generated code and the errors of flows, without a compiler.

use super::{block, check, items};
use proc_macro2::TokenStream;

/// A block with a flow of this body and entries that it receives, expanded.
fn flow(body: &str) -> TokenStream {
    block(&format!(
        "#[flow] fn life(&mut self, cx: &Cx<Self>, count: u32) {{ {body} }}
        #[entry] fn halo(i: u32, edge: Vec<f64>);
        #[entry] fn step(&mut self, cx: &Cx<Self>) {{}}"
    ))
}

/// A flow that also waits for `halo`.
fn with_halo(body: &str) -> TokenStream {
    flow(&format!("when!(halo(_, _) => {{}}); {body}"))
}

#[test]
fn control_flow_with_waits_is_valid() {
    for body in [
        "",
        "for i in 0u32..self.n { when!(halo(j, edge) if j == i => self.set(edge)); }",
        "for i in 0..count as u64 { at_sync!(cx); }",
        "for _ in -2..=2i8 { at_sync!(cx); }",
        "let x: f64 = reduce!(cx, f64::max, self.x); self.set(x);",
        "let value = self.x(); self.set(value); let x: f64 = reduce!(cx, f64::max, self.x); self.set(x);",
        "let answer = self.x(); self.set(answer); let x: f64 = ask!(cx, |answer| self.ask(answer)); self.set(x);",
        "let x: Vec<f64> = when!(halo(_, edge) => edge); self.set(x);",
        "'a: loop { while self.is_late() { if self.n == 3 { break 'a } at_sync!(cx); continue; } }",
        "at_sync!(cx); if self.n == 3 { return }",
        "match self.n { 0 => at_sync!(cx), 1 | 2 => { at_sync!(cx) } _ => return }",
        "if let Some(x) = self.x { let x: u32 = x; at_sync!(cx); self.set(x) } else if self.n > 3 { at_sync!(cx) }",
        "select! { halo(i, _) if i > count => { at_sync!(cx) } halo(_, edge) => self.set(edge), }",
        "overlap! { halo(i, _) if i > count => {}, halo(_, edge) => self.set(edge) }",
        "let x = 3; self.set(x); at_sync!(cx); let x = self.get(); self.set(x);",
        "let f = |x: u32| { return x; }; self.set(f(3)); at_sync!(cx);",
        "for x in &self.list { if *x > 3 { break } if *x > 2 { return } } at_sync!(cx);",
    ] {
        let tokens = with_halo(body);
        check(tokens.clone(), &[]);
        items(tokens);
    }
}

#[test]
fn a_point_keeps_what_is_used_later() {
    let written = items(with_halo(
        "let a: u8 = 1; let b: u16 = 2; let c: Vec<f64> = self.c(); self.set(a);
        at_sync!(cx); println!(\"{b:?}\"); self.set(c); at_sync!(cx); self.set(3);",
    ));
    let state = written.iter().find(|item| item.contains("enumBlockFlow")).unwrap();
    let bound = "#[serde(bound=\"for<'encoded>u16:::equipoise::__private::FlowVariable<'encoded>\")]";
    let kept = format!("({bound}u16,#[serde(with=\"::equipoise::numbers\")]Vec<f64>)");
    assert_eq!(state.matches(&kept).count(), 1, "{state}");
    // The three waits, of which one keeps variables.
    assert!(state.contains("{Idle,#[serde(rename=\"wait1for"), "{state}");
    assert_eq!(state.matches(")]Wait").count(), 3, "{state}");
    assert!(!state.contains("At"), "{state}");
}

#[test]
fn only_loops_around_which_a_flow_can_go_without_a_wait_have_steps() {
    let has_steps = |body| items(with_halo(body)).iter().any(|item| item.contains("enumBlockFlowStep{"));
    for body in [
        "for i in 0u32..self.n { self.send(i); when!(halo(j, _) if j == i => self.set(j)); }",
        "if self.is_late() { at_sync!(cx); } self.set(3); at_sync!(cx);",
        "loop { self.set(3); while self.is_late() { at_sync!(cx); } at_sync!(cx); }",
    ] {
        assert!(!has_steps(body), "{body}");
    }
    for body in [
        "loop { if self.is_late() { at_sync!(cx); } self.set(3); }",
        "loop { for _ in 0u32..self.n { at_sync!(cx); } }",
        "while self.n > 3 { if self.is_late() { continue } at_sync!(cx); }",
    ] {
        assert!(has_steps(body), "{body}");
    }
}

#[test]
fn every_mistake_of_a_flow_is_reported_once() {
    let needs_type = "used after a wait, so the flow keeps it: write its type";
    check(with_halo("let x = 3; at_sync!(cx); self.set(x);"), &[needs_type]);
    check(with_halo("let x = 3; at_sync!(cx); println!(\"{x}\");"), &[needs_type]);
    check(with_halo("let mut x = 3; loop { at_sync!(cx); x += 1; }"), &[needs_type]);
    check(with_halo("let (x, y) = (1, 2); at_sync!(cx); self.set(x);"), &["a pattern says no type"]);
    check(with_halo("if let Some(x) = self.x { at_sync!(cx); self.set(x); }"), &["a pattern says no type"]);
    check(with_halo("let x: &u32 = &self.x; at_sync!(cx); self.set(x);"), &["borrows"]);
    check(with_halo("let x: Vec<_> = self.x(); at_sync!(cx); self.set(x);"), &["its whole type"]);
    check(with_halo("for x in 0..self.n { at_sync!(cx); }"), &["give a bound a suffix"]);
    check(with_halo("for x in self.list() { at_sync!(cx); }"), &["counts integers"]);
    check(with_halo("for (x, y) in 0u32..3 { at_sync!(cx); }"), &["give its variable a name"]);
    check(with_halo("self.set(at_sync!(cx));"), &["in statements only"]);
    check(with_halo("let f = || at_sync!(cx);"), &["in statements only"]);
    check(with_halo("ask!(cx);"), &["takes the context and a closure"]);
    check(
        with_halo("let x = ask!(cx, |answer| self.ask(answer)); self.set(x);"),
        &["needs a name and a type"],
    );
    check(with_halo("self.set(ask!(cx, |answer| self.ask(answer)));"), &["in statements only"]);
    check(with_halo("if reduce!(cx, f64::max, 1.0) > 2.0 {}"), &["in statements only"]);
    check(with_halo("while reduce!(cx, f64::max, 1.0) > 2.0 {}"), &["in statements only"]);
    check(with_halo("let x: f64 = reduce!(cx, f64::max, 1.0) + 1.0;"), &["in statements only"]);
    check(with_halo("'a: { at_sync!(cx); }"), &["in statements only"]);
    check(with_halo("#[cfg(unix)] { at_sync!(cx); }"), &["cannot have attributes"]);
    check(with_halo("let x: u32 = loop { at_sync!(cx); break 3; };"), &["in statements only"]);
    check(with_halo("loop { at_sync!(cx); break 3; }"), &["has no value"]);
    check(with_halo("at_sync!(cx); return 3;"), &["a flow returns nothing"]);
    check(with_halo("reduce!(cx, f64::max, 1.0);"), &["needs a type"]);
    check(with_halo("let x = reduce!(cx, f64::max, 1.0);"), &["needs a name and a type"]);
    check(with_halo("let x: f64 = reduce!(cx, f64::max);"), &["as in `reduce!(cx, f64::max, self.relax())`"]);
    check(with_halo("let x: f64 = at_sync!(cx);"), &["without `let`"]);
    check(with_halo("at_sync!();"), &["as in `at_sync!(cx)`"]);
}

#[test]
fn every_mistake_about_messages_of_a_flow_is_reported_once() {
    check(flow(""), &["the flow never waits for `halo`"]);
    check(with_halo("when!(late(x) => {});"), &["there is no entry `late`"]);
    check(with_halo("when!(step() => {});"), &["`step` has one"]);
    check(with_halo("when!(life(x) => {});"), &["`life` has one"]);
    check(with_halo("when!(halo(x) => {});"), &["has 2 fields, and this names 1"]);
    check(with_halo("when!(halo(Some(x), _) => {});"), &["a field of the message has a name"]);
    check(with_halo("when!(halo => {});"), &["expected the fields"]);
    check(with_halo("when!(halo(x, _));"), &["expected `=>`"]);
    check(with_halo("when!();"), &["`when!` waits for a message"]);
    check(with_halo("when!(halo(_, _) => {}, halo(_, _) => {});"), &["use `select!`"]);
    check(with_halo("overlap! { halo(_, _) => at_sync!(cx) }"), &["cannot wait"]);
    let hides = "hides a `i` that the flow still needs";
    check(with_halo("for i in 0u32..3 { when!(halo(i, _) => self.set(i)); self.set(i); }"), &[hides]);
    check(with_halo("let i: u32 = 3; { let i: u8 = 2; at_sync!(cx); self.set(i); } self.set(i);"), &[hides]);
    check(
        with_halo("let i: u32 = 3; loop { if let Some(i) = self.x { break } at_sync!(cx); } self.set(i);"),
        &[hides],
    );
}

#[test]
fn every_mistake_of_the_block_of_a_flow_is_reported_once() {
    check(block("#[entry] fn halo(i: u32);"), &["the block has no flow"]);
    check(
        block("#[flow] fn a(&mut self, cx: &Cx<Self>) {} #[flow] fn b(&mut self, cx: &Cx<Self>) {}"),
        &["has one flow"],
    );
    check(block("#[flow(fast)] fn a(&mut self, cx: &Cx<Self>) {}"), &["has no keys"]);
    check(block("#[flow] fn a(&mut self, cx: &Cx<Self>);"), &["write its body"]);
    check(block("#[flow] #[entry] fn a(&mut self, cx: &Cx<Self>) {}"), &["a method is a flow or an entry"]);
    check(block("#[flow] async fn a(&mut self, cx: &Cx<Self>) {}"), &["`async`"]);
    check(block("#[flow] fn a(&mut self, cx: &Cx<Self>, row: &[f64]) {}"), &["take `Vec<f64>`"]);
    let with_flow = |entry: &str| {
        block(&format!("#[flow] fn a(&mut self, cx: &Cx<Self>) {{ when!(halo(_) => {{}}); }} {entry}"))
    };
    check(with_flow("#[entry(when = i > 3)] fn halo(i: u32);"), &["stands where the flow waits"]);
    check(with_flow("#[entry] fn halo(&mut self, cx: &Cx<Self>, i: u32);"), &["only the fields"]);
    check(with_flow("#[entry(reduce = u32::max)] fn halo(i: u32);"), &[]);
}

//! `break`, `continue` and `return` that leave a statement of a flow.
//!
//! `find` visits the code and says for each jump where it continues; `replace` replaces the tokens of the n-th jump. (A visitor that changes
//! the code would do both, but its feature of `syn` would make all crates with derives compile longer.)

use super::graph::{IDLE, Loop, Point};
use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    Error, Expr, ExprAsync, ExprBlock, ExprBreak, ExprClosure, ExprContinue, ExprForLoop, ExprLoop,
    ExprReturn, ExprWhile, Item, Label, Lifetime, Macro,
};

/// Finds the jumps in code without a wait.
pub struct Jumps<'a> {
    loops: &'a [Loop],
    /// Where each jump continues, in the order of the tokens; none for a jump inside of the code.
    found: Vec<Option<Point>>,
    /// The labels of the loops and blocks inside of the code.
    labels: Vec<Option<Ident>>,
    /// The number of the loops inside of the code.
    depth: usize,
    /// The number of functions inside of the code, which no jump leaves.
    functions: usize,
    error: Option<Error>,
}

/// Where each jump of the code continues, a statement or an expression; none for a jump inside of the code.
///
/// # Errors
/// For a jump with a value.
pub fn find(
    loops: &[Loop],
    code: &impl ToTokens,
    visit: impl FnOnce(&mut Jumps<'_>),
) -> syn::Result<Vec<Option<Point>>> {
    let (found, labels) = (Vec::new(), Vec::new());
    let mut jumps = Jumps { loops, found, labels, depth: 0, functions: 0, error: None };
    visit(&mut jumps);
    let Jumps { found, error, .. } = jumps;
    if found.len() != count(code.to_token_stream()) && found.iter().any(Option::is_some) {
        let sentence = "this `break`, `continue` or `return` stands in code that the macro cannot read: move it into a statement \
            of its own";
        return Err(Error::new_spanned(code, sentence));
    }
    error.map_or(Ok(found), Err)
}

/// Replaces the tokens of the jumps that `find` found by what `goto` returns.
pub fn replace(
    code: TokenStream,
    found: &mut impl Iterator<Item = Option<Point>>,
    goto: &mut impl FnMut(Point) -> TokenStream,
) -> TokenStream {
    let mut replaced = TokenStream::new();
    let mut tokens = code.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), replace(group.stream(), found, goto));
                inner.set_span(group.span());
                replaced.extend([TokenTree::Group(inner)]);
            }
            token if is_jump(&token) => {
                let Some(to) = found.next().flatten() else {
                    replaced.extend([token]);
                    continue;
                };
                // The label.
                if matches!(tokens.peek(), Some(TokenTree::Punct(quote)) if quote.as_char() == '\'') {
                    tokens.nth(1);
                }
                replaced.extend(goto(to));
            }
            token => replaced.extend([token]),
        }
    }
    replaced
}

fn is_jump(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(word) if ["break", "continue", "return"].iter().any(|jump| word == jump))
}

/// The number of jumps among tokens.
fn count(tokens: TokenStream) -> usize {
    let of = |token: TokenTree| match token {
        TokenTree::Group(group) => count(group.stream()),
        token => usize::from(is_jump(&token)),
    };
    tokens.into_iter().map(of).sum()
}

impl Jumps<'_> {
    /// Notes a jump to a loop of the flow, if it leaves or repeats one.
    fn continues_at_loop(&mut self, label: Option<&Lifetime>, point: impl Fn(&Loop) -> Point) -> bool {
        let of = match label {
            _ if self.functions > 0 => None,
            None if self.depth > 0 => None,
            None => self.loops.last(),
            Some(label) if self.labels.iter().flatten().any(|inner| *inner == label.ident) => None,
            Some(label) => self.loops.iter().rev().find(|of| of.label.as_ref() == Some(&label.ident)),
        };
        self.found.push(of.map(point));
        of.is_some()
    }

    fn refuse(&mut self, at: &impl ToTokens, sentence: &str) {
        self.error.get_or_insert_with(|| Error::new_spanned(at, sentence));
    }

    fn inside(&mut self, label: Option<&Label>, loops: usize, visit: impl FnOnce(&mut Self)) {
        self.labels.push(label.map(|label| label.name.ident.clone()));
        self.depth += loops;
        visit(self);
        self.depth -= loops;
        self.labels.pop();
    }

    fn function(&mut self, visit: impl FnOnce(&mut Self)) {
        self.functions += 1;
        visit(self);
        self.functions -= 1;
    }
}

impl<'a> Visit<'a> for Jumps<'_> {
    fn visit_expr_break(&mut self, jump: &'a ExprBreak) {
        let leaves = self.continues_at_loop(jump.label.as_ref(), |of| of.after);
        if let (Some(value), true) = (&jump.expr, leaves) {
            let sentence = "a loop that contains a wait has no value: assign to a variable before `break`";
            self.refuse(value, sentence);
        }
        visit::visit_expr_break(self, jump);
    }

    fn visit_expr_continue(&mut self, jump: &'a ExprContinue) {
        self.continues_at_loop(jump.label.as_ref(), |of| of.head);
    }

    fn visit_expr_return(&mut self, jump: &'a ExprReturn) {
        self.found.push((self.functions == 0).then_some(IDLE));
        if let (Some(value), 0) = (&jump.expr, self.functions) {
            let sentence = "a flow returns nothing: write `return` without a value, after the statement";
            self.refuse(value, sentence);
        }
        visit::visit_expr_return(self, jump);
    }

    fn visit_expr_loop(&mut self, code: &'a ExprLoop) {
        self.inside(code.label.as_ref(), 1, |this| visit::visit_expr_loop(this, code));
    }

    fn visit_expr_while(&mut self, code: &'a ExprWhile) {
        self.inside(code.label.as_ref(), 1, |this| visit::visit_expr_while(this, code));
    }

    fn visit_expr_for_loop(&mut self, code: &'a ExprForLoop) {
        // The iterator is outside of the loop.
        self.visit_expr(&code.expr);
        self.inside(code.label.as_ref(), 1, |this| this.visit_block(&code.body));
    }

    fn visit_expr_block(&mut self, code: &'a ExprBlock) {
        self.inside(code.label.as_ref(), 0, |this| visit::visit_expr_block(this, code));
    }

    fn visit_expr_closure(&mut self, code: &'a ExprClosure) {
        self.function(|this| visit::visit_expr_closure(this, code));
    }

    fn visit_expr_async(&mut self, code: &'a ExprAsync) {
        self.function(|this| visit::visit_expr_async(this, code));
    }

    fn visit_item(&mut self, item: &'a Item) {
        self.function(|this| visit::visit_item(this, item));
    }

    // Jumps in the tokens of a macro stay as they are.
    fn visit_macro(&mut self, call: &'a Macro) {
        self.found.extend(vec![None; count(call.tokens.clone())]);
    }

    fn visit_expr(&mut self, code: &'a Expr) {
        match code {
            Expr::Verbatim(tokens) => self.found.extend(vec![None; count(tokens.clone())]),
            other => visit::visit_expr(self, other),
        }
    }
}

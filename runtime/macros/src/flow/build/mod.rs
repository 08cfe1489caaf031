//! Makes the points of a flow: cuts its body at waits, and at control flow that contains waits.

mod at_waits;
mod syntax;

use super::graph::{
    Arm, Case, Fragment, Graph, IDLE, Kind, Loop, Loops, Node, Point, Scope, Step, Var, Variable,
};
use super::jumps::{self, Jumps};
use super::waits;
use crate::block::{Argument, Block};
use crate::errors::Errors;
use crate::types::{Mentions, without_self};
use proc_macro2::{Ident, Span};
use quote::{ToTokens, format_ident, quote};
use std::collections::BTreeSet;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprForLoop, ExprIf, ExprMatch, ExprRange, FnArg, ImplItemFn, Label, Pat, PatIdent,
    PatType, RangeLimits, Stmt, Token, Type, parse_quote, parse_quote_spanned,
};
use syntax::{Bound, is_constant, is_statement, number_type};

/// The points of the flow. Its entries for reductions and `at_sync!` are added to the block.
pub fn graph(method: &ImplItemFn, block: &mut Block, errors: &mut Errors) -> Graph {
    let nodes = vec![Node { kind: Kind::Idle, code: Vec::new() }];
    let graph = Graph { nodes, start: IDLE, variables: Vec::new(), items: Vec::new(), arguments: Vec::new() };
    let mut build = Build { graph, method, block, errors, generated: 0, syncs: None };
    let arguments = build.block.entries.iter().find(|entry| entry.name == method.sig.ident);
    let arguments: Vec<Argument> = arguments.map(|entry| entry.arguments.clone()).unwrap_or_default();
    // A pattern of the signature knows whether the argument is `mut`; the fields of the message do not.
    let patterns = method.sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(&*typed.pat),
        FnArg::Receiver(_) => None,
    });
    let mutable: Vec<bool> =
        patterns.skip(1).map(|pat| matches!(pat, Pat::Ident(pat) if pat.mutability.is_some())).collect();
    let scope: Vec<Var> = arguments
        .into_iter()
        .zip(mutable.into_iter().chain(std::iter::repeat(false)))
        .map(|(argument, is_mutable)| build.argument(argument.name.clone(), is_mutable, argument))
        .collect();
    build.graph.arguments = scope.clone();
    let code = build.statements(&method.block.stmts, &Rc::new(scope), &Loops::default(), IDLE);
    build.graph.start = build.point(code);
    build.graph
}

struct Build<'a> {
    graph: Graph,
    method: &'a ImplItemFn,
    block: &'a mut Block,
    errors: &'a mut Errors,
    /// The number of reductions.
    generated: usize,
    /// The entry of `at_sync!`.
    syncs: Option<Ident>,
}

/// Writes the body of a loop, given the loops around it and its head.
type LoopBody<'a, B> = dyn Fn(&mut B, &Loops, Point) -> Vec<Step> + 'a;

impl Build<'_> {
    /// A new point with this code.
    fn point(&mut self, code: Vec<Step>) -> Point {
        self.graph.nodes.push(Node { kind: Kind::Inside, code });
        self.graph.nodes.len() - 1
    }

    fn wait(&mut self, cases: Vec<Case>) -> Point {
        self.graph.nodes.push(Node { kind: Kind::Wait(cases), code: Vec::new() });
        self.graph.nodes.len() - 1
    }

    fn variable(&mut self, variable: Variable) -> Var {
        self.graph.variables.push(variable);
        self.graph.variables.len() - 1
    }

    /// The variable of a field of a message.
    fn argument(&mut self, name: Ident, is_mutable: bool, field: Argument) -> Var {
        let Argument { ty, serde, .. } = field;
        self.variable(Variable { name, is_mutable, ty: Some(ty), serde, is_let: false })
    }

    /// A variable that no code of the user can see.
    fn hidden(&mut self, name: &str, ty: Type) -> Var {
        let name = format_ident!("__{name}{}", self.graph.variables.len(), span = Span::mixed_site());
        self.variable(Variable { name, is_mutable: true, ty: Some(ty), serde: Vec::new(), is_let: true })
    }

    /// The code of statements that continues at `next`.
    fn statements(&mut self, statements: &[Stmt], scope: &Scope, loops: &Loops, next: Point) -> Vec<Step> {
        let (mut steps, mut scope) = (Vec::new(), scope.clone());
        for (i, statement) in statements.iter().enumerate() {
            let rest = &statements[i + 1..];
            if let Stmt::Item(item) = statement {
                self.graph.items.push(item.clone());
                continue;
            }
            let Some(wait) = waits::in_statement(statement) else {
                let (step, after) = self.plain(statement, rest.is_empty(), &scope, loops);
                steps.push(step);
                scope = after;
                continue;
            };
            if let Stmt::Local(local) = statement {
                steps.extend(self.bound_wait(local, &wait, rest, &scope, loops, next));
                return steps;
            }
            let after = if rest.is_empty() {
                next
            } else {
                let code = self.statements(rest, &scope, loops, next);
                self.point(code)
            };
            let waiting = match statement {
                Stmt::Macro(statement) => {
                    self.lone_wait(&statement.mac, &statement.attrs, &scope, loops, after)
                }
                Stmt::Expr(Expr::Macro(call), _) => {
                    self.lone_wait(&call.mac, &call.attrs, &scope, loops, after)
                }
                Stmt::Expr(expression, _) => self.control(expression, &wait, &scope, loops, after),
                Stmt::Local(_) | Stmt::Item(_) => Vec::new(),
            };
            steps.extend(waiting);
            return steps;
        }
        steps.push(Step::Goto(next, scope));
        steps
    }

    /// A statement without a wait, and the scope after it.
    fn plain(&mut self, statement: &Stmt, is_last: bool, scope: &Scope, loops: &Loops) -> (Step, Scope) {
        let statement = match statement {
            // Code follows the value of a block, so the value becomes a statement; it is `()`.
            Stmt::Expr(value, None) if is_last && !is_statement(value) => {
                parse_quote_spanned!(value.span()=> let () = #value;)
            }
            other => other.clone(),
        };
        let mut mentions = Mentions::default();
        mentions.visit_stmt(&statement);
        let (mut declares, mut after) = (Vec::new(), scope.clone());
        if let Stmt::Local(local) = &statement {
            declares = self.declare(&local.pat);
            Rc::make_mut(&mut after).extend(&declares);
        }
        let mut bound = Bound::default();
        bound.visit_stmt(&statement);
        let fragment =
            self.fragment(statement, mentions, bound.0, scope, loops, |code, jumps| jumps.visit_stmt(code));
        (Step::Rust(fragment, declares), after)
    }

    /// An expression without a wait in front of a block: a condition or a value.
    fn head(&mut self, code: &Expr, scope: &Scope, loops: &Loops) -> Fragment<Expr> {
        if let Some(wait) = waits::in_expression(code) {
            self.misplaced(&wait);
        }
        let mut mentions = Mentions::default();
        mentions.visit_expr(code);
        let mut bound = Bound::default();
        bound.visit_expr(code);
        self.fragment(code.clone(), mentions, bound.0, scope, loops, |code, jumps| jumps.visit_expr(code))
    }

    fn fragment<T: ToTokens>(
        &mut self,
        code: T,
        mentions: Mentions,
        bound: Vec<Ident>,
        scope: &Scope,
        loops: &Loops,
        visit: impl FnOnce(&T, &mut Jumps<'_>),
    ) -> Fragment<T> {
        let jumps = jumps::find(loops, &code, |jumps| visit(&code, jumps)).unwrap_or_else(|error| {
            self.errors.add(error);
            Vec::new()
        });
        let uses = self.resolve(&mentions, scope).into_iter().map(|(_, var)| var).collect();
        Fragment { code, scope: scope.clone(), uses, jumps, bound }
    }

    /// The variables among the names, each once.
    fn resolve(&self, mentions: &Mentions, scope: &Scope) -> Vec<(Ident, Var)> {
        let found =
            mentions.0.iter().filter_map(|name| Some((name.clone(), self.graph.lookup(scope, name)?)));
        let mut seen = BTreeSet::new();
        found.filter(|(_, var)| seen.insert(*var)).collect()
    }

    /// The variables of a `let`.
    fn declare(&mut self, pat: &Pat) -> Vec<Var> {
        let declared = match pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            other => (other, None),
        };
        if let (Pat::Ident(PatIdent { ident, mutability, by_ref: None, subpat: None, .. }), ty) = declared
            && !is_constant(ident)
        {
            let ty = ty.map(|ty| without_self(ty, &self.block.ty));
            let (name, is_mutable) = (ident.clone(), mutability.is_some());
            return vec![self.variable(Variable { name, is_mutable, ty, serde: Vec::new(), is_let: true })];
        }
        self.declare_all(pat)
    }

    /// The variables of a pattern that does not give them types.
    fn declare_all(&mut self, pat: &Pat) -> Vec<Var> {
        let mut bound = Bound::default();
        bound.visit_pat(pat);
        let names = bound.0.into_iter();
        names
            .map(|name| {
                self.variable(Variable {
                    name,
                    is_mutable: false,
                    ty: None,
                    serde: Vec::new(),
                    is_let: false,
                })
            })
            .collect()
    }

    /// Control flow that contains a wait.
    fn control(
        &mut self,
        expression: &Expr,
        wait: &syn::Macro,
        scope: &Scope,
        loops: &Loops,
        after: Point,
    ) -> Vec<Step> {
        let (attributes, label): (&[Attribute], Option<&Label>) = match expression {
            Expr::If(code) => (&code.attrs, None),
            Expr::Match(code) => (&code.attrs, None),
            Expr::Loop(code) => (&code.attrs, code.label.as_ref()),
            Expr::While(code) => (&code.attrs, code.label.as_ref()),
            Expr::ForLoop(code) => (&code.attrs, code.label.as_ref()),
            Expr::Block(code) if code.label.is_none() => (&code.attrs, None),
            _ => {
                self.misplaced(wait);
                return vec![Step::Goto(after, scope.clone())];
            }
        };
        self.refuse_attributes(attributes);
        let mut around = |this: &mut Self, body: &LoopBody<'_, Self>| {
            let head = this.point(Vec::new());
            let label = label.map(|label| label.name.ident.clone());
            let inner = loops.iter().map(|of| Loop { label: of.label.clone(), ..*of });
            let inner: Vec<Loop> = inner.chain([Loop { label, head, after }]).collect();
            this.graph.nodes[head].code = body(this, &Rc::new(inner), head);
            vec![Step::Goto(head, scope.clone())]
        };
        match expression {
            Expr::If(code) => self.branch(code, scope, loops, after),
            Expr::Match(code) => self.matches(code, scope, loops, after),
            Expr::Block(code) => self.statements(&code.block.stmts, scope, loops, after),
            Expr::Loop(code) => {
                around(self, &|this, inner, head| this.statements(&code.body.stmts, scope, inner, head))
            }
            Expr::While(code) => around(self, &|this, inner, head| {
                let condition = this.head(&code.cond, scope, loops);
                let declares = this.declare_in_condition(&code.cond);
                let body = this.statements(&code.body.stmts, &extended(scope, &declares), inner, head);
                let done = vec![Step::Goto(after, scope.clone())];
                vec![choice(condition, declares, body, done)]
            }),
            Expr::ForLoop(code) => self.counts(code, scope, loops, &mut around, after),
            _ => Vec::new(),
        }
    }

    fn branch(&mut self, code: &ExprIf, scope: &Scope, loops: &Loops, after: Point) -> Vec<Step> {
        let condition = self.head(&code.cond, scope, loops);
        let declares = self.declare_in_condition(&code.cond);
        let then = self.statements(&code.then_branch.stmts, &extended(scope, &declares), loops, after);
        let otherwise = match &code.else_branch {
            None => vec![Step::Goto(after, scope.clone())],
            Some((_, code)) => match &**code {
                Expr::Block(code) => self.statements(&code.block.stmts, scope, loops, after),
                other => self.statements(&[Stmt::Expr(other.clone(), None)], scope, loops, after),
            },
        };
        vec![choice(condition, declares, then, otherwise)]
    }

    fn matches(&mut self, code: &ExprMatch, scope: &Scope, loops: &Loops, after: Point) -> Vec<Step> {
        let head = self.head(&code.expr, scope, loops);
        let mut arms = Vec::new();
        for arm in &code.arms {
            self.refuse_attributes(&arm.attrs);
            let mut mentions = Mentions::default();
            mentions.visit_pat(&arm.pat);
            let declares = self.declare_all(&arm.pat);
            let scope = extended(scope, &declares);
            let uses = self.resolve(&mentions, &scope).into_iter().map(|(_, var)| var).collect();
            let code = self.body(&arm.body, &scope, loops, after);
            arms.push(Arm { pattern: Some(arm.pat.clone()), uses, declares, code });
        }
        vec![Step::Choice { head, is_if: false, arms }]
    }

    /// The code of a body after `=>`.
    fn body(&mut self, body: &Expr, scope: &Scope, loops: &Loops, after: Point) -> Vec<Step> {
        match body {
            Expr::Block(code) if code.label.is_none() && code.attrs.is_empty() => {
                self.statements(&code.block.stmts, scope, loops, after)
            }
            other => self.statements(&[Stmt::Expr(other.clone(), None)], scope, loops, after),
        }
    }

    /// A `for` over a range: a `while let` over the numbers that are left, which are a hidden variable.
    fn counts(
        &mut self,
        code: &ExprForLoop,
        scope: &Scope,
        loops: &Loops,
        around: &mut dyn FnMut(&mut Self, &LoopBody<'_, Self>) -> Vec<Step>,
        after: Point,
    ) -> Vec<Step> {
        let Some((bounds, ty, is_inclusive)) = self.range(&code.expr) else {
            return vec![Step::Goto(after, scope.clone())];
        };
        if !matches!(&*code.pat, Pat::Wild(_) | Pat::Ident(PatIdent { by_ref: None, subpat: None, .. })) {
            self.errors.report(&code.pat, "a `for` that contains a wait counts: give its variable a name");
        }
        let ty = without_self(&ty, &self.block.ty);
        let (left_ty, left_value): (Type, Expr) = match is_inclusive {
            true => (
                parse_quote!(::equipoise::__private::Through<#ty>),
                parse_quote!(::equipoise::__private::Through::new(#bounds)),
            ),
            false => (parse_quote!(::core::ops::Range<#ty>), parse_quote!(#bounds)),
        };
        let left = self.hidden("range", left_ty.clone());
        let name = self.graph.variables[left].name.clone();
        // The bounds are computed before the loop, so the range is outside of the scope of the body only by its hidden name.
        let begin: Stmt = parse_quote_spanned!(bounds.span()=> let mut #name: #left_ty = #left_value;);
        let mut mentions = Mentions::default();
        mentions.visit_expr(&bounds);
        let begin =
            self.fragment(begin, mentions, Vec::new(), scope, loops, |code, jumps| jumps.visit_stmt(code));
        let mut steps = vec![Step::Rust(begin, vec![left])];
        let inner_scope = extended(scope, &[left]);
        let (pat, some, none) =
            (&code.pat, quote!(::core::option::Option::Some), quote!(::core::option::Option::None));
        let typed = Pat::Type(PatType {
            attrs: Vec::new(),
            pat: code.pat.clone(),
            colon_token: Token![:](code.pat.span()),
            ty: Box::new(ty),
        });
        let next: Expr = parse_quote!(::core::iter::Iterator::next(&mut #name));
        let found = around(self, &|this, inner, head| {
            let next = this.head(&next, &inner_scope, loops);
            let declares = this.declare(&typed);
            let body = this.statements(&code.body.stmts, &extended(&inner_scope, &declares), inner, head);
            let more =
                Arm { pattern: Some(parse_quote!(#some(#pat))), uses: Vec::new(), declares, code: body };
            let done = vec![Step::Goto(after, scope.clone())];
            let done = Arm {
                pattern: Some(parse_quote!(#none)),
                uses: Vec::new(),
                declares: Vec::new(),
                code: done,
            };
            vec![Step::Choice { head: next, is_if: false, arms: vec![more, done] }]
        });
        // The scope of the range is that of the loop.
        steps.extend(found.into_iter().map(|step| match step {
            Step::Goto(to, _) => Step::Goto(to, inner_scope.clone()),
            other => other,
        }));
        steps
    }

    /// The bounds of a range, their type, and whether the last number belongs to it.
    fn range(&mut self, expression: &Expr) -> Option<(Expr, Type, bool)> {
        if let Some(wait) = waits::in_expression(expression) {
            self.misplaced(&wait);
            return None;
        }
        let inner = match expression {
            Expr::Paren(inner) => &*inner.expr,
            other => other,
        };
        let Expr::Range(ExprRange { start: Some(start), limits, end: Some(end), .. }) = inner else {
            let sentence = "a `for` that contains a wait counts integers, as in `for i in 0u32..self.n`: count, and index what you \
                visit; or use `while`, also to count down or in steps";
            self.errors.report(expression, sentence);
            return None;
        };
        let Some(ty) = number_type(start).or_else(|| number_type(end)) else {
            let sentence = "the flow keeps the numbers of this loop, so their type must be written: give a bound a suffix, as in \
                `0u32..self.n`";
            self.errors.report(expression, sentence);
            return None;
        };
        Some((inner.clone(), ty, matches!(limits, RangeLimits::Closed(_))))
    }

    fn declare_in_condition(&mut self, condition: &Expr) -> Vec<Var> {
        struct Lets<'a>(Vec<&'a Pat>);
        impl<'a> Visit<'a> for Lets<'a> {
            fn visit_expr_let(&mut self, code: &'a syn::ExprLet) {
                self.0.push(&code.pat);
                visit::visit_expr_let(self, code);
            }
        }
        let mut lets = Lets(Vec::new());
        lets.visit_expr(condition);
        lets.0.into_iter().flat_map(|pat| self.declare_all(pat)).collect()
    }

    fn refuse_attributes(&mut self, attributes: &[Attribute]) {
        if let Some(attribute) = attributes.first() {
            self.errors.report(attribute, "code that contains a wait of a flow cannot have attributes");
        }
    }

    /// Reports a wait that is not a statement.
    fn misplaced(&mut self, wait: &syn::Macro) {
        let name = wait.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let sentence = format!(
            "`{name}!` waits, and a flow waits in statements only: in blocks, `if`, `match`, `loop`, `while` and `for`, and as the \
             value of a `let`, but not inside of an expression whose value is used; move it there"
        );
        self.errors.report(&wait.path, sentence);
    }
}

fn extended(scope: &Scope, declares: &[Var]) -> Scope {
    let mut scope = scope.clone();
    Rc::make_mut(&mut scope).extend(declares);
    scope
}

fn choice(head: Fragment<Expr>, declares: Vec<Var>, then: Vec<Step>, otherwise: Vec<Step>) -> Step {
    let then = Arm { pattern: None, uses: Vec::new(), declares, code: then };
    let otherwise = Arm { pattern: None, uses: Vec::new(), declares: Vec::new(), code: otherwise };
    Step::Choice { head, is_if: true, arms: vec![then, otherwise] }
}

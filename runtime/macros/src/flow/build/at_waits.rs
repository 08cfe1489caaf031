//! The points of waits: where the flow waits, and where it continues with a message.

use super::super::graph::{Case, Guard, Kind, Loops, Point, Scope, Source, Step, Var};
use super::super::waits::{self, Wait, When};
use super::syntax::is_name;
use super::{Build, choice, extended};
use crate::block::{Argument, Entry, Receiver};
use crate::names::local;
use crate::options::Value;
use crate::types::{Mentions, without_self};
use proc_macro2::Ident;
use quote::{format_ident, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Attribute, Expr, Local, Pat, Stmt, Type, Visibility, parse_quote, parse_quote_spanned};

impl Build<'_> {
    /// A wait that is a statement.
    pub fn lone_wait(
        &mut self,
        call: &syn::Macro,
        attributes: &[Attribute],
        scope: &Scope,
        loops: &Loops,
        after: Point,
    ) -> Vec<Step> {
        self.refuse_attributes(attributes);
        match waits::read(call) {
            Ok(Wait::Select(cases)) => {
                let cases = cases.into_iter().filter_map(|when| {
                    self.case(when, None, scope, &mut |this, body, scope| {
                        this.body(body, scope, loops, after)
                    })
                });
                let cases = cases.collect();
                vec![Step::Goto(self.wait(cases), scope.clone())]
            }
            Ok(Wait::Overlap(cases)) => self.overlap(cases, scope, loops, after),
            Ok(Wait::Ask { cx, asks }) => self.ask(call, [cx, asks], None, scope, loops, after),
            Ok(Wait::Reduce { .. }) => {
                let sentence = "the result of `reduce!` needs a type: write `let result: f64 = reduce!(..)`, or `let _: f64 = reduce!(..)`";
                self.errors.report(&call.path, sentence);
                Vec::new()
            }
            Ok(Wait::AtSync { cx }) => {
                let entry = self.sync_entry();
                // The error for a chare that is not `sync` gets the place of the macro.
                let statement: Stmt = parse_quote_spanned!(call.path.span()=> #cx.at_sync().#entry(););
                let (step, _) = self.plain(&statement, false, scope, loops);
                vec![step, self.collective(entry, Source::Sync, Vec::new(), after, scope)]
            }
            Err(error) => {
                self.errors.add(error);
                Vec::new()
            }
        }
    }

    /// Continues at a wait for a collective or an answer.
    fn collective(
        &mut self,
        entry: Ident,
        from: Source,
        arguments: Vec<Option<Var>>,
        then: Point,
        scope: &Scope,
    ) -> Step {
        let wait = self.wait(vec![Case { entry, arguments, guard: None, left: None, then, from }]);
        Step::Goto(wait, scope.clone())
    }

    /// The entry that continues after a load-balancing step.
    fn sync_entry(&mut self) -> Ident {
        if let Some(entry) = &self.syncs {
            return entry.clone();
        }
        let entry = format_ident!("{}_after_sync", self.method.sig.ident.unraw());
        self.syncs = Some(entry.clone());
        self.generate(entry.clone(), Vec::new(), None);
        entry
    }

    /// Adds an entry to the block.
    fn generate(&mut self, name: Ident, arguments: Vec<Argument>, reduce: Option<Value>) {
        if let Some(entry) = self.block.entries.iter().find(|entry| entry.name == name) {
            let sentence =
                format!("the flow has an entry `{name}` for one of its waits: give this entry another name");
            self.errors.report(&entry.name, sentence);
            return;
        }
        let docs = vec![parse_quote!(#[doc(hidden)])];
        let (visibility, receiver) = (Visibility::Inherited, Receiver::Flow);
        self.block.entries.push(Entry {
            name,
            visibility,
            docs,
            arguments,
            when: None,
            priority: None,
            reduce,
            receiver,
        });
    }

    /// A `let` whose value is a wait.
    pub fn bound_wait(
        &mut self,
        local: &Local,
        wait: &syn::Macro,
        rest: &[Stmt],
        scope: &Scope,
        loops: &Loops,
        next: Point,
    ) -> Vec<Step> {
        self.refuse_attributes(&local.attrs);
        let is_value = local
            .init
            .as_ref()
            .is_some_and(|init| init.diverge.is_none() && matches!(&*init.expr, Expr::Macro(_)));
        let typed = match &local.pat {
            Pat::Type(typed) if is_name(&typed.pat) => Some(typed),
            _ => None,
        };
        let read = match waits::read(wait) {
            _ if !is_value => {
                self.misplaced(wait);
                return Vec::new();
            }
            Ok(read) => read,
            Err(error) => {
                self.errors.add(error);
                return Vec::new();
            }
        };
        let Some(typed) = typed else {
            let sentence = "the value of a wait needs a name and a type, as in `let result: f64 = ..`";
            self.errors.report(&local.pat, sentence);
            return Vec::new();
        };
        let declares = self.declare(&local.pat);
        let code = self.statements(rest, &extended(scope, &declares), loops, next);
        let after = self.point(code);
        match read {
            Wait::Ask { cx, asks } => {
                let value = (without_self(&typed.ty, &self.block.ty), declares.first().copied());
                self.ask(wait, [cx, asks], Some(value), scope, loops, after)
            }
            Wait::Reduce { cx, function, value } => {
                let var = declares.first().copied();
                let ty = without_self(&typed.ty, &self.block.ty);
                self.reduce(wait, [cx, function, value], ty, var, scope, loops, after)
            }
            Wait::Select(cases) => {
                let pat = &local.pat;
                let cases = cases.into_iter().filter_map(|when| {
                    self.case(when, None, scope, &mut |this, body, scope| {
                        if let Some(wait) = waits::in_expression(body) {
                            this.misplaced(&wait);
                            return Vec::new();
                        }
                        let statement: Stmt = parse_quote!(let #pat = #body;);
                        let (step, _) = this.plain(&statement, false, scope, loops);
                        let Step::Rust(fragment, _) = step else { return vec![step] };
                        let scope = extended(scope, &declares);
                        vec![Step::Rust(fragment, declares.clone()), Step::Goto(after, scope)]
                    })
                });
                let cases = cases.collect();
                vec![Step::Goto(self.wait(cases), scope.clone())]
            }
            Wait::Overlap(_) | Wait::AtSync { .. } => {
                self.errors.report(&wait.path, "this wait has no value: write it without `let`");
                Vec::new()
            }
        }
    }

    /// Asks, and waits for the answer; `value` is its type and the variable that keeps it.
    fn ask(
        &mut self,
        call: &syn::Macro,
        [cx, asks]: [Expr; 2],
        value: Option<(Type, Option<Var>)>,
        scope: &Scope,
        loops: &Loops,
        after: Point,
    ) -> Vec<Step> {
        self.generated += 1;
        let entry = format_ident!("{}_answer_{}", self.method.sig.ident.unraw(), self.generated);
        let (arguments, vars) = match value {
            Some((ty, var)) => {
                (vec![Argument { name: format_ident!("value"), ty, serde: Vec::new() }], vec![var])
            }
            None => (Vec::new(), Vec::new()),
        };
        self.generate(entry.clone(), arguments, None);
        // The error for a wrong function gets the place of the macro. Its names are the user's: a name of ours would be taken for a
        // variable of the flow.
        let callback = quote_spanned!(call.path.span()=> #cx.peer(#cx.index()).callback().#entry());
        let statement: Stmt = parse_quote!(::equipoise::__private::ask(#callback, #asks););
        let (step, _) = self.plain(&statement, false, scope, loops);
        vec![step, self.collective(entry, Source::Answer, vars, after, scope)]
    }

    #[allow(clippy::too_many_arguments)]
    fn reduce(
        &mut self,
        call: &syn::Macro,
        [cx, function, value]: [Expr; 3],
        ty: Type,
        var: Option<Var>,
        scope: &Scope,
        loops: &Loops,
        after: Point,
    ) -> Vec<Step> {
        self.generated += 1;
        let entry = format_ident!("{}_reduction_{}", self.method.sig.ident.unraw(), self.generated);
        let argument = Argument { name: format_ident!("value"), ty, serde: Vec::new() };
        // The error for a wrong function gets the place of the macro.
        let key = Ident::new("reduce", call.path.span());
        self.generate(entry.clone(), vec![argument], Some(Value { key, value: function }));
        // No variable of a flow has this name.
        let value_name = local("__value");
        let send = quote_spanned!(call.path.span()=> #cx.peers().contribute().#entry(#value_name));
        // The value is computed first, because it may need the element exclusively.
        let statement: Stmt = parse_quote!({ let #value_name = #value; #send; });
        let (step, _) = self.plain(&statement, false, scope, loops);
        vec![step, self.collective(entry, Source::Reduction, vec![var], after, scope)]
    }

    /// Waits for all of the messages, in any order.
    fn overlap(&mut self, cases: Vec<When>, scope: &Scope, loops: &Loops, after: Point) -> Vec<Step> {
        if cases.len() > 32 {
            self.errors.report(&cases[32].entry, "`overlap!` waits for at most 32 messages");
        }
        let left = self.hidden("left", parse_quote!(u32));
        let name = self.graph.variables[left].name.clone();
        let scope = extended(scope, &[left]);
        let all = u32::MAX >> (32 - cases.len().min(32));
        let begin: Stmt = parse_quote!(let mut #name: u32 = #all;);
        let begin = self.fragment(begin, Mentions::default(), Vec::new(), &scope, loops, |_, _| {});
        let wait = self.wait(Vec::new());
        // After each message: whether others are left.
        let condition = self.head(&parse_quote!(#name == 0), &scope, loops);
        let (done, again) = (vec![Step::Goto(after, scope.clone())], vec![Step::Goto(wait, scope.clone())]);
        let joined = self.point(vec![choice(condition, Vec::new(), done, again)]);
        let cases = (0..).zip(cases).filter_map(|(number, when)| {
            let bit = 1u32 << (number % 32);
            self.case(when, Some((left, bit)), &scope, &mut |this, body, scope| {
                if let Some(wait) = waits::in_expression(body) {
                    this.errors.report(
                        &wait.path,
                        "what follows a message of `overlap!` cannot wait: move this wait behind `overlap!`",
                    );
                }
                let strike: Stmt = parse_quote!(#name &= !#bit;);
                let (step, _) = this.plain(&strike, false, scope, loops);
                let mut code = vec![step];
                code.extend(this.body(body, scope, loops, joined));
                code
            })
        });
        let cases = cases.collect();
        self.graph.nodes[wait].kind = Kind::Wait(cases);
        vec![Step::Rust(begin, vec![left]), Step::Goto(wait, scope)]
    }

    /// A message for which the flow waits; `code` makes the code of its body.
    fn case(
        &mut self,
        when: When,
        left: Option<(Var, u32)>,
        scope: &Scope,
        code: &mut dyn FnMut(&mut Self, &Expr, &Scope) -> Vec<Step>,
    ) -> Option<Case> {
        let When { entry, arguments, guard, body } = when;
        let fields = self.fields(&entry, arguments.len())?;
        let arguments: Vec<Option<Var>> = arguments
            .into_iter()
            .zip(fields)
            .map(|((name, is_mutable), field)| Some(self.argument(name?, is_mutable, field)))
            .collect();
        let declares: Vec<Var> = arguments.iter().flatten().copied().collect();
        let inner = extended(scope, &declares);
        let guard = guard.map(|(span, condition)| {
            if let Some(wait) = waits::in_expression(&condition) {
                self.misplaced(&wait);
            }
            let mut mentions = Mentions::default();
            mentions.visit_expr(&condition);
            let mentions = self.resolve(&mentions, &inner);
            Guard { condition, mentions, span }
        });
        let code = code(self, &body, &inner);
        let then = self.point(code);
        Some(Case { entry, arguments, guard, left, then, from: Source::Proxy })
    }

    /// The fields of a message for which the flow waits with this number of names.
    fn fields(&mut self, name: &Ident, names: usize) -> Option<Vec<Argument>> {
        let invalid = self.block.invalid.iter().any(|entry| entry.name == *name);
        let Some(entry) = self.block.entries.iter().find(|entry| entry.name == *name) else {
            if !invalid {
                let sentence = format!(
                    "there is no entry `{name}`: declare it in this block, with the fields of its message and without a body, as in \
                     `#[entry] fn {name}(value: f64);`"
                );
                self.errors.report(name, sentence);
            }
            return None;
        };
        if entry.receiver == Receiver::Method || entry.name == self.method.sig.ident {
            let sentence = format!(
                "a flow waits for entries without a body, and `{name}` has one, which receives its messages: end its signature with `;`"
            );
            self.errors.report(name, sentence);
            return None;
        }
        let fields = entry.arguments.clone();
        if fields.len() != names {
            let sentence = format!(
                "the message `{name}` has {}, and this names {names}: give each field a name or `_`",
                if fields.len() == 1 { "1 field".into() } else { format!("{} fields", fields.len()) }
            );
            self.errors.report(name, sentence);
            return None;
        }
        Some(fields)
    }
}

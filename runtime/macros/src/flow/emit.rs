//! Writes the state of a flow, and the method that runs it.

use super::graph::{Arm, Case, Fragment, Graph, Kind, Point, Scope, Step, Var};
use super::jumps;
use super::layout::{Group, Layout, Place};
use super::live::Live;
use crate::block::Block;
use crate::errors::Errors;
use crate::names::local;
use crate::types::{bound, is_numbers};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use std::cell::RefCell;
use std::collections::BTreeSet;
use syn::{ImplItemFn, Lifetime, Stmt, parse_quote};

/// A flow that is written.
pub struct Emit<'a> {
    pub graph: &'a Graph,
    pub live: &'a Live,
    /// The names of the state and of the steps.
    pub state: &'a Ident,
    pub step: &'a Ident,
    /// The two with the parameters of the block.
    pub state_type: &'a TokenStream,
    pub step_type: &'a TokenStream,
    /// Where the code of the points stands.
    pub layout: &'a Layout,
    /// The name of the method.
    pub name: &'a Ident,
    /// The messages.
    pub message: &'a Ident,
    pub message_type: &'a TokenStream,
    /// The variables that were reported as hidden, with those that hide them.
    pub hidden: RefCell<BTreeSet<(Var, Option<Var>)>>,
}

impl<'a> Emit<'a> {
    /// The variant of a point.
    pub fn variant(&self, point: Point) -> Ident {
        match self.graph.nodes[point].kind {
            Kind::Idle => format_ident!("Idle"),
            Kind::Wait(_) => format_ident!("Wait{point}"),
            Kind::Inside => format_ident!("At{point}"),
        }
    }

    /// The state or the step at a point, with these fields; also its pattern.
    pub fn at(&self, point: Point, field: impl FnMut(Var) -> TokenStream) -> TokenStream {
        let (of, variant) = (if self.is_inside(point) { self.step } else { self.state }, self.variant(point));
        let fields: Vec<_> = self.live[point].iter().copied().map(field).collect();
        if fields.is_empty() { quote!(#of::#variant) } else { quote!(#of::#variant(#(#fields),*)) }
    }

    /// Whether the point is a step, where the flow does not wait.
    pub fn is_inside(&self, point: Point) -> bool {
        matches!(self.graph.nodes[point].kind, Kind::Inside)
    }

    /// The name of a variable where it is bound.
    fn binding(&self, var: Var) -> TokenStream {
        let variable = &self.graph.variables[var];
        let (name, mutable) = (&variable.name, variable.is_mutable.then(|| quote!(mut)));
        quote!(#mutable #name)
    }

    /// A tuple of the variables that a point needs.
    pub fn values(&self, point: Point, value: impl FnMut(Var) -> TokenStream) -> TokenStream {
        let values = self.live[point].iter().copied().map(value);
        quote!((#(#values,)*))
    }

    /// Whether the code of a point stands where its message arrives.
    pub fn stands_at_its_message(&self, point: Point) -> bool {
        self.layout.places[point] == Place::AtItsMessage
    }

    /// The code of a point, with these values of its variables.
    pub fn point(&self, point: Point, values: TokenStream, errors: &mut Errors) -> TokenStream {
        let pattern = self.values(point, |var| self.binding(var));
        let types = self.values(point, |var| self.graph.variables[var].ty.to_token_stream());
        let code = self.code(point, &self.graph.nodes[point].code, errors);
        quote!(let #pattern: #types = #values; #code)
    }

    /// The points that are waits, with what they wait for.
    pub fn waits(&self) -> impl Iterator<Item = (Point, &'a [Case])> {
        self.graph.nodes.iter().enumerate().filter_map(|(point, node)| match &node.kind {
            Kind::Wait(cases) => Some((point, &cases[..])),
            Kind::Idle | Kind::Inside => None,
        })
    }

    /// The waits that receive an entry, with what they do with it.
    pub fn waits_for(&self, entry: &Ident) -> impl Iterator<Item = (Point, Vec<&'a Case>)> {
        let of = |cases: &'a [Case]| cases.iter().filter(|case| case.entry == *entry).collect::<Vec<_>>();
        self.waits().map(move |(point, cases)| (point, of(cases))).filter(|(_, cases)| !cases.is_empty())
    }

    /// The definitions of the state, and of the steps if code loops over them.
    pub fn items(&self, block: &Block) -> TokenStream {
        let (state, step, generics) = (self.state, self.step, &block.generics);
        let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
        let (unused, no_bound) = (block.unused_variant(), block.no_bound());
        // A variant that is never encoded is last: serde numbers variants with and without it differently.
        let never_saved = unused.as_ref().map(|variant| quote!(#[serde(skip)] #variant));
        // The graph is built from the end of the flow.
        let waits: Vec<_> = self.waits().collect();
        let waits = (1..).zip(waits.into_iter().rev()).map(|(number, (point, cases))| {
            let (variant, saved) = (self.variant(point), self.saved_as(number, point, cases));
            let fields = self.live[point].iter().map(|&var| self.field(var));
            let fields = (!self.live[point].is_empty()).then(|| quote!((#(#fields),*)));
            quote!(#[serde(rename = #saved)] #variant #fields)
        });
        let steps = self.layout.in_loops().map(|point| {
            let variant = self.variant(point);
            let fields = self.live[point].iter().map(|&var| &self.graph.variables[var].ty);
            let fields = (!self.live[point].is_empty()).then(|| quote!((#(#fields),*)));
            quote!(#variant #fields)
        });
        let steps: Vec<TokenStream> = steps.collect();
        let steps = (!steps.is_empty()).then(|| {
            quote! {
                #[allow(dead_code, private_bounds, private_interfaces, clippy::all)]
                enum #step #generics #where_clause {
                    #(#steps,)*
                    #unused
                }
            }
        });
        let doc = format!("Where the flow of a `{}` waits, with its variables.", block.ty.to_token_stream());
        quote! {
            #[doc(hidden)]
            #[doc = #doc]
            #[allow(dead_code, private_bounds, private_interfaces, clippy::all)]
            #[derive(::equipoise::__private::serde::Serialize, ::equipoise::__private::serde::Deserialize)]
            #[serde(crate = "::equipoise::__private::serde")]
            #no_bound
            pub enum #state #generics #where_clause {
                Idle,
                #(#waits,)*
                #never_saved
            }

            #steps

            // The derive would require it of the parameters, too.
            #[allow(clippy::all)]
            impl #impl_generics ::core::default::Default for #state #type_generics #where_clause {
                fn default() -> Self { Self::Idle }
            }
        }
    }

    /// The name of a wait in checkpoints, which tells it from other waits: its number, what it waits for, and the variables that it keeps.
    fn saved_as(&self, number: usize, point: Point, cases: &[Case]) -> String {
        let names = |variables: &mut dyn Iterator<Item = Var>| {
            variables.map(|var| self.graph.variables[var].name.to_string()).collect::<Vec<_>>().join(" ")
        };
        let with = |word: &str, names: String| {
            if names.is_empty() { String::new() } else { format!(" {word} {names}") }
        };
        let case = |case: &Case| {
            format!("{}{}", case.entry, with("with", names(&mut case.arguments.iter().flatten().copied())))
        };
        let cases = cases.iter().map(case).collect::<Vec<_>>().join(" or ");
        let kept = names(&mut self.live[point].iter().copied());
        format!("wait {number} for {cases}{}", with("that keeps", kept))
    }

    /// A variable that is kept while the flow waits.
    fn field(&self, var: Var) -> TokenStream {
        let variable = &self.graph.variables[var];
        let (Some(ty), serde) = (&variable.ty, &variable.serde) else { return quote!(()) };
        let is_bulk = serde.is_empty() && is_numbers(ty);
        let bulk = is_bulk.then(|| quote!(#[serde(with = "::equipoise::numbers")]));
        let bound = if is_bulk || !serde.is_empty() { None } else { bound(ty, "FlowVariable") };
        quote!(#bulk #bound #(#serde)* #ty)
    }

    /// The method that continues the flow with a message, up to the next wait. It writes the state in place: returning and copying it
    /// would cost as much as a message. `receives` is the code that takes the message.
    pub fn method(&self, receives: TokenStream, written: &ImplItemFn, errors: &mut Errors) -> ImplItemFn {
        let (flow, msg, items) = (local("flow"), local("msg"), &self.graph.items);
        let (state, message) = (self.state_type, self.message_type);
        let mut code = receives;
        for (number, group) in self.layout.groups.iter().enumerate() {
            code = self.group(number, group, code, errors);
        }
        let mut method = written.clone();
        // The receiver and the context; arguments are variables.
        method.sig.inputs = method.sig.inputs.into_iter().take(2).collect();
        method.sig.inputs.push(parse_quote!(#flow: &mut #state));
        method.sig.inputs.push(parse_quote!(#msg: #message));
        method.sig.output = syn::ReturnType::Default;
        method.vis = syn::Visibility::Inherited;
        method.attrs.push(parse_quote!(#[inline(always)]));
        method.attrs.push(parse_quote! {
            #[allow(
                unused_variables, unused_mut, unused_assignments, unused_labels, unused_parens, unreachable_code,
                unreachable_patterns, dead_code, clippy::all
            )]
        });
        method.block = parse_quote! {{ #(#items)* #code }};
        method
    }

    /// The code of a group, behind the code that jumps there.
    fn group(&self, number: usize, group: &Group, before: TokenStream, errors: &mut Errors) -> TokenStream {
        let enter = enter(number);
        if let (false, &[point]) = (group.is_loop, &group.points[..]) {
            return self.point(point, quote!(#enter: { #before }), errors);
        }
        let (at, again, steps) = (local("at"), again(number), self.step_type);
        let arms: Vec<TokenStream> = group
            .points
            .iter()
            .map(|&point| {
                let (pattern, code) = (
                    self.at(point, |var| self.binding(var)),
                    self.code(point, &self.graph.nodes[point].code, errors),
                );
                quote!(#pattern => { #code })
            })
            .collect();
        quote! {
            let mut #at: #steps = #enter: { #before };
            #again: loop {
                match #at {
                    #(#arms)*
                    // A step of another loop.
                    _ => ::core::unreachable!(),
                }
            }
        }
    }

    /// The code of a point.
    fn code(&self, point: Point, steps: &[Step], errors: &mut Errors) -> TokenStream {
        let mut code = TokenStream::new();
        for step in steps {
            code.extend(match step {
                Step::Goto(to, scope) => {
                    self.check(*to, scope, &[], errors);
                    let goto = self.jump(point, *to);
                    quote!(#goto;)
                }
                Step::Rust(fragment, _) => {
                    let code = self.replaced(point, fragment, errors);
                    let end = matches!(fragment.code, Stmt::Expr(_, None)).then(|| quote!(;));
                    quote!(#code #end)
                }
                Step::Choice { head, is_if, arms } => {
                    let value = self.replaced(point, head, errors);
                    let bodies = arms.iter().map(|Arm { pattern, code, .. }| {
                        let code = self.code(point, code, errors);
                        match pattern {
                            Some(pattern) => quote!(#pattern => { #code }),
                            None => quote!({ #code }),
                        }
                    });
                    let bodies: Vec<TokenStream> = bodies.collect();
                    match (is_if, &bodies[..]) {
                        (true, [then, otherwise]) => quote!(if #value #then else #otherwise),
                        _ => quote!(match #value { #(#bodies)* }),
                    }
                }
            });
        }
        code
    }

    /// A fragment whose jumps are replaced.
    fn replaced<T: ToTokens>(&self, point: Point, of: &Fragment<T>, errors: &mut Errors) -> TokenStream {
        for &to in of.jumps.iter().flatten() {
            self.check(to, &of.scope, &of.bound, errors);
        }
        let mut jumps = of.jumps.iter().copied();
        jumps::replace(of.code.to_token_stream(), &mut jumps, &mut |to| self.jump(point, to))
    }

    /// The code that continues at a point, where users' names are in scope.
    fn jump(&self, from: Point, to: Point) -> TokenStream {
        self.goto(to, Some(from), &|var| self.graph.variables[var].name.to_token_stream())
    }

    /// The code that continues at a point with these values of variables; `from` is the point where it stands, if it is in one.
    pub fn goto(&self, to: Point, from: Option<Point>, value: &dyn Fn(Var) -> TokenStream) -> TokenStream {
        let at = self.at(to, value);
        match self.layout.places[to] {
            Place::Outside => {
                let flow = local("flow");
                quote!({ *#flow = #at; return })
            }
            Place::Group(number) if self.layout.groups[number].is_loop => {
                let (step, enter, again) = (local("at"), enter(number), again(number));
                match from.is_some_and(|from| self.layout.places[from] == Place::Group(number)) {
                    true => quote!({ #step = #at; continue #again }),
                    false => quote!({ break #enter #at }),
                }
            }
            Place::Group(number) => {
                let (enter, values) = (enter(number), self.values(to, value));
                quote!({ break #enter #values })
            }
            // Only its message leads there.
            Place::AtItsMessage => TokenStream::new(),
        }
    }

    /// Reports a variable that the point needs and that another variable of its name hides where the code continues there.
    fn check(&self, to: Point, scope: &Scope, bound: &[Ident], errors: &mut Errors) {
        let graph = self.graph;
        for &var in &self.live[to] {
            let name = &graph.variables[var].name;
            let inner = bound.iter().find(|bound| *bound == name);
            let visible = graph.lookup(scope, name).filter(|&visible| visible != var);
            let hides = inner.or_else(|| visible.map(|visible| &graph.variables[visible].name));
            if let Some(hides) = hides
                && self.hidden.borrow_mut().insert((var, visible))
            {
                let sentence = format!(
                    "this `{hides}` hides a `{name}` that the flow still needs: give it another name"
                );
                errors.report(hides, sentence);
            }
        }
    }
}

/// The label of the code that jumps to a group.
fn enter(group: usize) -> Lifetime {
    Lifetime::new(&format!("'enter{group}"), Span::mixed_site())
}

/// The label of the loop of a group.
fn again(group: usize) -> Lifetime {
    Lifetime::new(&format!("'again{group}"), Span::mixed_site())
}

//! The messages that a flow receives: which it accepts, and where it continues with them.

use super::emit::Emit;
use super::graph::{Case, Point, Source, Var};
use crate::block::{Block, Entry, Receiver};
use crate::errors::Errors;
use crate::names::local;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;

/// The arms of `ready` for the entries that the flow receives.
pub fn ready(emit: &Emit<'_>, block: &Block) -> Vec<(Ident, TokenStream)> {
    let entries = block.entries.iter().filter(|entry| entry.receiver == Receiver::Flow);
    let arm = |entry: &Entry| {
        let (name, message, fields, flow) = (&entry.name, emit.message, fields(entry), local("flow"));
        let mut ready = Vec::new();
        for (point, cases) in emit.waits_for(name) {
            // The result of a reduction goes to all elements. An element whose flow does not wait for it has not contributed, and
            // drops it.
            if cases[0].from == Source::Reduction {
                return (name.clone(), quote!(#message::#name(..) => true,));
            }
            let pattern = emit.at(point, |var| variable(emit, var));
            let conditions = cases.iter().map(|case| condition(emit, case, &fields));
            ready.push(quote!(#pattern => #(#conditions)||*,));
        }
        if name == emit.name {
            let state = emit.state;
            ready.push(quote!(#state::Idle => true,));
        }
        (name.clone(), quote!(#message::#name(#(#fields),*) => match #flow { #(#ready)* _ => false },))
    };
    entries.map(arm).collect()
}

/// The code that continues the flow with a message: at the point to which the wait leads, or at the start.
pub fn receive(emit: &Emit<'_>, block: &Block, errors: &mut Errors) -> TokenStream {
    let (msg, flow, other, message) = (local("msg"), local("flow"), local("other"), emit.message);
    let entries = block.entries.iter().filter(|entry| entry.receiver == Receiver::Flow);
    let arms: Vec<TokenStream> = entries
        .map(|entry| {
            let (name, fields) = (&entry.name, fields(entry));
            let mut arms: Vec<TokenStream> = emit
                .waits_for(name)
                .map(|(point, cases)| at_wait(emit, point, &cases, &fields, errors))
                .collect();
            if name == emit.name {
                let argument = |var| {
                    let field = emit.graph.arguments.iter().position(|argument| *argument == var);
                    field.map(|field| &fields[field]).into_token_stream()
                };
                let (state, start) = (emit.state, go(emit, emit.graph.start, &argument, errors));
                arms.push(quote!(#state::Idle => { #start }));
            }
            quote! {
                #message::#name(#(#fields),*) => match ::core::mem::take(#flow) {
                    #(#arms)*
                    #other => { *#flow = #other; return }
                },
            }
        })
        .collect();
    quote!(match #msg { #(#arms)* _ => return })
}

/// The names of the fields of an entry's message where users' names are not in scope.
fn fields(entry: &Entry) -> Vec<Ident> {
    (0..entry.arguments.len()).map(|i| local(&format!("value{i}"))).collect()
}

/// Runs the flow from a point; `value` has the values of variables.
fn go(emit: &Emit<'_>, point: Point, value: &dyn Fn(Var) -> TokenStream, errors: &mut Errors) -> TokenStream {
    match emit.stands_at_its_message(point) {
        true => emit.point(point, emit.values(point, value), errors),
        false => emit.goto(point, None, value),
    }
}

/// Continues at a wait after a message of these cases has come: with the first case whose condition is true.
fn at_wait(
    emit: &Emit<'_>,
    wait: Point,
    cases: &[&Case],
    fields: &[Ident],
    errors: &mut Errors,
) -> TokenStream {
    let pattern = emit.at(wait, |var| variable(emit, var));
    let mut run = |case: &Case| {
        let field = |var| case.arguments.iter().position(|argument| *argument == Some(var));
        let value =
            |var| field(var).map_or_else(|| variable(emit, var), |field| fields[field].to_token_stream());
        go(emit, case.then, &value, errors)
    };
    let Some((last, others)) = cases.split_last() else { return TokenStream::new() };
    if others.is_empty() {
        let last = run(last);
        return quote!(#pattern => { #last });
    }
    // Conditions take references.
    let kept: Vec<TokenStream> = emit.live[wait].iter().map(|&var| variable(emit, var)).collect();
    let numbers = 0..others.len();
    let conditions = others.iter().map(|case| condition(emit, case, fields));
    let choices =
        numbers.clone().zip(conditions).map(|(number, condition)| quote!(if #condition { #number } else));
    let arms: Vec<TokenStream> = numbers
        .zip(others)
        .map(|(number, case)| {
            let go = run(case);
            quote!(#number => { #go })
        })
        .collect();
    let (chosen, end, last) = (local("chosen"), others.len(), run(last));
    quote! {
        #pattern => {
            let #chosen: usize = {
                #(let #kept = &#kept;)*
                #(let #fields = &#fields;)*
                #(#choices)* { #end }
            };
            match #chosen { #(#arms)* _ => { #last } }
        }
    }
}

/// The name of a variable where users' names are not in scope.
fn variable(emit: &Emit<'_>, var: Var) -> TokenStream {
    local(&format!("{}{var}", emit.graph.variables[var].name.unraw())).to_token_stream()
}

/// Whether the flow accepts a message of a case. Variables and fields are references.
fn condition(emit: &Emit<'_>, case: &Case, fields: &[Ident]) -> TokenStream {
    let left = case.left.map(|(var, bit)| {
        let left = variable(emit, var);
        quote!(::equipoise::__private::guard_arg(#left) & #bit != 0)
    });
    let guard = case.guard.as_ref().map(|guard| {
        let copies = guard.mentions.iter().map(|(mention, var)| {
            let field = case.arguments.iter().position(|argument| argument == &Some(*var));
            let source = field.map_or_else(|| variable(emit, *var), |field| fields[field].to_token_stream());
            // The error for a value that is not `Copy` gets the place of its mention in the guard.
            let source = source.into_iter().map(|mut token| {
                token.set_span(token.span().located_at(mention.span()));
                token
            });
            let source: TokenStream = source.collect();
            quote!(let #mention = ::equipoise::__private::guard_arg(#source);)
        });
        let (value, ready) = (&guard.condition, local("ready"));
        // The error for a guard that is not `bool` gets the place of `if`.
        let expected = quote_spanned!(guard.span=> bool);
        quote!({ #(#copies)* let #ready: #expected = #value; #ready })
    });
    match (left, guard) {
        (Some(left), Some(guard)) => quote!((#left && #guard)),
        (Some(one), None) | (None, Some(one)) => quote!((#one)),
        (None, None) => quote!(true),
    }
}

/// The methods that name the messages for which a flow waits, and the flow if it does not run.
pub fn waits(emit: &Emit<'_>, block: &Block) -> TokenStream {
    let (flow, state, ty) = (local("flow"), emit.state, emit.state_type);
    let (msg, message, name) = (local("msg"), emit.message, emit.name.unraw().to_string());
    let message_type = emit.message_type;
    let received = block.entries.iter().filter(|entry| entry.receiver == Receiver::Flow);
    let received = received.map(|entry| &entry.name).map(|entry| quote!(#message::#entry(..)));
    let is_collective = |case: &Case| [Source::Reduction, Source::Sync].contains(&case.from);
    let arms = emit.waits().filter(|(_, cases)| !cases.iter().any(is_collective));
    let arms = arms.map(|(point, cases)| {
        let name = |case: &Case| match case.from {
            Source::Answer => "the answer to `ask!`".into(),
            _ => format!("`{}`", case.entry.unraw()),
        };
        let mut names: Vec<String> = cases.iter().map(name).collect();
        names.dedup();
        let (variant, names) = (emit.variant(point), names.join(" or "));
        quote!(#state::#variant { .. } => ::core::option::Option::Some(#names),)
    });
    quote! {
        fn waits(#flow: &#ty) -> ::core::option::Option<&'static str> {
            match #flow { #(#arms)* _ => ::core::option::Option::None }
        }
        fn idle(#flow: &#ty, #msg: &#message_type) -> ::core::option::Option<&'static str> {
            match (#flow, #msg) {
                (#state::Idle, #(#received)|*) => ::core::option::Option::Some(#name),
                _ => ::core::option::Option::None,
            }
        }
    }
}

//! The messages that a flow receives: which it accepts, and where it continues with them.

use super::emit::Emit;
use super::graph::{Case, Point, Source, Var};
use crate::block::{Block, Entry, Receiver};
use crate::names::local;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::ext::IdentExt;

/// The arms of `ready` and `deliver` for the entries that the flow receives.
pub fn arms(emit: &Emit<'_>, block: &Block, message: &Ident, this: &Ident) -> Vec<(Ident, [TokenStream; 2])> {
    let entries = block.entries.iter().filter(|entry| entry.receiver == Receiver::Flow);
    entries.map(|entry| (entry.name.clone(), arm(emit, entry, message, this))).collect()
}

fn arm(emit: &Emit<'_>, entry: &Entry, message: &Ident, this: &Ident) -> [TokenStream; 2] {
    let name = &entry.name;
    let fields: Vec<Ident> = (0..entry.arguments.len()).map(|i| local(&format!("value{i}"))).collect();
    let (flow, other, state) = (local("flow"), local("other"), emit.state);
    let (mut ready, mut then, mut is_reduction) = (Vec::new(), Vec::new(), false);
    for (point, cases) in emit.waits() {
        let cases: Vec<&Case> = cases.iter().filter(|case| case.entry == *name).collect();
        if let Some(first) = cases.first() {
            is_reduction |= first.from == Source::Reduction;
            let pattern = emit.at(point, |var| variable(emit, var));
            let conditions = cases.iter().map(|case| condition(emit, case, &fields));
            ready.push(quote!(#pattern => #(#conditions)||*,));
            let next = continuation(emit, this, point, &cases, &fields);
            then.push(quote!(#pattern => #next,));
        }
    }
    if name == emit.name {
        let argument = |var| {
            let field = emit.graph.arguments.iter().position(|argument| *argument == var);
            field.map(|field| &fields[field]).into_token_stream()
        };
        let start = go(emit, this, emit.graph.start, &argument);
        ready.push(quote!(#state::Idle => true,));
        then.push(quote!(#state::Idle => #start,));
    }
    // The result of a reduction goes to all elements. An element whose flow does not wait for it has not contributed, and
    // drops it.
    let ready = if is_reduction { quote!(true) } else { quote!(match #flow { #(#ready)* _ => false }) };
    let deliver = quote!(match ::core::mem::take(#flow) { #(#then)* #other => *#flow = #other },);
    [quote!(#message::#name(#(#fields),*) => #ready,), quote!(#message::#name(#(#fields),*) => #deliver)]
}

/// Runs the flow from a point.
fn go(emit: &Emit<'_>, this: &Ident, point: Point, field: &dyn Fn(Var) -> TokenStream) -> TokenStream {
    let (at, method, cx, flow) = (emit.at(point, field), emit.name, local("cx"), local("flow"));
    if emit.is_inside(point) { quote!(Self::#method(#this, #cx, #flow, #at)) } else { quote!(*#flow = #at) }
}

/// Continues at a wait after a message of these cases has come: with the first case whose condition is true.
fn continuation(
    emit: &Emit<'_>,
    this: &Ident,
    wait: Point,
    cases: &[&Case],
    fields: &[Ident],
) -> TokenStream {
    let run = |case: &Case| {
        go(emit, this, case.then, &|var| match case
            .arguments
            .iter()
            .position(|argument| *argument == Some(var))
        {
            Some(field) => fields[field].to_token_stream(),
            None => variable(emit, var),
        })
    };
    let Some((last, others)) = cases.split_last() else { return TokenStream::new() };
    let last = run(last);
    if others.is_empty() {
        return last;
    }
    // Conditions take references.
    let kept: Vec<TokenStream> = emit.live[wait].iter().map(|&var| variable(emit, var)).collect();
    let numbers = 0..others.len();
    let conditions = others.iter().map(|case| condition(emit, case, fields));
    let choices =
        numbers.clone().zip(conditions).map(|(number, condition)| quote!(if #condition { #number } else));
    let arms = numbers.zip(others).map(|(number, case)| {
        let go = run(case);
        quote!(#number => #go,)
    });
    let (chosen, end) = (local("chosen"), others.len());
    quote! {{
        let #chosen: usize = {
            #(let #kept = &#kept;)*
            #(let #fields = &#fields;)*
            #(#choices)* { #end }
        };
        match #chosen { #(#arms)* _ => #last }
    }}
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

/// The method that names the messages for which a flow waits.
pub fn waits(emit: &Emit<'_>) -> TokenStream {
    let (flow, state, ty) = (local("flow"), emit.state, emit.state_type);
    let arms = emit.waits().filter(|(_, cases)| cases.iter().all(|case| case.from == Source::Proxy));
    let arms = arms.map(|(point, cases)| {
        let mut names: Vec<String> = cases.iter().map(|case| format!("`{}`", case.entry.unraw())).collect();
        names.dedup();
        let (variant, names) = (emit.variant(point), names.join(" or "));
        quote!(#state::#variant { .. } => ::core::option::Option::Some(#names),)
    });
    quote! {
        fn waits(#flow: &#ty) -> ::core::option::Option<&'static str> {
            match #flow { #(#arms)* _ => ::core::option::Option::None }
        }
    }
}

//! The waits of a flow: `when!`, `select!`, `overlap!`, `ask!`, `reduce!` and `at_sync!`.

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::Visit;
use syn::{Error, Expr, Item, Macro, Stmt, Token, parenthesized};

/// The macros that wait.
const WAITS: [&str; 6] = ["when", "select", "overlap", "ask", "reduce", "at_sync"];

/// A wait.
#[allow(clippy::large_enum_variant, reason = "one exists at a time")]
pub enum Wait {
    /// For one of these messages.
    Select(Vec<When>),
    /// For all of these messages.
    Overlap(Vec<When>),
    /// For an answer.
    Ask {
        /// The context.
        cx: Expr,
        /// The function that asks, with the callback for the answer.
        asks: Expr,
    },
    /// For the result of a reduction.
    Reduce {
        /// The context.
        cx: Expr,
        /// The function that combines two contributions.
        function: Expr,
        /// The contribution.
        value: Expr,
    },
    /// For a load-balancing step.
    AtSync {
        /// The context.
        cx: Expr,
    },
}

/// A message for which a flow waits, as in `halo(i, edge) if i == iter => self.set(edge)`.
pub struct When {
    /// The entry.
    pub entry: Ident,
    /// The names of the fields, with `mut`.
    pub arguments: Vec<(Option<Ident>, bool)>,
    /// The guard, with its `if`.
    pub guard: Option<(Span, Expr)>,
    /// The body.
    pub body: Expr,
}

/// The name of the macro, if it waits.
fn name(call: &Macro) -> Option<&Ident> {
    call.path.segments.last().map(|last| &last.ident).filter(|name| WAITS.iter().any(|wait| *name == wait))
}

/// The first wait in code.
pub fn first(visit: impl FnOnce(&mut First)) -> Option<Macro> {
    let mut first = First(None);
    visit(&mut first);
    first.0
}

/// Searches the first wait.
pub struct First(Option<Macro>);

impl<'a> Visit<'a> for First {
    fn visit_macro(&mut self, call: &'a Macro) {
        if self.0.is_none() && name(call).is_some() {
            self.0 = Some(call.clone());
        }
    }
    // An item is no part of the flow.
    fn visit_item(&mut self, _: &'a Item) {}
}

/// The first wait in a statement.
pub fn in_statement(statement: &Stmt) -> Option<Macro> {
    first(|first| first.visit_stmt(statement))
}

/// The first wait in an expression.
pub fn in_expression(expression: &Expr) -> Option<Macro> {
    first(|first| first.visit_expr(expression))
}

/// Reads a wait.
///
/// # Errors
/// If its tokens have another form.
pub fn read(call: &Macro) -> syn::Result<Wait> {
    let Some(name) = name(call) else { return Err(Error::new_spanned(&call.path, "this does not wait")) };
    let tokens = call.tokens.clone();
    if name == "reduce" {
        let form = "`reduce!` takes the context, a function that combines two values and this element's value, as in \
            `reduce!(cx, f64::max, self.relax())`";
        let [cx, function, value] = expressions(name, tokens, form)?;
        return Ok(Wait::Reduce { cx, function, value });
    }
    if name == "ask" {
        let form = "`ask!` takes the context and a closure that asks for the answer with a callback, as in \
            `ask!(cx, |answer| server.at(cx, key).find(answer))`";
        let [cx, asks] = expressions(name, tokens, form)?;
        return Ok(Wait::Ask { cx, asks });
    }
    if name == "at_sync" {
        let [cx] = expressions(name, tokens, "`at_sync!` takes the context, as in `at_sync!(cx)`")?;
        return Ok(Wait::AtSync { cx });
    }
    let mut cases = cases(name, tokens)?;
    if name == "when" && cases.len() > 1 {
        let second = cases.swap_remove(1).entry;
        let sentence = "`when!` waits for one message: use `select!` for one of several messages, or `overlap!` for all of them";
        return Err(Error::new(second.span(), sentence));
    }
    Ok(if name == "overlap" { Wait::Overlap(cases) } else { Wait::Select(cases) })
}

/// Expressions separated by commas.
fn expressions<const N: usize>(name: &Ident, tokens: TokenStream, form: &str) -> syn::Result<[Expr; N]> {
    let all = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens)?;
    let all: Vec<Expr> = all.into_iter().collect();
    all.try_into().map_err(|_| Error::new(name.span(), form))
}

/// The messages in the brackets of `when!`, `select!` and `overlap!`.
fn cases(name: &Ident, tokens: TokenStream) -> syn::Result<Vec<When>> {
    let read = |input: ParseStream| {
        let mut cases = Vec::new();
        while !input.is_empty() {
            cases.push(case(input)?);
            if !input.is_empty() && !input.peek(Token![,]) && !ends_with_block(cases.last()) {
                return Err(input.error("expected `,` before the next message"));
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(cases)
    };
    let cases = read.parse2(tokens)?;
    if cases.is_empty() {
        let sentence =
            format!("`{name}!` waits for a message, as in `{name}!(halo(i, edge) => self.set_halo(edge))`");
        return Err(Error::new(name.span(), sentence));
    }
    Ok(cases)
}

fn ends_with_block(case: Option<&When>) -> bool {
    case.is_some_and(|case| matches!(case.body, Expr::Block(_)))
}

fn case(input: ParseStream) -> syn::Result<When> {
    let sentence = "expected a message, as in `halo(i, edge) if i == iter => self.set_halo(edge)`";
    let entry: Ident = input.parse().map_err(|e| Error::new(e.span(), sentence))?;
    if !input.peek(syn::token::Paren) {
        return Err(Error::new(
            entry.span(),
            format!("expected the fields of the message, as in `{entry}()`"),
        ));
    }
    let fields;
    parenthesized!(fields in input);
    let fields = Punctuated::<(Option<Ident>, bool), Token![,]>::parse_terminated_with(&fields, field)?;
    let guard = match input.parse::<Option<Token![if]>>()? {
        Some(token) => Some((token.span, input.parse()?)),
        None => None,
    };
    if !input.peek(Token![=>]) {
        let sentence = format!("expected `=>` and what to do with `{entry}`, as in `{entry}(..) => {{}}`");
        return Err(Error::new(input.span(), sentence));
    }
    input.parse::<Token![=>]>()?;
    let body = Expr::parse_with_earlier_boundary_rule(input)?;
    Ok(When { entry, arguments: fields.into_iter().collect(), guard, body })
}

/// The name of a field.
fn field(input: ParseStream) -> syn::Result<(Option<Ident>, bool)> {
    if input.parse::<Option<Token![_]>>()?.is_some() {
        return Ok((None, false));
    }
    let is_mutable = input.parse::<Option<Token![mut]>>()?.is_some();
    let name: Ident = input
        .parse()
        .map_err(|e| Error::new(e.span(), "a field of the message has a name here, or is `_`"))?;
    if !input.is_empty() && !input.peek(Token![,]) {
        return Err(input.error("a field of the message has a name here, or is `_`: match it in the body"));
    }
    Ok((Some(name), is_mutable))
}

//! The keys of `#[chare(..)]` and `#[entry(..)]`.

use crate::errors::Errors;
use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Error, Expr, Meta, Token, Type};

/// The keys of `#[chare(..)]`.
pub struct ChareOptions {
    /// The type of the index. If the key is missing or wrong, this is a `compile_error!`: rustc accepts it in place of
    /// any type, so uses of the index cause no further errors.
    pub index: Type,
    /// Whether load-balancing steps wait for the array.
    pub sync: bool,
    /// Whether its elements never migrate.
    pub pinned: bool,
    /// Whether messages for its elements are delivered before messages for other arrays.
    pub expedited: bool,
    /// The function that makes the elements of a restarted run with another number of PEs or processes.
    pub regroup: Option<Value>,
}

/// The keys of `#[entry(..)]`.
#[derive(Default)]
pub struct EntryOptions {
    /// The condition for delivering a message.
    pub when: Option<Value>,
    /// The function that combines two contributions.
    pub reduce: Option<Value>,
    /// Which messages go first among those that wait on a PE.
    pub priority: Option<Value>,
}

/// The value of a key.
pub struct Value {
    /// The key, whose span is used in errors about the type of the value.
    pub key: Ident,
    /// The value.
    pub value: Expr,
}

impl ChareOptions {
    /// Reads the tokens in the parentheses of `#[chare(..)]`.
    pub fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut index = None;
        let (mut sync, mut pinned, mut expedited, mut regroup) = (false, false, false, None);
        let known = "`index = TYPE`, `sync`, `pinned`, `expedited` and `regroup = FUNCTION`";
        keys(tokens.clone(), known, errors, |key, input| {
            if key == "index" {
                let example = "`index = [i32; 2]`";
                let found = equals(key, input, example);
                let value = up_to_comma(input)?;
                let ty = found.and_then(|()| {
                    let sentence = format!("expected the type of the index, as in {example}");
                    syn::parse2(value).map_err(|e| Error::new(e.span(), sentence))
                });
                index = Some(ty);
            } else if key == "sync" {
                no_value(key, input)?;
                sync = true;
            } else if key == "pinned" {
                no_value(key, input)?;
                pinned = true;
            } else if key == "expedited" {
                no_value(key, input)?;
                expedited = true;
            } else if key == "regroup" {
                equals(key, input, "`regroup = Counter::regroup`")?;
                regroup = Some(Value { key: key.clone(), value: input.parse()? });
            } else {
                return Ok(false);
            }
            Ok(true)
        });
        let missing = || {
            let sentence = "`index` is missing: give the index type of the elements, as in \
                `#[chare(index = [i32; 2])]`: `[i32; N]` with N from 1 to 6, a struct with `#[derive(Index)]`, `()` for a \
                singleton, or `Pe` for one element on every PE";
            Err(if tokens.is_empty() {
                Error::new(Span::call_site(), sentence)
            } else {
                Error::new_spanned(&tokens, sentence)
            })
        };
        let index = index.unwrap_or_else(missing).unwrap_or_else(|e| Type::Verbatim(e.into_compile_error()));
        if let (Some(Value { key, .. }), Type::Array(_) | Type::Tuple(_)) = (&regroup, &index) {
            let sentence = "`regroup` is for arrays with one element on every PE or in every process, whose number may change in \
                a restart: leave it out, or write `index = Pe` or `index = Process`";
            errors.report(key, sentence);
        }
        Self { index, sync, pinned, expedited, regroup }
    }
}

impl EntryOptions {
    /// Reads an `#[entry]` or `#[entry(..)]`.
    pub fn read(attribute: &Attribute, errors: &mut Errors) -> Self {
        let mut options = Self::default();
        let tokens = match &attribute.meta {
            Meta::Path(_) => TokenStream::new(),
            Meta::List(list) => list.tokens.clone(),
            Meta::NameValue(pair) => {
                let sentence =
                    "write the keys of an entry in parentheses, as in `#[entry(reduce = f64::max)]`";
                errors.report(pair, sentence);
                TokenStream::new()
            }
        };
        let known = "`when = CONDITION`, `reduce = FUNCTION` and `priority = NUMBER`";
        keys(tokens, known, errors, |key, input| {
            if key == "when" {
                equals(key, input, "`when = iter == self.iter`")?;
                options.when = Some(Value { key: key.clone(), value: input.parse()? });
            } else if key == "reduce" {
                equals(key, input, "`reduce = f64::max`")?;
                options.reduce = Some(Value { key: key.clone(), value: input.parse()? });
            } else if key == "priority" {
                equals(key, input, "`priority = -1`")?;
                options.priority = Some(Value { key: key.clone(), value: input.parse()? });
            } else {
                return Ok(false);
            }
            Ok(true)
        });
        options
    }
}

/// Reads keys separated by commas. `read` reads the value of a key, and returns `false` for an unknown key. After an
/// error, reading continues after the next comma.
fn keys(
    tokens: TokenStream,
    known: &str,
    errors: &mut Errors,
    mut read: impl FnMut(&Ident, ParseStream) -> syn::Result<bool>,
) {
    let mut seen: Vec<Ident> = Vec::new();
    let mut one = |input: ParseStream| -> syn::Result<()> {
        let key = input
            .call(Ident::parse_any)
            .map_err(|e| Error::new(e.span(), format!("expected a key: the keys are {known}")))?;
        if seen.contains(&key) {
            return Err(Error::new(key.span(), format!("`{key}` is given twice: remove one")));
        }
        seen.push(key.clone());
        if !read(&key, input)? {
            return Err(Error::new(key.span(), format!("unknown key `{key}`: the keys are {known}")));
        }
        if !input.is_empty() && !input.peek(Token![,]) {
            return Err(input.error("expected `,` before the next key"));
        }
        Ok(())
    };
    let all = |input: ParseStream| -> syn::Result<()> {
        while !input.is_empty() {
            if let Err(error) = one(input) {
                errors.add(error);
                up_to_comma(input)?;
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    if let Err(error) = all.parse2(tokens) {
        errors.add(error);
    }
}

/// The tokens before the next comma or the end.
fn up_to_comma(input: ParseStream) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}

/// Reads the `=` of `key = value` and checks that a value follows; `example` is for the error.
fn equals(key: &Ident, input: ParseStream, example: &str) -> syn::Result<()> {
    if input.parse::<Token![=]>().is_err() || input.is_empty() || input.peek(Token![,]) {
        return Err(Error::new(key.span(), format!("`{key}` needs a value, as in {example}")));
    }
    Ok(())
}

/// Checks that no value follows.
fn no_value(key: &Ident, input: ParseStream) -> syn::Result<()> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(Error::new(key.span(), format!("`{key}` takes no value: write `{key}` or leave it out")))
}

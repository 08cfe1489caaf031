//! Specs: how a machine is written, as in `torus:4x4x4*tree:2:4/2:1` or `torus:8x8x8[random:48,seed=1]`.
//!
//! A kind of machine and, after a colon, its sizes; `A*B` is a network A of nodes B; `A[..]` has the PEs
//! of A that the brackets name. Brackets bind closer than `*`, and parentheses closer than both.

use std::path::Path;
use std::sync::Arc;

use super::{ALL, Allocation, Product, Topology};
use crate::files::{self, Unread};
use crate::spelling::meant;

/// How deep specs may be nested.
const MAX_DEPTH: usize = 16;

/// A spec that describes no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{spec}` is not a topology: {reason}")]
pub struct TopologyError {
    /// The spec as written.
    pub spec: String,
    /// What is wrong with it and what was expected.
    pub reason: String,
    /// Whether that is the content of a file it names.
    pub is_content: bool,
}

impl TopologyError {
    /// Whether another spec is the remedy; otherwise the content of a file is broken.
    pub fn is_of_the_request(&self) -> bool {
        !self.is_content
    }
}

/// What is wrong with a spec or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The spec itself, or the name of a file in it.
    Spec(String),
    /// The content of a file it names.
    Content(String),
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Fault::Spec(reason)
    }
}

impl From<&str> for Fault {
    fn from(reason: &str) -> Self {
        Fault::Spec(reason.into())
    }
}

impl Fault {
    /// The same with another sentence.
    fn map(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Fault::Spec(reason) => Fault::Spec(change(reason)),
            Fault::Content(reason) => Fault::Content(change(reason)),
        }
    }
}

/// The machine of a spec such as `torus:8x8x8`.
///
/// # Errors
/// When the kind of machine is unknown, its sizes are missing, zero or too large, or a file that it
/// names cannot be used.
pub fn parse(spec: &str) -> Result<Arc<dyn Topology>, TopologyError> {
    machine(spec, 0).map_err(|fault| {
        let is_content = matches!(fault, Fault::Content(_));
        let (Fault::Spec(reason) | Fault::Content(reason)) = fault;
        TopologyError { spec: spec.to_string(), reason, is_content }
    })
}

/// The machine of a spec inside `depth` others.
fn machine(text: &str, depth: usize) -> Result<Arc<dyn Topology>, Fault> {
    if depth > MAX_DEPTH {
        return Err(format!("machines are nested at most {MAX_DEPTH} deep").into());
    }
    let part = |part: &str| match part {
        "" => Err("a machine is missing beside `*` or `[`".into()),
        part => machine(part, depth + 1).map_err(|fault| fault.map(|reason| within(part, reason))),
    };
    let shape = Shape::of(text)?;
    if let Some(star) = shape.star {
        return Ok(Arc::new(Product::new(part(&text[..star])?, part(&text[star + 1..])?)?));
    }
    match shape.last {
        Some((open, '[')) if text.ends_with(']') => {
            let chosen = &text[open + 1..text.len() - 1];
            Ok(Arc::new(Allocation::parse(part(&text[..open])?, chosen)?))
        }
        Some((0, '(')) if text.ends_with(')') => machine(&text[1..text.len() - 1], depth + 1),
        _ => of_a_kind(text),
    }
}

fn of_a_kind(text: &str) -> Result<Arc<dyn Topology>, Fault> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let Some(kind) = ALL.iter().find(|kind| kind.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        let forms: Vec<&str> = ALL.iter().map(|kind| kind.form).collect();
        let meant = meant(name, &names);
        return Err(format!("there is no machine `{name}`{meant}; known are {}", forms.join(", ")).into());
    };
    (kind.parse)(rest)
}

/// What `read` makes of the text of a file, which holds `what`.
pub(super) fn from_file<T>(
    what: &str,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, Fault> {
    let text = files::text(Path::new(name)).map_err(|unread| match unread {
        Unread::System(_) => Fault::Spec(format!("cannot read the {what} `{name}`: {unread}")),
        Unread::NotText(_) => Fault::Content(format!("{name}: {unread}")),
    })?;
    read(&text).map_err(|reason| Fault::Content(format!("{name}: {reason}")))
}

/// The sentence about a part of a spec; it names the part unless one further inside is named.
fn within(part: &str, reason: String) -> String {
    if reason.starts_with("in `") { reason } else { format!("in `{part}`: {reason}") }
}

/// The spec of a machine as a part of another: in parentheses if it is a product.
pub(super) fn as_part(machine: &dyn Topology) -> String {
    let spec = machine.spec();
    match Shape::of(&spec) {
        Ok(Shape { star: None, .. }) => spec,
        _ => format!("({spec})"),
    }
}

/// What of a spec is outside of all brackets.
struct Shape {
    /// Where the first `*` is.
    star: Option<usize>,
    /// Where the last bracket opens, and which it is.
    last: Option<(usize, char)>,
}

impl Shape {
    fn of(text: &str) -> Result<Shape, String> {
        let (mut shape, mut open) = (Shape { star: None, last: None }, Vec::new());
        for (at, letter) in text.char_indices() {
            match letter {
                '[' | '(' => {
                    if open.is_empty() {
                        shape.last = Some((at, letter));
                    }
                    open.push(letter);
                }
                ']' | ')' => {
                    let opener = if letter == ']' { '[' } else { '(' };
                    if open.pop() != Some(opener) {
                        return Err(format!("there is a `{letter}` without `{opener}` before it"));
                    }
                }
                '*' if open.is_empty() => shape.star = shape.star.or(Some(at)),
                _ => (),
            }
        }
        match open.last() {
            Some(open) => Err(format!("there is a `{open}` that is not closed")),
            None => Ok(shape),
        }
    }
}

/// The arguments `KEY=NUMBER` with commas between them, in the order of `keys`; those in `defaults` may be
/// left out.
pub(super) fn keyed<const N: usize>(
    text: &str,
    keys: [&str; N],
    defaults: [Option<u64>; N],
) -> Result<[u64; N], String> {
    let mut values = [None; N];
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!("expected {}=NUMBER, found `{part}`", keys.join("=NUMBER,")));
        };
        let Some(place) = keys.iter().position(|known| *known == key) else {
            let meant = meant(key, &keys);
            return Err(format!("it takes no `{key}`{meant}; known are {}", keys.join(", ")));
        };
        if values[place].is_some() {
            return Err(format!("`{key}` is given twice"));
        }
        values[place] =
            Some(value.parse().map_err(|_| format!("expected a number for {key}=, found `{value}`"))?);
    }
    let mut all = [0; N];
    for (place, value) in values.into_iter().enumerate() {
        all[place] = value.or(defaults[place]).ok_or_else(|| format!("`{}=` must be given", keys[place]))?;
    }
    Ok(all)
}

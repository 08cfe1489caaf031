//! The operators of specs: `A*B`, `A[..]` and parentheses.

/// The operators of a spec outside all brackets.
pub(super) struct Operators {
    /// The position of the first `*`.
    pub(super) star: Option<usize>,
    /// The position and kind of the last opening bracket.
    pub(super) last: Option<(usize, char)>,
}

impl Operators {
    pub(super) fn of(text: &str) -> Result<Operators, String> {
        let (mut found, mut open) = (Operators { star: None, last: None }, Vec::new());
        for (at, letter) in text.char_indices() {
            match letter {
                '[' | '(' => {
                    if open.is_empty() {
                        found.last = Some((at, letter));
                    }
                    open.push(letter);
                }
                ']' | ')' => {
                    let opener = if letter == ']' { '[' } else { '(' };
                    if open.pop() != Some(opener) {
                        return Err(format!("there is a `{letter}` without a matching `{opener}`"));
                    }
                }
                '*' if open.is_empty() => found.star = found.star.or(Some(at)),
                _ => (),
            }
        }
        match open.last() {
            Some(open) => Err(format!("there is a `{open}` that is not closed")),
            None => Ok(found),
        }
    }
}

/// The spec of a machine for use in another spec: in parentheses if it is a product.
pub(super) fn as_part(spec: String) -> String {
    match Operators::of(&spec) {
        Ok(Operators { star: None, .. }) => spec,
        _ => format!("({spec})"),
    }
}

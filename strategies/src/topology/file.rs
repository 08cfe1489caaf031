//! The files that specs of machines name: read here and nowhere else.

/// The text of a file, which holds `what`.
///
/// # Errors
/// A sentence when it cannot be read.
pub(super) fn text(what: &str, file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        format!("cannot read the {what} `{file}`: {error}; check its name and that it may be read")
    })?;
    // Some programs put a byte-order mark before the text.
    Ok(text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text))
}

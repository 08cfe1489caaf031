//! Fuzzing of all readers of files and all parsers of specs.
//!
//! [`readers`] lists them, each with golden inputs; the list follows the registries. [`mutate`] damages golden inputs. A
//! test of this package drives both with a budget; the targets of `cargo fuzz` in `tests/fuzz` call [`target`].

pub mod checkpoint;
mod checksums;
pub mod golden;
mod mutate;
mod readers;

pub use mutate::{Rng, mutate};
pub use readers::readers;

use std::fs;
use std::path::Path;

use equipoise::model::quote::MAX_CHARACTERS;

use crate::Sandbox;

/// The largest number of characters of an error; it has a few echoed texts and lists of known names.
const MAX_ERROR_CHARACTERS: usize = 2000 + MAX_CHARACTERS;

/// Reads the file at a path, or parses a spec; returns the error as a command prints it.
type Read = Box<dyn Fn(&str) -> Result<(), String>>;

/// A reader of files or a parser of specs.
pub struct Reader {
    /// The name of the fuzz target.
    pub name: String,
    /// The name of the file, whose extension some readers need; empty for specs.
    pub file: &'static str,
    /// Valid inputs.
    pub golden: Vec<Vec<u8>>,
    /// The arguments of the command `equipoise` that reads the input; `{}` is the name of the file, or the spec. Empty if
    /// no command reads it.
    pub command: String,
    /// Corrects the checksums of a damaged input, so that readers look behind them.
    pub repair: fn(&mut Vec<u8>),
    read: Read,
}

impl Reader {
    /// Reads an input. Readers of files read it from a file in `folder`. True if the input is valid.
    ///
    /// # Errors
    /// What is wrong with the error that the reader returns.
    ///
    /// # Panics
    /// If the reader panics, or the file cannot be written.
    pub fn check(&self, input: &[u8], folder: &Path) -> Result<bool, String> {
        let name = if self.file.is_empty() {
            let Some(spec) = small_spec(input) else { return Ok(false) };
            spec
        } else {
            let path = folder.join(self.file);
            fs::write(&path, input).expect("a temporary file can be written");
            path.to_str().expect("the path of a temporary file is text").to_string()
        };
        let Err(error) = (self.read)(&name) else { return Ok(true) };
        if error.trim().is_empty() {
            return Err("the error is empty".into());
        }
        if error.chars().any(char::is_control) {
            return Err(format!("the error has control characters: {error:?}"));
        }
        if error.chars().count() > MAX_ERROR_CHARACTERS {
            return Err(format!("the error has {} characters: {error}", error.chars().count()));
        }
        if !error.contains(self.file) {
            return Err(format!("the error does not name the file: {error}"));
        }
        Ok(false)
    }

    /// Gives an input to the command `equipoise`, and checks how it ends. Specs are arguments, so that they lose their
    /// spaces.
    ///
    /// # Panics
    /// If the command does not end as every command must.
    pub fn check_command(&self, input: &[u8], sandbox: &Sandbox) {
        let mut name = self.file.to_string();
        if self.file.is_empty() {
            let Some(spec) = small_spec(input) else { return };
            name = spec.split_whitespace().collect();
        } else {
            sandbox.put(self.file, input);
        }
        sandbox.run(&self.command.replace("{}", &name)).ended_well();
    }
}

/// The spec in an input, or `None` if it is large.
fn small_spec(input: &[u8]) -> Option<String> {
    let spec: String = String::from_utf8_lossy(input).chars().filter(|&letter| letter != '\0').collect();
    is_small(&spec).then_some(spec)
}

/// Whether a spec is small enough that making what it describes is no work: the property is about parsing.
fn is_small(spec: &str) -> bool {
    let numbers = spec.split(|letter: char| !letter.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let product: f64 =
        numbers.map(|digits| digits.parse::<f64>().unwrap_or(f64::INFINITY).max(1.0)).product();
    product <= 1e3
}

/// Checks one input of a fuzz target; for `cargo fuzz`.
///
/// # Panics
/// If there is no such reader, or it panics or returns a bad error.
pub fn target(name: &str, input: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let reader = readers().into_iter().find(|reader| reader.name == name);
    let reader = reader.unwrap_or_else(|| panic!("there is no reader {name}"));
    if let Err(problem) = reader.check(input, folder.path()) {
        panic!("{name}: {problem}");
    }
}

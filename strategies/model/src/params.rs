//! Parameters in specs: the list `key=value,key=value` after a name and a colon.

use std::fmt;
use std::str::FromStr;

use crate::fault::{Classified, Fault};
use crate::quote::{quoted, sentence};
use crate::spelling::{nearest, suggestion};

/// A key that a spec accepts.
#[derive(Debug)]
pub struct Param {
    /// The key in a spec.
    pub key: &'static str,
    /// The value if the key is not given; empty if the key is required.
    pub default: &'static str,
    /// Meaning, unit and allowed values.
    pub help: &'static str,
}

impl Param {
    /// The key `imbalance`, read by [`Params::take_imbalance`].
    pub const fn imbalance(default: &'static str) -> Param {
        Param { key: "imbalance", default, help: "allowed max/avg - 1" }
    }
}

/// The largest allowed imbalance; no machine is so large that a larger one differs from it.
pub const MAX_IMBALANCE: f64 = 1e9;

/// The arguments of a spec; the `take` methods remove them one by one.
#[derive(Debug)]
pub struct Params {
    owner: &'static str,
    defaults: Vec<(&'static str, &'static str)>,
    given: Vec<(String, String)>,
    /// Arguments without a key.
    positional: Vec<String>,
}

/// A spec with an unknown name, an unknown key or an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// The name is unknown.
    #[error("there is no {what} `{}`{}; known are {known}", quoted(.name), suggestion(.nearest))]
    Unknown {
        /// The noun for the named thing, such as `strategy`.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The known name that is closest to `name`, if one is close.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// The name belongs to Charm++, and Equipoise has nothing with this name.
    #[error("the {what} `{name}` of Charm++ is not available; use {instead}")]
    OfCharm {
        /// The noun for the named thing, such as `strategy`.
        what: &'static str,
        /// The name.
        name: &'static str,
        /// What to use instead.
        instead: &'static str,
    },
    /// The key is unknown.
    #[error("{owner} has no parameter `{}`{}; {known}", quoted(.key), suggestion(.nearest))]
    UnknownKey {
        /// The name in the spec.
        owner: &'static str,
        /// The key as written.
        key: String,
        /// The known key that is closest to `key`, if one is close.
        nearest: Option<String>,
        /// A phrase that lists the known keys.
        known: String,
    },
    /// A required key is missing.
    #[error("{owner}: `{key}=` must be given")]
    Missing {
        /// The name in the spec.
        owner: &'static str,
        /// The key.
        key: String,
    },
    /// The value is invalid for its key.
    #[error("{owner}:{key}={} is not understood: {}", quoted(.value), sentence(.expected))]
    BadValue {
        /// The name in the spec.
        owner: &'static str,
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// What was expected, or what is wrong.
        expected: String,
    },
    /// The value names a file that cannot be used.
    #[error("{owner}:{key}={} cannot be used: {}", quoted(.value), sentence(.reason))]
    BadFile {
        /// The name in the spec.
        owner: &'static str,
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// What is wrong.
        reason: String,
        /// Whether another file name can solve the problem.
        fault: Fault,
    },
    /// The spec is malformed.
    #[error("`{}` is not a {what}: {}", quoted(.spec), sentence(.reason))]
    Malformed {
        /// The spec as written.
        spec: String,
        /// The noun for the expected thing, such as `strategy`.
        what: &'static str,
        /// What is wrong and what was expected.
        reason: String,
    },
}

impl Classified for ParamError {
    fn fault(&self) -> Fault {
        match self {
            ParamError::BadFile { fault, .. } => *fault,
            _ => Fault::Usage,
        }
    }
}

impl ParamError {
    /// The error for a `name` that is not in `names`; the error message lists `known`.
    pub fn unknown(what: &'static str, name: &str, names: &[&str], known: &[&str]) -> ParamError {
        let nearest = nearest(name, names);
        ParamError::Unknown { what, name: name.to_string(), nearest, known: known.join(", ") }
    }
}

impl From<ParamError> for String {
    fn from(error: ParamError) -> String {
        error.to_string()
    }
}

/// The parts of a text between the separators that are not in square brackets or parentheses. If brackets have no partner, those in
/// brackets count, too; the same is true of parentheses.
pub fn split_outside_brackets(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0i32;
    let kinds = [['[', ']'], ['(', ')']].map(|kind| nesting(text, kind).map(|_| kind));
    text.split(move |letter| {
        for [opens, closes] in kinds.into_iter().flatten() {
            depth += i32::from(letter == opens) - i32::from(letter == closes);
        }
        letter == separator && depth == 0
    })
}

/// The most specs in brackets in each other.
const MOST_NESTED: u32 = 8;

/// How many brackets of a kind are in each other; none if one has no partner.
fn nesting(text: &str, [opens, closes]: [char; 2]) -> Option<u32> {
    let (mut depth, mut most) = (0u32, 0);
    for letter in text.chars() {
        if letter == opens {
            depth += 1;
        } else if letter == closes {
            depth = depth.checked_sub(1)?;
        }
        most = most.max(depth);
    }
    (depth == 0).then_some(most)
}

impl Params {
    /// Parses the arguments `text` of `owner`, which has the keys `declared`, and passes them to `make`. Arguments are
    /// separated by commas; those without `=` are positional.
    ///
    /// # Errors
    /// If a key is given twice or not declared, an unused positional argument remains, or `make` fails.
    pub fn parse_with<T, E: From<ParamError>>(
        owner: &'static str,
        declared: &[Param],
        text: &str,
        make: impl FnOnce(&mut Params) -> Result<T, E>,
    ) -> Result<T, E> {
        let malformed = |reason: String| ParamError::Malformed {
            spec: format!("{owner}:{text}"),
            what: "list of parameters",
            reason,
        };
        let keys: Vec<&str> = declared.iter().map(|param| param.key).collect();
        let (mut given, mut positional) = (Vec::<(String, String)>::new(), Vec::new());
        for argument in split_outside_brackets(text, ',').filter(|_| !text.is_empty()) {
            let Some((key, value)) = argument.split_once('=') else {
                positional.push(argument.to_string());
                continue;
            };
            if given.iter().any(|(earlier, _)| earlier == key) {
                return Err(malformed(format!("`{key}` is given twice")).into());
            }
            if !keys.contains(&key) {
                let known = match keys.as_slice() {
                    [] => "it has no parameters".into(),
                    keys => format!("known are {}", keys.join(", ")),
                };
                let (key, nearest) = (key.to_string(), nearest(key, &keys));
                return Err(ParamError::UnknownKey { owner, key, nearest, known }.into());
            }
            given.push((key.to_string(), value.to_string()));
        }
        let defaults = declared.iter().map(|param| (param.key, param.default)).collect();
        let mut params = Params { owner, defaults, given, positional };
        let made = make(&mut params);
        // `make` has removed the positional arguments that it uses.
        if let Some(argument) = params.positional.first() {
            return Err(malformed(format!("expected key=value, found `{argument}`")).into());
        }
        debug_assert!(made.is_err() || params.given.is_empty(), "{owner} ignores {:?}", params.given);
        made
    }

    /// The list of arguments `text` with `key=value` at its end, unless it gives `key`.
    pub fn with_default(text: &str, key: &str, value: impl fmt::Display) -> String {
        let is_given = split_outside_brackets(text, ',')
            .any(|argument| argument.split_once('=').is_some_and(|given| given.0 == key));
        match text {
            "" => format!("{key}={value}"),
            given if is_given => given.to_string(),
            given => format!("{given},{key}={value}"),
        }
    }

    /// Removes and returns the `N` positional arguments; `meanings` describes them in errors.
    ///
    /// # Errors
    /// If their number is not `N`.
    pub fn positional<const N: usize>(&mut self, meanings: [&str; N]) -> Result<[String; N], String> {
        let found = self.positional.len();
        std::mem::take(&mut self.positional)
            .try_into()
            .map_err(|_| format!("expected {}; found {found}", meanings.join(", then ")))
    }

    /// The value of `key`, or its default, parsed as a `T`.
    ///
    /// # Errors
    /// If the value is not a `T`, or a required key is not given.
    pub fn take<T>(&mut self, key: &str) -> Result<T, ParamError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let default =
            self.defaults.iter().find(|(known, _)| *known == key).map_or("", |(_, default)| *default);
        let value = match self.given.iter().position(|(given, _)| given == key) {
            Some(position) => self.given.remove(position).1,
            None if default.is_empty() => {
                return Err(ParamError::Missing { owner: self.owner, key: key.to_string() });
            }
            None => default.to_string(),
        };
        if value.is_empty() {
            return Err(self.bad(key, "", "a value must be given"));
        }
        value.parse().map_err(|error: T::Err| match std::any::type_name::<T>() {
            // Errors of the standard library describe a wrong digit, but not what is expected.
            "f64" => self.bad(key, &value, "expected a number such as 1.5e-6"),
            "u16" | "u32" | "u64" | "usize" => {
                self.bad(key, &value, "expected a whole number of at least 0 that is not too large")
            }
            _ => self.bad(key, &value, error),
        })
    }

    /// The value of `key`, a spec in square brackets, without them.
    ///
    /// # Errors
    /// If it is not in brackets.
    pub fn take_bracketed(&mut self, key: &str) -> Result<String, ParamError> {
        let value: String = self.take(key)?;
        let spec = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let spec = spec
            .filter(|spec| nesting(spec, ['[', ']']).is_some_and(|depth| depth < MOST_NESTED))
            .map(str::to_owned);
        spec.ok_or_else(|| {
            let expected = format!(
                "expected a spec in square brackets, as in {key}=[NAME], with at most {MOST_NESTED} brackets in each other"
            );
            self.bad(key, &value, expected)
        })
    }

    /// The value of `key`, a count from 1 to `most`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_count(&mut self, key: &str, most: usize) -> Result<usize, ParamError> {
        let value: String = self.take(key)?;
        let count = value.parse().ok().filter(|count| (1..=most).contains(count));
        count.ok_or_else(|| self.bad(key, &value, format!("expected a number from 1 to {most}")))
    }

    /// As [`Params::take_count`], or `None` if the value is the word `auto`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_count_or_auto(&mut self, key: &str, most: usize) -> Result<Option<usize>, ParamError> {
        let value: String = self.take(key)?;
        match value.parse() {
            _ if value == "auto" => Ok(None),
            Ok(count) if (1..=most).contains(&count) => Ok(Some(count)),
            _ => Err(self.bad(key, &value, format!("expected `auto` or a number from 1 to {most}"))),
        }
    }

    /// The allowed imbalance, max/avg - 1, from the key `imbalance`.
    ///
    /// # Errors
    /// If it is negative or above [`MAX_IMBALANCE`].
    pub fn take_imbalance(&mut self) -> Result<f64, ParamError> {
        let imbalance: f64 = self.take("imbalance")?;
        if (0.0..=MAX_IMBALANCE).contains(&imbalance) {
            return Ok(imbalance);
        }
        let expected = format!("the allowed max/avg - 1 is a number from 0 to {MAX_IMBALANCE}, such as 0.05");
        Err(self.bad("imbalance", &imbalance.to_string(), expected))
    }

    /// True for the value `on`, false for `off`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_switch(&mut self, key: &str) -> Result<bool, ParamError> {
        match self.take::<String>(key)?.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            value => Err(self.bad(key, value, "expected `on` or `off`")),
        }
    }

    /// A number above 0, or `None` if the value is the word `otherwise`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_positive(&mut self, key: &str, otherwise: &str) -> Result<Option<f64>, ParamError> {
        let value: String = self.take(key)?;
        if value == otherwise {
            return Ok(None);
        }
        match value.parse() {
            Ok(number) if is_positive(number) => Ok(Some(number)),
            _ => Err(self.bad(key, &value, format!("expected a number above 0, or `{otherwise}`"))),
        }
    }

    /// A time in seconds: a finite number of at least 0.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_seconds(&mut self, key: &str) -> Result<f64, ParamError> {
        let seconds: f64 = self.take(key)?;
        if are_seconds(seconds) {
            return Ok(seconds);
        }
        Err(self.bad(key, &seconds.to_string(), "a time in seconds is a number of at least 0"))
    }

    /// A time as in [`Params::take_seconds`], or `None` if the value is the word `otherwise`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_seconds_or(&mut self, key: &str, otherwise: &str) -> Result<Option<f64>, ParamError> {
        let value: String = self.take(key)?;
        if value == otherwise {
            return Ok(None);
        }
        match value.parse() {
            Ok(seconds) if are_seconds(seconds) => Ok(Some(seconds)),
            _ => Err(self.bad(key, &value, format!("expected seconds, at least 0, or `{otherwise}`"))),
        }
    }

    /// A number of bytes as in [`parse_bytes`], or `None` if the value is the word `auto`.
    ///
    /// # Errors
    /// For any other value.
    pub fn take_bytes_or_auto(&mut self, key: &str) -> Result<Option<u64>, ParamError> {
        let value: String = self.take(key)?;
        match value.as_str() {
            "auto" => Ok(None),
            text => match parse_bytes(text) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(expected) => Err(self.bad(key, &value, format!("{expected}, or auto"))),
            },
        }
    }

    /// The error for a value of `key` that names an unusable file.
    pub fn bad_file(&self, key: &str, value: &str, error: &impl Classified) -> ParamError {
        ParamError::BadFile {
            owner: self.owner,
            key: key.to_string(),
            value: value.to_string(),
            reason: error.to_string(),
            fault: error.fault(),
        }
    }

    /// The error for an invalid value of `key`.
    pub fn bad(&self, key: &str, value: &str, expected: impl fmt::Display) -> ParamError {
        ParamError::BadValue {
            owner: self.owner,
            key: key.to_string(),
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }
}

/// A number of bytes: `4096`, `1e9`, or with a unit, which is a power of 1024, `64k`, `512MB`, `1.5GiB`, `80G`.
///
/// # Errors
/// What is expected, if the text is not a whole number of bytes below 2^64.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let expected =
        || "expected bytes such as 4096, 44M or 1e9 (k, M, G and T are powers of 1024)".to_string();
    let number = text.strip_suffix(['B', 'b']).unwrap_or(text);
    let number = number.strip_suffix('i').filter(|_| number.len() < text.len()).unwrap_or(number);
    let units = ['k', 'm', 'g', 't'];
    let unit = number
        .chars()
        .last()
        .and_then(|last| units.iter().position(|&unit| last.eq_ignore_ascii_case(&unit)));
    let (number, unit) = match unit {
        Some(unit) => (&number[..number.len() - 1], 1u64 << (10 * (unit + 1))),
        None => (number, 1),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(expected);
    }
    // Above 2^53 not every whole number is a float.
    let bytes = number.parse::<f64>().unwrap_or(f64::NAN) * unit as f64;
    match (0.0..=2f64.powi(53)).contains(&bytes) && bytes.fract() == 0.0 {
        true => Ok(bytes as u64),
        false => Err(expected()),
    }
}

/// Whether a number is above 0 and in the range in which products and quotients with times stay finite.
pub fn is_positive(number: f64) -> bool {
    (1e-30..=1e30).contains(&number)
}

/// Whether a number is a time in seconds: at least 0, and small enough that sums of times stay finite.
pub fn are_seconds(number: f64) -> bool {
    (0.0..=1e30).contains(&number)
}

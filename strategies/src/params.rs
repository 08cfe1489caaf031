//! Parameters in specs: the `key=value,key=value` that stand after a name and a colon.

use std::fmt;
use std::str::FromStr;

use crate::spelling::{nearest, suggestion};

/// A key that something named in a spec takes.
pub struct Param {
    /// Its name in a spec.
    pub key: &'static str,
    /// Its value if none is given; empty if one must be given.
    pub default: &'static str,
    /// What it means, its unit and its values.
    pub help: &'static str,
}

impl Param {
    /// The key `imbalance`, which [`Params::take_imbalance`] takes.
    pub(crate) const fn imbalance(default: &'static str) -> Param {
        Param { key: "imbalance", default, help: "allowed max/avg - 1" }
    }
}

/// The parameters somebody gave in a spec, taken out one by one.
#[derive(Debug)]
pub struct Params {
    owner: &'static str,
    defaults: Vec<(&'static str, &'static str)>,
    given: Vec<(String, String)>,
}

/// A spec that names nothing known, or gives what it names something that it does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParamError {
    /// Nothing has that name.
    #[error("there is no {what} `{name}`{}; known are {known}", suggestion(.nearest))]
    Unknown {
        /// What it should have been the name of, as in `strategy`.
        what: &'static str,
        /// The name as written.
        name: String,
        /// The known name that is closest to it, if any is close.
        nearest: Option<String>,
        /// Every known name.
        known: String,
    },
    /// It takes no such key.
    #[error("{owner} takes no `{key}`{}; {known}", suggestion(.nearest))]
    UnknownKey {
        /// The name of what was given it.
        owner: &'static str,
        /// The key as written.
        key: String,
        /// The known key that is closest to it, if any is close.
        nearest: Option<String>,
        /// A phrase that names every key it takes.
        known: String,
    },
    /// A value that is not of the kind the key wants.
    #[error("{owner}:{key}={value} is not understood: {expected}")]
    BadValue {
        /// The name of what was given it.
        owner: &'static str,
        /// The key.
        key: String,
        /// The value as written.
        value: String,
        /// What was expected, or what went wrong.
        expected: String,
    },
    /// A spec that does not have the form of one.
    #[error("`{spec}` is not a {what}: {reason}")]
    Malformed {
        /// The spec as written.
        spec: String,
        /// What it should have been, as in `strategy`.
        what: &'static str,
        /// What is wrong with it and what was expected.
        reason: String,
    },
}

impl ParamError {
    /// The error for a `name` that is not among the `known` names of a `what`.
    pub(crate) fn unknown(what: &'static str, name: &str, known: &[&str]) -> ParamError {
        let nearest = nearest(name, known);
        ParamError::Unknown { what, name: name.to_string(), nearest, known: known.join(", ") }
    }
}

impl Params {
    /// What `make` makes of the `key=value,key=value` that were given to `owner`, which declares the keys
    /// `declared`.
    ///
    /// # Errors
    /// When the text does not have that form, a key is given twice or not declared, or `make` refuses.
    pub(crate) fn serve<T>(
        owner: &'static str,
        declared: &[Param],
        text: &str,
        make: impl FnOnce(&mut Params) -> Result<T, ParamError>,
    ) -> Result<T, ParamError> {
        let malformed = |reason: String| ParamError::Malformed {
            spec: format!("{owner}:{text}"),
            what: "list of parameters",
            reason,
        };
        let mut given: Vec<(String, String)> = Vec::new();
        for pair in text.split(',').filter(|_| !text.is_empty()) {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(malformed(format!("expected key=value, found `{pair}`")));
            };
            if given.iter().any(|(earlier, _)| earlier == key) {
                return Err(malformed(format!("`{key}` is given twice")));
            }
            given.push((key.to_string(), value.to_string()));
        }
        let defaults = declared.iter().map(|param| (param.key, param.default)).collect();
        let mut params = Params { owner, defaults, given };
        let made = make(&mut params);
        // A key nobody knows is the likelier cause of trouble, so it is named before a bad value.
        let keys: Vec<&str> = declared.iter().map(|param| param.key).collect();
        if let Some((key, _)) = params.given.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
            let known = match keys.as_slice() {
                [] => "it has no parameters".into(),
                keys => format!("known are {}", keys.join(", ")),
            };
            return Err(ParamError::UnknownKey {
                owner,
                key: key.clone(),
                nearest: nearest(key, &keys),
                known,
            });
        }
        debug_assert!(made.is_err() || params.given.is_empty(), "{owner} does not take {:?}", params.given);
        made
    }

    /// Takes all that is left, for a maker that has found another fault.
    pub(crate) fn forget(&mut self) {
        let declared: Vec<&str> = self.defaults.iter().map(|(key, _)| *key).collect();
        self.given.retain(|(key, _)| !declared.contains(&key.as_str()));
    }

    /// The value of `key`, or its default, as a `T`.
    ///
    /// # Errors
    /// If the value is not a `T`, or none is given for a key without a default.
    pub fn take<T>(&mut self, key: &str) -> Result<T, ParamError>
    where
        T: FromStr,
        T::Err: fmt::Display,
    {
        let default =
            self.defaults.iter().find(|(known, _)| *known == key).map_or("", |(_, default)| *default);
        let value = match self.given.iter().position(|(given, _)| given == key) {
            Some(position) => self.given.remove(position).1,
            None => default.to_string(),
        };
        if value.is_empty() {
            return Err(self.bad(key, "", "a value must be given"));
        }
        value.parse().map_err(|error: T::Err| match std::any::type_name::<T>() {
            // The standard library says what is wrong with a digit, not what is expected.
            "f64" => self.bad(key, &value, "a number is expected, as in 1.5e-6"),
            "u16" | "u32" | "u64" | "usize" => {
                self.bad(key, &value, "a whole number of at least 0 is expected, and not too large a one")
            }
            _ => self.bad(key, &value, error),
        })
    }

    /// The allowed imbalance, max/avg - 1: the value of the key `imbalance`.
    ///
    /// # Errors
    /// If it is not a finite number of at least 0.
    pub fn take_imbalance(&mut self) -> Result<f64, ParamError> {
        let imbalance: f64 = self.take("imbalance")?;
        if imbalance.is_finite() && imbalance >= 0.0 {
            return Ok(imbalance);
        }
        let expected = "the allowed max/avg - 1 is a number of at least 0, as in 0.05";
        Err(self.bad("imbalance", &imbalance.to_string(), expected))
    }

    /// Whether the value is `on`.
    ///
    /// # Errors
    /// If it is not `on` or `off`.
    pub fn take_switch(&mut self, key: &str) -> Result<bool, ParamError> {
        match self.take::<String>(key)?.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            value => Err(self.bad(key, value, "it is `on` or `off`")),
        }
    }

    /// A finite number above 0, or none if the value is the word `otherwise`.
    ///
    /// # Errors
    /// If it is neither.
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
    /// If it is not.
    pub fn take_seconds(&mut self, key: &str) -> Result<f64, ParamError> {
        let seconds: f64 = self.take(key)?;
        if are_seconds(seconds) {
            return Ok(seconds);
        }
        Err(self.bad(key, &seconds.to_string(), "a time in seconds is a number of at least 0"))
    }

    /// A time as [`Params::take_seconds`], or none if the value is the word `otherwise`.
    ///
    /// # Errors
    /// If it is neither.
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

    /// The error for a value of `key` that is understood and cannot be used.
    pub fn bad(&self, key: &str, value: &str, expected: impl fmt::Display) -> ParamError {
        ParamError::BadValue {
            owner: self.owner,
            key: key.to_string(),
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }
}
/// Whether a number is above 0, and so large and so small that times made of it are finite.
pub(crate) fn is_positive(number: f64) -> bool {
    (1e-30..=1e30).contains(&number)
}

/// Whether a number is a time in seconds of at least 0, and sums of such are finite.
pub(crate) fn are_seconds(number: f64) -> bool {
    (0.0..=1e30).contains(&number)
}

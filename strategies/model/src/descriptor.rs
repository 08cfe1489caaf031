//! Entries of registries: strategies, machines, networks, generators and file formats, with their names in specs.
//!
//! A spec is `NAME` or `NAME:arguments`. Every registry is a list of [`Descriptor`]s; [`find`] and [`help`] work for
//! all.

use std::fmt::Write as _;

use crate::params::{Param, ParamError};

/// An entry of a registry; `item` is the registry's own data, usually a constructor.
#[derive(Debug)]
pub struct Descriptor<T: 'static> {
    /// The name in a spec, before the colon.
    pub name: &'static str,
    /// The form of a spec, such as `torus:8x8x8`; empty if the form is `NAME:key=value,key=value`.
    pub form: &'static str,
    /// What the entry is and when to use it.
    pub help: &'static str,
    /// The accepted keys.
    pub params: &'static [Param],
    /// The registry's own data.
    pub item: T,
}

impl<T> Descriptor<T> {
    /// The help text of this entry: `title`, the description, and the keys with their defaults.
    pub fn entry(&self, title: &str) -> String {
        let mut text = format!("{title}\n    {}\n", self.help);
        for Param { key, default, help } in self.params {
            let required = if default.is_empty() { " (must be given)" } else { "" };
            let _ = writeln!(text, "    {key}={default}{required}: {help}");
        }
        text
    }

    /// The form of a spec, or the name if there is no special form.
    fn spec_form(&self) -> &'static str {
        if self.form.is_empty() { self.name } else { self.form }
    }
}

/// Finds the entry with a given name.
///
/// # Errors
/// If there is no such entry. The error lists the known entries; `what` is the noun for an entry, such as `strategy`.
pub fn find<'a, T>(
    what: &'static str,
    name: &str,
    all: impl IntoIterator<Item = &'a Descriptor<T>, IntoIter: Clone>,
) -> Result<&'a Descriptor<T>, ParamError> {
    let all = all.into_iter();
    all.clone().find(|entry| entry.name == name).ok_or_else(|| {
        let names: Vec<&str> = all.clone().map(|entry| entry.name).collect();
        let known: Vec<&str> = all.map(Descriptor::spec_form).collect();
        ParamError::unknown(what, name, &names, &known)
    })
}

/// The help text of all entries, each under its spec form.
pub fn help<'a, T: 'static>(all: impl IntoIterator<Item = &'a Descriptor<T>>) -> String {
    all.into_iter().map(|entry| entry.entry(entry.spec_form())).collect()
}

/// Splits a spec into its name and the text after the colon.
pub fn split(spec: &str) -> (&str, &str) {
    spec.split_once(':').unwrap_or((spec, ""))
}

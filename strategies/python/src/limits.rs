//! Constraints as the Python files of the package pass them.

use std::path::PathBuf;

use equipoise_model::constraints::{Constraints, Group, MaxObjects, PerPe, Place, files};
use equipoise_model::files::AtLine;
use equipoise_model::quote::quoted;
use equipoise_strategies::constrained::keep;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::max_moves::MaxMoves;
use pyo3::prelude::*;

use crate::errors::{of_file, raise, usage};

/// What a placement must keep.
#[derive(Default, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Limits {
    fixed: Option<Lines>,
    groups: Option<Lines>,
    max_objects: Option<Amount>,
    memory: Option<Amount>,
    phases: Option<Phases>,
    max_moves: Option<String>,
}

/// Lines, or a file of them as a tuple with one name.
#[derive(FromPyObject)]
enum Lines {
    Text(String),
    File((PathBuf,)),
}

/// A number or a file as a flag has it, a file as a tuple with one name, or a number for each PE.
#[derive(FromPyObject)]
enum Amount {
    Text(String),
    File((String,)),
    Each(Vec<u64>),
}

/// The id of each object with its load in each phase, or a file as a tuple with one name.
#[derive(FromPyObject)]
enum Phases {
    File((PathBuf,)),
    Each(Vec<(u64, Vec<f64>)>),
}

/// Lines that Python wrote: the number of the line is that of an entry.
fn entry(what: &str) -> impl Fn(AtLine) -> PyErr {
    move |(line, reason)| usage(format!("entry {line} of {what}: {reason}"))
}

impl Limits {
    /// The constraints. Sizes are those of the database.
    pub(crate) fn constraints(&self) -> PyResult<Constraints> {
        let has_others = self.max_objects.is_some()
            || self.memory.is_some()
            || self.groups.is_some()
            || self.phases.is_some();
        if self.max_moves.is_some() && has_others {
            let broken = "max_objects, memory, groups and phases may move more objects than max_moves allows";
            return Err(usage(format!("{broken}; leave one out")));
        }
        let max_objects = match &self.max_objects {
            None => None,
            Some(Amount::Text(text)) => Some(MaxObjects::read(text).map_err(raise)?),
            Some(Amount::File((name,))) => Some(MaxObjects::read(name).map_err(of_file)?),
            Some(Amount::Each(most)) => Some(MaxObjects { most: PerPe::Each(most.clone()), exact: false }),
        };
        let memory = |text: &String| PerPe::read("the bytes that PEs have for objects", text);
        let memory = match &self.memory {
            None => None,
            Some(Amount::Text(text)) => Some(memory(text).map_err(raise)?),
            Some(Amount::File((name,))) => Some(memory(name).map_err(of_file)?),
            Some(Amount::Each(bytes)) => Some(PerPe::Each(bytes.clone())),
        };
        let places = match &self.fixed {
            None => Vec::new(),
            Some(Lines::Text(text)) => Place::parse(text).map_err(entry("fixed"))?,
            Some(Lines::File((path,))) => Place::read(path).map_err(of_file)?,
        };
        let groups = match &self.groups {
            None => Vec::new(),
            Some(Lines::Text(text)) => Group::parse(text).map_err(entry("groups"))?,
            Some(Lines::File((path,))) => Group::read(path).map_err(of_file)?,
        };
        let phases = match &self.phases {
            None => Vec::new(),
            Some(Phases::Each(loads)) => loads.clone(),
            Some(Phases::File((path,))) => files::phases(path).map_err(of_file)?,
        };
        Ok(Constraints { max_objects, memory, places, groups, phases, ..Constraints::default() })
    }

    /// The same strategy, which keeps the limit of moves, and the constraints of its databases.
    pub(crate) fn keep(&self, choice: &Choice) -> PyResult<Choice> {
        let limited = match &self.max_moves {
            None => choice.clone(),
            Some(text) => {
                let most: MaxMoves = text
                    .parse()
                    .map_err(|reason| usage(format!("max_moves is `{}`: {reason}", quoted(text))))?;
                most.limit(choice)
            }
        };
        Ok(keep(&limited))
    }
}

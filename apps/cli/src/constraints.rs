//! The flags of constraints, which `map`, `evaluate`, `explain` and `replay` share.

use std::path::{Path, PathBuf};

use equipoise_apps::Failure;
use equipoise_model::constraints::{Constraints, Group, MaxObjects, PerPe, Place, files};
use equipoise_model::rules::Rules;
use equipoise_model::{Database, Topology};
use equipoise_strategies::StrategyError;

/// What a placement must keep.
#[derive(clap::Args)]
#[command(next_help_heading = "Constraints")]
pub(crate) struct ConstraintArgs {
    /// The largest number of objects on each PE, or a file with a number for each PE, one per line; with `,exact` each PE has exactly
    /// this number [default: as recorded, else any number]
    #[arg(long, value_name = "N|FILE[,exact]", allow_negative_numbers = true)]
    max_objects: Option<String>,

    /// The bytes that each PE has for objects, as in 80G, or a file with a number for each PE, one per line [default: as recorded, else any number]
    #[arg(long, value_name = "BYTES|FILE", allow_negative_numbers = true)]
    memory: Option<String>,

    /// The sizes of objects, for --memory: lines `object bytes` [default: as recorded]
    #[arg(long, value_name = "FILE", requires = "memory")]
    object_bytes: Option<PathBuf>,

    /// Where objects must be: lines `object places`; with a number of seconds where they should be
    ///
    /// Places are PEs, nodes and hosts, as in `7 3`, `7 0-3,8`, `7 node:2`, `7 host:n17`, or all but those, as in `7 !5`. In `7 node:2 0.5`, object 7 goes to node 2 if
    /// the slowest PE takes at most 0.5 s more for it.
    #[arg(long, value_name = "FILE")]
    fixed: Option<PathBuf>,

    /// Objects that must be together or apart: lines `together LEVEL objects` or `apart LEVEL objects`; the level is pe, node or switch
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,

    /// Loads by phase: lines `object seconds seconds ..` with a number for each phase; what counts is the sum over phases of the slowest PE
    #[arg(long, value_name = "FILE")]
    phases: Option<PathBuf>,
}

impl ConstraintArgs {
    /// The files that the flags name.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        let numbers = self.max_objects.iter().chain(&self.memory);
        let of_pes = numbers.map(|text| Path::new(text.strip_suffix(",exact").unwrap_or(text)));
        let others = [&self.object_bytes, &self.fixed, &self.groups, &self.phases];
        of_pes.chain(others.into_iter().flatten().map(PathBuf::as_path))
    }

    /// The constraints.
    pub(crate) fn read(&self) -> Result<Constraints, Failure> {
        let memory = self.memory.as_deref();
        Ok(Constraints {
            max_objects: self.max_objects.as_deref().map(MaxObjects::read).transpose()?,
            memory: memory
                .map(|text| PerPe::read("the bytes that PEs have for objects", text))
                .transpose()?,
            object_bytes: self.object_bytes.as_deref().map_or(Ok(Vec::new()), files::sizes)?,
            places: self.fixed.as_deref().map_or(Ok(Vec::new()), Place::read)?,
            groups: self.groups.as_deref().map_or(Ok(Vec::new()), Group::read)?,
            phases: self.phases.as_deref().map_or(Ok(Vec::new()), files::phases)?,
        })
    }

    /// The constraints of a placement that may have a limit of moves, which most constraints would break.
    pub(crate) fn read_beside(&self, max_moves: bool) -> Result<Constraints, Failure> {
        let has_others = self.max_objects.is_some()
            || self.memory.is_some()
            || self.groups.is_some()
            || self.phases.is_some();
        if max_moves && has_others {
            return Err(Failure::usage(
                "--max-objects, --memory, --groups and --phases may move more objects than --max-moves allows; leave one out",
            ));
        }
        self.read()
    }
}

/// Adds constraints of flags to those that the file of the tasks has recorded.
pub(crate) fn add(
    given: Constraints,
    database: &mut Database,
    file: &str,
    machine: &dyn Topology,
) -> Result<Rules, Failure> {
    given.add_to(database, machine)?;
    let rules = database.constraints.rules(database, machine);
    Ok(rules.map_err(|reason| StrategyError::Constraints(reason).of_recorded(file))?)
}

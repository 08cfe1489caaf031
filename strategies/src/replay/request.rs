//! Requests of a replay: the file, the steps, the machine and the strategies.
//!
//! `equipoise replay` and programs run with Charm++'s `+LBSim` share this code, so that their outputs are equal.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use equipoise_model::constraints::Constraints;
use equipoise_model::costs::Costs;
use equipoise_model::database::Dump;
use equipoise_model::topology::{self, Flat, MAX_PES};
use equipoise_model::{Database, Topology};

use super::{Comparison, Predictions, Replay, ReplayError, replay};
use crate::StrategyError;
use crate::constrained::keep;
use crate::descriptor::Choice;
use crate::max_moves::MaxMoves;
use crate::registry;

/// The options of a replay.
#[derive(Clone, Default)]
pub struct Request {
    /// A database file, or the base name of Charm++ dumps, as in [`Dump::read_steps`].
    pub path: PathBuf,
    /// The first step; `None` is the earliest step of the file.
    pub step: Option<u64>,
    /// The number of steps; `None` is 1 if `step` is given, else all.
    pub steps: Option<u64>,
    /// The number of PEs, as in [`Database::remap`]; `None` is the recorded number.
    pub pes: Option<usize>,
    /// The machine; `None` is the recorded machine if it has this number of PEs, else a flat machine.
    pub topology: Option<Arc<dyn Topology>>,
    /// The strategies to compare; if empty, all strategies without required parameters.
    pub strategies: Vec<Choice>,
    /// The largest numbers of moves: each strategy is replayed with each of them. If empty, once with any number.
    pub max_moves: Vec<MaxMoves>,
    /// What the placements must keep; kinds of which there are none are as recorded. The placements may move more objects than
    /// `max_moves` for it.
    pub constraints: Constraints,
    /// The seed of the random number generator.
    pub seed: u64,
    /// The number of periods until the next step for which the recommendation holds; `None` is 1.
    pub horizon: Option<f64>,
    /// What messages and migrations cost; `None` is as recorded.
    pub costs: Option<Costs>,
}

impl Request {
    /// Replays the requested steps; `now` returns the time since any fixed moment, as in [`replay`].
    ///
    /// # Errors
    /// If the file cannot be read or has no such step, or the errors of [`replay`].
    pub fn run(&self, now: impl FnMut(&str) -> Duration) -> Result<Comparison, ReplayError> {
        self.run_and(now, |_, _, _| {})
    }

    /// As [`Self::run`]; also calls `see` with the database, the machine and the result of each step, which reports need.
    ///
    /// # Errors
    /// As `run`.
    pub fn run_and(
        &self,
        mut now: impl FnMut(&str) -> Duration,
        mut see: impl FnMut(Database, &Arc<dyn Topology>, &Replay),
    ) -> Result<Comparison, ReplayError> {
        let count = self.steps.or(self.step.map(|_| 1));
        let dump = Dump::read_steps(&self.path, self.step, count)?;
        let choices = self.choices();
        let mut comparison =
            Comparison { program: dump.program, warnings: dump.warnings, ..Comparison::default() };
        comparison.horizon = self.horizon.unwrap_or(comparison.horizon);
        for database in dump.steps {
            let recorded = database.pes.len();
            let (database, machine) = self.prepared(database, &dump.topology)?;
            comparison.topology = machine.spec();
            let mut replayed = replay(&database, &*machine, &choices, self.seed, &mut now)
                .map_err(|error| self.blaming_file(error))?;
            replayed.recorded_pes = (recorded != replayed.database.pes).then_some(recorded);
            see(database, &machine, &replayed);
            comparison.replays.push(replayed);
        }
        Ok(comparison)
    }

    /// The strategies to compare, with the limits of moves and under the constraints of databases; where there are several limits, names
    /// say which.
    pub fn choices(&self) -> Vec<Choice> {
        let all = if self.strategies.is_empty() {
            &registry::without_required_parameters()
        } else {
            &self.strategies
        };
        let with_limits = |choice: &Choice| -> Vec<Choice> {
            let with = |most: &MaxMoves| {
                let limited = most.limit(choice);
                let spec = format!("{}, at most {most}", choice.spec);
                if self.max_moves.len() == 1 { limited } else { Choice { spec, ..limited } }
            };
            match self.max_moves.as_slice() {
                [] => vec![choice.clone()],
                limits => limits.iter().map(with).collect(),
            }
        };
        all.iter().flat_map(with_limits).map(|choice| keep(&choice)).collect()
    }

    /// Judges the predictors of loads by all requested steps, with the first of the strategies.
    ///
    /// # Errors
    /// If the file cannot be read or has only one such step, or the strategy gives no answer.
    pub fn predictions(&self) -> Result<Predictions, ReplayError> {
        let count = self.steps.or(self.step.map(|_| 1));
        let dump = Dump::read_steps(&self.path, self.step, count)?;
        let steps = dump.steps.into_iter().map(|database| self.prepared(database, &dump.topology));
        let (steps, machines): (Vec<_>, Vec<_>) = steps.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let choices = self.choices();
        let (Some(choice), Some(machine)) = (choices.first(), machines.first()) else {
            return Err(ReplayError::NoLaterStep);
        };
        let found = Predictions::of(dump.program, &steps, &**machine, choice, self.seed)
            .map_err(|error| self.blaming_file(error))?;
        Ok(Predictions { warnings: dump.warnings, ..found })
    }

    /// A step with the requested PEs, costs and constraints, and its machine.
    fn prepared(
        &self,
        database: Database,
        recorded: &str,
    ) -> Result<(Database, Arc<dyn Topology>), ReplayError> {
        let mut database = self.remapped(database)?;
        database.costs = self.costs.clone().or(database.costs);
        let machine = self.machine(recorded, database.pes.len())?;
        // For a machine with another number of PEs the replay is refused.
        if database.pes.len() == machine.pes() {
            self.constraints.clone().add_to(&mut database, &*machine)?;
            // Those of flags are about this machine: what is wrong now was recorded.
            let rules = database.constraints.rules(&database, &*machine);
            rules.map_err(|reason| self.recorded_in_file(StrategyError::Constraints(reason)))?;
        }
        Ok((database, machine))
    }

    /// The same error; of constraints that only the file has, it names the file.
    fn blaming_file(&self, error: ReplayError) -> ReplayError {
        match error {
            ReplayError::Strategy { name, step, error } if self.constraints.is_empty() => {
                ReplayError::Strategy { name, step, error: self.recorded_in_file(error) }
            }
            other => other,
        }
    }

    fn recorded_in_file(&self, error: StrategyError) -> StrategyError {
        error.of_recorded(&self.path.display().to_string())
    }

    fn remapped(&self, database: Database) -> Result<Database, ReplayError> {
        match self.pes {
            None => Ok(database),
            Some(pes) if (1..=MAX_PES).contains(&pes) => Ok(database.remap(pes as u32)),
            Some(pes) => Err(ReplayError::NumberOfPes { pes }),
        }
    }

    fn machine(&self, recorded: &str, pes: usize) -> Result<Arc<dyn Topology>, ReplayError> {
        let Some(machine) = &self.topology else { return recorded_machine(recorded, pes) };
        match self.pes {
            Some(pes) if pes != machine.pes() => {
                Err(ReplayError::OtherPes { pes, topology: machine.spec(), others: machine.pes() })
            }
            _ => Ok(Arc::clone(machine)),
        }
    }
}

/// The machine with the spec `recorded` if it has this number of PEs, else a flat machine.
///
/// # Errors
/// If the spec is not understood, or there is no machine with so few or many PEs.
pub fn recorded_machine(recorded: &str, pes: usize) -> Result<Arc<dyn Topology>, ReplayError> {
    let unknown = |reason: String| ReplayError::Topology { spec: recorded.to_string(), reason };
    if !recorded.is_empty() {
        let machine = topology::parse(recorded).map_err(|error| unknown(error.reason))?;
        if machine.pes() == pes {
            return Ok(machine);
        }
    }
    Ok(Arc::new(Flat::new(pes).map_err(|_| ReplayError::NumberOfPes { pes })?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use equipoise_model::constraints::{Group, Level};

    use super::*;
    use crate::testing;

    /// A file with steps 3, 4 and 5 of two objects on two PEs of `topology`.
    fn file(folder: &Path, topology: &str) -> PathBuf {
        let step = |step| Database { step, ..testing::database(2, &[(1.0, 0), (3.0, 0)]) };
        let path = folder.join("lb.db");
        let dump = Dump {
            program: "pairs".into(),
            topology: topology.into(),
            steps: [3, 4, 5].map(step).into(),
            ..Dump::default()
        };
        dump.write(&path).expect("a temporary file can be written");
        path
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Request), expected: Result<(&str, &[u64]), &str>) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let mut request = Request { path: file(folder.path(), "torus:2"), ..Request::default() };
        change(&mut request);
        match (request.run(|_| Duration::ZERO), expected) {
            (Ok(found), Ok((topology, steps))) => {
                assert_eq!(found.topology, topology);
                assert_eq!(
                    found.replays.iter().map(|replay| replay.database.step).collect::<Vec<_>>(),
                    steps
                );
                assert!(found.replays.iter().all(|replay| !replay.strategies.is_empty()));
                assert_eq!(found.program, "pairs");
            }
            (Err(error), Err(sentence)) => {
                assert!(error.to_string().contains(sentence), "`{error}` does not contain `{sentence}`");
            }
            (found, _) => panic!("expected {expected:?}, found {found:?}"),
        }
    }

    #[test]
    fn the_requested_steps_are_replayed() {
        check(|_| (), Ok(("torus:2", &[3, 4, 5])));
        check(|request| request.step = Some(4), Ok(("torus:2", &[4])));
        check(|request| (request.step, request.steps) = (Some(4), Some(2)), Ok(("torus:2", &[4, 5])));
        check(|request| request.steps = Some(2), Ok(("torus:2", &[3, 4])));
        check(|request| request.step = Some(6), Err("has no step 6"));
        check(|request| request.path = "no/such/file".into(), Err("cannot read the database `no/such/file`"));
    }

    #[test]
    fn the_machine_is_the_recorded_one_unless_another_is_given() {
        let mesh = topology::parse("mesh:2").expect("a machine");
        check(|request| request.topology = Some(mesh.clone()), Ok(("mesh:2", &[3, 4, 5])));
        check(|request| request.pes = Some(5), Ok(("flat:5", &[3, 4, 5])));
        check(
            |request| (request.pes, request.topology) = (Some(3), Some(mesh.clone())),
            Err("`mesh:2` has 2"),
        );
        check(|request| request.pes = Some(0), Err("give a number from 1 to"));
        check(|request| request.pes = Some(usize::MAX), Err("give a number from 1 to"));
        let unknown = |request: &mut Request| {
            request.path = file(request.path.parent().expect("the file is in a folder"), "moebius:7");
        };
        check(unknown, Err("was recorded on `moebius:7`"));
    }

    #[test]
    fn predictions_keep_constraints_and_are_for_one_machine() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let greedy = registry::parse("GreedyLB", &[]).expect("a strategy");
        let request =
            Request { path: file(folder.path(), "torus:2"), strategies: vec![greedy], ..Request::default() };
        let known = |request: &Request| request.predictions().map(|found| found.predictors[0].max_over_avg);
        // Loads 1 and 3: apart, or both on one PE.
        assert_eq!(known(&request).ok(), Some(1.5));
        let together = Group { together: true, level: Level::Pe, objects: vec![0, 1] };
        let constraints = Constraints { groups: vec![together], ..Constraints::default() };
        assert_eq!(known(&Request { constraints, ..request.clone() }).ok(), Some(2.0));

        let of_pes = |step, pes| Database { step, ..testing::database(pes, &[(1.0, 0), (3.0, 0)]) };
        let dump = Dump { steps: vec![of_pes(3, 2), of_pes(4, 3)], ..Dump::default() };
        dump.write(&request.path).expect("a file can be written");
        let error = known(&request).expect_err("the second step is of another machine").to_string();
        assert!(error.contains("3 PEs") && error.contains("`flat:2`"), "{error}");
    }
}

//! What other strategies would have done at a recorded load-balancing step.
//!
//! Each strategy starts from the recorded placement, and its answer is checked before it is believed.
//! Of a dump with several steps each is replayed by itself: what a strategy would have done at one step
//! changes nothing about the record of the next.
//!
//! [`replay()`] does one step; a [`Request`] is what a command line asks for, and a [`Comparison`] what it
//! shows.

use std::time::Duration;

use serde::Serialize;

use crate::assignment::Impossible;
use crate::cost::Metrics;
use crate::database::{DatabaseError, Inconsistent, Summary};
use crate::registry::Choice;
use crate::strategy::guarded;
use crate::topology::MAX_PES;
use crate::{Assignment, Database, StrategyError, Topology};

mod comparison;
mod request;
mod total;

pub use comparison::Comparison;
pub use request::Request;

/// One step, and what each strategy would have made of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    /// What was recorded.
    pub database: Summary,
    /// What the recorded placement costs.
    pub before: Metrics,
    /// The strategies that gave an answer, in the order they were asked.
    pub strategies: Vec<Row>,
    /// The strategies that cannot serve this step, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// A strategy that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Its spec.
    pub name: String,
    /// Its reason, a sentence with the remedy.
    pub error: String,
}

/// What one strategy would have done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its spec.
    pub name: String,
    /// How long it thought.
    pub seconds: f64,
    /// Objects it moved.
    pub migrations: u64,
    /// Their encoded sizes in all; `None` when one of them was never measured.
    pub migrated_bytes: Option<u64>,
    /// What its placement costs.
    pub after: Metrics,
    /// What it had to say about its work, as [`Assignment::notes`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<(String, f64)>,
    /// The PE of each object in its answer.
    #[serde(skip)]
    pub pe_of: Vec<u32>,
}

/// Why a step was not replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The file cannot be read or does not hold the step.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A number of PEs that no machine has.
    #[error("the step cannot be replayed on {pes} PEs; give a number from 1 to {MAX_PES}")]
    NumberOfPes {
        /// PEs asked for.
        pes: usize,
    },
    /// The recorded machine is unknown here.
    #[error("the database was recorded on `{spec}`, which is not known here: {reason}; give a topology")]
    Topology {
        /// The spec in the database.
        spec: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The database is not whole.
    #[error("step {step} of the database is inconsistent: {inconsistent}")]
    Inconsistent {
        /// The step.
        step: u64,
        /// What is wrong with it.
        inconsistent: Inconsistent,
    },
    /// The machine is of another size.
    #[error(
        "the database was recorded on {recorded} PEs and the topology `{topology}` has {pes}; \
         give a topology of {recorded} PEs, or ask what would be on {pes} PEs with --pes {pes}"
    )]
    Pes {
        /// PEs of the database.
        recorded: usize,
        /// The spec of the machine.
        topology: String,
        /// PEs of the machine.
        pes: usize,
    },
    /// No strategy can serve this database on this machine; the first of them says why.
    #[error("{name} gave no answer for step {step}: {error}")]
    Strategy {
        /// The strategy.
        name: String,
        /// The step.
        step: u64,
        /// Its reason.
        error: StrategyError,
    },
    /// A strategy gave an answer that cannot be carried out.
    #[error(
        "{name} gave an impossible answer for step {step}: {impossible}; this is a mistake in the strategy"
    )]
    Impossible {
        /// The strategy.
        name: String,
        /// The step.
        step: u64,
        /// What is impossible about it.
        impossible: Impossible,
    },
}

impl ReplayError {
    /// Whether it is what was asked for that cannot be, and another request is the remedy; otherwise the
    /// file is broken, or a strategy cannot serve it.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            ReplayError::Database(error) => error.is_of_the_request(),
            ReplayError::NumberOfPes { .. } | ReplayError::Topology { .. } | ReplayError::Pes { .. } => true,
            ReplayError::Strategy { error, .. } => error.is_of_the_request(),
            ReplayError::Inconsistent { .. } | ReplayError::Impossible { .. } => false,
        }
    }
}

/// Why a strategy that looks at communication is not asked about a step that does not have it.
const NOT_RECORDED: &str = "it places objects by their communication, which was not recorded; run the program with \
     --lb-comm on";

/// Asks each of `strategies` where the objects of `database` should have gone on `topology`.
///
/// `now` is the time since any fixed moment; it is read before and after a strategy runs, because this
/// crate has no clock.
///
/// # Errors
/// When the database is not whole or not of the machine's size, no strategy gives an answer or
/// one gives an impossible one.
pub fn replay(
    database: &Database,
    topology: &dyn Topology,
    strategies: &[Choice],
    seed: u64,
    mut now: impl FnMut() -> Duration,
) -> Result<Replay, ReplayError> {
    let step = database.step;
    database.check().map_err(|inconsistent| ReplayError::Inconsistent { step, inconsistent })?;
    let (recorded, pes) = (database.pes.len(), topology.pes());
    if recorded != pes {
        return Err(ReplayError::Pes { recorded, topology: topology.spec(), pes });
    }
    let (mut rows, mut refused) = (Vec::with_capacity(strategies.len()), Vec::new());
    for choice in strategies {
        let name = choice.spec.clone();
        if choice.needs_communication && !database.communication_recorded {
            refused.push((name, StrategyError::Data(NOT_RECORDED.into())));
            continue;
        }
        let begin = now();
        let answer = guarded(|| choice.strategy.assign(database, topology, seed));
        let seconds = now().saturating_sub(begin).as_secs_f64();
        let assignment = match answer {
            Ok(assignment) => assignment,
            Err(error) => {
                refused.push((name, error));
                continue;
            }
        };
        if let Err(impossible) = assignment.check(database) {
            return Err(ReplayError::Impossible { name, step, impossible });
        }
        let after = Metrics::full(database, topology, &assignment.pe_of);
        let (migrations, migrated_bytes) = (after.migrations, after.migrated_bytes);
        let Assignment { pe_of, notes } = assignment;
        rows.push(Row { name, seconds, migrations, migrated_bytes, after, notes, pe_of });
    }
    if rows.is_empty() && !refused.is_empty() {
        let (name, error) = refused.swap_remove(0);
        return Err(ReplayError::Strategy { name, step, error });
    }
    let refusal = |(name, error): (String, StrategyError)| Refusal { name, error: error.to_string() };
    let refusals = refused.into_iter().map(refusal).collect();
    let before = Metrics::full(database, topology, &database.placement());
    Ok(Replay { database: database.summary(), before, strategies: rows, refusals })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;
    use crate::database::{Dump, Edge, End};
    use crate::{Strategy, registry, testing, topology};

    /// A strategy that always gives the same answer.
    struct Fixed(Result<Vec<u32>, StrategyError>);

    impl Strategy for Fixed {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            self.0.clone().map(Assignment::new)
        }
    }

    /// It never comes to an answer.
    struct Falls;

    impl Strategy for Falls {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            panic!("it fell over")
        }
    }

    #[test]
    fn a_strategy_that_panics_takes_no_other_with_it() {
        let falls = Choice { spec: "FallLB".into(), strategy: Arc::new(Falls), needs_communication: false };
        let machine = topology::parse("flat:2").expect("a machine");
        let both = [falls.clone(), fixed("StayLB", Ok(vec![0; 4]))];
        let told = replay(&row_of_four(), &*machine, &both, 0, clock()).expect("one has an answer");
        assert_eq!((told.strategies.len(), told.strategies[0].name.as_str()), (1, "StayLB"));
        assert!(told.refusals[0].error.contains("it panicked: it fell over"), "{:?}", told.refusals);
        let error =
            replay(&row_of_four(), &*machine, &[falls], 0, clock()).expect_err("nobody has an answer");
        assert!(!error.is_of_the_request() && error.to_string().contains("it fell over"), "{error}");
        let refused =
            replay(&row_of_four(), &*machine, &[fixed("NoLB", Err("no square; make one"))], 0, clock())
                .expect_err("refused");
        assert!(refused.is_of_the_request(), "{refused}");
    }

    fn fixed(name: &str, answer: Result<Vec<u32>, &str>) -> Choice {
        let strategy = Arc::new(Fixed(answer.map_err(|e| StrategyError::Request(e.into()))));
        Choice { spec: name.into(), strategy, needs_communication: false }
    }

    /// A clock that advances by half a second each time it is read.
    fn clock() -> impl FnMut() -> Duration {
        let mut time = Duration::ZERO;
        move || {
            time += Duration::from_millis(500);
            time
        }
    }

    /// 4 objects on PE 0 of 2, in a row, the last of which must stay.
    fn row_of_four() -> Database {
        let mut database = testing::database(2, &[(1.0, 0), (2.0, 0), (3.0, 0), (4.0, 0)]);
        database.objects[3].migratable = false;
        database.objects[0].bytes = Some(100);
        let edge = |i| Edge { from: End::Object(i), to: End::Object(i + 1), messages: 1, bytes: 10 };
        database.edges = (0..3).map(edge).collect();
        database
    }

    #[test]
    fn each_strategy_gets_a_row_and_starts_from_the_record() {
        let strategies = [fixed("first", Ok(vec![1, 0, 0, 0])), fixed("second", Ok(vec![0, 1, 1, 0]))];
        let machine = topology::parse("flat:2").unwrap();
        let replay = replay(&row_of_four(), &*machine, &strategies, 0, clock()).unwrap();
        let hop_bytes = |metrics: &Metrics| metrics.communication.expect("it was recorded").hop_bytes;
        assert_eq!((replay.before.max_load_seconds, hop_bytes(&replay.before)), (10.0, 0));
        let rows = replay.strategies.iter().map(|row| {
            let after = &row.after;
            (
                row.name.as_str(),
                row.seconds,
                row.migrations,
                row.migrated_bytes,
                after.max_load_seconds,
                hop_bytes(after),
            )
        });
        let expected = [("first", 0.5, 1, Some(100), 9.0, 10), ("second", 0.5, 2, None, 5.0, 20)];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
        let json = serde_json::to_value(&replay).unwrap();
        assert_eq!(json["strategies"][0]["migrated_bytes"], 100);
        assert_eq!(json["strategies"][1]["after"]["hop_bytes"], 20);
        assert_eq!(json["before"]["imbalance"], 1.0);
        assert_eq!(json["database"]["objects"], 4);
    }

    #[test]
    fn a_strategy_that_refuses_does_not_take_the_others_with_it() {
        let strategies = [fixed("Picky", Err("no square; make one")), fixed("Any", Ok(vec![1, 0, 0, 0]))];
        let machine = topology::parse("flat:2").unwrap();
        let replay = replay(&row_of_four(), &*machine, &strategies, 0, clock()).unwrap();
        let names: Vec<&str> = replay.strategies.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["Any"]);
        let json = serde_json::to_value(&replay).unwrap();
        assert_eq!(json["refusals"][0]["error"], "no square; make one");
        let comparison = Comparison { replays: vec![replay], ..Comparison::default() };
        let text = comparison.to_string();
        assert!(text.contains("\nNo answer from Picky: no square; make one.\n"), "{text}");
    }

    #[test]
    fn who_looks_at_communication_has_no_answer_where_it_was_not_recorded() {
        let silent = Database { communication_recorded: false, edges: Vec::new(), ..row_of_four() };
        let looks = Choice { needs_communication: true, ..fixed("LooksLB", Ok(vec![1, 0, 0, 0])) };
        let strategies = [looks, fixed("BlindLB", Ok(vec![0, 1, 1, 0]))];
        let machine = topology::parse("flat:2").unwrap();
        let replay = replay(&silent, &*machine, &strategies, 0, clock()).unwrap();
        let json = serde_json::to_value(&replay).unwrap();
        assert_eq!(
            (&json["strategies"][0]["name"], &json["refusals"][0]["name"]),
            (&"BlindLB".into(), &"LooksLB".into())
        );
        for (part, field) in [("database", "bytes"), ("database", "edges"), ("before", "total_bytes")] {
            assert_eq!(json[part].get(field), None, "{part} {field}");
        }
        let text = Comparison { replays: vec![replay], ..Comparison::default() }.to_string();
        assert!(text.contains(" of 10.0 s in all; communication was not recorded.\n"), "{text}");
        assert!(
            !text.contains("hops") && text.contains("No answer from LooksLB: it places objects by"),
            "{text}"
        );
    }

    #[track_caller]
    fn check_error(database: &Database, spec: &str, answer: Result<Vec<u32>, &str>, expected: &str) {
        let machine = topology::parse(spec).unwrap();
        let error =
            replay(database, &*machine, &[fixed("MyLB", answer)], 0, clock()).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn whatever_cannot_be_believed_is_an_error_that_names_it() {
        let good = row_of_four();
        let stay = || Ok(vec![0; 4]);
        check_error(&good, "flat:3", stay(), "recorded on 2 PEs and the topology `flat:3` has 3");
        check_error(&good, "flat:2", Err("no square"), "MyLB gave no answer for step 0: no square");
        check_error(
            &good,
            "flat:2",
            Ok(vec![0, 0, 2, 0]),
            "MyLB gave an impossible answer for step 0: it put object 2 on PE 2",
        );
        check_error(&good, "flat:2", Ok(vec![0, 0, 0, 1]), "it moved object 3, which is not migratable");
        check_error(&good, "flat:2", Ok(vec![0; 5]), "it placed 5 objects");
        let mut lost = row_of_four();
        lost.objects[1].pe = 7;
        check_error(&lost, "flat:2", stay(), "step 0 of the database is inconsistent: object 1 is on PE 7");
        let mut shut = row_of_four();
        shut.pes[1].available = false;
        check_error(&shut, "flat:2", Ok(vec![0, 1, 0, 0]), "PE 1, which is not available");
    }

    /// Databases to replay: a small one, and the dumps of real programs.
    fn databases() -> Vec<(String, Database)> {
        let dump = |path: PathBuf| {
            let database = Dump::read(&path).unwrap().steps.remove(0);
            (path.display().to_string(), database)
        };
        let small = ("a row of four".to_string(), row_of_four());
        [small].into_iter().chain(testing::charm_dumps().into_iter().map(dump)).collect()
    }

    #[test]
    fn every_strategy_has_a_row_with_what_its_answer_costs() {
        let strategies = registry::every();
        assert!(!strategies.is_empty());
        for (name, database) in databases() {
            let database = database.remap(8);
            let machine = topology::parse("torus:2x2x2").unwrap();
            let replay = replay(&database, &*machine, &strategies, 1, clock()).unwrap();
            let (rows, refusals) = (&replay.strategies, &replay.refusals);
            let answered = |spec: &String| rows.iter().any(|row| row.name == *spec);
            let refused = |spec: &String| refusals.iter().any(|refusal| refusal.name == *spec);
            assert!(
                strategies.iter().all(|choice| answered(&choice.spec) != refused(&choice.spec)),
                "{name}"
            );
            assert!(rows.len() > refusals.len(), "{name}: {refusals:?}");
            let recorded = ("(as recorded)".to_string(), &replay.before, database.placement());
            let rows = rows.iter().map(|row| (row.name.clone(), &row.after, row.pe_of.clone()));
            for (strategy, metrics, placement) in rows.chain([recorded]) {
                check_by_hand(&database, &placement, metrics, &format!("{strategy} on {name}"));
            }
        }
    }

    /// Adds up what `placement` costs on PEs of speed 1, and that nothing came or went.
    fn check_by_hand(database: &Database, placement: &[u32], metrics: &Metrics, name: &str) {
        let mut loads: Vec<f64> = database.pes.iter().map(|pe| pe.background_seconds).collect();
        let all: f64 =
            loads.iter().sum::<f64>() + database.objects.iter().map(|o| o.load_seconds).sum::<f64>();
        for (object, &pe) in database.objects.iter().zip(placement) {
            loads[pe as usize] += object.load_seconds;
        }
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
        assert!(close(loads.iter().sum(), all), "{name}");
        assert!(close(metrics.average_load_seconds * loads.len() as f64, all), "{name}");
        assert!(close(metrics.max_load_seconds, loads.into_iter().fold(0.0, f64::max)), "{name}");
        let pe = |end| match end {
            End::Object(object) => placement[object as usize],
            End::Pe(pe) => pe,
        };
        let (far, near): (Vec<&Edge>, Vec<&Edge>) =
            database.edges.iter().partition(|e| pe(e.from) != pe(e.to));
        let bytes = |edges: &[&Edge]| edges.iter().map(|edge| edge.bytes).sum::<u64>();
        let communication = metrics.communication.expect("it was recorded");
        assert_eq!(communication.remote_bytes, bytes(&far), "{name}");
        assert_eq!(communication.total_bytes, bytes(&far) + bytes(&near), "{name}");
        let moved = database.objects.iter().zip(placement).filter(|(o, pe)| o.pe != **pe).count();
        assert_eq!((metrics.objects, metrics.migrations), (placement.len(), moved as u64), "{name}");
    }
}

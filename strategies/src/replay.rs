//! Replays: compares the assignments of other strategies at a recorded load-balancing step.
//!
//! Each strategy starts from the recorded placement, and its assignment is checked. The steps of a dump are
//! replayed independently: the assignment of a strategy at one step does not change the record of the next.
//!
//! [`replay()`] replays one step. A [`Request`] has the options of a command line, a [`Comparison`] its output.

use std::time::Duration;

use serde::Serialize;

use equipoise_model::assignment::Note;
use equipoise_model::database::Summary;
use equipoise_model::{Assignment, Database, Topology};

use crate::StrategyError;
use crate::cost::{Metrics, stranded};
use crate::descriptor::Choice;
use crate::strategy::guarded;

mod choice;
mod comparison;
mod error;
mod predictions;
mod recommendation;
mod request;
mod times;
mod total;

pub use comparison::Comparison;
pub use error::ReplayError;
pub use predictions::Predictions;
pub use recommendation::Recommendation;
pub use request::{Request, recorded_machine};

/// A recorded step and the result of each strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Replay {
    /// The totals of the record.
    pub database: Summary,
    /// The number of PEs of the record, if it is another one: then the objects were placed in blocks, without the background of the PEs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded_pes: Option<usize>,
    /// The costs of the placement before.
    pub before: Metrics,
    /// Whether the placement before may be kept: no object must leave an unavailable PE, and it keeps all constraints.
    #[serde(skip)]
    pub may_keep: bool,
    /// The constraints that the placement before breaks, as of [`Rules::verdict`](equipoise_model::rules::Rules::verdict).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken_before: Option<String>,
    /// The strategies that gave an answer, in the order of the request.
    pub strategies: Vec<Row>,
    /// The strategies that gave no answer, in the same order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Refusal>,
}

/// A strategy that gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The spec.
    pub name: String,
    /// The reason, and what to do.
    pub error: String,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The result of one strategy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The spec.
    pub name: String,
    /// The running time of the strategy, in seconds.
    pub seconds: f64,
    /// The number of objects that migrate.
    pub migrations: u64,
    /// The total encoded size of these objects; `None` if the size of one was not measured.
    pub migrated_bytes: Option<u64>,
    /// The costs of the new placement.
    pub after: Metrics,
    /// Whether no other strategy is as good in largest load, hop-bytes and migrations, and better in one of them (the Pareto
    /// front). Loads that differ by rounding only are equal.
    pub on_front: bool,
    /// The [`Assignment::notes`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// The [`Assignment::sentence`].
    #[serde(skip)]
    pub sentence: Option<String>,
    /// The new PE of each object.
    #[serde(skip)]
    pub pe_of: Vec<u32>,
    /// The number of movable objects that stay on PEs that are not available: such an answer is not recommended.
    #[serde(skip_serializing_if = "is_zero")]
    pub stranded: u64,
}

/// The refusal of a strategy that reads communication, for a step without recorded communication.
const NOT_RECORDED: &str = "the strategy needs communication, which was not recorded; run the program with \
     --lb-comm on";

/// Runs each of `strategies` on `database` and `topology`.
///
/// `now` returns the time since any fixed moment, because this crate has no clock. It is read before and
/// after each strategy, with the name of the strategy.
///
/// # Errors
/// If the database is inconsistent, or its number of PEs differs from the topology. If no strategy gives an
/// answer, or an assignment is impossible.
pub fn replay(
    database: &Database,
    topology: &dyn Topology,
    strategies: &[Choice],
    seed: u64,
    mut now: impl FnMut(&str) -> Duration,
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
        let begin = now(&name);
        let answer = guarded(|| choice.strategy.assign(database, topology, seed));
        let seconds = now(&name).saturating_sub(begin).as_secs_f64();
        let assignment = match answer {
            Ok(assignment) => assignment,
            Err(error) => {
                refused.push((name, error));
                continue;
            }
        };
        if let Err(impossible) = assignment.check(database) {
            return Err(ReplayError::Rejected { step, error: StrategyError::rejected(&name, impossible) });
        }
        let after = Metrics::full(database, topology, &assignment.pe_of);
        let (migrations, migrated_bytes) = (after.migrations, after.migrated_bytes);
        let Assignment { pe_of, notes, sentence, .. } = assignment;
        let on_front = false;
        let stranded = stranded(database, &pe_of);
        rows.push(Row {
            name,
            seconds,
            migrations,
            migrated_bytes,
            after,
            on_front,
            notes,
            sentence,
            pe_of,
            stranded,
        });
    }
    choice::mark_front(&mut rows);
    if rows.is_empty() && !refused.is_empty() {
        let (name, error) = refused.swap_remove(0);
        return Err(ReplayError::Strategy { name, step, error });
    }
    let refusal = |(name, error): (String, StrategyError)| Refusal { name, error: error.to_string() };
    let refusals = refused.into_iter().map(refusal).collect();
    let before = Metrics::full(database, topology, &database.placement());
    // Strategies have refused constraints that are not about this database and machine.
    let rules = database.constraints.rules(database, topology).ok();
    let broken_before = rules.as_ref().and_then(|rules| rules.verdict(database, &database.placement()));
    let may_keep =
        rules.is_some() && broken_before.is_none() && stranded(database, &database.placement()) == 0;
    let database = database.summary();
    Ok(Replay { database, recorded_pes: None, before, may_keep, broken_before, strategies: rows, refusals })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use equipoise_model::database::{Dump, Edge, End};
    use equipoise_model::fault::{Classified, Fault};
    use equipoise_model::topology;

    use super::*;
    use crate::{Strategy, registry, testing};

    /// A strategy that always returns the same result.
    struct Fixed(Result<Vec<u32>, StrategyError>);

    impl Strategy for Fixed {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            self.0.clone().map(Assignment::new)
        }
    }

    /// A strategy that panics.
    struct Panicking;

    impl Strategy for Panicking {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            panic!("it fell over")
        }
    }

    #[test]
    fn a_panic_of_one_strategy_does_not_affect_the_others() {
        let panicking =
            Choice { spec: "PanicLB".into(), strategy: Arc::new(Panicking), needs_communication: false };
        let machine = topology::parse("flat:2").expect("a machine");
        let both = [panicking.clone(), fixed("StayLB", Ok(vec![0; 4]))];
        let replayed = replay(&row_of_four(), &*machine, &both, 0, clock()).expect("StayLB has an answer");
        assert_eq!((replayed.strategies.len(), replayed.strategies[0].name.as_str()), (1, "StayLB"));
        let refusal = &replayed.refusals[0].error;
        assert!(refusal.contains("the strategy panicked: it fell over"), "{refusal}");
        let error =
            replay(&row_of_four(), &*machine, &[panicking], 0, clock()).expect_err("the only one panics");
        assert!(error.fault() == Fault::Bug && error.to_string().contains("it fell over"), "{error}");
        let refused =
            replay(&row_of_four(), &*machine, &[fixed("NoLB", Err("no square; make one"))], 0, clock())
                .expect_err("refused");
        assert!(refused.fault() == Fault::Usage, "{refused}");
    }

    #[test]
    fn an_answer_that_leaves_objects_on_unavailable_pes_is_not_recommended() {
        let mut database = testing::database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        database.pes[2].available = false;
        let machine = topology::parse("flat:3").expect("a machine");
        let both = [fixed("StayLB", Ok(vec![0, 1, 2])), fixed("LeaveLB", Ok(vec![0, 1, 1]))];
        let replay = replay(&database, &*machine, &both, 0, clock()).expect("two answers");
        let rows = [&replay.strategies[0], &replay.strategies[1]];
        assert_eq!(rows.map(|row| (row.stranded, row.on_front)), [(1, false), (0, true)]);
        let comparison = Comparison { replays: vec![replay], ..Comparison::default() };
        let text = comparison.to_string();
        let expected = [
            "StayLB leaves 1 object on PEs that are not available, so it is not recommended.",
            "Recommended: LeaveLB. Some PEs are not available: the largest load is 2.00 s instead of 1.00 s; with ideal balance of the others 1.50 s.",
        ];
        assert!(expected.iter().all(|sentence| text.contains(sentence)), "{text}");
    }

    fn fixed(name: &str, answer: Result<Vec<u32>, &str>) -> Choice {
        let strategy = Arc::new(Fixed(answer.map_err(|e| StrategyError::Request(e.into()))));
        Choice { spec: name.into(), strategy, needs_communication: false }
    }

    /// A clock that advances by half a second each time it is read.
    fn clock() -> impl FnMut(&str) -> Duration {
        let mut time = Duration::ZERO;
        move |_| {
            time += Duration::from_millis(500);
            time
        }
    }

    /// 4 objects on PE 0 of 2 PEs; each communicates with the next. The last is not migratable.
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
        let hop_bytes =
            |metrics: &Metrics| metrics.communication.expect("communication was recorded").hop_bytes;
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
    fn a_refusal_of_one_strategy_does_not_affect_the_others() {
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
    fn strategies_that_read_communication_give_no_answer_if_it_was_not_recorded() {
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
        assert!(text.contains(" with a total load of 10.0 s; communication was not recorded.\n"), "{text}");
        assert!(
            !text.contains("hops") && text.contains("No answer from LooksLB: the strategy needs comm"),
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
    fn invalid_databases_machines_and_assignments_are_errors() {
        let good = row_of_four();
        let stay = || Ok(vec![0; 4]);
        check_error(&good, "flat:3", stay(), "recorded on 2 PEs and the topology `flat:3` has 3");
        check_error(&good, "flat:2", Err("no square"), "MyLB gave no answer for step 0: no square");
        check_error(
            &good,
            "flat:2",
            Ok(vec![0, 0, 2, 0]),
            "step 0: the assignment of MyLB was rejected: object 2 is on PE 2",
        );
        check_error(&good, "flat:2", Ok(vec![0, 0, 0, 1]), "object 3 is not migratable");
        check_error(&good, "flat:2", Ok(vec![0; 5]), "it has PEs for 5 objects");
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
    fn every_strategy_has_a_row_with_the_costs_of_its_assignment() {
        let strategies = registry::without_required_parameters();
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
                check_metrics(&database, &placement, metrics, &format!("{strategy} on {name}"));
            }
        }
    }

    /// Checks `metrics` by a second computation for PEs of speed 1, and that no object is lost or added.
    fn check_metrics(database: &Database, placement: &[u32], metrics: &Metrics, name: &str) {
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
        let communication = metrics.communication.expect("communication was recorded");
        assert_eq!(communication.remote_bytes, bytes(&far), "{name}");
        assert_eq!(communication.total_bytes, bytes(&far) + bytes(&near), "{name}");
        let moved = database.objects.iter().zip(placement).filter(|(o, pe)| o.pe != **pe).count();
        assert_eq!((metrics.objects, metrics.migrations), (placement.len(), moved as u64), "{name}");
    }
}

//! The report of `PoiseLB` on its assignment: the gain, its cost, and a bound of the possible gain.

use equipoise_model::assignment::Note;
use equipoise_model::table::{bytes, count, percent};
use equipoise_model::{Assignment, Database, Topology};

use super::bound::cost_bound;
use super::problem::Problem;
use crate::cost::Metrics;

/// The assignment, with notes on its gain and costs, and with the lower bound.
pub(super) fn report(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    block_of: &[u32],
) -> Assignment {
    let pe_of = problem.placement(database, block_of);
    let hop_bytes =
        |metrics: &Metrics| metrics.communication.map_or(0, |communication| communication.hop_bytes) as f64;
    let before = hop_bytes(&Metrics::of(database, topology, &database.placement()));
    let metrics = Metrics::of(database, topology, &pe_of);
    let after = hop_bytes(&metrics);
    let bound = cost_bound(problem, problem.most_load(block_of)) as f64;
    let least = (bound / problem.machine.last().scale as f64 * problem.unit).floor();
    debug_assert!(least <= after, "the lower bound is {least} hop-bytes, and this placement has {after}");
    Assignment {
        notes: vec![
            Note::new("hop-bytes before", before),
            Note::new("hop-bytes after", after),
            Note::new("hop-bytes at least", least),
        ],
        sentence: Some(sentence([before, after, least], metrics.migrations, metrics.migrated_bytes)),
        ..Assignment::new(pe_of)
    }
}

/// As in "Hop-bytes fell to 54.0 % of the previous value after moving 12 objects (3.00 kB); the lower bound with
/// balanced loads is 31.0 %.", from the hop-bytes before and after, the lower bound, the number of moved objects, and
/// their bytes.
fn sentence([before, after, least]: [f64; 3], migrations: u64, migrated_bytes: Option<u64>) -> String {
    let volume = migrated_bytes.map_or(String::new(), |sum| format!(" ({})", bytes(sum)));
    let cost = match migrations {
        0 => "without moving any object".into(),
        some => format!("after moving {}{volume}", count(some, "object")),
    };
    if before <= 0.0 {
        return match after > 0.0 {
            true => format!("No bytes crossed PEs before this step; for load balance, some do now, {cost}."),
            false => format!("No bytes cross PEs, {cost}."),
        };
    }
    let change = match percent(after / before) {
        same if same == percent(1.0) => "Hop-bytes are about unchanged".into(),
        part if after < before => format!("Hop-bytes fell to {part} of the previous value"),
        part => format!("Hop-bytes rose to {part} of the previous value"),
    };
    let rest = match least > 0.0 {
        true => format!("the lower bound with balanced loads is {}", percent(least / before)),
        false => "no lower bound is known".into(),
    };
    format!("{change} {cost}; {rest}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_states_the_gain_its_cost_and_the_bound() {
        assert_eq!(
            sentence([100.0, 54.0, 31.0], 1, None),
            "Hop-bytes fell to 54.0 % of the previous value after moving 1 object; the lower bound with balanced \
             loads is 31.0 %."
        );
        assert!(
            sentence([100.0, 120.0, 31.0], 0, Some(0))
                .starts_with("Hop-bytes rose to 120.0 % of the previous value without moving any object;")
        );
        assert!(
            sentence([100.0, 90.0, 0.0], 2, Some(3000))
                .contains("after moving 2 objects (3.00 kB); no lower")
        );
        assert!(
            sentence([1e6, 1e6 + 1.0, 0.0], 0, None).starts_with("Hop-bytes are about unchanged without")
        );
        assert_eq!(sentence([0.0, 0.0, 0.0], 0, None), "No bytes cross PEs, without moving any object.");
    }
}

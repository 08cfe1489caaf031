//! The report of `PoiseLB` on its assignment: the gain, its cost, and a bound of the possible gain.

use equipoise_model::assignment::Note;
use equipoise_model::table::{bytes, count, percent};
use equipoise_model::{Assignment, Database, Topology};

use super::bound::cost_bound;
use super::problem::Problem;
use crate::cost::Metrics;
use crate::cost::mcf::link_seconds;

/// The assignment, with notes on its gain and costs, and with the lower bound. With `is_timed`, distances were times of a byte, so that what
/// was minimised is the time of all links, which has no bound.
pub(super) fn report(
    problem: &Problem,
    database: &Database,
    topology: &dyn Topology,
    block_of: &[u32],
    is_timed: bool,
) -> Assignment {
    let (before, pe_of) = (database.placement(), problem.placement(database, block_of));
    let hop_bytes =
        |metrics: &Metrics| metrics.communication.map_or(0, |communication| communication.hop_bytes) as f64;
    let metrics = Metrics::of(database, topology, &pe_of);
    let after = hop_bytes(&metrics);
    let (notes, sentence) = if is_timed {
        let seconds =
            [&before, &pe_of].map(|pe_of| link_seconds(database, topology, pe_of).into_iter().sum::<f64>());
        let notes = vec![
            Note::new("link_seconds before", seconds[0]),
            Note::new("link_seconds after", seconds[1]),
            Note::new("hop-bytes after", after),
        ];
        (notes, sentence("Bytes over bandwidth, summed over all links,", seconds, "", &metrics))
    } else {
        let before = hop_bytes(&Metrics::of(database, topology, &before));
        // Placements are meant that are balanced in true loads, which integer loads exceed.
        let bound = cost_bound(problem, problem.most_load(block_of) + problem.rounding) as f64;
        let least = (bound / problem.machine.last().scale as f64 * problem.unit).floor();
        debug_assert!(least <= after, "the lower bound is {least} hop-bytes, and this placement has {after}");
        let notes = vec![
            Note::new("hop-bytes before", before),
            Note::new("hop-bytes after", after),
            Note::new("hop-bytes at least", least),
        ];
        (
            notes,
            sentence(
                "Hop-bytes",
                [before, after],
                &bound_text(before, least, problem.counts_objects),
                &metrics,
            ),
        )
    };
    Assignment { notes, sentence: Some(sentence), ..Assignment::new(pe_of) }
}

/// The end of the sentence, with a lower bound if one is known that is not rounded to nothing.
fn bound_text(before: f64, least: f64, counts_objects: bool) -> String {
    let balanced = if counts_objects { "numbers of objects" } else { "loads" };
    match least >= 0.0005 * before && least > 0.0 {
        true => format!("; no placement with balanced {balanced} has less than {}", percent(least / before)),
        false => String::new(),
    }
}

/// As in "Hop-bytes fell to 54.0 % of the previous value after moving 12 objects (3.00 kB); no placement with
/// balanced loads has less than 31.0 %.", from what fell, its values before and after, the end of the sentence, and the moves.
fn sentence(what: &str, [before, after]: [f64; 2], end: &str, metrics: &Metrics) -> String {
    let volume = metrics.migrated_bytes.map_or(String::new(), |sum| format!(" ({})", bytes(sum)));
    let cost = match metrics.migrations {
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
        _ if after == before => format!("{what} are unchanged"),
        same if same == percent(1.0) => format!("{what} are about unchanged"),
        part if after < before => format!("{what} fell to {part} of the previous value"),
        part => format!("{what} rose to {part} of the previous value"),
    };
    format!("{change} {cost}{end}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_states_the_gain_its_cost_and_the_bound() {
        let sentence = |[before, after, least]: [f64; 3], migrations, migrated_bytes| {
            let metrics = Metrics { migrations, migrated_bytes, ..Metrics::default() };
            sentence("Hop-bytes", [before, after], &bound_text(before, least, false), &metrics)
        };
        assert_eq!(
            sentence([100.0, 54.0, 31.0], 1, None),
            "Hop-bytes fell to 54.0 % of the previous value after moving 1 object; no placement with balanced \
             loads has less than 31.0 %."
        );
        assert_eq!(
            bound_text(100.0, 31.0, true),
            "; no placement with balanced numbers of objects has less than 31.0 %"
        );
        assert!(
            sentence([100.0, 120.0, 31.0], 0, Some(0))
                .starts_with("Hop-bytes rose to 120.0 % of the previous value without moving any object;")
        );
        assert!(sentence([100.0, 90.0, 0.0], 2, Some(3000)).ends_with("after moving 2 objects (3.00 kB)."));
        assert!(
            sentence([1e6, 1e6 + 1.0, 0.0], 0, None).starts_with("Hop-bytes are about unchanged without")
        );
        assert!(sentence([1e6, 1e6, 0.0], 2, None).starts_with("Hop-bytes are unchanged after moving 2"));
        assert_eq!(sentence([0.0, 0.0, 0.0], 0, None), "No bytes cross PEs, without moving any object.");
    }
}

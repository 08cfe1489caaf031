//! Which of the answers of a replay to recommend.
//!
//! Where the costs of messages are known, that with which the coming periods end first: the predicted time of a period, times the number
//! of periods until the next step (the horizon), plus the time to think and to move. Elsewhere a rule of thumb decides:
//!
//! The load of the heaviest PE (with phases, its sum over them) counts most, because all other PEs wait for it. But strategies that look at the machine leave some
//! percent of imbalance on purpose, where that saves many hop-bytes. So answers with up to 5 % more load than the least are
//! compared by the product of load to the power [`LOAD_WEIGHT`] and hop-bytes: each further percent of load must save about 10 % of the
//! hop-bytes. Moving all objects counts as much as one percent of load, so that almost equal answers are decided by moves. This is a rule
//! of thumb, because such a database does not say how long a hop-byte or a move takes.

use super::Row;
use crate::cost::is_lighter;

/// An answer with more than this part of load above the least is not recommended.
const MOST_LOAD: f64 = 0.05;

/// How many percent of hop-bytes one percent of load is worth.
const LOAD_WEIGHT: f64 = 10.0;

/// What moving all objects counts in the logarithm of hop-bytes: about 10 % of them.
const MOVES_WEIGHT: f64 = 0.1;

/// The relative difference up to which a load counts as the least, and below which hop-bytes are not worth a sentence.
pub(super) const TOLERANCE: f64 = 0.01;

/// Marks the rows of the Pareto front of largest load, hop-bytes and migrations, without those that leave objects on PEs that are not
/// available. O(n^2).
pub(super) fn mark_front(rows: &mut [Row]) {
    let beats = |a: &Row, b: &Row| {
        let [load, than] = [a, b].map(|row| row.after.slowest_seconds());
        let [hops, moves] = [hop_bytes(a).cmp(&hop_bytes(b)), a.migrations.cmp(&b.migrations)];
        let as_good = !is_lighter(than, load) && hops.is_le() && moves.is_le();
        as_good && (is_lighter(load, than) || hops.is_lt() || moves.is_lt())
    };
    let beats = |a: &Row, b: &Row| a.stranded == 0 && beats(a, b);
    let is_front = |row: &Row| row.stranded == 0 && !rows.iter().any(|other| beats(other, row));
    let front: Vec<bool> = rows.iter().map(is_front).collect();
    rows.iter_mut().zip(front).for_each(|(row, on_front)| row.on_front = on_front);
}

/// The row to recommend for `horizon` periods, of rows that are sums over `steps` steps. Ties are broken by the fewest migrations, then by load and position.
pub(super) fn best(rows: &[Row], horizon: f64, steps: usize) -> Option<&Row> {
    let coming: Option<Vec<f64>> = rows.iter().map(|row| coming_seconds(row, horizon)).collect();
    let Some(coming) = coming else { return best_by_rule(rows, steps) };
    let first = coming
        .iter()
        .zip(rows)
        .min_by(|(a, row), (b, other)| a.total_cmp(b).then(row.migrations.cmp(&other.migrations)));
    first.map(|(_, row)| row)
}

/// The predicted time of the coming periods with the answer of a row, with the time to think and to move; `None` if unknown.
fn coming_seconds(row: &Row, horizon: f64) -> Option<f64> {
    Some(horizon * row.after.step_seconds? + row.seconds + row.after.migration_seconds?)
}

/// The row to recommend where no time is known. It is on the front, because a row that is as good in everything has no higher score.
fn best_by_rule(rows: &[Row], steps: usize) -> Option<&Row> {
    let least = least_load(rows)?.after.slowest_seconds();
    let load = |row: &Row| if least > 0.0 { row.after.slowest_seconds() / least } else { 1.0 };
    // Logarithms, because products of hop-bytes and powers of loads could overflow.
    let score = |row: &Row| {
        let load = if load(row) <= 1.0 + TOLERANCE { 1.0 } else { load(row) };
        let moved = row.migrations as f64 / (row.after.objects * steps).max(1) as f64;
        LOAD_WEIGHT * load.ln() + (1.0 + hop_bytes(row) as f64).ln() + MOVES_WEIGHT * moved
    };
    let close = rows.iter().filter(|row| load(row) <= 1.0 + MOST_LOAD);
    close.min_by(|a, b| {
        score(a).total_cmp(&score(b)).then(a.migrations.cmp(&b.migrations)).then(load(a).total_cmp(&load(b)))
    })
}

/// The row whose heaviest PE has the least load; among equals the one with the fewest hop-bytes.
pub(super) fn least_load(rows: &[Row]) -> Option<&Row> {
    let load = |row: &Row| row.after.slowest_seconds();
    rows.iter().min_by(|a, b| load(a).total_cmp(&load(b)).then(hop_bytes(a).cmp(&hop_bytes(b))))
}

/// The hop-bytes of a row; 0 if unknown.
pub(super) fn hop_bytes(row: &Row) -> u128 {
    row.after.communication.map_or(0, |cost| cost.hop_bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cost::{Communication, Metrics};

    /// A row with this largest load, hop-bytes and migrations.
    pub(in crate::replay) fn row(max_load_seconds: f64, hop_bytes: u128, migrations: u64) -> Row {
        let communication = Some(Communication { hop_bytes, total_bytes: 100, ..Communication::default() });
        Row {
            name: format!("{max_load_seconds}-{hop_bytes}-{migrations}"),
            seconds: 0.0,
            migrations,
            migrated_bytes: None,
            after: Metrics { max_load_seconds, communication, migrations, ..Metrics::default() },
            on_front: false,
            notes: Vec::new(),
            sentence: None,
            pe_of: Vec::new(),
            stranded: 0,
        }
    }

    fn check_best(rows: &[Row], expected: usize) {
        assert_eq!(best(rows, 1.0, 1), Some(&rows[expected]));
    }

    #[test]
    fn a_little_load_is_given_for_many_hop_bytes() {
        check_best(&[row(1.0, 1174, 71), row(1.029, 83, 54)], 1);
        check_best(&[row(1.0, 100, 5), row(1.029, 80, 5)], 0);
        check_best(&[row(1.0, 1174, 71), row(1.06, 8, 54)], 0);
    }

    #[test]
    fn many_moves_must_save_many_hop_bytes() {
        let of_100 = |hop_bytes, migrations| {
            let mut row = row(1.0, hop_bytes, migrations);
            row.after.objects = 100;
            row
        };
        check_best(&[of_100(100, 90), of_100(105, 10)], 1);
        let rows = [of_100(100, 90), of_100(112, 10)];
        check_best(&rows, 0);
        // Sums over 10 steps: a tenth of the objects moves in each step.
        let sums = [of_100(100, 100), of_100(101, 10)];
        assert_eq!(best(&sums, 1.0, 10), Some(&sums[0]));
    }

    #[test]
    fn equals_are_decided_by_moves_and_position() {
        check_best(&[row(1.0, 90, 4), row(1.005, 90, 3), row(1.0, 90, 3)], 2);
        check_best(&[row(1.0, 90, 4), row(1.005, 90, 3)], 1);
        check_best(&[row(0.0, 0, 0), row(0.0, 0, 0)], 0);
        assert_eq!(best(&[], 1.0, 1), None);
    }

    #[test]
    fn where_times_are_known_the_shortest_coming_periods_decide() {
        let timed = |step_seconds, thinking, moving| {
            let mut row = row(step_seconds, 0, 7);
            (row.after.step_seconds, row.seconds, row.after.migration_seconds) =
                (Some(step_seconds), thinking, Some(moving));
            row
        };
        let rows = [timed(1.0, 0.0, 0.0), timed(0.8, 0.1, 0.2), timed(0.7, 2.0, 0.5)];
        for (horizon, expected) in [(1.0, 0), (2.0, 1), (100.0, 2)] {
            assert_eq!(best(&rows, horizon, 1), Some(&rows[expected]), "{horizon}");
        }
        // Where one time is unknown, none is compared.
        let unknown = [rows[0].clone(), row(0.5, 0, 7)];
        assert_eq!(best(&unknown, 1.0, 1), Some(&unknown[1]));
    }

    #[test]
    fn the_front_has_the_rows_that_no_other_beats() {
        let mut rows = [
            row(1.0, 100, 3),
            row(1.1, 90, 3),
            row(1.1, 90, 4),
            row(3.0, 10, 1),
            row(1.0, 100, 3),
            row(4.0, 10, 1),
        ];
        mark_front(&mut rows);
        assert_eq!(rows.map(|row| row.on_front), [true, true, false, true, true, false]);
    }
}

//! Which of the answers of a replay to recommend, and why.
//!
//! Where the costs of messages are known, that with which the coming periods end first: the predicted time of a period, times the number
//! of periods until the next step (the horizon), plus the time to think and to move. Elsewhere a rule of thumb decides:
//!
//! The load of the heaviest PE (with phases, its sum over them) counts most, because all other PEs wait for it. But strategies that look at the machine leave some
//! percent of imbalance on purpose, where that saves many hop-bytes. So answers with up to 5 % more load than the least are
//! compared by the product of load to the power [`LOAD_WEIGHT`] and hop-bytes: each further percent of load must save about 10 % of the
//! hop-bytes. Moving all objects counts as much as one percent of load, so that almost equal answers are decided by moves. This is a rule
//! of thumb, because such a database does not say how long a hop-byte or a move takes.

use equipoise_model::table::{bytes, count, seconds};
use equipoise_model::topology::DEFAULT_BANDWIDTH;

use super::{Replay, Row};
use crate::cost::{Metrics, is_lighter};

/// An answer with more than this part of load above the least is not recommended.
const MOST_LOAD: f64 = 0.05;

/// How many percent of hop-bytes one percent of load is worth.
const LOAD_WEIGHT: f64 = 10.0;

/// What moving all objects counts in the logarithm of hop-bytes: about 10 % of them.
const MOVES_WEIGHT: f64 = 0.1;

/// The relative difference up to which a load counts as the least, and below which hop-bytes are not worth a sentence.
const TOLERANCE: f64 = 0.01;

/// Marks the rows of the Pareto front of largest load, hop-bytes and migrations. O(n^2).
pub(super) fn mark_front(rows: &mut [Row]) {
    let beats = |a: &Row, b: &Row| {
        let [load, than] = [a, b].map(|row| row.after.slowest_seconds());
        let [hops, moves] = [hop_bytes(a).cmp(&hop_bytes(b)), a.migrations.cmp(&b.migrations)];
        let as_good = !is_lighter(than, load) && hops.is_le() && moves.is_le();
        as_good && (is_lighter(load, than) || hops.is_lt() || moves.is_lt())
    };
    let front: Vec<bool> = rows.iter().map(|row| !rows.iter().any(|other| beats(other, row))).collect();
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

/// Why `best` is recommended, for costs that are sums over `periods`, in sentences: the predicted time, what it gains and loses against the row with the
/// least load, and where no time is known what it loses against the placement before, whether messages may take longer than work, and what fewer moves
/// would give. Finally the row with the fewest hop-bytes, if they differ by more than [`TOLERANCE`].
pub(super) fn reasons(best: &Row, replay: &Replay, periods: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    sentences.extend(of_times(best, replay, periods));
    if best.after.step_seconds.is_none() {
        sentences.extend(of_links(best, replay, periods));
    }
    sentences.extend(of_load(best, &replay.strategies));
    if best.after.step_seconds.is_none() {
        sentences.extend(of_hops(best, &replay.before));
        sentences.extend(of_moves(best, replay));
    }
    sentences.extend(of_fewest_hops(best, &replay.strategies));
    sentences
}

/// The predicted times, if they are known.
fn of_times(best: &Row, replay: &Replay, periods: usize) -> Option<String> {
    let (after, before) = (best.after.step_seconds?, replay.before.step_seconds?);
    let each = if periods == 1 { "a period".into() } else { format!("for {periods} periods") };
    let is_loss = after > before;
    let [after, before] = [after, before].map(seconds);
    if after == before {
        return Some(format!("Predicted: {after} {each}, as before."));
    }
    let verdict = match (is_loss, replay.may_keep) {
        (false, _) => ".",
        (true, true) => ": that is a loss, so keep the placement before.",
        (true, false) => {
            ": that is a loss, so keep the placement before if constraints and available PEs allow it."
        }
    };
    Some(format!("Predicted: {after} instead of {before} {each}{verdict}"))
}

/// The name of what a row places; that of a strategy which moves nothing is the placement before.
fn name_of(row: &Row) -> &str {
    if row.migrations == 0 { "the placement before" } else { &row.name }
}

/// The row with the fewest hop-bytes, if it has notably fewer than `best`.
fn of_fewest_hops(best: &Row, rows: &[Row]) -> Option<String> {
    let cost = best.after.communication?;
    let load = |row: &Row| row.after.slowest_seconds();
    let fewest =
        rows.iter().min_by(|a, b| hop_bytes(a).cmp(&hop_bytes(b)).then(load(a).total_cmp(&load(b))))?;
    let least = fewest.after.communication?;
    if least.hop_bytes as f64 >= cost.hop_bytes as f64 * (1.0 - TOLERANCE) {
        return None;
    }
    let [load, than] = [fewest, best].map(|row| format!("{:.3}", row.after.imbalance + 1.0));
    let but = if load == than { String::new() } else { format!(", but max/avg {load} instead of {than}") };
    Some(format!(
        "Fewest hops per byte: {}, with {:.3} instead of {:.3}{but}.",
        name_of(fewest),
        least.hops_per_byte,
        cost.hops_per_byte,
    ))
}

/// What `best` gains and loses against the row with the least load, in hop-bytes or moves, or that no row with this load has fewer hop-bytes.
fn of_load(best: &Row, rows: &[Row]) -> Option<String> {
    let least = least_load(rows)?;
    let load = |row: &Row| row.after.slowest_seconds() / least.after.slowest_seconds() - 1.0;
    let fewer = |row: &Row| match hop_bytes(row) {
        same if same == hop_bytes(best) => 1.0,
        other => other as f64 / hop_bytes(best) as f64,
    };
    let gain = match fewer(least) {
        more if more < 1.0 - TOLERANCE => None,
        same if same <= 1.0 + TOLERANCE => (2 * best.migrations <= least.migrations)
            .then(|| format!("moves {} instead of {}", count(best.migrations, "object"), least.migrations)),
        few if few < 2.0 => Some(format!("{:.0} % fewer hop-bytes", 100.0 * (1.0 - 1.0 / few))),
        many if many < 1e6 => Some(format!("{many:.0} times fewer hop-bytes")),
        _ => Some("almost no hop-bytes".into()),
    };
    if let Some(gain) = gain.filter(|_| load(best) > 0.0) {
        let load = match 100.0 * load(best) {
            small if small < 0.1 => "less than 0.1".to_string(),
            percent => format!("{percent:.1}"),
        };
        return Some(format!("{} has {load} % more load than {} and {gain}.", best.name, least.name));
    }
    let close: Vec<&Row> = rows.iter().filter(|row| load(row) <= TOLERANCE).collect();
    let is_fewest = load(best) <= TOLERANCE && close.iter().all(|row| hop_bytes(row) >= hop_bytes(best));
    (is_fewest && close.iter().any(|row| fewer(row) > 1.0 + TOLERANCE))
        .then(|| format!("Of the balancers with the least load, {} has the fewest hop-bytes.", best.name))
}

/// Where no time is known: that messages travel farther than before, if they do.
fn of_hops(best: &Row, before: &Metrics) -> Option<String> {
    let (then, now) = before.communication.zip(best.after.communication)?;
    if now.hop_bytes as f64 <= then.hop_bytes as f64 * (1.0 + TOLERANCE) {
        return None;
    }
    let link = match (then.max_link_bytes, now.max_link_bytes) {
        (Some(then), Some(now)) if now > then => {
            format!(", and the busiest link carries {} instead of {}", bytes(now), bytes(then))
        }
        _ => String::new(),
    };
    let farther = format!("With {}, messages travel farther than before", best.name);
    Some(match [now, then].map(|cost| format!("{:.3}", cost.hops_per_byte)) {
        [now, then] if now == then => format!("{farther}{link}."),
        [now, then] => format!("{farther}: {now} hops per byte instead of {then}{link}."),
    })
}

/// Where no time is known: that messages may take longer than work, which the rule of thumb does not count, and the placement for which the longer of
/// both is shortest.
fn of_links(best: &Row, replay: &Replay, periods: usize) -> Option<String> {
    let link =
        |metrics: &Metrics| metrics.communication.and_then(|cost| cost.max_link_seconds).unwrap_or(0.0);
    let longer = |metrics: &Metrics| link(metrics).max(metrics.slowest_seconds());
    let (of_link, of_load) = (link(&best.after), best.after.slowest_seconds());
    if of_load <= 0.0 || of_link <= of_load {
        return None;
    }
    let all = if periods == 1 { String::new() } else { format!(" in all {periods} steps") };
    let bytes_of_link = best.after.communication?.max_link_bytes? as f64;
    // Sums over steps have the same ratio.
    let is_assumed = (bytes_of_link / of_link / DEFAULT_BANDWIDTH - 1.0).abs() < 1e-9;
    let assumed = match is_assumed {
        true => format!(", at {}/s, which --topology can change", bytes(DEFAULT_BANDWIDTH as u64)),
        false => String::new(),
    };
    let mut text = format!(
        "But the busiest link then needs {}{all}{assumed}, and the slowest PE {}: messages may decide, which this choice counts as hop-bytes only.",
        seconds(of_link),
        seconds(of_load),
    );
    let rows = replay.strategies.iter().map(|row| (name_of(row), &row.after));
    let before = replay.may_keep.then_some(("the placement before", &replay.before));
    let others = before.into_iter().chain(rows);
    let other = others.min_by(|(_, a), (_, b)| {
        longer(a).total_cmp(&longer(b)).then(a.slowest_seconds().total_cmp(&b.slowest_seconds()))
    });
    if let Some((name, metrics)) =
        other.filter(|(_, metrics)| longer(metrics) < longer(&best.after) * (1.0 - TOLERANCE))
    {
        let [link, load] = [link(metrics), metrics.slowest_seconds()].map(seconds);
        text += &format!(" If they do, choose {name}: its busiest link needs {link}, its slowest PE {load}.");
    }
    Some(text)
}

/// Where no time is known: what fewer moves, or none, would give.
fn of_moves(best: &Row, replay: &Replay) -> Option<String> {
    let Replay { before, strategies: rows, may_keep, .. } = replay;
    let moved = best.migrations;
    if moved == 0 {
        return None;
    }
    let more = |metrics: &Metrics| {
        let hop_bytes = |metrics: &Metrics| metrics.communication.map_or(0, |cost| cost.hop_bytes) as f64;
        hop_bytes(metrics) / hop_bytes(&best.after).max(1.0)
    };
    let has_load =
        |metrics: &Metrics| metrics.slowest_seconds() <= best.after.slowest_seconds() * (1.0 + TOLERANCE);
    if *may_keep && has_load(before) && more(before) <= 1.0 + TOLERANCE {
        let hop_bytes = if more(before) < 1.0 - TOLERANCE {
            "has as little load and fewer hop-bytes"
        } else {
            "is as good"
        };
        return Some(format!("The placement before {hop_bytes}."));
    }
    // Farther ways than those before would be no alternative.
    let is_near =
        |metrics: &Metrics| more(metrics) < 2.0 || more(metrics) <= more(before) * (1.0 + TOLERANCE);
    let few = rows.iter().filter(|row| (1..=moved / 2).contains(&row.migrations));
    let few = few.filter(|row| has_load(&row.after) && is_near(&row.after));
    few.min_by_key(|row| (row.migrations, hop_bytes(row))).map(|row| {
        let hop_bytes = match more(&row.after) {
            equal if equal <= 1.0 + TOLERANCE => String::new(),
            more if more < 2.0 => format!(" and {:.0} % more hop-bytes", 100.0 * (more - 1.0)),
            more => format!(" and {more:.1} times the hop-bytes"),
        };
        let moved = count(moved, "object");
        format!(
            "{} moves {moved}; {} moves {}, with at most 1 % more load{hop_bytes}.",
            best.name, row.name, row.migrations
        )
    })
}

/// The row whose heaviest PE has the least load; among equals the one with the fewest hop-bytes.
fn least_load(rows: &[Row]) -> Option<&Row> {
    let load = |row: &Row| row.after.slowest_seconds();
    rows.iter().min_by(|a, b| load(a).total_cmp(&load(b)).then(hop_bytes(a).cmp(&hop_bytes(b))))
}

/// The hop-bytes of a row; 0 if unknown.
fn hop_bytes(row: &Row) -> u128 {
    row.after.communication.map_or(0, |cost| cost.hop_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Communication;

    /// A row with this largest load, hop-bytes and migrations.
    fn row(max_load_seconds: f64, hop_bytes: u128, migrations: u64) -> Row {
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
        }
    }

    fn replay(rows: &[Row], before: &Metrics) -> Replay {
        Replay { strategies: rows.to_vec(), before: before.clone(), may_keep: true, ..Replay::default() }
    }

    #[track_caller]
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
        let before = Metrics { step_seconds: Some(1.5), ..Metrics::default() };
        let texts = [1, 5].map(|periods| reasons(&rows[2], &replay(&rows, &before), periods));
        assert_eq!(texts[0], ["Predicted: 700 ms instead of 1.50 s a period."]);
        assert_eq!(texts[1], ["Predicted: 700 ms instead of 1.50 s for 5 periods."]);
        let faster = Metrics { step_seconds: Some(0.5), ..Metrics::default() };
        assert_eq!(
            reasons(&rows[2], &replay(&rows, &faster), 1),
            ["Predicted: 700 ms instead of 500 ms a period: that is a loss, so keep the placement before."]
        );
        let forbidden = Replay { may_keep: false, ..replay(&rows, &faster) };
        assert!(
            reasons(&rows[2], &forbidden, 1)[0]
                .ends_with(" the placement before if constraints and available PEs allow it.")
        );
        // Where one time is unknown, none is compared.
        let unknown = [rows[0].clone(), row(0.5, 0, 7)];
        assert_eq!(best(&unknown, 1.0, 1), Some(&unknown[1]));
    }

    #[test]
    fn the_reasons_name_gain_and_loss() {
        let before = row(3.0, 1000, 0).after;
        let reasons = |best: &Row, rows: &[Row]| reasons(best, &replay(rows, &before), 1);
        let rows = [row(1.0, 1174, 71), row(1.029, 83, 54)];
        let expected = "1.029-83-54 has 2.9 % more load than 1-1174-71 and 14 times fewer hop-bytes.";
        assert_eq!(reasons(&rows[1], &rows), [expected]);
        let rows = [row(1.0, 93_400, 1), row(1.01, 0, 2)];
        let expected = "1.01-0-2 has 1.0 % more load than 1-93400-1 and almost no hop-bytes.";
        assert_eq!(reasons(&rows[1], &rows), [expected]);
        let rows = [row(1.0, 100, 1), row(1.0, 100, 2)];
        assert!(reasons(&rows[0], &rows).is_empty());
        let rows = [row(1.0, 100, 10), row(1.005, 100, 2)];
        let expected = "1.005-100-2 has 0.5 % more load than 1-100-10 and moves 2 objects instead of 10.";
        assert_eq!(reasons(&rows[1], &rows), [expected]);
        // Without messages, or with more hop-bytes, there is nothing to praise.
        for rows in [[row(1.0, 0, 1), row(1.005, 0, 1)], [row(1.0, 50, 10), row(1.005, 100, 2)]] {
            assert_eq!(of_load(&rows[1], &rows), None);
        }
        let rows = [row(1.0, 100, 1), row(1.0, 200, 2), row(1.5, 10, 0)];
        let expected = "Of the balancers with the least load, 1-100-1 has the fewest hop-bytes.";
        assert_eq!(reasons(&rows[0], &rows)[0], expected);
    }

    #[test]
    fn fewer_moves_and_the_placement_before_are_named_where_they_do() {
        let before = row(3.0, 1000, 0).after;
        let best = row(1.0, 100, 50);
        let with = |other: Row| of_moves(&best, &replay(&[best.clone(), other], &before)).unwrap_or_default();
        assert_eq!(
            with(row(1.005, 100, 20)),
            "1-100-50 moves 50 objects; 1.005-100-20 moves 20, with at most 1 % more load."
        );
        assert!(with(row(1.0, 150, 20)).ends_with(" more load and 50 % more hop-bytes."));
        assert!(with(row(1.0, 320, 20)).ends_with(" more load and 3.2 times the hop-bytes."));
        // Too many moves or hop-bytes, or too much load; and no moves, which is no other placement than the one before.
        for other in [row(1.0, 100, 26), row(1.0, 1100, 20), row(1.02, 100, 20), row(1.0, 100, 0)] {
            assert_eq!(with(other), "");
        }
        let as_good = |load, hop_bytes| {
            of_moves(&best, &replay(&[], &row(load, hop_bytes, 0).after)).unwrap_or_default()
        };
        assert_eq!(as_good(1.005, 100), "The placement before is as good.");
        assert_eq!(as_good(1.005, 90), "The placement before has as little load and fewer hop-bytes.");
        let forbidden = Replay { may_keep: false, ..replay(&[], &row(1.0, 100, 0).after) };
        assert_eq!(of_moves(&best, &forbidden), None);
        assert_eq!([as_good(1.02, 100), as_good(1.0, 102)], [""; 2]);
        assert_eq!(of_moves(&row(1.0, 100, 0), &replay(&[], &best.after)), None, "nothing moves");
    }

    #[test]
    fn longer_ways_than_before_are_named() {
        let with = |hop_bytes, hops_per_byte, link| {
            let mut row = row(1.0, hop_bytes, 1);
            row.after.communication = row.after.communication.map(|it| Communication {
                hops_per_byte,
                max_link_bytes: Some(link),
                ..it
            });
            row
        };
        let (before, best) = (with(100, 1.0, 1000).after, with(150, 1.5, 3000));
        assert_eq!(
            of_hops(&best, &before).unwrap_or_default(),
            "With 1-150-1, messages travel farther than before: 1.500 hops per byte instead of 1.000, and the busiest link carries 3.00 kB instead of 1.00 kB."
        );
        assert_eq!(of_hops(&with(101, 1.01, 3000), &before), None);
        let plain = of_hops(&row(1.0, 200, 1), &before).unwrap_or_default();
        assert!(plain.ends_with(" 0.000 hops per byte instead of 1.000."), "{plain}");
    }

    #[test]
    fn busiest_links_that_need_longer_than_the_loads_are_named() {
        let with = |load, hop_bytes, link: f64, bandwidth: f64| {
            let mut row = row(load, hop_bytes, 1);
            let cost = row.after.communication.as_mut().expect("messages");
            (cost.max_link_seconds, cost.max_link_bytes) = (Some(link), Some((link * bandwidth) as u64));
            row
        };
        let before = with(3.0, 10, 0.5, 1e9).after;
        let (best, other) = (with(1.0, 100, 2.0, 1e9), with(1.2, 150, 1.1, 1e9));
        let of =
            |rows: &[Row], periods| of_links(&rows[0], &replay(rows, &before), periods).unwrap_or_default();
        assert_eq!(
            of(&[best.clone(), other.clone()], 1),
            "But the busiest link then needs 2.00 s, at 1.00 GB/s, which --topology can change, and the slowest PE 1.00 s: messages may decide, \
             which this choice counts as hop-bytes only. If they do, choose 1.2-150-1: its busiest link needs 1.10 s, its slowest PE 1.20 s."
        );
        let given = of(&[with(1.0, 100, 2.0, 1e10)], 3);
        assert!(
            given.starts_with("But the busiest link then needs 2.00 s in all 3 steps, and the slowest PE"),
            "{given}"
        );
        assert!(given.ends_with("as hop-bytes only."), "the placement before takes longer: {given}");
        let still = replay(&[with(1.0, 100, 4.0, 1e9)], &before);
        let text = of_links(&still.strategies[0], &still, 1).unwrap_or_default();
        assert!(text.contains("choose the placement before: its busiest link needs 500 ms"), "{text}");
        let forbidden = Replay { may_keep: false, ..still };
        let text = of_links(&forbidden.strategies[0], &forbidden, 1).unwrap_or_default();
        assert!(!text.contains("choose"), "{text}");
        assert_eq!(of(&[other, best], 1), "");
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

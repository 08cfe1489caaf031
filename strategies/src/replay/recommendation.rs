//! The recommendation of a replay in sentences: what the chosen strategy gains, and what it loses against others.

use std::fmt;

use equipoise_model::table::{bytes, count, percent, seconds};
use equipoise_model::topology::DEFAULT_BANDWIDTH;

use super::choice::{TOLERANCE, best, hop_bytes, least_load};
use super::times::Times;
use super::{Replay, Row};
use crate::cost::{Metrics, ROUNDING, sentence};

/// Placements with more times as many hop-bytes are no alternative.
const MOST_RATIO: f64 = 1000.0;

/// No link is faster, in bytes per second.
const MOST_BANDWIDTH: f64 = 1e13;

/// The recommended strategy, and why, in sentences. As text, each has a line of its own.
pub struct Recommendation {
    /// What precedes the name: "Recommended", or "Best of these" where keeping the placement before is better.
    pub title: &'static str,
    /// The name of the strategy.
    pub strategy: String,
    /// What it gains; then the predicted time, or if that is unknown, that messages may take longer than work.
    pub lead: Vec<String>,
    /// What it gains and loses against other placements.
    pub reasons: Vec<String>,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}. {}", self.title, self.strategy, self.lead.join("\n"))?;
        self.reasons.iter().try_for_each(|reason| writeln!(f, "{reason}"))
    }
}

/// The row of `replay` to recommend for `horizon` periods, and why, where costs are sums over `steps` steps. Rows that leave objects on PEs
/// that are not available are not looked at.
pub(super) fn recommend(mut replay: Replay, horizon: f64, steps: usize) -> Option<Recommendation> {
    replay.strategies.retain(|row| row.stranded == 0);
    Some(of(best(&replay.strategies, horizon, steps)?, &replay, horizon, steps))
}

/// The recommendation of `best` for `horizon` periods.
///
/// The reasons are what it gains and loses against the row with the least load, and where no time is known what it loses against the
/// placement before, and what fewer moves would give. Finally the row with the fewest hop-bytes, if they differ by more than [`TOLERANCE`].
pub(super) fn of(best: &Row, replay: &Replay, horizon: f64, steps: usize) -> Recommendation {
    let mut lead = vec![of_gain(best, replay, steps)];
    let times = Times::of(best, replay, horizon);
    lead.extend(times.as_ref().map(|times| times.sentence(replay, steps)));
    let is_timed = best.after.step_seconds.is_some();
    if !is_timed {
        lead.extend(of_links(best, replay, steps));
    }
    let mut reasons = Vec::new();
    reasons.extend(of_load(best, &replay.strategies));
    let farther = if is_timed { None } else { of_hops(best, &replay.before) };
    let is_before_compared = farther.is_some();
    reasons.extend(farther);
    if !is_timed {
        reasons.extend(of_moves(best, replay));
    }
    reasons.extend(of_fewest_hops(best, &replay.strategies, is_before_compared));
    let is_loss = times.is_some_and(|times| times.is_loss());
    let title = if replay.may_keep && is_loss { "Best of these" } else { "Recommended" };
    Recommendation { title, strategy: best.name.clone(), lead, reasons }
}

/// By how much the largest load falls, or which part of the hop-bytes its rise saves; of several steps, the sums of their largest loads.
fn of_gain(best: &Row, replay: &Replay, steps: usize) -> String {
    let before = &replay.before;
    if steps == 1 {
        let more = best.after.slowest_seconds() / before.slowest_seconds() - 1.0;
        let hop_bytes = [&best.after, before].map(|it| it.communication.map_or(0, |cost| cost.hop_bytes));
        // A placement that cannot be kept may have less load than is possible.
        if replay.may_keep && more.is_finite() && more > TOLERANCE && hop_bytes[0] < hop_bytes[1] {
            let fewer = percent(1.0 - hop_bytes[0] as f64 / hop_bytes[1] as f64);
            return format!("Hop-bytes fall by {fewer}, and the largest load rises by {}.", percent(more));
        }
        return sentence(before, &best.after);
    }
    let [now, then, ideal] =
        [best.after.max_load_seconds, before.max_load_seconds, before.average_load_seconds].map(seconds);
    format!("The largest loads of the steps sum to {now} instead of {then}; an ideal balance gives {ideal}.")
}

/// The name of what a row places; that of a strategy which moves nothing is the placement before.
fn name_of(row: &Row) -> &str {
    if row.migrations == 0 { "the placement before" } else { &row.name }
}

/// The row with the fewest hop-bytes, if it has notably fewer than `best`; not the placement before, if `best` is already compared with that.
fn of_fewest_hops(best: &Row, rows: &[Row], is_before_compared: bool) -> Option<String> {
    let cost = best.after.communication?;
    let load = |row: &Row| row.after.slowest_seconds();
    let others = rows.iter().filter(|row| row.migrations > 0 || !is_before_compared);
    let fewest = others.min_by(|a, b| hop_bytes(a).cmp(&hop_bytes(b)).then(load(a).total_cmp(&load(b))))?;
    let least = fewest.after.communication?;
    if least.hop_bytes as f64 >= cost.hop_bytes as f64 * (1.0 - TOLERANCE) {
        return None;
    }
    let [load, than] = [fewest, best].map(|row| format!("{:.3}", row.after.imbalance + 1.0));
    let (mut and, mut but) = (String::new(), Vec::new());
    if load != than {
        let loads = format!("max/avg {load} instead of {than}");
        match fewest.after.imbalance < best.after.imbalance {
            true => and = format!(" and {loads}"),
            false => but.push(loads),
        }
    }
    if fewest.migrations > 2 * best.migrations {
        but.push(format!("{} instead of {}", count(fewest.migrations, "move"), best.migrations));
    }
    let but = if but.is_empty() { String::new() } else { format!(", but {}", but.join(" and ")) };
    Some(format!(
        "Fewest hops per byte: {}, with {:.3} instead of {:.3}{and}{but}.",
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
        some if some < 10.0 => Some(format!("{some:.1} times fewer hop-bytes")),
        many if many < 1e6 => Some(format!("{many:.0} times fewer hop-bytes")),
        _ => Some("almost no hop-bytes".into()),
    };
    if let Some(gain) = gain.filter(|_| load(best) > ROUNDING) {
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
fn of_links(best: &Row, replay: &Replay, steps: usize) -> Option<String> {
    let link =
        |metrics: &Metrics| metrics.communication.and_then(|cost| cost.max_link_seconds).unwrap_or(0.0);
    let longer = |metrics: &Metrics| link(metrics).max(metrics.slowest_seconds());
    let (of_link, of_load) = (link(&best.after), best.after.slowest_seconds());
    if of_load <= 0.0 || of_link <= of_load {
        return None;
    }
    let all = if steps == 1 { String::new() } else { format!(" in all {steps} steps") };
    let bytes_of_link = best.after.communication?.max_link_bytes? as f64;
    // Sums over steps have the same ratio.
    let is_default = (bytes_of_link / of_link / DEFAULT_BANDWIDTH - 1.0).abs() < 1e-9;
    let bandwidth = |bytes_per_second: f64| format!("{}/s", bytes(bytes_per_second as u64));
    let with = match is_default {
        true => format!("with links of {}, the default of --topology, ", bandwidth(DEFAULT_BANDWIDTH)),
        false => String::new(),
    };
    let rows = replay.strategies.iter().map(|row| (name_of(row), &row.after));
    let before = replay.may_keep.then_some(("the placement before", &replay.before));
    let shortest = before.into_iter().chain(rows).min_by(|(_, a), (_, b)| {
        longer(a).total_cmp(&longer(b)).then(a.slowest_seconds().total_cmp(&b.slowest_seconds()))
    });
    let better = shortest.filter(|(_, metrics)| longer(metrics) < longer(&best.after) * (1.0 - TOLERANCE));
    let [own_link, own_load] = [of_link, of_load].map(seconds);
    let Some((name, metrics)) = better else {
        return Some(format!(
            "Messages may limit the program: {with}the busiest link needs {own_link}{all}, and the slowest PE {own_load}."
        ));
    };
    let load_seconds = metrics.slowest_seconds();
    // With this bandwidth, the busiest link of `best` needs no longer than the slowest PE of any placement whose links need less time.
    let all_others = replay.may_keep.then_some(&replay.before).into_iter();
    let all_others = all_others.chain(replay.strategies.iter().map(|row| &row.after));
    let rivals = all_others.filter(|metrics| link(metrics) < of_link);
    let least_load = rivals.map(Metrics::slowest_seconds).fold(load_seconds, f64::min).max(of_load);
    let enough = DEFAULT_BANDWIDTH * of_link / least_load;
    let [link, load] = [link(metrics), load_seconds].map(seconds);
    let loads = if load == own_load {
        String::new()
    } else {
        format!(", and its slowest PE {load} instead of {own_load}")
    };
    let better = format!("{name} is better than {}", best.name);
    let links = format!("its busiest link needs {link} instead of {own_link}{all}{loads}");
    Some(match is_default && load_seconds > of_load && enough < MOST_BANDWIDTH {
        true => {
            let (enough, default) = (bandwidth(enough), bandwidth(DEFAULT_BANDWIDTH));
            format!(
                "This is for links of at least {enough}. With links of {default}, the default of --topology, {better}: {links}."
            )
        }
        false => format!("If messages limit the program, {better}: {with}{links}."),
    })
}

/// Where no time is known: what fewer moves, or none, would give.
fn of_moves(best: &Row, replay: &Replay) -> Option<String> {
    let Replay { before, strategies: rows, may_keep, .. } = replay;
    let moved = best.migrations;
    if moved == 0 {
        return None;
    }
    let more = |metrics: &Metrics| {
        let hop_bytes = |metrics: &Metrics| metrics.communication.map_or(0, |cost| cost.hop_bytes);
        match (hop_bytes(metrics), hop_bytes(&best.after)) {
            (same, other) if same == other => 1.0,
            (some, other) => some as f64 / other as f64,
        }
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
    let is_near = |metrics: &Metrics| {
        more(metrics) < 2.0 || more(metrics) <= more(before).min(MOST_RATIO) * (1.0 + TOLERANCE)
    };
    let few = rows.iter().filter(|row| (1..=moved / 2).contains(&row.migrations));
    let few = few.filter(|row| has_load(&row.after) && is_near(&row.after));
    few.min_by_key(|row| (row.migrations, hop_bytes(row))).map(|row| {
        let hop_bytes = match more(&row.after) {
            equal if equal <= 1.0 + TOLERANCE => String::new(),
            more if more < 2.0 => format!(" and {:.0} % more hop-bytes", 100.0 * (more - 1.0)),
            more => format!(" and {more:.1} times the hop-bytes"),
        };
        let load = match row.after.slowest_seconds() > best.after.slowest_seconds() {
            true => "at most 1 % more load",
            false => "no more load",
        };
        let moved = count(moved, "object");
        format!("{} moves {moved}; {} moves {}, with {load}{hop_bytes}.", best.name, row.name, row.migrations)
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::cost::Communication;
    use crate::replay::choice::tests::row;

    pub(in crate::replay) fn replay(rows: &[Row], before: &Metrics) -> Replay {
        Replay { strategies: rows.to_vec(), before: before.clone(), may_keep: true, ..Replay::default() }
    }

    /// The second and later sentences of a recommendation.
    pub(in crate::replay) fn reasons(best: &Row, replay: &Replay, steps: usize) -> Vec<String> {
        let Recommendation { lead, reasons, .. } = of(best, replay, 1.0, steps);
        [&lead[1..], &reasons[..]].concat()
    }

    #[test]
    fn the_reasons_name_gain_and_loss() {
        let before = row(3.0, 1000, 0).after;
        let reasons = |best: &Row, rows: &[Row]| reasons(best, &replay(rows, &before), 1);
        let rows = [row(1.0, 1174, 71), row(1.029, 83, 54)];
        let expected = "1.029-83-54 has 2.9 % more load than 1-1174-71 and 14 times fewer hop-bytes.";
        assert_eq!(reasons(&rows[1], &rows), [expected]);
        let lead = |best: &Row, before: &Metrics| of(best, &replay(&rows, before), 1.0, 1).lead[0].clone();
        let risen = "Hop-bytes fall by 91.7 %, and the largest load rises by 2.9 %.";
        assert_eq!(lead(&rows[1], &row(1.0, 1000, 0).after), risen);
        assert!(!lead(&rows[1], &row(1.0, 83, 0).after).contains("Hop-bytes"));
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
    fn the_placement_before_is_named_once() {
        let (still, near, best) = (row(2.0, 10, 0), row(1.5, 50, 3), row(1.0, 100, 5));
        let rows = [still, near, best];
        let of = |is_before_compared| of_fewest_hops(&rows[2], &rows, is_before_compared).unwrap_or_default();
        assert!(of(false).starts_with("Fewest hops per byte: the placement before, "), "{}", of(false));
        assert!(of(true).starts_with("Fewest hops per byte: 1.5-50-3, "), "{}", of(true));
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
            "This is for links of at least 1.67 GB/s. With links of 1.00 GB/s, the default of --topology, 1.2-150-1 is better than 1-100-1: its \
             busiest link needs 1.10 s instead of 2.00 s, and its slowest PE 1.20 s instead of 1.00 s."
        );
        let known = of(&[with(1.0, 100, 2.0, 1e10), with(1.2, 150, 1.1, 1e10)], 1);
        assert!(
            known.starts_with(
                "If messages limit the program, 1.2-150-1 is better than 1-100-1: its busiest link"
            ),
            "{known}"
        );
        let given = of(&[with(1.0, 100, 2.0, 1e10)], 3);
        assert_eq!(
            given,
            "Messages may limit the program: the busiest link needs 2.00 s in all 3 steps, and the slowest PE 1.00 s.",
            "the placement before takes longer"
        );
        let still = replay(&[with(1.0, 100, 4.0, 1e9)], &before);
        let text = of_links(&still.strategies[0], &still, 1).unwrap_or_default();
        assert!(
            text.contains(
                "This is for links of at least 1.33 GB/s. With links of 1.00 GB/s, the default of --topology, the placement before is better than \
                 1-100-1: "
            ),
            "{text}"
        );
        let forbidden = Replay { may_keep: false, ..still };
        let text = of_links(&forbidden.strategies[0], &forbidden, 1).unwrap_or_default();
        assert!(!text.contains("better"), "{text}");
        assert_eq!(of(&[other, best], 1), "");
    }
}

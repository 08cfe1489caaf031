//! What a replay shows: a table from which a person can choose, and the same as one JSON document.

use std::fmt;

use serde::{Serialize, Serializer};

use super::{Replay, Row, total::total};
use crate::cost::{Metrics, sentence};
use crate::poise::balancer;
use crate::table::{aligned, bytes, count, pairs, percent, seconds};

/// What each strategy would have done at each of the steps that were replayed.
///
/// It displays as a table per step, and one over all where there are several. As a document it is
/// `{"program", "topology", "database", "before", "strategies"}` with the fields of [`Replay`]. Of several
/// steps, these are about all of them together, and `"steps": [{"database", "before", "strategies"}, ..]`
/// follows: loads, volumes and counts are the sums over the steps, ratios are of sums, the longest dilation
/// is that of any step, and `database.step` is the first. Where strategies gave no answer for a step, there
/// is `"refusals": [{"name", "error"}, ..]` too, and they have no sums.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The program that was recorded; empty if unknown.
    pub program: String,
    /// The spec of the machine it was replayed on.
    pub topology: String,
    /// The steps, in order; the same strategies were asked in each.
    pub replays: Vec<Replay>,
}

/// Balances that differ by less than this part are equal to a person, who then looks at the rest.
const INDIFFERENT: f64 = 0.01;

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            program: &'a str,
            topology: &'a str,
            #[serde(flatten)]
            all: &'a Replay,
            #[serde(skip_serializing_if = "<[Replay]>::is_empty")]
            steps: &'a [Replay],
        }
        let (program, topology) = (self.program.as_str(), self.topology.as_str());
        match self.replays.as_slice() {
            [only] => Document { program, topology, all: only, steps: &[] }.serialize(serializer),
            steps => Document { program, topology, all: &total(steps), steps }.serialize(serializer),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [("program", &self.program), ("topology", &self.topology)];
        let known: Vec<_> = known.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        f.write_str(&pairs(&known))?;
        for replay in &self.replays {
            show_step(f, replay)?;
        }
        if self.replays.len() > 1 {
            show_total(f, &self.replays)?;
        }
        Ok(())
    }
}

fn show_step(f: &mut fmt::Formatter<'_>, replay: &Replay) -> fmt::Result {
    let database = &replay.database;
    let talk = database.communication.map_or("; communication was not recorded".into(), |volumes| {
        let (messages, edges) = (count(volumes.messages, "message"), count(volumes.edges as u128, "edge"));
        format!(", {} in {messages} over {edges}", bytes(volumes.bytes))
    });
    let objects = count(database.objects as u128, "object");
    writeln!(f, "\nStep {}: {objects} of {} in all{talk}.", database.step, seconds(database.load_seconds))?;
    show_answers(f, replay)?;
    let Some(best) = best(&replay.strategies) else { return Ok(()) };
    writeln!(f, "\nRecommended: {}. {}", best.name, sentence(&replay.before, &best.after))?;
    show_nearest(f, best, &replay.strategies)?;
    for row in &replay.strategies {
        if let Some(told) = balancer::sentence(&row.notes, &row.after) {
            writeln!(f, "{}: {told}", row.name)?;
        }
    }
    Ok(())
}

fn show_total(f: &mut fmt::Formatter<'_>, steps: &[Replay]) -> fmt::Result {
    let all = total(steps);
    writeln!(f, "\nAll {} steps together, each replayed by itself.", steps.len())?;
    show_answers(f, &all)?;
    let Some(best) = best(&all.strategies) else { return Ok(()) };
    writeln!(
        f,
        "\nRecommended: {}. The most loaded PEs work for {} in all instead of {}; an ideal balance \
         would be {}.",
        best.name,
        seconds(best.after.max_load_seconds),
        seconds(all.before.max_load_seconds),
        seconds(all.before.average_load_seconds),
    )?;
    show_nearest(f, best, &all.strategies)
}

/// The table, and under it the strategies that are not in it.
fn show_answers(f: &mut fmt::Formatter<'_>, replay: &Replay) -> fmt::Result {
    write!(f, "\n{}", rows(&replay.before, &replay.strategies))?;
    if !replay.refusals.is_empty() {
        writeln!(f)?;
    }
    for refusal in &replay.refusals {
        writeln!(f, "No answer from {}: {}.", refusal.name, refusal.error)?;
    }
    Ok(())
}

/// The table of what was recorded and what each strategy makes of it. There are columns for
/// communication where there is some, and one for distance where a message goes farther than a hop.
fn rows(before: &Metrics, strategies: &[Row]) -> String {
    let all = || strategies.iter().map(|row| &row.after).chain([before]);
    let talks = before.communication.is_some_and(|cost| cost.total_bytes > 0);
    let travels = all().any(|metrics| metrics.communication.is_some_and(|cost| cost.max_dilation > 1));
    let mut header = vec!["strategy", "ms", "max/avg", "above bound"];
    if talks {
        header.push("hops/byte");
    }
    if travels {
        header.push("above dilation 1");
    }
    if talks {
        header.push("busiest link");
    }
    header.extend(["moves", "moved"]);
    let mut table: Vec<Vec<String>> = vec![header.into_iter().map(String::from).collect()];
    let nothing = || "-".to_string();
    let mut add = |name: &str, [ms, moves, moved]: [String; 3], metrics: &Metrics| {
        let load = above(metrics.max_load_seconds, metrics.lower_bound_seconds);
        let mut row = vec![name.to_string(), ms, format!("{:.3}", metrics.imbalance + 1.0), load];
        let cost = metrics.communication.unwrap_or_default();
        if talks {
            row.push(format!("{:.3}", cost.hops_per_byte));
        }
        if travels {
            row.push(above(cost.hop_bytes as f64, cost.remote_bytes as f64));
        }
        if talks {
            row.push(cost.max_link_bytes.map_or_else(nothing, bytes));
        }
        row.extend([moves, moved]);
        table.push(row);
    };
    add("(as recorded)", [nothing(), nothing(), nothing()], before);
    for row in strategies {
        let moved = row.migrated_bytes.map_or_else(|| "unknown".into(), bytes);
        let cells = [format!("{:.3}", 1e3 * row.seconds), row.migrations.to_string(), moved];
        add(&row.name, cells, &row.after);
    }
    aligned(&table)
}

/// How far something is above what no placement can go below: a part of the bound, or a multiple where
/// that is easier to read.
fn above(value: f64, bound: f64) -> String {
    match value / bound {
        _ if value <= bound => percent(0.0),
        ratio if ratio < 10.0 => percent(ratio - 1.0),
        ratio if ratio < 1e6 => format!("{ratio:.0} x"),
        // A bound of zero, or next to it.
        _ => "-".into(),
    }
}

/// The row to recommend: of those with the least maximal load, give or take [`INDIFFERENT`], the one
/// whose bytes travel least, then the one that moves fewest objects, then the first.
fn best(strategies: &[Row]) -> Option<&Row> {
    let least = strategies.iter().map(|row| row.after.max_load_seconds).fold(f64::INFINITY, f64::min);
    let equal = |row: &&Row| row.after.max_load_seconds <= least * (1.0 + INDIFFERENT);
    strategies.iter().filter(equal).min_by_key(|row| (hop_bytes(row), row.migrations))
}

/// How far the bytes of a row travel; nowhere if nobody knows.
fn hop_bytes(row: &Row) -> u128 {
    row.after.communication.map_or(0, |cost| cost.hop_bytes)
}

/// Names the row whose bytes travel least, where that is another one.
fn show_nearest(f: &mut fmt::Formatter<'_>, best: &Row, strategies: &[Row]) -> fmt::Result {
    let Some(nearest) = strategies.iter().min_by_key(|row| hop_bytes(row)) else { return Ok(()) };
    let (Some(near), Some(far)) = (nearest.after.communication, best.after.communication) else {
        return Ok(());
    };
    if near.hop_bytes as f64 >= far.hop_bytes as f64 * (1.0 - INDIFFERENT) {
        return Ok(());
    }
    writeln!(
        f,
        "Nearest communication: {}, with {:.3} hops per byte where {} has {:.3}, at max/avg {:.3} instead of \
         {:.3}.",
        nearest.name,
        near.hops_per_byte,
        best.name,
        far.hops_per_byte,
        nearest.after.imbalance + 1.0,
        best.after.imbalance + 1.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Communication;
    use crate::database::{Summary, Volumes};
    use crate::replay::Refusal;

    fn metrics(max: f64, hop_bytes: u128, migrations: u64) -> Metrics {
        Metrics {
            pes: 2,
            objects: 4,
            max_load_seconds: max,
            average_load_seconds: 2.0,
            imbalance: max / 2.0 - 1.0,
            lower_bound_seconds: 2.0,
            heaviest_object_seconds: 1.0,
            communication: Some(Communication {
                total_bytes: 100,
                remote_bytes: 8,
                hop_bytes,
                hops_per_byte: hop_bytes as f64 / 100.0,
                max_dilation: 2,
                max_link_bytes: Some(50),
                ..Communication::default()
            }),
            migrations,
            migrated_bytes: Some(1500 * migrations),
        }
    }

    fn row(name: &str, after: Metrics) -> Row {
        let (migrations, migrated_bytes) = (after.migrations, after.migrated_bytes);
        Row {
            name: name.into(),
            seconds: 0.0125,
            migrations,
            migrated_bytes,
            after,
            notes: vec![("groups".into(), 2.0)],
            pe_of: Vec::new(),
        }
    }

    fn comparison(steps: &[u64]) -> Comparison {
        let database = |step| Summary {
            step,
            pes: 2,
            arrays: 1,
            objects: 4,
            migratable_objects: 4,
            load_seconds: 4.0,
            background_seconds: 0.0,
            communication: Some(Volumes { edges: 1, dangling_edges: 0, messages: 10, bytes: 100 }),
        };
        let replay = |&step| Replay {
            database: database(step),
            before: metrics(4.0, 20, 0),
            strategies: vec![
                row("FarLB", metrics(2.0, 100, 2)),
                row("BestLB", metrics(2.01, 90, 3)),
                row("BusyLB", metrics(2.0, 90, 4)),
                row("NearLB", metrics(3.0, 10, 1)),
            ],
            refusals: vec![],
        };
        Comparison {
            program: "pairs".into(),
            topology: "flat:2".into(),
            replays: steps.iter().map(replay).collect(),
        }
    }

    const HEAD: &str = "program   pairs\ntopology  flat:2\n";

    const STEP: &str = "
Step 7: 4 objects of 4.00 s in all, 100 B in 10 messages over 1 edge.

strategy           ms  max/avg  above bound  hops/byte  above dilation 1  busiest link  moves    moved
(as recorded)       -    2.000      100.0 %      0.200           150.0 %          50 B      -        -
FarLB          12.500    1.000        0.0 %      1.000              12 x          50 B      2  3.00 kB
BestLB         12.500    1.005        0.5 %      0.900              11 x          50 B      3  4.50 kB
BusyLB         12.500    1.000        0.0 %      0.900              11 x          50 B      4  6.00 kB
NearLB         12.500    1.500       50.0 %      0.100            25.0 %          50 B      1  1.50 kB

Recommended: BestLB. An ideal balance would run in 50 % less time; after this step less than 1 % remains.
Nearest communication: NearLB, with 0.100 hops per byte where BestLB has 0.900, at max/avg 1.500 instead of 1.005.
";

    #[test]
    fn the_table_has_a_row_per_strategy_and_names_the_best() {
        assert_eq!(comparison(&[7]).to_string(), format!("{HEAD}{STEP}"));
    }

    #[test]
    fn several_steps_are_shown_one_by_one_and_together() {
        let text = comparison(&[7, 8]).to_string();
        let second = STEP.replace("Step 7", "Step 8");
        let rest = text.strip_prefix(&format!("{HEAD}{STEP}{second}")).expect("a table per step");
        assert!(rest.starts_with("\nAll 2 steps together, each replayed by itself.\n"), "{rest}");
        let expected = "BestLB         25.000    1.005        0.5 %      0.900              11 x         100 B      6  9.00 kB\n";
        assert!(rest.contains(expected), "{rest}");
        assert!(rest.contains("work for 4.02 s in all instead of 8.00 s; an ideal balance would be 4.00 s."));
    }

    #[test]
    fn a_strategy_without_an_answer_for_a_step_has_no_total() {
        let mut comparison = comparison(&[7, 8]);
        comparison.replays[1].strategies.remove(0);
        comparison.replays[1].refusals =
            vec![Refusal { name: "FarLB".into(), error: "no square; make one".into() }];
        let two = serde_json::to_value(&comparison).expect("a document");
        let names: Vec<_> = (0..3).map(|at| two["strategies"][at]["name"].clone()).collect();
        assert_eq!(names, ["BestLB", "BusyLB", "NearLB"]);
        assert_eq!(two["strategies"][0]["after"]["max_load_seconds"], 4.02);
        assert_eq!(two["refusals"][0]["error"], "step 8: no square; make one");
        let text = comparison.to_string();
        assert_eq!(text.matches("\nNo answer from FarLB: no square; make one.\n").count(), 1, "{text}");
        assert_eq!(text.matches("\nNo answer from FarLB: step 8: no square").count(), 1, "{text}");
    }

    #[test]
    fn distances_from_a_bound_are_legible() {
        for (value, bound, expected) in [
            (0.0, 0.0, "0.0 %"),
            (3.0, 0.0, "-"),
            (3.0, 3.0, "0.0 %"),
            (3.0, 2.0, "50.0 %"),
            (19.99, 2.0, "899.5 %"),
            (44.0, 2.0, "22 x"),
            (1.0, 2.0, "0.0 %"),
            (1e300, 1e-300, "-"),
        ] {
            assert_eq!(above(value, bound), expected, "{value} above {bound}");
        }
    }

    /// The text of a replay in which all communication costs this.
    fn told(cost: Option<Communication>) -> String {
        let mut comparison = comparison(&[0]);
        let replay = &mut comparison.replays[0];
        let all = replay.strategies.iter_mut().map(|row| &mut row.after).chain([&mut replay.before]);
        all.for_each(|metrics| metrics.communication = cost);
        comparison.to_string()
    }

    #[test]
    fn where_nobody_talks_there_is_no_column_for_it() {
        for text in [told(None), told(Some(Communication::default()))] {
            let has = |word| text.contains(word);
            assert!(!has("hops") && !has("dilation") && !has("link") && !has("Nearest"), "{text}");
            assert!(text.contains("FarLB. "), "{text}");
        }
    }

    #[test]
    fn where_every_pe_is_a_hop_away_there_is_no_column_for_distance() {
        let cost =
            Communication { total_bytes: 9, hop_bytes: 9, max_dilation: 1, ..Communication::default() };
        let text = told(Some(cost));
        assert!(text.contains("above bound  hops/byte  busiest link"), "{text}");
    }

    #[test]
    fn what_a_strategy_says_of_hops_stands_below_the_table() {
        let mut comparison = comparison(&[7]);
        let notes = [("hop-bytes before", 200.0), ("hop-bytes after", 100.0), ("hop-bytes at least", 50.0)];
        comparison.replays[0].strategies[0].notes =
            notes.map(|(name, value)| (name.to_string(), value)).to_vec();
        let name = comparison.replays[0].strategies[0].name.clone();
        let text = comparison.to_string();
        let found = text.lines().find(|line| line.starts_with(&format!("{name}: ")));
        let is_said = |part: &str| found.is_some_and(|line| line.contains(part));
        assert!(is_said(": Hop-bytes fell to 50.0 % of what they were, for moving "), "{comparison}");
        assert!(is_said("; no placement with balanced loads gets below 25.0 %."), "{comparison}");
    }

    #[test]
    fn several_steps_are_a_document_of_sums_with_a_list_of_steps() {
        let one = serde_json::to_value(comparison(&[7])).expect("a document");
        assert_eq!((&one["database"]["step"], &one["topology"]), (&7.into(), &"flat:2".into()));
        assert_eq!(one["strategies"][1]["after"]["hop_bytes"], 90);
        assert_eq!(one["strategies"][1]["notes"], serde_json::json!([["groups", 2.0]]));
        assert_eq!((&one["before"]["max_load_seconds"], one.get("steps")), (&4.0.into(), None));
        let two = serde_json::to_value(comparison(&[7, 8])).expect("a document");
        assert_eq!((&two["program"], &two["topology"]), (&one["program"], &one["topology"]));
        assert_eq!((&two["database"]["step"], &two["database"]["bytes"]), (&7.into(), &200.into()));
        assert_eq!(
            (&two["before"]["max_load_seconds"], &two["before"]["imbalance"]),
            (&8.0.into(), &1.0.into())
        );
        assert_eq!(two["strategies"][0]["after"]["max_load_seconds"], 4.0);
        assert_eq!(two["strategies"][0].get("notes"), None, "what is said of one step is not added up");
        for (at, step) in [7, 8].into_iter().enumerate() {
            let alone = serde_json::to_value(comparison(&[step])).expect("a document");
            for field in ["database", "before", "strategies"] {
                assert_eq!(two["steps"][at][field], alone[field], "{field} of step {step}");
            }
        }
    }
}

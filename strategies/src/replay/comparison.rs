//! The output of a replay: a table with a recommendation, or one JSON document.

use std::fmt;

use serde::{Serialize, Serializer};

use equipoise_model::database::Summary;
use equipoise_model::table::{aligned, bytes, count, pairs, seconds};

use super::recommendation::recommend;
use super::{Recommendation, Replay, Row, total::total};
use crate::cost::Metrics;
use crate::cost::catalogue::{self, Subject};

/// The results of each strategy at each replayed step.
///
/// The text has a table per step and, for several steps, a table of totals. The document is
/// `{"program", "topology", "database", "before", "strategies", "recommendation": {"title", "strategy", "sentences"}}` with the fields of
/// [`Replay`]. For several steps, these fields are totals, and `"steps": [{"database", "before", "strategies"}, ..]` follows. Loads,
/// volumes and counts are sums over the steps, ratios are ratios of sums, the longest dilation is the maximum,
/// and `database.step` is the first step. If strategies gave no answer for a step, the document also has
/// `"refusals": [{"name", "error"}, ..]`, and these strategies have no totals. `"recorded_pes"` is there if the replay has other PEs than
/// the record, and `"broken_before"` says which constraints the placement before a step breaks.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The recorded program; empty if unknown.
    pub program: String,
    /// The spec of the machine of the replay.
    pub topology: String,
    /// The steps in order, all with the same strategies.
    pub replays: Vec<Replay>,
    /// What the reader of the database ignored, as in `Dump::warnings`; not part of the output.
    pub warnings: Vec<String>,
    /// The number of periods until the next step for which the recommendation holds; not part of the document.
    pub horizon: f64,
}

impl Default for Comparison {
    /// Nothing, for a horizon of one period.
    fn default() -> Self {
        let (program, topology) = (String::new(), String::new());
        Comparison { program, topology, replays: Vec::new(), warnings: Vec::new(), horizon: 1.0 }
    }
}

impl Comparison {
    /// The step, or what the choice between strategies looks at: the sums over the steps.
    pub fn total(&self) -> Replay {
        match self.replays.as_slice() {
            [only] => only.clone(),
            steps => total(steps),
        }
    }

    /// The recommended strategy over all steps; `None` if no strategy has an answer.
    pub fn recommendation(&self) -> Option<Recommendation> {
        recommend(self.total(), self.horizon, self.replays.len())
    }
}

impl Replay {
    /// The name of the placement before.
    pub fn name_before(&self) -> &'static str {
        if self.recorded_pes.is_some() { "(in blocks)" } else { "(as recorded)" }
    }

    /// The objects, as in "64 objects (3 cannot move)".
    pub fn objects(&self) -> String {
        let Summary { objects, migratable_objects, .. } = self.database;
        let fixed = objects - migratable_objects;
        let all = count(objects as u128, "object");
        if fixed > 0 { format!("{all} ({fixed} cannot move)") } else { all }
    }

    /// A sentence about the placement before, if it is not the recorded one.
    pub fn remapped(&self) -> Option<String> {
        let recorded = count(self.recorded_pes? as u64, "PE");
        let on = count(self.database.pes as u64, "PE");
        Some(format!(
            "Recorded on {recorded}; the replay begins with the objects in blocks on {on}, without background load."
        ))
    }

    /// Sentences about the strategies that leave objects on PEs that are not available.
    pub fn left_behind(&self) -> Vec<String> {
        let rows = self.strategies.iter().filter(|row| row.stranded > 0);
        let sentence = |row: &Row| {
            let objects = count(row.stranded, "object");
            format!("{} leaves {objects} on PEs that are not available, so it is not recommended.", row.name)
        };
        rows.map(sentence).collect()
    }
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Document<'a> {
            program: &'a str,
            topology: &'a str,
            #[serde(flatten)]
            all: &'a Replay,
            #[serde(skip_serializing_if = "Option::is_none")]
            recommendation: Option<Recommended>,
            #[serde(skip_serializing_if = "<[Replay]>::is_empty")]
            steps: &'a [Replay],
        }
        #[derive(Serialize)]
        struct Recommended {
            title: &'static str,
            strategy: String,
            sentences: Vec<String>,
        }
        let (program, topology) = (self.program.as_str(), self.topology.as_str());
        let (all, steps) = (self.total(), self.replays.as_slice());
        let recommendation = recommend(all.clone(), self.horizon, steps.len());
        let recommendation = recommendation.map(|Recommendation { title, strategy, lead, reasons }| {
            Recommended { title, strategy, sentences: [lead, reasons].concat() }
        });
        let steps = if steps.len() == 1 { &[] } else { steps };
        Document { program, topology, all: &all, recommendation, steps }.serialize(serializer)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = [("program", &self.program), ("topology", &self.topology)];
        let known: Vec<_> = known.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        f.write_str(&pairs(&known))?;
        for replay in &self.replays {
            self.show_step(f, replay)?;
        }
        if self.replays.len() > 1 {
            self.show_total(f)?;
        }
        Ok(())
    }
}

impl Comparison {
    fn show_step(&self, f: &mut fmt::Formatter<'_>, replay: &Replay) -> fmt::Result {
        let database = &replay.database;
        let communication =
            database.communication.map_or("; communication was not recorded".into(), |volumes| {
                let (messages, edges) =
                    (count(volumes.messages, "message"), count(volumes.edges as u128, "edge"));
                format!(", {} in {messages} over {edges}", bytes(volumes.bytes))
            });
        let objects = replay.objects();
        let load = seconds(database.load_seconds);
        writeln!(f, "\nStep {}: {objects} with a total load of {load}{communication}.", database.step)?;
        replay.remapped().map_or(Ok(()), |sentence| writeln!(f, "{sentence}"))?;
        if let Some(broken) = &replay.broken_before {
            writeln!(f, "The placement before {broken}.")?;
        }
        self.show_answers(f, replay)?;
        let Some(recommended) = recommend(replay.clone(), self.horizon, 1) else { return Ok(()) };
        write!(f, "\n{recommended}")?;
        for row in &replay.strategies {
            if let Some(sentence) = &row.sentence {
                writeln!(f, "{}: {sentence}", row.name)?;
            }
        }
        Ok(())
    }

    fn show_total(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, steps) = (total(&self.replays), self.replays.len());
        writeln!(f, "\nAll {steps} steps together (each is replayed independently).")?;
        self.show_answers(f, &all)?;
        let Some(recommended) = recommend(all, self.horizon, steps) else { return Ok(()) };
        write!(f, "\n{recommended}")
    }

    /// The table, and below it the strategies without an answer.
    fn show_answers(&self, f: &mut fmt::Formatter<'_>, replay: &Replay) -> fmt::Result {
        write!(f, "\n{}", rows(replay.name_before(), &replay.before, &replay.strategies))?;
        if !replay.refusals.is_empty() {
            writeln!(f)?;
        }
        for refusal in &replay.refusals {
            writeln!(f, "No answer from {}: {}.", refusal.name, refusal.error)?;
        }
        let left = replay.left_behind();
        left.iter().enumerate().try_for_each(|(at, sentence)| {
            let space = if at == 0 && replay.refusals.is_empty() { "\n" } else { "" };
            writeln!(f, "{space}{sentence}")
        })
    }
}

/// The table of the placement before, with this name, and the placement of each strategy, with the columns of the catalogue of costs.
/// Columns of communication are shown if there are messages, columns of distances if a message takes more than one hop, and
/// the column of the Pareto front if there are several strategies.
fn rows(name: &str, before: &Metrics, strategies: &[Row]) -> String {
    let mut all = strategies.iter().map(|row| &row.after).chain([before]);
    let subject = Subject {
        messages: before.communication.is_some_and(|cost| cost.total_bytes > 0),
        costs: before.step_seconds.is_some(),
        phases: before.phases_seconds.is_some(),
        bandwidths: false,
        distances: all.any(|metrics| metrics.communication.is_some_and(|cost| cost.max_dilation > 1)),
        ..Subject::WHOLE
    };
    let columns = || catalogue::ALL.iter().filter(|cost| cost.column.is_some() && cost.applies_to(subject));
    let front = |cell: &str| (strategies.len() > 1).then(|| cell.to_string());
    let mut table = vec![["strategy", "ms"].map(String::from).to_vec()];
    table[0].extend(columns().filter_map(|cost| cost.column).map(String::from).chain(front("front")));
    let recorded = columns().map(|cost| match cost.is_of_moves() {
        true => "-".to_string(),
        false => cost.in_metrics(before).to_string(),
    });
    let recorded = recorded.chain(front("-"));
    table.push([name.to_string(), "-".to_string()].into_iter().chain(recorded).collect());
    for row in strategies {
        let named = [row.name.clone(), format!("{:.3}", 1e3 * row.seconds)];
        let costs = columns().map(|cost| cost.in_metrics(&row.after).to_string());
        let costs = costs.chain(front(if row.on_front { "yes" } else { "no" }));
        table.push(named.into_iter().chain(costs).collect());
    }
    aligned(&table)
}

#[cfg(test)]
mod tests {
    use equipoise_model::assignment::Note;
    use equipoise_model::database::{Summary, Volumes};

    use super::*;
    use crate::cost::Communication;
    use crate::replay::Refusal;
    use crate::replay::choice::mark_front;

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
            ..Metrics::default()
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
            on_front: false,
            notes: vec![Note::new("groups", 2.0)],
            sentence: None,
            pe_of: Vec::new(),
            stranded: 0,
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
        let mut strategies = vec![
            row("FarLB", metrics(2.0, 100, 3)),
            row("BestLB", metrics(2.01, 90, 3)),
            row("BusyLB", metrics(2.01, 90, 4)),
            row("NearLB", metrics(3.0, 10, 1)),
        ];
        mark_front(&mut strategies);
        let replay = |&step| Replay {
            database: database(step),
            recorded_pes: None,
            before: metrics(4.0, 20, 0),
            may_keep: true,
            broken_before: None,
            strategies: strategies.clone(),
            refusals: vec![],
        };
        Comparison {
            program: "pairs".into(),
            topology: "flat:2".into(),
            replays: steps.iter().map(replay).collect(),
            ..Comparison::default()
        }
    }

    const HEAD: &str = "program   pairs\ntopology  flat:2\n";

    const STEP: &str = "
Step 7: 4 objects with a total load of 4.00 s, 100 B in 10 messages over 1 edge.

strategy           ms  max/avg  above bound  hops/byte  above dilation 1  busiest link  moves    moved  front
(as recorded)       -    2.000      100.0 %      0.200           150.0 %          50 B      -        -      -
FarLB          12.500    1.000        0.0 %      1.000              12 x          50 B      3  4.50 kB    yes
BestLB         12.500    1.005        0.5 %      0.900              11 x          50 B      3  4.50 kB    yes
BusyLB         12.500    1.005        0.5 %      0.900              11 x          50 B      4  6.00 kB     no
NearLB         12.500    1.500       50.0 %      0.100            25.0 %          50 B      1  1.50 kB    yes

Recommended: BestLB. The largest load falls by 50 %; with ideal balance by 50 %.
BestLB has 0.5 % more load than FarLB and 10 % fewer hop-bytes.
With BestLB, messages travel farther than before: 0.900 hops per byte instead of 0.200.
Fewest hops per byte: NearLB, with 0.100 instead of 0.900, but max/avg 1.500 instead of 1.005.
";

    #[test]
    fn the_table_has_a_row_per_strategy_and_names_the_best() {
        assert_eq!(comparison(&[7]).to_string(), format!("{HEAD}{STEP}"));
    }

    #[test]
    fn the_text_of_several_steps_has_a_table_per_step_and_totals() {
        let text = comparison(&[7, 8]).to_string();
        let second = STEP.replace("Step 7", "Step 8");
        let rest = text.strip_prefix(&format!("{HEAD}{STEP}{second}")).expect("a table per step");
        assert!(rest.starts_with("\nAll 2 steps together (each is replayed independently).\n"), "{rest}");
        let expected = "BestLB         25.000    1.005        0.5 %      0.900              11 x         100 B      6  9.00 kB    yes\n";
        assert!(rest.contains(expected), "{rest}");
        assert!(rest.contains("steps sum to 4.02 s instead of 8.00 s; an ideal balance gives 4.00 s."));
    }

    #[test]
    fn a_strategy_without_an_answer_for_one_step_has_no_totals() {
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

    /// The text of a replay in which every row has this cost of communication.
    fn text_with(cost: Option<Communication>) -> String {
        let mut comparison = comparison(&[0]);
        let replay = &mut comparison.replays[0];
        let all = replay.strategies.iter_mut().map(|row| &mut row.after).chain([&mut replay.before]);
        all.for_each(|metrics| metrics.communication = cost);
        comparison.to_string()
    }

    #[test]
    fn without_messages_there_are_no_columns_of_communication() {
        for text in [text_with(None), text_with(Some(Communication::default()))] {
            let has = |word| text.contains(word);
            assert!(!has("hops") && !has("dilation") && !has("link") && !has("Fewest"), "{text}");
            assert!(text.contains("FarLB. "), "{text}");
        }
    }

    #[test]
    fn without_distances_above_one_hop_there_is_no_column_of_dilation() {
        let cost =
            Communication { total_bytes: 9, hop_bytes: 9, max_dilation: 1, ..Communication::default() };
        let text = text_with(Some(cost));
        assert!(text.contains("above bound  hops/byte  busiest link"), "{text}");
    }

    #[test]
    fn the_sentence_of_a_strategy_follows_the_table() {
        let mut comparison = comparison(&[7]);
        let row = &mut comparison.replays[0].strategies[0];
        row.sentence = Some("Hop-bytes fell.".into());
        let expected = format!("\n{}: Hop-bytes fell.\n", row.name);
        let text = comparison.to_string();
        assert!(text.ends_with(&expected), "{text}");
    }

    #[test]
    fn the_document_of_several_steps_has_totals_and_a_list_of_steps() {
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
        assert_eq!(two["strategies"][0].get("notes"), None, "notes of single steps are not added");
        for (at, step) in [7, 8].into_iter().enumerate() {
            let alone = serde_json::to_value(comparison(&[step])).expect("a document");
            for field in ["database", "before", "strategies"] {
                assert_eq!(two["steps"][at][field], alone[field], "{field} of step {step}");
            }
        }
    }
}

//! No strategy creates or loses work or communication: mappings of Charm++ dumps, checked against the text forms of the
//! dumps.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use equipoise_model::testing::{at_full_size, is_chosen};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use equipoise_tests::{Sandbox, charm_dump_texts};
use serde_json::Value;

/// The text form of a dump.
#[derive(Default)]
struct Record {
    /// By PE: background seconds.
    background: Vec<f64>,
    /// By object: seconds, PE, whether it is migratable.
    objects: Vec<(f64, usize, bool)>,
    /// Sender, receiver, messages and bytes.
    edges: Vec<(End, End, u64, u64)>,
}

#[derive(Clone, Copy)]
enum End {
    Object(usize),
    Pe(usize),
}

impl Record {
    /// Reads the lines `P pe total s idle s bg s ..`, `O i om a id n pe p wall s mig 0|1 ..` and
    /// `C from to msgs n bytes n`, whose ends are objects, `peN`, or (receivers) `m:` and several objects.
    fn read(path: &Path) -> Record {
        let text = fs::read_to_string(path).expect("the text form of a dump");
        let mut record = Record::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |key: &str| {
                let at = words.iter().position(|word| *word == key).expect("the key is in the line");
                words[at + 1]
            };
            let number = |key: &str| after(key).parse::<u64>().expect("a number");
            let seconds = |key: &str| after(key).parse::<f64>().expect("seconds");
            let end = |word: &str| match word.strip_prefix("pe") {
                Some(pe) => End::Pe(pe.parse().expect("a PE")),
                None => End::Object(word.parse().expect("an object")),
            };
            match words.first() {
                // Clock noise makes some background times negative.
                Some(&"P") => record.background.push(seconds("bg").max(0.0)),
                Some(&"O") => {
                    record.objects.push((seconds("wall"), number("pe") as usize, number("mig") == 1));
                }
                Some(&"C") => {
                    let receivers = words[2].strip_prefix("m:").unwrap_or(words[2]).split(',');
                    let (messages, bytes) = (number("msgs"), number("bytes"));
                    record.edges.extend(receivers.map(|to| (end(words[1]), end(to), messages, bytes)));
                }
                _ => {}
            }
        }
        let name = path.display();
        assert!(!record.background.is_empty() && !record.objects.is_empty(), "{name} has PEs and objects");
        assert!(!record.edges.is_empty(), "{name} has edges");
        record
    }

    /// Checks that `metrics` are those of the objects on `placement`.
    fn check(&self, name: &str, placement: &[usize], metrics: &Value) {
        let number = |field: &str| metrics[field].as_f64().unwrap_or_else(|| panic!("{name}: {field}"));
        let mut loads = self.background.clone();
        for (object, &(seconds, home, is_migratable)) in self.objects.iter().enumerate() {
            loads[placement[object]] += seconds;
            assert!(is_migratable || placement[object] == home, "{name}: object {object} is pinned");
        }
        let (work, all): (f64, f64) = (loads.iter().sum(), loads.len() as f64);
        let largest = loads.iter().copied().fold(0.0, f64::max);
        // The text has nine digits after the point, per object.
        let exact = 1e-9 * self.objects.len() as f64;
        assert!((number("average_load_seconds") * all - work).abs() < exact, "{name}: work is conserved");
        assert!((number("max_load_seconds") - largest).abs() < exact, "{name}: the largest load");

        let pe = |end| match end {
            End::Object(object) => placement[object],
            End::Pe(pe) => pe,
        };
        let remote = |edge: &&(End, End, u64, u64)| pe(edge.0) != pe(edge.1);
        let messages: u64 = self.edges.iter().map(|edge| edge.2).sum();
        let bytes: u64 = self.edges.iter().map(|edge| edge.3).sum();
        let remote_bytes: u64 = self.edges.iter().filter(remote).map(|edge| edge.3).sum();
        assert_eq!(metrics["total_messages"], messages, "{name}: messages are conserved");
        assert_eq!(metrics["total_bytes"], bytes, "{name}: bytes are conserved");
        assert_eq!(metrics["remote_bytes"], remote_bytes, "{name}: the bytes between PEs");
        assert_eq!(metrics["hop_bytes"], remote_bytes, "{name}: every PE is a hop from every other");
        let moved = self.objects.iter().zip(placement).filter(|(o, pe)| o.1 != **pe).count();
        assert_eq!(metrics["migrations"], moved, "{name}: the objects moved");
    }
}

/// All strategies.
fn strategies() -> Vec<Choice> {
    let strategies = registry::without_required_parameters();
    assert!(!strategies.is_empty());
    strategies
}

/// The strategies that are tested with the dump of this number of `dumps`: by default a quarter, others with each dump, so that each
/// is tested with one of four dumps.
fn strategies_for(dump: usize, dumps: usize) -> Vec<Choice> {
    let (all, parts) = (strategies().into_iter().enumerate(), dumps.min(4));
    all.filter(|&(at, _)| is_chosen(at, dump, parts)).map(|(_, choice)| choice).collect()
}

/// Checks the values of a row of a replay that no strategy can change.
#[track_caller]
fn check_row(row: &Value, before: &Value) {
    for field in ["average_load_seconds", "total_bytes", "total_messages", "objects"] {
        assert!(before[field].is_number(), "{field} in {before}");
        assert_eq!(row["after"][field], before[field], "{}: {field}", row["name"]);
    }
}

#[test]
fn every_strategy_conserves_the_work_and_the_bytes_of_every_dump() {
    let sandbox = Sandbox::new();
    let texts = charm_dump_texts();
    let dumps = texts.len();
    for (number, text) in texts.into_iter().enumerate() {
        let record = Record::read(&text);
        sandbox.put("lb.0", fs::read(text.with_extension("")).expect("the dump of its text"));
        let pes = record.background.len();
        for choice in strategies_for(number, dumps) {
            let name = format!("{} on {}", choice.spec, text.display());
            let line = format!(
                "map --graph lb.0 --topology flat:{pes} --balancer {} --output lb.map --format json",
                choice.spec
            );
            let metrics = sandbox.run(&line).document();
            let mapping = sandbox.text("lb.map");
            let placement: Vec<usize> = mapping.lines().map(|pe| pe.parse().expect("a PE")).collect();
            assert_eq!(placement.len(), record.objects.len(), "{name}");
            record.check(&name, &placement, &metrics);
        }
    }
}

#[test]
fn every_dump_is_replayed_with_every_strategy() {
    let sandbox = Sandbox::new();
    let texts = charm_dump_texts();
    let dumps = texts.len();
    for (number, text) in texts.into_iter().enumerate() {
        let record = Record::read(&text);
        sandbox.put("lb.0", fs::read(text.with_extension("")).expect("the dump of its text"));
        let every = strategies_for(number, dumps);
        let balancers: String = every.iter().map(|choice| format!(" --balancer {}", choice.spec)).collect();
        let document = sandbox.run(&format!("replay lb.0 --format json{balancers}")).document();
        let before = &document["before"];
        let homes: Vec<usize> = record.objects.iter().map(|object| object.1).collect();
        record.check(&format!("{} as recorded", text.display()), &homes, before);
        let rows = document["strategies"].as_array().expect("a list");
        let names: BTreeSet<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, every.iter().map(|choice| choice.spec.as_str()).collect());
        rows.iter().for_each(|row| check_row(row, before));
    }
}

#[test]
#[ignore = "slow"]
fn all_strategies_conserve_what_all_dumps_have() {
    at_full_size(&[
        every_strategy_conserves_the_work_and_the_bytes_of_every_dump,
        every_dump_is_replayed_with_every_strategy,
    ]);
}

#[test]
fn the_dump_of_a_program_is_replayed_with_every_strategy() {
    let sandbox = Sandbox::new();
    let run = "run kneighbor --pes 4 --transport simulated --elements 24 --iterations 30 --lb-every 10 \
               --charge 1e-6 --work 1000 --balancer RotateLB --lb-dump lb.db --lb-dump-steps 2 --format json";
    let steps = sandbox.run(run).document()["lb_steps"].clone();
    let document = sandbox.run("replay lb.db --format json").document();
    let replayed = document["steps"].as_array().expect("the two steps that were dumped");
    let recorded = steps.as_array().expect("the two steps of the run");
    assert_eq!((replayed.len(), recorded.len()), (2, 2));
    for (replayed, recorded) in replayed.iter().zip(recorded) {
        assert!(recorded["step"].is_u64() && replayed["database"]["step"] == recorded["step"], "{recorded}");
        let before = &replayed["before"];
        assert!(before["max_load_seconds"].as_f64() > Some(0.0), "load was recorded");
        assert_eq!(before["max_load_seconds"], recorded["before"]["max_load_seconds"]);
        assert_eq!(before["total_bytes"], recorded["before"]["total_bytes"]);
        assert!(before["total_bytes"].as_u64() > Some(0), "communication was recorded");
        let rows = replayed["strategies"].as_array().expect("a list");
        assert_eq!(rows.len(), strategies().len());
        rows.iter().for_each(|row| check_row(row, before));
        let rotate = rows.iter().find(|row| row["name"] == "RotateLB").expect("a row");
        assert_eq!(rotate["after"]["max_load_seconds"], recorded["after"]["max_load_seconds"]);
        assert_eq!((&rotate["migrations"], &recorded["after"]["migrations"]), (&24.into(), &24.into()));
    }
}

//! Tables: as CSV they have the fields of the JSON documents, and as text the units of what is known. The words of a recommendation in all
//! documents.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::documents::{METRICS, sandbox};

/// The lines of CSV without quotes, as fields.
fn fields(csv: &str) -> Vec<Vec<&str>> {
    csv.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn csv_has_the_fields_of_the_document_unrounded() {
    let sandbox = sandbox();
    let line = "map --graph ring:8 --topology torus:4 --balancer GreedyLB";
    let csv = sandbox.run(&format!("{line} --format csv")).result();
    let [names, values] = fields(&csv).try_into().expect("two lines");
    assert_eq!(
        names.iter().copied().collect::<BTreeSet<_>>(),
        [METRICS, &["seconds"]].concat().into_iter().collect()
    );
    assert_eq!(names.len(), values.len());

    let line = "evaluate --graph ring:8 --topology mesh:4 --mapping ring.map";
    let document = sandbox.run(&format!("{line} --format json")).document();
    let csv = sandbox.run(&format!("{line} --format csv")).result();
    let [names, values] = fields(&csv).try_into().expect("two lines");
    for (name, value) in names.iter().zip(&values) {
        let expected = if document[name].is_null() { String::new() } else { document[name].to_string() };
        assert_eq!(*value, expected, "{name}");
    }
    let csv = sandbox.run(&format!("{line} --cost hop_bytes,imbalance --format csv")).result();
    assert_eq!(csv, "hop_bytes,imbalance\n12,0.0\n");

    let csv =
        sandbox.run("explain --graph ring:8 --topology mesh:4 --mapping ring.map --format csv").result();
    assert_eq!(fields(&csv).iter().map(|row| row[0]).collect::<Vec<_>>(), ["mapping", "before", "after"]);
    let csv = sandbox.run("inspect lb.json --format csv").result();
    assert_eq!(fields(&csv).iter().map(|row| row[0]).collect::<Vec<_>>(), ["step", "4", "5", "6"]);
    assert!(csv.lines().next().is_some_and(|names| names.contains(",object_load_seconds.median,")), "{csv}");
    let csv = sandbox.run("topology mesh:3 --format csv").result();
    assert_eq!(csv, "distance,pairs\n1,2\n2,1\n");
    let csv = sandbox.run("topology mesh:3 --route 0 2 --format csv").result();
    assert_eq!(
        (csv.lines().count(), csv.lines().next()),
        (3, Some("link,name,length,bytes_per_second,latency_seconds"))
    );
    let empty = sandbox.run("topology mesh:3 --route 1 1 --format csv").result();
    assert_eq!((empty.lines().count(), empty.lines().next()), (1, csv.lines().next()));
    let all = sandbox.run("topology mesh:3 --links --format csv").result();
    assert_eq!((all.lines().count(), all.lines().next()), (5, csv.lines().next()));
    let line = "simulate --graph ring:4 --topology torus:4 --network flow --format csv";
    assert!(sandbox.run(line).result().starts_with("seconds,seconds_per_iteration,simulated_iterations,"));
}

#[test]
fn csv_of_replay_has_a_row_per_step_and_strategy() {
    let sandbox = sandbox();
    let line = "replay lb.json --steps 2 --balancer GreedyLB --balancer RefineLB:imbalance=0.1 --balancer HierTopoMap";
    let csv = sandbox.run(&format!("{line} --format csv")).result();
    let rows = fields(&csv);
    assert_eq!(rows[0][..5], ["step", "name", "seconds", "pes", "objects"]);
    let names: Vec<[&str; 2]> = rows[1..].iter().map(|row| [row[0], row[1]]).collect();
    let of_step = |step| {
        ["(as recorded)", "GreedyLB", "RefineLB:imbalance=0.1", "HierTopoMap"].map(|name| [step, name])
    };
    assert_eq!(names, [of_step("4"), of_step("5")].concat());
    assert_eq!((rows[0].last(), rows[1].len()), (Some(&"error"), rows[0].len()));
    // A spec with a comma is quoted; a strategy that refuses has a reason and no costs.
    let silent = r#"{"type": "equipoise-lb-database", "version": 1, "program": "pair", "topology": "flat:2",
        "steps": [{"step": 4, "pes": [{}, {}], "objects": [{"id": 1, "load_seconds": 1.0, "pe": 0}],
                   "communication_recorded": false, "edges": []}]}"#;
    sandbox.put("silent.json", silent);
    let line =
        "replay silent.json --balancer RefineSwapLB --balancer PoiseLB:quality=fast,gamma=0 --format csv";
    let csv = sandbox.run(line).result();
    let refusal = csv.lines().last().expect("a row");
    assert!(refusal.starts_with("4,\"PoiseLB:quality=fast,gamma=0\",,,"), "{csv}");
    assert!(refusal.contains("the strategy needs communication, which was not recorded; run "), "{csv}");
}

#[test]
fn loads_of_task_graphs_without_times_have_no_unit() {
    let sandbox = sandbox();
    sandbox.put("weights.graph", "3 2 010\n5 2\n7 1 3\n9 2\n");
    sandbox.put("plain.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n");
    sandbox.put("three.map", "0\n0\n1\n");
    let has_seconds = |text: &str| {
        text.lines().any(|line| {
            line.contains("load") && line.split_whitespace().any(|word| ["s", "ms"].contains(&word))
        })
    };
    for graph in ["weights.graph", "plain.mtx", "ring:3"] {
        let text = sandbox.run(&format!("inspect {graph}")).result();
        assert!(!has_seconds(&text), "{text}");
        for command in ["map", "evaluate --mapping three.map", "explain --mapping three.map"] {
            let text = sandbox.run(&format!("{command} --graph {graph} --topology flat:2")).result();
            assert!(!has_seconds(&text) && text.contains("largest load"), "{text}");
        }
    }
    let text = sandbox.run("evaluate --mapping three.map --graph weights.graph --topology flat:2").result();
    let row = |words: &[&str]| text.lines().any(|line| line.split_whitespace().eq(words.iter().copied()));
    assert!(row(&["largest", "load", "12"]) && row(&["average", "load", "10.5"]), "{text}");
    assert!(has_seconds(&sandbox.run("inspect lb.json --step 4").result()));
}

#[test]
fn a_recommendation_that_is_a_loss_is_only_the_best_of_these() {
    let sandbox = sandbox();
    // PE 0 works for 5 s. Apart, its objects need 3 and 2 s, and their 3 messages 3 s.
    let timed =
        sandbox.text("lb.json").replace("{}, {}, {}, {}", &[r#"{"wall_seconds": 5.0}"#; 4].join(", "));
    sandbox.put("timed.json", timed);
    sandbox.put("costs.json", r#"{"same_process": {"send_seconds": 1.0}}"#);
    let line = "replay timed.json --step 5 --cost-model costs.json --balancer GreedyLB --report x.json --format json";
    let document = sandbox.run(line).document();
    assert_eq!(document["recommendation"]["title"], "Best of these", "{}", document["recommendation"]);
    let report: Value = serde_json::from_str(&sandbox.text("x.json")).expect("JSON");
    assert_eq!(report["recommendation_title"], "Best of these");
    let lead = report["sentences"][0].as_str().expect("a sentence");
    assert!(
        lead.starts_with("Best of these: GreedyLB.") && lead.contains("keep the placement before"),
        "{lead}"
    );
}

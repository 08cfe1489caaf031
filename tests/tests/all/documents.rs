//! The output of the command: JSON documents with the documented fields, tables with the same numbers, and files
//! that read back.

use std::collections::BTreeSet;

use equipoise_tests::Sandbox;
use serde_json::Value;

/// The fields of metrics.
pub(crate) const METRICS: &[&str] = &[
    "pes",
    "objects",
    "max_load_seconds",
    "average_load_seconds",
    "imbalance",
    "lower_bound_seconds",
    "heaviest_object_seconds",
    "total_messages",
    "remote_messages",
    "total_bytes",
    "remote_bytes",
    "hop_bytes",
    "hops_per_byte",
    "hops_per_remote_byte",
    "max_dilation",
    "migrations",
    "migrated_bytes",
    "max_link_bytes",
    "mean_link_bytes",
    "hop_bytes_lower_bound",
];

/// The fields of [`METRICS`] about communication.
const COMMUNICATION: &[&str] = &[
    "total_messages",
    "remote_messages",
    "total_bytes",
    "remote_bytes",
    "hop_bytes",
    "hops_per_byte",
    "hops_per_remote_byte",
    "max_dilation",
    "max_link_bytes",
    "mean_link_bytes",
    "hop_bytes_lower_bound",
];

/// The fields of the row of a strategy without notes.
const ROW: &[&str] = &["name", "seconds", "migrations", "migrated_bytes", "after", "on_front"];

#[track_caller]
fn check_fields(document: &Value, expected: &[&str]) {
    let fields: BTreeSet<&str> =
        document.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, expected.iter().copied().collect());
}

/// A folder with a mapping of a ring, and a database of three steps on a torus.
pub(crate) fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("ring.map", "0\n0\n1\n1\n2\n2\n3\n3\n");
    let step = |step: u32, load: f64| {
        format!(
            r#"{{"step": {step}, "arrays": ["pair"], "pes": [{{}}, {{}}, {{}}, {{}}],
              "objects": [{{"id": 1, "index": [0], "load_seconds": {load}, "bytes": 100, "pe": 0}},
                          {{"id": 2, "index": [1], "load_seconds": 2.0, "bytes": 50, "pe": 0}}],
              "edges": [{{"from": {{"object": 0}}, "to": {{"object": 1}}, "messages": 3, "bytes": 90}},
                        {{"from": {{"pe": 3}}, "to": {{"object": 0}}, "messages": 1, "bytes": 10}}]}}"#
        )
    };
    sandbox.put(
        "lb.json",
        format!(
            r#"{{"type": "equipoise-lb-database", "version": 1, "program": "pair", "topology": "torus:2x2",
              "steps": [{}, {}, {}]}}"#,
            step(4, 1.0),
            step(5, 3.0),
            step(6, 2.0)
        ),
    );
    sandbox
}

#[test]
fn evaluate_gives_metrics_and_map_adds_seconds() {
    let sandbox = sandbox();
    let evaluated =
        sandbox.run("evaluate --graph ring:8 --topology mesh:4 --mapping ring.map --format json").document();
    check_fields(&evaluated, METRICS);
    // Three of the four pairs of neighbors are 1 hop apart, the last pair 3 hops; 1 byte goes each way.
    assert_eq!((&evaluated["hop_bytes"], &evaluated["total_bytes"]), (&12.into(), &16.into()));
    assert_eq!((&evaluated["max_link_bytes"], &evaluated["max_dilation"]), (&2.into(), &3.into()));

    let line = "map --graph ring:8 --topology torus:4 --balancer TopoLB --output best.map --format json";
    let mapped = sandbox.run(line).document();
    check_fields(&mapped, &[METRICS, &["seconds", "notes", "pe_of"]].concat());
    let pes: Vec<String> = sandbox.text("best.map").lines().map(String::from).collect();
    let pe_of = mapped["pe_of"].as_array().expect("PEs");
    assert_eq!(pe_of.iter().map(Value::to_string).collect::<Vec<_>>(), pes);
    assert_eq!(mapped["notes"], serde_json::json!([["groups", 4.0]]));
    let line = "evaluate --graph ring:8 --topology torus:4 --mapping best.map --format json";
    assert_eq!(sandbox.run(line).document()["hop_bytes"], mapped["hop_bytes"]);
    assert_eq!(mapped["hop_bytes"], 8, "a ring fits on a ring");
    let text = sandbox.run("evaluate --graph ring:8 --topology torus:4 --mapping best.map").result();
    assert!(text.lines().any(|line| line.split_whitespace().eq(["hop-bytes", "8"])), "{text}");
    let line = "map --graph ring:8 --topology torus:4 --balancer DummyLB --format json";
    check_fields(&sandbox.run(line).document(), &[METRICS, &["seconds", "pe_of"]].concat());
}

#[test]
fn evaluate_gives_the_requested_costs() {
    let sandbox = sandbox();
    let line = "evaluate --graph ring:8 --topology mesh:4 --mapping ring.map";
    let all = sandbox.run(&format!("{line} --format json")).document();
    for asked in ["--cost hop_bytes max_link_bytes", "--cost max_link_bytes,hop_bytes --cost hop_bytes"] {
        let some = sandbox.run(&format!("{line} {asked} --format json")).document();
        check_fields(&some, &["hop_bytes", "max_link_bytes"]);
        assert!(["hop_bytes", "max_link_bytes"].iter().all(|name| some[name] == all[name]), "{some}");
        let text = sandbox.run(&format!("{line} {asked}")).result();
        let lines: Vec<Vec<&str>> =
            text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            lines,
            [vec!["hop-bytes", "12"], vec!["bytes", "over", "the", "busiest", "link", "2", "B"]]
        );
    }
    let help = sandbox.run("evaluate --cost help").result();
    assert!(METRICS[2..].iter().all(|name| help.contains(name)), "{help}");
}

#[test]
fn evaluate_shows_the_time_saved_by_more_bandwidth_on_one_link_and_on_all() {
    let sandbox = sandbox();
    sandbox.put("order.map", "0\n1\n2\n3\n4\n5\n");
    let line = "evaluate --graph ring:6,bytes=1000000 --topology torus:6 --mapping order.map";
    let output = sandbox.run(&format!("{line} --cost mcf:optimal,mcf")).result();
    // All links are equally busy: one link alone saves nothing.
    let each = " of the shadow price; 1 % more bandwidth saves 0.00 % of the time\n";
    assert_eq!(output.matches(each).count(), 6, "{output}");
    assert!(output.contains("  0 <-> 1: "), "{output}");
    assert!(output.ends_with("1 % more bandwidth on all 6 cables saves 0.99 % of the time\n"), "{output}");
    let document = sandbox.run(&format!("{line} --cost mcf:optimal --format json")).document();
    let cables = document["links_to_buy"].as_array().expect("cables");
    let sum: f64 = cables.iter().filter_map(|cable| cable["share"].as_f64()).sum();
    assert!((sum - 1.0).abs() < 1e-6 && cables[0]["links"].as_array().is_some_and(|links| links.len() == 2));
    assert!(document["saved_by_all_links"].as_f64().is_some_and(|saved| (saved - 1.0 / 101.0).abs() < 1e-6));
    assert!(!sandbox.run(&format!("{line} --cost mcf")).result().contains("more bandwidth saves time"));
    // A warning gives the reason for an unknown cost.
    let line =
        "evaluate --graph ring:8 --topology torus:2x2*mesh:2 --mapping ring.map --cost mcf:cuts mcf:shortest";
    let output = sandbox.run(line);
    for name in ["mcf:cuts", "mcf:shortest"] {
        assert!(output.stderr.contains(&format!("warning: {name} is unknown: successive links of the")));
    }
}

#[test]
fn of_several_steps_the_first_is_mapped_with_a_warning() {
    let sandbox = sandbox();
    sandbox.put("pair.map", "0\n1\n");
    for line in [
        "map --graph lb.json --topology flat:4",
        "evaluate --graph lb.json --topology flat:4 --mapping pair.map",
    ] {
        for (step, largest, warning) in [
            (
                "",
                2.0,
                "warning: `lb.json` holds 3 steps; using the first, step 4; choose another with --step S\n",
            ),
            ("--step 4", 2.0, ""),
            ("--step 5", 3.0, ""),
        ] {
            let output = sandbox.run(&format!("{line} {step} --format json"));
            assert_eq!(output.stderr, warning, "{line} {step}");
            assert_eq!(output.document()["heaviest_object_seconds"], largest, "{line} {step}");
        }
    }
}

#[test]
fn map_starts_from_initial_and_does_not_move_fixed_tasks() {
    let sandbox = sandbox();
    sandbox.put("some.fixed", "# task pe\n7 0\n0 3\n");
    let line = "map --graph ring:8 --topology flat:4 --balancer DummyLB --initial ring.map --output same.map";
    sandbox.run(line).result();
    assert_eq!(sandbox.text("same.map"), sandbox.text("ring.map"));
    for balancer in ["RotateLB", "GreedyLB", "TopoLB", "RefineLB", "PoiseLB"] {
        let fixed = format!(
            "map --graph ring:8 --topology flat:4 --balancer {balancer} --fixed some.fixed --output fixed.map"
        );
        sandbox.run(&fixed).result();
        let mapping = sandbox.text("fixed.map");
        let lines: Vec<&str> = mapping.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[7]), (8, "3", "0"), "{balancer}");
    }
    let output = |line: &str| sandbox.run(&format!("map --graph ring:8 --topology torus:4 {line}")).result();
    assert!(
        output("--fixed some.fixed --output default.map").contains("\nPoiseLB took "),
        "the default strategy is PoiseLB"
    );
    assert_eq!(sandbox.text("default.map").lines().next(), Some("3"));
    assert!(
        output("--imbalance 0.5").contains("\nPoiseLB:imbalance=0.5 took "),
        "PoiseLB has this parameter"
    );
    let spread = "map --graph ring:8 --topology flat:4 --balancer RandomLB --seed 5 --output";
    for file in ["a.map", "b.map"] {
        sandbox.run(&format!("{spread} {file}")).result();
    }
    assert_eq!(sandbox.text("a.map"), sandbox.text("b.map"), "the same seed gives the same mapping");
}

#[test]
fn replay_gives_a_document_per_step_and_sums_over_several() {
    let sandbox = sandbox();
    let one = "replay lb.json --step 5 --balancer GreedyLB --balancer RefineLB:imbalance=0.1 --format json";
    let one = sandbox.run(one).document();
    check_fields(&one, &["program", "topology", "database", "before", "strategies", "recommendation"]);
    check_fields(&one["recommendation"], &["title", "strategy", "sentences"]);
    assert_eq!(one["recommendation"]["title"], "Recommended");
    check_fields(&one["before"], METRICS);
    check_fields(
        &one["database"],
        &[
            "step",
            "pes",
            "arrays",
            "objects",
            "migratable_objects",
            "load_seconds",
            "background_seconds",
            "edges",
            "dangling_edges",
            "messages",
            "bytes",
        ],
    );
    assert_eq!((&one["topology"], &one["database"]["step"]), (&"torus:2x2".into(), &5.into()));
    assert_eq!((&one["before"]["max_load_seconds"], &one["before"]["imbalance"]), (&5.0.into(), &3.0.into()));
    let rows = one["strategies"].as_array().expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["GreedyLB", "RefineLB:imbalance=0.1"]);
    for row in rows {
        check_fields(row, ROW);
        check_fields(&row["after"], METRICS);
        assert_eq!(row["after"]["total_bytes"], 100);
    }
    assert_eq!(rows[0]["after"]["max_load_seconds"], 3.0);

    let all = sandbox.run("replay lb.json --balancer GreedyLB --format json").document();
    check_fields(
        &all,
        &["program", "topology", "database", "before", "strategies", "recommendation", "steps"],
    );
    let steps = all["steps"].as_array().expect("a list");
    assert_eq!(steps.iter().map(|step| &step["database"]["step"]).collect::<Vec<_>>(), [4, 5, 6]);
    for part in steps.iter().chain([&all]) {
        check_fields(&part["before"], METRICS);
        check_fields(&part["strategies"][0], ROW);
        check_fields(&part["strategies"][0]["after"], METRICS);
        assert_eq!(part["strategies"].as_array().map(Vec::len), Some(1));
    }
    assert_eq!((&all["database"]["bytes"], &all["database"]["load_seconds"]), (&300.into(), &12.0.into()));
    assert_eq!(all["before"]["max_load_seconds"], 12.0);
    assert_eq!(all["strategies"][0]["after"]["max_load_seconds"], 7.0);
    assert_eq!(
        sandbox.run("replay lb.json --steps 2 --format json").document()["steps"][1]["database"]["step"],
        5
    );

    let elsewhere = "replay lb.json --step 4 --pes 8 --topology torus:2x2x2 --balancer DummyLB --format json";
    let elsewhere = sandbox.run(elsewhere).document();
    assert_eq!((&elsewhere["before"]["pes"], &elsewhere["topology"]), (&8.into(), &"torus:2x2x2".into()));

    let noted = sandbox.run("replay lb.json --step 4 --balancer TopoLB --format json").document();
    check_fields(&noted["strategies"][0], &[ROW, &["notes"]].concat());
    assert_eq!(noted["strategies"][0]["notes"], serde_json::json!([["groups", 2.0]]));
}

#[test]
fn replay_shows_a_table_and_names_the_best() {
    let sandbox = sandbox();
    let text = sandbox.run("replay lb.json --step 5 --balancer DummyLB --balancer GreedyLB").result();
    let lines: Vec<&str> = text.lines().collect();
    let head = [
        "program   pair",
        "topology  torus:2x2",
        "",
        "Step 5: 2 objects with a total load of 5.00 s, 100 B in 4 messages over 2 edges.",
        "",
    ];
    assert_eq!(lines[..5], head);
    let columns = "strategy ms max/avg above bound hops/byte above dilation 1 busiest link moves moved front";
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    assert_eq!(words(lines[5]), words(columns));
    assert_eq!(words(lines[6])[..6], ["(as", "recorded)", "-", "4.000", "66.7", "%"]);
    assert_eq!(words(lines[8])[0], "GreedyLB");
    // 100 bytes travel between PEs: 90 bytes at least 1 hop, the 10 bytes from PE 3 at least 2 hops.
    assert_eq!(words(lines[8])[2..8], ["2.400", "0.0", "%", "1.100", "10.0", "%"]);
    let best = "Recommended: GreedyLB. The largest load falls by 40 %; with ideal balance by 75 % \
                (the heaviest object limits this to 40 %).";
    assert!(text.contains(best), "{text}");
    let several = sandbox.run("replay lb.json --balancer GreedyLB").result();
    assert_eq!(several.matches("pair").count(), 1, "the program is named once: {several}");
    assert!(several.contains("All 3 steps together"), "{several}");
    assert!(several.contains("steps sum to 7.00 s instead of 12.0 s"), "{several}");
}

#[test]
fn a_program_run_with_lb_sim_has_the_output_of_replay() {
    let sandbox = sandbox();
    // The running times of strategies vary, and with them the widths of columns.
    let timeless = |text: String| -> Vec<String> {
        let is_time = |word: &&str| word.contains('.') && word.parse::<f64>().is_ok();
        let line = |line: &str| {
            let mut words: Vec<&str> = line.split_whitespace().collect();
            if words.get(1).is_some_and(is_time) {
                words.remove(1);
            }
            words.join(" ")
        };
        text.lines().map(line).collect()
    };
    for (charm, ours) in [
        (
            "+LBSim 4 +LBSimSteps 2 +LBDumpFile lb.json +balancer GreedyLB +balancer RefineLB",
            "--step 4 --steps 2 --balancer GreedyLB --balancer RefineLB",
        ),
        ("+LBSim 6 +LBSimProcs 9 +LBDumpFile lb.json", "--step 6 --pes 9"),
        (
            "--lb-sim 5 --lb-sim-file lb.json --topology mesh:4 --balancer TopoLB",
            "--step 5 --topology mesh:4 --balancer TopoLB",
        ),
    ] {
        let simulated = sandbox.run(&format!("run kneighbor {charm}")).result();
        let replayed = sandbox.run(&format!("replay lb.json {ours}")).result();
        assert!(replayed.contains("strategy"), "{replayed}");
        assert_eq!(timeless(simulated), timeless(replayed), "{charm}");
    }
    sandbox.run("run kneighbor +LBSim 9 +LBDumpFile lb.json").failed(2, &["has no step 9"]);
    sandbox
        .run("run kneighbor +LBSim 0 +LBDumpFile nothing")
        .failed(2, &["cannot read the database `nothing`"]);
    sandbox.put("foreign", "Dear reader,\n");
    sandbox.run("run kneighbor +LBSim 0 +LBDumpFile foreign").failed(1, &["is not a database"]);
}

#[test]
fn inspect_shows_the_content_of_a_file() {
    let sandbox = sandbox();
    let document = sandbox.run("inspect lb.json --format json").document();
    check_fields(&document, &["program", "topology", "steps"]);
    let step = &document["steps"][1];
    assert_eq!((&step["step"], &step["objects"], &step["bytes"]), (&5.into(), &2.into(), &100.into()));
    assert_eq!((&step["object_load_seconds"]["max"], &step["imbalance"]), (&3.0.into(), &3.0.into()));
    assert_eq!((&step["pe_edges"], &step["sized_bytes"]), (&1.into(), &150.into()));
    assert_eq!(step["objects_of_arrays"][0]["name"], "pair");
    assert_eq!(step["heaviest_objects"][0]["name"], "pair[0]");
    assert_eq!(step["heaviest_edges"][1]["from"], "PE 3");
    let text = sandbox.run("inspect lb.json").result();
    assert!(text.contains("steps     4, 5, 6") && text.contains("Details of a step: --step S"), "{text}");
    let text = sandbox.run("inspect lb.json --step 5 --heaviest 1").result();
    assert!(text.contains("pair[0] -> pair[1]") && !text.contains("PE 3 ->"), "{text}");
    let graph = sandbox.run("inspect mesh:3x3 --format json").document();
    assert_eq!(
        (&graph["steps"][0]["edges"], &graph["steps"][0]["partners"]["max"]),
        (&24.into(), &4.0.into())
    );
}

#[test]
fn communication_that_was_not_recorded_is_left_out_and_not_zero() {
    let sandbox = Sandbox::new();
    let program = "run kneighbor --transport simulated --pes 3 --elements 9 --iterations 6 --lb-every 3";
    // GreedyLB does not need communication, so it is not recorded.
    let silent = sandbox.run(&format!("{program} --balancer GreedyLB --format json")).document();
    assert!(silent["remote_messages"].as_u64() > Some(0), "messages crossed PEs");
    let only_loads: Vec<&str> =
        METRICS.iter().copied().filter(|name| !COMMUNICATION.contains(name)).collect();
    for metrics in ["before", "after"].map(|when| &silent["lb_steps"][0][when]) {
        check_fields(metrics, &only_loads);
    }
    let recorded =
        sandbox.run(&format!("{program} --balancer GreedyLB --lb-comm on --format json")).document();
    assert!(recorded["lb_steps"][0]["before"]["hop_bytes"].as_u64() > Some(0));

    for name in ["lb.db", "lb.json"] {
        sandbox.run(&format!("{program} --lb-comm off --lb-dump {name}")).result();
        let replay = sandbox.run(&format!("replay {name} --format json")).document();
        check_fields(&replay["before"], &only_loads);
        let refused = replay["refusals"].as_array().expect("some strategies need communication");
        assert!(refused.iter().any(|refusal| refusal["name"] == "TopoLB"), "{refused:?}");
        let text = sandbox.run(&format!("replay {name}")).result();
        assert!(text.contains("; communication was not recorded.") && !text.contains("hops"), "{text}");
        let inspection = sandbox.run(&format!("inspect {name} --format json")).document();
        for field in ["edges", "bytes", "remote_bytes", "partners", "heaviest_edges"] {
            assert_eq!(inspection["steps"][0].get(field), None, "{field}");
        }
        let text = sandbox.run(&format!("inspect {name}")).result();
        assert!(text.contains("unknown: communication was not recorded (--lb-comm on)"), "{text}");
        let output = sandbox.run(&format!("convert {name} lb.csv --check"));
        assert!(output.stderr.contains("communication was not recorded"), "{}", output.stderr);
        sandbox.run(&format!("replay {name} --balancer TopoLB")).failed(1, &["--lb-comm on"]);
    }
    sandbox.run("convert lb.db lb.json --check").result();
    let line = "map --graph lb.db --topology flat:3 --balancer GreedyLB";
    check_fields(
        &sandbox.run(&format!("{line} --format json")).document(),
        &[&only_loads[..], &["seconds", "pe_of"]].concat(),
    );
    let text = sandbox.run(line).result();
    let unknown = text.lines().find(|line| line.starts_with("hop-bytes")).expect("a line");
    assert_eq!(unknown.split_whitespace().collect::<Vec<_>>(), ["hop-bytes", "unknown", "unknown"]);
}

#[test]
fn convert_writes_files_that_read_back_the_same() {
    let sandbox = sandbox();
    let text = sandbox.run("convert lb.json lb.db --check").result();
    assert_eq!(text, "3 steps in lb.db, which reads back the same\n");
    sandbox.run("convert lb.db again.json --check").result();
    let document = |name: &str| sandbox.run(&format!("inspect {name} --format json")).document();
    assert_eq!(document("again.json"), document("lb.json"));
    sandbox.run("convert again.json other.json").result();
    assert_eq!(sandbox.text("other.json"), sandbox.text("again.json"), "the form is canonical");
    sandbox.run("convert lb.db one.db --step 5 --check").result();
    assert_eq!(document("one.db")["steps"].as_array().map(Vec::len), Some(1));

    // Costs of a run, which only the newest version of our own databases holds.
    sandbox.put("run.db", std::fs::read("../apps/databases/amr.db").expect("a database of the repository"));
    let what = "left out: costs of messages and migrations, which this format or version does not have";
    for line in ["old.db --to-version 2", "data.%p.json", "step.graph --step 0"] {
        let output = sandbox.run(&format!("convert run.db {line} --check"));
        assert!(output.stderr.contains(what), "{line}: {}", output.stderr);
        assert!(
            output.result().ends_with(", which reads back the same but for what was left out\n"),
            "{line}"
        );
    }
    assert!(!sandbox.run("convert run.db new.db --check").stderr.contains("left out"));

    let output = sandbox.run("convert lb.db pair.graph --step 5 --check");
    assert!(output.stderr.contains("left out: 1 edge that ends at a PE"), "{}", output.stderr);
    assert!(output.stderr.contains("this format cannot represent PEs"), "{}", output.stderr);
    assert_eq!(sandbox.text("pair.graph"), "2 1 111\n100 3 2 90\n50 2 1 90\n");
    for name in ["grid.graph", "grid.mtx", "grid.csv"] {
        sandbox.run(&format!("convert mesh:4x3,bytes=5 {name} --check")).result();
        assert_eq!(document(name)["steps"][0]["bytes"], 17 * 2 * 5, "{name}");
        sandbox.run(&format!("convert {name} {name}.db --check")).result();
        assert_eq!(document(&format!("{name}.db"))["steps"][0]["edges"], 34, "{name}");
    }
}

#[test]
fn topology_gives_distances_and_routes() {
    let sandbox = sandbox();
    let document = sandbox.run("topology mesh:3 --distances --route 2 0 --format json").document();
    check_fields(
        &document,
        &["topology", "pes", "links", "diameter", "average_distance", "histogram", "distances", "route"],
    );
    assert_eq!(
        (&document["pes"], &document["links"], &document["diameter"]),
        (&3.into(), &4.into(), &2.into())
    );
    assert_eq!(
        document["histogram"],
        serde_json::json!([{"distance": 1, "pairs": 2}, {"distance": 2, "pairs": 1}])
    );
    assert_eq!(document["distances"], serde_json::json!([[0, 1, 2], [1, 0, 1], [2, 1, 0]]));
    let names: Vec<&str> = document["route"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|link| link["name"].as_str())
        .collect();
    assert_eq!(names, ["2 -> 1", "1 -> 0"]);
    let text = sandbox.run("topology mesh:3 --distances").result();
    assert!(text.ends_with("\n0 1 2\n1 0 1\n2 1 0\n"), "{text}");
    let alone = sandbox.run("topology flat:1").result();
    assert!(alone.contains("diameter          0"), "{alone}");
    let large = sandbox.run("topology torus:64x32x32 --format json").document();
    assert_eq!((&large["pes"], large.get("diameter")), (&65536.into(), None));
}

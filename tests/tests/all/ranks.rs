//! Placing the ranks of an MPI job: `explain` and `launcher`, their documents, tables and errors.

use equipoise_tests::Sandbox;
use serde_json::{Value, json};

/// A folder with two placements of four ranks and a launcher's file.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("blocks", "0\n1\n2\n3\n");
    sandbox.put("crossed", "0\n2\n1\n3\n");
    sandbox.put("order", "0,2\n1,3\n");
    sandbox.put("short", "0\n1\n2\n");
    sandbox.put("beyond", "0\n1\n2\n4\n");
    sandbox.put("torn", "0\n1\n2\n3 ");
    sandbox.put("word", "0\none\n2\n3\n");
    sandbox.put("twice", "0,2\n1,2\n");
    sandbox.put("empty", "");
    sandbox.put("cut.csv", "src,dst,bytes\n0,1,10\n1,2\n");
    sandbox.put("cut.json", "[0,2,1");
    sandbox
}

/// A ring of four ranks on two nodes of two cores: 10 bytes each way between neighbors.
const JOB: &str = "--graph ring:4,bytes=10 --topology tree:2:2";

#[test]
fn explain_gives_bytes_by_distance_before_and_after() {
    let sandbox = sandbox();
    let document = sandbox.run(&format!("explain {JOB} --mapping crossed --format json")).document();
    let fields: Vec<&str> = document.as_object().expect("an object").keys().map(String::as_str).collect();
    let mut expected = ["before", "after", "distances", "levels", "far", "hot_before", "hot_after"];
    expected.sort_unstable();
    assert_eq!(
        {
            let mut fields = fields;
            fields.sort_unstable();
            fields
        },
        expected
    );
    // In blocks two pairs of neighbors are in the same node; crossed, none is.
    assert_eq!(
        (&document["before"]["hop_bytes"], &document["after"]["hop_bytes"]),
        (&json!(240), &json!(320))
    );
    let at = |distance: u64| -> Option<(Value, Value)> {
        let rows = document["distances"].as_array().expect("distances");
        let row = rows.iter().find(|row| row["distance"] == distance)?;
        Some((row["bytes_before"].clone(), row["bytes_after"].clone()))
    };
    assert_eq!(at(2), Some((json!(40), json!(0))));
    assert_eq!(at(4), Some((json!(40), json!(80))));
    assert!(document["far"].as_array().is_some_and(|far| !far.is_empty()), "{document}");
    assert_eq!(document["hot_after"][0]["bytes"], 40);
}

#[test]
fn explain_shows_a_summary_and_tables() {
    let sandbox = sandbox();
    let output = sandbox.run(&format!("explain {JOB} --mapping crossed")).result();
    for phrase in [
        "ring:4,bytes=10 on tree:2:2/4:2: 4 tasks",
        "Hop-bytes grow by 33.3 %: a byte between tasks crosses 4.00 hops on average (before: 3.00).",
        "times the lower bound of 240 for mappings with at most 1 object on a PE.",
        "in one of 2 parts of height 1",
        "heavy distant edges",
        "busiest links before",
        "busiest links after",
    ] {
        assert!(output.contains(phrase), "`{output}` does not contain `{phrase}`");
    }
    let back = sandbox.run(&format!("explain {JOB} --mapping blocks --initial crossed")).result();
    assert!(back.contains("Hop-bytes fall by 25.0 %"), "{back}");
    let moved = |line: &str| {
        let document = sandbox.run(&format!("explain {JOB} {line} --format json")).document();
        [&document["before"], &document["after"]].map(|metrics| metrics["migrations"].clone())
    };
    // Moves are counted from the mapping to compare with.
    assert_eq!(moved("--mapping blocks --initial crossed"), [json!(0), json!(2)]);
    assert_eq!(moved("--mapping crossed --initial crossed"), [json!(0), json!(0)]);
    sandbox.put("heap", "0\n0\n0\n0\n");
    let heap = sandbox.run(&format!("explain {JOB} --mapping heap")).result();
    let load = "The most loaded PE has 4.00 times the average load (before: 1.00 times).";
    assert!(heap.contains(load), "{heap}");
    let same = sandbox.run(&format!("explain {JOB} --mapping blocks")).result();
    assert!(same.contains("Hop-bytes are unchanged"), "{same}");
    let few = sandbox.run(&format!("explain {JOB} --mapping crossed --most 1 --format json")).document();
    assert_eq!(few["hot_after"].as_array().map(Vec::len), Some(1));
}

#[test]
fn launcher_checks_a_file_and_writes_the_same_placement() {
    let sandbox = sandbox();
    let line = "launcher mpich=order --topology flat:2*flat:2";
    let document = sandbox.run(&format!("{line} --ranks 4 --format json")).document();
    let expected = json!({
        "format": "mpich", "ranks": 4, "nodes": 2, "used_nodes": 2,
        "least_ranks_per_node": 2, "most_ranks_per_node": 2,
    });
    assert_eq!(document, expected);
    let output = sandbox
        .run(&format!(
            "{line} --to openmpi=rankfile --to mapping=map --to json=list --to flux=flux --to scotch=s.map"
        ))
        .result();
    assert!(output.contains("4, one per slot") && output.contains("2 of 2 nodes"), "{output}");
    assert_eq!(
        sandbox.text("rankfile"),
        "rank 0=+n0 slot=0\nrank 1=+n1 slot=0\nrank 2=+n0 slot=1\nrank 3=+n1 slot=1\n"
    );
    assert_eq!((sandbox.text("map"), sandbox.text("list")), ("0\n2\n1\n3\n".into(), "[0,2,1,3]\n".into()));
    assert_eq!(sandbox.text("s.map"), "4\n0\t0\n1\t2\n2\t1\n3\t3\n");
    let again = sandbox.run("launcher openmpi=rankfile --topology flat:2*flat:2 --to mpich=again");
    again.result();
    assert_eq!(sandbox.text("again"), sandbox.text("order"));
    // Two ranks on a PE need two slots.
    sandbox.put("two", "0\n0\n1\n1\n");
    sandbox.run("launcher mapping=two --topology flat:2 --slots 2").result();
    // A file written with two slots per PE is read with two slots per PE.
    sandbox.put("uneven", "0\n0\n2\n2\n");
    let machine = "--topology flat:2*flat:2";
    sandbox.run(&format!("launcher mapping=uneven {machine} --slots 2 --to openmpi=uneven.rank")).result();
    let hop_bytes = |mapping: &str| {
        let graph = format!("evaluate --graph mesh:4 {machine} --cost hop_bytes --mapping {mapping}");
        sandbox.run(&graph).result()
    };
    assert_eq!(hop_bytes("openmpi=uneven.rank --slots 2"), hop_bytes("uneven"));
}

#[test]
fn usage_errors_of_explain_and_launcher_end_with_2() {
    let sandbox = sandbox();
    for (line, phrases) in [
        (format!("explain {JOB}"), vec!["--mapping <FILE>"]),
        (format!("explain {JOB} --mapping none"), vec!["`none`"]),
        (format!("explain {JOB} --mapping blocks --initial none"), vec!["`none`"]),
        (format!("explain {JOB} --mapping blocks --most some"), vec!["--most"]),
        ("explain --graph ringg:4 --topology flat:4 --mapping blocks".into(), vec!["did you mean `ring`?"]),
        ("explain --graph ring:4 --topology flatt:4 --mapping blocks".into(), vec!["did you mean `flat`?"]),
        ("explain --graph spmv:4,none.mtx --topology flat:4 --mapping blocks".into(), vec!["`none.mtx`"]),
        ("launcher mpich=none --topology flat:4".into(), vec!["cannot read the launcher's file `none`"]),
        ("launcher mpich --topology flat:4".into(), vec!["expected FORMAT=FILE"]),
        ("launcher mpitch=order --topology flat:4".into(), vec!["did you mean `mpich`?"]),
        ("launcher mpich=order".into(), vec!["--topology <SPEC>"]),
        (format!("explain {JOB} --mapping blocks --slots -1"), vec!["'-1' for '--slots"]),
        ("map --program ring.tcg --send-cycles -1".into(), vec!["'-1' for '--send-cycles"]),
        ("map --program ring.tcg --receive-cycles -1".into(), vec!["'-1' for '--receive-cycles"]),
        ("simulate --graph ring:4 --iterations -1".into(), vec!["'-1' for '--iterations"]),
        ("replay run.db --pes -1".into(), vec!["'-1' for '--pes"]),
        ("experts --loads loads.csv --expert-groups -1".into(), vec!["'-1' for '--expert-groups"]),
        ("experts --loads loads.csv --expert-bytes -1".into(), vec!["'-1' for '--expert-bytes"]),
        ("launcher mpich=order --topology flat:2*flat:2 --slots 0".into(), vec!["--slots"]),
        (
            "launcher mpich=order --topology flat:2*flat:2 --to fugaku=v".into(),
            vec!["fugaku: nodes have no coordinates"],
        ),
        (
            "launcher mpich=order --topology flat:2*flat:2 --to json=no/such/place".into(),
            vec!["cannot write"],
        ),
    ] {
        sandbox.run(&line).failed(2, &phrases);
    }
}

#[test]
fn errors_in_files_end_with_1_and_name_the_line() {
    let sandbox = sandbox();
    for (line, phrases) in [
        (format!("explain {JOB} --mapping word"), vec!["line 2", "`one`"]),
        (format!("explain {JOB} --mapping beyond"), vec!["line 4: there is no PE 4"]),
        (format!("explain {JOB} --mapping short"), vec!["`short` places 3 objects, not 4"]),
        (format!("explain {JOB} --mapping empty"), vec!["`empty` places 0 objects"]),
        ("explain --graph cut.csv --topology flat:4 --mapping blocks".into(), vec!["cut.csv:3: "]),
        (
            "launcher mpich=twice --topology flat:2*flat:2".into(),
            vec!["`twice`: line 2: rank 2 already has a place in line 1"],
        ),
        (
            "launcher mpich=empty --topology flat:2*flat:2".into(),
            vec!["`empty`: line 1: the file has no rank"],
        ),
        (
            "launcher json=cut.json --topology flat:4".into(),
            vec!["`cut.json`: line 1: expected a list of PEs"],
        ),
        (
            "launcher mpich=order --topology flat:2*flat:2 --ranks 5".into(),
            vec!["places 4 ranks, but --ranks is 5"],
        ),
        ("launcher mapping=beyond --topology flat:4".into(), vec!["`beyond`: line 4: "]),
    ] {
        sandbox.run(&line).failed(1, &phrases);
    }
    // The last line of a file may lack its newline.
    sandbox.run("launcher mapping=torn --topology flat:4").result();
}

#[test]
fn nothing_is_written_if_one_of_the_files_cannot_be_written() {
    let sandbox = Sandbox::new();
    let line = "map --graph ring:4 --topology flat:2*flat:2 --output map --launcher json=list --launcher slurm=hosts";
    sandbox.run(line).failed(2, &["slurm: the machine has no host names"]);
    for name in ["map", "list", "hosts"] {
        assert!(!sandbox.path().join(name).exists(), "{name}");
    }
    let line = "map --graph ring:8 --topology tree:2:4 --balancer HierTopoMap:inter=bipart";
    sandbox.run(line).failed(2, &["needs coordinates", "use inter=tree"]);
}

#[test]
fn files_written_to_stdout_are_not_read_back() {
    let sandbox = sandbox();
    let line = "launcher mpich=order --topology flat:2*flat:2 --to json=/dev/stdout --to mapping=map";
    let output = sandbox.run(line).result();
    assert!(output.starts_with("[0,2,1,3]\n"), "{output}");
    assert!(
        output.contains("/dev/stdout (json)\n") && output.contains("map (mapping), which reads back"),
        "{output}"
    );
}

#[test]
fn without_a_mapping_rank_i_is_on_pe_i() {
    let sandbox = sandbox();
    // Six ranks of a ring on the first six PEs, which are in two of the four nodes.
    let line =
        "map --graph ring:6 --topology flat:4*flat:4 --balancer HierTopoMap --output map --format json";
    let document = sandbox.run(line).document();
    sandbox.put("filled", "0\n1\n2\n3\n4\n5\n");
    let filled =
        sandbox.run("evaluate --graph ring:6 --topology flat:4*flat:4 --mapping filled --format json");
    let hop_bytes = |document: &Value| document["hop_bytes"].as_u64().expect("a number");
    assert!(hop_bytes(&document) <= hop_bytes(&filled.document()), "{document}");
    let line = "explain --graph ring:6 --topology flat:4*flat:4 --mapping filled";
    let output = sandbox.run(line).result();
    assert!(output.contains("Hop-bytes are unchanged"), "{output}");
}

#[test]
fn launchers_files_are_accepted_as_mappings() {
    let sandbox = sandbox();
    let graph = "--graph ring:4,bytes=10 --topology flat:2*flat:2";
    let crossed = sandbox.run(&format!("evaluate {graph} --mapping crossed --format json")).document();
    let order = sandbox.run(&format!("evaluate {graph} --mapping mpich=order --format json")).document();
    assert_eq!(crossed["hop_bytes"], order["hop_bytes"]);
    let line = format!("explain {graph} --mapping mpich=order --initial mapping=blocks");
    assert!(sandbox.run(&line).result().contains("Hop-bytes grow"));
    sandbox
        .run(&format!("evaluate {graph} --mapping json=cut.json"))
        .failed(1, &["`cut.json`: line 1: expected"]);
    sandbox
        .run(&format!("evaluate {graph} --mapping json=none"))
        .failed(2, &["cannot read the launcher's file"]);
    let few = "evaluate --graph ring:6 --topology flat:4*flat:2 --mapping mpich=order";
    sandbox.run(few).failed(1, &["places 4 ranks, but the graph has 6 tasks"]);
}

#[test]
fn explain_uses_the_names_of_hosts_switches_and_levels() {
    let sandbox = sandbox();
    sandbox.put("one", "0\n2\n1\n3\n");
    sandbox.put(
        "t.conf",
        "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=b[1-2]\nSwitchName=top Switches=s[1-2]\n",
    );
    let output = sandbox.run("explain --graph ring:4 --topology slurm:t.conf --mapping one").result();
    for phrase in ["a1 - b1", "in one of 2 parts of height 1", "switch s1 -> switch top", "a2 -> switch s1"] {
        assert!(output.contains(phrase), "`{output}` does not contain `{phrase}`");
    }
    let output = sandbox.run("explain --graph ring:4 --topology torus:2x2*tree:2 --mapping one").result();
    assert!(output.contains("between nodes") && output.contains("in one of 4 nodes"), "{output}");
    assert!(!output.contains("height") && !output.contains("unknown"), "{output}");
}

/// Where links have different bandwidths, the time of the busiest one is in the tables and sentences.
#[test]
fn times_of_busiest_links_are_shown_where_bandwidths_differ() {
    let sandbox = Sandbox::new();
    let map = |more: &str| sandbox.run(&format!("map --graph mesh:8x8,bytes=1000 {more}")).result();
    let title = "time of the busiest link";
    assert!(!map("--topology torus:4x4x4/1e9:1e9:1e9").contains(title));
    let unequal = "--topology torus:4x4x4/100e9:100e9:1e9";
    let text = map(&format!("{unequal} --balancer RandomLB --output random.map"));
    assert!(text.contains(title) && text.contains("--balancer McfLB looks at the times of links"), "{text}");
    let best = map(&format!("{unequal} --balancer McfLB"));
    assert!(best.contains(title) && !best.contains("looks at the times"), "{best}");
    // PoiseLB puts the long dimensions of the mesh where links are fast.
    let poise = map(&format!("{unequal} --balancer PoiseLB"));
    assert!(poise.contains("Bytes over bandwidth, summed over all links, fell to "), "{poise}");
    assert!(!poise.contains("looks at the times"), "{poise}");
    let explained =
        sandbox.run(&format!("explain --graph mesh:8x8,bytes=1000 {unequal} --mapping random.map")).result();
    assert!(
        explained.contains(" The busiest link takes ") && explained.contains("time at full bandwidth"),
        "{explained}"
    );
    let line = "explain --graph mesh:8x8,bytes=1000 --topology torus:4x4x4 --mapping random.map";
    let assumed = sandbox.run(line).result();
    assert!(assumed.contains("time at 1.00 GB/s (assumed)"), "{assumed}");
    let found = sandbox.run(
        "evaluate --graph mesh:8x8,bytes=1000 --topology torus:4x4x4 --mapping random.map --format json",
    );
    assert!(found.document().get("mcf").is_none());
}

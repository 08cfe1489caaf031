//! What somebody does who places the ranks of an MPI job: `explain` and `launcher`, their documents and tables, and
//! what they say of what cannot be used.

use equipoise_tests::Place;
use serde_json::{Value, json};

/// A folder with two placements of four ranks and a launcher's file.
fn place() -> Place {
    let place = Place::new();
    place.put("blocks", "0\n1\n2\n3\n");
    place.put("crossed", "0\n2\n1\n3\n");
    place.put("order", "0,2\n1,3\n");
    place.put("short", "0\n1\n2\n");
    place.put("beyond", "0\n1\n2\n4\n");
    place.put("torn", "0\n1\n2\n3 ");
    place.put("word", "0\none\n2\n3\n");
    place.put("twice", "0,2\n1,2\n");
    place.put("empty", "");
    place.put("cut.csv", "src,dst,bytes\n0,1,10\n1,2\n");
    place.put("cut.json", "[0,2,1");
    place
}

/// A ring of four ranks on two nodes of two cores: 10 bytes each way between neighbors.
const JOB: &str = "--graph ring:4,bytes=10 --topology tree:2:2";

#[test]
fn explain_says_where_bytes_went_and_where_they_go() {
    let place = place();
    let document = place.run(&format!("explain {JOB} --mapping crossed --format json")).document();
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
    // In blocks two pairs of neighbors meet in their node; crossed none does.
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
fn explain_tells_a_person_in_a_sentence_and_tables() {
    let place = place();
    let told = place.run(&format!("explain {JOB} --mapping crossed")).result();
    for phrase in [
        "ring:4,bytes=10 on tree:2:2/4:2: 4 tasks",
        "Hop-bytes grow by 33.3 %: a byte that leaves its task crosses 4.00 hops in place of 3.00.",
        "in one of 2 nodes",
        "heavy and apart",
        "hottest links before",
        "hottest links after",
    ] {
        assert!(told.contains(phrase), "`{told}` does not contain `{phrase}`");
    }
    let back = place.run(&format!("explain {JOB} --mapping blocks --initial crossed")).result();
    assert!(back.contains("Hop-bytes fall by 25.0 %"), "{back}");
    place.put("heap", "0\n0\n0\n0\n");
    let heap = place.run(&format!("explain {JOB} --mapping heap")).result();
    assert!(heap.contains("The most loaded PE has 4.00 times the average load, in place of 1.00."), "{heap}");
    let same = place.run(&format!("explain {JOB} --mapping blocks")).result();
    assert!(same.contains("Hop-bytes stay as they were"), "{same}");
    let few = place.run(&format!("explain {JOB} --mapping crossed --most 1 --format json")).document();
    assert_eq!(few["hot_after"].as_array().map(Vec::len), Some(1));
}

#[test]
fn launcher_checks_a_file_and_writes_the_same_placement() {
    let place = place();
    let line = "launcher mpich=order --topology flat:2*flat:2";
    let document = place.run(&format!("{line} --ranks 4 --format json")).document();
    let expected = json!({
        "format": "mpich", "ranks": 4, "nodes": 2, "used_nodes": 2,
        "least_ranks_per_node": 2, "most_ranks_per_node": 2,
    });
    assert_eq!(document, expected);
    let told = place
        .run(&format!(
            "{line} --to openmpi=rankfile --to mapping=map --to json=list --to flux=flux --to scotch=s.map"
        ))
        .result();
    assert!(told.contains("4, each with a slot of its own") && told.contains("2 of 2 nodes"), "{told}");
    assert_eq!(
        place.text("rankfile"),
        "rank 0=+n0 slot=0\nrank 1=+n1 slot=0\nrank 2=+n0 slot=1\nrank 3=+n1 slot=1\n"
    );
    assert_eq!((place.text("map"), place.text("list")), ("0\n2\n1\n3\n".into(), "[0,2,1,3]\n".into()));
    assert_eq!(place.text("s.map"), "4\n0\t0\n1\t2\n2\t1\n3\t3\n");
    let again = place.run("launcher openmpi=rankfile --topology flat:2*flat:2 --to mpich=again");
    again.result();
    assert_eq!(place.text("again"), place.text("order"));
    // Two ranks of a PE are two slots.
    place.put("two", "0\n0\n1\n1\n");
    place.run("launcher mapping=two --topology flat:2 --slots 2").result();
    // What was written with two slots a PE is read with two.
    place.put("uneven", "0\n0\n2\n2\n");
    let machine = "--topology flat:2*flat:2";
    place.run(&format!("launcher mapping=uneven {machine} --slots 2 --to openmpi=uneven.rank")).result();
    let hop_bytes = |mapping: &str| {
        let graph = format!("evaluate --graph mesh:4 {machine} --cost hop_bytes --mapping {mapping}");
        place.run(&graph).result()
    };
    assert_eq!(hop_bytes("openmpi=uneven.rank --slots 2"), hop_bytes("uneven"));
}

#[test]
fn what_another_command_line_helps_ends_with_2() {
    let place = place();
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
        ("launcher mpich=order --topology flat:2*flat:2 --slots 0".into(), vec!["--slots"]),
        (
            "launcher mpich=order --topology flat:2*flat:2 --to fugaku=v".into(),
            vec!["fugaku: nodes have coordinates"],
        ),
        (
            "launcher mpich=order --topology flat:2*flat:2 --to json=no/such/place".into(),
            vec!["cannot write"],
        ),
    ] {
        place.run(&line).failed(2, &phrases);
    }
}

#[test]
fn what_is_wrong_with_a_file_ends_with_1_and_says_the_line() {
    let place = place();
    for (line, phrases) in [
        (format!("explain {JOB} --mapping word"), vec!["line 2", "`one`"]),
        (format!("explain {JOB} --mapping beyond"), vec!["line 4: there is no PE 4"]),
        (format!("explain {JOB} --mapping short"), vec!["`short` places 3 objects, and there are 4"]),
        (format!("explain {JOB} --mapping empty"), vec!["`empty` places 0 objects"]),
        ("explain --graph cut.csv --topology flat:4 --mapping blocks".into(), vec!["cut.csv:3: "]),
        (
            "launcher mpich=twice --topology flat:2*flat:2".into(),
            vec!["`twice`: line 2: rank 2 has its place in line 1"],
        ),
        (
            "launcher mpich=empty --topology flat:2*flat:2".into(),
            vec!["`empty`: line 1: there is no rank in it"],
        ),
        (
            "launcher json=cut.json --topology flat:4".into(),
            vec!["`cut.json`: line 1: expected a list of PEs"],
        ),
        (
            "launcher mpich=order --topology flat:2*flat:2 --ranks 5".into(),
            vec!["places 4 ranks, and there are 5"],
        ),
        ("launcher mapping=beyond --topology flat:4".into(), vec!["`beyond`: line 4: "]),
    ] {
        place.run(&line).failed(1, &phrases);
    }
    // A file without an end of its last line is whole.
    place.run("launcher mapping=torn --topology flat:4").result();
}

#[test]
fn nothing_is_written_where_one_of_the_files_cannot_be() {
    let place = Place::new();
    let line = "map --graph ring:4 --topology flat:2*flat:2 --output map --launcher json=list --launcher slurm=hosts";
    place.run(line).failed(2, &["slurm: the machine does not say the names of hosts"]);
    for name in ["map", "list", "hosts"] {
        assert!(!place.path().join(name).exists(), "{name}");
    }
    let line = "map --graph ring:8 --topology tree:2:4 --balancer HierTopoMap:inter=bipart";
    place.run(line).failed(2, &["needs coordinates", "use inter=tree"]);
}

#[test]
fn what_goes_to_the_output_is_not_read_back() {
    let place = place();
    let line = "launcher mpich=order --topology flat:2*flat:2 --to json=/dev/stdout --to mapping=map";
    let told = place.run(line).result();
    assert!(told.starts_with("[0,2,1,3]\n"), "{told}");
    assert!(
        told.contains("/dev/stdout (json)\n") && told.contains("map (mapping), which reads back"),
        "{told}"
    );
}

#[test]
fn ranks_in_their_order_are_on_one_pe_after_the_other() {
    let place = place();
    // Six ranks of a ring on the first six PEs of four nodes, of which they need two.
    let line =
        "map --graph ring:6 --topology flat:4*flat:4 --balancer HierTopoMap --output map --format json";
    let document = place.run(line).document();
    place.put("filled", "0\n1\n2\n3\n4\n5\n");
    let filled = place.run("evaluate --graph ring:6 --topology flat:4*flat:4 --mapping filled --format json");
    let hop_bytes = |document: &Value| document["hop_bytes"].as_u64().expect("a number");
    assert!(hop_bytes(&document) <= hop_bytes(&filled.document()), "{document}");
    let line = "explain --graph ring:6 --topology flat:4*flat:4 --mapping filled";
    let told = place.run(line).result();
    assert!(told.contains("Hop-bytes stay as they were"), "{told}");
}

#[test]
fn launchers_files_are_mappings_too() {
    let place = place();
    let graph = "--graph ring:4,bytes=10 --topology flat:2*flat:2";
    let crossed = place.run(&format!("evaluate {graph} --mapping crossed --format json")).document();
    let order = place.run(&format!("evaluate {graph} --mapping mpich=order --format json")).document();
    assert_eq!(crossed["hop_bytes"], order["hop_bytes"]);
    let line = format!("explain {graph} --mapping mpich=order --initial mapping=blocks");
    assert!(place.run(&line).result().contains("Hop-bytes grow"));
    place
        .run(&format!("evaluate {graph} --mapping json=cut.json"))
        .failed(1, &["`cut.json`: line 1: expected"]);
    place
        .run(&format!("evaluate {graph} --mapping json=none"))
        .failed(2, &["cannot read the launcher's file"]);
    let few = "evaluate --graph ring:6 --topology flat:4*flat:2 --mapping mpich=order";
    place.run(few).failed(1, &["places 4 ranks, and there are 6 tasks"]);
}

#[test]
fn explain_calls_places_by_their_names() {
    let place = place();
    place.put("one", "0\n2\n1\n3\n");
    place.put(
        "t.conf",
        "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=b[1-2]\nSwitchName=top Switches=s[1-2]\n",
    );
    let told = place.run("explain --graph ring:4 --topology slurm:t.conf --mapping one").result();
    for phrase in ["a1 - b1", "in one of 2 at level 1", "switch s1 -> switch top", "a2 -> switch s1"] {
        assert!(told.contains(phrase), "`{told}` does not contain `{phrase}`");
    }
    let told = place.run("explain --graph ring:4 --topology torus:2x2*tree:2 --mapping one").result();
    assert!(told.contains("between nodes") && told.contains("in one of 4 nodes"), "{told}");
    assert!(!told.contains("at level") && !told.contains("unknown"), "{told}");
}

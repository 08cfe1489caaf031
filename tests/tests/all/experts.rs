//! `equipoise experts`: plans, tables and documents, and errors in its files.

use equipoise_tests::Sandbox;
use serde_json::Value;

/// Loads of two layers of 12 experts in all formats, and damaged ones.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let rows = [
        [90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86],
        [20, 107, 104, 64, 19, 197, 187, 157, 172, 86, 16, 27],
    ];
    let text = rows.map(|row| row.map(|load| load.to_string()).join(",")).join("\n");
    sandbox.put("loads.csv", &text);
    sandbox.put("loads.json", format!("[[{}]]", text.replace('\n', "],[")));
    let array = |shape: &str| {
        let header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        let head = [b"\x93NUMPY\x01\0".as_slice(), &length, header.as_bytes()].concat();
        [head, rows.as_flattened().iter().map(|&load| load as u8).collect()].concat()
    };
    sandbox.put("windows.npy", array("(2, 1, 12)"));
    let array = array("(2, 12)");
    sandbox.put("loads.npy", &array);
    sandbox.put("truncated.npy", &array[..array.len() - 5]);
    sandbox.put("negative.csv", "1,2,-3\n");
    sandbox.put("words.json", "{\"loads\": 1}");
    sandbox.put("few.json", r#"{"physical_to_logical": [[0, 1, 2, 0]]}"#);
    sandbox
}

const LINE: &str = "experts --loads loads.csv --replicas 16 --topology flat:2*flat:4";

#[test]
fn all_formats_of_loads_have_the_same_plan_and_the_document_has_its_costs() {
    let sandbox = sandbox();
    let document = sandbox.run(&format!("{LINE} --output plan.json --format json")).document();
    let plan: Value = serde_json::from_str(&sandbox.text("plan.json")).expect("a document");
    for name in ["loads.json", "loads.npy"] {
        let line = LINE.replace("loads.csv", name);
        sandbox.run(&format!("{line} --output again.json")).result();
        assert_eq!(sandbox.text("again.json"), sandbox.text("plan.json"), "{name}");
    }
    let of = |name: &str| {
        plan[name].as_array().expect(name).iter().map(|layer| layer.as_array().expect("a layer"))
    };
    for (experts, (slots, counts)) in
        of("physical_to_logical").zip(of("logical_to_physical").zip(of("counts")))
    {
        assert_eq!((experts.len(), slots.len(), counts.len()), (16, 12, 12));
        for (expert, (slots, count)) in slots.iter().zip(counts).enumerate() {
            let slots = slots.as_array().expect("slots");
            assert_eq!(count, slots.len());
            assert!(slots.iter().all(|slot| experts[slot.as_u64().expect("a slot") as usize] == expert));
        }
    }
    let summary = |name: &str| document["summary"][name].as_f64().expect(name);
    let theirs = |name: &str| document["eplb"][name].as_f64().expect(name);
    assert_eq!(summary("pes_with_repeated_expert"), 0.0);
    assert!(summary("worst_max_over_average") <= theirs("worst_max_over_average"));
    let layers = document["layers"].as_array().expect("layers");
    assert_eq!(layers.len(), 2);
    let worst = layers.iter().filter_map(|layer| layer["max_over_average"].as_f64()).fold(0.0, f64::max);
    assert!((worst - summary("worst_max_over_average")).abs() < 1e-12);
    let csv = sandbox.run(&format!("{LINE} --format csv")).result();
    assert!(
        csv.starts_with(
            "layer,max_load,average_load,max_over_average,pes_with_repeated_expert,eplb_max_load,eplb_max_over_average,\
             eplb_pes_with_repeated_expert\n0,"
        ),
        "{csv}"
    );
    let of_eplb = document["eplb_layers"].as_array().expect("layers");
    let worst = of_eplb.iter().filter_map(|layer| layer["max_over_average"].as_f64()).fold(0.0, f64::max);
    assert_eq!((of_eplb.len(), worst), (2, theirs("worst_max_over_average")));
    assert_eq!(csv.lines().count(), 3);
}

#[test]
fn a_plan_is_kept_judged_and_read_without_its_other_fields() {
    let sandbox = sandbox();
    sandbox.run(&format!("{LINE} --output plan.json")).result();
    let kept = sandbox.run(&format!("{LINE} --previous plan.json --format json")).document();
    assert_eq!((&kept["summary"]["moves"], &kept["summary"]["bytes_moved"]), (&0.into(), &0.into()));
    let plan: Value = serde_json::from_str(&sandbox.text("plan.json")).expect("a document");
    sandbox.put("short.json", format!("{{\"physical_to_logical_map\": {}}}", plan["physical_to_logical"]));
    let judge = "experts --loads loads.csv --topology flat:2*flat:4 --evaluate";
    let judged = ["plan.json", "short.json"]
        .map(|plan| sandbox.run(&format!("{judge} {plan} --format json")).document());
    assert_eq!(judged[0], judged[1]);
    let placed = sandbox.run(&format!("{LINE} --format json")).document();
    assert_eq!(judged[0]["layers"], placed["layers"]);
    // Without --topology, the machine is that of the plan.
    let alone = sandbox.run("experts --loads loads.csv --evaluate plan.json --format json").document();
    assert_eq!(alone, judged[0]);
    sandbox
        .run("experts --loads loads.csv --evaluate short.json")
        .failed(2, &["the plan `short.json` names no machine; name its machine with --topology"]);
    let other = sandbox.run("experts --loads loads.csv --topology flat:4 --evaluate plan.json");
    let sentence = "the plan was made for 8 PEs (flat:2*flat:4), and flat:4 has 4 PEs";
    assert!(other.stderr.contains(sentence), "{other:?}");
    let other = sandbox.run("experts --loads loads.csv --replicas 16 --topology flat:4 --previous plan.json");
    assert!(other.stderr.contains("the previous plan was made for 8 PEs"), "{other:?}");
}

#[test]
fn a_next_plan_is_shown_with_the_plan_in_use_its_transfers_and_a_plan_made_anew() {
    let sandbox = sandbox();
    let plan = |name: &str| serde_json::from_str::<Value>(&sandbox.text(name)).expect("a document");
    sandbox.run(&format!("{LINE} --output plan.json --sglang sglang.json")).result();
    // SGLang takes a document with this field only.
    let map = serde_json::json!({ "physical_to_logical_map": plan("plan.json")["physical_to_logical"] });
    assert_eq!(plan("sglang.json"), map);

    // The loads in reverse order of experts.
    let loads = "[[86,183,56,73,4,39,165,104,61,40,132,90],[27,16,86,172,157,187,197,19,64,104,107,20]]";
    sandbox.put("next.json", format!("{{\"logical_count\": {loads}}}"));
    let line = LINE.replace("loads.csv", "next.json");
    let next = format!("{line} --previous plan.json --output next.plan.json --transfers copies.csv");
    let text = sandbox.run(&next).result();
    for words in ["all layers ", " plan ", " in use ", " anew ", " EPLB anew", "copies.csv ("] {
        assert!(text.contains(words), "`{text}` does not contain `{words}`");
    }
    let document = sandbox.run(&format!("{line} --previous plan.json --format json")).document();
    let of = |name: &str, field: &str| document[name][field].as_f64().expect("a number");
    assert_eq!(of("in_use", "moves"), 0.0);
    assert!(of("in_use", "worst_max_over_average") > of("summary", "worst_max_over_average"));
    let alone = sandbox.run(&format!("{line} --format json")).document();
    assert_eq!(document["anew"]["worst_max_over_average"], alone["summary"]["worst_max_over_average"]);

    // After the transfers, all PEs have the experts of the next plan.
    let copies = sandbox.text("copies.csv");
    let mut rows = copies.lines();
    assert_eq!(rows.next(), Some("layer,expert,from,to"));
    let rows: Vec<Vec<u64>> =
        rows.map(|row| row.split(',').map(|cell| cell.parse().expect("a number")).collect()).collect();
    assert_eq!(document["summary"]["moves"], rows.len());
    let on = |name: &str, layer: u64, pe: u64| -> Vec<u64> {
        let slots = plan(name)["physical_to_logical"][layer as usize].as_array().expect("slots").clone();
        slots.iter().skip(2 * pe as usize).take(2).map(|it| it.as_u64().expect("an expert")).collect()
    };
    for row in &rows {
        assert!(on("plan.json", row[0], row[2]).contains(&row[1]), "the sender has it: {row:?}");
    }
    for (layer, pe) in (0..2).flat_map(|layer| (0..8).map(move |pe| (layer, pe))) {
        let arrives = |expert: &u64| rows.iter().any(|row| row[..2] == [layer, *expert] && row[3] == pe);
        let before = on("plan.json", layer, pe);
        assert!(on("next.plan.json", layer, pe).iter().all(|it| before.contains(it) != arrives(it)));
    }
    sandbox.run(&format!("{LINE} --transfers copies.csv")).failed(2, &["--previous"]);
    sandbox.run(&format!("{LINE} --output a.json --sglang a.json")).failed(2, &["a.json"]);
    let nowhere = sandbox.run(&format!("{LINE} --sglang no/such.json"));
    nowhere.failed(2, &["cannot write the plan `no/such.json`"]);
}

#[test]
fn plans_with_more_slots_on_a_pe_than_experts_can_be_judged() {
    let sandbox = sandbox();
    sandbox.put("two.csv", "3,1\n");
    sandbox.put("full.json", r#"{"physical_to_logical": [[0,0,0,0,1,1,1,1]]}"#);
    let line = "experts --loads two.csv --topology flat:2 --format json --evaluate full.json";
    let judged = sandbox.run(line).document();
    assert_eq!(judged["layers"][0]["max_over_average"], 1.5);
    assert_eq!(judged["layers"][0]["pes_with_repeated_expert"], 2);
    sandbox
        .run("experts --loads two.csv --topology flat:2 --replicas 8")
        .failed(2, &["4 slots on a PE are more than the 2 that can be there"]);
}

#[test]
fn groups_stay_on_nodes_and_sources_lower_the_tokens_between_nodes() {
    let sandbox = sandbox();
    sandbox.run(&format!("{LINE} --expert-groups 4 --output plan.json")).result();
    let plan: Value = serde_json::from_str(&sandbox.text("plan.json")).expect("a document");
    for slots in plan["logical_to_physical"].as_array().into_iter().flatten() {
        for group in slots.as_array().expect("experts").chunks(3) {
            let mut nodes = group
                .iter()
                .flat_map(|slots| slots.as_array().expect("slots"))
                .map(|slot| slot.as_u64().map(|slot| slot / 8));
            let first = nodes.next();
            assert!(nodes.all(|node| Some(node) == first), "{group:?}");
        }
    }
    // Of a plan without regard to groups, those are counted that have replicas on both nodes.
    sandbox.run(&format!("{LINE} --output blind.json")).result();
    let judge = "experts --loads loads.csv --expert-groups 4 --format json --evaluate";
    for (name, has_some) in [("plan.json", false), ("blind.json", true)] {
        let plan: Value = serde_json::from_str(&sandbox.text(name)).expect("a document");
        let is_torn = |group: &[Value]| {
            let slots = group.iter().flat_map(|slots| slots.as_array().expect("slots"));
            let nodes: std::collections::BTreeSet<_> =
                slots.map(|slot| slot.as_u64().map(|slot| slot / 8)).collect();
            nodes.len() > 1
        };
        let layers = plan["logical_to_physical"].as_array().expect("layers").iter();
        let torn = layers
            .flat_map(|layer| layer.as_array().expect("experts").chunks(3))
            .filter(|it| is_torn(it))
            .count();
        assert_eq!(torn > 0, has_some, "{name}");
        let judged = sandbox.run(&format!("{judge} {name}")).document();
        assert_eq!(judged["summary"]["groups_on_several_nodes"], torn, "{name}");
    }
    let warned = sandbox.run(&format!("{LINE} --expert-groups 3"));
    let sentence = "groups are not kept on nodes: on flat:2*flat:4, 3 groups cannot be divided among 2 nodes";
    assert!(warned.stderr.contains(sentence), "{warned:?}");
    // The tokens of even experts come from the first node, and those of the others from the second.
    sandbox.put("sources.csv", "9,0,9,0,9,0,9,0,9,0,9,0\n0,9,0,9,0,9,0,9,0,9,0,9\n");
    sandbox.run(&format!("{LINE} --output blind.json")).result();
    let cross = |line: &str| {
        let document = sandbox.run(&format!("{line} --sources sources.csv --format json")).document();
        document["summary"]["cross_node_tokens"].as_f64().expect("a number")
    };
    let blind = cross("experts --loads loads.csv --topology flat:2*flat:4 --evaluate blind.json");
    let aware = cross(LINE);
    assert!(aware <= 0.8 * blind, "{aware} of {blind}");
}

#[test]
fn errors_name_the_file_and_the_remedy() {
    let sandbox = sandbox();
    sandbox.run(&format!("{LINE} --output plan.json")).result();
    let check = |code: i32, line: &str, expected: &[&str]| {
        sandbox.run(&format!("experts {line}")).failed(code, expected)
    };
    let machine = "--topology flat:2*flat:4";
    check(
        2,
        &format!("--loads no.npy --replicas 16 {machine}"),
        &["cannot read the numbers `no.npy`", "check its name"],
    );
    check(
        2,
        &format!("--loads loads.csv --replicas 8 {machine}"),
        &["8 slots are fewer than 12 experts; use at least 16"],
    );
    check(
        2,
        &format!("--loads loads.csv --replicas 20 {machine}"),
        &["20 slots", "8 PEs; use a multiple such as 24"],
    );
    check(
        2,
        &format!("--loads loads.csv --replicas 16 {machine} --expert-groups 5"),
        &["cannot form 5 groups"],
    );
    check(2, &format!("--loads loads.csv {machine}"), &["--replicas <N>"]);
    check(
        2,
        &format!("--loads loads.csv --replicas 16 {machine} --evaluate plan.json"),
        &["cannot be used with"],
    );
    check(
        2,
        &format!("--loads loads.csv --replicas 16 {machine} --previous plan.json --tolerance -1"),
        &["expected a number that is not negative"],
    );
    check(
        2,
        &format!("--loads loads.csv --replicas 16 {machine} --output loads.csv"),
        &["would replace an input"],
    );
}

#[test]
fn files_that_do_not_fit_are_named() {
    let sandbox = sandbox();
    let check = |code: i32, line: &str, expected: &[&str]| {
        sandbox.run(&format!("experts {line}")).failed(code, expected)
    };
    let (machine, number) = ("--topology flat:2*flat:4", "--replicas 16 --topology flat:2*flat:4");
    check(
        1,
        &format!("--loads truncated.npy {number}"),
        &["`truncated.npy`", "needs 24 bytes", "write the array again"],
    );
    check(
        1,
        &format!("--loads negative.csv {number}"),
        &["`negative.csv`: line 1: expected a number from 0", "-3"],
    );
    check(1, &format!("--loads words.json {number}"), &["`words.json`: line 1: expected a list of rows"]);
    check(
        1,
        &format!("--loads loads.csv {number} --previous few.json"),
        &["`few.json`: its 4 slots cannot be the same number on each of 8 PEs; give a plan whose `topology`"],
    );
    check(
        1,
        &format!("--loads loads.csv {machine} --evaluate few.json"),
        &[
            "`few.json`: its 4 slots cannot be",
            "8 PEs of flat:2*flat:4; name the machine of the plan with --topology",
        ],
    );
    check(
        1,
        &format!("--loads loads.csv {number} --previous words.json"),
        &["the plan `words.json`: expected a document"],
    );
    check(1, &format!("--loads loads.csv {number} --sources negative.csv"), &["`negative.csv`"]);
    check(
        1,
        &format!("--loads windows.npy {number}"),
        &["`windows.npy`: the shape [2, 1, 12] has 3 dimensions; give an array with a row per layer"],
    );
    // Sources by layer, node and expert are an array with three dimensions, in this order.
    check(
        1,
        &format!("--loads loads.csv {number} --sources windows.npy"),
        &["`windows.npy`: found 2 rows of 12 numbers in 2 layers of 1; give 2 rows of 12 numbers"],
    );
    sandbox.put("few.csv", "1,2,3\n");
    let expected = [
        "`few.csv`: found 1 row of 3 numbers; give 2 rows of 12 numbers: a row per node",
        "To give each layer its own, give 4 rows, layer by layer",
    ];
    check(1, &format!("--loads loads.csv {number} --sources few.csv"), &expected);
}

#[test]
fn flags_without_effect_and_wrong_numbers_are_refused() {
    let sandbox = sandbox();
    sandbox.run(&format!("{LINE} --output plan.json")).result();
    let check = |code: i32, line: &str, expected: &[&str]| {
        sandbox.run(&format!("experts {line}")).failed(code, expected)
    };
    let machine = "--topology flat:2*flat:4";
    for (flag, expected) in [
        ("--tolerance 0.1", "--previous <FILE>"),
        ("--expert-bytes 44M", "--previous <FILE>"),
        ("--gamma 0.1 --previous plan.json", "--sources <FILE>"),
        ("--previous plan.json --expert-bytes 44X", "expected bytes such as 4096, 44M or 1e9"),
        ("--output -", "`-` is not a stream here; write to /dev/stdout"),
    ] {
        check(2, &format!("--loads loads.csv --replicas 16 {machine} {flag}"), &[expected]);
    }
    check(2, &format!("--loads - --replicas 16 {machine}"), &["`-` is not a stream here; read /dev/stdin"]);
    check(
        2,
        &format!("--loads loads.csv --replicas -1 {machine}"),
        &["expected a number of slots of at least 1"],
    );
}

//! The command keeps constraints, and refuses what it cannot keep.

use equipoise_tests::Sandbox;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.put("places", "# object, places, seconds\n0 5\n1 0-1\n2 node:1\n3 !0\n4 node:2 1000\n");
    sandbox.put("groups", "together node 5 6\napart pe 7 8\n");
    sandbox.put("one", "1\n1\n1\n1\n1\n1\n");
    sandbox.put("sizes", (0..12).map(|object| format!("{object} {}\n", 1 + object % 3)).collect::<String>());
    sandbox
}

/// Hosts have names on the machines of Slurm's file.
#[test]
fn tasks_are_fixed_to_hosts_by_name() {
    let sandbox = sandbox();
    sandbox.put(
        "t.conf",
        "SwitchName=s1 Nodes=a[1-2]\nSwitchName=s2 Nodes=b[1-2]\nSwitchName=top Switches=s[1-2]\n",
    );
    sandbox.put("hosts", "0 host:b1\n1 host:a2,host:b2\n2 !host:a1,host:b1\n");
    let line =
        "map --graph ring:8 --topology slurm:t.conf*flat:2 --max-objects 1,exact --output h.map --fixed";
    sandbox.run(&format!("{line} hosts")).result();
    let pe_of: Vec<u32> = sandbox.text("h.map").lines().map(|pe| pe.parse().expect("a PE")).collect();
    assert_eq!(pe_of[0] / 2, 2, "{pe_of:?}");
    assert!([1, 3].contains(&(pe_of[1] / 2)) && [1, 3].contains(&(pe_of[2] / 2)), "{pe_of:?}");
    sandbox.put("other", "0 host:c1\n");
    let names = "--fixed: the places `host:c1` have no host `c1`: the hosts of `slurm:t.conf*flat:2` have names such as `a1`";
    sandbox.run(&format!("{line} other")).failed(1, &[names]);
    let nameless = sandbox.run("map --graph ring:8 --topology flat:8 --fixed hosts");
    nameless.failed(1, &["`flat:8` has no names of hosts; write PEs or node:N"]);
    sandbox.put("far", "9 0\n");
    let missing = sandbox.run("map --graph ring:8 --topology flat:8 --fixed far");
    missing.failed(1, &["there is no object 9 among 8 objects, but --fixed names it"]);
    let run = "run stencil2d --blocks 2 --cells 4 --iterations 4 --lb-every 2 --lb-dump run.db --transport simulated --pes 2";
    sandbox.run(run).result();
    sandbox
        .run("replay run.db --fixed far")
        .failed(1, &["error: there is no object 9 among 4 objects, but --fixed names it"]);
}

const MAP: &str = "map --graph ring:12 --topology flat:3*flat:2 --balancer";

#[test]
fn maps_keep_constraints_and_evaluate_agrees() {
    let sandbox = sandbox();
    let constraints = "--fixed places --groups groups --max-objects 2,exact --memory 6 --object-bytes sizes";
    for balancer in ["PoiseLB", "GreedyRefineLB", "RefineLB", "MetisLB", "DummyLB"] {
        sandbox.run(&format!("{MAP} {balancer} {constraints} --output kept.map")).result();
        let pe_of: Vec<u32> = sandbox.text("kept.map").lines().map(|pe| pe.parse().expect("a PE")).collect();
        assert_eq!(pe_of[0], 5);
        assert!(pe_of[1] < 2 && pe_of[2] / 2 == 1 && pe_of[3] != 0 && pe_of[4] / 2 == 2, "{pe_of:?}");
        assert!(pe_of[5] / 2 == pe_of[6] / 2 && pe_of[7] != pe_of[8], "{pe_of:?}");
        for pe in 0..6 {
            let on: Vec<usize> = (0..12).filter(|&object| pe_of[object] == pe).collect();
            assert!(on.len() == 2 && on.iter().map(|object| 1 + object % 3).sum::<usize>() <= 6, "{pe_of:?}");
        }
        let judge = "evaluate --graph ring:12 --topology flat:3*flat:2 --mapping kept.map";
        sandbox.run(&format!("{judge} {constraints}")).result();
        sandbox.run(&format!("{judge} --max-objects one")).failed(
            1,
            &["the mapping breaks 6 constraints: PE 0 has 2 objects, and takes at most 1; PE 1 has 2 "],
        );
    }
}

#[test]
fn all_constraints_that_a_mapping_breaks_are_named() {
    let sandbox = sandbox();
    sandbox.put("heap.map", "0\n".repeat(12));
    let places = [0, 2, 3].map(|object| format!("object {object} is on PE 0, where it may not be"));
    let [first, second, third] = &places;
    let number = "PE 0 has 12 objects, and takes at most 3";
    let bytes = "the objects of PE 0 have 24 bytes, and it has room for 6";
    let group = "objects 7 and 8 are on the same PE";
    let sentences = [first, second, third, number, bytes, group];
    let heap = "--graph ring:12 --topology flat:3*flat:2 --mapping heap.map";
    let broken = "--fixed places --groups groups --max-objects 3 --memory 6 --object-bytes sizes";
    let sentence = format!("the mapping breaks 6 constraints: {}", sentences.join("; "));
    sandbox.run(&format!("evaluate {heap} {broken}")).failed(1, &[&sentence]);
    // A mapping that breaks constraints can be looked at.
    let output = sandbox.run(&format!("explain {heap} {broken}")).result();
    assert!(output.contains(&format!("\nWarning: {sentence}.\n")), "{output}");
    let document = sandbox.run(&format!("explain {heap} {broken} --format json")).document();
    assert_eq!(document["broken_constraints"], serde_json::json!(sentences));

    sandbox.put("nowhere", (0..12).map(|object| format!("{object} 5\n")).collect::<String>());
    let most = ["breaks 12 constraints: ", "object 7 is on PE 0, where it may not be; and 4 more"];
    sandbox.run(&format!("evaluate {heap} --fixed nowhere")).failed(1, &most);
    assert!(!sandbox.run(&format!("explain {heap} --max-objects 12")).result().contains("constraint"));
}

#[test]
fn replays_and_runs_keep_counts() {
    let sandbox = sandbox();
    sandbox.run("convert mesh:4x6 mesh.json").result();
    let replay =
        "replay mesh.json --topology flat:6 --pes 6 --balancer GreedyLB --max-objects 4,exact --format json";
    let document = sandbox.run(replay).document();
    assert!(document.to_string().contains("\"migrations\""), "{document}");
    // What was recorded need not keep them; the replay says so.
    let replay = "replay mesh.json --topology flat:6 --pes 6 --balancer GreedyLB --fixed places";
    let output = sandbox.run(replay).result();
    let places = [0, 2, 3].map(|object| format!("object {object} is on PE 0, where it may not be"));
    let verdict = format!("breaks 3 constraints: {}", places.join("; "));
    assert!(output.contains(&format!("\nThe placement before {verdict}.\n")), "{output}");
    let document = sandbox.run(&format!("{replay} --format json")).document();
    assert_eq!(document["broken_before"], verdict, "{document}");
    let run = "run stencil2d --pes 4 --blocks 4 --cells 8 --iterations 20 --lb-every 5 --imbalance 8 --charge 1e-7 \
               --balancer GreedyLB --lb-strict --transport simulated";
    sandbox.run(&format!("{run} --max-objects 4,exact")).result();
    sandbox.run(&format!("{run} --max-objects 3")).failed(
        1,
        &["the PEs take at most 12 objects, and there are 16 objects; give --max-objects other numbers"],
    );
}

#[test]
fn databases_have_the_constraints_of_their_run() {
    let sandbox = sandbox();
    let run = "run stencil2d --pes 4 --blocks 4 --cells 8 --iterations 20 --lb-every 5 --imbalance 8 --charge 1e-7 \
               --balancer GreedyLB --transport simulated --max-objects 4,exact";
    for file in ["steps.db", "steps.json"] {
        sandbox.run(&format!("{run} --lb-dump {file}")).result();
        let shown = sandbox.run(&format!("inspect {file}")).result();
        assert!(shown.contains("constraints") && shown.contains("exactly 4 objects on each PE"), "{shown}");
        let replay = format!("replay {file} --step 0 --balancer GreedyLB --format json");
        let replayed = sandbox.run(&replay).document().to_string();
        assert!(replayed.contains("objects that constraints moved"), "{replayed}");
        sandbox
            .run(&format!("{replay} --max-objects 3"))
            .failed(2, &["the PEs take at most 12 objects, and there are 16 objects"]);
        sandbox
            .run(&format!("convert {file} old.{} --to-version 1", file.rsplit('.').next().expect("a format")))
            .failed(1, &["it has constraints, which version"]);
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let sandbox = sandbox();
    sandbox.put("twice", "0 1\n0 2\n");
    sandbox.put("few", "0 1\n1 1\n2 1\n");
    sandbox.put("pair", "together pe 0 2\n");
    sandbox.put("nowhere", "0 !0-5\n");
    sandbox.put("torn", "0 0,1\n2 2,3\n");
    sandbox.put("held", "0 3\n2 0,2\n");
    for (flags, code, phrase) in [
        ("--max-objects 1", 2, "the PEs take at most 6 objects, and there are 12 objects"),
        ("--max-objects x", 2, "cannot read the largest numbers of objects `x`"),
        ("--max-objects -1", 2, "or give a whole number for all PEs, such as 4 or 4,exact"),
        ("--memory 80Q", 2, "or give a whole number such as 4096, 44M or 1e9 for all PEs"),
        ("--fixed nowhere", 2, "object 0 may be on no PE; give it other places"),
        (
            "--fixed torn --groups pair",
            2,
            "objects 0, 2 must be on one PE, but no PE is among the places of all of them",
        ),
        (
            "--fixed held --groups pair",
            2,
            "objects 0, 2 must be on one PE, but no PE is among the places of all of them",
        ),
        ("--max-objects places", 1, "line 2: expected a number, found `0 5`"),
        ("--fixed nothing", 2, "cannot read the list of fixed tasks `nothing`"),
        ("--fixed twice", 1, "`twice`: line 2: object 0 already has line 1"),
        ("--groups places", 1, "line 2: expected `together LEVEL objects`"),
        ("--memory 1k", 1, "--memory needs the size of object 0, which is not recorded"),
        ("--memory 1 --object-bytes sizes", 2, "the objects have 24 bytes"),
        ("--object-bytes sizes", 2, "--memory"),
        ("--phases sizes --max-moves 3", 2, "leave one out"),
        ("--phases few", 1, "the loads of object 3 by phase are missing"),
    ] {
        sandbox.run(&format!("{MAP} GreedyLB {flags}")).failed(code, &[phrase]);
    }
    for (flags, code, phrase) in [
        ("--balancer GreedyLB --max-objects one", 2, "--max-objects has 6 numbers, and"),
        ("--max-objects 8", 2, "--max-objects without --balancer: "),
        ("--memory 1M", 2, "--memory without --balancer: "),
        ("--max-moves 5%", 2, "--max-moves without --balancer: "),
        ("--lb-predict mean=3", 2, "--lb-predict without --balancer: "),
        ("--lb-gate auto", 2, "--lb-gate auto without --balancer: "),
        ("--lb-when auto", 2, "--lb-when auto without --balancer: there are no load-balancing steps; name"),
        ("--lb-report", 2, "--lb-report without --balancer: there are no load-balancing steps; name"),
        (
            "--pes-available one",
            2,
            "--pes-available without --balancer: only a load balancer moves elements; name a load balancer",
        ),
        ("--memory 1 --max-moves 3", 2, "cannot be used with"),
    ] {
        sandbox.run(&format!("run stencil2d --pes 2 --iterations 4 {flags}")).failed(code, &[phrase]);
    }
    // Databases and reports have steps without a load balancer.
    let line = "run stencil2d --pes 2 --iterations 10 --lb-every 4";
    let output = sandbox.run(&format!("{line} --lb-dump steps.db --lb-report")).result();
    assert!(output.contains("LB step 0: no strategy"), "{output}");
    sandbox.run(&format!("{line} --report steps.html --lb-report --lb-when auto")).result();
}

/// A database with a ring of 4 objects on PE 0 of 4 PEs; the last object cannot move. `constraints` are those of the step.
fn ring(constraints: &str) -> String {
    let object = |id: u32| {
        let migratable = id != 3;
        format!(r#"{{"id":{id},"load_seconds":1,"pe":0,"bytes":10,"migratable":{migratable}}}"#)
    };
    let edge = |id: u32| {
        let next = (id + 1) % 4;
        format!(r#"{{"from":{{"object":{id}}},"to":{{"object":{next}}},"messages":1,"bytes":100}}"#)
    };
    let [objects, edges] =
        [[0, 1, 2, 3].map(object), [0, 1, 2, 3].map(edge)].map(|documents| documents.join(","));
    format!(
        r#"{{"type":"equipoise-lb-database","version":2,"steps":[{{"pes":[{{}},{{}},{{}},{{}}],"objects":[{objects}],
            "edges":[{edges}],"constraints":{constraints}}}]}}"#
    )
}

const MAP_RING: &str = "map --graph ring.json --topology flat:4 --output out.map --format json";

#[test]
fn maps_and_their_evaluations_keep_recorded_constraints() {
    let sandbox = Sandbox::new();
    let recorded =
        r#"{"groups":[{"together":true,"level":"pe","objects":[0,1,2]}],"max_objects":{"most":3}}"#;
    sandbox.put("ring.json", ring(recorded));
    sandbox.run(&format!("{MAP_RING} --balancer GreedyLB")).result();
    let pe_of = sandbox.text("out.map");
    let lines: Vec<&str> = pe_of.lines().collect();
    assert!(lines[0] == lines[1] && lines[1] == lines[2] && lines[3] == "0" && lines[0] != "0", "{pe_of}");
    let evaluate = "evaluate --graph ring.json --topology flat:4 --mapping";
    sandbox.run(&format!("{evaluate} out.map")).result();
    sandbox.put("torn", "1\n2\n1\n0\n");
    sandbox.run(&format!("{evaluate} torn")).failed(1, &["objects 2 and 1 are not on the same PE"]);
    // A flag takes the place of the recorded constraint of its kind only.
    sandbox.put("pairs", "together pe 0 2\n");
    sandbox.run(&format!("{evaluate} torn --groups pairs")).result();
    sandbox.put("full", "0\n0\n0\n0\n");
    let too_many = "PE 0 has 4 objects, and takes at most 3";
    sandbox.run(&format!("{evaluate} full --groups pairs")).failed(1, &[too_many]);
    // As in replays, recorded constraints may move more objects than the limit says.
    for command in [MAP_RING, "replay ring.json --topology flat:4 --format json"] {
        let limited = sandbox.run(&format!("{command} --balancer GreedyLB --max-moves 1")).document();
        assert!(limited.to_string().contains(r#""migrations":3"#), "{limited}");
    }
}

#[test]
fn maps_do_not_move_what_cannot_move_and_count_migrations_to_fixed_places() {
    let sandbox = Sandbox::new();
    sandbox.put("ring.json", ring("{}"));
    sandbox.put("held", "3 2\n");
    let refusal = "object 3 may not be on PE 0, and cannot move; change its places";
    for command in [MAP_RING, "replay ring.json --topology flat:4"] {
        sandbox.run(&format!("{command} --balancer GreedyLB --fixed held")).failed(2, &[refusal]);
    }
    sandbox.put("fixed", "0 2\n1 2\n2 0\n3 0\n");
    let document = sandbox.run(&format!("{MAP_RING} --balancer GreedyLB --fixed fixed")).document();
    assert_eq!(sandbox.text("out.map"), "2\n2\n0\n0\n");
    assert_eq!((&document["migrations"], &document["migrated_bytes"]), (&2.into(), &20.into()));
    let map = "map --graph ring.json --topology flat:4 --balancer GreedyLB --fixed fixed";
    let text = sandbox.run(map).result();
    let hop_bytes = text.lines().find(|line| line.starts_with("hop-bytes")).expect("hop-bytes");
    assert_eq!(hop_bytes.split_whitespace().collect::<Vec<_>>(), ["hop-bytes", "0", "200"], "{text}");
}

#[test]
fn numbers_for_other_pes_are_the_fault_of_the_flag_or_of_the_file() {
    let sandbox = Sandbox::new();
    sandbox.put("three", "1\n1\n1\n");
    sandbox.put("ring.map", "0\n0\n0\n0\n");
    let commands = [
        MAP_RING,
        "replay ring.json --topology flat:4",
        "replay ring.json --topology flat:4 --balancer GreedyLB",
        "evaluate --graph ring.json --topology flat:4 --mapping ring.map",
    ];
    for (flag, field) in
        [("--max-objects", r#""max_objects":{"most":[1,1,1]}"#), ("--memory", r#""memory":[1,1,1]"#)]
    {
        for command in commands {
            sandbox.put("ring.json", ring("{}"));
            let sentence =
                format!("error: {flag} has 3 numbers, and `flat:4` has 4 PEs; give one number per PE");
            sandbox.run(&format!("{command} {flag} three")).failed(2, &[&sentence]);
            sandbox.put("ring.json", ring(&format!("{{{field}}}")));
            let output = sandbox.run(command);
            assert!(!output.stderr.contains("--m"), "{}", output.stderr);
            let recorded = "error: the constraints that `ring.json` has recorded cannot be kept: ";
            output.failed(1, &[recorded, "` has 3 numbers, and `flat:4` has 4 PEs; give one number per PE"]);
        }
    }
}

#[test]
fn recorded_constraints_that_cannot_be_kept_are_the_fault_of_the_file() {
    let sandbox = Sandbox::new();
    let blamed = "the constraints that `ring.json` has recorded cannot be kept: ";
    for (recorded, reason, flag) in [
        (
            r#"{"max_objects":{"most":0}}"#,
            "the PEs take at most 0 objects, and there are 4",
            "--max-objects 4",
        ),
        (
            r#"{"memory":5}"#,
            "the objects have 30 bytes, and the available PEs have room for 20",
            "--memory 1k",
        ),
        (r#"{"memory":[1,1,1]}"#, "`memory` has 3 numbers, and `flat:4` has 4 PEs", "--memory 1k"),
    ] {
        sandbox.put("ring.json", ring(recorded));
        sandbox.run(MAP_RING).failed(1, &[blamed, reason]);
        sandbox.run(&format!("{MAP_RING} {flag}")).result();
    }
    sandbox.put("ring.json", ring(r#"{"max_objects":{"most":0}}"#));
    let replay = "replay ring.json --topology flat:4 --balancer GreedyLB";
    sandbox.run(replay).failed(1, &[blamed]);
    sandbox
        .run(&format!("{replay} --max-objects 0"))
        .failed(2, &["GreedyLB gave no answer for step 0: the PEs"]);
}

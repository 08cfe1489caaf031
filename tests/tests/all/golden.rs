//! A small file of every version of every format of this project, and its content. Versions are read forever, so these
//! files never change; a new version gets a new file.

use std::fs;
use std::path::{Path, PathBuf};

use equipoise::model::Database;
use equipoise::model::constraints::Constraints;
use equipoise::model::database::{Dump, Edge, End, Object, ObjectIndex, PeRecord};
use equipoise::network::trace::{Execution, Speeds, Step, Trace, TraceMessage, TraceObject};
use equipoise_tests::fuzz::checkpoint;
use equipoise_tests::{Sandbox, WORKSPACE};

/// A file of the folder `tests/golden`.
fn golden(name: &str) -> PathBuf {
    Path::new(WORKSPACE).join("tests/golden").join(name)
}

/// The dump in the files: all versions have its first step, and all but version 1 its second, whose communication was
/// not recorded.
fn dump(version: u32) -> Dump {
    let object = |id, array, index: &[i32], load_seconds, bytes, pe, migratable| Object {
        id,
        array,
        index: ObjectIndex::new(index),
        load_seconds,
        bytes,
        pe,
        migratable,
    };
    let first = Database {
        step: 3,
        arrays: vec!["blocks".into(), "Läufer".into()],
        pes: vec![
            PeRecord {
                speed: 2.0,
                wall_seconds: 0.5,
                idle_seconds: 0.125,
                background_seconds: 0.0625,
                available: true,
            },
            PeRecord { wall_seconds: 0.5, background_seconds: 0.1, available: false, ..PeRecord::default() },
        ],
        objects: vec![
            object(7, 0, &[0, -1], 0.25, Some(4096), 0, true),
            object(8, 1, &[], 0.1, None, 1, false),
            object(u64::MAX, 1, &[1, 2, 3, 4, 5, 6], 0.0, Some(0), 0, true),
        ],
        communication_recorded: true,
        edges: vec![
            Edge { from: End::Object(0), to: End::Object(1), messages: 10, bytes: 64000 },
            Edge { from: End::Object(2), to: End::Pe(1), messages: 1, bytes: (1 << 53) + 1 },
            Edge { from: End::Pe(0), to: End::Pe(1), messages: 2, bytes: 16 },
        ],
        dangling_edges: 4,
        costs: None,
        constraints: Constraints::default(),
    };
    let second = Database {
        step: 5,
        arrays: vec!["blocks".into()],
        pes: vec![PeRecord { wall_seconds: 0.25, ..PeRecord::default() }],
        objects: vec![object(7, 0, &[0, -1], 0.2, None, 0, true)],
        communication_recorded: false,
        ..Database::default()
    };
    let steps = if version == 1 { vec![first] } else { vec![first, second] };
    Dump { program: "stencil2d --lb-dump".into(), topology: "torus:2x1".into(), steps, ..Dump::default() }
}

/// The trace in the files.
fn trace() -> Trace {
    Trace {
        topology: "mesh:4".into(),
        network: "ideal:hop=0.5,bandwidth=100".into(),
        seed: 7,
        pes: 4,
        seconds: 6.5,
        exit: Some(2),
        speeds: vec![
            Speeds(vec![(0.0, 1.0)]),
            Speeds(vec![(0.0, 2.0), (1.5, 0.5)]),
            Speeds(vec![(0.0, 1.0)]),
            Speeds(vec![(0.0, 1.0)]),
        ],
        arrays: vec!["Some".into()],
        objects: vec![TraceObject { array: 0, rank: 0 }, TraceObject { array: 0, rank: 9 }],
        messages: vec![TraceMessage { to: 5, pe: 1, bytes: 100 }, TraceMessage { to: 0, pe: 0, bytes: 50 }],
        executions: vec![
            Execution::new(4, 0, 0.0, None, vec![Step::Work(1.0), Step::Send(0), Step::Work(1.0)]),
            Execution {
                expedited: true,
                ..Execution::new(5, 1, 2.5, Some(0), vec![Step::Work(2.0), Step::Send(1)])
            },
            Execution {
                left_by: Some(0),
                after: vec![0],
                ..Execution::new(0, 0, 5.5, Some(1), vec![Step::Work(0.5)])
            },
        ],
        ..Trace::default()
    }
}

#[test]
fn databases_of_every_version_are_read() {
    for (name, version) in [
        ("database.v1.db", 1),
        ("database.v2.db", 2),
        ("database.v3.db", 3),
        ("database.v1.json", 1),
        ("database.v2.json", 2),
    ] {
        let found = Dump::read(golden(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, dump(version), "{name}");
    }
}

#[test]
fn traces_of_every_version_are_read() {
    for name in ["trace.v3", "trace.v4", "trace.json"] {
        let found = Trace::read(golden(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found, trace(), "{name}");
    }
}

/// Only the version that wrote a checkpoint reads it, so this folder is replaced with every new version.
#[test]
fn the_layout_of_checkpoints_is_that_of_their_version() {
    if let Err(error) = checkpoint::restart(&golden("checkpoint.v4")) {
        panic!("{error}: the layout has changed; raise the version, and write a new golden checkpoint");
    }
}

/// A new version: run this once, with the name of the new file here.
#[test]
#[ignore = "slow: it writes files"]
fn missing_golden_files_are_written() {
    if !golden("database.v3.db").exists() {
        dump(3).write(golden("database.v3.db")).expect("a file");
    }
    if !golden("trace.v4").exists() {
        trace().write(golden("trace.v4")).expect("a file");
    }
    if !golden("checkpoint.v4").exists() {
        let sandbox = Sandbox::new();
        let saved = checkpoint::save(sandbox.path(), 2);
        fs::create_dir(golden("checkpoint.v4")).expect("a folder");
        for file in ["manifest.eqcp", "process-0.eqcp"] {
            fs::copy(saved.join(file), golden("checkpoint.v4").join(file)).expect("a copy");
        }
    }
}

#[test]
fn older_versions_are_written_by_convert() {
    let sandbox = Sandbox::new();
    let input = golden("database.v3.db");
    let input = input.display();
    for (name, version) in [("k.db", 1), ("k.db", 2), ("k.db", 3), ("k.json", 1), ("k.json", 2)] {
        let step = if version == 1 { "--step 3" } else { "" };
        sandbox.run(&format!("convert {input} {name} --to-version {version} --check {step}")).result();
        assert_eq!(
            Dump::read(sandbox.path().join(name)).expect("a database"),
            dump(version),
            "{name} {version}"
        );
        if name == "k.db" {
            assert_eq!(sandbox.bytes(name)[8], version as u8);
        } else {
            assert!(sandbox.text(name).contains(&format!("\"version\": {version}")));
        }
    }
    let earlier = sandbox.bytes("k.db");
    for (line, code, phrase) in [
        (
            format!("convert {input} k.db --to-version 1"),
            1,
            "cannot hold step 5 in version 1 of binary databases",
        ),
        ("convert no/such/file k.db --to-version 4".into(), 2, "binary databases have versions 1 to 3"),
        ("convert no/such/file k.json --to-version 0".into(), 2, "JSON databases have versions 1 to 2"),
        (format!("convert {input} k.%p.json --to-version 1"), 2, "LB data of vt have no versions"),
        (
            format!("convert {input} k.csv --to-version 1"),
            2,
            "--to-version 1 applies only when OUT is a database",
        ),
        ("convert no/such/file k.foo".into(), 2, "no format has the extension .foo"),
    ] {
        sandbox.run(&line).failed(code, &[phrase]);
    }
    assert_eq!(sandbox.bytes("k.db"), earlier);
}

#[test]
fn a_cut_database_is_read_up_to_the_last_whole_step() {
    let sandbox = Sandbox::new();
    let whole = fs::read(golden("database.v3.db")).expect("a file");
    sandbox.put("k.db", &whole[..whole.len() - 60]);
    let warning = "warning: `k.db` was cut after step 3 (the run was interrupted?); ";
    for line in
        ["inspect k.db", "replay k.db --topology flat:2 --balancer GreedyLB", "convert k.db again.db --check"]
    {
        let output = sandbox.run(line);
        assert!(output.stderr.starts_with(warning) && output.stderr.contains("ignored\n"), "{output:?}");
        output.result();
    }
    let mut damaged = whole;
    damaged[100] ^= 1;
    sandbox.put("k.db", damaged);
    sandbox.run("inspect k.db").failed(1, &["`k.db` is damaged: the checksum of bytes"]);
}

#[test]
fn no_rank_is_replaced_if_one_cannot_be_written() {
    let sandbox = Sandbox::new();
    let run = "run kneighbor --pes 4 --iterations 6 --lb-every 3 --lb-dump";
    sandbox.run(&format!("{run} k.db")).result();
    sandbox.run("convert k.db data.%p.json").result();
    sandbox.put("data.0.json", "earlier");
    fs::remove_file(sandbox.path().join("data.2.json")).expect("a file");
    fs::create_dir(sandbox.path().join("data.2.json")).expect("a folder");
    let output = sandbox.run("convert k.db data.%p.json");
    output.failed(2, &["cannot write the database `data.2.json`"]);
    assert_eq!(sandbox.text("data.0.json"), "earlier");
    assert_eq!(fs::read_dir(sandbox.path()).expect("a folder").count(), 5, "no temporary file is left");
}

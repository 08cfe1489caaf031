//! How the process of a chare program ends: with which exit code, and what it says.

use std::process::{Command, Stdio};

use equipoise_tests::{Place, Told, failing_program};

/// Runs the program that fails as it is told to, in `place`.
fn failing(place: &Place, line: &str) -> Told {
    let mut command = Command::new(failing_program());
    command.args(line.split_whitespace()).current_dir(place.path()).stdin(Stdio::null());
    Told::of(&format!("failing {line}"), &mut command)
}

/// Both transports, which fail alike.
const TRANSPORTS: [&str; 2] = ["--transport threads", "--transport simulated --seed 5"];

#[test]
fn a_panic_in_an_entry_ends_the_process_with_1_and_names_element_entry_and_pe() {
    for transport in TRANSPORTS {
        let told = failing(&Place::new(), &format!("panic --pes 2 {transport}"));
        assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""), "{told:?}");
        let last = told.stderr.lines().last().unwrap_or_default();
        let sentence = "error: Runner[3] in entry `run` on PE 1 panicked: dropped the baton after 3 laps";
        let again = if transport.contains("seed") { " (simulated: seed 5 repeats it)" } else { "" };
        assert_eq!(last, format!("{sentence}{again}"), "{told:?}");
    }
}

#[test]
fn coming_to_rest_without_an_exit_ends_the_process_with_1_and_says_who_waits() {
    for transport in TRANSPORTS {
        let told = failing(&Place::new(), &format!("rest --pes 2 {transport}"));
        told.failed(
            1,
            &["the run came to rest without an exit", "no message is in flight", "\n  PE 0: Runner[1]"],
        );
        assert_eq!(told.stderr.contains("seed 5 repeats it"), transport.contains("seed"), "{told:?}");
    }
}

#[test]
fn a_program_that_ends_well_ends_with_0() {
    for transport in TRANSPORTS {
        assert_eq!(failing(&Place::new(), &format!("not +p3 {transport}")).result(), "3 laps\n");
    }
}

#[test]
fn flags_that_cannot_be_followed_end_the_process_with_2_and_name_the_remedy() {
    let place = Place::new();
    for (flags, phrases) in [
        ("--pes 0", &["--pes is 0; give a number from 1 to"][..]),
        ("--pes many", &["invalid value 'many' for '--pes <N>'"]),
        ("--balancr DummyLB", &["unexpected argument '--balancr'", "'--balancer'"]),
        ("+unknown", &["unexpected argument '+unknown'"]),
        ("--pes 4 --topology torus:3", &["--topology torus:3 has 3 PEs and --pes is 4; make them equal"]),
        ("--topology tours:2x2", &["--topology: ", "did you mean `torus`?"]),
        ("--balancer GredyLB", &["--balancer GredyLB: ", "did you mean `GreedyLB`?"]),
        ("--balancer DummyLB --then RotatLB", &["--then RotatLB: ", "did you mean `RotateLB`?"]),
        ("--then DummyLB", &["--balancer <SPEC>"]),
        ("--lb-schedule none", &["--lb-schedule none: ", "name a file with lines `[%]STEP NAME"]),
        ("--lb-dump-steps 2", &["--lb-dump <FILE>"]),
        (
            "--lb-dump no/such/place",
            &["--lb-dump: cannot write the database `no/such/place`", "name a place"],
        ),
        (
            "--initial none",
            &["--initial: cannot read the mapping `none`", "write blocks, roundrobin or random"],
        ),
        ("--lb-sim 0", &["--lb-sim-file <FILE>"]),
        ("--lb-sim 0 --lb-sim-file none", &["cannot read the database `none`"]),
        ("--transport pigeons", &["[possible values: threads, simulated]"]),
    ] {
        failing(&place, &format!("not {flags}")).failed(2, phrases);
        place.run(&format!("run kneighbor {flags}")).failed(2, phrases);
    }
}

#[test]
fn files_with_broken_content_end_the_process_with_1_and_name_the_remedy() {
    let place = Place::new();
    place.put("short.map", "0\n1\n0\n");
    place.put("wild.map", "0\n7\n");
    place.put("broken.schedule", "0 DummyLB\nthen RotateLB\n");
    place.put("foreign.db", "Dear reader,\n");
    for (flags, phrases) in [
        ("--pes 2 --initial wild.map", &["--initial: the mapping `wild.map`: line 2: there is no PE 7"][..]),
        (
            "--pes 2 --initial short.map",
            &["--initial lists 3 PEs, and no array has so many elements (", "write a line for each element"],
        ),
        (
            "--lb-schedule broken.schedule",
            &["--lb-schedule broken.schedule: line 2: expected a step such as"],
        ),
        ("--lb-sim 0 --lb-sim-file foreign.db", &["`foreign.db` is not a database"]),
    ] {
        failing(&place, &format!("not {flags}")).failed(1, phrases);
        place.run(&format!("run kneighbor {flags}")).failed(1, phrases);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_result_is_shown_even_if_its_databases_cannot_be_written() {
    let line = "run kneighbor --pes 2 --iterations 6 --lb-every 3 --lb-dump /dev/full";
    for (format, expected) in [("text", "messages      4608"), ("json", "\"messages\": 4608")] {
        let told = Place::new().run(&format!("{line} --format {format}"));
        assert_eq!(told.code, Some(1), "{told:?}");
        assert!(told.stdout.contains(expected), "{told:?}");
        assert!(told.stderr.starts_with("error: cannot write the database `/dev/full`: "), "{told:?}");
        assert_eq!(told.stderr.lines().count(), 1, "{told:?}");
    }
}

#[test]
fn fewer_steps_than_were_to_be_written_are_a_warning() {
    let place = Place::new();
    let told =
        place.run("run kneighbor --pes 2 --iterations 9 --lb-every 3 --lb-dump lb.db --lb-dump-steps 9");
    let expected = "warning: --lb-dump lb.db: the run had only 2 of the 9 load-balancing steps asked for from \
                    step 0 on\n";
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), expected), "{told:?}");
}

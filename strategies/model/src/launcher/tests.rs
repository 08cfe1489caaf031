//! Tests of launcher's files: writing, reading, and errors.

use proptest::prelude::*;

use super::*;
use crate::testing::mutated;
use crate::topology::parse as machine;

/// Three hosts of the Slurm test file with two cores each.
const CLUSTER: &str =
    concat!("(slurm:", env!("CARGO_MANIFEST_DIR"), "/tests/data/topology.conf*flat:2)[2-5,10-11]");

/// The PEs of six ranks on this machine.
const PLACEMENT: [u32; 6] = [3, 0, 2, 1, 5, 4];

/// Each format, its machine, and its file for this placement.
const GOLDEN: &[(&str, &str, &str)] = &[
    ("mpich", CLUSTER, "1,3\n2,0\n5,4\n"),
    (
        "openmpi",
        CLUSTER,
        "rank 0=n2-ib slot=1\nrank 1=n1-ib slot=0\nrank 2=n2-ib slot=0\nrank 3=n1-ib slot=1\nrank 4=gpu01 slot=1\n\
         rank 5=gpu01 slot=0\n",
    ),
    (
        "openmpi",
        "flat:3*flat:2",
        "rank 0=+n1 slot=1\nrank 1=+n0 slot=0\nrank 2=+n1 slot=0\nrank 3=+n0 slot=1\nrank 4=+n2 slot=1\n\
         rank 5=+n2 slot=0\n",
    ),
    ("slurm", CLUSTER, "n2-ib\nn1-ib\nn2-ib\nn1-ib\ngpu01\ngpu01\n"),
    ("fugaku", "torus:3x1*flat:2", "(1,0)\n(0,0)\n(1,0)\n(0,0)\n(2,0)\n(2,0)\n"),
    ("flux", CLUSTER, "[[1,1,1,1],[0,2,1,1],[0,1,1,1],[2,1,2,1]]\n"),
    ("scotch", CLUSTER, "6\n0\t3\n1\t0\n2\t2\n3\t1\n4\t5\n5\t4\n"),
    ("hostfile", CLUSTER, "n2-ib\nn1-ib\nn2-ib\nn1-ib\ngpu01\ngpu01\n"),
    (
        "torchrun",
        CLUSTER,
        "# rank node_rank local_rank host\n0 1 1 n2-ib\n1 0 0 n1-ib\n2 1 0 n2-ib\n3 0 1 n1-ib\n4 2 1 gpu01\n\
         5 2 0 gpu01\n",
    ),
    ("torchrun", "flat:3*flat:2", "# rank node_rank local_rank\n0 1 1\n1 0 0\n2 1 0\n3 0 1\n4 2 1\n5 2 0\n"),
    ("jax", CLUSTER, "[3,0,2,1,5,4]\n"),
    ("pods", CLUSTER, "n2-ib 2,0\nn1-ib 1,3\ngpu01 5,4\n"),
    ("pods", "flat:3*flat:2", "+n1 2,0\n+n0 1,3\n+n2 5,4\n"),
    ("json", CLUSTER, "[3,0,2,1,5,4]\n"),
    ("mapping", CLUSTER, "3\n0\n2\n1\n5\n4\n"),
];

fn slots(spec: &str, per_pe: u32) -> Slots {
    Slots::of(&*machine(spec).expect(spec), per_pe)
}

fn named(name: &str) -> &'static Format {
    format(name).expect(name)
}

#[test]
fn all_formats_write_and_read_placements() {
    for (name, spec, expected) in GOLDEN {
        let (format, slots) = (named(name), slots(spec, 1));
        let job = Job::new(&PLACEMENT, &slots).expect("a slot for each");
        assert_eq!(text(format, &job).expect(name), *expected, "{name}");
        let again = parse(expected, format, &slots).expect(name);
        assert!(is_same(format, &slots, &PLACEMENT, &again), "{name}: {again:?}");
        assert!(
            *name != "pods" || again == PLACEMENT,
            "ranks of a line are in the order of slots: {again:?}"
        );
        assert!(!is_same(format, &slots, &[0, 3, 2, 1, 5, 4], &again), "{name}");
    }
    assert!(ALL.iter().all(|format| GOLDEN.iter().any(|golden| golden.0 == format.name)));
    assert!(ALL.iter().all(|format| help().contains(format.help)));
}

#[test]
fn reads_alternative_spellings() {
    let check = |name: &str, spec: &str, text: &str, expected: &[u32]| {
        assert_eq!(parse(text, named(name), &slots(spec, 1)).as_deref(), Ok(expected), "{text}");
    };
    check("mpich", "flat:2*flat:2", "# ranks\n3, 0-2\n", &[1, 2, 3, 0]);
    check("mpich", "flat:2*flat:2", "# ranks per node: 1\n1\n0\n", &[2, 0]);
    check("openmpi", "flat:2*flat:2", "# mine\n\nrank 1 = +n0  slot=1\nrank 0=+n1 slots=0\n", &[2, 1]);
    check("openmpi", "flat:2*flat:2", "rank 0=+n1 slot=1 # mine\nrank 1=+n0 slot=1\n", &[3, 1]);
    check("slurm", CLUSTER, "n2-ib*2\nn1-ib,gpu01*1\n", &[2, 3, 0, 4]);
    check("slurm", CLUSTER, "# mine\nn[1-2]-ib,gpu01\n\nn1-ib\n", &[0, 2, 4, 1]);
    check("fugaku", "mesh:2x2", "( 1, 1 ) core=12\n(0,1)\n", &[3, 2]);
    check("hostfile", CLUSTER, "n2-ib slots=2\n# mine\nn1-ib:1\ngpu01 # last\n", &[2, 3, 0, 4]);
    check("torchrun", CLUSTER, "1 0 0\n0 1 0 n2-ib\n", &[2, 0]);
    check("jax", "job:2x1:cyclic:flat:2", "[1, 0,\n 3]", &[2, 0, 3]);
    check("pods", CLUSTER, "# mine\nn2-ib\ngpu01\n", &[2, 3, 4, 5]);
    check("pods", CLUSTER, "n2-ib  3, 1\n+n0 0,2\n", &[0, 3, 1, 2]);
    check("flux", "flat:2*flat:2", "{\"version\":1, \"map\":[[0,2,1,2]]}", &[0, 2, 1, 3]);
}

#[test]
fn idle_slots_are_omitted_if_the_format_allows() {
    let slots = slots("flat:3*flat:4", 1);
    let even = Job::new(&[1, 3, 4, 7, 9], &slots).expect("a slot for each");
    let written = text(named("mpich"), &even).expect("two ranks per node");
    assert_eq!(written, "# ranks per node: 2\n0,1\n2,3\n4\n");
    assert!(is_same(
        named("mpich"),
        &slots,
        &[1, 3, 4, 7, 9],
        &parse(&written, named("mpich"), &slots).expect("it")
    ));
    let uneven = Job::new(&[0, 4, 5], &slots).expect("a slot for each");
    let error = text(named("mpich"), &uneven).expect_err("uneven").to_string();
    assert!(error.contains("mpich: node 1 has 2 ranks, but node 0 has 1"), "{error}");
}

#[test]
fn torchrun_has_no_gaps() {
    let check = |placement: &[u32], expected: &str| {
        let slots = slots("flat:3*flat:2", 1);
        let job = Job::new(placement, &slots).expect("a slot for each");
        let error = text(named("torchrun"), &job).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    };
    check(&[0, 3], "torchrun: node 1 has a rank in slot 1, but none in slot 0");
    check(&[0, 4], "torchrun: node 1 has no rank, and torchrun numbers nodes without gaps");
    let slots = slots("flat:3*flat:2", 1);
    let job = Job::new(&[2, 1, 0], &slots).expect("a slot for each");
    let written = text(named("torchrun"), &job).expect("the last node may be idle");
    assert_eq!(written, "# rank node_rank local_rank\n0 1 0\n1 0 1\n2 0 0\n");
}

#[test]
fn several_ranks_of_a_pe_have_different_slots() {
    let slots = slots("flat:2", 2);
    let job = Job::new(&[1, 0, 1], &slots).expect("two slots for each");
    let written = text(named("openmpi"), &job).expect("slots");
    assert_eq!(written, "rank 0=+n1 slot=0\nrank 1=+n0 slot=0\nrank 2=+n1 slot=1\n");
    assert_eq!(parse(&written, named("openmpi"), &slots).as_deref(), Ok([1, 0, 1].as_slice()));
    for (places, expected) in [
        (
            &[1, 1, 1][..],
            "PE 1 has 3 ranks, but only 2 slots; use --slots 3 if 3 processes run on it, or map with --max-objects 2",
        ),
        (&[2], "rank 0 is on PE 2, which the machine does not have"),
        (&[], "there is no rank to place"),
    ] {
        let error = Job::new(places, &slots).expect_err("it does not fit").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn slots_of_rankfiles_are_numbered_across_the_whole_node() {
    let check = |spec: &str, placement: &[u32], expected: &str| {
        let (format, slots) = (named("openmpi"), slots(spec, 1));
        let written = text(format, &Job::new(placement, &slots).expect("a slot for each")).expect(spec);
        let places: Vec<&str> =
            written.lines().filter_map(|line| line.split_once('=')).map(|it| it.1).collect();
        assert_eq!(places.join(", "), expected, "{spec}");
        assert_eq!(parse(&written, format, &slots).as_deref(), Ok(placement), "{spec}");
    };
    // Of two nodes with four cores each, the job has cores 1 and 3 of the first node and 1 and 2 of the second.
    let part = "(flat:2*tree:2:2)[1,3,5,6]";
    check(part, &[1, 3, 0, 2], "+n0 slot=3, +n1 slot=2, +n0 slot=1, +n1 slot=1");
    check("flat:2*hwloc:core:2 pu:2[0,2]", &[3, 0, 2], "+n1 slot=2, +n0 slot=0, +n1 slot=0");
    check("(flat:2*hwloc:core:2 pu:2[1,3])[3,0]", &[0, 1], "+n0 slot=3, +n1 slot=1");
    let error = parse("rank 0=+n0 slot=0\n", named("openmpi"), &slots(part, 1)).expect_err("not allocated");
    assert_eq!(error, (1, "rank 0: node 0 has only slots 1, 3 here, but not slot 0".into()));
}

#[test]
fn errors_name_properties_that_a_machine_lacks() {
    let check = |name: &str, spec: &str, expected: &str| {
        let slots = slots(spec, 1);
        let error = text(named(name), &Job::new(&[0], &slots).expect("a slot")).expect_err(expected);
        assert!(error.fault() == Fault::Usage && error.to_string().contains(expected), "{error}");
    };
    check("slurm", "flat:2", "slurm: the machine has no host names; use a machine from a file with names");
    check(
        "fugaku",
        "flat:2",
        "fugaku: nodes have no coordinates on this machine; use a torus or mesh of 1 to 3 dimensions",
    );
    check("fugaku", "mesh:2x2x2x2", "of 1 to 3 dimensions");
    let error = format("opnmpi").expect_err("no such format").to_string();
    assert!(
        error.contains("no launcher's file `opnmpi` (did you mean `openmpi`?); known are mpich, openmpi"),
        "{error}"
    );
}

#[track_caller]
fn check_refused(name: &str, spec: &str, text: &str, line: usize, expected: &str) {
    let (at, reason) = parse(text, named(name), &slots(spec, 1)).expect_err(expected);
    assert!(reason.contains(expected), "`{reason}` does not contain `{expected}`");
    assert_eq!(at, line, "{reason}");
}

#[test]
fn errors_name_the_line() {
    let (check, two) = (check_refused, "flat:2*flat:2");
    check("mpich", two, "# none\n", 1, "the file has no rank");
    check("mpich", two, "0,1\n2,x\n", 2, "expected ranks and ranges such as 0,4,8-11, found `x`");
    check("mpich", two, "0,1\n3,1\n", 2, "rank 1 already has a place in line 1");
    check("mpich", two, "0,1\n2,7\n", 2, "the file has 4 ranks, numbered 0 to 3, but names rank 7");
    check("mpich", two, "0,1\n2,3,4\n", 2, "the machine has slots for only 4 ranks, but there are more");
    check("mpich", two, "0-99999999999\n", 1, "there are more than 1032 ranks");
    check("mpich", two, "# ranks per node: 0\n0\n", 1, "expected a number of ranks per node");
    check(
        "openmpi",
        two,
        "\nrank 0 +n1 slot=1\n",
        2,
        "expected `rank N=HOST slot=N`, found `rank 0 +n1 slot=1`",
    );
    check("openmpi", two, "rank 0=+n2 slot=0\n", 1, "there is no node +n2; nodes are +n0 to +n1");
    check(
        "openmpi",
        two,
        "rank 0=+n0 slot=2\n",
        1,
        "rank 0: node 0 has only slots 0, 1 here, but not slot 2",
    );
    check("openmpi", two, "rank 0=+n0 slot=0\nrank 1=+n0 slot=0\n", 2, "slot 0 of node 0 already has rank 0");
    check("openmpi", two, "rank 0=+n0 slot=0:1\n", 1, "slot=0:1 is not a single core");
    check("openmpi", two, "rank 0=cx1 slot=0\n", 1, "host cx1 is unknown: the machine has no host names");
    check(
        "openmpi",
        CLUSTER,
        "rank 0=cx1 slot=0\n",
        1,
        "the machine has no host cx1; check that the file is for this machine",
    );
    check("openmpi", two, "rank 1=+n0 slot=0\n", 1, "the file has 1 rank, numbered 0 to 0, but names rank 1");
    check("slurm", CLUSTER, "n1-ib\nn3-ib\n", 2, "the machine has no host n3-ib");
    check("slurm", CLUSTER, "n1-ib\nn1-ib\n\nn1-ib\n", 4, "rank 2: host n1-ib already has 2 ranks");
    check(
        "slurm",
        CLUSTER,
        "n1-ib*0\n",
        1,
        "expected a number of ranks of at least 1 after the `*`, found `0`",
    );
    check("slurm", CLUSTER, "n1-ib\nn2-ib*99999999\n", 2, "there are more than ");
    check("slurm", CLUSTER, "n[1\n", 1, "there is a `[` that is not closed");
    check("fugaku", "mesh:2x2", "(0,1)\n0,1\n", 2, "expected coordinates such as (1,2,3), found `0,1`");
    check("fugaku", "mesh:2x2", "(1,0)xyz", 1, "such as (1,2,3), found `(1,0)xyz`; only core=N may follow");
    check("fugaku", "mesh:2x2", "(1,0)\0\n", 1, "such as (1,2,3), found `(1,0)\0`");
    check("fugaku", "mesh:2x2", "(1,0) core=4x\n", 1, "only core=N may follow");
    check("fugaku", "mesh:2x2", "(1,0)(0,0)\n", 1, "only core=N may follow");
    check("fugaku", "mesh:2x2", "(0,1) core=2\n(0,2)\n", 2, "the machine has no node `(0,2)`");
    check("fugaku", "mesh:2x2", "(0,1)\n(0,1)\n", 2, "rank 1: node 2 already has 1 rank");
    check("flux", two, "[[0,2,2]]", 1, "expected a task map such as [[0,4,2,1]]");
    check("flux", two, "[\n[0,2,2,1],\n[0,3,1,1]]", 3, "the block [0,3,1,1] extends beyond the last node, 1");
    check("flux", two, "[[0,2,2,1],\n[1,1,1,1]]", 2, "rank 4: node 1 already has 2 ranks");
    check("flux", two, "[[0,2,0,1]]", 1, "the block [0,2,0,1] has no rank");
    check("flux", two, "[[0,2,99999999,99999999]]", 1, "there are more than 1032 ranks");
    check("flux", two, "{\"version\":2,\"map\":[]}", 1, "the task map has version 2");
    check("flux", two, "[[0,1,1,1],\n", 2, "EOF while parsing");
    check("scotch", two, "two\n", 1, "expected the number of ranks, found `two`");
    check("scotch", two, "2\n0 0\n", 1, "the first line says 2 ranks, but the file has lines for 1");
    check("scotch", two, "2\n0 0\n1 x\n", 3, "expected a rank and its PE, found `1 x`");
    check("scotch", two, "2\n0 0\n1 0\n", 3, "rank 1: PE 0 already has 1 rank");
    check("json", two, "[0,\n 4]", 2, "rank 1: there is no such PE; PEs are 0 to 3");
    check("json", two, "[0,\n -1]", 2, "expected a list of PEs such as [3,0,1,2], found the entry `-1`");
    check("json", two, "{}", 1, "expected a list of PEs");
    check("mapping", two, "0\n# x\none\n", 3, "expected one PE number, found `one`");
}

#[test]
fn errors_in_files_of_training_jobs_name_the_line() {
    let (check, two) = (check_refused, "flat:2*flat:2");
    check("hostfile", CLUSTER, "n1-ib slots=x\n", 1, "as in `n1 slots=4` or `n1:4`, found `n1-ib slots=x`");
    check("hostfile", CLUSTER, "n1-ib 4\n", 1, "found `n1-ib 4`");
    check("hostfile", CLUSTER, "n1-ib\nn3-ib\n", 2, "the machine has no host n3-ib");
    check("hostfile", CLUSTER, "n1-ib:99999999\n", 1, "there are more than ");
    check("hostfile", two, "n1\n", 1, "host n1 is unknown: the machine has no host names");
    check(
        "torchrun",
        two,
        "# r\n0 1\n",
        2,
        "expected RANK NODE_RANK LOCAL_RANK HOST, as in `3 0 1 n1`, found `0 1`",
    );
    check("torchrun", two, "0 2 0\n", 1, "there is no node 2; nodes are 0 to 1");
    check("torchrun", two, "0 1 2\n", 1, "rank 0: node 1 has only slots 0 to 1, but not slot 2");
    check(
        "torchrun",
        CLUSTER,
        "0 1 0 n1-ib\n",
        1,
        "node 1 is host n2-ib of the machine, but the file says n1-ib",
    );
    check("jax", two, "[0,\n 4]", 2, "there is no device 4; devices are 0 to 3");
    check("jax", two, "{}", 1, "expected a list of devices");
    check("pods", CLUSTER, "n1-ib 0\nn2-ib\n", 2, "either all lines have ranks, or none");
    check("pods", CLUSTER, "n1-ib 0\nn1-ib 1\n", 2, "n1-ib is already in line 1; give each pod one line");
    check("pods", CLUSTER, "n1-ib 0,x\n", 1, "as in `n3 0,1,2,3`, found `n1-ib 0,x`");
    check("pods", CLUSTER, "n3-ib 0\n", 1, "the machine has no host n3-ib");
    check("pods", CLUSTER, "n1-ib 0,1,2\n", 1, "rank 2: host n1-ib has only slots 0 to 1, but not slot 2");
}

#[test]
fn files_are_written_atomically_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("MPICH_RANK_ORDER");
    let slots = slots(CLUSTER, 1);
    let job = Job::new(&PLACEMENT, &slots).expect("a slot for each");
    let order = text(named("mpich"), &job).expect("full nodes");
    write(&path, &order).expect("a place");
    assert_eq!(read(&path, named("mpich"), &slots).expect("what was written"), PLACEMENT);
    std::fs::write(&path, "0\n0\n").expect("a file");
    let error = read(&path, named("mpich"), &slots).expect_err("twice");
    assert!(
        error.to_string().contains("MPICH_RANK_ORDER`: line 2: rank 0 already has a place in line 1"),
        "{error}"
    );
    assert!(error.fault() == Fault::Input);
    let error = read(&folder.path().join("none"), named("json"), &slots).expect_err("no file");
    assert!(
        error.fault() == Fault::Usage && error.to_string().contains("cannot read the launcher's file"),
        "{error}"
    );
    let error = write(&folder.path().join("no/such/place"), &order).expect_err("no place");
    assert!(
        error.fault() == Fault::Usage && error.to_string().contains("cannot write the launcher's file"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn written_files_of_any_job_are_read_back(
        nodes in 1..5usize, cores in 1..4usize, per_pe in 1..3u32, order in any::<u64>(), ranks in 1..20usize,
    ) {
        let spec = format!("torus:{nodes}*flat:{cores}");
        let slots = slots(&spec, per_pe);
        // A pseudorandom permutation of the slots.
        let all = nodes * cores * per_pe as usize;
        let mut places: Vec<u32> = (0..all).map(|slot| (slot / per_pe as usize) as u32).collect();
        let mut state = order;
        for last in (1..all).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            places.swap(last, (state >> 33) as usize % (last + 1));
        }
        places.truncate(ranks);
        let job = Job::new(&places, &slots).expect("a slot for each");
        for format in ALL {
            match text(format, &job) {
                Ok(text) => {
                    let again = parse(&text, format, &slots);
                    prop_assert!(again.is_ok(), "{}: {:?}\n{}", format.name, again, text);
                    let is_same = is_same(format, &slots, &places, &again.unwrap_or_default());
                    prop_assert!(is_same, "{}\n{}", format.name, text);
                }
                // There are no host names, and nodes may be filled unevenly.
                Err(_) => {
                    let refusing = ["slurm", "hostfile", "mpich", "torchrun"];
                    prop_assert!(refusing.contains(&format.name), "{}", format.name);
                }
            }
        }
    }

    #[test]
    fn no_file_panics(golden in 0..GOLDEN.len(), at in 0..200usize, word in r"[0-9a-z=+,:\[\]() \n#-]{0,5}") {
        let (name, spec, text) = GOLDEN[golden];
        let slots = slots(spec, 1);
        if let Ok(places) = parse(&mutated(text, at, &word), named(name), &slots) {
            prop_assert!(Job::new(&places, &slots).is_ok());
        }
    }
}

#[test]
fn nodes_are_in_the_order_of_their_pes() {
    let machine = machine("(flat:4*flat:2)[6,7,0,1]").expect("a machine");
    let slots = Slots::of(&*machine, 1);
    assert_eq!((slots.nodes(), slots.node_of(0), slots.node_of(2)), (2, 0, 1));
    assert_eq!(machine.node_of(0), 3);
}

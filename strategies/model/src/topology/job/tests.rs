//! Jobs against distances computed from their hosts, and the forms of specs.

use proptest::prelude::*;

use super::super::parse;
use super::super::running_job::{divide, job, job_on};
use super::super::tests::{check, check_between, route};
use super::*;
use crate::fault::Fault;
use crate::testing::{at_full_size, some_of};

/// Machines for the network between nodes, with at least 6 PEs.
const NETWORKS: &[&str] =
    &["flat:7", "torus:3x3", "tree:2:3/10:3", "mesh:3*flat:2", "torus:4x4[9,0-3,7]", "job:2x3:mesh:2"];

/// A configuration file of Slurm: n01, n02, n3-ib and n4-ib below one switch, gpu1 and gpu2.hpc.org below another.
const SLURM: &str = "SwitchName=s0 Nodes=n0[1-2],n[3-4]-ib\nSwitchName=s1 Nodes=gpu1,gpu2.hpc.org\n\
                     SwitchName=top Switches=s0,s1\n";

fn names(hosts: &str) -> Vec<String> {
    hosts.split(' ').map(String::from).collect()
}

/// The spec of the machine of a job.
fn spec_of(spec: &str, hosts: &str, pes: usize) -> String {
    job_on(spec, &names(hosts), pes, None).expect(spec).spec()
}

/// Checks all distances of the machine of a job, and those of the machine that its spec describes. `between` gives the
/// distance of two nodes by their order of first appearance.
fn check_job(spec: &str, hosts: &[String], pes: usize, between: impl Fn(usize, usize) -> u32) {
    let machine = job_on(spec, hosts, pes, None).expect(spec);
    let text = machine.spec();
    let again = parse(&text).expect("the spec of a job is valid");
    assert_eq!((machine.pes(), again.pes()), (hosts.len() * pes, hosts.len() * pes), "{text}");
    let mut seen: Vec<&String> = Vec::new();
    for host in hosts {
        if !seen.contains(&host) {
            seen.push(host);
        }
    }
    let node = |pe: usize| seen.iter().position(|&host| *host == hosts[pe / pes]).expect("a node");
    for a in 0..machine.pes() {
        for b in 0..machine.pes() {
            let expected = match (a / pes == b / pes, node(a) == node(b)) {
                (true, _) => u32::from(a != b),
                (_, true) => 2,
                _ => 2 + between(node(a), node(b)),
            };
            assert_eq!(machine.distance(a, b), expected, "{text}: {a} to {b}");
            assert_eq!(again.distance(a, b), expected, "{text}, parsed: {a} to {b}");
            assert_eq!(machine.node_of(a) == machine.node_of(b), node(a) == node(b), "{text}: {a} and {b}");
        }
    }
    check_links(&*machine);
}

/// Checks the properties of a machine. In a network that is a product, the path from a node to its link is not modelled,
/// so the names of a route do not join.
fn check_links(machine: &dyn Topology) {
    if !machine.spec().contains('*') {
        check(machine);
    }
}

proptest! {
    #[test]
    fn distances_follow_from_the_hosts(
        places in prop::collection::vec(0..6usize, 1..14), pes in 1..4usize, network in 0..NETWORKS.len(),
    ) {
        let hosts: Vec<String> = places.iter().map(|place| format!("n{place}")).collect();
        check_job("job", &hosts, pes, |_, _| 1);
        let between = parse(NETWORKS[network]).expect("a machine");
        check_job(&format!("job:{}", NETWORKS[network]), &hosts, pes, |a, b| between.distance(a, b));
    }
}

proptest! {
    // Each of these machines is checked from every PE to every other.
    #![proptest_config(ProptestConfig::with_cases(some_of(64)))]

    #[test]
    fn jobs_have_the_properties_of_machines(
        above in prop::collection::vec(1..3usize, 1..4), inside in prop::collection::vec(1..3usize, 1..4),
        network in 0..NETWORKS.len(), cyclic in any::<bool>(),
    ) {
        let [processes, pes] = [&above, &inside].map(|levels| levels.iter().product::<usize>());
        let network = parse(NETWORKS[network]).expect("a machine");
        let nodes = network.pes();
        let machine = Job::new(network, &above, &inside, cyclic).expect("small sizes");
        check_links(&machine);
        let again = parse(&machine.spec()).expect("the spec of a job is valid");
        let levels = [&above[..], &inside].concat();
        let mut row = vec![0; machine.pes()];
        for a in 0..machine.pes() {
            machine.distances_from(a, &mut row);
            for (b, &distance) in row.iter().enumerate() {
                prop_assert_eq!(distance, distance_by_division(&machine, &levels, a, b));
                prop_assert_eq!((machine.distance(a, b), again.distance(a, b)), (distance, distance));
            }
        }
        // Every place of a node has one PE, and all PEs of a node are below one part of the tree.
        let mut places = machine.places();
        let tree = machine.hierarchy().expect("a tree");
        for node in tree.nodes(tree.depth() - levels.len()) {
            let of: Vec<usize> = tree.leaves()[node].iter().map(|&pe| machine.node_of(pe as usize)).collect();
            prop_assert_eq!((of.len(), of.iter().all(|&node| node == of[0])), (processes * pes, true));
        }
        places.sort_unstable();
        prop_assert!(places.into_iter().eq(0..(nodes * processes * pes) as u32));
    }
}

/// The distance of two PEs: both go up level by level until they are in the same part.
fn distance_by_division(machine: &Job, levels: &[usize], a: usize, b: usize) -> u32 {
    let (nodes, mut places) = ([a, b].map(|pe| machine.node_of(pe)), [a, b].map(|pe| machine.core_of(pe)));
    if nodes[0] != nodes[1] {
        return levels.len() as u32 + machine.network.distance(nodes[0], nodes[1]);
    }
    let mut height = 0;
    for arity in levels.iter().rev() {
        if places[0] == places[1] {
            break;
        }
        places = places.map(|place| place / arity);
        height += 1;
    }
    height
}

#[test]
fn hardware_threads_divide_the_processes_and_pes_of_a_node() {
    let divided = |arities: &[usize], processes, pes| {
        let (above, inside) = divide(arities, processes, pes);
        assert_eq!((above.iter().product::<usize>(), inside.iter().product::<usize>()), (processes, pes));
        let text = |levels: Vec<usize>| levels.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
        format!("{}x{}", text(above), text(inside))
    };
    // Two sockets of two caches of four cores of two threads.
    let node = [2, 2, 4, 2];
    for (processes, pes, expected) in [
        // PEs on all threads.
        (1, 32, "1x2.2.4.2"),
        (2, 16, "2x2.4.2"),
        (4, 8, "2.2x4.2"),
        (8, 4, "2.2.2x2.2"),
        (16, 2, "2.2.4x2"),
        (32, 1, "2.2.4.2x1"),
        // A PE for each core, and fewer.
        (1, 16, "1x2.2.4"),
        (4, 4, "2.2x4"),
        (16, 1, "2.2.4x1"),
        (2, 1, "2x1"),
        (1, 2, "1x2"),
        (2, 4, "2x2.2"),
        // More than threads, and numbers that do not divide them.
        (4, 16, "4x16"),
        (3, 4, "3x4"),
        (1, 1, "1x1"),
    ] {
        assert_eq!(divided(&node, processes, pes), expected, "{processes}, {pes}");
    }
    // A process with parts of two sockets: the level of the sockets does not count.
    assert_eq!(divided(&[3, 4], 2, 6), "2x6");
    assert_eq!(divided(&[3, 2, 2], 2, 6), "2x3.2");
    assert_eq!(divided(&[], 2, 2), "2x2");
}

#[test]
fn a_running_job_has_the_levels_of_its_nodes() {
    let node = parse("hwloc:pack:2 l3:2 core:2 pu:1").expect("a machine");
    let spec_of = |spec: &str, hosts: &str, pes: usize| {
        job_on(spec, &names(hosts), pes, Some(&*node)).expect(spec).spec()
    };
    assert_eq!(spec_of("job", "a a a a b b b b", 2), "job:2.2x2:flat:2");
    assert_eq!(spec_of("job", "a b a b", 4), "job:2x2.2:cyclic:flat:2");
    assert_eq!(spec_of("job:torus:3x3", "a b c", 8), "job:1x2.2.2:(torus:3x3[0-2])");
    assert_eq!(spec_of("job", "a a b", 4), "job:2x2.2:flat:2[0-11]");
    assert_eq!(spec_of("job", "a a a", 1), "job:3x1:flat:1", "8 threads cannot be divided by 3");
    assert_eq!(spec_of("flat:3", "a a a", 1), "flat:3");
    let machine = job_on("job", &names("a a a a b b b b"), 2, Some(&*node)).expect("a job");
    let distances: Vec<u32> = [1, 2, 4, 8].map(|pe| machine.distance(0, pe)).into();
    assert_eq!(distances, [1, 2, 3, 4], "in the process, cache, socket and beyond the node");
    assert_eq!(machine.cpu_of(0), None, "a description has no numbers of the operating system");
}

#[test]
fn a_pe_of_a_job_has_a_hardware_thread_of_its_own() {
    /// A host whose operating system numbers threads backwards.
    struct Backwards;
    impl Topology for Backwards {
        fn spec(&self) -> String {
            "flat:8".into()
        }
        fn pes(&self) -> usize {
            8
        }
        fn distance(&self, a: usize, b: usize) -> u32 {
            u32::from(a != b)
        }
        fn links(&self) -> usize {
            0
        }
        fn link(&self, id: usize) -> Link {
            unreachable!("there is no link {id}")
        }
        fn route(&self, _: usize, _: usize, _: &mut Vec<usize>) {}
        fn cpu_of(&self, pe: usize) -> Option<usize> {
            Some(7 - pe)
        }
    }
    let cpus = |hosts: &str, pes: usize| {
        let machine = job_on("job", &names(hosts), pes, Some(&Backwards)).expect("a job");
        (0..machine.pes()).map(|pe| machine.cpu_of(pe)).collect::<Vec<_>>()
    };
    assert_eq!(cpus("a a", 2), [7, 5, 3, 1].map(Some));
    assert_eq!(cpus("a b a b", 1), [7, 7, 3, 3].map(Some));
    assert_eq!(cpus("a a a", 1), [7, 5, 3].map(Some));
    assert_eq!(cpus("a a a", 3), [None; 9]);
}

#[test]
fn specs_of_regular_jobs_are_short() {
    assert_eq!(spec_of("job", "a", 4), "job:1x4:flat:1");
    assert_eq!(spec_of("job", "a b c", 2), "job:1x2:flat:3");
    assert_eq!(spec_of("job", "a a b b", 8), "job:2x8:flat:2");
    assert_eq!(spec_of("job", "a b a b", 8), "job:2x8:cyclic:flat:2");
    // Some nodes have fewer processes.
    assert_eq!(spec_of("job", "a a a b b", 1), "job:3x1:flat:2[0-4]");
    assert_eq!(spec_of("job", "a b c a", 2), "job:2x2:cyclic:flat:3[0-7]");
    assert_eq!(spec_of("job", "a b b", 2), "job:2x2:flat:2[0-1,4-7]");
    assert_eq!(spec_of("job", "a b b a", 2), "job:2x2:flat:2[0-1,4-7,2-3]");
    // The nodes are PEs of a larger network.
    assert_eq!(spec_of("job:torus:2x2", "a a b b", 8), "job:2x8:(torus:2x2[0-1])");
    assert_eq!(spec_of("job:mesh:2*flat:2", "a b c d", 8), "job:1x8:(mesh:2*flat:2)");
    let spec = |spec: &str, node: fn(usize) -> usize| {
        let hosts: Vec<String> = (0..4096).map(|process| format!("n{}", node(process))).collect();
        job_on(spec, &hosts, 8, None).expect(spec).spec()
    };
    assert_eq!(spec("job", |process| process / 64), "job:64x8:flat:64");
    assert_eq!(spec("job:torus:4x4x4", |process| process % 64), "job:64x8:cyclic:torus:4x4x4");
}

#[test]
fn a_complete_spec_needs_no_job() {
    for spec in ["job:4x8:flat:16", "job:2x1:flat:2[0-1,3]", "torus:4x4", "job:2x2:mesh:3*flat:2"] {
        assert_eq!(spec_of(spec, "a b", 2), spec);
    }
    assert_eq!(
        route("job:2x2:flat:2", 1, 6),
        "1 -> process 0 of node 0, process 0 of node 0 -> node 0, node 0 -> network switch, \
         network switch -> node 1, node 1 -> process 1 of node 1, process 1 of node 1 -> 6"
    );
    assert_eq!(route("job:2x2:cyclic:flat:2", 1, 0), "1 -> process 0 of node 0, process 0 of node 0 -> 0");
    assert_eq!(
        route("job:2.2x2.2:cyclic:flat:2", 0, 24),
        "0 -> part 0 of level 3 of node 0, part 0 of level 3 of node 0 -> process 0 of node 0, \
         process 0 of node 0 -> part 0 of level 1 of node 0, part 0 of level 1 of node 0 -> node 0, \
         node 0 -> part 1 of level 1 of node 0, part 1 of level 1 of node 0 -> process 3 of node 0, \
         process 3 of node 0 -> part 6 of level 3 of node 0, part 6 of level 3 of node 0 -> 24"
    );
}

#[test]
fn nodes_are_found_by_host_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("topology.conf");
    std::fs::write(&file, SLURM).expect("a file");
    let network = format!("slurm:{}", file.display());
    let spec = format!("job:{network}");
    // By order in the file: n01, n02, n3-ib, n4-ib, gpu1, gpu2.hpc.org.
    for (hosts, places) in [
        ("n01 n02 n3-ib n4-ib gpu1 gpu2.hpc.org", vec![0, 1, 2, 3, 4, 5]),
        ("gpu2 n02 gpu2 gpu1.hpc.org n02", vec![5, 1, 4]),
        ("n4-ib.cluster.org n01 gpu2.cluster.org n4-ib.cluster.org", vec![3, 0, 5]),
    ] {
        let machine = parse(&network).expect("a network");
        check_job(&spec, &names(hosts), 2, |a, b| machine.distance(places[a], places[b]));
    }
    let machine = job(&spec, &names("gpu2 gpu1.hpc.org gpu2"), 2).expect("a job");
    assert_eq!((machine.host(0), machine.host(3)), (Some("gpu2.hpc.org"), Some("gpu1")));

    let refused = |spec: &str, hosts: &str, expected: &str| {
        let error = job(spec, &names(hosts), 2).err().expect(expected);
        assert_eq!(error.fault, Fault::Usage, "{error}");
        assert!(error.to_string().contains(expected), "`{error}` does not contain `{expected}`");
    };
    let file = format!("`{network}` has no host `n7`, which runs a process of the job; add the host, or use");
    refused(&spec, "n01 n7", &file);
    refused(&format!("job:({network}*flat:2)"), "n01", "host `n01` has 2 PEs in");
    refused(&spec, "gpu1.a gpu1.b", "hosts `gpu1.a` and `gpu1.b` of the job are one host in");
    // IP addresses have no domain.
    std::fs::write(folder.path().join("topology.conf"), "SwitchName=s Nodes=10.0.0.1,10.0.0.2\n")
        .expect("a file");
    assert_eq!(spec_of(&spec, "10.0.0.2 10.0.0.1", 1), format!("job:1x1:({network}[1,0])"));
    refused(&spec, "10.0.0.3", "has no host `10.0.0.3`");
    std::fs::write(folder.path().join("topology.conf"), "SwitchName=s Nodes=n1.a,n1.b\n").expect("a file");
    refused(&spec, "n1", "host `n1` has 2 PEs in");
}

#[test]
fn errors_of_jobs_name_the_remedy() {
    let refused = |spec: &str, hosts: &str, pes: usize, expected: &str| {
        let error = job(spec, &names(hosts), pes).err().expect(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        assert!(error.contains(spec), "{error}");
    };
    refused("job:mesh:2", "a b c", 1, "`mesh:2` has 2 PEs, but the job has 3 nodes; write a network with");
    refused("job:tours:4", "a b", 1, "there is no machine `tours` (did you mean `torus`?)");
    refused("job:", "a b", 1, "there is no machine ``; known are flat:N");
    refused(
        "job",
        "a b",
        1 << 24,
        "2 nodes with up to 1 process and 16777216 PEs each: sizes multiply to at",
    );
    for (spec, expected) in [
        ("job:2.x4:flat:2", "expected processes per node, PEs per process and a network"),
        ("job:2.0x4:flat:2", "a size is at least 1"),
        ("job:1.1.1.1.1.1.1.1x1.1.1.1.1.1.1.1.1:flat:2", "a node has 17 levels; write at most 16"),
    ] {
        refused(spec, "a b", 1, expected);
    }
    refused("jobs", "a b", 1, "there is no machine `jobs` (did you mean `job`?)");
    let huge = "job:tree:2:2/4294967295:1";
    refused(huge, "a b c", 1, "a distance of 2 + 4294967295 exceeds 32 bits; use smaller distances");
}

#[test]
fn an_allocation_of_a_job_may_have_the_inner_parts_of_any_machine() {
    let machine = parse("(job:2x2:(torus:4x2[5,0-2])*flat:2)[3,0,17-20]").expect("a machine");
    check_between(&*machine, |_, _| None);
}

#[test]
#[ignore = "slow"]
fn jobs_have_the_properties_of_machines_in_many_cases() {
    at_full_size(&[jobs_have_the_properties_of_machines]);
}

//! The mapper as a whole: permutations, exact sizes, and hop-bytes.

use equipoise_model::database::{Edge, End};
use equipoise_model::graph::load;
use equipoise_model::topology;
use proptest::prelude::*;

use super::*;
use crate::registry::parse;
use crate::testing::assign_on;

/// The hop-bytes of a graph with task `i` on `pe_of[i]`.
fn hops(graph: &str, machine: &str, pe_of: &[u32]) -> u128 {
    let machine = topology::parse(machine).expect("a machine");
    hop_bytes(&Graph::of(&load(graph).expect("a graph")), &[], pe_of, &*machine)
}

/// The assignment of a graph to a machine by `spec`, and its hop-bytes.
fn mapped(spec: &str, graph: &str, machine: &str) -> (Vec<u32>, u128) {
    let pes = topology::parse(machine).expect("a machine").pes();
    let tasks = load(graph).expect("a graph").remap(pes as u32);
    let answer = assign_on(spec, &tasks, machine).expect("an assignment");
    let cost = hops(graph, machine, &answer.pe_of);
    (answer.pe_of, cost)
}

fn is_permutation(pe_of: &[u32]) -> bool {
    let mut sorted = pe_of.to_vec();
    sorted.sort_unstable();
    sorted.iter().zip(0..).all(|(&pe, expected)| pe == expected)
}

/// Ranks numbered without regard to the machine.
const SHUFFLED: &str = "random:n=128,degree=6,seed=3";

#[test]
fn inside_nodes_many_small_messages_can_weigh_more_than_a_large_one() {
    // Ring 0-1-2-3-0 on two sockets of two cores: two large messages 0-1 and 2-3, many small ones 1-2 and 3-0.
    let mut tasks = load("ring:4,bytes=0").expect("a ring").remap(4);
    tasks.edges.clear();
    for (from, to, messages, bytes) in [(0, 1, 1, 4000), (2, 3, 1, 4000), (1, 2, 9, 900), (3, 0, 9, 900)] {
        tasks.edges.push(Edge { from: End::Object(from), to: End::Object(to), messages, bytes });
    }
    let machine = topology::parse("flat:1*tree:2:2").expect("a machine");
    let together = |far: &str, a: usize, b: usize| {
        let far = far.parse().expect("points");
        let mapper = HierTopoMap { far, guard: false, ..HierTopoMap::default() };
        let pe_of = crate::Strategy::assign(&mapper, &tasks, &*machine, 0).expect("an assignment").pe_of;
        pe_of[a] / 2 == pe_of[b] / 2
    };
    assert!(together("bytes", 0, 1) && together("bytes", 2, 3));
    assert!(together("0/700:5000/700", 1, 2) && together("0/700:5000/700", 3, 0));
}

#[test]
fn every_method_gives_a_permutation_and_mapping_inside_nodes_helps() {
    for (machine, inters) in [
        ("fattree:4:4*tree:2:4", &["tree", "auto"][..]),
        ("torus:4x4*tree:2:4", &["tree", "bipart"]),
        ("torus:4x8x4", &["tree", "bipart"]),
        ("torus:4x4x4[random:16,seed=2]*tree:2:4", &["tree", "bipart"]),
        ("dragonfly:groups=4,routers=4,hosts=1*tree:2:4", &["tree"]),
        ("hypercube:7", &["tree", "bipart"]),
        ("tree:4:4:8", &["tree"]),
    ] {
        for inter in inters {
            let run = |intra| {
                mapped(&format!("HierTopoMap:inter={inter},intra={intra},guard=off"), SHUFFLED, machine)
            };
            let ((whole, cost), (outside, outside_cost)) = (run("on"), run("off"));
            assert!(is_permutation(&whole) && is_permutation(&outside), "{machine} {inter}");
            assert!(cost <= outside_cost, "{machine} {inter}: {cost} > {outside_cost}");
            let blocks: Vec<u32> = (0..128).collect();
            assert!(cost < hops(SHUFFLED, machine, &blocks), "{machine} {inter}");
        }
    }
}

#[test]
fn nodes_of_different_size_receive_one_process_per_core() {
    // Nodes of 8, 5 and 3 cores.
    let machine = "(torus:3*tree:2:4)[0-7,8-12,16-18]";
    let (pe_of, _) = mapped("HierTopoMap:guard=off", "ring:16", machine);
    assert!(is_permutation(&pe_of), "{pe_of:?}");
}

#[test]
fn fewer_processes_than_pes_have_a_pe_each() {
    let (mut pe_of, _) = mapped("HierTopoMap", "ring:11", "torus:2x2*tree:4");
    pe_of.sort_unstable();
    pe_of.dedup();
    assert_eq!(pe_of.len(), 11);
}

#[test]
fn fewer_ranks_than_pes_keep_rank_order_on_the_first_pes_if_it_is_best() {
    // The launcher fills the first four of twelve rows, and every neighbor is one hop away.
    let (pe_of, cost) = mapped("HierTopoMap", "mesh:12x4", "torus:12x12");
    let filled: Vec<u32> = (0..48).collect();
    assert_eq!(hops("mesh:12x4", "torus:12x12", &filled), 160);
    assert!(cost <= 160, "{cost} {pe_of:?}");
}

#[test]
fn more_objects_than_pes_are_spread_by_their_loads() {
    let (pe_of, cost) = mapped("HierTopoMap", "mesh:32x32", "fattree:4:4*tree:2:2");
    let mut loads = vec![0; 64];
    pe_of.iter().for_each(|&pe| loads[pe as usize] += 1);
    assert!(loads.iter().all(|&load| load <= 16), "{loads:?}");
    let (_, treematch) = mapped("TreeMatch", "mesh:32x32", "fattree:4:4*tree:2:2");
    assert!(cost <= treematch, "{cost} and TreeMatch {treematch}");
}

#[test]
fn rank_order_is_kept_only_if_it_is_best() {
    let tasks = load("mesh:8x8").expect("a graph").remap(64);
    let kept = |graph: &Database, guard| {
        let answer =
            assign_on(&format!("HierTopoMap:guard={guard}"), graph, "mesh:8x8").expect("an assignment");
        let note = answer.notes.iter().find(|note| note.name == "rank order kept").expect("a note").value;
        (note, is_permutation(&answer.pe_of), answer.pe_of == (0..64).collect::<Vec<_>>())
    };
    assert_eq!(kept(&tasks, "on"), (1.0, true, true));
    assert!(kept(&tasks, "off").1);
    let random = load("random:n=64,degree=4,seed=1").expect("a graph").remap(64);
    assert_eq!(kept(&random, "on"), (0.0, true, false));
}

#[test]
fn neighbor_lists_give_the_same_permutation_as_a_database() {
    let graph = Graph::of(&load(SHUFFLED).expect("a graph"));
    let neighbors: Vec<Vec<(u32, u64)>> = (0..128)
        .map(|v| graph.neighbors(v).filter(|&(u, _)| u > v).map(|(u, bytes)| (u as u32, bytes)).collect())
        .collect();
    for spec in ["torus:4x4*tree:2:4", "fattree:4:4:8"] {
        let machine = topology::parse(spec).expect("a machine");
        let ranks = topomap(&neighbors, &*machine, HierTopoMap::default(), 0).expect("an assignment");
        assert_eq!(ranks.rank_of, mapped("HierTopoMap", SHUFFLED, spec).0, "{spec}");
    }
}

#[test]
fn errors_of_impossible_mappings_name_the_remedy() {
    let machine = topology::parse("tree:2:2").expect("a machine");
    let error = |lists: &[Vec<(u32, u64)>], mapper| {
        topomap(lists, &*machine, mapper, 0).expect_err("refused").to_string()
    };
    let lists = vec![Vec::new(); 3];
    assert!(error(&lists, HierTopoMap::default()).contains("3 processes, and `tree:2:2/4:2` has 4 PEs"));
    let lists = vec![vec![(4, 1)], Vec::new(), Vec::new(), Vec::new()];
    assert!(
        error(&lists, HierTopoMap::default()).contains("process 0 sends to process 4, which does not exist")
    );
    let bipart = HierTopoMap { inter: Inter::Bipart, ..HierTopoMap::default() };
    assert!(error(&vec![Vec::new(); 4], bipart).contains("use inter=tree"));
    for (spec, expected) in [
        ("HierTopoMap:inter=up", "`tree`, `bipart` or `auto`"),
        ("HierTopoMap:intra=1", "`on` or `off`"),
        ("HierTopoMap:partitioner=scotch", "expected `metis` or `poise`"),
    ] {
        let error = parse(spec, &[]).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_lists_on_any_machine_give_a_permutation_no_worse_than_rank_order(
        machine in prop::sample::select(vec![
            "torus:3x4", "fattree:3:4", "torus:3*tree:2:2", "tree:12", "flat:12", "mesh:4x4[random:12]",
        ]),
        edges in prop::collection::vec((0u32..12, 0u32..12, 0u64..1000), 0..60),
        seed in 0u64..3,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let mut neighbors = vec![Vec::new(); 12];
        for (from, to, bytes) in edges {
            neighbors[from as usize].push((to, bytes));
        }
        let answer = topomap(&neighbors, &*machine, HierTopoMap::default(), seed).expect("an assignment");
        let Permutation { rank_of: ranks, order_kept } = answer;
        let mapper = HierTopoMap { guard: false, ..HierTopoMap::default() };
        let unguarded = topomap(&neighbors, &*machine, mapper, seed);
        // `order_kept` is set if the mapping without the guard is another one.
        prop_assert_eq!(order_kept, unguarded.is_ok_and(|it| it.rank_of != ranks));
        prop_assert!(is_permutation(&ranks));
        let cost = |ranks: &[u32]| -> u64 {
            let place = |process: usize| ranks[process] as usize;
            let distance = |from: usize, to: u32| u64::from(machine.distance(place(from), place(to as usize)));
            let of = |(from, list): (usize, &Vec<(u32, u64)>)| -> u64 {
                list.iter().map(|&(to, bytes)| bytes * distance(from, to)).sum()
            };
            neighbors.iter().enumerate().map(of).sum()
        };
        prop_assert!(cost(&ranks) <= cost(&(0..12).collect::<Vec<_>>()));
    }

    #[test]
    fn fewer_ranks_than_pes_are_no_worse_than_either_rank_order(
        machine in prop::sample::select(vec![
            "torus:4x4", "torus:16", "mesh:12x2", "fattree:4:4", "torus:4x2*tree:2:2", "tree:4:6", "flat:16",
            "hypercube:4",
            "(torus:3*tree:2:4)[0-7,9-12,16-21]",
        ]),
        edges in prop::collection::vec((0u32..15, 0u32..15, 1u64..1000), 1..40),
        ranks in 2u32..16,
        seed in 0u64..3,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let pes = machine.pes() as u32;
        let mut tasks = load(&format!("mesh:{ranks}")).expect("a graph").remap(pes);
        tasks.edges.clear();
        for (from, to, bytes) in edges {
            let ends = [from % ranks, to % ranks].map(End::Object);
            tasks.edges.push(Edge { from: ends[0], to: ends[1], messages: 1, bytes });
        }
        let graph = Graph::of(&tasks);
        let cost = |pe_of: &[u32]| hop_bytes(&graph, &[], pe_of, &*machine);
        let answer = crate::Strategy::assign(&HierTopoMap::default(), &tasks, &*machine, seed);
        let answer = answer.expect("an assignment").pe_of;
        let filled: Vec<u32> = (0..ranks).collect();
        prop_assert!(cost(&answer) <= cost(&filled), "{} > {}", cost(&answer), cost(&filled));
        prop_assert!(cost(&answer) <= cost(&tasks.placement()));
        let mut used = answer;
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used.len(), ranks as usize);
    }
}

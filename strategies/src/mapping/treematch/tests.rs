//! Tests of TreeMatch, and the example of the 2013 paper for the tests of TreeMatchConst.

use equipoise_model::database::{Edge, End};
use equipoise_model::graph::load;
use equipoise_model::topology::parse;
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

use super::super::on_tree::tree::Levels;
use super::*;
use crate::testing::{assign_on, communication, database};

/// Figure 1: a node with two processors of 3 times 2 cores, whose physical numbers are even on the first
/// and odd on the second.
pub(in crate::mapping) const FIGURE_1: &str = "tree:2:3:2[0,6,1,7,2,8,3,9,4,10,5,11]";

/// The matrix of figure 2 as a database for the machine of figure 1.
pub(in crate::mapping) fn figure_2() -> Database {
    const MATRIX: [[u64; 8]; 8] = [
        [0, 1000, 10, 1, 100, 1, 1, 1],
        [1000, 0, 1000, 1, 1, 100, 1, 1],
        [10, 1000, 0, 1000, 1, 1, 100, 1],
        [1, 1, 1000, 0, 1, 1, 1, 100],
        [100, 1, 1, 1, 0, 1000, 10, 1],
        [1, 100, 1, 1, 1000, 0, 1000, 1],
        [1, 1, 100, 1, 10, 1000, 0, 1000],
        [1, 1, 1, 100, 1, 1, 1000, 0],
    ];
    let mut database = database(12, &[(1.0, 0); 8]);
    for (a, row) in MATRIX.iter().enumerate() {
        for (b, &bytes) in row.iter().enumerate().skip(a + 1) {
            let (from, to) = (End::Object(a as u32), End::Object(b as u32));
            database.edges.push(Edge { from, to, messages: 1, bytes });
        }
    }
    database
}

/// Whether exactly these PEs are used, by one object each.
#[track_caller]
pub(in crate::mapping) fn check_leaves(pe_of: &[u32], expected: &[u32]) {
    let (mut used, mut expected) = (pe_of.to_vec(), expected.to_vec());
    used.sort_unstable();
    expected.sort_unstable();
    assert_eq!(used, expected);
}

#[test]
fn the_leaves_of_figure_1_have_physical_numbers() {
    let tree = parse(FIGURE_1).expect("a tree").hierarchy().expect("a hierarchy");
    assert_eq!(tree.leaves(), [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]);
}

#[test]
fn figure_1_without_constraints_leaves_8_10_9_and_11_unused() {
    let pe_of = assign_on("TreeMatch", &figure_2(), FIGURE_1).expect("an assignment").pe_of;
    check_leaves(&pe_of, &[0, 2, 4, 6, 1, 3, 5, 7]);
    // Pairs that exchange 1000 bytes share a cache.
    assert_eq!(pe_of, [0, 2, 4, 6, 1, 3, 5, 7]);
}

/// The hops per byte of `graph` on `machine` by the strategy `spec`.
fn hops_per_byte(spec: &str, graph: &str, machine: &str) -> f64 {
    let topology = parse(machine).expect(machine);
    let database = load(graph).expect(graph).remap(topology.pes() as u32);
    let pe_of = assign_on(spec, &database, machine).expect("an assignment").pe_of;
    communication(&database, &*topology, &pe_of).hops_per_byte
}

#[track_caller]
fn check_hops(graph: &str, machine: &str, most: f64) {
    for spec in ["TreeMatch", "TreeMatchConst"] {
        let hops = hops_per_byte(spec, graph, machine);
        assert!(hops <= most, "{spec} on {machine}: {hops} hops per byte of {graph}");
    }
}

#[test]
fn grids_and_rings_on_trees_have_few_hops_per_byte() {
    // In natural order, a node has a row of the mesh: 56 edges between nodes, 48 inside sockets, 8 between sockets.
    let natural = f64::from(56 * 6 + 48 * 2 + 8 * 4) / 112.0;
    check_hops("mesh:8x8", "tree:8:2:4", natural * 0.92);
    check_hops("ring:64", "tree:8:2:4", 2.85);
}

#[test]
fn machines_that_are_not_trees_are_mapped_by_number() {
    let pe_of =
        assign_on("TreeMatch:groups=keep", &load("torus:4x4").expect("a torus").remap(16), "torus:4x4");
    check_leaves(&pe_of.expect("an assignment").pe_of, &(0..16).collect::<Vec<_>>());
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let graph = Graph::of(&load("random:n=300,degree=6").expect("a graph"));
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| order(&graph, &[4, 5, 15], 8, 3))
    };
    assert_eq!(run(1), run(2));
}

proptest! {
    #[test]
    fn every_vertex_has_a_leaf_of_its_own(
        arities in prop::collection::vec(1..8usize, 0..4),
        missing in 0..5usize,
        edges in prop::collection::vec((any::<u32>(), any::<u32>(), 0..1u64 << 40), 0..80),
        (restarts, seed) in (0..4usize, any::<u64>()),
    ) {
        let leaves = arities.iter().product::<usize>();
        let vertices = leaves.saturating_sub(missing);
        let n = vertices.max(1) as u32;
        let edges = edges.into_iter().filter(|_| vertices > 0).map(|(a, b, w)| (a % n, b % n, w));
        let graph = Graph::new(vertices, edges);
        let mut leaf_of = order(&graph, &arities, restarts, seed);
        leaf_of.sort_unstable();
        leaf_of.dedup();
        prop_assert_eq!(leaf_of.len(), vertices);
        prop_assert!(leaf_of.iter().all(|&leaf| (leaf as usize) < leaves));
    }

    #[test]
    fn more_restarts_never_increase_the_weight_between_groups(
        edges in prop::collection::vec((0..24u32, 0..24u32, 1..3u64), 10..80),
        seed in any::<u64>(),
    ) {
        let graph = Graph::new(24, edges);
        let levels = Levels::of(&Hierarchy::balanced(&[2, 2, 2, 3]));
        let cut = |restarts| levels.cut(&graph, &order(&graph, &[2, 2, 2, 3], restarts, seed));
        prop_assert!(cut(8) <= cut(1));
    }
}

#[test]
fn refuses_counts_of_zero_and_unknown_values() {
    let check = |spec: &str, expected: &str| {
        let error = crate::registry::parse(spec, &[]).expect_err(spec).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    };
    check("TreeMatch:restarts=0", "expected a number from 1 to");
    check("TreeMatchConst:trials=0", "expected a number from 1 to");
    check("TMLB_MIN_WEIGHT:affinity=words", "expected `messages` or `bytes`");
    check("TMLB_MIN_WEIGHT:matching=maybe", "expected `on` or `off`");
    check("TMLB_TREEBASED:surplus=all", "expected `heaviest` or `lightest`");
    check("TMLB_TREEBASED:level=top", "expected `auto` or a number of levels below the root");
}

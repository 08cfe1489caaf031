//! Tests of explanations: bytes by distance and level, far edges, names.

use equipoise_model::database::Edge;
use equipoise_model::graph::load;
use equipoise_model::topology::parse;

use super::*;

#[test]
fn bytes_are_counted_where_they_travel() {
    let machine = parse("tree:2:2").expect("a machine");
    let database = load("ring:4,bytes=10").expect("a graph").remap(4);
    // The ring visits the PEs in the order 0-2-1-3 before, and 0-1-2-3 after.
    let found = Explanation::of(&database, &*machine, &[0, 2, 1, 3], &[0, 1, 2, 3], 2);
    let at = |distance, bytes_before, bytes_after| AtDistance { distance, bytes_before, bytes_after };
    assert_eq!(found.distances, [at(2, 0, 40), at(4, 80, 40)]);
    let level = |name: &str, level, nodes, bytes_before, bytes_after| AtLevel {
        name: name.into(),
        level,
        nodes,
        bytes_before,
        bytes_after,
    };
    let in_nodes = level("in one of 2 parts of height 1", 1, 2, 0, 40);
    assert_eq!(found.levels, [level("in one PE", 2, 4, 0, 0), in_nodes, level("at the root", 0, 1, 80, 40)]);
    assert_eq!(found.far.len(), 2);
    let FarEdge { ends, bytes, pes, distance_before, distance_after } = found.far[0];
    assert_eq!((ends, bytes, pes), ([End::Object(0), End::Object(3)], 20, [0, 3]));
    assert_eq!((distance_before, distance_after), (4, 4));
    assert_eq!((found.hot_before[0].bytes, found.hot_after[0].bytes), (40, 20));
    let sum = |which: fn(&AtDistance) -> u64| found.distances.iter().map(which).sum::<u64>();
    assert_eq!((sum(|it| it.bytes_before), sum(|it| it.bytes_after)), (80, 80));
}

/// A message of an object to itself, and one between PEs, are in no graph of objects.
#[test]
fn all_bytes_are_counted() {
    let machine = parse("tree:2:2").expect("a machine");
    let mut database = load("mesh:2,bytes=10").expect("a graph").remap(4);
    let edge = |from, to, bytes| Edge { from, to, messages: 1, bytes };
    database.edges.push(edge(End::Object(0), End::Object(0), 900));
    database.edges.push(edge(End::Pe(0), End::Pe(3), 77));
    database.edges.push(edge(End::Object(1), End::Pe(3), 0));
    let (before, after) = ([0, 0], [0, 1]);
    let found = Explanation::of(&database, &*machine, &before, &after, 2);
    let at = |distance, bytes_before, bytes_after| AtDistance { distance, bytes_before, bytes_after };
    assert_eq!(found.distances, [at(0, 920, 900), at(2, 0, 20), at(4, 77, 77)]);
    let levels: Vec<_> = found.levels.iter().map(|at| (at.bytes_before, at.bytes_after)).collect();
    assert_eq!(levels, [(920, 900), (0, 20), (77, 77)]);
    assert_eq!(hops_between_objects(&database, &*machine, &before), 0.0);
    assert_eq!(hops_between_objects(&database, &*machine, &after), 2.0);
}

#[test]
fn a_torus_has_no_levels_and_edges_may_end_at_a_pe() {
    let machine = parse("torus:3x3").expect("a machine");
    let mut database = load("mesh:3x3").expect("a graph").remap(9);
    database.edges[0].to = End::Pe(5);
    let same: Vec<u32> = (0..9).collect();
    // On the torus every neighbor of the mesh is one hop away, which is the least possible distance.
    let found = Explanation::of(&database, &*machine, &same, &same, 100);
    assert!(found.levels.is_empty());
    assert!(found.far.iter().any(|edge| edge.ends.contains(&End::Pe(5))), "{:?}", found.far);
    assert!(found.far.iter().all(|edge| edge.distance_after > 1), "{:?}", found.far);
    assert_eq!(found.hot_before, found.hot_after);
}

#[test]
fn lists_heavy_edges_even_if_pe_0_is_far_from_all_other_pes() {
    let machine = parse("torus:64[0,20,22,40,50]").expect("a machine");
    let mut database = load("mesh:5").expect("a graph").remap(5);
    // Objects 3 and 4 are on PEs 40 and 50; the PE nearest to PE 0 is 14 hops away.
    database.edges.retain(|edge| edge.from == End::Object(3) || edge.to == End::Object(3));
    database.edges.iter_mut().for_each(|edge| edge.bytes = 900);
    let found = Explanation::of(&database, &*machine, &[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4], 100);
    assert!(found.far.iter().any(|edge| edge.distance_after == 10), "{:?}", found.far);
}

#[test]
fn levels_are_those_of_the_tree_and_the_node_level() {
    let check = |spec: &str, expected: &str| {
        let machine = parse(spec).expect(spec);
        let database = load("ring:4").expect("a graph").remap(machine.pes() as u32);
        let found = Explanation::of(&database, &*machine, &[0, 1, 2, 3], &[0, 1, 2, 3], 1);
        let names: Vec<&str> = found.levels.iter().map(|level| level.name.as_str()).collect();
        assert_eq!(names.join(", "), expected, "{spec}");
    };
    check("torus:4x4", "");
    check(
        "torus:3x3*tree:2:4",
        "in one PE, in one of 18 parts of height 1 inside nodes, in one of 9 nodes, between nodes",
    );
    check("torus:4x4*mesh:2x2", "in one PE, in one of 16 nodes, between nodes");
    check("(torus:4x4*mesh:2x2)[0-3,12]", "in one PE, in one of 2 nodes, between nodes");
    check("tree:2:3*mesh:2x2", "in one PE, in one of 6 nodes, in one of 2 parts of height 1, at the root");
    check("flat:4", "in one PE, between PEs");
    check("tree:2:1:2", "in one PE, in one of 2 parts of height 2, at the root");
    check("tree:1:4", "in one PE, between PEs");
    check(
        "dragonfly:groups=3,routers=2,hosts=2",
        "in one PE, in one of 6 parts of height 1, in one of 3 parts of height 2, at the root",
    );
    check(
        "tree:2:2:2",
        "in one PE, in one of 4 parts of height 1, in one of 2 parts of height 2, at the root",
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/model/tests/data/topology.conf");
    // Switches are not nodes.
    check(
        &format!("(slurm:{file})[n[1-2]-ib,gpu[01-02]]"),
        "in one PE, in one of 3 parts of height 1, in one of 2 parts of height 2, at the root",
    );
    check(
        &format!("(slurm:{file}*tree:2:2)[n[1-2]-ib,gpu[01-02]]"),
        "in one PE, in one of 8 parts of height 1 inside nodes, in one of 4 nodes, in one of 3 parts of height 1, \
         in one of 2 parts of height 2, at the root",
    );
}

#[test]
fn hosts_and_switches_are_shown_by_name() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/model/tests/data/topology.conf");
    let check = |spec: String, pe: u32, name: &str, link: &str| {
        let machine = parse(&spec).expect("a cluster");
        let names = Names::of(&*machine);
        let links: Vec<String> = (0..machine.links()).map(|id| names.link(&machine.link(id).name)).collect();
        assert_eq!(names.pe(pe), name, "{spec}");
        assert!(links.iter().any(|known| known == link), "{spec}: {links:?}");
    };
    let first = parse(&format!("slurm:{file}")).expect("a cluster");
    let host = first.host(1).expect("a name");
    let mut route = Vec::new();
    first.route(1, 0, &mut route);
    let up = first.link(route[0]).name;
    let switch = up.split(" -> ").last().expect("a switch").to_string();
    check(format!("slurm:{file}"), 1, host, &format!("{host} -> {switch}"));
    check(format!("slurm:{file}*tree:2:2"), 6, &format!("{host} core 2"), &format!("{host} -> {switch}"));
    check(format!("(slurm:{file}*tree:2:2)[6]"), 0, host, &format!("{host} -> {switch}"));
    check("mesh:2x2".into(), 1, "1", "1 -> 0");
}

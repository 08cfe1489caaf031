//! Properties of all machines, and errors of specs.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::graph::Graph;
use crate::testing::{at_full_size, some_of};

/// Checks the properties of a machine for all pairs of PEs; routes start and end at the PEs.
pub(super) fn check(machine: &dyn Topology) {
    check_between(machine, |a, b| Some((a.to_string(), b.to_string())));
}

/// Checks the properties of a machine for all pairs of PEs; `ends` gives the names of the ends of a route, if known.
pub(super) fn check_between(machine: &dyn Topology, ends: impl Fn(usize, usize) -> Option<(String, String)>) {
    let (spec, pes) = (machine.spec(), machine.pes());
    let again = parse(&spec).expect("the spec of a machine is valid");
    assert_eq!((again.spec(), again.pes(), again.links()), (spec.clone(), pes, machine.links()));
    let links: Vec<Link> = (0..machine.links()).map(|id| machine.link(id)).collect();
    let names: std::collections::BTreeSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
    assert_eq!(names.len(), links.len(), "{spec}: names of links are unique");
    let (mut row, mut route) = (vec![u32::MAX; pes], Vec::new());
    let (some, mut to_some) =
        ((0..pes as u32).rev().step_by(2).collect::<Vec<_>>(), vec![0; pes.div_ceil(2)]);
    let mut diameter = 0;
    let (mut loads, mut hop_bytes) = (vec![0u64; links.len()], 0u64);
    for a in 0..pes {
        machine.distances_from(a, &mut row);
        machine.distances_to(a, &some, &mut to_some);
        for (&b, &distance) in some.iter().zip(&to_some) {
            assert_eq!(distance, row[b as usize], "{spec}: {a} to {b} among some");
        }
        diameter = row.iter().copied().fold(diameter, u32::max);
        for (b, &in_row) in row.iter().enumerate() {
            let distance = machine.distance(a, b);
            assert_eq!(in_row, distance, "{spec}: the row of {a} at {b}");
            assert_eq!(machine.distance(b, a), distance, "{spec}: {a} and {b}");
            assert_eq!(distance == 0, a == b, "{spec}: {a} and {b}");
            route.clear();
            machine.route(a, b, &mut route);
            let (mut at, end) = ends(a, b).unzip();
            for &id in &route {
                let (from, to) = links[id].name.split_once(" -> ").expect("a link joins two ends");
                assert_eq!(from, at.as_deref().unwrap_or(from), "{spec}: the route {a} to {b} is connected");
                at = Some(to.to_string());
            }
            assert!(end.is_none() || at == end, "{spec}: the route {a} to {b} arrives");
            assert_eq!(walk(machine, a, b, |_, _| 0), route, "{spec}: {a} to {b}, first choices");
            // An arbitrary, but fixed mixture of choices.
            let path = walk(machine, a, b, |step, choices| (a * 7 + b * 3 + step * step) % choices);
            let names: Vec<_> = path.iter().filter_map(|&id| links[id].name.split_once(" -> ")).collect();
            assert!(
                names.windows(2).all(|pair| pair[0].1 == pair[1].0),
                "{spec}: any path {a} to {b} is connected: {names:?}"
            );
            assert_eq!(names.last().map(|name| name.1.to_string()).or(at.clone()), at, "{spec}: {a} to {b}");
            let length: u32 = path.iter().map(|&id| links[id].length).sum();
            assert_eq!(length, distance, "{spec}: any path {a} to {b} is as long as the route");
            let bytes = (3 * a + b) as u64;
            hop_bytes += bytes * u64::from(distance);
            route.iter().for_each(|&id| loads[id] += bytes);
        }
    }
    // For an allocation (with `[` in the spec), the diameter is that of the whole machine.
    assert!(machine.diameter() == diameter || spec.contains('[') && machine.diameter() > diameter, "{spec}");
    if let Some(tree) = machine.hierarchy() {
        let mut leaves = tree.leaves().to_vec();
        leaves.sort_unstable();
        assert!(leaves.into_iter().eq(0..pes as u32), "{spec}: every PE is a leaf");
        assert_eq!(tree.nodes(tree.depth()).len(), pes, "{spec}: every leaf is a node");
    }
    let carried: u64 = loads.iter().zip(&links).map(|(load, link)| load * u64::from(link.length)).sum();
    assert_eq!(carried, hop_bytes, "{spec}: the sum of loads times lengths is hop-bytes");
}

/// The links of a path from `a` to `b`, on which `choose(step, choices)` selects each link.
fn walk(machine: &dyn Topology, a: usize, b: usize, choose: impl Fn(usize, usize) -> usize) -> Vec<usize> {
    let (mut path, mut choices) = (Vec::new(), Vec::new());
    loop {
        choices.clear();
        machine.onward(a, b, path.last().copied(), &mut choices);
        if choices.is_empty() {
            return path;
        }
        assert!(path.len() <= machine.links(), "{}: a path from {a} to {b} does not end", machine.spec());
        path.push(choices[choose(path.len(), choices.len())]);
    }
}

/// Distances from PE 0 by breadth-first search over the links.
pub(super) fn search(machine: &dyn Topology) -> Vec<u32> {
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for id in 0..machine.links() {
        let name = machine.link(id).name;
        let (from, to) = name.split_once(" -> ").expect("a link joins two ends");
        out.entry(from.into()).or_default().push(to.into());
    }
    let mut found = BTreeMap::from([("0".to_string(), 0u32)]);
    let mut queue = VecDeque::from(["0".to_string()]);
    while let Some(at) = queue.pop_front() {
        let next = found[&at] + 1;
        for to in out.get(&at).into_iter().flatten() {
            if !found.contains_key(to) {
                found.insert(to.clone(), next);
                queue.push_back(to.clone());
            }
        }
    }
    (0..machine.pes()).map(|pe| found[&pe.to_string()]).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(some_of(256)))]

    #[test]
    fn grids_have_the_properties_of_machines(sizes in prop::collection::vec((1..6usize, any::<bool>()), 1..4)) {
        let grid = Grid::new(&sizes).expect("small sizes");
        check(&grid);
        prop_assert_eq!(row(&grid, 0), search(&grid), "{}", grid.spec());
    }

    #[test]
    fn trees_have_the_properties_of_machines(levels in prop::collection::vec((1..5usize, 0..7u32), 1..4)) {
        let mut distance = 1 + levels.iter().map(|level| level.1).sum::<u32>();
        let levels: Vec<(usize, u32)> = levels
            .into_iter()
            .map(|(arity, step)| {
                let level = (arity, distance);
                distance -= step;
                level
            })
            .collect();
        check(&Tree::new(&levels).expect("small sizes"));
    }

    #[test]
    fn hypercubes_have_the_properties_of_machines(dimensions in 0..6usize) {
        let cube = Hypercube::new(dimensions).expect("few dimensions");
        check(&cube);
        prop_assert_eq!(row(&cube, 0), search(&cube));
    }

    #[test]
    fn fat_trees_have_the_properties_of_machines(
        levels in prop::collection::vec((1..4usize, 1..9u32, 1..4usize), 1..4),
    ) {
        let levels: Vec<_> =
            levels.iter().map(|&(arity, tenth, parents)| (arity, f64::from(tenth) * 1e8, parents)).collect();
        let tree = FatTree::new(&levels).expect("small sizes");
        check(&tree);
        prop_assert_eq!(row(&tree, 0), search(&tree), "{}", tree.spec());
    }

    #[test]
    fn dragonflies_have_the_properties_of_machines(
        groups in 1..7usize, routers in 1..5usize, hosts in 1..4usize, cables in 1..5usize,
    ) {
        let machine = Dragonfly::new(groups, routers, hosts, cables.min(routers)).expect("small sizes");
        check(&machine);
        // Minimal routes have one link between groups; other paths may be shorter.
        for (distance, shortest) in row(&machine, 0).into_iter().zip(search(&machine)) {
            prop_assert!(shortest <= distance && distance <= 5, "{}", machine.spec());
        }
    }

    #[test]
    fn machine_graphs_have_the_properties_of_machines(
        pes in 1..20usize,
        links in prop::collection::vec((0..20u32, 0..20u32, 1..6u64), 0..40),
        tree in prop::collection::vec((0..20usize, 1..6u64), 20),
    ) {
        // Every vertex is linked to a lower vertex, so the graph is connected.
        let lower = tree.iter().enumerate().take(pes).skip(1);
        let joins = lower.map(|(v, &(below, weight))| ((below % v) as u32, v as u32, weight));
        let inside = links.into_iter().filter(|&(a, b, _)| a.max(b) < pes as u32);
        let weighted = Graph::new(pes, joins.chain(inside));
        let hops = Graph::new(pes, weighted.pairs().map(|(a, b, _)| (a, b, 7)));
        let folder = tempfile::tempdir().expect("a folder");
        for (name, graph) in [("weighted.graph", weighted), ("hops.graph", hops)] {
            let machine = machine_of(&folder.path().join(name), graph);
            check(&*machine);
            let all_pairs = floyd_warshall(&*machine);
            for a in 0..pes {
                prop_assert_eq!(row(&*machine, a), &all_pairs[a * pes..][..pes]);
            }
            if name == "hops.graph" {
                prop_assert_eq!(row(&*machine, 0), search(&*machine));
            }
        }
    }

    #[test]
    fn products_have_the_properties_of_machines(
        network in prop::sample::select(small()), node in prop::sample::select(small()),
    ) {
        let machine = parse(&format!("{network}*{node}")).expect("a product");
        let cores = parse(&node).expect("a machine").pes();
        check_between(&*machine, |a, b| match (a / cores, b / cores) {
            (here, there) if here != there && !network.contains('*') => {
                Some((format!("node {here}"), format!("node {there}")))
            }
            (here, there) if here == there && !node.contains('*') => Some((a.to_string(), b.to_string())),
            _ => None,
        });
    }

    #[test]
    fn allocations_have_the_properties_of_machines(
        machine in prop::sample::select(small()), count in 1..9usize, seed in 0..99u64,
    ) {
        let whole = parse(&machine).expect("a machine");
        let spec = format!("{}[random:{},seed={seed}]", machine, count.min(whole.pes()));
        let mine = parse(&spec).expect("an allocation");
        prop_assert_eq!(mine.spec(), spec);
        let name_of = |pe: usize| pe.to_string();
        check_between(&*mine, |a, b| (!machine.contains('*')).then(|| (name_of(a), name_of(b))));
    }

    #[test]
    fn no_spec_panics(spec in "(torus|mesh|flat|tree|t)?:?[0-9mx:/]{0,40}") {
        let _ = parse(&spec);
    }

    #[test]
    fn no_spec_of_any_machine_panics(
        kind in r"\(?(hypercube|fattree|dragonfly|graph|matrix|tree|flat|mesh|job)?",
        sizes in r":?(2x2:cyclic:|2x2:|groups=|routers=|hosts=|links=|ring:|random:n=)?[0-9,:/e.-]{0,5}\)?",
        part in r"(\[|\]|\*|\()?(flat:3|random:|@|hypercube)?[0-9,=-]{0,6}\]?",
    ) {
        let spec = format!("{kind}{sizes}{part}");
        let _ = parse(&spec);
    }
}

#[test]
#[ignore = "slow"]
fn machines_have_their_properties_in_many_cases() {
    at_full_size(&[
        grids_have_the_properties_of_machines,
        trees_have_the_properties_of_machines,
        hypercubes_have_the_properties_of_machines,
        fat_trees_have_the_properties_of_machines,
        dragonflies_have_the_properties_of_machines,
        machine_graphs_have_the_properties_of_machines,
        products_have_the_properties_of_machines,
        allocations_have_the_properties_of_machines,
        no_spec_panics,
        no_spec_of_any_machine_panics,
    ]);
}

/// Small machines of all kinds, including nested ones.
const SMALL: &[&str] = &[
    "flat:3",
    "torus:3x4",
    "mesh:2x1x3",
    "hypercube:3",
    "tree:2:3/10:3",
    "fattree:2:3/2e9:1e9/2:1",
    "dragonfly:groups=3,routers=2,hosts=2",
    "dragonfly+:groups=3,leaves=2,spines=2,hosts=1",
    "hyperx:3x2,hosts=2",
    "rails:pods=2,nodes=2,gpus=2",
    "mesh:3x2/1e9:3e9",
    "hosts:(n[1-3])",
    "graph:kneighbor:7,4",
    "torus:4x2[5,0-2]",
    "mesh:11x19[208,0,7,100]",
    "(mesh:3*flat:2)[4,1,0]",
    "(mesh:3*flat:2)[4,1,0][2,0]",
    "job:2x2:mesh:3",
    "job:2x1:cyclic:(torus:4x2[5,0-2])",
    "flat:1",
];

/// [`SMALL`], and a few PEs of the machine of every spec that the registry shows and that needs no file.
fn small() -> Vec<String> {
    let shown = ALL.iter().flat_map(|kind| kind.form.split(", ")).filter_map(|spec| parse(spec).ok());
    let few = shown.map(|machine| {
        let few = format!("({})[random:{},seed=1]", machine.spec(), machine.pes().min(9));
        parse(&few).expect("an allocation").spec()
    });
    SMALL.iter().map(|spec| spec.to_string()).chain(few).collect()
}

#[test]
fn every_kind_that_needs_no_file_shows_a_machine_that_tests_can_take() {
    let needs_file = |form: &str| form.contains("FILE") || form.contains(".conf");
    for kind in ALL.iter().filter(|kind| !needs_file(kind.form) && kind.form != "flat:N") {
        let shown: Vec<_> = kind.form.split(", ").filter_map(|spec| parse(spec).ok()).collect();
        // Tests of strategies need 64 PEs.
        assert!(shown.iter().any(|machine| machine.pes() >= 64), "{} shows {}", kind.name, kind.form);
    }
}

/// The names of the links of a route.
pub(super) fn route(spec: &str, a: usize, b: usize) -> String {
    let (machine, mut route) = (parse(spec).expect("a machine"), Vec::new());
    machine.route(a, b, &mut route);
    route.into_iter().map(|id| machine.link(id).name).collect::<Vec<_>>().join(", ")
}

/// The distances from a PE.
pub(super) fn row(machine: &dyn Topology, a: usize) -> Vec<u32> {
    let mut row = vec![u32::MAX; machine.pes()];
    machine.distances_from(a, &mut row);
    row
}

/// Writes a graph to a file and reads it as a machine.
fn machine_of(path: &std::path::Path, graph: Graph) -> Arc<dyn Topology> {
    let mut text = format!("{} {} 1\n", graph.vertices(), graph.edges());
    for v in 0..graph.vertices() {
        let words: Vec<String> =
            graph.neighbors(v).map(|(u, weight)| format!("{} {weight}", u + 1)).collect();
        text += &format!("{}\n", words.join(" "));
    }
    std::fs::write(path, text).expect("a file");
    parse(&format!("graph:{}", path.display())).expect("a machine")
}

/// The distances of all pairs by link lengths (R. W. Floyd, 1962), as concatenated rows.
fn floyd_warshall(machine: &dyn Topology) -> Vec<u32> {
    let pes = machine.pes();
    let mut distances: Vec<u32> = vec![u32::MAX / 2; pes * pes];
    (0..pes).for_each(|pe| distances[pe * pes + pe] = 0);
    for link in (0..machine.links()).map(|id| machine.link(id)) {
        let ends: Vec<usize> = link.name.split(" -> ").map(|end| end.parse().expect("a PE")).collect();
        distances[ends[0] * pes + ends[1]] = link.length;
    }
    for via in 0..pes {
        for a in 0..pes {
            for b in 0..pes {
                let detour = distances[a * pes + via] + distances[via * pes + b];
                distances[a * pes + b] = distances[a * pes + b].min(detour);
            }
        }
    }
    distances
}

#[test]
fn flat_machines_have_the_properties_of_machines() {
    for pes in [1, 2, 5] {
        check(&Flat::new(pes).expect("a small size"));
    }
}

#[test]
fn a_tree_without_distances_counts_links() {
    let tree = parse("tree:2:3:2").expect("a tree");
    check(&*tree);
    assert_eq!(tree.spec(), "tree:2:3:2/6:4:2");
    assert_eq!(row(&*tree, 0), search(&*tree));
}

#[test]
fn routes_correct_dimension_0_first_and_prefer_the_positive_direction() {
    assert_eq!(route("torus:4x4", 0, 10), "0 -> 1, 1 -> 2, 2 -> 6, 6 -> 10");
    assert_eq!(route("torus:4x4", 10, 0), "10 -> 11, 11 -> 8, 8 -> 12, 12 -> 0");
    assert_eq!(route("torus:5x5", 0, 23), "0 -> 4, 4 -> 3, 3 -> 23");
    assert_eq!(route("torus:2x4m", 1, 6), "1 -> 0, 0 -> 2, 2 -> 4, 4 -> 6");
    assert_eq!(route("mesh:4", 3, 1), "3 -> 2, 2 -> 1");
    assert_eq!(
        route("tree:2:2/10:1", 0, 3),
        "0 -> switch 1.0, switch 1.0 -> switch 2.0, switch 2.0 -> switch 1.1, switch 1.1 -> 3"
    );
    assert_eq!(route("hypercube:3", 1, 6), "1 -> 0, 0 -> 2, 2 -> 6");
}

#[test]
fn the_first_dimension_varies_fastest() {
    let grid = Grid::parse("3x4x5", true).expect("a grid");
    assert_eq!(grid.coordinates(2 + 3 * (3 + 4 * 4)).collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(grid.distance(0, 2 + 3 * (3 + 4 * 4)), 3);
}

#[track_caller]
fn check_refused(spec: &str, expected: &str) {
    let error = parse(spec).err().expect(spec).to_string();
    assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
}

#[test]
fn errors_describe_invalid_specs() {
    for (spec, expected) in [
        ("tours:8x8", "there is no machine `tours` (did you mean `torus`?); known are flat:N, torus:8x8x8"),
        ("8x8", "there is no machine `8x8`"),
        ("torus:", "expected sizes such as 8x8x4m (m: does not wrap), found ``"),
        ("torus:8x8x", "found `8x8x`"),
        ("mesh:8y8", "found `8y8`"),
        ("torus:8x0", "a size is at least 1"),
        ("torus:4x4/1e9", "there are 2 dimensions, but 1 bandwidths; give one for each dimension"),
        ("torus:4x4/1e9:x", "expected a bandwidth per dimension such as 1e9:2e9:3e9, found `1e9:x`"),
        ("mesh:4/0", "a bandwidth is a positive number of bytes per second, found 0"),
        ("switches:", "expected the name of a file with the switch of every host"),
        ("nvidia-smi:none", "cannot read the GPUs `none`"),
        ("degraded:none", "cannot read the slow links `none`"),
        ("flat:0", "a size is at least 1"),
        ("flat:many", "expected a number of PEs, found `many`"),
        ("torus:100000x100000x100000", "sizes multiply to at most 16777216"),
        ("torus:99999999999999999999999", "expected sizes"),
        ("tree:65536:65536/2:1", "sizes multiply to at most 16777216"),
        ("tree:4:4/10", "there are 2 arities, but 1 distances"),
        ("tree:4:4/1:10", "do not grow towards the leaves; found 1 above 10"),
        ("tree:4:4/1:0", "distances are at least 1"),
        ("tree:4:/1", "expected arities and distances such as 16:8:4/100:10:1, found `4:/1`"),
        ("hypercube:x", "expected a number of dimensions, found `x`"),
        ("hypercube:25", "a hypercube has at most 24 dimensions, this one has 25"),
        ("fattree:4:x", "expected arities and bandwidths such as 4:8:16/20e9:10e9:10e9, found `4:x`"),
        ("fattree:4:4/1e9", "there are 2 arities, but 1 bandwidths; give one for each level"),
        ("fattree:4:4//1:1:1", "there are 2 arities, but 3 numbers of parents; give one for each level"),
        ("fattree:4:4/1e9:-1", "a bandwidth is a positive number of bytes per second, found -1"),
        ("fattree:4:4//0:1", "a number of parents is at least 1"),
        ("fattree:4:4//18446744073709551615:2", "the machine has more than 1073741824 links"),
        ("dragonfly:9", "expected key=value, found `9`"),
        ("dragonfly:groups=9,hosts=2", "`routers=` must be given"),
        (
            "dragonfly:group=9",
            "dragonfly has no parameter `group` (did you mean `groups`?); known are groups, routers, hosts, links",
        ),
        ("dragonfly:groups=9,groups=9", "`groups` is given twice"),
        ("dragonfly:groups=two", "dragonfly:groups=two is not understood: expected a whole number"),
        (
            "dragonfly:groups=9,routers=4,hosts=2,links=5",
            "between two groups of 4 routers there are 1 to 4 links, found 5",
        ),
        ("dragonfly:groups=16777216,routers=1,hosts=1", "the machine has more than 1073741824 links"),
        ("graph:", "expected a file whose name ends in .graph, "),
        ("graph:machine.json", "or a generated graph such as kneighbor:64,4; found `machine.json`"),
        ("graph:none.graph", "cannot read the task graph `none.graph`"),
        ("graph:ring:20000", "a machine graph has 1 to 16384 vertices, this one has 20000"),
        ("matrix:", "expected the name of a file with a line of distances per PE"),
        ("matrix:none", "cannot read the distances `none`"),
        ("topograph:", "expected the name of a JSON file with instances"),
        ("topograph:none.json", "cannot read the instances `none.json`"),
        ("scotch:", "expected the name of a target architecture file"),
        (
            "job",
            "no job is running here; run under mpirun with --transport mpi, or write the processes per node",
        ),
        ("job:torus:4x4", "no job is running here"),
        (
            "job:4x8",
            "expected processes per node, PEs per process and a network such as 4x8:flat:16, found `4x8`",
        ),
        ("job:4:8:flat:2", "found `4:8:flat:2`"),
        ("job:4x8:cyclic:", "a machine is missing next to `*` or `[`, or after `job:..:`"),
        ("job:4x8:tree:0", "a size is at least 1 (in `tree:0`)"),
        ("job:0x8:flat:2", "a size is at least 1"),
        ("job:4096x4096:flat:2", "sizes multiply to at most 16777216"),
        ("hwloc:none.xml", "cannot read the machine `none.xml`"),
        ("hwloc:racks:2", "expected a synthetic description such as pack:2 core:4 pu:2, or a file FILE.xml"),
    ] {
        check_refused(spec, expected);
    }
    let deep = format!("mesh:{}", vec!["1"; 33].join("x"));
    check_refused(&deep, "1 to 32 dimensions");
}

#[test]
fn errors_describe_invalid_products_and_allocations() {
    for (spec, expected) in [
        ("torus:4*", "a machine is missing next to `*` or `[`"),
        ("[0]", "a machine is missing next to `*` or `[`"),
        ("torus:4*tree:0", "a size is at least 1 (in `tree:0`)"),
        ("torus:4096x4096*flat:2", "sizes multiply to at most 16777216"),
        ("tree:2:2/3000000000:1*flat:2", "a hop between nodes has a length of 1 + 1"),
        ("torus:4x4[", "there is a `[` that is not closed"),
        ("torus:4x4]", "there is a `]` without a matching `[`"),
        ("(torus:4[0)]", "there is a `)` without a matching `(`"),
        (
            "torus:4[]",
            "expected nodes such as 0-63,128 or @FILE or random:48,seed=1 between the brackets, found ``",
        ),
        ("torus:4[0-4]", "there is no node 4; torus:4 has nodes 0 to 3"),
        ("torus:4[3-1]", "the range 3-1 is empty; write the lower node first"),
        ("torus:4[1,2,1]", "node 1 is named twice; name each node once"),
        ("torus:4[0-3,0-3]", "the machine has 4 nodes, but more are named; name each once"),
        ("torus:4[0]x", "expected sizes such as 8x8x4m"),
        ("torus:4[random:5]", "the machine has 4 nodes, but 5 are requested"),
        (
            "torus:4[random:x]",
            "expected a number of nodes and a seed such as random:48,seed=1, found `random:x`",
        ),
        ("torus:4[random:2,sed=1]", "random has no parameter `sed` (did you mean `seed`?)"),
        ("torus:4[random:0]", "the allocation has no node; name at least one"),
        ("torus:4[@none]", "cannot read the nodes `none`"),
        ("tours:4[0]", "there is no machine `tours` (did you mean `torus`?) (in `tours:4`); known are"),
    ] {
        check_refused(spec, expected);
    }
    let nested = format!("{}flat:1{}", "(".repeat(9999), ")".repeat(9999));
    check_refused(&nested, "nested at most 16 levels deep");
    check_refused(&"job:1x1:".repeat(9999), "nested at most 16 levels deep");
}

//! The arc-flow program compared with trees (forced routes), path enumeration, cuts and reference results.

use std::collections::BTreeSet;

use proptest::prelude::*;

use equipoise_model::database::{Edge, End};
use equipoise_model::topology::{self, Platform};

use super::*;
use crate::cost::swaps::SwapCost as _;
use crate::cost::{cuts, mcf};
use crate::testing::{self, reference};

/// The best routing, with or without removing trees first.
fn solve_of(database: &Database, machine: &dyn Topology, placement: &[u32], removes_trees: bool) -> Optimal {
    let router = Router { removes_trees, ..Router::new(machine, Ways::Any).expect("a small machine") };
    let commodities = Commodities::of(database);
    router.solve(&commodities, &commodities.places(placement)).expect("a small machine")
}

/// One object per PE, with these edges.
fn tasks(pes: usize, edges: &[(usize, usize, u64)]) -> Database {
    let objects: Vec<(f64, u32)> = (0..pes).map(|task| (1.0, task as u32)).collect();
    let mut database = testing::database(pes, &objects);
    for &(from, to, bytes) in edges {
        let [from, to] = [from, to].map(|task| End::Object((task % pes) as u32));
        database.edges.push(Edge { from, to, messages: 1, bytes });
    }
    database
}

fn edges() -> impl Strategy<Value = Vec<(usize, usize, u64)>> {
    prop::collection::vec((0..40usize, 0..40usize, 0..100_000u64), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn on_trees_the_optimum_is_the_cost_of_the_routes(
        machine in prop::sample::select(&[
            "tree:3:2:2", "fattree:2:3/2e9:1e9", "platform:litvinov-tree", "platform:litvinov-cluster", "mesh:6", "flat:7",
        ][..]),
        edges in edges(),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), &edges);
        let placement = database.placement();
        let fixed = mcf::cost(&database, &*machine, &placement);
        for removes_trees in [true, false] {
            let optimal = solve_of(&database, &*machine, &placement, removes_trees);
            prop_assert!((optimal.seconds - fixed).abs() <= 1e-9 * fixed, "{removes_trees}: {optimal:?} {fixed}");
            prop_assert!(optimal.bound_seconds >= fixed * (1.0 - 1e-6), "{removes_trees}: {optimal:?} {fixed}");
        }
        let bound = cuts::bound(&database, &*machine, &placement).expect("a small machine");
        prop_assert!((bound - fixed).abs() <= 1e-9 * fixed, "{bound} {fixed}");
    }

    #[test]
    fn the_optimum_is_between_the_cuts_and_the_routes_and_its_bound_is_tight(
        machine in prop::sample::select(&[
            "torus:4x3", "mesh:3x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2", "hypercube:3",
        ][..]),
        edges in edges(),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), &edges);
        let placement = database.placement();
        let fixed = mcf::cost(&database, &*machine, &placement);
        let bound = cuts::bound(&database, &*machine, &placement).expect("a small machine");
        let of_any = cuts::bound_of_any(&database, &*machine).expect("a small machine");
        prop_assert!(of_any <= bound * (1.0 + 1e-9), "{of_any} {bound}");
        for removes_trees in [true, false] {
            let optimal = solve_of(&database, &*machine, &placement, removes_trees);
            let Optimal { seconds, bound_seconds, ref shares, ref link_bytes } = optimal;
            prop_assert!(seconds <= fixed, "{seconds} {fixed}");
            prop_assert!(bound <= seconds * (1.0 + 1e-9), "{bound} {seconds}");
            prop_assert!(bound_seconds <= seconds && seconds <= bound_seconds * (1.0 + 1e-6), "{seconds} {bound_seconds}");
            let busiest = (0..machine.links()).map(|link| link_bytes[link] / machine.link(link).bandwidth);
            prop_assert!((busiest.fold(0.0, f64::max) - seconds).abs() <= 1e-12 * seconds);
            let sum: f64 = shares.iter().sum();
            prop_assert!(seconds == 0.0 || (sum - 1.0).abs() < 1e-9, "{sum}");
        }
    }

    #[test]
    fn the_optimum_is_the_best_over_all_simple_paths(
        machine in prop::sample::select(&["torus:5", "mesh:3x2", "hypercube:3", "torus:4x2"][..]),
        edges in prop::collection::vec((0..8usize, 0..8usize, 1..1000u64), 1..8),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), &edges);
        let placement = database.placement();
        let optimal = solve(&database, &*machine, &placement, Ways::Any).expect("a small machine");
        let expected = by_paths(&database, &*machine, &placement, |_| true);
        prop_assert!((optimal.seconds - expected).abs() <= 1e-6 * expected, "{} {expected}", optimal.seconds);
        let shortest = solve(&database, &*machine, &placement, Ways::Shortest).expect("a small machine");
        let is_short = |[from, to, links]: [usize; 3]| {
            let pe = |task: usize| placement[task] as usize;
            links == machine.distance(pe(from), pe(to)) as usize
        };
        let expected = by_paths(&database, &*machine, &placement, is_short);
        prop_assert!((shortest.seconds - expected).abs() <= 1e-6 * expected, "{} {expected}", shortest.seconds);
        prop_assert!(shortest.bound_seconds <= shortest.seconds * (1.0 + 1e-9));
    }
}

/// Equation 7 over all simple paths accepted by `may_be`, called with [sending task, receiving task, links of the path].
/// Independent of the tested code except for the machine: solves the dual with a simplex method. The dual maximises the
/// bytes of all demands times the price y of their cheapest paths, over link prices z with sum of z times bandwidth = 1.
fn by_paths(
    database: &Database,
    machine: &dyn Topology,
    placement: &[u32],
    may_be: impl Fn([usize; 3]) -> bool,
) -> f64 {
    let wiring = Wiring::of(machine).expect("a small machine");
    let commodities = Commodities::of(database);
    let demands: Vec<(usize, usize, u64)> = commodities.sent().collect();
    let links = machine.links();
    // Variables: y, then z. Rows: one for the bandwidths, then one for each path.
    let bandwidths = (0..links).map(|link| machine.link(link).bandwidth / 1e9);
    let mut rows = vec![vec![0.0; demands.len()].into_iter().chain(bandwidths).collect::<Vec<f64>>()];
    for (number, &(from, to, _)) in demands.iter().enumerate() {
        let tasks = [from, to];
        let [from, to] = tasks.map(|task| wiring.vertex_of[placement[task] as usize]);
        let mut stack = vec![(vec![from], Vec::<usize>::new())];
        while let Some((met, crossed)) = stack.pop() {
            let at = met[met.len() - 1];
            if at == to && !may_be([tasks[0], tasks[1], crossed.len()]) {
                continue;
            }
            if at == to {
                let mut row = vec![0.0; demands.len() + links];
                row[number] = 1.0;
                crossed.iter().for_each(|link| row[demands.len() + link] = -1.0);
                rows.push(row);
                continue;
            }
            for (link, ends) in wiring.ends.iter().enumerate() {
                if ends[0] == at && !met.contains(&ends[1]) {
                    stack.push(([&met[..], &[ends[1]]].concat(), [&crossed[..], &[link]].concat()));
                }
            }
        }
    }
    let gains = demands.iter().map(|demand| demand.2 as f64 / 1e9).chain((0..links).map(|_| 0.0));
    let right = (0..rows.len()).map(|row| if row == 0 { 1.0 } else { 0.0 }).collect();
    largest(rows, right, gains.collect())
}

/// The largest gain over nonnegative variables such that no row exceeds its right-hand side, which is nonnegative, too
/// (the simplex method with the rule of R. G. Bland, 1977, which guarantees termination).
fn largest(mut rows: Vec<Vec<f64>>, mut right: Vec<f64>, mut gains: Vec<f64>) -> f64 {
    let (variables, count) = (gains.len(), rows.len());
    for (number, row) in rows.iter_mut().enumerate() {
        row.extend((0..count).map(|slack| if slack == number { 1.0 } else { 0.0 }));
    }
    gains.resize(variables + count, 0.0);
    let scale = gains.iter().copied().fold(0.0, f64::max);
    let mut basis: Vec<usize> = (variables..variables + count).collect();
    let mut sum = 0.0;
    while let Some(entering) = gains.iter().position(|&gain| gain > 1e-11 * scale) {
        let may_leave = (0..count).filter(|&row| rows[row][entering] > 1e-9);
        let leaving = may_leave.min_by(|&a, &b| {
            let [first, second] = [a, b].map(|row| right[row] / rows[row][entering]);
            first.total_cmp(&second).then(basis[a].cmp(&basis[b]))
        });
        let leaving = leaving.expect("it is bounded");
        basis[leaving] = entering;
        let pivot = rows[leaving][entering];
        let (row, share) =
            (rows[leaving].iter().map(|number| number / pivot).collect::<Vec<_>>(), right[leaving] / pivot);
        for (number, other) in rows.iter_mut().enumerate().filter(|(number, _)| *number != leaving) {
            let times = other[entering];
            right[number] = (right[number] - times * share).max(0.0);
            other.iter_mut().zip(&row).for_each(|(number, minus)| *number -= times * minus);
        }
        let times = gains[entering];
        gains.iter_mut().zip(&row).for_each(|(gain, minus)| *gain -= times * minus);
        sum += times * share;
        (rows[leaving], right[leaving]) = (row, share);
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn using_the_symmetry_of_demands_does_not_change_the_optimum(
        machine in prop::sample::select(&[
            "torus:4x3", "mesh:3x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2", "torus:2x2x2",
        ][..]),
        edges in prop::collection::vec((0..40usize, 0..40usize, 1..1000u64), 1..20),
        ways in prop::sample::select(&[Ways::Any, Ways::Shortest][..]),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let both = edges.iter().map(|&(a, b, bytes)| (a, b, 10_000_000 * bytes));
        let both: Vec<_> = both.flat_map(|(a, b, bytes)| [(a, b, bytes), (b, a, bytes)]).collect();
        let database = tasks(machine.pes(), &both);
        let placement = database.placement();
        let found = solve(&database, &*machine, &placement, ways).expect("a small machine");
        // One additional byte in one direction makes the demands asymmetric.
        let more = [&both[..], &[(edges[0].0, edges[0].0 + 1, 1)]].concat();
        let more = tasks(machine.pes(), &more);
        let expected = solve(&more, &*machine, &placement, ways).expect("a small machine");
        prop_assert!((found.seconds - expected.seconds).abs() <= 3e-6 * expected.seconds + 2e-8, "{found:?} {expected:?}");
    }
}

/// Two hosts with two paths between them; `first` and `back` are the bandwidths of the first, the second has 200 MB/s.
fn two_ways_of(first: f64, back: f64) -> Platform {
    let link =
        |src: u32, dst: u32, bw: f64| format!(r#"{{"src": {src}, "dst": {dst}, "bw": {bw}, "lat": 0}}"#);
    let cables = [(0, 2, first, back), (2, 1, 9e9, 9e9), (0, 3, 2e8, 2e8), (3, 1, 9e9, 9e9)];
    let both = |&(a, b, there, back): &(u32, u32, f64, f64)| [link(a, b, there), link(b, a, back)];
    let links: Vec<String> = cables.iter().flat_map(both).collect();
    let text = format!(
        r#"{{"hosts": 2, "vertices": 4, "links": [{}], "routes": [
            {{"src": 0, "dst": 1, "links": [0, 2]}}, {{"src": 1, "dst": 0, "links": [3, 1]}}]}}"#,
        links.join(", ")
    );
    Platform::read("two-ways", &text).expect("a platform")
}

fn two_ways(first: f64) -> Platform {
    two_ways_of(first, first)
}

/// The machine's own route of the first message takes 1000 s, the best routes 1e-5 of that: the first solution, in units
/// of 1000 s, is inexact, and the program is solved again in units of the time found.
#[test]
fn finds_optima_far_below_the_time_of_the_machines_own_routes() {
    #[rustfmt::skip]
    let links = [
        (0, 3, 1e10), (0, 6, 1e10), (0, 8, 1e8), (1, 4, 1e9), (2, 4, 1e9), (2, 6, 1e10), (3, 0, 1e10), (3, 4, 1e10),
        (3, 5, 1e8), (4, 2, 1e9), (4, 3, 3e7), (4, 5, 1e10), (4, 8, 1e8), (5, 1, 1e9), (5, 3, 1e8), (5, 6, 1e6),
        (5, 8, 1e7), (6, 0, 9e8), (6, 2, 1e10), (8, 0, 1e9), (8, 2, 1e6), (8, 4, 1e9), (8, 5, 1e6), (8, 7, 1e6),
    ];
    let at = |from: usize, to: usize| {
        links.iter().position(|link| (link.0, link.1) == (from, to)).expect("a link")
    };
    #[rustfmt::skip]
    let ways: [&[usize]; 30] = [
        &[0, 8, 5, 1], &[0, 8, 2], &[0, 3], &[0, 8, 4], &[0, 8, 5], &[1, 4, 8, 0], &[1, 4, 2], &[1, 4, 3], &[1, 4],
        &[1, 4, 5], &[2, 6, 0], &[2, 4, 5, 1], &[2, 4, 3], &[2, 4], &[2, 4, 5], &[3, 0], &[3, 5, 1], &[3, 4, 2],
        &[3, 4], &[3, 5], &[4, 8, 0], &[4, 5, 1], &[4, 2], &[4, 3], &[4, 5], &[5, 6, 0], &[5, 1], &[5, 6, 2], &[5, 3],
        &[5, 8, 4],
    ];
    let route = |way: &&[usize]| {
        let crossed: Vec<usize> = way.windows(2).map(|pair| at(pair[0], pair[1])).collect();
        format!(r#"{{"src": {}, "dst": {}, "links": {crossed:?}}}"#, way[0], way[way.len() - 1])
    };
    let link = |&(from, to, bandwidth): &(usize, usize, f64)| {
        format!(r#"{{"src": {from}, "dst": {to}, "bw": {bandwidth}, "lat": 1e-6}}"#)
    };
    let text = format!(
        r#"{{"hosts": 6, "vertices": 9, "links": [{}], "routes": [{}]}}"#,
        links.iter().map(link).collect::<Vec<_>>().join(", "),
        ways.iter().map(route).collect::<Vec<_>>().join(", ")
    );
    let machine = Platform::read("test", &text).expect("a platform");
    let found = solve_of(&tasks(3, &[(0, 1, 1_000_000_000), (1, 2, 1)]), &machine, &[0, 2, 3], true);
    assert!(found.seconds <= found.bound_seconds * (1.0 + 1e-6), "{found:?}");
    assert!(found.seconds < 1.0, "{found:?}");
}

#[test]
fn very_different_bandwidths_are_solved_exactly() {
    let (one, both) = (tasks(2, &[(0, 1, 1_200_000)]), tasks(2, &[(0, 1, 1_200_000), (1, 0, 1_200_000)]));
    for (database, first, back, slower) in
        [(&both, 1e9, 4e8, 4e8), (&both, 4e8, 1e9, 4e8), (&one, 1e9, 4e8, 1e9), (&one, 2e6, 2e6, 2e6)]
    {
        let optimal =
            solve(database, &two_ways_of(first, back), &[0, 1], Ways::Any).expect("a small machine");
        let expected = 1_200_000.0 / (slower + 2e8);
        assert!(
            (optimal.seconds / expected - 1.0).abs() < 1e-6,
            "{first} {back}: {} {expected}",
            optimal.seconds
        );
    }
}

#[test]
fn messages_are_divided_among_paths_and_shares_predict_the_savings() {
    let database = tasks(2, &[(0, 1, 1_200_000)]);
    let optimal = solve(&database, &two_ways(1e9), &[0, 1], Ways::Any).expect("a small machine");
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    near(optimal.seconds, 1_200_000.0 / 1.2e9);
    near(optimal.link_bytes[0], 1e6);
    near(optimal.link_bytes[4], 2e5);
    near(optimal.shares[0], 1e9 / 1.2e9);
    near(optimal.shares[4], 0.2e9 / 1.2e9);
    // More bandwidth on the first path shortens the time by the share of that path.
    let faster = solve(&database, &two_ways(1.0001e9), &[0, 1], Ways::Any).expect("a small machine");
    let fell = 1.0 - faster.seconds / optimal.seconds;
    assert!((fell / 1e-4 / optimal.shares[0] - 1.0).abs() < 1e-3, "{fell}");
}

#[test]
fn sending_nothing_takes_no_time_and_large_programs_are_rejected() {
    for machine in ["torus:4x4", "flat:1"] {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), &[]);
        let optimal = solve(&database, &*machine, &database.placement(), Ways::Any).expect("a small machine");
        assert_eq!((optimal.seconds, optimal.bound_seconds), (0.0, 0.0));
        assert!(optimal.shares.iter().all(|&share| share == 0.0));
    }
    let machine = topology::parse("torus:32x32").expect("a torus");
    let edges: Vec<(usize, usize, u64)> = (0..1024).map(|task| (task, task + 7, 1)).collect();
    let database = tasks(1024, &edges);
    for ways in [Ways::Any, Ways::Shortest] {
        assert_eq!(solve(&database, &*machine, &database.placement(), ways), Err(Unsolved::Variables));
    }
    let machine = topology::parse("torus:64x64x64").expect("a torus");
    let database = tasks(machine.pes(), &[]);
    let links = machine.links();
    assert_eq!(solve(&database, &*machine, &database.placement(), Ways::Any), Err(Unsolved::Links { links }));
    assert_eq!(cuts::bound(&database, &*machine, &database.placement()), Err(Unsolved::Links { links }));
    assert_eq!(cuts::bound_of_any(&database, &*machine), Err(Unsolved::Links { links }));
}

#[test]
fn reproduces_the_reference_results_on_the_tree() {
    let Some(text) = reference("simgrid/spmz_D16_tree.csv") else { return };
    let machine = topology::parse("platform:litvinov-tree").expect("a platform");
    let database =
        equipoise_model::graph::load("npb-mz:benchmark=SP,class=D,processes=16").expect("SP-MZ").remap(16);
    for line in text.lines().skip(1).take(60) {
        let fields: Vec<&str> = line.split(',').collect();
        let places: Vec<u32> = fields[8].split(' ').map(|pe| pe.parse().expect("a PE")).collect();
        let theirs: f64 = fields[5].parse().expect("a number");
        let ours = solve(&database, &*machine, &places, Ways::Any).expect("a small machine").seconds;
        assert!((ours / theirs - 1.0).abs() < 1e-9, "mapping {}: {ours} {theirs}", fields[0]);
    }
}

#[test]
fn successive_links_share_a_name_on_every_machine_except_products() {
    for (spec, expected) in [
        ("torus:4x3", true),
        ("mesh:3x3x2", true),
        ("hypercube:4", true),
        ("tree:3:2:2", true),
        ("fattree:2:3:2/4e9:2e9:1e9", true),
        ("flat:5", true),
        ("dragonfly:groups=5,routers=2,hosts=2", true),
        ("platform:litvinov-grid", true),
        ("torus:4x4[3,1,7,9]", true),
        ("torus:3x3*tree:2:2/2:1", false),
    ] {
        let machine = topology::parse(spec).expect(spec);
        let wiring = Wiring::of(&*machine).expect(spec);
        let pes = machine.pes() as u32;
        let has_all = (0..pes * pes).all(|pair| {
            let (from, to) = (pair / pes, pair % pes);
            wiring.carry(&*machine, [(from, to, 1)].into_iter()).is_ok()
        });
        assert_eq!(has_all, expected, "{spec}");
        let database = tasks(machine.pes(), &[(0, machine.pes() - 1, 1000)]);
        let solved = solve(&database, &*machine, &database.placement(), Ways::Any);
        assert_eq!(solved.is_ok(), expected, "{spec}");
        assert_eq!(solved.err(), (!expected).then_some(Unsolved::DisjointLinks), "{spec}");
        assert_eq!(cuts::bound_of_any(&database, &*machine).is_ok(), expected, "{spec}");
    }
}

/// The links that a packet from one PE to another may cross according to [`Topology::onward`].
fn offered(machine: &dyn Topology, from: usize, to: usize) -> BTreeSet<usize> {
    let (mut met, mut ahead) = (BTreeSet::new(), vec![None]);
    while let Some(crossed) = ahead.pop() {
        let mut next = Vec::new();
        machine.onward(from, to, crossed, &mut next);
        ahead.extend(next.into_iter().filter(|&link| met.insert(link)).map(Some));
    }
    met
}

#[test]
fn shortest_paths_are_those_that_onward_offers_to_packets() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("links.csv");
    // From 0 to 2 there are two paths of two links; one of them is five times as long.
    std::fs::write(&file, "0,1,1\n1,2,1\n2,3,1\n0,3,9\n").expect("a file");
    let lengths = format!("graph:{}", file.display());
    for spec in [
        "torus:4x3",
        "mesh:3x3x2",
        "hypercube:4",
        "tree:3:2:2/9:5:1",
        "fattree:2:3:2/4e9:2e9:1e9",
        "torus:6",
        &lengths,
    ] {
        let machine = topology::parse(spec).expect(spec);
        let (wiring, pes) = (Wiring::of(&*machine).expect(spec), machine.pes());
        let bandwidth: Vec<f64> = (0..machine.links()).map(|link| machine.link(link).bandwidth).collect();
        for from in 0..pes {
            for to in (0..pes).filter(|&to| to != from) {
                let sent = [(from as u32, to as u32, 1)].into_iter();
                let core =
                    Core::of((&wiring, &bandwidth), sent, Ways::Shortest, false).expect("a small machine");
                // Of the paths that lead away from the sender, those that reach the receiver.
                let (mut reached, mut links) = (BTreeSet::from([wiring.vertex_of[to]]), BTreeSet::new());
                let mut is_more = true;
                while is_more {
                    is_more = false;
                    for link in core.usable[0].iter().map(|&arc| core.arcs[arc as usize].link) {
                        let [tail, head] = wiring.ends[link];
                        if reached.contains(&head) && links.insert(link) {
                            reached.insert(tail);
                            is_more = true;
                        }
                    }
                }
                assert_eq!(links, offered(&*machine, from, to), "{spec}: {from} to {to}");
            }
        }
    }
    let machine = topology::parse(&lengths).expect("a machine");
    let database = tasks(4, &[(0, 2, 1_000_000), (0, 1, 1_000_000)]);
    let best = |ways| solve(&database, &*machine, &[0, 1, 2, 3], ways).expect("a small machine").seconds;
    let by_routes = mcf::cost(&database, &*machine, &[0, 1, 2, 3]);
    assert!((best(Ways::Shortest) / by_routes - 1.0).abs() < 1e-9, "packets have no other way");
    assert!(best(Ways::Any) < 0.51 * by_routes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn rejected_swaps_are_no_better(
        machine in prop::sample::select(&["torus:3x3", "platform:litvinov-grid", "mesh:3x3"][..]),
        edges in prop::collection::vec((0..9usize, 0..9usize, 1..1000u64), 1..12),
        ways in prop::sample::select(&[Ways::Any, Ways::Shortest][..]),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), &edges);
        let (commodities, router) = (Commodities::of(&database), Router::new(&*machine, ways).expect("small"));
        let mut places = database.placement();
        let mut swaps = OptimalSwaps::new(&router, &commodities, &places);
        for (p, q) in (0..9u32).flat_map(|p| (0..p).map(move |q| (p, q))) {
            let task = |pe: u32| places.iter().position(|&place| place == pe);
            let pair = [task(p), task(q)];
            let found = swaps.try_swap(pair, [p, q]);
            let mut then = places.clone();
            for (task, to) in pair.into_iter().zip([q, p]) {
                task.into_iter().for_each(|task| then[task] = to);
            }
            let expected = solve(&database, &*machine, &then, ways).expect("a small machine").seconds;
            let now = swaps.worth().cost;
            prop_assert!((expected < now * (1.0 - TOLERANCE)) == found.is_some(), "{expected} {now} {found:?}");
            if let Some(worth) = found {
                prop_assert_eq!(worth.cost, expected);
                swaps.keep(pair, [p, q], worth);
                places = then;
            }
        }
    }
}

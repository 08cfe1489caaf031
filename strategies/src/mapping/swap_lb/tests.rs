//! Searches beside brute force, and their order of restarts.

use proptest::prelude::*;

use super::*;
use crate::cost::mcf;
use crate::testing::assign_on;
use crate::{graph, topology};

const COSTS: [&str; 4] = ["qap:hops", "qap:bandwidth", "qap:rtt", "mcf"];

fn cost(cost: Cost, database: &Database, machine: &dyn Topology, places: &[u32]) -> f64 {
    match cost {
        Cost::Qap(metric) => qap::cost(database, machine, places, metric),
        Cost::Mcf => mcf::cost(database, machine, places),
    }
}

/// All orders of the numbers below `count`.
fn orders(count: u32) -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    for number in 0..count {
        let insert = |order: &Vec<u32>| {
            (0..=order.len()).map(|at| [&order[..at], &[number], &order[at..]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(insert).collect();
    }
    all
}

#[test]
fn many_restarts_find_what_brute_force_does() {
    let machine = topology::parse("mesh:3x2").expect("a mesh");
    let database = graph::load("random:n=6,degree=3,bytes=1000,seed=4").expect("a graph").remap(6);
    for name in COSTS {
        let of: Cost = name.parse().expect(name);
        let all = orders(6).into_iter().map(|places| cost(of, &database, &*machine, &places));
        let least = all.fold(f64::INFINITY, f64::min);
        let spec = format!("SwapLB:cost={name},restarts=50,tries=100");
        let answer = assign_on(&spec, &database, "mesh:3x2").expect("it answers");
        let found = cost(of, &database, &*machine, &answer.pe_of);
        assert!((found / least - 1.0).abs() < 1e-9, "{name}: {found} {least}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn endings_cost_what_they_say_and_every_swap_made_them_better(
        machine in prop::sample::select(&["torus:4x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2"][..]),
        graph in prop::sample::select(&["ring:9,bytes=1000", "random:n=12,degree=4,bytes=77", "mesh:3x2"][..]),
        name in prop::sample::select(&COSTS[..]),
        seed in 0..100u64,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = graph::load(graph).expect("a graph").remap(machine.pes() as u32);
        let of: Cost = name.parse().expect("a cost");
        let grouping = Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 };
        let strategy = SwapLb { cost: of, restarts: 3, tries: 60, grouping };
        let endings = strategy.endings(&database, &*machine, seed).expect("it answers");
        prop_assert_eq!(&endings, &strategy.endings(&database, &*machine, seed).expect("it answers"));
        for ending in endings {
            let mappings = ending.mappings();
            prop_assert_eq!(mappings.len(), ending.trail.len() + 1);
            let costs: Vec<f64> = mappings.iter().map(|places| cost(of, &database, &*machine, places)).collect();
            prop_assert!(costs.windows(2).all(|pair| pair[1] < pair[0]), "{costs:?}");
            let last = costs[costs.len() - 1];
            prop_assert!((ending.worth.cost - last).abs() <= 1e-9 * last, "{} {last}", ending.worth.cost);
        }
    }
}

#[test]
fn the_answer_is_the_same_on_any_number_of_threads() {
    let database = graph::load("npb-mz:benchmark=SP,class=C,processes=16").expect("SP-MZ").remap(16);
    let answer = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| assign_on("SwapLB:restarts=20,tries=50", &database, "platform:litvinov-grid"))
    };
    assert_eq!(answer(1), answer(3));
}

#[test]
fn what_it_cannot_do_is_said() {
    for (spec, expected) in [
        ("SwapLB:cost=hops", "costs are `qap:hops`, `qap:bandwidth`, `qap:rtt` or `mcf`"),
        ("SwapLB:cost=qap:miles", "costs are `qap:hops`"),
        ("SwapLB:restarts=0", "it is tried at least once"),
        ("SwapLB:tries=0", "it is tried at least once"),
        ("McfLB:norm=0", "it is tried at least once and at most 64 times"),
    ] {
        let error = crate::registry::parse(spec, &[]).expect_err(expected).to_string();
        assert!(error.contains(expected), "{spec}: {error}");
    }
    let database = graph::load("ring:9000").expect("a ring").remap(9000);
    let error = assign_on("SwapLB", &database, "flat:9000").expect_err("9000 PEs").to_string();
    assert!(error.contains("distances of at most 8192 PEs are kept, and `flat:9000` has 9000"), "{error}");
}

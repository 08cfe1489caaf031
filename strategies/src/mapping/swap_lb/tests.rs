//! Searches compared with brute force, and the order of their restarts.

use proptest::prelude::*;

use equipoise_model::{graph, topology};

use super::*;
use crate::Strategy as _;
use crate::cost::catalogue;
use crate::testing::assign_on;

/// The costs that searches can minimise in this build.
fn costs() -> Vec<&'static str> {
    catalogue::minimisable().map(|cost| cost.name).collect()
}

fn cost(cost: Cost, database: &Database, machine: &dyn Topology, places: &[u32]) -> f64 {
    cost.of(database, machine, places).expect("a small machine")
}

/// All orders of the numbers below `count`.
pub(in crate::mapping) fn orders(count: u32) -> Vec<Vec<u32>> {
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
fn many_restarts_find_the_least_cost_of_all_placements() {
    let machine = topology::parse("mesh:3x2").expect("a mesh");
    let database = graph::load("random:n=6,degree=3,bytes=1000,seed=4").expect("a graph").remap(6);
    for name in costs() {
        let of: Cost = name.parse().expect(name);
        let all = orders(6).into_iter().map(|places| cost(of, &database, &*machine, &places));
        let least = all.fold(f64::INFINITY, f64::min);
        let restarts = if matches!(of, Cost::Optimal(_)) { 8 } else { 50 };
        let spec = format!("SwapLB:cost={name},restarts={restarts},tries=100");
        let answer = assign_on(&spec, &database, "mesh:3x2").expect("an assignment");
        let found = cost(of, &database, &*machine, &answer.pe_of);
        // A linear program is solved to 1e-6.
        assert!((found / least - 1.0).abs() < 3e-6, "{name}: {found} {least}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn endings_report_their_cost_and_every_swap_decreases_it(
        machine in prop::sample::select(&["torus:4x3", "platform:litvinov-grid", "dragonfly:groups=3,routers=2,hosts=2"][..]),
        graph in prop::sample::select(&["ring:9,bytes=1000", "random:n=12,degree=4,bytes=77", "mesh:3x2"][..]),
        name in prop::sample::select(costs()),
        seed in 0..100u64,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = graph::load(graph).expect("a graph").remap(machine.pes() as u32);
        let of: Cost = name.parse().expect("a cost");
        let slow = matches!(of, Cost::Optimal(_));
        let grouping = Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 };
        let effort = Effort { restarts: 3, tries: Some(if slow { 15 } else { 60 }), start: Start::Random };
        let strategy = SwapLb { goal: Goal::Cost(of), effort, grouping };
        let endings = strategy.endings(&database, &*machine, seed).expect("an assignment");
        prop_assert_eq!(&endings, &strategy.endings(&database, &*machine, seed).expect("an assignment"));
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
fn the_assignment_does_not_depend_on_the_number_of_threads() {
    let database = graph::load("npb-mz:benchmark=SP,class=C,processes=16").expect("SP-MZ").remap(16);
    let answer = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| assign_on("SwapLB:restarts=20,tries=50", &database, "platform:litvinov-grid"))
    };
    assert_eq!(answer(1), answer(3));
}

#[test]
fn refuses_unknown_values_and_too_many_pes() {
    for (spec, expected) in [
        ("SwapLB:cost=hops", "costs are `qap:hops`, `qap:bandwidth`, `qap:rtt`, `mcf`"),
        ("SwapLB:cost=qap:miles", "costs are `qap:hops`"),
        ("SwapLB:cost=mcf:cuts", "; searches cannot minimise `mcf:cuts`"),
        ("SwapLB:restarts=0", "expected a number from 1 to 10000"),
        ("SwapLB:tries=0", "expected `auto` or a number from 1 to 10000000"),
        ("McfLB:tries=many", "expected `auto` or a number from"),
        ("McfLB:start=here", "expected `given` or `random`"),
        ("McfLB:norm=0", "expected a whole number from 1 to 64"),
    ] {
        let error = crate::registry::parse(spec, &[]).expect_err(expected).to_string();
        assert!(error.contains(expected), "{spec}: {error}");
    }
    let database = graph::load("ring:9000").expect("a ring").remap(9000);
    let error = assign_on("SwapLB", &database, "flat:9000").expect_err("9000 PEs").to_string();
    assert!(
        error.contains(
            "`flat:9000`: a table of distances has at most 8192 PEs, but the machine has 9000; use cost=mcf"
        ),
        "{error}"
    );
}

#[cfg(feature = "lp")]
#[test]
fn refuses_linear_programs_that_take_too_long() {
    let database = graph::load("random:n=256,degree=4").expect("a graph").remap(256);
    let error = assign_on("SwapLB:cost=mcf:optimal", &database, "torus:16x16").expect_err("256 PEs");
    assert!(
        error.to_string().contains("more than 65536 variables (links times senders); use cost=mcf"),
        "{error}"
    );
    let database = graph::load("random:n=64,degree=4").expect("a graph").remap(64);
    let error = assign_on("SwapLB:cost=mcf:optimal", &database, "torus:8x8").expect_err("64 PEs");
    assert!(error.to_string().contains("; give fewer restarts or tries, or use cost=mcf"), "{error}");
}

#[cfg(not(feature = "lp"))]
#[test]
fn refuses_costs_of_linear_programs_without_the_feature() {
    for name in ["mcf:optimal", "mcf:shortest"] {
        let error = crate::registry::parse(&format!("SwapLB:cost={name}"), &[]).expect_err(name).to_string();
        assert!(
            error.contains(&format!("`{name}` is not in this build; enable the feature `lp`")),
            "{error}"
        );
    }
}

#[test]
fn the_assignment_is_never_worse_than_the_present_placement() {
    let database = graph::load("mesh:4x3,bytes=100").expect("a mesh").remap(12);
    let machine = topology::parse("torus:4x3").expect("a torus");
    let given = database.placement();
    for name in ["qap:hops", "qap:rtt", "mcf"] {
        let of: Cost = name.parse().expect(name);
        // With one try, no search from a random start is as good.
        for seed in 0..10 {
            let spec = format!("SwapLB:cost={name},restarts=2,tries=1");
            let strategy = crate::registry::parse(&spec, &[]).expect("a strategy").strategy;
            let answer = strategy.assign(&database, &*machine, seed).expect("an assignment");
            let [found, before] =
                [&answer.pe_of, &given].map(|places| cost(of, &database, &*machine, places));
            assert!(found <= before, "{spec}, seed {seed}: {found} {before}");
        }
    }
    // With seed 0, a random start differs from the present placement.
    let effort = Effort { restarts: 1, tries: Some(1), start: Start::Given };
    let grouping = Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 };
    let begins = |start| {
        let strategy = SwapLb { goal: Goal::Cost(Cost::Mcf), effort: Effort { start, ..effort }, grouping };
        strategy
            .endings(&database, &*machine, 0)
            .expect("an assignment")
            .swap_remove(0)
            .mappings()
            .swap_remove(0)
    };
    assert_eq!(begins(Start::Given), given);
    assert_ne!(begins(Start::Random), given);
}

/// The least cost of all mappings with one task per PE and fixed tasks on their PEs.
fn least(of: Cost, database: &Database, machine: &dyn Topology) -> f64 {
    let stays = |places: &Vec<u32>| {
        database.objects.iter().zip(places).all(|(object, &pe)| object.migratable || object.pe == pe)
    };
    let all = orders(database.objects.len() as u32).into_iter().filter(stays);
    all.map(|places| cost(of, database, machine, &places)).fold(f64::INFINITY, f64::min)
}

/// Tasks on a machine with a PE for each; the tasks `stays` are fixed.
fn fixed(graph: &str, pes: u32, stays: &[usize]) -> Database {
    let mut database = graph::load(graph).expect("a graph").remap(pes);
    stays.iter().for_each(|&task| database.objects[task].migratable = false);
    database
}

#[test]
fn with_fixed_tasks_the_least_cost_of_all_placements_is_found() {
    for (graph, machine, stays) in [
        ("mesh:7,bytes=100", "mesh:7", &[0][..]),
        ("mesh:7,bytes=100", "mesh:7", &[3, 5]),
        ("random:n=6,degree=3,bytes=1000,seed=4", "mesh:3x2", &[2]),
        ("random:n=6,degree=2,bytes=1000,seed=1", "torus:6", &[1, 4]),
        ("random:n=6,degree=3,bytes=1000,seed=9", "tree:2:3", &[5]),
    ] {
        let machine_of = topology::parse(machine).expect(machine);
        let database = fixed(graph, machine_of.pes() as u32, stays);
        for (spec, name) in [
            ("SwapLB:restarts=40,tries=100", "qap:rtt"),
            ("SwapLB:cost=qap:hops,restarts=40,tries=100", "qap:hops"),
            ("SwapLB:cost=mcf,restarts=60,tries=100", "mcf"),
            ("McfLB:restarts=40,tries=100", "mcf"),
        ] {
            let of: Cost = name.parse().expect(name);
            let answer = assign_on(spec, &database, machine).expect("an assignment").pe_of;
            let (found, least) =
                (cost(of, &database, &*machine_of, &answer), least(of, &database, &*machine_of));
            assert!(
                (found / least - 1.0).abs() < 1e-9,
                "{spec}, {graph} on {machine}, {stays:?}: {found} {least}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn with_fixed_tasks_no_assignment_is_worse_than_the_present_placement(
        machine in prop::sample::select(&["mesh:7", "torus:4x2", "tree:2:4", "torus:3x3", "platform:litvinov-tree"][..]),
        graph in prop::sample::select(&["random:n=N,degree=2,bytes=100", "ring:N,bytes=100", "mesh:N,bytes=9"][..]),
        order in any::<u64>(),
        stays in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
        seed in 0..50u64,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let pes = machine.pes();
        let stays: Vec<usize> = stays.iter().map(|task| task.index(pes)).collect();
        let mut database = fixed(&graph.replace('N', &pes.to_string()), pes as u32, &stays);
        let mut given: Vec<u32> = (0..pes as u32).collect();
        equipoise_model::random::shuffle(&mut equipoise_model::random::generator(order, 0), &mut given);
        database.objects.iter_mut().zip(&given).for_each(|(object, &pe)| object.pe = pe);
        for (spec, name) in [
            ("SwapLB:restarts=2,tries=9", "qap:rtt"),
            ("SwapLB:cost=qap:hops,restarts=2,tries=9", "qap:hops"),
            ("SwapLB:cost=mcf,restarts=2,tries=9", "mcf"),
            ("McfLB:restarts=2,tries=9", "mcf"),
        ] {
            let of: Cost = name.parse().expect(name);
            let strategy = crate::registry::parse(spec, &[]).expect("a strategy").strategy;
            let answer = strategy.assign(&database, &*machine, seed).expect("an assignment").pe_of;
            let [found, before] = [&answer, &given].map(|places| cost(of, &database, &*machine, places));
            prop_assert!(found <= before * (1.0 + 1e-12), "{spec}: {found} {before}");
            prop_assert!(stays.iter().all(|&task| answer[task] == given[task]), "{spec}");
        }
    }
}

#[test]
fn batches_of_restarts_keep_the_best_of_all_restarts() {
    let database = graph::load("random:n=8,degree=3,bytes=1000,seed=2").expect("a graph").remap(8);
    let machine = topology::parse("torus:8").expect("a ring");
    let grouping = Grouping { by: groups::By::Greedy, equal: false, imbalance: 0.05 };
    let effort = Effort { restarts: 700, tries: Some(3), start: Start::Random };
    let strategy = SwapLb { goal: Goal::Cost(Cost::Mcf), effort, grouping };
    let all = strategy.endings(&database, &*machine, 3).expect("an assignment");
    assert_eq!(all.len(), 700);
    let answer = strategy.assign(&database, &*machine, 3).expect("an assignment");
    assert_eq!(answer.pe_of, Ending::best(all).places);
}

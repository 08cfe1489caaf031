//! Swaps compared with costs computed from scratch, and costs compared with reference results.

use proptest::prelude::*;

use equipoise_model::database::{Edge, End};
use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{graph, topology};

use super::*;
use crate::cost::qap::{self, Distances, Metric, QapSwaps};
use crate::testing::{self, reference};

/// Machines with asymmetric routes, with unequal links, and with PEs without tasks.
const MACHINES: [&str; 6] = [
    "torus:4x3",
    "mesh:3x3x2",
    "platform:litvinov-grid",
    "dragonfly:groups=3,routers=2,hosts=2",
    "fattree:2:3:2/4e9:2e9:1e9",
    "flat:9",
];

/// Tasks that exchange random volumes in one or both directions; some ends are PEs.
fn tasks(pes: usize, tasks: usize, edges: &[(usize, usize, u64)]) -> Database {
    let objects: Vec<(f64, u32)> = (0..tasks).map(|task| (1.0, task as u32)).collect();
    let mut database = testing::database(pes, &objects);
    for &(from, to, bytes) in edges {
        let end = |number: usize| match number % (tasks + 2) {
            task if task < tasks => End::Object(task as u32),
            pe => End::Pe(((pe * 7) % pes) as u32),
        };
        database.edges.push(Edge { from: end(from), to: end(to), messages: 1, bytes });
    }
    database
}

/// Tries random swaps, applies improvements, and compares every worth with `anew`, the cost of a placement.
fn check_swaps(
    swaps: &mut dyn SwapCost,
    mut places: Vec<u32>,
    pes: usize,
    seed: u64,
    anew: &dyn Fn(&[u32]) -> Worth,
) -> Result<(), TestCaseError> {
    let mut rng = generator(seed, 1);
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1e-12 + a.abs().max(b.abs()));
    swaps.restart(&places);
    for _ in 0..40 {
        let [p, q] = [below(&mut rng, pes as u64), below(&mut rng, pes as u64)].map(|pe| pe as u32);
        if p == q {
            continue;
        }
        let tasks = [p, q].map(|pe| places.iter().position(|&place| place == pe));
        let before = swaps.worth();
        let found = swaps.try_swap(tasks, [p, q]);
        let mut then = places.clone();
        tasks[0].into_iter().for_each(|task| then[task] = q);
        tasks[1].into_iter().for_each(|task| then[task] = p);
        let expected = anew(&then);
        // If both worths are equal up to rounding, either result is correct.
        let same = near(before.cost, expected.cost) && near(before.tie, expected.tie);
        prop_assert!(
            same || found.is_some() == expected.is_better(before),
            "{found:?} {expected:?} {before:?}"
        );
        match found {
            Some(worth) => {
                prop_assert!(near(worth.cost, expected.cost), "{worth:?} {expected:?}");
                prop_assert!(near(worth.tie, expected.tie), "{worth:?} {expected:?}");
                swaps.keep(tasks, [p, q], worth);
                places = then;
            }
            // Restart from a random placement, so that improvements exist again.
            None if below(&mut rng, 4) == 0 => {
                shuffle(&mut rng, &mut places);
                swaps.restart(&places);
            }
            None => (),
        }
        let (now, expected) = (swaps.worth(), anew(&places));
        prop_assert!(near(now.cost, expected.cost) && near(now.tie, expected.tie), "{now:?} {expected:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_cost_of_a_swap_is_the_cost_of_its_placement(
        machine in prop::sample::select(&MACHINES[..]),
        share in 1..=10usize,
        edges in prop::collection::vec((0..40usize, 0..40usize, 0..100_000u64), 0..60),
        seed in 0..1000u64,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let pes = machine.pes();
        let database = tasks(pes, (pes * share / 10).max(1), &edges);
        let commodities = Commodities::of(&database);
        let routes = Routes::of(&*machine);
        let mut places: Vec<u32> = (0..pes as u32).collect();
        shuffle(&mut generator(seed, 0), &mut places);
        places.truncate(database.objects.len());
        for metric in [Metric::Hops, Metric::Bandwidth, Metric::Rtt] {
            let distances = Distances::of(&routes, metric).expect("a small machine");
            let mut swaps = QapSwaps::new(&commodities, &distances, &places);
            let cost = |places: &[u32]| qap::cost(&database, &*machine, places, metric).expect("a small machine");
            let anew = |places: &[u32]| Worth { cost: cost(places), tie: 0.0 };
            check_swaps(&mut swaps, places.clone(), pes, seed, &anew)?;
        }
        let seconds_per_byte = routes.seconds_per_byte();
        for aim in [Aim::Busiest, Aim::BusiestThenPower(8), Aim::PowerThenBusiest(4)] {
            let mut swaps = McfSwaps::new(&commodities, &routes, &seconds_per_byte, aim, &places);
            let anew = |places: &[u32]| {
                let seconds = link_seconds(&database, &*machine, places);
                let busiest = seconds.iter().copied().fold(0.0, f64::max);
                let norm = |of: i32| {
                    let sum: f64 = seconds.iter().map(|t| (t / busiest.max(1e-30)).powi(of)).sum();
                    busiest * sum.powf(1.0 / f64::from(of))
                };
                match aim {
                    Aim::Busiest => Worth { cost: busiest, tie: 0.0 },
                    Aim::BusiestThenPower(of) => Worth { cost: busiest, tie: norm(of) },
                    Aim::PowerThenBusiest(of) => Worth { cost: norm(of), tie: busiest },
                }
            };
            check_swaps(&mut swaps, places.clone(), pes, seed, &anew)?;
        }
    }

    #[test]
    fn the_cost_by_hops_is_hop_bytes(
        machine in prop::sample::select(&MACHINES[..]),
        edges in prop::collection::vec((0..40usize, 0..40usize, 0..100_000u64), 0..60),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let database = tasks(machine.pes(), machine.pes(), &edges);
        let placement = database.placement();
        let hop_bytes = testing::communication(&database, &*machine, &placement).hop_bytes;
        prop_assert_eq!(qap::cost(&database, &*machine, &placement, Metric::Hops), Ok(hop_bytes as f64));
    }
}

#[test]
fn the_users_of_a_link_are_the_tasks_that_send_or_receive_over_it() {
    let machine = topology::parse("mesh:4").expect("a line");
    let mut database = testing::database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]);
    let edge = |from, to, bytes| Edge { from: End::Object(from), to: End::Object(to), messages: 1, bytes };
    database.edges = vec![edge(0, 2, 5), edge(3, 1, 9), edge(0, 1, 1)];
    let (commodities, routes) = (Commodities::of(&database), Routes::of(&*machine));
    let seconds = routes.seconds_per_byte();
    let mut swaps = McfSwaps::new(&commodities, &routes, &seconds, Aim::Busiest, &[0, 1, 2, 3]);
    let link = swaps.busiest_link();
    assert_eq!((machine.link(link).name.as_str(), swaps.loads()[link]), ("2 -> 1", 9));
    let mut users = Vec::new();
    swaps.users(link, &mut users);
    assert_eq!(users, [1, 3]);
    // After this swap the message of 3 crosses one link, and the busiest link still carries 9 bytes.
    let (tasks, pes) = ([Some(2), Some(3)], [2, 3]);
    let better = swaps.try_swap(tasks, pes);
    assert_eq!(better, None, "the busiest link still carries 9 bytes");
    let (tasks, pes) = ([Some(1), Some(2)], [1, 2]);
    let better = swaps.try_swap(tasks, pes);
    assert_eq!(better, None, "the link from 3 to 2 then carries 9 bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn users_are_updated_by_swaps(
        machine in prop::sample::select(&MACHINES[..]),
        edges in prop::collection::vec((0..40usize, 0..40usize, 0..1000u64), 1..60),
        seed in 0..1000u64,
    ) {
        let machine = topology::parse(machine).expect("a machine");
        let pes = machine.pes();
        let database = tasks(pes, pes - 1, &edges);
        let (commodities, routes) = (Commodities::of(&database), Routes::of(&*machine));
        let seconds = routes.seconds_per_byte();
        let mut places: Vec<u32> = (0..pes as u32 - 1).collect();
        let mut swaps = McfSwaps::new(&commodities, &routes, &seconds, Aim::BusiestThenPower(4), &places);
        let mut rng = generator(seed, 2);
        let (mut users, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            let [p, q] = [below(&mut rng, pes as u64), below(&mut rng, pes as u64)].map(|pe| pe as u32);
            let tasks = [p, q].map(|pe| places.iter().position(|&place| place == pe));
            if p == q {
                continue;
            }
            if let Some(worth) = swaps.try_swap(tasks, [p, q]) {
                swaps.keep(tasks, [p, q], worth);
                tasks[0].into_iter().for_each(|task| places[task] = q);
                tasks[1].into_iter().for_each(|task| places[task] = p);
            }
            let link = swaps.busiest_link();
            swaps.users(link, &mut users);
            let mut anew = McfSwaps::new(&commodities, &routes, &seconds, Aim::BusiestThenPower(4), &places);
            anew.users(link, &mut expected);
            prop_assert_eq!(&users, &expected);
        }
    }
}

#[test]
fn the_bandwidth_distance_is_that_of_links_shared_by_all_pairs() {
    // On a line of 4 PEs, 3 pairs cross the first link in each direction, 4 the middle one, 3 the last.
    let machine = topology::parse("mesh:4").expect("a line");
    let distances = Distances::of(&Routes::of(&*machine), Metric::Bandwidth).expect("a small machine");
    let pairs = |a, b| (distances.between(a, b) * 1e9).round();
    assert_eq!([pairs(0, 1), pairs(1, 2), pairs(0, 3), pairs(3, 2), pairs(2, 2)], [3.0, 4.0, 4.0, 3.0, 0.0]);
}

#[test]
fn rejects_machines_with_too_many_pes_or_links_to_follow() {
    let line = topology::parse("mesh:8192").expect("a line");
    let too_long = qap::TooLarge::Routes { pes: 8192 };
    for metric in [Metric::Bandwidth, Metric::Rtt] {
        assert_eq!(Distances::of(&Routes::of(&*line), metric), Err(too_long.clone()));
    }
    let database = tasks(8192, 2, &[(0, 1, 10)]);
    assert_eq!(qap::cost(&database, &*line, &database.placement(), Metric::Bandwidth), Err(too_long));
    assert!(qap::cost(&database, &*line, &database.placement(), Metric::Rtt).is_ok());
    let flat = topology::parse("flat:8193").expect("a machine");
    let too_many = Err(qap::TooLarge::Pes { pes: 8193 });
    assert_eq!(Distances::of(&Routes::of(&*flat), Metric::Hops), too_many);
}

#[test]
fn reproduces_the_reference_results_on_the_tree() {
    let Some(text) = reference("simgrid/spmz_D16_tree.csv") else { return };
    let machine = topology::parse("platform:litvinov-tree").expect("a platform");
    let database = graph::load("npb-mz:benchmark=SP,class=D,processes=16").expect("SP-MZ").remap(16);
    let mut count = 0;
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let places: Vec<u32> = fields[8].split(' ').map(|pe| pe.parse().expect("a PE")).collect();
        let number = |at: usize| fields[at].parse::<f64>().expect("a number");
        let cost = |metric| qap::cost(&database, &*machine, &places, metric).expect("a small machine");
        for (name, ours, theirs) in [
            ("rtt", cost(Metric::Rtt), number(2)),
            ("hops", cost(Metric::Hops), number(3)),
            ("mcf", super::cost(&database, &*machine, &places), number(4)),
        ] {
            assert!((ours / theirs - 1.0).abs() < 1e-9, "{name} of mapping {}: {ours} {theirs}", fields[0]);
        }
        count += 1;
    }
    assert_eq!(count, 350);
}

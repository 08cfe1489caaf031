//! What is promised of `PoiseLB` as a whole: the same answer on any number of threads, loads below the limit, and moves
//! that count wherever gamma says so.

use crate::cost::Metrics;
use crate::database::{Edge, End};
use crate::testing::{assign_on, database, max_per_average};
use crate::{Database, graph, topology};

/// A ring of objects of these loads and sizes, in blocks.
fn ring(pes: usize, loads: &[f64], bytes: u64) -> Database {
    let count = loads.len();
    let place = |i: usize| (i * pes / count) as u32;
    let objects: Vec<(f64, u32)> = loads.iter().enumerate().map(|(i, &load)| (load, place(i))).collect();
    let mut tasks = database(pes, &objects);
    for object in &mut tasks.objects {
        object.bytes = Some(bytes);
    }
    let end = |i: usize| End::Object((i % count) as u32);
    let edge = |i: usize| Edge { from: end(i), to: end(i + 1), messages: 1, bytes: 1000 };
    tasks.edges = (0..count).map(edge).collect();
    tasks
}

#[test]
fn large_graphs_are_mapped_alike_by_any_number_of_threads() {
    // Enough for several threads to contract, to look for moves, and to add up costs.
    let tasks = graph::load("mesh:224x224").expect("a mesh").remap(16);
    let place = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            assign_on("PoiseLB:quality=fast,gamma=0", &tasks, "torus:4x4").expect("an answer").pe_of
        })
    };
    let alone = place(1);
    assert!(max_per_average(&tasks, &alone) <= 1.03);
    for threads in [2, 3] {
        assert!(place(threads) == alone, "{threads} threads give another answer than one");
    }
}

#[test]
fn whole_loads_are_allowed_no_more_than_others() {
    // An average of 10.1, of which a tenth more is 11.11.
    let tasks = ring(40, &[1.0; 404], 1000);
    let answer = assign_on("PoiseLB:imbalance=0.1,gamma=0", &tasks, "torus:8x5").expect("an answer");
    let most = tasks.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
    assert!(most <= 11.0, "{most}");
}

#[test]
fn speeds_count_where_no_load_was_recorded() {
    let mut tasks = ring(4, &[0.0; 60], 1000);
    tasks.pes[1].speed = 3.0;
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "torus:2x2").expect("an answer").pe_of;
    let counts: Vec<usize> = (0..4).map(|pe| placed.iter().filter(|&&place| place == pe).count()).collect();
    assert_eq!(counts, [10, 30, 10, 10]);
}

#[test]
fn whole_objects_on_pes_of_uneven_speeds_find_room() {
    // Each PE would have 4.8, 4.8 and 2.4 of them: rounded down there is no room for two.
    let mut tasks = ring(3, &[1.0; 12], 1000);
    tasks.pes[2].speed = 0.5;
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "mesh:3").expect("an answer").pe_of;
    let most = tasks.pe_loads(&placed).into_iter().fold(0.0, f64::max);
    assert!(most <= 5.0, "{most} seconds, and 5 is the least");
}

#[test]
fn what_moves_are_worth_counts_however_far_out_of_balance_objects_are() {
    // Half of all on one PE of 16, and so large that nothing is worth moving but what has to.
    let mut tasks = ring(16, &[1.0; 64], 1_000_000);
    let elsewhere = |number: u32| (6 + number % 15) % 16;
    let place = |number: u32| if number < 34 { 5 } else { elsewhere(number) };
    tasks.objects.iter_mut().zip(0..).for_each(|(object, number)| object.pe = place(number));
    let answer = assign_on("PoiseLB:gamma=1,imbalance=0", &tasks, "torus:4x4").expect("an answer");
    assert_eq!(max_per_average(&tasks, &answer.pe_of), 1.0);
    assert_eq!(answer.moves(&tasks).count(), 30);
}

#[test]
fn what_moves_are_worth_counts_where_loads_do_not_fit() {
    // Ten objects of 2 seconds on eight PEs: 4 seconds are the least, and what they have already.
    let mut tasks = ring(8, &[2.0; 10], 1_000_000);
    tasks.objects.iter_mut().zip(0..).for_each(|(object, number)| object.pe = number % 8);
    let answer = assign_on("PoiseLB:gamma=1,imbalance=0", &tasks, "torus:4x2").expect("an answer");
    assert_eq!(answer.moves(&tasks).count(), 0);
}

#[test]
fn one_slow_pe_does_not_end_the_search_for_the_others() {
    // One object per PE, of which one cannot take any: the others are laid around it.
    let tasks = graph::load("mesh:3x5").expect("a mesh");
    let machine = topology::parse("mesh:4x4").expect("a mesh");
    let mut tasks = tasks.remap(16);
    tasks.objects.iter_mut().for_each(|object| object.load_seconds = 1.0);
    tasks.pes[15].speed = 0.01;
    let placed = assign_on("PoiseLB:gamma=0", &tasks, "mesh:4x4").expect("an answer").pe_of;
    assert!(placed.iter().all(|&pe| pe != 15), "{placed:?}");
    let cost = Metrics::of(&tasks, &*machine, &placed).communication.expect("it was recorded");
    // 22 edges each way, and rows of five do not fit beside each other.
    assert!(cost.hop_bytes <= 56, "{}", cost.hop_bytes);
}

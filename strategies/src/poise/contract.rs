//! Properties of `PoiseLB` as a whole: the result is the same for any number of threads, loads stay below the limit, and
//! the costs of moves count whenever gamma is not 0.

use equipoise_model::database::{Edge, End};
use equipoise_model::{Database, graph, topology};

use crate::cost::Metrics;
use crate::testing::{assign_on, database, max_per_average};

/// A ring of objects with these loads and this size, distributed over the PEs in blocks.
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
#[ignore = "slow"]
fn large_graphs_are_mapped_identically_by_any_number_of_threads() {
    // Large enough for parallel contraction, parallel search of moves and parallel sums of costs.
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
fn the_assignment_reports_its_gain() {
    let tasks = graph::load("mesh:8x8").expect("a mesh").remap(16);
    let answer = assign_on("PoiseLB", &tasks, "torus:4x4").expect("an answer");
    let names: Vec<&str> = answer.notes.iter().map(|note| note.name.as_str()).collect();
    assert_eq!(names, ["hop-bytes before", "hop-bytes after", "hop-bytes at least"]);
    let sentence = answer.sentence.expect("it makes one");
    assert!(sentence.starts_with("Hop-bytes fell to ") && sentence.contains(" after moving "), "{sentence}");
    // A strategy in a pipeline returns no sentence, because the placements before and after the pipeline are different
    // ones.
    let answer = assign_on("RandomLB+PoiseLB", &tasks, "torus:4x4").expect("an answer");
    assert!(answer.sentence.is_none() && answer.notes[0].name == "PoiseLB hop-bytes before", "{answer:?}");
}

#[test]
fn whole_loads_have_the_same_limit_as_others() {
    // The average is 10.1, and the limit 10 % above it 11.11.
    let tasks = ring(40, &[1.0; 404], 1000);
    let answer = assign_on("PoiseLB:imbalance=0.1,gamma=0", &tasks, "torus:8x5").expect("an answer");
    let most = tasks.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
    assert!(most <= 11.0, "{most}");
}

#[test]
fn speeds_count_if_no_load_was_recorded() {
    let mut tasks = ring(4, &[0.0; 60], 1000);
    tasks.pes[1].speed = 3.0;
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "torus:2x2").expect("an answer").pe_of;
    let counts: Vec<usize> = (0..4).map(|pe| placed.iter().filter(|&&place| place == pe).count()).collect();
    assert_eq!(counts, [10, 30, 10, 10]);
}

#[test]
fn whole_objects_fit_on_pes_of_different_speeds() {
    // In proportion to their speeds, the PEs get 4.8, 4.8 and 2.4 objects. With these numbers rounded down, two objects
    // do not fit.
    let mut tasks = ring(3, &[1.0; 12], 1000);
    tasks.pes[2].speed = 0.5;
    let placed = assign_on("PoiseLB:gamma=0,imbalance=0", &tasks, "mesh:3").expect("an answer").pe_of;
    let most = tasks.pe_loads(&placed).into_iter().fold(0.0, f64::max);
    assert!(most <= 5.0, "{most} seconds, and the optimum is 5");
}

#[test]
fn migration_costs_count_for_any_initial_imbalance() {
    // Half of all objects are on one of 16 PEs. Objects are so large that every move costs more than it saves, so only
    // moves that the load limit requires are made.
    let mut tasks = ring(16, &[1.0; 64], 1_000_000);
    let elsewhere = |number: u32| (6 + number % 15) % 16;
    let place = |number: u32| if number < 34 { 5 } else { elsewhere(number) };
    tasks.objects.iter_mut().zip(0..).for_each(|(object, number)| object.pe = place(number));
    let answer = assign_on("PoiseLB:gamma=1,imbalance=0", &tasks, "torus:4x4").expect("an answer");
    assert_eq!(max_per_average(&tasks, &answer.pe_of), 1.0);
    assert_eq!(answer.moves(&tasks).count(), 30);
}

#[test]
fn migration_costs_count_if_loads_do_not_fit() {
    // Ten objects of 2 seconds on eight PEs: the optimum is 4 seconds, which the present placement has.
    let mut tasks = ring(8, &[2.0; 10], 1_000_000);
    tasks.objects.iter_mut().zip(0..).for_each(|(object, number)| object.pe = number % 8);
    let answer = assign_on("PoiseLB:gamma=1,imbalance=0", &tasks, "torus:4x2").expect("an answer");
    assert_eq!(answer.moves(&tasks).count(), 0);
}

#[test]
fn one_slow_pe_does_not_disable_the_one_to_one_search() {
    // One object per PE; one PE is too slow for any object, and the others are used.
    let tasks = graph::load("mesh:3x5").expect("a mesh");
    let machine = topology::parse("mesh:4x4").expect("a mesh");
    let mut tasks = tasks.remap(16);
    tasks.objects.iter_mut().for_each(|object| object.load_seconds = 1.0);
    tasks.pes[15].speed = 0.01;
    let placed = assign_on("PoiseLB:gamma=0", &tasks, "mesh:4x4").expect("an answer").pe_of;
    assert!(placed.iter().all(|&pe| pe != 15), "{placed:?}");
    let cost = Metrics::of(&tasks, &*machine, &placed).communication.expect("it was recorded");
    // 22 edges in each direction; rows of five do not fit on the mesh of four columns.
    assert!(cost.hop_bytes <= 56, "{}", cost.hop_bytes);
}

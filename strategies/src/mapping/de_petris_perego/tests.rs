//! The rules of the mapper one by one, and its bound on memory.

use proptest::prelude::*;

use equipoise_model::topology;
use equipoise_network::program::{Channel, Task};

use super::*;

fn mapped(model: &Model, machine: &str, rules: &Rules) -> Result<Mapped, StrategyError> {
    let machine = topology::parse(machine).expect("a machine");
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    map(model, &*machine, &Speeds::default(), &all, rules, 0)
}

/// A row of tasks that need `memory` bytes.
fn row(memory: &[u64]) -> Model {
    let task =
        |&bytes: &u64| Task { work_ticks: 1000 * Model::TICKS, memory_bytes: Some(bytes), ..Task::default() };
    let flit_ticks = 10 * Model::TICKS;
    let channel = |i: u32| Channel { from: i, to: i + 1, messages: 1, flit_ticks, wait_ticks: 0 };
    let channels: Vec<Channel> = (0..memory.len() as u32 - 1).map(channel).collect();
    let phases = vec![(0..channels.len() as u32).collect()];
    Model {
        tasks: memory.iter().map(task).collect(),
        channels,
        phases,
        cycle_seconds: 1e-9,
        waits: Waits::Overlapped,
        simulation: None,
    }
}

#[test]
fn decisions_are_taken_back_until_tasks_fit_into_memory() {
    let rules = |bytes| Rules { memory_bytes: Some(bytes), ..Rules::default() };
    // The two tasks that need 3 bytes must be on different PEs, but the small tasks are placed first.
    let model = row(&[3, 1, 1, 3]);
    let places = mapped(&model, "mesh:2", &rules(4)).expect("it fits").places;
    assert_ne!(places[0], places[3]);
    let error = mapped(&model, "mesh:2", &rules(2)).expect_err("too small").to_string();
    assert_eq!(error, "the tasks need 8 bytes, and the memory of 2 PEs is 4 bytes; allow more memory");
    let error = mapped(&row(&[3, 1]), "mesh:2", &rules(2)).expect_err("too small").to_string();
    assert_eq!(error, "task 0 needs 3 bytes, and a PE has 2; allow more memory");
    let error = mapped(&row(&[2, 2, 2]), "mesh:2", &rules(3)).expect_err("three halves").to_string();
    assert_eq!(error, "no placement fits into 3 bytes of memory per PE; allow more memory");
}

#[test]
fn fixed_tasks_need_memory_too() {
    let rules = |bytes| Rules { memory_bytes: Some(bytes), ..Rules::default() };
    let mut model = row(&[3, 1, 1, 2]);
    (model.tasks[0].stays_on, model.tasks[1].stays_on) = (Some(3), Some(3));
    let error = mapped(&model, "mesh:4", &rules(3)).expect_err("too much").to_string();
    let expected =
        "the fixed tasks on PE 3 need 4 bytes, and a PE has 3; allow more memory, or fix fewer tasks there";
    assert_eq!(error, expected);
    let places = mapped(&model, "mesh:4", &rules(4)).expect("it fits").places;
    assert!(places[2] != 3 && places[3] != 3, "{places:?}");
    let error = mapped(&row_on(&[3, 1, 3], 0), "mesh:1", &rules(4)).expect_err("too much").to_string();
    assert!(
        error.starts_with("the tasks need 4 bytes, and the memory of 1 PE is 4 bytes, of which fixed tasks"),
        "{error}"
    );
}

/// A row of tasks; the first is fixed on `pe`.
fn row_on(memory: &[u64], pe: u32) -> Model {
    let mut model = row(memory);
    model.tasks[0].stays_on = Some(pe);
    model
}

#[test]
fn figure_6_looks_ahead() {
    // A grid of 3x3 tasks on 3x3 PEs, with task 4 in the middle and task 5 to its right. Task 1 may go above (PE 1), below
    // (PE 7) or to the left (PE 3). Its partner 2 will be near 5, and the route from PE 3 to 5 is in use.
    let model = Model { phases: vec![(0..24).collect()], ..model_of_grid() };
    let machine = topology::parse("mesh:3x3").expect("a mesh");
    let all: Vec<u32> = (0..9).collect();
    let host = Host::new(&*machine, &all);
    for paper in [false, true] {
        // With the paper's fraction, one more hop is similar, and that PE is nearer to the place of partner 2.
        let rules = if paper { Rules::paper() } else { Rules::default() };
        let rules = Rules { similar: 0.0, ..rules };
        let mut tasks = Tasks::new(&model, host.diameter, 0, paper);
        let mut chooser = Chooser::new(&model, &*machine, &host, &rules, tasks.radius());
        let speeds = Speeds::default();
        let mut estimate = Estimate::new(&model, &*machine, &speeds);
        for task in [4, 5] {
            estimate.put(task, task as u32);
            chooser.add(task, task as u32);
            tasks.map(task);
        }
        let ahead = [1, 3, 7].map(|pe| {
            let mark = estimate.mark();
            estimate.put(1, pe);
            let ahead = chooser.look_ahead(&estimate, &tasks, 1, pe);
            estimate.undo(mark);
            ahead
        });
        // Two hops; from PE 3 also two used links in each direction, between 4 and 5 and between 1 and 4.
        assert_eq!(ahead, [2, 6, 2]);
        let chosen = chooser.choose(&mut estimate, &tasks, 1);
        assert!(chosen == [1] || chosen == [7], "{chosen:?}");
    }
}

/// A grid of 3x3 tasks that send to each neighbor.
fn model_of_grid() -> Model {
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    for at in 0..9 {
        let right = (at % 3 < 2).then_some(at + 1);
        let below = (at < 6).then_some(at + 3);
        pairs.extend(right.into_iter().chain(below).flat_map(|other| [(at, other), (other, at)]));
    }
    pairs.sort_unstable();
    let channel =
        |&(from, to): &(u32, u32)| Channel { from, to, messages: 1, flit_ticks: Model::TICKS, wait_ticks: 0 };
    Model { channels: pairs.iter().map(channel).collect(), ..row(&[0; 9]) }
}

#[test]
fn the_sum_of_r_decides_between_similar_estimates() {
    // The first task, on PE 0, sends ten messages to the third. The third sends one to the second, which has the most work,
    // on PE 3.
    let mut model = row_on(&[0; 3], 0);
    model.tasks[1].stays_on = Some(3);
    model.tasks[1].work_ticks *= 1000;
    let channel =
        |from, to, messages| Channel { from, to, messages, flit_ticks: Model::TICKS, wait_ticks: 0 };
    model.channels = vec![channel(0, 2, 10), channel(2, 1, 1)];
    model.phases = vec![vec![0], vec![1]];
    let place = |similar| {
        let rules = Rules { similar, ..Rules::default() };
        mapped(&model, "mesh:4", &rules).expect("there is no bound").places[2]
    };
    // One hop of the last message delays the end by one cycle of a million; ten hops of the others do not.
    assert_eq!((place(0.0), place(0.01)), (2, 1));
}

proptest! {
    #[test]
    fn every_task_has_a_place_within_the_bound_on_memory(
        memory in prop::collection::vec(0..6u64, 1..14),
        machine in prop::sample::select(vec!["mesh:3x2", "hypercube:2", "torus:5", "tree:2:2/5:1", "flat:3"]),
        bound in prop::option::of(6..30u64),
        usage in any::<bool>(),
    ) {
        let model = row(&memory);
        let rules = Rules { memory_bytes: bound, usage, share: usage, ..Rules::default() };
        match mapped(&model, machine, &rules) {
            Ok(mapped) => {
                prop_assert_eq!(mapped.places.len(), memory.len());
                let mut used = [0; 64];
                mapped.places.iter().zip(&memory).for_each(|(&pe, bytes)| used[pe as usize] += bytes);
                prop_assert!(used.iter().all(|&bytes| bytes <= bound.unwrap_or(u64::MAX)));
            }
            Err(error) => prop_assert!(bound.is_some(), "{error}"),
        }
    }
}

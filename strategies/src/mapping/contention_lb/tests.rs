//! The mapper on programs whose best mapping is known, its rules one by one, and its bound on memory.

use proptest::prelude::*;

use super::*;
use crate::program::{Channel, Costs, OVERLAP, Task, generate, load};
use crate::testing::{assign_on, database};
use crate::topology;

fn model(program: &str) -> Model {
    let program = load(program).expect("a program");
    let renumbered = generate::renumbered(&program, &generate::permutation(program.tasks(), 1));
    Model::of(&renumbered, Costs::default(), OVERLAP).expect("it can be simulated")
}

fn mapped(model: &Model, machine: &str, config: &ContentionLb) -> Result<Mapped, StrategyError> {
    let machine = topology::parse(machine).expect("a machine");
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    map(model, &*machine, &Speeds::default(), &all, config, 0)
}

/// The longest distance that a channel spans.
fn dilation(model: &Model, machine: &str, places: &[u32]) -> u32 {
    let machine = topology::parse(machine).expect("a machine");
    let place = |task: u32| places[task as usize] as usize;
    let of = |channel: &Channel| machine.distance(place(channel.from), place(channel.to));
    model.channels.iter().map(of).max().unwrap_or(0)
}

#[test]
fn regular_programs_are_embedded_optimally() {
    for (program, machine) in [
        ("mesh:sizes=7x7", "mesh:7x7"),
        ("mesh:sizes=8x8", "mesh:8x8"),
        ("mesh:sizes=4x4", "hypercube:4"),
        ("mesh:sizes=8x8", "hypercube:6"),
        ("mesh:sizes=16x8", "hypercube:7"),
        ("ring:n=64", "hypercube:6"),
        ("ring:n=64", "mesh:8x8"),
        ("ring:n=64", "mesh:4x4x4"),
        ("ring:n=27", "torus:3x3x3"),
        ("ring:n=25", "torus:5x5"),
        ("butterfly:n=32,iterations=1", "hypercube:5"),
        ("butterfly:n=64,iterations=1", "hypercube:6"),
    ] {
        let model = model(program);
        let places = mapped(&model, machine, &ContentionLb::default()).expect(program).places;
        assert_eq!(dilation(&model, machine, &places), 1, "{program} on {machine}: {places:?}");
    }
}

/// All hops beyond the first, times messages.
fn extra_hops(model: &Model, machine: &str, places: &[u32]) -> u64 {
    let machine = topology::parse(machine).expect("a machine");
    let place = |task: u32| places[task as usize] as usize;
    let of = |it: &Channel| {
        it.messages * u64::from(machine.distance(place(it.from), place(it.to)).saturating_sub(1))
    };
    model.channels.iter().map(of).sum()
}

#[test]
fn further_runs_see_what_the_one_of_the_paper_does_not() {
    for (program, machine, most) in [
        // The identity has 512 hops more than one each, and 2 * 2816.
        ("butterfly:n=64,iterations=1", "mesh:8x8", 512),
        ("butterfly:n=256,iterations=1", "mesh:16x16", 5632),
        ("tree:n=127", "mesh:16x8", 80),
        ("mesh:sizes=8x8,iterations=1", "hypercube:6", 0),
    ] {
        let model = model(program);
        let hops = |paper| {
            let mapped =
                mapped(&model, machine, &ContentionLb { paper, ..ContentionLb::default() }).expect(program);
            let mut used = mapped.places.clone();
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), model.tasks.len(), "{program}");
            assert!(paper == (mapped.runs == 1), "{program}: {} runs", mapped.runs);
            extra_hops(&model, machine, &mapped.places)
        };
        let (one, best) = (hops(true), hops(false));
        assert!(best <= most && best < one, "{program} on {machine}: {best}, with one run {one}");
    }
}

#[test]
fn a_pe_at_the_end_of_an_edge_takes_no_place_from_tasks() {
    let mut database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3)]);
    let (object, pe) = (crate::database::End::Object, crate::database::End::Pe);
    let edge = |from, to| crate::database::Edge { from, to, messages: 1, bytes: 1000 };
    database.edges = vec![edge(object(0), pe(3)), edge(object(0), object(1)), edge(object(1), object(2))];
    let places = assign_on("ContentionLB", &database, "mesh:4").expect("an answer").pe_of;
    assert_eq!(places.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{places:?}");
}

/// Tasks that need so many bytes, in a row.
fn row(memory: &[u64]) -> Model {
    let task =
        |&bytes: &u64| Task { work_ticks: 1000 * Model::TICKS, memory_bytes: Some(bytes), ..Task::default() };
    let flit_ticks = 10 * Model::TICKS;
    let channel = |i: u32| Channel { from: i, to: i + 1, messages: 1, flit_ticks, wait_ticks: 0 };
    let channels: Vec<Channel> = (0..memory.len() as u32 - 1).map(channel).collect();
    let phases = vec![(0..channels.len() as u32).collect()];
    Model { tasks: memory.iter().map(task).collect(), channels, phases, cycle_seconds: 1e-9 }
}

#[test]
fn memory_is_a_bound_for_which_decisions_are_taken_back() {
    let config = |bytes| ContentionLb { memory_bytes: Some(bytes), ..ContentionLb::default() };
    // The two that need 3 go apart from each other, which nobody knows when the small ones are placed.
    let model = row(&[3, 1, 1, 3]);
    let places = mapped(&model, "mesh:2", &config(4)).expect("it fits").places;
    assert_ne!(places[0], places[3]);
    let error = mapped(&model, "mesh:2", &config(2)).expect_err("too small").to_string();
    assert_eq!(error, "the tasks need 8 bytes, and 2 PEs with 2 each have 4; allow more memory");
    let error = mapped(&row(&[3, 1]), "mesh:2", &config(2)).expect_err("too small").to_string();
    assert_eq!(error, "task 0 needs 3 bytes, and a PE has 2; allow more memory");
    let error = mapped(&row(&[2, 2, 2]), "mesh:2", &config(3)).expect_err("three halves").to_string();
    assert!(
        error.starts_with("ContentionLB found no way to put all tasks into memories of 3 bytes"),
        "{error}"
    );
}

#[test]
fn used_pes_are_filled_first_when_tasks_outnumber_pes() {
    let model = row(&[0; 12]);
    let tasks_on = |usage| {
        let config = ContentionLb { usage, ..ContentionLb::default() };
        let places = mapped(&model, "mesh:4", &config).expect("there is no bound").places;
        let mut counts = [0; 4];
        places.iter().for_each(|&pe| counts[pe as usize] += 1);
        (counts, places.windows(2).filter(|pair| pair[0] != pair[1]).count())
    };
    assert_eq!(tasks_on(true).0, [3; 4]);
    assert!(tasks_on(true).1 <= tasks_on(false).1, "{:?} and {:?}", tasks_on(true), tasks_on(false));
}

#[test]
fn objects_that_stay_attract_those_they_talk_to() {
    let mut database = database(9, &[(1.0, 0), (1.0, 8), (1.0, 0)]);
    database.objects[1].migratable = false;
    let end = crate::database::End::Object;
    database.edges = vec![crate::database::Edge { from: end(0), to: end(1), messages: 1, bytes: 1000 }];
    let places = assign_on("ContentionLB", &database, "mesh:3x3").expect("an answer").pe_of;
    assert!(places[1] == 8 && (places[0] == 5 || places[0] == 7), "{places:?}");
    assert_eq!(places.iter().collect::<std::collections::BTreeSet<_>>().len(), 3, "{places:?}");
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
        let config = ContentionLb { memory_bytes: bound, usage, share: usage, ..ContentionLb::default() };
        match mapped(&model, machine, &config) {
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

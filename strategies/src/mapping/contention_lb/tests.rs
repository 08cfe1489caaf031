//! The mapper on programs whose best mapping is known, its rules one by one, and its bound on memory.

use proptest::prelude::*;

use super::*;
use crate::program::{Channel, Costs, OVERLAP, Program, Task, Trial, generate, load};
use crate::strategy::Strategy;
use crate::testing::{assign_on, database};
use crate::topology;

fn model(program: &str) -> Model {
    numbered(program, 1)
}

/// The model of a program renumbered at random.
fn numbered(program: &str, seed: u64) -> Model {
    let program = load(program).expect("a program");
    let renumbered = generate::renumbered(&program, &generate::permutation(program.tasks(), seed));
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

#[test]
fn meshes_lie_on_themselves_along_either_side() {
    for (size, numberings) in [("4x32", 0..4), ("6x60", 0..2), ("8x50", 0..2), ("8x98", 0..1)] {
        for seed in numberings {
            let model = numbered(&format!("mesh:sizes={size},iterations=1"), seed);
            let machine = format!("mesh:{size}");
            let places = mapped(&model, &machine, &ContentionLb::default()).expect(size).places;
            assert_eq!(dilation(&model, &machine, &places), 1, "{size}, numbering {seed}");
        }
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
            let config = if paper { ContentionLb::paper() } else { ContentionLb::default() };
            let config = ContentionLb { share: Some(false), ..config };
            let mapped = mapped(&model, machine, &config).expect(program);
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
fn what_the_estimate_hardly_tells_apart_is_tried() {
    let mut earlier = 0;
    for (program, machine) in
        [("elimination:n=8", "hypercube:3"), ("tree:n=15", "mesh:4x4"), ("random:n=16,degree=3", "mesh:4x4")]
    {
        let program = load(program).expect("a program");
        let machine = topology::parse(machine).expect("a machine");
        let all: Vec<u32> = (0..machine.pes() as u32).collect();
        let trial = Trial::new(&program, &machine, Costs::default());
        let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
        let end = |model: &Model| {
            let config = ContentionLb::default();
            let mapped = map(model, &*machine, &Speeds::default(), &all, &config, 0).expect("no bound");
            trial.cycles(&mapped.places).expect("a mesh can be simulated")
        };
        let (untried, tried) = (end(&model), end(&model.clone().with_trial(trial.clone())));
        assert!(tried <= untried, "{program:?}: {tried} and {untried}");
        earlier += usize::from(tried < untried);
    }
    assert!(earlier > 0, "none is better for it");
}

#[test]
fn what_takes_long_to_execute_is_not_tried() {
    let affordable = |program: &Program, machine: &str| {
        let machine = topology::parse(machine).expect("a machine");
        let model = Model::of(program, Costs::default(), OVERLAP).expect("it can be simulated");
        let trial = Trial::new(program, &machine, Costs::default());
        best::affordable(&model.with_trial(trial))
    };
    let tree = load("tree:n=31").expect("a program");
    assert!(affordable(&tree, "mesh:8x4") > 30);
    assert_eq!(affordable(&tree, "mesh:45x45"), 0, "the routes between all pairs are walked");
    let busy = |process: u32, other: u32| {
        format!(
            "PROCESS {process}\nREPEAT 4000000\nINT_OP 1\nEND\nSEND {other} 64\nRECEIVE {other} 64\nSTOP\n"
        )
    };
    let busy = crate::program::parse(&(busy(0, 1) + &busy(1, 0))).expect("a program");
    assert_eq!(affordable(&busy, "mesh:2"), 0, "all instructions are executed");
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
    Model {
        tasks: memory.iter().map(task).collect(),
        channels,
        phases,
        cycle_seconds: 1e-9,
        waits: Waits::Overlapped,
        trial: None,
    }
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
    let expected = "no placement fits into memories of 3 bytes, of which all were tried; allow more memory";
    assert_eq!(error, expected);
}

#[test]
fn what_stays_needs_memory_too() {
    let config = |bytes| ContentionLb { memory_bytes: Some(bytes), ..ContentionLb::default() };
    let mut model = row(&[3, 1, 1, 2]);
    (model.tasks[0].stays_on, model.tasks[1].stays_on) = (Some(3), Some(3));
    let error = mapped(&model, "mesh:4", &config(3)).expect_err("too much").to_string();
    let expected =
        "the tasks that stay on PE 3 need 4 bytes, and a PE has 3; allow more memory, or keep fewer there";
    assert_eq!(error, expected);
    let places = mapped(&model, "mesh:4", &config(4)).expect("it fits").places;
    assert!(places[2] != 3 && places[3] != 3, "{places:?}");
    let error = mapped(&row_on(&[3, 1, 3], 0), "mesh:1", &config(4)).expect_err("too much").to_string();
    assert!(
        error.starts_with("the tasks need 4 bytes, and 1 PEs with 4 each have 4, of which those that stay"),
        "{error}"
    );
}

/// A row of which the first task stays on a PE.
fn row_on(memory: &[u64], pe: u32) -> Model {
    let mut model = row(memory);
    model.tasks[0].stays_on = Some(pe);
    model
}

#[test]
fn figure_6_looks_ahead() {
    // A grid of 3x3 tasks on one of PEs: with 4 in the middle and 5 beside it, 1 may go above (PE 1), below (7), or to the
    // other side (3), from where the way to 5, past which its partner 2 will lie, is in use.
    let model = Model { phases: vec![(0..24).collect()], ..model_of_grid() };
    let machine = topology::parse("mesh:3x3").expect("a mesh");
    let all: Vec<u32> = (0..9).collect();
    let host = Host::new(&*machine, &all);
    for paper in [false, true] {
        // A hop more is similar in the paper's run, and nearer to where the partner 2 will lie.
        let config = if paper { ContentionLb::paper() } else { ContentionLb::default() };
        let config = ContentionLb { similar: 0.0, ..config };
        let mut tasks = Tasks::new(&model, host.diameter, 0, paper);
        let mut chooser = Chooser::new(&model, &*machine, &host, &config, tasks.radius());
        let speeds = Speeds::default();
        let mut estimate = Estimate::new(&model, &*machine, &speeds);
        for task in [4, 5] {
            estimate.put(task, task as u32);
            chooser.took(task, task as u32);
            tasks.map(task);
        }
        let ahead = [1, 3, 7].map(|pe| {
            let mark = estimate.mark();
            estimate.put(1, pe);
            let ahead = chooser.look_ahead(&estimate, &tasks, 1, pe);
            estimate.undo(mark);
            ahead
        });
        // Two hops; and two links each way, of 4 and 5 and of 1 and 4, on the side.
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
fn similar_estimates_are_told_apart_by_what_follows() {
    // The first task, on PE 0, sends ten messages to the third, and that one to the second, which has most to do, on PE 3.
    let mut model = row_on(&[0; 3], 0);
    model.tasks[1].stays_on = Some(3);
    model.tasks[1].work_ticks *= 1000;
    let channel =
        |from, to, messages| Channel { from, to, messages, flit_ticks: Model::TICKS, wait_ticks: 0 };
    model.channels = vec![channel(0, 2, 10), channel(2, 1, 1)];
    model.phases = vec![vec![0], vec![1]];
    let place = |similar| {
        let config = ContentionLb { similar, ..ContentionLb::default() };
        mapped(&model, "mesh:4", &config).expect("there is no bound").places[2]
    };
    // A hop of the last message makes the end one cycle of a million later; ten hops of the others do not.
    assert_eq!((place(0.0), place(0.01)), (2, 1));
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
        let config = ContentionLb { memory_bytes: bound, usage, share: Some(usage), ..ContentionLb::default() };
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

/// What is over sooner on one PE, or as it was, and saturated links, of which F knows nothing.
#[test]
fn a_program_that_can_be_tried_ends_no_later_than_as_it_was_or_with_shared_pes() {
    for (program, machine) in [
        ("broadcast:n=8,flits=64,work=8", "hypercube:3"),
        ("tree:n=7,flits=64,work=8", "hypercube:3"),
        ("random:n=16,ratio=0,flits=256", "mesh:4x4"),
    ] {
        let known = load(program).expect(program);
        let topology = topology::parse(machine).expect(machine);
        let model = Model::of(&known, Costs::default(), OVERLAP).expect(program);
        let model = model.with_trial(Trial::new(&known, &topology, Costs::default()));
        let end = |config: &ContentionLb, start: Option<u32>| {
            let mut database = model.database(topology.pes() as u32);
            if let Some(pe) = start {
                database = database.placed(&vec![pe; known.tasks()]);
            }
            let answer = config.assign_program(&model, &database, &*topology, 0).expect(program);
            let shared = answer.pe_of.iter().collect::<std::collections::BTreeSet<_>>().len() < known.tasks();
            let run = crate::program::execute_on(&known, &topology, &answer.pe_of, Costs::default());
            (run.expect(program).cycles, shared)
        };
        let (best, _) = end(&ContentionLb::default(), None);
        let alone = end(&ContentionLb { share: Some(false), ..ContentionLb::default() }, Some(0));
        let on_one = end(&ContentionLb::default(), Some(0)).0;
        let paper = end(&ContentionLb::paper(), None).0;
        assert!(
            best <= paper && best <= alone.0 && on_one <= best,
            "{program}: {best} {paper} {alone:?} {on_one}"
        );
        assert!(!alone.1, "{program}");
    }
}

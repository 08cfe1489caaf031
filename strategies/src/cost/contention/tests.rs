//! The estimate compared with a direct evaluation of the equations, and with examples computed by hand.

use std::sync::Arc;

use proptest::prelude::*;

use equipoise_model::topology;
use equipoise_network::program::{Channel, Task, Waits};

use super::*;
use crate::testing;

/// F and the sum of R, by the equations of the paper, with interference classes as a transitive closure.
fn by_equations(model: &Model, machine: &dyn Topology, place: &[Option<u32>]) -> (i64, i64) {
    let mut r = vec![0i64; machine.pes()];
    let ends = |c: u32| {
        let channel = &model.channels[c as usize];
        place[channel.from as usize].zip(place[channel.to as usize])
    };
    let route = |c: u32| {
        let mut route = Vec::new();
        let (from, to) = ends(c).expect("both are placed");
        machine.route(from as usize, to as usize, &mut route);
        route
    };
    for (channel, c) in model.channels.iter().zip(0..) {
        let Some((from, to)) = ends(c) else { continue };
        if from != to {
            let distance = machine.distance(from as usize, to as usize);
            r[to as usize] += channel.messages as i64 * i64::from(distance - 1) * Model::TICKS;
        }
    }
    // Equations (3) and (5).
    for pe in 0..machine.pes() as u32 {
        let here = |&task: &usize| place[task] == Some(pe);
        let tasks = || (0..place.len()).filter(here);
        let saved = |task: usize| -> i64 {
            let together = |it: &&Channel| it.to as usize == task && place[it.from as usize] == Some(pe);
            let saved = |it: &Channel| (it.messages as i64 * it.flit_ticks).min(it.wait_ticks);
            model.channels.iter().filter(together).map(saved).sum()
        };
        let end = |task: usize| model.tasks[task].work_ticks + model.tasks[task].wait_ticks - saved(task);
        r[pe as usize] += match model.waits {
            Waits::Added => tasks().map(end).sum::<i64>(),
            Waits::Overlapped => {
                let work = tasks().map(|task| model.tasks[task].work_ticks).sum::<i64>();
                tasks().map(end).fold(work, i64::max)
            }
        };
    }
    for phase in &model.phases {
        let active: Vec<u32> =
            phase.iter().copied().filter(|&c| ends(c).is_some_and(|(from, to)| from != to)).collect();
        let routes: Vec<Vec<usize>> = active.iter().map(|&c| route(c)).collect();
        let n = active.len();
        let mut related = vec![vec![false; n]; n];
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            related[a][b] = a == b || routes[a].iter().any(|link| routes[b].contains(link));
        }
        for (via, a) in (0..n).flat_map(|via| (0..n).map(move |a| (via, a))) {
            for b in 0..n {
                related[a][b] |= related[a][via] && related[via][b];
            }
        }
        for a in 0..n {
            let class = || (0..n).filter(|&b| related[a][b]);
            let others: i64 =
                class().filter(|&b| b != a).map(|b| model.channels[active[b] as usize].flit_ticks).sum();
            let to = ends(active[a]).expect("it is active").1;
            r[to as usize] += others / (2 * class().count() as i64);
        }
    }
    (r.iter().copied().max().unwrap_or(0), r.iter().sum())
}

fn channel(from: u32, to: u32, messages: u64, flits: i64, wait: i64) -> Channel {
    let t = Model::TICKS;
    Channel { from, to, messages, flit_ticks: flits * t, wait_ticks: wait * t }
}

fn model(work: &[i64], channels: &[Channel], phases: &[&[u32]]) -> Model {
    let mut tasks: Vec<Task> =
        work.iter().map(|work| Task { work_ticks: work * Model::TICKS, ..Task::default() }).collect();
    for channel in channels {
        tasks[channel.to as usize].wait_ticks += channel.wait_ticks;
    }
    let phases = phases.iter().map(|phase| phase.to_vec()).collect();
    Model {
        tasks,
        channels: channels.to_vec(),
        phases,
        cycle_seconds: 1e-9,
        waits: Waits::Added,
        simulation: None,
    }
}

fn cycles(model: &Model, machine: &str, placement: &[u32]) -> f64 {
    let machine = topology::parse(machine).expect("a machine");
    Model::cycles(Estimate::of(model, &*machine, &Speeds::default(), placement))
}

#[test]
fn figure_1_is_one_interference_class() {
    // 1 to 3, 2 to 4 and 3 to 4 on a line: the routes of the first and the last channel share no link.
    let channels = [channel(0, 3, 1, 10, 10), channel(1, 4, 1, 10, 10), channel(2, 5, 1, 10, 10)];
    let model = model(&[0; 6], &channels, &[&[0, 1, 2]]);
    let machine = topology::parse("mesh:5").expect("a mesh");
    let speeds = Speeds::default();
    let mut estimate = Estimate::new(&model, &*machine, &speeds);
    for (task, pe) in [1, 2, 3, 3, 4, 4].into_iter().enumerate() {
        estimate.put(task, pe);
    }
    // On PE 4: waits of 10 + 10, a hop of 1, and twice 20 / (2 * 3). On PE 3: 10, 1 and once 20 / (2 * 3).
    let third = 20 * Model::TICKS / 6;
    assert_eq!(estimate.ticks(), 21 * Model::TICKS + 2 * third);
    assert_eq!(estimate.summed_ticks(), 32 * Model::TICKS + 3 * third);
    // Channels in different phases do not interfere.
    let apart = Model { phases: vec![vec![0], vec![1], vec![2]], ..model };
    assert_eq!(cycles(&apart, "mesh:5", &[1, 2, 3, 3, 4, 4]), 21.0);
}

#[test]
fn tasks_on_one_pe_save_the_wait_or_the_length_of_the_message() {
    // Figure 2: a wait that is longer, a wait that is shorter, and no wait, for a message of 10 flits.
    for (wait, saved) in [(25, 10), (6, 6), (0, 0)] {
        let mut model = model(&[100, 50], &[channel(0, 1, 1, 10, wait)], &[&[0]]);
        assert_eq!(cycles(&model, "mesh:2", &[0, 0]), (150 + wait - saved) as f64, "{wait}");
        assert_eq!(cycles(&model, "mesh:2", &[0, 1]), 100.0_f64.max((50 + wait) as f64), "{wait}");
        // The work of the sender takes longer than the wait.
        model.waits = Waits::Overlapped;
        assert_eq!(cycles(&model, "mesh:2", &[0, 0]), 150.0, "{wait}");
        assert_eq!(cycles(&model, "mesh:2", &[0, 1]), 100.0_f64.max((50 + wait) as f64), "{wait}");
    }
}

#[test]
fn overlapped_waits_are_filled_with_the_work_of_other_tasks() {
    // The receiver waits 300 cycles, of which 10 are saved next to the sender; a third task works for 120 cycles.
    let of = |waits| {
        let model = model(&[100, 50, 120], &[channel(0, 1, 1, 10, 300)], &[&[0]]);
        let model = Model { waits, ..model };
        [[0, 0, 0], [0, 0, 1], [0, 1, 1]].map(|places| cycles(&model, "mesh:2", &places))
    };
    assert_eq!(of(Waits::Added), [560.0, 440.0, 470.0]);
    assert_eq!(of(Waits::Overlapped), [340.0, 340.0, 350.0]);
}

#[test]
fn slow_pes_and_background_load_increase_the_estimate() {
    let model = model(&[100, 50], &[], &[]);
    let machine = topology::parse("mesh:2").expect("a mesh");
    let mut database = testing::database(2, &[(0.0, 0)]);
    (database.pes[0].speed, database.pes[0].background_seconds) = (2.0, 14e-9);
    database.pes[1].speed = 0.5;
    let speeds = Speeds::of(&database, &model);
    for (placement, expected) in [([0, 1], 100), ([0, 0], 82), ([1, 0], 200)] {
        let ticks = Estimate::of(&model, &*machine, &speeds, &placement);
        assert_eq!(ticks, expected * Model::TICKS, "{placement:?}");
    }
}

/// Random models of up to 9 tasks and up to 3 phases.
fn models() -> impl Strategy<Value = Model> {
    let channel = (0..9u32, 0..9u32, 1..4u64, 1..30i64, 0..90i64);
    let channels = prop::collection::vec(channel, 0..25);
    let waits = prop::sample::select(vec![Waits::Added, Waits::Overlapped]);
    (prop::collection::vec(0..500i64, 9), channels, prop::collection::vec(1..8u32, 25), waits).prop_map(
        |(work, channels, phases, waits)| {
            let mut channels: Vec<Channel> = channels
                .into_iter()
                .filter(|it| it.0 != it.1)
                .map(|(from, to, messages, flits, wait)| self::channel(from, to, messages, flits, wait))
                .collect();
            channels.sort_by_key(|it| (it.from, it.to));
            channels.dedup_by_key(|it| (it.from, it.to));
            let of = |phase: u32| -> Vec<u32> {
                (0..channels.len() as u32).filter(|&c| phases[c as usize] >> phase & 1 == 1).collect()
            };
            let phases: Vec<Vec<u32>> = (0..3).map(of).collect();
            let model = model(&work, &channels, &phases.iter().map(Vec::as_slice).collect::<Vec<_>>());
            Model { waits, ..model }
        },
    )
}

proptest! {
    #[test]
    fn the_estimate_after_any_moves_is_that_of_the_equations(
        model in models(),
        machine in prop::sample::select(vec!["mesh:3x3", "torus:4x3", "hypercube:3", "mesh:2", "tree:2:3/5:1"]),
        // Each move places a task, or undoes back to an earlier mark.
        moves in prop::collection::vec((0..9usize, 0..64u32, 0..4u8), 1..60),
    ) {
        let machine: Arc<dyn Topology> = topology::parse(machine).expect("a machine");
        let speeds = Speeds::default();
        let mut estimate = Estimate::new(&model, &*machine, &speeds);
        let mut places: Vec<Option<u32>> = vec![None; 9];
        let mut marks = Vec::new();
        for (task, pe, kind) in moves {
            if kind == 0 {
                let Some((mark, before)) = marks.pop() else { continue };
                estimate.undo(mark);
                places = before;
            } else if places[task].is_none() {
                marks.push((estimate.mark(), places.clone()));
                let pe = pe % machine.pes() as u32;
                estimate.put(task, pe);
                places[task] = Some(pe);
            }
            prop_assert_eq!((estimate.ticks(), estimate.summed_ticks()), by_equations(&model, &*machine, &places));
            let used: std::collections::BTreeSet<u32> = places.iter().flatten().copied().collect();
            prop_assert_eq!(estimate.used(), (places.iter().flatten().count(), used.len()));
        }
        estimate.undo(Mark(0));
        prop_assert_eq!((estimate.ticks(), estimate.summed_ticks()), (0, 0));
        prop_assert!((0..machine.links()).all(|link| !estimate.is_link_used(link)));
    }
}

//! Small problems with little room: a placement under constraints is found exactly if there is one.

use std::sync::Arc;

use equipoise_model::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place};
use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{Database, Topology, testing, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::registry;
use rand_core::RngCore;

use crate::constraints::{answer, can_be_kept, loads};

/// Random constraints that a random placement keeps, for objects that all begin on PE 0.
fn problem(seed: u64) -> (Database, Arc<dyn Topology>) {
    let mut random = generator(seed, 0);
    let mut pick = |bound: u64| below(&mut random, bound);
    let (nodes, width) = (2 + pick(3), 1 + pick(3));
    let machine = topology::parse(&format!("flat:{nodes}*flat:{width}")).expect("a machine");
    let pes = nodes * width;
    let objects = 5 + pick(12);
    let solution: Vec<u64> = (0..objects).map(|_| pick(pes)).collect();
    let loads: Vec<(f64, u32)> = (0..objects).map(|_| (1.0 + pick(9) as f64, 0)).collect();
    let sizes: Vec<u64> = (0..objects).map(|_| 1 + pick(9)).collect();
    let most = |of: &dyn Fn(usize) -> u64, spare: u64, pick: &mut dyn FnMut(u64) -> u64| {
        let mut most = vec![0; pes as usize];
        (0..objects as usize).for_each(|at| most[solution[at] as usize] += of(at));
        most.iter_mut().for_each(|most| *most += pick(spare + 1));
        PerPe::Each(most)
    };
    let spare = pick(4);
    let memory = (pick(4) > 0).then(|| most(&|at| sizes[at], spare, &mut pick));
    let counts = (pick(3) == 0).then(|| most(&|_| 1, 1, &mut pick));
    let node = |at: usize| solution[at] / width;
    let mut places = String::new();
    for (at, pe) in solution.iter().enumerate() {
        match pick(8) {
            0 => places += &format!("{at} node:{}\n", pe / width),
            1 => places += &format!("{at} !{}\n", (pe + 1) % pes),
            _ => (),
        }
    }
    let mut groups = Vec::new();
    for _ in 0..1 + pick(4) {
        let mut members: Vec<usize> = (0..objects as usize).collect();
        shuffle(&mut random, &mut members);
        let together = random.next_u32() % 3 > 0;
        let first = node(members[0]);
        let mut used = std::collections::BTreeSet::new();
        members.retain(|&at| if together { node(at) == first } else { used.insert(node(at)) });
        members.truncate(2 + below(&mut random, 3) as usize);
        let objects = members.into_iter().map(|at| at as u64).collect();
        groups.push(Group { together, level: Level::Node, objects });
    }
    groups.retain(|group| group.objects.len() > 1);
    let constraints = Constraints {
        max_objects: counts.map(|most| MaxObjects { most, exact: false }),
        memory,
        object_bytes: (0..).zip(sizes).collect(),
        places: Place::parse(&places).expect("places"),
        groups,
        ..Constraints::default()
    };
    (Database { constraints, ..testing::database(pes as usize, &loads) }, machine)
}

#[test]
fn constraints_that_a_placement_keeps_are_not_refused() {
    let mut refused = Vec::new();
    for seed in 0..600 {
        let (database, machine) = problem(seed);
        for spec in ["GreedyRefineLB", "PoiseLB"] {
            let choice = keep(&registry::parse(spec, &[]).expect("a strategy"));
            if let Err(error) = choice.strategy.assign(&database, &*machine, 1) {
                refused.push(format!("{seed}, {spec}: {error}"));
            }
        }
    }
    assert!(refused.is_empty(), "{} of 1200:\n{}", refused.len(), refused.join("\n"));
}

/// Databases with 6 objects, most of whose constraints leave little room: a placement is found exactly if there is one.
#[test]
fn no_placement_is_missed_in_small_problems() {
    let mut possible = 0;
    for seed in 0..400u64 {
        let mut random = generator(seed, 0);
        let mut number = |most: u64| below(&mut random, most);
        let database = loads(&[1.0; 6]);
        let sizes: Vec<u64> = (0..6).map(|_| 1 + number(9)).collect();
        let memory: Vec<u64> = (0..6).map(|_| number(14)).collect();
        let groups: Vec<(bool, bool, Vec<usize>)> = (0..3)
            .map(|_| {
                let first = number(6) as usize;
                let second = (first + 1 + number(5) as usize) % 6;
                (number(3) == 0, number(2) == 0, vec![first, second])
            })
            .collect();
        let constraints = Constraints {
            memory: Some(PerPe::Each(memory.clone())),
            object_bytes: (0..).zip(sizes.iter().copied()).collect(),
            groups: groups
                .iter()
                .map(|(together, is_pe, of)| Group {
                    together: *together,
                    level: if *is_pe { Level::Pe } else { Level::Node },
                    objects: of.iter().map(|&at| at as u64).collect(),
                })
                .collect(),
            ..Constraints::default()
        };
        let choice = registry::parse("GreedyRefineLB", &[]).expect("a strategy");
        let is_possible = can_be_kept(&database, &sizes, Some(&memory), &groups);
        possible += u32::from(is_possible);
        match answer(&database, &choice, &constraints) {
            Ok(_) => assert!(is_possible, "{seed}"),
            Err(why) => assert!(!is_possible && !why.starts_with("no placement was found"), "{seed}: {why}"),
        }
    }
    assert!((50..350).contains(&possible), "{possible}");
}

//! Small problems with little room: a placement under constraints is found exactly if there is one.

use std::collections::BTreeSet;
use std::sync::Arc;

use equipoise_model::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place};
use equipoise_model::random::{below, generator};
use equipoise_model::{Database, Topology, testing, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::registry;

use crate::constraints::{answer, can_be_kept, loads};

/// Random constraints that a random placement keeps. Objects begin on PE 0, but those that cannot move.
fn problem(seed: u64) -> (Database, Arc<dyn Topology>) {
    let mut random = generator(seed, 0);
    let mut pick = |bound: u64| below(&mut random, bound);
    let (has_switches, width) = (pick(3) == 0, 1 + pick(3));
    let nodes = if has_switches { 4 } else { 2 + pick(3) };
    let network = if has_switches { "tree:2:2".into() } else { format!("flat:{nodes}") };
    let machine = topology::parse(&format!("{network}*flat:{width}")).expect("a machine");
    let pes = nodes * width;
    let objects = 5 + pick(12);
    let solution: Vec<u64> = (0..objects).map(|_| pick(pes)).collect();
    let loads: Vec<(f64, u32)> = (0..objects).map(|_| (1.0 + pick(9) as f64, 0)).collect();
    let mut database = testing::database(pes as usize, &loads);
    for (object, &pe) in database.objects.iter_mut().zip(&solution) {
        if pick(8) == 0 {
            (object.migratable, object.pe) = (false, pe as u32);
        }
    }
    let has_movable =
        |pe: u64| database.objects.iter().zip(&solution).any(|(it, &at)| it.migratable && at == pe);
    let open: Vec<bool> = (0..pes).map(|pe| has_movable(pe) || pick(3) > 0).collect();
    database.pes.iter_mut().zip(open).for_each(|(pe, is_open)| pe.available = is_open);
    let sizes: Vec<u64> = (0..objects).map(|_| 1 + pick(9)).collect();
    let most = |of: &dyn Fn(usize) -> u64, spare: u64, pick: &mut dyn FnMut(u64) -> u64| {
        let mut most = vec![0; pes as usize];
        (0..objects as usize).for_each(|at| most[solution[at] as usize] += of(at));
        most.iter_mut().for_each(|most| *most += pick(spare + 1));
        PerPe::Each(most)
    };
    let (spare, exact) = (pick(4), pick(2) == 0);
    let memory = (pick(4) > 0).then(|| most(&|at| sizes[at], spare, &mut pick));
    let counts = (pick(3) == 0).then(|| most(&|_| 1, u64::from(!exact), &mut pick));
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
        let (level, size) = match pick(4) {
            0 => (Level::Pe, 1),
            1 if has_switches => (Level::Switch, 2 * width),
            _ => (Level::Node, width),
        };
        let (together, number) = (pick(3) > 0, 2 + pick(3) as usize);
        let part = |at: usize| solution[at] / size;
        let mut members: Vec<usize> = (0..objects as usize).collect();
        members.rotate_left(pick(objects) as usize);
        let first = part(members[0]);
        let mut used = BTreeSet::new();
        members.retain(|&at| if together { part(at) == first } else { used.insert(part(at)) });
        members.truncate(number);
        let objects: Vec<u64> = members.into_iter().map(|at| at as u64).collect();
        if objects.len() > 1 {
            groups.push(Group { together, level, objects });
        }
    }
    let constraints = Constraints {
        max_objects: counts.map(|most| MaxObjects { most, exact }),
        memory,
        object_bytes: (0..).zip(sizes).collect(),
        places: Place::parse(&places).expect("places"),
        groups,
        ..Constraints::default()
    };
    (Database { constraints, ..database }, machine)
}

#[test]
fn constraints_that_a_placement_keeps_are_not_refused() {
    let mut refused = Vec::new();
    for seed in 0..300 {
        let (database, machine) = problem(seed);
        for spec in ["GreedyRefineLB", "PoiseLB"] {
            let choice = keep(&registry::parse(spec, &[]).expect("a strategy"));
            if let Err(error) = choice.strategy.assign(&database, &*machine, 1) {
                refused.push(format!("{seed}, {spec}: {error}"));
            }
        }
    }
    assert!(refused.is_empty(), "{} of 600:\n{}", refused.len(), refused.join("\n"));
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

/// As many objects as PEs and one more, of which no two fit on a PE: that there is no placement is proven at once.
#[test]
fn equal_pes_are_not_all_tried() {
    for pes in [9, 30] {
        let (machine, objects) =
            (topology::parse(&format!("flat:{pes}")).expect("a machine"), pes as u64 + 1);
        let constraints = Constraints {
            memory: Some(PerPe::All(11)),
            object_bytes: (0..objects).map(|object| (object, 6)).collect(),
            ..Constraints::default()
        };
        let all = vec![(1.0, 0); objects as usize];
        let database = Database { constraints, ..testing::database(pes, &all) };
        let choice = keep(&registry::parse("GreedyRefineLB", &[]).expect("a strategy"));
        let error = choice.strategy.assign(&database, &*machine, 1).expect_err("no room").to_string();
        assert!(
            error.contains("no placement exists, as a complete search shows; loosen --memory"),
            "{error}"
        );
    }
}

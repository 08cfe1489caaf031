//! Every strategy keeps constraints; what is called impossible is.

use std::sync::Arc;

use equipoise_model::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place};
use equipoise_model::database::Database;
use equipoise_model::{Topology, testing, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::{StrategyError, registry};
use proptest::prelude::*;

use crate::contracts::{choices, databases, mapping_file};

/// The machine of the random cases: 3 nodes with 2 PEs each.
const MACHINE: &str = "flat:3*flat:2";

/// Places of an object, as in a file of places, with the PEs that they mean on [`MACHINE`].
const PLACES: [(&str, &[u32]); 6] = [
    ("0", &[0]),
    ("5", &[5]),
    ("0-2", &[0, 1, 2]),
    ("node:1", &[2, 3]),
    ("!4", &[0, 1, 2, 3, 5]),
    ("0,3,node:2", &[0, 3, 4, 5]),
];

/// Places of objects: pairs of object and position in [`PLACES`], at most one for each object.
fn places(of: &[(u64, usize)]) -> Vec<Place> {
    let text: String = of.iter().map(|(object, place)| format!("{object} {}\n", PLACES[*place].0)).collect();
    Place::parse(&text).expect("places")
}

/// The PEs where each object may be, found without the code that is tested.
fn allowed(database: &Database, of: &[(u64, usize)]) -> Vec<Vec<u32>> {
    let of_object = |at: usize| {
        let object = &database.objects[at];
        let listed = of.iter().find(|of| of.0 == object.id).map(|of| PLACES[of.1].1.to_vec());
        let may = listed.unwrap_or_else(|| (0..6).collect());
        let is_open = |pe: &u32| database.pes[*pe as usize].available;
        match object.migratable {
            true => may.into_iter().filter(is_open).collect(),
            false => may.into_iter().filter(|&pe| pe == object.pe).collect(),
        }
    };
    (0..database.objects.len()).map(of_object).collect()
}

/// Whether `objects` can be placed if PE `p` takes `room[p]` of them: Kuhn's algorithm, each place by itself.
fn can_be_placed(objects: &[usize], allowed: &[Vec<u32>], room: &[u64]) -> bool {
    fn find(
        object: usize,
        allowed: &[Vec<u32>],
        room: &[u64],
        seen: &mut [bool],
        on: &mut [Vec<usize>],
    ) -> bool {
        for &pe in &allowed[object] {
            let pe = pe as usize;
            if std::mem::replace(&mut seen[pe], true) {
                continue;
            }
            if (on[pe].len() as u64) < room[pe] {
                on[pe].push(object);
                return true;
            }
            for at in 0..on[pe].len() {
                let other = on[pe][at];
                if find(other, allowed, room, seen, on) {
                    on[pe][at] = object;
                    return true;
                }
            }
        }
        false
    }
    let mut on = vec![Vec::new(); room.len()];
    objects.iter().all(|&object| find(object, allowed, room, &mut vec![false; room.len()], &mut on))
}

/// The numbers between two parts of a sentence.
fn numbers<'a>(sentence: &'a str, before: &str, after: &str) -> Vec<u64> {
    let rest: &'a str = sentence.split_once(before).expect("the sentence").1;
    let list = rest.split_once(after).expect("the sentence").0;
    list.split(", ").map(|number| number.parse().expect("a number")).collect()
}

/// Whether some placement keeps memory and groups: all placements are tried.
pub(crate) fn can_be_kept(
    database: &Database,
    sizes: &[u64],
    memory: Option<&[u64]>,
    groups: &[(bool, bool, Vec<usize>)],
) -> bool {
    let objects = database.objects.len();
    let keeps = |pe_of: &[u32]| {
        let fits = memory.is_none_or(|memory| {
            (0..6).all(|pe| {
                let on = (0..objects).filter(|&at| pe_of[at] as usize == pe);
                on.map(|at| sizes[at]).sum::<u64>() <= memory[pe]
            })
        });
        fits && groups.iter().all(|(together, is_pe, of)| {
            let mut parts: Vec<u32> =
                of.iter().map(|&at| if *is_pe { pe_of[at] } else { pe_of[at] / 2 }).collect();
            parts.sort_unstable();
            parts.dedup();
            if *together { parts.len() <= 1 } else { parts.len() == of.len() }
        })
    };
    let mut pe_of = vec![0u32; objects];
    let is_possible = |pe_of: &[u32]| {
        database.objects.iter().zip(pe_of).all(|(object, &pe)| {
            // As in `allowed`, objects that can move leave PEs that are not available.
            if object.migratable { database.pes[pe as usize].available } else { pe == object.pe }
        })
    };
    loop {
        if is_possible(&pe_of) && keeps(&pe_of) {
            return true;
        }
        let Some(at) = pe_of.iter().position(|&pe| pe < 5) else { return false };
        pe_of[..at].fill(0);
        pe_of[at] += 1;
    }
}

fn machine() -> Arc<dyn Topology> {
    topology::parse(MACHINE).expect("a machine")
}

/// A strategy of the registry.
fn choice(database: &Database, number: usize) -> Choice {
    let file = mapping_file(database);
    let all = choices(file.path());
    let choice = all[number % all.len()].clone();
    // FileLB reads its file at every call.
    if choice.spec.contains("FileLB") { all[0].clone() } else { choice }
}

/// The answer under constraints, checked; or the sentence that refuses them.
pub(crate) fn answer(
    database: &Database,
    choice: &Choice,
    constraints: &Constraints,
) -> Result<Vec<u32>, String> {
    let database = Database { constraints: constraints.clone(), ..database.clone() };
    match keep(choice).strategy.assign(&database, &*machine(), 1) {
        Ok(answer) => {
            answer.check(&database).expect("a possible placement");
            Ok(answer.pe_of)
        }
        Err(StrategyError::Constraints(sentence) | StrategyError::Data(sentence)) => Err(sentence),
        Err(error) => panic!("{}: {error}", choice.spec),
    }
}

/// How many objects are on each PE.
fn counts(pe_of: &[u32]) -> [u64; 6] {
    let mut counts = [0; 6];
    pe_of.iter().for_each(|&pe| counts[pe as usize] += 1);
    counts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// Counts and places: a placement is found if there is one; otherwise the named objects have too few places, and no part of them has.
    #[test]
    fn counts_and_places(
        database in databases(6, 1..14usize, 0..20usize),
        of in prop::collection::btree_map(0..14usize, 0..PLACES.len(), 0..10),
        room in prop::collection::vec(0..4u64, 6),
        number in any::<usize>(),
    ) {
        let objects = database.objects.len();
        let of: Vec<(u64, usize)> =
            of.into_iter().filter(|of| of.0 < objects).map(|(at, place)| (database.objects[at].id, place)).collect();
        let constraints = Constraints {
            max_objects: Some(MaxObjects { most: PerPe::Each(room.clone()), exact: false }),
            places: places(&of),
            ..Constraints::default()
        };
        let allowed = allowed(&database, &of);
        let all: Vec<usize> = (0..objects).collect();
        let choice = choice(&database, number);
        match answer(&database, &choice, &constraints) {
            Ok(pe_of) => {
                for (object, pe) in pe_of.iter().enumerate() {
                    prop_assert!(allowed[object].contains(pe), "{}: object {object} on {pe}", choice.spec);
                }
                for (pe, (has, takes)) in counts(&pe_of).into_iter().zip(&room).enumerate() {
                    prop_assert!(has <= *takes, "{}: PE {pe} has {has}", choice.spec);
                }
            }
            Err(sentence) => {
                prop_assert!(!can_be_placed(&all, &allowed, &room), "{}: {sentence}", choice.spec);
                if sentence.contains(" may be on PE") && !sentence.contains(" and ") {
                    let first = if sentence.contains(": objects ") { ": objects " } else { ": object " };
                    let ids = numbers(&sentence, first, " may be");
                    let named: Vec<usize> =
                        all.iter().copied().filter(|&at| ids.contains(&database.objects[at].id)).collect();
                    // Objects that cannot move occupy their places.
                    let mut left = room.clone();
                    for object in database.objects.iter().filter(|object| !object.migratable) {
                        left[object.pe as usize] = left[object.pe as usize].saturating_sub(1);
                    }
                    prop_assert!(!can_be_placed(&named, &allowed, &left), "{sentence}");
                    for without in 0..named.len() {
                        let mut fewer = named.clone();
                        fewer.remove(without);
                        prop_assert!(can_be_placed(&fewer, &allowed, &left), "{sentence}, without the {without}th");
                    }
                }
            }
        }
    }

    /// Memory and groups: an answer keeps them, and what is called impossible is.
    #[test]
    fn memory_and_groups(
        database in databases(6, 2..14usize, 0..20usize),
        groups in prop::collection::vec((any::<bool>(), 0..2u8, prop::collection::btree_set(0..14usize, 2..4usize)), 0..4),
        memory in prop::collection::vec(0..40u64, 6),
        has_memory in any::<bool>(),
        number in any::<usize>(),
    ) {
        let objects = database.objects.len();
        let sizes: Vec<u64> = (0..objects as u64).map(|at| at * 7 % 11).collect();
        let groups: Vec<(bool, bool, Vec<usize>)> = groups
            .into_iter()
            .map(|(together, level, of)| (together, level == 0, of.into_iter().filter(|&at| at < objects).collect()))
            .collect();
        let named = |of: &[usize]| of.iter().map(|&at| database.objects[at].id).collect();
        let constraints = Constraints {
            memory: has_memory.then(|| PerPe::Each(memory.clone())),
            object_bytes: database.objects.iter().zip(&sizes).map(|(object, &size)| (object.id, size)).collect(),
            groups: groups
                .iter()
                .map(|(together, is_pe, of)| Group {
                    together: *together,
                    level: if *is_pe { Level::Pe } else { Level::Node },
                    objects: named(of),
                })
                .collect(),
            ..Constraints::default()
        };
        let choice = choice(&database, number);
        let pe_of = match answer(&database, &choice, &constraints) {
            Ok(pe_of) => pe_of,
            Err(sentence) => {
                // Only what is proven is called impossible.
                let is_proof = !sentence.starts_with("no placement was found");
                let may_be = || can_be_kept(&database, &sizes, has_memory.then_some(&memory[..]), &groups);
                prop_assert!(!is_proof || objects > 7 || !may_be(), "{}: {sentence}", choice.spec);
                return Ok(());
            }
        };
        for pe in 0..6u32 {
            let bytes: u64 = (0..objects).filter(|&at| pe_of[at] == pe).map(|at| sizes[at]).sum();
            prop_assert!(!has_memory || bytes <= memory[pe as usize], "{}: PE {pe} has {bytes} bytes", choice.spec);
        }
        for (together, is_pe, of) in &groups {
            let part = |at: &usize| if *is_pe { pe_of[*at] } else { pe_of[*at] / 2 };
            for pair in of.windows(2) {
                prop_assert!(!together || part(&pair[0]) == part(&pair[1]), "{}: {of:?}", choice.spec);
            }
            let distinct: std::collections::BTreeSet<u32> = of.iter().map(part).collect();
            prop_assert!(*together || distinct.len() == of.len(), "{}: {of:?}", choice.spec);
        }
    }

    /// Constraints that bind nothing change nothing.
    #[test]
    fn room_for_all(database in databases(6, 1..14usize, 0..20usize), number in any::<usize>()) {
        let choice = choice(&database, number);
        let bare = choice.strategy.assign(&database, &*machine(), 1).expect("an answer");
        let objects = database.objects.len() as u64;
        let constraints = Constraints {
            max_objects: Some(MaxObjects { most: PerPe::All(objects), exact: false }),
            ..Constraints::default()
        };
        if database.objects.iter().zip(&bare.pe_of).all(|(_, &pe)| database.pes[pe as usize].available) {
            prop_assert_eq!(answer(&database, &choice, &constraints), Ok(bare.pe_of), "{}", choice.spec);
        }
    }
}

/// Objects without load on PE 0 of [`MACHINE`], with these loads.
pub(crate) fn loads(loads: &[f64]) -> Database {
    testing::database(6, &loads.iter().map(|&load| (load, 0)).collect::<Vec<_>>())
}

#[track_caller]
pub(crate) fn refuses(constraints: &Constraints, database: &Database, expected: &str) {
    let choice = registry::parse("GreedyLB", &[]).expect("a strategy");
    let error = answer(database, &choice, constraints).expect_err(expected);
    assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
}

#[test]
fn impossible_constraints_are_named() {
    let database = loads(&[1.0; 7]);
    let most =
        |most, exact| Constraints { max_objects: Some(MaxObjects { most, exact }), ..Constraints::default() };
    refuses(
        &most(PerPe::All(1), false),
        &database,
        "the PEs take at most 6 objects, and there are 7 objects",
    );
    refuses(
        &most(PerPe::All(2), true),
        &database,
        "the PEs take exactly 12 objects, and there are 7 objects",
    );
    refuses(
        &most(PerPe::Each(vec![7; 5]), false),
        &database,
        "`max_objects` has 5 numbers, and `flat:3*flat:2` has 6 PEs",
    );
    let three = Constraints { places: places(&[(0, 3), (1, 3), (2, 3)]), ..most(PerPe::All(1), false) };
    refuses(
        &three,
        &loads(&[1.0; 4]),
        "no placement exists: objects 0, 1, 2 may be on PEs 2, 3 only, which have 2 places for them",
    );
    refuses(
        &Constraints { places: Place::parse("0 2\n1 2").expect("places"), ..most(PerPe::All(1), false) },
        &loads(&[1.0; 4]),
        "no placement exists: objects 0, 1 may be on PE 2 only, which has 1 place for them",
    );
    let memory = |bytes| Constraints {
        memory: Some(PerPe::All(bytes)),
        object_bytes: (0..7).map(|object| (object, 10)).collect(),
        ..Constraints::default()
    };
    refuses(&memory(11), &database, "the objects have 70 bytes, and the available PEs have room for 66");
    refuses(&memory(19), &database, "no placement exists, as a complete search shows; loosen --memory");
    let unknown = Constraints { memory: Some(PerPe::All(1)), ..Constraints::default() };
    refuses(&unknown, &database, "`memory` needs the size of object 0, which is not recorded");
    let group = |together, level, objects: &[u64]| Group { together, level, objects: objects.to_vec() };
    let both = Constraints {
        groups: vec![group(true, Level::Pe, &[0, 1, 2]), group(false, Level::Node, &[0, 2])],
        ..Constraints::default()
    };
    refuses(&both, &database, "two of the objects [0, 2] must be apart");
    let switch = Constraints { groups: vec![group(true, Level::Switch, &[0, 1])], ..Constraints::default() };
    refuses(&switch, &database, "has no switches");
    let nowhere = Constraints { places: Place::parse("0 9").expect("places"), ..Constraints::default() };
    refuses(&nowhere, &database, "the places `9` have no PE 9: `flat:3*flat:2` has PEs 0 to 5");
    refuses(
        &Constraints { places: Place::parse("70 0").expect("places"), ..Constraints::default() },
        &database,
        "there is no object 70 among 7 objects",
    );
}

#[test]
fn groups_leave_room_for_each_other() {
    // Each object next to the following one is apart from it; two PEs are enough.
    let apart = |a: u64, b: u64| Group { together: false, level: Level::Pe, objects: vec![a, b] };
    let chain = Constraints {
        groups: vec![apart(0, 1), apart(1, 2), apart(2, 3)],
        places: places(&[(0, 3), (1, 3), (2, 3), (3, 3)]),
        ..Constraints::default()
    };
    let mut database = testing::database(6, &[(1.0, 2), (1.0, 2), (1.0, 3), (1.0, 3)]);
    let choice = registry::parse("DummyLB", &[]).expect("a strategy");
    let pe_of = answer(&database, &choice, &chain).expect("a placement");
    assert!(pe_of[0] == pe_of[2] && pe_of[1] == pe_of[3] && pe_of[0] != pe_of[1], "{pe_of:?}");
    // Two groups that fill a node each.
    let together = |a: u64, b: u64| Group { together: true, level: Level::Node, objects: vec![a, b] };
    let full = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
        groups: vec![together(0, 2), together(1, 3)],
        ..Constraints::default()
    };
    let pe_of = answer(&database, &choice, &full).expect("a placement");
    assert!(pe_of[0] / 2 == pe_of[2] / 2 && pe_of[1] / 2 == pe_of[3] / 2, "{pe_of:?}");
    // A chain of groups with a fixed object.
    database.objects[2].migratable = false;
    let chained = Constraints { groups: vec![together(0, 1), together(1, 2)], ..Constraints::default() };
    let pe_of = answer(&database, &choice, &chained).expect("a placement");
    assert_eq!([pe_of[0] / 2, pe_of[1] / 2, pe_of[2]], [1, 1, 3]);
}

#[test]
fn exact_counts_are_balanced_by_exchanges() {
    // With two objects on each PE, the best heaviest PE has 6 + 1.
    let database = loads(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let constraints = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(2), exact: true }),
        ..Constraints::default()
    };
    for spec in ["GreedyRefineLB", "RefineLB", "PoiseLB", "DummyLB"] {
        let choice = registry::parse(spec, &[]).expect("a strategy");
        let pe_of = answer(&database, &choice, &constraints).expect("a placement");
        assert_eq!(counts(&pe_of), [2; 6]);
        let mut seconds = [0.0; 6];
        pe_of
            .iter()
            .zip(&database.objects)
            .for_each(|(&pe, object)| seconds[pe as usize] += object.load_seconds);
        let heaviest = seconds.into_iter().fold(0.0, f64::max);
        // An answer that moves nothing has no limit that the exchanges must reach.
        assert!(heaviest <= 8.0 || spec == "DummyLB", "{spec}: {seconds:?}");
    }
}

#[test]
fn wishes_are_granted_if_they_are_worth_it() {
    let database = loads(&[4.0, 1.0, 1.0]);
    let choice = registry::parse("GreedyLB", &[]).expect("a strategy");
    let with = |text: &str| {
        let places = Place::parse(text).expect("places");
        answer(&database, &choice, &Constraints { places, ..Constraints::default() }).expect("a placement")
    };
    let heavy = with("0 0")[0];
    assert_eq!(heavy, 0);
    // Next to the heavy object, an object makes the heaviest PE heavier by a second.
    assert_eq!(with("0 0\n1 0 1.5")[1], 0);
    assert_ne!(with("0 0\n1 0 0.5")[1], 0);
    // Where all PEs are full, objects are exchanged.
    let database = loads(&[1.0; 12]);
    let constraints = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(2), exact: true }),
        places: Place::parse("0 5 5\n1 4 5\n2 4 5\n3 4 0.1").expect("places"),
        ..Constraints::default()
    };
    let pe_of = answer(&database, &choice, &constraints).expect("a placement");
    assert!(counts(&pe_of) == [2; 6] && pe_of[0] == 5 && pe_of[1] == 4 && pe_of[2] == 4, "{pe_of:?}");
    // A wish does not revoke one that is worth more.
    assert_eq!(with("0 3 10\n0 2 0.1")[0], 3);
    assert_eq!(with("0 2 0.1\n0 3 10")[0], 3);
}

#[test]
fn loads_by_phase_are_balanced_in_every_phase() {
    // Objects 0 to 5 work in the first phase only, 6 to 11 in the second. The sum of loads is equal if phases are separated, but the
    // slowest PEs of both phases together take 4 s instead of 2.
    let database = loads(&[1.0; 12]);
    let phases = (0..12).map(|at| (at, if at < 6 { vec![1.0, 0.0] } else { vec![0.0, 1.0] })).collect();
    let constraints = Constraints { phases, ..Constraints::default() };
    let machine = machine();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "0\n0\n1\n1\n2\n2\n3\n3\n4\n4\n5\n5\n").expect("a mapping");
    let choice = registry::parse(&format!("FileLB:path={}", file.path().display()), &[]).expect("a strategy");
    let apart = choice.strategy.assign(&database, &*machine, 0).expect("a mapping").pe_of;
    let slowest = |pe_of: &[u32]| {
        let of = |first: usize| counts(&pe_of[first..first + 6]).into_iter().max().unwrap_or(0);
        of(0) + of(6)
    };
    assert_eq!(slowest(&apart), 4);
    let placed = answer(&database, &choice, &constraints).expect("a placement");
    assert_eq!(slowest(&placed), 2);
    let database = Database { constraints, ..database };
    let seconds = |pe_of: &[u32]| Metrics::of(&database, &*machine, pe_of).phases_seconds;
    assert_eq!([seconds(&apart), seconds(&placed)], [Some(4.0), Some(2.0)]);
}

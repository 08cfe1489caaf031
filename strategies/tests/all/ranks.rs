//! Constraints of ranks, which have a PE each; placements that are already there; and conflicts, which name all that take part.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use equipoise_model::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place};
use equipoise_model::database::Database;
use equipoise_model::random::{below, generator};
use equipoise_model::{Topology, testing, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::{registry, workloads};

use crate::constraints::{answer, loads, refuses};

/// 64 ranks in a halo exchange, each on a PE of its own of a machine with 2 switches, 8 nodes and 64 PEs.
fn ranks() -> (Database, Arc<dyn Topology>) {
    let machine = topology::parse("tree:2:4*flat:8").expect("a machine");
    let database = workloads::load("mesh:8x8,bytes=1000").expect("a graph").remap(64);
    let own: Vec<u32> = (0..64).collect();
    (database.placed(&own), machine)
}

/// The placements of ranks by several strategies under constraints, with at most one rank on each PE.
fn placed_ranks(constraints: &Constraints, specs: &[&str]) -> Vec<Vec<u32>> {
    let (database, machine) = ranks();
    let database = Database { constraints: constraints.clone(), ..database };
    let place = |spec: &&str| {
        let choice = keep(&registry::parse(spec, &[]).expect("a strategy"));
        let answer =
            choice.strategy.assign(&database, &*machine, 3).unwrap_or_else(|why| panic!("{spec}: {why}"));
        let mut counts = [0; 64];
        answer.pe_of.iter().for_each(|&pe| counts[pe as usize] += 1);
        assert_eq!(counts, [1; 64], "{spec}: ranks share PEs, and others are empty");
        answer.pe_of
    };
    specs.iter().map(place).collect()
}

#[test]
fn ranks_keep_a_pe_each() {
    let specs = ["PoiseLB", "HierTopoMap", "TopoLB", "DummyLB", "TreeMatch"];
    let group = |level, objects: Vec<u64>| Group { together: true, level, objects };
    let one = Constraints { groups: vec![group(Level::Node, (0..6).collect())], ..Constraints::default() };
    for pe_of in placed_ranks(&one, &specs) {
        assert!(pe_of[..6].iter().all(|pe| pe / 8 == pe_of[0] / 8), "{pe_of:?}");
    }
    let sets = Place::parse("3 8-15\n9 8-15\n60 node:1\n61 node:1\n20 0,63\n").expect("places");
    let places = Constraints { places: sets, ..Constraints::default() };
    for pe_of in placed_ranks(&places, &specs) {
        assert!([3, 9, 60, 61].iter().all(|&rank: &usize| pe_of[rank] / 8 == 1), "{pe_of:?}");
        assert!([0, 63].contains(&pe_of[20]), "{pe_of:?}");
    }
}

#[test]
fn groups_of_nodes_and_switches_count_on_each_other() {
    let group = |level, objects: Vec<u64>| Group { together: true, level, objects };
    for (switch, node) in [(0..31, 40..48), (20..50, 0..8), (1..25, 2..10), (5..37, 40..48)] {
        let constraints = Constraints {
            max_objects: Some(MaxObjects { most: PerPe::All(1), exact: true }),
            groups: vec![
                group(Level::Switch, switch.clone().collect()),
                group(Level::Node, node.clone().collect()),
            ],
            ..Constraints::default()
        };
        for pe_of in placed_ranks(&constraints, &["PoiseLB", "RotateLB", "DummyLB"]) {
            let parts = |ranks: Range<u64>, size: u32| {
                ranks.map(|rank| pe_of[rank as usize] / size).collect::<BTreeSet<_>>()
            };
            assert_eq!((parts(switch.clone(), 32).len(), parts(node.clone(), 8).len()), (1, 1), "{pe_of:?}");
        }
    }
}

#[test]
fn a_placement_that_is_there_is_found() {
    // Three objects fill each PE, so others rarely fit in their places.
    for seed in 0..40 {
        let mut random = generator(seed, 0);
        let sizes: Vec<u64> = (0..18).map(|_| 1 + below(&mut random, 50)).collect();
        let start: Vec<(f64, u32)> = (0..18).map(|at| (1.0 + f64::from(at), at / 3)).collect();
        let constraints = Constraints {
            memory: Some(PerPe::Each(sizes.chunks(3).map(|of_pe| of_pe.iter().sum()).collect())),
            object_bytes: (0..).zip(sizes.iter().copied()).collect(),
            ..Constraints::default()
        };
        let choice = registry::parse("GreedyLB", &[]).expect("a strategy");
        answer(&testing::database(6, &start), &choice, &constraints).expect("the placement before keeps it");
    }
}

#[test]
fn conflicts_name_all_that_take_part() {
    let one = |places: &str| Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
        places: Place::parse(places).expect("places"),
        ..Constraints::default()
    };
    let database = loads(&[1.0; 6]);
    let mut stay = database.clone();
    stay.objects[..2].iter_mut().for_each(|object| object.migratable = false);
    refuses(
        &one(""),
        &stay,
        "object 1 must be on PE 0, which takes at most 1 object and has object 0; change --max-objects or --fixed",
    );
    stay.objects[..3].iter_mut().zip([3, 0, 4]).for_each(|(object, pe)| object.pe = pe);
    stay.objects[1].migratable = true;
    stay.objects[2].migratable = false;
    refuses(
        &one("1 3-4\n"),
        &stay,
        "object 1 may be on PEs 3, 4 only, which have 0 places for it in addition to objects 0, 2, which must be there",
    );
    let group = |together, level, objects: &[u64]| Group { together, level, objects: objects.to_vec() };
    let groups = |groups: Vec<Group>| Constraints { groups, ..Constraints::default() };
    refuses(
        &groups(vec![group(true, Level::Node, &[0, 1, 2]), group(false, Level::Node, &[2, 0])]),
        &database,
        "objects 0 and 2 must be apart, and groups keep them together at the level node",
    );
    let torn = Constraints {
        places: Place::parse("0 0\n1 2\n").expect("places"),
        ..groups(vec![group(true, Level::Node, &[0, 1])])
    };
    refuses(&torn, &database, "where --fixed and other groups allow it");
    let wide = Constraints { groups: vec![group(true, Level::Pe, &[0, 1])], ..one("") };
    refuses(
        &wide,
        &database,
        "object 0 and the 1 object with it fit on no PE: they must be on one PE, and no PE where they may be takes 2 objects more",
    );
}

#[test]
fn a_mapping_file_goes_with_groups_on_one_pe() {
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), "5\n4\n3\n2\n1\n0\n").expect("a temporary file can be written");
    let choice = registry::parse(&format!("FileLB:path={}", file.path().display()), &[]).expect("a strategy");
    let together = Group { together: true, level: Level::Pe, objects: vec![1, 3] };
    let constraints = Constraints { groups: vec![together], ..Constraints::default() };
    assert_eq!(answer(&loads(&[1.0; 6]), &choice, &constraints), Ok(vec![5, 4, 3, 4, 1, 0]));
}

#[test]
fn wishes_may_put_ranks_on_one_pe() {
    // Sharing a PE takes a second more, and each wish is worth five.
    let constraints =
        Constraints { places: Place::parse("0 0 5\n1 0 5\n").expect("places"), ..Constraints::default() };
    let own: Vec<(f64, u32)> = (0..6).map(|pe| (1.0, pe)).collect();
    let choice = registry::parse("DummyLB", &[]).expect("a strategy");
    let pe_of = answer(&testing::database(6, &own), &choice, &constraints).expect("a placement");
    assert_eq!(pe_of[..2], [0, 0], "{pe_of:?}");
}

#[test]
fn objects_that_stay_have_their_room() {
    // Node 0 has room for one object in addition to the one that stays there.
    let mut database = testing::database(6, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
    database.objects[0].migratable = false;
    let constraints = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
        groups: vec![Group { together: true, level: Level::Node, objects: vec![1, 2] }],
        ..Constraints::default()
    };
    let choice = registry::parse("DummyLB", &[]).expect("a strategy");
    let pe_of = answer(&database, &choice, &constraints).expect("a placement");
    assert!(pe_of[0] == 0 && pe_of[1] / 2 == pe_of[2] / 2 && pe_of[1] > 1, "{pe_of:?}");
}

#[test]
fn ranks_that_have_the_best_places_stay() {
    let machine = topology::parse("torus:8x8").expect("a machine");
    let database = workloads::load("mesh:8x8,bytes=1000").expect("a graph").remap(64);
    let own: Vec<u32> = (0..64).collect();
    let database = database.placed(&own);
    for spec in ["PoiseLB", "PoiseLB:quality=fast", "PoiseLB:quality=best"] {
        let choice = registry::parse(spec, &[]).expect("a strategy");
        let answer = choice.strategy.assign(&database, &*machine, 7).expect("an answer");
        assert_eq!(answer.pe_of, own, "{spec}: all neighbors are one hop away, as before");
    }
}

//! Placements under constraints have few hop-bytes, or few migrations.

use equipoise_model::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place};
use equipoise_model::database::Database;
use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{graph, testing, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::cost::{Metrics, mcf};
use equipoise_strategies::registry;

/// Tasks of a mesh on a torus whose bytes just fit, which must be apart in groups of eight, or of which every eighth must be in one half
/// of the machine: hop-bytes stay near those without constraints.
#[test]
fn placements_under_constraints_have_short_ways() {
    let machine = topology::parse("torus:4x4x4").expect("a torus");
    let tasks = graph::load("mesh:8x8x8,bytes=1000").expect("a mesh").remap(64);
    let mut random = generator(1, 0);
    let sizes: Vec<u64> = (0..512).map(|_| 100 + below(&mut random, 1900)).collect();
    let mut order: Vec<u64> = (0..512).collect();
    shuffle(&mut random, &mut order);
    let apart = |ids: &[u64]| Group { together: false, level: Level::Pe, objects: ids.to_vec() };
    let place = |constraints: &Constraints| {
        let database = Database { constraints: constraints.clone(), ..tasks.clone() };
        let choice = keep(&registry::parse("PoiseLB", &[]).expect("a strategy"));
        let answer = choice.strategy.assign(&database, &*machine, 1).expect("a placement");
        let metrics = Metrics::of(&tasks, &*machine, &answer.pe_of);
        assert!(metrics.imbalance < 0.001, "{constraints:?}: {}", metrics.imbalance);
        metrics.communication.expect("messages").hop_bytes as f64
    };
    let free = place(&Constraints::default());
    let memory = sizes.iter().sum::<u64>() / 64;
    let fits = Constraints {
        memory: Some(PerPe::All(memory + memory / 8)),
        object_bytes: (0..).zip(sizes).collect(),
        ..Constraints::default()
    };
    let groups = Constraints { groups: order.chunks(8).map(apart).collect(), ..Constraints::default() };
    let halves = ["0-31", "32-63"];
    let places: String =
        order[..64].iter().map(|id| format!("{id} {}\n", halves[(id % 2) as usize])).collect();
    let places = Place::parse(&places).expect("places");
    let halves = Constraints { places, ..Constraints::default() };
    for (constraints, most) in [(fits, 1.3), (groups, 1.3), (halves, 1.4)] {
        let kept = place(&constraints);
        assert!(kept <= most * free, "{kept} hop-bytes, {free} without constraints");
    }
}

/// 640 objects with sizes on 16 PEs, of which later ones have more work; with the sizes by object, and the bytes of the fullest PE.
fn growing(seed: u64) -> (Database, Vec<u64>, u64) {
    let mut random = generator(seed, 0);
    let mut tasks = graph::load("ring:640,bytes=1000").expect("a ring").remap(16);
    let sizes: Vec<u64> = (0..640).map(|_| 100 + below(&mut random, 900)).collect();
    let mut bytes = vec![0; 16];
    for (object, &size) in tasks.objects.iter_mut().zip(&sizes) {
        object.load_seconds = (1 + below(&mut random, 10 + 3 * u64::from(object.pe))) as f64;
        bytes[object.pe as usize] += size;
    }
    (tasks, sizes, bytes.into_iter().max().expect("PEs"))
}

/// The placement of a strategy for tasks on `torus:4x4` under constraints; how many objects it moves; and its max/avg - 1.
fn placed(spec: &str, tasks: &Database, constraints: &Constraints) -> (Vec<u32>, usize, f64) {
    let machine = topology::parse("torus:4x4").expect("a torus");
    let database = Database { constraints: constraints.clone(), ..tasks.clone() };
    let choice = keep(&registry::parse(spec, &[]).expect("a strategy"));
    let pe_of = choice.strategy.assign(&database, &*machine, 1).expect("a placement").pe_of;
    let moves = tasks.placement().iter().zip(&pe_of).filter(|(a, b)| a != b).count();
    let imbalance = Metrics::of(tasks, &*machine, &pe_of).imbalance;
    (pe_of, moves, imbalance)
}

/// From a placement that keeps the constraints, strategies that know them move few objects, and no PE becomes much heavier than without.
#[test]
fn strategies_that_know_constraints_move_few_objects() {
    for seed in 0..20 {
        let (tasks, sizes, fullest) = growing(seed);
        for (memory, is_roomy) in [(fullest * 6 / 5, true), (fullest + 1000, false)] {
            let constraints = Constraints {
                memory: Some(PerPe::All(memory)),
                object_bytes: (0..).zip(sizes.iter().copied()).collect(),
                ..Constraints::default()
            };
            for spec in ["RefineLB", "GreedyRefineLB"] {
                let (_, without, imbalance) = placed(spec, &tasks, &Constraints::default());
                let (pe_of, moves, with) = placed(spec, &tasks, &constraints);
                let case = format!("{spec}, seed {seed}, {memory} bytes");
                // With little room, many objects must be exchanged.
                assert!(!is_roomy || 2 * moves <= 3 * without, "{case}: {moves} moves, {without} without");
                assert!(with <= imbalance + 0.011 * (1.0 + imbalance), "{case}: {with}, {imbalance} without");
                let mut bytes = vec![0; 16];
                pe_of.iter().zip(&sizes).for_each(|(&pe, size)| bytes[pe as usize] += size);
                assert!(bytes.iter().all(|&bytes| bytes <= memory), "{case}: {bytes:?}");
            }
        }
    }
}

/// Where the answer keeps the constraints it is the placement, also if a group is together on another node than before.
#[test]
fn answers_that_keep_the_constraints_are_kept() {
    let (tasks, ..) = growing(3);
    for spec in ["RefineLB", "GreedyRefineLB"] {
        let (free, ..) = placed(spec, &tasks, &Constraints::default());
        // Two objects that arrive on the same PE.
        let moved = |pe: u32| {
            let is_moved = |id: &u64| tasks.objects[*id as usize].pe != pe && free[*id as usize] == pe;
            (0..640).filter(is_moved).take(2).collect::<Vec<u64>>()
        };
        let objects = (0..16).map(moved).find(|objects| objects.len() == 2).expect("moves");
        let group = Group { together: true, level: Level::Node, objects };
        let constraints = Constraints { groups: vec![group], ..Constraints::default() };
        assert_eq!(placed(spec, &tasks, &constraints).0, free, "{spec}");
    }
}

/// The search adds and subtracts sizes that need all 64 bits.
#[test]
fn sizes_of_objects_may_need_64_bits() {
    let machine = topology::parse("flat:6").expect("a machine");
    let mut database = testing::database(6, &[(1.0, 0); 6]);
    let half = 1 << 63;
    let sizes = [half, half, u64::MAX, 5, half + 3, 7];
    database.constraints = Constraints {
        memory: Some(PerPe::Each(vec![half, u64::MAX, half + 8, half + 8, 5, 5])),
        object_bytes: (0..).zip(sizes).collect(),
        ..Constraints::default()
    };
    for spec in ["DummyLB", "PoiseLB", "RotateLB"] {
        let choice = keep(&registry::parse(spec, &[]).expect(spec));
        let pe_of = choice.strategy.assign(&database, &*machine, 0).expect(spec).pe_of;
        let rules = database.constraints.rules(&database, &*machine).expect("constraints");
        assert_eq!(rules.check(&database, &pe_of), Ok(()), "{spec}");
    }
}

/// The strategy moves every object to the next PE, where one of them may not be.
#[test]
fn nothing_moves_where_the_placement_before_is_as_good() {
    let machine = topology::parse("flat:6").expect("a machine");
    let mut database = testing::database(6, &[0, 1, 2, 3, 4, 5].map(|pe| (1.0, pe)));
    database.constraints = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
        places: Place::parse("0 0,2").expect("places"),
        ..Constraints::default()
    };
    let choice = keep(&registry::parse("RotateLB", &[]).expect("a strategy"));
    let place = |database: &Database| choice.strategy.assign(database, &*machine, 0).expect("a placement");
    let answer = place(&database);
    assert_eq!(answer.pe_of, database.placement());
    assert_eq!(answer.notes[0].value, 6.0, "objects that constraints moved");
    // Where an object must leave its PE, or a wish would be granted, the search decides.
    database.objects[3].load_seconds = 0.5;
    database.constraints.places.extend(Place::parse("3 4 9").expect("a wish"));
    assert_eq!(place(&database).pe_of[3], 4);
}

/// Before, there are fewer hop-bytes, but McfLB lowers the time of the busiest link.
#[test]
fn objects_move_where_the_busiest_link_becomes_lighter() {
    let machine = topology::parse("torus:4x4").expect("a torus");
    let place = |spec: &str, database: &Database| {
        let choice = keep(&registry::parse(spec, &[]).expect("a strategy"));
        choice.strategy.assign(database, &*machine, 0).expect("a placement").pe_of
    };
    let tasks = graph::load("random:n=16,degree=4,bytes=1000,seed=4").expect("a graph").remap(16);
    let before = place("PoiseLB", &tasks);
    let mut tasks = tasks.placed(&before);
    let free = place("McfLB", &tasks);
    assert_ne!(free[0], before[0]);
    tasks.constraints = Constraints {
        max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
        places: Place::parse(&format!("0 !{}", free[0])).expect("places"),
        ..Constraints::default()
    };
    let busiest = |pe_of: &[u32]| mcf::cost(&tasks, &*machine, pe_of);
    assert!(busiest(&place("McfLB", &tasks)) < busiest(&before));
}

/// Small graphs, of which a task may not be where the strategy has it: other tasks near it make up for that.
#[test]
fn one_place_that_is_taken_away_costs_little() {
    let machine = topology::parse("torus:4x4").expect("a torus");
    let choice = keep(&registry::parse("PoiseLB", &[]).expect("a strategy"));
    let place =
        |database: &Database| choice.strategy.assign(database, &*machine, 0).expect("a placement").pe_of;
    let mut ratios = 0.0;
    for seed in 0..20 {
        let spec = format!("random:n=16,degree=4,bytes=1000,seed={seed}");
        let tasks = graph::load(&spec).expect("a graph").remap(16);
        let free = place(&tasks);
        let constraints = Constraints {
            max_objects: Some(MaxObjects { most: PerPe::All(1), exact: false }),
            places: Place::parse(&format!("0 !{}", free[0])).expect("places"),
            ..Constraints::default()
        };
        let found = place(&Database { constraints, ..tasks.clone() });
        let hop_bytes = |pe_of: &[u32]| {
            Metrics::of(&tasks, &*machine, pe_of).communication.expect("messages").hop_bytes as f64
        };
        ratios += hop_bytes(&found) / hop_bytes(&free) / 20.0;
    }
    assert!(ratios <= 1.04, "{ratios}");
}

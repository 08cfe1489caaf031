//! Guarantees of every strategy for any input, tested over the whole registry.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use equipoise_model::Assignment;
use equipoise_model::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};
use equipoise_model::testing::{at_full_size, is_chosen};
use equipoise_model::topology::{self, Topology};
use equipoise_strategies::StrategyError;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use proptest::collection::SizeRange;
use proptest::prelude::*;

/// Specs beyond the bare names: parameters and pipelines.
const MORE_SPECS: &[&str] = &[
    "GreedyRefineLB:imbalance=0",
    "RefineLB:imbalance=0",
    "RefineLB:imbalance=0.5",
    "TopoLB:groups=greedy",
    "TopoLB:groups=keep",
    "TopoLB:groups=kway,sizes=equal",
    "TopoLB:imbalance=0",
    "TopoLB:order=1",
    "TopoLB:order=3,ties=random",
    "TopoLB:restarts=3",
    "TopoCentLB:ties=random,restarts=2",
    "TreeMatch:groups=keep,restarts=1",
    "TreeMatchConst:groups=greedy,trials=1",
    "TMLB_MIN_WEIGHT:matching=off,surplus=lightest",
    "TMLB_MIN_WEIGHT:affinity=bytes+TMLB_TREEBASED:level=0",
    "GreedyLB+RefineTopoLB",
    "RandomLB:groups=keep",
    "GreedyLB+RefineLB",
    "RandomLB+TopoLB:groups=keep+GreedyRefineLB",
    "GreedyCommLB:alpha_seconds=1e9",
    "RefineCommLB:imbalance=0,beta_seconds_per_byte=1e-6",
    "RefineCommLB:alpha_seconds=0,beta_seconds_per_byte=0",
    "CommAwareRefineLB:imbalance=0.3",
    "RefineSwapLB:imbalance=0",
    "MetisLB:imbalance=0",
    "RecBipartLB:imbalance=0",
    "DistributedLB:imbalance=0,known=1",
    "TemperedLB:knowledge=Complete,criterion=Grapevine,trials=2",
    "TemperedLB:transfer=SwapClusters,ordering=SmallObjects",
    "HierLB:pes=2,node=[GreedyLB],root=[PoiseLB:quality=fast]",
    "PoiseLB:quality=fast,gamma=1,links=on",
    "PoiseLB:quality=best,gamma=0.1,restarts=2,imbalance=0.3",
    "GreedyLB+PoiseLB:quality=fast,imbalance=0",
];

/// Strategies that never make the most loaded PE heavier.
const REFINERS: &[&str] = &[
    "AutoLB",
    "GreedyRefineLB",
    "GreedyRefineLB:imbalance=0",
    "RefineLB",
    "RefineLB:imbalance=0",
    "RefineLB:imbalance=0.5",
    "RefineCommLB:alpha_seconds=0,beta_seconds_per_byte=0",
    "CommAwareRefineLB",
    "CommAwareRefineLB:imbalance=0.3",
    "RefineSwapLB",
    "RefineSwapLB:imbalance=0",
    "HierLB",
    "HierLB:pes=2,node=[GreedyLB],root=[PoiseLB:quality=fast]",
    "DistributedLB",
    "DistributedLB:imbalance=0,known=1",
    "TemperedLB",
    "TemperedLB:knowledge=Complete,criterion=Grapevine,trials=2",
    "TemperedLB:transfer=SwapClusters,ordering=SmallObjects",
    "RefineTopoLB",
    "TopoLB:groups=keep",
    "TreeMatch:groups=keep,restarts=1",
];

/// Of these, those that move nothing unless the most loaded PE becomes lighter.
const ONLY_FOR_LOAD: &[&str] = &[
    "GreedyRefineLB",
    "GreedyRefineLB:imbalance=0",
    "RefineLB",
    "RefineLB:imbalance=0",
    "RefineLB:imbalance=0.5",
    "CommAwareRefineLB",
    "CommAwareRefineLB:imbalance=0.3",
    "RefineSwapLB",
    "RefineSwapLB:imbalance=0",
];

/// Strategies that move the objects of a PE as a unit.
const KEEPERS: &[&str] =
    &["TopoLB:groups=keep", "TreeMatch:groups=keep,restarts=1", "RandomLB:groups=keep", "RefineTopoLB"];

/// Every strategy of the registry, and [`MORE_SPECS`]. The only required parameter is the path of a mapping file; it is
/// set to `mapping`.
pub(crate) fn choices(mapping: &std::path::Path) -> Vec<Choice> {
    let bare = registry::ALL.iter().map(|named| {
        let required: Vec<String> = named
            .params
            .iter()
            .filter(|param| param.default.is_empty())
            .map(|param| format!("{}={}", param.key, mapping.display()))
            .collect();
        if required.is_empty() {
            named.name.to_string()
        } else {
            format!("{}:{}", named.name, required.join(","))
        }
    });
    let specs: Vec<String> = bare.chain(MORE_SPECS.iter().map(|spec| spec.to_string())).collect();
    specs.iter().map(|spec| registry::parse(spec, &[]).expect(spec)).collect()
}

/// A mapping file that moves every movable object of `database` to some available PE.
pub(crate) fn mapping_file(database: &Database) -> tempfile::NamedTempFile {
    let available: Vec<usize> = (0..database.pes.len()).filter(|&pe| database.pes[pe].available).collect();
    let mut text = String::from("# one PE per line\n");
    for (i, object) in database.objects.iter().enumerate() {
        let pe = if object.migratable { available[i * 7 % available.len()] } else { object.pe as usize };
        writeln!(text, "{pe}").expect("a string takes everything");
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    std::fs::write(file.path(), text).expect("a temporary file can be written");
    file
}

/// Databases of all kinds: PEs that are slow, busy or not available (except the first), objects that are fixed, without
/// load or with a large load, and edges between objects and PEs.
pub(crate) fn databases(
    pes: impl Into<SizeRange>,
    objects: impl Into<SizeRange>,
    edges: impl Into<SizeRange>,
) -> impl Strategy<Value = Database> {
    let pe =
        (prop::sample::select(vec![1.0, 1.0, 0.5, 3.0]), prop::sample::select(vec![0.0, 0.0, 2.5]), 0..5u8);
    let load = prop::sample::select(vec![0.0, 1.0, 1.0, 0.1, 0.3, 7.0, 1e-12, 1e9]);
    let edges = edges.into();
    (prop::collection::vec(pe, pes), prop::collection::vec((load, any::<u32>(), 0..6u8), objects), 0..4u64)
        .prop_flat_map(move |(pes, objects, step)| {
            let (p, n) = (pes.len() as u32, objects.len() as u32);
            let end = (any::<u32>(), 0..8u8).prop_map(move |(number, kind)| match kind {
                1.. if n > 0 => End::Object(number % n),
                _ => End::Pe(number % p),
            });
            let bytes = prop::sample::select(vec![0, 1, 1000, 1000, 5 << 33]);
            let edges = prop::collection::vec((end.clone(), end, bytes), edges.clone());
            (Just(pes), Just(objects), Just(step), edges)
        })
        .prop_map(|(pes, objects, step, edges)| {
            let count = pes.len() as u32;
            let pe = |(i, (speed, background_seconds, kind)): (usize, (f64, f64, u8))| PeRecord {
                speed,
                background_seconds,
                available: i == 0 || kind != 0,
                ..PeRecord::default()
            };
            let object = |(i, (load_seconds, pe, kind)): (usize, (f64, u32, u8))| Object {
                id: i as u64,
                array: 0,
                index: ObjectIndex::new(&[i as i32]),
                load_seconds,
                bytes: Some(100),
                pe: pe % count,
                migratable: kind != 0,
            };
            Database {
                step,
                pes: pes.into_iter().enumerate().map(pe).collect(),
                objects: objects.into_iter().enumerate().map(object).collect(),
                edges: edges
                    .into_iter()
                    .map(|(from, to, bytes)| Edge { from, to, messages: 1, bytes })
                    .collect(),
                ..Database::default()
            }
        })
}

/// Databases small enough for many random cases.
fn small() -> impl Strategy<Value = Database> {
    databases(1..7, 0..40, 0..80)
}

/// Databases large enough for parallel execution and several levels of METIS.
fn large() -> impl Strategy<Value = Database> {
    databases(16, 150..250, 300..900)
}

/// Specs with `P` for the number of PEs of the database.
const MACHINES: &[&str] = &[
    "flat:P",
    "torus:P",
    "mesh:1xP",
    "tree:64:2/10:1[random:P,seed=5]",
    "(torus:4x4*tree:2:4/2:1)[random:P,seed=8]",
];

/// The most PEs of a database of these tests.
const MOST_PES: usize = 64;

/// Machines of every kind: [`MACHINES`], and of each spec that the registry shows and that needs no file, some of the PEs.
fn machines() -> &'static [String] {
    static ALL: LazyLock<Vec<String>> = LazyLock::new(|| {
        let shown = topology::ALL.iter().flat_map(|kind| kind.form.split(", "));
        let is_large = |spec: &&str| topology::parse(spec).is_ok_and(|machine| machine.pes() >= MOST_PES);
        let some =
            shown.filter(is_large).enumerate().map(|(seed, spec)| format!("({spec})[random:P,seed={seed}]"));
        MACHINES.iter().map(|spec| spec.to_string()).chain(some).collect()
    });
    &ALL
}

/// Machine `number` with `pes` PEs: one of [`machines`], or a graph for the next number.
fn machine(number: usize, pes: usize) -> Arc<dyn Topology> {
    if let Some(spec) = machines().get(number) {
        let spec = spec.replace('P', &pes.to_string());
        return topology::parse(&spec).expect(&spec);
    }
    // A tree of degree 3. A single PE is linked to a second PE, which is not used.
    let nodes = pes.max(2);
    let mut text = String::new();
    for node in 1..nodes {
        writeln!(text, "{},{node},1", (node - 1) / 2).expect("a string takes everything");
    }
    let file = tempfile::Builder::new().suffix(".csv").tempfile().expect("a temporary file can be made");
    std::fs::write(file.path(), text).expect("a temporary file can be written");
    topology::parse(&format!("graph:{}[0-{}]", file.path().display(), pes - 1)).expect("a graph")
}

fn assign(
    choice: &Choice,
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> Result<Assignment, StrategyError> {
    choice.strategy.assign(database, machine, seed)
}

/// Seconds of the most loaded available PE.
fn max_seconds(database: &Database, placement: &[u32]) -> f64 {
    let loads = database.pe_loads(placement).into_iter().zip(&database.pes);
    loads.filter(|(_, pe)| pe.available).map(|(load, _)| load).fold(0.0, f64::max)
}

/// The hop-bytes of a placement.
fn hop_bytes(database: &Database, machine: &dyn Topology, placement: &[u32]) -> u128 {
    let communication = Metrics::of(database, machine, placement).communication;
    communication.map_or(0, |communication| communication.hop_bytes)
}

/// Whether any two movable objects share a PE in `placement` exactly if they shared one before.
fn keeps_groups(database: &Database, placement: &[u32]) -> bool {
    let movable = database.objects.iter().zip(placement).filter(|(object, _)| object.migratable);
    let pairs: BTreeSet<(u32, u32)> = movable.map(|(object, &pe)| (object.pe, pe)).collect();
    let count = |of: fn(&(u32, u32)) -> u32| pairs.iter().map(of).collect::<BTreeSet<_>>().len();
    count(|pair| pair.0) == pairs.len() && count(|pair| pair.1) == pairs.len()
}

/// Checks all guarantees for one database on one machine.
fn check_on(database: &Database, machine: &dyn Topology, seed: u64) {
    let file = mapping_file(database);
    for choice in choices(file.path()) {
        let (spec, on) = (choice.spec.as_str(), machine.spec());
        let answer = assign(&choice, database, machine, seed).expect(spec);
        assert_eq!(answer.check(database), Ok(()), "{spec} on {on}");
        let leaves = |(object, pe): (&Object, &u32)| {
            !object.migratable || database.pes[*pe as usize].available || spec == "DummyLB"
        };
        assert!(
            database.objects.iter().zip(&answer.pe_of).all(leaves),
            "{spec}: an object is on an unavailable PE"
        );
        assert_eq!(assign(&choice, database, machine, seed).as_ref(), Ok(&answer), "{spec}: same seed");
        if !database.objects.iter().all(|o| !o.migratable || database.pes[o.pe as usize].available) {
            continue;
        }
        let before_pes = database.placement();
        if REFINERS.contains(&spec) {
            let [before, after] =
                [&before_pes, &answer.pe_of].map(|placement| max_seconds(database, placement));
            assert!(after <= before * (1.0 + 1e-9), "{spec} on {on}: {before} seconds became {after}");
            let moves =
                answer.pe_of.iter().zip(&before_pes).filter(|(after, before)| after != before).count();
            let is_kept = after < before || moves == 0 || !ONLY_FOR_LOAD.contains(&spec);
            assert!(
                is_kept,
                "{spec} on {on}: {moves} objects move, and the heaviest PE has {after} seconds as before"
            );
        }
        if KEEPERS.contains(&spec) {
            assert!(keeps_groups(database, &answer.pe_of), "{spec} on {on}: {:?}", answer.pe_of);
        }
        if spec == "RefineTopoLB" {
            let [before, after] =
                [&before_pes, &answer.pe_of].map(|placement| hop_bytes(database, machine, placement));
            assert!(after <= before, "{on}: {before} hop-bytes became {after}");
        }
    }
}

/// Checks all guarantees for one database on machines of every kind; by default on one of them, which follows from the number of objects.
fn check(database: &Database, seed: u64) {
    let count = machines().len() + 1;
    for number in 0..count {
        if is_chosen(number, database.objects.len(), count) {
            check_on(database, &*machine(number, database.pes.len()), seed);
        }
    }
}

/// Checks that the assignments do not depend on the number of threads.
fn check_threads(database: &Database, seed: u64) {
    let file = mapping_file(database);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    let pools = [pool(1), pool(2)];
    let machine = machine(seed as usize % (machines().len() + 1), database.pes.len());
    for choice in choices(file.path()) {
        let [one, two] =
            pools.each_ref().map(|pool| pool.install(|| assign(&choice, database, &*machine, seed)));
        assert_eq!(one, two, "{}", choice.spec);
    }
}

/// Number of random databases of a test, unless ignored tests are requested.
const FEW_CASES: u32 = 16;
const CASES: u32 = 256;

fn check_guarantees(cases: u32) {
    let databases = (small(), 0..=machines().len(), any::<u64>());
    proptest!(ProptestConfig::with_cases(cases), |((database, number, seed) in databases)| {
        check_on(&database, &*machine(number, database.pes.len()), seed);
    });
}

#[test]
fn every_strategy_keeps_its_guarantees() {
    check_guarantees(FEW_CASES);
}

#[test]
#[ignore = "slow"]
fn every_strategy_keeps_its_guarantees_in_many_cases() {
    check_guarantees(CASES);
}

fn check_threads_on_small_databases(cases: u32) {
    proptest!(ProptestConfig::with_cases(cases), |(database in small(), seed in any::<u64>())| {
        check_threads(&database, seed);
    });
}

#[test]
fn assignments_do_not_depend_on_the_number_of_threads() {
    check_threads_on_small_databases(FEW_CASES);
}

#[test]
#[ignore = "slow"]
fn assignments_do_not_depend_on_the_number_of_threads_in_many_cases() {
    check_threads_on_small_databases(CASES);
}

fn check_large(cases: u32) {
    let databases = (large(), 0..=machines().len(), any::<u64>());
    proptest!(ProptestConfig::with_cases(cases), |((database, number, seed) in databases)| {
        check_on(&database, &*machine(number, database.pes.len()), seed);
        check_threads(&database, seed);
    });
}

#[test]
fn guarantees_hold_for_many_objects_on_any_number_of_threads() {
    check_large(1);
}

#[test]
#[ignore = "slow"]
fn guarantees_hold_for_many_objects_in_many_cases() {
    check_large(6);
}

#[test]
fn degenerate_databases_are_accepted() {
    let object = |i: u64, load_seconds, pe| Object {
        id: i,
        array: 0,
        index: ObjectIndex::default(),
        load_seconds,
        bytes: None,
        pe,
        migratable: true,
    };
    let database =
        |pes, objects| Database { pes: vec![PeRecord::default(); pes], objects, ..Database::default() };
    check(&database(1, vec![]), 0);
    check(&database(64, vec![]), 0);
    check(&database(1, (0..9).map(|i| object(i, 1.0, 0)).collect()), 0);
    check(&database(64, (0..3).map(|i| object(i, 1.0, i as u32)).collect()), 0);
    check(&database(4, (0..100).map(|i| object(i, 0.0, 0)).collect()), 0);
    check(&database(4, (0..100).map(|i| object(i, 1e30, i as u32 % 3)).collect()), 0);
    check(&database(2, vec![object(0, 1e30, 0), object(1, f64::MIN_POSITIVE, 0)]), 0);
    let mut loop_only = database(2, (0..6).map(|i| object(i, 1.0, 0)).collect());
    loop_only.edges = vec![Edge { from: End::Object(1), to: End::Object(1), messages: 1, bytes: 1 << 40 }];
    check(&loop_only, 0);
    // No object may move, and every PE has fixed objects.
    for pes in [1, 16] {
        let mut pinned = database(pes, (0..40).map(|i| object(i, 1.0, (i % pes as u64) as u32)).collect());
        pinned.objects.iter_mut().for_each(|object| object.migratable = false);
        pinned.edges = (0..39u32)
            .map(|i| Edge { from: End::Object(i), to: End::Object(i + 1), messages: 1, bytes: 8 })
            .collect();
        check(&pinned, 0);
    }
    // Two separate chains on a prime number of PEs, with byte volumes beyond 32 bits.
    let mut chains = database(7, (0..31).map(|i| object(i, 1.0 + i as f64 / 31.0, 0)).collect());
    chains.dangling_edges = 3;
    chains.edges = (0..29u32)
        .map(|i| Edge { from: End::Object(i), to: End::Object(i + 2), messages: 1 << 20, bytes: 5 << 33 })
        .collect();
    check(&chains, 0);
    // The maximum number of bytes that fits the counter.
    let mut full = database(5, (0..13).map(|i| object(i, 1.0, i as u32 % 5)).collect());
    full.objects[4].migratable = false;
    let ends = (0..12u32).map(|i| (End::Object(i), if i == 7 { End::Pe(3) } else { End::Object(i + 1) }));
    full.edges = ends.map(|(from, to)| Edge { from, to, messages: 1, bytes: u64::MAX / 12 }).collect();
    assert!(full.bytes() > u64::MAX - 12);
    check(&full, 0);
}

#[test]
fn all_strategies_refuse_invalid_loads() {
    for load_seconds in [f64::NAN, f64::INFINITY, -1.0] {
        let object = Object {
            id: 0,
            array: 0,
            index: ObjectIndex::default(),
            load_seconds,
            bytes: None,
            pe: 0,
            migratable: true,
        };
        let database =
            Database { pes: vec![PeRecord::default()], objects: vec![object], ..Database::default() };
        let file = mapping_file(&database);
        let machine = topology::parse("flat:1").expect("a machine");
        for choice in choices(file.path()).iter().filter(|choice| choice.spec != "DummyLB") {
            let error = assign(choice, &database, &*machine, 0).expect_err(&choice.spec).to_string();
            assert!(error.contains("load_seconds of object 0"), "{}: {error}", choice.spec);
        }
    }
}

#[test]
#[ignore = "slow"]
fn degenerate_databases_are_accepted_on_all_machines() {
    at_full_size(&[degenerate_databases_are_accepted]);
}

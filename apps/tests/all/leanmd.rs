//! LeanMD: energy is conserved and the same in every configuration, no particle is lost, and the task graph is that of
//! the spec `leanmd:..`.

use equipoise::Config;
use equipoise::model::database::{Database, Dump, End};
use equipoise::strategies::workloads;
use equipoise_apps::leanmd::{Motion, Options, Work, simulate};
use std::collections::BTreeMap;

use crate::common::every_configuration;

fn small() -> Options {
    Options { cells: [3, 3, 4], particles: [9, 5], iterations: 25, lb_every: 6, ..Options::default() }
}

#[test]
pub fn the_result_is_the_same_in_every_configuration() {
    let expected = simulate(Config::simulated(1, 0), &small()).result;
    every_configuration(15 * 36, move |config, how| {
        let report = simulate(config, &small());
        assert_eq!(report.result, expected, "{how}");
        assert_eq!(report.lb_steps.len(), 4, "{how}");
    });
}

#[test]
fn total_energy_is_conserved_while_kinetic_energy_changes() {
    let options = Options { cells: [3, 3, 3], particles: [27; 2], iterations: 300, ..Options::default() };
    let Motion { particles, first_energy, last_energy, .. } = simulate(Config::threads(2), &options).result;
    let total = |[kinetic, potential]: [f64; 2]| kinetic + potential;
    assert_eq!(particles, 27 * 27);
    let changed = (last_energy[0] - first_energy[0]).abs();
    let lost = (total(last_energy) - total(first_energy)).abs();
    assert!(changed > 1e-3 && lost < 1e-3 * changed, "{first_energy:?} became {last_energy:?}");
}

/// Seconds of each object, and messages from one to another, of a database without indices.
fn parts(database: &Database) -> (Vec<f64>, BTreeMap<(u32, u32), u64>) {
    let mut sent = BTreeMap::new();
    for edge in &database.edges {
        let (End::Object(from), End::Object(to)) = (edge.from, edge.to) else { continue };
        *sent.entry((from, to)).or_default() += edge.messages;
    }
    (database.objects.iter().map(|object| object.load_seconds).collect(), sent)
}

#[test]
fn the_recorded_task_graph_is_that_of_the_spec() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("leanmd.db");
    let options = Options {
        cells: [3, 4, 5],
        particles: [40, 70],
        iterations: 10,
        lb_every: 4,
        forces: Work::Modelled,
        ..Options::default()
    };
    let config = Config { lb_dump: Some(path.clone()), lb_dump_start: 1, ..Config::simulated(7, 3) };
    simulate(config, &options);
    let recorded = &Dump::read(&path).expect("a database").steps[0];
    let (loads, sent) = parts(recorded);
    let (expected, edges) = parts(&workloads::load("leanmd:3x4x5,particles=40-70").expect("a graph"));
    // A load-balancing period is 4 steps; cells may be one step ahead.
    for (object, (load, expected)) in loads.iter().zip(&expected).enumerate().skip(60) {
        assert!((load / expected / 4.0 - 1.0).abs() < 1e-9, "compute {object}: {load}, {expected} a step");
    }
    assert_eq!(loads.len(), expected.len());
    assert!(sent.keys().eq(edges.keys()), "the same objects exchange messages");
    assert!(sent.iter().all(|(_, messages)| (3..=5).contains(messages)), "{sent:?}");
    assert!(recorded.objects[..60].iter().all(|cell| !cell.migratable));
    assert!(recorded.objects[60..].iter().all(|compute| compute.migratable));
    let bytes = |database: &Database, times: u64| {
        database.edges.iter().map(|edge| edge.bytes).sum::<u64>() as f64 / times as f64
    };
    let ratio =
        bytes(recorded, 4) / bytes(&workloads::load("leanmd:3x4x5,particles=40-70").expect("a graph"), 1);
    assert!((0.95..1.05).contains(&ratio), "{ratio}");
}

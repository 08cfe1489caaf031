//! The adaptive mesh: the same result in every configuration, and nothing is lost where blocks are created and
//! destroyed.

use equipoise::checkpoint::Checkpoint;
use equipoise::{Checkpoints, Config, Machine, Transport};
use equipoise_apps::amr::{Blast, Options, sequential, simulate};
use equipoise_model::testing::seeds;

use crate::common::every_configuration;

fn small() -> Options {
    Options {
        blocks: [3, 4],
        cells: 4,
        levels: 3,
        iterations: 50,
        regrid_every: 3,
        lb_every: 4,
        charge: None,
    }
}

/// The result of [`small`] without PEs, which creates and destroys blocks.
fn expected(options: &Options) -> Blast {
    let expected = sequential(options);
    assert_eq!(expected.lost, [0; 4], "{expected:?}");
    assert!(expected.changes[0] > 20 && expected.changes[1] > 10, "{expected:?}");
    expected
}

#[test]
pub fn the_result_is_the_same_in_every_configuration() {
    let expected = expected(&small());
    every_configuration(None, |config, how| {
        let report = simulate(config, &small());
        assert_eq!(report.result, expected, "{how}");
        assert_eq!(report.lb_steps.len(), 4, "{how}");
    });
}

#[test]
pub fn migrations_after_every_regridding_do_not_change_the_result() {
    let options = Options { regrid_every: 1, lb_every: 1, iterations: 40, ..small() };
    let expected = expected(&options);
    for seed in seeds(40) {
        let pes = 2 + seed as usize % 5;
        let pes_per_process = (pes % 2 == 0).then_some(2);
        let config =
            Config { balancer: vec!["RotateLB".into()], pes_per_process, ..Config::simulated(pes, seed) };
        let report = simulate(config, &options);
        assert_eq!(report.result, expected, "seed {seed}");
        assert_eq!(report.lb_steps.len(), 39, "seed {seed}");
        assert!(report.migrations > 1000, "seed {seed}: {} migrations", report.migrations);
    }
}

/// A blast on 8 PEs in virtual time.
fn blast(balancer: &str) -> (Blast, f64, Vec<f64>) {
    let options = Options { iterations: 160, charge: Some(1e-7), levels: 3, ..Options::default() };
    let machine = Machine { network: Some("ideal:hop=1e-7".into()), ..Machine::default() };
    let config = Config {
        transport: Transport::Simulated,
        machine,
        balancer: vec![balancer.into()],
        ..Config::threads(8)
    };
    let report = simulate(config, &options);
    let imbalance = report.lb_steps.iter().map(|step| step.before.imbalance).collect();
    (report.result, report.machine.expect("a simulated machine").seconds, imbalance)
}

#[test]
fn load_balancing_shortens_the_virtual_time() {
    let (expected, without, imbalance) = blast("DummyLB");
    assert!(imbalance.iter().all(|&imbalance| imbalance > 1.0), "{imbalance:?}");
    let (result, with, imbalance) = blast("GreedyRefineLB");
    assert_eq!(result, expected);
    assert!(imbalance[1..].iter().all(|&imbalance| imbalance < 0.5), "{imbalance:?}");
    assert!(with < 0.75 * without, "{with} s with load balancing, {without} s without");
}

#[test]
fn a_run_continues_from_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved");
    let expected = expected(&small());
    let checkpoints =
        Checkpoints { checkpoint: Some(saved.clone()), checkpoint_every: Some(1), ..Checkpoints::default() };
    let config = Config { balancer: vec!["GreedyLB".into()], checkpoints, ..Config::threads(2) };
    assert_eq!(simulate(config, &small()).result, expected);
    assert!(Checkpoint::newest(&saved).is_ok());
    let checkpoints = Checkpoints { restart: Some(saved), ..Checkpoints::default() };
    let config = Config { balancer: vec!["RotateLB".into()], checkpoints, ..Config::simulated(3, 5) };
    assert_eq!(simulate(config, &small()).result, expected);
}

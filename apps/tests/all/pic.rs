//! The plasma: the same result in every configuration and for all blocks, with conserved charge, energy and momentum.

use equipoise::checkpoint::Checkpoint;
use equipoise::{Checkpoints, Config, Machine, Transport};
use equipoise_apps::pic::{Options, Plasma, Rules, sequential, simulate};
use equipoise_apps::stencil::Extent;

use crate::common::every_configuration;

fn small() -> Options {
    let rules = Rules { particles: 3, drift: 0.6, iterations: 25, lb_every: 6, charge: None };
    Options { blocks: Extent([4, 3]), cells: Extent([3, 4]), rules }
}

#[test]
pub fn the_result_is_the_same_in_every_configuration() {
    let expected = sequential(&small());
    assert!(expected.particles > 0 && expected.last_energy[1] > 0.0, "{expected:?}");
    every_configuration(12, |config, how| {
        let report = simulate(config, &small());
        assert_eq!(report.result, expected, "{how}");
        assert_eq!(report.lb_steps.len(), 4, "{how}");
    });
}

#[test]
fn the_result_is_the_same_for_all_blocks() {
    let rules = Rules { particles: 2, iterations: 40, lb_every: 0, ..Rules::default() };
    let of = |blocks, cells| Options { blocks: Extent(blocks), cells: Extent(cells), rules };
    let expected = sequential(&of([1, 1], [24, 16]));
    for (blocks, cells) in [([1, 1], [24, 16]), ([2, 1], [12, 16]), ([1, 8], [24, 2]), ([12, 4], [2, 4])] {
        assert_eq!(simulate(Config::simulated(3, 1), &of(blocks, cells)).result, expected, "{blocks:?}");
    }
}

#[test]
fn migrations_after_every_step_do_not_change_the_result() {
    let mut options = small();
    options.rules.lb_every = 1;
    let expected = sequential(&options);
    for seed in 0..20 {
        let config =
            Config { balancer: vec!["RotateLB".into()], ..Config::simulated(2 + seed as usize % 4, seed) };
        let report = simulate(config, &options);
        assert_eq!(report.result, expected, "seed {seed}");
        assert!(report.migrations >= 24 * 12, "seed {seed}: {} migrations", report.migrations);
    }
}

#[test]
fn charge_and_gauss_hold_to_rounding_and_energy_within_a_bound() {
    let rules = Rules { particles: 8, iterations: 300, lb_every: 0, ..Rules::default() };
    let options = Options { blocks: Extent([1, 1]), cells: Extent([48, 32]), rules };
    let Plasma { particles, charge, first_energy, last_energy, momentum, gauss_error, .. } =
        sequential(&options);
    let start = sequential(&Options { rules: Rules { iterations: 1, ..rules }, ..options });
    assert_eq!((particles, charge), (start.particles, 0));
    assert!(gauss_error < 1e-9, "{gauss_error}");
    let total = |[kinetic, field]: [f64; 2]| kinetic + field;
    let lost = total(last_energy) - total(first_energy);
    // The field takes its energy from the thermal motion.
    assert!(first_energy[1] == 0.0 && last_energy[1] > 1.0, "{last_energy:?}");
    assert!(lost.abs() < 0.05 * last_energy[1], "{first_energy:?} became {last_energy:?}");
    assert!((momentum[1] / momentum[0] - 1.0).abs() < 1e-3, "{momentum:?}");
}

/// A cloud that moves by two blocks.
fn drifting(balancer: &str) -> (Plasma, f64, Vec<f64>) {
    let rules = Rules { particles: 6, iterations: 80, lb_every: 10, drift: 0.6, charge: Some(1e-6) };
    let options = Options { blocks: Extent([8, 8]), cells: Extent([4, 4]), rules };
    let machine = Machine { network: Some("ideal:hop=1e-6".into()), ..Machine::default() };
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
    let (expected, without, imbalance) = drifting("DummyLB");
    assert!(imbalance.iter().all(|&imbalance| imbalance > 1.0), "{imbalance:?}");
    let (result, with, imbalance) = drifting("GreedyRefineLB");
    assert_eq!(result, expected);
    assert!(imbalance[1..].iter().all(|&imbalance| imbalance < 1.0), "{imbalance:?}");
    assert!(with < 0.75 * without, "{with} s with load balancing, {without} s without");
}

#[test]
fn a_run_continues_from_a_checkpoint() {
    let folder = tempfile::tempdir().expect("a folder");
    let saved = folder.path().join("saved");
    let expected = sequential(&small());
    let checkpoints =
        Checkpoints { checkpoint: Some(saved.clone()), checkpoint_every: Some(1), ..Checkpoints::default() };
    let config = Config { balancer: vec!["GreedyLB".into()], checkpoints, ..Config::threads(2) };
    assert_eq!(simulate(config, &small()).result, expected);
    assert!(Checkpoint::newest(&saved).is_ok());
    let checkpoints = Checkpoints { restart: Some(saved), ..Checkpoints::default() };
    let config = Config { balancer: vec!["RotateLB".into()], checkpoints, ..Config::simulated(3, 5) };
    assert_eq!(simulate(config, &small()).result, expected);
}

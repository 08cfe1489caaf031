//! Whether, when and how well load-balancing steps are decided: predicted times against those of simulated machines, and
//! policies against each other, in virtual time.

use std::io::Write as _;

use equipoise::{Config, LbGate, LbStep, LbWhen, Machine, Report, StrategySeconds, Transport};
use equipoise_apps::stencil::Extent;
use equipoise_apps::{amr, kneighbor, leanmd, pic, stencil2d, stencil3d};
use tempfile::NamedTempFile;

/// A simulated machine whose PEs and links all cost time.
fn machine(topology: &str) -> Config {
    let machine = Machine {
        network: Some("flow:latency=1e-6,bandwidth=1e9".into()),
        overhead: 1e-6,
        delivery: 2e-7,
        ..Machine::default()
    };
    Config {
        pes: None,
        topology: Some(topology.into()),
        transport: Transport::Simulated,
        machine,
        ..Config::default()
    }
}

/// A run of a sample program; its load-balancing steps and its virtual time in seconds.
type Run = fn(Config) -> (Vec<LbStep>, f64);

fn of<T>(report: Report<T>) -> (Vec<LbStep>, f64) {
    (report.lb_steps, report.machine.expect("a simulated machine").seconds)
}

fn parsed<T: clap::Args>(flags: &str) -> T {
    let command = T::augment_args(clap::Command::new("program").no_binary_name(true));
    let matches = command.get_matches_from(flags.split_whitespace());
    T::from_arg_matches(&matches).expect("the flags are right")
}

/// Programs whose loads change little from one period to the next, with at least three load-balancing steps.
const PROGRAMS: [(&str, Run); 6] = [
    ("stencil2d", |config| {
        let flags = "--blocks 12 --cells 16 --iterations 40 --lb-every 10 --imbalance 3 --charge 1e-8";
        of(stencil2d::solve(config, &parsed(flags)))
    }),
    ("stencil3d", |config| {
        let flags = "--blocks 6x6x4 --cells 6 --iterations 40 --lb-every 10 --imbalance 3 --charge 1e-8";
        of(stencil3d::solve(config, &parsed(flags)))
    }),
    ("kneighbor", |config| {
        let flags = "--elements 96 --bytes 4096 --iterations 40 --lb-every 10 --work 2000 --charge 1e-8";
        of(kneighbor::exchange(config, &parsed(flags)))
    }),
    ("leanmd", |config| {
        let flags = "--cells 4x4x4 --particles 20-60 --iterations 16 --lb-every 4 --forces charged";
        of(leanmd::simulate(config, &parsed(flags)))
    }),
    ("pic", |config| {
        let flags =
            "--blocks 8 --cells 8 --particles 6 --drift 0.1 --iterations 12 --lb-every 3 --charge 1e-6";
        of(pic::simulate(config, &parsed(flags)))
    }),
    ("amr", |config| {
        let flags = "--levels 3 --iterations 84 --regrid-every 2 --lb-every 4 --charge 1e-7";
        of(amr::simulate(config, &parsed(flags)))
    }),
];

const STRATEGIES: [&str; 8] = [
    "DummyLB",
    "RandomLB",
    "GreedyLB",
    "RefineLB",
    "GreedyRefineLB",
    "CommAwareRefineLB",
    "MetisLB",
    "PoiseLB:quality=fast",
];

/// The predicted and the real time of the period after a step at which `strategy` ran, in seconds.
fn predicted_and_real(run: Run, topology: &str, strategy: &str) -> (f64, f64) {
    let mut schedule = NamedTempFile::new().expect("a temporary file can be made");
    let lines = format!("0 DummyLB\n1 {}\n2 DummyLB\n", strategy.replacen(':', " ", 1));
    schedule.write_all(lines.as_bytes()).expect("it can be written");
    let config = Config {
        lb_schedule: Some(schedule.path().into()),
        lb_comm: equipoise::Comm::On,
        ..machine(topology)
    };
    let (steps, _) = run(config);
    let after = &steps[1].after;
    let moving = after.migration_seconds.expect("the machine has costs");
    (after.step_seconds.expect("the machine has costs") + moving, steps[2].period_seconds)
}

/// The ranks of values: 0 for the smallest.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    order.into_iter().enumerate().for_each(|(rank, at)| ranks[at] = rank as f64);
    ranks
}

/// Spearman's rank correlation.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let n = pairs.len() as f64;
    let squares: f64 = ranks(&a).iter().zip(ranks(&b)).map(|(a, b)| (a - b) * (a - b)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

/// Checks the predictions for programs, strategies and machines together.
fn check_predictions(programs: &[(&str, Run)], strategies: &[&str], topologies: &[&str]) {
    let mut all = Vec::new();
    for topology in topologies {
        for (name, run) in programs {
            let case: Vec<_> =
                strategies.iter().map(|strategy| predicted_and_real(*run, topology, strategy)).collect();
            println!("{topology} {name}: rank correlation {:.3}, {case:.5?}", rank_correlation(&case));
            all.extend(case);
        }
    }
    let mut errors: Vec<f64> = all.iter().map(|(predicted, real)| (predicted / real - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let (median, correlation) = (errors[errors.len() / 2], rank_correlation(&all));
    println!("median error {median:.4}, rank correlation {correlation:.4}");
    assert!(median <= 0.1, "the median error is {median}");
    assert!(correlation >= 0.95, "the rank correlation is {correlation}");
}

#[test]
fn predicted_periods_are_close_to_those_of_a_simulated_machine() {
    check_predictions(&PROGRAMS[..2], &STRATEGIES[1..6], &["torus:4x4"]);
}

#[test]
#[ignore = "slow"]
fn predicted_periods_are_close_to_those_of_simulated_machines() {
    check_predictions(&PROGRAMS, &STRATEGIES, &["torus:4x4", "fattree:4:4/2e9:1e9", "flat:16"]);
}

/// The virtual time with a policy, and the number of load-balancing steps, which take 1 ms each.
fn with(run: Run, balancer: Option<&str>, lb_when: LbWhen, lb_gate: LbGate) -> (f64, usize) {
    let mut config = machine("torus:4x4");
    config.machine.strategy_seconds = Some(StrategySeconds::Charged(1e-3));
    config.balancer.extend(balancer.map(String::from));
    let (steps, seconds) = run(Config { lb_when, lb_gate, ..config });
    (seconds, steps.len())
}

fn every(sync_points: u32) -> LbWhen {
    LbWhen::Every(sync_points.try_into().expect("not 0"))
}

/// A cloud that drifts over many blocks.
fn drifting(config: Config) -> (Vec<LbStep>, f64) {
    let rules = pic::Rules { particles: 12, iterations: 80, lb_every: 2, charge: Some(1e-6), drift: 0.4 };
    of(pic::simulate(config, &pic::Options { blocks: Extent([12, 12]), cells: Extent([4, 4]), rules }))
}

#[test]
#[ignore = "slow"]
fn steps_follow_drifting_loads_as_often_as_it_pays() {
    let (never, _) = with(drifting, None, every(1), LbGate::Off);
    let policies = [1, 5, 20].map(|n| with(drifting, Some("GreedyRefineLB"), every(n), LbGate::Off).0);
    let best = policies.into_iter().fold(never, f64::min);
    let (auto, steps) = with(drifting, Some("GreedyRefineLB"), LbWhen::Auto, LbGate::Off);
    assert!(
        auto <= 1.05 * best,
        "{auto} s in {steps} steps; every N sync points {policies:?}, never {never}"
    );
    assert!(auto < 0.9 * never, "{auto} s, without load balancing {never} s");
}

/// Elements with the same load, which exchange messages along a ring.
fn balanced(config: Config) -> (Vec<LbStep>, f64) {
    let flags = "--elements 96 --iterations 60 --lb-every 2 --work 0 --charge 1e-6";
    of(kneighbor::exchange(config, &parsed(flags)))
}

#[test]
fn balanced_loads_are_left_alone() {
    // Elements wait for each other at every sync point, also where no step follows.
    let (never, _) = with(balanced, Some("GreedyRefineLB"), every(1000), LbGate::Off);
    let (auto, steps) = with(balanced, Some("GreedyRefineLB"), LbWhen::Auto, LbGate::Auto);
    assert_eq!(steps, 0);
    assert!(auto <= 1.15 * never, "{auto} s in {steps} steps, without load balancing {never} s");
}

#[test]
fn a_gate_keeps_a_placement_that_is_predicted_to_be_better() {
    let moved = |lb_gate| {
        let config = Config { balancer: vec!["RandomLB".into()], lb_gate, ..machine("torus:4x4") };
        let (steps, seconds) = balanced(config);
        let kept = steps.iter().filter_map(|step| step.kept).collect::<Vec<_>>();
        (steps.iter().map(|step| step.after.migrations).sum::<u64>(), kept, seconds)
    };
    let (all, kept, without) = moved(LbGate::Off);
    assert!(all > 1000 && kept.is_empty(), "{all} migrations, {kept:?}");
    let (migrations, kept, with) = moved(LbGate::Auto);
    // The placement is good already. Only what pays moves, which is next to nothing.
    assert_eq!((migrations, kept.len()), (kept.iter().map(|kept| kept.applied_migrations).sum(), 29));
    assert!(100 * migrations <= all, "{migrations} migrations, {all} without the gate");
    assert!(kept.iter().all(|kept| kept.gain_seconds < kept.migration_seconds), "{kept:?}");
    assert!(kept[0].to_string().starts_with("kept: would save nothing, moving "), "{}", kept[0]);
    assert!(with < 0.9 * without, "{with} s, without the gate {without} s");
}

/// Greedy placement moves almost every object at every step. In most steps all migrations cost more than they save, and some pay.
#[test]
fn a_gate_moves_the_part_that_pays() {
    let run = |lb_gate| {
        let config = Config { balancer: vec!["GreedyLB".into()], lb_gate, ..machine("torus:4x4") };
        let (steps, seconds) = drifting(config);
        let parts = steps.iter().filter_map(|step| step.kept).filter(|kept| kept.applied_migrations > 0);
        (parts.collect::<Vec<_>>(), seconds)
    };
    let (parts, without) = run(LbGate::Off);
    assert!(parts.is_empty(), "{parts:?}");
    let (parts, with) = run(LbGate::Auto);
    assert!(parts.iter().all(|part| part.applied_migrations < part.migrations), "{parts:?}");
    let text = parts.first().expect("a part pays").to_string();
    assert!(text.starts_with("moved only ") && text.contains(", which pays: all would save "), "{text}");
    assert!(with < 0.9 * without, "{with} s, without the gate {without} s");
}

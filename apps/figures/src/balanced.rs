//! Times of programs with load balancing on the simulated machine of the TreeMatch paper.
//!
//! The machine is 8 nodes of PlaFRIM, each with 2 sockets (Xeon X5550) of 4 cores: 64 cores. The bandwidths are
//! 3.2e9 bytes per second in and out of a node (InfiniBand QDR), 12e9 for a socket (QPI) and 6e9 for a core (copy).
//! The strategies take the times printed in the paper, and for LeanMD the CPU times of ours, recorded here.
//!
//! A program has one load-balancing step and then repeats the same iteration. Three runs that end soon after the step
//! are simulated. All later iterations take the mean time of the iterations between the ends of the first and the
//! last run.

use std::fmt::Display;

use equipoise::{Config, Machine, Report, StrategySeconds};
use equipoise_apps::Failure;
use rayon::prelude::*;

/// Cores of the machine, and PEs of a program.
pub(crate) const CORES: u32 = 64;

/// Bytes per second of the links of a node, a socket and a core.
const BANDWIDTHS: [f64; 3] = [3.2e9, 12e9, 6e9];

/// The latency of a link. The latencies of a route sum up to about the 1.5 microseconds of MPI over InfiniBand.
const NETWORK: &str = "flow:latency=0.3e-6";

/// CPU time of the runtime to send or receive a message between cores, in seconds.
const OVERHEAD_SECONDS: f64 = 2e-6;

/// A strategy with a given running time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimedStrategy {
    pub(crate) name: &'static str,
    /// The charged running time.
    pub(crate) seconds: f64,
    /// The running time in the paper.
    pub(crate) paper_seconds: Option<f64>,
    /// Whether the strategy has a parameter for the cost of a byte.
    has_beta: bool,
}

impl Display for TimedStrategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl TimedStrategy {
    /// A strategy that takes the time of the paper.
    const fn of_paper(name: &'static str, seconds: f64, has_beta: bool) -> Self {
        TimedStrategy { name, seconds, paper_seconds: Some(seconds), has_beta }
    }

    /// A strategy that takes no time.
    pub(crate) const fn free(name: &'static str) -> Self {
        TimedStrategy { name, seconds: 0.0, paper_seconds: None, has_beta: false }
    }

    /// A strategy that takes the time of ours for LeanMD, at a position of [`LEANMD_SECONDS`].
    const fn of_leanmd(at: usize, paper_seconds: Option<f64>, has_beta: bool) -> Self {
        let (name, seconds) = LEANMD_SECONDS[at];
        TimedStrategy { name, seconds, paper_seconds, has_beta }
    }
}

/// The strategies with the seconds printed in the paper for Stencil3D (section VI.C; less than 1 ms is taken as
/// 1 ms).
pub(crate) const DUMMY: TimedStrategy = TimedStrategy::of_paper("DummyLB", 0.0, false);
pub(crate) const GREEDY: TimedStrategy = TimedStrategy::of_paper("GreedyLB", 1e-3, false);
pub(crate) const GREEDY_COMM: TimedStrategy = TimedStrategy::of_paper("GreedyCommLB", 1e-3, true);
pub(crate) const REFINE: TimedStrategy = TimedStrategy::of_paper("RefineLB", 1e-3, false);
pub(crate) const REFINE_COMM: TimedStrategy = TimedStrategy::of_paper("RefineCommLB", 7.5e-3, true);
pub(crate) const TREE_BASED: TimedStrategy = TimedStrategy::of_paper("TMLB_TREEBASED", 0.2148, false);

/// The CPU seconds of our strategies for LeanMD with 960 chares: `figures treematch-9` on one core of an AMD EPYC,
/// November 2026. They are recorded, since figures whose times depend on the session could not be repeated.
pub(crate) const LEANMD_SECONDS: [(&str, f64); 5] = [
    ("GreedyLB", 0.035e-3),
    ("GreedyCommLB", 0.154e-3),
    ("RefineLB", 0.033e-3),
    ("RefineCommLB", 0.140e-3),
    ("TMLB_MIN_WEIGHT", 8.46e-3),
];

/// The strategies for LeanMD, with the times printed in the paper (section VI.A).
pub(crate) const FOR_LEANMD: [TimedStrategy; 6] = [
    DUMMY,
    TimedStrategy::of_leanmd(0, Some(14.5e-3), false),
    TimedStrategy::of_leanmd(1, None, true),
    TimedStrategy::of_leanmd(2, Some(1e-3), false),
    TimedStrategy::of_leanmd(3, None, true),
    MIN_WEIGHT,
];
pub(crate) const MIN_WEIGHT: TimedStrategy = TimedStrategy::of_leanmd(4, Some(0.233), false);

/// Seconds per byte of a message in strategies, as in Charm++.
const BETA: f64 = 8.5e-9;

/// The runs of a program.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Iterations before the load-balancing step.
    pub(crate) before: u32,
    /// Iterations after the step: the three runs simulate 1, 2 and 3 times this number. 3 times this number is at most
    /// `before`, so that there is no second step.
    pub(crate) after: u32,
    /// Iterations of the whole program.
    pub(crate) iterations: u32,
    /// The initial placement, as for `--initial`.
    pub(crate) initial: &'static str,
    /// The core of each PE, in the order of the tree.
    pub(crate) cores: Vec<u32>,
    /// A message of the program represents a message with `scale` times as many bytes.
    pub(crate) scale: f64,
    pub(crate) seed: u64,
}

/// The times of a program with a strategy.
#[derive(Clone, Debug)]
pub(crate) struct Balanced {
    pub(crate) strategy: &'static str,
    /// All iterations and the step.
    pub(crate) seconds: f64,
    /// One iteration after the step.
    pub(crate) iteration_seconds: f64,
    /// The relative difference between the simulated iterations after the step.
    pub(crate) drift: f64,
    /// Number of migrations.
    pub(crate) migrations: u64,
}

impl Plan {
    /// The configuration of a run with the strategy.
    pub(crate) fn config(&self, strategy: TimedStrategy) -> Config {
        let cores: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        let [node, socket, core] = BANDWIDTHS.map(|bandwidth| bandwidth / self.scale);
        let machine = format!("fattree:8:2:4/{node}:{socket}:{core}/1:1:1[{}]", cores.join(","));
        let TimedStrategy { name, seconds, has_beta, .. } = strategy;
        let parameters = format!("{name}:beta_seconds_per_byte={}", BETA * self.scale);
        let mut config = Config::on_machine(&machine, NETWORK);
        config.machine = Machine {
            overhead: OVERHEAD_SECONDS,
            strategy_seconds: Some(StrategySeconds::Charged(seconds)),
            ..config.machine
        };
        Config {
            initial: self.initial.into(),
            balancer: vec![if has_beta { parameters } else { name.into() }],
            seed: self.seed,
            ..config
        }
    }

    /// The times of a program with each strategy; `run` receives the number of iterations.
    pub(crate) fn times<R>(
        &self,
        strategies: &[TimedStrategy],
        run: impl Fn(Config, u32) -> Report<R> + Sync,
    ) -> Vec<Balanced> {
        let time = |&strategy: &TimedStrategy| {
            let one = |times| {
                let report = run(self.config(strategy), self.before + times * self.after);
                (report.machine.map_or(f64::NAN, |machine| machine.seconds), report.migrations)
            };
            let [(first, _), (second, _), (third, migrations)] = [1, 2, 3].map(one);
            let iteration_seconds = (third - first) / f64::from(2 * self.after);
            let left = f64::from(self.iterations - self.before - 3 * self.after);
            Balanced {
                strategy: strategy.name,
                seconds: third + left * iteration_seconds,
                iteration_seconds,
                drift: 2.0 * ((third - second) - (second - first)).abs() / (third - first),
                migrations,
            }
        };
        strategies.par_iter().map(time).collect()
    }
}

impl Balanced {
    /// The time saved, relative to the time of another strategy.
    pub(crate) fn gain(&self, other: &Balanced) -> f64 {
        1.0 - self.seconds / other.seconds
    }
}

impl Display for Balanced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:.3} s", self.strategy, self.seconds)
    }
}

/// The result of a strategy.
pub(crate) fn of(all: &[Balanced], strategy: TimedStrategy) -> Result<&Balanced, Failure> {
    let found = all.iter().find(|balanced| balanced.strategy == strategy.name);
    found.ok_or_else(|| Failure::input(format!("there is no measurement of {}", strategy.name)))
}

/// The core of each PE. PEs are numbered round-robin over nodes, as by machine files and launchers. In a node, even
/// cores are on the first socket and odd cores on the second, as numbered by the BIOS.
pub(crate) fn round_robin_cores() -> Vec<u32> {
    let core = |pe: u32| {
        let (node, number) = (pe % 8, pe / 8);
        8 * node + 4 * (number % 2) + number / 2
    };
    (0..CORES).map(core).collect()
}

/// The core of each PE, in a random order.
pub(crate) fn random_cores(seed: u64) -> Vec<u32> {
    let mut cores: Vec<u32> = (0..CORES).collect();
    cores.sort_by_cached_key(|&core| mixed(mixed(seed) ^ u64::from(core)));
    cores
}

/// A pseudorandom number (S. Vigna's splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_has_one_pe() {
        for mut cores in [round_robin_cores(), random_cores(0), random_cores(1)] {
            assert_ne!(cores, Vec::from_iter(0..CORES));
            cores.sort_unstable();
            assert_eq!(cores, Vec::from_iter(0..CORES));
        }
        assert_ne!(random_cores(0), random_cores(1));
    }

    #[test]
    fn neighboring_pes_are_on_different_nodes_and_then_on_different_sockets() {
        assert_eq!(round_robin_cores()[..10], [0, 8, 16, 24, 32, 40, 48, 56, 4, 12]);
        assert_eq!(round_robin_cores()[16], 1);
    }

    #[test]
    fn the_extrapolated_time_is_close_to_that_of_a_whole_run() {
        let plan = Plan {
            before: 3,
            after: 1,
            iterations: 100,
            initial: "blocks",
            cores: round_robin_cores(),
            scale: 100.0,
            seed: 0,
        };
        let program = |iterations| equipoise_apps::kneighbor::Options {
            bytes: 1000,
            iterations,
            lb_every: 3,
            charge: Some(1e-9),
            charge_byte: 1e-8,
            ..equipoise_apps::kneighbor::Options::default()
        };
        let run = |config, iterations| equipoise_apps::kneighbor::exchange(config, &program(iterations));
        let all = plan.times(&[DUMMY, GREEDY], run);
        let balanced = of(&all, DUMMY).expect("it was requested");
        let whole = run(plan.config(DUMMY), 100).machine.expect("a machine").seconds;
        // The whole run has more load-balancing steps, which take some time.
        assert!((balanced.seconds / whole - 1.0).abs() < 0.05, "{balanced:?}: {whole} s");
        assert!(balanced.drift < 0.01, "{balanced:?}");
        assert!(of(&all, GREEDY).is_ok_and(|greedy| greedy.strategy == "GreedyLB"));
        assert!(of(&all, REFINE).is_err());
    }
}

//! How long programs take that balance themselves, on the machine of the TreeMatch paper, simulated.
//!
//! PlaFRIM's nodes have 2 sockets (Xeon X5550) with 4 cores each; 8 of them make 64 cores. InfiniBand QDR brings
//! 3.2e9 bytes per second to a node and from it, QPI 12e9 to a socket, and a core copies 6e9. A strategy takes as
//! long as the paper says.
//!
//! A program balances itself once and then does the same in every iteration. So three runs are simulated that end
//! soon after the step, and all iterations beyond take what those between the end of the first and the last do.

use std::fmt::Display;

use equipoise::{Config, Machine, Report, StrategySeconds};
use rayon::prelude::*;

/// Cores of the machine, and PEs of a program.
pub(super) const CORES: u32 = 64;

/// Bytes per second of the links of a node, a socket and a core.
const BANDWIDTHS: [f64; 3] = [3.2e9, 12e9, 6e9];

/// What a link takes beside bandwidth: two of them are MPI's 1.5 microseconds over InfiniBand, nearly.
const NETWORK: &str = "flow:latency=0.3e-6";

/// What the runtime of a core takes to send a message to another core, and to receive one, in seconds.
const OVERHEAD_SECONDS: f64 = 2e-6;

/// A strategy, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thinker {
    pub(super) name: &'static str,
    pub(super) seconds: f64,
    /// Whether it weighs messages by their bytes.
    weighs: bool,
}

impl Display for Thinker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The strategies with the seconds that the paper prints of Stencil3D (section VI.C: less than 1 ms is taken
/// for one), and of LeanMD (VI.A).
pub(super) const DUMMY: Thinker = Thinker { name: "DummyLB", seconds: 0.0, weighs: false };
pub(super) const GREEDY: Thinker = Thinker { name: "GreedyLB", seconds: 1e-3, weighs: false };
pub(super) const GREEDY_COMM: Thinker = Thinker { name: "GreedyCommLB", seconds: 1e-3, weighs: true };
pub(super) const REFINE: Thinker = Thinker { name: "RefineLB", seconds: 1e-3, weighs: false };
pub(super) const REFINE_COMM: Thinker = Thinker { name: "RefineCommLB", seconds: 7.5e-3, weighs: true };
pub(super) const TREE_BASED: Thinker = Thinker { name: "TMLB_TREEBASED", seconds: 0.2148, weighs: false };
pub(super) const GREEDY_LEANMD: Thinker = Thinker { seconds: 14.5e-3, ..GREEDY };
pub(super) const MIN_WEIGHT: Thinker = Thinker { name: "TMLB_MIN_WEIGHT", seconds: 0.233, weighs: false };

/// Seconds per byte of a message that strategies assume, as Charm++ does.
const BETA: f64 = 8.5e-9;

/// How a program is run.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Iterations before the load-balancing step.
    pub(super) before: u32,
    /// Iterations after it that are simulated: as many, or twice or three times as many. Those are no more than
    /// the iterations before, or there would be another step.
    pub(super) after: u32,
    /// Iterations that the time is of.
    pub(super) iterations: u32,
    /// Where elements start, as for `--initial`.
    pub(super) initial: &'static str,
    /// The core of each PE, in the order of the tree.
    pub(super) cores: Vec<u32>,
    /// A message of the program stands for one so many times as long.
    pub(super) scale: f64,
    pub(super) seed: u64,
}

/// How long a program takes with a strategy.
#[derive(Clone, Debug)]
pub(super) struct Balanced {
    pub(super) strategy: &'static str,
    /// All iterations, the step among them.
    pub(super) seconds: f64,
    /// An iteration after the step.
    pub(super) iteration_seconds: f64,
    /// By how much of it iterations differ that are taken for those beyond.
    pub(super) drift: f64,
    /// Elements that moved.
    pub(super) migrations: u64,
}

impl Plan {
    fn config(&self, thinker: Thinker) -> Config {
        let cores: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        let [node, socket, core] = BANDWIDTHS.map(|bandwidth| bandwidth / self.scale);
        let machine = format!("fattree:8:2:4/{node}:{socket}:{core}/1:1:1[{}]", cores.join(","));
        let Thinker { name, seconds, weighs } = thinker;
        let parameters = format!("{name}:beta_seconds_per_byte={}", BETA * self.scale);
        let mut config = Config::on_machine(&machine, NETWORK);
        config.machine = Machine {
            overhead: OVERHEAD_SECONDS,
            strategy_seconds: Some(StrategySeconds::Charged(seconds)),
            ..config.machine
        };
        Config {
            initial: self.initial.into(),
            balancer: vec![if weighs { parameters } else { name.into() }],
            seed: self.seed,
            ..config
        }
    }

    /// What a program takes with each strategy; `run` is told how many iterations.
    pub(super) fn times<R>(
        &self,
        thinkers: &[Thinker],
        run: impl Fn(Config, u32) -> Report<R> + Sync,
    ) -> Vec<Balanced> {
        let time = |&thinker: &Thinker| {
            let one = |times| {
                let report = run(self.config(thinker), self.before + times * self.after);
                (report.machine.map_or(f64::NAN, |machine| machine.seconds), report.migrations)
            };
            let [(first, _), (second, _), (third, migrations)] = [1, 2, 3].map(one);
            let iteration_seconds = (third - first) / f64::from(2 * self.after);
            let left = f64::from(self.iterations - self.before - 3 * self.after);
            Balanced {
                strategy: thinker.name,
                seconds: third + left * iteration_seconds,
                iteration_seconds,
                drift: 2.0 * ((third - second) - (second - first)).abs() / (third - first),
                migrations,
            }
        };
        thinkers.par_iter().map(time).collect()
    }
}

impl Balanced {
    /// What it takes less than another one, as a part of that.
    pub(super) fn gain(&self, other: &Balanced) -> f64 {
        1.0 - self.seconds / other.seconds
    }
}

impl Display for Balanced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:.3} s", self.strategy, self.seconds)
    }
}

/// What is of a strategy.
pub(super) fn of(all: &[Balanced], strategy: Thinker) -> anyhow::Result<&Balanced> {
    let found = all.iter().find(|balanced| balanced.strategy == strategy.name);
    found.ok_or_else(|| anyhow::anyhow!("nothing was measured of {}", strategy.name))
}

/// PEs numbered over nodes in turn, as machine files and launchers do, and in a node as the BIOS numbers cores:
/// the even ones are on the first socket, the odd ones on the second.
pub(super) fn in_turn() -> Vec<u32> {
    let core = |pe: u32| {
        let (node, number) = (pe % 8, pe / 8);
        8 * node + 4 * (number % 2) + number / 2
    };
    (0..CORES).map(core).collect()
}

/// PEs numbered over cores in an order drawn from the seed.
pub(super) fn drawn(seed: u64) -> Vec<u32> {
    let mut cores: Vec<u32> = (0..CORES).collect();
    cores.sort_by_cached_key(|&core| mixed(mixed(seed) ^ u64::from(core)));
    cores
}

/// A number that looks like any other (S. Vigna's splitmix64).
pub(super) fn mixed(number: u64) -> u64 {
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
        for mut cores in [in_turn(), drawn(0), drawn(1)] {
            assert_ne!(cores, Vec::from_iter(0..CORES));
            cores.sort_unstable();
            assert_eq!(cores, Vec::from_iter(0..CORES));
        }
        assert_ne!(drawn(0), drawn(1));
    }

    #[test]
    fn neighboring_numbers_are_on_other_nodes_and_then_on_other_sockets() {
        assert_eq!(in_turn()[..10], [0, 8, 16, 24, 32, 40, 48, 56, 4, 12]);
        assert_eq!(in_turn()[16], 1);
    }

    #[test]
    fn what_is_not_simulated_takes_what_the_last_iterations_do() {
        let plan = Plan {
            before: 3,
            after: 1,
            iterations: 100,
            initial: "blocks",
            cores: in_turn(),
            scale: 100.0,
            seed: 0,
        };
        let program = |iterations| crate::kneighbor::Options {
            bytes: 1000,
            iterations,
            lb_every: 3,
            charge: Some(1e-9),
            charge_byte: 1e-8,
            ..crate::kneighbor::Options::default()
        };
        let run = |config, iterations| crate::kneighbor::exchange(config, &program(iterations));
        let all = plan.times(&[DUMMY, GREEDY], run);
        let balanced = of(&all, DUMMY).expect("it was asked for");
        let whole = run(plan.config(DUMMY), 100).machine.expect("a machine").seconds;
        // The steps of 100 iterations, which there are more of, cost something too.
        assert!((balanced.seconds / whole - 1.0).abs() < 0.05, "{balanced:?}: {whole} s");
        assert!(balanced.drift < 0.01, "{balanced:?}");
        assert!(of(&all, GREEDY).is_ok_and(|greedy| greedy.strategy == "GreedyLB"));
        assert!(of(&all, REFINE).is_err());
    }
}

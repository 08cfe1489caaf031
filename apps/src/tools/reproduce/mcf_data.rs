//! What the figures of costs have in common: steps of SP-MZ on machines, under mappings that searches find.
//!
//! D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014, section 3.1:
//! SP-MZ class D, one task on each host of 16 Gflop/s. In a step a task posts its receives, computes, sends, and waits
//! for its own messages. The network shares links max-min fairly, without latencies. Five steps are simulated.

use std::sync::Arc;

use anyhow::Context as _;
use equipoise_strategies::cost::qap::{self, Metric};
use equipoise_strategies::cost::{cuts, mcf};
use equipoise_strategies::mapping::mcf_lb::McfLb;
use equipoise_strategies::mapping::swap_lb::{Cost, Effort, Ending, Start, SwapLb};
use equipoise_strategies::network::exchange::{Exchange, Receives, Traffic};
use equipoise_strategies::partition::groups::{By, Grouping};
use equipoise_strategies::{Database, Topology, graph, network, topology};

/// A machine as the figures call it, its spec, and the distance that the paper takes for it.
pub(super) type Platform = (&'static str, &'static str, Metric);

/// The paper's machines.
pub(super) const PLATFORMS: [Platform; 3] = [
    ("cluster", "platform:litvinov-cluster", Metric::Bandwidth),
    ("tree", "platform:litvinov-tree", Metric::Rtt),
    ("grid", "platform:litvinov-grid", Metric::Rtt),
];

/// Steps that are simulated.
const STEPS: u64 = 5;

/// Swaps in a row that are in vain at the end of a search, as in the paper.
const TRIES: usize = 500;

/// SP-MZ class D on a machine: one task per PE, on a network.
pub(super) struct Study {
    /// The machine.
    pub(super) machine: Arc<dyn Topology>,
    /// The tasks.
    pub(super) tasks: Database,
    traffic: Traffic,
    network: String,
}

/// A mapping, what it costs, and what it takes.
#[derive(Clone, Debug)]
pub(super) struct Mapped {
    /// Bytes times distances.
    pub(super) qap: f64,
    /// Seconds of the busiest link in a step.
    pub(super) mcf: f64,
    /// Seconds of the steps, simulated.
    pub(super) seconds: f64,
}

impl Study {
    /// On the machine of that spec, with the network of that spec.
    pub(super) fn of(machine: &str, network: &str) -> anyhow::Result<Study> {
        let machine = topology::parse(machine)?;
        let pes = machine.pes();
        let tasks = graph::load(&format!("npb-mz:benchmark=SP,class=D,processes={pes}"))?.remap(pes as u32);
        let traffic = Traffic::directed(&tasks);
        Ok(Study { machine, tasks, traffic, network: network.to_string() })
    }

    /// The seconds a task computes in all steps.
    pub(super) fn compute_seconds(&self) -> f64 {
        STEPS as f64 * self.step_seconds()
    }

    /// The seconds that the messages of all steps take at least, wherever tasks are.
    ///
    /// # Errors
    /// Where the links of the machine do not meet.
    pub(super) fn bound_seconds(&self) -> anyhow::Result<f64> {
        Ok(STEPS as f64 * cuts::bound_of_any(&self.tasks, &*self.machine)?)
    }

    fn step_seconds(&self) -> f64 {
        self.tasks.objects.iter().map(|object| object.load_seconds).fold(0.0, f64::max)
    }

    /// The seconds of the steps with task `i` on PE `places[i]`.
    pub(super) fn seconds(&self, places: &[u32]) -> anyhow::Result<f64> {
        let exchange = Exchange {
            iterations: STEPS,
            compute_seconds: self.step_seconds(),
            receives: Receives::BeforeCompute,
            extrapolates: false,
        };
        let model = network::parse(&self.network)?;
        Ok(exchange.run(&self.traffic, places, &mut *model.on(&self.machine)?).seconds)
    }

    /// Where searches end that make `cost` smaller, the paper's way.
    pub(super) fn search(&self, cost: Cost, restarts: usize, seed: u64) -> anyhow::Result<Vec<Ending>> {
        let search = SwapLb { cost, effort: effort(restarts), grouping: GROUPING };
        search.endings(&self.tasks, &*self.machine, seed).context("SwapLB gave no answer")
    }

    /// Where searches end that relieve the busiest link.
    pub(super) fn relieve(&self, norm: i32, restarts: usize, seed: u64) -> anyhow::Result<Vec<Ending>> {
        let search = McfLb { norm, effort: effort(restarts), grouping: GROUPING };
        search.endings(&self.tasks, &*self.machine, seed).context("McfLB gave no answer")
    }

    /// What a mapping costs and takes.
    pub(super) fn evaluate(&self, metric: Metric, places: &[u32]) -> anyhow::Result<Mapped> {
        Ok(Mapped {
            qap: qap::cost(&self.tasks, &*self.machine, places, metric)?,
            mcf: mcf::cost(&self.tasks, &*self.machine, places),
            seconds: self.seconds(places)?,
        })
    }

    /// The random mappings at which searches of bytes times distances began, a sixth of them, and the mappings at which
    /// all ended.
    pub(super) fn sample(
        &self,
        metric: Metric,
        restarts: usize,
        seed: u64,
    ) -> anyhow::Result<[Vec<Mapped>; 2]> {
        let endings = self.search(Cost::Qap(metric), restarts, seed)?;
        let starts = endings.iter().take(restarts.div_ceil(6)).map(|ending| ending.mappings().swap_remove(0));
        let starts = starts.map(|places| self.evaluate(metric, &places)).collect::<anyhow::Result<_>>()?;
        let ends = endings.into_iter().map(|ending| self.evaluate(metric, &ending.places));
        Ok([starts, ends.collect::<anyhow::Result<_>>()?])
    }
}

/// Packets of 64 KiB on links of 125 MB/s that are routed in that way.
pub(super) fn packets(routing: &str) -> String {
    format!("packet:size=65536,bandwidth=125e6,latency=0,routing={routing}")
}

/// With how many seeds searches are run where one seed says little.
pub(super) const SEEDS: u64 = 5;

/// The mean of some numbers.
pub(super) fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Every search begins at random, and ends, as in the paper.
fn effort(restarts: usize) -> Effort {
    Effort { restarts, tries: Some(TRIES), start: Start::Random }
}

/// There is a PE for every task.
const GROUPING: Grouping = Grouping { by: By::Greedy, equal: false, imbalance: 0.05 };

/// The correlation of two costs (K. Pearson, 1895); not a number where one of them is the same everywhere, but for rounding.
pub(super) fn pearson(pairs: &[(f64, f64)]) -> f64 {
    let is_same = |of: fn(&(f64, f64)) -> f64| {
        let (least, most) =
            (pairs.iter().map(of).fold(f64::INFINITY, f64::min), pairs.iter().map(of).fold(0.0, f64::max));
        most - least <= SAME * most
    };
    if is_same(|pair| pair.0) || is_same(|pair| pair.1) {
        return f64::NAN;
    }
    let count = pairs.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|pair| of(pair.0 - x, pair.1 - y)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

/// The part of all pairs of mappings, of those of which one takes longer, whose order a cost has wrong; a pair of the
/// same cost counts half.
pub(super) fn misleads(pairs: &[(f64, f64)]) -> f64 {
    let (mut wrong, mut all) = (0.0, 0.0);
    for (at, a) in pairs.iter().enumerate() {
        for b in &pairs[..at] {
            let (cost, time) = (a.0 - b.0, a.1 - b.1);
            if time.abs() <= SAME * a.1 {
                continue;
            }
            all += 1.0;
            wrong += match cost.abs() <= SAME * a.0.abs() {
                true => 0.5,
                false => f64::from(u8::from((cost > 0.0) != (time > 0.0))),
            };
        }
    }
    wrong / all
}

/// What rounding may do to numbers that are the same, as a part of them.
pub(super) const SAME: f64 = 1e-9;

/// Those whose time is in the lowest tenth of the range of all times, as the paper counts the best.
pub(super) fn best_tenth(mapped: &[Mapped]) -> Vec<Mapped> {
    let times = || mapped.iter().map(|mapped| mapped.seconds);
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let limit = least + 0.1 * (most - least);
    mapped.iter().filter(|mapped| mapped.seconds <= limit).cloned().collect()
}

/// (cost, time) of mappings.
pub(super) fn pairs(mapped: &[Mapped], cost: fn(&Mapped) -> f64) -> Vec<(f64, f64)> {
    mapped.iter().map(|mapped| (cost(mapped), mapped.seconds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlations_and_orders_are_what_they_are_called() {
        let line: Vec<(f64, f64)> = (0..9).map(|x| (f64::from(x), 30.0 - 2.0 * f64::from(x))).collect();
        assert!((pearson(&line) + 1.0).abs() < 1e-12);
        assert_eq!(misleads(&line), 1.0);
        let pairs = [(1.0, 1.0), (2.0, 2.0), (2.0, 4.0), (3.0, 3.0)];
        // Of six pairs one is wrong and one is undecided.
        assert_eq!(misleads(&pairs), 0.25);
        assert!((pearson(&pairs) - 0.6324555).abs() < 1e-6, "{}", pearson(&pairs));
        // What rounding makes of equal times says nothing.
        assert!(pearson(&[(1.0, 5.0), (2.0, 5.0 + 1e-12), (3.0, 5.0 + 2e-12)]).is_nan());
        assert!(pearson(&[(2.0, 5.0), (2.0, 6.0)]).is_nan());
    }

    #[test]
    fn times_are_those_of_the_reference_on_the_tree() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/simgrid/spmz_D16_tree.csv");
        let Ok(text) = std::fs::read_to_string(file) else {
            eprintln!("skipped: {file} is not at hand");
            return;
        };
        let study = Study::of("platform:litvinov-tree", "flow").expect("a study");
        for line in text.lines().skip(1).step_by(7) {
            let fields: Vec<&str> = line.split(',').collect();
            let places: Vec<u32> = fields[8].split(' ').map(|pe| pe.parse().expect("a PE")).collect();
            let mapped = study.evaluate(Metric::Rtt, &places).expect("a time");
            let theirs: f64 = fields[6].parse().expect("seconds");
            assert!(
                (mapped.seconds / theirs - 1.0).abs() < 1e-6,
                "{}: {} {theirs}",
                fields[0],
                mapped.seconds
            );
        }
    }
}

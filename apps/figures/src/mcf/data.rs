//! Shared by the figures of costs: steps of SP-MZ on machines, with mappings found by searches.
//!
//! D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014, section 3.1:
//! SP-MZ class D, one task on each host of 16 Gflop/s. In a step a task posts its receives, computes, sends, and waits
//! for its own messages. The network shares links max-min fairly, without latencies. Five steps are simulated.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::topology::Platform;
use equipoise_model::{Database, Topology, topology};
use equipoise_network::models;
use equipoise_network::models::exchange::{Exchange, Receives, Traffic};
use equipoise_strategies::cost::qap::{self, Metric};
use equipoise_strategies::cost::{cuts, mcf};
use equipoise_strategies::mapping::swap_lb::{Cost, Effort, Ending, Goal, Start, SwapLb};
use equipoise_strategies::partition::groups::{By, Grouping};
use equipoise_strategies::workloads;
use serde_json::json;

use crate::poise::data::uniform;

/// A machine: its name in the figures, its spec, and the distance used in the paper.
pub(crate) type Named = (&'static str, &'static str, Metric);

/// The machines of the paper.
pub(crate) const PLATFORMS: [Named; 3] = [
    ("cluster", "platform:litvinov-cluster", Metric::Bandwidth),
    ("tree", "platform:litvinov-tree", Metric::Rtt),
    ("grid", "platform:litvinov-grid", Metric::Rtt),
];

/// The number of simulated steps.
const STEPS: u64 = 5;

/// A search ends after this number of unsuccessful swaps in a row, as in the paper.
const TRIES: usize = 500;

/// SP-MZ class D on a machine: one task per PE, on a network.
pub(crate) struct Study {
    /// The machine.
    pub(crate) machine: Arc<dyn Topology>,
    /// The tasks.
    pub(crate) tasks: Database,
    traffic: Traffic,
    network: String,
}

/// The costs and the time of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Mapped {
    /// Bytes times distances.
    pub(crate) qap: f64,
    /// Seconds of the busiest link in a step.
    pub(crate) mcf: f64,
    /// Seconds of the steps, simulated.
    pub(crate) seconds: f64,
}

impl Study {
    /// The study on a machine and a network, given by specs.
    pub(crate) fn of(machine: &str, network: &str) -> Result<Study, Failure> {
        Study::on(topology::parse(machine)?, network)
    }

    /// The same on a given machine.
    pub(crate) fn on(machine: Arc<dyn Topology>, network: &str) -> Result<Study, Failure> {
        let pes = machine.pes();
        let tasks =
            workloads::load(&format!("npb-mz:benchmark=SP,class=D,processes={pes}"))?.remap(pes as u32);
        let traffic = Traffic::directed(&tasks);
        Ok(Study { machine, tasks, traffic, network: network.to_string() })
    }

    /// The seconds a task computes in all steps.
    pub(crate) fn compute_seconds(&self) -> f64 {
        STEPS as f64 * self.step_seconds()
    }

    /// A lower bound for the seconds of the messages of all steps, for any mapping.
    ///
    /// # Errors
    /// If the links of the machine do not form a graph.
    pub(crate) fn bound_seconds(&self) -> Result<f64, Failure> {
        Ok(STEPS as f64 * cuts::bound_of_any(&self.tasks, &*self.machine)?)
    }

    fn step_seconds(&self) -> f64 {
        self.tasks.objects.iter().map(|object| object.load_seconds).fold(0.0, f64::max)
    }

    /// The seconds of the steps with task `i` on PE `places[i]`.
    pub(crate) fn seconds(&self, places: &[u32]) -> Result<f64, Failure> {
        let exchange = Exchange {
            iterations: STEPS,
            compute_seconds: self.step_seconds(),
            receives: Receives::BeforeCompute,
            extrapolates: false,
        };
        let model = models::parse(&self.network)?;
        Ok(exchange.run(&self.traffic, places, &mut *model.on(&self.machine)?).seconds)
    }

    /// The results of searches that minimise `cost`, as in the paper.
    pub(crate) fn search(&self, cost: Cost, restarts: usize, seed: u64) -> Result<Vec<Ending>, Failure> {
        self.endings(Goal::Cost(cost), restarts, seed)
    }

    /// The results of searches with any goal.
    pub(crate) fn endings(&self, goal: Goal, restarts: usize, seed: u64) -> Result<Vec<Ending>, Failure> {
        let search = SwapLb { goal, effort: effort(restarts), grouping: GROUPING };
        Ok(search.endings(&self.tasks, &*self.machine, seed)?)
    }

    /// The costs and the time of a mapping.
    pub(crate) fn evaluate(&self, metric: Metric, places: &[u32]) -> Result<Mapped, Failure> {
        Ok(Mapped {
            qap: qap::cost(&self.tasks, &*self.machine, places, metric)?,
            mcf: mcf::cost(&self.tasks, &*self.machine, places),
            seconds: self.seconds(places)?,
        })
    }

    /// A sixth of the random initial mappings of searches that minimise bytes times distances, and all final mappings.
    pub(crate) fn sample(
        &self,
        metric: Metric,
        restarts: usize,
        seed: u64,
    ) -> Result<[Vec<Mapped>; 2], Failure> {
        let endings = self.search(Cost::Qap(metric), restarts, seed)?;
        let starts = endings.iter().take(restarts.div_ceil(6)).map(|ending| ending.mappings().swap_remove(0));
        let starts = starts.map(|places| self.evaluate(metric, &places)).collect::<Result<_, Failure>>()?;
        let ends = endings.into_iter().map(|ending| self.evaluate(metric, &ending.places));
        Ok([starts, ends.collect::<Result<_, Failure>>()?])
    }
}

/// The links between the routers of a machine: their bandwidth relative to that of hosts' links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RouterLinks {
    /// All the same.
    Of(f64),
    /// Random, from 0.1 to 1, the same in both directions.
    Random,
}

/// The grid of the paper with other links between its routers.
pub(crate) fn grid_with(links: RouterLinks, seed: u64) -> Result<Arc<dyn Topology>, Failure> {
    let (name, spec, _) = PLATFORMS[2];
    let grid = topology::parse(spec)?;
    let (hosts, mut written) = (grid.pes(), Vec::new());
    let mut vertices = hosts;
    for id in 0..grid.links() {
        let link = grid.link(id);
        let vertex = |text: &str| text.trim_start_matches("router ").parse::<usize>().ok();
        let ends = link.name.split_once(" -> ").and_then(|(src, dst)| Some((vertex(src)?, vertex(dst)?)));
        let (src, dst) = ends.ok_or_else(|| Failure::bug(format!("the link {}", link.name)))?;
        vertices = vertices.max(src.max(dst) + 1);
        let factor = match links {
            _ if src.min(dst) < hosts => 1.0,
            RouterLinks::Of(factor) => factor,
            RouterLinks::Random => 0.1 + 0.9 * uniform(seed, 1024 * src.min(dst) + src.max(dst)),
        };
        let bandwidth = factor * link.bandwidth;
        written.push(json!({ "src": src, "dst": dst, "bw": bandwidth, "lat": link.latency_seconds }));
    }
    let mut routes = Vec::new();
    for (src, dst) in (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))) {
        let mut crossed = Vec::new();
        grid.route(src, dst, &mut crossed);
        if src != dst {
            routes.push(json!({ "src": src, "dst": dst, "links": crossed }));
        }
    }
    let text =
        json!({ "hosts": hosts, "vertices": vertices, "links": written, "routes": routes }).to_string();
    Ok(Arc::new(Platform::read(name, &text).map_err(Failure::bug)?))
}

/// The spec of a network with packets of 64 KiB on links of 125 MB/s.
pub(crate) fn packets(routing: &str) -> String {
    format!("packet:size=65536,bandwidth=125e6,latency=0,routing={routing}")
}

/// The number of seeds of searches whose results vary.
pub(crate) const SEEDS: u64 = 5;

/// Starts and ends of searches, as in the paper.
fn effort(restarts: usize) -> Effort {
    Effort { restarts, tries: Some(TRIES), start: Start::Random }
}

/// Without effect: there is a PE for every task.
const GROUPING: Grouping = Grouping { by: By::Greedy, equal: false, imbalance: 0.05 };

/// The mappings whose time is in the lowest tenth of the range of all times: the best ones in the paper.
pub(crate) fn best_tenth(mapped: &[Mapped]) -> Vec<Mapped> {
    let times = || mapped.iter().map(|mapped| mapped.seconds);
    let (least, most) = (times().fold(f64::INFINITY, f64::min), times().fold(0.0, f64::max));
    let limit = least + 0.1 * (most - least);
    mapped.iter().filter(|mapped| mapped.seconds <= limit).cloned().collect()
}

/// (cost, time) of mappings.
pub(crate) fn pairs(mapped: &[Mapped], cost: fn(&Mapped) -> f64) -> Vec<(f64, f64)> {
    mapped.iter().map(|mapped| (cost(mapped), mapped.seconds)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_links_between_routers_differ() {
        let grid = topology::parse(PLATFORMS[2].1).expect("the grid");
        for links in [RouterLinks::Of(0.5), RouterLinks::Random] {
            let machine = grid_with(links, 3).expect("a grid");
            assert_eq!((machine.pes(), machine.links()), (grid.pes(), grid.links()));
            for id in 0..grid.links() {
                let (ours, theirs) = (machine.link(id), grid.link(id));
                let is_between = ours.name.matches("router").count() == 2;
                assert_eq!((&ours.name, is_between), (&theirs.name, ours.bandwidth < theirs.bandwidth));
            }
            for (a, b) in [(0, 15), (3, 9)] {
                assert_eq!(machine.distance(a, b), grid.distance(a, b));
            }
        }
    }

    #[test]
    fn times_are_those_of_the_reference_on_the_tree() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/simgrid/spmz_D16_tree.csv");
        let Ok(text) = std::fs::read_to_string(file) else {
            equipoise_model::testing::skip(&format!("there is no {file}"));
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

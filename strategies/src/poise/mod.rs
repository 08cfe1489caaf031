//! `PoiseLB`: load, hops and migrations together, on any machine.
//!
//! `quick` decides whether the search can pay for its thinking, where `PoiseLB` is the only strategy of a step whose period is recorded. The search:
//!
//! 1. `problem`: converts the database to a graph with integer weights, and a capacity for every PE (`limits`); `machine`: converts the
//!    machine to a tree of blocks, from one block of all PEs to single PEs, with the distances of blocks in every layer.
//! 2. `initial_mapping`: cuts the graph like the machine, layer by layer. Each cut is a multilevel bisection
//!    ([`crate::partition::bisection`], which includes coarsening). Other starts are the present placement, and runs of
//!    objects along a path.
//! 3. `refinement`: refines after every cut, over all blocks of the layer, and once more level by level (V-cycles).
//! 4. `one_to_one`: if no two objects share a PE, tabu search or simulated annealing.
//! 5. The best placement by `objective` wins: least overload, then fewest hop-bytes including the cost of moves. `report`
//!    compares it with the lower `bound`.
//!
//! Where links have different bandwidths, on machines of up to 1024 PEs, distances are times of a byte (`machine/timed.rs`) in place of hops.
//!
//! `between` finds placements between the present one and the answer, for users who limit the number of moves.
//!
//! The effort of each step is in `settings`, the parameters of the strategy are in `strategy`.

use equipoise_model::{Database, Topology};
use rayon::prelude::*;

#[cfg(feature = "ablation")]
pub mod ablation;
mod between;
mod board;
mod bound;
#[cfg(test)]
mod contract;
mod initial_mapping;
mod limits;
mod machine;
mod objective;
mod one_to_one;
mod problem;
mod quick;
mod refinement;
mod report;
mod settings;
mod strategy;
#[cfg(test)]
mod tests;

pub use settings::Quality;
pub(crate) use strategy::make_alone;
pub use strategy::{NAMED, PoiseLb};

use bound::cost_bound;
use initial_mapping::{incremental, line, map};
use machine::distance::with_metric;
use objective::{Grade, grade, grade_with_moves};
use problem::Problem;
use refinement::relax_capacity::relax_capacity;
use refinement::{links, refine_layer, v_cycle};
use settings::Settings;

use crate::cost::mcf;
use crate::partition::groups::{By, Grouping};
use crate::partition::metis::Method;

/// Starts other than from scratch are refined only if they cost at most this many times the cost from scratch.
const MAX_COST: i64 = 2;

/// A mapping from scratch is expected to cause at least this fraction of the migration costs of all objects.
const MOVED: f64 = 0.5;

/// The maximum numbers of objects and of PEs for which runs of objects, and METIS groups placed by TopoLB, are used as
/// starts.
const MAX_TOPOLB_OBJECTS: usize = 8192;
const MAX_TOPOLB_PES: usize = 1024;

/// The best placement so far: least overload, then fewest hop-bytes including the cost of its moves, then the least cost
/// of its moves.
struct Found<'a> {
    problem: &'a Problem<'a>,
    migration_costs: &'a [i64],
    best: Option<((Grade, i64), Vec<u32>)>,
}

impl Found<'_> {
    /// Adds a placement; of equals the first is kept.
    fn add(&mut self, block_of: Vec<u32>) {
        let grade = grade_with_moves(self.problem, self.migration_costs, &block_of);
        if self.best.as_ref().is_none_or(|best| grade < best.0) {
            self.best = Some((grade, block_of));
        }
    }
}

/// One call of the strategy.
struct Solver<'a> {
    database: &'a Database,
    topology: &'a dyn Topology,
    settings: Settings,
    seed: u64,
    /// See [`objective::migration_costs`].
    migration_costs: Vec<i64>,
    /// Allowed max/avg - 1, for the start made by TopoLB.
    imbalance: f64,
}

impl Solver<'_> {
    /// The block of every vertex: the better of refining the present placement and mapping from scratch.
    fn solve(&self, problem: &mut Problem) -> Vec<u32> {
        let mut block_of = self.choose(problem);
        relax_capacity(problem, &self.settings, &self.migration_costs, &mut block_of, self.seed);
        block_of
    }

    /// The best placement found below the allowed load, or the one with the least overload.
    fn choose(&self, problem: &Problem) -> Vec<u32> {
        let all: i64 = self.migration_costs.iter().sum();
        let mut found = Found { problem, migration_costs: &self.migration_costs, best: None };
        if all > 0 {
            found.add(self.refined(problem, incremental::start(problem)));
            let most = problem.capacity.iter().copied().max().unwrap_or(0);
            let limit = cost_bound(problem, most) as f64 + MOVED * all as f64;
            // Even the best mapping from scratch would not compensate its migration costs.
            if let Some((((0, cost), _), block_of)) = &found.best
                && *cost as f64 <= limit
            {
                return block_of.clone();
            }
        }
        let cost = |block_of: &[u32]| grade(problem, problem.machine.layers.len() - 1, block_of).1;
        let from_scratch = self.map_from_scratch(problem);
        let most = MAX_COST * cost(&from_scratch);
        found.add(if all > 0 { self.refined(problem, from_scratch) } else { from_scratch });
        if self.settings.has_other_starts {
            let others = self.other_starts(problem).into_iter().filter(|other| cost(other) <= most);
            others.for_each(|other| found.add(self.refined(problem, other)));
        }
        // A placement that is only as good as the present one is not worth its moves, even where they cost nothing.
        let present = incremental::start(problem);
        let value = |block_of: &[u32]| grade_with_moves(problem, &self.migration_costs, block_of).0;
        match found.best {
            Some(((best, _), block_of)) if best < value(&present) => block_of,
            _ => present,
        }
    }

    /// A placement, refined over the PEs.
    fn refined(&self, problem: &Problem, block_of: Vec<u32>) -> Vec<u32> {
        self.refined_with(problem, block_of, &self.migration_costs)
    }

    /// A placement, refined over the PEs with these migration costs.
    fn refined_with(&self, problem: &Problem, mut block_of: Vec<u32>, migration_costs: &[i64]) -> Vec<u32> {
        let (layer, homes) = (problem.machine.layers.len() - 1, problem.homes(migration_costs));
        refine_layer(problem, &self.settings, layer, &mut block_of, &problem.capacity, homes, self.seed);
        block_of
    }

    /// Starts other than from scratch; without the present placement if migrations have costs.
    fn other_starts(&self, problem: &Problem) -> Vec<Vec<u32>> {
        let mut starts = Vec::new();
        if self.migration_costs.iter().all(|&cost| cost == 0) {
            starts.push(incremental::start(problem));
        }
        if problem.movable > MAX_TOPOLB_OBJECTS || problem.capacity.len() > MAX_TOPOLB_PES {
            return starts;
        }
        starts.push(line::start(problem, self.topology));
        // If no two objects share a PE and each fits everywhere, TopoLB's placement was already a start of the search.
        let heaviest = problem.graph.heaviest();
        let is_open = problem.capacity.iter().all(|&capacity| capacity >= heaviest);
        if !(is_open && problem.movable <= problem.capacity.len()) {
            let by = By::Metis(Method::Recursive);
            let grouping = Grouping { by, equal: false, imbalance: self.imbalance };
            starts.extend(one_to_one::topolb(problem, self.database, self.topology, grouping, self.seed));
        }
        starts
    }

    /// The best of several mappings from scratch.
    fn map_from_scratch(&self, problem: &Problem) -> Vec<u32> {
        let layer = problem.machine.layers.len() - 1;
        let once = |(settings, restart): (&Settings, u64)| {
            let seed = self.seed.wrapping_add(restart.wrapping_mul(0xd134_2543_de82_ef95));
            let mut block_of = map(problem, settings, seed);
            v_cycle::refine(problem, settings, layer, self.settings.v_cycles, &mut block_of, seed);
            (grade(problem, layer, &block_of), block_of)
        };
        let default = self.settings.includes_default.then(|| Quality::Default.settings());
        let runs = (0..self.settings.restarts as u64).map(|restart| (&self.settings, restart));
        let runs: Vec<(&Settings, u64)> =
            runs.chain(default.as_ref().map(|settings| (settings, 0))).collect();
        let best = runs.into_par_iter().enumerate().map(|(number, run)| (number, once(run)));
        let best = best.min_by_key(|(number, run)| (run.0, *number)).map(|(_, run)| run);
        let block_of = best.map_or_else(Vec::new, |best| best.1);
        one_to_one::search(problem, self.database, self.topology, &self.settings, block_of, self.seed)
    }

    /// Reduces the load of the busiest link; kept only if the time of the busiest link falls.
    fn relieve_links(&self, problem: &Problem, block_of: &mut Vec<u32>) {
        let mut relieved = block_of.clone();
        let (distance, homes) = (&problem.machine.last().distance, problem.homes(&self.migration_costs));
        with_metric!(distance, metric => links::relieve(problem, self.topology, metric, homes, &mut relieved));
        let most = |block_of: &[u32]| {
            mcf::cost(self.database, self.topology, &problem.placement(self.database, block_of))
        };
        if most(&relieved) < most(block_of) {
            *block_of = relieved;
        }
    }
}

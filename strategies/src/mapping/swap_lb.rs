//! `SwapLB`: swaps groups on PEs while that decreases a cost, from many random mappings.
//!
//! The search of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing, 2014,
//! section 3.1, after J. M. Orduña, F. Silla, J. Duato, On the development of a communication-aware task mapping
//! technique, Journal of Systems Architecture 50, 2004. A search begins with a random mapping. It repeatedly samples
//! two tasks and swaps these if that decreases the cost. The search ends after `tries` samples in a row without
//! improvement. There are `restarts` searches, and the best result is kept (ties go to the first).
//!
//! The cost is one of [`crate::cost::qap`] or [`crate::cost::mcf`], updated incrementally for each swap, or of
//! [`crate::cost::mcf_optimal`], which solves a linear program for many of the swaps. With linear programs, if there are
//! at most `tries` pairs, all pairs are tried in a random order, so that no pair fails twice. If a PE has no group, the
//! swap moves the other group there. Restarts are independent and run on all cores. Each has its own random number
//! generator, so the assignment does not depend on the number of cores.
//!
//! Unlike in the paper, the first search begins at the present placement (`start=given`), if every group is on a PE of its
//! own without non-migratable objects. Then the assignment is never worse than the present one, if that is balanced or
//! can be balanced. Also unlike in the paper, tries grow with the number of groups above 250.

use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::{Assignment, Database, Topology};

pub use crate::cost::criterion::Cost;
use crate::cost::criterion::Unknown;
use crate::cost::mcf::{self, Aim, McfSwaps};
use crate::cost::mcf_optimal::{OptimalSwaps, Router};
use crate::cost::qap::{Distances, QapSwaps};
use crate::cost::routes::Routes;
use crate::cost::unsolved::Unsolved;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{self, Grouping};
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

mod busiest_link;
mod search;
mod switches;

pub use search::{Ending, Start};
use search::{Plan, Problem, swap_at_random, swap_to_local_minimum};

/// `SwapLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "SwapLB",
    form: "",
    help: "Swaps pairs of groups while that decreases a cost, from many random mappings (Litvinov 2014). To compare \
           costs by the assignments that minimise them.",
    params: &[
        Param {
            key: "cost",
            default: "qap:rtt",
            help: "cost to minimise: bytes times distance (`qap:hops`, `qap:bandwidth` or `qap:rtt`); `mcf`, the time of \
                   the busiest link; `mcf:optimal` or `mcf:shortest`, the same with optimal routes of all or of the \
                   shortest ones, by linear programs, for tens of PEs",
        },
        RESTARTS,
        TRIES,
        START,
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let goal = Goal::Cost(params.take("cost")?);
            let (effort, grouping) = (Effort::take(params)?, Grouping::take(params)?);
            Ok(Box::new(OnPart(SwapLb { goal, effort, grouping })))
        },
    },
};

/// The key `restarts`.
pub(super) const RESTARTS: Param = Param {
    key: "restarts",
    default: "10",
    help: "number of searches, 1 to 10000, of which the best result is kept",
};

/// The key `tries`.
pub(super) const TRIES: Param = Param {
    key: "tries",
    default: "auto",
    help: "number of swaps in a row without improvement that end a search, 1 to 10000000; `auto`: 500, or 2 per group if that is more",
};

/// The key `start`.
pub(super) const START: Param = Param {
    key: "start",
    default: "given",
    help: "start of the first search: `given`, the present placement, if it has one group per PE, or `random`, like the \
           other searches",
};

/// The maximum of `restarts`; values above are rejected.
const MAX_RESTARTS: usize = 10_000;
/// The maximum of `tries`; values above are rejected.
const MAX_TRIES: usize = 10_000_000;

/// The minimum of automatic tries, as in the paper.
const LEAST_TRIES: usize = 500;
/// The automatic tries per group.
const TRIES_PER_GROUP: usize = 2;

/// The maximum of restarts times tries times variables of a search with linear programs (one or two minutes).
const MAX_WORK: usize = 1 << 23;

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// The number of searches.
    pub restarts: usize,
    /// The number of swaps in a row without improvement that end a search; `None`: 500, or 2 per group if that is more.
    pub tries: Option<usize>,
    /// The start of the first search.
    pub start: Start,
}

impl Effort {
    /// The values of [`RESTARTS`], [`TRIES`] and [`START`].
    pub(super) fn take(params: &mut Params) -> Result<Effort, ParamError> {
        let restarts = params.take_count("restarts", MAX_RESTARTS)?;
        let tries = params.take_count_or_auto("tries", MAX_TRIES)?;
        Ok(Effort { restarts, tries, start: params.take("start")? })
    }

    /// The tries of a search that places `groups` groups.
    pub(super) fn tries(&self, groups: usize) -> usize {
        self.tries.unwrap_or(LEAST_TRIES.max(TRIES_PER_GROUP * groups))
    }

    /// The plan of a search.
    pub(super) fn plan(&self, seed: u64, only_best: bool) -> Plan {
        Plan { restarts: self.restarts, start: self.start, seed, only_best }
    }
}

/// The objective of a search, and its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// A cost, by random swaps: `SwapLB`.
    Cost(Cost),
    /// The time of the busiest link, in three phases: `McfLB`.
    BusiestLink {
        /// The power of the links' times in the sum of the second phase, at least 1.
        norm: i32,
    },
}

impl Goal {
    /// The cost by which the result and the present placement are compared.
    fn cost(self) -> Cost {
        match self {
            Goal::Cost(cost) => cost,
            Goal::BusiestLink { .. } => Cost::Mcf,
        }
    }
}

/// The strategies `SwapLB` and `McfLB`.
#[derive(Clone, Copy, Debug)]
pub struct SwapLb {
    /// The objective of the search.
    pub goal: Goal,
    /// The effort of the search.
    pub effort: Effort,
    /// How objects are grouped.
    pub grouping: Grouping,
}

impl Strategy for SwapLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        let best = Ending::best(self.search(&problem, topology, self.effort.plan(seed, true))?);
        let of = self.goal.cost();
        let cost = |places: &[u32]| match of.of(database, topology, places) {
            // The cost of the other placement may be known.
            Err(Unknown::Routes(Unsolved::Inexact { .. })) => Ok(f64::MAX),
            known => known.map_err(|unknown| self.refused(topology, unknown)),
        };
        let mut answer =
            problem.answer(database, topology, self.grouping, self.effort.start, &best.places, cost)?;
        if matches!(of, Cost::Optimal(_)) {
            let known = of.of(database, topology, &answer.pe_of);
            known.map_err(|unknown| self.refused(topology, unknown))?;
        }
        if let Goal::BusiestLink { .. } = self.goal {
            let seconds = mcf::cost(database, topology, &answer.pe_of);
            answer = answer.with_note("busiest_link_seconds", seconds);
        }
        Ok(answer)
    }
}

impl SwapLb {
    /// The result of every restart, in order.
    ///
    /// # Errors
    /// See [`Strategy::assign`].
    pub fn endings(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Vec<Ending>, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        self.search(&problem, topology, self.effort.plan(seed, false))
    }

    /// The error for an unknown cost, with its remedy.
    fn refused(&self, topology: &dyn Topology, unknown: Unknown) -> StrategyError {
        let remedy = match unknown {
            Unknown::Distances(_) => "use cost=mcf, or a strategy without a table of distances",
            Unknown::Routes(_) => "use cost=mcf",
        };
        StrategyError::Request(format!("`{}`: {unknown}; {remedy}", topology.spec()))
    }

    fn search(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        plan: Plan,
    ) -> Result<Vec<Ending>, StrategyError> {
        let commodities = &problem.commodities;
        let tries = self.effort.tries(problem.groups.count);
        let refused = |unknown: Unknown| self.refused(topology, unknown);
        let cost = match self.goal {
            Goal::Cost(cost) => cost,
            Goal::BusiestLink { norm } => {
                return Ok(busiest_link::search(problem, topology, plan, tries, norm));
            }
        };
        Ok(match cost {
            Cost::Qap(metric) => {
                let distances = Distances::of(&Routes::of(topology), metric);
                let distances = distances.map_err(|error| refused(error.into()))?;
                let make = |places: &[u32]| QapSwaps::new(commodities, &distances, places);
                problem.search(plan, make, |cost, board, rng| swap_at_random(cost, board, rng, tries))
            }
            Cost::Mcf => {
                let routes = Routes::of(topology);
                let seconds = routes.seconds_per_byte();
                let make =
                    |places: &[u32]| McfSwaps::new(commodities, &routes, &seconds, Aim::Busiest, places);
                problem.search(plan, make, |cost, board, rng| swap_at_random(cost, board, rng, tries))
            }
            Cost::Optimal(ways) => {
                let router = Router::new(topology, ways).map_err(|unsolved| refused(unsolved.into()))?;
                let make = |places: &[u32]| OptimalSwaps::new(&router, commodities, places);
                // Whether the linear program is too large, or lacks a route, does not depend on the placement.
                let any = make(&problem.hosts[..problem.groups.count]);
                let variables = any.check().map_err(|unsolved| refused(unsolved.into()))?;
                let work = variables.saturating_mul(plan.restarts).saturating_mul(tries);
                if work > MAX_WORK {
                    return Err(StrategyError::Request(format!(
                        "`{}`: cost=mcf:optimal and cost=mcf:shortest solve a linear program of {variables} variables \
                         for many of the swaps; restarts={} times tries={tries} times variables is more than \
                         {MAX_WORK}; give fewer restarts or tries, or use cost=mcf",
                        topology.spec(),
                        plan.restarts
                    )));
                }
                problem.search(plan, make, |cost, board, rng| {
                    swap_to_local_minimum(cost, board, rng, tries);
                })
            }
        })
    }
}

#[cfg(test)]
pub(super) mod tests;

//! `SwapLB`: groups on random PEs change places in pairs as long as that makes a cost smaller, again and again.
//!
//! The search of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014, section 3.1, after J. M. Orduña, F. Silla, J. Duato, On the development of a communication-aware task
//! mapping technique, Journal of Systems Architecture 50, 2004: it begins with a random mapping; it draws two
//! tasks, and if the cost is less when they change places, they do; it stops when so many `tries` in a row were in
//! vain. Then it begins anew, for so many `restarts`, and the best end is kept (of equals the first).
//!
//! The cost is one of [`crate::cost::qap`] or [`crate::cost::mcf`], updated by what a swap changes, or of
//! [`crate::cost::mcf_optimal`], for which many swaps are a linear program each: there, where there are no more pairs than
//! `tries`, all are gone through in a random order, so that none is tried twice in vain. A PE may have no group; then the
//! other moves there. Restarts are independent and run on all cores; each has dice of its own, so the answer does not depend
//! on how many cores there are.
//!
//! Unlike the paper's, the first search begins where groups are, if they are one on a PE on which nothing else stays
//! (`start=given`), so that the answer is never worse than what there was, where that is in balance or could be brought
//! there; and where there are more than 250 groups, tries grow with them.

use super::take_count;
pub use crate::cost::criterion::Cost;
use crate::cost::criterion::Unknown;
use crate::cost::mcf::{Aim, McfSwaps};
use crate::cost::mcf_optimal::{OptimalSwaps, Router, Unsolved};
use crate::cost::qap::{Distances, QapSwaps};
use crate::cost::routes::Routes;
use crate::partition::groups::{self, Grouping};
use crate::registry::{Named, Param, ParamError, Params};
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod search;

use search::swap_at_random;
pub(super) use search::{Board, Dice, Plan, Problem, swap_until_none_is_better};
pub use search::{Ending, Start};

/// `SwapLB` for the registry.
pub const NAMED: Named = Named {
    name: "SwapLB",
    aliases: &[],
    help: "Groups on random PEs change places in pairs while that makes a cost smaller, from many starts (Litvinov \
           2014). To compare costs by what comes of minimising them.",
    params: &[
        Param {
            key: "cost",
            default: "qap:rtt",
            help: "what is made smaller: bytes times `qap:hops`, `qap:bandwidth` or `qap:rtt`; `mcf`, the time of the \
                   busiest link; `mcf:optimal` or `mcf:shortest`, the same with the best routes of all or of the \
                   shortest, by linear programs, for tens of PEs",
        },
        RESTARTS,
        TRIES,
        START,
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let cost = params.take("cost")?;
        let (effort, grouping) = (Effort::take(params)?, Grouping::take(params)?);
        Ok(Box::new(SwapLb { cost, effort, grouping }))
    },
};

/// The key `restarts`.
pub(super) const RESTARTS: Param =
    Param { key: "restarts", default: "10", help: "how often to begin; the best end is kept" };

/// The key `tries`.
pub(super) const TRIES: Param = Param {
    key: "tries",
    default: "auto",
    help: "so many swaps in a row that are no better end a search; `auto`: 500, or 2 for each group if that is more",
};

/// The key `start`.
pub(super) const START: Param = Param {
    key: "start",
    default: "given",
    help: "where the first search begins: `given`, where groups are, if they are one on a PE, or at `random`, as the \
           others do",
};

/// The most restarts, and the most tries: more are a slip of the hand.
const MAX_RESTARTS: usize = 1_000_000;
const MAX_TRIES: usize = 1_000_000_000;

/// The fewest tries, as in the paper, and those for each group.
const LEAST_TRIES: usize = 500;
const TRIES_EACH: usize = 2;

/// The most restarts times tries times variables of a search with linear programs. (It takes a minute or two.)
const MAX_WORK: usize = 1 << 23;

/// How long is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How many searches there are.
    pub restarts: usize,
    /// How many swaps in a row are in vain at the end of a search; if this is not said, 500, or 2 for each group.
    pub tries: Option<usize>,
    /// Where the first search begins.
    pub start: Start,
}

impl Effort {
    /// The values of [`RESTARTS`], [`TRIES`] and [`START`].
    pub(super) fn take(params: &mut Params) -> Result<Effort, ParamError> {
        let restarts = take_count(params, "restarts", MAX_RESTARTS)?;
        let text = params.take::<String>("tries")?;
        let tries = match (text.as_str(), text.parse()) {
            ("auto", _) => None,
            (_, Ok(tries)) if (1..=MAX_TRIES).contains(&tries) => Some(tries),
            _ => {
                let expected = format!("expected `auto`, or a number of tries from 1 to {MAX_TRIES}");
                return Err(params.bad("tries", &text, expected));
            }
        };
        Ok(Effort { restarts, tries, start: params.take("start")? })
    }

    /// The tries of a search that places so many groups.
    pub(super) fn tries(&self, groups: usize) -> usize {
        self.tries.unwrap_or(LEAST_TRIES.max(TRIES_EACH * groups))
    }

    /// The plan of a search.
    pub(super) fn plan(&self, seed: u64, only_best: bool) -> Plan {
        Plan { restarts: self.restarts, start: self.start, seed, only_best }
    }
}

/// The strategy that swaps groups while a cost falls.
#[derive(Clone, Copy, Debug)]
pub struct SwapLb {
    /// What is made smaller.
    pub cost: Cost,
    /// How long is searched.
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
        let cost = |places: &[u32]| match self.cost.of(database, topology, places) {
            // There may be others that are known.
            Err(Unknown::Routes(Unsolved::Inexact { .. })) => Ok(f64::MAX),
            known => known.map_err(|unknown| self.refused(topology, unknown)),
        };
        let answer = problem.answer(database, self.grouping, self.effort.start, &best.places, cost)?;
        if matches!(self.cost, Cost::Optimal(_)) {
            let known = self.cost.of(database, topology, &answer.pe_of);
            known.map_err(|unknown| self.refused(topology, unknown))?;
        }
        Ok(answer)
    }
}

impl SwapLb {
    /// What comes of every restart, in their order.
    ///
    /// # Errors
    /// As [`Strategy::assign`].
    pub fn endings(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Vec<Ending>, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        self.search(&problem, topology, self.effort.plan(seed, false))
    }

    /// What is said where the cost is not known, and what to do then.
    fn refused(&self, topology: &dyn Topology, unknown: Unknown) -> StrategyError {
        let remedy = match unknown {
            Unknown::Distances(_) => "use cost=mcf, or PoiseLB",
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
        Ok(match self.cost {
            Cost::Qap(metric) => {
                let distances = Distances::of(&Routes::of(topology), metric);
                let distances = distances.map_err(|error| refused(error.into()))?;
                let make = |places: &[u32]| QapSwaps::new(commodities, &distances, places);
                problem.search(plan, make, |cost, board, dice| swap_at_random(cost, board, dice, tries))
            }
            Cost::Mcf => {
                let routes = Routes::of(topology);
                let seconds = routes.seconds_per_byte();
                let make =
                    |places: &[u32]| McfSwaps::new(commodities, &routes, &seconds, Aim::Busiest, places);
                problem.search(plan, make, |cost, board, dice| swap_at_random(cost, board, dice, tries))
            }
            Cost::Optimal(ways) => {
                let router = Router::new(topology, ways).map_err(|unsolved| refused(unsolved.into()))?;
                let make = |places: &[u32]| OptimalSwaps::new(&router, commodities, places);
                // What is too large here, or has no way, is so with the groups elsewhere, too.
                let any = make(&problem.hosts[..problem.groups.count]);
                let variables = any.check().map_err(|unsolved| refused(unsolved.into()))?;
                let work = variables.saturating_mul(plan.restarts).saturating_mul(tries);
                if work > MAX_WORK {
                    return Err(StrategyError::Request(format!(
                        "`{}`: the linear programs of cost=mcf:optimal and cost=mcf:shortest have {variables} variables \
                         here, and one is solved for many of the swaps; restarts={} times tries={tries} times variables \
                         is more than {MAX_WORK}; give fewer restarts or tries, or use cost=mcf",
                        topology.spec(),
                        plan.restarts
                    )));
                }
                problem.search(plan, make, |cost, board, dice| {
                    swap_until_none_is_better(cost, board, dice, tries);
                })
            }
        })
    }
}

#[cfg(test)]
pub(super) mod tests;

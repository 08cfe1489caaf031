//! `SwapLB`: groups on random PEs change places in pairs as long as that makes a cost smaller, again and again.
//!
//! The search of D. Litvinov, On optimization criteria for task assignment in cluster and wide-area computing,
//! 2014, section 3.1, after J. M. Orduña, F. Silla, J. Duato, On the development of a communication-aware task
//! mapping technique, Journal of Systems Architecture 50, 2004: it begins with a random mapping; it draws two
//! tasks, and if the cost is less when they change places, they do; it stops when so many `tries` in a row were in
//! vain. Then it begins anew, for so many `restarts`, and the best end is kept (of equals the first).
//!
//! The cost is one of [`crate::cost::qap`] or [`crate::cost::mcf`], updated by what a swap changes. A PE may have
//! no group; then the other moves there. Restarts are independent and run on all cores; each has dice of its own, so
//! the answer does not depend on how many cores there are.

use std::str::FromStr;

use super::{answer, take_count};
use crate::cost::mcf::{Aim, McfSwaps};
use crate::cost::qap::{self, Distances, Metric, QapSwaps};
use crate::cost::routes::Routes;
use crate::partition::groups::{self, Grouping};
use crate::registry::{Named, Param, Params};
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod search;

pub use search::Ending;
pub(super) use search::{Board, Dice, Problem, swap_at_random};

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
            help: "what is made smaller: bytes times `qap:hops`, `qap:bandwidth` or `qap:rtt`, or `mcf`, the time of \
                   the busiest link",
        },
        RESTARTS,
        TRIES,
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let cost = params.take("cost")?;
        let restarts = take_count(params, "restarts", MAX_RESTARTS)?;
        let tries = take_count(params, "tries", MAX_TRIES)?;
        Ok(Box::new(SwapLb { cost, restarts, tries, grouping: Grouping::take(params)? }))
    },
};

/// The key `restarts`.
pub(super) const RESTARTS: Param =
    Param { key: "restarts", default: "10", help: "how often to begin at random; the best end is kept" };

/// The key `tries`.
pub(super) const TRIES: Param =
    Param { key: "tries", default: "500", help: "so many swaps in a row that are no better end a search" };

/// The most restarts, and the most tries: more are a slip of the hand.
pub(super) const MAX_RESTARTS: usize = 1_000_000;
pub(super) const MAX_TRIES: usize = 1_000_000_000;

/// The strategy that swaps groups while a cost falls.
#[derive(Clone, Copy, Debug)]
pub struct SwapLb {
    /// What is made smaller.
    pub cost: Cost,
    /// How many searches there are.
    pub restarts: usize,
    /// How many swaps in a row are in vain at the end of a search.
    pub tries: usize,
    /// How objects are grouped.
    pub grouping: Grouping,
}

/// What a search makes smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Bytes times distances.
    Qap(Metric),
    /// The time of the busiest link.
    Mcf,
}

impl FromStr for Cost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let metric = text.strip_prefix("qap:").and_then(|metric| metric.parse().ok());
        match (text, metric) {
            ("mcf", _) => Ok(Cost::Mcf),
            (_, Some(metric)) => Ok(Cost::Qap(metric)),
            _ => Err("costs are `qap:hops`, `qap:bandwidth`, `qap:rtt` or `mcf`".into()),
        }
    }
}

impl Strategy for SwapLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let problem = Problem::of(database, topology, self.grouping, seed)?;
        let best = Ending::best(self.search(&problem, topology, seed)?);
        Ok(answer(database, &problem.groups, self.grouping, problem.available, &best.places))
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
        self.search(&Problem::of(database, topology, self.grouping, seed)?, topology, seed)
    }

    fn search(
        &self,
        problem: &Problem,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Vec<Ending>, StrategyError> {
        let routes = Routes::of(topology);
        let commodities = &problem.commodities;
        match self.cost {
            Cost::Qap(_) if topology.pes() > qap::MAX_PES => Err(StrategyError(format!(
                "distances of at most {} PEs are kept, and `{}` has {}; use cost=mcf, or PoiseLB",
                qap::MAX_PES,
                topology.spec(),
                topology.pes()
            ))),
            Cost::Qap(metric) => {
                let distances = Distances::of(&routes, metric);
                let make = |places: &[u32]| QapSwaps::new(commodities, &distances, places);
                Ok(problem.search(self.restarts, seed, make, |cost, board, dice| {
                    swap_at_random(cost, board, dice, self.tries);
                }))
            }
            Cost::Mcf => {
                let seconds = routes.seconds_per_byte();
                let make =
                    |places: &[u32]| McfSwaps::new(commodities, &routes, &seconds, Aim::Busiest, places);
                Ok(problem.search(self.restarts, seed, make, |cost, board, dice| {
                    swap_at_random(cost, board, dice, self.tries);
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! `TopoLB`: places groups that communicate close together.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention on large
//! parallel machines", IPDPS 2006. Objects are grouped first (section 4.1): by METIS as in the paper, by load alone, or
//! not at all. Then groups are placed (`placement::topolb`). Ties go to the lowest group and the lowest PE, or with
//! `ties=random` to the first of both in a random order. Grouping ignores the speed and background load of PEs and the
//! non-migratable objects on them. So some PEs may be above the allowed imbalance; these PEs give objects away at the
//! end.

use std::str::FromStr;

use rayon::prelude::*;

use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::random::{generator, shuffle};
use equipoise_model::{Assignment, Database, Topology};

use crate::cost::hop_bytes;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{self, Grouping, Groups};
use crate::placement::topolb::{Distances, MAX_TABLE_BYTES, check_pes, place_with};
use crate::placement::{answer, hosts};
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

pub use crate::placement::topolb::Order;

/// `TopoLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TopoLB",
    form: "",
    help: "Groups objects, then places groups that communicate close together (Agarwal, Sharma, Kalé 2006). \
           Moves nearly all objects. For communication-bound programs on tori with up to a few thousand PEs; use \
           RefineLB in later steps.",
    params: &[
        groups::GROUPS,
        groups::SIZES,
        groups::IMBALANCE,
        Param {
            key: "order",
            default: "2",
            help: "assumed distance to neighbors without a place: `1` zero, `2` the mean distance to all PEs, `3` the \
                   mean distance to free PEs (slow, and worse on tori)",
        },
        TIES,
        RESTARTS,
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let grouping = Grouping::take(params)?;
            let order = match params.take::<u8>("order")? {
                1 => Order::First,
                2 => Order::Second,
                3 => Order::Third,
                other => return Err(params.bad("order", &other.to_string(), "expected 1, 2 or 3")),
            };
            let (ties, restarts) = (params.take("ties")?, params.take_count("restarts", MAX_RESTARTS)?);
            Ok(Box::new(OnPart(TopoLb { grouping, order, ties, restarts })))
        },
    },
};

/// The key `ties`.
pub(super) const TIES: Param = Param {
    key: "ties",
    default: "first",
    help: "tie-breaking: `first` takes the lowest numbers, `random` the first in an order sampled with the seed",
};

/// The key `restarts`.
pub(super) const RESTARTS: Param = Param {
    key: "restarts",
    default: "1",
    help: "number of mappings, 1 to 10000, all but the first with random tie-breaking; the one with the fewest hop-bytes is kept",
};

/// The maximum of `restarts`; values above are rejected.
pub(super) const MAX_RESTARTS: usize = 10_000;

/// The strategy `TopoLB`.
#[derive(Clone, Copy, Debug)]
pub struct TopoLb {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// The assumed distance to neighbors without a place.
    pub order: Order,
    /// The tie-breaking rule.
    pub ties: Ties,
    /// The number of mappings made; all but the first break ties at random.
    pub restarts: usize,
}

/// A tie-breaking rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The lowest number.
    First,
    /// The first in an order sampled with the seed.
    Random,
}

impl FromStr for Ties {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "first" => Ok(Ties::First),
            "random" => Ok(Ties::Random),
            _ => Err("expected `first` or `random`".into()),
        }
    }
}

impl Strategy for TopoLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        check_pes(self.order, available.len())?;
        let groups = Groups::of(database, &available, self.grouping, seed)?;
        let hosts = hosts(database, &available, groups.count, self.grouping.by);
        let distances = Distances::of(&groups.anchors, &hosts, topology);
        let place = |graph: &Graph, pes: &[u32]| {
            place_with(&distances, graph, &groups.anchors, pes, topology, self.order)
        };
        let places = best_of(&groups, &hosts, topology, (self.ties, self.restarts), seed, place)?;
        Ok(answer(database, topology, &groups, self.grouping, available, &places))
    }
}

/// The mapping with the fewest hop-bytes of `restarts` mappings; ties go to the first. `place` makes a mapping from a graph
/// of groups and a list of PEs, and breaks its ties by the lowest number.
pub(super) fn best_of(
    groups: &Groups,
    pes: &[u32],
    topology: &dyn Topology,
    (ties, restarts): (Ties, usize),
    seed: u64,
    place: impl Fn(&Graph, &[u32]) -> Result<Vec<u32>, StrategyError> + Sync,
) -> Result<Vec<u32>, StrategyError> {
    let run = |run: usize| {
        if run == 0 && ties == Ties::First {
            return place(&groups.graph, pes);
        }
        // Ties go to the lowest number, so a random renumbering breaks them at random.
        let mut rng = generator(seed, run as u64);
        let mut numbers: Vec<u32> = (0..groups.graph.vertices() as u32).collect();
        shuffle(&mut rng, &mut numbers[..groups.count]);
        let mut shuffled_pes = pes.to_vec();
        shuffle(&mut rng, &mut shuffled_pes);
        let renumber = |(a, b, bytes): (u32, u32, u64)| (numbers[a as usize], numbers[b as usize], bytes);
        let graph = Graph::new(groups.graph.vertices(), groups.graph.pairs().map(renumber));
        let places = place(&graph, &shuffled_pes)?;
        Ok(numbers[..groups.count].iter().map(|&number| places[number as usize]).collect())
    };
    if restarts == 1 {
        return run(0);
    }
    let ranked = |number: usize| {
        let places: Vec<u32> = run(number)?;
        Ok((hop_bytes(&groups.graph, &groups.anchors, &places, topology), number, places))
    };
    // Every thread may have a table of all groups and PEs. If the tables of all threads together would be too large,
    // one thread makes all mappings.
    let tables = groups.count.saturating_mul(8 * pes.len()).saturating_mul(rayon::current_num_threads());
    let at_once = if tables <= MAX_TABLE_BYTES { 1 } else { restarts };
    let runs = (0..restarts).into_par_iter().with_min_len(at_once).map(ranked);
    let best = runs.try_reduce_with(|a, b| Ok(a.min(b)));
    best.expect("groups are placed at least once").map(|(.., places)| places)
}

#[cfg(test)]
mod tests;

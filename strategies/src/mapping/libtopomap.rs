//! `LibTopoMap`: the three mappers of the library of that name, to compare with.
//!
//! T. Hoefler, M. Snir, "Generic topology mapping strategies for large-scale parallel architectures", ICS 2011: a
//! greedy heuristic, recursive bisection of both graphs, and the Cuthill-McKee orders of both. As there, processes
//! are first divided into groups of as many as a node has PEs (the preprocessing of [`super::hier_topo_map`]), groups
//! are mapped to nodes, and inside a node processes keep their order.
//!
//! The library reads the links of the network. Here a machine says distances, so its graph has a link between
//! any two nodes that are no farther apart than it takes to connect all of them, the heavier the closer they are
//! ([`host`]); on a whole torus or mesh these are its links.

use std::str::FromStr;

use super::hier_topo_map::HierTopoMap;
use super::hier_topo_map::nodes::Nodes;
use crate::database::Database;
use crate::graph::Graph;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Strategy, StrategyError, Topology};

pub mod greedy;
pub mod host;
pub mod rcm;
pub mod recursive;

/// `LibTopoMap` for the registry.
pub const NAMED: Named = Named {
    name: "LibTopoMap",
    aliases: &[],
    help: "The mappers of Hoefler & Snir 2011, to compare with; for at most as many objects as PEs, on machines whose \
           nodes are alike.",
    params: &[Param {
        key: "method",
        default: "greedy",
        help: "`greedy` (along the heaviest edges, to the closest node), `recursive` (bisection of processes and \
               nodes) or `rcm` (both in Cuthill-McKee's order)",
    }],
    needs_communication: true,
    make: |params: &mut Params| Ok(Box::new(LibTopoMap { method: params.take("method")? })),
};

/// A mapper of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibTopoMap {
    /// How groups are mapped to nodes.
    pub method: Method,
}

/// How groups are mapped to nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Along the heaviest edges.
    Greedy,
    /// By bisection of both graphs.
    Recursive,
    /// By Cuthill-McKee's orders of both.
    Rcm,
}

impl FromStr for Method {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "greedy" => Ok(Method::Greedy),
            "recursive" => Ok(Method::Recursive),
            "rcm" => Ok(Method::Rcm),
            _ => Err("methods are `greedy`, `recursive` and `rcm`"),
        }
    }
}

impl Strategy for LibTopoMap {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let movable: Vec<u32> =
            (0..database.objects.len() as u32).filter(|&o| database.objects[o as usize].migratable).collect();
        if movable.len() > available.len() {
            return Err(StrategyError(format!(
                "LibTopoMap places at most one object on a PE, and there are {} for {}; use HierTopoMap or PoiseLB",
                movable.len(),
                available.len()
            )));
        }
        let graph = Graph::with_pes(database).induced(&movable);
        let mapper = HierTopoMap { intra: false, ..HierTopoMap::default() };
        let to_nodes = |groups: &Graph, nodes: &Nodes<'_>| self.map(groups, nodes, seed);
        let places = mapper.place(&graph, topology, &available, seed, to_nodes)?;
        let mut pe_of = database.placement();
        movable.iter().zip(places).for_each(|(&object, pe)| pe_of[object as usize] = pe);
        Ok(Assignment::new(pe_of))
    }
}

impl LibTopoMap {
    /// The node of every group.
    fn map(&self, groups: &Graph, nodes: &Nodes<'_>, seed: u64) -> Result<Vec<u32>, StrategyError> {
        let count = nodes.pes.len();
        if !nodes.are_alike() {
            return Err(StrategyError(
                "LibTopoMap needs nodes with the same number of PEs; use HierTopoMap or PoiseLB".into(),
            ));
        }
        let row = |node: usize, row: &mut [u32]| nodes.distances_from(node, row);
        match self.method {
            Method::Greedy => Ok(greedy::map(groups, count, row)),
            Method::Rcm => Ok(rcm::map(groups, &host::graph(count, row)?)),
            Method::Recursive => recursive::map(groups, &host::graph(count, row)?, seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::load;
    use crate::testing::assign_on;

    #[test]
    fn every_method_gives_a_permutation_and_follows_a_ring() {
        for method in ["greedy", "recursive", "rcm"] {
            for machine in
                ["torus:16", "torus:4x4", "fattree:4:4", "torus:2x4*tree:2", "torus:8x8[random:16,seed=3]"]
            {
                let tasks = load("ring:16").expect("a generator").remap(16);
                let answer =
                    assign_on(&format!("LibTopoMap:method={method}"), &tasks, machine).expect(machine);
                let mut places = answer.pe_of.clone();
                places.sort_unstable();
                assert_eq!(places, (0..16).collect::<Vec<_>>(), "{method} on {machine}");
                if machine == "torus:16" {
                    let apart = |a: usize| {
                        let (here, there) = (answer.pe_of[a], answer.pe_of[(a + 1) % 16]);
                        here.abs_diff(there).min(16 - here.abs_diff(there))
                    };
                    let hops: u32 = (0..16).map(apart).sum();
                    assert!(hops <= 32, "{method}: {hops} hops, and 16 are best: {:?}", answer.pe_of);
                }
            }
        }
    }

    #[test]
    fn what_it_does_not_serve_is_said_with_the_remedy() {
        let many = load("ring:17").expect("a generator").remap(16);
        let error = assign_on("LibTopoMap", &many, "torus:16").expect_err("too many").0;
        assert!(error.contains("at most one object on a PE, and there are 17 for 16"), "{error}");
        let few = load("ring:7").expect("a generator").remap(7);
        let error = assign_on("LibTopoMap", &few, "(torus:2*tree:4)[0-6]").expect_err("uneven").0;
        assert!(error.contains("the same number of PEs"), "{error}");
    }
}

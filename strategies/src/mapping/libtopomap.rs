//! `LibTopoMap`: the three mappers of the library of that name, for comparison.
//!
//! T. Hoefler, M. Snir, "Generic topology mapping strategies for large-scale parallel architectures", ICS 2011: a
//! greedy heuristic, recursive bisection of both graphs, and the Cuthill-McKee orders of both. As in the library,
//! processes are first divided into groups, one group per node with one process per PE (the preprocessing of
//! [`super::hier_topo_map`]). Groups are mapped to nodes, and inside a node processes keep their order. If there are
//! more objects than PEs, METIS groups them first. If nodes have different numbers of PEs, every PE is a node.
//!
//! The library reads the links of the network. Here a machine provides distances, so [`host`] makes a graph with links
//! between near nodes. On a complete torus or mesh, these are the links of the machine.

use std::str::FromStr;

use equipoise_model::database::Database;
use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Topology};

use super::hier_topo_map::HierTopoMap;
use super::hier_topo_map::nodes::Nodes;
use super::{answer, hosts};
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::metis;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

pub mod greedy;
pub mod host;
pub mod rcm;
pub mod recursive;

/// `LibTopoMap` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "LibTopoMap",
    form: "",
    help: "The mappers of Hoefler & Snir 2011, for comparison.",
    params: &[Param {
        key: "method",
        default: "greedy",
        help: "`greedy` (along the heaviest edges, to the closest node), `recursive` (bisection of processes and \
               nodes) or `rcm` (Cuthill-McKee orders of both)",
    }],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| Ok(Box::new(OnPart(LibTopoMap { method: params.take("method")? }))),
    },
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
    /// By the Cuthill-McKee orders of both graphs.
    Rcm,
}

impl FromStr for Method {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "greedy" => Ok(Method::Greedy),
            "recursive" => Ok(Method::Recursive),
            "rcm" => Ok(Method::Rcm),
            _ => Err("expected `greedy`, `recursive` or `rcm`"),
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
        let groups = Groups::of(database, &available, GROUPING, seed)?;
        let graph = groups.graph.induced(&(0..groups.count as u32).collect::<Vec<_>>());
        let hosts = hosts(database, &available, groups.count, GROUPING.by);
        let places = if Nodes::of(topology, &hosts)?.are_alike() {
            let mapper = HierTopoMap { intra: false, ..HierTopoMap::default() };
            let to_nodes = |groups: &Graph, nodes: &Nodes<'_>| {
                self.map(groups, nodes.pes.len(), |node, row| nodes.distances_from(node, row), seed)
            };
            mapper.place([&graph, &graph], topology, &hosts, seed, to_nodes)?
        } else {
            // Groups of equal size do not fit nodes with different numbers of PEs, so every PE is a node.
            let row = |pe: usize, row: &mut [u32]| topology.distances_to(hosts[pe] as usize, &hosts, row);
            let padded = Graph::new(hosts.len(), graph.pairs());
            let mut places = self.map(&padded, hosts.len(), row, seed)?;
            places.truncate(groups.count);
            places.into_iter().map(|pe| hosts[pe as usize]).collect()
        };
        Ok(answer(database, topology, &groups, GROUPING, available, &places))
    }
}

/// The grouping of objects if there are more objects than PEs.
const GROUPING: Grouping =
    Grouping { by: By::Metis(metis::Method::Recursive), equal: false, imbalance: 0.05 };

impl LibTopoMap {
    /// The node of every group; there are as many groups as nodes.
    fn map(
        &self,
        groups: &Graph,
        nodes: usize,
        distances_from: impl Fn(usize, &mut [u32]),
        seed: u64,
    ) -> Result<Vec<u32>, StrategyError> {
        match self.method {
            Method::Greedy => Ok(greedy::map(groups, nodes, distances_from)),
            Method::Rcm => Ok(rcm::map(groups, &host::graph(nodes, distances_from)?)),
            Method::Recursive => recursive::map(groups, &host::graph(nodes, distances_from)?, seed),
        }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::load;

    use crate::testing::assign_on;

    #[test]
    fn every_method_gives_a_permutation_and_keeps_a_ring_close() {
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
    fn uneven_nodes_and_more_objects_than_pes_are_mapped() {
        for method in ["greedy", "recursive", "rcm"] {
            let spec = format!("LibTopoMap:method={method}");
            let few = load("ring:7").expect("a generator").remap(7);
            let mut places = assign_on(&spec, &few, "(torus:2*tree:4)[0-6]").expect("an assignment").pe_of;
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4, 5, 6], "{method}");
            let many = load("mesh:8x8").expect("a generator").remap(16);
            let places = assign_on(&spec, &many, "torus:4x4").expect("an assignment").pe_of;
            for pe in 0..16 {
                assert_eq!(places.iter().filter(|&&place| place == pe).count(), 4, "{method}");
            }
        }
    }
}

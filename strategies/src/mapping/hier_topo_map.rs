//! `HierTopoMap`: maps processes to nodes, then, in every node, to its PEs.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, for programs that keep their processes where they are, as MPI programs do. First
//! what two processes send each other is added up, and they are divided into groups that exchange little, each as
//! large as a node has PEs (section 3.1; METIS, corrected to these sizes). The groups are mapped along a tree of
//! the nodes: by recursive tree mapping (algorithm 1), or on grids by recursive bipartitioning (algorithm 2).
//! Then the processes of every node are mapped along the tree of its PEs, all nodes in parallel (section 3.2).
//!
//! Choices where the paper leaves one:
//! - a node is the right part of a product, or what hangs below the root of a tree; on other machines every PE is
//!   a node;
//! - where the machine says its tree it is taken; neighbor joining would find the same (a test says so). Elsewhere
//!   [`joining`] finds one;
//! - fewer processes than PEs are made as many by processes that talk to nobody;
//! - where nodes have different numbers of PEs there are no groups: processes are cut along the trees, as many
//!   as there are PEs below, and so they are where there are more objects than PEs, by their loads then;
//! - `guard`: where the order of the processes as it is has no more hop-bytes and is as balanced, it stands. (The
//!   paper's measurements begin with it, and stencils in their natural order are hard to beat.) Of fewer processes
//!   than PEs there are two such orders: one PE after the other, as launchers fill them, and spread over all. The
//!   note `block order kept` says when one of them took the place of another answer.
//!
//! Objects and PEs that stay take their part in no cut. Time is that of log(PEs) partitions, and O(nodes^2) where
//! neighbors are joined.

use rayon::prelude::*;

use super::{hop_bytes, hosts};
use crate::balance::comm_aware_refine::relieve;
use crate::balance::load::Work;
use crate::cost::LoadBound;
use crate::database::Database;
use crate::graph::Graph;
use crate::partition::exact::{self, Partitioner};
use crate::partition::groups::By;
use crate::partition::{capacity, weights};
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Strategy, StrategyError, Topology};

pub mod coordinates;
pub mod joining;
pub mod nodes;
pub mod tree;

use nodes::Nodes;
use tree::{Processes, Tree};

/// `HierTopoMap` for the registry.
pub const NAMED: Named = Named {
    name: "HierTopoMap",
    aliases: &[],
    help: "Processes to nodes along the machine's tree or coordinates, then inside every node (Wu et al. 2014). For \
           the ranks of MPI programs on clusters and tori.",
    params: &[
        Param {
            key: "inter",
            default: "auto",
            help: "how nodes are cut: `tree` (the machine's, or joined from distances), `bipart` (by coordinates), or \
                   `auto`: bipart on grids, else tree",
        },
        Param {
            key: "intra",
            default: "on",
            help: "whether processes are mapped inside the nodes, too; `off`: in their order",
        },
        Param {
            key: "guard",
            default: "on",
            help: "whether the order of the processes as it is stands where it has no more hop-bytes",
        },
        Param {
            key: "partitioner",
            default: "metis",
            help: "what cuts: `metis`, or `poise`, the exact-size bisection of PoiseLB",
        },
        Param {
            key: "imbalance",
            default: "0.03",
            help: "allowed max/avg - 1 of the PEs where there are more objects than PEs",
        },
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        Ok(Box::new(HierTopoMap {
            inter: params.take("inter")?,
            intra: params.take_switch("intra")?,
            guard: params.take_switch("guard")?,
            partitioner: params.take("partitioner")?,
            imbalance: params.take_imbalance()?,
        }))
    },
};

/// The hierarchical mapper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HierTopoMap {
    /// How nodes are cut.
    pub inter: Inter,
    /// Whether processes are mapped inside the nodes, too.
    pub intra: bool,
    /// Whether the order as it is stands where it is no worse.
    pub guard: bool,
    /// What cuts.
    pub partitioner: Partitioner,
    /// The allowed max/avg - 1 where there are more objects than PEs.
    pub imbalance: f64,
}

impl Default for HierTopoMap {
    fn default() -> Self {
        HierTopoMap {
            inter: Inter::Auto,
            intra: true,
            guard: true,
            partitioner: Partitioner::Metis,
            imbalance: 0.03,
        }
    }
}

/// How nodes are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inter {
    /// By coordinates where there are some, else along a tree.
    Auto,
    /// Along a tree: the machine's own, or joined from distances.
    Tree,
    /// By coordinates.
    Bipart,
}

impl std::str::FromStr for Inter {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Inter::Auto),
            "tree" => Ok(Inter::Tree),
            "bipart" => Ok(Inter::Bipart),
            _ => Err("nodes are cut by `tree`, `bipart` or `auto`"),
        }
    }
}

/// A permutation of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// By process: its new rank, where ranks are placed in the order of PEs.
    pub rank_of: Vec<u32>,
    /// Whether the guard put the order as it is in the place of another one, which had no fewer hop-bytes.
    pub order_kept: bool,
}

/// Where the processes of a program best go: from what each sends to whom, to the PE of each. `neighbors[i]` are
/// the receivers of process `i`, each with the bytes it is sent, as the neighbor lists of a distributed graph
/// communicator have them (`HTM_Topomap` of the paper); an edge may stand at one of its ends or at both, and
/// counts each time. There are as many processes as PEs.
///
/// # Errors
/// When there are not as many processes as PEs, a receiver does not exist, or the machine cannot be served.
pub fn topomap(
    neighbors: &[Vec<(u32, u64)>],
    topology: &dyn Topology,
    mapper: HierTopoMap,
    seed: u64,
) -> Result<Permutation, StrategyError> {
    let (processes, pes) = (neighbors.len(), topology.pes());
    if processes != pes {
        return Err(StrategyError::Request(format!(
            "there are {processes} processes, and `{}` has {pes} PEs; a permutation needs as many",
            topology.spec()
        )));
    }
    let edges = neighbors
        .iter()
        .zip(0u32..)
        .flat_map(|(list, from)| list.iter().map(move |&(to, bytes)| (from, to, bytes)));
    if let Some((from, to, _)) = edges.clone().find(|&(_, to, _)| to as usize >= processes) {
        return Err(StrategyError::Request(format!(
            "process {from} sends to {to}, and there are {processes} processes"
        )));
    }
    let graph = Graph::new(processes, edges.filter(|&(from, to, _)| from != to));
    let available: Vec<u32> = (0..pes as u32).collect();
    let to_nodes = |graph: &Graph, nodes: &Nodes<'_>| mapper.map_groups(graph, nodes, seed);
    let place_of = mapper.place(&graph, topology, &available, seed, to_nodes)?;
    let cost = |place_of: &[u32]| hop_bytes(&graph, &[], place_of, topology);
    let (rank_of, order_kept) = mapper.guarded(place_of, orders(processes, &available), cost);
    Ok(Permutation { rank_of, order_kept })
}

impl Strategy for HierTopoMap {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let movable: Vec<u32> =
            (0..database.objects.len() as u32).filter(|&o| database.objects[o as usize].migratable).collect();
        if movable.is_empty() {
            return Ok(Assignment::unchanged(database));
        }
        let all = Graph::with_pes(database);
        let graph = all.induced(&movable);
        let seconds = || movable.iter().map(|&object| database.objects[object as usize].load_seconds);
        let weights = weights(seconds());
        let with = |places: &[u32]| {
            let mut pe_of = database.placement();
            movable.iter().zip(places).for_each(|(&object, &pe)| pe_of[object as usize] = pe);
            // Where there is a PE for every object, each stays by itself.
            if movable.len() <= available.len() { pe_of } else { self.relieved(database, &available, pe_of) }
        };
        let hosts = hosts(database, &available, movable.len(), By::Greedy);
        let pe_of = with(&if movable.len() <= available.len() {
            self.place(&graph, topology, &hosts, seed, |graph, nodes| self.map_groups(graph, nodes, seed))?
        } else {
            self.spread(&graph, &weights, topology, &available, seed)?
        });
        let heaviest = |pe_of: &[u32]| database.pe_loads(pe_of).into_iter().fold(0.0, f64::max);
        let allowed = heaviest(&pe_of).max((1.0 + self.imbalance) * LoadBound::of(database).average_seconds);
        let orders = orders(movable.len(), &hosts).map(|places| with(&places));
        let pes: Vec<u32> = (0..topology.pes() as u32).collect();
        let (pe_of, kept) = self.guarded(pe_of, orders.filter(|pe_of| heaviest(pe_of) <= allowed), |pe_of| {
            hop_bytes(&all, &pes, pe_of, topology)
        });
        Ok(Assignment { pe_of, notes: vec![("block order kept".into(), f64::from(u8::from(kept)))] })
    }
}

/// The PEs of so many objects in their order, as they are without a mapper: where there are PEs enough, those of the
/// first PEs, as a launcher fills them; and as many on each as can be, over all PEs.
fn orders(objects: usize, available: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    let first = available.get(..objects).map(<[u32]>::to_vec);
    let blocks = || (0..objects).map(|at| available[at * available.len() / objects]).collect();
    // With a PE for each they are the same.
    first.into_iter().chain((objects != available.len()).then(blocks))
}

impl HierTopoMap {
    /// The first of the cheapest of `orders` if there is a guard and that is no dearer than `answer`, else the
    /// answer; and whether that was replaced.
    fn guarded(
        &self,
        answer: Vec<u32>,
        orders: impl Iterator<Item = Vec<u32>>,
        cost: impl Fn(&[u32]) -> u128,
    ) -> (Vec<u32>, bool) {
        let best = orders.filter(|_| self.guard).map(|order| (cost(&order), order)).min_by_key(|it| it.0);
        match best {
            Some((least, order)) if order != answer && least <= cost(&answer) => (order, true),
            _ => (answer, false),
        }
    }

    /// The PE of every process, at most one on each of the PEs `available`; `to_nodes` says on which node each of
    /// as many groups is, or, where nodes have different numbers of PEs, each process.
    pub(super) fn place(
        &self,
        graph: &Graph,
        topology: &dyn Topology,
        available: &[u32],
        seed: u64,
        to_nodes: impl FnOnce(&Graph, &Nodes<'_>) -> Result<Vec<u32>, StrategyError>,
    ) -> Result<Vec<u32>, StrategyError> {
        let nodes = Nodes::of(topology, available)?;
        let padded = (graph.vertices() < available.len()).then(|| padded(graph, available.len()));
        let whole = padded.as_ref().unwrap_or(graph);
        let node_of = if nodes.are_alike() {
            let group_of = self.groups(whole, &nodes, seed)?;
            let node_of_group = to_nodes(&whole.quotient(&group_of, nodes.pes.len()), &nodes)?;
            group_of.iter().map(|&group| node_of_group[group as usize]).collect()
        } else {
            to_nodes(whole, &nodes)?
        };
        let mut pe_of = self.inside(whole, &nodes, &node_of, seed)?;
        pe_of.truncate(graph.vertices());
        Ok(pe_of)
    }

    /// The preprocessing of section 4: the group of every process, as many as there are nodes, each as large as a node
    /// has PEs. There are as many processes as PEs.
    ///
    /// # Errors
    /// When the partitioner fails.
    pub fn groups(&self, graph: &Graph, nodes: &Nodes<'_>, seed: u64) -> Result<Vec<u32>, StrategyError> {
        let sizes: Vec<u64> = nodes.pes.iter().map(|pes| pes.len() as u64).collect();
        exact::partition(graph, &vec![1; graph.vertices()], &sizes, self.partitioner, seed)
    }

    /// The inter-node mapping of section 3.1: the node of every group of as many, or of every process where nodes are
    /// not alike, along their tree.
    ///
    /// # Errors
    /// When the partitioner fails.
    pub fn outside(
        &self,
        graph: &Graph,
        nodes: &Nodes<'_>,
        tree: &Tree,
        seed: u64,
    ) -> Result<Vec<u32>, StrategyError> {
        let are_alike = nodes.are_alike();
        let room = |pes: &Vec<u32>| if are_alike { 1 } else { pes.len() as u64 };
        let rooms: Vec<u64> = nodes.pes.iter().map(room).collect();
        self.along(graph, &vec![1; graph.vertices()], &rooms, tree, seed)
    }

    /// The intra-node mapping of section 3.2: the PE of every process on its node, of which each has as many as PEs;
    /// without `intra` in the order of processes.
    ///
    /// # Errors
    /// When the partitioner fails.
    ///
    /// # Panics
    /// When a node has more processes than PEs.
    pub fn inside(
        &self,
        graph: &Graph,
        nodes: &Nodes<'_>,
        node_of: &[u32],
        seed: u64,
    ) -> Result<Vec<u32>, StrategyError> {
        let mut members = vec![Vec::new(); nodes.pes.len()];
        for (&node, process) in node_of.iter().zip(0u32..) {
            members[node as usize].push(process);
        }
        let mut pe_of = vec![0; graph.vertices()];
        // On a node with one PE there is nothing to map.
        if !self.intra || nodes.pes.iter().all(|pes| pes.len() == 1) {
            for (members, pes) in members.iter().zip(&nodes.pes) {
                members.iter().zip(pes).for_each(|(&process, &pe)| pe_of[process as usize] = pe);
            }
            return Ok(pe_of);
        }
        let graphs = graph.split(&members);
        let inside = members.par_iter().zip(graphs).enumerate().map(|(node, (members, graph))| {
            let ones = vec![1; members.len()];
            // Its places are positions in the list of its PEs.
            let places =
                self.along(&graph, &ones, &vec![1; nodes.pes[node].len()], &nodes.inside[node], seed)?;
            Ok(places.into_iter().map(|place| nodes.pes[node][place as usize]).collect())
        });
        let inside = inside.collect::<Result<Vec<Vec<u32>>, StrategyError>>()?;
        for (members, pes) in members.iter().zip(inside) {
            members.iter().zip(pes).for_each(|(&process, pe)| pe_of[process as usize] = pe);
        }
        Ok(pe_of)
    }

    fn map_groups(&self, graph: &Graph, nodes: &Nodes<'_>, seed: u64) -> Result<Vec<u32>, StrategyError> {
        self.outside(graph, nodes, &nodes.tree(self.inter)?, seed)
    }

    /// The PE of every object where there are more of them than PEs.
    fn spread(
        &self,
        graph: &Graph,
        weights: &[u32],
        topology: &dyn Topology,
        available: &[u32],
        seed: u64,
    ) -> Result<Vec<u32>, StrategyError> {
        let nodes = Nodes::of(topology, available)?;
        let tree = nodes.tree(self.inter)?.with(|node| nodes.pes_below(node));
        let room = capacity(weights, available.len(), self.imbalance);
        self.along(graph, weights, &vec![room; topology.pes()], &tree, seed)
    }

    fn along(
        &self,
        graph: &Graph,
        weights: &[u32],
        rooms: &[u64],
        tree: &Tree,
        seed: u64,
    ) -> Result<Vec<u32>, StrategyError> {
        Processes { graph, weights, rooms, partitioner: self.partitioner, seed }.map(tree)
    }

    /// The placement where PEs that speed, background or objects that stay take above the allowed imbalance gave
    /// objects away.
    fn relieved(&self, database: &Database, available: &[u32], pe_of: Vec<u32>) -> Vec<u32> {
        relieve(database, &Work::new(database, available.to_vec()), pe_of, self.imbalance)
    }
}

/// The same graph with as many vertices, the new ones without edges.
fn padded(graph: &Graph, vertices: usize) -> Graph {
    Graph::new(vertices, graph.pairs())
}

#[cfg(test)]
mod tests;

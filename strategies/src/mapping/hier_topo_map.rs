//! `HierTopoMap`: maps processes to nodes, then the processes of every node to its PEs.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, for programs without migration, such as MPI programs. The bytes between two processes
//! are added over both directions. The processes are divided into groups that exchange few bytes, one per node,
//! with as many processes as the node has PEs (section 3.1; METIS, corrected to exact sizes). The groups are mapped
//! along a tree of the nodes: by recursive tree mapping (algorithm 1), or on grids by recursive bipartitioning
//! (algorithm 2). Then the processes of every node are mapped along the tree of its PEs, all nodes in parallel
//! (section 3.2).
//!
//! Choices that the paper leaves open:
//! - A node is the right part of a product, or a subtree below the root of a tree; on other machines every PE is a node.
//! - If the machine is built as a tree, that tree is used; neighbor joining finds the same tree (tested). Otherwise
//!   [`joining`] makes one.
//! - If there are fewer processes than PEs, processes that exchange nothing are added.
//! - If nodes have different numbers of PEs, there are no groups: processes are partitioned along the trees, one per PE.
//!   If there are more objects than PEs, they are partitioned along the trees by their loads.
//! - `far`: inside nodes, the paper weighs messages by their bytes. With measured times, messages weigh as much as they
//!   take longer between the parts of a node, which for small messages is a matter of their number.
//! - `guard`: rank order is kept if it has no more hop-bytes and is as balanced. (The paper's measurements begin with
//!   rank order, and stencils in rank order are hard to improve.) With fewer processes than PEs, there are two rank
//!   orders: on the first PEs, as launchers fill them, and spread over all PEs. The note `rank order kept` is 1 if one
//!   of them replaced another mapping.
//!
//! Non-migratable objects and PEs are not part of the partitioned graphs. The time is that of log(PEs) partitions, plus
//! O(nodes^2) for neighbor joining.

use rayon::prelude::*;

use equipoise_model::database::Database;
use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Topology};

use super::{hop_bytes, hosts};
use crate::balance::load::Work;
use crate::balance::relief::relieve;
use crate::cost::LoadBound;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::exact::{self, Partitioner};
use crate::partition::groups::By;
use crate::partition::{capacity, weights};
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

pub mod coordinates;
mod far;
pub mod joining;
pub mod nodes;
pub mod tree;

use equipoise_model::table::count;
pub use far::Far;
use nodes::Nodes;
use tree::{Processes, Tree};

/// `HierTopoMap` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "HierTopoMap",
    form: "",
    help: "Maps processes to nodes along the machine's tree or coordinates, then to PEs inside every node (Wu et al. \
           2014). For the ranks of MPI programs on clusters and tori.",
    params: &[
        Param {
            key: "inter",
            default: "auto",
            help: "how the machine is divided into parts: `tree` (the machine's tree, or neighbor joining by distances), \
                   `bipart` (bisection by coordinates), or `auto`: bipart on grids, else tree",
        },
        Param {
            key: "intra",
            default: "on",
            help: "whether processes are mapped to PEs inside the nodes; `off`: rank order inside the nodes",
        },
        Param {
            key: "far",
            default: "bytes",
            help: "how much longer messages take between the parts of a node: `bytes` (in proportion to bytes), or additional \
                   nanoseconds of a message by its size, measured and interpolated, `BYTES/NS:BYTES/NS..`",
        },
        Param {
            key: "guard",
            default: "on",
            help: "whether rank order is kept if it has no more hop-bytes than the mapping found",
        },
        Param {
            key: "partitioner",
            default: "metis",
            help: "graph partitioner: `metis`, or `poise`, a bisection into parts of exact sizes",
        },
        Param {
            key: "imbalance",
            default: "0.03",
            help: "allowed max/avg - 1 of the PEs if there are more objects than PEs",
        },
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            Ok(Box::new(OnPart(HierTopoMap {
                inter: params.take("inter")?,
                intra: params.take_switch("intra")?,
                far: params.take("far")?,
                guard: params.take_switch("guard")?,
                partitioner: params.take("partitioner")?,
                imbalance: params.take_imbalance()?,
            })))
        },
    },
};

/// The hierarchical mapper.
#[derive(Clone, Debug, PartialEq)]
pub struct HierTopoMap {
    /// How the nodes are divided into parts.
    pub inter: Inter,
    /// Whether processes are mapped to PEs inside the nodes.
    pub intra: bool,
    /// How much longer messages take between the parts of a node.
    pub far: Far,
    /// Whether rank order is kept if the mapping found is not better.
    pub guard: bool,
    /// The graph partitioner.
    pub partitioner: Partitioner,
    /// The allowed max/avg - 1 if there are more objects than PEs.
    pub imbalance: f64,
}

impl Default for HierTopoMap {
    fn default() -> Self {
        HierTopoMap {
            inter: Inter::Auto,
            intra: true,
            far: Far::Bytes,
            guard: true,
            partitioner: Partitioner::Metis,
            imbalance: 0.03,
        }
    }
}

/// How the nodes are divided into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inter {
    /// By coordinates if the machine has them, else along a tree.
    Auto,
    /// Along a tree: that of the machine, or one made by neighbor joining.
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
            _ => Err("expected `tree`, `bipart` or `auto`"),
        }
    }
}

/// A permutation of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation {
    /// By process: its new rank. Rank i is on PE i.
    pub rank_of: Vec<u32>,
    /// Whether the guard replaced another permutation, which had no fewer hop-bytes, by rank order.
    pub order_kept: bool,
}

/// Maps the processes of a program to PEs (`HTM_Topomap` of the paper). `neighbors[i]` are the receivers of process
/// `i`, each with the number of bytes, like the neighbor lists of a distributed graph communicator. An edge may be
/// listed at one end or at both, and counts each time. There must be as many processes as PEs.
///
/// # Errors
/// If there are not as many processes as PEs, a receiver does not exist, or the machine is not supported.
pub fn topomap(
    neighbors: &[Vec<(u32, u64)>],
    topology: &dyn Topology,
    mapper: HierTopoMap,
    seed: u64,
) -> Result<Permutation, StrategyError> {
    let (processes, pes) = (neighbors.len(), topology.pes());
    if processes != pes {
        return Err(StrategyError::Request(format!(
            "topomap got {}, and `{}` has {}; pass one neighbor list for each PE",
            count(processes as u64, "process"),
            topology.spec(),
            count(pes as u64, "PE")
        )));
    }
    let edges = neighbors
        .iter()
        .zip(0u32..)
        .flat_map(|(list, from)| list.iter().map(move |&(to, bytes)| (from, to, bytes)));
    if let Some((from, to, _)) = edges.clone().find(|&(_, to, _)| to as usize >= processes) {
        return Err(StrategyError::Request(format!(
            "process {from} sends to process {to}, which does not exist; receivers are numbers below {processes}"
        )));
    }
    let edges = edges.filter(|&(from, to, _)| from != to);
    // An edge is a message.
    let far = (mapper.far != Far::Bytes).then(|| {
        Graph::new(processes, edges.clone().map(|(from, to, bytes)| (from, to, mapper.far.weight(1, bytes))))
    });
    let graph = Graph::new(processes, edges);
    let available: Vec<u32> = (0..pes as u32).collect();
    let to_nodes = |graph: &Graph, nodes: &Nodes<'_>| mapper.map_groups(graph, nodes, seed);
    let graphs = [&graph, far.as_ref().unwrap_or(&graph)];
    let place_of = mapper.place(graphs, topology, &available, seed, to_nodes)?;
    let cost = |place_of: &[u32]| hop_bytes(&graph, &[], place_of, topology);
    let (rank_of, order_kept) = mapper.guarded(place_of, rank_orders(processes, &available), cost);
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
        let migratable: Vec<u32> =
            (0..database.objects.len() as u32).filter(|&o| database.objects[o as usize].migratable).collect();
        if migratable.is_empty() {
            return Ok(Assignment::unchanged(database));
        }
        let is_one_each = migratable.len() <= available.len();
        let all = Graph::with_pes(database);
        let graph = all.induced(&migratable);
        let seconds = || migratable.iter().map(|&object| database.objects[object as usize].load_seconds);
        let weights = weights(seconds());
        let with = |places: &[u32]| {
            let mut pe_of = database.placement();
            migratable.iter().zip(places).for_each(|(&object, &pe)| pe_of[object as usize] = pe);
            // If there is a PE for every object, no PE gets a second one.
            if is_one_each { pe_of } else { self.relieved(database, &available, pe_of) }
        };
        let hosts = hosts(database, &available, migratable.len(), By::Greedy);
        let far = self.far.weighed(database).map(|database| Graph::with_pes(&database).induced(&migratable));
        let graphs = [&graph, far.as_ref().unwrap_or(&graph)];
        let pe_of = with(&if is_one_each {
            self.place(graphs, topology, &hosts, seed, |graph, nodes| self.map_groups(graph, nodes, seed))?
        } else {
            self.spread(&graph, &weights, topology, &available, seed)?
        });
        let heaviest = |pe_of: &[u32]| database.pe_loads(pe_of).into_iter().fold(0.0, f64::max);
        let allowed = heaviest(&pe_of).max((1.0 + self.imbalance) * LoadBound::of(database).average_seconds);
        let orders = rank_orders(migratable.len(), &hosts).map(|places| with(&places));
        let pes: Vec<u32> = (0..topology.pes() as u32).collect();
        let (pe_of, kept) = self.guarded(pe_of, orders.filter(|pe_of| heaviest(pe_of) <= allowed), |pe_of| {
            hop_bytes(&all, &pes, pe_of, topology)
        });
        Ok(Assignment::new(pe_of).with_note("rank order kept", f64::from(u8::from(kept))))
    }
}

/// The placements of objects in rank order, without a mapper: one per PE on the first PEs, as a launcher fills them, if
/// there are enough PEs; and spread evenly over all PEs.
fn rank_orders(objects: usize, available: &[u32]) -> impl Iterator<Item = Vec<u32>> {
    let first = available.get(..objects).map(<[u32]>::to_vec);
    let blocks = || (0..objects).map(|at| available[at * available.len() / objects]).collect();
    // With as many objects as PEs, both are the same.
    first.into_iter().chain((objects != available.len()).then(blocks))
}

impl HierTopoMap {
    /// If there is a guard: the placement of `orders` with the least cost, if that cost is not above that of `answer`.
    /// Otherwise `answer`. Also returns whether `answer` was replaced. Ties between orders go to the first.
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

    /// The PE of every process, with at most one process on each of the PEs `available`. `to_nodes` returns the node of
    /// each group, one group per node, or of each process if nodes have different numbers of PEs. The graphs are weighed by
    /// bytes, and by [`Far`] for the PEs inside nodes.
    pub(super) fn place(
        &self,
        [graph, far]: [&Graph; 2],
        topology: &dyn Topology,
        available: &[u32],
        seed: u64,
        to_nodes: impl FnOnce(&Graph, &Nodes<'_>) -> Result<Vec<u32>, StrategyError>,
    ) -> Result<Vec<u32>, StrategyError> {
        let nodes = Nodes::of(topology, available)?;
        let is_padded = graph.vertices() < available.len();
        let [more, more_far] = [graph, far].map(|graph| is_padded.then(|| padded(graph, available.len())));
        let (whole, far) = (more.as_ref().unwrap_or(graph), more_far.as_ref().unwrap_or(far));
        let node_of = if nodes.are_alike() {
            let group_of = self.groups(whole, &nodes, seed)?;
            let node_of_group = to_nodes(&whole.quotient(&group_of, nodes.pes.len()), &nodes)?;
            group_of.iter().map(|&group| node_of_group[group as usize]).collect()
        } else {
            to_nodes(whole, &nodes)?
        };
        let mut pe_of = self.inside(far, &nodes, &node_of, seed)?;
        pe_of.truncate(graph.vertices());
        Ok(pe_of)
    }

    /// The preprocessing of section 4: the group of every process, with one group per node and as many processes in it as
    /// the node has PEs. There must be as many processes as PEs.
    ///
    /// # Errors
    /// If the partitioner fails.
    pub fn groups(&self, graph: &Graph, nodes: &Nodes<'_>, seed: u64) -> Result<Vec<u32>, StrategyError> {
        let sizes: Vec<u64> = nodes.pes.iter().map(|pes| pes.len() as u64).collect();
        exact::partition(graph, &vec![1; graph.vertices()], &sizes, self.partitioner, seed)
    }

    /// The inter-node mapping of section 3.1 along a tree of the nodes: the node of every group, one group per node, or of
    /// every process if nodes have different numbers of PEs.
    ///
    /// # Errors
    /// If the partitioner fails.
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

    /// The intra-node mapping of section 3.2: the PE of every process on its node, one process per PE. Without `intra`,
    /// processes are in rank order inside their nodes.
    ///
    /// # Errors
    /// If the partitioner fails.
    ///
    /// # Panics
    /// If a node has more processes than PEs.
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
        // A node with one PE needs no mapping.
        if !self.intra || nodes.pes.iter().all(|pes| pes.len() == 1) {
            for (members, pes) in members.iter().zip(&nodes.pes) {
                members.iter().zip(pes).for_each(|(&process, &pe)| pe_of[process as usize] = pe);
            }
            return Ok(pe_of);
        }
        let graphs = graph.split(&members);
        let inside = members.par_iter().zip(graphs).enumerate().map(|(node, (members, graph))| {
            let ones = vec![1; members.len()];
            // The places of the tree are indices into the list of the node's PEs.
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

    /// The PE of every object, if there are more objects than PEs.
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

    /// Moves objects away from PEs that speed, background load or non-migratable objects raise above the allowed imbalance.
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

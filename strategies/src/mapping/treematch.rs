//! `TreeMatch`: groups communicating processes bottom-up along the machine's tree.
//!
//! E. Jeannot, G. Mercier, "Near-optimal placement of MPI processes on hierarchical NUMA architectures",
//! Euro-Par 2010, algorithm 1, as E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication
//! and topology-aware load balancing in Charm++ with TreeMatch", Cluster 2013, section IV uses it. Processes form
//! groups as large as the arity of the lowest level, so that groups exchange little (`treematch/grouping.rs`). The bytes
//! between groups are the matrix of the next level, up to the root. Only the structure of the machine counts, not
//! distances or bandwidths. The matrix is padded with zero rows to the number of leaves, so the algorithm chooses which
//! PEs remain unused.
//!
//! Choices that the papers leave open:
//! - Arities are decomposed into their prime factors, because there would be too many possible groups of, for example,
//!   16. A prime number of PEs below one node has no structure, so their order does not matter.
//! - The tree is built several times. The first run breaks ties by the lowest vertex, the others at random. The run whose
//!   groups exchange least, summed over the levels, is taken.
//! - Groups are in the order of their lowest members, and leaves in tree order for any PE numbers, so physical core numbers
//!   have no effect.
//! - A machine that is not a tree (a grid, a graph) gets a tree of its PE numbers, with the prime factors of the number of
//!   PEs as arities. In a product, its nodes are the leaves of such a tree.
//!
//! The algorithm does not handle unavailable PEs, uneven trees, or non-migratable objects that attract others. In these
//! cases [`super::treematch_const`] is used, which handles them.

use rayon::prelude::*;

mod grouping;
pub(super) mod share;

pub use share::Surplus;

use grouping::Ties;

use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::random::generator;
use equipoise_model::topology::{Hierarchy, prime_factors};
use equipoise_model::{Assignment, Database, Topology};

use super::on_tree::{Affinity, MAX_TRIES, assign};
use super::treematch_const::{self, TRIALS};
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{self, Grouping};
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `TreeMatch` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TreeMatch",
    form: "",
    help: "Groups objects, then matches the groups to the machine's tree from the leaves up (Jeannot and \
           Mercier 2010). Moves nearly all objects. For communication-bound programs on clusters of multicore nodes \
           and on fat trees.",
    params: &[groups::GROUPS, groups::SIZES, groups::IMBALANCE, Affinity::param("bytes"), RESTARTS, TRIALS],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            Ok(Box::new(OnPart(TreeMatch {
                grouping: Grouping::take(params)?,
                affinity: params.take("affinity")?,
                restarts: params.take_count("restarts", MAX_TRIES)?,
                trials: params.take_count("trials", MAX_TRIES)?,
            })))
        },
    },
};

/// The parameter `restarts` for the registry.
pub(super) const RESTARTS: Param = Param {
    key: "restarts",
    default: "16",
    help: "number of times the tree is built, 1 to 100000, with different tie-breaking; the best is taken",
};

/// The strategy `TreeMatch`.
#[derive(Clone, Copy, Debug)]
pub struct TreeMatch {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// The measure of communication between objects.
    pub affinity: Affinity,
    /// The number of times the tree is built.
    pub restarts: usize,
    /// The number of partitions that are tried at each node of the tree if `TreeMatchConst` is used.
    pub trials: usize,
}

impl Strategy for TreeMatch {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        assign(database, topology, self.grouping, self.affinity, seed, |machine, groups, anchors| {
            let effort = (self.restarts, self.trials);
            place(&machine.tree, &machine.is_free, &groups.graph, anchors, effort, seed)
        })
    }
}

/// The leaf of every task, by TreeMatch if it handles the input, else by [`treematch_const::place`].
///
/// `restarts` is for TreeMatch, `trials` for TreeMatchConst.
pub(super) fn place(
    tree: &Hierarchy,
    is_free: &[bool],
    graph: &Graph,
    anchors: &[u32],
    (restarts, trials): (usize, usize),
    seed: u64,
) -> Vec<u32> {
    let tasks = graph.vertices() - anchors.len();
    let attracts = |anchor: usize| graph.neighbors(anchor).any(|(partner, _)| partner < tasks);
    match tree.arities() {
        Some(arities) if is_free.iter().all(|&free| free) && !(tasks..graph.vertices()).any(attracts) => {
            // Anchors without edges to tasks need no leaf.
            let tasks: Vec<u32> = (0..tasks as u32).collect();
            order(&graph.induced(&tasks), &arities, restarts, seed)
        }
        _ => treematch_const::place(tree, is_free, graph, anchors, trials, seed),
    }
}

/// The stream of the random number generator that breaks ties.
const STREAM: u64 = 0x626f_7474_6f6d_7570;

/// The leaf of every vertex on a tree with these arities, root first. Leaves are numbered from left to
/// right; each has at most one vertex.
///
/// # Panics
/// If there are more vertices than leaves.
pub(super) fn order(graph: &Graph, arities: &[usize], restarts: usize, seed: u64) -> Vec<u32> {
    let leaves = arities.iter().product::<usize>();
    assert!(graph.vertices() <= leaves, "{} vertices on {leaves} leaves", graph.vertices());
    let mut primes: Vec<usize> = arities.iter().flat_map(|&arity| prime_factors(arity)).collect();
    primes.reverse();
    let padded = Graph::new(leaves, graph.pairs());
    if padded.edges() == 0 {
        return (0..graph.vertices() as u32).collect();
    }
    let restarts = restarts.max(1);
    let runs = (0..restarts).into_par_iter().map(|restart| {
        let mut rng = generator(seed, STREAM ^ restart as u64);
        let (mut groups, mut current, mut leaving) = (Vec::new(), padded.clone(), 0u128);
        for &arity in &primes {
            let ties = if restart == 0 { Ties::Lowest } else { Ties::Random(&mut rng) };
            let group_of = grouping::group(&current, arity, ties);
            current = current.quotient(&group_of, current.vertices() / arity);
            leaving += current.pairs().map(|(.., weight)| u128::from(weight)).sum::<u128>();
            groups.push(group_of);
        }
        (leaving, restart, groups)
    });
    let (.., groups) = runs.min_by_key(|(leaving, restart, _)| (*leaving, *restart)).expect("there is a run");
    let mut leaf_of = vec![0];
    for (group_of, arity) in groups.iter().zip(&primes).rev() {
        let mut members = vec![0; leaf_of.len()];
        let place = |&group: &u32| {
            let member = &mut members[group as usize];
            *member += 1;
            leaf_of[group as usize] * *arity as u32 + *member - 1
        };
        leaf_of = group_of.iter().map(place).collect();
    }
    leaf_of.truncate(graph.vertices());
    leaf_of
}

#[cfg(test)]
pub(in crate::mapping) mod tests;

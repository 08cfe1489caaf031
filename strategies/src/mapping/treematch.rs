//! `TreeMatch`: groups what communicates from the leaves of the machine's tree up.
//!
//! E. Jeannot, G. Mercier, "Near-optimal placement of MPI processes on hierarchical NUMA architectures",
//! Euro-Par 2010, algorithm 1, as E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication
//! and topology-aware load balancing in Charm++ with TreeMatch", Cluster 2013, section IV uses it: the
//! processes are put into groups as large as the arity of the lowest level, so that little leaves the
//! groups (`treematch/grouping.rs`); what groups exchange is the matrix of the next level; and so on to the root. Only
//! the structure of the machine counts, no distance and no bandwidth. The matrix is padded with zero rows
//! to the number of leaves, so which PEs remain unused is the algorithm's choice.
//!
//! Choices where the papers leave one:
//! - arities are decomposed into their prime factors, because there are too many groups of 16; a prime
//!   number of PEs below one node has no structure, and any order below it is as good;
//! - the whole way up is taken several times, with ties broken by the lowest vertex the first time and at
//!   random after that, and the run is taken whose groups exchange least, summed over the levels;
//! - groups are in the order of their lowest members, and leaves in tree order whatever their PEs are
//!   called, so physical core numbers do no harm;
//! - a machine that is no tree (a grid, a graph) gets a tree of its numbers, with the prime factors of the
//!   number of PEs as arities; in a product its nodes are the leaves of such a tree.
//!
//! The algorithm knows neither PEs that take nothing, nor uneven trees, nor objects that stay and draw others
//! to them. Where there are such, [`super::treematch_const`] takes over, which was made for them.

use rayon::prelude::*;

pub mod affinity;
mod grouping;
pub mod share;
pub(super) mod tree;

pub use affinity::Affinity;
pub use share::Surplus;

use grouping::Ties;
use tree::Machine;

use super::treematch_const::{self, TRIALS};
use super::{answer, hosts, take_count};
use crate::graph::Graph;
use crate::partition::groups::{self, Grouping, Groups};
use crate::random::generator;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::topology::Hierarchy;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `TreeMatch` for the registry.
pub const NAMED: Named = Named {
    name: "TreeMatch",
    aliases: &[],
    help: "Groups objects, then matches the groups to the machine's tree from the leaves up (Jeannot and \
           Mercier 2010). Nearly everything moves once. For communication-bound programs on clusters of \
           multicore nodes and on fat trees.",
    params: &[groups::GROUPS, groups::SIZES, groups::IMBALANCE, Affinity::param("bytes"), RESTARTS, TRIALS],
    needs_communication: true,
    make: |params: &mut Params| {
        Ok(Box::new(TreeMatch {
            grouping: Grouping::take(params)?,
            affinity: params.take("affinity")?,
            restarts: take_count(params, "restarts", MAX_TRIES)?,
            trials: take_count(params, "trials", MAX_TRIES)?,
        }))
    },
};

/// The parameter `restarts` for the registry.
pub(super) const RESTARTS: Param = Param {
    key: "restarts",
    default: "16",
    help: "how often the tree is built, with ties broken differently; the best is taken",
};

/// The most restarts and trials: more are a slip of the hand.
pub(super) const MAX_TRIES: usize = 1_000_000;

/// The strategy that matches groups to the tree of the machine.
#[derive(Clone, Copy, Debug)]
pub struct TreeMatch {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// What makes objects belong together.
    pub affinity: Affinity,
    /// How often the tree is built.
    pub restarts: usize,
    /// How many partitions are tried at each node of the tree where `TreeMatchConst` takes over.
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

/// The answer when `place` tells the leaf of every group of the tree of the machine, where anchors have
/// the leaves it is given.
pub(super) fn assign(
    database: &Database,
    topology: &dyn Topology,
    grouping: Grouping,
    affinity: Affinity,
    seed: u64,
    place: impl FnOnce(&Machine, &Groups, &[u32]) -> Vec<u32>,
) -> Result<Assignment, StrategyError> {
    let available = check(database, topology)?;
    let groups = Groups::of(&affinity.of(database), &available, grouping, seed)?;
    let mut machine = Machine::of(topology, database);
    machine.keep_to(&hosts(database, &available, groups.count, grouping.by));
    let leaves = place(&machine, &groups, &machine.leaves_of(&groups.anchors));
    Ok(answer(database, &groups, grouping, available, &machine.pes_of(&leaves)))
}

/// The leaf of every task, as [`treematch_const::place`], from the leaves up where that is possible.
///
/// `effort` are the restarts from the leaves up and the trials from the root down.
pub(super) fn place(
    tree: &Hierarchy,
    is_free: &[bool],
    graph: &Graph,
    anchors: &[u32],
    (restarts, trials): (usize, usize),
    seed: u64,
) -> Vec<u32> {
    let tasks = graph.vertices() - anchors.len();
    let draws = |anchor: usize| graph.neighbors(anchor).any(|(friend, _)| friend < tasks);
    match tree.arities() {
        Some(arities) if is_free.iter().all(|&free| free) && !(tasks..graph.vertices()).any(draws) => {
            // Anchors that draw nobody need no leaf.
            let tasks: Vec<u32> = (0..tasks as u32).collect();
            order(&graph.induced(&tasks), &arities, restarts, seed)
        }
        _ => treematch_const::place(tree, is_free, graph, anchors, trials, seed),
    }
}

/// The stream of random numbers that break ties.
const STREAM: u64 = 0x626f_7474_6f6d_7570;

/// The leaf of every vertex on a tree with these arities, root first: leaves are counted from left to
/// right, each is for at most one vertex.
///
/// # Panics
/// When there are more vertices than leaves.
pub(super) fn order(graph: &Graph, arities: &[usize], restarts: usize, seed: u64) -> Vec<u32> {
    let leaves = arities.iter().product::<usize>();
    assert!(graph.vertices() <= leaves, "{} vertices on {leaves} leaves", graph.vertices());
    let mut primes: Vec<usize> = arities.iter().flat_map(|&arity| tree::prime_factors(arity)).collect();
    primes.reverse();
    let padded = Graph::new(leaves, graph.pairs());
    if padded.edges() == 0 {
        return (0..graph.vertices() as u32).collect();
    }
    let restarts = restarts.max(1);
    let runs = (0..restarts).into_par_iter().map(|restart| {
        let mut random = generator(seed, STREAM ^ restart as u64);
        let (mut groups, mut current, mut leaving) = (Vec::new(), padded.clone(), 0u128);
        for &arity in &primes {
            let ties = if restart == 0 { Ties::Lowest } else { Ties::Random(&mut random) };
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

//! `TreeMatchConst`: TreeMatch top-down along the machine's tree, with constraints (leaves that must remain empty).
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load
//! balancing in Charm++ with TreeMatch", Cluster 2013, section IV and algorithm 1: at every node of the
//! tree, the processes below it are partitioned among its children with the least cut, one process for each leaf
//! that is not a constraint (`partition/k_partition.rs`). The same is done in every child, until there is one
//! process for one leaf. Edges cut at a higher level are ignored.
//!
//! As a strategy, the constraints are the PEs that are not available, and the processes are groups of objects.
//! If there are fewer groups than PEs, the matrix is padded with processes that exchange nothing, as in the
//! paper. Choices that the paper leaves open:
//! - Constraints are the leaves that may *not* be used, as in the paper. (In the paper's program, constraints are the
//!   leaves that may be used.)
//! - Leaves are in tree order for any PE numbers, so physical core numbers have no effect.
//! - Trees need not be balanced: a child receives as many processes as it has free leaves, and no arity is decomposed.
//! - Non-migratable objects take no leaf, but attract their partners to their subtree.
//! - Each node has 1000 trials, as in the paper. There are fewer if the graph is so large that the trials of one level
//!   would take seconds, but at least 10 (the number of Open MPI).
//!
//! The time is O(trials * (PEs + edges)) for each level.

use std::ops::Range;

use rayon::prelude::*;

use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::random::generator;
use equipoise_model::topology::Hierarchy;
use equipoise_model::{Assignment, Database, Topology};

use super::on_tree::{Affinity, MAX_TRIES, assign};
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{self, Grouping};
use crate::partition::k_partition;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `TreeMatchConst` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TreeMatchConst",
    form: "",
    help: "Groups objects, then partitions the groups top-down along the machine's tree, without PEs that are not \
           available (Jeannot et al. 2013). For clusters of multicore nodes with unavailable PEs or non-migratable \
           objects; slower than TreeMatch.",
    params: &[groups::GROUPS, groups::SIZES, groups::IMBALANCE, Affinity::param("bytes"), TRIALS],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            Ok(Box::new(OnPart(TreeMatchConst {
                grouping: Grouping::take(params)?,
                affinity: params.take("affinity")?,
                trials: params.take_count("trials", MAX_TRIES)?,
            })))
        },
    },
};

/// The parameter `trials` for the registry.
pub(super) const TRIALS: Param = Param {
    key: "trials",
    default: "1000",
    help: "number of random partitions at each node of the tree, 1 to 100000, of which the best is taken; fewer for large graphs",
};

/// The strategy `TreeMatchConst`.
#[derive(Clone, Copy, Debug)]
pub struct TreeMatchConst {
    /// How objects are grouped.
    pub grouping: Grouping,
    /// The measure of communication between objects.
    pub affinity: Affinity,
    /// The number of partitions that are tried at each node of the tree.
    pub trials: usize,
}

impl Strategy for TreeMatchConst {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        assign(database, topology, self.grouping, self.affinity, seed, |machine, groups, anchors| {
            place(&machine.tree, &machine.is_free, &groups.graph, anchors, self.trials, seed)
        })
    }
}

/// The stream of the random number generator for partitions.
const STREAM: u64 = 0x7472_6565_6d61_7463;

/// The maximum number of vertices and ends of edges that the trials of one level read, except with [`MIN_TRIALS`].
const MAX_VISITS: usize = 50_000_000;

/// The minimum number of trials for a large graph.
const MIN_TRIALS: usize = 10;

/// The leaf of every task: a free leaf, with at most one task per leaf. Leaves are numbered from left to right.
///
/// The vertices of `graph` are the tasks and, after them, the anchors. Anchor `i` is fixed on leaf `anchors[i]`.
///
/// # Panics
/// If there are more tasks than free leaves, or not as many entries of `is_free` as leaves.
pub(super) fn place(
    tree: &Hierarchy,
    is_free: &[bool],
    graph: &Graph,
    anchors: &[u32],
    trials: usize,
    seed: u64,
) -> Vec<u32> {
    assert_eq!(is_free.len(), tree.leaves().len(), "every leaf is free or a constraint");
    let mut free_before = vec![0u32];
    free_before.extend(is_free.iter().scan(0, |free, &is_free| {
        *free += u32::from(is_free);
        Some(*free)
    }));
    let (free, tasks) = (free_before[is_free.len()] as usize, graph.vertices() - anchors.len());
    assert!(tasks <= free, "{tasks} tasks need more than {free} leaves");
    // Processes that exchange nothing are numbered between the tasks and the anchors.
    let added = (free - tasks) as u32;
    let shift = |v: u32| if (v as usize) < tasks { v } else { v + added };
    let pairs = graph.pairs().map(|(a, b, weight)| (shift(a), shift(b), weight));
    let padded = Graph::new(free + anchors.len(), pairs);
    let visits = padded.vertices() + 2 * padded.edges();
    let search = Search {
        tree,
        nodes: (0..=tree.depth()).map(|level| tree.nodes(level).collect()).collect(),
        free_before,
        anchors,
        processes: free,
        trials: trials.min((MAX_VISITS / visits.max(1)).max(MIN_TRIALS)),
        seed,
    };
    let vertices: Vec<u32> = (0..padded.vertices() as u32).collect();
    let mut leaf_of = vec![0; free];
    for (process, leaf) in search.below(0, 0, &padded, &vertices) {
        leaf_of[process as usize] = leaf;
    }
    leaf_of.truncate(tasks);
    leaf_of
}

/// The data that is the same at every node of the tree.
struct Search<'a> {
    tree: &'a Hierarchy,
    /// By level: the leaves below each of its nodes.
    nodes: Vec<Vec<Range<usize>>>,
    /// By leaf: the number of free leaves before it.
    free_before: Vec<u32>,
    /// The leaf of each anchor.
    anchors: &'a [u32],
    /// The number of processes; vertices from this number on are anchors.
    processes: usize,
    trials: usize,
    seed: u64,
}

impl Search<'_> {
    /// The processes among `vertices`, each with its leaf. The processes fill the free leaves below a node; vertex `i` of
    /// `graph` is `vertices[i]`.
    fn below(&self, level: usize, node: usize, graph: &Graph, vertices: &[u32]) -> Vec<(u32, u32)> {
        let free = |leaves: &Range<usize>| self.free_before[leaves.end] - self.free_before[leaves.start];
        let leaves = &self.nodes[level][node];
        let count = free(leaves) as usize;
        if count == 0 {
            return Vec::new();
        }
        if level == self.tree.depth() {
            return vec![(vertices[0], leaves.start as u32)];
        }
        let children = self.tree.children(level, node);
        let leaves_of = &self.nodes[level + 1][children.clone()];
        let child_of = |&anchor: &u32| {
            let leaf = self.anchors[anchor as usize - self.processes] as usize;
            leaves_of.partition_point(|leaves| leaves.end <= leaf) as u32
        };
        let fixed: Vec<u32> = vertices[count..].iter().map(child_of).collect();
        let capacities: Vec<u32> = leaves_of.iter().map(free).collect();
        let mut rng = generator(self.seed, STREAM ^ ((level as u64) << 32) ^ node as u64);
        let mut part_of = k_partition::partition(graph, &capacities, &fixed, self.trials, &mut rng);
        part_of.extend(fixed);
        let mut members = vec![Vec::new(); capacities.len()];
        for (&part, vertex) in part_of.iter().zip(0..) {
            members[part as usize].push(vertex);
        }
        if level + 1 == self.tree.depth() {
            let taken = members.iter().zip(leaves_of).filter(|(_, leaves)| free(leaves) > 0);
            return taken.map(|(part, leaves)| (vertices[part[0] as usize], leaves.start as u32)).collect();
        }
        let graphs = graph.split(&members);
        let one = |(child, (local, graph)): (usize, (Vec<u32>, Graph))| {
            let inside: Vec<u32> = local.iter().map(|&v| vertices[v as usize]).collect();
            self.below(level + 1, child, &graph, &inside)
        };
        children.into_par_iter().zip(members.into_par_iter().zip(graphs)).flat_map_iter(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::load;
    use equipoise_model::topology::parse;
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::super::treematch::tests::{FIGURE_1, check_leaves, figure_2};
    use super::*;
    use crate::testing::{assign_on, database};

    /// The bytes of figure 2 between the two processors, each pair counted once.
    fn cut(pe_of: &[u32]) -> u64 {
        let graph = Graph::of(&figure_2());
        graph.pairs().filter(|&(a, b, _)| (pe_of[a as usize] ^ pe_of[b as usize]) & 1 == 1).map(|p| p.2).sum()
    }

    #[test]
    fn figure_1_with_constraints_is_partitioned_3_to_5_with_the_least_cut() {
        for trials in [10, 1000] {
            let mut database = figure_2();
            for pe in [0, 2, 4, 1] {
                database.pes[pe].available = false;
            }
            let spec = format!("TreeMatchConst:trials={trials}");
            let pe_of = assign_on(&spec, &database, FIGURE_1).expect("an assignment").pe_of;
            // The unused leaves are exactly the constraints.
            check_leaves(&pe_of, &[6, 8, 10, 3, 5, 7, 9, 11]);
            assert_eq!(cut(&pe_of), 1311, "{trials} trials");
            let left: Vec<usize> = (0..8).filter(|&chare| pe_of[chare] % 2 == 0).collect();
            assert!(left == [0, 1, 2] || left == [4, 5, 6], "{left:?}");
        }
    }

    #[test]
    fn the_least_cut_of_figure_2_is_1311() {
        let cut = |left: [usize; 3]| {
            let pe_of: Vec<u32> = (0..8).map(|chare| u32::from(!left.contains(&chare))).collect();
            cut(&pe_of)
        };
        assert_eq!((cut([0, 1, 2]), cut([4, 5, 6]), cut([1, 2, 3])), (1311, 1311, 1320));
        let all = (0..8).flat_map(|a| (a + 1..8).flat_map(move |b| (b + 1..8).map(move |c| [a, b, c])));
        assert_eq!(all.map(cut).min(), Some(1311));
    }

    #[test]
    fn non_migratable_objects_attract_their_partners_to_their_subtree() {
        let mut database = database(8, &[(0.0, 6), (1.0, 0), (1.0, 1), (1.0, 2)]);
        database.objects[0].migratable = false;
        let edge = |a, b| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes: 100 };
        database.edges = vec![edge(0, 1), edge(2, 0), edge(0, 3)];
        let pe_of = assign_on("TreeMatchConst", &database, "tree:2:4").expect("an assignment").pe_of;
        assert!(pe_of.iter().all(|&pe| pe >= 4), "{pe_of:?}");
    }

    #[test]
    fn uneven_machines_are_filled() {
        let database = load("ring:10").expect("a ring").remap(10);
        let spec = "TreeMatchConst:groups=keep";
        let pe_of = assign_on(spec, &database, "tree:4:4[0-2,4-7,12-14]").expect("an assignment").pe_of;
        let mut all = pe_of.clone();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        let node = |pe: u32| [0, 0, 0, 1, 1, 1, 1, 2, 2, 2][pe as usize];
        let crossing = (0..10).filter(|&i| node(pe_of[i]) != node(pe_of[(i + 1) % 10])).count();
        assert_eq!(crossing, 3, "{pe_of:?}");
    }

    proptest! {
        #[test]
        fn every_task_has_a_free_leaf_of_its_own(
            arities in prop::collection::vec(1..4usize, 0..4),
            blocked in prop::collection::vec(any::<bool>(), 27),
            edges in prop::collection::vec((any::<u32>(), any::<u32>(), 0..5u64), 0..60),
            (missing, anchors) in (0..4usize, prop::collection::vec(any::<u32>(), 0..3)),
            seed in any::<u64>(),
        ) {
            let tree = Hierarchy::balanced(&arities);
            let leaves = tree.leaves().len();
            let is_free: Vec<bool> = blocked[..leaves].iter().map(|blocked| !blocked).collect();
            let free = is_free.iter().filter(|&&free| free).count();
            let tasks = free.saturating_sub(missing);
            let anchors: Vec<u32> = anchors.iter().map(|anchor| anchor % leaves as u32).collect();
            let n = (tasks + anchors.len()) as u32;
            let edges = edges.into_iter().filter(|_| n > 0).map(|(a, b, w)| (a % n.max(1), b % n.max(1), w));
            let graph = Graph::new(n as usize, edges);
            let mut leaf_of = place(&tree, &is_free, &graph, &anchors, 20, seed);
            prop_assert_eq!(&leaf_of, &place(&tree, &is_free, &graph, &anchors, 20, seed));
            prop_assert!(leaf_of.iter().all(|&leaf| is_free[leaf as usize]));
            leaf_of.sort_unstable();
            leaf_of.dedup();
            prop_assert_eq!(leaf_of.len(), tasks);
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let graph = Graph::of(&load("random:n=60,degree=6,bytes=3").expect("a graph"));
        let tree = parse("tree:4:4:4").expect("a tree").hierarchy().expect("a hierarchy");
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            pool.install(|| place(&tree, &[true; 64], &graph, &[], 300, 7))
        };
        assert_eq!(run(1), run(2));
    }
}

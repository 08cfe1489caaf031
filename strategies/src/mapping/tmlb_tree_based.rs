//! `TMLB_TREEBASED`: maps the groups of all PEs to the tree of the machine, then balances every node.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load
//! balancing in Charm++ with TreeMatch", Cluster 2013, section V.B and algorithm 3, for
//! communication-bound programs:
//!
//! 1. The chares of each PE form a group, and TreeMatch permutes the groups on the PEs.
//! 2. Every node is balanced by itself, in parallel. `TreeMatchConst` orders its chares along a fake tree of 2^a 3^b
//!    leaves; surplus leaves are constraints, spread evenly over the smallest subtrees. The order is cut into one part
//!    per core. The cores take chares of their own parts, and a few of other parts, until they are balanced
//!    ([`super::treematch`]'s `share`). No chare changes its node, so a node with more load than other nodes keeps this
//!    load.
//!
//! Choices that the paper leaves open:
//! - A node is the right part of a product, or a subtree below the root; if that is a single PE, the whole machine is one
//!   node. `level` selects another level (`level=2` if switches are above the nodes).
//! - Part i of a node belongs to its i-th core in tree order, so parts that communicate are close.
//! - Step 1 keeps the present groups in place if that does not increase the bytes exchanged between nodes of the tree,
//!   summed over its levels. Step 2 keeps the chares on their cores if, in addition, the heaviest core is no heavier.
//! - Affinity is the number of messages.
//!
//! Beyond the paper: PEs that are not available are constraints of the first step, and their groups go to other PEs.
//! Non-migratable objects take no leaf. They and PEs attract the chares that communicate with them to their core.
//!
//! The time is O(trials * (n + E)) for each of the log n levels of the fake trees, divided by the number of threads.

use rayon::prelude::*;

use equipoise_model::database::Object;
use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::on_tree::tree::{self, Levels, Machine};
use super::on_tree::{Affinity, MAX_TRIES};
use super::treematch::share::{SURPLUS, consecutive, share};
use super::treematch::{RESTARTS, Surplus, place};
use super::treematch_const::{self, TRIALS};
use crate::balance::load::Work;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::weights;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `TMLB_TREEBASED` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TMLB_TREEBASED",
    form: "",
    help: "Maps the objects of each PE as a group to the machine's tree, then balances every node by itself, in \
           parallel (Jeannot et al. 2013). For communication-bound programs on clusters of multicore nodes.",
    params: &[
        Affinity::param("messages"),
        Param {
            key: "level",
            default: "auto",
            help: "level of the nodes in the machine's tree, in levels below the root; `auto`: the right part of a \
                   product, else 1, or 0 (one node) if level 1 has single PEs",
        },
        SURPLUS,
        RESTARTS,
        TRIALS,
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            let level = match &*params.take::<String>("level")? {
                "auto" => None,
                number => Some(number.parse().map_err(|_| {
                    params.bad(
                        "level",
                        number,
                        "expected `auto` or a number of levels below the root, as in 1",
                    )
                })?),
            };
            Ok(Box::new(OnPart(TmlbTreeBased {
                affinity: params.take("affinity")?,
                level,
                surplus: params.take("surplus")?,
                restarts: params.take_count("restarts", MAX_TRIES)?,
                trials: params.take_count("trials", MAX_TRIES)?,
            })))
        },
    },
};

/// The strategy `TMLB_TREEBASED`.
#[derive(Clone, Copy, Debug)]
pub struct TmlbTreeBased {
    /// The measure of communication between objects.
    pub affinity: Affinity,
    /// The level of the nodes, in levels below the root; `None`: [`Hierarchy::node_level`].
    ///
    /// [`Hierarchy::node_level`]: equipoise_model::topology::Hierarchy::node_level
    pub level: Option<usize>,
    /// The chare that a core takes from another part when its own part is used up.
    pub surplus: Surplus,
    /// The number of times TreeMatch builds its tree in the first step.
    pub restarts: usize,
    /// The number of partitions that are tried at each node of a fake tree.
    pub trials: usize,
}

/// The grouping of the first step: the objects of each PE.
const OBJECTS_OF_EACH_PE: Grouping = Grouping { by: By::Keep, equal: false, imbalance: 0.0 };

impl Strategy for TmlbTreeBased {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let machine = Machine::of(topology, database);
        let deepest = machine.tree.depth();
        let level = self.level.unwrap_or_else(|| machine.tree.node_level());
        if level > deepest {
            let spec = topology.spec();
            return Err(StrategyError::Request(format!(
                "TMLB_TREEBASED:level={level} is too deep: the tree of `{spec}` has only {deepest} level{} below the \
                 root; use at most level={deepest}, or level=auto",
                if deepest == 1 { "" } else { "s" }
            )));
        }
        let counted = self.affinity.of(database);
        let groups = Groups::of(&counted, &available, OBJECTS_OF_EACH_PE, seed)?;
        let levels = Levels::of(&machine.tree);
        let effort = (self.restarts, self.trials);
        let pes = permute(&machine, &levels, database, &groups, effort, seed);
        let nodes = nodes(&machine, level, database, &groups.placement(database, &pes));
        let balancing =
            Balancing::new(&machine, &levels, Work::new(database, available), &Graph::with_pes(&counted));
        let cores = nodes.par_iter().map(|node| balancing.balance(node, self.surplus, self.trials, seed));
        let mut answer = Assignment::unchanged(database);
        for (node, cores) in nodes.iter().zip(cores.collect::<Vec<_>>()) {
            for (&chare, core) in node.chares.iter().zip(cores) {
                answer.pe_of[chare as usize] = node.cores[core as usize];
            }
        }
        Ok(answer)
    }
}

/// The first step: the PE of every group.
fn permute(
    machine: &Machine,
    levels: &Levels,
    database: &Database,
    groups: &Groups,
    effort: (usize, usize),
    seed: u64,
) -> Vec<u32> {
    let anchors = machine.leaves_of(&groups.anchors);
    let leaves = place(&machine.tree, &machine.is_free, &groups.graph, &anchors, effort, seed);
    // The present PE of each group, if all its objects are there.
    let mut present = vec![0; groups.count];
    for (object, group) in database.objects.iter().zip(&groups.group_of) {
        if let Some(group) = *group {
            present[group as usize] = object.pe;
        }
    }
    let can_stay = |(object, group): (&Object, &Option<u32>)| {
        group.is_none_or(|g| object.pe == present[g as usize] && database.pes[object.pe as usize].available)
    };
    if database.objects.iter().zip(&groups.group_of).all(can_stay) {
        let cut = |leaves: &[u32]| levels.cut(&groups.graph, &[leaves, &*anchors].concat());
        if cut(&machine.leaves_of(&present)) <= cut(&leaves) {
            return present;
        }
    }
    machine.pes_of(&leaves)
}

/// A node, which the second step balances by itself.
struct Node {
    /// Its available PEs, in tree order.
    cores: Vec<u32>,
    /// The migratable objects on its cores, ascending.
    chares: Vec<u32>,
    /// By chare: the index of its core after the first step.
    core_of: Vec<u32>,
}

/// The nodes at a level of the machine, with object `i` on `pe_of[i]`.
fn nodes(machine: &Machine, level: usize, database: &Database, pe_of: &[u32]) -> Vec<Node> {
    let leaves = machine.tree.leaves();
    // By PE: its node, and its index among the cores of the node.
    let mut place = vec![(0, 0); leaves.len()];
    let mut nodes = Vec::new();
    for below in machine.tree.nodes(level) {
        let free = below.filter(|&leaf| machine.is_free[leaf]).map(|leaf| leaves[leaf]);
        let cores: Vec<u32> = free.collect();
        cores.iter().zip(0..).for_each(|(&pe, core)| place[pe as usize] = (nodes.len(), core));
        nodes.push(Node { cores, chares: Vec::new(), core_of: Vec::new() });
    }
    for ((object, &pe), number) in database.objects.iter().zip(pe_of).zip(0..) {
        if object.migratable {
            let (node, core) = place[pe as usize];
            nodes[node].chares.push(number);
            nodes[node].core_of.push(core);
        }
    }
    nodes
}

/// The input of the second step for all nodes.
struct Balancing<'a> {
    machine: &'a Machine,
    levels: &'a Levels,
    work: Work<'a>,
    /// The loads of objects as whole numbers.
    weights: Vec<u32>,
    /// The vertices are the objects and, after them, the PEs, each with its non-migratable objects.
    graph: Graph,
}

impl<'a> Balancing<'a> {
    /// The vertices of `graph` are the objects and the PEs.
    fn new(machine: &'a Machine, levels: &'a Levels, work: Work<'a>, graph: &Graph) -> Self {
        let (objects, pes) = (&work.database().objects, work.database().pes.len());
        let vertex = |(o, i): (&Object, u32)| if o.migratable { i } else { objects.len() as u32 + o.pe };
        let pes_themselves = (objects.len()..objects.len() + pes).map(|vertex| vertex as u32);
        let vertices: Vec<u32> = objects.iter().zip(0..).map(vertex).chain(pes_themselves).collect();
        let graph = graph.quotient(&vertices, objects.len() + pes);
        let weights = weights(objects.iter().map(|object| object.load_seconds));
        Balancing { machine, levels, work, weights, graph }
    }

    /// The index of the core of each chare after balancing the node.
    fn balance(&self, node: &Node, surplus: Surplus, trials: usize, seed: u64) -> Vec<u32> {
        let Node { cores, chares, core_of } = node;
        if cores.len() < 2 {
            return core_of.clone();
        }
        let (fake, is_free) = tree::fake(chares.len());
        // The anchor of a core is on the leaf where the part of that core begins.
        let anchor_vertex = |pe: u32| self.work.database().objects.len() as u32 + pe;
        let anchor = |(core, &pe)| (pe, (core * is_free.len() / cores.len()) as u32);
        let anchors = cores.iter().enumerate().map(anchor);
        let mut anchors: Vec<(u32, u32)> =
            anchors.filter(|&(pe, _)| self.graph.degree(anchor_vertex(pe) as usize) > 0).collect();
        anchors.sort_unstable();
        let (anchor_pes, anchors): (Vec<u32>, Vec<u32>) = anchors.into_iter().unzip();
        let vertices = chares.iter().copied().chain(anchor_pes.iter().map(|&pe| anchor_vertex(pe)));
        let graph = self.graph.induced(&vertices.collect::<Vec<_>>());
        let leaf_of = treematch_const::place(&fake, &is_free, &graph, &anchors, trials, seed);
        let mut order: Vec<(u32, u32)> = leaf_of.into_iter().zip(chares.iter().copied()).collect();
        order.sort_unstable();
        let sequence: Vec<u32> = order.into_iter().map(|(_, chare)| chare).collect();
        let parts = consecutive(&sequence, cores.len());
        let mut balanced = vec![0; chares.len()];
        for (share, core) in share(&self.work, &self.weights, cores, parts, surplus).iter().zip(0..) {
            for chare in share {
                balanced[chares.binary_search(chare).expect("a chare of the node is shared")] = core;
            }
        }
        let cut = |core_of: &[u32]| {
            let pes = core_of.iter().map(|&core| cores[core as usize]);
            let pes: Vec<u32> = pes.chain(anchor_pes.iter().copied()).collect();
            self.levels.cut(&graph, &self.machine.leaves_of(&pes))
        };
        let is_no_better = self.heaviest_seconds(node, core_of) <= self.heaviest_seconds(node, &balanced)
            && cut(core_of) <= cut(&balanced);
        if is_no_better { core_of.clone() } else { balanced }
    }

    /// The load of the heaviest core of a node in seconds.
    fn heaviest_seconds(&self, node: &Node, core_of: &[u32]) -> f64 {
        let fixed = node.cores.iter().map(|&pe| self.work.fixed_seconds[pe as usize]);
        let mut seconds: Vec<f64> = fixed.collect();
        for (&chare, &core) in node.chares.iter().zip(core_of) {
            seconds[core as usize] += self.work.seconds(chare, node.cores[core as usize]);
        }
        seconds.into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::load;
    use equipoise_model::topology::parse;

    use super::*;
    use crate::testing::{assign_on, communication};

    /// A task graph whose tasks are distributed round-robin over `pes` PEs.
    fn round_robin(graph: &str, pes: u32) -> Database {
        let mut database = load(graph).expect(graph).remap(pes);
        for (object, i) in database.objects.iter_mut().zip(0..) {
            object.pe = i % pes;
        }
        database
    }

    #[test]
    fn chares_keep_their_node_in_step_2() {
        let mut database = load("mesh:11x10").expect("a mesh").remap(8);
        for (object, i) in database.objects.iter_mut().zip(0..) {
            (object.pe, object.load_seconds) = (i % 8, 1.0 + f64::from(i % 7));
        }
        let machine = Machine::of(&*parse("tree:2:4").expect("a tree"), &database);
        let groups = Groups::of(&database, &[0, 1, 2, 3, 4, 5, 6, 7], OBJECTS_OF_EACH_PE, 0).expect("groups");
        let permuted = groups.placement(
            &database,
            &permute(&machine, &Levels::of(&machine.tree), &database, &groups, (16, 100), 0),
        );
        let answer =
            assign_on("TMLB_TREEBASED:trials=100", &database, "tree:2:4").expect("an assignment").pe_of;
        assert!(permuted.iter().zip(&answer).all(|(before, after)| before / 4 == after / 4));
        // Round-robin gives each core 13 or 14 chares; each node is balanced by itself.
        assert!(
            [0, 1].map(|node| answer.iter().filter(|&&pe| pe / 4 == node).count()).iter().all(|&n| n >= 54)
        );
        let loads = database.pe_loads(&answer);
        for node in loads.chunks(4) {
            let spread =
                node.iter().fold(0.0, |most, load| load.max(most)) - node.iter().fold(1e9, |l, m| m.min(l));
            assert!(spread <= 2.0, "{loads:?}");
        }
    }

    #[test]
    fn chares_distributed_round_robin_come_closer_together() {
        for chares in [64, 128, 256] {
            let graph = format!("kneighbor:{chares},7");
            let (database, topology) = (round_robin(&graph, 64), parse("tree:8:2:4").expect("a tree"));
            let hops = |pe_of: &[u32]| communication(&database, &*topology, pe_of).hops_per_byte;
            let answer = assign_on("TMLB_TREEBASED", &database, "tree:8:2:4").expect("an assignment").pe_of;
            let (before, after) = (hops(&database.placement()), hops(&answer));
            assert!(after <= before, "{graph}: {before} hops per byte became {after}");
            let counts = (0..64).map(|pe| answer.iter().filter(|&&p| p == pe).count());
            assert!(counts.clone().all(|count| count == chares / 64), "{:?}", counts.collect::<Vec<_>>());
        }
    }

    #[test]
    fn groups_on_scattered_pes_come_closer_together() {
        // Object i is on PE 7 i mod 64, so all edges of the ring cross PEs.
        let mut database = load("ring:64").expect("a ring").remap(64);
        database.objects.iter_mut().zip(0..).for_each(|(object, i)| object.pe = 7 * i % 64);
        let topology = parse("tree:8:2:4").expect("a tree");
        let answer = assign_on("TMLB_TREEBASED", &database, "tree:8:2:4").expect("an assignment").pe_of;
        let hops = communication(&database, &*topology, &answer).hops_per_byte;
        assert!(hops <= 3.0, "{hops} hops per byte");
    }

    #[test]
    fn a_good_and_balanced_placement_is_kept() {
        let database = load("ring:64").expect("a ring").remap(64);
        for spec in ["TMLB_TREEBASED", "TMLB_TREEBASED:level=0", "TMLB_TREEBASED:level=3"] {
            let answer = assign_on(spec, &database, "tree:8:2:4").expect("an assignment");
            assert_eq!(answer.moves(&database).count(), 0, "{spec}");
        }
    }

    #[test]
    fn refuses_a_level_below_the_leaves_and_names_the_deepest() {
        let error =
            assign_on("TMLB_TREEBASED:level=3", &round_robin("ring:8", 8), "tree:2:4").expect_err("too deep");
        let expected = "the tree of `tree:2:4/4:2` has only 2 levels below the root; use at most level=2";
        assert!(error.to_string().contains(expected), "{error}");
    }

    #[test]
    fn the_nodes_of_a_product_are_its_right_parts_on_any_network() {
        for network in ["torus:3x3", "mesh:9", "fattree:3:3"] {
            let (machine, database) = (format!("{network}*tree:2:4/2:1"), round_robin("kneighbor:300,7", 72));
            let answer = assign_on("TMLB_TREEBASED", &database, &machine).expect("an assignment").pe_of;
            // The objects of a PE went to a node as a group, and stayed on that node in step 2.
            let node = |object: usize| answer[object] / 8;
            assert!((72..300).all(|object| node(object) == node(object % 72)), "{machine}: {answer:?}");
            let moved = |level| assign_on(level, &database, &machine).expect("an assignment").pe_of != answer;
            assert!(moved("TMLB_TREEBASED:level=1") && !moved("TMLB_TREEBASED:level=2"), "{machine}");
        }
    }

    #[test]
    fn a_machine_of_one_level_is_one_node() {
        let database = round_robin("ring:16", 4);
        let answer = assign_on("TMLB_TREEBASED", &database, "flat:4").expect("an assignment").pe_of;
        let crossing = (0..16).filter(|&i| answer[i] != answer[(i + 1) % 16]).count();
        assert!(crossing <= 6, "{answer:?}");
    }

    #[test]
    fn non_migratable_objects_attract_their_partners_to_their_core() {
        let mut database = load("random:n=12,degree=0").expect("tasks").remap(4);
        let edge = |a, b| Edge { from: End::Object(a), to: End::Object(b), messages: 5, bytes: 1 };
        for (object, i) in database.objects.iter_mut().zip(0..) {
            (object.pe, object.migratable) = (i % 4, i >= 4);
        }
        // Two migratable objects communicate with each non-migratable one.
        database.edges = (0..8).map(|i| edge(i / 2, 4 + i)).collect();
        let answer = assign_on("TMLB_TREEBASED", &database, "flat:4").expect("an assignment").pe_of;
        assert_eq!(answer, [0, 1, 2, 3, 0, 0, 1, 1, 2, 2, 3, 3]);
    }
}

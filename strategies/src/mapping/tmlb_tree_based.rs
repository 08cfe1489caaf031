//! `TMLB_TREEBASED`: places the groups of all PEs on the tree of the machine, then balances every node.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load
//! balancing in Charm++ with TreeMatch", Cluster 2013, section V.B and algorithm 3, for
//! communication-bound programs. First the chares of each PE are a group, and TreeMatch permutes the groups
//! on the PEs. Then every node by itself, in parallel: its chares are ordered by `TreeMatchConst` along a
//! fake tree of 2^a 3^b leaves, of which those too many are constraints spread evenly over the smallest
//! subtrees; the order is cut into a part for each core; and the cores take chares of their parts and a few
//! of others until they are balanced ([`super::treematch`]'s `share`). No chare changes its node in the second
//! step, so nodes with more load than others keep it.
//!
//! Choices where the paper leaves one:
//! - a node is the right part of a product, or what hangs below the root; where that is a single PE, the
//!   machine is one node. `level` says otherwise (`level=2` where switches are above the nodes);
//! - part i of a node belongs to its i-th core in tree order: parts are next to those they talk to;
//! - what is placed well does not migrate for nothing: the groups stay as they are, and a node keeps the
//!   chares it then has on the cores that have them, if no less would be exchanged between the nodes of the
//!   tree, summed over its levels, and (in the second step) the heaviest core be no lighter;
//! - affinity is the number of messages.
//!
//! Beyond the paper: PEs that are not available are constraints of the first step, and their groups go to
//! others; objects that stay take no leaf, and they and PEs draw what talks to them towards their core.
//!
//! Time is O(trials * (n + E)) for each of the log n levels of the fake trees, over the number of threads.

use rayon::prelude::*;

use super::take_count;
use super::treematch::share::{SURPLUS, consecutive, share};
use super::treematch::tree::{self, Levels, Machine};
use super::treematch::{Affinity, MAX_TRIES, RESTARTS, Surplus, place};
use super::treematch_const::{self, TRIALS};
use crate::balance::load::Work;
use crate::database::Object;
use crate::graph::Graph;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::weights;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `TMLB_TREEBASED` for the registry.
pub const NAMED: Named = Named {
    name: "TMLB_TREEBASED",
    aliases: &[],
    help: "Permutes what the PEs have over the machine's tree, then balances every node by itself, in \
           parallel (Jeannot et al. 2013). For communication-bound programs on clusters of multicore nodes.",
    params: &[
        Affinity::param("messages"),
        Param {
            key: "level",
            default: "auto",
            help: "where the nodes are, in levels below the root of the machine's tree; `auto`: where the parts \
                   of a product meet, else 1, or 0 (all is one node) if those are single PEs",
        },
        SURPLUS,
        RESTARTS,
        TRIALS,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let level = match &*params.take::<String>("level")? {
            "auto" => None,
            number => Some(number.parse().map_err(|_| {
                params.bad("level", number, "it is `auto` or a number of levels below the root, as in 1")
            })?),
        };
        Ok(Box::new(TmlbTreeBased {
            affinity: params.take("affinity")?,
            level,
            surplus: params.take("surplus")?,
            restarts: take_count(params, "restarts", MAX_TRIES)?,
            trials: take_count(params, "trials", MAX_TRIES)?,
        }))
    },
};

/// The strategy that permutes groups and balances nodes.
#[derive(Clone, Copy, Debug)]
pub struct TmlbTreeBased {
    /// What makes objects belong together.
    pub affinity: Affinity,
    /// The level of the nodes, in levels below the root; `None`: [`Hierarchy::node_level`].
    ///
    /// [`Hierarchy::node_level`]: crate::topology::Hierarchy::node_level
    pub level: Option<usize>,
    /// What a core takes of another's part when its own is used up.
    pub surplus: Surplus,
    /// How often TreeMatch builds its tree in the first step.
    pub restarts: usize,
    /// How many partitions are tried at each node of a fake tree.
    pub trials: usize,
}

/// The groups of the first step.
const AS_THEY_ARE: Grouping = Grouping { by: By::Keep, equal: false, imbalance: 0.0 };

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
                "TMLB_TREEBASED looks for nodes {level} levels below the root, and the tree of `{spec}` has only \
                 {deepest}; choose a level up to that, or `auto`"
            )));
        }
        let counted = self.affinity.of(database);
        let groups = Groups::of(&counted, &available, AS_THEY_ARE, seed)?;
        let levels = Levels::of(&machine.tree);
        let effort = (self.restarts, self.trials);
        let pes = permute(&machine, &levels, database, &groups, effort, seed);
        let nodes = nodes(&machine, level, database, &groups.placement(database, &pes));
        let inside =
            Inside::new(&machine, &levels, Work::new(database, available), &Graph::with_pes(&counted));
        let cores = nodes.par_iter().map(|node| inside.balance(node, self.surplus, self.trials, seed));
        let mut answer = Assignment::unchanged(database);
        for (node, cores) in nodes.iter().zip(cores.collect::<Vec<_>>()) {
            for (&chare, core) in node.chares.iter().zip(cores) {
                answer.pe_of[chare as usize] = node.cores[core as usize];
            }
        }
        Ok(answer)
    }
}

/// The PE of every group: the first step.
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
    // Where each group is now, if it is one as it stands.
    let mut present = vec![0; groups.count];
    for (object, group) in database.objects.iter().zip(&groups.group_of) {
        if let Some(group) = *group {
            present[group as usize] = object.pe;
        }
    }
    let stands = |(object, group): (&Object, &Option<u32>)| {
        group.is_none_or(|g| object.pe == present[g as usize] && database.pes[object.pe as usize].available)
    };
    if database.objects.iter().zip(&groups.group_of).all(stands) {
        let cut = |leaves: &[u32]| levels.cut(&groups.graph, &[leaves, &*anchors].concat());
        if cut(&machine.leaves_of(&present)) <= cut(&leaves) {
            return present;
        }
    }
    machine.pes_of(&leaves)
}

/// What is balanced by itself.
struct Node {
    /// Its PEs that take objects, in tree order.
    cores: Vec<u32>,
    /// The movable objects on them, ascending.
    chares: Vec<u32>,
    /// By chare: the core it is on after the first step, by position.
    core_of: Vec<u32>,
}

/// The nodes of a level of the machine when object `i` is on `pe_of[i]`.
fn nodes(machine: &Machine, level: usize, database: &Database, pe_of: &[u32]) -> Vec<Node> {
    let leaves = machine.tree.leaves();
    // The node of each PE, and which of its cores it is.
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

/// What the second step knows of all nodes.
struct Inside<'a> {
    machine: &'a Machine,
    levels: &'a Levels,
    work: Work<'a>,
    /// The loads of objects as whole numbers.
    weights: Vec<u32>,
    /// The vertices are the objects and, after them, the PEs with what stays there.
    graph: Graph,
}

impl<'a> Inside<'a> {
    /// `graph` is that of objects and PEs.
    fn new(machine: &'a Machine, levels: &'a Levels, work: Work<'a>, graph: &Graph) -> Self {
        let (objects, pes) = (&work.database().objects, work.database().pes.len());
        let vertex = |(o, i): (&Object, u32)| if o.migratable { i } else { objects.len() as u32 + o.pe };
        let pes_themselves = (objects.len()..objects.len() + pes).map(|vertex| vertex as u32);
        let vertices: Vec<u32> = objects.iter().zip(0..).map(vertex).chain(pes_themselves).collect();
        let graph = graph.quotient(&vertices, objects.len() + pes);
        let weights = weights(objects.iter().map(|object| object.load_seconds));
        Inside { machine, levels, work, weights, graph }
    }

    /// The core of each chare of a node, by position, when the node is balanced by itself.
    fn balance(&self, node: &Node, surplus: Surplus, trials: usize, seed: u64) -> Vec<u32> {
        let Node { cores, chares, core_of } = node;
        if cores.len() < 2 {
            return core_of.clone();
        }
        let (fake, is_free) = tree::fake(chares.len());
        // What stays on a core is on the leaf where the part of that core begins.
        let stays = |pe: u32| self.work.database().objects.len() as u32 + pe;
        let anchor = |(core, &pe)| (pe, (core * is_free.len() / cores.len()) as u32);
        let anchors = cores.iter().enumerate().map(anchor);
        let mut anchors: Vec<(u32, u32)> =
            anchors.filter(|&(pe, _)| self.graph.degree(stays(pe) as usize) > 0).collect();
        anchors.sort_unstable();
        let (staying, anchors): (Vec<u32>, Vec<u32>) = anchors.into_iter().unzip();
        let vertices = chares.iter().copied().chain(staying.iter().map(|&pe| stays(pe)));
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
            let pes: Vec<u32> = pes.chain(staying.iter().copied()).collect();
            self.levels.cut(&graph, &self.machine.leaves_of(&pes))
        };
        let is_no_better = self.heaviest_seconds(node, core_of) <= self.heaviest_seconds(node, &balanced)
            && cut(core_of) <= cut(&balanced);
        if is_no_better { core_of.clone() } else { balanced }
    }

    /// Seconds of the heaviest core of a node.
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
    use super::*;
    use crate::database::{Edge, End};
    use crate::graph::load;
    use crate::testing::{assign_on, communication};
    use crate::topology::parse;

    /// A task graph whose tasks are dealt to `pes` PEs in turn.
    fn dealt(graph: &str, pes: u32) -> Database {
        let mut database = load(graph).expect(graph).remap(pes);
        for (object, i) in database.objects.iter_mut().zip(0..) {
            object.pe = i % pes;
        }
        database
    }

    #[test]
    fn a_hundred_and_ten_chares_on_two_nodes_of_four_cores_keep_their_node_in_step_2() {
        let mut database = load("mesh:11x10").expect("a mesh").remap(8);
        for (object, i) in database.objects.iter_mut().zip(0..) {
            (object.pe, object.load_seconds) = (i % 8, 1.0 + f64::from(i % 7));
        }
        let machine = Machine::of(&*parse("tree:2:4").expect("a tree"), &database);
        let groups = Groups::of(&database, &[0, 1, 2, 3, 4, 5, 6, 7], AS_THEY_ARE, 0).expect("groups");
        let permuted = groups.placement(
            &database,
            &permute(&machine, &Levels::of(&machine.tree), &database, &groups, (16, 100), 0),
        );
        let answer = assign_on("TMLB_TREEBASED:trials=100", &database, "tree:2:4").expect("an answer").pe_of;
        assert!(permuted.iter().zip(&answer).all(|(before, after)| before / 4 == after / 4));
        // Dealt in turn, the cores have 14 chares or 13; each node is balanced in itself.
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
    fn what_is_dealt_out_comes_closer_together() {
        for chares in [64, 128, 256] {
            let graph = format!("kneighbor:{chares},7");
            let (database, topology) = (dealt(&graph, 64), parse("tree:8:2:4").expect("a tree"));
            let hops = |pe_of: &[u32]| communication(&database, &*topology, pe_of).hops_per_byte;
            let answer = assign_on("TMLB_TREEBASED", &database, "tree:8:2:4").expect("an answer").pe_of;
            let (before, after) = (hops(&database.placement()), hops(&answer));
            assert!(after <= before, "{graph}: {before} hops per byte became {after}");
            let counts = (0..64).map(|pe| answer.iter().filter(|&&p| p == pe).count());
            assert!(counts.clone().all(|count| count == chares / 64), "{:?}", counts.collect::<Vec<_>>());
        }
    }

    #[test]
    fn groups_on_scattered_pes_are_put_together() {
        // PE i of the program is at home on leaf 7 i mod 64; the ring is cut at every step.
        let mut database = load("ring:64").expect("a ring").remap(64);
        database.objects.iter_mut().zip(0..).for_each(|(object, i)| object.pe = 7 * i % 64);
        let topology = parse("tree:8:2:4").expect("a tree");
        let answer = assign_on("TMLB_TREEBASED", &database, "tree:8:2:4").expect("an answer").pe_of;
        let hops = communication(&database, &*topology, &answer).hops_per_byte;
        assert!(hops <= 3.0, "{hops} hops per byte");
    }

    #[test]
    fn a_program_that_is_placed_and_balanced_well_stays() {
        let database = load("ring:64").expect("a ring").remap(64);
        for spec in ["TMLB_TREEBASED", "TMLB_TREEBASED:level=0", "TMLB_TREEBASED:level=3"] {
            let answer = assign_on(spec, &database, "tree:8:2:4").expect("an answer");
            assert_eq!(answer.moves(&database).count(), 0, "{spec}");
        }
    }

    #[test]
    fn a_level_that_there_is_not_is_refused_with_those_there_are() {
        let error =
            assign_on("TMLB_TREEBASED:level=3", &dealt("ring:8", 8), "tree:2:4").expect_err("no level 3");
        assert!(error.to_string().contains("the tree of `tree:2:4/4:2` has only 2"), "{error}");
    }

    #[test]
    fn nodes_are_those_of_a_product_whatever_their_network_is() {
        for network in ["torus:3x3", "mesh:9", "fattree:3:3"] {
            let (machine, database) = (format!("{network}*tree:2:4/2:1"), dealt("kneighbor:300,7", 72));
            let answer = assign_on("TMLB_TREEBASED", &database, &machine).expect("an answer").pe_of;
            // What was on a PE went to a node as a group, and stayed there when that was balanced.
            let node = |object: usize| answer[object] / 8;
            assert!((72..300).all(|object| node(object) == node(object % 72)), "{machine}: {answer:?}");
            let moved = |level| assign_on(level, &database, &machine).expect("an answer").pe_of != answer;
            assert!(moved("TMLB_TREEBASED:level=1") && !moved("TMLB_TREEBASED:level=2"), "{machine}");
        }
    }

    #[test]
    fn a_machine_of_one_level_is_one_node() {
        let answer = assign_on("TMLB_TREEBASED", &dealt("ring:16", 4), "flat:4").expect("an answer").pe_of;
        let crossing = (0..16).filter(|&i| answer[i] != answer[(i + 1) % 16]).count();
        assert!(crossing <= 6, "{answer:?}");
    }

    #[test]
    fn objects_that_stay_draw_others_to_their_core() {
        let mut database = load("random:n=12,degree=0").expect("tasks").remap(4);
        let edge = |a, b| Edge { from: End::Object(a), to: End::Object(b), messages: 5, bytes: 1 };
        for (object, i) in database.objects.iter_mut().zip(0..) {
            (object.pe, object.migratable) = (i % 4, i >= 4);
        }
        // Two movable objects for each that stays.
        database.edges = (0..8).map(|i| edge(i / 2, 4 + i)).collect();
        let answer = assign_on("TMLB_TREEBASED", &database, "flat:4").expect("an answer").pe_of;
        assert_eq!(answer, [0, 1, 2, 3, 0, 0, 1, 1, 2, 2, 3, 3]);
    }
}

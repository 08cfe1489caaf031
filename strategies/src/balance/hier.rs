//! `HierLB`: balances the nodes of a machine, and then the PEs inside every node.
//!
//! After G. Zheng, A. Bhatele, E. Meneses, L. V. Kale, "Periodic hierarchical load balancing for large supercomputers", IJHPCA
//! 25(4), 2011, with two levels. A strategy that sees every object needs memory and time for all of them; here
//! no part sees more than one node, or a summary of all nodes:
//!
//! 1. *Aggregate.* Every node groups its objects into chunks: objects that communicate, of about the same load together. There are
//!    about `CHUNKS_PER_PE` chunks for each PE of the machine. A chunk is sent to another node as a whole.
//! 2. *Root.* The root sees one PE per node, as fast as all PEs of the node, and the chunks. Its strategy moves chunks between nodes.
//! 3. *Inside.* The strategy of the nodes balances every node by itself, from where its objects are. Those that arrive begin on the
//!    PEs that finish them first.
//!
//! Chunks bound the balance between nodes: the load of a node is about right to half a chunk, an eighth of what one
//! of its PEs has. The paper lets nodes choose single objects to give away when the root has told them how much; chunks keep objects
//! together that communicate, and let any strategy be the root's.

use equipoise_model::assignment::Note;
use equipoise_model::database::Object;
use equipoise_model::descriptor::Descriptor;
use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::topology::Allocation;
use equipoise_model::topology::MAX_PES;
use equipoise_model::{Assignment, Database, Topology};
use rayon::prelude::*;

use chunks::{Goal, aggregate, summary};
use inside::Inside;

use crate::cost::{Metrics, is_lighter};
use crate::descriptor::{Choice, Recipe};
use crate::strategy::check;
use crate::{Strategy, StrategyError};

mod chunks;
mod inside;

/// `HierLB` for the registry, which gives `make` the parser of specs, and has the defaults.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "HierLB",
    form: "",
    help: "Balances nodes with the strategy `root`, and then the PEs inside every node with the strategy `node`. For machines \
           with thousands of PEs: no part sees all objects.",
    params: &params("", ""),
    item: Recipe { needs_communication: true, make: |params| make(params, |_| Err(no_parser())) },
};

/// The parameters, with these defaults of the strategies inside nodes and between them.
pub(crate) const fn params(node: &'static str, root: &'static str) -> [Param; 3] {
    let pes = "PEs of a node; `auto`: as the topology has them, else the square root of their number";
    [
        Param { key: "node", default: node, help: "the strategy inside nodes, in brackets" },
        Param { key: "root", default: root, help: "the strategy between nodes, in brackets" },
        Param { key: "pes", default: "auto", help: pes },
    ]
}

/// The registry has the parser; without it, there are no strategies to name.
fn no_parser() -> ParamError {
    ParamError::Malformed {
        spec: NAMED.name.into(),
        what: "strategy",
        reason: "it needs the registry; use `registry::parse`".into(),
    }
}

/// Makes the strategy from its parameters; `parse` makes the strategies that they name.
pub(crate) fn make(
    params: &mut Params,
    parse: impl Fn(&str) -> Result<Choice, ParamError>,
) -> Result<Box<dyn Strategy>, ParamError> {
    let (node, root) = (params.take_bracketed("node")?, params.take_bracketed("root")?);
    let pes = params.take_count_or_auto("pes", MAX_PES)?;
    Ok(Box::new(HierLb { node: parse(&node)?, root: parse(&root)?, pes }))
}

/// The strategy that balances nodes, and then the PEs of each.
#[derive(Clone, Debug)]
pub struct HierLb {
    /// The strategy inside a node.
    pub node: Choice,
    /// The strategy between nodes.
    pub root: Choice,
    /// The number of consecutive PEs of a node; none: as the topology has them, else the square root of the number of PEs.
    pub pes: Option<usize>,
}

impl Strategy for HierLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        check(database, topology)?;
        let nodes = Nodes::of(topology, self.pes);
        if nodes.pes.len() == 1 {
            return answer_of(&self.node, database, topology, seed);
        }
        if nodes.pes.iter().all(|pes| pes.len() == 1) {
            return answer_of(&self.root, database, topology, seed);
        }
        let goal = Goal::of(database);
        let chunks = aggregate(database, &nodes, &goal);
        let summary = summary(database, &nodes, &chunks, &goal);
        let first: Vec<u32> = nodes.pes.iter().map(|pes| pes[0]).collect();
        let machine = Allocation::of(topology, first, "nodes".into()).map_err(StrategyError::Bug)?;
        let node_of_chunk = answer_of(&self.root, &summary, &machine, seed)?.pe_of;
        let node_of: Vec<u32> = chunks.of.iter().map(|&chunk| node_of_chunk[chunk as usize]).collect();
        let inside = Inside::of(database, topology, &nodes, &node_of);
        let all = (0..nodes.pes.len()).into_par_iter();
        let placed: Vec<_> = all.map(|node| inside.balance(node, &self.node, seed)).collect();
        let mut answer = Assignment::unchanged(database);
        for node in placed {
            // Of several errors, the one of the first node, on any number of threads.
            for (object, pe) in node? {
                answer.pe_of[object as usize] = pe;
            }
        }
        let between = database.objects.iter().zip(&node_of);
        let between = between.filter(|(object, node)| nodes.of[object.pe as usize] != **node).count();
        answer.notes = vec![
            Note::new("nodes", nodes.pes.len() as f64),
            Note::new("chunks", summary.objects.len() as f64),
            Note::new("objects that change their node", between as f64),
        ];
        Ok(if is_worse(database, topology, &answer) { Assignment::unchanged(database) } else { answer })
    }
}

/// The checked answer of a strategy.
fn answer_of(
    choice: &Choice,
    database: &Database,
    topology: &dyn Topology,
    seed: u64,
) -> Result<Assignment, StrategyError> {
    let answer = choice.strategy.assign(database, topology, seed)?;
    answer.check(database).map_err(|impossible| StrategyError::rejected(&choice.spec, impossible))?;
    Ok(answer)
}

/// Whether an answer has a higher largest load than the present placement, or moves objects for nothing: neither the largest load nor
/// hop-bytes fall. Never so if an object has to move.
fn is_worse(database: &Database, topology: &dyn Topology, answer: &Assignment) -> bool {
    let must_move = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
    if database.objects.iter().any(must_move) {
        return false;
    }
    let of = |placement: &[u32]| Metrics::of(database, topology, placement);
    let (before, after) = (of(&database.placement()), of(&answer.pe_of));
    let hop_bytes = |metrics: &Metrics| metrics.communication.map_or(0, |cost| cost.hop_bytes);
    let is_lighter_now = is_lighter(after.max_load_seconds, before.max_load_seconds);
    let is_heavier_now = is_lighter(before.max_load_seconds, after.max_load_seconds);
    is_heavier_now || !is_lighter_now && hop_bytes(&after) >= hop_bytes(&before)
}

/// The nodes of a machine.
struct Nodes {
    /// The PEs of each node, ascending; nodes are in the order of their first PEs.
    pes: Vec<Vec<u32>>,
    /// The node of each PE.
    of: Vec<u32>,
}

impl Nodes {
    /// Nodes of a given number of consecutive PEs; or the nodes of the topology; or blocks of PEs, as many as each has PEs.
    fn of(topology: &dyn Topology, pes: Option<usize>) -> Self {
        let all: Vec<u32> = (0..topology.pes() as u32).collect();
        let blocks = |pes: usize| all.chunks(pes).map(<[u32]>::to_vec).collect();
        let hierarchy = topology.hierarchy().filter(|hierarchy| hierarchy.node_level() > 0);
        let mut pes: Vec<Vec<u32>> = match (pes, hierarchy) {
            (Some(pes), _) => blocks(pes),
            (None, Some(hierarchy)) => {
                let leaves = hierarchy.leaves();
                hierarchy.nodes(hierarchy.node_level()).map(|node| leaves[node].to_vec()).collect()
            }
            (None, None) => blocks(all.len().isqrt()),
        };
        pes.iter_mut().for_each(|pes| pes.sort_unstable());
        pes.sort_unstable();
        let mut of = vec![0; all.len()];
        for (node, pes) in (0..).zip(&pes) {
            pes.iter().for_each(|&pe| of[pe as usize] = node);
        }
        Nodes { pes, of }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use equipoise_model::topology;

    use super::*;
    use crate::balance::greedy_refine::GreedyRefine;
    use crate::testing;

    fn choice(strategy: impl Strategy + 'static) -> Choice {
        Choice { spec: "InnerLB".into(), strategy: Arc::new(strategy), needs_communication: true }
    }

    fn refine() -> Choice {
        choice(GreedyRefine { imbalance: 0.03 })
    }

    fn answer(strategy: &HierLb, database: &Database, machine: &str) -> Assignment {
        let machine = topology::parse(machine).expect("a machine");
        let answer = strategy.assign(database, &*machine, 1).expect("an answer");
        assert_eq!(answer.check(database), Ok(()));
        answer
    }

    /// As many objects as given on each PE, of 1 s each.
    fn on_pes(numbers: &[usize]) -> Database {
        let objects: Vec<(f64, u32)> = (0..).zip(numbers).flat_map(|(pe, &n)| vec![(1.0, pe); n]).collect();
        testing::database(numbers.len(), &objects)
    }

    #[test]
    fn nodes_are_those_of_the_topology_or_blocks() {
        let pes = |machine: &str, pes| Nodes::of(&*topology::parse(machine).expect(machine), pes).pes;
        assert_eq!(pes("flat:2*flat:3", None), [vec![0, 1, 2], vec![3, 4, 5]]);
        assert_eq!(pes("torus:4x4", None)[1], [4, 5, 6, 7]);
        assert_eq!(pes("flat:10", None), [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7, 8], vec![9]]);
        assert_eq!(pes("flat:2*flat:3", Some(4)), [vec![0, 1, 2, 3], vec![4, 5]]);
        assert_eq!(pes("flat:1", None), [[0]]);
    }

    #[test]
    fn loads_are_balanced_between_nodes_and_inside() {
        // All objects on one PE of the first of four nodes.
        let mut numbers = [0; 16];
        numbers[1] = 128;
        let strategy = HierLb { node: refine(), root: refine(), pes: None };
        let database = on_pes(&numbers);
        let answer = answer(&strategy, &database, "flat:4*flat:4");
        let ratio = testing::max_per_average(&database, &answer.pe_of);
        assert!(ratio <= 1.0 + 1.0 / 8.0 + 1e-9, "{ratio}");
    }

    #[test]
    fn one_node_and_single_pes_are_left_to_one_strategy() {
        let database = on_pes(&[6, 0, 0]);
        let spread = testing::assign("GreedyRefineLB", &database).map(|answer| answer.pe_of);
        for pes in [3, 1] {
            let strategy = HierLb { node: refine(), root: refine(), pes: Some(pes) };
            assert_eq!(Ok(answer(&strategy, &database, "flat:3").pe_of), spread);
        }
    }

    #[test]
    fn objects_stay_that_are_pinned_and_leave_pes_that_are_not_available() {
        let mut database = on_pes(&[8, 8, 8, 8, 0, 0, 0, 0]);
        database.objects[0].migratable = false;
        // A whole node, and a PE.
        for pe in [2, 3, 5] {
            database.pes[pe].available = false;
        }
        let strategy = HierLb { node: refine(), root: refine(), pes: Some(2) };
        let answer = answer(&strategy, &database, "flat:8");
        assert_eq!(answer.pe_of[0], 0);
        assert!(answer.pe_of.iter().all(|pe| ![2, 3, 5].contains(pe)), "{:?}", answer.pe_of);
        let ratio = testing::max_per_average(&database, &answer.pe_of);
        assert!(ratio < 1.3, "{ratio}");
    }

    #[test]
    fn a_balanced_placement_stays() {
        let strategy = HierLb { node: refine(), root: refine(), pes: Some(2) };
        let database = on_pes(&[4; 8]);
        assert_eq!(answer(&strategy, &database, "flat:8").pe_of, database.placement());
    }

    /// Refuses everything.
    struct NoLb;

    impl Strategy for NoLb {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            Err(StrategyError::Request("it has no idea".into()))
        }
    }

    #[test]
    fn errors_of_the_inner_strategies_are_reported() {
        let database = on_pes(&[4, 0, 0, 0]);
        let machine = topology::flat(4);
        for (node, root) in [(choice(NoLb), refine()), (refine(), choice(NoLb))] {
            let strategy = HierLb { node, root, pes: Some(2) };
            let error = strategy.assign(&database, &*machine, 0).expect_err("it has no idea");
            assert_eq!(error.to_string(), "it has no idea");
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_million_objects_on_16384_pes_are_nearly_as_balanced_as_by_a_central_strategy() {
        let pes = 16_384;
        // Loads of up to 2 s that vary slowly from PE to PE, as around a hot spot.
        let load = |at: usize| 1.0 + (at as f64 / 160_000.0).sin() * (at % 7) as f64 / 7.0;
        let objects: Vec<(f64, u32)> = (0..1 << 20).map(|at| (load(at), (at / 64) as u32)).collect();
        let mut database = testing::database(pes, &objects);
        let edge = |at: u32| equipoise_model::database::Edge {
            from: equipoise_model::database::End::Object(at),
            to: equipoise_model::database::End::Object((at + 1) % (1 << 20)),
            messages: 1,
            bytes: 100,
        };
        database.edges = (0..1 << 20).map(edge).collect();
        let machine = topology::parse("torus:128x128").expect("a torus");
        let measured = |strategy: &dyn Strategy| {
            let begin = std::time::Instant::now();
            let answer = strategy.assign(&database, &*machine, 0).expect("an answer");
            let seconds = begin.elapsed().as_secs_f64();
            let metrics = Metrics::of(&database, &*machine, &answer.pe_of);
            println!(
                "{seconds:.2} s, max/avg {:.4}, {} moves, {:?}",
                metrics.imbalance + 1.0,
                metrics.migrations,
                answer.notes
            );
            metrics.imbalance
        };
        let before = Metrics::of(&database, &*machine, &database.placement()).imbalance;
        let central = measured(&GreedyRefine { imbalance: 0.03 });
        // The defaults: what both allow adds up.
        let [node, root] = [0.02, 0.01].map(|imbalance| choice(GreedyRefine { imbalance }));
        let hierarchical = measured(&HierLb { node, root, pes: None });
        println!("before {before}, central {central}, hierarchical {hierarchical}");
        assert!(hierarchical <= central + 0.005, "{hierarchical}, {central}");
    }
}

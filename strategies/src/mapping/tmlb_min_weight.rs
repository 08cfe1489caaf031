//! `TMLB_MIN_WEIGHT`: balances load, keeps what communicates together, and migrates little.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load
//! balancing in Charm++ with TreeMatch", Cluster 2013, section V.A and algorithm 2, for compute-bound
//! programs: TreeMatch orders the chares along a fake tree with a leaf for each, so that those that
//! communicate are close; the order is cut into as many consecutive parts as there are cores; the cores take
//! chares of their parts and a few of others until all are balanced ([`super::treematch`]'s `share`); and
//! the groups that this makes are given to the physical cores so that as few chares as possible migrate,
//! which is an assignment problem ([`crate::partition::matching`]).
//!
//! Choices where the paper leaves one:
//! - the fake tree has the prime factors of the number of chares as arities, ascending (100 is 2:2:5:5).
//!   A factor above 7 would make groups without structure; then the number of leaves is the next 2^a 3^b,
//!   the surplus is constraints, and `TreeMatchConst` orders the chares;
//! - parts differ by at most one chare where the cores do not divide their number;
//! - the paper speaks of a maximum-weight matching, then of a minimum-weight one. They are one: the cost of
//!   group i on core j is its size less those of it that are on j already, and is minimised;
//! - affinity is the number of messages.
//!
//! Beyond the paper: objects that stay are in the tree like others, so that what talks to them is in one
//! part, and a chare counts as being at home where such a friend of it is. Where PEs differ in speed or in what they have to
//! do besides, a part is given to a core before the cores take chares, by the same matching, and afterwards
//! a group may change to another core only if that makes no core heavier than the heaviest was.
//!
//! Except for large prime factors the time is O(restarts * E log E) and that of the matching: 0.7 ms for 64
//! PEs, about a second for 4096.

use super::treematch::share::{SURPLUS, consecutive, share};
use super::treematch::{Affinity, RESTARTS, Surplus, at_least_one, order, tree};
use super::treematch_const::{self, TRIALS};
use crate::balance::load::Work;
use crate::graph::Graph;
use crate::partition::matching::minimum_weight;
use crate::partition::weights;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `TMLB_MIN_WEIGHT` for the registry.
pub const NAMED: Named = Named {
    name: "TMLB_MIN_WEIGHT",
    aliases: &[],
    help: "Balances groups of communicating objects and places the groups where most of their objects are \
           (Jeannot et al. 2013). For compute-bound programs that also communicate; to a few thousand PEs.",
    params: &[
        Affinity::param("messages"),
        Param {
            key: "matching",
            default: "on",
            help: "whether groups go where most of their objects are (`on`) or to PEs in order (`off`)",
        },
        SURPLUS,
        RESTARTS,
        TRIALS,
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let matching = match &*params.take::<String>("matching")? {
            "on" => true,
            "off" => false,
            other => return Err(params.bad("matching", other, "it is `on` or `off`")),
        };
        Ok(Box::new(TmlbMinWeight {
            affinity: params.take("affinity")?,
            matching,
            surplus: params.take("surplus")?,
            restarts: at_least_one(params, "restarts")?,
            trials: at_least_one(params, "trials")?,
        }))
    },
};

/// The strategy that balances groups and minimises migrations.
#[derive(Clone, Copy, Debug)]
pub struct TmlbMinWeight {
    /// What makes objects belong together.
    pub affinity: Affinity,
    /// Whether groups are placed where most of their objects are; without it group `i` is on the `i`-th PE.
    pub matching: bool,
    /// What a core takes of another's part when its own is used up.
    pub surplus: Surplus,
    /// How often TreeMatch builds its tree.
    pub restarts: usize,
    /// How many partitions are tried at each node of the tree where `TreeMatchConst` takes over.
    pub trials: usize,
}

/// The most PEs whose migrations are kept in a table: 512 MB.
const MAX_PES: usize = 1 << 13;

impl Strategy for TmlbMinWeight {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        if self.matching && available.len() > MAX_PES {
            let pes = available.len();
            return Err(StrategyError(format!(
                "TMLB_MIN_WEIGHT compares every group with every PE, and {pes} PEs are more than the {MAX_PES} \
                 it can; use fewer PEs, TMLB_TREEBASED, or matching=off"
            )));
        }
        let graph = Graph::of(&self.affinity.of(database));
        let sequence = sequence(&graph, self.restarts, self.trials, seed);
        let work = Work::new(database, available);
        Ok(Assignment::new(self.balance(&work, &graph, &sequence)))
    }
}

impl TmlbMinWeight {
    /// The PE of every object when chares that are close in `sequence` are kept together.
    fn balance(&self, work: &Work, graph: &Graph, sequence: &[u32]) -> Vec<u32> {
        let (database, cores) = (work.database(), &*work.available);
        let weights = weights(database.objects.iter().map(|object| object.load_seconds));
        let mut parts = consecutive(sequence, cores.len());
        for part in &mut parts {
            part.retain(|&chare| database.objects[chare as usize].migratable);
        }
        let character = |&pe: &u32| (work.fixed_seconds[pe as usize], database.pes[pe as usize].speed);
        if self.matching && cores.iter().any(|pe| character(pe) != character(&cores[0])) {
            let core_of = minimum_weight(&migrations(work, graph, &parts), cores.len());
            let mut moved = vec![Vec::new(); cores.len()];
            for (part, core) in parts.into_iter().zip(core_of) {
                moved[core as usize] = part;
            }
            parts = moved;
        }
        let groups = share(work, &weights, cores, parts, self.surplus);
        let core_of = if self.matching {
            let mut costs = migrations(work, graph, &groups);
            forbid(&mut costs, work, &groups);
            minimum_weight(&costs, cores.len())
        } else {
            (0..cores.len() as u32).collect()
        };
        let mut pe_of = database.placement();
        for (group, core) in groups.iter().zip(core_of) {
            group.iter().for_each(|&chare| pe_of[chare as usize] = cores[core as usize]);
        }
        pe_of
    }
}

/// The largest arity of a fake tree whose leaves are all used.
const MAX_FACTOR: usize = 7;

/// The vertices in an order in which those that communicate are close.
fn sequence(graph: &Graph, restarts: usize, trials: usize, seed: u64) -> Vec<u32> {
    let chares = graph.vertices();
    let factors = tree::prime_factors(chares);
    let leaf_of = if factors.last().is_none_or(|&factor| factor <= MAX_FACTOR) {
        order(graph, &factors, restarts, seed)
    } else {
        let (tree, is_free) = tree::fake(chares);
        treematch_const::place(&tree, &is_free, graph, &[], trials, seed)
    };
    let mut sequence: Vec<u32> = (0..chares as u32).collect();
    sequence.sort_unstable_by_key(|&chare| leaf_of[chare as usize]);
    sequence
}

/// How many chares of each group would migrate to each core, less those that talk to an object that stays
/// there: a row per group, a column per core.
fn migrations(work: &Work, graph: &Graph, groups: &[Vec<u32>]) -> Vec<i64> {
    let (objects, cores) = (&work.database().objects, &work.available);
    let mut column_of_pe = vec![None; work.database().pes.len()];
    for (column, &pe) in cores.iter().enumerate() {
        column_of_pe[pe as usize] = Some(column);
    }
    let row = |group: &Vec<u32>| {
        let mut row = vec![group.len() as i64; cores.len()];
        for &chare in group {
            let friends = graph.neighbors(chare as usize).map(|(friend, _)| friend);
            let staying = friends.filter(|&friend| !objects[friend].migratable);
            for home in std::iter::once(chare as usize).chain(staying) {
                if let Some(column) = column_of_pe[objects[home].pe as usize] {
                    row[column] -= 1;
                }
            }
        }
        row
    };
    groups.iter().flat_map(row).collect()
}

/// Makes all that would take a core above the heaviest dearer than any answer without it; that group `i` is
/// on core `i` remains possible.
fn forbid(costs: &mut [i64], work: &Work, groups: &[Vec<u32>]) {
    let cores = &work.available;
    let load = |group: &Vec<u32>| group.iter().map(|&chare| work.load_seconds(chare)).sum();
    let loads: Vec<f64> = groups.iter().map(load).collect();
    let seconds = |group: usize, core: usize| {
        let pe = cores[core] as usize;
        work.fixed_seconds[pe] + loads[group] / work.database().pes[pe].speed
    };
    let limit = (0..cores.len()).map(|i| seconds(i, i)).fold(0.0, f64::max);
    let spread = |row: &[i64]| row.iter().max().zip(row.iter().min()).map_or(0, |(most, least)| most - least);
    let dear = 1 + costs.iter().max().unwrap_or(&0) + costs.chunks(cores.len()).map(spread).sum::<i64>();
    for (at, cost) in costs.iter_mut().enumerate() {
        if seconds(at / cores.len(), at % cores.len()) > limit {
            *cost = dear;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Metrics;
    use crate::database::{Edge, End};
    use crate::graph::load;
    use crate::testing::{assign_on, database};
    use crate::topology::parse;
    use proptest::prelude::{Just, Strategy as _, prop, prop_assert, prop_assert_eq, proptest};

    fn moves(spec: &str, database: &Database, machine: &str) -> usize {
        assign_on(spec, database, machine).expect("an answer").moves(database).count()
    }

    #[test]
    fn a_hundred_chares_on_four_cores_are_cut_into_subtrees() {
        // Rings of 25, which are the subtrees of the second level of 2:2:5:5.
        let edges = (0..100).map(|v: u32| (v, v - v % 25 + (v + 1) % 25, 1));
        let graph = Graph::new(100, edges);
        let sequence = sequence(&graph, 1, 1, 0);
        let parts = consecutive(&sequence, 4);
        let cut =
            parts.iter().map(|part| part.iter().map(|v| v / 25).collect::<std::collections::BTreeSet<_>>());
        assert!(cut.clone().filter(|rings| rings.len() == 1).count() >= 2, "{:?}", cut.collect::<Vec<_>>());
    }

    #[test]
    fn groups_stay_where_most_of_their_chares_are() {
        // Four cliques of three, in reverse order on the PEs, one chare strayed.
        let homes = [3, 3, 3, 2, 2, 2, 1, 1, 0, 0, 0, 0];
        let mut database = database(4, &homes.map(|pe| (1.0, pe)));
        for clique in 0..4u32 {
            for (a, b) in [(0, 1), (1, 2), (2, 0)] {
                let (from, to) = (End::Object(3 * clique + a), End::Object(3 * clique + b));
                database.edges.push(Edge { from, to, messages: 1, bytes: 1 });
            }
        }
        let answer = assign_on("TMLB_MIN_WEIGHT", &database, "tree:4").expect("an answer");
        assert_eq!(answer.pe_of, [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]);
        assert_eq!(moves("TMLB_MIN_WEIGHT:matching=off", &database, "tree:4"), 12);
    }

    #[test]
    fn figure_5_the_matching_saves_migrations_of_lean_md() {
        // 960 chares on 64 cores; greedy moves nearly all, refinement few.
        let blocks = load("leanmd:4x4x4,particles=100-250").expect("LeanMD").remap(64);
        let mut dealt = blocks.clone();
        dealt.objects.iter_mut().zip(0..).for_each(|(object, i)| object.pe = i % 64);
        for database in [blocks, dealt] {
            let count = |spec| moves(spec, &database, "tree:8:2:4");
            let (greedy, refine) = (count("GreedyLB"), count("RefineLB"));
            let (on, off) = (count("TMLB_MIN_WEIGHT"), count("TMLB_MIN_WEIGHT:matching=off"));
            assert!(greedy >= 900 && refine <= 144, "greedy {greedy}, refine {refine}");
            assert!((600..=960).contains(&off) && on < off && on < greedy, "matching on {on}, off {off}");
            let topology = parse("tree:8:2:4").expect("a tree");
            let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "tree:8:2:4").expect("an answer").pe_of;
            let imbalance = Metrics::of(&database, &*topology, &pe_of).imbalance;
            assert!(imbalance <= 0.05, "imbalance {imbalance}");
        }
    }

    #[test]
    fn prime_numbers_of_chares_are_no_matter() {
        for chares in [13, 61, 97] {
            let database = load(&format!("ring:{chares}")).expect("a ring").remap(4);
            let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "tree:2:2").expect("an answer").pe_of;
            let count = |pe| pe_of.iter().filter(|&&p| p == pe).count();
            assert!((0..4).all(|pe| count(pe).abs_diff(chares / 4) <= 1));
            let crossing = (0..chares).filter(|&i| pe_of[i] != pe_of[(i + 1) % chares]).count();
            assert!(crossing <= 14, "{chares} chares: {crossing} edges cross PEs");
        }
    }

    #[test]
    fn objects_that_stay_draw_those_that_talk_to_them() {
        // 0 and 1 stay on PE 1; 2 and 3 talk to them from PE 0; 4 to 7 are a ring on both.
        let mut database = database(2, &[1, 1, 0, 0, 0, 0, 1, 1].map(|pe| (1.0, pe)));
        database.objects[..2].iter_mut().for_each(|object| object.migratable = false);
        let edge = |(a, b)| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes: 100 };
        let pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (4, 5), (5, 6), (6, 7), (7, 4)];
        database.edges = pairs.map(edge).to_vec();
        let answer = assign_on("TMLB_MIN_WEIGHT", &database, "tree:2").expect("an answer");
        assert_eq!(answer.pe_of, [1, 1, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn pes_that_differ_get_what_they_can_do() {
        let mut database = load("ring:60").expect("a ring").remap(4);
        database.pes[0].speed = 3.0;
        database.pes[1].background_seconds = 10.0;
        database.pes[2].available = false;
        let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "flat:4").expect("an answer").pe_of;
        let loads = database.pe_loads(&pe_of);
        assert!([0, 1, 3].iter().all(|&pe| (13.0..=15.0).contains(&loads[pe])), "{loads:?}");
    }

    fn chares() -> impl proptest::strategy::Strategy<Value = Database> {
        (1..9usize, 1..40usize).prop_flat_map(|(pes, chares)| {
            let end = 0..chares as u32;
            let edges = prop::collection::vec((end.clone(), end, 0..5u64), 0..80);
            let objects = prop::collection::vec((0..5u8, 0..pes as u32), chares);
            (Just(pes), objects, edges).prop_map(|(pes, objects, edges)| {
                let objects: Vec<(f64, u32)> =
                    objects.into_iter().map(|(l, pe)| (f64::from(l), pe)).collect();
                let edge =
                    |(a, b, messages)| Edge { from: End::Object(a), to: End::Object(b), messages, bytes: 1 };
                Database { edges: edges.into_iter().map(edge).collect(), ..database(pes, &objects) }
            })
        })
    }

    proptest! {
        #[test]
        fn the_matching_never_increases_migrations_nor_the_heaviest_load(database in chares()) {
            let machine = format!("flat:{}", database.pes.len());
            let [on, off] = ["on", "off"].map(|matching| {
                let spec = format!("TMLB_MIN_WEIGHT:trials=10,matching={matching}");
                assign_on(&spec, &database, &machine).expect("an answer")
            });
            prop_assert!(on.moves(&database).count() <= off.moves(&database).count());
            let heaviest = |answer: &Assignment| {
                database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max)
            };
            prop_assert_eq!(heaviest(&on), heaviest(&off));
        }
    }
}

//! `TMLB_MIN_WEIGHT`: balances load, keeps communicating chares together, and migrates few of them.
//!
//! E. Jeannot, E. Meneses, G. Mercier, F. Tessier, G. Zheng, "Communication and topology-aware load
//! balancing in Charm++ with TreeMatch", Cluster 2013, section V.A and algorithm 2, for compute-bound programs.
//! TreeMatch orders the chares along a fake tree with one leaf per chare, so that communicating chares are close. The
//! order is cut into one consecutive part per core. The cores take chares of their own parts, and a few of other parts,
//! until all are balanced ([`super::treematch`]'s `share`). The resulting groups are assigned to the physical cores
//! with the fewest migrations, which is an assignment problem (`partition/matching.rs`).
//!
//! Choices that the paper leaves open:
//! - The arities of the fake tree are the prime factors of the number of chares, ascending (100 is 2:2:5:5). A factor
//!   above 7 would make groups without structure. The number of leaves is then the next 2^a 3^b; TreeMatch pads with
//!   chares that exchange nothing.
//! - Where the number of cores does not divide the number of chares, parts differ by at most one chare.
//! - The paper names both a maximum-weight and a minimum-weight matching, which are equivalent. Here the cost of group
//!   i on core j is the number of its chares that are not on j yet, and the cost is minimised.
//! - Affinity is the number of messages.
//!
//! Beyond the paper: the tree also has leaves for non-migratable objects, so that chares that communicate with such an
//! object are in one part. The PE of such a partner, or a PE that a chare communicates with, counts as a home of the
//! chare. A group may change its core only if no core gets heavier than the heaviest core was before. Where PEs differ
//! in speed or background load, this forbids many changes, so there the same matching also assigns the parts to cores
//! before the cores take chares. The result with fewer migrations is taken, unless its heaviest core is heavier. So the
//! matching never causes more migrations or a worse balance.
//!
//! The time is O(restarts * E log E) plus the matching: 0.7 ms for 64 PEs, about a second for 4096.

use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology, memory};

use super::on_tree::{Affinity, MAX_TRIES, tree};
use super::treematch::share::{SURPLUS, consecutive, share};
use super::treematch::{RESTARTS, Surplus, order};
use crate::balance::load::Work;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::partition::matching::minimum_weight;
use crate::partition::weights;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `TMLB_MIN_WEIGHT` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "TMLB_MIN_WEIGHT",
    form: "",
    help: "Balances groups of communicating objects and places the groups where most of their objects are \
           (Jeannot et al. 2013). For compute-bound programs that also communicate, on up to a few thousand PEs.",
    params: &[
        Affinity::param("messages"),
        Param {
            key: "matching",
            default: "on",
            help: "`on`: groups go to PEs with the fewest migrations; `off`: group i goes to the i-th PE",
        },
        SURPLUS,
        RESTARTS,
    ],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| {
            Ok(Box::new(OnPart(TmlbMinWeight {
                affinity: params.take("affinity")?,
                matching: params.take_switch("matching")?,
                surplus: params.take("surplus")?,
                restarts: params.take_count("restarts", MAX_TRIES)?,
            })))
        },
    },
};

/// The strategy `TMLB_MIN_WEIGHT`.
#[derive(Clone, Copy, Debug)]
pub struct TmlbMinWeight {
    /// The measure of communication between objects.
    pub affinity: Affinity,
    /// Whether groups are placed with the fewest migrations; if not, group `i` is on the `i`-th PE.
    pub matching: bool,
    /// The chare that a core takes from another part when its own part is used up.
    pub surplus: Surplus,
    /// The number of times TreeMatch builds its tree.
    pub restarts: usize,
}

/// The maximum number of PEs: with this number, the table of migrations takes 512 MB, and the matching another 512 MB.
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
            return Err(StrategyError::Request(format!(
                "TMLB_MIN_WEIGHT matches groups to at most {MAX_PES} PEs, and there are {pes}; use fewer PEs \
                 or matching=off"
            )));
        }
        if self.matching {
            // The costs, and their copies for the solver.
            let bytes = 24 * (available.len() as u64).pow(2);
            let what = format!("the matching of groups to {} PEs", available.len());
            memory::check(bytes, &what, "use fewer PEs or matching=off").map_err(StrategyError::Request)?;
        }
        let counted = self.affinity.of(database);
        let sequence = sequence(&Graph::of(&counted), self.restarts, seed);
        let work = Work::new(database, available);
        Ok(Assignment::new(self.balance(&work, &Graph::with_pes(&counted), &sequence)))
    }
}

impl TmlbMinWeight {
    /// The PE of every object, with chares that are close in `sequence` kept together. The vertices of `graph` are
    /// the objects and the PEs.
    fn balance(&self, work: &Work, graph: &Graph, sequence: &[u32]) -> Vec<u32> {
        let (database, cores) = (work.database(), &*work.available);
        let weights = weights(database.objects.iter().map(|object| object.load_seconds));
        let mut parts = consecutive(sequence, cores.len());
        for part in &mut parts {
            part.retain(|&chare| database.objects[chare as usize].migratable);
        }
        let share = |parts| share(work, &weights, cores, parts, self.surplus);
        let mut groups = share(parts.clone());
        if self.matching {
            let limit_seconds = heaviest_seconds(work, &groups);
            let (migrations, matched) = match_groups(work, graph, groups, limit_seconds);
            groups = matched;
            if work.pes_differ() {
                let (_, parts) = match_groups(work, graph, parts, f64::INFINITY);
                let others = share(parts);
                let others_seconds = heaviest_seconds(work, &others);
                if others_seconds <= limit_seconds {
                    let (fewer, others) = match_groups(work, graph, others, others_seconds);
                    groups = if fewer < migrations { others } else { groups };
                }
            }
        }
        let mut pe_of = database.placement();
        for (group, &pe) in groups.iter().zip(cores) {
            group.iter().for_each(|&chare| pe_of[chare as usize] = pe);
        }
        pe_of
    }
}

/// The largest arity of a fake tree without unused leaves.
const MAX_FACTOR: usize = 7;

/// The vertices in an order that keeps communicating vertices close.
fn sequence(graph: &Graph, restarts: usize, seed: u64) -> Vec<u32> {
    let chares = graph.vertices();
    let mut factors = tree::prime_factors(chares);
    if factors.last().is_some_and(|&factor| factor > MAX_FACTOR) {
        factors = tree::prime_factors(tree::three_smooth(chares));
    }
    let leaf_of = order(graph, &factors, restarts, seed);
    let mut sequence: Vec<u32> = (0..chares as u32).collect();
    sequence.sort_unstable_by_key(|&chare| leaf_of[chare as usize]);
    sequence
}

/// A row per group, a column per core: the number of chares of the group that would migrate to the core, less 1 for
/// each partner of these chares that is this PE or a non-migratable object on this PE.
fn migrations(work: &Work, graph: &Graph, groups: &[Vec<u32>]) -> Vec<i64> {
    let (objects, cores) = (&work.database().objects, &work.available);
    let mut column_of_pe = vec![None; work.database().pes.len()];
    for (column, &pe) in cores.iter().enumerate() {
        column_of_pe[pe as usize] = Some(column);
    }
    let row = |group: &Vec<u32>| {
        let mut row = vec![group.len() as i64; cores.len()];
        for &chare in group {
            let anchors =
                graph.neighbors(chare as usize).filter_map(|(partner, _)| match objects.get(partner) {
                    Some(object) => (!object.migratable).then_some(object.pe as usize),
                    None => Some(partner - objects.len()),
                });
            for home in std::iter::once(objects[chare as usize].pe as usize).chain(anchors) {
                if let Some(column) = column_of_pe[home] {
                    row[column] -= 1;
                }
            }
        }
        row
    };
    groups.iter().flat_map(row).collect()
}

/// The load of a core in seconds, with a group of `load_seconds`.
fn seconds(work: &Work, load_seconds: f64, core: usize) -> f64 {
    let pe = work.available[core];
    work.fixed_seconds[pe as usize] + load_seconds / work.speed(pe)
}

/// The load of each group in seconds at speed 1.
fn loads_seconds(work: &Work, groups: &[Vec<u32>]) -> Vec<f64> {
    groups.iter().map(|group| group.iter().map(|&chare| work.load_seconds(chare)).sum()).collect()
}

/// The load of the heaviest core in seconds, with group `i` on core `i`.
fn heaviest_seconds(work: &Work, groups: &[Vec<u32>]) -> f64 {
    let on_cores = loads_seconds(work, groups).into_iter().zip(0..);
    on_cores.map(|(load_seconds, core)| seconds(work, load_seconds, core)).fold(0.0, f64::max)
}

/// The least cost, and the groups in the order of their new cores. No core gets heavier than `limit_seconds`. With
/// group `i` on core `i`, no core may be heavier than that.
fn match_groups(
    work: &Work,
    graph: &Graph,
    groups: Vec<Vec<u32>>,
    limit_seconds: f64,
) -> (i64, Vec<Vec<u32>>) {
    let cores = groups.len();
    let mut costs = migrations(work, graph, &groups);
    // One forbidden entry costs more than any assignment without forbidden entries.
    let spread = |row: &[i64]| row.iter().max().zip(row.iter().min()).map_or(0, |(most, least)| most - least);
    let forbidden = 1 + costs.iter().max().unwrap_or(&0) + costs.chunks(cores).map(spread).sum::<i64>();
    for (load_seconds, row) in loads_seconds(work, &groups).into_iter().zip(costs.chunks_mut(cores)) {
        for (core, cost) in row.iter_mut().enumerate() {
            if seconds(work, load_seconds, core) > limit_seconds {
                *cost = forbidden;
            }
        }
    }
    let core_of = minimum_weight(&costs, cores);
    let mut matched = vec![Vec::new(); cores];
    let mut cost = 0;
    for ((group, core), row) in groups.into_iter().zip(core_of).zip(costs.chunks(cores)) {
        cost += row[core as usize];
        matched[core as usize] = group;
    }
    (cost, matched)
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::load;
    use equipoise_model::topology::parse;
    use proptest::prelude::{Strategy as _, prop, prop_assert, proptest};

    use super::*;
    use crate::cost::Metrics;
    use crate::testing::{assign_on, database};

    fn moves(spec: &str, database: &Database, machine: &str) -> usize {
        assign_on(spec, database, machine).expect("an assignment").moves(database).count()
    }

    #[test]
    fn a_hundred_chares_on_four_cores_are_cut_into_subtrees() {
        // Four rings of 25 chares, one for each subtree at the second level of 2:2:5:5.
        let edges = (0..100).map(|v: u32| (v, v - v % 25 + (v + 1) % 25, 1));
        let graph = Graph::new(100, edges);
        let sequence = sequence(&graph, 1, 0);
        let parts = consecutive(&sequence, 4);
        let cut =
            parts.iter().map(|part| part.iter().map(|v| v / 25).collect::<std::collections::BTreeSet<_>>());
        assert!(cut.clone().filter(|rings| rings.len() == 1).count() >= 2, "{:?}", cut.collect::<Vec<_>>());
    }

    #[test]
    fn groups_stay_where_most_of_their_chares_are() {
        // Four cliques of three chares, in reverse order on the PEs; one chare is on another PE than its clique.
        let homes = [3, 3, 3, 2, 2, 2, 1, 1, 0, 0, 0, 0];
        let mut database = database(4, &homes.map(|pe| (1.0, pe)));
        for clique in 0..4u32 {
            for (a, b) in [(0, 1), (1, 2), (2, 0)] {
                let (from, to) = (End::Object(3 * clique + a), End::Object(3 * clique + b));
                database.edges.push(Edge { from, to, messages: 1, bytes: 1 });
            }
        }
        let answer = assign_on("TMLB_MIN_WEIGHT", &database, "tree:4").expect("an assignment");
        assert_eq!(answer.pe_of, [3, 3, 3, 2, 2, 2, 1, 1, 1, 0, 0, 0]);
        assert_eq!(moves("TMLB_MIN_WEIGHT:matching=off", &database, "tree:4"), 12);
    }

    #[test]
    fn figure_5_the_matching_saves_migrations_of_lean_md() {
        // 960 chares on 64 cores: GreedyLB moves nearly all, RefineLB few.
        let blocks = load("leanmd:4x4x4,particles=100-250").expect("LeanMD").remap(64);
        let mut round_robin = blocks.clone();
        round_robin.objects.iter_mut().zip(0..).for_each(|(object, i)| object.pe = i % 64);
        for database in [blocks, round_robin] {
            let count = |spec| moves(spec, &database, "tree:8:2:4");
            let (greedy, refine) = (count("GreedyLB"), count("RefineLB"));
            let (on, off) = (count("TMLB_MIN_WEIGHT"), count("TMLB_MIN_WEIGHT:matching=off"));
            assert!(greedy >= 900 && refine <= 144, "greedy {greedy}, refine {refine}");
            assert!((600..=960).contains(&off) && on < off && on < greedy, "matching on {on}, off {off}");
            let topology = parse("tree:8:2:4").expect("a tree");
            let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "tree:8:2:4").expect("an assignment").pe_of;
            let imbalance = Metrics::of(&database, &*topology, &pe_of).imbalance;
            assert!(imbalance <= 0.05, "imbalance {imbalance}");
        }
    }

    #[test]
    fn a_prime_number_of_chares_is_balanced_and_cut_little() {
        for chares in [13, 61, 97] {
            let database = load(&format!("ring:{chares}")).expect("a ring").remap(4);
            let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "tree:2:2").expect("an assignment").pe_of;
            let count = |pe| pe_of.iter().filter(|&&p| p == pe).count();
            assert!((0..4).all(|pe| count(pe).abs_diff(chares / 4) <= 1));
            let crossing = (0..chares).filter(|&i| pe_of[i] != pe_of[(i + 1) % chares]).count();
            assert!(crossing <= 14, "{chares} chares: {crossing} edges cross PEs");
        }
    }

    #[test]
    fn non_migratable_objects_attract_their_partners() {
        // Objects 0 and 1 are fixed on PE 1; 2 and 3 on PE 0 communicate with them; 4 to 7 are a ring on both PEs.
        let mut database = database(2, &[1, 1, 0, 0, 0, 0, 1, 1].map(|pe| (1.0, pe)));
        database.objects[..2].iter_mut().for_each(|object| object.migratable = false);
        let edge = |(a, b)| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes: 100 };
        let pairs = [(0, 2), (0, 3), (1, 2), (1, 3), (4, 5), (5, 6), (6, 7), (7, 4)];
        database.edges = pairs.map(edge).to_vec();
        let answer = assign_on("TMLB_MIN_WEIGHT", &database, "tree:2").expect("an assignment");
        assert_eq!(answer.pe_of, [1, 1, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn load_follows_speed_and_background_of_the_pes() {
        let mut database = load("ring:60").expect("a ring").remap(4);
        database.pes[0].speed = 3.0;
        database.pes[1].background_seconds = 10.0;
        database.pes[2].available = false;
        let pe_of = assign_on("TMLB_MIN_WEIGHT", &database, "flat:4").expect("an assignment").pe_of;
        let loads = database.pe_loads(&pe_of);
        assert!([0, 1, 3].iter().all(|&pe| (13.0..=15.0).contains(&loads[pe])), "{loads:?}");
    }

    fn chares() -> impl proptest::strategy::Strategy<Value = Database> {
        (1..9usize, 1..40usize).prop_flat_map(|(pes, chares)| {
            let end = 0..chares as u32;
            let edges = prop::collection::vec((end.clone(), end, 0..5u64), 0..80);
            let objects = prop::collection::vec((0..5u8, 0..pes as u32), chares);
            let kinds = prop::collection::vec(
                prop::sample::select(vec![(1.0, 0.0), (1.0, 0.0), (1.0, 3.0), (2.0, 0.0)]),
                pes,
            );
            (kinds, objects, edges).prop_map(|(kinds, objects, edges)| {
                let objects: Vec<(f64, u32)> =
                    objects.into_iter().map(|(l, pe)| (f64::from(l), pe)).collect();
                let edge =
                    |(a, b, messages)| Edge { from: End::Object(a), to: End::Object(b), messages, bytes: 1 };
                let mut database = database(kinds.len(), &objects);
                for (pe, (speed, background_seconds)) in database.pes.iter_mut().zip(kinds) {
                    (pe.speed, pe.background_seconds) = (speed, background_seconds);
                }
                database.edges = edges.into_iter().map(edge).collect();
                database
            })
        })
    }

    proptest! {
        #[test]
        fn the_matching_never_increases_migrations_nor_the_heaviest_load(database in chares()) {
            let machine = format!("flat:{}", database.pes.len());
            let [on, off] = ["on", "off"].map(|matching| {
                let spec = format!("TMLB_MIN_WEIGHT:matching={matching}");
                assign_on(&spec, &database, &machine).expect("an assignment")
            });
            prop_assert!(on.moves(&database).count() <= off.moves(&database).count());
            let heaviest = |answer: &Assignment| {
                database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max)
            };
            prop_assert!(heaviest(&on) <= heaviest(&off) * (1.0 + 1e-12), "{} and {}", heaviest(&on), heaviest(&off));
        }
    }
}

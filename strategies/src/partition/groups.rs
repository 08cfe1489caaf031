//! The groups of movable objects that a mapping strategy places as units, one per PE.
//!
//! The first phase of the mapping papers: there are at most as many groups as available PEs, and the second phase maps
//! the graph of the groups. PEs that have fixed objects or are ends of edges are anchors of this graph, one vertex per
//! PE.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

use equipoise_model::database::Database;
use equipoise_model::graph::Graph;
use equipoise_model::params::{Param, ParamError, Params};

use super::correct::exact_sizes;
use super::{greedy, metis, renumber, weights};
use crate::strategy::StrategyError;

/// How objects are grouped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grouping {
    /// How the groups are chosen.
    pub by: By,
    /// Whether the numbers of objects of the groups differ by at most 1, whatever their loads.
    pub equal: bool,
    /// How far above the average the load of a METIS group or of a PE may be: max/avg - 1.
    pub imbalance: f64,
}

/// How the groups are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By communication: few bytes between groups, balanced.
    Metis(metis::Method),
    /// By load alone: heaviest object to the lightest group.
    Greedy,
    /// By present PE: the objects of a PE form a group.
    Keep,
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "metis" => Ok(By::Metis(metis::Method::Recursive)),
            "kway" => Ok(By::Metis(metis::Method::Kway)),
            "greedy" => Ok(By::Greedy),
            "keep" => Ok(By::Keep),
            _ => Err("expected `metis`, `kway`, `greedy` or `keep`".into()),
        }
    }
}

/// The key `groups`.
pub const GROUPS: Param = Param {
    key: "groups",
    default: "metis",
    help: "how objects are grouped: `metis` (few bytes between groups, balanced; recursive bisection), `kway` (the \
           same by k-way partitioning), `greedy` (balanced loads only), `keep` (the objects of a PE stay together)",
};

/// The key `sizes`.
pub const SIZES: Param = Param {
    key: "sizes",
    default: "any",
    help: "`any`, or `equal`: the numbers of objects of the groups differ by at most 1, whatever their loads",
};

/// The key `imbalance` of grouping.
pub const IMBALANCE: Param = Param {
    key: "imbalance",
    default: "0.05",
    help: "allowed max/avg - 1 of METIS groups, and of PEs: a PE above it because of speed, background or fixed \
           objects gives objects away, except with groups=keep or sizes=equal",
};

impl Grouping {
    /// The values of [`GROUPS`], [`SIZES`] and [`IMBALANCE`].
    ///
    /// # Errors
    /// When a value is invalid.
    pub fn take(params: &mut Params) -> Result<Grouping, ParamError> {
        let (by, sizes) = (params.take("groups")?, params.take::<String>("sizes")?);
        let equal = match sizes.as_str() {
            "any" => false,
            "equal" if by == By::Keep => {
                return Err(params.bad(
                    "sizes",
                    "equal",
                    "groups=keep preserves the sizes of the groups; use sizes=any",
                ));
            }
            "equal" => true,
            _ => return Err(params.bad("sizes", &sizes, "expected `any` or `equal`")),
        };
        Ok(Grouping { by, equal, imbalance: params.take_imbalance()? })
    }
}

/// Groups of objects and their communication graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The group of each object of the database; `None` for objects that are not migratable.
    pub group_of: Vec<Option<u32>>,
    /// Number of groups; none is empty.
    pub count: usize,
    /// The PE of each anchor, ascending: PEs with fixed objects or with messages of their own.
    pub anchors: Vec<u32>,
    /// Vertices `0..count` are the groups, the following vertices are the anchors.
    pub graph: Graph,
}

impl Groups {
    /// Groups the objects of a checked database for the PEs `available`.
    ///
    /// With [`By::Keep`], groups are numbered by their PE. Otherwise groups are numbered by their lowest object; with at
    /// most as many movable objects as available PEs, each object is a group. With [`By::Metis`], the load of a group
    /// is at most (1 + `imbalance`) times the average where the objects allow.
    ///
    /// # Errors
    /// When METIS fails.
    pub fn of(
        database: &Database,
        available: &[u32],
        grouping: Grouping,
        seed: u64,
    ) -> Result<Groups, StrategyError> {
        let Grouping { by, equal, imbalance } = grouping;
        let graph = Graph::with_pes(database);
        let movable: Vec<u32> =
            (0..database.objects.len() as u32).filter(|&o| database.objects[o as usize].migratable).collect();
        let weights = weights(movable.iter().map(|&o| database.objects[o as usize].load_seconds));
        let stay = database.objects.iter().filter(|object| !object.migratable);
        let pes = 0..database.pes.len() as u32;
        let with_messages = pes.filter(|&pe| graph.degree(database.objects.len() + pe as usize) > 0);
        let mut anchors: Vec<u32> = stay.map(|object| object.pe).chain(with_messages).collect();
        anchors.sort_unstable();
        anchors.dedup();
        let mut part_of = match by {
            By::Keep => keep(database, &movable, available, &weights),
            _ if movable.len() <= available.len() => (0..movable.len() as u32).collect(),
            By::Greedy => greedy::partition(&weights, available.len()),
            By::Metis(method) => {
                // Anchors have weight 0, but keep their partners together.
                let single: Vec<Option<u32>> = positions(database, &movable);
                let inner = with_anchors(&graph, database, &single, movable.len(), &anchors);
                let mut weights = weights;
                weights.resize(inner.vertices(), 0);
                let mut part_of =
                    metis::partition(&inner, &weights, available.len(), imbalance, method, seed)?;
                part_of.truncate(movable.len());
                part_of
            }
        };
        if equal && movable.len() > available.len() {
            let (objects, parts) = (movable.len(), available.len());
            let sizes: Vec<usize> =
                (0..parts).map(|part| objects / parts + usize::from(part < objects % parts)).collect();
            exact_sizes(&graph.induced(&movable), &sizes, &mut part_of);
        }
        let count = match by {
            By::Keep => part_of.iter().max().map_or(0, |&part| part as usize + 1),
            _ => renumber(&mut part_of),
        };
        let group_of: Vec<Option<u32>> = positions(database, &movable)
            .into_iter()
            .map(|position| position.map(|position| part_of[position as usize]))
            .collect();
        let graph = with_anchors(&graph, database, &group_of, count, &anchors);
        Ok(Groups { group_of, count, anchors, graph })
    }

    /// The load of each group, in seconds at speed 1.
    pub fn loads_seconds(&self, database: &Database) -> Vec<f64> {
        let mut loads_seconds = vec![0.0; self.count];
        for (group, object) in self.group_of.iter().zip(&database.objects) {
            group.iter().for_each(|&group| loads_seconds[group as usize] += object.load_seconds);
        }
        loads_seconds
    }

    /// The PE of every object if group `i` is on `pe_of_group[i]`.
    pub fn placement(&self, database: &Database, pe_of_group: &[u32]) -> Vec<u32> {
        let pe_of = |(group, pe): (&Option<u32>, u32)| group.map_or(pe, |group| pe_of_group[group as usize]);
        self.group_of.iter().zip(database.objects.iter().map(|object| object.pe)).map(pe_of).collect()
    }
}

/// The graph of `count` groups and, after them, the anchors. Objects without a group belong to the anchor of their PE.
/// `graph` is the graph of objects and PEs.
fn with_anchors(
    graph: &Graph,
    database: &Database,
    group_of: &[Option<u32>],
    count: usize,
    anchors: &[u32],
) -> Graph {
    let anchor_of = |pe: u32| (count + anchors.partition_point(|&anchor| anchor < pe)) as u32;
    let vertex = |(group, pe): (&Option<u32>, u32)| group.unwrap_or_else(|| anchor_of(pe));
    let pes = database.objects.iter().map(|object| object.pe);
    let objects = group_of.iter().zip(pes).map(vertex);
    // PEs without an anchor have no edges, so their vertex does not matter.
    let vertex_of: Vec<u32> = objects.chain((0..database.pes.len() as u32).map(anchor_of)).collect();
    graph.quotient(&vertex_of, count + anchors.len())
}

/// The position of each object in `movable`; `None` if the object is not movable.
fn positions(database: &Database, movable: &[u32]) -> Vec<Option<u32>> {
    let mut positions = vec![None; database.objects.len()];
    for (&object, position) in movable.iter().zip(0..) {
        positions[object as usize] = Some(position);
    }
    positions
}

/// Groups the objects by their present PE, numbered by PE.
///
/// The objects of an unavailable PE form a group as long as an available PE is left for the group. Otherwise each of
/// these objects joins the lightest group, heaviest object first.
fn keep(database: &Database, movable: &[u32], available: &[u32], weights: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let home = |object: u32| database.objects[object as usize].pe as usize;
    let mut is_used = vec![false; database.pes.len()];
    movable.iter().for_each(|&object| is_used[home(object)] = true);
    let used = |available: bool| {
        let is_used = &is_used;
        (0..database.pes.len()).filter(move |&pe| is_used[pe] && database.pes[pe].available == available)
    };
    let free_pes = available.len() - used(true).count();
    let mut kept: Vec<usize> = used(true).chain(used(false).take(free_pes)).collect();
    kept.sort_unstable();
    let mut group_of_pe = vec![NONE; database.pes.len()];
    for (&pe, group) in kept.iter().zip(0..) {
        group_of_pe[pe] = group;
    }
    let mut part_of: Vec<u32> = movable.iter().map(|&object| group_of_pe[home(object)]).collect();
    let mut group_weights = vec![0u64; kept.len()];
    let mut displaced = Vec::new();
    for (at, &group) in part_of.iter().enumerate() {
        match group_weights.get_mut(group as usize) {
            Some(weight) => *weight += u64::from(weights[at]),
            None => displaced.push(at),
        }
    }
    displaced.sort_by_key(|&at| Reverse(weights[at]));
    let mut lightest: BinaryHeap<Reverse<(u64, u32)>> =
        group_weights.into_iter().zip(0..).map(Reverse).collect();
    for at in displaced {
        let Some(mut top) = lightest.peek_mut() else { break };
        let Reverse((weight, group)) = *top;
        part_of[at] = group;
        *top = Reverse((weight + u64::from(weights[at]), group));
    }
    part_of
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::load;

    use super::*;
    use crate::testing::database;

    const METIS: By = By::Metis(metis::Method::Recursive);

    fn edge(a: u32, b: u32, bytes: u64) -> Edge {
        Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes }
    }

    fn available(database: &Database) -> Vec<u32> {
        (0..database.pes.len() as u32).filter(|&pe| database.pes[pe as usize].available).collect()
    }

    fn groups(database: &Database, by: By) -> Groups {
        let grouping = Grouping { by, equal: false, imbalance: 0.0 };
        Groups::of(database, &available(database), grouping, 0).expect("no failure")
    }

    #[test]
    fn few_objects_form_one_group_each() {
        let mut database = database(4, &[(1.0, 3), (2.0, 3), (3.0, 0)]);
        database.edges = vec![edge(0, 1, 5), edge(1, 2, 7)];
        for grouping in [METIS, By::Greedy] {
            let groups = groups(&database, grouping);
            assert_eq!(groups.group_of, [Some(0), Some(1), Some(2)]);
            assert_eq!((groups.count, groups.graph), (3, Graph::new(3, [(0, 1, 5), (1, 2, 7)])));
        }
        let kept = groups(&database, By::Keep);
        assert_eq!(kept.group_of, [Some(1), Some(1), Some(0)]);
        assert_eq!((kept.count, kept.graph), (2, Graph::new(2, [(0, 1, 7)])));
    }

    #[test]
    fn pes_with_fixed_objects_are_anchors() {
        let mut database = database(3, &[(1.0, 2), (1.0, 0), (1.0, 2), (1.0, 1)]);
        database.objects[0].migratable = false;
        database.objects[2].migratable = false;
        database.edges = vec![edge(0, 1, 5), edge(2, 1, 3), edge(0, 2, 9), edge(1, 3, 1)];
        let groups = groups(&database, METIS);
        assert_eq!(groups.group_of, [None, Some(0), None, Some(1)]);
        assert_eq!((groups.count, groups.anchors.clone()), (2, vec![2]));
        assert_eq!(groups.graph, Graph::new(3, [(0, 2, 8), (0, 1, 1)]));
        assert_eq!(groups.placement(&database, &[1, 0]), [2, 1, 2, 0]);
    }

    #[test]
    fn pes_that_objects_communicate_with_are_anchors() {
        let mut database = database(3, &[(1.0, 2), (1.0, 0), (1.0, 1)]);
        database.objects[2].migratable = false;
        let to_pe = |from, pe, bytes| Edge { from, to: End::Pe(pe), messages: 1, bytes };
        database.edges = vec![
            edge(0, 1, 5),
            to_pe(End::Object(0), 1, 7),
            to_pe(End::Object(2), 1, 9),
            to_pe(End::Object(1), 2, 2),
            to_pe(End::Pe(0), 2, 8),
        ];
        let groups = groups(&database, METIS);
        assert_eq!((groups.count, groups.anchors), (2, vec![1, 2]));
        assert_eq!(groups.graph, Graph::new(4, [(0, 1, 5), (0, 2, 7), (1, 3, 2)]));
    }

    #[test]
    fn fixed_objects_take_no_group_even_if_all_loads_are_zero() {
        let mut database = database(8, &[(0.0, 0); 24]);
        for pinned in 0..8 {
            let object = &mut database.objects[16 + pinned];
            (object.migratable, object.pe) = (false, pinned as u32);
        }
        let ring = |first: u32, size: u32| (0..size).map(move |i| edge(first + i, first + (i + 1) % size, 1));
        database.edges = ring(0, 16).chain(ring(16, 8)).collect();
        for method in [metis::Method::Recursive, metis::Method::Kway] {
            assert_eq!(groups(&database, By::Metis(method)).count, 8, "{method:?}");
        }
    }

    #[test]
    fn metis_groups_are_balanced_and_numbered_by_their_lowest_object() {
        let database = load("mesh:12x12").expect("a mesh").remap(9);
        let groups = groups(&database, METIS);
        assert_eq!((groups.count, groups.group_of[0]), (9, Some(0)));
        let mut seen = 0;
        for group in groups.group_of.iter().flatten() {
            assert!(*group <= seen, "group {group} comes before {seen}");
            seen = seen.max(group + 1);
        }
        let size = |g| groups.group_of.iter().filter(|&&group| group == Some(g)).count();
        assert!((0..9).all(|g| size(g) == 16));
    }

    #[test]
    fn kept_groups_of_unavailable_pes_stay_together_while_pes_are_free() {
        let mut database = database(4, &[(1.0, 0), (1.0, 1), (4.0, 1), (1.0, 2), (2.0, 2), (1.0, 3)]);
        database.pes[1].available = false;
        database.objects[0].pe = 2;
        let kept = groups(&database, By::Keep);
        // PE 0 is empty, so the objects of PE 1 remain one group.
        assert_eq!(kept.group_of.into_iter().flatten().collect::<Vec<_>>(), [1, 0, 0, 1, 1, 2]);
        database.objects[0].pe = 0;
        let divided = groups(&database, By::Keep);
        // The object of 4 seconds joins the group of PE 0 (1 second), the other object joins the group of PE 3.
        assert_eq!(divided.group_of.into_iter().flatten().collect::<Vec<_>>(), [0, 2, 0, 1, 1, 2]);
    }

    #[test]
    fn sizes_of_equal_groups_differ_by_at_most_one_whatever_the_loads() {
        let mut database = load("mesh:10x10").expect("a mesh").remap(8);
        for (object, load) in database.objects.iter_mut().zip(1..) {
            object.load_seconds = f64::from(load);
        }
        for by in [METIS, By::Metis(metis::Method::Kway), By::Greedy] {
            let grouping = Grouping { by, equal: true, imbalance: 0.0 };
            let groups = Groups::of(&database, &available(&database), grouping, 0).expect("no failure");
            let size = |g| groups.group_of.iter().filter(|&&group| group == Some(g)).count();
            let mut sizes: Vec<usize> = (0..8).map(size).collect();
            sizes.sort_unstable();
            assert_eq!(sizes, [12, 12, 12, 12, 13, 13, 13, 13]);
        }
    }

    #[test]
    fn without_objects_there_is_no_group() {
        for by in [METIS, By::Greedy, By::Keep] {
            let groups = groups(&database(2, &[]), by);
            assert_eq!((groups.count, groups.graph.vertices()), (0, 0));
        }
    }
}

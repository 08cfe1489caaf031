//! The groups of movable objects that a mapping strategy places as wholes, one on a PE.
//!
//! The first phase of the mapping papers: there are at most as many groups as PEs that take objects,
//! and what they exchange is the graph that the second phase maps. Objects that stay where they are,
//! and the ends of edges that are PEs, appear in it as anchors, one for each PE that has such.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

use super::correct::exact_sizes;
use super::{greedy, metis, renumber, weights};
use crate::database::Database;
use crate::graph::Graph;
use crate::registry::{Param, ParamError, Params};
use crate::strategy::StrategyError;

/// How objects are grouped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grouping {
    /// Who stays together.
    pub by: By,
    /// Whether all groups have the same number of objects, but for one, whatever their loads.
    pub equal: bool,
    /// How far above the average METIS may load a group, and mappers a PE where PEs differ: max/avg - 1.
    pub imbalance: f64,
}

/// Who stays together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Who communicates: few bytes between groups, balanced.
    Metis(metis::Method),
    /// By load alone: heaviest object to the lightest group.
    Greedy,
    /// As they are: the objects of a PE are a group, and whole groups change places.
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
            _ => Err("groups are `metis`, `kway`, `greedy` or `keep`".into()),
        }
    }
}

/// The key `groups`.
pub const GROUPS: Param = Param {
    key: "groups",
    default: "metis",
    help: "who stays together: `metis` (few bytes between groups, balanced; by recursive bisection), `kway` (the \
           same, into all groups at once), `greedy` (balanced only), `keep` (the objects of a PE change places \
           as they are)",
};

/// The key `sizes`.
pub const SIZES: Param = Param {
    key: "sizes",
    default: "any",
    help: "`any`, or `equal`: all groups have the same number of objects, or one more, whatever their loads",
};

/// The key `imbalance` of grouping.
pub const IMBALANCE: Param = Param {
    key: "imbalance",
    default: "0.05",
    help: "allowed max/avg - 1 of the groups of METIS; where PEs differ in speed, background or objects that \
           stay, also of the PEs: those above it give away objects of new groups of any size",
};

impl Grouping {
    /// The values of [`GROUPS`], [`SIZES`] and [`IMBALANCE`].
    ///
    /// # Errors
    /// If one is not understood.
    pub fn take(params: &mut Params) -> Result<Grouping, ParamError> {
        let (by, sizes) = (params.take("groups")?, params.take::<String>("sizes")?);
        let equal = match sizes.as_str() {
            "any" => false,
            "equal" if by == By::Keep => {
                return Err(params.bad("sizes", "equal", "groups that are kept have the sizes they have"));
            }
            "equal" => true,
            _ => return Err(params.bad("sizes", &sizes, "sizes are `any` or `equal`")),
        };
        Ok(Grouping { by, equal, imbalance: params.take_imbalance()? })
    }
}

/// Groups of objects, and what they exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The group of each object of the database; `None` for those that are not migratable.
    pub group_of: Vec<Option<u32>>,
    /// How many groups there are; none is empty.
    pub count: usize,
    /// The PEs with objects that stay, or that objects talk to as such; one per anchor, ascending.
    pub anchors: Vec<u32>,
    /// Vertices `0..count` are the groups, those after them the anchors.
    pub graph: Graph,
}

impl Groups {
    /// Groups the objects of a checked database for the PEs `available`.
    ///
    /// When there are at most as many movable objects as PEs, each is a group, in their order, unless
    /// groups are to be kept. Otherwise groups are numbered by their lowest object, and kept ones by
    /// their PE. With [`By::Metis`] a group's load is at most (1 + `imbalance`) times the average where
    /// the objects allow.
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
        let talked_to = pes.filter(|&pe| graph.degree(database.objects.len() + pe as usize) > 0);
        let mut anchors: Vec<u32> = stay.map(|object| object.pe).chain(talked_to).collect();
        anchors.sort_unstable();
        anchors.dedup();
        let mut part_of = match by {
            By::Keep => keep(database, &movable, available, &weights),
            _ if movable.len() <= available.len() => (0..movable.len() as u32).collect(),
            By::Greedy => greedy::partition(&weights, available.len()),
            By::Metis(method) => {
                // What stays weighs nothing here, but those that talk to it belong together.
                let singly: Vec<Option<u32>> = positions(database, &movable);
                let inner = with_anchors(&graph, database, &singly, movable.len(), &anchors);
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

    /// The PE of every object when group `i` is on `pe_of_group[i]`.
    pub fn placement(&self, database: &Database, pe_of_group: &[u32]) -> Vec<u32> {
        let pe_of = |(group, pe): (&Option<u32>, u32)| group.map_or(pe, |group| pe_of_group[group as usize]);
        self.group_of.iter().zip(database.objects.iter().map(|object| object.pe)).map(pe_of).collect()
    }
}

/// What `count` groups and, after them, the anchors exchange; PEs and objects without a group are part of
/// the anchor of their PE. `graph` is that of objects and PEs.
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
    // PEs without an anchor have no edges, so nobody asks where they are.
    let vertex_of: Vec<u32> = objects.chain((0..database.pes.len() as u32).map(anchor_of)).collect();
    graph.quotient(&vertex_of, count + anchors.len())
}

/// The position of each object in `movable`, if it is there.
fn positions(database: &Database, movable: &[u32]) -> Vec<Option<u32>> {
    let mut positions = vec![None; database.objects.len()];
    for (&object, position) in movable.iter().zip(0..) {
        positions[object as usize] = Some(position);
    }
    positions
}

/// The groups that objects form where they are, numbered by PE.
///
/// The objects of a PE that is not available are a group of their own as long as a PE is left for it;
/// otherwise each goes to the lightest group, heaviest first.
fn keep(database: &Database, movable: &[u32], available: &[u32], weights: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let home = |object: u32| database.objects[object as usize].pe as usize;
    let mut is_used = vec![false; database.pes.len()];
    movable.iter().for_each(|&object| is_used[home(object)] = true);
    let used = |available: bool| {
        let is_used = &is_used;
        (0..database.pes.len()).filter(move |&pe| is_used[pe] && database.pes[pe].available == available)
    };
    let spare = available.len() - used(true).count();
    let mut kept: Vec<usize> = used(true).chain(used(false).take(spare)).collect();
    kept.sort_unstable();
    let mut group_of_pe = vec![NONE; database.pes.len()];
    for (&pe, group) in kept.iter().zip(0..) {
        group_of_pe[pe] = group;
    }
    let mut part_of: Vec<u32> = movable.iter().map(|&object| group_of_pe[home(object)]).collect();
    let mut group_weights = vec![0u64; kept.len()];
    let mut homeless = Vec::new();
    for (at, &group) in part_of.iter().enumerate() {
        match group_weights.get_mut(group as usize) {
            Some(weight) => *weight += u64::from(weights[at]),
            None => homeless.push(at),
        }
    }
    homeless.sort_by_key(|&at| Reverse(weights[at]));
    let mut lightest: BinaryHeap<Reverse<(u64, u32)>> =
        group_weights.into_iter().zip(0..).map(Reverse).collect();
    for at in homeless {
        let Some(mut top) = lightest.peek_mut() else { break };
        let Reverse((weight, group)) = *top;
        part_of[at] = group;
        *top = Reverse((weight + u64::from(weights[at]), group));
    }
    part_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Edge, End};
    use crate::graph::load;
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
    fn few_objects_are_their_own_groups() {
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
    fn objects_that_stay_become_anchors() {
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
    fn pes_that_objects_talk_to_are_anchors() {
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
    fn what_stays_takes_no_group_even_where_nothing_has_a_load() {
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
    fn kept_groups_of_lost_pes_move_as_wholes_while_there_is_room() {
        let mut database = database(4, &[(1.0, 0), (1.0, 1), (4.0, 1), (1.0, 2), (2.0, 2), (1.0, 3)]);
        database.pes[1].available = false;
        database.objects[0].pe = 2;
        let kept = groups(&database, By::Keep);
        // PE 0 is empty, so the group of PE 1 may take it whole.
        assert_eq!(kept.group_of.into_iter().flatten().collect::<Vec<_>>(), [1, 0, 0, 1, 1, 2]);
        database.objects[0].pe = 0;
        let dealt = groups(&database, By::Keep);
        // The 4 seconds go to the group of PE 0 (1 second), the other second to that of PE 3.
        assert_eq!(dealt.group_of.into_iter().flatten().collect::<Vec<_>>(), [0, 2, 0, 1, 1, 2]);
    }

    #[test]
    fn equal_groups_have_equally_many_objects_whatever_they_weigh() {
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
    fn nothing_to_group_is_no_group() {
        for by in [METIS, By::Greedy, By::Keep] {
            let groups = groups(&database(2, &[]), by);
            assert_eq!((groups.count, groups.graph.vertices()), (0, 0));
        }
    }
}

//! Directed traffic between tasks, as rows from which costs are updated when two tasks swap.
//!
//! Contention depends on directions, because a link carries bytes one way. The undirected
//! [`Graph`](equipoise_model::graph::Graph), which has similar rows, is therefore not enough.

use rustc_hash::FxHashMap;

use equipoise_model::Database;
use equipoise_model::database::End;

use crate::partition::groups::Groups;

/// Bytes between vertices: first the tasks, then the anchors, which stay on their PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commodities {
    /// The number of tasks, which are the vertices `0..tasks`.
    pub tasks: usize,
    /// The PEs of the anchors, vertices `tasks..`.
    pub anchors: Vec<u32>,
    /// The partners of vertex `v` are `partners[starts[v]..starts[v + 1]]`.
    starts: Vec<usize>,
    partners: Vec<Partner>,
}

/// The traffic of a vertex with one partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// The partner.
    pub vertex: u32,
    /// Bytes to the partner.
    pub sent_bytes: u64,
    /// Bytes from the partner.
    pub received_bytes: u64,
}

impl Commodities {
    /// Every object is a task, and every edge end that is a PE is an anchor on that PE.
    pub fn of(database: &Database) -> Self {
        Self::between(database, database.objects.len(), Ok)
    }

    /// Every group is a task; objects that cannot move belong to the anchor of their PE.
    pub(crate) fn of_groups(database: &Database, groups: &Groups) -> Self {
        let vertex =
            |object: u32| groups.group_of[object as usize].ok_or(database.objects[object as usize].pe);
        Self::between(database, groups.count, vertex)
    }

    /// The traffic of objects, where `task_of` maps an object to its task, or to the PE on which the object stays.
    fn between(database: &Database, tasks: usize, task_of: impl Fn(u32) -> Result<u32, u32>) -> Self {
        let task = |end: End| match end {
            End::Object(object) => task_of(object),
            End::Pe(pe) => Err(pe),
        };
        let edges = || database.edges.iter().filter(|edge| edge.bytes > 0);
        let mut anchors: Vec<u32> =
            edges().flat_map(|edge| [edge.from, edge.to]).filter_map(|end| task(end).err()).collect();
        anchors.sort_unstable();
        anchors.dedup();
        let anchor = |pe: u32| (tasks + anchors.partition_point(|&anchor| anchor < pe)) as u32;
        let vertex = |end: End| task(end).unwrap_or_else(anchor);
        let mut sums = FxHashMap::<(u32, u32), [u64; 2]>::default();
        for edge in edges() {
            let (from, to) = (vertex(edge.from), vertex(edge.to));
            if from != to {
                for (key, way) in [((from, to), 0), ((to, from), 1)] {
                    let sum = &mut sums.entry(key).or_default()[way];
                    *sum = sum.saturating_add(edge.bytes);
                }
            }
        }
        let mut sorted: Vec<((u32, u32), [u64; 2])> = sums.into_iter().collect();
        sorted.sort_unstable();
        let mut starts = vec![0; tasks + anchors.len() + 1];
        sorted.iter().for_each(|((from, _), _)| starts[*from as usize + 1] += 1);
        for vertex in 1..starts.len() {
            starts[vertex] += starts[vertex - 1];
        }
        let partners = sorted.into_iter().map(|((_, vertex), [sent_bytes, received_bytes])| Partner {
            vertex,
            sent_bytes,
            received_bytes,
        });
        Commodities { tasks, anchors, starts, partners: partners.collect() }
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.tasks + self.anchors.len()
    }

    /// The partners of a vertex, in ascending order.
    pub fn partners(&self, vertex: usize) -> &[Partner] {
        &self.partners[self.starts[vertex]..self.starts[vertex + 1]]
    }

    /// Every (from, to, bytes), by sender, then by receiver.
    pub fn sent(&self) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
        (0..self.vertices()).flat_map(move |from| {
            let sent = self.partners(from).iter().filter(|partner| partner.sent_bytes > 0);
            sent.map(move |partner| (from, partner.vertex as usize, partner.sent_bytes))
        })
    }

    /// The PE of every vertex when task `i` is on `places[i]`.
    pub(crate) fn places(&self, places: &[u32]) -> Vec<u32> {
        places[..self.tasks].iter().chain(&self.anchors).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Edge;

    use super::*;
    use crate::testing;

    #[test]
    fn edges_of_one_way_are_added_up_and_both_ends_see_them() {
        let mut database = testing::database(3, &[(1.0, 0), (1.0, 1)]);
        let (a, b) = (End::Object(0), End::Object(1));
        let edge = |from, to, bytes| Edge { from, to, messages: 1, bytes };
        database.edges = vec![
            edge(a, b, 5),
            edge(b, a, 7),
            edge(a, b, 10),
            edge(a, a, 99),
            edge(End::Pe(2), b, 3),
            edge(a, End::Pe(2), 0),
            edge(End::Pe(1), End::Pe(2), 4),
        ];
        let commodities = Commodities::of(&database);
        assert_eq!(commodities.anchors, [1, 2]);
        let partner = |vertex, sent_bytes, received_bytes| Partner { vertex, sent_bytes, received_bytes };
        assert_eq!(commodities.partners(0), [partner(1, 15, 7)]);
        assert_eq!(commodities.partners(1), [partner(0, 7, 15), partner(3, 0, 3)]);
        assert_eq!(commodities.partners(3), [partner(1, 3, 0), partner(2, 0, 4)]);
        assert_eq!(commodities.sent().collect::<Vec<_>>(), [(0, 1, 15), (1, 0, 7), (2, 3, 4), (3, 1, 3)]);
    }
}

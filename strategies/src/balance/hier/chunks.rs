//! The summary of all nodes that the root of `HierLB` sees: chunks of objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use equipoise_model::Database;
use equipoise_model::database::{Edge, End, Object, ObjectIndex, PeRecord};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Nodes;

/// The chunks of a node for each of its PEs. With 4, nodes are balanced to an eighth of what a PE has, and the root sees 64 times
/// fewer objects than there are where a PE has 256.
pub(super) const CHUNKS_PER_PE: usize = 4;

/// An object begins a new chunk if the present one would then be larger than this multiple of its share.
const LARGEST_CHUNK: f64 = 1.5;

/// The chunks of all nodes.
pub(super) struct Chunks {
    /// The chunk of each object.
    pub(super) of: Vec<u32>,
    /// The node of each chunk, and whether its objects may migrate.
    nodes: Vec<(u32, bool)>,
}

/// Groups the objects of every node into chunks; those that may not migrate are a chunk of their own.
pub(super) fn aggregate(database: &Database, nodes: &Nodes) -> Chunks {
    let mut members = vec![(Vec::new(), Vec::new()); nodes.pes.len()];
    for (at, object) in (0u32..).zip(&database.objects) {
        let (movable, fixed) = &mut members[nodes.of[object.pe as usize] as usize];
        if object.migratable { movable.push(at) } else { fixed.push(at) }
    }
    let partners = Partners::of(database, nodes);
    let grown: Vec<Vec<u32>> = members
        .par_iter()
        .zip(&nodes.pes)
        .map(|((movable, _), pes)| grow(database, &partners, movable, CHUNKS_PER_PE * pes.len()))
        .collect();
    let mut chunks = Chunks { of: vec![0; database.objects.len()], nodes: Vec::new() };
    for (node, ((movable, fixed), grown)) in (0..).zip(members.iter().zip(grown)) {
        let first = chunks.nodes.len() as u32;
        let number = grown.iter().max().map_or(0, |last| last + 1);
        for (&object, chunk) in movable.iter().zip(grown) {
            chunks.of[object as usize] = first + chunk;
        }
        chunks.nodes.extend((0..number).map(|_| (node, true)));
        if !fixed.is_empty() {
            fixed.iter().for_each(|&object| chunks.of[object as usize] = first + number);
            chunks.nodes.push((node, false));
        }
    }
    chunks
}

/// For each object, the objects of its node with which it communicates, and the bytes.
struct Partners {
    starts: Vec<u32>,
    all: Vec<(u32, u64)>,
}

impl Partners {
    fn of(database: &Database, nodes: &Nodes) -> Self {
        let node = |object: u32| nodes.of[database.objects[object as usize].pe as usize];
        let pairs = || {
            let pair = |edge: &Edge| match (edge.from, edge.to) {
                (End::Object(a), End::Object(b)) if a != b && node(a) == node(b) => Some((a, b, edge.bytes)),
                _ => None,
            };
            database.edges.iter().filter_map(pair)
        };
        let mut starts = vec![0u32; database.objects.len() + 1];
        pairs().flat_map(|(a, b, _)| [a, b]).for_each(|object| starts[object as usize + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut next = starts.clone();
        let mut all = vec![(0, 0); starts.last().map_or(0, |&end| end as usize)];
        for (a, b, bytes) in pairs() {
            for (object, partner) in [(a, b), (b, a)] {
                let at = &mut next[object as usize];
                all[*at as usize] = (partner, bytes);
                *at += 1;
            }
        }
        Partners { starts, all }
    }

    fn of_object(&self, object: u32) -> &[(u32, u64)] {
        let at = object as usize;
        &self.all[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// The chunk of each of these objects of a node, numbered from 0: every chunk grows by the object that exchanges most bytes with it,
/// or the next one without a chunk, until it has its share of the load. There are at most about twice `number` chunks.
fn grow(database: &Database, partners: &Partners, objects: &[u32], number: usize) -> Vec<u32> {
    let seconds = |object: u32| database.objects[object as usize].load_seconds;
    let sum: f64 = objects.iter().map(|&object| seconds(object)).sum();
    // Objects without load count as one each.
    let weight = |object: u32| if sum > 0.0 { seconds(object) } else { 1.0 };
    let share = if sum > 0.0 { sum } else { objects.len() as f64 } / number as f64;
    let mut chunk_of: FxHashMap<u32, Option<u32>> = objects.iter().map(|&object| (object, None)).collect();
    let mut unplaced = objects.iter().copied();
    let (mut chunk, mut filled, mut is_empty) = (0, 0.0, true);
    let mut bytes_to_chunk: FxHashMap<u32, u64> = FxHashMap::default();
    let mut nearest: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
    loop {
        let partner = nearest.pop().filter(|_| !is_empty);
        let object = match partner {
            // Entries of objects that have joined, or that have more bytes by now, are out of date.
            Some((bytes, Reverse(object)))
                if chunk_of[&object].is_some() || bytes_to_chunk[&object] != bytes =>
            {
                continue;
            }
            Some((_, Reverse(object))) => object,
            None => match unplaced.find(|object| chunk_of[object].is_none()) {
                Some(object) => object,
                None => break,
            },
        };
        if !is_empty && filled + weight(object) > LARGEST_CHUNK * share {
            (chunk, filled) = (chunk + 1, 0.0);
            bytes_to_chunk.clear();
            nearest.clear();
        }
        chunk_of.insert(object, Some(chunk));
        (filled, is_empty) = (filled + weight(object), false);
        if filled >= share {
            (chunk, filled, is_empty) = (chunk + 1, 0.0, true);
            bytes_to_chunk.clear();
            nearest.clear();
            continue;
        }
        for &(partner, bytes) in partners.of_object(object) {
            if chunk_of.get(&partner).is_some_and(Option::is_none) {
                let all = bytes_to_chunk.entry(partner).or_default();
                *all = all.saturating_add(bytes);
                nearest.push((*all, Reverse(partner)));
            }
        }
    }
    objects.iter().map(|object| chunk_of[object].unwrap_or_default()).collect()
}

/// What the root sees: a PE per node, and the chunks as objects.
pub(super) fn summary(database: &Database, nodes: &Nodes, chunks: &Chunks) -> Database {
    let mut objects: Vec<Object> = (0i32..)
        .zip(&chunks.nodes)
        .map(|(at, &(node, migratable))| Object {
            id: at as u64,
            array: 0,
            index: ObjectIndex::new(&[at]),
            load_seconds: 0.0,
            bytes: Some(0),
            pe: node,
            migratable,
        })
        .collect();
    for (object, &chunk) in database.objects.iter().zip(&chunks.of) {
        let chunk = &mut objects[chunk as usize];
        chunk.load_seconds += object.load_seconds;
        chunk.bytes = chunk.bytes.zip(object.bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
    }
    let end = |end: End| match end {
        End::Object(object) => (0, chunks.of[object as usize]),
        End::Pe(pe) => (1, nodes.of[pe as usize]),
    };
    let mut volumes: BTreeMap<[(u8, u32); 2], (u64, u64)> = BTreeMap::new();
    for edge in &database.edges {
        let ends = [end(edge.from), end(edge.to)];
        if ends[0] != ends[1] && ends.iter().any(|(kind, _)| *kind == 0) {
            let (messages, bytes) = volumes.entry(ends).or_default();
            *messages = messages.saturating_add(edge.messages);
            *bytes = bytes.saturating_add(edge.bytes);
        }
    }
    let end = |(kind, number): (u8, u32)| if kind == 0 { End::Object(number) } else { End::Pe(number) };
    let edge = |(ends, (messages, bytes)): ([(u8, u32); 2], (u64, u64))| {
        let [from, to] = ends.map(end);
        Edge { from, to, messages, bytes }
    };
    Database {
        step: database.step,
        arrays: vec!["chunk".into()],
        pes: nodes.pes.iter().map(|pes| joined(database, pes)).collect(),
        objects,
        communication_recorded: database.communication_recorded,
        edges: volumes.into_iter().map(edge).collect(),
        dangling_edges: database.dangling_edges,
        costs: database.costs.clone(),
    }
}

/// A PE that is as fast as the available ones of these, and has their background.
fn joined(database: &Database, pes: &[u32]) -> PeRecord {
    let all = || pes.iter().map(|&pe| &database.pes[pe as usize]);
    let available = all().any(|pe| pe.available);
    let counted = || all().filter(|pe| pe.available || !available);
    let speed: f64 = counted().map(|pe| pe.speed).sum();
    let work =
        |seconds: fn(&PeRecord) -> f64| counted().map(|pe| seconds(pe) * pe.speed).sum::<f64>() / speed;
    PeRecord {
        speed,
        wall_seconds: all().map(|pe| pe.wall_seconds).fold(0.0, f64::max),
        idle_seconds: work(|pe| pe.idle_seconds),
        background_seconds: work(|pe| pe.background_seconds),
        available,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn nodes(pes: usize, each: u32) -> Nodes {
        let all: Vec<u32> = (0..pes as u32).collect();
        let of = all.iter().map(|pe| pe / each).collect();
        Nodes { pes: all.chunks(each as usize).map(<[u32]>::to_vec).collect(), of }
    }

    fn edge(from: u32, to: u32, bytes: u64) -> Edge {
        Edge { from: End::Object(from), to: End::Object(to), messages: 1, bytes }
    }

    #[test]
    fn objects_that_communicate_share_a_chunk() {
        // Eight objects of 1 s on one PE, so that each of four chunks has two; neighbors are not next to each other in the list.
        let mut database = testing::database(2, &[(1.0, 0); 8]);
        database.edges = vec![edge(0, 4, 9), edge(5, 1, 9), edge(2, 6, 9), edge(7, 3, 9), edge(0, 1, 1)];
        let chunks = aggregate(&database, &nodes(2, 1));
        assert_eq!(chunks.of, [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(chunks.nodes, [(0, true); 4]);
        let summary = summary(&database, &nodes(2, 1), &chunks);
        assert!(summary.objects.iter().all(|chunk| chunk.load_seconds == 2.0 && chunk.pe == 0));
        assert_eq!(summary.edges, [edge(0, 1, 1)]);
        assert_eq!(summary.check(), Ok(()));
    }

    #[test]
    fn heavy_objects_have_a_chunk_of_their_own_and_fixed_ones_another() {
        let mut database = testing::database(2, &[(1.0, 0), (100.0, 0), (1.0, 0), (2.0, 1), (3.0, 1)]);
        database.objects[3].migratable = false;
        let chunks = aggregate(&database, &nodes(2, 1));
        assert_eq!(chunks.of, [0, 1, 2, 4, 3]);
        assert_eq!(chunks.nodes, [(0, true), (0, true), (0, true), (1, true), (1, false)]);
        assert_eq!(summary(&database, &nodes(2, 1), &chunks).check(), Ok(()));
    }

    #[test]
    fn chunks_are_few() {
        for loads in [[0.0, 0.0, 0.0], [1.0, 0.0, 5.0], [1e-12, 1e9, 1.0]] {
            let objects: Vec<(f64, u32)> = (0..3000).map(|at| (loads[at % 3], (at % 8) as u32)).collect();
            let chunks = aggregate(&testing::database(8, &objects), &nodes(8, 4));
            // An object may be larger than the share of a chunk; small ones before and after it are chunks, too.
            assert!(chunks.nodes.len() <= 2 * (2 * 4 * CHUNKS_PER_PE + 1), "{}", chunks.nodes.len());
        }
    }

    #[test]
    fn a_node_is_as_fast_as_its_available_pes() {
        let mut database = testing::database(3, &[]);
        database.pes[0] = PeRecord { speed: 2.0, background_seconds: 3.0, ..PeRecord::default() };
        database.pes[2].available = false;
        let node = joined(&database, &[0, 1, 2]);
        assert_eq!((node.speed, node.background_seconds, node.available), (3.0, 2.0, true));
        let node = joined(&database, &[2]);
        assert_eq!((node.speed, node.available), (1.0, false));
    }
}

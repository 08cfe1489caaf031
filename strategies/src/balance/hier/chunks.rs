//! The summary of all nodes that the root of `HierLB` sees: chunks of objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use equipoise_model::Database;
use equipoise_model::constraints::Constraints;
use equipoise_model::costs::Costs;
use equipoise_model::database::{Edge, End, Object, ObjectIndex, PeRecord};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Nodes;
use crate::cost::pour;

/// There are about as many chunks for each PE of the machine, so a node with much load offers many. With 4, nodes are balanced to
/// an eighth of what a PE has, and the root sees 64 times fewer objects than there are where a PE has 256.
pub(super) const CHUNKS_PER_PE: usize = 4;

/// An object begins a new chunk if the present one would then be larger than this multiple of its share.
const LARGEST_CHUNK: f64 = 1.5;

/// What every node knows of the whole machine.
pub(super) struct Goal {
    /// The load of a chunk, in seconds at speed 1; if no object has a load, its number of objects.
    share: f64,
    has_load: bool,
    /// The background and the objects that may not migrate of each PE, in seconds of this PE.
    fixed_seconds: Vec<f64>,
    /// The level that the movable load reaches if it is poured over these. PEs above it get nothing.
    level_seconds: f64,
}

impl Goal {
    pub(super) fn of(database: &Database) -> Self {
        let mut fixed_seconds: Vec<f64> = database.pes.iter().map(|pe| pe.background_seconds).collect();
        let (mut movable, mut number) = (0.0, 0);
        for object in &database.objects {
            let pe = object.pe as usize;
            if object.migratable {
                (movable, number) = (movable + object.load_seconds, number + 1);
            } else {
                fixed_seconds[pe] += object.load_seconds / database.pes[pe].speed;
            }
        }
        let available = database.pes.iter().zip(&fixed_seconds).filter(|(pe, _)| pe.available);
        let mut available: Vec<(f64, f64)> = available.map(|(pe, seconds)| (*seconds, pe.speed)).collect();
        let chunks = (CHUNKS_PER_PE * available.len()) as f64;
        let has_load = movable > 0.0;
        Goal {
            share: if has_load { movable } else { f64::from(number) } / chunks,
            has_load,
            level_seconds: pour(movable, &mut available),
            fixed_seconds,
        }
    }

    /// The weight of an object in a chunk.
    fn weight(&self, object: &Object) -> f64 {
        if self.has_load { object.load_seconds } else { 1.0 }
    }

    /// Whether a PE can get objects without a higher level.
    fn has_room(&self, database: &Database, pe: u32) -> bool {
        let pe = pe as usize;
        database.pes[pe].available && self.fixed_seconds[pe] <= self.level_seconds
    }
}

/// The chunks of all nodes.
pub(super) struct Chunks {
    /// The chunk of each object.
    pub(super) of: Vec<u32>,
    /// The node of each chunk, and whether its objects may migrate.
    nodes: Vec<(u32, bool)>,
}

/// Groups the objects of every node into chunks; those that may not migrate are a chunk of their own.
pub(super) fn aggregate(database: &Database, nodes: &Nodes, goal: &Goal) -> Chunks {
    let mut members = vec![(Vec::new(), Vec::new()); nodes.pes.len()];
    for (at, object) in (0u32..).zip(&database.objects) {
        let (movable, fixed) = &mut members[nodes.of[object.pe as usize] as usize];
        if object.migratable { movable.push(at) } else { fixed.push(at) }
    }
    let partners = Partners::of(database, nodes);
    let grown: Vec<Vec<u32>> =
        members.par_iter().map(|(movable, _)| grow(database, &partners, movable, goal)).collect();
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
/// or the next one without a chunk, until it has its share of the load.
fn grow(database: &Database, partners: &Partners, objects: &[u32], goal: &Goal) -> Vec<u32> {
    let weight = |object: u32| goal.weight(&database.objects[object as usize]);
    let share = goal.share;
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

/// What the root sees: a PE per node, and the chunks as objects. The load of objects that may not migrate is background.
pub(super) fn summary(database: &Database, nodes: &Nodes, chunks: &Chunks, goal: &Goal) -> Database {
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
        chunk.load_seconds += if object.migratable { object.load_seconds } else { 0.0 };
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
    let mut summary = Database {
        step: database.step,
        arrays: vec!["chunk".into()],
        pes: nodes.pes.iter().map(|pes| joined(database, pes, goal)).collect(),
        objects,
        communication_recorded: database.communication_recorded,
        edges: volumes.into_iter().map(edge).collect(),
        dangling_edges: database.dangling_edges,
        costs: database.costs.clone().map(|costs| of_nodes(costs, nodes)),
        constraints: Constraints::default(),
    };
    bound(&mut summary);
    summary
}

/// The costs of messages between nodes. Thinking times are those of other numbers of objects.
fn of_nodes(costs: Costs, nodes: &Nodes) -> Costs {
    let of_node = nodes.of.len().div_ceil(nodes.pes.len()) as u32;
    let pes_per_process = (costs.pes_per_process / of_node).max(1);
    Costs { pes_per_process, strategies: BTreeMap::new(), ..costs }
}

/// Sums of extreme numbers can be beyond those of a database: then all are scaled.
fn bound(summary: &mut Database) {
    const MOST: f64 = 1e30;
    let speed = summary.pes.iter().map(|pe| pe.speed).fold(0.0, f64::max);
    let slower = (MOST / speed).min(1.0);
    let seconds = summary.objects.iter().map(|object| object.load_seconds * slower);
    let seconds = seconds.chain(summary.pes.iter().map(|pe| pe.background_seconds)).fold(0.0, f64::max);
    let shorter = (MOST / seconds).min(1.0);
    for pe in &mut summary.pes {
        pe.speed = (pe.speed * slower).max(1.0 / MOST);
        for time in [&mut pe.wall_seconds, &mut pe.idle_seconds, &mut pe.background_seconds] {
            *time = (*time * shorter).min(MOST);
        }
    }
    summary.objects.iter_mut().for_each(|object| object.load_seconds *= slower * shorter);
}

/// A PE that is as fast as those of these PEs that can get objects, and has their background.
fn joined(database: &Database, pes: &[u32], goal: &Goal) -> PeRecord {
    let available = pes.iter().any(|&pe| goal.has_room(database, pe));
    let counted = || pes.iter().copied().filter(|&pe| !available || goal.has_room(database, pe));
    let speed_of = |pe: u32| database.pes[pe as usize].speed;
    let speed: f64 = counted().map(speed_of).sum();
    let mean = |seconds: &dyn Fn(usize) -> f64| {
        counted().map(|pe| seconds(pe as usize) * (speed_of(pe) / speed)).sum::<f64>()
    };
    PeRecord {
        speed,
        wall_seconds: pes.iter().map(|&pe| database.pes[pe as usize].wall_seconds).fold(0.0, f64::max),
        idle_seconds: mean(&|pe| database.pes[pe].idle_seconds),
        background_seconds: mean(&|pe| goal.fixed_seconds[pe]),
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

    fn chunks(database: &Database, nodes: &Nodes) -> (Chunks, Database) {
        let goal = Goal::of(database);
        let chunks = aggregate(database, nodes, &goal);
        let summary = summary(database, nodes, &chunks, &goal);
        assert_eq!(summary.check(), Ok(()));
        (chunks, summary)
    }

    #[test]
    fn objects_that_communicate_share_a_chunk() {
        // 16 objects of 1 s on one of two PEs: two for each of eight chunks. Partners are not next to each other in the list.
        let mut database = testing::database(2, &[(1.0, 0); 16]);
        database.edges = (0..8).map(|at| edge(at, 8 + (at + 3) % 8, 9)).chain([edge(0, 1, 1)]).collect();
        let (chunks, summary) = chunks(&database, &nodes(2, 1));
        assert_eq!(chunks.of, [0, 1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 0, 1, 2, 3, 4]);
        assert_eq!(chunks.nodes, [(0, true); 8]);
        assert!(summary.objects.iter().all(|chunk| chunk.load_seconds == 2.0 && chunk.pe == 0));
        assert_eq!(summary.edges, [edge(0, 1, 1)]);
    }

    #[test]
    fn heavy_objects_have_a_chunk_of_their_own_and_fixed_ones_are_background() {
        let mut database = testing::database(2, &[(1.0, 0), (100.0, 0), (1.0, 0), (2.0, 1), (3.0, 1)]);
        database.objects[3].migratable = false;
        let (chunks, summary) = chunks(&database, &nodes(2, 1));
        assert_eq!(chunks.of, [0, 1, 2, 4, 3]);
        assert_eq!(chunks.nodes, [(0, true), (0, true), (0, true), (1, true), (1, false)]);
        assert_eq!((summary.objects[4].load_seconds, summary.pes[1].background_seconds), (0.0, 2.0));
    }

    #[test]
    fn chunks_are_few() {
        for loads in [[0.0, 0.0, 0.0], [1.0, 0.0, 5.0], [1e-12, 1e9, 1.0]] {
            let objects: Vec<(f64, u32)> = (0..3000).map(|at| (loads[at % 3], (at % 8) as u32)).collect();
            let (chunks, _) = chunks(&testing::database(8, &objects), &nodes(8, 4));
            // Small objects before and after one that is larger than the share are chunks, too.
            let most = 2 * 8 * CHUNKS_PER_PE + 2;
            assert!(chunks.nodes.len() <= most || loads[1] == 1e9, "{}", chunks.nodes.len());
        }
    }

    #[test]
    fn a_node_is_as_fast_as_its_pes_that_can_get_objects() {
        let mut database = testing::database(5, &[(6.0, 4), (6.0, 4)]);
        database.pes[0] = PeRecord { speed: 2.0, background_seconds: 3.0, ..PeRecord::default() };
        database.pes[2].available = false;
        // Above the level that 12 s of work reach.
        database.pes[3].background_seconds = 100.0;
        let goal = Goal::of(&database);
        let node = joined(&database, &[0, 1, 2, 3], &goal);
        assert_eq!((node.speed, node.background_seconds, node.available), (3.0, 2.0, true));
        let node = joined(&database, &[2, 3], &goal);
        assert_eq!((node.speed, node.available), (2.0, false));
    }

    #[test]
    fn extreme_numbers_are_scaled() {
        let mut database = testing::database(4, &[(1e30, 0); 100]);
        database.pes.iter_mut().for_each(|pe| pe.speed = 1e30);
        chunks(&database, &nodes(4, 2));
        database.pes.iter_mut().for_each(|pe| pe.speed = 1e-30);
        chunks(&database, &nodes(4, 2));
    }
}

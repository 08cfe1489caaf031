//! The distances that the bytes of a placement travel, and a lower bound of their sum.
//!
//! The bound holds for limits of the number of objects on a PE. `PoiseLB` has another one, for limits of loads (`poise/bound.rs`).

use rayon::prelude::*;

use equipoise_model::database::{Edge, End};
use equipoise_model::graph::Graph;
use equipoise_model::{Database, Topology};

use super::{Communication, ratio};

/// Ratio of the time of a single distance query to the time per entry of a row of distances.
const ROW_ADVANTAGE: usize = 8;

/// The maximum number of PEs for which [`hop_bytes_bound`] computes the distances between all pairs.
pub const MAX_BOUND_PES: usize = 1 << 14;

/// The maximum number of edges [`hop_bytes_bound`] sorts, at 32 bytes each.
pub const MAX_BOUND_EDGES: usize = 1 << 24;

/// Hop-bytes if the first vertices of `graph` are on the PEs `places` and the following ones on `anchors`.
pub(crate) fn hop_bytes(graph: &Graph, anchors: &[u32], places: &[u32], topology: &dyn Topology) -> u128 {
    let place = |vertex: usize| places.get(vertex).copied().unwrap_or_else(|| anchors[vertex - places.len()]);
    let pes = topology.pes();
    let (mut row, mut others) = (vec![0; pes], Vec::new());
    let mut sum = 0;
    for vertex in 0..graph.vertices() {
        let higher = || graph.neighbors(vertex).filter(|&(other, _)| other > vertex);
        let add =
            |sum, ((_, bytes), distance): ((usize, u64), u32)| sum + u128::from(bytes) * u128::from(distance);
        // Vertices with many neighbors use a whole row of distances.
        if graph.degree(vertex) * ROW_ADVANTAGE < pes {
            others.clear();
            others.extend(higher().map(|(other, _)| place(other)));
            topology.distances_to(place(vertex) as usize, &others, &mut row[..others.len()]);
            sum = higher().zip(row.iter().copied()).fold(sum, add);
        } else {
            topology.distances_from(place(vertex) as usize, &mut row);
            sum = higher().map(|(other, bytes)| ((other, bytes), row[place(other) as usize])).fold(sum, add);
        }
    }
    sum
}

/// The communication metrics of `placement`, except those of links.
pub(crate) fn travel(database: &Database, topology: &dyn Topology, placement: &[u32]) -> Communication {
    let mut sums = Communication::default();
    let remote = Remote::of(database, topology.pes(), placement, |edge, is_remote| {
        sums.total_messages = sums.total_messages.saturating_add(edge.messages);
        sums.total_bytes = sums.total_bytes.saturating_add(edge.bytes);
        if is_remote {
            sums.remote_messages = sums.remote_messages.saturating_add(edge.messages);
            sums.remote_bytes = sums.remote_bytes.saturating_add(edge.bytes);
        }
    });
    let mut row = Vec::new();
    for from in 0..topology.pes() {
        let receivers = remote.receivers(from);
        let mut add = |bytes: u64, distance: u32| {
            sums.hop_bytes += u128::from(bytes) * u128::from(distance);
            sums.max_dilation = sums.max_dilation.max(distance);
        };
        if receivers.len() * ROW_ADVANTAGE >= topology.pes() {
            row.resize(topology.pes(), 0);
            topology.distances_from(from, &mut row);
            receivers.for_each(|(to, bytes)| add(bytes, row[to as usize]));
        } else {
            receivers.for_each(|(to, bytes)| add(bytes, topology.distance(from, to as usize)));
        }
    }
    sums.hops_per_byte = ratio(sums.hop_bytes as f64, sums.total_bytes as f64, 0.0);
    sums.hops_per_remote_byte = ratio(sums.hop_bytes as f64, sums.remote_bytes as f64, 0.0);
    sums
}

/// The edges between different PEs, grouped by the PE they leave.
pub(super) struct Remote<'a> {
    database: &'a Database,
    placement: &'a [u32],
    /// Start of the group of each PE in `edges`, and the end of the last group.
    first: Vec<usize>,
    /// Numbers of edges, ascending within a group; not the edges, because a database may have a hundred million.
    edges: Vec<u32>,
}

impl<'a> Remote<'a> {
    /// Groups the edges of `database`. Calls `see` with each edge and whether it is remote.
    ///
    /// # Panics
    /// When there are more than 2^32 edges.
    pub(super) fn of(
        database: &'a Database,
        pes: usize,
        placement: &'a [u32],
        mut see: impl FnMut(&Edge, bool),
    ) -> Remote<'a> {
        let numbers = u32::try_from(database.edges.len()).expect("edges are numbered in 32 bits");
        let mut first = vec![0; pes + 1];
        for edge in &database.edges {
            let (from, to) = (edge.from.pe(placement), edge.to.pe(placement));
            see(edge, from != to);
            first[from as usize + 1] += usize::from(from != to);
        }
        for pe in 0..pes {
            first[pe + 1] += first[pe];
        }
        let mut next = first.clone();
        let mut edges = vec![0; first[pes]];
        for (edge, number) in database.edges.iter().zip(0..numbers) {
            let from = edge.from.pe(placement);
            if from != edge.to.pe(placement) {
                edges[next[from as usize]] = number;
                next[from as usize] += 1;
            }
        }
        Remote { database, placement, first, edges }
    }

    /// The traffic that leaves PE `from`: (receiving PE, bytes), one entry per edge.
    pub(super) fn receivers(&self, from: usize) -> impl ExactSizeIterator<Item = (u32, u64)> {
        let numbers = self.edges[self.first[from]..self.first[from + 1]].iter();
        numbers.map(|&number| {
            let edge = &self.database.edges[number as usize];
            (edge.to.pe(self.placement), edge.bytes)
        })
    }
}

/// Lower bound of hop-bytes over all placements with at most `objects_per_pe` objects per PE, on any PEs. `None` if no
/// such placement exists, on more than [`MAX_BOUND_PES`] PEs, and with more than [`MAX_BOUND_EDGES`] edges.
///
/// The bound places the heaviest partners of each object on the nearest PEs. Their distances are the least around any
/// PE of the machine (rearrangement inequality). Each edge is counted at both of its ends, so half of the sum over all
/// objects is the bound. Traffic between ends that cannot move is exact. Traffic between a PE and a movable object
/// counts 0, since both may share a PE.
pub fn hop_bytes_bound(database: &Database, topology: &dyn Topology, objects_per_pe: usize) -> Option<u128> {
    let pes = topology.pes();
    let too_large = pes > MAX_BOUND_PES || database.edges.len() > MAX_BOUND_EDGES;
    if too_large || objects_per_pe.saturating_mul(pes) < database.objects.len() {
        return None;
    }
    let home = |end: End| match end {
        End::Pe(pe) => Some(pe as usize),
        End::Object(object) => {
            let o = &database.objects[object as usize];
            (!o.migratable).then_some(o.pe as usize)
        }
    };
    let mut fixed = 0;
    let mut partners = Vec::new();
    for edge in database.edges.iter().filter(|edge| edge.from != edge.to) {
        match (home(edge.from), home(edge.to), edge.from, edge.to) {
            (Some(a), Some(b), ..) => fixed += u128::from(edge.bytes) * u128::from(topology.distance(a, b)),
            (_, _, End::Object(a), End::Object(b)) => {
                partners.extend([(a, b, edge.bytes), (b, a, edge.bytes)]);
            }
            _ => {}
        }
    }
    partners.par_sort_unstable();
    let same_object = |a: &(u32, u32, u64), b: &(u32, u32, u64)| a.0 == b.0;
    let most = partners.chunk_by(same_object).map(|own| volumes(own).count()).max().unwrap_or(0);
    // The object itself occupies one slot.
    let nearest = nearest(topology, most / objects_per_pe.max(1) + 1);
    let (mut both_ends, mut heaviest_first) = (0, Vec::new());
    for own in partners.chunk_by(same_object) {
        heaviest_first.clear();
        heaviest_first.extend(volumes(own));
        heaviest_first.sort_unstable_by(|a, b| b.cmp(a));
        for (rank, &bytes) in heaviest_first.iter().enumerate() {
            both_ends += u128::from(bytes) * u128::from(nearest[(rank + 1) / objects_per_pe]);
        }
    }
    Some(fixed + both_ends.div_ceil(2))
}

/// The volumes between one object and each of its partners, from its sorted (object, partner, bytes) entries.
fn volumes(own: &[(u32, u32, u64)]) -> impl Iterator<Item = u64> {
    let sum = |edges: &[(u32, u32, u64)]| edges.iter().fold(0u64, |sum, edge| sum.saturating_add(edge.2));
    own.chunk_by(|a, b| a.1 == b.1).map(sum)
}

/// For `k < count`: the distance of the `k`-th nearest PE, minimised over all PEs (each PE is its own 0-th nearest).
fn nearest(topology: &dyn Topology, count: usize) -> Vec<u32> {
    let pes = topology.pes();
    let count = count.min(pes);
    let of_one = |row: &mut Vec<u32>, pe: usize| {
        row.resize(pes, 0);
        topology.distances_from(pe, row);
        if count < pes {
            row.select_nth_unstable(count);
        }
        let mut nearest = row[..count].to_vec();
        nearest.sort_unstable();
        nearest
    };
    let least = |mut a: Vec<u32>, b: Vec<u32>| {
        a.iter_mut().zip(b).for_each(|(a, b)| *a = b.min(*a));
        a
    };
    (0..pes).into_par_iter().map_init(Vec::new, of_one).reduce(|| vec![u32::MAX; count], least)
}

//! `mcf:cuts`: a time that no routing can go below, because of what has to leave some part of the machine.
//!
//! For a set of vertices, what is sent from within to without takes at least its bytes over the bandwidths of all links
//! that lead out; the same the other way round. The largest of these is a bound of `mcf:optimal` (and the optimum
//! itself for one commodity, L. R. Ford, D. R. Fulkerson 1956, but not for several). There are too many sets, so
//! these are looked at: every vertex alone; what is cut off when a cable is cut; and the vertices within any
//! distance of any vertex.

use std::collections::VecDeque;

use super::commodities::Commodities;
use super::mcf_optimal::wiring::Wiring;
use crate::{Database, Topology};

/// The most vertices times links of a machine whose cuts are looked at.
pub const MAX_WORK: usize = 1 << 24;

/// Seconds that the communication of a placement takes at least, however it is routed; `None` where the machine has
/// more than [`MAX_WORK`], or is a product, whose cores and nodes no links join.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn bound(database: &Database, machine: &dyn Topology, placement: &[u32]) -> Option<f64> {
    let wiring = Wiring::of(machine);
    if wiring.vertices.saturating_mul(wiring.ends.len()) > MAX_WORK {
        return None;
    }
    let commodities = Commodities::of(database);
    let places = commodities.places(placement);
    let mut between = commodities.sent().map(|(from, to, _)| (places[from], places[to]));
    if !between.all(|(from, to)| from == to || wiring.has_route(machine, from, to)) {
        return None;
    }
    let vertex = |at: usize| wiring.vertex_of[places[at] as usize];
    let sent = commodities.sent().map(|(from, to, bytes)| (vertex(from), vertex(to), bytes));
    let mut cuts = Cuts::of(&wiring, machine, sent);
    let mut most = 0.0f64;
    for vertex in 0..wiring.vertices {
        most = most.max(cuts.grow(&[vertex]));
        cuts.clear();
        let (order, distance) = search(&wiring, &cuts.leaving, vertex, None);
        // A ball is whole when the next vertex is farther away.
        for ball in order.chunk_by(|a, b| distance[*a] == distance[*b]) {
            most = most.max(cuts.grow(ball));
        }
        cuts.clear();
    }
    for &[from, to] in &wiring.ends {
        let (order, distance) = search(&wiring, &cuts.leaving, from, Some([from, to]));
        if distance[to] == u32::MAX {
            most = most.max(cuts.grow(&order));
            cuts.clear();
        }
    }
    Some(most)
}

/// Seconds that the communication takes at least wherever the objects are, one on a PE: all that an object sends leaves
/// its PE, and all that it is sent comes there, over links of at most so much bandwidth as those of any PE together. `None` as in [`bound`].
pub fn bound_of_any(database: &Database, machine: &dyn Topology) -> Option<f64> {
    let wiring = Wiring::of(machine);
    let pes = machine.pes();
    let has_routes = || {
        let pe = |pair: usize| ((pair / pes) as u32, (pair % pes) as u32);
        (0..pes * pes).map(pe).all(|(from, to)| from == to || wiring.has_route(machine, from, to))
    };
    if pes.saturating_mul(pes) > MAX_WORK || !has_routes() {
        return None;
    }
    let commodities = Commodities::of(database);
    let mut bandwidth = vec![[0.0f64; 2]; wiring.vertices];
    for (link, &[from, to]) in wiring.ends.iter().enumerate() {
        bandwidth[from][0] += machine.link(link).bandwidth;
        bandwidth[to][1] += machine.link(link).bandwidth;
    }
    let most = |way: usize| wiring.vertex_of.iter().map(|&vertex| bandwidth[vertex][way]).fold(0.0, f64::max);
    let mut bytes = [0u64; 2];
    for task in 0..commodities.tasks {
        let partners = commodities.partners(task);
        bytes[0] = bytes[0].max(partners.iter().map(|partner| partner.sent_bytes).sum());
        bytes[1] = bytes[1].max(partners.iter().map(|partner| partner.received_bytes).sum());
    }
    let seconds = |way: usize| if most(way) > 0.0 { bytes[way] as f64 / most(way) } else { 0.0 };
    Some(seconds(0).max(seconds(1)))
}

/// What rounding leaves of all bandwidths, at most.
const ROUNDING: f64 = 1e-12;

/// A set of vertices that grows, and what crosses its border.
struct Cuts {
    /// By vertex: the links that leave it, and those that lead to it.
    leaving: Vec<Vec<(usize, f64)>>,
    entering: Vec<Vec<(usize, f64)>>,
    /// By vertex: what it sends, and what it is sent.
    to: Vec<Vec<(usize, f64)>>,
    from: Vec<Vec<(usize, f64)>>,
    is_within: Vec<bool>,
    /// Bytes and bandwidths, each out of the set, and into it.
    sums: [[f64; 2]; 2],
    /// The bandwidth of all links.
    most: f64,
}

impl Cuts {
    fn of(wiring: &Wiring, machine: &dyn Topology, sent: impl Iterator<Item = (usize, usize, u64)>) -> Self {
        let none = || vec![Vec::new(); wiring.vertices];
        let mut cuts = Cuts {
            leaving: none(),
            entering: none(),
            to: none(),
            from: none(),
            is_within: vec![false; wiring.vertices],
            sums: [[0.0; 2]; 2],
            most: 0.0,
        };
        for (link, &[from, to]) in wiring.ends.iter().enumerate() {
            let bandwidth = machine.link(link).bandwidth;
            cuts.leaving[from].push((to, bandwidth));
            cuts.entering[to].push((from, bandwidth));
            cuts.most += bandwidth;
        }
        for (from, to, bytes) in sent.filter(|(from, to, _)| from != to) {
            cuts.to[from].push((to, bytes as f64));
            cuts.from[to].push((from, bytes as f64));
        }
        cuts
    }

    fn clear(&mut self) {
        self.is_within.fill(false);
        self.sums = [[0.0; 2]; 2];
    }

    /// Takes vertices in; the seconds of the cut then, 0 if nothing is left without.
    fn grow(&mut self, vertices: &[usize]) -> f64 {
        for &vertex in vertices {
            self.is_within[vertex] = true;
            for (rows, kind, way) in
                [(&self.to, 0, 0), (&self.from, 0, 1), (&self.leaving, 1, 0), (&self.entering, 1, 1)]
            {
                for &(other, amount) in rows[vertex].iter().filter(|(other, _)| *other != vertex) {
                    // What led here from within no longer leads out.
                    match self.is_within[other] {
                        true => self.sums[kind][1 - way] -= amount,
                        false => self.sums[kind][way] += amount,
                    }
                }
            }
        }
        let seconds = |way: usize| {
            let [bytes, bandwidth] = self.sums.map(|sums| sums[way]);
            // What is left of a sum that should be nothing is rounding.
            if bandwidth > ROUNDING * self.most { bytes / bandwidth } else { 0.0 }
        };
        seconds(0).max(seconds(1))
    }
}

/// The vertices that can be reached from one, nearest first, and their distances, without the links between two that
/// are `cut`.
fn search(
    wiring: &Wiring,
    leaving: &[Vec<(usize, f64)>],
    start: usize,
    cut: Option<[usize; 2]>,
) -> (Vec<usize>, Vec<u32>) {
    let mut distance = vec![u32::MAX; wiring.vertices];
    distance[start] = 0;
    let (mut order, mut queue) = (Vec::new(), VecDeque::from([start]));
    while let Some(vertex) = queue.pop_front() {
        order.push(vertex);
        for &(next, _) in &leaving[vertex] {
            let is_cut = cut.is_some_and(|[a, b]| [vertex, next] == [a, b] || [vertex, next] == [b, a]);
            if distance[next] == u32::MAX && !is_cut {
                distance[next] = distance[vertex] + 1;
                queue.push_back(next);
            }
        }
    }
    (order, distance)
}

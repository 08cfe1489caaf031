//! A machine as a graph of vertices and arcs, and what is left of it without what hangs by one cable.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::paths::cheapest;
use super::stars::{self, Star, Table};
use super::{MAX_VARIABLES, Ways};
use crate::Topology;

/// The vertices that links join. Links that meet at a vertex name it alike in [`crate::topology::Link::name`]; that this is
/// so is checked along every route that is used ([`Wiring::carry`]), so that other names are refused, and not misread.
pub(crate) struct Wiring {
    /// How many vertices there are.
    pub(crate) vertices: usize,
    /// By link: the vertex it leaves, and that it leads to.
    pub(crate) ends: Vec<[usize; 2]>,
    /// By link: how much of the distance it is.
    lengths: Vec<u32>,
    /// By PE: the vertex it is.
    pub(crate) vertex_of: Vec<usize>,
}

impl Wiring {
    pub(crate) fn of(machine: &dyn Topology) -> Self {
        let mut number_of = FxHashMap::<String, usize>::default();
        let mut number = |name: &str| {
            let next = number_of.len();
            *number_of.entry(name.to_string()).or_insert(next)
        };
        let (mut ends, mut lengths) = (Vec::new(), Vec::new());
        for link in (0..machine.links()).map(|link| machine.link(link)) {
            let (from, to) = link.name.split_once(" -> ").unwrap_or((&link.name, &link.name));
            ends.push([number(from), number(to)]);
            lengths.push(link.length);
        }
        // A PE is where its routes begin; the only one of a machine is anywhere.
        let mut route = Vec::new();
        let vertex = |pe: usize| {
            route.clear();
            machine.route(pe, usize::from(pe == 0).min(machine.pes() - 1), &mut route);
            route.first().map_or(0, |&link| ends[link][0])
        };
        let vertex_of = (0..machine.pes()).map(vertex).collect();
        Wiring { vertices: number_of.len().max(1), ends, lengths, vertex_of }
    }

    /// The bytes over every link when these go from PE to PE by the machine's own routes; `None` if one does not lead from
    /// vertex to vertex. In products it does not: cores and their node are joined by no link there, so nothing is known
    /// of other routes.
    pub(crate) fn carry(
        &self,
        machine: &dyn Topology,
        sent: impl Iterator<Item = (u32, u32, u64)>,
    ) -> Option<Vec<u64>> {
        let (mut loads, mut route) = (vec![0u64; self.ends.len()], Vec::new());
        for (from, to, bytes) in sent.filter(|(from, to, _)| from != to) {
            route.clear();
            machine.route(from as usize, to as usize, &mut route);
            let mut at = self.vertex_of[from as usize];
            for &link in &route {
                let [tail, head] = self.ends[link];
                if tail != at {
                    return None;
                }
                at = head;
                loads[link] = loads[link].saturating_add(bytes);
            }
            if at != self.vertex_of[to as usize] {
                return None;
            }
        }
        Some(loads)
    }
}

/// A link between vertices of the core.
pub(super) struct Arc {
    pub(super) link: usize,
    /// Its ends, as vertices of the core.
    from: usize,
    to: usize,
    /// How much of the distance it is.
    length: u32,
}

impl Arc {
    /// Its ends, in the order in which they are met on the way from the hub of a star; what goes to the hub crosses the arc
    /// from the second to the first.
    pub(super) fn ends(&self, star: &Star) -> [usize; 2] {
        if star.is_inward { [self.to, self.from] } else { [self.from, self.to] }
    }
}

/// What is left when vertices that hang by one cable have been taken off, one after the other.
pub(super) struct Core {
    /// How many vertices it has.
    pub(super) vertices: usize,
    /// Its links.
    pub(super) arcs: Vec<Arc>,
    /// What its vertices send each other; where there are mirrors, one demand of every two.
    pub(super) stars: Vec<Star>,
    /// By arc: one that leads back and is as fast and long. Only where everybody is sent as much as he sends: then what
    /// comes back can take the ways by which something went, and both together load an arc and its mirror alike.
    pub(super) mirrors: Option<Vec<usize>>,
    /// By star: the arcs that its bytes may take, ascending.
    pub(super) usable: Vec<Vec<u32>>,
    /// By link of the machine: the bytes that have no other way; 0 for links of the core.
    pub(super) forced: Vec<u64>,
}

impl Core {
    /// The core of a machine with these bandwidths, by link, on which these bytes are sent between PEs; the whole machine if
    /// nothing `peels` off. `None` if there would be more than [`MAX_VARIABLES`] flows, which are counted before they
    /// take memory.
    pub(super) fn of(
        (wiring, bandwidth): (&Wiring, &[f64]),
        sent: impl Iterator<Item = (u32, u32, u64)>,
        ways: Ways,
        peels: bool,
    ) -> Option<Self> {
        let (mut to, mut from): (Table, Table) =
            (vec![BTreeMap::new(); wiring.vertices], vec![BTreeMap::new(); wiring.vertices]);
        for (a, b, bytes) in sent {
            let [a, b] = [a, b].map(|pe| wiring.vertex_of[pe as usize]);
            if a != b {
                add(to[a].entry(b).or_default(), bytes);
                add(from[b].entry(a).or_default(), bytes);
            }
        }
        let mut forced = vec![0; wiring.ends.len()];
        let mut is_gone = vec![false; wiring.vertices];
        if peels {
            peel(wiring, &mut is_gone, &mut to, &mut from, &mut forced);
        }
        let mut number = vec![0; wiring.vertices];
        let mut vertices = 0;
        for vertex in (0..wiring.vertices).filter(|&vertex| !is_gone[vertex]) {
            number[vertex] = vertices;
            vertices += 1;
        }
        let left = wiring.ends.iter().enumerate().filter(|(_, ends)| !ends.iter().any(|&end| is_gone[end]));
        let arcs: Vec<Arc> = left
            .filter(|(_, [from, to])| from != to)
            .map(|(link, &[from, to])| Arc {
                link,
                from: number[from],
                to: number[to],
                length: wiring.lengths[link],
            })
            .collect();
        let mirrors = if to == from { mirrors(&arcs, bandwidth) } else { None };
        let mut stars = if mirrors.is_some() { stars::of_pairs(&to) } else { stars::of(&to) };
        for star in &mut stars {
            star.hub = number[star.hub];
            star.ends.iter_mut().for_each(|(end, _)| *end = number[*end]);
        }
        let mut core = Core { vertices, arcs, stars, mirrors, usable: Vec::new(), forced };
        let mut flows = 0;
        for star in &core.stars {
            let usable = core.usable_by(star, ways);
            flows += usable.len();
            if flows > MAX_VARIABLES {
                return None;
            }
            core.usable.push(usable);
        }
        Some(core)
    }

    /// How many flows there are: pairs of a star and an arc it may use.
    pub(super) fn flows(&self) -> usize {
        self.usable.iter().map(Vec::len).sum()
    }

    /// The arcs that bytes of a star may take: none need come back to the hub.
    fn usable_by(&self, star: &Star, ways: Ways) -> Vec<u32> {
        let ends = |arc: u32| self.arcs[arc as usize].ends(star);
        let all = (0..self.arcs.len() as u32).filter(|&arc| ends(arc)[1] != star.hub);
        if ways == Ways::Any {
            return all.collect();
        }
        // Sums of lengths are exact.
        let length = |arc: u32| f64::from(self.arcs[arc as usize].length);
        let mut leaving = vec![Vec::new(); self.vertices];
        for arc in 0..self.arcs.len() as u32 {
            let [near, far] = ends(arc);
            leaving[near].push((far, length(arc)));
        }
        let distance = cheapest(self.vertices, star.hub, |vertex| leaving[vertex].iter().copied());
        // A path of such arcs is as long as its end is away.
        let is_onward = |arc: &u32| {
            let [near, far] = ends(*arc);
            distance[near].is_finite() && distance[far] == distance[near] + length(*arc)
        };
        all.filter(is_onward).collect()
    }

    /// By vertex, by way from the hub of a star, which goes by its number: the vertices that come after it, and the arcs
    /// between them, of those that bytes may take.
    pub(super) fn onward(&self, number: usize) -> Vec<Vec<(usize, usize)>> {
        let mut onward = vec![Vec::new(); self.vertices];
        for arc in self.usable[number].iter().map(|&arc| arc as usize) {
            let [near, far] = self.arcs[arc].ends(&self.stars[number]);
            onward[near].push((far, arc));
        }
        onward
    }
}

/// By arc: one that leads back and is as fast and long, each the mirror of one; `None` where some have none.
fn mirrors(arcs: &[Arc], bandwidth: &[f64]) -> Option<Vec<usize>> {
    let mut waiting = FxHashMap::<_, Vec<usize>>::default();
    let mut mirrors = vec![0; arcs.len()];
    for (number, &Arc { link, from, to, length }) in arcs.iter().enumerate() {
        let key = |ends: [usize; 2]| (ends, bandwidth[link].to_bits(), length);
        match waiting.get_mut(&key([to, from])).and_then(Vec::pop) {
            Some(back) => (mirrors[number], mirrors[back]) = (back, number),
            None => waiting.entry(key([from, to])).or_default().push(number),
        }
    }
    waiting.values().all(Vec::is_empty).then_some(mirrors)
}

/// Takes off vertices whose only neighbor is joined to them by one link each way; what they exchange is then
/// exchanged by that neighbor.
fn peel(wiring: &Wiring, is_gone: &mut [bool], to: &mut Table, from: &mut Table, forced: &mut [u64]) {
    let mut links = vec![Vec::new(); wiring.vertices];
    for (link, &[a, b]) in wiring.ends.iter().enumerate() {
        links[a].push(link);
        links[b].push(link);
    }
    let mut queue: Vec<usize> = (0..wiring.vertices).rev().collect();
    while let Some(vertex) = queue.pop() {
        if is_gone[vertex] {
            continue;
        }
        let other = |link: usize| {
            let [a, b] = wiring.ends[link];
            if a == vertex { b } else { a }
        };
        let own: Vec<usize> = links[vertex].iter().copied().filter(|&link| !is_gone[other(link)]).collect();
        let &[first, second] = own.as_slice() else { continue };
        let is_cable = wiring.ends[first] == [wiring.ends[second][1], wiring.ends[second][0]];
        if !is_cable {
            continue;
        }
        let neighbor = other(first);
        let [out, back] = if wiring.ends[first][0] == vertex { [first, second] } else { [second, first] };
        is_gone[vertex] = true;
        merge(vertex, neighbor, to, from, &mut forced[out]);
        merge(vertex, neighbor, from, to, &mut forced[back]);
        queue.push(neighbor);
    }
}

/// Lets `neighbor` have the row of `vertex` in a table, of which the other one is the transpose; all of it crosses
/// the link that has `load`.
fn merge(vertex: usize, neighbor: usize, rows: &mut Table, columns: &mut Table, load: &mut u64) {
    for (other, bytes) in std::mem::take(&mut rows[vertex]) {
        add(load, bytes);
        columns[other].remove(&vertex);
        if other != neighbor {
            add(rows[neighbor].entry(other).or_default(), bytes);
            add(columns[other].entry(neighbor).or_default(), bytes);
        }
    }
}

/// Sums of volumes stop at the largest there is.
fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

//! The 2-core of a machine (S. B. Seidman, 1983), and its demands: vertices that are connected by a single cable are
//! removed repeatedly.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use equipoise_model::search::cheapest;

use super::Ways;
use super::stars::{self, Star, Table};
use crate::cost::unsolved::{MAX_VARIABLES, Unsolved};
use crate::cost::wiring::Wiring;

/// A link between vertices of the core.
pub(super) struct Arc {
    pub(super) link: usize,
    /// Its ends, as vertex numbers of the core.
    from: usize,
    to: usize,
    /// Its length, its part of the distance.
    length: u32,
}

impl Arc {
    /// Its ends, the end nearer to the star's hub first. Bytes of an inward star cross the arc from the second end to
    /// the first.
    pub(super) fn ends(&self, star: &Star) -> [usize; 2] {
        if star.is_inward { [self.to, self.from] } else { [self.from, self.to] }
    }
}

/// The output of a solver.
pub(super) struct Flow {
    /// By star, by arc: bytes. Conserved up to the accuracy of the solver.
    pub(super) flows: Vec<Vec<f64>>,
    /// By arc: its price, at least 0.
    pub(super) prices: Vec<f64>,
}

/// The rest of a machine after vertices that are connected by a single cable have been removed repeatedly.
pub(super) struct Core {
    /// The number of vertices.
    pub(super) vertices: usize,
    /// Its links.
    pub(super) arcs: Vec<Arc>,
    /// The demands between its vertices; if there are mirrors, one demand of each pair.
    pub(super) stars: Vec<Star>,
    /// By arc: the reverse arc of equal bandwidth and length. Only if each pair of vertices exchanges equal bytes in both
    /// directions: the bytes sent back can then take the reverse paths, so that an arc and its mirror carry equal loads.
    pub(super) mirrors: Option<Vec<usize>>,
    /// By star: the arcs that its bytes may take, ascending.
    pub(super) usable: Vec<Vec<u32>>,
    /// By link of the machine: the bytes whose route is forced; 0 for links of the core.
    pub(super) forced: Vec<u64>,
}

impl Core {
    /// The core of a machine with `bandwidth` by link, for `sent` bytes between PEs; the whole machine unless
    /// `removes_trees`.
    ///
    /// # Errors
    /// When there would be more than [`MAX_VARIABLES`] flows; they are counted before memory is allocated.
    pub(super) fn of(
        (wiring, bandwidth): (&Wiring, &[f64]),
        sent: impl Iterator<Item = (u32, u32, u64)>,
        ways: Ways,
        removes_trees: bool,
    ) -> Result<Self, Unsolved> {
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
        let mut removed = vec![false; wiring.vertices];
        if removes_trees {
            remove_trees(wiring, &mut removed, &mut to, &mut from, &mut forced);
        }
        let mut number = vec![0; wiring.vertices];
        let mut vertices = 0;
        for vertex in (0..wiring.vertices).filter(|&vertex| !removed[vertex]) {
            number[vertex] = vertices;
            vertices += 1;
        }
        let left = wiring.ends.iter().enumerate().filter(|(_, ends)| !ends.iter().any(|&end| removed[end]));
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
        let mut stars = stars::of(&to, mirrors.is_some());
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
                return Err(Unsolved::Variables);
            }
            core.usable.push(usable);
        }
        Ok(core)
    }

    /// The number of flows: pairs of a star and an arc that it may use.
    pub(super) fn flows(&self) -> usize {
        self.usable.iter().map(Vec::len).sum()
    }

    /// The arcs that bytes of a star may take. Arcs back to the hub are excluded.
    fn usable_by(&self, star: &Star, ways: Ways) -> Vec<u32> {
        let ends = |arc: u32| self.arcs[arc as usize].ends(star);
        let all = (0..self.arcs.len() as u32).filter(|&arc| ends(arc)[1] != star.hub);
        if ways == Ways::Any {
            return all.collect();
        }
        // Lengths are integers, so their sums in f64 are exact.
        let length = |arc: u32| f64::from(self.arcs[arc as usize].length);
        let mut leaving = vec![Vec::new(); self.vertices];
        for arc in 0..self.arcs.len() as u32 {
            let [near, far] = ends(arc);
            leaving[near].push((far, length(arc)));
        }
        let distance = cheapest(self.vertices, star.hub, |vertex| leaving[vertex].iter().copied());
        // Any path of such arcs is a shortest path.
        let is_onward = |arc: &u32| {
            let [near, far] = ends(*arc);
            distance[near].is_finite() && distance[far] == distance[near] + length(*arc)
        };
        all.filter(is_onward).collect()
    }

    /// By vertex: (next vertex, arc) of each usable arc, in the direction away from the hub of the star with this number.
    pub(super) fn onward(&self, number: usize) -> Vec<Vec<(usize, usize)>> {
        let mut onward = vec![Vec::new(); self.vertices];
        for arc in self.usable[number].iter().map(|&arc| arc as usize) {
            let [near, far] = self.arcs[arc].ends(&self.stars[number]);
            onward[near].push((far, arc));
        }
        onward
    }
}

/// By arc: the arc in the opposite direction with the same bandwidth and length, paired; `None` if an arc has none.
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

/// Removes vertices whose only neighbor is joined to them by one link in each direction. Their demands move to that
/// neighbor.
fn remove_trees(wiring: &Wiring, removed: &mut [bool], to: &mut Table, from: &mut Table, forced: &mut [u64]) {
    let mut links = vec![Vec::new(); wiring.vertices];
    for (link, &[a, b]) in wiring.ends.iter().enumerate() {
        links[a].push(link);
        links[b].push(link);
    }
    let mut queue: Vec<usize> = (0..wiring.vertices).rev().collect();
    while let Some(vertex) = queue.pop() {
        if removed[vertex] {
            continue;
        }
        let other = |link: usize| {
            let [a, b] = wiring.ends[link];
            if a == vertex { b } else { a }
        };
        let own: Vec<usize> = links[vertex].iter().copied().filter(|&link| !removed[other(link)]).collect();
        let &[first, second] = own.as_slice() else { continue };
        let is_cable = wiring.ends[first] == [wiring.ends[second][1], wiring.ends[second][0]];
        if !is_cable {
            continue;
        }
        let neighbor = other(first);
        let [out, back] = if wiring.ends[first][0] == vertex { [first, second] } else { [second, first] };
        removed[vertex] = true;
        merge(vertex, neighbor, to, from, &mut forced[out]);
        merge(vertex, neighbor, from, to, &mut forced[back]);
        queue.push(neighbor);
    }
}

/// Adds the row of `vertex` to that of `neighbor`, in one table and in its transpose. All these bytes cross the link
/// whose load is `load`.
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

/// Adds volumes; saturates.
fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

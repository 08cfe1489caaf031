//! `mcf:cuts`: a lower bound of the time of the busiest link for any routing, by cuts of the machine.
//!
//! The bytes sent from a set of vertices to the rest take at least their volume over the sum of the bandwidths of all
//! links that leave the set; likewise in the other direction. The largest of these times is a lower bound of `mcf:optimal`.
//! (It is the optimum for one commodity, L. R. Ford, D. R. Fulkerson 1956, but not for several.) There are too many sets to
//! try all. Three families are evaluated: the two sides of each bridge; the balls of every radius, 0 included, around
//! every vertex; and the clusters joined by links of at least some bandwidth.

use std::collections::BTreeSet;
use std::mem::{swap, take};

use equipoise_model::search::breadth_first;
use equipoise_model::{Database, Topology};

use super::commodities::Commodities;
use super::unsolved::{MAX_CUT_WORK, Unsolved};
use super::wiring::Wiring;

/// Lower bound of the seconds that the communication of a placement takes with any routing.
///
/// # Errors
/// When the work exceeds [`MAX_CUT_WORK`], when the machine has more than [`MAX_LINKS`](super::unsolved::MAX_LINKS) links, or when it
/// is a product, in which no links join cores and their node.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn bound(database: &Database, machine: &dyn Topology, placement: &[u32]) -> Result<f64, Unsolved> {
    let wiring = Wiring::of(machine)?;
    let commodities = Commodities::of(database);
    let steps = wiring.ends.len() + commodities.sent().count();
    if wiring.vertices.saturating_mul(steps) > MAX_CUT_WORK {
        return Err(Unsolved::Cuts);
    }
    let places = commodities.places(placement);
    let sent = || commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
    wiring.carry(machine, sent())?;
    let vertex = |pe: u32| wiring.vertex_of[pe as usize];
    let mut cuts = Cuts::of(&wiring, machine, sent().map(|(a, b, bytes)| (vertex(a), vertex(b), bytes)));
    for vertex in 0..wiring.vertices {
        let (order, distance) = search(&wiring, &cuts.leaving, vertex, None);
        // A ball is complete when the next vertex is farther away.
        for ball in order.chunk_by(|a, b| distance[*a] == distance[*b]) {
            cuts.grow(ball);
        }
        cuts.clear();
    }
    for [from, to] in bridges(&wiring) {
        let (order, _) = search(&wiring, &cuts.leaving, from, Some([from, to]));
        cuts.grow(&order);
        cuts.clear();
    }
    clusters(
        &wiring,
        |link| machine.link(link).bandwidth,
        |within| {
            cuts.grow(within);
            cuts.clear();
        },
    );
    Ok(cuts.seconds)
}

/// Single-linkage clustering: for every bandwidth, calls `visit` with every set of vertices that is connected by links
/// of at least this bandwidth. The directions of links are ignored.
fn clusters(wiring: &Wiring, bandwidth: impl Fn(usize) -> f64, mut visit: impl FnMut(&[usize])) {
    let mut links: Vec<usize> = (0..wiring.ends.len()).collect();
    links.sort_by(|&a, &b| bandwidth(b).total_cmp(&bandwidth(a)));
    let mut cluster_of: Vec<usize> = (0..wiring.vertices).collect();
    let mut members: Vec<Vec<usize>> = (0..wiring.vertices).map(|vertex| vec![vertex]).collect();
    for alike in links.chunk_by(|&a, &b| bandwidth(a) == bandwidth(b)) {
        let mut grown = BTreeSet::new();
        for &link in alike {
            let [mut into, mut from] = wiring.ends[link].map(|end| cluster_of[end]);
            if into == from {
                continue;
            }
            // The smaller cluster is merged into the larger one, so that each vertex changes its cluster O(log n)
            // times.
            if members[into].len() < members[from].len() {
                swap(&mut into, &mut from);
            }
            let moving = take(&mut members[from]);
            for &vertex in &moving {
                cluster_of[vertex] = into;
            }
            members[into].extend(moving);
            grown.remove(&from);
            grown.insert(into);
        }
        for cluster in grown {
            visit(&members[cluster]);
        }
    }
}

/// Lower bound of the seconds of communication over all placements with one object per PE: all bytes that an object sends
/// leave its PE, and all bytes that it receives enter its PE, over at most the largest total bandwidth of any PE's links.
///
/// # Errors
/// When the machine has more than [`MAX_LINKS`](super::unsolved::MAX_LINKS) links, or is a product.
pub fn bound_of_any(database: &Database, machine: &dyn Topology) -> Result<f64, Unsolved> {
    let wiring = Wiring::of(machine)?;
    // If the links meet on the routes from PE 0 to every PE and back, they meet on all routes.
    wiring.carry(machine, (1..machine.pes() as u32).flat_map(|pe| [(0, pe, 0), (pe, 0, 0)]))?;
    let commodities = Commodities::of(database);
    let mut bandwidth = vec![[0.0f64; 2]; wiring.vertices];
    for (link, &[from, to]) in wiring.ends.iter().enumerate() {
        bandwidth[from][0] += machine.link(link).bandwidth;
        bandwidth[to][1] += machine.link(link).bandwidth;
    }
    let most = |way: usize| wiring.vertex_of.iter().map(|&vertex| bandwidth[vertex][way]).fold(0.0, f64::max);
    let mut bytes = [0u64; 2];
    for task in 0..commodities.tasks {
        let sums = commodities.partners(task).iter().fold([0u64; 2], |[out, back], partner| {
            [out.saturating_add(partner.sent_bytes), back.saturating_add(partner.received_bytes)]
        });
        bytes = [bytes[0].max(sums[0]), bytes[1].max(sums[1])];
    }
    let seconds = |way: usize| if most(way) > 0.0 { bytes[way] as f64 / most(way) } else { 0.0 };
    Ok(seconds(0).max(seconds(1)))
}

/// The cables whose removal disconnects their ends, ignoring the directions of links (R. E. Tarjan, A note on finding the
/// bridges of a graph, 1974), as [end nearer to the root of the search, farther end].
fn bridges(wiring: &Wiring) -> Vec<[usize; 2]> {
    let mut neighbors = vec![Vec::new(); wiring.vertices];
    for &[a, b] in wiring.ends.iter().filter(|[a, b]| a != b) {
        neighbors[a].push(b);
        neighbors[b].push(a);
    }
    for others in &mut neighbors {
        others.sort_unstable();
        // All links of a cable, in both directions and in parallel, are cut together.
        others.dedup();
    }
    const UNSEEN: usize = usize::MAX;
    let (mut order, mut lowest) = (vec![UNSEEN; wiring.vertices], vec![UNSEEN; wiring.vertices]);
    let (mut bridges, mut seen) = (Vec::new(), 0);
    for root in 0..wiring.vertices {
        if order[root] != UNSEEN {
            continue;
        }
        // (vertex, its parent in the search, index of its next neighbor).
        let mut path = vec![(root, UNSEEN, 0)];
        while let Some((vertex, parent, next)) = path.last_mut() {
            let (vertex, parent) = (*vertex, *parent);
            if *next == 0 {
                (order[vertex], lowest[vertex]) = (seen, seen);
                seen += 1;
            }
            let neighbor = neighbors[vertex].get(*next).copied();
            *next += 1;
            match neighbor {
                Some(neighbor) if neighbor == parent => (),
                Some(neighbor) if order[neighbor] == UNSEEN => path.push((neighbor, vertex, 0)),
                Some(neighbor) => lowest[vertex] = lowest[vertex].min(order[neighbor]),
                None => {
                    path.pop();
                    if parent == UNSEEN {
                        continue;
                    }
                    lowest[parent] = lowest[parent].min(lowest[vertex]);
                    if lowest[vertex] > order[parent] {
                        bridges.push([parent, vertex]);
                    }
                }
            }
        }
    }
    bridges
}

/// A growing set of vertices, and the traffic and bandwidth across its border.
struct Cuts {
    /// By vertex: the links that leave it, and the links that enter it, as (other end, bandwidth).
    leaving: Vec<Vec<(usize, f64)>>,
    entering: Vec<Vec<(usize, f64)>>,
    /// By vertex: the bytes it sends, and the bytes it receives, as (other end, bytes).
    to: Vec<Vec<(usize, f64)>>,
    from: Vec<Vec<(usize, f64)>>,
    is_within: Vec<bool>,
    /// Bytes and bandwidths, each out of the set and into it; exact up to rounding.
    sums: [[f64; 2]; 2],
    /// The largest bandwidth sums since their last exact computation.
    peaks: [f64; 2],
    /// The longest time of a cut so far.
    seconds: f64,
}

/// Sums that have fallen below this part of their peak are recomputed.
const RECOMPUTE_BELOW: f64 = 1e-6;

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
            peaks: [0.0; 2],
            seconds: 0.0,
        };
        for (link, &[from, to]) in wiring.ends.iter().enumerate() {
            let bandwidth = machine.link(link).bandwidth;
            cuts.leaving[from].push((to, bandwidth));
            cuts.entering[to].push((from, bandwidth));
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
        self.peaks = [0.0; 2];
    }

    /// Adds vertices to the set and evaluates its cut.
    fn grow(&mut self, vertices: &[usize]) {
        for &vertex in vertices {
            self.is_within[vertex] = true;
            for (rows, kind, way) in
                [(&self.to, 0, 0), (&self.from, 0, 1), (&self.leaving, 1, 0), (&self.entering, 1, 1)]
            {
                for &(other, amount) in rows[vertex].iter().filter(|(other, _)| *other != vertex) {
                    // Links between this vertex and the set no longer cross the border.
                    match self.is_within[other] {
                        true => self.sums[kind][1 - way] -= amount,
                        false => self.sums[kind][way] += amount,
                    }
                }
            }
            for way in [0, 1] {
                self.peaks[way] = self.peaks[way].max(self.sums[1][way]);
            }
        }
        // Subtraction leaves a rounding error, which matters if the remaining sum is small.
        let is_doubtful = (0..2).any(|way| self.sums[1][way] < RECOMPUTE_BELOW * self.peaks[way]);
        if is_doubtful || seconds(self.sums) > self.seconds {
            self.sums = self.crossing();
            self.peaks = self.sums[1];
            self.seconds = self.seconds.max(seconds(self.sums));
        }
    }

    /// Bytes and bandwidths, each out of the set and into it, computed from scratch.
    fn crossing(&self) -> [[f64; 2]; 2] {
        let sum = |rows: &[Vec<(usize, f64)>]| {
            let within = rows.iter().zip(&self.is_within).filter(|it| *it.1);
            let amounts = within.flat_map(|it| it.0).filter(|(other, _)| !self.is_within[*other]);
            // `sum()` of an empty iterator would be -0.
            amounts.fold(0.0, |sum, (_, amount)| sum + amount)
        };
        [[sum(&self.to), sum(&self.from)], [sum(&self.leaving), sum(&self.entering)]]
    }
}

/// The longer of the times out of the set and into it; 0 where nothing crosses.
fn seconds([bytes, bandwidth]: [[f64; 2]; 2]) -> f64 {
    let way = |way: usize| if bandwidth[way] > 0.0 { bytes[way] / bandwidth[way] } else { 0.0 };
    way(0).max(way(1))
}

/// The vertices reachable from `start`, nearest first, and their distances; links between the two vertices of `cut` are
/// ignored.
fn search(
    wiring: &Wiring,
    leaving: &[Vec<(usize, f64)>],
    start: usize,
    cut: Option<[usize; 2]>,
) -> (Vec<usize>, Vec<u32>) {
    let is_cut = |from, to| cut.is_some_and(|[a, b]| [from, to] == [a, b] || [from, to] == [b, a]);
    let next =
        |vertex: usize| leaving[vertex].iter().copied().filter(move |&(next, _)| !is_cut(vertex, next));
    let (mut order, mut distance) = (Vec::new(), vec![u32::MAX; wiring.vertices]);
    for (vertex, by) in breadth_first(wiring.vertices, start, next) {
        order.push(vertex);
        distance[vertex] = by.map_or(0, |(before, _)| distance[before] + 1);
    }
    (order, distance)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::topology;

    use super::*;

    #[test]
    fn a_cable_is_a_bridge_if_its_removal_disconnects_its_ends() {
        for spec in [
            "tree:3:2",
            "mesh:5",
            "torus:4x3",
            "flat:4",
            "platform:litvinov-tree",
            "platform:litvinov-grid",
            "mesh:3x1",
        ] {
            let machine = topology::parse(spec).expect(spec);
            let wiring = Wiring::of(&*machine).expect("a small machine");
            let mut leaving = vec![Vec::new(); wiring.vertices];
            for &[from, to] in &wiring.ends {
                leaving[from].push((to, 1.0));
            }
            let is_bridge = |&[from, to]: &[usize; 2]| {
                from < to && search(&wiring, &leaving, from, Some([from, to])).1[to] == u32::MAX
            };
            let mut expected: Vec<[usize; 2]> = wiring.ends.iter().copied().filter(is_bridge).collect();
            let mut found: Vec<[usize; 2]> =
                bridges(&wiring).into_iter().map(|[a, b]| [a.min(b), a.max(b)]).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, expected, "{spec}");
        }
    }

    /// Two pairs of hosts, each joined by a fast cable, and two slow cables between the pairs: there is no bridge.
    #[test]
    fn clusters_joined_by_several_slow_cables_give_a_bound() {
        let cables = [(0, 1, 1e9), (2, 3, 1e9), (0, 2, 1e6), (1, 3, 1e6)];
        let both = cables.iter().flat_map(|&(a, b, bandwidth)| [(a, b, bandwidth), (b, a, bandwidth)]);
        let links: Vec<(usize, usize, f64)> = both.collect();
        let at =
            |a: usize, b: usize| links.iter().position(|link| (link.0, link.1) == (a, b)).expect("a link");
        let mut routes = Vec::new();
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            // Diagonal pairs route through the other host of the sender's pair.
            let route = if a + b == 3 { vec![at(a, a ^ 1), at(a ^ 1, b)] } else { vec![at(a, b)] };
            routes.push(format!(r#"{{"src": {a}, "dst": {b}, "links": {route:?}}}"#));
        }
        let link = |&(a, b, bandwidth): &(usize, usize, f64)| {
            format!(r#"{{"src": {a}, "dst": {b}, "bw": {bandwidth}, "lat": 1e-6}}"#)
        };
        let links: Vec<String> = links.iter().map(link).collect();
        let text = format!(
            r#"{{"hosts": 4, "vertices": 4, "links": [{}], "routes": [{}]}}"#,
            links.join(", "),
            routes.join(", ")
        );
        let machine = topology::Platform::read("test", &text).expect("a platform");
        let mut database = crate::testing::database(4, &[(1.0, 0); 4]);
        for (from, to) in [(0, 2), (1, 3)] {
            let [from, to] = [from, to].map(equipoise_model::database::End::Object);
            database.edges.push(equipoise_model::database::Edge { from, to, messages: 1, bytes: 1_000_000 });
        }
        let seconds = bound(&database, &machine, &[0, 1, 2, 3]).expect("a small machine");
        assert!((seconds - 1.0).abs() < 1e-9, "2 MB over 2 MB/s take a second, not {seconds}");
    }

    /// The sums of the bandwidths of fast links are rounded by more than the bandwidth of the slow links.
    #[test]
    fn the_bound_is_exact_for_very_different_bandwidths() {
        let machine = topology::parse("fattree:2:3/1e-7:1e9").expect("a tree");
        let mut database = crate::testing::database(6, &[(1.0, 0); 6]);
        for from in 0..6 {
            let [from, to] = [from, (from + 1) % 6].map(equipoise_model::database::End::Object);
            database.edges.push(equipoise_model::database::Edge { from, to, messages: 1, bytes: 1 });
        }
        let places: Vec<u32> = (0..6).collect();
        let found = bound(&database, &*machine, &places).expect("a small machine");
        // One byte leaves each half, over three slow cables.
        assert!((found * 3e-7 - 1.0).abs() < 1e-9, "{found} s");
    }

    /// A ring whose links between 3 and 4, and between 7 and 0, are slow.
    #[test]
    fn finds_clusters_that_several_slow_cables_join() {
        let machine = topology::parse("torus:8").expect("a ring");
        let wiring = Wiring::of(&*machine).expect("a small machine");
        let is_slow = |link: usize| matches!(wiring.ends[link], [3, 4] | [4, 3] | [7, 0] | [0, 7]);
        let mut found = Vec::new();
        let mut keep = |within: &[usize]| {
            found.push(within.to_vec());
            found.last_mut().expect("it was just pushed").sort_unstable();
        };
        clusters(&wiring, |link| if is_slow(link) { 1e6 } else { 1e9 }, &mut keep);
        assert_eq!(found, [vec![0, 1, 2, 3], vec![4, 5, 6, 7], (0..8).collect()]);
    }

    proptest! {
        #[test]
        fn the_bound_is_between_the_cuts_of_single_vertices_and_the_largest_cut(
            edges in prop::collection::vec((0..6usize, 0..6usize, 1..1000u64), 1..12),
            spec in prop::sample::select(&["torus:6", "mesh:3x2", "fattree:2:3/2e9:1e9", "tree:2:3"][..]),
        ) {
            let machine = topology::parse(spec).expect(spec);
            let mut database = crate::testing::database(6, &[(1.0, 0); 6]);
            for &(from, to, bytes) in &edges {
                let [from, to] = [from, to].map(|task| equipoise_model::database::End::Object(task as u32));
                database.edges.push(equipoise_model::database::Edge { from, to, messages: 1, bytes });
            }
            let places = [3, 1, 4, 0, 5, 2];
            let found = bound(&database, &*machine, &places).expect("a small machine");
            // All sets of vertices: no evaluated set has a larger cut than the largest of all sets.
            let wiring = Wiring::of(&*machine).expect("a small machine");
            let mut most = 0.0f64;
            let mut of_one = 0.0f64;
            for set in 1..(1u32 << wiring.vertices) - 1 {
                let within = |vertex: usize| set >> vertex & 1 == 1;
                let vertex = |task: usize| wiring.vertex_of[places[task] as usize];
                let out = edges.iter().filter(|(a, b, _)| within(vertex(*a)) && !within(vertex(*b)));
                let bytes: u64 = out.map(|edge| edge.2).sum();
                let links = wiring.ends.iter().enumerate().filter(|(_, [a, b])| within(*a) && !within(*b));
                let bandwidth: f64 = links.map(|(link, _)| machine.link(link).bandwidth).sum();
                most = most.max(bytes as f64 / bandwidth);
                if set.count_ones() == 1 {
                    of_one = of_one.max(bytes as f64 / bandwidth);
                }
            }
            prop_assert!(found <= most * (1.0 + 1e-12) && found >= of_one * (1.0 - 1e-12), "{of_one} {found} {most}");
        }
    }
}

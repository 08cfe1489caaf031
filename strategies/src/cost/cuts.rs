//! `mcf:cuts`: a time that no routing can go below, because of what has to leave some part of the machine.
//!
//! For a set of vertices, what is sent from within to without takes at least its bytes over the bandwidths of all links
//! that lead out; the same the other way round. The largest of these is a bound of `mcf:optimal` (and the optimum
//! itself for one commodity, L. R. Ford, D. R. Fulkerson 1956, but not for several). There are too many sets, so
//! these are looked at: every vertex alone; what is cut off when a cable is cut; the vertices within any distance of any
//! vertex; and what hangs together by links of any bandwidth or more, such as clusters that slower cables join.

use std::collections::BTreeSet;
use std::mem::{swap, take};

use super::commodities::Commodities;
use super::mcf_optimal::wiring::Wiring;
use super::mcf_optimal::{MAX_LINKS, Unsolved};
use crate::breadth_first::breadth_first;
use crate::{Database, Topology};

/// The most vertices times links and messages of a machine whose cuts are looked at. (It takes seconds.)
pub const MAX_WORK: usize = 1 << 28;

/// Seconds that the communication of a placement takes at least, however it is routed.
///
/// # Errors
/// Where there is more than [`MAX_WORK`], the machine has more than [`MAX_LINKS`], or it is a product, whose cores and
/// nodes no links join.
///
/// # Panics
/// When `placement` is shorter than the objects, or a PE is unknown.
pub fn bound(database: &Database, machine: &dyn Topology, placement: &[u32]) -> Result<f64, Unsolved> {
    let links = machine.links();
    if links > MAX_LINKS {
        return Err(Unsolved::Links { links });
    }
    let wiring = Wiring::of(machine);
    let commodities = Commodities::of(database);
    let steps = wiring.ends.len() + commodities.sent().count();
    if wiring.vertices.saturating_mul(steps) > MAX_WORK {
        return Err(Unsolved::Cuts);
    }
    let places = commodities.places(placement);
    let sent = || commodities.sent().map(|(from, to, bytes)| (places[from], places[to], bytes));
    wiring.carry(machine, sent()).ok_or(Unsolved::Apart)?;
    let vertex = |pe: u32| wiring.vertex_of[pe as usize];
    let mut cuts = Cuts::of(&wiring, machine, sent().map(|(a, b, bytes)| (vertex(a), vertex(b), bytes)));
    for vertex in 0..wiring.vertices {
        cuts.grow(&[vertex]);
        cuts.clear();
        let (order, distance) = search(&wiring, &cuts.leaving, vertex, None);
        // A ball is whole when the next vertex is farther away.
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

/// Shows the vertices that hang together by links of each bandwidth or more, whatever the directions of links: the sets
/// that single linkage finds.
fn clusters(wiring: &Wiring, bandwidth: impl Fn(usize) -> f64, mut show: impl FnMut(&[usize])) {
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
            // The smaller moves, so that no vertex moves often.
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
            show(&members[cluster]);
        }
    }
}

/// Seconds that the communication takes at least wherever the objects are, one on a PE: all that an object sends leaves
/// its PE, and all that it is sent comes there, over links of at most so much bandwidth as those of any PE together.
///
/// # Errors
/// Where the machine has more than [`MAX_LINKS`], or is a product.
pub fn bound_of_any(database: &Database, machine: &dyn Topology) -> Result<f64, Unsolved> {
    let links = machine.links();
    if links > MAX_LINKS {
        return Err(Unsolved::Links { links });
    }
    let wiring = Wiring::of(machine);
    // Where links meet on the ways from one PE and back, they meet.
    wiring
        .carry(machine, (1..machine.pes() as u32).flat_map(|pe| [(0, pe, 0), (pe, 0, 0)]))
        .ok_or(Unsolved::Apart)?;
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

/// The cables without which their ends are apart, whatever the directions of links (R. E. Tarjan, A note on finding the
/// bridges of a graph, 1974), as [nearer to the root of a search, farther].
fn bridges(wiring: &Wiring) -> Vec<[usize; 2]> {
    let mut neighbors = vec![Vec::new(); wiring.vertices];
    for &[a, b] in wiring.ends.iter().filter(|[a, b]| a != b) {
        neighbors[a].push(b);
        neighbors[b].push(a);
    }
    for others in &mut neighbors {
        others.sort_unstable();
        // The links of a cable, there and back or side by side, are cut together.
        others.dedup();
    }
    const UNSEEN: usize = usize::MAX;
    let (mut order, mut lowest) = (vec![UNSEEN; wiring.vertices], vec![UNSEEN; wiring.vertices]);
    let (mut bridges, mut seen) = (Vec::new(), 0);
    for root in 0..wiring.vertices {
        if order[root] != UNSEEN {
            continue;
        }
        // (vertex, where the search came from, the next of its neighbors).
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

/// A set of vertices that grows, and what crosses its border.
struct Cuts {
    /// By vertex: the links that leave it, and those that lead to it.
    leaving: Vec<Vec<(usize, f64)>>,
    entering: Vec<Vec<(usize, f64)>>,
    /// By vertex: what it sends, and what it is sent.
    to: Vec<Vec<(usize, f64)>>,
    from: Vec<Vec<(usize, f64)>>,
    is_within: Vec<bool>,
    /// Bytes and bandwidths, each out of the set, and into it, as far as rounding goes.
    sums: [[f64; 2]; 2],
    /// The largest that the bandwidths were since they were exact.
    peaks: [f64; 2],
    /// The most that the cut of any set so far takes.
    seconds: f64,
}

/// The part of what a sum was below which it is made anew.
const LITTLE: f64 = 1e-6;

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

    /// Takes vertices in, and looks at the cut then.
    fn grow(&mut self, vertices: &[usize]) {
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
            for way in [0, 1] {
                self.peaks[way] = self.peaks[way].max(self.sums[1][way]);
            }
        }
        // What is taken off leaves a rounding error, which counts where little is left.
        let is_doubtful = (0..2).any(|way| self.sums[1][way] < LITTLE * self.peaks[way]);
        if is_doubtful || seconds(self.sums) > self.seconds {
            self.sums = self.crossing();
            self.peaks = self.sums[1];
            self.seconds = self.seconds.max(seconds(self.sums));
        }
    }

    /// Bytes and bandwidths, each out of the set, and into it.
    fn crossing(&self) -> [[f64; 2]; 2] {
        let sum = |rows: &[Vec<(usize, f64)>]| {
            let within = rows.iter().zip(&self.is_within).filter(|it| *it.1);
            let amounts = within.flat_map(|it| it.0).filter(|(other, _)| !self.is_within[*other]);
            // Of nothing this would be -0.
            amounts.fold(0.0, |sum, (_, amount)| sum + amount)
        };
        [[sum(&self.to), sum(&self.from)], [sum(&self.leaving), sum(&self.entering)]]
    }
}

/// Seconds that bytes take with bandwidths, out of a set or into it; 0 where nothing crosses.
fn seconds([bytes, bandwidth]: [[f64; 2]; 2]) -> f64 {
    let way = |way: usize| if bandwidth[way] > 0.0 { bytes[way] / bandwidth[way] } else { 0.0 };
    way(0).max(way(1))
}

/// The vertices that can be reached from one, nearest first, and their distances, without the links between two that
/// are `cut`.
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

    use super::*;
    use crate::topology;

    #[test]
    fn a_cable_is_a_bridge_if_its_ends_are_apart_without_it() {
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
            let wiring = Wiring::of(&*machine);
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

    /// Two pairs of hosts, fast inside of each, and two slow cables between them: no bridge, and no ball around a host.
    #[test]
    fn what_several_slow_cables_carry_between_clusters_is_a_bound() {
        let cables = [(0, 1, 1e9), (2, 3, 1e9), (0, 2, 1e6), (1, 3, 1e6)];
        let both = cables.iter().flat_map(|&(a, b, bandwidth)| [(a, b, bandwidth), (b, a, bandwidth)]);
        let links: Vec<(usize, usize, f64)> = both.collect();
        let at =
            |a: usize, b: usize| links.iter().position(|link| (link.0, link.1) == (a, b)).expect("a link");
        let mut routes = Vec::new();
        for (a, b) in (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            // Those that are across from each other go by the other one of the pair.
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
            let [from, to] = [from, to].map(crate::database::End::Object);
            database.edges.push(crate::database::Edge { from, to, messages: 1, bytes: 1_000_000 });
        }
        let seconds = bound(&database, &machine, &[0, 1, 2, 3]).expect("a small machine");
        assert!((seconds - 1.0).abs() < 1e-9, "2 MB over 2 MB/s take a second, and not {seconds}");
    }

    /// Slow links of which next to nothing is left beside the sums of fast ones.
    #[test]
    fn links_may_be_as_different_as_they_like() {
        let machine = topology::parse("fattree:2:3/1e-7:1e9").expect("a tree");
        let mut database = crate::testing::database(6, &[(1.0, 0); 6]);
        for from in 0..6 {
            let [from, to] = [from, (from + 1) % 6].map(crate::database::End::Object);
            database.edges.push(crate::database::Edge { from, to, messages: 1, bytes: 1 });
        }
        let places: Vec<u32> = (0..6).collect();
        let found = bound(&database, &*machine, &places).expect("a small machine");
        // A byte leaves each half, over three slow cables.
        assert!((found * 3e-7 - 1.0).abs() < 1e-9, "{found} s");
    }

    /// A ring of which the links between 3 and 4, and 7 and 0, are slow.
    #[test]
    fn clusters_that_several_slow_cables_join_are_sets_of_their_own() {
        let machine = topology::parse("torus:8").expect("a ring");
        let wiring = Wiring::of(&*machine);
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
        fn it_is_the_largest_over_the_sets_that_are_looked_at(
            edges in prop::collection::vec((0..6usize, 0..6usize, 1..1000u64), 1..12),
            spec in prop::sample::select(&["torus:6", "mesh:3x2", "fattree:2:3/2e9:1e9", "tree:2:3"][..]),
        ) {
            let machine = topology::parse(spec).expect(spec);
            let mut database = crate::testing::database(6, &[(1.0, 0); 6]);
            for &(from, to, bytes) in &edges {
                let [from, to] = [from, to].map(|task| crate::database::End::Object(task as u32));
                database.edges.push(crate::database::Edge { from, to, messages: 1, bytes });
            }
            let places = [3, 1, 4, 0, 5, 2];
            let found = bound(&database, &*machine, &places).expect("a small machine");
            // All sets of vertices: none of those looked at has a larger cut than the largest of all.
            let wiring = Wiring::of(&*machine);
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

//! Distances that count how long a byte takes: where links have different bandwidths, a hop over a slow link is longer.
//!
//! The distance of two PEs is the mean over both directions of the sum of `length / bandwidth` over the links of the route, relative to the fastest
//! link. So the sum of bytes times distances is that of the times of all links, as hop-bytes are that of their bytes.

use equipoise_model::Topology;
use equipoise_model::topology::{Hierarchy, Link, Shape};
use rayon::prelude::*;

/// The maximum number of PEs, because each pair is routed once.
const MAX_PES: usize = super::distance::MAX_TABLE_BLOCKS;

/// The maximum number of links, because each is looked at. An allocation has all links of its machine.
const MAX_LINKS: usize = 1 << 17;

/// The largest distance. Distances between blocks are sums of up to 16 of them, in 16 bits.
const LARGEST: f64 = 4000.0;

/// A machine with these distances.
pub(crate) struct Timed<'a> {
    machine: &'a dyn Topology,
    /// By pair of PEs, row by row.
    distances: Vec<u16>,
    /// The distance of a hop over the fastest link.
    pub hop: f64,
}

impl<'a> Timed<'a> {
    /// The machine with distances that count bandwidths; none if all links have the same bandwidth, or the machine is larger
    /// than [`MAX_PES`] and [`MAX_LINKS`] say.
    pub fn of(machine: &'a dyn Topology) -> Option<Timed<'a>> {
        let pes = machine.pes();
        if pes > MAX_PES || machine.links() > MAX_LINKS {
            return None;
        }
        let links: Vec<(f64, f64)> = (0..machine.links())
            .map(|link| machine.link(link))
            .map(|link| (link.bandwidth, f64::from(link.length)))
            .collect();
        let fastest = links.iter().map(|link| link.0).fold(0.0, f64::max);
        if links.iter().all(|link| link.0 == fastest) {
            return None;
        }
        let times: Vec<f64> =
            links.into_iter().map(|(bandwidth, length)| length * fastest / bandwidth).collect();
        let time = |from: usize, to: usize, route: &mut Vec<usize>| {
            route.clear();
            machine.route(from, to, route);
            route.iter().map(|&link| times[link]).sum::<f64>()
        };
        let mut exact = vec![0.0; pes * pes];
        exact.par_chunks_mut(pes).enumerate().for_each(|(a, row)| {
            let mut route = Vec::new();
            // Both halves of the table add up in the same order, so it is symmetric.
            let both = |a: usize, b: usize, route: &mut Vec<usize>| time(a, b, route) + time(b, a, route);
            row.iter_mut().enumerate().for_each(|(b, sum)| *sum = both(a.min(b), a.max(b), &mut route) / 2.0);
        });
        let largest = exact.iter().copied().fold(0.0, f64::max);
        if !largest.is_finite() || largest <= 0.0 {
            return None;
        }
        let hop = LARGEST / largest;
        let whole = |(at, distance): (usize, f64)| match at / pes == at % pes {
            true => 0,
            false => (distance * hop).round().max(1.0) as u16,
        };
        let distances = exact.into_iter().enumerate().map(whole).collect();
        Some(Timed { machine, distances, hop })
    }
}

impl Topology for Timed<'_> {
    fn spec(&self) -> String {
        self.machine.spec()
    }

    fn pes(&self) -> usize {
        self.machine.pes()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.distances[a * self.pes() + b].into()
    }

    fn diameter(&self) -> u32 {
        LARGEST as u32
    }

    fn links(&self) -> usize {
        self.machine.links()
    }

    fn link(&self, id: usize) -> Link {
        self.machine.link(id)
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        self.machine.route(a, b, links);
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        self.machine.hierarchy()
    }

    fn shape(&self) -> Shape {
        self.machine.shape()
    }

    fn node_of(&self, pe: usize) -> usize {
        self.machine.node_of(pe)
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology::parse;

    use super::*;

    #[test]
    fn distances_are_times_of_bytes_relative_to_the_fastest_link() {
        let of = |spec: &str| parse(spec).expect(spec);
        for same in ["torus:4x4", "flat:3", "fattree:2:4/1e9:1e9", "torus:33x32/1e9:2e9"] {
            assert!(Timed::of(&*of(same)).is_none(), "{same}");
        }
        for spec in
            ["torus:4x3/1e9:4e9", "fattree:2:4/1e9:3e9", "rails:nodes=2,gpus=4", "torus:2x2/1e9:7e9*flat:2"]
        {
            let machine = of(spec);
            let timed = Timed::of(&*machine).expect("links have different bandwidths");
            let fastest = (0..machine.links()).map(|link| machine.link(link).bandwidth).fold(0.0, f64::max);
            for (a, b) in (0..machine.pes()).flat_map(|a| (0..machine.pes()).map(move |b| (a, b))) {
                let mut route = Vec::new();
                machine.route(a, b, &mut route);
                let links = route.iter().map(|&link| machine.link(link));
                let time: f64 = links.map(|link| f64::from(link.length) * fastest / link.bandwidth).sum();
                let found = f64::from(timed.distance(a, b)) / timed.hop;
                assert!(
                    (found - time).abs() <= 0.5 / timed.hop + 1e-9,
                    "{spec}: {a} to {b}: {found} for {time}"
                );
                assert_eq!(timed.distance(a, b), timed.distance(b, a), "{spec}");
            }
        }
    }
}

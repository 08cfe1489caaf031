//! Distances that count how long a byte takes: where links have different bandwidths, a hop over a slow link is longer.
//!
//! The distance of two PEs is the mean over both directions of the sum of `1 / bandwidth` over the links of the route. So the sum of bytes times
//! distances is that of the times of all links, as hop-bytes are that of their bytes.

use equipoise_model::Topology;
use equipoise_model::topology::{Hierarchy, Link, Shape};
use rayon::prelude::*;

/// The maximum number of PEs, because each pair is routed once.
const MAX_PES: usize = super::distance::MAX_TABLE_BLOCKS;

/// The maximum number of links, because each is looked at. An allocation has all links of its machine.
const MAX_LINKS: usize = 1 << 17;

/// The largest distance; longer ones count as this one. Distances between blocks are sums of up to 16 of them, in 16 bits.
const LARGEST: f64 = 4000.0;

/// The least distance of the median pair, so that one very slow link leaves the other distances apart.
const MEDIAN: f64 = 500.0;

/// A machine with these distances.
pub(crate) struct Timed<'a> {
    machine: &'a dyn Topology,
    /// By pair of PEs, row by row.
    distances: Vec<u16>,
    /// The mean distance that a hop of the machine has here.
    pub hop: f64,
}

/// Whether links have different bandwidths.
pub(in crate::poise) fn has_different_bandwidths(machine: &dyn Topology) -> bool {
    let mut bandwidths = (0..machine.links()).map(|link| machine.link(link).bandwidth);
    bandwidths.next().is_some_and(|first| bandwidths.any(|other| other != first))
}

impl<'a> Timed<'a> {
    /// The machine with distances that count bandwidths; none if all links have the same bandwidth, or the machine is larger
    /// than [`MAX_PES`] and [`MAX_LINKS`] say.
    pub fn of(machine: &'a dyn Topology) -> Option<Timed<'a>> {
        let pes = machine.pes();
        if pes > MAX_PES || machine.links() > MAX_LINKS || !has_different_bandwidths(machine) {
            return None;
        }
        let bandwidths: Vec<f64> = (0..machine.links()).map(|link| machine.link(link).bandwidth).collect();
        let fastest = bandwidths.iter().copied().fold(0.0, f64::max);
        let times: Vec<f64> = bandwidths.into_iter().map(|bandwidth| fastest / bandwidth).collect();
        let time = |from: usize, to: usize, route: &mut Vec<usize>| {
            route.clear();
            machine.route(from, to, route);
            route.iter().map(|&link| times[link]).sum::<f64>()
        };
        let mut exact = vec![0.0; pes * pes];
        exact.par_chunks_mut(pes).enumerate().for_each(|(a, row)| {
            let mut route = Vec::new();
            row[..a].iter_mut().enumerate().for_each(|(b, mean)| {
                *mean = (time(a, b, &mut route) + time(b, a, &mut route)) / 2.0;
            });
        });
        for a in 0..pes {
            for b in 0..a {
                exact[b * pes + a] = exact[a * pes + b];
            }
        }
        let mut sorted: Vec<f64> = exact.iter().copied().filter(|&time| time > 0.0).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let largest = sorted.last().copied().filter(|largest| largest.is_finite())?;
        let scale = (LARGEST / largest).max(MEDIAN / sorted[sorted.len() / 2]);
        let whole = |(at, time): (usize, f64)| match at / pes == at % pes {
            true => 0,
            false => (time * scale).round().clamp(1.0, LARGEST) as u16,
        };
        let distances: Vec<u16> = exact.into_iter().enumerate().map(whole).collect();
        let sum = distances.iter().map(|&distance| f64::from(distance)).sum::<f64>();
        let mut row = vec![0; pes];
        let mut hops = 0.0;
        for a in 0..pes {
            machine.distances_from(a, &mut row);
            hops += row.iter().map(|&hops| f64::from(hops)).sum::<f64>();
        }
        Some(Timed { machine, distances, hop: sum / f64::max(hops, 1.0) })
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
            let pairs = || (0..machine.pes()).flat_map(|a| (0..machine.pes()).map(move |b| (a, b)));
            let time = |a: usize, b: usize| {
                let mut route = Vec::new();
                machine.route(a, b, &mut route);
                route.iter().map(|&link| 1.0 / machine.link(link).bandwidth).sum::<f64>()
            };
            let largest = pairs().map(|(a, b)| time(a, b)).fold(0.0, f64::max);
            for (a, b) in pairs() {
                let expected = LARGEST * time(a, b) / largest;
                assert!((f64::from(timed.distance(a, b)) - expected).abs() <= 1.0, "{spec}: {a} to {b}");
                assert_eq!(timed.distance(a, b), timed.distance(b, a), "{spec}");
            }
        }
    }

    #[test]
    fn a_hop_is_as_long_as_those_of_the_machine_in_the_mean() {
        // A ring of four PEs, and the same one with lines between its two copies that are half as fast.
        let machine = parse("torus:4x2/1e9:5e8").expect("a machine");
        let timed = Timed::of(&*machine).expect("links have different bandwidths");
        let pairs = || (0..8).flat_map(|a| (0..8).map(move |b| (a, b)));
        let [times, hops] = [&timed as &dyn Topology, &*machine]
            .map(|it| pairs().map(|(a, b)| f64::from(it.distance(a, b))).sum::<f64>());
        // Of 96 hops, 32 cross the slow lines.
        let unit = f64::from(timed.distance(0, 1));
        assert_eq!((hops, (times / unit).round()), (96.0, 128.0));
        assert!((timed.hop - times / hops).abs() < 1e-9, "{}", timed.hop);
    }

    #[test]
    fn a_very_slow_link_leaves_the_other_distances_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("slow");
        std::fs::write(&file, "machine torus:8x8\n0.000001 0 -> 1\n").expect("a file");
        let machine = parse(&format!("degraded:{}", file.display())).expect("a machine");
        let timed = Timed::of(&*machine).expect("one link is slow");
        assert_eq!(f64::from(timed.distance(0, 1)), LARGEST);
        let [near, far] = [timed.distance(8, 16), timed.distance(8, 32)];
        assert!(near > 50 && far.abs_diff(3 * near) <= 2, "{near} for a hop, {far} for three");
    }
}

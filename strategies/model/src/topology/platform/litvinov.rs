//! `platform:litvinov-cluster`, `litvinov-tree` and `litvinov-grid`: machines of 16 hosts following D. Litvinov (On
//! optimization criteria for task assignment in cluster and wide-area computing, 2014), section 3.1.
//!
//! The paper describes its three machines, and takes the last two from a thesis that does not print their links. These
//! machines match the description; all links have 125e6 bytes per second in each direction:
//!
//! - *cluster*: four switches with four hosts each below one switch, 50 us per link; four hosts share an uplink, which
//!   is the bottleneck;
//! - *tree*: eight routers in a tree with 2, 1, 3, 2, 1, 3, 1 and 3 hosts, 0.1 ms from host to router and 1 ms from
//!   router to router;
//! - *grid*: the tree with four more cables between routers, which close cycles.
//!
//! Vertices 0 to 15 are the hosts, followed by the routers. A cable is two links, one per direction, with numbers 2k
//! and 2k + 1. Routes are shortest paths found by a breadth-first search that visits vertices in ascending order.

use super::{Platform, Wire};
use crate::search::breadth_first;

/// The bandwidth of every link, in bytes per second.
const BANDWIDTH: f64 = 125e6;

/// The number of hosts.
const HOSTS: usize = 16;

/// The names of the machines.
pub(super) const NAMES: [&str; 3] = ["litvinov-cluster", "litvinov-tree", "litvinov-grid"];

/// The router of each host, on the wide-area machines.
const ROUTERS: [usize; HOSTS] = [16, 16, 17, 18, 18, 18, 19, 19, 20, 21, 21, 21, 22, 23, 23, 23];

/// Cables between the routers of the tree.
const TREE: [(usize, usize); 7] = [(16, 17), (17, 18), (17, 19), (16, 20), (20, 21), (20, 22), (22, 23)];

/// The additional cables of the grid.
const CYCLES: [(usize, usize); 4] = [(18, 19), (19, 21), (18, 23), (21, 22)];

/// The machine with this name, if it is one of [`NAMES`].
pub(super) fn named(name: &str) -> Option<Platform> {
    let number = NAMES.iter().position(|known| *known == name)?;
    let (mut cables, vertices) = (Vec::new(), if number == 0 { 21 } else { 24 });
    if number == 0 {
        cables.extend((0..HOSTS).map(|host| (host, HOSTS + host / 4, 50e-6)));
        cables.extend((HOSTS..HOSTS + 4).map(|switch| (switch, HOSTS + 4, 50e-6)));
    } else {
        let between: &[(usize, usize)] = if number == 1 { &[] } else { &CYCLES };
        cables.extend(ROUTERS.into_iter().enumerate().map(|(host, router)| (host, router, 1e-4)));
        cables.extend(TREE.iter().chain(between).map(|&(a, b)| (a, b, 1e-3)));
    }
    let both_ways = |(a, b, lat)| [(a, b), (b, a)].map(|(src, dst)| Wire { src, dst, bw: BANDWIDTH, lat });
    let wires: Vec<Wire> = cables.into_iter().flat_map(both_ways).collect();
    let mut platform = Platform {
        source: name.to_string(),
        hosts: HOSTS,
        starts: vec![0],
        crossed: Vec::new(),
        wires: Vec::new(),
    };
    for from in 0..HOSTS {
        let came_by = search(&wires, vertices, from);
        for to in 0..HOSTS {
            let (mut at, first) = (to, platform.crossed.len());
            while let Some(link) = came_by[at] {
                platform.crossed.push(link);
                at = wires[link as usize].src;
            }
            platform.crossed[first..].reverse();
            platform.starts.push(platform.crossed.len());
        }
    }
    Some(Platform { wires, ..platform })
}

/// For each vertex: the link by which a breadth-first search from `start` reaches it; `None` for `start`.
fn search(wires: &[Wire], vertices: usize, start: usize) -> Vec<Option<u32>> {
    let next = |vertex: usize| {
        let leaving = (0..).zip(wires).filter(|(_, wire)| wire.src == vertex);
        let mut next: Vec<(usize, u32)> = leaving.map(|(link, wire)| (wire.dst, link)).collect();
        next.sort_unstable();
        next
    };
    let mut came_by = vec![None; vertices];
    for (vertex, by) in breadth_first(vertices, start, next) {
        came_by[vertex] = by.map(|(_, link)| link);
    }
    came_by
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::reference;
    use crate::topology::parse;

    #[test]
    fn the_machines_are_consistent() {
        for name in NAMES {
            let machine = parse(&format!("platform:{name}")).expect(name);
            crate::topology::tests::check(&*machine);
        }
    }

    #[test]
    fn the_machines_equal_those_of_the_reference_results() {
        for (name, links) in NAMES.into_iter().zip([40, 46, 54]) {
            let machine = named(name).expect(name);
            assert_eq!(machine.wires.len(), links);
            let short = name.trim_start_matches("litvinov-");
            let Some(text) = reference(&format!("simgrid/platform_{short}.json")) else { return };
            let written = Platform::read(name, &text).expect("a platform");
            assert_eq!(machine, written, "{name}");
        }
    }
}

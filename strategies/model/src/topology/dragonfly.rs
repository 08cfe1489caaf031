//! `dragonfly:groups=9,routers=4,hosts=2`: groups of fully connected routers.
//!
//! J. Kim, W. J. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", 2008.
//! PEs are numbered by group, then router, then host. Any two groups are connected by one cable, or by `links=N` cables
//! (at most one per router of a group). Within a group, cable k to the o-th group after it (cyclically, o from 1) is at
//! router ((o-1)*links + k) mod routers: round-robin, and identical for all groups.
//!
//! A distance is the number of links crossed, including those between PE and router. Messages take the minimal route of
//! the paper: to the router with a cable to the other group, over the cable, and to the router of the destination.
//! Among several cables, the one with the shortest such route is taken; ties go to the first from cable (b mod links)
//! on, where b is the destination PE. (A path over a third group can be a link shorter, but is not a minimal route in
//! the sense of the paper.)

use std::sync::Arc;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Topology, count_links, count_pes,
};
use crate::params::{Param, Params};

/// The entry of `dragonfly:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "dragonfly",
    form: "dragonfly:groups=9,routers=4,hosts=2",
    help: "Groups of fully connected routers; cables between groups are distributed round-robin over the \
           routers. Minimal routes: local, global, local.",
    params: PARAMS,
    item: |text| {
        Params::parse_with("dragonfly", PARAMS, text, |params| {
            let (groups, routers) = (params.take("groups")?, params.take("routers")?);
            let machine = Dragonfly::new(groups, routers, params.take("hosts")?, params.take("links")?);
            Ok(Arc::new(machine?) as Arc<dyn Topology>)
        })
    },
};

const PARAMS: &[Param] = &[
    Param { key: "groups", default: "", help: "number of groups" },
    Param { key: "routers", default: "", help: "routers per group" },
    Param { key: "hosts", default: "", help: "PEs per router" },
    Param { key: "links", default: "1", help: "cables between any two groups" },
];

/// A dragonfly network whose hosts are the PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    groups: usize,
    /// Routers per group.
    routers: usize,
    /// PEs per router.
    hosts: usize,
    /// The number of cables between any two groups.
    cables: usize,
    /// The first links between routers of a group, and between groups; before them are the links of the PEs,
    /// alternately up and down.
    first_local: usize,
    first_global: usize,
    links: usize,
}

impl Dragonfly {
    /// A dragonfly with `groups` groups of `routers` routers with `hosts` PEs each, and `cables` cables between any two
    /// groups.
    ///
    /// # Errors
    /// If a size is 0, there are more cables than routers, or too many PEs or links.
    pub fn new(groups: usize, routers: usize, hosts: usize, cables: usize) -> Result<Self, String> {
        let pes = count_pes([groups, routers, hosts])?;
        if !(1..=routers).contains(&cables) {
            return Err(format!(
                "between two groups of {routers} routers there are 1 to {routers} links, found {cables}"
            ));
        }
        let first_global = count_links([Some(2 * pes), (groups * routers).checked_mul(routers - 1)])?;
        let links = count_links([
            Some(first_global),
            groups.checked_mul(groups - 1).and_then(|n| n.checked_mul(cables)),
        ])?;
        Ok(Dragonfly { groups, routers, hosts, cables, first_local: 2 * pes, first_global, links })
    }

    /// The router of group `from` at which cable `cable` to another group `to` is connected.
    fn port(&self, from: usize, to: usize, cable: usize) -> usize {
        self.socket(from, to, cable) % self.routers
    }

    /// The position of this cable among all cables of group `from`.
    fn socket(&self, from: usize, to: usize, cable: usize) -> usize {
        let after = if to > from { to - from } else { to + self.groups - from };
        (after - 1) * self.cables + cable
    }

    /// The number of local links from router `near` of group `here` to router `far` of another group over this cable.
    fn detour(&self, (here, near): (usize, usize), (there, far): (usize, usize), cable: usize) -> u32 {
        u32::from(self.port(here, there, cable) != near) + u32::from(self.port(there, here, cable) != far)
    }

    /// The group and router of a PE.
    fn place(&self, pe: usize) -> (usize, usize) {
        (pe / self.hosts / self.routers, pe / self.hosts % self.routers)
    }

    /// The link between two routers of a group.
    fn local(&self, group: usize, from: usize, to: usize) -> usize {
        let rank = to - usize::from(to > from);
        self.first_local + (group * self.routers + from) * (self.routers - 1) + rank
    }
}

impl Topology for Dragonfly {
    fn spec(&self) -> String {
        let Dragonfly { groups, routers, hosts, cables, .. } = self;
        let links = if *cables == 1 { String::new() } else { format!(",links={cables}") };
        format!("dragonfly:groups={groups},routers={routers},hosts={hosts}{links}")
    }

    fn pes(&self) -> usize {
        self.groups * self.routers * self.hosts
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        let (near, far) = (self.place(a), self.place(b));
        if a == b {
            0
        } else if near.0 == far.0 {
            2 + u32::from(near.1 != far.1)
        } else {
            let detours = (0..self.cables).map(|cable| self.detour(near, far, cable));
            3 + detours.min().unwrap_or(0)
        }
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let (here, near) = self.place(a);
        for (there, group) in row.chunks_exact_mut(self.routers * self.hosts).enumerate() {
            if there == here {
                group.fill(3);
                group[near * self.hosts..][..self.hosts].fill(2);
                continue;
            }
            let way_out = |cable| u32::from(self.port(here, there, cable) != near);
            let shortest = (0..self.cables).map(way_out).min().unwrap_or(0);
            group.fill(4 + shortest);
            for cable in 0..self.cables {
                let at_port = &mut group[self.port(there, here, cable) * self.hosts..][..self.hosts];
                let distance = (3 + way_out(cable)).min(at_port[0]);
                at_port.fill(distance);
            }
        }
        row[a] = 0;
    }

    /// All groups have the same view, so the PEs of one group have all distances.
    fn diameter(&self) -> u32 {
        let mut row = vec![0; self.pes()];
        let farthest = |router: usize| {
            self.distances_from(router * self.hosts, &mut row);
            row.iter().copied().max().unwrap_or(0)
        };
        (0..self.routers).map(farthest).max().unwrap_or(0)
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let router = |group: usize, router: usize| format!("router {group}.{router}");
        let name = if id < self.first_local {
            let (group, at) = self.place(id / 2);
            let (pe, router) = ((id / 2).to_string(), router(group, at));
            if id % 2 == 0 { format!("{pe} -> {router}") } else { format!("{router} -> {pe}") }
        } else if id < self.first_global {
            let (from, rank) =
                ((id - self.first_local) / (self.routers - 1), (id - self.first_local) % (self.routers - 1));
            let (group, from) = (from / self.routers, from % self.routers);
            format!("{} -> {}", router(group, from), router(group, rank + usize::from(rank >= from)))
        } else {
            let per_group = (self.groups - 1) * self.cables;
            let (from, socket) = ((id - self.first_global) / per_group, (id - self.first_global) % per_group);
            let (to, cable) = ((from + 1 + socket / self.cables) % self.groups, socket % self.cables);
            let (near, far) = (self.port(from, to, cable), self.port(to, from, cable));
            format!("{} -> {}", router(from, near), router(to, far))
        };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length: 1 }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a == b {
            return;
        }
        let (near, far) = (self.place(a), self.place(b));
        let local = |group: usize, from: usize, to: usize, links: &mut Vec<usize>| {
            if from != to {
                links.push(self.local(group, from, to));
            }
        };
        links.push(2 * a);
        if near.0 == far.0 {
            local(near.0, near.1, far.1, links);
        } else {
            let turn = |step| (b + step) % self.cables;
            let cable =
                (0..self.cables).map(turn).min_by_key(|&cable| self.detour(near, far, cable)).unwrap_or(0);
            let (out, into) = (self.port(near.0, far.0, cable), self.port(far.0, near.0, cable));
            local(near.0, near.1, out, links);
            let per_group = (self.groups - 1) * self.cables;
            links.push(self.first_global + near.0 * per_group + self.socket(near.0, far.0, cable));
            local(far.0, into, far.1, links);
        }
        links.push(2 * b + 1);
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let (near, far) = (self.place(a), self.place(b));
        Some(match () {
            () if near == far => format!("router {}.{}", near.0, near.1),
            () if near.0 == far.0 => format!("group {}", near.0),
            () => "cables between groups".into(),
        })
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(Hierarchy::balanced(&[self.groups, self.routers, self.hosts]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::route;

    #[test]
    fn routes_lead_over_the_router_with_the_cable() {
        let spec = "dragonfly:groups=9,routers=4,hosts=2";
        // The next group is connected to router 0, the eighth group to router 3.
        assert_eq!(
            route(spec, 0, 8),
            "0 -> router 0.0, router 0.0 -> router 1.3, router 1.3 -> router 1.0, router 1.0 -> 8"
        );
        assert_eq!(
            route(spec, 7, 9),
            "7 -> router 0.3, router 0.3 -> router 0.0, router 0.0 -> router 1.3, router 1.3 -> router 1.0, \
            router 1.0 -> 9"
        );
        assert_eq!(route(spec, 0, 3), "0 -> router 0.0, router 0.0 -> router 0.1, router 0.1 -> 3");
        let machine = parse(spec).expect("a dragonfly");
        assert_eq!((machine.pes(), machine.links(), machine.diameter()), (72, 144 + 9 * 12 + 9 * 8, 5));
        // With two cables, the destination selects the cable.
        let two = "dragonfly:groups=2,routers=2,hosts=2,links=2";
        assert_eq!(route(two, 0, 4), "0 -> router 0.0, router 0.0 -> router 1.0, router 1.0 -> 4");
        assert_eq!(
            route(two, 0, 6),
            "0 -> router 0.0, router 0.0 -> router 1.0, router 1.0 -> router 1.1, router 1.1 -> 6"
        );
        assert_eq!(
            route(two, 0, 7),
            "0 -> router 0.0, router 0.0 -> router 0.1, router 0.1 -> router 1.1, router 1.1 -> 7"
        );
        assert_eq!(parse(two).expect("a dragonfly").spec(), two);
    }
}

//! `dragonfly+:groups=5,leaves=4,spines=4,hosts=4`: groups of leaf and spine routers.
//!
//! A. Shpiner, Z. Haramaty, S. Eliad, V. Zdornov, B. Gafni, E. Zahavi, "Dragonfly+: low cost topology for scaling
//! datacenters", 2017. In a group, every leaf router is connected to every spine router. Hosts are at leaf routers, cables
//! to other groups at spine routers. Any two groups are connected by `links` cables (default: one per spine router), at
//! most one per spine router: cable k to the o-th group after it (cyclically, o from 1) is at spine router ((o-1)*links +
//! k) mod spines.
//!
//! A distance is the number of links crossed: 2 at the same leaf router, 4 in a group, 5 between groups (minimal routes of
//! the paper: up, over the cable, down). In a group, a message takes spine router (b mod spines), and between groups cable (b
//! mod links), where b is the destination PE.

use std::sync::Arc;

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, Topology, count_links,
    count_pes,
};
use crate::params::{Param, Params};

/// The entry of `dragonfly+:..` in the list of machines.
pub const KIND: Kind = Kind {
    name: "dragonfly+",
    form: "dragonfly+:groups=5,leaves=4,spines=4,hosts=4",
    help: "Groups of leaf routers with hosts, and spine routers with the cables between groups, which are distributed \
           round-robin. Minimal routes: up, global, down.",
    params: PARAMS,
    item: |text| {
        Params::parse_with("dragonfly+", PARAMS, text, |params| {
            let (groups, leaves, spines) =
                (params.take("groups")?, params.take("leaves")?, params.take("spines")?);
            let cables = params.take_count_or_auto("links", super::MAX_LINKS)?.unwrap_or(spines);
            let machine = DragonflyPlus::new([groups, leaves, spines, params.take("hosts")?], cables);
            Ok(Arc::new(machine?) as Arc<dyn Topology>)
        })
    },
};

const PARAMS: &[Param] = &[
    Param { key: "groups", default: "", help: "number of groups" },
    Param { key: "leaves", default: "", help: "leaf routers per group" },
    Param { key: "spines", default: "", help: "spine routers per group" },
    Param { key: "hosts", default: "", help: "PEs per leaf router" },
    Param {
        key: "links",
        default: "auto",
        help: "cables between any two groups; auto: one per spine router",
    },
];

/// A Dragonfly+ network whose hosts are the PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DragonflyPlus {
    groups: usize,
    leaves: usize,
    spines: usize,
    hosts: usize,
    cables: usize,
    /// The first links inside groups and between groups; before them are the links of the PEs. The former are
    /// alternately up and down.
    first_local: usize,
    first_global: usize,
    links: usize,
}

/// Where a message is.
enum Place {
    Pe(usize),
    /// The group and number of a leaf router.
    Leaf(usize, usize),
    /// The group and number of a spine router.
    Spine(usize, usize),
}

impl DragonflyPlus {
    /// A network with these numbers of groups, leaf routers and spine routers per group, and PEs per leaf router, and
    /// `cables` cables between any two groups.
    ///
    /// # Errors
    /// If a size is 0, there are more cables than spine routers, or too many PEs or links.
    pub fn new([groups, leaves, spines, hosts]: [usize; 4], cables: usize) -> Result<Self, String> {
        let pes = count_pes([groups, leaves, hosts])?;
        if !(1..=spines).contains(&cables) {
            return Err(format!(
                "between two groups of {spines} spine routers there are 1 to {spines} links, found {cables}"
            ));
        }
        let local = (2 * groups * leaves).checked_mul(spines);
        let first_global = count_links([Some(2 * pes), local])?;
        let global = groups.checked_mul(groups - 1).and_then(|pairs| pairs.checked_mul(cables));
        let links = count_links([Some(first_global), global])?;
        Ok(DragonflyPlus { groups, leaves, spines, hosts, cables, first_local: 2 * pes, first_global, links })
    }

    /// The group and the leaf router of a PE.
    fn leaf_of(&self, pe: usize) -> (usize, usize) {
        (pe / self.hosts / self.leaves, pe / self.hosts % self.leaves)
    }

    /// The position of a cable among all cables of group `from`.
    fn socket(&self, from: usize, to: usize, cable: usize) -> usize {
        let after = if to > from { to - from } else { to + self.groups - from };
        (after - 1) * self.cables + cable
    }

    /// The spine router of group `from` with a cable to group `to`.
    fn port(&self, from: usize, to: usize, cable: usize) -> usize {
        self.socket(from, to, cable) % self.spines
    }

    /// The link from a leaf router up to a spine router; the next link is the way down.
    fn local(&self, group: usize, leaf: usize, spine: usize) -> usize {
        self.first_local + 2 * ((group * self.leaves + leaf) * self.spines + spine)
    }

    fn global(&self, from: usize, to: usize, cable: usize) -> usize {
        self.first_global + from * (self.groups - 1) * self.cables + self.socket(from, to, cable)
    }

    /// The ends of a link.
    fn ends(&self, id: usize) -> (Place, Place) {
        if id < self.first_local {
            let (group, leaf) = self.leaf_of(id / 2);
            return (Place::Pe(id / 2), Place::Leaf(group, leaf));
        }
        if id < self.first_global {
            let (router, spine) =
                ((id - self.first_local) / 2 / self.spines, (id - self.first_local) / 2 % self.spines);
            let (group, leaf) = (router / self.leaves, router % self.leaves);
            return (Place::Leaf(group, leaf), Place::Spine(group, spine));
        }
        let per_group = (self.groups - 1) * self.cables;
        let (from, socket) = ((id - self.first_global) / per_group, (id - self.first_global) % per_group);
        let (to, cable) = ((from + 1 + socket / self.cables) % self.groups, socket % self.cables);
        (Place::Spine(from, self.port(from, to, cable)), Place::Spine(to, self.port(to, from, cable)))
    }

    /// Whether a link of a PE or inside a group leads down.
    fn is_down(&self, id: usize) -> bool {
        id < self.first_global && id % 2 == 1
    }
}

impl Topology for DragonflyPlus {
    fn spec(&self) -> String {
        let DragonflyPlus { groups, leaves, spines, hosts, cables, .. } = self;
        let links = if cables == spines { String::new() } else { format!(",links={cables}") };
        format!("dragonfly+:groups={groups},leaves={leaves},spines={spines},hosts={hosts}{links}")
    }

    fn pes(&self) -> usize {
        self.groups * self.leaves * self.hosts
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        let (near, far) = (self.leaf_of(a), self.leaf_of(b));
        match () {
            () if a == b => 0,
            () if near == far => 2,
            () if near.0 == far.0 => 4,
            () => 5,
        }
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let (group, per_group) = (self.leaf_of(a).0, self.leaves * self.hosts);
        row.fill(5);
        row[group * per_group..][..per_group].fill(4);
        row[a / self.hosts * self.hosts..][..self.hosts].fill(2);
        row[a] = 0;
    }

    fn diameter(&self) -> u32 {
        self.distance(0, self.pes() - 1)
    }

    fn links(&self) -> usize {
        self.links
    }

    fn link(&self, id: usize) -> Link {
        let name = |place| match place {
            Place::Pe(pe) => pe.to_string(),
            Place::Leaf(group, leaf) => format!("leaf {group}.{leaf}"),
            Place::Spine(group, spine) => format!("spine {group}.{spine}"),
        };
        let (from, to) = self.ends(id);
        let (from, to) = if self.is_down(id) { (to, from) } else { (from, to) };
        Link {
            name: format!("{} -> {}", name(from), name(to)),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: 1,
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a == b {
            return;
        }
        let ((here, near), (there, far)) = (self.leaf_of(a), self.leaf_of(b));
        links.push(2 * a);
        if here != there {
            let cable = b % self.cables;
            links.push(self.local(here, near, self.port(here, there, cable)));
            links.push(self.global(here, there, cable));
            links.push(self.local(there, far, self.port(there, here, cable)) + 1);
        } else if near != far {
            let spine = b % self.spines;
            links.extend([self.local(here, near, spine), self.local(here, far, spine) + 1]);
        }
        links.push(2 * b + 1);
    }

    /// From the leaf router to any spine router that leads on; the rest of the way is unique.
    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let (there, far) = self.leaf_of(b);
        let at = crossed.map_or(Place::Pe(a), |id| {
            let (lower, upper) = self.ends(id);
            if self.is_down(id) { lower } else { upper }
        });
        match at {
            Place::Pe(pe) if pe == b => {}
            Place::Pe(pe) => links.push(2 * pe),
            Place::Leaf(group, leaf) if (group, leaf) == (there, far) => links.push(2 * b + 1),
            Place::Leaf(group, leaf) if group == there => {
                links.extend((0..self.spines).map(|step| self.local(group, leaf, (b + step) % self.spines)));
            }
            Place::Leaf(group, leaf) => {
                let spine = |step| self.port(group, there, (b + step) % self.cables);
                links.extend((0..self.cables).map(|step| self.local(group, leaf, spine(step))));
            }
            Place::Spine(group, spine) if group == there => links.push(self.local(group, far, spine) + 1),
            Place::Spine(group, spine) => {
                let mut cables = (0..self.cables).filter(|&cable| self.port(group, there, cable) == spine);
                links.extend(cables.next().map(|cable| self.global(group, there, cable)));
            }
        }
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(Hierarchy::balanced(&[self.groups, self.leaves, self.hosts]))
    }

    fn shape(&self) -> Shape {
        self.hierarchy().map_or(Shape::Any, Shape::Tree)
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let (near, far) = (self.leaf_of(a), self.leaf_of(b));
        Some(match () {
            () if near == far => format!("leaf {}.{}", near.0, near.1),
            () if near.0 == far.0 => format!("group {}", near.0),
            () => "cables between groups".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::parse;
    use super::super::tests::{check, route, row, search};
    use super::*;

    #[test]
    fn routes_lead_over_the_spine_router_with_the_cable() {
        let spec = "dragonfly+:groups=3,leaves=2,spines=2,hosts=2";
        assert_eq!(
            route(spec, 1, 5),
            "1 -> leaf 0.0, leaf 0.0 -> spine 0.1, spine 0.1 -> spine 1.1, spine 1.1 -> leaf 1.0, leaf 1.0 -> 5"
        );
        assert_eq!(
            route(spec, 0, 2),
            "0 -> leaf 0.0, leaf 0.0 -> spine 0.0, spine 0.0 -> leaf 0.1, leaf 0.1 -> 2"
        );
        assert_eq!(route(spec, 0, 1), "0 -> leaf 0.0, leaf 0.0 -> 1");
        let machine = parse(spec).expect("a network");
        // Two links for each PE, 3 groups with 4 pairs of routers, 3 pairs of groups with 2 cables, in both directions.
        assert_eq!((machine.pes(), machine.links(), machine.diameter()), (12, 24 + 24 + 12, 5));
        let one = "dragonfly+:groups=3,leaves=2,spines=2,hosts=2,links=1";
        assert_eq!(
            (parse(one).expect("a network").spec(), parse(spec).expect("a network").spec()),
            (one.into(), spec.into())
        );
        assert_eq!(machine.switch_between(0, 2).as_deref(), Some("group 0"));
        for (spec, expected) in [
            ("dragonfly+:groups=3", "`leaves=` must be given"),
            ("dragonfly+:groups=3,leaves=2,spines=2,hosts=2,links=3", "there are 1 to 2 links, found 3"),
            ("dragonfly+:groups=0,leaves=2,spines=2,hosts=2", "a size is at least 1"),
        ] {
            let error = parse(spec).err().expect(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn dragonflies_plus_have_the_properties_of_machines(
            groups in 1..6usize, leaves in 1..4usize, spines in 1..4usize, hosts in 1..4usize, cables in 1..4usize,
        ) {
            let machine = DragonflyPlus::new([groups, leaves, spines, hosts], cables.min(spines)).expect("small sizes");
            check(&machine);
            prop_assert_eq!(row(&machine, 0), search(&machine), "{}", machine.spec());
        }
    }
}

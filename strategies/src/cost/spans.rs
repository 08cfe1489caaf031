//! Where the ranks of groups are: within a node, or at which switch they meet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use equipoise_model::Topology;
use equipoise_model::table::count;

use super::explain::Meeting;

/// The groups of one kind, such as those of data parallelism.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The kind.
    pub name: String,
    /// The number of groups.
    pub groups: usize,
    /// The ranks of each.
    pub ranks: usize,
    /// Groups within a node (on machines without nodes of several PEs: on one PE).
    pub within_node: usize,
    /// The other groups by the switch at which their ranks meet; those with most groups first.
    pub switches: Vec<AtSwitch>,
    /// Groups across nodes of a network without switches.
    pub across_nodes: usize,
}

/// The groups that meet at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtSwitch {
    /// The name of the switch, or of the group of switches.
    pub name: String,
    /// The number of groups.
    pub groups: usize,
}

/// The tree of a machine, for [`Span`]s.
pub struct Spans<'a> {
    topology: &'a dyn Topology,
    meeting: Option<Meeting>,
}

impl<'a> Spans<'a> {
    /// The tree of `topology`.
    pub fn on(topology: &'a dyn Topology) -> Self {
        let meeting = topology.hierarchy().map(|tree| Meeting::of(&tree, 0..=tree.depth()));
        Spans { topology, meeting }
    }

    /// Where groups of ranks are when rank `i` is on PE `pe_of[i]`.
    ///
    /// # Panics
    /// If a rank or its PE does not exist.
    pub fn of(&self, name: &str, groups: &[Vec<u32>], pe_of: &[u32]) -> Span {
        let (mut within_node, mut across_nodes) = (0, 0);
        let mut switches = BTreeMap::<String, usize>::new();
        for group in groups {
            let pes: Vec<u32> = group.iter().map(|&rank| pe_of[rank as usize]).collect();
            match self.switch(&pes) {
                None => within_node += 1,
                Some(None) => across_nodes += 1,
                Some(Some(name)) => *switches.entry(name).or_default() += 1,
            }
        }
        let mut switches: Vec<AtSwitch> =
            switches.into_iter().map(|(name, groups)| AtSwitch { name, groups }).collect();
        switches.sort_by_key(|at| Reverse(at.groups));
        let ranks = groups.first().map_or(0, Vec::len);
        Span { name: name.to_string(), groups: groups.len(), ranks, within_node, switches, across_nodes }
    }

    /// The switch at which PEs of several nodes meet, if it has a name; `None` for the PEs of one node.
    fn switch(&self, pes: &[u32]) -> Option<Option<String>> {
        let (&first, others) = pes.split_first()?;
        let node = |pe: u32| self.topology.node_of(pe as usize);
        let others = others.iter().copied().filter(|&pe| node(pe) != node(first));
        // All switches where the first PE meets another one are above each other, so the topmost has all PEs.
        let level = |pe| self.meeting.as_ref().map_or(0, |meeting| meeting.level(first, pe));
        let distance = |pe: u32| self.topology.distance(first as usize, pe as usize);
        let far = others.min_by_key(|&pe| (level(pe), Reverse(distance(pe))))?;
        Some(self.topology.switch_between(first as usize, far as usize))
    }
}

/// The most switches that are named.
const MOST_NAMED: usize = 4;

impl Span {
    /// Where the groups are, in words.
    pub fn places(&self) -> String {
        let Span { groups, within_node, switches, across_nodes, .. } = self;
        if within_node == groups {
            return "all within a node".into();
        }
        let mut parts = Vec::new();
        if *within_node > 0 {
            parts.push(format!("{within_node} within a node"));
        }
        let verb = |groups: usize| if groups == 1 { "spans" } else { "span" };
        let (named, rest) = switches.split_at(switches.len().min(MOST_NAMED));
        parts.extend(named.iter().map(|at| format!("{} {} {}", at.groups, verb(at.groups), at.name)));
        if !rest.is_empty() {
            let groups = rest.iter().map(|at| at.groups).sum();
            parts.push(format!("{groups} {} one of {} other switches", verb(groups), rest.len()));
        }
        if *across_nodes > 0 {
            parts.push(format!("{across_nodes} across nodes"));
        }
        parts.join(", ")
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (groups, ranks) = (count(self.groups as u64, "group"), count(self.ranks as u64, "rank"));
        write!(f, "{} ({groups} of {ranks}): {}", self.name, self.places())
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::graph::parallel::{Role, layout_of};
    use equipoise_model::topology::parse;

    use super::*;

    #[track_caller]
    fn check(job: &str, machine: &str, pe_of: impl Fn(u32) -> u32, expected: &[&str]) {
        let (layout, machine) = (layout_of(job).expect(job), parse(machine).expect(machine));
        let pe_of: Vec<u32> = (0..layout.ranks() as u32).map(pe_of).collect();
        let spans = Spans::on(&*machine);
        let span = |role: &Role| spans.of(role.name, &layout.groups(role), &pe_of).to_string();
        assert_eq!(layout.roles().iter().map(span).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn groups_are_within_nodes_or_meet_at_a_switch() {
        let job = "parallel:tp=2,pp=2,dp=4";
        check(
            job,
            "tree:2:4*flat:2",
            |rank| rank,
            &[
                "tp (8 groups of 2 ranks): all within a node",
                "dp (4 groups of 4 ranks): 2 span switch 1.0, 2 span switch 1.1",
                "pp (8 groups of 2 ranks): 8 span switch 2.0",
            ],
        );
        // Ranks 0 and 15 are exchanged.
        let exchanged = |rank| match rank {
            0 => 15,
            15 => 0,
            rank => rank,
        };
        check(
            job,
            "tree:2:4*flat:2",
            exchanged,
            &[
                "tp (8 groups of 2 ranks): 6 within a node, 2 span switch 2.0",
                "dp (4 groups of 4 ranks): 2 span switch 2.0, 1 spans switch 1.0, 1 spans switch 1.1",
                "pp (8 groups of 2 ranks): 6 span switch 2.0, 1 spans switch 1.0, 1 spans switch 1.1",
            ],
        );
        check(
            "parallel:tp=4,dp=2",
            "torus:4*flat:2",
            |rank| rank,
            &["tp (2 groups of 4 ranks): 2 across nodes", "dp (4 groups of 2 ranks): 4 across nodes"],
        );
        check(
            "parallel:dp=12",
            "rails:pods=3,nodes=2,gpus=2",
            |rank| rank,
            &["dp (1 group of 12 ranks): 1 spans spines"],
        );
    }

    /// The switch is the lowest part of the tree that has all ranks, whatever the order of the ranks.
    #[test]
    fn the_switch_is_the_lowest_common_part_of_the_tree() {
        let machine = parse("tree:3:2:2:2").expect("a tree");
        let spans = Spans::on(&*machine);
        let size_of = |name: &str| match name.strip_prefix("switch ").and_then(|name| name.split_once('.')) {
            Some((height, node)) => {
                (height.parse::<u32>().expect("a height"), node.parse::<u32>().expect("a node"))
            }
            None => panic!("{name} is no switch"),
        };
        for seed in 0..200u32 {
            let pes: Vec<u32> = (0..4).map(|i| (seed * 7 + i * i * (seed % 5 + 1)) % 24).collect();
            let Some(found) = spans.switch(&pes) else { continue };
            let (height, node) = size_of(&found.expect("a switch"));
            let below = |height: u32| if height == 4 { 24 } else { 1 << height };
            assert!(pes.iter().all(|pe| pe / below(height) == node), "{pes:?}");
            assert!(pes.iter().any(|pe| pe / below(height - 1) != pes[0] / below(height - 1)), "{pes:?}");
        }
    }
}

//! A tree with named nodes: switches over hosts, or packages and caches over hardware threads.
//!
//! This is the content of machine files of Slurm, topograph and hwloc. PEs are the leaves, from left to right, at any
//! depth. The distance of two PEs is the number of links between them. Every message goes up to the lowest common
//! ancestor, then down.

use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Link, MAX_LINKS, MAX_PES, Shape, Topology,
    count_links,
};

/// The largest number of levels below the root.
const MAX_LEVELS: usize = 64;

/// A part of a tree under construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The name, such as `switch leaf1`; for a PE, the name of its host, if any.
    pub name: Option<String>,
    /// The index of the parent, which precedes this part in the list.
    pub parent: usize,
    /// Whether the part is a PE; other parts without PEs below are ignored.
    pub is_pe: bool,
}

impl Part {
    /// Removes the root if it has a single child and the child is not a PE; the child becomes the root.
    pub(super) fn without_idle_root(mut parts: Vec<Part>) -> Vec<Part> {
        let mut tops = parts.iter().skip(1).filter(|part| part.parent == 0);
        if tops.next().is_some_and(|part| !part.is_pe) && tops.next().is_none() {
            parts.remove(0);
            parts.iter_mut().for_each(|part| part.parent = part.parent.saturating_sub(1));
        }
        parts
    }
}

/// A machine given by a named tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTree {
    /// The spec of this machine.
    spec: String,
    /// The nodes in depth-first order from the root, children from left to right.
    nodes: Vec<Node>,
    /// For each PE: its node.
    leaves: Vec<u32>,
    diameter: u32,
    /// For each PE: its host; empty if every PE is a host.
    host_of: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Node {
    name: Option<String>,
    parent: u32,
    depth: u32,
    /// The PEs below the node (or the PE itself) are `first..end`.
    first: u32,
    end: u32,
    is_pe: bool,
}

impl NamedTree {
    /// The tree of these parts, with spec `spec`. The first part is the root; children of a part are ordered as in the
    /// list.
    ///
    /// # Errors
    /// If there is no PE, there are too many PEs or more than 64 levels, or a name is invalid.
    ///
    /// # Panics
    /// If the root is a PE, a PE has children, or a part precedes its parent.
    pub fn new(spec: &str, parts: Vec<Part>) -> Result<Self, String> {
        check_names(&parts)?;
        let depths = depths(&parts)?;
        let mut pes_below: Vec<usize> = parts.iter().map(|part| usize::from(part.is_pe)).collect();
        for id in (1..parts.len()).rev() {
            pes_below[parts[id].parent] += pes_below[id];
        }
        let pes = pes_below.first().copied().unwrap_or(0);
        if pes == 0 {
            return Err("the machine has no host; name at least one".into());
        }
        if pes > MAX_PES {
            return Err(format!("there are {pes} hosts, but a machine has at most {MAX_PES} PEs"));
        }
        count_links([parts.len().checked_mul(2).filter(|&links| links <= MAX_LINKS)])?;
        // The first PE and the node number of each part; both follow from the sizes of the preceding parts of the same
        // level.
        let mut sizes: Vec<usize> = pes_below.iter().map(|&below| usize::from(below > 0)).collect();
        for id in (1..parts.len()).rev() {
            sizes[parts[id].parent] += sizes[id];
        }
        let (mut place, mut first) = (vec![0; parts.len()], vec![0; parts.len()]);
        let (mut next_place, mut next_first) = (vec![1; parts.len()], vec![0; parts.len()]);
        for (id, part) in parts.iter().enumerate().skip(1) {
            let parent = part.parent;
            (place[id], first[id]) = (next_place[parent], next_first[parent]);
            next_place[parent] += sizes[id];
            next_first[parent] += pes_below[id];
            (next_place[id], next_first[id]) = (place[id] + 1, first[id]);
        }
        let mut order: Vec<usize> = (0..parts.len()).filter(|&id| pes_below[id] > 0).collect();
        order.sort_unstable_by_key(|&id| place[id]);
        let (mut nodes, mut leaves) = (Vec::with_capacity(order.len()), Vec::with_capacity(pes));
        let mut parts: Vec<Option<Part>> = parts.into_iter().map(Some).collect();
        for id in order {
            let Some(Part { name, parent, is_pe }) = parts[id].take() else { continue };
            if is_pe {
                leaves.push(nodes.len() as u32);
            }
            let (first, end) = (first[id] as u32, (first[id] + pes_below[id]) as u32);
            nodes.push(Node { name, parent: place[parent] as u32, depth: depths[id], first, end, is_pe });
        }
        let mut tree = NamedTree { spec: spec.to_string(), nodes, leaves, diameter: 0, host_of: Vec::new() };
        tree.diameter = tree.longest();
        Ok(tree)
    }

    #[cfg(feature = "formats")]
    /// The same tree; PE `i` is a part of host `host_of[i]`.
    pub(super) fn with_hosts(self, host_of: Vec<u32>) -> Self {
        NamedTree { host_of, ..self }
    }

    /// The largest distance of two PEs: the maximum over all nodes of the depths of the two deepest children.
    fn longest(&self) -> u32 {
        let mut deepest: Vec<u32> = self.nodes.iter().map(|node| node.depth).collect();
        let mut longest = 0;
        let mut is_first = vec![true; self.nodes.len()];
        for (id, node) in self.nodes.iter().enumerate().skip(1).rev() {
            let parent = node.parent as usize;
            if !std::mem::replace(&mut is_first[parent], false) {
                let apart = deepest[id] + deepest[parent] - 2 * self.nodes[parent].depth;
                longest = longest.max(apart);
            }
            deepest[parent] = deepest[parent].max(deepest[id]);
        }
        longest
    }

    fn leaf(&self, pe: usize) -> &Node {
        &self.nodes[self.leaves[pe] as usize]
    }

    /// The node where two PEs meet.
    fn meet(&self, a: usize, b: usize) -> usize {
        let (mut a, b) = (self.leaves[a] as usize, b as u32);
        while !(self.nodes[a].first..self.nodes[a].end).contains(&b) {
            a = self.nodes[a].parent as usize;
        }
        a
    }

    /// The name of a node.
    fn name(&self, id: usize) -> String {
        let node = &self.nodes[id];
        match &node.name {
            Some(name) if !node.is_pe => name.clone(),
            _ if node.is_pe => node.first.to_string(),
            _ => format!("part {id}"),
        }
    }
}

/// Checks that hosts are unambiguous in launcher files, and parts in the names of links.
fn check_names(parts: &[Part]) -> Result<(), String> {
    for part in parts {
        let Some(name) = &part.name else { continue };
        let is_odd = |letter: char| {
            letter.is_control() || part.is_pe && (letter.is_whitespace() || ",;=\"".contains(letter))
        };
        if name.is_empty() || name.contains(is_odd) || name.contains(" -> ") {
            return Err(format!("`{}` is not a valid name; use a name without blanks", name.escape_debug()));
        }
    }
    Ok(())
}

/// The depth of each part.
fn depths(parts: &[Part]) -> Result<Vec<u32>, String> {
    let mut depths: Vec<u32> = Vec::with_capacity(parts.len());
    for (id, part) in parts.iter().enumerate() {
        if id == 0 {
            assert!(!part.is_pe, "the root is no PE");
            depths.push(0);
            continue;
        }
        assert!(!parts[part.parent].is_pe, "nothing hangs from a PE");
        let depth = depths[part.parent] + 1;
        if depth as usize > MAX_LEVELS {
            let name = part.name.as_deref().unwrap_or("a part");
            return Err(format!("{name} is more than {MAX_LEVELS} levels below the top"));
        }
        depths.push(depth);
    }
    Ok(depths)
}

impl Topology for NamedTree {
    fn spec(&self) -> String {
        self.spec.clone()
    }

    fn pes(&self) -> usize {
        self.leaves.len()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.leaf(a).depth + self.leaf(b).depth - 2 * self.nodes[self.meet(a, b)].depth
    }

    /// From `a` upwards: PEs below a node, but not below its child on the path from `a`, meet `a` at this node.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let mut at = self.leaves[a] as usize;
        let depth = self.nodes[at].depth;
        row[a] = 0;
        while at != 0 {
            let below = &self.nodes[at];
            at = below.parent as usize;
            let node = &self.nodes[at];
            let new = (node.first..below.first).chain(below.end..node.end);
            for b in new {
                row[b as usize] = depth + self.leaf(b as usize).depth - 2 * node.depth;
            }
        }
    }

    fn diameter(&self) -> u32 {
        self.diameter
    }

    fn links(&self) -> usize {
        2 * (self.nodes.len() - 1)
    }

    /// Every node except the root has a link up, followed by a link down.
    fn link(&self, id: usize) -> Link {
        let (below, above) = (1 + id / 2, self.nodes[1 + id / 2].parent as usize);
        let (from, to) = if id % 2 == 0 { (below, above) } else { (above, below) };
        Link {
            name: format!("{} -> {}", self.name(from), self.name(to)),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: 1,
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let top = self.meet(a, b);
        let up = |pe: usize| {
            let parent = |&id: &usize| Some(self.nodes[id].parent as usize);
            std::iter::successors(Some(self.leaves[pe] as usize), parent).take_while(move |&id| id != top)
        };
        links.extend(up(a).map(|id| 2 * (id - 1)));
        let down = links.len();
        links.extend(up(b).map(|id| 2 * (id - 1) + 1));
        links[down..].reverse();
    }

    /// A PE of a smaller depth is a node of its own on all deeper levels.
    fn hierarchy(&self) -> Option<Hierarchy> {
        let depth = self.nodes.iter().map(|node| node.depth).max().unwrap_or(0);
        let pes = self.pes() as u32;
        let level = |level: u32| {
            let here = |node: &&Node| node.depth == level || (node.is_pe && node.depth < level);
            self.nodes.iter().filter(here).map(|node| node.first).chain([pes]).collect()
        };
        Some(Hierarchy::new((0..pes).collect(), (0..=depth).map(level).collect()))
    }

    /// Of hosts, that which they are below, also if it has one host. PEs without names are parts of a computer.
    fn switches(&self) -> Option<Vec<u32>> {
        if !self.host_of.is_empty() || self.leaf(0).name.is_none() {
            return self.hierarchy()?.closest_parts(|pe| self.node_of(pe));
        }
        let of: Vec<u32> = self.leaves.iter().map(|&leaf| self.nodes[leaf as usize].parent).collect();
        of.iter().any(|&switch| switch != of[0]).then_some(of)
    }

    /// If all PEs have the same depth, the level at which two PEs meet determines their distance.
    fn shape(&self) -> Shape {
        let depth = self.leaf(0).depth;
        let is_even = self.leaves.iter().all(|&leaf| self.nodes[leaf as usize].depth == depth);
        self.hierarchy().map_or(Shape::Any, if is_even { Shape::Tree } else { Shape::Nested })
    }

    fn host(&self, pe: usize) -> Option<&str> {
        self.leaf(pe).name.as_deref()
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        (a != b).then(|| self.name(self.meet(a, b)))
    }

    fn node_of(&self, pe: usize) -> usize {
        self.host_of.get(pe).map_or(pe, |&host| host as usize)
    }

    /// PEs of a host are adjacent.
    fn core_of(&self, pe: usize) -> usize {
        let before = self.host_of.get(..pe).unwrap_or_default();
        before.iter().rev().take_while(|&&host| host == self.host_of[pe]).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree in which the parent of part `i` is `parents[i - 1]`; parts without children are PEs.
    fn tree(parents: &[usize]) -> NamedTree {
        let part = |id: usize| Part {
            name: Some(format!("n{id}")),
            parent: id.checked_sub(1).map_or(0, |before| parents[before]),
            is_pe: id > 0 && !parents.contains(&id),
        };
        NamedTree::new("", (0..=parents.len()).map(part).collect()).expect("a tree")
    }

    fn row(tree: &NamedTree, a: usize) -> Vec<u32> {
        let mut row = vec![u32::MAX; tree.pes()];
        tree.distances_from(a, &mut row);
        row
    }

    #[test]
    fn pes_are_the_leaves_from_left_to_right() {
        // The root has two switches and a host; parts are listed by level.
        let uneven = tree(&[0, 0, 0, 1, 1, 2, 6, 6]);
        let hosts: Vec<&str> = (0..uneven.pes()).filter_map(|pe| uneven.host(pe)).collect();
        assert_eq!(hosts, ["n4", "n5", "n7", "n8", "n3"]);
        assert_eq!(row(&uneven, 0), [0, 2, 5, 5, 3]);
        assert_eq!(row(&uneven, 4), [3, 3, 4, 4, 0]);
        assert_eq!(uneven.diameter(), 5);
        let mut route = Vec::new();
        uneven.route(0, 4, &mut route);
        let names: Vec<String> = route.into_iter().map(|id| uneven.link(id).name).collect();
        assert_eq!(names, ["0 -> n1", "n1 -> n0", "n0 -> 4"]);
    }

    #[test]
    fn shallow_pes_are_nodes_of_all_deeper_levels() {
        let levels = tree(&[0, 0, 0, 1, 1, 2, 6, 6]).hierarchy().expect("a tree");
        let describe = |level: usize| {
            let nodes = levels.nodes(level).map(|node| format!("{}..{}", node.start, node.end));
            nodes.collect::<Vec<_>>().join(" ")
        };
        let all: Vec<String> = (0..=levels.depth()).map(describe).collect();
        assert_eq!(all, ["0..5", "0..2 2..4 4..5", "0..1 1..2 2..4 4..5", "0..1 1..2 2..3 3..4 4..5"]);
        assert_eq!(levels.arities(), None);
        assert!(matches!(tree(&[0, 0, 1, 1, 2]).shape(), Shape::Tree(_)), "uneven, but of equal depth");
        assert!(matches!(tree(&[0, 0, 1, 1]).shape(), Shape::Nested(_)));
        assert_eq!(tree(&[0, 0, 1, 1, 2, 2]).hierarchy().and_then(|tree| tree.arities()), Some(vec![2, 2]));
    }

    #[test]
    fn ignores_parts_without_pes() {
        let part = |name: &str, parent, is_pe| Part { name: Some(name.into()), parent, is_pe };
        let parts = vec![part("top", 0, false), part("idle", 0, false), part("used", 0, false)];
        let error = NamedTree::new("", parts.clone()).expect_err("no PE");
        assert!(error.contains("the machine has no host"), "{error}");
        let tree = NamedTree::new("", [parts, vec![part("n", 2, true)]].concat()).expect("a PE");
        assert_eq!((tree.links(), tree.link(0).name, tree.diameter()), (4, "used -> top".into(), 0));
        let chain = (0..70).map(|id: usize| part("s", id.saturating_sub(1), false)).collect();
        let error = NamedTree::new("", chain).expect_err("deep");
        assert!(error.contains("more than 64 levels"), "{error}");
    }
}

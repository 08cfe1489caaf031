//! `job:4x8:torus:4x4`: the processes of a job on the nodes of a network.
//!
//! Every PE of the network is a node. In this example, each node has 4 processes, and each process has 8 PEs. PE p is PE
//! p mod 8 of process p / 8. The processes of a node have consecutive numbers; in `job:4x8:cyclic:torus:4x4`, process q
//! is on node q mod 16. Other jobs are allocations: `job:4x8:flat:3[0-79]` has 2 processes on its last node.
//!
//! A node may have more levels: in `job:2.2x2.4:flat:16` it has 2 parts (such as sockets) with 2 processes each, and the
//! process has 2 parts (such as caches) with 4 PEs each.
//!
//! The distance of two PEs of a node is the number of levels up to the part that has both: 1 in a process and 2 between
//! processes if there are no more levels. The distance of PEs of two nodes is the number of levels plus the distance of
//! the nodes in the network (1 if it is flat). A message goes up level by level, takes the route of the network, and goes
//! down to the other PE. The links down have length 1, the links up have length 0. If the network is a product, its path
//! from a PE to the first link between nodes is not modelled.

use std::sync::Arc;

use super::operators::as_part;
use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, SpecError, Topology,
    count_links, count_pes, rename,
};

#[cfg(test)]
mod tests;

/// The entry of `job:..` in the list of machines. Complete specs are parsed by [`Job::parse`]; `item` gets only others.
pub const KIND: Kind = Kind {
    name: "job",
    form: "job:4x8:flat:16, job:4x8:cyclic:torus:4x4, job:2.2x8:flat:16",
    help: "Processes per node, PEs per process, and a network whose PEs are the nodes. Processes fill node after node, \
           or with cyclic take the nodes in turn. Distance in a process 1, in a node 2, between nodes 2 plus that of the \
           network (flat: 3). More levels have dots: 2.2x8 are 2 sockets of 2 processes of 8 PEs (distances 1, 2, 3). \
           Under mpirun with --transport mpi, `job` is the running job on a flat network, and \
           job:SPEC the running job on the network SPEC: its nodes are found by host name if the machine has names, \
           else node i (in order of first appearance) is PE i. A program that was built with hwloc divides all nodes like \
           that of process 0, whose hardware threads the PEs of the node share evenly.",
    params: &[],
    item: |_| {
        Err("no job is running here; run under mpirun with --transport mpi, or write the processes per node, the PEs \
             per process and the network, as in job:4x8:flat:16"
            .into())
    },
};

/// The processes of a job on the nodes of a network, with the same number of processes on each node.
pub struct Job {
    network: Arc<dyn Topology>,
    nodes: usize,
    /// Processes per node.
    processes: usize,
    /// PEs per process.
    pes: usize,
    /// The levels of a node from the top: the number of parts in each part of the level above. Processes and PEs are parts.
    levels: Vec<usize>,
    /// For each level: the number of PEs of a part.
    part_pes: Vec<usize>,
    /// The number of levels down to the processes.
    process_levels: usize,
    /// Whether process q is on node q mod `nodes`, and not on node q / `processes`.
    is_cyclic: bool,
    /// The hardware threads of the PEs of a node, as the operating system numbers them; empty if unknown.
    pub(super) cpus: Vec<usize>,
}

/// The most levels of a node.
const MAX_LEVELS: usize = 16;

/// The text after `job:` in the spec of a [`Job`], which begins with a number.
pub(super) fn complete(spec: &str) -> Option<&str> {
    spec.strip_prefix("job:").filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

impl Job {
    /// The machine whose nodes are the PEs of `network`. `above` has the levels of a node down to the processes, and
    /// `inside` those of a process down to the PEs: the number of parts in each part of the level above. Process `q` is on
    /// node `q` divided by the number of processes of a node, or if `is_cyclic` on node `q` modulo the number of nodes.
    ///
    /// # Errors
    /// If a number is 0, there are too many levels, PEs or links, or distances exceed 32 bits.
    pub fn new(
        network: Arc<dyn Topology>,
        above: &[usize],
        inside: &[usize],
        is_cyclic: bool,
    ) -> Result<Self, String> {
        let (nodes, process_levels, levels) = (network.pes(), above.len(), [above, inside].concat());
        if levels.len() > MAX_LEVELS {
            return Err(format!("a node has {} levels; write at most {MAX_LEVELS}", levels.len()));
        }
        let pes = count_pes([&[nodes], &levels[..]].concat())?;
        let part_pes: Vec<usize> = (1..=levels.len()).map(|level| levels[level..].iter().product()).collect();
        let links = part_pes.iter().map(|size| 2 * pes / size);
        count_links(links.chain([network.links()]).map(Some))?;
        let (across, height) = (network.diameter(), levels.len() as u32);
        if across.checked_add(height).is_none() {
            return Err(format!("a distance of {height} + {across} exceeds 32 bits; use smaller distances"));
        }
        let (processes, pes) = (above.iter().product(), inside.iter().product());
        Ok(Job {
            network,
            nodes,
            processes,
            pes,
            levels,
            part_pes,
            process_levels,
            is_cyclic,
            cpus: Vec::new(),
        })
    }

    /// Parses the text after `job:`; `network` parses the spec of the network.
    pub(super) fn parse(
        text: &str,
        network: impl FnOnce(&str) -> Result<Arc<dyn Topology>, SpecError>,
    ) -> Result<Self, SpecError> {
        let levels = |text: &str| text.split('.').map(|parts| parts.parse().ok()).collect::<Option<Vec<_>>>();
        let numbers = |sizes: &str| {
            let (above, inside) = sizes.split_once('x')?;
            Some((levels(above)?, levels(inside)?))
        };
        let found = text.split_once(':').and_then(|(sizes, rest)| Some((numbers(sizes)?, rest)));
        let ((above, inside), rest) = found.ok_or_else(|| {
            format!("expected processes per node, PEs per process and a network such as 4x8:flat:16, found `{text}`")
        })?;
        let (rest, is_cyclic) = rest.strip_prefix("cyclic:").map_or((rest, false), |rest| (rest, true));
        Ok(Job::new(network(rest)?, &above, &inside, is_cyclic)?)
    }

    /// The node of a process, and the number of the process in its node.
    fn place(&self, process: usize) -> (usize, usize) {
        match self.is_cyclic {
            true => (process % self.nodes, process / self.nodes),
            false => (process / self.processes, process % self.processes),
        }
    }

    /// The inverse of [`Self::place`].
    pub(super) fn process_at(&self, node: usize, index: usize) -> usize {
        if self.is_cyclic { index * self.nodes + node } else { node * self.processes + index }
    }

    fn process_of(&self, pe: usize) -> usize {
        pe / self.pes
    }

    /// For each PE: its node, times the PEs of a node, plus its number in the node.
    fn places(&self) -> Vec<u32> {
        let place = |pe| self.node_of(pe) * self.processes * self.pes + self.core_of(pe);
        (0..Topology::pes(self)).map(|pe| place(pe) as u32).collect()
    }

    /// The tree of the processes and PEs of a node.
    fn node_tree(&self) -> Hierarchy {
        Hierarchy::balanced(&self.levels)
    }

    /// The tree of PEs for a tree of the nodes.
    fn tree_below(&self, network: &Hierarchy) -> Hierarchy {
        network.over(&self.node_tree()).keep(&self.places())
    }

    /// The number of levels from a PE up to the part of the node that has another PE of this node, too.
    fn height(&self, a: usize, b: usize) -> usize {
        let (a, b) = (self.core_of(a), self.core_of(b));
        let level = self.part_pes.iter().position(|size| a / size != b / size);
        level.map_or(0, |level| self.levels.len() - level)
    }

    /// Whether parts of a level are numbered like PEs, process by process; else they are numbered node by node.
    fn is_by_process(&self, level: usize) -> bool {
        level + 1 >= self.process_levels
    }

    /// The links up from a PE and the parts that it is in, from the lowest. The next number is the link down.
    fn up(&self, pe: usize) -> Vec<usize> {
        let by_node = self.node_of(pe) * self.processes * self.pes + self.core_of(pe);
        let levels = self.first_links().zip(&self.part_pes).enumerate();
        let up = levels.map(|(level, (first, size))| {
            first + 2 * (if self.is_by_process(level) { pe } else { by_node } / size)
        });
        let mut up: Vec<usize> = up.collect();
        up.reverse();
        up
    }

    /// For each level from the top, and finally for what follows: the number of its first link.
    fn first_links(&self) -> impl Iterator<Item = usize> {
        let (pes, mut next) = (Topology::pes(self), self.network.links());
        let firsts = self.part_pes.iter().map(move |size| {
            next += 2 * pes / size;
            next
        });
        std::iter::once(self.network.links()).chain(firsts)
    }

    /// The name of the part of a level that has a PE.
    fn part_name(&self, level: usize, pe: usize) -> String {
        let (node, index) = self.place(self.process_of(pe));
        if level + 1 == self.levels.len() {
            pe.to_string()
        } else if level + 1 == self.process_levels {
            format!("process {index} of node {node}")
        } else {
            format!("part {} of level {} of node {node}", self.core_of(pe) / self.part_pes[level], level + 1)
        }
    }
}

impl Topology for Job {
    fn spec(&self) -> String {
        // Brackets after the network would choose PEs of the job.
        let network = match self.network.spec() {
            network if network.ends_with(']') => format!("({network})"),
            network => as_part(network),
        };
        let cyclic = if self.is_cyclic { "cyclic:" } else { "" };
        let (above, inside) = self.levels.split_at(self.process_levels);
        let sizes = |levels: &[usize]| levels.iter().map(usize::to_string).collect::<Vec<_>>().join(".");
        format!("job:{}x{}:{cyclic}{network}", sizes(above), sizes(inside))
    }

    fn pes(&self) -> usize {
        self.nodes * self.processes * self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        if self.node_of(a) == self.node_of(b) {
            return self.height(a, b) as u32;
        }
        self.levels.len() as u32 + self.network.distance(self.node_of(a), self.node_of(b))
    }

    /// The distances of the nodes are written to the front of the row and expanded from its end. No node is numbered
    /// higher than its processes.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let (node, height) = (self.node_of(a), self.levels.len() as u32);
        self.network.distances_from(node, &mut row[..self.nodes]);
        for process in (0..self.nodes * self.processes).rev() {
            let distance = height + row[self.place(process).0];
            row[process * self.pes..][..self.pes].fill(distance);
        }
        for index in 0..self.processes {
            let first = self.process_at(node, index) * self.pes;
            (first..first + self.pes).for_each(|pe| row[pe] = self.height(a, pe) as u32);
        }
    }

    fn diameter(&self) -> u32 {
        match self.nodes {
            1 => self.height(0, Topology::pes(self) - 1) as u32,
            _ => self.levels.len() as u32 + self.network.diameter(),
        }
    }

    fn links(&self) -> usize {
        self.first_links().last().unwrap_or(0)
    }

    /// The links of the network come first, then those of each level from the top.
    fn link(&self, id: usize) -> Link {
        let Some((level, first)) = self.first_links().enumerate().filter(|(_, first)| *first <= id).last()
        else {
            let link = self.network.link(id);
            let name = rename(&link.name, |place, node| match node {
                Some(node) => format!("node {node}"),
                None => format!("network {place}"),
            });
            return Link { name, ..link };
        };
        let (part, is_up) = ((id - first) / 2, (id - first).is_multiple_of(2));
        let mut pe = part * self.part_pes[level];
        if !self.is_by_process(level) {
            let (node, core) = (pe / (self.processes * self.pes), pe % (self.processes * self.pes));
            pe = self.process_at(node, core / self.pes) * self.pes + core % self.pes;
        }
        let lower = self.part_name(level, pe);
        let upper = match level {
            0 => format!("node {}", self.node_of(pe)),
            _ => self.part_name(level - 1, pe),
        };
        let (name, length) =
            if is_up { (format!("{lower} -> {upper}"), 0) } else { (format!("{upper} -> {lower}"), 1) };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let (up, down, same) = (self.up(a), self.up(b), self.node_of(a) == self.node_of(b));
        let height = if same { self.height(a, b) } else { self.levels.len() };
        links.extend(&up[..height]);
        if !same {
            self.network.route(self.node_of(a), self.node_of(b), links);
        }
        links.extend(down[..height].iter().rev().map(|link| link + 1));
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let same = self.node_of(a) == self.node_of(b);
        let height = if same { self.height(a, b) } else { self.levels.len() };
        let (up, down) = (&self.up(a)[..height], &self.up(b)[..height]);
        let Some(crossed) = crossed else { return links.extend(up.first()) };
        if let Some(level) = up.iter().position(|&link| link == crossed).filter(|level| level + 1 < height) {
            return links.push(up[level + 1]);
        }
        if let Some(level) = down.iter().position(|&link| link + 1 == crossed) {
            return links.extend(down[..level].last().map(|link| link + 1));
        }
        let (before, in_network) = (links.len(), (crossed < self.network.links()).then_some(crossed));
        self.network.onward(self.node_of(a), self.node_of(b), in_network, links);
        if links.len() == before {
            links.push(down[height - 1] + 1);
        }
    }

    /// The tree of the network with the processes and PEs of a node below each leaf; a network without a tree gets one by
    /// node number.
    fn hierarchy(&self) -> Option<Hierarchy> {
        let network = self.network.hierarchy().unwrap_or_else(|| Hierarchy::by_number(self.nodes));
        Some(self.tree_below(&network))
    }

    fn shape(&self) -> Shape {
        match self.network.shape() {
            Shape::Tree(network) => Shape::Tree(self.tree_below(&network)),
            network => Shape::Product {
                network: Box::new(network),
                node: Box::new(Shape::Tree(self.node_tree())),
                cores: self.processes * self.pes,
                places: self.places(),
            },
        }
    }

    fn host(&self, pe: usize) -> Option<&str> {
        self.network.host(self.node_of(pe))
    }

    fn cpu_of(&self, pe: usize) -> Option<usize> {
        self.cpus.get(self.core_of(pe)).copied()
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        let (here, there) = (self.node_of(a), self.node_of(b));
        if here == there { None } else { self.network.switch_between(here, there) }
    }

    fn node_of(&self, pe: usize) -> usize {
        self.place(self.process_of(pe)).0
    }

    fn core_of(&self, pe: usize) -> usize {
        self.place(self.process_of(pe)).1 * self.pes + pe % self.pes
    }
}

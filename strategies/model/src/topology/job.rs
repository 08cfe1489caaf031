//! `job:4x8:torus:4x4`: the processes of a job on the nodes of a network.
//!
//! Every PE of the network is a node. In this example, each node has 4 processes, and each process has 8 PEs. PE p is PE
//! p mod 8 of process p / 8. The processes of a node have consecutive numbers; in `job:4x8:cyclic:torus:4x4`, process q
//! is on node q mod 16. Other jobs are allocations: `job:4x8:flat:3[0-79]` has 2 processes on its last node.
//!
//! Two PEs of a process have distance 1, of two processes of a node 2, and of two nodes 2 plus the distance of the nodes
//! in the network (3 if the network is flat). A message goes from the PE to its process and to its node, takes the route
//! of the network, and goes down to the other PE. The links down have length 1, the links up have length 0. If the
//! network is a product, its path from a PE to the first link between nodes is not modelled.

use std::net::IpAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::allocation::{Hosts, part};
use super::spec::{self, TopologyError, as_part, parse};
use super::{
    DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Flat, Hierarchy, Kind, Link, Shape, SpecError, Topology,
    count_links, count_pes, rename,
};
use crate::table::count;

#[cfg(test)]
mod tests;

/// The entry of `job:..` in the list of machines. Complete specs are parsed by [`Job::parse`]; `item` gets only others.
pub const KIND: Kind = Kind {
    name: "job",
    form: "job:4x8:flat:16, job:4x8:cyclic:torus:4x4",
    help: "Processes per node, PEs per process, and a network whose PEs are the nodes. Processes fill node after node, \
           or with cyclic take the nodes in turn. Distance in a process 1, in a node 2, between nodes 2 plus that of the \
           network (flat: 3). Under mpirun with --transport mpi, `job` is the running job on a flat network, and \
           job:SPEC the running job on the network SPEC: its nodes are found by host name if the machine has names, \
           else node i (in order of first appearance) is PE i.",
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
    /// Whether process q is on node q mod `nodes`, and not on node q / `processes`.
    is_cyclic: bool,
}

/// The machine that `spec` describes for a running job: process `p` runs on the host `hosts[p]` and has
/// `pes_per_process` PEs. `job` is this job on a flat network, and `job:SPEC` is this job on the network `SPEC`. Any other
/// spec is parsed as by [`parse`]; the caller compares the numbers of PEs. The spec of the result is complete: `parse`
/// makes the same machine of it without the job.
///
/// # Errors
/// As for `parse`; also if the network lacks a host, or has fewer PEs than the job has nodes.
pub fn job(spec: &str, hosts: &[String], pes_per_process: usize) -> Result<Arc<dyn Topology>, TopologyError> {
    let network = match spec.strip_prefix("job") {
        Some("") => None,
        Some(rest) if rest.starts_with(':') && complete(spec).is_none() => Some(&rest[1..]),
        _ => return parse(spec),
    };
    spec::checked(spec, running(network, hosts, pes_per_process))
}

/// The text after `job:` in the spec of a [`Job`], which begins with a number.
pub(super) fn complete(spec: &str) -> Option<&str> {
    spec.strip_prefix("job:").filter(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// The machine of a running job on a network (`None`: flat).
fn running(network: Option<&str>, hosts: &[String], pes: usize) -> Result<Arc<dyn Topology>, SpecError> {
    let (mut number, mut names) = (FxHashMap::default(), Vec::new());
    let mut node = |host| {
        *number.entry(host).or_insert_with(|| {
            names.push(host);
            names.len() - 1
        })
    };
    let node_of: Vec<usize> = hosts.iter().map(|host| node(host.as_str())).collect();
    let nodes = names.len();
    let network = match network {
        None => Arc::new(Flat::new(nodes)?),
        Some(network) => {
            let network = spec::machine(network, 0)?;
            let places = places(&*network, &names)?;
            part(network, places)?
        }
    };
    // The number of each process in its node.
    let mut used = vec![0; nodes];
    let mut next = |node: usize| {
        used[node] += 1;
        used[node] - 1
    };
    let index: Vec<usize> = node_of.iter().map(|&node| next(node)).collect();
    let most = used.into_iter().max().unwrap_or(0);
    let is_cyclic = most > 1 && nodes > 1 && node_of.iter().enumerate().all(|(q, &node)| node == q % nodes);
    let job = Job::new(network, most, pes, is_cyclic).map_err(|reason| {
        let (nodes, most) = (count(nodes as u64, "node"), count(most as u64, "process"));
        format!("{nodes} with up to {most} and {} each: {reason}", count(pes as u64, "PE"))
    })?;
    let first = node_of.iter().zip(index).map(|(&node, index)| job.process_at(node, index) * pes);
    let pes = first.flat_map(|first| first as u32..(first + pes) as u32).collect();
    Ok(part(Arc::new(job), pes)?)
}

/// The PE of the network for each node of a job; `names` has the host of each node.
fn places(network: &dyn Topology, names: &[&str]) -> Result<Vec<u32>, String> {
    let (spec, pes) = (network.spec(), network.pes());
    let Some(Hosts(pes_of)) = Hosts::of(network) else {
        if pes < names.len() {
            let (pes, nodes) = (count(pes as u64, "PE"), count(names.len() as u64, "node"));
            return Err(format!(
                "`{spec}` has {pes}, but the job has {nodes}; write a network with a PE for each node"
            ));
        }
        return Ok((0..names.len() as u32).collect());
    };
    let mut by_short_name: FxHashMap<&str, Vec<u32>> = FxHashMap::default();
    for (name, pes) in &pes_of {
        by_short_name.entry(without_domain(name)).or_default().extend(pes);
    }
    let mut user: FxHashMap<u32, &str> = FxHashMap::default();
    let mut place = |name| {
        let pes = pes_of.get(name).or_else(|| by_short_name.get(without_domain(name))).ok_or_else(|| {
            format!(
                "`{spec}` has no host `{name}`, which runs a process of the job; add the host, or use `job`"
            )
        })?;
        let &[pe] = &pes[..] else {
            let pes = count(pes.len() as u64, "PE");
            return Err(format!(
                "host `{name}` has {pes} in `{spec}`; write a network with one PE for each host"
            ));
        };
        match user.insert(pe, name) {
            None => Ok(pe),
            Some(first) => Err(format!(
                "hosts `{first}` and `{name}` of the job are one host in `{spec}`; write their domains there"
            )),
        }
    };
    names.iter().map(|&name| place(name)).collect()
}

/// The name of a host without its domain; an IP address has none.
fn without_domain(name: &str) -> &str {
    match name.split_once('.') {
        Some((short, _)) if name.parse::<IpAddr>().is_err() => short,
        _ => name,
    }
}

impl Job {
    /// The machine whose nodes are the PEs of `network`, each with `processes` processes of `pes` PEs. Process `q` is on
    /// node `q / processes`, or if `is_cyclic` on node `q` modulo the number of nodes.
    ///
    /// # Errors
    /// If a number is 0, there are too many PEs or links, or distances exceed 32 bits.
    pub fn new(
        network: Arc<dyn Topology>,
        processes: usize,
        pes: usize,
        is_cyclic: bool,
    ) -> Result<Self, String> {
        let nodes = network.pes();
        let all = count_pes([nodes, processes, pes])?;
        count_links([network.links(), 2 * nodes * processes, 2 * all].map(Some))?;
        let across = network.diameter();
        if across.checked_add(2).is_none() {
            return Err(format!("a distance of 2 + {across} exceeds 32 bits; use smaller distances"));
        }
        Ok(Job { network, nodes, processes, pes, is_cyclic })
    }

    /// Parses the text after `job:`; `network` parses the spec of the network.
    pub(super) fn parse(
        text: &str,
        network: impl FnOnce(&str) -> Result<Arc<dyn Topology>, SpecError>,
    ) -> Result<Self, SpecError> {
        let numbers = |sizes: &str| {
            let (processes, pes) = sizes.split_once('x')?;
            Some((processes.parse().ok()?, pes.parse().ok()?))
        };
        let found = text.split_once(':').and_then(|(sizes, rest)| Some((numbers(sizes)?, rest)));
        let ((processes, pes), rest) = found.ok_or_else(|| {
            format!("expected processes per node, PEs per process and a network such as 4x8:flat:16, found `{text}`")
        })?;
        let (rest, is_cyclic) = rest.strip_prefix("cyclic:").map_or((rest, false), |rest| (rest, true));
        Ok(Job::new(network(rest)?, processes, pes, is_cyclic)?)
    }

    /// The node of a process, and the number of the process in its node.
    fn place(&self, process: usize) -> (usize, usize) {
        match self.is_cyclic {
            true => (process % self.nodes, process / self.nodes),
            false => (process / self.processes, process % self.processes),
        }
    }

    /// The inverse of [`Self::place`].
    fn process_at(&self, node: usize, index: usize) -> usize {
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
        Hierarchy::balanced(&[self.processes, self.pes])
    }

    /// The tree of PEs for a tree of the nodes.
    fn tree_below(&self, network: &Hierarchy) -> Hierarchy {
        network.over(&self.node_tree()).keep(&self.places())
    }

    /// The links up from a PE and from its process. The next number is the link down.
    fn up(&self, pe: usize) -> [usize; 2] {
        let first = self.network.links();
        let processes = self.nodes * self.processes;
        [first + 2 * (processes + pe), first + 2 * self.process_of(pe)]
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
        format!("job:{}x{}:{cyclic}{network}", self.processes, self.pes)
    }

    fn pes(&self) -> usize {
        self.nodes * self.processes * self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        if self.process_of(a) == self.process_of(b) {
            return u32::from(a != b);
        }
        2 + self.network.distance(self.node_of(a), self.node_of(b))
    }

    /// The distances of the nodes are written to the front of the row and expanded from its end. No node is numbered
    /// higher than its processes.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        self.network.distances_from(self.node_of(a), &mut row[..self.nodes]);
        for process in (0..self.nodes * self.processes).rev() {
            let distance = 2 + row[self.place(process).0];
            row[process * self.pes..][..self.pes].fill(distance);
        }
        row[self.process_of(a) * self.pes..][..self.pes].fill(1);
        row[a] = 0;
    }

    fn diameter(&self) -> u32 {
        match (self.nodes, self.processes) {
            (1, 1) => u32::from(self.pes > 1),
            _ => 2 + self.network.diameter(),
        }
    }

    fn links(&self) -> usize {
        self.network.links() + 2 * self.nodes * self.processes + 2 * Topology::pes(self)
    }

    /// The links of the network come first, then those of each process, then those of each PE.
    fn link(&self, id: usize) -> Link {
        let Some(below) = id.checked_sub(self.network.links()) else {
            let link = self.network.link(id);
            let name = rename(&link.name, |place, node| match node {
                Some(node) => format!("node {node}"),
                None => format!("network {place}"),
            });
            return Link { name, ..link };
        };
        let (below, is_up) = (below / 2, below.is_multiple_of(2));
        let process_name = |process| {
            let (node, index) = self.place(process);
            format!("process {index} of node {node}")
        };
        let (lower, upper) = match below.checked_sub(self.nodes * self.processes) {
            None => (process_name(below), format!("node {}", self.place(below).0)),
            Some(pe) => (pe.to_string(), process_name(self.process_of(pe))),
        };
        let (name, length) =
            if is_up { (format!("{lower} -> {upper}"), 0) } else { (format!("{upper} -> {lower}"), 1) };
        Link { name, bandwidth: DEFAULT_BANDWIDTH, latency_seconds: DEFAULT_LATENCY_SECONDS, length }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        let (up, down) = (self.up(a), self.up(b));
        if self.process_of(a) != self.process_of(b) {
            links.extend(up);
            self.network.route(self.node_of(a), self.node_of(b), links);
            links.extend([down[1] + 1, down[0] + 1]);
        } else if a != b {
            links.extend([up[0], down[0] + 1]);
        }
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        let height = if self.process_of(a) == self.process_of(b) { 1 } else { 2 };
        let (up, down) = (&self.up(a)[..height], &self.up(b)[..height]);
        let Some(crossed) = crossed else { return links.extend((a != b).then_some(up[0])) };
        if crossed == up[0] && height == 2 {
            return links.push(up[1]);
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

    fn node_of(&self, pe: usize) -> usize {
        self.place(self.process_of(pe)).0
    }

    fn core_of(&self, pe: usize) -> usize {
        self.place(self.process_of(pe)).1 * self.pes + pe % self.pes
    }
}

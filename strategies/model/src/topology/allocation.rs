//! `torus:8x8x8[0-63,128]`: some PEs of a machine.
//!
//! The brackets contain node numbers and ranges in PE order (`[3,0-1]`: PE 0 is node 3), `@FILE` for a file with a node
//! number per line in PE order, or `random:48,seed=1` for 48 uniformly chosen nodes in ascending order. Empty lines of
//! the file and lines that begin with `#` are ignored. If the machine has host names, a name stands for all PEs of the
//! host; hostlists are supported: `(slurm:topology.conf*tree:2:8)[n[01-04],n07]`.
//!
//! Distances, links and routes are those of the whole machine; messages also cross links of nodes outside the
//! allocation.

use std::fmt::Write as _;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::error::from_file;
use super::operators::as_part;
use super::{Hierarchy, Link, Shape, SpecError, Topology, rename};
use crate::hostlist;
use crate::params::{Param, Params};
use crate::random::{below, generator};
use crate::table;

/// The help text on allocations.
pub const HELP: (&str, &str) = (
    "torus:8x8x8[0-63,128], torus:8x8x8[@FILE], torus:8x8x8[random:48,seed=1]",
    "Some PEs of any machine, in the given order (in a file, one per line) or chosen at random; routes use \
     the whole machine. Quote the spec for the shell; (A*B)[..] for PEs of a product. Hosts by name, if the \
     machine has names: [n[01-04],n07].",
);

/// The stream of random numbers for the choice of nodes.
const STREAM: u64 = 0x616c_6c6f_6361_7465;

/// The cost of a single distance, divided by the cost of an entry of a row of distances.
const MAX_ROW_SHARE: usize = 8;

/// No PE.
const NONE: u32 = u32::MAX;

/// Some PEs of a machine; `M` refers to the machine.
pub struct Allocation<M = Arc<dyn Topology>> {
    machine: M,
    /// The text in the brackets of the spec.
    chosen: String,
    /// For each PE: its node in the machine.
    nodes: Vec<u32>,
    /// For each node: its PE, or [`NONE`].
    pe_of: Vec<u32>,
}

/// The key `seed` of a random allocation.
const SEED: Param = Param { key: "seed", default: "0", help: "seed of the random number generator" };

impl<M: Deref<Target: Topology>> Allocation<M> {
    /// The PEs `nodes` of `machine`: PE `i` is PE `nodes[i]` of the machine.
    ///
    /// # Errors
    /// If there is no node, or a node does not exist or is named twice.
    pub fn new(machine: M, nodes: Vec<u32>) -> Result<Self, String> {
        let chosen = ranges(&nodes);
        Allocation::of(machine, nodes, chosen)
    }

    /// As [`Allocation::new`], with the text `chosen` in the brackets of the spec.
    ///
    /// # Errors
    /// As [`Allocation::new`].
    pub fn of(machine: M, nodes: Vec<u32>, chosen: String) -> Result<Self, String> {
        if nodes.is_empty() {
            return Err("the allocation has no node; name at least one".into());
        }
        let mut pe_of = vec![NONE; machine.pes()];
        for (&node, pe) in nodes.iter().zip(0..) {
            let place = pe_of
                .get_mut(node as usize)
                .ok_or_else(|| no_node(u64::from(node), &machine.spec(), machine.pes()))?;
            if std::mem::replace(place, pe) != NONE {
                return Err(format!("node {node} is named twice; name each node once"));
            }
        }
        Ok(Allocation { machine, chosen, nodes, pe_of })
    }
}

impl Allocation {
    /// Parses the text in the brackets.
    pub(super) fn parse(machine: Arc<dyn Topology>, text: &str) -> Result<Self, SpecError> {
        if let Some(name) = text.strip_prefix('@') {
            return from_file("nodes", name, |lines| {
                let nodes = read(lines, &*machine)?;
                Allocation::of(machine, nodes, text.to_string())
            });
        }
        if let Some(arguments) = text.strip_prefix("random:") {
            let (count, seed) = Params::parse_with("random", &[SEED], arguments, |params| {
                let counts = params.positional(["the number of nodes"]).ok();
                let count: usize = counts.and_then(|[count]| count.parse().ok()).ok_or_else(|| {
                    format!("expected a number of nodes and a seed such as random:48,seed=1, found `{text}`")
                })?;
                Ok::<_, String>((count, params.take::<u64>("seed")?))
            })?;
            if count > machine.pes() {
                return Err(format!(
                    "the machine has {}, but {count} are requested; request fewer",
                    table::count(machine.pes() as u64, "node")
                )
                .into());
            }
            let nodes = sample(machine.pes(), count, seed);
            return Ok(Allocation::of(machine, nodes, format!("random:{count},seed={seed}"))?);
        }
        let nodes = match Hosts::of(&*machine) {
            Some(hosts) if text.contains(char::is_alphabetic) => hosts.list(text)?,
            _ => list(text, &*machine)?,
        };
        Ok(Allocation::new(machine, nodes)?)
    }
}

/// The PEs `nodes` of a machine: the machine itself if these are all its PEs in order, else an [`Allocation`].
pub(super) fn part(machine: Arc<dyn Topology>, nodes: Vec<u32>) -> Result<Arc<dyn Topology>, String> {
    if nodes.iter().map(|&node| node as usize).eq(0..machine.pes()) {
        return Ok(machine);
    }
    Ok(Arc::new(Allocation::new(machine, nodes)?))
}

/// Parses nodes and ranges of nodes, separated by commas.
fn list(text: &str, machine: &dyn Topology) -> Result<Vec<u32>, String> {
    let expected = || {
        format!(
            "expected nodes such as 0-63,128 or @FILE or random:48,seed=1 between the brackets, found `{text}`"
        )
    };
    let mut nodes = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| expected());
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("the range {part} is empty; write the lower node first"));
        }
        if last >= machine.pes() as u64 {
            return Err(no_node(last, &machine.spec(), machine.pes()));
        }
        if nodes.len() as u64 + (last - first) >= machine.pes() as u64 {
            let nodes = table::count(machine.pes() as u64, "node");
            return Err(format!("the machine has {nodes}, but more are named; name each once"));
        }
        nodes.extend(first as u32..=last as u32);
    }
    Ok(nodes)
}

/// Parses the nodes or hosts of a file, one or several per line.
fn read(text: &str, machine: &dyn Topology) -> Result<Vec<u32>, String> {
    let (hosts, mut nodes) = (Hosts::of(machine), Vec::new());
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |reason: String| format!("line {number}: {reason}");
        match (line.parse::<u64>(), &hosts) {
            (Ok(node), _) if node >= machine.pes() as u64 => {
                return Err(wrong(no_node(node, &machine.spec(), machine.pes())));
            }
            (Ok(node), _) => nodes.push(node as u32),
            (Err(_), Some(hosts)) => nodes.extend(hosts.list(line).map_err(wrong)?),
            (Err(_), None) => return Err(wrong(format!("expected a node, found `{line}`"))),
        }
    }
    Ok(nodes)
}

/// The PEs of each host of a machine with host names.
pub(super) struct Hosts<'a>(pub(super) FxHashMap<&'a str, Vec<u32>>);

impl<'a> Hosts<'a> {
    /// `None` if the machine has no host names.
    pub(super) fn of(machine: &'a dyn Topology) -> Option<Self> {
        let mut pes: FxHashMap<&str, Vec<u32>> = FxHashMap::default();
        for pe in 0..machine.pes() {
            pes.entry(machine.host(pe)?).or_default().push(pe as u32);
        }
        Some(Hosts(pes))
    }

    /// The PEs of the hosts of a hostlist, in order.
    fn list(&self, text: &str) -> Result<Vec<u32>, String> {
        let mut nodes = Vec::new();
        for host in hostlist::expand(text)? {
            let pes = self.0.get(host.as_str());
            nodes.extend(pes.ok_or_else(|| {
                format!("the machine has no host {host}; give a host or a list such as n[1-4]")
            })?);
        }
        Ok(nodes)
    }
}

fn no_node(node: u64, machine: &str, nodes: usize) -> String {
    format!("there is no node {node}; {machine} has nodes 0 to {}", nodes - 1)
}

/// A uniform sample of `count` numbers below `all`, ascending (selection sampling: D. E. Knuth, The Art of Computer
/// Programming 2, algorithm 3.4.2 S).
fn sample(all: usize, count: usize, seed: u64) -> Vec<u32> {
    let (mut rng, mut nodes) = (generator(seed, STREAM), Vec::with_capacity(count));
    for node in 0..all {
        if below(&mut rng, (all - node) as u64) < (count - nodes.len()) as u64 {
            nodes.push(node as u32);
        }
    }
    nodes
}

/// The nodes as ranges, in order.
fn ranges(nodes: &[u32]) -> String {
    let mut text = String::new();
    for run in nodes.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match run {
            [first, .., last] => write!(text, "{comma}{first}-{last}"),
            _ => write!(text, "{comma}{}", run[0]),
        };
    }
    text
}

impl<M: Deref<Target: Topology> + Send + Sync> Topology for Allocation<M> {
    fn spec(&self) -> String {
        format!("{}[{}]", as_part(self.machine.spec()), self.chosen)
    }

    fn pes(&self) -> usize {
        self.nodes.len()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.machine.distance(self.nodes[a] as usize, self.nodes[b] as usize)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        let a = self.nodes[a] as usize;
        if self.machine.pes() / self.nodes.len() > MAX_ROW_SHARE {
            return self.machine.distances_to(a, &self.nodes, row);
        }
        let mut whole = vec![0; self.machine.pes()];
        self.machine.distances_from(a, &mut whole);
        row.iter_mut().zip(&self.nodes).for_each(|(distance, &node)| *distance = whole[node as usize]);
    }

    /// An upper bound; the exact value would require all pairs, of which there may be 10^14.
    fn diameter(&self) -> u32 {
        self.machine.diameter()
    }

    fn links(&self) -> usize {
        self.machine.links()
    }

    fn link(&self, id: usize) -> Link {
        let link = self.machine.link(id);
        let name = rename(&link.name, |place, node| match node.map(|node| (node, self.pe_of[node])) {
            Some((node, NONE)) => format!("unused {node}"),
            Some((_, pe)) => pe.to_string(),
            // In an allocation of an allocation, the inner numbers of unused nodes must not be confused with PEs.
            None if place.contains("unused ") => format!("still {place}"),
            None => place.to_string(),
        });
        Link { name, ..link }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        self.machine.route(self.nodes[a] as usize, self.nodes[b] as usize, links);
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        self.machine.onward(self.nodes[a] as usize, self.nodes[b] as usize, crossed, links);
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        Some(self.machine.hierarchy()?.keep(&self.nodes))
    }

    fn switches(&self) -> Option<Vec<u32>> {
        let all = self.machine.switches()?;
        Some(self.nodes.iter().map(|&node| all[node as usize]).collect())
    }

    fn shape(&self) -> Shape {
        self.machine.shape().keep(&self.nodes)
    }

    fn cpu_of(&self, pe: usize) -> Option<usize> {
        self.machine.cpu_of(self.nodes[pe] as usize)
    }

    fn host(&self, pe: usize) -> Option<&str> {
        self.machine.host(self.nodes[pe] as usize)
    }

    fn node_of(&self, pe: usize) -> usize {
        self.machine.node_of(self.nodes[pe] as usize)
    }

    fn core_of(&self, pe: usize) -> usize {
        self.machine.core_of(self.nodes[pe] as usize)
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        self.machine.switch_between(self.nodes[a] as usize, self.nodes[b] as usize)
    }

    fn number_of(&self, pe: usize) -> usize {
        self.machine.number_of(self.nodes[pe] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, route, row};

    #[test]
    fn an_allocation_has_its_pes_in_the_given_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("nodes");
        std::fs::write(&file, "# physical numbers\n0\n2\n\n1\n3\n").expect("a file");
        let file = format!("mesh:4[@{}]", file.display());
        let mine = parse(&file).expect("an allocation");
        assert_eq!((mine.spec(), row(&*mine, 0)), (file, vec![0, 2, 1, 3]));
        check(&*mine);
        let spec = |text: &str| parse(text).expect(text).spec();
        assert_eq!(spec("mesh:9[3,0-1,2,7]"), "mesh:9[3,0-2,7]");
        assert_eq!(spec("mesh:9[random:3]"), "mesh:9[random:3,seed=0]");
        assert_eq!(route("mesh:4[0,3]", 0, 1), "0 -> unused 1, unused 1 -> unused 2, unused 2 -> 1");
        let tree = |spec: &str| parse(spec).expect(spec).hierarchy().expect("a tree");
        assert_eq!(tree("tree:2:4[5,0,1,2]").leaves(), [1, 2, 3, 0]);
        assert_eq!(tree("tree:2:4[0-1,4-5]").arities(), Some(vec![2, 2]));
        assert_eq!(tree("tree:2:4[0-4]").arities(), None);
    }

    #[test]
    fn host_names_stand_for_all_pes_of_the_host() {
        const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/topology.conf");
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("hosts");
        let cores = format!("(slurm:{FILE}*flat:2)");
        let hosts = |chosen: &str| {
            let mine = parse(&format!("{cores}[{chosen}]")).map_err(|error| error.to_string())?;
            let name = |pe| format!("{}/{}", mine.host(pe).expect("a name"), mine.core_of(pe));
            Ok::<_, String>((0..mine.pes()).map(name).collect::<Vec<_>>().join(" "))
        };
        let found = hosts("gpu02,n[1-2]-ib").expect("hosts");
        assert_eq!(found, "gpu02/0 gpu02/1 n1-ib/0 n1-ib/1 n2-ib/0 n2-ib/1");
        std::fs::write(&file, "# ours\ngpu02\n\nn[1-2]-ib\n").expect("a file");
        assert_eq!(hosts(&format!("@{}", file.display())).expect("hosts"), found);
        std::fs::write(&file, "0\ngpu02\nn4-ib\n").expect("a file");
        for (chosen, expected) in [
            ("n4-ib", "the machine has no host n4-ib"),
            ("n1-ib,n1-ib", "is named twice"),
            (&format!("@{}", file.display()), "hosts: line 3: the machine has no host n4-ib"),
        ] {
            let error = hosts(chosen).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn random_allocations_are_reproducible_and_differ_by_seed() {
        let nodes = |seed: usize| {
            let mine = parse(&format!("mesh:100[random:10,seed={seed}]")).expect("an allocation");
            let first = mine.spec();
            let row = row(&*mine, 0);
            assert!(row.is_sorted(), "{first}: nodes ascend");
            row
        };
        assert_eq!(nodes(1), nodes(1));
        let different: std::collections::BTreeSet<Vec<u32>> = (0..20).map(nodes).collect();
        assert_eq!(different.len(), 20);
    }
}

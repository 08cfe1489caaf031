//! `slurm:topology.conf`, `slurm:topology.yaml`: the network of a cluster as Slurm's files describe it.
//!
//! The hosts are the PEs, from left to right below the switches (or blocks) of the file (those of a switch
//! itself before those of the switches below it), and distances are links crossed. Switches that hang from no
//! other, where there are several, hang from one more that is called `network`, and so do blocks. Of
//! `BlockSizes` all but the first say how many nodes belong together on further levels: with sizes 4, 8 and
//! 16, two neighboring blocks, and four. Speeds of links are not read, as Slurm does not use them either.
//!
//! Sources: the manual pages topology.conf(5) and topology.yaml(5) of Slurm. [`conf`] and [`yaml`] read them.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::spec::from_file;
use super::{Fault, Kind, NamedTree, Part, Topology};

mod conf;
#[cfg(test)]
mod tests;
mod yaml;

/// `slurm:FILE` for the table of machines.
pub const KIND: Kind = Kind {
    name: "slurm",
    form: "slurm:topology.conf, slurm:topology.yaml#NAME",
    help: "The hosts of Slurm's topology.conf or topology.yaml (trees of switches, blocks) as PEs; distances are \
           links crossed. #NAME chooses a topology of several [default: the cluster's].",
    parse,
};

/// A line of a file, from 1, and what is wrong there.
type Wrong = (usize, String);

/// What a file describes.
#[derive(Debug, PartialEq)]
enum Network {
    /// Switches over switches and hosts.
    Tree(Vec<Switch>),
    /// Blocks of hosts, and the sizes in which they are planned, smallest first.
    Blocks { sizes: Vec<usize>, blocks: Vec<Switch> },
}

/// A switch, or a block.
#[derive(Debug, Default, PartialEq)]
struct Switch {
    name: String,
    /// Where it is described.
    line: usize,
    /// The switches below it.
    children: Vec<String>,
    /// The hosts below it.
    hosts: Vec<String>,
}

fn parse(text: &str) -> Result<Arc<dyn Topology>, Fault> {
    let (file, wanted) = text.split_once('#').map_or((text, None), |(file, name)| (file, Some(name)));
    if file.is_empty() || wanted == Some("") {
        return Err("expected the name of a topology.conf, or of a topology.yaml and after # of one of its \
                    topologies"
            .into());
    }
    let lower = file.to_lowercase();
    let is_yaml = [".yaml", ".yml"].iter().any(|extension| lower.ends_with(extension));
    if let (Some(name), false) = (wanted, is_yaml) {
        return Err(format!("`{file}` holds one topology; leave #{name} out").into());
    }
    let spec = format!("slurm:{text}");
    let read = |text: &str| {
        let network = if is_yaml { yaml::read(text, wanted) } else { conf::read(text) };
        network
            .and_then(|network| tree(&spec, network))
            .map_err(|(line, reason)| format!("line {line}: {reason}"))
    };
    Ok(Arc::new(from_file("topology", file, read)?))
}

/// The machine of a network.
fn tree(spec: &str, network: Network) -> Result<NamedTree, Wrong> {
    let (last, parts) = match network {
        Network::Tree(switches) => (switches.last().map_or(1, |switch| switch.line), hang(switches)?),
        Network::Blocks { sizes, blocks } => {
            (blocks.last().map_or(1, |block| block.line), join(&sizes, blocks)?)
        }
    };
    NamedTree::new(spec, parts).map_err(|reason| (last, reason))
}

/// The parts of a tree of switches.
fn hang(switches: Vec<Switch>) -> Result<Vec<Part>, Wrong> {
    let mut place: FxHashMap<&str, usize> = FxHashMap::default();
    for (id, switch) in switches.iter().enumerate() {
        if let Some(first) = place.insert(&switch.name, id) {
            let (name, first) = (&switch.name, switches[first].line);
            return Err((switch.line, format!("switch {name} is described by line {first} already")));
        }
    }
    let mut above: Vec<Option<usize>> = vec![None; switches.len()];
    for (id, switch) in switches.iter().enumerate() {
        for child in &switch.children {
            let Some(&below) = place.get(child.as_str()) else {
                let sentence = format!(
                    "switch {} is over switch {child}, which is not described; describe it, or leave it out",
                    switch.name
                );
                return Err((switch.line, sentence));
            };
            if let Some(first) = above[below].replace(id) {
                let first = &switches[first];
                let sentence = format!(
                    "switch {child} hangs from {} already (line {}); a tree has one way up",
                    first.name, first.line
                );
                return Err((switch.line, sentence));
            }
        }
    }
    let mut parts = vec![network()];
    // Switches to be hung, and the part that each hangs from, in the order of the parts.
    let roots = (0..switches.len()).filter(|&id| above[id].is_none());
    let mut waiting: VecDeque<(usize, usize)> = roots.map(|id| (id, 0)).collect();
    let (mut line_of, mut is_hung) = (FxHashMap::default(), vec![false; switches.len()]);
    while let Some((id, parent)) = waiting.pop_front() {
        let (switch, part) = (&switches[id], parts.len());
        is_hung[id] = true;
        parts.push(Part { name: Some(format!("switch {}", switch.name)), parent, is_pe: false });
        waiting.extend(switch.children.iter().map(|child| (place[child.as_str()], part)));
        hosts(switch, part, &mut line_of, &mut parts)?;
    }
    if let Some(lost) = is_hung.iter().position(|&is_hung| !is_hung) {
        // Whoever goes up for long enough from below a circle is in it.
        let top = (0..switches.len()).fold(lost, |at, _| above[at].unwrap_or(at));
        let switch = &switches[top];
        return Err((switch.line, format!("switch {} is above itself; break the circle", switch.name)));
    }
    Ok(Part::without_idle_root(parts))
}

/// What is above all that hangs from nothing else.
fn network() -> Part {
    Part { name: Some("network".into()), parent: 0, is_pe: false }
}

/// The parts of blocks that belong together in the given sizes.
fn join(sizes: &[usize], blocks: Vec<Switch>) -> Result<Vec<Part>, Wrong> {
    let mut parts = vec![network()];
    let mut line_of = FxHashMap::default();
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let base = sizes.first().copied().unwrap_or(1);
    // The sizes that join some blocks and not all, largest first, and the part that is being filled of each.
    let joined: Vec<usize> =
        sizes.iter().skip(1).rev().copied().filter(|size| size / base < blocks.len()).collect();
    let mut current = vec![0; joined.len()];
    for (id, block) in blocks.iter().enumerate() {
        if let Some(first) = names.insert(&block.name, block.line) {
            let name = &block.name;
            return Err((block.line, format!("block {name} is described by line {first} already")));
        }
        let mut parent = 0;
        for (size, current) in joined.iter().zip(&mut current) {
            let count = size / base;
            if id % count == 0 {
                let (first, last) = (&block.name, &blocks[(id + count).min(blocks.len()) - 1].name);
                *current = parts.len();
                parts.push(Part {
                    name: Some(format!("{size}-node block {first}..{last}")),
                    parent,
                    is_pe: false,
                });
            }
            parent = *current;
        }
        parts.push(Part { name: Some(format!("block {}", block.name)), parent, is_pe: false });
        hosts(block, parts.len() - 1, &mut line_of, &mut parts)?;
    }
    Ok(Part::without_idle_root(parts))
}

/// Hangs the hosts of a switch from its part; `line_of` says where hosts are described.
fn hosts<'a>(
    switch: &'a Switch,
    parent: usize,
    line_of: &mut FxHashMap<&'a str, usize>,
    parts: &mut Vec<Part>,
) -> Result<(), Wrong> {
    for host in &switch.hosts {
        if let Some(first) = line_of.insert(host, switch.line) {
            let sentence = format!("host {host} is named by line {first} already; a host has one place");
            return Err((switch.line, sentence));
        }
        parts.push(Part { name: Some(host.clone()), parent, is_pe: true });
    }
    Ok(())
}

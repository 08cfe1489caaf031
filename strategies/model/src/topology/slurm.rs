//! `slurm:topology.conf`, `slurm:topology.yaml`: the network of a cluster from configuration files of Slurm.
//!
//! The hosts are the PEs, from left to right below the switches (or blocks) of the file; hosts of a switch precede
//! those of its child switches. Distances are links crossed. Several top switches get a common parent named `network`,
//! as do blocks. The first of `BlockSizes` is the size of a block; the others group adjacent blocks: with sizes 4, 8
//! and 16, groups of two blocks and of four blocks. Link speeds are ignored, because Slurm does not use them either.
//!
//! Sources: the manual pages topology.conf(5) and topology.yaml(5) of Slurm. The readers are [`conf`] and [`yaml`].

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Kind, NamedTree, Part, SpecError, Topology, error};
use crate::files::AtLine;

mod conf;
#[cfg(test)]
mod tests;
#[cfg(feature = "formats")]
mod yaml;

/// The entry of `slurm:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "slurm",
    form: "slurm:topology.conf, slurm:topology.yaml#NAME",
    help: "The hosts of topology.conf or topology.yaml of Slurm (trees of switches, or blocks) as PEs; distances are \
           links crossed. #NAME selects one of several topologies [default: the default of the cluster].",
    params: &[],
    item: parse,
};

/// The content of a file.
#[derive(Debug, PartialEq)]
enum Network {
    /// A tree of switches and hosts.
    Tree(Vec<Switch>),
    /// Blocks of hosts, and the block sizes, smallest first.
    Blocks { sizes: Vec<usize>, blocks: Vec<Switch> },
}

/// A switch or a block.
#[derive(Debug, Default, PartialEq)]
struct Switch {
    name: String,
    /// The line of its description.
    line: usize,
    /// The child switches.
    children: Vec<String>,
    /// The hosts directly below it.
    hosts: Vec<String>,
}

fn parse(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    let (file, wanted) = text.split_once('#').map_or((text, None), |(file, name)| (file, Some(name)));
    if file.is_empty() || wanted == Some("") {
        return Err(
            "expected the name of a topology.conf, or of a topology.yaml, optionally with # and the name of \
                    one of its topologies"
                .into(),
        );
    }
    let lower = file.to_lowercase();
    let is_yaml = [".yaml", ".yml"].iter().any(|extension| lower.ends_with(extension));
    if let (Some(name), false) = (wanted, is_yaml) {
        return Err(format!("`{file}` has only one topology; omit #{name}").into());
    }
    let at_line = |(line, reason): AtLine| SpecError::in_file(file, format!("line {line}: {reason}"));
    let content = error::text("topology", file)?;
    let network = match is_yaml {
        true => from_yaml(&content, file, wanted)?,
        false => conf::read(&content).map_err(at_line)?,
    };
    Ok(Arc::new(tree(&format!("slurm:{text}"), network).map_err(at_line)?))
}

/// Reads a topology.yaml.
#[cfg(feature = "formats")]
fn from_yaml(content: &str, file: &str, wanted: Option<&str>) -> Result<Network, SpecError> {
    use crate::fault::Classified as _;
    yaml::read(content, wanted)
        .map_err(|refusal| SpecError { fault: refusal.fault(), reason: format!("{file}: {refusal}") })
}

#[cfg(not(feature = "formats"))]
fn from_yaml(_: &str, file: &str, _: Option<&str>) -> Result<Network, SpecError> {
    Err(crate::files::without_formats(file).into())
}

/// Parses block sizes, each a multiple of the previous one.
fn block_sizes(words: &[&str]) -> Result<Vec<usize>, String> {
    let mut sizes: Vec<usize> = Vec::new();
    for word in words {
        let size = word.trim().parse().ok().filter(|&size| size > 0);
        let size: usize =
            size.ok_or_else(|| format!("expected block sizes such as 4,8,16, found `{}`", words.join(",")))?;
        if let Some(before) = sizes.last().filter(|&&before| size <= before || size % before != 0) {
            return Err(format!(
                "block size {size} is not a multiple of {before}; list the sizes in ascending order"
            ));
        }
        sizes.push(size);
    }
    Ok(sizes)
}

/// Builds the machine of a network.
fn tree(spec: &str, network: Network) -> Result<NamedTree, AtLine> {
    let (last, parts) = match network {
        Network::Tree(switches) => (switches.last().map_or(1, |switch| switch.line), tree_parts(switches)?),
        Network::Blocks { sizes, blocks } => {
            (blocks.last().map_or(1, |block| block.line), block_parts(&sizes, blocks)?)
        }
    };
    NamedTree::new(spec, parts).map_err(|reason| (last, reason))
}

/// The parts of a tree of switches.
fn tree_parts(switches: Vec<Switch>) -> Result<Vec<Part>, AtLine> {
    let mut place: FxHashMap<&str, usize> = FxHashMap::default();
    for (id, switch) in switches.iter().enumerate() {
        if let Some(first) = place.insert(&switch.name, id) {
            let (name, first) = (&switch.name, switches[first].line);
            return Err((switch.line, format!("switch {name} is already described in line {first}")));
        }
    }
    let mut above: Vec<Option<usize>> = vec![None; switches.len()];
    for (id, switch) in switches.iter().enumerate() {
        for child in &switch.children {
            let Some(&below) = place.get(child.as_str()) else {
                let sentence = format!(
                    "switch {} has the child {child}, which is not described; describe it, or remove it",
                    switch.name
                );
                return Err((switch.line, sentence));
            };
            if let Some(first) = above[below].replace(id) {
                let first = &switches[first];
                let sentence = format!(
                    "switch {child} is already a child of {} (line {}); a switch has one parent",
                    first.name, first.line
                );
                return Err((switch.line, sentence));
            }
        }
    }
    let mut parts = vec![network()];
    // Switches to add with the part of their parent, in the order of the parts.
    let roots = (0..switches.len()).filter(|&id| above[id].is_none());
    let mut queue: VecDeque<(usize, usize)> = roots.map(|id| (id, 0)).collect();
    let (mut line_of, mut is_added) = (FxHashMap::default(), vec![false; switches.len()]);
    while let Some((id, parent)) = queue.pop_front() {
        let (switch, part) = (&switches[id], parts.len());
        is_added[id] = true;
        parts.push(Part { name: Some(format!("switch {}", switch.name)), parent, is_pe: false });
        queue.extend(switch.children.iter().map(|child| (place[child.as_str()], part)));
        hosts(switch, part, &mut line_of, &mut parts)?;
    }
    if let Some(lost) = is_added.iter().position(|&is_added| !is_added) {
        // A switch that was not added is on a cycle or below one, so enough steps upwards end on the cycle.
        let top = (0..switches.len()).fold(lost, |at, _| above[at].unwrap_or(at));
        let switch = &switches[top];
        return Err((switch.line, format!("switch {} is its own ancestor; remove the cycle", switch.name)));
    }
    Ok(Part::without_idle_root(parts))
}

/// The common parent of top switches or blocks.
fn network() -> Part {
    Part { name: Some("network".into()), parent: 0, is_pe: false }
}

/// The parts of blocks, grouped by the block sizes.
fn block_parts(sizes: &[usize], blocks: Vec<Switch>) -> Result<Vec<Part>, AtLine> {
    let mut parts = vec![network()];
    let mut line_of = FxHashMap::default();
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let base = sizes.first().copied().unwrap_or(1);
    // The sizes of groups of several, but not all blocks, largest first; `current` has the part of each size being
    // filled.
    let groups: Vec<usize> =
        sizes.iter().skip(1).rev().copied().filter(|size| size / base < blocks.len()).collect();
    let mut current = vec![0; groups.len()];
    for (id, block) in blocks.iter().enumerate() {
        if let Some(first) = names.insert(&block.name, block.line) {
            let name = &block.name;
            return Err((block.line, format!("block {name} is already described in line {first}")));
        }
        let mut parent = 0;
        for (size, current) in groups.iter().zip(&mut current) {
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

/// Adds the hosts of a switch below its part; `line_of` has the line of each host.
fn hosts<'a>(
    switch: &'a Switch,
    parent: usize,
    line_of: &mut FxHashMap<&'a str, usize>,
    parts: &mut Vec<Part>,
) -> Result<(), AtLine> {
    for host in &switch.hosts {
        if let Some(first) = line_of.insert(host, switch.line) {
            let sentence = format!("host {host} is already named in line {first}; a host has one switch");
            return Err((switch.line, sentence));
        }
        parts.push(Part { name: Some(host.clone()), parent, is_pe: true });
    }
    Ok(())
}

//! The parts of a machine at the levels of groups: PEs, nodes and switches.

use rustc_hash::FxHashMap;

use crate::Topology;
use crate::constraints::Level;

impl Level {
    /// The number of the part of each PE, from 0 in the order of their first PEs.
    ///
    /// # Errors
    /// If the machine has no switches, or all its nodes are below one.
    pub fn parts(self, machine: &dyn Topology) -> Result<Vec<u32>, String> {
        match self {
            Level::Pe => Ok((0..machine.pes() as u32).collect()),
            Level::Node => Ok(numbered((0..machine.pes()).map(|pe| machine.node_of(pe)))),
            Level::Switch => switches(machine).ok_or_else(|| {
                format!(
                    "`{}` has no switches that connect some of its nodes; use the level `node` or another machine",
                    machine.spec()
                )
            }),
        }
    }
}

/// Numbers from 0 in the order in which the names come first.
fn numbered(names: impl Iterator<Item = usize>) -> Vec<u32> {
    let mut known = FxHashMap::default();
    names
        .map(|name| {
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        })
        .collect()
}

/// The switch of each PE: the closest one above its node, also where that has one node, as in an allocation that leaves out others.
///
/// Nodes of one switch are one part of the tree, at the deepest level that has parts of several nodes. What is a single node there is below
/// a switch of its own, or next to switches, as in trees of uneven depth: then it is as far from other such nodes as the nodes of a part are.
fn switches(machine: &dyn Topology) -> Option<Vec<u32>> {
    let tree = machine.hierarchy()?;
    let leaves = tree.leaves();
    let other_node = |range: &std::ops::Range<usize>| {
        let first = machine.node_of(leaves[range.start] as usize);
        leaves[range.clone()].iter().copied().find(|&pe| machine.node_of(pe as usize) != first)
    };
    let has_several = |range| other_node(&range).is_some();
    let level = (1..tree.depth()).rev().find(|&level| tree.nodes(level).any(has_several))?;
    let distance = |a: u32, b: u32| machine.distance(a as usize, b as usize);
    let distances =
        tree.nodes(level).filter_map(|range| Some(distance(leaves[range.start], other_node(&range)?)));
    let closest = distances.min()?;
    let mut switch_of = vec![0; machine.pes()];
    let mut lone: Vec<(u32, usize)> = Vec::new();
    for (part, range) in tree.nodes(level).enumerate() {
        let first = leaves[range.start];
        let switch = match other_node(&range) {
            Some(_) => part,
            None => {
                let joined =
                    lone.iter().find(|(pe, _)| distance(first, *pe) <= closest).map(|(_, part)| *part);
                joined.unwrap_or_else(|| {
                    lone.push((first, part));
                    part
                })
            }
        };
        leaves[range].iter().for_each(|&pe| switch_of[pe as usize] = switch);
    }
    Some(numbered(switch_of.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn nodes_of_one_switch_are_those_with_the_same_closest_switch() {
        let folder = tempfile::tempdir().expect("a folder");
        let uneven = folder.path().join("uneven.json");
        std::fs::write(
            &uneven,
            r#"{"a": ["l", "top"], "b": ["l", "top"], "c": "top", "d": "top", "e": ["m", "n", "top"]}"#,
        )
        .expect("a file");
        let uneven = format!("switches:{}", uneven.display());
        for (spec, expected) in [
            ("tree:2:3", Some(vec![0, 0, 0, 1, 1, 1])),
            // What an allocation leaves of a switch may be one node.
            ("tree:2:3[0,1,2,4]", Some(vec![0, 0, 0, 1])),
            ("tree:2:2:2[0,1,2,4]", Some(vec![0, 0, 1, 2])),
            ("tree:2:2:2[0,2,4]*flat:2", Some(vec![0, 0, 0, 0, 1, 1])),
            ("tree:2:3*flat:2", Some(vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])),
            // Of a tree of uneven depth, c and d are at the top.
            (&uneven, Some(vec![0, 0, 1, 1, 2])),
            ("flat:8", None),
        ] {
            let machine = topology::parse(spec).expect(spec);
            assert_eq!(switches(&*machine), expected, "{spec}");
        }
    }
}

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
            Level::Switch => machine.switches().map(|of| numbered(of.into_iter().map(|it| it as usize))).ok_or_else(|| {
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
            ("tree:2:2:2[0,2,4]*flat:2", Some(vec![0, 0, 1, 1, 2, 2])),
            ("tree:2:2:2[0,2,3]*flat:2", Some(vec![0, 0, 1, 1, 1, 1])),
            ("tree:4:4[0,4,8,12]", Some(vec![0, 1, 2, 3])),
            ("(tree:2:2*flat:2)[0,1,2,4,7]", Some(vec![0, 0, 0, 1, 1])),
            ("tree:2:3*flat:2", Some(vec![0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])),
            // Of a tree of uneven depth, c and d are at the top.
            (&uneven, Some(vec![0, 0, 1, 1, 2])),
            (&format!("{uneven}[a,e,c]*flat:1"), Some(vec![0, 1, 2])),
            ("flat:8", None),
            ("torus:4*flat:2", None),
        ] {
            let machine = topology::parse(spec).expect(spec);
            assert_eq!(Level::Switch.parts(&*machine).ok(), expected, "{spec}");
        }
    }
}

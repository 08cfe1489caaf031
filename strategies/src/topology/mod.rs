//! Machines: how far apart PEs are, and over which links their messages go.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::spelling::{nearest, suggestion};

mod flat;
mod grid;
mod hierarchy;
mod tree;

pub use flat::Flat;
pub use grid::Grid;
pub use hierarchy::Hierarchy;
pub use tree::Tree;

/// Every kind of machine, in the order help lists them.
pub const ALL: &[&Kind] = &[&flat::KIND, &grid::TORUS, &grid::MESH, &tree::KIND];

/// A kind of machine as a spec names it.
pub struct Kind {
    /// What a spec begins with, before the colon.
    pub name: &'static str,
    /// What a spec looks like, as in `torus:8x8x8`.
    pub form: &'static str,
    /// What the machine is, how its PEs are numbered and how its messages travel.
    pub help: &'static str,
    /// Makes the machine of what stands after the colon, or says what is wrong with it.
    pub parse: fn(&str) -> Result<Arc<dyn Topology>, String>,
}

/// The most PEs a machine may have; a spec with more is refused.
pub const MAX_PES: usize = 1 << 24;

/// Bytes per second of a link of a machine whose spec does not say.
pub const DEFAULT_BANDWIDTH: f64 = 1e9;

/// Latency of a link of a machine whose spec does not say.
pub const DEFAULT_LATENCY_SECONDS: f64 = 1e-6;

/// A machine as the strategies see it.
///
/// PEs are numbered from 0, first dimension fastest (`id = x0 + X0*(x1 + X1*x2)`). Distances are
/// in hops unless the machine defines its own (trees with level distances), symmetric, and 0
/// exactly between a PE and itself.
pub trait Topology: Send + Sync {
    /// The spec string that makes this machine, as in `torus:8x8x8`.
    fn spec(&self) -> String;

    /// How many PEs it has; at least 1.
    fn pes(&self) -> usize;

    /// The distance between two PEs.
    fn distance(&self, a: usize, b: usize) -> u32;

    /// The distance from `a` to every PE, written to `row` (one entry per PE).
    ///
    /// Hot loops ask for a row at a time, never for a pair.
    fn distances_from(&self, a: usize, row: &mut [u32]) {
        for (b, distance) in row.iter_mut().enumerate() {
            *distance = self.distance(a, b);
        }
    }

    /// How many directed links it has; they are numbered from 0.
    fn links(&self) -> usize;

    /// The link of that number.
    fn link(&self, id: usize) -> Link;

    /// Appends the links a message from `a` to `b` crosses, in order; none if `a == b`.
    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>);

    /// The tree whose leaves are its PEs, where the machine is built as one.
    fn hierarchy(&self) -> Option<Hierarchy> {
        None
    }
}

/// A directed link of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What a person calls it, as in `3 -> 4` (from PE 3 to PE 4) or `switch 1.0 -> 5`.
    pub name: String,
    /// Bytes per second it carries.
    pub bandwidth: f64,
    /// Seconds it takes a first byte.
    pub latency_seconds: f64,
    /// How much of the distance it is (1 for a hop).
    pub length: u32,
}

/// A spec that describes no machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{spec}` is not a topology: {reason}")]
pub struct TopologyError {
    /// The spec as written.
    pub spec: String,
    /// What is wrong with it and what was expected.
    pub reason: String,
}

/// The machine of a spec such as `torus:8x8x8`.
///
/// # Errors
/// When the kind of machine is unknown, or its sizes are missing, zero or too large.
pub fn parse(spec: &str) -> Result<Arc<dyn Topology>, TopologyError> {
    let error = |reason: String| TopologyError { spec: spec.to_string(), reason };
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let Some(kind) = ALL.iter().find(|kind| kind.name == name) else {
        let names: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        let forms: Vec<&str> = ALL.iter().map(|kind| kind.form).collect();
        let meant = suggestion(&nearest(name, &names));
        return Err(error(format!("there is no machine `{name}`{meant}; known are {}", forms.join(", "))));
    };
    (kind.parse)(rest).map_err(error)
}

/// What `equipoise topology help` prints: every kind of machine.
pub fn help() -> String {
    let mut text = String::new();
    for kind in ALL {
        let _ = writeln!(text, "{}\n    {}", kind.form, kind.help);
    }
    text
}

/// The number of PEs of a machine with these sizes, at most [`MAX_PES`].
fn count_pes(sizes: impl IntoIterator<Item = usize>) -> Result<usize, String> {
    let mut pes: usize = 1;
    for size in sizes {
        if size == 0 {
            return Err("a size is at least 1".into());
        }
        pes = pes
            .checked_mul(size)
            .filter(|&pes| pes <= MAX_PES)
            .ok_or_else(|| format!("sizes multiply to at most {MAX_PES}"))?;
    }
    Ok(pes)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, VecDeque};

    use proptest::prelude::*;

    use super::*;

    /// Everything a machine promises, for all of its pairs.
    fn check(machine: &dyn Topology) {
        let (spec, pes) = (machine.spec(), machine.pes());
        let again = parse(&spec).expect("a machine's own spec is one");
        assert_eq!((again.spec(), again.pes(), again.links()), (spec.clone(), pes, machine.links()));
        let links: Vec<Link> = (0..machine.links()).map(|id| machine.link(id)).collect();
        let names: std::collections::BTreeSet<&str> = links.iter().map(|link| link.name.as_str()).collect();
        assert_eq!(names.len(), links.len(), "{spec}: every link has a name of its own");
        let (mut row, mut route) = (vec![u32::MAX; pes], Vec::new());
        let (mut loads, mut hop_bytes) = (vec![0u64; links.len()], 0u64);
        for a in 0..pes {
            machine.distances_from(a, &mut row);
            for (b, &in_row) in row.iter().enumerate() {
                let distance = machine.distance(a, b);
                assert_eq!(in_row, distance, "{spec}: the row of {a} at {b}");
                assert_eq!(machine.distance(b, a), distance, "{spec}: {a} and {b}");
                assert_eq!(distance == 0, a == b, "{spec}: {a} and {b}");
                route.clear();
                machine.route(a, b, &mut route);
                let mut at = a.to_string();
                for &id in &route {
                    let (from, to) = links[id].name.split_once(" -> ").expect("a link joins two ends");
                    assert_eq!(from, at, "{spec}: the route {a} to {b} hangs together");
                    at = to.to_string();
                }
                assert_eq!(at, b.to_string(), "{spec}: the route {a} to {b} arrives");
                let bytes = (3 * a + b) as u64;
                hop_bytes += bytes * u64::from(distance);
                route.iter().for_each(|&id| loads[id] += bytes);
            }
        }
        let carried: u64 = loads.iter().zip(&links).map(|(load, link)| load * u64::from(link.length)).sum();
        assert_eq!(carried, hop_bytes, "{spec}: loads times lengths are hop-bytes");
    }

    /// Distances from PE 0 by breadth-first search over the links.
    fn search(machine: &dyn Topology) -> Vec<u32> {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for id in 0..machine.links() {
            let name = machine.link(id).name;
            let (from, to) = name.split_once(" -> ").expect("a link joins two ends");
            out.entry(from.into()).or_default().push(to.into());
        }
        let mut found = BTreeMap::from([("0".to_string(), 0u32)]);
        let mut queue = VecDeque::from(["0".to_string()]);
        while let Some(at) = queue.pop_front() {
            let next = found[&at] + 1;
            for to in out.get(&at).into_iter().flatten() {
                if !found.contains_key(to) {
                    found.insert(to.clone(), next);
                    queue.push_back(to.clone());
                }
            }
        }
        (0..machine.pes()).map(|pe| found[&pe.to_string()]).collect()
    }

    proptest! {
        #[test]
        fn every_grid_keeps_its_promises(sizes in prop::collection::vec((1..6usize, any::<bool>()), 1..4)) {
            let grid = Grid::new(&sizes).expect("small sizes");
            check(&grid);
            let mut row = vec![0; grid.pes()];
            grid.distances_from(0, &mut row);
            prop_assert_eq!(row, search(&grid), "{}", grid.spec());
        }

        #[test]
        fn every_tree_keeps_its_promises(levels in prop::collection::vec((1..5usize, 0..7u32), 1..4)) {
            let mut distance = 1 + levels.iter().map(|level| level.1).sum::<u32>();
            let levels: Vec<(usize, u32)> = levels
                .into_iter()
                .map(|(arity, step)| {
                    let level = (arity, distance);
                    distance -= step;
                    level
                })
                .collect();
            check(&Tree::new(&levels).expect("small sizes"));
        }

        #[test]
        fn no_spec_panics(spec in "(torus|mesh|flat|tree|t)?:?[0-9mx:/]{0,40}") {
            let _ = parse(&spec);
        }
    }

    #[test]
    fn flat_machines_keep_their_promises() {
        for pes in [1, 2, 5] {
            check(&Flat::new(pes).expect("a small size"));
        }
    }

    #[test]
    fn a_tree_without_distances_counts_links() {
        let tree = parse("tree:2:3:2").expect("a tree");
        check(&*tree);
        assert_eq!(tree.spec(), "tree:2:3:2/6:4:2");
        let mut row = vec![0; tree.pes()];
        tree.distances_from(0, &mut row);
        assert_eq!(row, search(&*tree));
    }

    #[test]
    fn routes_correct_dimension_0_first_and_go_the_positive_way_in_a_tie() {
        let route = |spec: &str, a, b| {
            let (machine, mut route) = (parse(spec).expect("a machine"), Vec::new());
            machine.route(a, b, &mut route);
            route.into_iter().map(|id| machine.link(id).name).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(route("torus:4x4", 0, 10), "0 -> 1, 1 -> 2, 2 -> 6, 6 -> 10");
        assert_eq!(route("torus:4x4", 10, 0), "10 -> 11, 11 -> 8, 8 -> 12, 12 -> 0");
        assert_eq!(route("torus:5x5", 0, 23), "0 -> 4, 4 -> 3, 3 -> 23");
        assert_eq!(route("torus:2x4m", 1, 6), "1 -> 0, 0 -> 2, 2 -> 4, 4 -> 6");
        assert_eq!(route("mesh:4", 3, 1), "3 -> 2, 2 -> 1");
        assert_eq!(
            route("tree:2:2/10:1", 0, 3),
            "0 -> switch 1.0, switch 1.0 -> switch 2.0, switch 2.0 -> switch 1.1, switch 1.1 -> 3"
        );
    }

    #[test]
    fn the_first_dimension_is_fastest() {
        let grid = Grid::parse("3x4x5", true).expect("a grid");
        assert_eq!(grid.coordinates(2 + 3 * (3 + 4 * 4)).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(grid.distance(0, 2 + 3 * (3 + 4 * 4)), 3);
    }

    #[test]
    fn what_is_wrong_with_a_spec_is_said() {
        for (spec, expected) in [
            (
                "tours:8x8",
                "there is no machine `tours` (did you mean `torus`?); known are flat:N, torus:8x8x8",
            ),
            ("8x8", "there is no machine `8x8`"),
            ("torus:", "expected sizes such as 8x8x4m (m: does not wrap), found ``"),
            ("torus:8x8x", "found `8x8x`"),
            ("mesh:8y8", "found `8y8`"),
            ("torus:8x0", "a size is at least 1"),
            ("flat:0", "a size is at least 1"),
            ("flat:many", "expected a number of PEs, found `many`"),
            ("torus:100000x100000x100000", "sizes multiply to at most 16777216"),
            ("torus:99999999999999999999999", "expected sizes"),
            ("tree:65536:65536/2:1", "sizes multiply to at most 16777216"),
            ("tree:4:4/10", "there are 2 arities and 1 distances"),
            ("tree:4:4/1:10", "do not grow towards the leaves; found 1 above 10"),
            ("tree:4:4/1:0", "distances are at least 1"),
            ("tree:4:/1", "expected arities and distances such as 16:8:4/100:10:1, found `4:/1`"),
        ] {
            let error = parse(spec).err().expect(spec).to_string();
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        }
        let deep = format!("mesh:{}", vec!["1"; 33].join("x"));
        assert!(parse(&deep).err().expect("too deep").reason.contains("1 to 32 dimensions"));
    }
}

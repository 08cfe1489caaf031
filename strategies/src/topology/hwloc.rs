//! `hwloc`: the machine this runs on; `hwloc:pack:2 core:4 pu:1`: one of hwloc's synthetic descriptions.
//!
//! PEs are hardware threads in the order of hwloc, which puts those next to each other that share most.
//! They are the leaves of a tree of which only those levels of hwloc count that set PEs apart (two
//! packages do; one cache in each package does not), two links further at each level. Where nodes of a
//! level have different numbers of children, the tree has the largest number everywhere, and the PEs are
//! an allocation of it. So such a machine is a `tree:` (and its spec says so), and a database recorded on
//! it can be replayed anywhere.
//!
//! Needs the cargo feature `hwloc`, which needs the library (F. Broquedis et al., "hwloc: a generic
//! framework for managing hardware affinities in HPC applications", 2010).

use super::Kind;

/// `hwloc` for the table of machines.
pub const KIND: Kind = Kind {
    name: "hwloc",
    form: "hwloc",
    help: "The machine this runs on, or that of a synthetic description (hwloc:pack:2 core:4 pu:2), as a \
           tree of hardware threads. Needs the cargo feature hwloc.",
    parse: |text| Ok(parse(text)?),
};

#[cfg(not(feature = "hwloc"))]
fn parse(_: &str) -> Result<std::sync::Arc<dyn super::Topology>, String> {
    Err("this program was built without hwloc; install libhwloc-dev, libudev-dev and pkg-config and build it \
         with --features hwloc, or describe the machine as a tree such as tree:2:4"
        .into())
}

#[cfg(feature = "hwloc")]
use library::parse;

/// What asks the library.
#[cfg(feature = "hwloc")]
mod library {
    use std::sync::Arc;

    use hwlocality::Topology as Hwloc;
    use hwlocality::object::TopologyObject;
    use hwlocality::object::types::ObjectType;

    use super::super::{Hierarchy, Link, Topology};

    /// The machine of a synthetic description, or this one.
    pub(super) fn parse(text: &str) -> Result<Arc<dyn Topology>, String> {
        let library = if text.is_empty() {
            Hwloc::new().map_err(|error| format!("hwloc does not see this machine: {error}"))?
        } else {
            let invalid = |error: &dyn std::fmt::Display| {
                format!(
                    "expected a synthetic description such as pack:2 core:4 pu:2, found `{text}` ({error})"
                )
            };
            let builder = Hwloc::builder().from_synthetic(text).map_err(|error| invalid(&error))?;
            builder.build().map_err(|error| invalid(&error))?
        };
        let units: Vec<&TopologyObject> = library.objects_with_type(ObjectType::PU).collect();
        let levels = (0..usize::from(library.depth())).map(|depth| {
            let labels: Vec<u64> = units.iter().map(|unit| label(unit, depth)).collect();
            labels
        });
        let machine = super::tree_of(&levels.collect::<Vec<_>>())?;
        if !library.is_this_system() {
            return Ok(machine);
        }
        let number =
            |unit: &&TopologyObject| unit.os_index().ok_or("hwloc does not number the hardware threads");
        let cpus = units.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Arc::new(ThisMachine { machine, cpus }))
    }

    /// Which object a hardware thread belongs to at a depth; where there is none, the next one below.
    fn label(unit: &TopologyObject, depth: usize) -> u64 {
        let mut lowest = unit;
        for object in unit.ancestors() {
            if usize::try_from(object.depth()).is_ok_and(|at| at < depth) {
                break;
            }
            lowest = object;
        }
        lowest.global_persistent_index()
    }

    /// The machine this runs on.
    struct ThisMachine {
        machine: Arc<dyn Topology>,
        /// By PE: the operating system's number of the hardware thread.
        cpus: Vec<usize>,
    }

    impl Topology for ThisMachine {
        fn spec(&self) -> String {
            self.machine.spec()
        }

        fn pes(&self) -> usize {
            self.machine.pes()
        }

        fn distance(&self, a: usize, b: usize) -> u32 {
            self.machine.distance(a, b)
        }

        fn distances_from(&self, a: usize, row: &mut [u32]) {
            self.machine.distances_from(a, row);
        }

        fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
            self.machine.distances_to(a, others, row);
        }

        fn diameter(&self) -> u32 {
            self.machine.diameter()
        }

        fn links(&self) -> usize {
            self.machine.links()
        }

        fn link(&self, id: usize) -> Link {
            self.machine.link(id)
        }

        fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
            self.machine.route(a, b, links);
        }

        fn hierarchy(&self) -> Option<Hierarchy> {
            self.machine.hierarchy()
        }

        fn cpu_of(&self, pe: usize) -> Option<usize> {
            Some(self.cpus[pe])
        }
    }
}

/// The tree in which PEs are together at a level as long as their labels there are equal; levels from the
/// root, PEs of a node one after the other, and alone at the last level.
#[cfg(any(feature = "hwloc", test))]
fn tree_of(levels: &[Vec<u64>]) -> Result<std::sync::Arc<dyn super::Topology>, String> {
    use super::{Allocation, Tree};

    let pes = levels.last().map_or(0, Vec::len);
    // Where PEs part: `is_first[level][pe]` says that the PE does not belong to the node of the one before.
    let mut is_first: Vec<Vec<bool>> = Vec::new();
    for labels in levels {
        let parts = |pe: usize| pe == 0 || labels[pe] != labels[pe - 1];
        is_first.push((0..pes).map(parts).collect());
    }
    // The root comes before all levels that part anybody, and equal levels count once.
    is_first.insert(0, (0..pes).map(|pe| pe == 0).collect());
    is_first.dedup();
    // By level below the root: the place of every PE's node among the children of its parent.
    let place = |pair: &[Vec<bool>]| {
        let mut place = 0;
        let places = pair[0].iter().zip(&pair[1]).map(|(is_first_of_parent, is_first)| {
            place = if *is_first_of_parent { 0 } else { place + usize::from(*is_first) };
            place
        });
        places.collect::<Vec<usize>>()
    };
    let places: Vec<Vec<usize>> = is_first.windows(2).map(place).collect();
    let arities: Vec<usize> =
        places.iter().map(|places| 1 + places.iter().copied().max().unwrap_or(0)).collect();
    let arities = if arities.is_empty() { vec![1] } else { arities };
    let distances = (1..=arities.len() as u32).rev().map(|level| 2 * level);
    let tree = Tree::new(&arities.iter().copied().zip(distances).collect::<Vec<_>>())?;
    let leaf =
        |pe: usize| places.iter().zip(&arities).fold(0, |leaf, (places, arity)| leaf * arity + places[pe]);
    let leaves: Vec<u32> = (0..pes).map(|pe| leaf(pe) as u32).collect();
    let tree = std::sync::Arc::new(tree);
    let is_even = leaves.len() == arities.iter().product::<usize>();
    if is_even { Ok(tree) } else { Ok(std::sync::Arc::new(Allocation::new(tree, leaves)?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_part_nobody_do_not_count() {
        let check = |levels: &[&[u64]], expected: &str| {
            let levels: Vec<Vec<u64>> = levels.iter().map(|labels| labels.to_vec()).collect();
            assert_eq!(tree_of(&levels).expect(expected).spec(), expected);
        };
        check(&[&[0]], "tree:1/2");
        check(&[&[0, 0], &[1, 2], &[3, 4]], "tree:2/2");
        check(&[&[0; 4], &[1, 1, 2, 2], &[5, 5, 6, 6], &[7, 8, 9, 10]], "tree:2:2/4:2");
        // Two cores with two threads each and one with one: the tree has room for two in each.
        check(&[&[0; 5], &[1, 1, 2, 2, 3], &[4, 5, 6, 7, 8]], "tree:3:2/4:2[0-4]");
        check(&[&[0; 5], &[1, 2, 2, 3, 3], &[4, 5, 6, 7, 8]], "tree:3:2/4:2[0,2-5]");
    }

    #[cfg(not(feature = "hwloc"))]
    #[test]
    fn without_the_library_it_is_said_how_to_get_it() {
        let error = crate::topology::parse("hwloc:pack:2").err().expect("built without hwloc").to_string();
        for word in ["libhwloc-dev", "libudev-dev", "--features hwloc", "tree:2:4"] {
            assert!(error.contains(word), "`{error}` does not contain `{word}`");
        }
    }

    #[cfg(feature = "hwloc")]
    #[test]
    fn a_synthetic_description_is_a_tree() {
        for (text, expected) in [
            ("hwloc:pack:2 core:4 pu:1", "tree:2:4/4:2"),
            ("hwloc:pack:2 l3:1 l2:4 l1:1 core:1 pu:2", "tree:2:4:2/6:4:2"),
            ("hwloc:pu:1", "tree:1/2"),
        ] {
            let machine = crate::topology::parse(text).expect(text);
            assert_eq!((machine.spec().as_str(), machine.cpu_of(0)), (expected, None));
        }
        let error = crate::topology::parse("hwloc:pack:two").err().expect("not a description").to_string();
        assert!(error.contains("expected a synthetic description such as pack:2 core:4 pu:2"), "{error}");
    }

    #[cfg(feature = "hwloc")]
    #[test]
    fn the_machine_this_runs_on_says_which_hardware_thread_a_pe_is() {
        let machine = crate::topology::parse("hwloc").expect("this machine");
        let mut cpus: Vec<usize> = (0..machine.pes()).filter_map(|pe| machine.cpu_of(pe)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), machine.pes(), "every PE has a hardware thread of its own");
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(machine.pes() >= available, "{} PEs for {available} hardware threads", machine.pes());
    }
}

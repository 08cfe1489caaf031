//! `hwloc`: the current host; `hwloc:FILE.xml`: a machine exported by hwloc (`lstopo FILE.xml`); `hwloc:pack:2 core:4
//! pu:1`: a synthetic description of hwloc.
//!
//! PEs are hardware threads in the order of hwloc, in which threads that share more resources are closer. They are the
//! leaves of a tree. Only levels of hwloc that separate PEs count (two packages do; one cache in each package does
//! not). Each level adds two links to the distance.
//!
//! If nodes of a level of the current host have different numbers of children, the tree has the largest number
//! everywhere, and the PEs are an allocation of it. Thus the current host and synthetic descriptions have a spec with
//! `tree:`, and a database recorded on one machine can be replayed anywhere. Files ([`xml`]) are named trees of any
//! shape.
//!
//! Only the current host needs the cargo feature `hwloc`, which needs the library (F. Broquedis et al., "hwloc: a
//! generic framework for managing hardware affinities in HPC applications", 2010).

use std::sync::Arc;

use super::{Kind, SpecError, Topology};

mod synthetic;
#[cfg(feature = "formats")]
mod xml;

/// The entry of `hwloc` in the list of machines.
pub const KIND: Kind = Kind {
    name: "hwloc",
    form: "hwloc, hwloc:FILE.xml, hwloc:pack:2 core:4 pu:2",
    help: "Hardware threads as a tree: of the current host (needs the cargo feature hwloc), of an XML file of \
           lstopo, or of a synthetic description. For files of launchers, a synthetic description is a single \
           node in flat:1*hwloc:pack:2 core:4 pu:2.",
    params: &[],
    item: parse,
};

fn parse(text: &str) -> Result<Arc<dyn Topology>, SpecError> {
    if text.is_empty() {
        return Ok(this_machine()?);
    }
    if text.to_lowercase().ends_with(".xml") {
        return from_xml(text);
    }
    Ok(Arc::new(synthetic::read(text)?))
}

/// Reads a file written by lstopo.
#[cfg(feature = "formats")]
fn from_xml(name: &str) -> Result<Arc<dyn Topology>, SpecError> {
    let spec = format!("hwloc:{name}");
    Ok(Arc::new(super::error::from_file("machine", name, |text| xml::read(&spec, text))?))
}

#[cfg(not(feature = "formats"))]
fn from_xml(name: &str) -> Result<Arc<dyn Topology>, SpecError> {
    Err(crate::files::without_formats(name).into())
}

#[cfg(not(feature = "hwloc"))]
fn this_machine() -> Result<Arc<dyn Topology>, String> {
    Err("this program was built without hwloc; install libhwloc-dev, libudev-dev and pkg-config and build it \
         with --features hwloc, or describe the machine as hwloc:pack:2 core:4 pu:2 or by an XML file of lstopo"
        .into())
}

#[cfg(feature = "hwloc")]
use library::this_machine;

/// Queries the library.
#[cfg(feature = "hwloc")]
mod library {
    use std::sync::Arc;

    use hwlocality::Topology as Hwloc;
    use hwlocality::object::TopologyObject;
    use hwlocality::object::types::ObjectType;

    use super::super::Topology;
    use super::super::altered::Altered;

    /// The current host.
    pub(super) fn this_machine() -> Result<Arc<dyn Topology>, String> {
        let library = Hwloc::new().map_err(|error| format!("hwloc cannot detect this machine: {error}"))?;
        let (machine, units) = (tree(&library)?, units(&library));
        let number =
            |unit: &&TopologyObject| unit.os_index().ok_or("hwloc has no numbers of the hardware threads");
        let cpus = units.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Arc::new(Altered::of_this_host(machine, cpus)))
    }

    /// The hardware threads of a machine, in the order of hwloc.
    fn units(library: &Hwloc) -> Vec<&TopologyObject> {
        library.objects_with_type(ObjectType::PU).collect()
    }

    /// The tree of a machine detected by the library.
    pub(super) fn tree(library: &Hwloc) -> Result<Arc<dyn Topology>, String> {
        let units = units(library);
        let levels = (0..usize::from(library.depth())).map(|depth| {
            let labels: Vec<u64> = units.iter().map(|unit| label(unit, depth)).collect();
            labels
        });
        super::tree_of(&levels.collect::<Vec<_>>())
    }

    /// The object at `depth` that contains a hardware thread; if there is none, the next object below.
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
}

/// The tree in which PEs are in the same node of a level if their labels there are equal. Levels are given from the
/// root, PEs of a node are consecutive, and labels of the last level are unique.
#[cfg(any(feature = "hwloc", test))]
fn tree_of(levels: &[Vec<u64>]) -> Result<Arc<dyn Topology>, String> {
    use super::{Allocation, Tree};

    let pes = levels.last().map_or(0, Vec::len);
    // `is_first[level][pe]`: the PE is in another node than the previous PE.
    let mut is_first: Vec<Vec<bool>> = Vec::new();
    for labels in levels {
        let parts = |pe: usize| pe == 0 || labels[pe] != labels[pe - 1];
        is_first.push((0..pes).map(parts).collect());
    }
    // The root precedes all levels that separate PEs; equal levels are merged.
    is_first.insert(0, (0..pes).map(|pe| pe == 0).collect());
    is_first.dedup();
    // For each level below the root: the position of each PE's node among its siblings.
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
    let tree = Arc::new(tree);
    let is_even = leaves.len() == arities.iter().product::<usize>();
    if is_even { Ok(tree) } else { Ok(Arc::new(Allocation::new(tree, leaves)?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_levels_that_do_not_separate_pes() {
        let check = |levels: &[&[u64]], expected: &str| {
            let levels: Vec<Vec<u64>> = levels.iter().map(|labels| labels.to_vec()).collect();
            assert_eq!(tree_of(&levels).expect(expected).spec(), expected);
        };
        check(&[&[0]], "tree:1/2");
        check(&[&[0, 0], &[1, 2], &[3, 4]], "tree:2/2");
        check(&[&[0; 4], &[1, 1, 2, 2], &[5, 5, 6, 6], &[7, 8, 9, 10]], "tree:2:2/4:2");
        // Two cores with two threads and one core with one thread: the tree has two threads per core.
        check(&[&[0; 5], &[1, 1, 2, 2, 3], &[4, 5, 6, 7, 8]], "tree:3:2/4:2[0-4]");
        check(&[&[0; 5], &[1, 2, 2, 3, 3], &[4, 5, 6, 7, 8]], "tree:3:2/4:2[0,2-5]");
    }

    #[cfg(not(feature = "hwloc"))]
    #[test]
    fn without_the_library_the_error_names_the_packages() {
        let error = crate::topology::parse("hwloc").err().expect("built without hwloc").to_string();
        for word in ["libhwloc-dev", "libudev-dev", "--features hwloc", "hwloc:pack:2 core:4 pu:2"] {
            assert!(error.contains(word), "`{error}` does not contain `{word}`");
        }
    }

    #[cfg(feature = "hwloc")]
    #[test]
    fn synthetic_descriptions_and_files_agree_with_the_library() {
        use hwlocality::topology::export::xml::XMLExportFlags;

        for text in [
            "pack:2 core:4 pu:1",
            "pack:2 l3:1 l2:4 l1:1 core:1 pu:2",
            "pu:1",
            "node:2 core:3 pu:4",
            "Package:2 [NUMANode(memory=1GB)] L3Cache:2 L2Cache:2 Core:1 PU:2(indexes=2*8:1*2)",
            "2 3 4",
            "group:3 die:2 core:2 2",
            "numa:2 socket:1 l2:3 pu:2",
        ] {
            let builder = hwlocality::Topology::builder().from_synthetic(text);
            let library = builder.map(|builder| builder.build()).expect(text).expect(text);
            let theirs = library::tree(&library).expect(text);
            let ours = crate::topology::parse(&format!("hwloc:{text}")).expect(text);
            assert_eq!((ours.spec(), ours.cpu_of(0)), (theirs.spec(), None), "{text}");
            for flags in [XMLExportFlags::empty(), XMLExportFlags::V1] {
                let written = library.export_xml(flags).expect(text).to_string();
                let read = xml::read("", &written).expect(&written);
                let pairs = (0..ours.pes()).flat_map(|a| (0..ours.pes()).map(move |b| (a, b)));
                let apart = pairs.filter(|&(a, b)| read.distance(a, b) != ours.distance(a, b));
                assert_eq!((read.pes(), apart.count()), (ours.pes(), 0), "{text} {flags:?}");
            }
        }
    }

    #[cfg(feature = "hwloc")]
    #[test]
    fn pes_of_the_current_host_have_distinct_hardware_threads() {
        let machine = crate::topology::parse("hwloc").expect("this machine");
        let mut cpus: Vec<usize> = (0..machine.pes()).filter_map(|pe| machine.cpu_of(pe)).collect();
        cpus.sort_unstable();
        cpus.dedup();
        assert_eq!(cpus.len(), machine.pes(), "hardware threads of PEs are distinct");
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        assert!(machine.pes() >= available, "{} PEs for {available} hardware threads", machine.pes());
    }
}

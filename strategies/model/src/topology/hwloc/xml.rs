//! Machines exported by hwloc to XML (`lstopo machine.xml`), by version 2 or 1.
//!
//! The document is a tree of `object`s with a `type`; objects of type `PU` are the PEs. An object counts if several of
//! its children have PEs; memory, devices and other objects without PEs do not count. The host name is the info
//! `HostName`. Files of version 1 may contain several machines.

use std::fmt::Write as _;

use roxmltree::{Document, Node, ParsingOptions};
use rustc_hash::FxHashMap;

use super::super::{MAX_PES, NamedTree, Part};

/// The largest number of elements of a document.
const MAX_ELEMENTS: u32 = 1 << 25;

/// Parses a file; `spec` is the spec of the machine.
pub(super) fn read(spec: &str, text: &str) -> Result<NamedTree, String> {
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MAX_ELEMENTS, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| format!("line {}: this is not XML: {error}", error.pos().row))?;
    let line = |node: Node| document.text_pos_at(node.range().start).row;
    let top = document.root_element();
    if !top.has_tag_name("topology") {
        let (line, name) = (line(top), top.tag_name().name());
        return Err(format!("line {line}: expected a topology written by lstopo of hwloc, found `{name}`"));
    }
    let objects = objects(top);
    let mut root = None;
    for object in &objects {
        let kind = object.node.attribute("type");
        let Some(kind) = kind else {
            return Err(format!("line {}: an object needs a `type`", line(object.node)));
        };
        if kind == "PU"
            && object.parent.is_some_and(|parent| objects[parent].node.attribute("type") == Some("PU"))
        {
            return Err(format!(
                "line {}: there is a hardware thread below another hardware thread",
                line(object.node)
            ));
        }
        if object.parent.is_none() && root.replace(object).is_some() {
            return Err(format!("line {}: there are several top-level objects; give one", line(object.node)));
        }
    }
    let mut builder = Builder { objects: &objects, ..Builder::default() };
    builder.count();
    match root {
        Some(root) if root.node.attribute("type") != Some("PU") && builder.below.first() > Some(&0) => (),
        Some(_) => return Err(format!("line {}: there is no object of type PU below others", line(top))),
        None => return Err(format!("line {}: the topology has no object", line(top))),
    }
    if builder.below[0] > MAX_PES {
        return Err(format!("line {}: there are more than {MAX_PES} hardware threads", line(top)));
    }
    builder.add_parts();
    let (parts, host_of) = (builder.parts, builder.host_of);
    let tree = NamedTree::new(spec, parts).map_err(|reason| format!("line {}: {reason}", line(top)))?;
    Ok(tree.with_hosts(host_of))
}

/// An object, and the position of its parent in the list.
struct Object<'a, 'input> {
    node: Node<'a, 'input>,
    parent: Option<usize>,
}

/// All objects of a document, in document order.
fn objects<'a, 'input>(top: Node<'a, 'input>) -> Vec<Object<'a, 'input>> {
    let mut objects = Vec::new();
    let mut place: FxHashMap<roxmltree::NodeId, usize> = FxHashMap::default();
    for node in top.descendants().filter(|node| node.has_tag_name("object")) {
        let parent = node.parent_element().and_then(|parent| place.get(&parent.id()).copied());
        place.insert(node.id(), objects.len());
        objects.push(Object { node, parent });
    }
    objects
}

/// Builds the parts of a tree.
#[derive(Default)]
struct Builder<'b, 'a, 'input> {
    objects: &'b [Object<'a, 'input>],
    /// For each object: the number of PEs below it, and the number of its children with PEs.
    below: Vec<usize>,
    branches: Vec<usize>,
    parts: Vec<Part>,
    /// For each PE: the number of its machine.
    host_of: Vec<u32>,
    /// The number of parts with each name.
    numbers: FxHashMap<String, usize>,
}

impl Builder<'_, '_, '_> {
    fn count(&mut self) {
        let is_pe = |object: &Object| usize::from(object.node.attribute("type") == Some("PU"));
        self.below = self.objects.iter().map(is_pe).collect();
        self.branches = vec![0; self.objects.len()];
        for id in (0..self.objects.len()).rev() {
            let Some(parent) = self.objects[id].parent.filter(|_| self.below[id] > 0) else { continue };
            self.below[parent] += self.below[id];
            self.branches[parent] += 1;
        }
    }

    /// Makes a part of every object that counts.
    fn add_parts(&mut self) {
        // For each object: its part or the part that contains it, and its machine.
        let mut part_of: Vec<usize> = vec![0; self.objects.len()];
        let mut machine_of: Vec<Option<u32>> = vec![None; self.objects.len()];
        let mut hosts: Vec<Option<String>> = Vec::new();
        // For each object: the object after which its part is named, if objects are nested without branching.
        let mut named_after: Vec<usize> = (0..self.objects.len()).collect();
        // Objects with one branch are skipped, but there must be a root.
        let has_fork = self.branches.iter().any(|&branches| branches > 1);
        for (id, object) in self.objects.iter().enumerate() {
            if self.below[id] == 0 {
                continue;
            }
            let (kind, above) = (object.node.attribute("type").unwrap_or_default(), object.parent);
            part_of[id] = above.map_or(0, |parent| part_of[parent]);
            machine_of[id] = above.and_then(|parent| machine_of[parent]);
            if kind == "Machine" || above.is_none() {
                // A machine within a system replaces the machine of the system.
                let host = host_name(object.node);
                let inherited = machine_of[id].and_then(|machine| hosts[machine as usize].clone());
                machine_of[id] = Some(hosts.len() as u32);
                hosts.push(host.or(inherited));
            }
            let is_pe = kind == "PU";
            if let Some(parent) = above.filter(|&parent| self.branches[parent] < 2) {
                let outer = named_after[parent];
                if self.is_prominent(outer) || !self.is_prominent(id) {
                    named_after[id] = outer;
                }
            }
            if !is_pe && self.branches[id] < 2 && (has_fork || above.is_some()) {
                continue;
            }
            let machine = machine_of[id].unwrap_or(0);
            let name = if is_pe { hosts[machine as usize].clone() } else { Some(self.name(named_after[id])) };
            if is_pe {
                self.host_of.push(machine);
            }
            let parent = part_of[id];
            part_of[id] = self.parts.len();
            self.parts.push(Part { name, parent, is_pe });
        }
    }

    /// Whether a part is named after this object rather than after a cache or group with the same PEs.
    fn is_prominent(&self, id: usize) -> bool {
        let kind = self.objects[id].node.attribute("type").unwrap_or_default();
        !kind.contains("Cache") && kind != "Group"
    }

    /// The name of an object, such as `package 1`.
    fn name(&mut self, id: usize) -> String {
        let node = self.objects[id].node;
        let kind = node.attribute("type").unwrap_or_default();
        let mut name = match kind {
            "Machine" | "System" | "Package" | "Core" | "Die" | "Group" => kind.to_lowercase(),
            "Socket" => "package".into(),
            "NUMANode" => "NUMA node".into(),
            "Cache" => format!("L{} cache", node.attribute("depth").unwrap_or("?")),
            _ => {
                kind.strip_suffix("Cache").map_or_else(|| kind.to_string(), |level| format!("{level} cache"))
            }
        };
        let number = self.numbers.entry(name.clone()).or_insert(0);
        let _ = write!(name, " {number}");
        *number += 1;
        name
    }
}

/// The `HostName` of an object.
fn host_name(node: Node) -> Option<String> {
    let infos = node.children().filter(|child| child.has_tag_name("info"));
    let mut names = infos.filter(|info| info.attribute("name") == Some("HostName"));
    names.next().and_then(|info| info.attribute("value")).filter(|name| !name.is_empty()).map(String::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::tests::{check, row};
    use super::super::super::{Topology, parse};
    use super::*;
    use crate::testing::mutated;

    /// A package with a core of two threads and a core of one thread; memory and devices.
    const VERSION_2: &str = include_str!("../../../tests/data/machine-v2.xml");

    /// Two machines with two sockets each, written by hwloc version 1.
    const VERSION_1: &str = include_str!("../../../tests/data/machine-v1.xml");

    fn machine(text: &str) -> std::sync::Arc<dyn Topology> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("machine.xml");
        std::fs::write(&file, text).expect("a file");
        let machine = parse(&format!("hwloc:{}", file.display())).expect("a machine");
        check(&*machine);
        machine
    }

    fn names(machine: &dyn Topology, a: usize, b: usize) -> Vec<String> {
        let mut route = Vec::new();
        machine.route(a, b, &mut route);
        route.into_iter().map(|id| machine.link(id).name).collect()
    }

    #[test]
    fn hardware_threads_are_below_the_objects_that_separate_them() {
        let machine = machine(VERSION_2);
        assert_eq!((machine.pes(), machine.host(2), machine.node_of(2)), (5, Some("cx17"), 0));
        // Threads 0 and 1 share a core, thread 2 shares their package, and 3 and 4 are in the other package.
        assert_eq!(row(&*machine, 0), [0, 2, 3, 5, 5]);
        assert_eq!(names(&*machine, 0, 2), ["0 -> core 0", "core 0 -> package 0", "package 0 -> 2"]);
        assert_eq!(names(&*machine, 3, 4), ["3 -> package 1", "package 1 -> 4"]);
    }

    #[test]
    fn machines_of_version_1_are_hosts() {
        let machine = machine(VERSION_1);
        assert_eq!(row(&*machine, 0), [0, 2, 3, 6, 6, 5]);
        let hosts: Vec<_> = (0..6).map(|pe| (machine.host(pe), machine.node_of(pe))).collect();
        assert_eq!(hosts[2..4], [(Some("node1"), 1), (Some("node2"), 2)]);
        assert_eq!(names(&*machine, 1, 2)[..2], ["1 -> package 0", "package 0 -> machine 0"]);
    }

    #[test]
    fn errors_name_the_line() {
        let check = |text: &str, expected: &str| {
            let error = read("", text).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("<topology>\n  <object type=\"PU\">\n</topology>", "line 3: this is not XML: ");
        check("<html/>", "line 1: expected a topology written by lstopo of hwloc, found `html`");
        check("<topology>\n</topology>", "line 1: the topology has no object");
        check("<topology>\n<object type=\"PU\"/></topology>", "there is no object of type PU below others");
        check("<topology>\n<object/></topology>", "line 2: an object needs a `type`");
        let two = "<object type=\"Machine\"><object type=\"PU\"/></object>";
        check(&format!("<topology>\n{two}\n{two}</topology>"), "line 3: there are several top-level objects");
        let nested = "<object type=\"Machine\">\n<object type=\"PU\"><object type=\"PU\"/></object></object>";
        check(
            &format!("<topology>\n{nested}</topology>"),
            "line 3: there is a hardware thread below another hardware thread",
        );
        let deep = format!("{}{}", "<object type=\"Core\">".repeat(50_000), "</object>".repeat(50_000));
        check(&format!("<topology>{deep}</topology>"), "no object of type PU");
        let one = read("", &format!("<topology>{two}</topology>")).expect("a machine");
        assert_eq!((one.pes(), one.links()), (1, 2));
    }

    proptest! {
        #[test]
        fn no_file_panics(version in 1..3usize, at in 0..3000usize, word in "[0-9a-zPU<>/\" =]{0,6}") {
            let text = if version == 1 { VERSION_1 } else { VERSION_2 };
            let _ = read("", &mutated(text, at, &word));
        }
    }
}

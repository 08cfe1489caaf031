//! Tests of Slurm files and their errors.

use std::sync::Arc;

use proptest::prelude::*;

use super::super::tests::{check, row};
use super::super::{Topology, parse};
use super::*;
use crate::fault::{Classified as _, Fault};
use crate::testing::mutated;

const TREE: &str = include_str!("../../../tests/data/topology.conf");
const BLOCKS: &str = include_str!("../../../tests/data/blocks.conf");
const YAML: &str = include_str!("../../../tests/data/topology.yaml");

/// The machine of a file with this name and text.
fn machine(name: &str, text: &str, spec: impl Fn(&str) -> String) -> Result<Arc<dyn Topology>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(name);
    std::fs::write(&file, text).expect("a file");
    let machine = parse(&spec(&file.display().to_string())).map_err(|error| error.to_string())?;
    // In a product, routes start and end at nodes, not at PEs, so the check does not apply.
    if !machine.spec().contains('*') {
        check(&*machine);
    }
    Ok(machine)
}

fn slurm(file: &str) -> String {
    format!("slurm:{file}")
}

fn hosts(machine: &dyn Topology) -> String {
    let names: Vec<&str> = (0..machine.pes()).filter_map(|pe| machine.host(pe)).collect();
    names.join(" ")
}

fn names(machine: &dyn Topology, a: usize, b: usize) -> String {
    let mut route = Vec::new();
    machine.route(a, b, &mut route);
    route.into_iter().map(|id| machine.link(id).name).collect::<Vec<_>>().join(", ")
}

#[test]
fn switches_form_a_tree_of_hosts() {
    let machine = machine("topology.conf", TREE, slurm).expect("a machine");
    assert_eq!(hosts(&*machine), "login n1-ib n2-ib n3-ib n7-ib gpu01 gpu02");
    assert_eq!(row(&*machine, 1), [3, 0, 2, 2, 4, 5, 5]);
    assert_eq!(
        names(&*machine, 1, 5),
        "1 -> switch leaf1, switch leaf1 -> switch spine1, switch spine1 -> switch core, \
         switch core -> switch leaf3, switch leaf3 -> 5"
    );
    let tree = machine.hierarchy().expect("a tree");
    assert_eq!((tree.depth(), tree.nodes(1).len(), tree.nodes(2).len()), (3, 2, 5));
}

#[test]
fn hosts_keep_their_names_in_products_and_allocations() {
    let machine = machine("topology.conf", TREE, |file| format!("(slurm:{file}*tree:2:2)[4-7,24-27]"));
    let machine = machine.expect("a machine");
    assert_eq!(machine.pes(), 8);
    assert_eq!((machine.host(3), machine.host(4)), (Some("n1-ib"), Some("gpu02")));
    assert_eq!((machine.node_of(3), machine.node_of(4)), (1, 6));
    assert_eq!(row(&*machine, 0), [0, 2, 4, 4, 25, 25, 25, 25]);
}

#[test]
fn blocks_are_grouped_by_their_sizes() {
    let machine = machine("blocks.conf", BLOCKS, slurm).expect("a machine");
    assert_eq!(hosts(&*machine), "a1 a2 b1 b2 c1 c2 d1 d2 e1");
    assert_eq!(row(&*machine, 0), [0, 2, 4, 4, 6, 6, 6, 6, 8]);
    assert_eq!(
        names(&*machine, 8, 0),
        "8 -> block e, block e -> 4-node block e..e, 4-node block e..e -> 8-node block e..e, 8-node block e..e -> \
         network, network -> 8-node block a..d, 8-node block a..d -> 4-node block a..b, 4-node block a..b -> \
         block a, block a -> 0"
    );
}

#[test]
fn selects_the_default_topology_or_one_by_name() {
    let chosen = |name: &'static str| {
        machine("topology.yaml", YAML, |file| format!("slurm:{file}{name}")).map(|machine| hosts(&*machine))
    };
    assert_eq!(chosen("").as_deref(), Ok("n1 n2 n3 n4"), "the cluster's default");
    assert_eq!(chosen("#fabric"), chosen(""));
    assert_eq!(chosen("#racks").as_deref(), Ok("n1 n2 n3 n4 n5"));
    let error = chosen("#cloud").expect_err("flat");
    assert!(error.contains("line 27: topology `cloud` is flat and names no hosts; use flat:N"), "{error}");
    let error = chosen("#fabrik").expect_err("no such topology");
    assert!(
        error.contains("no topology `fabrik` (did you mean `fabric`?); known are racks, fabric, cloud"),
        "{error}"
    );
    let error = machine("t.conf", TREE, |file| format!("slurm:{file}#x")).err().expect("one topology");
    assert!(error.contains("has only one topology; omit #x"), "{error}");
}

#[test]
fn top_switches_are_below_the_network() {
    let two = machine("t.conf", "SwitchName=a Nodes=x\nSwitchName=b Nodes=y,z\n", slurm).expect("a machine");
    assert_eq!(names(&*two, 0, 2), "0 -> switch a, switch a -> network, network -> switch b, switch b -> 2");
}

#[test]
fn errors_name_the_line_of_a_topology_conf() {
    for (text, expected) in [
        ("", "line 1: no line describes a switch or a block"),
        ("# x\n\nSwitchName=a Nods=n1\n", "line 3: there is no parameter `Nods` (did you mean `Nodes`?)"),
        ("SwitchName=a Nodes=n[1-\n", "line 1: there is a `[` that is not closed"),
        ("SwitchName=a\n", "line 1: the machine has no host"),
        ("SwitchName=a Nodes=n1 \\\n  Nodes=n2\n", "line 1: Nodes is given twice"),
        ("SwitchName=a Switches=b\n", "line 1: switch a has the child b, which is not described"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", "line 2: switch a is already described in line 1"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\n", "line 2: host n1 is already named in line 1"),
        (
            "SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n\n",
            "line 2: switch c is already a child of a (line 1)",
        ),
        (
            "SwitchName=r Nodes=n\nSwitchName=a Switches=b\nSwitchName=b Switches=a,c\nSwitchName=c Nodes=m\n",
            "is its own ancestor; remove the cycle",
        ),
        ("SwitchName=s[1-2] Nodes=n1\n", "line 1: `s[1-2]` is 2 names; give each its own line"),
        ("Nodes=n1\n", "line 1: expected SwitchName= or BlockName="),
        ("switch a\n", "line 1: expected parameters such as SwitchName=s1 Nodes=n[1-16], found `switch`"),
        ("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n", "line 2: there are both switches and blocks"),
        ("SwitchName=a Nodes=n1\nBlockSizes=4\n", "line 2: there are BlockSizes, but no blocks"),
        ("BlockName=a Nodes=n1\nBlockSizes=4,6\n", "line 2: block size 6 is not a multiple of 4"),
        (
            "BlockName=a Nodes=n1\nBlockSizes=four\n",
            "line 2: expected block sizes such as 4,8,16, found `four`",
        ),
        ("BlockName=a Switches=n1\n", "line 1: a block has Nodes, not Switches"),
        ("BlockName=a Nodes=n1\nBlockName=a Nodes=n2\n", "line 2: block a is already described in line 1"),
        ("BlockName=a BlockLevels=1,2\n", "line 1: BlockLevels belongs to an older version of Slurm"),
    ] {
        let error = machine("topology.conf", text, slurm).err().expect(expected);
        assert!(error.contains("topology.conf: line "), "{error}");
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
}

#[test]
fn errors_name_the_line_of_a_topology_yaml() {
    for (text, expected) in [
        ("", "line 1: the file is empty"),
        ("tree\n", "line 1: expected a list of topologies, found `tree`"),
        ("- tree: [\n", "this is not YAML: "),
        ("- tree:\n    switches: []\n", "line 1: a topology needs the key `topology:`"),
        ("- topology: a\n", "line 1: topology `a` needs one of the keys tree, block and flat"),
        (
            "- topology: a\n  tree:\n    switch: b\n",
            "line 3: there is no key `switch:` here (did you mean `switches`?)",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n      - switch: s\n        node: n1\n",
            "line 5: there is no key `node:` here (did you mean `nodes`?); known are switch, children, nodes",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n      - switch: s\n        nodes: n[1\n",
            "line 5: there is a `[` that is not closed",
        ),
        (
            "- topology: a\n  tree:\n    switches:\n      - switch: s\n        nodes: n 1\n",
            "line 4: `n 1` is not a valid name",
        ),
        (
            "- topology: a\n  block:\n    block_sizes: [4, 6]\n    blocks: []\n",
            "line 3: block size 6 is not a multiple of 4",
        ),
        ("- topology: a\n  topology: b\n", "line 2: `topology:` is given twice"),
        ("- topology: &x a\n  flat: *x\n", "line 2: aliases (`*name`) are not supported"),
        ("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "line 1: lists are nested more than 32 levels deep"),
    ] {
        let error = machine("topology.yaml", text, slurm).err().expect(expected);
        assert!(error.contains("topology.yaml: line "), "{error}");
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
    let error = parse("slurm:").err().expect("no name").to_string();
    assert!(error.contains("expected the name of a topology.conf"), "{error}");
    let error = parse("slurm:none.conf").err().expect("no file");
    assert!(
        error.fault() == Fault::Usage && error.to_string().contains("cannot read the topology `none.conf`"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_file_panics(which in 0..3usize, at in 0..800usize, word in r"[a-z0-9=,\[\]:# \n-]{0,5}") {
        let text = mutated([TREE, BLOCKS, YAML][which], at, &word);
        let network = if which == 2 { yaml::read(&text, None).ok() } else { conf::read(&text).ok() };
        if let Some(network) = network {
            let _ = tree("slurm:", network);
        }
    }
}

//! `nvidia-smi:FILE`: the GPUs of a node, from the text of `nvidia-smi topo -m`.
//!
//! The PEs are the GPUs. The text names the connection of every pair of GPUs; its other rows and columns (network cards,
//! affinities) and the legend are ignored. The distance is the level of the connection: 1 for NVLink (`NV4`) and the same
//! board (`INT`), 2 for one PCIe bridge (`PIX`), 3 for several (`PXB`), 4 for a PCIe host bridge (`PHB`), 5 for several in a
//! NUMA node (`NODE`), and 6 between NUMA nodes (`SYS`, formerly `SOC`).
//!
//! There is a link for each pair. The text has no speeds, so they are assumed: a bonded NVLink has 25e9 bytes per second for each of its
//! links (NVLink 2 to 4, one direction), one PCIe bridge 24e9 (what PCIe 4.0 with 16 lanes reaches), and each further level 2e9 less. So a
//! connection of a lower level is never slower than one of a higher level.

use std::sync::Arc;

use super::error::from_file;
use super::{DEFAULT_LATENCY_SECONDS, Hierarchy, Kind, Link, Shape, Topology};
use crate::table::count;

/// The entry of `nvidia-smi:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "nvidia-smi",
    form: "nvidia-smi:FILE",
    help: "The GPUs of a node from the text of `nvidia-smi topo -m`; distances are levels: 1 NVLink, 2 PIX, 3 PXB, 4 PHB, 5 \
           NODE, 6 SYS. As the node of a product: flat:4*nvidia-smi:FILE is a cluster, flat:1*nvidia-smi:FILE one node; alone, each GPU is \
           a node of its own. Bandwidths are assumed: 25 GB/s for each NVLink, 24 GB/s for PIX, and 2 GB/s less for each further level.",
    params: &[],
    item: |name| {
        if name.is_empty() {
            return Err("expected the name of a file with the text of `nvidia-smi topo -m`".into());
        }
        let spec = format!("nvidia-smi:{name}");
        Ok(Arc::new(from_file("GPUs", name, |text| read(&spec, text))?))
    },
};

/// Bytes per second of a link of NVLink, of one PCIe bridge, and by how many each further level has fewer.
const NVLINK: f64 = 25e9;
const PCIE: f64 = 24e9;
const LEVEL_COSTS: f64 = 2e9;

/// The most GPUs of a node.
const MAX_GPUS: usize = 1024;

/// The connections by level, from 1.
const LEVELS: [&[&str]; 6] = [&["INT"], &["PIX"], &["PXB"], &["PHB"], &["NODE"], &["SYS", "SOC"]];

/// The connection of two GPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Connection {
    level: u32,
    bandwidth: f64,
}

impl Connection {
    fn parse(word: &str) -> Option<Self> {
        if let Some(links) = word.strip_prefix("NV") {
            let links = links.parse::<u32>().ok().filter(|&links| links > 0)?;
            return Some(Connection { level: 1, bandwidth: NVLINK * f64::from(links) });
        }
        let level = LEVELS.iter().position(|words| words.contains(&word))? as u32 + 1;
        let further = level.saturating_sub(2);
        Some(Connection { level, bandwidth: PCIE - LEVEL_COSTS * f64::from(further) })
    }
}

/// The GPUs of a node.
struct Gpus {
    /// The spec of this machine.
    spec: String,
    gpus: usize,
    /// All rows, concatenated; none on the diagonal.
    connections: Vec<Option<Connection>>,
}

/// Terminals underline the names of columns.
fn without_escapes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\u{1b}' => drop(letters.by_ref().find(char::is_ascii_alphabetic)),
            letter => clean.push(letter),
        }
    }
    clean
}

/// The number of the GPU that a row or column describes.
fn gpu(word: &str) -> Option<usize> {
    word.strip_prefix("GPU")?.parse().ok()
}

fn read(spec: &str, text: &str) -> Result<Gpus, String> {
    let text = without_escapes(text);
    let mut lines = (1..).zip(text.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>()));
    let columns = lines.by_ref().find(|(_, words)| words.first().is_some_and(|word| gpu(word).is_some()));
    let (line, words) = columns
        .ok_or("line 1: no line has the columns GPU0 GPU1 ..; give the text of `nvidia-smi topo -m`")?;
    // `GPU NUMA ID` is one of the last columns.
    let gpus = words.iter().enumerate().take_while(|(at, word)| gpu(word) == Some(*at)).count();
    if gpus == 0 || gpus > MAX_GPUS {
        return Err(format!(
            "line {line}: expected the columns GPU0 GPU1 .., at most {MAX_GPUS}, found {gpus}"
        ));
    }
    let (mut connections, mut last, mut rows) = (Vec::with_capacity(gpus * gpus), line, 0);
    for (line, words) in lines {
        let Some(row) = words.first().and_then(|word| gpu(word)) else { continue };
        if row != rows || row >= gpus {
            return Err(format!("line {line}: expected the row GPU{rows} of {gpus}, found GPU{row}"));
        }
        if words.len() <= gpus {
            return Err(format!("line {line}: expected {} of GPU{row}", count(gpus as u64, "connection")));
        }
        for (column, word) in words[1..=gpus].iter().enumerate() {
            let connection = if row == column {
                (*word == "X").then_some(None)
            } else {
                Connection::parse(word).map(Some)
            };
            connections.push(connection.ok_or_else(|| {
                format!(
                    "line {line}: expected X for the GPU itself, or a connection such as NV4, PIX, PXB, PHB, NODE or SYS, \
                     found `{word}` for GPU{column}"
                )
            })?);
            if column < row && connections[column * gpus + row] != connections[row * gpus + column] {
                return Err(format!(
                    "line {line}: the connection of GPU{row} with GPU{column} differs in the row of GPU{column}"
                ));
            }
        }
        (last, rows) = (line, rows + 1);
    }
    if rows < gpus {
        return Err(format!("line {last}: there are {gpus} columns, but {}", count(rows as u64, "row")));
    }
    Ok(Gpus { spec: spec.to_string(), gpus, connections })
}

impl Gpus {
    /// The tree in which GPUs meet at the level of their connection; none if being connected at most at a level is not
    /// transitive.
    fn tree(&self) -> Option<Hierarchy> {
        let near = |a: usize, b: usize, level: u32| self.distance(a, b) <= level;
        let (mut order, mut is_used) = (vec![0], vec![false; self.gpus]);
        is_used[0] = true;
        // The next leaf is the GPU that is closest to the last leaf, so the GPUs of a node of the tree are consecutive.
        while let Some(&last) = order.last().filter(|_| order.len() < self.gpus) {
            let free = (0..self.gpus).filter(|&gpu| !is_used[gpu]);
            let next = free.min_by_key(|&gpu| (self.distance(last, gpu), gpu))?;
            is_used[next] = true;
            order.push(next);
        }
        let mut starts = Vec::new();
        for level in (0..=LEVELS.len() as u32).rev() {
            let is_start = |&at: &usize| at == 0 || !near(order[at - 1], order[at], level);
            let nodes: Vec<u32> =
                (0..self.gpus).filter(is_start).chain([self.gpus]).map(|at| at as u32).collect();
            let node_of = |at: usize| nodes.partition_point(|&start| start as usize <= at);
            let agrees = |a: usize, b: usize| near(order[a], order[b], level) == (node_of(a) == node_of(b));
            if !(0..self.gpus).all(|a| (0..self.gpus).all(|b| agrees(a, b))) {
                return None;
            }
            if starts.last() != Some(&nodes) {
                starts.push(nodes);
            }
        }
        if starts.first().is_some_and(|top| top.len() > 2) {
            return None;
        }
        Some(Hierarchy::new(order.into_iter().map(|gpu| gpu as u32).collect(), starts))
    }
}

impl Topology for Gpus {
    fn spec(&self) -> String {
        self.spec.clone()
    }

    fn pes(&self) -> usize {
        self.gpus
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.connections[a * self.gpus + b].map_or(0, |connection| connection.level)
    }

    fn links(&self) -> usize {
        self.gpus * (self.gpus - 1)
    }

    fn link(&self, id: usize) -> Link {
        let (from, rank) = (id / (self.gpus - 1), id % (self.gpus - 1));
        let to = rank + usize::from(rank >= from);
        let connection = self.connections[from * self.gpus + to];
        Link {
            name: format!("{from} -> {to}"),
            bandwidth: connection.map_or(PCIE, |connection| connection.bandwidth),
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: self.distance(from, to),
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a != b {
            links.push(a * (self.gpus - 1) + b - usize::from(b > a));
        }
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        self.tree()
    }

    fn shape(&self) -> Shape {
        self.tree().map_or(Shape::Any, Shape::Tree)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, check_between, row};
    use super::*;

    /// A node with two sockets; pairs of GPUs are connected by NVLink, and there is a network card.
    const GOLDEN: &str = "\t\u{1b}[4mGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\u{1b}[0m\n\
        GPU0\t X \tNV4\tSYS\tSYS\tPIX\t0-31\t0\t\tN/A\n\
        GPU1\tNV4\t X \tSYS\tSYS\tPXB\t0-31\t0\t\tN/A\n\
        GPU2\tSYS\tSYS\t X \tPHB\tSYS\t32-63\t1\t\tN/A\n\
        GPU3\tSYS\tSYS\tPHB\t X \tSYS\t32-63\t1\t\tN/A\n\
        NIC0\tPIX\tPXB\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n\
        NIC Legend:\n\n  NIC0: mlx5_0\n";

    #[test]
    fn no_level_is_faster_than_a_lower_one() {
        let connections = ["NV2", "NV1", "INT", "PIX", "PXB", "PHB", "NODE", "SYS"];
        let known = connections.map(|word| Connection::parse(word).expect("a connection"));
        let is_ordered =
            |pair: &[Connection]| pair[0].bandwidth >= pair[1].bandwidth && pair[0].level <= pair[1].level;
        assert!(known.windows(2).all(is_ordered) && known[1].bandwidth > known[3].bandwidth, "{known:?}");
    }

    #[test]
    fn distances_are_the_levels_of_connections() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("topo.txt");
        std::fs::write(&file, GOLDEN).expect("a file");
        let machine = parse(&format!("nvidia-smi:{}", file.display())).expect("GPUs");
        check(&*machine);
        assert_eq!((row(&*machine, 0), row(&*machine, 3)), (vec![0, 1, 6, 6], vec![6, 6, 4, 0]));
        assert_eq!((machine.link(0).bandwidth, machine.link(1).bandwidth), (100e9, 16e9));
        let tree = machine.hierarchy().expect("a tree");
        assert_eq!((tree.leaves(), tree.depth()), (&[0, 1, 2, 3][..], 3));
        assert_eq!(tree.nodes(1).collect::<Vec<_>>(), [0..2, 2..4]);
        assert!(matches!(machine.shape(), Shape::Tree(_)));
        check_between(&*parse(&format!("flat:2*nvidia-smi:{}", file.display())).expect("nodes"), |_, _| None);
    }

    #[test]
    fn connections_that_are_no_tree_have_none() {
        let square = "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV1 NV1 SYS\nGPU1 NV1 X SYS NV1\nGPU2 NV1 SYS X NV1\nGPU3 SYS NV1 NV1 X\n";
        let gpus = read("", square).expect("GPUs");
        assert_eq!((gpus.tree(), gpus.shape()), (None, Shape::Any));
        let one = read("", "  GPU0 CPU Affinity\nGPU0 X 0-3\n").expect("a GPU");
        assert_eq!((one.pes(), one.links(), one.tree().map(|tree| tree.depth())), (1, 0, Some(0)));
        // The leaves of the tree are in another order than the GPUs.
        let crossed = "GPU0 GPU1 GPU2\nGPU0 X SYS PIX\nGPU1 SYS X SYS\nGPU2 PIX SYS X\n";
        assert_eq!(
            read("", crossed).expect("GPUs").tree().map(|tree| tree.leaves().to_vec()),
            Some(vec![0, 2, 1])
        );
    }

    #[test]
    fn errors_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            assert!(GOLDEN.contains(from), "{from}");
            let error = read("", &GOLDEN.replacen(from, to, 1)).err().expect(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("GPU0\t X ", "GPU0\t NV1 ", "line 2: expected X for the GPU itself");
        check("NV4\tSYS", "NVX\tSYS", "found `NVX` for GPU1");
        check(
            "GPU1\tNV4",
            "GPU1\tNV2",
            "line 3: the connection of GPU1 with GPU0 differs in the row of GPU0",
        );
        check(
            "GPU3\tSYS\tSYS\tPHB\t X ",
            "GPU7\tSYS\tSYS\tPHB\t X ",
            "line 5: expected the row GPU3 of 4, found GPU7",
        );
        check(
            "GPU3\tSYS\tSYS\tPHB\t X \tSYS\t32-63\t1\t\tN/A\n",
            "",
            "line 4: there are 4 columns, but 3 rows",
        );
        check("\tPHB\tSYS\t32-63\t1\t\tN/A\n", "\n", "expected 4 connections of GPU2");
        let error = read("", "no GPUs\n").err().expect("no columns");
        assert!(error.contains("line 1: no line has the columns GPU0 GPU1"), "{error}");
    }
}

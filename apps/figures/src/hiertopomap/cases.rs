//! The programs and machines of the HierTopoMap paper.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, tables 1 and 2. The matrices are generated (`kkt:`, `fem:` of `--graph help`) with about as many rows as those
//! of the paper, and smaller in the small version, unless `--data` names a folder with the original ones. Messages are
//! scaled by the surface of the parts, which grows with the size of the matrix to the power of 2/3. METIS gives
//! neighboring parts close numbers; figure 9 shows no such order, so parts are renumbered at random before they are
//! mapped.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::{Database, Topology, topology};
use equipoise_network::models::exchange::{Exchange, Traffic};
use equipoise_network::models::{self, Network};
use equipoise_strategies::workloads;

use super::node::{Measured, OfNodes, best_division};
use crate::figure::Options;
use crate::topolb::network::{renumbered, shuffled};

/// A program of table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Program {
    /// Its name there.
    pub name: &'static str,
    workload: Workload,
}

/// The communication of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Workload {
    /// Messages of 16 kB between neighbors in three dimensions.
    Stencil,
    /// The vector entries of a matrix-vector product: the generated matrix, that of the small version, each with its number
    /// of rows, and the number of rows of the matrix in the paper.
    Matrix { full: Generated, small: Generated, rows: f64 },
    /// The faces of cells of an adaptive mesh.
    Octree,
}

/// The spec of a generated matrix, and its number of rows. Counting them would take as long as generating the matrix.
type Generated = (&'static str, f64);

/// The programs of table 2.
pub(crate) const PROGRAMS: [Program; 5] = [
    Program { name: "3D stencil", workload: Workload::Stencil },
    Program {
        name: "F1",
        workload: Workload::Matrix {
            full: ("fem:72x20x20", 298_683.0),
            small: ("fem:16x5x5", 4_419.0),
            rows: 343_791.0,
        },
    },
    Program {
        name: "audikw_1",
        workload: Workload::Matrix {
            full: ("fem:70x34x34", 932_751.0),
            small: ("fem:12x8x8", 6_651.0),
            rows: 943_695.0,
        },
    },
    Program {
        name: "nlpkkt120",
        workload: Workload::Matrix {
            full: ("kkt:120", 3_542_400.0),
            small: ("kkt:60", 453_600.0),
            rows: 3_542_400.0,
        },
    },
    Program { name: "ART", workload: Workload::Octree },
];

impl Program {
    /// The messages between processes as directed edges; process i is on PE i. The parts of a matrix are numbered at
    /// random.
    ///
    /// # Errors
    /// As [`Self::in_order`].
    pub fn tasks(&self, processes: usize, options: &Options) -> Result<Database, Failure> {
        self.numbered(&self.in_order(processes, options)?, options.seed)
    }

    /// The same tasks as [`Self::in_order`], with the parts of a matrix numbered at random.
    ///
    /// # Errors
    /// If there are too many processes.
    pub fn numbered(&self, tasks: &Database, seed: u64) -> Result<Database, Failure> {
        if self.is_matrix() {
            Ok(renumbered(tasks, &shuffled(tasks.objects.len(), seed)?))
        } else {
            Ok(tasks.clone())
        }
    }

    /// Whether it multiplies a matrix.
    pub fn is_matrix(&self) -> bool {
        matches!(self.workload, Workload::Matrix { .. })
    }

    /// The same as [`Self::tasks`], with the parts of a matrix in the order of METIS.
    ///
    /// # Errors
    /// If a matrix in the folder cannot be read.
    pub fn in_order(&self, processes: usize, options: &Options) -> Result<Database, Failure> {
        let spec = match self.workload {
            Workload::Stencil => format!("mesh:{},bytes=16384", box_of(processes)),
            Workload::Octree if options.small => format!("octree:{processes},level=4,bytes=2048"),
            Workload::Octree => format!("octree:{processes},level=5,bytes=512"),
            Workload::Matrix { full, small, rows } => {
                let file = options.data.as_ref().map(|folder| folder.join(format!("{}.mtx", self.name)));
                if let Some(file) = file.filter(|file| file.exists()) {
                    return load(&format!("spmv:{processes},{}", file.display()), processes);
                }
                let (matrix, generated) = if options.small { small } else { full };
                let mut tasks = load(&format!("spmv:{processes},{matrix}"), processes)?;
                let scale = (rows / generated).powf(2.0 / 3.0);
                // A message contains whole vector entries of 8 bytes.
                tasks
                    .edges
                    .iter_mut()
                    .for_each(|edge| edge.bytes = 8 * (edge.bytes as f64 / 8.0 * scale).round() as u64);
                return Ok(tasks);
            }
        };
        load(&spec, processes)
    }
}

fn load(spec: &str, processes: usize) -> Result<Database, Failure> {
    Ok(workloads::load(spec)?.remap(processes as u32))
}

/// The sizes of the most cubic box of `processes` processes, longest side first.
pub(crate) fn box_of(processes: usize) -> String {
    let divides = |of: usize| move |side: &usize| of % side == 0;
    let least = (1..=processes)
        .take_while(|side| side.pow(3) <= processes)
        .filter(divides(processes))
        .last()
        .unwrap_or(1);
    let rest = processes / least;
    let middle = (1..=rest).take_while(|side| side * side <= rest).filter(divides(rest)).last().unwrap_or(1);
    format!("{}x{middle}x{least}", rest / middle)
}

/// A machine of table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    /// A fat tree of two levels with 16 cores per node.
    Stampede,
    /// A torus with 12 cores per node; a job has scattered nodes.
    Kraken,
    /// A box of a torus with 4 cores per node.
    Intrepid,
}

/// A job on a machine.
pub(crate) struct Job {
    /// The nodes of the job.
    pub nodes: Arc<dyn Topology>,
    /// Its cores, to which processes are mapped.
    pub cores: Arc<dyn Topology>,
    /// Cores of a node.
    pub per_node: usize,
    /// The network, as for `--network`, and the model of messages inside nodes.
    network: &'static str,
    inside: Option<(Measured, u32)>,
}

impl Site {
    /// Cores of a node.
    pub fn per_node(self) -> usize {
        match self {
            Site::Stampede => 16,
            Site::Kraken => 12,
            Site::Intrepid => 4,
        }
    }

    /// A job of `processes` processes, a multiple of the cores of a node.
    ///
    /// # Errors
    /// If the machine has fewer cores.
    pub fn job(self, processes: usize, seed: u64) -> Result<Job, Failure> {
        let per_node = self.per_node();
        let nodes = processes / per_node;
        // Other jobs have the other nodes; the list of nodes is in random order.
        let scattered = |whole: &str| -> Result<String, Failure> {
            let all = topology::parse(whole)?.pes();
            let mut list = shuffled(all, seed)?;
            list.truncate(nodes);
            let list: Vec<String> = list.iter().map(u32::to_string).collect();
            Ok(format!("{whole}[{}]", list.join(",")))
        };
        let (network, inside, of_nodes, node) = match self {
            // Leaf switches of 20 nodes; 25 % more nodes than in the job, so that jobs share switches.
            Site::Stampede => {
                let switches = (nodes + nodes / 4).div_ceil(20).max(2);
                let nodes = scattered(&format!("fattree:{switches}:20"))?;
                (FDR, Some((Measured::Stampede, 8)), nodes, "tree:2:8")
            }
            // The job has about half of the nodes.
            Site::Kraken => {
                let whole = format!("torus:{}", box_of((2 * nodes).next_power_of_two()));
                (SEASTAR, Some((Measured::Kraken, 6)), scattered(&whole)?, "tree:2:6")
            }
            Site::Intrepid => {
                let kind = if nodes < 512 { "mesh" } else { "torus" };
                (BLUEGENE_P, None, format!("{kind}:{}", box_of(nodes)), "tree:4")
            }
        };
        let cores = topology::parse(&format!("{of_nodes}*{node}"))?;
        let nodes = topology::parse(&of_nodes)?;
        Ok(Job { nodes, cores, per_node, network, inside })
    }
}

/// InfiniBand FDR: 6 GB/s and 0.4 us per link.
const FDR: &str = "packet:size=16384,bandwidth=6e9,latency=0.4e-6";

/// Cray SeaStar 2: 2 GB/s per link.
const SEASTAR: &str = "packet:size=16384,bandwidth=2e9,latency=0.3e-6";

/// Blue Gene/P: 425 MB/s per link, adaptive routing.
const BLUEGENE_P: &str = "packet:size=16384,bandwidth=425e6,latency=0.1e-6,routing=adaptive";

/// The number of exchanges; times are means per exchange.
const ITERATIONS: u64 = 5;

/// The default of a launcher: where ranks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Round-robin over the nodes; on Intrepid XYZT, as T, the core, varies slowest.
    Cyclic,
    /// Node after node.
    Blocks,
}

impl Job {
    /// The core of every process by default.
    pub fn default(&self, order: Order) -> Vec<u32> {
        let nodes = self.nodes.pes();
        let core = |rank: usize| match order {
            Order::Cyclic => rank % nodes * self.per_node + rank / nodes,
            Order::Blocks => rank,
        };
        (0..nodes * self.per_node).map(|rank| core(rank) as u32).collect()
    }

    /// Hop-bytes between nodes; a message inside a node has no hop (section 2.1).
    pub fn hop_bytes(&self, tasks: &Database, placement: &[u32]) -> u64 {
        let node = |task: u32| placement[task as usize] as usize / self.per_node;
        let traffic = Traffic::directed(tasks);
        let cost = |message: &models::exchange::Halo| {
            message.bytes * u64::from(self.nodes.distance(node(message.from), node(message.to)))
        };
        traffic.messages.iter().map(cost).sum()
    }

    /// The seconds of an exchange: post receives, post sends, wait for all (section 5.1.2).
    ///
    /// # Errors
    /// If the network model does not support the machine.
    pub fn seconds(&self, tasks: &Database, placement: &[u32]) -> Result<f64, Failure> {
        self.exchange(tasks, placement, &mut *self.network()?)
    }

    /// The same if all cores of a node were in one socket, a lower bound for mapping inside nodes; none for nodes
    /// without sockets.
    ///
    /// # Errors
    /// As [`Self::seconds`].
    pub fn seconds_in_one_socket(&self, tasks: &Database, placement: &[u32]) -> Result<Option<f64>, Failure> {
        let Some((measured, _)) = self.inside else { return Ok(None) };
        let cores = self.per_node as u32;
        let mut network = OfNodes::new(self.between_nodes()?, measured, cores, cores);
        self.exchange(tasks, placement, &mut network).map(Some)
    }

    /// The placement with the same processes on every node, divided between its two sockets by [`best_division`]; none
    /// for nodes without sockets.
    pub fn divided(&self, tasks: &Database, placement: &[u32]) -> Option<Vec<u32>> {
        let (measured, per_socket) = self.inside?;
        let node = |process: u32| placement[process as usize] as usize / self.per_node;
        // By node: its processes, and the messages between them, with positions in the list of processes.
        let mut members = vec![Vec::new(); self.nodes.pes()];
        let mut position = vec![0; placement.len()];
        for process in 0..placement.len() as u32 {
            position[process as usize] = members[node(process)].len();
            members[node(process)].push(process);
        }
        let mut messages = vec![Vec::new(); members.len()];
        for message in Traffic::directed(tasks).messages {
            if node(message.from) == node(message.to) {
                let [from, to] = [message.from, message.to].map(|process| position[process as usize]);
                messages[node(message.from)].push((from, to, message.bytes));
            }
        }
        let mut divided = placement.to_vec();
        for (number, (members, messages)) in members.iter().zip(&messages).enumerate() {
            let first = best_division(measured, members.len(), messages);
            let mut next = [number * self.per_node, number * self.per_node + per_socket as usize];
            for (at, &process) in members.iter().enumerate() {
                let socket = if first >> at & 1 == 1 { 0 } else { 1 };
                divided[process as usize] = next[socket] as u32;
                next[socket] += 1;
            }
        }
        Some(divided)
    }

    /// The parameter `far` of `HierTopoMap` for the nodes; none for nodes without sockets.
    pub fn far(&self) -> Option<String> {
        self.inside.map(|(measured, _)| measured.far())
    }

    /// The network, without messages.
    ///
    /// # Errors
    /// If the network model does not support the machine.
    pub fn network(&self) -> Result<Box<dyn Network>, Failure> {
        let network = self.between_nodes()?;
        Ok(match self.inside {
            Some((measured, per_socket)) => {
                Box::new(OfNodes::new(network, measured, self.per_node as u32, per_socket))
            }
            None => network,
        })
    }

    fn between_nodes(&self) -> Result<Box<dyn Network>, Failure> {
        Ok(models::parse(self.network)?.on(&self.cores)?)
    }

    fn exchange(
        &self,
        tasks: &Database,
        placement: &[u32],
        network: &mut dyn Network,
    ) -> Result<f64, Failure> {
        let exchange = Exchange { iterations: ITERATIONS, extrapolates: true, ..Exchange::default() };
        Ok(exchange.run(&Traffic::directed(tasks), placement, network).seconds_per_iteration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_near_cubes() {
        for (processes, expected) in
            [(64, "4x4x4"), (96, "6x4x4"), (32, "4x4x2"), (7, "7x1x1"), (1536, "16x12x8")]
        {
            assert_eq!(box_of(processes), expected);
        }
    }

    #[test]
    fn jobs_have_a_core_for_every_process_and_defaults_are_permutations() {
        for (site, processes) in [(Site::Stampede, 64), (Site::Kraken, 96), (Site::Intrepid, 256)] {
            let job = site.job(processes, 3).expect("a job");
            assert_eq!((job.cores.pes(), job.nodes.pes()), (processes, processes / site.per_node()));
            for order in [Order::Cyclic, Order::Blocks] {
                let mut all = job.default(order);
                all.sort_unstable();
                assert_eq!(all, (0..processes as u32).collect::<Vec<_>>());
            }
        }
        let intrepid = Site::Intrepid.job(256, 0).expect("a job");
        // Rank 1 is on the next node, rank 64 on the first again.
        assert_eq!(intrepid.default(Order::Cyclic)[1..3], [4, 8]);
        assert_eq!(intrepid.default(Order::Cyclic)[64], 1);
    }

    #[test]
    fn generated_matrices_have_the_stated_numbers_of_rows() {
        for program in PROGRAMS {
            // The large ones take gigabytes.
            if let Workload::Matrix { small: (spec, rows), .. } = program.workload
                && spec.starts_with("fem")
            {
                let objects = workloads::load(spec).expect("a matrix").objects.len();
                assert_eq!(objects as f64, rows, "{spec}");
            }
        }
    }

    #[test]
    fn messages_inside_a_node_have_no_hop() {
        let job = Site::Intrepid.job(64, 0).expect("a job");
        let tasks = workloads::load("ring:64,bytes=3").expect("a ring").remap(64);
        // In blocks, 2 messages of 3 bytes travel between each pair of consecutive nodes.
        let blocks: Vec<u32> = (0..64).collect();
        let distance: u32 = (0..16).map(|node| job.nodes.distance(node, (node + 1) % 16)).sum();
        assert_eq!(job.hop_bytes(&tasks, &blocks), 2 * 3 * u64::from(distance));
    }
}

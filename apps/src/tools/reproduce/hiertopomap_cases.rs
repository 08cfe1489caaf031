//! The programs and machines of the HierTopoMap paper.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, tables 1 and 2. The matrices are generated (`kkt:`, `fem:` of `--graph help`), smaller than those of the
//! paper, unless `--data` names a folder that has them; what processes send is scaled by the surface of their
//! parts, as the matrices' sizes to the power of 2/3. METIS numbers parts so that neighbors have close numbers; figure 9
//! shows no such order, so the parts of matrices are numbered anew, at random.

use std::sync::Arc;

use anyhow::Context as _;
use equipoise_strategies::network::exchange::{Exchange, Traffic};
use equipoise_strategies::network::{self, Network};
use equipoise_strategies::{Database, Topology, graph, topology};

use super::figure::Options;
use super::hiertopomap_node::{Measured, OfNodes, best_division};
use super::topolb_network::{renumbered, shuffled};

/// A program of table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Program {
    /// Its name there.
    pub name: &'static str,
    workload: Workload,
}

/// What the processes of a program exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Workload {
    /// Messages of 16 kB between neighbors in three dimensions.
    Stencil,
    /// The entries of a vector that a generated matrix is multiplied by; the matrix, a smaller one, and how many
    /// rows the one of the paper has.
    Matrix { spec: &'static str, small: &'static str, rows: f64 },
    /// The faces of cells of an adaptive mesh.
    Octree,
}

/// The programs of table 2.
pub(super) const PROGRAMS: [Program; 5] = [
    Program { name: "3D stencil", workload: Workload::Stencil },
    Program {
        name: "F1",
        workload: Workload::Matrix { spec: "fem:44x12x12", small: "fem:16x5x5", rows: 343_791.0 },
    },
    Program {
        name: "audikw_1",
        workload: Workload::Matrix { spec: "fem:36x18x18", small: "fem:12x8x8", rows: 943_695.0 },
    },
    Program {
        name: "nlpkkt120",
        workload: Workload::Matrix { spec: "kkt:30", small: "kkt:10", rows: 3_542_400.0 },
    },
    Program { name: "ART", workload: Workload::Octree },
];

impl Program {
    /// What so many processes exchange, as directed edges; processes are PEs. The parts of a matrix are numbered at
    /// random.
    ///
    /// # Errors
    /// As [`Self::in_order`].
    pub fn tasks(&self, processes: usize, options: &Options) -> anyhow::Result<Database> {
        self.numbered(&self.in_order(processes, options)?, options.seed)
    }

    /// What [`Self::in_order`] gives, with the parts of a matrix numbered at random.
    ///
    /// # Errors
    /// When there are too many processes.
    pub fn numbered(&self, tasks: &Database, seed: u64) -> anyhow::Result<Database> {
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

    /// The same as [`Self::tasks`], with the parts of a matrix numbered as METIS does.
    ///
    /// # Errors
    /// When the matrix of a folder cannot be read.
    pub fn in_order(&self, processes: usize, options: &Options) -> anyhow::Result<Database> {
        let spec = match self.workload {
            Workload::Stencil => format!("mesh:{},bytes=16384", box_of(processes)),
            Workload::Octree if options.small => format!("octree:{processes},level=4,bytes=2048"),
            Workload::Octree => format!("octree:{processes},level=5,bytes=512"),
            Workload::Matrix { spec, small, rows } => {
                let file = options.data.as_ref().map(|folder| folder.join(format!("{}.mtx", self.name)));
                if let Some(file) = file.filter(|file| file.exists()) {
                    return load(&format!("spmv:{processes},{}", file.display()), processes);
                }
                let matrix = if options.small { small } else { spec };
                let mut tasks = load(&format!("spmv:{processes},{matrix}"), processes)?;
                let scale = (rows / rows_of(matrix)?).powf(2.0 / 3.0);
                // Entries of the vector stay whole.
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

fn load(spec: &str, processes: usize) -> anyhow::Result<Database> {
    Ok(graph::load(spec)?.remap(processes as u32))
}

/// The rows of a generated matrix.
fn rows_of(spec: &str) -> anyhow::Result<f64> {
    Ok(graph::load(spec)?.objects.len() as f64)
}

/// The sizes of a box of so many processes, as near to a cube as can be, the longest first.
pub(super) fn box_of(processes: usize) -> String {
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
pub(super) enum Site {
    /// A fat tree of two levels with 16 cores a node.
    Stampede,
    /// A torus of which a job has scattered nodes, with 12 cores each.
    Kraken,
    /// A box of a torus with 4 cores a node.
    Intrepid,
}

/// A job on a machine.
pub(super) struct Job {
    /// The nodes of the job.
    pub nodes: Arc<dyn Topology>,
    /// Its cores: what processes are mapped to.
    pub cores: Arc<dyn Topology>,
    /// Cores of a node.
    pub per_node: usize,
    /// By process: where it is without any mapping.
    pub default: Vec<u32>,
    /// The network, as `--network` takes it, and what the inside of nodes takes.
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

    /// A job of so many processes, whose number is a multiple of the cores of a node.
    ///
    /// # Errors
    /// When there are more than the machine has here.
    pub fn job(self, processes: usize, seed: u64) -> anyhow::Result<Job> {
        let per_node = self.per_node();
        let nodes = processes / per_node;
        let default = (0..processes as u32).collect::<Vec<u32>>();
        // Somebody else has the other nodes, and the list of ours is in no order.
        let scattered = |whole: &str| -> anyhow::Result<String> {
            let all = topology::parse(whole)?.pes();
            let mut list = shuffled(all, seed)?;
            list.truncate(nodes);
            let list: Vec<String> = list.iter().map(u32::to_string).collect();
            Ok(format!("{whole}[{}]", list.join(",")))
        };
        let (network, inside, of_nodes, node, default) = match self {
            // Leaf switches of 20 nodes; a quarter more nodes than the job has, so that switches are shared.
            Site::Stampede => {
                let switches = (nodes + nodes / 4).div_ceil(20).max(2);
                let nodes = scattered(&format!("fattree:{switches}:20"))?;
                (FDR, Some((Measured::Stampede, 8)), nodes, "tree:2:8", default)
            }
            // About half of the nodes around are ours.
            Site::Kraken => {
                let whole = format!("torus:{}", box_of((2 * nodes).next_power_of_two()));
                (SEASTAR, Some((Measured::Kraken, 6)), scattered(&whole)?, "tree:2:6", default)
            }
            // Of its default order, XYZT, the last letter is the core.
            Site::Intrepid => {
                let kind = if nodes < 512 { "mesh" } else { "torus" };
                let place = |rank: usize| (rank % nodes * per_node + rank / nodes) as u32;
                let default = (0..processes).map(place).collect();
                (BLUEGENE_P, None, format!("{kind}:{}", box_of(nodes)), "tree:4", default)
            }
        };
        let cores = topology::parse(&format!("{of_nodes}*{node}"))?;
        let nodes = topology::parse(&of_nodes)?;
        Ok(Job { nodes, cores, per_node, default, network, inside })
    }
}

/// InfiniBand FDR: 6 GB/s a link, half a microsecond each.
const FDR: &str = "packet:size=16384,bandwidth=6e9,latency=0.4e-6";

/// Cray's SeaStar 2: 2 GB/s a link.
const SEASTAR: &str = "packet:size=16384,bandwidth=2e9,latency=0.3e-6";

/// Blue Gene/P: 425 MB/s a link, which choose their way as they go.
const BLUEGENE_P: &str = "packet:size=16384,bandwidth=425e6,latency=0.1e-6,routing=adaptive";

/// How often messages are exchanged; the time is that of one exchange in the mean.
const ITERATIONS: u64 = 5;

impl Job {
    /// Hop-bytes between nodes: inside a node a byte goes no hop (section 2.1).
    pub fn hop_bytes(&self, tasks: &Database, placement: &[u32]) -> u64 {
        let node = |task: u32| placement[task as usize] as usize / self.per_node;
        let traffic = Traffic::directed(tasks);
        let cost = |message: &network::exchange::Halo| {
            message.bytes * u64::from(self.nodes.distance(node(message.from), node(message.to)))
        };
        traffic.messages.iter().map(cost).sum()
    }

    /// The seconds of an exchange: receives posted, sends posted, all waited for (section 5.1.2).
    ///
    /// # Errors
    /// When the network cannot serve the machine.
    pub fn seconds(&self, tasks: &Database, placement: &[u32]) -> anyhow::Result<f64> {
        self.exchange(tasks, placement, &mut *self.network()?)
    }

    /// The same if all cores of a node were in one socket: what is left if mapping inside the nodes could save all that
    /// it can, none where nothing is known of nodes.
    ///
    /// # Errors
    /// As [`Self::seconds`].
    pub fn seconds_in_one_socket(&self, tasks: &Database, placement: &[u32]) -> anyhow::Result<Option<f64>> {
        let Some((measured, _)) = self.inside else { return Ok(None) };
        let cores = self.per_node as u32;
        let mut network = OfNodes::new(self.between_nodes()?, measured, cores, cores);
        self.exchange(tasks, placement, &mut network).map(Some)
    }

    /// The placement with the same processes on every node, divided between its two sockets as
    /// [`best_division`] says; none where nodes have no sockets.
    pub fn divided(&self, tasks: &Database, placement: &[u32]) -> Option<Vec<u32>> {
        let (measured, per_socket) = self.inside?;
        let node = |process: u32| placement[process as usize] as usize / self.per_node;
        // By node: its processes, and what these send each other, as positions among them.
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

    /// The network with nothing under way.
    ///
    /// # Errors
    /// When it cannot serve the machine.
    pub fn network(&self) -> anyhow::Result<Box<dyn Network>> {
        let network = self.between_nodes()?;
        Ok(match self.inside {
            Some((measured, per_socket)) => {
                Box::new(OfNodes::new(network, measured, self.per_node as u32, per_socket))
            }
            None => network,
        })
    }

    fn between_nodes(&self) -> anyhow::Result<Box<dyn Network>> {
        network::parse(self.network)?.on(&self.cores).context("the network of a figure")
    }

    fn exchange(
        &self,
        tasks: &Database,
        placement: &[u32],
        network: &mut dyn Network,
    ) -> anyhow::Result<f64> {
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
            let mut all = job.default.clone();
            all.sort_unstable();
            assert_eq!(all, (0..processes as u32).collect::<Vec<_>>());
        }
        let intrepid = Site::Intrepid.job(256, 0).expect("a job");
        // Rank 1 is on the next node, rank 64 on the first again.
        assert_eq!(intrepid.default[1..3], [4, 8]);
        assert_eq!(intrepid.default[64], 1);
    }

    #[test]
    fn what_stays_in_a_node_goes_no_hop() {
        let job = Site::Intrepid.job(64, 0).expect("a job");
        let tasks = graph::load("ring:64,bytes=3").expect("a ring").remap(64);
        // In blocks 4 of 64 steps leave each node; the 4x2x2 mesh has 15 nodes after the first.
        let blocks: Vec<u32> = (0..64).collect();
        let distance: u32 = (0..16).map(|node| job.nodes.distance(node, (node + 1) % 16)).sum();
        assert_eq!(job.hop_bytes(&tasks, &blocks), 2 * 3 * u64::from(distance));
    }
}

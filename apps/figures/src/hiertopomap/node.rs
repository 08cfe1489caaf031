//! The times of messages inside a node, from table 4 of the HierTopoMap paper, and a network of such nodes.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, table 4: the mean times of PingPing (two processes send each other a message at the same time) on two
//! cores of a socket, and on cores of the two sockets of a node, of Stampede and of Kraken. Between the sizes in the
//! table, times are interpolated over the logarithm of the size; beyond the last size they grow in proportion. On
//! Kraken the library changes its protocol between 64 and 128 kB, and times fall.
//!
//! A core copies messages inside its node in sequence. A message to another node enters the network when all messages
//! posted earlier are copied, as in a library that copies inside `MPI_Isend`.

use equipoise_network::models::{Arrival, Events, Message, Network, Wires};

/// Bytes, and microseconds on Stampede inside a socket and between sockets, and on Kraken.
pub(crate) const TABLE_4: [(u64, f64, f64, f64, f64); 20] = [
    (0, 0.51, 0.69, 0.56, 0.81),
    (1, 0.53, 0.73, 0.58, 0.74),
    (2, 0.52, 0.73, 0.59, 0.74),
    (4, 0.52, 0.73, 0.60, 0.75),
    (8, 0.52, 0.71, 0.62, 0.74),
    (16, 0.52, 0.75, 0.61, 0.75),
    (32, 0.53, 0.77, 0.64, 0.83),
    (64, 0.54, 0.79, 0.65, 0.84),
    (128, 0.55, 0.86, 1.09, 1.31),
    (256, 0.59, 1.03, 1.16, 1.39),
    (512, 0.64, 1.15, 1.37, 1.64),
    (1024, 0.73, 1.34, 1.75, 2.08),
    (2048, 0.92, 1.68, 2.57, 3.02),
    (4096, 1.31, 2.27, 4.39, 5.17),
    (8192, 3.13, 3.87, 7.30, 8.87),
    (16384, 3.88, 4.61, 14.64, 16.95),
    (32768, 5.10, 5.89, 27.86, 32.63),
    (65536, 7.67, 8.50, 53.92, 64.14),
    (131072, 13.68, 14.62, 36.74, 38.11),
    (262144, 28.47, 29.27, 71.09, 71.76),
];

/// A machine with nodes of table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measured {
    /// Two sockets of eight cores.
    Stampede,
    /// Two sockets of six cores.
    Kraken,
}

impl Measured {
    /// The microseconds of a row of the table inside a socket, and between sockets.
    pub fn of(self, (_, intra, inter, kraken_intra, kraken_inter): (u64, f64, f64, f64, f64)) -> (f64, f64) {
        match self {
            Measured::Stampede => (intra, inter),
            Measured::Kraken => (kraken_intra, kraken_inter),
        }
    }

    /// The parameter `far` of `HierTopoMap`: how many nanoseconds longer a message takes between sockets, by its bytes.
    pub fn far(self) -> String {
        let point = |&row: &(u64, f64, f64, f64, f64)| {
            let (intra, inter) = self.of(row);
            format!("{}/{:.0}", row.0, 1e3 * (inter - intra))
        };
        format!("far={}", TABLE_4.iter().map(point).collect::<Vec<_>>().join(":"))
    }

    /// The seconds of a message between two cores of a node.
    pub fn seconds(self, bytes: u64, same_socket: bool) -> f64 {
        let row = |row: (u64, f64, f64, f64, f64)| {
            let (intra, inter) = self.of(row);
            (row.0 as f64, if same_socket { intra } else { inter })
        };
        let after = TABLE_4.partition_point(|row| row.0 < bytes);
        let Some(&above) = TABLE_4.get(after) else {
            let (last, microseconds) = row(TABLE_4[TABLE_4.len() - 1]);
            return 1e-6 * microseconds * bytes as f64 / last;
        };
        let (high, at_high) = row(above);
        if above.0 == bytes || after == 0 {
            return 1e-6 * at_high;
        }
        let (low, at_low) = row(TABLE_4[after - 1]);
        // No size is between 0 and 1, so both logarithms are finite.
        let part = (bytes as f64 / low).ln() / (high / low).ln();
        1e-6 * (at_low + part * (at_high - at_low))
    }
}

/// The best set of processes for the first socket of a node, as bits. Of all divisions into two equal sockets, the best
/// minimises the copy time of the busiest core. `messages` are between the processes: sender, receiver, bytes.
/// O(2^processes), for at most 30 processes.
pub(crate) fn best_division(measured: Measured, processes: usize, messages: &[(usize, usize, u64)]) -> u32 {
    // By sender: its time with all processes in one socket, and the additional time for receivers in the other socket.
    let mut inside = vec![0.0; processes];
    let mut beyond = vec![Vec::new(); processes];
    for &(from, to, bytes) in messages {
        let near = measured.seconds(bytes, true);
        inside[from] += near;
        beyond[from].push((to, measured.seconds(bytes, false) - near));
    }
    let busiest = |first: u32| {
        let side = |process: usize| first >> process & 1;
        let seconds = |process: usize| {
            let far = beyond[process].iter().filter(|(to, _)| side(*to) != side(process));
            inside[process] + far.map(|(_, more)| more).sum::<f64>()
        };
        (0..processes).map(seconds).fold(0.0, f64::max)
    };
    // The last process is never in the first socket: the other divisions mirror these.
    let half = processes as u32 / 2;
    let divisions = (0..1u32 << (processes - 1)).filter(|first| first.count_ones() == half);
    let best = divisions.map(|first| (busiest(first), first)).min_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or(0, |best| best.1)
}

/// A network of nodes; messages inside a node take the times of the table.
pub(crate) struct OfNodes {
    network: Box<dyn Network>,
    measured: Measured,
    /// Cores of a node and of a socket; PE `i` is core `i % cores` of node `i / cores`.
    cores: u32,
    per_socket: u32,
    /// By PE: the time when all its messages are copied.
    free_seconds: Vec<f64>,
    /// The tokens of messages that are being copied.
    copying: Events<u64>,
    /// Messages that enter the network when their core has copied the earlier ones.
    held: Events<Message>,
}

impl OfNodes {
    /// The same network with nodes of `cores` cores and sockets of `per_socket` cores.
    pub fn new(network: Box<dyn Network>, measured: Measured, cores: u32, per_socket: u32) -> Self {
        let free_seconds = vec![0.0; network.wires().machine().pes()];
        OfNodes {
            network,
            measured,
            cores,
            per_socket,
            free_seconds,
            copying: Events::new(),
            held: Events::new(),
        }
    }
}

impl Network for OfNodes {
    fn send(&mut self, now: f64, message: Message) {
        let Message { token, from, to, bytes } = message;
        let free = &mut self.free_seconds[from as usize];
        if from == to {
            return self.network.send(now, message);
        }
        if from / self.cores == to / self.cores {
            let same_socket = from / self.per_socket == to / self.per_socket;
            *free = free.max(now) + self.measured.seconds(bytes, same_socket);
            self.copying.add(*free, token);
        } else if *free > now {
            self.held.add(*free, message);
        } else {
            self.network.send(now, message);
        }
    }

    fn next_event(&mut self) -> Option<f64> {
        let next = [self.copying.next(), self.held.next(), self.network.next_event()];
        next.into_iter().flatten().reduce(f64::min)
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while let Some(next) = self.next_event().filter(|&next| next <= until) {
            self.network.advance(next, arrivals);
            while let Some((seconds, token)) = self.copying.pop(next) {
                arrivals.push(Arrival { token, seconds });
            }
            while let Some((seconds, message)) = self.held.pop(next) {
                self.network.send(seconds, message);
            }
        }
    }

    fn wires(&self) -> &Wires {
        self.network.wires()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use equipoise_model::topology;
    use equipoise_network::models;

    use super::*;

    #[test]
    fn the_table_is_that_of_the_reference() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../../shared/reference/simgrid/paper001_table4_pingping.csv"
        );
        let Ok(text) = fs::read_to_string(path) else {
            equipoise_model::testing::skip(&format!("there is no {path}"));
            return;
        };
        let numbers = |line: &str| {
            line.split(',').map(|cell| cell.trim_end_matches('%').parse().expect(line)).collect::<Vec<f64>>()
        };
        let rows: Vec<Vec<f64>> = text.lines().skip(1).map(numbers).collect();
        assert_eq!(rows.len(), TABLE_4.len());
        for (row, (bytes, a, b, c, d)) in rows.iter().zip(TABLE_4) {
            assert_eq!([row[0], row[2], row[3], row[5], row[6]], [bytes as f64, a, b, c, d]);
        }
    }

    #[test]
    fn between_two_sizes_times_follow_the_logarithm() {
        let microseconds = |bytes| 1e6 * Measured::Stampede.seconds(bytes, true);
        assert_eq!((microseconds(0), microseconds(4096)), (0.51, 1.31));
        let between = microseconds(5793);
        assert!((between - (1.31 + 3.13) / 2.0).abs() < 1e-3, "{between}: sqrt(2) times 4096 is half way");
        assert!((microseconds(524_288) - 56.94).abs() < 1e-9);
    }

    #[test]
    fn the_best_division_keeps_the_busiest_core_from_the_other_socket() {
        // Process 0 sends much to 2 and little to 1 and 3; only the small messages cross sockets if 1 and 3 are in the
        // other socket.
        let messages = [(0, 2, 4096), (2, 0, 4096), (0, 1, 8), (0, 3, 8), (1, 3, 4096), (3, 1, 4096)];
        assert_eq!(best_division(Measured::Kraken, 4, &messages), 0b0101);
    }

    #[test]
    fn a_core_copies_messages_in_sequence() {
        let machine = topology::parse("flat:2*tree:2:2").expect("a machine");
        let inner = models::parse("ideal:latency=1").expect("a network").on(&machine).expect("it serves all");
        let mut network = OfNodes::new(inner, Measured::Kraken, 4, 2);
        for (token, to) in [(0, 1), (1, 2), (2, 4), (3, 0)] {
            network.send(0.0, Message { token, from: 0, to, bytes: 1024 });
        }
        network.send(0.0, Message { token: 4, from: 1, to: 0, bytes: 1024 });
        let mut arrivals = Vec::new();
        while let Some(next) = network.next_event() {
            network.advance(next, &mut arrivals);
        }
        let at = |token| arrivals.iter().find(|arrival| arrival.token == token).expect("it arrives").seconds;
        assert_eq!(at(3), 0.0);
        assert!((at(0) - 1.75e-6).abs() < 1e-12 && (at(4) - 1.75e-6).abs() < 1e-12);
        assert!((at(1) - 3.83e-6).abs() < 1e-12, "{}", at(1));
        // The message enters the network when both earlier messages are copied.
        assert!(at(2) > 1.0 + 3.83e-6 && at(2) < 1.0 + 10e-6, "{}", at(2));
    }
}

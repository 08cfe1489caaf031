//! The links of a machine as arrays, for fast access by the network models.

use std::sync::Arc;

use equipoise_model::{Topology, memory};

use super::NetworkError;

/// The maximum number of links of a machine.
const MAX_SIMULATED_LINKS: usize = 1 << 26;

/// The links of a machine: bandwidths, latencies, and the bytes sent over each link.
pub struct Wires {
    machine: Arc<dyn Topology>,
    /// By link: bytes per second.
    pub bandwidth: Vec<f64>,
    /// By link: the latency in seconds.
    pub latency_seconds: Vec<f64>,
    /// By link: the bytes of the messages sent over it.
    pub bytes: Vec<u64>,
}

impl Wires {
    /// The links of `machine`. If given, `bandwidth` and `latency_seconds` replace the values of all links.
    ///
    /// # Errors
    /// If there are too many links to simulate.
    pub fn new(
        machine: &Arc<dyn Topology>,
        bandwidth: Option<f64>,
        latency_seconds: Option<f64>,
    ) -> Result<Self, NetworkError> {
        let count = machine.links();
        if count > MAX_SIMULATED_LINKS {
            let spec = machine.spec();
            let refusal = format!(
                "`{spec}` has {count} links, and at most {MAX_SIMULATED_LINKS} can be simulated; choose a smaller machine"
            );
            return Err(NetworkError(refusal));
        }
        // Bandwidth, latency and bytes here, and as much in the model of the network.
        let what = format!("the simulation of {count} links");
        memory::check(48 * count as u64, &what, "choose a smaller machine").map_err(NetworkError)?;
        let mut wires = Wires {
            machine: Arc::clone(machine),
            bandwidth: Vec::with_capacity(count),
            latency_seconds: Vec::with_capacity(count),
            bytes: vec![0; count],
        };
        for id in 0..count {
            // `link` allocates the name of the link, so it is called only once per link.
            let link = machine.link(id);
            wires.bandwidth.push(bandwidth.unwrap_or(link.bandwidth));
            wires.latency_seconds.push(latency_seconds.unwrap_or(link.latency_seconds));
        }
        Ok(wires)
    }

    /// The machine of the links.
    pub fn machine(&self) -> &dyn Topology {
        &*self.machine
    }

    /// The link with the largest bytes / bandwidth (the lowest number among equals), and this quotient in seconds;
    /// `None` if no link carried a byte.
    pub fn busiest(&self) -> Option<(usize, f64)> {
        let seconds =
            self.bytes.iter().zip(&self.bandwidth).map(|(&bytes, bandwidth)| bytes as f64 / bandwidth);
        let longer = |most: Option<(usize, f64)>, (link, seconds): (usize, f64)| {
            if seconds > most.map_or(0.0, |most| most.1) { Some((link, seconds)) } else { most }
        };
        seconds.enumerate().fold(None, longer)
    }

    /// Replaces `route` by the links of a message from `from` to `to`, and adds its bytes to each of them.
    pub fn route(&mut self, from: u32, to: u32, bytes: u64, route: &mut Vec<usize>) {
        route.clear();
        self.machine.route(from as usize, to as usize, route);
        for &link in route.iter() {
            self.add_bytes(link, bytes);
        }
    }

    /// Adds bytes to a link.
    pub fn add_bytes(&mut self, link: usize, bytes: u64) {
        self.bytes[link] = self.bytes[link].saturating_add(bytes);
    }
}

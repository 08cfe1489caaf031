//! The links of a machine as numbers: what every network model looks up for each message.

use std::sync::Arc;

use super::NetworkError;
use crate::Topology;

/// The most links of a machine that can be simulated.
const MAX_SIMULATED_LINKS: usize = 1 << 26;

/// The links of a machine, with what was said of all of them in place of what the machine says.
pub struct Wires {
    machine: Arc<dyn Topology>,
    /// Bytes per second of each link.
    pub bandwidth: Vec<f64>,
    /// Seconds a first byte takes on each link.
    pub latency_seconds: Vec<f64>,
    /// Bytes of the messages sent over each link.
    pub bytes: Vec<u64>,
}

impl Wires {
    /// The links of `machine`; `bandwidth` and `latency_seconds` replace those of every link where given.
    ///
    /// # Errors
    /// If there are more links than can be simulated.
    pub fn new(
        machine: &Arc<dyn Topology>,
        bandwidth: Option<f64>,
        latency_seconds: Option<f64>,
    ) -> Result<Self, NetworkError> {
        let count = machine.links();
        if count > MAX_SIMULATED_LINKS {
            let spec = machine.spec();
            let refusal =
                format!("`{spec}` has {count} links, and at most {MAX_SIMULATED_LINKS} can be simulated");
            return Err(NetworkError(refusal));
        }
        let mut wires = Wires {
            machine: Arc::clone(machine),
            bandwidth: Vec::with_capacity(count),
            latency_seconds: Vec::with_capacity(count),
            bytes: vec![0; count],
        };
        for id in 0..count {
            // A link makes its name when it is asked for, so it is not asked for twice.
            let link = machine.link(id);
            wires.bandwidth.push(bandwidth.unwrap_or(link.bandwidth));
            wires.latency_seconds.push(latency_seconds.unwrap_or(link.latency_seconds));
        }
        Ok(wires)
    }

    /// The machine they are the links of.
    pub fn machine(&self) -> &dyn Topology {
        &*self.machine
    }

    /// The link that is the longest at its bytes (the lowest of several), and bytes / bandwidth in
    /// seconds; none if no link carried any.
    pub fn busiest(&self) -> Option<(usize, f64)> {
        let seconds =
            self.bytes.iter().zip(&self.bandwidth).map(|(&bytes, bandwidth)| bytes as f64 / bandwidth);
        let longer = |most: Option<(usize, f64)>, (link, seconds): (usize, f64)| {
            if seconds > most.map_or(0.0, |most| most.1) { Some((link, seconds)) } else { most }
        };
        seconds.enumerate().fold(None, longer)
    }

    /// Replaces `route` by the links a message from `from` to `to` crosses, and books its bytes on each.
    pub fn route(&mut self, from: u32, to: u32, bytes: u64, route: &mut Vec<usize>) {
        route.clear();
        self.machine.route(from as usize, to as usize, route);
        for &link in route.iter() {
            self.book(link, bytes);
        }
    }

    /// Books bytes on a link that were not routed here.
    pub fn book(&mut self, link: usize, bytes: u64) {
        self.bytes[link] = self.bytes[link].saturating_add(bytes);
    }
}

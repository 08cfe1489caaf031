//! A network without contention: every message has the latency of a message alone.
//!
//! T = latency + sum of the latencies of its links + bytes / bandwidth, with the smallest bandwidth on its
//! route (the LogGP family's L, hops and G; Alexandrov et al. 1995, without its overheads).

use std::sync::Arc;

use equipoise_model::Topology;
use equipoise_model::costs::LinkLimits;
use equipoise_model::params::Param;

use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires};

/// A network without contention.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// Seconds per message, independent of its route.
    pub latency_seconds: f64,
    /// Seconds per link of the route; `None` for the latencies of the machine.
    pub hop_seconds: Option<f64>,
    /// Bytes per second of every link; `None` for the bandwidths of the machine.
    pub bandwidth: Option<f64>,
}

pub(super) const KIND: Kind = Kind {
    name: "ideal",
    form: "",
    help: "No contention: latency + hops + bytes / bandwidth per message. The fastest model; use it if the \
           network does not matter.",
    params: &[
        Param { key: "latency", default: "0", help: "seconds per message, independent of its route" },
        Param {
            key: "hop",
            default: "machine",
            help: "seconds per link, or `machine`: the latency of each link",
        },
        Param {
            key: "bandwidth",
            default: "machine",
            help: "bytes per second of a link, or `machine`: the minimum on the route",
        },
    ],
    item: |params| {
        Ok(Box::new(Ideal {
            latency_seconds: params.take_seconds("latency")?,
            hop_seconds: params.take_seconds_or("hop", "machine")?,
            bandwidth: params.take_positive("bandwidth", "machine")?,
        }))
    },
};

impl Model for Ideal {
    fn limits(&self) -> Option<LinkLimits> {
        None
    }

    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        let wires = Wires::new(machine, self.bandwidth, self.hop_seconds)?;
        Ok(Box::new(IdealNetwork {
            latency_seconds: self.latency_seconds,
            wires,
            arriving: Events::new(),
            route: Vec::new(),
        }))
    }
}

/// A network whose messages do not share bandwidth.
struct IdealNetwork {
    latency_seconds: f64,
    wires: Wires,
    /// The tokens of the messages in flight.
    arriving: Events<u64>,
    route: Vec<usize>,
}

impl Network for IdealNetwork {
    fn send(&mut self, now: f64, Message { token, from, to, bytes }: Message) {
        self.wires.route(from, to, bytes, &mut self.route);
        let mut arrival = now;
        if !self.route.is_empty() {
            let mut bandwidth = f64::INFINITY;
            arrival += self.latency_seconds;
            for &link in &self.route {
                arrival += self.wires.latency_seconds[link];
                bandwidth = bandwidth.min(self.wires.bandwidth[link]);
            }
            arrival += bytes as f64 / bandwidth;
        }
        self.arriving.add(arrival, token);
    }

    fn next_event(&mut self) -> Option<f64> {
        self.arriving.next()
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while let Some((seconds, token)) = self.arriving.pop(until) {
            arrivals.push(Arrival { token, seconds });
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::topology;

    use super::*;
    use crate::models::parse;

    /// The arrival time of a message of `bytes` from PE 0 to `to` on the network `spec`, while others are in flight.
    fn arrival(spec: &str, to: u32, bytes: u64) -> f64 {
        let machine = topology::parse("mesh:4x4").expect("a machine");
        let mut network =
            parse(spec).expect("a network").on(&machine).expect("the model supports this machine");
        for other in 0..10 {
            network.send(0.0, Message { token: other, from: 0, to: 15, bytes: 1 << 30 });
        }
        network.send(0.0, Message { token: 99, from: 0, to, bytes });
        let mut arrivals = Vec::new();
        while let Some(next) = network.next_event() {
            network.advance(next, &mut arrivals);
        }
        assert_eq!(arrivals.len(), 11);
        assert_eq!(
            network.wires().bytes.iter().map(|&bytes| u128::from(bytes)).sum::<u128>() % (1 << 30),
            u128::from(bytes) * u128::from(to / 4 + to % 4)
        );
        arrivals.iter().find(|arrival| arrival.token == 99).expect("it arrives").seconds
    }

    #[test]
    fn other_messages_do_not_delay_a_message() {
        let spec = "ideal:latency=0.5,hop=0.25,bandwidth=100";
        assert_eq!(arrival(spec, 15, 200), 0.5 + 6.0 * 0.25 + 2.0);
        assert_eq!(arrival(spec, 1, 0), 0.75);
        assert_eq!(arrival(spec, 0, 1000), 0.0);
    }
}

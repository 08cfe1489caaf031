//! Virtual cut-through: messages go in packets, and one that has to wait does so in a node, off the links.
//!
//! P. Kermani, L. Kleinrock ("Virtual cut-through: a new computer communication switching technique", 1979).
//! A message is cut into packets of `size` bytes, the last one smaller; of one that would be more than 2^16
//! packets, these are as much larger as it takes. When the header of a packet is at a
//! node, the packet queues for the next link, first come first served; buffers hold any number. With f the
//! time at which the link has sent the packet before, b and l its bandwidth and latency, and h and t the
//! times at which header and tail of the packet are here, it is on the link
//!
//! from s = max(h, f) to e = max(s + bytes / b, t),
//!
//! for the tail cannot leave before it is here; header and tail are at the next node at s + l and e + l. So
//! alone, a message over links with latencies `l_i` and bandwidths `b_i` takes as long as in
//! [`Ideal`](super::Ideal):
//!
//! T = sum `l_i` + bytes / min `b_i`.
//!
//! With `routing=fixed` packets take the machine's route; with `adaptive`, at each node the link that is
//! free first, of all that are on a shortest way, and among equals the first that
//! [`Topology::onward`] names (minimal adaptive routing, as the torus of Blue Gene/L: N. R. Adiga et al.,
//! 2005). A limit to what a PE sends (`injection`) or receives (`ejection`) is one more link of that bandwidth
//! and no latency, out of each PE or into it.

use std::str::FromStr;
use std::sync::Arc;

use super::lines::Lines;
use super::{Arrival, Kind, Message, Model, Network, NetworkError, Wires, ejection};
use crate::Topology;
use crate::params::Param;

mod ways;

use ways::Ways;

/// Virtual cut-through.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Bytes of a packet, at least 1.
    pub size_bytes: u32,
    /// Which way packets take.
    pub routing: Routing,
    /// Bytes per second of every link; the machine's own if none.
    pub bandwidth: Option<f64>,
    /// Seconds a first byte takes on every link; the machine's own if none.
    pub latency_seconds: Option<f64>,
    /// Bytes per second a PE sends in all; no limit if none.
    pub injection: Option<f64>,
    /// Bytes per second a PE receives in all; no limit if none.
    pub ejection: Option<f64>,
}

/// Which way packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The route of the machine, on a grid dimension by dimension.
    Fixed,
    /// At each node the link that is free first, of those on a shortest way.
    Adaptive,
}

pub(super) const KIND: Kind = Kind {
    name: "packet",
    help: "Virtual cut-through: packets queue at links, first come first served. For contention on large \
           machines, and for adaptive routing.",
    params: &[
        Param { key: "size", default: "4096", help: "bytes of a packet (4096: the largest of InfiniBand)" },
        Param {
            key: "routing",
            default: "fixed",
            help: "`fixed`: the machine's route; `adaptive`: at each node the link of a shortest way that is \
                   free first",
        },
        Param {
            key: "bandwidth",
            default: "machine",
            help: "bytes per second of a link, or `machine`: its own",
        },
        Param { key: "latency", default: "machine", help: "seconds per link, or `machine`: its own" },
        Param { key: "injection", default: "none", help: "bytes per second a PE sends at most, or `none`" },
        Param {
            key: "ejection",
            default: "injection",
            help: "bytes per second a PE receives at most, `injection` for the same, or `none`",
        },
    ],
    make: |params| {
        let injection = params.take_positive("injection", "none")?;
        Ok(Box::new(Packet {
            size_bytes: match params.take("size")? {
                0 => return Err(params.bad("size", "0", "a packet has at least 1 byte")),
                size => size,
            },
            routing: params.take("routing")?,
            bandwidth: params.take_positive("bandwidth", "machine")?,
            latency_seconds: params.take_seconds_or("latency", "machine")?,
            injection,
            ejection: ejection(params, injection)?,
        }))
    },
};

impl FromStr for Routing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "fixed" => Ok(Routing::Fixed),
            "adaptive" => Ok(Routing::Adaptive),
            _ => Err("expected `fixed` or `adaptive`"),
        }
    }
}

impl Model for Packet {
    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        Ok(Box::new(Packets::new(self, machine)?))
    }
}

/// The most packets of a message, all of which queue for its first link when it is sent.
const MAX_PACKETS: u64 = 1 << 16;

/// Where a packet is that is not on a known way: arrived, in its PE, or past the port out of it.
const ARRIVED: u32 = u32::MAX;
const IN_PE: u32 = u32::MAX - 1;
const OUT: u32 = u32::MAX - 2;

/// A link, or the port out of or into a PE.
struct Channel {
    bandwidth: f64,
    latency_seconds: f64,
    /// Until when it is busy with those who asked for it so far.
    busy_seconds: f64,
}

/// A packet whose header is at a node, or whose tail has arrived.
#[derive(Clone, Copy)]
struct OnWay {
    message: u32,
    bytes: u64,
    /// With fixed routing the place of its next channel in `ways`, else the last link it has crossed.
    place: u32,
    /// When its last byte is at the node.
    tail_seconds: f64,
}

/// A message that has not arrived.
struct Sent {
    token: u64,
    from: u32,
    to: u32,
    /// Where its way begins in `ways`, with fixed routing.
    way: u32,
    /// Packets that have not arrived.
    missing: u64,
}

/// Packets on the links of a machine.
struct Packets {
    model: Packet,
    wires: Wires,
    /// The links, then the ports out of the PEs if there is a limit to injection, then the ports into them
    /// if there is one to ejection.
    channels: Vec<Channel>,
    first_out: usize,
    first_in: usize,
    ways: Ways,
    messages: Vec<Sent>,
    /// Places in `messages` of those that have arrived.
    spare: Vec<u32>,
    /// By channel the packets whose header, or on the last channel of their way the tail, will have crossed
    /// it; after the channels, messages from a PE to itself.
    lines: Lines<OnWay>,
    route: Vec<usize>,
    choices: Vec<usize>,
}

impl Packets {
    fn new(model: &Packet, machine: &Arc<dyn Topology>) -> Result<Self, NetworkError> {
        let wires = Wires::new(machine, model.bandwidth, model.latency_seconds)?;
        let channel = |bandwidth, latency_seconds| Channel { bandwidth, latency_seconds, busy_seconds: 0.0 };
        let links = wires.bandwidth.iter().zip(&wires.latency_seconds);
        let mut channels: Vec<_> = links.map(|(&bandwidth, &latency)| channel(bandwidth, latency)).collect();
        let [first_out, first_in] = [model.injection, model.ejection].map(|limit| {
            let first = channels.len();
            channels.extend(
                limit.into_iter().flat_map(|limit| (0..machine.pes()).map(move |_| channel(limit, 0.0))),
            );
            first
        });
        Ok(Packets {
            wires,
            lines: Lines::new(channels.len() + 1),
            channels,
            first_out,
            first_in,
            ways: Ways::default(),
            model: model.clone(),
            messages: Vec::new(),
            spare: Vec::new(),
            route: Vec::new(),
            choices: Vec::new(),
        })
    }

    /// The size of a packet of a message of so many bytes, but for the last.
    fn packet_bytes(&self, bytes: u64) -> u64 {
        u64::from(self.model.size_bytes).max(bytes.div_ceil(MAX_PACKETS))
    }

    /// A place for a message; with fixed routing its way is kept. Returns the place, and that of its packets
    /// in its PE.
    fn register(&mut self, Message { token, from, to, bytes }: Message) -> (u32, u32) {
        let missing = bytes.div_ceil(self.packet_bytes(bytes)).max(1);
        let mut sent = Sent { token, from, to, way: ARRIVED, missing };
        if self.model.routing == Routing::Fixed && from != to {
            self.wires.route(from, to, bytes, &mut self.route);
            let out = self.model.injection.map(|_| self.first_out + from as usize);
            let into = self.model.ejection.map(|_| self.first_in + to as usize);
            self.route.splice(0..0, out);
            self.route.extend(into);
            sent.way = self.ways.keep(self.route.iter().copied());
        }
        let start = match (self.model.routing, self.model.injection) {
            (Routing::Fixed, _) => sent.way,
            (Routing::Adaptive, Some(_)) => IN_PE,
            (Routing::Adaptive, None) => OUT,
        };
        let index = match self.spare.pop() {
            Some(index) => {
                self.messages[index as usize] = sent;
                index
            }
            None => {
                self.messages.push(sent);
                self.messages.len() as u32 - 1
            }
        };
        (index, start)
    }

    /// The channel that a packet takes next, and where it is afterwards.
    fn next_channel(&mut self, now: f64, packet: &OnWay) -> (usize, u32) {
        if self.model.routing == Routing::Adaptive {
            return self.choose(now, packet);
        }
        let (channel, is_last) = self.ways.at(packet.place);
        (channel, if is_last { ARRIVED } else { packet.place + 1 })
    }

    /// [`Self::next_channel`] with adaptive routing.
    fn choose(&mut self, now: f64, packet: &OnWay) -> (usize, u32) {
        let Sent { from, to, .. } = self.messages[packet.message as usize];
        if packet.place == IN_PE {
            return (self.first_out + from as usize, OUT);
        }
        let crossed = (packet.place != OUT).then_some(packet.place as usize);
        self.onward(from, to, crossed);
        let free = |link: usize| self.channels[link].busy_seconds.max(now);
        let sooner = |first: usize, other: usize| if free(other) < free(first) { other } else { first };
        let Some(link) = self.choices.iter().copied().reduce(sooner) else {
            return (self.first_in + to as usize, ARRIVED);
        };
        self.wires.book(link, packet.bytes);
        self.onward(from, to, Some(link));
        let is_last = self.choices.is_empty() && self.model.ejection.is_none();
        (link, if is_last { ARRIVED } else { link as u32 })
    }

    /// Finds the links of all shortest ways from where a packet is.
    fn onward(&mut self, from: u32, to: u32, crossed: Option<usize>) {
        self.choices.clear();
        self.wires.machine().onward(from as usize, to as usize, crossed, &mut self.choices);
    }

    /// The header of a packet is at a node: the packet queues for its next channel.
    fn forward(&mut self, now: f64, packet: OnWay) {
        let (id, place) = self.next_channel(now, &packet);
        let channel = &mut self.channels[id];
        let start = now.max(channel.busy_seconds);
        let end = (start + packet.bytes as f64 / channel.bandwidth).max(packet.tail_seconds);
        channel.busy_seconds = end;
        let tail_seconds = end + channel.latency_seconds;
        let due = if place == ARRIVED { tail_seconds } else { start + channel.latency_seconds };
        self.lines.add(id, due, OnWay { place, tail_seconds, ..packet });
    }

    /// A packet has arrived: perhaps the last of its message.
    fn arrive(&mut self, seconds: f64, index: u32, arrivals: &mut Vec<Arrival>) {
        let sent = &mut self.messages[index as usize];
        sent.missing -= 1;
        if sent.missing > 0 {
            return;
        }
        arrivals.push(Arrival { token: sent.token, seconds });
        if sent.way != ARRIVED {
            self.ways.forget(sent.way);
        }
        self.spare.push(index);
    }
}

impl Network for Packets {
    fn send(&mut self, now: f64, message: Message) {
        let (index, place) = self.register(message);
        let packet = |bytes, place| OnWay { message: index, bytes, place, tail_seconds: now };
        if message.from == message.to {
            self.messages[index as usize].missing = 1;
            self.lines.add(self.channels.len(), now, packet(0, ARRIVED));
            return;
        }
        let (mut left, most) = (message.bytes, self.packet_bytes(message.bytes));
        for _ in 0..self.messages[index as usize].missing {
            let bytes = left.min(most);
            left -= bytes;
            self.forward(now, packet(bytes, place));
        }
    }

    fn next_event(&mut self) -> Option<f64> {
        self.lines.next()
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while let Some((seconds, packet)) = self.lines.pop(until) {
            if packet.place == ARRIVED {
                self.arrive(seconds, packet.message, arrivals);
            } else {
                self.forward(seconds, packet);
            }
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }
}

#[cfg(test)]
mod tests;

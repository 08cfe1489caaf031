//! Virtual cut-through: messages are split into packets, and a blocked packet waits in a node without holding links.
//!
//! P. Kermani, L. Kleinrock ("Virtual cut-through: a new computer communication switching technique", 1979).
//! A message is split into packets of `size` bytes; the last one may be smaller. If this gives more than 2^16 packets,
//! the packets are larger, so that there are 2^16. When the header of a packet arrives at a node, the packet queues for
//! its next link, first come first served; buffers are unbounded. Let f be the time when the link has sent the previous
//! packet, b and l its bandwidth and latency, and h and t the times when header and tail of the packet arrive at the
//! node. The packet occupies the link
//!
//! from s = max(h, f) to e = max(s + bytes / b, t),
//!
//! because the tail cannot leave before it has arrived. Header and tail arrive at the next node at s + l and e + l. So
//! without contention, a message over links with latencies `l_i` and bandwidths `b_i` takes as long as in
//! [`Ideal`](super::Ideal):
//!
//! T = sum `l_i` + bytes / min `b_i`.
//!
//! With `routing=fixed`, packets take the machine's route. With `routing=adaptive`, a packet takes at each node the link
//! that is free first among those on a shortest route (ties: the first one that [`Topology::onward`] names). This is
//! minimal adaptive routing, as on the torus of Blue Gene/L (N. R. Adiga et al., 2005). A limit to the bytes per second
//! that a PE sends (`injection`) or receives (`ejection`) is a port: a further link, of that bandwidth and without
//! latency, out of the PE or into it. The *way* of a message is its route with these ports.

use std::str::FromStr;
use std::sync::Arc;

use equipoise_model::Topology;
use equipoise_model::costs::LinkLimits;
use equipoise_model::params::Param;

use super::lines::Lines;
use super::{Arrival, Kind, Message, Model, Network, NetworkError, Wires, ejection};

mod ways;

use ways::Ways;

/// Virtual cut-through.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// Bytes per packet, at least 1.
    pub size_bytes: u32,
    /// The choice of links.
    pub routing: Routing,
    /// Bytes per second of every link; `None` for the bandwidths of the machine.
    pub bandwidth: Option<f64>,
    /// Latency of every link in seconds; `None` for the latencies of the machine.
    pub latency_seconds: Option<f64>,
    /// Maximum bytes per second that a PE sends; `None` for no limit.
    pub injection: Option<f64>,
    /// Maximum bytes per second that a PE receives; `None` for no limit.
    pub ejection: Option<f64>,
}

/// How packets choose their links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// The route of the machine (on a grid, dimension by dimension).
    Fixed,
    /// At each node, the link on a shortest route that is free first.
    Adaptive,
}

pub(super) const KIND: Kind = Kind {
    name: "packet",
    form: "",
    help: "Virtual cut-through: packets queue at links, first come first served. Use it for contention on \
           large machines and for adaptive routing.",
    params: &[
        Param { key: "size", default: "4096", help: "bytes per packet (4096: the maximum of InfiniBand)" },
        Param {
            key: "routing",
            default: "fixed",
            help: "`fixed`: the machine's route; `adaptive`: at each node, the link on a shortest route that \
                   is free first",
        },
        Param {
            key: "bandwidth",
            default: "machine",
            help: "bytes per second of a link, or `machine`: the bandwidth of each link",
        },
        Param {
            key: "latency",
            default: "machine",
            help: "seconds per link, or `machine`: the latency of each link",
        },
        Param {
            key: "injection",
            default: "none",
            help: "maximum bytes per second that a PE sends, or `none`",
        },
        Param {
            key: "ejection",
            default: "injection",
            help: "maximum bytes per second that a PE receives, `injection` for the value of that key, or `none`",
        },
    ],
    item: |params| {
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
    fn limits(&self) -> Option<LinkLimits> {
        let Packet { bandwidth, injection, ejection, .. } = *self;
        Some(LinkLimits { bandwidth, injection, ejection })
    }

    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        Ok(Box::new(PacketNetwork::new(self, machine)?))
    }
}

/// The maximum number of packets of a message; all of them enter the queue of its first link at the send.
const MAX_PACKETS: u64 = 1 << 16;

/// Positions of packets that are not on a stored way: arrived, in the PE of the sender, or after the port out of it.
const ARRIVED: u32 = u32::MAX;
const IN_PE: u32 = u32::MAX - 1;
const OUT: u32 = u32::MAX - 2;

/// A link, or the port out of or into a PE.
struct Channel {
    bandwidth: f64,
    latency_seconds: f64,
    /// Until when it is busy with the packets in its queue.
    busy_seconds: f64,
}

/// A packet whose header has arrived at a node, or whose tail has arrived at the receiver.
#[derive(Clone, Copy)]
struct PacketInFlight {
    message: u32,
    bytes: u64,
    /// With fixed routing, the position of its next channel in `ways`; with adaptive routing, the last link it crossed.
    position: u32,
    /// When its last byte arrives at the node.
    tail_seconds: f64,
}

/// A message in flight.
struct MessageInFlight {
    token: u64,
    from: u32,
    to: u32,
    /// With fixed routing, the start of its way in `ways`.
    way: u32,
    /// The number of packets that have not arrived.
    missing: u64,
}

/// A network of packets.
struct PacketNetwork {
    model: Packet,
    wires: Wires,
    /// The links, then the ports out of the PEs if injection is limited, then the ports into the PEs if ejection is
    /// limited.
    channels: Vec<Channel>,
    first_out: usize,
    first_in: usize,
    ways: Ways,
    messages: Vec<MessageInFlight>,
    /// Free indices of `messages`.
    free: Vec<u32>,
    /// By channel: the packets whose header will have crossed the channel; on the last channel of a way, those whose tail
    /// will have. After the channels: messages from a PE to itself.
    lines: Lines<PacketInFlight>,
    route: Vec<usize>,
    choices: Vec<usize>,
}

impl PacketNetwork {
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
        Ok(PacketNetwork {
            wires,
            lines: Lines::new(channels.len() + 1),
            channels,
            first_out,
            first_in,
            ways: Ways::default(),
            model: model.clone(),
            messages: Vec::new(),
            free: Vec::new(),
            route: Vec::new(),
            choices: Vec::new(),
        })
    }

    /// The size of the packets of a message with `bytes` bytes, except the last packet.
    fn packet_bytes(&self, bytes: u64) -> u64 {
        u64::from(self.model.size_bytes).max(bytes.div_ceil(MAX_PACKETS))
    }

    /// Stores a message, and its way if the routing is fixed. Returns its index and the first position of its packets.
    fn register(&mut self, Message { token, from, to, bytes }: Message) -> (u32, u32) {
        let missing = bytes.div_ceil(self.packet_bytes(bytes)).max(1);
        let mut sent = MessageInFlight { token, from, to, way: ARRIVED, missing };
        if self.model.routing == Routing::Fixed && from != to {
            self.wires.route(from, to, bytes, &mut self.route);
            let out = self.model.injection.map(|_| self.first_out + from as usize);
            let into = self.model.ejection.map(|_| self.first_in + to as usize);
            self.route.splice(0..0, out);
            self.route.extend(into);
            sent.way = self.ways.add(self.route.iter().copied());
        }
        let start = match (self.model.routing, self.model.injection) {
            (Routing::Fixed, _) => sent.way,
            (Routing::Adaptive, Some(_)) => IN_PE,
            (Routing::Adaptive, None) => OUT,
        };
        let index = match self.free.pop() {
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

    /// The next channel of a packet, and the position after it.
    fn next_channel(&mut self, now: f64, packet: &PacketInFlight) -> (usize, u32) {
        if self.model.routing == Routing::Adaptive {
            return self.choose(now, packet);
        }
        let (channel, is_last) = self.ways.at(packet.position);
        (channel, if is_last { ARRIVED } else { packet.position + 1 })
    }

    /// [`Self::next_channel`] with adaptive routing.
    fn choose(&mut self, now: f64, packet: &PacketInFlight) -> (usize, u32) {
        let MessageInFlight { from, to, .. } = self.messages[packet.message as usize];
        if packet.position == IN_PE {
            return (self.first_out + from as usize, OUT);
        }
        let crossed = (packet.position != OUT).then_some(packet.position as usize);
        self.onward(from, to, crossed);
        let free = |link: usize| self.channels[link].busy_seconds.max(now);
        let sooner = |first: usize, other: usize| if free(other) < free(first) { other } else { first };
        let Some(link) = self.choices.iter().copied().reduce(sooner) else {
            return (self.first_in + to as usize, ARRIVED);
        };
        self.wires.add_bytes(link, packet.bytes);
        self.onward(from, to, Some(link));
        let is_last = self.choices.is_empty() && self.model.ejection.is_none();
        (link, if is_last { ARRIVED } else { link as u32 })
    }

    /// Finds the next links on all shortest routes from the node of a packet.
    fn onward(&mut self, from: u32, to: u32, crossed: Option<usize>) {
        self.choices.clear();
        self.wires.machine().onward(from as usize, to as usize, crossed, &mut self.choices);
    }

    /// The header of a packet has arrived at a node: the packet queues for its next channel.
    fn forward(&mut self, now: f64, packet: PacketInFlight) {
        let (id, position) = self.next_channel(now, &packet);
        let channel = &mut self.channels[id];
        let start = now.max(channel.busy_seconds);
        let end = (start + packet.bytes as f64 / channel.bandwidth).max(packet.tail_seconds);
        channel.busy_seconds = end;
        let tail_seconds = end + channel.latency_seconds;
        let due = if position == ARRIVED { tail_seconds } else { start + channel.latency_seconds };
        self.lines.add(id, due, PacketInFlight { position, tail_seconds, ..packet });
    }

    /// A packet has arrived. With its last packet, the message has arrived.
    fn arrive(&mut self, seconds: f64, index: u32, arrivals: &mut Vec<Arrival>) {
        let sent = &mut self.messages[index as usize];
        sent.missing -= 1;
        if sent.missing > 0 {
            return;
        }
        arrivals.push(Arrival { token: sent.token, seconds });
        if sent.way != ARRIVED {
            self.ways.remove(sent.way);
        }
        self.free.push(index);
    }
}

impl Network for PacketNetwork {
    fn send(&mut self, now: f64, message: Message) {
        let (index, position) = self.register(message);
        let packet = |bytes, position| PacketInFlight { message: index, bytes, position, tail_seconds: now };
        if message.from == message.to {
            self.messages[index as usize].missing = 1;
            self.lines.add(self.channels.len(), now, packet(0, ARRIVED));
            return;
        }
        let (mut left, most) = (message.bytes, self.packet_bytes(message.bytes));
        for _ in 0..self.messages[index as usize].missing {
            let bytes = left.min(most);
            left -= bytes;
            self.forward(now, packet(bytes, position));
        }
    }

    fn next_event(&mut self) -> Option<f64> {
        self.lines.next()
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while let Some((seconds, packet)) = self.lines.pop(until) {
            if packet.position == ARRIVED {
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

//! Virtual cut-through: messages go in packets, and one that has to wait does so in a node, off the links.
//!
//! P. Kermani, L. Kleinrock ("Virtual cut-through: a new computer communication switching technique", 1979).
//! A message is cut into packets of `size` bytes, the last one smaller. When the header of a packet is at a
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

use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires, ejection};
use crate::Topology;
use crate::params::Param;

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

/// No link yet.
const NONE: u32 = u32::MAX;

/// What happens.
enum Event {
    /// The header of a packet is at a node.
    Header(OnWay),
    /// The last byte of a message has arrived.
    Arrived { message: u32 },
}

/// A packet whose header is at a node.
#[derive(Clone, Copy)]
struct OnWay {
    message: u32,
    bytes: u32,
    /// With fixed routing the links it has crossed, with adaptive the last one.
    crossed: u32,
    /// When its last byte is at the node, in seconds.
    tail: f64,
}

/// A message that has not arrived.
#[derive(Default)]
struct Sent {
    token: u64,
    from: u32,
    to: u32,
    /// Its links, with fixed routing.
    route: Vec<usize>,
    /// Packets that have not arrived.
    missing: u64,
    /// When the last byte of those that have did, in seconds.
    last: f64,
}

/// Packets on the links of a machine.
struct Packets {
    model: Packet,
    wires: Wires,
    /// By link: until when it is busy with those who asked for it so far, in seconds.
    busy: Vec<f64>,
    /// The same of the ports out of each PE and into each.
    ports_out: Vec<f64>,
    ports_in: Vec<f64>,
    messages: Vec<Sent>,
    /// Places in `messages` of those that have arrived.
    spare: Vec<u32>,
    events: Events<Event>,
    choices: Vec<usize>,
}

impl Packets {
    fn new(model: &Packet, machine: &Arc<dyn Topology>) -> Result<Self, NetworkError> {
        let wires = Wires::new(machine, model.bandwidth, model.latency_seconds)?;
        Ok(Packets {
            busy: vec![0.0; wires.bandwidth.len()],
            ports_out: vec![0.0; machine.pes()],
            ports_in: vec![0.0; machine.pes()],
            wires,
            model: model.clone(),
            messages: Vec::new(),
            spare: Vec::new(),
            events: Events::new(),
            choices: Vec::new(),
        })
    }

    /// A place for a message, with its route if that is fixed.
    fn register(&mut self, Message { token, from, to, bytes }: Message) -> u32 {
        let index = self.spare.pop().unwrap_or_else(|| {
            self.messages.push(Sent::default());
            self.messages.len() as u32 - 1
        });
        let sent = &mut self.messages[index as usize];
        (sent.token, sent.from, sent.to, sent.last) = (token, from, to, 0.0);
        sent.missing = bytes.div_ceil(u64::from(self.model.size_bytes)).max(1);
        if self.model.routing == Routing::Fixed {
            self.wires.route(from, to, bytes, &mut sent.route);
        }
        index
    }

    /// The link that a packet takes next; none at its destination.
    fn next_link(&mut self, now: f64, packet: &OnWay) -> Option<usize> {
        let sent = &self.messages[packet.message as usize];
        if self.model.routing == Routing::Fixed {
            return sent.route.get(packet.crossed as usize).copied();
        }
        let crossed = (packet.crossed != NONE).then_some(packet.crossed as usize);
        self.choices.clear();
        self.wires.machine().onward(sent.from as usize, sent.to as usize, crossed, &mut self.choices);
        let waits_less = |least: usize, other: usize| {
            if self.busy[other].max(now) < self.busy[least].max(now) { other } else { least }
        };
        self.choices.iter().copied().reduce(waits_less)
    }

    /// The header of a packet is at a node: the packet queues for its next link, or has arrived.
    fn forward(&mut self, now: f64, mut packet: OnWay) {
        let Some(link) = self.next_link(now, &packet) else { return self.arrive(now, packet) };
        let start = now.max(self.busy[link]);
        let end = (start + f64::from(packet.bytes) / self.wires.bandwidth[link]).max(packet.tail);
        self.busy[link] = end;
        let latency = self.wires.latency_seconds[link];
        packet.tail = end + latency;
        packet.crossed = match self.model.routing {
            Routing::Fixed => packet.crossed + 1,
            Routing::Adaptive => {
                self.wires.book(link, u64::from(packet.bytes));
                link as u32
            }
        };
        self.events.add(start + latency, Event::Header(packet));
    }

    /// The header of a packet is at its destination.
    fn arrive(&mut self, now: f64, packet: OnWay) {
        let sent = &mut self.messages[packet.message as usize];
        let port = &mut self.ports_in[sent.to as usize];
        let (_, tail) = pass(port, self.model.ejection, now, packet.tail, packet.bytes);
        sent.last = sent.last.max(tail);
        sent.missing -= 1;
        if sent.missing == 0 {
            self.events.add(sent.last, Event::Arrived { message: packet.message });
        }
    }
}

/// From when to when a port of that bandwidth is passed by a packet whose header and tail are there at these
/// times; at once if there is no limit. `busy` is until when the port is.
fn pass(busy: &mut f64, bandwidth: Option<f64>, header: f64, tail: f64, bytes: u32) -> (f64, f64) {
    let Some(bandwidth) = bandwidth else { return (header, tail) };
    let start = header.max(*busy);
    *busy = (start + f64::from(bytes) / bandwidth).max(tail);
    (start, *busy)
}

impl Network for Packets {
    fn send(&mut self, now: f64, message: Message) {
        let index = self.register(message);
        if message.from == message.to {
            self.events.add(now, Event::Arrived { message: index });
            return;
        }
        let crossed = if self.model.routing == Routing::Fixed { 0 } else { NONE };
        let mut left = message.bytes;
        for _ in 0..self.messages[index as usize].missing {
            let bytes = left.min(u64::from(self.model.size_bytes)) as u32;
            left -= u64::from(bytes);
            let port = &mut self.ports_out[message.from as usize];
            let (header, tail) = pass(port, self.model.injection, now, now, bytes);
            let packet = OnWay { message: index, bytes, crossed, tail };
            if header > now {
                self.events.add(header, Event::Header(packet));
            } else {
                self.forward(now, packet);
            }
        }
    }

    fn next_event(&mut self) -> Option<f64> {
        self.events.next()
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while let Some((seconds, event)) = self.events.pop(until) {
            match event {
                Event::Header(packet) => self.forward(seconds, packet),
                Event::Arrived { message } => {
                    arrivals.push(Arrival { token: self.messages[message as usize].token, seconds });
                    self.spare.push(message);
                }
            }
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }
}

#[cfg(test)]
mod tests;

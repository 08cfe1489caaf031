//! Wormhole switching: a message is a worm of flits, and a blocked worm holds all of its links.
//!
//! W. J. Dally, C. L. Seitz, "The torus routing chip" (1986). It is also the network of G. De Petris and R. Perego's
//! "greedy mapper" (1994). Their equation (1) is the latency, without contention and with `cycles_per_hop=1`, of a
//! message of L bits over d links (a flit has F bits, and a cycle takes `T_c`):
//!
//! T = `T_c` (L/F + d - 1).
//!
//! The model simulates messages, not flits; from here on, L is the length in flits. One message at a time holds a link:
//! from the time when its header requests the link and gets it, until its tail has crossed it. Other messages that
//! request the link wait in a queue, first come first served. The header takes c = `cycles_per_hop` to cross a link, and
//! then requests the next one. Each flit follows the previous flit after one cycle, if there is space: behind each link
//! is a buffer of B flits, so the header must have crossed the k-th link further on before flit k B crosses this one.
//! Let H(i) be the cycle in which the header has crossed link i. Then the tail has crossed it in cycle
//!
//! T(i) = max over k with k B <= L - 1 of H(i + k) + L - 1 - k B,
//!
//! and the link is free for the next message `handoff` cycles later. (Free space is known at once. In a real machine
//! with a buffer smaller than c, this information comes late, so that there are gaps between flits.)
//!
//! A PE sends one message at a time and receives one message at a time: its two ports are held like links, for L flits,
//! and the header crosses them in 0 cycles. With `ports=off`, a PE uses all of its links at once. A message that is sent
//! between two cycles enters the network at the next cycle. If routes form cyclic dependencies, as on a torus, links
//! have lanes (see [`super::lanes`]). Each lane moves flits at the full bandwidth of the link, which is optimistic if
//! several lanes of a link are in use.

use std::collections::VecDeque;
use std::sync::Arc;

use equipoise_model::Topology;
use equipoise_model::costs::LinkLimits;
use equipoise_model::params::{Param, ParamError, Params};

use super::lanes::Lanes;
use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires};

/// Wormhole switching.
#[derive(Clone, Debug, PartialEq)]
pub struct Wormhole {
    /// Bytes per flit, at least 1.
    pub flit_bytes: u32,
    /// Cycles a header takes to cross a link, at least 1.
    pub cycles_per_hop: u32,
    /// Size of the buffer behind a link in flits, at least 1.
    pub buffer_flits: u32,
    /// Cycles between the end of a tail on a link and the next message on it.
    pub handoff_cycles: u32,
    /// Length of a cycle in seconds.
    pub cycle_seconds: f64,
    /// Whether a PE sends only one message at a time and receives only one at a time.
    pub has_ports: bool,
}

pub(super) const KIND: Kind = Kind {
    name: "wormhole",
    form: "",
    help: "Wormhole switching: a blocked message holds all of its links, as in machines of the 1990s. The most \
           detailed model of contention, for small networks.",
    params: &[
        Param { key: "flit", default: "1", help: "bytes per flit; a link moves one flit per cycle" },
        Param { key: "cycles_per_hop", default: "1", help: "cycles a header takes to cross a link" },
        Param {
            key: "buffer",
            default: "1",
            help: "size of the buffer behind each link in flits; choose at least cycles_per_hop for realistic results",
        },
        Param { key: "handoff", default: "0", help: "cycles between two messages on a link" },
        Param { key: "cycle", default: "1e-9", help: "length of a cycle in seconds" },
        Param {
            key: "ports",
            default: "on",
            help: "`on`: a PE sends one message at a time and receives one at a time; `off`: no limit",
        },
    ],
    item: |params| {
        Ok(Box::new(Wormhole {
            flit_bytes: at_least_one(params, "flit")?,
            cycles_per_hop: at_least_one(params, "cycles_per_hop")?,
            buffer_flits: at_least_one(params, "buffer")?,
            handoff_cycles: params.take("handoff")?,
            cycle_seconds: match params.take_seconds("cycle")? {
                0.0 => return Err(params.bad("cycle", "0", "a cycle takes more than 0 seconds")),
                seconds => seconds,
            },
            has_ports: params.take_switch("ports")?,
        }))
    },
};

fn at_least_one(params: &mut Params, key: &str) -> Result<u32, ParamError> {
    match params.take(key)? {
        0 => Err(params.bad(key, "0", "expected a whole number of at least 1")),
        number => Ok(number),
    }
}

impl Model for Wormhole {
    fn limits(&self) -> Option<LinkLimits> {
        let rate = f64::from(self.flit_bytes) / self.cycle_seconds;
        let port = self.has_ports.then_some(rate);
        Some(LinkLimits { bandwidth: Some(rate), injection: port, ejection: port })
    }

    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        self.prepare(machine)?.network()
    }
}

impl Wormhole {
    /// What all networks of this model on `machine` share.
    ///
    /// # Errors
    /// If the machine has too many PEs to compute the routes between all pairs.
    pub(crate) fn prepare(&self, machine: &Arc<dyn Topology>) -> Result<PreparedWormhole, NetworkError> {
        let lanes = Arc::new(Lanes::new(&**machine)?);
        Ok(PreparedWormhole { model: self.clone(), machine: Arc::clone(machine), lanes })
    }
}

/// A wormhole model with the lanes of a machine, which take longer to compute than a short program to simulate.
#[derive(Clone)]
pub(crate) struct PreparedWormhole {
    model: Wormhole,
    machine: Arc<dyn Topology>,
    lanes: Arc<Lanes>,
}

impl PreparedWormhole {
    /// An empty network.
    ///
    /// # Errors
    /// If the machine has too many links to simulate.
    pub(crate) fn network(&self) -> Result<Box<dyn Network>, NetworkError> {
        Ok(Box::new(WormholeNetwork::new(self)?))
    }
}

/// The relative tolerance within which a send belongs to the beginning of a cycle: times in seconds are rounded products
/// of cycles.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// No worm.
const NONE: u32 = u32::MAX;

/// An event of a worm at a hop of its way.
#[derive(Clone, Copy)]
enum Event {
    /// Its header has crossed the channel.
    Head { worm: u32, hop: u32 },
    /// The channel is free for the next worm.
    Free { worm: u32, hop: u32 },
    /// Its tail has arrived.
    Arrived { worm: u32 },
}

/// A message that is in flight or waits for its first channel.
#[derive(Default)]
struct Worm {
    token: u64,
    flits: u64,
    /// Its channels: the port out of the sender's PE, lanes of links, and the port into the receiver's PE.
    way: Vec<u32>,
    /// By hop so far: the cycle in which the header had crossed it.
    heads: Vec<f64>,
    /// The next worm in the queue of a channel.
    behind: u32,
}

/// A port or a lane of a link.
#[derive(Clone)]
struct Channel {
    holder: u32,
    /// The first and the last waiting worm.
    first: u32,
    last: u32,
}

/// A network of worms. Cycles are whole numbers (exact up to 2^53).
struct WormholeNetwork {
    model: Wormhole,
    wires: Wires,
    lanes: Arc<Lanes>,
    pes: usize,
    /// The ports out of the PEs, the ports into the PEs, then lane 0 of every link, lane 1 of every link, and so on, up
    /// to the highest lane in use so far.
    channels: Vec<Channel>,
    worms: Vec<Worm>,
    /// Free indices of `worms`.
    free: Vec<u32>,
    /// Messages from a PE to itself, with the times of their sends in seconds.
    local: VecDeque<Arrival>,
    events: Events<Event>,
    /// The time of the last send, in seconds.
    now: f64,
    route: Vec<usize>,
    lanes_of_route: Vec<usize>,
    /// Every (channel, token, [header crossed, tail crossed, free for the next worm]).
    #[cfg(test)]
    held: Vec<(u32, u64, [f64; 3])>,
}

impl WormholeNetwork {
    fn new(prepared: &PreparedWormhole) -> Result<Self, NetworkError> {
        let PreparedWormhole { model, machine, lanes } = prepared;
        let bandwidth = f64::from(model.flit_bytes) / model.cycle_seconds;
        let hop_seconds = f64::from(model.cycles_per_hop) * model.cycle_seconds;
        Ok(WormholeNetwork {
            lanes: Arc::clone(lanes),
            wires: Wires::new(machine, Some(bandwidth), Some(hop_seconds))?,
            pes: machine.pes(),
            channels: vec![Channel { holder: NONE, first: NONE, last: NONE }; 2 * machine.pes()],
            worms: Vec::new(),
            free: Vec::new(),
            local: VecDeque::new(),
            events: Events::new(),
            now: 0.0,
            route: Vec::new(),
            lanes_of_route: Vec::new(),
            model: model.clone(),
            #[cfg(test)]
            held: Vec::new(),
        })
    }

    fn is_port(&self, channel: u32) -> bool {
        (channel as usize) < 2 * self.pes
    }

    /// Creates the worm of a message to another PE; returns its index.
    fn create_worm(&mut self, Message { token, from, to, bytes }: Message) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.worms.push(Worm::default());
            self.worms.len() as u32 - 1
        });
        self.lanes.of(&self.route, &mut self.lanes_of_route);
        let links = self.wires.bytes.len();
        let worm = &mut self.worms[index as usize];
        (worm.token, worm.flits) = (token, bytes.div_ceil(u64::from(self.model.flit_bytes)).max(1));
        worm.behind = NONE;
        worm.heads.clear();
        worm.way.clear();
        if self.model.has_ports {
            worm.way.push(from);
        }
        for (link, lane) in self.route.iter().zip(&self.lanes_of_route) {
            let channel = 2 * self.pes + lane * links + link;
            if channel >= self.channels.len() {
                let free = Channel { holder: NONE, first: NONE, last: NONE };
                self.channels.resize(2 * self.pes + (lane + 1) * links, free);
            }
            worm.way.push(channel as u32);
        }
        if self.model.has_ports {
            worm.way.push(self.pes as u32 + to);
        }
        index
    }

    /// The header of a worm requests the channel of a hop.
    fn request(&mut self, cycle: f64, worm: u32, hop: u32) {
        let id = self.worms[worm as usize].way[hop as usize];
        let channel = &mut self.channels[id as usize];
        if channel.holder == NONE {
            self.take(cycle, worm, hop);
            return;
        }
        let before = std::mem::replace(&mut channel.last, worm);
        match before {
            NONE => channel.first = worm,
            before => self.worms[before as usize].behind = worm,
        }
    }

    /// A worm takes a free channel.
    fn take(&mut self, cycle: f64, worm: u32, hop: u32) {
        let id = self.worms[worm as usize].way[hop as usize];
        self.channels[id as usize].holder = worm;
        let crossing = if self.is_port(id) { 0.0 } else { f64::from(self.model.cycles_per_hop) };
        self.events.add(cycle + crossing, Event::Head { worm, hop });
    }

    /// A header has crossed a channel: it requests the next one. When the tail crosses a channel depends only on the header
    /// at the next hops (see [`Self::tail`]); this time is now known for one more channel behind the header.
    fn cross(&mut self, cycle: f64, worm: u32, hop: u32) {
        let body = &mut self.worms[worm as usize];
        body.heads.push(cycle);
        let reach = (body.flits - 1) / u64::from(self.model.buffer_flits);
        let behind = u64::from(hop).checked_sub(reach).map(|first| first as u32);
        let is_there = hop as usize + 1 == body.way.len();
        if is_there {
            let arrival = self.tail(worm, hop);
            // This event precedes that of the last channel, which removes the worm.
            self.events.add(arrival, Event::Arrived { worm });
            for left in behind.unwrap_or(0)..=hop {
                self.schedule_free(worm, left);
            }
        } else {
            if let Some(left) = behind {
                self.schedule_free(worm, left);
            }
            self.request(cycle, worm, hop + 1);
        }
    }

    /// T(i): when the tail has crossed the channel of hop i. The header must have crossed every hop that T(i) depends on.
    fn tail(&self, worm: u32, hop: u32) -> f64 {
        let Worm { flits, heads, .. } = &self.worms[worm as usize];
        let buffer = self.model.buffer_flits;
        let ahead = heads[hop as usize..].iter().zip((0..*flits).rev().step_by(buffer as usize));
        ahead.map(|(head, flits)| head + flits as f64).fold(0.0, f64::max)
    }

    /// Schedules the time when a channel is free: when the tail has crossed it and the hand-off has ended. A port takes
    /// one more cycle for the tail, because the header crossed it in 0 cycles.
    fn schedule_free(&mut self, worm: u32, hop: u32) {
        let id = self.worms[worm as usize].way[hop as usize];
        let last_flit = if self.is_port(id) { 1.0 } else { 0.0 };
        let tail = self.tail(worm, hop);
        let free = tail + last_flit + f64::from(self.model.handoff_cycles);
        #[cfg(test)]
        {
            let body = &self.worms[worm as usize];
            self.held.push((id, body.token, [body.heads[hop as usize], tail, free]));
        }
        self.events.add(free, Event::Free { worm, hop });
    }

    /// A channel is free and goes to the worm that has waited longest.
    fn release(&mut self, cycle: f64, worm: u32, hop: u32) {
        let way = &self.worms[worm as usize].way;
        let channel = &mut self.channels[way[hop as usize] as usize];
        // A worm leaves the last channel of its way last.
        if hop as usize + 1 == way.len() {
            self.free.push(worm);
        }
        channel.holder = NONE;
        let next = channel.first;
        if next == NONE {
            return;
        }
        let waiting = &mut self.worms[next as usize];
        channel.first = std::mem::replace(&mut waiting.behind, NONE);
        if channel.first == NONE {
            channel.last = NONE;
        }
        let hop = waiting.heads.len() as u32;
        self.take(cycle, next, hop);
    }
}

impl Network for WormholeNetwork {
    fn send(&mut self, now: f64, message: Message) {
        let mut route = std::mem::take(&mut self.route);
        self.wires.route(message.from, message.to, message.bytes, &mut route);
        self.route = route;
        self.now = now;
        if self.route.is_empty() {
            self.local.push_back(Arrival { token: message.token, seconds: now });
            return;
        }
        let cycle = (now / self.model.cycle_seconds * (1.0 - ROUNDING)).ceil();
        let worm = self.create_worm(message);
        self.request(cycle, worm, 0);
    }

    fn next_event(&mut self) -> Option<f64> {
        match self.local.front() {
            Some(arrival) => Some(arrival.seconds),
            None => self.events.next().map(|cycle| (cycle * self.model.cycle_seconds).max(self.now)),
        }
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        // Time has not advanced since these sends.
        arrivals.extend(self.local.drain(..));
        while let Some(next) = self.next_event()
            && next <= until
        {
            let Some((cycle, event)) = self.events.pop(f64::INFINITY) else { break };
            match event {
                Event::Head { worm, hop } => self.cross(cycle, worm, hop),
                Event::Free { worm, hop } => self.release(cycle, worm, hop),
                Event::Arrived { worm } => {
                    arrivals.push(Arrival { token: self.worms[worm as usize].token, seconds: next });
                }
            }
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }

    fn cycle_seconds(&self) -> Option<f64> {
        Some(self.model.cycle_seconds)
    }
}

#[cfg(test)]
mod tests;

//! Wormhole switching: a message is a worm of flits, and one that is blocked holds every link it is on.
//!
//! W. J. Dally, C. L. Seitz, "The torus routing chip" (1986); the network of G. De Petris and R. Perego's
//! "greedy mapper" (1994), whose equation (1) is what a message of L flits over d links takes alone with
//! `cycles_per_hop=1` (F bits are a flit here, and `T_c` a cycle):
//!
//! T = `T_c` (L/F + d - 1).
//!
//! The model is of messages, not of flits. A link is held by one message from when its header asks for it
//! and it is free until its tail has crossed it; who asks meanwhile waits in a queue, first come first
//! served. The header takes c = `cycles_per_hop` to cross a link, then asks for the next one. A flit
//! follows the one before it a cycle later, if there is room: behind each link is a buffer of B flits, so
//! the k-th link further on must have been reached before flit k B crosses this one. With H(i) the cycle in
//! which the header has crossed link i, the tail has crossed it at
//!
//! T(i) = max over k with k B <= L - 1 of H(i + k) + L - 1 - k B,
//!
//! and the link is free for another message `handoff` cycles after that. (Room is known at once: where the
//! buffer is smaller than c, the news that there is room would in truth come late, and flits with gaps.)
//!
//! A PE sends one message at a time, and receives one: its ports are held like links, by L flits, and the
//! header passes them in no time; with `ports=off` a PE may do so over all its links at once. What is sent between two cycles enters at the next one. Where routes form
//! circles, as on a torus, links have lanes (see [`super::lanes`]); each lane moves flits as if it were alone on
//! the link, which is optimistic where several do.

use std::collections::VecDeque;
use std::sync::Arc;

use super::lanes::Lanes;
use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires};
use crate::Topology;
use crate::params::{Param, ParamError, Params};

/// Wormhole switching.
#[derive(Clone, Debug, PartialEq)]
pub struct Wormhole {
    /// Bytes of a flit, at least 1.
    pub flit_bytes: u32,
    /// Cycles a header takes to cross a link, at least 1.
    pub cycles_per_hop: u32,
    /// Flits a buffer behind a link holds, at least 1.
    pub buffer_flits: u32,
    /// Cycles from when a tail has left a link until the next message may have it.
    pub handoff_cycles: u32,
    /// Seconds of a cycle.
    pub cycle_seconds: f64,
    /// Whether a PE sends one message at a time and receives one.
    pub has_ports: bool,
}

pub(super) const KIND: Kind = Kind {
    name: "wormhole",
    help: "A message is a worm of flits that holds all links it is on while it is blocked: the machines of \
           the 1990s. Sharpest about contention of small networks.",
    params: &[
        Param { key: "flit", default: "1", help: "bytes of a flit, of which a link moves one per cycle" },
        Param { key: "cycles_per_hop", default: "1", help: "cycles a header takes to cross a link" },
        Param {
            key: "buffer",
            default: "1",
            help: "flits that fit behind each link; at least cycles_per_hop for what a machine would do",
        },
        Param {
            key: "handoff",
            default: "0",
            help: "cycles until a link that was left takes the next message",
        },
        Param { key: "cycle", default: "1e-9", help: "seconds of a cycle" },
        Param { key: "ports", default: "on", help: "whether a PE sends and receives one message at a time" },
    ],
    make: |params| {
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
    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        Ok(Box::new(Worms::new(self, machine)?))
    }
}

/// A message sent so little after the beginning of a cycle, relative to the time, is sent at its beginning:
/// seconds are products of cycles, rounded.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// No worm.
const NONE: u32 = u32::MAX;

/// What happens in a cycle to a worm at a hop of its way.
#[derive(Clone, Copy)]
enum Event {
    /// Its header has crossed that channel.
    Head { worm: u32, hop: u32 },
    /// That channel is free for others.
    Free { worm: u32, hop: u32 },
    /// Its tail has arrived.
    Arrived { worm: u32 },
}

/// A message under way or waiting for its turn.
#[derive(Default)]
struct Worm {
    token: u64,
    flits: u64,
    /// The channels it crosses: out of its PE, lanes of links, into its PE.
    way: Vec<u32>,
    /// By hop of its way, as far as it is: the cycle in which the header had crossed it.
    heads: Vec<f64>,
    /// The worm behind this one in the queue it stands in.
    behind: u32,
}

/// A port or a lane of a link.
#[derive(Clone)]
struct Channel {
    holder: u32,
    /// The first and the last worm that wait for it.
    first: u32,
    last: u32,
}

/// Worms on the links of a machine. Cycles are whole numbers (exact to 2^53).
struct Worms {
    model: Wormhole,
    wires: Wires,
    lanes: Lanes,
    pes: usize,
    /// The ports out of the PEs, the ports into them, then lane 0 of every link, lane 1 and so on as far
    /// as lanes have been needed.
    channels: Vec<Channel>,
    worms: Vec<Worm>,
    /// Places in `worms` of messages that are gone.
    spare: Vec<u32>,
    /// Messages from a PE to itself, and when they were sent, in seconds.
    at_home: VecDeque<Arrival>,
    events: Events<Event>,
    /// When the last message was sent, in seconds.
    now: f64,
    route: Vec<usize>,
    lanes_of_route: Vec<usize>,
    /// Every (channel, token, header at, tail past, free for others).
    #[cfg(test)]
    held: Vec<(u32, u64, [f64; 3])>,
}

impl Worms {
    fn new(model: &Wormhole, machine: &Arc<dyn Topology>) -> Result<Self, NetworkError> {
        let bandwidth = f64::from(model.flit_bytes) / model.cycle_seconds;
        let hop_seconds = f64::from(model.cycles_per_hop) * model.cycle_seconds;
        Ok(Worms {
            lanes: Lanes::new(&**machine)?,
            wires: Wires::new(machine, Some(bandwidth), Some(hop_seconds))?,
            pes: machine.pes(),
            channels: vec![Channel { holder: NONE, first: NONE, last: NONE }; 2 * machine.pes()],
            worms: Vec::new(),
            spare: Vec::new(),
            at_home: VecDeque::new(),
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

    /// A new worm for this message, which goes to another PE.
    fn hatch(&mut self, Message { token, from, to, bytes }: Message) -> u32 {
        let index = self.spare.pop().unwrap_or_else(|| {
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

    /// The header of a worm asks for the channel of that hop.
    fn ask(&mut self, cycle: f64, worm: u32, hop: u32) {
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

    /// A header has crossed a channel: it asks for the next one, and it is known when the tail leaves the
    /// channels behind that it keeps no flits from any more.
    fn go_on(&mut self, cycle: f64, worm: u32, hop: u32) {
        let body = &mut self.worms[worm as usize];
        body.heads.push(cycle);
        let reach = (body.flits - 1) / u64::from(self.model.buffer_flits);
        let behind = u64::from(hop).checked_sub(reach).map(|first| first as u32);
        let is_there = hop as usize + 1 == body.way.len();
        if is_there {
            let arrival = self.tail(worm, hop);
            // Before the last channel is left: with that, the worm is gone.
            self.events.add(arrival, Event::Arrived { worm });
            for left in behind.unwrap_or(0)..=hop {
                self.leave(worm, left);
            }
        } else {
            if let Some(left) = behind {
                self.leave(worm, left);
            }
            self.ask(cycle, worm, hop + 1);
        }
    }

    /// T(i): when the tail has crossed the channel of hop i, where the header is as far as that depends on.
    fn tail(&self, worm: u32, hop: u32) -> f64 {
        let Worm { flits, heads, .. } = &self.worms[worm as usize];
        let buffer = self.model.buffer_flits;
        let ahead = heads[hop as usize..].iter().zip((0..*flits).rev().step_by(buffer as usize));
        ahead.map(|(head, flits)| head + flits as f64).fold(0.0, f64::max)
    }

    /// The channel will be free when the tail has crossed it, and the hand-off is over. A port, which the
    /// header passed in no time, is busy with the tail for a cycle more.
    fn leave(&mut self, worm: u32, hop: u32) {
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

    /// A channel goes to whoever has waited longest.
    fn free(&mut self, cycle: f64, worm: u32, hop: u32) {
        let way = &self.worms[worm as usize].way;
        let channel = &mut self.channels[way[hop as usize] as usize];
        // The last channel of its way, into its PE, is the last that a worm leaves.
        if hop as usize + 1 == way.len() {
            self.spare.push(worm);
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

impl Network for Worms {
    fn send(&mut self, now: f64, message: Message) {
        let mut route = std::mem::take(&mut self.route);
        self.wires.route(message.from, message.to, message.bytes, &mut route);
        self.route = route;
        self.now = now;
        if self.route.is_empty() {
            self.at_home.push_back(Arrival { token: message.token, seconds: now });
            return;
        }
        let cycle = (now / self.model.cycle_seconds * (1.0 - ROUNDING)).ceil();
        let worm = self.hatch(message);
        self.ask(cycle, worm, 0);
    }

    fn next_event(&mut self) -> Option<f64> {
        match self.at_home.front() {
            Some(arrival) => Some(arrival.seconds),
            None => self.events.next().map(|cycle| (cycle * self.model.cycle_seconds).max(self.now)),
        }
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        // Time has not gone on since they were sent.
        arrivals.extend(self.at_home.drain(..));
        while let Some(next) = self.next_event()
            && next <= until
        {
            let Some((cycle, event)) = self.events.pop(f64::INFINITY) else { break };
            match event {
                Event::Head { worm, hop } => self.go_on(cycle, worm, hop),
                Event::Free { worm, hop } => self.free(cycle, worm, hop),
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

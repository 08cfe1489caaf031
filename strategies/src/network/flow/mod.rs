//! Messages as flows that share links max-min fairly.
//!
//! A message that leaves at time t over links of latencies a_l begins to flow at t + sum of a_l; from then
//! on it has the rate that [`max_min`] gives it, until its bytes are through. Rates change whenever a flow
//! begins or ends. A PE may be limited in what it sends and receives in all, which is one more link at
//! either end of every route (the processor or FIFO that feeds a torus link of BlueGene/L is such a limit).
//!
//! This is the model of SimGrid: `sharing=equal` without latencies is its CM02 with a latency of 0, and
//! `sharing=latency` its CM02, where a flow's weight is one over its route's latency, as that of TCP
//! streams is (H. Casanova and L. Marchal, A network model for simulation of Grid applications, INRIA
//! RR-4596, 2002; P. Velho and A. Legrand, Accuracy study and improvement of network simulation in the
//! SimGrid framework, SIMUTools 2009), without the limit on a stream by its window.

use std::str::FromStr;
use std::sync::Arc;

use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires, ejection};
use crate::Topology;
use crate::params::{Param, ParamError, Params, are_seconds};

mod max_min;
mod tournament;

use max_min::MaxMin;
use tournament::Tournament;

/// Messages end together that would end within this fraction of how long they flowed, so that rounding
/// does not part what belongs together.
const TOGETHER: f64 = 1e-10;

/// A network whose links are shared max-min fairly.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Bytes per second of every link; the machine's own if none.
    pub bandwidth: Option<f64>,
    /// Seconds for each link on a message's way, paid before it flows; the machine's own if none.
    pub latency_seconds: Option<f64>,
    /// Bytes per second a PE can send in all; as many as its links carry if none.
    pub injection: Option<f64>,
    /// Bytes per second a PE can receive in all; as many as its links carry if none.
    pub ejection: Option<f64>,
    /// What flows that share a link get of it.
    pub sharing: Sharing,
}

/// What flows that share a bottleneck get of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All the same.
    Equal,
    /// In proportion to one over the latency of their routes. A route quicker than the machine's quickest
    /// link that is not free of latency counts as that link; without latencies all get the same.
    Latency,
}

impl FromStr for Sharing {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "equal" => Ok(Sharing::Equal),
            "latency" => Ok(Sharing::Latency),
            _ => Err("expected `equal` or `latency`"),
        }
    }
}

pub(super) const KIND: Kind = Kind {
    name: "flow",
    help: "Messages under way share links max-min fairly (progressive filling), as in SimGrid. For large \
           messages and many at a time.",
    params: &[
        Param {
            key: "bandwidth",
            default: "machine",
            help: "bytes per second of a link, or `machine`: each link's own",
        },
        Param {
            key: "latency",
            default: "auto",
            help: "seconds per link before a message flows, `machine`: each link's own, or `auto`: none, and each \
                   link's own with sharing=latency",
        },
        Param { key: "injection", default: "none", help: "bytes per second a PE sends at most, or `none`" },
        Param {
            key: "ejection",
            default: "injection",
            help: "bytes per second a PE receives at most, `injection` for the same, or `none`",
        },
        Param {
            key: "sharing",
            default: "equal",
            help: "what flows get of a link they share: `equal`, or by `latency`: 1 / their route's latency",
        },
    ],
    make: |params| {
        let injection = params.take_positive("injection", "none")?;
        let sharing = params.take("sharing")?;
        Ok(Box::new(Flow {
            bandwidth: params.take_positive("bandwidth", "machine")?,
            latency_seconds: latency(params, sharing)?,
            injection,
            ejection: ejection(params, injection)?,
            sharing,
        }))
    },
};

/// What a link's latency is, of `latency`; none for the machine's own.
///
/// Fair sharing is exact without latencies, and sharing by them needs some.
fn latency(params: &mut Params, sharing: Sharing) -> Result<Option<f64>, ParamError> {
    let value: String = params.take("latency")?;
    match (value.as_str(), sharing) {
        ("auto", Sharing::Equal) => Ok(Some(0.0)),
        ("auto", Sharing::Latency) | ("machine", _) => Ok(None),
        (number, _) => match number.parse() {
            Ok(seconds) if are_seconds(seconds) => Ok(Some(seconds)),
            _ => Err(params.bad("latency", number, "expected seconds, at least 0, `machine` or `auto`")),
        },
    }
}

impl Model for Flow {
    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        let wires = Wires::new(machine, self.bandwidth, self.latency_seconds)?;
        let (links, pes) = (wires.bandwidth.len(), machine.pes());
        // After the machine's own links come those of the limits, one per PE.
        let injection = self.injection.map(|_| links as u32);
        let ejection = self.ejection.map(|_| (links + injection.map_or(0, |_| pes)) as u32);
        let limits = [self.injection, self.ejection].into_iter().flatten();
        let limits = limits.flat_map(|limit| std::iter::repeat_n(limit, pes));
        let quickest = wires.latency_seconds.iter().copied().filter(|&seconds| seconds > 0.0);
        Ok(Box::new(Fluid {
            weighs: self.sharing == Sharing::Latency,
            quickest: quickest.reduce(f64::min).unwrap_or(1.0),
            injection,
            ejection,
            rates: MaxMin::new(wires.bandwidth.iter().copied().chain(limits)),
            wires,
            now: 0.0,
            is_unsettled: false,
            sent: 0,
            slots: Vec::new(),
            free: Vec::new(),
            starting: Events::new(),
            ending: Tournament::new(),
            changed: Vec::new(),
            arrived: Vec::new(),
            route: Vec::new(),
        }))
    }
}

/// Messages under way.
struct Fluid {
    weighs: bool,
    /// The least latency of a link that has one, or 1.
    quickest: f64,
    /// Which links of `rates` are what a PE sends and receives at most: the first PE's.
    injection: Option<u32>,
    ejection: Option<u32>,
    wires: Wires,
    rates: MaxMin,
    /// When flows last began or ended, and whether the rates are those before.
    now: f64,
    is_unsettled: bool,
    /// How many messages were sent.
    sent: u64,
    /// Messages under way, and the slots that have none.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// By slot: what waits for its latency to pass, and when what flows will end.
    starting: Events<u32>,
    ending: Tournament,
    /// Room for what is found anew each time: slots whose rates changed, slots of what arrived, a route.
    changed: Vec<u32>,
    arrived: Vec<u32>,
    route: Vec<usize>,
}

/// A message under way.
#[derive(Default)]
struct Slot {
    token: u64,
    /// How many messages were sent before.
    rank: u64,
    weight: f64,
    /// What it crosses, as links of the rates.
    route: Vec<u32>,
    /// When it began to flow.
    began: f64,
    /// The bytes that were left at `since`, and its rate from then on.
    left: f64,
    since: f64,
    rate: f64,
}

impl Slot {
    /// When it will be through.
    fn end(&self) -> f64 {
        self.since + self.left / self.rate
    }
}

impl Network for Fluid {
    fn send(&mut self, now: f64, Message { token, from, to, bytes }: Message) {
        self.wires.route(from, to, bytes, &mut self.route);
        let latency: f64 = self.route.iter().map(|&link| self.wires.latency_seconds[link]).sum();
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let slot = &mut self.slots[id as usize];
        (slot.token, slot.rank) = (token, self.sent);
        self.sent += 1;
        slot.weight = if self.weighs { self.quickest / latency.max(self.quickest) } else { 1.0 };
        (slot.left, slot.rate) = (bytes as f64, 0.0);
        slot.route.clear();
        if !self.route.is_empty() {
            slot.route.extend(self.injection.map(|first| first + from));
            slot.route.extend(self.route.iter().map(|&link| link as u32));
            slot.route.extend(self.ejection.map(|first| first + to));
        }
        self.starting.add(now + latency, id);
    }

    fn next_event(&mut self) -> Option<f64> {
        let start = self.starting.next();
        // What starts at the same time is filled in together with what ended.
        if self.is_unsettled && start != Some(self.now) {
            self.settle();
        }
        let next = start.unwrap_or(f64::INFINITY).min(self.ending.earliest());
        (next < f64::INFINITY).then_some(next)
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while !self.waits_for_answers(until)
            && let Some(next) = self.next_event().filter(|&next| next <= until)
        {
            // Rounding may put an end before what has already happened.
            self.now = self.now.max(next);
            self.end();
            self.start();
            // Slots are used again, so their order says nothing.
            self.arrived.sort_unstable_by_key(|&id| self.slots[id as usize].rank);
            for id in self.arrived.drain(..) {
                arrivals.push(Arrival { token: self.slots[id as usize].token, seconds: self.now });
                self.free.push(id);
            }
        }
    }

    fn wires(&self) -> &Wires {
        &self.wires
    }
}

impl Fluid {
    /// Whether all has happened until then but for new rates: they can wait for what is sent now in answer
    /// to what arrived, and be found for both at once.
    fn waits_for_answers(&self, until: f64) -> bool {
        self.is_unsettled && self.now >= until && self.starting.next().is_none_or(|start| start > until)
    }

    /// Ends what is through now.
    fn end(&mut self) {
        let rounding = 4.0 * f64::EPSILON * self.now;
        while self.ending.earliest() < f64::INFINITY {
            let id = self.ending.winner();
            let slot = &self.slots[id];
            if self.ending.earliest() > self.now + TOGETHER * (self.now - slot.began) + rounding {
                return;
            }
            self.ending.set(id, f64::INFINITY);
            self.rates.end(id);
            self.arrived.push(id as u32);
            self.is_unsettled = true;
        }
    }

    /// Begins what has paid its latency. What has no bytes, or no way to go, has then arrived.
    fn start(&mut self) {
        while let Some((_, id)) = self.starting.pop(self.now) {
            let slot = &mut self.slots[id as usize];
            if slot.left == 0.0 || slot.route.is_empty() {
                self.arrived.push(id);
                continue;
            }
            (slot.began, slot.since) = (self.now, self.now);
            self.rates.start(id as usize, slot.weight, slot.route.iter().copied());
            self.is_unsettled = true;
        }
    }

    /// Gives what flows its new rates.
    fn settle(&mut self) {
        self.is_unsettled = false;
        self.rates.fill(&mut self.changed);
        for id in self.changed.drain(..) {
            let slot = &mut self.slots[id as usize];
            slot.left = f64::max(0.0, slot.left - slot.rate * (self.now - slot.since));
            slot.since = self.now;
            slot.rate = self.rates.rate(id as usize);
            self.ending.set(id as usize, slot.end());
        }
    }
}

#[cfg(test)]
mod tests;

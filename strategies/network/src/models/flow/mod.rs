//! Messages as flows that share links max-min fairly.
//!
//! A message that is sent at time t over links of latencies a_l begins to flow at t + sum of a_l. From then on it has
//! the rate that [`max_min`] gives it, until all of its bytes are transferred. Rates change whenever a flow begins or
//! ends; [`progress`] finds the ends of flows with changing rates. The bytes per second that a PE sends and receives can
//! be limited. Such a limit is a further link at either end of every route (for example the processor or FIFO that feeds
//! a torus link of BlueGene/L).
//!
//! This is the model of SimGrid. `sharing=equal` without latencies is its CM02 with a latency of 0. `sharing=latency` is
//! its CM02, where the weight of a flow is 1 / (latency of its route), as for TCP streams (H. Casanova and L. Marchal, A
//! network model for simulation of Grid applications, INRIA RR-4596, 2002; P. Velho and A. Legrand, Accuracy study and
//! improvement of network simulation in the SimGrid framework, SIMUTools 2009), without the limit of a stream by its
//! window.

use std::str::FromStr;
use std::sync::Arc;

use equipoise_model::costs::LinkLimits;
use equipoise_model::params::{Param, ParamError, Params, are_seconds};
use equipoise_model::{Topology, memory};

use super::{Arrival, Events, Kind, Message, Model, Network, NetworkError, Wires, ejection};

mod groups;
mod max_min;
mod progress;
mod tournament;

use max_min::{Changes, MaxMin};
use progress::Progress;

/// Messages end together if their ends differ by less than this fraction of their duration, so that rounding does not
/// separate equal times.
const TOGETHER: f64 = 1e-10;

/// The memory of a link without flows in [`MaxMin`] and [`Progress`].
const BYTES_PER_LINK: u64 = 300;

/// A network whose links are shared max-min fairly.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Bytes per second of every link; `None` for the bandwidths of the machine.
    pub bandwidth: Option<f64>,
    /// Seconds per link of the route before a message flows; `None` for the latencies of the machine.
    pub latency_seconds: Option<f64>,
    /// Maximum bytes per second that a PE sends; `None` for no limit.
    pub injection: Option<f64>,
    /// Maximum bytes per second that a PE receives; `None` for no limit.
    pub ejection: Option<f64>,
    /// How flows share a link.
    pub sharing: Sharing,
}

/// The shares of flows with the same bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Equal shares.
    Equal,
    /// Shares proportional to 1 / (latency of the route). The latency of a route counts as at least the minimum
    /// positive latency of a link; without latencies all shares are equal.
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
    form: "",
    help: "Messages in flight share links max-min fairly (progressive filling), as in SimGrid. Use it for large \
           messages with many in flight.",
    params: &[
        Param {
            key: "bandwidth",
            default: "machine",
            help: "bytes per second of a link, or `machine`: the bandwidth of each link",
        },
        Param {
            key: "latency",
            default: "auto",
            help: "seconds per link before a message flows; `machine`: the latency of each link; `auto`: `machine` \
                   with sharing=latency, otherwise 0",
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
        Param {
            key: "sharing",
            default: "equal",
            help: "shares of flows on a link: `equal`, or `latency`: proportional to 1 / (latency of the route)",
        },
    ],
    item: |params| {
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

/// The value of the key `latency` in seconds; `None` for the latencies of the machine.
///
/// The default is 0 with equal sharing, which is exact without latencies; sharing by latency needs latencies.
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
    fn limits(&self) -> Option<LinkLimits> {
        let Flow { bandwidth, injection, ejection, .. } = *self;
        Some(LinkLimits { bandwidth, injection, ejection })
    }

    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError> {
        let wires = Wires::new(machine, self.bandwidth, self.latency_seconds)?;
        let (links, pes) = (wires.bandwidth.len(), machine.pes());
        // After the links of the machine come those of the limits, one per PE.
        let injection = self.injection.map(|_| links as u32);
        let ejection = self.ejection.map(|_| (links + injection.map_or(0, |_| pes)) as u32);
        let limits = [self.injection, self.ejection].into_iter().flatten();
        let limits = limits.flat_map(|limit| std::iter::repeat_n(limit, pes));
        let latencies = wires.latency_seconds.iter().copied().filter(|&seconds| seconds > 0.0);
        let count = wires.bandwidth.len() + pes * [injection, ejection].into_iter().flatten().count();
        let what = format!("the flows on {count} links");
        memory::check(BYTES_PER_LINK * count as u64, &what, "choose a smaller machine")
            .map_err(NetworkError)?;
        let rates = MaxMin::new(wires.bandwidth.iter().copied().chain(limits));
        Ok(Box::new(FlowNetwork {
            shares_by_latency: self.sharing == Sharing::Latency,
            min_latency_seconds: latencies.reduce(f64::min).unwrap_or(1.0),
            injection,
            ejection,
            wires,
            now: 0.0,
            is_stale: false,
            sent: 0,
            slots: Vec::new(),
            free: Vec::new(),
            starting: Events::new(),
            progress: Progress::new(rates.links()),
            rates,
            changes: Changes::default(),
            arrived: Vec::new(),
            route: Vec::new(),
        }))
    }
}

/// A network of flows.
struct FlowNetwork {
    /// Whether flows share links by latency.
    shares_by_latency: bool,
    /// The minimum positive latency of a link, or 1.
    min_latency_seconds: f64,
    /// The links of `rates` that limit what PE 0 sends and receives; those of other PEs follow.
    injection: Option<u32>,
    ejection: Option<u32>,
    wires: Wires,
    rates: MaxMin,
    /// When flows last began or ended, and whether the rates have not been updated since.
    now: f64,
    is_stale: bool,
    /// The number of sent messages.
    sent: u64,
    /// Messages in flight, and the free slots.
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The slots of messages whose latency has not passed.
    starting: Events<u32>,
    /// The ends of flows. A group is a bottleneck.
    progress: Progress,
    /// Reused buffers: changes of rates, slots of arrived messages, a route.
    changes: Changes,
    arrived: Vec<u32>,
    route: Vec<usize>,
}

/// A message in flight.
#[derive(Default)]
struct Slot {
    token: u64,
    /// The number of messages that were sent before this message.
    rank: u64,
    weight: f64,
    /// Its links in `rates`.
    route: Vec<u32>,
    /// When it began to flow.
    began: f64,
    /// Its size.
    bytes: u64,
}

impl Network for FlowNetwork {
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
        let least = self.min_latency_seconds;
        slot.weight = if self.shares_by_latency { least / latency.max(least) } else { 1.0 };
        slot.bytes = bytes;
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
        // Starts and ends at the same time share one update of the rates.
        if self.is_stale && start != Some(self.now) {
            self.update_rates();
        }
        let next = start.unwrap_or(f64::INFINITY).min(self.progress.next_end());
        (next < f64::INFINITY).then_some(next)
    }

    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>) {
        while !self.can_delay_update(until)
            && let Some(next) = self.next_event().filter(|&next| next <= until)
        {
            // Rounding may put an end before the present time.
            self.now = self.now.max(next);
            self.end();
            self.start();
            // Slots are reused, so messages are sorted by the order of their sends.
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

impl FlowNetwork {
    /// Whether only an update of the rates is left to do until `until`. It can wait for messages that are sent in
    /// response to arrivals, so that one update covers both.
    fn can_delay_update(&self, until: f64) -> bool {
        self.is_stale && self.now >= until && self.starting.next().is_none_or(|start| start > until)
    }

    /// Ends the flows that end now.
    fn end(&mut self) {
        let rounding = 4.0 * f64::EPSILON * self.now;
        while self.progress.next_end() < f64::INFINITY {
            let id = self.progress.next_flow();
            let slot = &self.slots[id as usize];
            if self.progress.next_end() > self.now + TOGETHER * (self.now - slot.began) + rounding {
                return;
            }
            self.progress.end(id);
            self.rates.end(id);
            self.arrived.push(id);
            self.is_stale = true;
        }
    }

    /// Begins the flows whose latency has passed. Messages without bytes or without links have then arrived.
    fn start(&mut self) {
        while let Some((_, id)) = self.starting.pop(self.now) {
            let slot = &mut self.slots[id as usize];
            if slot.bytes == 0 || slot.route.is_empty() {
                self.arrived.push(id);
                continue;
            }
            slot.began = self.now;
            self.progress.start(id, slot.bytes as f64 / slot.weight);
            self.rates.start(id, slot.weight, slot.route.iter().copied());
            self.is_stale = true;
        }
    }

    /// Updates the rates of all flows.
    fn update_rates(&mut self) {
        self.is_stale = false;
        self.rates.fill(&mut self.changes);
        for link in self.changes.links.drain(..) {
            self.progress.set_level(self.now, link, self.rates.level(link));
        }
        for flow in self.changes.flows.drain(..) {
            self.progress.move_to(self.now, flow, self.rates.bottleneck(flow));
        }
    }
}

#[cfg(test)]
mod tests;

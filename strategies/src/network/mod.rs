//! Networks: how long messages take on a machine's links, and who waits for whom.
//!
//! A [`Model`] is what a spec such as `flow:bandwidth=154e6,latency=0.5e-6` describes; on a machine it is a
//! [`Network`], which is given messages and gives them back when they have arrived. Whoever drives one
//! (a halo exchange, a list of messages, a running program) has its own events beside it: it always does
//! the earlier of its own next event and [`Network::next_event`].
//!
//! Time is in seconds from 0 and never negative. At equal times what was sent first happens first, so the
//! same messages give the same answer.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::Topology;
use crate::params::{Param, ParamError, Params, is_positive};

pub mod batch;
mod events;
pub mod exchange;
mod flow;
mod ideal;
mod lanes;
mod lines;
mod packet;
mod wires;
mod wormhole;

pub use events::Events;
pub use flow::{Flow, Sharing};
pub use ideal::Ideal;
pub use packet::{Packet, Routing};
pub use wires::Wires;
pub use wormhole::Wormhole;

/// Every kind of network, in the order help lists them.
pub const ALL: &[&Kind] = &[&ideal::KIND, &flow::KIND, &packet::KIND, &wormhole::KIND];

/// A kind of network as a spec names it.
pub struct Kind {
    /// What a spec begins with, before the colon.
    pub name: &'static str,
    /// What it takes into account and when to use it.
    pub help: &'static str,
    /// The keys it takes.
    pub params: &'static [Param],
    /// Makes it from its parameters, all of which it takes.
    pub make: fn(&mut Params) -> Result<Box<dyn Model>, ParamError>,
}

/// A network somebody described, without a machine.
pub trait Model: Send + Sync {
    /// The network on the links of `machine`, with nothing under way.
    ///
    /// # Errors
    /// When it cannot serve this machine; the sentence says why and what can.
    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError>;
}

/// Messages under way on the links of a machine.
///
/// A message from a PE to itself crosses no link: it arrives when it is sent.
pub trait Network: Send {
    /// Puts a message on its way at `now` seconds, which is not before anything that has happened.
    fn send(&mut self, now: f64, message: Message);

    /// When the next thing happens, in seconds, be it an arrival or not; none if nothing is under way.
    fn next_event(&mut self) -> Option<f64>;

    /// Lets everything happen up to and including `until` seconds and appends what arrived, in the order
    /// of arrival.
    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>);

    /// The links it runs on, with the bytes of all messages sent so far by way of each.
    fn wires(&self) -> &Wires;

    /// The seconds of a cycle, of networks that count in cycles.
    fn cycle_seconds(&self) -> Option<f64> {
        None
    }
}

/// A message a network is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Whatever the sender wants to know it by when it arrives.
    pub token: u64,
    /// The PE that sends it.
    pub from: u32,
    /// The PE that receives it.
    pub to: u32,
    /// Its size.
    pub bytes: u64,
}

/// A message that has arrived as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The token of its [`Message`].
    pub token: u64,
    /// When its last byte arrived.
    pub seconds: f64,
}

/// A network that cannot be simulated on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

/// The value of the key `ejection`: bytes per second a PE receives at most.
fn ejection(params: &mut Params, injection: Option<f64>) -> Result<Option<f64>, ParamError> {
    let value: String = params.take("ejection")?;
    match (value.as_str(), value.parse()) {
        ("injection", _) => Ok(injection),
        ("none", _) => Ok(None),
        (_, Ok(limit)) if is_positive(limit) => Ok(Some(limit)),
        _ => Err(params.bad("ejection", &value, "expected a number above 0, `injection`, or `none`")),
    }
}

/// The network of a spec such as `ideal:latency=1e-6`.
///
/// # Errors
/// When the spec names an unknown network or key, or a value is not understood.
pub fn parse(spec: &str) -> Result<Box<dyn Model>, ParamError> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let Some(kind) = ALL.iter().find(|kind| kind.name == name) else {
        let known: Vec<&str> = ALL.iter().map(|kind| kind.name).collect();
        return Err(ParamError::unknown("network", name, &known));
    };
    Params::serve(kind.name, kind.params, rest, kind.make)
}

/// What `--network help` prints: every kind of network and its parameters with defaults.
pub fn help() -> String {
    let mut text = String::from("A network is NAME or NAME:key=value,key=value.\n");
    for kind in ALL {
        let _ = writeln!(text, "\n{}\n    {}", kind.name, kind.help);
        for Param { key, default, help } in kind.params {
            let _ = writeln!(text, "    {key}={default}: {help}");
        }
    }
    text
}

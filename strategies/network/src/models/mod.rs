//! Network models: the latency of messages on a machine's links, contention included.
//!
//! A spec such as `flow:bandwidth=154e6,latency=0.5e-6` describes a [`Model`]. On a machine, a model gives a
//! [`Network`], which takes messages and reports their arrivals. The driver of a network (a halo exchange, a batch of
//! messages, a running program) has its own events. It always handles the earlier one of its own next event and
//! [`Network::next_event`].
//!
//! Times are in seconds and never negative. At equal times, the message that was sent first comes first, so the results
//! are deterministic.

use std::sync::Arc;

use equipoise_model::Topology;
use equipoise_model::costs::LinkLimits;
use equipoise_model::descriptor::{self, Descriptor, find, split};
use equipoise_model::params::{ParamError, Params, is_positive};

use equipoise_model::fault::{Classified, Fault};

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

pub(crate) use wormhole::PreparedWormhole;

/// All kinds of networks, in the order of the help.
pub const ALL: &[&Kind] = &[&ideal::KIND, &flow::KIND, &packet::KIND, &wormhole::KIND];

/// A kind of network; its item makes the model from the parameters of a spec.
pub type Kind = Descriptor<fn(&mut Params) -> Result<Box<dyn Model>, ParamError>>;

/// A network model, independent of a machine.
pub trait Model: Send + Sync {
    /// An empty network on the links of `machine`.
    ///
    /// # Errors
    /// When the model cannot simulate this machine. The message names the reason and a remedy.
    fn on(&self, machine: &Arc<dyn Topology>) -> Result<Box<dyn Network>, NetworkError>;

    /// What limits the bytes that messages in flight have to share; none if messages do not delay each other.
    fn limits(&self) -> Option<LinkLimits>;
}

/// The messages in flight on the links of a machine.
///
/// A message from a PE to itself crosses no link and arrives at the time of its send.
pub trait Network: Send {
    /// Sends a message at `now` seconds, which must not be before any event that has been handled.
    fn send(&mut self, now: f64, message: Message);

    /// The time of the next event (an arrival or an internal event), in seconds; `None` if no message is in flight.
    fn next_event(&mut self) -> Option<f64>;

    /// Handles all events up to and including `until` seconds, and appends the arrivals in order.
    fn advance(&mut self, until: f64, arrivals: &mut Vec<Arrival>);

    /// The links of the machine, with the bytes sent over each link so far.
    fn wires(&self) -> &Wires;

    /// The length of a cycle in seconds, for networks that count in cycles.
    fn cycle_seconds(&self) -> Option<f64> {
        None
    }
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Identifies the message when it arrives; the sender chooses the value.
    pub token: u64,
    /// The PE of the sender.
    pub from: u32,
    /// The PE of the receiver.
    pub to: u32,
    /// The size.
    pub bytes: u64,
}

/// The arrival of a whole message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// The token of the [`Message`].
    pub token: u64,
    /// When the last byte arrived.
    pub seconds: f64,
}

/// Why a network cannot be simulated on a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(pub String);

impl Classified for NetworkError {
    fn fault(&self) -> Fault {
        Fault::Usage
    }
}

/// The value of the key `ejection`: the maximum bytes per second that a PE receives.
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
/// When the spec names an unknown network or key, or has an invalid value.
pub fn parse(spec: &str) -> Result<Box<dyn Model>, ParamError> {
    let (name, rest) = split(spec);
    let kind = find("network", name, ALL.iter().copied())?;
    Params::parse_with(kind.name, kind.params, rest, kind.item)
}

/// The output of `--network help`: all kinds of networks, and their parameters with defaults.
pub fn help() -> String {
    format!("A network is NAME or NAME:key=value,key=value.\n{}", descriptor::help(ALL.iter().copied()))
}

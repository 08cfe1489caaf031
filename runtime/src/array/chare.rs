//! The traits of chares: the contract between `#[chare]` and the runtime.

use super::cx::Cx;
use super::proxy::{Target, Targets};
use crate::codec::State;
use crate::index::Index;
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;

/// A migratable object that reacts to messages. Implement it with [`#[chare]`](crate::chare) on an
/// `impl` block.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a chare",
    label = "not a chare",
    note = "put `#[chare(index = [i32; N])]` on an `impl {Self}` block with `#[entry]` methods"
)]
pub trait Chare: State + Send + 'static {
    /// The type of an element's index.
    type Index: Index;
    /// One variant per entry method; the variant's number is the entry's id.
    type Msg: Serialize + DeserializeOwned + Send + 'static;
    /// Where the flow of an element waits, with the variables of the flow; `()` without a flow.
    type Flow: Default + Serialize + DeserializeOwned + Send + 'static;
    /// Sends to one element.
    type Proxy<'a>: From<Target<'a, Self>>;
    /// Sends to several elements; its methods require `Clone`.
    type Proxies<'a>: From<Targets<'a, Self>>;

    /// The name of the struct, for messages to users.
    const NAME: &'static str;
    /// The names of the entry methods, by id.
    const ENTRIES: &'static [&'static str];
    /// Whether entries have a `reduce`, by id.
    const REDUCES: &'static [bool];
    /// Whether some entry has a `when` or belongs to a flow; otherwise the compiler removes the check.
    const GUARDED: bool;
    /// Whether load-balancing steps wait for its elements.
    const SYNC: bool;
    /// Whether its elements never migrate.
    const PINNED: bool;
    /// Whether messages for its elements are delivered before messages for other arrays.
    const EXPEDITED: bool;
    /// Whether some entry has a `priority`; otherwise the compiler removes the queue by priority.
    const PRIORITIZED: bool;
    /// With one element on every PE or in every process: makes elements, as many as the number, of all saved elements in rank
    /// order.
    #[allow(clippy::type_complexity)]
    const REGROUP: Option<fn(Vec<Self>, usize) -> Vec<Self>>;

    /// The entry of a message.
    fn entry(msg: &Self::Msg) -> usize;
    /// Whether the guard of the message's entry is true, or the flow waits for the message.
    fn ready(&self, flow: &Self::Flow, msg: &Self::Msg) -> bool;
    /// The priority of the message's entry; 0 if it has none.
    fn priority(msg: &Self::Msg) -> i64;
    /// Calls the message's entry method, or continues the flow with the message.
    fn deliver(&mut self, flow: &mut Self::Flow, cx: &Cx<'_, Self>, msg: Self::Msg);
    /// The messages for which the flow waits, for reports; none if it does not run, or waits for a collective.
    fn waits(_: &Self::Flow) -> Option<&'static str> {
        None
    }
    /// The name of the flow that is to receive the message, if it does not run: it was not started, or has ended.
    fn idle(_: &Self::Flow, _: &Self::Msg) -> Option<&'static str> {
        None
    }
    /// Combines two contributions to one reduction entry; `a` is from the lower ranks.
    fn combine(a: Self::Msg, b: Self::Msg) -> Self::Msg;
    /// Clones a message. All arguments must be `Clone`, which the proxies to several elements ensure.
    fn copy(msg: &Self::Msg) -> Self::Msg;
    /// The message to an entry with at most one argument. `argument` is an `Option` of the argument, or of `()` for an entry
    /// without arguments. `None` if it has another type.
    fn from_argument(entry: usize, argument: &mut dyn Any) -> Option<Self::Msg>;
}

/// A chare whose array takes part in load-balancing steps: `#[chare(.., sync)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not take part in load-balancing steps",
    label = "`at_sync` needs a chare marked `sync`",
    note = "write `#[chare(index = .., sync)]` on its `impl` block; every element of the array must then call `cx.at_sync()` before a step starts"
)]
pub trait Synced {}

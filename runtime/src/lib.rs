//! Equipoise: a runtime for migratable objects, after Charm++.
//!
//! A program is a set of chare arrays whose elements send each other asynchronous messages. The
//! runtime records what every element costs and whom it talks to, and at load-balancing steps a
//! strategy that knows the machine decides where the elements should live; they migrate by serde.
//!
//! ```
//! use equipoise::prelude::*;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Hello {
//!     done: Exit<u32>,
//! }
//!
//! #[chare(index = [i32; 1])]
//! impl Hello {
//!     /// Says hello; the sum of all indices goes to element 0.
//!     #[entry]
//!     fn greet(&mut self, cx: &Cx<Self>) {
//!         cx.peer([0]).contribute().total(cx.index()[0] as u32);
//!     }
//!
//!     /// Learns the sum.
//!     #[entry(reduce = equipoise::reduce::sum)]
//!     fn total(&mut self, cx: &Cx<Self>, sum: u32) {
//!         self.done.exit(cx, sum);
//!     }
//! }
//!
//! let report = equipoise::run(Config::threads(2), |pe, done| {
//!     let hellos = pe.array([10], |_| Hello { done });
//!     pe.main(move |pe| hellos.all(pe).greet());
//! });
//! assert_eq!(report.result, 45);
//! ```
//!
//! Everything a program can wait for is a send, postponed. A proxy method call is a message; a
//! modifier says when it is delivered:
//!
//! | written | delivered |
//! |---|---|
//! | `cx.peer(ix).f(..)`, `cx.peers().f(..)`, `other.at(cx, ix).f(..)`, `other.all(cx).f(..)`, `other.only(cx, member).f(..)` | now: to one, to all, to a section |
//! | `cx.peers().contribute().f(x)`, `other.at(cx, ix).contribute().f(x)` | when all elements of the sender's array have contributed, combined by the `reduce` function of `f` |
//! | `cx.at_sync().f(..)` | to the sender, after load balancing, wherever it then lives |
//! | `other.all(cx).at_quiescence().f(..)` | when nothing is in flight |
//!
//! Messages from one element to another arrive in the order they were sent while both stay on one PE;
//! otherwise in any order. `#[entry(when = ..)]` says what an element can take now, the rest waits.

// The macro's output names this crate by its own name, here too.
extern crate self as equipoise;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
mod array;
mod balancer;
mod broadcast;
mod chare;
mod clock;
mod codec;
mod context;
mod contribute;
mod databases;
mod elements;
mod index;
mod load;
mod location;
mod machine;
mod node;
mod options;
mod order;
mod proxy;
mod quiescence;
mod reduction;
mod reply;
mod report;
mod run;
mod shared;
mod spellings;
mod sync;
mod tracer;
mod transport;

pub use array::Array;
pub use balancer::LbStep;
pub use chare::{Chare, Synced};
pub use codec::numbers;
pub use context::{Cx, PeCx};
pub use equipoise_macros::{chare, entry};
pub use equipoise_strategies as strategies;
pub use index::{Index, Pe};
pub use machine::{Machine, StrategySeconds, Uncharged};
pub use options::{Comm, Config, Migration, ReportForm, Transport};
pub use proxy::{Contribution, Target, Targets};
pub use reduction::reduce;
pub use reply::Reply;
pub use report::{MachineReport, PeTime, Report, RunError};
pub use run::{Exit, Setup, run, try_run};
pub use shared::Shared;
pub use spellings::{parse, translated};

/// What a chare program needs in scope.
pub mod prelude {
    pub use crate::{Array, Config, Cx, Exit, Pe, PeCx, Reply, Setup, Shared, chare, entry};
    pub use serde::{Deserialize, Serialize};
}

//! Equipoise: a runtime for migratable objects, after Charm++.
//!
//! A program is a set of chare arrays whose elements send each other asynchronous messages. The
//! runtime records the load and the communication of every element. At load-balancing steps a
//! strategy assigns the elements to the PEs of the machine; elements migrate by serde.
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
//!     /// Receives the sum.
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
//! A proxy method call sends a message. An entry method never waits: it postpones a send, and a modifier says when the
//! message is delivered:
//!
//! | written | delivered |
//! |---|---|
//! | `cx.peer(ix).f(..)`, `cx.peers().f(..)`, `other.at(cx, ix).f(..)`, `other.all(cx).f(..)`, `section.all(cx).f(..)` | now: to one, to all, to a [`Section`] |
//! | `cx.peers().contribute().f(x)`, `other.at(cx, ix).contribute().f(x)` | when all elements of the sender's array have contributed, combined by the `reduce` function of `f` |
//! | `target.contribute_in(&section).f(x)` | when all members of the section have contributed |
//! | `cx.peers().contribute().prefix().f(x)` | when all have contributed: to each element the combination of the contributions up to and including its own |
//! | `cx.at_sync().f(..)` | to the sender, after load balancing, on its new PE |
//! | `other.all(cx).after(duration).f(..)` | after this time |
//! | `other.all(cx).at_quiescence().f(..)` | when nothing is in flight |
//! | `other.all(cx).at_checkpoint().f(..)` | when nothing is in flight and, with `--checkpoint`, the run has saved itself |
//!
//! A reduction to `cx.peers()` gives its result to all elements (an allreduce).
//!
//! Messages from one element to another arrive in the order they were sent while both stay on one PE;
//! otherwise in any order. Broadcasts and messages to sections may overtake others. `#[entry(when = ..)]` says which
//! messages an element accepts now; others wait. `#[entry(priority = ..)]` says which of the messages that wait on a PE go first.
//!
//! # Life cycles from top to bottom
//!
//! A method with [`#[flow]`](macro@flow) waits: for messages, for the result of a reduction, for a load-balancing step. At every
//! wait its element may migrate. [`Setup::main_async`] takes a `main` that waits for replies.
//!
//! # Libraries
//!
//! A [`Callback`] names the receiver of a value, so a library need not know the chares of its clients. A chare may be
//! generic: see [`macro@chare`].
//!
//! # Where elements are
//!
//! The elements of an array have ranks in the order of their indices, **first dimension fastest**. By default, the
//! placement `blocks` cuts the ranks into one contiguous run per PE. [`Index`] explains both with an example. The flag
//! `--initial` (the field `initial` of [`Config`]) and [`Setup::array_placed`] choose another placement; load balancing
//! changes it while the program runs.
//!
//! Elements of [`Setup::sparse`] and [`Setup::chares`] are created while the program runs. Elements of [`Setup::array_bound`] are
//! always on the PE of another array's element, and [`Array::local`] reaches an element on the same PE without a message.
//!
//! # Bytes
//!
//! Elements and messages that go to another process, or on the simulated transport to another PE, are encoded with serde.
//! Arrays of numbers are encoded fastest as one block of bytes: see [`numbers`].

// Generated code refers to this crate as `equipoise`, also within this crate.
extern crate self as equipoise;

#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;

mod array;
mod batches;
mod broadcast;
pub mod checkpoint;
mod clock;
mod codec;
mod command_line;
mod costs;
mod desk;
mod elements;
mod events;
mod experience;
mod files;
mod inbox;
mod index;
mod interleaving;
mod keyed;
mod lb_history;
mod load;
mod location;
mod losses;
mod node;
mod options;
mod order;
mod panics;
mod pe;
mod process;
mod prometheus;
mod pulse;
mod quiescence;
mod recorded;
mod reduction;
mod report;
mod restoring;
mod run;
mod run_report;
mod saving;
mod scheduler;
mod section;
mod setup;
mod slot;
mod steps;
mod tracer;
mod transport;
mod tree;
mod waiting;

pub use array::{Array, Callback, Chare, Contribution, Cx, Section, Synced, Target, Targets};
pub use batches::Amount;
pub use codec::{State, numbers};
pub use command_line::parse;
pub use equipoise_macros::{Index, ask, at_sync, chare, entry, flow, overlap, reduce, select, when};
pub use index::{Group, Index, Pe, Process};
pub use lb_history::{Kept, LbStep, LbSummary};
pub use options::{
    Checkpoints, Comm, Config, Idle, LbGate, LbLoad, LbWhen, Migration, ReportForm, Transport,
};
pub use options::{Machine, PeFailure, Records, StrategySeconds, Uncharged, translated};
pub use pe::{Asked, Exit, Main, PeCx, Reply, Shared};
pub use process::{CheckpointSignal, end_on_signals, print_error, warn};
pub use reduction::reduce;
pub use report::{JobReport, MachineReport, PeTime, Report, RunError, Traffic};
pub use run::{run, try_run};
#[cfg(feature = "mpi")]
pub use run::{run_on, try_run_on};
pub use setup::Setup;
pub use {equipoise_model as model, equipoise_network as network, equipoise_strategies as strategies};

/// The items that chare programs use.
pub mod prelude {
    pub use crate::{
        Array, Callback, Config, Cx, Exit, Pe, PeCx, Process, Reply, Section, Setup, Shared, chare, entry,
    };
    pub use equipoise_macros::{Index, ask, at_sync, flow, overlap, reduce, select, when};
    pub use serde::{Deserialize, Serialize};
}

//! Checkpoints of runs, as files: [`Checkpoint`] opens one.
//!
//! A run saves itself with the flags of [`Checkpoints`](crate::Checkpoints), and restarts with one of them.

// A run saves itself while it is quiet: no message is in flight, so its state is what its PEs hold. The order of events:
//
// 1. A checkpoint is wanted: a program sends `at_checkpoint`, a sync point comes at which the flags ask for one
//    (`Saver::is_due_at_sync`), or a signal. Other processes report it to process 0 (`Control::Checkpoint`), which decides.
// 2. When nothing is in flight, every PE saves itself instead of sending what waits for quiescence (`Quiet::Save`). It
//    encodes its elements into memory (`Part`).
// 3. The PE that is the last of its process starts a thread that writes the file of the process (`Saver`). In process 0,
//    this thread also waits for the files of the other processes, and then writes the manifest.
// 4. When nothing is in flight again, all PEs have saved themselves. The messages that wait for quiescence are sent, or the sync
//    point goes on for which the run has saved itself (`Quiet::Step`), while the files are being written. If the run ends because of a signal, it waits until they are written.
//
// `saving.rs` says what a PE saves and how it continues after a restart.

mod cost;
mod file;
mod opened;
mod saver;
#[cfg(test)]
mod tests;

pub use cost::CheckpointCost;
pub use opened::{Checkpoint, CheckpointArray, CheckpointError};

pub(crate) use cost::CostMeter;
pub(crate) use file::{ArrayHead, ArrayIndex, ElementIndex, Generation, Part, Text};
pub(crate) use opened::SavedElement;
pub(crate) use saver::{Next, Plan, Reason, Saver, When, make_folder, numbering};

//! The end of a process that runs out of memory.

use signal_hook::consts::SIGABRT;
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Makes a process that aborts, as after a failed allocation, end with exit code 1, as after any other failure.
///
/// Sizes are checked before memory is allocated, but not all allocations can be foreseen. The standard library has then
/// printed how many bytes could not be allocated.
pub(crate) fn exit_on_abort() {
    // Fails only if the system refuses handlers; an abort then remains an abort.
    _ = flag::register_conditional_shutdown(SIGABRT, 1, Arc::new(AtomicBool::new(true)));
}

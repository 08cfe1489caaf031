//! A progress indicator for long computations.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use equipoise_model::quote::quoted;
use indicatif::ProgressBar;

/// The spinner appears after this time.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Runs `work`. If it takes long and stderr is a terminal, a spinner with the text `what` is shown there.
pub(crate) fn with_spinner<R>(what: &str, work: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        scope.spawn(move || {
            if waiting.recv_timeout(SPINNER_DELAY) == Err(RecvTimeoutError::Timeout) {
                let spinner = ProgressBar::new_spinner().with_message(quoted(what));
                spinner.enable_steady_tick(Duration::from_millis(100));
                // The channel closes when the work is done.
                let _ = waiting.recv();
                spinner.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

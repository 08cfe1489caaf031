//! A progress indicator for long computations.

use std::io::{self, IsTerminal as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use equipoise_model::quote::quoted;
use indicatif::ProgressBar;

/// The spinner appears after this time.
const SPINNER_DELAY: Duration = Duration::from_millis(500);

/// Runs `work`. If it takes long and stderr is a terminal, a spinner with the text `what` is shown there.
pub(crate) fn with_spinner<R>(what: &str, work: impl FnOnce() -> R) -> R {
    with_parts(what, |_| work())
}

/// As [`with_spinner`]; `work` also gets a function that names the part of the work that begins, which the spinner shows, too.
pub(crate) fn with_parts<R>(what: &str, work: impl FnOnce(&dyn Fn(&str)) -> R) -> R {
    if !io::stderr().is_terminal() {
        return work(&|_| ());
    }
    thread::scope(|scope| {
        let (begins, parts) = mpsc::channel::<String>();
        scope.spawn(move || {
            let (end, mut part) = (Instant::now() + SPINNER_DELAY, String::new());
            // The channel closes when the work is done.
            loop {
                match parts.recv_timeout(end.saturating_duration_since(Instant::now())) {
                    Ok(next) => part = next,
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
            let spinner = ProgressBar::new_spinner().with_message(text(what, &part));
            spinner.enable_steady_tick(Duration::from_millis(100));
            parts.iter().for_each(|part| spinner.set_message(text(what, &part)));
            spinner.finish_and_clear();
        });
        // The thread receives until the work is done.
        let result = work(&|part| drop(begins.send(part.into())));
        drop(begins);
        result
    })
}

fn text(what: &str, part: &str) -> String {
    if part.is_empty() { quoted(what) } else { format!("{}: {}", quoted(what), quoted(part)) }
}

//! SIGINT and SIGTERM: end the process with complete files.
//!
//! Programs and the command use this; a run inside a process of another program does not, because signals belong to the
//! process.

use std::io::{self, Write as _};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Ends this process when it receives SIGINT or SIGTERM, after unfinished files have been removed, or have their name if
/// a part of them is of use (as the load-balancing steps so far of `--lb-dump`). The exit code is 130 or 143, and a
/// sentence on stderr names the signal and the files. A second call does nothing.
///
/// [`run`](crate::run()) and [`try_run`](crate::try_run) call this if the configuration came from the command line. Only
/// on Unix; elsewhere temporary files may remain.
pub fn end_on_signals() {
    #[cfg(unix)]
    unix::end_on_signals();
}

/// How long the end of the process waits for a reader of stderr that does not read.
const PATIENCE: Duration = Duration::from_millis(200);

/// Writes the last sentence of a process to stderr, which may be closed or blocked.
pub(crate) fn say_last(sentence: String) {
    let (shown, is_shown) = mpsc::channel();
    thread::spawn(move || {
        let _ = writeln!(io::stderr(), "{sentence}");
        // The receiver waits, or the process has ended.
        let _ = shown.send(());
    });
    let _ = is_shown.recv_timeout(PATIENCE);
}

#[cfg(unix)]
mod unix {
    use equipoise_model::files;
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use std::sync::Once;
    use std::thread;

    static ONCE: Once = Once::new();

    pub(super) fn end_on_signals() {
        ONCE.call_once(|| {
            let waits = Signals::new([SIGINT, SIGTERM]).and_then(|mut signals| {
                let wait = move || signals.forever().next().map_or((), end);
                thread::Builder::new().name("signals".into()).spawn(wait)
            });
            if let Err(error) = waits {
                eprintln!(
                    "warning: signals cannot be handled ({error}); after one, temporary files may remain"
                );
            }
        });
    }

    /// Ends the process after a signal.
    fn end(signal: i32) {
        let kept = files::interrupt();
        let name = if signal == SIGINT { "SIGINT" } else { "SIGTERM" };
        let kept = if kept.is_empty() { String::new() } else { format!("; {}", kept.join(", ")) };
        super::say_last(format!("error: interrupted by {name}{kept}"));
        // Without the destructors of other threads, which may wait for files.
        signal_hook::low_level::exit(128 + signal);
    }
}

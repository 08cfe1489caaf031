//! The end of a program whose command line is refused, before its run.
//!
//! Usually all processes of a job have the same command line. If only some of them refuse it, the others wait in the initialisation
//! of their carrier: the launcher of MPICH does not notice the end of a process that has not called MPI. So a process that refuses its
//! command line connects to the others, as if it began a run, and reports there that it refuses.

use super::connect;
use crate::options::{Config, Transport};
use crate::process;
use clap::ValueEnum as _;
use parking_lot::Mutex;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long a process waits for the others to connect. They may never do so, as with other flags.
const PATIENCE: Duration = Duration::from_secs(5);

/// Ends the process of a program that refuses these words of its command line; `print` prints the error. All processes of the job
/// end, and one of those that refuse their words prints its error.
pub(crate) fn refuse(words: &[String], exit_code: i32, print: impl FnOnce() + Send + 'static) -> ! {
    let mut print = Some(print);
    if let Some(transport) = transport(words)
        && transport.has_launcher()
        && process::launched_together() > 1
    {
        print = refuse_together(transport, exit_code, print);
    }
    process::let_first_speak();
    print.into_iter().for_each(|print| print());
    std::process::exit(exit_code)
}

/// The transport that these words name.
fn transport(words: &[String]) -> Option<Transport> {
    let flag = "--transport";
    let mut named = words.iter().zip(words.iter().skip(1)).filter_map(|(word, next)| {
        if word == flag { Some(next.as_str()) } else { next.strip_prefix(flag)?.strip_prefix('=') }
    });
    named.next_back().and_then(|name| Transport::from_str(name, false).ok())
}

/// Ends the process together with the others of its job; returns `print` if they cannot be connected.
fn refuse_together<P: FnOnce() + Send + 'static>(
    transport: Transport,
    exit_code: i32,
    print: Option<P>,
) -> Option<P> {
    let print = Arc::new(Mutex::new(print));
    let alone = Arc::clone(&print);
    let end_alone = move || {
        thread::sleep(PATIENCE);
        process::let_first_speak();
        if let Some(print) = alone.lock().take() {
            print();
            std::process::exit(exit_code)
        }
    };
    // Where no thread can start, the process waits for the others as long as they take.
    let _ = thread::Builder::new().name("refusal".into()).spawn(end_alone);
    let config = Config { transport, program: true, ..Config::default() };
    if let Ok(Some(link)) = connect(&config) {
        let speaks = link.first_with(true) == Some(link.job().process);
        if let Some(print) = print.lock().take() {
            if speaks {
                print();
            }
            link.end(exit_code, speaks);
            std::process::exit(exit_code)
        }
    }
    // The other thread may be printing: then it keeps the lock until the process has ended.
    print.lock().take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transport_is_found_in_refused_words() {
        let named = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            transport(&words)
        };
        assert_eq!(named("app --pes 2 --transport mpi --balancr X"), Some(Transport::Mpi));
        assert_eq!(named("app --transport=simulated"), Some(Transport::Simulated));
        assert_eq!(named("app --transport mpi --transport=threads"), Some(Transport::Threads));
        for line in
            ["app", "app --transport", "app --transport= mpi", "app --transport tcp", "app --transports=mpi"]
        {
            assert_eq!(named(line), None, "{line}");
        }
    }
}

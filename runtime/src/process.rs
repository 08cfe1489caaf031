//! The process of a program: what it prints on stderr, its end after a signal, its end when it runs out of memory.
//!
//! Signals and aborts concern the whole process. Therefore only programs and the command handle them, and not a run inside
//! a process of another program.

use clap::ValueEnum;
use equipoise_model::files;
use equipoise_model::quote::sentences;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// Prints a warning on stderr, without control characters. A stderr that cannot be written to is ignored.
pub fn warn(sentence: &str) {
    write_stderr(&format!("warning: {}\n", sentences(sentence)));
}

/// Prints a note on stderr, without control characters. A stderr that cannot be written to is ignored.
pub(crate) fn note(sentence: &str) {
    write_stderr(&format!("note: {}\n", sentences(sentence)));
}

/// Prints an error on stderr, without control characters. A stderr that cannot be written to is ignored, so the exit code
/// remains that of the error.
pub fn print_error(sentence: &str) {
    write_stderr(&format!("error: {}\n", sentences(sentence)));
}

/// The variables in which launchers tell a process its number: Open MPI, MPICH and Intel MPI, PMIx, Slurm.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The number that a launcher of processes has given to this process; 0 without a launcher.
pub(crate) fn launched_as() -> u32 {
    RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()).unwrap_or(0)
}

/// The variables in which launchers tell a process the number of processes: Open MPI, MPICH and Intel MPI, Slurm, also with
/// PMIx.
const SIZES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"];

/// The number of processes that a launcher has started together; 1 without a launcher.
pub(crate) fn launched_together() -> u32 {
    SIZES.iter().find_map(|name| std::env::var(name).ok()?.parse().ok()).unwrap_or(1)
}

/// Before an error of a process that is not connected to others: usually all processes of a job have it, and the end of the
/// first one ends the others before they print it, too. Open MPI ends them after about 1 s. MPICH does not end processes that
/// have not called it.
pub(crate) fn let_first_speak() {
    if launched_as() != 0 {
        thread::sleep(Duration::from_millis(1300));
    }
}

/// Prints lines of PEs on stdout, each whole, in their order. A closed stdout is not an error.
pub(crate) fn print_lines(lines: &[String]) {
    let mut out = io::stdout().lock();
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    let _ = written.and_then(|()| out.flush());
}

/// Writes to stderr. Unlike `eprintln!`, which panics, it ignores errors such as a full disk: there is no other place to
/// report them.
pub(crate) fn write_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A description of the file of this program, which is another one after a build: its length and checksum, in words.
pub(crate) fn program_file() -> String {
    /// Read once, as a program can run chares many times.
    static FILE: OnceLock<String> = OnceLock::new();
    let unreadable = |_| "a program file that cannot be read".into();
    FILE.get_or_init(|| length_and_checksum().unwrap_or_else(unreadable)).clone()
}

fn length_and_checksum() -> io::Result<String> {
    let mut file = File::open(std::env::current_exe()?)?;
    let (mut length, mut checksum, mut block) = (0, crc32fast::Hasher::new(), vec![0; 1 << 16]);
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            let checksum = checksum.finalize();
            return Ok(format!("a program file of {length} bytes with the checksum {checksum:08x}"));
        }
        length += read;
        checksum.update(&block[..read]);
    }
}

/// A signal that asks for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckpointSignal {
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGTERM, which then does not end the process.
    Term,
}

/// Notes in the returned flag that a signal asks for a checkpoint. SIGTERM then does not end the process.
///
/// # Errors
/// A sentence, if the system cannot do it.
pub(crate) fn asks_for_checkpoint(signal: CheckpointSignal) -> Result<Arc<AtomicBool>, String> {
    #[cfg(unix)]
    {
        unix::asks_for_checkpoint(signal).map_err(|error| error.to_string())
    }
    #[cfg(not(unix))]
    {
        Err(format!("there is no signal {signal:?} on this system"))
    }
}

/// How long the end of the process waits for a reader of stderr that does not read.
const PATIENCE: Duration = Duration::from_millis(200);

/// Prints the last error of a process, which then ends: a blocked stderr does not delay the end for long.
pub(crate) fn print_last_error(sentence: String) {
    let (printed, is_printed) = mpsc::channel();
    let print = move || {
        print_error(&sentence);
        // The receiver waits, or the process has ended.
        let _ = printed.send(());
    };
    // Where no thread can start, nothing is printed.
    if thread::Builder::new().spawn(print).is_ok() {
        let _ = is_printed.recv_timeout(PATIENCE);
    }
}

/// Prints the error of a run whose process ends at once, and removes its unfinished files, or gives them their name if a part
/// of them is of use.
pub(crate) fn print_end(error: &impl std::fmt::Display) {
    let notes: String = files::interrupt().iter().map(|kept| format!("\nnote: {kept}")).collect();
    print_last_error(format!("{error}{notes}"));
}

/// Ends this process when it receives SIGINT or SIGTERM, after unfinished files have been removed, or have their name if
/// a part of them is of use (as the load-balancing steps so far of `--lb-dump`). A run with a report or a recording that is written at
/// its end ends first, and writes them; a second signal ends the process at once. The exit code is 130 or 143, and a
/// sentence on stderr names the signal and the files; one of several processes that were started together prints it only if
/// there are files. A second call does nothing.
///
/// [`run`](crate::run()) and [`try_run`](crate::try_run) call this if the configuration came from the command line. Only
/// on Unix; elsewhere temporary files may remain.
pub fn end_on_signals() {
    #[cfg(unix)]
    unix::end_on_signals();
}

/// A run that writes files at its end, so that the first signal does not end the process.
pub(crate) struct Stop {
    /// Ends the run early after a signal, which it is given.
    end: Box<dyn Fn(i32) + Send + Sync>,
    has_ended: AtomicBool,
}

impl Stop {
    /// Notes that the PEs have ended. What is left is to write the files, however long that takes.
    pub(crate) fn ended(&self) {
        self.has_ended.store(true, Relaxed);
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Relaxed)
    }
}

/// Lets the first SIGINT or SIGTERM of a process that handles signals ([`end_on_signals`]) call `end` instead of ending the
/// process, until what is returned is dropped. A second signal ends the process, and so does a run whose PEs go on for 10 s.
pub(crate) fn stops_on_signals(end: impl Fn(i32) + Send + Sync + 'static) -> Arc<Stop> {
    let stop = Arc::new(Stop { end: Box::new(end), has_ended: AtomicBool::new(false) });
    #[cfg(unix)]
    unix::add_stop(&stop);
    stop
}

/// The name of a signal that ends a run.
pub(crate) fn signal_name(signal: i32) -> &'static str {
    // The number of SIGINT on all systems.
    if signal == 2 { "SIGINT" } else { "SIGTERM" }
}

/// Makes a process that aborts, as after a failed allocation, end with exit code 1, as after any other failure.
///
/// Sizes are checked before memory is allocated, but not all allocations can be foreseen. The standard library has then
/// printed how many bytes could not be allocated. Only on Unix.
pub(crate) fn exit_on_abort() {
    #[cfg(unix)]
    unix::exit_on_abort();
}

#[cfg(unix)]
mod unix {
    use super::{CheckpointSignal, Stop};
    use equipoise_model::files;
    use signal_hook::consts::{SIGABRT, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::flag;
    use signal_hook::iterator::Signals;
    use std::collections::BTreeMap;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak, mpsc};
    use std::thread;
    use std::time::Duration;

    /// How long a run may take to end after a signal.
    const STOPPING: Duration = Duration::from_secs(10);

    static ONCE: Once = Once::new();

    pub(super) fn end_on_signals() {
        ONCE.call_once(|| {
            let (starts, has_started) = mpsc::channel();
            let waits = Signals::new([SIGINT, SIGTERM]).and_then(|mut signals| {
                let wait = move || {
                    // The receiver waits for it.
                    let _ = starts.send(());
                    // SIGTERM may ask for a checkpoint instead.
                    let ends = |signal: &i32| *signal != SIGTERM || !is_run_asked(SIGTERM);
                    if let Some(signal) = signals.forever().filter(ends).find(|&signal| !stops_runs(signal)) {
                        end(signal);
                    }
                };
                thread::Builder::new().name("signals".into()).spawn(wait)
            });
            // The standard library panics in a thread that finds no memory to start in: it gets its memory before this
            // thread allocates more. Nothing is received if the thread could not be created.
            let _ = has_started.recv();
            if let Err(error) = waits {
                let sentence =
                    format!("signals cannot be handled ({error}); after one, temporary files may remain");
                super::warn(&sentence);
            }
        });
    }

    /// What ends the runs of this process early.
    static STOPS: Mutex<Vec<Weak<Stop>>> = Mutex::new(Vec::new());

    pub(super) fn add_stop(stop: &Arc<Stop>) {
        let mut stops = STOPS.lock().unwrap_or_else(PoisonError::into_inner);
        stops.retain(|stop| stop.strong_count() > 0);
        stops.push(Arc::downgrade(stop));
    }

    /// Ends the runs of this process that write files at their end. Returns whether there are any.
    fn stops_runs(signal: i32) -> bool {
        let stops = std::mem::take(&mut *STOPS.lock().unwrap_or_else(PoisonError::into_inner));
        let running: Vec<_> = stops.iter().filter_map(Weak::upgrade).collect();
        if running.is_empty() {
            return false;
        }
        if super::launched_as() == 0 {
            let name = super::signal_name(signal);
            let ends = if running.iter().all(|stop| stop.has_ended()) { "has ended" } else { "ends" };
            super::note(&format!(
                "{name}: the run {ends} and writes its files; a second signal ends it at once"
            ));
        }
        running.iter().for_each(|stop| (stop.end)(signal));
        drop(running);
        // A PE that does not end its delivery would keep the process forever.
        let wait = move || {
            thread::sleep(STOPPING);
            if stops.iter().filter_map(Weak::upgrade).any(|stop| !stop.has_ended()) {
                end(signal);
            }
        };
        let waits = thread::Builder::new().name("signals".into()).spawn(wait);
        waits.is_ok()
    }

    /// The signals that ask for a checkpoint.
    static ASKING: Mutex<BTreeMap<i32, Arc<AtomicBool>>> = Mutex::new(BTreeMap::new());

    fn asking() -> MutexGuard<'static, BTreeMap<i32, Arc<AtomicBool>>> {
        ASKING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a run takes the signal: it shares the flag with the list above and the handler of the signal.
    fn is_run_asked(signal: i32) -> bool {
        asking().get(&signal).is_some_and(|asks| Arc::strong_count(asks) > 2)
    }

    pub(super) fn asks_for_checkpoint(signal: CheckpointSignal) -> io::Result<Arc<AtomicBool>> {
        let number = match signal {
            CheckpointSignal::Usr1 => SIGUSR1,
            CheckpointSignal::Usr2 => SIGUSR2,
            CheckpointSignal::Term => SIGTERM,
        };
        let mut asking = asking();
        if let Some(asks) = asking.get(&number) {
            // A signal after an earlier run is not for this one.
            if Arc::strong_count(asks) == 2 {
                asks.store(false, Relaxed);
            }
            return Ok(Arc::clone(asks));
        }
        let asks = Arc::new(AtomicBool::new(false));
        flag::register(number, Arc::clone(&asks))?;
        asking.insert(number, Arc::clone(&asks));
        Ok(asks)
    }

    /// Ends the process after a signal.
    fn end(signal: i32) {
        let kept = files::interrupt();
        let name = super::signal_name(signal);
        // A launcher ends all processes after the failure of one, which has reported it.
        if super::launched_together() == 1 || !kept.is_empty() {
            let kept = if kept.is_empty() { String::new() } else { format!("; {}", kept.join(", ")) };
            super::print_last_error(format!("interrupted by {name}{kept}"));
        }
        // Without the destructors of other threads, which may wait for files.
        signal_hook::low_level::exit(128 + signal);
    }

    pub(super) fn exit_on_abort() {
        // Fails only if the system refuses handlers; an abort then remains an abort.
        _ = flag::register_conditional_shutdown(SIGABRT, 1, Arc::new(AtomicBool::new(true)));
    }
}

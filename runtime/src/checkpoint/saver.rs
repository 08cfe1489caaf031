//! Saves the checkpoints of a run: when, and the thread that writes.

use super::file::{
    ArrayHead, Generation, Manifest, Part, ProcessFile, folder, id_of, numbers, process_path, remove,
    write_manifest, write_process,
};
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The number of complete checkpoints that are kept: the last one may have been written just before a crash of the disk.
const KEPT: usize = 2;

/// How often process 0 looks for the files of other processes.
const LOOK: Duration = Duration::from_millis(5);

/// How long process 0 waits for the files of other processes, or ten times as long as its own took. If the folder is not on a
/// file system that all computers share, they never come.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the end of a failed run waits for them: some processes may not have begun to write.
const IMPATIENCE: Duration = Duration::from_secs(1);

/// The flags about when to save.
#[derive(Clone, Debug, Default)]
pub(crate) struct When {
    /// At every sync point whose number is a multiple of this.
    pub(crate) every: Option<u32>,
    /// At the first sync point or quiescence after this time.
    pub(crate) period: Option<Duration>,
    /// Set by a signal.
    pub(crate) asked: Option<Arc<AtomicBool>>,
    /// Whether the run ends when a signal has asked for a checkpoint and the run has saved it.
    pub(crate) exits: bool,
}

/// The checkpoints of a run, as flags ask for them.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The folder of the checkpoints.
    pub(crate) dir: PathBuf,
    pub(crate) when: When,
    /// The mean time between failures, for the report.
    pub(crate) mtbf_seconds: Option<f64>,
    /// What all checkpoints of the run have in common; arrays and files are filled in.
    pub(crate) program: String,
    pub(crate) build: String,
    pub(crate) seed: u64,
    pub(crate) pes: u32,
    pub(crate) local_pes: u32,
}

/// Saves the checkpoints of one process.
pub(crate) struct Saver {
    plan: Plan,
    process: u32,
    /// Whether a checkpoint is to be saved when nothing is in flight.
    wanted: AtomicBool,
    /// Whether a signal is a reason of the checkpoint that is wanted, and of the last one.
    is_for_signal: AtomicBool,
    was_for_signal: AtomicBool,
    state: Mutex<State>,
    /// The run has failed: after this time the thread of process 0 waits no longer for files of others.
    give_up: Arc<Mutex<Option<Instant>>>,
}

#[derive(Default)]
struct State {
    /// What the PEs of this process have saved of the checkpoint in progress, or why it cannot be saved.
    parts: Vec<Result<Part, String>>,
    writer: Option<JoinHandle<Result<(), String>>>,
    /// On process 0: the number of the last checkpoint, and when it was saved.
    number: Option<u64>,
    last: Option<Instant>,
    /// Why checkpoints could not be written, and the number of those that were.
    error: Option<String>,
    saved: u64,
}

impl Saver {
    pub(crate) fn new(plan: Plan, process: u32) -> Self {
        let state = State { last: Some(Instant::now()), ..State::default() };
        Saver {
            plan,
            process,
            wanted: AtomicBool::new(false),
            is_for_signal: AtomicBool::new(false),
            was_for_signal: AtomicBool::new(false),
            state: Mutex::new(state),
            give_up: Arc::default(),
        }
    }

    /// Asks for a checkpoint when nothing is in flight; `asked` if a signal has asked any process.
    pub(crate) fn want(&self, asked: bool) {
        self.wanted.store(true, Relaxed);
        if asked {
            self.is_for_signal.store(true, Relaxed);
        }
    }

    /// Whether a signal has asked this process for a checkpoint.
    pub(crate) fn is_asked(&self) -> bool {
        self.plan.when.asked.as_ref().is_some_and(|asked| asked.load(Relaxed))
    }

    /// Whether a checkpoint is to be saved now that nothing is in flight.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Relaxed) || self.is_asked() || self.is_overdue()
    }

    fn is_overdue(&self) -> bool {
        let Some(period) = self.plan.when.period else { return false };
        self.process == 0 && self.state.lock().last.is_none_or(|last| last.elapsed() >= period)
    }

    /// Whether a checkpoint is to be saved at a sync point, from 1; `asked` if a signal has asked any process.
    pub(crate) fn is_due_at_sync(&self, number: u32, asked: bool) -> bool {
        let is_turn = self.plan.when.every.is_some_and(|every| number % every == 0);
        is_turn || asked || self.is_asked() || self.is_overdue()
    }

    /// On process 0: begins the next checkpoint. `asked` if a signal has asked any process.
    ///
    /// # Errors
    /// A sentence, if the folder cannot be read.
    pub(crate) fn begin(&self, asked: bool) -> Result<Generation, String> {
        let mut state = self.state.lock();
        let number = match state.number {
            Some(number) => number + 1,
            // Numbers of checkpoints that were not completed are not used again.
            None => match numbers(&self.plan.dir, false) {
                Ok(numbers) => numbers.last().map_or(1, |last| last + 1),
                Err(error) => return Err(self.plan.sentence(&error)),
            },
        };
        (state.number, state.last) = (Some(number), Some(Instant::now()));
        let asked = self.is_for_signal.swap(false, Relaxed) || asked || self.is_asked();
        self.was_for_signal.store(asked, Relaxed);
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let id = crate::location::splitmix(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40);
        Ok(Generation { number, id })
    }

    /// Whether the run ends, now that all PEs have saved themselves.
    pub(crate) fn is_end(&self) -> bool {
        self.plan.when.exits && self.was_for_signal.load(Relaxed)
    }

    /// The number of the last checkpoint that began.
    pub(crate) fn last(&self) -> u64 {
        self.state.lock().number.unwrap_or_default()
    }

    /// Adds what a PE of this process has saved, or why it cannot. The last PE, of `pes`, starts the thread that writes.
    pub(crate) fn add(
        &self,
        generation: Generation,
        part: Result<Part, String>,
        pes: usize,
        arrays: Vec<ArrayHead>,
        steps: u32,
    ) {
        self.wanted.store(false, Relaxed);
        if let Some(asked) = &self.plan.when.asked {
            asked.store(false, Relaxed);
        }
        let mut state = self.state.lock();
        state.parts.push(part);
        if state.parts.len() < pes {
            return;
        }
        let parts: Result<Vec<Part>, String> = std::mem::take(&mut state.parts).into_iter().collect();
        // The memory of one checkpoint at a time: the run waits until the previous one is written.
        self.join(&mut state);
        let (plan, process, give_up) = (self.plan.clone(), self.process, Arc::clone(&self.give_up));
        let write = move || {
            let written = plan.write(generation, process, parts, (arrays, steps), &give_up);
            written.map_err(|error| {
                let sentence = plan.sentence(&error);
                crate::process::warn(&sentence);
                sentence
            })
        };
        match std::thread::Builder::new().name("checkpoint".into()).spawn(write) {
            Ok(writer) => state.writer = Some(writer),
            Err(error) => state.error = Some(self.plan.sentence(&error)),
        }
    }

    fn join(&self, state: &mut State) {
        let Some(writer) = state.writer.take() else { return };
        match writer.join() {
            Ok(Ok(())) => state.saved += 1,
            Ok(Err(sentence)) => state.error = Some(sentence),
            Err(_) => state.error = Some(self.plan.sentence(&"the thread that writes panicked")),
        }
    }

    /// Waits until all files are written, at the end of a run that `failed` or not. Returns the number of checkpoints that
    /// were written, and why the last one that failed did.
    pub(crate) fn finish(&self, failed: bool) -> (u64, Option<String>) {
        if failed {
            *self.give_up.lock() = Some(Instant::now() + IMPATIENCE);
        }
        let mut state = self.state.lock();
        self.join(&mut state);
        (state.saved, state.error.take())
    }
}

impl Plan {
    fn sentence(&self, error: &dyn std::fmt::Display) -> String {
        format!(
            "--checkpoint {}: a checkpoint cannot be saved: {error}; free some space or name another folder",
            self.dir.display()
        )
    }

    /// Writes the file of this process; on process 0 also the manifest, when all files are there.
    fn write(
        &self,
        generation: Generation,
        process: u32,
        parts: Result<Vec<Part>, String>,
        (arrays, steps): (Vec<ArrayHead>, u32),
        give_up: &Mutex<Option<Instant>>,
    ) -> io::Result<()> {
        let folder = folder(&self.dir, generation.number);
        let begin = Instant::now();
        let written = parts.map_err(io::Error::other).and_then(|mut parts| {
            parts.sort_unstable_by_key(|part| part.index.pe);
            write_process(&folder, generation, process, &parts)
        });
        if let Err(error) = written {
            // Tells process 0, if this can be written.
            let _ = fs::write(failure_path(&folder, process), error.to_string());
            return Err(error);
        }
        if process != 0 {
            return Ok(());
        }
        let processes = self.pes / self.local_pes;
        let latest = Instant::now() + PATIENCE.max(begin.elapsed() * 10);
        let mut files = Vec::new();
        for other in 0..processes {
            while id_of(&folder, other) != Some(generation.id) {
                if let Ok(reason) = fs::read_to_string(failure_path(&folder, other)) {
                    return Err(io::Error::other(format!("process {other}: {reason}")));
                }
                let end = give_up.lock().map_or(latest, |end| end.min(latest));
                if Instant::now() >= end {
                    return Err(io::Error::other(format!(
                        "process {other} has not written its file; use a folder that all computers share"
                    )));
                }
                std::thread::sleep(LOOK);
            }
            let file = ProcessFile::open(&folder, generation, other);
            files.push(file.map_err(|error| io::Error::other(error.to_string()))?.head);
        }
        let manifest = Manifest {
            generation,
            program: self.program.as_str().into(),
            build: self.build.as_str().into(),
            seed: self.seed,
            pes: self.pes,
            local_pes: self.local_pes,
            steps,
            arrays,
            files,
        };
        write_manifest(&folder, &manifest)?;
        self.prune()
    }

    /// Removes all but the last complete checkpoints, and what is left of older ones that were not completed.
    fn prune(&self) -> io::Result<()> {
        let complete = numbers(&self.dir, true)?;
        let Some(&oldest) = complete.iter().rev().take(KEPT).next_back() else { return Ok(()) };
        for number in numbers(&self.dir, false)?.into_iter().filter(|&number| number < oldest) {
            remove(&folder(&self.dir, number))?;
        }
        Ok(())
    }
}

/// Where a process says why it cannot write its file.
fn failure_path(folder: &Path, process: u32) -> PathBuf {
    process_path(folder, process).with_extension("failed")
}

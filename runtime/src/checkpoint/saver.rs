//! Saves the checkpoints of a run: when, and the thread that writes.

use super::Checkpoint;
use super::file::{
    ArrayHead, Generation, Manifest, Part, ProcessFile, before, folder, id_of, manifest_path, numbers,
    process_path, remove, sync_folder, write_manifest, write_process,
};
use equipoise_model::files::NewFile;
use equipoise_model::random::splitmix;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs;
use std::io;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// How often process 0 looks for the files of other processes.
const LOOK: Duration = Duration::from_millis(5);

/// How long process 0 waits while the files of other processes do not grow. If the folder is not on a file system that all
/// computers share, they never come.
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
    /// The number of the first checkpoint.
    pub(crate) first: u64,
    /// The checkpoint before the first one: the one with which the run begins, if it is in this folder.
    pub(crate) before: Option<Generation>,
    /// The mean time between failures, for the report.
    pub(crate) mtbf_seconds: Option<f64>,
    /// What all checkpoints of the run have in common; arrays and files are filled in.
    pub(crate) program: String,
    pub(crate) build: String,
    pub(crate) seed: u64,
    pub(crate) pes: u32,
    pub(crate) local_pes: u32,
}

/// Why a checkpoint is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reason {
    /// The program or a flag asks for it.
    Program,
    /// A signal asks for it, after which the run may end.
    Signal,
}

/// What process 0 does about checkpoints when nothing is in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// All PEs save themselves.
    Save(Generation),
    /// The run goes on.
    Continue,
    /// The run ends, because a signal has asked for the checkpoint of this number, which is complete.
    End(u64),
}

/// Saves the checkpoints of one process.
pub(crate) struct Saver {
    plan: Plan,
    process: u32,
    /// Whether the program or a flag wants a checkpoint when nothing is in flight.
    wanted: AtomicBool,
    /// On process 0: whether another process has reported a signal. Simulated processes share the flag of the signal itself.
    reported: AtomicBool,
    state: Mutex<State>,
    /// The run has failed: after this time the thread of process 0 waits no longer for files of others.
    give_up: Arc<Mutex<Option<Instant>>>,
}

struct State {
    /// What the PEs of this process have saved of the checkpoint in progress, or why it cannot be saved.
    parts: Vec<Result<Part, String>>,
    writer: Option<JoinHandle<Written>>,
    /// When the last checkpoint was written; before that, when the run began.
    last: Instant,
    /// The number of checkpoints that were written, and why the last one was not.
    saved: u64,
    error: Option<String>,
    /// On process 0: the number of the last checkpoint that began.
    number: Option<u64>,
    /// On process 0: the last complete checkpoint, or the one with which the run began.
    before: Option<Generation>,
    /// On process 0: the reason of the checkpoint since which the run has not continued.
    unsent: Option<Reason>,
}

/// The checkpoint that was written, or why it was not, and the time at which that ended.
struct Written {
    result: Result<Generation, String>,
    at: Instant,
}

impl Saver {
    pub(crate) fn new(plan: Plan, process: u32) -> Self {
        let state = State {
            parts: Vec::new(),
            writer: None,
            last: Instant::now(),
            saved: 0,
            error: None,
            number: None,
            before: plan.before,
            unsent: None,
        };
        Saver {
            plan,
            process,
            wanted: AtomicBool::new(false),
            reported: AtomicBool::new(false),
            state: Mutex::new(state),
            give_up: Arc::default(),
        }
    }

    /// Asks for a checkpoint when nothing is in flight.
    pub(crate) fn want(&self, reason: Reason) {
        let flag = match reason {
            Reason::Program => &self.wanted,
            Reason::Signal => &self.reported,
        };
        flag.store(true, Relaxed);
    }

    /// Takes the reason why this process wants a checkpoint, if it does. Other processes report it to process 0.
    pub(crate) fn take_reason(&self) -> Option<Reason> {
        let take = |flag: &AtomicBool| flag.load(Relaxed) && flag.swap(false, Relaxed);
        let is_wanted = take(&self.wanted);
        let is_asked = self.plan.when.asked.as_deref().is_some_and(take);
        if take(&self.reported) || is_asked {
            Some(Reason::Signal)
        } else {
            is_wanted.then_some(Reason::Program)
        }
    }

    /// On process 0: whether a checkpoint is to be saved at a sync point, from 1.
    pub(crate) fn is_due_at_sync(&self, number: u32) -> bool {
        let is_turn = self.plan.when.every.is_some_and(|every| number % every == 0);
        let is_asked = self.plan.when.asked.as_ref().is_some_and(|asked| asked.load(Relaxed));
        is_turn || is_asked || self.reported.load(Relaxed) || self.is_overdue(&mut self.state.lock())
    }

    /// Whether process 0 waits for an opportunity to save a checkpoint, because of a signal or the time.
    pub(crate) fn is_due(&self) -> bool {
        self.process == 0
            && (self.take_reason() == Some(Reason::Signal) || self.is_overdue(&mut self.state.lock()))
    }

    /// Whether the time between checkpoints is over. It begins when the last one is written: a run that writes longer
    /// than this time would do nothing else.
    fn is_overdue(&self, state: &mut State) -> bool {
        let Some(period) = self.plan.when.period else { return false };
        if state.writer.as_ref().is_some_and(JoinHandle::is_finished) {
            self.join(state);
        }
        state.writer.is_none() && state.last.elapsed() >= period
    }

    /// On process 0: what the run does now that nothing is in flight. It saves itself only once before it goes on. A
    /// signal in between asks for what has just been saved.
    pub(crate) fn at_quiescence(&self) -> Next {
        let mut state = self.state.lock();
        let reason = self.take_reason();
        if let Some(unsent) = state.unsent {
            let is_end = self.plan.when.exits && [Some(unsent), reason].contains(&Some(Reason::Signal));
            // The run does not end before its state is on the disk.
            if is_end && self.join(&mut state) {
                return Next::End(state.number.unwrap_or_default());
            }
            return Next::Continue;
        }
        if reason.is_none() && !self.is_overdue(&mut state) {
            return Next::Continue;
        }
        let number = state.number.map_or(self.plan.first, |number| number + 1);
        (state.number, state.unsent) = (Some(number), reason.or(Some(Reason::Program)));
        let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let id = splitmix(since.as_nanos() as u64 ^ u64::from(std::process::id()) << 40);
        Next::Save(Generation { number, id })
    }

    /// The run goes on after quiescence.
    pub(crate) fn continues(&self) {
        self.state.lock().unsent = None;
    }

    /// Waits until the previous checkpoint is written, before a PE encodes its state: there is memory for one at a time.
    pub(crate) fn wait_for_previous(&self) {
        self.join(&mut self.state.lock());
    }

    /// Adds what a PE of this process has saved, or why it cannot. The last PE, of `pes`, starts the thread that writes.
    pub(crate) fn add(
        &self,
        generation: Generation,
        part: Result<Part, String>,
        pes: usize,
        arrays: Vec<ArrayHead>,
    ) {
        let mut state = self.state.lock();
        state.parts.push(part);
        if state.parts.len() < pes {
            return;
        }
        let parts: Result<Vec<Part>, String> = std::mem::take(&mut state.parts).into_iter().collect();
        self.join(&mut state);
        let plan = Plan { before: state.before, ..self.plan.clone() };
        let (process, give_up) = (self.process, Arc::clone(&self.give_up));
        let write = move || {
            let result = plan.write(generation, process, parts, arrays, &give_up).map(|()| generation);
            Written { result, at: Instant::now() }
        };
        match std::thread::Builder::new().name("checkpoint".into()).spawn(write) {
            Ok(writer) => state.writer = Some(writer),
            Err(error) => {
                let reason = format!("the thread that writes cannot start: {error}; use fewer PEs");
                // Tells process 0.
                let refused = self.plan.write(generation, process, Err(reason), Vec::new(), &self.give_up);
                state.error = refused.err();
            }
        }
    }

    /// Waits until the last checkpoint is written; returns whether it was.
    fn join(&self, state: &mut State) -> bool {
        if let Some(writer) = state.writer.take() {
            let written = writer.join().unwrap_or_else(|_| Written {
                result: Err(self.plan.unwritten(&"the thread that writes panicked (please report this bug)")),
                at: Instant::now(),
            });
            state.last = written.at;
            state.saved += u64::from(written.result.is_ok());
            match written.result {
                Ok(generation) => (state.before, state.error) = (Some(generation), None),
                Err(error) => state.error = Some(error),
            }
        }
        state.error.is_none()
    }

    /// Whether the run has saved itself. Waits for the checkpoint that is being written.
    pub(crate) fn has_saved(&self) -> bool {
        let mut state = self.state.lock();
        self.join(&mut state);
        state.saved > 0
    }

    /// Whether only `at_checkpoint` of the program asks for checkpoints.
    pub(crate) fn is_for_program(&self) -> bool {
        let When { every, period, asked, .. } = &self.plan.when;
        self.process == 0 && every.is_none() && period.is_none() && asked.is_none()
    }

    /// Waits until all files are written, at the end of a run that `failed` or not. Returns the number of checkpoints that
    /// were written, and why the last one was not.
    pub(crate) fn finish(&self, failed: bool) -> (u64, Option<String>) {
        if failed {
            *self.give_up.lock() = Some(Instant::now() + IMPATIENCE);
        }
        let mut state = self.state.lock();
        self.join(&mut state);
        (state.saved, state.error.take())
    }
}

/// An error of the file system with its remedy.
fn with_remedy(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space or name another folder"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "name a folder that can be written, or change its permissions"
        }
        _ => "name another folder",
    };
    format!("{error}; {remedy}")
}

impl Plan {
    /// The sentence that a checkpoint cannot be saved; the reason has the remedy.
    fn unwritten(&self, reason: &dyn Display) -> String {
        format!("--checkpoint {}: a checkpoint cannot be saved: {reason}", self.dir.display())
    }

    /// Writes the file of this process, and on process 0 the manifest, when all files are there.
    ///
    /// # Errors
    /// A sentence, which has been printed: by process 0 if this process can tell it to process 0.
    fn write(
        &self,
        generation: Generation,
        process: u32,
        parts: Result<Vec<Part>, String>,
        arrays: Vec<ArrayHead>,
        give_up: &Mutex<Option<Instant>>,
    ) -> Result<(), String> {
        let folder = folder(&self.dir, generation.number);
        let written = fs::create_dir_all(&folder).map_err(|error| with_remedy(&error)).and_then(|()| {
            let mut parts = parts?;
            parts.sort_unstable_by_key(|part| part.index.pe);
            write_process(&folder, generation, process, &parts).map_err(|error| with_remedy(&error))?;
            Ok(parts.first().map_or(0, |part| part.steps))
        });
        if process != 0 {
            let Err(reason) = written else { return Ok(()) };
            let sentence = self.unwritten(&reason);
            if write_whole(&failure_path(&folder, process), &reason).is_err() {
                crate::process::warn(&sentence);
            }
            return Err(sentence);
        }
        // Also after an error: a folder that is removed must not come back with the file of another process.
        let others = self.wait_for_others(&folder, generation, give_up);
        let complete = written.and_then(|steps| {
            others?;
            self.complete(&folder, generation, steps, arrays)
        });
        if let Err(reason) = complete {
            let sentence = self.unwritten(&reason);
            crate::process::warn(&sentence);
            // What is left takes space. If it cannot be removed, the next complete checkpoint tries it again.
            let _ = remove(&folder);
            return Err(sentence);
        }
        if let Err(error) = self.prune(&folder, generation) {
            crate::process::warn(&format!(
                "--checkpoint {}: checkpoint {} is saved, but what is older cannot be removed: {error}; remove it yourself",
                self.dir.display(),
                generation.number
            ));
        }
        Ok(())
    }

    /// Waits, on process 0, until all other processes have written their files, or cannot, or write no more.
    ///
    /// # Errors
    /// The first reason why a process has not written its file.
    fn wait_for_others(
        &self,
        folder: &Path,
        generation: Generation,
        give_up: &Mutex<Option<Instant>>,
    ) -> Result<(), String> {
        let mut result = Ok(());
        let (mut bytes, mut latest) = (0, Instant::now() + PATIENCE);
        for other in 1..self.pes / self.local_pes {
            while id_of(folder, other) != Some(generation.id) {
                if let Ok(reason) = fs::read_to_string(failure_path(folder, other)) {
                    result = result.and(Err(format!("process {other}: {reason}")));
                    break;
                }
                let written = bytes_in(folder);
                if written != bytes {
                    (bytes, latest) = (written, Instant::now() + PATIENCE);
                }
                let end = give_up.lock().map_or(latest, |end| end.min(latest));
                if Instant::now() >= end {
                    result = result.and(Err(format!(
                        "process {other} has not written its file; use a folder that all computers share"
                    )));
                    break;
                }
                std::thread::sleep(LOOK);
            }
        }
        result
    }

    /// Writes the manifest, on process 0. The files of all processes are there.
    ///
    /// # Errors
    /// A reason with its remedy.
    fn complete(
        &self,
        folder: &Path,
        generation: Generation,
        steps: u32,
        arrays: Vec<ArrayHead>,
    ) -> Result<(), String> {
        let head = |process| match ProcessFile::open(folder, generation, process) {
            Ok(file) => Ok(file.head),
            Err(error) => Err(format!("the file of process {process} {error}")),
        };
        let manifest = Manifest {
            generation,
            before: self.before,
            program: self.program.as_str().into(),
            build: self.build.as_str().into(),
            seed: self.seed,
            pes: self.pes,
            local_pes: self.local_pes,
            steps,
            arrays,
            files: (0..self.pes / self.local_pes).map(head).collect::<Result<_, String>>()?,
        };
        write_manifest(folder, &manifest).map_err(|error| with_remedy(&error))
    }

    /// Removes what is no longer needed when a checkpoint is complete. Two are kept, because the last one may have been written
    /// just before a crash of the disk: this one and the one before. What is before these two goes, and between them what was
    /// not completed. All other complete checkpoints stay: other runs have saved them, or a run went on from an older one.
    fn prune(&self, newest: &Path, generation: Generation) -> io::Result<()> {
        // Since its first checkpoint, because it may have failed to remove one.
        let since = self.before.map_or(self.first, |before| self.first.min(before.number + 1));
        let mut incomplete = numbers(&self.dir, false)?;
        incomplete.retain(|&number| {
            let manifest = manifest_path(&folder(&self.dir, number));
            (since..generation.number).contains(&number) && manifest.try_exists().is_ok_and(|exists| !exists)
        });
        let chain: Vec<PathBuf> =
            successors(Some(newest.to_owned()), |folder| before(folder)).skip(2).collect();
        // The oldest first: the manifest of each one names the one before.
        chain.iter().rev().try_for_each(|folder| remove(folder))?;
        incomplete.iter().try_for_each(|&number| remove(&folder(&self.dir, number)))
    }
}

/// The number of the first checkpoint of a run that saves itself in this folder, and the checkpoint before it: the one with which
/// the run begins, if it is in this folder.
///
/// # Errors
/// If the folder cannot be read, or there is no further number.
pub(crate) fn numbering(dir: &Path, restart: Option<&Checkpoint>) -> io::Result<(u64, Option<Generation>)> {
    // Numbers of checkpoints that were not completed are not used again.
    let first = match numbers(dir, false)?.last() {
        None => 1,
        Some(&u64::MAX) => return Err(io::Error::other("it has a checkpoint with the last number")),
        Some(last) => last + 1,
    };
    let is_here = |saved: &&Checkpoint| {
        let here = folder(dir, saved.number()).canonicalize();
        here.is_ok_and(|here| saved.folder().canonicalize().is_ok_and(|folder| folder == here))
    };
    Ok((first, restart.filter(is_here).map(Checkpoint::generation)))
}

/// Makes the folder of the checkpoints, and moves its name to the disk.
///
/// # Errors
/// If the folder cannot be made.
pub(crate) fn make_folder(dir: &Path) -> io::Result<()> {
    let missing = dir.ancestors().take_while(|it| !it.as_os_str().is_empty() && !it.exists()).count();
    fs::create_dir_all(dir)?;
    // The folder above each new one has its name.
    dir.canonicalize()?.ancestors().skip(1).take(missing).try_for_each(sync_folder)
}

/// The bytes of the files in a folder; 0 if that cannot be found.
fn bytes_in(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Where a process says why it cannot write its file.
fn failure_path(folder: &Path, process: u32) -> PathBuf {
    process_path(folder, process).with_extension("failed")
}

/// Writes a file that appears when it is whole.
fn write_whole(path: &Path, content: &str) -> io::Result<()> {
    let mut file = NewFile::create(path)?;
    file.append(content.as_bytes())?;
    file.finish()
}

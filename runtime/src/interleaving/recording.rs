//! Records the order of deliveries.
//!
//! Every PE appends its events to a buffer of its own. A buffer becomes a frame of the file when it is full, and a
//! thread writes all buffers now and then, so that a run that is killed leaves all but its last moments.

use super::Executions;
use super::event::Event;
use super::file::{ArrayHead, End, Frame, Head, MAGIC, OrderFileError, PeEnd};
use crossbeam_utils::CachePadded;
use equipoise_model::files::NewFile;
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

/// A buffer of a PE becomes a frame at this size.
const FRAME_BYTES: usize = 1 << 16;
/// The longest time that an event is only in memory.
const INTERVAL: Duration = Duration::from_millis(100);

/// The recording of a run.
pub(crate) struct Recording {
    shared: Arc<Shared>,
    writer: Mutex<Writer>,
}

/// The thread that writes all buffers now and then.
enum Writer {
    /// No PE has begun.
    Before,
    Runs(JoinHandle<()>),
    Over,
}

struct Shared {
    path: PathBuf,
    /// Locked before the buffer of a PE, so that the frames of a PE are in order.
    output: Mutex<Output>,
    logs: Box<[CachePadded<Log>]>,
    /// Whether the run is over.
    over: Mutex<bool>,
    ends: Condvar,
}

struct Output {
    /// None once the file is complete.
    file: Option<NewFile>,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
}

/// The events of one PE that are not in the file yet.
#[derive(Default)]
struct Log {
    bytes: Mutex<Vec<u8>>,
    /// Default answers since the last event. Only its PE writes it.
    defaults: AtomicU64,
    /// The value of `defaults` in the last frame.
    written: AtomicU64,
    end: Mutex<PeEnd>,
}

impl Recording {
    /// Creates the file. It replaces an earlier one when the run ends.
    pub(crate) fn create(path: &Path, head: Head) -> Result<Self, OrderFileError> {
        let unwritten = |source| OrderFileError::Write { path: path.to_owned(), source };
        let logs = (0..head.pes).map(|_| CachePadded::default()).collect();
        let file = NewFile::create(path).map_err(unwritten)?;
        let mut output = Output { file: Some(file), error: None };
        output.append(&MAGIC);
        output.write(&Frame::Head(head));
        if let Some(error) = output.error {
            return Err(unwritten(error));
        }
        let shared = Shared {
            path: path.to_owned(),
            output: Mutex::new(output),
            logs,
            over: Mutex::default(),
            ends: Condvar::new(),
        };
        Ok(Recording { shared: Arc::new(shared), writer: Mutex::new(Writer::Before) })
    }

    /// Every PE calls this before its first event. The first call writes the arrays and starts the thread.
    pub(crate) fn begin(&self, arrays: impl FnOnce() -> Vec<ArrayHead>) {
        let mut writer = self.writer.lock();
        if matches!(*writer, Writer::Before) {
            self.shared.output.lock().write(&Frame::Arrays(arrays()));
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("order file".into());
            // Without the thread, buffers are written when they are full.
            *writer = thread.spawn(move || shared.write_now_and_then()).map_or(Writer::Over, Writer::Runs);
        }
    }

    /// The PEs are over, and PE `ended_by` ended the run. Returns why the file is not complete.
    pub(crate) fn finish(&self, ended_by: Option<u32>) -> Option<String> {
        let shared = &self.shared;
        *shared.over.lock() = true;
        shared.ends.notify_all();
        if let Writer::Runs(thread) = std::mem::replace(&mut *self.writer.lock(), Writer::Over) {
            // It does not panic; if it did, the last frames would be written below all the same.
            let _ = thread.join();
        }
        (0..shared.logs.len()).for_each(|pe| shared.write(pe));
        let pes = shared.logs.iter().map(|log| *log.end.lock()).collect();
        let mut output = shared.output.lock();
        output.write(&Frame::End(End { ended_by, pes }));
        let finished = output.file.take().map_or(Ok(()), NewFile::finish);
        let source = output.error.take().or(finished.err())?;
        Some(OrderFileError::Write { path: shared.path.clone(), source }.to_string())
    }
}

impl Shared {
    fn write_now_and_then(&self) {
        let mut over = self.over.lock();
        while !*over {
            self.ends.wait_for(&mut over, INTERVAL);
            (0..self.logs.len()).for_each(|pe| self.write(pe));
        }
    }

    /// Writes what a PE has noted since its last frame.
    fn write(&self, pe: usize) {
        let log = &self.logs[pe];
        let mut output = self.output.lock();
        let (bytes, defaults) = {
            let mut bytes = log.bytes.lock();
            (std::mem::take(&mut *bytes), log.defaults.load(Relaxed))
        };
        if !bytes.is_empty() || defaults != log.written.load(Relaxed) {
            log.written.store(defaults, Relaxed);
            output.write(&Frame::Events { pe: pe as u32, bytes, defaults });
        }
    }
}

impl Output {
    fn write(&mut self, frame: &Frame) {
        match frame.bytes() {
            Ok(bytes) => self.append(&bytes),
            Err(refused) => _ = self.error.get_or_insert(io::Error::other(refused.to_string())),
        }
    }

    fn append(&mut self, bytes: &[u8]) {
        let Some(file) = self.file.as_mut().filter(|_| self.error.is_none()) else { return };
        self.error = file.append(bytes).err();
        if self.error.is_none() {
            // A signal ends the process here: a replay repeats what is in the file.
            file.keep(&[], "the order of deliveries so far".into());
        }
    }
}

/// The recording of one PE.
pub(crate) struct PeRecording {
    shared: Arc<Shared>,
    pe: u32,
    /// Whether the PE has taken mail in this turn.
    took: Cell<bool>,
    pub(super) executions: Executions,
}

impl PeRecording {
    /// The recording of PE `pe`.
    pub(crate) fn new(recording: &Recording, pe: u32) -> Self {
        let shared = Arc::clone(&recording.shared);
        PeRecording { shared, pe, took: Cell::new(false), executions: Executions::default() }
    }

    fn log(&self) -> &Log {
        &self.shared.logs[self.pe as usize]
    }

    /// Notes a default answer.
    pub(crate) fn note_default(&self) {
        let defaults = &self.log().defaults;
        defaults.store(defaults.load(Relaxed) + 1, Relaxed);
    }

    /// Notes another answer.
    pub(crate) fn note(&self, event: &Event) {
        let log = self.log();
        let mut bytes = log.bytes.lock();
        event.encode(log.defaults.load(Relaxed), &mut bytes);
        log.defaults.store(0, Relaxed);
        let full = bytes.len() >= FRAME_BYTES;
        drop(bytes);
        if full {
            self.shared.write(self.pe as usize);
        }
    }

    /// Notes `count` messages from a mailbox.
    pub(super) fn note_mail(&self, mailbox: u32, count: u32) {
        let (same_turn, check) = (self.took.replace(true), self.executions.check());
        self.note(&Event::Mail { same_turn, mailbox, count, check });
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&self) {
        self.took.set(false);
    }

    /// The PE is over.
    pub(crate) fn end(&self, panicked: bool) {
        *self.log().end.lock() = PeEnd::new(&self.executions, panicked);
    }
}

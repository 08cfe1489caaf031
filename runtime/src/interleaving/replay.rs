//! Repeats a recorded order.

use super::Executions;
use super::event::{Event, Plan};
use super::file::{ArrayHead, Head, OrderFile, OrderFileError, PeEnd};
use equipoise_model::table::count;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

/// The payload with which a PE unwinds that must stop within a turn: its events are over, or it diverged.
pub(crate) struct Halted;

/// A recorded run to repeat.
pub(crate) struct Replay {
    file: Mutex<OrderFile>,
    head: Head,
    arrays: Option<Vec<ArrayHead>>,
    /// The PE that ended the run; the inner value is none if it was interrupted, the outer one if the file is cut.
    ended_by: Option<Option<u32>>,
    path: String,
}

impl Replay {
    /// Opens the file of a recorded run.
    pub(crate) fn open(path: &Path) -> Result<Self, OrderFileError> {
        let file = OrderFile::open(path)?;
        Ok(Replay {
            head: file.head.clone(),
            arrays: file.arrays.clone(),
            ended_by: file.end.as_ref().map(|end| end.ended_by),
            path: file.path().display().to_string(),
            file: Mutex::new(file),
        })
    }

    /// The number of PEs.
    pub(crate) fn pes(&self) -> usize {
        self.head.pes as usize
    }

    /// The PE that ended the recorded run, if one did and the file is not cut.
    pub(crate) fn ended_by(&self) -> Option<u32> {
        self.ended_by.flatten()
    }

    /// Whether the file ends before the run.
    pub(crate) fn is_cut(&self) -> bool {
        self.ended_by.is_none()
    }

    /// The command line of the recorded run.
    fn program(&self) -> String {
        format!("`{}`", String::from_utf8_lossy(&self.head.program).escape_debug())
    }

    /// A sentence that begins with the flag and the file.
    pub(crate) fn sentence(&self, what: &str) -> String {
        format!("--replay-order {}: {what}", self.path)
    }

    /// Compares the flags of the replay with those of the run; the difference, if there is one.
    pub(crate) fn difference(&self, now: &Head) -> Option<String> {
        let then = &self.head;
        let what = if then.pes != now.pes {
            format!("the run has {}, and --pes is {}; leave out --pes", count(then.pes, "PE"), now.pes)
        } else if then.seed != now.seed {
            format!("the run has the seed {}, and this one {}; give --seed {0}", then.seed, now.seed)
        } else if then.initial != now.initial {
            "the run had another initial placement; give the same --initial".into()
        } else if then.encodes != now.encodes {
            "the run had another --migration; give the same".into()
        } else if then.balances && !now.balances {
            "the run had load-balancing steps; give the same --balancer, --lb-schedule or --lb-dump".into()
        } else if now.balances && !then.balances {
            "the run had no load-balancing steps; leave out --balancer, --lb-schedule and --lb-dump".into()
        } else {
            return None;
        };
        Some(self.sentence(&format!("{what} (the run was {})", self.program())))
    }

    /// Compares the arrays of the replay with those of the run; the difference, if there is one.
    pub(crate) fn array_difference(&self, now: &[ArrayHead]) -> Option<String> {
        let Some(then) = &self.arrays else {
            let what = if self.is_cut() {
                "the file ends before the first delivery; there is nothing to repeat"
            } else {
                "the setup of the recorded run failed, and that of this run did not; start the same program \
                 with the same flags and input"
            };
            return Some(self.sentence(what));
        };
        if then == now {
            return None;
        }
        let list = |arrays: &[ArrayHead]| {
            let name = |array: &ArrayHead| {
                format!("{} of {}", String::from_utf8_lossy(&array.name).escape_debug(), array.count)
            };
            let names: Vec<String> = arrays.iter().take(8).map(name).collect();
            if names.is_empty() { "no arrays".into() } else { names.join(", ") }
        };
        let (old, new) = (list(then), list(now));
        let entries = if old == new { " with other entries" } else { "" };
        Some(self.sentence(&format!(
            "the run has the arrays {old}; this program has {new}{entries}; start the program that was recorded \
             with its flags ({})",
            self.program()
        )))
    }
}

/// The replay of one PE.
pub(crate) struct PeReplay {
    replay: Arc<Replay>,
    pe: u32,
    cursor: RefCell<Cursor>,
    /// Default answers before the next event, or before the end.
    defaults: Cell<u64>,
    /// Why the PE cannot continue.
    fault: RefCell<Option<String>>,
    pub(super) executions: Executions,
}

/// A position in the events of a PE.
struct Cursor {
    bytes: Vec<u8>,
    at: usize,
    /// The number of the next frame.
    frame: usize,
    /// Default answers after the last event of the frame.
    trailing: u64,
    next: Option<Event>,
    /// The number of the next event, from 1.
    number: u64,
}

impl PeReplay {
    /// The replay of PE `pe`.
    pub(crate) fn new(replay: &Arc<Replay>, pe: u32) -> Self {
        let cursor = Cursor { bytes: Vec::new(), at: 0, frame: 0, trailing: 0, next: None, number: 0 };
        let it = PeReplay {
            replay: Arc::clone(replay),
            pe,
            cursor: RefCell::new(cursor),
            defaults: Cell::new(0),
            fault: RefCell::default(),
            executions: Executions::default(),
        };
        it.advance();
        it
    }

    /// Goes to the next event.
    pub(crate) fn advance(&self) {
        if let Err(error) = self.read_next() {
            self.cursor.borrow_mut().next = None;
            self.defaults.set(0);
            self.fault.replace(Some(self.replay.sentence(&error)));
        }
    }

    fn read_next(&self) -> Result<(), String> {
        let mut cursor = self.cursor.borrow_mut();
        let cursor = &mut *cursor;
        cursor.number += 1;
        while cursor.at == cursor.bytes.len() {
            let frame = self.replay.file.lock().events(self.pe, cursor.frame);
            let Some((bytes, trailing)) = frame.map_err(|error| error.to_string())? else {
                cursor.next = None;
                self.defaults.set(cursor.trailing);
                return Ok(());
            };
            (cursor.bytes, cursor.trailing, cursor.at) = (bytes, trailing, 0);
            cursor.frame += 1;
        }
        let mut rest = &cursor.bytes[cursor.at..];
        let decoded = Event::decode(&mut rest);
        let (defaults, event) = decoded.ok_or("the file is damaged: an event cannot be decoded")?;
        cursor.at = cursor.bytes.len() - rest.len();
        cursor.next = Some(event);
        self.defaults.set(defaults);
        Ok(())
    }

    /// Whether the next answer is the default; then it counts as given.
    pub(crate) fn is_default(&self) -> bool {
        let left = self.defaults.get();
        self.defaults.set(left.saturating_sub(1));
        left > 0
    }

    /// The next event; none if default answers come before it, or there is none.
    pub(crate) fn next(&self) -> Option<Event> {
        let next = &self.cursor.borrow().next;
        next.clone().filter(|_| self.defaults.get() == 0)
    }

    /// Whether the PE has no more events, and no more default answers.
    pub(crate) fn is_over(&self) -> bool {
        self.defaults.get() == 0 && self.has_no_event()
    }

    fn has_no_event(&self) -> bool {
        self.cursor.borrow().next.is_none()
    }

    /// The number of messages to take from this mailbox, if the next event names it.
    pub(super) fn batch(&self, mailbox: u32) -> Option<u32> {
        match self.next() {
            Some(Event::Mail { mailbox: it, count, .. }) if it == mailbox => Some(count),
            _ => None,
        }
    }

    /// Whether the executions so far are those of the recorded run, as far as the next event shows.
    pub(crate) fn check(&self) {
        if let Some(Event::Mail { check, .. }) = self.next()
            && check != self.executions.check()
        {
            self.diverge("the deliveries before it were others");
        }
    }

    /// Answers whether no other PE has sent work, within a turn.
    pub(super) fn quiet(&self) -> bool {
        if self.is_default() {
            return true;
        }
        match self.next() {
            Some(Event::Break) => {
                self.advance();
                false
            }
            next => {
                if next.is_some() {
                    self.diverge("the PE executes more of its own messages");
                }
                // Without the hook of panics: this is no failure of the program.
                std::panic::resume_unwind(Box::new(Halted))
            }
        }
    }

    /// The decision of a load-balancing step of `objects` objects.
    pub(crate) fn plan(&self, objects: usize) -> Plan {
        let pes = self.replay.head.pes;
        match self.next() {
            Some(Event::Plan(plan))
                if plan.moves.iter().all(|&(object, to)| (object as usize) < objects && to < pes) =>
            {
                self.advance();
                plan
            }
            _ => {
                if !self.is_over() {
                    self.diverge("a load-balancing step is decided earlier, or for other elements");
                }
                std::panic::resume_unwind(Box::new(Halted))
            }
        }
    }

    /// Whether a sync point became a load-balancing step.
    pub(crate) fn is_step(&self) -> bool {
        if let Some(Event::Sync { is_step }) = self.next() {
            self.advance();
            return is_step;
        }
        if !self.is_over() {
            self.diverge("a sync point is reached earlier");
        }
        std::panic::resume_unwind(Box::new(Halted))
    }

    /// The PE cannot repeat the next event.
    pub(crate) fn diverge(&self, why: &str) {
        let mut fault = self.fault.borrow_mut();
        if fault.is_none() {
            *fault = Some(self.replay.sentence(&format!(
                "PE {} cannot repeat event {} of the recorded run: {why}; start the same program with the same \
                 flags and input ({}); what depends on time or on the thread is not repeated",
                self.pe,
                self.number(),
                self.replay.program()
            )));
        }
    }

    /// Why the PE cannot continue, if so.
    pub(crate) fn fault(&self) -> Option<String> {
        self.fault.borrow().clone()
    }

    /// The number of the next event, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.cursor.borrow().number
    }

    /// How the PE ended in the recorded run; none if the file is cut.
    fn recorded_end(&self) -> Option<PeEnd> {
        self.replay.file.lock().end.as_ref().map(|end| end.pes[self.pe as usize])
    }

    /// Whether the recorded run had a panic here. A file that is cut may lack the panic.
    pub(crate) fn expects_panic(&self) -> bool {
        match self.recorded_end() {
            Some(end) => self.is_over() && end == PeEnd::new(&self.executions, true),
            None => self.has_no_event(),
        }
    }

    /// The PE has no more events: compares its executions with those of the recorded run.
    pub(crate) fn check_end(&self) {
        match self.recorded_end() {
            Some(end) if end.panicked => self.diverge("the recorded run had a panic before it"),
            Some(end) if end != PeEnd::new(&self.executions, false) => {
                self.diverge("the deliveries before it were others");
            }
            _ => {}
        }
    }
}

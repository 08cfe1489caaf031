//! Records the [`Trace`] of a simulated machine, for `--record`.
//!
//! In each turn a PE takes one message. Then elements execute, one after the other, and the runtime may
//! work for itself (forward, migrate, complete a reduction); the trace has an execution for each element that
//! executes and one for the work of the runtime (an *own execution* of the PE). The element reports begin and
//! end of an execution, the clock reports work, and the code that records communication reports sends.
//!
//! An own execution may depend on any earlier execution on its PE (part of a reduction depends on all
//! contributions). Therefore an own execution waits for all executions on the PE since the previous own
//! execution, and messages that it puts into the PE's own queue wait for it. A message may be kept, because a guard is
//! false or its element has not arrived. The tracer stores the number of a kept message, so that the later execution
//! depends on the message and not only on the event that released it.
//!
//! Executions and messages are written to the file between turns, as soon as there are enough for a part of it. What
//! stays in memory grows with the elements and with the messages in flight, not with the length of the run.

use crate::load::element_key;
use equipoise_network::trace::{
    Call, Details, Execution, LbStep, Migration, Part, Step, Trace, TraceMessage, TraceObject, TraceWriter,
    Wait,
};
use rustc_hash::FxHashMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;

mod current;
mod own;

use current::Current;

/// The records of all PEs. Elements are numbered when first seen, after the PEs; the reader of the trace sorts them.
pub(crate) struct Log {
    pes: u32,
    /// The file; none before the first turn, after an error, and if no file is wanted.
    writer: RefCell<Option<TraceWriter>>,
    /// The trace so far, if it is wanted when the run is over.
    whole: RefCell<Option<Trace>>,
    /// The name of an element, as in `Block[3]`.
    name: Box<dyn Fn(u16, u32) -> String>,
    /// The load-balancing steps so far.
    steps: RefCell<Vec<LbStep>>,
    error: RefCell<Option<String>>,
    /// What is not written yet.
    part: RefCell<Part>,
    /// The numbers of messages and executions that are written, and of parts.
    written_messages: Cell<u32>,
    written_executions: Cell<u32>,
    parts: Cell<u32>,
    /// Recorded messages, of all PEs, that are not yet in a queue or a packet. Their records can change.
    pending: Cell<u64>,
    /// The number of an element by [`element_key`].
    elements: RefCell<FxHashMap<u64, u32>>,
    /// The messages that are kept.
    kept: RefCell<FxHashMap<KeptFor, Causes>>,
}

/// Why messages are kept, on which PE, and the [`element_key`] of the receiver. Messages behind a guard migrate with
/// their element, so they have no PE.
type KeptFor = (Kept, Option<u32>, u64);

/// Messages that are kept, oldest first.
type Causes = VecDeque<KeptMessage>;

/// A message that is kept.
#[derive(Clone, Copy)]
struct KeptMessage {
    /// Its number; none for a message from an own execution.
    number: Option<u32>,
    /// If its guard is false: its entry, and when it was taken.
    since: Option<(u16, f64)>,
}

/// Why a message is kept instead of delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kept {
    /// The guard of its entry is false.
    Pending,
    /// Its element is migrating, or does not exist.
    Early,
}

/// The recorder of one PE.
pub(crate) struct Tracer {
    log: Rc<Log>,
    pe: u32,
    now: RefCell<Current>,
    /// The number of parts of the file when this PE last released memory.
    parts: Cell<u32>,
}

impl Log {
    /// The records of a run on `pes` PEs.
    pub(crate) fn new(pes: u32, name: Box<dyn Fn(u16, u32) -> String>) -> Log {
        Log {
            pes,
            name,
            whole: RefCell::default(),
            steps: RefCell::default(),
            writer: RefCell::default(),
            error: RefCell::default(),
            part: RefCell::default(),
            written_messages: Cell::default(),
            written_executions: Cell::default(),
            parts: Cell::default(),
            pending: Cell::default(),
            elements: RefCell::default(),
            kept: RefCell::default(),
        }
    }

    /// The tracer of a PE.
    pub(crate) fn tracer(self: &Rc<Self>, pe: u32) -> Tracer {
        Tracer { log: Rc::clone(self), pe, now: RefCell::default(), parts: Cell::default() }
    }

    /// Begins the file, if there is one; `head` has what is known before the first turn. The trace is kept if it
    /// `is_wanted` when the run is over.
    pub(crate) fn begin(&self, path: Option<&Path>, head: &Trace, is_wanted: bool) {
        *self.whole.borrow_mut() = is_wanted.then(|| head.clone());
        let Some(path) = path else { return };
        match TraceWriter::record(path, head) {
            Ok(writer) => *self.writer.borrow_mut() = Some(writer),
            Err(error) => *self.error.borrow_mut() = Some(error.to_string()),
        }
    }

    fn element(&self, array: u16, rank: u32) -> u32 {
        let mut elements = self.elements.borrow_mut();
        let next = self.pes + elements.len() as u32;
        *elements.entry(element_key(array, rank)).or_insert_with(|| {
            let mut part = self.part.borrow_mut();
            part.objects.push(TraceObject { array: u32::from(array), rank });
            let name = (self.name)(array, rank);
            part.indices.push(name.find('[').map_or("", |at| &name[at..]).to_owned());
            next
        })
    }

    fn message(&self, to: u32, pe: u32, bytes: u64) -> u32 {
        let messages = &mut self.part.borrow_mut().messages;
        messages.push(TraceMessage { to, pe, bytes });
        self.written_messages.get() + messages.len() as u32 - 1
    }

    /// Writes what is recorded if it is worth it, and no record can change any more.
    fn write_if_full(&self) {
        if self.pending.get() == 0 && self.part.borrow().is_full() {
            self.write();
        }
    }

    fn write(&self) {
        let part = self.part.take();
        self.written_messages.set(self.written_messages.get() + part.messages.len() as u32);
        self.written_executions.set(self.written_executions.get() + part.executions.len() as u32);
        self.parts.set(self.parts.get() + 1);
        let mut writer = self.writer.borrow_mut();
        if let Some(Err(error)) = writer.as_mut().map(|writer| writer.push(&part)) {
            *self.error.borrow_mut() = Some(error.to_string());
            *writer = None;
        }
        if let Some(whole) = &mut *self.whole.borrow_mut() {
            whole.extend(part);
        }
    }

    /// Adds a load-balancing step.
    pub(crate) fn balances(&self, step: LbStep) {
        self.steps.borrow_mut().push(step);
    }

    /// The last load-balancing step ended at `seconds`.
    pub(crate) fn has_balanced(&self, seconds: f64) {
        if let Some(last) = self.steps.borrow_mut().last_mut() {
            last.end_seconds = seconds;
        }
    }

    /// Completes the file of a run that ended at `seconds` with the execution `exit`; `entries` are those of each array.
    /// Returns the trace if it is wanted, and the error of writing the file, if there was one.
    pub(crate) fn finish(
        &self,
        seconds: f64,
        exit: Option<u32>,
        entries: Vec<Vec<String>>,
    ) -> (Option<Trace>, Option<String>) {
        self.write();
        let details = Details { entries, steps: self.steps.take(), ..Details::default() };
        let finished = self.writer.take().map(|writer| writer.finish(seconds, exit, &details));
        let error = finished.and_then(Result::err).map(|error| error.to_string());
        let whole = self.whole.take().map(|mut trace| {
            (trace.seconds, trace.exit) = (seconds, exit);
            (trace.details.entries, trace.details.steps) = (details.entries, details.steps);
            trace.sort_objects();
            trace
        });
        (whole, self.error.take().or(error))
    }
}

impl Tracer {
    /// A turn begins at `seconds`.
    pub(crate) fn begins_turn(&self, seconds: f64) {
        let mut now = self.now.borrow_mut();
        (now.begin_seconds, now.cause, now.left_by, now.expedited) = (seconds, None, None, false);
        (now.executed, now.needed, now.has_begun) = (false, false, false);
    }

    /// The message that the PE takes is for an expedited array.
    pub(crate) fn takes_expedited(&self) {
        self.now.borrow_mut().expedited = true;
    }

    /// The PE takes a packet that contains message `number`.
    pub(crate) fn unpacks(&self, number: u32) {
        self.now.borrow_mut().cause = Some(number);
    }

    /// The PE queued an order to itself, about an array or the run, for a later turn.
    pub(crate) fn orders(&self, array: Option<u16>) {
        let mut now = self.now.borrow_mut();
        let left_by = now.leaves();
        now.orders.entry(array).or_default().push_back(left_by);
    }

    /// The PE executes the next order to itself.
    pub(crate) fn executes_order(&self, array: Option<u16>) {
        let mut now = self.now.borrow_mut();
        let left_by = now.orders.get_mut(&array).and_then(VecDeque::pop_front);
        (now.cause, now.left_by) = (None, left_by);
    }

    /// An element executes an entry from `seconds` on.
    pub(crate) fn begins(&self, array: u16, rank: u32, entry: Option<u16>, seconds: f64) {
        let object = self.log.element(array, rank);
        let mut now = self.now.borrow_mut();
        if now.own.iter().any(|step| matches!(step, Step::Send(_))) {
            // Earlier sends of the own execution do not wait for the element.
            self.add_own(&mut now, &[]);
        } else {
            // The time to take the message belongs to the execution it causes.
            now.steps = std::mem::take(&mut now.own);
        }
        (now.element, now.entry) = (Some((object, seconds)), entry);
    }

    /// The element has executed, and has charged this.
    pub(crate) fn ends(&self, charged_seconds: f64) {
        let mut now = self.now.borrow_mut();
        let Some((object, begin_seconds)) = now.element.take() else { return };
        let cause = now.released.take().unwrap_or(now.cause);
        let steps = std::mem::take(&mut now.steps);
        now.executed = true;
        let call = Call { entry: now.entry, charged_seconds };
        self.add(&mut now, (object, call), begin_seconds, cause, Vec::new(), steps);
    }

    /// A message for an element is kept instead of delivered; `since` has its entry and the time if its guard is false.
    pub(crate) fn keeps(&self, why: Kept, array: u16, rank: u32, since: Option<(u16, f64)>) {
        let message = KeptMessage { number: self.now.borrow().cause, since };
        self.log.kept.borrow_mut().entry(self.kept(why, array, rank)).or_default().push_back(message);
    }

    /// The `nth` message of an element whose guard was false is delivered, at `seconds`.
    pub(crate) fn releases(&self, array: u16, rank: u32, nth: usize, seconds: f64) {
        let message = self.take_kept(Kept::Pending, array, rank, nth);
        if let Some((entry, begin_seconds)) = message.and_then(|message| message.since) {
            let object = self.log.element(array, rank);
            let wait = Wait { object, entry, pe: self.pe, begin_seconds, end_seconds: seconds };
            self.log.part.borrow_mut().waits.push(wait);
        }
        self.now.borrow_mut().released = Some(message.and_then(|message| message.number));
    }

    /// An element leaves for PE `to`, at `seconds`.
    pub(crate) fn leaves(&self, array: u16, rank: u32, to: u32, seconds: f64) {
        let object = self.log.element(array, rank);
        self.log.part.borrow_mut().migrations.push(Migration { object, from: self.pe, to, seconds });
    }

    /// The records of all PEs.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The first message that waited for an element enters the PE's own queue, of which `waiting` messages are
    /// still in the port.
    pub(crate) fn requeues(&self, array: u16, rank: u32, waiting: usize) {
        let number = self.take_kept(Kept::Early, array, rank, 0).and_then(|message| message.number);
        let mut now = self.now.borrow_mut();
        // The message depends on the own execution that placed the element.
        let left_by = Some(now.leaves());
        now.queue(array, waiting, number, left_by);
    }

    /// The runtime sends the messages kept for an element again.
    pub(crate) fn drops(&self, why: Kept, array: u16, rank: u32) {
        self.log.kept.borrow_mut().remove(&self.kept(why, array, rank));
    }

    fn take_kept(&self, why: Kept, array: u16, rank: u32, nth: usize) -> Option<KeptMessage> {
        let mut kept = self.log.kept.borrow_mut();
        kept.get_mut(&self.kept(why, array, rank))?.remove(nth)
    }

    fn kept(&self, why: Kept, array: u16, rank: u32) -> KeptFor {
        (why, (why == Kept::Early).then_some(self.pe), element_key(array, rank))
    }

    fn add(
        &self,
        now: &mut Current,
        (object, call): (u32, Call),
        begin_seconds: f64,
        cause: Option<u32>,
        after: Vec<u32>,
        steps: Vec<Step>,
    ) {
        let same_turn = std::mem::replace(&mut now.has_begun, true);
        let left_by = now.left_by.and_then(|left_by| now.own_executions.get(left_by));
        let left_by = left_by.filter(|left_by| !after.contains(left_by));
        let expedited = now.expedited;
        let part = &mut *self.log.part.borrow_mut();
        part.calls.push(call);
        let executions = &mut part.executions;
        now.since.push((self.log.written_executions.get() + executions.len() as u32, object));
        let pe = self.pe;
        executions.push(Execution {
            object,
            pe,
            begin_seconds,
            same_turn,
            expedited,
            cause,
            left_by,
            after,
            steps,
        });
    }

    /// The executing element or the runtime worked for `seconds`.
    pub(crate) fn works(&self, seconds: f64) {
        let mut now = self.now.borrow_mut();
        if seconds == 0.0 {
            return;
        }
        now.does(Step::Work(seconds));
    }

    /// A message to an element is about to be sent.
    pub(crate) fn sends(&self, array: u16, rank: u32, bytes: u64) {
        let to = self.log.element(array, rank);
        let number = self.log.message(to, self.pe, bytes);
        self.now.borrow_mut().recorded.push_back(number);
        self.log.pending.set(self.log.pending.get() + 1);
    }

    /// Takes the next recorded message, which gets its place now.
    fn take_recorded(&self, now: &mut Current) -> Option<u32> {
        let number = now.recorded.pop_front()?;
        self.log.pending.set(self.log.pending.get() - 1);
        Some(number)
    }

    /// A recorded message, or a message of the runtime, enters the PE's own queue of an array, of which
    /// `waiting` messages are still in the port.
    pub(crate) fn queues(&self, array: u16, waiting: usize) {
        let mut now = self.now.borrow_mut();
        let number = self.take_recorded(&mut now);
        let left_by = match number {
            Some(number) => {
                now.does(Step::Send(number));
                None
            }
            None => Some(now.leaves()),
        };
        now.queue(array, waiting, number, left_by);
    }

    /// `messages` messages leave the port of an array, to be taken one after the other.
    pub(crate) fn leave_port(&self, array: u16, messages: usize) {
        self.now.borrow_mut().queues.entry(array).or_default().left_port += messages as u64;
    }

    /// A message that left the port is taken: the `nth`, or the next one.
    pub(crate) fn takes(&self, array: u16, nth: Option<u64>) {
        let mut now = self.now.borrow_mut();
        let queue = now.queues.entry(array).or_default();
        let position = nth.unwrap_or(queue.taken);
        queue.taken += 1;
        let known = queue.known.binary_search_by_key(&position, |queued| queued.position);
        let queued = known.ok().and_then(|at| queue.known.remove(at));
        now.cause = queued.as_ref().and_then(|queued| queued.number);
        now.left_by = queued.and_then(|queued| queued.left_by);
    }

    /// A packet leaves for another PE, with a recorded message or a message of the runtime; returns the number of
    /// the message.
    pub(crate) fn packs(&self, to: u32, bytes: u64) -> u32 {
        let mut now = self.now.borrow_mut();
        let number = match self.take_recorded(&mut now) {
            Some(number) => {
                let at = number - self.log.written_messages.get();
                let message = &mut self.log.part.borrow_mut().messages[at as usize];
                (message.pe, message.bytes) = (to, bytes);
                number
            }
            None => self.log.message(to, to, bytes),
        };
        now.does(Step::Send(number));
        number
    }

    /// The turn is over. Adds an own execution if the PE worked for itself, or if the turn has no other
    /// execution. The own execution also depends on the executions `also` on other PEs.
    pub(crate) fn ends_turn(&self, also: &[u32]) {
        let mut now = self.now.borrow_mut();
        let idle = now.own.is_empty() && !now.needed;
        if !(idle && (now.executed || now.cause.is_none())) {
            self.add_own(&mut now, also);
        }
        self.log.write_if_full();
        if self.parts.replace(self.log.parts.get()) != self.log.parts.get() {
            now.forget();
        }
    }

    /// Adds the own execution so far.
    fn add_own(&self, now: &mut Current, also: &[u32]) {
        let since = std::mem::take(&mut now.since);
        let mut after: Vec<u32> = since.into_iter().map(|(execution, _)| execution).collect();
        after.extend_from_slice(also);
        let steps = std::mem::take(&mut now.own);
        let (begin_seconds, cause) = (now.begin_seconds, now.cause);
        let object = self.pe;
        self.add(now, (object, Call::default()), begin_seconds, cause, after, steps);
        now.needed = false;
        let own = now.since.pop().map(|(execution, _)| execution);
        now.own_executions.list.extend(own);
    }

    /// Quiescence was found at `seconds`: adds an own execution that depends on `all`, and returns its number.
    pub(crate) fn finds_quiet(&self, seconds: f64, all: &[u32]) -> Option<u32> {
        self.begins_turn(seconds);
        self.add_own(&mut self.now.borrow_mut(), all);
        self.last()
    }

    /// The executions on this PE on which no other execution on this PE depends yet.
    pub(crate) fn unawaited(&self) -> Vec<u32> {
        let now = self.now.borrow();
        now.since.iter().map(|(execution, _)| *execution).chain(now.own_executions.last()).collect()
    }

    /// The last execution on this PE.
    pub(crate) fn last(&self) -> Option<u32> {
        let now = self.now.borrow();
        now.since.last().map(|(execution, _)| *execution).or(now.own_executions.last())
    }
}

//! Recording what happens on a simulated machine, for `--record`: a [`Trace`].
//!
//! A PE takes a message in a turn. In it elements execute, one after the other, and the runtime does
//! something itself (it forwards, migrates, completes a reduction ..); each is an execution. What an
//! element's own entry method does is told by the element, its work by the clock, its sends by the place
//! where communication is recorded. Whatever else happens in the turn is an execution of the PE itself.
//! What the PE itself does may need anything that was executed there before (a part of a reduction needs
//! all who contributed), so it waits for all executions of the PE since the last such; and what it leaves in
//! the PE's own queue waits for it. A message that is kept, because a guard is closed or its element is still
//! to come, is remembered by its number, so that what it causes in the end waits for it and not only for
//! what let it in.

use crate::context::PeCx;
use crate::load::element_key;
use equipoise_strategies::trace::{Execution, Step, Trace, TraceMessage, TraceObject};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What all PEs record together. Elements are numbered as they are met; the trace has them in order.
#[derive(Default)]
pub(crate) struct Log {
    trace: RefCell<Trace>,
    /// The number of an element by [`element_key`].
    elements: RefCell<FxHashMap<u64, u32>>,
    /// The messages that are kept.
    kept: RefCell<FxHashMap<KeptFor, Causes>>,
}

/// Why messages are kept, where, and the [`element_key`] of whom they are for. Those behind a guard are with their
/// element, wherever it is.
type KeptFor = (Kept, Option<u32>, u64);

/// Numbers of messages; none of one that was left behind by what a PE itself did.
type Causes = VecDeque<Option<u32>>;

/// Why a message is kept that came up for delivery.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kept {
    /// A guard of its element is closed.
    Pending,
    /// Its element is on its way, or does not exist.
    Early,
}

/// What one PE records.
pub(crate) struct Tracer {
    log: Rc<Log>,
    pe: u32,
    now: RefCell<Current>,
}

/// The turn in progress, and what is remembered from one to the next.
#[derive(Default)]
struct Current {
    begin_seconds: f64,
    /// The message it takes.
    cause: Option<u32>,
    /// What the element does that executes, and since when.
    element: Option<(u32, f64)>,
    /// What the PE itself did and left what it takes in its own queue: which of its own executions that was.
    left_by: Option<usize>,
    /// Whether what it takes is of an expedited array.
    expedited: bool,
    /// The message that had been kept and is delivered now, in place of the one it takes.
    released: Option<Option<u32>>,
    steps: Vec<Step>,
    /// What the PE itself does.
    own: Vec<Step>,
    /// Whether something waits for what the PE itself does.
    needed: bool,
    /// Whether an element executed in this turn, and whether anything did.
    executed: bool,
    has_begun: bool,
    /// Messages that were recorded and are still to be put in a queue or a packet.
    recorded: VecDeque<u32>,
    /// Executions here since the PE itself did something, and all that it did itself.
    since: Vec<u32>,
    own_executions: Vec<u32>,
    /// Own queues by array: how many messages left the port, and what is known of the others, by their position
    /// among all that were ever queued.
    queues: FxHashMap<u16, Queue>,
    /// By array, or of the run: which of its own executions left the orders that it gave itself.
    orders: FxHashMap<Option<u16>, VecDeque<usize>>,
}

#[derive(Default)]
struct Queue {
    left_port: u64,
    taken: u64,
    known: VecDeque<Queued>,
}

struct Queued {
    position: u64,
    /// What the message is in the trace; none of what the runtime itself left.
    number: Option<u32>,
    /// What left it: the PE itself, in that of its executions; none if a message was sent.
    left_by: Option<usize>,
}

impl Log {
    /// The tracer of a PE.
    pub(crate) fn tracer(self: &Rc<Self>, pe: u32) -> Tracer {
        Tracer { log: Rc::clone(self), pe, now: RefCell::default() }
    }

    fn element(&self, array: u16, rank: u32) -> u32 {
        let mut elements = self.elements.borrow_mut();
        let next = elements.len() as u32;
        *elements.entry(element_key(array, rank)).or_insert(next)
    }

    fn message(&self, to: u32, pe: u32, bytes: u64) -> u32 {
        let messages = &mut self.trace.borrow_mut().messages;
        messages.push(TraceMessage { to, pe, bytes });
        messages.len() as u32 - 1
    }

    /// The trace of a run that `head` says the rest of, with the elements in order.
    pub(crate) fn finish(&self, head: Trace) -> Trace {
        let Trace { messages, executions, .. } = self.trace.take();
        let pes = head.pes;
        let elements = self.elements.take();
        let mut order: Vec<(u64, u32)> = elements.into_iter().collect();
        order.sort_unstable();
        let mut place = vec![0; order.len()];
        for (new, &(_, old)) in (pes..).zip(&order) {
            place[old as usize] = new;
        }
        // PEs were numbered from the end while it was not known how many elements there are.
        let renumbered = |object: u32| match object.checked_sub(FIRST_PE) {
            Some(pe) => pe,
            None => place[object as usize],
        };
        let objects = order
            .iter()
            .map(|&(key, _)| TraceObject { array: (key >> 32) as u32, rank: key as u32 })
            .collect();
        Trace {
            objects,
            messages: messages.into_iter().map(|it| TraceMessage { to: renumbered(it.to), ..it }).collect(),
            executions: executions
                .into_iter()
                .map(|it| Execution { object: renumbered(it.object), ..it })
                .collect(),
            ..head
        }
    }
}

impl Current {
    /// The element that executes does something, or the PE itself.
    fn does(&mut self, step: Step) {
        let steps = if self.element.is_some() { &mut self.steps } else { &mut self.own };
        // Work is not added up: sums in another order differ in their last digits, and who is first with them.
        steps.push(step);
    }
}

impl Current {
    /// The PE itself leaves something in its own queue: which of its own executions that is in.
    fn leaves(&mut self) -> usize {
        self.needed = true;
        self.own_executions.len()
    }

    /// Something is put in the own queue of an array, where `waiting` have not left the port.
    fn queue(&mut self, array: u16, waiting: usize, number: Option<u32>, left_by: Option<usize>) {
        let queue = self.queues.entry(array).or_default();
        let position = queue.left_port + waiting as u64;
        queue.known.push_back(Queued { position, number, left_by });
    }
}

/// The number of PE 0 among objects, until it is known how many there are.
const FIRST_PE: u32 = 1 << 31;

impl Tracer {
    /// A turn begins at `seconds`.
    pub(crate) fn begins_turn(&self, seconds: f64) {
        let mut now = self.now.borrow_mut();
        (now.begin_seconds, now.cause, now.left_by, now.expedited) = (seconds, None, None, false);
        (now.executed, now.needed, now.has_begun) = (false, false, false);
    }

    /// What the PE takes is of an expedited array.
    pub(crate) fn takes_expedited(&self) {
        self.now.borrow_mut().expedited = true;
    }

    /// The PE takes a packet, with the message of that number.
    pub(crate) fn unpacks(&self, number: u32) {
        self.now.borrow_mut().cause = Some(number);
    }

    /// The PE ordered itself something about an array or the run, to be done in a later turn.
    pub(crate) fn orders(&self, array: Option<u16>) {
        let mut now = self.now.borrow_mut();
        let left_by = now.leaves();
        now.orders.entry(array).or_default().push_back(left_by);
    }

    /// The PE does the next of what it ordered itself.
    pub(crate) fn obeys(&self, array: Option<u16>) {
        let mut now = self.now.borrow_mut();
        let left_by = now.orders.get_mut(&array).and_then(VecDeque::pop_front);
        (now.cause, now.left_by) = (None, left_by);
    }

    /// An element executes from `seconds` on.
    pub(crate) fn begins(&self, array: u16, rank: u32, seconds: f64) {
        let object = self.log.element(array, rank);
        let mut now = self.now.borrow_mut();
        if now.own.iter().any(|step| matches!(step, Step::Send(_))) {
            // What the PE itself sent before does not wait for the element.
            self.add_own(&mut now, &[]);
        } else {
            // What it cost to take the message is part of what it caused.
            now.steps = std::mem::take(&mut now.own);
        }
        now.element = Some((object, seconds));
    }

    /// The element has executed.
    pub(crate) fn ends(&self) {
        let mut now = self.now.borrow_mut();
        let Some((object, begin_seconds)) = now.element.take() else { return };
        let cause = now.released.take().unwrap_or(now.cause);
        let steps = std::mem::take(&mut now.steps);
        now.executed = true;
        self.add(&mut now, object, begin_seconds, cause, Vec::new(), steps);
    }

    /// A message for an element came up for delivery and is kept.
    pub(crate) fn keeps(&self, why: Kept, array: u16, rank: u32) {
        let cause = self.now.borrow().cause;
        self.log.kept.borrow_mut().entry(self.kept(why, array, rank)).or_default().push_back(cause);
    }

    /// The `nth` message of those kept for an element is delivered.
    pub(crate) fn releases(&self, why: Kept, array: u16, rank: u32, nth: usize) {
        let released = self.unkept(why, array, rank, nth);
        self.now.borrow_mut().released = Some(released);
    }

    /// The first message of those that waited for an element is put in the PE's own queue, where `waiting` have not
    /// left the port.
    pub(crate) fn requeues(&self, array: u16, rank: u32, waiting: usize) {
        let number = self.unkept(Kept::Early, array, rank, 0);
        let mut now = self.now.borrow_mut();
        // It waits for what placed the element.
        let left_by = Some(now.leaves());
        now.queue(array, waiting, number, left_by);
    }

    /// What is kept for an element is sent anew, by the runtime.
    pub(crate) fn drops(&self, why: Kept, array: u16, rank: u32) {
        self.log.kept.borrow_mut().remove(&self.kept(why, array, rank));
    }

    fn unkept(&self, why: Kept, array: u16, rank: u32, nth: usize) -> Option<u32> {
        let mut kept = self.log.kept.borrow_mut();
        kept.get_mut(&self.kept(why, array, rank))?.remove(nth)?
    }

    fn kept(&self, why: Kept, array: u16, rank: u32) -> KeptFor {
        (why, (why == Kept::Early).then_some(self.pe), element_key(array, rank))
    }

    fn add(
        &self,
        now: &mut Current,
        object: u32,
        begin_seconds: f64,
        cause: Option<u32>,
        after: Vec<u32>,
        steps: Vec<Step>,
    ) {
        let same_turn = std::mem::replace(&mut now.has_begun, true);
        let left_by = now.left_by.and_then(|left_by| now.own_executions.get(left_by)).copied();
        let left_by = left_by.filter(|left_by| !after.contains(left_by));
        let expedited = now.expedited;
        let executions = &mut self.log.trace.borrow_mut().executions;
        now.since.push(executions.len() as u32);
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

    /// Work was done, by the element that executes or by the runtime.
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
    }

    /// A message is put in the PE's own queue of an array, where `waiting` messages have not left the
    /// port: one that was recorded, or one of the runtime.
    pub(crate) fn queues(&self, array: u16, waiting: usize) {
        let mut now = self.now.borrow_mut();
        let number = now.recorded.pop_front();
        let left_by = match number {
            Some(number) => {
                now.does(Step::Send(number));
                None
            }
            None => Some(now.leaves()),
        };
        now.queue(array, waiting, number, left_by);
    }

    /// So many messages leave the port of an array, to be taken one after the other.
    pub(crate) fn leave_port(&self, array: u16, messages: usize) {
        self.now.borrow_mut().queues.entry(array).or_default().left_port += messages as u64;
    }

    /// The next of them is taken.
    pub(crate) fn takes(&self, array: u16) {
        let mut now = self.now.borrow_mut();
        let queue = now.queues.entry(array).or_default();
        let position = queue.taken;
        queue.taken += 1;
        let is_next = queue.known.front().is_some_and(|queued| queued.position == position);
        let queued = if is_next { queue.known.pop_front() } else { None };
        now.cause = queued.as_ref().and_then(|queued| queued.number);
        now.left_by = queued.and_then(|queued| queued.left_by);
    }

    /// A packet leaves for another PE, with a message that was recorded or one of the runtime; returns its
    /// number.
    pub(crate) fn packs(&self, to: u32, bytes: u64) -> u32 {
        let mut now = self.now.borrow_mut();
        let number = match now.recorded.pop_front() {
            Some(number) => {
                let message = &mut self.log.trace.borrow_mut().messages[number as usize];
                (message.pe, message.bytes) = (to, bytes);
                number
            }
            None => self.log.message(FIRST_PE + to, to, bytes),
        };
        now.does(Step::Send(number));
        number
    }

    /// The turn is over: what the PE itself did is an execution, if there was any or nothing else was.
    /// `also` are executions elsewhere that had to be over.
    pub(crate) fn ends_turn(&self, also: &[u32]) {
        let mut now = self.now.borrow_mut();
        let idle = now.own.is_empty() && !now.needed;
        if idle && (now.executed || now.cause.is_none()) {
            return;
        }
        self.add_own(&mut now, also);
    }

    /// What the PE itself did until now is an execution.
    fn add_own(&self, now: &mut Current, also: &[u32]) {
        let mut after = std::mem::take(&mut now.since);
        after.extend_from_slice(also);
        let steps = std::mem::take(&mut now.own);
        let (begin_seconds, cause) = (now.begin_seconds, now.cause);
        let object = FIRST_PE + self.pe;
        self.add(now, object, begin_seconds, cause, after, steps);
        now.needed = false;
        let own = now.since.pop();
        now.own_executions.extend(own);
    }

    /// What the PE does when nothing moves any more anywhere, at `seconds`: it waits for `all`. Returns its number.
    pub(crate) fn finds_quiet(&self, seconds: f64, all: &[u32]) -> Option<u32> {
        self.begins_turn(seconds);
        self.add_own(&mut self.now.borrow_mut(), all);
        self.last()
    }

    /// What was executed here and what nothing here waits for yet.
    pub(crate) fn unawaited(&self) -> Vec<u32> {
        let now = self.now.borrow();
        now.since.iter().chain(now.own_executions.last()).copied().collect()
    }

    /// What was executed here last.
    pub(crate) fn last(&self) -> Option<u32> {
        let now = self.now.borrow();
        now.since.last().or(now.own_executions.last()).copied()
    }
}

impl PeCx {
    /// The tracer of this PE, if what happens is recorded.
    #[inline]
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.ticker.simulated()?.tracer()
    }

    /// An element begins to execute, where a simulated machine is told.
    #[cold]
    #[inline(never)]
    pub(crate) fn execution_begins(&self, array: u16, rank: u32) {
        if let Some(clock) = self.ticker.simulated()
            && let Some(tracer) = clock.tracer()
        {
            tracer.begins(array, rank, clock.now());
        }
    }

    /// The element has executed, where a simulated machine is told.
    #[cold]
    #[inline(never)]
    pub(crate) fn execution_ends(&self) {
        // What was measured until now is the element's.
        self.ticker.now();
        if let Some(tracer) = self.tracer() {
            tracer.ends();
        }
    }

    /// A message for an element came up for delivery and is kept.
    pub(crate) fn keeps(&self, why: Kept, array: u16, rank: u32) {
        if let Some(tracer) = self.tracer() {
            tracer.keeps(why, array, rank);
        }
    }

    /// The `nth` message of those kept for an element is delivered.
    pub(crate) fn releases(&self, why: Kept, array: u16, rank: u32, nth: usize) {
        if let Some(tracer) = self.tracer() {
            tracer.releases(why, array, rank, nth);
        }
    }

    /// This PE ordered itself something.
    pub(crate) fn ordered(&self, array: Option<u16>) {
        if let Some(tracer) = self.tracer() {
            tracer.orders(array);
        }
    }

    /// This PE does the next of what it ordered itself.
    pub(crate) fn obeys_itself(&self, array: Option<u16>) {
        if let Some(tracer) = self.tracer() {
            tracer.obeys(array);
        }
    }
}

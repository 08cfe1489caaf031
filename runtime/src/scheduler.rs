//! The scheduler of a PE, common to all transports. [`Built`] is a PE that is ready to run; a transport
//! calls its managers, [`execute`], [`run_queued`] and [`flush`].

use crate::batches::{self, Origin};
use crate::codec;
use crate::elements::Held;
use crate::events;
use crate::interleaving::ArrayHead;
use crate::node::{Failure, Node, SharedArray};
use crate::order::PeOrder;
use crate::panics::message_and_place;
use crate::pe::{ARRAY_BITS, ArrayInfo, Outbox, PE_ORDERS, PeCx};
use crate::prometheus::Counters;
use crate::pulse::Activity;
use crate::quiescence::Quiet;
use crate::report::Traffic;
use crate::saving;
use crate::steps;
use equipoise_model::table::count;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// A task to run on a PE later: `main`.
pub(crate) type Task = Box<dyn FnOnce(&Rc<PeCx>)>;

/// A PE that is ready to run.
pub(crate) struct Built {
    /// Shared with an asynchronous `main`.
    pub(crate) pe: Rc<PeCx>,
    pub(crate) managers: Vec<Held>,
    main: Option<Task>,
    /// Whether the setup lacks a `main`, which only PE 0 needs.
    lacks_main: bool,
}

/// Runs the setup of one PE; none if the setup panicked, which ends the run, or if the run is over.
pub(crate) fn build(node: &Arc<Node>, pe: PeCx, setup: &(dyn Fn(PeCx) -> Built + Sync)) -> Option<Built> {
    if node.stopped() {
        return None;
    }
    let rank = pe.out.rank;
    node.pulses.running.set(rank as usize);
    let running = pe.delivery.running.clone();
    match catch_unwind(AssertUnwindSafe(|| running.during(Activity::Setup, || setup(pe)))) {
        Ok(built) => Some(built),
        Err(payload) => {
            running.clear();
            let place = format!("the setup of {}", node.settings.pe_name(rank));
            node.fail(Failure::Panic { place, message: message_and_place(&*payload) });
            None
        }
    }
}

impl Built {
    /// A PE whose setup is over.
    pub(crate) fn new(pe: PeCx, managers: Vec<Held>, main: Option<Task>) -> Self {
        let lacks_main = pe.out.rank == 0 && main.is_none();
        Built { pe: Rc::new(pe), managers, main, lacks_main }
    }

    /// The arrays, as a recorded order names them.
    pub(crate) fn arrays(&self) -> Vec<ArrayHead> {
        let bytes = |name: &str| name.as_bytes().to_vec();
        let pulses = &self.pe.out.node.pulses;
        let array = |(at, info): (usize, &ArrayInfo)| ArrayHead {
            name: bytes(info.name),
            entries: pulses.entries(at).iter().map(|name| bytes(name)).collect(),
            count: info.count,
        };
        self.pe.infos.iter().enumerate().map(array).collect()
    }

    /// Whether this PE made as many arrays as the other PEs; ends the run if not.
    pub(crate) fn agrees(&self) -> bool {
        let (mine, rank) = (self.managers.len(), self.pe.out.rank);
        let all = self.pe.out.node.arrays.lock();
        let missing = all.get(mine).cloned();
        drop(all);
        if let Some(SharedArray { made_by, name, .. }) = missing {
            self.pe.fail(format!(
                "PE {rank} made {}, but PE {made_by} also made {name}; make the same arrays on every PE",
                count(mine as u64, "array")
            ));
        }
        !self.pe.out.node.stopped()
    }

    /// Starts the clocks, and `main`, or continues a run that was saved.
    pub(crate) fn begin(&mut self) {
        self.pe.recorder.begin(self.pe.clock.now());
        if let Some(log) = self.pe.out.log() {
            log.resumes();
        }
        if self.pe.settings().restart.is_some() {
            return saving::resume(&self.pe, &self.managers);
        }
        if let Some(main) = self.main.take() {
            self.pe.delivery.running.during(Activity::Main, || main(&self.pe));
        }
    }

    /// The failure for a panic, with its place. The PE runs nothing afterwards.
    pub(crate) fn panic_failure(&self, payload: &(dyn Any + Send)) -> Failure {
        let (rank, running) = (self.pe.out.rank, &self.pe.delivery.running);
        let place = self.pe.out.node.pulses.describe(rank, running.activity(), self.pe.settings());
        running.clear();
        let place = place
            .unwrap_or_else(|| format!("code outside the elements of {}", self.pe.settings().pe_name(rank)));
        Failure::Panic { place, message: message_and_place(payload) }
    }

    /// Adds the counts of this PE to the outcome; if the run did not finish, also what this PE waits for. Then drops the PE. A
    /// panic of a destructor fails the run: other PEs and processes wait until this PE has stopped.
    pub(crate) fn finish(self) {
        let node = Arc::clone(&self.pe.out.node);
        let rank = self.pe.out.rank;
        guarded(&node, rank, || self.report());
        guarded(&node, rank, || self.pe.drop_parked());
        for manager in &self.managers {
            // One by one, because a second panic during the first one would abort the process.
            while guarded(&node, rank, || manager.borrow_mut().drop_element()).unwrap_or(true) {}
        }
        guarded(&node, rank, || drop(self));
    }

    fn report(&self) {
        if let Some(metrics) = &self.pe.out.node.metrics {
            metrics.publish(self.pe.out.local, counters(&self.pe, &self.managers));
        }
        let log = self.pe.out.log().zip(self.pe.out.node.start).map(|(log, start)| log.finish(start));
        let mut outcome = self.pe.out.node.outcome.lock();
        outcome.events.extend(log);
        outcome.executions += self.pe.out.counts.executions.get();
        outcome.remote_messages += self.pe.out.counts.remote.get();
        outcome.migrations += self.pe.out.counts.migrations.get();
        if let Some(post) = self.pe.out.batches() {
            let (near, far) = post.traffic();
            outcome.traffic.add(Traffic { near, far, peak_unsent_bytes: post.desk().peak_unsent_bytes() });
        }
        outcome.inserts_in_flight += self.pe.out.counts.inserts.get();
        let (is_unfinished, has_exited) = (outcome.is_unfinished(), outcome.result.is_some());
        if has_exited {
            outcome.warnings.extend(self.useless_interval());
            let waiting = &mut outcome.waiting;
            self.managers.iter().for_each(|manager| manager.borrow().unreceived(&self.pe, waiting));
        }
        if !is_unfinished {
            return;
        }
        let waiting = &mut outcome.waiting;
        if self.lacks_main {
            let remedy = "call `main` in the setup, with the first messages";
            waiting.line(
                None,
                format!("the setup does not call `main`, so no element received a message; {remedy}"),
            );
        }
        if self.pe.collectives.steps.saves.get() {
            waiting
                .line(None, "the run waits until nothing is in flight, to save itself (--checkpoint)".into());
        }
        for manager in &self.managers {
            manager.borrow().waiting(&self.pe, waiting);
        }
        for port in &self.pe.ports {
            port.open_reductions(&self.pe).into_iter().for_each(|open| waiting.reduction(open));
        }
        for (section, members) in self.pe.collectives.sections() {
            let names = || members.keys().iter().map(|&key| self.pe.element(key)).collect();
            waiting.section(section, names);
        }
        let timed = self.pe.timers.count();
        if timed > 0 {
            let verb = if timed == 1 { "waits" } else { "wait" };
            let line = format!("{} {verb} for a time (`after`)", count(timed as u64, "message"));
            waiting.line(Some(self.pe.out.rank), line);
        }
        let parked = self.pe.parked();
        if parked > 0 {
            let verb = if parked == 1 { "waits" } else { "wait" };
            let line = format!("{} {verb} for a reply", count(parked as u64, "parked closure"));
            waiting.line(Some(self.pe.out.rank), line);
        }
    }

    /// The warning of PE 0 that `--checkpoint-every` had no effect, because the run had no sync point.
    fn useless_interval(&self) -> Option<String> {
        let every = self.pe.settings().checkpoint.as_ref()?.when.every?;
        let steps = &self.pe.collectives.steps;
        if self.pe.out.rank != 0 || steps.number.get() > 0 || steps.saves.get() {
            return None;
        }
        let effect = match &self.pe.out.node.saver {
            Some(saver) if saver.has_saved() => {
                "had no effect: the run had no sync point, and saved itself at quiescence only; leave out the flag, or call \
                 `at_sync` in the elements of an array"
            }
            _ => {
                "saved nothing: the run had no sync point; call `at_sync` in the elements of an array, or send \
                 `at_checkpoint`"
            }
        };
        Some(format!("--checkpoint-every {every} {effect}"))
    }
}

/// The counters of a PE for `--metrics`.
pub(crate) fn counters(pe: &PeCx, managers: &[Held]) -> Counters {
    let counts = &pe.out.counts;
    Counters {
        executions: counts.executions.get(),
        remote_messages: counts.remote.get(),
        migrations: counts.migrations.get(),
        queued: managers.iter().map(|manager| manager.borrow().queued(pe) as u64).sum(),
    }
}

/// Runs a part of the end of a PE, after the end of the run; none if it panicked, which fails the run.
fn guarded<T>(node: &Node, rank: u32, part: impl FnOnce() -> T) -> Option<T> {
    let run = catch_unwind(AssertUnwindSafe(part));
    run.map_err(|payload| {
        let place = format!("a destructor at the end of {}", node.settings.pe_name(rank));
        node.fail_after_end(Failure::Panic { place, message: message_and_place(&*payload) });
    })
    .ok()
}

/// Executes an order about the run.
pub(crate) fn execute(pe: &PeCx, order: PeOrder, managers: &[Held]) {
    match order {
        PeOrder::AtSync { calls, loads } => steps::at_sync(pe, calls, loads),
        PeOrder::AllCalled => steps::report(pe, managers),
        PeOrder::Ended(ended) => steps::ended(pe, *ended),
        PeOrder::Weigh { point } => steps::weigh(pe, point, managers),
        PeOrder::Collect => steps::collect(pe, managers),
        PeOrder::Statistics(statistics) => steps::collected(pe, statistics),
        PeOrder::Migrate { step, plans } => steps::migrate(pe, step, plans, managers),
        PeOrder::WillNotArrive { step, count } => steps::will_not_arrive(pe, step, count, managers),
        PeOrder::TryResume { step } => steps::try_resume(pe, step, managers),
        PeOrder::Decentral(order) => steps::decentral::execute(pe, *order, managers),
        PeOrder::Reply { parked, answer } => pe.answered(parked, answer),
        PeOrder::Quiet(quiet) => found_quiet(pe, quiet, managers),
        PeOrder::Batch { from_process, bytes } => {
            let mut origin = None;
            for order in batches::orders(&bytes) {
                match order {
                    Ok((array, order)) => match (Origin::of(array, order), &mut origin) {
                        (None, None) => receive(pe, managers, array, order),
                        (None, Some(Origin { pe: from, number })) => {
                            let run = || receive(pe, managers, array, order);
                            pe.out.during_order(events::BATCHES, *from, Some(*number), run);
                            *number = number.wrapping_add(1);
                        }
                        (begin, _) => origin = begin,
                    },
                    Err(error) => pe.fail(format!("a batch of messages of process {from_process} {error}")),
                }
            }
            if let Some(post) = pe.out.batches() {
                post.desk().executed(from_process, bytes);
            }
        }
    }
}

/// Receives an encoded order from another PE, about an array or (`None`) about the run.
pub(crate) fn receive(pe: &PeCx, managers: &[Held], array: Option<u16>, order: &[u8]) {
    match array {
        Some(array) => managers[usize::from(array)].borrow_mut().packet(pe, order),
        None => match codec::decode(order) {
            Ok(order) => execute(pe, order, managers),
            Err(error) => pe.fail(format!("cannot decode an order of the runtime: {error}")),
        },
    }
}

/// Runs the messages and orders of a PE to itself.
pub(crate) fn run_queued(pe: &PeCx, managers: &[Held], queued: u64) {
    let arrays = queued & !PE_ORDERS;
    let prioritized = arrays & pe.out.prioritized;
    if prioritized != 0 {
        run_by_priority(pe, managers, prioritized, true);
    }
    for bit in bits(arrays & pe.out.expedited).chain(bits(arrays & !pe.out.expedited)) {
        for at in (bit..managers.len()).step_by(ARRAY_BITS) {
            managers[at].borrow_mut().local(pe);
        }
    }
    if prioritized != 0 {
        run_by_priority(pe, managers, prioritized, false);
    }
    if queued & PE_ORDERS != 0 {
        // Only the orders queued now: an order may queue another one forever, which would starve other work.
        let count = pe.out.orders.borrow().len();
        for _ in 0..count {
            let order = pe.out.orders.borrow_mut().pop_front();
            let Some(order) = order else { break };
            pe.out.trace(|tracer| tracer.executes_order(None));
            pe.out.during_order(events::RUN, pe.out.rank, None, || execute(pe, order, managers));
        }
    }
}

/// The most messages by priority before the orders of a PE to itself.
const BY_PRIORITY: u32 = 1024;

/// Runs messages of the arrays with these bits by priority, until other PEs have sent work. Those that precede arrays without
/// priorities run if they are `urgent`; the others run afterwards, and those that follow such arrays run if these have no messages.
fn run_by_priority(pe: &PeCx, managers: &[Held], arrays: u64, urgent: bool) {
    for _ in 0..BY_PRIORITY {
        // Messages may have been sent to other arrays in this turn.
        let arrays = arrays | pe.out.queued.get() & pe.out.prioritized;
        let Some((priority, at)) = first_by_priority(pe, managers, arrays) else { return };
        let others_wait = || without_priorities(pe, managers, pe.out.queued.get()) != 0;
        if urgent && priority >= 0 || priority > 0 && others_wait() {
            break;
        }
        run_one_by_priority(pe, managers, at);
        if !pe.out.quiet_outside() {
            break;
        }
    }
    // What is left runs in the next turn.
    pe.out.queue(arrays);
}

/// Of the arrays `queued`, the bits of those without priorities. Where arrays share bits, the bit of an array with priorities is among
/// them if an array without priorities has something to run.
pub(crate) fn without_priorities(pe: &PeCx, managers: &[Held], queued: u64) -> u64 {
    let others = queued & !pe.out.prioritized;
    if managers.len() <= ARRAY_BITS {
        return others;
    }
    let waits = |at: usize| {
        let mut manager = managers[at].borrow_mut();
        manager.has_own() && manager.first_priority(pe).is_none()
    };
    let shared =
        bits(queued & pe.out.prioritized).filter(|&bit| (bit..managers.len()).step_by(ARRAY_BITS).any(waits));
    shared.fold(others, |others, bit| others | 1 << bit)
}

/// The lowest priority of a waiting message of the arrays with these bits, and the position of its array. Arrays with equal ones take
/// turns: endless messages of one do not keep those of another waiting.
pub(crate) fn first_by_priority(pe: &PeCx, managers: &[Held], arrays: u64) -> Option<(i64, usize)> {
    let (next, len) = (pe.out.next_by_priority.get(), managers.len());
    let mut first = None;
    for bit in bits(arrays) {
        for at in (bit..len).step_by(ARRAY_BITS) {
            let turn = (at + len - next) % len;
            let found = managers[at].borrow_mut().first_priority(pe).map(|priority| (priority, turn));
            first = first.into_iter().chain(found).min();
        }
    }
    first.map(|(priority, turn)| (priority, (turn + next) % len))
}

/// Runs one message or the orders of the array that [`first_by_priority`] has found; the turn of equal ones passes to the arrays after it.
pub(crate) fn run_one_by_priority(pe: &PeCx, managers: &[Held], at: usize) {
    pe.out.next_by_priority.set((at + 1) % managers.len());
    managers[at].borrow_mut().one(pe);
}

/// No message is in flight: tells all PEs what they do. If no send waits for quiescence, the run fails.
pub(crate) fn quiet(out: &Outbox) {
    let Some(quiet) = out.node.quiet(Some(out.rank)) else { return };
    if let Some(log) = out.log() {
        log.was_quiet();
    }
    for to in 0..out.pes {
        out.tell(to, PeOrder::Quiet(quiet));
    }
}

/// What a PE does when nothing is in flight.
pub(crate) fn found_quiet(pe: &PeCx, quiet: Quiet, managers: &[Held]) {
    match quiet {
        Quiet::Save(generation) => saving::save(pe, generation, managers),
        Quiet::Step => {
            saving::goes_on(pe);
            pe.has_saved_for_step();
            steps::has_saved(pe);
        }
        Quiet::Send { round } => {
            saving::goes_on(pe);
            pe.found_quiet(round);
        }
    }
}

/// Sends everything collected for other PEs. It must not wait for further elements of this PE, which may have
/// migrated.
pub(crate) fn flush(pe: &PeCx) {
    pe.collectives.forwards.set(false);
    pe.report_syncs();
    for port in &pe.ports {
        port.flush(pe);
    }
}

/// The positions of the bits that are set.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

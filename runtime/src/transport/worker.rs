//! The scheduler of a PE that has mailboxes: what it does in a turn, when it rests, and how it waits.

use super::idle::{IdleThread, Limits};
use crate::batches::Post;
use crate::elements::Held;
use crate::events;
use crate::inbox::Bag;
use crate::interleaving::{Event, Interleaved, PeRecording};
use crate::node::Node;
use crate::order::PeOrder;
use crate::pe::{Outbox, PeCx, post_delivery};
use crate::prometheus::{Metrics, PUBLISHES};
use crate::scheduler::{Built, bits, counters, execute, flush, run_queued};
use equipoise_model::random::splitmix;
use std::rc::Rc;

/// The number of busy turns after which a PE sends what it has collected.
pub(super) const BUSY: u32 = 256;

/// The mailboxes of a PE.
struct Mailboxes {
    /// Mail and sender by number of the mailbox, precomputed: divisions would cost as much as a lock.
    all: Vec<(usize, u32)>,
    /// Two passes if there are expedited arrays: their mail first.
    passes: &'static [Option<bool>],
    orders: Bag<(), PeOrder>,
    /// The bits of mailboxes that have rung while their mail had to wait.
    postponed: u64,
}

impl Mailboxes {
    fn new(managers: usize, senders: usize, has_expedited: bool) -> Self {
        let all =
            (0..(managers + 1) * senders).map(|mailbox| (mailbox / senders, (mailbox % senders) as u32));
        let passes: &[Option<bool>] = if has_expedited { &[Some(true), Some(false)] } else { &[None] };
        Mailboxes { all: all.collect(), passes, orders: Bag::default(), postponed: 0 }
    }

    /// Runs the batches from other processes, and postpones all other mail; returns whether there were any.
    #[cold]
    fn run_batches(&mut self, pe: &PeCx, managers: &[Held], rung: u64) -> bool {
        self.postponed |= rung;
        // The mailbox of the connection.
        self.run_orders(pe, managers, pe.out.node.settings.local_pes())
    }

    /// Runs the orders about the run from a thread; returns whether there were any.
    fn run_orders(&mut self, pe: &PeCx, managers: &[Held], from: u32) -> bool {
        let took = pe.out.take(&pe.out.node.mail, from, &mut self.orders);
        if took {
            let sender = pe.out.node.first + from;
            for order in self.orders.orders.drain(..) {
                match order {
                    // From the connection to other processes, not from a PE.
                    PeOrder::Batch { .. } => execute(pe, order, managers),
                    PeOrder::Quiet(_) if from >= pe.settings().local_pes() => {
                        quiet_elsewhere(pe, order, managers)
                    }
                    order => pe.out.during_order(events::RUN, sender, None, || execute(pe, order, managers)),
                }
            }
        }
        took
    }

    /// Runs the content of the mailboxes that have rung; returns whether there was any.
    #[inline]
    fn run(&mut self, pe: &PeCx, managers: &[Held], rung: u64) -> bool {
        let expedited = |mail: usize| mail != 0 && pe.infos[mail - 1].expedited;
        let mut took = false;
        for &pass in self.passes {
            for bit in bits(rung) {
                for at in (bit..self.all.len()).step_by(64) {
                    let (mail, from) = self.all[at];
                    match mail {
                        _ if pass.is_some_and(|pass| pass != expedited(mail)) => {}
                        0 => took |= self.run_orders(pe, managers, from),
                        array => took |= managers[array - 1].borrow_mut().mail(pe, from),
                    }
                }
            }
        }
        took
    }
}

/// What an idle PE has done since it became idle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Looking,
    /// It has sent what it had collected.
    Flushed,
    /// It has begun to rest.
    Rested,
}

/// The scheduler of one PE.
pub(super) struct Worker {
    mailboxes: Mailboxes,
    /// The recording of the order of deliveries, if there is one.
    recording: Option<Rc<PeRecording>>,
    /// Whether the PE has sent what it has collected since its last work.
    flushed: bool,
    /// Looks since the last work.
    looks: u64,
    stage: Stage,
    /// Whether the PE counts as one that rests.
    resting: bool,
    idle_since: u64,
    busy: u32,
    /// When the PE last published its counters, in nanoseconds.
    published: u64,
    /// How often it was sampled whether a message that waits for a time is sent.
    sampled: u64,
}

impl Worker {
    /// The scheduler of a PE that is set up; of none if the setup failed.
    pub(super) fn new(built: Option<&Built>, node: &Node) -> Self {
        let (managers, expedited) = built.map_or((0, 0), |it| (it.managers.len(), it.pe.out.expedited));
        Worker {
            mailboxes: Mailboxes::new(managers, node.settings.mailboxes() as usize, expedited != 0),
            recording: built.and_then(|built| recording(&built.pe.out)),
            flushed: false,
            looks: 0,
            stage: Stage::Looking,
            resting: false,
            idle_since: 0,
            busy: 0,
            published: 0,
            sampled: 0,
        }
    }

    /// Runs what the PE has sent to itself and what has arrived; false if there is nothing.
    #[inline]
    pub(super) fn turn(&mut self, Built { pe, managers, .. }: &mut Built) -> bool {
        let (node, me) = (&*pe.out.node, pe.out.local);
        if pe.timers.count() != 0 {
            self.send_due(pe);
        }
        let batches = pe.out.batches();
        let is_congested = batches.is_some_and(Post::is_congested);
        let queued = if is_congested { 0 } else { pe.out.queued.take() };
        let postponed = self.mailboxes.postponed;
        if queued == 0 && node.bells.quiet(me) && (is_congested || postponed == 0) {
            if is_congested {
                // The process that it waits for may need this core.
                std::thread::yield_now();
            }
            // A congested PE with mail is not idle.
            return pe.out.queued.get() != 0 || postponed != 0;
        }
        if self.looks != 0 {
            self.continues(pe);
        }
        if let Some(recording) = &self.recording {
            recording.begin_turn();
        }
        let rung = node.bells.take(me);
        let took = if is_congested {
            self.mailboxes.run_batches(pe, managers, rung)
        } else {
            self.mailboxes.postponed = 0;
            self.mailboxes.run(pe, managers, rung | postponed)
        };
        if queued == 0 && !took {
            return true;
        }
        self.flushed = false;
        if let Some(recording) = self.recording.as_ref().filter(|_| !took) {
            recording.note_default();
        }
        run_queued(pe, managers, queued);
        self.busy = self.busy.wrapping_add(1);
        // Other PEs may wait for collected messages even if this PE is never idle, or for what it has to forward.
        let forwards = batches.is_some() && pe.collectives.forwards.get() && node.bells.quiet(me);
        if self.busy % BUSY == 0 || forwards {
            flush(pe);
            if let Some(metrics) = &pe.out.node.metrics {
                self.publish(pe, managers, metrics);
            }
        }
        pe.out.dispatch();
        true
    }

    /// Sends the messages whose time has come. Where the order is sampled, it samples whether the first one is sent.
    #[cold]
    fn send_due(&mut self, pe: &PeCx) {
        let any_time = pe.settings().samples_order();
        if any_time && !self.samples(pe) {
            return;
        }
        while pe.first_due().is_some_and(|left| left.is_zero()) {
            let number = pe.send_first();
            if let (Some(recording), Some(number)) = (&self.recording, number) {
                recording.note(&Event::Timer(number));
            }
            if any_time {
                break;
            }
        }
        pe.out.dispatch();
    }

    /// A random truth value, which depends on the seed of the run, the PE and the number of the sample only.
    fn samples(&mut self, pe: &PeCx) -> bool {
        self.sampled += 1;
        let of_pe = splitmix(pe.settings().seed ^ splitmix(pe.out.rank.into()));
        splitmix(of_pe.wrapping_add(self.sampled)) >> 63 == 0
    }

    /// Executes an order that did not come through a mailbox.
    pub(super) fn receive(&mut self, Built { pe, managers, .. }: &mut Built, order: PeOrder) {
        if self.looks != 0 {
            self.continues(pe);
        }
        self.flushed = false;
        match order {
            PeOrder::Quiet(_) => quiet_elsewhere(pe, order, managers),
            order => execute(pe, order, managers),
        }
        self.busy = self.busy.wrapping_add(1);
        if self.busy % BUSY == 0 {
            // A PE to which orders come all the time is never idle.
            flush(pe);
            if let Some(metrics) = &pe.out.node.metrics {
                self.publish(pe, managers, metrics);
            }
        }
        pe.out.dispatch();
    }

    fn continues(&mut self, pe: &PeCx) {
        if pe.delivery.has(post_delivery::LOAD) {
            pe.was_idle(self.idle_since, pe.clock.now());
        }
        if let Some(log) = pe.out.log() {
            log.resumes();
        }
        if let Some(metrics) = &pe.out.node.metrics {
            metrics.resumes(pe.out.local, metrics.now());
        }
        if self.resting {
            pe.out.node.quiescence.resume(pe.out.local);
            self.resting = false;
        }
        self.stage = Stage::Looking;
        self.looks = 0;
    }

    /// There was nothing to run: after some such checks the PE sends what it has collected, then it rests. Returns whether it
    /// begins to rest.
    #[inline]
    pub(super) fn idle(&mut self, Built { pe, managers, .. }: &mut Built, limits: Limits) -> bool {
        self.looks += 1;
        if self.looks == 1 && pe.delivery.has(post_delivery::LOAD) {
            self.idle_since = pe.clock.now();
        }
        if self.looks == 1 {
            self.is_observed_idle(pe, managers);
        }
        // One stage at a time: between two, the PE looks for what the first one has caused.
        match self.stage {
            Stage::Looking if self.looks >= limits.flush => {
                self.stage = Stage::Flushed;
                if let Some(recording) = self.recording.as_ref().filter(|_| !self.flushed) {
                    recording.note_default();
                }
                self.flushed = true;
                flush(pe);
                if let Some(log) = pe.out.log() {
                    log.rests();
                }
                if let Some(metrics) = &pe.out.node.metrics {
                    // The PE may stay idle for long.
                    self.published = metrics.now();
                    metrics.publish(pe.out.local, counters(pe, managers));
                }
                pe.out.dispatch();
            }
            // A message that waits for a time is in flight.
            Stage::Flushed if self.looks >= limits.rest && pe.timers.count() == 0 => {
                self.stage = Stage::Rested;
                pe.out.node.quiescence.rest(pe.out.local);
                self.resting = true;
                return true;
            }
            _ => {}
        }
        false
    }

    /// The PE has become idle: tells what is recorded of the run.
    #[inline]
    fn is_observed_idle(&mut self, pe: &PeCx, managers: &[Held]) {
        if let Some(log) = pe.out.log() {
            log.rests();
        }
        if let Some(metrics) = &pe.out.node.metrics {
            metrics.rests(pe.out.local, metrics.now());
            self.publish(pe, managers, metrics);
        }
    }

    /// Publishes the counters of the PE, unless it has done so just now.
    fn publish(&mut self, pe: &PeCx, managers: &[Held], metrics: &Metrics) {
        let now = metrics.now();
        if now.saturating_sub(self.published) >= PUBLISHES.as_nanos() as u64 {
            self.published = now;
            metrics.publish(pe.out.local, counters(pe, managers));
        }
    }

    /// Quiescence was found on this PE, which continues.
    pub(super) fn found_quiet(&mut self, out: &Outbox) {
        out.node.quiescence.resume(out.local);
        self.resting = false;
        // It has work now, or begins to be idle once more.
        self.stage = Stage::Looking;
        self.looks = 1;
    }

    /// Waits a moment for mail, or sleeps until the bell rings.
    #[inline]
    pub(super) fn wait(&self, pe: &PeCx, idle: &mut IdleThread) {
        if !idle.wait(self.looks) {
            return;
        }
        match self.stage {
            Stage::Rested => idle.sleep(|| pe.out.node.bells.sleep(pe.out.local, None)),
            Stage::Flushed if pe.timers.count() != 0 => {
                idle.sleep(|| pe.out.node.bells.sleep(pe.out.local, pe.first_due()));
            }
            _ => {}
        }
    }
}

/// Executes the order of the connection to other processes that nothing was in flight.
fn quiet_elsewhere(pe: &PeCx, order: PeOrder, managers: &[Held]) {
    if let Some(log) = pe.out.log() {
        log.was_quiet();
    }
    execute(pe, order, managers);
}

/// The recording of the order of deliveries, if there is one.
pub(super) fn recording(out: &Outbox) -> Option<Rc<PeRecording>> {
    match out.interleaved() {
        Some(Interleaved::Record(recording)) => Some(Rc::clone(recording)),
        _ => None,
    }
}

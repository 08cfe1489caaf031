//! A simulated machine: all PEs in one thread, in virtual time.
//!
//! A discrete-event simulation. A PE works in *turns*: it takes one message from its inbox or its own queue
//! ([`MessageScheduler`] chooses), and its clock advances by the time of the turn. Turns begin in order of time.
//! So a message arrives at a PE whose clock is not past the arrival, unless the PE was busy. Events at the same time
//! happen in the order of their causes, so the same seed gives the same run as long as work is charged.

mod own;
mod packets;

use self::own::{priority, run_one};
use self::packets::{Latencies, Packets};
use super::simulated::Mailbag;
use super::worker::BUSY;
use crate::clock::{Clock, VirtualClock};
use crate::node::{Failure, Node};
use crate::options::{PeFailure, Simulation};
use crate::pe::{PacketCarrier as _, PeCx};
use crate::pulse::RunningPe;
use crate::quiescence::Quiet;
use crate::report::{MachineReport, PeTime};
use crate::scheduler::{Built, flush, found_quiet, receive};
use crate::tracer::Log;
use equipoise_model::table::seconds;
use equipoise_network::models::{Events, Message, Network};
use equipoise_network::trace::{MessageScheduler, Trace};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// An event outside the network.
enum Event {
    /// The packet with this number leaves its PE.
    Leaves(usize),
    /// A PE takes a turn.
    Turn(usize),
    /// The time of a message is over that a PE keeps.
    Due(usize),
}

/// The work of a turn.
enum Turn {
    /// Starts the clocks, and `main`.
    Begin,
    /// Takes one message.
    Take,
    /// Sends the messages that wait for the quiescence round of this number.
    FoundQuiet(Quiet),
}

/// The number of events at one time after which the run fails, because virtual time does not advance. Smaller in
/// tests, which need not wait.
const STANDSTILL: u32 = if cfg!(test) { 1 << 16 } else { 1 << 27 };

/// The state of a PE in the scheduler.
#[derive(Default)]
struct PeState {
    /// Packets that have arrived, by number: those of expedited arrays, and the others.
    inboxes: [VecDeque<usize>; 2],
    /// Chooses the next message.
    turns: MessageScheduler,
    /// Whether a turn of the PE is scheduled.
    has_turn: bool,
    /// The messages whose time is over, and that are not yet sent.
    due: u32,
    /// The bit of [`Outbox::queued`](crate::pe::Outbox::queued) to check first in the next turn.
    bit: u32,
    /// The number of turns since the PE was idle.
    busy_turns: u32,
    /// The sum of its turns, in seconds.
    busy_seconds: f64,
    /// The start of its last turn, and the overhead before that turn, in seconds.
    last_turn: (f64, f64),
}

struct Scheduler<'a> {
    node: &'a Node,
    simulation: &'a Simulation,
    bag: &'a Mailbag,
    pes: &'a mut [Built],
    running: &'a RunningPe,
    network: Box<dyn Network>,
    events: Events<Event>,
    states: Vec<PeState>,
    packets: Packets,
    latencies: Latencies,
    /// The time of the exit; negative infinity if the run failed.
    end: Option<f64>,
    /// The execution that called `exit`, if there is a trace.
    exit: Option<u32>,
    /// Executions on other PEs on which the turn in progress depends.
    quiet: Vec<u32>,
}

/// Runs the PEs until the run is over, and stores the report of the machine.
pub(super) fn schedule(
    node: &Node,
    simulation: &Simulation,
    bag: &Mailbag,
    log: Option<Rc<Log>>,
    pes: &mut [Built],
    running: &RunningPe,
) {
    let Some(network) = simulation.network.lock().take() else {
        return node.fail(Failure::Program("the network is in use by another run".into()));
    };
    if let Some(log) = &log {
        let head = Trace {
            topology: node.settings.topology.spec(),
            network: simulation.spec.clone(),
            seed: node.settings.seed,
            pes: node.pes,
            speeds: simulation.speeds.clone(),
            arrays: pes[0].pe.infos.iter().map(|info| info.name.to_owned()).collect(),
            ..Trace::default()
        };
        log.begin(node.settings.records.record.as_deref(), &head, node.settings.records.perfetto.is_some());
    }
    let states = pes.iter().map(|_| PeState::default()).collect();
    let mut scheduler = Scheduler {
        node,
        simulation,
        bag,
        pes,
        running,
        network,
        events: Events::new(),
        states,
        packets: Packets::default(),
        latencies: Latencies::default(),
        end: None,
        exit: None,
        quiet: Vec::new(),
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // Only a restarted run begins on other PEs, too.
        let begin = if node.settings.restart.is_some() { scheduler.pes.len() } else { 1 };
        (0..begin).for_each(|at| scheduler.turn(at, 0.0, Turn::Begin));
        scheduler.run();
        scheduler.warn_of_missed_failure();
    }));
    // A failed run has a report, too.
    if let Err(payload) = ran {
        node.fail(scheduler.pes[running.get()].panic_failure(&*payload));
    }
    let report = scheduler.report();
    // Packets that have not been received are reported where the run did not finish.
    scheduler.packets.all.drain(..).flatten().for_each(|packet| bag.send(packet));
    let entries = node.pulses.all_entries();
    let (trace, trace_error) =
        log.map(|log| log.finish(report.seconds, scheduler.exit, entries)).unwrap_or_default();
    let mut outcome = node.outcome.lock();
    (outcome.machine, outcome.trace, outcome.trace_error) = (Some(report), trace, trace_error);
}

impl Scheduler<'_> {
    fn run(&mut self) {
        let mut arrivals = Vec::new();
        // The current time, and the number of events at that time.
        let (mut reached, mut still) = (f64::NEG_INFINITY, 0);
        loop {
            let Some(first) = self.events.next_with(&mut *self.network) else {
                if self.found_quiet() {
                    continue;
                }
                return;
            };
            if self.is_over(first) {
                return;
            }
            still = if first > reached { 0 } else { still };
            reached = first;
            self.network.advance(first, &mut arrivals);
            for arrival in arrivals.drain(..) {
                self.arrives(arrival.token as usize, arrival.seconds);
            }
            // All events of one time come before the next call of the network, so that the network handles their sends
            // together.
            loop {
                if self.is_over(first) {
                    return;
                }
                match self.events.pop(first) {
                    Some((seconds, Event::Leaves(number))) => self.leaves(number, seconds),
                    Some((seconds, Event::Turn(at))) => self.turn(at, seconds, Turn::Take),
                    Some((seconds, Event::Due(at))) => {
                        self.states[at].due += 1;
                        self.schedule_turn(at, seconds);
                    }
                    None => break,
                }
                still += 1;
                if still > STANDSTILL {
                    return self.node.fail(Failure::Program(format!(
                        "virtual time does not advance: {STANDSTILL} events at {first} s; charge work, or set \
                         --delivery above 0"
                    )));
                }
            }
        }
    }

    /// Whether the run has ended at `seconds`. Events on other PEs before the exit are part of the run.
    fn is_over(&self, seconds: f64) -> bool {
        let first = self.simulation.failures.first().filter(|_| self.end.is_none());
        if let Some(fail) = first.filter(|fail| seconds >= fail.seconds) {
            let saved = match &self.node.saver {
                Some(saver) if saver.has_saved() => "--restart continues the run from its last checkpoint",
                _ => "no checkpoint was saved before",
            };
            self.node.fail(Failure::Program(format!(
                "PE {} failed at {} s of virtual time, as --fail says; {saved}",
                fail.pe, fail.seconds
            )));
            return true;
        }
        self.end.is_some_and(|end| seconds >= end)
    }

    /// Warns of a PE that was to fail later than the run ended: the run was no test of its recovery. Time begins again with a restart,
    /// which keeps its flags.
    fn warn_of_missed_failure(&self) {
        let Some(end) = self.end.filter(|_| self.node.settings.restart.is_none()) else { return };
        let missed = |fail: &&PeFailure| end.is_finite() && fail.seconds > end;
        if let Some(fail) = self.simulation.failures.first().filter(missed) {
            let end = seconds(end);
            self.node.outcome.lock().warnings.push(format!(
                "--fail {fail}: the run ended before, after {end} of virtual time; give an earlier time"
            ));
        }
    }

    /// Sends a packet into the network.
    fn leaves(&mut self, number: usize, seconds: f64) {
        let packet = self.packets.get(number);
        let bytes = packet.bytes.len() as u64;
        let message = Message { token: number as u64, from: packet.from, to: packet.to, bytes };
        self.network.send(seconds, message);
    }

    /// A packet arrives from the network.
    fn arrives(&mut self, number: usize, seconds: f64) {
        let packet = self.packets.get(number);
        let at = packet.to as usize;
        self.latencies.add(seconds - packet.seconds);
        let infos = &self.pes[at].pe.infos;
        let expedited = packet.array.is_some_and(|array| infos[usize::from(array)].expedited);
        // Behind those of the same or a smaller priority; usually all have the same.
        let (inbox, priority) = (&mut self.states[at].inboxes[usize::from(!expedited)], packet.priority);
        let packets = &self.packets;
        let before = inbox.iter().rposition(|&other| packets.get(other).priority <= priority);
        inbox.insert(before.map_or(0, |before| before + 1), number);
        self.schedule_turn(at, seconds);
    }

    /// Schedules a turn of a PE at `seconds`, or as soon as the PE is free.
    fn schedule_turn(&mut self, at: usize, seconds: f64) {
        if !self.states[at].has_turn {
            self.states[at].has_turn = true;
            self.events.add(seconds.max(self.clock(at).now()), Event::Turn(at));
        }
    }

    /// The clock of a PE.
    fn clock(&self, at: usize) -> &VirtualClock {
        self.pes[at].pe.clock.simulated().expect("PEs of a simulated machine have virtual clocks")
    }

    /// Runs a turn of a PE. An idle PE then flushes. At the end the packets of the turn leave.
    fn turn(&mut self, at: usize, seconds: f64, turn: Turn) {
        self.running.set(at);
        let clock = self.clock(at);
        let (idle_since, overhead) = (clock.ticks(), clock.overhead());
        clock.resume(seconds);
        self.pes[at].pe.was_idle(idle_since, clock.ticks());
        self.states[at].last_turn = (seconds, overhead);
        if let Some(tracer) = self.pes[at].pe.out.tracer() {
            tracer.begins_turn(seconds);
        }
        match turn {
            Turn::Begin => self.pes[at].begin(),
            Turn::Take => self.take(at),
            Turn::FoundQuiet(quiet) => {
                let Built { pe, managers, .. } = &mut self.pes[at];
                found_quiet(pe, quiet, managers);
            }
        }
        let Built { pe, .. } = &mut self.pes[at];
        let more = |pe: &PeCx, state: &PeState| {
            pe.out.queued.get() != 0 || state.inboxes.iter().any(|inbox| !inbox.is_empty())
        };
        let state = &mut self.states[at];
        state.busy_turns = if more(pe, state) { state.busy_turns.wrapping_add(1) } else { 0 };
        let forwards = pe.collectives.forwards.get() && state.inboxes.iter().all(VecDeque::is_empty);
        if forwards || state.busy_turns % BUSY == 0 {
            // Other PEs may wait for collected messages even if this PE is never idle.
            flush(pe);
        }
        let more = more(pe, &self.states[at]);
        let clock = self.clock(at);
        clock.charge_overhead();
        let now = clock.now();
        if let Some(tracer) = self.pes[at].pe.out.tracer() {
            tracer.ends_turn(&std::mem::take(&mut self.quiet));
        }
        self.states[at].busy_seconds += now - seconds;
        if self.end.is_none() && self.node.stopped() {
            let exited = self.node.outcome.lock().result.is_some();
            self.end = Some(if exited { now } else { f64::NEG_INFINITY });
            self.exit = self.pes[at].pe.out.tracer().and_then(|tracer| tracer.last()).filter(|_| exited);
        }
        for due in self.pes[at].pe.timers.take_unscheduled() {
            self.events.add(due.as_secs_f64().max(seconds), Event::Due(at));
        }
        for packet in self.bag.take() {
            let leaves = packet.seconds;
            let number = self.packets.add(packet);
            if leaves > seconds {
                self.events.add(leaves, Event::Leaves(number));
            } else {
                self.leaves(number, seconds);
            }
        }
        if more {
            self.schedule_turn(at, now);
        }
    }

    /// A PE takes one message.
    fn take(&mut self, at: usize) {
        let (state, Built { pe, managers, .. }) = (&mut self.states[at], &mut self.pes[at]);
        state.has_turn = false;
        for _ in 0..std::mem::take(&mut state.due) {
            pe.send_first();
        }
        spend(&pe.clock, self.simulation.delivery);
        let own = [pe.out.queued.get() & pe.out.expedited, pe.out.queued.get() & !pe.out.expedited];
        let mut has_own = own.map(|queued| queued != 0);
        let mut has_others = [0, 1].map(|class: usize| !state.inboxes[class].is_empty());
        if pe.out.has_priorities() {
            for class in [0, 1] {
                let Some(&number) = state.inboxes[class].front().filter(|_| has_own[class]) else { continue };
                let (mine, theirs) = (priority(pe, managers, own[class]), self.packets.get(number).priority);
                (has_own[class], has_others[class]) = (mine <= theirs, theirs <= mine);
            }
        }
        let Some(next) = state.turns.next(has_own, has_others) else { return };
        if let Some(tracer) = pe.out.tracer().filter(|_| next.class == 0) {
            tracer.takes_expedited();
        }
        if next.is_own {
            run_one(pe, managers, own[next.class], &mut state.bit);
        } else if let Some(number) = state.inboxes[next.class].pop_front() {
            if let Some(clock) = pe.clock.simulated() {
                clock.packet_arrives();
            }
            let packet = self.packets.remove(number);
            if let Some(tracer) = pe.out.tracer() {
                tracer.unpacks(packet.number);
            }
            receive(pe, managers, packet.array, &packet.bytes);
        }
    }

    /// No message is in flight: starts a quiescence round at the latest clock. False if the run has ended, or if
    /// no send waits for quiescence, which fails the run.
    fn found_quiet(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        let Some(next) = self.node.quiet(None) else { return false };
        let now = self.latest();
        let unawaited = |built: &Built| built.pe.out.tracer().map(|tracer| tracer.unawaited());
        let all: Vec<u32> = self.pes.iter().filter_map(unawaited).flatten().collect();
        let quiet: Vec<u32> =
            self.pes[0].pe.out.tracer().and_then(|it| it.finds_quiet(now, &all)).into_iter().collect();
        for at in 0..self.pes.len() {
            self.quiet.clone_from(&quiet);
            self.turn(at, now, Turn::FoundQuiet(next));
        }
        true
    }

    /// The latest clock.
    fn latest(&self) -> f64 {
        (0..self.pes.len()).map(|at| self.clock(at).now()).fold(0.0, f64::max)
    }

    fn report(&self) -> MachineReport {
        let seconds = self.end.filter(|end| end.is_finite()).unwrap_or_else(|| self.latest());
        let time = |(at, state): (usize, &PeState)| {
            let (clock, (begin, overhead_before)) = (self.clock(at), state.last_turn);
            // Executions still running at the end are truncated.
            let beyond = (clock.now() - seconds.max(begin)).max(0.0);
            let part = if beyond > 0.0 { beyond / (clock.now() - begin) } else { 0.0 };
            let turns_seconds = state.busy_seconds - beyond;
            let overhead_seconds = clock.overhead() - part * (clock.overhead() - overhead_before);
            PeTime {
                busy_seconds: turns_seconds - overhead_seconds,
                overhead_seconds,
                idle_seconds: (seconds - turns_seconds).max(0.0),
            }
        };
        let wires = self.network.wires();
        MachineReport {
            seconds,
            pes: self.states.iter().enumerate().map(time).collect(),
            messages: self.latencies.count,
            mean_latency_seconds: self.latencies.mean(),
            p99_latency_seconds: self.latencies.quantile(0.99),
            link_bytes: wires.bytes.clone(),
            busiest_link: wires.busiest().map(|(link, seconds)| (wires.machine().link(link).name, seconds)),
        }
    }
}

/// Spends time of the runtime.
fn spend(clock: &Clock, seconds: f64) {
    if let Some(clock) = clock.simulated() {
        clock.spend(seconds);
    }
}

#[cfg(test)]
mod tests {
    use crate::prelude::*;
    use crate::{Config, Machine};

    /// Sends to itself forever.
    #[derive(Serialize, Deserialize)]
    struct Endless {
        done: Exit<()>,
    }

    #[chare(index = [i32; 1])]
    impl Endless {
        #[entry]
        fn again(&mut self, cx: &Cx<Self>) {
            if cx.index() == [1] {
                self.done.exit(cx, ());
            }
            cx.peer(cx.index()).again();
        }
    }

    #[test]
    fn a_run_whose_virtual_time_does_not_advance_fails() {
        let config = Config::on_machine("mesh:2", "ideal");
        let config = Config { machine: Machine { delivery: 0.0, ..config.machine.clone() }, ..config };
        let failed = crate::try_run(config, |pe, done: Exit<()>| {
            let endless = pe.array([2], |_| Endless { done });
            pe.main(move |pe| endless.at(pe, [0]).again());
        });
        let sentence = failed.expect_err("virtual time does not advance").to_string();
        assert!(sentence.contains("virtual time does not advance: 65536 events at 0 s"), "{sentence}");
    }
}

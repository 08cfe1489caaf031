//! All PEs in one thread, in virtual time: a simulated machine.
//!
//! A discrete-event simulation. A PE does one thing at a time, in *turns*: it takes one message, from its
//! inbox or from its own queue ([`Turns`] says which), and its clock moves by what that costs. Turns begin in the order of
//! their times, so whatever a turn sends reaches a PE that has not gone on beyond its arrival, unless it was
//! busy. What happens at the same time happens in the order in which it was caused, so the same seed gives the
//! same run as long as work is charged.

use crate::clock::VirtualClock;
use crate::context::{ARRAY_BITS, PE_ORDERS, PeCx};
use crate::elements::Manager;
use crate::machine::Simulation;
use crate::node::{Failure, Node};
use crate::report::{MachineReport, PeTime};
use crate::run::Built;
use crate::tracer::Log;
use crate::transport::schedule::{pass_on, run_queued};
use crate::transport::simulated::{Mailbag, Packet, receive};
use equipoise_strategies::network::{Events, Message, Network};
use equipoise_strategies::trace::{Trace, Turns};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// What happens beside what happens in the network.
enum Event {
    /// The packet of that number leaves its PE.
    Leaves(usize),
    /// A PE takes a turn.
    Turn(usize),
}

/// What a PE does in a turn.
enum Turn {
    /// It starts its clocks, and `main`.
    Begin,
    /// It takes one message.
    Take,
    /// It sends what waited for the quiescence of that number.
    FoundQuiet(u64),
}

/// So many events at one time, and time stands still for ever. (Tests need not wait for so many.)
const STANDSTILL: u32 = if cfg!(test) { 1 << 16 } else { 1 << 27 };

/// A PE as the scheduler sees it.
#[derive(Default)]
struct Place {
    /// Packets that have arrived, by number: those of expedited arrays, and the others.
    inboxes: [VecDeque<usize>; 2],
    /// What it takes next.
    turns: Turns,
    /// Whether a turn is among the events.
    awaits_turn: bool,
    /// The bit of [`PeCx::queued`] it looks at first next time.
    bit: u32,
    /// Seconds of all its turns.
    busy_seconds: f64,
    /// When its last turn began, and what the runtime had taken until then.
    last_turn: (f64, f64),
}

struct Scheduler<'a> {
    node: &'a Node,
    simulation: &'a Simulation,
    bag: &'a Mailbag,
    pes: &'a mut [Built],
    running: &'a Cell<usize>,
    network: Box<dyn Network>,
    events: Events<Event>,
    places: Vec<Place>,
    packets: Packets,
    latencies: Latencies,
    /// When the program exited; before everything if it failed.
    end: Option<f64>,
    /// The execution that exited, if there is a trace.
    exit: Option<u32>,
    /// The executions that had to be over before the turn in progress, elsewhere.
    quiet: Vec<u32>,
}

/// Runs the PEs until the run is over, and leaves the report of the machine.
pub(super) fn schedule(
    node: &Node,
    simulation: &Simulation,
    bag: &Mailbag,
    log: Option<Rc<Log>>,
    pes: &mut [Built],
    running: &Cell<usize>,
) {
    let Some(network) = simulation.network.lock().take() else {
        return node.fail(Failure::Program("the network is in use by another run".into()));
    };
    let places = pes.iter().map(|_| Place::default()).collect();
    let mut scheduler = Scheduler {
        node,
        simulation,
        bag,
        pes,
        running,
        network,
        events: Events::new(),
        places,
        packets: Packets::default(),
        latencies: Latencies::default(),
        end: None,
        exit: None,
        quiet: Vec::new(),
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        scheduler.turn(0, 0.0, Turn::Begin);
        scheduler.run();
    }));
    // What happened until then is told of a run that failed, too.
    if let Err(payload) = ran {
        node.fail(scheduler.pes[running.get()].blame(&*payload));
    }
    let report = scheduler.report();
    let trace = log.map(|log| {
        log.finish(Trace {
            topology: node.settings.topology.spec(),
            network: simulation.spec.clone(),
            seed: node.settings.seed,
            pes: node.pes,
            seconds: report.seconds,
            speeds: simulation.speeds.clone(),
            exit: scheduler.exit,
            arrays: scheduler.pes[0].pe.infos.iter().map(|info| info.name.to_owned()).collect(),
            ..Trace::default()
        })
    });
    let mut outcome = node.outcome.lock();
    (outcome.machine, outcome.trace) = (Some(report), trace);
}

impl Scheduler<'_> {
    fn run(&mut self) {
        let mut arrivals = Vec::new();
        // How many things happened at the time that is reached.
        let (mut reached, mut still) = (f64::NEG_INFINITY, 0);
        loop {
            let Some(first) = self.events.next_with(&mut *self.network) else {
                if self.found_quiet() {
                    continue;
                }
                return;
            };
            still = if first > reached { 0 } else { still };
            reached = first;
            self.network.advance(first, &mut arrivals);
            for arrival in arrivals.drain(..) {
                self.arrives(arrival.token as usize, arrival.seconds);
            }
            // All that happens at one time before the network is asked again: what is sent then is part of what
            // it looks at together.
            loop {
                // What happened elsewhere before the exit is part of the run.
                if self.end.is_some_and(|end| first >= end) {
                    return;
                }
                match self.events.pop(first) {
                    Some((seconds, Event::Leaves(number))) => self.leaves(number, seconds),
                    Some((seconds, Event::Turn(at))) => self.turn(at, seconds, Turn::Take),
                    None => break,
                }
                still += 1;
                if still > STANDSTILL {
                    return self.node.fail(Failure::Program(format!(
                        "{STANDSTILL} things happened at {first} s, and no time passed; charge work, or let deliveries \
                         take time (--delivery)"
                    )));
                }
            }
        }
    }

    /// A packet is given to the network.
    fn leaves(&mut self, number: usize, seconds: f64) {
        let packet = self.packets.get(number);
        let bytes = packet.bytes.len() as u64;
        let message = Message { token: number as u64, from: packet.from, to: packet.to, bytes };
        self.network.send(seconds, message);
    }

    /// The network gives a packet back.
    fn arrives(&mut self, number: usize, seconds: f64) {
        let packet = self.packets.get(number);
        let at = packet.to as usize;
        self.latencies.add(seconds - packet.seconds);
        let infos = &self.pes[at].pe.infos;
        let expedited = packet.array.is_some_and(|array| infos[usize::from(array)].expedited);
        self.places[at].inboxes[usize::from(!expedited)].push_back(number);
        self.awaits_turn(at, seconds);
    }

    /// A PE has something to do at `seconds`, or as soon as it is free.
    fn awaits_turn(&mut self, at: usize, seconds: f64) {
        if !self.places[at].awaits_turn {
            self.places[at].awaits_turn = true;
            self.events.add(seconds.max(self.clock(at).now()), Event::Turn(at));
        }
    }

    /// The clock of a PE.
    fn clock(&self, at: usize) -> &VirtualClock {
        self.pes[at].pe.ticker.simulated().expect("PEs of a simulated machine have such clocks")
    }

    /// A PE does something; then what it sent leaves, and if it has nothing else to do it passes on what
    /// it collected.
    fn turn(&mut self, at: usize, seconds: f64, turn: Turn) {
        self.running.set(at);
        let clock = self.clock(at);
        let (idle_since, overhead) = (clock.ticks(), clock.overhead());
        clock.resume(seconds);
        self.pes[at].pe.was_idle(idle_since, clock.ticks());
        self.places[at].last_turn = (seconds, overhead);
        if let Some(tracer) = self.pes[at].pe.tracer() {
            tracer.begins_turn(seconds);
        }
        match turn {
            Turn::Begin => self.pes[at].begin(),
            Turn::Take => self.take(at),
            Turn::FoundQuiet(round) => self.pes[at].pe.found_quiet(round),
        }
        let Built { pe, managers, .. } = &mut self.pes[at];
        let more = |pe: &PeCx, place: &Place| {
            pe.queued.get() != 0 || place.inboxes.iter().any(|inbox| !inbox.is_empty())
        };
        if !more(pe, &self.places[at]) {
            pass_on(pe, managers);
        }
        let more = more(pe, &self.places[at]);
        let clock = self.clock(at);
        clock.settle_overhead();
        let now = clock.now();
        if let Some(tracer) = self.pes[at].pe.tracer() {
            tracer.ends_turn(&std::mem::take(&mut self.quiet));
        }
        self.places[at].busy_seconds += now - seconds;
        if self.end.is_none() && self.node.stopped() {
            let exited = self.node.outcome.lock().result.is_some();
            self.end = Some(if exited { now } else { f64::NEG_INFINITY });
            self.exit = self.pes[at].pe.tracer().and_then(|tracer| tracer.last()).filter(|_| exited);
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
            self.awaits_turn(at, now);
        }
    }

    /// A PE takes one message.
    fn take(&mut self, at: usize) {
        let (place, Built { pe, managers, .. }) = (&mut self.places[at], &mut self.pes[at]);
        place.awaits_turn = false;
        spend(pe, self.simulation.delivery);
        let own = [pe.queued.get() & pe.expedited, pe.queued.get() & !pe.expedited];
        let others = [0, 1].map(|class: usize| !place.inboxes[class].is_empty());
        let Some(next) = place.turns.next(own.map(|queued| queued != 0), others) else { return };
        if let Some(tracer) = pe.tracer().filter(|_| next.class == 0) {
            tracer.takes_expedited();
        }
        if next.is_own {
            run_one(pe, managers, own[next.class], &mut place.bit);
        } else if let Some(number) = place.inboxes[next.class].pop_front() {
            spend(pe, self.simulation.overhead);
            let packet = self.packets.remove(number);
            if let Some(tracer) = pe.tracer() {
                tracer.unpacks(packet.number);
            }
            receive(pe, managers, &packet);
        }
    }

    /// Nothing moves: sends what waited for that, at the time of the last thing that happened. False if
    /// nothing did, and the run will never end, or it has ended.
    fn found_quiet(&mut self) -> bool {
        if self.end.is_some() {
            return false;
        }
        let Some(round) = self.node.quiescence.round() else {
            self.node.fail(Failure::Quiet);
            return false;
        };
        let now = self.latest();
        let unawaited = |built: &Built| built.pe.tracer().map(|tracer| tracer.unawaited());
        let all: Vec<u32> = self.pes.iter().filter_map(unawaited).flatten().collect();
        let quiet: Vec<u32> =
            self.pes[0].pe.tracer().and_then(|it| it.finds_quiet(now, &all)).into_iter().collect();
        for at in 0..self.pes.len() {
            self.quiet.clone_from(&quiet);
            self.turn(at, now, Turn::FoundQuiet(round));
        }
        true
    }

    /// The latest clock.
    fn latest(&self) -> f64 {
        (0..self.pes.len()).map(|at| self.clock(at).now()).fold(0.0, f64::max)
    }

    fn report(&self) -> MachineReport {
        let seconds = self.end.filter(|end| end.is_finite()).unwrap_or_else(|| self.latest());
        let time = |(at, place): (usize, &Place)| {
            let (clock, (begin, overhead_before)) = (self.clock(at), place.last_turn);
            // Who was busy at the end is cut there.
            let beyond = (clock.now() - seconds.max(begin)).max(0.0);
            let part = if beyond > 0.0 { beyond / (clock.now() - begin) } else { 0.0 };
            let turns_seconds = place.busy_seconds - beyond;
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
            pes: self.places.iter().enumerate().map(time).collect(),
            messages: self.latencies.count,
            mean_latency_seconds: self.latencies.mean(),
            p99_latency_seconds: self.latencies.quantile(0.99),
            link_bytes: wires.bytes.clone(),
            busiest_link: wires.busiest().map(|(link, seconds)| (wires.machine().link(link).name, seconds)),
        }
    }
}

/// Books what the runtime takes.
fn spend(pe: &PeCx, seconds: f64) {
    if let Some(clock) = pe.ticker.simulated() {
        clock.spend(seconds);
    }
}

/// Runs one message that a PE sent itself, or an order, of those `queued`; which array comes first changes from
/// one to the next.
fn run_one(pe: &PeCx, managers: &mut [Box<dyn Manager>], queued: u64, next: &mut u32) {
    let bit = (queued.rotate_right(*next).trailing_zeros() + *next) % 64;
    *next = (bit + 1) % 64;
    pe.queued.set(pe.queued.get() & !(1 << bit));
    if 1 << bit == PE_ORDERS {
        return run_queued(pe, managers, PE_ORDERS);
    }
    // Arrays beyond the number of bits share them.
    for array in (bit as usize..managers.len()).step_by(ARRAY_BITS) {
        managers[array].one(pe);
    }
}

/// Packets under way and in inboxes, by number.
#[derive(Default)]
struct Packets {
    all: Vec<Option<Packet>>,
    free: Vec<usize>,
}

impl Packets {
    fn add(&mut self, packet: Packet) -> usize {
        match self.free.pop() {
            Some(number) => {
                self.all[number] = Some(packet);
                number
            }
            None => {
                self.all.push(Some(packet));
                self.all.len() - 1
            }
        }
    }

    fn get(&self, number: usize) -> &Packet {
        self.all[number].as_ref().expect("a number stands for a packet until it is taken")
    }

    fn remove(&mut self, number: usize) -> Packet {
        self.free.push(number);
        self.all[number].take().expect("a number stands for a packet until it is taken")
    }
}

/// How long messages took, sorted into buckets a hundredth wide.
#[derive(Default)]
struct Latencies {
    count: u64,
    sum_seconds: f64,
    /// How many by the bits of the sign, the exponent and the first 7 of the mantissa.
    buckets: FxHashMap<u32, u64>,
}

impl Latencies {
    const SHIFT: u32 = 45;

    fn add(&mut self, seconds: f64) {
        self.count += 1;
        self.sum_seconds += seconds;
        *self.buckets.entry((seconds.to_bits() >> Self::SHIFT) as u32).or_default() += 1;
    }

    fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_seconds / self.count as f64 }
    }

    /// What that part of the messages did not exceed, to the width of a bucket.
    fn quantile(&self, part: f64) -> f64 {
        let mut buckets: Vec<(u32, u64)> =
            self.buckets.iter().map(|(&bucket, &count)| (bucket, count)).collect();
        buckets.sort_unstable();
        let mut left = (self.count as f64 * part).ceil() as u64;
        for (bucket, count) in buckets {
            if count >= left {
                return f64::from_bits(u64::from(bucket) << Self::SHIFT);
            }
            left -= count;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prelude::*;
    use crate::{Config, Machine};

    /// Talks to itself for ever.
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
    fn a_run_in_which_time_stands_still_ends_with_a_sentence() {
        let config = Config::on_machine("mesh:2", "ideal");
        let config = Config { machine: Machine { delivery: 0.0, ..config.machine.clone() }, ..config };
        let failed = crate::try_run(config, |pe, done: Exit<()>| {
            let endless = pe.array([2], |_| Endless { done });
            pe.main(move |pe| endless.at(pe, [0]).again());
        });
        let sentence = failed.expect_err("it never ends").to_string();
        assert!(sentence.contains("65536 things happened at 0 s, and no time passed"), "{sentence}");
    }

    #[test]
    fn quantiles_are_known_to_the_width_of_a_bucket() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.mean(), latencies.quantile(0.99)), (0.0, 0.0));
        (1..=1000).for_each(|i| latencies.add(f64::from(i) * 1e-6));
        assert!((latencies.mean() / 500.5e-6 - 1.0).abs() < 1e-12);
        for part in [0.01, 0.5, 0.99] {
            let found = latencies.quantile(part) / (part * 1e-3);
            assert!((0.99..=1.0).contains(&found), "{part}: {found}");
        }
    }
}

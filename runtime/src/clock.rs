//! The clocks of a PE: real time, or the virtual time of a simulated machine.
//!
//! Every PE has two clocks of this type. The *wall clock* (`PeCx::clock`) measures periods, load-balancing steps and
//! idle time. The *load clock* (`Recorder::clock`) measures the load of elements. The load clock is a copy of the
//! wall clock, or with `--lb-load cpu` the CPU time of the thread.

use crate::options::{LbLoad, Settings, Simulation, Uncharged};
use crate::tracer::Tracer;
use cpu_time::ThreadTime;
use equipoise_network::trace::Speeds;
use std::cell::Cell;
use std::rc::Rc;

/// A clock of a PE. Where nothing is measured no clock is created, because calibrating the ticks of the TSC takes a
/// while.
#[derive(Clone)]
pub(crate) enum Clock {
    /// No time is measured.
    Still,
    /// The TSC (or the operating system's clock where there is no constant TSC).
    Real(quanta::Clock),
    /// The CPU time of the thread, in nanoseconds. Every PE runs in one thread.
    Cpu,
    /// The clock of a PE of a simulated machine.
    Virtual(Rc<VirtualClock>),
}

/// Ticks per second of virtual time; 64 bits are enough for half a year.
const VIRTUAL_HERTZ: f64 = 1e12;

impl Clock {
    /// The wall clock of a PE: virtual on a simulated machine, else real if there are load-balancing steps or checkpoints, else
    /// [`Clock::Still`].
    pub(crate) fn of(settings: &Settings, rank: u32, tracer: Option<Tracer>) -> Self {
        match &settings.simulation {
            Some(simulation) => Clock::Virtual(Rc::new(VirtualClock::new(simulation, rank, tracer))),
            None if settings.balances() || settings.checkpoint.is_some() => Clock::Real(quanta::Clock::new()),
            None => Clock::Still,
        }
    }

    /// The current time, in ticks. A later charge does not replace time measured before this call.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        match self {
            Clock::Real(clock) => clock.raw(),
            Clock::Still => 0,
            Clock::Cpu => ThreadTime::now().as_duration().as_nanos() as u64,
            Clock::Virtual(clock) => clock.synced_ticks(),
        }
    }

    /// A number of ticks in seconds.
    pub(crate) fn seconds(&self, ticks: u64) -> f64 {
        match self {
            Clock::Real(clock) => clock.delta_as_nanos(0, ticks) as f64 * 1e-9,
            Clock::Cpu => ticks as f64 * 1e-9,
            Clock::Still => 0.0,
            Clock::Virtual(_) => ticks as f64 / VIRTUAL_HERTZ,
        }
    }

    /// The load clock of a PE with this wall clock.
    pub(crate) fn of_loads(settings: &Settings, wall: &Clock) -> Self {
        match wall {
            Clock::Real(_) if settings.lb_load == LbLoad::Cpu => Clock::Cpu,
            wall => wall.clone(),
        }
    }

    /// The virtual clock, on a simulated machine.
    #[inline]
    pub(crate) fn simulated(&self) -> Option<&Rc<VirtualClock>> {
        match self {
            Clock::Virtual(clock) => Some(clock),
            _ => None,
        }
    }

    /// The current virtual time in seconds; 0 if time is not simulated.
    pub(crate) fn virtual_seconds(&self) -> f64 {
        self.simulated().map_or(0.0, |clock| clock.now())
    }

    /// The current speed factor of this PE; 1 is normal.
    pub(crate) fn speed(&self) -> f64 {
        self.simulated().map_or(1.0, |clock| clock.speeds.at(clock.now.get()))
    }
}

/// The clock of one PE of a simulated machine. It advances when work is charged (or measured) and when the
/// scheduler sets it to the time of the next event.
pub(crate) struct VirtualClock {
    now: Cell<f64>,
    speeds: Speeds,
    /// The real clock if uncharged work is measured, and the start of the current measurement in its ticks.
    measuring: Option<(quanta::Clock, Cell<u64>)>,
    /// Whether the delivery in progress has charged; then nothing is measured until it ends.
    has_charged: Cell<bool>,
    /// Seconds spent in the runtime, outside elements.
    overhead: Cell<f64>,
    /// Seconds to send a message to another PE, or to receive one.
    message_overhead: f64,
    /// Receives work events when tracing is on.
    tracer: Option<Tracer>,
}

impl VirtualClock {
    /// The clock of PE `rank`.
    pub(crate) fn new(simulation: &Simulation, rank: u32, tracer: Option<Tracer>) -> Self {
        let measures = simulation.uncharged == Uncharged::Measured;
        Self::with(simulation.speeds_of(rank), measures, simulation.overhead, tracer)
    }

    fn with(speeds: Speeds, measures: bool, message_overhead: f64, tracer: Option<Tracer>) -> Self {
        let measuring = measures.then(|| {
            let clock = quanta::Clock::new();
            let since = Cell::new(clock.raw());
            (clock, since)
        });
        VirtualClock {
            now: Cell::new(0.0),
            speeds,
            measuring,
            has_charged: Cell::new(false),
            overhead: Cell::new(0.0),
            message_overhead,
            tracer,
        }
    }

    /// Adds the time measured since the last synchronization; returns the current time in virtual seconds.
    pub(crate) fn sync_measured(&self) -> f64 {
        if let Some((clock, since)) = &self.measuring {
            let raw = clock.raw();
            let measured = clock.delta_as_nanos(since.replace(raw), raw) as f64 * 1e-9;
            if !self.has_charged.get() {
                self.work(measured);
            }
        }
        self.now.get()
    }

    /// Like [`sync_measured`](Self::sync_measured), in ticks.
    #[cold]
    #[inline(never)]
    fn synced_ticks(&self) -> u64 {
        self.sync_measured();
        self.ticks()
    }

    /// The current time, in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        (self.now.get() * VIRTUAL_HERTZ) as u64
    }

    /// Advances to `seconds`; discards the time measured since the last synchronization.
    pub(crate) fn resume(&self, seconds: f64) {
        self.discard_measured();
        self.now.set(self.now.get().max(seconds));
    }

    /// The running element charges `work` seconds at speed 1. They replace the time measured from the last
    /// synchronization to the end of the delivery.
    pub(crate) fn charge(&self, work: f64) {
        self.discard_measured();
        self.has_charged.set(true);
        self.work(work);
    }

    /// The delivery that charged is over.
    pub(crate) fn charged(&self) {
        self.discard_measured();
        self.has_charged.set(false);
    }

    /// Adds the time measured since the last synchronization to the overhead.
    pub(crate) fn charge_overhead(&self) {
        let before = self.now.get();
        self.overhead.set(self.overhead.get() + (self.sync_measured() - before));
    }

    /// The runtime works for `work` seconds at speed 1.
    pub(crate) fn spend(&self, work: f64) {
        let before = self.sync_measured();
        self.work(work);
        self.overhead.set(self.overhead.get() + (self.now.get() - before));
    }

    /// Spends the time to send `bytes` bytes to another PE. Returns the departure time in virtual seconds,
    /// and the number of the message in the trace.
    pub(crate) fn packet_leaves(&self, to: u32, bytes: u64) -> (f64, u32) {
        self.spend(self.message_overhead);
        (self.now(), self.tracer.as_ref().map_or(0, |tracer| tracer.packs(to, bytes)))
    }

    /// Spends the time to receive a packet from another PE.
    pub(crate) fn packet_arrives(&self) {
        self.spend(self.message_overhead);
    }

    /// An element begins to execute.
    pub(crate) fn execution_begins(&self, array: u16, rank: u32, entry: Option<u16>) {
        if let Some(tracer) = &self.tracer {
            tracer.begins(array, rank, entry, self.now());
        }
    }

    /// The element has executed, and has charged this.
    pub(crate) fn execution_ends(&self, charged_seconds: f64) {
        // The time measured until now belongs to the element.
        self.sync_measured();
        if let Some(tracer) = &self.tracer {
            tracer.ends(charged_seconds);
        }
    }

    fn work(&self, work: f64) {
        self.now.set(self.speeds.finish(self.now.get(), work));
        if let Some(tracer) = &self.tracer {
            tracer.works(work);
        }
    }

    /// The tracer, when tracing is on.
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    /// The current time, in virtual seconds.
    pub(crate) fn now(&self) -> f64 {
        self.now.get()
    }

    /// Virtual seconds spent in the runtime.
    pub(crate) fn overhead(&self) -> f64 {
        self.overhead.get()
    }

    /// Discards the time measured since the last synchronization.
    pub(crate) fn discard_measured(&self) {
        if let Some((clock, since)) = &self.measuring {
            since.set(clock.raw());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_convert_to_seconds() {
        let clock = Clock::Real(quanta::Clock::new());
        let start = clock.now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let seconds = clock.seconds(clock.now() - start);
        assert!((0.01..2.0).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn the_time_of_work_follows_the_speed_of_the_pe() {
        let clock = |changes: &[(f64, f64)]| VirtualClock::with(Speeds(changes.to_vec()), false, 0.0, None);
        let after = |clock: &VirtualClock, work| {
            clock.charge(work);
            clock.now()
        };
        assert_eq!(after(&clock(&[]), 3.0), 3.0);
        assert_eq!(after(&clock(&[(0.0, 0.5)]), 3.0), 6.0);
        // One second at speed 1, then two at half of it, then the rest at double speed.
        let changing = clock(&[(1.0, 0.5), (3.0, 2.0)]);
        assert_eq!(after(&changing, 3.0), 3.5);
        assert_eq!(after(&changing, 1.0), 4.0);
        changing.spend(2.0);
        assert_eq!((changing.now(), changing.overhead()), (5.0, 1.0));
        changing.resume(4.5);
        assert_eq!(changing.now(), 5.0, "time does not go back");
    }

    #[test]
    fn a_charge_replaces_measured_time() {
        let clock = VirtualClock::with(Speeds(vec![(0.0, 0.5)]), true, 0.0, None);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let measured = clock.sync_measured();
        assert!((0.01..4.0).contains(&measured), "{measured} s at half speed");
        std::thread::sleep(std::time::Duration::from_millis(5));
        clock.charge(0.5);
        assert_eq!(clock.now(), measured + 1.0);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(clock.sync_measured(), measured + 1.0, "the charge replaces all measured time");
        clock.charged();
        std::thread::sleep(std::time::Duration::from_millis(5));
        clock.charge_overhead();
        assert!(clock.overhead() >= 0.01 && clock.now() == measured + 1.0 + clock.overhead());
    }
}

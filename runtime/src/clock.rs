//! Time as the elements of a PE see it: the machine's own, or that of a simulated machine.

use crate::tracer::Tracer;
use equipoise_strategies::trace::Speeds;
use quanta::Clock;
use std::cell::Cell;

/// Where a PE reads the time. Nothing is read where nothing is measured: to find out how long a tick of
/// the machine's clock is takes a while.
pub(crate) enum Ticker {
    /// Nothing is measured.
    Still,
    /// The TSC (or the operating system's clock where there is no constant TSC).
    Real(Clock),
    /// The clock of a PE of a simulated machine.
    Virtual(Box<VirtualClock>),
}

/// Ticks per second of virtual time; a run may last half a year.
const VIRTUAL_HERTZ: f64 = 1e12;

impl Ticker {
    /// A clock of this machine, or one that stands still.
    pub(crate) fn real(runs: bool) -> Self {
        if runs { Ticker::Real(Clock::new()) } else { Ticker::Still }
    }

    /// A point in time, in ticks. What was measured up to it is over: a later charge does not replace it.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        match self {
            Ticker::Real(clock) => clock.raw(),
            Ticker::Still => 0,
            Ticker::Virtual(clock) => clock.settled_ticks(),
        }
    }

    /// How long a number of ticks is.
    pub(crate) fn seconds(&self, ticks: u64) -> f64 {
        match self {
            Ticker::Real(clock) => clock.delta_as_nanos(0, ticks) as f64 * 1e-9,
            Ticker::Still => 0.0,
            Ticker::Virtual(_) => ticks as f64 / VIRTUAL_HERTZ,
        }
    }

    /// The clock of a PE of a simulated machine, if it is one.
    #[inline]
    pub(crate) fn simulated(&self) -> Option<&VirtualClock> {
        match self {
            Ticker::Virtual(clock) => Some(clock),
            _ => None,
        }
    }

    /// How fast this PE is now; 1 is normal.
    pub(crate) fn speed(&self) -> f64 {
        self.simulated().map_or(1.0, |clock| clock.speeds.at(clock.now.get()))
    }
}

/// The clock of one PE of a simulated machine. It moves when work is charged (or measured) and when the
/// scheduler sets it to what happens next.
pub(crate) struct VirtualClock {
    now: Cell<f64>,
    speeds: Speeds,
    /// The machine's own clock where uncharged work is measured, and since when it is.
    measuring: Option<(Clock, Cell<u64>)>,
    /// Whether the delivery in progress has charged: then nothing is measured until it is over.
    has_charged: Cell<bool>,
    /// Seconds that went into the runtime, not into elements.
    overhead: Cell<f64>,
    /// Is told what work is done, where what happens is recorded.
    tracer: Option<Tracer>,
}

impl VirtualClock {
    pub(crate) fn new(speeds: Speeds, measures: bool, tracer: Option<Tracer>) -> Self {
        let measuring = measures.then(|| {
            let clock = Clock::new();
            let since = Cell::new(clock.raw());
            (clock, since)
        });
        VirtualClock {
            now: Cell::new(0.0),
            speeds,
            measuring,
            has_charged: Cell::new(false),
            overhead: Cell::new(0.0),
            tracer,
        }
    }

    /// Now, in virtual seconds; what was measured up to now is over.
    pub(crate) fn settle(&self) -> f64 {
        if let Some((clock, since)) = &self.measuring {
            let raw = clock.raw();
            let measured = clock.delta_as_nanos(since.replace(raw), raw) as f64 * 1e-9;
            if !self.has_charged.get() {
                self.work(measured);
            }
        }
        self.now.get()
    }

    /// What [`settle`](Self::settle) leaves, in ticks.
    #[cold]
    #[inline(never)]
    fn settled_ticks(&self) -> u64 {
        self.settle();
        self.ticks()
    }

    /// Now, in ticks.
    pub(crate) fn ticks(&self) -> u64 {
        (self.now.get() * VIRTUAL_HERTZ) as u64
    }

    /// Lets time pass until `seconds`; what happened on the machine itself since the last settlement
    /// took no virtual time.
    pub(crate) fn resume(&self, seconds: f64) {
        self.forget();
        self.now.set(self.now.get().max(seconds));
    }

    /// The element that runs charges `work` seconds at speed 1, in place of what was measured since the last
    /// settlement and is measured until its delivery is over.
    pub(crate) fn charge(&self, work: f64) {
        self.forget();
        self.has_charged.set(true);
        self.work(work);
    }

    /// The delivery that charged is over.
    pub(crate) fn charged(&self) {
        self.forget();
        self.has_charged.set(false);
    }

    /// What was measured since the last settlement went into the runtime.
    pub(crate) fn settle_overhead(&self) {
        let before = self.now.get();
        self.overhead.set(self.overhead.get() + (self.settle() - before));
    }

    /// The runtime takes `work` seconds at speed 1.
    pub(crate) fn spend(&self, work: f64) {
        let before = self.settle();
        self.work(work);
        self.overhead.set(self.overhead.get() + (self.now.get() - before));
    }

    fn work(&self, work: f64) {
        self.now.set(self.speeds.finish(self.now.get(), work));
        if let Some(tracer) = &self.tracer {
            tracer.works(work);
        }
    }

    /// Who is told what happens.
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.tracer.as_ref()
    }

    /// Now, in virtual seconds.
    pub(crate) fn now(&self) -> f64 {
        self.now.get()
    }

    /// Seconds that went into the runtime.
    pub(crate) fn overhead(&self) -> f64 {
        self.overhead.get()
    }

    /// What was measured since the last settlement took no virtual time.
    pub(crate) fn forget(&self) {
        if let Some((clock, since)) = &self.measuring {
            since.set(clock.raw());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_some_part_of_a_second() {
        let ticker = Ticker::real(true);
        let start = ticker.now();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let seconds = ticker.seconds(ticker.now() - start);
        assert!((0.01..2.0).contains(&seconds), "{seconds} s");
    }

    #[test]
    fn work_takes_as_long_as_the_pe_is_slow_while_it_is() {
        let clock = |changes: &[(f64, f64)]| VirtualClock::new(Speeds(changes.to_vec()), false, None);
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
    fn what_is_measured_passes_unless_it_is_charged() {
        let clock = VirtualClock::new(Speeds(vec![(0.0, 0.5)]), true, None);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let measured = clock.settle();
        assert!((0.01..4.0).contains(&measured), "{measured} s at half speed");
        std::thread::sleep(std::time::Duration::from_millis(5));
        clock.charge(0.5);
        assert_eq!(clock.now(), measured + 1.0);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(clock.settle(), measured + 1.0, "the charge says what all of it takes");
        clock.charged();
        std::thread::sleep(std::time::Duration::from_millis(5));
        clock.settle_overhead();
        assert!(clock.overhead() >= 0.01 && clock.now() == measured + 1.0 + clock.overhead());
    }
}

//! How a thread waits that has nothing to do.
//!
//! A thread that spins takes over what arrives within some tens of nanoseconds. A thread that sleeps must be woken, which takes
//! about 20 us; but it leaves its core to others, and an operating system lets a thread that has slept run before one that has
//! not. [`Idle::Auto`] spins for about twice as long as waking takes, and then sleeps: however long it has to wait, that costs at
//! most about three times as much as the better of both (A. R. Karlin, K. Li, M. S. Manasse, S. Owicki, "Empirical studies of
//! competitive spinning for a shared-memory multiprocessor", SOSP 1991).
//!
//! Where there are fewer cores than threads, the thread that an idle one waits for may need its core. So the idle thread yields
//! its core instead of spinning: among threads that soon yield, too, that is faster than to sleep and to be woken.
//!
//! Both are bad where other programs want the cores: a thread that spins uses up the time that it needs afterwards, and one that
//! yields gets its core back after milliseconds. So a thread that spins compares its CPU time with the time for which it was awake,
//! and one that yields looks how long that took. If it has lost time to other programs, all threads of the process ([`Cores`]) then
//! sleep at once, for a time that is long against the one that was lost.

use crate::desk::Desk;
use crate::options::{Idle, Job};
use cpu_time::ThreadTime;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Looks between two looks at the clock, which takes as long as one or two of them.
const STRIDE: u64 = 64;
/// Where threads share cores: looks between two times that a thread yields its core.
const SHARED_STRIDE: u64 = 4;
/// How long a thread spins before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// How often a thread yields its core before it sleeps.
const YIELDS: u64 = 16;
/// Of a thread that polls a connection: looks before it first yields its core, with a core of its own and where threads share
/// cores, and for how long it yields before it sleeps. Nothing wakes it when a message arrives, so it looks for longer.
const POLLING_SPINS: u64 = 20_000;
const POLLING_SHARED_SPINS: u64 = 4;
const POLLING_YIELDS: Duration = Duration::from_micros(300);
/// Each later sleep lasts one tenth of the time waited so far, so that a message waits about 10 % longer at most. A sleep is not shorter
/// than 50 us, because waking costs some microseconds, and not longer than 4 ms: then looks take less than 3 % of a core.
const POLLING_SLEEP_PART: u32 = 10;
const POLLING_SHORTEST_SLEEP: Duration = Duration::from_micros(50);
const POLLING_LONGEST_SLEEP: Duration = Duration::from_millis(4);
/// The time between two looks from which on another thread may have run meanwhile.
const AWAY: Duration = Duration::from_micros(100);
/// How often a thread with a core of its own looks at its CPU time.
const PERIOD: Duration = Duration::from_millis(4);
/// A thread that has lost more than this part of a period to other programs, one eighth, notices that.
const LOST: u32 = 8;
/// All threads then sleep at once for 50 times the time that was lost, at most for a second.
const MEMORY: u32 = 50;
const LONGEST_MEMORY: Duration = Duration::from_secs(1);

/// After how many looks an idle PE does something.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Looks before it sends what it has collected.
    pub(super) flush: u64,
    /// Looks before it rests. It does not sleep before.
    pub(super) rest: u64,
}

/// The limits of a PE that spins for a while, and of one that soon yields its core or sleeps.
const SPINNING: Limits = Limits { flush: 64, rest: 256 };
const SHARING: Limits = Limits { flush: 2, rest: 4 };

/// What the threads of a process know of their cores.
pub(super) struct Cores {
    idle: Idle,
    /// Whether every thread has a core that no other thread of the run needs.
    has_own: bool,
    begin: Instant,
    /// Whether other programs are taken to want the cores, and until when, in nanoseconds since `begin`.
    is_crowded: AtomicBool,
    crowded_until: AtomicU64,
}

impl Cores {
    /// For a process with `threads` threads that may be busy.
    pub(super) fn new(idle: Idle, job: &Job, threads: usize) -> Arc<Self> {
        Arc::new(Cores {
            idle,
            has_own: job.has_own_cores(threads),
            begin: Instant::now(),
            is_crowded: AtomicBool::new(false),
            crowded_until: AtomicU64::new(0),
        })
    }

    /// Whether an idle thread spins at first.
    #[inline]
    fn lets_spin(&self) -> bool {
        match self.idle {
            Idle::Auto => self.has_own && !self.is_crowded.load(Relaxed),
            Idle::Spin => true,
            Idle::Park => false,
        }
    }

    /// A thread has lost this time to other programs.
    fn were_taken(&self, now: Instant, time: Duration) {
        let until = now + (MEMORY * time).min(LONGEST_MEMORY) - self.begin;
        self.crowded_until.fetch_max(until.as_nanos() as u64, Relaxed);
        self.is_crowded.store(true, Relaxed);
    }

    /// Whether other programs are still taken to want the cores.
    fn is_crowded(&self, now: Instant) -> bool {
        let is_crowded = self.is_crowded.load(Relaxed);
        if is_crowded && (now - self.begin).as_nanos() as u64 > self.crowded_until.load(Relaxed) {
            self.is_crowded.store(false, Relaxed);
            return false;
        }
        is_crowded
    }
}

/// How a thread waits.
pub(super) struct IdleThread {
    cores: Arc<Cores>,
    /// The first look at the clock since the last work, and the last one.
    since: Instant,
    last: Instant,
    /// The begin of the period, in real time and in CPU time, and for how long the thread has slept since then.
    period: Instant,
    cpu: ThreadTime,
    slept: Duration,
}

impl IdleThread {
    pub(super) fn new(cores: &Arc<Cores>) -> Self {
        let now = Instant::now();
        IdleThread {
            cores: Arc::clone(cores),
            since: now,
            last: now,
            period: now,
            cpu: ThreadTime::now(),
            slept: Duration::ZERO,
        }
    }

    /// The limits of a PE at this moment.
    #[inline]
    pub(super) fn limits(&self) -> Limits {
        if self.cores.lets_spin() { SPINNING } else { SHARING }
    }

    /// Waits a moment after the `looks`-th look since the last work, or returns true: then the thread is to sleep.
    #[inline]
    pub(super) fn wait(&mut self, looks: u64) -> bool {
        let stride = if self.cores.lets_spin() { STRIDE } else { SHARED_STRIDE };
        if looks % stride != 0 {
            std::hint::spin_loop();
            return false;
        }
        match self.cores.idle {
            Idle::Spin => false,
            Idle::Park => true,
            Idle::Auto => self.has_waited_long(looks, stride),
        }
    }

    /// Whether the thread has waited for so long that it is to sleep; if not, it may yield its core.
    #[cold]
    fn has_waited_long(&mut self, looks: u64, stride: u64) -> bool {
        let now = Instant::now();
        let is_first = looks <= stride;
        if is_first {
            self.since = now;
        }
        if self.cores.has_own {
            self.compare_times(now);
        } else if !is_first && now - self.last > AWAY {
            self.cores.were_taken(now, now - self.last);
        }
        self.last = now;
        if self.cores.is_crowded(now) {
            return true;
        }
        if self.cores.has_own {
            return now - self.since > SPIN;
        }
        let sleeps = looks >= stride * YIELDS;
        if !sleeps {
            std::thread::yield_now();
        }
        sleeps
    }

    /// Compares, from time to time, the CPU time of the thread with the time for which it has been awake. (Time for which a virtual
    /// machine does not run is CPU time to its threads. They cannot use it better.)
    fn compare_times(&mut self, now: Instant) {
        let real = now - self.period;
        if real < PERIOD {
            return;
        }
        let (awake, used) = (real.saturating_sub(self.slept), self.cpu.elapsed());
        let lost = awake.saturating_sub(used);
        if lost * LOST > real {
            self.cores.were_taken(now, lost);
        }
        (self.period, self.cpu, self.slept) = (now, ThreadTime::now(), Duration::ZERO);
    }

    /// Sleeps, with this function.
    #[cold]
    pub(super) fn sleep(&mut self, sleep: impl FnOnce()) {
        let begin = Instant::now();
        sleep();
        // Not taken for time of other programs if the thread was woken without work.
        self.last = Instant::now();
        self.slept += self.last - begin;
    }
}

/// How a thread waits that polls a connection between processes.
pub(super) struct PollingThread {
    cores: Arc<Cores>,
    /// How often it has looked since its last work, and when it first yielded or slept since then.
    looks: u64,
    since: Option<Instant>,
}

impl PollingThread {
    pub(super) fn new(cores: &Arc<Cores>) -> Self {
        PollingThread { cores: Arc::clone(cores), looks: 0, since: None }
    }

    /// The thread has looked for messages: waits a moment if it has not `worked`.
    #[inline]
    pub(super) fn after(&mut self, worked: bool, desk: &Desk) {
        if worked {
            (self.looks, self.since) = (0, None);
            return;
        }
        self.looks += 1;
        // Not sooner where other programs want the cores: nothing would wake this thread.
        let spins = match self.cores.idle {
            Idle::Auto => self.cores.has_own,
            Idle::Spin => true,
            Idle::Park => false,
        };
        if self.looks < if spins { POLLING_SPINS } else { POLLING_SHARED_SPINS } {
            return std::hint::spin_loop();
        }
        self.wait(desk);
    }

    #[cold]
    fn wait(&mut self, desk: &Desk) {
        if self.cores.idle == Idle::Spin {
            return std::hint::spin_loop();
        }
        let now = Instant::now();
        let waited = now - *self.since.get_or_insert(now);
        match self.sleep_after(waited) {
            Some(sleep) => desk.sleep(sleep),
            None => std::thread::yield_now(),
        }
    }

    /// For how long the thread sleeps after it has waited for this time; none if it only yields its core.
    fn sleep_after(&self, waited: Duration) -> Option<Duration> {
        let yields = self.cores.idle == Idle::Auto && waited < POLLING_YIELDS;
        (!yields).then(|| (waited / POLLING_SLEEP_PART).clamp(POLLING_SHORTEST_SLEEP, POLLING_LONGEST_SLEEP))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(idle: Idle, has_own: bool) -> Arc<Cores> {
        let job = Job { cores: if has_own { 8 } else { 1 }, ..Job::default() };
        Cores::new(idle, &job, 2)
    }

    /// The looks after which an idle thread first sleeps.
    fn looks_before_sleep(cores: &Arc<Cores>) -> Option<u64> {
        let mut idle = IdleThread::new(cores);
        (1..2_000_000).find(|&looks| idle.wait(looks))
    }

    #[test]
    fn a_thread_that_spins_never_sleeps_and_one_that_parks_sleeps_at_once() {
        assert_eq!(looks_before_sleep(&cores(Idle::Spin, false)), None);
        assert_eq!(looks_before_sleep(&cores(Idle::Park, true)), Some(SHARED_STRIDE));
        let limits = IdleThread::new(&cores(Idle::Park, true)).limits();
        assert!(limits.rest <= SHARED_STRIDE, "it rests before it sleeps");
    }

    #[test]
    fn a_thread_with_a_core_of_its_own_spins_for_a_while() {
        let cores = cores(Idle::Auto, true);
        let begin = Instant::now();
        let looks = looks_before_sleep(&cores).expect("it sleeps");
        assert!(looks % STRIDE == 0 && looks > STRIDE, "{looks}");
        assert!(begin.elapsed() >= SPIN);
    }

    #[test]
    fn a_thread_on_shared_cores_yields_and_then_sleeps() {
        // Less often if a yield takes long, as next to other tests.
        let looks = looks_before_sleep(&cores(Idle::Auto, false)).expect("it sleeps");
        assert!(looks % SHARED_STRIDE == 0 && looks <= SHARED_STRIDE * YIELDS, "{looks}");
    }

    #[test]
    fn threads_sleep_at_once_while_other_programs_want_the_cores() {
        for has_own in [true, false] {
            let cores = cores(Idle::Auto, has_own);
            let now = Instant::now();
            cores.were_taken(now, Duration::from_millis(400));
            assert_eq!(looks_before_sleep(&cores), Some(SHARED_STRIDE));
            assert!(cores.is_crowded(now + Duration::from_millis(900)));
            assert!(!cores.is_crowded(now + Duration::from_millis(1_100)), "at most for a second");
            assert!(!cores.is_crowded.load(Relaxed));
        }
    }

    #[test]
    fn a_thread_that_lost_its_core_notices_that() {
        let cores = cores(Idle::Auto, true);
        let mut idle = IdleThread::new(&cores);
        // A sleep that the thread does not count looks like time of other programs.
        std::thread::sleep(2 * PERIOD);
        idle.wait(STRIDE);
        assert!(cores.is_crowded.load(Relaxed));
        let cores = self::cores(Idle::Auto, true);
        let mut idle = IdleThread::new(&cores);
        idle.sleep(|| std::thread::sleep(20 * PERIOD));
        idle.wait(STRIDE);
        assert!(!cores.is_crowded.load(Relaxed), "it has slept");
    }

    #[test]
    fn a_polling_thread_yields_first_and_then_sleeps_for_a_tenth_of_the_time_waited() {
        let sleep = |idle, microseconds| {
            PollingThread::new(&cores(idle, false))
                .sleep_after(Duration::from_micros(microseconds))
                .map(|sleep| sleep.as_micros())
        };
        assert_eq!([0, 299].map(|waited| sleep(Idle::Auto, waited)), [None, None]);
        assert_eq!(
            [300, 2_000, 1_000_000].map(|waited| sleep(Idle::Auto, waited)),
            [50, 200, 4_000].map(Some)
        );
        assert_eq!([0, 2_000].map(|waited| sleep(Idle::Park, waited)), [50, 200].map(Some));
    }
}

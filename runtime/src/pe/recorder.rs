//! Recording on one PE: the load clock, the current period between load-balancing steps, and the
//! communication of the running element and of the PE itself.

use crate::clock::Clock;
use crate::load::{Edges, Sent};
use std::cell::{Cell, RefCell};

pub(crate) struct Recorder {
    /// The load clock, which measures the load of elements.
    pub(crate) clock: Clock,
    /// Communication of the running element; taken from its slot for the duration of the delivery.
    pub(crate) edges: RefCell<Option<Box<Edges>>>,
    /// Communication of this PE outside elements.
    own_edges: RefCell<Edges>,
    /// The start of the period, in ticks of the wall clock.
    since: Cell<u64>,
    /// When recording was switched off, if it is off.
    off: Cell<Option<u64>>,
    /// Idle time of the period, in ticks of the wall clock.
    idle: Cell<u64>,
    /// Measured time of deliveries that charged, in ticks of the load clock.
    charged: Cell<u64>,
    /// The load of the elements in this period until the last sync point, in seconds.
    weighed_seconds: Cell<f64>,
}

/// The records of a PE for a period, without those of its elements.
pub(crate) struct Period {
    pub(crate) wall_seconds: f64,
    pub(crate) idle_seconds: f64,
    /// Measured time of deliveries that charged.
    pub(crate) charged_seconds: f64,
    pub(crate) edges: Vec<Sent>,
}

impl Recorder {
    /// A recorder with this load clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Recorder {
            clock,
            edges: RefCell::default(),
            own_edges: RefCell::default(),
            since: Cell::new(0),
            off: Cell::new(None),
            idle: Cell::new(0),
            charged: Cell::new(0),
            weighed_seconds: Cell::new(0.0),
        }
    }

    /// Records a message of `bytes` bytes of the running element to an element; messages of an element to itself are not recorded.
    #[inline(always)]
    pub(crate) fn sent(&self, running: Option<u64>, to: u64, bytes: u64) {
        match running {
            Some(running) if running == to => {}
            Some(_) => self.edges.borrow_mut().get_or_insert_with(Box::default).add(to, bytes),
            None => self.own_edges.borrow_mut().add(to, bytes),
        }
    }

    /// Begins the first period.
    pub(crate) fn begin(&self, now: u64) {
        self.since.set(now);
    }

    /// Excludes ticks of the wall clock from the period.
    pub(crate) fn skip(&self, ticks: u64) {
        self.since.set(self.since.get().wrapping_add(ticks));
    }

    /// Switches recording on or off at time `now`; the time while it is off is in no period.
    pub(crate) fn measure(&self, on: bool, now: u64) {
        match (on, self.off.get()) {
            (false, None) => self.off.set(Some(now)),
            (true, Some(since)) => {
                self.off.set(None);
                self.skip(now.wrapping_sub(since));
            }
            _ => {}
        }
    }

    /// Counts idle ticks of the wall clock.
    pub(crate) fn was_idle(&self, ticks: u64) {
        self.idle.set(self.idle.get() + ticks);
    }

    /// Counts ticks of the load clock in a delivery that charged.
    pub(crate) fn was_charged(&self, ticks: u64) {
        self.charged.set(self.charged.get() + ticks);
    }

    /// The load of the elements since the last sync point, of which they have `seconds` since the begin of the period.
    pub(crate) fn load_since_last(&self, seconds: f64) -> f64 {
        // Elements that were destroyed, or have migrated by themselves, took their loads with them.
        (seconds - self.weighed_seconds.replace(seconds)).max(0.0)
    }

    /// Ends the period and begins the next.
    pub(crate) fn end_period(&self, wall: &Clock) -> Period {
        let now = self.off.get().unwrap_or_else(|| wall.now());
        self.weighed_seconds.set(0.0);
        Period {
            wall_seconds: wall.seconds(now.wrapping_sub(self.since.replace(now))),
            idle_seconds: wall.seconds(self.idle.take()),
            charged_seconds: self.clock.seconds(self.charged.take()),
            edges: self.own_edges.borrow_mut().take(),
        }
    }
}

//! The clocks of processes, for recordings: a process asks process 0 for its time when the run begins and when it is over.

use super::{Control, Engine, Wire};
use crate::events::{Alignment, Estimate};

/// The number of questions at each time; the answer that took least time counts.
const QUESTIONS: u32 = 16;

/// The number of questions where no answer was [`GOOD`]: processes that share cores answer when they are scheduled.
const MOST_QUESTIONS: u32 = 64;

/// Offsets with at most this error need no more than [`QUESTIONS`], in nanoseconds.
const GOOD: u64 = 100_000;

/// What a process knows of the clock of process 0.
#[derive(Default)]
pub(super) struct Clocks {
    alignment: Alignment,
    /// The questions that have been answered at this time.
    answered: u32,
    /// Whether a question is under way.
    has_asked: bool,
    best: Option<Estimate>,
    is_over: bool,
}

impl Clocks {
    /// Whether an answer is to come.
    pub(super) fn waits(&self) -> bool {
        self.has_asked
    }

    /// The alignment, when the run is over.
    pub(super) fn alignment(&self) -> Alignment {
        self.alignment
    }
}

impl Engine {
    /// Begins to compare clocks, if the run is recorded: at the begin of the run, or when it `is_over`.
    pub(super) fn compare_clocks(&mut self, wire: &mut dyn Wire, is_over: bool) {
        if self.me == 0 || self.node.start.is_none() {
            return;
        }
        self.clocks.keep_best();
        (self.clocks.answered, self.clocks.is_over) = (0, is_over);
        if !self.clocks.has_asked {
            self.ask(wire);
        }
    }

    fn ask(&mut self, wire: &mut dyn Wire) {
        self.clocks.has_asked = true;
        let asked = self.nanoseconds();
        self.send_control(wire, 0, &Control::AsksTime { asked });
    }

    /// Answers a process that has asked for the time.
    pub(super) fn tell_time(&mut self, wire: &mut dyn Wire, to: u32, asked: u64) {
        let now = self.nanoseconds();
        self.send_control(wire, to, &Control::Time { asked, now });
    }

    /// Process 0 has answered.
    pub(super) fn learns_time(&mut self, wire: &mut dyn Wire, asked: u64, theirs: u64) {
        let estimate = Estimate::new(asked, theirs, self.nanoseconds());
        let best = estimate.or_better(self.clocks.best);
        self.clocks.best = Some(best);
        self.clocks.has_asked = false;
        self.clocks.answered += 1;
        let enough = if best.error <= GOOD { QUESTIONS } else { MOST_QUESTIONS };
        if self.clocks.answered < enough {
            self.ask(wire);
        } else {
            self.clocks.keep_best();
        }
    }

    /// Nanoseconds since the begin of the recording, on the clock of this process.
    fn nanoseconds(&self) -> u64 {
        let since = self.node.start.map(|start| quanta::Instant::now().saturating_duration_since(start));
        since.unwrap_or_default().as_nanos() as u64
    }
}

impl Clocks {
    fn keep_best(&mut self) {
        let Some(best) = self.best.take() else { return };
        let estimate = if self.is_over { &mut self.alignment.end } else { &mut self.alignment.begin };
        *estimate = Some(best);
    }
}

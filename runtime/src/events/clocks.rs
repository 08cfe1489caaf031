//! The clock of a process relative to that of process 0.
//!
//! A process asks process 0 for its time, several times at the begin and at the end of a run. The answer that took least
//! time bounds the offset best: it is the mean of the times when the question left and when the answer came, give or take
//! half of the time in between. Between the two estimates the offset is taken to change evenly.

use serde::{Deserialize, Serialize};

/// The offset of a clock at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    /// The time on the clock of this process, in nanoseconds.
    at: u64,
    /// What has to be added to get the time of process 0.
    offset: i64,
    /// The largest error of the offset, in nanoseconds.
    pub(crate) error: u64,
}

/// The offsets at the begin and the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Alignment {
    pub(crate) begin: Option<Estimate>,
    pub(crate) end: Option<Estimate>,
}

impl Estimate {
    /// The estimate from a question that left at `asked`, was answered at `theirs` on the clock of process 0, and whose answer
    /// came at `answered`.
    pub(crate) fn new(asked: u64, theirs: u64, answered: u64) -> Self {
        let took = answered.saturating_sub(asked);
        let at = asked + took / 2;
        Estimate { at, offset: theirs.wrapping_sub(at) as i64, error: took.div_ceil(2) }
    }

    /// The better one of two estimates.
    pub(crate) fn or_better(self, other: Option<Estimate>) -> Estimate {
        other.filter(|other| other.error < self.error).unwrap_or(self)
    }
}

impl Alignment {
    /// A time of this process on the clock of process 0.
    pub(crate) fn aligned(&self, time: u64) -> u64 {
        let offset = match (self.begin, self.end) {
            (Some(begin), Some(end)) if end.at > begin.at => {
                let part = (time as f64 - begin.at as f64) / (end.at - begin.at) as f64;
                begin.offset + ((end.offset - begin.offset) as f64 * part.clamp(-1.0, 2.0)) as i64
            }
            (begin, end) => begin.or(end).map_or(0, |estimate| estimate.offset),
        };
        time.saturating_add_signed(offset)
    }

    /// The largest error of an offset, in nanoseconds.
    pub(crate) fn error(&self) -> u64 {
        self.begin.iter().chain(&self.end).map(|estimate| estimate.error).max().unwrap_or(0)
    }

    /// How much the offset changed during the run, in nanoseconds; none if it was not estimated twice.
    pub(crate) fn drift(&self) -> Option<u64> {
        Some(self.begin?.offset.abs_diff(self.end?.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_is_aligned_within_the_error_that_is_stated() {
        // This clock began 5 s later and gains 1 in 10,000; a way takes 2 us, the way back 1 us.
        let theirs = |mine: u64| 5_000_000_000 + mine - mine / 10_000;
        let estimate = |asked: u64| Estimate::new(asked, theirs(asked + 2000), asked + 3000);
        let alignment = Alignment { begin: Some(estimate(1000)), end: Some(estimate(10_000_000_000)) };
        let (error, drift) = (alignment.error(), alignment.drift().expect("there are two estimates"));
        assert_eq!(error, 1500);
        assert!(drift.abs_diff(1_000_000) < 2, "{drift}");
        for time in [1000, 2_500_000_000, 5_000_000_000, 10_000_000_000] {
            let off = alignment.aligned(time).abs_diff(theirs(time));
            assert!(off <= error, "{off} ns at {time}");
        }
        assert_eq!(Alignment { end: None, ..alignment }.drift(), None);
        let worse = Estimate::new(0, theirs(50_000), 90_000);
        assert_eq!(worse.or_better(alignment.begin), alignment.begin.expect("there is one"));
        assert_eq!(Alignment::default().aligned(7), 7);
    }
}

//! A run in 512 equal parts, of each of which busy times or bytes are summed.

use crate::heat::MAX_BINS;

/// The number of parts.
pub(crate) const WINDOWS: usize = MAX_BINS;

/// The equal parts of a run.
pub(crate) struct Windows {
    /// The length of each.
    pub(crate) seconds: f64,
}

impl Windows {
    /// The parts of a run of `seconds`; none if it takes no time.
    pub(crate) fn new(seconds: f64) -> Option<Windows> {
        (seconds > 0.0).then_some(Windows { seconds: seconds / WINDOWS as f64 })
    }

    /// The begins of the parts, in seconds.
    pub(crate) fn begins(&self) -> impl Iterator<Item = f64> {
        (0..WINDOWS).map(|window| window as f64 * self.seconds)
    }

    /// The seconds of each part that are between `begin` and `end`. What is after the end of the run is in no part.
    pub(crate) fn parts(&self, begin: f64, end: f64) -> impl Iterator<Item = (usize, f64)> {
        let of = |seconds: f64| ((seconds / self.seconds) as usize).min(WINDOWS - 1);
        (of(begin)..=of(end)).map(move |window| {
            let first = window as f64 * self.seconds;
            (window, (end.min(first + self.seconds) - begin.max(first)).max(0.0))
        })
    }
}

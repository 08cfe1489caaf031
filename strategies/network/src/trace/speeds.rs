//! The speed of a PE over time.

use equipoise_model::params::{are_seconds, is_positive};
use serde::{Deserialize, Serialize};

/// Speed changes of a PE of a simulated machine: (seconds, speed from then on), sorted by time. The speed before the
/// first change is 1; of several changes at one time the last one counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Speeds(pub Vec<(f64, f64)>);

impl Speeds {
    /// The speed at a time.
    pub fn at(&self, seconds: f64) -> f64 {
        self.0.iter().rev().find(|(from, _)| *from <= seconds).map_or(1.0, |(_, speed)| *speed)
    }

    /// When work that takes `work` seconds at speed 1 ends if it begins at `seconds`.
    pub fn finish(&self, seconds: f64, mut work: f64) -> f64 {
        if self.0.is_empty() {
            return seconds + work;
        }
        let (mut now, mut speed) = (seconds, self.at(seconds));
        for &(from, next) in self.0.iter().filter(|(from, _)| *from > seconds) {
            let until = (from - now) * speed;
            if work <= until {
                break;
            }
            work -= until;
            (now, speed) = (from, next);
        }
        now + work / speed
    }

    /// Whether the speeds are above 0 and sorted by time.
    pub(super) fn are_sane(&self) -> bool {
        let sane = |&(from, speed): &(f64, f64)| are_seconds(from) && is_positive(speed);
        self.0.iter().all(sane) && self.0.is_sorted_by_key(|(from, _)| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_follows_every_change_of_speed() {
        let changing = Speeds(vec![(1.0, 0.5), (3.0, 2.0), (3.0, 4.0)]);
        for (at, speed) in [(0.0, 1.0), (1.0, 0.5), (2.9, 0.5), (3.0, 4.0)] {
            assert_eq!(changing.at(at), speed);
        }
        // 1 s at speed 1, then 2 s at speed 0.5, then speed 4.
        for (begin, work, end) in
            [(0.0, 1.0, 1.0), (0.0, 2.0, 3.0), (0.0, 6.0, 4.0), (2.0, 0.25, 2.5), (5.0, 4.0, 6.0)]
        {
            assert_eq!(changing.finish(begin, work), end, "{work} from {begin}");
        }
        assert_eq!(Speeds::default().finish(2.0, 3.0), 5.0);
        assert!(changing.are_sane() && !Speeds(vec![(1.0, 0.0)]).are_sane());
        assert!(!Speeds(vec![(1.0, 2.0), (0.5, 1.0)]).are_sane());
    }
}

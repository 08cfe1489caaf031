//! What the checkpoints of a run cost, and how often a run should save itself.

use equipoise_model::table::seconds;
use serde::Serialize;
use std::cell::Cell;

/// What the checkpoints of a run have cost: wall-clock times, or virtual times on a simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CheckpointCost {
    /// The number of checkpoints for which the run waited.
    #[serde(skip)]
    pub checkpoints: u32,
    /// The mean time from the end of a checkpoint to the begin of the next one.
    pub interval_seconds: f64,
    /// The mean time that the run waited for a checkpoint, from the moment when nothing was in flight.
    pub wait_seconds: f64,
    /// The time of a restart: of the one with which this run began, otherwise an estimate, the time of a checkpoint.
    pub restart_seconds: f64,
    /// The mean time between failures that `--mtbf` gives.
    pub mtbf_seconds: Option<f64>,
}

impl CheckpointCost {
    /// The share of the time that the run waits for checkpoints.
    pub fn share(&self) -> f64 {
        self.wait_seconds / (self.interval_seconds + self.wait_seconds)
    }

    /// The expected time that a failure costs: half an interval, which is done again, and the restart.
    pub fn failure_seconds(&self) -> f64 {
        self.interval_seconds / 2.0 + self.restart_seconds
    }

    /// The interval with which the run ends earliest, for a mean time between failures M and a wait C for each checkpoint.
    ///
    /// J. W. Young (A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974) found sqrt(2 C M). J. T.
    /// Daly (A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22(3), 2006) found
    /// sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C if C is less than 2M, otherwise M. This is Daly's.
    pub fn best_interval_seconds(&self) -> Option<f64> {
        let (wait, mtbf) = (self.wait_seconds, self.mtbf_seconds?);
        let ratio = wait / (2.0 * mtbf);
        let daly = || (2.0 * wait * mtbf).sqrt() * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - wait;
        Some(if ratio < 1.0 { daly() } else { mtbf })
    }
}

impl std::fmt::Display for CheckpointCost {
    /// One sentence. A single checkpoint has no interval.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (wait, restart) = (seconds(self.wait_seconds), seconds(self.restart_seconds));
        if self.checkpoints == 1 {
            write!(f, "a checkpoint costs {wait}; a restart costs {restart}")?;
        } else {
            write!(
                f,
                "a checkpoint every {} costs {:.2} % of the time ({wait} each); losing a PE costs {}",
                seconds(self.interval_seconds),
                100.0 * self.share(),
                seconds(self.failure_seconds()),
            )?;
        }
        if let (Some(mtbf), Some(best)) = (self.mtbf_seconds, self.best_interval_seconds()) {
            let failure = seconds(mtbf);
            write!(f, "; with a failure every {failure} the best interval is {} (Daly 2006)", seconds(best))?;
        }
        Ok(())
    }
}

/// Measures the cost of checkpoints, on PE 0. Times are in ticks of its clock.
#[derive(Debug, Default)]
pub(crate) struct CostMeter {
    /// The end of the last checkpoint, or the begin of the run.
    last: Cell<u64>,
    /// The begin of the checkpoint in progress.
    saving: Cell<Option<u64>>,
    /// The sums of the intervals and of the waits, and the number of checkpoints.
    intervals: Cell<u64>,
    waits: Cell<u64>,
    checkpoints: Cell<u32>,
    /// The seconds of the restart with which the run began.
    restart: Cell<Option<f64>>,
}

impl CostMeter {
    /// The setup of the PE begins.
    pub(crate) fn begin(&self, now: u64) {
        self.last.set(now);
    }

    /// The PE has read a checkpoint, and the run begins.
    pub(crate) fn restart(&self, now: u64, to_seconds: impl Fn(u64) -> f64) {
        let since = self.last.replace(now);
        self.restart.set(Some(to_seconds(now.saturating_sub(since))));
    }

    /// PEs begin to save themselves.
    pub(crate) fn save(&self, now: u64) {
        self.saving.set(Some(now));
        self.intervals.set(self.intervals.get() + now.saturating_sub(self.last.get()));
    }

    /// The run goes on. Returns the cost so far, if it has saved itself; `to_seconds` converts ticks.
    pub(crate) fn go_on(
        &self,
        now: u64,
        to_seconds: impl Fn(u64) -> f64,
        mtbf_seconds: Option<f64>,
    ) -> Option<CheckpointCost> {
        let since = self.saving.take()?;
        self.waits.set(self.waits.get() + now.saturating_sub(since));
        self.last.set(now);
        self.checkpoints.set(self.checkpoints.get() + 1);
        let checkpoints = self.checkpoints.get();
        let mean = |sum: &Cell<u64>| to_seconds(sum.get()) / f64::from(checkpoints);
        let wait_seconds = mean(&self.waits);
        let restart_seconds = self.restart.get().unwrap_or(wait_seconds);
        let interval_seconds = mean(&self.intervals);
        Some(CheckpointCost { checkpoints, interval_seconds, wait_seconds, restart_seconds, mtbf_seconds })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_the_mean_checkpoint() {
        let meter = CostMeter::default();
        meter.begin(100);
        assert_eq!(meter.go_on(200, |ticks| ticks as f64, None), None);
        meter.save(190);
        let first = meter.go_on(200, |ticks| ticks as f64, None).expect("a checkpoint");
        assert_eq!(first.to_string(), "a checkpoint costs 10.0 s; a restart costs 10.0 s");
        meter.save(310);
        let cost = meter.go_on(340, |ticks| ticks as f64, Some(4000.0)).expect("two checkpoints");
        assert_eq!((cost.interval_seconds, cost.wait_seconds, cost.restart_seconds), (100.0, 20.0, 20.0));
        assert_eq!((cost.share(), cost.failure_seconds()), (20.0 / 120.0, 70.0));
        // Young: 400 s.
        let best = cost.best_interval_seconds().expect("failures");
        assert!((best - 386.8).abs() < 0.1, "{best}");
        let frequent = CheckpointCost { mtbf_seconds: Some(7.0), ..cost };
        assert_eq!(frequent.best_interval_seconds(), Some(7.0));
        assert_eq!(
            cost.to_string(),
            "a checkpoint every 100 s costs 16.67 % of the time (20.0 s each); losing a PE costs 70.0 s; with a failure every \
             4000 s the best interval is 387 s (Daly 2006)"
        );
    }
}

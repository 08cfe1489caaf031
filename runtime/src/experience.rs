//! What strategies needed and delivered at past steps, from which later steps predict better.
//!
//! A strategy that tries others, such as `AutoLB`, has no clock: the runtime corrects how long each of them was expected to
//! think by how long the whole step thought. The time of the next period, divided by the predicted one, is what the chosen one
//! delivered. Both are in the costs of the database that the strategy sees, so that a replay decides as the run did.

use equipoise_model::Assignment;
use equipoise_model::costs::Costs;
use std::collections::BTreeMap;

/// How far what was delivered may differ from what was predicted. More is due to other programs or to changes of the program.
const MOST: f64 = 4.0;

/// What is known of the strategies of a run.
#[derive(Debug, Default)]
pub(crate) struct Experience {
    /// The last thinking time of each strategy, in seconds.
    thinking: BTreeMap<String, f64>,
    /// How long periods took, divided by the predicted time.
    delivered: BTreeMap<String, f64>,
    /// The strategy that was chosen at the last step, and the predicted time from one sync point to the next.
    promised: Option<(String, f64)>,
    /// The number of sync points until the last step, and in the period before it.
    points: u32,
    last_points: u32,
}

impl Experience {
    /// A period of this time has ended with sync point `points`.
    pub(crate) fn measured(&mut self, period_seconds: f64, points: u32) {
        self.last_points = points.saturating_sub(self.points).max(1);
        self.points = points;
        let Some((spec, predicted)) = self.promised.take() else { return };
        let part = period_seconds / f64::from(self.last_points) / predicted;
        if part.is_finite() {
            let part = part.clamp(1.0 / MOST, MOST);
            self.delivered.entry(spec).and_modify(|known| *known = (*known + part) / 2.0).or_insert(part);
        }
    }

    /// Adds what is known to the costs of a database.
    pub(crate) fn tell(&self, costs: &mut Costs) {
        costs.strategies.clone_from(&self.thinking);
        costs.delivered.clone_from(&self.delivered);
    }

    /// A strategy has thought for this time.
    pub(crate) fn thought(&mut self, spec: &str, seconds: f64, answer: &Assignment) {
        self.thinking.insert(spec.to_string(), seconds);
        let expected: f64 = answer.attempts.iter().map(|attempt| attempt.thinking_seconds).sum();
        for attempt in &answer.attempts {
            let part = match expected > 0.0 {
                true => attempt.thinking_seconds / expected,
                false => 1.0 / answer.attempts.len() as f64,
            };
            self.thinking.insert(attempt.spec.clone(), part * seconds);
        }
    }

    /// An assignment was applied that makes a period as long as the last one take `period_seconds`.
    pub(crate) fn applied(&mut self, answer: &Assignment, period_seconds: Option<f64>) {
        let chosen = answer.attempts.iter().find(|attempt| attempt.is_chosen);
        self.promised = chosen
            .zip(period_seconds)
            .map(|(attempt, seconds)| (attempt.spec.clone(), seconds / f64::from(self.last_points)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_model::assignment::Attempt;

    fn answer(attempts: &[(&str, f64, bool)]) -> Assignment {
        let attempt = |&(spec, thinking_seconds, is_chosen): &(&str, f64, bool)| Attempt {
            spec: spec.into(),
            thinking_seconds,
            is_chosen,
        };
        Assignment { attempts: attempts.iter().map(attempt).collect(), ..Assignment::default() }
    }

    fn costs(experience: &Experience) -> Costs {
        let mut costs = Costs::default();
        experience.tell(&mut costs);
        costs
    }

    #[test]
    fn expected_times_to_think_are_corrected_by_the_time_of_the_step() {
        let mut experience = Experience::default();
        experience.thought("auto", 8.0, &answer(&[("A", 1.0, false), ("B", 3.0, true)]));
        let expected = [("A", 2.0), ("B", 6.0), ("auto", 8.0)].map(|(spec, time)| (spec.to_string(), time));
        assert_eq!(costs(&experience).strategies, expected.into());
        experience.thought("auto", 8.0, &answer(&[("A", 0.0, false), ("B", 0.0, true)]));
        assert_eq!(costs(&experience).strategies["A"], 4.0);
        experience.thought("C", 1.0, &answer(&[]));
        assert_eq!(costs(&experience).strategies["C"], 1.0);
    }

    #[test]
    fn what_was_delivered_is_the_time_per_sync_point_divided_by_the_prediction() {
        let mut experience = Experience::default();
        let chosen = answer(&[("A", 1.0, true)]);
        // Ten sync points in 20 s are to take 10 s; the next five take 10 s.
        experience.measured(20.0, 10);
        experience.applied(&chosen, Some(10.0));
        experience.measured(10.0, 15);
        assert_eq!(costs(&experience).delivered, [("A".to_string(), 2.0)].into());
        // Later periods count as much as all before.
        experience.applied(&chosen, Some(10.0));
        experience.measured(10.0, 20);
        assert_eq!(costs(&experience).delivered["A"], 1.5);
        // A step that was not applied promised nothing, and neither does one without a prediction.
        experience.measured(99.0, 25);
        experience.applied(&chosen, None);
        experience.measured(99.0, 30);
        assert_eq!(costs(&experience).delivered["A"], 1.5);
        experience.applied(&chosen, Some(1e-9));
        experience.measured(99.0, 35);
        assert_eq!(costs(&experience).delivered["A"], 2.75);
    }
}

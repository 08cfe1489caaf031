//! What a placement does to the time of the coming periods, in a sentence of the recommendation.

use equipoise_model::table::seconds;

use super::{Replay, Row};

/// What the answer of a row does to the time of the coming periods.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    /// The periods of the horizon, with deciding and moving before them, end no later than with the placement before.
    Gain,
    /// Each period takes longer.
    LongerPeriods,
    /// Deciding and moving take more time than the shorter periods save.
    CostExceedsGain { cost_seconds: f64, gain_seconds: f64 },
}

/// The predicted times of periods after and before.
pub(super) struct Times {
    after_seconds: f64,
    before_seconds: f64,
    verdict: Verdict,
}

impl Times {
    /// Those of `horizon` periods, if they are known.
    pub(super) fn of(best: &Row, replay: &Replay, horizon: f64) -> Option<Times> {
        let (after, before) = (best.after.step_seconds?, replay.before.step_seconds?);
        let cost_seconds = best.seconds + best.after.migration_seconds.unwrap_or(0.0);
        let gain_seconds = horizon * (before - after);
        let verdict = match () {
            () if are_longer(after, before) => Verdict::LongerPeriods,
            // What moves nothing is the placement before.
            () if best.migrations > 0 && gain_seconds < cost_seconds => {
                Verdict::CostExceedsGain { cost_seconds, gain_seconds: gain_seconds.max(0.0) }
            }
            () => Verdict::Gain,
        };
        Some(Times { after_seconds: after, before_seconds: before, verdict })
    }

    /// Whether the placement before is better.
    pub(super) fn is_loss(&self) -> bool {
        self.verdict != Verdict::Gain
    }

    /// The sentence about them; of several steps, they are sums.
    pub(super) fn sentence(&self, replay: &Replay, steps: usize) -> String {
        let each = if steps == 1 { "a period".into() } else { format!("for {steps} periods") };
        let [after, before] = [self.after_seconds, self.before_seconds].map(seconds);
        let predicted = match after == before {
            true => format!("Predicted: {after} {each}, as before"),
            false => format!("Predicted: {after} instead of {before} {each}"),
        };
        let loss = match self.verdict {
            Verdict::Gain => return predicted + ".",
            Verdict::LongerPeriods => "that is a loss".into(),
            Verdict::CostExceedsGain { cost_seconds, gain_seconds } => {
                format!(
                    "deciding and moving take {} and save {}",
                    seconds(cost_seconds),
                    seconds(gain_seconds)
                )
            }
        };
        let so = match replay.may_keep {
            true => "so keep the placement before",
            false => "but the placement before cannot be kept",
        };
        let later = of_later_gain(replay, steps).map_or(String::new(), |later| format!(" {later}"));
        format!("{predicted}: {loss}, {so}.{later}")
    }
}

/// Whether periods are longer than before, as far as their text shows.
fn are_longer(after_seconds: f64, before_seconds: f64) -> bool {
    after_seconds > before_seconds && seconds(after_seconds) != seconds(before_seconds)
}

/// Where the horizon is too short for any gain: the row that gains first, and after how many periods, for costs that are sums over `steps`.
fn of_later_gain(replay: &Replay, steps: usize) -> Option<String> {
    let before = replay.before.step_seconds?;
    let periods = |row: &Row| {
        let gain_seconds = before - row.after.step_seconds?;
        let cost_seconds = row.seconds + row.after.migration_seconds?;
        let is_shorter = are_longer(before, row.after.step_seconds?);
        is_shorter.then(|| (cost_seconds / gain_seconds).floor() + 1.0)
    };
    let rows = replay.strategies.iter().filter_map(|row| Some((row, periods(row)?)));
    let (row, periods) = rows.min_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let sum = if steps == 1 { "" } else { " after each step" };
    Some(format!(
        "With --horizon {periods:.0}, {} gains: it takes {} to decide and move, and a period becomes {:.0} % shorter{sum}.",
        row.name,
        seconds(row.seconds + row.after.migration_seconds?),
        100.0 * (1.0 - row.after.step_seconds? / before),
    ))
}

#[cfg(test)]
mod tests {
    use crate::cost::Metrics;
    use crate::replay::choice::tests::row;
    use crate::replay::recommendation::of;
    use crate::replay::recommendation::tests::{reasons, replay};

    use super::*;

    #[test]
    fn predicted_times_are_compared_with_those_before() {
        let mut best = row(0.7, 0, 7);
        best.after.step_seconds = Some(0.7);
        let rows = [best];
        let before = Metrics { step_seconds: Some(1.5), ..Metrics::default() };
        let texts = [1, 5].map(|periods| reasons(&rows[0], &replay(&rows, &before), periods));
        assert_eq!(texts[0], ["Predicted: 700 ms instead of 1.50 s a period."]);
        assert_eq!(texts[1], ["Predicted: 700 ms instead of 1.50 s for 5 periods."]);
        let faster = Metrics { step_seconds: Some(0.5), ..Metrics::default() };
        let title = |before: &Metrics| of(&rows[0], &replay(&rows, before), 1.0, 1).title;
        assert_eq!([&before, &faster].map(title), ["Recommended", "Best of these"]);
        assert_eq!(
            reasons(&rows[0], &replay(&rows, &faster), 1),
            ["Predicted: 700 ms instead of 500 ms a period: that is a loss, so keep the placement before."]
        );
        let mut slow = row(0.4, 0, 7);
        (slow.after.step_seconds, slow.after.migration_seconds, slow.seconds) = (Some(0.4), Some(0.05), 0.2);
        let with_slow = [rows[0].clone(), slow];
        assert!(
            reasons(&rows[0], &replay(&with_slow, &faster), 1)[0].ends_with(
                " keep the placement before. With --horizon 3, 0.4-0-7 gains: it takes 250 ms to decide and move, and a period becomes 20 % \
                 shorter."
            )
        );
        let forbidden = Replay { may_keep: false, ..replay(&rows, &faster) };
        assert_eq!(of(&rows[0], &forbidden, 1.0, 1).title, "Recommended");
        assert!(
            reasons(&rows[0], &forbidden, 1)[0]
                .contains(": that is a loss, but the placement before cannot be kept.")
        );
    }

    #[test]
    fn what_takes_longer_to_move_than_it_saves_is_only_the_best_of_these() {
        let before = Metrics { step_seconds: Some(1.5), ..Metrics::default() };
        let mut dear = row(0.7, 0, 7);
        (dear.after.step_seconds, dear.after.migration_seconds, dear.seconds) = (Some(0.7), Some(2.0), 0.5);
        let all = replay(&[dear.clone()], &before);
        let of = |horizon| of(&dear, &all, horizon, 1);
        assert_eq!([3.0, 4.0].map(|horizon| of(horizon).title), ["Best of these", "Recommended"]);
        assert_eq!(
            of(3.0).lead[1],
            "Predicted: 700 ms instead of 1.50 s a period: deciding and moving take 2.50 s and save 2.40 s, so keep the placement before. \
             With --horizon 4, 0.7-0-7 gains: it takes 2.50 s to decide and move, and a period becomes 53 % shorter."
        );
        assert_eq!(of(4.0).lead[1], "Predicted: 700 ms instead of 1.50 s a period.");
        // Moves that change nothing lose what they cost; what moves nothing is the placement before.
        let same = Metrics { step_seconds: Some(0.7), ..Metrics::default() };
        let text = |row: &Row| reasons(row, &replay(std::slice::from_ref(row), &same), 1)[0].clone();
        let loss = "Predicted: 700 ms a period, as before: deciding and moving take 2.50 s and save 0 s, so keep the placement before.";
        assert_eq!(text(&dear), loss);
        assert_eq!(text(&Row { migrations: 0, ..dear.clone() }), "Predicted: 700 ms a period, as before.");
    }
}

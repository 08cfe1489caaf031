//! The one-sentence comparison of the loads of two placements.

use super::Metrics;

/// Smaller parts are shown as "less than 1 %".
const NEGLIGIBLE: f64 = 0.005;

/// The possible gains before and after a change of the placement, as in "Ideal balance would save 27 % of the time before, 3 % after."
///
/// The ideal is the average load on every PE. If no placement reaches the ideal, the sentence gives the reachable gain
/// and the reason: the heaviest object, or fixed load.
pub fn sentence(before: &Metrics, after: &Metrics) -> String {
    if before.pes == 1 {
        return "There is only one PE, so there is nothing to balance.".into();
    }
    if before.max_load_seconds <= 0.0 && after.max_load_seconds <= 0.0 {
        return "There is no load to balance.".into();
    }
    let (gain, remaining) =
        (less_time(before, before.average_load_seconds), less_time(after, after.average_load_seconds));
    let grew = after.max_load_seconds > before.max_load_seconds * (1.0 + NEGLIGIBLE);
    let worse = grew && remaining >= NEGLIGIBLE;
    let still = percent(remaining);
    if gain < NEGLIGIBLE {
        return match worse {
            false => "The load was balanced and remains so.".into(),
            true => {
                format!("The load was balanced before; now an ideal balance would save {still} of the time.")
            }
        };
    }
    let possible = less_time(before, before.lower_bound_seconds);
    let limit = match (percent(gain), percent(possible)) {
        (ideal, limit) if ideal == limit => String::new(),
        (_, limit) => {
            let (cause, s) = match before.heaviest_object_seconds >= before.lower_bound_seconds {
                true => ("the heaviest object", "s"),
                false => ("objects and background that cannot move", ""),
            };
            match limit.as_str() {
                "nothing" => format!(" ({cause} prevent{s} this)"),
                limit => format!(" ({cause} limit{s} this to {limit})"),
            }
        }
    };
    let worse = if worse { ", which is worse" } else { "" };
    format!("Ideal balance would save {} of the time before{limit}, {still} after{worse}.", percent(gain))
}

/// The part of the time of `metrics` that is saved by running in `seconds`.
fn less_time(metrics: &Metrics, seconds: f64) -> f64 {
    if metrics.max_load_seconds > 0.0 { (1.0 - seconds / metrics.max_load_seconds).max(0.0) } else { 0.0 }
}

/// A part in whole percent; parts strictly between 0 and 1 are rounded neither to 0 % nor to 100 %.
fn percent(part: f64) -> String {
    if part <= 1e-9 {
        "nothing".into()
    } else if part < NEGLIGIBLE {
        "less than 1 %".into()
    } else {
        format!("{:.0} %", (100.0 * part).min(99.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Metrics of 4 PEs with these loads.
    fn metrics([max, average, bound, heaviest]: [f64; 4]) -> Metrics {
        Metrics {
            pes: 4,
            max_load_seconds: max,
            average_load_seconds: average,
            lower_bound_seconds: bound,
            heaviest_object_seconds: heaviest,
            ..Metrics::default()
        }
    }

    #[track_caller]
    fn check(before: [f64; 4], after_max: f64, expected: &str) {
        let before = metrics(before);
        let after = Metrics { max_load_seconds: after_max, ..before.clone() };
        assert_eq!(sentence(&before, &after), expected);
    }

    #[test]
    fn states_the_possible_gain_and_the_remaining_part() {
        let before = [1.0, 0.73, 0.73, 0.1];
        check(before, 0.7525, "Ideal balance would save 27 % of the time before, 3 % after.");
        check(before, 0.7373, "Ideal balance would save 27 % of the time before, 1 % after.");
        check(before, 0.7303, "Ideal balance would save 27 % of the time before, less than 1 % after.");
        check(before, 0.73, "Ideal balance would save 27 % of the time before, nothing after.");
        check(before, 1.0, "Ideal balance would save 27 % of the time before, 27 % after.");
    }

    #[test]
    fn reports_a_step_that_made_the_balance_worse() {
        let before = [1.0, 0.73, 0.73, 0.1];
        check(before, 1.2, "Ideal balance would save 27 % of the time before, 39 % after, which is worse.");
        let hardly = "Ideal balance would save 27 % of the time before, 27 % after.";
        check(before, 1.0 + 1e-7, hardly);
        let balanced = [1.0, 0.999, 0.999, 0.1];
        check(
            balanced,
            1.2,
            "The load was balanced before; now an ideal balance would save 17 % of the time.",
        );
    }

    #[test]
    fn names_the_reason_why_the_ideal_is_out_of_reach() {
        check(
            [1.0, 0.73, 0.82, 0.82],
            0.82,
            "Ideal balance would save 27 % of the time before (the heaviest object limits this to 18 %), \
             11 % after.",
        );
        check(
            [1.0, 0.73, 0.9, 0.2],
            0.9,
            "Ideal balance would save 27 % of the time before \
             (objects and background that cannot move limit this to 10 %), 19 % after.",
        );
        check(
            [1.0, 0.25, 1.0, 1.0],
            1.0,
            "Ideal balance would save 75 % of the time before (the heaviest object prevents this), \
             75 % after.",
        );
    }

    #[test]
    fn gives_no_number_where_nothing_can_be_gained() {
        check([1.0, 1.0, 1.0, 0.1], 1.0, "The load was balanced and remains so.");
        check([1.0, 0.997, 0.997, 0.1], 0.997, "The load was balanced and remains so.");
        check([0.0; 4], 0.0, "There is no load to balance.");
        let alone = Metrics { pes: 1, ..metrics([2.0, 2.0, 2.0, 2.0]) };
        assert_eq!(sentence(&alone, &alone), "There is only one PE, so there is nothing to balance.");
    }

    #[test]
    fn a_gain_below_100_percent_is_not_rounded_up_to_100() {
        check(
            [1.0, 1e-6, 1e-6, 1e-7],
            1e-6,
            "Ideal balance would save 99 % of the time before, nothing after.",
        );
    }
}

//! The one-sentence comparison of the loads of two placements.

use equipoise_model::table::seconds;

use super::Metrics;

/// Smaller parts are shown as "less than 1 %".
const NEGLIGIBLE: f64 = 0.005;

/// Smaller parts are rounding.
const NOTHING: f64 = 1e-9;

/// What a change of the placement gains, and what ideal balance would, as in "The largest load falls by 25 %; with ideal balance by 27 %."
///
/// The ideal is the average load on every PE. If no placement reaches the ideal, the sentence gives the reachable gain
/// and the reason: the heaviest object, or fixed load. All parts are of the largest load before.
pub fn sentence(before: &Metrics, after: &Metrics) -> String {
    if before.pes == 1 {
        return "There is only one PE, so there is nothing to balance.".into();
    }
    let [was, is] = [before, after].map(|metrics| metrics.max_load_seconds);
    if was <= 0.0 && is <= 0.0 {
        return "There is no load to balance.".into();
    }
    // No placement is below the bound without objects on PEs that are not available.
    let bound = before.lower_bound_seconds;
    if was > 0.0 && was < bound * (1.0 - NEGLIGIBLE) {
        let [was, is_now, ideal] = [was, is, bound].map(seconds);
        return match is < bound * (1.0 - NEGLIGIBLE) {
            true => format!(
                "Objects stay on PEs that are not available. An ideal balance of the others has a largest load of {ideal}."
            ),
            false => format!(
                "Some PEs are not available: the largest load is {is_now} instead of {was}; with ideal balance of the others {ideal}."
            ),
        };
    }
    let (gain, remaining) =
        (less_time(before, before.average_load_seconds), less_time(after, after.average_load_seconds));
    let grew = is > was * (1.0 + NEGLIGIBLE);
    if gain < NEGLIGIBLE {
        return match grew && remaining >= NEGLIGIBLE {
            false => "The load was balanced and remains so.".into(),
            true => format!(
                "The load was balanced before; now an ideal balance would save {} of the time.",
                percent(remaining)
            ),
        };
    }
    let fell = less_time(before, is);
    if fell >= NEGLIGIBLE && remaining <= NOTHING {
        return format!("The largest load falls by {}, to ideal balance.", percent(fell));
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
    let ideal = percent(gain);
    match () {
        () if grew => format!(
            "The largest load grows by {:.0} %; with ideal balance it would fall by {ideal}{limit}.",
            100.0 * (is / was - 1.0)
        ),
        () if fell >= NEGLIGIBLE => {
            format!("The largest load falls by {}; with ideal balance by {ideal}{limit}.", percent(fell))
        }
        () => {
            format!("The largest load does not change; with ideal balance it would fall by {ideal}{limit}.")
        }
    }
}

/// The part of the time of `metrics` that is saved by running in `seconds`.
fn less_time(metrics: &Metrics, seconds: f64) -> f64 {
    if metrics.max_load_seconds > 0.0 { (1.0 - seconds / metrics.max_load_seconds).max(0.0) } else { 0.0 }
}

/// A part in whole percent; parts strictly between 0 and 1 are rounded neither to 0 % nor to 100 %.
fn percent(part: f64) -> String {
    if part <= NOTHING {
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
    fn states_the_gain_and_that_of_ideal_balance() {
        let before = [1.0, 0.73, 0.73, 0.1];
        let check = |after: f64, expected: &str| check(before, after, expected);
        check(0.7525, "The largest load falls by 25 %; with ideal balance by 27 %.");
        check(0.7373, "The largest load falls by 26 %; with ideal balance by 27 %.");
        check(0.73, "The largest load falls by 27 %, to ideal balance.");
        check(1.0, "The largest load does not change; with ideal balance it would fall by 27 %.");
    }

    #[test]
    fn objects_on_pes_that_are_not_available_are_no_balance() {
        let before = [1.0, 1.25, 1.25, 0.1];
        let check = |after: f64, expected: &str| check(before, after, expected);
        check(
            1.3,
            "Some PEs are not available: the largest load is 1.30 s instead of 1.00 s; with ideal balance of the others 1.25 s.",
        );
        check(
            1.1,
            "Objects stay on PEs that are not available. An ideal balance of the others has a largest load of 1.25 s.",
        );
    }

    #[test]
    fn reports_a_step_that_made_the_balance_worse() {
        let before = [1.0, 0.73, 0.73, 0.1];
        check(before, 1.2, "The largest load grows by 20 %; with ideal balance it would fall by 27 %.");
        check(
            before,
            1.0 + 1e-7,
            "The largest load does not change; with ideal balance it would fall by 27 %.",
        );
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
            "The largest load falls by 18 %; with ideal balance by 27 % (the heaviest object limits this to 18 %).",
        );
        check(
            [1.0, 0.73, 0.9, 0.2],
            0.95,
            "The largest load falls by 5 %; with ideal balance by 27 % \
             (objects and background that cannot move limit this to 10 %).",
        );
        check(
            [1.0, 0.25, 1.0, 1.0],
            1.0,
            "The largest load does not change; with ideal balance it would fall by 75 % \
             (the heaviest object prevents this).",
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
        check([1.0, 1e-6, 1e-6, 1e-7], 1e-6, "The largest load falls by 99 %, to ideal balance.");
    }
}

//! The sentence a person reads at each load-balancing step.

use super::Metrics;

/// Less than this part is not worth a number.
const NEGLIGIBLE: f64 = 0.005;

/// What a step had to gain and what it left, as in "An ideal balance would run in 27 % less time; after
/// this step 3 % remain."
///
/// Ideal is the average load on every PE. Where no placement can reach it, the sentence says how far one
/// can go, and whether the heaviest object is the reason or what may not move.
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
    let remains = match percent(remaining).as_str() {
        "nothing" => "nothing remains".into(),
        one @ ("1 %" | "less than 1 %") => format!("{one} remains"),
        several => format!("{several} remain"),
    };
    if gain < NEGLIGIBLE {
        return match worse {
            false => "The load was balanced before this step.".into(),
            true => format!("The load was balanced before this step, which made it worse: {remains}."),
        };
    }
    let possible = less_time(before, before.lower_bound_seconds);
    let limit = match (percent(gain), percent(possible)) {
        (ideal, limit) if ideal == limit => String::new(),
        (_, limit) if before.heaviest_object_seconds >= before.lower_bound_seconds => {
            format!(" (the heaviest object allows {limit})")
        }
        (_, limit) => format!(" (what may not move allows {limit})"),
    };
    let after_step = if worse { "this step made it worse:" } else { "after this step" };
    format!("An ideal balance would run in {} less time{limit}; {after_step} {remains}.", percent(gain))
}

/// The part of the time of `metrics` that running in `seconds` would save.
fn less_time(metrics: &Metrics, seconds: f64) -> f64 {
    if metrics.max_load_seconds > 0.0 { (1.0 - seconds / metrics.max_load_seconds).max(0.0) } else { 0.0 }
}

/// A part in whole percent; not rounded to all or to nothing, which it is not.
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
    fn the_sentence_says_what_there_was_to_gain_and_what_remains() {
        let before = [1.0, 0.73, 0.73, 0.1];
        check(before, 0.7525, "An ideal balance would run in 27 % less time; after this step 3 % remain.");
        check(before, 0.7373, "An ideal balance would run in 27 % less time; after this step 1 % remains.");
        check(
            before,
            0.7303,
            "An ideal balance would run in 27 % less time; after this step less than 1 % remains.",
        );
        check(before, 0.73, "An ideal balance would run in 27 % less time; after this step nothing remains.");
        check(before, 1.0, "An ideal balance would run in 27 % less time; after this step 27 % remain.");
    }

    #[test]
    fn a_step_that_made_it_worse_is_told_so() {
        let before = [1.0, 0.73, 0.73, 0.1];
        check(
            before,
            1.2,
            "An ideal balance would run in 27 % less time; this step made it worse: 39 % remain.",
        );
        let hardly = "An ideal balance would run in 27 % less time; after this step 27 % remain.";
        check(before, 1.0 + 1e-7, hardly);
        let balanced = [1.0, 0.999, 0.999, 0.1];
        check(balanced, 1.2, "The load was balanced before this step, which made it worse: 17 % remain.");
    }

    #[test]
    fn what_limits_the_balance_is_named() {
        check(
            [1.0, 0.73, 0.82, 0.82],
            0.82,
            "An ideal balance would run in 27 % less time (the heaviest object allows 18 %); \
             after this step 11 % remain.",
        );
        check(
            [1.0, 0.73, 0.9, 0.2],
            0.9,
            "An ideal balance would run in 27 % less time (what may not move allows 10 %); \
             after this step 19 % remain.",
        );
        check(
            [1.0, 0.25, 1.0, 1.0],
            1.0,
            "An ideal balance would run in 75 % less time (the heaviest object allows nothing); \
             after this step 75 % remain.",
        );
    }

    #[test]
    fn where_there_is_nothing_to_gain_no_number_is_given() {
        check([1.0, 1.0, 1.0, 0.1], 1.0, "The load was balanced before this step.");
        check([1.0, 0.997, 0.997, 0.1], 0.997, "The load was balanced before this step.");
        check([0.0; 4], 0.0, "There is no load to balance.");
        let alone = Metrics { pes: 1, ..metrics([2.0, 2.0, 2.0, 2.0]) };
        assert_eq!(sentence(&alone, &alone), "There is only one PE, so there is nothing to balance.");
    }

    #[test]
    fn a_part_is_never_rounded_to_all_of_it() {
        check(
            [1.0, 1e-6, 1e-6, 1e-7],
            1e-6,
            "An ideal balance would run in 99 % less time; after this step nothing remains.",
        );
    }
}

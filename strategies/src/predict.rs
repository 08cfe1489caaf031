//! Predicts the loads of the coming period from those of past periods.
//!
//! Strategies balance the loads of a database as if they lasted. Those of the last period are right where loads stay or change
//! slowly (the principle of persistence: L. V. Kale, "Some essential techniques for developing efficient petascale applications",
//! SciDAC 2008). Where they are noisy, the mean of several periods is better; where they grow or fall steadily, their trend. A
//! [`History`] follows the loads of every object; [`judge`] compares predictors on recorded steps.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use equipoise_model::database::Object;
use equipoise_model::{Database, Topology};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::StrategyError;
use crate::cost::Metrics;
use crate::descriptor::Choice;
use crate::strategy::guarded;

/// How the load of an object in the coming period follows from its loads in past periods.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Predictor {
    /// As in the last period.
    #[default]
    Last,
    /// As in the last interval between sync points, which is the end of the last period. Where that is not known, as in databases, as
    /// in the last period.
    Interval,
    /// The mean of the last periods; their number is from 2 to [`MOST_PERIODS`].
    Mean(usize),
    /// The exponentially weighted mean, in which the last period has this weight, from 0 to 1: a x load + (1 - a) x mean so far.
    Ewma(f64),
    /// The line through the last periods with the least squares, continued, but not below 0; their number is from 2 to
    /// [`MOST_PERIODS`].
    Trend(usize),
    /// The one of a few that predicted best so far, with recent periods counting more.
    Auto,
}

/// The most periods that a predictor looks at.
pub const MOST_PERIODS: usize = 64;

/// The predictors among which [`Predictor::Auto`] chooses. It begins with the first one, or where intervals are known with the second.
const CANDIDATES: [Predictor; 5] =
    [Predictor::Last, Predictor::Interval, Predictor::Mean(4), Predictor::Ewma(0.5), Predictor::Trend(4)];

/// The part of its error that a candidate keeps from period to period.
const KEPT: f64 = 0.5;

/// A candidate replaces the present one if its error is lower by this part, so that noise does not change the choice.
const CLEARLY: f64 = 0.05;

impl FromStr for Predictor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let periods = |text: &str| text.parse().ok().filter(|periods| (2..=MOST_PERIODS).contains(periods));
        let weight = |text: &str| text.parse().ok().filter(|weight| (0.0..=1.0).contains(weight));
        let parsed = match text.split_once('=') {
            None if text == "last" => Some(Predictor::Last),
            None if text == "interval" => Some(Predictor::Interval),
            None if text == "auto" => Some(Predictor::Auto),
            Some(("mean", number)) => periods(number).map(Predictor::Mean),
            Some(("trend", number)) => periods(number).map(Predictor::Trend),
            Some(("ewma", number)) => weight(number).map(Predictor::Ewma),
            _ => None,
        };
        parsed.ok_or_else(|| {
            format!(
                "write `last`, `interval`, `mean=K`, `trend=K`, `ewma=A` or `auto`; K is a number from 2 to {MOST_PERIODS}, A a number from 0 \
                 to 1"
            )
        })
    }
}

impl fmt::Display for Predictor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predictor::Last => f.write_str("last"),
            Predictor::Interval => f.write_str("interval"),
            Predictor::Mean(periods) => write!(f, "mean={periods}"),
            Predictor::Ewma(weight) => write!(f, "ewma={weight}"),
            Predictor::Trend(periods) => write!(f, "trend={periods}"),
            Predictor::Auto => f.write_str("auto"),
        }
    }
}

impl Serialize for Predictor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Predictor {
    /// How many past loads it looks at.
    fn periods(self) -> usize {
        match self {
            Predictor::Last | Predictor::Interval | Predictor::Ewma(_) => 1,
            Predictor::Mean(periods) | Predictor::Trend(periods) => periods,
            Predictor::Auto => CANDIDATES.iter().map(|candidate| candidate.periods()).max().unwrap_or(1),
        }
    }

    /// The weight of the last period in the mean of an object.
    fn weight(self) -> f64 {
        match self {
            Predictor::Ewma(weight) => weight,
            Predictor::Auto => CANDIDATES.iter().map(|candidate| candidate.weight()).fold(1.0, f64::min),
            _ => 1.0,
        }
    }

    /// The next load of an object; not for [`Predictor::Auto`].
    fn next(self, past: &Past) -> f64 {
        let last = || past.recent.back().copied().unwrap_or(0.0);
        let latest = |periods: usize| past.recent.range(past.recent.len().saturating_sub(periods)..);
        match self {
            Predictor::Last | Predictor::Auto => last(),
            Predictor::Interval => past.interval,
            Predictor::Mean(periods) => mean(latest(periods)),
            Predictor::Ewma(_) => past.mean,
            Predictor::Trend(periods) => continued(latest(periods)),
        }
    }
}

fn mean<'a>(loads: impl ExactSizeIterator<Item = &'a f64>) -> f64 {
    let number = loads.len().max(1) as f64;
    loads.sum::<f64>() / number
}

/// The value at n of the line with the least squares through the values at 0, .., n - 1; at least 0.
fn continued<'a>(loads: impl ExactSizeIterator<Item = &'a f64> + Clone) -> f64 {
    let number = loads.len() as f64;
    let (mean, middle) = (mean(loads.clone()), (number - 1.0) / 2.0);
    let offsets = || (0..loads.len()).map(|at| at as f64 - middle);
    let squares: f64 = offsets().map(|offset| offset * offset).sum();
    if squares == 0.0 {
        return mean;
    }
    let products: f64 = offsets().zip(loads.clone()).map(|(offset, load)| offset * load).sum();
    (mean + products / squares * (number - middle)).max(0.0)
}

/// The loads of all objects in past periods.
#[derive(Debug)]
pub struct History {
    predictor: Predictor,
    /// By the id of the object.
    objects: FxHashMap<u64, Past>,
    periods: u64,
    /// Of the candidates of [`Predictor::Auto`]: the sums of their errors in seconds, recent ones with more weight; and the best.
    errors: [f64; CANDIDATES.len()],
    best: usize,
}

/// The past loads of an object, each divided by the length of its period.
#[derive(Debug, Default)]
struct Past {
    /// The oldest first.
    recent: VecDeque<f64>,
    mean: f64,
    /// That of the last interval between sync points.
    interval: f64,
    /// The last period in which the object was there.
    period: u64,
}

impl History {
    /// The history before the first period.
    pub fn new(predictor: Predictor) -> Self {
        let errors = [0.0; CANDIDATES.len()];
        History { predictor, objects: FxHashMap::default(), periods: 0, errors, best: 0 }
    }

    /// The predictor; of [`Predictor::Auto`], the one that predicted best so far.
    pub fn predictor(&self) -> Predictor {
        if self.predictor == Predictor::Auto { CANDIDATES[self.best] } else { self.predictor }
    }

    /// Adds the loads of a period, and returns those of the coming one in seconds, if it is as long: one per object of the
    /// database. `length` is that of the period in any unit, such as its sync points; it is positive. `intervals` has the loads of the
    /// objects in the last interval of this length 1, where they are known.
    pub fn next(&mut self, database: &Database, length: f64, intervals: Option<&[f64]>) -> Vec<f64> {
        self.periods += 1;
        if self.periods == 1 {
            self.best = usize::from(intervals.is_some());
        }
        let (periods, weight) = (self.predictor.periods(), self.predictor.weight());
        let mut errors = [0.0; CANDIDATES.len()];
        for (at, object) in database.objects.iter().enumerate() {
            let load = object.load_seconds / length;
            let past = self.objects.entry(object.id).or_default();
            if past.recent.is_empty() {
                past.mean = load;
            } else if self.predictor == Predictor::Auto {
                for (error, candidate) in errors.iter_mut().zip(CANDIDATES) {
                    *error += (candidate.next(past) - load).abs();
                }
            }
            past.mean += weight * (load - past.mean);
            past.recent.push_back(load);
            if past.recent.len() > periods {
                past.recent.pop_front();
            }
            past.interval = intervals.map_or(load, |loads| loads[at]);
            past.period = self.periods;
        }
        self.objects.retain(|_, past| past.period == self.periods);
        for (sum, error) in self.errors.iter_mut().zip(errors) {
            *sum = KEPT * *sum + error;
        }
        let least = (0..CANDIDATES.len()).min_by(|&a, &b| self.errors[a].total_cmp(&self.errors[b]));
        if let Some(least) = least.filter(|&at| self.errors[at] < (1.0 - CLEARLY) * self.errors[self.best]) {
            self.best = least;
        }
        let predictor = self.predictor();
        let next = |id: u64| self.objects.get(&id).map_or(0.0, |past| predictor.next(past) * length);
        database.objects.iter().map(|object| next(object.id)).collect()
    }
}

/// The predictors that [`judge`] compares.
pub const JUDGED: [Predictor; 9] = [
    Predictor::Last,
    Predictor::Mean(2),
    Predictor::Mean(4),
    Predictor::Ewma(0.3),
    Predictor::Ewma(0.5),
    Predictor::Ewma(0.7),
    Predictor::Trend(3),
    Predictor::Trend(5),
    Predictor::Auto,
];

/// How well a predictor would have done on recorded steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// The predictor; none if the loads of the coming period are known, which no predictor can surpass.
    pub predictor: Option<Predictor>,
    /// The sum of the differences between predicted and later measured loads, divided by the sum of the latter.
    pub load_error: f64,
    /// The mean of the largest load of a PE divided by the average, in the period after each step.
    pub max_over_avg: f64,
}

/// Lets a strategy place the objects of every step but the last by predicted loads, and measures these placements with the loads
/// of the step after. First comes what known loads would give, then [`JUDGED`].
///
/// Objects that appear in the step after are where they were recorded.
///
/// # Errors
/// If the strategy fails, or its answer does not fit the database.
pub fn judge(
    steps: &[Database],
    topology: &dyn Topology,
    choice: &Choice,
    seed: u64,
) -> Result<Vec<Judged>, StrategyError> {
    let predictors = [None].into_iter().chain(JUDGED.map(Some));
    predictors.map(|predictor| judged(steps, topology, choice, seed, predictor)).collect()
}

fn judged(
    steps: &[Database],
    topology: &dyn Topology,
    choice: &Choice,
    seed: u64,
    predictor: Option<Predictor>,
) -> Result<Judged, StrategyError> {
    let mut history = predictor.map(History::new);
    let (mut difference, mut sum, mut ratios) = (0.0, 0.0, 0.0);
    for pair in steps.windows(2) {
        let [step, after] = pair else { continue };
        let measured: FxHashMap<u64, f64> =
            after.objects.iter().map(|object| (object.id, object.load_seconds)).collect();
        let loads = match &mut history {
            Some(history) => history.next(step, 1.0, None),
            None => {
                let known =
                    |object: &Object| measured.get(&object.id).copied().unwrap_or(object.load_seconds);
                step.objects.iter().map(known).collect()
            }
        };
        let mut predicted = step.clone();
        for (object, load) in predicted.objects.iter_mut().zip(&loads) {
            object.load_seconds = *load;
            if let Some(measured) = measured.get(&object.id) {
                difference += (load - measured).abs();
                sum += measured;
            }
        }
        let answer = guarded(|| choice.strategy.assign(&predicted, topology, seed))?;
        answer.check(&predicted).map_err(|impossible| StrategyError::rejected(&choice.spec, impossible))?;
        let placed: FxHashMap<u64, u32> =
            step.objects.iter().zip(&answer.pe_of).map(|(object, pe)| (object.id, *pe)).collect();
        let place = |object: &Object| *placed.get(&object.id).unwrap_or(&object.pe);
        let placement: Vec<u32> = after.objects.iter().map(place).collect();
        ratios += 1.0 + Metrics::of(after, topology, &placement).imbalance;
    }
    let steps = steps.len().saturating_sub(1).max(1) as f64;
    let load_error = if sum > 0.0 { difference / sum } else { 0.0 };
    Ok(Judged { predictor, load_error, max_over_avg: ratios / steps })
}

/// The predictor with the lowest resulting load; of equal ones, the one with the lowest error of loads.
pub fn best(judged: &[Judged]) -> Option<Predictor> {
    let key = |judged: &Judged| (judged.max_over_avg, judged.load_error);
    let rows = judged.iter().filter(|row| row.predictor.is_some());
    let best = rows.min_by(|a, b| {
        let ((a, a_error), (b, b_error)) = (key(a), key(b));
        a.total_cmp(&b).then(a_error.total_cmp(&b_error))
    });
    best?.predictor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::balance::greedy::Greedy;
    use crate::testing;
    use equipoise_model::random;
    use equipoise_model::topology;

    /// The steps of objects on two PEs whose loads follow from step and object.
    fn steps(number: usize, objects: usize, mut load: impl FnMut(usize, usize) -> f64) -> Vec<Database> {
        let step = |at| {
            let loads: Vec<(f64, u32)> = (0..objects).map(|object| (load(at, object), 0)).collect();
            Database { step: at as u64, ..testing::database(2, &loads) }
        };
        (0..number).map(step).collect()
    }

    /// The prediction for the only object after these loads.
    fn predicted(predictor: Predictor, loads: &[f64]) -> f64 {
        let mut history = History::new(predictor);
        let next = |database: &Database| history.next(database, 1.0, None)[0];
        steps(loads.len(), 1, |at, _| loads[at]).iter().map(next).last().expect("a step")
    }

    #[test]
    fn the_last_interval_may_differ_from_its_period() {
        let database = steps(1, 3, |_, _| 6.0).remove(0);
        let next = |predictor| History::new(predictor).next(&database, 3.0, Some(&[1.0, 2.0, 3.0]));
        // Three intervals with 2 s each in the mean; the coming period has three, too.
        assert_eq!(next(Predictor::Interval), [3.0, 6.0, 9.0]);
        assert_eq!(next(Predictor::Last), [6.0; 3]);
        assert_eq!(next(Predictor::Auto), [3.0, 6.0, 9.0], "nothing is known yet");
        assert_eq!(History::new(Predictor::Interval).next(&database, 3.0, None), [6.0; 3]);
    }

    #[test]
    fn predictions_are_those_of_the_formulas() {
        let loads = [4.0, 2.0, 3.0, 7.0];
        assert_eq!(predicted(Predictor::Last, &loads), 7.0);
        assert_eq!(predicted(Predictor::Mean(3), &loads), 4.0);
        assert_eq!(predicted(Predictor::Mean(64), &loads), 4.0);
        // 4, 3, 3, 5.
        assert_eq!(predicted(Predictor::Ewma(0.5), &loads), 5.0);
        // The slope of 2, 3, 7 is 2.5, their mean 4, and the next value is two steps from the middle.
        assert_eq!(predicted(Predictor::Trend(3), &loads), 9.0);
        assert_eq!(predicted(Predictor::Trend(2), &loads), 11.0);
        assert_eq!(predicted(Predictor::Trend(3), &[9.0, 4.0, 1.0]), 0.0);
        for predictor in JUDGED {
            assert_eq!(predicted(predictor, &[5.0]), 5.0, "{predictor}");
        }
    }

    #[test]
    fn the_length_of_a_period_does_not_matter() {
        for predictor in JUDGED {
            let mut history = History::new(predictor);
            let mut next = 0.0;
            for (at, database) in steps(6, 1, |at, _| (at + 1) as f64).iter().enumerate() {
                next = history.next(database, (at + 1) as f64, None)[0];
            }
            assert!((next - 6.0).abs() < 1e-12, "{predictor}: {next}");
        }
    }

    #[test]
    fn objects_that_end_are_forgotten_and_new_ones_begin_with_their_load() {
        let mut history = History::new(Predictor::Mean(4));
        let all = steps(3, 3, |at, _| (at + 1) as f64);
        history.next(&all[0], 1.0, None);
        let mut without = all[1].clone();
        without.objects.truncate(2);
        assert_eq!(history.next(&without, 1.0, None), [1.5, 1.5]);
        assert_eq!(history.next(&all[2], 1.0, None), [2.0, 2.0, 3.0]);
    }

    #[test]
    fn auto_finds_trends_and_means() {
        let chosen = |load: &mut dyn FnMut(usize, usize) -> f64| {
            let mut history = History::new(Predictor::Auto);
            steps(12, 20, load).iter().for_each(|step| _ = history.next(step, 1.0, None));
            history.predictor()
        };
        assert_eq!(chosen(&mut |_, object| object as f64), Predictor::Last);
        assert_eq!(chosen(&mut |at, object| (at * object) as f64), Predictor::Trend(4));
        let mut generator = random::generator(3, 0);
        let noisy =
            chosen(&mut |_, object| object as f64 + random::below(&mut generator, 1000) as f64 / 100.0);
        assert!([Predictor::Mean(4), Predictor::Ewma(0.5)].contains(&noisy), "{noisy}");
    }

    #[test]
    fn known_loads_are_the_best_and_trends_are_found() {
        // Half of the objects grow, the others shrink.
        let load = |at: usize, object: usize| if object < 4 { 1.0 + at as f64 } else { 12.0 - at as f64 };
        let steps = steps(10, 8, load);
        let machine = topology::flat(2);
        let strategy = std::sync::Arc::new(Greedy);
        let choice = Choice { spec: "GreedyLB".into(), strategy, needs_communication: false };
        let judged = judge(&steps, &*machine, &choice, 0).expect("the strategy answers");
        assert_eq!(judged[0].load_error, 0.0);
        let known = judged[0].max_over_avg;
        assert!(judged.iter().all(|row| row.max_over_avg >= known - 1e-12), "{judged:?}");
        let of =
            |predictor| judged.iter().find(|row| row.predictor == Some(predictor)).expect("it is judged");
        assert!(of(Predictor::Trend(3)).load_error < of(Predictor::Last).load_error / 2.0);
        assert!(matches!(best(&judged), Some(Predictor::Trend(_) | Predictor::Auto)), "{judged:?}");
    }

    #[test]
    fn specs_are_read_as_they_are_shown() {
        for predictor in JUDGED {
            assert_eq!(predictor.to_string().parse(), Ok(predictor));
        }
        for wrong in ["", "mean", "mean=1", "mean=65", "trend=x", "ewma=1.5", "ewma=-1", "last=2", "auto=3"] {
            let error = wrong.parse::<Predictor>().expect_err(wrong);
            assert!(error.contains("a number from 2 to 64"), "{error}");
        }
    }
}

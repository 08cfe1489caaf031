//! `AutoLB`: tries cheap strategies first, and dearer ones only if what they could gain pays for their thinking.
//!
//! Every answer is judged by the time of the coming periods: the predicted time of a period
//! ([`step_seconds`](crate::cost::step_seconds())) times the horizon, plus the predicted time of the migrations. No placement can be
//! faster than the lower bound of the largest load. So a candidate is tried only if it thinks for less time than it could gain.
//!
//! A strategy has no clock. What a candidate needs to think is the time that the database has of it, else an estimate per
//! object. A run corrects three predictions ([`Costs`]): the times to think; what part of the predicted
//! gains a candidate `delivered`, which is small where loads do not last; and what part of the possible gain it `found`, so that a
//! candidate that finds little is seldom tried. A candidate that was never applied counts as the others did in the mean, and one that was
//! never tried is expected to find half of what is possible.
//!
//! Where periods cannot be predicted, because costs or communication are unknown, the largest load decides, then hop-bytes and moves;
//! strategies that think long are then not tried.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use equipoise_model::assignment::{Attempt, Note};
use equipoise_model::costs::Costs;
use equipoise_model::database::Object;
use equipoise_model::descriptor::Descriptor;
use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::table::seconds;
use equipoise_model::{Assignment, Database, Topology};

use crate::cost::{CLOSE, FOUND, Metrics, is_lighter};
use crate::descriptor::{Choice, Recipe};
use crate::strategy::check;
use crate::{Strategy, StrategyError};

/// `AutoLB` for the registry, which gives `make` the candidates.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "AutoLB",
    form: "",
    help: "Tries refinement first, and strategies that think longer only if their possible gain pays for it; takes \
           what ends the coming periods first.",
    params: &[Param { key: "horizon", default: "1", help: "periods until the next step, from 0 on" }],
    item: Recipe { needs_communication: true, make: |params| make(params, Vec::new()) },
};

/// A strategy to try.
pub struct Candidate {
    /// The strategy.
    pub choice: Choice,
    /// About how long it thinks per object, in seconds, where the database does not say how long it thought.
    pub seconds_per_object: f64,
}

/// The strategy that chooses among candidates.
pub struct AutoLb {
    /// The candidates, those that think least first.
    pub candidates: Vec<Candidate>,
    /// The number of periods until the next step.
    pub horizon: f64,
}

/// A possible gain below this part of the coming periods is not worth thinking.
const NEGLIGIBLE: f64 = 0.01;

/// A candidate that thinks longer than this per object is not tried where periods cannot be predicted.
const QUICK_SECONDS_PER_OBJECT: f64 = 5e-6;

/// Makes the strategy from its parameters.
pub(crate) fn make(params: &mut Params, candidates: Vec<Candidate>) -> Result<Box<dyn Strategy>, ParamError> {
    let horizon: f64 = params.take("horizon")?;
    if !(0.0..=1e9).contains(&horizon) {
        return Err(params.bad(
            "horizon",
            &horizon.to_string(),
            "expected periods, a number from 0 to 1000000000",
        ));
    }
    Ok(Box::new(AutoLb { candidates, horizon }))
}

/// An answer that was tried, with its costs.
struct Tried<'a> {
    name: &'a str,
    pe_of: Vec<u32>,
    metrics: Metrics,
    /// The time of the coming periods with migrations; `None` if it cannot be predicted.
    coming_seconds: Option<f64>,
}

impl Strategy for AutoLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        check(database, topology)?;
        let delivered = Delivered::of(database, &self.candidates);
        let metrics = |placement: &[u32]| Metrics::of(database, topology, placement);
        let (placement, present) = (database.placement(), metrics(&database.placement()));
        let mut tried = vec![self.judged("the present placement", placement, present.clone(), &present, 1.0)];
        let mut attempts: Vec<Attempt> = Vec::new();
        // Objects leave PEs that are not available: then the present placement is no answer.
        let must_move = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
        let mut is_answer = !database.objects.iter().any(must_move);
        let mut sentence = String::new();
        let mut best = 0;
        for candidate in &self.candidates {
            let choice = &candidate.choice;
            let expected = candidate.expected(database, delivered.of_spec(&choice.spec));
            let possible_seconds = self.possible_seconds(&tried[best], &expected);
            let needs_more = choice.needs_communication && !database.communication_recorded;
            if needs_more || is_answer && !candidate.could_pay(&tried[best], possible_seconds, &expected) {
                _ = write!(sentence, "; {} was not tried", choice.spec);
                continue;
            }
            // A candidate may refuse what it cannot do; then the others decide.
            let Ok(answer) = choice.strategy.assign(database, topology, seed) else { continue };
            if answer.check(database).is_err() {
                continue;
            }
            let after = metrics(&answer.pe_of);
            tried.push(self.judged(&choice.spec, answer.pe_of, after, &present, expected.delivered));
            let last = tried.len() - 1;
            let is_best = !is_answer || is_better(&tried[last], &tried[best], &tried[0].metrics);
            attempts.push(Attempt {
                spec: choice.spec.clone(),
                thinking_seconds: expected.thinking_seconds,
                // An answer was needed in any case.
                found: if is_answer { part_found(&tried[best], &tried[last], possible_seconds) } else { 1.0 },
                is_chosen: false,
            });
            if is_best {
                best = last;
            }
            if !is_answer {
                // Its loads are what the others must not raise.
                tried[0].metrics.max_load_seconds = tried[last].metrics.max_load_seconds;
                is_answer = true;
            }
        }
        let notes = tried[1..]
            .iter()
            .filter_map(|it| Some(Note::new(format!("{}_seconds", it.name), it.metrics.step_seconds?)));
        let corrections =
            delivered.0.iter().map(|(spec, factor)| Note::new(format!("{spec}_delivered"), *factor));
        let notes = notes.chain(corrections).collect();
        if let Some(chosen) = best.checked_sub(1) {
            attempts[chosen].is_chosen = true;
        }
        let sentence = format!("{}{sentence}.", reason(&tried[best], &tried[0]));
        let pe_of = tried.swap_remove(best).pe_of;
        Ok(Assignment { notes, sentence: Some(sentence), attempts, ..Assignment::new(pe_of) })
    }
}

/// The candidates that were applied in the run, each with the part of its predicted gains that it delivered.
struct Delivered<'a>(Vec<(&'a str, f64)>);

impl<'a> Delivered<'a> {
    fn of(database: &Database, candidates: &'a [Candidate]) -> Self {
        let factor = |spec: &str| database.costs.as_ref()?.delivered.get(spec).copied();
        let all = candidates.iter().map(|it| &*it.choice.spec);
        Delivered(all.filter_map(|spec| Some((spec, factor(spec)?))).collect())
    }

    /// That of a strategy; of one that was never applied, the mean of the others.
    fn of_spec(&self, spec: &str) -> f64 {
        let known = self.0.iter().find(|(known, _)| *known == spec);
        let mean = || self.0.iter().map(|(_, part)| part).sum::<f64>() / self.0.len() as f64;
        known.map_or_else(|| if self.0.is_empty() { 1.0 } else { mean() }, |(_, part)| *part)
    }
}

impl AutoLb {
    /// An answer with its costs. It is expected to save a part of the predicted time.
    fn judged<'a>(
        &self,
        name: &'a str,
        pe_of: Vec<u32>,
        metrics: Metrics,
        present: &Metrics,
        part: f64,
    ) -> Tried<'a> {
        let coming_seconds = present
            .step_seconds
            .zip(metrics.migration_seconds)
            .map(|(period, moving)| self.horizon * (period - part * present.gain_seconds(&metrics)) + moving);
        Tried { name, pe_of, metrics, coming_seconds }
    }

    /// By how much the coming periods could be shorter than with the best answer so far: by its excess over the lower bound, and by its
    /// migrations. `None` if periods cannot be predicted.
    fn possible_seconds(&self, best: &Tried, expected: &Expected) -> Option<f64> {
        let Metrics { step_seconds, migration_seconds, lower_bound_seconds, .. } = best.metrics;
        Some(self.horizon * expected.delivered * (step_seconds? - lower_bound_seconds) + migration_seconds?)
    }
}

/// What to expect of a candidate.
struct Expected {
    thinking_seconds: f64,
    /// The parts of the predicted gain and of the possible gain.
    delivered: f64,
    found: f64,
}

impl Candidate {
    fn expected(&self, database: &Database, delivered: f64) -> Expected {
        let spec = &self.choice.spec;
        let known =
            |of: fn(&Costs) -> &BTreeMap<String, f64>| of(database.costs.as_ref()?).get(spec).copied();
        let estimate = self.seconds_per_object * database.objects.len() as f64;
        Expected {
            thinking_seconds: known(|costs| &costs.strategies).unwrap_or(estimate),
            delivered,
            found: known(|costs| &costs.found).unwrap_or(FOUND),
        }
    }

    /// Whether the candidate could be better than the best answer so far.
    fn could_pay(&self, best: &Tried, possible_seconds: Option<f64>, expected: &Expected) -> bool {
        match best.coming_seconds.zip(possible_seconds) {
            Some((coming, possible)) => {
                expected.found * possible > expected.thinking_seconds && possible > NEGLIGIBLE * coming
            }
            None => {
                let least = best.metrics.lower_bound_seconds;
                let excess = best.metrics.max_load_seconds - least;
                excess > NEGLIGIBLE * least && self.seconds_per_object <= QUICK_SECONDS_PER_OBJECT
            }
        }
    }
}

/// What part of the possible gain over the best answer so far another one found; 1 if nothing was possible or times are unknown.
fn part_found(best: &Tried, it: &Tried, possible_seconds: Option<f64>) -> f64 {
    let gain_seconds = best.coming_seconds.zip(it.coming_seconds).map(|(best, it)| best - it);
    match gain_seconds.zip(possible_seconds) {
        Some((gain, possible)) if possible > 0.0 => (gain / possible).clamp(0.0, 1.0),
        _ => 1.0,
    }
}

/// Whether an answer is better than the best so far: by the coming time, and if both are close by hop-bytes and moves. One that raises
/// the present largest load never is.
fn is_better(it: &Tried, best: &Tried, present: &Metrics) -> bool {
    if is_lighter(present.max_load_seconds, it.metrics.max_load_seconds) {
        return false;
    }
    if let (Some(a), Some(b)) = (it.coming_seconds, best.coming_seconds)
        && (best.metrics.migrations == 0 || (a - b).abs() > CLOSE * b)
    {
        return is_lighter(a, b);
    }
    let load = |tried: &Tried| tried.metrics.max_load_seconds;
    let hops = |tried: &Tried| tried.metrics.communication.map_or(0, |cost| cost.hop_bytes);
    let by_load = match (is_lighter(load(it), load(best)), is_lighter(load(best), load(it))) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    };
    let moves = it.metrics.migrations.cmp(&best.metrics.migrations);
    let by_hops = hops(it).cmp(&hops(best)).then(moves);
    match it.coming_seconds {
        Some(_) => by_hops.is_lt(),
        None => by_load.then(by_hops).is_lt(),
    }
}

/// Why an answer was taken.
fn reason(best: &Tried, present: &Tried) -> String {
    let times = best.metrics.step_seconds.zip(present.metrics.step_seconds);
    match times {
        Some((after, before)) if best.metrics.migrations > 0 => {
            format!("{}: {} instead of {} a period", best.name, seconds(after), seconds(before))
        }
        _ => format!("{}: max/avg {:.3}", best.name, best.metrics.imbalance + 1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use equipoise_model::costs::EndCosts;
    use equipoise_model::database::{Edge, End};
    use equipoise_model::topology;

    use super::*;
    use crate::testing;

    /// A strategy that always returns the same placement.
    struct Fixed(Vec<u32>);

    impl Strategy for Fixed {
        fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
            Ok(Assignment::new(self.0.clone()))
        }
    }

    fn candidate(name: &str, pe_of: [u32; 4], seconds_per_object: f64) -> Candidate {
        let strategy = Arc::new(Fixed(pe_of.into()));
        let choice = Choice { spec: name.into(), strategy, needs_communication: false };
        Candidate { choice, seconds_per_object }
    }

    /// Four objects of 1 s on PE 0 of 2; the first and the second exchange many messages, which cost 2 s between PEs.
    fn recorded(costs: Option<Costs>) -> Database {
        let mut database = testing::database(2, &[(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0)]);
        database.edges = vec![Edge { from: End::Object(0), to: End::Object(1), messages: 2, bytes: 8 }];
        database.pes.iter_mut().for_each(|pe| pe.wall_seconds = 4.0);
        database.costs = costs;
        database
    }

    fn costs() -> Costs {
        let remote = EndCosts { send_seconds: 1.0, ..EndCosts::default() };
        Costs { same_process: remote, ..Costs::default() }
    }

    #[track_caller]
    fn check(database: &Database, candidates: Vec<Candidate>, expected: [u32; 4], sentence: &str) {
        let machine = topology::parse("flat:2").expect("a machine");
        let answer = AutoLb { candidates, horizon: 1.0 }.assign(database, &*machine, 0).expect("an answer");
        let said = answer.sentence.expect("a sentence");
        assert_eq!((answer.pe_of, said.as_str()), (expected.to_vec(), sentence));
    }

    #[test]
    fn the_shortest_coming_period_decides() {
        let apart = || candidate("ApartLB", [0, 1, 0, 1], 0.0);
        let together = || candidate("TogetherLB", [0, 0, 1, 1], 0.0);
        let expected = "TogetherLB: 2.00 s instead of 4.00 s a period.";
        check(&recorded(Some(costs())), vec![apart(), together()], [0, 0, 1, 1], expected);
        check(
            &recorded(None),
            vec![apart(), together()],
            [0, 1, 0, 1],
            "ApartLB: max/avg 1.000; TogetherLB was not tried.",
        );
    }

    #[test]
    fn what_thinks_longer_than_it_can_gain_is_not_tried() {
        let quick = || candidate("QuickLB", [0, 0, 0, 1], 0.01);
        let slow = |thinking| candidate("SlowLB", [0, 0, 1, 1], thinking);
        let database = recorded(Some(costs()));
        // At most 1 s is possible, of which a candidate that was never tried is expected to find half.
        check(
            &database,
            vec![quick(), slow(0.12)],
            [0, 0, 1, 1],
            "SlowLB: 2.00 s instead of 4.00 s a period.",
        );
        let expected = "QuickLB: 3.00 s instead of 4.00 s a period; SlowLB was not tried.";
        check(&database, vec![quick(), slow(0.13)], [0, 0, 0, 1], expected);
        // The database knows better how long it thinks.
        let known = Costs { strategies: [("SlowLB".into(), 0.4)].into(), ..costs() };
        check(
            &recorded(Some(known)),
            vec![quick(), slow(9.0)],
            [0, 0, 1, 1],
            "SlowLB: 2.00 s instead of 4.00 s a period.",
        );
    }

    #[test]
    fn candidates_are_judged_by_what_they_delivered() {
        let apart = || candidate("ApartLB", [0, 1, 0, 1], 0.0);
        let together = || candidate("TogetherLB", [0, 0, 1, 1], 0.0);
        let known = |delivered: &[(&str, f64)]| {
            let delivered = delivered.iter().map(|&(spec, part)| (spec.to_string(), part)).collect();
            let mut database = recorded(Some(Costs { delivered, ..costs() }));
            // A message takes 0.25 s, so that both are better than now.
            database.costs.as_mut().expect("they are known").same_process.send_seconds = 0.25;
            database
        };
        let answer = |delivered: &[(&str, f64)]| {
            let machine = topology::parse("flat:2").expect("a machine");
            let strategy = AutoLb { candidates: vec![apart(), together()], horizon: 1.0 };
            strategy.assign(&known(delivered), &*machine, 0).expect("an answer")
        };
        let chosen = |delivered: &[(&str, f64)]| {
            let answer = answer(delivered);
            let chosen = answer.attempts.into_iter().find(|it| it.is_chosen);
            chosen.map_or("none".into(), |it| it.spec)
        };
        // 2.0 s and 2.5 s are predicted, and 4 s for the present placement.
        assert_eq!(chosen(&[]), "TogetherLB");
        assert_eq!(chosen(&[("TogetherLB", 0.8), ("ApartLB", 1.0)]), "TogetherLB");
        assert_eq!(chosen(&[("TogetherLB", 0.7), ("ApartLB", 1.0)]), "ApartLB");
        // One that was never applied counts as the others.
        assert_eq!(chosen(&[("ApartLB", 0.5)]), "TogetherLB");
        // Both gain less than expected: the better one remains the better one.
        assert_eq!(chosen(&[("TogetherLB", 0.1), ("ApartLB", 0.1)]), "TogetherLB");
        let notes = answer(&[("TogetherLB", 0.8)]).notes;
        assert!(notes.iter().any(|it| (&*it.name, it.value) == ("TogetherLB_delivered", 0.8)), "{notes:?}");
    }

    #[test]
    fn what_found_little_is_seldom_tried() {
        let quick = || candidate("QuickLB", [0, 0, 0, 1], 0.0);
        let slow = || candidate("SlowLB", [0, 0, 1, 1], 0.2);
        let found = |part: f64| {
            let found = [("SlowLB".to_string(), part)].into();
            recorded(Some(Costs { found, ..costs() }))
        };
        let expected = "SlowLB: 2.00 s instead of 4.00 s a period.";
        check(&found(0.9), vec![quick(), slow()], [0, 0, 1, 1], expected);
        let expected = "QuickLB: 3.00 s instead of 4.00 s a period; SlowLB was not tried.";
        check(&found(0.7), vec![quick(), slow()], [0, 0, 0, 1], expected);
    }

    #[test]
    fn among_equal_times_fewer_moves_decide() {
        let many = candidate("ManyLB", [1, 1, 0, 0], 0.0);
        let few = candidate("FewLB", [0, 0, 1, 1], 0.0);
        let mut database = recorded(Some(costs()));
        database.objects[3].pe = 1;
        check(&database, vec![many, few], [0, 0, 1, 1], "FewLB: 3.00 s instead of 4.00 s a period.");
    }

    #[test]
    fn objects_leave_pes_that_are_not_available() {
        let mut database = recorded(Some(costs()));
        database.pes[0].available = false;
        let candidates = vec![candidate("LeaveLB", [1, 1, 1, 1], 1e9)];
        check(&database, candidates, [1, 1, 1, 1], "LeaveLB: 4.00 s instead of 4.00 s a period.");
    }

    #[test]
    fn the_present_placement_remains_if_nothing_is_better() {
        let mut database = recorded(Some(costs()));
        database.objects[1].pe = 1;
        database.objects[2].pe = 1;
        let worse = candidate("WorseLB", [0, 0, 0, 1], 0.0);
        let expected = "the present placement: max/avg 1.000";
        let machine = topology::parse("flat:2").expect("a machine");
        let strategy = AutoLb { candidates: vec![worse], horizon: 1.0 };
        let answer = strategy.assign(&database, &*machine, 0).expect("an answer");
        assert_eq!(answer.pe_of, database.placement());
        assert!(answer.sentence.expect("a sentence").starts_with(expected));
    }
}

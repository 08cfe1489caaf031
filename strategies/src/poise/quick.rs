//! `PoiseLB` as the only strategy of a step: placements by loads and messages first, and a search only if it may pay for its thinking. It needs a
//! recorded period with its costs.
//!
//! No placement is faster than a lower bound of the period, and of the difference a search is expected to find a half. A strategy has no clock, so
//! that the time to think is an estimate by the number of objects, and a low one. What a search finds is not taken if its predicted period is longer
//! than that of the placement without a search, by more than predictions are wrong. What migrations cost is not counted: an answer may
//! serve many periods, and `--lb-gate` asks whether they pay.

use equipoise_model::assignment::Note;
use equipoise_model::database::Object;
use equipoise_model::table::seconds;
use equipoise_model::{Assignment, Database, Topology};

use super::machine::timed::has_different_bandwidths;
use super::settings::Quality;
use crate::balance::greedy_comm::GreedyComm;
use crate::balance::greedy_refine::GreedyRefine;
use crate::balance::refine_comm::RefineComm;
use crate::balance::traffic::MessageCostParams;
use crate::cost::{CLOSE, FOUND, Period, is_lighter, max_load, travel};
use crate::strategy::{Alternatives, check};
use crate::{Strategy, StrategyError};

/// About how long a search thinks for an object at least, in seconds of CPU time: measured on steps of 500 to 8,000 objects. `None`: always search.
pub(super) fn seconds_per_object(quality: Quality) -> Option<f64> {
    match quality {
        Quality::Fast => Some(2e-5),
        Quality::Default => Some(2.5e-5),
        Quality::Best => None,
    }
}

/// A search that is left out if it cannot pay; see the top of this file.
pub(super) struct IfItPays<S> {
    pub search: S,
    pub seconds_per_object: f64,
    /// Allowed max/avg - 1 of placements without a search.
    pub imbalance: f64,
}

impl<S: Strategy> Strategy for IfItPays<S> {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        Ok(self.alternatives(database, topology, seed, &|_| true)?.answer)
    }

    fn alternatives(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        check(database, topology)?;
        let Some(quick) = Quick::of(database, topology, seed, self.imbalance) else {
            return self.search.alternatives(database, topology, seed, is_enough);
        };
        if let Some(answer) = quick.answer(self.seconds_per_object) {
            return Ok(Alternatives { answer, others: Vec::new() });
        }
        let Alternatives { answer, others } =
            self.search.alternatives(database, topology, seed, is_enough)?;
        Ok(Alternatives { answer: quick.or(answer), others })
    }
}

/// The best placement without a search.
struct Quick<'a> {
    period: Period<'a>,
    pe_of: Vec<u32>,
    /// Whether this is the present placement.
    stays: bool,
    /// The predicted time of a period.
    seconds: f64,
}

impl<'a> Quick<'a> {
    /// None where periods cannot be predicted, or if there is no such placement. Of periods that are about equal, fewer hop-bytes and then fewer
    /// moves decide. `imbalance` is the allowed max/avg - 1.
    fn of(database: &'a Database, topology: &'a dyn Topology, seed: u64, imbalance: f64) -> Option<Self> {
        let period = Period::of(database, topology)?;
        // Then the search counts bandwidths, and the period does not.
        if database.costs.as_ref()?.links.is_none() && has_different_bandwidths(topology) {
            return None;
        }
        let (present, cost) = (database.placement(), MessageCostParams::default());
        let must_move = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
        let may_stay = !database.objects.iter().any(must_move);
        let most = if may_stay { max_load(database, &present) } else { f64::INFINITY };
        let strategies: [&dyn Strategy; 3] =
            [&GreedyRefine { imbalance }, &RefineComm { imbalance, cost }, &GreedyComm { cost }];
        let answers = strategies.iter().filter_map(|strategy| strategy.assign(database, topology, seed).ok());
        let all = may_stay.then(|| present.clone()).into_iter().chain(answers.map(|answer| answer.pe_of));
        let judged: Vec<(f64, Vec<u32>)> = all
            .filter(|pe_of| !is_lighter(most, max_load(database, pe_of)))
            .map(|pe_of| (period.seconds(&pe_of), pe_of))
            .collect();
        let least = judged.iter().map(|it| it.0).fold(f64::INFINITY, f64::min);
        let moves = |pe_of: &[u32]| present.iter().zip(pe_of).filter(|(from, to)| from != to).count();
        let close = judged.into_iter().filter(|it| it.0 <= least * (1.0 + CLOSE));
        let (seconds, pe_of) =
            close.min_by_key(|(_, pe_of)| (travel(database, topology, pe_of).hop_bytes, moves(pe_of)))?;
        Some(Quick { period, stays: pe_of == present, pe_of, seconds })
    }

    /// The answer, if no search pays.
    fn answer(&self, seconds_per_object: f64) -> Option<Assignment> {
        let thinking_seconds = seconds_per_object * self.pe_of.len() as f64;
        let expected_seconds = FOUND * (self.seconds - self.period.least_seconds()).max(0.0);
        (expected_seconds < thinking_seconds).then(|| {
            self.assignment(&format!(
                "a search is expected to save {}, and would think for about {}",
                seconds(expected_seconds),
                seconds(thinking_seconds)
            ))
        })
    }

    /// The better of this placement and the answer of a search, which counts hops and moves and so has the preference if both are close.
    fn or(&self, searched: Assignment) -> Assignment {
        let found = self.period.seconds(&searched.pe_of);
        match self.seconds < (1.0 - CLOSE) * found {
            true => {
                self.assignment(&format!("a search found a placement with a period of {}", seconds(found)))
            }
            false => searched,
        }
    }

    fn assignment(&self, reason: &str) -> Assignment {
        let placement =
            if self.stays { "the present placement" } else { "a placement by loads and messages" };
        let sentence = format!("With {placement}, a period takes {}; {reason}.", seconds(self.seconds));
        let notes = vec![Note::new("period_seconds", self.seconds)];
        Assignment { notes, sentence: Some(sentence), ..Assignment::new(self.pe_of.clone()) }
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::costs::Costs;
    use equipoise_model::topology;

    use super::*;
    use crate::testing;

    /// Objects of 1 s on PE 0 of 2, in a period that they explain.
    fn recorded(objects: usize) -> Database {
        let mut database = testing::database(2, &vec![(1.0, 0); objects]);
        database.communication_recorded = true;
        database.pes.iter_mut().for_each(|pe| pe.wall_seconds = objects as f64);
        database.costs = Some(Costs::default());
        database
    }

    fn of(database: &Database, check: impl FnOnce(Option<Quick>)) {
        let machine = topology::parse("flat:2").expect("a machine");
        check(Quick::of(database, &*machine, 0, 0.03));
    }

    /// The seconds for each object by default.
    fn default_seconds() -> f64 {
        assert_eq!(seconds_per_object(Quality::Best), None);
        seconds_per_object(Quality::Default).expect("a search must pay")
    }

    fn on(pe: u32, objects: usize) -> Assignment {
        Assignment::new(vec![pe; objects])
    }

    #[test]
    fn without_costs_or_messages_there_is_none() {
        of(&Database { costs: None, ..recorded(4) }, |quick| assert!(quick.is_none()));
        of(&Database { communication_recorded: false, ..recorded(4) }, |quick| assert!(quick.is_none()));
    }

    #[test]
    fn a_placement_that_cannot_be_improved_is_the_answer() {
        of(&recorded(4), |quick| {
            let answer =
                quick.expect("periods are known").answer(default_seconds()).expect("2 s are the bound");
            assert_eq!(answer.pe_of.iter().filter(|&&pe| pe == 0).count(), 2);
            let expected = "With a placement by loads and messages, a period takes 2.00 s; a search is expected to save 0 s, and would think \
                            for about 100 us.";
            assert_eq!(answer.sentence.as_deref(), Some(expected));
        });
    }

    #[test]
    fn a_search_that_may_pay_is_made() {
        // Three objects of 1 s take 2 s, and 1.5 s are the bound.
        of(&recorded(3), |quick| {
            let quick = quick.expect("periods are known");
            assert!(quick.answer(default_seconds()).is_none());
        });
    }

    #[test]
    fn a_search_that_found_a_longer_period_is_no_answer() {
        of(&recorded(4), |quick| {
            let quick = quick.expect("periods are known");
            let sentence = quick.or(on(1, 4)).sentence.expect("a sentence");
            assert!(
                sentence
                    .ends_with("a period takes 2.00 s; a search found a placement with a period of 4.00 s."),
                "{sentence}"
            );
            let as_good = Assignment::new(vec![1, 0, 1, 0]);
            assert_eq!(quick.or(as_good.clone()), as_good);
        });
    }

    #[test]
    fn of_equal_periods_few_hops_and_moves_decide() {
        // Nothing can be improved, and messages would cross PEs if objects moved.
        let mut database = recorded(4);
        (database.objects[2].pe, database.objects[3].pe) = (1, 1);
        database.pes.iter_mut().for_each(|pe| pe.wall_seconds = 2.0);
        of(&database, |quick| {
            let answer =
                quick.expect("periods are known").answer(default_seconds()).expect("it cannot be improved");
            assert_eq!(answer.pe_of, [0, 0, 1, 1]);
            assert!(answer.sentence.is_some_and(|sentence| {
                sentence.starts_with("With the present placement, a period takes 2.00 s;")
            }));
        });
    }

    #[test]
    fn it_is_left_out_only_where_poise_lb_is_alone_and_not_told_what_to_do() {
        let machine = topology::parse("flat:2").expect("a machine");
        let says = |spec: &str| {
            let strategy = crate::registry::parse(spec, &[]).expect(spec).strategy;
            let answer = strategy.assign(&recorded(4), &*machine, 0).expect(spec);
            assert_eq!(answer.pe_of.iter().filter(|&&pe| pe == 0).count(), 2, "{spec}");
            answer.sentence.is_some_and(|sentence| sentence.starts_with("With a placement by loads"))
        };
        assert!(says("PoiseLB") && says("PoiseLB:quality=fast,imbalance=0.01"));
        let others =
            ["quality=best", "gamma=1", "restarts=2", "links=on"].map(|told| format!("PoiseLB:{told}"));
        assert!(!others.iter().any(|spec| says(spec)) && !says("DummyLB+PoiseLB"));
    }

    #[test]
    fn objects_leave_pes_that_are_not_available() {
        let mut database = recorded(4);
        database.pes[0].available = false;
        of(&database, |quick| {
            assert_eq!(quick.expect("periods are known").pe_of, [1; 4]);
        });
    }
}

//! Placements without a search, by loads and messages, which take milliseconds; only where the periods of a run can be predicted.
//!
//! A search is left out if it cannot pay for its thinking: no placement is faster than a lower bound, and of the difference a search is
//! expected to find a half. A strategy has no clock, so that the time to think is an estimate by the number of objects. Where a search was
//! made, its answer must not make the coming period longer than the quick placement does.

use equipoise_model::assignment::Note;
use equipoise_model::database::Object;
use equipoise_model::table::seconds;
use equipoise_model::{Assignment, Database, Topology};

use super::settings::Quality;
use crate::Strategy;
use crate::balance::greedy_comm::GreedyComm;
use crate::balance::greedy_refine::GreedyRefine;
use crate::balance::refine_comm::RefineComm;
use crate::balance::traffic::MessageCostParams;
use crate::cost::{CLOSE, FOUND, Period, is_lighter, max_load, migration_seconds};

/// About how long a search thinks for an object, in seconds of CPU time: measured on steps of 4,000 to 7,000 objects on 512 PEs.
fn seconds_per_object(quality: Quality) -> f64 {
    match quality {
        Quality::Fast => 3e-5,
        Quality::Default => 6e-5,
        // Who asks for the best placement wants it whatever it costs.
        Quality::Best => 0.0,
    }
}

/// The best placement without a search.
pub(super) struct Quick<'a> {
    database: &'a Database,
    topology: &'a dyn Topology,
    period: Period<'a>,
    pe_of: Vec<u32>,
    /// The predicted time until the end of the next period, with the migrations before it.
    coming_seconds: f64,
}

impl<'a> Quick<'a> {
    /// None where periods cannot be predicted, or if there is no such placement. `imbalance` is the allowed max/avg - 1.
    pub(super) fn of(
        database: &'a Database,
        topology: &'a dyn Topology,
        seed: u64,
        imbalance: f64,
    ) -> Option<Self> {
        let period = Period::of(database, topology)?;
        let (present, cost) = (database.placement(), MessageCostParams::default());
        let heaviest = max_load(database, &present);
        let strategies: [&dyn Strategy; 3] =
            [&GreedyRefine { imbalance }, &RefineComm { imbalance, cost }, &GreedyComm { cost }];
        let answers = strategies.iter().filter_map(|strategy| strategy.assign(database, topology, seed).ok());
        let lighter = answers
            .map(|answer| answer.pe_of)
            .filter(|pe_of| !is_lighter(heaviest, max_load(database, pe_of)));
        let must_move = |object: &Object| object.migratable && !database.pes[object.pe as usize].available;
        let may_stay = !database.objects.iter().any(must_move);
        let all = lighter.chain(may_stay.then_some(present));
        let judged =
            all.filter_map(|pe_of| Some((coming_seconds(&period, database, topology, &pe_of)?, pe_of)));
        let (coming_seconds, pe_of) = judged.min_by(|a, b| a.0.total_cmp(&b.0))?;
        Some(Quick { database, topology, period, pe_of, coming_seconds })
    }

    /// The answer, if no search pays.
    pub(super) fn answer(&self, quality: Quality) -> Option<Assignment> {
        let thinking_seconds = seconds_per_object(quality) * self.database.objects.len() as f64;
        let possible_seconds = (self.coming_seconds - self.period.least_seconds()).max(0.0);
        (FOUND * possible_seconds < thinking_seconds).then(|| {
            self.assignment(&format!(
                "a search could save at most {}, and would think for about {}",
                seconds(possible_seconds),
                seconds(thinking_seconds)
            ))
        })
    }

    /// The better of this placement and the answer of a search, which counts hops and moves and so has the preference if both are close.
    pub(super) fn or(&self, searched: Assignment) -> Assignment {
        let coming = coming_seconds(&self.period, self.database, self.topology, &searched.pe_of);
        match coming {
            Some(coming) if self.coming_seconds < (1.0 - CLOSE) * coming => {
                self.assignment(&format!("what a search found takes {}", seconds(coming)))
            }
            _ => searched,
        }
    }

    fn assignment(&self, reason: &str) -> Assignment {
        let coming = self.coming_seconds;
        let sentence = format!(
            "Placed by loads and messages, without a search: {} for the migrations and the next period; {reason}.",
            seconds(coming)
        );
        let notes = vec![Note::new("coming_seconds", coming)];
        Assignment { notes, sentence: Some(sentence), ..Assignment::new(self.pe_of.clone()) }
    }
}

/// The predicted time of the migrations and of the next period.
fn coming_seconds(
    period: &Period,
    database: &Database,
    topology: &dyn Topology,
    pe_of: &[u32],
) -> Option<f64> {
    Some(period.seconds(pe_of) + migration_seconds(database, topology, pe_of)?)
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
                quick.expect("periods are known").answer(Quality::Default).expect("2 s are the bound");
            assert_eq!(answer.pe_of.iter().filter(|&&pe| pe == 0).count(), 2);
            let expected = "Placed by loads and messages, without a search: 2.00 s for the migrations and the next period; \
                            a search could save at most 0 s, and would think for about 240 us.";
            assert_eq!(answer.sentence.as_deref(), Some(expected));
        });
    }

    #[test]
    fn what_thinks_for_less_than_it_can_gain_is_done() {
        // Three objects of 1 s take 2 s, and 1.5 s are the bound.
        of(&recorded(3), |quick| {
            let quick = quick.expect("periods are known");
            assert!(quick.answer(Quality::Default).is_none() && quick.answer(Quality::Fast).is_none());
        });
        of(&recorded(4), |quick| assert!(quick.expect("periods are known").answer(Quality::Best).is_none()));
    }

    #[test]
    fn a_search_that_found_a_longer_period_is_no_answer() {
        of(&recorded(4), |quick| {
            let quick = quick.expect("periods are known");
            let sentence = quick.or(on(1, 4)).sentence.expect("a sentence");
            assert!(sentence.ends_with("the next period; what a search found takes 4.00 s."), "{sentence}");
            let as_good = Assignment::new(vec![1, 0, 1, 0]);
            assert_eq!(quick.or(as_good.clone()), as_good);
        });
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

//! What strategies needed and delivered at past steps, from which later steps predict better.
//!
//! A strategy that tries others, such as `AutoLB`, has no clock: the runtime corrects how long each of them was expected to
//! think by how long the whole step thought. What a strategy delivered is known at the next step: with the loads and messages that
//! were measured since, its assignment is compared with the placement before it, whether or not it was applied. The time that it
//! saved, divided by the predicted one, is 1 where loads persist, and 0 where the past says nothing of the future. Both are in the
//! costs of the database that the strategy sees, so that a replay decides as the run did.

use equipoise_model::costs::Costs;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_strategies::cost::Metrics;
use std::collections::BTreeMap;

/// The least and the largest part of a predicted gain that counts as delivered. Above 0, so that losses lead to a step again some day.
const PARTS: std::ops::RangeInclusive<f64> = 1.0 / 256.0..=2.0;

/// How much of the trust that a strategy has lost returns at a step that rejects it, and of a strategy that was not tried.
const RECOVERY: f64 = 0.1;

/// The least part of predicted gains that past steps must have delivered for assignments to be applied.
const TRUSTED: f64 = 0.25;

/// The largest of thousands of random sums is hardly more standard deviations above their mean.
const CHANCE: f64 = 4.0;

/// How much weight past gains keep at a step.
const KEPT: f64 = 0.75;

/// Predicted and delivered gains in seconds, recent ones with more weight.
#[derive(Clone, Copy, Debug, Default)]
struct Gains {
    predicted: f64,
    delivered: f64,
}

impl Gains {
    fn add(&mut self, predicted: f64, delivered: f64) {
        // A small prediction that was far off must not hide many that were right.
        let delivered = delivered.clamp(-predicted, PARTS.end() * predicted);
        self.predicted = KEPT * self.predicted + predicted;
        self.delivered = KEPT * self.delivered + delivered;
    }

    fn part(self) -> f64 {
        let part = if self.predicted > 0.0 { self.delivered / self.predicted } else { 1.0 };
        part.clamp(*PARTS.start(), *PARTS.end())
    }
}

/// An assignment that was proposed at the last step.
#[derive(Debug)]
struct Proposal {
    spec: String,
    /// The predicted gain from one sync point to the next.
    gain_seconds: f64,
    /// The objects that it moves, in ascending order, each with its PE before and after.
    moves: Vec<(u64, [u32; 2])>,
}

/// What is known of the strategies of a run.
#[derive(Debug, Default)]
pub(crate) struct Experience {
    /// The last thinking time of each strategy, in seconds.
    thinking: BTreeMap<String, f64>,
    /// The gains of each strategy, and of all.
    gains: BTreeMap<String, Gains>,
    all: Gains,
    /// What part of the possible gains strategies found that others tried.
    found: BTreeMap<String, f64>,
    /// The steps in a row at which a strategy rejected all that it tried.
    rejections: i32,
    proposal: Option<Proposal>,
    /// The number of sync points in the period before the last step.
    last_points: u32,
}

/// Whether the same objects in random places would often be as far from balance: the largest load of a PE is within
/// [`CHANCE`] standard deviations of the sum of as many random objects. So it is where loads are random in every period.
fn may_be_chance(database: &Database) -> bool {
    let loads = database.pe_loads(&database.placement());
    let (objects, pes) = (database.objects.len() as f64, loads.len() as f64);
    let mean = database.objects.iter().map(|object| object.load_seconds).sum::<f64>() / objects;
    let squares: f64 = database.objects.iter().map(|object| (object.load_seconds - mean).powi(2)).sum();
    let deviation = (squares / objects * (objects / pes)).sqrt();
    let excess = loads.iter().copied().fold(0.0, f64::max) - loads.iter().sum::<f64>() / pes;
    excess <= CHANCE * deviation
}

impl Experience {
    /// A period of `sync_points` has ended with this database: judges the assignment of the last step by it.
    pub(crate) fn judge(&mut self, database: &Database, topology: &dyn Topology, sync_points: u32) {
        self.last_points = sync_points;
        let Some(Proposal { spec, gain_seconds, moves }) = self.proposal.take() else { return };
        let present = database.placement();
        let mut placements = [present.clone(), present];
        let mut remaining = 0u32;
        for (at, object) in database.objects.iter().enumerate() {
            // Objects that the assignment did not know stay where they are.
            if let Ok(found) = moves.binary_search_by_key(&object.id, |moved| moved.0) {
                let ends = moves[found].1;
                remaining += 1;
                placements.iter_mut().zip(ends).for_each(|(placement, pe)| placement[at] = pe);
            }
        }
        let [before, after] = placements.map(|placement| Metrics::of(database, topology, &placement));
        let delivered = before.gain_seconds(&after);
        // What the objects that have ended since would have gained is not known.
        let predicted =
            gain_seconds * f64::from(self.last_points) * f64::from(remaining) / moves.len() as f64;
        self.gains.entry(spec).or_default().add(predicted, delivered);
        self.all.add(predicted, delivered);
        self.rejections = 0;
    }

    /// Adds what is known to the costs of a database.
    pub(crate) fn tell(&self, costs: &mut Costs) {
        costs.strategies.extend(self.thinking.clone());
        costs.found.clone_from(&self.found);
        costs.delivered = self.gains.iter().map(|(spec, gains)| (spec.clone(), gains.part())).collect();
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
            let found = self.found.entry(attempt.spec.clone()).or_insert(attempt.found);
            *found = ((*found + attempt.found) / 2.0).max(*PARTS.start());
        }
        let is_tried = |spec: &String| answer.attempts.iter().any(|attempt| attempt.spec == *spec);
        for (_, found) in self.found.iter_mut().filter(|(spec, _)| !is_tried(spec)) {
            *found = (*found * (1.0 + RECOVERY)).min(1.0);
        }
        if !answer.attempts.is_empty() && answer.attempts.iter().all(|attempt| !attempt.is_chosen) {
            self.rejections += 1;
            for gains in self.gains.values_mut() {
                gains.delivered += RECOVERY * (gains.predicted - gains.delivered).max(0.0);
            }
        }
    }

    /// A strategy has proposed an assignment that is predicted to make a period as long as the last one shorter by this time.
    /// Returns what part of it to expect.
    pub(crate) fn proposed(
        &mut self,
        spec: &str,
        gain_seconds: f64,
        database: &Database,
        answer: &Assignment,
    ) -> f64 {
        let ends = database.objects.iter().zip(&answer.pe_of);
        let moved = ends.filter(|(object, to)| object.pe != **to);
        let mut moves: Vec<_> = moved.map(|(object, &to)| (object.id, [object.pe, to])).collect();
        moves.sort_unstable();
        let part = self.gains.get(spec).map_or_else(|| self.all.part(), |gains| gains.part());
        let gain_seconds = gain_seconds / f64::from(self.last_points.max(1));
        // What is to gain nothing says nothing about other gains.
        self.proposal = (gain_seconds > 0.0).then(|| Proposal { spec: spec.into(), gain_seconds, moves });
        part
    }

    /// Whether an assignment may be applied: past ones delivered enough. Before the first one has, if the imbalance is no chance.
    pub(crate) fn trusts(&self, database: &Database) -> bool {
        match self.all.predicted > 0.0 {
            true => self.all.part() >= TRUSTED,
            false => !may_be_chance(database),
        }
    }

    /// What part of a loss to expect that a step avoids.
    pub(crate) fn credit(&self) -> f64 {
        (self.all.part() / 2f64.powi(self.rejections.min(30))).max(*PARTS.start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise_model::assignment::Attempt;
    use equipoise_model::database::{Object, ObjectIndex, PeRecord};
    use equipoise_model::topology;

    fn answer(attempts: &[(&str, f64, bool)]) -> Assignment {
        let attempt = |&(spec, thinking_seconds, is_chosen): &(&str, f64, bool)| Attempt {
            spec: spec.into(),
            thinking_seconds,
            found: 0.5,
            is_chosen,
        };
        Assignment { attempts: attempts.iter().map(attempt).collect(), ..Assignment::default() }
    }

    fn costs(experience: &Experience) -> Costs {
        let mut costs = Costs::default();
        experience.tell(&mut costs);
        costs
    }

    /// Objects with these loads in seconds, on the first of two PEs.
    fn loads(loads: &[f64]) -> Database {
        let object = |(id, &load_seconds): (u64, &f64)| Object {
            id,
            array: 0,
            index: ObjectIndex::new(&[id as i32]),
            load_seconds,
            bytes: None,
            pe: 0,
            migratable: true,
        };
        Database {
            pes: vec![PeRecord::default(); 2],
            objects: (0..).zip(loads).map(object).collect(),
            ..Database::default()
        }
    }

    /// Proposes to move the last two objects of four to the other PE, which is predicted to save 2 s in each sync point.
    fn propose(experience: &mut Experience, spec: &str) -> f64 {
        let moved = Assignment::new(vec![0, 0, 1, 1]);
        experience.proposed(spec, 2.0 * f64::from(experience.last_points.max(1)), &loads(&[1.0; 4]), &moved)
    }

    fn judge(experience: &mut Experience, database: &Database, sync_points: u32) {
        let machine = topology::parse("flat:2").expect("a machine");
        experience.judge(database, &*machine, sync_points);
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
        // What a cost model says of other strategies remains.
        let mut model = Costs { strategies: [("D".to_string(), 5.0)].into(), ..Costs::default() };
        experience.tell(&mut model);
        assert_eq!((model.strategies["C"], model.strategies["D"]), (1.0, 5.0));
    }

    #[test]
    fn what_was_delivered_is_judged_by_the_loads_of_the_next_period() {
        let mut experience = Experience::default();
        judge(&mut experience, &loads(&[1.0; 4]), 1);
        assert_eq!(propose(&mut experience, "A"), 1.0, "nothing is known");
        // Two sync points with the same loads: 4 s are saved, as predicted.
        judge(&mut experience, &loads(&[2.0; 4]), 2);
        assert_eq!((costs(&experience).delivered["A"], experience.credit()), (1.0, 1.0));
        // The first two objects have all the load: moving the others saves nothing.
        propose(&mut experience, "A");
        judge(&mut experience, &loads(&[2.0, 2.0, 0.0, 0.0]), 1);
        let part = 0.75 * 4.0 / (0.75 * 4.0 + 2.0);
        assert!((costs(&experience).delivered["A"] - part).abs() < 1e-12, "{:?}", experience.gains);
        // Another strategy is expected to deliver what all did.
        assert!((propose(&mut experience, "B") - part).abs() < 1e-12);
        // Without a proposal nothing is judged.
        let mut empty = Experience::default();
        judge(&mut empty, &loads(&[1.0; 4]), 1);
        assert!(costs(&empty).delivered.is_empty());
    }

    #[test]
    fn objects_that_have_ended_count_neither_for_nor_against_an_assignment() {
        let mut experience = Experience::default();
        judge(&mut experience, &loads(&[1.0; 4]), 1);
        propose(&mut experience, "A");
        // Of the two objects that move, the last one has ended: 1 s of 2 s is known, and is saved.
        judge(&mut experience, &loads(&[1.0; 3]), 1);
        assert_eq!(costs(&experience).delivered["A"], 1.0);
    }

    #[test]
    fn trust_that_is_lost_returns_slowly() {
        let mut experience = Experience::default();
        let random = loads(&[1.0, 2.0, 1.5, 0.5]);
        assert!(!experience.trusts(&Database { pes: vec![PeRecord::default(); 1], ..random }));
        judge(&mut experience, &loads(&[1.0; 4]), 1);
        assert!(experience.trusts(&loads(&[1.0; 4])), "equal objects on one of two PEs are no chance");
        propose(&mut experience, "A");
        judge(&mut experience, &loads(&[1.0, 1.0, 0.0, 0.0]), 1);
        assert!(!experience.trusts(&loads(&[1.0; 4])));
        let least = *PARTS.start();
        assert_eq!((costs(&experience).delivered["A"], experience.credit()), (least, least));
        let rejected = answer(&[("A", 1.0, false)]);
        (0..3).for_each(|_| experience.thought("auto", 1.0, &rejected));
        let part = costs(&experience).delivered["A"];
        assert!(part > 0.25 && part < 0.3, "{part}");
        // The losses of the run count as little as before.
        assert_eq!(experience.credit(), least);
    }

    #[test]
    fn strategies_that_are_not_tried_are_tried_again_some_day() {
        let mut experience = Experience::default();
        let little = |spec: &str| {
            let mut answer = answer(&[(spec, 1.0, true)]);
            answer.attempts[0].found = 0.0;
            answer
        };
        (0..3).for_each(|_| experience.thought("auto", 1.0, &little("A")));
        assert_eq!(costs(&experience).found["A"], *PARTS.start());
        (0..60).for_each(|_| experience.thought("auto", 1.0, &answer(&[("B", 1.0, true)])));
        assert_eq!((costs(&experience).found["A"], costs(&experience).found["B"]), (1.0, 0.5));
    }
}

//! `GreedyRefineLB`: greedy, but an object stays on its PE as long as the PE is light enough.
//!
//! Charm++'s strategy of that name. One pass of `GreedyLB` determines the maximum that can be reached. Then the
//! objects are placed again, heaviest first: on their present PE if that stays within the limit, otherwise on the
//! lightest PE. Charm++'s tolerance multiplies the maximum that greedy reached. Here, as in the other strategies, the
//! tolerance is relative to the average, and the limit is never below greedy's maximum, so that one object larger
//! than the average does not send all others away.

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::greedy::fill;
use super::load::Work;
use crate::cost::is_lighter;
use crate::descriptor::Recipe;
use crate::room::Room;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `GreedyRefineLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "GreedyRefineLB",
    form: "",
    help: "As balanced as GreedyLB, but an object stays on its PE if the PE remains within the limit: \
           few migrations. Recommended first choice.",
    params: &[Param::imbalance("0.03")],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| Ok(Box::new(GreedyRefine { imbalance: params.take_imbalance()? })),
    },
};

/// The strategy that keeps objects on their PEs where the balance allows it.
#[derive(Clone, Copy, Debug)]
pub struct GreedyRefine {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for GreedyRefine {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(refine(database, &work, self.imbalance, None))
    }

    fn assign_within(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
        room: Room,
    ) -> Result<Option<Assignment>, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        Ok(Some(refine(database, &work, self.imbalance, Some(room))))
    }
}

/// Places the objects again, on their present PEs where these stay within the limit and have room. O(n log n), if all PEs have room.
fn refine(database: &Database, work: &Work, imbalance: f64, mut room: Option<Room>) -> Assignment {
    let mut answer = Assignment::unchanged(database);
    let greedy_seconds = fill(work, room.clone(), |_, _| ());
    let limit_seconds = greedy_seconds.max((1.0 + imbalance) * work.average_seconds());
    let mut pes = work.pes();
    let mut seconds_before = work.fixed_seconds.clone();
    let homes = || work.movable.iter().map(|&object| (object, work.home(object)));
    let all_may_stay = match room.clone() {
        Some(mut room) => room.put_all(homes()),
        None => homes().all(|(_, home)| work.is_available(home)),
    };
    for &object in &work.movable {
        let home = work.home(object);
        let seconds_at_home = work.seconds(object, home);
        seconds_before[home as usize] += seconds_at_home;
        let may_stay = work.is_available(home) && room.as_ref().is_none_or(|room| room.fits(object, home));
        let stays = may_stay && pes.seconds[home as usize] + seconds_at_home <= limit_seconds;
        let pe = match stays {
            true => home,
            false => pes.soonest_within(room.as_ref(), object, work).unwrap_or(home),
        };
        pes.add(pe, work.seconds(object, pe));
        room.iter_mut().for_each(|room| room.put(object, pe));
        answer.pe_of[object as usize] = pe;
    }
    // The new maximum may not be below the old one; then the placement is unchanged.
    if all_may_stay && !is_lighter(work.max_seconds(&pes.seconds), work.max_seconds(&seconds_before)) {
        return Assignment::unchanged(database);
    }
    answer
}

#[cfg(test)]
mod tests {
    use crate::testing::{assign, database};

    #[track_caller]
    fn check(spec: &str, pes: usize, objects: &[(f64, u32)], expected: &[u32]) {
        let answer = assign(spec, &database(pes, objects)).map(|answer| answer.pe_of);
        assert_eq!(answer, Ok(expected.to_vec()), "{spec} {objects:?}");
    }

    #[test]
    fn a_balanced_placement_is_unchanged() {
        check("GreedyRefineLB", 2, &[(2.0, 1), (1.0, 0), (1.0, 0), (1.0, 1), (1.0, 0)], &[1, 0, 0, 1, 0]);
    }

    #[test]
    fn as_few_objects_leave_as_the_limit_allows() {
        // PE 0 has 6 of 8 seconds: two objects leave it, and nothing else moves.
        let objects = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 1), (1.0, 1)];
        check("GreedyRefineLB", 2, &objects, &[0, 0, 0, 0, 1, 1, 1, 1]);
        check("GreedyRefineLB:imbalance=0.5", 2, &objects, &[0, 0, 0, 0, 0, 0, 1, 1]);
        check("GreedyRefineLB:imbalance=0.25", 2, &objects, &[0, 0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn one_object_larger_than_the_average_does_not_send_the_others_away() {
        let objects = [(9.0, 0), (2.0, 1), (2.0, 1), (2.0, 1), (1.0, 2)];
        check("GreedyRefineLB", 3, &objects, &[0, 1, 1, 1, 2]);
    }

    #[test]
    fn a_placement_that_greedy_cannot_match_is_kept() {
        // Both PEs have 6 seconds, which greedy packs as 7 and 5.
        let objects = [(3.0, 0), (3.0, 0), (2.0, 1), (2.0, 1), (2.0, 1)];
        check("GreedyRefineLB:imbalance=0", 2, &objects, &[0, 0, 1, 1, 1]);
    }

    #[test]
    fn objects_leave_a_pe_that_is_not_available() {
        let mut database = database(3, &[(1.0, 0), (1.0, 0), (1.0, 1), (1.0, 2)]);
        database.pes[0].available = false;
        assert_eq!(assign("GreedyRefineLB", &database).map(|a| a.pe_of), Ok(vec![1, 2, 1, 2]));
    }
}

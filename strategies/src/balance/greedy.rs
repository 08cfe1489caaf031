//! `GreedyLB`: repeatedly places the heaviest remaining object on the lightest PE.
//!
//! Charm++'s strategy of that name; as a scheduling rule it is Graham's LPT (R. L. Graham, "Bounds on
//! multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969: at most 4/3 - 1/(3m) of the
//! optimal maximum on m equal PEs without background). It ignores the present placement, so nearly all objects
//! move and locality is lost.

use equipoise_model::{Assignment, Database, Topology};

use super::load::Work;
use crate::descriptor::Recipe;
use crate::room::Room;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `GreedyLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "GreedyLB",
    form: "",
    help: "Places the heaviest object on the lightest PE, from scratch: the best balance, but nearly all objects \
           move. For a first step, or when loads change much.",
    params: &[],
    item: Recipe { needs_communication: false, make: |_| Ok(Box::new(Greedy)) },
};

/// The strategy that places the heaviest object on the lightest PE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greedy;

impl Strategy for Greedy {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let mut answer = Assignment::unchanged(database);
        fill(&work, None, |object, pe| answer.pe_of[object as usize] = pe);
        Ok(answer)
    }
}

/// Places every movable object, heaviest first, on the PE that would finish it first (the lightest PE, where speeds
/// are equal) and has room for it. Returns the seconds of the heaviest PE. O(n log n), if all PEs have room.
pub(super) fn fill(work: &Work, mut room: Option<Room>, mut place: impl FnMut(u32, u32)) -> f64 {
    let mut pes = work.pes();
    for &object in &work.movable {
        let Some(pe) = pes.soonest_within(room.as_ref(), object, work) else { break };
        pes.add(pe, work.seconds(object, pe));
        room.iter_mut().for_each(|room| room.put(object, pe));
        place(object, pe);
    }
    work.max_seconds(&pes.seconds)
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Database;

    use crate::testing::{assign, check_assignment, database};

    #[track_caller]
    fn check(pes: usize, loads: &[f64], change: impl FnOnce(&mut Database), expected: &[u32]) {
        let objects: Vec<(f64, u32)> = loads.iter().map(|&load| (load, 0)).collect();
        check_assignment("GreedyLB", pes, &objects, &[], change, expected);
    }

    #[test]
    fn the_heaviest_object_goes_to_the_lightest_pe() {
        check(2, &[1.0, 4.0, 3.0, 2.0], |_| (), &[0, 0, 1, 1]);
        check(3, &[2.0, 2.0, 2.0, 2.0], |_| (), &[0, 1, 2, 0]);
        check(4, &[], |_| (), &[]);
    }

    #[test]
    fn fixed_objects_and_background_count_and_stay() {
        check(2, &[5.0, 1.0, 1.0], |d| d.objects[0].migratable = false, &[0, 1, 1]);
        check(2, &[1.0, 1.0], |d| d.pes[0].background_seconds = 3.0, &[1, 1]);
    }

    #[test]
    fn a_fast_pe_gets_more_and_an_unavailable_pe_gets_nothing() {
        check(2, &[1.0; 4], |d| d.pes[1].speed = 3.0, &[1, 1, 0, 1]);
        // PE 0 is idle, but would finish later.
        check(2, &[1.0], |d| d.pes[0].speed = 0.01, &[1]);
        check(2, &[3.0, 1.0], |d| d.pes[0].speed = 0.1, &[1, 1]);
        check(3, &[1.0; 4], |d| d.pes[0].available = false, &[1, 2, 1, 2]);
    }

    #[test]
    fn objects_without_load_are_spread_evenly() {
        check(2, &[0.0; 4], |_| (), &[0, 1, 0, 1]);
        check(2, &[1.0, -0.0, 2.0], |d| d.pes[1].background_seconds = -0.0, &[1, 1, 0]);
    }

    /// The least maximum over all placements.
    fn optimum(pes: usize, loads: &[f64]) -> f64 {
        let mut best = f64::INFINITY;
        for code in 0..pes.pow(loads.len() as u32) {
            let (mut seconds, mut rest) = (vec![0.0; pes], code);
            for load in loads {
                seconds[rest % pes] += load;
                rest /= pes;
            }
            best = best.min(seconds.into_iter().fold(0.0, f64::max));
        }
        best
    }

    proptest::proptest! {
        #[test]
        fn the_maximum_is_within_grahams_bound_of_the_optimum(
            pes in 1..4usize,
            loads in proptest::collection::vec(0u32..20, 0..8),
        ) {
            let loads: Vec<f64> = loads.into_iter().map(f64::from).collect();
            let objects: Vec<(f64, u32)> = loads.iter().map(|&load| (load, 0)).collect();
            let database = database(pes, &objects);
            let answer = assign("GreedyLB", &database).expect("GreedyLB serves every database");
            let max = database.pe_loads(&answer.pe_of).into_iter().fold(0.0, f64::max);
            let bound = 4.0 / 3.0 - 1.0 / (3.0 * pes as f64);
            assert!(max <= bound * optimum(pes, &loads) + 1e-9, "{max}");
        }
    }
}

//! The part of an assignment that pays although all of it does not.

use equipoise_model::{Database, Topology};

use super::between;
use crate::cost::{Metrics, is_lighter};

/// Of some placements [`between`] the present one and `pe_of`, the one with the largest predicted gain in a period after the
/// migrations, and this gain in seconds. Of the predicted time that a placement saves, the part `delivered` counts. None if no
/// placement gains, or where times are unknown. A placement whose heaviest PE is heavier than the present one, or that breaks a constraint of the database, is not taken; so exchanges are applied as wholes, or
/// objects move onto PEs with room.
pub fn paying_part(
    database: &Database,
    topology: &dyn Topology,
    pe_of: &[u32],
    delivered: f64,
) -> Option<(Vec<u32>, f64)> {
    let before = Metrics::of(database, topology, &database.placement());
    before.step_seconds?;
    let rules = database.constraints.rules(database, topology).ok()?;
    let parts = between(database, topology, pe_of, Vec::new()).ok()?.into_iter().filter_map(|part| {
        let after = Metrics::of(database, topology, &part);
        let gain = delivered * before.gain_seconds(&after) - after.migration_seconds?;
        let is_heavier = is_lighter(before.max_load_seconds, after.max_load_seconds);
        let is_allowed = database.constraints.is_empty() || rules.check(database, &part).is_ok();
        (gain > 0.0 && !is_heavier && is_allowed).then_some((part, gain))
    });
    parts.max_by(|a, b| a.1.total_cmp(&b.1))
}

#[cfg(test)]
mod tests {
    use equipoise_model::costs::{Costs, EndCosts};
    use equipoise_model::random::splitmix;
    use equipoise_model::topology;

    use super::*;
    use crate::testing;

    /// Eight objects on three PEs, and another placement for them. A migration takes 0.5 s at each end.
    fn case(seed: u64) -> (Database, Vec<u32>) {
        let number = |at: u64, below: u64| splitmix(seed * 100 + at) % below;
        let objects: Vec<(f64, u32)> =
            (0..8).map(|at| (number(at, 30) as f64 / 10.0, number(at + 10, 3) as u32)).collect();
        let mut database = testing::database(3, &objects);
        let end = EndCosts { send_seconds: 0.5, receive_seconds: 0.5, ..EndCosts::default() };
        database.costs = Some(Costs { migration: end, ..Costs::default() });
        database.communication_recorded = true;
        let heaviest = database.pe_loads(&database.placement()).into_iter().fold(0.0, f64::max);
        database.pes.iter_mut().for_each(|pe| pe.wall_seconds = heaviest);
        (database, (0..8).map(|at| number(at + 20, 3) as u32).collect())
    }

    /// The largest gain of any part of the moves after which no PE is heavier than the heaviest one was.
    fn best(database: &Database, machine: &dyn Topology, pe_of: &[u32]) -> f64 {
        let present = database.placement();
        let before = Metrics::of(database, machine, &present);
        let gains = (0u32..1 << pe_of.len()).filter_map(|chosen| {
            let part: Vec<u32> =
                (0..pe_of.len()).map(|at| [present[at], pe_of[at]][(chosen >> at & 1) as usize]).collect();
            let after = Metrics::of(database, machine, &part);
            let is_heavier = is_lighter(before.max_load_seconds, after.max_load_seconds);
            Some(before.gain_seconds(&after) - after.migration_seconds?).filter(|_| !is_heavier)
        });
        gains.fold(0.0, f64::max)
    }

    #[test]
    fn parts_gain_three_quarters_of_what_the_best_parts_gain_and_break_no_bound() {
        let machine = topology::parse("flat:3").expect("a machine");
        let (mut found, mut possible) = (0.0, 0.0);
        for seed in 0..200 {
            let (database, pe_of) = case(seed);
            let best = best(&database, &*machine, &pe_of);
            possible += best;
            let Some((part, gain)) = paying_part(&database, &*machine, &pe_of, 1.0) else { continue };
            assert!(gain > 0.0 && gain <= best + 1e-9, "{seed}: {gain} s, and the best part gains {best} s");
            let [before, after] =
                [&database.placement(), &part].map(|it| Metrics::of(&database, &*machine, it));
            assert!(!is_lighter(before.max_load_seconds, after.max_load_seconds), "{seed}");
            let is_of_both = |((part, to), object): ((&u32, &u32), &equipoise_model::database::Object)| {
                *part == *to || *part == object.pe
            };
            assert!(part.iter().zip(&pe_of).zip(&database.objects).all(is_of_both), "{seed}");
            found += gain;
        }
        println!("{found} s of {possible} s");
        assert!(found > 0.75 * possible && possible > 10.0, "{found} s of {possible} s");
    }

    #[test]
    fn nothing_pays_where_times_are_unknown_or_nothing_gains() {
        let machine = topology::parse("flat:3").expect("a machine");
        let (mut database, pe_of) = case(1);
        assert_eq!(paying_part(&database, &*machine, &database.placement(), 1.0), None);
        database.costs = None;
        assert_eq!(paying_part(&database, &*machine, &pe_of, 1.0), None);
    }
}

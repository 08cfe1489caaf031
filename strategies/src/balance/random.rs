//! `RandomLB`: every object on a PE drawn at random.
//!
//! Charm++ calls it RandCentLB. It is the baseline of the mapping papers (the expected distance of a
//! byte is then the mean distance of the machine) and a stress test of migration.

use crate::random::{below, generator};
use crate::registry::Named;
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `RandomLB` for the registry.
pub const NAMED: Named = Named {
    name: "RandomLB",
    aliases: &["RandCentLB"],
    help: "Every object on a PE drawn at random (by seed and step): the baseline of the mapping papers.",
    params: &[],
    needs_communication: false,
    make: |_| Ok(Box::new(Random)),
};

/// The strategy that draws a PE for every object.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random;

impl Strategy for Random {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        // The step chooses the stream, so that the steps of a run differ although its seed does not.
        let mut generator = generator(seed, database.step);
        let mut answer = Assignment::unchanged(database);
        for (pe, object) in answer.pe_of.iter_mut().zip(&database.objects) {
            // Drawn for every object, so that pinning one does not change where the others go.
            let drawn = available[below(&mut generator, available.len() as u64) as usize];
            if object.migratable {
                *pe = drawn;
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assign, database};

    #[test]
    fn steps_differ_and_each_is_the_same_again() {
        let mut database = database(8, &[(1.0, 0); 64]);
        let first = assign("RandomLB", &database);
        assert_eq!(assign("RandCentLB", &database), first);
        database.step = 1;
        assert_ne!(assign("RandomLB", &database), first);
    }

    #[test]
    fn all_available_pes_are_used() {
        let mut database = database(4, &[(1.0, 0); 200]);
        database.pes[1].available = false;
        let answer = assign("RandomLB", &database).expect("RandomLB serves every database");
        let on = |pe| answer.pe_of.iter().filter(|&&at| at == pe).count();
        assert!((40..95).contains(&on(0)) && (40..95).contains(&on(2)) && (40..95).contains(&on(3)));
    }
}

//! `RotateLB`: every object to the next PE.
//!
//! Charm++'s strategy of that name: everything moves at every step and the balance stays what it was,
//! which makes it the stress test of migration.

use crate::registry::Named;
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `RotateLB` for the registry.
pub const NAMED: Named = Named {
    name: "RotateLB",
    aliases: &[],
    help: "Every object to the next PE, the last to the first: everything moves, nothing is balanced. \
           For testing migration.",
    params: &[],
    needs_communication: false,
    make: |_| Ok(Box::new(Rotate)),
};

/// The strategy that moves every object one PE on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rotate;

impl Strategy for Rotate {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let next: Vec<u32> = (0..database.pes.len() as u32)
            .map(|pe| {
                let after = available.partition_point(|&candidate| candidate <= pe);
                available[after % available.len()]
            })
            .collect();
        let mut answer = Assignment::unchanged(database);
        for (pe, object) in answer.pe_of.iter_mut().zip(&database.objects) {
            if object.migratable {
                *pe = next[object.pe as usize];
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assign, database};

    #[test]
    fn every_object_goes_to_the_next_pe_that_takes_objects() {
        let mut database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (1.0, 3)]);
        database.objects[4].migratable = false;
        assert_eq!(assign("RotateLB", &database).map(|a| a.pe_of), Ok(vec![1, 2, 3, 0, 3]));
        database.pes[2].available = false;
        assert_eq!(assign("RotateLB", &database).map(|a| a.pe_of), Ok(vec![1, 3, 3, 0, 3]));
    }
}

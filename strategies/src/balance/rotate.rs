//! `RotateLB`: moves every object to the next PE.
//!
//! Charm++'s strategy of that name. All objects move at every step and the loads remain as unequal as before, which
//! makes it a stress test of migration.

use equipoise_model::{Assignment, Database, Topology};

use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RotateLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RotateLB",
    form: "",
    help: "Moves every object to the next PE, from the last PE to the first; does not balance. \
           For testing migration.",
    params: &[],
    item: Recipe { needs_communication: false, make: |_| Ok(Box::new(Rotate)) },
};

/// The strategy that moves every object to the next PE.
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
    fn every_object_moves_to_the_next_available_pe() {
        let mut database = database(4, &[(1.0, 0), (1.0, 1), (1.0, 2), (1.0, 3), (1.0, 3)]);
        database.objects[4].migratable = false;
        assert_eq!(assign("RotateLB", &database).map(|a| a.pe_of), Ok(vec![1, 2, 3, 0, 3]));
        database.pes[2].available = false;
        assert_eq!(assign("RotateLB", &database).map(|a| a.pe_of), Ok(vec![1, 3, 3, 0, 3]));
    }
}

//! `CommAwareRefineLB`: PEs above the limit give objects to the PEs that these objects communicate with.
//!
//! Charm++'s strategy of that name (H. Menon; removed there in 2019). Charm++ chooses the object that leaves at random.
//! This strategy chooses the object with the largest gain (`relief.rs`), so objects that communicate with other PEs
//! leave first, and the result is deterministic.

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::load::Work;
use super::relief::relieve;
use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `CommAwareRefineLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "CommAwareRefineLB",
    form: "",
    help: "Moves objects off PEs above the limit, each to the PE with room that it exchanges most bytes with: \
           fewer bytes between PEs than RefineLB, with more migrations.",
    params: &[Param::imbalance("0.02")],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| Ok(Box::new(CommAwareRefine { imbalance: params.take_imbalance()? })),
    },
};

/// The strategy that moves communicating objects off the PEs above the limit.
#[derive(Clone, Copy, Debug)]
pub struct CommAwareRefine {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for CommAwareRefine {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        let work = Work::new(database, check(database, topology)?);
        let (placement, _) = work.placement();
        Ok(Assignment::new(relieve(database, &work, placement, self.imbalance)))
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Database;

    use crate::testing::check_assignment;

    #[track_caller]
    fn check(
        pes: usize,
        objects: &[(f64, u32)],
        edges: &[(u32, u32, u64)],
        change: impl FnOnce(&mut Database),
        expected: &[u32],
    ) {
        check_assignment("CommAwareRefineLB:imbalance=0.1", pes, objects, edges, change, expected);
    }

    const SIX: [(f64, u32); 6] = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (1.0, 1), (1.0, 2)];

    #[test]
    fn an_object_moves_to_the_pe_it_communicates_with() {
        check(3, &SIX, &[(0, 5, 9), (1, 4, 8)], |_| (), &[2, 1, 0, 0, 1, 2]);
        // Volumes beyond 32 bits are not truncated.
        check(3, &SIX, &[(0, 5, (1 << 32) + 1), (0, 4, 1 << 32), (1, 4, 2)], |_| (), &[2, 1, 0, 0, 1, 2]);
    }

    #[test]
    fn an_object_that_communicates_with_its_own_pe_stays() {
        check(3, &SIX, &[(0, 1, 9), (0, 2, 9), (1, 5, 5), (3, 2, 1)], |_| (), &[0, 2, 0, 1, 1, 2]);
    }

    #[test]
    fn a_full_pe_receives_no_object() {
        let full = [(1.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (2.0, 1), (0.0, 2)];
        check(3, &full, &[(0, 4, 9), (1, 4, 9)], |_| (), &[2, 2, 0, 0, 1, 2]);
    }

    #[test]
    fn objects_that_may_not_move_attract_their_partners() {
        let pin = |d: &mut Database| d.objects[0].migratable = false;
        check(3, &SIX, &[(0, 5, 9), (3, 4, 8), (2, 4, 7)], pin, &[0, 2, 0, 1, 1, 2]);
        let lose = |d: &mut Database| d.pes[2].available = false;
        check(3, &SIX, &[(0, 5, 9)], lose, &[1, 0, 0, 0, 1, 1]);
    }
}

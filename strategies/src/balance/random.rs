//! `RandomLB`: places every object on a random PE.
//!
//! Charm++ calls it RandCentLB. It is the baseline of the mapping papers (the expected distance of a byte is the mean
//! distance of the machine) and a stress test of migration. Some mapping papers compare with a random one-to-one
//! mapping of groups to PEs: `groups=keep`.

use equipoise_model::params::{Param, Params};
use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{Assignment, Database, Topology};

use crate::descriptor::Recipe;
use crate::partition::groups::{By, Grouping, Groups};
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `RandomLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "RandomLB",
    form: "",
    help: "Places every object on a random PE (from seed and step): the baseline of the mapping papers.",
    params: &[Param {
        key: "groups",
        default: "none",
        help: "`none`: every object is placed separately; `keep`: the objects of a PE stay together",
    }],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| match params.take::<String>("groups")?.as_str() {
            "none" => Ok(Box::new(Random { keep_groups: false })),
            "keep" => Ok(Box::new(Random { keep_groups: true })),
            other => Err(params.bad("groups", other, "expected `none` or `keep`")),
        },
    },
};

/// The strategy that chooses a random PE for every object, or for all objects of a PE.
#[derive(Clone, Copy, Debug, Default)]
pub struct Random {
    /// Whether the objects of a PE stay together. Two such groups never share a PE.
    pub keep_groups: bool,
}

impl Strategy for Random {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        // The step selects the stream, so that the steps of a run differ although the seed is the same.
        let mut generator = generator(seed, database.step);
        if self.keep_groups {
            let mut pes = available.clone();
            shuffle(&mut generator, &mut pes);
            let grouping = Grouping { by: By::Keep, equal: false, imbalance: 0.0 };
            let groups = Groups::of(database, &available, grouping, seed)?;
            return Ok(Assignment::new(groups.placement(database, &pes)));
        }
        let mut answer = Assignment::unchanged(database);
        for (pe, object) in answer.pe_of.iter_mut().zip(&database.objects) {
            // Sampled for every object, so that a pinned object does not change the PEs of the others.
            let sampled = available[below(&mut generator, available.len() as u64) as usize];
            if object.migratable {
                *pe = sampled;
            }
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{assign, database};

    #[test]
    fn steps_differ_and_repetitions_agree() {
        let mut database = database(8, &[(1.0, 0); 64]);
        let first = assign("RandomLB", &database);
        assert_eq!(assign("RandCentLB", &database), first);
        database.step = 1;
        assert_ne!(assign("RandomLB", &database), first);
    }

    #[test]
    fn kept_groups_go_to_different_pes() {
        let mut database = database(9, &[(1.0, 0); 18]);
        for (object, pe) in database.objects.iter_mut().zip((0..9).cycle()) {
            object.pe = pe;
        }
        let first = assign("RandomLB:groups=keep", &database).expect("RandomLB serves every database").pe_of;
        assert_eq!(first[..9], first[9..]);
        let mut used = first[..9].to_vec();
        used.sort_unstable();
        assert_eq!(used, Vec::from_iter(0..9));
        database.step = 1;
        assert_ne!(assign("RandomLB:groups=keep", &database).map(|answer| answer.pe_of), Ok(first));
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

//! Placement of groups on PEs, one group per PE: the parts shared by the mapping strategies.
//!
//! - `topolb`: TopoLB's placement; `kept`: exchanges where kept groups make a PE too heavy; `volumes`: byte volumes as integers, which distinguish ties from small differences.

use equipoise_model::database::Object;
use equipoise_model::{Assignment, Database, Topology};

use crate::balance::load::Work;
use crate::balance::relief::relieve;
use crate::partition::groups::{By, Grouping, Groups};
use kept::keep_load;

mod kept;
pub(crate) mod topolb;
pub(crate) mod volumes;

/// Relative rounding error of sums of seconds in a different order.
pub(crate) const ROUNDING: f64 = 1e-9;

/// The PEs for `groups` groups, ascending: the `available` PEs without fixed load and, only if there are more groups than
/// these, the PEs with the least fixed load.
///
/// On a PE with fixed load, [`answer`] would give objects of the group away again where other PEs have room, and undo the
/// placement. Kept groups may stay on PEs with fixed load, so all available PEs are returned for [`By::Keep`].
pub(crate) fn hosts(database: &Database, available: &[u32], groups: usize, by: By) -> Vec<u32> {
    let mut fixed_seconds = vec![None; database.pes.len()];
    let stays = |object: &&Object| !object.migratable && object.load_seconds > 0.0;
    for object in database.objects.iter().filter(stays) {
        *fixed_seconds[object.pe as usize].get_or_insert(0.0) += object.load_seconds;
    }
    let fixed = |pe: u32| fixed_seconds[pe as usize];
    let mut hosts = available.to_vec();
    if by == By::Keep {
        return hosts;
    }
    // The sort is stable: among PEs with equal fixed load, the lowest PE comes first.
    hosts.sort_by(|&a, &b| {
        let by_load = fixed(a).unwrap_or(0.0).total_cmp(&fixed(b).unwrap_or(0.0));
        fixed(a).is_some().cmp(&fixed(b).is_some()).then(by_load)
    });
    let free = hosts.iter().filter(|&&pe| fixed(pe).is_none()).count();
    hosts.truncate(free.max(groups));
    hosts.sort_unstable();
    hosts
}

/// The assignment if group `i` is on PE `places[i]`.
///
/// Groups are balanced as if all PEs were equal. A PE gives objects to PEs that these communicate with, as in
/// `CommAwareRefineLB`, if speeds, background or fixed objects take the PE above the allowed imbalance and above the
/// imbalance of the groups. Groups of equal sizes are not changed. Kept groups are not changed either, but exchange their PEs where
/// these have fixed load or are slow, so that the heaviest PE is not heavier than before.
pub(crate) fn answer(
    database: &Database,
    topology: &dyn Topology,
    groups: &Groups,
    grouping: Grouping,
    available: Vec<u32>,
    places: &[u32],
) -> Assignment {
    if grouping.by == By::Keep {
        let places = keep_load(&Work::new(database, available), topology, groups, places.to_vec());
        let unchanged = || database.placement();
        let pe_of = places.map_or_else(unchanged, |places| groups.placement(database, &places));
        return Assignment::new(pe_of).with_note("groups", groups.count as f64);
    }
    let mut pe_of = groups.placement(database, places);
    if !grouping.equal {
        let loads_seconds = groups.loads_seconds(database);
        let average_seconds = loads_seconds.iter().sum::<f64>() / available.len() as f64;
        let heaviest_seconds = loads_seconds.into_iter().fold(0.0, f64::max);
        // Without load the quotient is NaN, and the imbalance of the groups is 0.
        let of_groups = (heaviest_seconds / average_seconds).max(1.0) * (1.0 + ROUNDING) - 1.0;
        let imbalance = grouping.imbalance.max(of_groups);
        pe_of = relieve(database, &Work::new(database, available), pe_of, imbalance);
    }
    Assignment::new(pe_of).with_note("groups", groups.count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn groups_go_to_pes_with_least_fixed_load() {
        let mut database = testing::database(4, &[(3.0, 0), (1.0, 1), (1.0, 3), (1.0, 1), (9.0, 2)]);
        database.objects[..4].iter_mut().for_each(|object| object.migratable = false);
        let check = |available: &[u32], groups, by, expected: &[u32]| {
            assert_eq!(hosts(&database, available, groups, by), expected, "{groups} of {available:?}");
        };
        check(&[0, 1, 2, 3], 0, By::Greedy, &[2]);
        check(&[0, 1, 2, 3], 1, By::Greedy, &[2]);
        check(&[0, 1, 2, 3], 2, By::Greedy, &[2, 3]);
        check(&[0, 1, 2, 3], 3, By::Greedy, &[1, 2, 3]);
        check(&[0, 1, 2, 3], 4, By::Greedy, &[0, 1, 2, 3]);
        check(&[0, 3], 1, By::Greedy, &[3]);
        check(&[0, 1, 2, 3], 1, By::Keep, &[0, 1, 2, 3]);
    }
}

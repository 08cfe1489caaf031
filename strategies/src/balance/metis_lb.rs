//! `MetisLB`: METIS partitions the task graph into as many parts as there are PEs.
//!
//! Charm++'s strategy of that name: balanced parts that exchange few bytes (METIS: see [`crate::partition::metis`]).
//! METIS does not choose the PE of a part. Charm++ uses the number of the part as its PE, and 99 of 100 objects
//! migrate. Here a part prefers the PE with whose fixed objects it exchanges most bytes, then the PE that has most of
//! its objects already. Charm++'s rule is used where it gives fewer hop-bytes: parts with close numbers often communicate, and PEs
//! with close numbers are often near each other. METIS treats all PEs as equal. Where speeds, background or objects that stay take a PE above
//! the limit, the PE gives objects away as in `relief.rs`.

use std::cmp::Reverse;

use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use super::load::Work;
use super::relief::relieve;
use crate::cost::hop_bytes;
use crate::descriptor::Recipe;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::metis::Method;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `MetisLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "MetisLB",
    form: "",
    help: "METIS partitions the task graph into balanced parts that exchange few bytes; many objects migrate at \
           the first step. For communication-bound programs where all PEs are equally far from each other.",
    params: &[Param::imbalance("0.05")],
    item: Recipe {
        needs_communication: true,
        make: |params: &mut Params| Ok(Box::new(MetisLb { imbalance: params.take_imbalance()? })),
    },
};

/// The strategy that partitions the task graph with METIS.
#[derive(Clone, Copy, Debug)]
pub struct MetisLb {
    /// How far above the average a PE may be: max/avg - 1.
    pub imbalance: f64,
}

impl Strategy for MetisLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let grouping = Grouping { by: By::Metis(Method::Recursive), equal: false, imbalance: self.imbalance };
        let groups = Groups::of(database, &available, grouping, seed)?;
        let by_number = available[..groups.count].to_vec();
        let by_preference = choose_pes(database, &groups, &available);
        let hop_bytes = |pes: &[u32]| hop_bytes(&groups.graph, &groups.anchors, pes, topology);
        let is_better = hop_bytes(&by_number) < hop_bytes(&by_preference);
        let placement = groups.placement(database, if is_better { &by_number } else { &by_preference });
        let work = Work::new(database, available);
        Ok(Assignment::new(relieve(database, &work, placement, self.imbalance)))
    }
}

/// A preference of a group for a PE: bytes exchanged with the PE and its fixed objects, objects of the group that are
/// on the PE already, then group and PE.
type Preference = (u64, usize, Reverse<(u32, u32)>);

/// Chooses a different PE for each group. Preferences are granted in descending order; the other groups get the
/// remaining PEs in ascending order.
fn choose_pes(database: &Database, groups: &Groups, available: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut present_pes: Vec<(u32, u32)> = groups
        .group_of
        .iter()
        .zip(&database.objects)
        .filter(|(_, object)| database.pes[object.pe as usize].available)
        .filter_map(|(group, object)| group.map(|group| (group, object.pe)))
        .collect();
    present_pes.sort_unstable();
    let mut preferences: Vec<Preference> = Vec::new();
    for same in present_pes.chunk_by(|a, b| a == b) {
        preferences.push((0, same.len(), Reverse(same[0])));
    }
    for (anchor, &pe) in groups.anchors.iter().enumerate() {
        if !database.pes[pe as usize].available {
            continue;
        }
        for (group, bytes) in groups.graph.neighbors(groups.count + anchor) {
            if group < groups.count {
                let pair = (group as u32, pe);
                let already_there = present_pes.partition_point(|&entry| entry <= pair)
                    - present_pes.partition_point(|&entry| entry < pair);
                preferences.push((bytes, already_there, Reverse(pair)));
            }
        }
    }
    preferences.sort_unstable_by(|a, b| b.cmp(a));
    let mut pe_of = vec![NONE; groups.count];
    let mut is_taken = vec![false; database.pes.len()];
    for (.., Reverse((group, pe))) in preferences {
        if pe_of[group as usize] == NONE && !is_taken[pe as usize] {
            pe_of[group as usize] = pe;
            is_taken[pe as usize] = true;
        }
    }
    // There are at most as many groups as available PEs.
    let mut free = available.iter().copied().filter(|&pe| !is_taken[pe as usize]);
    for pe in pe_of.iter_mut().filter(|pe| **pe == NONE) {
        *pe = free.next().unwrap_or(available[0]);
    }
    pe_of
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::Database;
    use equipoise_model::graph::{Graph, load};

    use crate::testing::{assign, check_assignment};

    #[track_caller]
    fn check(
        pes: usize,
        objects: &[(f64, u32)],
        edges: &[(u32, u32, u64)],
        change: impl FnOnce(&mut Database),
        expected: &[u32],
    ) {
        check_assignment("MetisLB", pes, objects, edges, change, expected);
    }

    #[test]
    fn communicating_objects_form_parts_on_the_pe_with_most_of_their_objects() {
        let objects = [(1.0, 1), (1.0, 1), (1.0, 0), (1.0, 0)];
        check(2, &objects, &[(0, 1, 9), (2, 3, 9), (1, 2, 1)], |_| (), &[1, 1, 0, 0]);
        check(2, &objects, &[(0, 2, 9), (1, 3, 9 << 40)], |_| (), &[0, 1, 0, 1]);
    }

    #[test]
    fn parts_go_to_fixed_partners_and_to_available_pes_only() {
        let objects = [(1.0, 0), (1.0, 0), (1.0, 1), (1.0, 1), (0.0, 1), (0.0, 0)];
        let edges = [(0, 1, 9), (2, 3, 9), (1, 4, 2), (2, 5, 2)];
        let pin = |d: &mut Database| {
            d.objects[4].migratable = false;
            d.objects[5].migratable = false;
        };
        check(2, &objects, &edges, pin, &[1, 1, 0, 0, 1, 0]);
        check(3, &objects[..4], &edges[..2], |d| d.pes[1].available = false, &[0, 0, 2, 2]);
    }

    #[test]
    fn unequal_pes_are_balanced() {
        let mut database = load("torus:16x16").expect("a torus").remap(8);
        database.pes[3].background_seconds = 20.0;
        database.pes[5].speed = 0.5;
        let answer = assign("MetisLB", &database).expect("MetisLB serves every database");
        let loads = database.pe_loads(&answer.pe_of);
        let max = loads.iter().copied().fold(0.0, f64::max);
        // 256 + 20 seconds of work for 7.5 PEs.
        assert!(max <= 1.05 * 276.0 / 7.5 + 2.0, "{loads:?}");
        let cut = |pe_of: &[u32]| -> u64 {
            let crosses = |&(a, b, _): &(u32, u32, u64)| pe_of[a as usize] != pe_of[b as usize];
            Graph::of(&database).pairs().filter(crosses).map(|(.., bytes)| bytes).sum()
        };
        let scattered = assign("GreedyLB", &database).expect("GreedyLB serves every database");
        assert!(2 * cut(&answer.pe_of) < cut(&scattered.pe_of), "{}", cut(&answer.pe_of));
    }
}

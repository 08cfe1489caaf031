//! `MetisLB`: METIS cuts the task graph into as many parts as there are PEs.
//!
//! Charm++'s strategy of that name: balanced parts that exchange few bytes (METIS: see
//! [`crate::partition::metis`]). Which PE a part goes to is not METIS's business. Charm++ takes the number
//! that METIS gives a part, and 99 of 100 objects migrate; here a part goes to the PE whose objects that
//! stay it talks to, and to the one that has most of its objects already, as far as nobody has a better
//! claim. METIS takes all PEs for alike: where they are not, because of their speeds, of background or of
//! objects that stay, those above the limit give objects away as in [`super::comm_aware_refine`].

use std::cmp::Reverse;

use super::comm_aware_refine;
use super::load::Work;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::metis::Method;
use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `MetisLB` for the registry.
pub const NAMED: Named = Named {
    name: "MetisLB",
    aliases: &[],
    help: "METIS cuts the task graph into balanced parts that exchange few bytes; much moves once. For \
           communication-bound programs where all PEs are equally far from each other.",
    params: &[Param::imbalance("0.05")],
    needs_communication: true,
    make: |params: &mut Params| Ok(Box::new(MetisLb { imbalance: params.take_imbalance()? })),
};

/// The strategy that lets METIS cut the task graph.
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
        let placement = groups.placement(database, &claim(database, &groups, &available));
        let work = Work::new(database, available);
        Ok(Assignment::new(comm_aware_refine::relieve(database, &work, placement, self.imbalance)))
    }
}

/// What a group has to do with a PE: bytes exchanged with what stays there, objects that are there already;
/// group and PE.
type Claim = (u64, usize, Reverse<(u32, u32)>);

/// The PE of each group, none of them twice: the largest claims are granted first, and groups without one
/// get the PEs that are left, in order.
fn claim(database: &Database, groups: &Groups, available: &[u32]) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let mut homes: Vec<(u32, u32)> = groups
        .group_of
        .iter()
        .zip(&database.objects)
        .filter(|(_, object)| database.pes[object.pe as usize].available)
        .filter_map(|(group, object)| group.map(|group| (group, object.pe)))
        .collect();
    homes.sort_unstable();
    let mut claims: Vec<Claim> = Vec::new();
    for same in homes.chunk_by(|a, b| a == b) {
        claims.push((0, same.len(), Reverse(same[0])));
    }
    for (anchor, &pe) in groups.anchors.iter().enumerate() {
        if !database.pes[pe as usize].available {
            continue;
        }
        for (group, bytes) in groups.graph.neighbors(groups.count + anchor) {
            if group < groups.count {
                let pair = (group as u32, pe);
                let at_home =
                    homes.partition_point(|&home| home <= pair) - homes.partition_point(|&home| home < pair);
                claims.push((bytes, at_home, Reverse(pair)));
            }
        }
    }
    claims.sort_unstable_by(|a, b| b.cmp(a));
    let mut pe_of = vec![NONE; groups.count];
    let mut is_taken = vec![false; database.pes.len()];
    for (.., Reverse((group, pe))) in claims {
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
    use crate::database::{Database, Edge, End};
    use crate::graph::{Graph, load};
    use crate::testing::{assign, database};

    #[track_caller]
    fn check(
        pes: usize,
        objects: &[(f64, u32)],
        edges: &[(u32, u32, u64)],
        change: impl FnOnce(&mut Database),
        expected: &[u32],
    ) {
        let mut database = database(pes, objects);
        let edge = |&(a, b, bytes)| Edge { from: End::Object(a), to: End::Object(b), messages: 1, bytes };
        database.edges = edges.iter().map(edge).collect();
        change(&mut database);
        let answer = assign("MetisLB", &database).map(|answer| answer.pe_of);
        assert_eq!(answer, Ok(expected.to_vec()), "{objects:?} {edges:?}");
    }

    #[test]
    fn what_talks_together_is_together_and_stays_where_most_of_it_is() {
        let objects = [(1.0, 1), (1.0, 1), (1.0, 0), (1.0, 0)];
        check(2, &objects, &[(0, 1, 9), (2, 3, 9), (1, 2, 1)], |_| (), &[1, 1, 0, 0]);
        check(2, &objects, &[(0, 2, 9), (1, 3, 9 << 40)], |_| (), &[0, 1, 0, 1]);
    }

    #[test]
    fn parts_go_to_what_stays_and_not_to_pes_that_take_nothing() {
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
    fn unequal_pes_are_balanced_all_the_same() {
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

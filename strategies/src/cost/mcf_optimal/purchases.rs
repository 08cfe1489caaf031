//! The value of more bandwidth: which links have a shadow price, and how much time more bandwidth on these links saves.
//!
//! The shadow price of a link is the time saved per unit of additional bandwidth, but only if the prices are unique. On
//! symmetric machines the prices are not unique: each link has a share of the price, but more bandwidth on one link
//! alone saves nothing, because the other links remain as busy. By weak duality, any prices give a bound: 1 % more
//! bandwidth on some links saves at most their shares of 1 %. A cable is all links between two vertices, in both
//! directions. The program is solved again with 1 % more bandwidth for each cable with a large share, and once for all
//! cables with a share together.

use std::collections::BTreeMap;

use equipoise_model::{Database, Topology};

use super::{Optimal, Router, Unsolved, Ways};
use crate::cost::commodities::Commodities;

/// The relative increase of the bandwidth.
const INCREASE: f64 = 0.01;

/// The smallest share of a cable that is listed.
const LEAST_SHARE: f64 = 5e-4;

/// Shares below this are rounding errors of the solver.
const NO_SHARE: f64 = 1e-6;

/// The maximum number of cables for which a program is solved again.
const MOST_SOLVED: usize = 10;

/// The maximum number of variables of a program that is solved again; each solution takes 0.01 to 0.1 s.
const MAX_SOLVED: usize = 1 << 12;

/// The time saved by more bandwidth.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Purchases {
    /// The listed cables, largest share first; among equals, lowest link first.
    pub cables: Vec<Purchase>,
    /// The number of unlisted cables that have a share.
    pub others: usize,
    /// The part of the time saved by 1 % more bandwidth on all cables, unlisted ones included; at most about 0.01. `None`
    /// if the program is too large to be solved repeatedly.
    pub saved_by_all: Option<f64>,
}

/// A cable: the links between two vertices.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchase {
    /// Its links, ascending.
    pub links: Vec<usize>,
    /// The sum of [their shares](Optimal::shares): 1 % more bandwidth on the cable saves at most this part of 1 %.
    pub share: f64,
    /// The part of the time saved by 1 % more bandwidth on this cable alone; `None` if the program was not solved again.
    pub saved: Option<f64>,
}

impl Purchases {
    /// The purchases for `best`, the best routing of a placement by [`Ways::Any`].
    ///
    /// # Errors
    /// As [`super::solve`].
    ///
    /// # Panics
    /// As [`super::solve`].
    pub fn of(
        database: &Database,
        machine: &dyn Topology,
        placement: &[u32],
        best: &Optimal,
    ) -> Result<Self, Unsolved> {
        let mut router = Router::new(machine, Ways::Any)?;
        let commodities = Commodities::of(database);
        let places = commodities.places(placement);
        let mut links_of = BTreeMap::<[usize; 2], Vec<usize>>::new();
        for (link, &[a, b]) in router.wiring.ends.iter().enumerate() {
            links_of.entry([a.min(b), a.max(b)]).or_default().push(link);
        }
        let share = |links: &[usize]| links.iter().map(|&link| best.shares[link]).sum::<f64>();
        let mut cables: Vec<Purchase> = links_of
            .into_values()
            .map(|links| Purchase { share: share(&links), links, saved: None })
            .filter(|cable| cable.share >= NO_SHARE)
            .collect();
        cables.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.links.cmp(&b.links)));
        let core = router.core(&commodities, &places)?;
        let mut saved_by_all = None;
        if core.flows() <= MAX_SOLVED && !cables.is_empty() {
            let all: Vec<usize> = cables.iter().flat_map(|cable| cable.links.iter().copied()).collect();
            saved_by_all = Some(router.saved(&commodities, &places, &all, best)?);
            for cable in cables.iter_mut().take(MOST_SOLVED).filter(|cable| cable.share >= LEAST_SHARE) {
                cable.saved = Some(router.saved(&commodities, &places, &cable.links, best)?);
            }
        }
        let worth_a_line = cables.partition_point(|cable| cable.share >= LEAST_SHARE);
        let others = cables.len() - worth_a_line;
        cables.truncate(worth_a_line);
        Ok(Purchases { cables, others, saved_by_all })
    }
}

impl Router<'_> {
    /// The part of the time of `best` saved by 1 % more bandwidth on these links.
    fn saved(
        &mut self,
        commodities: &Commodities,
        places: &[u32],
        links: &[usize],
        best: &Optimal,
    ) -> Result<f64, Unsolved> {
        let before = self.bandwidth.clone();
        links.iter().for_each(|&link| self.bandwidth[link] *= 1.0 + INCREASE);
        let after = self.solve(commodities, places);
        self.bandwidth = before;
        Ok((1.0 - after?.seconds / best.seconds).max(0.0))
    }
}

#[cfg(all(test, feature = "lp"))]
mod tests {
    use equipoise_model::topology;

    use super::*;
    use crate::cost::mcf_optimal::solve;

    fn purchases(graph: &str, machine: &str) -> (Purchases, Optimal) {
        let machine = topology::parse(machine).expect("a machine");
        let database = equipoise_model::graph::load(graph).expect("a graph").remap(machine.pes() as u32);
        let places = database.placement();
        let best = solve(&database, &*machine, &places, Ways::Any).expect("a small machine");
        (Purchases::of(&database, &*machine, &places, &best).expect("a small machine"), best)
    }

    #[test]
    fn if_all_links_are_equally_busy_only_all_together_save_time() {
        for (graph, machine, cables) in [
            ("ring:6,bytes=1000000", "torus:6", 6),
            ("torus:4x4,bytes=1000", "torus:4x4", 32),
            // All routes are forced.
            ("ring:8,bytes=1000000", "fattree:8/1e9", 8),
        ] {
            let (found, _) = purchases(graph, machine);
            assert_eq!(found.cables.len(), cables, "{graph} on {machine}: {found:?}");
            let share: f64 = found.cables.iter().map(|cable| cable.share).sum();
            assert!((share - 1.0).abs() < 1e-6 && found.others == 0, "{graph} on {machine}: {found:?}");
            let all = found.saved_by_all.expect("it is small");
            assert!((all - (1.0 - 1.0 / 1.01)).abs() < 1e-6, "{graph} on {machine}: {all}");
            for cable in found.cables.iter().take(MOST_SOLVED) {
                assert!(cable.saved.expect("it is small") < 1e-6, "{graph} on {machine}: {cable:?}");
            }
        }
    }

    #[test]
    fn the_only_busy_link_saves_its_whole_share() {
        let (found, best) = purchases("npb-mz:benchmark=SP,class=D,processes=16", "platform:litvinov-tree");
        let [cable] = &found.cables[..] else { panic!("{found:?}") };
        // The same bytes go in both directions.
        assert_eq!(best.shares.iter().filter(|share| **share > 0.0).count(), 2);
        let saved = cable.saved.expect("it is small");
        assert!((saved - (1.0 - 1.0 / 1.01)).abs() < 1e-9 && cable.links.len() == 2, "{found:?}");
    }

    #[test]
    fn no_cable_saves_more_than_its_share_and_large_programs_are_not_solved_again() {
        for graph in ["random:n=16,degree=3,bytes=1000000", "npb-mz:benchmark=SP,class=D,processes=16"] {
            for machine in ["torus:4x4", "platform:litvinov-grid", "mesh:4x4", "hypercube:4"] {
                let (found, _) = purchases(graph, machine);
                let all = found.saved_by_all.expect("it is small");
                assert!(all > 0.0 && all < INCREASE, "{graph} on {machine}: {all}");
                for Purchase { share, saved, .. } in found.cables.iter().take(MOST_SOLVED) {
                    let saved = saved.expect("it is small");
                    assert!(
                        saved <= INCREASE * share + 1e-7 && saved <= all + 1e-7,
                        "{graph} on {machine}: {saved} {share}"
                    );
                }
            }
        }
        let (found, _) = purchases("mesh:8x8,bytes=1000", "torus:8x8");
        assert!(found.saved_by_all.is_none() && found.cables.iter().all(|cable| cable.saved.is_none()));
    }
}

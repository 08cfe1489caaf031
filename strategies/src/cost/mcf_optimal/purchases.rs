//! Which links to buy: those that have a price, and what more of them truly saves.
//!
//! The price of a bandwidth says what the time falls by when there is a little more of it only if no other prices are
//! possible. On machines with symmetries many are: then each link has a share of the price, and more of it alone saves
//! nothing, as the time is that of the others. What holds of any prices is a bound, by weak duality: a percent more of
//! some links saves at most their shares of a percent. So the program is solved again with a percent more, of each cable
//! with a large share (a cable is all links between two vertices, both ways) and of all that have one together.

use std::collections::BTreeMap;

use super::{Optimal, Router, Unsolved, Ways};
use crate::cost::commodities::Commodities;
use crate::{Database, Topology};

/// By how much of itself the bandwidth rises.
const MORE: f64 = 0.01;

/// The least share of a cable that is worth a line.
const LEAST_SHARE: f64 = 5e-4;

/// A share below this is what the solver leaves of none.
const NO_SHARE: f64 = 1e-6;

/// The most cables for which a program is solved.
const MOST_SOLVED: usize = 10;

/// The most variables of a program that is solved again. It takes a hundredth to a tenth of a second.
const MAX_SOLVED: usize = 1 << 12;

/// What it is worth to buy links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Purchases {
    /// The cables with a share worth a line, the largest first, of equals that with the lowest link.
    pub cables: Vec<Purchase>,
    /// How many others have a share.
    pub others: usize,
    /// The part of the time that a percent more of all of them saves, the others included; at most about 0.01. `None` where
    /// the program is too large to be solved so often.
    pub saved_by_all: Option<f64>,
}

/// A cable: the links between two vertices.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchase {
    /// Its links, ascending.
    pub links: Vec<usize>,
    /// The sum of [their shares](Optimal::shares): a percent more of the cable saves at most so much of a percent.
    pub share: f64,
    /// The part of the time that a percent more of this cable alone saves; `None` where nothing was solved again.
    pub saved: Option<f64>,
}

impl Purchases {
    /// Those for the best routing `best` of a placement by any ways.
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
    /// The part of the time of `best` that a percent more of these links saves.
    fn saved(
        &mut self,
        commodities: &Commodities,
        places: &[u32],
        links: &[usize],
        best: &Optimal,
    ) -> Result<f64, Unsolved> {
        let before = self.bandwidth.clone();
        links.iter().for_each(|&link| self.bandwidth[link] *= 1.0 + MORE);
        let after = self.solve(commodities, places);
        self.bandwidth = before;
        Ok((1.0 - after?.seconds / best.seconds).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::mcf_optimal::solve;
    use crate::topology;

    fn purchases(graph: &str, machine: &str) -> (Purchases, Optimal) {
        let machine = topology::parse(machine).expect("a machine");
        let database = crate::graph::load(graph).expect("a graph").remap(machine.pes() as u32);
        let places = database.placement();
        let best = solve(&database, &*machine, &places, Ways::Any).expect("a small machine");
        (Purchases::of(&database, &*machine, &places, &best).expect("a small machine"), best)
    }

    #[test]
    fn of_links_that_are_all_as_busy_one_alone_saves_nothing_and_all_save_a_percent() {
        for (graph, machine, cables) in [
            ("ring:6,bytes=1000000", "torus:6", 6),
            ("torus:4x4,bytes=1000", "torus:4x4", 32),
            // Nothing is left to be chosen.
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
        // As much goes each way.
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
                assert!(all > 0.0 && all < MORE, "{graph} on {machine}: {all}");
                for Purchase { share, saved, .. } in found.cables.iter().take(MOST_SOLVED) {
                    let saved = saved.expect("it is small");
                    assert!(
                        saved <= MORE * share + 1e-7 && saved <= all + 1e-7,
                        "{graph} on {machine}: {saved} {share}"
                    );
                }
            }
        }
        let (found, _) = purchases("mesh:8x8,bytes=1000", "torus:8x8");
        assert!(found.saved_by_all.is_none() && found.cables.iter().all(|cable| cable.saved.is_none()));
    }
}

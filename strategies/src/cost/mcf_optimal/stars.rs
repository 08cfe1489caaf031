//! Aggregates demands into commodities, each around one vertex: fewer commodities make a smaller program.
//!
//! All bytes that one vertex sends are one commodity of the program, as in equation 7 aggregated by source. All bytes
//! that one vertex receives can also be one commodity, with the arcs reversed. Every demand belongs to the commodity of
//! one of its ends, so the commodities are a vertex cover of the graph of senders and receivers; a master with many
//! workers needs one commodity. If each pair exchanges equal bytes both ways, one demand of a pair is enough, and a
//! vertex needs at most one commodity.
//!
//! The vertices outside a cover are an independent set. A greedy algorithm adds vertices with the fewest remaining
//! neighbors to that set, which gives a minimum cover of forests (M. M. Halldórsson, J. Radhakrishnan, Greed is good, 1997).

use std::collections::{BTreeMap, BTreeSet};

/// Demands in bytes: by sender, by receiver.
pub(super) type Table = Vec<BTreeMap<usize, u64>>;

/// A commodity: the bytes that one vertex, the hub, sends to others or receives from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Star {
    /// The hub.
    pub(super) hub: usize,
    /// Whether bytes flow to the hub instead of from the hub.
    pub(super) is_inward: bool,
    /// The other ends of the demands, ascending, and the bytes of each demand.
    pub(super) ends: Vec<(usize, u64)>,
}

/// A small set of stars that covers all demands. If the table `is_symmetric`: outward stars with one demand of each pair.
pub(super) fn of(to: &Table, is_symmetric: bool) -> Vec<Star> {
    let vertices = to.len();
    let mut left = to.clone();
    if !is_symmetric {
        // Vertices of the cover problem: receivers, then senders.
        left = vec![BTreeMap::new(); 2 * vertices];
        for (sender, row) in to.iter().enumerate() {
            for (&receiver, &bytes) in row {
                left[receiver].insert(vertices + sender, bytes);
                left[vertices + sender].insert(receiver, bytes);
            }
        }
    }
    // (number of remaining partners, vertex), of all vertices with partners.
    let mut waiting: BTreeSet<(usize, usize)> =
        left.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(at, row)| (row.len(), at)).collect();
    let mut stars = Vec::new();
    while let Some((_, left_out)) = waiting.first().copied() {
        let hubs: Vec<usize> = left[left_out].keys().copied().collect();
        for hub in hubs {
            waiting.remove(&(left[hub].len(), hub));
            let ends = std::mem::take(&mut left[hub]);
            for other in ends.keys() {
                let row = &mut left[*other];
                waiting.remove(&(row.len(), *other));
                row.remove(&hub);
                if !row.is_empty() {
                    waiting.insert((row.len(), *other));
                }
            }
            let ends = ends.into_iter().map(|(end, bytes)| (end % vertices, bytes)).collect();
            stars.push(Star { hub: hub % vertices, is_inward: !is_symmetric && hub < vertices, ends });
        }
    }
    // One outward star per sender may be a smaller cover.
    let outward = to.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(hub, row)| Star {
        hub,
        is_inward: false,
        ends: row.iter().map(|(&end, &bytes)| (end, bytes)).collect(),
    });
    if !is_symmetric && outward.clone().count() <= stars.len() {
        return outward.collect();
    }
    stars.sort_unstable_by_key(|star| (star.hub, star.is_inward));
    stars
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(vertices: usize, sent: &[(usize, usize, u64)]) -> Table {
        let mut to = vec![BTreeMap::new(); vertices];
        for &(from, receiver, bytes) in sent.iter().filter(|(a, b, _)| a != b) {
            to[from].insert(receiver, bytes);
        }
        to
    }

    /// The size of the smallest cover of all demands by senders and receivers, by trying all sets.
    fn fewest(to: &Table) -> u32 {
        let vertices = to.len() as u32;
        let covers = |set: u32| {
            let demands = to.iter().enumerate().flat_map(|(a, row)| row.keys().map(move |&b| (a, b)));
            let mut demands = demands;
            demands.all(|(a, b)| set >> a & 1 == 1 || set >> (vertices as usize + b) & 1 == 1)
        };
        (0..1u32 << (2 * vertices)).filter(|&set| covers(set)).map(u32::count_ones).min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn stars_cover_every_demand_once_and_are_nearly_minimal(
            sent in prop::collection::vec((0..5usize, 0..5usize, 1..100u64), 0..14),
        ) {
            let to = table(5, &sent);
            let stars = of(&to, false);
            let mut back = vec![BTreeMap::new(); 5];
            for Star { hub, is_inward, ends } in &stars {
                prop_assert!(ends.windows(2).all(|pair| pair[0].0 < pair[1].0));
                for &(end, bytes) in ends {
                    let [from, receiver] = if *is_inward { [end, *hub] } else { [*hub, end] };
                    prop_assert!(back[from].insert(receiver, bytes).is_none());
                }
            }
            prop_assert_eq!(&back, &to);
            prop_assert!(stars.len() as u32 <= fewest(&to) + 1, "{} {}", stars.len(), fewest(&to));
        }

        #[test]
        fn symmetric_stars_have_one_demand_of_each_pair(
            sent in prop::collection::vec((0..9usize, 0..9usize, 1..100u64), 0..30),
        ) {
            let sent: Vec<_> = sent.into_iter().flat_map(|(a, b, _)| [(a, b, 7), (b, a, 7)]).collect();
            let to = table(9, &sent);
            let stars = of(&to, true);
            let mut back = vec![BTreeMap::new(); 9];
            for Star { hub, is_inward, ends } in &stars {
                prop_assert!(!is_inward && ends.windows(2).all(|pair| pair[0].0 < pair[1].0));
                for &(end, bytes) in ends {
                    prop_assert!(back[*hub].insert(end, bytes).is_none());
                    prop_assert!(back[end].insert(*hub, bytes).is_none());
                }
            }
            prop_assert_eq!(&back, &to);
        }
    }

    #[test]
    fn a_master_is_the_only_hub() {
        let reports: Vec<_> = (1..9).map(|worker| (worker, 0, 10 * worker as u64)).collect();
        let both: Vec<_> = reports.iter().flat_map(|&(a, b, bytes)| [(a, b, bytes), (b, a, bytes)]).collect();
        let ends: Vec<_> = reports.iter().map(|&(worker, _, bytes)| (worker, bytes)).collect();
        let star = |is_inward| Star { hub: 0, is_inward, ends: ends.clone() };
        assert_eq!(of(&table(9, &reports), false), [star(true)]);
        assert_eq!(of(&table(9, &both), false), [star(false), star(true)]);
        assert_eq!(of(&table(9, &both), true), [star(false)]);
        // A ring of 5: the greatest independent set has two vertices.
        let ring: Vec<_> = (0..5).flat_map(|at| [(at, (at + 1) % 5, 1), ((at + 1) % 5, at, 1)]).collect();
        assert_eq!(of(&table(5, &ring), true).len(), 3);
    }
}

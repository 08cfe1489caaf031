//! The vertices by which demands are added up: the fewer there are, the smaller is the program.
//!
//! What one vertex sends to all others is one commodity of the program, as in equation 7 aggregated by source; and what one
//! vertex is sent by all others can be one, too, with the arcs turned round. Every demand has to belong to one of its
//! ends, so the fewest commodities are a smallest vertex cover of senders and receivers (D. Kőnig, Graphok és matrixok,
//! 1931): one for a master that all others report to.
//!
//! Where everybody is sent as much as he sends ([`of_pairs`]), either end of two has both demands.

use std::collections::{BTreeMap, BTreeSet};

/// Who sends how much to whom: by sender, by receiver.
pub(super) type Table = Vec<BTreeMap<usize, u64>>;

/// A commodity: what one vertex sends to others, or is sent by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Star {
    /// That vertex.
    pub(super) hub: usize,
    /// Whether bytes go to the hub, and not from there.
    pub(super) is_inward: bool,
    /// The others, ascending, and their bytes.
    pub(super) ends: Vec<(usize, u64)>,
}

/// The fewest stars that have all demands.
pub(super) fn of(to: &Table) -> Vec<Star> {
    let sender_of = matching(to);
    let is_matched: BTreeSet<usize> = sender_of.iter().copied().flatten().collect();
    // From senders that are left over: what can be reached by demands, and back by those that are matched.
    let (mut senders, mut receivers) = (BTreeSet::new(), BTreeSet::new());
    let mut ahead: Vec<usize> = (0..to.len()).filter(|sender| !is_matched.contains(sender)).collect();
    while let Some(sender) = ahead.pop() {
        if senders.insert(sender) {
            let met = to[sender].keys().copied().filter(|&receiver| receivers.insert(receiver));
            ahead.extend(met.filter_map(|receiver| sender_of[receiver]));
        }
    }
    let mut stars = BTreeMap::<(usize, bool), Vec<(usize, u64)>>::new();
    for (sender, row) in to.iter().enumerate() {
        for (&receiver, &bytes) in row {
            let is_inward = senders.contains(&sender);
            let [hub, end] = if is_inward { [receiver, sender] } else { [sender, receiver] };
            stars.entry((hub, is_inward)).or_default().push((end, bytes));
        }
    }
    stars.into_iter().map(|((hub, is_inward), ends)| Star { hub, is_inward, ends }).collect()
}

/// By receiver: the sender that it is matched to, in a largest matching (H. W. Kuhn, 1955).
fn matching(to: &Table) -> Vec<Option<usize>> {
    let mut sender_of: Vec<Option<usize>> = vec![None; to.len()];
    for first in (0..to.len()).filter(|&sender| !to[sender].is_empty()) {
        // By receiver: the sender from which it was met.
        let mut met_by = BTreeMap::new();
        let mut ahead = vec![first];
        let mut free = None;
        while let Some(sender) = ahead.pop().filter(|_| free.is_none()) {
            for &receiver in to[sender].keys() {
                if let std::collections::btree_map::Entry::Vacant(entry) = met_by.entry(receiver) {
                    entry.insert(sender);
                    match sender_of[receiver] {
                        Some(next) => ahead.push(next),
                        None => free = free.or(Some(receiver)),
                    }
                }
            }
        }
        while let Some(receiver) = free {
            let sender = met_by[&receiver];
            free = sender_of.iter().position(|&other| other == Some(sender));
            sender_of[receiver] = Some(sender);
        }
    }
    sender_of
}

/// Stars, all outward, that have one demand of each two vertices: of those that send each other the same. They are few: who
/// is in no star is drawn by the fewest partners left (M. M. Halldórsson, J. Radhakrishnan, Greed is good, 1997).
pub(super) fn of_pairs(to: &Table) -> Vec<Star> {
    let mut left: Vec<BTreeMap<usize, u64>> = to.clone();
    // (How many partners are left, vertex), of those that have any.
    let mut waiting: BTreeSet<(usize, usize)> =
        left.iter().enumerate().filter(|(_, row)| !row.is_empty()).map(|(at, row)| (row.len(), at)).collect();
    let mut stars = Vec::new();
    while let Some((_, alone)) = waiting.first().copied() {
        let hubs: Vec<usize> = left[alone].keys().copied().collect();
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
            stars.push(Star { hub, is_inward: false, ends: ends.into_iter().collect() });
        }
    }
    stars.retain(|star| !star.ends.is_empty());
    stars.sort_unstable_by_key(|star| star.hub);
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

    /// The fewest of two kinds of ends without which no demand is left, by trying all sets.
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
        fn stars_have_every_demand_once_and_there_are_no_fewer(
            sent in prop::collection::vec((0..5usize, 0..5usize, 1..100u64), 0..14),
        ) {
            let to = table(5, &sent);
            let stars = of(&to);
            let mut back = vec![BTreeMap::new(); 5];
            for Star { hub, is_inward, ends } in &stars {
                prop_assert!(ends.windows(2).all(|pair| pair[0].0 < pair[1].0));
                for &(end, bytes) in ends {
                    let [from, receiver] = if *is_inward { [end, *hub] } else { [*hub, end] };
                    prop_assert!(back[from].insert(receiver, bytes).is_none());
                }
            }
            prop_assert_eq!(&back, &to);
            prop_assert_eq!(stars.len() as u32, fewest(&to));
        }

        #[test]
        fn stars_of_pairs_have_one_of_both_demands(
            sent in prop::collection::vec((0..9usize, 0..9usize, 1..100u64), 0..30),
        ) {
            let sent: Vec<_> = sent.into_iter().flat_map(|(a, b, _)| [(a, b, 7), (b, a, 7)]).collect();
            let to = table(9, &sent);
            let stars = of_pairs(&to);
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
        assert_eq!(of(&table(9, &reports)), [star(true)]);
        assert_eq!(of(&table(9, &both)), [star(false), star(true)]);
        assert_eq!(of_pairs(&table(9, &both)), [star(false)]);
        // A ring of five: two that are not neighbors are in no star.
        let ring: Vec<_> = (0..5).flat_map(|at| [(at, (at + 1) % 5, 1), ((at + 1) % 5, at, 1)]).collect();
        assert_eq!(of_pairs(&table(5, &ring)).len(), 3);
    }
}

//! The communication phases of a program: which channels have messages under way at the same time.
//!
//! De Petris and Perego 1994, section 3.2, after the Synchronous Phases Model of S. Y. Lee, J. K. Aggarwal ("A mapping
//! strategy for parallel processing", 1987): two channels share a phase iff two of their messages occupy the network
//! together for more than a fraction of their minimal latency. That relation is not transitive, and the paper does not
//! say how sets come of it. Here messages are taken in the order in which they leave the sender in the contention-free
//! run; one joins the present phase if it overlaps the time that all of the phase have in common for at least that
//! fraction of its own latency, and otherwise begins the next phase. Phases with the same channels, as successive
//! iterations have them, are one: else the number of phases, and the contention that is charged, would grow with the
//! iterations.

use rustc_hash::FxHashSet;

use super::Delivery;

/// The fraction of the latency from which on messages share a phase, unless somebody gives another.
pub const OVERLAP: f64 = 0.5;

/// The channels of each phase, ascending, in the order in which phases first happen; channels are numbers in
/// `channels`, which is ascending.
pub(super) fn phases(deliveries: &[Delivery], channels: &[(u32, u32)], overlap: f64) -> Vec<Vec<u32>> {
    let mut order: Vec<&Delivery> = deliveries.iter().collect();
    order.sort_by_key(|it| (it.sent_cycle, it.from, it.to));
    let mut phases = Vec::new();
    let mut known: FxHashSet<Vec<u32>> = FxHashSet::default();
    let mut close = |channels: &mut Vec<u32>| {
        channels.sort_unstable();
        channels.dedup();
        if !channels.is_empty() && known.insert(channels.clone()) {
            phases.push(channels.clone());
        }
        channels.clear();
    };
    let mut present = Vec::new();
    let (mut begin, mut end) = (0, 0);
    for it in order {
        let channel = channels.binary_search(&(it.from, it.to)).expect("a message has a channel") as u32;
        let common = end.min(it.arrived_cycle).saturating_sub(begin.max(it.sent_cycle));
        if (common as f64) < overlap * it.flits as f64 || common == 0 {
            close(&mut present);
            (begin, end) = (it.sent_cycle, it.arrived_cycle);
        } else {
            (begin, end) = (begin.max(it.sent_cycle), end.min(it.arrived_cycle));
        }
        present.push(channel);
    }
    close(&mut present);
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(from: u32, to: u32, sent_cycle: u64, flits: u64) -> Delivery {
        Delivery { from, to, flits, sent_cycle, arrived_cycle: sent_cycle + flits, waited_cycles: 0 }
    }

    #[test]
    fn messages_that_overlap_enough_share_a_phase() {
        let channels = [(0, 1), (1, 0), (1, 2)];
        let check = |overlap, expected: &[&[u32]]| {
            // The second overlaps the first for 6 of 10 cycles, the third that for 2; then the first two again.
            let messages = [message(0, 1, 0, 10), message(1, 0, 4, 10), message(1, 2, 8, 10)];
            let again = [message(0, 1, 100, 10), message(1, 0, 104, 10)];
            assert_eq!(phases(&[&messages[..], &again].concat(), &channels, overlap), expected, "{overlap}");
        };
        check(0.5, &[&[0, 1], &[2]]);
        check(0.7, &[&[0], &[1], &[2]]);
        check(0.2, &[&[0, 1, 2], &[0, 1]]);
    }
}

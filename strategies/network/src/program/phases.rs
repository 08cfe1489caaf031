//! The communication phases of a program: sets of channels that have messages in flight at the same time.
//!
//! De Petris and Perego 1994, section 3.2, after the Synchronous Phases Model of S. Y. Lee, J. K. Aggarwal ("A mapping
//! strategy for parallel processing", 1987): two channels share a phase iff two of their messages occupy the network
//! together for more than a fraction of their minimal latency. That relation is not transitive, and the paper does not
//! state how it gives sets. Here messages are taken in the order in which they leave the sender in the contention-free
//! run. The messages of a phase have an interval of time in common. A message joins the phase if it overlaps this
//! interval for at least the given fraction of its own latency; otherwise it begins the next phase. Phases with the
//! same channels (from successive iterations) count once. Otherwise the number of phases, and the estimated
//! contention, would grow with the number of iterations.

use rustc_hash::FxHashSet;

use super::Delivery;

/// The default of the minimum overlap of messages that share a phase, as a fraction of the latency.
pub const OVERLAP: f64 = 0.5;

/// The phases in the order of their first occurrence. A phase is an ascending list of indices into `channels`, which is
/// sorted.
pub(super) fn phases(deliveries: &[Delivery], channels: &[(u32, u32)], overlap: f64) -> Vec<Vec<u32>> {
    let mut order: Vec<&Delivery> = deliveries.iter().collect();
    order.sort_by_key(|it| (it.sent_cycle, it.from, it.to));
    let mut phases = Vec::new();
    let mut seen: FxHashSet<Vec<u32>> = FxHashSet::default();
    let mut close = |channels: &mut Vec<u32>| {
        channels.sort_unstable();
        channels.dedup();
        if !channels.is_empty() && seen.insert(channels.clone()) {
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
            // The second message overlaps the first for 6 of 10 cycles. The third overlaps their common interval for 2.
            let messages = [message(0, 1, 0, 10), message(1, 0, 4, 10), message(1, 2, 8, 10)];
            let again = [message(0, 1, 100, 10), message(1, 0, 104, 10)];
            assert_eq!(phases(&[&messages[..], &again].concat(), &channels, overlap), expected, "{overlap}");
        };
        check(0.5, &[&[0, 1], &[2]]);
        check(0.7, &[&[0], &[1], &[2]]);
        check(0.2, &[&[0, 1, 2], &[0, 1]]);
    }
}

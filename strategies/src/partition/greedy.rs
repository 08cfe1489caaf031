//! Groups by load alone: repeatedly adds the heaviest remaining object to the lightest group.
//!
//! The grouping that the TopoLB paper takes from GreedyLB (Agarwal, Sharma, Kalé 2006, section 4.4). It ignores edges.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Adds every vertex, heaviest first, to the lightest of `parts` parts. Ties are broken by fewest vertices, then by
/// lowest part. O(n log n).
///
/// # Panics
/// When there are vertices but no parts.
pub fn partition(weights: &[u32], parts: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..weights.len() as u32).collect();
    order.sort_by_key(|&v| Reverse(weights[v as usize]));
    let mut lightest: BinaryHeap<Reverse<(u64, u32, u32)>> =
        (0..parts as u32).map(|part| Reverse((0, 0, part))).collect();
    let mut part_of = vec![0; weights.len()];
    for v in order {
        let mut top = lightest.peek_mut().expect("vertices need at least one part");
        let Reverse((weight, count, part)) = *top;
        part_of[v as usize] = part;
        *top = Reverse((weight + u64::from(weights[v as usize]), count + 1, part));
    }
    part_of
}

#[cfg(test)]
mod tests {
    use super::partition;

    #[test]
    fn the_heaviest_vertex_joins_the_lightest_part() {
        assert_eq!(partition(&[1, 4, 3, 2], 2), [0, 0, 1, 1]);
        assert_eq!(partition(&[1; 5], 3), [0, 1, 2, 0, 1]);
        assert_eq!(partition(&[0; 4], 2), [0, 1, 0, 1]);
        assert_eq!(partition(&[], 0), [0u32; 0]);
    }
}

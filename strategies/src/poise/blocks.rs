//! Whole blocks change places where that saves hop-bytes.
//!
//! Bisection decides halves one after the other, and what it decided first knew nothing of what came later. On the
//! quotient graph (a vertex per block, what blocks exchange) blocks with equally many PEs change places pairwise, a
//! descent with active flags.

use super::csr::{Csr, Half};
use super::distance::Metric;
use super::machine::Near;

/// Layers of more blocks are left as they are.
const MAX_BLOCKS: usize = 1 << 14;

/// Up to so many blocks all places are tried.
const FEW_BLOCKS: usize = 64;

/// The places of so many heaviest neighbors are tried, and those next to them.
const HEAVY_NEIGHBORS: usize = 8;

/// Passes over all blocks at most.
const PASSES: usize = 10;

/// Edges that are looked at, at most: everybody exchanges something with everybody on graphs without a shape.
const MAX_WORK: usize = 1 << 29;

/// By block: the homes of what is in it now, ascending, and what it saves that these live there.
pub(crate) type Pulls = [Vec<(u32, i64)>];

/// The block that what is now in each block should go to.
///
/// After the blocks, `quotient` has a vertex for each of `anchors`, which stay in these blocks. `pulls` may be
/// empty. `fits` says whether what is in the first block may go to the second.
pub(crate) fn places<M: Metric>(
    quotient: &Csr,
    anchors: &[u32],
    pulls: &Pulls,
    distance: &M,
    near: &Near,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<u32> {
    let blocks = quotient.vertices() - anchors.len();
    let mut at: Vec<u32> = (0..blocks as u32).collect();
    if !(3..=MAX_BLOCKS).contains(&blocks) {
        return at;
    }
    let mut place_of: Vec<u32> = at.iter().chain(anchors).copied().collect();
    let pull = |v: usize, place: u32| {
        let all = pulls.get(v).map_or(&[][..], Vec::as_slice);
        all.binary_search_by_key(&place, |pull| pull.0).map_or(0, |at| all[at].1)
    };
    // What it saves that `v` goes from a place to another, `other` left aside.
    let saved = |place_of: &[u32], v: usize, [from, to]: [u32; 2], other: usize| -> i64 {
        let others = quotient.row(v).iter().filter(|half| half.to as usize != other);
        let nearer = |half: &Half| {
            let place = place_of[half.to as usize];
            i64::from(half.weight) * (distance.between(from, place) - distance.between(to, place))
        };
        others.map(nearer).sum::<i64>() + pull(v, to) - pull(v, from)
    };
    let mut is_active = vec![true; blocks];
    let (mut candidates, mut heaviest) = (Vec::new(), Vec::new());
    let mut work = 0;
    for _ in 0..PASSES {
        let mut has_changed = false;
        for v in 0..blocks {
            let is_drawn = quotient.degree(v) > 0 || pulls.get(v).is_some_and(|pulls| !pulls.is_empty());
            if work > MAX_WORK || !std::mem::take(&mut is_active[v]) || !is_drawn {
                continue;
            }
            let here = place_of[v];
            candidates.clear();
            if blocks <= FEW_BLOCKS {
                candidates.extend(0..blocks as u32);
            } else {
                heaviest.clear();
                heaviest
                    .extend(quotient.row(v).iter().map(|half| (!half.weight, place_of[half.to as usize])));
                heaviest.sort_unstable();
                for &(_, place) in heaviest.iter().take(HEAVY_NEIGHBORS) {
                    candidates.push(place);
                    candidates.extend_from_slice(near.of(place));
                }
                candidates.extend_from_slice(near.of(here));
                candidates.extend(pulls.get(v).into_iter().flatten().map(|pull| pull.0));
                candidates.sort_unstable();
                candidates.dedup();
            }
            let mut best = (0, here);
            for &place in candidates.iter().filter(|&&place| place != here) {
                let u = at[place as usize] as usize;
                if !fits(v, place as usize) || !fits(u, here as usize) {
                    continue;
                }
                work += 2 * (quotient.degree(v) + quotient.degree(u));
                let gain = saved(&place_of, v, [here, place], u) + saved(&place_of, u, [place, here], v);
                if gain > best.0 {
                    best = (gain, place);
                }
            }
            let (gain, place) = best;
            if gain > 0 {
                let u = at[place as usize] as usize;
                (place_of[v], place_of[u]) = (place, here);
                (at[place as usize], at[here as usize]) = (v as u32, u as u32);
                for w in [v, u] {
                    is_active[w] = true;
                    let others = quotient.row(w).iter().map(|half| half.to as usize);
                    others.filter(|&other| other < blocks).for_each(|other| is_active[other] = true);
                }
                has_changed = true;
            }
        }
        if !has_changed {
            break;
        }
    }
    place_of.truncate(blocks);
    place_of
}

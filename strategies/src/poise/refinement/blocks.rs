//! Swaps whole blocks if that saves hop-bytes.
//!
//! Recursive bisection makes its first decisions without knowledge of the later ones. On the quotient graph (one vertex per
//! block, with the traffic between blocks) the contents of blocks of equal numbers of PEs are swapped pairwise, in a
//! descent with active flags.

use crate::partition::bisection::csr::{Csr, Half};
use crate::poise::machine::Near;
use crate::poise::machine::distance::Metric;

/// In layers with more blocks, no blocks are swapped.
const MAX_BLOCKS: usize = 1 << 14;

/// If there are at most this many blocks, all places are tried.
const FEW_BLOCKS: usize = 64;

/// The number of neighbors with the heaviest edges whose places, and the places adjacent to these, are tried.
const HEAVY_NEIGHBORS: usize = 8;

/// The maximum number of passes over all blocks.
const PASSES: usize = 10;

/// The maximum number of edges that are examined; the quotients of unstructured graphs are dense.
const MAX_WORK: usize = 1 << 29;

/// By block: the present blocks of its vertices, ascending, and the migration costs saved by placing them there.
pub(crate) type Pulls = [Vec<(u32, i64)>];

/// By block: the new place of its contents.
///
/// The vertices of `quotient` are the blocks and, after them, one vertex for each of `anchors`. An entry of `anchors`
/// is the block in which that vertex stays. `pulls` may be empty. `fits` returns whether the contents of the first
/// block may go to the second.
pub(crate) fn places<M: Metric>(
    quotient: &Csr,
    anchors: &[u32],
    pulls: &Pulls,
    distance: &M,
    near: &Near,
    fits: impl Fn(usize, usize) -> bool,
) -> Vec<u32> {
    let blocks = quotient.vertices() - anchors.len();
    let at: Vec<u32> = (0..blocks as u32).collect();
    if !(3..=MAX_BLOCKS).contains(&blocks) {
        return at;
    }
    let place_of: Vec<u32> = at.iter().chain(anchors).copied().collect();
    let mut search = Search { quotient, blocks, pulls, distance, near, at, place_of };
    let mut is_active = vec![true; blocks];
    let (mut candidates, mut heaviest) = (Vec::new(), Vec::new());
    let mut work = 0;
    for _ in 0..PASSES {
        let mut has_changed = false;
        for v in 0..blocks {
            let is_pulled = quotient.degree(v) > 0 || pulls.get(v).is_some_and(|pulls| !pulls.is_empty());
            if work > MAX_WORK || !std::mem::take(&mut is_active[v]) || !is_pulled {
                continue;
            }
            search.list_candidates(v, &mut candidates, &mut heaviest);
            let here = search.place_of[v];
            let mut best = (0, here);
            for &place in candidates.iter().filter(|&&place| place != here) {
                let u = search.at[place as usize] as usize;
                if !fits(v, place as usize) || !fits(u, here as usize) {
                    continue;
                }
                work += 2 * (quotient.degree(v) + quotient.degree(u));
                let gain = search.saved(v, [here, place], u) + search.saved(u, [place, here], v);
                if gain > best.0 {
                    best = (gain, place);
                }
            }
            let (gain, place) = best;
            if gain > 0 {
                let u = search.swap(v, place);
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
    search.place_of.truncate(blocks);
    search.place_of
}

/// The places of the contents of blocks, during the search.
struct Search<'a, M> {
    quotient: &'a Csr,
    /// The number of vertices that are blocks.
    blocks: usize,
    pulls: &'a Pulls,
    distance: &'a M,
    near: &'a Near,
    /// By place: the vertex placed there.
    at: Vec<u32>,
    /// By vertex: its place.
    place_of: Vec<u32>,
}

impl<M: Metric> Search<'_, M> {
    /// The cost saved by moving `v` from one place to another, without its edges to `other`.
    fn saved(&self, v: usize, [from, to]: [u32; 2], other: usize) -> i64 {
        let others = self.quotient.row(v).iter().filter(|half| half.to as usize != other);
        let nearer = |half: &Half| {
            let place = self.place_of[half.to as usize];
            i64::from(half.weight) * (self.distance.between(from, place) - self.distance.between(to, place))
        };
        others.map(nearer).sum::<i64>() + self.pull(v, to) - self.pull(v, from)
    }

    fn pull(&self, v: usize, place: u32) -> i64 {
        let all = self.pulls.get(v).map_or(&[][..], Vec::as_slice);
        all.binary_search_by_key(&place, |pull| pull.0).map_or(0, |at| all[at].1)
    }

    /// Lists the places to try for `v`; `heaviest` is a reused buffer.
    fn list_candidates(&self, v: usize, candidates: &mut Vec<u32>, heaviest: &mut Vec<(u32, u32)>) {
        candidates.clear();
        if self.blocks <= FEW_BLOCKS {
            candidates.extend(0..self.blocks as u32);
            return;
        }
        heaviest.clear();
        let row = self.quotient.row(v).iter();
        heaviest.extend(row.map(|half| (!half.weight, self.place_of[half.to as usize])));
        heaviest.sort_unstable();
        for &(_, place) in heaviest.iter().take(HEAVY_NEIGHBORS) {
            candidates.push(place);
            candidates.extend_from_slice(self.near.of(place));
        }
        candidates.extend_from_slice(self.near.of(self.place_of[v]));
        candidates.extend(self.pulls.get(v).into_iter().flatten().map(|pull| pull.0));
        candidates.sort_unstable();
        candidates.dedup();
    }

    /// Swaps `v` with the vertex at `place`; returns the latter.
    fn swap(&mut self, v: usize, place: u32) -> usize {
        let (here, u) = (self.place_of[v], self.at[place as usize] as usize);
        (self.place_of[v], self.place_of[u]) = (place, here);
        (self.at[place as usize], self.at[here as usize]) = (v as u32, u as u32);
        u
    }
}

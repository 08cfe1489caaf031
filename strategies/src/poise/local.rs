//! Localized search: from one vertex after another, moves that may pay only together.
//!
//! P. Sanders, C. Schulz, "Engineering multilevel graph partitioning algorithms", 2011, section 4 (multi-try
//! FM), with gains in hop-bytes: a search begins at a single vertex of the border, moves the best of what it has
//! touched, even at a loss, and goes on around what moved. After some moves in vain it takes back all after its
//! best state. A vertex moves once per round, so a round ends.

use std::collections::BinaryHeap;

use rand_core::RngCore;

use super::distance::Metric;
use super::kway::{NONE, State};

/// Vertices with more edges do not join the searches of others: every one of theirs would look at all of them.
const HUB: usize = 1024;

/// What a vertex is to the search that is under way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Untouched,
    Waiting,
    Moved,
}

/// What is known of a vertex.
#[derive(Clone, Copy)]
struct Wish {
    gain: i64,
    block: u32,
    /// Entries of the heap with another version are out of date.
    version: u32,
    status: Status,
}

/// Searches from every vertex of the border, for so many rounds or until one is in vain; a search ends after
/// `patience` moves in vain. Gives what it saved.
pub(crate) fn refine<M: Metric>(
    state: &mut State<M>,
    rounds: usize,
    patience: usize,
    dice: &mut impl RngCore,
) -> i64 {
    let board = state.board;
    let none = Wish { gain: 0, block: NONE, version: 0, status: Status::Untouched };
    let mut wishes = vec![none; board.movable];
    let mut has_moved = vec![false; board.movable];
    let mut total = 0;
    // (gain, vertex, version): of equal gains the highest vertex, which is as good as any.
    let mut heap: BinaryHeap<(i64, u32, u32)> = BinaryHeap::new();
    let (mut touched, mut moves): (Vec<u32>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let seeds = state.border(dice);
        has_moved.fill(false);
        let mut saved = 0;
        for seed in seeds {
            if has_moved[seed as usize] {
                continue;
            }
            heap.clear();
            moves.clear();
            enter(state, &mut wishes, &mut heap, &mut touched, seed);
            let (mut sum, mut best, mut kept) = (0, 0, 0);
            while let Some((gain, vertex, version)) = heap.pop() {
                let v = vertex as usize;
                if version != wishes[v].version || wishes[v].status != Status::Waiting {
                    continue;
                }
                let Some((now, block)) = state.best_move(v) else {
                    wishes[v].status = Status::Untouched;
                    continue;
                };
                if now < gain {
                    let wish = &mut wishes[v];
                    (wish.gain, wish.block, wish.version) = (now, block, wish.version + 1);
                    if heap.peek().is_some_and(|next| next.0 > now) {
                        heap.push((now, vertex, wish.version));
                        continue;
                    }
                }
                let from = state.block_of[v];
                state.relocate(v, block);
                (wishes[v].status, has_moved[v]) = (Status::Moved, true);
                moves.push((vertex, from));
                sum += now;
                if sum > best {
                    (best, kept) = (sum, moves.len());
                } else if moves.len() - kept > patience {
                    break;
                }
                for half in board.graph.row(v) {
                    let u = half.to as usize;
                    if u >= board.movable || has_moved[u] || board.graph.degree(u) > HUB {
                        continue;
                    }
                    if wishes[u].status == Status::Waiting {
                        follow(state, &mut wishes, &mut heap, half.to, i64::from(half.weight), (from, block));
                    } else {
                        enter(state, &mut wishes, &mut heap, &mut touched, half.to);
                    }
                }
            }
            for &(v, from) in moves[kept..].iter().rev() {
                state.relocate(v as usize, from);
            }
            saved += best;
            touched.drain(..).for_each(|v| wishes[v as usize].status = Status::Untouched);
        }
        total += saved;
        if saved == 0 {
            break;
        }
    }
    total
}

/// A vertex is touched by the search.
fn enter<M: Metric>(
    state: &mut State<M>,
    wishes: &mut [Wish],
    heap: &mut BinaryHeap<(i64, u32, u32)>,
    touched: &mut Vec<u32>,
    v: u32,
) {
    if let Some((gain, block)) = state.best_move(v as usize) {
        let version = wishes[v as usize].version + 1;
        wishes[v as usize] = Wish { gain, block, version, status: Status::Waiting };
        heap.push((gain, v, version));
        touched.push(v);
    }
}

/// A neighbor of the waiting vertex `u` moved: what `u` gains by its own wish has changed, and following may be
/// better now.
fn follow<M: Metric>(
    state: &mut State<M>,
    wishes: &mut [Wish],
    heap: &mut BinaryHeap<(i64, u32, u32)>,
    u: u32,
    weight: i64,
    (from, to): (u32, u32),
) {
    let Wish { gain, block, version, .. } = wishes[u as usize];
    let here = state.block_of[u as usize];
    let distance = |a, b| state.board.distance.between(a, b);
    let farther = weight * (distance(here, to) - distance(here, from));
    let mut new = (gain + farther - weight * (distance(block, to) - distance(block, from)), block);
    if block != to && farther > 0 {
        new = state.best_move(u as usize).unwrap_or(new);
    }
    if new != (gain, block) {
        wishes[u as usize] =
            Wish { gain: new.0, block: new.1, version: version + 1, status: Status::Waiting };
        heap.push((new.0, u, version + 1));
    }
}

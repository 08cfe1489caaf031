//! Localized search: sequences of moves that start at one vertex, and may reduce the cost only together.
//!
//! P. Sanders, C. Schulz, "Engineering multilevel graph partitioning algorithms", 2011, section 4 (multi-try FM), with
//! gains in hop-bytes. A search starts at one border vertex, applies the best move among the vertices it has touched, even
//! at a loss, and continues with the neighbors of moved vertices. After some moves without improvement it reverts to its
//! best state. A vertex moves at most once per round, so rounds end.

use std::collections::BinaryHeap;

use rand_core::RngCore;

use super::state::State;
use crate::poise::machine::NONE;
use crate::poise::machine::distance::Metric;

/// Vertices with more edges than this do not join a search that starts at another vertex: examining all their edges
/// each time is too slow.
const HUB: usize = 1024;

/// The state of a vertex in the current search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Status {
    Untouched,
    Waiting,
    Moved,
}

/// The best known move of a vertex.
#[derive(Clone, Copy)]
struct Proposal {
    gain: i64,
    block: u32,
    /// Heap entries with another version are outdated.
    version: u32,
    status: Status,
}

/// Searches from every border vertex, for up to `rounds` rounds or until a round saves nothing. A search ends after
/// `patience` moves without improvement. Returns the saved cost.
pub(crate) fn refine<M: Metric>(
    state: &mut State<M>,
    rounds: usize,
    patience: usize,
    rng: &mut impl RngCore,
) -> i64 {
    let board = state.board;
    let none = Proposal { gain: 0, block: NONE, version: 0, status: Status::Untouched };
    let mut proposals = vec![none; board.movable];
    let mut has_moved = vec![false; board.movable];
    let mut total = 0;
    // (gain, vertex, version). Of equal gains the highest vertex comes first; the order of equal gains does not matter.
    let mut heap: BinaryHeap<(i64, u32, u32)> = BinaryHeap::new();
    let (mut touched, mut moves): (Vec<u32>, Vec<(u32, u32)>) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let seeds = state.border(rng);
        has_moved.fill(false);
        let mut saved = 0;
        for seed in seeds {
            if has_moved[seed as usize] {
                continue;
            }
            heap.clear();
            moves.clear();
            enter(state, &mut proposals, &mut heap, &mut touched, seed);
            let (mut sum, mut best, mut kept) = (0, 0, 0);
            while let Some((gain, vertex, version)) = heap.pop() {
                let v = vertex as usize;
                if version != proposals[v].version || proposals[v].status != Status::Waiting {
                    continue;
                }
                let Some((now, block)) = state.best_move(v) else {
                    proposals[v].status = Status::Untouched;
                    continue;
                };
                if now < gain {
                    let proposal = &mut proposals[v];
                    (proposal.gain, proposal.block, proposal.version) = (now, block, proposal.version + 1);
                    if heap.peek().is_some_and(|next| next.0 > now) {
                        heap.push((now, vertex, proposal.version));
                        continue;
                    }
                }
                let from = state.block_of[v];
                state.relocate(v, block);
                (proposals[v].status, has_moved[v]) = (Status::Moved, true);
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
                    if proposals[u].status == Status::Waiting {
                        let weight = i64::from(half.weight);
                        follow(state, &mut proposals, &mut heap, half.to, weight, (from, block));
                    } else {
                        enter(state, &mut proposals, &mut heap, &mut touched, half.to);
                    }
                }
            }
            for &(v, from) in moves[kept..].iter().rev() {
                state.relocate(v as usize, from);
            }
            saved += best;
            touched.drain(..).for_each(|v| proposals[v as usize].status = Status::Untouched);
        }
        total += saved;
        if saved == 0 {
            break;
        }
    }
    total
}

/// Adds a vertex to the search.
fn enter<M: Metric>(
    state: &mut State<M>,
    proposals: &mut [Proposal],
    heap: &mut BinaryHeap<(i64, u32, u32)>,
    touched: &mut Vec<u32>,
    v: u32,
) {
    if let Some((gain, block)) = state.best_move(v as usize) {
        let version = proposals[v as usize].version + 1;
        proposals[v as usize] = Proposal { gain, block, version, status: Status::Waiting };
        heap.push((gain, v, version));
        touched.push(v);
    }
}

/// Updates the waiting vertex `u` after a move of its neighbor: the gain of its best known move has changed, and a move to
/// the neighbor's new block may now be better.
fn follow<M: Metric>(
    state: &mut State<M>,
    proposals: &mut [Proposal],
    heap: &mut BinaryHeap<(i64, u32, u32)>,
    u: u32,
    weight: i64,
    (from, to): (u32, u32),
) {
    let Proposal { gain, block, version, .. } = proposals[u as usize];
    let here = state.block_of[u as usize];
    let distance = |a, b| state.board.distance.between(a, b);
    let farther = weight * (distance(here, to) - distance(here, from));
    let mut new = (gain + farther - weight * (distance(block, to) - distance(block, from)), block);
    if block != to && farther > 0 {
        new = state.best_move(u as usize).unwrap_or(new);
    }
    if new != (gain, block) {
        proposals[u as usize] =
            Proposal { gain: new.0, block: new.1, version: version + 1, status: Status::Waiting };
        heap.push((new.0, u, version + 1));
    }
}

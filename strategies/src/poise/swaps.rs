//! Swaps and ejections: a vertex goes where it wants to be although there is no room.
//!
//! When loads are tight most moves that pay are not possible. Here a vertex moves into a full block, and one that
//! is there goes to the place it left (a swap) or to any block with room (an ejection), if both together pay.

use rand_core::RngCore;

use super::distance::Metric;
use super::kway::State;
use super::repair::Members;
use crate::random::shuffle;

/// Full blocks that a vertex tries, best first.
const TARGETS: usize = 12;

/// Partners that are tried in a full block.
const PARTNERS: usize = 64;

/// Vertices with more edges are no partners: everybody around them would look at all of them.
const HUB: usize = 1024;

/// Passes over the vertices around which something changed, while that saves something, for so many times at most.
/// Gives what it saves.
pub(crate) fn refine<M: Metric>(state: &mut State<M>, passes: usize, dice: &mut impl RngCore) -> i64 {
    let board = state.board;
    let mut members = Members::new(state);
    let mut is_active = vec![true; board.graph.vertices()];
    let mut order: Vec<u32> = (0..board.movable as u32).collect();
    shuffle(dice, &mut order);
    let mut total = 0;
    for _ in 0..passes {
        let mut saved = 0;
        for &v in &order {
            if !std::mem::take(&mut is_active[v as usize]) || board.graph.degree(v as usize) == 0 {
                continue;
            }
            let Some(swap) = find(state, &members, v) else { continue };
            saved += swap.gain;
            members.relocate(state, v, swap.block);
            activate(board.graph, &mut is_active, v);
            if let Some((partner, block)) = swap.partner {
                members.relocate(state, partner, block);
                activate(board.graph, &mut is_active, partner);
            }
        }
        total += saved;
        if saved == 0 {
            break;
        }
    }
    total
}

/// A vertex and all around it are to be looked at again.
fn activate(graph: &super::csr::Csr, is_active: &mut [bool], v: u32) {
    is_active[v as usize] = true;
    graph.row(v as usize).iter().for_each(|half| is_active[half.to as usize] = true);
}

/// What pays for a vertex.
struct Swap {
    gain: i64,
    /// Where it goes.
    block: u32,
    /// Who leaves that block for it, and where to.
    partner: Option<(u32, u32)>,
}

/// The best swap, ejection or move of `v`, if one saves anything.
fn find<M: Metric>(state: &mut State<M>, members: &Members, v: u32) -> Option<Swap> {
    let board = state.board;
    let (here, load) = (state.block_of[v as usize], board.graph.loads[v as usize]);
    board.look(v as usize, state.block_of, &mut state.scratch);
    board.list_candidates(v as usize, here, true, &mut state.scratch);
    let cost = board.cost(v as usize, here, &state.scratch);
    let mut targets: Vec<(i64, u32)> = Vec::new();
    for &block in &state.scratch.candidates {
        let gain = cost - board.cost(v as usize, block, &state.scratch);
        if gain > 0 {
            targets.push((-gain, block));
        }
    }
    targets.sort_unstable();
    targets.truncate(TARGETS);
    let mut best: Option<Swap> = None;
    let most = |best: &Option<Swap>| best.as_ref().map_or(0, |best| best.gain);
    for (loss, block) in targets {
        let gain = -loss;
        let room = board.capacity[block as usize] - state.loads[block as usize];
        if load <= room {
            if gain > most(&best) {
                best = Some(Swap { gain, block, partner: None });
            }
            continue;
        }
        let there = members.of(block);
        let stride = (there.len() / PARTNERS).max(1);
        for &u in there.iter().step_by(stride) {
            let its_load = board.graph.loads[u as usize];
            if load - its_load > room || board.graph.degree(u as usize) > HUB {
                continue;
            }
            let fits_here = state.loads[here as usize] - load + its_load <= board.capacity[here as usize];
            if fits_here {
                board.look(u as usize, state.block_of, &mut state.scratch);
                let mut sum = gain + board.cost(u as usize, block, &state.scratch);
                sum -= board.cost(u as usize, here, &state.scratch);
                // The two remain as far apart as they are.
                let edges = board.graph.row(u as usize).iter().filter(|half| half.to == v);
                let weight: i64 = edges.map(|half| i64::from(half.weight)).sum();
                sum -= 2 * weight * board.distance.between(here, block);
                if sum > most(&best) {
                    best = Some(Swap { gain: sum, block, partner: Some((u, here)) });
                }
            }
            // As if `v` were there already.
            state.block_of[v as usize] = block;
            state.loads[here as usize] -= load;
            let away = state.best_move(u as usize);
            state.block_of[v as usize] = here;
            state.loads[here as usize] += load;
            if let Some((more, to)) = away
                && gain + more > most(&best)
            {
                best = Some(Swap { gain: gain + more, block, partner: Some((u, to)) });
            }
        }
    }
    best
}

//! Swaps and ejections: a vertex moves into a full block.
//!
//! When loads are tight, most moves that would reduce the cost are not possible. Here a vertex moves into a full block,
//! and a vertex of that block moves to the vacated place (a swap) or to any block with room (an ejection), if both
//! moves together reduce the cost.

use equipoise_model::random::shuffle;
use rand_core::RngCore;

use super::repair::Members;
use super::state::State;
use crate::partition::bisection::csr::Csr;
use crate::poise::machine::distance::Metric;

/// The maximum number of full blocks that are tried for a vertex, best first.
const TARGETS: usize = 12;

/// The maximum number of partners that are tried in a full block.
const PARTNERS: usize = 64;

/// Vertices with more edges than this are not tried as partners: examining all their edges is too slow.
const HUB: usize = 1024;

/// Makes up to `passes` passes, as long as a pass reduces the cost. A pass examines the vertices that have moved, or
/// whose neighbors have moved. Returns the saved cost.
pub(crate) fn refine<M: Metric>(state: &mut State<M>, passes: usize, rng: &mut impl RngCore) -> i64 {
    let board = state.board;
    let mut members = Members::new(state);
    let mut is_active = vec![true; board.graph.vertices()];
    let mut order: Vec<u32> = (0..board.movable as u32).collect();
    shuffle(rng, &mut order);
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

/// Marks a vertex and its neighbors for another examination.
fn activate(graph: &Csr, is_active: &mut [bool], v: u32) {
    is_active[v as usize] = true;
    graph.row(v as usize).iter().for_each(|half| is_active[half.to as usize] = true);
}

/// A move of a vertex that reduces the cost, alone or with a partner.
struct Swap {
    gain: i64,
    /// The new block of the vertex.
    block: u32,
    /// The vertex that leaves that block in exchange, and its new block.
    partner: Option<(u32, u32)>,
}

/// The best swap, ejection or move of `v`, if one saves anything.
fn find<M: Metric>(state: &mut State<M>, members: &Members, v: u32) -> Option<Swap> {
    let board = state.board;
    let (here, load) = (state.block_of[v as usize], board.graph.loads[v as usize]);
    board.gather(v as usize, state.block_of, &mut state.scratch);
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
                board.gather(u as usize, state.block_of, &mut state.scratch);
                let mut sum = gain + board.cost(u as usize, block, &state.scratch);
                sum -= board.cost(u as usize, here, &state.scratch);
                // The distance between both vertices does not change.
                let edges = board.graph.row(u as usize).iter().filter(|half| half.to == v);
                let weight: i64 = edges.map(|half| i64::from(half.weight)).sum();
                sum -= 2 * weight * board.distance.between(here, block);
                if sum > most(&best) {
                    best = Some(Swap { gain: sum, block, partner: Some((u, here)) });
                }
            }
            // Evaluated as if `v` were already in `block`.
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

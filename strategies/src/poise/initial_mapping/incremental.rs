//! The start from the present placement, which is then repaired and refined with migration costs.
//!
//! Objects that change their PE cost their size times gamma in addition to hop-bytes. So refinement weighs saved
//! hop-bytes against migration costs, and the present PE is always among the candidates of an object.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::poise::machine::NONE;
use crate::poise::problem::Problem;

/// The present placement, in blocks of the last layer; objects on unavailable PEs are placed where there is most room.
pub(crate) fn start(problem: &Problem) -> Vec<u32> {
    let mut block_of: Vec<u32> = problem.home_of.iter().chain(&problem.anchors).copied().collect();
    let loads = &problem.graph.loads;
    let mut rooms = problem.capacity.clone();
    for (&block, load) in problem.home_of.iter().zip(loads).filter(|(block, _)| **block != NONE) {
        rooms[block as usize] -= load;
    }
    let open = rooms.iter().enumerate().filter(|&(block, _)| problem.capacity[block] > 0);
    let mut emptiest: BinaryHeap<(i64, Reverse<usize>)> =
        open.map(|(block, &room)| (room, Reverse(block))).collect();
    let mut unplaced: Vec<usize> = (0..problem.movable).filter(|&v| block_of[v] == NONE).collect();
    unplaced.sort_unstable_by_key(|&v| (Reverse(loads[v]), v));
    for v in unplaced {
        let Some(mut top) = emptiest.peek_mut() else { break };
        let (room, Reverse(block)) = *top;
        block_of[v] = block as u32;
        *top = (room - loads[v], Reverse(block));
    }
    block_of
}

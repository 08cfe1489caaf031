//! Repair: no block above its capacity, for as few hop-bytes as possible.
//!
//! Any placement may have overloaded blocks. Each round has three steps for the blocks that are still overloaded: (1) the
//! moves with the lowest cost per load, into blocks with neighbors and with room; (2) moves into the nearest block with
//! room; (3) the block is packed again together with the emptiest blocks, more and more of them: heaviest vertex first,
//! and each vertex stays in its block if it fits (R. L. Graham, "Bounds on multiprocessing timing anomalies", 1969).
//! Step 3 finds solutions that single moves cannot, if vertices are as heavy as the capacity.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashSet;

use super::state::State;
use crate::poise::machine::Near;
use crate::poise::machine::distance::Metric;

/// The maximum number of rounds of all steps.
const ROUNDS: usize = 20;

/// The maximum number of vertices of a block that step 2 examines, and the maximum number of blocks with room that are
/// tried for each vertex.
const PICKS: usize = 8;
const ROOMS: usize = 32;

/// The maximum number of moves out of one block in step 2, per round.
const MAX_PUSHES: usize = 4096;

/// The maximum number of blocks that step 3 packs together with an overloaded one.
const MAX_POOL: usize = 512;

/// On machines with more than `MANY_BLOCKS` blocks, step 2 first searches for room in the surrounding blocks, at most
/// `MAX_EXAMINED`. If none of these has room, it searches in all blocks.
const MANY_BLOCKS: usize = 1 << 12;
const MAX_EXAMINED: usize = 1 << 10;

/// Tries to bring every block below its capacity; returns whether it succeeded. Without `repacks`, step 3 is skipped.
pub(crate) fn repair<M: Metric>(state: &mut State<M>, repacks: bool) -> bool {
    for _ in 0..ROUNDS {
        if overloaded(state).is_empty() {
            return true;
        }
        let mut members = Members::new(state);
        let mut has_moved = relieve(state, &mut members);
        for block in overloaded(state) {
            has_moved |= push(state, &mut members, block);
        }
        for block in overloaded(state).into_iter().filter(|_| repacks) {
            has_moved |= repack(state, &mut members, block);
        }
        if !has_moved {
            break;
        }
    }
    overloaded(state).is_empty()
}

fn excess<M: Metric>(state: &State<M>, block: u32) -> i64 {
    state.loads[block as usize] - state.board.capacity[block as usize]
}

/// The blocks above their capacities, ascending.
fn overloaded<M: Metric>(state: &State<M>) -> Vec<u32> {
    (0..state.loads.len() as u32).filter(|&block| excess(state, block) > 0).collect()
}

/// The movable vertices of each block.
pub(crate) struct Members {
    of_block: Vec<Vec<u32>>,
    /// By vertex: its index in the list of its block.
    place: Vec<u32>,
}

impl Members {
    pub fn new<M: Metric>(state: &State<M>) -> Members {
        let mut of_block = vec![Vec::new(); state.loads.len()];
        let mut place = vec![0; state.board.movable];
        for (v, &block) in state.block_of[..state.board.movable].iter().enumerate() {
            place[v] = of_block[block as usize].len() as u32;
            of_block[block as usize].push(v as u32);
        }
        Members { of_block, place }
    }

    /// The movable vertices of a block, in arbitrary order.
    pub fn of(&self, block: u32) -> &[u32] {
        &self.of_block[block as usize]
    }

    /// Moves a vertex to a block.
    pub fn relocate<M: Metric>(&mut self, state: &mut State<M>, v: u32, block: u32) {
        let from = &mut self.of_block[state.block_of[v as usize] as usize];
        let place = self.place[v as usize];
        from.swap_remove(place as usize);
        if let Some(&last) = from.get(place as usize) {
            self.place[last as usize] = place;
        }
        self.place[v as usize] = self.of_block[block as usize].len() as u32;
        self.of_block[block as usize].push(v);
        state.relocate(v as usize, block);
    }
}

/// The gain of a move in relation to the load, such that the move with the lowest loss per load has the highest score.
fn score(gain: i64, load: i64) -> i64 {
    if gain >= 0 { gain.saturating_mul(load.max(1)) } else { gain.div_euclid(load.max(1)) }
}

/// Step 1; returns whether anything moved.
fn relieve<M: Metric>(state: &mut State<M>, members: &mut Members) -> bool {
    let mut heap: BinaryHeap<(i64, Reverse<u32>)> = BinaryHeap::new();
    for block in overloaded(state) {
        for &v in members.of(block) {
            if let Some((gain, _)) = state.best_move(v as usize) {
                heap.push((score(gain, state.board.graph.loads[v as usize]), Reverse(v)));
            }
        }
    }
    let mut has_moved = false;
    while let Some((before, Reverse(v))) = heap.pop() {
        if excess(state, state.block_of[v as usize]) <= 0 {
            continue;
        }
        let Some((gain, block)) = state.best_move(v as usize) else { continue };
        let now = score(gain, state.board.graph.loads[v as usize]);
        if now < before {
            heap.push((now, Reverse(v)));
            continue;
        }
        members.relocate(state, v, block);
        has_moved = true;
    }
    has_moved
}

/// Step 2 for one block; returns whether anything moved.
fn push<M: Metric>(state: &mut State<M>, members: &mut Members, block: u32) -> bool {
    let board = state.board;
    let load = |v: u32| board.graph.loads[v as usize];
    let mut by_load: Vec<u32> = members.of(block).to_vec();
    by_load.sort_unstable_by_key(|&v| (load(v), v));
    let mut rooms: Vec<(i64, u32)> = Vec::new();
    let mut has_moved = false;
    for _ in 0..MAX_PUSHES {
        let above = excess(state, block);
        if above <= 0 || by_load.is_empty() {
            break;
        }
        // Candidates are the vertices whose loads are closest to the excess load.
        let at = by_load.partition_point(|&v| load(v) < above);
        let from = at.saturating_sub(PICKS / 2).min(by_load.len().saturating_sub(PICKS));
        let picks = from..(from + PICKS).min(by_load.len());
        let lightest = load(by_load[picks.start]);
        let room = |other: u32| board.capacity[other as usize] - state.loads[other as usize];
        rooms.retain(|&(_, other)| room(other) >= lightest);
        if rooms.is_empty() {
            let blocks = state.loads.len() as u32;
            let mut others = Vec::new();
            if blocks as usize > MANY_BLOCKS {
                others = around(board.near, block);
                others.retain(|&other| room(other) >= lightest);
            }
            if others.is_empty() {
                others.extend((0..blocks).filter(|&other| other != block && room(other) >= lightest));
            }
            rooms.extend(others.into_iter().map(|other| (board.distance.between(block, other), other)));
            if rooms.len() > ROOMS {
                rooms.select_nth_unstable(ROOMS - 1);
                rooms.truncate(ROOMS);
            }
            rooms.sort_unstable();
        }
        let mut best: Option<(i64, usize, u32)> = None;
        for pick in picks {
            let v = by_load[pick] as usize;
            board.gather(v, state.block_of, &mut state.scratch);
            let here = board.cost(v, block, &state.scratch);
            for &(_, other) in &rooms {
                if load(v as u32) > board.capacity[other as usize] - state.loads[other as usize] {
                    continue;
                }
                let loss = board.cost(v, other, &state.scratch) - here;
                if best.is_none_or(|best| loss < best.0) {
                    best = Some((loss, pick, other));
                }
            }
        }
        let Some((_, pick, other)) = best else { break };
        let v = by_load.remove(pick);
        members.relocate(state, v, other);
        has_moved = true;
    }
    has_moved
}

/// The blocks around `block`, nearest first, at least [`MAX_EXAMINED`] if there are as many.
fn around(near: &Near, block: u32) -> Vec<u32> {
    let mut found = vec![block];
    let mut is_found = FxHashSet::from_iter([block]);
    let mut next = 0;
    while let Some(&other) = found.get(next).filter(|_| found.len() <= MAX_EXAMINED) {
        next += 1;
        found.extend(near.of(other).iter().copied().filter(|&other| is_found.insert(other)));
    }
    found.split_off(1)
}

/// At most [`MAX_POOL`] of these, the least first.
fn least<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    if all.len() > MAX_POOL {
        all.select_nth_unstable(MAX_POOL);
        all.truncate(MAX_POOL);
    }
    all.sort_unstable();
    all
}

/// Step 3 for one block; returns whether anything moved. The other blocks are those with most room, or if that fails, in turn one with room and
/// a full one with light vertices, which heavy ones are exchanged for, of equals the nearest.
fn repack<M: Metric>(state: &mut State<M>, members: &mut Members, block: u32) -> bool {
    if excess(state, block) <= 0 {
        return false;
    }
    let others = || (0..state.loads.len() as u32).filter(|&other| other != block);
    let roomy = others().map(|other| (excess(state, other), other)).filter(|&(excess, _)| excess < 0);
    let roomy: Vec<u32> = least(roomy.collect()).into_iter().map(|(_, other)| other).collect();
    if repack_with(state, members, block, &roomy) {
        return true;
    }
    let is_full = |&other: &u32| excess(state, other) == 0 && state.board.capacity[other as usize] > 0;
    let others = (0..state.loads.len() as u32).filter(|&other| other != block).filter(is_full);
    // Full blocks with many vertices have light ones.
    let value = |other: u32| (Reverse(members.of(other).len()), state.board.distance.between(block, other));
    let full = others.map(|other| (value(other), other));
    let full: Vec<u32> = least(full.collect()).into_iter().map(|(_, other)| other).collect();
    let turns = 0..roomy.len().max(full.len());
    let mixed: Vec<u32> =
        turns.flat_map(|at| [roomy.get(at), full.get(at)]).flatten().copied().take(MAX_POOL).collect();
    !full.is_empty() && repack_with(state, members, block, &mixed)
}

/// Packs a block again with more and more of `others`, until all vertices fit; returns whether they did.
fn repack_with<M: Metric>(state: &mut State<M>, members: &mut Members, block: u32, others: &[u32]) -> bool {
    let mut number = 1;
    loop {
        let pool: Vec<u32> = [block].into_iter().chain(others.iter().copied().take(number)).collect();
        let of_block = |(at, &block): (usize, &u32)| members.of(block).iter().map(move |&v| (v, at));
        let mut vertices: Vec<(u32, usize)> = pool.iter().enumerate().flat_map(of_block).collect();
        vertices.sort_unstable_by_key(|&(v, _)| (Reverse(state.board.graph.loads[v as usize]), v));
        let packed = pack(state, &pool, &vertices, true).or_else(|| pack(state, &pool, &vertices, false));
        if let Some(places) = packed {
            for ((v, home), place) in vertices.into_iter().zip(places) {
                if place != home {
                    members.relocate(state, v, pool[place]);
                }
            }
            return true;
        }
        if number >= others.len() {
            return false;
        }
        number *= 2;
    }
}

/// By vertex: its block as an index into `pool`, such that all `vertices` fit; these have their present blocks, and are sorted heaviest
/// first. With `stay`, vertices stay in their block if there is room. All others go to the block with most room.
fn pack<M: Metric>(
    state: &State<M>,
    pool: &[u32],
    vertices: &[(u32, usize)],
    stay: bool,
) -> Option<Vec<usize>> {
    let board = state.board;
    let mut rooms: Vec<i64> = pool.iter().map(|&block| board.capacity[block as usize]).collect();
    // The room includes the load of these vertices, which are packed again.
    for &(v, home) in vertices {
        rooms[home] += board.graph.loads[v as usize];
    }
    rooms.iter_mut().zip(pool).for_each(|(room, &block)| *room -= state.loads[block as usize]);
    let mut emptiest: BinaryHeap<(i64, Reverse<usize>)> =
        rooms.iter().enumerate().map(|(at, &room)| (room, Reverse(at))).collect();
    let mut places = Vec::with_capacity(vertices.len());
    for &(v, home) in vertices {
        let load = board.graph.loads[v as usize];
        let at = if stay && rooms[home] >= load {
            home
        } else {
            // Entries of blocks that got a vertex are outdated.
            loop {
                let (room, Reverse(at)) = emptiest.pop()?;
                if room == rooms[at] {
                    break at;
                }
            }
        };
        rooms[at] -= load;
        if rooms[at] < 0 {
            return None;
        }
        emptiest.push((rooms[at], Reverse(at)));
        places.push(at);
    }
    Some(places)
}

//! A run from the corner that follows many partial placements side by side.
//!
//! Tasks come in the order of Select_Task, which does not depend on where they go. Each partial placement goes on with
//! the free PEs where the next task adds the fewest hops, up to [`LOOK`] of them; of all that come of this, those with the
//! fewest hops so far remain, and of equals those in the smallest box: a beam search. So a butterfly fills a mesh from
//! its corner, square by square.

use super::super::bounds::Bounds;
use super::{NONE, Problem};

/// The most partial placements that are followed.
const MAX_WIDTH: usize = 64;

/// How many entries of distance tables may be looked at: the width is less on large machines.
const MAX_LOOKS: usize = 100_000_000;

/// With how many PEs of equal cost a partial placement goes on.
const LOOK: usize = 6;

/// A partial placement.
#[derive(Clone)]
struct Partial {
    hops: u64,
    volume: u64,
    place: Vec<u32>,
    is_used: Vec<bool>,
    bounds: Bounds,
}

/// The PE of every task, of which that one is placed first, in the corner.
pub(super) fn place(problem: &Problem, start: u32) -> Vec<u32> {
    let order = order(problem, start);
    let tasks = problem.partners.len();
    let degrees: usize = problem.partners.iter().map(Vec::len).sum();
    let looks = problem.pes() * (degrees / 2 + tasks);
    let width = (MAX_LOOKS / looks.max(1)).clamp(1, MAX_WIDTH);
    let mut beam = vec![Partial {
        hops: 0,
        volume: 0,
        place: vec![NONE; tasks],
        is_used: vec![false; problem.pes()],
        bounds: problem.host.no_bounds(),
    }];
    let mut costs = Vec::new();
    for (number, &task) in order.iter().enumerate() {
        // Hops, the box, which partial placement goes on, and where.
        let mut next: Vec<(u64, u64, usize, u32)> = Vec::new();
        for (from, partial) in beam.iter().enumerate() {
            if number == 0 {
                next.push((0, 1, from, problem.corner));
                continue;
            }
            let least = problem.costs(task, &partial.place, &partial.is_used, &mut costs);
            let tied = (0..costs.len()).filter(|&pe| costs[pe] == least && !partial.is_used[pe]);
            next.extend(tied.take(LOOK).map(|pe| {
                let volume = partial.bounds.volume_with(problem.position(pe as u32));
                (partial.hops + least, volume, from, pe as u32)
            }));
        }
        next.sort_unstable();
        next.truncate(width);
        beam = next
            .into_iter()
            .map(|(hops, volume, from, pe)| {
                let mut partial = beam[from].clone();
                (partial.hops, partial.volume) = (hops, volume);
                partial.place[task as usize] = pe;
                partial.is_used[pe as usize] = true;
                partial.bounds.widen(problem.position(pe));
                partial
            })
            .collect();
    }
    let best = beam.into_iter().min_by_key(|partial| (partial.hops, partial.volume));
    best.map_or_else(Vec::new, |partial| partial.place)
}

/// The order in which tasks are placed.
fn order(problem: &Problem, start: u32) -> Vec<u32> {
    let mut tasks = problem.tasks.clone();
    let mut order = Vec::with_capacity(problem.partners.len());
    let mut task = Some(start as usize);
    while let Some(next) = task {
        tasks.map(next);
        order.push(next as u32);
        task = tasks.next();
    }
    order
}

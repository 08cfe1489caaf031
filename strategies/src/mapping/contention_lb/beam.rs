//! A beam search from the periphery: it extends many partial placements together.
//!
//! Tasks come in the order of Select_Task, which does not depend on their places. Each partial placement continues with
//! the free PEs where the next task adds the fewest hops, at most [`MAX_BRANCHES`] of them. Of all continuations, those
//! with the fewest hops so far are kept; ties go to the smallest bounding box. So a butterfly fills a mesh square by
//! square, from a corner of the mesh.

use super::problem::{NONE, Problem};
use crate::mapping::de_petris_perego::bounds::Bounds;

/// The maximum number of partial placements that are kept.
const MAX_WIDTH: usize = 64;

/// The maximum number of distance table entries that are read; large machines therefore keep fewer partial placements.
const MAX_LOOKS: usize = 100_000_000;

/// The maximum number of PEs of equal cost with which a partial placement continues.
const MAX_BRANCHES: usize = 6;

/// A partial placement.
#[derive(Clone)]
struct Partial {
    hops: u64,
    volume: u64,
    place: Vec<u32>,
    is_used: Vec<bool>,
    bounds: Bounds,
}

/// A partial placement with one more task.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Continuation {
    hops: u64,
    volume: u64,
    /// The index of the partial placement.
    from: usize,
    pe: u32,
}

/// The PE of every task.
pub(super) fn place(problem: &Problem) -> Vec<u32> {
    let (tasks, pes) = (problem.partners.len(), problem.neighbors.len());
    let degrees: usize = problem.partners.iter().map(Vec::len).sum();
    let looks = pes * (degrees / 2 + tasks);
    let width = (MAX_LOOKS / looks.max(1)).clamp(1, MAX_WIDTH);
    let empty = Partial {
        hops: 0,
        volume: 0,
        place: vec![NONE; tasks],
        is_used: vec![false; pes],
        bounds: problem.no_bounds(),
    };
    let mut beam = vec![empty.with(problem, problem.start, problem.corner)];
    let mut remaining = problem.tasks.clone();
    remaining.map(problem.start as usize);
    let mut costs = Vec::new();
    while let Some(task) = remaining.next() {
        remaining.map(task);
        let mut continuations = Vec::new();
        for (from, partial) in beam.iter().enumerate() {
            let least = problem.costs(task as u32, &partial.place, &partial.is_used, &mut costs);
            let is_best = |&pe: &u32| costs[pe as usize] == least && !partial.is_used[pe as usize];
            continuations.extend((0..pes as u32).filter(is_best).take(MAX_BRANCHES).map(|pe| {
                let volume = partial.bounds.volume_with(problem.position(pe));
                Continuation { hops: partial.hops + least, volume, from, pe }
            }));
        }
        continuations.sort_unstable();
        continuations.truncate(width);
        let next = |it: &Continuation| {
            let partial = beam[it.from].with(problem, task as u32, it.pe);
            Partial { hops: it.hops, volume: it.volume, ..partial }
        };
        beam = continuations.iter().map(next).collect();
    }
    let best = beam.iter().min_by_key(|partial| (partial.hops, partial.volume));
    best.map_or_else(Vec::new, |partial| problem.pes_of(&partial.place))
}

impl Partial {
    /// This partial placement with one more task.
    fn with(&self, problem: &Problem, task: u32, pe: u32) -> Self {
        let mut partial = self.clone();
        partial.place[task as usize] = pe;
        partial.is_used[pe as usize] = true;
        partial.bounds.widen(problem.position(pe));
        partial
    }
}

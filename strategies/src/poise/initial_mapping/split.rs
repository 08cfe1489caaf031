//! Splits every block of a layer, with its vertices, into two halves.
//!
//! A block waits for the blocks with lower numbers that it exchanges traffic with; blocks that wait for no other block are
//! split in parallel. So the result is that of sequential splitting, for any number of threads.

use std::ops::RangeInclusive;

use equipoise_model::random::generator;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::partition::bisection::csr::{Csr, Groups, Half};
use crate::partition::bisection::{Chain, Halves};
use crate::poise::machine::NONE;
use crate::poise::machine::distance::{Metric, with_metric};
use crate::poise::problem::Problem;
use crate::poise::settings::Settings;

/// Blocks are coarsened in parallel before they are split if their number is in this range, and there are at least this many
/// vertices.
const AHEAD_BLOCKS: RangeInclusive<usize> = 4..=64;
const AHEAD_VERTICES: usize = 1 << 15;

/// The random number stream of splitting.
const STREAM: u64 = 1 << 40;

/// Splits the blocks of the layer before `layer`.
///
/// If a `present` placement is given, a block is split again only if vertices outside of the block attract some of its
/// vertices more to one half.
pub(super) fn split(
    problem: &Problem,
    settings: &Settings,
    layer: usize,
    above: &[u32],
    capacity: &[i64],
    present: Option<&[u32]>,
    seed: u64,
) -> Vec<u32> {
    let (graph, movable) = (&problem.graph, problem.movable);
    let before = &problem.machine.layers[layer - 1];
    let blocks = before.blocks();
    let groups = Groups::new(&above[..movable], blocks);
    let mut place_of = vec![0; movable];
    for block in 0..blocks {
        groups.members(block).iter().zip(0..).for_each(|(&v, place)| place_of[v as usize] = place);
    }
    let mut below = present.map_or_else(|| vec![NONE; graph.vertices()], <[u32]>::to_vec);
    problem.anchors_in(layer).zip(movable..).for_each(|(block, anchor)| below[anchor] = block);
    let mut settings = *settings;
    if blocks > settings.repeat_blocks {
        settings.effort.repeats = 1;
    }
    // On trees the first cuts matter less, because all pairs of PEs that a cut separates are equally far apart.
    if problem.machine.is_tree {
        settings.effort.tries /= 2;
    }
    let piece = |block: u32| {
        let members = groups.members(block as usize);
        Piece { problem, layer, block, members, above, place_of: &place_of, is_recut: present.is_some() }
    };
    let levels = levels(problem, above, &groups, blocks);
    // If there are few blocks, these can rarely be split in parallel. But they can be coarsened in parallel, because
    // coarsening is independent of the other blocks. Only the next few blocks are: the levels of all blocks need much
    // memory.
    let threads = rayon::current_num_threads();
    let is_ahead =
        present.is_none() && AHEAD_BLOCKS.contains(&blocks) && movable >= AHEAD_VERTICES && threads > 1;
    let mut ahead: FxHashMap<u32, Prepared> = FxHashMap::default();
    for (number, level) in levels.iter().enumerate() {
        if is_ahead && level.len() < threads && !level.iter().all(|block| ahead.contains_key(block)) {
            let others = levels[number..].iter().flatten().filter(|block| !ahead.contains_key(block));
            let next: Vec<u32> = others.take(threads).copied().collect();
            let prepared =
                |&block: &u32| (block, piece(block).prepare(piece(block).inside(), &settings, seed));
            ahead.extend(next.par_iter().map(prepared).collect::<Vec<_>>());
        }
        let bisected = |(block, prepared): (u32, Option<Prepared>)| {
            let [x, y] = before.children[block as usize];
            if y == NONE {
                return present.is_none().then(|| vec![0; groups.members(block as usize).len()]);
            }
            let capacity = [capacity[x as usize], capacity[y as usize]];
            piece(block).bisect(&settings, [x, y], capacity, &below, prepared, seed)
        };
        let jobs: Vec<(u32, Option<Prepared>)> =
            level.iter().map(|&block| (block, ahead.remove(&block))).collect();
        let all: Vec<Option<Vec<u8>>> = match jobs.len() {
            1 => jobs.into_iter().map(bisected).collect(),
            _ => jobs.into_par_iter().map(bisected).collect(),
        };
        for (&block, sides) in level.iter().zip(all) {
            let children = before.children[block as usize];
            for (&v, side) in groups.members(block as usize).iter().zip(sides.into_iter().flatten()) {
                below[v as usize] = children[usize::from(side)];
            }
        }
    }
    below
}

/// Groups of blocks in splitting order: blocks of one level do not wait for each other.
fn levels(problem: &Problem, above: &[u32], groups: &Groups, blocks: usize) -> Vec<Vec<u32>> {
    let lower = |block: usize| {
        let rows = groups.members(block).iter().flat_map(|&v| problem.graph.row(v as usize));
        let others = rows.filter(|half| (half.to as usize) < problem.movable);
        let lower = others.map(|half| above[half.to as usize]).filter(|&other| (other as usize) < block);
        lower.collect::<FxHashSet<u32>>()
    };
    let all: Vec<FxHashSet<u32>> = (0..blocks).into_par_iter().map(lower).collect();
    let mut level_of = vec![0; blocks];
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for (block, lower) in all.into_iter().enumerate() {
        let level = lower.into_iter().map(|other| level_of[other as usize] + 1).max().unwrap_or(0);
        level_of[block] = level;
        if levels.len() <= level {
            levels.resize(level + 1, Vec::new());
        }
        levels[level].push(block as u32);
    }
    levels
}

/// A block to be split, and its context.
struct Piece<'a> {
    problem: &'a Problem<'a>,
    /// The layer of its halves.
    layer: usize,
    block: u32,
    members: &'a [u32],
    /// By vertex: its block in the layer before, and its index among the members of that block.
    above: &'a [u32],
    place_of: &'a [u32],
    /// Whether the block was split before.
    is_recut: bool,
}

/// The part of a bisection that does not depend on other blocks.
struct Prepared {
    inside: Inside,
    chain: Chain,
    /// The random number generator after coarsening.
    rng: ChaCha8Rng,
}

/// The edges of the members of a block.
struct Inside {
    /// The members and the edges between them; `None` if the block contains the whole graph.
    graph: Option<Csr>,
    /// The other edges of the members, by index of the member.
    outside: Vec<(u32, Half)>,
}

impl Piece<'_> {
    fn is_inside(&self, v: u32) -> bool {
        (v as usize) < self.problem.movable && self.above[v as usize] == self.block
    }

    fn inside(&self) -> Inside {
        let whole = &self.problem.graph;
        let mut outside = Vec::new();
        if self.members.len() == whole.vertices() {
            return Inside { graph: None, outside };
        }
        let mut graph = Csr::with_capacity(self.members.len());
        for (&v, member) in self.members.iter().zip(0..) {
            let inside = |half: &Half| {
                if self.is_inside(half.to) {
                    return Some(Half { to: self.place_of[half.to as usize], weight: half.weight });
                }
                outside.push((member, *half));
                None
            };
            graph.push(whole.loads[v as usize], whole.row(v as usize).iter().filter_map(inside));
        }
        Inside { graph: Some(graph), outside }
    }

    fn prepare(&self, inside: Inside, settings: &Settings, seed: u64) -> Prepared {
        let mut rng = generator(seed, STREAM | (self.layer as u64) << 32 | u64::from(self.block));
        let graph = inside.graph.as_ref().unwrap_or(&self.problem.graph);
        let chain = Chain::new(graph, &settings.effort, &mut rng);
        Prepared { inside, chain, rng }
    }

    /// By member: the additional cost in half `y` compared with half `x`; empty if there are no edges `outside`. Vertices
    /// outside of the block are in their half by `below`, or, if their block is not split yet, in the middle of its halves.
    fn bias(
        &self,
        distance: &impl Metric,
        [x, y]: [u32; 2],
        outside: &[(u32, Half)],
        below: &[u32],
    ) -> Vec<i64> {
        if outside.is_empty() {
            return Vec::new();
        }
        let children = &self.problem.machine.layers[self.layer - 1].children;
        let mut bias = vec![0; self.members.len()];
        for (member, half) in outside {
            let weight = i64::from(half.weight);
            let farther = |place: u32| weight * (distance.between(y, place) - distance.between(x, place));
            bias[*member as usize] += if below[half.to as usize] != NONE {
                2 * farther(below[half.to as usize])
            } else {
                let [a, b] = children[self.above[half.to as usize] as usize];
                farther(a) + farther(if b == NONE { a } else { b })
            };
        }
        bias
    }

    /// The side of each member; `None` for a second split if no vertex outside of the block attracts a member more to
    /// one side.
    fn bisect(
        &self,
        settings: &Settings,
        [x, y]: [u32; 2],
        capacity: [i64; 2],
        below: &[u32],
        prepared: Option<Prepared>,
        seed: u64,
    ) -> Option<Vec<u8>> {
        let distance = &self.problem.machine.layers[self.layer].distance;
        let bias = |inside: &Inside| match settings.propagates_terminals {
            true => with_metric!(distance, metric => self.bias(metric, [x, y], &inside.outside, below)),
            false => Vec::new(),
        };
        let (prepared, bias) = match prepared {
            Some(prepared) => {
                let bias = bias(&prepared.inside);
                (prepared, bias)
            }
            None => {
                let inside = self.inside();
                let bias = bias(&inside);
                if self.is_recut && bias.iter().all(|&pull| pull == 0) {
                    return None;
                }
                (self.prepare(inside, settings, seed), bias)
            }
        };
        let Prepared { inside, chain, mut rng } = prepared;
        let graph = inside.graph.as_ref().unwrap_or(&self.problem.graph);
        let room = i128::from((capacity[0] + capacity[1]).max(1));
        let target = (i128::from(graph.total_load()) * i128::from(capacity[0]) / room) as i64;
        let edge_cost = if inside.graph.is_none() { 1 } else { 2 * distance.between(x, y) };
        let halves = Halves { graph, edge_cost, bias: &bias, capacity, target };
        Some(chain.bisect(&halves, &settings.effort, &mut rng))
    }
}

//! Splits every block of a layer, with its vertices, into two halves.
//!
//! A block waits for the blocks with lower numbers that it exchanges traffic with; blocks that wait for no other block are
//! split in parallel. So the result is that of sequential splitting, for any number of threads.

use equipoise_model::random::generator;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::partition::bisection::csr::{Csr, Groups, Half};
use crate::partition::bisection::{Chain, Halves};
use crate::poise::machine::NONE;
use crate::poise::machine::distance::Metric;
use crate::poise::problem::Problem;
use crate::poise::settings::Settings;

/// Blocks are coarsened in parallel before they are split if there are at most this many blocks, and at least this many
/// vertices.
const AHEAD_BLOCKS: usize = 64;
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
    // If there are few blocks, these can rarely be split in parallel. But they can be coarsened in parallel, because
    // coarsening is independent of the other blocks.
    let is_ahead = present.is_none()
        && (2..=AHEAD_BLOCKS).contains(&blocks)
        && movable >= AHEAD_VERTICES
        && rayon::current_num_threads() > 1;
    let mut ahead: Vec<Option<Prepared>> = Vec::new();
    if is_ahead {
        let all = (0..blocks as u32).into_par_iter();
        ahead = all.map(|block| Some(piece(block).prepare(&settings, seed))).collect();
    }
    for level in levels(graph, above, blocks, movable) {
        let bisected = |(block, prepared): (u32, Option<Prepared>)| {
            let [x, y] = before.children[block as usize];
            if y == NONE {
                return present.is_none().then(|| vec![0; groups.members(block as usize).len()]);
            }
            let capacity = [capacity[x as usize], capacity[y as usize]];
            piece(block).bisect(&settings, [x, y], capacity, &below, prepared, seed)
        };
        let take = |&block: &u32| (block, ahead.get_mut(block as usize).and_then(Option::take));
        let jobs: Vec<(u32, Option<Prepared>)> = level.iter().map(take).collect();
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
fn levels(graph: &Csr, above: &[u32], blocks: usize, movable: usize) -> Vec<Vec<u32>> {
    let cluster_of: Vec<u32> =
        above[..movable].iter().copied().chain(above[movable..].iter().map(|_| blocks as u32)).collect();
    let quotient = graph.contract(&cluster_of, blocks + 1);
    let mut level_of = vec![0; blocks];
    let mut levels: Vec<Vec<u32>> = Vec::new();
    for block in 0..blocks {
        let lower = quotient.row(block).iter().map(|half| half.to as usize).filter(|&other| other < block);
        let level = lower.map(|other| level_of[other] + 1).max().unwrap_or(0);
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
    /// The members and their edges; `None` if the block contains the whole graph.
    graph: Option<Csr>,
    chain: Chain,
    /// The random number generator after coarsening.
    rng: ChaCha8Rng,
}

impl Piece<'_> {
    fn is_whole(&self) -> bool {
        self.members.len() == self.problem.graph.vertices()
    }

    fn is_inside(&self, v: u32) -> bool {
        (v as usize) < self.problem.movable && self.above[v as usize] == self.block
    }

    fn prepare(&self, settings: &Settings, seed: u64) -> Prepared {
        let whole = &self.problem.graph;
        let mut rng = generator(seed, STREAM | (self.layer as u64) << 32 | u64::from(self.block));
        let graph = (!self.is_whole()).then(|| {
            let mut graph = Csr::with_capacity(self.members.len());
            for &v in self.members {
                let inside = whole.row(v as usize).iter().filter(|half| self.is_inside(half.to));
                let half = |half: &Half| Half { to: self.place_of[half.to as usize], weight: half.weight };
                graph.push(whole.loads[v as usize], inside.map(half));
            }
            graph
        });
        let chain = Chain::new(graph.as_ref().unwrap_or(whole), &settings.effort, &mut rng);
        Prepared { graph, chain, rng }
    }

    /// By member: the additional cost in half `y` compared with half `x`. Vertices outside of the block are in their
    /// half by `below`, or, if their block is not split yet, in the middle of its halves.
    fn bias(&self, [x, y]: [u32; 2], below: &[u32]) -> Vec<i64> {
        let distance = &self.problem.machine.layers[self.layer].distance;
        let children = &self.problem.machine.layers[self.layer - 1].children;
        let pull = |&v: &u32| {
            let mut pull = 0;
            for half in self.problem.graph.row(v as usize) {
                if self.is_inside(half.to) {
                    continue;
                }
                let weight = i64::from(half.weight);
                let farther = |place: u32| weight * (distance.between(y, place) - distance.between(x, place));
                if below[half.to as usize] != NONE {
                    pull += 2 * farther(below[half.to as usize]);
                } else {
                    let [a, b] = children[self.above[half.to as usize] as usize];
                    pull += farther(a) + farther(if b == NONE { a } else { b });
                }
            }
            pull
        };
        self.members.iter().map(pull).collect()
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
        let is_whole = self.is_whole();
        let bias =
            if settings.propagates_terminals && !is_whole { self.bias([x, y], below) } else { Vec::new() };
        if self.is_recut && bias.iter().all(|&pull| pull == 0) {
            return None;
        }
        let Prepared { graph, chain, mut rng } = prepared.unwrap_or_else(|| self.prepare(settings, seed));
        let graph = graph.as_ref().unwrap_or(&self.problem.graph);
        let room = i128::from((capacity[0] + capacity[1]).max(1));
        let target = (i128::from(graph.total_load()) * i128::from(capacity[0]) / room) as i64;
        let distance = &self.problem.machine.layers[self.layer].distance;
        let edge_cost = if is_whole { 1 } else { 2 * distance.between(x, y) };
        let halves = Halves { graph, edge_cost, bias: &bias, capacity, target };
        Some(chain.bisect(&halves, &settings.effort, &mut rng))
    }
}

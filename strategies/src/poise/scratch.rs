//! Mapping from scratch: the task graph is cut as the machine is, and refined after every cut.
//!
//! Dual recursive bipartitioning (Pellegrini 1994) of the whole graph. When the blocks of a layer are split, each
//! block is bisected with the rest of the graph pulling at its vertices: at the halves already chosen where the
//! block they are in was split before, else at the middle between its halves. A block waits for those of lower
//! number that it exchanges anything with, and those that wait for nobody are split together; so the result is that
//! of splitting one after the other, whatever the number of threads. After every split the placement is refined over
//! all blocks of the new layer with its distances: quality is lost most where cuts are few.

use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::bisect::{Chain, Halves};
use super::blocks;
use super::csr::{Csr, Groups, Half};
use super::distance::{Metric, with_metric};
use super::kway::{Board, Homes, State};
use super::local;
use super::machine::NONE;
use super::problem::Problem;
use super::repair::repair;
use super::settings::Settings;
use super::swaps;
use crate::random::generator;

/// With at most so many objects per PE, blocks next to one's own are candidates although no neighbor is there.
const FEW_OBJECTS_PER_PE: usize = 8;

/// On graphs of at most so many vertices several placements are followed through the first layers on any machine.
const FEW_VERTICES: usize = 1 << 13;

/// Graphs of more vertices are large.
const LARGE: usize = 1 << 16;

/// Localized search takes too long with fewer objects per block than this on graphs of more than [`MANY_VERTICES`].
const FEW_OBJECTS_PER_BLOCK: usize = 64;
const MANY_VERTICES: usize = 200_000;

/// Up to so many blocks, of graphs of so many vertices, are coarsened together before they are split one after the other.
const AHEAD_BLOCKS: usize = 64;
const AHEAD_VERTICES: usize = 1 << 15;

/// Rounds of localized search in the last layer, and in those before.
const LAST_ROUNDS: usize = 5;
const ROUNDS: usize = 2;

/// Passes of greedy refinement in the last layer, and in those before.
const LAST_PASSES: usize = 10;
const PASSES: usize = 4;

/// Times that swaps and searches follow each other in the last layer, and passes of swaps each time.
const SWAP_ROUNDS: usize = 3;
const SWAP_PASSES: usize = 5;

/// From so many vertices on several threads add up a cost.
const PARALLEL: usize = 1 << 16;

/// Streams of random numbers.
const SPLIT_STREAM: u64 = 1 << 40;
const REFINE_STREAM: u64 = 2 << 40;

/// The dice of cuts that are made again are others by this.
const AGAIN: u64 = 0x2545_f491_4f6c_dd1d;

/// How good a placement is in its layer: its overload, then its cost. Less is better.
pub(crate) type Grade = (i64, i64);

/// The block of the last layer of every vertex.
pub(crate) fn map(problem: &Problem, settings: &Settings, seed: u64) -> Vec<u32> {
    let layers = problem.machine.layers.len();
    let mut kept = vec![start(problem)];
    for layer in 1..layers {
        let pays = problem.machine.is_tree || problem.movable <= FEW_VERTICES;
        let has_beam = settings.beam_layers > 0 && (settings.has_wide_beam || pays);
        let tries = if layer == 1 && has_beam { settings.beam_tries } else { 1 };
        if kept.len() == 1 && tries == 1 {
            kept = vec![descend(problem, settings, layer, &kept[0], seed)];
            continue;
        }
        let jobs: Vec<(usize, u64)> =
            (0..kept.len()).flat_map(|from| (0..tries as u64).map(move |attempt| (from, attempt))).collect();
        let attempts = jobs.into_par_iter().map(|(from, attempt)| {
            // Every attempt rolls other dice; the first those it would roll alone.
            let seed = seed.wrapping_add((attempt + from as u64 * 31).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let block_of = descend(problem, settings, layer, &kept[from], seed);
            (grade(problem, layer, &block_of), block_of)
        });
        let mut attempts: Vec<(Grade, Vec<u32>)> = attempts.collect();
        // Stable: of equals the first.
        attempts.sort_by_key(|attempt| attempt.0);
        attempts.dedup_by(|a, b| a.0 == b.0);
        if layer == settings.beam_layers.min(layers - 1) {
            attempts.truncate(1);
        }
        kept = attempts.into_iter().map(|attempt| attempt.1).collect();
    }
    kept.swap_remove(0)
}

/// All in the only block of the first layer.
fn start(problem: &Problem) -> Vec<u32> {
    vec![0; problem.graph.vertices()]
}

/// The placement in a layer that follows from that in the layer before.
fn descend(problem: &Problem, settings: &Settings, layer: usize, above: &[u32], seed: u64) -> Vec<u32> {
    let capacity = problem.capacities(layer);
    let mut block_of = split(problem, settings, layer, above, &capacity, None, seed);
    refine_layer(problem, settings, layer, &mut block_of, &capacity, None, seed);
    let is_large = problem.movable > LARGE;
    if layer <= if is_large { settings.again_layers_of_large } else { settings.again_layers } {
        cut_again(problem, settings, layer, &mut block_of, seed);
    }
    block_of
}

/// Cuts the blocks of the layer before `layer` once more, now that it is known where all others went, and keeps that if it
/// is better.
fn cut_again(problem: &Problem, settings: &Settings, layer: usize, block_of: &mut Vec<u32>, seed: u64) {
    let parents = problem.machine.layers[layer - 1].children.iter().zip(0u32..);
    let mut parent_of = vec![0; problem.machine.layers[layer].blocks()];
    for (children, parent) in parents {
        children.iter().filter(|&&child| child != NONE).for_each(|&child| parent_of[child as usize] = parent);
    }
    let above: Vec<u32> = block_of.iter().map(|&block| parent_of[block as usize]).collect();
    let capacity = problem.capacities(layer);
    let seed = seed.wrapping_add(AGAIN);
    let mut again = split(problem, settings, layer, &above, &capacity, Some(block_of), seed);
    if again == *block_of {
        return;
    }
    refine_layer(problem, settings, layer, &mut again, &capacity, None, seed);
    if grade(problem, layer, &again) < grade(problem, layer, block_of) {
        *block_of = again;
    }
}

/// How good a placement in a layer is.
pub(crate) fn grade(problem: &Problem, layer: usize, block_of: &[u32]) -> Grade {
    let capacity = problem.capacities(layer);
    let mut loads = vec![0; capacity.len()];
    block_of.iter().zip(&problem.graph.loads).for_each(|(&block, load)| loads[block as usize] += load);
    let overload = loads.iter().zip(&capacity).map(|(load, capacity)| (load - capacity).max(0)).sum();
    (overload, cost(&problem.graph, &problem.machine.layers[layer].distance, block_of))
}

/// Weights times distances, over all edges.
pub(crate) fn cost(graph: &Csr, distance: &impl Metric, block_of: &[u32]) -> i64 {
    let of_vertex = |v: usize| -> i64 {
        let higher = graph.row(v).iter().filter(|half| half.to as usize > v);
        higher
            .map(|half| i64::from(half.weight) * distance.between(block_of[v], block_of[half.to as usize]))
            .sum()
    };
    let vertices = 0..graph.vertices();
    if vertices.len() < PARALLEL {
        vertices.map(of_vertex).sum()
    } else {
        vertices.into_par_iter().map(of_vertex).sum()
    }
}

/// Splits the blocks of the layer before `layer`.
///
/// With a placement that is there already, blocks are split to which that tells anything: those that something outside
/// draws to one side.
fn split(
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
    if problem.machine.is_tree {
        settings.effort.tries /= 2;
    }
    let piece = |block: u32| {
        let members = groups.members(block as usize);
        Piece { problem, layer, block, members, above, place_of: &place_of, again: present.is_some() }
    };
    // Hardly any of few blocks can be split together; but what is coarser does not depend on where the others go.
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

/// Blocks in the order they can be split in: those of a level wait for none of the same.
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

/// A block to be split.
struct Piece<'a> {
    problem: &'a Problem<'a>,
    /// The layer of its halves.
    layer: usize,
    block: u32,
    members: &'a [u32],
    /// By vertex: its block in the layer before, and its place among the members of that.
    above: &'a [u32],
    place_of: &'a [u32],
    /// Whether it was split before.
    again: bool,
}

/// What of a block is known before the blocks it waits for are split.
struct Prepared {
    /// Its members and what they exchange; none if that is the whole graph.
    graph: Option<Csr>,
    chain: Chain,
    /// As they are after that.
    dice: ChaCha8Rng,
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
        let mut dice = generator(seed, SPLIT_STREAM | (self.layer as u64) << 32 | u64::from(self.block));
        let graph = (!self.is_whole()).then(|| {
            let mut graph = Csr::with_capacity(self.members.len());
            for &v in self.members {
                let inside = whole.row(v as usize).iter().filter(|half| self.is_inside(half.to));
                let half = |half: &Half| Half { to: self.place_of[half.to as usize], weight: half.weight };
                graph.push(whole.loads[v as usize], inside.map(half));
            }
            graph
        });
        let chain = Chain::new(graph.as_ref().unwrap_or(whole), &settings.effort, &mut dice);
        Prepared { graph, chain, dice }
    }

    /// By member: what it costs more in `y` than in `x`. What is outside is where `below` says, or else, for who was not
    /// split yet, in the middle of its block.
    fn bias(&self, [x, y]: [u32; 2], below: &[u32]) -> Vec<i64> {
        let distance = &self.problem.machine.layers[self.layer].distance;
        let children = &self.problem.machine.layers[self.layer - 1].children;
        let drawn = |&v: &u32| {
            let mut drawn = 0;
            for half in self.problem.graph.row(v as usize) {
                if self.is_inside(half.to) {
                    continue;
                }
                let weight = i64::from(half.weight);
                let farther = |place: u32| weight * (distance.between(y, place) - distance.between(x, place));
                if below[half.to as usize] != NONE {
                    drawn += 2 * farther(below[half.to as usize]);
                } else {
                    let [a, b] = children[self.above[half.to as usize] as usize];
                    drawn += farther(a) + farther(if b == NONE { a } else { b });
                }
            }
            drawn
        };
        self.members.iter().map(drawn).collect()
    }

    /// The side of each member. None the second time if nothing outside says more than was known.
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
        let bias = if settings.is_drawn && !is_whole { self.bias([x, y], below) } else { Vec::new() };
        if self.again && bias.iter().all(|&drawn| drawn == 0) {
            return None;
        }
        let Prepared { graph, chain, mut dice } = prepared.unwrap_or_else(|| self.prepare(settings, seed));
        let graph = graph.as_ref().unwrap_or(&self.problem.graph);
        let room = i128::from((capacity[0] + capacity[1]).max(1));
        let target = (i128::from(graph.total_load()) * i128::from(capacity[0]) / room) as i64;
        let distance = &self.problem.machine.layers[self.layer].distance;
        let edge_cost = if is_whole { 1 } else { 2 * distance.between(x, y) };
        let halves = Halves { graph, edge_cost, bias: &bias, capacity, target };
        Some(chain.bisect(&halves, &settings.effort, &mut dice))
    }
}

/// Refines a placement in a layer.
pub(crate) fn refine_layer(
    problem: &Problem,
    settings: &Settings,
    layer: usize,
    block_of: &mut [u32],
    capacity: &[i64],
    homes: Option<Homes>,
    seed: u64,
) {
    let refinement = Refinement {
        graph: &problem.graph,
        movable: problem.movable,
        layer,
        is_last: layer + 1 == problem.machine.layers.len(),
        capacity,
        homes,
        seed,
    };
    with_metric!(&problem.machine.layers[layer].distance, metric => refinement.run(problem, settings, metric, block_of));
}

/// A refinement of a placement.
pub(crate) struct Refinement<'a> {
    /// The graph of the problem, or a coarser one.
    pub graph: &'a Csr,
    pub movable: usize,
    pub layer: usize,
    /// Whether this is the final refinement, of vertices that are objects in blocks that are PEs.
    pub is_last: bool,
    pub capacity: &'a [i64],
    pub homes: Option<Homes<'a>>,
    pub seed: u64,
}

impl Refinement<'_> {
    pub fn run<M: Metric>(&self, problem: &Problem, settings: &Settings, metric: &M, block_of: &mut [u32]) {
        let layer = &problem.machine.layers[self.layer];
        let blocks = layer.blocks();
        self.swap_blocks(metric, &layer.near, block_of);
        let board = Board {
            graph: self.graph,
            movable: self.movable,
            distance: metric,
            near: &layer.near,
            capacity: self.capacity,
            homes: self.homes,
            looks_near: self.movable <= FEW_OBJECTS_PER_PE * blocks,
        };
        let mut dice = generator(self.seed, REFINE_STREAM | self.layer as u64);
        let mut state = State::new(&board, block_of);
        repair(&mut state, settings.repacks);
        let is_huge = self.movable > MANY_VERTICES && self.movable < FEW_OBJECTS_PER_BLOCK * blocks;
        let is_local = settings.patience > 0 && !is_huge;
        if is_local {
            let rounds = if self.is_last { LAST_ROUNDS } else { ROUNDS };
            local::refine(&mut state, rounds, settings.patience, &mut dice);
        } else {
            state.greedy(if self.is_last { LAST_PASSES } else { PASSES }, &mut dice);
        }
        if !self.is_last {
            return;
        }
        for _ in 0..if settings.swaps { SWAP_ROUNDS } else { 0 } {
            let saved = swaps::refine(&mut state, SWAP_PASSES, &mut dice);
            if saved == 0 || !is_local || local::refine(&mut state, 1, settings.patience, &mut dice) == 0 {
                break;
            }
        }
    }

    /// Where the vertices of each block are at home, and what it saves to live there.
    fn pulls(&self, block_of: &[u32]) -> Vec<Vec<(u32, i64)>> {
        let Some(homes) = self.homes else { return Vec::new() };
        let mut pulls = vec![Vec::new(); self.capacity.len()];
        for v in (0..self.movable).filter(|&v| homes.home_of[v] != NONE) {
            pulls[block_of[v] as usize].push((homes.home_of[v], homes.leave_costs[v]));
        }
        let merge = |pulls: &mut Vec<(u32, i64)>| {
            pulls.sort_unstable();
            pulls.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        };
        pulls.iter_mut().for_each(merge);
        pulls
    }

    /// Whole blocks change places.
    fn swap_blocks<M: Metric>(&self, metric: &M, near: &super::machine::Near, block_of: &mut [u32]) {
        let blocks = self.capacity.len();
        let anchors = block_of[self.movable..].to_vec();
        let cluster_of: Vec<u32> = block_of[..self.movable]
            .iter()
            .copied()
            .chain((0..anchors.len()).map(|at| (blocks + at) as u32))
            .collect();
        let quotient = self.graph.contract(&cluster_of, blocks + anchors.len());
        let fits = |block: usize, place: usize| quotient.loads[block] <= self.capacity[place];
        let places = blocks::places(&quotient, &anchors, &self.pulls(block_of), metric, near, fits);
        block_of[..self.movable].iter_mut().for_each(|block| *block = places[*block as usize]);
    }
}

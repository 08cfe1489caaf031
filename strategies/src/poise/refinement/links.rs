//! The last step with `links=on`: reduces the time of the busiest link, for few additional hop-bytes.
//!
//! Minimal hop-bytes minimise the total traffic of all links, but not the traffic of the busiest link, which limits
//! performance when bandwidth is scarce. The time of a link is its bytes over its bandwidth. While the longest time falls, an object
//! whose bytes cross that link moves or is swapped, such that all links it touches stay below the previous maximum. Hop-bytes may
//! grow by [`MAX_GROWTH`] in total. Half of each volume is counted in each direction.

use equipoise_model::Topology;

use crate::partition::bisection::csr::Half;
use crate::poise::board::{Board, Homes, Scratch};
use crate::poise::machine::distance::Metric;
use crate::poise::objective::cost;
use crate::poise::problem::Problem;

/// The relative growth allowed for hop-bytes, with and without migration costs.
const MAX_GROWTH: f64 = 0.01;

/// The maximum number of moves.
const MAX_STEPS: usize = 500;

/// The maximum number of links on all routes that are followed. It limits the time on large machines.
const MAX_WALKED: usize = 200_000_000;

/// The maximum number of objects that are tried for the busiest link, those with most bytes over the link first; and
/// the maximum number of swap partners that are tried for each of these objects in a full block.
const OBJECTS: usize = 24;
const PARTNERS: usize = 16;

/// The maximum number of vertices that are examined as partners.
const MAX_EXAMINED: usize = 4096;

/// (object, new block) of each move.
type Moves = Vec<(u32, u32)>;

/// Lowers the time of the busiest link of a placement in the last layer.
pub(crate) fn relieve<M: Metric>(
    problem: &Problem,
    topology: &dyn Topology,
    metric: &M,
    homes: Option<Homes>,
    block_of: &mut [u32],
) {
    let mut traffic = Traffic::new(problem, topology, block_of);
    let board = problem.board(metric, &problem.capacity, homes, true);
    let mut loads = problem.loads(block_of);
    let mut scratch = Scratch::new(loads.len());
    // The remaining budget of growth: of hop-bytes, and of hop-bytes plus migration costs.
    let mut budget = [(cost(&problem.graph, metric, block_of) as f64 * MAX_GROWTH) as i64; 2];
    for _ in 0..MAX_STEPS {
        let (link, most) = traffic.busiest();
        if most == 0 || traffic.walked > MAX_WALKED {
            break;
        }
        let mut best: Option<(u128, [i64; 2], Moves)> = None;
        for v in traffic.over(link, block_of) {
            let here = block_of[v as usize];
            board.gather(v as usize, block_of, &mut scratch);
            board.list_candidates(v as usize, here, true, &mut scratch);
            for block in scratch.candidates.clone() {
                for moves in exchanges(&board, &loads, block_of, v, block) {
                    let origins: Vec<(u32, u32)> =
                        moves.iter().map(|&(u, _)| (u, block_of[u as usize])).collect();
                    let growth = traffic.apply(block_of, &moves, &board);
                    let peak = traffic.peak();
                    traffic.apply(block_of, &origins, &board);
                    let is_better = best.as_ref().is_none_or(|best| (peak, growth[1]) < (best.0, best.1[1]));
                    let is_cheap = growth[0] <= budget[0] && growth[1] <= budget[1];
                    if peak < most && is_cheap && is_better {
                        best = Some((peak, growth, moves));
                    }
                }
            }
        }
        let Some((_, growth, moves)) = best else { break };
        for &(v, block) in &moves {
            let load = problem.graph.loads[v as usize];
            loads[block_of[v as usize] as usize] -= load;
            loads[block as usize] += load;
        }
        traffic.apply(block_of, &moves, &board);
        budget.iter_mut().zip(growth).for_each(|(budget, growth)| *budget -= growth);
    }
}

/// The moves that bring `v` into `block`: alone if there is room, else in exchange for another object.
fn exchanges<M: Metric>(board: &Board<M>, loads: &[i64], block_of: &[u32], v: u32, block: u32) -> Vec<Moves> {
    let load = |v: u32| board.graph.loads[v as usize];
    let here = block_of[v as usize];
    let room = |block: u32| board.capacity[block as usize] - loads[block as usize];
    if load(v) <= room(block) {
        return vec![vec![(v, block)]];
    }
    let fits = |u: &u32| load(v) - load(*u) <= room(block) && load(*u) - load(v) <= room(here);
    // The neighbors of `v`, and the neighbors of these neighbors, are the best partners.
    let mut partners: Vec<u32> = Vec::new();
    let around = |v: u32| board.graph.row(v as usize).iter().map(|half| half.to);
    for u in around(v).chain(around(v).flat_map(around)).take(MAX_EXAMINED) {
        let is_there = (u as usize) < board.movable && u != v && block_of[u as usize] == block;
        if is_there && partners.len() < PARTNERS && !partners.contains(&u) && fits(&u) {
            partners.push(u);
        }
    }
    partners.into_iter().map(|u| vec![(v, block), (u, here)]).collect()
}

/// The unit of slowness, in seconds per byte: a link of 1 TB/s has 1,000,000 units.
const UNIT_SECONDS: f64 = 1e-18;

/// The times of links.
struct Traffic<'a> {
    problem: &'a Problem<'a>,
    topology: &'a dyn Topology,
    /// By link: the sum of weights, each counted once per direction, times its slowness. Neither sums of weights nor slowness exceed 64 bits.
    times: Vec<u128>,
    /// By link: the time of a byte, in [`UNIT_SECONDS`]; 0 for links that no route has crossed.
    slowness: Vec<u64>,
    /// Links changed by the last moves.
    touched: Vec<usize>,
    route: Vec<usize>,
    walked: usize,
}

impl<'a> Traffic<'a> {
    fn new(problem: &'a Problem, topology: &'a dyn Topology, block_of: &[u32]) -> Traffic<'a> {
        let (times, slowness) = (vec![0; topology.links()], vec![0; topology.links()]);
        let (touched, route) = (Vec::new(), Vec::new());
        let mut traffic = Traffic { problem, topology, times, slowness, touched, route, walked: 0 };
        for v in 0..problem.graph.vertices() {
            for half in problem.graph.row(v) {
                traffic.add(block_of[v], block_of[half.to as usize], half.weight, true);
            }
        }
        traffic.touched.clear();
        traffic
    }

    /// The busiest link and its time; the lowest-numbered of equals.
    fn busiest(&self) -> (usize, u128) {
        let first = |best: (usize, u128), (link, &time): (usize, &u128)| {
            if time > best.1 { (link, time) } else { best }
        };
        self.times.iter().enumerate().fold((0, 0), first)
    }

    /// The longest time of the touched links.
    fn peak(&self) -> u128 {
        self.touched.iter().map(|&link| self.times[link]).max().unwrap_or(0)
    }

    fn pe(&self, block: u32) -> usize {
        self.problem.machine.order[block as usize] as usize
    }

    /// Adds (`is_more`) or removes the traffic from one block to another.
    fn add(&mut self, from: u32, to: u32, weight: u32, is_more: bool) {
        if from == to {
            return;
        }
        self.route.clear();
        self.topology.route(self.pe(from), self.pe(to), &mut self.route);
        self.walked += self.route.len();
        for &link in &self.route {
            let slowness = &mut self.slowness[link];
            if *slowness == 0 {
                *slowness = ((1.0 / self.topology.link(link).bandwidth / UNIT_SECONDS).round() as u64).max(1);
            }
            let (time, change) = (&mut self.times[link], u128::from(weight) * u128::from(*slowness));
            *time = if is_more { *time + change } else { *time - change };
        }
        self.touched.extend_from_slice(&self.route);
    }

    /// The objects with most bytes over a link.
    fn over(&mut self, link: usize, block_of: &[u32]) -> Vec<u32> {
        let mut over: Vec<(u64, u32)> = Vec::new();
        for v in 0..self.problem.movable {
            let mut sum = 0;
            for &Half { to, weight } in self.problem.graph.row(v) {
                for (a, b) in [(block_of[v], block_of[to as usize]), (block_of[to as usize], block_of[v])] {
                    if a == b {
                        continue;
                    }
                    self.route.clear();
                    self.topology.route(self.pe(a), self.pe(b), &mut self.route);
                    self.walked += self.route.len();
                    sum += if self.route.contains(&link) { u64::from(weight) } else { 0 };
                }
            }
            if sum > 0 {
                over.push((u64::MAX - sum, v as u32));
            }
        }
        over.sort_unstable();
        over.truncate(OBJECTS);
        over.into_iter().map(|(_, v)| v).collect()
    }

    /// Applies moves, and records the changed links in `touched`. Returns the growth of the cost, without and with migration
    /// costs.
    fn apply<M: Metric>(&mut self, block_of: &mut [u32], moves: &[(u32, u32)], board: &Board<M>) -> [i64; 2] {
        self.touched.clear();
        let (mut growth, mut away) = (0, 0);
        for &(v, block) in moves {
            let here = block_of[v as usize];
            if let Some(homes) = board.homes {
                let cost = |block| {
                    if homes.home_of[v as usize] == block { 0 } else { homes.migration_costs[v as usize] }
                };
                away += cost(block) - cost(here);
            }
            for half in board.graph.row(v as usize) {
                let other = block_of[half.to as usize];
                growth += i64::from(half.weight)
                    * (board.distance.between(block, other) - board.distance.between(here, other));
            }
            self.relocate(block_of, v, block);
        }
        [growth, growth + away]
    }

    /// Moves an object.
    fn relocate(&mut self, block_of: &mut [u32], v: u32, block: u32) {
        let graph = &self.problem.graph;
        let here = std::mem::replace(&mut block_of[v as usize], block);
        for &Half { to, weight } in graph.row(v as usize) {
            let other = block_of[to as usize];
            self.add(here, other, weight, false);
            self.add(other, here, weight, false);
            self.add(block, other, weight, true);
            self.add(other, block, weight, true);
        }
    }
}

//! Select_Pair: chooses the PE of a task in two steps.

use std::cmp::Reverse;

use equipoise_model::Topology;
use equipoise_network::program::Model;

use super::Rules;
use super::bounds::Bounds;
use super::host::Host;
use super::tasks::Tasks;
use crate::cost::contention::Estimate;

/// The maximum number of candidates that all tasks together keep for backtracking.
const MAX_KEPT: usize = 1 << 24;
/// The number of candidates that each task keeps at least.
const LEAST_KEPT: usize = 16;

/// Chooses PEs, and keeps the state of the placement between choices.
pub(super) struct Chooser<'a> {
    model: &'a Model,
    topology: &'a dyn Topology,
    host: &'a Host,
    rules: &'a Rules,
    /// By PE: the sum of the degrees around it.
    degrees_around: Vec<u64>,
    /// By PE: the number of PEs one hop away without a task; empty if [`Host::degree`] is empty.
    free_neighbors: Vec<u64>,
    /// By PE: the number of its tasks.
    tasks: Vec<u32>,
    /// By PE: the bytes that its tasks need.
    memory: Vec<u64>,
    /// The box that holds all used PEs.
    bounds: Bounds,
    /// T: the number of tasks, without PEs that are ends of edges.
    count: usize,
    row: Vec<u32>,
    route: Vec<usize>,
    scores: Vec<Score>,
    /// The PEs with the largest R without the task, the largest first.
    largest: Vec<u32>,
}

/// F' of a candidate. Fields are compared in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    /// Whether the candidate comes after all used PEs.
    is_free: bool,
    largest: i64,
    sum: i64,
    pe: u32,
}

/// Equation (4) of a task on each of [`Host::available`], for the partners that have a place.
struct Hops<'a> {
    /// Equation (4) for messages that the task receives, in ticks.
    own: Vec<i64>,
    /// Equation (4) for messages that the task sends, in ticks.
    theirs: Vec<i64>,
    /// The largest R of the other PEs on which partners of the task are.
    elsewhere: Vec<i64>,
    /// The channels to and from partners on the same PE, which cross no link, as (PE, channel).
    shared: Vec<&'a [(u32, u32)]>,
}

/// A candidate that was evaluated by F.
struct Judged {
    pe: u32,
    ticks: i64,
    /// The sum of R.
    sum: i64,
    /// The cost of the look-ahead.
    ahead: u64,
    /// The difference between the number of partners without a place and the number of free neighbors.
    left: u64,
    /// The difference between the sums of degrees of tasks and of PEs.
    degrees: u64,
    /// The number of PEs in the box of used PEs.
    volume: u64,
}

impl Judged {
    /// The criteria for similar values of F in the order of comparison. The paper does not have the criterion `left`.
    fn criteria(&self, paper: bool) -> (u64, i64, u64, u64, u64, u32) {
        let left = if paper { 0 } else { self.left };
        (self.ahead, self.sum, left, self.degrees, self.volume, self.pe)
    }
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        model: &'a Model,
        topology: &'a dyn Topology,
        host: &'a Host,
        rules: &'a Rules,
        radius: u32,
    ) -> Self {
        let pes = topology.pes();
        let mut chooser = Chooser {
            model,
            topology,
            host,
            rules,
            degrees_around: host.degrees_around(topology, radius),
            free_neighbors: host.degree.clone(),
            tasks: vec![0; pes],
            memory: vec![0; pes],
            bounds: host.no_bounds(),
            count: model.tasks.iter().filter(|task| !task.is_pe).count(),
            row: vec![0; pes],
            route: Vec::new(),
            scores: Vec::new(),
            largest: Vec::new(),
        };
        for (task, it) in model.tasks.iter().enumerate().filter(|(_, it)| !it.is_pe) {
            if let Some(pe) = it.stays_on {
                chooser.add(task, pe);
            }
        }
        chooser
    }

    /// Whether one more task fits into the memory of a PE.
    pub(super) fn has_room(&self, task: usize, pe: u32) -> bool {
        let needed = self.model.tasks[task].memory_bytes.unwrap_or(0);
        self.rules
            .memory_bytes
            .is_none_or(|most| self.memory[pe as usize].checked_add(needed).is_some_and(|sum| sum <= most))
    }

    /// Records that a task was put on a PE.
    pub(super) fn add(&mut self, task: usize, pe: u32) {
        let memory = &mut self.memory[pe as usize];
        *memory = memory.saturating_add(self.model.tasks[task].memory_bytes.unwrap_or(0));
        self.bounds.widen(self.host.position(pe));
        self.tasks[pe as usize] += 1;
        if self.tasks[pe as usize] == 1 {
            self.update_free_neighbors(pe, |free| *free = free.saturating_sub(1));
        }
    }

    /// Changes the count of free neighbors of all PEs one hop from `pe`.
    fn update_free_neighbors(&mut self, pe: u32, change: impl Fn(&mut u64)) {
        if self.free_neighbors.is_empty() {
            return;
        }
        self.topology.distances_from(pe as usize, &mut self.row);
        for (free, _) in self.free_neighbors.iter_mut().zip(&self.row).filter(|(_, distance)| **distance == 1)
        {
            change(free);
        }
    }

    /// Records that a task was removed from a PE. (The box of used PEs does not shrink.)
    pub(super) fn remove(&mut self, task: usize, pe: u32) {
        let memory = &mut self.memory[pe as usize];
        *memory = memory.saturating_sub(self.model.tasks[task].memory_bytes.unwrap_or(0));
        self.tasks[pe as usize] -= 1;
        if self.tasks[pe as usize] == 0 {
            self.update_free_neighbors(pe, |free| *free += 1);
        }
    }

    /// The candidate PEs of a task, the best one last; only the best one if memory is unbounded.
    pub(super) fn choose(&mut self, estimate: &mut Estimate, tasks: &Tasks, task: usize) -> Vec<u32> {
        self.score(estimate, task);
        let partners = tasks.mapped_partners(task);
        let judged = match partners {
            0 => self.scores.len(),
            _ => ((2 * self.host.dimensions + 1) * partners).min(self.scores.len()),
        };
        if judged == 0 {
            return Vec::new();
        }
        if judged < self.scores.len() {
            self.scores.select_nth_unstable(judged);
        }
        let mut first: Vec<Score> = self.scores[..judged].to_vec();
        first.sort_unstable();
        let best = self.judge(estimate, tasks, task, &first);
        if self.rules.memory_bytes.is_none() {
            return vec![best];
        }
        self.scores.sort_unstable();
        self.scores.truncate(self.most_kept());
        let mut candidates: Vec<u32> =
            self.scores.iter().rev().map(|score| score.pe).filter(|&pe| pe != best).collect();
        candidates.push(best);
        candidates
    }

    /// The maximum number of candidates that a task keeps for backtracking.
    fn most_kept(&self) -> usize {
        (MAX_KEPT / self.count.max(1)).max(LEAST_KEPT)
    }

    /// Whether every task keeps all its candidates.
    pub(super) fn keeps_all(&self) -> bool {
        let one_each = self.count <= self.host.available.len() && !self.rules.share;
        self.host.available.len() <= self.most_kept() && !one_each
    }

    /// Step one: computes F' of every PE with room for the task.
    fn score(&mut self, estimate: &Estimate, task: usize) {
        let base = estimate.without_contention();
        let channel = |&number: &u32| {
            let channel = &self.model.channels[number as usize];
            let partner = if channel.to as usize == task { channel.from } else { channel.to };
            estimate.place_of(partner as usize).map(|place| (place, number))
        };
        let mut channels: Vec<(u32, u32)> = estimate.channels_of(task).iter().filter_map(channel).collect();
        channels.sort_unstable();
        let mut ends: Vec<u32> = channels.iter().map(|it| it.0).collect();
        ends.dedup();
        let hops = self.hops(estimate, task, &channels);
        self.find_largest(base, ends.len() + 2);
        let total: i64 = base.iter().sum();
        self.scores.clear();
        let mut numbers = Vec::new();
        for (position, &pe) in self.host.available.iter().enumerate() {
            if !self.has_room(task, pe) {
                continue;
            }
            numbers.clear();
            numbers.extend(hops.shared[position].iter().map(|it| it.1));
            let ticks = estimate.more_ticks(task, pe, &numbers) + hops.own[position];
            let here = base[pe as usize] + ticks;
            let is_changed = |other: u32| other == pe || ends.binary_search(&other).is_ok();
            let unchanged = self.largest.iter().find(|&&other| !is_changed(other));
            let unchanged = unchanged.map_or(i64::MIN, |&other| base[other as usize]);
            let largest = here.max(hops.elsewhere[position]).max(unchanged);
            self.scores.push(Score {
                is_free: false,
                largest,
                sum: total + ticks + hops.theirs[position],
                pe,
            });
        }
        self.apply_sharing_rules(estimate);
    }

    /// Equation (4) of a task on each available PE. `channels` are the PEs of its partners, ascending, each with a channel
    /// to or from it.
    fn hops<'b>(&mut self, estimate: &Estimate, task: usize, channels: &'b [(u32, u32)]) -> Hops<'b> {
        let base = estimate.without_contention();
        let pes = self.host.available.len();
        let (own, theirs, shared): (_, _, Vec<&[(u32, u32)]>) = (vec![0; pes], vec![0; pes], vec![&[]; pes]);
        let mut hops = Hops { own, theirs, elsewhere: vec![i64::MIN; pes], shared };
        let mut more = vec![0i64; pes];
        for of_end in channels.chunk_by(|a, b| a.0 == b.0) {
            let end = of_end[0].0;
            self.topology.distances_from(end as usize, &mut self.row);
            more.fill(0);
            for &(_, number) in of_end {
                let receives = self.model.channels[number as usize].to as usize == task;
                let sums = if receives { &mut hops.own } else { &mut more };
                for (sum, &pe) in sums.iter_mut().zip(&self.host.available) {
                    *sum += estimate.hop_ticks(number, self.row[pe as usize]);
                }
            }
            for (position, &more) in more.iter().enumerate() {
                hops.theirs[position] += more;
                if self.host.available[position] == end {
                    hops.shared[position] = of_end;
                } else {
                    hops.elsewhere[position] = hops.elsewhere[position].max(base[end as usize] + more);
                }
            }
        }
        hops
    }

    /// Finds the `enough` PEs with the largest R. `enough` is so large that the task leaves R of at least one of them
    /// unchanged.
    fn find_largest(&mut self, base: &[i64], enough: usize) {
        self.largest.clear();
        self.largest.extend(0..base.len() as u32);
        let enough = enough.min(base.len());
        let key = |&pe: &u32| (Reverse(base[pe as usize]), pe);
        if enough < base.len() {
            self.largest.select_nth_unstable_by_key(enough - 1, key);
        }
        self.largest.truncate(enough);
        self.largest.sort_unstable_by_key(key);
    }

    /// Removes used PEs if no PE is to be shared, or applies the usage-factor rule.
    fn apply_sharing_rules(&mut self, estimate: &Estimate) {
        if self.count <= self.host.available.len() {
            let is_free = |score: &Score| estimate.tasks_on()[score.pe as usize] == 0;
            if !self.rules.share && self.scores.iter().any(is_free) {
                self.scores.retain(is_free);
            }
        } else if self.rules.usage {
            self.prefer_used(estimate);
        }
    }

    /// The usage-factor rule: used PEs come first while they have fewer tasks than the final mean per PE.
    fn prefer_used(&mut self, estimate: &Estimate) {
        let (all, pes) = (self.count as u128, self.host.available.len() as u128);
        let (placed, occupied) = estimate.used();
        if (placed as u128) * pes < all * occupied as u128 {
            for score in &mut self.scores {
                score.is_free = estimate.tasks_on()[score.pe as usize] == 0;
            }
        }
    }

    /// Step two: the best candidate by F; similar candidates are compared by the other criteria.
    fn judge(&mut self, estimate: &mut Estimate, tasks: &Tasks, task: usize, first: &[Score]) -> u32 {
        let mut judged: Vec<Judged> = Vec::with_capacity(first.len());
        let mut least = i64::MAX;
        for &Score { pe, .. } in first {
            let mark = estimate.mark();
            estimate.put(task, pe);
            let ticks = estimate.ticks();
            least = least.min(ticks);
            let limit = self.limit(least);
            if ticks <= limit {
                let around = tasks.degrees_around(task);
                let there = self.degrees_around.get(pe as usize);
                let degrees = around.zip(there).map_or(0, |(here, &there)| here.abs_diff(there));
                let left = (tasks.partners(task).len() - tasks.mapped_partners(task)) as u64;
                let left = self.free_neighbors.get(pe as usize).map_or(0, |&free| left.abs_diff(free));
                let sum = estimate.summed_ticks();
                let volume = self.bounds.volume_with(self.host.position(pe));
                judged.push(Judged { pe, ticks, sum, ahead: 0, left, degrees, volume });
            }
            estimate.undo(mark);
        }
        let limit = self.limit(least);
        judged.retain(|it| it.ticks <= limit);
        if !self.rules.paper {
            let sum = judged.iter().map(|it| it.sum).min();
            judged.retain(|it| Some(it.sum) == sum);
        }
        if self.rules.look_ahead && judged.len() > 1 {
            for it in &mut judged {
                let mark = estimate.mark();
                estimate.put(task, it.pe);
                it.ahead = self.look_ahead(estimate, tasks, task, it.pe);
                estimate.undo(mark);
            }
        }
        let best = judged.iter().min_by_key(|it| it.criteria(self.rules.paper));
        best.map_or(first[0].pe, |it| it.pe)
    }

    /// The largest estimate that is similar to the least estimate.
    fn limit(&self, least: i64) -> i64 {
        least.saturating_add((least.max(0) as f64 * self.rules.similar) as i64)
    }

    /// The distances and used links between `pe`, the place of the task, and the mapped partners of its unmapped partners.
    pub(super) fn look_ahead(&mut self, estimate: &Estimate, tasks: &Tasks, task: usize, pe: u32) -> u64 {
        let mut cost = 0;
        for &partner in tasks.partners(task).iter().filter(|&&it| !tasks.is_mapped(it as usize)) {
            for &other in tasks.partners(partner as usize) {
                // The task itself does not count.
                let Some(place) = estimate.place_of(other as usize).filter(|_| other as usize != task) else {
                    continue;
                };
                cost += u64::from(self.topology.distance(pe as usize, place as usize));
                cost += self.used_links(estimate, pe, place);
                if self.host.is_one_line(pe, place) {
                    cost += self.used_links(estimate, place, pe);
                }
            }
        }
        cost
    }

    /// The number of links on the route from one PE to another that some channel uses.
    fn used_links(&mut self, estimate: &Estimate, from: u32, to: u32) -> u64 {
        self.route.clear();
        self.topology.route(from as usize, to as usize, &mut self.route);
        self.route.iter().filter(|&&link| estimate.is_link_used(link)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use equipoise_model::topology;
    use equipoise_network::program::{Costs, OVERLAP, Waits, load};

    use super::*;
    use crate::cost::contention::Speeds;

    #[test]
    fn used_pes_come_first_until_they_have_the_mean_of_tasks() {
        let program = load("ring:n=6").expect("a program");
        let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
        let machine = topology::parse("mesh:3").expect("a mesh");
        let (host, speeds) = (Host::new(&*machine, &[0, 1, 2]), Speeds::default());
        for (usage, tasks, expected) in
            [(true, &[0][..], [true, false, true]), (true, &[0, 1], [false; 3]), (false, &[0], [false; 3])]
        {
            let rules = Rules { usage, ..Rules::default() };
            let mut chooser = Chooser::new(&model, &*machine, &host, &rules, 2);
            let mut estimate = Estimate::new(&model, &*machine, &speeds);
            for &task in tasks {
                estimate.put(task, 1);
                chooser.add(task, 1);
            }
            chooser.score(&estimate, 5);
            let is_later: Vec<bool> = chooser.scores.iter().map(|score| score.is_free).collect();
            assert_eq!(is_later, expected, "{tasks:?} with usage={usage}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn f_prime_is_the_largest_r_without_contention_when_the_task_is_there(
            program in prop::sample::select(vec!["random:n=12,degree=4", "tree:n=12", "mesh:sizes=4x3", "elimination:n=9"]),
            machine in prop::sample::select(vec!["mesh:3x3", "torus:5", "hypercube:3", "tree:2:3/5:1"]),
            waits in prop::sample::select(vec![Waits::Added, Waits::Overlapped]),
            choices in prop::collection::vec((0..12usize, 0..100u32), 1..12),
        ) {
            let program = load(program).expect("a program");
            let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
            let model = Model { waits, ..model };
            let machine = topology::parse(machine).expect("a machine");
            let all: Vec<u32> = (0..machine.pes() as u32).collect();
            let host = Host::new(&*machine, &all);
            let rules = Rules { share: true, ..Rules::default() };
            let mut chooser = Chooser::new(&model, &*machine, &host, &rules, 2);
            let speeds = Speeds::default();
            let mut estimate = Estimate::new(&model, &*machine, &speeds);
            for (task, pe) in choices {
                let (task, pe) = (task % model.tasks.len(), pe % machine.pes() as u32);
                if estimate.place_of(task).is_some() {
                    continue;
                }
                chooser.score(&estimate, task);
                prop_assert_eq!(chooser.scores.len(), machine.pes());
                for &Score { pe, largest, sum, .. } in &chooser.scores {
                    let mark = estimate.mark();
                    estimate.put(task, pe);
                    let r = estimate.without_contention();
                    let expected = (r.iter().copied().max(), r.iter().sum::<i64>());
                    estimate.undo(mark);
                    prop_assert_eq!((Some(largest), sum), expected, "task {} on PE {}", task, pe);
                }
                estimate.put(task, pe);
                chooser.add(task, pe);
            }
        }
    }
}

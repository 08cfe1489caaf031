//! Select_Pair: the PE of a task, in two steps.

use std::cmp::Reverse;

use super::ContentionLb;
use super::bounds::Bounds;
use super::host::Host;
use super::tasks::Tasks;
use crate::Topology;
use crate::cost::contention::Estimate;
use crate::program::Model;

/// How many PEs are kept for all tasks, and at least for one, to be tried when decisions are taken back.
const MAX_KEPT: usize = 1 << 24;
const LEAST_KEPT: usize = 16;

/// Chooses PEs, with what it needs for that from one time to the next.
pub(super) struct Chooser<'a> {
    model: &'a Model,
    topology: &'a dyn Topology,
    host: &'a Host,
    config: &'a ContentionLb,
    /// By PE: the degrees around it.
    degrees_around: Vec<u64>,
    /// By PE: how many PEs one hop away have no task; empty where there are too many PEs to know.
    free_neighbors: Vec<u64>,
    /// By PE: how many tasks it has, and the bytes that these need.
    tasks: Vec<u32>,
    memory: Vec<u64>,
    /// The box that holds all used PEs.
    bounds: Bounds,
    /// T: how many tasks there are, PEs that are ends of edges not among them.
    count: usize,
    row: Vec<u32>,
    route: Vec<usize>,
    scores: Vec<Score>,
    /// PEs by what they are without the task, for the largest of the others.
    largest: Vec<u32>,
}

/// F' of a candidate: what is compared first comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    /// Whether it comes after those that have tasks.
    is_free: bool,
    largest: i64,
    sum: i64,
    pe: u32,
}

/// Equation (4) of a task on each of [`Host::available`], with the partners that have places.
struct Hops<'a> {
    /// The hops of what it receives.
    own: Vec<i64>,
    /// Those of what it sends, to all.
    theirs: Vec<i64>,
    /// The largest R of its partners elsewhere.
    elsewhere: Vec<i64>,
    /// The channels to and from partners on that PE, which have no way to go: that PE, and the channel.
    shared: Vec<&'a [(u32, u32)]>,
}

/// A candidate that was judged by F.
struct Judged {
    pe: u32,
    ticks: i64,
    /// The sum of R.
    sum: i64,
    /// The look-ahead.
    ahead: u64,
    /// The difference between the partners that are left and the free neighbors.
    left: u64,
    /// The difference between degrees.
    degrees: u64,
    /// The PEs in the box.
    volume: u64,
}

impl Judged {
    /// The criteria for similar values, the first first; in the order of the paper, which has not all of them, or in ours.
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
        config: &'a ContentionLb,
        radius: u32,
    ) -> Self {
        let pes = topology.pes();
        let mut chooser = Chooser {
            model,
            topology,
            host,
            config,
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
                chooser.took(task, pe);
            }
        }
        chooser
    }

    /// Whether the memory of a PE holds one more task.
    pub(super) fn has_room(&self, task: usize, pe: u32) -> bool {
        let needed = self.model.tasks[task].memory_bytes.unwrap_or(0);
        self.config
            .memory_bytes
            .is_none_or(|most| self.memory[pe as usize].checked_add(needed).is_some_and(|sum| sum <= most))
    }

    /// A task was put on a PE.
    pub(super) fn took(&mut self, task: usize, pe: u32) {
        let memory = &mut self.memory[pe as usize];
        *memory = memory.saturating_add(self.model.tasks[task].memory_bytes.unwrap_or(0));
        self.bounds.widen(self.host.position(pe));
        self.tasks[pe as usize] += 1;
        if self.tasks[pe as usize] == 1 {
            self.neighbors(pe, |free| *free = free.saturating_sub(1));
        }
    }

    /// Changes the count of free neighbors of all PEs one hop from this one.
    fn neighbors(&mut self, pe: u32, change: impl Fn(&mut u64)) {
        if self.free_neighbors.is_empty() {
            return;
        }
        self.topology.distances_from(pe as usize, &mut self.row);
        for (free, _) in self.free_neighbors.iter_mut().zip(&self.row).filter(|(_, distance)| **distance == 1)
        {
            change(free);
        }
    }

    /// A task was taken from a PE. (The box of used PEs stays as large as it was.)
    pub(super) fn gave_back(&mut self, task: usize, pe: u32) {
        let memory = &mut self.memory[pe as usize];
        *memory = memory.saturating_sub(self.model.tasks[task].memory_bytes.unwrap_or(0));
        self.tasks[pe as usize] -= 1;
        if self.tasks[pe as usize] == 0 {
            self.neighbors(pe, |free| *free += 1);
        }
    }

    /// The PEs that may take a task, the best one last; only that one, unless there is a bound on memory.
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
        if self.config.memory_bytes.is_none() {
            return vec![best];
        }
        self.scores.sort_unstable();
        self.scores.truncate(self.most_kept());
        let mut candidates: Vec<u32> =
            self.scores.iter().rev().map(|score| score.pe).filter(|&pe| pe != best).collect();
        candidates.push(best);
        candidates
    }

    /// How many PEs are kept for a task, to be tried when decisions are taken back.
    fn most_kept(&self) -> usize {
        (MAX_KEPT / self.count.max(1)).max(LEAST_KEPT)
    }

    /// Whether all PEs are kept that may take a task.
    pub(super) fn keeps_all(&self) -> bool {
        let one_each = self.count <= self.host.available.len() && self.config.share != Some(true);
        self.host.available.len() <= self.most_kept() && !one_each
    }

    /// Step one: F' of every PE that may take the task.
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
        self.prefer(estimate);
    }

    /// Equation (4) of a task on each PE that may take it, whose channels to and from PEs with partners, ascending by these, are
    /// `channels`.
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

    /// Finds the PEs with the largest R, so many that one is among them which a task does not change.
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

    /// Which PEs are not shared, or shared first.
    fn prefer(&mut self, estimate: &Estimate) {
        if self.count <= self.host.available.len() {
            let is_free = |score: &Score| estimate.tasks_on()[score.pe as usize] == 0;
            if self.config.share != Some(true) && self.scores.iter().any(is_free) {
                self.scores.retain(is_free);
            }
        } else if self.config.usage {
            self.favor_used(estimate);
        }
    }

    /// The usage-factor rule: while the tasks per used PE are fewer than they will be on average, used PEs come first.
    fn favor_used(&mut self, estimate: &Estimate) {
        let (all, pes) = (self.count as u128, self.host.available.len() as u128);
        let (placed, occupied) = estimate.used();
        if (placed as u128) * pes < all * occupied as u128 {
            for score in &mut self.scores {
                score.is_free = estimate.tasks_on()[score.pe as usize] == 0;
            }
        }
    }

    /// Step two: the best of these by F, and of similar ones by the other criteria.
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
        if !self.config.paper {
            let sum = judged.iter().map(|it| it.sum).min();
            judged.retain(|it| Some(it.sum) == sum);
        }
        if self.config.look_ahead && judged.len() > 1 {
            for it in &mut judged {
                let mark = estimate.mark();
                estimate.put(task, it.pe);
                it.ahead = self.look_ahead(estimate, tasks, task, it.pe);
                estimate.undo(mark);
            }
        }
        let best = judged.iter().min_by_key(|it| it.criteria(self.config.paper));
        best.map_or(first[0].pe, |it| it.pe)
    }

    /// The largest estimate that is similar to the least one.
    fn limit(&self, least: i64) -> i64 {
        least.saturating_add((least.max(0) as f64 * self.config.similar) as i64)
    }

    /// What the partners of the task that come next will have to cross, if it is on that PE, where it is.
    pub(super) fn look_ahead(&mut self, estimate: &Estimate, tasks: &Tasks, task: usize, pe: u32) -> u64 {
        let mut cost = 0;
        for &partner in tasks.partners(task).iter().filter(|&&it| !tasks.is_mapped(it as usize)) {
            for &other in tasks.partners(partner as usize) {
                // The task itself has no distance to where it is.
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

    /// How many links from one PE to another some channel uses.
    fn used_links(&mut self, estimate: &Estimate, from: u32, to: u32) -> u64 {
        self.route.clear();
        self.topology.route(from as usize, to as usize, &mut self.route);
        self.route.iter().filter(|&&link| estimate.is_link_used(link)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::contention::Speeds;
    use crate::program::{Costs, OVERLAP, Waits, load};
    use crate::topology;

    #[test]
    fn used_pes_come_first_until_they_have_the_mean_of_tasks() {
        let program = load("ring:n=6").expect("a program");
        let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
        let machine = topology::parse("mesh:3").expect("a mesh");
        let (host, speeds) = (Host::new(&*machine, &[0, 1, 2]), Speeds::default());
        for (usage, tasks, expected) in
            [(true, &[0][..], [true, false, true]), (true, &[0, 1], [false; 3]), (false, &[0], [false; 3])]
        {
            let config = ContentionLb { usage, ..ContentionLb::default() };
            let mut chooser = Chooser::new(&model, &*machine, &host, &config, 2);
            let mut estimate = Estimate::new(&model, &*machine, &speeds);
            for &task in tasks {
                estimate.put(task, 1);
                chooser.took(task, 1);
            }
            chooser.score(&estimate, 5);
            let come_later: Vec<bool> = chooser.scores.iter().map(|score| score.is_free).collect();
            assert_eq!(come_later, expected, "{tasks:?} with usage={usage}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn f_prime_is_the_largest_r_without_contention_when_the_task_is_there(
            program in prop::sample::select(vec!["random:n=12,degree=4", "tree:n=12", "mesh:sizes=4x3", "elimination:n=9"]),
            machine in prop::sample::select(vec!["mesh:3x3", "torus:5", "hypercube:3", "tree:2:3/5:1"]),
            waits in prop::sample::select(vec![Waits::Added, Waits::Overlapped]),
            draws in prop::collection::vec((0..12usize, 0..100u32), 1..12),
        ) {
            let program = load(program).expect("a program");
            let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
            let model = Model { waits, ..model };
            let machine = topology::parse(machine).expect("a machine");
            let all: Vec<u32> = (0..machine.pes() as u32).collect();
            let host = Host::new(&*machine, &all);
            let config = ContentionLb { share: Some(true), ..ContentionLb::default() };
            let mut chooser = Chooser::new(&model, &*machine, &host, &config, 2);
            let speeds = Speeds::default();
            let mut estimate = Estimate::new(&model, &*machine, &speeds);
            for (task, pe) in draws {
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
                chooser.took(task, pe);
            }
        }
    }
}

//! The task interaction graph, and the choice of the next task to map.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;

use equipoise_model::random::{below, generator};
use equipoise_network::program::Model;

use super::MAX_SEARCHED;

type Entry = (u32, u32, Reverse<u32>, Reverse<u32>);

/// The time of an event that has not happened.
const NEVER: u32 = u32::MAX;

/// The tasks of a model, their partners, and whether each has a place.
#[derive(Clone)]
pub(crate) struct Tasks {
    partners: Arc<Vec<Vec<u32>>>,
    is_mapped: Vec<bool>,
    left: usize,
    /// By task: the number of partners with a place.
    mapped_partners: Vec<u32>,
    around: Arc<Surroundings>,
    /// By task: the number of tasks that had a mapped partner before this task had one; unused with `paper`.
    since: Vec<u32>,
    seen: u32,
    /// Tasks with mapped partners, as (number of mapped partners, number of nearby tasks, `since`, task). Outdated
    /// entries are discarded when they reach the top.
    heap: BinaryHeap<Entry>,
    rng: ChaCha8Rng,
    /// Whether ties go to the lowest task, as in the paper.
    paper: bool,
}

impl Tasks {
    /// The tasks of `model` for a machine of that diameter; fixed tasks are mapped.
    pub(crate) fn new(model: &Model, host_diameter: u32, seed: u64, paper: bool) -> Self {
        let count = model.tasks.len();
        let mut partners = vec![Vec::new(); count];
        for channel in &model.channels {
            partners[channel.from as usize].push(channel.to);
            partners[channel.to as usize].push(channel.from);
        }
        for list in &mut partners {
            list.sort_unstable();
            list.dedup();
        }
        let around = Surroundings::of(&partners, host_diameter, paper);
        let mut tasks = Tasks {
            is_mapped: vec![false; count],
            left: count,
            mapped_partners: vec![0; count],
            partners: Arc::new(partners),
            around: Arc::new(around),
            since: vec![NEVER; count],
            seen: 0,
            heap: BinaryHeap::new(),
            rng: generator(seed, 0xc0de),
            paper,
        };
        for task in (0..count).filter(|&task| model.tasks[task].stays_on.is_some()) {
            tasks.map(task);
        }
        tasks
    }

    /// The number of tasks.
    pub(crate) fn count(&self) -> usize {
        self.is_mapped.len()
    }

    /// Whether no task has a place.
    pub(crate) fn all_free(&self) -> bool {
        self.left == self.is_mapped.len()
    }

    /// The task with the least sum of distances to all.
    pub(crate) fn centre(&self) -> Option<usize> {
        (0..self.left).min_by_key(|&task| self.around.sums[task])
    }

    /// The task with the largest sum of distances to all.
    pub(crate) fn periphery(&self) -> Option<usize> {
        (0..self.is_mapped.len()).rev().max_by_key(|&task| self.around.sums[task])
    }

    /// g: the degrees of tasks nearer than this are compared.
    pub(crate) fn radius(&self) -> u32 {
        self.around.degree_radius
    }

    /// The sum of the degrees of `task` and of all tasks nearer to it than [`Self::radius`]; `None` above
    /// [`MAX_SEARCHED`].
    pub(crate) fn degrees_around(&self, task: usize) -> Option<u64> {
        self.around.degrees.get(task).copied()
    }

    /// The partners of a task, ascending.
    pub(crate) fn partners(&self, task: usize) -> &[u32] {
        &self.partners[task]
    }

    /// Whether a task has a place.
    pub(crate) fn is_mapped(&self, task: usize) -> bool {
        self.is_mapped[task]
    }

    /// The number of partners of a task that have a place.
    pub(crate) fn mapped_partners(&self, task: usize) -> usize {
        self.mapped_partners[task] as usize
    }

    /// Select_Task: the next task to map; `None` if all tasks are mapped.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        if let Some(task) = self.adjoining(1) {
            return Some(task);
        }
        let at = below(&mut self.rng, self.left as u64) as usize;
        (0..self.is_mapped.len()).filter(|&task| !self.is_mapped[task]).nth(at)
    }

    /// Select_Task among the tasks with at least `least` mapped partners; `least` must be at least 1.
    pub(crate) fn adjoining(&mut self, least: u32) -> Option<usize> {
        while let Some(&entry @ (partners, .., Reverse(task))) = self.heap.peek() {
            if !self.is_mapped[task as usize] && entry == self.entry(task) {
                return (partners >= least).then_some(task as usize);
            }
            self.heap.pop();
        }
        None
    }

    /// Records that a task has a place.
    pub(crate) fn map(&mut self, task: usize) {
        self.is_mapped[task] = true;
        self.left -= 1;
        for &partner in &Arc::clone(&self.partners)[task] {
            let at = partner as usize;
            self.mapped_partners[at] += 1;
            if self.since[at] == NEVER {
                self.since[at] = self.seen;
                self.seen += 1;
            }
            if !self.is_mapped[at] {
                self.heap.push(self.entry(partner));
            }
        }
    }

    fn entry(&self, task: u32) -> Entry {
        let at = task as usize;
        let since = if self.paper { 0 } else { self.since[at] };
        (self.mapped_partners[at], self.around.nearby[at], Reverse(since), Reverse(task))
    }

    /// Records that the last mapped task has lost its place.
    pub(crate) fn unmap(&mut self, task: usize) {
        self.is_mapped[task] = false;
        self.left += 1;
        for &partner in &Arc::clone(&self.partners)[task] {
            let at = partner as usize;
            self.mapped_partners[at] -= 1;
            if self.mapped_partners[at] == 0 {
                self.since[at] = NEVER;
                self.seen -= 1;
            } else if !self.is_mapped[at] {
                self.heap.push(self.entry(partner));
            }
        }
        if self.mapped_partners[task] > 0 {
            self.heap.push(self.entry(task as u32));
        }
    }
}

/// The neighborhood of each task in the graph.
struct Surroundings {
    /// By task: the number of tasks nearer than a quarter of both diameters, including the task itself.
    nearby: Vec<u32>,
    /// By task: the sum of distances to all; the distance to an unreachable task is the number of tasks.
    sums: Vec<u64>,
    /// g: the radius of `degrees`.
    degree_radius: u32,
    /// By task: the sum of the degrees of the tasks nearer than `degree_radius`, including the task itself.
    degrees: Vec<u64>,
}

impl Surroundings {
    fn of(partners: &[Vec<u32>], host_diameter: u32, paper: bool) -> Self {
        let count = partners.len();
        if count > MAX_SEARCHED {
            let most = partners.iter().map(Vec::len).max().unwrap_or(0);
            let degree = |list: &Vec<u32>| (list.len() as u32, (most - list.len()) as u64);
            let (nearby, sums) = partners.iter().map(degree).unzip();
            return Surroundings { nearby, sums, degree_radius: 2, degrees: Vec::new() };
        }
        let mut search = Search { partners, seen_by: vec![NEVER; count], wave: Vec::new(), next: Vec::new() };
        let (mut sums, mut diameter) = (Vec::with_capacity(count), 0);
        for task in 0..count as u32 {
            let (mut reached, mut sum) = (0, 0);
            search.around(task, u32::MAX, |distance, wave| {
                reached += wave.len() as u64;
                sum += u64::from(distance) * wave.len() as u64;
                diameter = diameter.max(distance);
            });
            sums.push(sum + (count as u64 - reached) * count as u64);
        }
        let radius = host_diameter.min(diameter).div_ceil(4).max(1);
        let degree_radius = if paper { 2 } else { radius.max(2) };
        let (mut nearby, mut degrees) = (vec![0; count], vec![0; count]);
        search.seen_by.fill(NEVER);
        for task in 0..count as u32 {
            search.around(task, radius.max(degree_radius), |distance, wave| {
                if distance < radius {
                    nearby[task as usize] += wave.len() as u32;
                }
                if distance < degree_radius {
                    let degrees_there = wave.iter().map(|&at| partners[at as usize].len() as u64);
                    degrees[task as usize] += degrees_there.sum::<u64>();
                }
            });
        }
        Surroundings { nearby, sums, degree_radius, degrees }
    }
}

/// A breadth-first search.
struct Search<'a> {
    partners: &'a [Vec<u32>],
    /// By task: the start of the last search that reached it.
    seen_by: Vec<u32>,
    wave: Vec<u32>,
    next: Vec<u32>,
}

impl Search<'_> {
    /// Calls `visit` with the tasks at every distance below `radius` from `task`. No search may have started from
    /// `task` before.
    fn around(&mut self, task: u32, radius: u32, mut visit: impl FnMut(u32, &[u32])) {
        self.seen_by[task as usize] = task;
        self.wave.clear();
        self.wave.push(task);
        let mut distance = 0;
        while !self.wave.is_empty() && distance < radius {
            visit(distance, &self.wave);
            for at in self.wave.drain(..) {
                for &partner in &self.partners[at as usize] {
                    if std::mem::replace(&mut self.seen_by[partner as usize], task) != task {
                        self.next.push(partner);
                    }
                }
            }
            std::mem::swap(&mut self.wave, &mut self.next);
            distance += 1;
        }
        self.next.clear();
    }
}

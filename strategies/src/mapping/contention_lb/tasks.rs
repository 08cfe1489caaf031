//! The task interaction graph, and which task is mapped next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rand_chacha::ChaCha8Rng;

use super::MAX_SEARCHED;
use crate::program::Model;
use crate::random::{below, generator};

type Entry = (u32, u32, Reverse<u32>, Reverse<u32>);

/// Not yet.
const NEVER: u32 = u32::MAX;

/// The tasks of a model and their partners, and which have a place.
pub(super) struct Tasks {
    partners: Vec<Vec<u32>>,
    is_mapped: Vec<bool>,
    left: usize,
    /// How many partners of each task have a place.
    mapped_partners: Vec<u32>,
    around: Surroundings,
    /// By task: how many had a mapped partner before it had one.
    since: Vec<u32>,
    seen: u32,
    /// Tasks with mapped partners: how many, how many tasks are near, since when, and which; entries that are no
    /// longer true are thrown away when they come up.
    heap: BinaryHeap<Entry>,
    dice: ChaCha8Rng,
}

impl Tasks {
    /// The tasks of `model`, those mapped that stay, for a machine of that diameter.
    pub(super) fn new(model: &Model, host_diameter: u32, seed: u64) -> Self {
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
        let around = Surroundings::of(&partners, host_diameter);
        let mut tasks = Tasks {
            is_mapped: vec![false; count],
            left: count,
            mapped_partners: vec![0; count],
            partners,
            around,
            since: vec![NEVER; count],
            seen: 0,
            heap: BinaryHeap::new(),
            dice: generator(seed, 0xc0de),
        };
        for task in (0..count).filter(|&task| model.tasks[task].stays_on.is_some()) {
            tasks.map(task);
        }
        tasks
    }

    /// Whether no task has a place.
    pub(super) fn all_free(&self) -> bool {
        self.left == self.is_mapped.len()
    }

    /// The task with the least sum of distances to all.
    pub(super) fn centre(&self) -> Option<usize> {
        (0..self.left).min_by_key(|&task| self.around.sums[task])
    }

    /// g: what is nearer than this is around a task.
    pub(super) fn radius(&self) -> u32 {
        self.around.radius.max(2)
    }

    /// The degrees of the tasks nearer than [`Self::radius`], itself among them, added up; none if that is not known.
    pub(super) fn degrees_around(&self, task: usize) -> Option<u64> {
        self.around.degrees.get(task).copied()
    }

    /// The partners of a task, ascending.
    pub(super) fn partners(&self, task: usize) -> &[u32] {
        &self.partners[task]
    }

    /// Whether a task has a place.
    pub(super) fn is_mapped(&self, task: usize) -> bool {
        self.is_mapped[task]
    }

    /// How many partners of a task have a place.
    pub(super) fn mapped_partners(&self, task: usize) -> usize {
        self.mapped_partners[task] as usize
    }

    /// Select_Task: the next one to map; none if all are.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        while let Some(&(partners, .., Reverse(task))) = self.heap.peek() {
            let task = task as usize;
            if !self.is_mapped[task] && self.mapped_partners[task] == partners {
                return Some(task);
            }
            self.heap.pop();
        }
        let at = below(&mut self.dice, self.left as u64) as usize;
        (0..self.is_mapped.len()).filter(|&task| !self.is_mapped[task]).nth(at)
    }

    /// A task got a place.
    pub(super) fn map(&mut self, task: usize) {
        self.is_mapped[task] = true;
        self.left -= 1;
        for &partner in &self.partners[task] {
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
        (self.mapped_partners[at], self.around.nearby[at], Reverse(self.since[at]), Reverse(task))
    }

    /// A task lost its place.
    pub(super) fn unmap(&mut self, task: usize) {
        self.is_mapped[task] = false;
        self.left += 1;
        for &partner in &self.partners[task] {
            let at = partner as usize;
            self.mapped_partners[at] -= 1;
            if !self.is_mapped[at] && self.mapped_partners[at] > 0 {
                self.heap.push(self.entry(partner));
            }
        }
        if self.mapped_partners[task] > 0 {
            self.heap.push(self.entry(task as u32));
        }
    }
}

/// What lies around each task in the graph.
struct Surroundings {
    /// How many tasks are nearer than `radius`, itself among them.
    nearby: Vec<u32>,
    /// The sums of distances to all; who cannot be reached is as far as there are tasks.
    sums: Vec<u64>,
    /// A quarter of both diameters, upwards.
    radius: u32,
    degrees: Vec<u64>,
}

impl Surroundings {
    fn of(partners: &[Vec<u32>], host_diameter: u32) -> Self {
        let count = partners.len();
        if count > MAX_SEARCHED {
            let most = partners.iter().map(Vec::len).max().unwrap_or(0);
            let degree = |list: &Vec<u32>| (list.len() as u32, (most - list.len()) as u64);
            let (nearby, sums) = partners.iter().map(degree).unzip();
            return Surroundings { nearby, sums, radius: 1, degrees: Vec::new() };
        }
        // By task and distance: how many there are, and their degrees.
        let mut at_distance: Vec<Vec<(u32, u64)>> = Vec::with_capacity(count);
        let (mut seen_by, mut wave, mut next) = (vec![NEVER; count], Vec::new(), Vec::new());
        for task in 0..count as u32 {
            let mut counts = Vec::new();
            seen_by[task as usize] = task;
            wave.push(task);
            while !wave.is_empty() {
                let degrees = wave.iter().map(|&at: &u32| partners[at as usize].len() as u64).sum();
                counts.push((wave.len() as u32, degrees));
                for at in wave.drain(..) {
                    for &partner in &partners[at as usize] {
                        if std::mem::replace(&mut seen_by[partner as usize], task) != task {
                            next.push(partner);
                        }
                    }
                }
                std::mem::swap(&mut wave, &mut next);
            }
            at_distance.push(counts);
        }
        let diameter = at_distance.iter().map(|counts| counts.len() as u32 - 1).max().unwrap_or(0);
        let radius = host_diameter.min(diameter).div_ceil(4).max(1);
        let near = |counts: &Vec<(u32, u64)>| counts.iter().take(radius as usize).map(|it| it.0).sum();
        let degrees =
            |counts: &Vec<(u32, u64)>| counts.iter().take(radius.max(2) as usize).map(|it| it.1).sum();
        let sum = |counts: &Vec<(u32, u64)>| {
            let reached: u64 = counts.iter().map(|it| u64::from(it.0)).sum();
            let near: u64 =
                (0..).zip(counts).map(|(distance, it): (u64, _)| distance * u64::from(it.0)).sum();
            near + (count as u64 - reached) * count as u64
        };
        Surroundings {
            nearby: at_distance.iter().map(near).collect(),
            sums: at_distance.iter().map(sum).collect(),
            radius,
            degrees: at_distance.iter().map(degrees).collect(),
        }
    }
}

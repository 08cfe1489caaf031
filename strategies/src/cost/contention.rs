//! The contention-aware estimate F of the completion time of a mapped program.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (1994), section 4. With m(i)
//! the PE of task i, d the distance, and the quantities of a [`Model`]:
//!
//! ```text
//! F(m) = max over PEs n of R(m, n)                                                             (2)
//! R(m, n) = sum over i on n of (w_i + q_i)                                                     (3)
//!         + sum over j on n and i elsewhere of m_ij (d(m(i), m(j)) - 1)                        (4)
//!         - sum over i and j on n of min(m_ij l_ij, q_ij)                                      (5)
//!         + sum over j on n, i elsewhere and phases h of
//!             (sum over (s,t) in S^h(i,j) but (i,j) of l_st) / (2 |S^h(i,j)|)                  (9)
//! ```
//!
//! The interference class S^h(i,j) holds the channels of phase h that may delay (i,j): channels whose route shares a
//! directed link with the route of (i,j), and transitively channels that share a link with those. Equation (9) is taken
//! literally: it is not multiplied by the number of messages, and it is charged to the receiver. Channels between tasks
//! on the same PE are in no class. Tasks without a PE contribute nothing.
//!
//! Equations (3) and (5) add up the waits of the tasks of a PE, although one task can work while another waits. With one
//! task per PE, as in all measurements of the paper, this is correct. With several tasks per PE, F is much too large, and
//! grows with the number of tasks instead of the amount of work. [`Waits::Overlapped`](equipoise_network::program::Waits),
//! which is not in the paper, therefore ends a PE when all its tasks have worked and each has worked and waited:
//!
//! ```text
//! max(sum over j on n of w_j,
//!     max over j on n of (w_j + q_j - sum over i on n of min(m_ij l_ij, q_ij)))         instead of (3) and (5)
//! ```
//!
//! `Waits::Added` is the paper's version. The figure `greedy-many` compares both with simulations.
//!
//! Classes are trees of a union-find by size over the channels of each phase. Channels are joined where a route crosses a
//! link that another route has crossed. Paths are not compressed, so that placing a task can be undone. The members of a
//! class form a circular list of successors; two lists are merged by swapping two successors.
//!
//! All numbers are integer ticks; the delay of each channel is rounded down separately. So F of a placement does not depend
//! on the order in which tasks were placed. [`Model::of`] limits all numbers so that they fit, and at most a million hops
//! of a distance count.

use equipoise_model::Topology;
use equipoise_network::program::Model;

mod local_time;
mod machine;
mod users;

use local_time::LocalTime;
pub use machine::Speeds;
use users::Users;

/// The maximum number of hops that count, so that hops times messages do not overflow ticks.
const MAX_HOPS: u32 = 1 << 20;

/// The task has no PE.
const NONE: u32 = u32::MAX;

/// F of a partial placement, to which tasks can be added and from which they can be removed.
pub struct Estimate<'a> {
    model: &'a Model,
    topology: &'a dyn Topology,
    speeds: &'a Speeds,
    place: Vec<u32>,
    /// By task: the start of its channels in `channels_of`. A channel is listed at both of its ends.
    starts: Vec<u32>,
    channels_of: Vec<u32>,
    /// The uses of a channel, one for each of its phases, are `first_use[channel]..first_use[channel + 1]`.
    first_use: Vec<u32>,
    phase_of: Vec<u32>,
    channel_of: Vec<u32>,
    /// By phase and link: a use whose route crosses the link.
    users: Users,
    parent: Vec<u32>,
    next: Vec<u32>,
    /// Valid for the root of a class: the number of uses in the class, and the sum of their lengths in ticks.
    size: Vec<u32>,
    length: Vec<i64>,
    /// By use: the delay of equation (9).
    delay: Vec<i64>,
    /// Equations (3) and (5): of each placed task, and of all tasks of each PE.
    time_of_task: Vec<LocalTime>,
    local_time: Vec<LocalTime>,
    /// By PE: its tasks, in the order in which they were placed.
    tasks_at: Vec<Vec<u32>>,
    /// By PE: equations (3) to (6), and equation (10).
    without_contention: Vec<i64>,
    with_contention: Vec<i64>,
    sum: i64,
    /// The number of tasks of each PE, and the number of PEs with tasks; edge ends that are PEs do not count.
    tasks_on: Vec<u32>,
    occupied: usize,
    placed: usize,
    log: Vec<Change>,
    touched: Vec<u32>,
    /// PEs with new tasks, whose entry of `local_time` is outdated.
    filled: Vec<u32>,
    route: Vec<usize>,
}

/// A logged change; changes are undone in reverse order.
enum Change {
    /// A task was placed.
    Place { task: u32 },
    /// A task saved ticks because a partner is on the same PE.
    Save { task: u32, ticks: i64 },
    /// The local time of a PE changed; `before` is the previous value.
    LocalTime { pe: u32, before: LocalTime },
    /// Ticks were added to a PE, without and with contention.
    Add { pe: u32, base: i64, all: i64 },
    /// A link got its first user in a phase.
    User { phase: u32, link: u32 },
    /// The class of `child` joined that of `parent`; the successors of these two were swapped.
    Join { child: u32, parent: u32 },
    /// The delay of a use changed; `before` is the previous value.
    Delay { of: u32, before: i64 },
}

/// A point in the history of an [`Estimate`], for [`Estimate::undo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(usize);

impl<'a> Estimate<'a> {
    /// The estimate with only the tasks placed that cannot move.
    pub fn new(model: &'a Model, topology: &'a dyn Topology, speeds: &'a Speeds) -> Self {
        let (tasks, channels) = (model.tasks.len(), model.channels.len());
        let mut starts = vec![0u32; tasks + 1];
        for channel in &model.channels {
            starts[channel.from as usize + 1] += 1;
            starts[channel.to as usize + 1] += 1;
        }
        (0..tasks).for_each(|task| starts[task + 1] += starts[task]);
        let mut at = starts.clone();
        let mut channels_of = vec![0; 2 * channels];
        for (channel, number) in model.channels.iter().zip(0..) {
            for end in [channel.from, channel.to] {
                channels_of[at[end as usize] as usize] = number;
                at[end as usize] += 1;
            }
        }
        let mut first_use = vec![0u32; channels + 1];
        model.phases.iter().flatten().for_each(|&channel| first_use[channel as usize + 1] += 1);
        (0..channels).for_each(|channel| first_use[channel + 1] += first_use[channel]);
        let uses = first_use[channels] as usize;
        let (mut phase_of, mut channel_of, mut at) = (vec![0; uses], vec![0; uses], first_use.clone());
        for (phase, number) in model.phases.iter().zip(0..) {
            for &channel in phase {
                let of = &mut at[channel as usize];
                (phase_of[*of as usize], channel_of[*of as usize]) = (number, channel);
                *of += 1;
            }
        }
        let base = speeds.background_ticks(topology.pes());
        let mut estimate = Estimate {
            model,
            topology,
            speeds,
            place: vec![NONE; tasks],
            starts,
            channels_of,
            first_use,
            phase_of,
            channel_of,
            users: Users::new(model.phases.len(), topology.links()),
            parent: (0..uses as u32).collect(),
            next: (0..uses as u32).collect(),
            size: vec![1; uses],
            length: vec![0; uses],
            delay: vec![0; uses],
            time_of_task: vec![LocalTime::default(); tasks],
            local_time: vec![LocalTime::default(); topology.pes()],
            tasks_at: vec![Vec::new(); topology.pes()],
            sum: base.iter().sum(),
            with_contention: base.clone(),
            without_contention: base,
            tasks_on: vec![0; topology.pes()],
            occupied: 0,
            placed: 0,
            log: Vec::new(),
            touched: Vec::new(),
            filled: Vec::new(),
            route: Vec::new(),
        };
        let staying = model.tasks.iter().enumerate();
        estimate.put_all(staying.filter_map(|(task, it)| it.stays_on.map(|pe| (task, pe))));
        estimate.commit();
        estimate
    }

    /// F of a complete placement: the completion time of the slowest PE, in ticks.
    ///
    /// # Panics
    /// When the placement is shorter than the tasks that can move, or a PE is unknown.
    pub fn of(model: &Model, topology: &dyn Topology, speeds: &Speeds, placement: &[u32]) -> i64 {
        Estimate::at(model, topology, speeds, placement).ticks()
    }

    /// The estimate of a complete placement.
    ///
    /// # Panics
    /// As [`Estimate::of`].
    pub fn at(
        model: &'a Model,
        topology: &'a dyn Topology,
        speeds: &'a Speeds,
        placement: &[u32],
    ) -> Estimate<'a> {
        let mut estimate = Estimate::new(model, topology, speeds);
        let moving = (0..model.tasks.len()).filter(|&task| model.tasks[task].stays_on.is_none());
        estimate.put_all(moving.map(|task| (task, placement[task])));
        estimate
    }

    /// The PE of a task, if it has one.
    pub fn place_of(&self, task: usize) -> Option<u32> {
        Some(self.place[task]).filter(|&pe| pe != NONE)
    }

    /// F, equations (2) and (10): the largest R of all PEs, in ticks.
    pub fn ticks(&self) -> i64 {
        self.with_contention.iter().copied().max().unwrap_or(0)
    }

    /// The sum of R over all PEs (section 5.2), in ticks.
    pub fn summed_ticks(&self) -> i64 {
        self.sum
    }

    /// By PE: R without contention (equation 6), in ticks.
    pub fn without_contention(&self) -> &[i64] {
        &self.without_contention
    }

    /// The number of tasks of each PE.
    pub fn tasks_on(&self) -> &[u32] {
        &self.tasks_on
    }

    /// The number of tasks with a PE, and the number of PEs with tasks.
    pub fn used(&self) -> (usize, usize) {
        (self.placed, self.occupied)
    }

    /// The channels of a task, as numbers in [`Model::channels`].
    pub fn channels_of(&self, task: usize) -> &[u32] {
        &self.channels_of[self.starts[task] as usize..self.starts[task + 1] as usize]
    }

    /// Whether the route of some channel crosses the link in some phase.
    pub fn is_link_used(&self, link: usize) -> bool {
        self.users.is_used(link)
    }

    /// The current point in the history.
    pub fn mark(&self) -> Mark {
        Mark(self.log.len())
    }

    /// Undoes all changes since `mark`.
    pub fn undo(&mut self, mark: Mark) {
        while self.log.len() > mark.0 {
            match self.log.pop().expect("the history is longer than the mark") {
                Change::Place { task } => {
                    let pe = std::mem::replace(&mut self.place[task as usize], NONE) as usize;
                    self.tasks_at[pe].pop();
                    if !self.model.tasks[task as usize].is_pe {
                        self.tasks_on[pe] -= 1;
                        self.occupied -= usize::from(self.tasks_on[pe] == 0);
                        self.placed -= 1;
                    }
                }
                Change::Save { task, ticks } => self.time_of_task[task as usize].end += ticks,
                Change::LocalTime { pe, before } => self.local_time[pe as usize] = before,
                Change::Add { pe, base, all } => {
                    self.without_contention[pe as usize] -= base;
                    self.with_contention[pe as usize] -= all;
                    self.sum -= all;
                }
                Change::User { phase, link } => self.users.release(phase, link),
                Change::Join { child, parent } => {
                    self.next.swap(child as usize, parent as usize);
                    self.parent[child as usize] = child;
                    self.size[parent as usize] -= self.size[child as usize];
                    self.length[parent as usize] -= self.length[child as usize];
                }
                Change::Delay { of, before } => self.delay[of as usize] = before,
            }
        }
    }

    /// Makes all changes so far permanent: marks before this point become invalid.
    pub fn commit(&mut self) {
        self.log.clear();
    }

    /// Places a task without a PE on a PE.
    ///
    /// # Panics
    /// When the task already has a PE, or the PE is unknown.
    pub fn put(&mut self, task: usize, pe: u32) {
        self.put_all(std::iter::once((task, pe)));
    }

    /// Places tasks without a PE on PEs, and updates local times and delays once for all of them.
    ///
    /// # Panics
    /// As [`Estimate::put`].
    pub fn put_all(&mut self, places: impl IntoIterator<Item = (usize, u32)>) {
        for (task, pe) in places {
            self.place(task, pe);
        }
        self.update_local_times();
        self.update_delays();
    }

    /// Places a task, without updating the local time of its PE and the delays of the affected classes.
    fn place(&mut self, task: usize, pe: u32) {
        assert_eq!(self.place[task], NONE, "task {task} has a place");
        self.place[task] = pe;
        if !self.model.tasks[task].is_pe {
            self.tasks_on[pe as usize] += 1;
            self.occupied += usize::from(self.tasks_on[pe as usize] == 1);
            self.placed += 1;
        }
        self.log.push(Change::Place { task: task as u32 });
        self.time_of_task[task] = self.local_time_at(task, pe);
        self.tasks_at[pe as usize].push(task as u32);
        self.filled.push(pe);
        for at in self.starts[task]..self.starts[task + 1] {
            let number = self.channels_of[at as usize];
            let channel = &self.model.channels[number as usize];
            let (from, to) = (self.place[channel.from as usize], self.place[channel.to as usize]);
            if from == NONE || to == NONE {
                continue;
            }
            if from == to {
                let (task, ticks) = (channel.to, self.saved_ticks(number));
                self.time_of_task[task as usize].end -= ticks;
                self.log.push(Change::Save { task, ticks });
            } else {
                let ticks = self.hop_ticks(number, self.topology.distance(from as usize, to as usize));
                self.add(to, ticks, ticks);
                self.cross(number, from, to);
            }
        }
    }

    /// Equation (3) for one task on a PE.
    fn local_time_at(&self, task: usize, pe: u32) -> LocalTime {
        let it = &self.model.tasks[task];
        let work = self.speeds.work_ticks(it.work_ticks, pe);
        LocalTime { work, end: work + it.wait_ticks }
    }

    /// The increase of equations (3) and (5) for a PE, in ticks, if a task without a PE were placed there. `shared` are the
    /// channels between the task and the tasks of that PE.
    pub(crate) fn more_ticks(&self, task: usize, pe: u32, shared: &[u32]) -> i64 {
        let (waits, present) = (self.model.waits, self.local_time[pe as usize]);
        let mut time = self.local_time_at(task, pe);
        let mut saved: Vec<(u32, i64)> = Vec::new();
        for &number in shared {
            match self.model.channels[number as usize].to {
                to if to as usize == task => time.end -= self.saved_ticks(number),
                to => saved.push((to, self.saved_ticks(number))),
            }
        }
        if saved.is_empty() {
            return present.with(time, waits).ticks() - present.ticks();
        }
        saved.sort_unstable();
        let then = |&task: &u32| {
            let mut time = self.time_of_task[task as usize];
            if let Ok(at) = saved.binary_search_by_key(&task, |it| it.0) {
                time.end -= saved[at].1;
            }
            time
        };
        let all = self.tasks_at[pe as usize].iter().map(then).fold(time, |all, time| all.with(time, waits));
        all.ticks() - present.ticks()
    }

    /// Recomputes equations (3) and (5) for the PEs that have new tasks.
    fn update_local_times(&mut self) {
        let mut filled = std::mem::take(&mut self.filled);
        filled.sort_unstable();
        filled.dedup();
        for pe in filled.drain(..) {
            let tasks = self.tasks_at[pe as usize].iter().map(|&task| self.time_of_task[task as usize]);
            let now = tasks.fold(LocalTime::default(), |all, time| all.with(time, self.model.waits));
            let before = std::mem::replace(&mut self.local_time[pe as usize], now);
            if before != now {
                self.log.push(Change::LocalTime { pe, before });
                let ticks = now.ticks() - before.ticks();
                self.add(pe, ticks, ticks);
            }
        }
        self.filled = filled;
    }

    /// Equation (5): the ticks that the receiver of a channel saves on the same PE as the sender.
    fn saved_ticks(&self, channel: u32) -> i64 {
        let channel = &self.model.channels[channel as usize];
        let all = i128::from(channel.messages) * i128::from(channel.flit_ticks);
        all.min(i128::from(channel.wait_ticks)) as i64
    }

    /// Equation (4) for a channel over that distance, in ticks.
    pub(crate) fn hop_ticks(&self, channel: u32, distance: u32) -> i64 {
        let messages = self.model.channels[channel as usize].messages as i64;
        messages * i64::from(distance.saturating_sub(1).min(MAX_HOPS)) * Model::TICKS
    }

    fn add(&mut self, pe: u32, base: i64, all: i64) {
        if base != 0 || all != 0 {
            self.without_contention[pe as usize] += base;
            self.with_contention[pe as usize] += all;
            self.sum += all;
            self.log.push(Change::Add { pe, base, all });
        }
    }

    /// Adds the route of a channel in each of its phases, and joins the classes of the channels it meets.
    fn cross(&mut self, channel: u32, from: u32, to: u32) {
        let mut route = std::mem::take(&mut self.route);
        route.clear();
        self.topology.route(from as usize, to as usize, &mut route);
        for of in self.first_use[channel as usize]..self.first_use[channel as usize + 1] {
            self.length[of as usize] = self.model.channels[channel as usize].flit_ticks;
            let phase = self.phase_of[of as usize];
            for &link in &route {
                let link = link as u32;
                match self.users.claim(phase, link, of) {
                    None => self.log.push(Change::User { phase, link }),
                    Some(other) => self.join(of, other),
                }
            }
            self.touched.push(of);
        }
        self.route = route;
    }

    fn root(&self, mut of: u32) -> u32 {
        while self.parent[of as usize] != of {
            of = self.parent[of as usize];
        }
        of
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return;
        }
        let is_larger = self.size[a as usize] >= self.size[b as usize];
        let (parent, child) = if is_larger { (a, b) } else { (b, a) };
        self.parent[child as usize] = parent;
        self.size[parent as usize] += self.size[child as usize];
        self.length[parent as usize] += self.length[child as usize];
        self.next.swap(child as usize, parent as usize);
        self.log.push(Change::Join { child, parent });
    }

    /// Recomputes equation (9) for the classes that have new members.
    fn update_delays(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.iter_mut().for_each(|of| *of = self.root(*of));
        touched.sort_unstable();
        touched.dedup();
        for root in touched.drain(..) {
            let (size, length) = (i64::from(self.size[root as usize]), self.length[root as usize]);
            let mut of = root;
            loop {
                let channel = &self.model.channels[self.channel_of[of as usize] as usize];
                let delay = (length - channel.flit_ticks) / (2 * size);
                let before = std::mem::replace(&mut self.delay[of as usize], delay);
                if before != delay {
                    self.log.push(Change::Delay { of, before });
                    self.add(self.place[channel.to as usize], 0, delay - before);
                }
                of = self.next[of as usize];
                if of == root {
                    break;
                }
            }
        }
        self.touched = touched;
    }
}

#[cfg(test)]
mod tests;

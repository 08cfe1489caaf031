//! The greedy mapper driven by an estimate of completion times with network contention, as in its paper.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), figures 4
//! and 5. The estimates F and F' are those of [`crate::cost::contention`]. The strategy `ContentionLB` takes the best of
//! several runs of this mapper ([`super::contention_lb`]). The steps, with our choices where the paper leaves one
//! open, and our changes marked "ours":
//!
//! - *Select_First_Pair* (`Greedy::centre`): the centres of both graphs, where the sum of distances is least. The task
//!   graph is unweighted and undirected. Ties go to the lowest number. If there are fixed objects, they are mapped first,
//!   and there is no first pair.
//! - *Select_Task* (`tasks`): the task with the most mapped partners, at least one. Ties go to the task with the most
//!   tasks nearer than a quarter of both diameters, then to the task that has had a mapped partner for longest. (Ours;
//!   the paper takes the lowest number. With our rule a ring grows at both ends in turn, and the ends meet.) If no task
//!   has a mapped partner, one is sampled. Above [`MAX_SEARCHED`] tasks, distances in the task graph are not computed:
//!   its centre is the task with the most partners, and ties go to the task with more partners.
//! - *Select_Pair* (`choice`), first step: F' is the largest R without contention (equation 6) when the task is added.
//!   Ties go to the PE with the smaller sum of R over all PEs, then to the lower PE. With [`Rules::usage`], used PEs
//!   come before all others while there are more tasks than PEs and fewer than T/N tasks per used PE. The paper gains 5
//!   % on random programs by this usage-factor rule. It is off by default because it costs 7 % here (figure
//!   `greedy-usage`). If there is a PE for each task, no PE is shared, unless [`Rules::share`] is set and F decides.
//!   (Ours: F is a maximum over PEs. It ignores that tasks delay each other on a PE that does not end last. With
//!   sharing decided by F, a reduction in a tree takes 1.5 times as long.)
//! - F evaluates *s* = (2n+1) |C(t)| PEs on a grid of n dimensions (3 on other machines), and all PEs for a task without a
//!   mapped partner.
//! - *Similar values* of F are those within the fraction [`Rules::similar`] of the least. (Our fraction is 0, not 1 %:
//!   one more hop is less than 1 % of F in any program that computes more than it sends.)
//! - Of these, those with the least sum of R remain. (Ours: in the paper this criterion comes after the look-ahead. But
//!   tasks that end early do not affect F, and would be placed far from their partners.)
//! - *Look-ahead*: a sum over each partner c of the task that has no place, and each mapped partner c' of c: d(j, m(c')),
//!   and the number of links of path(j, m(c')) that some channel uses. Links of path(m(c'), j) count too if both paths
//!   cross the same PEs in between. Channels of the task itself, on that PE, count.
//! - Then the difference between the number of partners of the task without a place and the number of free neighbors of
//!   the PE (ours, so that no PE is left isolated). Then the difference between two sums of degrees, of the tasks and
//!   of the PEs nearer than g. g is a quarter of both diameters, at least 2 (ours, so that a grid is placed where it
//!   fits; the paper may mean one hop). Then the smallest box, in coordinates without wrapping, that holds all used
//!   PEs. Then the lower PE.
//! - *Memory*: [`Rules::memory_bytes`] limits the tasks of a PE. If a task fits on no PE, the mapper takes the last
//!   decision back and tries the next best candidate of that decision, at most [`MAX_BACKTRACKS`] times (fewer on large
//!   machines).
//!
//! [`Rules::paper`] leaves out our changes: the lowest number decides in Select_Task, the look-ahead comes before the sum
//! of R, free neighbors do not count, g is one hop, and waits are added up ([`Waits::Added`]).
//!
//! O(P l a log a) in the worst case, for l links, a channels and P phases.

use std::borrow::Cow;

use equipoise_model::Topology;
use equipoise_network::program::{Model, Waits};

use crate::StrategyError;
use crate::cost::contention::{Estimate, Mark, Speeds};

pub(super) mod bounds;
mod choice;
pub(super) mod host;
mod memory;
pub(super) mod tasks;

use choice::Chooser;
use equipoise_model::table::count;
use host::Host;
use tasks::Tasks;

/// The maximum number of tasks for which all distances are computed.
pub const MAX_SEARCHED: usize = 8192;

/// The maximum number of backtracks before the mapper gives up.
pub const MAX_BACKTRACKS: usize = 100_000;

/// The maximum of backtracks times PEs, which limits backtracks on large machines.
const MAX_LOOKS: usize = 50_000_000;

/// The rules of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The relative excess over the least estimate up to which estimates are similar.
    pub similar: f64,
    /// Whether the look-ahead decides between similar candidates.
    pub look_ahead: bool,
    /// Whether tasks may share a PE although there is a PE for each task.
    pub share: bool,
    /// Whether the usage-factor rule holds.
    pub usage: bool,
    /// The memory of each PE in bytes; `None`: unbounded.
    pub memory_bytes: Option<u64>,
    /// Whether the paper's criteria decide, in the paper's order, and waits are added up.
    pub paper: bool,
}

impl Rules {
    /// The rules of the paper.
    pub fn paper() -> Self {
        Rules { similar: 0.01, share: true, usage: true, paper: true, ..Rules::default() }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules { similar: 0.0, look_ahead: true, share: false, usage: false, memory_bytes: None, paper: false }
    }
}

/// A placement of all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The PE of every task of the model.
    pub places: Vec<u32>,
    /// The number of decisions that were taken back.
    pub backtracks: usize,
}

/// Places every task of `model` on one of the PEs `available`, which are ascending. Fixed tasks keep their PEs.
///
/// # Errors
/// If the tasks do not fit into the memory of the PEs, or no placement that fits was found.
pub fn map(
    model: &Model,
    topology: &dyn Topology,
    speeds: &Speeds,
    available: &[u32],
    rules: &Rules,
    seed: u64,
) -> Result<Mapped, StrategyError> {
    let greedy = Greedy::new(model, topology, speeds, available, rules, seed)?;
    greedy.run(greedy.centre())
}

/// A decision: the task, the state of the estimate before, and the PEs that are left to try, the best last.
struct Decision {
    task: usize,
    mark: Mark,
    others: Vec<u32>,
}

/// The mapper with the data of a program and a machine that all runs share.
pub(super) struct Greedy<'a> {
    model: Cow<'a, Model>,
    topology: &'a dyn Topology,
    speeds: &'a Speeds,
    rules: &'a Rules,
    pub(super) host: Host,
    pub(super) tasks: Tasks,
}

impl<'a> Greedy<'a> {
    /// # Errors
    /// If the tasks do not fit into the memory of the PEs.
    pub(super) fn new(
        model: &'a Model,
        topology: &'a dyn Topology,
        speeds: &'a Speeds,
        available: &[u32],
        rules: &'a Rules,
        seed: u64,
    ) -> Result<Self, StrategyError> {
        memory::check(model, available, rules.memory_bytes)?;
        let host = Host::new(topology, available);
        let tasks = Tasks::new(model, host.diameter, seed, rules.paper);
        let model = match rules.paper {
            true => Cow::Owned(Model { waits: Waits::Added, ..model.clone() }),
            false => Cow::Borrowed(model),
        };
        Ok(Greedy { model, topology, speeds, rules, host, tasks })
    }

    /// The task that is placed first: the centre of the task graph.
    pub(super) fn centre(&self) -> Option<usize> {
        self.tasks.centre()
    }

    /// One run. If no task is fixed, `first` goes to the centre of the machine.
    pub(super) fn run(&self, first: Option<usize>) -> Result<Mapped, StrategyError> {
        let &Greedy { ref model, topology, speeds, rules, ref host, .. } = self;
        let available = &host.available;
        let mut estimate = Estimate::new(model, topology, speeds);
        let mut tasks = self.tasks.clone();
        let mut chooser = Chooser::new(model, topology, host, rules, tasks.radius());
        let mut decisions: Vec<Decision> = Vec::new();
        let (mut backtracks, is_bounded) = (0, rules.memory_bytes.is_some());
        let most = MAX_BACKTRACKS.min(MAX_LOOKS / available.len().max(1));
        // The first pair has alternatives only if memory is bounded.
        if let Some(task) = first.filter(|_| tasks.all_free()) {
            let mut others = if is_bounded { available.clone() } else { Vec::new() };
            others.retain(|&pe| pe != host.centre && chooser.has_room(task, pe));
            let mark = estimate.mark();
            estimate.put(task, host.centre);
            chooser.add(task, host.centre);
            tasks.map(task);
            decisions.push(Decision { task, mark, others });
        }
        while let Some(task) = tasks.next() {
            let mut candidates = chooser.choose(&mut estimate, &tasks, task);
            let mut task = task;
            // Go back to the last decision that has a candidate left.
            while candidates.is_empty() {
                let last = if backtracks < most { decisions.pop() } else { None };
                let Some(last) = last else {
                    return Err(self.no_placement(backtracks, backtracks < most && chooser.keeps_all()));
                };
                backtracks += 1;
                if let Some(pe) = estimate.place_of(last.task) {
                    chooser.remove(last.task, pe);
                }
                estimate.undo(last.mark);
                tasks.unmap(last.task);
                (task, candidates) = (last.task, last.others);
            }
            let Some(pe) = candidates.pop() else { continue };
            let mark = estimate.mark();
            estimate.put(task, pe);
            chooser.add(task, pe);
            tasks.map(task);
            match is_bounded {
                true => decisions.push(Decision { task, mark, others: candidates }),
                false => estimate.commit(),
            }
        }
        let place = |task| estimate.place_of(task).expect("every task was placed");
        Ok(Mapped { places: (0..model.tasks.len()).map(place).collect(), backtracks })
    }

    /// The error that no placement fits into memory, or none was found.
    fn no_placement(&self, backtracks: usize, tried_all: bool) -> StrategyError {
        let bytes = count(self.rules.memory_bytes.unwrap_or(0), "byte");
        StrategyError::Request(match tried_all {
            true => format!("no placement fits into {bytes} of memory per PE; allow more memory"),
            false => format!(
                "the search found no placement that fits into {bytes} of memory per PE and ended after {}, so a \
                 placement that fits may exist; allow more memory",
                count(backtracks as u64, "backtrack")
            ),
        })
    }
}

#[cfg(test)]
mod tests;

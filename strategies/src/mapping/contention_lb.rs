//! `ContentionLB`: the greedy mapper driven by an estimate of completion times with network contention.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), figures 4
//! and 5; the estimates F and F' are those of [`crate::cost::contention`]. Where the paper leaves something open:
//!
//! - *Select_First_Pair*: the centres of both graphs, that is where the sum of distances is least; the task graph is taken
//!   without weights and directions. Ties go to the lowest number. Where objects stay, they are mapped first, and
//!   there is no first pair.
//! - *Select_Task*: of the tasks with a mapped partner, the one with most; of several, the one with most tasks nearer
//!   than a quarter of both diameters; of these, the one that has had a mapped partner for longest. (Ours, in place of the
//!   lowest number: so a ring grows at both ends in turn, and they meet.) Where none
//!   has a mapped partner, one is drawn at random. Above [`MAX_SEARCHED`] tasks, distances in the task graph are not
//!   computed: its centre is the task with most partners, and ties go to the task with more.
//! - *F'* is the largest R without contention (equation 6) when the task is added; of equals, the one with the lesser sum
//!   of R over all PEs comes first, then the lower PE. With `usage=on`, while there are more tasks than PEs
//!   and the tasks per used PE are fewer than T/N, used PEs come before all others: the usage-factor rule, by which the
//!   paper gains 5 % on random programs, and off unless asked for, as here it costs 7 % (`reproduce
//!   greedy-usage`). While there is a PE for each task, none are shared, unless `share=on` lets F decide. (Ours: F, which
//!   is a maximum over PEs, sees nothing wrong in tasks that get in each other's way on a PE that is not the last one to be
//!   done, and a reduction in a tree then takes half as long again.)
//! - *s* = (2n+1) |C(t)| PEs are judged by F, on a grid of n dimensions (3 on what is no grid), and all of them for a
//!   task without a mapped partner.
//! - *Similar values* of F are those within the fraction `similar` of the least. (Ours is 0, not 1 %: a hop more is less
//!   than a hundredth of F in any program that computes more than it sends.)
//! - Of these, those with the least sum of R go on. (Ours: in the paper this comes after the look-ahead; but F, a maximum,
//!   says nothing of tasks that are early anyway, and these then go far from their partners.)
//! - *Look-ahead*: for each partner c of the task that has no place but mapped partners c', d(j, m(c')) and the links of
//!   path(j, m(c')) that some channel uses are added up; those of path(m(c'), j) too where both cross the same PEs in
//!   between. Channels of the task itself, on that PE, count.
//! - Then the difference between the partners of the task that have no place and the free neighbors of the PE (ours:
//!   no PE is left alone behind); then that between the degrees of tasks nearer than g, added up, and of PEs (g is
//!   a quarter of both diameters, at least 2; ours, where one hop would be the least that the paper may mean: so a grid is put
//!   where it fits); then the smallest box that holds all used
//!   PEs (of coordinates; wrapping is not seen); then the lower PE.
//! - *Memory*: with `memory`, a PE takes no task beyond so many bytes. Where a task fits nowhere, the last decision is taken
//!   back, its next best candidate tried, and so on, at most [`MAX_BACKTRACKS`] times (fewer on large machines).
//!
//! That is one run. With `paper=on` it is the only one, and without what is ours: the lowest number decides in Select_Task,
//! `similar=0.01`, `share=on` and `usage=on` unless they are given, the look-ahead comes before the sum of R, free neighbors
//! do not count, g is one hop, and waits are added up ([`Waits::Added`]).
//!
//! Otherwise, where there is a PE for every task, no task stays and nothing bounds
//! memory, other runs follow (`runs`): of programs of at most [`MAX_STARTS`] tasks the same from every task, and on
//! machines of at most 2048 PEs some by equation (4) alone, which see further. Of those whose F is within a hundredth of the
//! least, the one is taken on which the program ends first when it is executed, or, where only its model is known, with the
//! least sum of R (`best`). Where tasks outnumber PEs, the placement that is given and one of groups of tasks are judged, too; and
//! where they do not, and the program can be executed, the given placement, some that share PEs, and one of PoiseLB
//! (`beside`).
//!
//! Of a database, all edges are one phase and loads are work (see [`Model::of_database`]); of a program
//! (`equipoise map --program`) phases and waits are known. O(P l a log a) in the worst case, for l links, a channels and
//! P phases.

use std::collections::BTreeMap;

use crate::cost::contention::{Estimate, Speeds};
use crate::program::{Model, Waits};
use crate::registry::{Named, Param, ParamError, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

mod beside;
mod best;
mod bounds;
mod choice;
mod host;
mod runs;
mod tasks;

use beside::Beside;
use best::{HARDLY, best_of};
use choice::Chooser;
use host::Host;
use tasks::Tasks;

/// The most tasks between all of which distances are computed.
pub const MAX_SEARCHED: usize = 8192;

/// How often a decision is taken back before the mapper gives up.
pub const MAX_BACKTRACKS: usize = 100_000;

/// How many PEs are looked at again after decisions were taken back: on large machines fewer can be.
const MAX_LOOKS: usize = 50_000_000;

/// The most tasks of which each is tried as the first.
pub const MAX_STARTS: usize = 32;

/// `ContentionLB` for the registry.
pub const NAMED: Named = Named {
    name: "ContentionLB",
    aliases: &[],
    help: "Places task after task where a program is estimated to be over first, with waits, distances and contention \
           for links (De Petris, Perego 1994). For programs (map --program); needs no groups, so it is slow for many \
           objects.",
    params: &[
        Param {
            key: "similar",
            default: AUTO,
            help: "estimates within this part of the least count as equal; `auto`: 0, with paper=on 0.01",
        },
        Param {
            key: "look_ahead",
            default: "on",
            help: "whether equals are told apart by where partners may go",
        },
        Param {
            key: "share",
            default: AUTO,
            help: "whether tasks may share a PE where there is one for each; `auto`: as `paper`, and where a program that \
                   can be executed is over sooner so",
        },
        Param {
            key: "usage",
            default: AUTO,
            help: "whether used PEs are favored, when tasks outnumber PEs, until they have the mean of tasks; `auto`: as \
                   `paper`",
        },
        Param { key: "memory", default: "none", help: "bytes that the tasks of a PE may need" },
        Param {
            key: "paper",
            default: "off",
            help: "whether there is one run only, with the paper's criteria in the paper's order, not the best of several by \
                   ours",
        },
    ],
    needs_communication: true,
    make: |params: &mut Params| {
        let like = match params.take_switch("paper")? {
            true => ContentionLb::paper(),
            false => ContentionLb::default(),
        };
        Ok(Box::new(ContentionLb {
            similar: fraction(params, "similar", like.similar)?,
            look_ahead: params.take_switch("look_ahead")?,
            share: switch(params, "share")?.or(like.share),
            usage: switch(params, "usage")?.unwrap_or(like.usage),
            memory_bytes: match params.take::<String>("memory")?.as_str() {
                "none" => None,
                text => match text.parse() {
                    Ok(bytes) => Some(bytes),
                    Err(_) => {
                        return Err(params.bad("memory", text, "expected a number of bytes, or `none`"));
                    }
                },
            },
            paper: like.paper,
        }))
    },
};

/// The value of a key that depends on `paper` unless it is given.
const AUTO: &str = "auto";

fn fraction(params: &mut Params, key: &str, auto: f64) -> Result<f64, ParamError> {
    let value: String = params.take(key)?;
    let number = if value == AUTO { Some(auto) } else { value.parse().ok() };
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| params.bad(key, &value, "expected a number from 0 to 1, or `auto`"))
}

/// `None` is `auto`.
fn switch(params: &mut Params, key: &str) -> Result<Option<bool>, ParamError> {
    match params.take::<String>(key)?.as_str() {
        AUTO => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        value => Err(params.bad(key, value, "it is `on`, `off` or `auto`")),
    }
}

/// The greedy mapper.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentionLb {
    /// The part of the least estimate within which others are similar.
    pub similar: f64,
    /// Whether similar ones are told apart by the look-ahead.
    pub look_ahead: bool,
    /// Whether tasks may share a PE where there is one for each; `None`: only if a program is over sooner when it is
    /// executed.
    pub share: Option<bool>,
    /// Whether the usage-factor rule holds.
    pub usage: bool,
    /// The memory of a PE.
    pub memory_bytes: Option<u64>,
    /// Whether there is one run only, with the paper's criteria in the paper's order, and waits are added up.
    pub paper: bool,
}

impl ContentionLb {
    /// The mapper as the paper has it, to the letter where there is one.
    pub fn paper() -> Self {
        ContentionLb { similar: 0.01, share: Some(true), usage: true, paper: true, ..ContentionLb::default() }
    }
}

impl Default for ContentionLb {
    fn default() -> Self {
        ContentionLb {
            similar: 0.0,
            look_ahead: true,
            share: None,
            usage: false,
            memory_bytes: None,
            paper: false,
        }
    }
}

impl Strategy for ContentionLb {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let model = Model::of_database(database, topology);
        self.assign_program(&model, database, topology, seed)
    }

    fn assign_program(
        &self,
        model: &Model,
        database: &Database,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let available = check(database, topology)?;
        let speeds = Speeds::of(database, model);
        let mut model = model.clone();
        for (task, object) in model.tasks.iter_mut().zip(&database.objects) {
            task.stays_on = (!object.migratable).then_some(object.pe);
        }
        let mapped = map(&model, topology, &speeds, &available, self, seed)?;
        let mut notes = vec![("runs".into(), mapped.runs as f64)];
        let mut pe_of = mapped.places;
        if !self.paper {
            let available = &available;
            let beside = Beside { model: &model, database, topology, available, config: self, seed };
            pe_of = beside.best(pe_of)?;
        }
        pe_of.truncate(database.objects.len());
        if mapped.backtracks > 0 {
            notes.push(("backtracks".into(), mapped.backtracks as f64));
        }
        Ok(Assignment { pe_of, notes })
    }
}

/// What the mapper made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// The PE of every task of the model.
    pub places: Vec<u32>,
    /// How often a decision was taken back.
    pub backtracks: usize,
    /// Of how many runs this is the best.
    pub runs: usize,
}

/// A decision: the task, where the estimate was before, and what is left to try, best last.
struct Decision {
    task: usize,
    mark: crate::cost::contention::Mark,
    others: Vec<u32>,
}

/// Places every task of `model` on one of the PEs `available`, which are ascending; those that stay are there already.
///
/// # Errors
/// When the memory of the PEs does not hold the tasks, or no way was found to put them there.
pub fn map(
    model: &Model,
    topology: &dyn Topology,
    speeds: &Speeds,
    available: &[u32],
    config: &ContentionLb,
    seed: u64,
) -> Result<Mapped, StrategyError> {
    fits(model, available, config)?;
    let added = config.paper.then(|| Model { waits: Waits::Added, ..model.clone() });
    let model = added.as_ref().unwrap_or(model);
    let host = Host::new(topology, available);
    let tasks = Tasks::new(model, host.diameter, seed, config.paper);
    let context = Context { model, topology, speeds, host: &host, tasks: &tasks, config };
    let mut mapped = context.run(tasks.centre())?;
    let has_choice =
        tasks.all_free() && model.tasks.len() <= available.len() && config.memory_bytes.is_none();
    if config.paper || !has_choice || is_one_hop_each(model, topology, &mapped.places) {
        return Ok(mapped);
    }
    let starts = if model.tasks.len() <= MAX_STARTS { 0..model.tasks.len() } else { 0..0 };
    let mut others = runs::all(model, topology, &host, &tasks, starts.clone());
    for task in starts {
        others.push(context.run(Some(task))?.places);
    }
    mapped.runs += others.len();
    others.insert(0, mapped.places);
    let best = best_of(&others, HARDLY, model, topology, speeds);
    mapped.places = others.swap_remove(best);
    Ok(mapped)
}

/// Whether every channel is between PEs one hop apart, which no other run with a PE for every task betters.
fn is_one_hop_each(model: &Model, topology: &dyn Topology, places: &[u32]) -> bool {
    let place = |task: u32| places[task as usize] as usize;
    model.channels.iter().all(|it| topology.distance(place(it.from), place(it.to)) == 1)
}

/// What does not change from run to run.
struct Context<'a> {
    model: &'a Model,
    topology: &'a dyn Topology,
    speeds: &'a Speeds,
    host: &'a Host,
    tasks: &'a Tasks,
    config: &'a ContentionLb,
}

impl Context<'_> {
    /// One run, with that task on the centre of the machine if none stays anywhere.
    fn run(&self, first: Option<usize>) -> Result<Mapped, StrategyError> {
        let Context { model, topology, speeds, host, config, .. } = *self;
        let available = &host.available;
        let mut estimate = Estimate::new(model, topology, speeds);
        let mut tasks = self.tasks.clone();
        let mut chooser = Chooser::new(model, topology, host, config, tasks.radius());
        let mut decisions: Vec<Decision> = Vec::new();
        let (mut backtracks, is_bounded) = (0, config.memory_bytes.is_some());
        let most = MAX_BACKTRACKS.min(MAX_LOOKS / available.len().max(1));
        // Of the first pair there is no alternative unless it is the memory that decides.
        if let Some(task) = first.filter(|_| tasks.all_free()) {
            let mut others = if is_bounded { available.clone() } else { Vec::new() };
            others.retain(|&pe| pe != host.centre && chooser.has_room(task, pe));
            let mark = estimate.mark();
            estimate.put(task, host.centre);
            chooser.took(task, host.centre);
            tasks.map(task);
            decisions.push(Decision { task, mark, others });
        }
        while let Some(task) = tasks.next() {
            let mut candidates = chooser.choose(&mut estimate, &tasks, task);
            let mut task = task;
            // Back to the last decision that has something left to try.
            while candidates.is_empty() {
                let last = if backtracks < most { decisions.pop() } else { None };
                let Some(last) = last else {
                    return Err(self.no_way(backtracks, backtracks < most && chooser.keeps_all()));
                };
                backtracks += 1;
                if let Some(pe) = estimate.place_of(last.task) {
                    chooser.gave_back(last.task, pe);
                }
                estimate.undo(last.mark);
                tasks.unmap(last.task);
                (task, candidates) = (last.task, last.others);
            }
            let Some(pe) = candidates.pop() else { continue };
            let mark = estimate.mark();
            estimate.put(task, pe);
            chooser.took(task, pe);
            tasks.map(task);
            match is_bounded {
                true => decisions.push(Decision { task, mark, others: candidates }),
                false => estimate.settle(),
            }
        }
        let place = |task| estimate.place_of(task).expect("every task was placed");
        Ok(Mapped { places: (0..model.tasks.len()).map(place).collect(), backtracks, runs: 1 })
    }

    /// That memory is too small, or seems to be.
    fn no_way(&self, backtracks: usize, tried_all: bool) -> StrategyError {
        let bytes = self.config.memory_bytes.unwrap_or(0);
        StrategyError::Request(match tried_all {
            true => format!(
                "no placement fits into memories of {bytes} bytes, of which all were tried; allow more memory"
            ),
            false => format!(
                "no placement was found that fits into memories of {bytes} bytes; the search ended when {backtracks} decisions \
                 had been taken back, so there may be one; allow more memory"
            ),
        })
    }
}

/// Whether the memory of the PEs may hold the tasks at all.
fn fits(model: &Model, available: &[u32], config: &ContentionLb) -> Result<(), StrategyError> {
    let Some(bytes) = config.memory_bytes else { return Ok(()) };
    let needs = |task: &crate::program::Task| u128::from(task.memory_bytes.unwrap_or(0));
    let (mut all, mut stay) = (0, BTreeMap::<u32, u128>::new());
    for task in &model.tasks {
        match task.stays_on {
            Some(pe) => *stay.entry(pe).or_default() += needs(task),
            None => all += needs(task),
        }
    }
    if let Some((pe, needed)) = stay.iter().find(|(_, needed)| **needed > u128::from(bytes)) {
        return Err(StrategyError::Request(format!(
            "the tasks that stay on PE {pe} need {needed} bytes, and a PE has {bytes}; allow more memory, or keep fewer there"
        )));
    }
    let taken: u128 = available.iter().filter_map(|pe| stay.get(pe)).sum();
    let room = u128::from(bytes) * available.len() as u128 - taken;
    if all > room {
        let left = if taken > 0 { format!(", of which those that stay take {taken}") } else { String::new() };
        return Err(StrategyError::Request(format!(
            "the tasks need {all} bytes, and {} PEs with {bytes} each have {}{left}; allow more memory",
            available.len(),
            room + taken
        )));
    }
    let largest = model
        .tasks
        .iter()
        .enumerate()
        .filter(|it| it.1.stays_on.is_none())
        .rev()
        .max_by_key(|(_, task)| needs(task));
    match largest.map(|(number, task)| (number, needs(task))) {
        Some((number, needed)) if needed > u128::from(bytes) => Err(StrategyError::Request(format!(
            "task {number} needs {needed} bytes, and a PE has {bytes}; allow more memory"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;

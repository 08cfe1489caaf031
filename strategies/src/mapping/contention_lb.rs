//! `ContentionLB`: the best of several placements of a program, by an estimate of completion times with network contention.
//!
//! The mapper of G. De Petris and R. Perego ([`super::de_petris_perego`]) is greedy. This strategy runs that mapper and also
//! evaluates other placements (an algorithm portfolio):
//!
//! - If there is a PE for every task, no task is fixed and memory is unbounded: runs of the greedy mapper from every task,
//!   for at most [`MAX_STARTS`] tasks; embeddings that the greedy mapper misses (`chain`, `unfold`, `beam`); and, for
//!   programs that are forests, the placements of other mappers ([`ContentionLb::mappers`]).
//! - If there is a PE for every task, and the program can be executed: the present placement; placements of the greedy
//!   mapper with shared PEs, by both sets of rules, because tasks that hardly compute end sooner on one PE; and
//!   placements of the other mappers, whose costs include the bytes on saturated links.
//! - If tasks outnumber PEs: the present placement, and one of groups of tasks that exchange much (`groups`). The greedy
//!   mapper places one task at a time and does not detect such groups.
//!
//! `selection` chooses by F and, if the program is known and short enough, by executing it. With `paper=on` there is only
//! one run, by the rules of the paper.
//!
//! In a database, all edges form one phase and loads are work (see [`Model::of_database`]). In a program
//! (`equipoise map --program`), phases and waits are known.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use equipoise_model::params::{Param, ParamError, Params};
use equipoise_model::{Assignment, Database, Topology};
use equipoise_network::program::{Channel, Model};

use super::de_petris_perego::{Greedy, Mapped, Rules, map};
use crate::cost::contention::Speeds;
use crate::descriptor::Recipe;
use crate::near_pes::OnPart;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

mod beam;
mod chain;
mod groups;
mod problem;
mod selection;
mod unfold;

use problem::Problem;
use selection::{Candidates, NEAR, max_executions};

/// The maximum number of tasks for which the greedy mapper is started from every task.
pub const MAX_STARTS: usize = 32;

/// If tasks outnumber PEs, the program is executed on placements whose F exceeds the least F by at most this fraction.
/// The fraction is large because F is less accurate for tasks that wait for each other on one PE.
const SIMILAR: f64 = 0.2;

/// The descriptor of `ContentionLB` without other mappers.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "ContentionLB",
    form: "",
    help: "Places one task at a time where the estimated completion time of the program is least, with waits, distances \
           and contention for links (De Petris, Perego 1994). For programs (map --program); does not group objects, so \
           it is slow for many objects.",
    params: &[
        Param {
            key: "similar",
            default: AUTO,
            help: "relative excess over the least estimate up to which estimates count as equal, 0 to 1; `auto`: 0, or \
                   0.01 with paper=on",
        },
        Param {
            key: "look_ahead",
            default: "on",
            help: "whether ties are broken by look-ahead: distances and used links for partners that are not placed yet",
        },
        Param {
            key: "share",
            default: AUTO,
            help: "whether tasks may share a PE although there is a PE for each task; `auto`: with paper=on, or if a \
                   program that can be executed ends sooner",
        },
        Param {
            key: "usage",
            default: AUTO,
            help: "whether, if tasks outnumber PEs, used PEs are preferred until they have the mean number of tasks; \
                   `auto`: as `paper`",
        },
        Param { key: "memory", default: "none", help: "memory of each PE in bytes; `none`: unbounded" },
        Param {
            key: "paper",
            default: "off",
            help: "`on`: one run with the paper's criteria in the paper's order; `off`: the best of several runs with \
                   our criteria",
        },
    ],
    item: Recipe { needs_communication: true, make: |params| make(params, Vec::new()) },
};

/// Makes `ContentionLB` from its parameters. It also evaluates the placements of `mappers`.
///
/// # Errors
/// If a parameter has an invalid value.
pub fn make(params: &mut Params, mappers: Vec<Arc<dyn Strategy>>) -> Result<Box<dyn Strategy>, ParamError> {
    let rules = match params.take_switch("paper")? {
        true => Rules::paper(),
        false => Rules::default(),
    };
    let share = switch(params, "share")?;
    let rules = Rules {
        similar: fraction(params, "similar", rules.similar)?,
        look_ahead: params.take_switch("look_ahead")?,
        share: share.unwrap_or(rules.share),
        usage: switch(params, "usage")?.unwrap_or(rules.usage),
        memory_bytes: match params.take::<String>("memory")?.as_str() {
            "none" => None,
            text => match text.parse() {
                Ok(bytes) => Some(bytes),
                Err(_) => return Err(params.bad("memory", text, "expected a number of bytes, or `none`")),
            },
        },
        ..rules
    };
    Ok(Box::new(OnPart(ContentionLb { rules, tries_sharing: share != Some(false), mappers })))
}

/// The default of a key that depends on `paper`.
const AUTO: &str = "auto";

fn fraction(params: &mut Params, key: &str, auto: f64) -> Result<f64, ParamError> {
    let value: String = params.take(key)?;
    let number = if value == AUTO { Some(auto) } else { value.parse().ok() };
    number
        .filter(|number| (0.0..=1.0).contains(number))
        .ok_or_else(|| params.bad(key, &value, "expected a number from 0 to 1, or `auto`"))
}

/// Reads `on`, `off` or `auto` (`None`).
fn switch(params: &mut Params, key: &str) -> Result<Option<bool>, ParamError> {
    match params.take::<String>(key)?.as_str() {
        AUTO => Ok(None),
        "on" => Ok(Some(true)),
        "off" => Ok(Some(false)),
        value => Err(params.bad(key, value, "expected `on`, `off` or `auto`")),
    }
}

/// The strategy `ContentionLB`.
#[derive(Clone)]
pub struct ContentionLb {
    /// The rules of the greedy mapper; with those of the paper there is only one run.
    pub rules: Rules,
    /// Whether a program that can be executed is also tried on shared PEs if there is a PE for each task.
    pub tries_sharing: bool,
    /// Other mappers whose placements are evaluated.
    pub mappers: Vec<Arc<dyn Strategy>>,
}

impl Default for ContentionLb {
    fn default() -> Self {
        ContentionLb { rules: Rules::default(), tries_sharing: true, mappers: Vec::new() }
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
        let (config, model, speeds) = (self, &model, &speeds);
        let portfolio = Portfolio { config, model, speeds, database, topology, available: &available, seed };
        portfolio.best()
    }
}

/// The input of one assignment.
struct Portfolio<'a> {
    config: &'a ContentionLb,
    model: &'a Model,
    speeds: &'a Speeds,
    database: &'a Database,
    topology: &'a dyn Topology,
    available: &'a [u32],
    seed: u64,
}

impl Portfolio<'_> {
    fn best(&self) -> Result<Assignment, StrategyError> {
        let &Portfolio { config, model, speeds, database, topology, available, seed } = self;
        let runs = Runs::of(model, topology, speeds, available, &config.rules, seed)?;
        let mut answer = Assignment::new(Vec::new()).with_note("runs", runs.placements.len() as f64);
        if runs.backtracks > 0 {
            answer = answer.with_note("backtracks", runs.backtracks as f64);
        }
        let candidates = self.candidates(runs)?;
        answer.pe_of = candidates.best(model, topology, speeds);
        answer.pe_of.truncate(database.objects.len());
        Ok(answer)
    }

    /// The placements to choose from, beginning with the first run of the greedy mapper.
    fn candidates(&self, runs: Runs) -> Result<Candidates, StrategyError> {
        let &Portfolio { config, model, available, .. } = self;
        let Runs { placements, is_searched, is_optimal, .. } = runs;
        let mut candidates = Candidates { judged: placements, similar: NEAR, executed: Vec::new() };
        let executions = 4 + config.mappers.len();
        if config.rules.paper {
            return Ok(candidates);
        }
        if model.tasks.iter().filter(|task| !task.is_pe).count() > available.len() {
            candidates.similar = SIMILAR;
            let others = self.present().into_iter().chain([self.of_groups()?]).collect();
            candidates.judged.extend(self.allowed(others, true));
        } else if max_executions(model) >= executions && (config.tries_sharing || !is_optimal) {
            let mut others = Vec::from_iter(self.present());
            if config.tries_sharing {
                others.extend(self.with_sharing());
            }
            others.extend(self.of_mappers());
            candidates.executed = self.allowed(others, config.tries_sharing);
        } else if is_searched && !is_optimal && self.is_forest() {
            candidates.judged.extend(self.allowed(self.of_mappers(), config.rules.share));
        }
        Ok(candidates)
    }

    /// Whether the task graph has no cycle. On such graphs the greedy mapper leaves too little room for subtrees; mappers that
    /// cut the whole graph do not.
    fn is_forest(&self) -> bool {
        let pair = |it: &Channel| (it.from.min(it.to), it.from.max(it.to));
        let pairs: FxHashSet<(u32, u32)> = self.model.channels.iter().map(pair).collect();
        pairs.len() < self.model.tasks.len()
    }

    /// The placements that fit into memory and, unless `may_share`, have a PE of its own for every migratable task.
    fn allowed(&self, placements: Vec<Vec<u32>>, may_share: bool) -> Vec<Vec<u32>> {
        let &Portfolio { config, model, database, .. } = self;
        let objects = database.objects.len();
        let ends: Vec<u32> = model.tasks[objects..].iter().filter_map(|task| task.stays_on).collect();
        let whole = |mut places: Vec<u32>| {
            places.truncate(objects);
            places.extend(&ends);
            places
        };
        let is_allowed = |places: &Vec<u32>| {
            fits_memory(model, places, config.rules.memory_bytes) && (may_share || !shares_pes(model, places))
        };
        placements.into_iter().map(whole).filter(is_allowed).collect()
    }

    /// The present placement, if all its PEs are available.
    fn present(&self) -> Option<Vec<u32>> {
        let is_available = |pe: u32| self.available.binary_search(&pe).is_ok();
        let is_possible =
            self.database.objects.iter().all(|object| !object.migratable || is_available(object.pe));
        is_possible.then(|| self.database.placement())
    }

    /// Placements in which tasks may share a PE, if they fit into memory.
    fn with_sharing(&self) -> impl Iterator<Item = Vec<u32>> {
        let &Portfolio { config, model, speeds, topology, available, seed, .. } = self;
        let memory_bytes = config.rules.memory_bytes;
        let ours = Rules { share: true, ..config.rules.clone() };
        [ours, Rules { memory_bytes, ..Rules::paper() }].into_iter().filter_map(move |rules| {
            map(model, topology, speeds, available, &rules, seed).ok().map(|mapped| mapped.places)
        })
    }

    /// The placements of the other mappers.
    fn of_mappers(&self) -> Vec<Vec<u32>> {
        let &Portfolio { config, model, database, topology, seed, .. } = self;
        let place = |mapper: &Arc<dyn Strategy>| {
            let answer = mapper.assign_program(model, database, topology, seed).ok()?;
            answer.check(database).is_ok().then_some(answer.pe_of)
        };
        config.mappers.iter().filter_map(place).collect()
    }
}

/// The placements that are found without other mappers.
struct Runs {
    /// Each placement has the PE of every task; the first is that of the first run of the greedy mapper.
    placements: Vec<Vec<u32>>,
    /// The number of decisions that the first run took back.
    backtracks: usize,
    /// Whether there are several runs: there is a PE for every task, no task is fixed and memory is unbounded.
    is_searched: bool,
    /// Whether some placement has every channel between PEs one hop apart. No other placement with a PE for every task is
    /// better.
    is_optimal: bool,
}

impl Runs {
    /// # Errors
    /// See [`map`].
    fn of(
        model: &Model,
        topology: &dyn Topology,
        speeds: &Speeds,
        available: &[u32],
        rules: &Rules,
        seed: u64,
    ) -> Result<Runs, StrategyError> {
        let greedy = Greedy::new(model, topology, speeds, available, rules, seed)?;
        let Mapped { places, backtracks } = greedy.run(greedy.centre())?;
        let is_optimal = |placements: &[Vec<u32>]| {
            placements.iter().any(|places| is_one_hop_each(model, topology, places))
        };
        let is_searched = !rules.paper
            && greedy.tasks.all_free()
            && model.tasks.len() <= available.len()
            && rules.memory_bytes.is_none();
        let mut placements = vec![places];
        if is_searched && !is_optimal(&placements) {
            placements.extend(chain::place(&greedy.tasks, topology, available));
            if !is_optimal(&placements)
                && let Some(problem) = Problem::new(model, topology, &greedy.host, &greedy.tasks)
            {
                placements.extend(unfold::all(&problem));
                placements.push(beam::place(&problem));
            }
            if model.tasks.len() <= MAX_STARTS {
                for task in 0..model.tasks.len() {
                    placements.push(greedy.run(Some(task))?.places);
                }
            }
        }
        let is_optimal = is_optimal(&placements);
        Ok(Runs { placements, backtracks, is_searched, is_optimal })
    }
}

/// Whether every channel connects PEs one hop apart.
fn is_one_hop_each(model: &Model, topology: &dyn Topology, places: &[u32]) -> bool {
    let place = |task: u32| places[task as usize] as usize;
    model.channels.iter().all(|it| topology.distance(place(it.from), place(it.to)) == 1)
}

/// Whether a task that is not fixed shares its PE with another task.
fn shares_pes(model: &Model, places: &[u32]) -> bool {
    let mut tasks_on: FxHashMap<u32, usize> = FxHashMap::default();
    let tasks = || model.tasks.iter().zip(places).filter(|(task, _)| !task.is_pe);
    tasks().for_each(|(_, &pe)| *tasks_on.entry(pe).or_default() += 1);
    tasks().any(|(task, pe)| task.stays_on.is_none() && tasks_on[pe] > 1)
}

/// Whether the tasks of every PE fit into its memory.
fn fits_memory(model: &Model, places: &[u32], memory_bytes: Option<u64>) -> bool {
    let Some(most) = memory_bytes else { return true };
    let mut used: FxHashMap<u32, u128> = FxHashMap::default();
    for (task, &pe) in model.tasks.iter().zip(places) {
        *used.entry(pe).or_default() += u128::from(task.memory_bytes.unwrap_or(0));
    }
    used.values().all(|&bytes| bytes <= u128::from(most))
}

#[cfg(test)]
mod tests;

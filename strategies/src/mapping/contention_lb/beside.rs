//! Placements that are judged beside that of the greedy mapper.
//!
//! Where tasks outnumber PEs: the mapper places task after task, and where a PE takes many of them it sees little of which
//! belong together; blocks of a grid, which is where a program often begins, may be better by its own estimate. So the placement
//! that is given counts, too, and one of groups: of tasks that exchange much, balanced, as [`super::super::lee_aggarwal`] has
//! them, which the mapper then places one to a PE, with all its runs.
//!
//! Where there is a PE for each, F knows too little of two things: that tasks which hardly compute are over sooner on one PE,
//! and that messages stand in line where links are saturated. So a program that can be executed is tried on placements that are
//! not of the mapper's own criteria: the given one, those with shared PEs, by ours and the paper's criteria, and that of
//! [`PoiseLb`], which spreads bytes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::answer;
use super::best::{affordable, best_of, first_to_end};
use super::{ContentionLb, map};
use crate::cost::contention::Speeds;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::metis::Method;
use crate::poise::{PoiseLb, Quality};
use crate::program::{Channel, Model, Task};
use crate::{Database, Strategy, StrategyError, Topology};

/// How tasks are grouped.
const GROUPING: Grouping = Grouping { by: By::Metis(Method::Recursive), equal: false, imbalance: 0.05 };

/// By what part of the least F that of a placement may be larger where all can be tried: how tasks on a PE wait
/// for each other is known less well than what they do with a PE each.
const SIMILAR: f64 = 0.2;

/// What is placed, and where.
pub(super) struct Beside<'a> {
    pub model: &'a Model,
    pub database: &'a Database,
    pub topology: &'a dyn Topology,
    pub available: &'a [u32],
    pub config: &'a ContentionLb,
    pub seed: u64,
}

impl Beside<'_> {
    /// Of the mapper's placement `places`, which keeps to the bound on memory, and others, the best. With more tasks than
    /// PEs where the program cannot be tried, it is one whose F is hardly larger than the least ([`best_of`]).
    ///
    /// # Errors
    /// When METIS fails.
    pub(super) fn best(&self, places: Vec<u32>) -> Result<Vec<u32>, StrategyError> {
        let &Beside { model, database, topology, available, config, .. } = self;
        let is_many = model.tasks.iter().filter(|task| !task.is_pe).count() > available.len();
        if !is_many && affordable(model) < MOST {
            return Ok(places);
        }
        let mut others = Vec::new();
        let takes = |pe: u32| available.binary_search(&pe).is_ok();
        if database.objects.iter().all(|object| !object.migratable || takes(object.pe)) {
            others.push(database.placement());
        }
        if is_many {
            others.push(self.of_groups()?);
        } else {
            others.extend(self.with_sharing());
            let spread = PoiseLb { quality: Quality::Fast, gamma: Some(0.0), ..PoiseLb::default() };
            others.extend(spread.assign(database, topology, self.seed).ok().map(|answer| answer.pe_of));
        }
        let ends = (database.objects.len()..model.tasks.len()).filter_map(|task| model.tasks[task].stays_on);
        let ends: Vec<u32> = ends.collect();
        for places in &mut others {
            places.truncate(database.objects.len());
            places.extend(&ends);
        }
        let must_not_share = !is_many && config.share == Some(false);
        others.retain(|places| holds(model, places, config) && !(must_not_share && shares(model, places)));
        let mut all = vec![places];
        for places in others {
            if !all.contains(&places) {
                all.push(places);
            }
        }
        let best = match is_many {
            true => best_of(&all, SIMILAR, model, topology, &Speeds::of(database, model)),
            false => first_to_end(&all, &Vec::from_iter(0..all.len()), model).unwrap_or(0),
        };
        Ok(all.swap_remove(best))
    }

    /// Groups of tasks, each with all its tasks on a PE.
    fn of_groups(&self) -> Result<Vec<u32>, StrategyError> {
        let &Beside { model, database, topology, available, config, seed } = self;
        let groups = Groups::of(database, available, GROUPING, seed)?;
        let grouped = grouped(model, database, &groups);
        let unbounded = ContentionLb { memory_bytes: None, ..config.clone() };
        let mapped = map(&grouped, topology, &Speeds::default(), available, &unbounded, seed)?;
        let of_groups = &mapped.places[..groups.count];
        Ok(answer(database, &groups, GROUPING, available.to_vec(), of_groups).pe_of)
    }

    /// Placements in which tasks may share a PE, where the memory is found for them.
    fn with_sharing(&self) -> impl Iterator<Item = Vec<u32>> {
        let &Beside { model, database, topology, available, config, seed } = self;
        let speeds = Speeds::of(database, model);
        let paper = ContentionLb { memory_bytes: config.memory_bytes, ..ContentionLb::paper() };
        [ContentionLb { share: Some(true), ..config.clone() }, paper].into_iter().filter_map(move |config| {
            map(model, topology, &speeds, available, &config, seed).ok().map(|mapped| mapped.places)
        })
    }
}

/// The most placements that are tried where there is a PE for each task.
const MOST: usize = 5;

/// Whether a task that could be elsewhere is on a PE with another.
fn shares(model: &Model, places: &[u32]) -> bool {
    let mut tasks_on: FxHashMap<u32, usize> = FxHashMap::default();
    let tasks = || model.tasks.iter().zip(places).filter(|(task, _)| !task.is_pe);
    tasks().for_each(|(_, &pe)| *tasks_on.entry(pe).or_default() += 1);
    tasks().any(|(task, pe)| task.stays_on.is_none() && tasks_on[pe] > 1)
}

/// Whether the memory of every PE holds its tasks.
fn holds(model: &Model, places: &[u32], config: &ContentionLb) -> bool {
    let Some(most) = config.memory_bytes else { return true };
    let mut used: FxHashMap<u32, u128> = FxHashMap::default();
    for (task, &pe) in model.tasks.iter().zip(places) {
        *used.entry(pe).or_default() += u128::from(task.memory_bytes.unwrap_or(0));
    }
    used.values().all(|&bytes| bytes <= u128::from(most))
}

/// Groups as tasks, and anchors as PEs that are ends of edges; what is inside of one of them takes no way.
fn grouped(model: &Model, database: &Database, groups: &Groups) -> Model {
    let group = |number: usize| groups.group_of.get(number).copied().flatten();
    let home = |number: usize, task: &Task| task.stays_on.unwrap_or_else(|| database.objects[number].pe);
    // Also of tasks that stay somewhere and exchange nothing with anybody.
    let staying = model.tasks.iter().enumerate().filter(|&(number, _)| group(number).is_none());
    let mut anchors: Vec<u32> = staying.map(|(number, task)| home(number, task)).collect();
    anchors.sort_unstable();
    anchors.dedup();
    let anchor = |pe: u32| (groups.count + anchors.partition_point(|&anchor| anchor < pe)) as u32;
    let group_of =
        |(number, task): (usize, &Task)| group(number).unwrap_or_else(|| anchor(home(number, task)));
    let group_of: Vec<u32> = model.tasks.iter().enumerate().map(group_of).collect();
    let mut tasks = vec![Task::default(); groups.count];
    let end = |&pe: &u32| Task { stays_on: Some(pe), is_pe: true, ..Task::default() };
    tasks.extend(anchors.iter().map(end));
    for (task, &group) in model.tasks.iter().zip(&group_of) {
        tasks[group as usize].work_ticks += task.work_ticks;
    }
    let ends = |channel: &Channel| (group_of[channel.from as usize], group_of[channel.to as usize]);
    let mut pairs: Vec<(u32, u32)> = model.channels.iter().map(ends).filter(|it| it.0 != it.1).collect();
    pairs.sort_unstable();
    pairs.dedup();
    let number = |channel: &Channel| pairs.binary_search(&ends(channel)).ok();
    // By pair: messages, all that they carry, and waits.
    let mut sums = vec![(0u64, 0i128, 0i64); pairs.len()];
    for channel in &model.channels {
        if let Some(at) = number(channel) {
            sums[at].0 += channel.messages;
            sums[at].1 += i128::from(channel.messages) * i128::from(channel.flit_ticks);
            sums[at].2 += channel.wait_ticks;
        }
    }
    let mut channels = Vec::with_capacity(pairs.len());
    for (&(from, to), (messages, ticks, wait_ticks)) in pairs.iter().zip(sums) {
        tasks[to as usize].wait_ticks += wait_ticks;
        let flit_ticks = (ticks / i128::from(messages.max(1))) as i64;
        channels.push(Channel { from, to, messages, flit_ticks, wait_ticks });
    }
    let (mut phases, mut known) = (Vec::new(), FxHashSet::default());
    for phase in &model.phases {
        let channels = phase.iter().filter_map(|&it| number(&model.channels[it as usize]));
        let mut phase: Vec<u32> = channels.map(|it| it as u32).collect();
        phase.sort_unstable();
        phase.dedup();
        if !phase.is_empty() && known.insert(phase.clone()) {
            phases.push(phase);
        }
    }
    Model { tasks, channels, phases, cycle_seconds: model.cycle_seconds, waits: model.waits, trial: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::contention::Estimate;
    use crate::database::{Edge, End};
    use crate::testing::{assign_on, database};
    use crate::topology;

    /// A grid of objects on the first PE, in so many columns and rows.
    fn grid(pes: usize, columns: u32, rows: u32) -> Database {
        let mut database = database(pes, &vec![(1e-6, 0); (columns * rows) as usize]);
        let edge = |from, to| Edge { from: End::Object(from), to: End::Object(to), messages: 1, bytes: 1000 };
        for at in 0..columns * rows {
            let right = (at % columns + 1 < columns).then_some(at + 1);
            let below = (at + columns < columns * rows).then_some(at + columns);
            for other in right.into_iter().chain(below) {
                database.edges.extend([edge(at, other), edge(other, at)]);
            }
        }
        database
    }

    fn f(database: &Database, machine: &str, places: &[u32]) -> i64 {
        let machine = topology::parse(machine).expect("a machine");
        let model = Model::of_database(database, &*machine);
        Estimate::of(&model, &*machine, &Speeds::of(database, &model), places)
    }

    #[test]
    fn many_objects_are_placed_no_worse_than_in_blocks_or_as_they_were() {
        let mut database = grid(16, 20, 20);
        let blocks: Vec<u32> = (0..400).map(|at| at % 20 / 5 + 4 * (at / 100)).collect();
        let places = assign_on("ContentionLB", &database, "mesh:4x4").expect("an answer").pe_of;
        let (ours, theirs) = (f(&database, "mesh:4x4", &places), f(&database, "mesh:4x4", &blocks));
        assert!(ours <= theirs + theirs / 5, "{ours} and {theirs}");
        // Given blocks, it ends with them or something better.
        for (object, &pe) in database.objects.iter_mut().zip(&blocks) {
            object.pe = pe;
        }
        let places = assign_on("ContentionLB", &database, "mesh:4x4").expect("an answer").pe_of;
        assert!(f(&database, "mesh:4x4", &places) <= theirs);
    }

    #[test]
    fn objects_that_stay_keep_what_belongs_to_them() {
        let mut database = grid(4, 6, 6);
        for (object, pe) in [(0, 3), (35, 1)] {
            (database.objects[object].migratable, database.objects[object].pe) = (false, pe);
        }
        let places = assign_on("ContentionLB", &database, "mesh:2x2").expect("an answer").pe_of;
        assert_eq!((places[0], places[35], places.len()), (3, 1, 36));
        assert!(places[1] == 3 || places[6] == 3, "{places:?}");
        let model = Model::of_database(&database, &*topology::parse("mesh:2x2").expect("a mesh"));
        let groups = Groups::of(&database, &[0, 1, 2, 3], GROUPING, 0).expect("groups");
        let grouped = grouped(&model, &database, &groups);
        assert_eq!(grouped.tasks.len(), groups.count + 2);
        assert_eq!(grouped.tasks[groups.count].stays_on, Some(1));
        let work = |model: &Model| model.tasks.iter().map(|task| task.work_ticks).sum::<i64>();
        assert_eq!(work(&grouped), work(&model));
    }
}

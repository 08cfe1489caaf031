//! The placement of groups of tasks, where tasks outnumber PEs.
//!
//! Balanced groups of tasks that exchange much become the tasks of a smaller program. That program is mapped with one
//! task per PE, by all runs. For grids this finds the placement in blocks, a common initial placement of programs.

use rustc_hash::FxHashSet;

use equipoise_model::Database;
use equipoise_network::program::{Channel, Model, Task};

use super::selection::{Candidates, NEAR};
use super::{Portfolio, Runs};
use crate::StrategyError;
use crate::cost::contention::Speeds;
use crate::mapping::answer;
use crate::mapping::de_petris_perego::Rules;
use crate::partition::groups::{By, Grouping, Groups};
use crate::partition::metis::Method;

/// How tasks are grouped.
const GROUPING: Grouping = Grouping { by: By::Metis(Method::Recursive), equal: false, imbalance: 0.05 };

impl Portfolio<'_> {
    /// A placement with all tasks of a group on one PE.
    ///
    /// # Errors
    /// If METIS fails.
    pub(super) fn of_groups(&self) -> Result<Vec<u32>, StrategyError> {
        let &Portfolio { config, model, database, topology, available, seed, .. } = self;
        let groups = Groups::of(database, available, GROUPING, seed)?;
        let grouped = grouped(model, database, &groups);
        let unbounded = Rules { memory_bytes: None, ..config.rules.clone() };
        let speeds = Speeds::default();
        let runs = Runs::of(&grouped, topology, &speeds, available, &unbounded, seed)?;
        let candidates = Candidates { judged: runs.placements, similar: NEAR, executed: Vec::new() };
        let places = candidates.best(&grouped, topology, &speeds);
        Ok(answer(database, topology, &groups, GROUPING, available.to_vec(), &places[..groups.count]).pe_of)
    }
}

/// The model with groups as tasks and anchors as PEs that are ends of edges. Messages inside a group or anchor are left
/// out.
fn grouped(model: &Model, database: &Database, groups: &Groups) -> Model {
    let group = |number: usize| groups.group_of.get(number).copied().flatten();
    let home = |number: usize, task: &Task| task.stays_on.unwrap_or_else(|| database.objects[number].pe);
    // Fixed tasks that exchange nothing have an anchor too.
    let fixed = model.tasks.iter().enumerate().filter(|&(number, _)| group(number).is_none());
    let mut anchors: Vec<u32> = fixed.map(|(number, task)| home(number, task)).collect();
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
    // By pair: the number of messages, the ticks of all messages, and the waits.
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
    Model {
        tasks,
        channels,
        phases,
        cycle_seconds: model.cycle_seconds,
        waits: model.waits,
        simulation: None,
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::topology;

    use super::*;
    use crate::cost::contention::Estimate;
    use crate::testing::{assign_on, database};

    /// A grid of `columns` x `rows` objects, all on the first PE.
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
    fn many_objects_are_placed_about_as_well_as_blocks_and_no_worse_than_before() {
        let mut database = grid(16, 20, 20);
        let blocks: Vec<u32> = (0..400).map(|at| at % 20 / 5 + 4 * (at / 100)).collect();
        let places = assign_on("ContentionLB", &database, "mesh:4x4").expect("an assignment").pe_of;
        let (ours, theirs) = (f(&database, "mesh:4x4", &places), f(&database, "mesh:4x4", &blocks));
        assert!(ours <= theirs + theirs / 5, "{ours} and {theirs}");
        // If the objects are in blocks before, the result is at least as good.
        for (object, &pe) in database.objects.iter_mut().zip(&blocks) {
            object.pe = pe;
        }
        let places = assign_on("ContentionLB", &database, "mesh:4x4").expect("an assignment").pe_of;
        assert!(f(&database, "mesh:4x4", &places) <= theirs);
    }

    #[test]
    fn non_migratable_objects_attract_their_partners_in_groups() {
        let mut database = grid(4, 6, 6);
        for (object, pe) in [(0, 3), (35, 1)] {
            (database.objects[object].migratable, database.objects[object].pe) = (false, pe);
        }
        let places = assign_on("ContentionLB", &database, "mesh:2x2").expect("an assignment").pe_of;
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

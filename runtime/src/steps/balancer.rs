//! PE 0 at a load-balancing step: builds a database from the statistics of all PEs, calls the strategy,
//! checks its assignment, and plans the migrations.
//!
//! The runtime never looks at the name of a strategy; the schedule selects the strategy of the step.

use super::{available, gate, repeat};
use crate::lb_history::LbStep;
use crate::load::{Sent, element_key};
use crate::options::{LbWhen, ReportForm};
use crate::order::{ObjectStatistics, Plan, Statistics};
use crate::pe::PeCx;
use crate::process;
use crate::pulse::Activity;
use crate::report::show;
use equipoise_model::Assignment;
use equipoise_model::assignment::Attempt;
use equipoise_model::database::{Database, Edge, End, Object, PeRecord};
use equipoise_model::quote::{printable, sentence};
use equipoise_network::trace;
use equipoise_strategies::cost;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::predict::{History, Predictor};
use equipoise_strategies::strategy::guarded;
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Decides a step; returns the plan of every PE that has migrations.
pub(super) fn decide(pe: &PeCx, step: u32, collected: Vec<Statistics>) -> Vec<Plan> {
    let settings = pe.settings();
    let Collected { mut database, keys, intervals } = database(pe, step, collected);
    database.costs = settings.costs.clone();
    let steps = &pe.collectives.steps;
    let experience = &steps.experience;
    available::mark(settings, step, &mut database.pes, &mut steps.available.borrow_mut());
    let period_seconds = database.pes.iter().map(|pe| pe.wall_seconds).fold(0.0, f64::max);
    let topology = &*settings.topology;
    let sync_points = sync_points(pe, steps.number.get());
    experience.borrow_mut().judge(&database, topology, sync_points);
    database.costs.iter_mut().for_each(|costs| experience.borrow().tell(costs));
    let placement = database.placement();
    let predicted = predicted(pe, &database, sync_points, &intervals);
    let expected = predicted.as_ref().map_or(&database, |(expected, _)| expected);
    let choice = settings.schedule.at(u64::from(step));
    let before = cost::Metrics::of(&database, topology, &placement);
    let mut kept = None;
    let asked = Instant::now();
    let ask = |choice: &Choice| {
        let name = &choice.spec;
        // A panic of the strategy fails the step, not the run.
        let assign = || choice.strategy.assign(expected, topology, settings.seed);
        let answer = pe
            .delivery
            .running
            .during(Activity::Strategy { step }, || guarded(assign))
            .map_err(|error| format!("{name} failed: {error}"))?;
        let checked = answer.check(expected);
        checked.map(|()| answer).map_err(|error| format!("the assignment of {name} was rejected: {error}"))
    };
    let mut took = 0.0;
    let answer = repeat::answer(&pe.out, &placement, || {
        let mut answer = choice.map(ask);
        took = asked.elapsed().as_secs_f64();
        if let (Some(choice), Some(Ok(answer))) = (choice, &mut answer) {
            kept = gate::review(pe, expected, choice, answer);
        }
        answer
    });
    let attempts = answer.as_ref().and_then(|answer| Some(&*answer.as_ref().ok()?.attempts));
    let strategy_seconds = strategy_seconds(pe, choice, attempts.unwrap_or_default(), took, false);
    if let (Some(choice), Some(Ok(answer))) = (choice, &answer) {
        experience.borrow_mut().thought(&choice.spec, strategy_seconds, answer);
    }
    let (answer, error) = match answer {
        None => (Assignment::new(placement.clone()), None),
        Some(Ok(answer)) => (answer, None),
        Some(Err(error)) => (Assignment::new(placement.clone()), Some(error)),
    };
    let plans = plans(pe.out.pes, &placement, &answer.pe_of, &keys);
    let after = cost::Metrics::of(&database, topology, &answer.pe_of);
    let is_rejected = kept.is_some() || after.migrations == 0 && !answer.attempts.is_empty();
    let rest = match &predicted {
        _ if is_rejected => before.least_imbalance(),
        Some(_) => cost::Metrics::of(expected, topology, &answer.pe_of).imbalance,
        None => after.imbalance,
    };
    let report = LbStep {
        step: u64::from(step),
        strategy: choice.map(|choice| choice.spec.clone()),
        period_seconds,
        sync_points,
        strategy_seconds,
        decision_seconds: pe.clock.seconds(pe.clock.now().wrapping_sub(pe.collectives.steps.began.get())),
        before,
        after,
        notes: answer.notes,
        remark: answer.sentence,
        predictor: predicted.as_ref().map(|(_, predictor)| predictor.to_string()),
        kept,
        error,
    };
    if settings.report.is_some() {
        pe.out.node.outcome.lock().run_report.add(&report, &database, &answer.pe_of);
    }
    finish(pe, step, report, rest, Some(&database));
    plans
}

/// Adds the step to what is recorded of the run. It ends when PE 0 continues.
fn mark(pe: &PeCx, report: &LbStep) {
    if !pe.settings().is_recorded() {
        return;
    }
    let began = pe.collectives.steps.began.get();
    let begin_seconds = pe.clock.seconds(began);
    let step = trace::LbStep {
        number: report.step,
        strategy: report.strategy.clone().unwrap_or_default(),
        begin_seconds,
        end_seconds: pe.clock.virtual_seconds().max(begin_seconds),
        migrations: report.after.migrations,
        max_over_avg: [1.0 + report.before.imbalance, 1.0 + report.after.imbalance],
    };
    match pe.out.log() {
        Some(log) => log.balances(began, step),
        None => pe.out.trace(|tracer| tracer.log().balances(step)),
    }
}

/// Notes a decision, shows its report, and writes the database if there is one and it is to be written. A step could leave the most
/// loaded PE above the average by `rest` of it.
pub(super) fn finish(pe: &PeCx, step: u32, report: LbStep, rest: f64, database: Option<&Database>) {
    mark(pe, &report);
    pe.collectives.steps.decided.set(Some(pe.collectives.steps.began.get()));
    let moving = report.kept.as_ref().map(|kept| kept.migration_seconds).or(report.after.migration_seconds);
    let cost_seconds = report.decision_seconds + moving.unwrap_or(0.0);
    let credit = database.map(|_| pe.collectives.steps.experience.borrow().credit());
    pe.collectives.steps.losses.borrow_mut().stepped(cost_seconds, rest, credit);
    if report.kept.is_some_and(|kept| kept.is_trial) {
        pe.collectives.steps.losses.borrow_mut().step_next();
    }
    publish(pe, &report);
    if let Some(clock) = pe.clock.simulated() {
        // The time of the metrics is no part of the run.
        clock.discard_measured();
    }
    let Some(database) = database else {
        return pe.out.node.outcome.lock().lb_steps.add(report);
    };
    let mut dump = {
        let mut outcome = pe.out.node.outcome.lock();
        outcome.lb_steps.add(report);
        std::mem::take(&mut outcome.dump)
    };
    if pe.settings().dumps(u64::from(step)) {
        // Without the lock: a slow disk must not keep other PEs from ending the run.
        dump.add(pe.settings(), database);
    }
    pe.out.node.outcome.lock().dump = dump;
}

/// The number of sync points since the previous step, this one included, of `points` in all.
pub(super) fn sync_points(pe: &PeCx, points: u32) -> u32 {
    points - pe.collectives.steps.points_before.replace(points)
}

/// The database with the loads that `--lb-predict` predicts for the coming period, and what predicted them; `None` if they are taken
/// to be those of the last period.
fn predicted(
    pe: &PeCx,
    database: &Database,
    sync_points: u32,
    intervals: &[f64],
) -> Option<(Database, Predictor)> {
    let settings = pe.settings();
    let is_auto = settings.lb_when == LbWhen::Auto;
    let predictor = settings.lb_predict.unwrap_or(if is_auto { Predictor::Auto } else { Predictor::Last });
    if predictor == Predictor::Last {
        return None;
    }
    let mut history = pe.collectives.steps.history.borrow_mut();
    let history = history.get_or_insert_with(|| History::new(predictor));
    let loads = history.next(database, f64::from(sync_points), is_auto.then_some(intervals));
    let mut expected = database.clone();
    for (object, load) in expected.objects.iter_mut().zip(loads) {
        object.load_seconds = load;
    }
    Some((expected, history.predictor()))
}

/// The plans of the PEs with migrations, for objects with these arrays and ranks.
fn plans(pes: u32, placement: &[u32], pe_of: &[u32], keys: &[(u16, u32)]) -> Vec<Plan> {
    let mut plans: Vec<Plan> = (0..pes).map(|pe| Plan { pe, ..Plan::default() }).collect();
    for ((&from, &to), &(array, rank)) in placement.iter().zip(pe_of).zip(keys) {
        if from != to {
            plans[from as usize].moves.push((array, rank, to));
            plans[to as usize].incoming += 1;
        }
    }
    plans.retain(|plan| !plan.moves.is_empty() || plan.incoming > 0);
    plans
}

/// The time of a strategy that tried others in `attempts`, and took `seconds` on this computer. On a simulated machine, the PE is busy
/// for the virtual time of the strategy. If that is a time for the whole strategy, it counts unless it `was_charged`.
pub(super) fn strategy_seconds(
    pe: &PeCx,
    choice: Option<&Choice>,
    attempts: &[Attempt],
    seconds: f64,
    was_charged: bool,
) -> f64 {
    let settings = pe.settings();
    let simulation = settings.simulation.as_ref();
    let (Some(simulation), Some(clock)) = (simulation, pe.clock.simulated()) else { return seconds };
    // The time measured meanwhile belongs to the strategy, not to an element.
    clock.discard_measured();
    let known = || settings.costs.as_ref()?.strategies.get(&choice?.spec).copied();
    let modelled = match attempts {
        [] => known().unwrap_or(0.0),
        _ => attempts.iter().map(|attempt| attempt.thinking_seconds).sum(),
    };
    let seconds = simulation.strategy(seconds, modelled, was_charged);
    clock.spend(seconds);
    seconds
}

/// What the PEs have recorded.
struct Collected {
    database: Database,
    /// The array and the rank of each object.
    keys: Vec<(u16, u32)>,
    /// The load of each object in the last interval between sync points, in seconds.
    intervals: Vec<f64>,
}

/// What is known at a step.
fn database(pe: &PeCx, step: u32, mut collected: Vec<Statistics>) -> Collected {
    let settings = pe.settings();
    collected.sort_unstable_by_key(|statistics| statistics.pe);
    let mut database = Database {
        step: u64::from(step),
        arrays: pe.infos.iter().map(|info| info.name.to_owned()).collect(),
        communication_recorded: settings.records_communication(),
        constraints: settings.constraints.clone(),
        ..Database::default()
    };
    let mut found = Vec::with_capacity(collected.iter().map(|statistics| statistics.objects.len()).sum());
    for statistics in &mut collected {
        let outside = outside_seconds(statistics);
        database.pes.push(PeRecord {
            speed: statistics.speed,
            wall_seconds: statistics.wall_seconds,
            idle_seconds: statistics.idle_seconds,
            background_seconds: if settings.background { outside } else { 0.0 },
            ..PeRecord::default()
        });
        found.extend(statistics.objects.drain(..).map(|object| Some((statistics.pe, object))));
    }
    let leader = |array: u16| bound_leader(pe, array);
    let mut found = sorted(found, leader);
    for (_, object) in &mut found {
        // The leader is between two PEs, and only it knows whether it may migrate.
        object.migratable &= object.array == leader(object.array);
    }
    let keys: Vec<(u16, u32)> = found.iter().map(|(_, object)| (leader(object.array), object.rank)).collect();
    let communicates = found.iter().any(|(_, object)| !object.edges.is_empty())
        || collected.iter().any(|statistics| !statistics.edges.is_empty());
    let mut positions = FxHashMap::default();
    if communicates {
        positions =
            keys.iter().zip(0u32..).map(|(&(array, rank), at)| (element_key(array, rank), at)).collect();
    }
    let of_interval =
        |(_, object): &(u32, ObjectStatistics)| object.load_seconds * f64::from(object.interval_part);
    let intervals = found.iter().map(of_interval).collect();
    let mut edges = Vec::new();
    let mut dangling = 0;
    let mut add = |from: End, sent: &[Sent]| {
        for &Sent { to, messages, bytes } in sent {
            let to = element_key(leader((to >> 32) as u16), to as u32);
            match positions.get(&to) {
                Some(&to) if from == End::Object(to) => {}
                Some(&to) => edges.push(Edge { from, to: End::Object(to), messages, bytes }),
                None => dangling += 1,
            }
        }
    };
    for ((pe, object), at) in found.into_iter().zip(0u32..) {
        add(End::Object(at), &object.edges);
        database.objects.push(Object {
            id: element_key(leader(object.array), object.rank),
            array: u32::from(leader(object.array)),
            index: object.index,
            load_seconds: object.load_seconds,
            bytes: object.bytes,
            pe,
            migratable: object.migratable,
        });
    }
    for statistics in &collected {
        add(End::Pe(statistics.pe), &statistics.edges);
    }
    database.edges = edges;
    database.dangling_edges = dangling;
    Collected { database, keys, intervals }
}

/// The time of a PE outside of elements: its background.
pub(super) fn outside_seconds(statistics: &Statistics) -> f64 {
    (statistics.wall_seconds - statistics.idle_seconds - statistics.measured_seconds).max(0.0)
}

/// The array to which an array is bound; bound elements are one object, of that array.
pub(super) fn bound_leader(pe: &PeCx, array: u16) -> u16 {
    pe.infos.get(usize::from(array)).and_then(|info| info.bound_to).unwrap_or(array)
}

/// The records by element, so that an assignment does not depend on the current placement; `leader` is the array to which an array
/// is bound. Records of one object are one. Positions are sorted instead of the records, which are large.
pub(super) fn sorted(
    mut found: Vec<Option<(u32, ObjectStatistics)>>,
    leader: impl Fn(u16) -> u16,
) -> Vec<(u32, ObjectStatistics)> {
    let key = |object: &ObjectStatistics| {
        let element = element_key(leader(object.array), object.rank);
        (element, object.array)
    };
    let mut order: Vec<_> = (0u32..)
        .zip(&found)
        .filter_map(|(at, it)| it.as_ref().map(|(_, object)| (key(object), at)))
        .collect();
    order.sort_unstable();
    let mut sorted: Vec<(u32, ObjectStatistics)> = Vec::with_capacity(order.len());
    let mut last = None;
    for ((element, _), at) in order {
        let Some((pe, mut later)) = found[at as usize].take() else { continue };
        match sorted.last_mut().filter(|_| last == Some(element)) {
            Some((_, object)) => merge(object, &mut later),
            None => sorted.push((pe, later)),
        }
        last = Some(element);
    }
    sorted
}

/// Adds the records of an object that are in another place: of a bound element, or, for an element that called `migrate`
/// meanwhile, in the statistics of another PE.
fn merge(object: &mut ObjectStatistics, later: &mut ObjectStatistics) {
    let (first, second) = (object.load_seconds as f32, later.load_seconds as f32);
    if first + second > 0.0 {
        object.interval_part =
            (object.interval_part * first + later.interval_part * second) / (first + second);
    }
    object.load_seconds += later.load_seconds;
    object.edges.append(&mut later.edges);
    if object.array != later.array {
        object.migratable &= later.migratable;
        object.bytes = object.bytes.zip(later.bytes).map(|(bytes, more)| bytes + more);
    }
}

/// Prints the report of a step if asked for. If the assignment was not applied, prints a warning, or ends the run with
/// `--lb-strict`.
fn publish(pe: &PeCx, step: &LbStep) {
    match pe.settings().lb_report {
        Some(ReportForm::Json) => match serde_json::to_string(step) {
            Ok(line) => show(&line),
            Err(error) => process::warn(&format!("a load-balancing step cannot be shown as JSON: {error}")),
        },
        Some(ReportForm::Text) => show(&printable(&step.to_string())),
        None => {}
    }
    let Some(error) = &step.error else { return };
    let failed = format!("load-balancing step {}: {}", step.step, sentence(&error.to_string()));
    if pe.settings().lb_strict {
        return pe.fail(format!("{failed}; --lb-strict ends the run"));
    }
    process::warn(&format!("{failed}; placement unchanged"));
}

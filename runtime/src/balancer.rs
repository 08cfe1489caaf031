//! What PE 0 does at a load-balancing step: makes a database of what all PEs recorded, asks the
//! strategy, checks its answer, and says who goes where.
//!
//! The runtime never looks at a strategy's name; it only knows which one the schedule gives for the
//! step.

use crate::context::PeCx;
use crate::databases::show;
use crate::load::{Sent, element_key};
use crate::options::ReportForm;
use equipoise_strategies::Assignment;
use equipoise_strategies::cost::{Metrics, sentence};
use equipoise_strategies::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};
use equipoise_strategies::strategy::guarded;
use equipoise_strategies::table;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// What one PE recorded in a period.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Statistics {
    pub(crate) pe: u32,
    pub(crate) wall_seconds: f64,
    pub(crate) idle_seconds: f64,
    /// What the objects took by the clock, whatever they charged.
    pub(crate) measured_seconds: f64,
    /// How fast the PE is; 1 is normal.
    pub(crate) speed: f64,
    pub(crate) objects: Vec<ObjectStatistics>,
    /// Whom the PE itself sent how much.
    pub(crate) edges: Vec<Sent>,
}

/// What was recorded of one element.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ObjectStatistics {
    pub(crate) array: u16,
    pub(crate) rank: u32,
    pub(crate) index: ObjectIndex,
    pub(crate) load_seconds: f64,
    pub(crate) bytes: Option<u64>,
    pub(crate) migratable: bool,
    pub(crate) edges: Vec<Sent>,
}

/// What a PE has to do in a step.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) step: u32,
    /// Elements to send away: array, rank, PE.
    pub(crate) moves: Vec<(u16, u32, u32)>,
    /// How many elements will come.
    pub(crate) incoming: u32,
}

/// What happened at a load-balancing step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LbStep {
    /// Its number, from 0.
    pub step: u64,
    /// The strategy, as it was asked for; none if the step only wrote the database.
    pub strategy: Option<String>,
    /// Seconds since the step before, or the start.
    pub period_seconds: f64,
    /// Seconds the strategy took.
    pub strategy_seconds: f64,
    /// Seconds from the moment the last element had come to the decision.
    pub decision_seconds: f64,
    /// What the placement cost that was found.
    pub before: Metrics,
    /// What the placement costs that was decided, for the same loads.
    pub after: Metrics,
    /// What the strategy had to say about its work.
    pub notes: Vec<(String, f64)>,
    /// Why the strategy's answer was not carried out, if it was not.
    pub error: Option<String>,
}

impl LbStep {
    /// The sentence for a person: what balance is worth, and what is left of it.
    pub fn sentence(&self) -> String {
        sentence(&self.before, &self.after)
    }
}

/// Decides a step; returns the plan of every PE.
pub(crate) fn decide(pe: &PeCx, step: u32, began: u64, collected: Vec<Statistics>) -> Vec<Plan> {
    let settings = &pe.node.settings;
    let (database, keys) = database(pe, step, collected);
    let period_seconds = database.pes.iter().map(|pe| pe.wall_seconds).fold(0.0, f64::max);
    let placement = database.placement();
    let choice = settings.schedule.at(u64::from(step));
    let asked = Instant::now();
    let answer = choice.map(|choice| {
        // A user's strategy may panic; that is its error, not the run's.
        guarded(|| choice.strategy.assign(&database, &*settings.topology, settings.seed))
            .map_err(|error| error.to_string())
            .and_then(|answer| answer.check(&database).map(|()| answer).map_err(|error| error.to_string()))
    });
    let strategy_seconds = took(pe, asked.elapsed().as_secs_f64());
    let (answer, error) = match answer {
        None => (Assignment::new(placement.clone()), None),
        Some(Ok(answer)) => (answer, None),
        Some(Err(error)) => (Assignment::new(placement.clone()), Some(error)),
    };
    let mut plans: Vec<Plan> = (0..pe.pes).map(|_| Plan { step, ..Plan::default() }).collect();
    for ((&from, &to), &(array, rank)) in placement.iter().zip(&answer.pe_of).zip(&keys) {
        if from != to {
            plans[from as usize].moves.push((array, rank, to));
            plans[to as usize].incoming += 1;
        }
    }
    let topology = &*settings.topology;
    let before = Metrics::of(&database, topology, &placement);
    let after = Metrics::of(&database, topology, &answer.pe_of);
    let report = LbStep {
        step: u64::from(step),
        strategy: choice.map(|choice| choice.spec.clone()),
        period_seconds,
        strategy_seconds,
        decision_seconds: pe.ticker.seconds(pe.ticker.now().wrapping_sub(began)),
        before,
        after,
        notes: answer.notes,
        error,
    };
    publish(settings.lb_report, &report);
    if let Some(clock) = pe.ticker.simulated() {
        // Only the report needs the metrics.
        clock.forget();
    }
    let mut outcome = pe.node.outcome.lock();
    outcome.lb_steps.push(report);
    if settings.dumps(u64::from(step)) {
        outcome.databases.push(database);
    }
    plans
}

/// What a strategy takes that took `seconds` here: the same, but on a simulated machine, whose PE 0 it
/// keeps busy.
fn took(pe: &PeCx, seconds: f64) -> f64 {
    let simulation = pe.node.settings.simulation.as_ref();
    let (Some(simulation), Some(clock)) = (simulation, pe.ticker.simulated()) else { return seconds };
    // What was measured meanwhile was the strategy, not an element.
    clock.forget();
    let seconds = simulation.strategy(seconds);
    clock.spend(seconds);
    seconds
}

/// The database of a step, with the array and rank of each of its objects.
fn database(pe: &PeCx, step: u32, mut collected: Vec<Statistics>) -> (Database, Vec<(u16, u32)>) {
    let settings = &pe.node.settings;
    collected.sort_unstable_by_key(|statistics| statistics.pe);
    let mut database = Database {
        step: u64::from(step),
        arrays: pe.infos.iter().map(|info| info.name.to_owned()).collect(),
        communication_recorded: settings.records_communication(),
        ..Database::default()
    };
    let mut found = Vec::new();
    for statistics in &mut collected {
        let outside = statistics.wall_seconds - statistics.idle_seconds - statistics.measured_seconds;
        database.pes.push(PeRecord {
            speed: statistics.speed,
            wall_seconds: statistics.wall_seconds,
            idle_seconds: statistics.idle_seconds,
            background_seconds: if settings.background { outside.max(0.0) } else { 0.0 },
            ..PeRecord::default()
        });
        found.extend(statistics.objects.drain(..).map(|object| (statistics.pe, object)));
    }
    // In element order, so that a strategy's answer does not depend on who lives where.
    found.sort_unstable_by_key(|(_, object)| (object.array, object.rank));
    // An element that moved by hand meanwhile was met twice; its recordings are parts of one.
    found.dedup_by(|(_, later), (_, object)| {
        let same = (later.array, later.rank) == (object.array, object.rank);
        if same {
            object.load_seconds += later.load_seconds;
            object.edges.append(&mut later.edges);
        }
        same
    });
    let keys: Vec<(u16, u32)> = found.iter().map(|(_, object)| (object.array, object.rank)).collect();
    let talks = found.iter().any(|(_, object)| !object.edges.is_empty())
        || collected.iter().any(|statistics| !statistics.edges.is_empty());
    let mut positions = FxHashMap::default();
    if talks {
        positions =
            keys.iter().zip(0u32..).map(|(&(array, rank), at)| (element_key(array, rank), at)).collect();
    }
    let mut edges = Vec::new();
    let mut dangling = 0;
    let mut add = |from: End, sent: &[Sent]| {
        for &Sent { to, messages, bytes } in sent {
            match positions.get(&to) {
                Some(&to) => edges.push(Edge { from, to: End::Object(to), messages, bytes }),
                None => dangling += 1,
            }
        }
    };
    for ((pe, object), at) in found.into_iter().zip(0u32..) {
        add(End::Object(at), &object.edges);
        database.objects.push(Object {
            id: element_key(object.array, object.rank),
            array: u32::from(object.array),
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
    (database, keys)
}

/// Shows a step to whoever asked to see it; an answer that was not obeyed is told in any case.
fn publish(form: Option<ReportForm>, step: &LbStep) {
    match form {
        Some(ReportForm::Json) => match serde_json::to_string(step) {
            Ok(line) => show(&line),
            Err(error) => eprintln!("warning: a load-balancing step cannot be shown as JSON: {error}"),
        },
        Some(ReportForm::Text) => show(&step.to_string()),
        None => {}
    }
    if let (Some(error), Some(strategy)) = (&step.error, &step.strategy) {
        eprintln!(
            "warning: load-balancing step {}: the answer of {strategy} was not obeyed: {error}",
            step.step
        );
    }
}

impl std::fmt::Display for LbStep {
    /// One block of lines for a person.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (before, after) = (&self.before, &self.after);
        writeln!(
            f,
            "LB step {}: {} in {:.3} ms, {} of {} objects move{}",
            self.step,
            self.strategy.as_deref().unwrap_or("no strategy"),
            self.strategy_seconds * 1e3,
            after.migrations,
            after.objects,
            after.migrated_bytes.map_or(String::new(), |bytes| format!(" ({})", table::bytes(bytes))),
        )?;
        writeln!(
            f,
            "  largest load {:.3} -> {:.3} ms, at best {:.3} ms: max/avg {:.3} -> {:.3}",
            before.max_load_seconds * 1e3,
            after.max_load_seconds * 1e3,
            before.lower_bound_seconds * 1e3,
            before.imbalance + 1.0,
            after.imbalance + 1.0,
        )?;
        if let (Some(before), Some(after)) = (before.communication, after.communication)
            && before.total_bytes > 0
        {
            writeln!(
                f,
                "  hops per byte {:.3} -> {:.3}, bytes between PEs {} -> {}",
                before.hops_per_byte, after.hops_per_byte, before.remote_bytes, after.remote_bytes,
            )?;
        }
        for (name, value) in &self.notes {
            writeln!(f, "  {name}: {value}")?;
        }
        write!(f, "  {}", self.sentence())
    }
}

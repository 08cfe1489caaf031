//! `equipoise.map`: maps the tasks of a graph or the objects of a database to the PEs of a machine.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use equipoise_model::assignment::{Note, mapping_file};
use equipoise_model::fault::Fault;
use equipoise_model::launcher::{self, Job, LauncherError, Slots};
use equipoise_model::table::percent;
use equipoise_model::{Assignment, Database as Record, Topology};
use equipoise_report::{Builder, ReportFile};
use equipoise_strategies::StrategyError;
use equipoise_strategies::cost::explain::Explanation;
use equipoise_strategies::cost::{Metrics, sentence};
use equipoise_strategies::strategy::guarded;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde::{Deserialize, Serialize};

use crate::database::{Database, placement};
use crate::errors::{from_json, json, of_file, raise, raise_as, usage};
use crate::limits::Limits;
use crate::machine::{Machine, parse};
use crate::strategy::{Balancer, choice};
use crate::work::Run;

/// A mapping and its costs.
#[pyclass(frozen, module = "equipoise._core")]
pub(crate) struct Mapping {
    found: Arc<Found>,
}

/// What a strategy found, and where it started.
struct Found {
    record: Record,
    topology: Arc<dyn Topology>,
    name: String,
    seconds: f64,
    answer: Assignment,
    before: Metrics,
    after: Metrics,
}

impl Found {
    fn new(
        record: Record,
        topology: Arc<dyn Topology>,
        name: String,
        seconds: f64,
        answer: Assignment,
    ) -> PyResult<Self> {
        answer.check(&record).map_err(|error| raise(StrategyError::rejected(&name, error)))?;
        let before = Metrics::full(&record, &*topology, &record.placement());
        let after = Metrics::full(&record, &*topology, &answer.pe_of);
        Ok(Found { record, topology, name, seconds, answer, before, after })
    }
}

/// What pickle keeps of a mapping; the costs are computed again.
#[derive(Serialize, Deserialize)]
struct Kept {
    record: Record,
    topology: String,
    name: String,
    seconds: f64,
    pe_of: Vec<u32>,
    /// Names with the bits of the numbers, because JSON has no infinite ones.
    notes: Vec<(String, u64)>,
    sentence: Option<String>,
}

#[pymethods]
impl Mapping {
    /// The mapping that pickle kept.
    #[new]
    fn new(py: Python<'_>, document: &str) -> PyResult<Self> {
        let Kept { record, topology, name, seconds, pe_of, notes, sentence } = from_json(document)?;
        let topology = parse(py, topology)?;
        if topology.pes() != record.pes.len() {
            let (spec, pes) = (topology.spec(), record.pes.len());
            let sentence =
                format!("{spec} had {pes} PEs when the mapping was pickled; give its file back that content");
            return Err(raise_as(Fault::Input, sentence));
        }
        let notes = notes.into_iter().map(|(name, bits)| Note::new(name, f64::from_bits(bits))).collect();
        let answer = Assignment { notes, sentence, ..Assignment::new(pe_of) };
        let damaged = |why: String| raise_as(Fault::Input, format!("the pickled mapping is damaged: {why}"));
        record.check().map_err(|error| damaged(error.to_string()))?;
        answer.check(&record).map_err(|error| damaged(error.to_string()))?;
        let found = Run::new().wait(py, move || Found::new(record, topology, name, seconds, answer))?;
        Ok(Mapping { found: Arc::new(found) })
    }

    /// What pickle keeps.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        let Found { record, topology, name, seconds, answer, .. } = &*this.get().found;
        let kept = Kept {
            record: record.clone(),
            topology: topology.spec(),
            name: name.clone(),
            seconds: *seconds,
            pe_of: answer.pe_of.clone(),
            notes: answer.notes.iter().map(|note| (note.name.clone(), note.value.to_bits())).collect(),
            sentence: answer.sentence.clone(),
        };
        Ok((this.get_type(), (json(&kept)?,)))
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The PE of every task.
    #[getter]
    fn pe<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.found.answer.pe_of.iter().map(|&pe| i64::from(pe)))
    }

    /// The PE of every task where the search started.
    #[getter]
    fn start<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_iter(py, self.found.record.objects.iter().map(|object| i64::from(object.pe)))
    }

    /// The JSON document: costs before and after, the time of the strategy, and what it says of its answer.
    fn document(&self) -> PyResult<String> {
        #[derive(Serialize)]
        struct Document<'a> {
            topology: String,
            balancer: &'a str,
            seconds: f64,
            before: &'a Metrics,
            after: &'a Metrics,
            notes: &'a [Note],
            sentence: Option<&'a str>,
        }
        let Found { topology, name, seconds, answer, before, after, .. } = &*self.found;
        let sentence = answer.sentence.as_deref();
        let notes = &answer.notes;
        json(&Document {
            topology: topology.spec(),
            balancer: name,
            seconds: *seconds,
            before,
            after,
            notes,
            sentence,
        })
    }

    /// The sentence of the strategy, as `equipoise map` prints it; else one that compares the costs before and after.
    #[getter]
    fn summary(&self) -> String {
        let Found { answer, before, after, .. } = &*self.found;
        let hop_bytes = |metrics: &Metrics| Some(metrics.communication.as_ref()?.hop_bytes);
        match (&answer.sentence, hop_bytes(before), hop_bytes(after)) {
            (Some(sentence), ..) => sentence.clone(),
            (None, Some(then @ 1..), Some(now)) if then != now => {
                let part = percent(now as f64 / then as f64);
                let verb = if now < then { "fell" } else { "rose" };
                format!("Hop-bytes {verb} to {part} of the previous value.")
            }
            _ => sentence(before, after),
        }
    }

    /// Bytes by distance and by level, heavy distant edges and the busiest links, as JSON; at most ``most`` edges and links.
    fn explain(&self, py: Python<'_>, most: usize) -> PyResult<String> {
        let found = self.found.clone();
        Run::new().wait(py, move || {
            let Found { record, topology, answer, .. } = &*found;
            json(&Explanation::of(record, &**topology, &record.placement(), &answer.pe_of, most))
        })
    }

    /// Writes a mapping, or a launcher's file of this format for a machine with ``slots`` slots per PE.
    fn write(&self, path: PathBuf, format: Option<&str>, slots: u32) -> PyResult<()> {
        let Found { topology, answer, .. } = &*self.found;
        let Some(format) = format else {
            return mapping_file::write(&path, &answer.pe_of).map_err(of_file);
        };
        let format = launcher::format(format).map_err(raise)?;
        let slots = Slots::of(&**topology, slots);
        let job = Job::new(&answer.pe_of, &slots).map_err(raise)?;
        launcher::write(&path, &launcher::text(format, &job).map_err(raise)?).map_err(of_file)
    }

    /// Writes a report, ``.html`` or ``.json``.
    fn report(&self, py: Python<'_>, path: &str, title: String) -> PyResult<()> {
        let file: ReportFile = path.parse().map_err(raise)?;
        let found = self.found.clone();
        Run::new().wait(py, move || {
            let Found { record, topology, name, answer, before, after, .. } = &*found;
            let mut builder = Builder::new(title, record, &**topology, record.placement(), before.clone());
            builder.data.placements.iter_mut().for_each(|it| it.name = "start".into());
            builder.place(name.clone(), &answer.pe_of, after.clone());
            builder.data.sentences =
                answer.sentence.iter().cloned().chain([sentence(before, after)]).collect();
            file.write(&builder.data).map_err(of_file)
        })
    }
}

/// Where tasks start: the PE of each, or the name of a mapping or of a launcher's file, with the slots of each PE.
#[derive(FromPyObject)]
pub(crate) enum Start<'py> {
    File((PathBuf, u32)),
    Places(PyReadonlyArray1<'py, i64>),
}

impl Start<'_> {
    fn placement(&self, record: &Record, topology: &dyn Topology) -> PyResult<Vec<u32>> {
        match self {
            Start::Places(places) => placement("start: ", record, places),
            Start::File((file, slots)) => {
                launcher::placement(file, record, topology, *slots).map_err(|error| match error {
                    LauncherError::Unknown(_) => raise(error),
                    error => of_file(error),
                })
            }
        }
    }
}

/// Maps the tasks of ``database`` to the PEs of ``machine``, starting from ``start`` or from blocks.
#[pyfunction]
#[pyo3(signature = (database, machine, balancer, limits, seed, start=None))]
pub(crate) fn map(
    py: Python<'_>,
    database: &Database,
    machine: &Machine,
    balancer: Balancer,
    limits: Limits,
    seed: u64,
    start: Option<Start<'_>>,
) -> PyResult<Mapping> {
    let (topology, run) = (machine.topology.clone(), Run::new());
    let record = placed(&database.record, &*topology);
    let record = match start {
        Some(start) => {
            let start = start.placement(&record, &*topology)?;
            record.placed(&start)
        }
        None => record,
    };
    let choice = choice(py, &balancer, &topology, run.caller())?;
    let record = Record { constraints: limits.constraints()?.or(record.constraints), ..record };
    // Before the strategy, which is not to blame.
    record.constraints.rules(&record, &*topology).map_err(usage)?;
    let choice = limits.keep(&choice)?;
    let found = run.wait(py, move || {
        let begin = Instant::now();
        let answer = guarded(|| choice.strategy.assign(&record, &*topology, seed));
        let seconds = begin.elapsed().as_secs_f64();
        let name = choice.spec;
        let answer =
            answer.map_err(|error| raise(error.map(|reason| format!("{name} gave no answer: {reason}"))))?;
        Found::new(record, topology, name, seconds, answer)
    })?;
    Ok(Mapping { found: Arc::new(found) })
}

/// The objects on the PEs of a machine: a record of as many PEs as it is; tasks of a graph, which are on one PE, each on a PE of
/// its own if there are enough; otherwise in blocks.
fn placed(record: &Record, topology: &dyn Topology) -> Record {
    let (tasks, is_graph) = (record.objects.len(), record.pes.len() == 1);
    // A machine has fewer than 2^32 PEs.
    let remapped = record.clone().remap(topology.pes() as u32);
    if is_graph && tasks <= topology.pes() {
        return remapped.placed(&(0..tasks as u32).collect::<Vec<_>>());
    }
    remapped
}

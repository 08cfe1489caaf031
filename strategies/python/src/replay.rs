//! `equipoise.replay` compares strategies on recorded load-balancing steps, `equipoise.predict` predictors of loads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use equipoise_model::costs::Costs;
use equipoise_model::table::count;
use equipoise_model::{Database as Record, Topology};
use equipoise_report::{Replayed, ReportFile};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use equipoise_strategies::replay::{Comparison, Predictions, recorded_machine, replay as replay_of};
use numpy::PyArray1;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::database::Database;
use crate::errors::{json, of_file, raise, usage};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::strategy::{Balancer, choice};
use crate::work::Run;

/// The answers of strategies at recorded steps.
#[pyclass(frozen, module = "equipoise._core")]
pub(crate) struct Replay {
    found: Arc<Found>,
}

/// What strategies answered, and what a report shows of it.
struct Found {
    comparison: Comparison,
    replayed: Replayed,
    /// The strategies that are not written in Python: those can be asked again for placements with fewer migrations.
    choices: Vec<Choice>,
    seed: u64,
}

#[pymethods]
impl Replay {
    /// Strategies cannot be kept, and reports need them.
    fn __reduce__(&self) -> PyResult<()> {
        let sentence =
            "a Replay cannot be pickled; keep what to_pandas(), rows() and placements() return, or a report";
        Err(PyTypeError::new_err(sentence))
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The spec of the machine.
    #[getter]
    fn topology(&self) -> &str {
        &self.found.comparison.topology
    }

    /// A JSON document for each step.
    fn documents(&self) -> PyResult<Vec<String>> {
        self.found.comparison.replays.iter().map(json).collect()
    }

    /// The placements of a step, by strategy.
    fn placements<'py>(&self, py: Python<'py>, step: usize) -> BTreeMap<String, Bound<'py, PyArray1<i64>>> {
        let rows = self.found.comparison.replays.get(step).into_iter().flat_map(|replay| &replay.strategies);
        let placement = |pe_of: &[u32]| PyArray1::from_iter(py, pe_of.iter().map(|&pe| i64::from(pe)));
        rows.map(|row| (row.name.clone(), placement(&row.pe_of))).collect()
    }

    /// What precedes the recommended strategy in sentences.
    #[getter]
    fn recommendation_title(&self) -> Option<&'static str> {
        Some(self.found.comparison.recommendation()?.title)
    }

    /// The recommended strategy and the reason.
    #[getter]
    fn recommendation(&self) -> Option<(String, String)> {
        let recommended = self.found.comparison.recommendation()?;
        Some((recommended.strategy, [recommended.lead, recommended.reasons].concat().join(" ")))
    }

    /// Writes a report, ``.html`` or ``.json``, about the replay of a database with this name.
    fn report(&self, py: Python<'_>, path: &str, name: String) -> PyResult<()> {
        let file: ReportFile = path.parse().map_err(raise)?;
        let found = self.found.clone();
        Run::new().wait(py, move || {
            let Found { comparison, replayed, choices, seed } = &*found;
            let data = replayed.data(&name, (choices, *seed), comparison).map_err(raise)?;
            file.write(&data).map_err(of_file)
        })
    }

    fn __str__(&self) -> String {
        self.found.comparison.to_string()
    }
}

/// The machine of a replay: the given one if it has the PEs of the record, or the recorded one.
fn machine_of(
    py: Python<'_>,
    given: Option<&Machine>,
    recorded: &str,
    record: &Record,
) -> PyResult<Arc<dyn Topology>> {
    let pes = record.pes.len();
    let Some(Machine { topology }) = given else {
        let recorded = recorded.to_string();
        return Run::new().wait(py, move || recorded_machine(&recorded, pes).map_err(raise));
    };
    if topology.pes() == pes {
        return Ok(topology.clone());
    }
    let (recorded, others) = (count(pes as u64, "PE"), topology.pes());
    Err(usage(format!(
        "the database has {recorded} and the topology `{}` has {}; give a topology of {recorded}, or database.remap({others})",
        topology.spec(),
        count(others as u64, "PE")
    )))
}

/// The specs of the strategies that need no parameters.
#[pyfunction]
pub(crate) fn strategies() -> Vec<String> {
    registry::without_required_parameters().into_iter().map(|choice| choice.spec).collect()
}

/// Replays the steps on ``machine``, or on the recorded machine ``topology``.
#[pyfunction]
#[pyo3(signature = (steps, program, topology, machine, balancers, limits, seed, horizon, cost_model))]
#[allow(clippy::too_many_arguments, reason = "the Python files of the package are the only caller")]
pub(crate) fn replay(
    py: Python<'_>,
    steps: Vec<PyRef<'_, Database>>,
    program: String,
    topology: &str,
    machine: Option<PyRef<'_, Machine>>,
    balancers: Vec<Balancer>,
    limits: Limits,
    seed: u64,
    horizon: f64,
    cost_model: Option<PathBuf>,
) -> PyResult<Replay> {
    let run = Run::new();
    let costs = cost_model.as_deref().map(Costs::read).transpose().map_err(of_file)?;
    let mut all: Vec<(_, Arc<dyn Topology>, Vec<Choice>)> = Vec::new();
    for step in &steps {
        let mut record = step.record.as_ref().clone();
        record.costs = costs.clone().or(record.costs);
        record.constraints = limits.constraints()?.or(record.constraints);
        let topology = machine_of(py, machine.as_deref(), topology, &record)?;
        record.constraints.rules(&record, &*topology).map_err(usage)?;
        let choices =
            balancers.iter().map(|balancer| limits.keep(&choice(py, balancer, &topology, run.caller())?));
        let choices = choices.collect::<PyResult<_>>()?;
        all.push((record, topology, choices));
    }
    let own = all.first().into_iter().flat_map(|(.., choices)| choices.iter().zip(&balancers));
    let own = own.filter(|(_, (_, call))| call.is_none()).map(|(choice, _)| choice.clone()).collect();
    let found = run.wait(py, move || {
        let begin = Instant::now();
        let mut comparison = Comparison { program, horizon, ..Comparison::default() };
        let mut replayed = Replayed::default();
        for (record, topology, choices) in all {
            comparison.topology = topology.spec();
            let step = replay_of(&record, &*topology, &choices, seed, |_| begin.elapsed()).map_err(raise)?;
            replayed.add(record, &topology, &step);
            comparison.replays.push(step);
        }
        Ok(Found { comparison, replayed, choices: own, seed })
    })?;
    Ok(Replay { found: Arc::new(found) })
}

/// Judges the predictors of loads by the steps. The answer is the document and the text of `equipoise replay --predict`.
#[pyfunction]
#[pyo3(signature = (steps, program, topology, machine, balancer, seed))]
pub(crate) fn predict(
    py: Python<'_>,
    steps: Vec<PyRef<'_, Database>>,
    program: String,
    topology: &str,
    machine: Option<PyRef<'_, Machine>>,
    balancer: Balancer,
    seed: u64,
) -> PyResult<(String, String)> {
    let run = Run::new();
    let records: Vec<_> = steps.iter().map(|step| step.record.clone()).collect();
    let Some(first) = records.first() else { return Err(usage("there are no steps")) };
    let topology = machine_of(py, machine.as_deref(), topology, first)?;
    let choice = Limits::default().keep(&choice(py, &balancer, &topology, run.caller())?)?;
    run.wait(py, move || {
        let steps: Vec<_> = records.iter().map(|record| record.as_ref().clone()).collect();
        let found = Predictions::of(program, &steps, &*topology, &choice, seed).map_err(raise)?;
        Ok((json(&found)?, found.to_string()))
    })
}

//! `equipoise.replay`: compares strategies on recorded load-balancing steps.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use equipoise_model::Topology;
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::registry;
use equipoise_strategies::replay::{Comparison, recorded_machine, replay as replayed};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::database::Database;
use crate::errors::{json, raise, usage};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::strategy::{Balancer, choice};
use crate::work::Run;

/// The answers of strategies at recorded steps.
#[pyclass(frozen, module = "equipoise._core")]
pub(crate) struct Replay {
    comparison: Comparison,
}

#[pymethods]
impl Replay {
    /// The spec of the machine.
    #[getter]
    fn topology(&self) -> &str {
        &self.comparison.topology
    }

    /// A JSON document for each step.
    fn documents(&self) -> PyResult<Vec<String>> {
        self.comparison.replays.iter().map(json).collect()
    }

    /// The placements of a step, by strategy.
    fn placements<'py>(&self, py: Python<'py>, step: usize) -> BTreeMap<String, Bound<'py, PyArray1<i64>>> {
        let rows = self.comparison.replays.get(step).into_iter().flat_map(|replay| &replay.strategies);
        let placement = |pe_of: &[u32]| PyArray1::from_iter(py, pe_of.iter().map(|&pe| i64::from(pe)));
        rows.map(|row| (row.name.clone(), placement(&row.pe_of))).collect()
    }

    /// The recommended strategy and the reason.
    #[getter]
    fn recommendation(&self) -> Option<(String, String)> {
        let recommended = self.comparison.recommendation()?;
        Some((recommended.strategy, [recommended.lead, recommended.reasons].concat().join(" ")))
    }

    fn __str__(&self) -> String {
        self.comparison.to_string()
    }
}

/// The specs of the strategies that need no parameters.
#[pyfunction]
pub(crate) fn strategies() -> Vec<String> {
    registry::without_required_parameters().into_iter().map(|choice| choice.spec).collect()
}

/// Replays the steps on ``machine``, or on the recorded machine ``topology``.
#[pyfunction]
#[pyo3(signature = (steps, program, topology, machine, balancers, limits, seed))]
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
) -> PyResult<Replay> {
    let run = Run::default();
    let mut all: Vec<(_, Arc<dyn Topology>, Vec<Choice>)> = Vec::new();
    for step in &steps {
        let mut record = step.record.as_ref().clone();
        record.constraints = limits.constraints()?.or(record.constraints);
        let topology = match &machine {
            Some(machine) => machine.topology.clone(),
            None => recorded_machine(topology, record.pes.len()).map_err(raise)?,
        };
        record.constraints.rules(&record, &*topology).map_err(usage)?;
        let choices = balancers.iter().map(|balancer| limits.keep(&choice(py, balancer, &topology, &run)?));
        let choices = choices.collect::<PyResult<_>>()?;
        all.push((record, topology, choices));
    }
    let comparison = run.clone().wait(py, move || {
        let begin = Instant::now();
        let mut comparison = Comparison { program, ..Comparison::default() };
        for (record, topology, choices) in all {
            comparison.topology = topology.spec();
            let step = replayed(&record, &*topology, &choices, seed, || begin.elapsed());
            comparison.replays.push(step.map_err(raise)?);
        }
        Ok(comparison)
    })?;
    Ok(Replay { comparison })
}

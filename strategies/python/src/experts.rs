//! `equipoise.experts` and `equipoise.eplb`: places replicas of the experts of a model.

use std::path::PathBuf;

use equipoise_model::memory;
use equipoise_model::numbers::Numbers;
use equipoise_model::params::parse_bytes;
use equipoise_model::quote::quoted;
use equipoise_model::replica_plan::ReplicaPlan;
use equipoise_strategies::replicas::{
    Request, Transfer, check_machine, eplb, evaluate, other_machine, place, published, transfers,
};
use numpy::{PyArray2, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyType;
use serde::{Deserialize, Serialize};

use crate::errors::{from_json, json, of_file, raise, usage};
use crate::machine::Machine;
use crate::work::Run;

/// The plan of the replicas of experts, and its costs.
#[pyclass(frozen, module = "equipoise._core")]
#[derive(Serialize, Deserialize)]
pub(crate) struct Plan {
    #[serde(with = "PlanFields")]
    plan: ReplicaPlan,
    warnings: Vec<String>,
    /// The JSON documents of the costs of all layers.
    costs: String,
    eplb: String,
    /// Rows of layer, expert, from PE (-1: from elsewhere), to PE.
    transfers: Option<Vec<[i64; 4]>>,
}

/// The fields of a plan as pickle keeps them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "ReplicaPlan")]
struct PlanFields {
    topology: String,
    experts: usize,
    physical_to_logical: Vec<Vec<u32>>,
}

/// Rows as Python has them.
type Rows<'py> = Bound<'py, PyArray2<i64>>;

fn array<'py>(py: Python<'py>, rows: impl Iterator<Item = Vec<i64>>) -> PyResult<Rows<'py>> {
    Ok(PyArray2::from_vec2(py, &rows.collect::<Vec<_>>())?)
}

fn experts_of<'py>(py: Python<'py>, plan: &ReplicaPlan) -> PyResult<Rows<'py>> {
    array(py, plan.physical_to_logical.iter().map(|row| row.iter().map(|&expert| expert.into()).collect()))
}

#[pymethods]
impl Plan {
    /// The plan that pickle kept.
    #[new]
    fn new(document: &str) -> PyResult<Self> {
        from_json(document)
    }

    /// What pickle keeps.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        Ok((this.get_type(), (json(this.get())?,)))
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The expert of every slot: a row per layer.
    #[getter]
    fn physical_to_logical<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py>> {
        experts_of(py, &self.plan)
    }

    /// The number of replicas of every expert: a row per layer.
    #[getter]
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Rows<'py>> {
        let layers = 0..self.plan.physical_to_logical.len();
        array(py, layers.map(|layer| self.plan.counts(layer).into_iter().map(|count| count as i64).collect()))
    }

    /// The spec of the machine.
    #[getter]
    fn topology(&self) -> &str {
        &self.plan.topology
    }

    /// What a user should know of the request.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// JSON documents of the costs of all layers: of this plan, and of the plan that EPLB makes anew.
    fn documents(&self) -> (&str, &str) {
        (&self.costs, &self.eplb)
    }

    /// The replicas to copy from the previous plan: layer, expert, from PE (-1: from elsewhere), to PE.
    #[getter]
    fn transfers<'py>(&self, py: Python<'py>) -> PyResult<Option<Rows<'py>>> {
        let Some(transfers) = &self.transfers else { return Ok(None) };
        match transfers.is_empty() {
            true => Ok(Some(PyArray2::zeros(py, [0, 4], false))),
            false => array(py, transfers.iter().map(|&row| row.into())).map(Some),
        }
    }

    /// Writes the plan as JSON, with the only field that SGLang reads if `sglang`.
    fn write(&self, path: PathBuf, sglang: bool) -> PyResult<()> {
        let written = if sglang { self.plan.write_for_sglang(&path) } else { self.plan.write(&path) };
        written.map_err(of_file)
    }
}

fn numbers(table: &PyReadonlyArray2<'_, f64>) -> Numbers {
    Numbers { rows: table.as_array().rows().into_iter().map(|row| row.to_vec()).collect() }
}

/// The experts of all slots, and the spec of the machine.
type Slots<'py> = (PyReadonlyArray2<'py, i64>, String);

/// The plan with these slots; errors call it ``what``.
fn plan(what: &str, experts: usize, (rows, topology): Slots<'_>) -> PyResult<ReplicaPlan> {
    let expert = |&number: &i64| {
        let known = u32::try_from(number).ok().filter(|&expert| (expert as usize) < experts);
        known.ok_or_else(|| {
            usage(format!("{what} names expert {number}; experts are 0 to {}", experts.saturating_sub(1)))
        })
    };
    let table = rows.as_array();
    let rows = table.rows().into_iter().map(|row| row.iter().map(expert).collect());
    Ok(ReplicaPlan { topology, experts, physical_to_logical: rows.collect::<PyResult<_>>()? })
}

/// Places replicas of experts: ``weight`` has a row per layer and a column per expert. With ``judged``, judges this plan and places nothing.
#[pyfunction]
#[pyo3(signature = (weight, replicas, machine, judged, previous, groups, sources, gamma, tolerance, expert_bytes))]
#[allow(clippy::too_many_arguments, reason = "the Python files of the package are the only caller")]
pub(crate) fn experts(
    py: Python<'_>,
    weight: PyReadonlyArray2<'_, f64>,
    replicas: usize,
    machine: &Machine,
    judged: Option<Slots<'_>>,
    previous: Option<Slots<'_>>,
    groups: usize,
    sources: Option<PyReadonlyArray2<'_, f64>>,
    gamma: Option<f64>,
    tolerance: Option<f64>,
    expert_bytes: &str,
) -> PyResult<Plan> {
    let expert_bytes = parse_bytes(expert_bytes)
        .map_err(|expected| usage(format!("expert_bytes is '{}': {expected}", quoted(expert_bytes))))?;
    let (loads, topology) = (numbers(&weight), machine.topology.clone());
    let sources = sources.as_ref().map(numbers);
    let given =
        |what, slots: Option<Slots<'_>>| slots.map(|slots| plan(what, loads.columns(), slots)).transpose();
    let (judged, previous) = (given("the plan", judged)?, given("the previous plan", previous)?);
    Run::new().wait(py, move || {
        let request = Request {
            groups,
            previous: previous.as_ref(),
            sources: sources.as_ref(),
            gamma: gamma.unwrap_or(Request::GAMMA),
            tolerance: tolerance.unwrap_or(Request::TOLERANCE),
            ..Request::new(&loads, replicas)
        };
        let of_plan = |reason: String| usage(format!("the plan: {reason}"));
        judged.as_ref().map_or(Ok(()), |plan| check_machine(plan, &*topology)).map_err(of_plan)?;
        request.check(&*topology).map_err(|error| usage(error.to_string()))?;
        let judge = |plan: &ReplicaPlan| evaluate(plan, &request, &*topology, expert_bytes).map_err(raise);
        let mut warnings = request.warnings(&*topology);
        let plan = match judged {
            Some(plan) => {
                request.check_plan(&plan).map_err(of_plan)?;
                warnings.extend(other_machine("the plan", &plan, &*topology));
                ReplicaPlan { topology: topology.spec(), ..plan }
            }
            None => place(&request, &*topology).map_err(raise)?,
        };
        let costs = json(&judge(&plan)?)?;
        let eplb = json(&judge(&published(&request, &*topology).map_err(raise)?)?)?;
        let row = |it: Transfer| {
            [it.layer as i64, it.expert.into(), it.from.map_or(-1, |pe| pe as i64), it.to as i64]
        };
        let transfers = transfers(&plan, &request, &*topology).map(|all| all.into_iter().map(row).collect());
        Ok(Plan { plan, warnings, costs, eplb, transfers })
    })
}

/// The experts of all slots in a file with a plan, and the spec of its machine.
#[pyfunction]
pub(crate) fn read_plan(py: Python<'_>, path: PathBuf) -> PyResult<(Rows<'_>, String)> {
    let plan = ReplicaPlan::read(&path).map_err(of_file)?;
    Ok((experts_of(py, &plan)?, plan.topology))
}

/// The plan of EPLB: the expert of every slot, the slots of every expert (-1 fills rows up; one row per layer and expert), and the
/// number of replicas of every expert.
#[pyfunction]
pub(crate) fn rebalance_experts<'py>(
    py: Python<'py>,
    weight: PyReadonlyArray2<'py, f64>,
    num_replicas: usize,
    num_groups: usize,
    num_nodes: usize,
    num_gpus: usize,
) -> PyResult<(Rows<'py>, Rows<'py>, Rows<'py>)> {
    let loads = numbers(&weight);
    let bytes = (loads.rows.len() as u64).saturating_mul(num_replicas as u64).saturating_mul(64);
    memory::check(bytes, "the plan", "use fewer slots").map_err(usage)?;
    let plan = Run::new().wait(py, move || {
        eplb::rebalance_experts(&loads.rows, num_replicas, num_groups, num_nodes, num_gpus).map_err(usage)
    })?;
    let row = |numbers: &Vec<usize>| numbers.iter().map(|&number| number as i64).collect::<Vec<_>>();
    let most = plan.counts.iter().flatten().copied().max().unwrap_or(0);
    let filled = |slots: &Vec<usize>| {
        let mut filled = row(slots);
        filled.resize(most, -1);
        filled
    };
    Ok((
        array(py, plan.physical_to_logical.iter().map(row))?,
        array(py, plan.logical_to_physical.iter().flatten().map(filled))?,
        array(py, plan.counts.iter().map(row))?,
    ))
}

//! Strategies by spec, and strategies that are written in Python.

use std::sync::Arc;

use equipoise_model::{Assignment, Database as Record, Topology};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::room::Room;
use equipoise_strategies::strategy::Alternatives;
use equipoise_strategies::{Strategy, StrategyError, registry};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::database::Database;
use crate::errors::raise;
use crate::machine::Machine;
use crate::work::Run;

/// A spec, or the name of a strategy and the function that calls it with a database, a machine and a seed.
pub(crate) type Balancer = (String, Option<Py<PyAny>>);

/// The strategy for a machine. It does not begin when the run is stopped.
pub(crate) fn choice(
    py: Python<'_>,
    (name, call): &Balancer,
    topology: &Arc<dyn Topology>,
    run: &Run,
) -> PyResult<Choice> {
    let (run, topology) = (run.clone(), topology.clone());
    let Some(call) = call else {
        let choice = registry::parse(name, &[]).map_err(raise)?;
        let strategy = Arc::new(Stoppable { strategy: choice.strategy, run });
        return Ok(Choice { strategy, ..choice });
    };
    let strategy = Arc::new(InPython { call: call.clone_ref(py), name: name.clone(), topology, run });
    Ok(Choice { spec: name.clone(), strategy, needs_communication: false })
}

/// A strategy that does not begin when its run is stopped.
struct Stoppable {
    strategy: Arc<dyn Strategy>,
    run: Run,
}

impl Stoppable {
    /// The strategy, unless the run is stopped.
    fn begin(&self) -> Result<&dyn Strategy, StrategyError> {
        if self.run.is_stopped() { Err(interrupted()) } else { Ok(&*self.strategy) }
    }
}

fn interrupted() -> StrategyError {
    StrategyError::Request("the run was interrupted".into())
}

impl Strategy for Stoppable {
    fn assign(
        &self,
        database: &Record,
        topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.begin()?.assign(database, topology, seed)
    }

    fn assign_within(
        &self,
        database: &Record,
        topology: &dyn Topology,
        seed: u64,
        room: Room,
    ) -> Result<Option<Assignment>, StrategyError> {
        self.begin()?.assign_within(database, topology, seed, room)
    }

    fn alternatives(
        &self,
        database: &Record,
        topology: &dyn Topology,
        seed: u64,
        is_enough: &dyn Fn(&Assignment) -> bool,
    ) -> Result<Alternatives, StrategyError> {
        self.begin()?.alternatives(database, topology, seed, is_enough)
    }
}

/// A strategy that is written in Python.
struct InPython {
    call: Py<PyAny>,
    name: String,
    /// The machine of all calls. Its life is longer than that of a call, because Python may keep it.
    topology: Arc<dyn Topology>,
    run: Run,
}

impl Strategy for InPython {
    fn assign(
        &self,
        database: &Record,
        _topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        if self.run.is_stopped() {
            return Err(interrupted());
        }
        let answer = Python::attach(|py| -> PyResult<Vec<u32>> {
            let database = Database { record: Arc::new(database.clone()) };
            let arguments = (
                Bound::new(py, database)?,
                Bound::new(py, Machine { topology: self.topology.clone() })?,
                seed,
            );
            let pe_of = self.call.bind(py).call1(arguments.clone())?;
            arguments.0.get().placement(&pe_of.extract::<PyReadonlyArray1<'_, i64>>()?)
        });
        answer.map(Assignment::new).map_err(|exception| {
            self.run.fail(exception);
            StrategyError::Request(format!("{} raised an exception", self.name))
        })
    }
}

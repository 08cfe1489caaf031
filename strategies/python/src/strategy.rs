//! Strategies by spec, and strategies that are written in Python.

use std::sync::Arc;

use equipoise_model::{Assignment, Database as Record, Topology};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::room::Room;
use equipoise_strategies::strategy::Alternatives;
use equipoise_strategies::{Strategy, StrategyError, registry};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::database::{Database, placement};
use crate::errors::raise;
use crate::machine::Machine;
use crate::work::Caller;

/// A spec, or the name of a strategy and the function that calls it with a database, a machine and a seed.
pub(crate) type Balancer = (String, Option<Py<PyAny>>);

/// The strategy for a machine. It does not begin when the caller has left.
pub(crate) fn choice(
    py: Python<'_>,
    (name, call): &Balancer,
    topology: &Arc<dyn Topology>,
    caller: Caller,
) -> PyResult<Choice> {
    let Some(call) = call else {
        let choice = registry::parse(name, &[]).map_err(raise)?;
        let strategy = Arc::new(Stoppable { strategy: choice.strategy, caller });
        return Ok(Choice { strategy, ..choice });
    };
    let function = Arc::new(Function { call: call.clone_ref(py), topology: topology.clone() });
    let strategy = Arc::new(InPython { function, caller });
    Ok(Choice { spec: name.clone(), strategy, needs_communication: false })
}

/// A strategy that does not begin when its caller has left.
struct Stoppable {
    strategy: Arc<dyn Strategy>,
    caller: Caller,
}

impl Stoppable {
    /// The strategy, unless the caller has left.
    fn begin(&self) -> Result<&dyn Strategy, StrategyError> {
        if self.caller.has_left() { Err(interrupted()) } else { Ok(&*self.strategy) }
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
    function: Arc<Function>,
    caller: Caller,
}

/// A function of a database, a machine and a seed.
struct Function {
    call: Py<PyAny>,
    /// The machine of all calls. Its life is longer than that of a call, because Python may keep it.
    topology: Arc<dyn Topology>,
}

impl Function {
    fn assign(&self, py: Python<'_>, database: Record, seed: u64) -> PyResult<Vec<u32>> {
        let database = Bound::new(py, Database { record: Arc::new(database) })?;
        let machine = Bound::new(py, Machine { topology: self.topology.clone() })?;
        let pe_of = self.call.bind(py).call1((database.clone(), machine, seed))?;
        placement("", &database.get().record, &pe_of.extract::<PyReadonlyArray1<'_, i64>>()?)
    }
}

impl Strategy for InPython {
    fn assign(
        &self,
        database: &Record,
        _topology: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        let (function, database) = (self.function.clone(), database.clone());
        let answer = self.caller.call(move |py| function.assign(py, database, seed));
        answer.map(Assignment::new).ok_or_else(interrupted)
    }
}

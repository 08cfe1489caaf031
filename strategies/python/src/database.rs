//! Databases as Python sees them: columns of PEs, objects and edges.

use std::path::PathBuf;
use std::sync::Arc;

use equipoise_model::database::{DatabaseError, Dump, Edge, End, Object};
use equipoise_model::fault::Fault;
use equipoise_model::topology::MAX_PES;
use equipoise_model::{Database as Record, graph};
use equipoise_strategies::workloads;
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::errors::{from_json, json, of_file, raise, raise_as, usage};
use crate::work::Run;

/// The record of one step, or the tasks of a graph.
#[pyclass(frozen, module = "equipoise._core")]
pub(crate) struct Database {
    pub(crate) record: Arc<Record>,
}

/// A column of integers; all numbers of files and graphs fit.
fn integers<'py>(py: Python<'py>, column: impl Iterator<Item = u64>) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_iter(py, column.map(|it| i64::try_from(it).unwrap_or(i64::MAX)))
}

fn numbers<'py>(py: Python<'py>, column: impl Iterator<Item = f64>) -> Bound<'py, PyArray1<f64>> {
    PyArray1::from_iter(py, column)
}

fn flags<'py>(py: Python<'py>, column: impl Iterator<Item = bool>) -> Bound<'py, PyArray1<bool>> {
    PyArray1::from_iter(py, column)
}

#[pymethods]
impl Database {
    /// The record that pickle kept.
    #[new]
    fn new(document: &str) -> PyResult<Self> {
        checked(from_json(document)?)
    }

    /// What pickle keeps.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, (String,))> {
        Ok((this.get_type(), (json(&*this.get().record)?,)))
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The number of the step.
    #[getter]
    fn step(&self) -> u64 {
        self.record.step
    }

    /// The names of the arrays.
    #[getter]
    fn arrays(&self) -> Vec<String> {
        self.record.arrays.clone()
    }

    /// Whether communication was recorded.
    #[getter]
    fn communication_recorded(&self) -> bool {
        self.record.communication_recorded
    }

    /// The numbers of PEs, objects and edges.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize) {
        (self.record.pes.len(), self.record.objects.len(), self.record.edges.len())
    }

    /// The columns of PEs.
    fn pes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = &self.record.pes;
        let columns = PyDict::new(py);
        columns.set_item("speed", numbers(py, all.iter().map(|pe| pe.speed)))?;
        columns.set_item("wall_seconds", numbers(py, all.iter().map(|pe| pe.wall_seconds)))?;
        columns.set_item("idle_seconds", numbers(py, all.iter().map(|pe| pe.idle_seconds)))?;
        columns.set_item("background_seconds", numbers(py, all.iter().map(|pe| pe.background_seconds)))?;
        columns.set_item("available", flags(py, all.iter().map(|pe| pe.available)))?;
        Ok(columns)
    }

    /// The columns of objects; a size that was not measured is -1.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = &self.record.objects;
        let columns = PyDict::new(py);
        // Ids are 64 bits of a hash in files of some programs.
        columns.set_item("id", PyArray1::from_iter(py, all.iter().map(|object| object.id)))?;
        columns.set_item("array", integers(py, all.iter().map(|object| object.array.into())))?;
        let dimensions = all.iter().map(|object| object.index.coordinates().len()).max().unwrap_or(0);
        for dimension in 0..dimensions {
            let of = |object: &Object| {
                object.index.coordinates().get(dimension).map_or(-1, |&coordinate| i64::from(coordinate))
            };
            columns.set_item(format!("index{dimension}"), PyArray1::from_iter(py, all.iter().map(of)))?;
        }
        columns.set_item("load_seconds", numbers(py, all.iter().map(|object| object.load_seconds)))?;
        let bytes =
            |object: &Object| object.bytes.map_or(-1, |bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
        columns.set_item("bytes", PyArray1::from_iter(py, all.iter().map(bytes)))?;
        columns.set_item("pe", integers(py, all.iter().map(|object| object.pe.into())))?;
        columns.set_item("migratable", flags(py, all.iter().map(|object| object.migratable)))?;
        Ok(columns)
    }

    /// The columns of edges. Ends are positions of objects, or PEs.
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = &self.record.edges;
        let number = |end: End| match end {
            End::Object(number) | End::Pe(number) => u64::from(number),
        };
        let is_pe = |end: End| matches!(end, End::Pe(_));
        let columns = PyDict::new(py);
        columns.set_item("from", integers(py, all.iter().map(|edge| number(edge.from))))?;
        columns.set_item("to", integers(py, all.iter().map(|edge| number(edge.to))))?;
        columns.set_item("from_pe", flags(py, all.iter().map(|edge| is_pe(edge.from))))?;
        columns.set_item("to_pe", flags(py, all.iter().map(|edge| is_pe(edge.to))))?;
        columns.set_item("messages", integers(py, all.iter().map(|edge| edge.messages)))?;
        columns.set_item("bytes", integers(py, all.iter().map(|edge| edge.bytes)))?;
        Ok(columns)
    }

    /// The loads of PEs under a placement, in seconds.
    fn pe_loads<'py>(
        &self,
        py: Python<'py>,
        pe_of: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let pe_of = placement("", &self.record, &pe_of)?;
        Ok(PyArray1::from_vec(py, self.record.pe_loads(&pe_of)))
    }

    /// The same objects with other loads and sizes; both have a number per object.
    fn with_objects(
        &self,
        loads: Option<PyReadonlyArray1<'_, f64>>,
        sizes: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<Database> {
        let mut record = Record::clone(&self.record);
        if let Some(loads) = loads {
            let loads = loads.as_array();
            record.objects.iter_mut().zip(&loads).for_each(|(object, &load)| object.load_seconds = load);
        }
        if let Some(sizes) = sizes {
            let sizes = sizes.as_array();
            let bytes = sizes.iter().map(|&size| u64::try_from(size).ok());
            record.objects.iter_mut().zip(bytes).for_each(|(object, bytes)| object.bytes = bytes);
        }
        checked(record)
    }

    /// The same objects and edges on another number of PEs, in blocks.
    fn remap(&self, pes: usize) -> PyResult<Database> {
        if !(1..=MAX_PES).contains(&pes) {
            return Err(usage(format!(
                "a database cannot have {pes} PEs; give a number from 1 to {MAX_PES}"
            )));
        }
        Ok(Database { record: Arc::new(Record::clone(&self.record).remap(pes as u32)) })
    }
}

/// The PE of every object of a record, checked; `what` is the begin of error messages.
pub(crate) fn placement(
    what: &str,
    record: &Record,
    pe_of: &PyReadonlyArray1<'_, i64>,
) -> PyResult<Vec<u32>> {
    let (pes, objects) = (record.pes.len(), record.objects.len());
    let pe_of = pe_of.as_array();
    if pe_of.len() != objects {
        let length = pe_of.len();
        return Err(usage(format!(
            "{what}a placement of {objects} objects has {length} numbers; give one PE for each"
        )));
    }
    let pe = |(object, &pe): (usize, &i64)| {
        let known = u32::try_from(pe).ok().filter(|&pe| (pe as usize) < pes);
        let last = pes.saturating_sub(1);
        known.ok_or_else(|| usage(format!("{what}object {object} is on PE {pe}, but PEs are 0 to {last}")))
    };
    pe_of.iter().enumerate().map(pe).collect()
}

/// All steps of a file, its program, its machine, and what the reader ignored.
type Steps = (Vec<Database>, String, String, Vec<String>);

/// Reads a file of databases (``steps`` from ``step`` on), or with ``graph`` also a task graph, or the spec of one unless it ``is_file``.
#[pyfunction]
#[pyo3(signature = (path, step=None, steps=None, graph=false, is_file=true))]
pub(crate) fn read(
    py: Python<'_>,
    path: PathBuf,
    step: Option<u64>,
    steps: Option<u64>,
    graph: bool,
    is_file: bool,
) -> PyResult<Steps> {
    let dump = Run::new().wait(py, move || {
        if graph {
            return workloads::load_steps(&path.to_string_lossy()).map_err(if is_file {
                of_file
            } else {
                raise
            });
        }
        Dump::read_steps(&path, step, steps).map_err(|error| match error {
            DatabaseError::Steps { .. } => raise(error),
            error => of_file(error),
        })
    })?;
    let wrap = |record: Record| Database { record: Arc::new(record) };
    Ok((dump.steps.into_iter().map(wrap).collect(), dump.program, dump.topology, dump.warnings))
}

/// The tasks of a graph, all on one PE. Columns of edges have the same length.
#[pyfunction]
pub(crate) fn tasks(
    number: usize,
    sender: PyReadonlyArray1<'_, i64>,
    receiver: PyReadonlyArray1<'_, i64>,
    bytes: PyReadonlyArray1<'_, i64>,
    messages: PyReadonlyArray1<'_, i64>,
) -> PyResult<Database> {
    if number == 0 || number > graph::MAX_VERTICES {
        return Err(usage(format!("a graph has 1 to {} tasks, this one has {number}", graph::MAX_VERTICES)));
    }
    let task = |number_of: i64| {
        let known = u32::try_from(number_of).ok().filter(|&task| (task as usize) < number);
        known.ok_or_else(|| usage(format!("there is no task {number_of}; tasks are 0 to {}", number - 1)))
    };
    let mut record = graph::tasks(number);
    let (senders, receivers, bytes, messages) =
        (sender.as_array(), receiver.as_array(), bytes.as_array(), messages.as_array());
    let mut edges = Vec::with_capacity(senders.len());
    for (((&from, &to), &bytes), &messages) in senders.iter().zip(&receivers).zip(&bytes).zip(&messages) {
        let (from, to) = (task(from)?, task(to)?);
        if from != to {
            let (from, to) = (End::Object(from), End::Object(to));
            edges.push(Edge { from, to, messages: messages.max(0) as u64, bytes: bytes.max(0) as u64 });
        }
    }
    record.edges = graph::merge(edges).map_err(usage)?;
    checked(record)
}

/// A database of numbers that the caller gave.
fn checked(record: Record) -> PyResult<Database> {
    record.check().map_err(|error| raise_as(Fault::Usage, format!("the tasks cannot be used: {error}")))?;
    Ok(Database { record: Arc::new(record) })
}

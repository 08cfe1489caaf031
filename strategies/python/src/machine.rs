//! Machines as Python sees them.

use std::sync::Arc;

use equipoise_model::topology::{self, MAX_TABLE_PES};
use equipoise_model::{Topology, memory};
use numpy::PyArray1;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::errors::{raise, usage};
use crate::work::Run;

/// A machine: PEs and the distances between them.
#[pyclass(frozen, module = "equipoise._core")]
pub(crate) struct Machine {
    pub(crate) topology: Arc<dyn Topology>,
}

#[pymethods]
impl Machine {
    /// The machine of a spec such as ``torus:4x4x4``.
    #[new]
    fn new(py: Python<'_>, spec: String) -> PyResult<Self> {
        Ok(Machine { topology: parse(py, spec)? })
    }

    /// What pickle keeps. A spec that names a file reads it again.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String,)) {
        (this.get_type(), (this.get().topology.spec(),))
    }

    fn __deepcopy__(this: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        this
    }

    /// The spec.
    #[getter]
    fn spec(&self) -> String {
        self.topology.spec()
    }

    /// The number of PEs.
    #[getter]
    fn pes(&self) -> usize {
        self.topology.pes()
    }

    /// The distance between two PEs, in hops unless the machine defines others.
    fn distance(&self, a: usize, b: usize) -> PyResult<u32> {
        self.check(a)?;
        self.check(b)?;
        Ok(self.topology.distance(a, b))
    }

    /// The distances from a PE to all PEs.
    fn distances_from<'py>(&self, py: Python<'py>, a: usize) -> PyResult<Bound<'py, PyArray1<u32>>> {
        self.check(a)?;
        let mut row = vec![0; self.topology.pes()];
        self.topology.distances_from(a, &mut row);
        Ok(PyArray1::from_vec(py, row))
    }

    /// The distances between all PEs, one row after the other.
    fn all_distances<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let pes = self.topology.pes();
        if pes > MAX_TABLE_PES {
            return Err(usage(format!(
                "a table of the distances of {pes} PEs is too large; at most {MAX_TABLE_PES} PEs have one; use distances_from"
            )));
        }
        memory::check(4 * (pes * pes) as u64, "the table of distances", "use distances_from")
            .map_err(usage)?;
        let mut table = vec![0; pes * pes];
        table.chunks_mut(pes).enumerate().for_each(|(a, row)| self.topology.distances_from(a, row));
        Ok(PyArray1::from_vec(py, table))
    }

    /// The node of every PE.
    #[getter]
    fn node_of<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let nodes = (0..self.topology.pes()).map(|pe| self.topology.node_of(pe) as i64);
        PyArray1::from_vec(py, nodes.collect())
    }

    fn __repr__(&self) -> String {
        format!("Machine('{}')", self.topology.spec())
    }
}

/// The machine of a spec. Distances of some machines take long.
pub(crate) fn parse(py: Python<'_>, spec: String) -> PyResult<Arc<dyn Topology>> {
    Run::new().wait(py, move || topology::parse(&spec).map_err(raise))
}

impl Machine {
    fn check(&self, pe: usize) -> PyResult<()> {
        let (spec, pes) = (self.topology.spec(), self.topology.pes());
        if pe < pes {
            return Ok(());
        }
        Err(PyIndexError::new_err(format!("there is no PE {pe} in {spec}; PEs are 0 to {}", pes - 1)))
    }
}

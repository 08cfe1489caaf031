//! A machine that is another one but for a few facts: some links are slow (`degraded:FILE`), or its PEs are hardware threads of the
//! current host (`hwloc`), or it has a note about its origin (`slurm-env`).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Hierarchy, Link, Shape, Topology};

/// A machine that is another one but for a few facts.
pub(super) struct Altered {
    machine: Arc<dyn Topology>,
    spec: String,
    /// The factors of the bandwidth of slow links.
    factors: FxHashMap<usize, f64>,
    /// For each PE: the number of the hardware thread in the operating system; `None`: PEs are where they are in the other machine.
    cpus: Option<Vec<usize>>,
    note: Option<String>,
}

impl Altered {
    /// A machine with slow links; `factors` has the factor of the bandwidth of each slow link.
    pub(super) fn degraded(machine: Arc<dyn Topology>, spec: String, factors: FxHashMap<usize, f64>) -> Self {
        Altered { machine, spec, factors, cpus: None, note: None }
    }

    /// A machine whose PEs are these hardware threads of the current host.
    #[cfg(feature = "hwloc")]
    pub(super) fn of_this_host(machine: Arc<dyn Topology>, cpus: Vec<usize>) -> Self {
        Altered { spec: machine.spec(), machine, factors: FxHashMap::default(), cpus: Some(cpus), note: None }
    }

    /// A machine with a note about its origin.
    pub(super) fn noted(machine: Arc<dyn Topology>, note: String) -> Self {
        Altered { spec: machine.spec(), machine, factors: FxHashMap::default(), cpus: None, note: Some(note) }
    }
}

impl Topology for Altered {
    fn spec(&self) -> String {
        self.spec.clone()
    }

    fn pes(&self) -> usize {
        self.machine.pes()
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.machine.distance(a, b)
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        self.machine.distances_from(a, row);
    }

    fn distances_to(&self, a: usize, others: &[u32], row: &mut [u32]) {
        self.machine.distances_to(a, others, row);
    }

    fn diameter(&self) -> u32 {
        self.machine.diameter()
    }

    fn links(&self) -> usize {
        self.machine.links()
    }

    fn link(&self, id: usize) -> Link {
        let link = self.machine.link(id);
        Link { bandwidth: link.bandwidth * self.factors.get(&id).copied().unwrap_or(1.0), ..link }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        self.machine.route(a, b, links);
    }

    fn onward(&self, a: usize, b: usize, crossed: Option<usize>, links: &mut Vec<usize>) {
        self.machine.onward(a, b, crossed, links);
    }

    fn hierarchy(&self) -> Option<Hierarchy> {
        self.machine.hierarchy()
    }

    /// The PEs of one computer have no switches between them.
    fn switches(&self) -> Option<Vec<u32>> {
        if self.cpus.is_some() { None } else { self.machine.switches() }
    }

    fn shape(&self) -> Shape {
        self.machine.shape()
    }

    fn cpu_of(&self, pe: usize) -> Option<usize> {
        self.cpus.as_ref().map_or_else(|| self.machine.cpu_of(pe), |cpus| Some(cpus[pe]))
    }

    fn host(&self, pe: usize) -> Option<&str> {
        self.machine.host(pe)
    }

    fn node_of(&self, pe: usize) -> usize {
        if self.cpus.is_some() { 0 } else { self.machine.node_of(pe) }
    }

    fn core_of(&self, pe: usize) -> usize {
        if self.cpus.is_some() { pe } else { self.machine.core_of(pe) }
    }

    fn number_of(&self, pe: usize) -> usize {
        self.machine.number_of(pe)
    }

    fn switch_between(&self, a: usize, b: usize) -> Option<String> {
        self.machine.switch_between(a, b)
    }

    fn note(&self) -> Option<&str> {
        self.note.as_deref().or_else(|| self.machine.note())
    }
}

//! A placement with all inputs of the costs.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

use equipoise_model::{Database, Topology};
use equipoise_network::program::Model;

use super::Amount;
use crate::cost::Metrics;
use crate::cost::contention::{Estimate, Speeds};
use crate::cost::criterion::Cost;
use crate::cost::mcf_optimal::{self, Optimal, Ways};
use crate::cost::unsolved::Unsolved;

/// A placement on a machine, with the metrics that many costs read.
pub struct Placed<'a> {
    /// The objects and their traffic.
    pub database: &'a Database,
    /// The machine.
    pub topology: &'a dyn Topology,
    /// The PE of each object.
    pub pe_of: &'a [u32],
    /// [`Metrics::full`] of these three.
    pub metrics: Metrics,
    /// The model of the program, if the objects are its processes.
    pub program: Option<&'a Model>,
    /// The best routing; computed on first use.
    best_routes: OnceCell<Result<Optimal, Unsolved>>,
    /// Whether links have different bandwidths; computed on first use.
    bandwidths_differ: OnceCell<bool>,
    /// The expensive costs computed so far, by name, or the reason why they are unknown.
    known: RefCell<BTreeMap<&'static str, Result<Amount, String>>>,
}

impl<'a> Placed<'a> {
    /// The placement of object `i` of `database` on PE `pe_of[i]` of `topology`.
    ///
    /// # Panics
    /// As [`Metrics::of`].
    pub fn new(database: &'a Database, topology: &'a dyn Topology, pe_of: &'a [u32]) -> Self {
        let metrics = Metrics::full(database, topology, pe_of);
        let (best_routes, bandwidths_differ, known) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Placed { database, topology, pe_of, metrics, program: None, best_routes, bandwidths_differ, known }
    }

    /// The time of the busiest link, where links have different bandwidths; elsewhere its bytes say the same.
    pub fn busiest_link_seconds(&self) -> Option<f64> {
        let communication = self.metrics.communication?;
        let is_different = *self.bandwidths_differ.get_or_init(|| {
            let mut bandwidths = (0..self.topology.links()).map(|link| self.topology.link(link).bandwidth);
            let first = bandwidths.next();
            bandwidths.any(|it| Some(it) != first)
        });
        if is_different { communication.max_link_seconds } else { None }
    }

    /// The best routing of the messages of this placement.
    ///
    /// # Errors
    /// If the best routing is unknown; then the costs that need it are unknown, too.
    pub fn best_routes(&self) -> Result<&Optimal, Unsolved> {
        let solve = || mcf_optimal::solve(self.database, self.topology, self.pe_of, Ways::Any);
        self.best_routes.get_or_init(solve).as_ref().map_err(|unsolved| *unsolved)
    }

    /// Whether the best routing, which takes a linear program, has been computed.
    pub fn is_solved(&self) -> bool {
        self.best_routes.get().is_some()
    }

    /// A cost that searches can minimise, in its unit.
    pub(super) fn cost(&self, cost: Cost, unit: fn(f64) -> Amount) -> Result<Amount, String> {
        let number = cost.of(self.database, self.topology, self.pe_of);
        number.map(unit).map_err(|unknown| unknown.to_string())
    }

    /// A cost of communication, computed on first use. The cost is unknown if no communication was recorded, or if its
    /// computation fails; then the reason is kept.
    pub(super) fn known(&self, name: &'static str, cost: fn(&Placed) -> Result<Amount, String>) -> Amount {
        if self.metrics.communication.is_none() {
            return Amount::Unknown;
        }
        let found = self.known.borrow().get(name).cloned();
        let found = found.unwrap_or_else(|| {
            let found = cost(self);
            self.known.borrow_mut().insert(name, found.clone());
            found
        });
        found.unwrap_or(Amount::Unknown)
    }

    /// The names of the requested costs that are unknown although communication was recorded, and the reasons.
    pub fn reasons(&self) -> Vec<(&'static str, String)> {
        let known = self.known.borrow();
        known.iter().filter_map(|(name, found)| Some((*name, found.as_ref().err()?.clone()))).collect()
    }

    /// The same placement, with the model of the program whose processes the objects are.
    pub fn with_program(mut self, program: Option<&'a Model>) -> Self {
        self.program = program;
        self
    }

    /// The time at which the slowest PE finishes, by the estimate of [`super::contention`], in seconds.
    pub(super) fn contention_seconds(&self) -> f64 {
        let made = || Model::of_database(self.database, self.topology);
        let model = self.program.map_or_else(|| Cow::Owned(made()), Cow::Borrowed);
        let speeds = Speeds::of(self.database, &model);
        let mut places = self.pe_of.to_vec();
        // Edge ends that are PEs stay on that PE; the value here is ignored.
        places.resize(model.tasks.len(), 0);
        let ticks = Estimate::of(&model, self.topology, &speeds, &places);
        Model::cycles(ticks) * model.cycle_seconds
    }
}

//! The cost with the best routes, updated when tasks swap: one linear program for each swap that may be better.
//!
//! Prices p of links bound every mapping: with sum of p(a) b(a) = 1, no routing takes less than the sum over messages
//! of bytes times the cheapest path (`mcf_optimal`, weak duality). The prices of the current mapping are close to those
//! of the mappings after one swap. So the bound rejects most swaps that are no improvement, without solving a program.

use equipoise_model::search::cheapest;

use super::{Optimal, Router, TOLERANCE, Unsolved};
use crate::cost::commodities::Commodities;
use crate::cost::swaps::{SwapCost, Worth};

/// The cost of a one-to-one mapping; infinite (`f64::MAX`) if its program is not solved.
pub struct OptimalSwaps<'a> {
    router: &'a Router<'a>,
    commodities: &'a Commodities,
    /// By vertex of the wiring: (vertex, link) of each link that leaves it.
    leaving: Vec<Vec<(usize, usize)>>,
    /// The PE of every vertex now, and after the swap that was tried last.
    places: Vec<u32>,
    trial: Vec<u32>,
    worth: Worth,
    /// From PE `a` to PE `b`, at `a * pes + b`: the price of one byte, in seconds of the busiest link.
    prices: Vec<f64>,
    /// The shares of links with the mapping of the swap that was tried last.
    shares: Vec<f64>,
}

impl<'a> OptimalSwaps<'a> {
    /// The mapping of task `i` to `places[i]`.
    pub fn new(router: &'a Router<'a>, commodities: &'a Commodities, places: &[u32]) -> Self {
        let mut leaving = vec![Vec::new(); router.wiring.vertices];
        for (link, &[from, to]) in router.wiring.ends.iter().enumerate() {
            leaving[from].push((to, link));
        }
        let mut swaps = OptimalSwaps {
            router,
            commodities,
            leaving,
            places: Vec::new(),
            trial: Vec::new(),
            worth: Worth { cost: 0.0, tie: 0.0 },
            prices: Vec::new(),
            shares: Vec::new(),
        };
        swaps.restart(places);
        swaps
    }

    /// The number of variables of the mapping's program, if the program can be solved. An inexact solution is no error
    /// here, because accuracy differs between mappings.
    ///
    /// # Errors
    /// As [`super::solve`], except for [`Unsolved::Inexact`].
    pub fn check(&self) -> Result<usize, Unsolved> {
        match self.router.solve(self.commodities, &self.places) {
            Ok(_) | Err(Unsolved::Inexact { .. }) => (),
            Err(unsolved) => return Err(unsolved),
        }
        Ok(self.router.core(self.commodities, &self.places)?.flows())
    }

    /// Solves the program of `trial`.
    fn solve(&mut self) -> f64 {
        match self.router.solve(self.commodities, &self.trial) {
            Ok(Optimal { seconds, shares, .. }) => {
                self.shares = shares;
                seconds
            }
            Err(_) => {
                self.shares.fill(0.0);
                f64::MAX
            }
        }
    }

    /// Computes prices from the shares.
    fn price(&mut self) {
        let Router { wiring, bandwidth, .. } = self.router;
        let price = |link: usize| self.shares.get(link).map_or(0.0, |share| share / bandwidth[link]);
        let next = |&(to, link): &(usize, usize)| (to, price(link));
        let mut prices = Vec::with_capacity(wiring.vertex_of.len().pow(2));
        for &from in &wiring.vertex_of {
            let from = cheapest(wiring.vertices, from, |vertex| self.leaving[vertex].iter().map(next));
            prices.extend(wiring.vertex_of.iter().map(|&to| from[to]));
        }
        self.prices = prices;
    }

    /// Lower bound of the cost of `trial`.
    fn bound(&self) -> f64 {
        let pes = self.router.wiring.vertex_of.len();
        let price = |(from, to, bytes): (usize, usize, u64)| {
            bytes as f64 * self.prices[self.trial[from] as usize * pes + self.trial[to] as usize]
        };
        self.commodities.sent().map(price).sum()
    }
}

impl SwapCost for OptimalSwaps<'_> {
    fn restart(&mut self, places: &[u32]) {
        self.places = self.commodities.places(places);
        self.trial.clone_from(&self.places);
        self.worth = Worth { cost: self.solve(), tie: 0.0 };
        self.price();
    }

    fn worth(&self) -> Worth {
        self.worth
    }

    fn try_swap(&mut self, tasks: [Option<usize>; 2], [p, q]: [u32; 2]) -> Option<Worth> {
        self.trial.clone_from(&self.places);
        for (task, to) in tasks.into_iter().zip([q, p]) {
            task.into_iter().for_each(|task| self.trial[task] = to);
        }
        // Smaller improvements may be errors of the solver.
        let enough = self.worth.cost * (1.0 - TOLERANCE);
        if self.bound() >= enough {
            return None;
        }
        let cost = self.solve();
        (cost < enough).then_some(Worth { cost, tie: 0.0 })
    }

    fn keep(&mut self, _: [Option<usize>; 2], _: [u32; 2], worth: Worth) {
        self.places.clone_from(&self.trial);
        self.worth = worth;
        self.price();
    }
}

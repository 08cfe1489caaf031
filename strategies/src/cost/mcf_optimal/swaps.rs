//! The cost with the best routes, when tasks change places: a linear program for each swap that could be better.
//!
//! Prices p of links bound every mapping: with sum of p(a) b(a) = 1, no routing takes less than the sum over messages
//! of bytes times the cheapest path (`mcf_optimal`, weak duality). Those of the mapping that is there are near those of
//! mappings near it, so most swaps that are no better are known as such without solving anything.

use super::{Optimal, Router, TOLERANCE, Unsolved, paths};
use crate::cost::commodities::Commodities;
use crate::cost::swaps::{SwapCost, Worth};

/// The cost of a one-to-one mapping. One whose program is not solved counts as dear as can be.
pub struct OptimalSwaps<'a> {
    router: &'a Router<'a>,
    commodities: &'a Commodities,
    /// By vertex of the wiring: where its links lead, and which they are.
    leaving: Vec<Vec<(usize, usize)>>,
    /// The PE of every vertex, and after the swap that was tried last.
    places: Vec<u32>,
    then: Vec<u32>,
    worth: Worth,
    /// From PE `a` to PE `b`, at `a * pes + b`: the price of a byte, in seconds of the busiest link.
    prices: Vec<f64>,
    /// The shares of the swap that was tried last.
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
            then: Vec::new(),
            worth: Worth { cost: 0.0, tie: 0.0 },
            prices: Vec::new(),
            shares: Vec::new(),
        };
        swaps.restart(places);
        swaps
    }

    /// How many variables the program of the mapping has, if it is one that can be solved: whether the answer would be exact is
    /// another matter for every mapping.
    ///
    /// # Errors
    /// As [`super::solve`], but for that.
    pub fn check(&self) -> Result<usize, Unsolved> {
        match self.router.solve(self.commodities, &self.places) {
            Ok(_) | Err(Unsolved::Inexact { .. }) => (),
            Err(unsolved) => return Err(unsolved),
        }
        Ok(self.router.core(self.commodities, &self.places)?.flows())
    }

    /// Solves the program of `then`.
    fn solve(&mut self) -> f64 {
        match self.router.solve(self.commodities, &self.then) {
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

    /// Makes prices of the shares.
    fn price(&mut self) {
        let Router { wiring, bandwidth, .. } = self.router;
        let price = |link: usize| self.shares.get(link).map_or(0.0, |share| share / bandwidth[link]);
        let next = |&(to, link): &(usize, usize)| (to, price(link));
        let mut prices = Vec::with_capacity(wiring.vertex_of.len().pow(2));
        for &from in &wiring.vertex_of {
            let from = paths::cheapest(wiring.vertices, from, |vertex| self.leaving[vertex].iter().map(next));
            prices.extend(wiring.vertex_of.iter().map(|&to| from[to]));
        }
        self.prices = prices;
    }

    /// What `then` costs at least.
    fn bound(&self) -> f64 {
        let pes = self.router.wiring.vertex_of.len();
        let price = |(from, to, bytes): (usize, usize, u64)| {
            bytes as f64 * self.prices[self.then[from] as usize * pes + self.then[to] as usize]
        };
        self.commodities.sent().map(price).sum()
    }
}

impl SwapCost for OptimalSwaps<'_> {
    fn restart(&mut self, places: &[u32]) {
        self.places = self.commodities.places(places);
        self.then.clone_from(&self.places);
        self.worth = Worth { cost: self.solve(), tie: 0.0 };
        self.price();
    }

    fn worth(&self) -> Worth {
        self.worth
    }

    fn try_swap(&mut self, tasks: [Option<usize>; 2], [p, q]: [u32; 2]) -> Option<Worth> {
        self.then.clone_from(&self.places);
        for (task, to) in tasks.into_iter().zip([q, p]) {
            task.into_iter().for_each(|task| self.then[task] = to);
        }
        // Less would be what the solver leaves.
        let enough = self.worth.cost * (1.0 - TOLERANCE);
        if self.bound() >= enough {
            return None;
        }
        let cost = self.solve();
        (cost < enough).then_some(Worth { cost, tie: 0.0 })
    }

    fn keep(&mut self, _: [Option<usize>; 2], _: [u32; 2], worth: Worth) {
        self.places.clone_from(&self.then);
        self.worth = worth;
        self.price();
    }
}

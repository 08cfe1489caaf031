//! The linear program of a core, for the solver: variables f(s, a) by star, then arc, and T after them.
//!
//! An arc and its mirror have one capacity: over either goes what the flows of both are together.
//!
//! Bytes are in units of the largest demand, and T is in units of a time that a routing takes; the row of a link is
//! divided by what it carries in that time. So what decides is near 1 where links differ, and what solvers leave is a
//! small part of it, unless one carries a hundred thousand times what another does.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SupportedConeT};

use super::wiring::Core;

/// What the solver finds.
pub(super) struct Flow {
    /// By star, by arc: bytes. Nearly a flow: conserved but for what the solver leaves.
    pub(super) flows: Vec<Vec<f64>>,
    /// By arc: its price, at least 0.
    pub(super) prices: Vec<f64>,
}

/// How exact an answer should be, as a part of 1.
const TOLERANCE: f64 = 1e-9;

/// Solves the program; `unit_seconds` is what a routing takes, at best about as long as the best one.
pub(super) fn solve(core: &Core, bandwidth: &[f64], unit_seconds: f64) -> Flow {
    let (arcs, stars) = (core.arcs.len(), core.stars.len());
    let demands = core.stars.iter().flat_map(|star| &star.ends).map(|&(_, bytes)| (bytes as f64).abs());
    let unit_bytes = demands.fold(1.0, f64::max);
    // Rows: conservation by star at every vertex but its hub, then capacities, then signs.
    let others = core.vertices - 1;
    let conserved = stars * others;
    let (mut capacity_of, mut capacities) = (vec![0; arcs], 0);
    // By arc: what a unit of bytes takes there, in units of time.
    let unit_takes: Vec<f64> =
        core.arcs.iter().map(|arc| unit_bytes / (bandwidth[arc.link] * unit_seconds)).collect();
    for number in 0..arcs {
        match core.mirrors.as_ref().map(|mirrors| mirrors[number]).filter(|&mirror| mirror < number) {
            Some(mirror) => capacity_of[number] = capacity_of[mirror],
            None => {
                capacity_of[number] = conserved + capacities;
                capacities += 1;
            }
        }
    }
    let signs = conserved + capacities;
    let variables = core.flows() + 1;
    let rows = signs + core.flows();
    let mut right = vec![0.0; rows];
    let (mut starts, mut row_of, mut values) = (vec![0], Vec::new(), Vec::new());
    for (number, star) in core.stars.iter().enumerate() {
        // A hub has no row of its own.
        let row = |vertex: usize| number * others + vertex - usize::from(vertex > star.hub);
        for &(end, bytes) in &star.ends {
            right[row(end)] = bytes as f64 / unit_bytes;
        }
        for arc in core.usable[number].iter().map(|&arc| arc as usize) {
            let [near, far] = core.arcs[arc].ends(star);
            let mut ends = [(near, -1.0), (far, 1.0)];
            ends.sort_unstable_by_key(|(vertex, _)| *vertex);
            for (vertex, sign) in ends.into_iter().filter(|(vertex, _)| *vertex != star.hub) {
                row_of.push(row(vertex));
                values.push(sign);
            }
            row_of.extend([capacity_of[arc], signs + starts.len() - 1]);
            values.extend([unit_takes[arc], -1.0]);
            starts.push(row_of.len());
        }
    }
    for row in conserved..signs {
        row_of.push(row);
        values.push(-1.0);
    }
    starts.push(row_of.len());
    let matrix = CscMatrix::new(rows, variables, starts, row_of, values);
    let mut objective = vec![0.0; variables];
    objective[variables - 1] = 1.0;
    let cones = [SupportedConeT::ZeroConeT(conserved), SupportedConeT::NonnegativeConeT(rows - conserved)];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: TOLERANCE,
        tol_gap_rel: TOLERANCE,
        tol_feas: TOLERANCE,
        max_threads: 1,
        ..DefaultSettings::default()
    };
    let quadratic = CscMatrix::zeros((variables, variables));
    let (mut flows, mut prices) = (vec![vec![0.0; arcs]; stars], vec![0.0; arcs]);
    // Whatever comes of it is checked by who uses it: flows are made into a routing and prices into a bound, and if the two
    // are too far apart there is no answer. So there is no need to ask how the solver is pleased.
    if let Ok(mut solver) = DefaultSolver::new(&quadratic, &objective, &matrix, &right, &cones, settings) {
        solver.solve();
        let sound = |number: f64| if number.is_finite() { number.max(0.0) } else { 0.0 };
        let mut found = solver.solution.x.iter();
        for (flow, usable) in flows.iter_mut().zip(&core.usable) {
            for (&arc, &found) in usable.iter().zip(&mut found) {
                flow[arc as usize] = sound(found) * unit_bytes;
            }
        }
        let found = &solver.solution.z;
        for (price, (row, takes)) in prices.iter_mut().zip(capacity_of.into_iter().zip(&unit_takes)) {
            *price = sound(found[row]) * takes;
        }
    }
    Flow { flows, prices }
}

//! The linear program of a core, for the solver: variables f(s, a) by sender, then link, and T after them.
//!
//! Bytes are in units of what the fastest link carries while the machine's own routes take, so that T is at most 1
//! and all numbers are near it.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SupportedConeT};

use super::wiring::Core;

/// What the solver finds.
pub(super) struct Flow {
    /// By sender of the core's demands, by arc: bytes. Nearly a flow: conserved but for what the solver leaves.
    pub(super) flows: Vec<Vec<f64>>,
    /// By arc: its price, at least 0.
    pub(super) prices: Vec<f64>,
}

/// How exact an answer should be, as a part of 1.
const TOLERANCE: f64 = 1e-9;

/// Solves the program; `unit_seconds` is the time of the machine's own routes.
pub(super) fn solve(core: &Core, bandwidth: &[f64], unit_seconds: f64) -> Flow {
    let (arcs, senders) = (core.arcs.len(), core.demands.len());
    let fastest = core.arcs.iter().map(|arc| bandwidth[arc.link]).fold(0.0, f64::max);
    let unit_bytes = fastest * unit_seconds;
    // Rows: conservation by sender at every vertex but itself, then capacities, then signs.
    let others = core.vertices - 1;
    let conserved = senders * others;
    let variables = core.flows() + 1;
    let rows = conserved + arcs + core.flows();
    let mut right = vec![0.0; rows];
    let (mut starts, mut row_of, mut values) = (vec![0], Vec::new(), Vec::new());
    for (number, (sender, receivers)) in core.demands.iter().enumerate() {
        // A sender has no row of its own.
        let row = |vertex: usize| number * others + vertex - usize::from(vertex > *sender);
        for &(receiver, bytes) in receivers {
            right[row(receiver)] = bytes as f64 / unit_bytes;
        }
        for &position in &core.usable[number] {
            let (arc, position) = (&core.arcs[position as usize], position as usize);
            let mut ends = [(arc.from, -1.0), (arc.to, 1.0)];
            ends.sort_unstable_by_key(|(vertex, _)| *vertex);
            for (vertex, sign) in ends.into_iter().filter(|(vertex, _)| vertex != sender) {
                row_of.push(row(vertex));
                values.push(sign);
            }
            row_of.extend([conserved + position, conserved + arcs + starts.len() - 1]);
            values.extend([1.0, -1.0]);
            starts.push(row_of.len());
        }
    }
    for (arc, position) in core.arcs.iter().zip(0..) {
        row_of.push(conserved + position);
        values.push(-bandwidth[arc.link] / fastest);
    }
    starts.push(row_of.len());
    let matrix = CscMatrix::new(rows, variables, starts, row_of, values);
    let mut objective = vec![0.0; variables];
    objective[variables - 1] = 1.0;
    let cones = [SupportedConeT::ZeroConeT(conserved), SupportedConeT::NonnegativeConeT(arcs + core.flows())];
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: TOLERANCE,
        tol_gap_rel: TOLERANCE,
        tol_feas: TOLERANCE,
        max_threads: 1,
        ..DefaultSettings::default()
    };
    let quadratic = CscMatrix::zeros((variables, variables));
    let (mut flows, mut prices) = (vec![vec![0.0; arcs]; senders], vec![0.0; arcs]);
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
        let found = &solver.solution.z[conserved..conserved + arcs];
        prices.iter_mut().zip(found).for_each(|(price, &found)| *price = sound(found));
    }
    Flow { flows, prices }
}

//! The linear program of a core, for the solver: variables f(s, a) by star, then arc; then T.
//!
//! An arc and its mirror share one capacity row: each carries the sum of both flows.
//!
//! Bytes are in units of the largest demand, and T is in units of the time of some routing. The row of a link is
//! divided by the bytes that the link carries in that time. So the relevant numbers are near 1 even if links differ.
//! The solver's error is small compared with these numbers, unless one link carries a hundred thousand times the bytes
//! of another.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SupportedConeT};

use super::two_core::{Core, Flow};

/// Relative accuracy that the solver aims at.
const TOLERANCE: f64 = 1e-9;

/// Solves the program; `unit_seconds` is the time of some routing, ideally close to the best.
pub(super) fn solve(core: &Core, bandwidth: &[f64], unit_seconds: f64) -> Flow {
    let (arcs, stars) = (core.arcs.len(), core.stars.len());
    let demands = core.stars.iter().flat_map(|star| &star.ends).map(|&(_, bytes)| (bytes as f64).abs());
    let unit_bytes = demands.fold(1.0, f64::max);
    // Rows: conservation by star at every vertex except its hub, then capacities, then signs.
    let others = core.vertices - 1;
    let conserved = stars * others;
    let (capacity_of, signs) = capacities(core, conserved);
    // By arc: the time of one unit of bytes, in units of time.
    let unit_times: Vec<f64> =
        core.arcs.iter().map(|arc| unit_bytes / (bandwidth[arc.link] * unit_seconds)).collect();
    let variables = core.flows() + 1;
    let rows = signs + core.flows();
    let mut right = vec![0.0; rows];
    let (mut starts, mut row_of, mut values) = (vec![0], Vec::new(), Vec::new());
    for (number, star) in core.stars.iter().enumerate() {
        // The hub has no row.
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
            values.extend([unit_times[arc], -1.0]);
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
    // The status of the solver is ignored: the caller turns flows into a routing and prices into a bound, and rejects
    // the result if these differ too much.
    if let Ok(mut solver) = DefaultSolver::new(&quadratic, &objective, &matrix, &right, &cones, settings) {
        solver.solve();
        let finite = |number: f64| if number.is_finite() { number.max(0.0) } else { 0.0 };
        let mut found = solver.solution.x.iter();
        for (flow, usable) in flows.iter_mut().zip(&core.usable) {
            for (&arc, &found) in usable.iter().zip(&mut found) {
                flow[arc as usize] = finite(found) * unit_bytes;
            }
        }
        let found = &solver.solution.z;
        for (price, (row, time)) in prices.iter_mut().zip(capacity_of.into_iter().zip(&unit_times)) {
            *price = finite(found[row]) * time;
        }
    }
    Flow { flows, prices }
}

/// By arc: the row of its capacity, from `first` on, shared with its mirror. Also returns the first row after these.
fn capacities(core: &Core, first: usize) -> (Vec<usize>, usize) {
    let (mut row_of, mut next) = (vec![0; core.arcs.len()], first);
    for number in 0..core.arcs.len() {
        match core.mirrors.as_ref().map(|mirrors| mirrors[number]).filter(|&mirror| mirror < number) {
            Some(mirror) => row_of[number] = row_of[mirror],
            None => {
                row_of[number] = next;
                next += 1;
            }
        }
    }
    (row_of, next)
}

//! Butterflies, reductions, broadcasts and eliminations (section 6.2).

use equipoise_model::params::Param;

use super::{Bodies, FLITS, Generator, ITERATIONS, Keys, N, WORK};
use crate::program::Program;

/// An FFT: in stage `d`, each process exchanges messages with the process whose number differs in bit `d`.
pub(super) const BUTTERFLY: Generator = Generator {
    name: "butterfly",
    form: "",
    help: "An FFT on 2^k processes: in each of k stages, every process computes and exchanges with one partner.",
    params: &[N, FLITS, WORK, ITERATIONS],
    item: |keys| {
        let (n, dimensions) = keys.cube()?;
        let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
        let mut bodies = Bodies::new(n);
        for dimension in 0..dimensions {
            exchange(&mut bodies, n, 1 << dimension, flits, work);
        }
        Ok(bodies.repeated(iterations))
    },
};

/// A reduction in a binary tree.
pub(super) const TREE: Generator = Generator {
    name: "tree",
    form: "",
    help: "A reduction in a binary tree: process i receives from 2i+1 and 2i+2, computes, and sends to its parent.",
    params: &[
        Param { key: "n", default: "15", help: "processes" },
        FLITS,
        WORK,
        Param { key: "iterations", default: "1", help: "number of iterations" },
    ],
    item: tree,
};

/// A broadcast and a gather over a binomial tree.
pub(super) const BROADCAST: Generator = Generator {
    name: "broadcast",
    form: "",
    help: "A broadcast from process 0 to 2^k processes over a binomial tree (highest dimension of the hypercube first); \
           all compute, and replies return over the same tree.",
    params: &[N, FLITS, WORK, ITERATIONS],
    item: |keys| {
        let (n, dimensions) = keys.cube()?;
        let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
        let mut bodies = Bodies::new(n);
        let pairs = |bit: usize| (0..n).step_by(2 * bit).map(move |it| (it, it + bit));
        for (near, far) in (0..dimensions).rev().flat_map(|dimension| pairs(1 << dimension)) {
            bodies.send(near, far, flits);
            bodies.receive(far, near, flits);
        }
        (0..n).for_each(|process| bodies.work(process, work));
        for (near, far) in (0..dimensions).flat_map(|dimension| pairs(1 << dimension)) {
            bodies.send(far, near, flits);
            bodies.receive(near, far, flits);
        }
        Ok(bodies.repeated(iterations))
    },
};

/// Gaussian elimination, row by row.
pub(super) const ELIMINATION: Generator = Generator {
    name: "elimination",
    form: "",
    help: "Gaussian elimination: processes 0, 1, ... in turn compute and send a row to all later processes, which \
           compute with the row.",
    params: &[
        Param { key: "n", default: "8", help: "processes" },
        FLITS,
        WORK,
        Param { key: "iterations", default: "1", help: "number of iterations" },
    ],
    item: |keys| {
        let n = keys.processes(2)?;
        let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
        super::check_instructions((n * n) as f64 * 1.5, &format!("n={n}"))?;
        let mut bodies = Bodies::new(n);
        for pivot in 0..n - 1 {
            bodies.work(pivot, work);
            for later in pivot + 1..n {
                bodies.send(pivot, later, flits);
                bodies.receive(later, pivot, flits);
                bodies.work(later, work);
            }
        }
        Ok(bodies.repeated(iterations))
    },
};

/// Every process computes and exchanges with the process whose number differs in these `bits`.
pub(super) fn exchange(bodies: &mut Bodies, n: usize, bits: usize, flits: u64, work: u64) {
    (0..n).for_each(|process| bodies.work(process, work));
    let messages: Vec<_> = (0..n).map(|process| (process, process ^ bits, flits)).collect();
    bodies.exchange(&messages);
}

fn tree(keys: &mut Keys) -> Result<Program, String> {
    let n = keys.processes(2)?;
    let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
    let mut bodies = Bodies::new(n);
    for process in 0..n {
        for child in [2 * process + 1, 2 * process + 2].into_iter().filter(|&child| child < n) {
            bodies.receive(process, child, flits);
        }
        bodies.work(process, work);
        if process > 0 {
            bodies.send(process, (process - 1) / 2, flits);
        }
    }
    Ok(bodies.repeated(iterations))
}

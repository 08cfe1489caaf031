//! Butterflies and reductions in a binary tree (section 6.2).

use super::{Bodies, FLITS, Generator, ITERATIONS, Keys, N, WORK};
use crate::params::Param;
use crate::program::Program;

/// An FFT: in stage `d` process `i` exchanges with the one whose number differs in bit `d`.
pub(super) const BUTTERFLY: Generator = Generator {
    name: "butterfly",
    help: "An FFT on 2^k processes: in each of k stages they compute and exchange with one partner.",
    params: &[N, FLITS, WORK, ITERATIONS],
    make: |keys| {
        let (n, dimensions) = keys.cube()?;
        let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
        let mut bodies = Bodies::new(n);
        for dimension in 0..dimensions {
            exchange(&mut bodies, n, 1 << dimension, flits, work);
        }
        Ok(bodies.repeated(iterations))
    },
};

/// Values go up a binary tree.
pub(super) const TREE: Generator = Generator {
    name: "tree",
    help: "A reduction: process i waits for 2i+1 and 2i+2, computes, and sends to its parent.",
    params: &[
        Param { key: "n", default: "15", help: "processes" },
        FLITS,
        WORK,
        Param { key: "iterations", default: "1", help: "how often all is done" },
    ],
    make: tree,
};

/// News goes from one process to all, and what they make of it comes back.
pub(super) const BROADCAST: Generator = Generator {
    name: "broadcast",
    help: "2^k processes: 0 sends across the highest dimension, both across the next, and so on, until all have it; all \
           compute, and answers come back the same ways: a binomial tree.",
    params: &[N, FLITS, WORK, ITERATIONS],
    make: |keys| {
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

/// Rows of a matrix are eliminated one after the other.
pub(super) const ELIMINATION: Generator = Generator {
    name: "elimination",
    help: "Gaussian elimination: process 0, then 1, and so on computes and sends its row to all after it, which compute \
           with it.",
    params: &[
        Param { key: "n", default: "8", help: "processes" },
        FLITS,
        WORK,
        Param { key: "iterations", default: "1", help: "how often all is done" },
    ],
    make: |keys| {
        let n = keys.processes(2)?;
        let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
        super::may_write((n * n) as f64 * 1.5, &format!("n={n}"))?;
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

/// Everybody computes and exchanges with the partner whose number differs in these `bits`.
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

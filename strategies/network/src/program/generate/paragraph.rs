//! Programs in place of the six traces of ParaGraph (section 6.1), which are not available. Numbers of processes and
//! patterns are from the paper; message lengths and loads are our choice.

use equipoise_model::params::Param;

use super::collective::exchange;
use super::{Bodies, Generator, WORK};
use crate::program::Program;

const PARAMS: &[Param] = &[
    Param { key: "flits", default: "64", help: "length of a message in flits" },
    Param { key: "work", default: "1000", help: "cycles per unit of work" },
];

/// Cholesky factorisation by columns on 8 processes, then both substitutions.
pub(super) const CHOL: Generator = Generator {
    name: "chol",
    form: "",
    help: "Cholesky factorisation of 32 columns, distributed cyclically over 8 processes, and the two substitutions: \
           the owner of each column sends it to all; work decreases from column to column.",
    params: PARAMS,
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        let (n, columns) = (8, 32);
        let mut bodies = Bodies::new(n);
        for column in 0..columns {
            let left = (columns - column) as u64;
            // The owner scales the column; later columns are shorter.
            bodies.work(column % n, work * left / columns as u64);
            broadcast(&mut bodies, n, column % n, (flits * left / columns as u64).max(1));
            for process in 0..n {
                let mine = (column + 1..columns).filter(|later| later % n == process).count() as u64;
                bodies.work(process, work * mine * left / (4 * columns as u64));
            }
        }
        for column in (0..columns).chain((0..columns).rev()) {
            bodies.work(column % n, work / 16);
            broadcast(&mut bodies, n, column % n, 4);
        }
        Ok(bodies.repeated(1))
    },
};

/// The dimension exchange of an FFT on 64 processes.
pub(super) const FFT: Generator = Generator {
    name: "fft64",
    form: "",
    help: "An FFT on 64 processes: in each of six stages, every process computes and exchanges with one partner.",
    params: PARAMS,
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        let mut bodies = Bodies::new(64);
        (0..6).for_each(|dimension| exchange(&mut bodies, 64, 1 << dimension, flits, work));
        Ok(bodies.repeated(1))
    },
};

/// Each process in turn sends work to all others and gathers their results.
pub(super) const FLOPS: Generator = Generator {
    name: "flops",
    form: "",
    help: "One round per process on 8 processes: the process sends to all others, all compute, and it gathers from all.",
    params: PARAMS,
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        let mut bodies = Bodies::new(8);
        for root in 0..8 {
            broadcast(&mut bodies, 8, root, flits);
            (0..8).for_each(|process| bodies.work(process, 8 * work));
            let others = || (0..8).filter(move |&process| process != root);
            others().for_each(|process| bodies.send(process, root, 8));
            others().for_each(|process| bodies.receive(root, process, 8));
        }
        Ok(bodies.repeated(1))
    },
};

/// Shifts along both dimensions of a grid of 4 x 4 processes.
pub(super) const MATRIX: Generator = Generator {
    name: "matrix",
    form: "",
    help: "Matrix computations on a mesh of 4 x 4 processes, numbered by a Gray code of the 4-dimensional hypercube: \
           four rounds of work and exchanges with all neighbors.",
    params: PARAMS,
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        let gray = |i: usize| i ^ (i >> 1);
        let process = |x: usize, y: usize| gray(x) | gray(y) << 2;
        let mut bodies = Bodies::new(16);
        for _ in 0..4 {
            (0..16).for_each(|process| bodies.work(process, 4 * work));
            let mut messages = Vec::new();
            for (x, y) in (0..4).flat_map(|y| (0..4).map(move |x| (x, y))) {
                for (right, down) in [(1, 0), (0, 1)] {
                    if x + right < 4 && y + down < 4 {
                        let (here, there) = (process(x, y), process(x + right, y + down));
                        messages.extend([(here, there, flits), (there, here, flits)]);
                    }
                }
            }
            bodies.exchange(&messages);
        }
        Ok(bodies.repeated(1))
    },
};

/// Bitonic sorting on 16 processes.
pub(super) const SORT: Generator = Generator {
    name: "sort",
    form: "",
    help: "Bitonic sorting on 16 processes: in each stage, every process computes and exchanges along one dimension.",
    params: PARAMS,
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        let mut bodies = Bodies::new(16);
        for stage in 0..4 {
            (0..=stage).rev().for_each(|dimension| exchange(&mut bodies, 16, 1 << dimension, flits, work));
        }
        Ok(bodies.repeated(1))
    },
};

/// Sparse Cholesky factorisation of a grid in nested dissection.
pub(super) const SPARSE: Generator = Generator {
    name: "sparse",
    form: "",
    help: "Sparse Cholesky factorisation, on 8 processes, of a grid in nested dissection of three levels: first the \
           subtrees without messages, then each separator by all processes of its subtree.",
    params: &[
        Param { key: "flits", default: "64", help: "length of a message in flits" },
        Param { default: "1000", ..WORK },
    ],
    item: |keys| {
        let (flits, work) = (keys.flits()?, keys.work()?);
        Ok(sparse(flits, work))
    },
};

/// `root` sends to all other processes.
fn broadcast(bodies: &mut Bodies, n: usize, root: usize, flits: u64) {
    let others = || (0..n).filter(move |&process| process != root);
    others().for_each(|process| bodies.send(root, process, flits));
    others().for_each(|process| bodies.receive(process, root, flits));
}

fn sparse(flits: u64, work: u64) -> Program {
    let n = 8;
    let mut bodies = Bodies::new(n);
    // The subtrees are equal except for the boundary of the grid, which is longer for the first and the last one.
    for process in 0..n {
        let boundary = if process == 0 || process == n - 1 { 5 } else { 4 };
        bodies.work(process, boundary * 4 * work);
    }
    for level in 1..=3 {
        let size = 1 << level;
        for first in (0..n).step_by(size) {
            // The columns of a separator are distributed cyclically; the owner sends each to all processes of the subtree.
            for column in 0..4 * level {
                let owner = first + column % size;
                bodies.work(owner, work);
                let others = || (first..first + size).filter(move |&process| process != owner);
                others().for_each(|process| bodies.send(owner, process, flits * level as u64));
                others().for_each(|process| bodies.receive(process, owner, flits * level as u64));
                (first..first + size).for_each(|process| bodies.work(process, work / 2));
            }
        }
    }
    bodies.repeated(1)
}

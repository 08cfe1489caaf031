//! Random programs: those on which the estimate and the mapper are measured (sections 4.1, 5.3), and phased ones as of
//! Lee and Aggarwal (section 6.3).

use std::collections::BTreeSet;

use super::{Bodies, FLITS, Generator, ITERATIONS, Keys, N, SEED};
use crate::params::Param;
use crate::program::Program;
use crate::random::{below, generator};

/// Random pairs of processes exchange messages.
pub(super) const RANDOM: Generator = Generator {
    name: "random",
    help: "Processes compute, send to each of their partners, drawn at random, and receive from each.",
    params: &[
        N,
        Param { key: "degree", default: "7", help: "partners of a process on average" },
        FLITS,
        Param { key: "ratio", default: "8", help: "cycles computed per flit sent or received" },
        ITERATIONS,
        SEED,
    ],
    make: |keys| {
        let (n, degree) = (keys.processes(2)?, keys.ratio("degree", 64.0)?);
        let (flits, ratio) = (keys.flits()?, keys.ratio("ratio", 1e6)?);
        let (iterations, seed) = (keys.iterations()?, keys.seed()?);
        random(n, degree, flits, ratio).map(|made| made(seed).repeated(iterations))
    },
};

/// Random phases, one after the other.
pub(super) const PHASED: Generator = Generator {
    name: "phased",
    help: "Phases of random messages, each drawn anew, with all receives of one before the next begins: what the \
           graphs of Lee and Aggarwal are taken to be.",
    params: &[
        N,
        Param { key: "phases", default: "3", help: "how many phases" },
        Param { key: "degree", default: "2", help: "messages that a process sends in a phase, on average" },
        Param { key: "flits", default: "8", help: "flits of a message on average" },
        Param { key: "work", default: "4", help: "cycles computed before each phase" },
        SEED,
    ],
    make: phased,
};

/// A maker of random programs, by seed: lengths are within a half of `flits`.
fn random(n: usize, degree: f64, flits: u64, ratio: f64) -> Result<impl Fn(u64) -> Bodies, String> {
    let pairs = (degree * n as f64 / 2.0).round() as usize;
    let most = n * (n - 1) / 2;
    let pairs = pairs.min(most).max(1);
    Ok(move |seed| {
        let mut dice = generator(seed, n as u64);
        let mut chosen = BTreeSet::new();
        // A ring first would make all partners of somebody; here nobody is promised one.
        while chosen.len() < pairs {
            let (a, b) = (below(&mut dice, n as u64) as usize, below(&mut dice, n as u64) as usize);
            if a != b {
                chosen.insert((a.min(b), a.max(b)));
            }
        }
        let mut length = || flits / 2 + below(&mut dice, flits + 1).max(1);
        let messages: Vec<(usize, usize, u64)> =
            chosen.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).map(|(a, b)| (a, b, length())).collect();
        let mut volume = vec![0; n];
        for &(from, to, flits) in &messages {
            volume[from] += flits;
            volume[to] += flits;
        }
        let mut bodies = Bodies::new(n);
        for (process, flits) in volume.into_iter().enumerate() {
            bodies.work(process, (flits as f64 * ratio).round() as u64);
        }
        bodies.exchange(&messages);
        bodies
    })
}

fn phased(keys: &mut Keys) -> Result<Program, String> {
    let (n, phases) = (keys.processes(2)?, keys.number("phases", 1, 1000)?);
    let (degree, flits) = (keys.ratio("degree", 64.0)?, keys.flits()?);
    let (work, seed) = (keys.work()?, keys.seed()?);
    let each = 1.0 + 2.0 * degree.min(n as f64 - 1.0);
    super::may_write(n as f64 * phases as f64 * each, &format!("n={n}, phases={phases}, degree={degree}"))?;
    let mut dice = generator(seed, n as u64);
    let mut bodies = Bodies::new(n);
    for _ in 0..phases {
        let mut chosen = BTreeSet::new();
        let wanted = ((degree * n as f64).round() as usize).clamp(1, n * (n - 1));
        while chosen.len() < wanted {
            let (a, b) = (below(&mut dice, n as u64) as usize, below(&mut dice, n as u64) as usize);
            if a != b {
                chosen.insert((a, b));
            }
        }
        let length = |(a, b)| (a, b, flits / 2 + below(&mut dice, flits + 1).max(1));
        let messages: Vec<(usize, usize, u64)> = chosen.into_iter().map(length).collect();
        (0..n).for_each(|process| bodies.work(process, work));
        bodies.exchange(&messages);
    }
    Ok(bodies.repeated(1))
}

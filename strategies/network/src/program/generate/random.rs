//! Random programs: those on which the estimate and the mapper are measured (sections 4.1, 5.3), and programs in phases
//! like those of Lee and Aggarwal (section 6.3).

use std::collections::BTreeSet;

use equipoise_model::params::Param;
use equipoise_model::random::{below, generator};

use super::{Bodies, FLITS, Generator, ITERATIONS, Keys, N, SEED};
use crate::program::Program;

/// Random pairs of processes exchange messages.
pub(super) const RANDOM: Generator = Generator {
    name: "random",
    form: "",
    help: "Processes compute, send to each of their random partners, and receive from each.",
    params: &[
        N,
        Param { key: "degree", default: "7", help: "mean number of partners of a process" },
        FLITS,
        Param { key: "ratio", default: "8", help: "cycles of computation per flit sent or received" },
        ITERATIONS,
        SEED,
    ],
    item: |keys| {
        let (n, degree) = (keys.processes(2)?, keys.ratio("degree", 64.0)?);
        let (flits, ratio) = (keys.flits()?, keys.ratio("ratio", 1e6)?);
        let (iterations, seed) = (keys.iterations()?, keys.seed()?);
        random(n, degree, flits, ratio).map(|bodies| bodies(seed).repeated(iterations))
    },
};

/// Random phases, one after the other.
pub(super) const PHASED: Generator = Generator {
    name: "phased",
    form: "",
    help: "Phases of random messages; all messages of a phase are received before the next phase. A substitute for \
           the graphs of Lee and Aggarwal.",
    params: &[
        N,
        Param { key: "phases", default: "3", help: "number of phases" },
        Param { key: "degree", default: "2", help: "mean number of messages that a process sends per phase" },
        Param { key: "flits", default: "8", help: "mean length of a message in flits" },
        Param { key: "work", default: "4", help: "cycles of computation before each phase" },
        SEED,
    ],
    item: phased,
};

/// A function from seeds to random programs. Message lengths are from half to 1.5 times `flits`.
fn random(n: usize, degree: f64, flits: u64, ratio: f64) -> Result<impl Fn(u64) -> Bodies, String> {
    let pairs = (degree * n as f64 / 2.0).round() as usize;
    let most = n * (n - 1) / 2;
    let pairs = pairs.min(most).max(1);
    Ok(move |seed| {
        let mut rng = generator(seed, n as u64);
        let mut chosen = BTreeSet::new();
        // Pairs are chosen independently, so that a process may have no partner.
        while chosen.len() < pairs {
            let (a, b) = (below(&mut rng, n as u64) as usize, below(&mut rng, n as u64) as usize);
            if a != b {
                chosen.insert((a.min(b), a.max(b)));
            }
        }
        let mut length = || flits / 2 + below(&mut rng, flits + 1).max(1);
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
    super::check_instructions(
        n as f64 * phases as f64 * each,
        &format!("n={n}, phases={phases}, degree={degree}"),
    )?;
    let mut rng = generator(seed, n as u64);
    let mut bodies = Bodies::new(n);
    for _ in 0..phases {
        let mut chosen = BTreeSet::new();
        let wanted = ((degree * n as f64).round() as usize).clamp(1, n * (n - 1));
        while chosen.len() < wanted {
            let (a, b) = (below(&mut rng, n as u64) as usize, below(&mut rng, n as u64) as usize);
            if a != b {
                chosen.insert((a, b));
            }
        }
        let length = |(a, b)| (a, b, flits / 2 + below(&mut rng, flits + 1).max(1));
        let messages: Vec<(usize, usize, u64)> = chosen.into_iter().map(length).collect();
        (0..n).for_each(|process| bodies.work(process, work));
        bodies.exchange(&messages);
    }
    Ok(bodies.repeated(1))
}

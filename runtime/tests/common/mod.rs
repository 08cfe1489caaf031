//! What the runtime's tests share: dice, the machines every test runs on, and a watchdog.

#![allow(dead_code)]

pub mod workers;

use equipoise::{Config, Migration};
use serde::{Deserialize, Serialize};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Dice that can live in an element and migrate with it (SplitMix64).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dice(u64);

impl Dice {
    /// Dice for one purpose (`of`) in a run with this seed.
    pub fn new(seed: u64, of: u64) -> Self {
        Dice(mixed(seed ^ mixed(of)))
    }

    /// A number below `below`.
    pub fn draw(&mut self, below: usize) -> usize {
        self.0 = mixed(self.0);
        ((u128::from(self.0) * below as u128) >> 64) as usize
    }

    /// True once in `n` throws.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.draw(n) == 0
    }
}

/// A good hash of 64 bits.
pub fn mixed(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// No check may take longer: what hangs is reported, with what it was doing.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `body` on a thread of its own and fails if it panics or hangs, saying `what` it was.
#[track_caller]
pub fn watched<R: Send + 'static>(what: String, body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = channel();
    let thread = std::thread::Builder::new().name(what.clone()).spawn(move || {
        let _ = done.send(body());
    });
    let thread = thread.expect("a thread to watch");
    match result.recv_timeout(LIMIT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            panic!("failed: {what}");
        }
    }
}

/// How a failure names the machine it happened on.
pub fn told(config: &Config) -> String {
    let Config { pes, transport, migration, initial, seed, balancer, machine, .. } = config;
    let pes = pes.unwrap_or(0);
    format!(
        "{transport:?} on {pes} PEs, seed {seed}, {migration:?}, initial {initial}, balancer {balancer:?}, network {:?}",
        machine.network
    )
}

/// Networks on which simulated runs take virtual time; where there is none they do not.
const NETWORKS: [Option<&str>; 9] = [
    None,
    None,
    None,
    Some("ideal:latency=0,hop=1e-12,bandwidth=1e30"),
    Some("ideal"),
    Some("ideal:latency=1e-3,hop=1e-9,bandwidth=1e5"),
    Some("flow"),
    Some("packet:routing=adaptive"),
    Some("wormhole:flit=16"),
];

/// A run on the simulated machine that differs in everything from seed to seed.
pub fn simulated(seed: u64) -> Config {
    let mut config = Config::simulated(1 + (seed % 7) as usize, seed);
    config.machine.network = NETWORKS[(mixed(seed) >> 8) as usize % NETWORKS.len()].map(str::to_owned);
    vary(config)
}

/// A run on 1 to 8 threads.
pub fn threads(seed: u64) -> Config {
    vary(Config { seed, ..Config::threads(1 + (seed % 8) as usize) })
}

fn vary(config: Config) -> Config {
    let choice = mixed(config.seed);
    let migration = if choice & 1 == 0 { Migration::Encode } else { Migration::Move };
    let initial = ["blocks", "roundrobin", "random"][(choice >> 1) as usize % 3].to_owned();
    Config { migration, initial, ..config }
}

/// Runs `check` for many seeds on the simulated machine, and for some on threads.
#[track_caller]
pub fn everywhere(simulations: u64, on_threads: u64, check: impl Fn(Config) + Copy + Send + 'static) {
    for config in (0..simulations).map(simulated).chain((0..on_threads).map(threads)) {
        watched(told(&config), move || check(config));
    }
}

/// A configuration of the same kind with so many PEs.
pub fn with_pes(config: &Config, pes: usize) -> Config {
    Config { pes: Some(pes), ..config.clone() }
}

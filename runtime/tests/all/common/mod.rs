//! Shared parts of the runtime's tests: a random number generator, the configurations of tests, and a watchdog.

pub mod workers;

use equipoise::{Config, Migration};
pub use equipoise_model::testing::{at_full_size, is_full_size, seeds, set_full_size};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A random number generator that is part of an element and migrates with it (SplitMix64).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rng(u64);

impl Rng {
    /// The generator for one purpose (`of`) in a run with this seed.
    pub fn new(seed: u64, of: u64) -> Self {
        Rng(mixed(seed ^ mixed(of)))
    }

    /// Samples a number below `below`.
    pub fn sample(&mut self, below: usize) -> usize {
        self.0 = mixed(self.0);
        ((u128::from(self.0) * below as u128) >> 64) as usize
    }

    /// True with probability 1 / `n`.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.sample(n) == 0
    }
}

/// A good hash of 64 bits.
pub fn mixed(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The most time of a check, and of one at full size; a longer check is reported as hanging. (The slowest simulates a network
/// between 26 PEs, for about a minute on a busy computer.)
const LIMITS: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(300)];

/// Runs `body` on its own thread and fails with the name `what` if `body` panics or hangs.
#[track_caller]
pub fn watched<R: Send + 'static>(what: String, body: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = channel();
    let thread = std::thread::Builder::new().name(what.clone()).spawn(move || {
        let _ = done.send(body());
    });
    let thread = thread.expect("a thread to watch");
    match result.recv_timeout(LIMITS[usize::from(is_full_size())]) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        Err(RecvTimeoutError::Disconnected) => {
            let _ = thread.join();
            panic!("failed: {what}");
        }
    }
}

/// The place of the first line with `code` in the text of a file, as errors name it: without the column.
pub fn place_of(code: &str, file: &str, text: &str) -> String {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| line.contains(code));
    let (line, _) = lines.next().expect("a line with the code");
    format!("({file}:{line}:")
}

/// Describes a configuration in failures.
pub fn describe(config: &Config) -> String {
    let Config { pes, pes_per_process, transport, migration, initial, seed, balancer, machine, .. } = config;
    let pes = pes.unwrap_or(0);
    format!(
        "{transport:?} on {pes} PEs, {pes_per_process:?} per process, seed {seed}, {migration:?}, initial {initial}, balancer {balancer:?}, network {:?}",
        machine.network
    )
}

/// Networks of simulated runs; none for runs without virtual time.
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

/// A simulated run; all its parameters depend on the seed. Every fourth run has more PEs than the root of their tree has
/// children, up to three levels of them. Every second run has several processes, alternately with one PE and with several; they
/// have no network.
pub fn simulated(seed: u64) -> Config {
    let pes = if seed % 4 == 3 { 6 + mixed(seed) % 25 } else { 1 + seed % 7 };
    let local_pes = match seed % 4 {
        1 => Some(1),
        3 => Some(2 + (mixed(seed) >> 16) % 3),
        _ => None,
    };
    let pes = pes.next_multiple_of(local_pes.unwrap_or(1));
    let mut config = Config::simulated(pes as usize, seed);
    config.pes_per_process = local_pes.map(|local| local as usize);
    if local_pes.is_none() {
        config.machine.network = NETWORKS[(mixed(seed) >> 8) as usize % NETWORKS.len()].map(str::to_owned);
    }
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

/// Runs `check` for many seeds on the simulated machine, and for some on threads; all of them in the slow
/// group.
#[track_caller]
pub fn everywhere(simulations: u32, on_threads: u32, check: impl Fn(Config) + Copy + Send + 'static) {
    for config in seeds(simulations).map(simulated).chain(seeds(on_threads).map(threads)) {
        watched(describe(&config), move || check(config));
    }
}

/// The same configuration with `pes` PEs.
pub fn with_pes(config: &Config, pes: usize) -> Config {
    let pes_per_process = config.pes_per_process.map(|local| if pes % local == 0 { local } else { 1 });
    Config { pes: Some(pes), pes_per_process, ..config.clone() }
}

/// Says on stderr what a test skips, and why; a test that passes would not show what `eprintln!` writes.
pub fn skip(sentence: &str) {
    _ = writeln!(std::io::stderr(), "skipped: {sentence}");
}

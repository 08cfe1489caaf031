//! The ways to run a program that must not change what it computes.

use equipoise::strategies::registry::ALL;
use equipoise::{Config, Machine, Transport};
use std::io::Write as _;
use tempfile::NamedTempFile;

/// Every strategy on 1 to 8 PEs, as threads and simulated (some in virtual time), for a program of `objects` elements that take
/// part in load balancing. Calls `check` with each, and what to say of it when it fails.
pub fn every_way(objects: usize, mut check: impl FnMut(Config, &str)) {
    for pes in 1..=8 {
        // A mapping with every PE in it, and no two neighbors on the same one.
        let mut mapping = NamedTempFile::new().expect("a temporary file can be made");
        for object in 0..objects {
            writeln!(mapping, "{}", (object * 5 + 1) % pes).expect("a temporary file can be written");
        }
        for strategy in ALL {
            let spec = match strategy.name {
                "FileLB" => format!("FileLB:path={}", mapping.path().display()),
                name => name.to_owned(),
            };
            let virtual_time = Machine { network: Some("ideal:hop=1e-6".into()), ..Machine::default() };
            for (transport, machine) in [
                (Transport::Threads, Machine::default()),
                (Transport::Simulated, if pes % 3 == 0 { virtual_time } else { Machine::default() }),
            ] {
                let config = Config {
                    transport,
                    machine,
                    balancer: vec![spec.clone()],
                    seed: pes as u64,
                    ..Config::threads(pes)
                };
                check(config, &format!("{} on {pes} PEs, {transport:?}", strategy.name));
            }
        }
    }
}

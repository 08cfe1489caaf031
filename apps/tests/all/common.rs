//! The configurations of the runtime that must not change the result of a program.

use equipoise::strategies::registry::ALL;
use equipoise::{Config, Machine, Transport};
use equipoise_model::testing::is_chosen;
use std::io::Write as _;
use tempfile::NamedTempFile;

/// Calls `check` with each configuration and its description, for a program of `objects` migratable elements: every
/// strategy on 1, 2, 3, 5 and 8 PEs, as threads and simulated (some in virtual time). By default each strategy has one of
/// these ten; the slow group has all. Without `objects` their number changes, and FileLB, which needs it, is left out.
pub fn every_configuration(objects: impl Into<Option<usize>>, mut check: impl FnMut(Config, &str)) {
    let objects = objects.into();
    // So that programs have different ones.
    let first = objects.unwrap_or_default();
    for (number, pes) in [1, 2, 3, 5, 8].into_iter().enumerate() {
        // A mapping that uses every PE and places no two neighbors on the same PE.
        let mut mapping = NamedTempFile::new().expect("a temporary file can be made");
        for object in 0..objects.unwrap_or_default() {
            writeln!(mapping, "{}", (object * 5 + 1) % pes).expect("a temporary file can be written");
        }
        let strategies = ALL.iter().filter(|strategy| objects.is_some() || strategy.name != "FileLB");
        let chosen = strategies.enumerate().filter(|(at, _)| is_chosen(at + first, number, 5));
        for (at, strategy) in chosen {
            let spec = match strategy.name {
                "FileLB" => format!("FileLB:path={}", mapping.path().display()),
                name => name.to_owned(),
            };
            let virtual_time = Machine { network: Some("ideal:hop=1e-6".into()), ..Machine::default() };
            let transports = [
                (Transport::Threads, Machine::default()),
                (Transport::Simulated, if pes % 3 == 0 { virtual_time } else { Machine::default() }),
            ];
            let chosen =
                transports.into_iter().enumerate().filter(|&(nth, _)| is_chosen(nth, at / 5 + number, 2));
            for (_, (transport, machine)) in chosen {
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

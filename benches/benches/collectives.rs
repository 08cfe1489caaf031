//! `cargo bench -p equipoise-benches --bench collectives [-- --small --rounds N --json FILTER]`: the virtual time of
//! collectives on simulated machines of 1,024 and 16,384 PEs, and its exponent in the number of PEs.
//!
//! The machines are tori with the network `packet`; a PE needs 0.5 us to send or receive a message. Virtual time does not
//! depend on this computer, so `--rounds 1` is enough. The floor is the time of one message to the PE that is farthest away.

use equipoise::{Config, Machine};
use equipoise_benches::Measurement;
use equipoise_benches::programs::{self, Collective};

/// A collective, and the names of its time on both machines and of its exponent.
const COLLECTIVES: &[(Collective, [&str; 2], &str)] = &[
    (Collective::Message, FLOORS, "message to the farthest PE, exponent in PEs"),
    (Collective::Broadcast, ["broadcast, 1024 PEs", "broadcast, 16384 PEs"], "broadcast, exponent in PEs"),
    (
        Collective::Reduction,
        ["reduction and broadcast, 1024 PEs", "reduction and broadcast, 16384 PEs"],
        "reduction and broadcast, exponent in PEs",
    ),
    (Collective::SyncPoint, ["sync point, 1024 PEs", "sync point, 16384 PEs"], "sync point, exponent in PEs"),
    (
        Collective::Step,
        ["load-balancing step, 1024 PEs", "load-balancing step, 16384 PEs"],
        "load-balancing step, exponent in PEs",
    ),
];

const FLOORS: [&str; 2] = ["message to the farthest PE, 1024 PEs", "message to the farthest PE, 16384 PEs"];

/// The sides of both machines, and those of small mode.
const MACHINES: [[i32; 3]; 2] = [[16, 8, 8], [32, 32, 16]];
const SMALL: [[i32; 3]; 2] = [[2, 2, 2], [4, 4, 2]];

/// The virtual seconds of one collective: half the difference between a run with two and a run with four of them.
fn seconds(collective: Collective, [x, y, z]: [i32; 3]) -> f64 {
    let of = |times| {
        let config = Config::on_machine(&format!("torus:{x}x{y}x{z}"), "packet");
        let machine = Machine { overhead: 5e-7, ..config.machine.clone() };
        programs::collectives(Config { machine, ..config }, [x, y, z], collective, times)
    };
    (of(4) - of(2)) / 2.0
}

fn measurements() -> Vec<Measurement> {
    let mut all = Vec::new();
    for &(collective, names, exponent) in COLLECTIVES {
        let machines = |small| if small { SMALL } else { MACHINES };
        for (at, name) in names.into_iter().enumerate() {
            all.push(Measurement {
                name,
                unit: "us",
                target: None,
                floor: Some(FLOORS[at]).filter(|&floor| floor != name),
                take: Box::new(move |small| seconds(collective, machines(small)[at]) * 1e6),
            });
        }
        all.push(Measurement {
            name: exponent,
            unit: "",
            target: None,
            floor: None,
            take: Box::new(move |small| {
                let [few, many] = machines(small).map(|sides| seconds(collective, sides));
                let [fewer, more] = machines(small).map(|sides| f64::from(sides.iter().product::<i32>()));
                (many / few).ln() / (more / fewer).ln()
            }),
        });
    }
    all
}

fn main() {
    equipoise_benches::run(measurements());
}

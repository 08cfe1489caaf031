//! `cargo bench -p equipoise-benches --bench network [-- --small --rounds N --json FILTER]`: the speed of the network
//! models on one thread, in nanoseconds per message.
//!
//! The traffic is that of a random mapping: every PE of torus:8x8x8 sends messages to random PEs; each case states the
//! number of messages per PE that are in flight at once, and the total. 500 ns per message are 2 million messages per
//! second. The last measurements run the simulated machine: a program with one element per PE, each of which exchanges
//! messages with ten others.

use std::hint::black_box;
use std::time::Instant;

use equipoise::Config;
use equipoise_benches::{Measurement, programs};
use equipoise_model::topology;
use equipoise_network::models;
use equipoise_network::models::batch::{self, Item};

const FLOOR: &str = "floor: route a message";

/// A network model under a load.
struct Case {
    name: &'static str,
    /// The spec of the network, as for `--network`.
    network: &'static str,
    /// Bytes per message.
    bytes: u64,
    /// Messages per PE in flight at once.
    each: usize,
    /// Minimum number of messages in all.
    messages: usize,
    target_ns: Option<f64>,
}

/// Messages of each PE in flight at once, as in a 3D stencil.
const EACH: usize = 6;

/// The network of the batch experiments, with flits of 16 bytes.
const WORMHOLE: &str = "wormhole:flit=16,cycles_per_hop=4,buffer=16,handoff=4";

/// The default case: a million messages of 4096 bytes, six per PE at once.
const CASE: Case =
    Case { name: "", network: "", bytes: 4096, each: EACH, messages: 1_000_000, target_ns: None };

const CASES: &[Case] = &[
    Case { name: "ideal", network: "ideal", target_ns: Some(500.0), ..CASE },
    Case {
        name: "ideal, 2000 of each PE at once",
        network: "ideal",
        each: 2000,
        target_ns: Some(500.0),
        ..CASE
    },
    Case { name: "packet", network: "packet", target_ns: Some(2000.0), ..CASE },
    Case {
        name: "packet, 200 of each PE at once",
        network: "packet",
        each: 200,
        target_ns: Some(2000.0),
        ..CASE
    },
    Case { name: "packet, messages of 100 kB", network: "packet", bytes: 100_000, messages: 50_000, ..CASE },
    Case { name: "packet, adaptive", network: "packet:routing=adaptive", ..CASE },
    Case { name: "flow", network: "flow", target_ns: Some(50_000.0), messages: 20_000, ..CASE },
    Case { name: "wormhole", network: WORMHOLE, messages: 200_000, ..CASE },
];

/// Models whose time for six messages per PE is compared on two tori with these sides.
const GROWTHS: &[(&str, &str, [usize; 2])] = &[
    ("ideal, exponent in PEs, 64 to 4096", "ideal", [4, 16]),
    ("packet, exponent in PEs, 64 to 4096", "packet", [4, 16]),
    ("flow, exponent in PEs, 64 to 512", "flow", [4, 8]),
    ("wormhole, exponent in PEs, 64 to 512", WORMHOLE, [4, 8]),
];

/// A chare program on the simulated machine: seconds for a million messages on torus:16x16x16, and the growth exponent.
const PROGRAMS: &[(&str, &str, &str)] = &[
    ("a program on 4096 PEs, ideal, a million messages", "the same, exponent in PEs, 64 to 4096", "ideal"),
    (
        "a program on 4096 PEs, packet, a million messages",
        "the same by packet, exponent in PEs, 64 to 4096",
        "packet",
    ),
];

/// Seconds per message of a program on a torus of `side`^3 PEs.
fn program(network: &str, side: i32, messages: usize) -> f64 {
    let config = Config::on_machine(&format!("torus:{side}x{side}x{side}"), network);
    programs::communicate(config, side.pow(3), messages).0
}

/// `each` messages from every PE to random PEs.
fn load(pes: usize, each: usize, bytes: u64) -> Vec<Item> {
    let mut state = 1u64;
    let mut random_pe = || {
        // A linear congruential generator is sufficient here (D. H. Lehmer, 1949).
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % pes
    };
    let of = |pe: usize| std::iter::repeat_n(pe, each);
    (0..pes).flat_map(of).map(|from| Item { from: from as u32, to: random_pe() as u32, bytes }).collect()
}

/// Nanoseconds per message of a model on a torus of `side`^3 PEs, for at least `messages` messages.
fn drive(network: &str, side: usize, each: usize, bytes: u64, messages: usize) -> f64 {
    let machine = topology::parse(&format!("torus:{side}x{side}x{side}")).expect("a torus");
    let items = load(machine.pes(), each, bytes);
    let phases = messages.div_ceil(items.len());
    let model = models::parse(network).expect("the spec of a network");
    let mut networks: Vec<_> =
        (0..phases).map(|_| model.on(&machine).expect("the model supports this machine")).collect();
    let start = Instant::now();
    for network in &mut networks {
        black_box(batch::run(&items, &mut **network));
    }
    start.elapsed().as_nanos() as f64 / (phases * items.len()) as f64
}

/// Nanoseconds to compute the route of a message, which every model does.
fn route(side: usize, messages: usize) -> f64 {
    let machine = topology::parse(&format!("torus:{side}x{side}x{side}")).expect("a torus");
    let items = load(machine.pes(), messages.div_ceil(machine.pes()), 1);
    let mut route = Vec::new();
    let start = Instant::now();
    for item in &items {
        route.clear();
        machine.route(item.from as usize, item.to as usize, &mut route);
        black_box(&route);
    }
    start.elapsed().as_nanos() as f64 / items.len() as f64
}

/// The exponent with which the time of a phase grows with the number of PEs, between two tori.
fn growth(network: &str, [few, many]: [usize; 2], messages: usize) -> f64 {
    let [fast, slow] = [few, many].map(|side| drive(network, side, EACH, 4096, messages));
    let pes = (many as f64 / few as f64).powi(3);
    1.0 + (slow / fast).ln() / pes.ln()
}

fn measurements() -> Vec<Measurement> {
    let mut all = vec![Measurement {
        name: FLOOR,
        unit: "ns",
        target: None,
        floor: None,
        take: Box::new(|small| if small { route(2, 100) } else { route(8, 1_000_000) }),
    }];
    for case in CASES {
        all.push(Measurement {
            name: case.name,
            unit: "ns",
            target: case.target_ns,
            floor: Some(FLOOR),
            take: Box::new(move |small| match small {
                true => drive(case.network, 2, case.each.min(10), case.bytes, 100),
                false => drive(case.network, 8, case.each, case.bytes, case.messages),
            }),
        });
    }
    for &(name, network, sides) in GROWTHS {
        all.push(Measurement {
            name,
            unit: "",
            target: None,
            floor: None,
            take: Box::new(move |small| match small {
                true => growth(network, [2, 3], 100),
                false => growth(network, sides, 200_000),
            }),
        });
    }
    for &(name, growth, network) in PROGRAMS {
        all.push(Measurement {
            name,
            unit: "s",
            target: Some(10.0),
            floor: None,
            take: Box::new(move |small| match small {
                true => program(network, 2, 100) * 100.0,
                false => program(network, 16, 1_000_000) * 1e6,
            }),
        });
        all.push(Measurement {
            name: growth,
            unit: "",
            target: None,
            floor: None,
            take: Box::new(move |small| {
                let ([few, many], messages) = if small { ([2, 3], 100) } else { ([4, 16], 400_000) };
                let [fast, slow] = [few, many].map(|side| program(network, side, messages));
                1.0 + (slow / fast).ln() / (f64::from(many) / f64::from(few)).powi(3).ln()
            }),
        });
    }
    all
}

fn main() {
    equipoise_benches::run(measurements());
}

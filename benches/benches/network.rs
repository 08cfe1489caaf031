//! `cargo bench -p equipoise-benches --bench network [-- --small --rounds N --json FILTER]`: how fast the
//! network models are, on one thread: nanoseconds per message.
//!
//! The load is that of a random mapping: every PE sends to six others drawn at random, all in one phase,
//! phase after phase, on a torus. Half a microsecond is 2 million messages per second.

use std::hint::black_box;
use std::time::Instant;

use equipoise_benches::{Measurement, floors};
use equipoise_strategies::network::batch::{self, Item};
use equipoise_strategies::network::{self};
use equipoise_strategies::topology;

const FLOOR: &str = "floor: route a message";

/// A network model under a load.
struct Case {
    name: &'static str,
    /// What `--network` takes.
    network: &'static str,
    /// Bytes of a message.
    bytes: u64,
    /// Messages per PE in flight at once.
    each: usize,
    target_ns: Option<f64>,
}

/// Messages that each PE sends in a phase, as in a 3D stencil.
const EACH: usize = 6;

const CASES: &[Case] = &[
    Case { name: "ideal, ns/message", network: "ideal", bytes: 4096, each: EACH, target_ns: Some(500.0) },
    Case {
        name: "ideal, all 2000 messages of each PE at once, ns/message",
        network: "ideal",
        bytes: 4096,
        each: 2000,
        target_ns: Some(500.0),
    },
    Case { name: "packet, ns/message", network: "packet", bytes: 4096, each: EACH, target_ns: Some(2000.0) },
    Case {
        name: "packet, all 200 messages of each PE at once, ns/message",
        network: "packet",
        bytes: 4096,
        each: 200,
        target_ns: Some(2000.0),
    },
    Case {
        name: "packet, 100 kB, ns/message",
        network: "packet",
        bytes: 100_000,
        each: EACH,
        target_ns: None,
    },
    Case {
        name: "packet, adaptive, ns/message",
        network: "packet:routing=adaptive",
        bytes: 4096,
        each: EACH,
        target_ns: None,
    },
    Case {
        name: "wormhole, ns/message",
        network: "wormhole:flit=16,cycles_per_hop=4,buffer=16,handoff=4",
        bytes: 4096,
        each: EACH,
        target_ns: None,
    },
];

/// Models whose time per message is compared between tori of 64 and of 4096 PEs.
const GROWTHS: &[(&str, &str)] = &[
    ("ideal, exponent of time in PEs, 64 to 4096", "ideal"),
    ("packet, exponent of time in PEs, 64 to 4096", "packet"),
    (
        "wormhole, exponent of time in PEs, 64 to 1000",
        "wormhole:flit=16,cycles_per_hop=4,buffer=16,handoff=4",
    ),
];

/// `each` messages from every PE to others, whoever these are.
fn load(pes: usize, each: usize, bytes: u64) -> Vec<Item> {
    let mut state = 1u64;
    let mut draw = || {
        // A multiplicative congruential generator; any mixture serves (D. H. Lehmer, 1949).
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % pes
    };
    let of = |pe: usize| std::iter::repeat_n(pe, each);
    (0..pes).flat_map(of).map(|from| Item { from: from as u32, to: draw() as u32, bytes }).collect()
}

/// Nanoseconds per message of a model on a cube of `side`^3 PEs, for at least so many messages.
fn drive(network: &str, side: usize, each: usize, bytes: u64, messages: usize) -> f64 {
    let machine = topology::parse(&format!("torus:{side}x{side}x{side}")).expect("a torus");
    let items = load(machine.pes(), each, bytes);
    let phases = messages.div_ceil(items.len());
    let model = network::parse(network).expect("the spec of a network");
    let mut networks: Vec<_> = (0..phases).map(|_| model.on(&machine).expect("it serves a torus")).collect();
    let start = Instant::now();
    for network in &mut networks {
        black_box(batch::run(&items, &mut **network));
    }
    start.elapsed().as_nanos() as f64 / (phases * items.len()) as f64
}

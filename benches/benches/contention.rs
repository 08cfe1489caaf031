//! `cargo bench -p equipoise-benches --bench contention [-- --small --rounds N --json FILTER]`: how fast the contention-aware
//! greedy mapper is, on one thread.
//!
//! The targets are from De Petris and Perego (1994, section 5.3), who map 400 tasks in 25 seconds on a machine of their time.

use std::hint::black_box;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::mapping::contention_lb::{ContentionLb, map};
use equipoise_strategies::program::{Costs, Model, OVERLAP, generate};
use equipoise_strategies::topology;

const FLOOR: &str = "floor: F of 400 random tasks, once";

/// A program on the smallest square mesh.
struct Case {
    name: &'static str,
    /// The program, and a smaller one for small mode.
    program: (&'static str, &'static str),
    target_seconds: Option<f64>,
}

const RANDOM_400: &str = "random:n=400,degree=5.5,iterations=1";
const SMALL: &str = "random:n=16,degree=5.5,iterations=1";

const CASES: &[Case] = &[
    Case {
        name: "map a mesh of 400 tasks",
        program: ("mesh:sizes=20x20,iterations=1", SMALL),
        target_seconds: Some(0.3),
    },
    Case { name: "map 400 random tasks", program: (RANDOM_400, SMALL), target_seconds: Some(0.3) },
    Case {
        name: "map a mesh of 784 tasks",
        program: ("mesh:sizes=28x28,iterations=1", SMALL),
        target_seconds: Some(1.0),
    },
    Case {
        name: "map 784 random tasks",
        program: ("random:n=784,degree=5.5,iterations=1", SMALL),
        target_seconds: Some(1.0),
    },
    Case {
        name: "map 784 random tasks, 10 iterations",
        program: ("random:n=784,degree=5.5", SMALL),
        target_seconds: None,
    },
];

/// A model, and the spec of the smallest square mesh with a PE for each of its tasks.
fn modelled(program: &str) -> (Model, String) {
    let program = generate::known(program);
    let side = (1..).find(|side| side * side >= program.tasks()).expect("there is a square");
    let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
    (model, format!("mesh:{side}x{side}"))
}

/// Seconds to map a program.
fn seconds(program: &str) -> f64 {
    let (model, machine) = modelled(program);
    let machine = topology::parse(&machine).expect("a mesh");
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    let begin = Instant::now();
    let mapped = map(&model, &*machine, &Speeds::default(), &all, &ContentionLb::default(), 0);
    black_box(mapped.expect("nothing bounds memory"));
    begin.elapsed().as_secs_f64()
}

/// Seconds to estimate the end of a placement from scratch, which a mapper that is not incremental does every time.
fn estimate(program: &str) -> f64 {
    let (model, machine) = modelled(program);
    let machine = topology::parse(&machine).expect("a mesh");
    let places = generate::permutation(machine.pes(), 1)[..model.tasks.len()].to_vec();
    let begin = Instant::now();
    black_box(Estimate::of(&model, &*machine, &Speeds::default(), &places));
    begin.elapsed().as_secs_f64()
}

fn main() {
    let mut all = vec![Measurement {
        name: FLOOR,
        unit: "s",
        target: None,
        floor: None,
        take: Box::new(|small| estimate(if small { SMALL } else { RANDOM_400 })),
    }];
    for case in CASES {
        all.push(Measurement {
            name: case.name,
            unit: "s",
            target: case.target_seconds,
            floor: Some(FLOOR),
            take: Box::new(move |small| seconds(if small { case.program.1 } else { case.program.0 })),
        });
    }
    all.push(Measurement {
        name: "map random tasks, exponent in tasks, 100 to 784",
        unit: "",
        target: None,
        floor: None,
        take: Box::new(|small| {
            let sizes = if small { [9, 16] } else { [100, 784] };
            let [few, many] = sizes.map(|n| seconds(&format!("random:n={n},degree=5.5,iterations=1")));
            (many / few).ln() / (f64::from(sizes[1]) / f64::from(sizes[0])).ln()
        }),
    });
    equipoise_benches::run(all);
}

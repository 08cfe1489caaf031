//! `cargo bench -p equipoise-benches --bench contention [-- --small --rounds N --json FILTER]`: how fast the contention-aware
//! greedy mapper is, on one thread.
//!
//! The targets are from De Petris and Perego (1994), who map 400 tasks in 25 seconds on a machine of their time. How good it
//! is, and how its time grows, is for `equipoise reproduce` to say: `greedy-3`, `greedy-7`, `greedy-table2` and `-table3`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::mapping::contention_lb::{ContentionLb, map};
use equipoise_strategies::program::{Costs, Model, OVERLAP, Trial, generate};
use equipoise_strategies::{Topology, topology};

const FLOOR: &str = "floor: F of 400 random tasks, once";

/// A program on the smallest square mesh.
struct Case {
    name: &'static str,
    /// The program, and a smaller one for small mode.
    program: (&'static str, &'static str),
    target_milliseconds: Option<f64>,
}

const RANDOM_400: &str = "random:n=400,degree=5.5,iterations=1";
const SMALL: &str = "random:n=16,degree=5.5,iterations=1";

const CASES: &[Case] = &[
    Case {
        name: "map a mesh of 400 tasks",
        program: ("mesh:sizes=20x20,iterations=1", SMALL),
        target_milliseconds: Some(300.0),
    },
    Case { name: "map 400 random tasks", program: (RANDOM_400, SMALL), target_milliseconds: Some(300.0) },
    Case {
        name: "map a mesh of 784 tasks",
        program: ("mesh:sizes=28x28,iterations=1", SMALL),
        target_milliseconds: Some(1000.0),
    },
    Case {
        name: "map 784 random tasks",
        program: ("random:n=784,degree=5.5,iterations=1", SMALL),
        target_milliseconds: Some(1000.0),
    },
    Case {
        name: "map 784 random tasks, 10 iterations",
        program: ("random:n=784,degree=5.5", SMALL),
        target_milliseconds: None,
    },
];

/// The model of a program, and the smallest square mesh with a PE for each of its tasks, on which it may be tried.
fn modelled(program: &str) -> (Model, Arc<dyn Topology>) {
    let program = generate::known(program);
    let side = (1..).find(|side| side * side >= program.tasks()).unwrap_or(1);
    let machine = topology::parse(&format!("mesh:{side}x{side}")).expect("a mesh");
    let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
    (model.with_trial(Trial::new(&program, &machine, Costs::default())), machine)
}

/// Milliseconds to map a program, by the best of several runs or the paper's one.
fn milliseconds(program: &str, config: &ContentionLb) -> f64 {
    let (model, machine) = modelled(program);
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    let begin = Instant::now();
    let mapped = map(&model, &*machine, &Speeds::default(), &all, config, 0);
    black_box(mapped.expect("nothing bounds memory"));
    1e3 * begin.elapsed().as_secs_f64()
}

/// Milliseconds to estimate the end of a placement from scratch, which a mapper that is not incremental does every time.
fn estimate(program: &str) -> f64 {
    let (model, machine) = modelled(program);
    let places = generate::permutation(machine.pes(), 1)[..model.tasks.len()].to_vec();
    let begin = Instant::now();
    black_box(Estimate::of(&model, &*machine, &Speeds::default(), &places));
    1e3 * begin.elapsed().as_secs_f64()
}

fn main() {
    let mut all = vec![Measurement {
        name: FLOOR,
        unit: "ms",
        target: None,
        floor: None,
        take: Box::new(|small| estimate(if small { SMALL } else { RANDOM_400 })),
    }];
    let mut add = |name, target, program: (&'static str, &'static str), config: ContentionLb| {
        all.push(Measurement {
            name,
            unit: "ms",
            target,
            floor: Some(FLOOR),
            take: Box::new(move |small| milliseconds(if small { program.1 } else { program.0 }, &config)),
        });
    };
    for case in CASES {
        add(case.name, case.target_milliseconds, case.program, ContentionLb::default());
    }
    add("the paper's run of 400 random tasks", None, (RANDOM_400, SMALL), ContentionLb::paper());
    equipoise_benches::run(all);
}

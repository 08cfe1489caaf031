//! `cargo bench -p equipoise-benches --bench contention [-- --small --rounds N --json FILTER]`: the run time of the
//! contention-aware greedy mapper on one thread.
//!
//! The targets derive from De Petris and Perego (1994): 25 seconds for 400 tasks on a machine of their time. The quality
//! of the mappings and the growth of the time are in the figures `greedy-3`, `greedy-7`, `greedy-table2` and `-table3`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use equipoise_benches::Measurement;
use equipoise_model::{Topology, topology};
use equipoise_network::program::{Costs, Model, OVERLAP, ProgramSimulation, generate};
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::registry;

const FLOOR: &str = "floor: F of 400 random tasks, once";

/// A program on the smallest square mesh.
struct Case {
    name: &'static str,
    /// The spec of the program, and a smaller one for small mode.
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

/// The model of a program with a simulation, and its machine: the smallest square mesh with a PE for each task.
fn model_and_machine(program: &str) -> (Model, Arc<dyn Topology>) {
    let program = generate::known(program);
    let side = (1..).find(|side| side * side >= program.tasks()).unwrap_or(1);
    let machine = topology::parse(&format!("mesh:{side}x{side}")).expect("a mesh");
    let model = Model::of(&program, Costs::default(), OVERLAP).expect("it can be simulated");
    (model.with_simulation(ProgramSimulation::new(&program, &machine, Costs::default())), machine)
}

/// One process per PE, with all runs of the strategy, and only with the run of the paper.
const ALL_RUNS: &str = "ContentionLB:share=off";
const ONE_RUN: &str = "ContentionLB:paper=on";

/// The time in milliseconds in which the strategy of a spec maps a program.
fn milliseconds(program: &str, spec: &str) -> f64 {
    let (model, machine) = model_and_machine(program);
    let database = model.database(machine.pes() as u32);
    let strategy = registry::parse(spec, &[]).expect("a spec").strategy;
    let begin = Instant::now();
    black_box(strategy.assign_program(&model, &database, &*machine, 0).expect("memory is not limited"));
    1e3 * begin.elapsed().as_secs_f64()
}

/// The time in milliseconds of one estimate of a placement from scratch. A mapper without incremental estimates needs
/// this time for every candidate.
fn estimate(program: &str) -> f64 {
    let (model, machine) = model_and_machine(program);
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
    let mut add = |name, target, program: (&'static str, &'static str), spec| {
        all.push(Measurement {
            name,
            unit: "ms",
            target,
            floor: Some(FLOOR),
            take: Box::new(move |small| milliseconds(if small { program.1 } else { program.0 }, spec)),
        });
    };
    for case in CASES {
        add(case.name, case.target_milliseconds, case.program, ALL_RUNS);
    }
    add("the paper's run of 400 random tasks", None, (RANDOM_400, SMALL), ONE_RUN);
    equipoise_benches::run(all);
}

//! `cargo bench -p equipoise-benches --bench contention [-- --small --rounds N --json FILTER]`: how fast the contention-aware
//! greedy mapper is, on one thread, and how good.
//!
//! The targets are from De Petris and Perego (1994), who map 400 tasks in 25 seconds on a machine of their time. What does
//! not depend on the machine this runs on is measured once, whatever the rounds.

use std::cell::OnceCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use equipoise_benches::{Measurement, embeddings};
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::mapping::contention_lb::{ContentionLb, map};
use equipoise_strategies::program::{Costs, Model, generate};

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

/// A model, and the spec of the smallest square mesh with a PE for each of its tasks.
fn modelled(program: &str) -> (Model, String) {
    let program = generate::known(program);
    (embeddings::modelled(&program, Costs::default()), embeddings::square(program.tasks()))
}

/// Milliseconds to map a program, by the best of several runs or the paper's one.
fn milliseconds(program: &str, paper: bool) -> f64 {
    let (model, machine) = modelled(program);
    let machine = embeddings::machine(&machine);
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    let config = if paper { ContentionLb::paper() } else { ContentionLb::default() };
    let begin = Instant::now();
    let mapped = map(&model, &*machine, &Speeds::default(), &all, &config, 0);
    black_box(mapped.expect("nothing bounds memory"));
    1e3 * begin.elapsed().as_secs_f64()
}

/// Milliseconds to estimate the end of a placement from scratch, which a mapper that is not incremental does every time.
fn estimate(program: &str) -> f64 {
    let (model, machine) = modelled(program);
    let machine = embeddings::machine(&machine);
    let places = generate::permutation(machine.pes(), 1)[..model.tasks.len()].to_vec();
    let begin = Instant::now();
    black_box(Estimate::of(&model, &*machine, &Speeds::default(), &places));
    1e3 * begin.elapsed().as_secs_f64()
}

/// The slope of the logarithms of some numbers in those of tasks.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|it| (it.0.ln(), it.1.ln())).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().fold((0.0, 0.0), |sum, it| (sum.0 + it.0 / count, sum.1 + it.1 / count));
    let slope = logs.iter().map(|it| (it.0 - mean.0) * (it.1 - mean.1)).sum::<f64>();
    slope / logs.iter().map(|it| (it.0 - mean.0).powi(2)).sum::<f64>()
}

/// How much more something gets when random programs have more tasks.
fn growth(small: bool, of: impl Fn(&str) -> f64) -> f64 {
    let sizes: &[u32] = if small { &[16, 25] } else { &[400, 784, 1156, 1600] };
    let point = |&n: &u32| (f64::from(n), of(&format!("random:n={n},degree=5.5,iterations=1")));
    exponent(&sizes.iter().map(point).collect::<Vec<_>>())
}

/// What the theory says of a program in the best case, links times the channels of all phases, and in the worst.
fn theory(program: &str, is_worst: bool) -> f64 {
    let (model, machine) = modelled(program);
    let uses: usize = model.phases.iter().map(Vec::len).sum();
    let best = embeddings::machine(&machine).links() as f64 * uses as f64;
    if is_worst { best * (model.channels.len() as f64).log2() } else { best }
}

/// Programs and machines.
type Cases = &'static [(&'static str, &'static str)];

/// Programs, machines, and how many percent after the best that is known they may end; the first of each in small mode.
const EMBEDDED: &[(&str, Cases, f64)] = &[
    (
        "rings on meshes and cubes to 784 PEs, above optimal",
        &[
            ("ring:n=16", "mesh:4x4"),
            ("ring:n=512", "hypercube:9"),
            ("ring:n=784", "mesh:28x28"),
            ("ring:n=512", "mesh:8x8x8"),
            ("ring:n=343", "torus:7x7x7"),
        ],
        0.0,
    ),
    (
        "meshes on meshes to 784 PEs, above optimal",
        &[
            ("mesh:sizes=4x4", "mesh:4x4"),
            ("mesh:sizes=16x16", "mesh:16x16"),
            ("mesh:sizes=28x28", "mesh:28x28"),
        ],
        0.0,
    ),
    (
        "meshes on cubes to 256 PEs, above optimal",
        &[
            ("mesh:sizes=4x4", "hypercube:4"),
            ("mesh:sizes=8x8", "hypercube:6"),
            ("mesh:sizes=16x16", "hypercube:8"),
        ],
        0.0,
    ),
    (
        "butterflies on cubes to 512 PEs, above optimal",
        &[("butterfly:n=16", "hypercube:4"), ("butterfly:n=512,iterations=1", "hypercube:9")],
        0.0,
    ),
    (
        "butterflies on meshes to 256 PEs, above identity",
        &[
            ("butterfly:n=16,iterations=1", "mesh:4x4"),
            ("butterfly:n=64,iterations=1", "mesh:8x8"),
            ("butterfly:n=256,iterations=1", "mesh:16x16"),
        ],
        2.0,
    ),
    (
        "trees on meshes to 512 PEs, above a link per channel",
        &[
            ("tree:n=7", "mesh:4x2"),
            ("tree:n=31", "mesh:8x4"),
            ("tree:n=127", "mesh:16x8"),
            ("tree:n=511", "mesh:32x16"),
        ],
        7.0,
    ),
];

/// Patterns on cubes of so many dimensions, with the messages of `equipoise reproduce greedy-table3`.
const PATTERNS: [(&str, u32); 9] = [
    ("ring:n=8,iterations=1,work=4,flits=58", 3),
    ("mesh:sizes=4x2,iterations=1,work=4,flits=54", 3),
    ("butterfly:n=8,iterations=1,work=4,flits=25", 3),
    ("elimination:n=8,work=4,flits=9", 3),
    ("tree:n=7,work=4,flits=28", 3),
    ("mesh:sizes=4x4,iterations=1,work=4,flits=55", 4),
    ("tree:n=15,work=4,flits=18", 4),
    ("broadcast:n=16,iterations=1,work=4,flits=11", 4),
    ("butterfly:n=16,iterations=1,work=4,flits=34", 4),
];

/// A number that is the same in every round.
fn once(
    name: &'static str,
    unit: &'static str,
    target: Option<f64>,
    of: impl Fn(bool) -> f64 + 'static,
) -> Measurement {
    let known = OnceCell::new();
    Measurement {
        name,
        unit,
        target,
        floor: None,
        take: Box::new(move |small| *known.get_or_init(|| of(small))),
    }
}

fn main() {
    let mut all = vec![Measurement {
        name: FLOOR,
        unit: "ms",
        target: None,
        floor: None,
        take: Box::new(|small| estimate(if small { SMALL } else { RANDOM_400 })),
    }];
    for case in CASES {
        all.push(Measurement {
            name: case.name,
            unit: "ms",
            target: case.target_milliseconds,
            floor: Some(FLOOR),
            take: Box::new(move |small| {
                milliseconds(if small { case.program.1 } else { case.program.0 }, false)
            }),
        });
    }
    all.push(Measurement {
        name: "one run, random programs of 400 to 1600 tasks: exponent x 100",
        unit: "",
        target: None,
        floor: None,
        take: Box::new(|small| 100.0 * growth(small, |program| milliseconds(program, true))),
    });
    all.push(once("the same by theory in the best case, P l a", "", None, |small| {
        100.0 * growth(small, |program| theory(program, false))
    }));
    all.push(once("the same by theory in the worst case, P l a log a", "", None, |small| {
        100.0 * growth(small, |program| theory(program, true))
    }));
    let errors = Rc::new(OnceCell::new());
    let of =
        move |small| errors.get_or_init(|| embeddings::errors_percent(if small { 3 } else { 40 })).clone();
    let same = of.clone();
    all.push(once("mean error of F, 40 random programs", "%", Some(1.7), move |small| {
        let errors: Vec<f64> = of(small);
        errors.iter().sum::<f64>() / errors.len() as f64
    }));
    all.push(once("largest error of F", "%", Some(5.8), move |small| {
        same(small).into_iter().fold(0.0, f64::max)
    }));
    for &(name, cases, target) in EMBEDDED {
        all.push(once(name, "%", Some(target), move |small| {
            embeddings::percent_above_best(if small { &cases[..1] } else { cases })
        }));
    }
    all.push(once("patterns of 9 no later than with Lee and Aggarwal's mapper", "", Some(8.0), |small| {
        embeddings::as_good_as_lee_aggarwal(if small { &PATTERNS[..1] } else { &PATTERNS })
    }));
    equipoise_benches::run(all);
}

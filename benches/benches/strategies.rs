//! `cargo bench -p equipoise-benches --bench strategies [-- --small --rounds N --json FILTER]`: the run time of strategies
//! on one thread.
//!
//! The targets are fractions of the times of Charm++ 6.10 on the same task graphs.

use equipoise_benches::{Measurement, floors};
use equipoise_model::{Database, topology};
use equipoise_strategies::registry;
use equipoise_strategies::workloads;
use std::hint::black_box;
use std::time::Instant;

/// A strategy on a task graph and a machine.
struct Case {
    name: &'static str,
    /// The spec of the strategy, as for `--balancer`.
    balancer: &'static str,
    /// The spec of the task graph, and a smaller one for small mode.
    graph: (&'static str, &'static str),
    /// The spec of the machine, and a smaller one for small mode.
    machine: (&'static str, &'static str),
    target_ms: Option<f64>,
    floor: &'static str,
}

const SORT: &str = "floor: sort 4096 loads";
const TABLE_512: &str = "floor: write a table of 512 x 512";
const TABLE_4096: &str = "floor: write a table of 4096 x 4096";

/// 8 objects of a 3D stencil per PE, whose loads differ, on a 3D torus.
const STENCIL: (&str, &str) = ("torus:16x16x16", "torus:4x4x4");
const TORUS: (&str, &str) = ("torus:8x8x8", "torus:2x2x2");

const CASES: &[Case] = &[
    Case {
        name: "GreedyLB, 4096 objects, 512 PEs",
        balancer: "GreedyLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(1.3),
        floor: SORT,
    },
    Case {
        name: "RefineLB, 4096 objects, 512 PEs",
        balancer: "RefineLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(6.0),
        floor: SORT,
    },
    Case {
        name: "GreedyRefineLB, 4096 objects, 512 PEs",
        balancer: "GreedyRefineLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: None,
        floor: SORT,
    },
    Case {
        name: "GreedyCommLB, 4096 objects, 512 PEs",
        balancer: "GreedyCommLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(10.0),
        floor: SORT,
    },
    Case {
        name: "RefineCommLB, 4096 objects, 512 PEs",
        balancer: "RefineCommLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(10.0),
        floor: SORT,
    },
    Case {
        name: "RefineSwapLB, 4096 objects, 512 PEs",
        balancer: "RefineSwapLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(328.0),
        floor: SORT,
    },
    Case {
        name: "CommAwareRefineLB, 4096 objects, 512 PEs",
        balancer: "CommAwareRefineLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(191.0),
        floor: SORT,
    },
    Case {
        name: "RecBipartLB, 4096 objects, 512 PEs",
        balancer: "RecBipartLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(220.0),
        floor: SORT,
    },
    Case {
        name: "TopoLB, 4096 objects, 512 PEs, groups kept",
        balancer: "TopoLB:groups=keep",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(25.0),
        floor: TABLE_512,
    },
    Case {
        name: "TopoLB, 4096 objects, 512 PEs, groups by METIS",
        balancer: "TopoLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: None,
        floor: TABLE_512,
    },
    Case {
        name: "TopoLB, 1024 objects, 1024 PEs",
        balancer: "TopoLB:groups=keep",
        graph: ("torus:32x32", "torus:4x4"),
        machine: ("torus:32x32", "torus:4x4"),
        target_ms: None,
        floor: TABLE_512,
    },
    Case {
        name: "TopoLB, 4096 objects, 4096 PEs",
        balancer: "TopoLB:groups=keep",
        graph: STENCIL,
        machine: ("torus:16x16x16", "torus:4x4x4"),
        target_ms: Some(400.0),
        floor: TABLE_4096,
    },
    Case {
        name: "TopoCentLB, 4096 objects, 4096 PEs",
        balancer: "TopoCentLB:groups=keep",
        graph: STENCIL,
        machine: ("torus:16x16x16", "torus:4x4x4"),
        target_ms: Some(150.0),
        floor: TABLE_4096,
    },
    Case {
        name: "RefineTopoLB, 4096 objects, 512 PEs",
        balancer: "RefineTopoLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(50.0),
        floor: TABLE_512,
    },
    Case {
        name: "RefineTopoLB after RandomLB, 4096 objects, 512 PEs",
        balancer: "RandomLB+RefineTopoLB",
        graph: STENCIL,
        machine: TORUS,
        target_ms: Some(50.0),
        floor: TABLE_512,
    },
    Case {
        name: "RefineTopoLB after RandomLB, 4096 objects, 4096 PEs",
        balancer: "RandomLB+RefineTopoLB",
        graph: STENCIL,
        machine: ("torus:16x16x16", "torus:4x4x4"),
        target_ms: Some(1000.0),
        floor: TABLE_4096,
    },
    Case {
        name: "TreeMatch, 4096 objects, 512 PEs, groups kept",
        balancer: "TreeMatch:groups=keep",
        graph: STENCIL,
        machine: ("tree:32:2:8", "tree:2:2:2"),
        target_ms: None,
        floor: SORT,
    },
    Case {
        name: "TreeMatchConst, 4096 objects, 512 PEs, groups kept",
        balancer: "TreeMatchConst:groups=keep",
        graph: STENCIL,
        machine: ("tree:32:2:8", "tree:2:2:2"),
        target_ms: None,
        floor: SORT,
    },
    Case {
        name: "TMLB_MIN_WEIGHT, LeanMD's 960 objects, 64 PEs",
        balancer: "TMLB_MIN_WEIGHT",
        graph: ("leanmd:4x4x4", "leanmd:3x3x3"),
        machine: ("tree:8:2:4", "tree:2:4"),
        target_ms: Some(60.0),
        floor: SORT,
    },
    Case {
        name: "TMLB_MIN_WEIGHT, 960 objects on a ring, 64 PEs",
        balancer: "TMLB_MIN_WEIGHT",
        graph: ("kneighbor:960,4", "kneighbor:60,4"),
        machine: ("tree:8:2:4", "tree:2:4"),
        target_ms: Some(60.0),
        floor: SORT,
    },
    Case {
        name: "TMLB_TREEBASED, 256 objects, 64 PEs",
        balancer: "TMLB_TREEBASED",
        graph: ("kneighbor:256,7", "kneighbor:16,7"),
        machine: ("tree:8:2:4", "tree:2:4"),
        target_ms: Some(60.0),
        floor: SORT,
    },
];

/// The growth exponent of the time of TopoLB: the slope of a least-squares fit of log(time) over log(size). Each task
/// graph is mapped to as many PEs as it has tasks; small mode takes the first two graphs.
const GROWTHS: &[(&str, &[&str])] = &[
    (
        "TopoLB, exponent in PEs at 4 neighbors, 256 to 4096",
        &["torus:16x16", "torus:24x24", "torus:32x32", "torus:48x48", "torus:64x64"],
    ),
    (
        "TopoLB, exponent in edges at 1024 PEs, 4 to 64 neighbors",
        &[
            "kneighbor:1024,4",
            "kneighbor:1024,8",
            "kneighbor:1024,16",
            "kneighbor:1024,32",
            "kneighbor:1024,64",
        ],
    ),
];

/// The task graph of a spec, placed in blocks on `pes` PEs, with a different load for every object.
fn database(spec: &str, pes: usize) -> Database {
    let mut database = workloads::load(spec).expect("the spec of a graph").remap(pes as u32);
    for (object, index) in database.objects.iter_mut().zip(0u32..) {
        // Deterministic loads between 1 and 3 ms.
        object.load_seconds = 1e-3 + 2e-9 * f64::from(index.wrapping_mul(2_654_435_761) >> 12);
    }
    database
}

fn milliseconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64() * 1e3
}

/// The run time of a strategy in milliseconds.
fn strategy_milliseconds(balancer: &str, graph: &str, machine: &str) -> f64 {
    let machine = topology::parse(machine).expect("the spec of a machine");
    let database = database(graph, machine.pes());
    let choice = registry::parse(balancer, &[]).expect("the spec of a strategy");
    milliseconds(|| {
        let answer = choice.strategy.assign(&database, &*machine, 1);
        black_box(answer.expect("the strategy supports this case"));
    })
}

fn growth(graphs: &[&str]) -> f64 {
    let measure = |spec: &&str| {
        let database = workloads::load(spec).expect("the spec of a graph");
        let (objects, edges) = (database.objects.len() as f64, database.edges.len() as f64);
        let side = objects.sqrt() as usize;
        (objects, edges, strategy_milliseconds("TopoLB:groups=keep", spec, &format!("torus:{side}x{side}")))
    };
    let all: Vec<(f64, f64, f64)> = graphs.iter().map(measure).collect();
    let grows_in_edges = all.iter().all(|(objects, ..)| *objects == all[0].0);
    let logs = |(objects, edges, ms): &(f64, f64, f64)| {
        ((if grows_in_edges { edges } else { objects }).ln(), ms.ln())
    };
    let logs: Vec<(f64, f64)> = all.iter().map(logs).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| logs.iter().map(of).sum::<f64>() / logs.len() as f64;
    let (x, y) = (mean(|log| log.0), mean(|log| log.1));
    let covariance: f64 = logs.iter().map(|log| (log.0 - x) * (log.1 - y)).sum();
    covariance / logs.iter().map(|log| (log.0 - x).powi(2)).sum::<f64>()
}

fn measurements() -> Vec<Measurement> {
    let floor = |name, take: fn(bool) -> f64| Measurement {
        name,
        unit: "ms",
        target: None,
        floor: None,
        take: Box::new(take),
    };
    let mut all = vec![
        floor(SORT, |_| floors::sort(4096)),
        floor(TABLE_512, |_| floors::table(512)),
        floor(TABLE_4096, |small| floors::table(if small { 64 } else { 4096 })),
    ];
    for case in CASES {
        let take = move |small: bool| {
            let pick = |(full, little): (&'static str, &'static str)| if small { little } else { full };
            strategy_milliseconds(case.balancer, pick(case.graph), pick(case.machine))
        };
        all.push(Measurement {
            name: case.name,
            unit: "ms",
            target: case.target_ms,
            floor: Some(case.floor),
            take: Box::new(take),
        });
    }
    for &(name, graphs) in GROWTHS {
        all.push(Measurement {
            name,
            unit: "",
            target: None,
            floor: None,
            take: Box::new(move |small| growth(if small { &graphs[..2] } else { graphs })),
        });
    }
    all
}

fn main() {
    // The values for comparison are for one thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build_global();
    pool.expect("no thread has used the pool before");
    equipoise_benches::run(measurements());
}

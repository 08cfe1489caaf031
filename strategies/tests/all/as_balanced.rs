//! `PoiseLB` looks at messages first, and is still about as balanced as strategies that look at loads only.

use equipoise_model::database::Database;
use equipoise_model::random::{below, generator};
use equipoise_model::{graph, topology};
use equipoise_strategies::cost::LoadBound;
use equipoise_strategies::registry;
use rand_core::RngCore;

const MACHINES: [&str; 5] = ["torus:4x4x4", "tree:4:4", "fattree:4:4:4", "mesh:4x4", "flat:16"];
const FOR_LOAD: [&str; 5] = ["GreedyLB", "GreedyRefineLB", "RefineSwapLB", "RefineLB", "MetisLB"];

/// Objects with loads of one of five kinds, on PEs that may have different speeds or fixed load.
fn tasks(random: &mut impl RngCore, pes: usize) -> Database {
    let objects = pes as u64 * [3, 4, 6, 8, 12, 40][below(random, 6) as usize] / 2;
    let spec = match below(random, 3) {
        0 => format!("random:n={objects},degree=6,seed={}", below(random, 100)),
        1 => format!("kneighbor:{objects},3"),
        _ => format!("mesh:{}x{}", objects / 4, 4),
    };
    let mut tasks = graph::load(&spec).expect("a graph").remap(pes as u32);
    let (loads, machine) = (below(random, 5), below(random, 3));
    for object in &mut tasks.objects {
        object.load_seconds = match loads {
            0 => [1.0, 1.0, 1.0, 4.0][below(random, 4) as usize],
            1 => [8.0, 1.0][usize::from(below(random, 10) > 0)],
            2 => 0.5 + below(random, 1 << 20) as f64 / (1 << 20) as f64,
            3 => (1 + below(random, 3)) as f64,
            _ => 1.0,
        };
    }
    for pe in &mut tasks.pes {
        match machine {
            1 => pe.background_seconds = below(random, 1 << 20) as f64 / (1 << 18) as f64,
            2 => pe.speed = (1 + below(random, 2)) as f64,
            _ => {}
        }
    }
    tasks
}

#[test]
fn poise_is_as_balanced_as_strategies_for_load() {
    let mut sum = 0.0;
    for seed in 0..100 {
        let mut random = generator(seed, 0);
        let machine = topology::parse(MACHINES[below(&mut random, 5) as usize]).expect("a machine");
        let tasks = tasks(&mut random, machine.pes());
        let slowest = |spec: &str| {
            let strategy = registry::parse(spec, &[]).expect(spec).strategy;
            let pe_of = strategy.assign(&tasks, &*machine, seed).expect(spec).pe_of;
            tasks.pe_loads(&pe_of).into_iter().fold(0.0, f64::max)
        };
        let best = FOR_LOAD.map(slowest).into_iter().fold(f64::INFINITY, f64::min);
        let LoadBound { average_seconds, bound_seconds, .. } = LoadBound::of(&tasks);
        // What `PoiseLB` promises: the imbalance that it allows for shorter messages.
        let promised = bound_seconds.max(1.03 * average_seconds);
        let ratio = slowest("PoiseLB") / best.max(promised);
        assert!(ratio <= 1.06, "seed {seed} on {}: {ratio}", machine.spec());
        sum += ratio;
    }
    assert!(sum <= 100.5, "{} in the mean", sum / 100.0);
}

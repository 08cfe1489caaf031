//! Placements under constraints have few hop-bytes.

use equipoise_model::constraints::{Constraints, Group, Level, PerPe, Place};
use equipoise_model::database::Database;
use equipoise_model::random::{below, generator, shuffle};
use equipoise_model::{graph, topology};
use equipoise_strategies::constrained::keep;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::registry;

/// Tasks of a mesh on a torus whose bytes just fit, which must be apart in groups of eight, or of which every eighth must be in one half
/// of the machine: hop-bytes stay near those without constraints.
#[test]
fn placements_under_constraints_have_short_ways() {
    let machine = topology::parse("torus:4x4x4").expect("a torus");
    let tasks = graph::load("mesh:8x8x8,bytes=1000").expect("a mesh").remap(64);
    let mut random = generator(1, 0);
    let sizes: Vec<u64> = (0..512).map(|_| 100 + below(&mut random, 1900)).collect();
    let mut order: Vec<u64> = (0..512).collect();
    shuffle(&mut random, &mut order);
    let apart = |ids: &[u64]| Group { together: false, level: Level::Pe, objects: ids.to_vec() };
    let place = |constraints: &Constraints| {
        let database = Database { constraints: constraints.clone(), ..tasks.clone() };
        let choice = keep(&registry::parse("PoiseLB", &[]).expect("a strategy"));
        let answer = choice.strategy.assign(&database, &*machine, 1).expect("a placement");
        let metrics = Metrics::of(&tasks, &*machine, &answer.pe_of);
        assert!(metrics.imbalance < 0.001, "{constraints:?}: {}", metrics.imbalance);
        metrics.communication.expect("messages").hop_bytes as f64
    };
    let free = place(&Constraints::default());
    let memory = sizes.iter().sum::<u64>() / 64;
    let fits = Constraints {
        memory: Some(PerPe::All(memory + memory / 8)),
        object_bytes: (0..).zip(sizes).collect(),
        ..Constraints::default()
    };
    let groups = Constraints { groups: order.chunks(8).map(apart).collect(), ..Constraints::default() };
    let halves = ["0-31", "32-63"];
    let places: String =
        order[..64].iter().map(|id| format!("{id} {}\n", halves[(id % 2) as usize])).collect();
    let places = Place::parse(&places).expect("places");
    let halves = Constraints { places, ..Constraints::default() };
    for (constraints, most) in [(fits, 1.3), (groups, 1.3), (halves, 1.4)] {
        let kept = place(&constraints);
        assert!(kept <= most * free, "{kept} hop-bytes, {free} without constraints");
    }
}

//! Bisections have the requested sizes, refinement never worsens them, and grids are cut at their narrowest place.

use equipoise_model::graph;
use equipoise_model::random::generator;
use proptest::prelude::*;

use super::csr::{Csr, Half};
use super::{Effort, Halves, bisect, bisect_within, two_way};

/// A graph with these loads and edges.
fn csr(loads: &[i64], edges: &[(usize, usize, u32)]) -> Csr {
    let pairs =
        edges.iter().map(|&(a, b, w)| ((a % loads.len()) as u32, (b % loads.len()) as u32, u64::from(w)));
    let graph = graph::Graph::new(loads.len(), pairs);
    let mut csr = Csr::with_capacity(loads.len());
    for (v, &load) in loads.iter().enumerate() {
        csr.push(load, graph.neighbors(v).map(|(to, weight)| Half { to: to as u32, weight: weight as u32 }));
    }
    csr
}

fn edges(count: usize) -> impl Strategy<Value = Vec<(usize, usize, u32)>> {
    prop::collection::vec((any::<usize>(), any::<usize>(), 1..9u32), 0..count)
}

proptest! {
    #[test]
    fn a_bisection_has_the_requested_sizes(
        edges in edges(200),
        n in 1..150usize,
        part in 0.0..1.0f64,
        seed in any::<u64>(),
    ) {
        let graph = csr(&vec![1; n], &edges);
        let first = (n as f64 * part) as i64;
        let sides = bisect(&Halves::exact(&graph, first), &Effort::THOROUGH, &mut generator(seed, 0));
        prop_assert_eq!(sides.iter().filter(|&&side| side == 0).count() as i64, first);
    }

    #[test]
    fn refinement_never_worsens_a_bisection(
        edges in edges(100),
        vertices in prop::collection::vec((1..6i64, -20..20i64, 0..2u8), 1..40),
        capacity in [0..80i64, 0..80i64],
    ) {
        let loads: Vec<i64> = vertices.iter().map(|vertex| vertex.0).collect();
        let bias: Vec<i64> = vertices.iter().map(|vertex| vertex.1).collect();
        let mut sides: Vec<u8> = vertices.iter().map(|vertex| vertex.2).collect();
        let graph = csr(&loads, &edges);
        let halves = Halves { graph: &graph, edge_cost: 3, bias: &bias, capacity, target: capacity[0] };
        let before = halves.grade(&sides);
        two_way::refine(&halves, &mut sides);
        prop_assert!(halves.grade(&sides) <= before);
    }
}

#[test]
fn a_grid_is_cut_at_its_narrowest_place() {
    let mesh = graph::Graph::of(&graph::load("mesh:16x8").expect("a mesh"));
    let edges: Vec<(usize, usize, u32)> = mesh.pairs().map(|(a, b, _)| (a as usize, b as usize, 1)).collect();
    let graph = csr(&[1; 128], &edges);
    let halves = Halves::exact(&graph, 64);
    let sides = bisect(&halves, &Effort::THOROUGH, &mut generator(1, 0));
    assert_eq!(halves.grade(&sides), (0, 8));
    let sides = bisect_within(&mesh, &[1; 128], [100, 28], 1);
    assert_eq!(sides.iter().filter(|&&side| side == 0).count(), 100);
}

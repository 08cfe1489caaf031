//! The table gives the mapping of the printed algorithm, and a table that is too large is refused.

use equipoise_model::graph::load;
use equipoise_model::topology;
use proptest::prelude::*;

use super::*;

/// Algorithm 1 as printed (with the mean over free PEs), without a table.
fn direct(graph: &Graph, anchors: &[u32], pes: &[u32], topology: &dyn Topology, order: Order) -> Vec<u32> {
    let tasks = graph.vertices() - anchors.len();
    let distance = |a: u32, b: u32| topology.distance(a as usize, b as usize) as i128;
    let mut place_of: Vec<Option<u32>> = vec![None; tasks];
    place_of.extend(anchors.iter().map(|&pe| Some(pe)));
    let mut free = pes.to_vec();
    for _ in 0..tasks {
        // The PEs over which the mean is taken; costs are multiplied by their number.
        let mean = if order == Order::Third { free.clone() } else { pes.to_vec() };
        let cost = |t: usize, p: u32| -> i128 {
            let part = |(j, bytes): (usize, u64)| {
                bytes as i128
                    * match place_of[j] {
                        Some(q) => mean.len() as i128 * distance(p, q),
                        None if order == Order::First => 0,
                        None => mean.iter().map(|&q| distance(p, q)).sum::<i128>(),
                    }
            };
            graph.neighbors(t).map(part).sum()
        };
        let mut best: Option<(i128, usize, u32)> = None;
        for t in (0..tasks).filter(|&t| place_of[t].is_none()) {
            let costs: Vec<(i128, u32)> = free.iter().map(|&p| (cost(t, p), p)).collect();
            let (least, p) = *costs.iter().min().expect("a PE is free");
            let gain = costs.iter().map(|cost| cost.0).sum::<i128>() - free.len() as i128 * least;
            if best.is_none_or(|best| gain > best.0) {
                best = Some((gain, t, p));
            }
        }
        let (_, t, p) = best.expect("a task is left");
        place_of[t] = Some(p);
        free.retain(|&q| q != p);
    }
    place_of[..tasks].iter().map(|place| place.expect("all are placed")).collect()
}

proptest! {
    #[test]
    fn the_table_gives_the_mapping_of_the_printed_algorithm(
        machine in prop::sample::select(vec![
            "torus:4x3", "mesh:5x3", "mesh:70", "tree:2:3:2/9:4:1", "flat:7", "torus:5x5m", "flat:1",
        ]),
        seed in any::<u64>(),
        edges in prop::collection::vec((0..14u32, 0..14u32, 0..4u64), 0..40),
        unit in prop::sample::select(vec![1u64, 1000, 1 << 33]),
        order in prop::sample::select(vec![Order::First, Order::Second, Order::Third]),
    ) {
        let machine = topology::parse(machine).expect("a machine");
        // Some PEs are not available; some vertices are anchors, on any PE.
        let pes: Vec<u32> =
            (0..machine.pes() as u32).filter(|pe| *pe == 0 || !(seed >> (pe % 64)).is_multiple_of(5)).collect();
        let anchors: Vec<u32> = (0..seed % 4).map(|i| ((seed >> 8) % 97 * i) as u32 % machine.pes() as u32).collect();
        let tasks = pes.len().min(14 - anchors.len());
        let vertices = (tasks + anchors.len()) as u32;
        let edges = edges.into_iter().map(|(a, b, w)| (a % vertices, b % vertices, w * unit));
        let graph = Graph::new(vertices as usize, edges);
        let with_table = place(&graph, &anchors, &pes, &*machine, order).expect("a small table");
        prop_assert_eq!(with_table, direct(&graph, &anchors, &pes, &*machine, order));
    }
}

#[test]
fn volumes_that_would_overflow_are_scaled() {
    let machine = topology::parse("tree:4:4/4000000000:1").expect("a machine");
    let graph = Graph::new(3, [(0, 1, u64::MAX / 2 - 1), (1, 2, u64::MAX / 2)]);
    let pes: Vec<u32> = (0..16).collect();
    assert_eq!(place(&graph, &[15], &pes, &*machine, Order::Second), Ok(vec![12, 15]));
}

#[test]
fn a_table_that_is_too_large_is_refused() {
    let flat = topology::parse("flat:100").expect("a machine");
    let (pes, graph): (Vec<u32>, _) = ((0..100).collect(), Graph::of(&load("mesh:10x10").expect("a mesh")));
    let mut table = Table::<i64>::new(
        (&graph, 100),
        &pes,
        &*flat,
        Volumes::new(&graph, 100),
        (vec![99; 100], 100),
        2 * 100 * 8,
    );
    table.take(55, 0);
    let error = table.place(55, 0).expect_err("four neighbors need four rows");
    assert!(error.to_string().contains("more than 2 rows of 100 PEs"), "{error}");
}

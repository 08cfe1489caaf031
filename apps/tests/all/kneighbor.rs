//! In every configuration kneighbor loses no message and delivers none twice. Its task graph is that of the spec
//! `kneighbor:N,K`.

use equipoise::Config;
use equipoise::model::database::Dump;
use equipoise::model::graph::Graph;
use equipoise::strategies::workloads;
use equipoise_apps::kneighbor::{Exchange, Options, exchange};
use proptest::prelude::*;

use crate::common::every_configuration;

/// The expected result: per iteration every element sends one message to every neighbor, and receives a reply.
fn expected(options: &Options) -> Exchange {
    let sent = options.iterations as u64 * options.elements as u64 * u64::from(options.neighbors);
    Exchange {
        iterations: options.iterations,
        messages: 2 * sent,
        bytes: 2 * sent * u64::from(options.bytes),
    }
}

#[test]
pub fn every_message_arrives_once_in_every_configuration() {
    let options =
        Options { elements: 19, neighbors: 5, bytes: 24, iterations: 17, lb_every: 4, ..Options::default() };
    every_configuration(19, |config, how| {
        let report = exchange(config, &options);
        assert_eq!(report.result, expected(&options), "{how}");
        assert_eq!(report.lb_steps.len(), 4, "{how}");
    });
}

#[test]
fn elements_without_neighbors_continue() {
    for (elements, neighbors) in [(1, 0), (5, 0), (1, 3), (2, 5)] {
        let options =
            Options { elements, neighbors, bytes: 64, iterations: 12, lb_every: 3, ..Options::default() };
        for config in [Config::threads(2), Config::simulated(3, 1)] {
            let config = Config { balancer: vec!["RotateLB".into()], ..config };
            assert_eq!(exchange(config, &options).result, expected(&options));
        }
    }
}

#[test]
fn the_balancer_receives_the_load_of_the_last_element() {
    let options = Options {
        work: 1000,
        charge: Some(1e-6),
        iterations: 11,
        lb_every: 5,
        elements: 32,
        ..Options::default()
    };
    for seed in 0..10 {
        let config = Config { balancer: vec!["GreedyLB".into()], ..Config::simulated(4, seed) };
        let steps = exchange(config, &options).lb_steps;
        let (first, second) = (&steps[0].before, &steps[1].before);
        let operations: u64 = (0..32).map(|i| 1000 * i * i / (31 * 31)).sum();
        let seconds = 5.0 * operations as f64 * 1e-6;
        assert!((4.0 * first.average_load_seconds / seconds - 1.0).abs() < 1e-12, "seed {seed}: {first:?}");
        assert!((first.heaviest_object_seconds - 5e-3).abs() < 1e-12, "seed {seed}: {first:?}");
        assert!(first.imbalance > 1.0 && second.imbalance < 0.02, "seed {seed}: {first:?}, then {second:?}");
    }
}

#[test]
fn the_recorded_task_graph_is_that_of_the_spec() {
    for (elements, neighbors) in [(16, 1), (16, 2), (17, 5), (24, 7), (9, 8)] {
        let file = tempfile::Builder::new().suffix(".json").tempfile().expect("a temporary file can be made");
        let config = Config { lb_dump: Some(file.path().into()), ..Config::simulated(3, 0) };
        let options =
            Options { elements, neighbors, bytes: 10, iterations: 3, lb_every: 2, ..Options::default() };
        exchange(config, &options);
        let dump = Dump::read(file.path()).expect("the database can be read back");
        let recorded = Graph::of(&dump.steps[0]);
        let spec = format!("kneighbor:{elements},{neighbors}");
        let generated = Graph::of(&workloads::load(&spec).expect("a graph can be generated"));
        for v in 0..elements as usize {
            let of = |graph: &Graph| graph.neighbors(v).map(|(w, _)| w).collect::<Vec<_>>();
            assert_eq!(of(&recorded), of(&generated), "the neighbors of {v} in {spec}");
        }
    }
}

proptest! {
    #[test]
    fn every_message_arrives_once_in_any_order(
        (elements, neighbors, bytes, iterations) in (1i32..20, 0u32..9, 0u32..50, 1u32..10),
        lb_every in 0u32..4,
        (pes, seed) in (1usize..9, any::<u64>()),
    ) {
        let options = Options { elements, neighbors, bytes, iterations, lb_every, ..Options::default() };
        let config = Config { balancer: vec!["RandomLB".into()], ..Config::simulated(pes, seed) };
        prop_assert_eq!(exchange(config, &options).result, expected(&options));
    }
}

//! Whole programs, recorded on the simulated machine and replayed where they were recorded.

use equipoise::strategies::trace::{Trace, replay};
use equipoise::strategies::{network, topology};
use equipoise::{Config, Machine, MachineReport};
use equipoise_apps::leanmd::{self, Work};
use equipoise_apps::stencil::{Extent, Options, Rules};
use equipoise_apps::stencil2d;

/// That a program's trace can be read, and takes in its replay what the run took, to a part of `off`.
fn check(network: &str, balancer: &str, off: f64, run: impl Fn(Config) -> Option<MachineReport>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let on = Config::on_machine("torus:3x3", network);
    let machine = Machine { record: Some(path.clone()), overhead: 1e-6, ..on.machine.clone() };
    let report = run(Config { machine, balancer: vec![balancer.into()], ..on }).expect("a machine");
    let trace = Trace::read(&path).expect("a trace");
    let machine = topology::parse("torus:3x3").expect("a machine");
    let mut network_of_it =
        network::parse(network).expect("a network").on(&machine).expect("it serves a torus");
    let again = replay(&trace, &mut *network_of_it, None);
    let ratio = again.seconds / report.seconds;
    assert!((1.0 - off..1.0 + off).contains(&ratio), "{network}, {balancer}: {ratio}");
}

const NETWORKS: [&str; 3] = ["flow:bandwidth=1e6", "packet:bandwidth=1e7", "ideal:bandwidth=1e6"];

#[test]
fn messages_that_wait_for_an_element_on_its_way_are_in_the_trace_once() {
    for network in NETWORKS {
        for balancer in ["RotateLB", "RandomLB", "TopoLB"] {
            check(network, balancer, 0.02, |config| {
                let rules = Rules { iterations: 40, lb_every: 10, ..Rules::default() };
                let options = Options { blocks: Extent([8, 8]), cells: Extent([20, 20]), rules };
                stencil2d::solve(config, &options).machine
            });
        }
    }
}

#[test]
fn what_is_expedited_is_so_again() {
    let options = leanmd::Options {
        cells: [3; 3],
        particles: [20; 2],
        iterations: 5,
        lb_every: 3,
        forces: Work::Modelled,
        ..leanmd::Options::default()
    };
    for network in NETWORKS {
        for balancer in ["DummyLB", "RotateLB"] {
            check(network, balancer, 0.03, |config| leanmd::simulate(config, &options).machine);
        }
    }
}

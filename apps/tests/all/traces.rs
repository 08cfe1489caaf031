//! Programs recorded on the simulated machine and replayed on the same machine.

use equipoise::model::topology;
use equipoise::network::models;
use equipoise::network::trace::{Trace, simulate};
use equipoise::{Config, Machine, MachineReport, Records};
use equipoise_apps::leanmd::{self, Work};
use equipoise_apps::stencil::{Extent, Options, Rules};
use equipoise_apps::stencil2d;

/// Checks that the trace of a program can be read, and that its replay takes the time of the run, up to the relative
/// error `off`.
fn check(network: &str, balancer: &str, off: f64, run: impl Fn(Config) -> Option<MachineReport>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let on = Config::on_machine("torus:3x3", network);
    let machine = Machine { overhead: 1e-6, ..on.machine.clone() };
    let records = Records::trace(&path);
    let report = run(Config { machine, records, balancer: vec![balancer.into()], ..on }).expect("a machine");
    let trace = Trace::read(&path).expect("a trace");
    let machine = topology::parse("torus:3x3").expect("a machine");
    let mut network_of_it =
        models::parse(network).expect("a network").on(&machine).expect("it serves a torus");
    let again = simulate(&trace, &mut *network_of_it, None);
    let ratio = again.seconds / report.seconds;
    assert!((1.0 - off..1.0 + off).contains(&ratio), "{network}, {balancer}: {ratio}");
}

const NETWORKS: [&str; 3] = ["flow:bandwidth=1e6", "packet:bandwidth=1e7", "ideal:bandwidth=1e6"];

#[test]
fn messages_to_a_migrating_element_are_in_the_trace_once() {
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
fn expedited_messages_are_expedited_in_the_replay() {
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

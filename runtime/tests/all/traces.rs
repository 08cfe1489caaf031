//! Traces of simulated machines: their replay is the same execution as the run.

#![allow(missing_docs)]

use crate::common::workers::{about, machine, workers};
use crate::common::{at_full_size, seeds};
use equipoise::model::topology;
use equipoise::network::models;
use equipoise::network::trace::{Timing, Trace, simulate};
use equipoise::prelude::*;
use equipoise::{Machine, Records, Report};
use std::path::Path;

/// The timing of a trace on a machine and a network.
fn replayed(trace: &Trace, machine: &str, network: &str, placement: Option<&[u32]>) -> Timing {
    let machine = topology::parse(machine).expect("a machine");
    let model = models::parse(network).expect("a network");
    simulate(trace, &mut *model.on(&machine).expect("it serves this machine"), placement)
}

#[test]
fn a_trace_replayed_where_it_was_recorded_takes_as_long() {
    let folder = tempfile::tempdir().expect("a folder");
    for (network, initial, balancer) in [
        ("ideal:latency=1e-6,hop=1e-7,bandwidth=1e9", "blocks", None),
        ("ideal:latency=1e-3,bandwidth=1e5", "roundrobin", None),
        ("ideal:latency=1e-4,bandwidth=1e6", "blocks", Some("RotateLB".to_owned())),
        ("flow:bandwidth=1e6,injection=1e6,latency=1e-5", "random", Some("RotateLB".to_owned())),
        ("packet:bandwidth=1e6,routing=adaptive", "random", None),
        ("wormhole:flit=16,cycle=1e-5", "random", None),
    ] {
        let path = folder.path().join("some.trace");
        let config = Config {
            machine: machine(network),
            records: Records::trace(&path),
            initial: initial.into(),
            balancer: balancer.into_iter().collect(),
            ..Config::on_machine("torus:4x2", network)
        };
        let report = workers(config.clone()).machine.expect("a machine");
        let bytes = std::fs::read(&path).expect("it is there");
        workers(config);
        assert_eq!(bytes, std::fs::read(&path).expect("it is there"), "the same seed, the same trace");
        let trace = Trace::read(&path).expect("a trace");
        assert_eq!((trace.seconds, trace.pes, trace.objects.len()), (report.seconds, 8, 64));
        assert_eq!(trace.arrays, ["Worker"]);

        let replay = replayed(&trace, "torus:4x2", network, None);
        // The same turns in the same order: times are sums of the same numbers, in another order.
        let ratio = replay.seconds / report.seconds;
        assert!((ratio - 1.0).abs() < 1e-6, "{network}: {ratio}");
        let busy: f64 = report.pes.iter().map(|pe| pe.busy_seconds + pe.overhead_seconds).sum();
        about(replay.busy_seconds.iter().sum(), busy);
    }
}

/// In a run, a PE takes its own messages array by array; in a replay, in the order of sending. So a few replays differ
/// slightly from the run.
#[test]
fn replays_of_all_kinds_of_runs_take_as_long_and_nearly_all_to_the_last_digits() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let networks = [
        "ideal:latency=0,hop=0",
        "ideal:latency=1e-5,bandwidth=1e6",
        "flow:bandwidth=1e6,latency=1e-6",
        "packet:size=64,routing=adaptive",
        "wormhole:flit=16,cycle=1e-6",
    ];
    let mut exact = 0;
    let all: Vec<u64> = seeds(60).collect();
    for &seed in &all {
        let sample = |of: usize, nth: usize| (seed as usize * 7919 + nth * 104_729) / 61 % of;
        let network = networks[sample(networks.len(), 1)];
        let machine = Machine {
            delivery: [1e-8, 0.0, 1e-6][sample(3, 2)],
            overhead: [0.0, 1e-7][sample(2, 3)],
            speed: [vec![], vec!["all@1e-4=0.25".into()], vec!["1@2e-5=3".into()]][sample(3, 4)].clone(),
            ..machine(network)
        };
        let config = Config {
            machine,
            records: Records::trace(&path),
            seed,
            initial: ["blocks", "roundrobin", "random"][sample(3, 5)].into(),
            balancer: [vec![], vec!["RotateLB".into()], vec!["GreedyLB".into()]][sample(3, 6)].clone(),
            ..Config::on_machine("torus:4x2", network)
        };
        let report = if seed % 2 == 0 { workers(config).machine } else { links(config, 24).machine };
        let report = report.expect("a machine");
        let trace = Trace::read(&path).expect("a trace");
        let replay = replayed(&trace, "torus:4x2", network, None);
        let off = (replay.seconds / report.seconds - 1.0).abs();
        assert!(off < 0.03, "seed {seed} on {network}: {off}");
        assert_eq!(replay.messages, report.messages, "seed {seed} on {network}");
        exact += usize::from(off < 1e-9);
    }
    assert!(exact * 10 >= all.len() * 9, "{exact} of {}", all.len());
}

/// Works, and works again at quiescence.
#[derive(Serialize, Deserialize)]
struct Twice {
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl Twice {
    #[entry]
    fn first(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        if cx.index() == [0] {
            cx.peers().at_quiescence().second();
        }
    }

    #[entry]
    fn second(&mut self, cx: &Cx<Self>) {
        cx.charge(if cx.index() == [7] { 8.0 } else { 1.0 });
        cx.peers().contribute().over(());
    }

    #[entry(reduce = equipoise::reduce::nothing)]
    fn over(&mut self, cx: &Cx<Self>, _all: ()) {
        self.done.exit(cx, ());
    }
}

#[test]
fn sends_at_quiescence_also_wait_for_it_on_another_placement() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let network = "ideal:latency=1e-6";
    let (machine, records) = (machine(network), Records::trace(&path));
    let config =
        Config { machine, records, initial: "roundrobin".into(), ..Config::on_machine("mesh:4", network) };
    let report = equipoise::run(config, |pe, done| {
        let twice = pe.array([8], |_| Twice { done });
        pe.main(move |pe| twice.all(pe).first());
    });
    let took = report.machine.expect("a machine").seconds;
    assert!((11.0..11.1).contains(&took), "{took}");
    let trace = Trace::read(&path).expect("a trace");
    about(replayed(&trace, "mesh:4", network, None).seconds, took);
    // Four elements share PE 0 for 4 s; the element that works for 8 s has its own PE.
    let elsewhere = replayed(&trace, "mesh:4", network, Some(&[0, 0, 0, 0, 1, 1, 2, 3])).seconds;
    assert!((12.0..12.1).contains(&elsewhere), "{elsewhere}");
}

#[test]
fn a_faster_network_shortens_a_trace_and_one_pe_does_everything_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.json");
    let slow = "ideal:latency=1e-3,bandwidth=1e5";
    let (machine, records) = (machine(slow), Records::trace(&path));
    workers(Config { machine, records, ..Config::on_machine("torus:4x2", slow) });
    let trace = Trace::read(&path).expect("a trace");
    let on = |network: &str, placement| replayed(&trace, "torus:4x2", network, placement);
    assert!(on("ideal", None).seconds < 0.9 * on(slow, None).seconds);
    let alone = on(slow, Some(&[3; 64]));
    assert!(alone.seconds > 64.0 * 40.0 * 1e-3, "{}", alone.seconds);
    let spread: Vec<u32> = (0..64).map(|object| object % 8).collect();
    assert!(on(slow, Some(&spread)).seconds < 0.2 * alone.seconds);
}

/// Forwards numbers, and sometimes joins a load-balancing step.
#[derive(Serialize, Deserialize)]
struct Link {
    rounds: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1], sync)]
impl Link {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        let ([me], [all]) = (cx.index(), cx.shape());
        cx.charge(1e-5 * f64::from(1 + me % 5));
        cx.peer([(me + 1) % all]).take(vec![me; 100]);
    }

    #[entry]
    fn take(&mut self, cx: &Cx<Self>, numbers: Vec<i32>) {
        cx.charge(1e-7 * numbers.len() as f64);
        self.rounds += 1;
        match self.rounds {
            12 => cx.peers().contribute().all_done(self.rounds),
            rounds if rounds % 4 == 0 => cx.at_sync().go(),
            _ => self.go(cx),
        }
    }

    #[entry(reduce = u32::max)]
    fn all_done(&mut self, cx: &Cx<Self>, rounds: u32) {
        self.done.exit(cx, rounds);
    }
}

fn links(config: Config, elements: i32) -> Report<u32> {
    equipoise::run(config, |pe, done| {
        let links = pe.array([elements], |_| Link { rounds: 0, done });
        pe.main(move |pe| links.all(pe).go());
    })
}

#[test]
fn recording_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for balancer in ["GreedyRefineLB", "RefineTopoLB", "RotateLB"] {
        let run = |record| {
            let machine = Machine { overhead: 1e-7, ..machine("flow:latency=1e-6") };
            let (balancer, records) = (vec![balancer.to_owned()], Records { record, ..Records::default() });
            links(Config { machine, balancer, records, ..Config::on_machine("torus:4x2", "flow") }, 24)
        };
        let (plain, recorded) = (run(None), run(Some(folder.path().join("some.trace"))));
        assert_eq!(plain.machine, recorded.machine, "{balancer}");
        assert_eq!(plain.lb_steps, recorded.lb_steps, "{balancer}");
        assert!(plain.lb_steps.iter().all(|step| step.error.is_none()), "{:?}", plain.lb_steps);
    }
}

#[test]
fn replays_include_overheads_of_sends_and_speeds_of_pes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let network = "ideal:latency=1e-5,bandwidth=1e9";
    let speed = vec!["0=0.5".into(), "all@1e-4=0.25".into(), "3@2e-4=2".into()];
    let machine = Machine { overhead: 1e-6, speed, ..machine(network) };
    let records = Records::trace(&path);
    let report = links(Config { machine, records, ..Config::on_machine("torus:4x2", network) }, 8);
    let trace = Trace::read(&path).expect("a trace");
    let ratio =
        replayed(&trace, "torus:4x2", network, None).seconds / report.machine.expect("a machine").seconds;
    assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
}

/// A guard keeps its messages until `open` arrives.
#[derive(Serialize, Deserialize)]
struct Gate {
    is_open: bool,
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl Gate {
    /// Elements 1 and 2 send to element 0.
    #[entry]
    fn start(&mut self, cx: &Cx<Self>) {
        match cx.index() {
            [1] => cx.peer([0]).data(vec![0; 1000]),
            [2] => {
                cx.charge(1.0);
                cx.peer([0]).open();
            }
            _ => {}
        }
    }

    #[entry]
    fn open(&mut self, _cx: &Cx<Self>) {
        self.is_open = true;
    }

    #[entry(when = self.is_open)]
    fn data(&mut self, cx: &Cx<Self>, _data: Vec<u8>) {
        cx.charge(0.25);
        self.done.exit(cx, ());
    }
}

#[test]
fn an_execution_behind_a_guard_depends_on_its_message() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    // The data arrive after 1 ms, and the guard is true after 1 s.
    let network = "ideal:latency=0,hop=0,bandwidth=1e6";
    let (machine, records) = (machine(network), Records::trace(&path));
    let config =
        Config { machine, records, initial: "roundrobin".into(), ..Config::on_machine("mesh:3", network) };
    let report = equipoise::run(config, |pe, done| {
        let gates = pe.array([3], |_| Gate { is_open: false, done });
        pe.main(move |pe| gates.all(pe).start());
    });
    assert!((1.25..1.26).contains(&report.machine.expect("a machine").seconds));
    let trace = Trace::read(&path).expect("a trace");
    assert!((1.25..1.26).contains(&replayed(&trace, "mesh:3", network, None).seconds));
    // Where 1000 bytes take 10 s the data come last.
    let slow = replayed(&trace, "mesh:3", "ideal:latency=0,hop=0,bandwidth=100", None);
    assert!((10.25..12.0).contains(&slow.seconds), "{}", slow.seconds);
}

/// Panics after some steps.
#[derive(Serialize, Deserialize)]
struct Faulty {
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl Faulty {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>, left: u32) {
        cx.charge(1.0);
        assert!(left > 0, "no step is left");
        if left > 1000 {
            self.done.exit(cx, ());
        }
        cx.peer([1 - cx.index()[0]]).step(left - 1);
    }
}

#[test]
fn a_failed_run_writes_its_trace_until_the_failure() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let (machine, records) = (machine("ideal"), Records::trace(&path));
    let config = Config { machine, records, ..Config::on_machine("mesh:2", "ideal") };
    let failed = equipoise::try_run(config, |pe, done: Exit<()>| {
        let faulty = pe.array([2], |_| Faulty { done });
        pe.main(move |pe| faulty.at(pe, [0]).step(5));
    });
    let sentence = failed.expect_err("it panics").to_string();
    assert!(sentence.contains("no step is left") && sentence.contains("entry `step`"), "{sentence}");
    // The execution that panics has no end.
    assert_eq!(executions(&path), 5);
}

/// How many executions of elements are in a trace.
fn executions(path: &Path) -> usize {
    let trace = Trace::read(path).expect("a trace");
    trace.executions.iter().filter(|execution| execution.object >= trace.pes).count()
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[replays_of_all_kinds_of_runs_take_as_long_and_nearly_all_to_the_last_digits]);
}

//! Recordings of runs on threads: they replay on simulated networks like those of simulated machines.

#![allow(missing_docs)]

use equipoise::model::topology;
use equipoise::network::models;
use equipoise::network::trace::{Step, Timing, Trace, simulate};
use equipoise::prelude::*;
use equipoise::{LbWhen, Records, Report};
use std::num::NonZeroU32;
use std::path::Path;

/// Works, and sends to its neighbors on a ring in every round.
#[derive(Serialize, Deserialize)]
struct Cell {
    round: u32,
    rounds: u32,
    missing: u32,
    done: Exit<u32>,
}

const CELLS: i32 = 24;

#[chare(index = [i32; 1], sync)]
impl Cell {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.missing = 2;
        let [at] = cx.index();
        for to in [at + 1, at + CELLS - 1] {
            cx.peer([to % CELLS]).edge(self.round, vec![1.0; 16]);
        }
    }

    #[entry(when = round == self.round && self.missing > 0)]
    fn edge(&mut self, cx: &Cx<Self>, round: u32, row: Vec<f64>) {
        // A few microseconds.
        let sum = (0..2000).fold(row[0], |sum, nth| std::hint::black_box(sum + f64::from(nth)));
        assert!(sum > f64::from(round));
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        self.round += 1;
        if self.round == self.rounds {
            cx.peers().contribute().finished(1);
        } else if self.round % 20 == 0 {
            cx.at_sync().begin();
        } else {
            self.begin(cx);
        }
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finished(&mut self, cx: &Cx<Self>, cells: u32) {
        self.done.exit(cx, cells);
    }
}

fn ring(config: Config, rounds: u32) -> Report<u32> {
    equipoise::run(config, |pe, done| {
        let cells = pe.array([CELLS], |_| Cell { round: 0, rounds, missing: 0, done });
        pe.main(move |pe| cells.all(pe).begin());
    })
}

fn replayed(trace: &Trace, machine: &str, network: &str, placement: Option<&[u32]>) -> Timing {
    let machine = topology::parse(machine).expect("a machine");
    let model = models::parse(network).expect("a network");
    simulate(trace, &mut *model.on(&machine).expect("it serves this machine"), placement)
}

fn recorded(path: &Path, balancer: Option<&str>, pes: usize) -> Trace {
    let balancer = balancer.map(str::to_owned).into_iter().collect();
    let report = ring(Config { records: Records::trace(path), balancer, ..Config::threads(pes) }, 100);
    assert_eq!(report.dump_error, None);
    let trace = Trace::read(path).expect("a trace");
    let elements = trace.executions.iter().filter(|it| it.object >= trace.pes).count();
    assert_eq!(elements as u64, report.executions, "every execution is in the trace once");
    trace
}

/// Checks that every message is executed, and that executions begin in a replay.
fn check(trace: &Trace, pes: u32) {
    assert_eq!((trace.pes, trace.network.as_str(), trace.arrays[0].as_str()), (pes, "threads", "Cell"));
    let sent: usize =
        trace.executions.iter().flat_map(|it| &it.steps).filter(|it| matches!(it, Step::Send(_))).count();
    assert_eq!(sent, trace.messages.len());
    let mut caused = vec![0; trace.messages.len()];
    trace.executions.iter().filter_map(|it| it.cause).for_each(|cause| caused[cause as usize] += 1);
    let unreceived = caused.iter().filter(|&&times| times == 0).count();
    assert!(unreceived * 100 <= caused.len(), "{unreceived} of {} messages cause nothing", caused.len());
    let exit = trace.exit.expect("the run ended with a result");
    assert!(exit as usize + 100 * pes as usize >= trace.executions.len(), "the exit is near the end");
    for pe in 0..pes {
        let begins = trace.executions.iter().filter(|it| it.pe == pe).map(|it| it.begin_seconds);
        assert!(begins.is_sorted(), "executions of a PE are in order");
    }
    let busy: f64 = work(trace);
    let ideal = replayed(trace, &format!("mesh:{pes}"), "ideal:latency=0,hop=0", None);
    let slow = replayed(trace, &format!("mesh:{pes}"), "ideal:latency=1e-3", None);
    let begun = |timing: &Timing| timing.begin_seconds.iter().filter(|it| it.is_finite()).count();
    assert!(
        begun(&ideal) + 100 * pes as usize >= trace.executions.len(),
        "{} of {}",
        begun(&ideal),
        trace.executions.len()
    );
    assert!(ideal.busy_seconds.iter().sum::<f64>() <= busy * 1.0001);
    // Without latencies nothing waits longer than in the run.
    assert!(ideal.seconds <= trace.seconds * 1.05, "{} and {}", ideal.seconds, trace.seconds);
    if pes > 1 {
        assert!(slow.seconds > ideal.seconds + 0.01 && slow.messages > 0, "{}", slow.seconds);
    }
    let alone = replayed(trace, &format!("mesh:{pes}"), "ideal", Some(&vec![0; trace.objects.len()]));
    assert!(alone.busy_seconds[0] > 0.8 * ideal.busy_seconds.iter().sum::<f64>());
}

fn work(trace: &Trace) -> f64 {
    let steps = trace.executions.iter().flat_map(|it| &it.steps);
    steps.map(|step| if let Step::Work(seconds) = step { *seconds } else { 0.0 }).sum()
}

#[test]
fn a_run_on_threads_replays_on_a_simulated_network() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    for pes in [1, 2, 3] {
        let trace = recorded(&path, None, pes);
        check(&trace, pes as u32);
        assert!(trace.details.migrations.is_empty());
        let named = trace.details.calls.iter().filter(|call| call.entry.is_some()).count();
        assert!(named > 0 && trace.details.entries[0].len() > 1, "executions have entries");
    }
}

#[test]
fn migrations_and_load_balancing_steps_are_in_a_recording_of_threads() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let trace = recorded(&path, Some("RotateLB"), 2);
    check(&trace, 2);
    let details = &trace.details;
    assert!(!details.steps.is_empty() && details.steps.iter().all(|step| step.strategy == "RotateLB"));
    assert!(details.steps.iter().all(|step| step.begin_seconds < step.end_seconds), "{:?}", details.steps);
    let moved: u64 = details.steps.iter().map(|step| step.migrations).sum();
    assert_eq!(details.migrations.len() as u64, moved);
    for migration in &details.migrations {
        let element = |it: &&equipoise::network::trace::Execution| it.object == migration.object;
        let next = trace.executions.iter().filter(element).find(|it| it.begin_seconds > migration.seconds);
        assert!(next.is_none_or(|it| it.pe == migration.to), "{migration:?}");
    }
}

#[test]
fn steps_have_a_length_where_some_sync_points_are_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    for config in [Config::threads(2), Config::on_machine("mesh:2", "ideal:latency=1e-6")] {
        let lb_when = LbWhen::Every(NonZeroU32::new(2).expect("2 is not 0"));
        let balancer = vec!["RotateLB".into()];
        let report = ring(Config { records: Records::trace(&path), balancer, lb_when, ..config }, 200);
        let steps = Trace::read(&path).expect("a trace").details.steps;
        assert!(steps.len() > 2 && steps.len() == report.lb_steps.len(), "{steps:?}");
        assert!(steps.iter().all(|step| step.begin_seconds < step.end_seconds), "{steps:?}");
        assert!(steps.windows(2).all(|two| two[0].end_seconds <= two[1].begin_seconds), "{steps:?}");
    }
}

/// Messages with priorities, which a section receives.
#[derive(Serialize, Deserialize)]
struct Ranked {
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Ranked {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        cx.array().section(cx, |[at]| at % 2 == 0).all(cx).ranked(3);
    }

    #[entry(priority = rank)]
    fn ranked(&mut self, cx: &Cx<Self>, rank: i64) {
        let section = cx.array().section(cx, |[at]| at % 2 == 0);
        cx.peer([0]).contribute_in(&section).finished(rank as u32);
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finished(&mut self, cx: &Cx<Self>, sum: u32) {
        self.done.exit(cx, sum);
    }
}

#[test]
fn multicasts_with_priorities_cause_executions() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let config = Config { records: Records::trace(&path), ..Config::threads(2) };
    let report = equipoise::run(config, |pe, done| {
        let all = pe.array([8], |_| Ranked { done });
        pe.main(move |pe| all.at(pe, [1]).begin());
    });
    assert_eq!(report.result, 12);
    let trace = Trace::read(&path).expect("a trace");
    let entry = trace.details.entries[0].iter().position(|name| name == "ranked").expect("an entry");
    let executions = trace.executions.iter().zip(&trace.details.calls);
    let ranked: Vec<_> = executions.filter(|(_, call)| call.entry == Some(entry as u16)).collect();
    assert_eq!(ranked.len(), 4);
    for (execution, _) in ranked {
        let cause = execution.cause.expect("a multicast causes it");
        assert_eq!(trace.messages[cause as usize].pe, execution.pe);
    }
}

#[test]
fn a_full_recording_drops_its_oldest_events_and_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("some.trace");
    let records = Records { record_limit: Some(600_000), ..Records::trace(&path) };
    let config = Config { records, ..Config::threads(2) };
    let report = ring(config, 1000);
    let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
    assert!(warning.contains("the memory of --record-limit (600 kB) was full"), "{warning}");
    let trace = Trace::read(&path).expect("a trace");
    assert!(trace.warnings[0].contains("dropped its oldest"), "{:?}", trace.warnings);
    assert!(trace.details.dropped_events > 0 && trace.details.begins_seconds > 0.0);
    assert!((trace.executions.len() as u64) < report.executions);
    let ideal = replayed(&trace, "mesh:2", "ideal:latency=0,hop=0", None);
    assert!(ideal.seconds <= trace.seconds * 1.05, "{} and {}", ideal.seconds, trace.seconds);
    let small = Records { record_limit: Some(1000), ..Records::trace(&path) };
    let refused = equipoise::try_run(Config { records: small, ..Config::threads(2) }, |_, _: Exit<()>| ());
    let sentence = refused.expect_err("too small").to_string();
    assert!(sentence.contains("2 PEs need at least 512k; give --record-limit 512k"), "{sentence}");
}

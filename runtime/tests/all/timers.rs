//! Messages that wait for a time.

#![allow(missing_docs)]

use crate::common::workers::machine;
use crate::common::*;
use equipoise::prelude::*;
use equipoise::{reduce, try_run};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

const TICKS: u32 = 5;

/// Sends itself and others messages after a while.
#[derive(Serialize, Deserialize)]
struct Clock {
    rng: Rng,
    ticks: u32,
    notes: u64,
    done: Exit<(u32, u64)>,
}

#[chare(index = [i32; 1], sync)]
impl Clock {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let short = Duration::from_micros(self.rng.sample(300) as u64);
        cx.peer(cx.index()).after(short).tick(TICKS);
        if cx.index() == [0] {
            cx.array().only(cx, |[i]| i % 2 == 1).after(2 * short).tick(1);
            cx.peers().after(short).tick(1);
            // Not before all these messages are delivered.
            cx.peers().at_quiescence().quiet();
        }
    }

    #[entry]
    fn tick(&mut self, cx: &Cx<Self>, left: u32) {
        self.ticks += 1;
        self.notes = mixed(self.notes ^ u64::from(left));
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        if left > 1 {
            let to = self.rng.sample(cx.shape()[0] as usize) as i32;
            cx.peer([to]).after(Duration::from_micros(self.rng.sample(100) as u64)).tick(left - 1);
        }
    }

    #[entry]
    fn quiet(&mut self, cx: &Cx<Self>) {
        cx.at_sync().synced();
    }

    #[entry]
    fn synced(&mut self, cx: &Cx<Self>) {
        let notes = self.notes ^ u64::from(cx.here().0);
        cx.peer([0]).contribute().total((self.ticks, notes));
    }

    #[entry(reduce = |a, b| reduce::pair(a, b, reduce::sum, |a: u64, b: u64| mixed(a).wrapping_add(b)))]
    fn total(&mut self, cx: &Cx<Self>, total: (u32, u64)) {
        self.done.exit(cx, total);
    }
}

fn clocks(config: Config) -> (u32, u64) {
    let report = equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let rng = move |[i]: [i32; 1]| Rng::new(seed, i as u64);
        let clocks = pe.array([6], |i| Clock { rng: rng(i), ticks: 0, notes: 0, done });
        pe.main(move |pe| clocks.all(pe).after(Duration::from_micros(50)).begin());
    });
    report.result
}

#[test]
fn quiescence_waits_for_all_messages_that_wait_for_a_time() {
    everywhere(60, 16, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        assert_eq!(clocks(config).0, 6 * TICKS + 3 + 6);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for config in seeds(16).map(simulated) {
        assert_eq!(clocks(config.clone()), clocks(config));
    }
}

/// Receives messages and notes when they were sent.
#[derive(Serialize, Deserialize)]
struct Sleeper {
    order: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 1])]
impl Sleeper {
    #[entry]
    fn wakes(&mut self, cx: &Cx<Self>, number: u32) {
        self.order.push(number);
        if self.order.len() == 4 {
            self.done.exit(cx, std::mem::take(&mut self.order));
        }
    }
}

/// The order in which the last PE receives messages from PE 0 with these delays, and the report.
fn woken(config: Config, milliseconds: [u64; 4]) -> equipoise::Report<Vec<u32>> {
    equipoise::run(config, move |pe, done| {
        let last = Pe(pe.pes() as u32 - 1);
        let sleepers = pe.array_placed([1], move |_| last, move |_| Sleeper { order: Vec::new(), done });
        pe.main(move |pe| {
            for (number, after) in (0..).zip(milliseconds) {
                sleepers.at(pe, [0]).after(Duration::from_millis(after)).wakes(number);
            }
        });
    })
}

#[test]
fn threads_sleep_until_the_time_has_come() {
    for pes in [1, 2] {
        for idle in [equipoise::Idle::Auto, equipoise::Idle::Park, equipoise::Idle::Spin] {
            let begin = Instant::now();
            let report = woken(Config { idle, ..Config::threads(pes) }, [30, 0, 20, 10]);
            assert_eq!(report.result, [1, 3, 2, 0]);
            assert!(begin.elapsed() >= Duration::from_millis(30));
        }
    }
}

#[test]
fn on_a_simulated_machine_virtual_time_passes() {
    for mesh in ["mesh:1", "mesh:2"] {
        let config = Config { machine: machine("ideal"), ..Config::on_machine(mesh, "ideal") };
        let report = woken(config, [3_000_000, 5, 20_000, 100]);
        assert_eq!(report.result, [1, 3, 2, 0]);
        let seconds = report.machine.expect("a machine").seconds;
        assert!((3000.0..3000.1).contains(&seconds), "{seconds}");
    }
}

#[test]
fn where_the_order_is_sampled_messages_of_a_pe_keep_the_order_of_their_times() {
    for (seed, pes_per_process) in (0..20).flat_map(|seed| [None, Some(1)].map(|local| (seed, local))) {
        let config = Config { pes_per_process, ..Config::simulated(1, seed) };
        assert_eq!(woken(config, [3_000_000, 5, 20_000, 100]).result, [1, 3, 2, 0]);
    }
}

/// Counts the messages that it receives before one that waits for a time.
#[derive(Serialize, Deserialize)]
struct Counter {
    count: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Counter {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        cx.peer(cx.index()).after(Duration::from_secs(1)).late();
        self.next(cx, 1000);
    }

    #[entry]
    fn next(&mut self, cx: &Cx<Self>, left: u32) {
        self.count += 1;
        if left > 0 {
            cx.peer(cx.index()).next(left - 1);
        }
    }

    #[entry]
    fn late(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.count);
    }
}

#[test]
fn where_the_order_is_sampled_a_message_waits_for_an_arbitrary_number_of_deliveries() {
    for pes_per_process in [None, Some(1), Some(2)] {
        let count = |seed| {
            let config = Config { pes_per_process, ..Config::simulated(2, seed) };
            let report = equipoise::run(config, |pe, done| {
                let counters = pe.array([1], |_| Counter { count: 0, done });
                pe.main(move |pe| counters.at(pe, [0]).begin());
            });
            report.result
        };
        let counts: Vec<u32> = (0..20).map(count).collect();
        assert_eq!(counts, (0..20).map(count).collect::<Vec<u32>>(), "the same seed gives the same run");
        let different: BTreeSet<&u32> = counts.iter().collect();
        assert!(different.len() > 4, "{pes_per_process:?}: {counts:?}");
    }
}

#[test]
fn a_recorded_order_repeats_the_times() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("order");
    let with = |record: Option<&Path>, replay: Option<&Path>, pes| Config {
        record_order: record.map(Into::into),
        replay_order: replay.map(Into::into),
        balancer: vec!["RotateLB".into()],
        ..Config::threads(pes)
    };
    for pes in 1..5 {
        let recorded = clocks(with(Some(&path), None, pes));
        for _ in 0..2 {
            assert_eq!(clocks(with(None, Some(&path), pes)), recorded, "{pes} PEs");
        }
    }
}

#[test]
fn a_message_cannot_wait_for_two_things() {
    let failed = try_run(Config::threads(1), |pe, done: Exit<Vec<u32>>| {
        let sleepers = pe.array([1], |_| Sleeper { order: Vec::new(), done });
        pe.main(move |pe| sleepers.all(pe).at_quiescence().after(Duration::ZERO).wakes(1));
    });
    let error = failed.map(|report| report.result).expect_err("two things").to_string();
    assert!(error.contains("cannot wait for two things"), "{error}");
}

#[test]
fn a_run_that_is_stopped_says_that_messages_wait() {
    let failed = try_run(Config { time_limit: Some(0.2), ..Config::threads(2) }, |pe, done| {
        let sleepers = pe.array([1], |_| Sleeper { order: Vec::new(), done });
        pe.main(move |pe| sleepers.at(pe, [0]).after(Duration::from_secs(1000)).wakes(1));
    });
    let error = failed.map(|report| report.result).expect_err("a limit").to_string();
    assert!(error.contains("1 message waits for a time (`after`)"), "{error}");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[quiescence_waits_for_all_messages_that_wait_for_a_time, the_same_seed_gives_the_same_run]);
}

//! Several processes: what they share and what not, one element per process, printing, and the report.

use crate::common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// One element in every process.
#[derive(Serialize, Deserialize)]
struct Desk {
    visits: Shared<AtomicU32>,
    done: Exit<Vec<(u32, u32, u32)>>,
}

#[chare(index = Process)]
impl Desk {
    /// Contributes the process, its PE, and the number of visitors that this process has counted.
    #[entry]
    fn close(&mut self, cx: &Cx<Self>) {
        let visits = self.visits.get(cx).load(Relaxed);
        assert_eq!(cx.index(), cx.process());
        cx.peer(Process(0)).contribute().closed(vec![(cx.index().0, cx.here().0, visits)]);
    }

    #[entry(reduce = reduce::concat)]
    fn closed(&mut self, cx: &Cx<Self>, desks: Vec<(u32, u32, u32)>) {
        self.done.exit(cx, desks);
    }
}

/// One element on every PE.
#[derive(Serialize, Deserialize)]
struct Visitor {
    visits: Shared<AtomicU32>,
}

#[chare(index = Pe)]
impl Visitor {
    #[entry]
    fn visit(&mut self, cx: &Cx<Self>) {
        self.visits.get(cx).fetch_add(1, Relaxed);
    }
}

fn desks(config: Config) -> equipoise::Report<Vec<(u32, u32, u32)>> {
    equipoise::run(config, |pe, done| {
        let visits = pe.shared(|| AtomicU32::new(0));
        let desks = pe.array(Process(pe.processes() as u32), |_| Desk { visits, done });
        let visitors = pe.array(Pe(pe.pes() as u32), |_| Visitor { visits });
        pe.main(move |pe| {
            visitors.all(pe).visit();
            desks.all(pe).at_quiescence().close();
        });
    })
}

#[test]
fn every_process_has_its_element_and_its_shared_values() {
    for seed in seeds(40) {
        let (processes, local) = (1 + seed as u32 % 6, 1 + (seed / 6) as u32 % 4);
        let config = Config {
            pes_per_process: Some(local as usize),
            ..Config::simulated((processes * local) as usize, seed)
        };
        let report = desks(config);
        let expected: Vec<_> = (0..processes).map(|process| (process, process * local, local)).collect();
        assert_eq!(report.result, expected);
        assert_eq!((report.process, report.job.hosts.len()), (0, processes as usize));
        let traffic = report.job.traffic;
        assert_eq!(traffic.near.messages > 0, processes > 1, "{traffic:?}");
        assert_eq!((traffic.far.messages, traffic.peak_unsent_bytes > 0), (0, processes > 1));
    }
}

#[test]
fn threads_are_one_process() {
    let report = desks(Config::threads(3));
    assert_eq!(report.result, [(0, 0, 3)]);
    assert_eq!(report.job.hosts.len(), 1);
}

#[test]
fn flags_that_contradict_are_refused() {
    let refused = |config: Config, sentence: &str| {
        let error = equipoise::try_run(config, |pe, done: Exit<()>| pe.main(move |pe| done.exit(pe, ())));
        let error = error.expect_err("the flags contradict").to_string();
        assert!(error.contains(sentence), "{error}");
    };
    let per_process = |local, config| Config { pes_per_process: Some(local), ..config };
    refused(per_process(2, Config::threads(4)), "all threads are PEs of one process");
    refused(per_process(3, Config::simulated(4, 0)), "give a divisor");
    refused(per_process(0, Config::simulated(4, 0)), "give a divisor");
    refused(per_process(2, Config::on_machine("torus:2x2", "ideal")), "--pes-per-process with --network");
}

#[cfg(not(feature = "mpi"))]
#[test]
fn a_transport_that_is_not_built_in_names_the_feature() {
    let config = Config { transport: equipoise::Transport::Mpi, ..Config::default() };
    let error = equipoise::try_run(config, |pe, done: Exit<()>| pe.main(move |pe| done.exit(pe, ())));
    let error = error.expect_err("MPI is not built in");
    assert!(error.to_string().contains("feature `mpi`"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

/// Three elements: the first sends blocks to the second as long as it may, the second sends four copies of each to the third.
#[derive(Serialize, Deserialize)]
struct Relay {
    left: u32,
    received: u64,
    done: Exit<u64>,
}

#[chare(index = [i32; 1])]
impl Relay {
    #[entry]
    fn send(&mut self, cx: &Cx<Self>) {
        if self.left > 0 {
            self.left -= 1;
            cx.peer([1]).pass(vec![1.0; 1 << 15]);
            cx.peer([0]).send();
        }
    }

    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, block: Vec<f64>) {
        (0..4).for_each(|_| cx.peer([2]).receive(block.clone()));
    }

    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, block: Vec<f64>) {
        self.received += block.len() as u64;
        if self.received == (4 * u64::from(self.left)) << 15 {
            self.done.exit(cx, self.received);
        }
    }
}

#[test]
fn messages_that_wait_for_a_slow_process_are_bounded() {
    for seed in 0..if is_full_size() { 2 } else { 1 } {
        // 256 KiB each: 100 MiB to the second process, and 400 MiB from it.
        let blocks = 400;
        let config = Config { pes_per_process: Some(1), ..Config::simulated(3, seed) };
        let report = equipoise::run(config, |pe, done| {
            let relays = pe.array([3], |_| Relay { left: blocks, received: 0, done });
            pe.main(move |pe| relays.at(pe, [0]).send());
        });
        let peak = report.job.traffic.peak_unsent_bytes;
        // The limit, half as much again because nothing leaves for a while on a slow connection, and four times a window. Without a
        // bound, 280 MiB wait.
        assert!(peak < 160 << 20, "seed {seed}: {peak} bytes");
        assert!(report.job.to_string().ends_with(" waited in one process"), "{}", report.job);
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        every_process_has_its_element_and_its_shared_values,
        messages_that_wait_for_a_slow_process_are_bounded,
    ]);
}

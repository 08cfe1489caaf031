//! Messages for elements of expedited arrays are delivered before messages for other arrays.

#![allow(missing_docs)]

use crate::common::workers::machine;
use equipoise::Shared;
use equipoise::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of holes that the elements of a process dug.
type Holes = Shared<AtomicU32>;

#[derive(Serialize, Deserialize)]
struct Digger {
    holes: Holes,
}

#[chare(index = [i32; 1])]
impl Digger {
    #[entry]
    fn dig(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        self.holes.get(cx).fetch_add(1, Relaxed);
    }
}

/// Exits with the number of holes when it receives `stop`.
#[derive(Serialize, Deserialize)]
struct Foreman {
    holes: Holes,
    done: Exit<u32>,
}

#[chare(index = [i32; 1], expedited)]
impl Foreman {
    #[entry]
    fn stop(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.holes.get(cx).load(Relaxed));
    }
}

/// Like [`Foreman`], but not expedited.
#[derive(Serialize, Deserialize)]
struct Visitor {
    holes: Holes,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Visitor {
    #[entry]
    fn stop(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.holes.get(cx).load(Relaxed));
    }
}

const HOLES: u32 = 1000;

/// The number of holes dug on the last PE before `stop` is delivered there. PE 0 first sends all `dig`, then `stop`.
fn dug(config: Config, expedited: bool) -> u32 {
    let report = equipoise::run(config, move |pe, done| {
        let last = Pe(pe.pes() as u32 - 1);
        let holes = pe.shared(|| AtomicU32::new(0));
        let diggers = pe.array_placed([1], move |_| last, move |_| Digger { holes });
        let foremen = pe.array_placed([1], move |_| last, move |_| Foreman { holes, done });
        let visitors = pe.array_placed([1], move |_| last, move |_| Visitor { holes, done });
        pe.main(move |pe| {
            for _ in 0..HOLES {
                diggers.at(pe, [0]).dig();
            }
            if expedited {
                foremen.at(pe, [0]).stop();
            } else {
                visitors.at(pe, [0]).stop();
            }
        });
    });
    report.result
}

#[test]
fn on_a_simulated_machine_expedited_messages_wait_only_for_the_execution_in_progress() {
    let over = |mesh: &str| Config { machine: machine("ideal"), ..Config::on_machine(mesh, "ideal") };
    // All messages arrive at the same time; the first is taken before the last arrives.
    assert!(dug(over("mesh:2"), true) <= 1);
    assert_eq!(dug(over("mesh:2"), false), HOLES);
    assert_eq!(dug(over("mesh:1"), true), 0);
}

#[test]
fn on_threads_expedited_messages_are_first_in_the_queues_of_a_pe() {
    assert_eq!(dug(Config::threads(1), true), 0);
    assert_eq!(dug(Config::threads(1), false), HOLES);
}

/// More messages than elements exchange before other elements should be served: they take many seconds.
const STARVATION: u32 = 200_000_000;

/// Exchanges messages with another element, or itself, forever.
#[derive(Serialize, Deserialize)]
struct Chatterer;

#[chare(index = [i32; 1], expedited)]
impl Chatterer {
    #[entry]
    fn talk(&mut self, cx: &Cx<Self>, to: i32, said: u32) {
        assert!(said < STARVATION, "other elements starve");
        cx.charge(1e-6);
        cx.peer([to]).talk(cx.index()[0], said + 1);
    }
}

/// Like [`Chatterer`], but not expedited.
#[derive(Serialize, Deserialize)]
struct Gossip;

#[chare(index = [i32; 1])]
impl Gossip {
    #[entry]
    fn talk(&mut self, cx: &Cx<Self>, to: i32, said: u32) {
        assert!(said < STARVATION, "other elements starve");
        cx.charge(1e-6);
        cx.peer([to]).talk(cx.index()[0], said + 1);
    }
}

#[test]
fn endless_exchanges_do_not_starve_other_elements() {
    let configs = [
        Config::threads(2),
        Config::simulated(2, 7),
        Config { machine: machine("ideal"), ..Config::on_machine("mesh:2", "ideal") },
    ];
    // The receivers of chatterers and gossips: the element itself, or the element on the other PE.
    for (chatter, gossip) in [([0, 1], [0, 1]), ([1, 0], [0, 1]), ([0, 1], [1, 0]), ([1, 0], [1, 0])] {
        for config in &configs {
            let report = equipoise::run(config.clone(), move |pe, done| {
                let holes = pe.shared(|| AtomicU32::new(0));
                let chatterers = pe.array([2], |_| Chatterer);
                let gossips = pe.array([2], |_| Gossip);
                let diggers = pe.array([2], move |_| Digger { holes });
                let visitors = pe.array([2], move |_| Visitor { holes, done });
                pe.main(move |pe| {
                    for at in 0..2 {
                        chatterers.at(pe, [at as i32]).talk(chatter[at], 0);
                        gossips.at(pe, [at as i32]).talk(gossip[at], 0);
                        diggers.at(pe, [at as i32]).dig();
                    }
                    // From PE 0 to PE 1, where it is queued behind `dig`.
                    visitors.at(pe, [1]).stop();
                });
            });
            assert!(report.result <= 2);
        }
    }
}

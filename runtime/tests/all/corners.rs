//! Regression tests: the smallest program for each former defect of the runtime.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;

/// Two arrays with ids 63 apart exchange messages, so they share a bit of the scheduler's word.
#[derive(Serialize, Deserialize)]
struct Ball {
    done: Exit<u32>,
}

#[chare(index = ())]
impl Ball {
    #[entry]
    fn catch(&mut self, cx: &Cx<Self>, from: Array<Ball>, n: u32) {
        if n == 100 {
            return self.done.exit(cx, n);
        }
        from.at(cx, ()).catch(cx.array(), n + 1);
    }
}

#[test]
fn arrays_63_apart_reach_each_other() {
    everywhere(20, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let balls: Vec<Array<Ball>> = (0..64).map(|_| pe.array((), |_| Ball { done })).collect();
            let (a, b) = (balls[0], balls[63]);
            pe.main(move |pe| a.at(pe, ()).catch(b, 0));
        });
        assert_eq!(report.result, 100);
    });
}

/// Waits for quiescence while PEs process an earlier quiescence, with a long chain of messages in flight.
#[derive(Serialize, Deserialize)]
struct Chain {
    left: u32,
    pes: u32,
    done: Exit<u32>,
}

#[chare(index = Pe)]
impl Chain {
    /// At the first quiescence the last PE starts a chain and waits for quiescence again, possibly before the other
    /// PEs have processed the first quiescence.
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        cx.peer(Pe(self.pes - 1)).wait();
    }

    #[entry]
    fn wait(&mut self, cx: &Cx<Self>) {
        self.left = 200;
        cx.peer(cx.index()).at_quiescence().over();
        cx.peer(Pe(0)).ping(200, cx.index());
    }

    #[entry]
    fn ping(&mut self, cx: &Cx<Self>, left: u32, back: Pe) {
        if left == 0 {
            cx.peer(back).ended();
        } else {
            cx.peer(Pe((cx.index().0 + 1) % self.pes)).ping(left - 1, back);
        }
    }

    #[entry]
    fn ended(&mut self, _cx: &Cx<Self>) {
        self.left = 0;
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.left);
    }
}

#[test]
fn a_wait_during_one_quiescence_is_for_the_next() {
    for round in seeds(300) {
        let pes = [3, 8, 32, 64][round as usize % 4];
        watched(format!("round {round} on {pes}"), move || {
            let report = equipoise::run(Config::threads(pes), |pe, done| {
                let n = pe.pes() as u32;
                let chain = pe.array(Pe(n), |_| Chain { left: 0, pes: n, done });
                pe.main(move |pe| chain.at(pe, Pe(0)).at_quiescence().begin());
            });
            assert_eq!(report.result, 0, "quiescence was found with a message of the chain in flight");
        });
    }
}

/// Keeps a PE busy until a reduction is complete to which it contributed before it migrated: its own by messages to
/// itself, or that of the next element by many messages.
#[derive(Serialize, Deserialize)]
struct Busy {
    floods: bool,
    stop: bool,
    spun: u64,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Busy {
    #[entry]
    fn spin(&mut self, cx: &Cx<Self>) {
        self.spun += 1;
        assert!(self.spun < 20_000_000, "no `stop` has arrived");
        if !self.stop {
            let [at] = cx.index();
            cx.peer(if self.floods { [(at + 1) % cx.shape()[0]] } else { [at] }).spin();
        }
    }

    #[entry]
    fn leave(&mut self, cx: &Cx<Self>, last: bool) {
        cx.peers().contribute().stop(1);
        if !last {
            // To a leaf of the tree of PEs.
            cx.migrate(Pe(cx.pes() as u32 - 1));
            cx.peer([1]).leave(true);
        }
        (0..if self.floods { 20 } else { 1 }).for_each(|_| cx.peer(cx.index()).spin());
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn stop(&mut self, cx: &Cx<Self>, sum: u32) {
        self.stop = true;
        if cx.index() == [0] {
            self.done.exit(cx, sum);
        }
    }
}

#[test]
fn a_reduction_completes_without_an_idle_pe() {
    // On 6 and 22 PEs a contribution passes through PEs that are never idle. In virtual time all PEs are equally fast.
    let simulated = [2, 6, 22].map(|pes| Config::simulated(pes, 1));
    let in_processes =
        [1, 2].map(|local| Config { pes_per_process: Some(local), ..Config::simulated(22, 1) });
    let machine = Config::on_machine("torus:6", "ideal");
    let configs = [Config::threads(2), machine].into_iter().chain(simulated).chain(in_processes);
    for (config, floods) in configs.flat_map(|config| [(config.clone(), false), (config, true)]) {
        watched(format!("{}, floods: {floods}", describe(&config)), move || {
            let report = equipoise::run(config, |pe, done| {
                let pes = pe.pes() as u32;
                // Elements 0 and 1 are on PE 0, and one more on every PE.
                let place = |[at]: [i32; 1]| Pe(at.saturating_sub(2).max(0) as u32);
                let make = move |_| Busy { floods, stop: false, spun: 0, done };
                let all = pe.array_placed([2 + pes as i32], place, make);
                pe.main(move |pe| {
                    all.at(pe, [0]).leave(false);
                    (0..pes as i32).for_each(|on| all.at(pe, [2 + on]).leave(true));
                });
            });
            assert_eq!(report.result as usize, 2 + report.pes);
        });
    }
}

/// Creates a child in answer to a broadcast.
#[derive(Serialize, Deserialize)]
struct Parent {
    parent: bool,
    received: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Parent {
    #[entry]
    fn grow(&mut self, cx: &Cx<Self>) {
        self.received += 1;
        if self.parent {
            let child = [cx.index()[0] + cx.shape()[0] / 2];
            cx.array().insert(cx, child, Parent { parent: false, received: 0, done: self.done });
        }
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all(self.received);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn all(&mut self, cx: &Cx<Self>, received: u32) {
        self.done.exit(cx, received);
    }
}

#[derive(Serialize, Deserialize)]
struct Starter {
    all: Array<Parent>,
    phase: u32,
}

#[chare(index = ())]
impl Starter {
    #[entry]
    fn next(&mut self, cx: &Cx<Self>) {
        self.phase += 1;
        match self.phase {
            1 => self.all.all(cx).grow(),
            _ => return self.all.all(cx).report(),
        }
        cx.peer(()).at_quiescence().next();
    }
}

#[test]
fn a_child_created_in_a_broadcast_does_not_receive_that_broadcast() {
    everywhere(60, 40, |config| {
        let config = Config { initial: "roundrobin".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let all = pe.sparse([17]);
            let starter = pe.array((), |()| Starter { all, phase: 0 });
            pe.main(move |pe| {
                for i in 0..8 {
                    all.insert(pe, [i], Parent { parent: true, received: 0, done });
                }
                starter.at(pe, ()).at_quiescence().next();
            });
        });
        assert_eq!(report.result, 8);
    });
}

/// Ends with a message behind its guard.
#[derive(Serialize, Deserialize)]
struct Heir {
    open: bool,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Heir {
    #[entry(when = self.open)]
    fn letter(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, 1);
    }

    #[entry]
    fn succeed(&mut self, cx: &Cx<Self>) {
        cx.array().insert(cx, cx.index(), Heir { open: true, done: self.done });
        cx.destroy();
    }
}

#[test]
fn a_message_behind_a_guard_waits_for_the_next_element_at_the_index() {
    let report = watched("an heir".into(), || {
        equipoise::run(Config::simulated(1, 0), |pe, done| {
            let all = pe.array([1], |_| Heir { open: false, done });
            pe.main(move |pe| {
                all.at(pe, [0]).letter();
                all.at(pe, [0]).succeed();
            });
        })
    });
    assert_eq!(report.result, 1);
}

#[derive(Serialize, Deserialize)]
struct Echo {
    done: Exit<()>,
}

#[chare(index = Pe)]
impl Echo {
    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

fn reply_to_itself(pe: &PeCx) {
    pe.reply(|pe, ()| reply_to_itself(pe)).send(pe, ());
}

#[test]
fn a_parked_closure_that_replies_to_itself_forever_does_not_block_an_exit() {
    everywhere(20, 8, |config| {
        equipoise::run(with_pes(&config, 2), |pe, done| {
            let echoes = pe.array(Pe(2), |_| Echo { done });
            pe.main(move |pe| {
                reply_to_itself(pe);
                echoes.at(pe, Pe(1)).over();
            });
        });
    });
}

/// Moves between PEs all the time.
#[derive(Serialize, Deserialize)]
struct Shuttle {
    left: u32,
}

#[chare(index = [i32; 1])]
impl Shuttle {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        if self.left > 0 {
            self.left -= 1;
            cx.migrate(Pe(1 - cx.here().0));
            cx.peer(cx.index()).go();
        }
    }
}

#[test]
fn refuses_a_second_element_at_an_index_while_the_first_migrates() {
    everywhere(200, 60, |config| {
        let failed = equipoise::try_run(with_pes(&config, 2), |pe, _: Exit<()>| {
            let shuttles: Array<Shuttle> = pe.sparse([1]);
            pe.main(move |pe| {
                shuttles.insert(pe, [0], Shuttle { left: 40 });
                shuttles.at(pe, [0]).go();
                shuttles.insert(pe, [0], Shuttle { left: 40 });
            });
        });
        // The home PE rejects the second element, or the second element waits forever for the end of the first.
        let error = failed.expect_err("two elements with one index").to_string();
        assert!(error.contains("Shuttle[0]"), "{error}");
        assert!(error.contains("exists already"), "{error}");
    });
}

/// Joins one load-balancing step and is then ended; its successor joins the next step.
#[derive(Serialize, Deserialize)]
struct Worker {
    generation: u32,
    foreman: Array<Foreman>,
}

#[chare(index = [i32; 1], sync)]
impl Worker {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        cx.at_sync().idle();
        self.foreman.at(cx, ()).working();
    }

    #[entry]
    fn idle(&mut self, _cx: &Cx<Self>) {}

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        self.foreman.at(cx, ()).ended(me, self.generation);
        cx.destroy();
    }
}

const CREW: i32 = 6;
const GENERATIONS: u32 = 5;

#[derive(Serialize, Deserialize)]
struct Foreman {
    working: i32,
    ended: i32,
    workers: Array<Worker>,
    done: Exit<()>,
}

#[chare(index = ())]
impl Foreman {
    #[entry]
    fn working(&mut self, cx: &Cx<Self>) {
        self.working += 1;
        if self.working == CREW {
            self.working = 0;
            (0..CREW).for_each(|worker| self.workers.at(cx, [worker]).end());
        }
    }

    #[entry]
    fn ended(&mut self, cx: &Cx<Self>, worker: i32, generation: u32) {
        self.ended += 1;
        if generation + 1 < GENERATIONS {
            let foreman = cx.array();
            self.workers.insert(cx, [worker], Worker { generation: generation + 1, foreman });
            self.workers.at(cx, [worker]).work();
        } else if self.ended == CREW * GENERATIONS as i32 {
            self.done.exit(cx, ());
        }
    }
}

#[test]
fn a_step_that_begins_during_another_has_its_own_statistics() {
    everywhere(200, 30, |config| {
        let config = Config { balancer: vec!["DummyLB".into()], ..with_pes(&config, 3) };
        let report = equipoise::run(config, |pe, done| {
            let workers: Array<Worker> = pe.sparse([CREW]);
            let foreman = pe.array((), |()| Foreman { working: 0, ended: 0, workers, done });
            pe.main(move |pe| {
                for worker in 0..CREW {
                    workers.insert(pe, [worker], Worker { generation: 0, foreman });
                    workers.at(pe, [worker]).work();
                }
            });
        });
        // The runtime asserts that a step has the statistics of all PEs. No load is recorded twice
        // (on threads, deliveries without a charge take a little time, too).
        let load: f64 = report.lb_steps.iter().map(|step| step.before.average_load_seconds * 3.0).sum();
        assert!(load <= f64::from(CREW) * f64::from(GENERATIONS) + 0.5, "{load}");
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        arrays_63_apart_reach_each_other,
        a_wait_during_one_quiescence_is_for_the_next,
        a_child_created_in_a_broadcast_does_not_receive_that_broadcast,
        a_parked_closure_that_replies_to_itself_forever_does_not_block_an_exit,
        refuses_a_second_element_at_an_index_while_the_first_migrates,
        a_step_that_begins_during_another_has_its_own_statistics,
    ]);
}

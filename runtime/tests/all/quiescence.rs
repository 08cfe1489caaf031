//! Quiescence is found when no message is in flight, never before, and once for every wait.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{RunError, try_run};
use std::time::Duration;

/// A chain of messages over all PEs, whose end is sent to the element that started it.
#[derive(Serialize, Deserialize)]
struct Link {
    rng: Rng,
    /// The number of chains that this element started and whose end has not arrived.
    open: u32,
    rounds: u32,
    fired: u32,
    done: Exit<u32>,
}

const ROUNDS: u32 = 4;

#[chare(index = [i32; 1])]
impl Link {
    /// Starts a chain, and waits for quiescence.
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        self.open += 1;
        self.rounds += 1;
        let (next, me) = (self.rng.sample(cx.shape()[0] as usize) as i32, cx.index());
        if self.rng.once_in(2) {
            cx.peer(me).at_quiescence().over(self.rounds);
            cx.peer([next]).pass(60, me);
        } else {
            cx.peer([next]).pass(60, me);
            cx.peer(me).at_quiescence().over(self.rounds);
        }
    }

    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, left: u32, back: [i32; 1]) {
        // Other PEs fall asleep meanwhile.
        if self.rng.once_in(50) {
            std::thread::sleep(Duration::from_micros(300));
        }
        if self.rng.once_in(5) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        match left {
            0 => cx.peer(back).ended(),
            _ => cx.peer([self.rng.sample(cx.shape()[0] as usize) as i32]).pass(left - 1, back),
        }
    }

    #[entry]
    fn ended(&mut self, _cx: &Cx<Self>) {
        self.open -= 1;
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>, round: u32) {
        assert_eq!((self.open, self.rounds), (0, round), "quiescence was found too early, or twice");
        self.fired += 1;
        match self.fired {
            ROUNDS => cx.peer([0]).contribute().all_over(self.fired),
            _ => self.begin(cx),
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn all_over(&mut self, cx: &Cx<Self>, fired: u32) {
        self.done.exit(cx, fired);
    }
}

#[test]
fn quiescence_is_found_when_every_chain_has_ended() {
    everywhere(60, 48, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let links = pe.array([5], |[i]| Link {
                rng: Rng::new(seed, i as u64),
                open: 0,
                rounds: 0,
                fired: 0,
                done,
            });
            pe.main(move |pe| links.all(pe).begin());
        });
        assert_eq!(report.result, 5 * ROUNDS);
    });
}

/// Keeps messages until their key is reached.
#[derive(Serialize, Deserialize)]
struct Door {
    open: u32,
    passed: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 1], sync)]
impl Door {
    #[entry(when = key <= self.open)]
    fn enter(&mut self, _cx: &Cx<Self>, key: u32) {
        self.passed.push(key);
    }

    #[entry]
    fn unlock(&mut self, cx: &Cx<Self>) {
        self.open += 1;
        if self.open == 4 {
            return self.done.exit(cx, self.passed.clone());
        }
        cx.peer(cx.index()).at_quiescence().unlock();
    }

    #[entry]
    fn wait(&mut self, cx: &Cx<Self>) {
        cx.at_sync().unlock();
    }

    #[entry]
    fn offer(&mut self, cx: &Cx<Self>) {
        if cx.index() == [0] {
            cx.peer([1]).contribute().sum(1);
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn sum(&mut self, _cx: &Cx<Self>, _sum: u32) {}
}

#[test]
fn messages_behind_a_guard_are_not_in_flight() {
    everywhere(20, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let doors = pe.array([3], |_| Door { open: 0, passed: Vec::new(), done });
            pe.main(move |pe| {
                for key in [3, 1, 2] {
                    doors.at(pe, [2]).enter(key);
                }
                doors.at(pe, [2]).at_quiescence().unlock();
            });
        });
        assert_eq!(report.result, [1, 2, 3]);
    });
}

/// Comes to sync points, after which nothing is in flight.
#[derive(Serialize, Deserialize)]
struct Worker {
    points: u32,
    done: Exit<u32>,
}

const POINTS: u32 = 7;

#[chare(index = [i32; 1], sync)]
impl Worker {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        if self.points < POINTS {
            self.points += 1;
            cx.at_sync().work();
        }
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all_over(self.points);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn all_over(&mut self, cx: &Cx<Self>, points: u32) {
        self.done.exit(cx, points);
    }
}

#[test]
fn a_sync_point_at_which_the_run_saves_itself_is_no_quiescence() {
    everywhere(40, 16, |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let every = 1 + (config.seed % 3) as u32;
        let balancer = if config.seed % 2 == 0 { Vec::new() } else { vec!["RotateLB".into()] };
        let config = saves(Config { balancer, ..config }, dir.path(), Some(every));
        let run = |config| {
            equipoise::run(config, |pe, done| {
                let workers = pe.array([6], |_| Worker { points: 0, done });
                pe.main(move |pe| {
                    workers.all(pe).work();
                    workers.only(pe, |[at]| at < 3).at_quiescence().over();
                    workers.only(pe, |[at]| at >= 3).at_checkpoint().over();
                });
            })
        };
        let report = run(config.clone());
        assert_eq!((report.result, report.checkpoint_error), (6 * POINTS, None));
        assert_eq!(report.checkpoints, u64::from(POINTS / every) + 1, "the last one is for `at_checkpoint`");
        for folder in Checkpoint::all(dir.path()).expect("checkpoints") {
            let elsewhere = tempfile::tempdir().expect("a folder");
            let config = saves(restarts_on(config.clone(), &folder), elsewhere.path(), Some(every));
            assert_eq!(run(config).result, 6 * POINTS, "{folder:?}");
        }
    });
}

fn quiet(config: Config, start: fn(&PeCx, Array<Door>)) -> Vec<String> {
    let result = try_run(config, |pe, done| {
        let doors = pe.array([3], |_| Door { open: 0, passed: Vec::new(), done });
        pe.main(move |pe| start(pe, doors));
    });
    match result {
        Err(RunError::Quiet { waiting, .. }) => waiting,
        other => panic!("{:?}", other.map(|report| report.result)),
    }
}

#[test]
fn a_run_without_an_exit_lists_the_waiting_elements() {
    everywhere(14, 8, |config| {
        assert!(quiet(config.clone(), |_, _| ()).is_empty());

        let waiting = quiet(config.clone(), |pe, doors| {
            doors.at(pe, [1]).enter(1);
            doors.at(pe, [1]).enter(2);
            doors.at(pe, [2]).enter(0);
        });
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert!(waiting[0].contains("Door[1] has 2 messages for `enter`"), "{waiting:?}");

        let waiting = quiet(config.clone(), |pe, doors| doors.all(pe).offer());
        assert_eq!(
            waiting,
            [
                "reduction of Door to entry `sum`: 1 of 3 elements has contributed; missing Door[1] and Door[2]"
            ]
        );

        let waiting = quiet(config.clone(), |pe, _| {
            pe.reply(|_, ()| ());
        });
        assert_eq!(waiting, ["PE 0: 1 parked closure waits for a reply"]);

        let balanced = Config { balancer: vec!["DummyLB".into()], ..config };
        let waiting = quiet(balanced, |pe, doors| {
            doors.at(pe, [0]).wait();
            doors.at(pe, [2]).wait();
        });
        let missing = "Door[1], which has not called at_sync (2 of 3 elements of Door called at_sync)";
        assert_eq!(waiting, [format!("load balancing waits for {missing}")]);
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        quiescence_is_found_when_every_chain_has_ended,
        messages_behind_a_guard_are_not_in_flight,
        a_sync_point_at_which_the_run_saves_itself_is_no_quiescence,
        a_run_without_an_exit_lists_the_waiting_elements,
    ]);
}

//! Quiescence: found when nothing is in flight, never before, and as often as somebody waits for it.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::{RunError, try_run};
use std::time::Duration;

/// A chain of messages over all PEs, which tells its end to who started it.
#[derive(Serialize, Deserialize)]
struct Link {
    dice: Dice,
    /// Chains this element started whose end it has not seen.
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
        let (next, me) = (self.dice.draw(cx.shape()[0] as usize) as i32, cx.index());
        if self.dice.once_in(2) {
            cx.peer(me).at_quiescence().over(self.rounds);
            cx.peer([next]).pass(60, me);
        } else {
            cx.peer([next]).pass(60, me);
            cx.peer(me).at_quiescence().over(self.rounds);
        }
    }

    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, left: u32, back: [i32; 1]) {
        // Others fall asleep meanwhile.
        if self.dice.once_in(50) {
            std::thread::sleep(Duration::from_micros(300));
        }
        if self.dice.once_in(5) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
        match left {
            0 => cx.peer(back).ended(),
            _ => cx.peer([self.dice.draw(cx.shape()[0] as usize) as i32]).pass(left - 1, back),
        }
    }

    #[entry]
    fn ended(&mut self, _cx: &Cx<Self>) {
        self.open -= 1;
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>, round: u32) {
        assert_eq!((self.open, self.rounds), (0, round), "it was told of quiescence too early, or twice");
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
fn quiescence_is_told_when_every_chain_has_ended_and_each_time_anew() {
    everywhere(60, 48, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let links = pe.array([5], |[i]| Link {
                dice: Dice::new(seed, i as u64),
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

/// Buffers what comes before its key.
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
fn a_run_that_comes_to_rest_without_an_exit_says_who_waits_for_what() {
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
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert!(waiting[0].contains("a reduction to `sum` of Door has 1 contributions"), "{waiting:?}");

        let waiting = quiet(config.clone(), |pe, _| {
            pe.reply(|_, ()| ());
        });
        assert_eq!(waiting, ["PE 0: 1 parked closures have had no answer"]);

        let balanced = Config { balancer: vec!["DummyLB".into()], ..config };
        let waiting = quiet(balanced, |pe, doors| {
            doors.at(pe, [0]).wait();
            doors.at(pe, [2]).wait();
        });
        let at_sync: u32 =
            waiting.iter().filter_map(|told| told.split(' ').nth(2)?.parse::<u32>().ok()).sum();
        assert!(
            at_sync == 2 && waiting.iter().all(|told| told.contains("of Door here are at sync")),
            "{waiting:?}"
        );
    });
}

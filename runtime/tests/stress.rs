//! Size and endurance: many elements, many runs, and memory that does not grow.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::{Migration, Report, Transport, reduce};
use std::sync::{Mutex, MutexGuard};

/// Memory is measured for the whole process: these tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Bytes of memory this process holds.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}

/// Does a bit of everything, round after round.
#[derive(Serialize, Deserialize)]
struct Ant {
    dice: Dice,
    round: u32,
    missing: u32,
    carries: Vec<u64>,
    warm: u64,
    plan: Plan,
    done: Exit<(u64, u64)>,
}

/// How long, and what is done on the way.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Plan {
    rounds: u32,
    /// After so many rounds the memory is as large as it may get.
    warm_up: u32,
    /// An element moves by hand once in so many rounds, if not 0.
    moves: usize,
    /// Every so many rounds there is a load-balancing step, if not 0.
    sync_every: u32,
    /// An element ends and another takes its place once in so many rounds, if not 0.
    ends: usize,
}

#[chare(index = [i32; 1], sync)]
impl Ant {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        self.round += 1;
        let count = cx.shape()[0];
        for far in [1, 7] {
            let food = vec![u64::from(self.round); self.carries.len()];
            cx.peer([(cx.index()[0] + far) % count]).carry(self.round, food);
        }
    }

    #[entry(when = round == self.round)]
    fn carry(&mut self, cx: &Cx<Self>, round: u32, food: Vec<u64>) {
        assert!(food.iter().all(|&bite| bite == u64::from(round)));
        self.carries.clone_from(&food);
        self.missing -= 1;
        if self.missing > 0 {
            return;
        }
        self.missing = 2;
        cx.peers().contribute().next(u64::from(self.round));
        let Plan { moves, .. } = self.plan;
        if moves > 0 && self.dice.once_in(moves) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
    }

    #[entry(reduce = reduce::sum)]
    fn next(&mut self, cx: &Cx<Self>, sum: u64) {
        assert_eq!(sum, u64::from(self.round) * cx.shape()[0] as u64);
        let Plan { rounds, warm_up, sync_every, ends, .. } = self.plan;
        if self.round == warm_up && cx.index() == [0] {
            self.warm = resident_bytes();
        }
        if self.round == rounds {
            if cx.index() == [0] {
                self.done.exit(cx, (self.warm, resident_bytes()));
            }
        } else if sync_every > 0 && self.round.is_multiple_of(sync_every) {
            cx.at_sync().work();
        } else if ends > 0 && cx.index() != [0] && self.dice.once_in(ends) {
            // Its successor begins where it ends.
            let dice = self.dice.clone();
            let heir = Ant { dice, carries: std::mem::take(&mut self.carries), ..*self };
            cx.array().insert(cx, cx.index(), heir);
            cx.peer(cx.index()).work();
            cx.destroy();
        } else {
            self.work(cx);
        }
    }
}

fn colony(config: Config, ants: i32, weight: usize, plan: Plan) -> Report<(u64, u64)> {
    equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let ants = pe.array([ants], |[i]| Ant {
            dice: Dice::new(seed, i as u64),
            round: 0,
            missing: 2,
            carries: vec![0; weight],
            warm: 0,
            plan,
            done,
        });
        pe.main(move |pe| ants.all(pe).work());
    })
}

#[test]
fn memory_does_not_grow_with_the_rounds_of_a_program() {
    let _turn = turn();
    let plain = Plan { rounds: 1500, warm_up: 500, moves: 0, sync_every: 0, ends: 0 };
    let plans = [
        ("broadcasts and reductions", plain),
        ("migrations by hand", Plan { rounds: 6000, moves: 1, ..plain }),
        ("load-balancing steps", Plan { sync_every: 10, ..plain }),
        ("elements that end", Plan { ends: 10, ..plain }),
        ("everything", Plan { moves: 4, sync_every: 15, ends: 10, ..plain }),
    ];
    for (what, plan) in plans {
        for config in [Config::simulated(3, 1), Config::threads(2), Config::threads(5)] {
            for migration in [Migration::Encode, Migration::Move] {
                let balancer = vec!["RotateLB".to_owned()];
                let config = Config { balancer, migration, lb_comm: equipoise::Comm::On, ..config.clone() };
                // Where nobody moves between threads, the way they would move makes no difference.
                if migration == Migration::Move
                    && (config.transport == Transport::Simulated || plan.moves == 0)
                {
                    continue;
                }
                let (before, after) = watched(format!("{what}, {}", told(&config)), {
                    let config = config.clone();
                    move || colony(config, 16, 100, plan).result
                });
                let grown = after.saturating_sub(before);
                assert!(before > 0 && grown < 1 << 20, "{what} grew {grown} bytes: {}", told(&config));
            }
        }
    }
}

#[test]
fn a_hundred_thousand_elements_work_migrate_and_balance() {
    let _turn = turn();
    let plan = Plan { rounds: 6, warm_up: 1, moves: 3, sync_every: 2, ends: 5 };
    for config in [Config::threads(2), Config::threads(4), Config::simulated(2, 3)] {
        let count = if config.transport == Transport::Threads { 100_000 } else { 20_000 };
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        watched(told(&config), move || {
            let report = colony(config, count, 1, plan);
            assert_eq!(report.lb_steps.len(), 2);
            assert!(report.migrations > count as u64);
        });
    }
}

/// The shortest program: a message around all PEs.
#[derive(Serialize, Deserialize)]
struct Ring {
    done: Exit<u32>,
}

#[chare(index = Pe)]
impl Ring {
    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, hops: u32) {
        let next = Pe((cx.index().0 + 1) % cx.pes() as u32);
        match next {
            Pe(0) => self.done.exit(cx, hops + 1),
            _ => cx.peer(next).pass(hops + 1),
        }
    }
}

#[test]
fn thousands_of_tiny_runs_start_and_stop_without_hanging() {
    let _turn = turn();
    for round in 0..2000u64 {
        let pes = 2 + (round % 7) as usize;
        let hops = watched(format!("tiny run {round} on {pes} PEs"), move || {
            let report = equipoise::run(Config::threads(pes), |pe, done| {
                let ring = pe.array(Pe(pe.pes() as u32), |_| Ring { done });
                pe.main(move |pe| match round % 3 {
                    0 => ring.at(pe, Pe(0)).pass(0),
                    1 => ring.at(pe, Pe(0)).at_quiescence().pass(0),
                    _ => {
                        // Everybody is woken while the run ends.
                        ring.all(pe).pass(0);
                        ring.at(pe, Pe(0)).pass(0);
                    }
                });
            });
            report.result
        });
        assert!(if round % 3 == 2 { (1..=pes as u32).contains(&hops) } else { hops == pes as u32 });
    }
}

//! Size and endurance: many elements, many runs, and memory that does not grow.

#![allow(missing_docs)]

use crate::common::*;
use cap::Cap;
use equipoise::prelude::*;
use equipoise::{Migration, Report, Transport, reduce};
use std::alloc::System;
use std::process::Command;

/// The environment variable of a process for one test; its value is the size of the test.
const ALONE: &str = "EQUIPOISE_TEST_ALONE";

/// Whether this process was started for one test. If so, it runs this test at the size that the parent process gives.
fn is_alone() -> bool {
    let size = std::env::var(ALONE);
    if size.as_deref() == Ok("full") {
        set_full_size();
    }
    size.is_ok()
}

/// Runs a test in its own process, because memory is measured per process.
fn alone(test: &str) {
    let size = if is_full_size() { "full" } else { "small" };
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    let output = command.args([test, "--exact"]).env(ALONE, size).output().expect("it starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Counts the bytes that are allocated and not yet freed. The memory of the process is no measure: it also depends on how
/// threads share freed memory.
#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// Sends, reduces, migrates, balances and ends, according to a [`Plan`].
#[derive(Serialize, Deserialize)]
struct Ant {
    rng: Rng,
    round: u32,
    missing: u32,
    carries: Vec<u64>,
    warm: u64,
    plan: Plan,
    done: Exit<(u64, u64)>,
}

/// The length of a run, and its events.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Plan {
    rounds: u32,
    /// Rounds after which memory must not grow.
    warm_up: u32,
    /// Mean rounds between calls of `migrate` of an element; 0: none.
    moves: usize,
    /// Rounds between load-balancing steps; 0: no steps.
    sync_every: u32,
    /// Mean rounds until an element is replaced by another; 0: never.
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
        if moves > 0 && self.rng.once_in(moves) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }

    #[entry(reduce = reduce::sum)]
    fn next(&mut self, cx: &Cx<Self>, sum: u64) {
        assert_eq!(sum, u64::from(self.round) * cx.shape()[0] as u64);
        let Plan { rounds, warm_up, sync_every, ends, .. } = self.plan;
        if self.round == warm_up && cx.index() == [0] {
            self.warm = ALLOCATED.allocated() as u64;
        }
        if self.round == rounds {
            if cx.index() == [0] {
                self.done.exit(cx, (self.warm, ALLOCATED.allocated() as u64));
            }
        } else if sync_every > 0 && self.round.is_multiple_of(sync_every) {
            cx.at_sync().work();
        } else if ends > 0 && cx.index() != [0] && self.rng.once_in(ends) {
            // Its successor begins where it ends.
            let rng = self.rng.clone();
            let heir = Ant { rng, carries: std::mem::take(&mut self.carries), ..*self };
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
            rng: Rng::new(seed, i as u64),
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
    if !is_alone() {
        return alone("stress::memory_does_not_grow_with_the_rounds_of_a_program");
    }
    let rounds = if is_full_size() { 1500 } else { 150 };
    let plain = Plan { rounds, warm_up: rounds / 3, moves: 0, sync_every: 0, ends: 0 };
    let plans = [
        ("broadcasts and reductions", plain),
        ("migrations by hand", Plan { rounds: 4 * rounds, moves: 1, ..plain }),
        ("load-balancing steps", Plan { sync_every: 10, ..plain }),
        ("elements that end", Plan { ends: 10, ..plain }),
        ("everything", Plan { moves: 4, sync_every: 15, ends: 10, ..plain }),
    ];
    for (what, plan) in plans {
        for config in [Config::simulated(3, 1), Config::threads(2), Config::threads(5)] {
            for migration in [Migration::Encode, Migration::Move] {
                let balancer = vec!["RotateLB".to_owned()];
                let config = Config { balancer, migration, lb_comm: equipoise::Comm::On, ..config.clone() };
                // Without calls of `migrate` on threads, the kind of migration makes no difference.
                if migration == Migration::Move
                    && (config.transport == Transport::Simulated || plan.moves == 0)
                {
                    continue;
                }
                let (before, after) = watched(format!("{what}, {}", describe(&config)), {
                    let config = config.clone();
                    move || colony(config, 16, 100, plan).result
                });
                let grown = after.saturating_sub(before);
                assert!(before > 0 && grown < 1 << 18, "{what} grew {grown} bytes: {}", describe(&config));
            }
        }
    }
}

#[test]
fn a_hundred_thousand_elements_work_migrate_and_balance() {
    let plan = Plan { rounds: 6, warm_up: 1, moves: 3, sync_every: 2, ends: 5 };
    for config in [Config::threads(2), Config::threads(4), Config::simulated(2, 3)] {
        let count = if config.transport == Transport::Threads { 100_000 } else { 20_000 };
        let count = if is_full_size() { count } else { count / 10 };
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        watched(describe(&config), move || {
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
    for round in seeds(2000) {
        let pes = 2 + (round % 7) as usize;
        let hops = watched(format!("tiny run {round} on {pes} PEs"), move || {
            let report = equipoise::run(Config::threads(pes), |pe, done| {
                let ring = pe.array(Pe(pe.pes() as u32), |_| Ring { done });
                pe.main(move |pe| match round % 3 {
                    0 => ring.at(pe, Pe(0)).pass(0),
                    1 => ring.at(pe, Pe(0)).at_quiescence().pass(0),
                    _ => {
                        // Wakes all PEs while the run ends.
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

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        memory_does_not_grow_with_the_rounds_of_a_program,
        a_hundred_thousand_elements_work_migrate_and_balance,
        thousands_of_tiny_runs_start_and_stop_without_hanging,
    ]);
}

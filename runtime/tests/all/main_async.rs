//! An asynchronous `main` waits for replies.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{reduce, try_run};

/// Answers from wherever it is, and counts.
#[derive(Serialize, Deserialize)]
struct Counter {
    count: u64,
    rng: Rng,
    sum: Option<Callback<u64>>,
}

#[chare(index = [i32; 1])]
impl Counter {
    #[entry]
    fn add(&mut self, cx: &Cx<Self>, more: u64, count: Reply<u64>) {
        self.count += more;
        count.send(cx, self.count);
        cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
    }

    #[entry]
    fn total(&mut self, cx: &Cx<Self>, sum: Callback<u64>) {
        if cx.index() == [0] {
            self.sum = Some(sum);
        }
        cx.peer([0]).contribute().summed(self.count);
    }

    #[entry(reduce = reduce::sum)]
    fn summed(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sum.take().expect("`main` waits for the sum").send(cx, sum);
    }
}

#[test]
fn main_asks_one_question_after_the_other_and_several_at_once() {
    everywhere(40, 16, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let rng = move |[i]: [i32; 1]| Rng::new(seed, i as u64);
            let counters = pe.array([6], |i| Counter { count: 0, rng: rng(i), sum: None });
            pe.main_async(async move |pe| {
                let mut last = 1;
                for step in 0..20 {
                    // One after the other: each answer is in the next question.
                    last = pe.ask(|count| counters.at(&pe, [step % 3]).add(last, count)).await;
                    assert_eq!(pe.here(), Pe(0));
                }
                // At once: the answers arrive in any order.
                let questions: Vec<_> =
                    (0..6).map(|i| pe.ask(|count| counters.at(&pe, [i]).add(1, count))).collect();
                let mut sum = 0;
                for question in questions.into_iter().rev() {
                    sum += question.await;
                }
                // Only closures borrow `pe`, so other tasks of `main` are functions that take it.
                let total = total(&pe, counters).await;
                assert_eq!(sum, total);
                done.exit(&pe, (last, total));
            });
        });
        let mut counts = [0u64; 3];
        let mut last = 1;
        for step in 0..20 {
            counts[step % 3] += last;
            last = counts[step % 3];
        }
        assert_eq!(report.result, (last, counts.iter().sum::<u64>() + 6));
    });
}

async fn total(pe: &equipoise::Main, counters: Array<Counter>) -> u64 {
    pe.ask(|sum| counters.all(pe).total(sum.callback())).await
}

/// Passes a message on, and counts.
#[derive(Serialize, Deserialize)]
struct Runner {
    passed: u64,
    rng: Rng,
}

#[chare(index = [i32; 1])]
impl Runner {
    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, left: u32) {
        self.passed += 1;
        if left > 0 {
            cx.peer([self.rng.sample(cx.shape()[0] as usize) as i32]).pass(left - 1);
        }
        if self.rng.once_in(4) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }

    #[entry]
    fn count(&mut self, cx: &Cx<Self>, passed: Callback<u64>) {
        passed.send(cx, self.passed);
    }
}

#[test]
fn main_waits_for_quiescence() {
    everywhere(40, 16, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let runners = pe.array([4], |[i]| Runner { passed: 0, rng: Rng::new(seed, i as u64) });
            pe.main_async(async move |pe| {
                let mut sums = Vec::new();
                for length in [30, 0, 70] {
                    runners.all(&pe).pass(length);
                    pe.quiescence().await;
                    let counts: Vec<_> = (0..4)
                        .map(|at| pe.ask(|count: Reply<u64>| runners.at(&pe, [at]).count(count.callback())))
                        .collect();
                    let mut sum = 0;
                    for count in counts {
                        sum += count.await;
                    }
                    sums.push(sum);
                }
                // Nothing is in flight, twice.
                pe.quiescence().await;
                pe.quiescence().await;
                done.exit(&pe, sums);
            });
        });
        assert_eq!(report.result, [4 * 31, 4 * 32, 4 * 103]);
    });
}

#[test]
fn a_main_that_waits_forever_is_reported_and_released() {
    let released = std::sync::Arc::new(());
    let held = released.clone();
    let failed = try_run(Config::simulated(2, 3), move |pe, _: Exit<u64>| {
        let held = held.clone();
        pe.main_async(async move |pe| {
            let answer = pe.ask(|_: Reply<u64>| ()).await;
            drop((answer, held));
        });
    });
    let error = failed.map(|report| report.result).expect_err("no reply").to_string();
    assert!(error.contains("1 parked closure waits for a reply"), "{error}");
    assert_eq!(std::sync::Arc::strong_count(&released), 1, "the future is dropped with the run");
}

#[test]
fn a_panic_in_main_after_a_reply_ends_the_run() {
    let failed = try_run(Config::threads(2), |pe, _: Exit<u64>| {
        let counters = pe.array([1], |_| Counter { count: 0, rng: Rng::new(0, 0), sum: None });
        pe.main_async(async move |pe| {
            let count = pe.ask(|count| counters.at(&pe, [0]).add(1, count)).await;
            assert_eq!(count, 2, "main miscounted");
        });
    });
    let error = failed.map(|report| report.result).expect_err("a panic").to_string();
    assert!(error.contains("main miscounted"), "{error}");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[main_asks_one_question_after_the_other_and_several_at_once, main_waits_for_quiescence]);
}

//! Tutorial, libraries: a pool that runs the jobs of any program, and a `main` that waits for the results.

use equipoise::prelude::*;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;

/// Work that a pool can run.
trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// What the client receives.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Does the work.
    fn run(self) -> Self::Output;
}

/// A worker of the pool. It does not know its clients.
#[derive(Serialize, Deserialize)]
struct Worker<J> {
    jobs: PhantomData<J>,
}

#[chare(index = [i32; 1])]
impl<J: Job> Worker<J> {
    /// Runs a job. Of the jobs that wait, the most urgent one is first.
    #[entry(priority = -urgency)]
    fn run(&mut self, cx: &Cx<Self>, job: J, urgency: i64, result: Callback<J::Output>) {
        result.send(cx, job.run());
    }
}

/// Looks for the number with the longest Collatz sequence.
#[derive(Serialize, Deserialize)]
struct Collatz {
    from: u64,
    to: u64,
}

impl Job for Collatz {
    /// The steps from a number to 1, and the number.
    type Output = (u32, u64);

    fn run(self) -> (u32, u64) {
        let next = |n: u64| if n % 2 == 0 { n / 2 } else { 3 * n + 1 };
        let steps = |from| std::iter::successors(Some(from), |&n| Some(next(n))).position(|n| n == 1);
        (self.from..self.to).map(|n| (steps(n).unwrap_or(0) as u32, n)).max().unwrap_or_default()
    }
}

const WORKERS: i32 = 4;
const PARTS: u64 = 20;

fn main() {
    let report = equipoise::run(equipoise::parse(), |pe, done| {
        let pool = pe.array([WORKERS], |_| Worker::<Collatz> { jobs: PhantomData });
        pe.main_async(async move |pe| {
            let search = |part: u64| {
                let job = Collatz { from: 1 + 500 * part, to: 1 + 500 * (part + 1) };
                let worker = [part as i32 % WORKERS];
                pe.ask(|result| pool.at(&pe, worker).run(job, part as i64, result.callback()))
            };
            let mut longest = search(0).await;
            let others: Vec<_> = (1..PARTS).map(search).collect();
            for other in others {
                longest = longest.max(other.await);
            }
            done.exit(&pe, longest);
        });
    });
    let (steps, number) = report.result;
    assert_eq!((steps, number), (261, 6171));
    println!("{number} takes {steps} steps to 1, the most of the numbers up to 10000");
}

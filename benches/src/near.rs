//! The kneighbor benchmark: in each iteration, every element sends to 2k neighbors on a ring and receives 2k replies; a
//! reduction ends the iteration.

use equipoise::prelude::*;
use equipoise::{Report, reduce};
use std::sync::Mutex;
use std::time::Instant;

/// An element with 2k neighbors.
#[derive(Serialize, Deserialize)]
pub struct Near {
    k: i32,
    missing: i32,
    iterations: u32,
    start: Shared<Mutex<Instant>>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Near {
    #[entry]
    fn iterate(&mut self, cx: &Cx<Self>) {
        let ([me], [count]) = (cx.index(), cx.shape());
        // A message of a neighbor may arrive before the message that starts this iteration. So the count is increased,
        // not set.
        self.missing += 4 * self.k;
        for d in 1..=self.k {
            for to in [me + d, me + count - d] {
                cx.peer([if to >= count { to - count } else { to }]).data(me, [d as u64; 8]);
            }
        }
    }

    /// Receives 64 bytes from a neighbor, and replies.
    #[entry]
    fn data(&mut self, cx: &Cx<Self>, from: i32, payload: [u64; 8]) {
        std::hint::black_box(&payload);
        cx.peer([from]).reply();
        self.count_one(cx);
    }

    #[entry]
    fn reply(&mut self, cx: &Cx<Self>) {
        self.count_one(cx);
    }

    #[entry(reduce = reduce::nothing)]
    fn next(&mut self, cx: &Cx<Self>, _all: ()) {
        self.iterations -= 1;
        if self.iterations > 0 {
            self.iterate(cx);
        } else if cx.index() == [0] {
            let start = *self.start.get(cx).lock().expect("no thread panics while it holds this lock");
            self.done.exit(cx, start.elapsed().as_secs_f64());
        }
    }

    #[inline]
    fn count_one(&mut self, cx: &Cx<Self>) {
        self.missing -= 1;
        if self.missing == 0 {
            cx.peers().contribute().next(());
        }
    }
}

/// Runs `iterations` iterations; the result is the seconds from `main` to the exit.
pub fn run(config: Config, elements: i32, k: i32, iterations: u32) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let start = pe.shared(|| Mutex::new(Instant::now()));
        let near = pe.array([elements], |_| Near { k, missing: 0, iterations, start, done });
        pe.main(move |pe| {
            *start.get(pe).lock().expect("no thread panics while it holds this lock") = Instant::now();
            near.all(pe).iterate();
        });
    })
}

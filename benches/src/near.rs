//! k neighbours: every element sends to its neighbours on a ring, everybody answers, then all agree on
//! the next iteration. 2k messages and 2k answers per element.

use equipoise::prelude::*;
use equipoise::{Report, reduce};
use std::sync::Mutex;
use std::time::Instant;

/// An element.
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
    fn go(&mut self, cx: &Cx<Self>) {
        let ([me], [count]) = (cx.index(), cx.shape());
        // A neighbour's message may overtake the one that starts this element: count, do not set.
        self.missing += 4 * self.k;
        for d in 1..=self.k {
            for to in [me + d, me + count - d] {
                cx.peer([if to >= count { to - count } else { to }]).data(me, [d as u64; 8]);
            }
        }
    }

    /// 64 bytes of a neighbour.
    #[entry]
    fn data(&mut self, cx: &Cx<Self>, from: i32, payload: [u64; 8]) {
        std::hint::black_box(&payload);
        cx.peer([from]).answer();
        self.one(cx);
    }

    #[entry]
    fn answer(&mut self, cx: &Cx<Self>) {
        self.one(cx);
    }

    #[entry(reduce = reduce::nothing)]
    fn next(&mut self, cx: &Cx<Self>, _all: ()) {
        self.iterations -= 1;
        if self.iterations > 0 {
            self.go(cx);
        } else if cx.index() == [0] {
            let start = *self.start.get(cx).lock().expect("nobody panics under this lock");
            self.done.exit(cx, start.elapsed().as_secs_f64());
        }
    }

    #[inline]
    fn one(&mut self, cx: &Cx<Self>) {
        self.missing -= 1;
        if self.missing == 0 {
            cx.peers().contribute().next(());
        }
    }
}

/// Runs so many iterations; the result is the seconds from `main` to the exit.
pub fn run(config: Config, elements: i32, k: i32, iterations: u32) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let start = pe.shared(|| Mutex::new(Instant::now()));
        let near = pe.array([elements], |_| Near { k, missing: 0, iterations, start, done });
        pe.main(move |pe| {
            *start.get(pe).lock().expect("nobody panics under this lock") = Instant::now();
            near.all(pe).go();
        });
    })
}

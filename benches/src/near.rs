//! The kneighbor benchmark: in each iteration, every element sends to 2k neighbors on a ring and receives 2k replies. A
//! reduction ends the iteration, or the replies do, as in Charm++'s benchmark of that name.

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
    pace: Pace,
    start: Shared<Mutex<Instant>>,
    done: Exit<f64>,
}

/// What ends an iteration of an element.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// A reduction, after 2k messages with 64 bytes on the stack and 2k replies.
    Reduction,
    /// The replies to 2k messages with this number of bytes, each in a vector of its own.
    Replies(usize),
}

#[chare(index = [i32; 1])]
impl Near {
    #[entry]
    fn iterate(&mut self, cx: &Cx<Self>) {
        let ([me], [count]) = (cx.index(), cx.shape());
        // A message of a neighbor may arrive before the message that starts this iteration. So the count is increased,
        // not set.
        self.missing += match self.pace {
            Pace::Reduction => 4 * self.k,
            Pace::Replies(_) => 2 * self.k,
        };
        for d in 1..=self.k {
            for to in [me + d, me + count - d] {
                let to = cx.peer([if to >= count { to - count } else { to }]);
                match self.pace {
                    Pace::Reduction => to.data(me, [d as u64; 8]),
                    Pace::Replies(bytes) => to.bytes(me, vec![d as u8; bytes]),
                }
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

    /// Receives the data of a neighbor, and replies.
    #[entry]
    fn bytes(&mut self, cx: &Cx<Self>, from: i32, data: Vec<u8>) {
        std::hint::black_box(&data);
        cx.peer([from]).reply();
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
        // Below 0 are the messages of neighbors that have begun the next iteration.
        if self.missing != 0 {
            return;
        }
        match self.pace {
            Pace::Replies(_) if self.iterations > 1 => {
                self.iterations -= 1;
                self.iterate(cx);
            }
            _ => cx.peers().contribute().next(()),
        }
    }
}

/// An element whose iterations, with a reduction, are a flow.
#[derive(Serialize, Deserialize)]
pub struct Flowing {
    k: i32,
    iterations: u32,
    start: Shared<Mutex<Instant>>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Flowing {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        for _ in 0u32..self.iterations {
            self.send(cx);
            for _ in 0i32..4 * self.k {
                select! {
                    data(from, payload) => {
                        std::hint::black_box(&payload);
                        cx.peer([from]).reply();
                    },
                    reply() => {},
                }
            }
            let _: () = reduce!(cx, reduce::nothing, ());
        }
        if cx.index() == [0] {
            let start = *self.start.get(cx).lock().expect("no thread panics while it holds this lock");
            self.done.exit(cx, start.elapsed().as_secs_f64());
        }
    }

    /// 64 bytes from a neighbor.
    #[entry]
    fn data(from: i32, payload: [u64; 8]);

    #[entry]
    fn reply();
}

impl Flowing {
    fn send(&self, cx: &Cx<Self>) {
        let ([me], [count]) = (cx.index(), cx.shape());
        for d in 1..=self.k {
            for to in [me + d, me + count - d] {
                cx.peer([if to >= count { to - count } else { to }]).data(me, [d as u64; 8]);
            }
        }
    }
}

/// Runs `iterations` iterations of a flow, each with a reduction; the result is the seconds from `main` to the exit.
pub fn run_flow(config: Config, elements: i32, k: i32, iterations: u32) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let start = pe.shared(|| Mutex::new(Instant::now()));
        let near = pe.array([elements], |_| Flowing { k, iterations, start, done });
        pe.main(move |pe| {
            *start.get(pe).lock().expect("no thread panics while it holds this lock") = Instant::now();
            near.all(pe).life();
        });
    })
}

/// Runs `iterations` iterations; the result is the seconds from `main` to the exit.
pub fn run(config: Config, elements: i32, k: i32, iterations: u32, pace: Pace) -> Report<f64> {
    equipoise::run(config, |pe, done| {
        let start = pe.shared(|| Mutex::new(Instant::now()));
        let near = pe.array([elements], |_| Near { k, missing: 0, iterations, pace, start, done });
        pe.main(move |pe| {
            *start.get(pe).lock().expect("no thread panics while it holds this lock") = Instant::now();
            near.all(pe).iterate();
        });
    })
}

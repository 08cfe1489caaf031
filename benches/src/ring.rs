//! Elements on a ring that pass tokens, blasts and themselves around: what one message, one broadcast
//! and one migration cost.

use equipoise::prelude::*;
use equipoise::{Report, reduce};
use std::sync::Mutex;
use std::time::Instant;

/// When the measurement began.
type Start = Shared<Mutex<Instant>>;

/// An element of the ring.
#[derive(Serialize, Deserialize)]
pub struct Ring {
    count: i32,
    counter: Array<Counter>,
    #[serde(with = "equipoise::numbers")]
    data: Vec<u8>,
    seen: i32,
}

#[chare(index = [i32; 1])]
impl Ring {
    /// Passes a token on: three integers, like Charm++'s benchmark of marshalled messages.
    #[entry]
    fn token(&mut self, cx: &Cx<Self>, hops: i32, stride: i32, modulo: i32) {
        if hops == 0 {
            return self.counter.at(cx, ()).arrived();
        }
        let mut to = cx.index()[0] + stride;
        if to >= modulo {
            to -= modulo;
        }
        cx.peer([to]).token(hops - 1, stride, modulo);
    }

    /// Sends many messages to one element.
    #[entry]
    fn blast(&mut self, cx: &Cx<Self>, to: i32, count: i32) {
        for value in 0..count {
            cx.peer([to]).fine(value, count);
        }
    }

    /// Takes one of them.
    #[entry]
    fn fine(&mut self, cx: &Cx<Self>, value: i32, count: i32) {
        self.seen = value;
        if value + 1 == count {
            self.counter.at(cx, ()).arrived();
        }
    }

    /// Moves to the other PE and goes on there.
    #[entry]
    fn hop(&mut self, cx: &Cx<Self>, left: u32) {
        if left == 0 {
            return self.counter.at(cx, ()).arrived();
        }
        cx.migrate(Pe(1 - cx.here().0));
        cx.peer(cx.index()).hop(left - 1);
    }

    /// A round of broadcast and reduction.
    #[entry]
    fn everybody(&mut self, cx: &Cx<Self>) {
        self.counter.at(cx, ()).contribute().total(1);
    }

    /// A round in which all elements change PEs.
    #[entry]
    fn change_places(&mut self, cx: &Cx<Self>) {
        cx.migrate(Pe(1 - cx.here().0));
        cx.peer(cx.index()).landed();
    }

    /// Says that it has arrived.
    #[entry]
    fn landed(&mut self, cx: &Cx<Self>) {
        self.seen += 1;
        self.counter.at(cx, ()).contribute().total(1);
    }
}

/// Ends the run when everything it counts has come.
#[derive(Serialize, Deserialize)]
pub struct Counter {
    left: u32,
    rounds: u32,
    migrates: bool,
    elements: u32,
    ring: Option<Array<Ring>>,
    start: Start,
    done: Exit<f64>,
}

#[chare(index = ())]
impl Counter {
    #[entry]
    fn arrived(&mut self, cx: &Cx<Self>) {
        self.left -= 1;
        if self.left == 0 {
            self.over(cx);
        }
    }

    /// Rounds of all elements of `ring`.
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, ring: Array<Ring>) {
        self.ring = Some(ring);
        self.round(cx);
    }

    #[entry(reduce = reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: u32) {
        assert_eq!(sum, self.elements, "every element took part");
        self.rounds -= 1;
        if self.rounds == 0 { self.over(cx) } else { self.round(cx) }
    }

    fn round(&self, cx: &Cx<Self>) {
        if let Some(ring) = self.ring {
            if self.migrates { ring.all(cx).change_places() } else { ring.all(cx).everybody() }
        }
    }

    fn over(&self, cx: &Cx<Self>) {
        let start = *self.start.get(cx).lock().expect("nobody panics under this lock");
        self.done.exit(cx, start.elapsed().as_secs_f64());
    }
}

/// What is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Elements on the ring.
    pub elements: i32,
    /// Bytes an element carries.
    pub bytes: usize,
    /// What they do.
    pub pattern: Pattern,
}

/// What the elements do.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// So many tokens take so many hops each, this far at a time.
    Tokens {
        /// Tokens in flight.
        tokens: i32,
        /// Hops of each.
        hops: i32,
        /// Elements per hop.
        stride: i32,
    },
    /// Element 0 sends so many messages to the last one.
    Blast {
        /// Messages.
        messages: i32,
    },
    /// Element 0 changes PEs so many times.
    Hops(u32),
    /// So many broadcasts, each answered by a reduction.
    Rounds(u32),
    /// So many times all elements change PEs.
    Moves(u32),
}

/// Runs it; the result is the seconds from `main` to the exit.
pub fn run(config: Config, options: Options) -> Report<f64> {
    let Options { elements, bytes, pattern } = options;
    equipoise::run(config, |pe, done| {
        let start: Start = pe.shared(|| Mutex::new(Instant::now()));
        let (left, rounds, migrates) = match pattern {
            Pattern::Tokens { tokens, .. } => (tokens as u32, 0, false),
            Pattern::Blast { .. } | Pattern::Hops(_) => (1, 0, false),
            Pattern::Rounds(rounds) => (0, rounds, false),
            Pattern::Moves(rounds) => (0, rounds, true),
        };
        let counter = pe.array((), |()| Counter {
            left,
            rounds,
            migrates,
            elements: elements as u32,
            ring: None,
            start,
            done,
        });
        let ring = pe.array([elements], |_| Ring { count: elements, counter, data: vec![1; bytes], seen: 0 });
        pe.main(move |pe| {
            *start.get(pe).lock().expect("nobody panics under this lock") = Instant::now();
            match pattern {
                Pattern::Tokens { tokens, hops, stride } => {
                    for token in 0..tokens {
                        ring.at(pe, [token % elements]).token(hops, stride, elements);
                    }
                }
                Pattern::Blast { messages } => ring.at(pe, [0]).blast(elements - 1, messages),
                Pattern::Hops(hops) => ring.at(pe, [0]).hop(hops),
                Pattern::Rounds(_) | Pattern::Moves(_) => counter.at(pe, ()).begin(ring),
            }
        });
    })
}

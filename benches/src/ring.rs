//! Elements on a ring that send messages, take part in broadcasts and reductions, and migrate: the costs of one message,
//! one broadcast with reduction, and one migration.

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
    /// Numbers without the attribute of `data`, which serde visits one by one.
    plain: Vec<f64>,
    seen: i32,
}

#[chare(index = [i32; 1])]
impl Ring {
    /// Forwards a token of three integers, as in Charm++'s benchmark of marshalled messages.
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

    /// Passes a copy of this element's data on, as in Charm++'s pingpong with marshalled parameters.
    #[entry]
    fn pass(&mut self, cx: &Cx<Self>, left: u32, data: Vec<u8>) {
        std::hint::black_box(&data);
        if left == 0 {
            return self.counter.at(cx, ()).arrived();
        }
        cx.peer([1 - cx.index()[0]]).pass(left - 1, self.data.clone());
    }

    /// Sends many messages to one element.
    #[entry]
    fn blast(&mut self, cx: &Cx<Self>, to: i32, count: i32) {
        for value in 0..count {
            cx.peer([to]).receive(value, count);
        }
    }

    /// Receives one message of a blast.
    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, value: i32, count: i32) {
        self.seen = value;
        if value + 1 == count {
            self.counter.at(cx, ()).arrived();
        }
    }

    /// Migrates to the other PE and continues there.
    #[entry]
    fn hop(&mut self, cx: &Cx<Self>, left: u32) {
        if left == 0 {
            return self.counter.at(cx, ()).arrived();
        }
        cx.migrate(Pe(1 - cx.here().0));
        cx.peer(cx.index()).hop(left - 1);
    }

    /// The broadcast of a round; contributes to its reduction.
    #[entry]
    fn contribute_one(&mut self, cx: &Cx<Self>) {
        self.counter.at(cx, ()).contribute().total(1);
    }

    /// The broadcast of a round in which all elements migrate.
    #[entry]
    fn migrate_once(&mut self, cx: &Cx<Self>) {
        cx.migrate(Pe(1 - cx.here().0));
        cx.peer(cx.index()).has_migrated();
    }

    /// Contributes to the reduction after the migration.
    #[entry]
    fn has_migrated(&mut self, cx: &Cx<Self>) {
        self.seen += 1;
        self.counter.at(cx, ()).contribute().total(1);
    }
}

/// Counts arrivals and rounds, and ends the run after the last one.
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
            self.end_run(cx);
        }
    }

    /// Begins the rounds of all elements of `ring`.
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, ring: Array<Ring>) {
        self.ring = Some(ring);
        self.round(cx);
    }

    #[entry(reduce = reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: u32) {
        assert_eq!(sum, self.elements, "every element took part");
        self.rounds -= 1;
        if self.rounds == 0 { self.end_run(cx) } else { self.round(cx) }
    }

    fn round(&self, cx: &Cx<Self>) {
        if let Some(ring) = self.ring {
            if self.migrates { ring.all(cx).migrate_once() } else { ring.all(cx).contribute_one() }
        }
    }

    fn end_run(&self, cx: &Cx<Self>) {
        let start = *self.start.get(cx).lock().expect("no thread panics while it holds this lock");
        self.done.exit(cx, start.elapsed().as_secs_f64());
    }
}

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The number of elements on the ring.
    pub elements: i32,
    /// Bytes of data per element.
    pub bytes: usize,
    /// What the elements do.
    pub pattern: Pattern,
}

/// What the elements do.
#[derive(Clone, Copy, Debug)]
pub enum Pattern {
    /// Tokens travel around the ring.
    Tokens {
        /// The number of tokens in flight.
        tokens: i32,
        /// Hops per token.
        hops: i32,
        /// Elements per hop.
        stride: i32,
    },
    /// Element 0 sends messages to the last element.
    Blast {
        /// The number of messages.
        messages: i32,
    },
    /// Elements 0 and 1 pass data back and forth this number of times.
    Passes(u32),
    /// Element 0 migrates this number of times.
    Hops(u32),
    /// The same with its bytes in a plain vector of `f64`, without `equipoise::numbers`.
    PlainHops(u32),
    /// This number of broadcasts, each followed by a reduction.
    Rounds(u32),
    /// All elements migrate this number of times.
    Moves(u32),
}

/// Runs a pattern; the result is the seconds from `main` to the exit.
pub fn run(config: Config, options: Options) -> Report<f64> {
    equipoise::run(config, |pe, done| setup(options, pe, done))
}

/// Runs a pattern in the processes of a communicator.
#[cfg(feature = "mpi")]
pub fn run_on(
    config: Config,
    communicator: &impl mpi::traits::Communicator,
    options: Options,
) -> Report<f64> {
    equipoise::run_on(config, communicator, |pe, done| setup(options, pe, done))
}

fn setup(options: Options, pe: &Setup, done: Exit<f64>) {
    let Options { elements, bytes, pattern } = options;
    let start: Start = pe.shared(|| Mutex::new(Instant::now()));
    let (left, rounds, migrates) = match pattern {
        Pattern::Tokens { tokens, .. } => (tokens as u32, 0, false),
        Pattern::Blast { .. } | Pattern::Passes(_) | Pattern::Hops(_) | Pattern::PlainHops(_) => {
            (1, 0, false)
        }
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
    let (data, plain) = if matches!(pattern, Pattern::PlainHops(_)) { (0, bytes / 8) } else { (bytes, 0) };
    let make = |_| Ring { count: elements, counter, data: vec![1; data], plain: vec![1.0; plain], seen: 0 };
    let ring = pe.array([elements], make);
    pe.main(move |pe| {
        *start.get(pe).lock().expect("no thread panics while it holds this lock") = Instant::now();
        match pattern {
            Pattern::Tokens { tokens, hops, stride } => {
                for token in 0..tokens {
                    ring.at(pe, [token % elements]).token(hops, stride, elements);
                }
            }
            Pattern::Blast { messages } => ring.at(pe, [0]).blast(elements - 1, messages),
            Pattern::Passes(passes) => ring.at(pe, [0]).pass(passes, vec![1; bytes]),
            Pattern::Hops(hops) | Pattern::PlainHops(hops) => ring.at(pe, [0]).hop(hops),
            Pattern::Rounds(_) | Pattern::Moves(_) => counter.at(pe, ()).begin(ring),
        }
    });
}

//! Elements on a ring exchange messages. In every iteration an element works, sends a message to each of its k
//! neighbors, and replies to each message it receives. The next iteration begins when all elements have all replies.
//!
//! The neighbors of element i are i±1 .. i±⌊k/2⌋, and i+⌈k/2⌉ when k is odd.

use equipoise::Report;
use equipoise::prelude::*;
use equipoise::reduce;
use std::fmt;
use std::hint::black_box;

use crate::command::{Outcome, seconds};

/// The flags of this program.
#[derive(Clone, Debug, Serialize, Deserialize, clap::Args)]
pub struct Options {
    /// Elements on the ring
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(i32).range(1..), allow_negative_numbers = true)]
    pub elements: i32,

    /// Neighbors per element
    #[arg(
        long,
        short = 'k',
        value_name = "K",
        default_value_t = 6,
        alias = "neighbours",
        allow_negative_numbers = true
    )]
    pub neighbors: u32,

    /// Bytes per message, and per reply
    #[arg(long, value_name = "B", default_value_t = 1024, allow_negative_numbers = true)]
    pub bytes: u32,

    /// Number of iterations
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..), allow_negative_numbers = true)]
    pub iterations: u32,

    /// Floating-point operations of the last element per iteration; element i of n does (i / (n - 1))^2 times this
    /// number
    #[arg(long, value_name = "OPERATIONS", default_value_t = 0, allow_negative_numbers = true)]
    pub work: u32,

    /// Use the fourth power of i / (n - 1) in --work instead of the square, as in Charm++'s load-balancing example
    #[arg(long, requires = "work")]
    pub steep: bool,

    /// Iterations between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true)]
    pub lb_every: u32,

    /// Load of a floating-point operation, in seconds [default: the load is measured]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub charge: Option<f64>,

    /// Load of a received byte, in seconds (the cost of a copy); only with --charge
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    #[arg(default_value_t = 0.0, requires = "charge")]
    pub charge_byte: f64,
}

impl Default for Options {
    /// The defaults of the flags, except for messages of 64 bytes, as in Charm++'s measurements.
    fn default() -> Self {
        Options {
            elements: 64,
            neighbors: 6,
            bytes: 64,
            iterations: 100,
            work: 0,
            steep: false,
            lb_every: 10,
            charge: None,
            charge_byte: 0.0,
        }
    }
}

/// The result, which depends neither on the number of PEs nor on migrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// Number of iterations.
    pub iterations: u32,
    /// Messages and replies that arrived.
    pub messages: u64,
    /// Bytes in these messages and replies.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Element {
    options: Options,
    iteration: u32,
    /// Replies that are still missing in this iteration.
    missing: u32,
    /// Messages and bytes that arrived since the beginning.
    arrived: [u64; 2],
    /// Buffers of replies, which the next messages reuse.
    #[serde(skip)]
    buffers: Vec<Vec<u8>>,
    done: Exit<Exchange>,
}

#[chare(index = [i32; 1], sync)]
impl Element {
    /// Starts an iteration: works, and sends a message to every neighbor.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        let ([me], [elements]) = (cx.index(), cx.shape());
        let operations = operations(&self.options, me, elements);
        compute(operations);
        self.charge(cx, operations, 0);
        self.iteration += 1;
        for distance in distances(self.options.neighbors) {
            self.missing += 1;
            let to = (i64::from(me) + distance).rem_euclid(i64::from(elements)) as i32;
            let data = self.buffers.pop().unwrap_or_else(|| vec![0; self.options.bytes as usize]);
            cx.peer([to]).message(me, data);
        }
        // Without neighbors no reply arrives that would continue the iteration.
        if self.missing == 0 {
            cx.peers().contribute().answered(());
        }
    }

    /// Replies to a message, which may be of the next iteration of this element.
    #[entry]
    fn message(&mut self, cx: &Cx<Self>, from: i32, data: Vec<u8>) {
        self.charge(cx, 0, data.len());
        self.count(&data);
        cx.peer([from]).answer(data);
    }

    /// Receives a reply. Every reply belongs to the current iteration: the next one begins when all replies have arrived.
    #[entry]
    fn answer(&mut self, cx: &Cx<Self>, data: Vec<u8>) {
        self.charge(cx, 0, data.len());
        self.count(&data);
        self.buffers.push(data);
        self.missing -= 1;
        if self.missing == 0 {
            cx.peers().contribute().answered(());
        }
    }

    /// Called when every element has all its replies.
    #[entry(reduce = reduce::nothing)]
    fn answered(&mut self, cx: &Cx<Self>, _all: ()) {
        self.charge(cx, 0, 0);
        let Options { iterations, lb_every, .. } = self.options;
        if self.iteration == iterations {
            cx.peer([0]).contribute().finished(self.arrived.to_vec());
        } else if self.iteration.is_multiple_of(lb_every) {
            cx.at_sync().step(); // balance, maybe migrate, then step
        } else {
            self.step(cx);
        }
    }

    /// Receives the numbers of messages and bytes that arrived at all elements.
    #[entry(reduce = reduce::sums)]
    fn finished(&mut self, cx: &Cx<Self>, arrived: Vec<u64>) {
        let exchange = Exchange { iterations: self.iteration, messages: arrived[0], bytes: arrived[1] };
        self.done.exit(cx, exchange);
    }
}

impl Element {
    fn count(&mut self, data: &[u8]) {
        self.arrived[0] += 1;
        self.arrived[1] += data.len() as u64;
    }

    /// Charges the load of operations and received bytes, unless loads are measured.
    fn charge(&self, cx: &Cx<Self>, operations: u64, bytes: usize) {
        let Options { charge, charge_byte, .. } = self.options;
        if let Some(seconds) = charge {
            cx.charge(seconds * operations as f64 + charge_byte * bytes as f64);
        }
    }
}

/// The distances along the ring to the `k` neighbors.
fn distances(k: u32) -> impl Iterator<Item = i64> {
    let half = i64::from(k / 2);
    let both = (1..=half).flat_map(|distance| [distance, -distance]);
    both.chain((k % 2 == 1).then_some(half + 1))
}

/// The work of one element, in floating-point operations.
fn operations(options: &Options, index: i32, elements: i32) -> u64 {
    let (part, whole) = (index as u128, (elements - 1).max(1) as u128);
    let square = |work: u128| work * part * part / (whole * whole);
    let work = square(u128::from(options.work));
    (if options.steep { square(work) } else { work }) as u64
}

/// Does floating-point operations; each depends on the previous one.
fn compute(operations: u64) {
    let mut x = 1.0f64;
    for _ in 0..operations {
        x = black_box(x) * 0.999;
    }
    black_box(x);
}

/// Runs the program.
pub fn exchange(config: Config, options: &Options) -> Report<Exchange> {
    equipoise::run(config, |pe, done| {
        let ring = pe.array([options.elements], |_| Element {
            options: options.clone(),
            iteration: 0,
            missing: 0,
            arrived: [0; 2],
            buffers: Vec::new(),
            done,
        });
        pe.main(move |pe| ring.all(pe).step());
    })
}

impl Outcome for Exchange {
    fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "iterations    {}", self.iterations)?;
        writeln!(f, "messages      {}, including replies", self.messages)?;
        write!(f, "bytes         {}", self.bytes)
    }
}

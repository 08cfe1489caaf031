//! Messages between processes, next to raw MPI in the same processes. Started by `mpirun`:
//!
//! `cargo build --release -p equipoise-benches --features mpi --bench mpi`, then
//! `mpirun -n 2 target/release/deps/mpi-* --bench [--rounds N --json FILTER]`.
//!
//! With 2 processes, every row has its floor. With 4, only rows without a raw floor are taken.
//!
//! The targets in the table are for an idle computer with 2 cores. Further targets are ratios to the floor: 2.5 for a lone message,
//! 1 KiB and 64 KiB over shared memory, 1.3 for a lone message over TCP; a local message takes 5 ns more than on threads.

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use equipoise::prelude::*;
use equipoise::{Transport, reduce};
use equipoise_benches::ring::{self, Options, Pattern};
use equipoise_benches::{Measurement, run_in_process};
use mpi::request;
use mpi::topology::SimpleCommunicator;
use mpi::traits::*;
use std::time::Instant;

/// The bytes of a message.
#[derive(Serialize, Deserialize)]
struct Payload(#[serde(with = "equipoise::numbers")] Vec<u8>);

/// Two ends of a wire.
#[derive(Serialize, Deserialize)]
struct End {
    left: u32,
    #[serde(skip)]
    start: Option<Instant>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl End {
    /// A message there and back.
    #[entry]
    fn ping(&mut self, cx: &Cx<Self>, data: Payload) {
        if cx.index() != [0] {
            return cx.peer([0]).ping(data);
        }
        let start = *self.start.get_or_insert_with(Instant::now);
        if self.left == 0 {
            return self.done.exit(cx, start.elapsed().as_secs_f64());
        }
        self.left -= 1;
        cx.peer([cx.shape()[0] - 1]).ping(data);
    }

    /// One element per PE contributes to a sum, whose result is broadcast.
    #[entry]
    fn contribute_one(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().total(1);
    }

    #[entry(reduce = reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: i32) {
        assert_eq!(sum, cx.shape()[0], "every element took part");
        let start = *self.start.get_or_insert_with(Instant::now);
        if self.left == 0 {
            return self.done.exit(cx, start.elapsed().as_secs_f64());
        }
        self.left -= 1;
        cx.peers().contribute_one();
    }
}

/// The elements of a process in an all-to-all.
const PER_PROCESS: i32 = 64;

/// An element that sends 8 bytes to every element in each round.
#[derive(Serialize, Deserialize)]
struct Exchange {
    rounds: u32,
    #[serde(skip)]
    start: Option<Instant>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Exchange {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        self.start = Some(Instant::now());
        for round in 0u32..self.rounds {
            for to in 0..cx.shape()[0] {
                cx.peer([to]).word(u64::from(round));
            }
            for _ in 0i32..cx.shape()[0] {
                when!(word(of) if of == u64::from(round) => {});
            }
        }
        let _: () = reduce!(cx, reduce::nothing, ());
        if cx.index() == [0] {
            self.done.exit(cx, self.start.map_or(f64::NAN, |start| start.elapsed().as_secs_f64()));
        }
    }

    /// 8 bytes.
    #[entry]
    fn word(word: u64);
}

/// Nanoseconds per message of 8 bytes from every element to every element, as many as `messages`.
fn all_to_all(messages: u32) -> f64 {
    let config = Config { transport: Transport::Mpi, ..Config::default() };
    let elements = PER_PROCESS * SimpleCommunicator::world().size();
    let each = (elements * elements) as u32;
    let rounds = messages.div_ceil(each);
    let report = equipoise::run(config, |pe, done| {
        let array = pe.array([elements], |_| Exchange { rounds, start: None, done });
        pe.main(move |pe| array.all(pe).life());
    });
    report.result * 1e9 / f64::from(rounds * each)
}

/// The same per message of raw MPI, whose messages a program has collected: one all-to-all in each round.
fn raw_all_to_all(messages: u32) -> f64 {
    let world = SimpleCommunicator::world();
    let (processes, words) = (world.size() as usize, (PER_PROCESS * PER_PROCESS) as usize);
    let (mut sent, mut received) = (vec![0u64; processes * words], vec![0u64; processes * words]);
    let each = (processes * processes * words) as u32;
    let rounds = messages.div_ceil(each);
    let start = Instant::now();
    for round in 0..rounds {
        sent.fill(u64::from(round));
        world.all_to_all_into(&sent[..], &mut received[..]);
        assert!(received.iter().all(|&word| word == u64::from(round)));
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds * each)
}

/// What the ends do.
#[derive(Clone, Copy)]
enum Traffic {
    Ping { bytes: usize },
    Rounds,
}

/// The seconds of a run over MPI.
fn wire(traffic: Traffic, times: u32) -> f64 {
    let config = Config { transport: Transport::Mpi, ..Config::default() };
    let report = equipoise::run(config, |pe, done| {
        let ends = pe.array([pe.pes() as i32], |_| End { left: times, start: None, done });
        pe.main(move |pe| match traffic {
            Traffic::Ping { bytes } => ends.at(pe, [0]).ping(Payload(vec![1; bytes])),
            Traffic::Rounds => ends.all(pe).contribute_one(),
        });
    });
    report.result
}

/// Microseconds of a message one way, between the first process and the last.
fn one_way(bytes: usize, times: u32) -> f64 {
    wire(Traffic::Ping { bytes }, times) / f64::from(2 * times) * 1e6
}

/// Nanoseconds per empty message of many from one process to another.
fn batched(messages: i32) -> f64 {
    let config = Config { transport: Transport::Mpi, ..Config::default() };
    let options = Options { elements: 2, bytes: 0, pattern: Pattern::Blast { messages } };
    ring::run(config, options).result * 1e9 / f64::from(messages)
}

/// Nanoseconds per message of a PE to itself.
fn local(config: Config, hops: i32) -> f64 {
    let options =
        Options { elements: 1000, bytes: 0, pattern: Pattern::Tokens { tokens: 1000, hops, stride: 1 } };
    ring::run(config, options).result * 1e6 / f64::from(hops)
}

/// The same over MPI. The other process waits.
fn local_over_mpi(hops: i32) -> f64 {
    let options =
        Options { elements: 1000, bytes: 0, pattern: Pattern::Tokens { tokens: 1000, hops, stride: 1 } };
    let config = Config { transport: Transport::Mpi, ..Config::default() };
    ring::run_on(config, &SimpleCommunicator::self_comm(), options).result * 1e6 / f64::from(hops)
}

/// Microseconds of a message of raw MPI one way, received with a matched probe, between the first two processes. If
/// `is_written`, the sender writes the message before every send; otherwise the receiver soon has it in its cache.
fn raw_one_way(bytes: usize, times: u32, is_written: bool) -> f64 {
    let world = SimpleCommunicator::world();
    let (mut data, mut buffer) = (vec![1u8; bytes], vec![0u8; bytes]);
    let receive = |buffer: &mut [u8]| loop {
        if let Some((message, _)) = world.any_process().immediate_matched_probe() {
            message.matched_receive_into(buffer);
            return;
        }
    };
    let mut seconds = 0.0;
    world.barrier();
    if world.rank() < 2 {
        let other = world.process_at_rank(1 - world.rank());
        let start = Instant::now();
        for time in 0..times {
            if world.rank() == 1 {
                receive(&mut buffer);
            }
            if is_written {
                data.fill(time as u8);
            }
            other.send(&data[..]);
            if world.rank() == 0 {
                receive(&mut buffer);
            }
        }
        seconds = start.elapsed().as_secs_f64();
    }
    world.barrier();
    seconds / f64::from(2 * times) * 1e6
}

/// Nanoseconds per message of 32 bytes of raw MPI, each sent on its own.
fn raw_stream(times: usize) -> f64 {
    let world = SimpleCommunicator::world();
    let frame = [1u8; 32];
    let start = Instant::now();
    match world.rank() {
        0 => {
            for _ in 0..times {
                request::scope(|scope| world.process_at_rank(1).immediate_send(scope, &frame[..]).wait());
            }
            let mut end = 0u8;
            world.process_at_rank(1).receive_into(&mut end);
        }
        1 => {
            let mut buffer = [0u8; 32];
            (0..times).for_each(|_| {
                world.process_at_rank(0).receive_into(&mut buffer[..]);
            });
            world.process_at_rank(0).send(&0u8);
        }
        _ => {}
    }
    world.barrier();
    start.elapsed().as_secs_f64() * 1e9 / times as f64
}

fn measurement(
    name: &'static str,
    unit: &'static str,
    target: Option<f64>,
    floor: Option<&'static str>,
    take: impl Fn(bool) -> f64 + 'static,
) -> Measurement {
    Measurement { name, unit, target, floor, take: Box::new(take) }
}

fn main() {
    // Initialises MPI; the first run of any program over MPI does.
    wire(Traffic::Rounds, 1);
    let world = SimpleCommunicator::world();
    let times = |small: bool, full: u32| if small { 10 } else { full };
    let on_two_processes = world.size() == 2;
    // On two cores; the limit of one way depends on whether processes share cores.
    let lone_limit = if on_two_processes { 0.6 } else { 5.0 };
    let mut all = vec![
        measurement("lone message, one way", "us", Some(lone_limit), Some("raw 8 B"), move |s| {
            one_way(0, times(s, 20_000))
        }),
        measurement("message of 1 KiB, one way", "us", None, Some("raw 1 KiB"), move |s| {
            one_way(1 << 10, times(s, 20_000))
        }),
        measurement("message of 64 KiB, one way", "us", None, Some("raw 64 KiB"), move |s| {
            one_way(1 << 16, times(s, 2_000))
        }),
        measurement("message of 1 MiB, one way", "us", None, Some("raw 1 MiB"), move |s| {
            one_way(1 << 20, times(s, 100))
        }),
        measurement("batched empty message", "ns", Some(125.0), Some("raw stream of 32 B"), move |s| {
            batched(times(s, 1_000_000) as i32)
        }),
        measurement(
            "all-to-all of 8 B, each message",
            "ns",
            None,
            Some("raw all-to-all of collected 8 B"),
            move |s| all_to_all(times(s, 2_000_000)),
        ),
        measurement("raw all-to-all of collected 8 B", "ns", None, None, move |s| {
            raw_all_to_all(times(s, 2_000_000))
        }),
        measurement("broadcast and reduction", "us", Some(15.0), None, move |s| {
            wire(Traffic::Rounds, times(s, 5_000)) * 1e6 / f64::from(times(s, 5_000))
        }),
    ];
    if on_two_processes {
        for (name, bytes, count, is_written) in [
            ("raw 8 B", 8, 20_000, false),
            ("raw 1 KiB", 1 << 10, 20_000, false),
            ("raw 64 KiB", 1 << 16, 2_000, false),
            ("raw 64 KiB, written before", 1 << 16, 2_000, true),
            ("raw 1 MiB", 1 << 20, 100, false),
            ("raw 1 MiB, written before", 1 << 20, 100, true),
        ] {
            let take = move |s| raw_one_way(bytes, times(s, count), is_written);
            all.push(measurement(name, "us", None, None, take));
        }
        all.push(measurement("raw stream of 32 B", "ns", None, None, move |s| {
            raw_stream(times(s, 500_000) as usize)
        }));
        all.push(measurement("local message", "ns", None, Some("local message on threads"), move |s| {
            local_over_mpi(times(s, 3_000) as i32)
        }));
        all.push(measurement("local message on threads", "ns", None, None, move |s| {
            local(Config::threads(1), times(s, 3_000) as i32)
        }));
    }
    run_in_process(world.rank() as usize, all);
}

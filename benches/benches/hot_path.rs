//! `cargo bench -p equipoise-benches --bench hot_path [-- --small --rounds N --json FILTER]`: the costs of messages,
//! creation, broadcasts, reductions and migrations in the runtime, and of small programs.

use equipoise::{Config, LbWhen, Records};
use equipoise_benches::near::Pace;
use equipoise_benches::ring::{Options, Pattern};
use equipoise_benches::{Measurement, floors, near, programs, ring};
use std::num::NonZeroU32;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn pinned(pes: usize) -> Config {
    Config { bind: true, ..Config::threads(pes) }
}

fn tokens(config: Config, tokens: i32, elements: i32, stride: i32, total: i32, small: bool) -> f64 {
    let hops = if small { 10 } else { total / tokens };
    let options = Options { elements, bytes: 0, pattern: Pattern::Tokens { tokens, hops, stride } };
    ring::run(config, options).result * 1e9 / f64::from(tokens) / f64::from(hops)
}

/// Measurements, in the order of the table.
#[derive(Default)]
struct All(Vec<Measurement>);

impl All {
    fn add(
        &mut self,
        name: &'static str,
        unit: &'static str,
        target: Option<f64>,
        floor: Option<&'static str>,
        take: impl Fn(bool) -> f64 + 'static,
    ) {
        self.0.push(Measurement { name, unit, target, floor, take: Box::new(take) });
    }
}

const QUEUE: Option<&str> = Some("floor: queue and table");
const LINE: Option<&str> = Some("floor: cache line");
const MAILBOX: Option<&str> = Some("floor: mailbox");
const COPY: Option<&str> = Some("floor: copy 64 KiB twice");

/// The floors.
fn bare_floors(all: &mut All) {
    all.add("floor: queue and table", "ns", None, None, |s| {
        floors::local_queue(if s { 1000 } else { 2_000_000 })
    });
    all.add("floor: cache line", "ns", None, None, |s| floors::cache_line(if s { 100 } else { 200_000 }));
    all.add("floor: mailbox", "ns", None, None, |s| floors::mailbox(if s { 1000 } else { 1_000_000 }));
    all.add("floor: clock", "ns", None, None, |s| floors::clock(if s { 100 } else { 1_000_000 }));
    all.add("floor: copy 64 KiB twice", "us", None, None, |s| {
        floors::copy_twice(65536, if s { 2 } else { 2000 })
    });
    all.add("floor: plain vector", "ns", None, None, |s| {
        floors::plain_creation(if s { 1000 } else { 1_000_000 })
    });
}

/// Records the run, with a small limit, so that the time to write the trace stays short.
fn recorded(config: Config) -> Config {
    let records = Records { record_limit: Some(32_000_000), ..Records::trace("/dev/null") };
    Config { records, ..config }
}

/// What recording adds to the time of the same program without it, which runs just before.
fn recording(all: &mut All) {
    const CLOCK: Option<&str> = Some("floor: clock");
    let added = |run: &dyn Fn(Config) -> f64, pes| {
        let plain = run(pinned(pes));
        run(recorded(pinned(pes))) - plain
    };
    let rounds = |config, s| {
        let rounds = if s { 2 } else { 200 };
        let options = Options { elements: 10_000, bytes: 0, pattern: Pattern::Rounds(rounds) };
        ring::run(config, options).result * 1e9 / f64::from(rounds) / 10_000.0
    };
    all.add("recording adds: an execution", "ns", Some(25.0), CLOCK, move |s| {
        added(&|config| rounds(config, s), 1)
    });
    all.add("recording adds: an execution and a local send", "ns", Some(35.0), CLOCK, move |s| {
        added(&|config| tokens(config, 1000, 1000, 1, 3_000_000, s), 1)
    });
    all.add("recording adds: an execution and a send to another PE", "ns", Some(35.0), CLOCK, move |s| {
        added(&|config| tokens(config, 1000, 1000, 500, 3_000_000, s), 2)
    });
    // An iteration has 2600 executions and 2400 sends.
    all.add("recording adds: an iteration of kneighbor, 1 PE", "us", Some(89.0), CLOCK, move |s| {
        let iterations = if s { 3 } else { 2000 };
        let run = |config| {
            near::run(config, 200, 3, iterations, Pace::Reduction).result * 1e6 / f64::from(iterations)
        };
        added(&run, 1)
    });
}

/// Messages within one PE, and between two PEs.
fn messages(all: &mut All) {
    all.add("local message, 1000 in flight", "ns", Some(14.0), QUEUE, |s| {
        tokens(pinned(1), 1000, 1000, 1, 5_000_000, s)
    });
    all.add("local message, one in flight", "ns", Some(18.0), QUEUE, |s| {
        tokens(pinned(1), 1, 1000, 1, 3_000_000, s)
    });
    all.add("local message, cold: 1e5 in flight, 1e5 elements", "ns", None, QUEUE, |s| {
        tokens(pinned(1), 100_000, 100_000, 1, 3_000_000, s)
    });
    let load = || Config { balancer: vec!["GreedyLB".into()], ..pinned(1) };
    all.add("local message + load", "ns", Some(25.0), Some("floor: clock"), move |s| {
        tokens(load(), 1000, 1000, 1, 3_000_000, s)
    });
    let comm = || Config { balancer: vec!["TopoLB".into()], ..pinned(1) };
    all.add("local message + load + communication", "ns", Some(35.0), Some("floor: clock"), move |s| {
        tokens(comm(), 1000, 1000, 1, 3_000_000, s)
    });
    all.add("cross-PE message, 1000 in flight", "ns", Some(16.0), MAILBOX, |s| {
        tokens(pinned(2), 1000, 1000, 500, 3_000_000, s)
    });
    all.add("cross-PE message, lone, one way", "ns", Some(140.0), LINE, |s| {
        tokens(pinned(2), 1, 1000, 500, 300_000, s)
    });
    let pass = |bytes, count: u32, s: bool| {
        let passes = if s { 4 } else { count };
        let options = Options { elements: 2, bytes, pattern: Pattern::Passes(passes) };
        2.0 * ring::run(pinned(2), options).result * 1e6 / f64::from(passes)
    };
    all.add("pingpong of a copy of 1 KiB, there and back", "us", Some(0.31), LINE, move |s| {
        pass(1 << 10, 200_000, s)
    });
    all.add("pingpong of a copy of 10 KiB, there and back", "us", Some(0.5), LINE, move |s| {
        pass(10 << 10, 100_000, s)
    });
    all.add("pingpong of a copy of 64 KiB, there and back", "us", None, COPY, move |s| {
        pass(64 << 10, 20_000, s)
    });
}

/// Creation, broadcasts with reductions, and neighbors on a ring.
fn elements(all: &mut All) {
    all.add("create an element", "ns", Some(60.0), Some("floor: plain vector"), |s| {
        programs::create(if s { 1000 } else { 1_000_000 }).0
    });
    all.add("bytes over the element", "B", Some(48.0), None, |s| {
        programs::create(if s { 10_000 } else { 1_000_000 }).1
    });
    let counted = |pes, s: bool| programs::create_and_count(pinned(pes), if s { 1000 } else { 1_000_000 });
    all.add(
        "create, broadcast and reduce, per element, 1 PE",
        "ns",
        Some(330.0),
        Some("floor: plain vector"),
        move |s| counted(1, s),
    );
    all.add(
        "create, broadcast and reduce, per element, 2 PEs",
        "ns",
        Some(220.0),
        Some("floor: plain vector"),
        move |s| counted(2, s),
    );
    let rounds = |pes, elements: i32, s: bool| {
        let rounds = if s { 2 } else { 2_000_000 / elements };
        let options = Options { elements, bytes: 0, pattern: Pattern::Rounds(rounds as u32) };
        ring::run(pinned(pes), options).result * 1e9 / f64::from(rounds) / f64::from(elements)
    };
    all.add("broadcast + reduction, per element of 10,000, 1 PE", "ns", Some(35.0), QUEUE, move |s| {
        rounds(1, 10_000, s)
    });
    all.add("broadcast + reduction, per element of 10,000, 2 PEs", "ns", None, QUEUE, move |s| {
        rounds(2, 10_000, s)
    });
    let kneighbor = |pes, pace, s: bool| {
        let iterations = if s { 3 } else { 2000 };
        near::run(pinned(pes), 200, 3, iterations, pace).result * 1e6 / f64::from(iterations)
    };
    all.add("kneighbor, 200 elements, 2400 messages, 1 PE", "us", Some(30.0), QUEUE, move |s| {
        kneighbor(1, Pace::Reduction, s)
    });
    all.add("kneighbor, 200 elements, 2400 messages, 2 PEs", "us", Some(20.0), QUEUE, move |s| {
        kneighbor(2, Pace::Reduction, s)
    });
    for (name, pes, entries) in [
        ("kneighbor as a flow, 1 PE", 1, "kneighbor, 200 elements, 2400 messages, 1 PE"),
        ("kneighbor as a flow, 2 PEs", 2, "kneighbor, 200 elements, 2400 messages, 2 PEs"),
    ] {
        all.add(name, "us", None, Some(entries), move |s| {
            let iterations = if s { 3 } else { 2000 };
            near::run_flow(pinned(pes), 200, 3, iterations).result * 1e6 / f64::from(iterations)
        });
    }
    for (name, pes, bytes, target) in [
        ("Charm++'s kneighbor, 64 B, 1 PE", 1, 64, 37.0),
        ("Charm++'s kneighbor, 64 B, 2 PEs", 2, 64, 51.0),
        ("Charm++'s kneighbor, 1 KiB, 1 PE", 1, 1 << 10, 54.0),
        ("Charm++'s kneighbor, 1 KiB, 2 PEs", 2, 1 << 10, 72.0),
    ] {
        all.add(name, "us", Some(target), QUEUE, move |s| kneighbor(pes, Pace::Replies(bytes), s));
    }
}

/// Whole programs.
fn whole(all: &mut All) {
    let iterations = |s: bool| if s { 2 } else { 200 };
    all.add("floor: cells of stencil3d on 1 thread", "ms", None, None, move |s| {
        programs::kernel(iterations(s))
    });
    for (name, pes) in
        [("stencil3d, 64^3 cells in 512 blocks, 1 PE", 1), ("stencil3d, 64^3 cells in 512 blocks, 2 PEs", 2)]
    {
        all.add(name, "ms", None, Some("floor: cells of stencil3d on 1 thread"), move |s| {
            programs::stencil(pinned(pes), iterations(s))
        });
    }
    all.add("floor: start of `true` to its exit", "ms", None, None, |_| programs::start_to_exit(false));
    all.add(
        "start of a program on 2 PEs to its exit",
        "ms",
        None,
        Some("floor: start of `true` to its exit"),
        |_| programs::start_to_exit(true),
    );
}

/// Single migrations, migrations of all elements, and a load-balancing step.
fn migrations(all: &mut All) {
    let travel = |bytes, hops: u32, pattern| {
        ring::run(pinned(2), Options { elements: 2, bytes, pattern }).result * 1e6 / f64::from(hops)
    };
    let hops = move |bytes, count: u32, s: bool| {
        let hops = if s { 4 } else { count };
        travel(bytes, hops, Pattern::Hops(hops))
    };
    all.add("migrate one element of 8 B", "us", Some(0.5), LINE, move |s| hops(8, 200_000, s));
    all.add("migrate one element of 64 KiB", "us", Some(3.5), COPY, move |s| hops(65536, 20_000, s));
    // At least 2 GB/s, there and back.
    all.add("migrate one element of 64 KiB in a plain Vec<f64>", "us", Some(33.0), COPY, move |s| {
        let hops = if s { 4 } else { 20_000 };
        travel(65536, hops, Pattern::PlainHops(hops))
    });
    let moves = |elements: i32, bytes, count: u32, s: bool| {
        let moves = if s { 2 } else { count };
        let elements = if s { 10 } else { elements };
        let options = Options { elements, bytes, pattern: Pattern::Moves(moves) };
        ring::run(pinned(2), options).result * 1e6 / f64::from(moves) / f64::from(elements)
    };
    all.add("migrate 10,000 elements of 8 B, each", "us", None, LINE, move |s| moves(10_000, 8, 20, s));
    all.add("migrate 1000 elements of 64 KiB, each", "us", Some(6.9), COPY, move |s| {
        moves(1000, 65536, 10, s)
    });
    let balanced = |balancer: &str, lb_when, elements, steps| {
        let config = Config { balancer: vec![balancer.into()], lb_when, ..pinned(2) };
        programs::balance(config, elements, steps).result / f64::from(steps)
    };
    let steps = |s| if s { 2 } else { 1000 };
    let every = |number| LbWhen::Every(NonZeroU32::new(number).expect("a number"));
    all.add("load-balancing step, GreedyRefineLB, 512 elements, 2 PEs", "us", Some(55.0), LINE, move |s| {
        balanced("GreedyRefineLB", every(1), 512, steps(s)) * 1e6
    });
    all.add("load-balancing step, DummyLB, 512 elements, 2 PEs", "us", Some(30.0), LINE, move |s| {
        balanced("DummyLB", every(1), 512, steps(s)) * 1e6
    });
    // The message that resumes an element is in the time.
    for (name, when) in [
        ("sync point that is no step, each of 10,000 elements, 2 PEs", every(u32::MAX)),
        ("sync point with --lb-when auto, each of 10,000 elements, 2 PEs", LbWhen::Auto),
    ] {
        all.add(name, "ns", Some(30.0), LINE, move |s| {
            balanced("DummyLB", when, 10_000, steps(s) / 2) * 1e9 / 10_000.0
        });
    }
}

fn main() {
    programs::hello_if_asked();
    let mut all = All::default();
    bare_floors(&mut all);
    messages(&mut all);
    recording(&mut all);
    elements(&mut all);
    migrations(&mut all);
    whole(&mut all);
    equipoise_benches::run(all.0);
}

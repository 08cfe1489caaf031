//! `cargo bench -p equipoise-benches --bench idle [-- --small --rounds N --json FILTER]`: how long a program takes whose PEs often
//! wait for each other, next to busy threads of others, with each value of `--idle`.
//!
//! The last row of each cell is the time with `--idle auto` over the better of the others, in the same round. With more PEs than
//! cores, PEs that always spin take longer by factors of ten to a thousand, so they are left out there. The numbers of PEs
//! and of busy threads mean something on a computer with two cores.

use equipoise::{Config, Idle};
use equipoise_benches::Measurement;
use equipoise_benches::near::{self, Pace};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Runs `body` next to busy threads.
fn beside<T>(busy: usize, body: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..busy {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let result = body();
        is_over.store(true, Relaxed);
        result
    })
}

/// The seconds that a run takes from its start to its end.
fn seconds(idle: Idle, pes: usize, busy: usize, small: bool) -> f64 {
    beside(busy, || {
        let begin = std::time::Instant::now();
        near::run(
            Config { idle, ..Config::threads(pes) },
            200,
            3,
            if small { 2 } else { 2_000 },
            Pace::Reduction,
        );
        begin.elapsed().as_secs_f64()
    })
}

fn measurements() -> Vec<Measurement> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    for pes in [1, 2, 4, 8] {
        for busy in [0, 1, 4] {
            let measurement = |name: String, unit, target, take: Box<dyn Fn(bool) -> f64>| Measurement {
                name: name.leak(),
                unit,
                target,
                floor: None,
                take,
            };
            let others: &'static [Idle] =
                if pes <= cores { &[Idle::Spin, Idle::Park] } else { &[Idle::Park] };
            let cell = format!("{pes} PEs, {busy} busy");
            for &idle in others.iter().chain(&[Idle::Auto]) {
                let take = move |small| seconds(idle, pes, busy, small) * 1e3;
                all.push(measurement(format!("{cell}, {idle:?}"), "ms", None, Box::new(take)));
            }
            let ratio = move |small| {
                let best =
                    others.iter().map(|&idle| seconds(idle, pes, busy, small)).fold(f64::MAX, f64::min);
                seconds(Idle::Auto, pes, busy, small) / best
            };
            all.push(measurement(
                format!("{cell}, Auto over the better"),
                "ratio",
                Some(1.5),
                Box::new(ratio),
            ));
        }
    }
    all
}

fn main() {
    equipoise_benches::run(measurements());
}

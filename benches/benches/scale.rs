//! `cargo bench -p equipoise-benches --bench scale [-- --small --rounds N --json FILTER]`: ten million elements, and a hundred
//! million messages, on two PEs: time and memory.

use equipoise::prelude::*;
use equipoise::reduce;
use equipoise_benches::ring::{self, Options, Pattern};
use equipoise_benches::{Measurement, programs};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// An element with 8 bytes.
#[derive(Serialize, Deserialize)]
struct Grain {
    weight: u64,
}

#[chare(index = [i32; 1])]
impl Grain {
    #[entry]
    fn count(&mut self, cx: &Cx<Self>, driver: Array<Driver>) {
        driver.at(cx, ()).contribute().counted(self.weight);
    }

    /// A tenth of the elements goes to the other PE.
    #[entry]
    fn shift(&mut self, cx: &Cx<Self>) {
        if cx.index()[0] % 10 == 0 {
            let Pe(here) = cx.here();
            cx.migrate(Pe(1 - here));
        }
    }
}

/// Runs the phases, and notes the time and the resident memory after each.
#[derive(Serialize, Deserialize)]
struct Driver {
    count: u64,
    begin: Shared<Mutex<Instant>>,
    done: Exit<Vec<(f64, f64)>>,
}

#[chare(index = ())]
impl Driver {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>, grains: Array<Grain>, driver: Array<Driver>) {
        let mut ends: Vec<(f64, f64)> = vec![self.now(cx)];
        for _ in 0u32..2 {
            grains.all(cx).count(driver);
            when!(counted(sum) => assert_eq!(sum, self.count, "every element counts once"));
            ends.push(self.now(cx));
            grains.all(cx).shift();
            driver.at(cx, ()).at_quiescence().moved();
            when!(moved() => {});
            ends.push(self.now(cx));
        }
        self.done.exit(cx, ends);
    }

    #[entry(reduce = reduce::sum)]
    fn counted(sum: u64);

    #[entry]
    fn moved();
}

impl Driver {
    /// The seconds since the begin, and the resident bytes.
    fn now(&self, cx: &Cx<Self>) -> (f64, f64) {
        let begin = *self.begin.get(cx).lock().expect("no thread panics while it holds this lock");
        (begin.elapsed().as_secs_f64(), programs::resident_bytes())
    }
}

const FULL: i32 = 10_000_000;
const SMALL: i32 = 1000;

/// The time and the memory at the end of each phase.
fn phases(small: bool) -> Vec<(f64, f64)> {
    let count = if small { SMALL } else { FULL };
    let started = Instant::now();
    equipoise::run(Config { bind: true, ..Config::threads(2) }, move |pe, done| {
        let begin = pe.shared(|| Mutex::new(started));
        let grains = pe.array([count], |_| Grain { weight: 1 });
        let driver = pe.array((), |()| Driver { count: count as u64, begin, done });
        pe.main(move |pe| driver.at(pe, ()).life(grains, driver));
    })
    .result
}

/// The seconds of a hundred million messages between two PEs, and by how much the resident bytes grew from the first half of the
/// run to the second.
fn messages(small: bool) -> (f64, f64) {
    let (tokens, total) = (1000, if small { 10_000 } else { 100_000_000 });
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut taken = vec![programs::resident_bytes()];
            while !over.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
                taken.push(programs::resident_bytes());
            }
            let most = |half: &[f64]| half.iter().copied().fold(0.0, f64::max);
            let (first, second) = taken.split_at(taken.len() / 2);
            most(second) - most(first)
        });
        let pattern = Pattern::Tokens { tokens, hops: total / tokens, stride: 500 };
        let options = Options { elements: 1000, bytes: 0, pattern };
        let seconds = ring::run(Config { bind: true, ..Config::threads(2) }, options).result;
        over.store(true, Relaxed);
        (seconds, watcher.join().expect("the watcher only reads a file"))
    })
}

fn main() {
    let ends = Rc::new(RefCell::new(Vec::new()));
    let mut all = Vec::new();
    let names = [
        "create 10 M elements",
        "broadcast and reduction",
        "migrate a tenth",
        "broadcast and reduction afterwards",
        "migrate the tenth back",
    ];
    for (phase, name) in names.into_iter().enumerate() {
        let ends = Rc::clone(&ends);
        let take = move |small| {
            if phase == 0 || ends.borrow().is_empty() {
                *ends.borrow_mut() = phases(small);
            }
            let ends = ends.borrow();
            ends[phase].0 - phase.checked_sub(1).map_or(0.0, |before: usize| ends[before].0)
        };
        all.push(Measurement { name, unit: "s", target: None, floor: None, take: Box::new(take) });
    }
    for (phase, name) in
        [(0, "resident memory after the creation"), (4, "resident memory after the migrations")]
    {
        let ends = Rc::clone(&ends);
        let take = move |small| {
            if ends.borrow().is_empty() {
                *ends.borrow_mut() = phases(small);
            }
            ends.borrow()[phase].1 / 1e9
        };
        all.push(Measurement { name, unit: "GB", target: None, floor: None, take: Box::new(take) });
    }
    let sent = Rc::new(RefCell::new((0.0, 0.0)));
    let (of_sent, grown) = (Rc::clone(&sent), sent);
    let take = move |small| {
        *of_sent.borrow_mut() = messages(small);
        of_sent.borrow().0
    };
    all.push(Measurement {
        name: "10^8 messages",
        unit: "s",
        target: None,
        floor: None,
        take: Box::new(take),
    });
    let take = move |small| {
        if grown.borrow().0 == 0.0 {
            *grown.borrow_mut() = messages(small);
        }
        grown.borrow().1 / 1e6
    };
    all.push(Measurement {
        name: "10^8 messages: growth of memory in the second half",
        unit: "MB",
        target: None,
        floor: None,
        take: Box::new(take),
    });
    equipoise_benches::run(all);
}

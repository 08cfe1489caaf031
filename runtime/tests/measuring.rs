//! What is measured on threads: an entry costs its element what it takes by the clock, a reducer costs
//! nobody who did not contribute, and what is left of a PE's time is idle or background.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::strategies::database::Database;
use equipoise::strategies::{Assignment, Strategy, StrategyError, Topology};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What each element takes in the first period, in milliseconds. The first three contribute to a
/// reduction on PE 0 while the last three are delivered messages there; the one between sleeps on PE 1.
const WORK: [u64; 7] = [20, 5, 0, 10, 0, 0, 0];

/// Those of [`WORK`] that contribute in the first period.
const CONTRIBUTORS: i32 = 4;

/// What the reducer takes each time it combines two contributions.
const REDUCER: u64 = 15;

/// What the closure takes that runs outside of all elements, on PE 0.
const OUTSIDE: u64 = 12;

/// A busy machine has better things to do now and then; of so many runs, one is left alone.
const RUNS: usize = 40;

/// What may be measured too much then, in milliseconds.
const SLACK: f64 = 3.0;

/// Nanoseconds that were really spent: by each element, then in the reducer, then outside. Whoever takes
/// a core away in between takes it from what is measured, too.
static SPENT: [AtomicU64; 9] = [const { AtomicU64::new(0) }; 9];
const IN_REDUCER: usize = 7;
const OUTSIDE_ELEMENTS: usize = 8;

/// Keeps every database it is shown with what was [`SPENT`] until then, and moves nothing.
#[derive(Default)]
struct Notebook(Mutex<Vec<(Database, [f64; 9])>>);

impl Strategy for Notebook {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        let milliseconds = SPENT.each_ref().map(|spent| spent.load(Relaxed) as f64 * 1e-6);
        self.0.lock().expect("nobody panics").push((database.clone(), milliseconds));
        Ok(Assignment::new(database.placement()))
    }
}

/// Spends time on something, and says so.
fn spend(on: usize, milliseconds: u64, wait: fn(Duration)) {
    let begin = Instant::now();
    wait(Duration::from_millis(milliseconds));
    SPENT[on].fetch_add(begin.elapsed().as_nanos() as u64, Relaxed);
}

fn spin(length: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < length {
        std::hint::spin_loop();
    }
}

fn slow_sum(a: u64, b: u64) -> u64 {
    spend(IN_REDUCER, REDUCER, spin);
    a + b
}

#[derive(Serialize, Deserialize)]
struct Worker {
    done: Exit<u64>,
}

#[chare(index = [i32; 1], sync)]
impl Worker {
    /// Works and contributes, and does nothing else in this delivery.
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        let wait = if me == 3 { std::thread::sleep } else { spin };
        spend(me as usize, WORK[me as usize], wait);
        cx.peers().contribute().counted(1);
        cx.peer([me]).look();
    }

    /// Takes no time, whatever was reduced just before.
    #[entry]
    fn look(&mut self, cx: &Cx<Self>) {
        cx.at_sync().rest();
    }

    /// Nobody does anything in the second period.
    #[entry]
    fn rest(&mut self, cx: &Cx<Self>) {
        cx.at_sync().end();
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        if cx.index()[0] >= CONTRIBUTORS {
            cx.peers().contribute().counted(1);
        }
    }

    #[entry(reduce = slow_sum)]
    fn counted(&mut self, cx: &Cx<Self>, count: u64) {
        self.done.exit(cx, count);
    }
}

/// The databases of the two periods of a run, and the milliseconds that were [`SPENT`] in the first.
fn recorded() -> ([Database; 2], [f64; 9]) {
    SPENT.iter().for_each(|spent| spent.store(0, Relaxed));
    let notebook = Arc::new(Notebook::default());
    let config = Config { balancer: vec!["Notebook".into()], ..Config::threads(2) };
    let report = equipoise::run(config.strategy("Notebook", notebook.clone(), false), |pe, done| {
        let place = |[i]: [i32; 1]| Pe(u32::from(i == 3));
        let workers = pe.array_placed([WORK.len() as i32], place, |_| Worker { done });
        pe.main(move |pe| {
            let start = pe.reply(move |pe, ()| {
                spend(OUTSIDE_ELEMENTS, OUTSIDE, spin);
                workers.at(pe, [3]).work();
                for i in 0..3 {
                    workers.at(pe, [i]).work();
                    workers.at(pe, [i + CONTRIBUTORS]).look();
                }
            });
            start.send(pe, ());
        });
    });
    assert_eq!(report.result, WORK.len() as u64);
    let periods = std::mem::take(&mut *notebook.0.lock().expect("nobody panics"));
    let [(first, spent), (second, _)] = periods.try_into().expect("two steps");
    assert!(spent[IN_REDUCER] >= REDUCER as f64, "something was combined in the first period");
    ([first, second], spent)
}

/// What is measured wrongly in a run, each a sentence.
fn mistakes() -> Vec<String> {
    let ([first, second], spent) = recorded();
    let mut mistakes = Vec::new();
    // The clocks of the test and of the runtime differ by less than half a millisecond.
    let mut check = |what: &str, seconds: f64, from: f64, to: f64| {
        let milliseconds = 1e3 * seconds;
        if !(from - 0.5..=to + SLACK).contains(&milliseconds) {
            mistakes.push(format!("{what}: {milliseconds:.3} ms are not {from:.3} to {to:.3} ms"));
        }
    };
    let [reducer, outside] = [spent[IN_REDUCER], spent[OUTSIDE_ELEMENTS]];
    for object in &first.objects {
        let index = object.index.coordinates()[0];
        let own = spent[index as usize];
        // Who comes second, or third, combines what is there with what it brings.
        let most = if index < CONTRIBUTORS { own + reducer } else { own };
        check(&format!("element {index}"), object.load_seconds, own, most);
    }
    for object in &second.objects {
        check(&format!("resting {:?}", object.index), object.load_seconds, 0.0, 0.0);
    }
    let [one, other] = [&first.pes[0], &first.pes[1]];
    // PE 1 sleeps in an element, and then has nothing to do while PE 0 works.
    let waits = spent[0] + spent[1] + outside - spent[3];
    check("idle time of PE 1", other.idle_seconds, waits, 1e3 * other.wall_seconds - spent[3]);
    check("idle time of PE 0", one.idle_seconds, 0.0, 0.0);
    // What comes from PE 1 is combined where no contributor runs.
    check("background of PE 0", one.background_seconds, outside, outside + reducer);
    check("background of PE 1", other.background_seconds, 0.0, 0.0);
    // Nothing is lost: what was spent is somewhere.
    let loads: f64 = first.objects.iter().map(|o| o.load_seconds).sum();
    let all = spent.iter().sum();
    check("everything", loads + one.background_seconds + other.background_seconds, all, all);
    for (name, pe) in [("PE 0", one), ("PE 1", other)] {
        check(&format!("wall time of {name}"), pe.wall_seconds, spent[0] + spent[1] + outside, f64::INFINITY);
    }
    mistakes
}

#[test]
fn what_takes_time_is_the_load_of_who_takes_it() {
    watched("measuring".into(), || {
        let mut last = Vec::new();
        for _ in 0..RUNS {
            last = mistakes();
            if last.is_empty() {
                return;
            }
        }
        panic!("in each of {RUNS} runs something is measured wrongly, in the last:\n{}", last.join("\n"));
    });
}

//! Measured load on threads: the load of an element is the time of its entries, the time of a reducer is load of a
//! contributor or background, and the rest of a PE's time is idle or background.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::model::database::Database;
use equipoise::model::{Assignment, Topology};
use equipoise::prelude::*;
use equipoise::strategies::{Strategy, StrategyError};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The work of each element in the first period, in milliseconds. The first three elements contribute to a
/// reduction on PE 0 and the last three receive messages there; the fourth sleeps on PE 1.
const WORK: [u64; 7] = [20, 5, 0, 10, 0, 0, 0];

/// The number of elements that contribute in the first period.
const CONTRIBUTORS: i32 = 4;

/// The time to combine two contributions, in milliseconds.
const REDUCER: u64 = 15;

/// The time of the closure outside elements on PE 0, in milliseconds.
const OUTSIDE: u64 = 12;

/// The most attempts: other processes may disturb a run, but one of these runs should be undisturbed.
const RUNS: usize = 40;

/// The tolerance of measured times, in milliseconds.
const SLACK: f64 = 3.0;

/// Nanoseconds spent by each element, in the reducer, and outside elements. If a core is preempted, both these and the
/// measured times include the preemption.
static SPENT: [AtomicU64; 9] = [const { AtomicU64::new(0) }; 9];
const IN_REDUCER: usize = 7;
const OUTSIDE_ELEMENTS: usize = 8;

/// Records every database, with the times [`SPENT`] until then; moves no object.
#[derive(Default)]
struct Notebook(Mutex<Vec<(Database, [f64; 9])>>);

impl Strategy for Notebook {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        let milliseconds = SPENT.each_ref().map(|spent| spent.load(Relaxed) as f64 * 1e-6);
        self.0.lock().expect("no thread panics").push((database.clone(), milliseconds));
        Ok(Assignment::new(database.placement()))
    }
}

/// Spends time, and adds it to [`SPENT`].
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
    /// Works and contributes in this delivery.
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        let [me] = cx.index();
        let wait = if me == 3 { std::thread::sleep } else { spin };
        spend(me as usize, WORK[me as usize], wait);
        cx.peers().contribute().counted(1);
        cx.peer([me]).look();
    }

    /// Takes no time; a reducer may have run just before.
    #[entry]
    fn look(&mut self, cx: &Cx<Self>) {
        cx.at_sync().rest();
    }

    /// Ends the second period, in which no element works.
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
    let periods = std::mem::take(&mut *notebook.0.lock().expect("no thread panics"));
    let [(first, spent), (second, _)] = periods.try_into().expect("two steps");
    assert!(spent[IN_REDUCER] >= REDUCER as f64, "something was combined in the first period");
    ([first, second], spent)
}

/// The errors of measurement in a run, one sentence each.
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
        // The load of a later contributor includes combining its contribution with the earlier ones.
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
    // The contribution of PE 1 is combined outside elements.
    check("background of PE 0", one.background_seconds, outside, outside + reducer);
    check("background of PE 1", other.background_seconds, 0.0, 0.0);
    // The sum of all measured times is the time spent.
    let loads: f64 = first.objects.iter().map(|o| o.load_seconds).sum();
    let all = spent.iter().sum();
    check("everything", loads + one.background_seconds + other.background_seconds, all, all);
    for (name, pe) in [("PE 0", one), ("PE 1", other)] {
        check(&format!("wall time of {name}"), pe.wall_seconds, spent[0] + spent[1] + outside, f64::INFINITY);
    }
    mistakes
}

#[test]
fn measured_times_equal_the_times_spent() {
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

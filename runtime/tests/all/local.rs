//! Access to elements of other arrays on the same PE.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{reduce, try_run};

/// Counts on every PE.
#[derive(Serialize, Deserialize)]
struct Counter {
    count: u64,
    lines: u64,
    /// The numbers of the pages that it received.
    pages: Vec<u64>,
    sum: Array<Sum>,
}

#[chare(index = Pe)]
impl Counter {
    /// Waits for lines, which are added in visits.
    #[entry(when = self.lines >= lines)]
    fn page(&mut self, _cx: &Cx<Self>, lines: u64) {
        self.pages.push(lines);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        assert!(self.pages.is_sorted(), "the messages of this PE in their order: {:?}", self.pages);
        self.sum.at(cx, ()).contribute().total(vec![self.count, self.pages.len() as u64]);
    }
}

/// Adds lines to the counter on its PE.
#[derive(Serialize, Deserialize)]
struct Editor {
    counters: Array<Counter>,
}

#[chare(index = Pe)]
impl Editor {
    #[entry]
    fn line(&mut self, cx: &Cx<Self>) {
        self.counters.local(cx, cx.index(), |counter| counter.lines += 1).expect("every PE has a counter");
    }
}

#[derive(Serialize, Deserialize)]
struct PerProcess {
    count: u64,
}

#[chare(index = Process)]
impl PerProcess {
    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}
}

#[derive(Serialize, Deserialize)]
struct Sum {
    done: Exit<Vec<u64>>,
}

#[chare(index = ())]
impl Sum {
    #[entry(reduce = reduce::sums)]
    fn total(&mut self, cx: &Cx<Self>, sums: Vec<u64>) {
        self.done.exit(cx, sums);
    }
}

const WALKERS: i32 = 8;
const STEPS: u32 = 60;

#[derive(Serialize, Deserialize)]
struct Walker {
    rng: Rng,
    counters: Array<Counter>,
    editors: Array<Editor>,
    processes: Array<PerProcess>,
}

#[chare(index = [i32; 1])]
impl Walker {
    #[entry]
    fn walk(&mut self, cx: &Cx<Self>, left: u32) {
        let lines = self.counters.local(cx, cx.here(), |counter| {
            counter.count += 1;
            // The caller can send from inside.
            if left > 0 {
                cx.peer([self.rng.sample(WALKERS as usize) as i32]).walk(left - 1);
            }
            // .. and reach another array.
            let seen = self.processes.local(cx, cx.process(), |process| process.count += 1);
            let is_first = (cx.here().0 as usize * cx.processes()).is_multiple_of(cx.pes());
            assert_eq!(seen.is_some(), is_first, "on the first PE of a process");
            counter.lines
        });
        // A page that waits for one more line.
        self.counters.at(cx, cx.here()).page(lines.expect("every PE has a counter") + 1);
        self.editors.at(cx, cx.here()).line();
        if cx.pes() > 1 {
            let other = Pe((cx.here().0 + 1) % cx.pes() as u32);
            assert_eq!(self.counters.local(cx, other, |counter| counter.count), None);
        }
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }
}

fn run(config: Config) -> equipoise::Report<Vec<u64>> {
    equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let pes = Pe(pe.pes() as u32);
        let sum = pe.array((), |()| Sum { done });
        let counters = pe.array(pes, |_| Counter { count: 0, lines: 0, pages: Vec::new(), sum });
        let editors = pe.array(pes, |_| Editor { counters });
        let processes = pe.array(Process(pe.processes() as u32), |_| PerProcess { count: 0 });
        let walkers =
            pe.array([WALKERS], |[i]| Walker { rng: Rng::new(seed, i as u64), counters, editors, processes });
        pe.main(move |pe| {
            for walk in 0..WALKERS {
                walkers.at(pe, [walk]).walk(STEPS);
            }
            counters.all(pe).at_quiescence().report();
            let count = counters.local(pe, pe.here(), |counter| counter.count);
            assert_eq!(count, Some(0), "`main` reaches elements, too");
        });
    })
}

#[test]
fn elements_reach_the_element_on_their_pe_without_a_message() {
    let walks = WALKERS as u64 * (u64::from(STEPS) + 1);
    everywhere(60, 40, move |config| {
        assert_eq!(run(config).result, [walks, walks]);
    });
    // A trace does not lose messages that a visit lets through.
    let dir = tempfile::tempdir().expect("a folder");
    let config = Config::on_machine("torus:2x2", "packet");
    let plain = run(config.clone());
    let mut traced = config;
    traced.records.record = Some(dir.path().join("run.trace"));
    let traced = run(traced);
    assert_eq!((plain.result, traced.result), (vec![walks, walks], vec![walks, walks]));
    let seconds = |machine: Option<equipoise::MachineReport>| machine.expect("a machine").seconds;
    assert_eq!(seconds(plain.machine), seconds(traced.machine));
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Call {
    Own,
    Nested,
    Outside,
}

#[derive(Serialize, Deserialize)]
struct Caller {
    others: Array<Other>,
}

#[chare(index = [i32; 1])]
impl Caller {
    #[entry]
    fn call(&mut self, cx: &Cx<Self>, call: Call) {
        let others = self.others;
        match call {
            Call::Own => _ = cx.array().local(cx, [0], |_| ()),
            Call::Nested => _ = others.local(cx, [0], |_| others.local(cx, [1], |_| ())),
            Call::Outside => _ = others.local(cx, [2], |_| ()),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Other;

#[chare(index = [i32; 1])]
impl Other {
    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}
}

#[test]
fn wrong_calls_are_refused() {
    for (call, sentence) in [
        (
            Call::Own,
            "`local` reaches elements of other arrays than that of the caller; send a message to Caller",
        ),
        (
            Call::Nested,
            "`local` is called inside of another `local` on Other; make the calls one after the other",
        ),
        (Call::Outside, "Other[2] is outside the array, whose shape is [2]"),
    ] {
        let run = try_run(Config::threads(1), move |pe, _: Exit<()>| {
            let others = pe.array([2], |_| Other);
            let callers = pe.array([1], |_| Caller { others });
            pe.main(move |pe| callers.at(pe, [0]).call(call));
        });
        let Err(error) = run else { panic!("{call:?} is accepted") };
        let error = error.to_string();
        assert!(
            error.contains(sentence) && error.contains(file!().rsplit('/').next().expect("a name")),
            "{error}"
        );
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[elements_reach_the_element_on_their_pe_without_a_message]);
}

//! Arrays with one element on every PE or in every process, restarted with another number of PEs or processes.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Report, RunError, reduce, try_run};

const WORKERS: i32 = 12;
const STEPS: u32 = 6;

/// Sends numbers to the counter of a PE and of a process. To which ones depends on the number of them, the sums do not.
#[derive(Serialize, Deserialize)]
struct Worker {
    counters: Array<Counter>,
    offices: Array<Office>,
    lead: Array<Lead>,
}

#[chare(index = [i32; 1])]
impl Worker {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>, step: u32) {
        let word = mixed(u64::from(step) << 32 | cx.index()[0] as u64);
        self.counters.at(cx, Pe((word % cx.pes() as u64) as u32)).add(word);
        self.offices.at(cx, Process((word % cx.processes() as u64) as u32)).add(mixed(word));
        self.lead.at(cx, ()).contribute().worked(());
    }
}

#[derive(Serialize, Deserialize)]
struct Counter {
    sum: u64,
    panics_at: Shared<u32>,
    lead: Array<Lead>,
}

impl Counter {
    /// The first new element gets what all saved ones have; the others begin anew.
    fn regroup(mut saved: Vec<Self>, count: usize) -> Vec<Self> {
        let all = saved.iter().fold(0, |sum: u64, counter| sum.wrapping_add(counter.sum));
        let Counter { panics_at, lead, .. } = saved.remove(0);
        (0..count).map(|at| Counter { sum: if at == 0 { all } else { 0 }, panics_at, lead }).collect()
    }
}

#[chare(index = Pe, sync, regroup = Counter::regroup)]
impl Counter {
    #[entry]
    fn add(&mut self, _cx: &Cx<Self>, word: u64) {
        self.sum = self.sum.wrapping_add(word);
    }

    /// A sync point, at which the run may save itself, too.
    #[entry]
    fn meet(&mut self, cx: &Cx<Self>, step: u32) {
        cx.at_sync().tell(step);
    }

    #[entry]
    fn tell(&mut self, cx: &Cx<Self>, step: u32) {
        if step == *self.panics_at.get(cx) {
            panic!("as asked");
        }
        self.lead.at(cx, ()).contribute().counted(self.sum);
    }
}

#[derive(Serialize, Deserialize)]
struct Office {
    words: Vec<u64>,
    lead: Array<Lead>,
}

#[chare(index = Process, regroup = |saved: Vec<Office>, count| {
    let lead = saved[0].lead;
    let words: Vec<u64> = saved.into_iter().flat_map(|office| office.words).collect();
    let part = |at| words.iter().copied().skip(at).step_by(count).collect();
    (0..count).map(|at| Office { words: part(at), lead }).collect()
})]
impl Office {
    #[entry]
    fn add(&mut self, _cx: &Cx<Self>, word: u64) {
        self.words.push(word);
    }

    #[entry]
    fn tell(&mut self, cx: &Cx<Self>) {
        let sum = self.words.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word));
        self.lead.at(cx, ()).contribute().reported((sum, self.words.len()));
    }
}

#[derive(Serialize, Deserialize)]
struct Lead {
    step: u32,
    sums: Vec<(u64, usize)>,
    workers: Option<Array<Worker>>,
    counters: Option<Array<Counter>>,
    offices: Option<Array<Office>>,
    done: Exit<Vec<(u64, usize)>>,
}

#[chare(index = ())]
impl Lead {
    #[entry]
    fn begin(
        &mut self,
        cx: &Cx<Self>,
        workers: Array<Worker>,
        counters: Array<Counter>,
        offices: Array<Office>,
    ) {
        (self.workers, self.counters, self.offices) = (Some(workers), Some(counters), Some(offices));
        workers.all(cx).work(0);
    }

    #[entry(reduce = reduce::nothing)]
    fn worked(&mut self, cx: &Cx<Self>, done: ()) {
        let () = done;
        self.counters.expect("known").all(cx).at_checkpoint().meet(self.step);
    }

    #[entry(reduce = u64::wrapping_add)]
    fn counted(&mut self, cx: &Cx<Self>, sum: u64) {
        self.sums.push((sum, 0));
        self.offices.expect("known").all(cx).at_checkpoint().tell();
    }

    #[entry(reduce = |a, b| (a.0.wrapping_add(b.0), a.1 + b.1))]
    fn reported(&mut self, cx: &Cx<Self>, sum: (u64, usize)) {
        self.sums.push(sum);
        self.step += 1;
        if self.step == STEPS {
            return self.done.exit(cx, self.sums.clone());
        }
        self.workers.expect("known").all(cx).work(self.step);
    }
}

/// Runs the program; with a panic in this step.
fn count(config: Config, panics_at: u32) -> Result<Report<Vec<(u64, usize)>>, RunError> {
    try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let lead = pe.array((), |()| Lead {
            step: 0,
            sums: Vec::new(),
            workers: None,
            counters: None,
            offices: None,
            done,
        });
        let counters = pe.array(Pe(pe.pes() as u32), |_| Counter { sum: 0, panics_at, lead });
        let offices = pe.array(Process(pe.processes() as u32), |_| Office { words: Vec::new(), lead });
        let workers = pe.array([WORKERS], |_| Worker { counters, offices, lead });
        pe.main(move |pe| lead.at(pe, ()).begin(workers, counters, offices));
    })
}

/// A number of PEs, and how many are in each process.
fn processes((pes, local): (usize, usize), seed: u64) -> Config {
    Config { pes_per_process: Some(local), ..Config::simulated(pes, seed) }
}

#[test]
fn elements_of_pes_and_processes_are_merged_split_and_made() {
    let expected = count(Config::simulated(1, 0), u32::MAX).expect("the run exits").result;
    assert_eq!(expected.len(), 2 * STEPS as usize);
    for seed in seeds(24) {
        let expected = expected.clone();
        watched(format!("seed {seed}"), move || {
            let dir = tempfile::tempdir().expect("a folder");
            // At a sync point, after one, and where the program says.
            let every = [None, Some(1), Some(2)][seed as usize % 3];
            let config = if seed % 2 == 0 { processes((4, 2), seed) } else { Config::threads(4) };
            let failed = count(saves(config, dir.path(), every), 1 + seed as u32 % (STEPS - 1));
            assert!(matches!(failed, Err(RunError::Panic { .. })), "{failed:?}");
            for pes in [1, 2, 3, 4, 6] {
                let local = if mixed(seed) % 2 == 0 { 1 } else { pes };
                for config in [processes((pes, local), seed), simulated(mixed(seed)), Config::threads(pes)] {
                    let config = restarts_on(config, dir.path());
                    let report = count(config.clone(), u32::MAX);
                    let report = report.unwrap_or_else(|error| panic!("{}: {error}", describe(&config)));
                    assert_eq!(report.result, expected, "{}", describe(&config));
                }
            }
        });
    }
}

/// What the runtime has for the elements when they are saved.
#[derive(Clone, Copy)]
enum Waits {
    Nothing,
    Guarded,
    Reduction,
    Postponed,
}

macro_rules! parts {
    ($name:ident, $run:ident $(, $key:ident = $regroup:expr)?) => {
        #[derive(Serialize, Deserialize)]
        struct $name {
            is_open: bool,
            done: Exit<()>,
        }

        #[chare(index = Pe $(, $key = $regroup)?)]
        impl $name {
            #[entry(when = self.is_open)]
            fn guarded(&mut self, _cx: &Cx<Self>) {}

            #[entry]
            fn contributes(&mut self, cx: &Cx<Self>) {
                cx.peer(Pe(0)).contribute().sum(1);
            }

            #[entry(reduce = reduce::sum)]
            fn sum(&mut self, _cx: &Cx<Self>, _sum: u32) {}

            #[entry]
            fn finish(&mut self, cx: &Cx<Self>) {
                if cx.index() == Pe(0) {
                    self.done.exit(cx, ());
                }
            }
        }

        /// Saves itself when something waits, and exits.
        fn $run(config: Config, waits: Waits) -> Result<Report<()>, RunError> {
            try_run(config, move |pe, done| {
                let parts = pe.array(Pe(pe.pes() as u32), |_| $name { is_open: false, done });
                pe.main(move |pe| {
                    match waits {
                        Waits::Nothing => {}
                        Waits::Guarded => parts.at(pe, Pe(1)).guarded(),
                        Waits::Reduction => parts.at(pe, Pe(1)).contributes(),
                        Waits::Postponed => parts.at(pe, Pe(3)).at_quiescence().contributes(),
                    }
                    parts.all(pe).at_checkpoint().finish();
                });
            })
        }
    };
}

parts!(
    Part,
    parts,
    regroup = |mut saved, count| {
        saved.truncate(count);
        saved
    }
);
parts!(Fixed, fixed);

type Run = fn(Config, Waits) -> Result<Report<()>, RunError>;

#[test]
fn a_restart_on_another_number_is_refused_with_a_sentence_that_says_why() {
    let cases: [(Run, Waits, usize, &str); 6] = [
        (
            fixed,
            Waits::Nothing,
            3,
            "4 elements of Fixed, which has one element on every PE, and this run has 3 (its chare does \
          not say with the key `regroup` how 4 become 3); restart with as many PEs as there were",
        ),
        (parts, Waits::Nothing, 2, ""),
        (
            parts,
            Waits::Nothing,
            5,
            "this run has 5, but the function of the key `regroup` returned 4 elements; restart with",
        ),
        (
            parts,
            Waits::Guarded,
            2,
            "but Part[1] has 1 message whose guard is false, the first for `guarded`; restart with",
        ),
        (
            parts,
            Waits::Reduction,
            2,
            "but Part[0] has taken part in 0 reductions and Part[1] in 1; restart with",
        ),
        (
            parts,
            Waits::Postponed,
            2,
            "has a message that waits for element 3 of Part, which has 2 elements in this run; restart with",
        ),
    ];
    for (run, waits, pes, sentence) in cases {
        let dir = tempfile::tempdir().expect("a folder");
        run(saves(Config::simulated(4, 7), dir.path(), None), waits).expect("the run exits");
        run(restarts_on(Config::simulated(4, 1), dir.path()), waits).expect("the same number restarts");
        for config in [Config::simulated(pes, 1), Config::threads(pes)] {
            let restarted = run(restarts_on(config, dir.path()), waits);
            match restarted {
                Ok(_) => assert_eq!(sentence, "", "it restarts"),
                Err(error) => assert!(
                    !sentence.is_empty() && error.to_string().contains(sentence),
                    "{sentence}: {error}"
                ),
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[elements_of_pes_and_processes_are_merged_split_and_made]);
}

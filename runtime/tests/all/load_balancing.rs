//! Load-balancing steps: the database has exactly the events of the run, and the assignment is applied, or reported
//! if it is impossible.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::model::database::{Database, End};
use equipoise::model::{Assignment, Topology};
use equipoise::prelude::*;
use equipoise::strategies::{Strategy, StrategyError};
use equipoise::{Comm, Report};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Records every database, and moves every migratable object by one to three PEs.
#[derive(Default)]
struct Spy {
    seen: Mutex<Vec<Database>>,
}

impl Strategy for Spy {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        let pes = database.pes.len() as u32;
        let on = |by: u32, pe: u32| (pe + 1 + by % 3) % pes;
        let moved = |(by, o): (u32, &equipoise::model::database::Object)| match o.migratable {
            true => on(by, o.pe),
            false => o.pe,
        };
        let answer = Assignment::new((0..).zip(&database.objects).map(moved).collect());
        self.seen.lock().unwrap().push(database.clone());
        Ok(answer)
    }
}

/// The array and the index of an element.
type Name = (u32, i32);

/// The PE of every element in each period.
type Places = BTreeMap<(Name, u32), u32>;

#[derive(Serialize, Deserialize)]
struct Judge {
    places: Places,
    missing: usize,
    done: Exit<Places>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn note(&mut self, cx: &Cx<Self>, places: Places) {
        self.places.extend(places);
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.places));
        }
    }
}

const STEPS: u32 = 6;
const ELEMENTS: i32 = 11;

/// The charge of an element in a period; exact in binary.
fn charge(name: Name, step: u32) -> f64 {
    f64::from(name.0 * 64 + name.1 as u32 * 8 + step + 1) / 1024.0
}

/// The row that an element sends to each of its two successors.
fn row(name: Name, step: u32) -> Vec<f64> {
    vec![0.5; (name.1 as u32 * 3 + step) as usize % 17]
}

/// A worker that sends two rows per period and waits for two.
macro_rules! workers {
    ($($name:ident: $array:literal, ($($option:ident),*);)*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $name {
            step: u32,
            missing: u32,
            places: Places,
            judge: Array<Judge>,
        }

        impl $name {
            fn new(judge: Array<Judge>) -> Self {
                Self { step: 0, missing: 2, places: Places::new(), judge }
            }
        }

        #[chare(index = [i32; 1], $($option),*)]
        impl $name {
            #[entry]
            fn go(&mut self, cx: &Cx<Self>) {
                let [i] = cx.index();
                let me = ($array, i);
                self.places.insert((me, self.step), cx.here().0);
                if self.step == STEPS {
                    return self.judge.at(cx, ()).note(std::mem::take(&mut self.places));
                }
                cx.pin(self.step % 2 == 1 && i % 3 == 0);
                let half = charge(me, self.step) / 2.0;
                if i % 4 == 3 {
                    cx.charge(77.0);
                    cx.set_load(half * 2.0);
                } else {
                    cx.charge(half);
                    cx.charge(half);
                }
                for far in [1, 2] {
                    let next = [(i + far) % ELEMENTS];
                    cx.peer(next).take(self.step, row(me, self.step), vec![("row".into(), far as u16)]);
                }
                // Messages of an element to itself are not recorded as communication.
                cx.peer([i]).ready(self.step);
            }

            #[entry(when = step == self.step)]
            fn take(&mut self, cx: &Cx<Self>, step: u32, row: Vec<f64>, label: Vec<(String, u16)>) {
                let i = (cx.index()[0] - i32::from(label[0].1 as i16)).rem_euclid(ELEMENTS);
                assert_eq!(row, self::row(($array, i), step));
                cx.charge(0.0);
                self.missing -= 1;
            }

            #[entry(when = step == self.step && self.missing == 0)]
            fn ready(&mut self, cx: &Cx<Self>, step: u32) {
                cx.charge(0.0);
                self.step = step + 1;
                self.missing = 2;
                cx.at_sync().go();
            }
        }
    )*};
}
workers! {
    Worker: 1, (sync);
    Fixed: 2, (sync, pinned);
}

fn spied(config: Config, spy: Arc<Spy>, communication: bool) -> Report<Places> {
    let config = Config { balancer: vec!["Spy".into()], ..config }.strategy("Spy", spy, communication);
    equipoise::run(config, |pe, done| {
        let judge = pe.array((), |()| Judge { places: Places::new(), missing: 2 * ELEMENTS as usize, done });
        let workers = pe.array([ELEMENTS], |_| Worker::new(judge));
        let fixed = pe.array([ELEMENTS], |_| Fixed::new(judge));
        // Load-balancing steps do not wait for arrays without elements.
        pe.array([0], |_| Worker::new(judge));
        pe.sparse::<_, Worker>([5]);
        pe.main(move |pe| {
            workers.all(pe).go();
            fixed.all(pe).go();
        });
    })
}

/// Messages and bytes of every edge between objects, by the names of its ends.
fn edges(database: &Database) -> BTreeMap<(Name, Name), (u64, u64)> {
    let name = |object: u32| {
        let object = &database.objects[object as usize];
        (object.array, object.index.coordinates()[0])
    };
    let mut edges = BTreeMap::new();
    for edge in &database.edges {
        if let (End::Object(from), End::Object(to)) = (edge.from, edge.to) {
            let old = edges.insert((name(from), name(to)), (edge.messages, edge.bytes));
            assert_eq!(old, None, "an edge is recorded twice");
        }
    }
    edges
}

#[test]
fn the_database_has_exactly_the_events_of_the_run_and_the_assignment_is_applied() {
    everywhere(40, 16, |config| {
        let spy = Arc::new(Spy::default());
        let report = spied(config.clone(), spy.clone(), true);
        assert!(report.lb_steps.iter().all(|step| step.error.is_none()));
        let seen = spy.seen.lock().unwrap();
        assert_eq!((seen.len(), report.lb_steps.len()), (STEPS as usize, STEPS as usize));
        for (step, database) in (0..).zip(seen.iter()) {
            let names: Vec<Name> = (1..=2).flat_map(|array| (0..ELEMENTS).map(move |i| (array, i))).collect();
            let judge = (0, 0);
            let found: Vec<Name> = database
                .objects
                .iter()
                .map(|o| (o.array, o.index.coordinates().first().copied().unwrap_or(0)))
                .collect();
            assert_eq!(found, [&[judge][..], &names].concat());
            for (o, &name) in database.objects[1..].iter().zip(&names) {
                assert_eq!(o.load_seconds, charge(name, step), "the load of {name:?} in step {step}");
                assert_eq!(o.pe, report.result[&(name, step)], "the place of {name:?} in step {step}");
                let pinned = name.0 == 2 || step % 2 == 1 && name.1 % 3 == 0;
                assert_eq!(o.migratable, !pinned, "{name:?} in step {step}");
                let next = report.result[&(name, step + 1)];
                let pes = config.pes.unwrap_or(1) as u32;
                let moved = (o.pe + 1 + (ELEMENTS as u32 * (name.0 - 1) + name.1 as u32 + 1) % 3) % pes;
                assert_eq!(
                    next,
                    if pinned { o.pe } else { moved },
                    "the new place of {name:?} in step {step}"
                );
            }
            let expected: BTreeMap<_, _> = names
                .iter()
                .flat_map(|&(array, i)| {
                    // The variant, the step, the row as a block of bytes; the label as a list of a text and a u16.
                    let bytes = 4 + 4 + (8 + 8 * row((array, i), step).len() as u64) + 8 + (8 + 3) + 2;
                    [1, 2].map(|far| (((array, i), (array, (i + far) % ELEMENTS)), (1, bytes)))
                })
                .collect();
            assert_eq!(edges(database), expected, "the edges of step {step}");
            assert_eq!(database.dangling_edges, 0);
        }
    });
}

#[test]
fn communication_is_recorded_if_the_strategy_or_the_user_asks() {
    for (asks, flag, recorded) in [
        (false, Comm::Auto, false),
        (true, Comm::Auto, true),
        (false, Comm::On, true),
        (true, Comm::Off, false),
    ] {
        everywhere(3, 3, move |config| {
            let spy = Arc::new(Spy::default());
            spied(Config { lb_comm: flag, ..config }, spy.clone(), asks);
            let seen = spy.seen.lock().unwrap();
            assert!(seen.iter().all(|database| database.edges.is_empty() != recorded), "{asks} {flag:?}");
        });
    }
}

/// A strategy that gives impossible answers.
struct Bad(u64);

impl Strategy for Bad {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        let pes = database.pes.len() as u32;
        let mut answer: Vec<u32> = database.objects.iter().map(|o| o.pe).collect();
        // A part of the assignment is valid: this object is never pinned.
        answer[2] = (answer[2] + 1) % pes;
        let last = answer.len() - 1;
        match self.0 {
            0 => drop(answer.pop()),
            1 => answer.push(0),
            2 => answer[last] = pes,
            3 => answer[last] = u32::MAX,
            // The last array is pinned; the first array is not `sync`.
            4 => answer[last] = (answer[last] + 1) % pes,
            5 => answer[0] = (answer[0] + 1) % pes,
            6 => return Err(StrategyError::Request("it has no idea".into())),
            _ => panic!("it fell over"),
        }
        Ok(Assignment::new(answer))
    }
}

/// What is wrong with the answers of [`Bad`], by kind.
const SENTENCES: [&str; 8] = [
    "it has PEs for 22 objects, but the database has 23",
    "it has PEs for 24 objects, but the database has 23",
    "on PE ",
    "on PE 4294967295, but there are",
    "object 22 is not migratable, but is moved",
    "object 0 is not migratable, but is moved",
    "it has no idea",
    "Bad failed: the strategy panicked: it fell over",
];

/// A run with a strategy that gives impossible answers of a kind that the seed chooses.
fn badly_balanced(config: Config) -> Result<Report<Places>, equipoise::RunError> {
    let bad = Arc::new(Bad(config.seed % 8));
    let config = with_pes(&config, 2 + config.seed as usize % 3);
    let config = Config { balancer: vec!["Bad".into()], ..config }.strategy("Bad", bad, false);
    equipoise::try_run(config, |pe, done| {
        let judge = pe.array((), |()| Judge { places: Places::new(), missing: 2 * ELEMENTS as usize, done });
        let workers = pe.array([ELEMENTS], |_| Worker::new(judge));
        let fixed = pe.array([ELEMENTS], |_| Fixed::new(judge));
        pe.main(move |pe| {
            workers.all(pe).go();
            fixed.all(pe).go();
        });
    })
}

#[test]
fn a_step_that_fails_ends_the_run_if_the_user_asks() {
    everywhere(16, 8, |config| {
        let kind = config.seed as usize % 8;
        let error = badly_balanced(Config { lb_strict: true, ..config }).map(|report| report.result);
        let error = error.expect_err("the first step fails");
        assert_eq!(error.exit_code(), 1);
        let error = error.to_string();
        assert!(error.starts_with("load-balancing step 0: ") && error.contains(SENTENCES[kind]), "{error}");
        assert!(error.contains("; --lb-strict ends the run"), "{error}");
    });
}

#[test]
fn an_impossible_assignment_is_reported_and_not_applied() {
    everywhere(16, 8, |config| {
        let kind = config.seed % 8;
        let report = badly_balanced(config).expect("the run goes on");
        assert_eq!((report.lb_steps.len(), report.migrations), (STEPS as usize, 0));
        for step in &report.lb_steps {
            assert_eq!(step.strategy.as_deref(), Some("Bad"));
            let error = step.error.as_deref().unwrap_or("");
            assert!(error.contains(SENTENCES[kind as usize]), "{error}");
        }
        for ((name, step), pe) in &report.result {
            assert_eq!(*pe, report.result[&(*name, 0)], "{name:?} moved in step {step}");
        }
    });
}

/// Charges a power of two per delivery, and switches measuring off and on.
#[derive(Serialize, Deserialize)]
struct Meter {
    done: Exit<u32>,
}

#[chare(index = (), sync)]
impl Meter {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>, bit: u32) {
        cx.charge(f64::from(1 << bit));
        match bit {
            1 => cx.measure(false),
            3 => cx.measure(true),
            6 => return cx.at_sync().end(),
            _ => {}
        }
        cx.peer(()).work(bit + 1);
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, 0);
    }
}

#[test]
fn measuring_can_be_switched_off_and_on_from_the_next_delivery_on() {
    for (before, load) in [(true, 0b111_0011), (false, 0b111_0000)] {
        let config = Config { balancer: vec!["DummyLB".into()], ..Config::simulated(1, 0) };
        let report = equipoise::run(config, |pe, done| {
            let meter = pe.array((), |()| Meter { done });
            pe.main(move |pe| {
                pe.measure(before);
                meter.at(pe, ()).work(0);
            });
        });
        assert_eq!(report.lb_steps[0].before.max_load_seconds, f64::from(load));
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        the_database_has_exactly_the_events_of_the_run_and_the_assignment_is_applied,
        communication_is_recorded_if_the_strategy_or_the_user_asks,
        an_impossible_assignment_is_reported_and_not_applied,
        a_step_that_fails_ends_the_run_if_the_user_asks,
    ]);
}

/// Notes where it is after each step; PE lists are written meanwhile.
#[derive(Serialize, Deserialize)]
struct Guest {
    round: u32,
    places: Vec<u32>,
    done: Exit<Vec<Vec<u32>>>,
    list: std::path::PathBuf,
}

/// The lists of available PEs by step; the last one is wrong, so that the one before counts.
const LISTS: [&str; 5] = ["0\n1\n2\n3\n", "1\n3\n", "2\n", "0\n1\n2\n3\n", "7\n"];

#[chare(index = [i32; 1], sync)]
impl Guest {
    #[entry]
    fn come(&mut self, cx: &Cx<Self>) {
        self.places.push(cx.here().0);
        self.round += 1;
        if self.round as usize > LISTS.len() {
            return cx.peer([0]).contribute().all(vec![std::mem::take(&mut self.places)]);
        }
        cx.charge(1e-3);
        cx.peer([0]).contribute().next(());
    }

    #[entry(reduce = equipoise::reduce::nothing)]
    fn next(&mut self, cx: &Cx<Self>, _none: ()) {
        std::fs::write(&self.list, LISTS[self.round as usize - 1]).unwrap();
        cx.peers().sync();
    }

    #[entry]
    fn sync(&mut self, cx: &Cx<Self>) {
        cx.at_sync().come();
    }

    #[entry(reduce = equipoise::reduce::concat)]
    fn all(&mut self, cx: &Cx<Self>, places: Vec<Vec<u32>>) {
        self.done.exit(cx, places);
    }
}

#[test]
fn elements_leave_pes_that_are_not_available_and_return() {
    use equipoise::Transport::{Simulated, Threads};
    let shapes = [(None, Threads), (None, Simulated), (Some(1), Simulated), (Some(2), Simulated)];
    for balancer in ["GreedyLB", "GreedyRefineLB", "RefineLB", "RotateLB", "RandomLB", "PoiseLB", "TopoLB"] {
        for (pes_per_process, transport) in shapes {
            let folder = tempfile::tempdir().unwrap();
            let list = folder.path().join("pes");
            std::fs::write(&list, LISTS[0]).unwrap();
            let config = Config {
                balancer: vec![balancer.into()],
                pes_available: Some(list.clone()),
                transport,
                pes_per_process,
                ..Config::threads(4)
            };
            let report = equipoise::run(config, |pe, done| {
                let list = list.clone();
                let guests =
                    pe.array([12], move |_| Guest { round: 0, places: Vec::new(), done, list: list.clone() });
                pe.main(move |pe| guests.all(pe).come());
            });
            let on = |round: usize| {
                let mut pes: Vec<u32> = report.result.iter().map(|places| places[round]).collect();
                pes.sort_unstable();
                pes.dedup();
                pes
            };
            let run = format!("{balancer}, {transport:?}, {pes_per_process:?}");
            assert!(on(2).iter().all(|pe| [1, 3].contains(pe)), "{run}: {:?}", on(2));
            assert_eq!(on(3), [2], "{run}");
            assert!(on(4).iter().any(|pe| *pe != 2), "{run}: PEs come back");
            assert!(on(5).iter().all(|pe| *pe < 4), "{run}");
        }
    }
}

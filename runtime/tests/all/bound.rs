//! Bound arrays: elements with one index are always on one PE, whatever migrates them.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::model::database::{Database, End};
use equipoise::model::{Assignment, Topology};
use equipoise::prelude::*;
use equipoise::strategies::{Strategy, StrategyError};
use equipoise::{Report, RunError, try_run};
use std::sync::{Arc, Mutex};

const PAIRS: i32 = 9;
const LAST: u32 = 24;

/// The sum of the states, and the visits and broadcasts that all elements counted.
type Sums = (u64, u64, u64);

/// Leads: an element of `Inner` and one of `Tail` are bound to it.
#[derive(Serialize, Deserialize)]
struct Lead {
    rng: Rng,
    turn: u32,
    state: u64,
    /// Counted by the bound elements, in their visits.
    ticks: u64,
    restless: bool,
    bound: Option<(Array<Inner>, Array<Tail>)>,
    judge: Array<Judge>,
}

#[chare(index = [i32; 1], sync)]
impl Lead {
    #[entry]
    fn meet(&mut self, cx: &Cx<Self>, inner: Array<Inner>, tail: Array<Tail>) {
        self.bound = Some((inner, tail));
        if cx.index() == [0] {
            cx.peers().at_quiescence().go();
        }
    }

    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        let [me] = cx.index();
        let (inner, tail) = self.bound.expect("they have met");
        self.turn += 1;
        let turn = self.turn;
        // The guard of `word` in the bound element becomes true here.
        let heard = inner.local(cx, [me], |inner| {
            inner.turn = turn;
            inner.visits += 1;
            inner.state
        });
        tail.local(cx, [me], |tail| tail.visits += 1).expect("the element of `Tail` is here");
        self.state = mixed(self.state ^ heard.expect("the element of `Inner` is here"));
        if turn > LAST {
            return self.judge.at(cx, ()).contribute().total(self.state);
        }
        inner.at(cx, [(me + 1) % PAIRS]).word(turn, self.state);
        if me == 0 {
            inner.all(cx).tick();
            tail.all(cx).tick();
        }
        if self.restless && self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }

    #[entry]
    fn next(&mut self, cx: &Cx<Self>) {
        if self.turn.is_multiple_of(3) {
            let (_, tail) = self.bound.expect("they have met");
            tail.at(cx, cx.index()).sync();
            cx.at_sync().go();
        } else {
            self.go(cx);
        }
    }

    #[entry]
    fn count(&mut self, cx: &Cx<Self>) {
        let (inner, tail) = self.bound.expect("they have met");
        let visits = inner.local(cx, cx.index(), |inner| inner.visits).expect("it is here")
            + tail.local(cx, cx.index(), |tail| tail.visits).expect("it is here");
        self.judge.at(cx, ()).contribute().counted((visits, self.ticks));
    }
}

#[derive(Serialize, Deserialize)]
struct Inner {
    turn: u32,
    state: u64,
    visits: u64,
    lead: Array<Lead>,
}

#[chare(index = [i32; 1])]
impl Inner {
    #[entry(when = turn == self.turn)]
    fn word(&mut self, cx: &Cx<Self>, turn: u32, word: u64) {
        cx.charge(2.0);
        self.turn = turn;
        self.state = mixed(self.state ^ word);
        // Until the next turn, the words of the neighbor wait.
        self.lead.local(cx, cx.index(), |lead| lead.state ^= 1).expect("the element of `Lead` is here");
        self.lead.at(cx, cx.index()).next();
    }

    #[entry]
    fn tick(&mut self, cx: &Cx<Self>) {
        self.lead.local(cx, cx.index(), |lead| lead.ticks += 1).expect("the element of `Lead` is here");
    }
}

#[derive(Serialize, Deserialize)]
struct Tail {
    syncing: bool,
    visits: u64,
    lead: Array<Lead>,
}

#[chare(index = [i32; 1], sync)]
impl Tail {
    #[entry(when = !self.syncing)]
    fn sync(&mut self, cx: &Cx<Self>) {
        self.syncing = true;
        cx.at_sync().synced();
    }

    #[entry]
    fn synced(&mut self, cx: &Cx<Self>) {
        self.syncing = false;
        self.lead.local(cx, cx.index(), |_| ()).expect("the element of `Lead` is here");
    }

    #[entry]
    fn tick(&mut self, cx: &Cx<Self>) {
        self.lead.local(cx, cx.index(), |lead| lead.ticks += 1).expect("the element of `Lead` is here");
    }
}

#[derive(Serialize, Deserialize)]
struct Judge {
    total: u64,
    lead: Option<Array<Lead>>,
    done: Exit<Sums>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn meet(&mut self, _cx: &Cx<Self>, lead: Array<Lead>) {
        self.lead = Some(lead);
    }

    #[entry(reduce = u64::wrapping_add)]
    fn total(&mut self, cx: &Cx<Self>, total: u64) {
        self.total = total;
        self.lead.expect("they have met").all(cx).at_quiescence().count();
    }

    #[entry(reduce = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1 + b.1))]
    fn counted(&mut self, cx: &Cx<Self>, counts: (u64, u64)) {
        self.done.exit(cx, (self.total, counts.0, counts.1));
    }
}

fn run(config: Config, restless: bool) -> Result<Report<Sums>, RunError> {
    try_run(config, move |pe, done| {
        let seed = pe.seed();
        let judge = pe.array((), |()| Judge { total: 0, lead: None, done });
        let lead = pe.array([PAIRS], |[i]| Lead {
            rng: Rng::new(seed, i as u64),
            turn: 0,
            state: i as u64,
            ticks: 0,
            restless,
            bound: None,
            judge,
        });
        let inner = pe.array_bound(&lead, |[i]| Inner { turn: 0, state: i as u64, visits: 0, lead });
        let tail = pe.array_bound(&inner, |_| Tail { syncing: false, visits: 0, lead });
        pe.main(move |pe| {
            judge.at(pe, ()).meet(lead);
            lead.all(pe).meet(inner, tail);
        });
    })
}

fn balanced(config: Config) -> Config {
    let balancer = ["RotateLB", "RandomLB"].get(mixed(config.seed) as usize % 3);
    Config { balancer: balancer.map(|name| name.to_string()).into_iter().collect(), ..config }
}

/// The counts: visits of both bound arrays, and broadcasts to both.
const COUNTS: (u64, u64) = (PAIRS as u64 * 2 * (LAST as u64 + 1), PAIRS as u64 * 2 * LAST as u64);

fn expected(seed: u64) -> Sums {
    let config = Config { seed, ..Config::simulated(1, 0) };
    let sums = run(config, false).expect("the run exits").result;
    assert_eq!((sums.1, sums.2), COUNTS);
    sums
}

#[test]
fn bound_elements_are_together_while_they_migrate() {
    everywhere(160, 60, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let restless = config.seed % 4 != 3;
        let report = run(config.clone(), restless).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.result, expected(config.seed));
        assert_eq!(report.lb_steps.len(), LAST as usize / 3);
        if report.pes > 1 && !restless {
            // Each step moves all, which are three elements in an object.
            assert_eq!(report.migrations, 3 * PAIRS as u64 * u64::from(LAST) / 3);
        }
    });
}

#[test]
fn bound_elements_are_together_after_a_restart_on_other_pes() {
    everywhere(48, 16, |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let every = Some(1 + (config.seed % 3) as u32);
        let config = saves(balanced(config), dir.path(), every);
        let report = run(config.clone(), true).expect("the run exits");
        assert_eq!(report.result, expected(config.seed));
        let other = if config.seed % 3 == 0 { threads(config.seed + 5) } else { simulated(config.seed + 7) };
        for folder in Checkpoint::all(dir.path()).expect("checkpoints") {
            let other = restarts_on(balanced(Config { seed: config.seed, ..other.clone() }), &folder);
            let report =
                run(other.clone(), true).unwrap_or_else(|error| panic!("{}: {error}", describe(&other)));
            assert_eq!(report.result, expected(config.seed), "{}", describe(&other));
        }
    });
}

/// Keeps the last database.
#[derive(Default)]
struct Spy(Mutex<Option<Database>>);

impl Strategy for Spy {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        *self.0.lock().expect("no thread panics") = Some(database.clone());
        Ok(Assignment::new(database.placement()))
    }
}

#[test]
fn a_step_sees_bound_elements_as_one_object() {
    let spy = Arc::new(Spy::default());
    let config = Config { balancer: vec!["Spy".into()], ..Config::simulated(3, 0) };
    run(config.strategy("Spy", spy.clone(), true), false).expect("the run exits");
    let database = spy.0.lock().expect("no thread panics").take().expect("there was a step");
    assert_eq!(database.objects.len(), PAIRS as usize + 1, "the pairs and the judge");
    let lead = database.objects.iter().filter(|object| object.migratable).map(|object| object.array).max();
    let lead = lead.expect("the pairs are migratable");
    assert_eq!(database.arrays[lead as usize], "Lead");
    let mut pairs = 0;
    for (at, object) in (0..).zip(&database.objects).filter(|(_, object)| object.array == lead) {
        pairs += 1;
        assert_eq!(object.index.coordinates().len(), 1);
        // Three turns in a period: 1 second of the leader and 2 of the element of `Inner`.
        assert!((8.0..10.0).contains(&object.load_seconds), "{}", object.load_seconds);
        assert!(object.bytes.is_some_and(|bytes| bytes > 0));
        // What it sends to its own bound elements is not communication.
        let edges = database.edges.iter().filter(|edge| edge.from == End::Object(at));
        let receivers: Vec<End> = edges.map(|edge| edge.to).collect();
        assert_eq!(receivers.len(), 1, "the words for the next pair: {receivers:?}");
        assert!(!receivers.contains(&End::Object(at)));
    }
    assert_eq!(pairs, PAIRS);
    assert_eq!(database.dangling_edges, 0);
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Call {
    Migrate,
    DestroyFollower,
    DestroyLeader,
}

#[derive(Serialize, Deserialize)]
struct First;

#[chare(index = [i32; 2])]
impl First {
    #[entry]
    fn call(&mut self, cx: &Cx<Self>) {
        cx.destroy();
    }
}

#[derive(Serialize, Deserialize)]
struct Second;

#[chare(index = [i32; 2])]
impl Second {
    #[entry]
    fn call(&mut self, cx: &Cx<Self>, call: Call) {
        match call {
            Call::Migrate => cx.migrate(Pe(0)),
            _ => cx.destroy(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Fixed;

#[chare(index = [i32; 2], pinned)]
impl Fixed {
    #[entry]
    fn call(&mut self, _cx: &Cx<Self>) {}
}

#[track_caller]
fn fails(sentence: &str, setup: impl Fn(&Setup, Exit<()>) + Send + Sync + 'static) {
    let Err(error) = try_run(Config::threads(2), setup) else { panic!("it ran") };
    assert!(error.to_string().contains(sentence), "{error}");
}

#[test]
fn wrong_calls_are_refused() {
    for (call, sentence) in [
        (Call::Migrate, "Second cannot migrate: it is bound to First; call `migrate` in First"),
        (Call::DestroyFollower, "Second and First are bound to each other and cannot be destroyed"),
        (Call::DestroyLeader, "First and Second are bound to each other and cannot be destroyed"),
    ] {
        fails(sentence, move |pe, _| {
            let first = pe.array([2, 2], |_| First);
            let second = pe.array_bound(&first, |_| Second);
            pe.main(move |pe| match call {
                Call::DestroyLeader => first.at(pe, [1, 1]).call(),
                _ => second.at(pe, [1, 1]).call(call),
            });
        });
    }
    fails("Second cannot be bound to First, whose elements are inserted; make First with", |pe, _| {
        let first = pe.sparse::<_, First>([2, 2]);
        pe.array_bound(&first, |_| Second);
    });
    fails("Fixed is `pinned` and cannot be bound to First, whose elements migrate", |pe, _| {
        let first = pe.array([2, 2], |_| First);
        pe.array_bound(&first, |_| Fixed);
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        bound_elements_are_together_while_they_migrate,
        bound_elements_are_together_after_a_restart_on_other_pes,
    ]);
}

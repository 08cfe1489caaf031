//! Sections: multicasts and reductions while members migrate, across arrays, through restarts, and prefixes.

#![allow(missing_docs)]

mod wrong;

use crate::checkpoints::{restarts_on, saves};
use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Report, RunError, reduce, try_run};
use std::collections::BTreeMap;

const SIZES: [i32; 2] = [11, 6];
const STEPS: u32 = 12;

/// Two arrays of one chare. Their elements have numbers: those of the second array follow those of the first one.
type Arrays = [Array<Hearer>; 2];

/// By receiver: the senders and steps of the multicasts that it received, in order.
type Heard = BTreeMap<i32, Vec<(i32, u32)>>;

fn receives_from(from: i32, step: u32, to: i32) -> bool {
    mixed(from as u64 * 10_000 + u64::from(step) * 100 + to as u64) % 3 == 0
}

#[derive(Serialize, Deserialize)]
struct Hearer {
    first: i32,
    step: u32,
    rng: Rng,
    heard: Vec<(i32, u32)>,
    listener: Array<Listener>,
}

#[chare(index = [i32; 1], sync)]
impl Hearer {
    /// Sends to another section in each step.
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, arrays: Arrays, step: u32) {
        self.step = step;
        let me = self.first + cx.index()[0];
        let first = arrays[0].section(cx, |[to]| receives_from(me, step, to));
        let second = (0..SIZES[1]).filter(|to| receives_from(me, step, SIZES[0] + to)).map(|to| [to]);
        let section = first.and(&arrays[1].section_of(cx, second));
        assert_eq!(section.contains(cx, cx.array(), cx.index()), receives_from(me, step, me));
        if step % 3 == 1 {
            section.all(cx).at_quiescence().hear(me, step);
        } else {
            section.all(cx).hear(me, step);
        }
        self.wander(cx);
        match step + 1 {
            STEPS => {}
            next if next % 3 == 0 => cx.at_sync().go(arrays, next),
            next => cx.peer(cx.index()).go(arrays, next),
        }
    }

    /// Waits until this element has come as far as the sender.
    #[entry(when = self.step >= step)]
    fn hear(&mut self, cx: &Cx<Self>, from: i32, step: u32) {
        self.heard.push((from, step));
        self.wander(cx);
    }

    /// The reports wait until the multicasts have arrived that waited for quiescence.
    #[entry]
    fn close(&mut self, cx: &Cx<Self>, arrays: Arrays) {
        arrays.iter().for_each(|array| array.all(cx).at_quiescence().report());
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.heard.sort_unstable();
        let me = self.first + cx.index()[0];
        self.listener.at(cx, ()).note(me, std::mem::take(&mut self.heard));
    }
}

impl Hearer {
    fn wander(&mut self, cx: &Cx<Self>) {
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Listener {
    all: Heard,
    done: Exit<Heard>,
}

#[chare(index = ())]
impl Listener {
    #[entry]
    fn note(&mut self, cx: &Cx<Self>, of: i32, heard: Vec<(i32, u32)>) {
        self.all.insert(of, heard);
        if self.all.len() as i32 == SIZES[0] + SIZES[1] {
            self.done.exit(cx, std::mem::take(&mut self.all));
        }
    }
}

#[test]
fn a_multicast_reaches_each_member_once_while_members_migrate() {
    everywhere(80, 24, |config| {
        let balancer = if config.seed % 3 == 0 { vec![] } else { vec!["RotateLB".into()] };
        let report = equipoise::run(Config { balancer, ..config }, |pe, done| {
            let seed = pe.seed();
            let listener = pe.array((), |()| Listener { all: Heard::new(), done });
            let hearer = |first| {
                move |[at]: [i32; 1]| {
                    let rng = Rng::new(seed, (first + at) as u64);
                    Hearer { first, step: 0, rng, heard: Vec::new(), listener }
                }
            };
            let arrays = [pe.array([SIZES[0]], hearer(0)), pe.array([SIZES[1]], hearer(SIZES[0]))];
            pe.main(move |pe| {
                arrays.iter().for_each(|array| array.all(pe).go(arrays, 0));
                arrays[0].at(pe, [0]).at_quiescence().close(arrays);
            });
        });
        let all = 0..SIZES[0] + SIZES[1];
        for to in all.clone() {
            let sent = all.clone().flat_map(|from| (0..STEPS).map(move |step| (from, step)));
            let expected: Vec<(i32, u32)> =
                sent.filter(|&(from, step)| receives_from(from, step, to)).collect();
            assert_eq!(report.result[&to], expected, "element {to}");
        }
    });
}

const SHAPE: [i32; 2] = [5, 4];
const ROUNDS: u32 = 10;

/// The bits of results, by receiver and by the name of the reduction.
type Results = BTreeMap<(i32, u32), u64>;

/// A contribution with the name of its reduction.
type Named = (u32, f64);

fn add(a: Named, b: Named) -> Named {
    assert_eq!(a.0, b.0, "contributions to different reductions are combined");
    (a.0, a.1 + b.1)
}

/// The name of a reduction: its kind, its row or column, its round.
fn name(kind: u32, at: i32, round: u32) -> u32 {
    kind * 10_000 + at as u32 * 100 + round
}

fn rank([x, y]: [i32; 2]) -> i32 {
    x + SHAPE[0] * y
}

/// Terms of very different size, so that another order of addition changes the sum.
fn term(index: [i32; 2], round: u32) -> f64 {
    let word = mixed(rank(index) as u64 * 1000 + u64::from(round));
    (word >> 12) as f64 * 0.1 * 10f64.powi((word % 24) as i32 - 12)
}

#[derive(Serialize, Deserialize)]
struct Cell {
    rng: Rng,
    results: Results,
    judge: Array<Judge>,
}

#[chare(index = [i32; 2], sync)]
impl Cell {
    /// Contributes to its row, its column, the even cells and all, without waiting for a result.
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, round: u32) {
        let [x, y] = cx.index();
        let value = term([x, y], round);
        let row = cx.array().section(cx, |[_, other]| other == y);
        let column = cx.array().section_of(cx, (0..SHAPE[1]).map(|y| [x, y]));
        let even = cx.array().section(cx, |[x, y]| (x + y) % 2 == 0);
        self.judge.at(cx, ()).contribute_in(&row).sum((name(0, y, round), value));
        cx.peers().contribute().receive((name(3, 0, round), value));
        column.all(cx).contribute_in(&column).receive((name(1, x, round), value));
        if even.contains(cx, cx.array(), [x, y]) {
            cx.peer([1, 0]).contribute_in(&even).receive((name(2, 0, round), value));
        }
        cx.peers().contribute().prefix().receive((name(4, 0, round), value));
        row.all(cx).contribute_in(&row).prefix().receive((name(5, y, round), value));
        if self.rng.once_in(2) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        match round + 1 {
            ROUNDS => {}
            // Sometimes the contributions of two rounds in one delivery.
            next if next % 2 == 0 && self.rng.once_in(3) => self.go(cx, next),
            next if next % 2 == 1 => cx.at_sync().go(next),
            next => cx.peer(cx.index()).go(next),
        }
    }

    #[entry(reduce = add)]
    fn receive(&mut self, cx: &Cx<Self>, named: Named) {
        let (name, value) = named;
        let before = self.results.insert((rank(cx.index()), name), value.to_bits());
        assert_eq!(before, None, "received {name} twice");
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).note(std::mem::take(&mut self.results));
    }
}

#[derive(Serialize, Deserialize)]
struct Judge {
    results: Results,
    missing: i32,
    done: Exit<Results>,
}

#[chare(index = ())]
impl Judge {
    #[entry(reduce = add)]
    fn sum(&mut self, _cx: &Cx<Self>, named: Named) {
        let (name, value) = named;
        let before = self.results.insert((-1, name), value.to_bits());
        assert_eq!(before, None, "received {name} twice");
    }

    #[entry]
    fn note(&mut self, cx: &Cx<Self>, results: Results) {
        self.results.extend(results);
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.results));
        }
    }
}

fn outcome(config: Config) -> Results {
    let report = equipoise::run(config, |pe, done| {
        let (seed, missing) = (pe.seed(), SHAPE[0] * SHAPE[1]);
        let judge = pe.array((), |()| Judge { results: Results::new(), missing, done });
        let rng = |index| Rng::new(seed, rank(index) as u64);
        let cells = pe.array(SHAPE, |index| Cell { rng: rng(index), results: Results::new(), judge });
        pe.main(move |pe| {
            cells.all(pe).go(0);
            cells.all(pe).at_quiescence().report();
        });
    });
    report.result
}

/// The expected results; sums are approximate.
fn expected() -> BTreeMap<(i32, u32), f64> {
    let all: Vec<[i32; 2]> = (0..SHAPE[1]).flat_map(|y| (0..SHAPE[0]).map(move |x| [x, y])).collect();
    let mut expected = BTreeMap::new();
    for round in 0..ROUNDS {
        let sum = |member: &dyn Fn([i32; 2]) -> bool| -> f64 {
            all.iter().filter(|&&index| member(index)).map(|&index| term(index, round)).sum()
        };
        expected.extend((0..SHAPE[1]).map(|row| ((-1, name(0, row, round)), sum(&|[_, y]| y == row))));
        expected.insert((rank([1, 0]), name(2, 0, round)), sum(&|[x, y]| (x + y) % 2 == 0));
        for &[x, y] in &all {
            let me = rank([x, y]);
            expected.insert((me, name(1, x, round)), sum(&|other| other[0] == x));
            expected.insert((me, name(3, 0, round)), sum(&|_| true));
            expected.insert((me, name(4, 0, round)), sum(&|other| rank(other) <= me));
            expected.insert((me, name(5, y, round)), sum(&|other| other[1] == y && other[0] <= x));
        }
    }
    expected
}

#[test]
fn reductions_over_sections_and_prefixes_have_the_same_bits_on_any_machine() {
    let reference = outcome(Config::simulated(1, 0));
    let expected = expected();
    assert!(reference.keys().eq(expected.keys()), "a result is missing, or there are too many");
    for (key, &bits) in &reference {
        let (value, about) = (f64::from_bits(bits), expected[key]);
        assert!((value - about).abs() <= 1e-12 * about.abs(), "{key:?}: {value}, not {about}");
    }
    let on_pes = (1..=5).map(|pes| Config::simulated(pes, 7));
    for config in seeds(80).map(simulated).chain(seeds(24).map(threads)).chain(on_pes) {
        let balancer = if config.seed % 3 == 0 { vec![] } else { vec!["RotateLB".into()] };
        let config = Config { balancer, ..config };
        let results = watched(describe(&config), {
            let config = config.clone();
            move || outcome(config)
        });
        assert!(results == reference, "other bits: {}", describe(&config));
    }
}

/// The order in which members contribute: some contribute to the second reduction before the first one is complete.
const TURNS: [i32; 12] = [0, 1, 2, 0, 3, 1, 4, 5, 2, 3, 4, 5];

/// Contributes when it is its turn.
#[derive(Serialize, Deserialize)]
struct Member {
    count: i32,
    lead: Array<Lead>,
}

#[chare(index = [i32; 1])]
impl Member {
    #[entry]
    fn turn(&mut self, cx: &Cx<Self>, section: Section<Member>, turn: usize) {
        self.count += 1;
        let value = (self.count, vec![(cx.index()[0], 1.0 / f64::from(cx.index()[0] + 3 * self.count))]);
        self.lead.at(cx, ()).contribute_in(&section).total(value);
        cx.migrate(Pe(turn as u32 % cx.pes() as u32));
        self.lead.at(cx, ()).at_checkpoint().turn(section, turn + 1);
    }
}

/// A number and the terms with their elements.
type Terms = (i32, Vec<(i32, f64)>);

fn join((a, mut first): Terms, (b, mut second): Terms) -> Terms {
    assert_eq!(a, b, "contributions to different reductions are combined");
    first.append(&mut second);
    (a, first)
}

#[derive(Serialize, Deserialize)]
struct Lead {
    members: Option<Array<Member>>,
    totals: Vec<Terms>,
    panics_at: Shared<usize>,
    done: Exit<Vec<Terms>>,
}

#[chare(index = ())]
impl Lead {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, members: Array<Member>) {
        self.members = Some(members);
        self.turn(cx, members.section(cx, |[at]| at % 2 == 0), 0);
    }

    #[entry]
    fn turn(&mut self, cx: &Cx<Self>, section: Section<Member>, turn: usize) {
        if turn == *self.panics_at.get(cx) {
            panic!("as asked");
        }
        if let (Some(members), Some(at)) = (self.members, TURNS.get(turn)) {
            members.at(cx, [2 * at]).turn(section, turn);
        }
    }

    #[entry(reduce = join)]
    fn total(&mut self, cx: &Cx<Self>, terms: Terms) {
        self.totals.push(terms);
        if self.totals.len() == 2 {
            self.done.exit(cx, std::mem::take(&mut self.totals));
        }
    }
}

fn take_turns(config: Config, panics_at: usize) -> Result<Report<Vec<Terms>>, RunError> {
    try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let lead = pe.array((), |()| Lead { members: None, totals: Vec::new(), panics_at, done });
        let members = pe.array([11], |_| Member { count: 0, lead });
        pe.main(move |pe| lead.at(pe, ()).begin(members));
    })
}

#[test]
fn a_restarted_run_completes_the_reductions_over_sections_that_had_begun() {
    let expected = take_turns(Config::simulated(1, 0), usize::MAX).expect("the run exits").result;
    let expected = Box::leak(Box::new(expected));
    everywhere(32, 8, |config| {
        for panics_at in [1, 4, 6, 8, 11] {
            let dir = tempfile::tempdir().expect("a folder");
            take_turns(saves(config.clone(), dir.path(), None), panics_at).expect_err("the program panics");
            let again = Config { seed: config.seed, ..simulated(mixed(config.seed) >> 8) };
            let report = take_turns(restarts_on(again, dir.path()), usize::MAX);
            assert_eq!(report.expect("the run exits").result, *expected, "from turn {panics_at}");
        }
    });
}

/// Sends messages to itself until it has the result.
#[derive(Serialize, Deserialize)]
struct Spinner {
    has_sum: bool,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Spinner {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let section = cx.array().section(cx, |[at]| at % 2 == 0);
        if section.contains(cx, cx.array(), cx.index()) {
            cx.peers().contribute_in(&section).sum(1);
        }
        self.spin(cx);
    }

    #[entry]
    fn spin(&mut self, cx: &Cx<Self>) {
        if !self.has_sum {
            cx.peer(cx.index()).spin();
        }
    }

    #[entry(reduce = reduce::sum)]
    fn sum(&mut self, cx: &Cx<Self>, sum: u32) {
        self.has_sum = true;
        if cx.index() == [0] {
            self.done.exit(cx, sum);
        }
    }
}

#[test]
fn a_reduction_over_a_section_does_not_wait_for_idle_pes() {
    everywhere(32, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let spinners = pe.array([16], |_| Spinner { has_sum: false, done });
            pe.main(move |pe| spinners.all(pe).begin());
        });
        assert_eq!(report.result, 8);
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        a_multicast_reaches_each_member_once_while_members_migrate,
        reductions_over_sections_and_prefixes_have_the_same_bits_on_any_machine,
        a_restarted_run_completes_the_reductions_over_sections_that_had_begun,
        a_reduction_over_a_section_does_not_wait_for_idle_pes,
    ]);
}

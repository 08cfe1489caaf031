//! Reductions of arrays whose elements are created and destroyed while rounds are in progress.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use std::collections::{BTreeMap, BTreeSet};

/// The number of rounds.
const ROUNDS: u32 = 12;
/// The index of a child is the index of its parent times this, plus the round of its creation, plus 1.
const DIGIT: i32 = 16;
const BOUNDS: [i32; 1] = [1 << 28];
const FIRST: i32 = 6;

fn sample(index: i32, round: u32, purpose: u64) -> u64 {
    mixed(mixed(index as u64) ^ mixed(u64::from(round) << 8 | purpose))
}

/// The child that an element has after its contribution to a round.
fn child(index: i32, round: u32) -> Option<i32> {
    let child = index * DIGIT + round as i32 + 1;
    (index < 1 << 20 && sample(index, round, 1).is_multiple_of(4)).then_some(child)
}

/// Whether an element ends after its contribution to a round.
fn ends(index: i32, round: u32) -> bool {
    sample(index, round, 2).is_multiple_of(6)
}

/// The contributors to each round.
fn expected() -> BTreeMap<u32, Vec<i32>> {
    let mut alive: BTreeSet<i32> = (1..=FIRST).collect();
    let mut rounds = BTreeMap::new();
    for round in 0..ROUNDS {
        rounds.insert(round, alive.iter().copied().collect());
        let born: Vec<i32> = alive.iter().filter_map(|&index| child(index, round)).collect();
        alive.retain(|&index| !ends(index, round));
        alive.extend(born);
    }
    rounds
}

#[derive(Serialize, Deserialize)]
struct Citizen {
    rng: Rng,
    /// Whether rounds overlap, or wait for the census.
    at_once: bool,
    census: Array<Census>,
}

impl Citizen {
    fn new(seed: u64, index: i32, at_once: bool, census: Array<Census>) -> Self {
        Citizen { rng: Rng::new(seed, index as u64), at_once, census }
    }
}

#[chare(index = [i32; 1])]
impl Citizen {
    #[entry]
    fn live(&mut self, cx: &Cx<Self>, round: u32) {
        let [me] = cx.index();
        self.census.at(cx, ()).contribute().count((round, vec![me]));
        if let Some(child) = child(me, round) {
            let citizen = Citizen::new(cx.seed(), child, self.at_once, self.census);
            // In lockstep, the census creates every other child.
            if self.at_once || child % 2 == 0 {
                cx.array().insert(cx, [child], citizen);
            } else {
                self.census.at(cx, ()).create(round, child, citizen);
            }
            if self.at_once && round + 1 < ROUNDS {
                cx.peer([child]).live(round + 1);
            }
        }
        if ends(me, round) {
            return cx.destroy();
        }
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        if self.at_once && round + 1 < ROUNDS {
            cx.peer([me]).live(round + 1);
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Census {
    citizens: Array<Citizen>,
    at_once: bool,
    rounds: BTreeMap<u32, Vec<i32>>,
    done: Exit<BTreeMap<u32, Vec<i32>>>,
}

fn join(a: (u32, Vec<i32>), b: (u32, Vec<i32>)) -> (u32, Vec<i32>) {
    assert_eq!(a.0, b.0, "contributions to different rounds are combined");
    (a.0, reduce::concat(a.1, b.1))
}

#[chare(index = ())]
impl Census {
    #[entry(reduce = join)]
    fn count(&mut self, cx: &Cx<Self>, counted: (u32, Vec<i32>)) {
        let (round, contributors) = counted;
        assert_eq!(self.rounds.insert(round, contributors), None, "round {round} was complete twice");
        if round + 1 == ROUNDS {
            cx.peer(()).at_quiescence().over();
        } else if !self.at_once {
            self.citizens.all(cx).at_quiescence().live(round + 1);
        }
    }

    /// Creates an element between two rounds; during a round the element would participate in it.
    #[entry(when = self.rounds.contains_key(&round))]
    fn create(&mut self, cx: &Cx<Self>, round: u32, index: i32, citizen: Citizen) {
        self.citizens.insert(cx, [index], citizen);
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, std::mem::take(&mut self.rounds));
    }
}

fn rounds(config: Config, at_once: bool) -> BTreeMap<u32, Vec<i32>> {
    let report = equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let citizens = pe.sparse(BOUNDS);
        let census = pe.array((), |()| Census { citizens, at_once, rounds: BTreeMap::new(), done });
        pe.main(move |pe| {
            for index in 1..=FIRST {
                citizens.insert(pe, [index], Citizen::new(seed, index, at_once, census));
            }
            let begin = pe.reply(move |pe, ()| (1..=FIRST).for_each(|i| citizens.at(pe, [i]).live(0)));
            begin.send(pe, ());
        });
    });
    report.result
}

#[test]
fn a_round_in_lockstep_counts_all_elements() {
    everywhere(60, 24, |config| assert_eq!(rounds(config, false), expected()));
}

#[test]
fn overlapping_rounds_count_the_elements_of_their_time() {
    everywhere(100, 40, |config| assert_eq!(rounds(config, true), expected()));
}

/// An element of two reductions, or of two sync points. In the entry in which it takes part it also creates others, which take part in
/// those that it has not yet taken part in.
#[derive(Serialize, Deserialize)]
struct Parent {
    depth: u32,
    counter: Array<Counter>,
}

const DEPTH: u32 = 5;

impl Parent {
    /// Creates an element that takes part from this round on, 0 or 1.
    fn inserts(&self, cx: &Cx<Self>, round: u32) -> Option<[i32; 1]> {
        let depth = self.depth.checked_sub(1)?;
        let child = [2 * cx.index()[0] + 1 + round as i32];
        cx.array().insert(cx, child, Parent { depth, ..*self });
        Some(child)
    }
}

#[chare(index = [i32; 1], sync)]
impl Parent {
    #[entry]
    fn contributes(&mut self, cx: &Cx<Self>, from: u32) {
        for round in from..2 {
            if let Some(child) = self.inserts(cx, round) {
                cx.peer(child).contributes(round);
            }
            self.counter.at(cx, ()).contribute().counted(1);
        }
    }

    #[entry]
    fn comes(&mut self, cx: &Cx<Self>, round: u32) {
        let before = self.inserts(cx, round);
        let mut after = None;
        if round == 0 {
            cx.at_sync().comes_again();
            after = self.inserts(cx, 1);
        } else {
            cx.at_sync().resumes();
        }
        before.into_iter().for_each(|child| cx.peer(child).comes(round));
        after.into_iter().for_each(|child| cx.peer(child).comes(1));
    }

    #[entry]
    fn comes_again(&mut self, cx: &Cx<Self>) {
        cx.at_sync().resumes();
    }

    #[entry]
    fn resumes(&mut self, cx: &Cx<Self>) {
        self.counter.at(cx, ()).contribute().counted(1);
    }
}

#[derive(Serialize, Deserialize)]
struct Counter {
    /// The number of reductions to come.
    left: usize,
    counts: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = ())]
impl Counter {
    #[entry(reduce = reduce::sum)]
    fn counted(&mut self, cx: &Cx<Self>, count: u32) {
        self.counts.push(count);
        if self.counts.len() == self.left {
            // Results may overtake each other.
            self.counts.sort_unstable();
            self.done.exit(cx, self.counts.clone());
        }
    }
}

/// The numbers of contributors to the reductions.
fn counts(config: Config, left: usize, begin: fn(&PeCx, Array<Parent>)) -> equipoise::Report<Vec<u32>> {
    equipoise::run(config, |pe, done| {
        let counter = pe.array((), |()| Counter { left, counts: Vec::new(), done });
        let parents = pe.sparse([1 << (DEPTH + 1)]);
        pe.main(move |pe| {
            parents.insert(pe, [0], Parent { depth: DEPTH, counter });
            begin(pe, parents);
        });
    })
}

/// The elements of round 0: a chain. Each of them has another chain, of elements of round 1.
const OF_ROUND_0: u32 = DEPTH + 1;
const ALL: u32 = OF_ROUND_0 + DEPTH * (DEPTH + 1) / 2;

#[test]
fn elements_take_part_in_the_reduction_to_which_their_creator_contributes_afterwards() {
    everywhere(100, 40, |config| {
        let report = counts(config, 2, |pe, parents| parents.at(pe, [0]).contributes(0));
        assert_eq!(report.result, [OF_ROUND_0, ALL]);
    });
}

#[test]
fn elements_take_part_in_the_sync_point_that_their_creator_calls_afterwards() {
    everywhere(60, 24, |config| {
        for balancer in [vec![], vec!["RotateLB".into()]] {
            let steps = 2 * balancer.len();
            let balanced = Config { balancer, ..config.clone() };
            let report = counts(balanced, 1, |pe, parents| parents.at(pe, [0]).comes(0));
            assert_eq!((report.result.as_slice(), report.lb_steps.len()), (&[ALL][..], steps));
        }
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        elements_take_part_in_the_reduction_to_which_their_creator_contributes_afterwards,
        elements_take_part_in_the_sync_point_that_their_creator_calls_afterwards,
        a_round_in_lockstep_counts_all_elements,
        overlapping_rounds_count_the_elements_of_their_time,
    ]);
}

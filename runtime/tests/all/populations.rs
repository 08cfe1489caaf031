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

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        a_round_in_lockstep_counts_all_elements,
        overlapping_rounds_count_the_elements_of_their_time,
    ]);
}

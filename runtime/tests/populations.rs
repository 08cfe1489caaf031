//! Reductions of arrays whose elements come and go while rounds are under way.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of a population; a child's index is its parent's, shifted, and the round of its birth.
const ROUNDS: u32 = 12;
const DIGIT: i32 = 16;
const BOUNDS: [i32; 1] = [1 << 28];
const FIRST: i32 = 6;

fn draw(index: i32, round: u32, purpose: u64) -> u64 {
    mixed(mixed(index as u64) ^ mixed(u64::from(round) << 8 | purpose))
}

/// The child that an element has after its contribution to a round.
fn child(index: i32, round: u32) -> Option<i32> {
    let child = index * DIGIT + round as i32 + 1;
    (index < 1 << 20 && draw(index, round, 1).is_multiple_of(4)).then_some(child)
}

/// Whether an element ends after its contribution to a round.
fn ends(index: i32, round: u32) -> bool {
    draw(index, round, 2).is_multiple_of(6)
}

/// Who contributes to each round.
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
    dice: Dice,
    /// Whether rounds follow each other at once, or when the census says so.
    at_once: bool,
    census: Array<Census>,
}

impl Citizen {
    fn new(seed: u64, index: i32, at_once: bool, census: Array<Census>) -> Self {
        Citizen { dice: Dice::new(seed, index as u64), at_once, census }
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
            // In lockstep, somebody else creates every other child.
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
        if self.dice.once_in(3) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
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
        let (round, who) = counted;
        assert_eq!(self.rounds.insert(round, who), None, "round {round} was over twice");
        if round + 1 == ROUNDS {
            cx.peer(()).at_quiescence().over();
        } else if !self.at_once {
            self.citizens.all(cx).at_quiescence().live(round + 1);
        }
    }

    /// Creates an element between two rounds: before the round is over it would have to take part.
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
fn a_round_in_lockstep_counts_who_lives_wherever_they_were_created() {
    everywhere(60, 24, |config| assert_eq!(rounds(config, false), expected()));
}

#[test]
fn rounds_in_flight_count_who_lived_then() {
    everywhere(100, 40, |config| assert_eq!(rounds(config, true), expected()));
}

//! Reductions: several in flight, from elements that move, to targets of every kind, and the same bits
//! whatever the machine.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use equipoise::{RunError, try_run};
use std::collections::BTreeMap;

/// What somebody was told: (receiver, round) and the value's bits.
type Told = BTreeMap<(i32, u32), Vec<u64>>;

/// A contribution that knows its round, to see that rounds are not mixed.
type Numbered = (u32, Vec<f64>);

/// A reduction function of the user's own.
fn add((a_round, a): Numbered, (b_round, b): Numbered) -> Numbered {
    assert_eq!(a_round, b_round, "contributions to different reductions are combined");
    (a_round, reduce::sums(a, b))
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[derive(Serialize, Deserialize)]
struct Judge {
    told: Told,
    /// How many have not reported.
    missing: usize,
    done: Exit<Told>,
}

impl Judge {
    fn tell(&mut self, who: i32, round: u32, value: Vec<u64>) {
        assert_eq!(self.told.insert((who, round), value), None, "{who} was told of round {round} twice");
    }
}

#[chare(index = ())]
impl Judge {
    #[entry(reduce = add)]
    fn sum(&mut self, _cx: &Cx<Self>, sum: Numbered) {
        self.tell(-1, sum.0, bits(&sum.1));
    }

    #[entry(reduce = reduce::concat)]
    fn list(&mut self, _cx: &Cx<Self>, list: Vec<u32>) {
        self.tell(-1, list[0], list[1..].iter().map(|&n| u64::from(n)).collect());
    }

    #[entry]
    fn note(&mut self, cx: &Cx<Self>, told: Told) {
        told.into_iter().for_each(|((who, round), value)| self.tell(who, round, value));
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.told));
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Term {
    dice: Dice,
    told: Told,
    judge: Array<Judge>,
}

const ROUNDS: u32 = 24;
const TERMS: [i32; 2] = [7, 5];

fn rank([x, y]: [i32; 2]) -> i32 {
    x + TERMS[0] * y
}

/// Terms of very different size: another order of addition would show.
fn term(index: [i32; 2], round: u32) -> f64 {
    let word = mixed(rank(index) as u64 * 1000 + u64::from(round));
    (word >> 12) as f64 * 0.1 * 10f64.powi((word % 24) as i32 - 12)
}

fn in_section([x, y]: [i32; 2], round: u32) -> bool {
    (x + y) as u32 % 3 == round % 3
}

#[chare(index = [i32; 2])]
impl Term {
    /// Contributes to every round, without waiting for any.
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, round: u32) {
        let value = (round, vec![term(cx.index(), round), f64::from(round)]);
        match round % 5 {
            0 => self.judge.at(cx, ()).contribute().sum(value),
            1 => cx.peers().contribute().sum(value),
            2 => cx.array().only(cx, |index| in_section(index, round)).contribute().sum(value),
            3 => cx.peer([round as i32 % 7, 2]).contribute().largest((round, value.1[0])),
            _ => {
                // The first of them says which round it is.
                let mine = rank(cx.index()) as u32;
                let list = if mine == 0 { vec![round, mine] } else { vec![mine] };
                self.judge.at(cx, ()).contribute().list(list);
            }
        }
        if self.dice.once_in(3) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
        match round + 1 {
            ROUNDS => {}
            // Sometimes two contributions in one go.
            next if self.dice.once_in(4) => self.go(cx, next),
            next => cx.peer(cx.index()).go(next),
        }
    }

    #[entry(reduce = add)]
    fn sum(&mut self, cx: &Cx<Self>, sum: Numbered) {
        self.tell(cx, sum.0, bits(&sum.1));
    }

    #[entry(reduce = |a, b| if b.1 > a.1 { b } else { a })]
    fn largest(&mut self, cx: &Cx<Self>, largest: (u32, f64)) {
        self.tell(cx, largest.0, bits(&[largest.1]));
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).note(std::mem::take(&mut self.told));
    }
}

impl Term {
    fn tell(&mut self, cx: &Cx<Self>, round: u32, value: Vec<u64>) {
        let before = self.told.insert((rank(cx.index()), round), value);
        assert_eq!(before, None, "told of round {round} twice");
    }
}

fn outcome(config: Config) -> Told {
    let report = equipoise::run(config, |pe, done| {
        let (seed, missing) = (pe.seed(), (TERMS[0] * TERMS[1]) as usize);
        let judge = pe.array((), |()| Judge { told: Told::new(), missing, done });
        let dice = |index| Dice::new(seed, rank(index) as u64);
        let terms = pe.array(TERMS, |index| Term { dice: dice(index), told: Told::new(), judge });
        pe.main(move |pe| {
            terms.all(pe).go(0);
            terms.all(pe).at_quiescence().report();
        });
    });
    report.result
}

/// What everybody must be told, up to the rounding of sums: who, round, the value (sums approximately).
fn expected() -> BTreeMap<(i32, u32), Vec<f64>> {
    let all: Vec<[i32; 2]> = (0..TERMS[1]).flat_map(|y| (0..TERMS[0]).map(move |x| [x, y])).collect();
    let mut expected = BTreeMap::new();
    for round in 0..ROUNDS {
        let terms = || all.iter().map(move |&index| term(index, round));
        let sum = vec![terms().sum::<f64>(), f64::from(round) * all.len() as f64];
        match round % 5 {
            0 => drop(expected.insert((-1, round), sum)),
            1 => expected.extend(all.iter().map(|&index| ((rank(index), round), sum.clone()))),
            2 => expected.extend(
                all.iter()
                    .filter(|&&index| in_section(index, round))
                    .map(|&i| ((rank(i), round), sum.clone())),
            ),
            3 => {
                drop(expected.insert((rank([round as i32 % 7, 2]), round), vec![terms().fold(0.0, f64::max)]))
            }
            _ => drop(expected.insert((-1, round), (0..all.len()).map(|rank| rank as f64).collect())),
        }
    }
    expected
}

#[test]
fn every_reduction_reaches_its_target_once_with_the_same_bits_on_any_machine() {
    let reference = outcome(Config::simulated(1, 0));
    let expected = expected();
    assert!(reference.keys().eq(expected.keys()), "somebody was not told, or too much");
    for (key, value) in &reference {
        let value: Vec<f64> = match key.1 % 5 {
            4 => value.iter().map(|&number| number as f64).collect(),
            _ => value.iter().map(|&bits| f64::from_bits(bits)).collect(),
        };
        let close = value.iter().zip(&expected[key]).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs());
        assert!(close && value.len() == expected[key].len(), "{key:?}: {value:?}, not {:?}", expected[key]);
    }
    for config in (0..60).map(simulated).chain((0..24).map(threads)) {
        let told = watched(told(&config), {
            let config = config.clone();
            move || outcome(config)
        });
        assert!(told == reference, "other bits: {}", common::told(&config));
    }
}

/// Contributes to another entry than the rest, to other receivers, or to another array.
#[derive(Serialize, Deserialize)]
struct Odd {
    how: u32,
}

#[chare(index = [i32; 1])]
impl Odd {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, other: Array<Odd>, odd: i32) {
        let peers = cx.peer([0]);
        match (cx.index() == [odd], self.how) {
            (false, _) => peers.contribute().sum(1),
            (true, 0) => peers.contribute().product(1),
            (true, 1) => cx.peer([1]).contribute().sum(1),
            (true, 2) => cx.peers().contribute().sum(1),
            (true, _) => other.at(cx, [0]).contribute().sum(1),
        }
    }

    #[entry(reduce = reduce::sum)]
    fn sum(&mut self, _cx: &Cx<Self>, _sum: u32) {
        panic!("a reduction that nobody agreed on");
    }

    #[entry(reduce = reduce::product)]
    fn product(&mut self, _cx: &Cx<Self>, _product: u32) {
        panic!("a reduction that nobody agreed on");
    }
}

#[test]
fn elements_that_disagree_about_a_reduction_are_told_so() {
    everywhere(40, 16, |config| {
        for (how, odd) in [(0, 0), (0, 3), (1, 7), (2, 1), (3, 0), (3, 4)] {
            let error = try_run(config.clone(), |pe, _: Exit<u32>| {
                let odds = pe.array([8], |_| Odd { how });
                let others = pe.array([8], |_| Odd { how });
                pe.main(move |pe| odds.all(pe).go(others, odd));
            });
            let error = error.map(|report| report.result).expect_err("they do not agree");
            assert!(matches!(error, RunError::Panic { .. } | RunError::Program { .. }), "{error:?}");
            let sentence = "the elements of Odd do not agree on their reduction number 1";
            assert!(error.to_string().contains(sentence), "{error}");
        }
    });
}

//! Reductions: several in flight, from migrating elements, to targets of every kind, with the same bits
//! on any machine.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::reduce;
use equipoise::{RunError, try_run};
use std::collections::BTreeMap;

/// The received results: (receiver, round) and the bits of the value.
type Results = BTreeMap<(i32, u32), Vec<u64>>;

/// A contribution with its round, to check that rounds are not mixed.
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
    results: Results,
    /// Terms that have not reported.
    missing: usize,
    done: Exit<Results>,
}

impl Judge {
    fn record(&mut self, receiver: i32, round: u32, value: Vec<u64>) {
        let before = self.results.insert((receiver, round), value);
        assert_eq!(before, None, "{receiver} received round {round} twice");
    }
}

#[chare(index = ())]
impl Judge {
    #[entry(reduce = add)]
    fn sum(&mut self, _cx: &Cx<Self>, sum: Numbered) {
        self.record(-1, sum.0, bits(&sum.1));
    }

    #[entry(reduce = reduce::concat)]
    fn list(&mut self, _cx: &Cx<Self>, list: Vec<u32>) {
        self.record(-1, list[0], list[1..].iter().map(|&n| u64::from(n)).collect());
    }

    #[entry]
    fn note(&mut self, cx: &Cx<Self>, results: Results) {
        results.into_iter().for_each(|((receiver, round), value)| self.record(receiver, round, value));
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.results));
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Term {
    rng: Rng,
    results: Results,
    judge: Array<Judge>,
}

const ROUNDS: u32 = 24;
const TERMS: [i32; 2] = [7, 5];

fn rank([x, y]: [i32; 2]) -> i32 {
    x + TERMS[0] * y
}

/// Terms of very different size, so that another order of addition changes the sum.
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
                // The contribution of rank 0 also contains the round.
                let mine = rank(cx.index()) as u32;
                let list = if mine == 0 { vec![round, mine] } else { vec![mine] };
                self.judge.at(cx, ()).contribute().list(list);
            }
        }
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        match round + 1 {
            ROUNDS => {}
            // Sometimes two contributions in one delivery.
            next if self.rng.once_in(4) => self.go(cx, next),
            next => cx.peer(cx.index()).go(next),
        }
    }

    #[entry(reduce = add)]
    fn sum(&mut self, cx: &Cx<Self>, sum: Numbered) {
        self.record(cx, sum.0, bits(&sum.1));
    }

    #[entry(reduce = |a, b| if b.1 > a.1 { b } else { a })]
    fn largest(&mut self, cx: &Cx<Self>, largest: (u32, f64)) {
        self.record(cx, largest.0, bits(&[largest.1]));
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).note(std::mem::take(&mut self.results));
    }
}

impl Term {
    fn record(&mut self, cx: &Cx<Self>, round: u32, value: Vec<u64>) {
        let before = self.results.insert((rank(cx.index()), round), value);
        assert_eq!(before, None, "received round {round} twice");
    }
}

fn outcome(config: Config) -> Results {
    let report = equipoise::run(config, |pe, done| {
        let (seed, missing) = (pe.seed(), (TERMS[0] * TERMS[1]) as usize);
        let judge = pe.array((), |()| Judge { results: Results::new(), missing, done });
        let rng = |index| Rng::new(seed, rank(index) as u64);
        let terms = pe.array(TERMS, |index| Term { rng: rng(index), results: Results::new(), judge });
        pe.main(move |pe| {
            terms.all(pe).go(0);
            terms.all(pe).at_quiescence().report();
        });
    });
    report.result
}

/// The expected results by receiver and round; sums are approximate.
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
    assert!(reference.keys().eq(expected.keys()), "a result is missing, or there are too many");
    for (key, value) in &reference {
        let value: Vec<f64> = match key.1 % 5 {
            4 => value.iter().map(|&number| number as f64).collect(),
            _ => value.iter().map(|&bits| f64::from_bits(bits)).collect(),
        };
        let close = value.iter().zip(&expected[key]).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs());
        assert!(close && value.len() == expected[key].len(), "{key:?}: {value:?}, not {:?}", expected[key]);
    }
    for config in seeds(60).map(simulated).chain(seeds(24).map(threads)) {
        let results = watched(describe(&config), {
            let config = config.clone();
            move || outcome(config)
        });
        assert!(results == reference, "other bits: {}", describe(&config));
    }
}

/// Contributes to a different entry, receiver or array than the other elements.
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
        panic!("a reduction with different targets");
    }

    #[entry(reduce = reduce::product)]
    fn product(&mut self, _cx: &Cx<Self>, _product: u32) {
        panic!("a reduction with different targets");
    }
}

#[test]
fn reports_elements_that_contribute_to_different_targets() {
    everywhere(40, 16, |config| {
        for (how, odd) in [(0, 0), (0, 3), (1, 7), (2, 1), (3, 0), (3, 4)] {
            let error = try_run(config.clone(), |pe, _: Exit<u32>| {
                let odds = pe.array([8], |_| Odd { how });
                let others = pe.array([8], |_| Odd { how });
                pe.main(move |pe| odds.all(pe).go(others, odd));
            });
            let error = error.map(|report| report.result).expect_err("they do not agree");
            assert!(matches!(error, RunError::Program { .. }), "{error:?}");
            let error = error.to_string();
            assert!(error.starts_with("reduction 1 of Odd is inconsistent: "), "{error}");
            // Both entries are named, and the element that contributes elsewhere.
            let target = ["`product` of Odd[0]", "`sum` of Odd[1]", "`sum` of all elements of Odd"];
            let in_array = "`sum` of Odd[0] in array 2 of the setup";
            let target = target.get(how as usize).copied().unwrap_or(in_array);
            assert!(
                error.contains(&format!("Odd[{odd}] contributes to entry {target}"))
                    || error.contains(&format!("and Odd[{odd}] to entry {target}")),
                "{error}"
            );
            let others = if how == 3 { "`sum` of Odd[0] in array 1 of the setup" } else { "`sum` of Odd[0]" };
            assert!(error.contains(&format!("to entry {others}")), "{error}");
        }
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        every_reduction_reaches_its_target_once_with_the_same_bits_on_any_machine,
        reports_elements_that_contribute_to_different_targets,
    ]);
}

fn counted(a: (u32, Vec<i32>), b: (u32, Vec<i32>)) -> (u32, Vec<i32>) {
    reduce::pair(a, b, reduce::sum, reduce::concat)
}

#[derive(Serialize, Deserialize)]
struct Pairs {
    done: Exit<(f64, (u32, Vec<i32>))>,
}

#[chare(index = [i32; 1])]
impl Pairs {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        let [at] = cx.index();
        cx.peer([0]).contribute().ended((-f64::from(at), (1, vec![at])));
    }

    #[entry(reduce = |a, b| reduce::pair(a, b, f64::min, counted))]
    fn ended(&mut self, cx: &Cx<Self>, values: (f64, (u32, Vec<i32>))) {
        self.done.exit(cx, values);
    }
}

#[test]
fn a_contribution_may_be_several_reductions_in_one() {
    for config in [Config::threads(2), Config::simulated(3, 5)] {
        let report = equipoise::run(config, |pe, done| {
            let pairs = pe.array([7], |_| Pairs { done });
            pe.main(move |pe| pairs.all(pe).begin());
        });
        assert_eq!(report.result, (-6.0, (7, (0..7).collect())));
    }
}

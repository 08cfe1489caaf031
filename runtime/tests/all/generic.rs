//! Generic chares: arrays of several instances of one chare in a run.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use serde::de::DeserializeOwned;
use std::ops::Add;

/// What a ring passes on. It does not say that values can be cloned.
pub trait Value: Serialize + DeserializeOwned + Send + Add<Output = Self> + 'static {
    /// What an element of this index adds.
    fn of(index: i32) -> Self;
    /// The value for the result of the test.
    fn number(self) -> u64;
}

impl Value for u64 {
    fn of(index: i32) -> Self {
        index as u64 + 1
    }

    fn number(self) -> u64 {
        self
    }
}

/// A value that can be cloned, but [`Value`] does not say so.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    lists: Vec<Vec<i32>>,
}

impl Add for Tally {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self.lists.extend(other.lists);
        self
    }
}

impl Value for Tally {
    fn of(index: i32) -> Self {
        Tally { lists: vec![vec![index; 3]] }
    }

    fn number(self) -> u64 {
        self.lists.into_iter().flatten().map(|index| index as u64).sum()
    }
}

/// Passes a value around, and adds to it at every element.
#[derive(Serialize, Deserialize)]
pub struct Ring<T, const LAPS: usize> {
    last: Option<T>,
    lap: usize,
    rng: Rng,
    results: Array<Results>,
}

#[chare(index = [i32; 1], sync)]
impl<T: Value + Clone, const LAPS: usize> Ring<T, LAPS>
where
    Vec<T>: Send,
{
    /// Lap after lap: the message waits until the element has seen the lap before.
    #[entry(when = lap == self.lap)]
    fn pass(&mut self, cx: &Cx<Self>, lap: usize, value: T, spare: Vec<T>) {
        self.lap += 1;
        let value = value + T::of(cx.index()[0]);
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        let next = (cx.index()[0] + 1) % cx.shape()[0];
        match next {
            0 if lap + 1 == LAPS => cx.peers().hear(value),
            0 => cx.peer([0]).pass(lap + 1, value, spare),
            _ => cx.peer([next]).pass(lap, value, spare),
        }
    }

    /// Every element receives a copy of the last value.
    #[entry]
    fn hear(&mut self, cx: &Cx<Self>, value: T) {
        assert!(self.last.is_none());
        self.last = Some(value);
        cx.at_sync().report();
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().combine(self.last.take().expect("it has heard"));
    }

    #[entry(reduce = |a, b| a + b)]
    fn combine(&mut self, cx: &Cx<Self>, sum: T) {
        self.results.at(cx, ()).result(sum.number(), LAPS);
    }
}

/// Receives values of which its bounds do not say that they can be cloned.
#[derive(Serialize, Deserialize)]
pub struct Keeper<T> {
    kept: Option<T>,
    done: Exit<u64>,
}

#[chare(index = [i32; 1])]
impl<T: Value> Keeper<T> {
    #[entry]
    fn keep(&mut self, cx: &Cx<Self>, name: String, value: T) {
        self.kept = Some(value + T::of(name.len() as i32));
        let number = self.kept.take().expect("it is there").number();
        cx.peer([0]).contribute().kept(number);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn kept(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.exit(cx, sum);
    }
}

#[derive(Serialize, Deserialize)]
pub struct Results {
    all: Vec<(usize, u64)>,
    done: Exit<(u64, u64)>,
}

#[chare(index = ())]
impl Results {
    #[entry]
    fn result(&mut self, cx: &Cx<Self>, number: u64, laps: usize) {
        self.all.push((laps, number));
        self.all.sort_unstable();
        if let &[(2, numbers), (3, tallies)] = &self.all[..] {
            self.done.exit(cx, (numbers, tallies));
        }
    }
}

#[test]
fn two_instances_of_a_chare_run_together() {
    everywhere(40, 8, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let results = pe.array((), |()| Results { all: Vec::new(), done });
            let rng = |[i]: [i32; 1]| Rng::new(seed, i as u64);
            let numbers = pe.array([7], |i| Ring::<u64, 2> { last: None, lap: 0, rng: rng(i), results });
            let tallies = pe.array([5], |i| Ring::<Tally, 3> { last: None, lap: 0, rng: rng(i), results });
            pe.main(move |pe| {
                numbers.at(pe, [0]).pass(0, 0, vec![]);
                tallies.at(pe, [0]).pass(0, Tally { lists: vec![] }, vec![Tally::of(9)]);
            });
        });
        // 2 laps of 1 to 7, heard by 7; 3 laps of 3 times 0 to 4, heard by 5.
        assert_eq!(report.result, (2 * 28 * 7, 3 * 3 * 10 * 5));
    });
}

#[test]
fn code_outside_the_block_sends_a_value_that_can_be_cloned_to_several_elements() {
    everywhere(24, 8, |config| {
        let report = equipoise::run(config, |pe, done| {
            let keepers = pe.array([9], |_| Keeper::<Tally> { kept: None, done });
            pe.main(move |pe| keepers.all(pe).keep("four".to_owned(), Tally::of(2)));
        });
        assert_eq!(report.result, 9 * (3 * 2 + 3 * 4));
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        two_instances_of_a_chare_run_together,
        code_outside_the_block_sends_a_value_that_can_be_cloned_to_several_elements,
    ]);
}

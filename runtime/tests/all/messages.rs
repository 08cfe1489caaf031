//! Every message is delivered exactly once, to arrays of any kind, while elements migrate.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use std::collections::BTreeSet;

/// A step of a walk: which walk, and how many steps are left.
type Step = (u32, u32);

/// Collects the steps of all walkers, and migrates itself.
#[derive(Serialize, Deserialize)]
struct Judge {
    rng: Rng,
    received: Vec<Step>,
    /// Walkers that have not reported.
    missing: usize,
    done: Exit<Vec<Step>>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, got: Vec<Step>) {
        self.received.extend(got);
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.received));
        }
        cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
    }
}

/// The payload of a step, to check that it arrives complete.
fn luggage((walk, left): Step) -> (Vec<f64>, String) {
    let numbers = (0..walk % 5).map(|i| f64::from(i) / f64::from(left + 1)).collect();
    (numbers, format!("walk {walk}"))
}

/// Checks that every step of every walk arrived exactly once.
fn check_steps(mut got: Vec<Step>, walks: u32, steps: u32) {
    got.sort_unstable();
    let expected: Vec<Step> = (0..walks).flat_map(|walk| (0..=steps).map(move |left| (walk, left))).collect();
    let (had, all) = (got.iter().collect::<BTreeSet<_>>(), expected.iter().collect::<BTreeSet<_>>());
    let lost: Vec<_> = all.difference(&had).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    assert_eq!(got, expected, "something was delivered twice");
}

/// Walkers in an array of any number of dimensions.
macro_rules! walkers {
    ($($module:ident: $n:literal;)*) => {$(mod $module {
        use super::*;

        #[derive(Serialize, Deserialize)]
        pub struct Walker {
            rng: Rng,
            others: Vec<[i32; $n]>,
            got: Vec<Step>,
            porters: Array<Porter>,
            judge: Array<Judge>,
        }

        #[chare(index = [i32; $n])]
        impl Walker {
            #[entry]
            fn step(&mut self, cx: &Cx<Self>, walk: u32, left: u32, numbers: Vec<f64>, text: String) {
                assert_eq!((numbers, text), luggage((walk, left)));
                self.got.push((walk, left));
                let next = self.others[self.rng.sample(self.others.len())];
                if left > 0 {
                    let (numbers, text) = luggage((walk, left - 1));
                    if self.rng.once_in(4) {
                        let porter = Pe(self.rng.sample(cx.pes()) as u32);
                        self.porters.at(cx, porter).pass(cx.array(), next, (walk, left - 1), numbers, text);
                    } else {
                        cx.peer(next).step(walk, left - 1, numbers, text);
                    }
                }
                if self.rng.once_in(3) {
                    cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
                }
            }

            #[entry]
            fn report(&mut self, cx: &Cx<Self>) {
                assert!(self.others.contains(&cx.index()));
                self.judge.at(cx, ()).receive(std::mem::take(&mut self.got));
            }
        }

        /// One element on every PE, which forwards steps.
        #[derive(Serialize, Deserialize)]
        pub struct Porter;

        #[chare(index = Pe)]
        impl Porter {
            #[entry]
            fn pass(
                &mut self, cx: &Cx<Self>, walkers: Array<Walker>, to: [i32; $n], step: Step, numbers: Vec<f64>,
                text: String,
            ) {
                assert_eq!(cx.index(), cx.here(), "a per-PE element stays where it is");
                walkers.at(cx, to).step(step.0, step.1, numbers, text);
            }
        }

        /// Walks over an array of this shape: full, or with elements at `only` some indices.
        pub fn check(config: Config, shape: [i32; $n], only: Option<Vec<[i32; $n]>>, walks: u32, steps: u32) {
            let report = equipoise::run(config, |pe, done| {
                let seed = pe.seed();
                let all = only.clone().unwrap_or_else(|| everything(shape));
                let rng = Rng::new(seed, 1);
                let judge =
                    pe.array((), |()| Judge { rng: rng.clone(), received: Vec::new(), missing: all.len(), done });
                let porters = pe.array(Pe(pe.pes() as u32), |_| Porter);
                let walker = |index: [i32; $n]| {
                    let rng = Rng::new(seed, index.iter().fold(7, |h, &i| h * 31 + i as u64));
                    Walker { rng, others: all.clone(), got: Vec::new(), porters, judge }
                };
                let (walkers, missing): (_, Vec<_>) = match &only {
                    None => (pe.array(shape, walker), Vec::new()),
                    Some(only) => (pe.sparse(shape), only.iter().map(|&index| (index, walker(index))).collect()),
                };
                pe.main(move |pe| {
                    for walk in 0..walks {
                        let (numbers, text) = luggage((walk, steps));
                        walkers.at(pe, all[walk as usize % all.len()]).step(walk, steps, numbers, text);
                    }
                    // Messages to missing elements wait until the elements are inserted.
                    for (index, walker) in missing {
                        walkers.insert(pe, index, walker);
                    }
                    walkers.all(pe).at_quiescence().report();
                });
            });
            check_steps(report.result, walks, steps);
        }

        fn everything(shape: [i32; $n]) -> Vec<[i32; $n]> {
            let mut all = vec![[0; $n]];
            for d in 0..$n {
                let one = |index: &[i32; $n]| {
                    let mut index = *index;
                    (0..shape[d]).map(|i| { index[d] = i; index }).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(one).collect();
            }
            all
        }
    })*};
}
walkers!(one: 1; two: 2; three: 3; four: 4; five: 5; six: 6;);

#[test]
fn every_step_of_a_random_walk_arrives_once_in_one_to_six_dimensions() {
    everywhere(96, 16, |config| match config.seed % 6 {
        0 => one::check(config, [17], None, 20, 60),
        1 => two::check(config, [5, 4], None, 20, 60),
        2 => three::check(config, [3, 2, 4], None, 20, 60),
        3 => four::check(config, [2, 3, 1, 4], None, 20, 60),
        4 => five::check(config, [2, 1, 2, 3, 2], None, 20, 60),
        _ => six::check(config, [2, 2, 1, 2, 2, 2], None, 20, 60),
    });
}

#[test]
fn every_step_arrives_once_in_sparse_arrays_of_any_size() {
    everywhere(40, 24, |config| {
        let mut rng = Rng::new(config.seed, 9);
        // On threads the larger bounds need directories.
        let side = if config.seed % 3 == 0 { 100 } else { 3000 + rng.sample(60_000) as i32 };
        let some: BTreeSet<[i32; 2]> =
            (0..30).map(|_| [rng.sample(side as usize) as i32, rng.sample(side as usize) as i32]).collect();
        two::check(config, [side, side], Some(some.into_iter().collect()), 20, 60);
    });
}

#[test]
fn messages_find_a_single_migrating_element() {
    everywhere(14, 8, |config| one::check(config, [1], None, 8, 200));
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        every_step_of_a_random_walk_arrives_once_in_one_to_six_dimensions,
        every_step_arrives_once_in_sparse_arrays_of_any_size,
        messages_find_a_single_migrating_element,
    ]);
}

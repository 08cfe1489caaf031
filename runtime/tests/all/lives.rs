//! Elements that end and are inserted again at the same index, while messages to them are in flight.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Shared, try_run};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

type Step = (u32, u32);

/// Inserts ended elements again, and collects the steps of all elements.
#[derive(Serialize, Deserialize)]
struct Registry {
    mortals: Array<Mortal>,
    received: Vec<Step>,
    lives: u32,
    /// How many have not reported at the end.
    missing: usize,
    done: Exit<(Vec<Step>, u32)>,
}

#[chare(index = ())]
impl Registry {
    #[entry]
    fn bury(&mut self, cx: &Cx<Self>, index: [i32; 1], life: Mortal) {
        self.received.extend(&life.got);
        self.lives += 1;
        let on = Pe(self.lives % cx.pes() as u32);
        self.mortals.insert_on(cx, index, on, Mortal { got: Vec::new(), ..life });
    }

    #[entry]
    fn receive(&mut self, cx: &Cx<Self>, got: Vec<Step>, last: bool) {
        self.received.extend(got);
        self.lives += u32::from(!last);
        self.missing -= usize::from(last);
        if self.missing == 0 {
            self.done.exit(cx, (std::mem::take(&mut self.received), self.lives));
        }
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Mortal {
    rng: Rng,
    got: Vec<Step>,
}

const MORTALS: usize = 9;

#[chare(index = [i32; 1])]
impl Mortal {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>, registry: Array<Registry>, walk: u32, left: u32) {
        self.got.push((walk, left));
        if left > 0 {
            cx.peer([self.rng.sample(MORTALS) as i32]).step(registry, walk, left - 1);
        }
        match self.rng.sample(10) {
            // Its successor is inserted at once ..
            0 => {
                registry.at(cx, ()).receive(std::mem::take(&mut self.got), false);
                let successor = self.clone();
                if self.rng.once_in(2) {
                    cx.array().insert(cx, cx.index(), successor);
                } else {
                    let on = Pe(self.rng.sample(cx.pes()) as u32);
                    cx.array().insert_on(cx, cx.index(), on, successor);
                }
                cx.destroy();
            }
            // .. or when the registry is notified of the end.
            1 => {
                registry.at(cx, ()).bury(cx.index(), self.clone());
                cx.destroy();
            }
            2..5 => cx.migrate(Pe(self.rng.sample(cx.pes()) as u32)),
            _ => {}
        }
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>, registry: Array<Registry>) {
        registry.at(cx, ()).receive(std::mem::take(&mut self.got), true);
    }
}

#[test]
fn messages_reach_the_next_element_at_the_index_of_one_that_ended() {
    const WALKS: u32 = 6;
    const STEPS: u32 = 150;
    everywhere(60, 40, |config| {
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let mortals =
                pe.array([MORTALS as i32], |[i]| Mortal { rng: Rng::new(seed, i as u64), got: Vec::new() });
            let registry = pe.array((), |()| Registry {
                mortals,
                received: Vec::new(),
                lives: 0,
                missing: MORTALS,
                done,
            });
            pe.main(move |pe| {
                for walk in 0..WALKS {
                    mortals.at(pe, [walk as i32]).step(registry, walk, STEPS);
                }
                mortals.all(pe).at_quiescence().report(registry);
            });
        });
        let (mut received, lives) = report.result;
        received.sort_unstable();
        let expected: Vec<Step> =
            (0..WALKS).flat_map(|walk| (0..=STEPS).map(move |left| (walk, left))).collect();
        assert_eq!(received, expected);
        assert!(lives > 50, "only {lives} ended");
    });
}

/// Repeatedly ends on another PE than its home and inserts its successor.
#[derive(Serialize, Deserialize)]
struct Phoenix {
    lives: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1])]
impl Phoenix {
    #[entry]
    fn die(&mut self, cx: &Cx<Self>) {
        if self.lives == 0 {
            return self.done.exit(cx, 7);
        }
        if cx.here() == Pe(0) && cx.pes() > 1 {
            // Migrates away from its home, and ends there.
            cx.migrate(Pe(cx.pes() as u32 - 1));
            cx.peer(cx.index()).die();
            return;
        }
        cx.array().insert(cx, cx.index(), Phoenix { lives: self.lives - 1, done: self.done });
        cx.destroy();
        cx.peer(cx.index()).die();
    }
}

#[test]
fn an_element_can_insert_its_successor() {
    everywhere(20, 40, |config| {
        let config = Config { initial: "blocks".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let birds = pe.array([1], |_| Phoenix { lives: 500, done });
            pe.main(move |pe| birds.at(pe, [0]).die());
        });
        assert_eq!(report.result, 7);
    });
}

/// Reports its end in the delivery in which it ends.
#[derive(Serialize, Deserialize)]
struct Child {
    home: Array<Nurse>,
}

#[chare(index = [i32; 1])]
impl Child {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>, to: u32) {
        cx.migrate(Pe(to));
        cx.peer(cx.index()).die();
    }

    #[entry]
    fn die(&mut self, cx: &Cx<Self>) {
        cx.destroy();
        self.home.at(cx, ()).gone();
    }
}

#[derive(Serialize, Deserialize)]
struct Nurse {
    children: Array<Child>,
    births: u32,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Nurse {
    #[entry]
    fn gone(&mut self, cx: &Cx<Self>) {
        self.births += 1;
        if self.births == 500 {
            return self.done.exit(cx, 7);
        }
        self.children.insert(cx, [0], Child { home: cx.array() });
        self.children.at(cx, [0]).go(cx.pes() as u32 - 1);
    }
}

#[test]
fn an_index_can_be_inserted_again_after_the_report_of_its_end() {
    everywhere(20, 40, |config| {
        let config = Config { initial: "blocks".into(), ..config };
        let report = equipoise::run(config, |pe, done| {
            let children = pe.sparse([1]);
            let nurse = pe.array((), |_| Nurse { children, births: 0, done });
            pe.main(move |pe| nurse.at(pe, ()).gone());
        });
        assert_eq!(report.result, 7);
    });
}

/// Reports the PE on which it was created.
#[derive(Serialize, Deserialize)]
struct Newborn;

#[chare(index = [i32; 2])]
impl Newborn {
    #[entry]
    fn locate(&mut self, cx: &Cx<Self>, report: Reply<Pe>) {
        report.send(cx, cx.here());
    }
}

#[test]
fn an_element_begins_on_the_pe_that_the_program_chose_for_its_index() {
    everywhere(20, 12, |config| {
        let report = equipoise::run(config, |pe, done| {
            let pes = pe.pes() as u32;
            let newborns = pe.sparse_placed([4, 5], move |[x, y]| Pe((x + 2 * y) as u32 % pes));
            pe.main(move |pe| {
                newborns.insert(pe, [3, 4], Newborn);
                newborns.at(pe, [3, 4]).locate(pe.reply(move |pe, at: Pe| done.exit(pe, at.0)));
            });
        });
        assert_eq!(report.result, 11 % report.pes as u32);
    });
}

#[test]
fn an_element_begins_on_the_pe_on_which_it_is_inserted() {
    everywhere(40, 12, |config| {
        let report = equipoise::run(config, |pe, done| {
            let newborns = pe.sparse([4, 5]);
            pe.main(move |pe| {
                let found = Rc::new(RefCell::new(Vec::new()));
                for x in 0..4 {
                    let found = Rc::clone(&found);
                    let report = pe.reply(move |pe, at: Pe| {
                        found.borrow_mut().push((x, at.0));
                        if found.borrow().len() == 4 {
                            found.borrow_mut().sort_unstable();
                            done.exit(pe, found.take());
                        }
                    });
                    let insert = || {
                        let on = Pe((x as u32 + 3) % pe.pes() as u32);
                        newborns.insert_on(pe, [x, 4 - x], on, Newborn);
                    };
                    // The message waits for the element, or follows its insertion.
                    if x % 2 == 0 {
                        insert();
                    }
                    newborns.at(pe, [x, 4 - x]).locate(report);
                    if x % 2 == 1 {
                        insert();
                    }
                }
            });
        });
        let pes = report.pes as u32;
        assert_eq!(report.result, (0..4).map(|x| (x, (x as u32 + 3) % pes)).collect::<Vec<_>>());
    });
}

/// One of several elements that live at the same index, one after the other.
#[derive(Serialize, Deserialize)]
struct Monarch {
    number: u32,
    chronicle: Array<Chronicle>,
    done: Exit<Vec<u32>>,
}

#[chare(index = [i32; 1])]
impl Monarch {
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>) {
        cx.migrate(Pe(1));
        self.chronicle.at(cx, ()).insert(cx.array(), self.chronicle, self.done);
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.chronicle.at(cx, ()).ended(self.number);
        cx.peer(cx.index()).end();
        cx.destroy();
    }
}

#[derive(Serialize, Deserialize)]
struct Chronicle {
    ended: Vec<u32>,
    done: Exit<Vec<u32>>,
}

#[chare(index = ())]
impl Chronicle {
    #[entry]
    fn insert(
        &mut self,
        cx: &Cx<Self>,
        all: Array<Monarch>,
        chronicle: Array<Chronicle>,
        done: Exit<Vec<u32>>,
    ) {
        for number in 1..5 {
            all.insert(cx, [0], Monarch { number, chronicle, done });
        }
        all.at(cx, [0]).at_quiescence().end();
    }

    #[entry]
    fn ended(&mut self, cx: &Cx<Self>, number: u32) {
        self.ended.push(number);
        if number == 4 {
            self.done.exit(cx, std::mem::take(&mut self.ended));
        }
    }
}

#[test]
fn insertions_that_wait_for_one_index_begin_in_the_order_in_which_they_came() {
    for config in [Config::threads(2), Config::on_machine("mesh:2", "ideal")] {
        let report = try_run(config.clone(), |pe, done| {
            let chronicle = pe.array_placed((), |_| Pe(0), |()| Chronicle { ended: Vec::new(), done });
            let all = pe.array_placed([1], |_| Pe(0), |_| Monarch { number: 0, chronicle, done });
            pe.main(move |pe| all.at(pe, [0]).leave());
        });
        assert_eq!(report.expect("the run exits").result, [0, 1, 2, 3, 4], "{}", describe(&config));
    }
}

/// The elements at index 0 live one after the other; the one at index 1 inserts them.
#[derive(Serialize, Deserialize)]
struct Numbered {
    number: u32,
    has_ended: Shared<AtomicBool>,
    done: Exit<u32>,
}

impl Numbered {
    fn insert(&self, cx: &Cx<Self>, number: u32) {
        cx.array().insert_on(cx, [0], Pe(1), Numbered { number, ..*self });
    }
}

#[chare(index = [i32; 1])]
impl Numbered {
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>) {
        cx.migrate(Pe(1));
    }

    #[entry]
    fn first(&mut self, cx: &Cx<Self>) {
        self.insert(cx, 1);
        cx.peer(cx.index()).at_quiescence().second();
    }

    /// Inserts when the element has ended, and its home does not know it: the home is this PE.
    #[entry]
    fn second(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).end();
        while !self.has_ended.get(cx).load(SeqCst) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        self.insert(cx, 2);
        cx.peer([0]).at_quiescence().report();
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.has_ended.get(cx).store(true, SeqCst);
        cx.destroy();
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.number);
    }
}

#[test]
fn an_insertion_does_not_overtake_one_that_waits_for_the_news_of_an_end() {
    let report = try_run(Config::threads(2), |pe, done| {
        let has_ended = pe.shared(|| AtomicBool::new(false));
        let all = pe.array_placed([2], |_| Pe(0), |_| Numbered { number: 0, has_ended, done });
        pe.main(move |pe| {
            all.at(pe, [0]).leave();
            all.at(pe, [1]).at_quiescence().first();
        });
    });
    assert_eq!(report.expect("the run exits").result, 1);
}

/// Inserts elements at its own index, away from its home. It never ends, which its home does not know.
#[derive(Serialize, Deserialize)]
struct Immortal;

#[chare(index = [i32; 1])]
impl Immortal {
    #[entry]
    fn leave(&mut self, cx: &Cx<Self>, times: u32) {
        cx.migrate(Pe(1));
        cx.peer(cx.index()).insert(times);
    }

    #[entry]
    fn insert(&mut self, cx: &Cx<Self>, times: u32) {
        for _ in 0..times {
            cx.array().insert(cx, cx.index(), Immortal);
        }
    }
}

#[test]
fn a_run_at_rest_names_the_insertions_that_wait_for_the_end_of_an_element() {
    for (times, sentence) in [
        (1, "the inserted Immortal[0] waits for the end of Immortal[0], which exists already"),
        (3, "3 inserted elements Immortal[0] wait for the end of Immortal[0], which exists already"),
    ] {
        for config in [Config::threads(2), Config::simulated(2, 5)] {
            let report = try_run(config, |pe, _: Exit<()>| {
                let all = pe.array([2], |_| Immortal);
                pe.main(move |pe| all.at(pe, [0]).leave(times));
            });
            let error = report.map(|_| ()).expect_err("nothing ends the element").to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        an_element_can_insert_its_successor,
        an_index_can_be_inserted_again_after_the_report_of_its_end,
        messages_reach_the_next_element_at_the_index_of_one_that_ended,
        an_element_begins_on_the_pe_that_the_program_chose_for_its_index,
        an_element_begins_on_the_pe_on_which_it_is_inserted,
    ]);
}

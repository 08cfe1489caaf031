//! Load-balancing steps in a storm: messages fly, elements come and go, and nothing is lost.

#![allow(missing_docs)]

mod common;

use common::*;
use equipoise::prelude::*;
use equipoise::strategies::database::Database;
use equipoise::strategies::{Assignment, Strategy, StrategyError, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Works, comes to sync, and answers messages all the while.
#[derive(Serialize, Deserialize)]
struct Sailor {
    dice: Dice,
    step: u32,
    steps: u32,
    /// Whether it also moves by hand.
    restless: bool,
    end: Array<End>,
}

/// How many messages each sailor has in flight.
const FLYING: u32 = 2;

#[chare(index = [i32; 1], sync)]
impl Sailor {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        (0..FLYING).for_each(|_| self.bounce(cx));
        self.work(cx);
    }

    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        if self.step == self.steps {
            cx.peers().contribute().stop(self.step);
        } else {
            self.step += 1;
            cx.at_sync().work();
        }
    }

    /// Flies from sailor to sailor until the last step is over.
    #[entry]
    fn bounce(&mut self, cx: &Cx<Self>) {
        cx.charge(0.5);
        if self.restless && self.dice.once_in(4) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
        if self.step <= self.steps {
            cx.peer([self.dice.draw(cx.shape()[0] as usize) as i32]).bounce();
        } else {
            self.end.at(cx, ()).landed();
        }
    }

    #[entry(reduce = u32::max)]
    fn stop(&mut self, cx: &Cx<Self>, step: u32) {
        self.step = step + 1;
        self.end.at(cx, ()).counted();
    }
}

#[derive(Serialize, Deserialize)]
struct End {
    missing: u32,
    landed: u32,
    done: Exit<u32>,
}

#[chare(index = ())]
impl End {
    #[entry]
    fn landed(&mut self, _cx: &Cx<Self>) {
        self.landed += 1;
    }

    #[entry]
    fn counted(&mut self, cx: &Cx<Self>) {
        self.missing -= 1;
        if self.missing == 0 {
            cx.peer(()).at_quiescence().over();
        }
    }

    #[entry]
    fn over(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, self.landed);
    }
}

const SAILORS: i32 = 12;

fn sail(config: Config, steps: u32, restless: bool) -> equipoise::Report<u32> {
    equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let end = pe.array((), |()| End { missing: SAILORS as u32, landed: 0, done });
        let sailors = pe.array([SAILORS], |[i]| Sailor {
            dice: Dice::new(seed, i as u64),
            step: 0,
            steps,
            restless,
            end,
        });
        pe.main(move |pe| sailors.all(pe).begin());
    })
}

#[test]
fn a_thousand_steps_that_move_everybody_lose_no_message() {
    for config in [simulated(2), simulated(3), threads(1), threads(3), threads(7)] {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        watched(told(&config), move || {
            let pes = config.pes.unwrap_or(1) as u64;
            let report = sail(config, 1000, false);
            assert_eq!(report.result, SAILORS as u32 * FLYING);
            assert_eq!(report.lb_steps.len(), 1000);
            assert_eq!(report.migrations, if pes == 1 { 0 } else { 1000 * SAILORS as u64 });
        });
    }
}

#[test]
fn elements_that_move_by_hand_during_steps_lose_no_message() {
    everywhere(30, 16, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = sail(config, 30, true);
        assert_eq!((report.result, report.lb_steps.len()), (SAILORS as u32 * FLYING, 30));
    });
}

/// Keeps the loads of every step, and moves everybody about.
#[derive(Default)]
struct Purser {
    loads: Mutex<Vec<Vec<(u64, f64)>>>,
}

impl Strategy for Purser {
    fn assign(&self, database: &Database, _: &dyn Topology, seed: u64) -> Result<Assignment, StrategyError> {
        self.loads.lock().unwrap().push(database.objects.iter().map(|o| (o.id, o.load_seconds)).collect());
        let mut dice = Dice::new(seed, 5);
        let place = |o: &equipoise::strategies::database::Object| match o.migratable {
            true => dice.draw(database.pes.len()) as u32,
            false => o.pe,
        };
        Ok(Assignment::new(database.objects.iter().map(place).collect()))
    }
}

#[test]
fn the_database_of_a_step_holds_no_element_twice_though_they_move_by_hand_meanwhile() {
    everywhere(40, 16, |config| {
        let purser = Arc::new(Purser::default());
        let config =
            Config { balancer: vec!["Purser".into()], ..config }.strategy("Purser", purser.clone(), false);
        sail(config, 10, true);
        for (step, objects) in purser.loads.lock().unwrap().iter().enumerate() {
            let ids: BTreeSet<u64> = objects.iter().map(|(id, _)| *id).collect();
            assert_eq!(objects.len(), ids.len(), "somebody is in the database of step {step} twice");
            // Who is under way between two PEs is seen in the next step.
            assert!(objects.iter().any(|(id, _)| *id == 0), "the singleton is missing in step {step}");
        }
    });
}

/// A sailor whose array grows and shrinks from step to step.
#[derive(Serialize, Deserialize)]
struct Nomad {
    dice: Dice,
    born: u32,
    lookout: Array<Lookout>,
}

const NOMAD_STEPS: u32 = 12;
const NOMADS: i32 = 5;

fn child(index: i32, step: u32) -> Option<i32> {
    let word = mixed((index as u64) << 20 | u64::from(step));
    (index < 1 << 22 && word.is_multiple_of(3)).then_some(index * 16 + step as i32 + 1)
}

fn ends(index: i32, step: u32) -> bool {
    mixed((index as u64) << 20 | u64::from(step) | 1 << 60).is_multiple_of(9)
}

fn nomads() -> Vec<BTreeMap<i32, f64>> {
    let mut alive: BTreeSet<i32> = (1..=NOMADS).collect();
    (0..NOMAD_STEPS)
        .map(|step| {
            let ended: Vec<i32> = alive.iter().copied().filter(|&index| ends(index, step)).collect();
            let born: Vec<i32> = alive.iter().filter_map(|&index| child(index, step)).collect();
            alive.retain(|index| !ended.contains(index));
            let loads = alive.iter().map(|&index| (index, f64::from(index) / 64.0 + f64::from(step)));
            let loads = loads.chain(born.iter().map(|&index| (index, f64::from(step)))).collect();
            alive.extend(born);
            loads
        })
        .collect()
}

#[chare(index = [i32; 1], sync)]
impl Nomad {
    /// Lives one period: has a child or ends, or comes to sync.
    #[entry]
    fn live(&mut self, cx: &Cx<Self>, step: u32) {
        let [me] = cx.index();
        if step == NOMAD_STEPS {
            return self.lookout.at(cx, ()).seen(me);
        }
        if let Some(child) = child(me, step) {
            let lookout = self.lookout;
            cx.array().insert(
                cx,
                [child],
                Nomad { dice: Dice::new(cx.seed(), child as u64), born: step, lookout },
            );
            cx.peer([child]).settle(step);
        }
        if ends(me, step) {
            return cx.destroy();
        }
        if self.dice.once_in(3) {
            cx.migrate(Pe(self.dice.draw(cx.pes()) as u32));
        }
        cx.charge(f64::from(me) / 64.0 + f64::from(step));
        cx.peer([me]).settle(step);
    }

    #[entry]
    fn settle(&mut self, cx: &Cx<Self>, step: u32) {
        cx.charge(if self.born == step { f64::from(step) } else { 0.0 });
        self.born = u32::MAX;
        cx.at_sync().live(step + 1);
    }
}

#[derive(Serialize, Deserialize)]
struct Lookout {
    seen: BTreeSet<i32>,
    /// How many have not reported.
    missing: usize,
    done: Exit<BTreeSet<i32>>,
}

#[chare(index = ())]
impl Lookout {
    #[entry]
    fn seen(&mut self, cx: &Cx<Self>, who: i32) {
        assert!(self.seen.insert(who), "{who} lived twice");
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.seen));
        }
    }
}

#[test]
fn arrays_that_grow_and_shrink_have_each_step_with_who_is_there() {
    let expected = nomads();
    assert!(expected.iter().all(|alive| alive.len() > 3), "{expected:?}");
    everywhere(60, 24, |config| {
        let purser = Arc::new(Purser::default());
        let config =
            Config { balancer: vec!["Purser".into()], ..config }.strategy("Purser", purser.clone(), false);
        let report = equipoise::run(config, |pe, done| {
            let seed = pe.seed();
            let missing = nomads()[NOMAD_STEPS as usize - 1].len();
            let lookout = pe.array((), |()| Lookout { seen: BTreeSet::new(), missing, done });
            let nomads = pe.sparse([1 << 27]);
            pe.main(move |pe| {
                for i in 1..=NOMADS {
                    let dice = Dice::new(seed, i as u64);
                    nomads.insert(pe, [i], Nomad { dice, born: u32::MAX, lookout });
                    nomads.at(pe, [i]).live(0);
                }
            });
        });
        let expected = nomads();
        let loads = purser.loads.lock().unwrap();
        assert_eq!(loads.len(), NOMAD_STEPS as usize);
        for (step, (objects, expected)) in loads.iter().zip(&expected).enumerate() {
            let found: BTreeMap<i32, f64> = objects
                .iter()
                .filter(|(id, _)| id >> 32 == 1)
                .map(|&(id, load)| (id as u32 as i32, load))
                .collect();
            assert_eq!(&found, expected, "step {step}");
        }
        assert!(report.result.iter().eq(expected[NOMAD_STEPS as usize - 1].keys()));
    });
}

//! Load-balancing steps while messages are in flight and elements are created and destroyed: no message is lost.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::LbWhen;
use equipoise::model::database::Database;
use equipoise::model::{Assignment, Topology};
use equipoise::prelude::*;
use equipoise::strategies::{Strategy, StrategyError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// Works, calls `at_sync`, and forwards messages meanwhile.
#[derive(Serialize, Deserialize)]
struct Sailor {
    rng: Rng,
    step: u32,
    steps: u32,
    /// Whether it also calls `migrate`.
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
        if self.restless && self.rng.once_in(4) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        if self.step <= self.steps {
            cx.peer([self.rng.sample(cx.shape()[0] as usize) as i32]).bounce();
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
            rng: Rng::new(seed, i as u64),
            step: 0,
            steps,
            restless,
            end,
        });
        pe.main(move |pe| sailors.all(pe).begin());
    })
}

#[test]
fn steps_that_migrate_all_elements_lose_no_message() {
    let steps = if is_full_size() { 1000 } else { 200 };
    for config in [simulated(2), simulated(3), threads(1), threads(3), threads(7)] {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        watched(describe(&config), move || {
            let pes = config.pes.unwrap_or(1) as u64;
            let report = sail(config, steps, false);
            assert_eq!(report.result, SAILORS as u32 * FLYING);
            assert_eq!(report.lb_steps.len(), steps as usize);
            assert_eq!(report.migrations, if pes == 1 { 0 } else { u64::from(steps) * SAILORS as u64 });
        });
    }
}

#[test]
fn calls_of_migrate_during_steps_lose_no_message() {
    everywhere(30, 16, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], ..config };
        let report = sail(config, 30, true);
        assert_eq!((report.result, report.lb_steps.len()), (SAILORS as u32 * FLYING, 30));
    });
}

/// Records the loads of every step, and migrates all elements at random.
#[derive(Default)]
struct Purser {
    loads: Mutex<Vec<Vec<(u64, f64)>>>,
}

impl Strategy for Purser {
    fn assign(&self, database: &Database, _: &dyn Topology, seed: u64) -> Result<Assignment, StrategyError> {
        self.loads.lock().unwrap().push(database.objects.iter().map(|o| (o.id, o.load_seconds)).collect());
        let mut rng = Rng::new(seed, 5);
        let place = |o: &equipoise::model::database::Object| match o.migratable {
            true => rng.sample(database.pes.len()) as u32,
            false => o.pe,
        };
        Ok(Assignment::new(database.objects.iter().map(place).collect()))
    }
}

#[test]
fn a_database_has_no_element_twice_despite_calls_of_migrate() {
    everywhere(40, 16, |config| {
        let purser = Arc::new(Purser::default());
        let config =
            Config { balancer: vec!["Purser".into()], ..config }.strategy("Purser", purser.clone(), false);
        sail(config, 10, true);
        for (step, objects) in purser.loads.lock().unwrap().iter().enumerate() {
            let ids: BTreeSet<u64> = objects.iter().map(|(id, _)| *id).collect();
            assert_eq!(objects.len(), ids.len(), "the database of step {step} has an element twice");
            // An element in flight between two PEs is only in the next database.
            assert!(objects.iter().any(|(id, _)| *id == 0), "the singleton is missing in step {step}");
        }
    });
}

/// A sailor whose array grows and shrinks from step to step.
#[derive(Serialize, Deserialize)]
struct Nomad {
    rng: Rng,
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
    /// One period: creates a child, ends, or calls `at_sync`.
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
                Nomad { rng: Rng::new(cx.seed(), child as u64), born: step, lookout },
            );
            cx.peer([child]).apply_step(step);
        }
        if ends(me, step) {
            return cx.destroy();
        }
        if self.rng.once_in(3) {
            cx.migrate(Pe(self.rng.sample(cx.pes()) as u32));
        }
        cx.charge(f64::from(me) / 64.0 + f64::from(step));
        cx.peer([me]).apply_step(step);
    }

    #[entry]
    fn apply_step(&mut self, cx: &Cx<Self>, step: u32) {
        cx.charge(if self.born == step { f64::from(step) } else { 0.0 });
        self.born = u32::MAX;
        cx.at_sync().live(step + 1);
    }
}

#[derive(Serialize, Deserialize)]
struct Lookout {
    seen: BTreeSet<i32>,
    /// Elements that have not reported.
    missing: usize,
    done: Exit<BTreeSet<i32>>,
}

#[chare(index = ())]
impl Lookout {
    #[entry]
    fn seen(&mut self, cx: &Cx<Self>, index: i32) {
        assert!(self.seen.insert(index), "element {index} reported twice");
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.seen));
        }
    }
}

fn wander(config: Config) -> equipoise::Report<BTreeSet<i32>> {
    equipoise::run(config, |pe, done| {
        let seed = pe.seed();
        let missing = nomads()[NOMAD_STEPS as usize - 1].len();
        let lookout = pe.array((), |()| Lookout { seen: BTreeSet::new(), missing, done });
        let nomads = pe.sparse([1 << 27]);
        pe.main(move |pe| {
            for i in 1..=NOMADS {
                let rng = Rng::new(seed, i as u64);
                nomads.insert(pe, [i], Nomad { rng, born: u32::MAX, lookout });
                nomads.at(pe, [i]).live(0);
            }
        });
    })
}

/// PEs say their loads with the calls of `at_sync`, or when PE 0 asks.
#[test]
fn every_sync_point_ends_where_loads_decide_which_become_steps() {
    everywhere(60, 24, |config| {
        let config = Config { balancer: vec!["RotateLB".into()], lb_when: LbWhen::Auto, ..config };
        assert_eq!(sail(config.clone(), 30, true).result, SAILORS as u32 * FLYING);
        let expected = nomads();
        assert!(wander(config).result.iter().eq(expected[NOMAD_STEPS as usize - 1].keys()));
    });
}

#[test]
fn each_step_has_the_current_elements_of_arrays_that_grow_and_shrink() {
    let expected = nomads();
    assert!(expected.iter().all(|alive| alive.len() > 3), "{expected:?}");
    everywhere(60, 24, |config| {
        let purser = Arc::new(Purser::default());
        let config =
            Config { balancer: vec!["Purser".into()], ..config }.strategy("Purser", purser.clone(), false);
        let report = wander(config);
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

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        steps_that_migrate_all_elements_lose_no_message,
        calls_of_migrate_during_steps_lose_no_message,
        a_database_has_no_element_twice_despite_calls_of_migrate,
        each_step_has_the_current_elements_of_arrays_that_grow_and_shrink,
        every_sync_point_ends_where_loads_decide_which_become_steps,
    ]);
}

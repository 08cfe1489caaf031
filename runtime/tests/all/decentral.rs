//! Load-balancing steps without a centre give the placements of the same strategy on PE 0, to the last bit, and lose nothing.

#![allow(missing_docs)]

use crate::checkpoints::{restarts_on, saves};
use crate::common::workers::about;
use crate::common::*;
use equipoise::model::costs::{Costs, EndCosts};
use equipoise::model::database::Database;
use equipoise::model::{Assignment, Topology};
use equipoise::prelude::*;
use equipoise::strategies::decentral::{Decentral, Letter, Member, Outcome, Own, Sends, Totals};
use equipoise::strategies::{Strategy, StrategyError, registry};
use equipoise::{LbGate, Report, RunError, try_run};
use std::collections::BTreeMap;
use std::sync::Arc;

const STEPS: u32 = 5;
const ELEMENTS: i32 = 40;

/// The PE of every element in each period.
type Places = BTreeMap<(i32, u32), u32>;

#[derive(Serialize, Deserialize)]
struct Judge {
    places: Places,
    missing: i32,
    done: Exit<Places>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn note(&mut self, cx: &Cx<Self>, places: Places) {
        self.places.extend(places);
        self.missing -= 1;
        if self.missing == 0 {
            self.done.exit(cx, std::mem::take(&mut self.places));
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Worker {
    step: u32,
    places: Places,
    judge: Array<Judge>,
    bound: Option<Array<Bound>>,
}

/// Works for the worker to which it is bound.
#[derive(Serialize, Deserialize)]
struct Bound {
    workers: Array<Worker>,
}

#[chare(index = [i32; 1])]
impl Bound {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>, step: u32) {
        cx.charge(f64::from(1 + (cx.index()[0] + step as i32) % 3) / 1024.0);
        self.workers.at(cx, cx.index()).join();
    }
}

#[chare(index = [i32; 1], sync)]
impl Worker {
    #[entry]
    fn meet(&mut self, cx: &Cx<Self>, bound: Array<Bound>) {
        cx.charge(0.0);
        self.bound = Some(bound);
        self.go(cx);
    }

    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        let [i] = cx.index();
        self.places.insert((i, self.step), cx.here().0);
        if self.step == STEPS {
            return self.judge.at(cx, ()).note(std::mem::take(&mut self.places));
        }
        // The load moves from step to step. A few elements are heavy, and a few may not move.
        cx.pin(i % 11 == 3);
        let heavy = (i + 7 * self.step as i32) % 9 == 0;
        cx.charge(f64::from(1 + i % 5 + if heavy { 30 } else { 0 } + if i < 8 { 9 } else { 0 }) / 1024.0);
        self.step += 1;
        // Only some have a bound element that works.
        match self.bound.filter(|_| i % 2 == 0) {
            Some(bound) => bound.at(cx, [i]).work(self.step),
            None => self.join(cx),
        }
    }

    #[entry]
    fn join(&mut self, cx: &Cx<Self>) {
        // What is not charged is measured, and differs from run to run.
        cx.charge(0.0);
        cx.at_sync().go();
    }
}

fn work(config: Config) -> Report<Places> {
    try_work(config).unwrap()
}

fn try_work(config: Config) -> Result<Report<Places>, RunError> {
    try_run(config, |pe, done| {
        let judge = pe.array((), |()| Judge { places: Places::new(), missing: ELEMENTS, done });
        let workers = pe.array([ELEMENTS], |_| Worker { step: 0, places: Places::new(), judge, bound: None });
        let bound = pe.array_bound(&workers, |_| Bound { workers });
        pe.main(move |pe| workers.all(pe).meet(bound));
    })
}

/// A strategy as PE 0 runs it.
struct Central(Arc<dyn Strategy>);

impl Strategy for Central {
    fn assign(
        &self,
        database: &Database,
        machine: &dyn Topology,
        seed: u64,
    ) -> Result<Assignment, StrategyError> {
        self.0.assign(database, machine, seed)
    }
}

const SPECS: [&str; 4] = [
    "DistributedLB",
    "DistributedLB:imbalance=0,phases=3,fanout=3,known=5",
    "TemperedLB",
    "TemperedLB:criterion=Grapevine,ordering=LargestObjects,trials=2,rounds=3",
];

#[test]
fn pes_decide_together_what_pe_0_decides_alone() {
    everywhere(40, 16, |config| {
        let config = Config { lb_no_background: true, ..config };
        let spec = SPECS[config.seed as usize % SPECS.len()];
        let alone = registry::parse(spec, &[]).unwrap().strategy;
        assert!(alone.decentral().is_some());
        let together = work(Config { balancer: vec![spec.into()], ..config.clone() });
        let central = Config { balancer: vec!["Central".into()], ..config };
        let alone = work(central.strategy("Central", Arc::new(Central(alone)), false));
        assert_eq!(together.result, alone.result, "{spec}");
        assert_eq!(together.migrations, alone.migrations);
        assert_eq!((together.lb_steps.len(), alone.lb_steps.len()), (STEPS as usize, STEPS as usize));
        for (together, alone) in together.lb_steps.iter().zip(&alone.lb_steps) {
            assert_eq!(together.strategy.as_deref(), Some(spec));
            for (together, alone) in [(&together.before, &alone.before), (&together.after, &alone.after)] {
                about(together.max_load_seconds, alone.max_load_seconds);
                about(together.average_load_seconds, alone.average_load_seconds);
                assert_eq!((together.objects, together.migrations), (alone.objects, alone.migrations));
                assert!(together.lower_bound_seconds <= alone.lower_bound_seconds * (1.0 + 1e-9));
            }
            assert_eq!(together.after.migrated_bytes, alone.after.migrated_bytes);
            assert_eq!(together.notes, alone.notes);
        }
    });
}

#[test]
fn steps_with_and_without_a_centre_alternate() {
    everywhere(30, 8, |config| {
        let spec = SPECS[config.seed as usize % SPECS.len()];
        let folder = tempfile::tempdir().unwrap();
        let strategy = registry::parse(spec, &[]).unwrap().strategy;
        let run = |name: &str| {
            let file = folder.path().join("schedule.txt");
            let others = ["GreedyRefineLB", "NoLB"][config.seed as usize / SPECS.len() % 2];
            std::fs::write(&file, format!("%2 {others}\n%1 {}\n", name.replace([':', ','], " "))).unwrap();
            let config = Config { lb_no_background: true, lb_schedule: Some(file), ..config.clone() };
            work(config.strategy("Central", Arc::new(Central(Arc::clone(&strategy))), false))
        };
        let (together, alone) = (run(spec), run("Central"));
        assert!(together.result == alone.result, "{spec}");
        assert_eq!(together.migrations, alone.migrations);
        assert!(together.lb_steps.iter().any(|step| step.strategy.as_deref() == Some(spec)));
    });
}

#[test]
fn checkpoints_between_steps_without_a_centre_change_no_placement() {
    everywhere(20, 6, |config| {
        let spec = SPECS[config.seed as usize % SPECS.len()];
        let config = Config { lb_no_background: true, ..config };
        let strategy = registry::parse(spec, &[]).unwrap().strategy;
        let config = config.strategy("Central", Arc::new(Central(strategy)), false);
        let by = |name: &str| Config { balancer: vec![name.into()], ..config.clone() };
        let folder = tempfile::tempdir().unwrap();
        let report = work(saves(by(spec), folder.path(), Some(1)));
        assert!(report.result == work(by(spec)).result, "{spec}");
        assert!(report.checkpoints >= 3, "only {} checkpoints", report.checkpoints);
        // Elements of a restarted run begin where new ones would.
        for checkpoint in folder.path().read_dir().unwrap() {
            let checkpoint = checkpoint.unwrap().path();
            let [together, alone] = [spec, "Central"].map(|name| work(restarts_on(by(name), &checkpoint)));
            assert!(together.result == alone.result, "{spec}");
            assert_eq!(together.result.len(), ELEMENTS as usize * (STEPS as usize + 1));
            assert!(!together.lb_steps.is_empty());
        }
    });
}

#[test]
fn a_decision_that_does_not_pay_is_not_applied() {
    let costs =
        Costs { migration: EndCosts { send_seconds: 1e3, ..Default::default() }, ..Default::default() };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("costs.json");
    std::fs::write(&file, serde_json::to_string(&costs).unwrap()).unwrap();
    let config = Config {
        balancer: vec!["DistributedLB".into()],
        lb_gate: LbGate::Auto,
        cost_model: Some(file),
        ..Config::simulated(4, 1)
    };
    let report = work(config);
    assert_eq!(report.migrations, 0);
    assert!(report.lb_steps.iter().all(|step| step.kept.is_some_and(|kept| kept.migrations > 0)));
}

#[test]
fn pes_without_elements_take_part() {
    // With fewer elements than PEs, a PE may begin a step before it has ended the one before.
    everywhere(60, 12, |config| {
        let config = Config { balancer: vec!["DistributedLB:imbalance=0".into()], ..config };
        let report = try_run(config, |pe, done| {
            let judge = pe.array((), |()| Judge { places: Places::new(), missing: 3, done });
            let workers = pe.array([3], |_| Worker { step: 0, places: Places::new(), judge, bound: None });
            pe.main(move |pe| workers.all(pe).go());
        });
        assert_eq!(report.unwrap().lb_steps.len(), STEPS as usize);
    });
}

#[test]
fn counts_and_memory_are_kept() {
    let run = |max_objects: Option<&str>, memory: Option<&str>| {
        let [max_objects, memory] = [max_objects, memory].map(|text| text.map(String::from));
        let balancer = vec!["DistributedLB".into()];
        try_work(Config { balancer, max_objects, memory, lb_strict: true, ..Config::simulated(4, 3) })
    };
    // One of the 41 elements is the judge.
    let report = run(Some("11"), Some("1M")).unwrap();
    for step in 1..=STEPS {
        let mut on = [0; 4];
        for (_, pe) in report.result.iter().filter(|place| place.0.1 == step) {
            on[*pe as usize] += 1;
        }
        assert!(on.iter().all(|&on| on <= 11), "step {step}: {on:?}");
    }
    let error = run(Some("9"), None).unwrap_err().to_string();
    assert!(error.contains("the PEs take at most 36 objects, and there are 41 objects"), "{error}");
    let error = run(None, Some("1")).unwrap_err().to_string();
    assert!(error.contains("the available PEs have room for 4; give --memory more"), "{error}");
}

/// Falls over in the third round.
struct Faulty(u32);

impl Strategy for Faulty {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        Ok(Assignment::unchanged(database))
    }

    fn decentral(&self) -> Option<&dyn Decentral> {
        Some(self)
    }
}

impl Decentral for Faulty {
    fn member(&self, own: Own) -> Box<dyn Member> {
        Box::new(Faulty(own.rank * 10))
    }
}

impl Member for Faulty {
    fn round(&mut self, _: &Totals, _: &[(u32, Arc<Letter>)], _: &mut Sends) -> Option<Totals> {
        self.0 += 1;
        assert_ne!(self.0, 13, "it fell over");
        Some(Totals::default())
    }

    fn outcome(&mut self) -> Outcome {
        Outcome::default()
    }
}

#[test]
fn a_member_that_panics_ends_the_run() {
    for config in [Config::simulated(3, 2), Config::threads(3)] {
        let config = Config { balancer: vec!["Faulty".into()], ..config };
        let config = config.strategy("Faulty", Arc::new(Faulty(0)), false);
        let error = try_work(config).expect_err("a strategy panics").to_string();
        assert!(error.contains("load-balancing step 0: the strategy panicked: "), "{error}");
        assert!(error.contains("it fell over"), "{error}");
    }
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        pes_decide_together_what_pe_0_decides_alone,
        steps_with_and_without_a_centre_alternate,
        checkpoints_between_steps_without_a_centre_change_no_placement,
        pes_without_elements_take_part,
    ]);
}

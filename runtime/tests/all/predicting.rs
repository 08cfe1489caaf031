//! Loads of elements by CPU time, and balancing by predicted loads.

#![allow(missing_docs)]

use equipoise::prelude::*;
use equipoise::{LbLoad, LbStep, Machine, Transport, reduce};
use std::time::{Duration, Instant};

#[derive(Serialize, Deserialize)]
struct Sleeper {
    done: Exit<()>,
}

/// How long the first element sleeps, and the second works.
const TIME: Duration = Duration::from_millis(40);

#[chare(index = [i32; 1], sync)]
impl Sleeper {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        let begin = Instant::now();
        match cx.index() {
            [0] => std::thread::sleep(TIME),
            _ => while begin.elapsed() < TIME {},
        }
        cx.at_sync().end();
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

/// The largest load of an element that works or sleeps alone on its PE, after which the other has the rest, in seconds.
fn largest_and_average(lb_load: LbLoad) -> (f64, f64) {
    let config =
        Config { balancer: vec!["DummyLB".into()], lb_load, lb_no_background: true, ..Config::threads(2) };
    let report = equipoise::run(config, |pe, done| {
        let sleepers = pe.array([2], |_| Sleeper { done });
        pe.main(move |pe| sleepers.all(pe).work());
    });
    let before = &report.lb_steps[0].before;
    (before.max_load_seconds, before.average_load_seconds)
}

#[test]
fn cpu_time_leaves_out_the_time_in_which_a_thread_does_not_run() {
    let seconds = TIME.as_secs_f64();
    let (_, average) = largest_and_average(LbLoad::Wall);
    assert!(average > 0.95 * seconds, "both elements have the load {seconds}, their average is {average}");
    // Half of it: the other element sleeps. Beside other programs, the one that works gets less than that.
    let (largest, average) = largest_and_average(LbLoad::Cpu);
    assert!(largest < 1.1 * seconds && average < 0.6 * seconds, "{largest}, {average}");
    assert!(largest > 1.8 * average, "one element has all the load: {largest}, {average}");
}

#[test]
fn virtual_loads_are_no_cpu_time() {
    let machine = Machine { network: Some("ideal".into()), ..Machine::default() };
    let config =
        Config { lb_load: LbLoad::Cpu, transport: Transport::Simulated, machine, ..Config::threads(2) };
    let error = equipoise::try_run(config, |_, _: Exit<()>| ()).expect_err("it is refused").to_string();
    assert!(error.starts_with("--lb-load cpu on a simulated machine"), "{error}");
}

#[derive(Serialize, Deserialize)]
struct Drifter {
    period: u32,
    done: Exit<()>,
}

const DRIFTERS: i32 = 32;
const PERIODS: u32 = 12;

/// The load of an element in seconds: those of some grow from period to period, those of others shrink.
fn load(me: i32, period: u32) -> f64 {
    let periods = if me < DRIFTERS / 2 { period } else { PERIODS - period };
    1e-3 * f64::from(me % 7 + 1) * f64::from(periods)
}

#[chare(index = [i32; 1], sync)]
impl Drifter {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(load(cx.index()[0], self.period));
        self.period += 1;
        if self.period < PERIODS {
            cx.at_sync().work();
        } else {
            cx.peers().contribute().finished(1);
        }
    }

    #[entry(reduce = reduce::sum)]
    fn finished(&mut self, cx: &Cx<Self>, _elements: u32) {
        if cx.index() == [0] {
            self.done.exit(cx, ());
        }
    }
}

/// The steps of a balancer with these predicted loads.
fn steps(balancer: &str, predictor: &str) -> Vec<LbStep> {
    let machine = Machine { network: Some("ideal".into()), ..Machine::default() };
    let config = Config {
        balancer: vec![balancer.into()],
        lb_predict: Some(predictor.parse().expect("a predictor")),
        transport: Transport::Simulated,
        machine,
        ..Config::threads(4)
    };
    let report = equipoise::run(config, |pe, done| {
        let drifters = pe.array([DRIFTERS], |_| Drifter { period: 0, done });
        pe.main(move |pe| drifters.all(pe).work());
    });
    assert_eq!(report.lb_steps.len() as u32, PERIODS - 1);
    report.lb_steps
}

/// The steps, and the time lost since the fourth period because the most loaded PE had more to do than the average.
fn balanced(predictor: &str) -> (Vec<LbStep>, f64) {
    let steps = steps("GreedyLB", predictor);
    let periods = steps[3..].iter().map(|step| &step.before);
    let lost = periods.map(|before| before.max_load_seconds - before.average_load_seconds).sum();
    (steps, lost)
}

#[test]
fn auto_learns_what_its_candidates_delivered() {
    let steps = steps("auto", "last");
    let (first, second) = (&steps[0], &steps[1]);
    assert!(first.after.migrations > 0 && first.notes.iter().all(|note| !note.name.ends_with("_delivered")));
    let delivered: Vec<_> = second.notes.iter().filter(|note| note.name.ends_with("_delivered")).collect();
    assert_eq!(delivered.len(), 1, "{:?}", second.notes);
    // Loads drift, so the assignment saves less than predicted, but something.
    assert!(delivered[0].value > 0.5 && delivered[0].value < 0.95, "{delivered:?}");
}

#[test]
fn a_trend_balances_loads_that_drift_better_than_the_last_loads() {
    let (steps, last) = balanced("last");
    assert!(steps.iter().all(|step| step.predictor.is_none()));
    let (steps, trend) = balanced("trend=3");
    assert!(steps.iter().all(|step| step.predictor.as_deref() == Some("trend=3")));
    assert!(trend < 0.5 * last, "{trend} s lost with the trend, {last} s with the last loads");
    let (steps, auto) = balanced("auto");
    assert!(auto < 0.5 * last, "{auto} s lost with the best so far, {last} s with the last loads");
    let chosen = steps.last().and_then(|step| step.predictor.as_deref());
    assert_eq!(chosen, Some("trend=4"));
}

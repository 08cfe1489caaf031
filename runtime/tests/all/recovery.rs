//! Recovery over seeds, with all load balancers; what cannot be saved; how often a run should save itself.

#![allow(missing_docs)]

use crate::checkpoints::{Sums, restarts_on, run, saves};
use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::strategies::registry;
use equipoise::{LbWhen, Machine, PeFailure, Report, RunError, reduce, try_run};
use serde::Serializer;
use serde::ser::Error;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::Path;

/// A simulated machine of 4 PEs.
fn machine() -> Config {
    let config = Config::on_machine("torus:2x2", "packet");
    let machine = Machine { delivery: 1e-6, ..config.machine.clone() };
    Config { machine, ..config }
}

#[test]
fn every_balancer_restarts_from_a_random_step_and_balances_first() {
    let (whole, is_full) = (run(machine(), u32::MAX).expect("the run exits").result, is_full_size());
    for (seed, balancer) in (0..).zip(registry::without_required_parameters()) {
        let whole = whole.clone();
        watched(format!("{}, seed {seed}", balancer.spec), move || {
            let dir = tempfile::tempdir().expect("a folder");
            let config = Config { balancer: vec![balancer.spec.clone()], seed, ..machine() };
            let step = 5 + (mixed(seed) >> 20) as u32 % 18;
            run(saves(config.clone(), dir.path(), Some(1)), step).expect_err("the program panics");
            let steps = Checkpoint::open(dir.path()).expect("it has saved itself").steps();
            let all = [config, simulated(mixed(seed)), threads(mixed(seed))].into_iter().zip(0..);
            for (restarted, _) in all.filter(|&(_, nth)| is_full || seed % 3 == nth) {
                let restarted = Config { balancer: vec![balancer.spec.clone()], ..restarted };
                let report = run(restarts_on(restarted.clone(), dir.path()), u32::MAX);
                let report = report.unwrap_or_else(|error| panic!("{}: {error}", describe(&restarted)));
                assert_eq!(report.result, whole, "{}", describe(&restarted));
                let first = &report.lb_steps[0];
                assert_eq!((first.step, first.strategy.as_ref()), (u64::from(steps), Some(&balancer.spec)));
            }
        });
    }
}

#[test]
fn steps_after_a_restart_have_the_numbers_strategies_and_periods_of_the_whole_run() {
    let every = |points| LbWhen::Every(NonZeroU32::new(points).expect("not 0"));
    let balancer = vec!["RotateLB".into()];
    let config = Config { balancer, then: Some("DummyLB".into()), lb_when: every(2), ..machine() };
    let steps = |report: Report<Sums>| -> Vec<_> {
        report.lb_steps.into_iter().map(|step| (step.step, step.strategy, step.sync_points)).collect()
    };
    let whole = steps(run(config.clone(), u32::MAX).expect("the run exits"));
    assert_eq!(whole.iter().map(|step| step.2).collect::<Vec<_>>(), vec![2; whole.len()]);
    let mut seen = BTreeSet::new();
    for step in (3..24).step_by(if is_full_size() { 1 } else { 4 }) {
        let dir = tempfile::tempdir().expect("a folder");
        run(saves(config.clone(), dir.path(), Some(1)), step).expect_err("the program panics");
        let done = Checkpoint::open(dir.path()).expect("it has saved itself").steps() as usize;
        let restarted = run(restarts_on(config.clone(), dir.path()), u32::MAX).expect("the run exits");
        assert_eq!(steps(restarted), whole[done..], "a panic in step {step}");
        seen.insert(done);
    }
    assert!(seen.len() > 1, "{seen:?}");
}

#[test]
fn runs_whose_pes_fail_again_and_again_end_with_the_same_result() {
    let whole = run(machine(), u32::MAX).expect("the run exits");
    let seconds = whole.machine.expect("a simulated machine").seconds;
    for seed in seeds(32) {
        let whole = whole.result.clone();
        watched(format!("seed {seed}"), move || {
            let dir = tempfile::tempdir().expect("a folder");
            let mut rng = Rng::new(seed, 0);
            let mut failures = 0;
            loop {
                let mut config =
                    if seed % 2 == 0 { machine() } else { Config::on_machine("torus:3", "ideal") };
                let pes = if seed % 2 == 0 { 4 } else { 3 };
                let mut random = || seconds * (1 + rng.sample(1000)) as f64 / 1000.0;
                let times = [random(), random(), random()];
                // One PE becomes slow, and two fail: the run ends at the first of them.
                config.machine.speed = vec![format!("{}@{}=0.1", seed % pes, times[2])];
                config.machine.fail =
                    (0..).zip(&times[..2]).map(|(pe, &seconds)| PeFailure { pe, seconds }).collect();
                if failures == 4 {
                    config.machine.fail.clear();
                }
                config.balancer = vec![["RotateLB", "RandomLB", "GreedyLB"][seed as usize % 3].into()];
                let mut config = saves(Config { seed, ..config }, dir.path(), Some(1));
                if Checkpoint::newest(dir.path()).is_ok() {
                    config.checkpoints.restart = Some(dir.path().to_owned());
                }
                match run(config, u32::MAX) {
                    Ok(report) => return assert_eq!(report.result, whole),
                    Err(error) => {
                        let first = usize::from(times[1] < times[0]);
                        let expected = format!("PE {first} failed at {} s of virtual time", times[first]);
                        assert!(error.to_string().contains(&expected), "{error}");
                        failures += 1;
                    }
                }
            }
        });
    }
}

const SIDE: u32 = 7;

/// N-Queens: the boards of each row insert those of the next row and end, with a checkpoint between the rows.
#[derive(Serialize, Deserialize)]
struct Board {
    columns: Vec<u32>,
    panics_at: Shared<usize>,
    rows: Array<Rows>,
}

#[chare(index = [i32; 1])]
impl Board {
    #[entry]
    fn search(&mut self, cx: &Cx<Self>) {
        if self.columns.len() == *self.panics_at.get(cx) {
            panic!("as asked");
        }
        let attacks = |column: u32| {
            let mut above = (1..).zip(self.columns.iter().rev());
            above.any(|(rows, &other)| other == column || other.abs_diff(column) == rows)
        };
        let safe: Vec<u32> = (0..SIDE).filter(|&column| !attacks(column)).collect();
        // The inserted boards contribute from the next row on.
        self.rows.at(cx, ()).contribute().searched(safe.len() as u32);
        for column in safe {
            let columns = [&self.columns[..], &[column]].concat();
            let index = columns.iter().fold(0, |index, column| index * (SIDE + 1) + column + 1);
            cx.array().insert(cx, [index as i32], Board { columns, ..*self });
        }
        cx.destroy();
    }
}

#[derive(Serialize, Deserialize)]
struct Rows {
    row: u32,
    boards: Array<Board>,
    done: Exit<u32>,
}

#[chare(index = ())]
impl Rows {
    #[entry]
    fn meet(&mut self, cx: &Cx<Self>, boards: Array<Board>) {
        self.boards = boards;
        boards.at(cx, [0]).search();
    }

    #[entry(reduce = reduce::sum)]
    fn searched(&mut self, cx: &Cx<Self>, boards: u32) {
        self.row += 1;
        if self.row == SIDE {
            return self.done.exit(cx, boards);
        }
        self.boards.all(cx).at_checkpoint().search();
    }
}

fn queens(config: Config, panics_at: usize) -> Result<u32, RunError> {
    let report = try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let boards = pe.sparse([(SIDE as i32 + 1).pow(SIDE)]);
        let rows = pe.array((), |()| Rows { row: 0, boards, done });
        pe.main(move |pe| {
            boards.insert(pe, [0], Board { columns: Vec::new(), panics_at, rows });
            rows.at(pe, ()).meet(boards);
        });
    });
    report.map(|report| report.result)
}

#[test]
fn a_search_that_inserts_and_ends_elements_restarts_at_any_row() {
    everywhere(24, 12, |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let row = 1 + mixed(config.seed) as usize % 6;
        queens(saves(config.clone(), dir.path(), None), row).expect_err("the program panics");
        let seed = mixed(config.seed);
        let other = if seed % 2 == 0 { threads(seed) } else { simulated(seed) };
        let found = queens(restarts_on(other.clone(), dir.path()), usize::MAX);
        assert_eq!(found.unwrap_or_else(|error| panic!("{}: {error}", describe(&other))), 40);
    });
}

/// Answers what it was asked, when nothing is in flight.
#[derive(Serialize, Deserialize)]
struct Oracle {
    asked: Vec<Reply<u64>>,
}

#[chare(index = [i32; 1])]
impl Oracle {
    #[entry]
    fn ask(&mut self, cx: &Cx<Self>, reply: Reply<u64>) {
        self.asked.push(reply);
        cx.peer(cx.index()).at_quiescence().answer();
    }

    #[entry]
    fn answer(&mut self, cx: &Cx<Self>) {
        for reply in self.asked.drain(..) {
            reply.send(cx, mixed(cx.index()[0] as u64));
        }
    }
}

const ASKERS: i32 = 5;

/// Asks, adds the answers, and goes on when the run has saved itself.
#[derive(Serialize, Deserialize)]
struct Asker {
    step: u32,
    sum: u64,
    /// Whether it asks for a checkpoint while it waits for replies.
    is_hasty: bool,
    panics_at: Shared<u32>,
    oracles: Array<Oracle>,
    done: Exit<u64>,
}

#[chare(index = [i32; 1])]
impl Asker {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        if self.step == *self.panics_at.get(cx) {
            panic!("as asked");
        }
        let (me, here) = (cx.array(), cx.index());
        let reply = cx.reply(move |pe, answer: u64| me.at(pe, here).hear(answer));
        self.oracles.at(cx, [(here[0] + self.step as i32) % ASKERS]).ask(reply);
        if self.is_hasty {
            cx.peer(here).at_checkpoint().nothing();
        }
    }

    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}

    #[entry]
    fn hear(&mut self, cx: &Cx<Self>, answer: u64) {
        self.sum = mixed(self.sum ^ answer);
        self.step += 1;
        if self.step == 6 {
            return cx.peer([0]).contribute().total(self.sum);
        }
        cx.peer(cx.index()).at_checkpoint().begin();
    }

    #[entry(reduce = u64::wrapping_add)]
    fn total(&mut self, cx: &Cx<Self>, sum: u64) {
        self.done.exit(cx, sum);
    }
}

fn ask(config: Config, panics_at: u32, is_hasty: bool) -> Result<(u64, Option<String>), RunError> {
    let report = try_run(config, move |pe, done| {
        let panics_at = pe.shared(|| panics_at);
        let oracles = pe.array([ASKERS], |_| Oracle { asked: Vec::new() });
        let asker = |_| Asker { step: 0, sum: 0, is_hasty, panics_at, oracles, done };
        let askers = pe.array([ASKERS], asker);
        pe.main(move |pe| askers.all(pe).begin());
    });
    report.map(|report| (report.result, report.checkpoint_error))
}

#[test]
fn replies_before_and_after_a_restart_arrive() {
    let (expected, _) = ask(Config::simulated(1, 0), u32::MAX, false).expect("the run exits");
    everywhere(24, 12, move |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let seed = mixed(config.seed);
        ask(saves(config, dir.path(), None), 1 + seed as u32 % 5, false).expect_err("the program panics");
        let other = if seed % 2 == 0 { threads(seed) } else { simulated(seed) };
        let found = ask(restarts_on(other.clone(), dir.path()), u32::MAX, false);
        assert_eq!(found.expect("the run exits").0, expected, "{}", describe(&other));
    });
}

#[test]
fn a_parked_closure_fails_the_checkpoint_by_name_and_the_run_goes_on() {
    let (expected, _) = ask(Config::simulated(1, 0), u32::MAX, false).expect("the run exits");
    everywhere(8, 8, move |config| {
        let dir = tempfile::tempdir().expect("a folder");
        let (sum, error) = ask(saves(config, dir.path(), None), u32::MAX, true).expect("the run exits");
        assert_eq!(sum, expected);
        let error = error.expect("a checkpoint fails");
        for part in ["parked by Asker[", "save when all replies have arrived"] {
            assert!(error.contains(part), "no `{part}` in {error}");
        }
    });
}

/// Has something that cannot be saved.
#[derive(Serialize, Deserialize)]
struct Holder {
    #[serde(serialize_with = "handle")]
    socket: Option<u32>,
    done: Exit<()>,
}

/// As programs refuse to encode a handle.
fn handle<S: Serializer>(socket: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    match socket {
        Some(_) => Err(S::Error::custom("an open socket is of one process")),
        None => serializer.serialize_none(),
    }
}

#[chare(index = [i32; 1])]
impl Holder {
    #[entry]
    fn finish(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

#[test]
fn a_handle_fails_the_checkpoint_with_the_name_of_the_element_and_the_run_goes_on() {
    for config in [Config::threads(2), Config::simulated(3, 1)] {
        let dir = tempfile::tempdir().expect("a folder");
        let report = try_run(saves(config, dir.path(), None), |pe, done| {
            let holders = pe.array([4], |[at]| Holder { socket: (at == 2).then_some(7), done });
            pe.main(move |pe| holders.at(pe, [0]).at_checkpoint().finish());
        });
        let error = report.expect("the run exits").checkpoint_error.expect("the checkpoint fails");
        assert!(error.contains("Holder[2] cannot be saved: an open socket is of one process"), "{error}");
        Checkpoint::newest(dir.path()).expect_err("there is none");
    }
}

/// The time to save a byte, so that a checkpoint takes about 2 s.
const BANDWIDTH: f64 = 600.0;
const SECONDS: u32 = 200;

/// Works for a second at a time, and saves itself after some of them.
#[derive(Serialize, Deserialize)]
struct Worker {
    worked: u32,
    /// The number of seconds between checkpoints; not saved, so that its size is the same.
    interval: Shared<u32>,
    ballast: Vec<u8>,
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl Worker {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(1.0);
        self.worked += 1;
        if self.worked == SECONDS {
            self.done.exit(cx, ());
        } else if self.worked % *self.interval.get(cx) == 0 {
            cx.peer(cx.index()).at_checkpoint().work();
        } else {
            cx.peer(cx.index()).work();
        }
    }
}

/// The virtual time of a job that fails at seeded times, one after another, until it ends; and the best interval that a run
/// without failures reports.
fn job_seconds(interval: u32, mtbf: f64, seed: Option<u64>, dir: &Path) -> (f64, f64) {
    let (mut rng, mut seconds) = (Rng::new(seed.unwrap_or(0), 1), 0.0);
    loop {
        let mut config = Config::on_machine("flat:1", "ideal");
        config.machine.checkpoint_bandwidth = BANDWIDTH;
        let random = (1 + rng.sample(1 << 20)) as f64 / (1 << 20) as f64;
        let fails = -mtbf * random.ln();
        if seed.is_some() {
            config.machine.fail = vec![PeFailure { pe: 0, seconds: fails }];
        }
        let mut config = saves(config, dir, None);
        config.checkpoints.mtbf = Some(mtbf);
        if Checkpoint::newest(dir).is_ok() {
            config.checkpoints.restart = Some(dir.to_owned());
        }
        let report = try_run(config, |pe, done| {
            let interval = pe.shared(|| interval);
            let worker = pe.array([1], |_| Worker { worked: 0, interval, ballast: vec![0; 1200], done });
            pe.main(move |pe| worker.at(pe, [0]).work());
        });
        match report {
            Ok(report) => {
                let best = report.checkpoint_cost.and_then(|cost| cost.best_interval_seconds());
                return (seconds + report.machine.expect("a machine").seconds, best.unwrap_or(f64::NAN));
            }
            Err(error) => assert!(error.to_string().contains("PE 0 failed"), "{error}"),
        }
        seconds += fails;
    }
}

#[test]
#[ignore = "slow"]
fn jobs_that_fail_end_earliest_near_the_interval_of_daly() {
    const MTBF: f64 = 50.0;
    const SEEDS: u64 = 30;
    let dir = tempfile::tempdir().expect("a folder");
    let (_, best) = job_seconds(10, MTBF, None, dir.path());
    let mut means = Vec::new();
    for interval in [3u32, 6, 12, 24, 48] {
        let mut sum = 0.0;
        for seed in 0..SEEDS {
            let dir = tempfile::tempdir().expect("a folder");
            sum += job_seconds(interval, MTBF, Some(seed), dir.path()).0;
        }
        println!("an interval of {interval} s: {:.0} s", sum / SEEDS as f64);
        means.push((sum / SEEDS as f64, interval));
    }
    let (_, found) = means.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).expect("intervals");
    println!("Daly: {best:.1} s");
    assert!((11.0..14.0).contains(&best), "{best}");
    assert_eq!(found, 12, "{means:?}");
}

#[test]
fn saving_and_reading_a_checkpoint_take_the_time_of_the_bandwidth() {
    let dir = tempfile::tempdir().expect("a folder");
    let (whole, _) = job_seconds(SECONDS, 1e6, None, dir.path());
    assert!((whole - f64::from(SECONDS)).abs() < 1e-3, "{whole} s without a checkpoint");
    let (saving, _) = job_seconds(50, 1e6, None, dir.path());
    let bytes: u64 =
        Checkpoint::open(dir.path()).expect("one").arrays().iter().map(|array| array.bytes).sum();
    let each = bytes as f64 / BANDWIDTH;
    assert!(each > 2.0 && (saving - whole - 3.0 * each).abs() < 1.0, "{saving} s, {each} s for each of 3");
    let (restarted, _) = job_seconds(50, 1e6, None, dir.path());
    assert!((restarted - 50.0 - each).abs() < 0.5, "{restarted} s from the last checkpoint");
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        every_balancer_restarts_from_a_random_step_and_balances_first,
        steps_after_a_restart_have_the_numbers_strategies_and_periods_of_the_whole_run,
        runs_whose_pes_fail_again_and_again_end_with_the_same_result,
        a_search_that_inserts_and_ends_elements_restarts_at_any_row,
        replies_before_and_after_a_restart_arrive,
        a_parked_closure_fails_the_checkpoint_by_name_and_the_run_goes_on,
    ]);
}

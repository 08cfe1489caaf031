//! `--record-order` and `--replay-order`: a run of threads whose result depends on the order of deliveries is repeated.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{Reply, Report, RunError, reduce};
use std::fs;
use std::path::{Path, PathBuf};

/// Notes what it receives, in order, and lets the digest of its notes decide what to do next.
#[derive(Serialize, Deserialize)]
struct Racer {
    notes: u64,
    step: u32,
    guests: i32,
    plan: Plan,
    judge: Array<Judge>,
    hotel: Array<Guest>,
}

/// What a run does.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Plan {
    racers: i32,
    tokens: i32,
    hops: u32,
    steps: u32,
    /// An element panics if its digest is 1 modulo this number; 0 for no panics.
    panics: u64,
}

#[chare(index = [i32; 1], sync)]
impl Racer {
    #[entry]
    fn start(&mut self, cx: &Cx<Self>) {
        for token in 0..self.plan.tokens {
            cx.peer([(cx.index()[0] + 1 + token * 5) % self.plan.racers])
                .token(cx.index()[0], self.plan.hops);
        }
        self.work(cx);
    }

    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        self.step += 1;
        if self.step <= self.plan.steps {
            cx.at_sync().work();
        } else {
            self.judge.at(cx, ()).contribute().stepped(());
        }
    }

    #[entry]
    fn token(&mut self, cx: &Cx<Self>, from: i32, left: u32) {
        self.note(from as u64);
        let (me, racers) = (cx.index()[0], self.plan.racers);
        assert!(self.plan.panics == 0 || self.notes % self.plan.panics != 1, "unlucky after {from}");
        if left == 0 {
            return self.judge.at(cx, ()).landed();
        }
        cx.peer([(self.notes % racers as u64) as i32]).token(me, left - 1);
        match (self.notes >> 20) % 48 {
            0 => cx.migrate(Pe((self.notes >> 40) as u32 % cx.pes() as u32)),
            1 => self.judge.at(cx, ()).claim(me),
            2 => cx.peers().shout(me),
            3 => cx.array().only(cx, |[i]| i % 3 == 0).shout(me),
            4 => {
                self.guests += 1;
                let room = [me * 1000 + self.guests];
                self.hotel.insert(cx, room, Guest { judge: self.judge });
                self.hotel.at(cx, room).greet(me);
            }
            5 => {
                let racers = cx.array();
                let reply = cx.reply(move |pe, claims: u64| racers.at(pe, [me]).answered(claims));
                self.judge.at(cx, ()).ask(reply);
            }
            6 if me % 3 == 0 => {
                let third = cx.array().section(cx, |[i]| i % 3 == 0);
                third.all(cx).contribute_in(&third).gathered(self.notes);
            }
            _ => {}
        }
    }

    #[entry(reduce = u64::wrapping_add)]
    fn gathered(&mut self, _cx: &Cx<Self>, sum: u64) {
        self.note(sum);
    }

    #[entry]
    fn shout(&mut self, _cx: &Cx<Self>, from: i32) {
        self.note(1 << 32 | from as u64);
    }

    #[entry]
    fn answered(&mut self, _cx: &Cx<Self>, claims: u64) {
        self.note(claims);
    }

    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        self.judge.at(cx, ()).contribute().over(vec![self.notes]);
    }
}

impl Racer {
    fn note(&mut self, what: u64) {
        self.notes = mixed(self.notes ^ mixed(what));
    }
}

/// An element that ends when it is greeted.
#[derive(Serialize, Deserialize)]
struct Guest {
    judge: Array<Judge>,
}

#[chare(index = [i32; 1])]
impl Guest {
    #[entry]
    fn greet(&mut self, cx: &Cx<Self>, from: i32) {
        self.judge.at(cx, ()).claim(from + cx.index()[0]);
        cx.destroy();
    }
}

/// Notes the claims in the order of their arrival; the first come wins.
#[derive(Serialize, Deserialize)]
struct Judge {
    claims: u64,
    missing: i32,
    racers: Option<Array<Racer>>,
    done: Exit<Vec<u64>>,
}

#[chare(index = ())]
impl Judge {
    #[entry]
    fn meet(&mut self, _cx: &Cx<Self>, racers: Array<Racer>) {
        self.racers = Some(racers);
    }

    #[entry]
    fn claim(&mut self, _cx: &Cx<Self>, from: i32) {
        self.claims = mixed(self.claims ^ from as u64);
    }

    #[entry]
    fn ask(&mut self, cx: &Cx<Self>, reply: Reply<u64>) {
        reply.send(cx, self.claims);
    }

    #[entry]
    fn landed(&mut self, cx: &Cx<Self>) {
        self.ends(cx);
    }

    #[entry(reduce = reduce::nothing)]
    fn stepped(&mut self, cx: &Cx<Self>, _all: ()) {
        self.ends(cx);
    }

    #[entry(reduce = reduce::concat)]
    fn over(&mut self, cx: &Cx<Self>, mut notes: Vec<u64>) {
        notes.push(self.claims);
        self.done.exit(cx, notes);
    }
}

impl Judge {
    fn ends(&mut self, cx: &Cx<Self>) {
        self.missing -= 1;
        if let (0, Some(racers)) = (self.missing, self.racers) {
            racers.all(cx).at_quiescence().report();
        }
    }
}

const PLAN: Plan = Plan { racers: 12, tokens: 2, hops: 60, steps: 6, panics: 0 };

fn race(config: Config, plan: Plan) -> Result<Report<Vec<u64>>, RunError> {
    equipoise::try_run(config, |pe, done| {
        let missing = plan.racers * plan.tokens + 1;
        let judge = pe.array((), |()| Judge { claims: 0, missing, racers: None, done });
        let hotel = pe.sparse([1 << 20]);
        let racers =
            pe.array([plan.racers], |[i]| Racer { notes: i as u64, step: 0, guests: 0, plan, judge, hotel });
        pe.main(move |pe| {
            judge.at(pe, ()).meet(racers);
            racers.all(pe).start();
        });
    })
}

fn recorded(pes: usize, file: &Path) -> Config {
    Config { record_order: Some(file.to_owned()), balancer: vec!["RotateLB".into()], ..Config::threads(pes) }
}

fn replayed(file: &Path) -> Config {
    Config { pes: None, record_order: None, replay_order: Some(file.to_owned()), ..recorded(1, file) }
}

/// A folder for the file of an order, and the file.
fn order_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order");
    (folder, file)
}

fn counts(report: &Report<Vec<u64>>) -> (u64, u64, u64, usize, usize) {
    let Report { executions, remote_messages, migrations, lb_steps, pes, .. } = report;
    (*executions, *remote_messages, *migrations, lb_steps.len(), *pes)
}

#[test]
fn a_replay_repeats_the_result_of_a_race() {
    let mut results = std::collections::BTreeSet::new();
    for (pes, runs) in [(1, 1), (2, 6), (3, 3), (4, 3), (9, 2)] {
        for run in 0..if is_full_size() { runs * 10 } else { runs } {
            let notes = watched(format!("run {run} on {pes} PEs"), move || {
                let (_folder, file) = order_file();
                let config = Config {
                    migration: if run % 2 == 0 {
                        equipoise::Migration::Encode
                    } else {
                        equipoise::Migration::Move
                    },
                    ..recorded(pes, &file)
                };
                let then = race(config.clone(), PLAN).unwrap();
                assert_eq!(then.dump_error, None);
                for _ in 0..2 {
                    let again = Config { migration: config.migration, ..replayed(&file) };
                    let now = race(again, PLAN).unwrap();
                    assert_eq!(now.result, then.result);
                    assert_eq!(counts(&now), counts(&then));
                }
                then.result
            });
            results.insert(notes);
        }
    }
    assert!(results.len() > 5, "the result depends on the order of deliveries: {}", results.len());
}

#[test]
fn a_replay_repeats_a_panic_that_only_some_orders_have() {
    watched("panics".into(), || {
        let plan = Plan { panics: 1500, ..PLAN };
        let (_folder, file) = order_file();
        let (mut failed, mut passed) = (0, 0);
        for _ in 0..200 {
            let then = race(recorded(3, &file), plan);
            let now = race(replayed(&file), plan);
            match (then, now) {
                (Ok(then), Ok(now)) => {
                    assert_eq!(then.result, now.result);
                    passed += 1;
                }
                (Err(then), Err(now)) => {
                    assert_eq!(then.to_string(), now.to_string());
                    assert!(then.to_string().contains("entry `token` on PE"), "{then}");
                    // A run that is killed lacks the last frame, which names the PE that ended the run. If another PE panicked
                    // at the same time, the replay may report that panic.
                    let bytes = fs::read(&file).unwrap();
                    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
                    let cut = race(replayed(&file), plan).map(|report| report.result).unwrap_err();
                    let panics =
                        |text: &str| text.contains("entry `token` on PE") && text.contains("unlucky");
                    assert!(panics(&cut.to_string()) && panics(&then.to_string()), "{cut}");
                    failed += 1;
                }
                (then, now) => panic!("{then:?} was repeated as {now:?}"),
            }
            if failed > 2 && passed > 2 {
                return;
            }
        }
        panic!("{failed} runs failed and {passed} passed");
    });
}

#[test]
fn a_file_that_is_cut_or_damaged_never_gives_another_run() {
    watched("cuts".into(), || {
        let (_folder, file) = order_file();
        race(recorded(3, &file), PLAN).unwrap();
        let bytes = fs::read(&file).unwrap();
        for length in (0..bytes.len()).step_by(bytes.len() / 40 + 1).chain([bytes.len() - 1]) {
            fs::write(&file, &bytes[..length]).unwrap();
            let error = race(replayed(&file), PLAN).map(|report| report.result).unwrap_err().to_string();
            assert!(error.contains(file.to_str().unwrap()), "{error}");
        }
        for at in (0..bytes.len()).step_by(bytes.len() / 60 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            fs::write(&file, &damaged).unwrap();
            let error = race(replayed(&file), PLAN).map(|report| report.result).unwrap_err().to_string();
            assert!(error.contains(file.to_str().unwrap()), "{error}");
        }
        fs::write(&file, &bytes).unwrap();
        race(replayed(&file), PLAN).unwrap();
    });
}

#[track_caller]
fn refused(config: Config, plan: Plan, sentences: &[&str]) {
    let error = race(config, plan).map(|report| report.result).unwrap_err().to_string();
    for sentence in sentences {
        assert!(error.contains(sentence), "{error:?} does not say {sentence:?}");
    }
}

#[test]
fn another_program_is_refused_with_a_sentence() {
    watched("other programs".into(), || {
        let (_folder, file) = order_file();
        race(recorded(3, &file), PLAN).unwrap();
        let same = replayed(&file);
        refused(Config { pes: Some(2), ..same.clone() }, PLAN, &["the run has 3 PEs", "leave out --pes"]);
        refused(Config { seed: 5, ..same.clone() }, PLAN, &["give --seed 0"]);
        refused(Config { initial: "random".into(), ..same.clone() }, PLAN, &["the same --initial"]);
        refused(Config { balancer: Vec::new(), ..same.clone() }, PLAN, &["the same --balancer"]);
        refused(same.clone(), Plan { racers: 13, ..PLAN }, &["Racer of 12", "Racer of 13"]);
        for plan in [Plan { hops: 59, ..PLAN }, Plan { hops: 61, ..PLAN }, Plan { steps: 5, ..PLAN }] {
            refused(same.clone(), plan, &["cannot repeat event", "of the recorded run"]);
        }
        refused(same.clone(), Plan { panics: 3, ..PLAN }, &["cannot repeat event", "no panic here"]);
        let simulated = Config { record_order: Some(file.clone()), ..Config::simulated(3, 1) };
        refused(simulated, PLAN, &["repeated by its --seed"]);
        let simulated = Config { transport: equipoise::Transport::Simulated, ..same.clone() };
        refused(simulated, PLAN, &["--replay-order with --transport simulated", "leave out --transport"]);
        race(Config { bind: true, ..same.clone() }, PLAN).unwrap();
        refused(Config { record_order: Some(file.clone()), ..same }, PLAN, &["name one of them"]);
        refused(replayed(Path::new("/nowhere")), PLAN, &["cannot read the order file"]);
        refused(recorded(2, Path::new("/nowhere/at/all")), PLAN, &["cannot write the order file"]);
        fs::write(&file, "text").unwrap();
        refused(replayed(&file), PLAN, &["is not an order file"]);
    });
}

#[test]
fn a_message_between_pes_costs_few_bytes() {
    watched("bytes".into(), || {
        let (_folder, file) = order_file();
        let report = race(recorded(4, &file), Plan { hops: 2000, ..PLAN }).unwrap();
        let bytes = fs::metadata(&file).unwrap().len();
        let most = 5 * report.remote_messages + 4096;
        assert!(report.remote_messages > 20_000, "{} messages", report.remote_messages);
        assert!(bytes < most, "{bytes} bytes for {} messages", report.remote_messages);
    });
}

/// Ends the run, or waits forever.
#[derive(Serialize, Deserialize)]
struct Hasty {
    exits: bool,
    done: Exit<i32>,
}

#[chare(index = [i32; 1])]
impl Hasty {
    #[entry]
    fn go(&mut self, cx: &Cx<Self>) {
        if self.exits {
            self.done.exit(cx, cx.index()[0]);
        }
    }

    #[entry(when = self.exits)]
    fn wait(&mut self, _cx: &Cx<Self>, _number: i32) {}
}

fn hurry(config: Config, exits: bool) -> Result<i32, String> {
    let report = equipoise::try_run(config, |pe, done| {
        let all = pe.array([8], |_| Hasty { exits, done });
        pe.main(move |pe| {
            all.all(pe).go();
            all.all(pe).wait(1);
        });
    });
    report.map(|report| report.result).map_err(|error| error.to_string())
}

#[test]
fn the_first_exit_or_failure_wins_in_the_replay_too() {
    watched("exits".into(), || {
        let (_folder, file) = order_file();
        for exits in [true, false] {
            for _ in 0..10 {
                let config = Config { balancer: Vec::new(), ..recorded(4, &file) };
                let then = hurry(config, exits);
                let now = hurry(Config { balancer: Vec::new(), ..replayed(&file) }, exits);
                assert_eq!(now, then);
                assert_eq!(then.is_ok(), exits, "{then:?}");
                // A run that is killed lacks the last frame, which names the PE that ended the run.
                let bytes = fs::read(&file).unwrap();
                fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
                let cut = hurry(Config { balancer: Vec::new(), ..replayed(&file) }, exits).unwrap_err();
                match then {
                    Ok(_) => assert!(cut.contains("were repeated, without a failure"), "{cut}"),
                    Err(then) => assert_eq!(cut, then),
                }
            }
        }
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[a_replay_repeats_the_result_of_a_race]);
}

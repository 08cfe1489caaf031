//! Runs that do not end by themselves, and what is said about runs that come to rest.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::prelude::*;
use equipoise::{RunError, Transport, try_run};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// An element that does each of the things that keep a run from its end.
#[derive(Serialize, Deserialize)]
struct Runner {
    rounds: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1], sync)]
impl Runner {
    #[entry]
    fn pass(&mut self, cx: &Cx<Self>) {
        std::thread::sleep(Duration::from_micros(20));
        cx.peer([(cx.index()[0] + 1) % cx.shape()[0]]).pass();
    }

    /// Calls `at_sync` and migrates, again and again.
    #[entry]
    fn wander(&mut self, cx: &Cx<Self>) {
        self.rounds += 1;
        if self.rounds == 12 {
            return cx.peer([0]).contribute().arrived(self.rounds);
        }
        cx.at_sync().wander();
        if self.rounds % 3 != 0 {
            cx.migrate(Pe((self.rounds + cx.index()[0] as u32) % cx.pes() as u32));
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn arrived(&mut self, cx: &Cx<Self>, rounds: u32) {
        self.done.exit(cx, rounds);
    }

    #[entry]
    fn part(&mut self, cx: &Cx<Self>, others: Array<Other>) {
        match cx.index() {
            [0] => cx.peer([1]).contribute().arrived(1),
            [5] => others.all(cx).contribute().best(2),
            _ => {}
        }
    }

    #[entry]
    fn waits(&mut self, cx: &Cx<Self>) {
        cx.at_sync().wander();
    }

    #[entry]
    fn answers(&mut self, cx: &Cx<Self>, reply: Reply<()>) {
        reply.send(cx, ());
    }

    #[entry]
    fn ponders(&mut self, _cx: &Cx<Self>, seconds: f64) {
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
}

#[derive(Serialize, Deserialize)]
struct Other;

#[chare(index = [i32; 1], sync)]
impl Other {
    #[entry(reduce = std::cmp::max)]
    fn best(&mut self, _cx: &Cx<Self>, _value: u32) {}
}

/// The error of a run of 6 runners and 2 others.
fn error(config: Config, start: fn(&PeCx, Array<Runner>, Array<Other>)) -> RunError {
    let run = try_run(config, |pe, done: Exit<u32>| {
        let runners = pe.array([6], |_| Runner { rounds: 0, done });
        let others = pe.array([2], |_| Other);
        pe.main(move |pe| start(pe, runners, others));
    });
    run.map(|report| report.result).expect_err("the run has no result")
}

/// What a run waits for that comes to rest.
fn waiting(config: Config, start: fn(&PeCx, Array<Runner>, Array<Other>)) -> Vec<String> {
    match error(config, start) {
        RunError::Quiet { waiting, .. } => waiting,
        other => panic!("{other}"),
    }
}

#[test]
fn the_time_limit_ends_a_run_in_which_messages_circulate() {
    everywhere(14, 8, |config| {
        let (begin, seed) = (Instant::now(), config.seed);
        let simulated = config.transport == Transport::Simulated;
        let config = Config { time_limit: Some(0.1), ..config };
        let error = error(config, |pe, runners, _| {
            runners.at(pe, [0]).pass();
            runners.at(pe, [3]).pass();
        });
        assert!(begin.elapsed() >= Duration::from_millis(100));
        assert_eq!(error.exit_code(), 1);
        let sentence = error.to_string();
        assert!(sentence.starts_with("the run did not end within --time-limit 0.1 (seconds)"), "{sentence}");
        assert_eq!(
            sentence.contains(&format!("(seconds), simulated with seed {seed}")),
            simulated,
            "{sentence}"
        );
        let RunError::TimeLimit { seconds, waiting, .. } = error else { panic!("{error:?}") };
        assert_eq!(seconds, 0.1);
        // The two messages are queued, in flight or running, or were taken between two looks at a PE.
        let is_known = |line: &String| {
            line.contains("] in entry `pass` on PE ")
                || line.ends_with(" queued")
                || line.ends_with(" in flight")
        };
        assert!(!waiting.is_empty() && waiting.iter().all(is_known), "{waiting:?}");
    });
}

#[test]
fn the_time_limit_does_not_matter_to_a_run_that_ends_or_rests() {
    everywhere(10, 8, |config| {
        let config = Config { time_limit: Some(1e9), watchdog: Some(1e9), ..config };
        assert!(waiting(config.clone(), |_, _, _| ()).is_empty());
        let report = equipoise::run(config, |pe, done| {
            pe.main(move |pe| done.exit(pe, 7));
        });
        assert_eq!(report.result, 7);
    });
}

#[test]
fn no_setup_begins_after_the_time_limit() {
    let setups = AtomicU32::new(0);
    let config = Config { time_limit: Some(0.05), ..Config::simulated(8, 0) };
    let run = try_run(config, |_, _: Exit<u32>| {
        setups.fetch_add(1, Relaxed);
        std::thread::sleep(Duration::from_millis(200));
    });
    let error = run.map(|report| report.result).expect_err("the time is over");
    assert!(matches!(error, RunError::TimeLimit { .. }), "{error}");
    assert_eq!(setups.load(Relaxed), 1);
}

#[test]
fn messages_that_travel_as_orders_are_reported_as_queued() {
    // A run whose order is recorded has directories: messages between PEs are orders.
    let folder = tempfile::tempdir().unwrap();
    let order = folder.path().join("order");
    for record_order in [None, Some(order)] {
        let config = Config { time_limit: Some(0.2), record_order, ..Config::threads(2) };
        let error = error(config, |pe, runners, _| {
            runners.at(pe, [5]).ponders(0.6);
            for _ in 0..3 {
                runners.at(pe, [4]).pass();
            }
        });
        let RunError::TimeLimit { waiting, .. } = error else { panic!("{error:?}") };
        let line = "PE 1: 3 messages for elements of Runner are queued";
        assert!(waiting.iter().any(|it| it == line), "{waiting:?}");
    }
}

#[test]
fn a_run_without_a_process_of_its_own_ends_when_the_entry_returns() {
    everywhere(2, 2, |config| {
        let begin = Instant::now();
        let config = Config { time_limit: Some(0.15), ..config };
        let error = error(config, |pe, runners, _| runners.at(pe, [5]).ponders(0.5));
        assert!(begin.elapsed() >= Duration::from_millis(500));
        let RunError::TimeLimit { waiting, .. } = error else { panic!("{error:?}") };
        let line = waiting.first().map_or("", |line| line.as_str());
        assert!(line.starts_with("Runner[5] in entry `ponders` on PE "), "{waiting:?}");
        assert!(line.ends_with("running") || line.contains(" has run for "), "{waiting:?}");
    });
}

#[test]
fn elements_that_have_not_contributed_are_named_over_all_pes() {
    everywhere(20, 8, |config| {
        let lines = waiting(config.clone(), |pe, runners, others| {
            for at in 0..5 {
                runners.at(pe, [at]).part(others);
            }
        });
        let missing = "missing Runner[1], Runner[2], Runner[3] and 2 more";
        let contributed = "1 of 6 elements has contributed, Runner[0]";
        assert_eq!(lines, [format!("reduction of Runner to entry `arrived`: {contributed}; {missing}")]);

        let lines = waiting(config, |pe, runners, others| runners.all(pe).part(others));
        let missing = "missing Runner[1], Runner[2], Runner[3] and 1 more";
        let contributed = "2 of 6 elements have contributed, among them Runner[0]";
        let sentence = "reduction 1 of Runner is inconsistent: Runner[0] contributes to entry `arrived` of Runner[1] \
                        and Runner[5] to entry `best` of all elements of Other; all elements must contribute to the same \
                        entry and receivers";
        assert_eq!(lines[0], sentence);
        assert!(lines[1].ends_with(&format!(": {contributed}; {missing}")), "{lines:?}");
        assert_eq!(lines.len(), 2, "{lines:?}");
    });
}

#[test]
fn elements_that_have_not_called_at_sync_are_named_over_all_pes_and_arrays() {
    everywhere(14, 8, |config| {
        let config = Config { balancer: vec!["DummyLB".into()], ..config };
        let lines = waiting(config, |pe, runners, _| {
            for at in [0, 1, 2, 4, 5] {
                runners.at(pe, [at]).waits();
            }
        });
        assert_eq!(
            lines,
            [
                "load balancing waits for Runner[3], which has not called at_sync (5 of 6 elements of Runner called \
                 at_sync)",
                "load balancing waits for Other[0] and Other[1], which have not called at_sync (0 of 2 elements of \
                 Other called at_sync)",
            ]
        );
    });
}

#[test]
fn a_setup_without_main_is_named() {
    everywhere(10, 8, |config| {
        let run = try_run(config, |pe, done: Exit<u32>| {
            pe.array([6], |_| Runner { rounds: 0, done });
        });
        let error = run.map(|report| report.result).expect_err("nothing happens");
        let RunError::Quiet { waiting, .. } = error else { panic!("{error:?}") };
        let remedy = "call `main` in the setup, with the first messages";
        assert_eq!(
            waiting,
            [format!("the setup does not call `main`, so no element received a message; {remedy}")]
        );
    });
}

#[test]
fn a_run_that_waits_for_nothing_lacks_an_exit() {
    everywhere(10, 8, |config| {
        let error = error(config, |pe, runners, _| runners.at(pe, [0]).ponders(0.0)).to_string();
        let sentence = "the run came to rest without an exit: no message is in flight and nothing waits; call `exit` of \
                        the program's `Exit` handle";
        assert!(error.starts_with(sentence), "{error}");
    });
}

#[test]
fn messages_for_elements_that_were_never_inserted_are_named_after_an_exit() {
    everywhere(20, 12, |config| {
        let report = equipoise::run(config, |pe, done| {
            let runners: Array<Runner> = pe.sparse([1000]);
            pe.main(move |pe| {
                for at in [0, 999, 998, 0] {
                    runners.at(pe, [at]).ponders(0.0);
                }
                runners.insert(pe, [998], Runner { rounds: 0, done });
                let exit = pe.reply(move |pe, ()| done.exit(pe, 7));
                runners.insert(pe, [1], Runner { rounds: 0, done });
                runners.at(pe, [1]).at_quiescence().answers(exit);
            });
        });
        let [warning] = &report.warnings[..] else { panic!("{:?}", report.warnings) };
        let begin = "the run ended while messages wait for elements that do not exist; insert the elements, correct the \
                     indices, or send nothing to elements that have called `destroy`\n  PE ";
        assert!(warning.starts_with(begin), "{warning}");
        assert_eq!(warning.lines().count(), 3, "{warning}");
        assert!(warning.contains(": 2 messages wait for Runner[0], which does not exist"), "{warning}");
        assert!(warning.contains(": 1 message waits for Runner[999], which does not exist"), "{warning}");
    });
}

#[test]
fn an_element_that_migrates_or_is_inserted_at_the_exit_is_not_missing() {
    everywhere(60, 24, |config| {
        let report = equipoise::run(config, |pe, done| {
            let runners: Array<Runner> = pe.sparse([1000]);
            pe.main(move |pe| {
                for at in 0..20 {
                    runners.insert(pe, [50 * at], Runner { rounds: 0, done });
                    runners.at(pe, [50 * at]).wander();
                    runners.at(pe, [50 * at]).ponders(0.0);
                }
                pe.reply(move |pe, ()| done.exit(pe, 7)).send(pe, ());
            });
        });
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    });
}

#[test]
fn a_load_balancer_without_an_array_that_takes_part_is_named() {
    everywhere(10, 8, |config| {
        let balancer = vec!["DummyLB".into()];
        for (config, is_named) in [
            (config.clone(), false),
            (Config { lb_off: true, balancer: balancer.clone(), ..config.clone() }, false),
            (Config { balancer, ..config }, true),
        ] {
            for sync in [false, true] {
                let report = equipoise::run(config.clone(), move |pe, done| {
                    if sync {
                        pe.array([2], |_| Other);
                    }
                    pe.main(move |pe| done.exit(pe, 7));
                });
                let named =
                    report.warnings.iter().any(|line| line.starts_with("the load balancer never runs"));
                assert_eq!(named, is_named && !sync, "sync: {sync}");
            }
        }
    });
}

#[test]
fn at_sync_without_a_load_balancer_is_over_when_its_message_arrives() {
    everywhere(40, 16, |config| {
        let report = equipoise::run(config, |pe, done| {
            let runners = pe.array([6], |_| Runner { rounds: 0, done });
            pe.main(move |pe| runners.all(pe).wander());
        });
        assert_eq!(report.result, 6 * 12);
    });
}

#[test]
#[ignore = "slow"]
fn all_of_it_at_full_size() {
    at_full_size(&[
        the_time_limit_ends_a_run_in_which_messages_circulate,
        elements_that_have_not_contributed_are_named_over_all_pes,
        at_sync_without_a_load_balancer_is_over_when_its_message_arrives,
        the_time_limit_does_not_matter_to_a_run_that_ends_or_rests,
        a_run_without_a_process_of_its_own_ends_when_the_entry_returns,
        elements_that_have_not_called_at_sync_are_named_over_all_pes_and_arrays,
        a_setup_without_main_is_named,
        a_run_that_waits_for_nothing_lacks_an_exit,
        messages_for_elements_that_were_never_inserted_are_named_after_an_exit,
        an_element_that_migrates_or_is_inserted_at_the_exit_is_not_missing,
        a_load_balancer_without_an_array_that_takes_part_is_named,
    ]);
}

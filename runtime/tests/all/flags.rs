//! The effects of flags: the strategy of each step, recording, binding to cores, and database files.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::model::database::Dump;
use equipoise::prelude::*;
use equipoise::reduce;
use equipoise::{Report, RunError, Transport, run, try_run};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The number of load-balancing steps of a run.
const STEPS: u32 = 5;

/// Repeatedly works and joins a load-balancing step.
#[derive(Serialize, Deserialize)]
struct Clerk {
    left: u32,
    done: Exit<Vec<String>>,
}

#[chare(index = [i32; 1], sync)]
impl Clerk {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(f64::from(cx.index()[0] + 1));
        if self.left > 0 {
            self.left -= 1;
            cx.at_sync().work();
        } else {
            cx.peers().contribute().finish(vec![allowed_cpus()]);
        }
    }

    #[entry(reduce = reduce::concat)]
    fn finish(&mut self, cx: &Cx<Self>, cpus: Vec<String>) {
        self.done.exit(cx, cpus);
    }
}

/// The CPUs allowed for this thread; empty if the system does not report them.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_owned()
}

fn clerks(pe: &Setup, done: Exit<Vec<String>>) {
    let clerks = pe.array([8], |_| Clerk { left: STEPS, done });
    pe.main(move |pe| clerks.all(pe).work());
}

/// The strategy of every step of a run, and how many elements it moved.
fn steps(config: Config) -> Vec<(String, u64)> {
    let report: Report<Vec<String>> = run(config, clerks);
    let name = |strategy: &Option<String>| strategy.clone().unwrap_or_else(|| "nothing".into());
    report.lb_steps.iter().map(|step| (name(&step.strategy), step.after.migrations)).collect()
}

/// A temporary file.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("equipoise-{}-{name}", std::process::id())))
    }

    fn with(name: &str, text: &str) -> Self {
        let file = Scratch::new(name);
        std::fs::write(&file.0, text).expect("a temporary file can be written");
        file
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Checks the strategies of all steps, and the numbers of migrations where known.
#[track_caller]
fn check(change: impl Fn(Config) -> Config, expected: &[(&str, Option<u64>)]) {
    for config in [Config::threads(2), Config::simulated(2, 7)] {
        let what = format!("{:?}", config.transport);
        let config = change(config);
        let found = watched(what.clone(), move || steps(config));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, expected.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{what}");
        for ((name, moved), (_, moves)) in found.iter().zip(expected) {
            assert_eq!(moves.unwrap_or(*moved), *moved, "{name}, {what}");
        }
    }
}

const ROTATES: (&str, Option<u64>) = ("RotateLB", Some(8));
const STAYS: (&str, Option<u64>) = ("DummyLB", Some(0));

#[test]
fn one_balancer_runs_at_every_step() {
    check(|config| Config { balancer: vec!["RotateLB".into()], ..config }, &[ROTATES; 5]);
}

#[test]
fn the_second_balancer_runs_at_all_steps_but_the_first() {
    let expected = [STAYS, ROTATES, ROTATES, ROTATES, ROTATES];
    let then = |config| Config { balancer: vec!["DummyLB".into()], then: Some("RotateLB".into()), ..config };
    check(then, &expected);
    let twice = |config| Config { balancer: vec!["DummyLB".into(), "RotateLB".into()], ..config };
    check(twice, &expected);
}

#[test]
fn a_schedule_says_which_strategy_runs_at_which_step() {
    let lines = "# by step\n0 GreedyLB\n3 NoLB\n%2 DummyLB # every other\n%1 RotateLB\n";
    let file = Scratch::with("schedule", lines);
    let path = file.0.clone();
    check(
        move |config| Config { lb_schedule: Some(path.clone()), ..config },
        &[("GreedyLB", None), ROTATES, STAYS, ("nothing", Some(0)), STAYS],
    );
}

#[test]
fn without_load_balancing_there_are_no_steps_and_no_database() {
    let file = Scratch::new("off.db");
    let path = file.0.clone();
    let off = move |config| Config {
        lb_off: true,
        balancer: vec!["RotateLB".into()],
        lb_dump: Some(path.clone()),
        ..config
    };
    check(off, &[]);
    check(|config| config, &[]);
    assert!(!file.0.exists(), "there was no step to write");
}

#[test]
#[cfg(target_os = "linux")]
fn bound_pes_have_a_core_each() {
    let run = |bind| {
        let config = Config { bind, ..Config::threads(2) };
        let mut cpus = watched(format!("bind {bind}"), move || run(config, clerks).result);
        cpus.sort();
        cpus.dedup();
        cpus
    };
    let free = run(false);
    assert_eq!(free.len(), 1, "all may run where this test may: {free:?}");
    // As in `16-17,20`.
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        first.parse::<u32>().expect("a number")..=last.parse().expect("a number")
    };
    let mut cores: Vec<String> =
        free[0].split(',').flat_map(numbers).take(2).map(|core| core.to_string()).collect();
    if cores.len() < 2 {
        return skip(&format!("this test may run only on core {}", free[0]));
    }
    cores.sort();
    assert_eq!(run(true), cores);
}

#[derive(Serialize, Deserialize)]
struct Sitter {
    done: Exit<()>,
}

#[chare(index = [i32; 1], sync)]
impl Sitter {
    #[entry]
    fn sit(&mut self, cx: &Cx<Self>) {
        cx.at_sync().leave();
    }

    #[entry]
    fn leave(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

/// The background of PE 0 at the only step of a run in which `main` takes 30 ms.
fn background(change: impl FnOnce(Config) -> Config) -> f64 {
    let file = Scratch::new("background.db");
    let config = change(Config { lb_dump: Some(file.0.clone()), ..Config::threads(2) });
    let report = run(config, |pe, done| {
        let sitters = pe.array([4], |_| Sitter { done });
        pe.main(move |pe| {
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_millis(30) {
                std::hint::spin_loop();
            }
            sitters.all(pe).sit();
        });
    });
    assert_eq!((report.dump_error, report.dump_warning), (None, None));
    Dump::read(&file.0).expect("a database").steps[0].pes[0].background_seconds
}

#[test]
fn background_is_recorded_unless_it_is_to_be_ignored() {
    let (with, without) = watched("background".into(), || {
        (background(|config| config), background(|config| Config { lb_no_background: true, ..config }))
    });
    assert!(with >= 0.0295, "{with}");
    assert_eq!(without, 0.0);
}

#[test]
fn warns_of_fewer_steps_than_requested() {
    let file = Scratch::new("few.db");
    let dump = |start, steps| {
        let config = Config {
            lb_dump: Some(file.0.clone()),
            lb_dump_start: start,
            lb_dump_steps: steps,
            ..Config::simulated(2, 0)
        };
        let report = watched("a dump".into(), || run(config, clerks));
        assert_eq!(report.dump_error, None);
        report.dump_warning.unwrap_or_default()
    };
    assert_eq!(dump(0, 5), "");
    assert_eq!(Dump::read(&file.0).expect("a database").steps.len(), 5);
    let name = file.name();
    assert_eq!(
        dump(3, 9),
        format!(
            "--lb-dump {name}: 2 of 9 databases written from step 3 on; the run had no more load-balancing steps"
        )
    );
    assert_eq!(Dump::read(&file.0).expect("a database").steps.len(), 2);
    let expected =
        format!("--lb-dump {name}: the run had no load-balancing step 6 or later; nothing is written");
    assert_eq!(dump(6, 1), expected);
}

#[test]
fn refuses_a_file_that_cannot_be_written_before_the_run() {
    let folder = Scratch::new("no-such-folder");
    let config = Config { lb_dump: Some(folder.0.join("lb.db")), ..Config::threads(2) };
    match try_run(config, |_, _: Exit<u32>| panic!("nothing runs")).map(|report| report.result) {
        Err(error @ RunError::Config(_)) => {
            assert_eq!(error.exit_code(), 2);
            let sentence = error.to_string();
            assert!(sentence.starts_with("--lb-dump: cannot write the database `"), "{sentence}");
            assert!(sentence.ends_with("name a place that exists, is writable and has room"), "{sentence}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn returns_the_result_even_if_databases_cannot_be_written() {
    for transport in [Transport::Threads, Transport::Simulated] {
        let folder = Scratch::new("folder-that-goes-away");
        std::fs::create_dir(&folder.0).expect("a temporary folder can be made");
        let gone = folder.0.clone();
        let config = Config { transport, lb_dump: Some(folder.0.join("lb.db")), ..Config::threads(2) };
        let report = try_run(config, move |pe, done| {
            if pe.here() == Pe(0) {
                std::fs::remove_dir(&gone).expect("nothing is in it");
            }
            clerks(pe, done);
        });
        let report = report.expect("the program itself ends well");
        assert_eq!((report.result.len(), report.lb_steps.len()), (8, STEPS as usize));
        let error = report.dump_error.expect("it cannot be written");
        assert!(error.starts_with("cannot write the database `"), "{error}");
    }
}

/// The error and the exit code of a run whose placement or schedule file has the content `text`.
fn refused(name: &str, text: &str) -> (String, i32) {
    let file = Scratch::with(name, text);
    let config = match name {
        "initial" => Config { initial: file.name(), ..Config::threads(2) },
        _ => Config { lb_schedule: Some(file.0.clone()), ..Config::threads(2) },
    };
    let error = try_run(config, clerks).map(|report| report.result).expect_err(name);
    (error.to_string().replace(&file.name(), "FILE"), error.exit_code())
}

#[test]
fn invalid_files_exit_with_1_and_missing_files_with_2() {
    let eight = |pe: &str| format!("{pe}\n").repeat(8);
    let check = |name, text: &str, code, expected: &str| {
        let (sentence, found) = refused(name, text);
        assert!(sentence.contains(expected), "`{sentence}` does not contain `{expected}`");
        assert_eq!(found, code, "{sentence}");
    };
    check(
        "initial",
        &eight("2"),
        1,
        "--initial: the mapping `FILE`: line 1: there is no PE 2; PEs are 0 to 1",
    );
    check("initial", &eight("one"), 1, "line 1: expected one PE number, found `one`");
    check("initial", "# none\n", 1, "lists no PE; give one per line, in index order");
    check("initial", "0\n1\n", 1, "--initial lists 2 PEs, and no array has 2 elements (Clerk has 8); write");
    check("schedule", "0 GredyLB\n", 1, "--lb-schedule FILE: line 1: there is no strategy `GredyLB`");
    check("schedule", "first GreedyLB\n", 1, "line 1: expected a step such as `12`");
    for text in ["", "\n \n", "# 0 GreedyLB\n", "   # none"] {
        check("schedule", text, 1, "--lb-schedule FILE: the file has no rule; write lines `[%]STEP NAME");
    }
    let missing = |config| {
        let error = try_run(config, clerks).map(|report| report.result).expect_err("no such file");
        (error.to_string(), error.exit_code())
    };
    let (sentence, code) = missing(Config { initial: "none".into(), ..Config::threads(2) });
    assert!(sentence.starts_with("--initial: cannot read the list of PEs `none`: "), "{sentence}");
    assert!(sentence.ends_with("; or write blocks, roundrobin or random") && code == 2, "{sentence}");
    let (sentence, code) = missing(Config { lb_schedule: Some("none".into()), ..Config::threads(2) });
    assert!(sentence.starts_with("--lb-schedule none: ") && code == 2, "{sentence}");
    assert!(sentence.ends_with("name a file with lines `[%]STEP NAME [key=value ..]`"), "{sentence}");
    let then =
        Config { balancer: vec!["DummyLB".into()], then: Some("RotatLB".into()), ..Config::threads(2) };
    let (sentence, code) = missing(then);
    assert!(sentence.starts_with("--then RotatLB: ") && code == 2, "{sentence}");
}

#[test]
fn refuses_times_that_are_out_of_range() {
    for seconds in [0.0, -0.0, -1.0, 9.9e-4, 1.1e9, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
        let base = || Config::threads(2);
        for (name, config) in [
            ("--time-limit", Config { time_limit: Some(seconds), ..base() }),
            ("--watchdog", Config { watchdog: Some(seconds), ..base() }),
        ] {
            let error = try_run(config, |_, _: Exit<u32>| panic!("nothing runs")).map(|report| report.result);
            let error = error.expect_err("out of range");
            let expected = format!("{name} {seconds}: give seconds from 0.001 to 1000000000");
            assert_eq!((error.to_string(), error.exit_code()), (expected, 2));
        }
    }
}

// A program without a description: `///` would be one.
#[derive(clap::Parser)]
struct Bare {
    #[command(flatten)]
    _config: Config,
}

#[test]
fn the_flags_bring_no_description_into_a_program() {
    let command = <Bare as clap::CommandFactory>::command();
    assert_eq!((command.get_about(), command.get_long_about()), (None, None));
}

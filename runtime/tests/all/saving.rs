//! When a run saves itself, what it does about a checkpoint that cannot be saved, and how a signal ends it.

#![allow(missing_docs)]

use crate::common::*;
use equipoise::checkpoint::Checkpoint;
use equipoise::prelude::*;
use equipoise::{Checkpoints, Report, RunError, try_run};
use std::path::Path;

/// Counts rounds of quiescence, of which every second one is also a sync point.
#[derive(Serialize, Deserialize)]
struct Walker {
    rounds: u32,
    /// Takes time to save.
    words: Vec<u64>,
    done: Exit<u32>,
    #[cfg(unix)]
    signals: signals::Signals,
}

const ROUNDS: u32 = 20;

#[chare(index = [i32; 1], sync)]
impl Walker {
    #[entry]
    fn walk(&mut self, cx: &Cx<Self>) {
        self.rounds += 1;
        if cx.index() == [0] {
            // Longer than the least time between checkpoints.
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if self.rounds < ROUNDS {
            match self.rounds % 2 {
                0 => cx.at_sync().walk(),
                _ => cx.peer(cx.index()).at_quiescence().walk(),
            }
        } else {
            cx.peers().contribute().finish(self.rounds);
        }
    }

    #[entry(reduce = u32::wrapping_add)]
    fn finish(&mut self, cx: &Cx<Self>, rounds: u32) {
        if cx.index() == [0] {
            self.done.exit(cx, rounds);
        }
    }
}

/// An element that sends a signal to this process while it is being saved.
#[cfg(unix)]
mod signals {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// Whether the next element that is saved sends a signal.
    pub static ARMED: AtomicBool = AtomicBool::new(false);

    pub struct Signals;

    impl Serialize for Signals {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            if ARMED.swap(false, Relaxed) {
                signal_hook::low_level::raise(signal_hook::consts::SIGUSR2)
                    .expect("a signal to this process");
            }
            serializer.serialize_unit()
        }
    }

    impl<'de> Deserialize<'de> for Signals {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            <()>::deserialize(deserializer).map(|()| Signals)
        }
    }
}

fn walk(config: Config, words: usize) -> Result<Report<u32>, RunError> {
    try_run(config, move |pe, done| {
        let walkers = pe.array([6], |_| Walker {
            rounds: 0,
            words: vec![7; words],
            done,
            #[cfg(unix)]
            signals: signals::Signals,
        });
        pe.main(move |pe| walkers.all(pe).walk());
    })
}

/// The configurations of this file: threads, PEs that share nothing, and processes.
fn configs() -> [Config; 3] {
    let processes = Config { pes_per_process: Some(2), ..Config::simulated(6, 3) };
    // A run that hangs fails earlier.
    [Config::threads(3), Config::simulated(3, 1), processes]
        .map(|config| Config { time_limit: Some(20.0), ..config })
}

fn saves(config: Config, dir: &Path) -> Config {
    let checkpoints = Checkpoints { checkpoint: Some(dir.to_owned()), ..config.checkpoints };
    Config { checkpoints, ..config }
}

#[test]
fn a_run_makes_progress_although_writing_takes_longer_than_the_time_between_checkpoints() {
    for config in configs() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = saves(config, dir.path());
        config.checkpoints.checkpoint_seconds = Some(0.001);
        let report =
            walk(config.clone(), 200_000).unwrap_or_else(|error| panic!("{}: {error}", describe(&config)));
        assert_eq!(report.result, 6 * ROUNDS);
        assert!(
            (1..=u64::from(ROUNDS)).contains(&report.checkpoints),
            "{}: {} checkpoints, {:?}",
            describe(&config),
            report.checkpoints,
            report.checkpoint_error
        );
        config.checkpoints = Checkpoints { restart: Some(dir.path().to_owned()), ..Checkpoints::default() };
        assert_eq!(walk(config, 1).expect("the run exits").result, 6 * ROUNDS);
    }
}

/// Never at a sync point, and nothing waits for quiescence.
#[derive(Serialize, Deserialize)]
struct Runner {
    done: Exit<()>,
}

#[chare(index = [i32; 1])]
impl Runner {
    #[entry]
    fn run(&mut self, cx: &Cx<Self>, left: u32) {
        std::thread::sleep(std::time::Duration::from_millis(1));
        match left {
            0 => self.done.exit(cx, ()),
            _ => cx.peer(cx.index()).run(left - 1),
        }
    }
}

fn warnings_of_runner(config: Config) -> Vec<String> {
    let shown = describe(&config);
    let report = try_run(config, |pe, done| {
        let runners = pe.array([1], |_| Runner { done });
        pe.main(move |pe| runners.at(pe, [0]).run(10));
    });
    report.unwrap_or_else(|error| panic!("{shown}: {error}")).warnings
}

#[test]
fn a_run_that_had_no_opportunity_to_save_itself_warns() {
    for (config, seconds, warns) in
        configs().into_iter().flat_map(|it| [(it.clone(), 0.002, 1), (it, 900.0, 0)])
    {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = saves(config, dir.path());
        config.checkpoints.checkpoint_seconds = Some(seconds);
        let warnings = warnings_of_runner(config.clone());
        let due = warnings.iter().filter(|it| it.contains("no checkpoint was saved, although one was due"));
        assert_eq!(due.count(), warns, "{}: {warnings:?}", describe(&config));
    }
}

#[test]
fn a_run_without_sync_points_warns_that_it_cannot_save_itself_at_every_second_one() {
    for config in configs() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = saves(config, dir.path());
        config.checkpoints.checkpoint_every = Some(2);
        assert_eq!(
            warnings_of_runner(config.clone()),
            [
                "--checkpoint-every 2 saved nothing: the run had no sync point; call `at_sync` in the elements of an array, or \
              send `at_checkpoint`"
            ],
            "{}",
            describe(&config)
        );
        let report = try_run(config.clone(), |pe, done| {
            let runners = pe.array([2], |_| Runner { done });
            pe.main(move |pe| runners.at(pe, [1]).at_checkpoint().run(0));
        });
        let report = report.expect("the run exits");
        assert_eq!(report.checkpoints, 1, "{}", describe(&config));
        assert_eq!(
            report.warnings,
            [
                "--checkpoint-every 2 had no effect: the run had no sync point, and saved itself at quiescence only; leave out \
              the flag, or call `at_sync` in the elements of an array"
            ],
            "{}",
            describe(&config)
        );
        // More than the run has.
        config.checkpoints.checkpoint_every = Some(ROUNDS);
        let report = walk(config.clone(), 1).expect("the run exits");
        assert_eq!((report.checkpoints, report.warnings), (0, Vec::new()), "{}", describe(&config));
    }
}

/// Sends itself messages without end, also while all elements are at a sync point.
#[derive(Serialize, Deserialize)]
struct Restless {
    done: Exit<()>,
}

#[chare(index = [i32; 1], sync)]
impl Restless {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        cx.peer(cx.index()).again();
        cx.at_sync().end();
    }

    #[entry]
    fn again(&mut self, cx: &Cx<Self>) {
        cx.peer(cx.index()).after(std::time::Duration::from_micros(100)).again();
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>) {
        self.done.exit(cx, ());
    }
}

#[test]
fn a_run_that_waits_to_save_itself_says_so_when_its_time_is_over() {
    for config in configs() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = Config { time_limit: Some(0.5), ..saves(config, dir.path()) };
        config.checkpoints.checkpoint_every = Some(1);
        let error = try_run(config.clone(), |pe, done| {
            let all = pe.array([4], |_| Restless { done });
            pe.main(move |pe| all.all(pe).begin());
        });
        let Err(RunError::TimeLimit { waiting, .. }) = error else { panic!("no time limit: {error:?}") };
        let line = "the run waits until nothing is in flight, to save itself (--checkpoint)";
        assert_eq!(waiting.iter().filter(|it| *it == line).count(), 1, "{}: {waiting:?}", describe(&config));
    }
}

#[cfg(unix)]
#[test]
fn a_signal_while_the_run_saves_itself_is_not_lost() {
    use std::sync::atomic::Ordering::Relaxed;
    for config in configs() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut config = saves(config, dir.path());
        config.checkpoints.checkpoint_every = Some(5);
        config.checkpoints.checkpoint_on = Some(equipoise::CheckpointSignal::Usr2);
        config.checkpoints.checkpoint_exit = true;
        signals::ARMED.store(true, Relaxed);
        let error = walk(config.clone(), 1).expect_err("the signal ends the run");
        assert_eq!(error.exit_code(), 0, "{}: {error}", describe(&config));
        assert!(error.to_string().starts_with("saved as checkpoint 1 in `"), "{error}");
        Checkpoint::open(dir.path()).and_then(|saved| saved.check()).expect("it is whole");
        config.checkpoints = Checkpoints { restart: Some(dir.path().to_owned()), ..Checkpoints::default() };
        assert_eq!(walk(config, 1).expect("the run exits").result, 6 * ROUNDS);
    }
}

/// Parks a closure on its PE over a checkpoint, then receives the reply; then comes another checkpoint.
#[derive(Serialize, Deserialize)]
struct Parker {
    parked: Option<Reply<u32>>,
    last: bool,
    done: Exit<u32>,
}

#[chare(index = Pe)]
impl Parker {
    #[entry]
    fn park(&mut self, cx: &Cx<Self>) {
        if cx.index() == Pe(1) {
            let (me, here) = (cx.array(), cx.index());
            self.parked = Some(cx.reply(move |pe, value: u32| me.at(pe, here).answered(value)));
            cx.peers().at_checkpoint().reply();
        }
    }

    #[entry]
    fn reply(&mut self, cx: &Cx<Self>) {
        if let Some(parked) = self.parked.take() {
            parked.send(cx, 7);
        }
    }

    #[entry]
    fn answered(&mut self, cx: &Cx<Self>, value: u32) {
        if self.last {
            cx.peer(cx.index()).at_checkpoint().end(value);
        } else {
            self.done.exit(cx, value);
        }
    }

    #[entry]
    fn end(&mut self, cx: &Cx<Self>, value: u32) {
        self.done.exit(cx, value);
    }
}

/// Runs the program; with a second checkpoint, after the reply, if it is `last`.
fn park(config: Config, last: bool) -> Report<u32> {
    let shown = describe(&config);
    let report = try_run(config, move |pe, done| {
        let parkers = pe.array(Pe(pe.pes() as u32), |_| Parker { parked: None, last, done });
        pe.main(move |pe| parkers.all(pe).park());
    });
    report.unwrap_or_else(|error| panic!("{shown}: {error}"))
}

fn content(dir: &Path) -> Vec<String> {
    let entries = dir.read_dir().expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_refused_checkpoint_names_what_parked_the_closure_and_leaves_nothing_behind() {
    for config in configs() {
        // PE 1 is in process 1 where there are processes.
        let pes_per_process = config.pes_per_process.map(|_| 1);
        let config = Config { pes_per_process, ..config };
        let dir = tempfile::tempdir().expect("a folder");
        let report = park(saves(config.clone(), dir.path()), false);
        assert_eq!((report.result, report.checkpoints), (7, 0), "{}", describe(&config));
        let error = report.checkpoint_error.expect("a closure cannot be saved");
        assert!(
            error.contains(
                "1 parked closure waits for a reply, and a closure cannot be saved (parked by Parker[1] in"
            ),
            "{error}"
        );
        assert!(error.contains("entry `park` on PE 1"), "{error}");
        assert!(
            error.ends_with("; save when all replies have arrived, or let an entry receive the answer"),
            "{error}"
        );
        assert_eq!(content(dir.path()), [""; 0], "{}", describe(&config));
    }
}

#[test]
fn a_checkpoint_that_succeeds_is_not_reported_as_failed_because_an_earlier_one_was_refused() {
    for config in configs() {
        let dir = tempfile::tempdir().expect("a folder");
        let report = park(saves(config.clone(), dir.path()), true);
        assert_eq!((report.result, report.checkpoints), (7, 1), "{}", describe(&config));
        assert_eq!(report.checkpoint_error, None);
        assert_eq!(content(dir.path()), ["checkpoint-2"]);
        Checkpoint::open(dir.path()).and_then(|saved| saved.check()).expect("it is whole");
    }
}

#[test]
fn a_checkpoint_is_saved_although_what_is_older_cannot_be_removed() {
    let dir = tempfile::tempdir().expect("a folder");
    // A file of another program, which cannot be removed as a folder.
    std::fs::write(dir.path().join("checkpoint-1"), "").expect("a file");
    let mut config = saves(Config::threads(2), dir.path());
    config.checkpoints.checkpoint_every = Some(1);
    let report = walk(config, 1).expect("the run exits");
    assert!(report.checkpoints > 2, "{}", report.checkpoints);
    assert_eq!(report.checkpoint_error, None);
    Checkpoint::open(dir.path()).and_then(|saved| saved.check()).expect("it is whole");
}

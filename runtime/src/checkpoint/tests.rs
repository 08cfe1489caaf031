//! Savers of two processes: the first one decides and waits for the other.

use super::file::{folder, numbers, process_path};
use super::saver::{Next, Plan, Reason, Saver, When, make_folder, numbering};
use super::{Checkpoint, Generation, Part};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A run of one process with one PE.
fn plan(dir: &Path) -> Plan {
    Plan {
        dir: dir.to_owned(),
        when: When::default(),
        first: 1,
        before: None,
        program: "program".into(),
        build: "build".into(),
        seed: 1,
        pes: 1,
        mtbf_seconds: None,
        local_pes: 1,
    }
}

/// The savers of two processes with one PE each, of a run that a signal ends.
fn savers(dir: &Path) -> [Saver; 2] {
    let when = When { asked: Some(Arc::default()), exits: true, ..When::default() };
    let plan = Plan { when, pes: 2, ..plan(dir) };
    // Processes share no flag.
    let other = Plan { when: When { asked: Some(Arc::default()), ..plan.when.clone() }, ..plan.clone() };
    [Saver::new(plan, 0), Saver::new(other, 1)]
}

fn begin(saver: &Saver) -> Generation {
    match saver.at_quiescence() {
        Next::Save(generation) => generation,
        next => panic!("a checkpoint begins, not {next:?}"),
    }
}

fn add(saver: &Saver, generation: Generation, pe: u32) {
    let mut part = Part::default();
    part.index.pe = pe;
    part.steps = 5 * (1 - pe);
    saver.add(generation, Ok(part), 1, Vec::new());
}

#[test]
fn a_run_that_a_signal_ends_waits_for_a_process_that_writes_late() {
    let dir = tempfile::tempdir().expect("a folder");
    let [first, second] = savers(dir.path());
    first.want(Reason::Signal);
    let generation = begin(&first);
    add(&first, generation, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep(Duration::from_millis(1500));
            add(&second, generation, 1);
        });
        assert!(matches!(first.at_quiescence(), Next::End(1)), "the run ends");
        let saved = Checkpoint::open(dir.path()).expect("the checkpoint is complete before the run ends");
        saved.check().expect("it is whole");
        assert_eq!((saved.number(), saved.steps()), (1, 5));
    });
    assert_eq!(first.finish(true), (1, None));
}

#[test]
fn a_run_that_cannot_save_itself_goes_on_after_a_signal_and_saves_itself_after_the_next_one() {
    let dir = tempfile::tempdir().expect("a folder");
    let [first, second] = savers(dir.path());
    first.want(Reason::Signal);
    let generation = begin(&first);
    add(&first, generation, 0);
    second.add(generation, Err("as asked; do nothing".into()), 1, Vec::new());
    let start = Instant::now();
    assert!(matches!(first.at_quiescence(), Next::Continue), "the run goes on");
    assert!(start.elapsed() < Duration::from_secs(20), "the other process has said that it cannot write");
    assert!(dir.path().read_dir().expect("a folder").next().is_none(), "nothing is left");
    first.continues();
    // The signal of the other process, while a checkpoint that the program wants is saved.
    first.want(Reason::Program);
    let generation = begin(&first);
    add(&first, generation, 0);
    second.want(Reason::Signal);
    add(&second, generation, 1);
    assert_eq!(second.take_reason(), Some(Reason::Signal), "it is not lost");
    first.want(Reason::Signal);
    assert!(matches!(first.at_quiescence(), Next::End(2)), "what is saved is what the signal asks for");
    assert_eq!(first.finish(true), (1, None));
}

#[test]
fn the_error_names_the_process_that_cannot_write_and_its_reason() {
    let dir = tempfile::tempdir().expect("a folder");
    let [first, second] = savers(dir.path());
    first.want(Reason::Program);
    let generation = begin(&first);
    second.add(generation, Err("as asked; do nothing".into()), 1, Vec::new());
    add(&first, generation, 0);
    let (saved, error) = first.finish(false);
    let error = error.expect("it is not saved");
    assert!(error.ends_with(": a checkpoint cannot be saved: process 1: as asked; do nothing"), "{error}");
    assert_eq!(saved, 0);
}

/// A run that begins with a checkpoint, or from the beginning, and saves itself this often.
fn run(dir: &Path, restart: Option<&Path>, times: u64) {
    let restart = restart.map(|path| Checkpoint::open(path).expect("it is whole"));
    let (first, before) = numbering(dir, restart.as_ref()).expect("a folder");
    let saver = Saver::new(Plan { first, before, ..plan(dir) }, 0);
    for _ in 0..times {
        saver.want(Reason::Program);
        let generation = begin(&saver);
        add(&saver, generation, 0);
        saver.continues();
    }
    assert_eq!(saver.finish(false), (times, None));
}

/// Checks which checkpoints a folder has; all but those with `damaged` numbers are whole.
#[track_caller]
fn has(dir: &Path, expected: &[u64], damaged: &[u64]) {
    assert_eq!(numbers(dir, false).expect("a folder"), expected);
    for number in expected.iter().filter(|number| !damaged.contains(number)) {
        Checkpoint::open(&folder(dir, *number)).and_then(|saved| saved.check()).expect("it is whole");
    }
}

/// Damages a checkpoint; returns the one before, which its error recommends.
fn damage(dir: &Path, number: u64) -> Option<PathBuf> {
    let folder = folder(dir, number);
    fs::write(process_path(&folder, 0), "damaged").expect("it can be written");
    let error = Checkpoint::open(&folder).expect_err("it is damaged").to_string();
    let (_, recommended) = error.split_once("; or use the checkpoint before, `")?;
    Some(recommended.trim_end_matches('`').into())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder");
    for file in from.read_dir().expect("a folder").map(|file| file.expect("a file")) {
        fs::copy(file.path(), to.join(file.file_name())).expect("it can be copied");
    }
}

#[test]
fn a_restart_from_the_older_checkpoint_keeps_it_until_there_are_two_new_ones() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    run(dir, None, 5);
    has(dir, &[4, 5], &[]);
    assert_eq!(damage(dir, 5), Some(folder(dir, 4)));
    run(dir, Some(&folder(dir, 4)), 1);
    has(dir, &[4, 5, 6], &[5]);
    run(dir, Some(dir), 1);
    has(dir, &[5, 6, 7], &[5]);
    assert_eq!(damage(dir, 7), Some(folder(dir, 6)));
    assert_eq!(damage(dir, 6), None, "4 is gone, and 5 is not the one before");
}

#[test]
fn runs_in_one_folder_remove_and_recommend_only_their_own_checkpoints() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    run(dir, None, 2);
    run(dir, None, 3);
    has(dir, &[1, 2, 4, 5], &[]);
    run(dir, Some(&folder(dir, 2)), 1);
    has(dir, &[2, 4, 5, 6], &[]);
    run(dir, None, 1);
    assert_eq!(damage(dir, 7), None, "no other one is of its run");
    // A copy of a checkpoint whose run had the same numbers.
    let other = tempfile::tempdir().expect("a folder");
    run(other.path(), None, 8);
    copy(&folder(other.path(), 8), &folder(dir, 8));
    run(dir, Some(&folder(dir, 8)), 2);
    has(dir, &[2, 4, 5, 6, 7, 9, 10], &[7]);
}

#[test]
fn restarts_again_and_again_leave_two_checkpoints() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    run(dir, None, 3);
    for times in 1..4 {
        // The run has died while it saved itself, and before while it removed the oldest.
        let all = numbers(dir, false).expect("a folder");
        let (oldest, newest) = (all[0], all[1]);
        copy(&folder(dir, oldest), &dir.join("kept"));
        run(dir, Some(dir), 1);
        fs::rename(dir.join("kept"), folder(dir, oldest)).expect("it is removed");
        fs::create_dir(folder(dir, newest + 2)).expect("a folder");
        run(dir, Some(dir), times);
        let last = newest + 2 + times;
        has(dir, &if times == 1 { [newest + 1, last] } else { [last - 1, last] }, &[]);
    }
}

#[test]
fn folders_are_made_above_the_folder_of_checkpoints() {
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path().join("a/b");
    for _ in 0..2 {
        make_folder(&dir).expect("it can be made");
        assert!(dir.is_dir());
    }
    fs::write(dir.join("file"), "").expect("a file");
    make_folder(&dir.join("file/c")).expect_err("a file is no folder");
}

//! Savers of two processes: the first one decides and waits for the other.

use super::saver::{Next, Plan, Reason, Saver, When};
use super::{Checkpoint, Generation, Part};
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The savers of two processes with one PE each, of a run that a signal ends.
fn savers(dir: &Path) -> [Saver; 2] {
    let when = When { asked: Some(Arc::default()), exits: true, ..When::default() };
    let plan = Plan {
        dir: dir.to_owned(),
        when,
        first: 1,
        oldest: 1,
        program: "program".into(),
        build: "build".into(),
        seed: 1,
        pes: 2,
        mtbf_seconds: None,
        local_pes: 1,
    };
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

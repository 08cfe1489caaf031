//! The files of checkpoints: what `inspect` and `convert --check` say of them, and that no damage goes unnoticed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use equipoise::checkpoint::Checkpoint;
use equipoise_model::testing::{at_full_size, is_full_size};
use equipoise_tests::fuzz::checkpoint::{restart, save};
use equipoise_tests::{Sandbox, longer_copy};

const RUN: &str = "run stencil2d --blocks 2 --cells 2 --lb-every 2 --iterations 8 --pes 2 --format json";

/// A small checkpoint of two processes.
fn saved(sandbox: &Sandbox) -> PathBuf {
    let flags = "--transport simulated --pes-per-process 1 --checkpoint saved --checkpoint-every 1";
    sandbox.run(&format!("{RUN} {flags}")).result();
    Checkpoint::newest(&sandbox.path().join("saved")).expect("there is one")
}

fn verified(folder: &Path) -> Result<(), String> {
    Checkpoint::open(folder).and_then(|checkpoint| checkpoint.check()).map_err(|error| error.to_string())
}

/// Checks that the content of a file of a checkpoint is refused, by the name of a file of the checkpoint; returns the errors.
#[track_caller]
fn refused(folder: &Path, file: &Path, content: &[u8], what: &str) -> [String; 2] {
    fs::write(file, content).expect("it can be written");
    let before = contents(folder);
    let errors = [verified, restart].map(|read| read(folder).expect_err(what));
    for error in &errors {
        assert!(error.contains(".eqcp`"), "{what}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(contents(folder), before, "no file is touched");
    errors
}

/// The files in a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = folder.read_dir().expect("a folder").map(|entry| entry.expect("a file").path());
    paths.map(|path| (path.clone(), fs::read(path).expect("it is there"))).collect()
}

#[test]
fn flipped_and_missing_bytes_are_noticed() {
    let sandbox = Sandbox::new();
    let folder = save(sandbox.path(), 1);
    verified(&folder).and_then(|()| restart(&folder)).expect("it is whole");
    let files = contents(&folder);
    assert_eq!(files.len(), 3, "{:?}", files.keys());
    for (file, whole) in &files {
        let refused_by_its_name = |content: &[u8], what: &str| {
            let errors = refused(&folder, file, content, what);
            assert!(
                errors.iter().all(|error| error.contains(&file.display().to_string())),
                "{what}: {errors:?}"
            );
        };
        for at in (0..whole.len()).step_by(if is_full_size() { 1 } else { 3 }) {
            let flips: &[u8] = if is_full_size() { &[0x01, 0x80, 0xff] } else { &[1 << (at / 3 % 8)] };
            for bits in flips {
                let mut flipped = whole.clone();
                flipped[at] ^= bits;
                refused_by_its_name(&flipped, &format!("byte {at} of {} xor {bits}", file.display()));
            }
            refused_by_its_name(&whole[..at], &format!("{} cut to {at} bytes", file.display()));
        }
        refused(&folder, file, &[&whole[..], b"x"].concat(), "a longer file");
        fs::write(file, whole).expect("it can be written");
    }
    verified(&folder).and_then(|()| restart(&folder)).expect("it is whole again");
}

#[test]
#[ignore = "slow"]
fn every_flipped_and_every_missing_byte_is_noticed() {
    at_full_size(&[flipped_and_missing_bytes_are_noticed]);
}

#[test]
fn files_of_other_checkpoints_and_versions_are_refused_by_name() {
    let sandbox = Sandbox::new();
    let older = save(sandbox.path(), 1);
    let folder = save(sandbox.path(), 1);
    let other = Sandbox::new();
    let others = save(other.path(), 1);
    for name in ["process-0.eqcp", "process-1.eqcp", "manifest.eqcp"] {
        let file = folder.join(name);
        let whole = fs::read(&file).expect("it is there");
        let others = fs::read(others.join(name)).expect("it is there");
        for error in refused(&folder, &file, &others, "of another checkpoint") {
            assert!(!error.contains("the checkpoint before"), "that is of another run: {error}");
        }
        let mut newer = whole.clone();
        newer[6] += 1;
        refused(&folder, &file, &newer, "a newer version");
        let error = verified(&folder).expect_err("a newer version");
        assert!(error.contains("has version 5 of the format, and this program reads version 4"), "{error}");
        fs::write(&file, whole).expect("it can be written");
    }
    verified(&folder).expect("it is whole again");
    fs::remove_file(folder.join("manifest.eqcp")).expect("it is there");
    let newest = Checkpoint::open(sandbox.path()).expect("the one before is complete");
    assert_eq!(newest.folder(), older);
}

#[test]
fn the_command_shows_and_verifies_checkpoints() {
    let sandbox = Sandbox::new();
    let folder = saved(&sandbox);
    let text = sandbox.run("inspect saved").result();
    for part in ["program", "--checkpoint-every 1", "2 PEs in 2 processes", "Block  [2, 2]         4"] {
        assert!(text.contains(part), "no `{part}` in {text}");
    }
    let document = sandbox.run("inspect saved --format json").document();
    assert_eq!(document["arrays"][0]["elements"], 4, "{document}");
    assert_eq!(document["processes"], 2, "{document}");
    assert!(sandbox.run("convert --check saved").result().contains("is whole: "));
    let file = folder.join("process-1.eqcp");
    let mut content = fs::read(&file).expect("it is there");
    content[40] ^= 1;
    fs::write(&file, content).expect("it can be written");
    let output = sandbox.run("convert --check saved");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("process-1.eqcp` is damaged: the checksum of bytes"), "{output:?}");
    // A restart reads only what it needs, and that is verified.
    let output = sandbox.run(&format!("{RUN} --restart saved"));
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("is damaged"), "{output:?}");
    for (line, phrase) in [
        ("inspect saved --step 1", "has no steps"),
        ("convert --check nothing", "is not a folder"),
        ("convert saved", "<OUT>"),
    ] {
        let output = sandbox.run(line);
        assert!(output.code == Some(2) && output.stderr.contains(phrase), "{output:?}");
    }
}

/// Another build of the command: the same with a byte more at its end, where the loader does not look.
#[cfg(unix)]
#[test]
fn another_build_needs_the_flag_that_allows_it() {
    let sandbox = Sandbox::new();
    let expected = sandbox.run(RUN).document()["heat"].clone();
    saved(&sandbox);
    let path = sandbox.path().join("other");
    longer_copy(equipoise_tests::command().as_ref(), &path);
    let restarts = |flags: &str| {
        let words = format!("{RUN} --restart saved {flags}");
        let mut command = std::process::Command::new(&path);
        command.args(words.split_whitespace()).current_dir(sandbox.path()).output().expect("it starts")
    };
    let refused = restarts("");
    let error = String::from_utf8(refused.stderr).expect("text");
    assert_eq!(refused.status.code(), Some(2), "{error}");
    for part in ["was saved by `equipoise run stencil2d", "add --restart-other-build"] {
        assert!(error.contains(part), "no `{part}` in {error}");
    }
    let output = restarts("--restart-other-build");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert_eq!(document["heat"], expected);
}

#[test]
fn the_number_of_load_balancing_steps_is_that_of_the_run() {
    for flags in ["--pes 4", "--pes 6", "--pes 6 --transport simulated --pes-per-process 3", "--pes 1"] {
        let sandbox = Sandbox::new();
        let line = "run stencil2d --blocks 4 --cells 2 --lb-every 1 --iterations 12 --balancer DummyLB --format json";
        let output = sandbox.run(&format!("{line} {flags} --checkpoint saved --checkpoint-every 1"));
        assert!(!output.stderr.contains("--checkpoint"), "no warning: {output:?}");
        output.result();
        for folder in Checkpoint::all(&sandbox.path().join("saved")).expect("a folder") {
            let saved = Checkpoint::open(&folder).expect("it is whole");
            // Checkpoint N is saved before step N.
            assert_eq!(u64::from(saved.steps()), saved.number() - 1, "{flags}");
        }
    }
}

#[test]
fn a_run_that_goes_on_from_the_checkpoint_before_a_damaged_one_keeps_it() {
    let sandbox = Sandbox::new();
    let expected = sandbox.run(RUN).document()["heat"].clone();
    let newest = saved(&sandbox);
    let dir = sandbox.path().join("saved");
    let all = || -> Vec<String> {
        let all = Checkpoint::all(&dir).expect("a folder").into_iter();
        all.map(|it| it.strip_prefix(sandbox.path()).expect("in it").display().to_string()).collect()
    };
    assert_eq!(all(), ["saved/checkpoint-2", "saved/checkpoint-3"]);
    fs::write(newest.join("process-0.eqcp"), "damaged").expect("it can be written");
    let output = sandbox.run(&format!("{RUN} --restart saved --checkpoint saved --checkpoint-every 1"));
    output.failed(
        1,
        &["saved/checkpoint-3/process-0.eqcp`", "or use the checkpoint before, `saved/checkpoint-2`"],
    );
    let flags = "--restart saved/checkpoint-2 --checkpoint saved --checkpoint-every 3";
    assert_eq!(sandbox.run(&format!("{RUN} {flags}")).document()["heat"], expected);
    assert_eq!(all(), ["saved/checkpoint-2", "saved/checkpoint-3", "saved/checkpoint-4"]);
    for name in ["checkpoint-2", "checkpoint-4"] {
        verified(&dir.join(name)).expect("it is whole");
    }
}

/// Names of files that a process which dies leaves behind between its first file and the manifest.
const LEFT_OVERS: [&[&str]; 3] = [
    &["process-0.eqcp.77.partial"],
    &["process-0.eqcp", "process-1.eqcp.77.partial"],
    &["process-0.eqcp", "process-1.eqcp", "manifest.eqcp.77.partial"],
];

#[test]
fn a_checkpoint_without_its_manifest_is_never_taken_for_a_whole_one() {
    for names in LEFT_OVERS {
        let sandbox = Sandbox::new();
        let newest = saved(&sandbox);
        let saved = sandbox.path().join("saved");
        let expected = sandbox.run(RUN).document()["heat"].clone();
        let before = Checkpoint::all(&saved).expect("a folder");
        assert_eq!(before.len(), 2);
        for name in ["process-0.eqcp", "process-1.eqcp", "manifest.eqcp"] {
            let whole = fs::read(newest.join(name)).expect("it is there");
            fs::remove_file(newest.join(name)).expect("it is there");
            if let Some(name) = names.iter().find(|it| it.starts_with(name)) {
                fs::write(newest.join(name), whole).expect("it can be written");
            }
        }
        assert_eq!(Checkpoint::all(&saved).expect("a folder"), before[..1], "{names:?}");
        let named = newest.strip_prefix(sandbox.path()).expect("a folder of the sandbox").display();
        for line in [
            format!("{RUN} --restart {named}"),
            format!("inspect {named}"),
            format!("convert --check {named}"),
        ] {
            let output = sandbox.run(&line);
            assert_ne!(output.code, Some(0), "{output:?}");
            assert!(output.stderr.contains("has no complete checkpoint"), "{output:?}");
        }
        // A restart takes the one before; the next complete checkpoint has another number, and what was left is removed.
        let again = format!("{RUN} --restart saved --checkpoint saved --checkpoint-every 1");
        assert_eq!(sandbox.run(&again).document()["heat"], expected, "{names:?}");
        let newer = Checkpoint::newest(&saved).expect("a folder");
        assert!(newer > newest && !newest.exists(), "{newer:?} after {newest:?}");
    }
}

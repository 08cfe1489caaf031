//! Every reader of files and parser of specs on damaged inputs: no panic, little memory, little time, and an error that
//! is a sentence and names the file.

use std::alloc::System;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cap::Cap;
use cpu_time::ProcessTime;
use equipoise_tests::fuzz::{Reader, Rng, mutate, readers};
use equipoise_tests::{Sandbox, WORKSPACE};

#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, usize::MAX);

/// Memory and time are those of the process, so that one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// The memory of a reader for an input of a number of bytes.
fn most_memory(bytes: usize) -> usize {
    (64 << 20) + 50 * bytes
}

/// The processor time of a reader: 1 s for each 100 kB, also of the tests' profile.
fn most_time(bytes: usize) -> Duration {
    Duration::from_secs(1 + bytes as u64 / 100_000)
}

/// Checks one input.
fn check(reader: &Reader, input: &[u8], folder: &Path) -> Result<bool, String> {
    let (before, peak_before, start) = (ALLOCATED.allocated(), ALLOCATED.max_allocated(), ProcessTime::now());
    let outcome = catch_unwind(AssertUnwindSafe(|| reader.check(input, folder)));
    let (time, peak) = (start.elapsed(), ALLOCATED.max_allocated());
    let is_valid = outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
        format!("panic: {}", text.unwrap_or_default())
    })??;
    // A spec of a generator makes what it describes: a few letters may ask for many tasks.
    if reader.file.is_empty() {
        return Ok(is_valid);
    }
    // The peak is that of the process so far: a lower one of this input is not visible, and also not too high.
    if peak > peak_before && peak - before > most_memory(input.len()) {
        return Err(format!("{} bytes of memory for {} bytes", peak - before, input.len()));
    }
    if time > most_time(input.len()) {
        return Err(format!("{time:?} for {} bytes", input.len()));
    }
    Ok(is_valid)
}

/// Checks every reader with a number of inputs; the inputs of failures are kept in the folder of temporary files.
fn fuzz(inputs: u64, seed: u64) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (folder, mut failures) = (Sandbox::new(), Vec::new());
    for reader in readers() {
        for input in &reader.golden {
            assert_eq!(check(&reader, input, folder.path()), Ok(true), "golden input of {}", reader.name);
        }
        let mut valid = 0u64;
        for number in 0..inputs {
            let mut rng = Rng(seed.wrapping_add(number).wrapping_mul(0x2545_f491_4f6c_dd1d));
            let mut input = mutate(&reader.golden, &mut rng);
            if rng.below(4) > 0 {
                (reader.repair)(&mut input);
            }
            match check(&reader, &input, folder.path()) {
                Ok(is_valid) => valid += u64::from(is_valid),
                Err(problem) => {
                    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz_{}", reader.name));
                    fs::write(&kept, &input).expect("the input can be kept");
                    failures.push(format!("{}, input {number} ({}): {problem}", reader.name, kept.display()));
                    break;
                }
            }
        }
        println!("{}: {inputs} inputs, {valid} valid", reader.name);
    }
    assert!(failures.is_empty(), "seed {seed}:\n{}", failures.join("\n"));
}

#[test]
fn damaged_inputs_give_an_error_or_a_value() {
    fuzz(100, 1);
}

#[test]
#[ignore = "slow"]
fn damaged_inputs_give_an_error_or_a_value_at_full_size() {
    fuzz(2_000, 1_000_000);
}

#[test]
fn the_command_ends_with_0_1_or_2_and_a_sentence() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for reader in readers().iter().filter(|reader| !reader.command.is_empty()) {
        let sandbox = Sandbox::new();
        for seed in 0..3 {
            let mut input = mutate(&reader.golden, &mut Rng(seed));
            (reader.repair)(&mut input);
            reader.check_command(&input, &sandbox);
        }
    }
}

#[test]
fn every_reader_has_a_fuzz_target() {
    let folder = Path::new(WORKSPACE).join("tests/fuzz");
    let mut manifest = String::from(include_str!("../fuzz/head.toml"));
    let mut expected: Vec<(String, String)> = Vec::new();
    for reader in readers() {
        let name = reader.name;
        manifest += &format!(
            "\n[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\ntest = false\ndoc = false\n"
        );
        let code = format!(
            "//! Fuzz target of the reader `{name}`.\n#![no_main]\n\nlibfuzzer_sys::fuzz_target!(|input: &[u8]| \
             equipoise_tests::fuzz::target(\"{name}\", input));\n"
        );
        expected.push((format!("fuzz_targets/{name}.rs"), code));
    }
    expected.push(("Cargo.toml".into(), manifest));
    for (name, text) in expected {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_FUZZ").is_some() {
            fs::write(&path, &text).expect("a fuzz target can be written");
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, text, "{}: run this test with UPDATE_FUZZ=1", path.display());
    }
}

//! Errors of the compiler: one case per mistake in `ui/`, with a file of expected output.
//!
//! `ui/own` has mistakes that the macro reports (the macro's own tests check sentences and places without a
//! compiler). `ui/rustc` has mistakes that rustc finds in the generated code and must report at the user's token.
//! The output of rustc changes between versions, so `ui/rustc` is compared only with the recorded version. After an
//! intended change, `TRYBUILD=overwrite cargo test -p equipoise-runtime-tests ui:: -- --ignored` records the output again.

use std::process::Command;

/// The compiler whose output is recorded in `ui/rustc`.
const RECORDED: &str = "rustc 1.95.";

#[test]
#[ignore = "slow"]
fn errors_are_at_the_token_at_fault() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("ui/own/*.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc tells its version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if version.starts_with(RECORDED) {
        cases.compile_fail("ui/rustc/*.rs");
    } else {
        crate::common::skip(&format!("ui/rustc: recorded with {RECORDED}x, this is {version}"));
    }
}

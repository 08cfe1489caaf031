//! What `#[chare]` accepts, and what the compiler says about each mistake: one file per mistake in
//! `ui/`, with the words expected beside it.
//!
//! `ui/own` holds mistakes that the macro itself answers; `ui/rustc` those that rustc finds in the
//! generated code and must show at the user's token. Rustc's words change from version to version, so
//! these are compared only with the version that they were recorded with. After a wanted change,
//! `TRYBUILD=overwrite cargo test -p equipoise-tests --test ui` records them anew.

use std::process::Command;

/// The compiler whose words are recorded in `ui/rustc`.
const RECORDED: &str = "rustc 1.95.";

#[test]
fn mistakes_are_answered_at_the_token_at_fault() {
    let cases = trybuild::TestCases::new();
    cases.pass("ui/pass/*.rs");
    cases.compile_fail("ui/own/*.rs");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().expect("rustc tells its version");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    if version.starts_with(RECORDED) {
        cases.compile_fail("ui/rustc/*.rs");
    } else {
        eprintln!("skipped ui/rustc: recorded with {RECORDED}x, this is {version}");
    }
}

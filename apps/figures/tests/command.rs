//! The program as a process. This test makes Cargo build the program; the tests in `tests/` run the program, too.

use std::process::{Command, Output};

/// The output of the program with these arguments.
fn run(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_figures")).args(words).output().expect("the program starts")
}

#[test]
fn an_unknown_figure_ends_with_2_and_lists_the_known_ones() {
    let output = run(&["topolb-12"]);
    let expected = "error: there is no figure `topolb-12` (did you mean `topolb-1`?); known are topolb-1, ";
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(output.stderr.starts_with(expected.as_bytes()), "{output:?}");
}

#[test]
fn without_arguments_all_figures_are_listed() {
    let listed = run(&[]);
    assert!(listed.status.success() && listed.stdout.starts_with(b"Figures:\n"));
    assert_eq!(run(&["help"]).stdout, listed.stdout);
}

//! The command as a process. This test makes Cargo build the command; the tests in `tests/` run the command, too.

use std::process::Command;

#[test]
fn reproduce_names_the_command_that_replaces_it() {
    let stderr = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
        let output = command.arg("reproduce").args(words).output().expect("the command starts");
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let error = "error: `equipoise reproduce` was removed; run `cargo run --release -p equipoise-figures --";
    assert_eq!(stderr(&["topolb-1", "--small"]), format!("{error} topolb-1 --small`\n"));
    assert_eq!(stderr(&["--help"]), format!("{error} --help`\n"));
    assert_eq!(stderr(&[]), format!("{error} NAME`\n"));
}

#[test]
fn completions_are_a_script_that_bash_accepts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
    let output = command.args(["completions", "bash"]).output().expect("the command starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let script = String::from_utf8(output.stdout).expect("text");
    assert!(script.contains("--balancer") && script.contains("complete -F _equipoise"), "{script}");
    // Computers without bash cannot check the syntax.
    if let Ok(status) = Command::new("bash").args(["-n", "-c", &script]).status() {
        assert!(status.success());
    }
}

#[test]
fn manual_pages_have_one_page_per_subcommand() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("man1");
    let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
    let output = command.arg("man").arg(&folder).output().expect("the command starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let pages = std::fs::read_dir(&folder).expect("the folder was made").count();
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.starts_with(&format!("{pages} man pages in ")), "{said}");
    let page = |name: &str| std::fs::read_to_string(folder.join(name)).expect(name);
    assert!(page("equipoise-map.1").contains("PROGRAM OPTIONS"), "options have their headings");
    assert!(page("equipoise-run-leanmd.1").contains("SIMULATED MACHINE"));
    assert!(!folder.join("equipoise-reproduce.1").exists(), "hidden subcommands have no page");
}

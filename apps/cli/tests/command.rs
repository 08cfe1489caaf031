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

/// Whether `equipoise WORDS` succeeds; without the cargo feature it must refuse them and name the feature.
#[track_caller]
fn check_needs_feature(feature: &str, is_enabled: bool, words: &[&str]) {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../../strategies/model/tests/data");
    let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
    let output = command.args(words).current_dir(data).output().expect("the command starts");
    let error = String::from_utf8(output.stderr).expect("text");
    if is_enabled {
        assert!(output.status.success(), "{words:?}: {error}");
    } else {
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(&format!("feature `{feature}`")), "{words:?}: {error}");
    }
}

#[test]
fn files_of_others_need_the_feature_formats() {
    for machine in ["slurm:topology.yaml", "hwloc:machine-v2.xml"] {
        check_needs_feature("formats", cfg!(feature = "formats"), &["topology", machine]);
    }
}

#[test]
fn the_best_routes_need_the_feature_lp() {
    let mapping = concat!(env!("CARGO_TARGET_TMPDIR"), "/mapping");
    std::fs::write(mapping, "0\n1\n2\n3\n").expect("a mapping");
    for cost in ["mcf:optimal", "mcf:shortest"] {
        let words =
            ["evaluate", "--graph", "ring:4", "--topology", "torus:4", "--mapping", mapping, "--cost", cost];
        check_needs_feature("lp", cfg!(feature = "lp"), &words);
    }
}

/// The first two hardware threads of this computer are the PEs of a run.
#[cfg(feature = "hwloc")]
#[test]
fn a_run_on_the_machine_of_hwloc() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_equipoise"));
    let words = ["run", "kneighbor", "--pes", "2", "--topology", "hwloc[0-1]", "--balancer", "TopoLB"];
    let output = command.args(words).output().expect("the command starts");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

//! Runs the commands of the pages, and compares their output with the one that the pages show.
//!
//! A block that begins with ```` ```sh ```` has commands, in lines that begin with `$ `, each followed by its output
//! (or by nothing, then the output is not compared). In the output `...` stands for any text inside a line, and a line
//! `...` for any lines. Runs of spaces are equal, and empty lines do not count. The commands of a page run one after
//! the other in one folder.

use std::collections::HashSet;
use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use equipoise_model::testing::{at_full_size, is_full_size};
use equipoise_tests::{Sandbox, WORKSPACE, files};

use super::{Block, Page, pages};

/// A command and the output that the page shows.
struct Shown<'a> {
    command: String,
    output: Vec<&'a str>,
}

/// The commands of a block.
fn shown<'a>(block: &Block<'a>) -> Vec<Shown<'a>> {
    let mut all: Vec<Shown> = Vec::new();
    let mut is_continued = false;
    for &line in &block.lines {
        let command = line.strip_prefix("$ ");
        match (command, all.last_mut()) {
            (None, Some(last)) if is_continued => {
                last.command += " ";
                last.command += line.trim().trim_end_matches('\\').trim_end();
            }
            (Some(command), _) => {
                let command = command.trim_end_matches('\\').trim_end().to_owned();
                all.push(Shown { command, output: Vec::new() });
            }
            (None, Some(last)) => last.output.push(line),
            // A block without `$ ` has commands only.
            (None, None) => {
                return block
                    .lines
                    .iter()
                    .map(|line| Shown { command: (*line).to_owned(), output: Vec::new() })
                    .collect();
            }
        }
        is_continued = (command.is_some() || is_continued) && line.ends_with('\\');
    }
    all
}

/// The output of a command; `None` if a test cannot run the command.
fn run(sandbox: &Sandbox, command: &str) -> Option<String> {
    // `the_main_command_reports_every_step` runs a shorter form of the README's first command.
    let is_first = command.starts_with("cargo run --release -- run stencil2d");
    if is_first || command == "cargo test --workspace" {
        return None;
    }
    if let Some(bench) = command.strip_prefix("cargo bench -p equipoise-benches --bench ") {
        let path = format!("{WORKSPACE}/benches/benches/{bench}.rs");
        assert!(Path::new(&path).exists(), "there is no benchmark {bench}");
        return None;
    }
    for start in ["equipoise ", "cargo run --release -- "] {
        if let Some(words) = command.strip_prefix(start) {
            return Some(sandbox.run(words).result());
        }
    }
    if let Some(words) = command.strip_prefix("cargo run --release -p equipoise-figures -- ") {
        return Some(sandbox.figures(words).result());
    }
    if let Some(words) = command.strip_prefix("cargo run -p equipoise --example ") {
        let (name, words) = words.split_once(" -- ").unwrap_or((words, ""));
        return Some(example(sandbox, name, words));
    }
    if let Some((text, name)) = command.strip_prefix("printf '").and_then(|words| words.split_once("' > ")) {
        sandbox.put(name, text.replace("\\n", "\n"));
        return Some(String::new());
    }
    if let Some(name) = command.strip_prefix("cat ") {
        return Some(sandbox.text(name));
    }
    if let Some((count, name)) = command.strip_prefix("head -n ").and_then(|words| words.split_once(' ')) {
        let count = count.parse().expect("a number of lines");
        return Some(sandbox.text(name).lines().take(count).map(|line| format!("{line}\n")).collect());
    }
    panic!("what is the command `{command}`?")
}

/// The output of an example of the runtime.
fn example(sandbox: &Sandbox, name: &str, words: &str) -> String {
    let path = examples().join(format!("{name}{}", env::consts::EXE_SUFFIX));
    let output = Command::new(path).args(words.split_whitespace()).current_dir(sandbox.path()).output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{name} {words}: {stdout}{}", String::from_utf8_lossy(&output.stderr));
    stdout
}

/// The folder of the built examples, in the target folder of this test. They are up to date.
fn examples() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = env::current_exe().expect("a test knows its path");
        // target/PROFILE/deps/TEST, or target/TRIPLE/PROFILE/deps/TEST.
        let folder = test.ancestors().nth(2).expect("a test is in the folder of its profile");
        let name = |path: &Path| path.file_name().and_then(OsStr::to_str).expect("a name").to_owned();
        let profile = match name(folder).as_str() {
            "debug" => "dev".to_owned(),
            other => other.to_owned(),
        };
        let mut target = folder.parent().expect("a profile is in a target folder");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        // `.ci/timed` sets this variable for tests; with it, Cargo would rebuild everything. With the examples of the
        // whole workspace, dependencies have the same features as in `cargo test --workspace`.
        cargo.env_remove("RUSTC_BOOTSTRAP");
        cargo.args(["build", "--quiet", "--workspace", "--examples", "--profile", &profile]);
        if !target.join("CACHEDIR.TAG").exists() {
            cargo.arg("--target").arg(name(target));
            target = target.parent().expect("a triple is in a target folder");
        }
        let status = cargo.arg("--target-dir").arg(target).current_dir(WORKSPACE).status();
        assert!(status.is_ok_and(|status| status.success()), "the examples cannot be built");
        folder.join("examples")
    })
}

/// Whether a line of output is what a page shows.
fn is_line(shown: &str, line: &str) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, line) = (words(shown), words(line));
    let Some((start, rest)) = shown.split_once("...") else { return shown == line };
    let Some(mut left) = line.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split("...").collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match left.split_once(part) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    left.ends_with(end)
}

/// Whether the lines of an output are what a page shows.
fn is_output(shown: &[&str], lines: &[&str]) -> bool {
    match (shown, lines) {
        ([], []) => true,
        (["...", rest @ ..], _) if is_output(rest, lines) => true,
        (["...", ..], [_, after @ ..]) => is_output(shown, after),
        ([first, rest @ ..], [line, after @ ..]) => is_line(first, line) && is_output(rest, after),
        _ => false,
    }
}

/// Runs the commands of a page.
fn check(page: &Page, different: &mut Vec<String>) {
    let sandbox = Sandbox::new();
    for block in page.blocks().iter().filter(|block| block.info == "sh") {
        for Shown { command, output } in shown(block) {
            let Some(printed) = run(&sandbox, &command) else { continue };
            let full = |lines: Vec<&str>| -> Vec<String> {
                lines
                    .into_iter()
                    .filter(|line| !line.trim().is_empty())
                    .map(|line| line.trim().to_owned())
                    .collect()
            };
            let (expected, lines) = (full(output), full(printed.lines().collect()));
            let view = |lines: &'_ [String]| lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
            let expected_lines: Vec<&str> = expected.iter().map(String::as_str).collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            if !expected.is_empty() && !is_output(&expected_lines, &lines) {
                let (name, line) = (&page.name, block.line);
                different.push(format!(
                    "{name}:{line}: `{command}` does not print\n{}\nbut\n{printed}",
                    view(&expected)
                ));
            }
        }
    }
}

/// The pages that a new user reads first.
const FIRST: [&str; 2] = ["README.md", "docs/src/tutorial.md"];

#[test]
fn commands_run_and_print_what_pages_show() {
    let (pages, mut different) = (pages(), Vec::new());
    let chosen: Vec<&Page> =
        pages.iter().filter(|page| is_full_size() || FIRST.contains(&&*page.name)).collect();
    assert!(chosen.len() >= FIRST.len(), "{FIRST:?} has a page that does not exist");
    for page in chosen {
        check(page, &mut different);
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

#[test]
#[ignore = "slow"]
fn commands_of_all_pages_print_what_they_show() {
    at_full_size(&[commands_run_and_print_what_pages_show]);
}

#[test]
fn examples_run_and_pages_show_their_code() {
    let sources = files(&Path::new(WORKSPACE).join("runtime/examples"), "rs");
    let trimmed = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let code: Vec<String> =
        sources.iter().map(|path| trimmed(&std::fs::read_to_string(path).expect("an example"))).collect();
    let sandbox = Sandbox::new();
    // The tests between processes run programs that call MPI.
    for (source, _) in sources.iter().zip(&code).filter(|(_, code)| !code.contains("use mpi::")) {
        let name = source.file_stem().expect("a name").to_string_lossy();
        example(&sandbox, &name, "");
    }
    // The README's program is a test of the documentation of this crate.
    for page in pages().iter().filter(|page| page.name != "README.md") {
        for block in page.blocks().iter().filter(|block| block.info.starts_with("rust")) {
            let text = trimmed(&block.lines.join("\n"));
            let is_shown = |code: &String| text.split("// ...").all(|part| code.contains(part.trim()));
            let (name, line) = (&page.name, block.line);
            assert!(code.iter().any(is_shown), "{name}:{line}: no example has this code:\n{text}");
        }
    }
}

#[test]
fn pages_have_the_kinds_of_blocks_that_are_checked() {
    // Tests of the Python package run its blocks.
    let known: HashSet<&str> =
        ["sh", "sh,ignore", "text", "toml", "rust", "rust,ignore", "rust,no_run", "c", "python"].into();
    for page in pages() {
        for Block { info, line, .. } in page.blocks() {
            assert!(known.contains(info), "{}:{line}: `{info}` is not a kind of block", page.name);
        }
    }
}

#[test]
fn three_dots_stand_for_anything() {
    assert!(is_line("took ... ms, 3 of ... move", "took  0.2 ms, 3 of 64   move"));
    assert!(!is_line("took ... ms", "took 0.2 s") && !is_line("a...b", "ab c"));
    assert!(is_output(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(is_output(&["a", "..."], &["a"]) && !is_output(&["a"], &["a", "b"]));
}

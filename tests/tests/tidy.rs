//! The rules of the house that a compiler does not check; each violation is reported with its remedy.

#[path = "tidy/source.rs"]
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use equipoise_strategies::registry;
use equipoise_tests::WORKSPACE;
use source::{Source, names};

/// A file that is longer has more than one idea in it.
const MOST_LINES: usize = 500;

/// What must not be written, and what to write instead.
type Idiom = (&'static str, &'static str);

/// Nowhere.
const BANNED: &[Idiom] = &[
    ("todo!", "write it, or leave it out and say so where a user looks"),
    ("unimplemented!", "write it, or return an error that names the remedy"),
    ("dbg!", "return what you want to see, or delete it"),
    ("#[ignore]", "make it fast, or skip it with a line on stderr where something is missing"),
    ("unsafe", "find a safe way; a module that needs it is named in ARCHITECTURE.md and here"),
    ("mem::transmute", "convert what is inside"),
];

/// Not in what users run.
const BANNED_OUTSIDE_TESTS: &[Idiom] = &[
    (".unwrap()", "`?` with a sentence for what a user can cause, else `expect` with what must hold"),
    ("panic!()", "say what is wrong and what to do"),
    ("Box<dyn Error>", "an enum of what can go wrong"),
];

/// Not in `runtime/src` outside of `transport/`, which alone knows how messages travel.
const ONLY_TRANSPORT: &[Idiom] = &[
    ("thread::spawn", "have transport::threads run it"),
    ("thread::scope", "have transport::threads run it"),
    ("thread::park", "wait through the transport"),
    ("thread::Builder", "have transport::threads run it"),
    ("mpsc", "send through the transport"),
    ("crossbeam_channel", "send through the transport"),
    ("crossbeam_queue", "send through the transport"),
    ("crossbeam_utils::sync", "wait through the transport"),
    ("Condvar", "wait through the transport"),
    ("std::net", "send through the transport"),
    ("std::os", "send through the transport"),
];

/// Not in `strategies/src`: a strategy gives the same answer for the same input, wherever it runs.
const NOT_IN_STRATEGIES: &[Idiom] = &[
    ("std::time::Instant", "take the time from the caller, as replay does"),
    ("Instant::now", "take the time from the caller, as replay does"),
    ("SystemTime", "take the time from the caller"),
    ("println!", "return it; printing is for the command"),
    ("eprintln!", "return it; printing is for the command"),
    ("print!", "return it; printing is for the command"),
    ("eprint!", "return it; printing is for the command"),
    ("std::env", "take it as a parameter"),
    ("std::thread", "use rayon, and make the answer independent of the number of threads"),
    ("thread_local!", "pass it on; there is no global state"),
    ("OnceLock", "pass it on; there is no global state"),
    ("LazyLock", "pass it on; there is no global state"),
    ("HashMap::new", "rustc_hash's FxHashMap, whose order is the same in every run"),
    ("RandomState", "rustc_hash's FxHashMap, whose order is the same in every run"),
];

/// The files of `strategies/src` that read and write files.
const READERS_AND_WRITERS: &[&str] = &["database/file.rs", "files.rs", "trace/file.rs"];

/// Not in `strategies/src` but in [`READERS_AND_WRITERS`].
const FILES: &[Idiom] = &[
    ("std::fs", "take the text or the bytes from a reader"),
    ("fs::", "take the text or the bytes from a reader"),
    ("File::", "take the text or the bytes from a reader"),
    ("std::process", "leave processes to the command"),
];

#[track_caller]
fn none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// What `source` has of `idioms`.
fn find(source: &Source, idioms: &[Idiom], with_tests: bool) -> Vec<String> {
    let mut violations = Vec::new();
    for (code, instead) in idioms {
        for line in source.lines_of(code, with_tests) {
            violations.push(format!("{}:{line}: `{code}` is not used here; instead: {instead}", source.name));
        }
    }
    violations
}

/// What the files below `folder` have of `idioms` outside of tests, but for those that `may`.
fn find_below(folder: &str, idioms: &[Idiom], may: impl Fn(&str) -> bool) -> Vec<String> {
    let all = Source::all();
    let below = all.iter().filter(|source| source.name.starts_with(folder));
    below
        .filter(|source| !may(&source.name[folder.len()..]))
        .flat_map(|source| find(source, idioms, false))
        .collect()
}

#[test]
fn every_file_begins_with_what_it_is_about_and_has_one_idea() {
    let mut violations = Vec::new();
    for name in names(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(Path::new(WORKSPACE).join(&name)).expect("a file of the workspace");
        if !text.starts_with("//! ") {
            violations.push(format!("{name}: begin with a line `//! ` that says what it is about"));
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            violations
                .push(format!("{name}: {lines} lines are more than {MOST_LINES}; find the second idea"));
        }
    }
    none(&violations);
}

#[test]
fn banned_idioms_have_replacements() {
    let all = Source::all();
    assert!(all.len() > 50, "the files of the workspace are found");
    let everywhere = all.iter().flat_map(|source| find(source, BANNED, true));
    let outside = all.iter().flat_map(|source| find(source, BANNED_OUTSIDE_TESTS, false));
    none(&everywhere.chain(outside).collect::<Vec<_>>());
}

#[test]
fn only_the_transport_knows_how_messages_travel() {
    none(&find_below("runtime/src/", ONLY_TRANSPORT, |name| name.starts_with("transport/")));
}

#[test]
fn strategies_have_no_clock_no_output_no_threads_and_no_files() {
    let folder = "strategies/src/";
    let mut violations = find_below(folder, NOT_IN_STRATEGIES, |_| false);
    violations.extend(find_below(folder, FILES, |name| READERS_AND_WRITERS.contains(&name)));
    none(&violations);
    for name in READERS_AND_WRITERS {
        assert!(
            Path::new(WORKSPACE).join(folder).join(name).exists(),
            "{name} is gone; take it off the list"
        );
    }
}

#[test]
fn the_runtime_knows_no_strategy_by_name() {
    let mut violations = Vec::new();
    let all = Source::all();
    for source in all.iter().filter(|source| source.name.starts_with("runtime/src/")) {
        for token in source.tokens.iter().filter(|token| !token.in_test && token.text.contains('"')) {
            for named in registry::ALL {
                if named.aliases.iter().chain([&named.name]).any(|name| token.text.contains(name)) {
                    let (name, line) = (&source.name, token.line);
                    violations.push(format!("{name}:{line}: {}: ask the registry instead", token.text));
                }
            }
        }
    }
    none(&violations);
}

#[test]
fn crates_depend_one_way() {
    // A crate, and those of ours that it may depend on.
    let arrows: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("strategies", &[][..]),
        ("runtime/macros", &[]),
        ("runtime", &["equipoise-macros", "equipoise-strategies"]),
        ("apps", &["equipoise", "equipoise-strategies"]),
        ("tests", &["equipoise", "equipoise-apps", "equipoise-strategies"]),
        ("benches", &["equipoise", "equipoise-apps", "equipoise-strategies"]),
    ]);
    let manifest = |folder: &str| {
        let path = Path::new(WORKSPACE).join(folder).join("Cargo.toml");
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.parse::<toml::Table>().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let workspace = manifest("");
    let members = workspace["workspace"]["members"].as_array().expect("a list of members");
    assert_eq!(members.len(), arrows.len(), "a crate has no arrows yet");
    let mut violations = Vec::new();
    for member in members.iter().filter_map(toml::Value::as_str) {
        let allowed = arrows.get(member).unwrap_or_else(|| panic!("{member} has no arrows yet"));
        let manifest = manifest(member);
        let targets = manifest.get("target").and_then(toml::Value::as_table);
        let tables = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
        for table in tables.chain([&manifest]) {
            for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
                let dependencies = table.get(kind).and_then(toml::Value::as_table).into_iter().flatten();
                for (name, _) in dependencies.filter(|(name, _)| name.starts_with("equipoise")) {
                    if !allowed.contains(&name.as_str()) {
                        violations.push(format!(
                            "{member}/Cargo.toml: {kind} on {name} go against the arrows strategies <- runtime \
                             <- apps <- tests, benches; move what is shared to the left"
                        ));
                    }
                }
            }
        }
    }
    none(&violations);
}

#[test]
fn nothing_knows_whose_machine_it_is_on() {
    // In two parts, lest this file be one of them.
    let roots = [["/wo", "rk/"], ["/ho", "me/"], ["/ro", "ot/"], ["/Use", "rs/"], ["/tmp/", "target"]]
        .map(|p| p.concat());
    let is_text = |path: &Path| {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("md");
        ["rs", "md", "toml", "sh", "stderr", "csv", "json"].contains(&extension)
    };
    let mut violations = Vec::new();
    for name in names(is_text) {
        let Ok(text) = fs::read_to_string(Path::new(WORKSPACE).join(&name)) else { continue };
        for (number, line) in text.lines().enumerate() {
            if roots.iter().any(|root| line.contains(root.as_str())) {
                let line_number = number + 1;
                violations
                    .push(format!("{name}:{line_number}: write a path from the workspace: {}", line.trim()));
            }
        }
    }
    none(&violations);
}

#[test]
fn nothing_else_stands_at_the_top() {
    let known = [
        "Cargo.toml",
        "Cargo.lock",
        "strategies",
        "runtime",
        "apps",
        "tests",
        "benches",
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        ".rustfmt.toml",
        "deny.toml",
        // What `equipoise reproduce` writes; git ignores it.
        "reproduce",
    ];
    let entries = fs::read_dir(WORKSPACE).expect("the workspace");
    let made_by_cargo = |entry: &fs::DirEntry| entry.path().join("CACHEDIR.TAG").exists();
    let violations: Vec<String> = entries
        .flatten()
        .filter(|entry| !made_by_cargo(entry))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && !known.contains(&name.as_str()))
        .map(|name| format!("{name}: put it into the crate it belongs to"))
        .collect();
    none(&violations);
}

#[test]
fn idioms_are_found_in_code_and_nowhere_else() {
    let text = r##"//! It says todo!() and x.unwrap().
/// Or dbg!(x).
fn f(x: Option<u32>) -> u32 {
    // Not todo!() either.
    let text = "x.unwrap()";
    x
        .unwrap() + unwrap(text)
}
#[cfg(test)]
mod tests { fn g() { None.unwrap() } }
#[test]
fn h() { None.unwrap() }
#[cfg(test)]
mod helpers;
fn last() { dbg!(1).unwrap() }
"##;
    let source = Source::new("src/some.rs", text);
    assert_eq!(source.lines_of(".unwrap()", false), [7, 15]);
    assert_eq!(source.lines_of(".unwrap()", true), [7, 10, 12, 15]);
    assert!(source.lines_of("todo!", true).is_empty());
    assert_eq!(source.lines_of("dbg!", true), [15]);
    let found = find(&source, &[("dbg!", "nothing")], true);
    assert_eq!(found, ["src/some.rs:15: `dbg!` is not used here; instead: nothing"]);
    let of_tests = Source::new("runtime/tests/some.rs", "fn f() { None.unwrap() }");
    assert!(of_tests.lines_of(".unwrap()", false).is_empty());
}

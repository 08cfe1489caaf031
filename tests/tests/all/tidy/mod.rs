//! Rules for the sources that the compiler does not check; each violation is reported with its remedy.

mod crates;
mod modules;
mod source;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use equipoise_strategies::registry;
use equipoise_tests::WORKSPACE;
use source::{Function, Source, names};

/// A longer file has more than one idea.
const MOST_LINES: usize = 500;

/// A function is readable without scrolling. The lines of the signature count, too.
const MOST_LINES_OF_FUNCTION: usize = 80;

/// Forbidden code, and the remedy.
type Idiom = (&'static str, &'static str);

/// Forbidden everywhere.
const BANNED: &[Idiom] = &[
    ("todo!", "write the code, or document that it is missing"),
    ("unimplemented!", "write the code, or return an error that names the remedy"),
    ("dbg!", "return the value, or delete the line"),
    ("#[ignore]", "make the test fast, or write #[ignore = \"slow\"]"),
    ("unsafe", "write safe code; modules that need unsafe code are named in ARCHITECTURE.md and here"),
    ("mem::transmute", "convert the fields"),
];

/// Forbidden outside of tests.
const BANNED_OUTSIDE_TESTS: &[Idiom] = &[
    (".unwrap()", "`?` with an error for users, or `expect` with an invariant"),
    ("panic!()", "a message that says what is wrong and what to do"),
    ("Box<dyn Error>", "an enum of errors"),
];

/// Forbidden where programs and the command run: these macros panic if stderr or stdout cannot be written to.
const PRINTING: &[Idiom] = &[
    (
        "eprintln!",
        "equipoise::print_error or equipoise::warn, which ignore a stderr that cannot be written to",
    ),
    ("eprint!", "equipoise::print_error or equipoise::warn, which ignore a stderr that cannot be written to"),
    ("println!", "output::print, which reports a stdout that cannot be written to"),
    ("print!", "output::print, which reports a stdout that cannot be written to"),
];

/// Forbidden in `runtime/src` outside of `transport/`: only the transport sends messages between threads.
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

/// Forbidden in `strategies/src`: the result of a strategy depends only on its input.
const NOT_IN_STRATEGIES: &[Idiom] = &[
    ("std::time::Instant", "take the time from the caller, as replay does"),
    ("Instant::now", "take the time from the caller, as replay does"),
    ("SystemTime", "take the time from the caller"),
    ("println!", "return the text; only the command prints"),
    ("eprintln!", "return the text; only the command prints"),
    ("print!", "return the text; only the command prints"),
    ("eprint!", "return the text; only the command prints"),
    ("std::env", "take the value as a parameter"),
    ("std::thread", "use rayon, and make the result independent of the number of threads"),
    ("thread_local!", "pass the value as a parameter; there is no global state"),
    ("OnceLock", "pass the value as a parameter; there is no global state"),
    ("LazyLock", "pass the value as a parameter; there is no global state"),
    ("HashMap::new", "FxHashMap of rustc_hash, whose order is the same in every run"),
    ("RandomState", "FxHashMap of rustc_hash, whose order is the same in every run"),
];

/// The files of `strategies` that read and write files, or read the system's (`memory.rs`).
const READERS_AND_WRITERS: &[&str] = &[
    "model/src/database/file.rs",
    "model/src/files.rs",
    "model/src/files/whole.rs",
    "model/src/memory.rs",
    "network/src/trace/file.rs",
];

/// Forbidden in `strategies/src` outside of [`READERS_AND_WRITERS`].
const FILES: &[Idiom] = &[
    ("std::fs", "take the text or the bytes from a reader"),
    ("fs::", "take the text or the bytes from a reader"),
    ("File::", "take the text or the bytes from a reader"),
    ("std::process", "only the command starts processes"),
];

#[track_caller]
fn none(violations: &[String]) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

/// The uses of `idioms` in `source`.
fn find(source: &Source, idioms: &[Idiom], with_tests: bool) -> Vec<String> {
    let mut violations = Vec::new();
    for (code, instead) in idioms {
        for line in source.lines_of(code, with_tests) {
            violations
                .push(format!("{}:{line}: `{code}` is forbidden here; instead: {instead}", source.name));
        }
    }
    violations
}

/// The uses of `idioms` outside of tests in the files below `folder` that are not exempt.
fn find_below(folder: &str, idioms: &[Idiom], is_exempt: impl Fn(&str) -> bool) -> Vec<String> {
    let all = Source::all();
    let below = all.iter().filter(|source| source.name.starts_with(folder));
    below
        .filter(|source| !is_exempt(&source.name[folder.len()..]))
        .flat_map(|source| find(source, idioms, false))
        .collect()
}

#[test]
fn every_file_begins_with_a_summary_and_is_short() {
    let mut violations = Vec::new();
    for name in names(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text = fs::read_to_string(Path::new(WORKSPACE).join(&name)).expect("a file of the workspace");
        if !text.starts_with("//! ") {
            violations.push(format!("{name}: begin with a line `//! ` that summarises the file"));
        }
        let lines = text.lines().count();
        if lines > MOST_LINES {
            violations.push(format!("{name}: {lines} lines are more than {MOST_LINES}; split the file"));
        }
    }
    none(&violations);
}

#[test]
fn banned_idioms_are_not_used() {
    let all = Source::all();
    assert!(all.len() > 50, "the files of the workspace are found");
    let everywhere = all.iter().flat_map(|source| find(source, BANNED, true));
    let outside = all.iter().flat_map(|source| find(source, BANNED_OUTSIDE_TESTS, false));
    none(&everywhere.chain(outside).collect::<Vec<_>>());
}

#[test]
fn only_the_transport_sends_between_threads() {
    // The threads that wait for signals and print the last error belong to the process, not to a run; those that write a recorded
    // order or a checkpoint carry no messages.
    let others = ["process.rs", "interleaving/recording.rs", "checkpoint/file.rs", "checkpoint/saver.rs"];
    let is_exempt = |name: &str| name.starts_with("transport/") || others.contains(&name);
    none(&find_below("runtime/src/", ONLY_TRANSPORT, is_exempt));
}

#[test]
fn errors_and_warnings_ignore_a_full_stderr() {
    let is_figure = |name: &str| name.starts_with("figures/");
    let mut violations = find_below("runtime/src/", PRINTING, |_| false);
    violations.extend(find_below("apps/", PRINTING, is_figure));
    none(&violations);
}

#[test]
fn strategies_have_no_clock_no_output_no_threads_and_no_files() {
    let folder = "strategies/";
    // The Python package calls strategies, as the command does: it measures their time, and waits for them in a thread of its own.
    let is_caller = |name: &str| name.starts_with("python/");
    let mut violations =
        find_below(folder, NOT_IN_STRATEGIES, |name| name.ends_with("/testing.rs") || is_caller(name));
    // The machine of a job of Slurm is what the environment says; it becomes a spec, and nothing else reads it.
    let reads_job = |violation: &String| {
        violation.starts_with("strategies/model/src/topology/slurm_env.rs:")
            && violation.contains("`std::env`")
    };
    violations.retain(|violation| !reads_job(violation));
    let is_exempt = |name: &str| READERS_AND_WRITERS.contains(&name) || name.ends_with("/testing.rs");
    violations.extend(find_below(folder, FILES, is_exempt));
    none(&violations);
    for name in READERS_AND_WRITERS {
        assert!(
            Path::new(WORKSPACE).join(folder).join(name).exists(),
            "{name} does not exist; remove it from the list"
        );
    }
}

/// Files that may name any strategy: the registry, which lists what Charm++ calls them; and the defaults of `map`.
const NAME_STRATEGIES: [&str; 2] = ["strategies/src/registry.rs", "apps/cli/src/map.rs"];

/// Whether a file is the one in which a strategy is defined, or in the folder of its module.
fn is_own(file: &str, name: &str) -> bool {
    let definition = format!("name: {name:?}");
    let defines = |source: &&Source| {
        source.name.starts_with("strategies/src/") && !source.lines_of(&definition, false).is_empty()
    };
    let Some(own) = Source::all().iter().find(defines) else { return false };
    let module = own.name.strip_suffix("/strategy.rs").or(own.name.strip_suffix(".rs"));
    file == own.name || module.is_some_and(|module| file.starts_with(&format!("{module}/")))
}

/// The help of a strategy may compare it with another.
#[test]
fn strategies_are_named_in_their_files_only() {
    let mut violations = Vec::new();
    let folders = ["runtime/src/", "strategies/", "apps/cli/src/"];
    let is_checked = |source: &&Source| {
        folders.iter().any(|folder| source.name.starts_with(folder))
            && !NAME_STRATEGIES.contains(&source.name.as_str())
    };
    // `auto` is a value of other flags, too.
    let aliases = registry::ALIASES.iter().map(|it| it.0).filter(|alias| *alias != "auto");
    let names: Vec<&str> = registry::ALL.iter().map(|named| named.name).chain(aliases).collect();
    for source in Source::all().iter().filter(is_checked) {
        for (at, token) in source.tokens.iter().enumerate() {
            let is_help =
                at >= 2 && source.tokens[at - 1].text == ":" && source.tokens[at - 2].text == "help";
            if token.in_test || is_help || !token.text.contains('"') {
                continue;
            }
            let words = || token.text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            let is_named = |name: &&&str| words().any(|word| word == **name) && !is_own(&source.name, name);
            violations.extend(names.iter().find(is_named).map(|name| {
                format!(
                    "{}:{}: names {name}: use the registry, or name a kind of strategy",
                    source.name, token.line
                )
            }));
        }
    }
    none(&violations);
}

#[test]
fn no_function_is_too_long() {
    let mut violations = Vec::new();
    for source in Source::all() {
        for Function { name, line, lines } in
            source.functions.iter().filter(|it| it.lines > MOST_LINES_OF_FUNCTION)
        {
            let place = format!("{}:{line}", source.name);
            violations.push(format!(
                "{place}: {lines} lines of `{name}` are more than {MOST_LINES_OF_FUNCTION}; split the function"
            ));
        }
    }
    none(&violations);
}

/// The last form of an error, which has its class: the failure of a command (`apps`) and of a run (`runtime`).
const FAILURE: &str = "Failure";

/// Types with the name of an error that are none.
const NO_ERRORS: &[(&str, &str)] = &[("strategies/src/replay.rs", "Refusal")];

#[test]
fn errors_are_classified() {
    let all = Source::all();
    let of_library =
        |name: &str| ["strategies/", "runtime/src/", "apps/"].iter().any(|folder| name.starts_with(folder));
    let of_libraries = || all.iter().filter(|source| of_library(&source.name));
    let errors: BTreeSet<&str> = of_libraries().flat_map(Source::errors).collect();
    // By file.
    let classified: Vec<(&str, BTreeSet<&str>)> =
        all.iter().map(|source| (source.name.as_str(), source.names_after("impl Classified for"))).collect();
    let mut violations = Vec::new();
    for source in of_libraries() {
        let folder = source.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_classified = |name: &str| {
            classified.iter().any(|(other, names)| other.starts_with(folder) && names.contains(name))
        };
        let is_error = |name: &&str| {
            errors.contains(name) && *name != FAILURE && !NO_ERRORS.contains(&(source.name.as_str(), *name))
        };
        for name in source.types_for_others().into_iter().filter(is_error).filter(|it| !is_classified(it)) {
            violations.push(format!("{}: implement Classified for {name}", source.name));
        }
    }
    assert!(
        !errors.is_empty() && classified.iter().any(|(_, names)| !names.is_empty()),
        "the sources have errors"
    );
    none(&violations);
}

/// Folders whose files form cycles, and the reason.
const CYCLIC: &[(&str, &str)] = &[
    (
        "runtime/src/array/",
        "a chare names the types of its context and its proxies, and these are generic over chares",
    ),
    (
        "runtime/src/transport/",
        "a simulated run in virtual time begins in `simulated.rs`, whose mailboxes `machine.rs` needs",
    ),
];

#[test]
fn modules_form_no_cycle() {
    let all = Source::all();
    let mut violations = Vec::new();
    let of_crate = |member: String| modules::folders(&format!("{member}/src/"), all);
    for folder in crates::members().into_iter().flat_map(of_crate) {
        let cycles = modules::cycles(&modules::dependencies(&folder, all));
        let is_allowed = CYCLIC.iter().any(|(cyclic, _)| *cyclic == folder);
        if is_allowed && cycles.is_empty() {
            violations.push(format!("{folder}: modules form no cycle; remove the folder from the list"));
        }
        if !is_allowed && !cycles.is_empty() {
            violations.push(format!("{folder}: modules form a cycle; reverse one of these dependencies:"));
            violations.extend(cycles.iter().map(|dependency| format!("    {dependency}")));
        }
    }
    none(&violations);
}

#[test]
fn the_runtime_has_the_layers_of_the_map() {
    let map = fs::read_to_string(Path::new(WORKSPACE).join("ARCHITECTURE.md")).expect("the map");
    let (_, table) =
        map.split_once("### runtime/src, from the lowest layer up").expect("the table of the runtime");
    let is_row = |line: &&str| line.starts_with("| `");
    let rows = table.lines().skip_while(|line| !is_row(line)).take_while(is_row);
    let mut layers = BTreeMap::<&str, usize>::new();
    for (layer, row) in rows.enumerate() {
        let cell = row.split('|').nth(1).unwrap_or_default();
        for name in cell.split('`').skip(1).step_by(2) {
            let module = name.split('/').next().unwrap_or(name).trim_end_matches(".rs");
            layers.entry(module).or_insert(layer);
        }
    }
    let mut violations = Vec::new();
    for (from, uses) in modules::dependencies("runtime/src/", Source::all()) {
        let Some(own) = layers.get(from.as_str()) else {
            violations.push(format!("ARCHITECTURE.md: the table of the runtime has no row for {from}"));
            continue;
        };
        for (to, place) in
            uses.iter().filter(|(to, _)| layers.get(to.as_str()).is_some_and(|layer| layer > own))
        {
            violations.push(format!("{place}: {from} uses {to}, which is a higher layer in ARCHITECTURE.md"));
        }
    }
    none(&violations);
}

#[test]
fn no_file_contains_an_absolute_path() {
    // In two parts, so that this file does not contain them.
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
                violations.push(format!(
                    "{name}:{line_number}: use a path relative to the workspace: {}",
                    line.trim()
                ));
            }
        }
    }
    none(&violations);
}

#[test]
fn the_top_of_the_workspace_has_only_known_files() {
    let known = [
        "Cargo.toml",
        "Cargo.lock",
        "strategies",
        "runtime",
        "apps",
        "tests",
        "benches",
        "docs",
        "README.md",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CITATION.cff",
        "THIRD-PARTY.txt",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        ".rustfmt.toml",
        "deny.toml",
        // The output folder of the program `figures`; git ignores it.
        "figures",
    ];
    let entries = fs::read_dir(WORKSPACE).expect("the workspace");
    let made_by_cargo = |entry: &fs::DirEntry| entry.path().join("CACHEDIR.TAG").exists();
    let violations: Vec<String> = entries
        .flatten()
        .filter(|entry| !made_by_cargo(entry))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.') && !known.contains(&name.as_str()))
        .map(|name| format!("{name}: move it into a crate"))
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
    assert_eq!(found, ["src/some.rs:15: `dbg!` is forbidden here; instead: nothing"]);
    let functions: Vec<_> = source.functions.iter().map(|it| (it.name.as_str(), it.line, it.lines)).collect();
    assert_eq!(functions, [("f", 3, 6), ("g", 10, 1), ("h", 12, 1), ("last", 15, 1)]);
    let of_tests = Source::new("runtime/tests/some.rs", "fn f() { None.unwrap() }");
    assert!(of_tests.lines_of(".unwrap()", false).is_empty());
}

/// What says how many of its cases a test runs.
const SIZES: [&str; 6] =
    ["everywhere", "every_configuration", "is_chosen", "is_full_size", "seeds", "some_of"];

#[test]
fn tests_that_leave_out_cases_are_in_the_slow_group() {
    let (mut listed, mut partial) = (BTreeSet::new(), Vec::new());
    for source in Source::all() {
        let lists = source.tokens.split(|token| token.text == "at_full_size").skip(1);
        let names =
            lists.flat_map(|after| after.iter().map(|token| &token.text).take_while(|text| *text != ";"));
        listed.extend(names);
        let text =
            fs::read_to_string(Path::new(WORKSPACE).join(&source.name)).expect("a file of the workspace");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for Function { name, line, lines: length } in &source.functions {
            let attributes = lines[..line - 1].iter().rev().take_while(|text| text.starts_with("#["));
            let is_default = attributes.clone().any(|text| *text == "#[test]")
                && !attributes.clone().any(|text| text.starts_with("#[ignore"));
            let body: Vec<&str> = (source.tokens.iter())
                .filter(|token| (*line..line + length).contains(&token.line))
                .map(|token| &*token.text)
                .collect();
            if is_default && body.windows(2).any(|pair| SIZES.contains(&pair[0]) && pair[1] == "(") {
                partial.push((&source.name, name));
            }
        }
    }
    assert!(partial.len() > 50, "tests of the runtime have many cases: {partial:?}");
    let missing = partial.into_iter().filter(|(_, name)| !listed.contains(name));
    let say = |(file, name)| {
        format!("{file}: `{name}` leaves out cases; name it in an `at_full_size(&[..])` of a slow test")
    };
    none(&missing.map(say).collect::<Vec<_>>());
}

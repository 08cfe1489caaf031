//! The pages in `docs/src/reference`, made from the registries. A test compares the pages with them, and writes the
//! pages if the environment variable `UPDATE_DOCS` is set.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use equipoise_model::descriptor::Descriptor;
use equipoise_model::fault::Fault;
use equipoise_model::graph::generate;
use equipoise_model::params::Param;
use equipoise_model::{launcher, topology};
use equipoise_network::{models, program};
use equipoise_strategies::cost::catalogue::{self, Shown, Subject};
use equipoise_strategies::{registry, workloads};
use equipoise_tests::WORKSPACE;

/// The first lines of every page.
const GENERATED: &str = "<!-- Generated from the registries. Do not edit; run\n     \
                         UPDATE_DOCS=1 cargo test -p equipoise-tests --test all docs::reference -->\n\n";

/// A text for a page: `<` would begin a tag.
fn escaped(text: &str) -> String {
    text.split('`').enumerate().fold(String::new(), |mut page, (number, part)| {
        if number > 0 {
            page.push('`');
        }
        // The parts with odd numbers are code.
        page + &if number % 2 == 0 { part.replace('<', "&lt;").replace('*', "\\*") } else { part.into() }
    })
}

/// A text for a cell of a table.
fn cell(text: &str) -> String {
    escaped(text).replace('|', "\\|")
}

/// The table of parameters.
fn table(params: &[&Param]) -> String {
    let mut text = String::new();
    if !params.is_empty() {
        text += "\n| key | default | meaning |\n|---|---|---|\n";
    }
    for Param { key, default, help } in params {
        let default = if default.is_empty() { "required".into() } else { format!("`{default}`") };
        let _ = writeln!(text, "| `{key}` | {default} | {} |", cell(help));
    }
    text
}

/// The section of an entry.
fn section(form: &str, help: &str, params: &[&Param]) -> String {
    format!("\n## `{form}`\n\n{}\n{}", escaped(help), table(params))
}

/// The sections of a registry; `form` is the form of a spec of an entry without a form of its own.
fn sections<'a, T: 'static>(
    all: impl IntoIterator<Item = &'a &'a Descriptor<T>>,
    form: impl Fn(&str) -> String,
) -> String {
    let section = |entry: &&Descriptor<T>| {
        let form = if entry.form.is_empty() { form(entry.name) } else { entry.form.to_owned() };
        section(&form, entry.help, &entry.params.iter().collect::<Vec<_>>())
    };
    all.into_iter().map(section).collect()
}

/// The sections of the entries of a help text that follow the one of the form `last`.
fn sections_after(help: &str, last: &str) -> String {
    let at = help.find(&format!("{last}\n")).unwrap_or_else(|| panic!("the help does not name {last}"));
    let mut text = String::new();
    let mut params = false;
    for line in help[at..].lines().skip(1).skip_while(|line| line.starts_with("    ")) {
        match line.strip_prefix("    ") {
            None => {
                let _ = write!(text, "\n## `{line}`\n\n");
                params = false;
            }
            Some(help) if !params => {
                let _ = writeln!(text, "{}", escaped(help));
                params = true;
            }
            Some(param) => {
                let _ = writeln!(text, "- {}", escaped(param));
            }
        }
    }
    text
}

/// The strategies that have a parameter with this key and meaning.
fn owners(param: &Param) -> Vec<&'static str> {
    let has = |params: &[Param]| params.iter().any(|it| (it.key, it.help) == (param.key, param.help));
    registry::ALL.iter().filter(|named| has(named.params)).map(|named| named.name).collect()
}

fn strategies() -> String {
    let mut page = String::from(
        "# Strategies\n\n`--balancer` takes a strategy as `NAME` or `NAME:key=value,key=value`. A pipeline `A+B` runs \
         B on the placement of A, in one step. [Which balancer](../which-balancer.md) says when to use which.\n\n\
         ## Shared parameters\n\nSeveral strategies have these parameters.\n\n\
         | key | meaning | strategies |\n|---|---|---|\n",
    );
    let mut known: Vec<&Param> = Vec::new();
    for param in registry::ALL.iter().flat_map(|named| named.params) {
        let is_new = known.iter().all(|it| (it.key, it.help) != (param.key, param.help));
        if is_new && owners(param).len() > 1 {
            known.push(param);
            let names: Vec<String> = owners(param).iter().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(page, "| `{}` | {} | {} |", param.key, cell(param.help), names.join(", "));
        }
    }
    for named in registry::ALL {
        let (shared, own): (Vec<&Param>, Vec<&Param>) =
            named.params.iter().partition(|param| owners(param).len() > 1);
        page += &section(named.name, named.help, &own);
        if !shared.is_empty() {
            let defaults: Vec<String> =
                shared.iter().map(|param| format!("`{}={}`", param.key, param.default)).collect();
            let _ = writeln!(page, "\nShared parameters and their defaults: {}.", defaults.join(", "));
        }
        if named.item.needs_communication {
            page += "\nReads communication.\n";
        }
        for (alias, _) in registry::ALIASES.iter().filter(|(_, name)| *name == named.name) {
            let _ = writeln!(page, "\nOther name: `{alias}`.");
        }
    }
    page
}

fn machines() -> String {
    let last = topology::ALL.last().expect("there are machines");
    let form = if last.form.is_empty() { last.name } else { last.form };
    format!(
        "# Machines\n\n`--topology` takes one of these forms. `equipoise topology SPEC` shows the distances and links \
         of a machine.\n{}{}",
        sections(topology::ALL, str::to_owned),
        sections_after(&topology::help(), form)
    )
}

fn networks() -> String {
    format!(
        "# Networks\n\n`--network` takes a network as `NAME` or `NAME:key=value,key=value`.\n{}",
        sections(models::ALL, str::to_owned)
    )
}

fn graphs() -> String {
    let last = generate::ALL.last().expect("there are generators");
    let form = if last.form.is_empty() { last.name } else { last.form };
    format!(
        "# Task graphs\n\n`--graph` takes a generator in one of these forms, or a file. The end of the file name \
         selects the format.\n{}{}",
        sections(generate::ALL, str::to_owned),
        sections_after(&workloads::help(), form)
    )
}

fn programs() -> String {
    format!(
        "# Programs\n\n`--program` takes a generator in one of these forms, or a file in the \
         [language of programs](../map-program.md).\n{}",
        sections(program::generate::ALL, |name| format!("{name}:key=value,key=value"))
    )
}

fn costs() -> String {
    let mut page = String::from(
        "# Costs\n\n`evaluate --cost` takes these names, and JSON documents use them. A cost on request appears only \
         if `--cost` names it. `SwapLB:cost=NAME` minimises the costs that searches follow. \
         `hop_bytes_lower_bound` holds for all placements with at most as many objects on each PE as the fullest PE has, so it \
         differs between placements; it is 0 where there is no better bound, as if all objects may be on one PE. The value of \
         `imbalance` in documents is max/avg - 1; tables show max/avg.\n\n\
         | name | meaning | column of `replay` | shown | followed by searches |\n|---|---|---|---|---|\n",
    );
    for cost in catalogue::ALL {
        let shown = match cost.shown {
            Shown::Usually if !cost.applies_to(Subject { bandwidths: false, ..Subject::WHOLE }) => {
                "where bandwidths differ"
            }
            Shown::Usually => "always",
            Shown::OfPrograms => "for programs",
            Shown::OnRequest => "on request",
        };
        let followed = if cost.criterion.is_some() { "yes" } else { "no" };
        let (name, title, column) = (cost.name, cell(cost.title), cost.column.unwrap_or(""));
        let _ = writeln!(page, "| `{name}` | {title} | {column} | {shown} | {followed} |");
    }
    page
}

fn launchers() -> String {
    format!(
        "# Launchers' files\n\n`--launcher FORMAT=FILE` of `equipoise map` writes such a file, \
         `equipoise launcher FORMAT=FILE` reads and checks it.\n{}",
        sections(launcher::ALL, |name| format!("{name}=FILE"))
    )
}

fn exit_codes() -> String {
    let code = |fault: Fault| fault.exit_code();
    format!(
        "# Exit codes\n\nEvery command and every program with the runtime's flags uses these exit codes.\nA panic of a program outside `run` gives Rust's 101.\n\n\
         | code | meaning |\n|---|---|\n\
         | 0 | Success; also if the reader of the output closed the pipe early. |\n\
         | {} | Usage: a flag, a spec or a name is malformed, unknown or inconsistent with others, or a named file \
         does not exist. Another command line is the remedy. |\n\
         | {} | Input: a file has invalid content, values cannot be used, or the disk is full. |\n\
         | {} | Bug: an entry method panicked, a run came to rest without an exit or did not end within --time-limit, \
         a load balancer failed with --lb-strict, or Equipoise made a mistake. |\n",
        code(Fault::Usage),
        code(Fault::Input),
        code(Fault::Bug)
    )
}

#[test]
fn pages_are_those_of_the_registries() {
    let pages = [
        ("strategies", strategies()),
        ("machines", machines()),
        ("networks", networks()),
        ("graphs", graphs()),
        ("programs", programs()),
        ("costs", costs()),
        ("launchers", launchers()),
        ("exit-codes", exit_codes()),
    ];
    for (name, page) in pages {
        let path = Path::new(WORKSPACE).join(format!("docs/src/reference/{name}.md"));
        let expected = format!("{GENERATED}{page}");
        if env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, expected).expect("the page can be written");
        } else {
            let page = fs::read_to_string(&path).unwrap_or_default();
            let remedy = "UPDATE_DOCS=1 cargo test -p equipoise-tests --test all docs::reference";
            assert!(page == expected, "docs/src/reference/{name}.md is out of date; run {remedy}");
        }
    }
}

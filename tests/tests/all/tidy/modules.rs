//! The modules of a crate and of its folders, and the dependencies between them.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, Token};

/// The modules of a folder; for each module the modules of the folder that it uses, with the first place of use.
pub type Dependencies = BTreeMap<String, BTreeMap<String, String>>;

/// A place in the module tree of a crate, as in `["graph", "Graph"]`.
type Place = Vec<String>;

/// The longest chain of imports that is followed, as where `a` imports from `b` what `b` imports from `c`.
const MOST_IMPORTS: usize = 8;

/// The dependencies between the modules (folders and files) of a folder, as in `strategies/src/` for a crate and
/// `strategies/src/cost/` for one of its folders. The file of the folder itself (`lib.rs`, `mod.rs`, `cost.rs`) does
/// not count as a module: it can use its modules, and they can use what it defines. What it imports belongs to the
/// module that defines it. Code that is compiled for tests only does not count.
pub fn dependencies(folder: &str, all: &[Source]) -> Dependencies {
    let sources = sources(folder, all);
    let (_, inside) = folder.split_once("src/").expect("a folder below src/");
    let parent: Place = inside.split_terminator('/').map(String::from).collect();
    let below = |place: &Place| place.strip_prefix(&parent[..]).and_then(<[String]>::first).cloned();
    let mut dependencies: Dependencies =
        sources.iter().filter_map(|(place, _)| Some((below(place)?, BTreeMap::new()))).collect();
    let imports = imports(&sources);
    for (place, source) in &sources {
        let Some(from) = below(place) else { continue };
        for path in paths(&source.tokens).into_iter().filter(|path| !path.in_test) {
            let places = std::iter::successors(path.target(place), |place| imported(place, &imports));
            let mut modules = places.take(MOST_IMPORTS).filter_map(|place| below(&place));
            let to = modules.find(|module| dependencies.contains_key(module));
            if let Some(to) = to.filter(|to| *to != from) {
                let line = format!("{}:{}", source.name, path.line);
                dependencies.entry(from.clone()).or_default().entry(to).or_insert(line);
            }
        }
    }
    dependencies
}

/// The folders with modules below the sources of a crate, as in `strategies/src/cost/`, and the sources themselves.
pub fn folders(crate_sources: &str, all: &[Source]) -> BTreeSet<String> {
    let parents = sources(crate_sources, all).into_iter().flat_map(|(place, _)| {
        (0..place.len()).map(move |length| place[..length].iter().map(|name| format!("{name}/")).collect())
    });
    parents.map(|parent: String| format!("{crate_sources}{parent}")).collect()
}

/// The dependencies that are part of cycles, each as `a -> b (file:line)`.
pub fn cycles(dependencies: &Dependencies) -> Vec<String> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        dependencies.keys().map(|from| (from.as_str(), reached(dependencies, from))).collect();
    let mut found = Vec::new();
    for (from, to) in dependencies {
        for (to, place) in to {
            if reach.get(to.as_str()).is_some_and(|reached| reached.contains(from.as_str())) {
                found.push(format!("{from} -> {to} ({place})"));
            }
        }
    }
    found
}

/// All modules that a module uses, directly or through others.
fn reached<'a>(dependencies: &'a Dependencies, from: &str) -> BTreeSet<&'a str> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for to in dependencies.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                open.push(to);
            }
        }
    }
    reached
}

/// The files of the crate to which a folder belongs, with their places in the module tree.
fn sources<'a>(folder: &str, all: &'a [Source]) -> Vec<(Place, &'a Source)> {
    let (package, _) = folder.split_once("src/").expect("a folder below src/");
    let root = format!("{package}src/");
    let below_root = all.iter().filter_map(|source| Some((source.name.strip_prefix(&root)?, source)));
    let place = |name: &str| {
        let name = name.trim_end_matches(".rs");
        let is_root = ["lib", "main"].contains(&name);
        let modules = name.trim_end_matches("/mod").split('/').map(String::from);
        if is_root { Place::new() } else { modules.collect() }
    };
    below_root.map(|(name, source)| (place(name), source)).collect()
}

/// The names that files import, as places in the module tree, with the places from which they import them.
fn imports(sources: &[(Place, &Source)]) -> BTreeMap<Place, Place> {
    let modules: BTreeSet<&[String]> =
        sources.iter().flat_map(|(place, _)| (1..=place.len()).map(|length| &place[..length])).collect();
    let mut imports = BTreeMap::new();
    for (place, source) in sources {
        let is_import = |token: &Token| token.text == "use" && !token.in_test && token.inline_modules == 0;
        for (at, _) in source.tokens.iter().enumerate().filter(|(_, token)| is_import(token)) {
            let mut paths = Vec::new();
            branches(&source.tokens, at + 1, &mut Vec::new(), &mut paths);
            for path in paths {
                let own = [&place[..], &path.segments[..1]].concat();
                let of_child = || [&place[..], &path.segments[..]].concat();
                let from = if modules.contains(&own[..]) { Some(of_child()) } else { path.target(place) };
                let name = [&place[..], &path.segments[path.segments.len() - 1..]].concat();
                // A module and an item in it may have the same name.
                if let Some(from) = from.filter(|_| !modules.contains(&name[..])) {
                    imports.insert(name, from);
                }
            }
        }
    }
    imports
}

/// The place from which a place is imported, if it or a place around it is.
fn imported(place: &Place, imports: &BTreeMap<Place, Place>) -> Option<Place> {
    (1..=place.len()).find_map(|length| {
        let from = imports.get(&place[..length])?;
        Some([&from[..], &place[length..]].concat())
    })
}

/// A path in the code, as in `crate::graph::Graph`.
struct Path {
    segments: Vec<String>,
    line: usize,
    in_test: bool,
    inline_modules: usize,
}

impl Path {
    /// The place to which it leads from the file of a module, if it leaves the inline modules of this file and begins
    /// with `crate`, `self` or `super`.
    fn target(&self, module: &Place) -> Option<Place> {
        let ups = self.segments.iter().take_while(|&segment| segment == "super").count();
        let (kept, starts) = match self.segments[0].as_str() {
            "crate" => (0, 1),
            "self" => (module.len() + self.inline_modules, 1),
            "super" => ((module.len() + self.inline_modules).checked_sub(ups)?, ups),
            _ => return None,
        };
        Some([module.get(..kept)?, &self.segments[starts..]].concat())
    }
}

/// The paths that begin with `crate` or `super`.
fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut paths = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let goes_on = at > 1 && tokens[at - 1].text == ":" && tokens[at - 2].text == ":";
        if ["crate", "super"].contains(&token.text.as_str()) && !goes_on {
            branches(tokens, at, &mut Vec::new(), &mut paths);
        }
    }
    paths
}

/// The paths that begin at a token, prefixed by `before`: one path, or one per name in its braces. Returns the index of
/// the next token.
fn branches(tokens: &[Token], mut at: usize, before: &mut Vec<String>, paths: &mut Vec<Path>) -> usize {
    let (start, length) = (at, before.len());
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    loop {
        if is(at, "{") {
            at += 1;
            while at < tokens.len() && !is(at, "}") {
                at = branches(tokens, at, before, paths);
                // The alias in `a as b`, and the comma.
                while at < tokens.len() && !is(at, "}") && !is(at, ",") {
                    at += 1;
                }
                at += usize::from(is(at, ","));
            }
            before.truncate(length);
            return at + 1;
        }
        let Some(token) = tokens.get(at) else { break };
        before.push(token.text.clone());
        at += 1;
        if !(is(at, ":") && is(at + 1, ":")) {
            break;
        }
        at += 2;
    }
    let (token, segments) = (&tokens[start], before.clone());
    if !segments.is_empty() {
        let Token { line, in_test, inline_modules, .. } = *token;
        paths.push(Path { segments, line, in_test, inline_modules });
    }
    before.truncate(length);
    at
}

#[test]
fn finds_a_cycle_of_modules_with_its_dependencies() {
    let source = |name: &str, text: &str| Source::new(&format!("crate/src/{name}"), text);
    let all = [
        source("lib.rs", "pub mod a; mod b; mod c; mod d; pub use c::{inner::Thing, other as Other};"),
        source("a.rs", "use crate::b::{f, g};\nmod deep { fn h() { super::super::d::i(super::b()); } }"),
        source("b.rs", "fn f(x: crate::Thing) {}"),
        source("c/mod.rs", "use super::a;"),
        source("c/inner.rs", "use super::super::d; use super::a;"),
        source("d.rs", "#[cfg(test)] mod tests { use crate::a; }\nfn j() { super::d::k(); }"),
    ];
    let found = dependencies("crate/src/", &all);
    let names = |from: &str| found[from].keys().cloned().collect::<Vec<_>>();
    assert_eq!(["a", "b", "c", "d"].map(names), [vec!["b", "d"], vec!["c"], vec!["a", "d"], vec![]]);
    let expected =
        ["a -> b (crate/src/a.rs:1)", "b -> c (crate/src/b.rs:1)", "c -> a (crate/src/c/mod.rs:1)"];
    assert_eq!(cycles(&found), expected);
    assert!(cycles(&dependencies("crate/src/", &all[2..])).is_empty(), "without a there is no cycle");
}

#[test]
fn finds_a_cycle_of_the_files_of_a_folder() {
    let source = |name: &str, text: &str| Source::new(&format!("crate/src/{name}"), text);
    let all = [
        source("lib.rs", "mod a; mod z;"),
        source("z.rs", "use crate::a::b;"),
        source("a.rs", "mod b; mod c; mod d; mod e; pub use c::Thing; use d::{deep, Deep}; pub struct Own;"),
        source("a/b.rs", "use super::{Own, Thing};"),
        source("a/c.rs", "use crate::a::d;"),
        source("a/d/mod.rs", "mod deep; pub use deep::Deep;"),
        source("a/d/deep.rs", "use super::super::b; use super::Deep;"),
        source("a/e.rs", "use super::Deep; #[cfg(test)] mod tests { use super::super::b; }"),
    ];
    assert_eq!(Vec::from_iter(folders("crate/src/", &all)), ["crate/src/", "crate/src/a/", "crate/src/a/d/"]);
    let found = dependencies("crate/src/a/", &all);
    let names = |from: &str| found[from].keys().cloned().collect::<Vec<_>>();
    assert_eq!(["b", "c", "d", "e"].map(names), [["c"], ["d"], ["b"], ["d"]]);
    let expected =
        ["b -> c (crate/src/a/b.rs:1)", "c -> d (crate/src/a/c.rs:1)", "d -> b (crate/src/a/d/deep.rs:1)"];
    assert_eq!(cycles(&found), expected);
    for folder in ["crate/src/", "crate/src/a/d/"] {
        assert!(cycles(&dependencies(folder, &all)).is_empty(), "{folder}");
    }
}

//! The modules of a crate (its folders and files below `src/`, except the root) and the dependencies between them.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Source, Token};

/// The modules of a crate; for each module the modules it uses, with the first place of use.
pub type Dependencies = BTreeMap<String, BTreeMap<String, String>>;

/// The dependencies between the modules of the crate with sources below `folder`, as in `strategies/src/`. Code that is
/// compiled for tests only does not count.
pub fn dependencies(folder: &str, all: &[Source]) -> Dependencies {
    let inside = |source: &&Source| source.name.starts_with(folder);
    let sources: Vec<&Source> = all.iter().filter(inside).collect();
    let mut dependencies: Dependencies =
        sources.iter().filter_map(|it| Some((module(folder, it)?, BTreeMap::new()))).collect();
    let at_root = names_at_root(folder, &sources, &dependencies);
    for source in &sources {
        let Some(from) = module(folder, source) else { continue };
        let depth = depth(folder, source);
        for path in paths(&source.tokens).into_iter().filter(|path| !path.in_test) {
            let Some(first) = path.module_below_root(depth) else { continue };
            let to = if dependencies.contains_key(first) {
                Some(first)
            } else {
                at_root.get(first).map(String::as_str)
            };
            if let Some(to) = to.filter(|&to| to != from).map(String::from) {
                let place = format!("{}:{}", source.name, path.line);
                dependencies.entry(from.clone()).or_default().entry(to).or_insert(place);
            }
        }
    }
    dependencies
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

/// The module of a file; none for the root of the crate.
fn module(folder: &str, source: &Source) -> Option<String> {
    let name = source.name[folder.len()..].trim_end_matches(".rs");
    let first = name.split('/').next().unwrap_or(name);
    (!["lib", "main"].contains(&first)).then(|| first.into())
}

/// The depth of a file in the module tree.
fn depth(folder: &str, source: &Source) -> usize {
    let name = source.name[folder.len()..].trim_end_matches(".rs");
    name.trim_end_matches("/mod").split('/').count()
}

/// The names that the root of the crate imports from its modules, with the module.
fn names_at_root(folder: &str, sources: &[&Source], dependencies: &Dependencies) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for source in sources.iter().filter(|source| module(folder, source).is_none()) {
        for (at, _) in source.tokens.iter().enumerate().filter(|(_, token)| token.text == "use") {
            let mut paths = Vec::new();
            branches(&source.tokens, at + 1, &mut Vec::new(), &mut paths);
            for path in paths {
                let start = usize::from(["crate", "self"].contains(&path.segments[0].as_str()));
                let module = path.segments.get(start).filter(|&module| dependencies.contains_key(module));
                if let (Some(module), Some(name)) = (module, path.segments.last()) {
                    names.insert(name.clone(), module.clone());
                }
            }
        }
    }
    names
}

/// A path in the code, as in `crate::graph::Graph`.
struct Path {
    segments: Vec<String>,
    line: usize,
    in_test: bool,
    inline_modules: usize,
}

impl Path {
    /// Its first segment below the root of the crate, if the path leads there from a module at this depth.
    fn module_below_root(&self, depth: usize) -> Option<&str> {
        let ups = self.segments.iter().take_while(|&segment| segment == "super").count();
        let starts = match self.segments[0].as_str() {
            "crate" => 1,
            "super" if ups == depth + self.inline_modules => ups,
            _ => return None,
        };
        self.segments.get(starts).map(String::as_str)
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

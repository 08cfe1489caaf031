//! Rust files as tokens, so that comments and texts are not taken for code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use equipoise_tests::WORKSPACE;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A Rust file of the workspace.
pub struct Source {
    /// From the top of the workspace, as in `strategies/src/lib.rs`.
    pub name: String,
    /// Its tokens without comments and documentation.
    pub tokens: Vec<Token>,
    /// The modules it declares for tests only.
    test_modules: Vec<String>,
}

/// A word, a mark, a bracket or a literal.
pub struct Token {
    /// How it is written.
    pub text: String,
    /// Where, from 1.
    pub line: usize,
    /// Whether it is compiled for tests only.
    pub in_test: bool,
}

impl Source {
    /// The file of that name with that text.
    pub fn new(name: &str, text: &str) -> Source {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut source = Source { name: name.into(), tokens: Vec::new(), test_modules: Vec::new() };
        // Cargo compiles what is in a folder `tests` for tests only.
        let in_test = name.contains("/tests/");
        source.walk(stream, in_test);
        source
    }

    /// Every Rust file of the workspace but the mistakes that the compiler is shown on purpose.
    pub fn all() -> Vec<Source> {
        let names = names(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let read = |name: String| {
            let text = fs::read_to_string(Path::new(WORKSPACE).join(&name));
            Source::new(&name, &text.unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        let mut all: Vec<Source> =
            names.into_iter().filter(|name| !name.starts_with("tests/ui/")).map(read).collect();
        let for_tests: BTreeSet<String> = all.iter().flat_map(Source::test_files).collect();
        for source in all.iter_mut().filter(|source| for_tests.contains(&source.name)) {
            source.tokens.iter_mut().for_each(|token| token.in_test = true);
        }
        all
    }

    /// The lines where these tokens follow each other; those compiled for tests only if `with_tests`.
    pub fn lines_of(&self, code: &str, with_tests: bool) -> Vec<usize> {
        let wanted = Source::new("idiom", code).tokens;
        let same = |found: &[Token]| {
            found.iter().zip(&wanted).all(|(a, b)| a.text == b.text) && (with_tests || !found[0].in_test)
        };
        self.tokens.windows(wanted.len()).filter(|found| same(found)).map(|found| found[0].line).collect()
    }

    /// Where the modules may lie that it declares for tests only.
    fn test_files(&self) -> Vec<String> {
        let path = Path::new(&self.name);
        let folder = path.parent().unwrap_or(Path::new(""));
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let folder = match stem {
            "mod" | "lib" | "main" => folder.to_path_buf(),
            stem => folder.join(stem),
        };
        let files = |module: &String| [format!("{module}.rs"), format!("{module}/mod.rs")];
        let names = self.test_modules.iter().flat_map(files);
        names.map(|name| folder.join(name).to_string_lossy().into_owned()).collect()
    }

    fn walk(&mut self, stream: TokenStream, in_test: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        // The item behind `#[cfg(test)]` or `#[test]` goes on to its braces or its semicolon.
        let mut item_in_test = false;
        let mut at = 0;
        while at < trees.len() {
            if let Some((attribute, after)) = attribute(&trees, at) {
                let of_cfg = attribute.starts_with("cfg (") && !attribute.contains("not (test)");
                if attribute == "test" || of_cfg && attribute.contains("test") {
                    item_in_test = true;
                }
                if attribute.starts_with("doc =") {
                    at = after;
                    continue;
                }
            }
            let for_test = in_test || item_in_test;
            match &trees[at] {
                TokenTree::Group(group) => {
                    let [open, close] = match group.delimiter() {
                        Delimiter::Parenthesis => ["(", ")"],
                        Delimiter::Brace => ["{", "}"],
                        Delimiter::Bracket => ["[", "]"],
                        Delimiter::None => ["", ""],
                    };
                    self.push(open, group.span_open().start().line, for_test);
                    self.walk(group.stream(), for_test);
                    self.push(close, group.span_close().start().line, for_test);
                    if group.delimiter() == Delimiter::Brace {
                        item_in_test = false;
                    }
                }
                tree => {
                    let text = tree.to_string();
                    if text == "mod" && item_in_test {
                        self.test_modules.extend(trees.get(at + 1).map(ToString::to_string));
                    }
                    self.push(&text, tree.span().start().line, for_test);
                    if text == ";" {
                        item_in_test = false;
                    }
                }
            }
            at += 1;
        }
    }

    fn push(&mut self, text: &str, line: usize, in_test: bool) {
        self.tokens.push(Token { text: text.into(), line, in_test });
    }
}

/// The attribute that begins at a token, and where the next token is.
fn attribute(trees: &[TokenTree], at: usize) -> Option<(String, usize)> {
    let is = |at: usize, mark: char| matches!(trees.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    let group = if is(at + 1, '!') { at + 2 } else { at + 1 };
    match trees.get(group) {
        Some(TokenTree::Group(inside)) if is(at, '#') && inside.delimiter() == Delimiter::Bracket => {
            Some((inside.stream().to_string(), group + 1))
        }
        _ => None,
    }
}

/// The names of the files of the workspace, from its top, that `wanted` takes; what Cargo makes and what
/// is hidden is left out.
pub fn names(wanted: impl Fn(&Path) -> bool) -> Vec<String> {
    let top = Path::new(WORKSPACE);
    let (mut names, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(top.join(&folder)).unwrap_or_else(|error| panic!("{error}"));
        for entry in entries.flatten() {
            let name = folder.join(entry.file_name());
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if entry.path().join("CACHEDIR.TAG").exists() {
                continue;
            }
            if entry.path().is_dir() {
                folders.push(name);
            } else if wanted(&name) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    names
}

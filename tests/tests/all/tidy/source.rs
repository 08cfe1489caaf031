//! Rust files as tokens, so that comments and string literals are not mistaken for code.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use equipoise_tests::WORKSPACE;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A Rust file of the workspace.
pub struct Source {
    /// From the top of the workspace, as in `strategies/src/lib.rs`.
    pub name: String,
    /// Its tokens without comments and documentation.
    pub tokens: Vec<Token>,
    /// Its functions with a body, inner ones too.
    pub functions: Vec<Function>,
    /// The modules it declares for tests only.
    test_modules: Vec<String>,
    /// Number of inline modules around the current position of [`Self::walk`].
    inline_modules: usize,
}

/// An identifier, a punctuation mark, a bracket or a literal.
pub struct Token {
    /// Its text in the source.
    pub text: String,
    /// Its line, from 1.
    pub line: usize,
    /// Whether it is compiled for tests only.
    pub in_test: bool,
    /// Number of inline modules around it.
    pub inline_modules: usize,
}

/// A function with a body.
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its keyword `fn`, from 1.
    pub line: usize,
    /// Number of lines from there to the end of its body.
    pub lines: usize,
}

impl Source {
    /// The tokens of a file with this name and text.
    pub fn new(name: &str, text: &str) -> Source {
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut source = Source {
            name: name.into(),
            tokens: Vec::new(),
            functions: Vec::new(),
            test_modules: Vec::new(),
            inline_modules: 0,
        };
        // Cargo compiles files in a folder `tests` for tests only.
        let in_test = name.contains("/tests/");
        source.walk(stream, in_test);
        source
    }

    /// Every Rust file of the workspace, except the files with intentional compile errors.
    pub fn all() -> &'static [Source] {
        static ALL: LazyLock<Vec<Source>> = LazyLock::new(Source::read_all);
        &ALL
    }

    fn read_all() -> Vec<Source> {
        let names = names(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let read = |name: String| {
            let text = fs::read_to_string(Path::new(WORKSPACE).join(&name));
            Source::new(&name, &text.unwrap_or_else(|error| panic!("{name}: {error}")))
        };
        let mut all: Vec<Source> =
            names.into_iter().filter(|name| !name.starts_with("runtime/tests/ui/")).map(read).collect();
        let for_tests: BTreeSet<String> = all.iter().flat_map(Source::test_files).collect();
        for source in all.iter_mut().filter(|source| for_tests.contains(&source.name)) {
            source.tokens.iter_mut().for_each(|token| token.in_test = true);
        }
        all
    }

    /// The lines where the tokens of `code` occur in sequence; those in tests only if `with_tests`.
    pub fn lines_of(&self, code: &str, with_tests: bool) -> Vec<usize> {
        let places = self.places_of(code).into_iter().map(|at| &self.tokens[at]);
        places.filter(|token| with_tests || !token.in_test).map(|token| token.line).collect()
    }

    /// The indices where the tokens of `code` occur in sequence.
    fn places_of(&self, code: &str) -> Vec<usize> {
        let wanted = Source::new("idiom", code).tokens;
        let is_same = |at: &usize| {
            let found = self.tokens[*at..].iter().zip(&wanted);
            found.take_while(|(a, b)| a.text == b.text).count() == wanted.len()
        };
        (0..self.tokens.len()).filter(is_same).collect()
    }

    /// The types that derive `thiserror::Error`, and those in the place of the error of a `Result`.
    pub fn errors(&self) -> BTreeSet<&str> {
        let derived = self.places_of("thiserror::Error").into_iter().filter_map(|at| {
            let item =
                self.tokens[at..].iter().position(|it| ["enum", "struct"].contains(&it.text.as_str()))?;
            self.tokens.get(at + item + 1)
        });
        let returned = self.places_of("Result <").into_iter().filter_map(|at| self.last_argument(at + 2));
        let is_name = |token: &&Token| !token.in_test && token.text.starts_with(char::is_alphabetic);
        derived.chain(returned).filter(is_name).map(|token| token.text.as_str()).collect()
    }

    /// The name of the last of several generic arguments, the first of which begins at a token.
    fn last_argument(&self, first: usize) -> Option<&Token> {
        let (mut depth, mut last) = (1, None);
        for at in first..self.tokens.len() {
            match self.tokens[at].text.as_str() {
                "<" | "(" | "[" => depth += 1,
                ">" if self.tokens[at - 1].text == "-" => {}
                ">" | ")" | "]" => depth -= 1,
                "," if depth == 1 => last = Some(at + 1),
                _ => {}
            }
            if depth == 0 {
                let path = &self.tokens[last?..at];
                return path.iter().take_while(|token| token.text != "<").last();
            }
        }
        None
    }

    /// The names that follow `code` outside of tests.
    pub fn names_after(&self, code: &str) -> BTreeSet<&str> {
        let length = Source::new("idiom", code).tokens.len();
        let names = self.places_of(code).into_iter().filter_map(|at| self.tokens.get(at + length));
        names.filter(|token| !token.in_test).map(|token| token.text.as_str()).collect()
    }

    /// The structs and enums of this file that are not private, outside of tests.
    pub fn types_for_others(&self) -> BTreeSet<&str> {
        let visible = ["pub", "pub(crate)", "pub(super)"];
        let code = visible.iter().flat_map(|it| ["struct", "enum"].map(|kind| format!("{it} {kind}")));
        code.flat_map(|code| self.names_after(&code)).collect()
    }

    /// The possible file names of the modules that this file declares for tests only.
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
        // The item after `#[cfg(test)]` or `#[test]` ends with its braces or its semicolon.
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
                    // `mod name { .. }`
                    let is_module = at >= 2 && trees[at - 2].to_string() == "mod" && open == "{";
                    self.push(open, group.span_open().start().line, for_test);
                    self.inline_modules += usize::from(is_module);
                    self.walk(group.stream(), for_test);
                    self.inline_modules -= usize::from(is_module);
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
                    self.functions.extend(function(&trees, at));
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
        self.tokens.push(Token { text: text.into(), line, in_test, inline_modules: self.inline_modules });
    }
}

/// The function with a body that begins at a token, if there is one.
fn function(trees: &[TokenTree], at: usize) -> Option<Function> {
    let (TokenTree::Ident(keyword), TokenTree::Ident(name)) = (&trees[at], trees.get(at + 1)?) else {
        return None;
    };
    if keyword != "fn" {
        return None;
    }
    let ends = |tree: &&TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(punct) => punct.as_char() == ';',
        _ => false,
    };
    let TokenTree::Group(body) = trees[at..].iter().find(ends)? else { return None };
    let line = keyword.span().start().line;
    let lines = body.span_close().end().line + 1 - line;
    Some(Function { name: name.to_string(), line, lines })
}

/// The attribute that begins at a token, and the index of the next token.
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

/// The paths, relative to the workspace, of the files that satisfy `wanted`, without hidden files and Cargo's output.
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

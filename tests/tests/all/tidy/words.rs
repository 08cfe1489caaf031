//! Words that a reader has to read twice, and what to write instead.

use std::fs;
use std::path::Path;

use equipoise_tests::WORKSPACE;

use super::none;
use super::source::names;

/// Words and phrases, in lower case, and their replacements. An entry matches whole words, across line ends too.
const WORDS: &[(&str, &str)] = &[
    ("dice", "rng, or random number generator"),
    ("settle", "the specific verb: place, flush, register, relax"),
    ("settled", "the specific verb: placed, flushed, registered"),
    ("settles", "the specific verb: places, flushes, registers"),
    ("whoever", "the element, the PE, the sender, the caller"),
    ("nobody", "no element, no PE, none"),
    ("somebody", "an element, a PE, a user"),
    ("so many", "N, or the number itself"),
    ("how-manieth", "n-th"),
    ("for ever", "forever"),
    ("obey", "apply"),
    ("obeys", "applies"),
    ("obeyed", "applied"),
    ("is told", "receives, is notified, reports"),
    ("are told", "receive, are notified, report"),
    ("hears", "receives"),
    ("slip of the hand", "values above N are rejected"),
    ("by what part", "relative excess"),
];

/// Lines that may hold a word: the file, and what the line contains.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// The text as a reader sees it: without the marks of comments, and every run of spaces and line ends as one space;
/// with the line of every byte.
fn flowing(text: &str) -> (String, Vec<usize>) {
    let (mut flowing, mut lines) = (String::new(), Vec::new());
    for (line, content) in text.lines().enumerate() {
        let content = content.trim().trim_start_matches(['/', '!', '#', '>']).trim_end_matches('\\');
        for word in content.split_whitespace() {
            flowing.push_str(&word.to_lowercase());
            flowing.push(' ');
            lines.resize(flowing.len(), line + 1);
        }
    }
    (flowing, lines)
}

/// The lines of `text` where `word` begins.
fn lines_with(text: &(String, Vec<usize>), word: &str) -> Vec<usize> {
    let (flowing, lines) = text;
    let is_inside = |letter: Option<char>| letter.is_some_and(|it| it.is_alphanumeric() || it == '_');
    flowing
        .match_indices(word)
        .filter(|(at, _)| {
            !is_inside(flowing[..*at].chars().next_back())
                && !is_inside(flowing[at + word.len()..].chars().next())
        })
        .map(|(at, _)| lines[at])
        .collect()
}

#[test]
fn texts_use_plain_words() {
    let mut violations = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    let is_text = |path: &Path| {
        path.extension().is_some_and(|it| it == "rs" || it == "md" || it == "toml" || it == "stderr")
    };
    for name in names(is_text).into_iter().filter(|name| !name.ends_with("tidy/words.rs")) {
        let text = fs::read_to_string(Path::new(WORKSPACE).join(&name)).expect("a file of the workspace");
        let reading = flowing(&text);
        for (word, instead) in WORDS {
            for line in lines_with(&reading, word) {
                let content = text.lines().nth(line - 1).unwrap_or_default();
                let is_excepted = |(file, part): &&(&str, &str)| *file == name && content.contains(part);
                match EXCEPTIONS.iter().position(|exception| is_excepted(&exception)) {
                    Some(at) => used[at] = true,
                    None => violations.push(format!("{name}:{line}: `{word}`; instead: {instead}")),
                }
            }
        }
    }
    for ((file, part), _) in EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used) {
        violations.push(format!("no line of {file} with `{part}` needs an exception; delete it"));
    }
    none(&violations);
}

#[test]
fn words_are_found_across_lines_and_not_inside_words() {
    let text = flowing("/// The rng is\n/// told. Diced.\nlet dice_count = 1; // Dice!");
    assert_eq!(lines_with(&text, "is told"), [1]);
    assert_eq!(lines_with(&text, "dice"), [3]);
}

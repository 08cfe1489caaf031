//! Synthetic descriptions of hwloc: the numbers of objects within each object of the previous level, as in `pack:2 l3:1
//! core:4 pu:2`.
//!
//! A level is `TYPE:NUMBER` or a number; the last level is hardware threads. Attributes in parentheses and memory in
//! square brackets (`[NUMANode(memory=1GB)]`) do not affect the tree and are skipped. Types are case-insensitive and
//! may be abbreviated.

use super::super::Tree;

/// Types of levels, and whether a type may occur several times.
const TYPES: &[(&str, bool)] = &[
    ("package", false),
    ("socket", false),
    ("die", false),
    ("numanode", false),
    ("node", false),
    ("core", false),
    ("pu", false),
    ("group", true),
];

/// Parses a description.
pub(super) fn read(text: &str) -> Result<Tree, String> {
    let expected = |reason: String| {
        format!(
            "expected a synthetic description such as pack:2 core:4 pu:2, or a file FILE.xml, found \
            `{text}` ({reason})"
        )
    };
    let levels = levels(text).map_err(expected)?;
    // Levels with one object do not separate PEs.
    let arities: Vec<usize> = levels.iter().copied().filter(|&arity| arity > 1).collect();
    let arities = if arities.is_empty() { vec![1] } else { arities };
    let distances = (1..=arities.len() as u32).rev().map(|level| 2 * level);
    Tree::new(&arities.iter().copied().zip(distances).collect::<Vec<_>>()).map_err(expected)
}

/// The numbers of objects per level.
fn levels(text: &str) -> Result<Vec<usize>, String> {
    let (mut levels, mut kinds, mut rest) = (Vec::new(), Vec::<&str>::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        if first == '(' || first == '[' {
            rest = after_bracket(rest)?.trim_start();
            continue;
        }
        let end =
            rest.find(|letter: char| letter.is_whitespace() || "([".contains(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        let (kind, number) =
            word.rsplit_once(':').map_or((None, word), |(kind, number)| (Some(kind), number));
        let kind = match kind {
            Some(kind) => known(kind).ok_or_else(|| {
                format!("there is no type `{kind}`; known are package, die, numanode, group, l1 to l5, core and pu")
            })?,
            None => "",
        };
        let number = number.parse().ok().filter(|&number| number > 0);
        levels.push(number.ok_or_else(|| format!("`{word}` needs a number of at least 1"))?);
        kinds.push(kind);
    }
    match kinds.split_last() {
        None => return Err("the description has no level".into()),
        Some((&last, before)) => {
            if !["", "pu"].contains(&last) {
                return Err(format!("the last level must be pu (hardware threads), not {last}"));
            }
            if before.contains(&"pu") {
                return Err("only the last level may be pu (hardware threads)".into());
            }
        }
    }
    for (at, kind) in kinds.iter().enumerate() {
        let is_single = TYPES.iter().any(|known| known.0 == *kind && !known.1);
        if is_single && kinds[..at].contains(kind) {
            return Err(format!("there are two levels of {kind}"));
        }
    }
    Ok(levels)
}

/// The type for a word of at least its first two letters; `cache` for all caches.
fn known(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    if let Some(cache) = word.strip_prefix('l') {
        let rest = cache.strip_prefix(['1', '2', '3', '4', '5'])?;
        let rest = rest.strip_prefix(['d', 'i', 'u']).unwrap_or(rest);
        return "cache".starts_with(rest).then_some("cache");
    }
    // `group0` is a group.
    let letters = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let letters = if letters.starts_with("gr") { letters } else { &word };
    let (name, _) = TYPES.iter().find(|(name, _)| letters.len() >= 2 && name.starts_with(letters))?;
    Some(match *name {
        "socket" => "package",
        "node" => "numanode",
        name => name,
    })
}

/// The text after the bracket at the beginning.
fn after_bracket(text: &str) -> Result<&str, String> {
    let mut depth = 0usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => (),
        }
        if depth == 0 {
            return Ok(&text[at + letter.len_utf8()..]);
        }
    }
    Err("there is a bracket that is not closed".into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::Topology;
    use super::*;

    #[test]
    fn descriptions_are_trees_of_the_levels_that_separate_pes() {
        for (text, expected) in [
            ("pack:2 core:4 pu:1", "tree:2:4/4:2"),
            ("pack:2 l3:1 l2:4 l1:1 core:1 pu:2", "tree:2:4:2/6:4:2"),
            ("pu:1", "tree:1/2"),
            ("2 3 4", "tree:2:3:4/6:4:2"),
            (
                "(memory=4GB) Package:2 [NUMANode(memory=1GB)] L3Cache:2 PU:2(indexes=2*4:1*2)",
                "tree:2:2:2/6:4:2",
            ),
            ("Group0:3 L1dCache:2 pu:2", "tree:3:2:2/6:4:2"),
            ("node:2 so:2 3", "tree:2:2:3/6:4:2"),
        ] {
            assert_eq!(read(text).map(|tree| tree.spec()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_name_the_problem() {
        for (text, expected) in [
            ("pack:two", "found `pack:two` (`pack:two` needs a number of at least 1)"),
            ("  ", "the description has no level"),
            ("pack:2 core:4", "the last level must be pu (hardware threads), not core"),
            ("pu:2 pu:2", "only the last level may be pu (hardware threads)"),
            ("core:2 core:2 pu:1", "there are two levels of core"),
            ("socket:2 package:2 pu:1", "there are two levels of package"),
            ("rack:2 pu:1", "there is no type `rack`"),
            ("pack:2(memory=1 pu:2", "there is a bracket that is not closed"),
            ("core:0 pu:1", "needs a number of at least 1"),
            ("pack:99999 core:99999 pu:1", "sizes multiply to at most"),
        ] {
            let error = read(text).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        }
    }

    proptest! {
        #[test]
        fn no_description_panics(text in r"[pucorel:0-9 ()\[\]]{0,30}") {
            let _ = read(&text);
        }
    }
}

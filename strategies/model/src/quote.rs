//! Text from files and command lines in errors, warnings and tables.
//!
//! Such text may be of any length, and it may hold control characters, with which a terminal changes its title or hides
//! lines. [`quoted`] makes a single text harmless. [`sentence`] does the same for all texts of an error; errors use it for
//! what readers report, and commands use [`printable`] for everything that they print, so that no place can forget it.

use std::path::Path;

/// The largest number of characters of a text that is echoed.
pub const MAX_CHARACTERS: usize = 200;

/// The largest number of characters of a line of an error.
const MAX_LINE_CHARACTERS: usize = 1500;

/// What replaces the middle of a text that is too long.
const GAP: &str = " .. ";

/// The text without control characters, which are written as in `\u{1b}`, and with at most [`MAX_CHARACTERS`]
/// characters: the middle of a longer text is left out.
pub fn quoted(text: &str) -> String {
    shortened(&escaped(text), MAX_CHARACTERS)
}

/// A path for an error, as in [`quoted`].
pub fn shown(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// An error on a single line: without control characters, and with at most [`MAX_CHARACTERS`] characters of every text in
/// quotes and of every word.
pub fn sentence(text: &str) -> String {
    let text = escaped(text);
    let (mut line, mut rest) = (String::new(), text.as_str());
    while let Some(first) = rest.chars().next() {
        let is_quote = |letter| letter == '`' || letter == '"';
        let after = &rest[first.len_utf8()..];
        let end = match first {
            // A quote without its partner is an ordinary character.
            quote if is_quote(quote) => after.find(quote).map_or(1, |end| end + 2),
            ' ' => 1,
            _ => rest.find(|letter| letter == ' ' || is_quote(letter)).unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at(end);
        let inner = if end > 1 && is_quote(first) { &part[1..end - 1] } else { part };
        match inner.len() == part.len() {
            true => line += &shortened(part, MAX_CHARACTERS),
            false => line.extend([&part[..1], &shortened(inner, MAX_CHARACTERS), &part[..1]]),
        }
        rest = after;
    }
    shortened(&line, MAX_LINE_CHARACTERS)
}

/// An error of several lines: each of them as a [`sentence`].
pub fn sentences(text: &str) -> String {
    text.split('\n').map(sentence).collect::<Vec<_>>().join("\n")
}

/// Lines for a terminal: without control characters except the ends of lines.
pub fn printable(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// The text with escaped control characters, on a single line.
pub fn escaped(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_control(letter) {
            true => result.extend(letter.escape_default()),
            false => result.push(letter),
        }
    }
    result
}

/// Whether a terminal may interpret a character instead of showing it: control characters, and the format characters that
/// change the direction of text or have no width.
fn is_control(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text, or its beginning and end if it has more than `most` characters.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_string();
    }
    let tail = most / 3;
    let head = most - tail - GAP.len();
    text.chars().take(head).chain(GAP.chars()).chain(text.chars().skip(length - tail)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quoted("\u{1b}[31mRED\u{7}"), r"\u{1b}[31mRED\u{7}");
        assert_eq!(quoted("a\nb\tc\u{9b}\u{202e}\0"), r"a\nb\tc\u{9b}\u{202e}\u{0}");
        assert_eq!(quoted("Grüße, `x` \"y\" \\"), "Grüße, `x` \"y\" \\");
        assert_eq!(sentence("a\nb"), r"a\nb");
        assert_eq!(
            (printable("a\n\u{1b}b\n"), sentences("a\n\rb\n")),
            ("a\n\\u{1b}b\n".into(), "a\n\\rb\n".into())
        );
    }

    #[test]
    fn long_texts_lose_their_middle() {
        let long = "a".repeat(5_000_000) + "z";
        for text in [quoted(&long), quoted(&"\u{1b}".repeat(5_000_000)), quoted(&long[..201])] {
            assert_eq!(text.chars().count(), MAX_CHARACTERS, "{text}");
        }
        assert!(quoted(&long).starts_with("aaa") && quoted(&long).ends_with("aaz"));
        assert_eq!(quoted(&long[..200]), long[..200]);
    }

    #[test]
    fn sentences_keep_everything_but_long_quotes_and_words() {
        let known = "known are ".to_string() + &"torus:8x8, ".repeat(90);
        let plain = format!("file:3: expected a number, found `x \" y`; {known}");
        assert_eq!(sentence(&plain), plain);
        let long = "blanks and ".repeat(1000);
        for echo in [format!("`{long}`"), format!("{long:?}"), long.replace(' ', "_")] {
            let text = format!("file:3: expected a number, found {echo}; remove it");
            let short = sentence(&text);
            assert!(
                short.ends_with("; remove it") && short.starts_with("file:3: expected a number"),
                "{short}"
            );
            assert!((200..300).contains(&short.chars().count()), "{short}");
            assert_eq!(sentence(&short), short);
        }
        assert_eq!(sentence(&long).chars().count(), MAX_LINE_CHARACTERS);
        assert_eq!(sentence("a lone ` is kept, as is \" here"), "a lone ` is kept, as is \" here");
    }
}

//! Damaged inputs: golden inputs with seeded random changes that keep much of their structure.

/// A random number generator (S. Vigna's splitmix64).
pub struct Rng(pub u64);

impl Rng {
    /// A random number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
        ((u128::from(x) * limit as u128) >> 64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// Numbers at the limits of types and formats.
const NUMBERS: &[&str] = &[
    "0",
    "-1",
    "1",
    "2",
    "255",
    "65536",
    "1048576",
    "16777216",
    "16777217",
    "67108865",
    "2147483648",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "1e30",
    "1e300",
    "1e309",
    "-1e309",
    "1e-320",
    "0.5",
    "-0.0",
    "nan",
    "inf",
    "+7",
    "007",
    "0x10",
    "1_000",
    "1e",
    "٣",
];

/// Texts with a meaning in some format, or for a terminal.
const TEXTS: &[&str] = &[
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"",
    "'",
    "`",
    ",",
    ";",
    ":",
    "=",
    "#",
    "%",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "-",
    "\0",
    "\n",
    "\r\n",
    "\t",
    " ",
    "\u{1b}[31mRED\u{7}",
    "\u{9b}2J",
    "\u{feff}",
    "\u{202e}",
    "é",
    "name",
    "O",
    "I",
    "..",
    "/dev/null",
    "%p",
    "\\u001b]0;x\\u0007",
    "<!--",
    "&amp;",
    "]]>",
    "---",
    "*a",
    "&a",
    "!!x",
];

/// A damaged input: one of `golden` with one to four random changes.
pub fn mutate(golden: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut input = golden[rng.below(golden.len())].clone();
    for _ in 0..=rng.below(4) {
        change(&mut input, golden, rng);
    }
    input
}

fn change(input: &mut Vec<u8>, golden: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.below(input.len() + 1);
    match rng.below(14) {
        0 | 1 if at < input.len() => input[at] ^= 1 << rng.below(8),
        2 if at < input.len() => input[at] = [0, 0xff, 0x7f, 0x80, b'\n', b'"'][rng.below(6)],
        3 => input.truncate(at),
        4 => {
            let other = &golden[rng.below(golden.len())];
            let from = rng.below(other.len() + 1);
            let upto = from + rng.below(other.len() - from + 1);
            input.splice(at..at, other[from..upto].iter().copied());
        }
        5 => change_lines(input, rng),
        6 | 7 => replace_token(input, rng, |token| token[0].is_ascii_digit(), NUMBERS),
        8 => replace_token(input, rng, |_| true, NUMBERS),
        9 => replace_token(input, rng, |_| true, TEXTS),
        10 => swap_tokens(input, rng),
        11 => {
            let text = rng.of(TEXTS).repeat(1 + rng.below(3));
            input.splice(at..at, text.bytes());
        }
        12 => {
            // A long text of any kind.
            let text = rng.of(TEXTS).repeat(1 + rng.below(4000));
            input.splice(at..at, text.bytes());
        }
        _ => {
            let length = rng.below(9).min(input.len() - at);
            input.drain(at..at + length);
        }
    }
}

/// Duplicates, removes or swaps lines.
fn change_lines(input: &mut Vec<u8>, rng: &mut Rng) {
    let mut lines: Vec<&[u8]> = input.split_inclusive(|&byte| byte == b'\n').collect();
    if lines.is_empty() {
        return;
    }
    let (one, other) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(3) {
        0 => lines.insert(other, lines[one]),
        1 => _ = lines.remove(one),
        _ => lines.swap(one, other),
    }
    *input = lines.concat();
}

/// The ranges of words, numbers, texts in quotes, and single other characters; JSON keys and values are tokens.
fn tokens(input: &[u8]) -> Vec<std::ops::Range<usize>> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-._".contains(byte);
    let (mut all, mut at) = (Vec::new(), 0);
    while at < input.len() {
        let length = match input[at] {
            b'"' => input[at + 1..].iter().position(|&byte| byte == b'"').map_or(1, |end| end + 2),
            first if is_word(&first) => input[at..].iter().take_while(|byte| is_word(byte)).count(),
            _ => 1,
        };
        if !input[at].is_ascii_whitespace() {
            all.push(at..at + length);
        }
        at += length;
    }
    all
}

fn replace_token(input: &mut Vec<u8>, rng: &mut Rng, fits: impl Fn(&[u8]) -> bool, by: &[&str]) {
    let tokens: Vec<_> = tokens(input).into_iter().filter(|range| fits(&input[range.clone()])).collect();
    if let Some(range) = tokens.get(rng.below(tokens.len())) {
        input.splice(range.clone(), rng.of(by).bytes());
    }
}

fn swap_tokens(input: &mut Vec<u8>, rng: &mut Rng) {
    let tokens = tokens(input);
    let (one, other) = (rng.below(tokens.len()), rng.below(tokens.len()));
    if let (Some(first), Some(second)) = (tokens.get(one.min(other)), tokens.get(one.max(other)))
        && first.end <= second.start
    {
        let [a, between, b] =
            [&input[first.clone()], &input[first.end..second.start], &input[second.clone()]]
                .map(<[u8]>::to_vec);
        input.splice(first.start..second.end, [b, between, a].concat());
    }
}

//! Hostlists as in Slurm and Flux, which abbreviate many names: `n[1-3,7]-ib`, `rack[0-1]n[01-16],login`.
//!
//! Commas separate names. Brackets hold numbers and ranges of numbers. A name with several brackets is expanded to all
//! combinations; the last bracket varies fastest. Numbers are padded to the width of the first number of their range:
//! `n[08-10]` is n08, n09, n10.

use crate::memory;

/// The largest number of names in a list.
const MAX_NAMES: usize = 1 << 22;

/// Memory of a name with its number, and of its host in a machine.
const BYTES_PER_NAME: u64 = 400;

/// Expands a hostlist to its names, in order.
///
/// # Errors
/// If brackets do not match or contain anything but numbers and ranges, a range is empty, a name is empty, or there are
/// more than 2^22 names.
pub fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for name in split(list)? {
        let name = name.trim();
        if name.is_empty() {
            return Err(format!("a name is missing before or after a comma in `{list}`"));
        }
        let mut forms = vec![String::new()];
        let mut rest = name;
        while let Some((before, after)) = rest.split_once('[') {
            let Some((ranges, after)) = after.split_once(']') else {
                return Err(format!("the bracket of `{name}` is not closed"));
            };
            let numbers = numbers(ranges, MAX_NAMES / forms.len().max(1))
                .map_err(|reason| format!("{reason} in `{name}`"))?;
            forms = forms
                .iter()
                .flat_map(|form| numbers.iter().map(move |number| format!("{form}{before}{number}")))
                .collect();
            rest = after;
        }
        forms.iter_mut().for_each(|form| form.push_str(rest));
        if names.len() + forms.len() > MAX_NAMES {
            return Err(format!("there are more than {MAX_NAMES} names"));
        }
        names.extend(forms);
    }
    Ok(names)
}

/// Splits at the commas outside brackets.
fn split(list: &str) -> Result<Vec<&str>, String> {
    let (mut names, mut start, mut is_open) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if is_open => return Err(format!("there is a `[` inside brackets in `{list}`")),
            ']' if !is_open => return Err(format!("there is a `]` without a matching `[` in `{list}`")),
            '[' | ']' => is_open = letter == '[',
            ',' if !is_open => {
                names.push(&list[start..at]);
                start = at + 1;
            }
            _ => (),
        }
    }
    if is_open {
        return Err(format!("there is a `[` that is not closed in `{list}`"));
    }
    names.push(&list[start..]);
    Ok(names)
}

/// The numbers of a bracket, as written; at most `most`.
fn numbers(ranges: &str, most: usize) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| is_number).ok_or_else(|| {
                format!("expected numbers and ranges such as 1-3,7 between brackets, found `{range}`")
            })
        };
        let (first, last) = (number(low)?, number(high)?);
        if first > last {
            return Err(format!("the range {range} is empty; write the lower number first,"));
        }
        if last - first >= (most - numbers.len().min(most)) as u64 {
            return Err(format!("there are more than {MAX_NAMES} names"));
        }
        let names = last - first + 1;
        memory::check(names * BYTES_PER_NAME, &format!("the range {range}"), "list fewer names")?;
        let width = low.len();
        numbers.extend((first..=last).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn expands_hostlists_in_order() {
        let check = |list: &str, expected: &str| {
            assert_eq!(expand(list).map(|names| names.join(" ")).as_deref(), Ok(expected), "{list}");
        };
        check("n1", "n1");
        check("n[1-3,7]-ib", "n1-ib n2-ib n3-ib n7-ib");
        check("n[08-10],login, gpu1", "n08 n09 n10 login gpu1");
        check("r[0-1]n[1-2]", "r0n1 r0n2 r1n1 r1n2");
        check("tux[0-3,12]", "tux0 tux1 tux2 tux3 tux12");
    }

    #[test]
    fn errors_describe_malformed_hostlists() {
        let check = |list: &str, expected: &str| {
            let error = expand(list).expect_err(expected);
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("n[1-3", "there is a `[` that is not closed in `n[1-3`");
        check("n1-3]", "there is a `]` without a matching `[");
        check("n[[1]]", "there is a `[` inside brackets");
        check(
            "n[1-x]",
            "expected numbers and ranges such as 1-3,7 between brackets, found `1-x` in `n[1-x]`",
        );
        check("n[]", "found `` in `n[]`");
        check("n[+1]", "found `+1`");
        check("n[3-1]", "the range 3-1 is empty; write the lower number first");
        check("a,,b", "a name is missing before or after a comma");
        check("n[0-99999999999]", "more than 4194304 names");
        check("n[0-9999]x[0-9999]", "more than 4194304 names");
    }

    proptest! {
        #[test]
        fn no_hostlist_panics(list in r"[an0-9,\[\]-]{0,24}") {
            let _ = expand(&list);
        }

        #[test]
        fn ranges_are_expanded_in_ascending_order(first in 0..2000u64, more in 0..50u64) {
            let names = expand(&format!("n[{first}-{}]", first + more)).expect("a range");
            let expected: Vec<String> = (first..=first + more).map(|number| format!("n{number}")).collect();
            prop_assert_eq!(names, expected);
        }
    }
}

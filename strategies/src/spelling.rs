//! The known name that somebody may have meant by an unknown one.

/// The one of `known` that is closest to `name`, if it is close enough to be a slip of the finger.
pub(crate) fn nearest(name: &str, known: &[&str]) -> Option<String> {
    let lower = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate.to_string())
}

/// The phrase that offers the name found by [`nearest`], or nothing.
pub(crate) fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The phrase that offers the one of `known` that was meant by `name`, or nothing.
pub fn meant(name: &str, known: &[&str]) -> String {
    suggestion(&nearest(name, known))
}

/// Insertions, deletions and replacements that make `b` of `a` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_single_letters() {
        for (a, b, distance) in [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("flaw", "lawn", 2)] {
            assert_eq!((edit_distance(a, b), edit_distance(b, a)), (distance, distance), "{a} {b}");
        }
    }

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        let known = ["GreedyLB", "RefineLB"];
        assert_eq!(nearest("gredylb", &known).as_deref(), Some("GreedyLB"));
        assert_eq!(nearest("Metis", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}

//! Suggestions for misspelt names.

/// A longer text is no misspelt name.
const MAX_BYTES: usize = 100;

/// The name in `known` closest to `name`, if it is close enough to be a typing error.
pub fn nearest(name: &str, known: &[&str]) -> Option<String> {
    // The distance to a long text takes long, and no name is that long.
    if name.len() > MAX_BYTES {
        return None;
    }
    let lower = name.to_lowercase();
    known
        .iter()
        .map(|candidate| (edit_distance(&lower, &candidate.to_lowercase()), *candidate))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate.to_string())
}

/// The phrase ` (did you mean ...?)` for a name found by [`nearest`], or an empty string.
pub fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// The phrase ` (did you mean ...?)` with the name in `known` closest to `name`, or an empty string.
pub fn meant(name: &str, known: &[&str]) -> String {
    suggestion(&nearest(name, known))
}

/// The Levenshtein distance of `a` and `b`.
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
    fn nearest_finds_typing_errors_but_not_unrelated_names() {
        let known = ["GreedyLB", "RefineLB"];
        assert_eq!(nearest("gredylb", &known).as_deref(), Some("GreedyLB"));
        assert_eq!(nearest("Metis", &known), None);
        assert_eq!(nearest("x", &[]), None);
    }
}

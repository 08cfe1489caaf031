//! A reader of Prometheus' text format that is as strict as its description allows: see "Exposition formats" in Prometheus'
//! documentation.

use std::collections::{BTreeMap, BTreeSet};

/// The samples of a file: by the name of the metric and its labels with their values.
pub type Samples = BTreeMap<(String, BTreeMap<String, String>), f64>;

/// Reads a file.
///
/// # Panics
/// If it is not in the format, or breaks a convention: a counter ends in `_total`, every metric has a help and a type, and all
/// its lines are together.
pub fn samples(text: &str) -> Samples {
    assert!(text.ends_with('\n'), "the last line ends with a line feed");
    let (mut samples, mut types, mut helps) = (Samples::new(), BTreeMap::new(), BTreeSet::new());
    let mut current = String::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_else(|| panic!("a word is missing: {line}"));
            let (what, name, rest) = (word(), word(), word());
            assert!(is_name(name, true), "{line}");
            match what {
                "HELP" => assert!(helps.insert(name.to_owned()), "two helps: {line}"),
                "TYPE" => {
                    assert!(["counter", "gauge"].contains(&rest), "{line}");
                    assert_eq!(rest == "counter", name.ends_with("_total"), "{line}");
                    assert!(types.insert(name.to_owned(), rest.to_owned()).is_none(), "two types: {line}");
                    current = name.to_owned();
                }
                _ => panic!("{line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        assert_eq!(name, current, "the lines of a metric are together, after its type");
        assert!(helps.contains(name) && is_name(name, true), "{line}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("no number: {line}"));
        let labels = labels_of(labels.strip_suffix('}').unwrap_or_else(|| panic!("no brace: {line}")), line);
        assert!(samples.insert((name.to_owned(), labels), value).is_none(), "twice: {line}");
    }
    samples
}

/// The labels of a sample, such as `pe="0",process="1"`.
fn labels_of(mut rest: &str, line: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
        // No value has quotes, backslashes or line feeds, which would be escaped.
        let (value, after) = after.split_once('"').unwrap_or_else(|| panic!("no end: {line}"));
        assert!(is_name(name, false) && !value.contains('\\'), "{line}");
        assert!(labels.insert(name.to_owned(), value.to_owned()).is_none(), "twice: {line}");
        rest = match after.strip_prefix(',') {
            Some(next) => next,
            None => {
                assert!(after.is_empty(), "{line}");
                after
            }
        };
    }
    labels
}

/// Whether this is the name of a metric, or of a label.
fn is_name(name: &str, of_metric: bool) -> bool {
    let may = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || of_metric && letter == ':';
    name.chars().all(may) && name.starts_with(|first: char| !first.is_ascii_digit())
}

/// The sum of a metric over all its labels.
///
/// # Panics
/// If there is no such metric.
pub fn sum(samples: &Samples, name: &str) -> f64 {
    let values: Vec<f64> =
        samples.iter().filter(|((of, _), _)| of == name).map(|(_, value)| *value).collect();
    assert!(!values.is_empty(), "there is no metric {name}");
    values.iter().sum()
}

//! Content of vt files that databases do not have.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::RankText;
use crate::table::count;

/// The values of an object by name.
type Names = BTreeMap<String, IgnoredAny>;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    metadata: Metadata,
    phases: Option<Vec<Phase>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    attributes: Option<Names>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    tasks: Option<Vec<Part>>,
    communications: Option<Vec<Part>>,
    user_defined: Option<Names>,
}

/// A task or a communication.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    subphases: Option<Vec<IgnoredAny>>,
    attributes: Option<Names>,
    user_defined: Option<Names>,
}

/// Describes the content of these texts that a database does not keep, in phrases such as `subphases of 12 tasks`.
pub fn dropped_fields(texts: &[RankText]) -> Vec<String> {
    let mut values: BTreeSet<&str> = BTreeSet::new();
    let (mut subphases, mut defined, mut attributes) = (0, [0; 3], [0; 2]);
    let documents: Vec<Document> =
        texts.iter().filter_map(|rank| serde_json::from_slice(&rank.text).ok()).collect();
    let others = |names: &Option<Names>, ours: &str| names.iter().flatten().any(|(name, _)| name != ours);
    for document in &documents {
        let of_run = document.metadata.attributes.iter().flat_map(BTreeMap::keys);
        values.extend(of_run.map(String::as_str).filter(|name| *name != "equipoise"));
        for phase in document.phases.iter().flatten() {
            defined[0] += u64::from(others(&phase.user_defined, "equipoise"));
            for (kind, parts) in [&phase.tasks, &phase.communications].into_iter().enumerate() {
                for part in parts.iter().flatten() {
                    subphases += u64::from(part.subphases.as_ref().is_some_and(|parts| !parts.is_empty()));
                    defined[1 + kind] += u64::from(others(&part.user_defined, "task_serialized_bytes"));
                    attributes[kind] += u64::from(others(&part.attributes, ""));
                }
            }
        }
    }
    let mut phrases = Vec::new();
    if !values.is_empty() {
        phrases.push(format!("attributes {}", values.into_iter().collect::<Vec<_>>().join(", ")));
    }
    for (what, number, owner) in [
        ("subphases", subphases, "task"),
        ("attributes", attributes[0], "task"),
        ("attributes", attributes[1], "communication"),
        ("user_defined", defined[0], "phase"),
        ("user_defined", defined[1], "task"),
        ("user_defined", defined[2], "communication"),
    ] {
        if number > 0 {
            phrases.push(format!("{what} of {}", count(number, owner)));
        }
    }
    phrases
}

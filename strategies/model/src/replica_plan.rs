//! The plan of objects with replicas, such as the experts of a model: the expert of every slot, and its JSON document.
//!
//! ```json
//! {"topology": "flat:2", "physical_to_logical": [[0, 1, 2, 0]], "logical_to_physical": [[[0, 3], [1], [2]]],
//!  "counts": [[2, 1, 1]]}
//! ```
//!
//! There is a list for each layer. The slots of a PE are adjacent, and PEs are in their order. Readers need only
//! `physical_to_logical`, and use `topology` if there is one; `physical_to_logical` may have the name `physical_to_logical_map` as in files of SGLang.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fault::{Classified, Fault};
use crate::files::{self, Unread, write_whole};
use crate::quote::{sentence, shown};
use crate::table::count;

/// The expert of every slot of every layer, and the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaPlan {
    /// The spec of the machine that the plan was made for; empty if it is unknown.
    pub topology: String,
    /// The number of experts of every layer.
    pub experts: usize,
    /// The expert of every slot, by layer; all layers have the same number of slots.
    pub physical_to_logical: Vec<Vec<u32>>,
}

/// Why a plan cannot be read or written. The message names the file, what is wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaPlanError {
    /// The file cannot be read.
    #[error("cannot read the plan `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The file cannot be written; the old content remains.
    #[error("cannot write the plan `{}`: {source}; name a place that exists, is writable and has room", shown(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The content is invalid.
    #[error("the plan `{}`: {}", shown(.path), sentence(.reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what is expected.
        reason: String,
    },
}

impl Classified for ReplicaPlanError {
    fn fault(&self) -> Fault {
        match self {
            ReplicaPlanError::Read { source, .. } | ReplicaPlanError::Write { source, .. } => source.fault(),
            ReplicaPlanError::Content { .. } => Fault::Input,
        }
    }
}

/// The JSON document.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Document {
    #[serde(default)]
    topology: Option<String>,
    #[serde(alias = "physical_to_logical_map")]
    physical_to_logical: Vec<Vec<u32>>,
    logical_to_physical: Option<Vec<Vec<Vec<i64>>>>,
    counts: Option<Vec<Vec<usize>>>,
}

impl ReplicaPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// If the file cannot be read, is no plan, or contradicts itself.
    pub fn read(path: &Path) -> Result<Self, ReplicaPlanError> {
        let content = |reason: String| ReplicaPlanError::Content { path: path.into(), reason };
        let text = files::text(path).map_err(|unread| match unread {
            Unread::System(source) => ReplicaPlanError::Read { path: path.into(), source },
            Unread::Content((line, reason)) => content(format!("line {line}: {reason}")),
        })?;
        Self::parse(&text).map_err(content)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let document: Document = serde_json::from_str(text).map_err(|error| {
            format!("expected a document such as {{\"physical_to_logical\": [[0, 1, 2, 0]]}}; {error}")
        })?;
        let slots = document.physical_to_logical.first().map_or(0, Vec::len);
        if slots == 0 {
            return Err("there are no slots; give a list with the experts of all slots for each layer".into());
        }
        for (layer, row) in document.physical_to_logical.iter().enumerate() {
            if row.len() != slots {
                return Err(format!(
                    "layer {layer} has {}, but layer 0 has {slots}; give all layers the same number of slots",
                    count(row.len() as u64, "slot")
                ));
            }
        }
        let highest = document.physical_to_logical.iter().flatten().copied().max().unwrap_or(0) as usize;
        let experts = document.counts.iter().flatten().map(Vec::len).max().unwrap_or(0).max(highest + 1);
        if experts > slots {
            return Err(format!(
                "expert {} is named, but layers have {}; give every expert a slot in each layer",
                experts - 1,
                count(slots as u64, "slot")
            ));
        }
        let topology = document.topology.unwrap_or_default();
        let plan = ReplicaPlan { topology, experts, physical_to_logical: document.physical_to_logical };
        plan.check_counts(document.counts)?;
        plan.check_slots(document.logical_to_physical)?;
        Ok(plan)
    }

    /// Checks the field `counts` of a document.
    fn check_counts(&self, given: Option<Vec<Vec<usize>>>) -> Result<(), String> {
        let Some(given) = given else { return Ok(()) };
        let is_same = |layer: usize| given.get(layer).is_some_and(|counts| *counts == self.counts(layer));
        let layers = self.physical_to_logical.len();
        match (0..layers).find(|&layer| !is_same(layer)) {
            None if given.len() == layers => Ok(()),
            layer => {
                let layer = layer.unwrap_or(layers);
                Err(format!(
                    "`counts` of layer {layer} differ from `physical_to_logical`; correct or remove `counts`"
                ))
            }
        }
    }

    /// Checks the field `logical_to_physical` of a document; negative slots fill up lists and stand for none.
    fn check_slots(&self, given: Option<Vec<Vec<Vec<i64>>>>) -> Result<(), String> {
        let Some(mut given) = given else { return Ok(()) };
        let layers = self.physical_to_logical.len();
        let mut is_same = |layer: usize| {
            let Some(given) = given.get_mut(layer) else { return false };
            given.iter_mut().for_each(|slots| {
                slots.retain(|slot| *slot >= 0);
                slots.sort_unstable();
            });
            let found = self.slots(layer);
            let found = found.iter().map(|slots| slots.iter().map(|&slot| slot as i64).collect::<Vec<_>>());
            given.iter().cloned().eq(found)
        };
        let different = (0..layers).find(|&layer| !is_same(layer));
        match different.or((given.len() != layers).then_some(layers)) {
            None => Ok(()),
            Some(layer) => Err(format!(
                "`logical_to_physical` of layer {layer} differs from `physical_to_logical`; correct or remove \
                 `logical_to_physical`"
            )),
        }
    }

    /// The number of slots of a layer.
    pub fn slots_per_layer(&self) -> usize {
        self.physical_to_logical.first().map_or(0, Vec::len)
    }

    /// The number of replicas of every expert of a layer.
    pub fn counts(&self, layer: usize) -> Vec<usize> {
        let mut counts = vec![0; self.experts];
        self.physical_to_logical[layer].iter().for_each(|&expert| counts[expert as usize] += 1);
        counts
    }

    /// The slots of every expert of a layer.
    pub fn slots(&self, layer: usize) -> Vec<Vec<usize>> {
        let mut slots = vec![Vec::new(); self.experts];
        let experts = self.physical_to_logical[layer].iter().enumerate();
        experts.for_each(|(slot, &expert)| slots[expert as usize].push(slot));
        slots
    }

    /// The text of the document; a line for each layer in each list.
    pub fn text(&self) -> String {
        let layers = 0..self.physical_to_logical.len();
        let mut text = format!("{{\n\"topology\": {}", json(&self.topology));
        let mut list = |name: &str, rows: Vec<String>| {
            let _ = write!(text, ",\n\"{name}\": [\n{}\n]", rows.join(",\n"));
        };
        list("physical_to_logical", self.physical_to_logical.iter().map(json).collect());
        list("logical_to_physical", layers.clone().map(|layer| json(&self.slots(layer))).collect());
        list("counts", layers.map(|layer| json(&self.counts(layer))).collect());
        text + "\n}\n"
    }

    /// Writes the document; the file is replaced atomically.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn write(&self, path: &Path) -> Result<(), ReplicaPlanError> {
        Self::write_text(path, &self.text())
    }

    /// Writes a document that the flag `--init-expert-location` of SGLang reads, which takes no other fields; the file is replaced
    /// atomically.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn write_for_sglang(&self, path: &Path) -> Result<(), ReplicaPlanError> {
        let rows: Vec<String> = self.physical_to_logical.iter().map(json).collect();
        Self::write_text(path, &format!("{{\"physical_to_logical_map\": [\n{}\n]}}\n", rows.join(",\n")))
    }

    fn write_text(path: &Path, text: &str) -> Result<(), ReplicaPlanError> {
        let error = |source| ReplicaPlanError::Write { path: path.into(), source };
        write_whole(path, text.as_bytes()).map_err(error)
    }
}

/// The JSON text of a value without maps, which always has one.
fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> ReplicaPlan {
        ReplicaPlan {
            topology: "flat:2".into(),
            experts: 3,
            physical_to_logical: vec![vec![0, 1, 2, 0], vec![2, 1, 0, 1]],
        }
    }

    #[test]
    fn a_written_plan_reads_back_the_same() {
        let text = plan().text();
        assert!(text.contains("[[0,3],[1],[2]]") && text.contains("[1,2,1]"), "{text}");
        assert_eq!(ReplicaPlan::parse(&text), Ok(plan()));
    }

    #[test]
    fn only_the_experts_of_slots_are_needed() {
        let found =
            ReplicaPlan::parse(r#"{"physical_to_logical_map": [[0, 1, 2, 0], [2, 1, 0, 1]], "x": 1}"#);
        assert_eq!(found, Ok(ReplicaPlan { topology: String::new(), ..plan() }));
        let padded = r#"{"physical_to_logical": [[0, 1, 1]], "logical_to_physical": [[[0, -1], [2, 1]]]}"#;
        assert!(ReplicaPlan::parse(padded).is_ok());
    }

    #[test]
    fn contradictions_are_refused() {
        let check = |text: &str, expected: &str| {
            let error = ReplicaPlan::parse(text).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        };
        check("[]", "expected a document such as");
        check(r#"{"physical_to_logical": []}"#, "there are no slots");
        check(r#"{"physical_to_logical": [[0, 1], [0]]}"#, "layer 1 has 1 slot, but layer 0 has 2");
        check(r#"{"physical_to_logical": [[0, -1]]}"#, "expected a document such as");
        check(
            r#"{"physical_to_logical": [[0, 4000000000]]}"#,
            "expert 4000000000 is named, but layers have 2 slots",
        );
        check(r#"{"physical_to_logical": [[0, 1]], "counts": [[1, 2]]}"#, "`counts` of layer 0 differ");
        check(r#"{"physical_to_logical": [[0, 1]], "counts": [[1, 1], [1]]}"#, "`counts` of layer 1 differ");
        let slots = r#"{"physical_to_logical": [[0, 1]], "logical_to_physical": [[[1], [0]]]}"#;
        check(slots, "`logical_to_physical` of layer 0 differs");
    }
}

//! What messages and migrations cost, in seconds: as a run measured it, or as its simulated machine has it.
//!
//! A [`Database`](crate::Database) has the costs of its run, if they are known. `--cost-model FILE` replaces them by the
//! JSON document of [`Costs`], in which every missing number is 0:
//!
//! ```json
//! {"same_process": {"send_seconds": 1e-7, "receive_seconds": 1e-7}, "pes_per_process": 4,
//!  "other_process": {"send_seconds": 4e-7, "receive_seconds": 6e-7, "send_seconds_per_byte": 2e-10},
//!  "links": {"bandwidth": 1e10}}
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fault::{Classified, Fault};
use crate::files::{self, Unread};
use crate::params::{are_seconds, is_positive};
use crate::quote::{sentence, shown};

/// The costs of messages, migrations and links in a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Costs {
    /// A message between objects on the same PE.
    pub same_pe: EndCosts,
    /// A message between PEs of the same process.
    pub same_process: EndCosts,
    /// A message between processes.
    pub other_process: EndCosts,
    /// The migration of an object to another PE, per object and per byte of its encoding.
    pub migration: EndCosts,
    /// PEs of a process, which have consecutive numbers, at least 1.
    pub pes_per_process: u32,
    /// What limits the bytes on the way; none if nothing does, as between threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkLimits>,
    /// The seconds that strategies took when they last ran, by spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub strategies: BTreeMap<String, f64>,
    /// What part of the predicted gains steps of strategies delivered, by spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub delivered: BTreeMap<String, f64>,
    /// What part of the possible gains strategies found that others tried, by spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub found: BTreeMap<String, f64>,
}

impl Default for Costs {
    /// Nothing costs anything, and all PEs are in one process.
    fn default() -> Self {
        let free = EndCosts::default();
        Costs {
            same_pe: free,
            same_process: free,
            other_process: free,
            migration: free,
            pes_per_process: u32::MAX,
            links: None,
            strategies: BTreeMap::new(),
            delivered: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }
}

/// What a message or a migrating object costs the PEs at its two ends, at speed 1.
///
/// These times come in addition to the recorded loads of objects: what a measured load contains is not counted again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndCosts {
    /// Seconds of the sender, per message.
    pub send_seconds: f64,
    /// Seconds of the sender, per byte.
    pub send_seconds_per_byte: f64,
    /// Seconds of the receiver, per message.
    pub receive_seconds: f64,
    /// Seconds of the receiver, per byte.
    pub receive_seconds_per_byte: f64,
}

impl EndCosts {
    /// The seconds of the sender of this many messages with this many bytes in all.
    pub fn sender_seconds(&self, messages: u64, bytes: u64) -> f64 {
        self.send_seconds * messages as f64 + self.send_seconds_per_byte * bytes as f64
    }

    /// The seconds of the receiver of this many messages with this many bytes in all.
    pub fn receiver_seconds(&self, messages: u64, bytes: u64) -> f64 {
        self.receive_seconds * messages as f64 + self.receive_seconds_per_byte * bytes as f64
    }

    /// The four numbers, by the names of their fields.
    fn numbers(&self) -> [(&'static str, f64); 4] {
        [
            ("send_seconds", self.send_seconds),
            ("send_seconds_per_byte", self.send_seconds_per_byte),
            ("receive_seconds", self.receive_seconds),
            ("receive_seconds_per_byte", self.receive_seconds_per_byte),
        ]
    }
}

/// What limits bytes that many messages have to share, in bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkLimits {
    /// Every link; none for the bandwidths of the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,
    /// What a PE sends; none if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injection: Option<f64>,
    /// What a PE receives; none if there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ejection: Option<f64>,
}

impl Costs {
    /// The costs of a message from PE `from` to PE `to`.
    pub fn between(&self, from: u32, to: u32) -> &EndCosts {
        if from == to {
            &self.same_pe
        } else if from / self.pes_per_process == to / self.pes_per_process {
            &self.same_process
        } else {
            &self.other_process
        }
    }

    /// All kinds of costs, by the names of their fields.
    pub fn kinds(&self) -> [(&'static str, &EndCosts); 4] {
        [
            ("same_pe", &self.same_pe),
            ("same_process", &self.same_process),
            ("other_process", &self.other_process),
            ("migration", &self.migration),
        ]
    }

    /// Checks that times are from 0 to 1e30 seconds and rates from 1e-30 to 1e30 bytes per second.
    ///
    /// # Errors
    /// The first number that is not.
    pub fn check(&self) -> Result<(), String> {
        let of_kinds = self.kinds().into_iter().flat_map(|(kind, costs)| {
            costs.numbers().map(|(name, seconds)| (format!("{name} of {kind}"), seconds))
        });
        let of_strategies =
            self.strategies.iter().map(|(name, &seconds)| (format!("the time of {name:?}"), seconds));
        for (verb, parts) in [("delivered", &self.delivered), ("found", &self.found)] {
            if let Some((name, part)) = parts.iter().find(|(_, part)| !is_positive(**part)) {
                return Err(format!(
                    "what {name:?} {verb} is {part:?} in the costs; it is a part of a gain, above 0"
                ));
            }
        }
        for (name, seconds) in of_kinds.chain(of_strategies) {
            if !are_seconds(seconds) {
                let sentence =
                    format!("{name} in the costs is {seconds:?}; a time is from 0 to 1e30 seconds");
                return Err(sentence);
            }
        }
        let LinkLimits { bandwidth, injection, ejection } = self.links.unwrap_or_default();
        for (name, rate) in [("bandwidth", bandwidth), ("injection", injection), ("ejection", ejection)] {
            if let Some(rate) = rate.filter(|&rate| !is_positive(rate)) {
                return Err(format!(
                    "{name} in the costs is {rate:?}; a rate is from 1e-30 to 1e30 bytes per second"
                ));
            }
        }
        if self.pes_per_process == 0 {
            return Err("pes_per_process in the costs is 0; a process has at least 1 PE".into());
        }
        Ok(())
    }

    /// Reads the JSON document of costs.
    ///
    /// # Errors
    /// If the file cannot be read, is no such document, or has a number out of range.
    pub fn read(path: &Path) -> Result<Costs, CostsError> {
        let text = files::text(path).map_err(|unread| CostsError::Read { path: path.into(), unread })?;
        let content = |reason: String| CostsError::Content { path: path.into(), reason };
        let mut unknown = None;
        let mut reader = serde_json::Deserializer::from_str(&text);
        let costs: Result<Costs, _> = serde_ignored::deserialize(&mut reader, |field| {
            unknown = unknown.take().or(Some(field.to_string()))
        });
        let costs = costs.and_then(|costs| reader.end().map(|()| costs));
        let costs = costs.map_err(|error| content(error.to_string()))?;
        if let Some(field) = unknown {
            return Err(content(format!("no cost is named {field:?}")));
        }
        costs.check().map_err(content)?;
        Ok(costs)
    }
}

/// Why a file is no document of costs.
#[derive(Debug, thiserror::Error)]
pub enum CostsError {
    /// The file cannot be read.
    #[error("the cost model `{}`: {unread}", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system, or the line that is no text.
        unread: Unread,
    },
    /// The content is invalid.
    #[error(
        "the cost model `{}`: {}; write a document such as \
         {{\"same_process\": {{\"send_seconds\": 1e-7, \"receive_seconds\": 1e-7}}}}",
        shown(.path), sentence(.reason)
    )]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl Classified for CostsError {
    fn fault(&self) -> Fault {
        match self {
            CostsError::Read { unread, .. } => unread.fault(),
            CostsError::Content { .. } => Fault::Input,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> Result<Costs, String> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("costs.json");
        std::fs::write(&path, text).expect("it is written");
        Costs::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn missing_numbers_are_free_and_processes_have_consecutive_pes() {
        assert_eq!(read("{}"), Ok(Costs::default()));
        let costs = read(
            r#"{"pes_per_process": 2, "same_process": {"send_seconds": 1e-6},
                "other_process": {"send_seconds": 2e-6, "send_seconds_per_byte": 1e-9, "receive_seconds": 4e-6}}"#,
        );
        let costs = costs.expect("it is a document of costs");
        let send = |from, to| costs.between(from, to).sender_seconds(3, 1000);
        assert_eq!((send(1, 1), send(0, 1)), (0.0, 3e-6));
        assert!((send(1, 2) - 7e-6).abs() < 1e-18);
        assert_eq!(costs.between(2, 1).receiver_seconds(3, 1000), 1.2e-5);
    }

    #[test]
    fn errors_name_the_file_and_the_number() {
        let check = |text: &str, expected: &str| {
            let error = read(text).expect_err("it is no document of costs");
            assert!(error.contains("costs.json") && error.contains(expected), "{error}");
        };
        check("{", "EOF while parsing");
        check("3", "invalid type: integer `3`");
        check(r#"{"links": {"bandwith": 1}}"#, "no cost is named \"links.?.bandwith\"");
        check(r#"{"same_pe": {"send_seconds": -1}}"#, "send_seconds of same_pe in the costs is -1.0");
        check(r#"{"links": {"bandwidth": 0}}"#, "bandwidth in the costs is 0.0");
        check(r#"{"pes_per_process": 0}"#, "a process has at least 1 PE");
        check(r#"{"strategies": {"A": -1}}"#, "the time of \"A\"");
        check(r#"{"delivered": {"A": 0}}"#, "what \"A\" delivered is 0.0");
    }
}

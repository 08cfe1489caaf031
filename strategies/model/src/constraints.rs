//! What a placement must keep, in addition to a PE for every object: counts, memory, places of objects, groups, and loads by phase.
//!
//! [`Constraints`] are what a user says, in terms of the ids of objects; [`rules`](crate::rules) has what they mean for a database on a machine.

use std::fmt;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::params::are_seconds;
use crate::table::count;

pub mod files;

/// What a placement must keep. By default nothing.
///
/// As a document, it has the fields that are not empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Constraints {
    /// The number of objects that PEs take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_objects: Option<MaxObjects>,
    /// The bytes that PEs have for objects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<PerPe>,
    /// The bytes of objects, by id; those that are not listed have the recorded size.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub object_bytes: Vec<(u64, u64)>,
    /// Where objects must be, or should be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<Place>,
    /// Objects that must be together or apart.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// The loads of objects in each phase, in seconds at speed 1, by id. Without phases, the recorded loads are the only phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<(u64, Vec<f64>)>,
}

/// A number for every PE: as a document, a number for all or a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerPe {
    /// The same for all.
    All(u64),
    /// By PE.
    Each(Vec<u64>),
}

/// How many objects PEs take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaxObjects {
    /// The largest number.
    pub most: PerPe,
    /// Whether each PE takes exactly this number.
    #[serde(default)]
    pub exact: bool,
}

/// Where an object must be, or should be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// The id of the object.
    pub object: u64,
    /// The places; in a document, as written.
    #[serde(with = "as_written")]
    pub set: Arc<PlaceSet>,
    /// Seconds of the slowest PE that the wish is worth; none if the object must be there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worth_seconds: Option<f64>,
}

/// A set of PEs: `0-3,8`, `node:2`, `host:n17`, or all but those: `!5`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlaceSet {
    /// The set, as written.
    pub text: String,
    /// Whether it is all but the listed.
    pub is_complement: bool,
    /// First and last number of each range, and whether they are numbers of nodes.
    pub ranges: Vec<(u32, u32, bool)>,
    /// The names of hosts.
    pub hosts: Vec<String>,
}

/// Objects that must be together or apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Whether they must be together; otherwise no two of them may be.
    pub together: bool,
    /// In what they must be together or apart.
    pub level: Level,
    /// The ids of the objects.
    pub objects: Vec<u64>,
}

/// Parts of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// PEs.
    Pe,
    /// Nodes of [`Topology::node_of`](crate::Topology::node_of).
    Node,
    /// The switches that are closest above nodes, as parts of the machine's tree.
    Switch,
}

/// A set of PEs as its text.
mod as_written {
    use super::{Arc, PlaceSet};
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(super) fn serialize<S: Serializer>(set: &PlaceSet, serializer: S) -> Result<S::Ok, S::Error> {
        set.text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Arc<PlaceSet>, D::Error> {
        let text = String::deserialize(text)?;
        PlaceSet::parse(&text).map(Arc::new).map_err(de::Error::custom)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Pe => "PE",
            Level::Node => "node",
            Level::Switch => "switch",
        })
    }
}

impl Constraints {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Constraints::default()
    }

    /// These constraints, and of the kinds of which there are none, the `recorded` ones.
    #[must_use]
    pub fn or(self, recorded: Constraints) -> Constraints {
        fn one<T>(own: Vec<T>, recorded: Vec<T>) -> Vec<T> {
            if own.is_empty() { recorded } else { own }
        }
        Constraints {
            max_objects: self.max_objects.or(recorded.max_objects),
            memory: self.memory.or(recorded.memory),
            object_bytes: one(self.object_bytes, recorded.object_bytes),
            places: one(self.places, recorded.places),
            groups: one(self.groups, recorded.groups),
            phases: one(self.phases, recorded.phases),
        }
    }

    /// Checks that they are about objects with these ids, once each, and that loads by phase are numbers of the same phases.
    pub(crate) fn check(&self, ids: impl Iterator<Item = u64>) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let ids: FxHashSet<u64> = ids.collect();
        let sized = self.object_bytes.iter().map(|(id, _)| id);
        let grouped = self.groups.iter().flat_map(|group| &group.objects);
        let phased = self.phases.iter().map(|(id, _)| id);
        let mut named =
            self.places.iter().map(|place| &place.object).chain(sized).chain(grouped).chain(phased);
        if let Some(id) = named.find(|id| !ids.contains(id)) {
            return Err(format!("a constraint names object {id}, which does not exist"));
        }
        self.check_once()?;
        let phases = self.phases.first().map_or(0, |(_, loads)| loads.len());
        if let Some((id, _)) = self.phases.first().filter(|_| phases == 0) {
            return Err(format!(
                "the loads of object {id} by phase are empty; give a time for each phase, or no loads by phase"
            ));
        }
        let is_wrong = |loads: &[f64]| loads.len() != phases || !loads.iter().all(|&load| are_seconds(load));
        if let Some((id, _)) = self.phases.iter().find(|(_, loads)| is_wrong(loads)) {
            return Err(format!(
                "the loads of object {id} by phase are not {}",
                count(phases as u64, "time")
            ));
        }
        match self.places.iter().find(|place| place.worth_seconds.is_some_and(|worth| !are_seconds(worth))) {
            Some(place) => Err(format!("a wish for object {} is not worth a time from 0", place.object)),
            None => Ok(()),
        }
    }

    /// Checks that no object has two sizes, two lists of loads by phase, or two sets of places where it must be. Readers of files of flags
    /// refuse such lines, too.
    fn check_once(&self) -> Result<(), String> {
        let must_be = self.places.iter().filter(|place| place.worth_seconds.is_none());
        let twice = [
            ("sizes (`object_bytes`)", repeated(self.object_bytes.iter().map(|(id, _)| *id))),
            ("entries in `places` without `worth_seconds`", repeated(must_be.map(|place| place.object))),
            ("entries in `phases`", repeated(self.phases.iter().map(|(id, _)| *id))),
        ];
        match twice.into_iter().find_map(|(what, id)| Some((what, id?))) {
            Some((what, id)) => Err(format!("object {id} has several {what}; give it one")),
            None => Ok(()),
        }
    }
}

/// The first id that occurs again.
fn repeated(mut ids: impl Iterator<Item = u64>) -> Option<u64> {
    let mut known = FxHashSet::default();
    ids.find(|id| !known.insert(*id))
}

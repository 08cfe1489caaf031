//! The fields of vt files that are read.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};

use super::write::{Extras, Group};

/// The largest number of ranks.
pub(super) const MAX_RANKS: usize = 1 << 24;

#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) metadata: Metadata,
    pub(super) phases: Option<Vec<Phase>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    pub(super) rank: Option<u64>,
    pub(super) rank_alpha: Option<f64>,
    pub(super) phases: Option<Lists>,
    pub(super) attributes: Option<Attributes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Lists {
    pub(super) identical_to_previous: Spans,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Spans {
    pub(super) list: Vec<u64>,
    pub(super) range: Vec<[u64; 2]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Attributes {
    pub(super) equipoise: Option<OfDump>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OfDump {
    pub(super) program: String,
    pub(super) topology: String,
}

#[derive(Deserialize)]
pub(super) struct Phase {
    pub(super) id: u64,
    pub(super) tasks: Option<Vec<Task>>,
    pub(super) communications: Option<Vec<Communication>>,
    #[serde(default)]
    pub(super) user_defined: Option<OfPhase>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OfPhase {
    pub(super) equipoise: Option<Extras>,
}

/// Deserializes a `W` and converts it to a `T`. Unlike with `try_from`, a conversion error is located at the end of the
/// value, not at the beginning of the next one.
struct Checked<W, T>(PhantomData<(W, T)>);

impl<'de, W: Deserialize<'de>, T: TryFrom<W, Error = String>> Visitor<'de> for Checked<W, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::try_from(W::deserialize(MapAccessDeserializer::new(map))?).map_err(de::Error::custom)
    }
}

/// A valid task.
pub(super) struct Task {
    pub(super) entity: Entity,
    pub(super) node: u32,
    pub(super) seconds: f64,
    pub(super) bytes: Option<u64>,
}

impl<'de> Deserialize<'de> for Task {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Checked::<WrittenTask, Task>(PhantomData))
    }
}

#[derive(Deserialize)]
struct WrittenTask {
    entity: Entity,
    node: u64,
    time: f64,
    #[serde(default)]
    user_defined: Option<OfTask>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OfTask {
    task_serialized_bytes: Option<serde_json::Value>,
}

impl TryFrom<WrittenTask> for Task {
    type Error = String;

    fn try_from(written: WrittenTask) -> Result<Self, String> {
        let WrittenTask { entity, node, time, user_defined } = written;
        if entity.key().is_none() {
            return Err(format!(
                "expected a task of type `object` with an `id` or a `seq_id`, found the type `{}` or no such field",
                entity.kind
            ));
        }
        if !(time.is_finite() && time >= 0.0) {
            return Err(format!("the time of a task is {time}; expected seconds of at least 0"));
        }
        let node = u32::try_from(node).ok().filter(|&node| (node as usize) < MAX_RANKS);
        let node = node.ok_or_else(|| format!("the node of a task must be below {MAX_RANKS}"))?;
        let bytes = user_defined.and_then(|of_task| of_task.task_serialized_bytes?.as_f64());
        // An invalid size means that another program uses this name for something else.
        let bytes = bytes.filter(|bytes| bytes.is_finite() && *bytes >= 0.0).map(|bytes| bytes as u64);
        Ok(Task { entity, node, seconds: time, bytes })
    }
}

/// A task or an end of a communication.
#[derive(Deserialize)]
pub(super) struct Entity {
    #[serde(rename = "type", default = "object")]
    pub(super) kind: String,
    pub(super) id: Option<u64>,
    pub(super) seq_id: Option<u64>,
    pub(super) collection_id: Option<u64>,
    pub(super) objgroup_id: Option<u64>,
    #[serde(default = "yes")]
    pub(super) migratable: bool,
    #[serde(default)]
    pub(super) index: Vec<i64>,
}

fn object() -> String {
    "object".into()
}

fn yes() -> bool {
    true
}

/// The identity of an object: an id, or a number in a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    Id(u64),
    Sequence(Group, u64),
}

impl Entity {
    pub(super) fn group(&self) -> Group {
        match (self.collection_id, self.objgroup_id) {
            (Some(id), _) => Group::Collection(id),
            (None, Some(id)) => Group::Objgroup(id),
            (None, None) => Group::None,
        }
    }

    pub(super) fn key(&self) -> Option<Key> {
        if self.kind != "object" {
            return None;
        }
        self.id.map(Key::Id).or(self.seq_id.map(|number| Key::Sequence(self.group(), number)))
    }

    /// All identities of the object.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        let sequence = self.seq_id.map(|number| Key::Sequence(self.group(), number));
        self.id.map(Key::Id).into_iter().chain(sequence)
    }
}

/// A valid communication.
pub(super) struct Communication {
    pub(super) from: Entity,
    pub(super) to: Entity,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl<'de> Deserialize<'de> for Communication {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Checked::<WrittenCommunication, Communication>(PhantomData))
    }
}

#[derive(Deserialize)]
struct WrittenCommunication {
    from: Entity,
    to: Entity,
    messages: u64,
    bytes: f64,
}

impl TryFrom<WrittenCommunication> for Communication {
    type Error = String;

    fn try_from(written: WrittenCommunication) -> Result<Self, String> {
        let WrittenCommunication { from, to, messages, bytes } = written;
        for end in [&from, &to] {
            if !["object", "node", "shared_id"].contains(&end.kind.as_str()) {
                let kind = &end.kind;
                return Err(format!("an end has the type object, node or shared_id, found `{kind}`"));
            }
        }
        if !(bytes.is_finite() && (0.0..u64::MAX as f64).contains(&bytes)) {
            return Err(format!(
                "the bytes of a communication are {bytes:?}; expected a number from 0 to below 2^64"
            ));
        }
        Ok(Communication { from, to, messages, bytes: bytes as u64 })
    }
}

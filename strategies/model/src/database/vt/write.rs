//! Conversion of databases to the texts of ranks.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::super::{Database, Dump, End, Object, PeRecord};
use super::KIND;
use crate::files::Refused;
use crate::table::count;

/// The collection or object group of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Group {
    Collection(u64),
    Objgroup(u64),
    /// No collection: a plain handler.
    None,
}

impl Group {
    /// The name of the array.
    pub(super) fn name(&self) -> String {
        match self {
            Group::Collection(id) => format!("collection {id}"),
            Group::Objgroup(id) => format!("objgroup {id}"),
            Group::None => "handlers".into(),
        }
    }

    /// The group with this array name.
    fn of(name: &str) -> Option<Group> {
        let numbered = |word| name.strip_prefix(word).and_then(|id: &str| id.parse().ok());
        let collection = numbered("collection ").map(Group::Collection);
        let group = collection.or(numbered("objgroup ").map(Group::Objgroup));
        group.or((name == "handlers").then_some(Group::None)).filter(|group| group.name() == name)
    }
}

/// Fields of a PE and its step that vt does not have.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Extras {
    speed: f64,
    wall_seconds: f64,
    idle_seconds: f64,
    background_seconds: f64,
    available: bool,
    /// The array names, if they do not follow from the collections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) arrays: Option<Vec<String>>,
    pub(super) communication_recorded: bool,
    pub(super) dangling_edges: u64,
}

impl Default for Extras {
    fn default() -> Self {
        Extras::new(&PeRecord::default())
    }
}

impl Extras {
    fn new(record: &PeRecord) -> Self {
        let &PeRecord { speed, wall_seconds, idle_seconds, background_seconds, available } = record;
        let (arrays, communication_recorded, dangling_edges) = (None, true, 0);
        Extras {
            speed,
            wall_seconds,
            idle_seconds,
            background_seconds,
            available,
            arrays,
            communication_recorded,
            dangling_edges,
        }
    }

    pub(super) fn record(&self) -> PeRecord {
        let &Extras { speed, wall_seconds, idle_seconds, background_seconds, available, .. } = self;
        PeRecord { speed, wall_seconds, idle_seconds, background_seconds, available }
    }
}

/// Encodes the files of all ranks; ranks are the PEs of the steps.
pub struct Encoder<'a> {
    dump: &'a Dump,
    /// The group of each array, if array names follow from groups.
    groups: Option<Vec<Group>>,
    /// By step, then by rank: the objects and edges of the rank.
    parts: Vec<Vec<RankPart>>,
}

#[derive(Clone, Default)]
struct RankPart {
    objects: Vec<u32>,
    /// The edges whose sender is on this rank, as in vt.
    edges: Vec<u32>,
}

impl<'a> Encoder<'a> {
    /// An encoder for all steps of `dump`.
    ///
    /// # Errors
    /// If a step is inconsistent, or steps have different numbers of PEs.
    pub fn new(dump: &'a Dump) -> Result<Self, Refused> {
        let pes = dump.steps.first().map_or(0, |database| database.pes.len());
        let mut parts = Vec::with_capacity(dump.steps.len());
        for database in &dump.steps {
            let step = database.step;
            database.check().map_err(|error| Refused(format!("cannot hold step {step}: {error}")))?;
            let found = database.pes.len();
            if found != pes {
                return Err(Refused(format!(
                    "cannot hold step {step}: it has {}, but the first step has {pes}",
                    count(found as u64, "PE")
                )));
            }
            let mut ranks = vec![RankPart::default(); pes];
            let placement = database.placement();
            for (object, &pe) in (0..).zip(&placement) {
                ranks[pe as usize].objects.push(object);
            }
            for (position, edge) in (0..).zip(&database.edges) {
                ranks[edge.from.pe(&placement) as usize].edges.push(position);
            }
            parts.push(ranks);
        }
        Ok(Encoder { dump, groups: groups(dump), parts })
    }

    /// The text of the file of `rank`.
    ///
    /// # Errors
    /// If the dump cannot be written as JSON; consistent dumps can.
    pub fn text(&self, rank: usize) -> Result<Vec<u8>, Refused> {
        let steps = self.dump.steps.iter().zip(&self.parts);
        let phases: Vec<Value> = steps
            .map(|(database, parts)| phase(database, rank, &parts[rank], self.groups.as_deref()))
            .collect();
        let document = json!({ "type": KIND, "metadata": metadata(self.dump, rank), "phases": phases });
        let mut text =
            serde_json::to_vec(&document).map_err(|error| Refused(format!("cannot be written: {error}")))?;
        text.push(b'\n');
        Ok(text)
    }
}

/// The metadata of a rank.
fn metadata(dump: &Dump, rank: usize) -> Value {
    let skipped = skipped(dump);
    let mut metadata = json!({
        "type": KIND,
        "rank": rank,
        "phases": {
            "count": dump.steps.last().map_or(0, |last| last.step.saturating_add(1)),
            "skipped": skipped,
            "identical_to_previous": { "list": [], "range": [] },
        },
        "attributes": { "equipoise": { "program": dump.program, "topology": dump.topology } },
    });
    let speed = dump.steps.first().and_then(|database| database.pes.get(rank)).map_or(1.0, |pe| pe.speed);
    if speed != 1.0 {
        metadata["rank_alpha"] = json!(1.0 / speed);
    }
    metadata
}

/// The step numbers below the last step that are not used.
fn skipped(dump: &Dump) -> Value {
    let (mut list, mut range, mut next) = (Vec::new(), Vec::new(), 0);
    for database in &dump.steps {
        match database.step.saturating_sub(next) {
            0 => (),
            1 => list.push(next),
            _ => range.push([next, database.step - 1]),
        }
        next = database.step.saturating_add(1);
    }
    json!({ "list": list, "range": range })
}

/// The group of each array, if all names are group names and a reader would number them in this order.
fn groups(dump: &Dump) -> Option<Vec<Group>> {
    let names = &dump.steps.first()?.arrays;
    let groups: Vec<Group> = names.iter().map(|name| Group::of(name)).collect::<Option<_>>()?;
    let mut is_used = vec![false; groups.len()];
    for database in &dump.steps {
        for object in &database.objects {
            // Every object of a consistent database has an array, if arrays have names.
            if let Some(is_used) = is_used.get_mut(object.array as usize) {
                *is_used = true;
            }
        }
    }
    let is_same = dump.steps.iter().all(|database| database.arrays == *names);
    (is_same && !groups.is_empty() && groups.is_sorted_by(|a, b| a < b) && is_used.iter().all(|&used| used))
        .then_some(groups)
}

/// The phase of a step for a rank.
fn phase(database: &Database, rank: usize, part: &RankPart, groups: Option<&[Group]>) -> Value {
    let group = |object: &Object| match groups.and_then(|groups| groups.get(object.array as usize)) {
        Some(&group) => group,
        None => Group::Collection(u64::from(object.array)),
    };
    let entity = |object: &Object| {
        let mut entity = json!({
            "type": "object", "id": object.id, "home": object.pe, "migratable": object.migratable,
        });
        match group(object) {
            Group::Collection(id) => entity["collection_id"] = json!(id),
            Group::Objgroup(id) => entity["objgroup_id"] = json!(id),
            Group::None => (),
        }
        if !object.index.coordinates().is_empty() {
            entity["index"] = json!(object.index.coordinates());
        }
        entity
    };
    let task = |object: &Object| {
        let mut task = json!({
            "entity": entity(object), "node": object.pe, "resource": "cpu", "time": object.load_seconds,
        });
        if let Some(bytes) = object.bytes {
            task["user_defined"] = json!({ "task_serialized_bytes": bytes as f64 });
        }
        task
    };
    let here = part.objects.iter().map(|&position| &database.objects[position as usize]);
    let end = |end: End| match end {
        End::Object(object) => entity(&database.objects[object as usize]),
        End::Pe(pe) => json!({ "type": "node", "id": pe, "migratable": false }),
    };
    let mut communications = Vec::new();
    for edge in part.edges.iter().map(|&position| &database.edges[position as usize]) {
        let kind = match (edge.from, edge.to) {
            (End::Object(_), End::Object(_)) => "SendRecv",
            (End::Object(_), End::Pe(_)) => "CollectionToNode",
            (End::Pe(_), End::Object(_)) => "NodeToCollection",
            (End::Pe(_), End::Pe(_)) => continue,
        };
        communications.push(json!({
            "type": kind, "from": end(edge.from), "to": end(edge.to), "messages": edge.messages,
            "bytes": edge.bytes as f64,
        }));
    }
    let mut extras = Extras::new(&database.pes[rank]);
    extras.communication_recorded = database.communication_recorded;
    extras.dangling_edges = if rank == 0 { database.dangling_edges } else { 0 };
    extras.arrays = groups.is_none().then(|| database.arrays.clone());
    let mut phase = json!({
        "id": database.step,
        "tasks": here.map(task).collect::<Vec<_>>(),
        "user_defined": { "equipoise": extras },
    });
    if database.communication_recorded {
        phase["communications"] = json!(communications);
    }
    phase
}

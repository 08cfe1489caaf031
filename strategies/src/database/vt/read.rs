//! From the texts of all ranks to databases.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::super::{Database, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use super::RankText;
use super::write::Group;
use super::written::{Communication, Document, Entity, Key, MAX_RANKS, OfDump, Phase, Spans, Task};
use crate::files::Within::{self, Item, Key as Field};
use crate::files::{Refused, line_in_json};

/// The most phases of one dump.
const MAX_PHASES: usize = 1 << 16;

/// One rank's file, and where each of its steps is in it.
struct Rank {
    name: String,
    text: Vec<u8>,
    document: Document,
    /// By step: its place in the phases.
    place: BTreeMap<u64, usize>,
}

impl Rank {
    fn phases(&self) -> &[Phase] {
        self.document.phases.as_deref().unwrap_or_default()
    }

    fn phase(&self, step: u64) -> &Phase {
        &self.phases()[self.place[&step]]
    }

    /// Where a step, or something in it, is said.
    fn way(&self, step: u64, within: &[Within]) -> Vec<Within> {
        if self.phase(step).id != step && within.is_empty() {
            return LISTED.to_vec();
        }
        [&[Field("phases"), Item(self.place[&step])], within].concat()
    }

    /// The name of the file and the line where something is said.
    fn line(&self, way: &[Within]) -> String {
        line(&self.name, &self.text, way)
    }
}

/// The way to the phases that are as the one before.
const LISTED: [Within; 3] = [Field("metadata"), Field("phases"), Field("identical_to_previous")];

/// The name of a file and the line where something is said.
fn line(name: &str, text: &[u8], way: &[Within]) -> String {
    // What was read is text.
    let text = std::str::from_utf8(text).unwrap_or_default();
    format!("{name}: line {}", line_in_json(text, way))
}

/// The dump in the texts of all ranks, in the order of the ranks; of a single one it is not asked that it is of
/// the only rank.
///
/// # Errors
/// When a text is not vt's LB data, a phase is not in all of them, or what is in them does not fit together; the
/// sentence names the file, and the line where the text itself is at fault.
pub fn decode(texts: Vec<RankText>) -> Result<Dump, Refused> {
    let mut ranks = Vec::with_capacity(texts.len());
    for RankText { name, text } in texts {
        let broken = |reason: String| Refused(format!("is broken: {name}: {reason}"));
        let document: Document = serde_json::from_slice(&text).map_err(|error| {
            broken(format!("line {}, column {}: {}", error.line(), error.column(), sentence(&error)))
        })?;
        let place = places(&document)
            .map_err(|(way, reason)| Refused(format!("is broken: {}: {reason}", line(&name, &text, &way))))?;
        ranks.push(Rank { name, text, document, place });
    }
    let Some(first) = ranks.first() else { return Err(Refused("has no rank".into())) };
    for rank in &ranks {
        let mut others = first.place.keys().filter(|step| !rank.place.contains_key(step));
        let mut own = rank.place.keys().filter(|step| !first.place.contains_key(step));
        let odd =
            others.next().map(|step| (step, first, rank)).or(own.next().map(|step| (step, rank, first)));
        if let Some((step, here, there)) = odd {
            return Err(Refused(format!(
                "is broken: {}: phase {step} is here and not in {}; give it in all, or in none and list it as skipped",
                here.line(&here.way(*step, &[])),
                there.name
            )));
        }
    }
    let pes = count_ranks(&ranks);
    let groups = groups(&ranks);
    let of_dump = first.document.metadata.attributes.as_ref().and_then(|all| all.equipoise.as_ref());
    let mut dump = Dump::default();
    if let Some(OfDump { program, topology }) = of_dump {
        (dump.program, dump.topology) = (program.clone(), topology.clone());
    }
    for &step in first.place.keys() {
        let database = database(step, &ranks, pes, &groups)?;
        database.check().map_err(|error| Refused(format!("is broken: phase {step}: {error}")))?;
        dump.steps.push(database);
    }
    if dump.steps.is_empty() {
        return Err(Refused("has no phase; have the program record at least one".into()));
    }
    Ok(dump)
}

/// What a parser says, without the place that it adds.
fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(sentence, _)| sentence.into())
}

/// Where each step of a file is.
fn places(document: &Document) -> Result<BTreeMap<u64, usize>, (Vec<Within>, String)> {
    let mut place = BTreeMap::new();
    for (at, phase) in document.phases.iter().flatten().enumerate() {
        if place.insert(phase.id, at).is_some() {
            let way = vec![Field("phases"), Item(at), Field("id")];
            return Err((way, format!("phase {} is there twice", phase.id)));
        }
    }
    let Some(lists) = &document.metadata.phases else { return Ok(place) };
    let listed = |reason: String| Err((LISTED.to_vec(), reason));
    let Spans { list, range } = &lists.identical_to_previous;
    let mut same: BTreeSet<u64> = list.iter().copied().collect();
    for &[first, last] in range {
        if last.saturating_sub(first) >= MAX_PHASES as u64 {
            return listed(format!(
                "the range {first} to {last} is longer than the {MAX_PHASES} phases that fit"
            ));
        }
        same.extend(first..=last);
    }
    for phase in same {
        if place.contains_key(&phase) {
            return listed(format!("phase {phase} is there, and listed as identical to the one before"));
        }
        let before = phase.checked_sub(1).and_then(|before| place.get(&before)).copied();
        let Some(before) = before else {
            return listed(format!("phase {phase} is identical to the one before, which is not there"));
        };
        place.insert(phase, before);
    }
    if place.len() > MAX_PHASES {
        return listed(format!("there are more than {MAX_PHASES} phases"));
    }
    Ok(place)
}

/// How many PEs there are: the files of ranks, or as many as the only file speaks of.
fn count_ranks(ranks: &[Rank]) -> usize {
    let [only] = ranks else { return ranks.len() };
    let own = only.document.metadata.rank.filter(|&rank| rank < MAX_RANKS as u64).unwrap_or(0);
    let nodes = only.phases().iter().flat_map(|phase| phase.tasks.iter().flatten().map(|task| task.node));
    1 + nodes.map(|node| node as usize).fold(own as usize, usize::max)
}

/// The array of each collection, unless files say it themselves.
fn groups(ranks: &[Rank]) -> BTreeMap<Group, u32> {
    let phases = ranks.iter().flat_map(Rank::phases);
    let all: BTreeSet<Group> =
        phases.flat_map(|phase| phase.tasks.iter().flatten().map(|task| task.entity.group())).collect();
    all.into_iter().zip(0..).collect()
}

/// One step.
fn database(
    step: u64,
    ranks: &[Rank],
    pes: usize,
    groups: &BTreeMap<Group, u32>,
) -> Result<Database, Refused> {
    let broken = |reason: String| Refused(format!("is broken: phase {step}: {reason}"));
    let mut database = Database { step, pes: vec![PeRecord::default(); pes], ..Database::default() };
    let extras =
        |rank: &Rank| rank.phase(step).user_defined.as_ref().and_then(|of_phase| of_phase.equipoise.clone());
    let own_arrays = extras(&ranks[0]).and_then(|extras| extras.arrays);
    database.arrays = own_arrays.clone().unwrap_or_else(|| groups.keys().map(Group::name).collect());
    let mut is_recorded = false;
    for (pe, rank) in ranks.iter().enumerate() {
        let pe = if ranks.len() == 1 { rank.document.metadata.rank.unwrap_or(0) as usize } else { pe };
        let record = database.pes.get_mut(pe);
        let no_rank = || {
            let line = rank.line(&[Field("metadata"), Field("rank")]);
            Refused(format!("is broken: {line}: rank {pe} is beyond the {MAX_RANKS} that fit"))
        };
        let (record, extras) = (record.ok_or_else(no_rank)?, extras(rank));
        if let Some(alpha) = rank.document.metadata.rank_alpha {
            if !(alpha.is_finite() && alpha > 0.0) {
                let line = rank.line(&[Field("metadata"), Field("rank_alpha")]);
                return Err(Refused(format!(
                    "is broken: {line}: rank_alpha is {alpha}; expected a number above 0"
                )));
            }
            record.speed = 1.0 / alpha;
        }
        is_recorded |= match &extras {
            Some(extras) => extras.communication_recorded,
            // A phase without any says nothing of others.
            None => rank.phases().iter().any(|phase| phase.communications.is_some()),
        };
        if let Some(extras) = extras {
            database.dangling_edges = database.dangling_edges.saturating_add(extras.dangling_edges);
            *record = extras.record();
        }
    }
    database.communication_recorded = is_recorded;
    let mut found: Vec<(&Entity, Object)> = Vec::new();
    let mut seen: FxHashMap<Key, (usize, &str)> = FxHashMap::default();
    for rank in ranks {
        for (at, task) in rank.phase(step).tasks.iter().flatten().enumerate() {
            let wrong = |reason: String| {
                let line = rank.line(&rank.way(step, &[Field("tasks"), Item(at)]));
                Refused(format!("is broken: {line}: {reason}"))
            };
            let Some(key) = task.entity.key() else { continue };
            if task.node as usize >= pes {
                let node = task.node;
                return Err(wrong(format!(
                    "an object is on node {node}, and there are files of {pes} ranks"
                )));
            }
            let array = match own_arrays {
                Some(_) => task.entity.collection_id.and_then(|array| u32::try_from(array).ok()).unwrap_or(0),
                None => groups[&task.entity.group()],
            };
            let object = object_of(task, key, array).map_err(wrong)?;
            match seen.get(&key) {
                None => {
                    seen.insert(key, (found.len(), &rank.name));
                    found.push((&task.entity, object));
                }
                // vt gives every rank a task without a name and time in the first phase.
                Some(_) if object.load_seconds == 0.0 => (),
                Some(&(before, _)) if found[before].1.load_seconds == 0.0 => found[before].1 = object,
                Some((_, first)) => {
                    let id = object.id;
                    return Err(wrong(format!("object {id} is in phase {step} of {first} already")));
                }
            }
        }
    }
    found.sort_by_key(|(_, object)| order(object));
    let mut place: FxHashMap<Key, u32> = FxHashMap::default();
    for ((entity, _), position) in found.iter().zip(0..) {
        place.extend(entity.keys().map(|key| (key, position)));
    }
    database.objects = found.into_iter().map(|(_, object)| object).collect();
    for rank in ranks {
        for communication in rank.phase(step).communications.iter().flatten() {
            let end = |entity: &Entity| match entity.kind.as_str() {
                "node" => entity.id.filter(|&node| node < pes as u64).map(|node| End::Pe(node as u32)),
                _ => entity.keys().find_map(|key| place.get(&key)).map(|&object| End::Object(object)),
            };
            let Communication { from, to, messages, bytes } = communication;
            let ends = end(from)
                .filter(|_| from.kind != "shared_id")
                .zip(end(to).filter(|_| to.kind != "shared_id"));
            match ends {
                Some((from, to)) => {
                    database.edges.push(Edge { from, to, messages: *messages, bytes: *bytes });
                }
                None => database.dangling_edges = database.dangling_edges.saturating_add(1),
            }
        }
    }
    database.edges = merged(database.edges).map_err(broken)?;
    Ok(database)
}

/// The object of a task.
fn object_of(task: &Task, key: Key, array: u32) -> Result<Object, String> {
    let id = match key {
        Key::Id(id) => id,
        Key::Sequence(_, number) if number < 1 << 32 => u64::from(array) << 32 | number,
        Key::Sequence(_, number) => return Err(format!("seq_id {number} is beyond the 2^32 that fit")),
    };
    let index: Option<Vec<i32>> = task.entity.index.iter().map(|&at| i32::try_from(at).ok()).collect();
    let index = index.filter(|index| index.len() <= ObjectIndex::MAX_DIMENSIONS).unwrap_or_default();
    Ok(Object {
        id,
        array,
        index: ObjectIndex::new(&index),
        load_seconds: task.seconds,
        bytes: task.bytes,
        pe: task.node,
        migratable: task.entity.migratable,
    })
}

/// The order of objects.
pub(super) fn order(object: &Object) -> (u32, ObjectIndex, u64) {
    (object.array, object.index, object.id)
}

/// One edge per sender and receiver, in their order.
pub(super) fn merged(mut edges: Vec<Edge>) -> Result<Vec<Edge>, String> {
    edges.sort_by_key(|edge| (edge.from, edge.to));
    let mut all: Vec<Edge> = Vec::with_capacity(edges.len());
    for edge in edges {
        match all.last_mut().filter(|last| (last.from, last.to) == (edge.from, edge.to)) {
            Some(last) => {
                let sums = (last.messages.checked_add(edge.messages), last.bytes.checked_add(edge.bytes));
                let (Some(messages), Some(bytes)) = sums else {
                    return Err("there are more than 2^64 bytes or messages between two objects".into());
                };
                (last.messages, last.bytes) = (messages, bytes);
            }
            None => all.push(edge),
        }
    }
    Ok(all)
}

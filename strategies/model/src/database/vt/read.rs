//! Conversion of the texts of all ranks to databases.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::super::{Database, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use super::RankText;
use super::write::Extras;
use super::write::Group;
use super::written::{Communication, Document, Entity, Key, MAX_RANKS, OfDump, Phase, Spans, Task};
use crate::files::JsonStep::{self, Item, Key as Field};
use crate::files::{Refused, line_in_json};
use crate::table::count;

/// The largest number of phases of a dump.
const MAX_PHASES: usize = 1 << 16;

/// The file of one rank, with an index of its steps.
struct Rank {
    name: String,
    text: Vec<u8>,
    document: Document,
    /// The position of each step in `phases`.
    position_of: BTreeMap<u64, usize>,
}

impl Rank {
    fn phases(&self) -> &[Phase] {
        self.document.phases.as_deref().unwrap_or_default()
    }

    fn phase(&self, step: u64) -> &Phase {
        &self.phases()[self.position_of[&step]]
    }

    /// The path of a step, or of a value in it.
    fn path(&self, step: u64, inside: &[JsonStep]) -> Vec<JsonStep> {
        if self.phase(step).id != step && inside.is_empty() {
            return LISTED.to_vec();
        }
        [&[Field("phases"), Item(self.position_of[&step])], inside].concat()
    }

    /// The file name and the line of the value at `path`.
    fn line(&self, path: &[JsonStep]) -> String {
        line(&self.name, &self.text, path)
    }
}

/// The path of the list of phases that are identical to the previous phase.
const LISTED: [JsonStep; 3] = [Field("metadata"), Field("phases"), Field("identical_to_previous")];

/// A file name and the line of the value at `path`.
fn line(name: &str, text: &[u8], path: &[JsonStep]) -> String {
    // The text has been parsed as JSON, so it is UTF-8.
    let text = std::str::from_utf8(text).unwrap_or_default();
    format!("{name}: line {}", line_in_json(text, path))
}

/// Decodes the texts of all ranks, in rank order. A single text is accepted even if the run had more ranks.
///
/// # Errors
/// If a text is not LB data of vt, a phase is missing in some texts, or the texts are inconsistent. The error names the
/// file, and the line if possible.
pub fn decode(texts: Vec<RankText>) -> Result<Dump, Refused> {
    let mut ranks = Vec::with_capacity(texts.len());
    for RankText { name, text } in texts {
        let broken = |reason: String| Refused(format!("is broken: {name}: {reason}"));
        let document: Document = serde_json::from_slice(&text).map_err(|error| {
            broken(format!("line {}, column {}: {}", error.line(), error.column(), sentence(&error)))
        })?;
        let position_of = places(&document).map_err(|(path, reason)| {
            Refused(format!("is broken: {}: {reason}", line(&name, &text, &path)))
        })?;
        ranks.push(Rank { name, text, document, position_of });
    }
    let Some(first) = ranks.first() else { return Err(Refused("has no rank".into())) };
    for rank in &ranks {
        let mut others = first.position_of.keys().filter(|step| !rank.position_of.contains_key(step));
        let mut own = rank.position_of.keys().filter(|step| !first.position_of.contains_key(step));
        let odd =
            others.next().map(|step| (step, first, rank)).or(own.next().map(|step| (step, rank, first)));
        if let Some((step, here, there)) = odd {
            return Err(Refused(format!(
                "is broken: {}: phase {step} is missing in {}; write it for all ranks, or for none and list \
                it as skipped",
                here.line(&here.path(*step, &[])),
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
    for &step in first.position_of.keys() {
        let database = database(step, &ranks, pes, &groups)?;
        database.check().map_err(|error| Refused(format!("is broken: phase {step}: {error}")))?;
        dump.steps.push(database);
    }
    if dump.steps.is_empty() {
        return Err(Refused("has no phase; have the program record at least one".into()));
    }
    Ok(dump)
}

/// The message of a parser error without its position.
fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(sentence, _)| sentence.into())
}

/// The position of each step in a file.
fn places(document: &Document) -> Result<BTreeMap<u64, usize>, (Vec<JsonStep>, String)> {
    let mut position_of = BTreeMap::new();
    for (at, phase) in document.phases.iter().flatten().enumerate() {
        if position_of.insert(phase.id, at).is_some() {
            let path = vec![Field("phases"), Item(at), Field("id")];
            return Err((path, format!("phase {} occurs twice", phase.id)));
        }
    }
    let Some(lists) = &document.metadata.phases else { return Ok(position_of) };
    let listed = |reason: String| Err((LISTED.to_vec(), reason));
    let Spans { list, range } = &lists.identical_to_previous;
    let mut same: BTreeSet<u64> = list.iter().copied().collect();
    for &[first, last] in range {
        if last.saturating_sub(first) >= MAX_PHASES as u64 {
            return listed(format!("the range {first} to {last} has more than {MAX_PHASES} phases"));
        }
        same.extend(first..=last);
    }
    for phase in same {
        if position_of.contains_key(&phase) {
            return listed(format!(
                "phase {phase} has content, but is listed as identical to the previous phase"
            ));
        }
        let before = phase.checked_sub(1).and_then(|before| position_of.get(&before)).copied();
        let Some(before) = before else {
            return listed(format!("phase {phase} is identical to the previous phase, which does not exist"));
        };
        position_of.insert(phase, before);
    }
    if position_of.len() > MAX_PHASES {
        return listed(format!("there are more than {MAX_PHASES} phases"));
    }
    Ok(position_of)
}

/// The number of PEs: the number of texts, or the largest node in a single text plus 1.
fn count_ranks(ranks: &[Rank]) -> usize {
    let [only] = ranks else { return ranks.len() };
    let own = only.document.metadata.rank.filter(|&rank| rank < MAX_RANKS as u64).unwrap_or(0);
    let nodes = only.phases().iter().flat_map(|phase| phase.tasks.iter().flatten().map(|task| task.node));
    1 + nodes.map(|node| node as usize).fold(own as usize, usize::max)
}

/// The array of each collection, unless the files contain array names.
fn groups(ranks: &[Rank]) -> BTreeMap<Group, u32> {
    let phases = ranks.iter().flat_map(Rank::phases);
    let all: BTreeSet<Group> =
        phases.flat_map(|phase| phase.tasks.iter().flatten().map(|task| task.entity.group())).collect();
    all.into_iter().zip(0..).collect()
}

/// Builds the database of one step.
fn database(
    step: u64,
    ranks: &[Rank],
    pes: usize,
    groups: &BTreeMap<Group, u32>,
) -> Result<Database, Refused> {
    let broken = |reason: String| Refused(format!("is broken: phase {step}: {reason}"));
    let mut database = Database { step, pes: vec![PeRecord::default(); pes], ..Database::default() };
    let own_arrays = extras(&ranks[0], step).and_then(|extras| extras.arrays);
    database.arrays = own_arrays.clone().unwrap_or_else(|| groups.keys().map(Group::name).collect());
    read_pes(&mut database, ranks)?;
    let mut found: Vec<(&Entity, Object)> = Vec::new();
    let mut seen: FxHashMap<Key, (usize, &str)> = FxHashMap::default();
    for rank in ranks {
        for (at, task) in rank.phase(step).tasks.iter().flatten().enumerate() {
            let wrong = |reason: String| {
                let line = rank.line(&rank.path(step, &[Field("tasks"), Item(at)]));
                Refused(format!("is broken: {line}: {reason}"))
            };
            let Some(key) = task.entity.key() else { continue };
            if task.node as usize >= pes {
                let node = task.node;
                return Err(wrong(format!(
                    "an object is on node {node}, but there are files of {}",
                    count(pes as u64, "rank")
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
                // In the first phase, vt adds a task without a name and time to every rank.
                Some(_) if object.load_seconds == 0.0 => (),
                Some(&(before, _)) if found[before].1.load_seconds == 0.0 => found[before].1 = object,
                Some((_, first)) => {
                    let id = object.id;
                    return Err(wrong(format!("object {id} is also in phase {step} of {first}")));
                }
            }
        }
    }
    found.sort_by_key(|(_, object)| order(object));
    let mut position_of: FxHashMap<Key, u32> = FxHashMap::default();
    for ((entity, _), position) in found.iter().zip(0..) {
        position_of.extend(entity.keys().map(|key| (key, position)));
    }
    database.objects = found.into_iter().map(|(_, object)| object).collect();
    read_edges(&mut database, ranks, &position_of);
    database.edges = merged(database.edges).map_err(broken)?;
    Ok(database)
}

/// The fields of a step that only files written by this project have.
fn extras(rank: &Rank, step: u64) -> Option<Extras> {
    rank.phase(step).user_defined.as_ref().and_then(|of_phase| of_phase.equipoise.clone())
}

/// Fills the PEs of a step from the metadata of the ranks.
fn read_pes(database: &mut Database, ranks: &[Rank]) -> Result<(), Refused> {
    let step = database.step;
    let mut is_recorded = false;
    for (pe, rank) in ranks.iter().enumerate() {
        let pe = if ranks.len() == 1 { rank.document.metadata.rank.unwrap_or(0) as usize } else { pe };
        let record = database.pes.get_mut(pe);
        let no_rank = || {
            let line = rank.line(&[Field("metadata"), Field("rank")]);
            Refused(format!("is broken: {line}: rank {pe} is too large; ranks are below {MAX_RANKS}"))
        };
        let (record, extras) = (record.ok_or_else(no_rank)?, extras(rank, step));
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
            // A phase without communication may be recorded if another phase has some.
            None => rank.phases().iter().any(|phase| phase.communications.is_some()),
        };
        if let Some(extras) = extras {
            database.dangling_edges = database.dangling_edges.saturating_add(extras.dangling_edges);
            *record = extras.record();
        }
    }
    database.communication_recorded = is_recorded;
    Ok(())
}

/// Adds the communication of a step; `position_of` has the positions of the objects.
fn read_edges(database: &mut Database, ranks: &[Rank], position_of: &FxHashMap<Key, u32>) {
    let (step, pes) = (database.step, database.pes.len());
    for rank in ranks {
        for communication in rank.phase(step).communications.iter().flatten() {
            let end = |entity: &Entity| match entity.kind.as_str() {
                "node" => entity.id.filter(|&node| node < pes as u64).map(|node| End::Pe(node as u32)),
                _ => entity.keys().find_map(|key| position_of.get(&key)).map(|&object| End::Object(object)),
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
}

/// Converts a task to an object.
fn object_of(task: &Task, key: Key, array: u32) -> Result<Object, String> {
    let id = match key {
        Key::Id(id) => id,
        Key::Sequence(_, number) if number < 1 << 32 => u64::from(array) << 32 | number,
        Key::Sequence(_, number) => {
            return Err(format!("seq_id {number} is too large; it must be below 2^32"));
        }
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

/// The sort key of objects.
pub(super) fn order(object: &Object) -> (u32, ObjectIndex, u64) {
    (object.array, object.index, object.id)
}

/// Merges edges with the same sender and receiver and sorts them.
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

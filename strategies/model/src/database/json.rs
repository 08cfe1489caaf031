//! The JSON format of databases: readable, for scripts and version control.
//!
//! ```json
//! {
//!   "type": "equipoise-lb-database", "version": 2,
//!   "program": "stencil2d", "topology": "torus:4x4",
//!   "steps": [
//!     {"step": 0, "communication_recorded": true, "dangling_edges": 0, "arrays": ["blocks"],
//!       "pes": [
//!         {"speed": 1.0, "wall_seconds": 0.5, "idle_seconds": 0.1, "background_seconds": 0.02, "available": true}
//!       ],
//!       "objects": [
//!         {"id": 7, "array": 0, "index": [0, 1], "load_seconds": 0.25, "bytes": 4096, "pe": 0, "migratable": true}
//!       ],
//!       "edges": [
//!         {"from": {"object": 0}, "to": {"pe": 0}, "messages": 10, "bytes": 64000}
//!       ]
//!     }
//!   ]
//! }
//! ```
//! - `steps`: one entry per dumped load-balancing step; `step` is its number, from 0.
//! - `pes`: by PE number. `speed` is relative, 1 is normal. Times are those since the previous step;
//!   `background_seconds` is the time outside the objects. Objects may only be placed on `available` PEs.
//! - `objects`: `id` is unique in a step and constant across steps. `array` is a position in `arrays`, `index` has up
//!   to 6 coordinates (none: unknown), `load_seconds` is the measured work at speed 1, `bytes` is the encoded size
//!   (`null`: unknown), `pe` is the current PE. Only `migratable` objects may be moved.
//! - `edges`: the messages and bytes from one end to another in the period. An end is an object, by its position in
//!   `objects`, or a PE. `dangling_edges` counts records with unknown objects. If `communication_recorded` is false
//!   (version 1 does not have this field), there are no edges, although messages may have been sent.
//! - `costs`: what messages and migrations cost in the run, a document of [`Costs`](crate::costs::Costs). Without the
//!   field (as in version 1) they are unknown.
//! - `constraints`: what a placement must keep, a document of [`Constraints`](crate::constraints::Constraints), such as
//!   `{"max_objects": {"most": 4, "exact": true}, "places": [{"object": 7, "set": "0-3,8"}]}`. Without the field (as in version 1)
//!   there are none.
//!
//! Each record is on its own line, so that line-based differences are readable. Numbers are exact: floats are written
//! with the digits that read back as the same float, and integers have 64 bits (unlike the numbers of JavaScript).
//! Fields may be in any order. Missing fields have the values above that mean "normal" or "unknown", but the fields
//! `id`, `load_seconds` and `pe` of objects and all fields of edges are required. Unknown fields are skipped, with a
//! warning ([`Dump::warnings`]).

use std::fmt;
use std::io::{self, Write};
use std::marker::PhantomData;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};

use super::{Database, Dump};
use crate::files::Refused;
use crate::frames::{Ignored, field};
use crate::memory;

/// The value of `type`.
pub(super) const TYPE: &str = "equipoise-lb-database";

/// The version written, and the newest version read.
pub const VERSION: u32 = 2;

/// The complete document.
#[derive(Deserialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    version: u64,
    #[serde(default)]
    program: String,
    #[serde(default)]
    topology: String,
    steps: Vec<Database>,
}

/// The fields that identify a document.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Probe {
    #[serde(rename = "type")]
    kind: Option<String>,
    version: Option<u64>,
}

/// The end of a document.
pub(super) const END: &[u8] = b"\n  ]\n}\n";

/// Encodes `dump`, whose steps are consistent ([`Database::check`]), in a version from 1 to [`VERSION`].
///
/// # Errors
/// None for numbers and texts; the encoder of JSON may fail.
pub fn encode(dump: &Dump, version: u32) -> Result<Vec<u8>, Refused> {
    let mut text = begin(&dump.program, &dump.topology, version)?;
    for (i, database) in dump.steps.iter().enumerate() {
        text.extend(step(database, version, i == 0)?);
    }
    text.extend(END);
    Ok(text)
}

/// The beginning of a document, up to its steps.
///
/// # Errors
/// None for texts; the encoder of JSON may fail.
pub(super) fn begin(program: &str, topology: &str, version: u32) -> Result<Vec<u8>, Refused> {
    let mut out = Vec::new();
    let mut write = || {
        write!(out, "{{\n  \"type\": \"{TYPE}\", \"version\": {version},\n  \"program\": ")?;
        write_value(&mut out, program)?;
        write!(out, ", \"topology\": ")?;
        write_value(&mut out, topology)?;
        write!(out, ",\n  \"steps\": [")
    };
    write().map_err(unwritable)?;
    Ok(out)
}

/// A step of a document; the database is consistent.
///
/// # Errors
/// As for [`encode`].
pub(super) fn step(database: &Database, version: u32, is_first: bool) -> Result<Vec<u8>, Refused> {
    let Database {
        step,
        arrays,
        pes,
        objects,
        communication_recorded,
        edges,
        dangling_edges,
        costs,
        constraints,
    } = database;
    let mut out = Vec::new();
    let mut write = || {
        let comma = if is_first { "" } else { "," };
        write!(out, "{comma}\n    {{\"step\": {step}, ")?;
        if version > 1 {
            write!(out, "\"communication_recorded\": {communication_recorded}, ")?;
        }
        write!(out, "\"dangling_edges\": {dangling_edges}, \"arrays\": ")?;
        write_value(&mut out, arrays)?;
        if let Some(costs) = costs.as_ref().filter(|_| version > 1) {
            write!(out, ",\n      \"costs\": ")?;
            write_value(&mut out, costs)?;
        }
        if !constraints.is_empty() && version > 1 {
            write!(out, ",\n      \"constraints\": ")?;
            write_value(&mut out, constraints)?;
        }
        write_records(&mut out, "pes", pes)?;
        write_records(&mut out, "objects", objects)?;
        write_records(&mut out, "edges", edges)?;
        write!(out, "\n    }}")
    };
    write().map_err(unwritable)?;
    Ok(out)
}

fn unwritable(error: io::Error) -> Refused {
    Refused(format!("cannot be written as JSON: {error}"))
}

/// Writes a list with one record per line.
fn write_records(out: &mut Vec<u8>, name: &str, records: &[impl Serialize]) -> io::Result<()> {
    write!(out, ",\n      \"{name}\": [")?;
    for (i, record) in records.iter().enumerate() {
        write!(out, "{}\n        ", if i == 0 { "" } else { "," })?;
        write_value(out, record)?;
    }
    write!(out, "{}]", if records.is_empty() { "" } else { "\n      " })?;
    Ok(())
}

/// Writes a value on a single line.
fn write_value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, OneLine))?)
}

/// Formats JSON on a single line, with a space after each comma and colon.
struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// Whether a file that begins with `bytes` is JSON of any kind.
pub fn recognises(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}

/// Decodes a file.
///
/// # Errors
/// If the text is not JSON, has another structure or a newer version, or is inconsistent. Errors contain line and
/// column if known.
pub fn decode(text: &[u8]) -> Result<Dump, Refused> {
    let mut ignored = Ignored::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let document = serde_ignored::deserialize(&mut reader, |path| ignored.add(field(&path.to_string())));
    let document: Document = match document.and_then(|document| reader.end().map(|()| document)) {
        Ok(document) => document,
        Err(error) => return Err(explain(text, &error)),
    };
    let Document { kind, version, program, topology, steps } = document;
    expect(Some(&kind), Some(version))?;
    for (i, database) in steps.iter().enumerate() {
        let step = database.step;
        database
            .check()
            .map_err(|e| Refused(format!("is inconsistent in entry {i} of `steps` (step {step}): {e}")))?;
    }
    Ok(Dump { program, topology, steps, warnings: ignored.clause().into_iter().collect() })
}

/// A list of records, whose memory is checked as it grows.
///
/// # Errors
/// If a record is invalid, or the list does not fit into memory.
pub(super) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(item) = sequence.next_element()? {
                memory::push(&mut list, item).map_err(de::Error::custom)?;
            }
            Ok(list)
        }
    }
    from.deserialize_seq(List(PhantomData))
}

/// Checks type and version.
fn expect(kind: Option<&str>, version: Option<u64>) -> Result<(), Refused> {
    if kind != Some(TYPE) {
        let found = kind.map_or("has no `type`".into(), |kind| format!("has the `type` \"{kind}\""));
        return Err(Refused(format!(
            "is JSON, but not an LB database: it {found}, but the `type` of a database is \"{TYPE}\"; \
             give a file written by --lb-dump or `equipoise convert`"
        )));
    }
    match version {
        Some(version) if (1..=u64::from(VERSION)).contains(&version) => Ok(()),
        Some(newer) if newer > u64::from(VERSION) => Err(Refused(format!(
            "has format version {newer}, but this program reads versions up to {VERSION}; \
             read it with a newer equipoise, or have the newer one convert it (`equipoise convert --to-version {VERSION}`)"
        ))),
        _ => Err(Refused(format!("has no valid `version`; set it to {VERSION}"))),
    }
}

/// The reason why `text` could not be parsed; it may be a document of another type.
fn explain(text: &[u8], error: &serde_json::Error) -> Refused {
    if error.is_eof() {
        return Refused(format!("is truncated ({error}); copy it again, or have the program dump it again"));
    }
    let foreign = match serde_json::from_slice::<Probe>(text) {
        Ok(Probe { kind, version }) => expect(kind.as_deref(), version).err(),
        Err(_) => None,
    };
    foreign.unwrap_or_else(|| match error.to_string() {
        // Our own error has a remedy.
        memory if memory.contains(memory::SMALLER_FILE) => Refused(format!("cannot be read: {memory}")),
        reason => Refused(format!("is not an LB database in JSON: {reason}; correct the file there")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{End, ObjectIndex, PeRecord, arbitrary};
    use proptest::prelude::*;

    #[track_caller]
    fn check_refused(text: &str, expected: &str) {
        let error = decode(text.as_bytes()).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    /// A document with the given steps.
    fn document(steps: &str) -> String {
        format!(r#"{{"type": "equipoise-lb-database", "version": 2, "steps": [{steps}]}}"#)
    }

    proptest! {
        #[test]
        fn encoded_dumps_are_decoded_unchanged(dump in arbitrary::dump()) {
            let text = encode(&dump, VERSION).unwrap();
            prop_assert!(recognises(&text));
            prop_assert_eq!(decode(&text).unwrap(), dump);
        }
    }

    #[test]
    fn the_documented_example_is_up_to_date() {
        let source = include_str!("json.rs");
        let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
        let example = lines.skip_while(|line| *line != " ```json").skip(1).take_while(|line| *line != " ```");
        let example: String =
            example.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
        let dump = decode(example.as_bytes()).unwrap();
        assert_eq!(dump.steps[0].objects[0].index.coordinates(), [0, 1]);
        assert_eq!(String::from_utf8(encode(&dump, VERSION).unwrap()).unwrap(), example);
    }

    #[test]
    fn missing_fields_have_default_values() {
        let text = document(
            r#"{"pes": [{}], "objects": [{"id": 3, "load_seconds": 2, "pe": 0}],
                "edges": [{"from": {"object": 0}, "to": {"pe": 0}, "messages": 1, "bytes": 2}]}"#,
        );
        let dump = decode(text.as_bytes()).unwrap();
        assert_eq!((dump.program.as_str(), dump.topology.as_str()), ("", ""));
        let database = &dump.steps[0];
        assert_eq!(database.pes, [PeRecord::default()]);
        let object = &database.objects[0];
        assert_eq!((object.index, object.bytes, object.migratable), (ObjectIndex::default(), None, true));
        assert_eq!((database.edges[0].from, database.edges[0].to), (End::Object(0), End::Pe(0)));
    }

    #[test]
    fn communication_recorded_defaults_to_true() {
        let recorded = |steps: &str, version: &str| {
            let text = document(steps).replace("\"version\": 2", &format!("\"version\": {version}"));
            decode(text.as_bytes()).unwrap().steps[0].communication_recorded
        };
        assert!(recorded(r#"{"pes": [{}]}"#, "1"));
        assert!(recorded(r#"{"pes": [{}]}"#, "2"));
        assert!(!recorded(r#"{"pes": [{}], "communication_recorded": false}"#, "2"));
        check_refused(
            &document(
                r#"{"pes": [{}], "communication_recorded": false,
                    "edges": [{"from": {"pe": 0}, "to": {"pe": 0}, "messages": 1, "bytes": 2}]}"#,
            ),
            "communication was not recorded, but there is an edge",
        );
    }

    #[test]
    fn unknown_fields_are_skipped_with_a_warning() {
        let text = document(r#"{"pes": [{"sped": 1}, {"sped": {"of": [2]}}], "new": null}"#);
        let dump = decode(text.as_bytes()).unwrap();
        assert_eq!(dump.steps[0].pes, [PeRecord::default(), PeRecord::default()]);
        let expected =
            r#"has fields that this program does not know and ignores: "steps.pes.sped", "steps.new""#;
        assert_eq!(dump.warnings, [expected]);
    }

    #[test]
    fn refuses_every_truncation() {
        let text = encode(&decode(document(r#"{"pes": [{}]}"#).as_bytes()).unwrap(), VERSION).unwrap();
        // The last byte is a line end, which is optional.
        for length in 0..text.len() - 1 {
            assert!(decode(&text[..length]).is_err(), "{length} bytes");
        }
        check_refused(r#"{"type": "equipoise-lb-database", "ver"#, "is truncated");
    }

    #[test]
    fn errors_name_the_problem_and_its_position() {
        let vt = r#"{"type": "LBDatafile", "phases": []}"#;
        check_refused(
            vt,
            r#"has the `type` "LBDatafile", but the `type` of a database is "equipoise-lb-database""#,
        );
        check_refused(r#"{"nodes": 3}"#, "has no `type`");
        check_refused("[1, 2]", "is not an LB database in JSON");
        check_refused(&document("").replace("\"version\": 2", "\"version\": 3"), "has format version 3");
        check_refused(
            r#"{"type": "equipoise-lb-database", "version": 4, "new": 1, "steps": []}"#,
            "has format version 4",
        );
        check_refused(&document("").replace("\"version\": 2", "\"version\": 0"), "no valid `version`");
        check_refused(
            &document(r#"{"pes": [{}], "objects": [{"id": 1, "pe": 0}]}"#),
            "missing field `load_seconds`",
        );
        check_refused(
            &document(
                r#"{"pes": [{}], "objects": [{"id": 1, "load_seconds": 1, "pe": 0,
                    "index": [1,2,3,4,5,6,7]}]}"#,
            ),
            "at most 6 integer coordinates",
        );
        check_refused(
            &document(r#"{"pes": [{}], "objects": [{"id": 1, "load_seconds": 1, "pe": 4}]}"#),
            "entry 0 of `steps` (step 0): object 0 is on PE 4, but there is 1 PE (0)",
        );
        check_refused(&document(r#"{"pes": [{"speed": 1e999}]}"#), "number out of range");
    }

    #[test]
    fn refuses_to_write_an_inconsistent_database() {
        let mut dump = decode(document(r#"{"step": 8, "pes": [{}]}"#).as_bytes()).unwrap();
        dump.steps[0].pes[0].wall_seconds = f64::NAN;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lb.json");
        for written in [dump.write(&path), dump.write_version(&path, VERSION)] {
            let error = written.unwrap_err().to_string();
            assert!(error.contains("cannot hold step 8: wall_seconds of PE 0 is NaN"), "{error}");
        }
    }
}

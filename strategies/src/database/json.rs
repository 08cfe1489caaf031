//! Our JSON form of a database: for people, scripts and version control.
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
//! - `steps`: one per dumped load-balancing step; `step` is its number, from 0.
//! - `pes`: by PE number. `speed` is relative, 1 is normal; the seconds are of the period since the step
//!   before, `background_seconds` being those outside the objects; objects go only to `available` PEs.
//! - `objects`: `id` is unique in the step and the same in all steps; `array` is a position in `arrays`,
//!   `index` has up to 6 coordinates (none: unknown), `load_seconds` is measured work at speed 1, `bytes`
//!   the encoded size (`null`: unknown), `pe` where it lives, and only `migratable` ones may be moved.
//! - `edges`: what went from one end to the other in the period: how many messages, and how many bytes in
//!   all. An end is an object, by its position in `objects`, or a PE. `dangling_edges` counts records
//!   of objects that were not there. Where `communication_recorded` is false (version 1 does not have it),
//!   there are no edges, and that says nothing about what was sent.
//!
//! One record stands on one line, so that differences between files read well. Numbers are exact: every
//! float is written with the digits that read back as the same float, and integers have 64 bits (which
//! JavaScript's numbers do not). A reader takes the fields in any order, uses the values above that
//! mean "normal" or "unknown" for those that are missing (of an object, `id`, `load_seconds` and `pe`
//! must be there, and of an edge everything), and rejects those it does not know.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::ser::{Formatter, Serializer};

use super::{Database, Dump};
use crate::files::Refused;

/// The value of `type`.
pub(super) const TYPE: &str = "equipoise-lb-database";

/// The version that is written, and the newest that is read.
const VERSION: u64 = 2;

/// The whole document.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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

/// As much of a document as says what it is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Probe {
    #[serde(rename = "type")]
    kind: Option<String>,
    version: Option<u64>,
}

/// The text of a file that holds `dump`.
///
/// # Errors
/// When a number is not finite, which JSON cannot express; [`Database::check`] excludes it.
pub fn encode(dump: &Dump) -> Result<Vec<u8>, Refused> {
    for database in &dump.steps {
        let step = database.step;
        database.check().map_err(|e| Refused(format!("cannot hold step {step}: {e}")))?;
    }
    let mut text = Vec::new();
    write(dump, &mut text).map_err(|e| Refused(format!("cannot be written as JSON: {e}")))?;
    Ok(text)
}

fn write(dump: &Dump, out: &mut Vec<u8>) -> io::Result<()> {
    let Dump { program, topology, steps } = dump;
    write!(out, "{{\n  \"type\": \"{TYPE}\", \"version\": {VERSION},\n  \"program\": ")?;
    write_value(out, program)?;
    write!(out, ", \"topology\": ")?;
    write_value(out, topology)?;
    write!(out, ",\n  \"steps\": [")?;
    for (i, database) in steps.iter().enumerate() {
        let Database { step, arrays, pes, objects, communication_recorded, edges, dangling_edges } = database;
        let comma = if i == 0 { "" } else { "," };
        write!(
            out,
            "{comma}\n    {{\"step\": {step}, \"communication_recorded\": {communication_recorded}, "
        )?;
        write!(out, "\"dangling_edges\": {dangling_edges}, \"arrays\": ")?;
        write_value(out, arrays)?;
        write_records(out, "pes", pes)?;
        write_records(out, "objects", objects)?;
        write_records(out, "edges", edges)?;
        write!(out, "\n    }}")?;
    }
    write!(out, "\n  ]\n}}\n")?;
    Ok(())
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

/// Writes a value on one line.
fn write_value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    Ok(value.serialize(&mut Serializer::with_formatter(out, OneLine))?)
}

/// JSON on one line, with a space after each comma and colon.
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

/// Whether a file that begins with `bytes` is JSON, whoever wrote it.
pub fn recognises(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}

/// The dump in the text of a file.
///
/// # Errors
/// When the text is not JSON, not of this form, of a newer version, or inconsistent; with its line and
/// column where there are some.
pub fn decode(text: &[u8]) -> Result<Dump, Refused> {
    let document: Document = match serde_json::from_slice(text) {
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
    Ok(Dump { program, topology, steps })
}

/// Whether this type and version are those that are read.
fn expect(kind: Option<&str>, version: Option<u64>) -> Result<(), Refused> {
    if kind != Some(TYPE) {
        let found = kind.map_or("has no `type`".into(), |kind| format!("has the `type` \"{kind}\""));
        return Err(Refused(format!(
            "is JSON, but not an LB database: it {found}, and that of a database is \"{TYPE}\"; \
             give a file that the dump or the conversion of equipoise wrote"
        )));
    }
    match version {
        Some(1..=VERSION) => Ok(()),
        Some(newer) if newer > VERSION => Err(Refused(format!(
            "has format version {newer}, and this program reads up to version {VERSION}; \
             read it with a newer equipoise"
        ))),
        _ => Err(Refused(format!("has no valid `version`; that of this form is {VERSION}"))),
    }
}

/// The reason why `text` could not be parsed, which may be that it is something else.
fn explain(text: &[u8], error: &serde_json::Error) -> Refused {
    if error.is_eof() {
        return Refused(format!("is truncated ({error}); copy it again, or have the program dump it again"));
    }
    let foreign = match serde_json::from_slice::<Probe>(text) {
        Ok(Probe { kind, version }) => expect(kind.as_deref(), version).err(),
        Err(_) => None,
    };
    foreign.unwrap_or_else(|| Refused(format!("is not an LB database in JSON: {error}; correct that place")))
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

    /// A document with this in the place of its steps.
    fn document(steps: &str) -> String {
        format!(r#"{{"type": "equipoise-lb-database", "version": 2, "steps": [{steps}]}}"#)
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(dump in arbitrary::dump()) {
            let text = encode(&dump).unwrap();
            prop_assert!(recognises(&text));
            prop_assert_eq!(decode(&text).unwrap(), dump);
        }
    }

    #[test]
    fn the_documented_example_is_what_is_written() {
        let source = include_str!("json.rs");
        let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
        let example = lines.skip_while(|line| *line != " ```json").skip(1).take_while(|line| *line != " ```");
        let example: String =
            example.map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line))).collect();
        let dump = decode(example.as_bytes()).unwrap();
        assert_eq!(dump.steps[0].objects[0].index.coordinates(), [0, 1]);
        assert_eq!(String::from_utf8(encode(&dump).unwrap()).unwrap(), example);
    }

    #[test]
    fn what_is_left_out_is_normal_or_unknown() {
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
    fn communication_was_recorded_unless_the_file_says_otherwise() {
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
            "communication was not recorded, and there is an edge",
        );
    }

    #[test]
    fn every_truncation_is_refused() {
        let text = encode(&decode(document(r#"{"pes": [{}]}"#).as_bytes()).unwrap()).unwrap();
        // The last byte is a line end, which nobody misses.
        for length in 0..text.len() - 1 {
            assert!(decode(&text[..length]).is_err(), "{length} bytes");
        }
        check_refused(r#"{"type": "equipoise-lb-database", "ver"#, "is truncated");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let vt = r#"{"type": "LBDatafile", "phases": []}"#;
        check_refused(
            vt,
            r#"has the `type` "LBDatafile", and that of a database is "equipoise-lb-database""#,
        );
        check_refused(r#"{"nodes": 3}"#, "has no `type`");
        check_refused("[1, 2]", "is not an LB database in JSON");
        check_refused(&document("").replace("\"version\": 2", "\"version\": 3"), "has format version 3");
        check_refused(
            r#"{"type": "equipoise-lb-database", "version": 4, "new": 1, "steps": []}"#,
            "has format version 4",
        );
        check_refused(&document("").replace("\"version\": 2", "\"version\": 0"), "no valid `version`");
        check_refused(&document(r#"{"pes": [{"sped": 1}]}"#), "unknown field `sped`");
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
            "entry 0 of `steps` (step 0): object 0 is on PE 4, and there are only 1",
        );
        check_refused(&document(r#"{"pes": [{"speed": 1e999}]}"#), "number out of range");
    }

    #[test]
    fn a_database_that_could_not_be_read_back_is_not_written() {
        let mut dump = decode(document(r#"{"step": 8, "pes": [{}]}"#).as_bytes()).unwrap();
        dump.steps[0].pes[0].wall_seconds = f64::NAN;
        let error = encode(&dump).unwrap_err().to_string();
        assert!(error.contains("cannot hold step 8: wall_seconds of PE 0 is NaN"), "{error}");
    }
}

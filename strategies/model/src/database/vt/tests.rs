//! Tests of LB data of vt.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::super::arbitrary::dump;
use super::super::file::DatabaseError;
use super::super::{Database, Object};
use super::*;
use crate::fault::{Classified as _, Fault};
use crate::testing::mutated;

/// Two ranks as written by vt: phase 0 has an initial task per rank, phase 1 is skipped, and phase 3 equals phase 2.
const RANK_0: &str = include_str!("../../../tests/data/vt/data.0.json");
const RANK_1: &str = include_str!("../../../tests/data/vt/data.1.json");

fn texts(texts: &[&str]) -> Vec<RankText> {
    let named = |(rank, text): (usize, &&str)| RankText {
        name: format!("data.{rank}.json"),
        text: text.as_bytes().to_vec(),
    };
    texts.iter().enumerate().map(named).collect()
}

/// Objects as `array/id index @PE load`, and edges as `from>to messages*bytes`.
fn describe(database: &Database) -> (Vec<String>, Vec<String>) {
    let end = |end| match end {
        End::Object(object) => database.objects[object as usize].id.to_string(),
        End::Pe(pe) => format!("PE{pe}"),
    };
    let edge = |edge: &Edge| format!("{}>{} {}*{}", end(edge.from), end(edge.to), edge.messages, edge.bytes);
    let object = |object: &Object| {
        let pinned = if object.migratable { "" } else { " pinned" };
        let Object { id, array, pe, load_seconds, .. } = object;
        format!("{}/{id} {:?} @{pe} {load_seconds}{pinned}", database.arrays[*array as usize], object.index)
    };
    (database.objects.iter().map(object).collect(), database.edges.iter().map(edge).collect())
}

#[test]
fn phases_are_steps_and_ranks_are_pes() {
    let dump = decode(texts(&[RANK_0, RANK_1])).expect("two ranks");
    let steps: Vec<u64> = dump.steps.iter().map(|database| database.step).collect();
    assert_eq!(steps, [0, 2, 3]);
    let (objects, edges) = describe(&dump.steps[0]);
    assert_eq!(
        objects,
        [
            "collection 7/1310722 [0] @0 1.5",
            "collection 7/1310726 [1] @1 2",
            "objgroup 3/5 [] @1 0.25 pinned",
            "handlers/0 [] @0 0 pinned",
        ]
    );
    assert_eq!(
        edges,
        ["1310722>1310726 2*96", "1310722>PE1 1*8", "1310726>1310722 3*64", "PE1>1310726 1*10"]
    );
    // Shared data, and an unknown object.
    assert_eq!(dump.steps[0].dangling_edges, 2);
    assert_eq!(dump.steps[0].objects[0].bytes, Some(2048));
    let speeds: Vec<f64> = dump.steps[0].pes.iter().map(|pe| pe.speed).collect();
    assert_eq!(speeds, [1.0, 0.5]);
    // The object moved in phase 2 and stayed in phase 3.
    assert_eq!(describe(&dump.steps[1]).0, describe(&dump.steps[2]).0);
    assert_eq!(describe(&dump.steps[1]).0[0], "collection 7/1310722 [0] @1 0.5");
    assert!(is_same(&dump, &decode(encode(&dump)).expect("what was written")));
}

/// The texts written for a dump.
fn encode(dump: &Dump) -> Vec<RankText> {
    let encoder = Encoder::new(dump).expect("a whole dump");
    let text =
        |rank| RankText { name: format!("data.{rank}.json"), text: encoder.text(rank).expect("a rank") };
    (0..dump.steps[0].pes.len()).map(text).collect()
}

#[test]
fn objects_may_be_identified_by_seq_id_and_collection() {
    let task = |seq: u64, collection: u64, time: &str| {
        format!(
            r#"{{"entity": {{"type": "object", "home": 0, "migratable": true, "seq_id": {seq}, "collection_id":
            {collection}}}, "node": 0, "resource": "cpu", "time": {time}}}"#
        )
    };
    let end = |seq: u64, collection: u64| {
        format!(r#"{{"type": "object", "seq_id": {seq}, "collection_id": {collection}}}"#)
    };
    let text = format!(
        r#"{{"phases": [{{"id": 0, "tasks": [{}, {}], "communications": [{{"type": "Broadcast", "from": {},
        "to": {}, "messages": 1, "bytes": 7}}]}}]}}"#,
        task(1, 20, "1"),
        task(1, 10, "2.5"),
        end(1, 10),
        end(1, 20)
    );
    let dump = decode(texts(&[&text])).expect("a rank");
    let (objects, edges) = describe(&dump.steps[0]);
    assert_eq!(objects, ["collection 10/1 [] @0 2.5", "collection 20/4294967297 [] @0 1"]);
    assert_eq!(edges, ["1>4294967297 1*7"]);
}

#[test]
fn errors_name_file_and_line() {
    let check = |rank: usize, from: &str, to: &str, expected: &str| {
        let mut both = [RANK_0.to_string(), RANK_1.to_string()];
        assert!(both[rank].contains(from), "{from}");
        both[rank] = both[rank].replacen(from, to, 1);
        let error = decode(texts(&[&both[0], &both[1]])).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    };
    check(0, "\"time\": 1.5", "\"time\": -1.5", "data.0.json: line 18, column");
    check(0, "\"time\": 1.5", "\"time\": -1.5", "the time of a task is -1.5; expected seconds of at least 0");
    check(0, "\"id\": 1310722, ", "", "expected a task of type `object` with an `id` or a `seq_id`");
    check(0, "\"bytes\": 96.0", "\"bytes\": \"many\"", "invalid type: string \"many\", expected f64");
    check(0, "\"bytes\": 96.0", "\"bytes\": 1e30", "are 1e30; expected a number from 0 to below 2^64");
    check(0, "\"bytes\": 96.0", "\"bytes\": -0.5", "are -0.5; expected a number from 0 to below 2^64");
    check(
        0,
        "\"node\": 0",
        "\"node\": 4",
        "data.0.json: line 18: an object is on node 4, but there are files of 2 ranks",
    );
    check(
        0,
        "{\"type\": \"node\"",
        "{\"type\": \"rank\"",
        "an end has the type object, node or shared_id, found `rank`",
    );
    check(
        1,
        "\"rank_alpha\": 2.0",
        "\"rank_alpha\": 0.0",
        "data.1.json: line 5: rank_alpha is 0; expected a number above 0",
    );
    check(1, "\"list\": [3]", "\"list\": []", "data.0.json: line 29: phase 3 is missing in data.1.json");
    check(
        1,
        "\"list\": [3]",
        "\"list\": [3, 5]",
        "data.1.json: line 8: phase 5 is identical to the previous phase, which does not exist",
    );
    check(
        1,
        "\"list\": [3]",
        "\"list\": [2, 3]",
        "data.1.json: line 8: phase 2 has content, but is listed as identical",
    );
    check(
        1,
        "\"range\": []}\n",
        "\"range\": [[4, 99999999]]}\n",
        "line 8: the range 4 to 99999999 has more than 65536 phases",
    );
    check(1, "\"id\": 2,", "\"id\": 0,", "data.1.json: line 25: phase 0 occurs twice");
    check(1, "1310726", "1310722", "data.1.json: line 15: object 1310722 is also in phase 0 of data.0.json");
    check(1, "\"phases\": [\n", "\"phases\": [,\n", "data.1.json: line ");
}

/// Content of both ranks that is dropped.
const DROPPED_FIELDS: [&str; 4] =
    ["attributes name, temperature", "subphases of 1 task", "attributes of 1 task", "user_defined of 1 task"];

#[test]
fn dropped_fields_names_content_that_databases_do_not_keep() {
    assert_eq!(dropped_fields(&texts(&[RANK_0, RANK_1])), DROPPED_FIELDS);
    let more = RANK_1
        .replacen(
            "\"time\": 0.25",
            "\"time\": 0.25, \"subphases\": [{\"id\": 0, \"time\": 0.25}], \"user_defined\": {\"rank\": 3}, \
             \"attributes\": {\"x\": 1}",
            1,
        )
        .replacen("\"id\": 2,", "\"id\": 2, \"user_defined\": {\"mine\": 1},", 1);
    let expected =
        ["subphases of 1 task", "attributes of 1 task", "user_defined of 1 phase", "user_defined of 1 task"];
    assert_eq!(dropped_fields(&texts(&[&more])), expected);
    // Files written from the database have no content to drop.
    let dump = decode(texts(&[RANK_0, &more])).expect("two ranks");
    assert!(dropped_fields(&encode(&dump)).is_empty());
}

#[test]
fn reads_and_writes_one_file_per_rank_plain_and_compressed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("data.0.json"), RANK_0).expect("a file");
    fs::write(path("data.1.json"), RANK_1).expect("a file");
    let dump = Dump::read(path("data.1.json")).expect("both ranks");
    assert_eq!(dump, decode(texts(&[RANK_0, RANK_1])).expect("both ranks"));
    assert_eq!(Dump::read(path("data.%p.json")).expect("both ranks"), dump);
    assert_eq!(
        Dump::read_steps(path("data.%p.json"), Some(2), Some(1)).expect("a step").steps,
        dump.steps[1..2]
    );
    for name in ["plain.%p.json", "packed.%p.json.br"] {
        Dump::can_write(path(name)).expect("a place");
        dump.write(path(name)).expect("a place");
        assert!(dump.reads_back(path(name)).expect("what was written"), "{name}");
        let mut other = dump.clone();
        other.steps[1].objects[0].load_seconds *= 2.0;
        assert!(!other.reads_back(path(name)).expect("what was written"), "{name}");
    }
    let error = dump.write(path("one.json.br")).expect_err("not one of vt's").to_string();
    assert!(error.contains("give a name such as data.%p.json.br"), "{error}");
    let packed = fs::read(path("packed.1.json.br")).expect("a file");
    assert_eq!(unpack(&packed).expect("brotli"), fs::read(path("plain.1.json")).expect("a file"));
    let refused = |path: &Path, expected: &str, fault: Fault| {
        let error = Dump::read(path).expect_err(expected);
        assert!(error.to_string().contains(expected), "`{error}` does not contain `{expected}`");
        assert_eq!(error.fault(), fault, "{error}");
    };
    fs::write(path("broken.json.br"), b"Dear reader").expect("a file");
    refused(
        &path("broken.json.br"),
        "ends in .br, but is damaged or not compressed with brotli",
        Fault::Input,
    );
    // Some systems write a byte-order mark.
    fs::write(path("data.0.json"), format!("\u{feff}{RANK_0}")).expect("a file");
    assert_eq!(Dump::read(path("data.0.json")).expect("both ranks"), dump);
    assert_eq!(Dump::dropped_fields(path("data.%p.json")).expect("both ranks"), DROPPED_FIELDS);
    assert_eq!(Dump::dropped_fields(path("plain.1.json")).expect("both ranks"), [""; 0]);
    fs::write(path("data.3.json"), RANK_0).expect("a file");
    refused(&path("data.0.json"), "the file of rank 2, data.2.json, is missing", Fault::Usage);
    refused(&path("none.%p.json"), "the file of rank 0, none.0.json, is missing", Fault::Usage);
    fs::write(path("plain.2.json"), RANK_0).expect("a file");
    let error = dump.write(path("plain.%p.json")).expect_err("a third rank is there");
    assert!(
        error.to_string().contains("plain.2.json` exists and belongs to a dump with more ranks"),
        "{error}"
    );
    assert!(matches!(error, DatabaseError::Write { .. }) && error.fault() == Fault::Usage);
}

/// The types of the schema of vt (`scripts/LBDatafile_schema.py`), by key: integer, float, list, and so on.
fn conforms(key: &str, value: &serde_json::Value) -> bool {
    match key {
        "time" | "bytes" => value.is_f64(),
        "id" | "home" | "node" | "collection_id" | "messages" | "rank" | "count" => value.is_u64(),
        "migratable" => value.is_boolean(),
        "index" | "list" | "range" | "tasks" | "communications" | "phases" => {
            value.is_array() || value.is_object()
        }
        "type" | "resource" => value.is_string(),
        "entity" | "from" | "to" | "metadata" | "skipped" | "identical_to_previous" => value.is_object(),
        _ => false,
    }
}

/// Checks a document against the schema, except for the parts that the schema leaves open.
fn check_schema(value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(pairs) => {
            for (key, value) in pairs {
                if ["user_defined", "attributes", "rank_alpha"].contains(&key.as_str()) {
                    continue;
                }
                assert!(conforms(key, value), "{key}: {value}");
                check_schema(value);
            }
            if pairs.contains_key("messages") {
                // The schema requires this key for nodes, too.
                assert!(["from", "to"].iter().all(|end| pairs[*end]["migratable"].is_boolean()));
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(check_schema),
        _ => (),
    }
}

proptest! {
    #[test]
    fn any_dump_reads_back_up_to_what_vt_can_represent(mut dump in dump()) {
        // Steps of a run have the same ranks, and ascend.
        let pes = dump.steps.first().map_or(0, |database| database.pes.len());
        dump.steps.retain(|database| database.pes.len() == pes);
        dump.steps.sort_by_key(|database| database.step);
        dump.steps.dedup_by_key(|database| database.step);
        prop_assume!(pes > 0);
        let texts = encode(&dump);
        for RankText { text, .. } in &texts {
            check_schema(&serde_json::from_slice(text).expect("JSON"));
        }
        let read = decode(texts).expect("what was written");
        prop_assert!(is_same(&dump, &read), "{:?}\n{:?}", representable(&dump), representable(&read));
    }

    #[test]
    fn no_text_panics(at in 0..4000usize, word in "[0-9a-z\"{},:. \\[\\]-]{0,4}") {
        let _ = decode(texts(&[&mutated(RANK_0, at, &word), RANK_1]));
        let _ = decode(texts(&[&mutated(RANK_1, at, &word)]));
        let _ = unpack(mutated(RANK_1, at, &word).as_bytes());
    }
}

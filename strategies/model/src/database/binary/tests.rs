//! Tests of the binary format.

use super::*;
use crate::constraints::Constraints;
use crate::database::{Edge, End, Object, ObjectIndex, PeRecord, arbitrary};
use crate::frames::{checksum, checksums};
use proptest::prelude::*;

/// A dump of two steps with a high compression ratio.
fn sample() -> Dump {
    let object = |id| Object {
        id,
        array: 0,
        index: ObjectIndex::new(&[id as i32, -1]),
        load_seconds: 0.5,
        bytes: Some(4096),
        pe: (id % 2) as u32,
        migratable: true,
    };
    let edge = |i| Edge { from: End::Object(i), to: End::Pe(1), messages: 3, bytes: 512 };
    let step = |step| Database {
        step,
        arrays: vec!["blocks".into()],
        pes: vec![PeRecord::default(); 2],
        objects: (0..200).map(object).collect(),
        communication_recorded: true,
        edges: (0..200).map(edge).collect(),
        dangling_edges: 4,
        costs: None,
        constraints: Constraints::default(),
    };
    Dump {
        program: "stencil2d".into(),
        topology: "flat:2".into(),
        steps: vec![step(0), step(1)],
        ..Dump::default()
    }
}

#[track_caller]
fn check_refused(file: &[u8], expected: &str) {
    let error = decode(file).expect_err(expected).to_string();
    assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
}

/// A file of this version with a single frame or section of these lengths and contents, with correct checksums.
fn crafted(version: u32, lengths: [u64; 2], stored: &[u8]) -> Vec<u8> {
    let mut file = [&MAGIC[..], &version.to_le_bytes()].concat();
    lengths.iter().for_each(|length| file.extend(length.to_le_bytes()));
    match version {
        VERSION => file.extend(checksums(lengths, stored)),
        _ => file.extend(checksum(lengths, stored)),
    }
    file.extend(stored);
    file
}

proptest! {
    #[test]
    fn encoded_dumps_are_decoded_unchanged(dump in arbitrary::dump()) {
        let file = encode(&dump, VERSION).unwrap();
        prop_assert!(recognises(&file));
        prop_assert_eq!(decode(&file).unwrap(), dump);
    }
}

#[test]
fn older_versions_hold_the_same_content() {
    for version in 1..VERSION {
        let file = encode(&sample(), version).unwrap();
        assert_eq!(decode(&file).unwrap(), sample());
        let mut newer = file;
        newer[MAGIC.len()] = version as u8 + 1;
        assert!(decode(&newer).is_err());
    }
}

#[test]
fn older_versions_refuse_every_truncation() {
    let file = encode(&sample(), 2).unwrap();
    for length in 0..file.len() {
        check_refused(&file[..length], "is truncated");
    }
}

#[test]
fn the_whole_steps_of_every_prefix_are_read_and_the_rest_is_reported() {
    let (mut encoder, begin) = Encoder::new("stencil2d", "flat:2").unwrap();
    let parts: Vec<Vec<u8>> = sample().steps.iter().map(|step| encoder.step(step).unwrap()).collect();
    let file = [&begin[..], &parts.concat(), &encoder.end().unwrap()].concat();
    assert_eq!(file, encode(&sample(), VERSION).unwrap());
    let ends = [begin.len(), begin.len() + parts[0].len(), begin.len() + parts[0].len() + parts[1].len()];
    for length in 0..file.len() {
        let Some(steps) = ends.iter().rposition(|&end| end <= length) else {
            check_refused(&file[..length], "is truncated");
            continue;
        };
        let after = ["before its first step was complete", "after step 0", "after step 1"][steps];
        let ignored = count((length - ends[steps]) as u64, "byte");
        let warning = format!("was cut {after} (the run was interrupted?); {ignored} ignored");
        let dump = decode(&file[..length]).unwrap();
        assert_eq!(
            (&dump.steps[..], dump.warnings),
            (&sample().steps[..steps], vec![warning]),
            "{length} bytes"
        );
    }
}

#[test]
fn unknown_columns_are_skipped_with_a_warning() {
    let (mut encoder, mut file) = Encoder::new("stencil2d", "flat:2").unwrap();
    for database in &sample().steps {
        let mut step = NewSection::default();
        step.put("object_temperature", &vec![1.5f32; 200]).unwrap();
        step.put("communication_recorded", &true).unwrap();
        Columns::from_database(database).put(&mut step).unwrap();
        encoder.steps += 1;
        file.extend(encoder.part(&step).unwrap());
    }
    file.extend(encoder.end().unwrap());
    let dump = decode(&file).unwrap();
    assert_eq!(dump.steps, sample().steps);
    assert_eq!(
        dump.warnings,
        ["has fields that this program does not know and ignores: \"object_temperature\""]
    );
}

#[test]
fn refuses_missing_columns_and_wrong_ends() {
    let check = |change: fn(&mut Encoder) -> NewSection, expected: &str| {
        let (mut encoder, mut file) = Encoder::new("", "").unwrap();
        file.extend(encoder.step(&sample().steps[0]).unwrap());
        let section = change(&mut encoder);
        file.extend(encoder.part(&section).unwrap());
        check_refused(&file, expected);
    };
    check(|_| NewSection::default(), "the column `communication_recorded` is missing");
    let end = |encoder: &mut Encoder| {
        let mut end = NewSection::default();
        end.put(END, &(encoder.steps + 1)).unwrap();
        end
    };
    check(end, "it has 1 step, but its end states 2");
}

#[test]
fn refuses_every_flipped_bit() {
    let file = encode(&sample(), VERSION).unwrap();
    for bit in 0..8 * file.len() {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(decode(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn errors_name_newer_versions_and_text_transfers() {
    let file = encode(&sample(), VERSION).unwrap();
    let mut newer = file.clone();
    newer[MAGIC.len()] = 4;
    check_refused(&newer, "has format version 4, but this program reads versions up to 3");
    let mut zero = file.clone();
    zero[MAGIC.len()] = 0;
    check_refused(&zero, "the format version is 0");
    let as_text: Vec<u8> = file.iter().copied().filter(|&byte| byte != b'\r').collect();
    assert!(recognises(&as_text));
    check_refused(&as_text, "transferred in text mode");
    check_refused(&[&file[..], b"more"].concat(), "its end is followed by 4 bytes");
    check_refused(b"PK\x03\x04 something else", "does not begin like a database");
}

#[test]
fn refuses_hostile_lengths_before_allocating() {
    let crafted = |lengths, stored: &[u8]| crafted(2, lengths, stored);
    check_refused(&crafted([u64::MAX, 4], b"abcd"), "claims to be larger than it can be");
    check_refused(
        &crafted([Expansion::OLDER.limit(4) + 1, 4], b"abcd"),
        "claims to be larger than it can be",
    );
    check_refused(&crafted([4, u64::MAX], b"abcd"), "is truncated");
    check_refused(&crafted([40, 4], b"abcd"), "cannot be decompressed");
    // A sequence of 2^64-1 elements in an intact frame.
    check_refused(&crafted([8, 8], &[0xff; 8]), "cannot be decoded");
    let long_name = [&0x7fff_ffff_ffff_fff0u64.to_le_bytes()[..], b"short"].concat();
    let length = long_name.len() as u64;
    check_refused(&crafted([length, length], &long_name), "cannot be decoded");
    let more_inside = zstd::bulk::compress(&[7; 100], 1).unwrap();
    check_refused(&crafted([50, more_inside.len() as u64], &more_inside), "cannot be decompressed");
    let less_inside = zstd::bulk::compress(&[0; 24], 1).unwrap();
    check_refused(&crafted([99, less_inside.len() as u64], &less_inside), "longer than its contents");
}

#[test]
fn sections_refuse_hostile_lengths_before_allocating() {
    let crafted = |lengths, stored: &[u8]| crafted(VERSION, lengths, stored);
    check_refused(&crafted([u64::MAX, 4], b"abcd"), "claims to be larger than it can be");
    check_refused(&crafted([4, u64::MAX], b"abcd"), "is truncated");
    check_refused(&crafted([40, 4], b"abcd"), "cannot be decompressed");
    for column in [&[0xff; 8][..], &[1, 0, 0], &[1, 0, 0, 0, 0, 0, 0, 0, b'a', 9, 0, 0, 0, 0, 0, 0, 0]] {
        let length = column.len() as u64;
        check_refused(&crafted([length, length], column), "a column is longer than its frame");
    }
    let less_inside = zstd::bulk::compress(&[0; 24], 1).unwrap();
    check_refused(&crafted([99, less_inside.len() as u64], &less_inside), "longer than its contents");
    // A sequence of 2^64-1 elements in an intact column.
    let mut header = NewSection::default();
    header.put("program", &u64::MAX).unwrap();
    let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    let mut expansion = Expansion::NEW;
    header.push(&mut file, &mut expansion).unwrap();
    check_refused(&file, "cannot be decoded");
}

#[test]
fn data_with_a_too_high_compression_ratio_is_stored_uncompressed() {
    let idle = Database { pes: vec![PeRecord::default(); 600_000], ..Database::default() };
    let dump = Dump { steps: vec![idle], ..Dump::default() };
    let file = encode(&dump, VERSION).unwrap();
    assert!(file.len() as u64 > Expansion::NEW.limit(0));
    assert!(decode(&file).unwrap() == dump);
}

#[test]
fn refuses_inconsistent_columns() {
    let check = |change: fn(&mut Columns), expected: &str| {
        let mut columns = Columns::from_database(&sample().steps[0]);
        change(&mut columns);
        let (mut encoder, mut file) = Encoder::new("", "").unwrap();
        let mut step = NewSection::default();
        step.put("communication_recorded", &true).unwrap();
        columns.put(&mut step).unwrap();
        file.extend(encoder.part(&step).unwrap());
        check_refused(&file, expected);
    };
    check(|c| c.pe_available.truncate(1), "columns have different lengths");
    check(|c| c.object_pe.truncate(1), "columns have different lengths");
    check(|c| c.object_coordinates.truncate(1), "columns have different lengths");
    check(|c| c.object_bytes.push(1), "columns have different lengths");
    check(|c| c.edge_kinds.push(1), "columns have different lengths");
    check(|c| c.object_dimensions[0] = 7, "more than 6 dimensions");
    check(|c| c.array_names[0] = vec![0xff], "is not UTF-8");
    check(|c| c.object_pe[3] = 9, "object 3 is on PE 9, but there are 2 PEs (0 and 1)");
}

#[test]
fn older_files_that_compress_better_than_new_ones_may_are_read() {
    // A ratio between that of new and that of older files.
    let pe = |at: u32| PeRecord {
        idle_seconds: if at.is_multiple_of(40) { f64::from(at) } else { 0.0 },
        ..PeRecord::default()
    };
    let pes = (0..600_000).map(pe).collect();
    let idle = Database { pes, communication_recorded: true, ..Database::default() };
    let dump = Dump { steps: vec![idle], ..Dump::default() };
    let file = encode(&dump, 2).unwrap();
    assert!((file.len() as u64) < Expansion::NEW.limit(0) / 64, "{} bytes", file.len());
    assert!(decode(&file).unwrap() == dump);
}

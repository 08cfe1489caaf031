//! Our own database file: columns, compressed and checksummed.
//!
//! ```text
//! file    8 bytes MAGIC, u32 format version, frame of Header, one frame per step
//! step    Columns, and one byte: whether communication was recorded (in version 1 it was, and there is
//!         no such byte)
//! frame   u64 decoded length, u64 stored length, u32 CRC-32 of both lengths and the stored bytes,
//!         stored bytes: the decoded ones compressed by zstd, or themselves if the lengths are equal
//! ```
//! All integers are little endian; the decoded bytes are bincode's legacy layout. A step is a column per
//! field rather than a row per object, because like numbers side by side compress by a third better and
//! decode four times faster.
//!
//! A reader trusts nothing: the checksum finds damage, lengths are compared with what is there before
//! anything is allocated, and a decoded database must pass
//! [`Database::check`](super::Database::check).

use serde::{Deserialize, Serialize};

use super::Dump;
use crate::files::Refused;
use crate::frames::{DECODED_FLOOR_BYTES, damaged, push_frame, take_frame, text, truncated};
use columns::Columns;

mod columns;

/// What every file begins with. The high bit, the line ends and the end-of-file mark show what a
/// transfer as text does to them.
pub const MAGIC: [u8; 8] = *b"\x89EQLB\r\n\x1a";

/// The version of the format that is written, and the newest that is read.
pub const VERSION: u32 = 2;

/// What stands before the steps.
///
/// Text is a sequence of bytes, not a string, because bincode allocates a string's length unseen.
#[derive(Serialize, Deserialize)]
struct Header {
    program: Vec<u8>,
    topology: Vec<u8>,
    steps: u64,
}

/// The bytes of a file that holds `dump`.
///
/// # Errors
/// When zstd refuses, which it does only without memory.
pub fn encode(dump: &Dump) -> Result<Vec<u8>, Refused> {
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    let header = Header {
        program: dump.program.clone().into_bytes(),
        topology: dump.topology.clone().into_bytes(),
        steps: dump.steps.len() as u64,
    };
    let mut floor = DECODED_FLOOR_BYTES;
    push_frame(&mut file, &header, &mut floor)?;
    for database in &dump.steps {
        let step = (Columns::from_database(database), database.communication_recorded);
        push_frame(&mut file, &step, &mut floor)?;
    }
    Ok(file)
}

/// Whether a file that begins with `bytes` is one of ours, whatever else is wrong with it.
pub fn recognises(bytes: &[u8]) -> bool {
    // The first five bytes survive being sent as text.
    bytes.starts_with(&MAGIC[..5])
}

/// The dump in the bytes of a file.
///
/// # Errors
/// When the file is truncated, damaged, of a newer version, or not ours.
pub fn decode(bytes: &[u8]) -> Result<Dump, Refused> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| {
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
            return truncated(bytes.len(), MAGIC.len() + 4);
        }
        Refused("does not begin as a database; it may have been sent as text, so copy it as binary".into())
    })?;
    let (version, mut rest) =
        rest.split_first_chunk::<4>().ok_or_else(|| truncated(bytes.len(), MAGIC.len() + 4))?;
    let version = u32::from_le_bytes(*version);
    if version > VERSION {
        return Err(Refused(format!(
            "has format version {version}, and this program reads up to version {VERSION}; \
             read it with a newer equipoise, or have that one convert it to JSON"
        )));
    }
    if version == 0 {
        return Err(damaged("the format version is 0"));
    }
    let mut floor = DECODED_FLOOR_BYTES;
    let header: Header = take_frame(&mut rest, bytes.len(), &mut floor)?;
    let mut dump =
        Dump { program: text(header.program)?, topology: text(header.topology)?, steps: Vec::new() };
    for _ in 0..header.steps {
        let (columns, communication_recorded): (Columns, bool) = match version {
            1 => (take_frame(&mut rest, bytes.len(), &mut floor)?, true),
            _ => take_frame(&mut rest, bytes.len(), &mut floor)?,
        };
        let database = columns.into_database(communication_recorded)?;
        database.check().map_err(|e| Refused(format!("is inconsistent: {e}")))?;
        dump.steps.push(database);
    }
    if !rest.is_empty() {
        return Err(damaged(&format!("{} bytes follow its end", rest.len())));
    }
    Ok(dump)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, Edge, End, Object, ObjectIndex, PeRecord, arbitrary};
    use crate::frames::checksum;
    use crate::frames::{DECODED_RATIO, plausible};
    use proptest::prelude::*;

    /// A dump of two steps that compresses well.
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
        };
        Dump { program: "stencil2d".into(), topology: "flat:2".into(), steps: vec![step(0), step(1)] }
    }

    #[track_caller]
    fn check_refused(file: &[u8], expected: &str) {
        let error = decode(file).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    /// A file whose only frame has these lengths, a right checksum and this content.
    fn crafted(lengths: [u64; 2], stored: &[u8]) -> Vec<u8> {
        let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        lengths.iter().for_each(|length| file.extend(length.to_le_bytes()));
        file.extend(checksum(lengths, stored).to_le_bytes());
        file.extend(stored);
        file
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(dump in arbitrary::dump()) {
            let file = encode(&dump).unwrap();
            prop_assert!(recognises(&file));
            prop_assert_eq!(decode(&file).unwrap(), dump);
        }
    }

    /// A file as version 1 wrote it.
    fn version_1(dump: &Dump) -> Vec<u8> {
        let mut file = [&MAGIC[..], &1u32.to_le_bytes()].concat();
        let (program, topology) = (dump.program.clone().into_bytes(), dump.topology.clone().into_bytes());
        let header = Header { program, topology, steps: dump.steps.len() as u64 };
        let mut floor = DECODED_FLOOR_BYTES;
        push_frame(&mut file, &header, &mut floor).unwrap();
        for database in &dump.steps {
            push_frame(&mut file, &Columns::from_database(database), &mut floor).unwrap();
        }
        file
    }

    #[test]
    fn a_file_of_version_1_is_read_as_one_whose_communication_was_recorded() {
        assert_eq!(decode(&version_1(&sample())).unwrap(), sample());
        let mut newer = version_1(&sample());
        newer[MAGIC.len()] = 2;
        check_refused(&newer, "cannot be decoded");
    }

    #[test]
    fn every_truncation_is_refused() {
        let file = encode(&sample()).unwrap();
        for length in 0..file.len() {
            check_refused(&file[..length], "is truncated");
        }
    }

    #[test]
    fn every_flipped_bit_is_refused() {
        let file = encode(&sample()).unwrap();
        for bit in 0..8 * file.len() {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_newer_or_mangled_file_is_named_as_such() {
        let file = encode(&sample()).unwrap();
        let mut newer = file.clone();
        newer[MAGIC.len()] = 3;
        check_refused(&newer, "has format version 3, and this program reads up to version 2");
        let mut zero = file.clone();
        zero[MAGIC.len()] = 0;
        check_refused(&zero, "the format version is 0");
        let as_text: Vec<u8> = file.iter().copied().filter(|&byte| byte != b'\r').collect();
        assert!(recognises(&as_text));
        check_refused(&as_text, "sent as text");
        check_refused(&[&file[..], b"more"].concat(), "4 bytes follow its end");
        check_refused(b"PK\x03\x04 something else", "does not begin as a database");
    }

    #[test]
    fn hostile_lengths_are_refused_before_anything_is_allocated() {
        check_refused(&crafted([u64::MAX, 4], b"abcd"), "claims to be larger than it can be");
        check_refused(
            &crafted([DECODED_FLOOR_BYTES + 4 * DECODED_RATIO + 1, 4], b"abcd"),
            "claims to be larger than it can be",
        );
        check_refused(&crafted([4, u64::MAX], b"abcd"), "is truncated");
        check_refused(&crafted([40, 4], b"abcd"), "cannot be decompressed");
        // A sequence that claims 2^64-1 elements, inside a frame that is whole.
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
    fn what_compresses_beyond_belief_is_stored_as_it_is_and_read_back() {
        let idle = Database { pes: vec![PeRecord::default(); 600_000], ..Database::default() };
        let dump = Dump { steps: vec![idle], ..Dump::default() };
        let file = encode(&dump).unwrap();
        assert!(file.len() as u64 > DECODED_FLOOR_BYTES);
        assert!(decode(&file).unwrap() == dump);
    }

    #[test]
    fn all_frames_of_a_file_share_one_floor() {
        let mut floor = DECODED_FLOOR_BYTES;
        assert!(plausible(DECODED_FLOOR_BYTES, 1, &mut floor));
        assert!(!plausible(DECODED_FLOOR_BYTES, 1, &mut floor), "the second is beyond what is left");
        assert!(plausible(2 * DECODED_RATIO, 1, &mut floor), "a refusal costs nothing");
        assert_eq!(floor, 0);
    }

    #[test]
    fn columns_of_different_lengths_and_lost_objects_are_refused() {
        let check = |spoil: fn(&mut Columns), expected: &str| {
            let Dump { program, topology, steps } = sample();
            let mut columns = Columns::from_database(&steps[0]);
            spoil(&mut columns);
            let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
            let header = Header { program: program.into(), topology: topology.into(), steps: 1 };
            let mut floor = DECODED_FLOOR_BYTES;
            push_frame(&mut file, &header, &mut floor).unwrap();
            push_frame(&mut file, &(columns, true), &mut floor).unwrap();
            check_refused(&file, expected);
        };
        check(|c| c.pe_available.truncate(1), "columns have different lengths");
        check(|c| c.object_pe.truncate(1), "columns have different lengths");
        check(|c| c.object_coordinates.truncate(1), "columns have different lengths");
        check(|c| c.object_bytes.push(1), "columns have different lengths");
        check(|c| c.edge_kinds.push(1), "columns have different lengths");
        check(|c| c.object_dimensions[0] = 7, "more dimensions than there can be");
        check(|c| c.array_names[0] = vec![0xff], "is not UTF-8");
        check(|c| c.object_pe[3] = 9, "object 3 is on PE 9, and there are only 2");
    }
}

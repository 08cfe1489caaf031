//! LB dumps of Charm++ (`+LBDump`): records of existing programs can be balanced here.
//!
//! A dump is a packed little-endian memory image, which Charm++ does not document. This module reads the layouts of 8.x
//! and 6.10. Both have the same version number; they differ in what precedes lists:
//!
//! ```text
//! both    16 bytes that describe the machine's numbers, i32 version = 3, i32 PEs
//! 8.x     i32 migratable objects
//!         u64 n, n PEs; u64 n, n objects; u64 n, n x i32 PE of the object; u64 n, n communications
//! 6.10    i32 PEs, i32 objects, i32 migratable objects, i32 communications
//!         PEs; objects, each behind an i32 8 and 8 bytes; i32 PE of each object;
//!         i32 new PE of each object; communications
//! PE      f64 wall, f64 idle, f64 background, f64 speed, u8 available, i32 objects, i32 number
//! object  i32 array, i32 0, u64 id, i32 position, f64 wall, u8 migratable, u8, u16
//! communication
//!         i32 sending PE (-1: an object), i32 array, u64 id,
//!         u8 kind and receiver (1: i32 PE; 2: i32 array, u64 id, i32 its last PE;
//!                               3: i32 n, n x (i32 array, u64 id)),
//!         i32 messages, i32 bytes
//! ```
//!
//! Conversion:
//! - an id is unique only in its array, so the array number is added above bit 48;
//! - a multicast (kind 3) becomes one edge per receiver, each with the messages and bytes of the record;
//! - a communication with an unknown object is counted as dangling and dropped;
//! - loads are wall seconds on the object's PE; multiplied by the relative speed, they are seconds at the fastest PE's
//!   speed;
//! - Charm++ counts in an `int`, so negative numbers of messages or bytes are numbers above 2^31;
//! - negative idle and background times, caused by clock noise, are set to zero;
//! - the size of an object (the last u16) is ignored, because Charm++ does not initialise it.

use rustc_hash::FxHashMap;

use super::{Database, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use crate::files::Refused;
use crate::memory;
use crate::table::{count, there_are};

/// The first bytes of a dump of a 64-bit little-endian machine: a magic number, then the sizes of its number types.
const MACHINE: [u8; 16] = [0x10, 0xea, 0xbd, 0xf9, 1, 1, 2, 4, 8, 16, 1, 4, 8, 1, 1, 8];

/// The length of the magic number in [`MACHINE`].
const MARK_BYTES: usize = 4;

/// The version of both layouts.
const VERSION: i32 = 3;

/// In place of the sending PE: the sender is an object.
const FROM_OBJECT: i32 = -1;

/// The two layouts.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    /// Charm++ 8.x.
    Eight,
    /// Charm++ 6.10.
    Six,
}

/// Whether a file that begins with `bytes` is a Charm++ dump.
pub fn recognises(bytes: &[u8]) -> bool {
    bytes.starts_with(&MACHINE[..MARK_BYTES])
}

/// Decodes a file, which contains a single step with the number `step`.
///
/// # Errors
/// If the file is truncated, damaged, or in an unknown layout.
pub fn decode(bytes: &[u8], step: u64) -> Result<Dump, Refused> {
    let mut reader = Reader { rest: bytes, total: bytes.len() };
    let machine: [u8; MACHINE.len()] = reader.chunk()?;
    if machine != MACHINE {
        return Err(Refused(
            "is a Charm++ dump of a machine with other number types (big-endian or 32 bits); \
             make the dump on a 64-bit little-endian machine"
                .into(),
        ));
    }
    let version = reader.i32()?;
    if version != VERSION {
        return Err(Refused(format!(
            "is a Charm++ dump of version {version}, but this program reads version {VERSION}; \
             make the dump with +LBVersion {VERSION}"
        )));
    }
    let pes = reader.i32()?;
    let layout = reader.layout(pes);
    let mut database = read_body(&mut reader, layout, pes)?;
    if !reader.rest.is_empty() {
        return Err(damaged(&format!("its end is followed by {}", count(reader.rest.len() as u64, "byte"))));
    }
    database.step = step;
    database.check().map_err(|e| Refused(format!("is a damaged Charm++ dump: {e}")))?;
    let program = match layout {
        Layout::Eight => "Charm++ 8.x program",
        Layout::Six => "Charm++ 6.10 program",
    };
    Ok(Dump { program: program.into(), steps: vec![database], ..Dump::default() })
}

fn damaged(what: &str) -> Refused {
    Refused(format!("is a damaged Charm++ dump: {what}; copy it again, or have the program dump it again"))
}

/// The error for a list that does not fit into memory.
fn short(reason: String) -> Refused {
    Refused(format!("cannot be read: {reason}"))
}

fn read_body(reader: &mut Reader, layout: Layout, pes: i32) -> Result<Database, Refused> {
    let counts = if layout == Layout::Six {
        let [procs, objects, _migratable, records] =
            [reader.i32()?, reader.i32()?, reader.i32()?, reader.i32()?];
        Some([procs, objects, records].map(|n| u64::try_from(n).unwrap_or(u64::MAX)))
    } else {
        let _migratable = reader.i32()?;
        None
    };
    let [procs, objects, records] = counts.map_or([None; 3], |counts| counts.map(Some));

    let n = reader.count(procs, PE_BYTES)?;
    if i32::try_from(n) != Ok(pes) {
        return Err(damaged(&format!("the header has {pes} PEs, but the list has {n}")));
    }
    let mut database = Database::default();
    for _ in 0..n {
        database.pes.push(read_pe(reader)?);
    }
    scale_speeds(&mut database.pes);

    let n = reader.count(objects, OBJECT_BYTES)?;
    let mut positions = FxHashMap::default();
    let mut arrays = FxHashMap::default();
    for position in 0..n {
        let (key, object) = read_object(reader, layout, &mut arrays)?;
        positions.insert(key, position as u32);
        memory::push(&mut database.objects, object).map_err(short)?;
    }
    database.arrays = vec![String::new(); arrays.len()];
    for (array, position) in arrays {
        database.arrays[position as usize] = format!("array {array}");
    }

    let placed = reader.count(Some(n as u64).filter(|_| layout == Layout::Six), 4)?;
    if placed != n {
        let (objects, placed) = (count(n as u64, "object"), count(placed as u64, "object"));
        return Err(damaged(&format!("it has {objects}, but PEs for {placed}")));
    }
    for object in &mut database.objects {
        let pe = reader.i32()?;
        object.pe = u32::try_from(pe).map_err(|_| damaged(&format!("an object is on PE {pe}")))?;
        // The consistency check at the end rejects unknown PEs.
        object.load_seconds *= database.pes.get(pe as usize).map_or(1.0, |record| record.speed);
    }
    if layout == Layout::Six {
        for _ in 0..n {
            reader.i32()?;
        }
    }

    for _ in 0..reader.count(records, RECORD_BYTES)? {
        read_communication(reader, &positions, &mut database)?;
    }
    Ok(database)
}

/// The size of a PE in both layouts, in bytes.
const PE_BYTES: usize = 41;

/// The smallest size of an object in both layouts, in bytes.
const OBJECT_BYTES: usize = 32;

/// The smallest size of a communication in both layouts, in bytes.
const RECORD_BYTES: usize = 29;

fn read_pe(reader: &mut Reader) -> Result<PeRecord, Refused> {
    let without_noise = |seconds: f64| if seconds.is_finite() && seconds < 0.0 { 0.0 } else { seconds };
    let record = PeRecord {
        wall_seconds: reader.f64()?,
        idle_seconds: without_noise(reader.f64()?),
        background_seconds: without_noise(reader.f64()?),
        speed: reader.f64()?,
        available: reader.u8()? != 0,
    };
    let (_objects, _number) = (reader.i32()?, reader.i32()?);
    Ok(record)
}

/// Normalises speeds to the fastest PE; measured speeds of Charm++ have an arbitrary unit.
fn scale_speeds(pes: &mut [PeRecord]) {
    let fastest = pes.iter().map(|pe| pe.speed).fold(0.0, f64::max);
    if fastest.is_finite() && fastest > 0.0 {
        pes.iter_mut().for_each(|pe| pe.speed /= fastest);
    }
}

/// The identity of an object in a dump: its array and its id in the array.
type Key = (i32, u64);

/// Reads an object; `arrays` maps the array numbers seen so far to positions.
fn read_object(
    reader: &mut Reader,
    layout: Layout,
    arrays: &mut FxHashMap<i32, u32>,
) -> Result<(Key, Object), Refused> {
    if layout == Layout::Six {
        let pointer_bytes = reader.i32()?;
        if pointer_bytes != 8 {
            return Err(damaged(&format!("an object begins with {pointer_bytes}, not with 8")));
        }
        reader.chunk::<8>()?;
    }
    let (array, _handle, id, _position) = (reader.i32()?, reader.i32()?, reader.u64()?, reader.i32()?);
    let load_seconds = reader.f64()?;
    let (migratable, _asynchronous, _bytes) = (reader.u8()? != 0, reader.u8()?, reader.chunk::<2>()?);
    let next = arrays.len() as u32;
    let known = *arrays.entry(array).or_insert(next);
    let object = Object {
        id: unique_id(array, id),
        array: known,
        index: ObjectIndex::default(),
        load_seconds,
        bytes: None,
        pe: 0,
        migratable,
    };
    Ok(((array, id), object))
}

/// The bits of combined ids below the number of the array.
const ID_BITS: u32 = 48;

/// Combines an array number and an id in the array into one id.
///
/// Both are small in practice (an id has the creating PE above bit 16). If one does not fit, the plain id is used; the
/// consistency check rejects the file if ids collide.
fn unique_id(array: i32, id: u64) -> u64 {
    match u16::try_from(array) {
        Ok(array) if id < 1 << ID_BITS => u64::from(array) << ID_BITS | id,
        _ => id,
    }
}

/// The id in its array of an object of this combined id, of an array with this name; the id itself in files of others.
pub fn id_in_array(array: &str, id: u64) -> u64 {
    if array == format!("array {}", id >> ID_BITS) { id & ((1 << ID_BITS) - 1) } else { id }
}

fn read_communication(
    reader: &mut Reader,
    positions: &FxHashMap<Key, u32>,
    database: &mut Database,
) -> Result<(), Refused> {
    let find = |key: Key| positions.get(&key).map(|&position| End::Object(position));
    let pes = database.pes.len();
    let known_pe = |pe: i32| match u32::try_from(pe) {
        Ok(pe) if (pe as usize) < pes => Ok(End::Pe(pe)),
        _ => Err(damaged(&format!("a communication is with PE {pe}, but {}", there_are(pes, "PE")))),
    };
    let (pe, sender) = (reader.i32()?, (reader.i32()?, reader.u64()?));
    let from = if pe == FROM_OBJECT { find(sender) } else { Some(known_pe(pe)?) };
    let first = database.edges.len();
    let mut add = |to: Option<End>| match (from, to) {
        (Some(from), Some(to)) => {
            memory::push(&mut database.edges, Edge { from, to, messages: 0, bytes: 0 }).map_err(short)
        }
        _ => {
            database.dangling_edges += 1;
            Ok(())
        }
    };
    match reader.u8()? {
        1 => add(Some(known_pe(reader.i32()?)?))?,
        2 => {
            add(find((reader.i32()?, reader.u64()?)))?;
            let _last_pe = reader.i32()?;
        }
        3 => {
            let receivers = u64::try_from(reader.i32()?).unwrap_or(u64::MAX);
            for _ in 0..reader.count(Some(receivers), 12)? {
                add(find((reader.i32()?, reader.u64()?)))?;
            }
        }
        kind => return Err(damaged(&format!("a communication has the unknown kind {kind}"))),
    }
    let [messages, bytes] = [reader.i32()?, reader.i32()?].map(|n| u64::from(n.cast_unsigned()));
    for edge in &mut database.edges[first..] {
        (edge.messages, edge.bytes) = (messages, bytes);
    }
    Ok(())
}

/// The unread rest of a file.
struct Reader<'a> {
    rest: &'a [u8],
    total: usize,
}

impl Reader<'_> {
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], Refused> {
        let (chunk, rest) = self.rest.split_first_chunk().ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(*chunk)
    }

    fn u8(&mut self) -> Result<u8, Refused> {
        self.chunk().map(u8::from_le_bytes)
    }

    fn i32(&mut self) -> Result<i32, Refused> {
        self.chunk().map(i32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Refused> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64, Refused> {
        self.chunk().map(f64::from_le_bytes)
    }

    /// The length of a list of records of at least `record_bytes` bytes: `given`, or else the next u64.
    fn count(&mut self, given: Option<u64>, record_bytes: usize) -> Result<usize, Refused> {
        let count = match given {
            Some(count) => count,
            None => self.u64()?,
        };
        let most = self.rest.len() / record_bytes;
        usize::try_from(count).ok().filter(|&count| count <= most).ok_or_else(|| self.truncated())
    }

    /// Detects 8.x: after the number of PEs follow an i32 and the number of PEs again, as a u64.
    fn layout(&self, pes: i32) -> Layout {
        let again = self.rest.get(4..12).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        if again.is_some() && again == u64::try_from(pes).ok() { Layout::Eight } else { Layout::Six }
    }

    fn truncated(&self) -> Refused {
        Refused(format!(
            "is a truncated or damaged Charm++ dump: the record at byte {} extends beyond its end at byte {}; \
             copy it again, or have the program dump it again",
            self.total - self.rest.len(),
            self.total
        ))
    }
}

#[cfg(test)]
mod tests;

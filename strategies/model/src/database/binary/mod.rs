//! The binary format of databases: compressed and checksummed columns.
//!
//! ```text
//! file    8 bytes MAGIC, u32 format version, section of the header, one section per step, section of the end
//! header  columns `program` and `topology`
//! step    column `communication_recorded`, those of Columns, and as JSON column `costs`, if they are known, and column
//!         `constraints`, if there are any
//! end     column `steps`: the number of steps
//! ```
//! [`crate::frames`] describes sections. Steps are stored by column rather than by row, because adjacent similar numbers
//! compress a third better and decode four times faster.
//!
//! A run appends a section per step. Without the section of the end the file was cut; a reader takes the whole steps and
//! says so ([`Dump::warnings`]). Columns that a reader does not know are skipped.
//!
//! Versions 1 and 2 have no costs and no constraints, and frames without columns: a Header with the number of steps, then Columns per step, in version 2
//! with one byte more, whether communication was recorded. In version 1 communication was always recorded.
//!
//! A reader does not trust the file: checksums detect damage, lengths are validated before memory is allocated, and the
//! decoded database must pass [`Database::check`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Database, Dump};
use crate::decompress::Expansion;
use crate::files::Refused;
use crate::frames::{Ignored, NewSection, Section, cut, damaged, push_frame, take_frame, text, truncated};
use crate::table::count;
use columns::Columns;

mod columns;

/// The first bytes of every file. The high bit, the line ends and the end-of-file mark reveal a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x89EQLB\r\n\x1a";

/// The version written, and the newest version read.
pub const VERSION: u32 = 3;

/// The column of the costs of a step.
const COSTS: &str = "costs";

/// The column of the constraints of a step.
const CONSTRAINTS: &str = "constraints";

/// The column of the end of a file.
const END: &str = "steps";

/// The frame before the steps in versions 1 and 2.
///
/// Text is stored as a sequence of bytes: for a string, bincode allocates the stated length unchecked.
#[derive(Serialize, Deserialize)]
struct Header {
    program: Vec<u8>,
    topology: Vec<u8>,
    steps: u64,
}

/// Encodes a file step by step.
pub struct Encoder {
    expansion: Expansion,
    steps: u64,
}

impl Encoder {
    /// The encoder, and the beginning of the file.
    ///
    /// # Errors
    /// If zstd runs out of memory.
    pub fn new(program: &str, topology: &str) -> Result<(Encoder, Vec<u8>), Refused> {
        let mut encoder = Encoder { expansion: Expansion::NEW, steps: 0 };
        let mut header = NewSection::default();
        header.put("program", &program.as_bytes())?;
        header.put("topology", &topology.as_bytes())?;
        let mut file = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
        header.push(&mut file, &mut encoder.expansion)?;
        Ok((encoder, file))
    }

    /// The next part of the file: a step.
    ///
    /// # Errors
    /// If zstd runs out of memory.
    pub fn step(&mut self, database: &Database) -> Result<Vec<u8>, Refused> {
        let mut step = NewSection::default();
        step.put("communication_recorded", &database.communication_recorded)?;
        Columns::from_database(database).put(&mut step)?;
        if let Some(costs) = &database.costs {
            put_json(&mut step, COSTS, costs)?;
        }
        if !database.constraints.is_empty() {
            put_json(&mut step, CONSTRAINTS, &database.constraints)?;
        }
        self.steps += 1;
        self.part(&step)
    }

    /// The end of the file.
    ///
    /// # Errors
    /// If zstd runs out of memory.
    pub fn end(mut self) -> Result<Vec<u8>, Refused> {
        let mut end = NewSection::default();
        end.put(END, &self.steps)?;
        self.part(&end)
    }

    fn part(&mut self, section: &NewSection) -> Result<Vec<u8>, Refused> {
        let mut part = Vec::new();
        section.push(&mut part, &mut self.expansion)?;
        Ok(part)
    }
}

/// Encodes `dump` in a version from 1 to [`VERSION`].
///
/// # Errors
/// If the version cannot hold the content, or zstd runs out of memory.
pub fn encode(dump: &Dump, version: u32) -> Result<Vec<u8>, Refused> {
    if version == VERSION {
        let (mut encoder, mut file) = Encoder::new(&dump.program, &dump.topology)?;
        for database in &dump.steps {
            file.extend(encoder.step(database)?);
        }
        file.extend(encoder.end()?);
        return Ok(file);
    }
    let mut file = [&MAGIC[..], &version.to_le_bytes()].concat();
    let (program, topology) = (dump.program.clone().into_bytes(), dump.topology.clone().into_bytes());
    let header = Header { program, topology, steps: dump.steps.len() as u64 };
    let mut expansion = Expansion::OLDER;
    push_frame(&mut file, &header, &mut expansion)?;
    for database in &dump.steps {
        let columns = Columns::from_database(database);
        match version {
            1 => push_frame(&mut file, &columns, &mut expansion)?,
            _ => push_frame(&mut file, &(columns, database.communication_recorded), &mut expansion)?,
        }
    }
    Ok(file)
}

/// Whether a file that begins with `bytes` is in this format, possibly damaged.
pub fn recognises(bytes: &[u8]) -> bool {
    // The first five bytes survive a transfer in text mode.
    bytes.starts_with(&MAGIC[..5])
}

/// Decodes a file.
///
/// # Errors
/// If the file is cut before its first step, damaged, in a newer version, or not in this format. A file of version 1 or
/// 2 must not be cut at all.
pub fn decode(bytes: &[u8]) -> Result<Dump, Refused> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or_else(|| {
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(bytes) {
            return truncated(bytes.len(), MAGIC.len() + 4);
        }
        Refused(
            "does not begin like a database; it may have been transferred in text mode, so transfer it \
                 again in binary mode"
                .into(),
        )
    })?;
    let (version, rest) =
        rest.split_first_chunk::<4>().ok_or_else(|| truncated(bytes.len(), MAGIC.len() + 4))?;
    match u32::from_le_bytes(*version) {
        0 => Err(damaged("the format version is 0")),
        version @ 1..=2 => decode_older(version, rest, bytes.len()),
        VERSION => decode_sections(rest, bytes.len()),
        version => Err(Refused(format!(
            "has format version {version}, but this program reads versions up to {VERSION}; read it with a newer \
             equipoise, or have the newer one convert it (`equipoise convert --to-version {VERSION}`)"
        ))),
    }
}

fn decode_sections(mut rest: &[u8], file_bytes: usize) -> Result<Dump, Refused> {
    let mut expansion = Expansion::NEW;
    let mut ignored = Ignored::default();
    let header = Section::next(&mut rest, file_bytes, &mut expansion)?;
    // A cut file without a header is of no use: its program is unknown, and it has no step.
    let mut header = header.ok_or_else(|| truncated(file_bytes, file_bytes + 1))?;
    let mut dump = Dump {
        program: text(header.take("program")?)?,
        topology: text(header.take("topology")?)?,
        ..Dump::default()
    };
    header.list_ignored(&mut ignored);
    loop {
        let Some(mut section) = Section::next(&mut rest, file_bytes, &mut expansion)? else {
            let after = match dump.steps.last() {
                Some(database) => format!("after step {}", database.step),
                None => "before its first step was complete".into(),
            };
            dump.warnings.push(cut(&after, rest.len()));
            break;
        };
        if section.has(END) {
            check_end(section.take(END)?, dump.steps.len() as u64, rest)?;
            section.list_ignored(&mut ignored);
            break;
        }
        let communication_recorded = section.take("communication_recorded")?;
        let columns = Columns::take(&mut section)?;
        let mut database = columns.into_database(communication_recorded)?;
        database.costs = take_json(&mut section, COSTS)?;
        database.constraints = take_json(&mut section, CONSTRAINTS)?.unwrap_or_default();
        section.list_ignored(&mut ignored);
        dump.steps.push(checked(database)?);
    }
    dump.warnings.extend(ignored.clause());
    Ok(dump)
}

/// Checks the end mark against the number of steps read and the bytes behind it.
fn check_end(stated: u64, steps: u64, rest: &[u8]) -> Result<(), Refused> {
    if stated != steps {
        return Err(damaged(&format!("it has {}, but its end states {stated}", count(steps, "step"))));
    }
    if !rest.is_empty() {
        return Err(damaged(&format!("its end is followed by {}", count(rest.len() as u64, "byte"))));
    }
    Ok(())
}

fn decode_older(version: u32, mut rest: &[u8], file_bytes: usize) -> Result<Dump, Refused> {
    let mut expansion = Expansion::OLDER;
    let header: Header = take_frame(&mut rest, file_bytes, &mut expansion)?;
    let mut dump =
        Dump { program: text(header.program)?, topology: text(header.topology)?, ..Dump::default() };
    for _ in 0..header.steps {
        let (columns, communication_recorded): (Columns, bool) = match version {
            1 => (take_frame(&mut rest, file_bytes, &mut expansion)?, true),
            _ => take_frame(&mut rest, file_bytes, &mut expansion)?,
        };
        dump.steps.push(checked(columns.into_database(communication_recorded)?)?);
    }
    check_end(header.steps, dump.steps.len() as u64, rest)?;
    Ok(dump)
}

/// Puts a document into a column of its name.
fn put_json(section: &mut NewSection, name: &str, document: &impl Serialize) -> Result<(), Refused> {
    let text =
        serde_json::to_vec(document).map_err(|error| Refused(format!("cannot be written: {error}")))?;
    section.put(name, &text)
}

/// The document in the column of this name, if there is one.
fn take_json<T: DeserializeOwned>(section: &mut Section, name: &str) -> Result<Option<T>, Refused> {
    if !section.has(name) {
        return Ok(None);
    }
    let text: Vec<u8> = section.take(name)?;
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| damaged(&format!("its {name} are no {name} ({error})")))
}

/// The database, if it is consistent.
fn checked(database: Database) -> Result<Database, Refused> {
    database.check().map_err(|e| Refused(format!("is inconsistent: {e}")))?;
    Ok(database)
}

#[cfg(test)]
mod tests;

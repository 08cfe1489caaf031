//! Frames: the compressed and checksummed parts of this project's binary files.
//!
//! ```text
//! file    magic bytes and version, then sections; the last section is the end mark
//! section u64 decoded length, u64 stored length, u32 CRC-32 of both lengths, u32 CRC-32 of the stored bytes,
//!         stored bytes: the decoded bytes compressed by zstd, or uncompressed if the lengths are equal
//! decoded columns: u64 length of the name, the name, u64 length of the values, the values
//! frame   as a section, but with a single CRC-32 of both lengths and the stored bytes, and without columns
//! ```
//! All integers are little endian; values are in bincode's legacy layout (fixed-size integers, sequences behind a u64
//! length). Text is written as a sequence of bytes: for a string, bincode allocates the stated length unchecked.
//!
//! A file that ends before its end mark was cut: the run that wrote it was interrupted. The lengths of a section have
//! their own checksum, so that a damaged length is not taken for a cut. A reader skips columns that it does not know;
//! a change that a reader must not skip needs a new version of the file. Older versions consist of frames.

use std::ops::Range;

use bincode::config;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::decompress::Expansion;
use crate::files::Refused;
use crate::memory;
use crate::table::{self, count};

/// The first bytes of every trace, in all versions of its format. Defined here so that a reader of databases can
/// recognise a trace.
pub const TRACE_MAGIC: [u8; 6] = *b"\x89EQTR\n";

/// A compromise between size and time, near the fast end.
const COMPRESSION_LEVEL: i32 = 1;

/// The error for a file that ends too early.
pub fn truncated(have: usize, need: usize) -> Refused {
    Refused(format!(
        "is truncated: it has {} and needs at least {need}; copy it again, or have the program write it again",
        count(have as u64, "byte")
    ))
}

/// The error for a file with wrong content.
pub fn damaged(what: &str) -> Refused {
    Refused(format!("is damaged: {what}; copy it again, or have the program write it again"))
}

/// Decodes text that was written as bytes.
pub fn text(bytes: Vec<u8>) -> Result<String, Refused> {
    String::from_utf8(bytes).map_err(|_| damaged("a name is not UTF-8"))
}

/// CRC-32 of several parts.
fn crc(parts: &[&[u8]]) -> [u8; 4] {
    let mut crc = crc32fast::Hasher::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.finalize().to_le_bytes()
}

/// Both lengths of a frame as bytes.
fn length_bytes([decoded, stored]: [u64; 2]) -> [u8; 16] {
    (u128::from(stored) << 64 | u128::from(decoded)).to_le_bytes()
}

/// The checksum of a frame.
pub fn checksum(lengths: [u64; 2], stored: &[u8]) -> [u8; 4] {
    crc(&[&length_bytes(lengths), stored])
}

/// The checksums of a section.
pub fn checksums(lengths: [u64; 2], stored: &[u8]) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (crc(&[&length_bytes(lengths)]), crc(&[stored]));
    [a, b, c, d, e, f, g, h]
}

fn not_encoded(error: &dyn std::fmt::Display) -> Refused {
    Refused(format!("cannot be encoded: {error}; free some memory"))
}

/// Appends a frame with `value`. `expansion` is how far the file may still expand.
pub fn push_frame(
    file: &mut Vec<u8>,
    value: &impl Serialize,
    expansion: &mut Expansion,
) -> Result<(), Refused> {
    let decoded = bincode::serde::encode_to_vec(value, config::legacy()).map_err(|e| not_encoded(&e))?;
    push(file, &decoded, expansion, |lengths, stored| checksum(lengths, stored).to_vec())
}

/// Appends lengths, checksums and stored bytes.
fn push(
    file: &mut Vec<u8>,
    decoded: &[u8],
    expansion: &mut Expansion,
    sums: impl Fn([u64; 2], &[u8]) -> Vec<u8>,
) -> Result<(), Refused> {
    let compressed = zstd::bulk::compress(decoded, COMPRESSION_LEVEL).map_err(|e| not_encoded(&e))?;
    let useful =
        compressed.len() < decoded.len() && expansion.take(decoded.len() as u64, compressed.len() as u64);
    let stored = if useful { &compressed } else { decoded };
    let lengths = [decoded.len() as u64, stored.len() as u64];
    file.extend_from_slice(&length_bytes(lengths));
    file.extend_from_slice(&sums(lengths, stored));
    file.extend_from_slice(stored);
    Ok(())
}

/// Takes the first frame of `rest`. `file_bytes` is the length of the whole file; `expansion` as for [`push_frame`].
pub fn take_frame<T: DeserializeOwned>(
    rest: &mut &[u8],
    file_bytes: usize,
    expansion: &mut Expansion,
) -> Result<T, Refused> {
    let begin = file_bytes - rest.len();
    let short = |need| truncated(file_bytes, need);
    let (lengths, after) = take_lengths(rest).ok_or_else(|| short(begin + 20))?;
    let (sum, after) = after.split_first_chunk::<4>().ok_or_else(|| short(begin + 20))?;
    let (stored, after) = split(after, lengths[1]).ok_or_else(|| {
        short((begin + 20).saturating_add(usize::try_from(lengths[1]).unwrap_or(usize::MAX)))
    })?;
    check_sum(*sum == checksum(lengths, stored), begin, file_bytes - after.len())?;
    let value = decoded(&inflated(stored, lengths[0], expansion)?)?;
    *rest = after;
    Ok(value)
}

/// The first `bytes` bytes of `rest`, and the others; `None` if there are fewer.
fn split(rest: &[u8], bytes: u64) -> Option<(&[u8], &[u8])> {
    usize::try_from(bytes).ok().and_then(|bytes| rest.split_at_checked(bytes))
}

fn take_lengths(rest: &[u8]) -> Option<([u64; 2], &[u8])> {
    let (decoded, rest) = rest.split_first_chunk::<8>()?;
    let (stored, rest) = rest.split_first_chunk::<8>()?;
    Some(([u64::from_le_bytes(*decoded), u64::from_le_bytes(*stored)], rest))
}

fn check_sum(right: bool, begin: usize, end: usize) -> Result<(), Refused> {
    if right { Ok(()) } else { Err(damaged(&format!("the checksum of bytes {begin} to {end} is wrong"))) }
}

/// The decoded bytes of a frame.
fn inflated(stored: &[u8], decoded_bytes: u64, expansion: &mut Expansion) -> Result<Vec<u8>, Refused> {
    let stored_bytes = stored.len() as u64;
    if decoded_bytes == stored_bytes {
        return Ok(stored.to_vec());
    }
    if !expansion.take(decoded_bytes, stored_bytes) {
        return Err(damaged(&format!(
            "a frame claims to be larger than it can be: its {stored_bytes} bytes expand to {decoded_bytes} bytes, but \
             the limit for this size is {}",
            expansion.limit(stored_bytes)
        )));
    }
    has_memory(decoded_bytes)?;
    let inflated = zstd::bulk::decompress(stored, decoded_bytes as usize)
        .map_err(|e| damaged(&format!("a frame cannot be decompressed ({e})")))?;
    if inflated.len() as u64 != decoded_bytes {
        return Err(damaged("a frame is longer than its contents"));
    }
    Ok(inflated)
}

/// The most bytes of memory that a byte of an encoded value needs. An empty list has 8 bytes and takes 24 in a list of lists. A
/// list that doubles its capacity needs the old and the new memory for a moment: three times that of its items.
const VALUE_BYTES: u64 = 3 * 24 / 8;

/// Checks that there is memory for a part of a file.
fn has_memory(bytes: u64) -> Result<(), Refused> {
    memory::check(bytes, &format!("a part of {}", table::bytes(bytes)), "use a computer with more memory")
        .map_err(|reason| Refused(format!("cannot be read: {reason}")))
}

/// The value that `bytes` consist of.
fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refused> {
    has_memory(VALUE_BYTES * bytes.len() as u64)?;
    let (value, used) = bincode::serde::decode_from_slice(bytes, config::legacy())
        .map_err(|e| damaged(&format!("a frame cannot be decoded ({e})")))?;
    if used != bytes.len() {
        return Err(damaged("a frame is longer than its contents"));
    }
    Ok(value)
}

/// Columns by name, to be written.
#[derive(Default)]
pub struct NewSection(Vec<u8>);

impl NewSection {
    /// Adds a column.
    pub fn put(&mut self, name: &str, values: &impl Serialize) -> Result<(), Refused> {
        self.0.extend_from_slice(&(name.len() as u64).to_le_bytes());
        self.0.extend_from_slice(name.as_bytes());
        let values = bincode::serde::encode_to_vec(values, config::legacy()).map_err(|e| not_encoded(&e))?;
        self.0.extend_from_slice(&(values.len() as u64).to_le_bytes());
        self.0.extend_from_slice(&values);
        Ok(())
    }

    /// Appends the section to a file; `expansion` as for [`push_frame`].
    pub fn push(&self, file: &mut Vec<u8>, expansion: &mut Expansion) -> Result<(), Refused> {
        push(file, &self.0, expansion, |lengths, stored| checksums(lengths, stored).to_vec())
    }
}

/// Columns by name, as read. A reader takes those that it knows; the others are listed.
pub struct Section {
    bytes: Vec<u8>,
    /// The columns that were not taken.
    columns: Vec<(String, Range<usize>)>,
}

impl Section {
    /// Takes the first section of `rest`, or nothing if the file was cut within it. `file_bytes` is the length of the
    /// whole file; `expansion` as for [`push_frame`].
    pub fn next(
        rest: &mut &[u8],
        file_bytes: usize,
        expansion: &mut Expansion,
    ) -> Result<Option<Section>, Refused> {
        let begin = file_bytes - rest.len();
        let Some((lengths, after)) = take_lengths(rest) else { return Ok(None) };
        let Some((sums, after)) = after.split_first_chunk::<8>() else { return Ok(None) };
        let length_sum = checksums(lengths, &[]);
        check_sum(sums[..4] == length_sum[..4], begin, begin + 16)?;
        let Some((stored, after)) = split(after, lengths[1]) else { return Ok(None) };
        check_sum(*sums == checksums(lengths, stored), begin, file_bytes - after.len())?;
        *rest = after;
        Section::of(inflated(stored, lengths[0], expansion)?).map(Some)
    }

    fn of(bytes: Vec<u8>) -> Result<Section, Refused> {
        let outside = || damaged("a column is longer than its frame");
        let mut rest = bytes.as_slice();
        let take = |rest: &mut &[u8]| {
            let (length, after) = rest.split_first_chunk::<8>()?;
            let begin = bytes.len() - after.len();
            let (part, after) = split(after, u64::from_le_bytes(*length))?;
            *rest = after;
            Some(begin..begin + part.len())
        };
        let mut columns = Vec::new();
        while !rest.is_empty() {
            let name = take(&mut rest).ok_or_else(outside)?;
            let values = take(&mut rest).ok_or_else(outside)?;
            columns.push((text(bytes[name].to_vec())?, values));
        }
        Ok(Section { bytes, columns })
    }

    /// Whether there is a column of this name.
    pub fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(column, _)| column == name)
    }

    /// Takes the values of a column.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, Refused> {
        let at = self.columns.iter().position(|(column, _)| column == name);
        let at = at.ok_or_else(|| damaged(&format!("the column `{name}` is missing")))?;
        let (_, range) = self.columns.swap_remove(at);
        decoded(&self.bytes[range])
    }

    /// Adds the names of the columns that were not taken to `ignored`, unless they are there.
    pub fn list_ignored(self, ignored: &mut Ignored) {
        self.columns.into_iter().for_each(|(name, _)| ignored.add(name));
    }
}

/// The names of columns and fields that a reader does not know.
#[derive(Default)]
pub struct Ignored(Vec<String>);

impl Ignored {
    /// More names are counted, not listed.
    const LISTED: usize = 8;

    /// Adds a name, unless it is there.
    pub fn add(&mut self, name: String) {
        if self.0.len() <= Ignored::LISTED && !self.0.contains(&name) {
            self.0.push(name);
        }
    }

    /// The clause about these names, if there are any; it follows the name of the file.
    pub fn clause(self) -> Option<String> {
        let Ignored(mut names) = self;
        let more = if names.len() > Ignored::LISTED { " and others" } else { "" };
        names.truncate(Ignored::LISTED);
        // Names come from the file.
        let quoted: Vec<String> = names.iter().map(|name| format!("{:.60}", format!("{name:?}"))).collect();
        let names = quoted.join(", ");
        (!names.is_empty())
            .then(|| format!("has fields that this program does not know and ignores: {names}{more}"))
    }
}

/// The path of a field of a JSON document without positions in lists, as in `steps.pes.speed`.
pub fn field(path: &str) -> String {
    let is_position = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    path.split('.').filter(|part| !is_position(part)).collect::<Vec<_>>().join(".")
}

/// The clause about a file that was cut after `what`, with `bytes` bytes behind it.
pub fn cut(what: &str, bytes: usize) -> String {
    let ignored = count(bytes as u64, "byte");
    format!("was cut {what} (the run was interrupted?); {ignored} ignored")
}

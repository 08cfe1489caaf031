//! Frames: what our binary files consist of, compressed and checksummed.
//!
//! ```text
//! frame   u64 decoded length, u64 stored length, u32 CRC-32 of both lengths and the stored bytes,
//!         stored bytes: the decoded ones compressed by zstd, or themselves if the lengths are equal
//! ```
//! All integers are little endian; the decoded bytes are bincode's legacy layout (fixed-size integers,
//! sequences behind a u64 length). Text is written as a sequence of bytes, because bincode allocates a
//! string's length unseen.

use bincode::config;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::files::Refused;

/// The frames of a file may decode to so many bytes in all, however small they are.
pub(crate) const DECODED_FLOOR_BYTES: u64 = 16 << 20;

/// Beyond that, a frame may decode to so many times its stored bytes; a writer stores what
/// compresses better as it is. So a small hostile file cannot make a reader allocate much.
pub(crate) const DECODED_RATIO: u64 = 1024;

/// A trade of size against time at which both are near the end of their range.
const COMPRESSION_LEVEL: i32 = 1;

/// The sentence about a file that ends too soon.
pub(crate) fn truncated(have: usize, need: usize) -> Refused {
    Refused(format!(
        "is truncated: it has {have} bytes and needs at least {need}; copy it again, or have the program \
         write it again"
    ))
}

/// The sentence about a file whose content is not what it was.
pub(crate) fn damaged(what: &str) -> Refused {
    Refused(format!("is damaged: {what}; copy it again, or have the program write it again"))
}

/// Text that was written as bytes.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, Refused> {
    String::from_utf8(bytes).map_err(|_| damaged("a name is not UTF-8"))
}

/// Whether `stored` bytes may stand for `decoded` ones; what is beyond the ratio comes off `floor`.
pub(crate) fn plausible(decoded: u64, stored: u64, floor: &mut u64) -> bool {
    let beyond = decoded.saturating_sub(stored.saturating_mul(DECODED_RATIO));
    let rest = floor.checked_sub(beyond);
    *floor = rest.unwrap_or(*floor);
    rest.is_some()
}

/// The checksum of a frame.
pub(crate) fn checksum(lengths: [u64; 2], stored: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    lengths.iter().for_each(|length| crc.update(&length.to_le_bytes()));
    crc.update(stored);
    crc.finalize()
}

/// Appends a frame that holds `value`; `floor` is what the file may still decode to beyond the ratio.
pub(crate) fn push_frame(file: &mut Vec<u8>, value: &impl Serialize, floor: &mut u64) -> Result<(), Refused> {
    let refused = |e: &dyn std::fmt::Display| Refused(format!("cannot be encoded: {e}; free some memory"));
    let decoded = bincode::serde::encode_to_vec(value, config::legacy()).map_err(|e| refused(&e))?;
    let compressed = zstd::bulk::compress(&decoded, COMPRESSION_LEVEL).map_err(|e| refused(&e))?;
    let useful =
        compressed.len() < decoded.len() && plausible(decoded.len() as u64, compressed.len() as u64, floor);
    let stored = if useful { &compressed } else { &decoded };
    let lengths = [decoded.len() as u64, stored.len() as u64];
    lengths.iter().for_each(|length| file.extend_from_slice(&length.to_le_bytes()));
    file.extend_from_slice(&checksum(lengths, stored).to_le_bytes());
    file.extend_from_slice(stored);
    Ok(())
}

/// Takes the frame that `rest` begins with; `file_bytes` is the length of the whole file, and
/// `floor` what it may still decode to beyond the ratio.
pub(crate) fn take_frame<T: DeserializeOwned>(
    rest: &mut &[u8],
    file_bytes: usize,
    floor: &mut u64,
) -> Result<T, Refused> {
    let begin = file_bytes - rest.len();
    let short = |need| truncated(file_bytes, need);
    let (decoded, after) = rest.split_first_chunk::<8>().ok_or_else(|| short(begin + 20))?;
    let (stored, after) = after.split_first_chunk::<8>().ok_or_else(|| short(begin + 20))?;
    let (sum, after) = after.split_first_chunk::<4>().ok_or_else(|| short(begin + 20))?;
    let lengths = [u64::from_le_bytes(*decoded), u64::from_le_bytes(*stored)];
    let [decoded_bytes, stored_bytes] = lengths;
    let stored = usize::try_from(stored_bytes).ok().and_then(|n| after.split_at_checked(n));
    let (stored, after) = stored.ok_or_else(|| {
        short((begin + 20).saturating_add(usize::try_from(stored_bytes).unwrap_or(usize::MAX)))
    })?;
    if u32::from_le_bytes(*sum) != checksum(lengths, stored) {
        return Err(damaged(&format!(
            "the checksum of bytes {begin} to {} is wrong",
            file_bytes - after.len()
        )));
    }
    if decoded_bytes != stored_bytes && !plausible(decoded_bytes, stored_bytes, floor) {
        return Err(damaged("a frame claims to be larger than it can be"));
    }
    let inflated;
    let decoded = if decoded_bytes == stored_bytes {
        stored
    } else {
        inflated = zstd::bulk::decompress(stored, decoded_bytes as usize)
            .map_err(|e| damaged(&format!("a frame cannot be decompressed ({e})")))?;
        &inflated
    };
    let (value, used) = bincode::serde::decode_from_slice(decoded, config::legacy())
        .map_err(|e| damaged(&format!("a frame cannot be decoded ({e})")))?;
    if used as u64 != decoded_bytes {
        return Err(damaged("a frame is longer than its contents"));
    }
    *rest = after;
    Ok(value)
}

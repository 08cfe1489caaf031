//! vt's LB data: JSON, plain or compressed with brotli, a file per rank (`--vt_lb_data`, `data.%p.json`).
//!
//! A file has `phases`, which are our steps, each with `tasks`, our objects, and `communications`, our edges; its
//! `metadata` lists the phases that were skipped and those that are as the one before. Ranks are our PEs, of
//! speed 1 / `rank_alpha`. An object belongs to the array of its collection. Its `id`, or the `seq_id` in its
//! collection, tells it from others, and `task_serialized_bytes` of `user_defined` is its size. An end of type
//! `node` is a PE. Communication with objects that are not there, and with shared data, is counted as dangling.
//! Subphases, attributes, and all else that is user-defined are not kept.
//!
//! What vt has no place for goes where its schema lets everybody put more: `metadata.attributes.equipoise` has
//! the program and its topology, and `phases[].user_defined.equipoise` the record of the PE. vt and its tools read
//! such files as their own. They do not hold what PEs send to PEs.
//!
//! [`decode`] and [`Encoder`] know of texts only, one per rank; [`super::file`] finds the files.

use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Dump, Edge, End, json};

mod read;
#[cfg(test)]
mod tests;
mod unkept;
mod write;
mod written;

pub use read::decode;
pub(crate) use unkept::unkept;
pub use write::{Encoder, pack};

/// The most bytes of a file after decompression.
const MAX_BYTES: u64 = 1 << 34;

/// What follows the name of a file in a sentence about what files of vt do not hold.
pub const LACKS: &str = "what PEs send to PEs, or bytes beyond 2^53 exactly";

/// The text of one rank's file.
pub struct RankText {
    /// The name of the file, for messages.
    pub name: String,
    /// JSON, no longer compressed.
    pub text: Vec<u8>,
}

/// Whether a file of that name stands for those of all ranks: it has `%p` in the place of the rank.
pub fn is_pattern(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("%p"))
}

/// Whether a file of that name is compressed.
pub fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("br"))
}

/// The bytes of a compressed file as they were before.
///
/// # Errors
/// When they are not compressed with brotli, or become more than 2^34.
pub fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    brotli::Decompressor::new(bytes, 1 << 16).take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it holds more than {MAX_BYTES} bytes"),
        ));
    }
    Ok(text)
}

/// Whether a file that begins with `bytes` is vt's LB data.
pub fn recognises(bytes: &[u8]) -> bool {
    /// As much of a document as says what it is.
    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "type")]
        kind: Option<String>,
        phases: Option<IgnoredAny>,
    }
    // Ours say so at once, and need not be read twice.
    let head = &bytes[..bytes.len().min(200)];
    let is_ours = head.windows(json::TYPE.len()).any(|word| word == json::TYPE.as_bytes());
    if !json::recognises(bytes) || is_ours {
        return false;
    }
    match serde_json::from_slice(bytes) {
        Ok(Probe { kind, phases }) => kind.is_none_or(|kind| kind == KIND) && phases.is_some(),
        // A broken file of vt begins as a whole one does.
        Err(_) => head.windows(KIND.len()).any(|word| word == KIND.as_bytes()),
    }
}

/// The value of `type`.
const KIND: &str = "LBDatafile";

/// Whether `again` is what files of `dump` read back as.
pub fn is_same(dump: &Dump, again: &Dump) -> bool {
    held(dump) == held(again)
}

/// What files hold of a dump, its objects and edges in the order in which they are read.
fn held(dump: &Dump) -> Dump {
    let mut held = dump.clone();
    for database in &mut held.steps {
        let mut order: Vec<u32> = (0..database.objects.len() as u32).collect();
        order.sort_by_key(|&position| read::order(&database.objects[position as usize]));
        let mut place = vec![0; order.len()];
        for (new, &old) in (0..).zip(&order) {
            place[old as usize] = new;
        }
        database.objects = order.iter().map(|&old| database.objects[old as usize].clone()).collect();
        let moved = |end| match end {
            End::Object(object) => End::Object(place[object as usize]),
            pe => pe,
        };
        let is_held = |edge: &&Edge| !matches!((edge.from, edge.to), (End::Pe(_), End::Pe(_)));
        let edges = database.edges.iter().filter(is_held).map(|edge| Edge {
            from: moved(edge.from),
            to: moved(edge.to),
            messages: edge.messages,
            bytes: edge.bytes as f64 as u64,
        });
        database.edges = read::merged(edges.collect()).unwrap_or_default();
        database.edges.iter_mut().for_each(|edge| edge.bytes = edge.bytes as f64 as u64);
    }
    held
}

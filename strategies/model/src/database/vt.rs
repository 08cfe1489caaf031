//! LB data of vt: JSON, plain or compressed with brotli, one file per rank (`--vt_lb_data`, `data.%p.json`).
//!
//! `phases` are steps, their `tasks` are objects, their `communications` are edges. `metadata` lists skipped phases and
//! phases identical to the previous one. Ranks are PEs of speed 1 / `rank_alpha`. The array of an object is its
//! collection. Objects are identified by `id`, or by collection and `seq_id`; `user_defined.task_serialized_bytes` is
//! the size. An end of type `node` is a PE. Communication with unknown objects and with shared data is counted as
//! dangling. Subphases, attributes and other user-defined fields are dropped.
//!
//! Fields that vt does not have are written where its schema allows extensions: `metadata.attributes.equipoise` has the
//! program and its topology, `phases[].user_defined.equipoise` has the record of the PE. vt and its tools can read such
//! files. Messages between PEs cannot be represented.
//!
//! [`decode`] and [`Encoder`] work on texts, one per rank; [`super::file`] finds the files.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Dump, Edge, End, json};
use crate::constraints::Constraints;

mod dropped_fields;
#[cfg(feature = "formats")]
mod packed;
mod read;
#[cfg(test)]
mod tests;
mod write;
mod written;

pub(crate) use dropped_fields::dropped_fields;
pub use packed::{pack, unpack};
pub use read::decode;
pub use write::Encoder;

/// Data that files of vt cannot represent; completes a sentence.
pub const LACKS: &str = "messages between PEs, or byte counts above 2^53 exactly";

/// The text of one rank's file.
pub struct RankText {
    /// The name of the file, for error messages.
    pub name: String,
    /// JSON, decompressed.
    pub text: Vec<u8>,
}

/// Whether `path` stands for the files of all ranks: its name contains `%p`.
pub fn is_pattern(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("%p"))
}

/// Whether a file with this name is compressed.
pub fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("br"))
}

/// Compression in builds without brotli.
#[cfg(not(feature = "formats"))]
mod packed {
    use std::io;

    use crate::files::without_formats;

    /// Fails.
    pub fn pack(_: &[u8]) -> io::Result<Vec<u8>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, without_formats(".br")))
    }

    /// Fails.
    pub fn unpack(bytes: &[u8]) -> io::Result<Vec<u8>> {
        pack(bytes)
    }
}

/// Whether a file that begins with `bytes` is LB data of vt.
pub fn recognises(bytes: &[u8]) -> bool {
    /// The fields that identify a document.
    #[derive(Deserialize)]
    struct Probe {
        #[serde(rename = "type")]
        kind: Option<String>,
        phases: Option<IgnoredAny>,
    }
    // JSON databases of this project are recognised by their beginning, without parsing.
    let head = &bytes[..bytes.len().min(200)];
    let is_own_format = head.windows(json::TYPE.len()).any(|word| word == json::TYPE.as_bytes());
    if !json::recognises(bytes) || is_own_format {
        return false;
    }
    match serde_json::from_slice(bytes) {
        Ok(Probe { kind, phases }) => kind.is_none_or(|kind| kind == KIND) && phases.is_some(),
        // A damaged file of vt is recognised by its beginning.
        Err(_) => head.windows(KIND.len()).any(|word| word == KIND.as_bytes()),
    }
}

/// The value of `type`.
const KIND: &str = "LBDatafile";

/// Whether `again` is the content of files written from `dump`.
pub fn is_same(dump: &Dump, again: &Dump) -> bool {
    representable(dump) == representable(again)
}

/// The content of files written from `dump`: the representable part, with objects and edges in the order of a reader.
fn representable(dump: &Dump) -> Dump {
    let mut result = dump.clone();
    for database in &mut result.steps {
        database.costs = None;
        database.constraints = Constraints::default();
        let mut order: Vec<u32> = (0..database.objects.len() as u32).collect();
        order.sort_by_key(|&position| read::order(&database.objects[position as usize]));
        let mut place = vec![0; order.len()];
        for (new, &old) in (0..).zip(&order) {
            place[old as usize] = new;
        }
        database.objects = order.iter().map(|&old| database.objects[old as usize].clone()).collect();
        let renumbered = |end| match end {
            End::Object(object) => End::Object(place[object as usize]),
            pe => pe,
        };
        let is_representable = |edge: &&Edge| !matches!((edge.from, edge.to), (End::Pe(_), End::Pe(_)));
        let edges = database.edges.iter().filter(is_representable).map(|edge| Edge {
            from: renumbered(edge.from),
            to: renumbered(edge.to),
            messages: edge.messages,
            bytes: edge.bytes as f64 as u64,
        });
        database.edges = read::merged(edges.collect()).unwrap_or_default();
        database.edges.iter_mut().for_each(|edge| edge.bytes = edge.bytes as f64 as u64);
    }
    result
}

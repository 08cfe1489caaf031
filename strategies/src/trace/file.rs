//! Reading and writing traces.
//!
//! JSON if the name ends in `.json`, otherwise binary: 8 bytes, then frames as in a
//! [database](crate::database), the first with all but the messages and the executions, then one with the
//! messages, then the executions in frames of 65,536. Which of the two a file is, is known by its
//! content.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Speeds, Trace, TraceObject};
use crate::files::{Refused, can_write_whole, is_of_the_name, write_whole};
use crate::frames::{DECODED_FLOOR_BYTES, damaged, push_frame, take_frame, text, truncated};

/// What every binary trace begins with; the last byte but one is the version of the format.
const MAGIC: [u8; 8] = *b"\x89EQTR\n\x03\x1a";

/// How many of these bytes all versions share.
const SHARED: usize = 6;

/// Whether these are the bytes of a binary trace, of whatever version.
pub(crate) fn recognises(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC[..SHARED])
}

/// Executions in a frame: it is compressed as one.
const CHUNK: usize = 1 << 16;

/// Why a trace cannot be read or written: a sentence that names the file, what is wrong, and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file system does not give it.
    #[error("cannot read the trace `{}`: {source}; check its name and that it may be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file system does not take it.
    #[error(
        "cannot write the trace `{}`: {source}; name a place that exists, is writable and has room",
        .path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its content is not what it should be.
    #[error("the trace `{}` {refused}", .path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        refused: Refused,
    },
}

impl TraceError {
    /// Whether another name is the remedy; otherwise the file is broken, or there is no room.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            TraceError::Read { .. } => true,
            TraceError::Write { source, .. } => is_of_the_name(source),
            TraceError::Refused { .. } => false,
        }
    }
}

impl Trace {
    /// The trace in the file at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a whole and consistent trace.
    pub fn read(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| TraceError::Read { path: path.into(), source })?;
        decode(&bytes).map_err(|refused| TraceError::Refused { path: path.into(), refused })
    }

    /// Whether [`Self::write`] will find a place for a file at `path`, for those who know long before.
    ///
    /// # Errors
    /// When the file system does not let one be made there.
    pub fn can_write(path: impl AsRef<Path>) -> Result<(), TraceError> {
        let path = path.as_ref();
        can_write_whole(path).map_err(|source| TraceError::Write { path: path.into(), source })
    }

    /// Writes a file at `path`, which appears whole or not at all.
    ///
    /// # Errors
    /// When the file system refuses.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), TraceError> {
        let path = path.as_ref();
        let refused = |error| TraceError::Refused { path: path.into(), refused: Refused(error) };
        self.check().map_err(|error| {
            refused(format!("would be inconsistent: {error}; this is a mistake of the runtime"))
        })?;
        let bytes = if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            serde_json::to_vec(self).map_err(|error| Refused(format!("cannot be encoded: {error}")))
        } else {
            encode(self)
        };
        let bytes = bytes.map_err(|refused| TraceError::Refused { path: path.into(), refused })?;
        write_whole(path, &bytes).map_err(|source| TraceError::Write { path: path.into(), source })
    }
}

/// What stands before the messages and the executions.
#[derive(Serialize, Deserialize)]
struct Head {
    topology: Vec<u8>,
    network: Vec<u8>,
    seed: u64,
    pes: u32,
    seconds: f64,
    exit: Option<u32>,
    speeds: Vec<Speeds>,
    arrays: Vec<Vec<u8>>,
    objects: Vec<TraceObject>,
    executions: u64,
}

fn encode(trace: &Trace) -> Result<Vec<u8>, Refused> {
    let mut file = MAGIC.to_vec();
    let mut floor = DECODED_FLOOR_BYTES;
    let head = Head {
        topology: trace.topology.clone().into_bytes(),
        network: trace.network.clone().into_bytes(),
        seed: trace.seed,
        pes: trace.pes,
        seconds: trace.seconds,
        exit: trace.exit,
        speeds: trace.speeds.clone(),
        arrays: trace.arrays.iter().map(|name| name.clone().into_bytes()).collect(),
        objects: trace.objects.clone(),
        executions: trace.executions.len() as u64,
    };
    push_frame(&mut file, &head, &mut floor)?;
    push_frame(&mut file, &trace.messages, &mut floor)?;
    for chunk in trace.executions.chunks(CHUNK) {
        push_frame(&mut file, &chunk, &mut floor)?;
    }
    Ok(file)
}

fn decode(bytes: &[u8]) -> Result<Trace, Refused> {
    let trace = match bytes.strip_prefix(&MAGIC) {
        Some(rest) => decode_frames(rest, bytes.len())?,
        None if bytes.trim_ascii_start().starts_with(b"{") => serde_json::from_slice(bytes)
            .map_err(|error| Refused(format!("is not a trace in JSON: {error}; record it again")))?,
        None if MAGIC.starts_with(bytes) => return Err(truncated(bytes.len(), MAGIC.len())),
        None if recognises(bytes) => {
            let (version, known) = (bytes[SHARED], MAGIC[SHARED]);
            let sentence =
                format!("is of version {version}, and this program reads version {known}; record it again");
            return Err(Refused(sentence));
        }
        None => {
            let sentence = "does not begin as a trace; name a file that `--record` wrote, copied as binary";
            return Err(Refused(sentence.into()));
        }
    };
    trace.check().map_err(|error| Refused(format!("is inconsistent: {error}; record it again")))?;
    Ok(trace)
}

fn decode_frames(mut rest: &[u8], file_bytes: usize) -> Result<Trace, Refused> {
    let mut floor = DECODED_FLOOR_BYTES;
    let head: Head = take_frame(&mut rest, file_bytes, &mut floor)?;
    let mut trace = Trace {
        topology: text(head.topology)?,
        network: text(head.network)?,
        seed: head.seed,
        pes: head.pes,
        seconds: head.seconds,
        exit: head.exit,
        speeds: head.speeds,
        arrays: head.arrays.into_iter().map(text).collect::<Result<_, _>>()?,
        objects: head.objects,
        messages: take_frame(&mut rest, file_bytes, &mut floor)?,
        executions: Vec::new(),
    };
    while (trace.executions.len() as u64) < head.executions {
        let chunk: Vec<_> = take_frame(&mut rest, file_bytes, &mut floor)?;
        if chunk.is_empty() {
            return Err(damaged("a frame is empty"));
        }
        trace.executions.extend(chunk);
    }
    if trace.executions.len() as u64 != head.executions || !rest.is_empty() {
        return Err(damaged("it has more executions than it says"));
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::super::tests::exchange;
    use super::*;

    #[test]
    fn what_is_written_is_read_back_in_both_forms() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["some.trace", "some.JSON"] {
            let path = folder.path().join(name);
            exchange().write(&path).expect("it can be written");
            assert_eq!(Trace::read(&path).expect("it can be read"), exchange(), "{name}");
        }
    }

    #[test]
    fn every_truncation_and_every_flipped_bit_is_refused() {
        let whole = encode(&exchange()).expect("it can be encoded");
        for end in 0..whole.len() {
            assert!(decode(&whole[..end]).is_err(), "{end} bytes");
        }
        for at in 0..whole.len() {
            let mut broken = whole.clone();
            broken[at] ^= 1 << (at % 8);
            assert!(decode(&broken).is_err(), "byte {at}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_the_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("no.trace");
        let error = Trace::read(&path).expect_err("it is not there");
        assert!(error.is_of_the_request() && error.to_string().contains("no.trace"), "{error}");
        let mut older = encode(&exchange()).expect("it can be encoded");
        older[SHARED] -= 1;
        fs::write(&path, older).expect("a file");
        let error = Trace::read(&path).expect_err("it is of an older version").to_string();
        assert!(
            error.contains("is of version 2, and this program reads version 3; record it again"),
            "{error}"
        );
        fs::write(&path, "garbage").expect("a file");
        let error = Trace::read(&path).expect_err("it is none");
        assert!(
            !error.is_of_the_request() && error.to_string().contains("does not begin as a trace"),
            "{error}"
        );
    }
}

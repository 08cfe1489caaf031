//! Reading and writing traces.
//!
//! A trace is written as JSON if the file name ends in `.json`, otherwise in binary (see `sections.rs`). The reader
//! tells the two formats apart by the content of the file. Unknown fields in JSON are skipped with a warning.
//!
//! Version 3 of the binary format has frames: the first has everything except the messages and the executions, the
//! second has the messages, and the others have up to 65,536 executions each.

use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use equipoise_model::decompress::Expansion;
use equipoise_model::files::{self, Refused, Unread, can_write_whole, write_whole};
use equipoise_model::frames::{Ignored, TRACE_MAGIC, damaged, field, take_frame, text, truncated};

use super::part::{PART, Part};
use super::sections::{Encoder, MAGIC, decode_sections, magic};
use super::{Speeds, Trace, TraceObject};
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::quote::shown;

/// The first bytes of traces of version 3.
const MAGIC_3: [u8; 8] = magic(3);

/// Whether a trace with this name is JSON.
pub(super) fn json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Why a trace cannot be read or written. The message names the file, the reason and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read the trace `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error(
        "cannot write the trace `{}`: {source}; name a place that exists, is writable and has room",
        shown(.path)
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The content of the trace is invalid.
    #[error("the trace `{}` {refused}", shown(.path))]
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with the content.
        refused: Refused,
    },
}

impl Classified for TraceError {
    fn fault(&self) -> Fault {
        match self {
            TraceError::Read { .. } => Fault::Usage,
            TraceError::Write { source, .. } => source.fault(),
            TraceError::Refused { .. } => Fault::Input,
        }
    }
}

impl Trace {
    /// Reads the trace in the file at `path`. Of a trace that was cut, because its run was interrupted, the whole parts
    /// are read; [`Trace::warnings`] says so.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a consistent trace.
    pub fn read(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let refused = |refused| TraceError::Refused { path: path.into(), refused };
        let mut bytes = files::bytes(path).map_err(|unread| match unread {
            Unread::System(source) => TraceError::Read { path: path.into(), source },
            Unread::Content((_, reason)) => refused(Refused(format!("cannot be read: {reason}"))),
        })?;
        files::drop_byte_order_mark(&mut bytes);
        decode(&bytes).map_err(refused)
    }

    /// Checks that [`Self::write`] can create a file at `path`, so that a run can fail before it starts.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn can_write(path: impl AsRef<Path>) -> Result<(), TraceError> {
        let path = path.as_ref();
        can_write_whole(path).map_err(|source| TraceError::Write { path: path.into(), source })
    }

    /// Writes the trace to `path`. After an error there is no partial file.
    ///
    /// # Errors
    /// When the trace is inconsistent or the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), TraceError> {
        let path = path.as_ref();
        let refused = |error| TraceError::Refused { path: path.into(), refused: Refused(error) };
        self.check()
            .map_err(|error| refused(format!("would be inconsistent: {error} (please report this bug)")))?;
        let bytes = if json(path) {
            serde_json::to_vec(self).map_err(|error| Refused(format!("cannot be encoded: {error}")))
        } else {
            encode(self)
        };
        let bytes = bytes.map_err(|refused| TraceError::Refused { path: path.into(), refused })?;
        write_whole(path, &bytes).map_err(|source| TraceError::Write { path: path.into(), source })
    }
}

/// The first frame of version 3: everything except the messages and the executions.
#[derive(Deserialize)]
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
    let (mut encoder, mut file) = Encoder::new(trace, true)?;
    let details = &trace.details;
    file.extend(encoder.part(&Part {
        objects: trace.objects.clone(),
        messages: trace.messages.clone(),
        indices: details.indices.clone(),
        waits: details.waits.clone(),
        migrations: details.migrations.clone(),
        ..Part::default()
    })?);
    for (nth, executions) in trace.executions.chunks(PART).enumerate() {
        let calls = details.calls.chunks(PART).nth(nth).unwrap_or_default().to_vec();
        file.extend(encoder.part(&Part { executions: executions.to_vec(), calls, ..Part::default() })?);
    }
    file.extend(encoder.end(trace.seconds, trace.exit, details)?);
    Ok(file)
}

pub(super) fn decode(bytes: &[u8]) -> Result<Trace, Refused> {
    let trace = if let Some(rest) = bytes.strip_prefix(&MAGIC) {
        decode_sections(rest, bytes.len())?
    } else if let Some(rest) = bytes.strip_prefix(&MAGIC_3) {
        decode_frames(rest, bytes.len())?
    } else if bytes.trim_ascii_start().starts_with(b"{") {
        decode_json(bytes)?
    } else if MAGIC.starts_with(bytes) {
        return Err(truncated(bytes.len(), MAGIC.len()));
    } else if bytes.starts_with(&TRACE_MAGIC) {
        let (version, known) = (bytes[TRACE_MAGIC.len()], MAGIC[TRACE_MAGIC.len()]);
        let remedy = if version > known { "read it with a newer equipoise" } else { "record it again" };
        return Err(Refused(format!(
            "has version {version}, but this program reads versions 3 to {known}; {remedy}"
        )));
    } else {
        let sentence = "does not begin as a trace; name a file that `--record` wrote, copied in binary mode";
        return Err(Refused(sentence.into()));
    };
    trace.check().map_err(|error| Refused(format!("is inconsistent: {error}; record it again")))?;
    Ok(trace)
}

fn decode_json(bytes: &[u8]) -> Result<Trace, Refused> {
    let mut ignored = Ignored::default();
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let trace: Result<Trace, _> =
        serde_ignored::deserialize(&mut reader, |path| ignored.add(field(&path.to_string())));
    let trace = trace.and_then(|trace| reader.end().map(|()| trace));
    let trace = trace.map_err(|error| {
        Refused(format!(
            "is not a trace in JSON: {error}; give a file that --record wrote, or record it again"
        ))
    })?;
    Ok(Trace { warnings: ignored.clause().into_iter().collect(), ..trace })
}

fn decode_frames(mut rest: &[u8], file_bytes: usize) -> Result<Trace, Refused> {
    let mut expansion = Expansion::OLDER;
    let head: Head = take_frame(&mut rest, file_bytes, &mut expansion)?;
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
        messages: take_frame(&mut rest, file_bytes, &mut expansion)?,
        ..Trace::default()
    };
    while (trace.executions.len() as u64) < head.executions {
        let chunk: Vec<_> = take_frame(&mut rest, file_bytes, &mut expansion)?;
        if chunk.is_empty() {
            return Err(damaged("a frame is empty"));
        }
        trace.executions.extend(chunk);
    }
    if trace.executions.len() as u64 != head.executions || !rest.is_empty() {
        return Err(damaged("it has more executions than its first frame states"));
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::tests::exchange;
    use super::*;

    #[test]
    fn both_formats_read_back_the_written_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["some.trace", "some.JSON"] {
            let path = folder.path().join(name);
            exchange().write(&path).expect("it can be written");
            assert_eq!(Trace::read(&path).expect("it can be read"), exchange(), "{name}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_problem() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("no.trace");
        let error = Trace::read(&path).expect_err("the file does not exist");
        assert!(error.fault() == Fault::Usage && error.to_string().contains("no.trace"), "{error}");
        let mut older = encode(&exchange()).expect("it can be encoded");
        older[TRACE_MAGIC.len()] = 2;
        fs::write(&path, older).expect("a file");
        let error = Trace::read(&path).expect_err("its version is older").to_string();
        assert!(
            error.contains("has version 2, but this program reads versions 3 to 4; record it again"),
            "{error}"
        );
        fs::write(&path, "garbage").expect("a file");
        let error = Trace::read(&path).expect_err("it is not a trace");
        assert!(
            error.fault() == Fault::Input && error.to_string().contains("does not begin as a trace"),
            "{error}"
        );
    }
}

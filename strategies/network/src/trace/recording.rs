//! Writes a trace part by part while a run proceeds.

use std::io;
use std::path::{Path, PathBuf};

use equipoise_model::files::{NewFile, Refused};
use equipoise_model::table::count;

use super::file::{TraceError, decode, json};
use super::part::Part;
use super::sections::Encoder;
use super::{Details, Trace};

/// Writes a trace while the run proceeds, under a temporary name until it is finished (see [`NewFile`]). If the writer
/// is dropped before, the file has the parts so far.
pub struct TraceWriter {
    path: PathBuf,
    file: NewFile,
    encoder: Encoder,
}

impl TraceWriter {
    /// Begins the trace of a run at `path`. Of `head`, everything is used except the fields of [`Part`], the end of the
    /// run and its exit.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn record(path: &Path, head: &Trace) -> Result<TraceWriter, TraceError> {
        let failed = |source| TraceError::Write { path: path.into(), source };
        let (encoder, begin) = Encoder::new(head, false).map_err(|refused| refused_at(path, refused))?;
        let mut file = NewFile::create(path).map_err(failed)?;
        file.append(&begin).map_err(failed)?;
        Ok(TraceWriter { path: path.into(), file, encoder })
    }

    /// Appends a part.
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn push(&mut self, part: &Part) -> Result<(), TraceError> {
        let bytes = self.encoder.part(part);
        self.append(bytes)?;
        self.file.keep(&[], format!("the first {}", count(self.encoder.executions, "execution")));
        Ok(())
    }

    /// Completes the trace of a run that ended at `seconds` with the execution `exit`. Of `details`, everything is used
    /// except the fields of [`Part`].
    ///
    /// # Errors
    /// If the file system reports an error.
    pub fn finish(mut self, seconds: f64, exit: Option<u32>, details: &Details) -> Result<(), TraceError> {
        let end = self.encoder.end(seconds, exit, details);
        self.append(end)?;
        let failed = |source| TraceError::Write { path: self.path.clone(), source };
        if !json(&self.path) {
            return self.file.finish().map_err(failed);
        }
        let bytes = self.file.bytes().map_err(|error| match error.kind() {
            io::ErrorKind::Unsupported => failed(io::Error::new(
                error.kind(),
                "a trace in JSON cannot be recorded to a pipe or a device; give a name without .json",
            )),
            _ => failed(error),
        })?;
        let trace = decode(&bytes).map_err(|refused| refused_at(&self.path, refused))?;
        let written = trace.write(&self.path);
        // Otherwise the parts keep the name, in binary.
        if written.is_ok() {
            self.file.discard();
        }
        written
    }

    fn append(&mut self, bytes: Result<Vec<u8>, Refused>) -> Result<(), TraceError> {
        let bytes = bytes.map_err(|refused| refused_at(&self.path, refused))?;
        self.file.append(&bytes).map_err(|source| TraceError::Write { path: self.path.clone(), source })
    }
}

fn refused_at(path: &Path, refused: Refused) -> TraceError {
    TraceError::Refused { path: path.into(), refused }
}

#[cfg(test)]
mod tests {
    use super::super::tests::exchange;
    use super::super::{Execution, TraceMessage};
    use super::*;
    use std::fs;

    /// The writer of a run whose trace is [`exchange`], with its objects first seen in the opposite order; and the parts.
    fn recorded(path: &Path) -> (TraceWriter, [Part; 2]) {
        let Trace { objects, messages, executions, .. } = exchange();
        let swapped = |object: u32| if object < 4 { object } else { 9 - object };
        let message = |it: &TraceMessage| TraceMessage { to: swapped(it.to), ..*it };
        let execution = |it: &Execution| Execution { object: swapped(it.object), ..it.clone() };
        let part = |from: usize, to: usize| Part {
            objects: Vec::new(),
            messages: messages[from..to.min(2)].iter().map(message).collect(),
            executions: executions[from..to].iter().map(execution).collect(),
            ..Part::default()
        };
        let first = Part { objects: vec![objects[1], objects[0]], ..part(0, 1) };
        (TraceWriter::record(path, &exchange()).expect("a file"), [first, part(1, 3)])
    }

    #[test]
    fn a_trace_written_in_parts_is_the_same_trace() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["some.trace", "some.json"] {
            let path = folder.path().join(name);
            let (mut writer, parts) = recorded(&path);
            parts.iter().for_each(|part| writer.push(part).expect("room"));
            assert!(!path.exists());
            writer.finish(6.0, None, &Details::default()).expect("room");
            assert_eq!(Trace::read(&path).expect("a trace"), exchange(), "{name}");
            assert_eq!(fs::read(&path).expect("a file")[0] == b'{', name == "some.json");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn an_unfinished_trace_has_the_parts_so_far() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("some.trace");
        let (mut writer, parts) = recorded(&path);
        writer.push(&parts[0]).expect("room");
        drop(writer);
        let trace = Trace::read(&path).expect("a trace");
        assert_eq!(trace.executions, exchange().executions[..1]);
        assert_eq!(trace.warnings, ["was cut after 1 execution (the run was interrupted?); 0 bytes ignored"]);
        let (writer, _) = recorded(&path);
        drop(writer);
        assert_eq!(Trace::read(&path).expect("the earlier trace").executions.len(), 1);
    }
}

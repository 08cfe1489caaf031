//! The file of a recorded order: magic bytes, then frames as in a [database](equipoise_model::database).
//!
//! The frames of a run: [`Frame::Head`] once, [`Frame::Arrays`] once all PEs have finished their setup, any number of
//! [`Frame::Events`], [`Frame::End`]. A file without the last is of a run that was killed; all frames before the cut are
//! used.

use super::Executions;
use equipoise_model::decompress::Expansion;
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::files::Refused;
use equipoise_model::frames::{damaged, push_frame, take_frame};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The first bytes of every file; the second last byte is the version of the format.
pub(super) const MAGIC: [u8; 8] = *b"\x89EQRO\n\x01\x1a";
const VERSION_AT: usize = 6;

/// The bytes before the stored bytes of a frame.
const FRAME_HEAD_BYTES: u64 = 20;

/// What a run and its replay must agree on before the setup.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// The command line, for messages to users.
    pub(crate) program: Vec<u8>,
    pub(crate) pes: u32,
    pub(crate) seed: u64,
    /// A digest of the initial placement.
    pub(crate) initial: u64,
    /// Whether migrating elements are encoded.
    pub(crate) encodes: bool,
    /// Whether there are load-balancing steps.
    pub(crate) balances: bool,
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArrayHead {
    pub(crate) name: Vec<u8>,
    pub(crate) entries: Vec<Vec<u8>>,
    /// The number of its indices.
    pub(crate) count: u32,
}

/// How a run ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct End {
    /// The PE that ended the run by an exit or a failure.
    pub(super) ended_by: Option<u32>,
    pub(super) pes: Vec<PeEnd>,
}

impl End {
    fn fits(&self, pes: usize) -> bool {
        self.pes.len() == pes && self.ended_by.is_none_or(|pe| (pe as usize) < pes)
    }
}

/// How a PE ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PeEnd {
    /// The number and the digest of its executions.
    pub(super) executions: (u64, u64),
    /// Whether it ended by a panic.
    pub(super) panicked: bool,
}

impl PeEnd {
    pub(super) fn new(executions: &Executions, panicked: bool) -> Self {
        PeEnd { executions: executions.get(), panicked }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) enum Frame {
    Head(Head),
    Arrays(Vec<ArrayHead>),
    /// Events of one PE, and the number of default answers after the last of them.
    Events {
        pe: u32,
        #[serde(with = "crate::codec::numbers")]
        bytes: Vec<u8>,
        defaults: u64,
    },
    End(End),
}

impl Frame {
    /// The bytes of the frame.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Refused> {
        let (mut bytes, mut expansion) = (Vec::new(), Expansion::NEW);
        push_frame(&mut bytes, self, &mut expansion)?;
        Ok(bytes)
    }
}

/// Why an order cannot be recorded or repeated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderFileError {
    /// The file cannot be read.
    #[error("cannot read the order file `{}`: {source}; check its name and that it may be read", .path.display())]
    Read { path: PathBuf, source: io::Error },
    /// The file cannot be written.
    #[error(
        "cannot write the order file `{}`: {source}; name a place that exists, is writable and has room",
        .path.display()
    )]
    Write { path: PathBuf, source: io::Error },
    /// The content of the file is invalid.
    #[error("the order file `{}` {refused}", .path.display())]
    Refused { path: PathBuf, refused: Refused },
}

impl Classified for OrderFileError {
    fn fault(&self) -> Fault {
        match self {
            OrderFileError::Read { .. } => Fault::Usage,
            OrderFileError::Write { source, .. } => source.fault(),
            OrderFileError::Refused { .. } => Fault::Input,
        }
    }
}

/// A file opened for a replay. Its events stay in the file until they are needed.
#[derive(Debug)]
pub(super) struct OrderFile {
    path: PathBuf,
    file: File,
    pub(super) head: Head,
    /// None if the setup of the run failed, or the file is cut before.
    pub(super) arrays: Option<Vec<ArrayHead>>,
    /// Begin and length of the frames of every PE.
    frames: Vec<Vec<(u64, u64)>>,
    /// None if the file is cut.
    pub(super) end: Option<End>,
}

impl OrderFile {
    /// Opens a file and checks all its frames.
    pub(super) fn open(path: &Path) -> Result<Self, OrderFileError> {
        let unread = |source| OrderFileError::Read { path: path.to_owned(), source };
        let refused = |refused| OrderFileError::Refused { path: path.to_owned(), refused };
        let mut file = File::open(path).map_err(unread)?;
        let length = file.metadata().map_err(unread)?.len();
        let mut magic = Vec::new();
        (&mut file).take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unread)?;
        check_magic(&magic).map_err(refused)?;
        let mut at = magic.len() as u64;
        let no_head = || refused(damaged("its head is missing"));
        let head = match next_frame(&mut file, at, length).map_err(unread)? {
            None => return Err(no_head()),
            Some(bytes) => {
                at += bytes.len() as u64;
                let Frame::Head(head) = parse(&bytes, at).map_err(refused)? else { return Err(no_head()) };
                head
            }
        };
        let (mut arrays, mut end, mut frames) =
            (None, None, vec![Vec::new(); head.pes.min(1 << 20) as usize]);
        while let Some(bytes) = next_frame(&mut file, at, length).map_err(unread)? {
            let begin = at;
            at += bytes.len() as u64;
            match parse(&bytes, at).map_err(refused)? {
                Frame::Events { pe, .. } if (pe as usize) < frames.len() && end.is_none() => {
                    frames[pe as usize].push((begin, bytes.len() as u64));
                }
                Frame::Arrays(all) if arrays.is_none() => arrays = Some(all),
                Frame::End(it) if end.is_none() && it.fits(frames.len()) => end = Some(it),
                _ => return Err(refused(damaged("its frames do not follow each other"))),
            }
        }
        Ok(OrderFile { path: path.to_owned(), file, head, arrays, frames, end })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The events of frame number `frame` of a PE, and the number of default answers after them; none after the last
    /// frame.
    pub(super) fn events(&mut self, pe: u32, frame: usize) -> Result<Option<(Vec<u8>, u64)>, OrderFileError> {
        let Some(&(begin, length)) = self.frames[pe as usize].get(frame) else { return Ok(None) };
        let read = |file: &mut File| {
            file.seek(SeekFrom::Start(begin))?;
            let mut bytes = vec![0; length as usize];
            file.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        let path = || self.path.clone();
        let bytes = read(&mut self.file).map_err(|source| OrderFileError::Read { path: path(), source })?;
        match parse(&bytes, begin + length) {
            Ok(Frame::Events { bytes, defaults, .. }) => Ok(Some((bytes, defaults))),
            Ok(_) => Err(OrderFileError::Refused { path: path(), refused: damaged("it has changed") }),
            Err(refused) => Err(OrderFileError::Refused { path: path(), refused }),
        }
    }
}

fn check_magic(magic: &[u8]) -> Result<(), Refused> {
    let matches = |(at, byte): (usize, &u8)| at == VERSION_AT || magic.get(at) == Some(byte);
    if !MAGIC.iter().enumerate().all(matches) {
        return Err(Refused("is not an order file; name a file that --record-order wrote".into()));
    }
    if magic[VERSION_AT] != MAGIC[VERSION_AT] {
        return Err(Refused(format!(
            "has version {}, and this program reads version {}; replay it with the program that recorded it",
            magic[VERSION_AT], MAGIC[VERSION_AT]
        )));
    }
    Ok(())
}

/// The bytes of the frame that begins at byte `at` of a file of `length` bytes; none if the file ends within it.
fn next_frame(file: &mut File, at: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    let left = length - at;
    if left < FRAME_HEAD_BYTES {
        return Ok(None);
    }
    let mut bytes = vec![0; FRAME_HEAD_BYTES as usize];
    file.read_exact(&mut bytes)?;
    let mut stored = [0; 8];
    stored.copy_from_slice(&bytes[8..16]);
    let stored = u64::from_le_bytes(stored);
    if stored > left - FRAME_HEAD_BYTES {
        return Ok(None);
    }
    file.take(stored).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// The frame with these bytes, which ends at byte `end` of its file.
fn parse(bytes: &[u8], end: u64) -> Result<Frame, Refused> {
    let (mut rest, mut expansion) = (bytes, Expansion::NEW);
    take_frame(&mut rest, bytes.len(), &mut expansion).map_err(|Refused(sentence)| {
        let begin = end - bytes.len() as u64;
        Refused(format!("{sentence} (in the frame from byte {begin} to {end} of the file)"))
    })
}

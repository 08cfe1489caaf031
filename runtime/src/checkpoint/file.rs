//! The files of a checkpoint, as bytes.
//!
//! ```text
//! DIR/checkpoint-N/manifest.eqcp     magic, u16 version, a frame with the Manifest
//! DIR/checkpoint-N/process-K.eqcp    magic, u16 version, u64 id, u32 K, the records, a frame with the Index, u64 its offset
//! record                             bytes of the codec; the index has its length and its CRC-32
//! ```
//! All integers are little endian; a frame has a checksum of its own ([`frames`]). Every file appears under its name when it
//! is complete and on the disk, the manifest after all others. So a folder with a manifest is a whole checkpoint, and all
//! else is left over from a run that was interrupted. The manifest has the length of every file and the checksum of its
//! index: files of two checkpoints cannot be taken for one.

use equipoise_model::decompress::Expansion;
use equipoise_model::files::{NewFile, Refused};
use equipoise_model::frames::{damaged, push_frame, take_frame, truncated};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The first bytes of a manifest and of the file of a process.
const MANIFEST_MAGIC: [u8; 6] = *b"\x89EQCM\n";
const PROCESS_MAGIC: [u8; 6] = *b"\x89EQCP\n";

/// The version of both formats.
const VERSION: u16 = 4;

/// The bytes before the records: magic, version, id and number of the process.
const HEADER_BYTES: usize = 6 + 2 + 8 + 4;

/// At least as many bytes are written at once.
const BLOCK_BYTES: usize = 1 << 20;

/// What names a checkpoint: its number in its folder, and a random id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Generation {
    pub(crate) number: u64,
    pub(crate) id: u64,
}

/// What a checkpoint consists of, and of which run it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) generation: Generation,
    /// The complete checkpoint before, in the same folder: of this run, or the one with which it began.
    pub(crate) before: Option<Generation>,
    /// The command line.
    pub(crate) program: Text,
    /// A description of the program file, which is another one after a build.
    pub(crate) build: Text,
    pub(crate) seed: u64,
    pub(crate) pes: u32,
    pub(crate) local_pes: u32,
    /// The number of load-balancing steps so far.
    pub(crate) steps: u32,
    pub(crate) arrays: Vec<ArrayHead>,
    /// By process.
    pub(crate) files: Vec<FileHead>,
}

/// Text, stored as bytes as in all frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Text(Vec<u8>);

impl Text {
    /// A text per name.
    pub(crate) fn list(names: &[&str]) -> Vec<Text> {
        names.iter().map(|name| Text::from(*name)).collect()
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text(text.as_bytes().to_vec())
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// An array, by which a restarted program is compared with the saved one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArrayHead {
    pub(crate) name: Text,
    /// The parameters of a generic chare, as `<f64, 3>`.
    pub(crate) parameters: Text,
    /// The shape, as `[4, 4]`.
    pub(crate) shape: Text,
    pub(crate) entries: Vec<Text>,
    /// The names of the fields of the chare. An encoded element has none: without them, fields that changed their order or
    /// their meaning would not be noticed.
    pub(crate) fields: Vec<Text>,
    /// The waits of the flow of the chare, by which the state of a flow is known.
    pub(crate) waits: Vec<Text>,
    /// The number of the array to which it is bound.
    pub(crate) bound_to: Option<u16>,
    /// The number of indices.
    pub(crate) count: u32,
}

impl ArrayHead {
    /// Whether both are of the same chare, with any number of indices.
    pub(crate) fn is_of_same_chare(&self, other: &Self) -> bool {
        (&self.name, &self.parameters, &self.entries) == (&other.name, &other.parameters, &other.entries)
    }
}

/// The file of a process, by which it is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileHead {
    pub(crate) bytes: u64,
    index_offset: u64,
    index_crc: u32,
}

/// The records of a process, in the order of the file: by PE its state, then by array the rest, then the elements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) pes: Vec<PeIndex>,
}

/// The records of a PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PeIndex {
    pub(crate) pe: u32,
    pub(crate) state: Record,
    pub(crate) arrays: Vec<ArrayIndex>,
}

/// The records of an array on a PE.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ArrayIndex {
    /// What belongs to no element that exists.
    pub(crate) rest: Record,
    /// Above all indices that this PE has given to chares without an index of their own.
    pub(crate) used: u32,
    pub(crate) elements: Vec<ElementIndex>,
}

/// The record of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ElementIndex {
    pub(crate) rank: u32,
    /// The load since the last load-balancing step, as measured.
    pub(crate) load_seconds: f64,
    pub(crate) record: Record,
}

/// Length and checksum of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) bytes: u64,
    crc: u32,
}

impl Index {
    /// Whether all loads are seconds.
    fn has_loads(&self) -> bool {
        let elements = self.pes.iter().flat_map(|pe| &pe.arrays).flat_map(|array| &array.elements);
        elements.map(|element| element.load_seconds).all(|load| load.is_finite() && load >= 0.0)
    }

    /// The records, in the order of the file.
    fn records(&mut self) -> impl Iterator<Item = &mut Record> {
        self.pes.iter_mut().flat_map(|pe| {
            let arrays = pe.arrays.iter_mut().flat_map(|array| {
                let elements = array.elements.iter_mut().map(|element| &mut element.record);
                std::iter::once(&mut array.rest).chain(elements)
            });
            std::iter::once(&mut pe.state).chain(arrays)
        })
    }
}

/// What a PE saves: its records after one another, and their lengths.
#[derive(Default)]
pub(crate) struct Part {
    pub(crate) index: PeIndex,
    pub(crate) bytes: Vec<u8>,
    /// On PE 0: the number of load-balancing steps so far.
    pub(crate) steps: u32,
}

impl Part {
    /// The record of the bytes that `write` appends.
    pub(crate) fn record<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Record, E> {
        let before = self.bytes.len();
        write(&mut self.bytes)?;
        Ok(Record { bytes: (self.bytes.len() - before) as u64, crc: 0 })
    }
}

/// The folder of a checkpoint.
pub(crate) fn folder(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("checkpoint-{number}"))
}

/// The file of a process.
pub(crate) fn process_path(folder: &Path, process: u32) -> PathBuf {
    folder.join(format!("process-{process}.eqcp"))
}

/// The manifest of a checkpoint.
pub(crate) fn manifest_path(folder: &Path) -> PathBuf {
    folder.join("manifest.eqcp")
}

/// The numbers of the checkpoints in a folder, in order; only those with a manifest if `complete`.
///
/// # Errors
/// If the folder exists and cannot be read.
pub(crate) fn numbers(dir: &Path, complete: bool) -> io::Result<Vec<u64>> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("checkpoint-")).unwrap_or_default();
        let number: Option<u64> = digits.parse().ok();
        // Other spellings of a number are not ours.
        let number = number.filter(|number| number.to_string() == digits);
        numbers.extend(number.filter(|&number| !complete || manifest_path(&folder(dir, number)).exists()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Moves the names in a folder to the disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn refused_write(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// Writes the file of a process; it has its name when it is on the disk.
pub(crate) fn write_process(
    folder: &Path,
    generation: Generation,
    process: u32,
    parts: &[Part],
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = NewFile::create(&process_path(folder, process))?;
    file.append(&header(generation.id, process))?;
    let mut index = Index { pes: parts.iter().map(|part| part.index.clone()).collect() };
    let mut records = index.records();
    let mut offset = HEADER_BYTES as u64;
    for part in parts {
        // The end of the last record, and of what is written.
        let (mut end, mut written) = (0, 0);
        while end < part.bytes.len() {
            let record = records.next().ok_or_else(|| refused_write(&"a record has no index"))?;
            let begin = end;
            end += record.bytes as usize;
            record.crc = crc32fast::hash(&part.bytes[begin..end]);
            // While the bytes are still in the cache.
            if end - written >= BLOCK_BYTES {
                file.append(&part.bytes[written..end])?;
                written = end;
            }
        }
        file.append(&part.bytes[written..])?;
        offset += part.bytes.len() as u64;
    }
    drop(records);
    let mut end = Vec::new();
    push_frame(&mut end, &index, &mut Expansion::BY_SIZE.clone()).map_err(|error| refused_write(&error))?;
    end.extend_from_slice(&offset.to_le_bytes());
    file.append(&end)?;
    file.finish()?;
    sync_folder(folder)
}

fn header(id: u64, process: u32) -> Vec<u8> {
    let mut header = PROCESS_MAGIC.to_vec();
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&id.to_le_bytes());
    header.extend_from_slice(&process.to_le_bytes());
    header
}

/// Writes the manifest, with which the checkpoint is complete.
pub(crate) fn write_manifest(folder: &Path, manifest: &Manifest) -> io::Result<()> {
    let mut bytes = MANIFEST_MAGIC.to_vec();
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    push_frame(&mut bytes, manifest, &mut Expansion::BY_SIZE.clone())
        .map_err(|error| refused_write(&error))?;
    let mut file = NewFile::create(&manifest_path(folder))?;
    file.append(&bytes)?;
    file.finish()?;
    sync_folder(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

/// Removes a checkpoint. Without its manifest, which goes first, it is none.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_file(manifest_path(folder)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir_all(folder)
}

/// What to do if something else is taken for a checkpoint, and if files of a checkpoint have been mixed.
const NAME_FOLDER: &str = "name the folder of --checkpoint, or one checkpoint in it";
const RESTORE: &str = "restore the files that were written together";

/// Checks magic and version, and returns what follows.
fn after_version<'a>(
    bytes: &'a [u8],
    magic: [u8; 6],
    (what, remedy): (&str, &str),
) -> Result<&'a [u8], Refused> {
    let refused = |sentence: String| Refused(sentence);
    let Some((start, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(truncated(bytes.len(), 8));
    };
    if start[..6] != magic {
        return Err(refused(format!("is not {what}; {remedy}")));
    }
    let version = u16::from_le_bytes([start[6], start[7]]);
    if version != VERSION {
        return Err(refused(format!(
            "has version {version} of the format, and this program reads version {VERSION}; read it with the program \
             that wrote it"
        )));
    }
    Ok(rest)
}

/// Reads the manifest in a folder.
pub(crate) fn read_manifest(folder: &Path) -> Result<Manifest, Refused> {
    let bytes = read_small(&manifest_path(folder))?;
    let mut rest = after_version(&bytes, MANIFEST_MAGIC, ("the manifest of a checkpoint", NAME_FOLDER))?;
    let manifest = whole_frame(&mut rest, bytes.len())?;
    Ok(manifest)
}

/// The folder of the checkpoint before the one in this folder, as its manifest says; `None` if there is none, or if one of
/// the two manifests is missing or damaged. A checkpoint with the same number of another run is not the one before.
pub(crate) fn before(checkpoint: &Path) -> Option<PathBuf> {
    let manifest = read_manifest(checkpoint).ok()?;
    // Numbers decrease, so that no file makes this endless.
    let before = manifest.before.filter(|before| before.number < manifest.generation.number)?;
    let folder = folder(checkpoint.parent()?, before.number);
    (read_manifest(&folder).ok()?.generation == before).then_some(folder)
}

/// Reads a file that is small unless it is hostile.
fn read_small(path: &Path) -> Result<Vec<u8>, Refused> {
    equipoise_model::files::bytes(path).map_err(|error| Refused(format!("cannot be read: {error}")))
}

/// The value of a frame that is all of `rest`.
fn whole_frame<T: DeserializeOwned>(rest: &mut &[u8], file_bytes: usize) -> Result<T, Refused> {
    let value = take_frame(rest, file_bytes, &mut Expansion::BY_SIZE.clone())?;
    if rest.is_empty() { Ok(value) } else { Err(damaged("bytes follow its last part")) }
}

/// The number of files of a checkpoint that stay open. Systems often let a process open 1024 files, and a run may have had more
/// processes than that. In tests, files of both kinds are read.
const KEPT_OPEN: u32 = if cfg!(test) { 1 } else { 256 };

/// The file of a process.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    path: PathBuf,
    /// The open file, unless it is opened again for every record.
    file: Option<File>,
    pub(crate) index: Index,
    pub(crate) head: FileHead,
    /// The bytes that were read of it.
    #[cfg(test)]
    pub(crate) bytes_read: std::sync::atomic::AtomicU64,
}

/// The id in the header of the file of a process; `None` if there is no such file, or none with a whole header.
pub(crate) fn id_of(folder: &Path, process: u32) -> Option<u64> {
    let mut header = [0; HEADER_BYTES];
    File::open(process_path(folder, process)).ok()?.read_exact(&mut header).ok()?;
    let id = header[8..16].try_into().ok()?;
    Some(u64::from_le_bytes(id))
}

impl ProcessFile {
    /// Opens the file of a process of this checkpoint, and reads its index.
    pub(crate) fn open(folder: &Path, generation: Generation, process: u32) -> Result<Self, Refused> {
        let unreadable = |error: io::Error| Refused(format!("cannot be read: {error}; copy it again"));
        let path = process_path(folder, process);
        let mut file = File::open(&path).map_err(unreadable)?;
        let file_bytes = file.metadata().map_err(unreadable)?.len();
        let least = (HEADER_BYTES + 8) as u64;
        if file_bytes < least {
            return Err(truncated(file_bytes as usize, least as usize));
        }
        let mut start = [0; HEADER_BYTES];
        file.read_exact(&mut start).map_err(unreadable)?;
        let rest = after_version(&start, PROCESS_MAGIC, ("the file of a process in a checkpoint", RESTORE))?;
        if *rest != header(generation.id, process)[8..] {
            return Err(Refused(format!("belongs to another checkpoint; {RESTORE}")));
        }
        file.seek(SeekFrom::Start(file_bytes - 8)).map_err(unreadable)?;
        let mut offset = [0; 8];
        file.read_exact(&mut offset).map_err(unreadable)?;
        let index_offset = u64::from_le_bytes(offset);
        if !(HEADER_BYTES as u64..file_bytes - 8).contains(&index_offset) {
            return Err(damaged("its end does not say where its index is"));
        }
        file.seek(SeekFrom::Start(index_offset)).map_err(unreadable)?;
        let mut bytes = vec![0; (file_bytes - 8 - index_offset) as usize];
        file.read_exact(&mut bytes).map_err(unreadable)?;
        let mut index: Index = whole_frame(&mut bytes.as_slice(), bytes.len())?;
        let lengths = index.records().try_fold(0u64, |sum, record| sum.checked_add(record.bytes));
        if lengths != Some(index_offset - HEADER_BYTES as u64) || !index.has_loads() {
            return Err(damaged(
                "its records have other lengths than its index says, or loads that are no seconds",
            ));
        }
        let head = FileHead { bytes: file_bytes, index_offset, index_crc: crc32fast::hash(&bytes) };
        #[cfg(test)]
        let bytes_read = ((HEADER_BYTES + 8 + bytes.len()) as u64).into();
        Ok(ProcessFile {
            path,
            file: Some(file).filter(|_| process < KEPT_OPEN),
            index,
            head,
            #[cfg(test)]
            bytes_read,
        })
    }

    /// The offsets of the records, in the order of the file.
    pub(crate) fn offsets() -> Offsets {
        Offsets(HEADER_BYTES as u64)
    }

    /// The bytes of a record.
    pub(crate) fn read(&self, offset: u64, record: Record) -> Result<Vec<u8>, Refused> {
        let unreadable = |error: io::Error| Refused(format!("cannot be read: {error}; copy it again"));
        // At most as long as the file, which `open` has checked.
        let mut bytes = vec![0; record.bytes as usize];
        match &self.file {
            Some(file) => read_at(file, &mut bytes, offset),
            None => File::open(&self.path).and_then(|file| read_at(&file, &mut bytes, offset)),
        }
        .map_err(unreadable)?;
        #[cfg(test)]
        self.bytes_read.fetch_add(record.bytes, std::sync::atomic::Ordering::Relaxed);
        if crc32fast::hash(&bytes) != record.crc {
            let end = offset + record.bytes;
            return Err(damaged(&format!("the checksum of bytes {offset} to {end} is wrong")));
        }
        Ok(bytes)
    }
}

/// Reads at an offset, from several threads.
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    {
        std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
    }
    #[cfg(windows)]
    {
        let mut read = 0;
        while read < bytes.len() {
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[read..], offset + read as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => read += more,
            }
        }
        Ok(())
    }
}

/// The offset of the next record of a file.
pub(crate) struct Offsets(u64);

impl Offsets {
    /// The offset of this record; the next call is for the next record.
    pub(crate) fn next(&mut self, record: Record) -> u64 {
        let offset = self.0;
        self.0 += record.bytes;
        offset
    }
}

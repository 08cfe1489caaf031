//! A complete checkpoint, as a restart and `equipoise inspect` read it.

use super::file::{
    ArrayHead, Generation, Manifest, ProcessFile, Record, before, folder, manifest_path, numbers,
    process_path, read_manifest,
};
use equipoise_model::fault::{Classified, Fault};
use equipoise_model::frames::truncated;
use equipoise_model::quote::sentence;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Why a checkpoint cannot be read: the file, and a sentence with the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {} `{}` {reason}", kind(path), path.display())]
pub struct CheckpointError {
    path: PathBuf,
    reason: String,
    fault: Fault,
}

/// What a path of a checkpoint is, for messages.
fn kind(path: &Path) -> &'static str {
    if path.extension().is_some_and(|it| it == "eqcp") { "checkpoint file" } else { "checkpoint folder" }
}

impl Classified for CheckpointError {
    fn fault(&self) -> Fault {
        self.fault
    }
}

/// A complete checkpoint. Its index is in memory, its elements are on the disk.
#[derive(Debug)]
pub struct Checkpoint {
    folder: PathBuf,
    manifest: Manifest,
    /// By process.
    files: Vec<ProcessFile>,
    /// By array, the records of all its elements.
    elements: Vec<Vec<SavedElement>>,
    /// By PE of the saved run.
    pes: Vec<SavedPe>,
    /// By array: the positions in `elements` of the elements of each PE of the run that restarts.
    of_pes: Vec<OnceLock<Vec<Vec<u32>>>>,
}

/// The record of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedElement {
    pub(crate) rank: u32,
    pub(crate) load_seconds: f64,
    place: Place,
}

/// The records of a PE in addition to elements.
#[derive(Clone, Debug)]
struct SavedPe {
    state: Place,
    /// By array.
    rests: Vec<Place>,
    used: Vec<u32>,
}

/// Where a record is.
#[derive(Clone, Copy, Debug)]
struct Place {
    process: u32,
    offset: u64,
    record: Record,
}

/// What a checkpoint has of an array.
#[derive(Clone, Debug, serde::Serialize)]
pub struct CheckpointArray {
    /// The name of the chare.
    pub name: String,
    /// The shape, as in `[4, 4]`.
    pub shape: String,
    /// The number of elements.
    pub elements: u64,
    /// The bytes of all elements.
    pub bytes: u64,
    /// The bytes of the largest element.
    pub largest_bytes: u64,
    /// The load of all elements since the last load-balancing step, in seconds.
    pub load_seconds: f64,
}

impl SavedElement {
    /// The length of its record.
    pub(crate) fn bytes(&self) -> u64 {
        self.place.record.bytes
    }
}

impl Checkpoint {
    /// Opens a checkpoint: `path` is its folder, or the folder of `--checkpoint`, whose newest complete one is opened. All
    /// files are looked at, but elements are not yet read.
    ///
    /// # Errors
    /// If there is none, or a file of it is missing, damaged, or of another checkpoint or version.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let folder = if manifest_path(path).exists() { path.to_owned() } else { Self::newest(path)? };
        let manifest = read_manifest(&folder)
            .map_err(|refused| CheckpointError::of_file(manifest_path(&folder), &refused.0))?;
        let mut files = Vec::new();
        for (process, head) in (0..).zip(&manifest.files) {
            let path = process_path(&folder, process);
            // Of a file that was cut, the last bytes mean nothing.
            if let Some(bytes) = path.metadata().ok().map(|it| it.len()).filter(|bytes| *bytes < head.bytes) {
                let refused = truncated(bytes as usize, head.bytes as usize);
                return Err(CheckpointError::of_file(path, &refused.0));
            }
            let file = ProcessFile::open(&folder, manifest.generation, process)
                .map_err(|refused| CheckpointError::of_file(path.clone(), &refused.0))?;
            if file.head != *head {
                return Err(CheckpointError::of_file(path, OTHER));
            }
            files.push(file);
        }
        let (pes, elements) = places(&manifest, &files)
            .map_err(|process| CheckpointError::of_file(process_path(&folder, process), OTHER))?;
        let of_pes = elements.iter().map(|_| OnceLock::new()).collect();
        Ok(Checkpoint { folder, manifest, files, elements, pes, of_pes })
    }

    /// The folder of the newest complete checkpoint in the folder of `--checkpoint`.
    ///
    /// # Errors
    /// If there is none.
    pub fn newest(dir: &Path) -> Result<PathBuf, CheckpointError> {
        if let Some(newest) = Self::all(dir)?.pop() {
            return Ok(newest);
        }
        let none = match numbers(dir, false).is_ok_and(|begun| !begun.is_empty()) {
            true => {
                "has no complete checkpoint: the run ended before the first one was written; start the program without --restart"
            }
            false => "has no complete checkpoint; name the folder of --checkpoint",
        };
        Err(CheckpointError::new(dir.to_owned(), none))
    }

    /// The folders of the complete checkpoints in the folder of `--checkpoint`, the newest last.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn all(dir: &Path) -> Result<Vec<PathBuf>, CheckpointError> {
        let failed = |reason: &str| CheckpointError::new(dir.to_owned(), reason);
        if !dir.is_dir() {
            let what = if dir.exists() { "is a file" } else { "does not exist" };
            let missing = failed(&format!("{what}; name the folder of --checkpoint"));
            return Err(CheckpointError { fault: Fault::Usage, ..missing });
        }
        let numbers = numbers(dir, true)
            .map_err(|error| failed(&format!("cannot be read: {error}; check its permissions")))?;
        Ok(numbers.into_iter().map(|number| folder(dir, number)).collect())
    }

    /// Reads everything, and compares all checksums.
    ///
    /// # Errors
    /// If a record is damaged.
    pub fn check(&self) -> Result<(), CheckpointError> {
        for (process, file) in (0..).zip(&self.files) {
            let mut offsets = ProcessFile::offsets();
            let mut check =
                |record| self.read(Place { process, offset: offsets.next(record), record }).map(drop);
            for pe in &file.index.pes {
                check(pe.state)?;
                for array in &pe.arrays {
                    check(array.rest)?;
                    array.elements.iter().try_for_each(|element| check(element.record))?;
                }
            }
        }
        Ok(())
    }

    fn read(&self, Place { process, offset, record }: Place) -> Result<Vec<u8>, CheckpointError> {
        self.files[process as usize]
            .read(offset, record)
            .map_err(|refused| CheckpointError::of_file(process_path(&self.folder, process), &refused.0))
    }

    /// The folder of this checkpoint.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number of this checkpoint in its folder; later ones have higher numbers.
    pub fn number(&self) -> u64 {
        self.manifest.generation.number
    }

    /// A number that no other checkpoint has.
    pub(crate) fn id(&self) -> u64 {
        self.manifest.generation.id
    }

    /// Its number and its id.
    pub(crate) fn generation(&self) -> Generation {
        self.manifest.generation
    }

    /// The command line of the program that was saved.
    pub fn program(&self) -> String {
        self.manifest.program.to_string()
    }

    /// A description of the file of the program that was saved: length and checksum.
    pub fn build(&self) -> String {
        self.manifest.build.to_string()
    }

    /// The seed of the run that was saved.
    pub fn seed(&self) -> u64 {
        self.manifest.seed
    }

    /// The number of PEs of the run that was saved.
    pub fn pes(&self) -> u32 {
        self.manifest.pes
    }

    /// The number of processes of the run that was saved.
    pub fn processes(&self) -> u32 {
        self.files.len() as u32
    }

    /// The number of load-balancing steps before this checkpoint.
    pub fn steps(&self) -> u32 {
        self.manifest.steps
    }

    /// The bytes of all files but the manifest.
    pub fn bytes(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.bytes).sum()
    }

    /// The arrays, in the order of the setup.
    pub fn arrays(&self) -> Vec<CheckpointArray> {
        let sum = |(head, elements): (&ArrayHead, &Vec<SavedElement>)| {
            let bytes = || elements.iter().map(|element| element.place.record.bytes);
            CheckpointArray {
                name: head.name.to_string(),
                shape: head.shape.to_string(),
                elements: elements.len() as u64,
                bytes: bytes().sum(),
                largest_bytes: bytes().max().unwrap_or(0),
                load_seconds: elements.iter().map(|element| element.load_seconds).sum(),
            }
        };
        self.manifest.arrays.iter().zip(&self.elements).map(sum).collect()
    }

    /// The arrays, as a restarted program is compared with them.
    pub(crate) fn heads(&self) -> &[ArrayHead] {
        &self.manifest.arrays
    }

    /// The elements of an array that begin on a PE of `pes`, where `place` says the PE of a rank.
    pub(crate) fn elements_on(
        &self,
        array: usize,
        (pe, pes): (u32, u32),
        place: impl Fn(u32) -> u32,
    ) -> impl Iterator<Item = SavedElement> {
        let elements = self.elements_of(array);
        let of_pes = self.of_pes.get(array).map(|of_pes| {
            of_pes.get_or_init(|| {
                let mut of_pes = vec![Vec::new(); pes as usize];
                for (at, element) in (0..).zip(elements) {
                    of_pes[place(element.rank) as usize].push(at);
                }
                of_pes
            })
        });
        let mine = of_pes.map_or(&[][..], |of_pes| of_pes[pe as usize].as_slice());
        mine.iter().map(|&at| elements[at as usize])
    }

    /// All elements of an array, in rank order.
    pub(crate) fn elements_of(&self, array: usize) -> &[SavedElement] {
        self.elements.get(array).map_or(&[], Vec::as_slice)
    }

    /// The bytes of an element.
    pub(crate) fn element(&self, element: &SavedElement) -> Result<Vec<u8>, CheckpointError> {
        self.read(element.place)
    }

    /// The state of a saved PE.
    pub(crate) fn state_of(&self, pe: u32) -> Result<Vec<u8>, CheckpointError> {
        self.read(self.pes[pe as usize].state)
    }

    /// By array, what a saved PE had in addition to elements.
    pub(crate) fn rests_of(&self, pe: u32) -> Result<Vec<Vec<u8>>, CheckpointError> {
        self.pes[pe as usize].rests.iter().map(|rest| self.read(*rest)).collect()
    }

    /// Above all indices of an array that the saved PEs have given to chares without an index of their own.
    pub(crate) fn used_of(&self, array: usize) -> u32 {
        self.pes.iter().filter_map(|pe| pe.used.get(array)).copied().max().unwrap_or(0)
    }

    /// The error that a part of this checkpoint does not fit the program.
    pub(crate) fn unfit(&self, reason: &str) -> CheckpointError {
        CheckpointError::new(manifest_path(&self.folder), reason)
    }

    /// The error that an element does not fit the program.
    pub(crate) fn unfit_element(&self, element: &SavedElement, reason: &str) -> CheckpointError {
        CheckpointError::new(process_path(&self.folder, element.place.process), reason)
    }
}

/// The reason that a file is not the one that the manifest means.
const OTHER: &str =
    "is not the file that the manifest describes; restore the files that were written together";

impl CheckpointError {
    fn new(path: PathBuf, reason: &str) -> Self {
        CheckpointError { path, reason: sentence(reason), fault: Fault::Input }
    }

    /// The error that a file of a checkpoint cannot be used. Its remedy has the checkpoint before, if there is one. Only the
    /// manifest names it for sure.
    fn of_file(path: PathBuf, reason: &str) -> Self {
        let folder = path.parent();
        let remedy = if let Some(before) = folder.and_then(before) {
            format!("; or use the checkpoint before, `{}`", before.display())
        } else if let Some(older) = folder.filter(|folder| read_manifest(folder).is_err()).and_then(older) {
            format!("; or use an older checkpoint, `{}`, if the same run has saved it", older.display())
        } else {
            String::new()
        };
        CheckpointError::new(path, &format!("{reason}{remedy}"))
    }
}

/// The folder of the newest complete checkpoint with a lower number than the one in this folder; `None` if there is none.
fn older(checkpoint: &Path) -> Option<PathBuf> {
    let dir = checkpoint.parent()?;
    let numbers = numbers(dir, true).ok()?;
    let at = numbers.iter().position(|number| folder(dir, *number) == checkpoint)?;
    let mut older = numbers[..at].iter().rev().map(|number| folder(dir, *number));
    older.find(|folder| read_manifest(folder).is_ok())
}

/// The records of each PE, and of the elements of each array; the number of a process whose index does not fit the
/// manifest, if there is one.
#[allow(clippy::type_complexity)]
fn places(manifest: &Manifest, files: &[ProcessFile]) -> Result<(Vec<SavedPe>, Vec<Vec<SavedElement>>), u32> {
    let mut elements = vec![Vec::new(); manifest.arrays.len()];
    let mut pes = Vec::new();
    for (process, file) in (0..).zip(files) {
        let mut offsets = ProcessFile::offsets();
        let mut place = |record| Place { process, offset: offsets.next(record), record };
        for pe in &file.index.pes {
            if pe.pe as usize != pes.len() || pe.arrays.len() != elements.len() {
                return Err(process);
            }
            let mut saved = SavedPe { state: place(pe.state), rests: Vec::new(), used: Vec::new() };
            for ((array, elements), head) in pe.arrays.iter().zip(&mut elements).zip(&manifest.arrays) {
                saved.rests.push(place(array.rest));
                saved.used.push(array.used);
                for element in &array.elements {
                    if element.rank >= head.count {
                        return Err(process);
                    }
                    let place = place(element.record);
                    elements.push(SavedElement {
                        rank: element.rank,
                        load_seconds: element.load_seconds,
                        place,
                    });
                }
            }
            pes.push(saved);
        }
    }
    for of_array in &mut elements {
        of_array.sort_unstable_by_key(|element| element.rank);
        // An element that two processes have.
        if let Some(pair) = of_array.windows(2).find(|pair| pair[0].rank == pair[1].rank) {
            return Err(pair[1].place.process);
        }
    }
    if pes.is_empty() || pes.len() != manifest.pes as usize { Err(0) } else { Ok((pes, elements)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::file::{ArrayIndex, ElementIndex, Part, Text, write_manifest, write_process};
    use std::sync::atomic::Ordering::Relaxed;

    const PROCESSES: u32 = 4;
    const ELEMENTS: u32 = 400;
    const BYTES: usize = 1000;

    /// A checkpoint of 4 processes with one PE each, on which the elements are round-robin.
    fn saved(dir: &Path) {
        let generation = Generation { number: 1, id: 7 };
        let folder = folder(dir, 1);
        let files = (0..PROCESSES).map(|pe| {
            let mut part = Part::default();
            let mut record = |byte: u8| {
                let write = |bytes: &mut Vec<u8>| {
                    bytes.extend([byte; BYTES]);
                    Ok::<_, String>(())
                };
                part.record(write).expect("it cannot fail")
            };
            let (state, rest) = (record(1), record(2));
            let ranks = (pe..ELEMENTS).step_by(PROCESSES as usize);
            let element = |rank| ElementIndex { rank, load_seconds: 0.5, record: record(rank as u8) };
            let array = ArrayIndex { rest, used: 0, elements: ranks.map(element).collect() };
            part.index.pe = pe;
            (part.index.state, part.index.arrays) = (state, vec![array]);
            write_process(&folder, generation, pe, &[part]).expect("it can be written");
            ProcessFile::open(&folder, generation, pe).expect("it is whole").head
        });
        let manifest = Manifest {
            generation,
            before: None,
            program: "program".into(),
            build: "build".into(),
            seed: 0,
            pes: PROCESSES,
            local_pes: 1,
            steps: 0,
            files: files.collect(),
            arrays: vec![ArrayHead {
                name: "Cell".into(),
                parameters: "".into(),
                shape: "[400]".into(),
                entries: Text::list(&["work"]),
                fields: Text::list(&["heat"]),
                waits: Vec::new(),
                bound_to: None,
                count: ELEMENTS,
            }],
        };
        write_manifest(&folder, &manifest).expect("it can be written");
    }

    #[test]
    fn a_process_reads_the_indices_and_the_records_of_its_elements_only() {
        let dir = tempfile::tempdir().expect("a folder");
        saved(dir.path());
        for processes in [4, 3] {
            let mut all_elements = 0;
            for pe in 0..processes {
                let checkpoint = Checkpoint::open(dir.path()).expect("it is whole");
                let read =
                    || -> u64 { checkpoint.files.iter().map(|file| file.bytes_read.load(Relaxed)).sum() };
                let indices = read();
                assert!(indices < checkpoint.bytes() / 20, "{indices} of {} bytes", checkpoint.bytes());
                let blocks = |rank| (u64::from(rank) * u64::from(processes) / u64::from(ELEMENTS)) as u32;
                let elements: Vec<_> = checkpoint.elements_on(0, (pe, processes), blocks).collect();
                for element in &elements {
                    assert_eq!(
                        checkpoint.element(element).expect("it is whole"),
                        [element.rank as u8; BYTES]
                    );
                }
                assert_eq!(read() - indices, (elements.len() * BYTES) as u64);
                all_elements += elements.len();
                let share = checkpoint.bytes() / u64::from(processes);
                assert!(read() < share + indices, "{} bytes, a share is {share}", read());
            }
            assert_eq!(all_elements, ELEMENTS as usize);
        }
    }
}

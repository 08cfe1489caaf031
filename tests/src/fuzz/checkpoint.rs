//! The readers of checkpoints: the manifest and the file of a process, each with whole other files next to it. A checkpoint
//! that is accepted is restarted, so that the readers of its records are fuzzed, too.

use std::fs;
use std::path::{Path, PathBuf};

use equipoise::checkpoint::Checkpoint;
use equipoise::model::decompress::Expansion;
use equipoise::model::frames;
use equipoise::prelude::*;
use equipoise::{Checkpoints, Report, RunError, reduce, try_run};

use super::checksums::correct_checksums;
use super::{Read, Reader};

/// An element with all kinds of state, and of messages that wait.
#[derive(Serialize, Deserialize)]
struct Cell {
    name: String,
    words: Vec<u64>,
    #[serde(with = "equipoise::numbers")]
    numbers: Vec<f64>,
    next: Option<Box<(bool, char)>>,
    walkers: Array<Walker>,
}

#[chare(index = [i32; 1])]
impl Cell {
    #[entry(when = self.words.len() > 9 && more > 0)]
    fn guarded(&mut self, _cx: &Cx<Self>, more: u32, text: String) {
        self.name += &text;
    }

    #[entry]
    fn give(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().gathered(vec![7]);
    }

    #[entry(reduce = reduce::concat)]
    fn gathered(&mut self, _cx: &Cx<Self>, words: Vec<u64>) {
        self.words = words;
    }

    /// The flows continue, and end the run.
    #[entry]
    fn finish(&mut self, cx: &Cx<Self>) {
        self.walkers.all(cx).word(1);
    }
}

/// An element with a flow, which contributes to reductions that are never complete.
#[derive(Serialize, Deserialize)]
struct Walker {
    total: u64,
    done: Exit<()>,
}

#[chare(index = [i32; 1], sync)]
impl Walker {
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let pair: Section<Walker> = cx.array().section_of(cx, [[0], [1]]);
        if cx.index() == [0] {
            cx.peer([1]).contribute_in(&pair).summed(1);
            cx.peers().contribute().prefix().summed(2);
        }
        when!(word(more) => self.total += more);
        at_sync!(cx);
        self.total += pair.len() as u64;
        self.done.exit(cx, ());
    }

    #[entry]
    fn word(more: u64);

    #[entry(reduce = reduce::sum)]
    fn summed(&mut self, _cx: &Cx<Self>, sum: u64) {
        self.total += sum;
    }
}

/// Saves itself, and exits; in processes with this number of PEs.
fn run(checkpoints: Checkpoints, local_pes: usize) -> Result<Report<()>, RunError> {
    let pes_per_process = Some(local_pes);
    let config = Config {
        checkpoints,
        pes_per_process,
        balancer: vec!["RotateLB".into()],
        lb_comm: equipoise::Comm::On,
        time_limit: Some(10.0),
        ..Config::simulated(2, 1)
    };
    try_run(config, |pe, done| {
        let walkers = pe.array([2], |_| Walker { total: 0, done });
        let make = |[at]: [i32; 1]| Cell {
            name: format!("cell {at}"),
            words: vec![1; at as usize],
            numbers: vec![0.5; 3],
            next: Some(Box::new((true, 'x'))),
            walkers,
        };
        let cells = pe.array([4], make);
        let missing = pe.sparse::<_, Cell>([4]);
        pe.main(move |pe| {
            cells.at(pe, [1]).guarded(1, "text".into());
            missing.at(pe, [3]).guarded(2, "more".into());
            cells.only(pe, |[at]| at < 2).give();
            walkers.all(pe).life();
            cells.at(pe, [0]).at_checkpoint().finish();
        });
    })
}

/// Saves a small checkpoint of a program with two PEs in a folder, and returns the folder of the checkpoint.
///
/// # Panics
/// If the program fails.
pub fn save(folder: &Path, local_pes: usize) -> PathBuf {
    let checkpoint = Some(folder.to_owned());
    run(Checkpoints { checkpoint, ..Checkpoints::default() }, local_pes).expect("the program exits");
    Checkpoint::newest(folder).expect("it has saved itself")
}

/// Restarts the program from the checkpoint in a folder.
///
/// # Errors
/// Why the checkpoint is refused.
///
/// # Panics
/// If the runtime panics.
pub fn restart(folder: &Path) -> Result<(), String> {
    let restart = Some(folder.to_owned());
    match run(Checkpoints { restart, restart_other_build: true, ..Checkpoints::default() }, 1) {
        // A wrong state of an element can make the program misuse the runtime: its location and this sentence are the program's.
        Err(RunError::Panic { message, .. })
            if message.contains(file!()) || message.contains("called `at_sync` again") =>
        {
            Ok(())
        }
        Err(RunError::Panic { place, message, .. }) => panic!("{place}: {message}"),
        Err(RunError::Config(sentence) | RunError::File(sentence) | RunError::Program { sentence, .. }) => {
            Err(sentence)
        }
        // Damage may be an element that waits for something else.
        Ok(_) | Err(RunError::Quiet { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// The manifest, as [`frames`] reads it: generation, the generation before, program, build, seed, PEs, PEs per process, steps, arrays,
/// files.
type Manifest =
    ((u64, u64), Option<(u64, u64)>, Vec<u8>, Vec<u8>, u64, u32, u32, u32, Vec<ArrayHead>, Vec<FileHead>);

/// Name, parameters, shape, entries, fields, waits, leader, number of indices.
type ArrayHead = (Vec<u8>, Vec<u8>, Vec<u8>, Vec<Vec<u8>>, Vec<Vec<u8>>, Vec<Vec<u8>>, Option<u16>, u32);

/// The length of a file, the offset of its index, the CRC-32 of its index.
type FileHead = (u64, u64, u32);

/// The length and the CRC-32 of a record.
type Record = (u64, u32);

/// The index: by PE, its number, its state, and by array the rest, the used indices, and the elements with rank and load.
type Index = Vec<(u32, Record, Vec<(Record, u32, Vec<(u32, f64, Record)>)>)>;

/// The bytes before the frame of a manifest, and before the records of a process.
const MANIFEST_HEAD: usize = 8;
const PROCESS_HEAD: usize = 20;

/// Where the frame of the index is.
fn index_of(file: &[u8]) -> Option<std::ops::Range<usize>> {
    let end = file.len().checked_sub(8)?;
    let begin = usize::try_from(u64::from_le_bytes(file[end..].try_into().ok()?)).ok()?;
    (PROCESS_HEAD <= begin && begin < end).then_some(begin..end)
}

/// The CRC-32 of bytes.
fn crc(bytes: &[u8]) -> u32 {
    let sums = frames::checksums([0, 0], bytes);
    u32::from_le_bytes([sums[4], sums[5], sums[6], sums[7]])
}

/// Corrects the checksums of records in the index, and that of the index.
fn repair(file: &mut Vec<u8>) {
    let Some(frame) = index_of(file) else { return };
    correct_checksums(&mut file[..frame.end], frame.start, false);
    let mut rest = &file[frame.clone()];
    let length = rest.len();
    let Ok(mut index) = frames::take_frame::<Index>(&mut rest, length, &mut { Expansion::BY_SIZE }) else {
        return;
    };
    let mut begin = PROCESS_HEAD;
    let mut correct = |record: &mut Record| {
        let end = begin.saturating_add(usize::try_from(record.0).unwrap_or(usize::MAX));
        record.1 = file.get(begin..end).map_or(0, crc);
        begin = end;
    };
    for (_, state, arrays) in &mut index {
        correct(state);
        for (rest, _, elements) in arrays {
            correct(rest);
            elements.iter_mut().for_each(|(_, _, record)| correct(record));
        }
    }
    file.truncate(frame.start);
    frames::push_frame(file, &index, &mut { Expansion::BY_SIZE }).expect("an index can be encoded");
    file.extend_from_slice(&(frame.start as u64).to_le_bytes());
}

/// The manifest that describes this file of the only process.
fn manifest_for(manifest: &[u8], process: &[u8]) -> Vec<u8> {
    let (head, mut frame) = manifest.split_at(MANIFEST_HEAD);
    let mut value: Manifest =
        frames::take_frame(&mut frame, manifest.len(), &mut { Expansion::BY_SIZE }).expect("it is whole");
    let index = index_of(process).unwrap_or(0..0);
    value.9 = vec![(process.len() as u64, index.start as u64, crc(&process[index]))];
    let mut file = head.to_vec();
    frames::push_frame(&mut file, &value, &mut { Expansion::BY_SIZE }).expect("a manifest can be encoded");
    file
}

/// Returns the content of the other file for the damaged file at a path.
type Content = Box<dyn Fn(&Path) -> Vec<u8>>;

/// The readers of the files of a checkpoint.
pub(super) fn readers() -> Vec<Reader> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let saved = save(folder.path(), 2);
    let file = |name: &str| fs::read(saved.join(name)).expect("a file of the checkpoint");
    let (manifest, process) = (file("manifest.eqcp"), file("process-0.eqcp"));
    let read = |other: &'static str, content: Content| -> Read {
        Box::new(move |path| {
            let path = Path::new(path);
            let folder = path.parent().expect("a file is in a folder");
            fs::write(folder.join(other), content(path)).expect("a temporary file can be written");
            let checked = Checkpoint::open(folder).and_then(|checkpoint| checkpoint.check());
            checked.map_err(|error| error.to_string()).and_then(|()| restart(folder)).map_err(|error| {
                // The file that is not as the damaged one says.
                assert!(error.contains(".eqcp`"), "the error names no file: {error}");
                format!("{}: {error}", path.display())
            })
        })
    };
    let reader = |name: &str, file, golden: &[u8], repair: fn(&mut Vec<u8>), read| Reader {
        name: name.into(),
        file,
        golden: vec![golden.to_vec()],
        command: "inspect .".into(),
        repair,
        read,
    };
    let (whole, head) = (process.clone(), manifest.clone());
    vec![
        reader(
            "checkpoint_manifest",
            "manifest.eqcp",
            &manifest,
            |input| correct_checksums(input, MANIFEST_HEAD, false),
            read("process-0.eqcp", Box::new(move |_| whole.clone())),
        ),
        reader(
            "checkpoint_process",
            "process-0.eqcp",
            &process,
            repair,
            read(
                "manifest.eqcp",
                Box::new(move |path| manifest_for(&head, &fs::read(path).expect("the damaged file"))),
            ),
        ),
    ]
}

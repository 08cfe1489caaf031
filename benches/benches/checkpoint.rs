//! `cargo bench -p equipoise-benches --bench checkpoint [-- --small --rounds N --json FILTER]`: how long a run waits while it
//! saves 1 GB of elements, how long it takes until they are on the disk, and how long a restart takes.
//!
//! The floors are a copy of as many bytes in memory, a plain write and a plain read of them, in the same round. Files are in the
//! folder for temporary files; the variable `TMPDIR` names another disk.

use equipoise::prelude::*;
use equipoise::{Checkpoints, numbers};
use equipoise_benches::Measurement;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// The bytes of an element, and the number of elements; in small mode fewer.
const ELEMENT_BYTES: usize = 1 << 20;
const ELEMENTS: i32 = 1000;
const SMALL: i32 = 4;

/// The bytes that plain reads and writes pass at once.
const BLOCK_BYTES: usize = 8 << 20;

/// When the program asked for the checkpoint.
static ASKED: Mutex<Option<Instant>> = Mutex::new(None);

fn since_asked() -> f64 {
    ASKED.lock().ok().and_then(|asked| *asked).map_or(0.0, |asked| asked.elapsed().as_secs_f64())
}

#[derive(Serialize, Deserialize)]
struct Block {
    #[serde(with = "numbers")]
    cells: Vec<f64>,
    done: Exit<f64>,
}

#[chare(index = [i32; 1])]
impl Block {
    #[entry]
    fn go_on(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().all(since_asked());
    }

    #[entry(reduce = f64::max)]
    fn all(&mut self, cx: &Cx<Self>, waited: f64) {
        self.done.exit(cx, waited);
    }
}

fn elements(small: bool) -> i32 {
    if small { SMALL } else { ELEMENTS }
}

/// Runs the program; returns the seconds from the request to the longest wait of an element, and to the end of the run.
fn run(small: bool, checkpoints: Checkpoints) -> (f64, f64) {
    *ASKED.lock().expect("no panic") = Some(Instant::now());
    let report =
        equipoise::run(Config { checkpoints, program: false, ..Config::threads(2) }, move |pe, done| {
            let cells = ELEMENT_BYTES / size_of::<f64>();
            let blocks =
                pe.array([elements(small)], |[at]| Block { cells: vec![f64::from(at); cells], done });
            pe.main(move |pe| {
                *ASKED.lock().expect("no panic") = Some(Instant::now());
                blocks.all(pe).at_checkpoint().go_on();
            });
        });
    assert_eq!(report.checkpoint_error, None);
    (report.result, since_asked())
}

fn saves(small: bool, dir: &Path) -> (f64, f64) {
    run(small, Checkpoints { checkpoint: Some(dir.to_owned()), ..Checkpoints::default() })
}

/// As many bytes as the elements have, none of them zero.
fn bytes(small: bool) -> Vec<u8> {
    vec![7; ELEMENT_BYTES * elements(small) as usize]
}

fn copied(small: bool) -> f64 {
    let from = bytes(small);
    let begin = Instant::now();
    let copy = std::hint::black_box(from.clone());
    let seconds = begin.elapsed().as_secs_f64();
    drop(copy);
    seconds
}

fn written(small: bool) -> f64 {
    let (from, folder) = (bytes(small), tempfile::tempdir().expect("a folder"));
    let begin = Instant::now();
    let mut file = File::create(folder.path().join("plain")).expect("a file");
    from.chunks(BLOCK_BYTES).for_each(|block| file.write_all(block).expect("it is written"));
    file.sync_all().expect("it is on the disk");
    begin.elapsed().as_secs_f64()
}

fn read(small: bool) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("plain");
    std::fs::write(&path, bytes(small)).expect("it is written");
    let begin = Instant::now();
    let mut content = Vec::new();
    File::open(&path).and_then(|mut file| file.read_to_end(&mut content)).expect("it is read");
    begin.elapsed().as_secs_f64()
}

fn restarted(small: bool) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    saves(small, folder.path());
    run(small, Checkpoints { restart: Some(folder.path().to_owned()), ..Checkpoints::default() }).0
}

const COPY: &str = "copy 1 GB in memory";
const WRITE: &str = "write 1 GB to a file, and sync it";
const READ: &str = "read 1 GB from a file";

fn measurements() -> Vec<Measurement> {
    let row = |name, floor, take: fn(bool) -> f64| Measurement {
        name,
        unit: "ms",
        target: None,
        floor,
        take: Box::new(move |small| take(small) * 1e3),
    };
    let saved = |small| saves(small, tempfile::tempdir().expect("a folder").path());
    vec![
        row(COPY, None, copied),
        row("save 1 GB of elements: the run waits", Some(COPY), |small| {
            saves(small, tempfile::tempdir().expect("a folder").path()).0
        }),
        row(WRITE, None, written),
        Measurement {
            take: Box::new(move |small| saved(small).1 * 1e3),
            ..row("save 1 GB of elements: all is on the disk", Some(WRITE), copied)
        },
        Measurement {
            unit: "%",
            target: Some(70.0),
            take: Box::new(move |small| {
                // Alternately, as the speed of a shared disk changes within seconds.
                let plain = written(small);
                let (wait, all) = saved(small);
                100.0 * (plain + written(small)) / 2.0 / (all - wait)
            }),
            ..row("speed of writing the elements, of that of a plain write", None, copied)
        },
        row(READ, None, read),
        row("restart with 1 GB of elements", Some(READ), restarted),
    ]
}

fn main() {
    equipoise_benches::run(measurements());
}

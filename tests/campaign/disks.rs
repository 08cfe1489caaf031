//! Disks that are full and folders that are read-only: an error, and the earlier file or a whole one.

use std::fs;
use std::path::Path;

use equipoise_tests::Sandbox;
use equipoise_tests::fuzz::Rng;
use equipoise_tests::interrupts::{EARLIER, JOBS, Job, names};

use crate::Case;

/// Commands with a result on stdout.
const PRINTING: [&str; 5] = [
    "--help",
    "inspect ring:8",
    "topology torus:4x4",
    "map --graph ring:8 --topology torus:4",
    "run kneighbor --pes 2 --iterations 3 --format json",
];

/// There is no room for stdout, for a device or for a file.
pub fn full(_: &Case, rng: &mut Rng) -> Option<String> {
    let job = &JOBS[rng.below(JOBS.len())];
    let has_device = Path::new("/dev/full").exists();
    match rng.below(4) {
        0 if has_device => {
            let output = Sandbox::new().run_into_full_device(PRINTING[rng.below(PRINTING.len())]);
            output.failed(1, &["cannot write the "]);
            None
        }
        1 if has_device => {
            let sandbox = Sandbox::new();
            let output = sandbox.run(&job.short().replace(job.file, "/dev/full"));
            // A run has a result even if its database cannot be written.
            assert_eq!(output.code, Some(1), "{output:?}");
            assert!(output.stderr.contains("error: cannot write the "), "{output:?}");
            assert!(output.stderr.contains("`/dev/full`"), "{output:?}");
            assert_eq!(names(sandbox.path()), Vec::<String>::new(), "files are left of `{}`", job.short());
            None
        }
        _ => limited(job, rng.below(200)),
    }
}

/// Files have room for a number of blocks only.
fn limited(job: &Job, blocks: usize) -> Option<String> {
    let sandbox = Sandbox::new();
    sandbox.put(job.file, EARLIER);
    // Without the trap the signal would end the process, as no full disk does.
    let output = sandbox.run_after(&format!("trap '' XFSZ && ulimit -f {blocks}"), &job.short());
    let what = format!("room for {blocks} blocks: {output:?}");
    assert!(matches!(output.code, Some(0 | 1)), "{what}");
    assert!(output.code == Some(0) || output.stderr.contains("error: cannot write the "), "{what}");
    assert_eq!(names(sandbox.path()), [job.file], "{what}");
    if sandbox.bytes(job.file) == EARLIER {
        assert_eq!(output.code, Some(1), "{what}");
        return None;
    }
    assert!(output.code == Some(0) || job.keeps, "{what}");
    let entries = (job.read)(&sandbox, job.file).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(entries > 0, "{what}");
    None
}

/// The folder of the file cannot be written.
pub fn read_only(_: &Case, rng: &mut Rng) -> Option<String> {
    let (sandbox, job) = (Sandbox::new(), &JOBS[rng.below(JOBS.len())]);
    let (folder, file) = (sandbox.path().join("closed"), format!("closed/{}", job.file));
    fs::create_dir(&folder).expect("a folder can be made");
    sandbox.put(&file, EARLIER);
    let open = fs::metadata(&folder).expect("the folder exists").permissions();
    let mut closed = open.clone();
    closed.set_readonly(true);
    fs::set_permissions(&folder, closed).expect("the owner may change permissions");
    if fs::write(folder.join("probe"), "").is_ok() {
        return Some("skipped: this user may write into read-only folders".into());
    }
    let output = sandbox.run(&job.short().replace(job.file, &file));
    fs::set_permissions(&folder, open).expect("the owner may change permissions");
    output.ended_well();
    assert_ne!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains(&file), "{output:?}");
    assert_eq!(sandbox.bytes(&file), EARLIER, "{output:?}");
    assert_eq!(names(&folder), [job.file], "{output:?}");
    None
}

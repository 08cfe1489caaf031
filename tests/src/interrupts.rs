//! Commands that a signal or a full disk ends while they write a file, and what must be left.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use equipoise::model::database::Dump;
use equipoise::network::trace::Trace;

use crate::Sandbox;

/// The signals that end processes.
pub const SIGNALS: [&str; 3] = ["INT", "TERM", "KILL"];

/// The content of a file that exists before a command replaces it.
pub const EARLIER: &[u8] = b"earlier\n";

/// A command that takes long, and the file that it writes.
pub struct Job {
    /// The words after `equipoise`.
    pub line: &'static str,
    /// The name of the file.
    pub file: &'static str,
    /// Whether an interrupted file is of use, and is named on stderr.
    pub keeps: bool,
    /// The number of entries in the file of a job that was not interrupted, if the job ends.
    pub whole: Option<usize>,
    /// The number of entries in the file, or an error.
    pub read: fn(&Sandbox, &str) -> Result<usize, String>,
}

impl Job {
    /// The same command with little work: it takes less than a second and writes more than 100 kB.
    pub fn short(&self) -> String {
        let iterations = if self.line.contains("--record") { "100" } else { "300" };
        let line = self.line.replace("--iterations 1000000000", &format!("--iterations {iterations}"));
        line.replace("kneighbor:300000", "kneighbor:3000")
    }
}

fn steps(sandbox: &Sandbox, file: &str) -> Result<usize, String> {
    Dump::read(sandbox.path().join(file)).map(|dump| dump.steps.len()).map_err(|error| error.to_string())
}

fn executions(sandbox: &Sandbox, file: &str) -> Result<usize, String> {
    let trace = Trace::read(sandbox.path().join(file)).map_err(|error| error.to_string())?;
    Ok(trace.executions.len())
}

fn edges(sandbox: &Sandbox, file: &str) -> Result<usize, String> {
    let text = sandbox.text(file);
    if text.ends_with('\n') { Ok(text.lines().count()) } else { Err("the last line is cut".into()) }
}

/// Commands that take minutes, for each kind of file that runs and conversions write.
pub const JOBS: &[Job] = &[
    Job {
        line: "run kneighbor --pes 2 --iterations 1000000000 --lb-every 3 --lb-dump k.db --lb-dump-steps 1000000000",
        file: "k.db",
        keeps: true,
        whole: None,
        read: steps,
    },
    Job {
        line: "run kneighbor --pes 2 --iterations 1000000000 --lb-every 3 --lb-dump k.json --lb-dump-steps 1000000000",
        file: "k.json",
        keeps: true,
        whole: None,
        read: steps,
    },
    Job {
        line: "run kneighbor --transport simulated --topology torus:2x2 --network ideal:latency=1e-6 --iterations \
               1000000000 --record k.trace",
        file: "k.trace",
        keeps: true,
        whole: None,
        read: executions,
    },
    Job {
        line: "convert kneighbor:300000,12 k.json",
        file: "k.json",
        keeps: false,
        whole: Some(1),
        read: steps,
    },
    // The names of the columns, and two directions of 1,800,000 edges.
    Job {
        line: "convert kneighbor:300000,12 k.csv",
        file: "k.csv",
        keeps: false,
        whole: Some(3_600_001),
        read: edges,
    },
];

/// Runs a job over an earlier file, sends it a signal after `after`, and checks what is left.
///
/// # Panics
/// If the earlier file is lost, a file is incomplete or left over, the exit code or the sentence is wrong, or the process
/// takes longer than `patience` to end.
pub fn interrupt(job: &Job, signal: &str, after: Duration, patience: Duration) {
    let Job { line, file, keeps, whole, read } = job;
    let sandbox = Sandbox::new();
    sandbox.put(file, EARLIER);
    let child = sandbox.start(line);
    let id = child.id();
    sleep(after);
    let sent = Instant::now();
    assert!(crate::signal(signal, id), "the child has not been waited for");
    let output = child.wait_with_output().expect("the process ends");
    let took = sent.elapsed();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let what = format!("`{line}`, {signal} after {after:?}: {stderr}");
    let names = names(sandbox.path());
    let is_earlier = sandbox.bytes(file) == EARLIER;
    let found = if is_earlier { Ok(0) } else { read(&sandbox, file) };
    let number = *found.as_ref().unwrap_or_else(|error| panic!("{what}: {error}"));
    if output.status.code() == Some(0) {
        return;
    }
    // The signal may come between the renaming of a whole file and the end of the process.
    let is_whole = *whole == Some(number);
    assert!(is_earlier || is_whole || *keeps && number > 0, "{what}");
    if signal == "KILL" {
        assert!(is_earlier || is_whole, "{what}");
        for name in names.iter().filter(|name| *keeps && name.ends_with(".partial")) {
            // JSON is complete only at its end, and the first bytes may be missing.
            let is_begun = fs::metadata(sandbox.path().join(name)).is_ok_and(|it| it.len() > 500);
            if !file.ends_with(".json") && is_begun {
                read(&sandbox, name).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
        return;
    }
    assert_eq!(names, [*file], "{what}");
    if output.status.code().is_none() {
        // The signal came before `main`.
        return assert!(is_earlier, "{what}");
    }
    assert_eq!(output.status.code(), Some(if signal == "INT" { 130 } else { 143 }), "{what}");
    assert!(took < patience, "{what}: {took:?}");
    assert!(stderr.contains(&format!("error: interrupted by SIG{signal}")), "{what}");
    assert_eq!(stderr.contains("holds the"), !is_earlier && !is_whole, "{what}");
}

/// The names of the files in a folder.
///
/// # Panics
/// If the folder cannot be read.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

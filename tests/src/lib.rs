//! Shared by the tests: the programs of the workspace as processes in a temporary folder, and the reference data next
//! to the project.

/// The README; its program is compiled and run as a test of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

pub mod fuzz;
pub mod interrupts;
#[cfg(unix)]
pub mod kills;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod perfetto;
pub mod prometheus;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fs};

use serde_json::Value;
use tempfile::TempDir;

/// The top of the workspace.
pub const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The path of the command `equipoise`.
///
/// # Panics
/// If it cannot be built.
pub fn command() -> String {
    EQUIPOISE.path().display().to_string()
}

/// A temporary folder in which programs run; it is deleted with this value.
pub struct Sandbox(TempDir);

/// The exit code and the output of a process.
#[derive(Debug)]
pub struct ProcessOutput {
    /// Its command line, for messages.
    line: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output, which holds the result.
    pub stdout: String,
    /// Its standard error, which holds warnings and errors.
    pub stderr: String,
}

impl Sandbox {
    /// An empty folder.
    ///
    /// # Panics
    /// If the folder cannot be made.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Sandbox {
        Sandbox(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).expect("a temporary file can be written");
    }

    /// The bytes of a file.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The text of a file.
    ///
    /// # Panics
    /// If there is no such file, or it is not text.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs `equipoise` with the words of `line`.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn run(&self, line: &str) -> ProcessOutput {
        ProcessOutput::of(&format!("equipoise {line}"), &mut self.command(&EQUIPOISE, line))
    }

    /// Runs `equipoise` with the words of `line` in a shell that allows `kilobytes` of address space.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn run_limited(&self, kilobytes: u32, line: &str) -> ProcessOutput {
        self.run_after(&format!("ulimit -v {kilobytes}"), line)
    }

    /// Runs `equipoise` with the words of `line` in a shell after other commands, such as `ulimit`.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn run_after(&self, commands: &str, line: &str) -> ProcessOutput {
        let mut shell = Command::new("sh");
        let script = format!("{commands} && exec '{}' {line}", EQUIPOISE.path().display());
        shell.args(["-c", &script]).current_dir(self.path()).stdin(Stdio::null());
        // Every thread reserves address space.
        shell.env("RAYON_NUM_THREADS", "2");
        ProcessOutput::of(&format!("equipoise {line}"), &mut shell)
    }

    /// Runs `figures` with the words of `line`.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn figures(&self, line: &str) -> ProcessOutput {
        ProcessOutput::of(&format!("figures {line}"), &mut self.command(&FIGURES, line))
    }

    /// Runs `examples/failing.rs` of this package with the words of `line`.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn failing(&self, line: &str) -> ProcessOutput {
        ProcessOutput::of(&format!("failing {line}"), &mut self.command(&FAILING, line))
    }

    /// Runs `equipoise` with the words of `line`, with a full device as its stdout (Linux).
    ///
    /// # Panics
    /// If the command does not start.
    pub fn run_into_full_device(&self, line: &str) -> ProcessOutput {
        let mut command = self.command(&EQUIPOISE, line);
        ProcessOutput::of(&format!("equipoise {line}"), command.stdout(full_device()))
    }

    /// Runs `equipoise` or `failing` with the words of `line`, which begins with the name of the program, with a full
    /// device as its stderr (Linux).
    ///
    /// # Panics
    /// If the program does not start.
    pub fn run_with_full_stderr(&self, line: &str) -> ProcessOutput {
        let (program, words) = line.split_once(' ').unwrap_or((line, ""));
        let mut command = self.command(if program == "failing" { &FAILING } else { &EQUIPOISE }, words);
        ProcessOutput::of(line, command.stderr(full_device()))
    }

    /// Runs `equipoise` with the words of `line`, and closes its stdout after the first bytes.
    ///
    /// # Panics
    /// If there is no such command, or it writes nothing.
    pub fn run_and_leave(&self, line: &str) -> ProcessOutput {
        let mut command = self.command(&EQUIPOISE, line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let mut stdout = child.stdout.take().expect("its stdout is a pipe");
        let mut first = [0; 16];
        std::io::Read::read_exact(&mut stdout, &mut first).expect("the command writes something");
        drop(stdout);
        let output = child.wait_with_output().expect("the command ends");
        ProcessOutput::from(&format!("equipoise {line}"), &output)
    }

    /// Starts `equipoise` with the words of `line`, with its stderr as a pipe and without a stdout.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn start(&self, line: &str) -> Child {
        let mut command = self.command(&EQUIPOISE, line);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command can be started")
    }

    /// Starts `examples/failing.rs` of this package with the words of `line`, with its output as pipes.
    ///
    /// # Panics
    /// If there is no such program.
    pub fn start_failing(&self, line: &str) -> Child {
        let mut command = self.command(&FAILING, line);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program can be started")
    }

    /// Waits until a program has made this file or folder.
    ///
    /// # Panics
    /// If that takes longer than a minute.
    pub fn wait_for(&self, name: &str) {
        let begin = Instant::now();
        while !self.path().join(name).exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "no program makes `{name}`");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn command(&self, program: &Executable, line: &str) -> Command {
        let mut command = Command::new(program.path());
        // There is no shell to remove quotes.
        let words = line.split_whitespace().map(|word| word.trim_matches('\''));
        command.args(words).current_dir(self.path()).stdin(Stdio::null());
        command
    }
}

impl ProcessOutput {
    fn of(line: &str, command: &mut Command) -> ProcessOutput {
        ProcessOutput::from(line, &command.output().expect("the command can be started"))
    }

    fn from(line: &str, output: &Output) -> ProcessOutput {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ProcessOutput {
            line: line.into(),
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The result of a process.
    ///
    /// # Panics
    /// If the process failed.
    #[track_caller]
    pub fn result(self) -> String {
        assert_eq!(self.code, Some(0), "`{}` failed: {}{}", self.line, self.stdout, self.stderr);
        self.stdout
    }

    /// The result of a process, which is one JSON document.
    ///
    /// # Panics
    /// If the process failed, or its result is not a JSON document.
    #[track_caller]
    pub fn document(self) -> Value {
        let line = self.line.clone();
        let result = self.result();
        serde_json::from_str(&result).unwrap_or_else(|error| panic!("`{line}`: {error} in: {result}"))
    }

    /// Checks what holds for every command: exit code 0, 1 or 2, an error that is a sentence of reasonable length, and no
    /// control characters.
    ///
    /// # Panics
    /// If it does not hold.
    #[track_caller]
    pub fn ended_well(&self) {
        assert!(matches!(self.code, Some(0..=2)), "{self:?}");
        assert!(self.code == Some(0) || self.stderr.starts_with("error: "), "{self:?}");
        let is_harmless = |letter: char| letter == '\n' || !letter.is_control();
        assert!(self.stderr.chars().chain(self.stdout.chars()).all(is_harmless), "{self:?}");
        assert!(self.stderr.len() < 10_000, "{self:?}");
    }

    /// Checks that the process failed with this exit code, without a result, and with these phrases on stderr.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn failed(&self, code: i32, phrases: &[&str]) {
        let ProcessOutput { line, stdout, stderr, .. } = self;
        assert_eq!(self.code, Some(code), "exit code of `{line}`: {stdout}{stderr}");
        assert_eq!(stdout, "", "`{line}` has a result");
        assert!(!stderr.contains("panicked"), "`{line}` panicked: {stderr}");
        assert!(stderr.starts_with("error: "), "stderr of `{line}`: {stderr}");
        for phrase in phrases {
            assert!(stderr.contains(phrase), "stderr of `{line}` does not contain `{phrase}`: {stderr}");
        }
    }
}

/// The fields of the result of a run that depend on PEs, migrations or time.
const OF_THE_RUN: [&str; 12] = [
    "checkpoint_cost",
    "machine",
    "job",
    "pes",
    "transport",
    "seed",
    "seconds",
    "seconds_per_iteration",
    "executions",
    "remote_messages",
    "migrations",
    "lb_steps",
];

/// The result of a sample program without the fields that depend on PEs, migrations or time.
///
/// # Panics
/// If the document is not the result of a run.
pub fn without_run(mut document: Value) -> Value {
    let fields = document.as_object_mut().expect("the result of a run is an object");
    fields.retain(|name, _| !OF_THE_RUN.contains(&name.as_str()));
    // `program`, `options`, `iterations` and the result itself.
    assert!(fields.len() > 3, "a run has the fields {fields:?}");
    document
}

/// Says on stderr what a test skips, and why; a test that passes would not show what `eprintln!` writes.
pub fn skip(sentence: &str) {
    _ = writeln!(std::io::stderr(), "skipped: {sentence}");
}

/// A folder of the reference data, or `None`, with a note on stderr, if it does not exist.
pub fn reference(folder: &str) -> Option<PathBuf> {
    let path = Path::new(WORKSPACE).join("../shared/reference").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    skip(&format!("there is no reference data {folder}"));
    None
}

/// The text forms of LB dumps of Charm++ programs, each next to its dump: the dump in the workspace, and the reference
/// dumps, if they exist.
pub fn charm_dump_texts() -> Vec<PathBuf> {
    let own = Path::new(WORKSPACE).join("strategies/model/tests/data/leanmd_333_1053.dat.0.txt");
    let mut texts = reference("charm_dumps").map_or_else(Vec::new, |folder| files(&folder, "txt"));
    texts.retain(|text| text.file_name() != own.file_name());
    texts.insert(0, own);
    texts
}

/// The files of a folder with this extension, sorted by name.
///
/// # Panics
/// If there is no such folder.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension() == Some(OsStr::new(extension)))
        .collect();
    files.sort();
    files
}

/// Sends a signal, as `TERM`, to a process. Returns whether the process exists.
#[cfg(unix)]
pub fn signal(name: &str, process: u32) -> bool {
    let kill = Command::new("sh").args(["-c", &format!("kill -s {name} {process}")]).status();
    kill.is_ok_and(|status| status.success())
}

/// Copies a program, with one more byte at its end, where the loader does not look. Another process writes the copy: a child that
/// a thread of this process starts meanwhile would hold the file open, and then it could not be started.
///
/// # Panics
/// If the program cannot be copied.
#[cfg(unix)]
pub fn longer_copy(program: &Path, to: &Path) {
    let script = "cp \"$0\" \"$1\" && printf x >> \"$1\"";
    let copied = Command::new("sh").args(["-c", script]).args([program, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} cannot be copied", program.display());
}

/// A device that is full.
fn full_device() -> fs::File {
    fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has /dev/full")
}

/// The command `equipoise`.
static EQUIPOISE: Executable = Executable::new("equipoise", ["--test", "command"]);

/// The program that makes figures.
static FIGURES: Executable = Executable::new("figures", ["--test", "command"]);

/// The program `examples/failing.rs` of this package.
static FAILING: Executable = Executable::new("examples/failing", ["--example", "failing"]);

/// An executable built from the current sources, in the target folder of this test.
struct Executable {
    /// Its path below the folder of the profile.
    name: &'static str,
    /// Its Cargo target.
    target: [&'static str; 2],
    /// Whether it is built with the feature `mpi`.
    mpi: bool,
    path: OnceLock<PathBuf>,
}

impl Executable {
    const fn new(name: &'static str, target: [&'static str; 2]) -> Executable {
        Executable { name, target, mpi: false, path: OnceLock::new() }
    }

    #[cfg(feature = "mpi")]
    const fn with_mpi(name: &'static str, target: [&'static str; 2]) -> Executable {
        Executable { name, target, mpi: true, path: OnceLock::new() }
    }

    /// The path; builds the executable if it is older than the sources.
    fn path(&self) -> &Path {
        self.path.get_or_init(|| {
            let test = env::current_exe().expect("the path of the test");
            // target/PROFILE/deps/TEST, or target/TRIPLE/PROFILE/deps/TEST; programs are not in `deps`.
            let mut folders = test.ancestors().skip(1).filter(|folder| !folder.ends_with("deps"));
            let folder = folders.next().expect("a test is in the folder of its profile");
            let path = folder.join(format!("{}{}", self.name, env::consts::EXE_SUFFIX));
            if self.mpi {
                // It may be there without the feature, or with another MPI. Other tests must not find it.
                build(folder, self.target, &["--features", "mpi"]);
                let apart = path.with_extension(format!("mpi{}", env::consts::EXE_SUFFIX));
                fs::rename(&path, &apart).expect("it has been built");
                return apart;
            }
            // `cargo test --workspace` builds it together with this test.
            if !is_fresh(&path) {
                build(folder, self.target, &[]);
            }
            path
        })
    }
}

/// Whether an executable exists and is not older than any source of the crates that it consists of.
fn is_fresh(executable: &Path) -> bool {
    let Ok(built) = executable.metadata().and_then(|metadata| metadata.modified()) else { return false };
    let mut folders =
        ["strategies", "runtime", "apps", "tests/examples"].map(|it| Path::new(WORKSPACE).join(it)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            // No executable contains the files in these folders.
            if name == "tests" || name == "tests.rs" || name == "examples" {
                continue;
            }
            let is_source = path.extension().is_some_and(|it| it == "rs" || it == "toml");
            if path.is_dir() {
                folders.push(path);
            } else if is_source && !entry.metadata().and_then(|it| it.modified()).is_ok_and(|it| it <= built)
            {
                return false;
            }
        }
    }
    true
}

/// Builds an executable in the folder of a profile.
fn build(folder: &Path, [kind, name]: [&str; 2], features: &[&str]) {
    let profile = match folder.file_name().and_then(OsStr::to_str).expect("a profile has a name") {
        "debug" => "test",
        other => other,
    };
    let mut target = folder.parent().expect("a profile is in a target folder");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `.ci/timed` sets this variable for tests; with it, Cargo would rebuild everything.
    cargo.env_remove("RUSTC_BOOTSTRAP");
    // As in `cargo test --workspace`: with other commands, dependencies have other features and are built again.
    // It gives examples another name.
    let subcommand: &[&str] = if kind == "--example" { &["build"] } else { &["test", "--no-run"] };
    cargo.args(subcommand).args(["--quiet", "--workspace", kind, name, "--profile", profile]).args(features);
    // Cargo marks the top of its target folder.
    if !target.join("CACHEDIR.TAG").exists() {
        cargo.arg("--target").arg(target.file_name().expect("a triple"));
        target = target.parent().expect("a triple is in a target folder");
    }
    let made = cargo.arg("--target-dir").arg(target).current_dir(WORKSPACE).status();
    assert!(made.is_ok_and(|status| status.success()), "{name} cannot be built");
}

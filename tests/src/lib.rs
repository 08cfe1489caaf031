//! What the tests share: the command `equipoise` as a process in a folder of its own, and the reference
//! data beside the project.

/// The README; its program is compiled and run as a test of this documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;
use std::{env, fs};

use serde_json::Value;
use tempfile::TempDir;

/// The top of the workspace.
pub const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A folder that goes away with the test, in which the command runs.
pub struct Place(TempDir);

/// How a process ended and what it said.
#[derive(Debug)]
pub struct Told {
    /// Its command line, for messages.
    line: String,
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it said to whoever reads its result.
    pub stdout: String,
    /// What it said to whoever watches.
    pub stderr: String,
}

impl Place {
    /// An empty folder.
    ///
    /// # Panics
    /// If none can be made.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Place {
        Place(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of that name.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path().join(name), content).expect("a temporary file can be written");
    }

    /// The bytes of the file of that name.
    ///
    /// # Panics
    /// If there is none.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The text of the file of that name.
    ///
    /// # Panics
    /// If there is none, or it is not text.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs `equipoise` with the words of `line`.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn run(&self, line: &str) -> Told {
        Told::of(&format!("equipoise {line}"), &mut self.command(line))
    }

    /// Starts `equipoise` with the words of `line`, and goes away from its stdout after the first bytes.
    ///
    /// # Panics
    /// If there is no such command, or it says nothing.
    pub fn run_and_leave(&self, line: &str) -> Told {
        let mut command = self.command(line);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command can be started");
        let mut stdout = child.stdout.take().expect("its stdout is a pipe");
        let mut first = [0; 16];
        std::io::Read::read_exact(&mut stdout, &mut first).expect("the command says something");
        drop(stdout);
        let output = child.wait_with_output().expect("the command ends");
        Told::from(&format!("equipoise {line}"), &output)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(executable());
        // Quotes are for shells.
        let words = line.split_whitespace().map(|word| word.trim_matches('\''));
        command.args(words).current_dir(self.path()).stdin(Stdio::null());
        command
    }
}

impl Told {
    /// Runs a command to its end; `line` is what messages call it.
    ///
    /// # Panics
    /// If there is no such command.
    pub fn of(line: &str, command: &mut Command) -> Told {
        Told::from(line, &command.output().expect("the command can be started"))
    }

    fn from(line: &str, output: &Output) -> Told {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Told {
            line: line.into(),
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    /// The result of a process that ended well.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn result(self) -> String {
        assert_eq!(self.code, Some(0), "`{}` says: {}{}", self.line, self.stdout, self.stderr);
        self.stdout
    }

    /// The JSON document that is the whole result of a process that ended well.
    ///
    /// # Panics
    /// If it did not, or its result is anything else.
    #[track_caller]
    pub fn document(self) -> Value {
        let line = self.line.clone();
        let result = self.result();
        serde_json::from_str(&result).unwrap_or_else(|error| panic!("`{line}`: {error} in: {result}"))
    }

    /// Sees to it that the process ended with that exit code, no result, and these phrases on stderr.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn failed(&self, code: i32, phrases: &[&str]) {
        let Told { line, stdout, stderr, .. } = self;
        assert_eq!(self.code, Some(code), "`{line}` says: {stdout}{stderr}");
        assert_eq!(stdout, "", "`{line}` has a result");
        assert!(!stderr.contains("panicked"), "`{line}` says: {stderr}");
        assert!(stderr.starts_with("error: "), "`{line}` says: {stderr}");
        for phrase in phrases {
            assert!(stderr.contains(phrase), "`{line}` does not say `{phrase}`: {stderr}");
        }
    }
}

/// A folder of the reference data, or `None`, said aloud, where that is not at hand.
pub fn reference(folder: &str) -> Option<PathBuf> {
    let path = Path::new(WORKSPACE).join("../shared/reference").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: the reference data {folder} is not at hand");
    None
}

/// The text forms of LB dumps of Charm++ programs, each beside its dump: the one of the workspace, and
/// more where they are at hand.
pub fn charm_dump_texts() -> Vec<PathBuf> {
    let own = Path::new(WORKSPACE).join("strategies/tests/data/leanmd_333_1053.dat.0.txt");
    let mut texts = reference("charm_dumps").map_or_else(Vec::new, |folder| files(&folder, "txt"));
    texts.retain(|text| text.file_name() != own.file_name());
    texts.insert(0, own);
    texts
}

/// The files of a folder whose names end in `.extension`, in order of their names.
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

/// The command `equipoise`.
fn executable() -> &'static Path {
    static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();
    EXECUTABLE.get_or_init(|| made(Path::new("equipoise"), ["equipoise-apps", "--bin", "equipoise"]))
}

/// The program `examples/failing.rs` of this package.
pub fn failing_program() -> &'static Path {
    static EXECUTABLE: OnceLock<PathBuf> = OnceLock::new();
    EXECUTABLE.get_or_init(|| {
        made(&Path::new("examples").join("failing"), ["equipoise-tests", "--example", "failing"])
    })
}

/// An executable made of the sources as they are, in the target folder of this test: what it is called
/// below the folder of the profile, and the package and target it is.
fn made(name: &Path, target: [&str; 3]) -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    // target/PROFILE/deps/TEST, or target/TRIPLE/PROFILE/deps/TEST.
    let folder = test.ancestors().nth(2).expect("a test is in the folder of its profile").to_path_buf();
    let executable = folder.join(format!("{}{}", name.display(), env::consts::EXE_SUFFIX));
    let modified = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok();
    // `cargo test --workspace` has made it already, in the same build as this test.
    if modified(&executable).is_none_or(|built| newest_source() > built) {
        build(&folder, target);
    }
    executable
}

/// Makes an executable in the folder of a profile.
fn build(folder: &Path, [package, kind, name]: [&str; 3]) {
    let profile = match folder.file_name().and_then(OsStr::to_str).expect("a profile has a name") {
        "debug" => "dev",
        other => other,
    };
    let mut target = folder.parent().expect("a profile is in a target folder");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", package, kind, name, "--profile", profile]);
    // Cargo marks the top of its target folder.
    if !target.join("CACHEDIR.TAG").exists() {
        cargo.arg("--target").arg(target.file_name().expect("a triple"));
        target = target.parent().expect("a triple is in a target folder");
    }
    let made = cargo.arg("--target-dir").arg(target).current_dir(WORKSPACE).status();
    assert!(made.is_ok_and(|status| status.success()), "{name} cannot be built");
}

/// When the sources that these are made of were changed last.
fn newest_source() -> SystemTime {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut folders: Vec<PathBuf> = ["strategies", "runtime", "apps", "tests/examples"]
        .map(|package| Path::new(WORKSPACE).join(package))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if path.file_name() != Some(OsStr::new("tests")) {
                    folders.push(path);
                }
            } else if let Ok(modified) = entry.metadata().and_then(|metadata| metadata.modified()) {
                newest = newest.max(modified);
            }
        }
    }
    newest
}

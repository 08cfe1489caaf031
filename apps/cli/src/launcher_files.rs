//! Launchers' files on the command line, as `FORMAT=FILE`. A launcher's file places ranks on nodes.

use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use equipoise_apps::{Failure, output};
use equipoise_model::files::is_read_back;
use equipoise_model::launcher::{self, Job, Slots};
use equipoise_model::table::count;
use equipoise_model::{Database, Topology};

use crate::input::{self, OrHelp};

/// A launcher's file and its format.
#[derive(Clone)]
pub(crate) struct LauncherFile {
    pub(crate) format: &'static launcher::Format,
    pub(crate) path: PathBuf,
}

impl LauncherFile {
    /// Parses `FORMAT=FILE`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or_else(|| format!("expected FORMAT=FILE such as mpich=MPICH_RANK_ORDER, found `{text}`"))?;
        let format = launcher::format(format).map_err(|error| error.to_string())?;
        Ok(LauncherFile { format, path: path.into() })
    }
}

/// The parser of a launcher's file.
pub(crate) fn parser() -> impl TypedValueParser<Value = LauncherFile> {
    OrHelp { parser: LauncherFile::parse, help: launcher::help }
}

/// The PE of every task of `database` on `machine`, from a mapping, or from a launcher's file (`FORMAT=FILE`) with one
/// rank per task. A PE has `slots` slots in that file, or more if the tasks need more.
pub(crate) fn placement(
    file: &Path,
    database: &Database,
    machine: &dyn Topology,
    slots: u32,
) -> Result<Vec<u32>, Failure> {
    let launcher_file = file.to_str().and_then(|text| LauncherFile::parse(text).ok());
    // The name of a mapping may contain `=`.
    let Some(LauncherFile { format, path }) = launcher_file.filter(|_| !file.exists()) else {
        return input::mapping(file, database);
    };
    let tasks = database.objects.len();
    let per_pe = u32::try_from(tasks.div_ceil(machine.pes())).unwrap_or(u32::MAX).max(slots);
    let pe_of = launcher::read(&path, format, &Slots::of(machine, per_pe))?;
    if pe_of.len() != tasks {
        let (ranks, tasks) = (count(pe_of.len() as u64, "rank"), count(tasks as u64, "task"));
        return Err(Failure::input(format!(
            "the launcher's file `{}` places {ranks}, but the graph has {tasks}; use a file with a rank per task",
            path.display()
        )));
    }
    Ok(pe_of)
}

/// The texts of several launchers' files for one placement.
pub(crate) struct LauncherTexts<'a> {
    slots: &'a Slots,
    pe_of: &'a [u32],
    texts: Vec<(&'a LauncherFile, String)>,
}

impl<'a> LauncherTexts<'a> {
    /// The files that place rank `i` on PE `pe_of[i]`. Fails before any file is written if a text cannot be made or a
    /// path cannot be written.
    pub(crate) fn of(files: &'a [LauncherFile], slots: &'a Slots, pe_of: &'a [u32]) -> Result<Self, Failure> {
        let mut texts = Vec::with_capacity(files.len());
        if !files.is_empty() {
            let job = Job::new(pe_of, slots)
                .map_err(|reason| Failure::usage(format!("cannot write a launcher's file: {reason}")))?;
            for file in files {
                texts.push((file, launcher::text(file.format, &job)?));
                launcher::can_write(&file.path)?;
            }
        }
        Ok(LauncherTexts { slots, pe_of, texts })
    }

    /// Writes the files and returns a line about each; with `check`, reads regular files back and compares them.
    pub(crate) fn write(&self, check: bool) -> Result<String, Failure> {
        let mut lines = String::new();
        for (LauncherFile { format, path }, text) in &self.texts {
            launcher::write(path, text)?;
            let is_read = check && is_read_back(path);
            let is_same = |again: &[u32]| launcher::is_same(format, self.slots, self.pe_of, again);
            if is_read && !is_same(&launcher::read(path, format, self.slots)?) {
                return Err(output::verification_failed(path));
            }
            let checked = if is_read { ", which reads back the same" } else { "" };
            lines += &format!("{} ({}){checked}\n", path.display(), format.name);
        }
        Ok(lines)
    }
}

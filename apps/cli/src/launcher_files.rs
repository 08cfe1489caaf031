//! Launchers' files on the command line, as `FORMAT=FILE`. A launcher's file places ranks on nodes.

use clap::builder::TypedValueParser;
use equipoise_apps::{Failure, output};
use equipoise_model::files::is_read_back;
use equipoise_model::launcher::{self, Job, LauncherFile, Slots};

use crate::input::OrHelp;

/// The parser of a launcher's file.
pub(crate) fn parser() -> impl TypedValueParser<Value = LauncherFile> {
    OrHelp { parser: LauncherFile::parse, help: launcher::help }
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
            let job = Job::new(pe_of, slots)?;
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

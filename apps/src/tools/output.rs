//! How the subcommands answer: a result on stdout, everything else on stderr.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::bail;
use equipoise_strategies::files::{is_of_the_name, is_read_back};
use equipoise_strategies::launcher::{self, Job, Slots};
use indicatif::ProgressBar;
use serde::Serialize;

use super::input::LauncherFile;
use super::usage;
use crate::Format;

/// Work that takes less than this is not worth a sign of life.
const PATIENCE: Duration = Duration::from_millis(500);

/// Shows a result: its text for a person, or the document.
pub(super) fn show(
    format: Format,
    text: impl FnOnce() -> String,
    document: &impl Serialize,
) -> anyhow::Result<()> {
    let text = match format {
        Format::Text => text(),
        Format::Json => serde_json::to_string_pretty(document)? + "\n",
    };
    print(&text)
}

/// Writes a result to stdout; an error, not a panic, if its reader has gone.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// What the sentence says of a file that cannot be written.
pub(super) fn refused(error: &io::Error, sentence: String) -> anyhow::Error {
    if is_of_the_name(error) { usage(sentence) } else { anyhow::Error::msg(sentence) }
}

/// Tells a person what the result does not hold.
pub(super) fn warn(sentence: &str) {
    eprintln!("warning: {sentence}");
}

/// The texts of launchers' files.
pub(super) struct LauncherTexts<'a> {
    slots: &'a Slots,
    pe_of: &'a [u32],
    texts: Vec<(&'a LauncherFile, String)>,
}

impl<'a> LauncherTexts<'a> {
    /// Those that tell launchers that rank `i` runs on PE `pe_of[i]`. Nothing is written before all are there, and
    /// there is a place for each.
    pub(super) fn of(files: &'a [LauncherFile], slots: &'a Slots, pe_of: &'a [u32]) -> anyhow::Result<Self> {
        let mut texts = Vec::with_capacity(files.len());
        if !files.is_empty() {
            let job = Job::new(pe_of, slots)
                .map_err(|reason| usage(format!("no launcher's file can be written: {reason}")))?;
            for file in files {
                texts.push((file, launcher::text(file.format, &job)?));
                launcher::can_write(&file.path)?;
            }
        }
        Ok(LauncherTexts { slots, pe_of, texts })
    }

    /// Writes them; with `check`, reads them back, where there is a file then. Returns a line on each for a person.
    pub(super) fn write(&self, check: bool) -> anyhow::Result<String> {
        let mut lines = String::new();
        for (LauncherFile { format, path }, text) in &self.texts {
            launcher::write(path, text)?;
            let is_read = check && is_read_back(path);
            let is_same = |again: &[u32]| launcher::is_same(format, self.slots, self.pe_of, again);
            if is_read && !is_same(&launcher::read(path, format, self.slots)?) {
                bail!("what `{}` reads back as is not what was written; this is a mistake", path.display());
            }
            let checked = if is_read { ", which reads back the same" } else { "" };
            lines += &format!("{} ({}){checked}\n", path.display(), format.name);
        }
        Ok(lines)
    }
}

/// Does `work`, with a sign of life on a terminal's stderr while it takes long.
pub(super) fn watched<R>(what: &str, work: impl FnOnce() -> R) -> R {
    if !io::stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (done, waiting) = mpsc::channel::<()>();
        scope.spawn(move || {
            if waiting.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let spinner = ProgressBar::new_spinner().with_message(what.to_string());
                spinner.enable_steady_tick(Duration::from_millis(100));
                // The channel closes when the work is done.
                let _ = waiting.recv();
                spinner.finish_and_clear();
            }
        });
        let result = work();
        drop(done);
        result
    })
}

//! `--pes-available`.

use super::{Config, ConfigError, Settings, content, wrong};
use equipoise_model::assignment::MappingFile;
use std::path::Path;

/// What the file of `--pes-available` listed when it was last right, and what is wrong with it since.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) list: Option<Vec<u32>>,
    pub(crate) error: Option<String>,
}

impl Config {
    /// Checks the file of available PEs before the run.
    pub(super) fn check_available(&self, settings: &Settings) -> Result<(), ConfigError> {
        let Some(path) = &self.pes_available else { return Ok(()) };
        listed(path, settings.pes).map(drop)
    }
}

impl Settings {
    /// Whether PEs may be unavailable.
    pub(crate) fn lists_pes(&self) -> bool {
        self.pes_available.is_some()
    }

    /// The PEs that the file of `--pes-available` lists now; none without the flag.
    pub(crate) fn available(&self) -> Option<Result<Vec<u32>, ConfigError>> {
        self.pes_available.as_ref().map(|path| listed(path, self.pes))
    }
}

fn listed(path: &Path, pes: usize) -> Result<Vec<u32>, ConfigError> {
    let failed = |error| wrong("--pes-available", &error);
    let file = MappingFile::read(path).map_err(failed)?;
    let list = file.below(pes).map_err(failed)?;
    if list.is_empty() {
        let name = path.display();
        return Err(content(format!(
            "--pes-available: `{name}` lists no PE; give the available ones, one per line"
        )));
    }
    Ok(list.to_vec())
}

//! Report files: pages and JSON documents.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use equipoise_model::fault::{Classified, Fault};
use equipoise_model::files::{can_write_whole, write_whole};

use crate::data::ReportData;
use crate::page;

/// The file of a report: `.html` is a page, `.json` is the document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    path: PathBuf,
    is_page: bool,
}

/// Why a report was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The name does not say the format.
    #[error("`{0}` ends neither in .html nor in .json; name a file such as report.html")]
    Name(String),
    /// The file cannot be written.
    #[error("the report `{path}` cannot be written: {error}; choose another path")]
    Write {
        /// The file.
        path: String,
        /// What the operating system says.
        error: std::io::Error,
    },
    /// The document has no JSON form.
    #[error("the report cannot be encoded: {0} (please report this bug)")]
    Encoding(#[from] serde_json::Error),
}

impl Classified for ReportError {
    fn fault(&self) -> Fault {
        match self {
            ReportError::Name(_) => Fault::Usage,
            ReportError::Write { error, .. } => error.fault(),
            ReportError::Encoding(_) => Fault::Bug,
        }
    }
}

impl FromStr for ReportFile {
    type Err = ReportError;

    fn from_str(name: &str) -> Result<Self, ReportError> {
        let path = PathBuf::from(name);
        let ends_in = |extension: &str| path.extension().is_some_and(|it| it.eq_ignore_ascii_case(extension));
        let is_page = ends_in("html");
        if !is_page && !ends_in("json") {
            return Err(ReportError::Name(name.to_string()));
        }
        Ok(ReportFile { path, is_page })
    }
}

impl ReportFile {
    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Checks before a long run that the file can be written.
    ///
    /// # Errors
    /// If it cannot.
    pub fn can_write(&self) -> Result<(), ReportError> {
        can_write_whole(&self.path).map_err(|error| self.refused(error))
    }

    /// Writes the report. The file appears complete or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, data: &ReportData) -> Result<(), ReportError> {
        let json = serde_json::to_string(data)?;
        let text = if self.is_page { page::html(&data.title, &json) } else { json + "\n" };
        write_whole(&self.path, text.as_bytes()).map_err(|error| self.refused(error))
    }

    fn refused(&self, error: std::io::Error) -> ReportError {
        ReportError::Write { path: self.path.display().to_string(), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_the_format() {
        assert!("a/b.html".parse::<ReportFile>().is_ok_and(|file| file.is_page));
        assert!("b.JSON".parse::<ReportFile>().is_ok_and(|file| !file.is_page));
        let error = "b.svg".parse::<ReportFile>().expect_err("no format");
        assert_eq!(
            error.to_string(),
            "`b.svg` ends neither in .html nor in .json; name a file such as report.html"
        );
        assert!(error.fault() == Fault::Usage);
    }

    #[test]
    fn a_report_that_cannot_be_written_names_the_file() {
        let file: ReportFile = "nowhere/at/all.html".parse().expect("a name");
        let error = file.write(&ReportData::default()).expect_err("there is no such folder");
        assert!(error.to_string().contains("`nowhere/at/all.html` cannot be written"), "{error}");
        assert!(file.can_write().is_err());
    }
}

//! Reports that people look at: one HTML file about placements and runs, and timelines of recorded runs for Perfetto.
//!
//! A [`ReportData`] holds all numbers of a report. A [`Builder`] makes it from a database, a machine and placements. [`ReportFile`]
//! writes it, as a page or as JSON. The page has no external address and opens from the disk.
//! [`perfetto`] writes timelines.

mod between;
pub mod build;
pub mod data;
mod digits;
pub mod file;
pub mod heat;
mod machine;
mod matrix;
mod page;
pub mod perfetto;
mod replayed;
pub mod timeline;
mod windows;

pub use between::Between;
pub use build::Builder;
pub use data::ReportData;
pub use file::{ReportError, ReportFile};
pub use heat::Heat;
pub use replayed::Replayed;

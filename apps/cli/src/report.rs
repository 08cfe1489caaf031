//! The flag `--report`: what the subcommands write into reports.

use std::path::Path;

use equipoise_apps::Failure;
use equipoise_model::{Database, Topology};
use equipoise_report::{Between, Builder, ReportData, ReportFile};
use equipoise_strategies::cost::Metrics;

use crate::cost_table::LoadUnit;
use crate::program::Tasks;

/// The flag `--report`.
#[derive(clap::Args)]
pub(crate) struct ReportArg {
    /// Also write a report for people: .html is a page for any browser, .json the numbers of the page
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<ReportFile>,
}

impl ReportArg {
    /// Checks before the work that the file can be written.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.report.as_ref().map_or(Ok(()), |file| Ok(file.can_write()?))
    }

    /// The file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.report.as_ref().map(ReportFile::path)
    }

    /// Writes the report if it was asked for; `data` makes it.
    pub(crate) fn write(&self, data: impl FnOnce() -> Result<ReportData, Failure>) -> Result<(), Failure> {
        self.report.as_ref().map_or(Ok(()), |file| Ok(file.write(&data()?)?))
    }
}

/// The report of two placements of tasks on a machine.
pub(crate) fn of_mapping(
    tasks: &Tasks,
    (database, machine): (&Database, &dyn Topology),
    (before, then): (&[u32], &Metrics),
    (strategy, after, now): (&str, &[u32], &Metrics),
    between: Vec<Between>,
    words: Vec<String>,
) -> ReportData {
    let title = format!("{} on {}", tasks.name, machine.spec());
    let mut builder = Builder::new(title, database, machine, before.to_vec(), then.clone());
    builder.data.placements.iter_mut().for_each(|it| it.name = "start".into());
    builder.place(strategy.to_string(), after, now.clone()).between = between;
    builder.data.weights = tasks.unit == LoadUnit::None;
    builder.data.sentences = words;
    builder.data
}

//! The flag `--report`: what the subcommands write into reports.

use std::path::Path;
use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::table::count;
use equipoise_model::{Database, Topology};
use equipoise_report::{Between, Builder, Heat, ReportData, ReportFile};
use equipoise_strategies::cost::{Metrics, sentence};
use equipoise_strategies::replay::{Comparison, Recommendation, Replay, Request};

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

/// What a report shows of the steps of a replay: the loads of all, and all of the one with the largest load.
#[derive(Default)]
pub(crate) struct Replayed {
    recorded: Heat,
    /// By strategy: its name and the loads of its placements.
    after: Vec<(String, Heat)>,
    heaviest: Option<(Database, Arc<dyn Topology>, Replay)>,
}

impl Replayed {
    /// Adds a step.
    pub(crate) fn add(&mut self, database: Database, machine: &Arc<dyn Topology>, replay: &Replay) {
        let step = database.step as f64;
        let ratio = |costs: &Metrics| Some(1.0 + costs.imbalance);
        self.recorded.push(step, &database.pe_loads(&database.placement()), ratio(&replay.before));
        for row in &replay.strategies {
            let at = self.after.iter().position(|(name, _)| *name == row.name).unwrap_or_else(|| {
                self.after.push((row.name.clone(), Heat::default()));
                self.after.len() - 1
            });
            self.after[at].1.push(step, &database.pe_loads(&row.pe_of), ratio(&row.after));
        }
        let most = self.heaviest.as_ref().map_or(-1.0, |(_, _, replay)| replay.before.max_load_seconds);
        if replay.before.max_load_seconds > most {
            self.heaviest = Some((database, machine.clone(), replay.clone()));
        }
    }

    /// The report of the replay of a file with this name.
    pub(crate) fn data(
        self,
        name: &str,
        request: &Request,
        comparison: &Comparison,
    ) -> Result<ReportData, Failure> {
        let Some((database, machine, replay)) = &self.heaviest else { return Ok(ReportData::default()) };
        let title = format!("Replay of {name} on {}", machine.spec());
        let mut builder =
            Builder::new(title, database, &**machine, database.placement(), replay.before.clone());
        let name_before = replay.name_before().trim_matches(['(', ')']);
        builder.data.placements.iter_mut().for_each(|it| it.name = name_before.into());
        let several = self.recorded.steps() > 1;
        for row in &replay.strategies {
            let added = builder.place(row.name.clone(), &row.pe_of, row.after.clone());
            added.strategy_seconds = Some(row.seconds);
            added.on_front = Some(row.on_front);
            let of_step = sentence(&replay.before, &row.after);
            let of_step = if several { format!("step {}: {of_step}", replay.database.step) } else { of_step };
            added.sentences = [of_step].into_iter().chain(row.sentence.clone()).collect();
            let heat = self.after.iter().find(|(name, _)| several && *name == row.name);
            added.steps = heat.map(|(_, heat)| heat.clone().finished());
        }
        let mut data = builder.data;
        if let Some(Recommendation { strategy: best, lead, reasons }) = comparison.recommendation() {
            data.recommended = data.placements.iter().position(|it| it.name == best);
            if let Some(at) = data.recommended {
                let choices = request.choices();
                let choice = choices.iter().find(|choice| choice.spec == best);
                let strategy = choice.map(|choice| (&*choice.strategy, request.seed));
                let best = &mut data.placements[at];
                best.between = Between::all(database, &**machine, &best.pe_of, strategy)?;
            }
            // The page begins with the lead; the reasons are on its overview.
            data.sentences.push(format!("Recommended: {best}. {}", lead.join(" ")));
            data.sentences.extend(reasons);
        }
        let summary = &replay.database;
        if several {
            let total = comparison.total();
            data.step = Some(summary.step);
            data.placements[0].totals = Some(total.before);
            for row in total.strategies {
                let placement = data.placements.iter_mut().find(|it| it.name == row.name);
                placement.into_iter().for_each(|it| {
                    it.totals = Some(row.after.clone());
                    it.total_strategy_seconds = Some(row.seconds);
                });
            }
        }
        let (objects, pes) = (replay.objects(), count(summary.pes as u128, "PE"));
        data.sentences.push(match several {
            true => format!(
                "{} were replayed, each on its own. The table has the sums over all of them, from which the recommendation was made. The panel \
                 Steps shows all steps; the other panels show step {}, which has the largest load: {objects} on {pes}.",
                count(self.recorded.steps() as u128, "step"),
                summary.step
            ),
            false => format!("Step {}: {objects} on {pes}.", summary.step),
        });
        data.sentences.extend(replay.remapped());
        data.sentences.extend(comparison.warnings.iter().map(|warning| format!("The database {warning}.")));
        let refusals = replay.refusals.iter();
        data.refusals = refusals.map(|refusal| (refusal.name.clone(), refusal.error.clone())).collect();
        data.steps = several.then(|| self.recorded.finished());
        Ok(data)
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

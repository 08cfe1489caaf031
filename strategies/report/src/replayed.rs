//! The report of a replay: the loads of all steps, and all of the step with the largest load.

use std::sync::Arc;

use equipoise_model::table::count;
use equipoise_model::{Database, Topology};
use equipoise_strategies::StrategyError;
use equipoise_strategies::cost::{Metrics, sentence};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::replay::{Comparison, Recommendation, Replay};

use crate::{Between, Builder, Heat, ReportData};

/// What a report shows of the steps of a replay.
#[derive(Clone, Default)]
pub struct Replayed {
    recorded: Heat,
    /// By strategy: its name and the loads of its placements.
    after: Vec<(String, Heat)>,
    heaviest: Option<(Database, Arc<dyn Topology>, Replay)>,
}

impl Replayed {
    /// Adds a step: its database, the machine, and what strategies answered.
    pub fn add(&mut self, database: Database, machine: &Arc<dyn Topology>, replay: &Replay) {
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

    /// The report of the replay of a file with this name, by strategies `choices` with a seed. Without steps it is empty.
    ///
    /// # Errors
    /// Those of the recommended strategy, which is asked again for placements between the recorded one and its own.
    pub fn data(
        &self,
        name: &str,
        (choices, seed): (&[Choice], u64),
        comparison: &Comparison,
    ) -> Result<ReportData, StrategyError> {
        let Some((database, machine, replay)) = &self.heaviest else { return Ok(ReportData::default()) };
        let mut data = self.placements(name, (database, &**machine, replay));
        if let Some(Recommendation { title, strategy: best, lead, reasons }) = comparison.recommendation() {
            data.recommended = data.placements.iter().position(|it| it.name == best);
            if let Some(at) = data.recommended {
                let choice = choices.iter().find(|choice| choice.spec == best);
                let strategy = choice.map(|choice| (&*choice.strategy, seed));
                let best = &mut data.placements[at];
                best.between = Between::all(database, &**machine, &best.pe_of, strategy)?;
            }
            // The page begins with the lead; the reasons are on its overview.
            data.recommendation_title = Some(title.to_owned());
            data.sentences.push(format!("{title}: {best}. {}", lead.join(" ")));
            data.sentences.extend(reasons);
        }
        let summary = &replay.database;
        let several = self.recorded.steps() > 1;
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
        data.sentences.extend(if several { comparison.total() } else { replay.clone() }.left_behind());
        data.sentences.extend(comparison.warnings.iter().map(|warning| format!("The database {warning}.")));
        let refusals = replay.refusals.iter();
        data.refusals = refusals.map(|refusal| (refusal.name.clone(), refusal.error.clone())).collect();
        data.steps = several.then(|| self.recorded.clone().finished());
        Ok(data)
    }

    /// The recorded placement of a step, and those of strategies.
    fn placements(
        &self,
        name: &str,
        (database, machine, replay): (&Database, &dyn Topology, &Replay),
    ) -> ReportData {
        let title = format!("Replay of {name} on {}", machine.spec());
        let mut builder = Builder::new(title, database, machine, database.placement(), replay.before.clone());
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
        builder.data
    }
}

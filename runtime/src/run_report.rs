//! The file of `--report`: what PE 0 keeps of load-balancing steps for it.

use crate::lb_history::LbStep;
use crate::options::{Settings, program};
use equipoise_model::Database;
use equipoise_model::table::{count, seconds};
use equipoise_network::trace::Trace;
use equipoise_report::data::VERSION;
use equipoise_report::{Builder, Heat, ReportData, ReportFile, timeline};

/// What the report needs of the steps so far: the loads of all, and the database of the step that gained most.
#[derive(Default)]
pub(crate) struct RunReport {
    before: Heat,
    after: Heat,
    best: Option<Best>,
}

/// The step that gained most.
struct Best {
    database: Database,
    pe_of: Vec<u32>,
    step: LbStep,
}

impl RunReport {
    /// Adds a step, which puts object `i` of `database` on PE `pe_of[i]`.
    pub(crate) fn add(&mut self, step: &LbStep, database: &Database, pe_of: &[u32]) {
        let number = step.step as f64;
        self.before.push(number, &database.pe_loads(&database.placement()));
        self.after.push(number, &database.pe_loads(pe_of));
        let gain = |step: &LbStep| step.before.gain_seconds(&step.after);
        if self.best.as_ref().is_none_or(|best| gain(step) > gain(&best.step)) {
            self.best = Some(Best { database: database.clone(), pe_of: pe_of.to_vec(), step: step.clone() });
        }
    }

    /// Writes the report of a run that took `run_seconds`; returns why it could not be written. `trace` is what was recorded of it.
    pub(crate) fn write(
        self,
        file: &ReportFile,
        settings: &Settings,
        run_seconds: f64,
        trace: Option<&Trace>,
    ) -> Option<String> {
        let mut data = self.data(settings, run_seconds);
        data.timeline = trace.and_then(timeline::timeline);
        file.write(&data).err().map(|error| error.to_string())
    }

    fn data(self, settings: &Settings, run_seconds: f64) -> ReportData {
        let topology = &*settings.topology;
        // Without its flags, the command is short enough for a title.
        let command = program();
        let words = command.split(" --").next().unwrap_or_default();
        let title = format!("Run of {words} on {}", topology.spec());
        let steps = self.before.steps();
        let length = format!("The run took {} on {}", seconds(run_seconds), count(settings.pes as u64, "PE"));
        let Some(Best { database, pe_of, step }) = self.best else {
            let none = "no load-balancing step, so there are no placements to show";
            let sentences = vec![format!("{length} and had {none}.")];
            return ReportData {
                version: VERSION,
                title,
                topology: topology.spec(),
                sentences,
                ..ReportData::default()
            };
        };
        let placement = database.placement();
        let mut builder = Builder::new(title, &database, topology, placement, step.before.clone());
        let strategy = step.strategy.clone().unwrap_or_else(|| "no strategy".into());
        let placed = builder.place(strategy, &pe_of, step.after.clone());
        placed.strategy_seconds = Some(step.strategy_seconds);
        placed.sentences = step.remark.clone().into_iter().collect();
        placed.steps = (steps > 1).then(|| self.after.finished());
        let mut data = builder.data;
        data.sentences = vec![
            step.sentence(),
            format!(
                "{length}, with {}. The panels of placements show step {}, which gained most.",
                count(steps as u64, "load-balancing step"),
                step.step
            ),
        ];
        data.steps = (steps > 1).then(|| self.before.finished());
        data
    }
}

//! Databases of a run: writes those of load-balancing steps, lists strategies, and replays a database instead of
//! running, like Charm++'s `+LBSim`.

use crate::options::{Config, ReportForm, Settings, program, wrong};
use crate::process;
use crate::report::RunError;
use equipoise_model::costs::Costs;
use equipoise_model::database::{DatabaseError, DumpWriter};
use equipoise_model::fault::{Classified as _, Fault};
use equipoise_model::quote::printable;
use equipoise_model::{Database, topology};
use equipoise_network::models;
use equipoise_strategies::registry;
use equipoise_strategies::replay::Request;
use std::path::Path;
use std::time::Instant;

/// The text that a configuration asks for instead of a run, if any: a list, or the result of a replay.
pub(crate) fn answer(config: &Config) -> Result<Option<String>, RunError> {
    if config.balancer.iter().chain(&config.then).any(|spec| spec == "help") {
        return Ok(Some(registry::help()));
    }
    if config.topology.as_deref() == Some("help") {
        return Ok(Some(topology::help()));
    }
    if config.machine.network.as_deref() == Some("help") {
        return Ok(Some(models::help()));
    }
    let (Some(step), Some(file)) = (config.lb_sim, &config.lb_sim_file) else { return Ok(None) };
    let topology = config.topology.as_deref().map(topology::parse).transpose();
    let costs = config.cost_model.as_deref().map(Costs::read).transpose();
    let request = Request {
        path: file.clone(),
        step: Some(step),
        steps: Some(config.lb_sim_steps),
        pes: config.lb_sim_pes,
        costs: costs.map_err(|error| wrong("--cost-model", &error))?,
        topology: topology.map_err(|error| wrong("--topology", &error))?,
        strategies: config.choices()?,
        max_moves: config.max_moves.into_iter().collect(),
        constraints: config.constraints()?,
        seed: config.seed,
        ..Request::default()
    };
    let begin = Instant::now();
    let comparison = request.run(|_| begin.elapsed()).map_err(|error| {
        let sentence = error.to_string();
        if error.fault() == Fault::Usage { RunError::Config(sentence) } else { RunError::File(sentence) }
    })?;
    for warning in &comparison.warnings {
        process::warn(&format!("`{}` {warning}", file.display()));
    }
    match config.lb_report {
        Some(ReportForm::Json) => serde_json::to_string_pretty(&comparison)
            .map(Some)
            .map_err(|error| RunError::File(format!("the replay cannot be shown as JSON: {error}"))),
        _ => Ok(Some(printable(&comparison.to_string()))),
    }
}

/// The result of writing the databases and the trace of a run.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Why a file could not be written.
    pub(crate) error: Option<String>,
    /// A warning if fewer databases exist than `--lb-dump-steps` requested.
    pub(crate) warning: Option<String>,
}

impl Written {
    /// Prints the warning and the error to stderr.
    pub(crate) fn show(&self) {
        if let Some(warning) = &self.warning {
            process::warn(warning);
        }
        if let Some(error) = &self.error {
            process::print_error(error);
        }
    }
}

/// The file of `--lb-dump`. Every step is written when it happens; only its number is kept.
#[derive(Default)]
pub(crate) struct DumpFile {
    /// None before the first step, when the file is complete, and after an error.
    writer: Option<DumpWriter>,
    steps: u64,
    error: Option<String>,
}

impl DumpFile {
    /// Appends the database of a step. The file is complete after the last step that `--lb-dump-steps` asks for.
    pub(crate) fn add(&mut self, settings: &Settings, database: &Database) {
        let Some(path) = &settings.dump else { return };
        if self.error.is_some() {
            return;
        }
        if let Err(error) = self.try_add(settings, path, database) {
            let kept = self.writer.take().and_then(DumpWriter::abandon);
            self.error = Some(format!("{error}{}", kept.map(|kept| format!("; {kept}")).unwrap_or_default()));
        }
    }

    fn try_add(
        &mut self,
        settings: &Settings,
        path: &Path,
        database: &Database,
    ) -> Result<(), DatabaseError> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => DumpWriter::record(path, &program(), &settings.topology.spec())?,
        };
        let added = writer.push(database);
        self.writer = Some(writer);
        added?;
        self.steps += 1;
        match self.steps == settings.dump_steps {
            true => self.writer.take().map_or(Ok(()), DumpWriter::finish),
            false => Ok(()),
        }
    }

    /// Completes the file at the end of a run; `trace_error` is the error of the trace.
    pub(crate) fn finish(mut self, settings: &Settings, trace_error: Option<String>) -> Written {
        let finished = self.writer.take().map_or(Ok(()), DumpWriter::finish);
        let errors = self.error.into_iter().chain(finished.err().map(|error| error.to_string()));
        let errors: Vec<String> = errors.chain(trace_error).collect();
        let error = Some(errors.join("; ")).filter(|error| !error.is_empty());
        let (steps, wanted, first) = (self.steps, settings.dump_steps, settings.dump_start);
        let name = settings.dump.as_ref().map(|path| path.display());
        let warning = name.filter(|_| error.is_none() && steps < wanted).map(|name| match steps {
            0 => format!(
                "--lb-dump {name}: the run had no load-balancing step {first} or later; nothing is written"
            ),
            _ => format!(
                "--lb-dump {name}: {steps} of {wanted} databases written from step {first} on; the run had no \
                 more load-balancing steps"
            ),
        });
        Written { error, warning }
    }
}

//! What a program does with databases besides running: it writes those of its load-balancing steps,
//! lists the balancers, and replays a database in place of a run, as Charm++'s `+LBSim` does.

use crate::options::{Config, ConfigError, ReportForm, Settings};
use crate::run::RunError;
use equipoise_strategies::database::Dump;
use equipoise_strategies::replay::Request;
use equipoise_strategies::{Database, registry, topology};
use std::time::Instant;

/// The text a configuration asks for instead of a run, if it does: help, or a replay.
pub(crate) fn answer(config: &Config) -> Result<Option<String>, RunError> {
    if config.balancer.iter().chain(&config.then).any(|spec| spec == "help") {
        return Ok(Some(registry::help()));
    }
    if config.topology.as_deref() == Some("help") {
        return Ok(Some(topology::help()));
    }
    let (Some(step), Some(file)) = (config.lb_sim, &config.lb_sim_file) else { return Ok(None) };
    let topology = config.topology.as_deref().map(topology::parse).transpose();
    let request = Request {
        path: file.clone(),
        step: Some(step),
        steps: Some(config.lb_sim_steps),
        pes: config.lb_sim_pes,
        topology: topology.map_err(|error| RunError::Config(format!("--topology: {error}")))?,
        strategies: config.choices().map_err(|ConfigError(sentence)| RunError::Config(sentence))?,
        seed: config.seed,
    };
    let begin = Instant::now();
    let comparison = request.run(|| begin.elapsed()).map_err(|error| {
        let sentence = error.to_string();
        if error.is_of_the_request() { RunError::Config(sentence) } else { RunError::Program(sentence) }
    })?;
    match config.lb_report {
        Some(ReportForm::Json) => serde_json::to_string_pretty(&comparison)
            .map(Some)
            .map_err(|error| RunError::Program(format!("the replay cannot be shown as JSON: {error}"))),
        _ => Ok(Some(comparison.to_string())),
    }
}

/// Writes the databases of a run.
pub(crate) fn dump(settings: &Settings, databases: Vec<Database>) -> Result<(), RunError> {
    let Some(path) = &settings.dump else { return Ok(()) };
    if databases.is_empty() {
        eprintln!(
            "warning: --lb-dump {}: the run had no load-balancing step {} or later; nothing is written",
            path.display(),
            settings.dump_start
        );
        return Ok(());
    }
    let dump = Dump { program: program(), topology: settings.topology.spec(), steps: databases };
    dump.write(path).map_err(|error| RunError::Program(error.to_string()))
}

/// The command line, with the program's name for its path.
fn program() -> String {
    let mut args = std::env::args_os();
    let path = std::path::PathBuf::from(args.next().unwrap_or_default());
    let name = path.file_name().map(ToOwned::to_owned);
    let words = name.into_iter().chain(args).map(|arg| arg.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// Shows a text to whoever asked for it; that nobody reads it any more is no error.
pub(crate) fn show(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
}

//! What a program does with databases besides running: it writes those of its load-balancing steps,
//! lists the balancers, and replays a database in place of a run, as Charm++'s `+LBSim` does.

use crate::options::{Config, ReportForm, Settings};
use crate::report::RunError;
use equipoise_strategies::database::Dump;
use equipoise_strategies::replay::Request;
use equipoise_strategies::trace::Trace;
use equipoise_strategies::{Database, network, registry, topology};
use std::time::Instant;

/// The text a configuration asks for instead of a run, if it does: help, or a replay.
pub(crate) fn answer(config: &Config) -> Result<Option<String>, RunError> {
    if config.balancer.iter().chain(&config.then).any(|spec| spec == "help") {
        return Ok(Some(registry::help()));
    }
    if config.topology.as_deref() == Some("help") {
        return Ok(Some(topology::help()));
    }
    if config.machine.network.as_deref() == Some("help") {
        return Ok(Some(network::help()));
    }
    let (Some(step), Some(file)) = (config.lb_sim, &config.lb_sim_file) else { return Ok(None) };
    let topology = config.topology.as_deref().map(topology::parse).transpose();
    let request = Request {
        path: file.clone(),
        step: Some(step),
        steps: Some(config.lb_sim_steps),
        pes: config.lb_sim_pes,
        topology: topology.map_err(|error| RunError::Config(format!("--topology: {error}")))?,
        strategies: config.choices()?,
        seed: config.seed,
    };
    let begin = Instant::now();
    let comparison = request.run(|| begin.elapsed()).map_err(|error| {
        let sentence = error.to_string();
        if error.is_of_the_request() { RunError::Config(sentence) } else { RunError::File(sentence) }
    })?;
    match config.lb_report {
        Some(ReportForm::Json) => serde_json::to_string_pretty(&comparison)
            .map(Some)
            .map_err(|error| RunError::File(format!("the replay cannot be shown as JSON: {error}"))),
        _ => Ok(Some(comparison.to_string())),
    }
}

/// What became of the databases and the trace of a run.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Why they are not in their files.
    pub(crate) error: Option<String>,
    /// Why there are fewer than were asked for.
    pub(crate) warning: Option<String>,
}

impl Written {
    /// Tells whoever watches.
    pub(crate) fn show(&self) {
        if let Some(warning) = &self.warning {
            eprintln!("warning: {warning}");
        }
        if let Some(error) = &self.error {
            eprintln!("error: {error}");
        }
    }
}

/// Writes what a run leaves in files.
pub(crate) fn write(settings: &Settings, databases: Vec<Database>, trace: Option<Trace>) -> Written {
    let mut written = dump(settings, databases);
    let path = settings.simulation.as_ref().and_then(|it| it.record.as_ref());
    if let (Some(path), Some(trace)) = (path, trace)
        && let Err(error) = trace.write(path)
    {
        let before = written.error.map_or(String::new(), |error| error + "; ");
        written.error = Some(format!("{before}{error}"));
    }
    written
}

fn dump(settings: &Settings, databases: Vec<Database>) -> Written {
    let Some(path) = &settings.dump else { return Written::default() };
    let (name, first) = (path.display(), settings.dump_start);
    let warning = match databases.len() as u64 {
        0 => Some(format!(
            "--lb-dump {name}: the run had no load-balancing step {first} or later; nothing is written"
        )),
        there if there < settings.dump_steps => Some(format!(
            "--lb-dump {name}: the run had only {there} of the {} load-balancing steps asked for from step \
             {first} on",
            settings.dump_steps
        )),
        _ => None,
    };
    if databases.is_empty() {
        return Written { warning, error: None };
    }
    let dump = Dump { program: program(), topology: settings.topology.spec(), steps: databases };
    Written { error: dump.write(path).err().map(|error| error.to_string()), warning }
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

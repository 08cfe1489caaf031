//! What a program does with databases besides running: it writes those of its load-balancing steps,
//! lists the balancers, and replays a database in place of a run, as Charm++'s `+LBSim` does.

use crate::options::{Config, ConfigError, Settings, write_dump};
use crate::run::RunError;
use equipoise_strategies::database::Dump;
use equipoise_strategies::{Database, registry};

/// The text a configuration asks for instead of a run, if it does.
pub(crate) fn answer(config: &Config) -> Result<Option<String>, RunError> {
    if config.balancer.iter().chain(&config.then).any(|spec| spec == "help") {
        return Ok(Some(registry::help()));
    }
    let (Some(_step), Some(_file)) = (config.lb_sim, &config.lb_sim_file) else { return Ok(None) };
    let _ = config.choices().map_err(|ConfigError(sentence)| RunError::Config(sentence))?;
    Ok(None)
}

/// Writes the databases of a run.
pub(crate) fn dump(
    settings: &Settings,
    arrays: Vec<String>,
    databases: Vec<Database>,
) -> Result<(), RunError> {
    let Some(path) = &settings.dump else { return Ok(()) };
    let _ = arrays;
    let program = std::env::args().next().unwrap_or_default();
    let dump = Dump { program, topology: settings.topology.spec(), steps: databases };
    write_dump(path, &dump).map_err(RunError::Program)
}

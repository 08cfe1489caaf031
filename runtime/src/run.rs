//! A run from beginning to end: settings, execution, report.

use crate::files::{self, Written};
use crate::interleaving::Interleaving;
use crate::node::Node;
use crate::options::{Config, Settings};
use crate::panics;
use crate::pe::{Exit, PeCx};
use crate::process;
use crate::report::{Report, RunError, show};
use crate::setup::Setup;
use crate::transport;
use serde::{Serialize, de::DeserializeOwned};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

/// Runs `setup` on every PE, then delivers messages until the program exits.
///
/// Problems with the files of `--lb-dump` and `--record`, and the warnings of the [`Report`], are printed to stderr.
///
/// If the run fails, a program with a command line ([`Config::program`]) ends with an error message on
/// stderr and exit code 1 (2 for an invalid flag).
///
/// # Panics
/// If the run fails and the configuration was made in code, with the same message. [`try_run`]
/// returns an error instead.
pub fn run<R>(config: Config, setup: impl Fn(&Setup, Exit<R>) + Sync) -> Report<R>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let program = config.program;
    let (result, written) = attempt(config, setup);
    written.show();
    match result {
        Ok(report) => {
            report.warnings.iter().for_each(|warning| process::warn(warning));
            Report { dump_error: written.error, dump_warning: written.warning, ..report }
        }
        Err(error) if program => {
            match &error {
                RunError::Answer(text) => show(text),
                error => process::print_error(&error.to_string()),
            }
            std::process::exit(error.exit_code())
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs `setup` on every PE, then delivers messages until the program exits.
///
/// # Errors
/// If the configuration is invalid, user code panics, the program comes to rest without an exit, or the time of
/// [`Config::time_limit`] is over.
pub fn try_run<R>(config: Config, setup: impl Fn(&Setup, Exit<R>) + Sync) -> Result<Report<R>, RunError>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let (result, Written { error, warning }) = attempt(config, setup);
    Ok(Report { dump_error: error, dump_warning: warning, ..result? })
}

/// The settings of a run, or the text that the flags ask for instead of a run.
fn settings(config: &Config) -> Result<Settings, RunError> {
    match files::answer(config)? {
        Some(answer) => Err(RunError::Answer(answer)),
        None => Ok(config.resolve()?),
    }
}

/// Runs the program. Its databases and its trace are written, even if the run fails.
fn attempt<R>(
    config: Config,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
) -> (Result<Report<R>, RunError>, Written)
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    panics::store_places();
    // Before the first file.
    if config.program {
        process::end_on_signals();
    }
    let settings = match settings(&config) {
        Ok(settings) => Arc::new(settings),
        Err(error) => return (Err(error), Written::default()),
    };
    let start = Instant::now();
    let node = Arc::new(Node::new(Arc::clone(&settings)));
    let build = |pe: PeCx| Setup::run(pe, |pe| setup(pe, Exit(PhantomData)));
    transport::run(&node, &build);
    let seconds = start.elapsed().as_secs_f64();
    let mut outcome = std::mem::take(&mut *node.outcome.lock());
    let mut written = std::mem::take(&mut outcome.dump).finish(&settings, outcome.trace_error.take());
    if let Some(Interleaving::Record(recording)) = &settings.interleaving {
        let unrecorded = recording.finish(outcome.ended_by);
        written.error =
            written.error.into_iter().chain(unrecorded).reduce(|all, error| format!("{all}; {error}"));
    }
    let error = outcome.error(&settings);
    let warnings = outcome.warnings();
    let result = match error {
        Some(error) => Err(error),
        None => outcome.result.and_then(|result| result.downcast().ok()).ok_or_else(|| {
            let sentence = "the run ended without a result".into();
            let seed = settings.is_simulated().then_some(settings.seed);
            RunError::Program { sentence, seed }
        }),
    };
    let lb_summary = outcome.lb_steps.summary;
    let report = result.map(|result: Box<R>| Report {
        result: *result,
        seconds,
        pes: settings.pes,
        seed: settings.seed,
        machine: outcome.machine,
        lb_steps: outcome.lb_steps.into_steps(),
        lb_summary,
        executions: outcome.executions,
        remote_messages: outcome.remote_messages,
        migrations: outcome.migrations,
        dump_error: None,
        dump_warning: None,
        warnings,
    });
    (report, written)
}

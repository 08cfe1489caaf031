//! A run from beginning to end: settings, execution, report.

use crate::files::{self, Written};
use crate::interleaving::Interleaving;
use crate::codec;
use crate::options::{Config, Job, Settings};
use crate::panics;
use crate::pe::{Exit, PeCx};
use crate::process;
use crate::report::{Report, RunError, show};
use crate::setup::Setup;
use crate::transport;
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;
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
        None => Ok(config.resolve(&Job::default())?),
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
    let build = |pe: PeCx| Setup::run(pe, |pe| setup(pe, Exit(PhantomData)));
    let mut outcome = transport::run(&settings, &build, None);
    let seconds = start.elapsed().as_secs_f64();
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
        None => result(&settings, outcome.result),
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

/// The result of a run; where there are several processes, its encoding is decoded.
fn result<R: DeserializeOwned + 'static>(
    settings: &Settings,
    result: Option<Box<dyn Any + Send>>,
) -> Result<Box<R>, RunError> {
    let failed = |sentence: String| {
        let seed = settings.is_simulated().then_some(settings.seed);
        RunError::Program { sentence, seed }
    };
    let result: Box<dyn Any> = result.ok_or_else(|| failed("the run ended without a result".into()))?;
    if settings.is_distributed() {
        let bytes: Option<&Vec<u8>> = result.downcast_ref();
        let decoded = codec::decode(bytes.map(Vec::as_slice).unwrap_or_default());
        return decoded.map(Box::new).map_err(|error| failed(format!("cannot decode the result of the run: {error}")));
    }
    result.downcast().map_err(|_| failed("the result of the run has the wrong type".into()))
}

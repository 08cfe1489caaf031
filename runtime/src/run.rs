//! A run from beginning to end: settings, execution, report.

use crate::codec;
use crate::costs;
use crate::files::{self, Written};
use crate::interleaving::Interleaving;
use crate::options::{Config, Job, Settings, Transport};
use crate::panics;
use crate::pe::{Exit, PeCx};
use crate::process;
use crate::recorded;
use crate::report::{JobReport, Report, RunError, show};
use crate::run_report::took;
use crate::setup::Setup;
use crate::transport::{self, Link};
use equipoise_network::trace::Trace;
use serde::{Serialize, de::DeserializeOwned};
use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

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
    finished(program, attempt(config, setup, transport::connect))
}

/// Runs `setup` on PEs in the processes of a communicator of MPI, like [`run`] with `--transport mpi`. All processes of the
/// communicator call this, in the same order relative to their other collective calls.
///
/// The communicator is duplicated, so the messages of the run are apart from those of the program. MPI is neither
/// initialised nor finalised. Control returns to the program when the run is over in all processes, with the same
/// result; so a program can alternate between phases of its own and runs of chares.
///
/// # Panics
/// As `run`.
#[cfg(feature = "mpi")]
pub fn run_on<R>(
    config: Config,
    communicator: &impl mpi::traits::Communicator,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
) -> Report<R>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let program = config.program;
    finished(program, attempt_on(config, communicator, setup))
}

/// Runs `setup` on PEs in the processes of a communicator of MPI, like [`run_on`]. A failed run is an error in all processes,
/// which can continue.
///
/// # Errors
/// As [`try_run`].
#[cfg(feature = "mpi")]
pub fn try_run_on<R>(
    config: Config,
    communicator: &impl mpi::traits::Communicator,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
) -> Result<Report<R>, RunError>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    tried(attempt_on(config, communicator, setup))
}

#[cfg(feature = "mpi")]
fn attempt_on<R>(
    config: Config,
    communicator: &impl mpi::traits::Communicator,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
) -> Attempt<R>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    let config = Config { transport: Transport::Mpi, ..config };
    let connect = |_: &Config| Ok(Some(Box::new(transport::Mpi::new(communicator)) as Box<dyn Link>));
    attempt(config, setup, connect)
}

/// The report of a successful run. A failed run ends the process of a program; else this panics.
fn finished<R>(program: bool, Attempt { result, written, speaks, link }: Attempt<R>) -> Report<R> {
    if speaks {
        written.show();
    }
    match result {
        Ok(report) => {
            report.warnings.iter().filter(|_| speaks).for_each(|warning| process::warn(warning));
            Report { dump_error: written.error, dump_warning: written.warning, ..report }
        }
        Err(error) if program => {
            match &error {
                _ if !speaks => {}
                RunError::Answer(text) => show(text),
                RunError::Saved { .. } => process::note(&error.to_string()),
                error => process::print_error(&error.to_string()),
            }
            if let Some(link) = link {
                link.end(error.exit_code(), speaks);
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
    tried(attempt(config, setup, transport::connect))
}

fn tried<R>(attempt: Attempt<R>) -> Result<Report<R>, RunError> {
    let Attempt { result, written: Written { error, warning }, .. } = attempt;
    Ok(Report { dump_error: error, dump_warning: warning, ..result? })
}

/// The connection to the other processes of a run, if it has several.
type Connection = Option<Box<dyn Link>>;

/// A run that is over, in one process.
struct Attempt<R> {
    result: Result<Report<R>, RunError>,
    written: Written,
    /// Whether this process prints errors and warnings, for all.
    speaks: bool,
    link: Connection,
}

/// Why a run does not begin, and whether this process prints it.
struct Refusal {
    error: RunError,
    speaks: bool,
    link: Connection,
}

impl<E: Into<RunError>> From<E> for Refusal {
    /// A refusal before processes are connected.
    fn from(error: E) -> Self {
        Refusal { error: error.into(), speaks: true, link: None }
    }
}

/// The settings of a run and the connection to other processes, or the text that the flags ask for instead of a run.
fn settings(
    config: &Config,
    connect: impl FnOnce(&Config) -> Result<Connection, String>,
) -> Result<(Arc<Settings>, Connection), Refusal> {
    let first = |error: RunError| {
        if config.program {
            process::let_first_speak();
        }
        error
    };
    if let Some(answer) = files::answer(config).map_err(first)? {
        return Err(Refusal {
            error: RunError::Answer(answer),
            speaks: process::launched_as() == 0,
            link: None,
        });
    }
    let link = connect(config).map_err(|sentence| first(RunError::Config(sentence)))?;
    let Some(link) = link else { return Ok((Arc::new(with_costs(config.resolve(&Job::default())?)), None)) };
    let settings = config.resolve(link.job()).map_err(RunError::from);
    // If one process refuses its flags or files, no process begins, and the first one with an error prints it.
    let refuses = link.first_with(settings.is_err());
    let speaks = refuses == Some(link.job().process);
    match (settings, refuses) {
        (Ok(settings), None) => {
            // Process 0 decides load-balancing steps.
            let settings = if link.job().process == 0 { with_costs(settings) } else { settings };
            Ok((Arc::new(settings), Some(link)))
        }
        (Ok(_), Some(process)) => {
            let error = RunError::Config(format!("process {process} refuses its flags or files"));
            Err(Refusal { error, speaks, link: Some(link) })
        }
        (Err(error), _) => Err(Refusal { error, speaks, link: Some(link) }),
    }
}

/// The settings with the costs of the run, where load-balancing steps need them and no flag gives them.
fn with_costs(mut settings: Settings) -> Settings {
    if settings.costs.is_none() && settings.needs_costs() {
        let run = |config, program: costs::Program| try_run(config, program).ok().map(|report| report.result);
        settings.costs = costs::of_run(&settings, run);
    }
    settings
}

/// Warns if a launcher has started the program several times, and the processes are not connected.
fn warn_of_copies(config: &Config) {
    let together = process::launched_together();
    if config.program && config.transport == Transport::Threads && together > 1 && process::launched_as() == 0
    {
        process::warn(&format!(
            "{together} processes were started together, and each runs the whole program; add --transport mpi for one run \
             on all of them"
        ));
    }
}

/// Runs the program. Its databases and its trace are written, even if the run fails.
fn attempt<R>(
    config: Config,
    setup: impl Fn(&Setup, Exit<R>) + Sync,
    connect: impl FnOnce(&Config) -> Result<Connection, String>,
) -> Attempt<R>
where
    R: Serialize + DeserializeOwned + Send + 'static,
{
    panics::store_places();
    // Before the first file.
    if config.program {
        process::end_on_signals();
    }
    warn_of_copies(&config);
    let (settings, link) = match settings(&config, connect) {
        Ok(settings) => settings,
        Err(Refusal { error, speaks, link }) => {
            return Attempt { result: Err(error), written: Written::default(), speaks, link };
        }
    };
    let process = link.as_ref().map_or(0, |link| link.job().process);
    let build = |pe: PeCx| Setup::run(pe, |pe| setup(pe, Exit(PhantomData)));
    let (mut outcome, _stop) = transport::run(&settings, &build, link.as_deref());
    let seconds = outcome.seconds;
    let trace = outcome.trace.take();
    let unrecorded = trace.as_ref().map(|trace| recorded::write(&settings, trace)).unwrap_or_default();
    outcome.trace_error = joined(outcome.trace_error, unrecorded);
    let is_recorded = outcome.trace_error.is_none();
    let dropped = trace.as_ref().and_then(|trace| recorded::dropped(&settings, trace));
    let mut written = match process {
        0 => std::mem::take(&mut outcome.dump).finish(&settings, outcome.trace_error.take()),
        _ => Written::default(),
    };
    let error = outcome.error(&settings);
    warn_of_partial(&mut outcome.warnings, dropped.as_deref(), error.is_some() && settings.program);
    if let Some(file) = settings.report.as_ref().filter(|_| process == 0) {
        let report = std::mem::take(&mut outcome.run_report);
        outcome.warnings.extend(report.warning().filter(|_| error.is_none()));
        let record = settings.records.record.as_deref();
        // Not a file of an earlier run, and not a pipe, whose end this process would wait for.
        let record = record.filter(|path| is_recorded && equipoise_model::files::is_read_back(path));
        let trace = trace.or_else(|| record.and_then(|path| Trace::read(path).ok()));
        let took = took(seconds, outcome.machine.as_ref());
        let (end, recording) = ((took, error.as_ref()), (trace.as_ref(), dropped.as_deref()));
        let unwritten = report.write(file, &settings, &outcome.lb_steps, end, recording);
        written.error = joined(written.error, unwritten);
    }
    if let Some(Interleaving::Record(recording)) = &settings.interleaving {
        let unrecorded = recording.finish(outcome.ended_by);
        written.error = joined(written.error, unrecorded);
    }
    let warnings = outcome.warnings(&settings);
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
        checkpoints: outcome.checkpoints,
        checkpoint_error: outcome.checkpoint_error,
        checkpoint_cost: outcome.checkpoint_cost,
        dump_error: None,
        dump_warning: None,
        warnings,
        process: process as usize,
        job: JobReport { hosts: settings.hosts.clone(), traffic: outcome.traffic },
    });
    Attempt { result: report, written, speaks: process == 0, link }
}

/// Adds the warning that a recording is partial. A program whose run failed returns no warnings, but its recording is written, so it
/// warns at once.
fn warn_of_partial(warnings: &mut Vec<String>, dropped: Option<&str>, at_once: bool) {
    let partial = dropped.map(|dropped| format!("the recording is partial: {dropped}"));
    match at_once {
        true => partial.iter().for_each(|warning| process::warn(warning)),
        false => warnings.extend(partial),
    }
}

/// All errors in one sentence.
fn joined(error: Option<String>, others: impl IntoIterator<Item = String>) -> Option<String> {
    error.into_iter().chain(others).reduce(|all, error| format!("{all}; {error}"))
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
    if settings.is_distributed {
        let bytes: Option<&Vec<u8>> = result.downcast_ref();
        let decoded = codec::decode(bytes.map(Vec::as_slice).unwrap_or_default());
        return decoded
            .map(Box::new)
            .map_err(|error| failed(codec::not_decoded("the result of the run", &error)));
    }
    result.downcast().map_err(|_| failed("the result of the run has the wrong type".into()))
}

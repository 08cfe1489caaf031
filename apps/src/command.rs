//! The command line of a sample program, and how its result is shown.

use crate::Format;
use equipoise::{Config, LbStep, MachineReport, Report, ReportForm, Transport};
use serde::Serialize;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::process::ExitCode;

/// A program's own flags, then those of the runtime.
#[derive(Debug, clap::Args)]
pub struct Command<O: clap::Args> {
    #[command(flatten)]
    options: O,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,

    #[command(flatten)]
    config: Config,
}

/// A time in seconds that flags can give. Beside longer ones microseconds and cycles would be lost in rounding.
pub(crate) fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.ok_or("expected seconds, a number from 0 to 1e6 such as 2e-9")
}

/// What a program exits with; displayed as lines of a name and a value each.
pub trait Outcome: Serialize + Display {
    /// How many iterations it took.
    fn iterations(&self) -> u32;
}

/// The one JSON document of a run.
#[derive(Serialize)]
struct Document<'a, O, R> {
    program: &'a str,
    pes: usize,
    transport: &'a str,
    seed: u64,
    options: &'a O,
    #[serde(flatten)]
    result: &'a R,
    seconds: f64,
    seconds_per_iteration: f64,
    executions: u64,
    remote_messages: u64,
    migrations: u64,
    /// What happened on the simulated machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a MachineReport>,
    lb_steps: &'a [LbStep],
}

impl<O: clap::Args + Serialize> Command<O> {
    /// Runs a program and shows its result on stdout; returns what the process should exit with, which
    /// is a failure if the databases it was asked for could not be written.
    ///
    /// # Errors
    /// If stdout cannot be written to.
    pub fn run<R: Outcome>(self, program: &str, solve: fn(Config, &O) -> Report<R>) -> io::Result<ExitCode> {
        let Command { options, format, mut config } = self;
        if format == Format::Json {
            // The steps are part of the document, which is all there is on stdout.
            // A replay in place of the run is such a document itself.
            config.lb_report = config.lb_sim.map(|_| ReportForm::Json);
        }
        let (transport, shown) = (config.transport, config.lb_report.is_some());
        let balances = shown || !config.balancer.is_empty();
        let report = solve(config, &options);
        let seconds_per_iteration = report.seconds / f64::from(report.result.iterations().max(1));
        let transport = match transport {
            Transport::Threads => "threads",
            Transport::Simulated => "simulated",
        };
        let text = match format {
            Format::Text => {
                let mut text =
                    format!("{program} on {} PEs ({transport}), seed {}\n", report.pes, report.seed);
                _ = writeln!(text, "{}", report.result);
                let (seconds, milliseconds) = (report.seconds, seconds_per_iteration * 1e3);
                _ = writeln!(text, "time          {seconds:.3} s, {milliseconds:.3} ms per iteration");
                if let Some(machine) = &report.machine {
                    let each = 1e3 * machine.seconds / f64::from(report.result.iterations().max(1));
                    _ = writeln!(text, "{machine}\niteration     {each:.6} ms in virtual time");
                }
                if balances && report.lb_steps.is_empty() {
                    _ = writeln!(text, "LB steps      0: none took place");
                }
                balancing(&mut text, &report.lb_steps, report.migrations, shown);
                text
            }
            Format::Json => {
                let document = Document {
                    program,
                    pes: report.pes,
                    transport,
                    seed: report.seed,
                    options: &options,
                    result: &report.result,
                    seconds: report.seconds,
                    seconds_per_iteration,
                    executions: report.executions,
                    remote_messages: report.remote_messages,
                    migrations: report.migrations,
                    machine: report.machine.as_ref(),
                    lb_steps: &report.lb_steps,
                };
                serde_json::to_string_pretty(&document)? + "\n"
            }
        };
        io::stdout().write_all(text.as_bytes())?;
        Ok(if report.dump_error.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// Appends what load balancing achieved from before the first step to after the last, and what the two
/// have to say unless every step was `shown` already.
fn balancing(text: &mut String, steps: &[LbStep], migrations: u64, shown: bool) {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return;
    };
    let (before, after) = (first.before.imbalance + 1.0, last.after.imbalance + 1.0);
    _ = writeln!(text, "LB steps      {}, {migrations} elements moved", steps.len());
    _ = writeln!(text, "max/avg load  {before:.3} before the first step, {after:.3} after the last");
    let told = if steps.len() > 1 { vec![first, last] } else { vec![first] };
    for step in told.into_iter().filter(|_| !shown) {
        _ = writeln!(text, "LB step {:<5} {}", step.step, step.sentence());
    }
}

//! The command line of a sample program, and the output of its result.

use clap::ValueEnum;
use equipoise::checkpoint::CheckpointCost;
use equipoise::{Config, JobReport, LbStep, LbSummary, MachineReport, Report, ReportForm};
use equipoise_model::table::count;
use serde::Serialize;
use std::fmt::{Display, Write as _};
use std::process::ExitCode;

use crate::failure::Failure;
use crate::output::{Format, FormatArg, show};

/// A program's own flags, then those of the runtime.
#[derive(Debug, clap::Args)]
pub struct Command<O: clap::Args> {
    #[command(flatten)]
    options: O,

    #[command(flatten)]
    output: FormatArg,

    #[command(flatten)]
    config: Config,
}

/// Parses a time in seconds. Times above 1e6 s are rejected: rounding would lose a cycle added to such a time.
///
/// # Errors
/// If the text is not a number from 0 to 1e6.
pub fn seconds(text: &str) -> Result<f64, &'static str> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=1e6).contains(seconds));
    seconds.ok_or("expected seconds, a number from 0 to 1e6 such as 2e-9")
}

/// The result of a program; displayed as lines of a name and a value each.
pub trait Outcome: Serialize + Display {
    /// The number of iterations.
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
    /// Report of the simulated machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<&'a MachineReport>,
    /// The processes, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a JobReport>,
    /// What checkpoints cost, if the run has saved itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint_cost: Option<Cost>,
    lb_steps: &'a [LbStep],
    /// Summary of all steps, if `lb_steps` does not hold all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    lb_summary: Option<&'a LbSummary>,
}

/// What checkpoints cost, with what follows from it.
#[derive(Serialize)]
struct Cost {
    checkpoints: u64,
    #[serde(flatten)]
    cost: CheckpointCost,
    share: f64,
    failure_seconds: f64,
    best_interval_seconds: Option<f64>,
}

impl Cost {
    fn of<R>(report: &Report<R>) -> Option<Self> {
        report.checkpoint_cost.map(|cost| Cost {
            checkpoints: report.checkpoints,
            cost,
            share: cost.share(),
            failure_seconds: cost.failure_seconds(),
            best_interval_seconds: cost.best_interval_seconds(),
        })
    }
}

impl<O: clap::Args + Serialize> Command<O> {
    /// Runs a program and prints its result on stdout. Returns the exit code of the process: a failure if databases
    /// could not be written.
    ///
    /// # Errors
    /// If the format is CSV, or stdout cannot be written to.
    pub fn run<R: Outcome>(
        self,
        program: &str,
        solve: fn(Config, &O) -> Report<R>,
    ) -> Result<ExitCode, Failure> {
        let Command { options, output: FormatArg { format }, mut config } = self;
        // Before the run, which may take long.
        format.refuse_csv("the result of a program")?;
        if format == Format::Json {
            // The document contains the steps, so they are not printed.
            // A replay (--lb-sim) prints its own document.
            config.lb_report = config.lb_sim.map(|_| ReportForm::Json);
        }
        let (transport, shown) = (config.transport, config.lb_report.is_some());
        let balances = shown || !config.balancer.is_empty();
        let report = solve(config, &options);
        if report.process != 0 {
            // Process 0 prints the result for all.
            return Ok(ExitCode::SUCCESS);
        }
        let seconds_per_iteration = report.seconds / f64::from(report.result.iterations().max(1));
        let transport = transport.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default();
        let text = || {
            let mut text = format!(
                "{program} on {} ({transport}), seed {}\n",
                count(report.pes as u64, "PE"),
                report.seed
            );
            _ = writeln!(text, "{}", report.result);
            let (seconds, milliseconds) = (report.seconds, seconds_per_iteration * 1e3);
            _ = writeln!(text, "time          {seconds:.3} s, {milliseconds:.3} ms per iteration");
            if let Some(job) = job(&report) {
                _ = writeln!(text, "processes     {job}");
            }
            if let Some(machine) = &report.machine {
                let each = 1e3 * machine.seconds / f64::from(report.result.iterations().max(1));
                _ = writeln!(text, "{machine}\niteration     {each:.6} ms in virtual time");
            }
            if let Some(cost) = &report.checkpoint_cost {
                _ = writeln!(text, "checkpoints   {}: {cost}", report.checkpoints);
            }
            if balances && report.lb_steps.is_empty() {
                _ = writeln!(text, "LB steps      0");
            }
            balancing(&mut text, &report, shown);
            text
        };
        let document = Document {
            program,
            pes: report.pes,
            transport: &transport,
            seed: report.seed,
            options: &options,
            result: &report.result,
            seconds: report.seconds,
            seconds_per_iteration,
            executions: report.executions,
            remote_messages: report.remote_messages,
            migrations: report.migrations,
            machine: report.machine.as_ref(),
            job: job(&report),
            checkpoint_cost: Cost::of(&report),
            lb_steps: &report.lb_steps,
            lb_summary: (report.lb_summary.steps > report.lb_steps.len() as u64)
                .then_some(&report.lb_summary),
        };
        show(format, text, &document)?;
        Ok(if report.dump_error.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The processes of a run, if there are several.
fn job<R>(report: &Report<R>) -> Option<&JobReport> {
    (report.job.hosts.len() > 1).then_some(&report.job)
}

/// Appends max/avg load before the first step and after the last one. Also appends the sentences of these two steps,
/// unless all steps are already `shown`.
fn balancing<R>(text: &mut String, report: &Report<R>, shown: bool) {
    let steps = &report.lb_steps;
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return;
    };
    let (before, after) = (first.before.imbalance + 1.0, last.after.imbalance + 1.0);
    _ = writeln!(
        text,
        "LB steps      {}, {}",
        report.lb_summary.steps,
        format_args!("{} moved", count(report.migrations, "element"))
    );
    _ = writeln!(text, "max/avg load  {before:.3} before the first step, {after:.3} after the last");
    let ends = if steps.len() > 1 { vec![first, last] } else { vec![first] };
    for step in ends.into_iter().filter(|_| !shown) {
        _ = writeln!(text, "LB step {:<5} {}", step.step, step.sentence());
    }
}

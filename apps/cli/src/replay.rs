//! `equipoise replay`: compares balancers on recorded load-balancing steps.

use std::path::PathBuf;
use std::time::Instant;

use equipoise_apps::{Failure, Format, FormatArg, output};
use equipoise_model::costs::Costs;
use equipoise_report::Replayed;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::cost::catalogue;
use equipoise_strategies::max_moves::MaxMoves;
use equipoise_strategies::replay::{Replay, Request};
use serde::Serialize;

use crate::arguments::{INPUT, SeedArg};
use crate::constraints::ConstraintArgs;
use crate::paths::Files;
use crate::report::ReportArg;
use crate::{input, progress};

/// The arguments of `equipoise replay`.
#[derive(clap::Args)]
#[command(after_help = columns())]
pub struct Args {
    /// A database written with --lb-dump, or a dump of Charm++
    ///
    /// For several steps of a Charm++ dump, give the name without `.STEP`.
    #[arg(value_name = "DATABASE")]
    database: PathBuf,

    /// A balancer to compare; give the flag once per balancer; `help` lists all [default: all that need no file]
    #[arg(long, value_name = "SPEC", value_parser = input::balancer())]
    balancer: Vec<input::Balancer>,

    /// The machine, as in torus:4x4x4; `help` lists all kinds [default: the recorded machine, else flat]
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: Option<input::Machine>,

    #[command(flatten)]
    output: FormatArg,

    /// Replay on P PEs, with the objects placed in blocks [default: as recorded]
    #[arg(long, value_name = "P", help_heading = INPUT, allow_negative_numbers = true)]
    pes: Option<usize>,

    /// The first step to replay [default: the first recorded step]
    #[arg(long, value_name = "S", help_heading = INPUT, allow_negative_numbers = true)]
    step: Option<u64>,

    /// Number of steps to replay [default: 1 with --step, else all]
    #[arg(long, value_name = "N", help_heading = INPUT, allow_negative_numbers = true)]
    steps: Option<u64>,

    /// The largest number of objects that each balancer may move, as in 100 or 5%; with several, as in 1%,10%,100%, each
    /// balancer has a row for each [default: any number]
    #[arg(long, value_name = "N|P%", value_delimiter = ',', allow_negative_numbers = true)]
    max_moves: Vec<MaxMoves>,

    /// Periods until the next load-balancing step, for the recommendation where the costs of messages are known [default: 1]
    #[arg(long, value_name = "N", value_parser = horizon, allow_negative_numbers = true)]
    horizon: Option<f64>,

    /// What messages and migrations cost, as a JSON document [default: as recorded]
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    cost_model: Option<PathBuf>,

    /// Instead of comparing balancers, compare how well the loads of each step could have been predicted, and what the balancer
    /// makes of the predictions
    #[arg(long)]
    predict: bool,

    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    random: SeedArg,

    #[command(flatten)]
    constraints: ConstraintArgs,
}

fn horizon(text: &str) -> Result<f64, &'static str> {
    let periods = text.parse().ok().filter(|periods| (0.0..=1e12).contains(periods));
    periods.ok_or("expected a number of periods from 0 to 1e12 such as 10")
}

/// A row of CSV: the recorded placement or a strategy, and its costs.
#[derive(Clone, Copy, Serialize)]
struct PlacementRow<'a> {
    step: u64,
    name: &'a str,
    /// The running time of the strategy.
    seconds: Option<f64>,
    /// None if the strategy gave no answer.
    #[serde(flatten)]
    metrics: Option<&'a Metrics>,
    /// None for the recorded placement, and if the strategy gave no answer.
    on_front: Option<bool>,
    /// Why the strategy gave no answer.
    error: Option<&'a str>,
}

/// The rows of a replayed step.
fn rows(replay: &Replay) -> Vec<PlacementRow<'_>> {
    let step = replay.database.step;
    let name = replay.name_before();
    let none = PlacementRow { step, name, seconds: None, metrics: None, on_front: None, error: None };
    let recorded = PlacementRow { metrics: Some(&replay.before), ..none };
    let answers = replay.strategies.iter().map(|row| PlacementRow {
        name: &row.name,
        seconds: Some(row.seconds),
        metrics: Some(&row.after),
        on_front: Some(row.on_front),
        ..none
    });
    let refusals = replay.refusals.iter().map(|refusal| PlacementRow {
        name: &refusal.name,
        error: Some(refusal.error.as_str()),
        ..none
    });
    [recorded].into_iter().chain(answers).chain(refusals).collect()
}

/// The meaning of the table's columns.
fn columns() -> String {
    let front =
        "whether no other strategy is as good in load, hop-bytes and moves, and better in one of them";
    format!("Columns of the table:\n{}{:16}  {front}", catalogue::help_on_columns(), "front")
}

/// Judges the predictors of loads.
fn predict(request: &Request, name: &str, format: Format) -> Result<(), Failure> {
    if request.strategies.len() > 1 {
        return Err(Failure::usage("--predict with more than one --balancer: name one"));
    }
    if request.max_moves.len() > 1 {
        return Err(Failure::usage("--predict with more than one limit in --max-moves: give one"));
    }
    let judged = progress::with_spinner(&format!("predicting {name}"), || request.predictions())?;
    input::warn_ignored(name, &judged.warnings);
    output::show_table(format, || judged.to_string(), &judged, &judged.predictors)
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        Files::default()
            .reads([&self.database].into_iter().chain(&self.cost_model))
            .reads(self.constraints.files())
            .reads(self.topology.iter().flatten().map(|machine| machine.spec()))
            .reads(self.balancer.iter().flatten().map(|choice| &choice.spec))
            .writes(self.report.path())
            .check()?;
        self.report.check()?;
        let name = self.database.display().to_string();
        let what = format!("replaying {name}");
        let file_name = self.database.file_name().unwrap_or_default();
        let title = file_name.to_string_lossy().into_owned();
        let request = Request {
            path: self.database,
            step: self.step,
            steps: self.steps,
            pes: self.pes,
            topology: self.topology.transpose()?,
            strategies: self.balancer.into_iter().collect::<Result<_, _>>()?,
            constraints: self.constraints.read_beside(!self.max_moves.is_empty())?,
            max_moves: self.max_moves,
            seed: self.random.seed,
            horizon: self.horizon,
            costs: self.cost_model.as_deref().map(Costs::read).transpose()?,
        };
        if self.predict {
            if self.report.report.is_some() {
                return Err(Failure::usage(
                    "--report shows placements, which --predict does not compare; leave one of them out",
                ));
            }
            if self.horizon.is_some() {
                return Err(Failure::usage(
                    "--horizon is for recommendations, which --predict does not make; leave one of them out",
                ));
            }
            return predict(&request, &name, self.output.format);
        }
        let begin = Instant::now();
        let mut replayed = Replayed::default();
        let comparison = progress::with_parts(&what, |begins| {
            let is_reported = self.report.report.is_some();
            request.run_and(
                |strategy| {
                    begins(strategy);
                    begin.elapsed()
                },
                |database, machine, replay| {
                    if is_reported {
                        replayed.add(database, machine, replay);
                    }
                },
            )
        })?;
        let asked = (request.choices(), request.seed);
        self.report.write(|| Ok(replayed.data(&title, (&asked.0, asked.1), &comparison)?))?;
        input::warn_ignored(&name, &comparison.warnings);
        let rows: Vec<_> = comparison.replays.iter().flat_map(rows).collect();
        output::show_table(self.output.format, || comparison.to_string(), &comparison, &rows)
    }
}

//! `equipoise map`: maps the tasks of a graph, or the processes of a program, to the PEs of a machine.

use std::path::PathBuf;
use std::time::Instant;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::assignment::{Note, mapping_file};
use equipoise_model::launcher::{self, LauncherFile, Slots};
use equipoise_model::table::{count, seconds};
use equipoise_model::{Assignment, Database, Topology};
use equipoise_report::ReportData;
use equipoise_strategies::constrained::keep;
use equipoise_strategies::cost::catalogue::Placed;
use equipoise_strategies::cost::{Metrics, sentence};
use equipoise_strategies::descriptor::Choice;
use equipoise_strategies::max_moves::MaxMoves;
use equipoise_strategies::strategy::guarded;
use equipoise_strategies::{StrategyError, registry};
use serde::Serialize;

use crate::arguments::{MachineArg, SeedArg, SlotsArg, TaskArgs};
use crate::constraints::{self, ConstraintArgs};
use crate::program::{ModelArgs, Tasks, Times};
use crate::report::{self, ReportArg};
use crate::{cost_table, explain, input, launcher_files, progress};

/// The arguments of `equipoise map`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    tasks: TaskArgs,

    #[command(flatten)]
    machine: MachineArg,

    /// The mapping strategy; `help` lists all [default: PoiseLB; for programs ContentionLB]
    #[arg(long, value_name = "SPEC", value_parser = input::balancer())]
    balancer: Option<input::Balancer>,

    /// Write the mapping to this file: one PE per line, in task order
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArg,

    #[command(flatten)]
    report: ReportArg,

    #[command(flatten)]
    placement: PlacementArgs,

    #[command(flatten)]
    constraints: ConstraintArgs,

    #[command(flatten)]
    launchers: LauncherArgs,

    #[command(flatten)]
    assumed: ModelArgs,
}

/// What the mapping must keep, and where the search starts.
#[derive(clap::Args)]
#[command(next_help_heading = "Placement options")]
struct PlacementArgs {
    /// Allowed imbalance (max/avg load - 1) of strategies that have the parameter `imbalance`
    ///
    /// A strategy whose parameter `imbalance` is set in its SPEC keeps its value.
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    imbalance: Option<f64>,

    /// The placement to start from: one PE per line, in task order [default: the recorded placement; for a graph task i
    /// on PE i, or tasks in blocks if there are more tasks than PEs]
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,

    /// The largest number of tasks that may leave the PE from which the search starts, as in 100 or 5% [default: any number]
    #[arg(long, value_name = "N|P%", allow_negative_numbers = true)]
    max_moves: Option<MaxMoves>,

    #[command(flatten)]
    random: SeedArg,
}

/// The launchers' files to write.
#[derive(clap::Args)]
#[command(next_help_heading = "Launcher options")]
struct LauncherArgs {
    /// Also write a launcher's file, which places ranks (rank i is task i); `help` lists all formats
    #[arg(long, value_name = "FORMAT=FILE", value_parser = launcher_files::parser())]
    launcher: Vec<LauncherFile>,

    #[command(flatten)]
    slots: SlotsArg,

    /// Read the written launchers' files back, and fail if they differ from the mapping
    #[arg(long, requires = "launcher")]
    check: bool,
}

/// The strategy to recommend where the busiest link takes longer.
const OF_LINKS: &str = "McfLB";

/// How much longer the busiest link may take before it is worth a sentence.
const LONGER: f64 = 0.01;

/// The JSON document: the metrics of the mapping, and the running time and notes of the strategy.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    seconds: f64,
    #[serde(flatten)]
    times: Option<&'a Times>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [Note],
    /// By task: its PE; left out in a row.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pe_of: &'a [u32],
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.check_files()?;
        self.report.check()?;
        let topology = self.machine.topology?;
        let machine = &*topology;
        let LauncherArgs { launcher, slots: SlotsArg { slots }, check } = self.launchers;
        let PlacementArgs { imbalance, initial, max_moves, random: SeedArg { seed } } = self.placement;
        let mut tasks = Tasks::of(&self.tasks, machine, self.assumed)?.on(&topology);
        let choice = strategy(self.balancer, &tasks, imbalance, max_moves)?;
        // Moved, not cloned: a database of millions of tasks has hundreds of megabytes.
        let mut database = std::mem::take(&mut tasks.database);
        if slots > 1 && launcher.is_empty() && initial.is_none() {
            return Err(Failure::usage(
                "--slots applies to launchers' files; give one with --launcher or --initial",
            ));
        }
        if let Some(path) = &initial {
            let initial = launcher::placement(path, &database, machine, slots)?;
            database = database.placed(&initial);
        }
        let given = self.constraints.read_beside(max_moves.is_some())?;
        let are_recorded = given.is_empty();
        // Before the strategy, which is not at fault.
        constraints::add(given, &mut database, &tasks.name, machine)?;
        let choice = keep(&choice);
        let what = format!("{} places {}", choice.spec, count(database.objects.len() as u64, "task"));
        let (answer, took) = progress::with_spinner(&what, || {
            assign(&choice, (&tasks, are_recorded), &database, machine, seed)
        })?;
        let slots = Slots::of(machine, slots);
        // Errors of launchers' files are reported before any file is written.
        let texts = launcher_files::LauncherTexts::of(&launcher, &slots, &answer.pe_of)?;
        let mut written = String::new();
        if let Some(path) = &self.output {
            mapping_file::write(path, &answer.pe_of)?;
            written += &format!("{} (mapping)\n", path.display());
        }
        written += &texts.write(check)?;
        let mapped = progress::with_spinner("routing every message", || {
            tasks.placed(&database, machine, &answer.pe_of)
        });
        let times = tasks.times(&topology, &answer.pe_of)?;
        self.report.write(|| reported(&tasks, &database, machine, (&choice, seed), &answer, &mapped))?;
        let text = || {
            let (objects, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (objects, edges) = (count(objects, "task"), count(edges, "edge"));
            let heading = format!("{} on {}: {objects}, {edges}", tasks.name, machine.spec());
            let start = database.placement();
            let start = tasks.placed(&database, machine, &start);
            let table = cost_table::informative_costs(
                &database,
                tasks.unit,
                &[("start", &start), (&choice.spec, &mapped)],
            );
            // A sentence, if there is one, contains the notes.
            let (notes, sentence) = match &answer.sentence {
                Some(sentence) => (String::new(), format!("{sentence}\n")),
                None => (answer.notes.iter().map(|note| format!(", {note}")).collect(), String::new()),
            };
            let times = times.map_or_else(String::new, |times| times.to_string());
            let of_machine = machine.note().map_or_else(String::new, |note| format!("Machine: {note}.\n"));
            let slower = slower_link(&choice.spec, &start, &mapped);
            format!(
                "{heading}\n{of_machine}\n{table}\n{times}{} took {}{notes}\n{sentence}{slower}{written}",
                choice.spec,
                seconds(took)
            )
        };
        let (metrics, times, notes) = (&mapped.metrics, times.as_ref(), answer.notes.as_slice());
        let document = |pe_of| Document { metrics, seconds: took, times, notes, pe_of };
        output::show_table(self.format.format, text, &document(&answer.pe_of), &[document(&[])])
    }

    /// Refuses outputs that would replace an input or another output.
    fn check_files(&self) -> Result<(), Failure> {
        let placement = &self.placement;
        self.tasks
            .files()
            .reads(self.machine.topology.iter().map(|machine| machine.spec()))
            .reads(self.balancer.iter().flatten().map(|choice| &choice.spec))
            .reads(&placement.initial)
            .reads(self.constraints.files())
            .writes(&self.output)
            .writes(self.launchers.launcher.iter().map(|file| &file.path))
            .writes(self.report.path())
            .check()
    }
}

/// The strategy of the flags, or the default for the tasks, within the limits of imbalance and moves.
fn strategy(
    balancer: Option<input::Balancer>,
    tasks: &Tasks,
    imbalance: Option<f64>,
    max_moves: Option<MaxMoves>,
) -> Result<Choice, Failure> {
    let balancer = match balancer {
        Some(choice) => choice?,
        None => registry::parse(if tasks.program.is_some() { "ContentionLB" } else { "PoiseLB" }, &[])?,
    };
    let choice = match imbalance {
        Some(imbalance) => input::allow_imbalance(&balancer, imbalance)?,
        None => balancer,
    };
    Ok(match max_moves {
        Some(most) => most.limit(&choice),
        None => choice,
    })
}

/// A warning if the busiest link takes longer than with the placement where the mapping started, where links have different bandwidths.
fn slower_link(strategy: &str, start: &Placed, mapped: &Placed) -> String {
    match [start, mapped].map(Placed::busiest_link_seconds) {
        [Some(then), Some(now)] if then > 0.0 && now > then * (1.0 + LONGER) => {
            let remedy = match strategy.starts_with(OF_LINKS) {
                true => String::new(),
                false => format!("; --balancer {OF_LINKS} looks at the times of links"),
            };
            format!("The busiest link takes {} instead of {}{remedy}.\n", seconds(now), seconds(then))
        }
        _ => String::new(),
    }
}

/// The report of a mapping, compared with the placement where it started.
fn reported(
    tasks: &Tasks,
    database: &Database,
    machine: &dyn Topology,
    (choice, seed): (&Choice, u64),
    answer: &Assignment,
    mapped: &Placed,
) -> Result<ReportData, Failure> {
    let start = database.placement();
    let (started, metrics) = (tasks.placed(database, machine, &start), &mapped.metrics);
    let then = &started.metrics;
    // Loads of tasks are often equal, so what the strategy says of itself is more important.
    let of_strategy = answer.sentence.iter().cloned();
    let words = of_strategy.chain([explain::summary(&started, mapped), sentence(then, metrics)]).collect();
    let placed = (choice.spec.as_str(), answer.pe_of.as_slice(), metrics);
    let strategy = Some((&*choice.strategy, seed));
    let between = progress::with_spinner("seeking placements with fewer moves", || {
        tasks.between(database, machine, &answer.pe_of, strategy)
    })?;
    Ok(report::of_mapping(tasks, (database, machine), (&start, then), placed, between, words))
}

/// The strategy's valid assignment, and its running time in seconds. `are_recorded`: whether all constraints are those of the file of the tasks.
fn assign(
    choice: &Choice,
    (tasks, are_recorded): (&Tasks, bool),
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> Result<(Assignment, f64), Failure> {
    let (name, begin) = (&choice.spec, Instant::now());
    let answer = guarded(|| match &tasks.program {
        Some((_, model)) => choice.strategy.assign_program(model, database, machine, seed),
        None => choice.strategy.assign(database, machine, seed),
    });
    let took = begin.elapsed().as_secs_f64();
    let answer = answer.map_err(|error| {
        let error = if are_recorded { error.of_recorded(&tasks.name) } else { error };
        Failure::from(error).about(format_args!("{name} gave no answer"))
    })?;
    answer.check(database).map_err(|error| StrategyError::rejected(name, error))?;
    Ok((answer, took))
}

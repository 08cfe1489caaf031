//! `equipoise map`: where the tasks of a graph should go on a machine.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::anyhow;
use equipoise_strategies::assignment::mapping_file;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::launcher::Slots;
use equipoise_strategies::poise::balancer;
use equipoise_strategies::registry::{self, Choice};
use equipoise_strategies::strategy::guarded;
use equipoise_strategies::table::{count, seconds};
use equipoise_strategies::{Assignment, Database, Topology};
use serde::Serialize;

use super::program::{ModelArgs, Tasks, Times};
use super::{input, metrics, output, usage};
use crate::Format;

/// What is mapped, and how.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["graph", "program"]))]
pub struct Args {
    /// The task graph: a generator such as mesh:16x16, or a file (.graph, .mtx, .csv, .grf, .mat, .prof, or a
    /// database); `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::graph())]
    graph: Option<String>,

    /// Instead of a task graph, a program of processes that compute, send and receive: a generator such as
    /// ring:n=16, or a file in the language of the greedy mapper (.tcg); `help` lists all kinds
    #[arg(long, value_name = "SPEC|FILE", value_parser = input::program(), conflicts_with = "step")]
    program: Option<String>,

    #[command(flatten)]
    assumed: ModelArgs,

    /// The step of a database with several [default: the first]
    #[arg(long, value_name = "S")]
    step: Option<u64>,

    /// The machine, as in torus:4x4x4; `help` lists all kinds
    #[arg(long, value_name = "SPEC", value_parser = input::machine())]
    topology: input::Machine,

    /// The strategy that decides; `help` lists them all [default: PoiseLB; for programs ContentionLB]
    #[arg(long, value_name = "SPEC", value_parser = input::balancer())]
    balancer: Option<Choice>,

    /// The allowed imbalance, max/avg - 1, of every strategy that knows one and is given none
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    imbalance: Option<f64>,

    /// Where tasks are now: one PE per line, in task order [default: where they were recorded; those of a graph on a
    /// PE each, one after the other, or in blocks if there are more tasks than PEs]
    #[arg(long, value_name = "FILE")]
    initial: Option<PathBuf>,

    /// Tasks that have their place: lines `task pe`
    #[arg(long, value_name = "FILE")]
    fixed: Option<PathBuf>,

    /// Everything random comes from this
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Where the mapping is written: one PE per line, in task order
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Also write a launcher's file, for tasks that are ranks; `help` lists all formats
    #[arg(long, value_name = "FORMAT=FILE", value_parser = input::launcher())]
    launcher: Vec<input::LauncherFile>,

    /// How many ranks run on a PE, in launchers' files
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    slots: u32,

    /// Read launchers' files back, and fail if they do not say the same
    #[arg(long, requires = "launcher")]
    check: bool,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document: the metrics of the mapping, flat, and the strategy's own time and remarks.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    metrics: &'a Metrics,
    seconds: f64,
    #[serde(flatten)]
    times: Option<Times>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    notes: &'a [(String, f64)],
}

/// The first path that was there before.
fn twice<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Option<&'a PathBuf> {
    let mut seen = BTreeSet::new();
    // What is no file, as /dev/stdout, takes one after the other.
    paths.filter(|path| !path.exists() || path.is_file()).find(|path| !seen.insert(*path))
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let machine = &*self.topology.clone()?;
        let mut tasks =
            Tasks::of(self.graph.as_deref(), self.program.as_deref(), self.step, machine, self.assumed)?
                .on(&self.topology.clone()?);
        let balancer = match &self.balancer {
            Some(choice) => choice.clone(),
            None => registry::parse(if tasks.program.is_some() { "ContentionLB" } else { "PoiseLB" }, &[])?,
        };
        let choice = match self.imbalance {
            Some(imbalance) => input::allow_imbalance(&balancer, imbalance)?,
            None => balancer,
        };
        // Not a copy: that of millions of tasks would be hundreds of megabytes.
        let mut database = std::mem::take(&mut tasks.database);
        if self.slots > 1 && self.launcher.is_empty() && self.initial.is_none() {
            return Err(usage(
                "--slots is about launchers' files; give one with --launcher or --initial".into(),
            ));
        }
        let paths = self.output.iter().chain(self.launcher.iter().map(|file| &file.path));
        if let Some(path) = twice(paths) {
            return Err(usage(format!(
                "two files are to be written to `{}`; give each its own",
                path.display()
            )));
        }
        if let Some(path) = &self.initial {
            let initial = input::placement(path, &database, machine, self.slots)?;
            database = database.placed(&initial);
        }
        if let Some(path) = &self.fixed {
            input::fix(path, &mut database)?;
        }
        let what = format!("{} places {} tasks", choice.spec, database.objects.len());
        let (answer, took) = output::watched(&what, || self.ask(&choice, &tasks, &database, machine))?;
        let slots = Slots::of(machine, self.slots);
        // What cannot be written is told of before anything is.
        let texts = output::LauncherTexts::of(&self.launcher, &slots, &answer.pe_of)?;
        let mut written = String::new();
        if let Some(path) = &self.output {
            mapping_file::write(path, &answer.pe_of)?;
            written += &format!("{} (mapping)\n", path.display());
        }
        written += &texts.write(self.check)?;
        let mapped =
            output::watched("following every message", || tasks.placed(&database, machine, &answer.pe_of));
        let times = tasks.times(&self.topology.clone()?, &answer.pe_of)?;
        let text = || {
            let (objects, edges) = (database.objects.len() as u64, database.edges.len() as u64);
            let (objects, edges) = (count(objects, "task"), count(edges, "edge"));
            let heading = format!("{} on {}: {objects}, {edges}", tasks.name, machine.spec());
            let start = database.placement();
            let start = tasks.placed(&database, machine, &start);
            let table = metrics::telling(&database, &[("start", &start), (&choice.spec, &mapped)]);
            let note = |(name, value): &(String, f64)| match name.strip_suffix("_seconds") {
                Some(name) => format!(", {} {}", name.replace('_', " "), seconds(*value)),
                None => format!(", {name} {value}"),
            };
            let notes: String =
                answer.notes.iter().filter(|note| !balancer::is_said(&note.0)).map(note).collect();
            let told = balancer::sentence(&answer.notes, &mapped.metrics);
            let told = told.map_or_else(String::new, |told| told + "\n");
            let times = times.map_or_else(String::new, |times| times.to_string());
            format!(
                "{heading}\n\n{table}\n{times}{} took {}{notes}\n{told}{written}",
                choice.spec,
                seconds(took)
            )
        };
        let document = Document { metrics: &mapped.metrics, seconds: took, times, notes: &answer.notes };
        output::show(self.format, text, &document)
    }

    /// The strategy's answer, if it is possible, and the seconds it took.
    fn ask(
        &self,
        choice: &Choice,
        tasks: &Tasks,
        database: &Database,
        machine: &dyn Topology,
    ) -> anyhow::Result<(Assignment, f64)> {
        let (name, begin) = (&choice.spec, Instant::now());
        let answer = guarded(|| match &tasks.program {
            Some((_, model)) => choice.strategy.assign_program(model, database, machine, self.seed),
            None => choice.strategy.assign(database, machine, self.seed),
        });
        let took = begin.elapsed().as_secs_f64();
        let answer = answer.map_err(|refused| {
            let sentence = format!("{name} gave no answer: {refused}");
            if refused.is_of_the_request() { usage(sentence) } else { anyhow!(sentence) }
        })?;
        answer.check(database).map_err(|impossible| {
            anyhow!("{name} gave an impossible answer: {impossible}; this is a mistake in the strategy")
        })?;
        Ok((answer, took))
    }
}

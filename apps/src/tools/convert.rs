//! `equipoise convert`: a database or a task graph in another form.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use equipoise_strategies::database::{Dump, End, vt};
use equipoise_strategies::files::{is_read_back, write_whole};
use equipoise_strategies::graph::{self, Graph};
use equipoise_strategies::program;
use equipoise_strategies::program::convert::{Converted, Unconverted};
use equipoise_strategies::table::count;
use equipoise_strategies::trace::Trace;

use super::{input, output, usage};
use crate::command::seconds;

/// What is converted into what.
#[derive(clap::Args)]
pub struct Args {
    /// A database (ours, in binary or JSON, Charm++ dumps, or vt's LB data), a task graph's file, or its spec;
    /// `help` lists all kinds. For a .tcg: what a run wrote with --record, a trace of PICL (.trf), or a program
    #[arg(value_name = "IN", value_parser = input::graph())]
    input: String,

    /// What is written: .json a database in JSON, data.%p.json or data.%p.json.br vt's LB data (a file per rank),
    /// .graph METIS, .mtx Matrix Market, .csv an edge list, .grf Scotch, .mat a square matrix, .prof as of Open
    /// MPI's monitoring, .tcg a program of the greedy mapper, and any other name a database in binary
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// The step of a database with several that becomes a task graph; of a database, all it shall hold
    #[arg(long, value_name = "S")]
    step: Option<u64>,

    /// Seconds of a cycle of a program; a flit is a byte [default: 1e-9; of PICL 1e-6]
    #[arg(long, value_name = "SECONDS", value_parser = cycle)]
    cycle: Option<f64>,

    /// Read back what was written, and fail if it is not the same, in all that its form holds
    #[arg(long)]
    check: bool,
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        if input::is_program(&self.output) {
            return self.write_program();
        }
        if self.cycle.is_some() {
            return Err(usage("--cycle is for programs (.tcg); leave it out".into()));
        }
        let dump = input::steps(&self.input, self.step)?;
        if !input::is_task_graph(&self.input) {
            let unkept = Dump::unkept(&self.input)?;
            if !unkept.is_empty() {
                output::warn(&format!(
                    "`{}` says more, which is not kept: {}",
                    self.input,
                    unkept.join(", ")
                ));
            }
        }
        let written = if graph::is_graph_file(&self.output) {
            write_graph(&self.input, &dump, &self.output, self.check)?
        } else {
            dump.write(&self.output)?;
            if vt::is_pattern(&self.output) && !input::is_generated(&self.input) {
                output::warn(&format!("files of this form do not hold {}", vt::LACKS));
            }
            if self.is_checked() && !dump.reads_back(&self.output)? {
                bail!(
                    "what `{}` reads back as is not what was written; this is a mistake",
                    self.output.display()
                );
            }
            count(dump.steps.len() as u64, "step")
        };
        let checked = if self.is_checked() { ", which reads back the same" } else { "" };
        output::print(&format!("{written} in {}{checked}\n", self.output.display()))
    }

    /// Whether what was written is read back: not from a pipe. (vt's data are a file per rank.)
    fn is_checked(&self) -> bool {
        self.check && (vt::is_pattern(&self.output) || is_read_back(&self.output))
    }

    /// Writes the program that the input is, or was recorded of.
    fn write_program(&self) -> anyhow::Result<()> {
        if self.step.is_some() {
            return Err(usage("--step is for databases, of which no program is made; leave it out".into()));
        }
        let Converted { program, left_out } = self.program()?;
        if left_out > 0 {
            let messages = count(left_out, "message");
            output::warn(&format!(
                "left out: {messages} of which only the sending or only the receiving is recorded, or that a process \
                 sent to itself"
            ));
        }
        let name = self.output.display();
        let text = program.text();
        write_whole(&self.output, text.as_bytes()).map_err(|error| {
            output::refused(&error, format!("cannot write `{name}`: {error}; name a place that is writable"))
        })?;
        // Lines are counted in the text that was read, and need not be those of what is written.
        if self.is_checked() && program::load(&self.output.to_string_lossy())?.text() != text {
            bail!("what `{name}` reads back as is not what was written; this is a mistake");
        }
        let checked = if self.is_checked() { ", which reads back the same" } else { "" };
        let steps = count(program.steps(), "instruction");
        output::print(&format!("a program that executes {steps} in {name}{checked}\n"))
    }

    fn program(&self) -> anyhow::Result<Converted> {
        let path = Path::new(&self.input);
        let has =
            |ending: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending));
        if has("trf") {
            let text = input::text(&format!("the trace `{}`", self.input), path)?;
            return program::convert::picl(&text, self.cycle.unwrap_or(1e-6)).map_err(|it| self.refused(it));
        }
        if has("tcg") || input::is_generated(&self.input) {
            if self.cycle.is_some() {
                let words = format!("--cycle is for traces, and `{}` is a program; leave it out", self.input);
                return Err(usage(words));
            }
            return Ok(Converted { program: program::load(&self.input)?, left_out: 0 });
        }
        let trace = Trace::read(path)?;
        program::convert::trace(&trace, self.cycle.unwrap_or(1e-9)).map_err(|it| self.refused(it))
    }

    fn refused(&self, unconverted: Unconverted) -> anyhow::Error {
        let input = &self.input;
        match unconverted {
            Unconverted::Cycle(reason) => usage(format!("{input}: {reason} (--cycle)")),
            Unconverted::Trace(Some(line), reason) => anyhow!("{input}:{line}: {reason}"),
            Unconverted::Trace(None, reason) => anyhow!("{input}: {reason}"),
        }
    }
}

/// A length of a cycle, in seconds.
fn cycle(text: &str) -> Result<f64, &'static str> {
    seconds(text).ok().filter(|&seconds| seconds > 0.0).ok_or("expected seconds, a number above 0")
}

/// Writes the only step of `dump` as a task graph; returns what was written.
fn write_graph(input: &str, dump: &Dump, path: &Path, check: bool) -> anyhow::Result<String> {
    let [database] = dump.steps.as_slice() else {
        let steps: Vec<String> = dump.steps.iter().map(|database| database.step.to_string()).collect();
        let steps = steps.join(", ");
        let sentence = format!("`{input}` holds steps {steps}; choose the task graph of one with --step");
        return Err(usage(sentence));
    };
    if !database.communication_recorded {
        output::warn("communication was not recorded (--lb-comm on), so no tasks communicate");
    }
    let lacks = graph::write(path, database)?;
    let is_pe = |end| matches!(end, End::Pe(_));
    let of_pes = database.edges.iter().filter(|edge| is_pe(edge.from) || is_pe(edge.to)).count() as u64;
    if of_pes > 0 {
        let end = if of_pes == 1 { "ends" } else { "end" };
        output::warn(&format!("left out: {} that {end} at a PE", count(of_pes, "edge")));
    }
    if !input::is_generated(input) {
        output::warn(&format!("a file of this form does not hold {lacks}"));
    }
    let graph = Graph::of(database);
    if check && is_read_back(path) && !graph::reads_back(path, database)? {
        bail!("what `{}` reads back as is not what was written; this is a mistake", path.display());
    }
    let (tasks, pairs) = (graph.vertices() as u64, graph.edges() as u64);
    let communicate = if pairs == 1 { "communicates" } else { "communicate" };
    Ok(format!("{} and {} that {communicate}", count(tasks, "task"), count(pairs, "pair")))
}

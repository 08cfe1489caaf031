//! `equipoise convert`: writes a database, a task graph or a program in another format; verifies checkpoints.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use equipoise::checkpoint::Checkpoint;
use equipoise_apps::{Failure, output, seconds};
use equipoise_model::database::{Dump, End, binary, json, vt};
use equipoise_model::fault::Classified as _;
use equipoise_model::files::{is_read_back, write_whole};
use equipoise_model::graph::{self, Graph};
use equipoise_model::table::{bytes, count};
use equipoise_network::program;
use equipoise_network::program::convert::{ConvertError, Converted};
use equipoise_network::trace::Trace;

use crate::paths::Files;
use crate::{input, perfetto, progress};

/// The arguments of `equipoise convert`.
#[derive(clap::Args)]
pub struct Args {
    /// The input: a database (binary, JSON, a Charm++ dump, or LB data of vt), or a task graph (a file or a spec);
    /// `help` lists all kinds. For OUT in .tcg: a file of --record, a PICL trace (.trf), or a program. For OUT in .pftrace: a file of
    /// --record
    #[arg(value_name = "IN", value_parser = input::graph())]
    input: String,

    #[arg(value_name = "OUT", required_unless_present = "check", help = format!(
        "The file to write; its extension chooses the format. Databases: .json JSON, data.%p.json or data.%p.json.br \
         LB data of vt (one file per rank), .db or no extension binary. Task graphs: {}. Programs: .tcg. Timelines for Perfetto: .pftrace",
        graph::formats().map(|(extension, kind)| format!(".{extension} {kind}")).collect::<Vec<_>>().join(", "),
    ))]
    output: Option<PathBuf>,

    /// Convert only this step of the database [default: all; a task graph needs one]
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    step: Option<u64>,

    /// Length of a cycle in a .tcg, in seconds; a flit is 1 byte [default: 1e-9; for PICL traces 1e-6]
    #[arg(long, value_name = "SECONDS", value_parser = cycle, allow_negative_numbers = true)]
    cycle: Option<f64>,

    #[arg(long, value_name = "N", allow_negative_numbers = true, help = format!(
        "Write this older version of the format: 1 to {} for binary databases, 1 to {} for JSON [default: the newest]",
        binary::VERSION,
        json::VERSION,
    ))]
    to_version: Option<u32>,

    /// Read the written file back, and fail if its content differs from what was written. Without OUT: verify all files of the
    /// checkpoint IN, the folder of --checkpoint or one checkpoint in it
    #[arg(long)]
    check: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.output.is_none() {
            return self.check_checkpoint();
        }
        Files::default().reads([&self.input]).writes(&self.output).check()?;
        let (is_program, is_graph) = (input::is_program(self.output()), graph::is_graph_file(self.output()));
        if let Some(version) = self.to_version.filter(|_| is_program || is_graph) {
            return Err(Failure::usage(format!(
                "--to-version {version} applies only when OUT is a database; leave out --to-version"
            )));
        }
        if is_program {
            return self.write_program();
        }
        if perfetto::is_timeline(self.output()) {
            return self.write_timeline();
        }
        if self.cycle.is_some() {
            return Err(Failure::usage(
                "--cycle applies only when OUT is a program (.tcg); leave out --cycle",
            ));
        }
        if !is_graph {
            // Before the input is read, which may take long.
            self.check_extension()?;
            self.to_version.map_or(Ok(()), |version| Dump::can_write_version(self.output(), version))?;
        }
        let dump = input::steps(&self.input, self.step)?;
        if !input::is_task_graph(&self.input) {
            let dropped_fields = Dump::dropped_fields(&self.input)?;
            if !dropped_fields.is_empty() {
                let fields = dropped_fields.join(", ");
                equipoise::warn(&format!("fields of `{}` that are not converted: {fields}", self.input));
            }
        }
        let left_out = dump.left_out(self.output(), self.to_version, is_graph);
        let written = if is_graph {
            write_graph(&self.input, &dump, self.output(), self.check)?
        } else {
            match self.to_version {
                None => dump.write(self.output())?,
                Some(version) => dump.write_version(self.output(), version)?,
            }
            if vt::is_pattern(self.output()) && !input::is_generated(&self.input) {
                equipoise::warn(&format!("LB data of vt cannot represent {}", vt::LACKS));
            }
            if self.is_checked() && !dump.reads_back(self.output())? {
                return Err(output::verification_failed(self.output()));
            }
            count(dump.steps.len() as u64, "step")
        };
        if !left_out.is_empty() {
            let what = left_out.join(" and ");
            equipoise::warn(&format!("left out: {what}, which this format or version does not have"));
        }
        let checked = match (self.is_checked(), left_out.is_empty()) {
            (false, _) => "",
            (true, true) => ", which reads back the same",
            (true, false) => ", which reads back the same but for what was left out",
        };
        output::print(&format!("{written} in {}{checked}\n", self.output().display()))
    }

    /// The file to write. `run` has returned before if there is none.
    fn output(&self) -> &Path {
        self.output.as_deref().unwrap_or(Path::new(""))
    }

    /// Verifies the files of a checkpoint.
    fn check_checkpoint(&self) -> Result<(), Failure> {
        let path = Path::new(&self.input);
        if !path.is_dir() {
            return Err(Failure::usage(format!(
                "--check without OUT verifies checkpoints, and `{}` is not a folder; name the file to write, or the folder of \
                 a checkpoint",
                self.input
            )));
        }
        let checkpoint = Checkpoint::open(path).map_err(Failure::input)?;
        progress::with_spinner("reading the checkpoint", || checkpoint.check()).map_err(Failure::input)?;
        let (folder, all) = (checkpoint.folder().display(), bytes(checkpoint.bytes()));
        output::print(&format!(
            "{folder} is whole: {all} in {}\n",
            count(u64::from(checkpoint.processes()), "file")
        ))
    }

    /// Refuses an extension that names no format: a mistyped one would give a binary database.
    fn check_extension(&self) -> Result<(), Failure> {
        let extension = self.output().extension().and_then(OsStr::to_str).unwrap_or_default();
        let is_step = extension.bytes().all(|byte| byte.is_ascii_digit());
        if vt::is_pattern(self.output()) || is_step || ["db", "json", "bin", "dat"].contains(&extension) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "`{}`: no format has the extension .{extension}; use .db for a binary database, .pftrace for the timeline of a \
             trace, and for other formats an extension listed by `equipoise convert --help`",
            self.output().display()
        )))
    }

    /// Whether the output is read back. Pipes are not. LB data of vt are read back although their path is a pattern,
    /// with one file per rank.
    fn is_checked(&self) -> bool {
        self.check && (vt::is_pattern(self.output()) || is_read_back(self.output()))
    }

    /// Writes the program in the input, or the program that a trace recorded.
    fn write_program(&self) -> Result<(), Failure> {
        if self.step.is_some() {
            return Err(Failure::usage(
                "--step applies to databases, not to programs (.tcg); leave out --step",
            ));
        }
        let Converted { program, left_out } = self.program()?;
        if left_out > 0 {
            let messages = count(left_out, "message");
            equipoise::warn(&format!(
                "left out: {messages} without a recorded send or receive, or from a process to itself"
            ));
        }
        let name = self.output().display();
        let text = program.text();
        write_whole(self.output(), text.as_bytes()).map_err(|error| {
            Failure::Of(error.fault(), format!("cannot write `{name}`: {error}; choose a writable path"))
        })?;
        // The texts are compared: a program also holds its line numbers, which may differ.
        if self.is_checked() && program::load(&self.output().to_string_lossy())?.text() != text {
            return Err(output::verification_failed(self.output()));
        }
        let checked = if self.is_checked() { ", which reads back the same" } else { "" };
        let steps = count(program.steps(), "instruction");
        output::print(&format!("a program that executes {steps} in {name}{checked}\n"))
    }

    /// Writes the timeline of a recorded run.
    fn write_timeline(&self) -> Result<(), Failure> {
        let given = [
            ("--step", self.step.is_some()),
            ("--cycle", self.cycle.is_some()),
            ("--to-version", self.to_version.is_some()),
            ("--check", self.check),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::usage(format!(
                "{flag} does not apply when OUT is a timeline (.pftrace); leave out {flag}"
            )));
        }
        let trace = Trace::read(Path::new(&self.input))?;
        input::warn_ignored(&self.input, &trace.warnings);
        perfetto::write_recorded(self.output(), &self.input, &trace)?;
        let executions = count(trace.executions.len() as u64, "execution");
        output::print(&format!("{executions} in {}\n", self.output().display()))
    }

    fn program(&self) -> Result<Converted, Failure> {
        let path = Path::new(&self.input);
        let has =
            |ending: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(ending));
        if has("trf") {
            let text = input::text(&format!("the trace `{}`", self.input), path)?;
            return program::convert::picl(&text, self.cycle.unwrap_or(1e-6))
                .map_err(|error| self.failure(error));
        }
        if has("tcg") || input::is_generated(&self.input) {
            if self.cycle.is_some() {
                return Err(Failure::usage(format!(
                    "--cycle applies to traces, and `{}` is a program; leave out --cycle",
                    self.input
                )));
            }
            return Ok(Converted { program: program::load(&self.input)?, left_out: 0 });
        }
        let trace = Trace::read(path)?;
        input::warn_ignored(&self.input, &trace.warnings);
        program::convert::trace(&trace, self.cycle.unwrap_or(1e-9)).map_err(|error| self.failure(error))
    }

    fn failure(&self, error: ConvertError) -> Failure {
        let input = &self.input;
        match error {
            ConvertError::Cycle(reason) => Failure::usage(format!("{input}: {reason} (--cycle)")),
            ConvertError::Trace(Some(line), reason) => Failure::input(format!("{input}:{line}: {reason}")),
            ConvertError::Trace(None, reason) => Failure::input(format!("{input}: {reason}")),
        }
    }
}

/// Parses the length of a cycle, in seconds.
fn cycle(text: &str) -> Result<f64, &'static str> {
    seconds(text).ok().filter(|&seconds| seconds > 0.0).ok_or("expected a number of seconds above 0")
}

/// Writes the only step of `dump` as a task graph; returns a summary such as `4 tasks and 3 pairs that communicate`.
fn write_graph(input: &str, dump: &Dump, path: &Path, check: bool) -> Result<String, Failure> {
    let [database] = dump.steps.as_slice() else {
        let steps: Vec<String> = dump.steps.iter().map(|database| database.step.to_string()).collect();
        let steps = steps.join(", ");
        let sentence = format!("`{input}` holds steps {steps}; choose one for the task graph with --step S");
        return Err(Failure::usage(sentence));
    };
    if database.objects.is_empty() {
        return Err(Failure::input(format!(
            "`{input}` has no object, and a task graph has at least one task; convert a step with objects, or write a database (.db or .json)"
        )));
    }
    if !database.communication_recorded {
        equipoise::warn(
            "the task graph has no edges: communication was not recorded (record with --lb-comm on)",
        );
    }
    let lacks = graph::write(path, database)?;
    let is_pe = |end| matches!(end, End::Pe(_));
    let of_pes = database.edges.iter().filter(|edge| is_pe(edge.from) || is_pe(edge.to)).count() as u64;
    if of_pes > 0 {
        let end = if of_pes == 1 { "ends" } else { "end" };
        equipoise::warn(&format!("left out: {} that {end} at a PE", count(of_pes, "edge")));
    }
    if !input::is_generated(input) {
        equipoise::warn(&format!("this format cannot represent {lacks}"));
    }
    let graph = Graph::of(database);
    if check && is_read_back(path) && !graph::reads_back(path, database)? {
        return Err(output::verification_failed(path));
    }
    let (tasks, pairs) = (graph.vertices() as u64, graph.edges() as u64);
    let communicate = if pairs == 1 { "communicates" } else { "communicate" };
    Ok(format!("{} and {} that {communicate}", count(tasks, "task"), count(pairs, "pair")))
}

//! What the subcommands read: graphs for a machine, mappings, balancers, figures.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use clap::builder::{StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use equipoise_strategies::assignment::MappingFile;
use equipoise_strategies::cost::named::{self, Named};
use equipoise_strategies::database::Dump;
use equipoise_strategies::files::{self, Unread};
use equipoise_strategies::launcher::Slots;
use equipoise_strategies::network::{self, Model};
use equipoise_strategies::registry::{self, Choice};
use equipoise_strategies::topology::{self, TopologyError};
use equipoise_strategies::{Database, Topology, graph, launcher, program};

use super::reproduce::{self, Figure};
use super::{output, usage};

/// Understands a value, or shows what there is to choose from when the value is `help`.
#[derive(Clone)]
pub(super) struct OrHelp<P> {
    parser: P,
    help: fn() -> String,
}

/// The parser of a task graph; it is loaded later, because its file may be broken.
pub(super) fn graph() -> impl TypedValueParser<Value = String> {
    OrHelp { parser: StringValueParser::new(), help: graph::help }
}

/// Whether a file of that name holds a program.
pub(super) fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("tcg"))
}

/// The parser of a program; it is loaded later, because its file may be broken.
pub(super) fn program() -> impl TypedValueParser<Value = String> {
    OrHelp { parser: StringValueParser::new(), help: program::help }
}

/// A machine, or what is wrong with the content of a file that its spec names.
pub(super) type Machine = Result<Arc<dyn Topology>, TopologyError>;

/// The parser of a machine. It refuses what another command line can mend; a broken file is no matter of
/// the command line, and is told of later.
pub(super) fn machine() -> impl TypedValueParser<Value = Machine> {
    let parser = |spec: &str| match topology::parse(spec) {
        Err(error) if error.is_of_the_request() => Err(error),
        machine => Ok(machine),
    };
    OrHelp { parser, help: topology::help }
}

/// The parser of a cost.
pub(super) fn cost() -> impl TypedValueParser<Value = &'static Named> {
    OrHelp { parser: named::parse, help: named::help }
}

/// The parser of a balancer.
pub(super) fn balancer() -> impl TypedValueParser<Value = Choice> {
    OrHelp { parser: |spec: &str| registry::parse(spec, &[]), help: registry::help }
}

/// A network and how it was asked for.
#[derive(Clone)]
pub(super) struct Chosen {
    pub(super) spec: String,
    pub(super) model: Arc<dyn Model>,
}

/// The parser of a network.
pub(super) fn network() -> impl TypedValueParser<Value = Chosen> {
    let parser = |spec: &str| {
        network::parse(spec).map(|model| Chosen { spec: spec.to_string(), model: Arc::from(model) })
    };
    OrHelp { parser, help: network::help }
}

/// A launcher's file and its format.
#[derive(Clone)]
pub(super) struct LauncherFile {
    pub(super) format: &'static launcher::Format,
    pub(super) path: PathBuf,
}

/// The parser of a launcher's file, `FORMAT=FILE`.
pub(super) fn launcher() -> impl TypedValueParser<Value = LauncherFile> {
    let parser = |text: &str| {
        let (format, path) = text
            .split_once('=')
            .filter(|(_, path)| !path.is_empty())
            .ok_or_else(|| format!("expected FORMAT=FILE such as mpich=MPICH_RANK_ORDER, found `{text}`"))?;
        let format = launcher::format(format).map_err(|error| error.to_string())?;
        Ok::<_, String>(LauncherFile { format, path: path.into() })
    };
    OrHelp { parser, help: launcher::help }
}

/// The parser of a figure of a paper.
pub(super) fn figure() -> impl TypedValueParser<Value = &'static Figure> {
    OrHelp { parser: reproduce::parse, help: reproduce::help }
}

impl<P: TypedValueParser> TypedValueParser for OrHelp<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        if value == "help" {
            let shown = Command::new("help").override_help((self.help)());
            shown.try_get_matches_from(["help", "--help"])?;
        }
        self.parser.parse_ref(command, arg, value)
    }
}

/// The task graph of a spec or file, on the PEs of `machine`.
///
/// A database of as many PEs stays as it was recorded. Tasks of a graph are on a PE each, one after the other, as
/// launchers place ranks, if there are enough; anything else is spread over the machine in blocks. Of a database
/// with several steps it is `step`, or the first, which a person is told.
pub(super) fn graph_on(spec: &str, step: Option<u64>, machine: &dyn Topology) -> anyhow::Result<Database> {
    let mut steps = steps(spec, step)?.steps;
    // There is at least one.
    let database = steps.swap_remove(0);
    if !steps.is_empty() {
        let (all, first) = (steps.len() + 1, database.step);
        output::warn(&format!(
            "`{spec}` holds {all} steps; this is step {first}, and --step chooses another"
        ));
    }
    let tasks = database.objects.len();
    // No machine has more PEs than fit.
    let database = database.remap(machine.pes() as u32);
    if is_task_graph(spec) && tasks <= machine.pes() {
        return Ok(database.placed(&(0..tasks as u32).collect::<Vec<_>>()));
    }
    Ok(database)
}

/// Whether what could be loaded is a task graph and no database.
pub(super) fn is_task_graph(spec: &str) -> bool {
    graph::is_graph_file(Path::new(spec)) || is_generated(spec)
}

/// The steps of a database, or the one of a task graph; with `step`, only that one.
pub(super) fn steps(spec: &str, step: Option<u64>) -> anyhow::Result<Dump> {
    let Some(step) = step else { return Ok(graph::load_steps(spec)?) };
    if is_task_graph(spec) {
        return Err(usage(format!("--step {step}: the task graph `{spec}` has no steps; leave it out")));
    }
    Ok(Dump::read_steps(spec, Some(step), Some(1))?)
}

/// Whether a task graph that could be loaded is made by a formula.
pub(super) fn is_generated(spec: &str) -> bool {
    spec.contains(':') && !Path::new(spec).exists()
}

/// The mapping in a file: the PE of every object of `database`, in order.
pub(super) fn mapping(path: &Path, database: &Database) -> anyhow::Result<Vec<u32>> {
    Ok(MappingFile::read(path)?.placement(database)?.to_vec())
}

/// Where the tasks of `database` are on `machine`: as a mapping says, or as `FORMAT=FILE` a launcher's file of as many
/// ranks, of which so many run on a PE (more, where all would not have a place otherwise).
pub(super) fn placement(
    file: &Path,
    database: &Database,
    machine: &dyn Topology,
    slots: u32,
) -> anyhow::Result<Vec<u32>> {
    let format = |(format, path): (&str, _)| Some((launcher::format(format).ok()?, path));
    let written = file.to_str().and_then(|text| text.split_once('=')).and_then(format);
    // A file may be called so.
    let Some((format, path)) = written.filter(|_| !file.exists()) else { return mapping(file, database) };
    let tasks = database.objects.len();
    let per_pe = u32::try_from(tasks.div_ceil(machine.pes())).unwrap_or(u32::MAX).max(slots);
    let pe_of = launcher::read(Path::new(path), format, &Slots::of(machine, per_pe))?;
    if pe_of.len() != tasks {
        bail!("the launcher's file `{path}` places {} ranks, and there are {tasks} tasks", pe_of.len());
    }
    Ok(pe_of)
}

/// The mapping in a file: the PE of each of so many objects on a machine with so many PEs.
pub(super) fn places(path: &Path, objects: usize, pes: usize) -> anyhow::Result<Vec<u32>> {
    Ok(MappingFile::read(path)?.of(objects, pes)?.to_vec())
}

/// Puts the tasks of the lines `task pe` of a file where these say, for good.
pub(super) fn fix(path: &Path, database: &mut Database) -> anyhow::Result<()> {
    let list = format!("the list of fixed tasks `{}`", path.display());
    fix_lines(&text(&list, path)?, database).context(list)
}

/// The text of the file at `path`, which is `what` as a person calls it.
pub(super) fn text(what: &str, path: &Path) -> anyhow::Result<String> {
    files::text(path).map_err(|unread| match unread {
        Unread::System(_) => usage(format!("cannot read {what}: {unread}")),
        Unread::NotText(_) => anyhow!("{what}: {unread}"),
    })
}

fn fix_lines(text: &str, database: &mut Database) -> anyhow::Result<()> {
    let (objects, pes) = (database.objects.len(), database.pes.len());
    let mut fixed_at = vec![None; objects];
    for (number, line) in text.lines().enumerate() {
        let (number, line) = (number + 1, line.trim());
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let numbers: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
        let Some(&[task, pe]) = numbers.as_deref() else {
            bail!("line {number}: expected `task pe`, found `{line}`");
        };
        let Some(object) = database.objects.get_mut(task) else {
            bail!("line {number}: there is no task {task}; the graph has {objects}, counted from 0");
        };
        if pe >= pes {
            bail!("line {number}: there is no PE {pe}; the machine has PEs 0 to {}", pes - 1);
        }
        if let Some(earlier) = fixed_at[task].replace(number) {
            bail!("line {number}: task {task} is fixed by line {earlier} already; keep one of them");
        }
        (object.pe, object.migratable) = (pe as u32, false);
    }
    Ok(())
}

/// The balancer in which every strategy that knows an allowed imbalance, and was given none, has
/// `imbalance`.
pub(super) fn allow_imbalance(choice: &Choice, imbalance: f64) -> anyhow::Result<Choice> {
    let spec = with_imbalance(&choice.spec, imbalance);
    let Some(spec) = spec else {
        let spec = &choice.spec;
        return Err(usage(format!("--imbalance {imbalance}: {spec} has no allowed imbalance; leave it out")));
    };
    registry::parse(&spec, &[]).with_context(|| format!("--imbalance {imbalance}"))
}

/// The spec with the allowed imbalance, if there is a strategy in it that knows one.
fn with_imbalance(spec: &str, imbalance: f64) -> Option<String> {
    let mut takes_it = false;
    let stage = |stage: &str| {
        let (name, params) = stage.split_once(':').unwrap_or((stage, ""));
        let is_named =
            |named: &&&registry::Named| named.name == name.trim() || named.aliases.contains(&name.trim());
        let named = registry::ALL.iter().find(is_named);
        if !named.is_some_and(|named| named.params.iter().any(|param| param.key == "imbalance")) {
            return stage.to_string();
        }
        takes_it = true;
        match params {
            "" => format!("{name}:imbalance={imbalance}"),
            given if given.split(',').any(|pair| pair.starts_with("imbalance=")) => stage.to_string(),
            given => format!("{name}:{given},imbalance={imbalance}"),
        }
    };
    let spec: Vec<String> = spec.split('+').map(stage).collect();
    takes_it.then(|| spec.join("+"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_imbalance_goes_to_every_strategy_that_knows_one() {
        for (spec, expected) in [
            ("RefineLB", "RefineLB:imbalance=0.1"),
            ("GreedyLB+RefineLB", "GreedyLB+RefineLB:imbalance=0.1"),
            ("RefineLB:imbalance=0.3+RefineLB", "RefineLB:imbalance=0.3+RefineLB:imbalance=0.1"),
            ("TopoLB:groups=greedy", "TopoLB:groups=greedy,imbalance=0.1"),
        ] {
            let choice = registry::parse(spec, &[]).expect(spec);
            assert_eq!(allow_imbalance(&choice, 0.1).expect(spec).spec, expected);
        }
    }

    #[test]
    fn an_allowed_imbalance_that_nobody_can_use_is_refused() {
        let check = |spec, imbalance, expected: &str| {
            let choice = registry::parse(spec, &[]).expect(spec);
            let error = format!("{:#}", allow_imbalance(&choice, imbalance).expect_err(expected));
            assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
        };
        check("GreedyLB", 0.1, "--imbalance 0.1: GreedyLB has no allowed imbalance");
        check("RefineLB", -1.0, "--imbalance -1: RefineLB:imbalance=-1 is not understood");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut database = graph::load("ring:4").expect("a ring").remap(2);
        let error = fix_lines(text, &mut database).expect_err(expected).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn what_is_wrong_with_a_list_of_fixed_tasks_is_said_with_its_line() {
        check("0 1\nx 1", "line 2: expected `task pe`, found `x 1`");
        check("# none\n\n1 1 1", "line 3: expected `task pe`");
        check("4 0", "line 1: there is no task 4; the graph has 4, counted from 0");
        check("0 2", "line 1: there is no PE 2; the machine has PEs 0 to 1");
        check("0 1\n1 1\n0 0", "line 3: task 0 is fixed by line 1 already");
    }

    #[test]
    fn fixed_tasks_are_where_the_list_says_for_good() {
        let mut database = graph::load("ring:4").expect("a ring").remap(2);
        fix_lines("# task pe\n3 0\n 0\t1 \n", &mut database).expect("a list");
        assert_eq!(database.placement(), [1, 0, 1, 0]);
        let fixed: Vec<bool> = database.objects.iter().map(|object| !object.migratable).collect();
        assert_eq!(fixed, [true, false, false, true]);
    }
}

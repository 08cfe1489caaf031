//! `equipoise experts`: places replicas of the experts of a model, or judges a plan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use equipoise_apps::{Failure, FormatArg, output};
use equipoise_model::fault::Classified as _;
use equipoise_model::files::write_whole;
use equipoise_model::numbers::Numbers;
use equipoise_model::params::parse_bytes;
use equipoise_model::quote::shown;
use equipoise_model::replica_plan::ReplicaPlan;
use equipoise_model::table::{aligned, bytes, count, csv, percent};
use equipoise_model::{Topology, topology};
use equipoise_strategies::StrategyError;
use equipoise_strategies::replicas::{
    LayerCosts, Request, Transfer, check_machine, evaluate, other_machine, place, published, transfers,
};
use serde::Serialize;

use crate::input;
use crate::paths::Files;
use crate::progress;

/// The arguments of `equipoise experts`.
#[derive(clap::Args)]
pub struct Args {
    /// The load of every expert: a row per layer, a column per expert; .npy, .json (a list of rows), or text such as .csv
    #[arg(long, value_name = "FILE")]
    loads: PathBuf,

    /// The slots of all PEs in each layer, a multiple of the PEs
    #[arg(long, value_name = "N", required_unless_present = "evaluate", value_parser = slots, allow_negative_numbers = true)]
    replicas: Option<usize>,

    /// The machine, as in flat:4*flat:8; `help` lists all kinds [default with --evaluate: that of the plan]
    #[arg(long, value_name = "SPEC", value_parser = input::machine(), required_unless_present = "evaluate")]
    topology: Option<input::Machine>,

    /// Write the plan to this file (JSON)
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write the plan to this file as the flag --init-expert-location of SGLang reads it (JSON)
    #[arg(long, value_name = "FILE")]
    sglang: Option<PathBuf>,

    /// With --previous, write the replicas to copy to this file (CSV): layer, expert, from PE, to PE
    #[arg(long, value_name = "FILE", requires = "previous")]
    transfers: Option<PathBuf>,

    /// The plan in use: few replicas move away from it
    #[arg(long, value_name = "FILE")]
    previous: Option<PathBuf>,

    /// Judge this plan and place nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["replicas", "output", "sglang", "transfers", "gamma", "tolerance"])]
    evaluate: Option<PathBuf>,

    #[command(flatten)]
    placement: PlacementArgs,

    #[command(flatten)]
    format: FormatArg,
}

/// What the plan must keep, and what it costs.
#[derive(clap::Args)]
#[command(next_help_heading = "Placement options")]
struct PlacementArgs {
    /// Number of groups of experts with consecutive numbers. If the nodes divide it, all replicas of a group are on one node
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true)]
    expert_groups: usize,

    /// The tokens from every node to every expert: a row per node, for all layers or for each layer; formats as for --loads
    #[arg(long, value_name = "FILE")]
    sources: Option<PathBuf>,

    /// With --previous, the bytes of a replica, as in 44040192 or 42M, for the bytes moved [default: 42M, an expert of DeepSeek-V3 with
    /// 8-bit weights]
    #[arg(long, value_name = "BYTES", default_value = "42M", hide_default_value = true, value_parser = parse_bytes,
          allow_negative_numbers = true, requires = "previous")]
    expert_bytes: u64,

    /// With --previous and --sources, the cost of moving all replicas, relative to the cost of messages to random places
    #[arg(long, value_name = "X", default_value_t = Request::GAMMA, value_parser = not_negative,
          allow_negative_numbers = true, requires_all = ["previous", "sources"])]
    gamma: f64,

    /// With --previous, the allowed excess of the largest load over that of a plan that EPLB makes anew
    #[arg(long, value_name = "X", default_value_t = Request::TOLERANCE, value_parser = not_negative,
          allow_negative_numbers = true, requires = "previous")]
    tolerance: f64,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document<'a> {
    topology: String,
    experts: usize,
    replicas: usize,
    summary: Summary,
    /// The plan in use with the loads of the request, if the request has its slots and PEs.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_use: Option<Summary>,
    /// The plan that is made without the plan in use, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    anew: Option<Summary>,
    /// EPLB's plan made anew for the same loads.
    eplb: Summary,
    layers: &'a [LayerCosts],
    eplb_layers: &'a [LayerCosts],
}

/// A row of the CSV: the costs of a layer, and those of EPLB's plan.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    costs: &'a LayerCosts,
    eplb_max_load: f64,
    eplb_max_over_average: f64,
    eplb_pes_with_repeated_expert: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    eplb_groups_on_several_nodes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eplb_moves: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eplb_bytes_moved: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eplb_cross_node_tokens: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eplb_token_hops: Option<f64>,
}

/// The costs of all layers.
#[derive(Serialize)]
struct Summary {
    mean_max_over_average: f64,
    worst_max_over_average: f64,
    pes_with_repeated_expert: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups_on_several_nodes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    moves: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_moved: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cross_node_tokens: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_hops: Option<f64>,
}

/// The parser of a number of slots.
fn slots(text: &str) -> Result<usize, String> {
    let slots = text.parse().ok().filter(|slots| *slots > 0);
    slots.ok_or_else(|| "expected a number of slots of at least 1, a multiple of the PEs".into())
}

/// The parser of numbers that are finite and not negative.
fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative, such as 0.1".into())
}

impl Args {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        self.check_files()?;
        let PlacementArgs { expert_groups, expert_bytes, gamma, tolerance, .. } = self.placement;
        let loads = Numbers::read(&self.loads)?;
        let sources = self.placement.sources.as_deref().map(Numbers::read_by_layer).transpose()?;
        let (sources, rows_of_layer) =
            sources.map_or((None, None), |(rows, of_layer)| (Some(rows), of_layer));
        let previous = self.previous.as_deref().map(ReplicaPlan::read).transpose()?;
        let judged = self.evaluate.as_deref().map(ReplicaPlan::read).transpose()?;
        let machine = &*self.machine(judged.as_ref())?;
        let slots = judged.as_ref().map(ReplicaPlan::slots_per_layer).or(self.replicas).unwrap_or_default();
        let request = Request {
            groups: expert_groups,
            previous: previous.as_ref(),
            sources: sources.as_ref(),
            gamma,
            tolerance,
            ..Request::new(&loads, slots)
        };
        let named = |path: &Option<PathBuf>, checked: Result<(), String>| {
            let file = path.as_deref().unwrap_or(&self.loads).display();
            checked.map_err(|reason| Failure::input(format!("`{file}`: {reason}")))
        };
        let fits = |plan: &Option<ReplicaPlan>| plan.as_ref().map_or(Ok(()), |plan| request.check_plan(plan));
        named(&self.evaluate, judged.as_ref().map_or(Ok(()), |plan| check_machine(plan, machine)))?;
        // Without files, so that an error of a file names it.
        let numbers = Request { previous: None, sources: None, ..request }.check(machine);
        match judged {
            Some(_) => named(&self.evaluate, numbers.map_err(|error| error.to_string()))?,
            None => numbers?,
        }
        named(&self.previous, request.check_previous(machine))?;
        named(&self.evaluate, fits(&judged))?;
        named(&self.placement.sources, request.check_sources(machine, rows_of_layer))?;
        for warning in request
            .warnings(machine)
            .into_iter()
            .chain(judged.as_ref().and_then(|plan| other_machine("the plan", plan, machine)))
        {
            equipoise::warn(&warning);
        }
        let what = format!("placing {}", count((slots * loads.rows.len()) as u64, "replica"));
        let plan = match judged {
            Some(plan) => plan,
            None => progress::with_spinner(&what, || place(&request, machine))?,
        };
        let judge = |plan: &ReplicaPlan| evaluate(plan, &request, machine, expert_bytes);
        let (costs, eplb) = (judge(&plan)?, judge(&published(&request, machine)?)?);
        let [in_use, anew] =
            if self.evaluate.is_some() { [None, None] } else { compared(&request, machine, judge)? };
        let written = self.write(&plan, transfers(&plan, &request, machine).as_deref())?;
        let document = Document {
            topology: machine.spec(),
            experts: loads.columns(),
            replicas: slots,
            summary: Summary::of(&costs),
            in_use: in_use.as_deref().map(Summary::of),
            anew: anew.as_deref().map(Summary::of),
            eplb: Summary::of(&eplb),
            layers: &costs,
            eplb_layers: &eplb,
        };
        let text = || format!("{}{written}", document.text(self.evaluate.as_deref()));
        let rows: Vec<Row> = costs.iter().zip(&eplb).map(Row::of).collect();
        output::show_table(self.format.format, text, &document, &rows)
    }

    /// The machine of the flag, or that of the plan that is judged.
    fn machine(&mut self, judged: Option<&ReplicaPlan>) -> Result<Arc<dyn Topology>, Failure> {
        if let Some(machine) = self.topology.take() {
            return Ok(machine?);
        }
        let (plan, file) =
            judged.zip(self.evaluate.as_deref()).expect("clap requires --topology without --evaluate");
        let about = |reason: String| {
            Failure::usage(format!(
                "the plan `{}` {reason}; name its machine with --topology",
                file.display()
            ))
        };
        match plan.topology.as_str() {
            "" => Err(about("names no machine".into())),
            spec => topology::parse(spec)
                .map_err(|error| about(format!("names a machine that cannot be used: {error}"))),
        }
    }

    /// Writes the files of a plan; returns the lines about them.
    fn write(&self, plan: &ReplicaPlan, transfers: Option<&[Transfer]>) -> Result<String, Failure> {
        let mut written = String::new();
        if let Some(path) = &self.output {
            plan.write(path)?;
            written += &format!("{} (plan)\n", path.display());
        }
        if let Some(path) = &self.sglang {
            plan.write_for_sglang(path)?;
            written += &format!("{} (plan for SGLang)\n", path.display());
        }
        if let Some((path, transfers)) = self.transfers.as_ref().zip(transfers) {
            let pe = |pe: Option<usize>| pe.map_or_else(String::new, |pe| pe.to_string());
            let row = |it: &Transfer| {
                vec![it.layer.to_string(), it.expert.to_string(), pe(it.from), it.to.to_string()]
            };
            let head = ["layer", "expert", "from", "to"].map(String::from).to_vec();
            let rows: Vec<Vec<String>> = [head].into_iter().chain(transfers.iter().map(row)).collect();
            write_whole(path, csv(&rows).as_bytes()).map_err(|error| {
                let sentence = format!("cannot write `{}`: {error}; choose a writable path", shown(path));
                Failure::Of(error.fault(), sentence)
            })?;
            written += &format!("{} ({})\n", path.display(), count(transfers.len() as u64, "transfer"));
        }
        Ok(written)
    }

    /// Refuses an output that would replace an input or another output.
    fn check_files(&self) -> Result<(), Failure> {
        Files::default()
            .reads([&self.loads])
            .reads(self.topology.iter().flatten().map(|machine| machine.spec()))
            .reads(self.previous.iter().chain(&self.evaluate).chain(&self.placement.sources))
            .writes(&self.output)
            .writes(&self.sglang)
            .writes(&self.transfers)
            .check()
    }
}

/// What a plan near the plan in use is compared with, if there is one: the costs of the plan in use, if it has the slots of the request, and of a
/// plan that is made without it.
fn compared(
    request: &Request,
    machine: &dyn Topology,
    judge: impl Fn(&ReplicaPlan) -> Result<Vec<LayerCosts>, StrategyError>,
) -> Result<[Option<Vec<LayerCosts>>; 2], StrategyError> {
    let Some(previous) = request.previous else { return Ok([None, None]) };
    let fits = request.check_plan(previous).is_ok() && other_machine("the plan", previous, machine).is_none();
    let in_use = fits.then(|| judge(previous)).transpose()?;
    let anew = || place(&Request { previous: None, ..*request }, machine);
    let anew = judge(&progress::with_spinner("making a plan without --previous", anew)?)?;
    Ok([in_use, Some(anew)])
}

impl<'a> Row<'a> {
    fn of((costs, eplb): (&'a LayerCosts, &LayerCosts)) -> Self {
        Row {
            costs,
            eplb_max_load: eplb.max_load,
            eplb_max_over_average: eplb.max_over_average,
            eplb_pes_with_repeated_expert: eplb.pes_with_repeated_expert,
            eplb_groups_on_several_nodes: eplb.groups_on_several_nodes,
            eplb_moves: eplb.moves,
            eplb_bytes_moved: eplb.bytes_moved,
            eplb_cross_node_tokens: eplb.cross_node_tokens,
            eplb_token_hops: eplb.token_hops,
        }
    }
}

impl Summary {
    fn of(layers: &[LayerCosts]) -> Self {
        let ratios = || layers.iter().map(|costs| costs.max_over_average);
        let sum = |of: fn(&LayerCosts) -> Option<f64>| layers.iter().map(of).sum::<Option<f64>>();
        Summary {
            mean_max_over_average: ratios().sum::<f64>() / layers.len().max(1) as f64,
            worst_max_over_average: ratios().fold(0.0, f64::max),
            pes_with_repeated_expert: layers.iter().map(|costs| costs.pes_with_repeated_expert).sum(),
            groups_on_several_nodes: layers.iter().map(|costs| costs.groups_on_several_nodes).sum(),
            moves: layers.iter().map(|costs| costs.moves).sum(),
            bytes_moved: layers.iter().map(|costs| costs.bytes_moved).sum(),
            tokens: sum(|costs| costs.tokens),
            cross_node_tokens: sum(|costs| costs.cross_node_tokens),
            token_hops: sum(|costs| costs.token_hops),
        }
    }

    /// The lines of the summary.
    fn lines(&self, replicas: usize) -> Vec<String> {
        let mut lines = vec![
            format!("{:.4}", self.mean_max_over_average),
            format!("{:.4}", self.worst_max_over_average),
            count(self.pes_with_repeated_expert as u64, "PE"),
        ];
        lines.extend(self.groups_on_several_nodes.map(|groups| count(groups as u64, "group")));
        if let Some((moves, volume)) = self.moves.zip(self.bytes_moved) {
            lines.push(format!("{moves} ({})", percent(moves as f64 / replicas.max(1) as f64)));
            lines.push(bytes(volume));
        }
        if let Some((tokens, cross)) = self.tokens.zip(self.cross_node_tokens) {
            lines.push(percent(if tokens > 0.0 { cross / tokens } else { 0.0 }));
        }
        if let Some((tokens, hops)) = self.tokens.zip(self.token_hops) {
            lines.push(format!("{:.3}", if tokens > 0.0 { hops / tokens } else { 0.0 }));
        }
        lines
    }
}

impl Document<'_> {
    fn text(&self, judged: Option<&Path>) -> String {
        let layers = count(self.layers.len() as u64, "layer");
        let (experts, replicas) = (count(self.experts as u64, "expert"), self.replicas);
        let heading = format!("{layers} of {experts} in {replicas} slots on {}\n", self.topology);
        let mut head = vec!["layer", "max/avg"];
        head.extend(self.summary.groups_on_several_nodes.map(|_| "groups on several nodes"));
        head.extend(self.summary.moves.map(|_| ["moves", "bytes moved"]).into_iter().flatten());
        head.extend(self.summary.tokens.map(|_| ["cross-node tokens", "of all"]).into_iter().flatten());
        let mut rows = vec![head.into_iter().map(String::from).collect::<Vec<_>>()];
        for costs in self.layers {
            let mut row = vec![costs.layer.to_string(), format!("{:.4}", costs.max_over_average)];
            row.extend(costs.groups_on_several_nodes.map(|groups| groups.to_string()));
            row.extend(costs.moves.map(|moves| moves.to_string()));
            row.extend(costs.bytes_moved.map(bytes));
            if let Some((tokens, cross)) = costs.tokens.zip(costs.cross_node_tokens) {
                row.push(format!("{cross:.0}"));
                row.push(percent(if tokens > 0.0 { cross / tokens } else { 0.0 }));
            }
            rows.push(row);
        }
        let name = judged.map_or("plan".into(), |path| path.display().to_string());
        format!("{heading}\n{}\n{}", aligned(&rows), self.summary_text(&name))
    }

    /// The summary of the plan next to that of EPLB's plan.
    fn summary_text(&self, name: &str) -> String {
        let mut names =
            vec!["max/avg, mean of layers", "max/avg, worst layer", "PEs that repeat an expert, all layers"];
        names.extend(self.summary.groups_on_several_nodes.map(|_| "groups on several nodes, all layers"));
        names.extend(
            self.summary.moves.map(|_| ["replicas moved (of all)", "bytes moved"]).into_iter().flatten(),
        );
        names.extend(
            self.summary.tokens.map(|_| ["cross-node tokens", "hops per token"]).into_iter().flatten(),
        );
        let replicas = self.replicas * self.layers.len();
        let mut columns = vec![(name, &self.summary)];
        columns.extend(self.in_use.as_ref().map(|it| ("in use", it)));
        columns.extend(self.anew.as_ref().map(|it| ("anew", it)));
        columns.push(("EPLB anew", &self.eplb));
        let column =
            |(name, summary): (&str, &Summary)| [vec![name.to_string()], summary.lines(replicas)].concat();
        let columns: Vec<Vec<String>> = columns.into_iter().map(column).collect();
        let row = |(at, name): (usize, &str)| {
            let cells = columns.iter().map(|column| column[at].clone());
            [name.to_string()].into_iter().chain(cells).collect::<Vec<_>>()
        };
        let names = ["all layers"].into_iter().chain(names);
        aligned(&names.enumerate().map(row).collect::<Vec<_>>())
    }
}

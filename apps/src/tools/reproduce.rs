//! `equipoise reproduce`: figures of the papers, made again.
//!
//! A figure is a file here, or a function of the file of its family, and its entry in [`ALL`]; help, files
//! and documents follow. What it makes is in `figure`: rows of numbers beside those that the paper prints,
//! a chart of them, and criteria that are met or missed.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::bail;
use equipoise_strategies::spelling::meant;
use equipoise_strategies::table::seconds;
use serde::Serialize;
use serde_json::Value;

use super::{input, output};
use crate::Format;

mod axis;
mod balanced;
mod chart;
mod figure;
mod fit;
mod greedy;
mod greedy_many;
mod greedy_tables;
mod hiertopomap;
mod hiertopomap_cases;
mod hiertopomap_node;
mod hiertopomap_overhead;
mod hiertopomap_patterns;
mod hiertopomap_ping;
mod leanmd;
mod mapping;
mod mcf;
mod mcf_adaptive;
mod mcf_data;
mod mcf_machines;
mod mcf_search;
mod poise_ablation;
mod poise_apps;
mod poise_data;
mod poise_gamma;
mod rows;
mod topolb;
mod topolb_network;
mod treematch;
mod treematch_kneighbor;
mod treematch_runs;

use chart::Series;
pub(super) use figure::Figure;
use figure::{Criterion, FigureResult, Options};

/// Every figure, in the order help lists them.
const ALL: &[Figure] = &[
    topolb::TOPOLB_1,
    topolb::TOPOLB_2,
    topolb::TOPOLB_3,
    topolb::TOPOLB_4,
    leanmd::TOPOLB_5,
    leanmd::TOPOLB_6,
    topolb_network::TOPOLB_TABLE1,
    topolb_network::TOPOLB_7,
    topolb_network::TOPOLB_8,
    topolb_network::TOPOLB_9,
    topolb_network::TOPOLB_10,
    topolb_network::TOPOLB_11,
    treematch_runs::TREEMATCH_4,
    treematch::TREEMATCH_5,
    treematch_kneighbor::TREEMATCH_6,
    treematch_kneighbor::TREEMATCH_7,
    treematch_kneighbor::TREEMATCH_8,
    treematch::TREEMATCH_9,
    treematch_runs::TREEMATCH_10,
    greedy::GREEDY_3,
    greedy::GREEDY_7,
    greedy_many::GREEDY_MANY,
    greedy_many::GREEDY_USAGE,
    greedy_tables::GREEDY_TABLE1,
    greedy_tables::GREEDY_TABLE2,
    greedy_tables::GREEDY_TABLE3,
    hiertopomap_patterns::HIERTOPOMAP_9,
    hiertopomap::HIERTOPOMAP_10,
    hiertopomap::HIERTOPOMAP_11,
    hiertopomap::HIERTOPOMAP_12,
    hiertopomap_ping::HIERTOPOMAP_TABLE4,
    hiertopomap_overhead::HIERTOPOMAP_TABLE5,
    hiertopomap_overhead::HIERTOPOMAP_TABLE6,
    hiertopomap_overhead::HIERTOPOMAP_TABLE7,
    poise_gamma::POISE_GAMMA,
    poise_apps::POISE_APPS,
    poise_ablation::POISE_ABLATION,
    mcf::MCF_1,
    mcf::MCF_2,
    mcf::MCF_3,
    mcf::MCF_TABLE1,
    mcf_machines::MCF_MACHINES,
    mcf_adaptive::MCF_ADAPTIVE,
    mcf_search::MCF_SEARCH,
];

/// What is made, and where it goes.
#[derive(clap::Args)]
pub struct Args {
    /// The figure, as in topolb-1; `help`, or nothing, lists them all
    #[arg(value_name = "FIGURE", value_parser = input::figure())]
    figure: Option<&'static Figure>,

    /// Where FIGURE.csv and FIGURE.svg are written
    #[arg(long, value_name = "DIR", default_value = "reproduce")]
    output: PathBuf,

    /// A part of it that takes seconds
    #[arg(long)]
    small: bool,

    /// Fail if a criterion is missed
    #[arg(long)]
    strict: bool,

    /// Everything random comes from this
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// A folder with databases, task graphs or matrices: poise-gamma, poise-ablation and the hiertopomap figures
    /// take those in it instead of making their own
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// How the result is shown
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document<'a> {
    figure: &'a str,
    title: &'a str,
    paper: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    notes: &'a str,
    small: bool,
    seed: u64,
    seconds: f64,
    rows: Value,
    series: &'a [Series],
    criteria: &'a [Criterion],
    csv: String,
    svg: String,
}

/// The figure of that name.
pub(super) fn parse(name: &str) -> Result<&'static Figure, String> {
    ALL.iter().find(|figure| figure.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|figure| figure.name).collect();
        format!("there is no figure `{name}`{}; known are {}", meant(name, &names), names.join(", "))
    })
}

/// Every figure, for people.
pub(super) fn help() -> String {
    let mut text = String::from("Figures that can be made again:\n");
    for Figure { name, title, paper, takes, .. } in ALL {
        text += &format!("\n{name}\n    {title} ({paper}). Takes {takes}.\n");
    }
    text
}

impl Args {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Some(figure) = self.figure else { return output::print(&help()) };
        // Better now than when all work is done.
        let folder = self.output.display();
        fs::create_dir_all(&self.output).map_err(|error| {
            let remedy = "name one that can be written to with --output";
            output::refused(&error, format!("cannot make the folder `{folder}`: {error}; {remedy}"))
        })?;
        let begin = Instant::now();
        let made = (figure.run)(&Options { small: self.small, seed: self.seed, data: self.data.clone() })?;
        let took = begin.elapsed().as_secs_f64();
        let csv = self.write(figure.name, "csv", &made.rows.csv())?;
        let svg = self.write(figure.name, "svg", &made.chart.svg(figure.title)?)?;
        let text = || {
            let files = format!("Written to {csv} and {svg} in {}.\n", seconds(took));
            let notes = if figure.notes.is_empty() { "" } else { "\n" };
            let notes = format!("{}{notes}", figure.notes);
            format!("{} ({})\n\n{}{notes}{files}", figure.title, figure.paper, tables(&made))
        };
        let document = Document {
            figure: figure.name,
            title: figure.title,
            paper: figure.paper,
            notes: figure.notes,
            small: self.small,
            seed: self.seed,
            seconds: took,
            rows: made.rows.json(),
            series: &made.chart.series,
            criteria: &made.criteria,
            csv: csv.clone(),
            svg: svg.clone(),
        };
        output::show(self.format, text, &document)?;
        if self.strict { demand(figure.name, &made.criteria) } else { Ok(()) }
    }

    /// Writes a file of the figure and returns its name.
    fn write(&self, name: &str, extension: &str, text: &str) -> anyhow::Result<String> {
        let path = self.output.join(format!("{name}.{extension}"));
        let shown = path.display().to_string();
        fs::write(&path, text).map_err(|error| {
            let remedy = "make room, or name another folder with --output";
            output::refused(&error, format!("cannot write `{shown}`: {error}; {remedy}"))
        })?;
        Ok(shown)
    }
}

/// Nothing, if all criteria of a figure are met.
fn demand(name: &str, criteria: &[Criterion]) -> anyhow::Result<()> {
    let missed = criteria.iter().filter(|criterion| !criterion.met).count();
    match missed {
        0 => Ok(()),
        _ => bail!("{name}: missed {missed} of the {} criteria", criteria.len()),
    }
}

/// The numbers and the criteria, for people.
fn tables(made: &FigureResult) -> String {
    let line = |criterion: &Criterion| {
        let Criterion { criterion, measured, met } = criterion;
        format!("{}  {criterion}: {measured}\n", if *met { "met   " } else { "missed" })
    };
    let criteria: String = made.criteria.iter().map(line).collect();
    format!("{}\n{criteria}\n", made.rows.text())
}

#[cfg(test)]
mod tests {
    use super::axis::Axis;
    use super::chart::Chart;
    use super::rows::Rows;
    use super::*;

    #[test]
    fn what_is_missed_is_said_and_is_an_error_where_all_is_demanded() {
        let criteria = vec![Criterion::new("A", 1, true), Criterion::new("B", "2 of 3", false)];
        let chart = Chart { x: Axis::log("x"), y: Axis::log("y"), series: Vec::new() };
        let made = FigureResult { rows: Rows::new([("pes", "p")]), chart, criteria };
        assert_eq!(tables(&made), "p\n\nmet     A: 1\nmissed  B: 2 of 3\n\n");
        assert!(demand("figure", &made.criteria[..1]).is_ok());
        let error = demand("figure", &made.criteria).expect_err("B is missed").to_string();
        assert_eq!(error, "figure: missed 1 of the 2 criteria");
    }
}

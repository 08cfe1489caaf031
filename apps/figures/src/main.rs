//! The program `figures`: reproduces figures of papers.
//!
//! A figure is a file in the folder of its paper, or a function in such a file, and an entry in [`ALL`]. Its result
//! ([`FigureResult`]) has rows of numbers next to those printed in the paper, a chart, and criteria that are met or
//! missed.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use equipoise_apps::{Failure, Format, FormatArg, output};
use equipoise_model::fault::Classified as _;
use equipoise_model::files::write_whole;
use equipoise_model::spelling::meant;
use equipoise_model::table::seconds;
use serde::Serialize;
use serde_json::Value;

mod all;
mod axis;
mod balanced;
mod chart;
mod decide;
mod experts;
mod figure;
mod greedy;
mod hiertopomap;
mod mapping;
mod mcf;
mod poise;
mod ranks;
mod recorder;
mod rows;
mod statistics;
mod topolb;
mod treematch;

use all::Line;
use chart::Series;
use figure::{Criterion, Figure, FigureResult, Options};

/// Every figure, in the order of the help.
const ALL: &[Figure] = &[
    topolb::TOPOLB_1,
    topolb::TOPOLB_2,
    topolb::TOPOLB_3,
    topolb::TOPOLB_4,
    topolb::leanmd::TOPOLB_5,
    topolb::leanmd::TOPOLB_6,
    topolb::bluegene::TOPOLB_TABLE1,
    topolb::network::TOPOLB_7,
    topolb::network::TOPOLB_8,
    topolb::network::TOPOLB_9,
    topolb::bluegene::TOPOLB_10,
    topolb::bluegene::TOPOLB_11,
    treematch::runs::TREEMATCH_4,
    treematch::migrations::TREEMATCH_5,
    treematch::kneighbor::TREEMATCH_6,
    treematch::kneighbor::TREEMATCH_7,
    treematch::kneighbor::TREEMATCH_8,
    treematch::TREEMATCH_9,
    treematch::runs::TREEMATCH_10,
    greedy::GREEDY_3,
    greedy::GREEDY_7,
    greedy::many::GREEDY_MANY,
    greedy::many::GREEDY_USAGE,
    greedy::tables::GREEDY_TABLE1,
    greedy::regular::GREEDY_TABLE2,
    greedy::tables::GREEDY_TABLE3,
    hiertopomap::patterns::HIERTOPOMAP_9,
    hiertopomap::HIERTOPOMAP_10,
    hiertopomap::HIERTOPOMAP_11,
    hiertopomap::HIERTOPOMAP_12,
    hiertopomap::ping::HIERTOPOMAP_TABLE4,
    hiertopomap::overhead::HIERTOPOMAP_TABLE5,
    hiertopomap::overhead::HIERTOPOMAP_TABLE6,
    hiertopomap::overhead::HIERTOPOMAP_TABLE7,
    poise::gamma::POISE_GAMMA,
    poise::apps::POISE_APPS,
    poise::ablation::POISE_ABLATION,
    decide::DECIDE,
    mcf::MCF_1,
    mcf::MCF_2,
    mcf::MCF_3,
    mcf::MCF_TABLE1,
    mcf::machines::MCF_MACHINES,
    mcf::adaptive::MCF_ADAPTIVE,
    mcf::search::MCF_SEARCH,
    experts::EXPERTS,
    ranks::ML_RANKS,
];

const ABOUT: &str = "Reproduces a figure of a paper, and checks its criteria";

/// The arguments of `figures`.
#[derive(Parser)]
#[command(name = "figures", version, about = ABOUT)]
struct Args {
    /// The figure, as in topolb-1; `all` makes all and prints a table of their criteria, `help` lists them [default: help]
    #[arg(value_name = "FIGURE")]
    figure: Option<String>,

    /// The folder for FIGURE.csv and FIGURE.svg
    #[arg(long, value_name = "DIR", default_value = "figures")]
    output: PathBuf,

    /// Make a small version that takes seconds
    #[arg(long)]
    small: bool,

    /// Fail if a criterion is missed
    #[arg(long)]
    strict: bool,

    /// Seed of the random number generator
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// A folder with databases, task graphs or matrices for poise-gamma, poise-ablation and the hiertopomap figures
    /// [default: generated ones]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    #[command(flatten)]
    output_format: FormatArg,
}

/// The one JSON document.
#[derive(Serialize)]
struct Document<'a> {
    figure: &'a str,
    title: &'a str,
    paper: &'a str,
    paper_shows: &'a str,
    we_show: &'a str,
    why: &'a str,
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

/// A figure that is made and written.
struct Done {
    figure: &'static Figure,
    made: FigureResult,
    seconds: f64,
    csv: String,
    svg: String,
}

/// The document of all figures.
#[derive(Serialize)]
struct AllDocument<'a> {
    figures: &'a [Value],
    table: &'a [Line],
}

/// The figure with this name.
fn parse(name: &str) -> Result<&'static Figure, String> {
    ALL.iter().find(|figure| figure.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|figure| figure.name).collect();
        format!("there is no figure `{name}`{}; known are {}", meant(name, &names), names.join(", "))
    })
}

/// The list of all figures.
fn help() -> String {
    let mut text = String::from("Figures:\n");
    for Figure { name, title, paper, takes, .. } in ALL {
        text += &format!("\n{name}\n    {title} ({paper}). Takes {takes}.\n");
    }
    text
}

impl Done {
    fn line(&self) -> Line {
        Line::of(self.figure.name, &self.made.criteria)
    }

    fn text(&self) -> String {
        let Done { figure, made, csv, svg, .. } = self;
        let Figure { title, paper, paper_shows, we_show, why, notes, .. } = figure;
        let head = format!(
            "{title} ({paper})\n\nThe paper shows: {paper_shows}.\nWe show: {we_show}.\nResult: {}.\nWhy: {why}.\n\n",
            self.line().verdict()
        );
        let end = if notes.is_empty() { "" } else { "\n" };
        let files = format!("Written to {csv} and {svg} in {}.\n", seconds(self.seconds));
        format!("{head}{}{notes}{end}{files}", tables(made))
    }

    fn document(&self, args: &Args) -> Document<'_> {
        let Done { figure, made, seconds, csv, svg } = self;
        Document {
            figure: figure.name,
            title: figure.title,
            paper: figure.paper,
            paper_shows: figure.paper_shows,
            we_show: figure.we_show,
            why: figure.why,
            notes: figure.notes,
            small: args.small,
            seed: args.seed,
            seconds: *seconds,
            rows: made.rows.json(),
            series: &made.chart.series,
            criteria: &made.criteria,
            csv: csv.clone(),
            svg: svg.clone(),
        }
    }
}

impl Args {
    fn run(self) -> Result<(), Failure> {
        let (wanted, is_all) = match self.figure.as_deref() {
            None | Some("help") => return output::print(&help()),
            Some("all") => (ALL.iter().collect(), true),
            Some(name) => (vec![parse(name).map_err(Failure::usage)?], false),
        };
        // Before the computation, so that an error is reported at once.
        let format = self.output_format.format;
        if format == Format::Csv {
            let remedy = "every figure is also written as a CSV file; leave out --format";
            return Err(Failure::usage(format!("--format csv does not apply: {remedy}")));
        }
        let folder = self.output.display();
        fs::create_dir_all(&self.output).map_err(|error| {
            let remedy = "choose a writable folder with --output";
            Failure::Of(error.fault(), format!("cannot make the folder `{folder}`: {error}; {remedy}"))
        })?;
        let (mut lines, mut documents) = (Vec::new(), Vec::new());
        for figure in wanted {
            let done =
                self.make(figure).map_err(|error| if is_all { error.about(figure.name) } else { error })?;
            lines.push(done.line());
            let document = done.document(&self);
            match (is_all, format) {
                (true, Format::Json) => documents.push(serde_json::to_value(document).map_err(Failure::bug)?),
                (true, _) => output::show(format, || done.text() + "\n", &document)?,
                (false, _) => output::show(format, || done.text(), &document)?,
            }
        }
        if is_all {
            let document = AllDocument { figures: &documents, table: &lines };
            output::show(format, || all::table(&lines), &document)?;
        }
        if self.strict { require_all_met(&lines) } else { Ok(()) }
    }

    /// Computes a figure and writes its files.
    fn make(&self, figure: &'static Figure) -> Result<Done, Failure> {
        let begin = Instant::now();
        let made = (figure.run)(&Options { small: self.small, seed: self.seed, data: self.data.clone() })?;
        let seconds = begin.elapsed().as_secs_f64();
        let csv = self.write(figure.name, "csv", &made.rows.csv())?;
        let svg = self.write(figure.name, "svg", &made.chart.svg(figure.title)?)?;
        Ok(Done { figure, made, seconds, csv, svg })
    }

    /// Writes a file of the figure and returns its path.
    fn write(&self, name: &str, extension: &str, text: &str) -> Result<String, Failure> {
        let path = self.output.join(format!("{name}.{extension}"));
        let shown = path.display().to_string();
        write_whole(&path, text.as_bytes()).map_err(|error| {
            let remedy = "free some space, or choose another folder with --output";
            Failure::Of(error.fault(), format!("cannot write `{shown}`: {error}; {remedy}"))
        })?;
        Ok(shown)
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    equipoise::end_on_signals();
    Failure::exit_code(args.run().map(|()| ExitCode::SUCCESS))
}

/// An error if a figure misses a criterion.
fn require_all_met(lines: &[Line]) -> Result<(), Failure> {
    let missed: Vec<String> = lines.iter().filter(|line| !line.is_clean()).map(Line::summary).collect();
    if missed.is_empty() { Ok(()) } else { Err(Failure::input(missed.join("; "))) }
}

/// The numbers and the criteria as text.
fn tables(made: &FigureResult) -> String {
    let line = |criterion: &Criterion| format!("{:<6}  {}\n", criterion.verdict(), criterion.sentence());
    let criteria: String = made.criteria.iter().map(line).collect();
    format!("{}\n{criteria}\n", made.rows.text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Axis;
    use crate::chart::Chart;
    use crate::rows::Rows;

    #[test]
    fn a_missed_criterion_is_listed_and_is_an_error_with_strict() {
        let criteria = vec![Criterion::new("A", 1, true), Criterion::new("B", "2 of 3", false)];
        let chart = Chart { x: Axis::log("x"), y: Axis::log("y"), series: Vec::new() };
        let made = FigureResult { rows: Rows::new([("pes", "p")]), chart, criteria };
        assert_eq!(tables(&made), "p\n\nmet     A: 1\nmissed  B: 2 of 3\n\n");
        let line = |criteria| Line::of("figure", criteria);
        assert!(require_all_met(&[line(&made.criteria[..1])]).is_ok());
        let error = require_all_met(&[line(&made.criteria)]).expect_err("B is missed").to_string();
        assert_eq!(error, "figure: missed 1 of the 2 criteria");
    }
}

//! Rounds, medians and the table.

use clap::Parser;
use serde::Serialize;

/// Measures, and prints the minimum and median of every measurement beside its floor.
#[derive(Parser)]
struct Cli {
    /// As little as can be, to see that everything runs
    #[arg(long)]
    small: bool,
    /// Rounds of everything
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// One JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Only measurements whose name contains this, and their floors
    filter: Option<String>,
    /// Given by `cargo bench`; without it this is a test, in small mode
    #[arg(long, hide = true)]
    bench: bool,
}

/// The `main` of a benchmark: measures what the command line asks for, and prints it.
pub fn run(mut all: Vec<Measurement>) {
    let mut cli = Cli::parse();
    cli.small |= !cli.bench;
    if let Some(filter) = &cli.filter {
        let floors: Vec<_> =
            all.iter().filter(|m| m.name.contains(filter.as_str())).filter_map(|m| m.floor).collect();
        all.retain(|m| m.name.contains(filter.as_str()) || floors.contains(&m.name));
    }
    let rows = measure(&all, if cli.small { 1 } else { cli.rounds.max(1) }, cli.small);
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
    } else {
        print(&rows);
    }
}

/// One thing that is measured: its value in one round.
pub struct Measurement {
    /// What it is, as in `local message, 1000 in flight`.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// The value aimed at on a quiet machine, in the unit.
    pub target: Option<f64>,
    /// The name of the measurement that is its floor.
    pub floor: Option<&'static str>,
    /// Takes the measurement once; with `small`, as quickly as can be.
    pub take: Box<dyn Fn(bool) -> f64>,
}

/// What a measurement gave.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// The least value of all rounds.
    pub min: f64,
    /// The median of all rounds.
    pub median: f64,
    /// The value aimed at on a quiet machine.
    pub target: Option<f64>,
    /// The name of the floor, its median, and the median of the ratios to it within a round.
    pub floor: Option<(String, f64, f64)>,
}

/// Takes so many rounds of all measurements, in turn.
fn measure(measurements: &[Measurement], rounds: usize, small: bool) -> Vec<Row> {
    let mut values = vec![Vec::with_capacity(rounds); measurements.len()];
    for _ in 0..rounds {
        for (measurement, values) in measurements.iter().zip(&mut values) {
            values.push((measurement.take)(small));
        }
    }
    let position = |name: &str| measurements.iter().position(|m| m.name == name);
    let row = |(measurement, taken): (&Measurement, &Vec<f64>)| {
        let floor = measurement.floor.and_then(|name| {
            let floors = &values[position(name)?];
            let ratios = taken.iter().zip(floors).map(|(value, floor)| value / floor).collect();
            Some((name.to_owned(), median(floors.clone()), median(ratios)))
        });
        Row {
            name: measurement.name.to_owned(),
            unit: measurement.unit,
            min: taken.iter().copied().fold(f64::INFINITY, f64::min),
            median: median(taken.clone()),
            target: measurement.target,
            floor,
        }
    };
    measurements.iter().zip(&values).map(row).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the rows as a table for people.
fn print(rows: &[Row]) {
    println!(
        "{:<58} {:>10} {:>10} {:>8}  {:<8} {:>7}  floor",
        "", "min", "median", "target", "unit", "ratio"
    );
    for row in rows {
        let target = row.target.map_or(String::new(), |target| format!("{target}"));
        let (ratio, floor) = match &row.floor {
            Some((name, median, ratio)) => (format!("{ratio:.2}"), format!("{name} ({})", shown(*median))),
            None => (String::new(), String::new()),
        };
        let (min, median) = (shown(row.min), shown(row.median));
        println!("{:<58} {min:>10} {median:>10} {target:>8}  {:<8} {ratio:>7}  {floor}", row.name, row.unit);
    }
}

/// A value with at least three digits that say something.
fn shown(value: f64) -> String {
    match value.abs() {
        below if below < 1.0 => format!("{value:.3}"),
        below if below < 10.0 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

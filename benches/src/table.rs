//! The command line of a benchmark, its rounds, and the table of results.

use clap::Parser;
use serde::Serialize;

/// Prints the minimum and the median of every measurement, and its ratio to its floor
#[derive(Parser)]
struct Cli {
    /// Use minimal problem sizes and one round, to test that everything runs
    #[arg(long)]
    small: bool,
    /// Number of rounds
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Print one JSON document instead of the table
    #[arg(long)]
    json: bool,
    /// Take only measurements whose name contains this text, and their floors
    filter: Option<String>,
    /// `cargo bench` passes this flag; without it, as under `mpirun`, small mode is used
    #[arg(long, hide = true)]
    bench: bool,
}

/// The `main` of a benchmark: parses the command line, takes the measurements, and prints the results.
pub fn run(all: Vec<Measurement>) {
    run_in_process(0, all);
}

/// Like [`run`], for a benchmark whose measurements are taken by several processes together; process 0 prints the results.
pub fn run_in_process(process: usize, mut all: Vec<Measurement>) {
    let mut cli = Cli::parse();
    cli.small |= !cli.bench;
    if let Some(filter) = &cli.filter {
        let floors: Vec<_> =
            all.iter().filter(|m| m.name.contains(filter.as_str())).filter_map(|m| m.floor).collect();
        all.retain(|m| m.name.contains(filter.as_str()) || floors.contains(&m.name));
    }
    let rows = measure(&all, if cli.small { 1 } else { cli.rounds.max(1) }, cli.small);
    if process != 0 {
        return;
    }
    if cli.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
    } else {
        print(&rows);
    }
}

/// A measurement: one value per round.
pub struct Measurement {
    /// The name, for example `local message, 1000 in flight`.
    pub name: &'static str,
    /// The unit of the values.
    pub unit: &'static str,
    /// The target on an idle machine, in the same unit.
    pub target: Option<f64>,
    /// The name of the measurement that is the floor.
    pub floor: Option<&'static str>,
    /// Takes the measurement once; the argument states whether small mode is on.
    pub take: Box<dyn Fn(bool) -> f64>,
}

/// The results of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The name of the measurement.
    pub name: String,
    /// The unit of the values.
    pub unit: &'static str,
    /// The minimum of all rounds.
    pub min: f64,
    /// The median of all rounds.
    pub median: f64,
    /// The target on an idle machine.
    pub target: Option<f64>,
    /// The floor: its name, its median, and the median over the rounds of the ratio of the measurement to the floor.
    pub floor: Option<(String, f64, f64)>,
}

/// Takes `rounds` rounds of all measurements.
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

/// Prints the rows as a table.
fn print(rows: &[Row]) {
    println!(
        "{:<58} {:>10} {:>10} {:>8}  {:<8} {:>7}  floor",
        "", "min", "median", "target", "unit", "ratio"
    );
    for row in rows {
        let target = row.target.map_or(String::new(), |target| format!("{target}"));
        let (ratio, floor) = match &row.floor {
            Some((name, median, ratio)) => {
                (format!("{ratio:.2}"), format!("{name} ({})", format_value(*median)))
            }
            None => (String::new(), String::new()),
        };
        let (min, median) = (format_value(row.min), format_value(row.median));
        println!("{:<58} {min:>10} {median:>10} {target:>8}  {:<8} {ratio:>7}  {floor}", row.name, row.unit);
    }
}

/// A value with at least three significant digits, if its size allows.
fn format_value(value: f64) -> String {
    if value.abs() < 10.0 { format!("{value:.3}") } else { format!("{value:.1}") }
}

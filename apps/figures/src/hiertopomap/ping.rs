//! Table 4 of the HierTopoMap paper: PingPing inside nodes.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5.2.1.

use equipoise_apps::Failure;
use equipoise_model::table::bytes;
use equipoise_network::models::exchange::{Exchange, Halo, Traffic};

use super::cases::Site;
use super::node::{Measured, TABLE_4};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};

/// Table 4.
pub(crate) const HIERTOPOMAP_TABLE4: Figure = Figure {
    name: "hiertopomap-table4",
    title: "PingPing inside a socket and between sockets, Stampede and Kraken",
    paper: "Wu, Xiong, Lan 2015, table 4",
    paper_shows: "messages are faster inside a socket than between sockets",
    we_show: "the simulated times, made from this table",
    why: "the model interpolates the table",
    takes: "a second",
    notes: "The simulated nodes use the times of this table, so the figure checks that the simulation adds no other time.",
    run: ping_ping,
};

/// The times of PingPing with messages of one size.
struct PingPing {
    bytes: u64,
    /// By machine: inside a socket, and between sockets, here and in the paper, in microseconds.
    times: [(f64, f64, f64, f64); 2],
}

fn ping_ping(options: &Options) -> Result<FigureResult, Failure> {
    let rows_of_table = options.choose(&TABLE_4, &TABLE_4[..13]);
    let mut all = Vec::new();
    for &row in rows_of_table {
        let time = |site: Site, measured: Measured| -> Result<(f64, f64, f64, f64), Failure> {
            // Two nodes, so that there is a network.
            let job = site.job(2 * site.per_node(), options.seed)?;
            let between = |to: u32| -> Result<f64, Failure> {
                let halo = |from, to| Halo { from, to, bytes: row.0 };
                let traffic = Traffic { tasks: 2, messages: vec![halo(0, 1), halo(1, 0)] };
                let exchange = Exchange { iterations: 10, ..Exchange::default() };
                Ok(1e6 * exchange.run(&traffic, &[0, to], &mut *job.network()?).seconds_per_iteration)
            };
            let (intra, inter) = measured.of(row);
            Ok((between(1)?, between(site.per_node() as u32 / 2)?, intra, inter))
        };
        let times = [time(Site::Stampede, Measured::Stampede)?, time(Site::Kraken, Measured::Kraken)?];
        all.push(PingPing { bytes: row.0, times });
    }
    let mut rows = Rows::new([
        ("bytes", "bytes"),
        ("stampede_intra_microseconds", "Stampede intra us"),
        ("paper_stampede_intra_microseconds", "paper"),
        ("stampede_inter_microseconds", "inter us"),
        ("paper_stampede_inter_microseconds", "paper"),
        ("stampede_difference", "difference"),
        ("kraken_intra_microseconds", "Kraken intra us"),
        ("paper_kraken_intra_microseconds", "paper"),
        ("kraken_inter_microseconds", "inter us"),
        ("paper_kraken_inter_microseconds", "paper"),
        ("kraken_difference", "difference"),
    ]);
    for row in &all {
        let cells = row.times.iter().flat_map(|&(intra, inter, paper_intra, paper_inter)| {
            [intra, paper_intra, inter, paper_inter, inter / intra - 1.0].map(Cell::Number)
        });
        rows.push([Cell::Count(row.bytes)].into_iter().chain(cells));
    }
    let mut series = Vec::new();
    for (site, name) in ["Stampede", "Kraken"].into_iter().enumerate() {
        // The logarithmic axis has no 0.
        let points = |of: fn((f64, f64, f64, f64)) -> f64| {
            all.iter().filter(|row| row.bytes > 0).map(move |row| (row.bytes as f64, of(row.times[site])))
        };
        series.push(Series::measured(format!("{name}, inside a socket"), points(|times| times.0)));
        series.push(Series::measured(format!("{name}, between sockets"), points(|times| times.1)));
        series.push(Series::paper(format!("{name} in the paper, inside"), points(|times| times.2)));
        series.push(Series::paper(format!("{name} in the paper, between"), points(|times| times.3)));
    }
    let chart = Chart { x: Axis::log("bytes"), y: Axis::log("microseconds"), series };
    Ok(FigureResult { rows, chart, criteria: criteria(&all) })
}

/// The criteria for the times.
fn criteria(all: &[PingPing]) -> Vec<Criterion> {
    let apart = |&(intra, inter, paper_intra, paper_inter): &(f64, f64, f64, f64)| {
        (intra / paper_intra - 1.0).abs().max((inter / paper_inter - 1.0).abs())
    };
    let worst = |row: &PingPing| row.times.iter().map(apart).fold(0.0, f64::max);
    let difference = |row: &PingPing, site: usize| 100.0 * (row.times[site].1 / row.times[site].0 - 1.0);
    let mut criteria = vec![
        Criterion::every(
            "every time is within 5 % of the paper's",
            all,
            |row| 0.05 - worst(row),
            |row| format!("{:.2} % at {}", 100.0 * worst(row), bytes(row.bytes)),
        ),
        Criterion::every(
            "messages inside a socket are faster than between sockets",
            all,
            |row| difference(row, 0).min(difference(row, 1)) - f64::MIN_POSITIVE,
            |row| {
                format!("{:.1} and {:.1} % at {}", difference(row, 0), difference(row, 1), bytes(row.bytes))
            },
        ),
    ];
    for (site, name, at, most, last) in [(0, "Stampede", 2048, 83.29, 2.83), (1, "Kraken", 0, 43.38, 0.93)] {
        let largest = all.iter().map(|row| difference(row, site)).fold(f64::NAN, f64::max);
        let found = all.iter().find(|row| row.bytes == at).map_or(f64::NAN, |row| difference(row, site));
        criteria.push(Criterion::new(
            format!("{name}: the difference is largest at {} ({most} %), within 1.5 points (times are printed to 0.01 us)", bytes(at)),
            format!("{found:.2} %, the largest is {largest:.2} %"),
            (found - most).abs() <= 1.5 && found >= largest - 1.5,
        ));
        if let Some(end) = all.iter().find(|row| row.bytes == 262_144) {
            let found = difference(end, site);
            criteria.push(Criterion::new(
                format!("{name}: the difference falls to {last} % at {}, within 1 point", bytes(end.bytes)),
                format!("{found:.2} %"),
                (found - last).abs() <= 1.0,
            ));
        }
    }
    criteria
}

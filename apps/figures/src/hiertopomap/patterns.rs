//! Figure 9 of the HierTopoMap paper: communication patterns of programs.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5.1.2.

use equipoise_apps::Failure;
use equipoise_network::models::exchange::Traffic;

use super::cases::PROGRAMS;
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};

/// Figure 9.
pub(crate) const HIERTOPOMAP_9: Figure = Figure {
    name: "hiertopomap-9",
    title: "Communication patterns of five programs with 1024 processes",
    paper: "Wu, Xiong, Lan 2015, figure 9",
    paper_shows: "communication patterns of five programs, without order for matrices",
    we_show: "patterns of generated programs",
    why: "the matrices have the same structure and parts numbered at random",
    takes: "10 seconds",
    notes: "The paper prints pictures. Here a dot is a block of processes; the programs are next to each other. \
            Matrices are generated unless --data names a folder with F1.mtx, audikw_1.mtx or nlpkkt120.mtx.",
    run: patterns,
};

/// The number of blocks per side of a picture.
const BLOCKS: usize = 64;

fn patterns(options: &Options) -> Result<FigureResult, Failure> {
    let processes = if options.small { 128 } else { 1024 };
    let mut rows = Rows::new([
        ("program", "program"),
        ("processes", "processes"),
        ("pairs", "nz"),
        ("mean_neighbors", "neighbors"),
        ("most_neighbors", "at most"),
        ("bytes", "bytes"),
        ("near_share", "bytes within 32 ranks"),
    ]);
    let (mut series, mut measured) = (Vec::new(), Vec::new());
    for (column, program) in PROGRAMS.into_iter().enumerate() {
        let tasks = program.tasks(processes, options)?;
        let traffic = Traffic::directed(&tasks);
        let mut sent = vec![0u64; processes];
        traffic.messages.iter().for_each(|message| sent[message.from as usize] += 1);
        let bytes: u64 = traffic.messages.iter().map(|message| message.bytes).sum();
        let near = traffic.messages.iter().filter(|message| message.from.abs_diff(message.to) <= 32);
        let near = near.map(|message| message.bytes).sum::<u64>() as f64 / bytes.max(1) as f64;
        let pairs = traffic.messages.len() as u64;
        let (least, most) = (sent.iter().min().copied(), sent.iter().max().copied());
        rows.push([
            Cell::Text(program.name.into()),
            Cell::Count(processes as u64),
            Cell::Count(pairs),
            Cell::Number(pairs as f64 / processes as f64),
            Cell::Count(most.unwrap_or(0)),
            Cell::Count(bytes),
            Cell::Number(near),
        ]);
        measured.push((program, least.zip(most), near));
        let block = |task: u32| task as usize * BLOCKS / processes;
        let mut dots: Vec<(usize, usize)> =
            traffic.messages.iter().map(|message| (block(message.from), block(message.to))).collect();
        dots.sort_unstable();
        dots.dedup();
        // The pictures are next to each other, with rows from the top.
        let left = (column * (BLOCKS + 8)) as f64;
        let dots = dots.into_iter().map(|(from, to)| (left + to as f64, (BLOCKS - 1 - from) as f64));
        series.push(Series::dots(format!("{}: nz = {pairs}", program.name), dots));
    }
    let chart = Chart {
        x: Axis::linear(format!("receiver, in blocks of {} processes", processes / BLOCKS)),
        y: Axis::linear("sender, from the top"),
        series,
    };
    let neighbors =
        |name: &str| measured.iter().find(|(program, ..)| program.name == name).and_then(|it| it.1);
    let near = |name: &str| measured.iter().find(|it| it.0.name == name).map_or(f64::NAN, |it| it.2);
    let mut criteria = vec![Criterion::new(
        "the stencil is regular: every process has 3 to 6 neighbors",
        format!("{:?}", neighbors("3D stencil").unwrap_or_default()),
        neighbors("3D stencil") == Some((3, 6)),
    )];
    for name in ["F1", "audikw_1", "nlpkkt120"] {
        let (least, most) = neighbors(name).unwrap_or_default();
        criteria.push(Criterion::new(
            format!("{name} is irregular: the largest number of neighbors is at least twice the smallest"),
            format!("{least} to {most} neighbors"),
            most >= 2 * least,
        ));
    }
    let art = near("ART");
    let matrices = ["F1", "audikw_1", "nlpkkt120"].map(near).into_iter().fold(0.0, f64::max);
    criteria.push(Criterion::new(
        "ART's bytes are nearer to the diagonal than those of matrices",
        format!("{:.0} % within 32 ranks, matrices at most {:.0} %", 100.0 * near("ART"), 100.0 * matrices),
        near("ART") > matrices,
    ));
    criteria.push(Criterion::new(
        "most of ART's bytes go to processes nearby (32 ranks)",
        format!("{:.0} %", 100.0 * art),
        art > 0.5,
    ));
    Ok(FigureResult { rows, chart, criteria })
}

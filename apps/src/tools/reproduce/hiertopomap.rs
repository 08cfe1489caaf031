//! Figures 9 to 12 of the HierTopoMap paper: what programs exchange, and what mapping them gains on three machines.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5. The paper prints the largest gains; of the bars only what the text says is compared. The system
//! default is what a launcher does: ranks in blocks over the list of nodes, which is in no order where nodes are
//! scattered; on Intrepid one rank on each node after the other (XYZT).

use anyhow::Context as _;
use equipoise_strategies::network::exchange::Traffic;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::hiertopomap_cases::{PROGRAMS, Program, Site};
use super::mapping::ask;
use super::rows::{Cell, Rows};

/// Figure 9.
pub(super) const HIERTOPOMAP_9: Figure = Figure {
    name: "hiertopomap-9",
    title: "Who communicates with whom: 1024 processes of five programs",
    paper: "Wu, Xiong, Lan 2015, figure 9",
    takes: "10 seconds",
    notes: "The paper prints pictures; their dots are drawn for blocks of processes here, one program beside the other. \
            Matrices are generated unless --data names a folder with F1.mtx, audikw_1.mtx or nlpkkt120.mtx.",
    run: patterns,
};

/// Figure 10.
pub(super) const HIERTOPOMAP_10: Figure = Figure {
    name: "hiertopomap-10",
    title: "Gain of mapping over the default order on a fat tree (Stampede)",
    paper: "Wu, Xiong, Lan 2015, figure 10",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &STAMPEDE),
};

/// Figure 11.
pub(super) const HIERTOPOMAP_11: Figure = Figure {
    name: "hiertopomap-11",
    title: "Gain of mapping over the default order on scattered nodes of a torus (Kraken)",
    paper: "Wu, Xiong, Lan 2015, figure 11",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &KRAKEN),
};

/// Figure 12.
pub(super) const HIERTOPOMAP_12: Figure = Figure {
    name: "hiertopomap-12",
    title: "Gain of mapping over the default order on a box of a torus (Intrepid)",
    paper: "Wu, Xiong, Lan 2015, figure 12",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &INTREPID),
};

const NOTES: &str = "Hop-bytes count hops between nodes. The parts of matrices are numbered at random, as figure 9 of the paper shows no order \
                     in them; lists of scattered nodes are in no order. The paper's columns are the largest gains its text names. Matrices are generated, \
                     and what they exchange is scaled to the size of the paper's, unless --data names a folder with F1.mtx, \
                     audikw_1.mtx or nlpkkt120.mtx. Mappings are without the guard that keeps the default order where it is better.";

/// A figure of gains.
struct Gains {
    site: Site,
    /// Processes.
    sizes: &'static [usize],
    small: &'static [usize],
    mappings: &'static [Mapping],
    /// What the paper gained at most, in parts: hop-bytes, time, and time of mapping inside the nodes, too.
    paper: (f64, f64, Option<f64>),
}

/// A mapping of the figures, as they call it and as `--balancer` does.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mapping {
    name: &'static str,
    spec: &'static str,
}

const RT_INTER: Mapping = Mapping { name: "RT:inter", spec: "HierTopoMap:inter=tree,intra=off,guard=off" };
const RT_BOTH: Mapping = Mapping { name: "RT:inter+intra", spec: "HierTopoMap:inter=tree,guard=off" };
const RB_INTER: Mapping = Mapping { name: "RB:inter", spec: "HierTopoMap:inter=bipart,intra=off,guard=off" };
const RB_BOTH: Mapping = Mapping { name: "RB:inter+intra", spec: "HierTopoMap:inter=bipart,guard=off" };
const GREEDY: Mapping = Mapping { name: "LibTopoMap greedy", spec: "LibTopoMap:method=greedy" };
const RECURSIVE: Mapping = Mapping { name: "LibTopoMap recursive", spec: "LibTopoMap:method=recursive" };
const RCM: Mapping = Mapping { name: "LibTopoMap RCM", spec: "LibTopoMap:method=rcm" };

const STAMPEDE: Gains = Gains {
    site: Site::Stampede,
    sizes: &[32, 64, 128, 256, 512, 1024],
    small: &[32, 64],
    mappings: &[RT_INTER, RT_BOTH],
    paper: (0.90, 0.76, Some(0.22)),
};

const KRAKEN: Gains = Gains {
    site: Site::Kraken,
    sizes: &[96, 192, 384, 768, 1536],
    small: &[96],
    mappings: &[RT_INTER, RT_BOTH, RB_INTER, RB_BOTH],
    paper: (0.89, 0.77, Some(0.23)),
};

const INTREPID: Gains = Gains {
    site: Site::Intrepid,
    sizes: &[256, 512, 1024, 2048],
    small: &[64, 128],
    mappings: &[RT_INTER, RB_INTER, GREEDY, RECURSIVE, RCM],
    paper: (0.79, 0.69, None),
};

/// What a program gains with so many processes.
struct Gain {
    program: Program,
    processes: usize,
    default_hop_bytes: u64,
    default_seconds: f64,
    /// By mapping, in the order of the figure: hop-bytes and seconds.
    mapped: Vec<(Mapping, u64, f64)>,
}

impl Gain {
    fn of(&self, mapping: Mapping) -> anyhow::Result<(u64, f64)> {
        let found = self.mapped.iter().find(|mapped| mapped.0 == mapping);
        found.map(|&(_, hop_bytes, seconds)| (hop_bytes, seconds)).context("a mapping of the figure")
    }

    /// The part of hop-bytes, and of seconds, that is gone.
    fn saved(&self, (hop_bytes, seconds): (u64, f64)) -> (f64, f64) {
        let saved = |now: f64, before: f64| if before == 0.0 { 0.0 } else { 1.0 - now / before };
        (saved(hop_bytes as f64, self.default_hop_bytes as f64), saved(seconds, self.default_seconds))
    }

    fn told(&self, what: &str) -> String {
        format!("{what} with {} on {} processes", self.program.name, self.processes)
    }
}

fn measure(options: &Options, gains: &Gains) -> anyhow::Result<Vec<Gain>> {
    let sizes = options.choose(gains.sizes, gains.small);
    let all: Vec<(Program, usize)> = PROGRAMS
        .into_iter()
        .flat_map(|program| sizes.iter().map(move |&processes| (program, processes)))
        .collect();
    let names = all.iter().map(|(program, processes)| format!("{} {processes}", program.name));
    let mut left = all.iter();
    options.sweep(names, |_| {
        let &(program, processes) = left.next().context("a case for every name")?;
        let tasks = program.tasks(processes, options)?;
        let job = gains.site.job(processes, options.seed)?;
        let mut mapped = Vec::new();
        for &mapping in gains.mappings {
            let placement = ask(mapping.spec, &tasks, &*job.cores, options.seed)?.pe_of;
            mapped.push((mapping, job.hop_bytes(&tasks, &placement), job.seconds(&tasks, &placement)?));
        }
        Ok(Gain {
            program,
            processes,
            default_hop_bytes: job.hop_bytes(&tasks, &job.default),
            default_seconds: job.seconds(&tasks, &job.default)?,
            mapped,
        })
    })
}

fn gains(options: &Options, gains: &Gains) -> anyhow::Result<FigureResult> {
    let all = measure(options, gains)?;
    let mut rows = Rows::new([
        ("program", "program"),
        ("processes", "processes"),
        ("mapping", "mapping"),
        ("hop_bytes", "hop-bytes"),
        ("milliseconds", "ms"),
        ("hop_bytes_saved", "hop-bytes saved"),
        ("time_saved", "time saved"),
        ("paper_most_hop_bytes_saved", "paper, at most"),
        ("paper_most_time_saved", "paper, at most"),
    ]);
    for gain in &all {
        let default = ("default", gain.default_hop_bytes, gain.default_seconds);
        let mapped =
            gain.mapped.iter().map(|&(mapping, hop_bytes, seconds)| (mapping.name, hop_bytes, seconds));
        for (name, hop_bytes, seconds) in [default].into_iter().chain(mapped) {
            let (bytes_saved, time_saved) = gain.saved((hop_bytes, seconds));
            let is_ours = is_ours(name);
            rows.push([
                Cell::Text(gain.program.name.into()),
                Cell::Count(gain.processes as u64),
                Cell::Text(name.into()),
                Cell::Count(hop_bytes),
                Cell::Number(1e3 * seconds),
                Cell::Number(bytes_saved),
                Cell::Number(time_saved),
                if is_ours { Cell::Number(gains.paper.0) } else { Cell::Nothing },
                if is_ours { Cell::Number(gains.paper.1) } else { Cell::Nothing },
            ]);
        }
    }
    let chart = chart(&all, gains)?;
    let mut criteria = largest(&all, gains);
    criteria.extend(inside(&all, gains)?);
    criteria.extend(between(&all, gains)?);
    Ok(FigureResult { rows, chart, criteria })
}

/// Whether a mapping is of the paper, and not one it is compared with.
fn is_ours(name: &str) -> bool {
    name.starts_with("RT") || name.starts_with("RB")
}

/// What the best of our mappings saves, against processes: a line of hop-bytes, and one of time, for each program.
fn chart(all: &[Gain], gains: &Gains) -> anyhow::Result<Chart> {
    let best = *gains.mappings.iter().find(|mapping| **mapping == RT_BOTH).unwrap_or(&RT_INTER);
    let mut series = Vec::new();
    for program in PROGRAMS {
        let of = all.iter().filter(|gain| gain.program == program);
        let points = of.map(|gain| Ok((gain.processes as f64, gain.saved(gain.of(best)?))));
        let points = points.collect::<anyhow::Result<Vec<_>>>()?;
        let pick = |of: fn((f64, f64)) -> f64| points.iter().map(move |&(x, saved)| (x, 100.0 * of(saved)));
        series.push(Series::measured(format!("{}: time", program.name), pick(|saved| saved.1)));
        series.push(Series::theory(format!("{}: hop-bytes", program.name), pick(|saved| saved.0)));
    }
    let y = Axis::linear(format!("percent saved by {} (lines: time, broken: hop-bytes)", best.name));
    Ok(Chart { x: Axis::log("processes"), y, series })
}

/// What is saved at most, by any of our mappings.
fn largest(all: &[Gain], gains: &Gains) -> Vec<Criterion> {
    let mut ours = Vec::new();
    for gain in all {
        for &(mapping, hop_bytes, seconds) in gain.mapped.iter().filter(|mapped| is_ours(mapped.0.name)) {
            let (bytes, time) = gain.saved((hop_bytes, seconds));
            ours.push((bytes, time, gain.told(mapping.name)));
        }
    }
    let most = |of: fn(&(f64, f64, String)) -> f64| {
        let best = ours.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        best.map_or((f64::NAN, String::new()), |it| (of(it), it.2.clone()))
    };
    let (paper_bytes, paper_time, _) = gains.paper;
    let (bytes, time) = (most(|it| it.0), most(|it| it.1));
    vec![
        Criterion::new(
            format!(
                "the most hop-bytes saved are within 10 points of the paper's {:.0} %",
                100.0 * paper_bytes
            ),
            format!("{:.1} %, by {}", 100.0 * bytes.0, bytes.1),
            (bytes.0 - paper_bytes).abs() <= 0.1,
        ),
        Criterion::new(
            format!("the most time saved is at least 50 % (paper: {:.0})", 100.0 * paper_time),
            format!("{:.1} %, by {}", 100.0 * time.0, time.1),
            time.0 >= 0.5,
        ),
    ]
}

/// What mapping inside the nodes adds.
fn inside(all: &[Gain], gains: &Gains) -> anyhow::Result<Vec<Criterion>> {
    let Some(paper) = gains.paper.2 else { return Ok(Vec::new()) };
    let mut further = Vec::new();
    for gain in all {
        let ((_, outside), (_, both)) = (gain.of(RT_INTER)?, gain.of(RT_BOTH)?);
        further.push((1.0 - both / outside, gain));
    }
    let share =
        further.iter().filter(|(saved, _)| *saved >= 0.0).count() as f64 / further.len().max(1) as f64;
    let best = further.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let (most, told) = best.map_or((f64::NAN, String::new()), |(saved, gain)| (*saved, gain.told("it is")));
    Ok(vec![
        Criterion::new(
            "RT:inter+intra takes no longer than RT:inter in at least 80 % of the cases",
            format!("{:.0} % of {}", 100.0 * share, further.len()),
            share >= 0.8,
        ),
        Criterion::new(
            format!(
                "mapping inside nodes saves 10 to 30 % more time in the best case (paper: {:.0})",
                100.0 * paper
            ),
            format!("{:.1} %: {told}", 100.0 * most),
            (0.1..=0.3).contains(&most),
        ),
    ])
}

/// How recursive tree mapping, recursive bipartitioning and LibTopoMap compare.
fn between(all: &[Gain], gains: &Gains) -> anyhow::Result<Vec<Criterion>> {
    if !gains.mappings.contains(&RB_INTER) {
        return Ok(Vec::new());
    }
    let mean = |mapping: Mapping| -> anyhow::Result<(f64, f64)> {
        let mut sums = (0.0, 0.0);
        for gain in all {
            let (bytes, time) = gain.saved(gain.of(mapping)?);
            sums = (sums.0 + bytes / all.len() as f64, sums.1 + time / all.len() as f64);
        }
        Ok(sums)
    };
    let (tree, halves) = (mean(RT_INTER)?, mean(RB_INTER)?);
    let both = format!("{:.1} and {:.1} %", 100.0 * tree.0, 100.0 * halves.0);
    if gains.site == Site::Kraken {
        let criterion = "RT saves as many hop-bytes as RB in the mean, less 1 point at most";
        return Ok(vec![Criterion::new(criterion, both, tree.0 >= halves.0 - 0.01)]);
    }
    let near = (tree.0 - halves.0).abs() <= 0.05;
    let mut criteria =
        vec![Criterion::new("RT and RB save as many hop-bytes in the mean, to 5 points", both, near)];
    for mapping in [GREEDY, RECURSIVE, RCM] {
        let other = mean(mapping)?;
        criteria.push(Criterion::new(
            format!("{} saves less than both in the mean, hop-bytes and time", mapping.name),
            format!(
                "{:.1} % of hop-bytes beside {:.1}, {:.1} % of time beside {:.1}",
                100.0 * other.0,
                100.0 * tree.0.min(halves.0),
                100.0 * other.1,
                100.0 * tree.1.min(halves.1)
            ),
            other.0 < tree.0.min(halves.0) && other.1 < tree.1.min(halves.1),
        ));
    }
    Ok(criteria)
}

/// How many blocks a side a picture of figure 9 has.
const BLOCKS: usize = 64;

fn patterns(options: &Options) -> anyhow::Result<FigureResult> {
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
    let (mut series, mut told) = (Vec::new(), Vec::new());
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
        told.push((program, least.zip(most), near));
        let block = |task: u32| task as usize * BLOCKS / processes;
        let mut dots: Vec<(usize, usize)> =
            traffic.messages.iter().map(|message| (block(message.from), block(message.to))).collect();
        dots.sort_unstable();
        dots.dedup();
        // One picture beside the other, rows from the top.
        let left = (column * (BLOCKS + 8)) as f64;
        let dots = dots.into_iter().map(|(from, to)| (left + to as f64, (BLOCKS - 1 - from) as f64));
        series.push(Series::dots(format!("{}: nz = {pairs}", program.name), dots));
    }
    let chart = Chart {
        x: Axis::linear(format!("receiver, in blocks of {} processes", processes / BLOCKS)),
        y: Axis::linear("sender, from the top"),
        series,
    };
    let neighbors = |name: &str| told.iter().find(|(program, ..)| program.name == name).and_then(|it| it.1);
    let near = |name: &str| told.iter().find(|it| it.0.name == name).map_or(f64::NAN, |it| it.2);
    let mut criteria = vec![Criterion::new(
        "the stencil is regular: every process has 3 to 6 neighbors",
        format!("{:?}", neighbors("3D stencil").unwrap_or_default()),
        neighbors("3D stencil") == Some((3, 6)),
    )];
    for name in ["F1", "audikw_1", "nlpkkt120"] {
        let (least, most) = neighbors(name).unwrap_or_default();
        criteria.push(Criterion::new(
            format!("{name} is irregular: somebody has twice the neighbors of somebody else"),
            format!("{least} to {most} neighbors"),
            most >= 2 * least,
        ));
    }
    let art = near("ART");
    let matrices = ["F1", "audikw_1", "nlpkkt120"].map(near).into_iter().fold(0.0, f64::max);
    criteria.push(Criterion::new(
        "ART's bytes are nearer to the diagonal than those of matrices",
        format!("{:.0} % within 32 ranks beside {:.0}", 100.0 * near("ART"), 100.0 * matrices),
        near("ART") > matrices,
    ));
    criteria.push(Criterion::new(
        "most of ART's bytes go to processes nearby (32 ranks)",
        format!("{:.0} %", 100.0 * art),
        art > 0.5,
    ));
    Ok(FigureResult { rows, chart, criteria })
}

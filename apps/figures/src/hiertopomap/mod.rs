//! Figures 10 to 12 of the HierTopoMap paper: gains of mapping on three machines.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5. The text of the paper gives the largest gains; the bars have no printed values. The system
//! default is that of a launcher: ranks in blocks over the list of nodes, which is in random order for scattered nodes;
//! on Intrepid ranks are round-robin over nodes (XYZT).

use equipoise_apps::Failure;
use equipoise_model::Database;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};
use cases::{Job, PROGRAMS, Program, Site};

mod cases;
mod node;
pub(crate) mod overhead;
pub(crate) mod patterns;
pub(crate) mod ping;

/// Figure 10.
pub(crate) const HIERTOPOMAP_10: Figure = Figure {
    name: "hiertopomap-10",
    title: "Gain of mapping over the default order on a fat tree (Stampede)",
    paper: "Wu, Xiong, Lan 2015, figure 10",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &STAMPEDE),
};

/// Figure 11.
pub(crate) const HIERTOPOMAP_11: Figure = Figure {
    name: "hiertopomap-11",
    title: "Gain of mapping over the default order on scattered nodes of a torus (Kraken)",
    paper: "Wu, Xiong, Lan 2015, figure 11",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &KRAKEN),
};

/// Figure 12.
pub(crate) const HIERTOPOMAP_12: Figure = Figure {
    name: "hiertopomap-12",
    title: "Gain of mapping over the default order on a box of a torus (Intrepid)",
    paper: "Wu, Xiong, Lan 2015, figure 12",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &INTREPID),
};

const NOTES: &str = "Hop-bytes count hops between nodes. The parts of matrices are numbered at random, because figure 9 of the paper shows no \
                     order; gains over the order of METIS, which is a better default, are shown, too. Lists of scattered nodes are in \
                     random order. The columns `paper` are the largest gains in its text. Matrices are generated and their \
                     messages scaled to the size of the paper's matrices, unless --data names a folder with F1.mtx, audikw_1.mtx or \
                     nlpkkt120.mtx. Mappings run without the guard that keeps a better default order. Inside nodes, messages take the \
                     times of table 4. There a message of 16 kB (the stencil's size) takes 16 % (Stampede) or 14 % (Kraken) less time \
                     inside a socket than between sockets, so no mapping inside nodes can save the 23 % of the paper. For matrices, the \
                     best division of every node (exhaustive search) saves at most 14 % of the time on Stampede, and RT saves 6.5 %: \
                     from 1 kB on, a message between sockets takes about 0.75 us more for any size, so the number of messages counts, \
                     but RT minimises bytes. LibTopoMap's recursive mapping uses the partitioner of RT and RB here, so its gains are \
                     close to theirs.";

/// A figure of gains.
struct Gains {
    site: Site,
    /// Processes.
    sizes: &'static [usize],
    small: &'static [usize],
    mappings: &'static [Mapping],
    /// The largest gains of the paper, as fractions: hop-bytes, time, and additional time by mapping inside nodes.
    paper: (f64, f64, Option<f64>),
}

/// A mapping: its name in the figures, and its spec for `--balancer`.
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

/// Lower bounds for the seconds of a mapping to nodes, by mapping inside nodes.
#[derive(Clone, Copy)]
struct Least {
    /// With the best division of every node between its sockets.
    divided_seconds: f64,
    /// If nodes had one socket.
    one_socket_seconds: f64,
}

/// The gains of a program.
struct Gain {
    program: Program,
    processes: usize,
    default_hop_bytes: u64,
    default_seconds: f64,
    /// Hop-bytes and seconds of the default with the parts of a matrix in METIS's order.
    in_metis_order: Option<(u64, f64)>,
    /// Lower bounds for mapping inside nodes after `RT:inter`.
    least: Option<Least>,
    /// By mapping, in the order of the figure: hop-bytes and seconds.
    mapped: Vec<(Mapping, u64, f64)>,
}

impl Gain {
    fn of(&self, mapping: Mapping) -> Result<(u64, f64), Failure> {
        let found = self.mapped.iter().find(|mapped| mapped.0 == mapping);
        found
            .map(|&(_, hop_bytes, seconds)| (hop_bytes, seconds))
            .ok_or_else(|| Failure::bug("a mapping of the figure"))
    }

    /// The fractions of hop-bytes and seconds that are saved.
    fn saved(&self, now: (u64, f64)) -> (f64, f64) {
        saved((self.default_hop_bytes, self.default_seconds), now)
    }

    /// The fractions that are saved relative to the default with the parts of a matrix in METIS's order.
    fn saved_of_metis_order(&self, now: (u64, f64)) -> Option<(f64, f64)> {
        self.in_metis_order.map(|before| saved(before, now))
    }

    fn describe(&self, what: &str) -> String {
        format!("{what} with {} on {} processes", self.program.name, self.processes)
    }
}

/// The fractions of hop-bytes and seconds that are saved.
fn saved(before: (u64, f64), now: (u64, f64)) -> (f64, f64) {
    let saved = |now: f64, before: f64| if before == 0.0 { 0.0 } else { 1.0 - now / before };
    (saved(now.0 as f64, before.0 as f64), saved(now.1, before.1))
}

fn measure(options: &Options, gains: &Gains) -> Result<Vec<Gain>, Failure> {
    let sizes = options.choose(gains.sizes, gains.small);
    let all: Vec<(Program, usize)> = PROGRAMS
        .into_iter()
        .flat_map(|program| sizes.iter().map(move |&processes| (program, processes)))
        .collect();
    let names = all.iter().map(|(program, processes)| format!("{} {processes}", program.name));
    let mut left = all.iter();
    options.sweep(names, |_| {
        let &(program, processes) = left.next().ok_or_else(|| Failure::bug("a case for every name"))?;
        let in_order = program.in_order(processes, options)?;
        let tasks = program.numbered(&in_order, options.seed)?;
        let job = gains.site.job(processes, options.seed)?;
        let cost = |tasks: &Database| -> Result<(u64, f64), Failure> {
            Ok((job.hop_bytes(tasks, &job.default), job.seconds(tasks, &job.default)?))
        };
        let in_metis_order = if program.is_matrix() { Some(cost(&in_order)?) } else { None };
        let (default_hop_bytes, default_seconds) = cost(&tasks)?;
        let (mut mapped, mut least) = (Vec::new(), None);
        for &mapping in gains.mappings {
            let placement = assign(mapping.spec, &tasks, &*job.cores, options.seed)?.pe_of;
            if mapping == RT_INTER {
                least = least_inside(&job, &tasks, &placement)?;
            }
            mapped.push((mapping, job.hop_bytes(&tasks, &placement), job.seconds(&tasks, &placement)?));
        }
        Ok(Gain { program, processes, default_hop_bytes, default_seconds, in_metis_order, least, mapped })
    })
}

/// Lower bounds for mapping inside nodes; none for nodes without sockets.
fn least_inside(job: &Job, tasks: &Database, placement: &[u32]) -> Result<Option<Least>, Failure> {
    let Some(divided) = job.divided(tasks, placement) else { return Ok(None) };
    let divided_seconds = job.seconds(tasks, &divided)?;
    let one_socket = job.seconds_in_one_socket(tasks, placement)?;
    Ok(one_socket.map(|one_socket_seconds| Least { divided_seconds, one_socket_seconds }))
}

fn gains(options: &Options, gains: &Gains) -> Result<FigureResult, Failure> {
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
        ("hop_bytes_saved_of_metis_order", "hop-bytes saved relative to METIS's order"),
        ("time_saved_of_metis_order", "time"),
        ("best_division_milliseconds", "ms, best division"),
        ("one_socket_milliseconds", "ms, one socket"),
    ]);
    for gain in &all {
        let default = ("default", gain.default_hop_bytes, gain.default_seconds);
        let mapped =
            gain.mapped.iter().map(|&(mapping, hop_bytes, seconds)| (mapping.name, hop_bytes, seconds));
        for (name, hop_bytes, seconds) in [default].into_iter().chain(mapped) {
            let (bytes_saved, time_saved) = gain.saved((hop_bytes, seconds));
            let is_ours = is_ours(name);
            let of_metis_order = gain.saved_of_metis_order((hop_bytes, seconds));
            let number = |number: Option<f64>| number.map_or(Cell::Nothing, Cell::Number);
            let least = gain.least.filter(|_| name == RT_INTER.name);
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
                number(of_metis_order.map(|saved| saved.0)),
                number(of_metis_order.map(|saved| saved.1)),
                number(least.map(|least| 1e3 * least.divided_seconds)),
                number(least.map(|least| 1e3 * least.one_socket_seconds)),
            ]);
        }
    }
    let chart = chart(&all, gains)?;
    let mut criteria = largest(&all, gains);
    criteria.extend(growth(&all, gains)?);
    criteria.extend(inside(&all, gains)?);
    criteria.extend(between(&all, gains)?);
    Ok(FigureResult { rows, chart, criteria })
}

/// Whether a mapping is by the paper's algorithms, not by LibTopoMap.
fn is_ours(name: &str) -> bool {
    name.starts_with("RT") || name.starts_with("RB")
}

/// The savings of RT over the number of processes: a line for hop-bytes and a line for time per program.
fn chart(all: &[Gain], gains: &Gains) -> Result<Chart, Failure> {
    let best = *gains.mappings.iter().find(|mapping| **mapping == RT_BOTH).unwrap_or(&RT_INTER);
    let mut series = Vec::new();
    for program in PROGRAMS {
        let of = all.iter().filter(|gain| gain.program == program);
        let points = of.map(|gain| Ok((gain.processes as f64, gain.saved(gain.of(best)?))));
        let points = points.collect::<Result<Vec<_>, Failure>>()?;
        let pick = |of: fn((f64, f64)) -> f64| points.iter().map(move |&(x, saved)| (x, 100.0 * of(saved)));
        series.push(Series::measured(format!("{}: time", program.name), pick(|saved| saved.1)));
        series.push(Series::theory(format!("{}: hop-bytes", program.name), pick(|saved| saved.0)));
    }
    let y = Axis::linear(format!("percent saved by {} (solid: time, dashed: hop-bytes)", best.name));
    Ok(Chart { x: Axis::log("processes"), y, series })
}

/// The fractions of hop-bytes and seconds that are saved, given the remaining ones.
type Saved = fn(&Gain, (u64, f64)) -> Option<(f64, f64)>;

/// The criteria for the largest savings.
fn largest(all: &[Gain], gains: &Gains) -> Vec<Criterion> {
    let (paper_bytes, paper_time, _) = gains.paper;
    let of = |saved: Saved, reference: &str| {
        let mut ours = Vec::new();
        for gain in all {
            for &(mapping, hop_bytes, seconds) in gain.mapped.iter().filter(|mapped| is_ours(mapped.0.name)) {
                let saved = saved(gain, (hop_bytes, seconds));
                ours.extend(saved.map(|(bytes, time)| (bytes, time, gain.describe(mapping.name))));
            }
        }
        let most = |of: fn(&(f64, f64, String)) -> f64| {
            let best = ours.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
            best.map_or((f64::NAN, String::new()), |it| (of(it), it.2.clone()))
        };
        let (bytes, time) = (most(|it| it.0), most(|it| it.1));
        let percent = |share: f64| 100.0 * share;
        [
            Criterion::new(
                format!(
                    "the largest saving of hop-bytes{reference} is within 10 points of the paper's {:.0} %",
                    percent(paper_bytes)
                ),
                format!("{:.1} %, by {}", percent(bytes.0), bytes.1),
                (bytes.0 - paper_bytes).abs() <= 0.1,
            ),
            Criterion::new(
                format!(
                    "the largest saving of time{reference} is at least 50 % (paper: {:.0})",
                    percent(paper_time)
                ),
                format!("{:.1} %, by {}", percent(time.0), time.1),
                time.0 >= 0.5,
            ),
        ]
    };
    let mut criteria = of(|gain, now| Some(gain.saved(now)), "").to_vec();
    criteria.extend(of(|gain, now| gain.saved_of_metis_order(now), " relative to METIS's order"));
    criteria
}

/// The criteria for the gain of matrices, whose sizes are fixed, over the number of processes. In the text of the
/// paper, the gain falls on Stampede and grows on Intrepid.
fn growth(all: &[Gain], gains: &Gains) -> Result<Vec<Criterion>, Failure> {
    let (trend, sign) = match gains.site {
        Site::Stampede => ("less", -1.0),
        Site::Intrepid => ("more", 1.0),
        Site::Kraken => return Ok(Vec::new()),
    };
    let matrices: Vec<&Gain> = all.iter().filter(|gain| gain.program.is_matrix()).collect();
    let sizes = matrices.iter().map(|gain| gain.processes);
    let (Some(fewest), Some(most)) = (sizes.clone().min(), sizes.max()) else { return Ok(Vec::new()) };
    let mean = |processes: usize| -> Result<f64, Failure> {
        let mut saved = Vec::new();
        for gain in matrices.iter().filter(|gain| gain.processes == processes) {
            saved.push(100.0 * gain.saved(gain.of(RT_INTER)?).1);
        }
        Ok(saved.iter().sum::<f64>() / saved.len() as f64)
    };
    let (first, last) = (mean(fewest)?, mean(most)?);
    Ok(vec![Criterion::new(
        format!("matrices: RT:inter saves {trend} time with {most} processes than with {fewest}, on average"),
        format!("{last:.1} and {first:.1} %"),
        sign * (last - first) > 0.0,
    )])
}

/// The criteria for mapping inside nodes.
fn inside(all: &[Gain], gains: &Gains) -> Result<Vec<Criterion>, Failure> {
    let Some(paper) = gains.paper.2 else { return Ok(Vec::new()) };
    let mut further = Vec::new();
    for gain in all {
        let ((_, outside), (_, both)) = (gain.of(RT_INTER)?, gain.of(RT_BOTH)?);
        further.push((1.0 - both / outside, gain));
    }
    let share =
        further.iter().filter(|(saved, _)| *saved >= 0.0).count() as f64 / further.len().max(1) as f64;
    let best = further.iter().max_by(|a, b| a.0.total_cmp(&b.0));
    let (most, case) =
        best.map_or((f64::NAN, String::new()), |(saved, gain)| (*saved, gain.describe(RT_BOTH.name)));
    // The possible savings in the best case, and in any case.
    let mut possible = Vec::new();
    for (_, gain) in &further {
        let (_, outside) = gain.of(RT_INTER)?;
        let left = gain.least.ok_or_else(|| Failure::bug("nodes with sockets"))?;
        let saved =
            [left.divided_seconds, left.one_socket_seconds].map(|left| 100.0 * (1.0 - left / outside));
        possible.push((saved, best.is_some_and(|best| std::ptr::eq(best.1, *gain))));
    }
    let there = possible.iter().find(|it| it.1).map_or([f64::NAN; 2], |it| it.0);
    let anywhere = [0, 1].map(|what| possible.iter().map(|it| it.0[what]).fold(f64::NAN, f64::max));
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
            format!(
                "{:.1} %: {case}; the best division of every node would save {:.1} % there and at most {:.1} %, \
                 nodes with one socket {:.1} % and at most {:.1} %",
                100.0 * most,
                there[0],
                anywhere[0],
                there[1],
                anywhere[1]
            ),
            (0.1..=0.3).contains(&most),
        ),
    ])
}

/// The criteria that compare recursive tree mapping, recursive bipartitioning and LibTopoMap.
fn between(all: &[Gain], gains: &Gains) -> Result<Vec<Criterion>, Failure> {
    if !gains.mappings.contains(&RB_INTER) {
        return Ok(Vec::new());
    }
    let mean = |mapping: Mapping| -> Result<(f64, f64), Failure> {
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
        let criterion = "on average, RT saves at most 1 point fewer hop-bytes than RB";
        return Ok(vec![Criterion::new(criterion, both, tree.0 >= halves.0 - 0.01)]);
    }
    let near = (tree.0 - halves.0).abs() <= 0.05;
    let mut criteria = vec![Criterion::new(
        "on average, the hop-bytes saved by RT and by RB differ by at most 5 points",
        both,
        near,
    )];
    for mapping in [GREEDY, RECURSIVE, RCM] {
        let other = mean(mapping)?;
        criteria.push(Criterion::new(
            format!("on average, {} saves fewer hop-bytes and less time than RT and RB", mapping.name),
            format!(
                "{:.1} % of hop-bytes (both: at least {:.1}), {:.1} % of time (both: at least {:.1})",
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

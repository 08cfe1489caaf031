//! Figures 10 to 12 of the HierTopoMap paper: gains of mapping on three machines.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5. The text of the paper gives the largest gains; the bars have no printed values. It does not say
//! what the system default is, except on Intrepid, where ranks are round-robin over nodes (XYZT). Launchers place ranks
//! round-robin over nodes or in blocks, over a list of nodes that is in random order for scattered nodes.

use equipoise_apps::Failure;
use equipoise_model::Database;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};
use cases::{Job, Order, PROGRAMS, Program, Site};

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
    paper_shows: "on a fat tree mapping saves up to 90 % of hop-bytes and 76 % of time, 22 % more inside nodes",
    we_show: "the same with generated matrices on a model of the machine",
    why: "the cyclic default scatters neighbors; inside nodes table 4 allows less than the paper prints",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &STAMPEDE),
};

/// Figure 11.
pub(crate) const HIERTOPOMAP_11: Figure = Figure {
    name: "hiertopomap-11",
    title: "Gain of mapping over the default order on scattered nodes of a torus (Kraken)",
    paper: "Wu, Xiong, Lan 2015, figure 11",
    paper_shows: "on scattered nodes of a torus mapping saves up to 89 % of hop-bytes and 77 % of time, 23 % more inside nodes",
    we_show: "the same",
    why: "as for hiertopomap-10",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &KRAKEN),
};

/// Figure 12.
pub(crate) const HIERTOPOMAP_12: Figure = Figure {
    name: "hiertopomap-12",
    title: "Gain of mapping over the default order on a box of a torus (Intrepid)",
    paper: "Wu, Xiong, Lan 2015, figure 12",
    paper_shows: "on a box of a torus mapping saves up to 79 % of hop-bytes and 69 % of time, more than LibTopoMap",
    we_show: "the same",
    why: "XYZT scatters unordered ranks; in METIS's order it is a better default",
    takes: "a minute",
    notes: NOTES,
    run: |options| gains(options, &INTREPID),
};

const NOTES: &str = "Hop-bytes count hops between nodes. The columns `saved` are relative to the default that is judged: on Stampede and \
                     Kraken `cyclic`, ranks in METIS's order round-robin over nodes; on Intrepid `unordered`, parts numbered at \
                     random, because figure 9 of the paper shows no order; there `cyclic` is judged, too. `blocks` is METIS's order, \
                     node after node. Mappings start from random numbers and run without the guard that keeps a better default. \
                     The columns `paper` are the largest gains in its text. Matrices are generated with as many rows as the \
                     paper's (kkt:60 and small fem in the small version), unless --data names a folder with F1.mtx, \
                     audikw_1.mtx or nlpkkt120.mtx. Inside nodes, messages take the times of table 4. docs/figures.md has more.";

/// A figure of gains.
struct Gains {
    site: Site,
    /// Processes.
    sizes: &'static [usize],
    small: &'static [usize],
    mappings: &'static [Mapping],
    /// The default that is judged first.
    judged: Default,
    /// The largest gains of the paper, as fractions: hop-bytes, time, and additional time by mapping inside nodes.
    paper: (f64, f64, Option<f64>),
}

/// A default mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Default {
    /// METIS's order, round-robin over nodes.
    Cyclic,
    /// METIS's order, node after node.
    Blocks,
    /// The parts of matrices numbered at random, in the order of the machine's launcher.
    Unordered,
}

const DEFAULTS: [Default; 3] = [Default::Cyclic, Default::Blocks, Default::Unordered];

impl Default {
    fn name(self) -> &'static str {
        match self {
            Default::Cyclic => "cyclic",
            Default::Blocks => "blocks",
            Default::Unordered => "unordered",
        }
    }
}

/// A mapping: its name in the figures, and its spec for `--balancer`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mapping {
    name: &'static str,
    spec: &'static str,
}

const RT_INTER: Mapping = Mapping { name: "RT:inter", spec: "HierTopoMap:inter=tree,intra=off,guard=off" };
/// The spec of `inter+intra` has the parameter `far` in addition.
const RT_BOTH: Mapping = Mapping { name: "RT:inter+intra", spec: "HierTopoMap:inter=tree,guard=off" };
const RT_BYTES: Mapping =
    Mapping { name: "RT:inter+intra by bytes", spec: "HierTopoMap:inter=tree,guard=off" };
const RB_INTER: Mapping = Mapping { name: "RB:inter", spec: "HierTopoMap:inter=bipart,intra=off,guard=off" };
const RB_BOTH: Mapping = Mapping { name: "RB:inter+intra", spec: "HierTopoMap:inter=bipart,guard=off" };
const GREEDY: Mapping = Mapping { name: "LibTopoMap greedy", spec: "LibTopoMap:method=greedy" };
const RECURSIVE: Mapping = Mapping { name: "LibTopoMap recursive", spec: "LibTopoMap:method=recursive" };
const RCM: Mapping = Mapping { name: "LibTopoMap RCM", spec: "LibTopoMap:method=rcm" };

const STAMPEDE: Gains = Gains {
    site: Site::Stampede,
    sizes: &[32, 64, 128, 256, 512, 1024],
    small: &[32, 64],
    mappings: &[RT_INTER, RT_BOTH, RT_BYTES],
    judged: Default::Cyclic,
    paper: (0.90, 0.76, Some(0.22)),
};

const KRAKEN: Gains = Gains {
    site: Site::Kraken,
    sizes: &[96, 192, 384, 768, 1536],
    small: &[96],
    mappings: &[RT_INTER, RT_BOTH, RT_BYTES, RB_INTER, RB_BOTH],
    judged: Default::Cyclic,
    paper: (0.89, 0.77, Some(0.23)),
};

const INTREPID: Gains = Gains {
    site: Site::Intrepid,
    sizes: &[256, 512, 1024, 2048],
    small: &[64, 128],
    mappings: &[RT_INTER, RB_INTER, GREEDY, RECURSIVE, RCM],
    judged: Default::Unordered,
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

/// Hop-bytes and seconds.
type Cost = (u64, f64);

/// The gains of a program.
struct Gain {
    program: Program,
    processes: usize,
    /// In the order of [`DEFAULTS`].
    defaults: [Cost; 3],
    judged: Default,
    /// Lower bounds for mapping inside nodes after `RT:inter`.
    least: Option<Least>,
    /// By mapping, in the order of the figure.
    mapped: Vec<(Mapping, Cost)>,
}

impl Gain {
    fn of(&self, mapping: Mapping) -> Result<Cost, Failure> {
        let found = self.mapped.iter().find(|mapped| mapped.0 == mapping);
        found.map(|&(_, cost)| cost).ok_or_else(|| Failure::bug("a mapping of the figure"))
    }

    /// The fractions of hop-bytes and seconds that are saved relative to the judged default.
    fn saved(&self, now: Cost) -> (f64, f64) {
        self.saved_of(self.judged, now)
    }

    /// The same relative to another default.
    fn saved_of(&self, default: Default, now: Cost) -> (f64, f64) {
        saved(self.defaults[default as usize], now)
    }

    fn describe(&self, what: &str) -> String {
        format!("{what} with {} on {} processes", self.program.name, self.processes)
    }
}

/// The fractions of hop-bytes and seconds that are saved.
fn saved(before: Cost, now: Cost) -> (f64, f64) {
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
        let cost = |tasks: &Database, placement: &[u32]| -> Result<Cost, Failure> {
            Ok((job.hop_bytes(tasks, placement), job.seconds(tasks, placement)?))
        };
        let orders = [Order::Cyclic, Order::Blocks].map(|order| job.default(order));
        let unordered = if gains.site == Site::Intrepid { &orders[0] } else { &orders[1] };
        let defaults = [cost(&in_order, &orders[0])?, cost(&in_order, &orders[1])?, cost(&tasks, unordered)?];
        let (mut mapped, mut least) = (Vec::new(), None);
        for &mapping in gains.mappings {
            let far = job.far().filter(|_| [RT_BOTH, RB_BOTH].contains(&mapping));
            let spec = far.map_or(mapping.spec.into(), |far| format!("{},{far}", mapping.spec));
            let placement = assign(&spec, &tasks, &*job.cores, options.seed)?.pe_of;
            if mapping == RT_INTER {
                least = least_inside(&job, &tasks, &placement)?;
            }
            mapped.push((mapping, cost(&tasks, &placement)?));
        }
        Ok(Gain { program, processes, defaults, judged: gains.judged, least, mapped })
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
        ("hop_bytes_saved_of_cyclic", "hop-bytes saved of cyclic"),
        ("time_saved_of_cyclic", "time"),
        ("hop_bytes_saved_of_blocks", "hop-bytes saved of blocks"),
        ("time_saved_of_blocks", "time"),
        ("hop_bytes_saved_of_unordered", "hop-bytes saved of unordered"),
        ("time_saved_of_unordered", "time"),
        ("best_division_milliseconds", "ms, best division"),
        ("one_socket_milliseconds", "ms, one socket"),
    ]);
    for gain in &all {
        let defaults = DEFAULTS.map(|default| (default.name(), gain.defaults[default as usize]));
        let mapped = gain.mapped.iter().map(|&(mapping, cost)| (mapping.name, cost));
        for (name, cost) in defaults.into_iter().chain(mapped) {
            let (bytes_saved, time_saved) = gain.saved(cost);
            let is_ours = is_ours(name);
            let least = gain.least.filter(|_| name == RT_INTER.name);
            let of_defaults = DEFAULTS.into_iter().flat_map(|default| {
                let (bytes, time) = gain.saved_of(default, cost);
                [Cell::Number(bytes), Cell::Number(time)]
            });
            let cells = [
                Cell::Text(gain.program.name.into()),
                Cell::Count(gain.processes as u64),
                Cell::Text(name.into()),
                Cell::Count(cost.0),
                Cell::Number(1e3 * cost.1),
                Cell::Number(bytes_saved),
                Cell::Number(time_saved),
                if is_ours { Cell::Number(gains.paper.0) } else { Cell::Nothing },
                if is_ours { Cell::Number(gains.paper.1) } else { Cell::Nothing },
            ];
            rows.push(cells.into_iter().chain(of_defaults).chain([
                Cell::maybe(least.map(|least| 1e3 * least.divided_seconds)),
                Cell::maybe(least.map(|least| 1e3 * least.one_socket_seconds)),
            ]));
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

/// The criteria for the largest savings.
fn largest(all: &[Gain], gains: &Gains) -> Vec<Criterion> {
    let (paper_bytes, paper_time, _) = gains.paper;
    let of = |default: Default| {
        let mut ours = Vec::new();
        for gain in all {
            for &(mapping, cost) in gain.mapped.iter().filter(|mapped| is_ours(mapped.0.name)) {
                let (bytes, time) = gain.saved_of(default, cost);
                ours.push((bytes, time, gain.describe(mapping.name)));
            }
        }
        let most = |of: fn(&(f64, f64, String)) -> f64| {
            let best = ours.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
            best.map_or((f64::NAN, String::new()), |it| (of(it), it.2.clone()))
        };
        let (bytes, time) = (most(|it| it.0), most(|it| it.1));
        let percent = |share: f64| 100.0 * share;
        let name = default.name();
        [
            Criterion::new(
                format!(
                    "the largest saving of hop-bytes relative to the {name} default is within 10 points of the paper's {:.0} %",
                    percent(paper_bytes)
                ),
                format!("{:.1} %, by {}", percent(bytes.0), bytes.1),
                (bytes.0 - paper_bytes).abs() <= 0.1,
            ),
            Criterion::new(
                format!(
                    "the largest saving of time relative to the {name} default is at least 50 % (paper: {:.0})",
                    percent(paper_time)
                ),
                format!("{:.1} %, by {}", percent(time.0), time.1),
                time.0 >= 0.5,
            ),
        ]
    };
    let mut criteria = of(gains.judged).to_vec();
    if gains.site == Site::Intrepid {
        let why = "in METIS's order consecutive ranks exchange bytes, and XYZT puts them on neighboring nodes already";
        criteria.extend(of(Default::Cyclic).map(|criterion| criterion.because(why)));
    }
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
    let criterion = Criterion::new(
        format!("matrices: RT:inter saves {trend} time with {most} processes than with {fewest}, on average"),
        format!("{last:.1} and {first:.1} %"),
        sign * (last - first) > 0.0,
    );
    let why = "the default is much faster with 2048 processes, where the nodes are a torus instead of a mesh";
    Ok(vec![if gains.site == Site::Intrepid { criterion.because(why) } else { criterion }])
}

/// The fractions of time saved inside nodes: by RT, by the best division, and in nodes with one socket.
type Inside<'a> = (f64, [f64; 2], &'a Gain);

/// The criteria for mapping inside nodes.
fn inside(all: &[Gain], gains: &Gains) -> Result<Vec<Criterion>, Failure> {
    let Some(paper) = gains.paper.2 else { return Ok(Vec::new()) };
    let mut further = Vec::new();
    for gain in all {
        let ((_, outside), (_, both)) = (gain.of(RT_INTER)?, gain.of(RT_BOTH)?);
        further.push((1.0 - both / outside, gain));
    }
    let count = further.len().max(1) as f64;
    let share = further.iter().filter(|(saved, _)| *saved >= 0.0).count() as f64 / count;
    // By case: the saving of RT, and those of the best division and of nodes with one socket.
    let mut possible = Vec::new();
    for &(saved, gain) in &further {
        let (_, outside) = gain.of(RT_INTER)?;
        let left = gain.least.ok_or_else(|| Failure::bug("nodes with sockets"))?;
        let least = [left.divided_seconds, left.one_socket_seconds].map(|left| 1.0 - left / outside);
        possible.push((saved, least, gain));
    }
    let percent = |of: &dyn Fn(&Inside) -> f64| {
        let all = || possible.iter().map(of);
        [100.0 * all().fold(f64::NAN, f64::max), 100.0 * all().sum::<f64>() / count]
    };
    let most = percent(&|it| it.0);
    let [divided, one_socket] = [0, 1].map(|which| percent(&move |it| it.1[which]));
    let at_best = possible.iter().max_by(|a, b| a.1[0].total_cmp(&b.1[0]));
    let (ours, best, case) = at_best.map_or((f64::NAN, f64::NAN, String::new()), |(saved, least, gain)| {
        (100.0 * saved, 100.0 * least[0], gain.describe(RT_BOTH.name))
    });
    Ok(vec![
        Criterion::new(
            "RT:inter+intra takes no longer than RT:inter in at least 80 % of the cases",
            format!("{:.0} % of {}", 100.0 * share, further.len()),
            share >= 0.8,
        ),
        Criterion::new(
            "where the best division of nodes saves most time, RT:inter+intra saves at least 80 % of that",
            format!("{ours:.1} of {best:.1} %: {case}"),
            ours >= 0.8 * best,
        )
        .because("RT minimises the sum over a node, and the time is that of its busiest core"),
        Criterion::new(
            format!("mapping inside nodes saves at least {:.0} % in the best case, as in the paper", 100.0 * paper),
            format!(
                "{:.1} %, {:.1} on average; the best division of every node at most {:.1} % ({:.1}), nodes with one socket \
                 at most {:.1} % ({:.1})",
                most[0], most[1], divided[0], divided[1], one_socket[0], one_socket[1]
            ),
            most[0] >= 100.0 * paper,
        )
        .because(
            "the best division of nodes allows little more on Stampede and much less on Kraken, and RT reaches a part of it",
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
    // LibTopoMap's recursive mapping uses the partitioner of RT and RB here, so it is no peer.
    for mapping in [GREEDY, RCM] {
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

//! Tables 5 to 7 of the HierTopoMap paper: the running time of mapping.
//!
//! J. Wu, X. Xiong, Z. Lan, "Hierarchical task mapping for parallel applications on supercomputers", J. Supercomput.
//! 71, 2015, section 5.2.2. Times are CPU times of one thread, the least of three runs, next to those of the paper on its
//! own machines. The steps are those of the paper: joining neighbors (not needed on machines that provide their tree),
//! making groups as large as nodes, mapping groups to nodes, mapping processes inside nodes.

use std::sync::Arc;
use std::time::Instant;

use cpu_time::ThreadTime;
use equipoise_apps::Failure;
use equipoise_model::graph::Graph;
use equipoise_model::{Database, Topology, topology};
use equipoise_strategies::mapping::hier_topo_map::nodes::Nodes;
use equipoise_strategies::mapping::hier_topo_map::{HierTopoMap, Inter, joining};
use equipoise_strategies::workloads;

use super::cases::{Site, box_of};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options, Taken, on_one_thread};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};
use crate::statistics;

/// Table 5.
pub(crate) const HIERTOPOMAP_TABLE5: Figure = Figure {
    name: "hiertopomap-table5",
    title: "Running time of mapping on a fat tree (Stampede)",
    paper: "Wu, Xiong, Lan 2015, table 5",
    paper_shows: "mapping up to 8192 processes to a fat tree takes 0.3 s",
    we_show: "CPU times of our mapper",
    why: "grouping dominates, as in the paper",
    takes: "a minute",
    notes: NOTES,
    run: |options| overhead(options, &STAMPEDE),
};

/// Table 6.
pub(crate) const HIERTOPOMAP_TABLE6: Figure = Figure {
    name: "hiertopomap-table6",
    title: "Running time of mapping on scattered nodes of a torus (Kraken)",
    paper: "Wu, Xiong, Lan 2015, table 6",
    paper_shows: "recursive bipartitioning takes less time than recursive tree mapping on large tori",
    we_show: "CPU times of our mapper",
    why: "only tree mapping joins neighbors",
    takes: "a minute",
    notes: NOTES,
    run: |options| overhead(options, &KRAKEN),
};

/// Table 7.
pub(crate) const HIERTOPOMAP_TABLE7: Figure = Figure {
    name: "hiertopomap-table7",
    title: "Running time of mapping on a box of a torus (Intrepid)",
    paper: "Wu, Xiong, Lan 2015, table 7",
    paper_shows: "mapping to Intrepid takes up to 45 s, mostly for joining neighbors",
    we_show: "CPU times of our mapper",
    why: "our neighbor joining is quadratic and takes hundredths of a second",
    takes: "2 minutes",
    notes: NOTES,
    run: |options| overhead(options, &INTREPID),
};

const NOTES: &str = "Processes multiply a matrix with the structure of nlpkkt120 and a twentieth of its size. Times are CPU times of one thread, the least of three runs \
                     on this machine; those of the paper are from the machine of the table. The limit is three times the printed time on \
                     Stampede, the fastest of its machines, for the same number of processes (interpolated for Kraken).";

/// A table of times of mapping.
struct Overhead {
    site: Site,
    /// The numbers of processes in the paper.
    sizes: &'static [usize],
    /// The methods of mapping to nodes, and by size the paper's seconds: join, groups, nodes, inside, total.
    methods: &'static [(Inter, &'static [[f64; 5]])],
    /// The mappers of LibTopoMap, and by size the paper's seconds.
    library: &'static [(&'static str, &'static [f64])],
}

const TREE: &str = "RT";
const BIPART: &str = "RB";
const STEPS: [&str; 5] = ["join", "groups", "nodes", "inside", "total"];

const STAMPEDE: Overhead = Overhead {
    site: Site::Stampede,
    sizes: &[256, 512, 1024, 2048, 4096, 8192],
    methods: &[(
        Inter::Tree,
        &[
            [0.000, 0.003, 0.000, 0.000, 0.003],
            [0.001, 0.005, 0.001, 0.000, 0.007],
            [0.001, 0.024, 0.001, 0.000, 0.027],
            [0.007, 0.030, 0.002, 0.001, 0.040],
            [0.008, 0.120, 0.005, 0.002, 0.135],
            [0.032, 0.261, 0.029, 0.002, 0.324],
        ],
    )],
    library: &[],
};

const KRAKEN: Overhead = Overhead {
    site: Site::Kraken,
    sizes: &[192, 384, 768, 1536, 3072, 6144],
    methods: &[
        (
            Inter::Tree,
            &[
                [0.000, 0.006, 0.001, 0.001, 0.008],
                [0.001, 0.012, 0.002, 0.001, 0.016],
                [0.003, 0.022, 0.012, 0.007, 0.044],
                [0.011, 0.053, 0.012, 0.005, 0.081],
                [0.042, 0.088, 0.021, 0.001, 0.152],
                [0.180, 0.192, 0.045, 0.007, 0.425],
            ],
        ),
        (
            Inter::Bipart,
            &[
                [0.0, 0.006, 0.001, 0.001, 0.008],
                [0.0, 0.013, 0.002, 0.001, 0.016],
                [0.0, 0.026, 0.005, 0.002, 0.033],
                [0.0, 0.046, 0.021, 0.003, 0.070],
                [0.0, 0.102, 0.043, 0.004, 0.149],
                [0.0, 0.198, 0.054, 0.007, 0.259],
            ],
        ),
    ],
    library: &[],
};

const INTREPID: Overhead = Overhead {
    site: Site::Intrepid,
    sizes: &[256, 512, 1024, 2048, 4096, 8192],
    methods: &[
        (
            Inter::Tree,
            &[
                [0.040, 0.079, 0.051, 0.0, 0.170],
                [0.155, 0.167, 0.120, 0.0, 0.442],
                [0.608, 0.351, 0.277, 0.0, 1.236],
                [2.438, 0.732, 0.634, 0.0, 3.804],
                [9.724, 1.536, 1.424, 0.0, 12.683],
                [38.738, 3.229, 3.175, 0.0, 45.143],
            ],
        ),
        (
            Inter::Bipart,
            &[
                [0.0, 0.082, 0.071, 0.0, 0.153],
                [0.0, 0.174, 0.162, 0.0, 0.336],
                [0.0, 0.366, 0.364, 0.0, 0.730],
                [0.0, 0.763, 0.824, 0.0, 1.586],
                [0.0, 1.596, 1.828, 0.0, 3.424],
                [0.0, 3.354, 4.014, 0.0, 7.368],
            ],
        ),
    ],
    library: &[
        ("greedy", &[0.096, 0.380, 1.525]),
        ("recursive", &[12.324, 36.736, 133.052]),
        ("rcm", &[0.005, 0.012, 0.028]),
    ],
};

/// The running time of a mapping.
struct Took {
    mapper: &'static str,
    processes: usize,
    nodes: usize,
    /// CPU time, in the order of [`STEPS`]; only the total for LibTopoMap.
    seconds: [f64; 5],
    /// The whole mapping.
    taken: Taken,
    /// The printed times, if there are any.
    paper: Option<[f64; 5]>,
}

/// The cores of a job: whole switches on Stampede, part of a torus elsewhere.
fn cores(site: Site, processes: usize) -> Result<Arc<dyn Topology>, Failure> {
    let nodes = processes / site.per_node();
    Ok(match site {
        Site::Stampede => topology::parse(&format!("fattree:{}:16*tree:2:8", nodes / 16))?,
        Site::Kraken => {
            let whole = box_of((2 * nodes).next_power_of_two());
            topology::parse(&format!("torus:{whole}[random:{nodes}]*tree:2:6"))?
        }
        Site::Intrepid => {
            let kind = if nodes < 512 { "mesh" } else { "torus" };
            topology::parse(&format!("{kind}:{}*tree:4", box_of(nodes)))?
        }
    })
}

/// The number of runs of a mapping; the least time counts.
const REPEATS: usize = 3;

/// The seconds of every step of the mapping.
fn steps(
    site: Site,
    tasks: &Graph,
    cores: &dyn Topology,
    inter: Inter,
    seed: u64,
) -> Result<([f64; 5], Taken), Failure> {
    let mapper = HierTopoMap { inter, intra: site != Site::Intrepid, ..HierTopoMap::default() };
    let available: Vec<u32> = (0..cores.pes() as u32).collect();
    let mut least = ([f64::INFINITY; 5], Taken::default());
    for _ in 0..REPEATS {
        let nodes = Nodes::of(cores, &available)?;
        let begin = Instant::now();
        let mut clock = ThreadTime::now();
        let mut lap = || std::mem::replace(&mut clock, ThreadTime::now()).elapsed().as_secs_f64();
        let tree = match inter {
            Inter::Bipart => nodes.tree(inter)?,
            // Nodes are joined as in the paper, even if the machine provides its tree.
            _ => joining::join(nodes.pes.len(), |node, row| nodes.distances_from(node, row))
                .map_err(Failure::bug)?,
        };
        let join = lap();
        let group_of = mapper.groups(tasks, &nodes, seed)?;
        let groups = tasks.quotient(&group_of, nodes.pes.len());
        let grouped = lap();
        let node_of_group = mapper.outside(&groups, &nodes, &tree, seed)?;
        let node_of: Vec<u32> = group_of.iter().map(|&group| node_of_group[group as usize]).collect();
        let outside = lap();
        mapper.inside(tasks, &nodes, &node_of, seed)?;
        let inside = lap();
        let wall = begin.elapsed().as_secs_f64();
        // In the paper, bipartitioning is part of mapping to nodes.
        let parts = if inter == Inter::Bipart {
            [0.0, grouped, join + outside, inside]
        } else {
            [join, grouped, outside, inside]
        };
        let whole: f64 = parts.iter().sum();
        if whole < least.0[4] {
            let taken = Taken { wall, cpu: whole };
            least = ([parts[0], parts[1], parts[2], parts[3], whole], taken);
        }
    }
    Ok(least)
}

fn measure(options: &Options, table: &Overhead) -> Result<Vec<Took>, Failure> {
    let sizes = options.choose(table.sizes, &table.sizes[..2]);
    let matrix = if options.small { "kkt:10" } else { "kkt:44" };
    let all = options.sweep(sizes, |&processes| {
        let at = sizes
            .iter()
            .position(|&size| size == processes)
            .ok_or_else(|| Failure::bug("a size of the table"))?;
        let cores = cores(table.site, processes)?;
        let database: Database =
            workloads::load(&format!("spmv:{processes},{matrix}"))?.remap(processes as u32);
        let tasks = Graph::of(&database);
        let nodes = processes / table.site.per_node();
        let mut took = Vec::new();
        for (inter, paper) in table.methods {
            let mapper = if *inter == Inter::Bipart { BIPART } else { TREE };
            let run = || steps(table.site, &tasks, &*cores, *inter, options.seed);
            let (seconds, taken) = on_one_thread(run)??;
            let paper = paper.get(at).copied();
            took.push(Took { mapper, processes, nodes, seconds, taken, paper });
        }
        for (method, paper) in table.library {
            let spec = format!("LibTopoMap:method={method}");
            let run = || Taken::of(|| assign(&spec, &database, &*cores, options.seed));
            let mut least = Taken { wall: f64::INFINITY, cpu: f64::INFINITY };
            for _ in 0..REPEATS {
                let (taken, answer) = on_one_thread(run)?;
                answer?;
                least = if taken.cpu < least.cpu { taken } else { least };
            }
            let whole = |seconds: f64| [f64::NAN, f64::NAN, f64::NAN, f64::NAN, seconds];
            let paper = paper.get(at).map(|&seconds| whole(seconds));
            let seconds = whole(least.cpu);
            took.push(Took { mapper: method, processes, nodes, seconds, taken: least, paper });
        }
        Ok(took)
    })?;
    Ok(all.into_iter().flatten().collect())
}

fn overhead(options: &Options, table: &Overhead) -> Result<FigureResult, Failure> {
    let all = measure(options, table)?;
    let mut columns = vec![
        ("mapper".to_string(), "mapper".to_string()),
        ("processes".into(), "processes".into()),
        ("nodes".into(), "nodes".into()),
    ];
    for step in STEPS {
        columns.push((format!("{step}_milliseconds"), format!("{step} ms")));
        columns.push((format!("paper_{step}_milliseconds"), "paper".into()));
    }
    let mut rows = Rows::new(columns);
    for took in &all {
        let name = [
            Cell::Text(took.mapper.into()),
            Cell::Count(took.processes as u64),
            Cell::Count(took.nodes as u64),
        ];
        let cell = |seconds: f64| if seconds.is_nan() { Cell::Nothing } else { Cell::Number(1e3 * seconds) };
        let steps = (0..STEPS.len()).flat_map(|step| {
            [cell(took.seconds[step]), took.paper.map_or(Cell::Nothing, |paper| cell(paper[step]))]
        });
        rows.push(name.into_iter().chain(steps));
    }
    let of = |mapper: &'static str| all.iter().filter(move |took| took.mapper == mapper).collect::<Vec<_>>();
    let mut series = Vec::new();
    let mappers = table.methods.iter().map(|(inter, _)| if *inter == Inter::Bipart { BIPART } else { TREE });
    for mapper in mappers.chain(table.library.iter().map(|(method, _)| *method)) {
        let times = of(mapper);
        series.push(Series::measured(
            mapper,
            times.iter().map(|took| (took.processes as f64, took.seconds[4])),
        ));
        let printed = times.iter().filter_map(|took| Some((took.processes as f64, took.paper?[4])));
        series.push(Series::paper(format!("{mapper} in the paper"), printed));
    }
    let chart = Chart { x: Axis::log("processes"), y: Axis::log("seconds"), series };
    Ok(FigureResult { rows, chart, criteria: criteria(table, &of(TREE), &of(BIPART)) })
}

/// The growth exponent of the time in the number of nodes, over the last four sizes; smaller sizes take too little time.
fn exponent(times: &[&Took], step: usize) -> f64 {
    let last = &times[times.len().saturating_sub(4)..];
    let point = |took: &&Took| (took.nodes as f64, took.seconds[step].max(1e-9));
    statistics::exponent(last.iter().map(point))
}

/// The printed total seconds on Stampede, interpolated over logarithms between the printed numbers of processes; for fewer
/// processes the time of the least number.
fn of_stampede(processes: usize) -> f64 {
    let [(_, seconds)] = STAMPEDE.methods else { return f64::NAN };
    let log = |at: usize| ((STAMPEDE.sizes[at] as f64).ln(), seconds[at][4].ln());
    let above = STAMPEDE.sizes.partition_point(|&size| size < processes);
    if above == 0 || above == STAMPEDE.sizes.len() {
        return seconds[above.min(seconds.len() - 1)][4];
    }
    let ((low, at_low), (high, at_high)) = (log(above - 1), log(above));
    (at_low + ((processes as f64).ln() - low) / (high - low) * (at_high - at_low)).exp()
}

fn criteria(table: &Overhead, trees: &[&Took], halves: &[&Took]) -> Vec<Criterion> {
    let within = |name: &str, times: &[&Took]| {
        Criterion::every(
            format!(
                "{name} takes at most 3 times the printed time for the same number of processes on Stampede"
            ),
            times,
            // Relative to the limit, so that items of different limits compare.
            |took| 1.0 - took.seconds[4] / (3.0 * of_stampede(took.processes)),
            |took| {
                let (ours, paper) = (1e3 * took.seconds[4], 1e3 * of_stampede(took.processes));
                format!("{ours:.1} ms with {} processes, Stampede {paper:.0}", took.processes)
            },
        )
    };
    let mut criteria = vec![within(TREE, trees)];
    let grows = exponent(trees, 0);
    criteria.push(Criterion::new(
        "the time of neighbor joining grows with the number of nodes: exponent at most 2.2",
        format!("{grows:.2}"),
        grows <= 2.2,
    ));
    if let Some(took) = trees.iter().find(|took| table.site == Site::Stampede && took.processes == 8192) {
        let criterion = Criterion::new(
            "mapping 8192 processes takes at most 0.3 s of wall-clock time on one thread",
            format!("{:.3} s", took.taken.wall),
            took.taken.wall <= 0.3,
        );
        criteria.push(criterion.of_wall_time(took.taken));
    }
    if let Some(took) = trees.iter().find(|took| table.site == Site::Intrepid && took.nodes == 2048) {
        criteria.push(Criterion::new(
            "joining 2048 nodes takes at most 0.3 s",
            format!("{:.3} s", took.seconds[0]),
            took.seconds[0] <= 0.3,
        ));
    }
    if halves.is_empty() {
        return criteria;
    }
    criteria.push(within(BIPART, halves));
    let least = trees.iter().map(|took| took.nodes).max().unwrap_or(0).min(256);
    criteria.push(Criterion::every(
        format!("RB takes less than RT from {least} nodes on"),
        trees.iter().zip(halves).filter(|(tree, _)| tree.nodes >= least),
        |(tree, half)| tree.seconds[4] - half.seconds[4],
        |(tree, half)| {
            format!(
                "{:.1} ms, RT {:.1}, on {} nodes",
                1e3 * half.seconds[4],
                1e3 * tree.seconds[4],
                tree.nodes
            )
        },
    ));
    let grows = exponent(halves, 4);
    criteria.push(Criterion::new(
        "RB's time grows about like n log n: exponent at most 1.4",
        format!("{grows:.2}"),
        grows <= 1.4,
    ));
    criteria
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_interpolated_between_the_numbers_of_processes_on_stampede() {
        let near = |processes: usize, seconds: f64| {
            let found = of_stampede(processes);
            assert!((found - seconds).abs() < 1e-9, "{processes}: {found}");
        };
        near(192, 0.003);
        near(256, 0.003);
        near(4096, 0.135);
        near(8192, 0.324);
        // In logarithms, 1448.15 is halfway between 1024 and 2048.
        let between = of_stampede(1448);
        assert!((between - (0.027f64 * 0.040).sqrt()).abs() < 1e-4, "{between}");
    }
}

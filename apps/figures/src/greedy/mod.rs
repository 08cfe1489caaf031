//! Figures 3 and 7 of the paper on the contention-aware greedy mapper: the accuracy of its estimate, and its running time.
//!
//! G. De Petris, R. Perego, "A new mapping heuristic for last generation multicomputers" (report C94-09, 1994), sections
//! 4.1 and 5.3. The paper has a largest error of 5.8 % and a mean error of 1.7 % for 40 random graphs with seven partners per
//! task and a byte every eight cycles. It maps 400 tasks in less than 25 seconds.

use std::sync::Arc;

use equipoise_apps::Failure;
use equipoise_model::{Topology, topology};
use equipoise_network::program::{Costs, Model, OVERLAP, Program, ProgramSimulation, execute_on, generate};
use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::registry;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options, Taken, on_one_thread};
use crate::rows::{Cell, Rows};
use crate::statistics;

pub(crate) mod many;
pub(crate) mod regular;
pub(crate) mod tables;

/// Figure 3.
pub(crate) const GREEDY_3: Figure = Figure {
    name: "greedy-3",
    title: "The estimate F and the simulated completion time of random programs on random places of a mesh",
    paper: "De Petris, Perego 1994, figure 3",
    paper_shows: "the estimate F is within 1.7 % of the simulated time in the mean, 5.8 % at most",
    we_show: "the same for random programs, with several message lengths and iterations",
    why: "F leaves out cycles whose number hardly depends on the length of messages",
    takes: "20 seconds",
    notes: "The paper gives neither the length of messages nor the cost of sends and receives (here 10 cycles each, which are \
            part of F). For iterative programs the cycles missing in F are about the same for short and long messages, so its \
            error falls with the length of messages: the criteria are for at least 10 iterations and 64 flits. Single \
            iterations are shown without a criterion: their error is 1.5 to 2.3 % for any length, because the completion time \
            is that of one chain of messages. `overlap`: messages share a phase if they overlap by at least this fraction of their \
            latency.\n",
    run: errors,
};

/// Figure 7.
pub(crate) const GREEDY_7: Figure = Figure {
    name: "greedy-7",
    title: "Time to map a program on the smallest square mesh",
    paper: "De Petris, Perego 1994, figure 7",
    paper_shows: "mapping 400 tasks takes less than 25 s and grows between the best and the worst case",
    we_show: "the time of our mapper",
    why: "F is updated step by step, which is faster than the paper's best case",
    takes: "a minute",
    notes: "The theoretical time is P l a log a in the worst case and P l a in the best case, for P phases, l links and a \
            channels; the curves go through the measured time of the most tasks. P a here is the sum of the channels of all \
            phases, because a channel costs nothing in other phases. `s` is the CPU time of all runs of the mapper, `one run` that \
            of the paper's algorithm (`paper=on`). The growth exponent is fitted to programs of at least 400 tasks; for smaller \
            programs constant costs dominate. The exponent is below that of the paper's best case, so a criterion is missed: F \
            is updated from step to step, and placing a task routes only its own channels, over about sqrt(l) links each, not \
            over all l links as in the paper's best case.\n",
    run: times,
};

/// The simulated completion time of a program, in cycles.
pub(crate) fn cycles(
    program: &Program,
    machine: &Arc<dyn Topology>,
    places: &[u32],
    costs: Costs,
) -> Result<u64, Failure> {
    Ok(execute_on(program, machine, places, costs)?.cycles)
}

/// The model of a program with a simulation on a machine.
pub(crate) fn modelled(
    program: &Program,
    machine: &Arc<dyn Topology>,
    costs: Costs,
) -> Result<Model, Failure> {
    Ok(Model::of(program, costs, OVERLAP)?.with_simulation(ProgramSimulation::new(program, machine, costs)))
}

/// `ContentionLB` with at most one process per PE, as in the paper.
pub(crate) const ALL_RUNS: &str = "ContentionLB:share=off";

/// `ContentionLB`, whose processes may share PEs.
pub(crate) const SHARING: &str = "ContentionLB";

/// The algorithm of the paper, a single run; processes may share PEs.
pub(crate) const ONE_RUN: &str = "ContentionLB:paper=on";

/// The same with at most one process per PE.
pub(crate) const ONE_EACH: &str = "ContentionLB:paper=on,share=off";

/// The placement of a program by a strategy.
pub(crate) fn mapped(
    spec: &str,
    model: &Model,
    machine: &dyn Topology,
    seed: u64,
) -> Result<Vec<u32>, Failure> {
    let strategy = registry::parse(spec, &[])?.strategy;
    let database = model.database(machine.pes() as u32);
    Ok(strategy.assign_program(model, &database, machine, seed)?.pe_of)
}

/// The smallest square mesh with a PE for every task.
fn square(tasks: usize) -> Result<Arc<dyn Topology>, Failure> {
    let side = (1..).find(|side| side * side >= tasks).unwrap_or(tasks);
    Ok(topology::parse(&format!("mesh:{side}x{side}"))?)
}

/// The parameters of the programs of figure 3, and of their phases.
#[derive(Clone, Copy)]
struct Setting {
    iterations: u64,
    flits: u64,
    overlap: f64,
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} iterations, {} flits", self.iterations, self.flits)
    }
}

/// The results of a setting: simulated and estimated completion times in cycles, and the mean number of phases.
struct Errors {
    setting: Setting,
    ends: Vec<(f64, f64)>,
    phases: f64,
}

impl Errors {
    fn of(setting: Setting, graphs: u64, seed: u64) -> Result<Errors, Failure> {
        let Setting { iterations, flits, overlap } = setting;
        let (mut ends, mut phases) = (Vec::new(), 0);
        for graph in 0..graphs {
            let tasks = 4 + (graph * 196 / (graphs - 1).max(1)) as usize;
            let from = seed.wrapping_add(graph);
            let program = generate::known(&format!(
                "random:n={tasks},iterations={iterations},flits={flits},seed={from}"
            ));
            let machine = square(tasks)?;
            let places = generate::permutation(machine.pes(), from)[..tasks].to_vec();
            let model = Model::of(&program, Costs::default(), overlap)?;
            let estimate = Model::cycles(Estimate::of(&model, &*machine, &Speeds::default(), &places));
            ends.push((cycles(&program, &machine, &places, Costs::default())? as f64, estimate));
            phases += model.phases.len();
        }
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Errors { setting, ends, phases: phases as f64 / graphs as f64 })
    }

    fn relative(&self) -> impl Iterator<Item = f64> {
        self.ends.iter().map(|(end, estimate)| estimate / end - 1.0)
    }

    fn mean(&self) -> f64 {
        self.relative().map(f64::abs).sum::<f64>() / self.ends.len() as f64
    }

    fn max(&self) -> f64 {
        self.relative().map(f64::abs).fold(0.0, f64::max)
    }

    fn bias(&self) -> f64 {
        self.relative().sum::<f64>() / self.ends.len() as f64
    }
}

fn errors(options: &Options) -> Result<FigureResult, Failure> {
    let setting = |iterations, flits, overlap| Setting { iterations, flits, overlap };
    let mut settings = vec![setting(10, 64, OVERLAP), setting(1, 16, OVERLAP)];
    if !options.small {
        let more = [(10, 16), (1, 64), (20, 64), (1, 256), (10, 256)];
        settings.extend(more.map(|(iterations, flits)| setting(iterations, flits, OVERLAP)));
        settings.extend([setting(10, 64, 0.25), setting(10, 64, 0.75)]);
    }
    let graphs = if options.small { 5 } else { 40 };
    let all = options.sweep(settings, |setting| Errors::of(setting, graphs, options.seed))?;
    let mut rows = Rows::new([
        ("iterations", "iterations"),
        ("flits", "flits"),
        ("overlap", "overlap"),
        ("mean_error", "mean error"),
        ("max_error", "largest"),
        ("bias", "bias"),
        ("phases", "phases"),
        ("paper_mean_error", "paper: mean"),
        ("paper_max_error", "largest"),
    ]);
    for errors in &all {
        rows.push([
            Cell::Count(errors.setting.iterations),
            Cell::Count(errors.setting.flits),
            Cell::Number(errors.setting.overlap),
            Cell::Number(errors.mean()),
            Cell::Number(errors.max()),
            Cell::Number(errors.bias()),
            Cell::Number(errors.phases),
            Cell::Number(0.017),
            Cell::Number(0.058),
        ]);
    }
    let shown = &all[0];
    let points =
        |of: fn(&(f64, f64)) -> f64| (1..).map(f64::from).zip(shown.ends.iter().map(of)).collect::<Vec<_>>();
    let chart = Chart {
        x: Axis::linear("program, by completion time"),
        y: Axis::linear("cycles"),
        series: vec![
            Series::measured("simulated", points(|ends| ends.0)),
            Series::measured("estimated", points(|ends| ends.1)),
        ],
    };
    let long = || all.iter().filter(|it| it.setting.flits >= 64 && it.setting.iterations >= 10);
    let percent = |part: f64, errors: &&Errors| format!("{:.2} % with {}", 100.0 * part, errors.setting);
    let criteria = vec![
        Criterion::every(
            "where messages are long and repeated 10 times or more, the mean error is at most 1.7 %",
            long(),
            |errors| 0.017 - errors.mean(),
            |errors| percent(errors.mean(), errors),
        ),
        Criterion::every(
            "where messages are long and repeated 10 times or more, the largest error is at most 5.8 %",
            long(),
            |errors| 0.058 - errors.max(),
            |errors| percent(errors.max(), errors),
        ),
    ];
    Ok(FigureResult { rows, chart, criteria })
}

/// The time to map a program, and the number of operations in theory.
struct Timed {
    kind: &'static str,
    tasks: usize,
    /// All runs of the mapper.
    taken: Taken,
    /// CPU time of one run.
    one_run_seconds: f64,
    /// l times the number of channels of all phases; `worst` is this number times log a.
    best: f64,
    worst: f64,
}

fn timed(kind: &'static str, side: usize, seed: u64) -> Result<Timed, Failure> {
    let tasks = side * side;
    let program = generate::known(&match kind {
        MESHES => format!("mesh:sizes={side}x{side},iterations=1"),
        _ => format!("random:n={tasks},degree=5.5,iterations=1,seed={seed}"),
    });
    let machine = square(tasks)?;
    let model = modelled(&program, &machine, Costs::default())?;
    let least = |spec: &str| -> Result<Taken, Failure> {
        let mut least = Taken { wall: f64::INFINITY, cpu: f64::INFINITY };
        for _ in 0..3 {
            let (taken, places) = on_one_thread(|| Taken::of(|| mapped(spec, &model, &*machine, seed)))?;
            places?;
            least = if taken.cpu < least.cpu { taken } else { least };
        }
        Ok(least)
    };
    let (taken, one_run_seconds) = (least(ALL_RUNS)?, least(ONE_RUN)?.cpu);
    let uses = model.phases.iter().map(Vec::len).sum::<usize>();
    let best = machine.links() as f64 * uses as f64;
    Ok(Timed {
        kind,
        tasks,
        taken,
        one_run_seconds,
        best,
        worst: best * (model.channels.len() as f64).log2(),
    })
}

const MESHES: &str = "meshes";
const RANDOM: &str = "random";

/// The growth exponent of a number in the number of tasks.
fn exponent(timed: &[&Timed], of: impl Fn(&Timed) -> f64) -> f64 {
    statistics::exponent(timed.iter().map(|it| (it.tasks as f64, of(it))))
}

/// The curves of one kind of programs: measured, and theory through the last measured point.
fn curves(kind: &str, of_kind: &[&Timed]) -> Vec<Series> {
    let Some(last) = of_kind.last() else { return Vec::new() };
    let points =
        |of: &dyn Fn(&Timed) -> f64| of_kind.iter().map(|it| (it.tasks as f64, of(it))).collect::<Vec<_>>();
    let scaled = |of: fn(&Timed) -> f64| points(&|it| of(it) / of(last) * last.one_run_seconds);
    vec![
        Series::measured(kind, points(&|it| it.one_run_seconds)),
        Series::measured(format!("{kind}, all runs"), points(&|it| it.taken.cpu)),
        Series::theory(format!("{kind}, best case"), scaled(|it| it.best)),
        Series::theory(format!("{kind}, worst case"), scaled(|it| it.worst)),
    ]
}

/// The criteria for the growth of the time of one run.
fn growth(kind: &str, timed: &[&Timed]) -> [Criterion; 2] {
    let seconds = exponent(timed, |it| it.one_run_seconds);
    let [best, worst] = [exponent(timed, |it| it.best), exponent(timed, |it| it.worst)];
    let measured = format!("tasks^{seconds:.2}, theory tasks^{best:.2} to tasks^{worst:.2}");
    let grows = |how: &str, met| {
        Criterion::new(format!("{kind}: the time of one run grows at {how} case"), &measured, met)
    };
    [grows("most as in the worst", seconds <= worst), {
        let why = "F is updated from step to step, and a task routes its own channels only, over fewer links than the paper counts";
        grows("least as in the best", seconds >= best).because(why)
    }]
}

fn times(options: &Options) -> Result<FigureResult, Failure> {
    let sides = options.choose(&[10, 12, 15, 17, 20, 24, 28, 34, 40, 50], &[5, 8]);
    let of = |kind| options.sweep(sides.iter().copied(), |side| timed(kind, side, options.seed));
    let all: Vec<Timed> = of(MESHES)?.into_iter().chain(of(RANDOM)?).collect();
    let mut rows = Rows::new([
        ("programs", "programs"),
        ("tasks", "tasks"),
        ("seconds", "s"),
        ("one_run_seconds", "one run: s"),
        ("best_case_operations", "P l a"),
        ("worst_case_operations", "P l a log a"),
    ]);
    for it in &all {
        rows.push([
            Cell::Text(it.kind.into()),
            Cell::Count(it.tasks as u64),
            Cell::Number(it.taken.cpu),
            Cell::Number(it.one_run_seconds),
            Cell::Number(it.best),
            Cell::Number(it.worst),
        ]);
    }
    let (mut series, mut criteria) = (Vec::new(), Vec::new());
    for kind in [MESHES, RANDOM] {
        let of_kind: Vec<&Timed> = all.iter().filter(|it| it.kind == kind).collect();
        series.extend(curves(kind, &of_kind));
        let large: Vec<&Timed> = of_kind.into_iter().filter(|it| options.small || it.tasks >= 400).collect();
        criteria.extend(growth(kind, &large));
    }
    for (tasks, limit) in [(400, 0.3), (784, 1.0)] {
        let of = || all.iter().filter(|it| it.tasks <= tasks);
        let criterion = Criterion::every(
            format!(
                "a program of at most {tasks} tasks is mapped in less than {limit} s of wall-clock time (paper: 25 s for 400)"
            ),
            of(),
            |it| limit - it.taken.wall,
            |it| format!("{:.3} s for {} tasks, {}", it.taken.wall, it.tasks, it.kind),
        );
        let longest = of().map(|it| it.taken).max_by(|a, b| a.wall.total_cmp(&b.wall)).unwrap_or_default();
        criteria.push(criterion.of_wall_time(longest));
    }
    let chart = Chart { x: Axis::log("tasks"), y: Axis::log("seconds"), series };
    Ok(FigureResult { rows, chart, criteria })
}

//! Experts of models: `equipoise_strategies::replicas` next to EPLB's published algorithm.
//!
//! The loads are generated: lognormal with three widths, and Zipf's law in random order. In the next window every load is
//! multiplied by a lognormal number of width 0.15.

use std::collections::BTreeSet;

use cpu_time::ThreadTime;
use equipoise_apps::Failure;
use equipoise_model::numbers::Numbers;
use equipoise_model::random::{generator, shuffle};
use equipoise_model::replica_plan::ReplicaPlan;
use equipoise_model::{Topology, topology};
use equipoise_strategies::replicas::{LayerCosts, Request, evaluate, place, published};

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::poise::data::uniform;
use crate::rows::{Cell, Rows};

/// Every case of the comparison.
pub(crate) const EXPERTS: Figure = Figure {
    name: "experts",
    title: "Places of experts with replicas: the heaviest GPU, and replicas moved in the next window, next to EPLB",
    paper: "DeepSeek's EPLB; in no paper",
    paper_shows: "no paper",
    we_show: "places of experts with replicas next to EPLB's",
    why: "EPLB packs greedily; ours searches",
    takes: "half a minute",
    notes: "EPLB is an independent implementation of its public description. Loads are generated: lognormal, and Zipf's law in \
            random order; in the next window every load is multiplied by a lognormal number of width 0.15. A case has 8 to 61 \
            layers. Counted are PEs (GPUs) with two replicas of an expert, and replicas on a GPU that had none of the expert; \
            EPLB's plan anew is compared with its own plan of the window before. `over` is the largest load over that of EPLB in \
            the same layer, minus 1, for the worst layer. Times are of the thread's processor, on one thread. Cases with two or \
            three slots per GPU have few plans near the best one: there the search moves more replicas, and in a few layers EPLB's \
            plan with two replicas of an expert on a GPU is better than the plan that the search finds without. With sources (rows `4 nodes` and `8 nodes`), the share of every node in the \
            tokens of an expert is lognormal of width 1, and both plans have the same balance.\n",
    run: experts,
};

/// A case: the distribution of loads, and the numbers of experts, slots, PEs and layers.
#[derive(Clone, Debug)]
struct Case {
    loads: &'static str,
    experts: usize,
    slots: usize,
    nodes: usize,
    cores: usize,
    layers: usize,
    groups: usize,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { loads, experts, slots, nodes, cores, groups, .. } = self;
        write!(f, "{loads}: {experts} experts, {slots} slots, {nodes} x {cores} GPUs")?;
        if *groups > 1 { write!(f, ", {groups} groups") } else { Ok(()) }
    }
}

/// What was measured of a case; the numbers of EPLB come first.
struct Measured {
    case: Case,
    worst: [f64; 2],
    /// The worst layer over EPLB, in this window and in the next.
    over: [f64; 2],
    /// The worst layer over EPLB in this window, of those where EPLB has no two replicas of an expert on a GPU.
    over_possible: f64,
    /// The layers above EPLB in this window.
    above: usize,
    repeated: [usize; 2],
    moves: [usize; 2],
    /// Milliseconds per layer, in this window and in the next.
    milliseconds: [f64; 2],
}

/// Tokens between nodes, as parts of all tokens: of the plan without sources and with them; and the worst max/avg of both.
struct Sources {
    case: Case,
    cross: [f64; 2],
    worst: [f64; 2],
    milliseconds: f64,
}

/// Differences of loads that are rounding errors.
const ROUNDING: f64 = 1e-9;

/// The widths of lognormal loads, and Zipf's law.
const LOADS: [&str; 4] = ["lognormal 0.4", "lognormal 0.8", "lognormal 1.2", "Zipf"];

/// A normal number with these numbers in the stream of `seed` (G. E. P. Box, M. E. Muller, 1958).
fn normal(seed: u64, number: usize) -> f64 {
    let [radius, angle] = [0, 1].map(|part| uniform(seed, 2 * number + part));
    (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

fn loads(case: &Case, seed: u64) -> Numbers {
    let width: Option<f64> = case.loads.strip_prefix("lognormal ").and_then(|width| width.parse().ok());
    let layer = |layer: usize| match width {
        Some(width) => (0..case.experts)
            .map(|it| 1e3 * (width * normal(seed, layer * case.experts + it)).exp())
            .collect(),
        None => {
            let mut loads: Vec<f64> = (1..=case.experts).map(|rank| 1e5 / rank as f64).collect();
            shuffle(&mut generator(seed, layer as u64), &mut loads);
            loads
        }
    };
    Numbers { rows: (0..case.layers).map(layer).collect() }
}

/// The loads of the next window.
fn drifted(loads: &Numbers, seed: u64) -> Numbers {
    let columns = loads.columns();
    let row = |(layer, row): (usize, &Vec<f64>)| {
        let drift =
            |(expert, load): (usize, &f64)| load * (0.15 * normal(seed ^ 1, layer * columns + expert)).exp();
        row.iter().enumerate().map(drift).collect()
    };
    Numbers { rows: loads.rows.iter().enumerate().map(row).collect() }
}

/// A plan on one thread, and the milliseconds per layer.
fn timed(request: &Request, machine: &dyn Topology) -> Result<(ReplicaPlan, f64), Failure> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::bug)?;
    let (plan, seconds) = pool.install(|| {
        let begin = ThreadTime::now();
        (place(request, machine), begin.elapsed().as_secs_f64())
    });
    Ok((plan?, 1e3 * seconds / request.loads.rows.len() as f64))
}

fn machine(case: &Case) -> Result<std::sync::Arc<dyn Topology>, Failure> {
    Ok(topology::parse(&format!("flat:{}*flat:{}", case.nodes, case.cores))?)
}

fn worst(costs: &[LayerCosts]) -> f64 {
    costs.iter().map(|layer| layer.max_over_average).fold(0.0, f64::max)
}

/// The excess of every layer over the same layer of EPLB.
fn excess<'a>(ours: &'a [LayerCosts], published: &'a [LayerCosts]) -> impl Iterator<Item = f64> + 'a {
    ours.iter().zip(published).map(|(ours, published)| ours.max_load / published.max_load - 1.0)
}

fn measure(case: Case, seed: u64) -> Result<Measured, Failure> {
    let machine = &*machine(&case)?;
    let now = loads(&case, seed);
    let next = drifted(&now, seed);
    let request = Request { groups: case.groups, ..Request::new(&now, case.slots) };
    let (plan, first_milliseconds) = timed(&request, machine)?;
    let anew = [published(&request, machine)?, published(&Request { loads: &next, ..request }, machine)?];
    let [theirs, ours] = [evaluate(&anew[0], &request, machine, 0)?, evaluate(&plan, &request, machine, 0)?];
    let later = |previous| Request { loads: &next, previous: Some(previous), ..request };
    let (moved, next_milliseconds) = timed(&later(&plan), machine)?;
    let their_next = evaluate(&anew[1], &later(&anew[0]), machine, 0)?;
    let our_next = evaluate(&moved, &later(&plan), machine, 0)?;
    let largest = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::NEG_INFINITY, f64::max);
    let is_possible = |it: &(f64, &LayerCosts)| it.1.pes_with_repeated_expert == 0;
    let repeated = |costs: &[LayerCosts]| costs.iter().map(|layer| layer.pes_with_repeated_expert).sum();
    let moves = |costs: &[LayerCosts]| costs.iter().filter_map(|layer| layer.moves).sum();
    Ok(Measured {
        case,
        worst: [worst(&theirs), worst(&ours)],
        over: [largest(&mut excess(&ours, &theirs)), largest(&mut excess(&our_next, &their_next))],
        over_possible: largest(&mut excess(&ours, &theirs).zip(&theirs).filter(is_possible).map(|it| it.0)),
        above: excess(&ours, &theirs).filter(|it| *it > ROUNDING).count(),
        repeated: [repeated(&theirs), repeated(&ours)],
        moves: [moves(&their_next), moves(&our_next)],
        milliseconds: [first_milliseconds, next_milliseconds],
    })
}

fn measure_sources(case: Case, seed: u64) -> Result<Sources, Failure> {
    let machine = &*machine(&case)?;
    let now = loads(&case, seed);
    let mut rows = Vec::new();
    for (layer, loads) in now.rows.iter().enumerate() {
        let weight = |node: usize, expert: usize| {
            normal(seed ^ 2, (layer * case.nodes + node) * case.experts + expert).exp()
        };
        let all = |expert: usize| (0..case.nodes).map(|node| weight(node, expert)).sum::<f64>();
        let row = |node: usize| {
            loads
                .iter()
                .enumerate()
                .map(|(expert, load)| load * weight(node, expert) / all(expert))
                .collect::<Vec<f64>>()
        };
        rows.extend((0..case.nodes).map(row));
    }
    let sources = Numbers { rows };
    let blind = Request { groups: case.groups, ..Request::new(&now, case.slots) };
    let request = Request { sources: Some(&sources), ..blind };
    let (aware, milliseconds) = timed(&request, machine)?;
    let plans = [place(&blind, machine)?, aware];
    let [blind, aware] = plans.map(|plan| evaluate(&plan, &request, machine, 0));
    let costs = [blind?, aware?];
    let cross = |costs: &[LayerCosts]| {
        let sum = |of: fn(&LayerCosts) -> Option<f64>| costs.iter().filter_map(of).sum::<f64>();
        sum(|layer| layer.cross_node_tokens) / sum(|layer| layer.tokens)
    };
    let [worst, cross] = [costs.each_ref().map(|it| worst(it)), costs.each_ref().map(|it| cross(it))];
    Ok(Sources { case, cross, worst, milliseconds })
}

/// The cases: the whole grid, and some with groups.
fn cases(options: &Options) -> Vec<Case> {
    let mut cases = Vec::new();
    let grid = options.choose(&[64, 128, 256, 512], &[64]);
    let machines = options.choose(&[[1, 8], [2, 8], [4, 8], [8, 8]], &[[1, 8], [2, 8]]);
    for loads in LOADS {
        for &experts in grid {
            for &[nodes, cores] in machines {
                let slots = |eighths: usize| (experts * eighths).div_ceil(8).next_multiple_of(nodes * cores);
                // Rounded up, some are the same.
                for slots in BTreeSet::from([8, 9, 10].map(slots)) {
                    // Models have 8 to 61 layers with experts.
                    let layers = if options.small { 2 } else { [8, 24, 40, 61][cases.len() % 4] };
                    cases.push(Case { loads, experts, slots, nodes, cores, layers, groups: 1 });
                }
            }
        }
        let [experts, slots] = if options.small { [64, 80] } else { [256, 288] };
        let layers = if options.small { 2 } else { 58 };
        cases.push(Case {
            loads,
            experts,
            slots,
            nodes: 4,
            cores: if options.small { 4 } else { 8 },
            layers,
            groups: 8,
        });
    }
    cases
}

fn experts(options: &Options) -> Result<FigureResult, Failure> {
    let all = options.sweep(cases(options), |case| measure(case, options.seed))?;
    let layers = if options.small { 2 } else { 16 };
    let of =
        |loads, experts, slots, nodes| Case { loads, experts, slots, nodes, cores: 8, layers, groups: 1 };
    let with_sources = LOADS.into_iter().flat_map(|loads| match options.small {
        true => vec![of(loads, 64, 80, 2)],
        false => vec![of(loads, 256, 288, 4), of(loads, 256, 320, 8)],
    });
    let sources = options.sweep(with_sources, |case| measure_sources(case, options.seed))?;
    let ratio = |it: &Measured| it.moves[0] as f64 / it.moves[1] as f64;
    let points = |of: &dyn Fn(&Measured) -> f64| {
        let mut points: Vec<f64> = all.iter().map(of).filter(|number| number.is_finite()).collect();
        points.sort_by(f64::total_cmp);
        (1..).map(f64::from).zip(points).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: Axis::linear("case, in the order of each curve"),
        y: Axis::log("ratio"),
        series: vec![
            Series::measured("replicas moved: EPLB anew / ours", points(&ratio)),
            Series::measured("max/avg of the worst layer: EPLB", points(&|it| it.worst[0])),
            Series::measured("max/avg of the worst layer: ours", points(&|it| it.worst[1])),
        ],
    };
    Ok(FigureResult { rows: rows(&all, &sources), chart, criteria: criteria(&all, &sources) })
}

fn rows(all: &[Measured], sources: &[Sources]) -> Rows {
    let mut rows = Rows::new([
        ("case", "case"),
        ("layers", "layers"),
        ("eplb_max_over_average", "EPLB: max/avg"),
        ("max_over_average", "ours"),
        ("over", "over"),
        ("eplb_repeated", "EPLB: repeated"),
        ("repeated", "ours"),
        ("eplb_moves", "EPLB: moves"),
        ("moves", "ours"),
        ("next_over", "next: over"),
        ("milliseconds", "ms per layer"),
        ("next_milliseconds", "next"),
        ("blind_cross_node", "cross-node, blind"),
        ("cross_node", "with sources"),
    ]);
    for it in all {
        let mut row =
            vec![Cell::Text(it.case.to_string().replace(',', ";")), Cell::Count(it.case.layers as u64)];
        row.extend(it.worst.map(Cell::Number));
        row.push(Cell::Number(it.over[0]));
        row.extend(it.repeated.iter().chain(&it.moves).map(|&number| Cell::Count(number as u64)));
        row.push(Cell::Number(it.over[1]));
        row.extend(it.milliseconds.map(Cell::Number));
        row.extend([Cell::Nothing, Cell::Nothing]);
        rows.push(row);
    }
    for it in sources {
        let mut row =
            vec![Cell::Text(it.case.to_string().replace(',', ";")), Cell::Count(it.case.layers as u64)];
        row.extend([Cell::Nothing, Cell::Number(it.worst[1]), Cell::Number(it.worst[1] / it.worst[0] - 1.0)]);
        row.extend([Cell::Nothing, Cell::Nothing, Cell::Nothing, Cell::Nothing, Cell::Nothing]);
        row.extend([Cell::Number(it.milliseconds), Cell::Nothing]);
        row.extend(it.cross.map(Cell::Number));
        rows.push(row);
    }
    rows
}

fn criteria(all: &[Measured], sources: &[Sources]) -> Vec<Criterion> {
    let percent = |part: f64| format!("{:.3} %", 100.0 * part);
    let repeated: usize = all.iter().map(|it| it.repeated[1]).sum();
    let theirs: usize = all.iter().map(|it| it.repeated[0]).sum();
    let of_moves = |it: &&Measured| match it.moves {
        // Nothing moves where the heaviest expert alone decides.
        [_, 0] => f64::INFINITY,
        [theirs, ours] => theirs as f64 / ours as f64,
    };
    let [above, layers] = [|it: &Measured| it.above, |it: &Measured| it.case.layers]
        .map(|of| all.iter().map(of).sum::<usize>());
    let worst_over = all.iter().map(|it| it.over[0]).fold(f64::NEG_INFINITY, f64::max);
    let enough = all.iter().filter(|it| of_moves(it) >= 5.0).count();
    let slots = |it: &&Measured| it.case.slots / (it.case.nodes * it.case.cores);
    let moves = |what: &str, of: Vec<&Measured>| {
        Criterion::every(
            format!("{what}, at least 5 times fewer replicas move in the next window than with EPLB anew"),
            of,
            |it| of_moves(it) - 5.0,
            |it| format!("{:.1} times ({} of {}) with {}", of_moves(it), it.moves[1], it.moves[0], it.case),
        )
    };
    let mut criteria = vec![
        Criterion::new(
            "max/avg is never above EPLB's in this window, in any layer",
            format!("above in {above} of {layers} layers; {} in the worst", percent(worst_over)),
            above == 0,
        ),
        Criterion::every(
            "max/avg is never above EPLB's in this window, in any layer where EPLB repeats no expert on a GPU",
            all,
            |it| ROUNDING - it.over_possible,
            |it| format!("{} with {}", percent(it.over_possible), it.case),
        ),
        Criterion::new(
            "no GPU has two replicas of an expert",
            format!("{repeated} GPU-layers; EPLB has {theirs}"),
            repeated == 0,
        ),
        Criterion::every(
            "max/avg in the next window is within 0.5 % of EPLB's, in every layer",
            all,
            |it| 0.005 + ROUNDING - it.over[1],
            |it| format!("{} with {}", percent(it.over[1]), it.case),
        ),
        moves("with at least 4 slots per GPU", all.iter().filter(|it| slots(it) >= 4).collect()),
        moves("in all cases", all.iter().collect()),
        Criterion::new(
            "at least 5 times fewer replicas move in 95 % of the cases",
            format!("{enough} of {}", all.len()),
            enough * 100 >= all.len() * 95,
        ),
    ];
    criteria.extend(criteria_of_times(all));
    criteria.extend(criteria_of_sources(sources));
    criteria
}

fn criteria_of_times(all: &[Measured]) -> Vec<Criterion> {
    // The small version has no layer of 256 experts.
    let kinds = [("256 experts", 256..=256), ("fewer experts", 0..=255)];
    let measured =
        kinds.map(|(what, range)| (what, all.iter().filter(move |it| range.contains(&it.case.experts))));
    let measured = measured.into_iter().filter(|(_, cases)| cases.clone().next().is_some());
    let criterion = |(what, cases)| {
        Criterion::every(
            format!("a layer of {what} takes at most 1 ms of one thread"),
            cases,
            |it: &&Measured| 1.0 - it.milliseconds[0].max(it.milliseconds[1]),
            |it| {
                let [first, next] = it.milliseconds;
                format!("{first:.2} ms, next window {next:.2} ms, with {}", it.case)
            },
        )
    };
    measured.map(criterion).collect()
}

fn criteria_of_sources(sources: &[Sources]) -> [Criterion; 2] {
    let percent = |part: f64| format!("{:.3} %", 100.0 * part);
    [
        Criterion::every(
            "with sources, at least 20 % fewer tokens cross nodes than without",
            sources,
            |it| 1.0 - it.cross[1] / it.cross[0] - 0.2,
            |it| format!("{} fewer with {}", percent(1.0 - it.cross[1] / it.cross[0]), it.case),
        ),
        Criterion::every(
            "with sources, max/avg of the worst layer is not above that without",
            sources,
            |it| ROUNDING - (it.worst[1] / it.worst[0] - 1.0),
            |it| format!("{} above with {}", percent(it.worst[1] / it.worst[0] - 1.0), it.case),
        ),
    ]
}

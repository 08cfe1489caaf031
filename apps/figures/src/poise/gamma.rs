//! The trade-off of `PoiseLB` between hops, loads and migrations: hops per byte over objects moved, for values of gamma.
//!
//! Gamma is the cost of moving a byte of an object, in hop-bytes. The other strategies are single points. For a number of
//! moves there is a lower bound of the hops: moving an object saves at most the hops of its own messages.

use std::cmp::Reverse;
use std::fmt::{self, Display};

use equipoise_apps::Failure;
use equipoise_model::database::End;
use equipoise_model::{Database, Topology, topology};
use equipoise_strategies::cost::Metrics;

use super::data::{Named, kneighbor, leanmd, of_folder, stencil};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::assign;
use crate::rows::{Cell, Rows};

/// The figure.
pub(crate) const POISE_GAMMA: Figure = Figure {
    name: "poise-gamma",
    title: "Hops per byte of PoiseLB against objects moved",
    paper: "Equipoise's own",
    paper_shows: "no paper",
    we_show: "hops per byte and migrations of PoiseLB over gamma",
    why: "gamma weighs migrations against hops",
    takes: "10 seconds",
    notes: "Objects start in blocks, those of LeanMD as in the program. The allowed load is 1.05 times the average, or that of \
            the heaviest object. The databases have the imbalance of recorded ones of these programs; --data DIR uses \
            recorded ones. The chart shows the largest machine, and the other strategies for the first program.\n\
            `least` is a lower bound for placements with the allowed number of moves, since moving an object saves at most the \
            hops of its own messages. MetisLB moves nearly all objects, and has fewer hops than `least` after a bad start.\n",
    run,
};

/// A load of this many times the average is allowed.
const ALLOWED: f64 = 1.05;

/// The values of gamma; results change most where a move costs about as much as the messages of an object.
const GAMMAS: [f64; 16] =
    [0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.5, 2.0, 4.0, 16.0, 64.0, 1024.0];
const FEW_GAMMAS: [f64; 4] = [0.0, 0.25, 1.0, 16.0];

const TOPO: &str = "TopoLB";
const REFINE: &str = "RefineLB";

/// The strategies that have more hops than PoiseLB at gamma = 1.
const BALANCERS: [&str; 4] = [REFINE, "GreedyRefineLB", "MetisLB", "GreedyCommLB"];
const OTHERS: [&str; 6] = [REFINE, "GreedyRefineLB", "MetisLB", "GreedyCommLB", "GreedyLB", TOPO];

/// At gamma = 1 PoiseLB moves at most this many times the objects that RefineLB moves.
const MOST_MOVES: u64 = 3;

/// A database on a machine.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    machine: String,
    /// Whether there is a criterion for the number of moves. There is none for LeanMD, whose objects start far from
    /// their partners.
    counts_moves: bool,
    database: Database,
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.machine)
    }
}

/// The result of a strategy on a case.
#[derive(Clone, Debug)]
struct Point {
    strategy: &'static str,
    /// Only for PoiseLB.
    gamma: Option<f64>,
    hops: f64,
    moves: u64,
    /// The largest load of a PE, relative to the average and to the allowed load.
    imbalance: f64,
    over_allowed: f64,
}

impl Point {
    fn is_balanced(&self) -> bool {
        self.over_allowed <= 1.0 + 1e-9
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gamma = self.gamma.map(|gamma| format!(", gamma {gamma}")).unwrap_or_default();
        write!(f, "{}{gamma}: {:.3} hops, {} moved", self.strategy, self.hops, self.moves)
    }
}

/// All points of a case.
struct Measured {
    case: Case,
    start: Point,
    points: Vec<Point>,
    /// A lower bound of the hops per byte with the number of moves allowed at gamma = 1.
    least: f64,
}

impl Measured {
    fn of(&self, strategy: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.strategy == strategy)
    }

    fn poise(&self, gamma: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.gamma == Some(gamma))
    }
}

/// The cases of a figure.
fn cases(options: &Options) -> Result<Vec<Case>, Failure> {
    let machines: &[(u32, &str)] =
        if options.small { &[(64, "torus:4x4x4")] } else { &[(64, "torus:4x4x4"), (512, "torus:8x8x8")] };
    let mut cases = Vec::new();
    let mut add = |named: &Named, pes: u32, machine: &str| {
        let counts_moves = ["stencil", "kneighbor"].iter().any(|program| named.name.starts_with(program));
        let (name, machine, database) =
            (named.name.clone(), machine.into(), named.database.clone().remap(pes));
        cases.push(Case { name, machine, counts_moves, database });
    };
    let recorded = match &options.data {
        Some(folder) => Some(of_folder(folder, "database", |path| {
            !path.extension().is_some_and(|extension| extension == "txt" || extension == "csv")
        })?),
        None => None,
    };
    for &(pes, machine) in machines {
        match &recorded {
            Some(recorded) => recorded.iter().for_each(|named| add(named, pes, machine)),
            None if options.small => add(&stencil(8, options.seed)?, pes, machine),
            None => {
                add(&stencil(16, options.seed)?, pes, machine);
                add(&kneighbor(1024, options.seed)?, pes, machine);
                add(&leanmd(7, pes)?, pes, machine);
            }
        }
    }
    Ok(cases)
}

/// The costs of a placement of a case.
fn point(case: &Case, machine: &dyn Topology, placement: &[u32]) -> Point {
    let metrics = Metrics::of(&case.database, machine, placement);
    let average = metrics.average_load_seconds;
    let allowed = (ALLOWED * average).max(metrics.heaviest_object_seconds);
    Point {
        strategy: "",
        gamma: None,
        hops: metrics.communication.map_or(f64::NAN, |cost| cost.hops_per_byte),
        moves: metrics.migrations,
        imbalance: metrics.max_load_seconds / average,
        over_allowed: metrics.max_load_seconds / allowed,
    }
}

fn measure(case: Case, options: &Options) -> Result<Measured, Failure> {
    let machine = topology::parse(&case.machine)?;
    let start = Point { strategy: "start", ..point(&case, &*machine, &case.database.placement()) };
    let mut points = Vec::new();
    for strategy in OTHERS {
        let answer = assign(strategy, &case.database, &*machine, options.seed)?;
        points.push(Point { strategy, ..point(&case, &*machine, &answer.pe_of) });
    }
    for &gamma in options.choose(&GAMMAS, &FEW_GAMMAS) {
        let spec = format!("PoiseLB:imbalance={:.2},gamma={gamma}", ALLOWED - 1.0);
        let answer = assign(&spec, &case.database, &*machine, options.seed)?;
        points.push(Point {
            strategy: "PoiseLB",
            gamma: Some(gamma),
            ..point(&case, &*machine, &answer.pe_of)
        });
    }
    let refined = points.iter().find(|point| point.strategy == REFINE).map_or(0, |point| point.moves);
    let least = least_hops(&case.database, &*machine, MOST_MOVES * refined);
    Ok(Measured { case, start, points, least })
}

/// A lower bound of the hops per byte of placements that move at most `moves` objects.
fn least_hops(database: &Database, machine: &dyn Topology, moves: u64) -> f64 {
    let placement = database.placement();
    let mut of_object = vec![0u128; placement.len()];
    let (mut all, mut bytes) = (0u128, 0u128);
    for edge in &database.edges {
        let [from, to] = [edge.from, edge.to].map(|end| end.pe(&placement) as usize);
        let hop_bytes = u128::from(edge.bytes) * u128::from(machine.distance(from, to));
        (all, bytes) = (all + hop_bytes, bytes + u128::from(edge.bytes));
        for end in [edge.from, edge.to] {
            if let End::Object(object) = end {
                of_object[object as usize] += hop_bytes;
            }
        }
    }
    for (saved, object) in of_object.iter_mut().zip(&database.objects) {
        *saved = if object.migratable { *saved } else { 0 };
    }
    of_object.sort_unstable_by_key(|&saved| Reverse(saved));
    let saved: u128 = of_object.iter().take(moves as usize).sum();
    all.saturating_sub(saved) as f64 / bytes.max(1) as f64
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let all = options.sweep(cases(options)?, |case| measure(case, options))?;
    let mut rows = Rows::new([
        ("database", "database"),
        ("machine", "machine"),
        ("strategy", "strategy"),
        ("gamma", "gamma"),
        ("imbalance", "max/avg"),
        ("over_allowed", "of allowed"),
        ("hops_per_byte", "hops/byte"),
        ("migrations", "moved"),
        ("least_hops_per_byte", "least"),
    ]);
    for measured in &all {
        for point in [&measured.start].into_iter().chain(&measured.points) {
            let is_bounded = point.gamma == Some(1.0);
            rows.push([
                Cell::Text(measured.case.name.clone()),
                Cell::Text(measured.case.machine.clone()),
                Cell::Text(point.strategy.into()),
                Cell::maybe(point.gamma),
                Cell::Number(point.imbalance),
                Cell::Number(point.over_allowed),
                Cell::Number(point.hops),
                Cell::Count(point.moves),
                Cell::maybe(Some(measured.least).filter(|_| is_bounded)),
            ]);
        }
    }
    Ok(FigureResult { rows, chart: chart(&all), criteria: criteria(&all) })
}

fn chart(all: &[Measured]) -> Chart {
    let largest = all.iter().map(|measured| measured.case.database.pes.len()).max();
    let shown = || all.iter().filter(|measured| Some(measured.case.database.pes.len()) == largest);
    let mut series = Vec::new();
    for measured in shown() {
        let mut points: Vec<(f64, f64)> = measured
            .points
            .iter()
            .filter(|point| point.gamma.is_some())
            .map(|point| (point.moves as f64, point.hops))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        series.push(Series::measured(format!("PoiseLB: {}", measured.case), points));
    }
    if let Some(first) = shown().next() {
        let others = first.points.iter().filter(|point| point.gamma.is_none());
        series.extend(others.map(|point| Series::paper(point.strategy, [(point.moves as f64, point.hops)])));
    }
    Chart { x: Axis::log("objects moved"), y: Axis::linear("hops per byte"), series }
}

fn criteria(all: &[Measured]) -> Vec<Criterion> {
    let poise = |measured: &Measured| -> Vec<Point> {
        measured.points.iter().filter(|point| point.gamma.is_some()).cloned().collect()
    };
    let about_moves = || all.iter().filter(|measured| measured.case.counts_moves);
    let with_one = |measured: &'_ Measured| measured.poise(1.0).cloned();
    let mut criteria = vec![Criterion::every(
        "PoiseLB's largest load is at most 1.05 times the average or that of the heaviest object",
        all.iter().flat_map(|measured| poise(measured).into_iter().map(move |point| (measured, point))),
        |(_, point)| 1.0 + 1e-9 - point.over_allowed,
        |(measured, point)| {
            format!("{:.4} of the allowed load with {point}, {}", point.over_allowed, measured.case)
        },
    )];
    let pairs: Vec<(&Measured, Point, &Point)> = about_moves()
        .filter_map(|measured| Some((measured, with_one(measured)?)))
        .flat_map(|(measured, poise)| {
            let others = BALANCERS.iter().filter_map(|other| measured.of(other));
            others.map(move |other| (measured, poise.clone(), other)).collect::<Vec<_>>()
        })
        .collect();
    criteria.push(Criterion::every(
        "gamma = 1, stencil and kneighbor: fewer hops than RefineLB, GreedyRefineLB, MetisLB and GreedyCommLB",
        &pairs,
        |(_, poise, other)| if poise.hops < other.hops { other.hops / poise.hops - 1.0 } else { -1.0 },
        |(measured, poise, other)| {
            let is_out_of_reach = other.hops <= measured.least;
            let bound = match is_out_of_reach {
                true => format!("; with the allowed moves the lower bound is {:.3} hops", measured.least),
                false => String::new(),
            };
            format!("{poise}; {other}{bound}; {}", measured.case)
        },
    ));
    criteria.push(Criterion::every(
        "gamma = 1, stencil and kneighbor: at most three times as many objects moved as by RefineLB",
        about_moves().filter_map(|measured| Some((measured, with_one(measured)?, measured.of(REFINE)?))),
        |(_, poise, refine)| {
            ((MOST_MOVES * refine.moves) as f64 - poise.moves as f64) / poise.moves.max(1) as f64
        },
        |(measured, poise, refine)| format!("{poise}; {refine}; {}", measured.case),
    ));
    let balanced = all.iter().filter_map(|measured| {
        let topo = measured.of(TOPO).filter(|topo| topo.is_balanced())?;
        Some((measured, measured.poise(0.0)?, topo))
    });
    let balanced: Vec<_> = balanced.collect();
    if !balanced.is_empty() {
        criteria.push(Criterion::every(
            "gamma = 0: fewer hops than TopoLB, where TopoLB's load is within the limit",
            balanced,
            |(_, poise, topo)| if poise.hops < topo.hops { topo.hops / poise.hops - 1.0 } else { -1.0 },
            |(measured, poise, topo)| format!("{poise}; {topo}; {}", measured.case),
        ));
    }
    criteria
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn the_lower_bound_is_the_hops_without_those_of_the_moved_objects() {
        // On a line of 4 PEs, objects 0 and 3 communicate over 3 hops.
        let mut database = workloads::load("ring:4,bytes=10").expect("a ring").remap(4);
        let machine = topology::parse("mesh:4").expect("a line");
        // Three edges of 1 hop and one of 3 hops, 10 bytes each way: 120 hop-bytes, 80 bytes.
        assert_eq!(least_hops(&database, &*machine, 0), 1.5);
        // Object 0 has one edge of each kind.
        assert_eq!(least_hops(&database, &*machine, 1), 0.5);
        database.objects[0].migratable = false;
        database.objects[3].migratable = false;
        assert_eq!(least_hops(&database, &*machine, 1), 1.0);
        assert_eq!(least_hops(&database, &*machine, 4), 0.5);
    }
}

//! What `PoiseLB` makes of hops, loads and migrations together: hops per byte against objects moved, over gamma.
//!
//! Gamma is what moving a byte of an object is worth in hop-bytes. The other strategies are points beside the curve:
//! each gives up one of the three. How few hops so many moves can leave at best is known to a bound: an object that
//! moves can save what its own messages travel, and no more.

use std::cmp::Reverse;
use std::fmt::{self, Display};

use equipoise_strategies::cost::Metrics;
use equipoise_strategies::database::End;
use equipoise_strategies::{Database, Topology, topology};

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::mapping::ask;
use super::poise_data::{Named, kneighbor, leanmd, of_folder, stencil};
use super::rows::{Cell, Rows};

/// The figure.
pub(super) const POISE_GAMMA: Figure = Figure {
    name: "poise-gamma",
    title: "Hops per byte of PoiseLB against objects moved",
    paper: "Equipoise's own",
    takes: "10 seconds",
    notes: "Objects start in blocks, those of LeanMD where the program puts them; a load of at most 5 % above the \
            average, or that of the heaviest object, is allowed. The databases are made to be as far out of balance as \
            recorded ones of these programs; --data DIR takes recorded ones. The chart shows the largest machine, \
            and of the other strategies what they make of the first program.\n\
            `least` is what no placement with so few moves can go below, since moving an object saves at most what its \
            own messages travel: MetisLB, which moves nearly everything, is below it where the start is bad.\n",
    run,
};

/// A load of this many times the average is allowed.
const ALLOWED: f64 = 1.05;

/// What the curve is over; most of it happens where a move is worth about what is exchanged.
const GAMMAS: [f64; 16] =
    [0.0, 0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0, 1.5, 2.0, 4.0, 16.0, 64.0, 1024.0];
const FEW_GAMMAS: [f64; 4] = [0.0, 0.25, 1.0, 16.0];

const TOPO: &str = "TopoLB";
const REFINE: &str = "RefineLB";

/// What has more hops at gamma = 1.
const BALANCERS: [&str; 4] = [REFINE, "GreedyRefineLB", "MetisLB", "GreedyCommLB"];
const OTHERS: [&str; 6] = [REFINE, "GreedyRefineLB", "MetisLB", "GreedyCommLB", "GreedyLB", TOPO];

/// At gamma = 1 PoiseLB moves at most so many times the objects that RefineLB does.
const MOST_MOVES: u64 = 3;

/// A database on a machine.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    machine: String,
    /// Whether moves are limited, too: LeanMD's objects start far from those they talk to.
    counts_moves: bool,
    database: Database,
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.machine)
    }
}

/// What a strategy made of a case.
#[derive(Clone, Debug)]
struct Point {
    strategy: &'static str,
    /// Of PoiseLB.
    gamma: Option<f64>,
    hops: f64,
    moves: u64,
    /// The most load of a PE over the average, and over what is allowed.
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
    /// Hops per byte that no placement has which moves so few objects as is allowed at gamma = 1.
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
fn cases(options: &Options) -> anyhow::Result<Vec<Case>> {
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

/// What it costs to have the objects of a case there.
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

fn measure(case: Case, options: &Options) -> anyhow::Result<Measured> {
    let machine = topology::parse(&case.machine)?;
    let start = Point { strategy: "start", ..point(&case, &*machine, &case.database.placement()) };
    let mut points = Vec::new();
    for strategy in OTHERS {
        let answer = ask(strategy, &case.database, &*machine, options.seed)?;
        points.push(Point { strategy, ..point(&case, &*machine, &answer.pe_of) });
    }
    for &gamma in options.choose(&GAMMAS, &FEW_GAMMAS) {
        let spec = format!("PoiseLB:imbalance={:.2},gamma={gamma}", ALLOWED - 1.0);
        let answer = ask(&spec, &case.database, &*machine, options.seed)?;
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

/// Hops per byte that no placement can go below which moves at most so many objects.
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

fn run(options: &Options) -> anyhow::Result<FigureResult> {
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
        |(measured, point)| format!("{:.4} of that with {point}, {}", point.over_allowed, measured.case),
    )];
    let beside: Vec<(&Measured, Point, &Point)> = about_moves()
        .filter_map(|measured| Some((measured, with_one(measured)?)))
        .flat_map(|(measured, poise)| {
            let others = BALANCERS.iter().filter_map(|other| measured.of(other));
            others.map(move |other| (measured, poise.clone(), other)).collect::<Vec<_>>()
        })
        .collect();
    criteria.push(Criterion::every(
        "gamma = 1, stencil and kneighbor: fewer hops than RefineLB, GreedyRefineLB, MetisLB and GreedyCommLB",
        &beside,
        |(_, poise, other)| if poise.hops < other.hops { other.hops / poise.hops - 1.0 } else { -1.0 },
        |(measured, poise, other)| {
            let is_out_of_reach = other.hops <= measured.least;
            let bound = match is_out_of_reach {
                true => format!("; as many moves as are allowed leave {:.3} hops at least", measured.least),
                false => String::new(),
            };
            format!("{poise}; {other}{bound}; {}", measured.case)
        },
    ));
    criteria.push(Criterion::every(
        "gamma = 1, stencil and kneighbor: no more than three times as many objects moved as RefineLB moves",
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
            "gamma = 0: fewer hops than TopoLB wherever TopoLB's load is within that",
            balanced,
            |(_, poise, topo)| if poise.hops < topo.hops { topo.hops / poise.hops - 1.0 } else { -1.0 },
            |(measured, poise, topo)| format!("{poise}; {topo}; {}", measured.case),
        ));
    }
    criteria
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::graph;

    use super::*;

    #[test]
    fn nothing_that_moves_so_little_has_fewer_hops_than_the_bound() {
        // On a line of 4 PEs, objects 0 and 3 talk over 3 hops.
        let mut database = graph::load("ring:4,bytes=10").expect("a ring").remap(4);
        let machine = topology::parse("mesh:4").expect("a line");
        // Three edges of a hop and one of three, each way: 12 hops of 8 times 10 bytes.
        assert_eq!(least_hops(&database, &*machine, 0), 1.5);
        // Object 0 has one of each.
        assert_eq!(least_hops(&database, &*machine, 1), 0.5);
        database.objects[0].migratable = false;
        database.objects[3].migratable = false;
        assert_eq!(least_hops(&database, &*machine, 1), 1.0);
        assert_eq!(least_hops(&database, &*machine, 4), 0.5);
    }
}

//! Figures 5 and 6 of the TopoLB paper: hops per byte of molecular dynamics on tori.
//!
//! T. Agarwal, A. Sharma, L. V. Kalé, "Topology-aware task mapping for reducing communication contention
//! on large parallel machines", IPDPS 2006, section 5.2.3. LeanMD's 3240 objects (6x6x6 cells) are grouped,
//! one group per processor, and the groups are mapped; hops are those of bytes between groups.
//!
//! The numbers depend on the partitioner: the more neighbors a group has, the less a mapping can save. In the paper,
//! METIS had rounded weights, often 0, and groups had 19.5 neighbors at 512 processors. This is between METIS with exact
//! weights and grouping by loads alone. Both are measured here; the criteria are for METIS.

use std::fmt::{self, Display};

use equipoise_apps::Failure;
use equipoise_model::{Database, topology};
use equipoise_strategies::partition::groups::{By, Grouping, Groups};
use equipoise_strategies::partition::metis::Method;
use equipoise_strategies::workloads;

use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::mapping::{hops, mean_distance, random_hops};
use crate::rows::{Cell, Rows};

/// Figure 5.
pub(crate) const TOPOLB_5: Figure = Figure {
    name: "topolb-5",
    title: "Hops per byte of LeanMD on 2D tori",
    paper: "Agarwal, Sharma, Kalé 2006, figure 5",
    paper_shows: "on 512 processors TopoLB saves 34 % of random hops for LeanMD, TopoCentLB 30 %, RefineTopoLB 12 % more",
    we_show: "the same with groups by METIS and by loads",
    why: "groups of our METIS have fewer neighbors than the paper's, so mappings save more",
    takes: "5 seconds",
    notes: "",
    run: |options| {
        let tori = ["3x6", "6x6", "8x8", "8x16", "16x16", "16x32", "32x32"];
        make(options, options.choose(&tori, &["3x6", "8x8", "16x32"]), &PAPER_2D, criteria_2d)
    },
};

/// Figure 6.
pub(crate) const TOPOLB_6: Figure = Figure {
    name: "topolb-6",
    title: "Hops per byte of LeanMD on 3D tori",
    paper: "Agarwal, Sharma, Kalé 2006, figure 6",
    paper_shows: "on 3D tori TopoLB and RefineTopoLB save about 40 %",
    we_show: "the same",
    why: "as for topolb-5",
    takes: "5 seconds",
    notes: "",
    run: |options| {
        let tori = ["3x3x2", "4x3x3", "4x4x4", "8x4x4", "8x8x4", "8x8x8", "16x8x8"];
        make(options, options.choose(&tori, &["3x3x2", "4x4x4", "8x8x8"]), &PAPER_3D, criteria_3d)
    },
};

const GRAPH: &str = "leanmd:6x6x6,particles=300";

/// The largest number of processors with numbers in the paper.
const LARGE: usize = 512;

/// The smallest number of processors with numbers in the paper.
const SMALL: usize = 18;

/// The partitioner of objects into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Partitioner {
    Metis,
    Greedy,
}

impl Partitioner {
    fn name(self) -> &'static str {
        match self {
            Partitioner::Metis => "metis",
            Partitioner::Greedy => "greedy",
        }
    }

    /// The objects in `pes` groups, each on its own PE, and the mean number of neighbors of a group.
    fn group(self, objects: &Database, pes: usize, seed: u64) -> Result<(Database, f64), Failure> {
        let by = match self {
            Partitioner::Metis => By::Metis(Method::Recursive),
            Partitioner::Greedy => By::Greedy,
        };
        let database = objects.clone().remap(pes as u32);
        let all: Vec<u32> = (0..pes as u32).collect();
        let groups = Groups::of(&database, &all, Grouping { by, equal: false, imbalance: 0.05 }, seed)?;
        let degree = 2.0 * groups.graph.edges() as f64 / groups.count as f64;
        let placement = groups.placement(&database, &all);
        Ok((database.placed(&placement), degree))
    }
}

/// A torus and a partitioner.
#[derive(Clone, Copy, Debug)]
struct Case {
    torus: &'static str,
    partitioner: Partitioner,
}

impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} groups on {}", self.partitioner.name(), self.torus)
    }
}

/// Hops per byte between groups.
struct Measured {
    case: Case,
    pes: usize,
    degree: f64,
    expected: f64,
    random: f64,
    topocentlb: f64,
    topolb: f64,
    refined: f64,
}

impl Measured {
    /// The fraction of the hops of random mappings that is saved.
    fn saved(&self, hops: f64) -> f64 {
        1.0 - hops / self.random
    }
}

fn measure(case: Case, objects: &Database, seed: u64) -> Result<Measured, Failure> {
    let machine = topology::parse(&format!("torus:{}", case.torus))?;
    let (database, degree) = case.partitioner.group(objects, machine.pes(), seed)?;
    Ok(Measured {
        case,
        pes: machine.pes(),
        degree,
        expected: mean_distance(&*machine),
        random: random_hops(&database, &*machine, seed)?,
        topocentlb: hops("TopoCentLB:groups=keep", &database, &*machine, seed)?,
        topolb: hops("TopoLB:groups=keep", &database, &*machine, seed)?,
        refined: hops("TopoLB:groups=keep+RefineTopoLB", &database, &*machine, seed)?,
    })
}

/// The numbers in the paper at 512 processors: fractions of the hops of random mappings that are saved. The hops of random
/// mappings are not printed.
struct Paper {
    topocentlb_saved: Option<f64>,
    topolb_saved: Option<f64>,
    /// By TopoLB and RefineTopoLB.
    topolb_refined_saved: Option<f64>,
    /// By RefineTopoLB, relative to the hops after TopoLB.
    refinement_saved: Option<f64>,
}

/// The numbers of figure 5.
const PAPER_2D: Paper = Paper {
    topocentlb_saved: Some(0.30),
    topolb_saved: Some(0.34),
    topolb_refined_saved: None,
    refinement_saved: Some(0.12),
};

/// The number of figure 6, printed without the number of processors.
const PAPER_3D: Paper = Paper {
    topocentlb_saved: None,
    topolb_saved: None,
    topolb_refined_saved: Some(0.40),
    refinement_saved: None,
};

/// The compared partitioners.
const PARTITIONERS: [Partitioner; 2] = [Partitioner::Metis, Partitioner::Greedy];

/// Makes figure 5 or 6.
fn make(
    options: &Options,
    tori: &[&'static str],
    paper: &Paper,
    criteria: fn(&[Measured]) -> Vec<Criterion>,
) -> Result<FigureResult, Failure> {
    let objects = workloads::load(GRAPH)?;
    let cases = PARTITIONERS
        .iter()
        .flat_map(|&partitioner| tori.iter().map(move |&torus| Case { torus, partitioner }));
    let all = options.sweep(cases, |case| measure(case, &objects, options.seed))?;
    let rows = table(&all, objects.objects.len(), paper);
    let chart = Chart {
        x: Axis::log("processors"),
        y: Axis::linear("hops per byte between groups"),
        series: lines(&all, paper),
    };
    let mut criteria = criteria(&all);
    criteria.push(Criterion::every(
        "random is within 5 % of the mean distance for p >= 64",
        all.iter().filter(|measured| measured.pes >= 64),
        |measured| 0.05 - (measured.random / measured.expected - 1.0).abs(),
        |measured| {
            format!("{:+.1} % with {}", 100.0 * (measured.random / measured.expected - 1.0), measured.case)
        },
    ));
    Ok(FigureResult { rows, chart, criteria })
}

/// The numbers, next to those of the paper.
fn table(all: &[Measured], objects: usize, paper: &Paper) -> Rows {
    let mut rows = Rows::new([
        ("groups", "groups"),
        ("torus", "torus"),
        ("pes", "p"),
        ("virtualization", "virtualization"),
        ("paper_virtualization", "paper"),
        ("degree", "degree"),
        ("paper_degree", "paper"),
        ("degree_share", "of groups"),
        ("paper_degree_share", "paper"),
        ("expected_random_hops_per_byte", "expected"),
        ("random_hops_per_byte", "random"),
        ("topocentlb_hops_per_byte", "TopoCentLB"),
        ("topolb_hops_per_byte", "TopoLB"),
        ("topolb_refinetopolb_hops_per_byte", "+RefineTopoLB"),
        ("topocentlb_saved", "TopoCentLB saves"),
        ("paper_topocentlb_saved", "paper"),
        ("topolb_saved", "TopoLB saves"),
        ("paper_topolb_saved", "paper"),
        ("topolb_refinetopolb_saved", "+RefineTopoLB saves"),
        ("paper_topolb_refinetopolb_saved", "paper"),
        ("refinetopolb_saved", "RefineTopoLB of that"),
        ("paper_refinetopolb_saved", "paper"),
    ]);
    for measured in all {
        let &Measured { case, pes, degree, expected, random, topocentlb, topolb, refined } = measured;
        let first = [case.partitioner.name(), case.torus].map(|name| Cell::Text(name.into()));
        let (p, printed) = (pes as f64, |number: Option<f64>| number.filter(|_| pes == LARGE));
        let hops = [expected, random, topocentlb, topolb, refined];
        let saved = [
            (measured.saved(topocentlb), printed(paper.topocentlb_saved)),
            (measured.saved(topolb), printed(paper.topolb_saved)),
            (measured.saved(refined), printed(paper.topolb_refined_saved)),
            (1.0 - refined / topolb, printed(paper.refinement_saved)),
        ];
        let groups = [
            (objects as f64 / p, paper_virtualization(pes)),
            (degree, paper_degree(pes)),
            (degree / p, paper_degree_share(pes)),
        ];
        let pair = |(ours, paper)| [Cell::Number(ours), Cell::maybe(paper)];
        let cells = first.into_iter().chain([Cell::Count(pes as u64)]);
        let cells = cells.chain(groups.into_iter().flat_map(pair)).chain(hops.map(Cell::Number));
        rows.push(cells.chain(saved.into_iter().flat_map(pair)));
    }
    rows
}

/// The lines of the chart.
fn lines(all: &[Measured], paper: &Paper) -> Vec<Series> {
    let series = |name: &str, partitioner: Partitioner, number: fn(&Measured) -> f64| {
        let of = all.iter().filter(|measured| measured.case.partitioner == partitioner);
        Series::measured(
            format!("{name}, {} groups", partitioner.name()),
            of.map(|measured| (measured.pes as f64, number(measured))),
        )
    };
    let metis = || all.iter().filter(|measured| measured.case.partitioner == Partitioner::Metis);
    let expected = metis().map(|measured| (measured.pes as f64, measured.expected));
    let mut lines = vec![Series::theory("random, expected", expected)];
    // Hops of random mappings hardly depend on the groups, so one line is enough.
    lines.push(series("random", Partitioner::Metis, |measured| measured.random));
    for partitioner in PARTITIONERS {
        lines.push(series("TopoCentLB", partitioner, |measured| measured.topocentlb));
        lines.push(series("TopoLB", partitioner, |measured| measured.topolb));
        lines.push(series("TopoLB+RefineTopoLB", partitioner, |measured| measured.refined));
    }
    // The paper prints fractions; they are applied to the hops of random mappings measured here.
    let refined = paper.topolb_saved.zip(paper.refinement_saved);
    let refined = refined.map(|(first, further)| 1.0 - (1.0 - first) * (1.0 - further));
    for (name, saved) in [
        ("TopoCentLB", paper.topocentlb_saved),
        ("TopoLB", paper.topolb_saved),
        ("TopoLB+RefineTopoLB", paper.topolb_refined_saved.or(refined)),
    ] {
        let large = metis().find(|measured| measured.pes == LARGE);
        if let Some((saved, large)) = saved.zip(large) {
            let point = (large.pes as f64, (1.0 - saved) * large.random);
            lines.push(Series::paper(format!("{name} in the paper"), [point]));
        }
    }
    lines
}

/// The mean number of neighbors of a group in the paper.
fn paper_degree(pes: usize) -> Option<f64> {
    match pes {
        SMALL => Some(12.7),
        LARGE => Some(19.5),
        _ => None,
    }
}

/// The same relative to the number of groups.
fn paper_degree_share(pes: usize) -> Option<f64> {
    match pes {
        SMALL => Some(0.70),
        LARGE => Some(0.04),
        _ => None,
    }
}

/// The number of objects per processor in the paper.
fn paper_virtualization(pes: usize) -> Option<f64> {
    match pes {
        SMALL => Some(180.0),
        LARGE => Some(6.0),
        1024 => Some(3.0),
        _ => None,
    }
}

/// A criterion for the case with a number of PEs and a partitioner, about a measured percentage.
fn about(
    all: &[Measured],
    (pes, partitioner): (usize, Partitioner),
    sentence: &str,
    percent: impl Fn(&Measured) -> f64,
    met: impl Fn(f64) -> bool,
) -> Criterion {
    let case = all.iter().find(|measured| (measured.pes, measured.case.partitioner) == (pes, partitioner));
    let percent = case.map_or(f64::NAN, |measured| 100.0 * percent(measured));
    Criterion::new(
        format!("p = {pes}, {} groups: {sentence}", partitioner.name()),
        format!("{percent:.1} %"),
        met(percent),
    )
}

/// The criteria of figure 5.
fn criteria_2d(all: &[Measured]) -> Vec<Criterion> {
    let large = (LARGE, Partitioner::Metis);
    let topolb = |measured: &Measured| measured.saved(measured.topolb);
    let loss = |measured: &Measured| measured.saved(measured.topolb) - measured.saved(measured.topocentlb);
    let refined = |measured: &Measured| 1.0 - measured.refined / measured.topolb;
    let text = "TopoLB saves at least 30 % of random (paper 34)";
    let mut criteria = vec![
        about(all, large, text, topolb, |percent| percent >= 30.0),
        about(all, large, "TopoCentLB saves up to 8 points less than TopoLB (paper 4)", loss, |points| {
            (0.0..=8.0).contains(&points)
        }),
        about(all, large, "RefineTopoLB saves at least 3 % more (paper 12)", refined, |percent| {
            percent >= 3.0
        }),
    ];
    let small = (SMALL, Partitioner::Metis);
    let text = "TopoLB saves at most 25 % of random";
    criteria.push(about(all, small, text, topolb, |percent| percent <= 25.0));
    // The numbers of the paper are between those of the two partitioners.
    let text = "TopoLB saves less than the paper's 34 %";
    criteria.push(about(all, (LARGE, Partitioner::Greedy), text, topolb, |percent| percent < 34.0));
    criteria
}

/// The criteria of figure 6.
fn criteria_3d(all: &[Measured]) -> Vec<Criterion> {
    let large = (LARGE, Partitioner::Metis);
    let refined = |measured: &Measured| measured.saved(measured.refined);
    let text = "TopoLB+RefineTopoLB saves at least 35 % of random (paper 40)";
    vec![about(all, large, text, refined, |percent| percent >= 35.0)]
}

//! The effect of each ablation of `PoiseLB`: ratios of hop-bytes and time without an ingredient to those with it.
//!
//! Times are wall-clock times of one thread and depend on other load of the machine; hop-bytes are the same in every
//! run. Results are geometric means over seeds, because the quality of one cut changes a single mapping by several
//! percent.

use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

use equipoise_apps::Failure;
use equipoise_model::{Database, topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::poise::ablation::{Ablation, Without};
use equipoise_strategies::poise::{PoiseLb, Quality};
use equipoise_strategies::workloads;
use equipoise_strategies::{Strategy, StrategyError};
use rayon::ThreadPoolBuilder;

use super::data::{Named, kneighbor, of_folder, uniform};
use crate::axis::Axis;
use crate::chart::{Chart, Series};
use crate::figure::{Criterion, Figure, FigureResult, Options};
use crate::rows::{Cell, Rows};

/// The figure.
pub(crate) const POISE_ABLATION: Figure = Figure {
    name: "poise-ablation",
    title: "PoiseLB without each of its ingredients",
    paper: "Equipoise's own",
    paper_shows: "no paper",
    we_show: "PoiseLB without each of its steps",
    why: "a step stays only if it pays",
    takes: "five minutes",
    notes: "Each number is the geometric mean, over three seeds, of the ratio to unchanged PoiseLB with the same seed; \
            `error` is the standard error. --data DIR uses the task graphs in a folder (METIS .graph files with at least as \
            many vertices as PEs) instead of generated ones. V-cycles are part of quality=best, and compared with \
            that; all other ingredients are compared with the default. Seconds are wall-clock times of one thread.\n",
    run,
};

const DEFAULT: &str = "default";
const BEST: &str = "best";

/// The variants, and the variant with which each is compared.
const VARIANTS: [(&str, &str); 18] = [
    (DEFAULT, DEFAULT),
    ("fast", DEFAULT),
    (BEST, DEFAULT),
    ("no-tries", DEFAULT),
    ("no-repeats", DEFAULT),
    ("no-search", DEFAULT),
    ("no-beam", DEFAULT),
    ("no-again", DEFAULT),
    ("no-terminals", DEFAULT),
    ("no-lines", DEFAULT),
    ("no-swaps", DEFAULT),
    ("no-repacks", DEFAULT),
    ("best-once", BEST),
    ("no-cycles", BEST),
    ("no-others", DEFAULT),
    ("no-starts", DEFAULT),
    ("no-tabu", DEFAULT),
    ("no-annealing", DEFAULT),
];

const SMALL_VARIANTS: [(&str, &str); 4] =
    [(DEFAULT, DEFAULT), ("fast", DEFAULT), ("no-search", DEFAULT), ("no-tabu", DEFAULT)];

/// An ingredient is effective if in one of the sets the change of the hop-bytes, or of the largest load, is more than
/// this number of standard errors. Without any effect this happens for one ablation in forty.
const ERRORS: f64 = 2.0;

const GRIDS: &str = "grids with many objects per PE";
const MANY: &str = "other graphs with many objects per PE";
const FEW: &str = "three objects per PE with different loads";
const ONE: &str = "one object on each of up to 128 PEs";
const ONE_LARGE: &str = "one object on each of more than 128 PEs";

/// The sets of instances. An ingredient may be effective in some of the sets only.
const SETS: [&str; 5] = [GRIDS, MANY, FEW, ONE, ONE_LARGE];

/// Machines for the task graphs of a folder, and for generated graphs with many objects per PE.
const MACHINES: [&str; 3] = ["tree:4:8:4/100:10:1", "torus:16x16", "torus:8x8x8"];

/// Task graphs for all machines.
const GRAPHS: [(&str, &str); 4] = [
    (GRIDS, "mesh:64x64"),
    (GRIDS, "torus:16x16x16"),
    (MANY, "leanmd:6x6x6,particles=100-500"),
    (MANY, "random:n=3000,degree=6"),
];

/// Task graphs for one machine each.
const PAIRS: [(&str, &str, &str); 13] = [
    (FEW, "mesh:16x24", "tree:4:8:4/100:10:1"),
    (FEW, "mesh:24x32", "torus:16x16"),
    (FEW, "kneighbor:768,8", "torus:16x16"),
    (FEW, "random:n=768,degree=6", "torus:16x16"),
    (FEW, "torus:12x12x12", "torus:8x8x9"),
    (ONE, "random:n=36,degree=12", "mesh:6x6"),
    (ONE, "random:n=64,degree=16", "torus:4x4x4"),
    (ONE, "random:n=64,degree=24", "mesh:8x8"),
    (ONE, "butterfly:128", "tree:4:8:4/100:10:1"),
    (ONE_LARGE, "random:n=256,degree=6", "torus:16x16"),
    (ONE_LARGE, "leanmd:3x3x3,particles=100-500", "mesh:15x27"),
    (ONE_LARGE, "mesh:16x32", "torus:8x8x8"),
    (ONE_LARGE, "random:n=512,degree=4", "torus:8x8x8"),
];

/// A graph on a machine.
struct Instance {
    name: String,
    machine: String,
    set: &'static str,
    database: Database,
}

impl Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.machine)
    }
}

/// A named graph on a machine.
fn instance(named: &Named, machine: &str, set: &'static str) -> Result<Instance, Failure> {
    let pes = topology::parse(machine)?.pes();
    let name = named.name.replace(',', " ");
    Ok(Instance { name, machine: machine.into(), set, database: named.database.clone().remap(pes as u32) })
}

fn generated(spec: &str) -> Result<Named, Failure> {
    Ok(Named { name: spec.into(), database: workloads::load(spec)? })
}

fn instances(options: &Options) -> Result<Vec<Instance>, Failure> {
    let mut all = Vec::new();
    if options.small {
        all.push(instance(&generated("mesh:24x24")?, MACHINES[1], GRIDS)?);
        all.push(instance(&generated("mesh:5x6")?, "mesh:5x6", ONE)?);
        return Ok(all);
    }
    let machines = MACHINES.map(|machine| Ok((topology::parse(machine)?.pes(), machine)));
    let machines = machines.into_iter().collect::<Result<Vec<(usize, &str)>, Failure>>()?;
    if let Some(folder) = &options.data {
        let is_graph = |path: &Path| path.extension().is_some_and(|extension| extension == "graph");
        for named in of_folder(folder, "task graph (.graph)", is_graph)? {
            let tasks = named.database.objects.len();
            for &(pes, machine) in machines.iter().filter(|(pes, _)| *pes <= tasks) {
                let set = match tasks {
                    _ if tasks > pes => MANY,
                    ..=128 => ONE,
                    _ => ONE_LARGE,
                };
                all.push(instance(&named, machine, set)?);
            }
        }
        return Ok(all);
    }
    for (set, spec) in GRAPHS {
        let named = generated(spec)?;
        for &(_, machine) in &machines {
            all.push(instance(&named, machine, set)?);
        }
    }
    // Loads that differ by a factor of hundreds, with few objects per PE.
    all.push(instance(&kneighbor(1024, options.seed)?, MACHINES[2], MANY)?);
    for (set, spec, machine) in PAIRS {
        let mut named = generated(spec)?;
        if set == FEW {
            for (number, object) in named.database.objects.iter_mut().enumerate() {
                object.load_seconds = 1.0 + (99.0 * uniform(options.seed, number)).floor();
            }
        }
        all.push(instance(&named, machine, set)?);
    }
    Ok(all)
}

/// The result of a variant on an instance with a seed: hop-bytes, the largest load of a PE over the average, seconds.
type Sample = [f64; 3];

/// The strategy of a variant, which is compared with the quality `baseline`.
fn strategy(variant: &str, baseline: &str) -> Result<Box<dyn Strategy>, Failure> {
    let of = |quality: &str| quality.parse::<Quality>().map_err(Failure::bug);
    let poise = |quality| PoiseLb { quality, gamma: Some(0.0), ..PoiseLb::default() };
    if variant == "best-once" {
        return Ok(Box::new(PoiseLb { restarts: Some(1), ..poise(of(BEST)?) }));
    }
    let Some(name) = variant.strip_prefix("no-") else { return Ok(Box::new(poise(of(variant)?))) };
    let ablation = Ablation::ALL.into_iter().find(|(other, _)| *other == name).map(|found| found.1);
    let ablation = ablation.ok_or_else(|| Failure::bug(format!("PoiseLB has no ablation `{name}`")))?;
    Ok(Box::new(Without { poise: poise(of(baseline)?), ablation }))
}

/// The results of a variant on an instance, for each seed.
fn measure(
    instance: &Instance,
    (variant, baseline): (&str, &str),
    seeds: &[u64],
) -> Result<Vec<Sample>, Failure> {
    let machine = topology::parse(&instance.machine)?;
    let strategy = strategy(variant, baseline)?;
    let once = |&seed: &u64| {
        let begin = Instant::now();
        let answer = strategy.assign(&instance.database, &*machine, seed)?;
        let seconds = begin.elapsed().as_secs_f64().max(1e-6);
        answer.check(&instance.database).map_err(|error| StrategyError::rejected(variant, error))?;
        let metrics = Metrics::of(&instance.database, &*machine, &answer.pe_of);
        let cost = metrics.communication.ok_or_else(|| Failure::bug("communication was not recorded"))?;
        let load = metrics.max_load_seconds / metrics.average_load_seconds;
        Ok([(cost.hop_bytes as f64).max(1.0), load, seconds])
    };
    seeds.iter().map(once).collect()
}

/// A geometric mean, and its relative standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Mean {
    value: f64,
    error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Mean {
        let count = values.len() as f64;
        let mean = values.iter().map(|value| value.ln()).sum::<f64>() / count;
        let spread: f64 = values.iter().map(|value| (value.ln() - mean).powi(2)).sum();
        // One value has no error estimate.
        let error = if values.len() > 1 { (spread / (count - 1.0) / count).sqrt() } else { 0.0 };
        Mean { value: mean.exp(), error }
    }

    /// Whether the mean is above 1 by more than [`ERRORS`] standard errors.
    fn is_significant(self) -> bool {
        self.value.ln() > ERRORS * self.error
    }
}

/// By measure: the ratios of two variants for each seed.
fn ratios(one: &[Sample], other: &[Sample]) -> [Vec<f64>; 3] {
    [0, 1, 2].map(|measure| one.iter().zip(other).map(|(one, other)| one[measure] / other[measure]).collect())
}

/// The ratios of a variant to its baseline, over a set.
struct Ratio {
    variant: &'static str,
    set: &'static str,
    hop_bytes: Mean,
    load: Mean,
    seconds: Mean,
    /// The instance with the largest ratio of hop-bytes, and this ratio.
    most: (String, f64),
}

fn run(options: &Options) -> Result<FigureResult, Failure> {
    let variants = options.choose(&VARIANTS, &SMALL_VARIANTS);
    let seeds: Vec<u64> =
        (0..if options.small { 1 } else { 3 }).map(|seed| options.seed.wrapping_add(seed)).collect();
    let alone = ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::bug)?;
    let all = options.sweep(instances(options)?, |instance| {
        let samples: Result<Vec<Vec<Sample>>, Failure> =
            alone.install(|| variants.iter().map(|variant| measure(&instance, *variant, &seeds)).collect());
        Ok((instance, samples?))
    })?;
    let mut rows = Rows::new([
        ("tasks", "tasks"),
        ("machine", "machine"),
        ("variant", "PoiseLB"),
        ("hop_bytes", "hop-bytes"),
        ("load", "max/avg"),
        ("seconds", "s"),
        ("compared_with", "compared with"),
        ("hop_bytes_ratio", "hop-bytes ratio"),
        ("hop_bytes_error", "error"),
        ("load_ratio", "max/avg ratio"),
        ("seconds_ratio", "s ratio"),
    ]);
    let place = |name: &str| variants.iter().position(|(variant, _)| *variant == name).unwrap_or(0);
    for (instance, samples) in &all {
        for (&(variant, baseline), one) in variants.iter().zip(samples) {
            let mean = |measure: usize| {
                Mean::of(&one.iter().map(|samples| samples[measure]).collect::<Vec<_>>()).value
            };
            let [hop_bytes, load, seconds] = ratios(one, &samples[place(baseline)]).map(|all| Mean::of(&all));
            rows.push([
                Cell::Text(instance.name.clone()),
                Cell::Text(instance.machine.clone()),
                Cell::Text(variant.into()),
                Cell::Number(mean(0)),
                Cell::Number(mean(1)),
                Cell::Number(mean(2)),
                Cell::Text(baseline.into()),
                Cell::Number(hop_bytes.value),
                Cell::Number(hop_bytes.error),
                Cell::Number(load.value),
                Cell::Number(seconds.value),
            ]);
        }
    }
    let mut of_sets = Vec::new();
    for set in SETS {
        for (number, &(variant, baseline)) in variants.iter().enumerate() {
            let mut pairs: [Vec<f64>; 3] = Default::default();
            let mut most: Option<(String, f64)> = None;
            for (instance, samples) in all.iter().filter(|(instance, _)| instance.set == set) {
                let of_instance = ratios(&samples[number], &samples[place(baseline)]);
                let here = Mean::of(&of_instance[0]).value;
                if most.as_ref().is_none_or(|most| here > most.1) {
                    most = Some((instance.to_string(), here));
                }
                pairs.iter_mut().zip(of_instance).for_each(|(all, new)| all.extend(new));
            }
            let Some(most) = most else { continue };
            let [hop_bytes, load, seconds] = pairs.map(|all| Mean::of(&all));
            rows.push([
                Cell::Text(format!("(all: {set})")),
                Cell::Nothing,
                Cell::Text(variant.into()),
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
                Cell::Text(baseline.into()),
                Cell::Number(hop_bytes.value),
                Cell::Number(hop_bytes.error),
                Cell::Number(load.value),
                Cell::Number(seconds.value),
            ]);
            of_sets.push(Ratio { variant, set, hop_bytes, load, seconds, most });
        }
    }
    Ok(FigureResult { rows, chart: chart(&of_sets), criteria: criteria(variants, &of_sets) })
}

fn chart(ratios: &[Ratio]) -> Chart {
    let series = SETS.into_iter().filter_map(|set| {
        let of_set = ratios.iter().filter(|ratio| ratio.set == set);
        let points: Vec<(f64, f64)> =
            (1..).map(f64::from).zip(of_set.map(|ratio| 100.0 * (ratio.hop_bytes.value - 1.0))).collect();
        (!points.is_empty()).then(|| Series::measured(set, points))
    });
    Chart {
        x: Axis::linear("variant, in the order of the table"),
        y: Axis::linear("percent more hop-bytes"),
        series: series.collect(),
    }
}

fn criteria(variants: &[(&'static str, &'static str)], ratios: &[Ratio]) -> Vec<Criterion> {
    let left_out =
        variants.iter().filter(|(variant, _)| variant.starts_with("no-") || *variant == "best-once");
    let pays = |&(variant, baseline): &(&'static str, &'static str)| {
        let of_variant = || ratios.iter().filter(move |ratio| ratio.variant == variant);
        let measured = of_variant().map(|ratio| {
            let Ratio { set, hop_bytes, load, seconds, most: (where_most, most), .. } = ratio;
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            format!(
                "{set} {:+.1} % +- {:.1} ({:+.1} % of load, {:.2} of the time; {:+.1} % for {where_most})",
                percent(hop_bytes.value),
                100.0 * hop_bytes.error,
                percent(load.value),
                seconds.value,
                percent(*most)
            )
        });
        Criterion::new(
            format!(
                "in one of the sets, {variant} has more hop-bytes or load than {baseline} by {ERRORS} standard errors"
            ),
            measured.collect::<Vec<_>>().join("; "),
            of_variant().any(|ratio| ratio.hop_bytes.is_significant() || ratio.load.is_significant()),
        )
    };
    let mut criteria: Vec<Criterion> = left_out.map(pays).collect();
    let faster = ratios.iter().filter(|ratio| ratio.variant == "fast");
    criteria.push(Criterion::every(
        "quality=fast takes less time than the default",
        faster,
        |ratio| 1.0 - ratio.seconds.value,
        |ratio| {
            let Ratio { set, hop_bytes, seconds, .. } = ratio;
            format!("{:.2} of the time for {:.3} of the hop-bytes, {set}", seconds.value, hop_bytes.value)
        },
    ));
    criteria
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ingredient_is_left_out_once() {
        for (name, _) in Ablation::ALL {
            let variant = format!("no-{name}");
            assert_eq!(VARIANTS.iter().filter(|(other, _)| *other == variant).count(), 1, "{name}");
        }
        for (variant, baseline) in VARIANTS {
            assert!(VARIANTS.contains(&(baseline, DEFAULT)), "{variant} has a measured baseline");
        }
    }

    #[test]
    fn an_ingredient_that_is_effective_in_one_set_is_effective() {
        let ratio = |set, value| Ratio {
            variant: "no-beam",
            set,
            hop_bytes: Mean { value, error: 0.005 },
            load: Mean { value: 1.0, error: 0.0 },
            seconds: Mean { value: 0.5, error: 0.1 },
            most: ("a on b".into(), 1.5),
        };
        let variants = [(DEFAULT, DEFAULT), ("no-beam", DEFAULT)];
        let check = |many, one, met| {
            let criterion = &criteria(&variants, &[ratio(MANY, many), ratio(ONE, one)])[0];
            assert_eq!(criterion.met, met, "{criterion:?}");
            assert!(
                criterion.measured.contains("+- 0.5 (+0.0 % of load, 0.50 of the time; +50.0 % for a on b"),
                "{criterion:?}"
            );
        };
        check(1.02, 0.99, true);
        check(0.99, 1.02, true);
        check(1.009, 1.005, false);
    }

    #[test]
    fn differences_between_seeds_are_not_significant() {
        // The results of the seeds differ much, and the ratios differ by chance.
        let one = [[1.0, 1.0, 1.0], [9.0, 1.0, 1.0]];
        let [pairs, ..] = ratios(&one, &[[1.0, 1.0, 1.0], [8.0, 1.0, 1.0]]);
        assert_eq!(pairs, [1.0, 1.125]);
        assert!(!Mean::of(&pairs).is_significant());
        // All ratios are above 1, although the results of the seeds differ much.
        let [pairs, ..] = ratios(&one, &[[0.9, 1.0, 1.0], [8.0, 1.0, 1.0]]);
        assert!(Mean::of(&pairs).is_significant());
        assert!(Mean::of(&[1.1]).is_significant() && !Mean::of(&[1.0, 1.0]).is_significant());
    }
}

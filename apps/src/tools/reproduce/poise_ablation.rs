//! What each ingredient of `PoiseLB` is worth: hop-bytes and time without it, as ratios to those with it.
//!
//! Times are those of a thread, and of what else runs on the machine; hop-bytes are the same in every run. What counts
//! is the geometric mean over seeds: whether one cut comes out well decides several percent of a single mapping.

use std::fmt::{self, Display};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::{Database, graph, registry, topology};
use rayon::ThreadPoolBuilder;

use super::axis::Axis;
use super::chart::{Chart, Series};
use super::figure::{Criterion, Figure, FigureResult, Options};
use super::poise_data::{Named, kneighbor, of_folder};
use super::rows::{Cell, Rows};

/// The figure.
pub(super) const POISE_ABLATION: Figure = Figure {
    name: "poise-ablation",
    title: "PoiseLB without each of its ingredients",
    paper: "Equipoise's own",
    takes: "three minutes",
    notes: "Each number is of three seeds, as a ratio to PoiseLB as it is: geometric means. --data DIR takes the task \
            graphs in a folder (METIS .graph files; those with more vertices than PEs are mapped, others of which there is \
            one per PE are assigned) instead of generated ones. The V-cycles are those of quality=best, and compared \
            with that; all else is of the default. Seconds are of one thread, by the clock.\n",
    run,
};

const DEFAULT: &str = "default";
const BEST: &str = "best";

/// What is left out, what that is compared with, and what it is for.
const VARIANTS: [(&str, &str); 17] = [
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
    ("no-starts", DEFAULT),
    ("no-tabu", DEFAULT),
    ("no-annealing", DEFAULT),
];

const SMALL_VARIANTS: [(&str, &str); 4] =
    [(DEFAULT, DEFAULT), ("fast", DEFAULT), ("no-search", DEFAULT), ("no-tabu", DEFAULT)];

/// An ingredient pays if in one of the sets it takes off at least this part of the hop-bytes, or of the largest load.
const PAYS: f64 = 0.003;

/// Machines for graphs of many objects per PE.
const MACHINES: [&str; 3] = ["tree:4:8:4/100:10:1", "torus:16x16", "torus:8x8x8"];

/// Task graphs for them.
const GRAPHS: [&str; 4] =
    ["mesh:64x64", "torus:16x16x16", "leanmd:6x6x6,particles=100-500", "random:n=3000,degree=6"];

/// Task graphs of which there is one task per PE, and their machines.
const ONE_EACH: [(&str, &str); 4] = [
    ("random:n=64,degree=8", "mesh:8x8"),
    ("leanmd:3x3x3,particles=100-500", "mesh:15x27"),
    ("mesh:16x32", "torus:8x8x8"),
    ("butterfly:128", "tree:4:8:4/100:10:1"),
];

/// A graph on a machine.
struct Instance {
    name: String,
    machine: String,
    /// What it is counted with.
    set: &'static str,
    database: Database,
}

impl Display for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name, self.machine)
    }
}

const MANY: &str = "many objects per PE";
const ONE: &str = "one object per PE";

/// The number of the vertices of a graph, on PEs enough.
fn instance(named: &Named, machine: &str, set: &'static str) -> anyhow::Result<Instance> {
    let pes = topology::parse(machine)?.pes();
    let name = named.name.replace(',', " ");
    Ok(Instance { name, machine: machine.into(), set, database: named.database.remap(pes as u32) })
}

fn generated(spec: &str) -> anyhow::Result<Named> {
    Ok(Named { name: spec.into(), database: graph::load(spec)? })
}

fn instances(options: &Options) -> anyhow::Result<Vec<Instance>> {
    let mut all = Vec::new();
    if options.small {
        all.push(instance(&generated("mesh:24x24")?, MACHINES[1], MANY)?);
        all.push(instance(&generated("mesh:5x6")?, "mesh:5x6", ONE)?);
        return Ok(all);
    }
    let machines = MACHINES.map(|machine| Ok((topology::parse(machine)?.pes(), machine)));
    let machines = machines.into_iter().collect::<anyhow::Result<Vec<(usize, &str)>>>()?;
    if let Some(folder) = &options.data {
        let is_graph = |path: &Path| path.extension().is_some_and(|extension| extension == "graph");
        for named in of_folder(folder, "task graph (.graph)", is_graph)? {
            let tasks = named.database.objects.len();
            for &(pes, machine) in machines.iter().filter(|(pes, _)| *pes <= tasks) {
                let set = if pes == tasks { ONE } else { MANY };
                all.push(instance(&named, machine, set)?);
            }
        }
        return Ok(all);
    }
    for spec in GRAPHS {
        let named = generated(spec)?;
        for &(_, machine) in &machines {
            all.push(instance(&named, machine, MANY)?);
        }
    }
    // Loads that differ by a factor of hundreds, a few on a PE.
    all.push(instance(&kneighbor(1024, options.seed)?, MACHINES[2], MANY)?);
    for (spec, machine) in ONE_EACH {
        all.push(instance(&generated(spec)?, machine, ONE)?);
    }
    Ok(all)
}

/// A variant on an instance.
#[derive(Clone, Copy)]
struct Taken {
    hop_bytes: f64,
    /// The largest of a PE, over the average.
    load: f64,
    seconds: f64,
}

fn take(instance: &Instance, variant: &str, seeds: &[u64]) -> anyhow::Result<Taken> {
    let machine = topology::parse(&instance.machine)?;
    let quality = match variant {
        "best-once" => "best,restarts=1".into(),
        other => other.to_string(),
    };
    let spec = format!("PoiseLB:gamma=0,quality={quality}");
    let choice = registry::parse(&spec, &[])?;
    let (mut hop_bytes, mut load, mut seconds) = (0.0, 0.0, 0.0);
    for &seed in seeds {
        let begin = Instant::now();
        let answer = choice.strategy.assign(&instance.database, &*machine, seed)?;
        seconds += begin.elapsed().as_secs_f64().max(1e-6).ln();
        answer.check(&instance.database).map_err(|impossible| {
            anyhow!("{spec} gave an impossible answer: {impossible}; this is a mistake in the strategy")
        })?;
        let metrics = Metrics::of(&instance.database, &*machine, &answer.pe_of);
        let cost = metrics.communication.context("communication was not recorded")?;
        hop_bytes += (cost.hop_bytes as f64).max(1.0).ln();
        load += (metrics.max_load_seconds / metrics.average_load_seconds).ln();
    }
    let mean = |sum: f64| (sum / seeds.len() as f64).exp();
    Ok(Taken { hop_bytes: mean(hop_bytes), load: mean(load), seconds: mean(seconds) })
}

/// A variant beside what it is compared with, over a set.
struct Ratio {
    variant: &'static str,
    set: &'static str,
    hop_bytes: f64,
    load: f64,
    seconds: f64,
    /// Of instances: the name and the ratio of hop-bytes of that where it is worth most.
    most: (String, f64),
}

fn run(options: &Options) -> anyhow::Result<FigureResult> {
    let variants = options.choose(&VARIANTS, &SMALL_VARIANTS);
    let seeds: Vec<u64> =
        (0..if options.small { 1 } else { 3 }).map(|seed| options.seed.wrapping_add(seed)).collect();
    let alone = ThreadPoolBuilder::new().num_threads(1).build()?;
    let all = options.sweep(instances(options)?, |instance| {
        let taken: anyhow::Result<Vec<Taken>> =
            alone.install(|| variants.iter().map(|(variant, _)| take(&instance, variant, &seeds)).collect());
        Ok((instance, taken?))
    })?;
    let mut rows = Rows::new([
        ("tasks", "tasks"),
        ("machine", "machine"),
        ("variant", "PoiseLB"),
        ("hop_bytes", "hop-bytes"),
        ("load", "max/avg"),
        ("seconds", "s"),
        ("compared_with", "beside"),
        ("hop_bytes_ratio", "hop-bytes of that"),
        ("load_ratio", "max/avg of that"),
        ("seconds_ratio", "s of that"),
    ]);
    let place = |name: &str| variants.iter().position(|(variant, _)| *variant == name).unwrap_or(0);
    for (instance, taken) in &all {
        for (&(variant, beside), one) in variants.iter().zip(taken) {
            let other = taken[place(beside)];
            rows.push([
                Cell::Text(instance.name.clone()),
                Cell::Text(instance.machine.clone()),
                Cell::Text(variant.into()),
                Cell::Number(one.hop_bytes),
                Cell::Number(one.load),
                Cell::Number(one.seconds),
                Cell::Text(beside.into()),
                Cell::Number(one.hop_bytes / other.hop_bytes),
                Cell::Number(one.load / other.load),
                Cell::Number(one.seconds / other.seconds),
            ]);
        }
    }
    let mut ratios = Vec::new();
    for set in [MANY, ONE] {
        for (number, &(variant, beside)) in variants.iter().enumerate() {
            let of_set: Vec<(String, [f64; 3])> = all
                .iter()
                .filter(|(instance, _)| instance.set == set)
                .map(|(instance, taken)| {
                    let (one, other) = (taken[number], taken[place(beside)]);
                    let ratios =
                        [one.hop_bytes / other.hop_bytes, one.load / other.load, one.seconds / other.seconds];
                    (instance.to_string(), ratios)
                })
                .collect();
            let mean = |number: usize| {
                let sum: f64 = of_set.iter().map(|ratio| ratio.1[number].ln()).sum();
                (sum / of_set.len() as f64).exp()
            };
            let most = of_set.iter().max_by(|a, b| a.1[0].total_cmp(&b.1[0]));
            let Some(most) = most.map(|most| (most.0.clone(), most.1[0])) else { continue };
            let ratio = Ratio { variant, set, hop_bytes: mean(0), load: mean(1), seconds: mean(2), most };
            rows.push([
                Cell::Text(format!("(all: {set})")),
                Cell::Nothing,
                Cell::Text(variant.into()),
                Cell::Nothing,
                Cell::Nothing,
                Cell::Nothing,
                Cell::Text(beside.into()),
                Cell::Number(ratio.hop_bytes),
                Cell::Number(ratio.load),
                Cell::Number(ratio.seconds),
            ]);
            ratios.push(ratio);
        }
    }
    Ok(FigureResult { rows, chart: chart(&ratios), criteria: criteria(variants, &ratios) })
}

fn chart(ratios: &[Ratio]) -> Chart {
    let series = [MANY, ONE].into_iter().filter_map(|set| {
        let of_set = ratios.iter().filter(|ratio| ratio.set == set);
        let points: Vec<(f64, f64)> =
            (1..).map(f64::from).zip(of_set.map(|ratio| 100.0 * (ratio.hop_bytes - 1.0))).collect();
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
    let pays = |&(variant, beside): &(&'static str, &'static str)| {
        let of_variant = || ratios.iter().filter(move |ratio| ratio.variant == variant);
        let worth =
            of_variant().map(|ratio| ratio.hop_bytes.max(ratio.load) - 1.0).fold(f64::NEG_INFINITY, f64::max);
        let told = of_variant().map(|ratio| {
            let Ratio { set, hop_bytes, load, seconds, most: (where_most, most), .. } = ratio;
            let percent = |ratio: f64| 100.0 * (ratio - 1.0);
            format!(
                "{set} {:+.1} % ({:+.1} % of load, {seconds:.2} of the time; {:+.1} % for {where_most})",
                percent(*hop_bytes),
                percent(*load),
                percent(*most)
            )
        });
        Criterion::new(
            format!(
                "{variant} has {:.1} % more hop-bytes or load than {beside}, or more, in one of the sets",
                100.0 * PAYS
            ),
            told.collect::<Vec<_>>().join("; "),
            worth >= PAYS,
        )
    };
    let mut criteria: Vec<Criterion> = left_out.map(pays).collect();
    let faster = ratios.iter().filter(|ratio| ratio.variant == "fast");
    criteria.push(Criterion::every(
        "quality=fast takes less time than the default",
        faster,
        |ratio| 1.0 - ratio.seconds,
        |ratio| {
            let Ratio { set, hop_bytes, seconds, .. } = ratio;
            format!("{seconds:.2} of it for {hop_bytes:.3} of the hop-bytes, {set}")
        },
    ));
    criteria
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::poise::Ingredient;

    use super::*;

    #[test]
    fn every_ingredient_is_left_out_once() {
        for (name, _) in Ingredient::ALL {
            let variant = format!("no-{name}");
            assert_eq!(VARIANTS.iter().filter(|(other, _)| *other == variant).count(), 1, "{name}");
        }
        for (variant, beside) in VARIANTS {
            assert!(VARIANTS.contains(&(beside, DEFAULT)), "{variant} is compared with what is measured");
        }
    }

    #[test]
    fn what_pays_in_one_set_pays() {
        let ratio = |set, hop_bytes| Ratio {
            variant: "no-beam",
            set,
            hop_bytes,
            load: 1.0,
            seconds: 0.5,
            most: ("a on b".into(), 1.5),
        };
        let variants = [(DEFAULT, DEFAULT), ("no-beam", DEFAULT)];
        let check = |many, one, met| {
            let criterion = &criteria(&variants, &[ratio(MANY, many), ratio(ONE, one)])[0];
            assert_eq!(criterion.met, met, "{criterion:?}");
            assert!(
                criterion.measured.contains("+0.0 % of load, 0.50 of the time; +50.0 % for a on b"),
                "{criterion:?}"
            );
        };
        check(1.02, 0.99, true);
        check(0.99, 1.02, true);
        check(1.001, 1.002, false);
    }
}

//! What figures of mapping papers have in common: strategies on task graphs and machines.

use anyhow::{Context as _, anyhow};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::{Assignment, Database, Topology, registry};

/// A mapping of groups that know nothing of the machine: each on a PE of its own, drawn at random.
const RANDOM: &str = "RandomLB:groups=keep";

/// How many random mappings make a mean: of 5, at 100 processors, the mean is known to 2 % only.
pub(super) const SEEDS: u64 = 40;

/// The answer of the strategy of that spec, if it is possible.
///
/// # Errors
/// When there is no such strategy, or it has no answer.
pub(super) fn ask(
    spec: &str,
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> anyhow::Result<Assignment> {
    let choice = registry::parse(spec, &[])?;
    let answer = choice.strategy.assign(database, machine, seed);
    let answer = answer.with_context(|| format!("{spec} gave no answer"))?;
    answer.check(database).map_err(|impossible| {
        anyhow!("{spec} gave an impossible answer: {impossible}; this is a mistake in the strategy")
    })?;
    Ok(answer)
}

/// The hops that a byte which leaves its PE travels under the strategy of that spec.
///
/// # Errors
/// As [`ask`].
pub(super) fn hops(
    spec: &str,
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> anyhow::Result<f64> {
    let answer = ask(spec, database, machine, seed)?;
    let cost = Metrics::of(database, machine, &answer.pe_of).communication;
    Ok(cost.context("communication was not recorded")?.hops_per_remote_byte)
}

/// The same under random mappings of what is on each PE, in the mean.
///
/// # Errors
/// As [`ask`].
pub(super) fn random_hops(database: &Database, machine: &dyn Topology, seed: u64) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for run in 0..SEEDS {
        sum += hops(RANDOM, database, machine, seed.wrapping_add(run))?;
    }
    Ok(sum / SEEDS as f64)
}

/// The mean distance between two different PEs: the hops per byte to expect of a random mapping.
pub(super) fn mean_distance(machine: &dyn Topology) -> f64 {
    let pes = machine.pes();
    let mut row = vec![0; pes];
    let mut sum = 0u64;
    for pe in 0..pes {
        machine.distances_from(pe, &mut row);
        sum += row.iter().map(|&distance| u64::from(distance)).sum::<u64>();
    }
    if pes < 2 { 0.0 } else { sum as f64 / (pes as f64 * (pes - 1) as f64) }
}

#[cfg(test)]
mod tests {
    use equipoise_strategies::{graph, topology};

    use super::*;

    #[test]
    fn random_mappings_are_about_as_far_as_pes_are_from_each_other() {
        let machine = topology::parse("torus:8x8").expect("a torus");
        let database = graph::load("mesh:8x8").expect("a mesh").remap(64);
        // The mean over all pairs, the same PE twice among them, is a quarter of each side.
        assert_eq!(mean_distance(&*machine), 4.0 * 64.0 / 63.0);
        let hops = random_hops(&database, &*machine, 0).expect("RandomLB is there");
        assert!((hops / mean_distance(&*machine) - 1.0).abs() < 0.1, "{hops}");
    }

    #[test]
    fn a_strategy_without_an_answer_is_named() {
        let machine = topology::parse("torus:8x8").expect("a torus");
        let database = graph::load("mesh:8x8").expect("a mesh").remap(4);
        let error = ask("TopoLB", &database, &*machine, 0).expect_err("4 PEs are not 64");
        assert!(
            format!("{error:#}").starts_with("TopoLB gave no answer: the database has 4 PEs"),
            "{error:#}"
        );
        assert!(ask("TopoLb2", &database, &*machine, 0).is_err());
    }
}

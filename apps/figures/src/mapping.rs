//! Shared by the figures of mapping papers: strategies on task graphs and machines.

use equipoise_apps::Failure;
use equipoise_model::{Assignment, Database, Topology};
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::{StrategyError, registry};

/// A random mapping that keeps groups together: each group on its own PE.
const RANDOM: &str = "RandomLB:groups=keep";

/// The number of random mappings per mean. With 5 mappings at 100 processors, the mean has an error of 2 %.
pub(crate) const SEEDS: u64 = 40;

/// The valid assignment of a strategy.
///
/// # Errors
/// If there is no such strategy, it fails, or its assignment is invalid.
pub(crate) fn assign(
    spec: &str,
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> Result<Assignment, Failure> {
    let choice = registry::parse(spec, &[])?;
    let answer = choice.strategy.assign(database, machine, seed);
    let answer = answer.map_err(|error| Failure::from(error).about(format_args!("{spec} gave no answer")))?;
    answer.check(database).map_err(|error| StrategyError::rejected(spec, error))?;
    Ok(answer)
}

/// The hops per byte between PEs after the strategy.
///
/// # Errors
/// As [`assign`].
pub(crate) fn hops(
    spec: &str,
    database: &Database,
    machine: &dyn Topology,
    seed: u64,
) -> Result<f64, Failure> {
    let answer = assign(spec, database, machine, seed)?;
    let cost = Metrics::of(database, machine, &answer.pe_of).communication;
    Ok(cost.ok_or_else(|| Failure::bug("communication was not recorded"))?.hops_per_remote_byte)
}

/// The mean of the same over random mappings that keep the objects of a PE together.
///
/// # Errors
/// As [`assign`].
pub(crate) fn random_hops(database: &Database, machine: &dyn Topology, seed: u64) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for run in 0..SEEDS {
        sum += hops(RANDOM, database, machine, seed.wrapping_add(run))?;
    }
    Ok(sum / SEEDS as f64)
}

/// The mean distance between two different PEs, which is the expected hops per byte of a random mapping.
pub(crate) fn mean_distance(machine: &dyn Topology) -> f64 {
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
    use equipoise_model::topology;
    use equipoise_strategies::workloads;

    use super::*;

    #[test]
    fn hops_of_random_mappings_are_about_the_mean_distance() {
        let machine = topology::parse("torus:8x8").expect("a torus");
        let database = workloads::load("mesh:8x8").expect("a mesh").remap(64);
        // Over all pairs, including equal PEs, the mean per dimension is a quarter of the side.
        assert_eq!(mean_distance(&*machine), 4.0 * 64.0 / 63.0);
        let hops = random_hops(&database, &*machine, 0).expect("RandomLB is there");
        assert!((hops / mean_distance(&*machine) - 1.0).abs() < 0.1, "{hops}");
    }

    #[test]
    fn the_error_of_a_failed_strategy_names_the_strategy() {
        let machine = topology::parse("torus:8x8").expect("a torus");
        let database = workloads::load("mesh:8x8").expect("a mesh").remap(4);
        let error = assign("TopoLB", &database, &*machine, 0).expect_err("4 PEs are not 64");
        assert!(
            format!("{error:#}").starts_with("TopoLB gave no answer: the database has 4 PEs"),
            "{error:#}"
        );
        assert!(assign("TopoLb2", &database, &*machine, 0).is_err());
    }
}

//! How good the contention-aware greedy mapper is, in the numbers that De Petris and Perego (1994) print.

use std::sync::Arc;

use equipoise_strategies::cost::contention::{Estimate, Speeds};
use equipoise_strategies::mapping::contention_lb::{ContentionLb, map};
use equipoise_strategies::mapping::lee_aggarwal::{self, Problem};
use equipoise_strategies::program::{Costs, Isomorphic, Model, OVERLAP, Program, execute_on, generate};
use equipoise_strategies::{Topology, topology};

/// The model of a program.
///
/// # Panics
/// When it cannot be simulated.
pub fn modelled(program: &Program, costs: Costs) -> Model {
    Model::of(program, costs, OVERLAP).expect("it can be simulated")
}

/// The machine of a spec that is right.
///
/// # Panics
/// When it is not.
pub fn machine(spec: &str) -> Arc<dyn Topology> {
    topology::parse(spec).expect("a machine")
}

/// The smallest square mesh with a PE for each task.
pub fn square(tasks: usize) -> String {
    let side = (1..).find(|side| side * side >= tasks).unwrap_or(tasks);
    format!("mesh:{side}x{side}")
}

fn mapped(model: &Model, machine: &dyn Topology) -> Vec<u32> {
    let all: Vec<u32> = (0..machine.pes() as u32).collect();
    let mapped = map(model, machine, &Speeds::default(), &all, &ContentionLb::default(), 0);
    mapped.expect("nothing bounds memory").places
}

fn end(program: &Program, machine: &Arc<dyn Topology>, places: &[u32], costs: Costs) -> f64 {
    execute_on(program, machine, places, costs).expect("it can be simulated").cycles as f64
}

fn first(program: &Program) -> Vec<u32> {
    (0..program.tasks() as u32).collect()
}

/// By how many percent the worst of some programs, renumbered at random, ends later where the mapper puts it than at
/// best: on a machine with a link for every channel or, of butterflies on meshes, with process i on PE i.
pub fn percent_above_best(cases: &[(&str, &str)]) -> f64 {
    let above = |&(spec, topology): &(&str, &str)| {
        let (program, costs) = (generate::known(spec), Costs::default());
        let host = machine(topology);
        let best = if spec.starts_with("butterfly") && topology.starts_with("mesh") {
            end(&program, &host, &first(&program), costs)
        } else {
            let isomorphic: Arc<dyn Topology> = Arc::new(Isomorphic::of(&program));
            end(&program, &isomorphic, &first(&program), costs)
        };
        let program = generate::renumbered(&program, &generate::permutation(program.tasks(), 0));
        let places = mapped(&modelled(&program, costs), &*host);
        100.0 * (end(&program, &host, &places, costs) / best - 1.0)
    };
    cases.iter().map(above).fold(0.0, f64::max)
}

/// The relative errors of F, in percent, on so many random programs of 4 to 200 tasks with long messages, on random places.
pub fn errors_percent(graphs: u64) -> Vec<f64> {
    let error = |graph: u64| {
        let tasks = 4 + (graph * 196 / (graphs - 1).max(1)) as usize;
        let program = generate::known(&format!("random:n={tasks},iterations=10,flits=64,seed={graph}"));
        let host = machine(&square(tasks));
        let places = generate::permutation(host.pes(), graph)[..tasks].to_vec();
        let model = modelled(&program, Costs::default());
        let estimate = Model::cycles(Estimate::of(&model, &*host, &Speeds::default(), &places));
        100.0 * (estimate / end(&program, &host, &places, Costs::default()) - 1.0).abs()
    };
    (0..graphs).map(error).collect()
}

/// Of how many patterns the mapper's end is no later than that of Lee and Aggarwal's.
pub fn as_good_as_lee_aggarwal(patterns: &[(&str, u32)]) -> f64 {
    let costs = Costs { send_cycles: 1, receive_cycles: 1 };
    let is_as_good = |&(number, pattern): &(usize, &(&str, u32))| {
        let &(spec, dimensions) = pattern;
        let program = generate::known(spec);
        let order = generate::permutation(program.tasks(), number as u64);
        let program = generate::renumbered(&program, &order);
        let host = machine(&format!("hypercube:{dimensions}"));
        let model = modelled(&program, costs);
        let all: Vec<u32> = (0..host.pes() as u32).collect();
        let theirs = lee_aggarwal::place(&Problem::of(&model), &[], &all, &*host, 20, 0);
        end(&program, &host, &mapped(&model, &*host), costs) <= end(&program, &host, &theirs, costs)
    };
    patterns.iter().enumerate().filter(is_as_good).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_optimal_is_nothing_above_the_best() {
        assert_eq!(percent_above_best(&[("ring:n=8", "mesh:4x2"), ("mesh:sizes=4x4", "mesh:4x4")]), 0.0);
        assert_eq!(as_good_as_lee_aggarwal(&[("ring:n=8", 3)]), 1.0);
        assert!(errors_percent(2).iter().all(|&percent| percent < 20.0));
        assert_eq!(square(17), "mesh:5x5");
    }
}

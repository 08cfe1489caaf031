//! In every configuration the stencils compute the same as a plain loop over all cells.

use equipoise::{Config, Report};
use equipoise_apps::stencil::{Extent, Options, Rules, Solution, temperature};
use equipoise_apps::{stencil2d, stencil3d};
use proptest::prelude::*;

use crate::common::every_configuration;

/// The stencil in `D` dimensions.
trait Solve<const D: usize> {
    fn solve(&self, config: Config) -> Report<Solution>;
}

impl Solve<2> for Options<2> {
    fn solve(&self, config: Config) -> Report<Solution> {
        stencil2d::solve(config, self)
    }
}

impl Solve<3> for Options<3> {
    fn solve(&self, config: Config) -> Report<Solution> {
        stencil3d::solve(config, self)
    }
}

/// Jacobi's method on the whole domain, without blocks or halos.
fn sequential<const D: usize>(options: &Options<D>) -> Solution {
    let rules = options.rules;
    let world: [i64; D] = std::array::from_fn(|d| i64::from(options.blocks.0[d] * options.cells.0[d]));
    let count = world.iter().product::<i64>() as usize;
    let position = |at: usize| {
        let mut at = at as i64;
        world.map(|size| {
            let x = at % size;
            at /= size;
            x
        })
    };
    let mut cells: Vec<f64> = (0..count).map(|at| temperature(position(at), world)).collect();
    let mut residual = 0.0;
    let mut iterations = 0;
    while iterations < rules.iterations {
        let value = |mut at: [i64; D]| {
            for d in (0..D).filter(|_| rules.periodic) {
                at[d] = at[d].rem_euclid(world[d]);
            }
            if (0..D).any(|d| at[d] < 0 || at[d] >= world[d]) {
                return temperature(at, world);
            }
            cells[(0..D).rev().fold(0, |rank, d| rank * world[d] + at[d]) as usize]
        };
        let neighbor = |at: [i64; D], d: usize, step: i64| {
            let mut neighbor = at;
            neighbor[d] += step;
            value(neighbor)
        };
        let mean = |at: [i64; D]| {
            let mut sum = 0.0;
            for d in 0..D {
                sum += neighbor(at, d, -1) + neighbor(at, d, 1);
            }
            sum / (2 * D) as f64
        };
        let next: Vec<f64> = (0..count).map(|at| mean(position(at))).collect();
        residual = next.iter().zip(&cells).map(|(new, old)| (new - old).abs()).fold(0.0, f64::max);
        cells = next;
        iterations += 1;
        if residual < rules.tolerance {
            break;
        }
    }
    Solution { iterations, residual, heat: cells.iter().sum() }
}

/// Compares two solutions: residual and iterations exactly, the sum up to rounding, because its terms may be added in
/// another order.
#[track_caller]
fn check(found: &Solution, expected: &Solution, how: &str) {
    assert_eq!(found.iterations, expected.iterations, "{how}");
    assert_eq!(found.residual.to_bits(), expected.residual.to_bits(), "{how}: {found:?}, not {expected:?}");
    let error = (found.heat - expected.heat).abs();
    assert!(error <= 1e-12 * expected.heat.abs(), "{how}: {found:?}, not {expected:?}");
}

#[track_caller]
fn check_every_configuration<const D: usize>(blocks: [i32; D], cells: [i32; D], rules: Rules)
where
    Options<D>: Solve<D>,
{
    let options = Options { blocks: Extent(blocks), cells: Extent(cells), rules };
    let expected = options.solve(Config::simulated(1, 0)).result;
    check(&expected, &sequential(&options), "one PE");
    let objects = blocks.iter().product::<i32>() as usize;
    let steps = (rules.iterations - 1) / rules.lb_every;
    every_configuration(objects, |config, how| {
        let report = options.solve(config);
        assert_eq!(report.result, expected, "{how}");
        assert_eq!(report.lb_steps.len(), steps as usize, "{how}");
        for step in &report.lb_steps {
            assert_eq!(step.error, None, "{how}");
        }
    });
}

#[test]
pub fn a_2d_result_is_identical_in_every_configuration() {
    check_every_configuration(
        [4, 3],
        [5, 4],
        Rules { iterations: 13, lb_every: 4, imbalance: 3, ..Rules::default() },
    );
}

#[test]
pub fn a_periodic_2d_result_is_identical_in_every_configuration() {
    let rules = Rules { iterations: 9, lb_every: 2, periodic: true, ..Rules::default() };
    check_every_configuration([5, 2], [3, 6], rules);
}

#[test]
pub fn a_3d_result_is_identical_in_every_configuration() {
    check_every_configuration([2, 3, 2], [3, 2, 4], Rules { iterations: 9, lb_every: 4, ..Rules::default() });
}

#[test]
pub fn a_periodic_3d_result_is_identical_in_every_configuration() {
    let rules = Rules { iterations: 7, lb_every: 2, periodic: true, ..Rules::default() };
    check_every_configuration([2, 2, 3], [2, 3, 2], rules);
}

#[test]
fn a_result_is_identical_for_any_order_of_messages() {
    let rules = Rules { iterations: 12, lb_every: 3, ..Rules::default() };
    let plane = Options { blocks: Extent([4, 4]), cells: Extent([3, 3]), rules };
    let space = Options { blocks: Extent([2, 3, 2]), cells: Extent([2, 2, 2]), rules };
    let (flat, deep) =
        (plane.solve(Config::simulated(1, 0)).result, space.solve(Config::simulated(1, 0)).result);
    for seed in 0..100 {
        let pes = 1 + seed as usize % 8;
        let config = Config { balancer: vec!["RandomLB".into()], ..Config::simulated(pes, seed) };
        assert_eq!(plane.solve(config.clone()).result, flat, "seed {seed} on {pes} PEs");
        assert_eq!(space.solve(config).result, deep, "seed {seed} on {pes} PEs");
    }
}

#[test]
fn blocks_without_neighbors_continue() {
    let rules = Rules { iterations: 20, lb_every: 5, ..Rules::default() };
    for periodic in [false, true] {
        let options =
            Options { blocks: Extent([1, 1]), cells: Extent([6, 7]), rules: Rules { periodic, ..rules } };
        for pes in [1, 3] {
            let config = Config { balancer: vec!["RotateLB".into()], ..Config::threads(pes) };
            check(&options.solve(config).result, &sequential(&options), "one block");
        }
    }
}

#[test]
fn a_tolerance_ends_the_iterations_early() {
    let rules = Rules { iterations: 10_000, tolerance: 1e-4, ..Rules::default() };
    let options = Options { blocks: Extent([2, 2]), cells: Extent([4, 4]), rules };
    let solution = options.solve(Config::threads(2)).result;
    assert!(solution.residual < 1e-4 && solution.iterations < 10_000, "{solution:?}");
    check(&solution, &sequential(&options), "to a tolerance");
}

#[test]
fn the_corner_with_more_work_moves_around_the_domain() {
    let rules = Rules { imbalance: 3, move_every: 5, ..Rules::default() };
    let busy = |iteration| {
        let indices = (0..4).flat_map(|x| (0..4).map(move |y| [x, y]));
        indices.filter(|&index| rules.repeats(index, [4, 4], iteration) == 3).collect::<Vec<_>>()
    };
    assert_eq!(busy(4), [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(busy(5), [[1, 1], [1, 2], [2, 1], [2, 2]]);
    assert_eq!(busy(15), [[0, 0], [0, 3], [3, 0], [3, 3]]);
    assert_eq!(busy(20), busy(0));
    let stays = Rules { move_every: 0, ..rules };
    assert_eq!(stays.repeats([0, 0], [4, 4], 1000), 3);
}

#[test]
fn charged_loads_are_the_same_in_every_simulated_run() {
    let rules = Rules { iterations: 21, lb_every: 5, imbalance: 4, charge: Some(1e-9), ..Rules::default() };
    let options = Options { blocks: Extent([4, 4]), cells: Extent([8, 8]), rules };
    // 16 blocks of 64 cells; 4 of them have work factor 4.
    let seconds = 5.0 * 64.0 * 1e-9 * (4.0 * 4.0 + 12.0);
    for seed in 0..10 {
        let config = Config { balancer: vec!["GreedyLB".into()], ..Config::simulated(4, seed) };
        let steps = options.solve(config).lb_steps;
        assert_eq!(steps.len(), 4);
        for step in &steps {
            let sum = 4.0 * step.before.average_load_seconds;
            assert!((sum / seconds - 1.0).abs() < 1e-12, "{sum} s instead of {seconds} s, seed {seed}");
        }
        // PEs 0 and 1 have two heavy blocks each before the first step; afterwards every PE has one.
        assert!((steps[0].before.imbalance - 3.0 / 7.0).abs() < 1e-12, "{:?}", steps[0].before);
        assert!(steps[0].after.imbalance < 1e-12 && steps[3].before.imbalance < 1e-12, "{steps:?}");
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    let load = (1u32..3, 0u32..4);
    (1u32..12, any::<bool>(), 0u32..4, load).prop_map(|(iterations, periodic, lb_every, load)| {
        let (imbalance, move_every) = load;
        Rules { iterations, periodic, lb_every, imbalance, move_every, ..Rules::default() }
    })
}

fn config() -> impl Strategy<Value = Config> {
    let balancers = ["RotateLB", "RandomLB", "GreedyRefineLB"];
    (1usize..9, any::<u64>(), 0..balancers.len()).prop_map(move |(pes, seed, balancer)| Config {
        balancer: vec![balancers[balancer].into()],
        ..Config::simulated(pes, seed)
    })
}

proptest! {
    #[test]
    fn any_2d_result_is_that_of_a_plain_loop(
        (blocks, cells) in ([1i32..5, 1..5], [1i32..5, 1..5]),
        rules in rules(),
        config in config(),
    ) {
        let options = Options { blocks: Extent(blocks), cells: Extent(cells), rules };
        check(&options.solve(config).result, &sequential(&options), "a plane");
    }

    #[test]
    fn any_3d_result_is_that_of_a_plain_loop(
        (blocks, cells) in ([1i32..4, 1..4, 1..4], [1i32..4, 1..4, 1..4]),
        rules in rules(),
        config in config(),
    ) {
        let options = Options { blocks: Extent(blocks), cells: Extent(cells), rules };
        check(&options.solve(config).result, &sequential(&options), "a space");
    }
}

//! Sample programs on PEs that run in other orders, with migrations and with too few processors: the result is that of a
//! plain run.

use std::sync::OnceLock;
use std::thread::available_parallelism;

use equipoise_tests::fuzz::Rng;
use equipoise_tests::{Sandbox, without_run};
use serde_json::Value;

use crate::Case;

/// Runs with a load-balancing step after every iteration. Their results depend neither on PEs nor on migrations.
const PROGRAMS: [&str; 5] = [
    "stencil2d --blocks 4 --cells 8 --iterations 12 --lb-every 1",
    "leanmd --cells 3x3x3 --particles 4 --iterations 6 --lb-every 1",
    "kneighbor --elements 24 --iterations 10 --bytes 64 --lb-every 1",
    "pic --blocks 4 --cells 3 --particles 3 --iterations 10 --lb-every 1",
    "amr --blocks 3 --cells 4 --levels 3 --iterations 20 --regrid-every 2 --lb-every 1",
];

/// The results of plain runs, one of each program.
static PLAIN: [OnceLock<Value>; 5] = [const { OnceLock::new() }; 5];

/// The simulated transport delivers messages in an order that follows from a seed.
pub fn seeds(case: &Case, rng: &mut Rng) -> Option<String> {
    let pes = 2 + rng.below(7);
    check(rng, &format!("--transport simulated --pes {pes} --seed {}", case.seed), 0)
}

/// Most elements migrate between threads after every iteration.
pub fn storms(case: &Case, rng: &mut Rng) -> Option<String> {
    let pes = 2 + rng.below(5);
    check(rng, &format!("--pes {pes} --seed {}", case.seed), 1)
}

/// There are 8 to 16 PEs per core.
pub fn oversubscription(case: &Case, rng: &mut Rng) -> Option<String> {
    let cores = available_parallelism().map_or(1, |cores| cores.get());
    let pes = cores * (8 + rng.below(9));
    check(rng, &format!("--pes {pes} --seed {}", case.seed), 0)
}

/// Runs a program with these flags, and compares its result with that of a plain run. It has at least
/// `least_migrations`.
fn check(rng: &mut Rng, flags: &str, least_migrations: u64) -> Option<String> {
    let number = rng.below(PROGRAMS.len());
    let program = PROGRAMS[number];
    let balancer = ["RandomLB", "RotateLB"][rng.below(2)];
    let migration = ["encode", "move"][rng.below(2)];
    let line = format!("{program} {flags} --balancer {balancer} --migration {migration}");
    let (result, migrations) = run(&line);
    let plain = PLAIN[number].get_or_init(|| run(&format!("{program} --pes 1")).0);
    assert_eq!(&result, plain, "the result of `run {line}` is not that of `run {program} --pes 1`");
    assert!(migrations >= least_migrations, "`run {line}` had {migrations} migrations");
    None
}

/// The result of a run, and the number of its migrations.
fn run(line: &str) -> (Value, u64) {
    let document = Sandbox::new().run(&format!("run {line} --time-limit 60 --format json")).document();
    let migrations = document["migrations"].as_u64().expect("every run counts its migrations");
    (without_run(document), migrations)
}

/// Sample programs in processes of MPI: all combinations of programs, balancers, shapes, carriers, seeds and initial
/// placements, in turn from the seed on.
#[cfg(feature = "mpi")]
pub fn mpi(case: &Case, _: &mut Rng) -> Option<String> {
    use equipoise_tests::mpi::{self, Launcher};
    let Some(launcher) = Launcher::find() else { return Some("skipped: there is no launcher of MPI".into()) };
    let mut rest = case.seed as usize;
    let values = mpi::Case::SIZES.map(|size| {
        let value = rest % size;
        rest /= size;
        value
    });
    mpi::Case::of(&values).check(&launcher);
    None
}

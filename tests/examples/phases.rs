//! A program of MPI that alternates between phases of its own and runs of chares: `phases [split|fail|repeat]`.

use equipoise::prelude::*;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::topology::Color;
use mpi::traits::{Communicator, CommunicatorCollectives, Destination, Source};

#[derive(Serialize, Deserialize)]
struct Part {
    factor: i64,
    done: Exit<i64>,
}

#[chare(index = [i32; 1])]
impl Part {
    #[entry]
    fn add(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().total(self.factor * i64::from(cx.index()[0]));
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: i64) {
        self.done.exit(cx, sum);
    }
}

/// Runs chares in the processes of a communicator; returns the factor times 45. Meanwhile a message of the program to each process is
/// under way, which the run must not receive.
fn run(communicator: &impl Communicator, factor: i64) -> i64 {
    let (me, all) = (communicator.rank(), communicator.size());
    let process = |rank| communicator.process_at_rank(rank % all);
    mpi::request::scope(|scope| {
        let sending = process(me + 1).immediate_send(scope, &me);
        let result = equipoise::run_on(Config::default(), communicator, setup(factor)).result;
        let (sender, _) = process(me + all - 1).receive::<i32>();
        assert_eq!(sender, (me + all - 1) % all);
        sending.wait();
        result
    })
}

fn setup(factor: i64) -> impl Fn(&Setup, Exit<i64>) + Sync {
    move |pe, done| {
        let parts = pe.array([10], |_| Part { factor, done });
        pe.main(move |pe| parts.all(pe).add());
    }
}

/// Even and odd ranks run chares at the same time, then all together.
fn split(world: &impl Communicator) -> i64 {
    let half = world.split_by_color(Color::with_value(world.rank() % 2)).expect("it has a color");
    let mine = run(&half, 1 + i64::from(world.rank() % 2));
    assert_eq!(mine, 45 * (1 + i64::from(world.rank() % 2)));
    let mut sum = 0;
    world.all_reduce_into(&mine, &mut sum, SystemOperation::sum());
    run(world, sum)
}

/// A run that fails in all processes, then one that does not.
fn fail(world: &impl Communicator) -> i64 {
    let failed = equipoise::try_run_on(Config::default(), world, |pe, _: Exit<i64>| {
        if pe.pes() == pe.here().0 as usize + 1 {
            panic!("the last one fails");
        }
    });
    let error = failed.expect_err("the last process has failed").to_string();
    assert!(error.contains("the last one fails"), "{error}");
    run(world, 1)
}

/// Several runs, of which the first initialises MPI.
fn repeat() {
    let config = Config { transport: equipoise::Transport::Mpi, ..Config::default() };
    let reports: Vec<_> = (1..=3).map(|factor| equipoise::run(config.clone(), setup(factor))).collect();
    if reports[0].process == 0 {
        println!("{} processes, {}", reports[0].pes, reports.iter().map(|report| report.result).sum::<i64>());
    }
}

fn main() {
    let how = std::env::args().nth(1);
    if how.as_deref() == Some("repeat") {
        return repeat();
    }
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).expect("MPI starts once");
    let world = universe.world();
    let mut factor = 1;
    match how.as_deref() {
        Some("split") => factor = split(&world),
        Some("fail") => factor = fail(&world),
        _ => {
            for _ in 0..4 {
                // All processes have the result, so their mean is the result.
                let (result, mut sum) = (run(&world, factor), 0);
                world.all_reduce_into(&result, &mut sum, SystemOperation::sum());
                factor = sum / i64::from(world.size());
            }
        }
    }
    if world.rank() == 0 {
        println!("{} processes, {factor}", world.size());
    }
}

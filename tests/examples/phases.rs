//! A program of MPI that alternates between phases of its own and runs of chares.

use equipoise::prelude::*;
use mpi::Threading;
use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives};

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

fn main() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Funneled).expect("MPI starts once");
    let world = universe.world();
    let mut factor = 1;
    for _ in 0..4 {
        let report = equipoise::run_on(Config::default(), &world, |pe, done| {
            let parts = pe.array([10], |_| Part { factor, done });
            pe.main(move |pe| parts.all(pe).add());
        });
        // All processes have the result, so their mean is the result.
        let mut sum = 0;
        world.all_reduce_into(&report.result, &mut sum, SystemOperation::sum());
        factor = sum / i64::from(world.size());
    }
    if world.rank() == 0 {
        println!("{} processes, {factor}", world.size());
    }
}

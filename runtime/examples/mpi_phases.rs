//! The program of the page "Run on a cluster": phases of MPI and runs of chares in turn.

use equipoise::prelude::*;
use mpi::collective::SystemOperation;
use mpi::traits::*;

#[derive(Serialize, Deserialize)]
struct Part {
    value: f64,
    done: Exit<f64>,
}

#[chare(index = Pe)]
impl Part {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>) {
        cx.peer(Pe(0)).contribute().total(self.value);
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, sum: f64) {
        self.done.exit(cx, sum);
    }
}

fn main() {
    let config: Config = equipoise::parse();
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled).expect("MPI starts once");
    let world = universe.world();
    let mut value = f64::from(world.rank());
    for _ in 0..3 {
        // A phase of MPI.
        let mine = value;
        world.all_reduce_into(&mine, &mut value, SystemOperation::max());
        // A phase of chares. All processes receive the result.
        let report = equipoise::run_on(config.clone(), &world, |pe, done| {
            let parts = pe.array(Pe(pe.pes() as u32), |_| Part { value, done });
            pe.main(move |pe| parts.all(pe).begin());
        });
        value = report.result;
    }
    if world.rank() == 0 {
        println!("{value}");
    }
}

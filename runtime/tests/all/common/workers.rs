//! A program whose elements work and balance, for tests of the simulated machine.

use equipoise::prelude::*;
use equipoise::{Machine, Report};

/// A machine with this network on which only charged work takes time.
pub fn machine(network: &str) -> Machine {
    Machine { network: Some(network.into()), delivery: 0.0, ..Machine::default() }
}

/// Asserts that a number is as expected, up to rounding.
#[track_caller]
pub fn about(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs() + 1e-15, "{found}, not {expected}");
}

/// Works, and joins load-balancing steps.
#[derive(Serialize, Deserialize)]
pub struct Worker {
    iterations: u32,
    done: Exit<u32>,
}

#[chare(index = [i32; 1], sync)]
impl Worker {
    #[entry]
    fn work(&mut self, cx: &Cx<Self>) {
        cx.charge(1e-3);
        self.iterations += 1;
        cx.peers().contribute().all_worked(1);
    }

    #[entry(reduce = u32::wrapping_add)]
    fn all_worked(&mut self, cx: &Cx<Self>, _count: u32) {
        match self.iterations {
            40 => self.done.exit(cx, self.iterations),
            iterations if iterations % 10 == 0 => cx.at_sync().work(),
            _ => self.work(cx),
        }
    }
}

/// Runs 64 workers.
pub fn workers(config: Config) -> Report<u32> {
    equipoise::run(config, |pe, done| {
        let workers = pe.array([64], |_| Worker { iterations: 0, done });
        pe.main(move |pe| workers.all(pe).work());
    })
}

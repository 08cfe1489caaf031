//! A program that fails in a chosen way, for tests of exit codes and errors.

use clap::{Parser, ValueEnum};
use equipoise::model::{Assignment, Database, Topology};
use equipoise::prelude::*;
use equipoise::strategies::{Strategy, StrategyError};
use std::sync::Arc;
use std::time::Duration;

#[derive(Parser)]
struct Cli {
    /// The kind of failure
    #[arg(value_enum)]
    how: How,

    #[command(flatten)]
    config: Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
enum How {
    /// An entry method panics.
    Panic,
    /// `main` panics.
    PanicInMain,
    /// The setup of PE 1 panics.
    PanicInSetup,
    /// The destructor of an element panics after the exit.
    PanicInDrop,
    /// Quiescence: no message is sent, and no element exits.
    Rest,
    /// An entry method never returns.
    Spin,
    /// An entry method computes and never returns.
    Compute,
    /// `main` never returns.
    SpinMain,
    /// The setup of PE 0 never returns.
    SpinSetup,
    /// An exit, and an entry method that never returns.
    SpinAfterExit,
    /// Messages circulate forever.
    Circle,
    /// An entry method panics while one of another PE runs.
    PanicWhileBusy,
    /// A load-balancing step, then an exit.
    Balance,
    /// Sync points, between which one entry method takes a second; no failure.
    Slow,
    /// No failure.
    Not,
}

#[derive(Serialize, Deserialize)]
struct Runner {
    how: How,
    worked: i32,
    done: Exit<i32>,
}

impl Drop for Runner {
    fn drop(&mut self) {
        assert!(self.how != How::PanicInDrop || self.worked == 0, "broke the baton");
    }
}

#[chare(index = [i32; 1], sync)]
impl Runner {
    /// Passes the baton to the next element; the last element fails or exits.
    #[entry]
    fn run(&mut self, cx: &Cx<Self>, laps: i32) {
        let ([me], [all]) = (cx.index(), cx.shape());
        if me + 1 < all {
            return cx.peer([me + 1]).run(laps);
        }
        match self.how {
            How::Panic => panic!("dropped the baton after {laps} laps"),
            How::Rest => {}
            How::PanicInDrop => {
                self.worked = 1;
                self.done.exit(cx, laps);
            }
            How::Spin => spin(),
            How::Compute => loop {
                std::hint::spin_loop();
            },
            How::SpinAfterExit => {
                self.done.exit(cx, laps);
                spin();
            }
            How::Circle => cx.peer([0]).run(laps + 1),
            How::Balance => cx.peers().balance(laps),
            How::Slow => cx.peers().work(laps),
            _ => self.done.exit(cx, laps),
        }
    }

    /// Takes part in a load-balancing step.
    #[entry]
    fn balance(&mut self, cx: &Cx<Self>, laps: i32) {
        cx.at_sync().resume(laps);
    }

    #[entry]
    fn resume(&mut self, cx: &Cx<Self>, laps: i32) {
        if cx.index() == [0] {
            self.done.exit(cx, laps);
        }
    }

    /// Works between sync points. The last element works slowly, and says in a file when it begins.
    #[entry]
    fn work(&mut self, cx: &Cx<Self>, laps: i32) {
        let [me] = cx.index();
        if me + 1 == cx.shape()[0] {
            std::fs::write(format!("working-{laps}"), "").expect("a file can be written");
            std::thread::sleep(Duration::from_secs(1));
        }
        self.worked = self.worked * 31 + me + laps;
        if laps < 6 {
            cx.at_sync().work(laps + 1);
        } else {
            cx.peer([0]).contribute().worked(self.worked);
        }
    }

    #[entry(reduce = equipoise::reduce::sum)]
    fn worked(&mut self, cx: &Cx<Self>, sum: i32) {
        self.done.exit(cx, sum);
    }

    #[entry]
    fn pause(&mut self, _cx: &Cx<Self>, milliseconds: u64) {
        std::thread::sleep(Duration::from_millis(milliseconds));
    }

    #[entry]
    fn pause_and_panic(&mut self, _cx: &Cx<Self>) {
        std::thread::sleep(Duration::from_millis(100));
        panic!("dropped the baton");
    }

    /// Never runs.
    #[entry(when = false)]
    fn wait(&mut self, _cx: &Cx<Self>) {}
}

/// Never returns, and leaves the processor to others.
fn spin() {
    loop {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A strategy that panics.
struct Panics;

impl Strategy for Panics {
    fn assign(&self, _: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        panic!("it fell over")
    }
}

/// A strategy that never returns.
struct Spins;

impl Strategy for Spins {
    fn assign(&self, database: &Database, _: &dyn Topology, _: u64) -> Result<Assignment, StrategyError> {
        spin();
        Ok(Assignment::new(database.placement()))
    }
}

fn main() {
    let Cli { how, config } = equipoise::parse();
    let config = config.strategy("Panics", Arc::new(Panics), false).strategy("Spins", Arc::new(Spins), false);
    let report = equipoise::run(config, |pe, done| {
        let runners = pe.array([4], |_| Runner { how, worked: 0, done });
        if how == How::SpinSetup && pe.here() == Pe(0) {
            spin();
        }
        if how == How::PanicInSetup && pe.here() == Pe(1) {
            panic!("no baton");
        }
        pe.main(move |pe| {
            match how {
                How::SpinMain => spin(),
                How::PanicInMain => panic!("no runner"),
                How::Rest => runners.at(pe, [3]).wait(),
                _ => {}
            }
            if how == How::PanicWhileBusy {
                runners.at(pe, [3]).pause(1500);
                return runners.at(pe, [0]).pause_and_panic();
            }
            runners.at(pe, [1]).wait();
            runners.at(pe, [0]).run(3);
        });
    });
    println!("{} laps", report.result);
}

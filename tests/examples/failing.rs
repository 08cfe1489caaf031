//! A program that fails in the way it is told to, for tests of how a process ends.

use clap::{Parser, ValueEnum};
use equipoise::prelude::*;

#[derive(Parser)]
struct Cli {
    /// What goes wrong
    #[arg(value_enum)]
    how: How,

    #[command(flatten)]
    config: Config,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
enum How {
    /// An entry method panics.
    Panic,
    /// Nobody sends anything any more, and nobody exits.
    Rest,
    /// Nothing.
    Not,
}

#[derive(Serialize, Deserialize)]
struct Runner {
    how: How,
    done: Exit<i32>,
}

#[chare(index = [i32; 1], sync)]
impl Runner {
    /// Passes the baton on; the last one has it until something goes wrong.
    #[entry]
    fn run(&mut self, cx: &Cx<Self>, laps: i32) {
        let ([me], [all]) = (cx.index(), cx.shape());
        if me + 1 < all {
            return cx.peer([me + 1]).run(laps);
        }
        match self.how {
            How::Panic => panic!("dropped the baton after {laps} laps"),
            How::Rest => {}
            How::Not => self.done.exit(cx, laps),
        }
    }

    /// Waits for the baton.
    #[entry(when = false)]
    fn wait(&mut self, _cx: &Cx<Self>) {}
}

fn main() {
    let Cli { how, config } = equipoise::parse();
    let report = equipoise::run(config, |pe, done| {
        let runners = pe.array([4], |_| Runner { how, done });
        pe.main(move |pe| {
            runners.at(pe, [1]).wait();
            runners.at(pe, [0]).run(3);
        });
    });
    println!("{} laps", report.result);
}

//! The elements of an array are chares.

use equipoise::{Config, Exit};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

fn main() {
    equipoise::run(Config::threads(2), |pe, _: Exit<u32>| {
        pe.array([3], |_| Block { iter: 0 });
    });
}

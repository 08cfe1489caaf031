//! The block with the entries is what makes a chare.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[chare(index = [i32; 2])]
#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

fn main() {}

//! `#[chare]` belongs on the block with the entries.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[chare(index = [i32; 2])]
#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

fn main() {}

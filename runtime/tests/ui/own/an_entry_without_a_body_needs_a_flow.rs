//! An entry without a body needs a flow.

use equipoise::prelude::*;

#[derive(Serialize, Deserialize)]
struct Block {
    sum: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[entry]
    fn add(i: u32);
}

fn main() {}

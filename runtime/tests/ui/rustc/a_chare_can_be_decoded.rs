//! A chare derives both traits of serde.

use equipoise::{Cx, chare};
use serde::Serialize;

#[derive(Serialize)]
struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}

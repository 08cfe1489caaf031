//! A message has a concrete type, so its chare has one, too.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block<T> {
    cell: T,
}

#[chare(index = [i32; 2])]
impl<T: Copy> Block<T> {
    #[entry]
    fn set(&mut self, _cx: &equipoise::Cx<Self>, cell: T) {
        self.cell = cell;
    }
}

fn main() {}

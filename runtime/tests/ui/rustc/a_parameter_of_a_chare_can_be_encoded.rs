//! An argument whose type is a parameter of the chare can be encoded only if the bounds of the block say so.

use equipoise::chare;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block<T> {
    cell: T,
}

#[chare(index = [i32; 2])]
impl<T: Copy + Send + 'static> Block<T> {
    #[entry]
    fn set(&mut self, _cx: &equipoise::Cx<Self>, cell: T) {
        self.cell = cell;
    }
}

fn main() {}

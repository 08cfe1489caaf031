//! The fields of an index are integers and `bool`s.

use equipoise::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
struct Cell {
    x: i32,
    letter: char,
}

fn main() {}

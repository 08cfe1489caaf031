//! A struct has a field per dimension; an enum has none.

use equipoise::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
enum Cell {
    Inner,
    Outer,
}

fn main() {}

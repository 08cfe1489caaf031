//! An array with one element has the index `()`.

use equipoise::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
struct Cell;

fn main() {}

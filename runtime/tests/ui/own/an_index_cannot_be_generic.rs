//! The fields of an index have known types.

use equipoise::prelude::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
struct Cell<T> {
    x: T,
    y: i32,
}

fn main() {}

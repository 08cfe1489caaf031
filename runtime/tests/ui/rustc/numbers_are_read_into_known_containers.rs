//! The error is at a field that cannot hold numbers.

use serde::{Deserialize, Serialize};
use std::rc::Rc;

#[derive(Serialize, Deserialize)]
struct Grid {
    #[serde(with = "equipoise::numbers")]
    cells: Rc<[f64]>,
}

fn main() {}

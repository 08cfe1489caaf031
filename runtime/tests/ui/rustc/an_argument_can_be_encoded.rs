//! The error is at an argument without serde.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

struct Opaque;

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn take(&mut self, _cx: &Cx<Self>, what: Opaque) {
        let _ = what;
        self.iter += 1;
    }
}

fn main() {}

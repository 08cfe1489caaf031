//! The result of a reduction may go to several elements, so it is `Clone`.

use equipoise::{Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    iter: u32,
}

#[derive(Serialize, Deserialize)]
struct Once(u32);

#[chare(index = [i32; 2])]
impl Block {
    #[entry(reduce = |a, b| Once(a.0 + b.0))]
    fn take(&mut self, cx: &Cx<Self>, what: Once) {
        self.iter += what.0;
        cx.peers().contribute().take(Once(2));
    }
}

fn main() {}

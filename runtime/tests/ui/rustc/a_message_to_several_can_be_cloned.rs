//! Only proxies to several elements need `Clone`, and only when called.

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
    #[entry]
    fn take(&mut self, cx: &Cx<Self>, what: Once) {
        self.iter += what.0;
        cx.peer([0, 1]).take(Once(1));
        cx.peers().take(Once(2));
    }
}

fn main() {}

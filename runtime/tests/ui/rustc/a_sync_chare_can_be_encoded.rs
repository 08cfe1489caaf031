//! A chare that is `sync` and lacks serde gives no further error about `sync`.

use equipoise::{Cx, chare};

struct Block {
    iter: u32,
}

#[chare(index = [i32; 2], sync)]
impl Block {
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        self.iter += 1;
        cx.at_sync().step();
    }
}

fn main() {}

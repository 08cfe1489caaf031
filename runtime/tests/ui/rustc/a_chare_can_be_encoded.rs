//! A chare migrates, so it derives `Serialize` and `Deserialize`.

use equipoise::{Cx, chare};

struct Block {
    iter: u32,
}

#[chare(index = [i32; 2])]
impl Block {
    #[entry]
    fn step(&mut self, _cx: &Cx<Self>) {
        self.iter += 1;
    }
}

fn main() {}

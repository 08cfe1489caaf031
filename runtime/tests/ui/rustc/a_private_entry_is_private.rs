//! Messages have the visibility of their entry.

use equipoise::{Array, Cx, chare};
use serde::{Deserialize, Serialize};

mod grid {
    use equipoise::{Cx, chare};
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub struct Block {
        iter: u32,
    }

    #[chare(index = [i32; 2])]
    impl Block {
        #[entry]
        pub fn start(&mut self, cx: &Cx<Self>) {
            cx.peers().step();
        }

        #[entry]
        fn step(&mut self, _cx: &Cx<Self>) {
            self.iter += 1;
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Driver;

#[chare(index = ())]
impl Driver {
    #[entry]
    fn drive(&mut self, cx: &Cx<Self>, blocks: Array<grid::Block>) {
        blocks.all(cx).start();
        blocks.all(cx).step();
    }
}

fn main() {}

//! Names of the user do not conflict with names in generated code: in arguments, guards, functions, and entries
//! named like methods of `Chare`.

#![deny(warnings)]

use equipoise::{Chare, Cx, chare};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Block {
    msg: u32,
}

fn a(left: u32, right: u32) -> u32 {
    left + right
}

fn combine(left: u32, right: u32) -> u32 {
    left * right
}

const READY: u32 = 4;

fn msg() -> u32 {
    READY
}

#[chare(index = [i32; 3])]
impl Block {
    #[entry(when = value0 == msg() && cx == self.msg)]
    fn ready(&mut self, _cx: &Cx<Self>, cx: u32, value0: u32) {
        self.msg += cx + value0;
    }

    #[entry(reduce = a)]
    fn entry(&mut self, _cx: &Cx<Self>, b: u32) {
        self.msg = b;
    }

    #[entry(reduce = combine, when = msg > 3)]
    fn combine(&mut self, _cx: &Cx<Self>, msg: u32) {
        self.msg = msg;
    }

    #[entry]
    fn copy(&mut self, cx: &Cx<Self>, msg: u32) {
        self.ready(cx, msg, msg);
        self.deliver(cx, msg);
        cx.peer([0, 0, 0]).send(msg);
    }

    #[entry]
    fn deliver(&mut self, cx: &Cx<Self>, msg: u32) {
        cx.peers().from(msg);
    }

    #[entry]
    fn send(&mut self, _cx: &Cx<Self>, msg: u32) {
        self.msg = msg;
    }

    #[entry]
    fn from(&mut self, _cx: &Cx<Self>, msg: u32) {
        self.msg = msg;
    }
}

#[test]
fn entries_are_not_confused_with_methods_of_chare() {
    let block = Block { msg: 1 };
    assert!(Chare::ready(&block, &(), &BlockMsg::ready(1, 4)));
    assert!(!Chare::ready(&block, &(), &BlockMsg::ready(1, 3)));
    assert!(!Chare::ready(&block, &(), &BlockMsg::ready(2, 4)));
    assert!(!Chare::ready(&block, &(), &BlockMsg::combine(3)));
    assert!(Chare::ready(&block, &(), &BlockMsg::send(3)));
    let combine = <Block as Chare>::combine;
    assert!(matches!(combine(BlockMsg::entry(2), BlockMsg::entry(3)), BlockMsg::entry(5)));
    assert!(matches!(combine(BlockMsg::combine(2), BlockMsg::combine(3)), BlockMsg::combine(6)));
}

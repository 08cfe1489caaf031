//! All forms of entries: their messages have the declared fields, and the generated code gives no warnings.

#![deny(warnings, missing_docs, unused_lifetimes, unused_qualifications)]
#![expect(
    clippy::needless_arbitrary_self_type,
    clippy::unused_unit,
    reason = "the macro takes every form that Rust takes"
)]

use equipoise::{Chare, Cx, chare};
use serde::{Deserialize, Serialize};

/// A side of a block.
#[allow(missing_docs)]
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Side {
    Left,
    Right,
}

/// Not `Clone`: it goes to one element only.
#[derive(Serialize, Deserialize)]
struct Once(u32);

/// A public chare whose messages have private types.
#[derive(Serialize, Deserialize)]
pub struct Block {
    iter: u32,
    log: Vec<String>,
}

trait Solver {
    type Edge;
}

impl Solver for Block {
    type Edge = [f64; 2];
}

#[chare(index = [i32; 2], sync, pinned,)]
impl Block {
    /// A constant, which is no entry.
    pub const HALO: usize = 2;

    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        cx.at_sync().step();
        cx.peers().at_quiescence().step();
        cx.peers().contribute().r#type(1.0);
        cx.peer([0, 0]).contribute().least(1);
        cx.peer([0, 0]).once(Once(1));
    }

    /// A guard with arguments, and a list of numbers.
    #[entry(when = iter == self.iter && matches!(side, Side::Left))]
    pub fn ghost(&mut self, _cx: &Cx<'_, Block>, iter: u32, side: Side, mut row: Vec<f64>) {
        row.push(0.0);
        self.log.push(format!("ghost {}", row.len()));
    }

    /// A name that is a keyword, a closure, and both keys.
    #[entry(reduce = |a, b| a.max(b), when = self.iter > 0)]
    pub(crate) fn r#type(&mut self, _: &Cx<Self>, change: f64) {
        self.log.push(format!("type {change}"));
    }

    #[entry(reduce = u32::min,)]
    fn least(&mut self, _cx: &Cx<Self>, least: u32) -> () {
        self.log.push(format!("least {least}"));
    }

    #[entry]
    fn once(self: &mut Self, _cx: &Cx<Self>, once: Once) {
        self.log.push(format!("once {}", once.0));
    }

    /// Types that name the chare itself.
    #[entry]
    fn twin(
        &mut self,
        _cx: &Cx<Self>,
        twin: Option<Box<Self>>,
        edge: <Self as Solver>::Edge,
        halo: [u8; Self::HALO],
    ) {
        self.log.push(format!("twin {} {edge:?} {halo:?}", twin.is_some()));
    }

    /// An argument with its own encoding.
    #[entry]
    fn cached(&mut self, _cx: &Cx<Self>, n: u32, #[serde(skip)] cache: Vec<f64>) {
        self.log.push(format!("cached {n} {}", cache.len()));
    }

    /// A method, which is no entry.
    pub fn log(&self) -> &[String] {
        &self.log
    }
}

#[test]
fn messages_are_what_entries_say() {
    assert_eq!(Block::NAME, "Block");
    assert_eq!(Block::ENTRIES, ["step", "ghost", "type", "least", "once", "twin", "cached"]);
    const { assert!(Block::SYNC && Block::PINNED && Block::GUARDED) };

    let block = Block { iter: 3, log: vec![] };
    let ghost = |iter, side| BlockMsg::ghost(iter, side, vec![1.0]);
    assert_eq!(Block::entry(&ghost(3, Side::Left)), 1);
    assert!(block.ready(&(), &ghost(3, Side::Left)));
    assert!(!block.ready(&(), &ghost(4, Side::Left)));
    assert!(!block.ready(&(), &ghost(3, Side::Right)));
    assert!(block.ready(&(), &BlockMsg::r#type(1.0)));
    assert!(!Block { iter: 0, log: vec![] }.ready(&(), &BlockMsg::r#type(1.0)));
    assert!(block.ready(&(), &BlockMsg::once(Once(1))));
    assert!(block.log().is_empty());

    assert!(matches!(Block::combine(BlockMsg::r#type(1.0), BlockMsg::r#type(2.0)), BlockMsg::r#type(2.0)));
    assert!(matches!(Block::combine(BlockMsg::least(1), BlockMsg::least(2)), BlockMsg::least(1)));
    let BlockMsg::ghost(3, _, row) = Block::copy(&ghost(3, Side::Left)) else {
        panic!("the copy is another message")
    };
    assert_eq!(row, [1.0]);
}

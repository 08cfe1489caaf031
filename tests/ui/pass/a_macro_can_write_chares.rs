//! A `macro_rules!` can write chares that differ in a type or a dimension.

use equipoise::{Chare, Cx, chare};
use serde::{Deserialize, Serialize};

macro_rules! sums {
    ($($name:ident, $ty:ty, $cell:ty, $dimensions:literal;)*) => {$(
        #[derive(Serialize, Deserialize)]
        struct $name {
            sum: $cell,
        }

        #[chare(index = [i32; $dimensions])]
        impl $ty {
            /// Adds all of them.
            #[entry(when = limit > self.sum)]
            fn add(&mut self, _cx: &Cx<Self>, limit: $cell, cells: Vec<$cell>) {
                self.sum += cells.iter().sum::<$cell>();
            }

            #[entry(reduce = |a: $cell, b| a + b)]
            fn total(&mut self, cx: &Cx<$ty>, total: $cell) {
                cx.peers().add(total, vec![total]);
            }
        }
    )*};
}

sums! {
    Reals, Reals, f64, 1;
    Counts, Counts, u32, 6;
}

fn main() {
    assert_eq!(Reals::ENTRIES, ["add", "total"]);
    assert_eq!((Reals::NAME, Counts::NAME), ("Reals", "Counts"));
    assert!(Reals { sum: 1.0 }.ready(&RealsMsg::add(2.0, vec![])));
    assert!(!Counts { sum: 2 }.ready(&CountsMsg::add(2, vec![])));
    assert!(matches!(Counts::combine(CountsMsg::total(2), CountsMsg::total(3)), CountsMsg::total(5)));
}

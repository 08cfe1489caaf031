//! A `macro_rules!` can write chares that differ in a type or a dimension.

use equipoise::{Chare, Cx, chare};
use serde::{Deserialize, Serialize};

/// The type of an argument.
#[derive(Serialize, Deserialize)]
pub struct Weight(u32);

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

            /// Its argument has a type that only the macro's crate can name this way.
            #[entry]
            fn weigh(&mut self, _cx: &Cx<Self>, weight: $crate::generated::a_macro_can_write_chares::Weight) {
                self.sum *= weight.0 as $cell;
            }
        }
    )*};
}

sums! {
    Reals, Reals, f64, 1;
    Counts, Counts, u32, 6;
}

#[test]
fn chares_of_a_macro_differ_in_type_and_dimension() {
    assert_eq!(Reals::ENTRIES, ["add", "total", "weigh"]);
    assert_eq!((Reals::NAME, Counts::NAME), ("Reals", "Counts"));
    assert!(Reals { sum: 1.0 }.ready(&(), &RealsMsg::add(2.0, vec![])));
    assert!(!Counts { sum: 2 }.ready(&(), &CountsMsg::add(2, vec![])));
    assert!(Reals { sum: 1.0 }.ready(&(), &RealsMsg::weigh(Weight(3))));
    assert!(matches!(Counts::combine(CountsMsg::total(2), CountsMsg::total(3)), CountsMsg::total(5)));
}

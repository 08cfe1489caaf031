//! A generic struct becomes a chare for one type at a time, each in a module of its own.

use equipoise::Chare;
use serde::{Deserialize, Serialize};

/// Not yet a chare.
#[derive(Serialize, Deserialize)]
pub struct Cells<T> {
    cells: Vec<T>,
}

impl<T: Copy> Cells<T> {
    const NONE: usize = 0;

    fn put(&mut self, cell: T) {
        self.cells.push(cell);
    }
}

mod coarse {
    use super::Cells;
    use equipoise::{Cx, chare};

    #[chare(index = ())]
    impl Cells<f32> {
        #[entry]
        fn set(&mut self, _cx: &Cx<Self>, cell: f32, _none: [u8; Self::NONE]) {
            self.put(cell);
        }
    }
}

mod fine {
    use super::Cells;
    use equipoise::{Cx, Pe, chare};

    #[chare(index = Pe, sync)]
    impl Cells<f64> {
        #[entry]
        fn set_all(&mut self, _cx: &Cx<Cells<f64>>, cells: Vec<f64>, twin: Option<Box<Self>>) {
            cells.into_iter().for_each(|cell| self.put(cell));
            self.cells.extend(twin.into_iter().flat_map(|twin| twin.cells));
        }
    }
}

#[test]
fn each_instance_is_a_chare_of_its_own() {
    assert_eq!(Cells::<f32>::ENTRIES, ["set"]);
    assert_eq!(Cells::<f64>::ENTRIES, ["set_all"]);
    assert_eq!(Cells::<f64>::NAME, "Cells");
    const { assert!(!Cells::<f32>::SYNC && Cells::<f64>::SYNC && !Cells::<f64>::GUARDED) };
}

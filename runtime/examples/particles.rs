//! Tutorial, elements that work together: cells with particles, the forces between these in a bound array, and a counter on
//! every PE.

use equipoise::prelude::*;
use equipoise::reduce;

/// The index of a cell, and with one more in each dimension the shape of the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Index)]
struct Place {
    x: i32,
    y: i32,
}

const SHAPE: Place = Place { x: 6, y: 4 };
const STEPS: u32 = 12;

/// Moves its particles when the forces are known.
#[derive(Serialize, Deserialize)]
struct Cell {
    particles: Vec<i64>,
    forces: Option<Array<Forces>>,
    done: Exit<(i64, u32)>,
}

#[chare(index = Place, sync)]
impl Cell {
    #[entry]
    fn begin(&mut self, cx: &Cx<Self>, forces: Array<Forces>) {
        self.forces = Some(forces);
        self.step(cx);
    }

    /// Sends its pull to the forces of the cell on its right, and lets its own forces take the pull from the left.
    #[entry]
    fn step(&mut self, cx: &Cx<Self>) {
        let Place { x, y } = cx.index();
        let Some(forces) = self.forces else { return };
        let steps = forces.local(cx, cx.index(), |own| {
            own.is_open = true;
            own.steps
        });
        let steps = steps.expect("the forces are on this PE, because they are bound to this cell");
        forces.at(cx, Place { x: (x + 1) % SHAPE.x, y }).pull(steps, self.particles.iter().sum());
    }

    /// The forces have moved the particles of this cell for the last time.
    #[entry]
    fn finish(&mut self, cx: &Cx<Self>) {
        cx.peer(Place { x: 0, y: 0 }).contribute().total((self.particles.iter().sum(), 1));
    }

    #[entry]
    fn balance(&mut self, cx: &Cx<Self>) {
        cx.at_sync().step();
    }

    #[entry(reduce = |a, b| reduce::pair(a, b, reduce::sum, reduce::sum))]
    fn total(&mut self, cx: &Cx<Self>, total: (i64, u32)) {
        self.done.exit(cx, total);
    }
}

/// The forces on the particles of the cell with the same index, to which it is bound.
#[derive(Serialize, Deserialize)]
struct Forces {
    steps: u32,
    /// Whether the cell has sent its pull of this step.
    is_open: bool,
    cells: Array<Cell>,
    counters: Array<Counter>,
}

#[chare(index = Place)]
impl Forces {
    #[entry(when = self.is_open && steps == self.steps)]
    fn pull(&mut self, cx: &Cx<Self>, steps: u32, pull: i64) {
        (self.steps, self.is_open) = (steps + 1, false);
        self.counters.local(cx, cx.here(), |counter| counter.steps += 1).expect("every PE has a counter");
        let moved = self.cells.local(cx, cx.index(), |cell| {
            // Any force will do: this one keeps the numbers small.
            cell.particles.iter_mut().for_each(|particle| *particle = (*particle * 3 + pull) % 1000);
        });
        moved.expect("the cell is on this PE, to which both migrate");
        let cell = self.cells.at(cx, cx.index());
        match self.steps {
            STEPS => cell.finish(),
            step if step % 4 == 0 => cell.balance(),
            _ => cell.step(),
        }
    }
}

/// Counts the steps on a PE.
#[derive(Serialize, Deserialize)]
struct Counter {
    steps: u32,
}

#[chare(index = Pe)]
impl Counter {
    #[entry]
    fn nothing(&mut self, _cx: &Cx<Self>) {}
}

fn main() {
    let report = equipoise::run(equipoise::parse(), |pe, done| {
        let cells = pe.array(SHAPE, |Place { x, y }| Cell {
            particles: vec![x.into(), y.into()],
            forces: None,
            done,
        });
        let counters = pe.array(Pe(pe.pes() as u32), |_| Counter { steps: 0 });
        let forces = pe.array_bound(&cells, |_| Forces { steps: 0, is_open: false, cells, counters });
        pe.main(move |pe| cells.all(pe).begin(forces));
    });
    let (sum, cells) = report.result;
    assert_eq!(cells as usize, (SHAPE.x * SHAPE.y) as usize);
    println!("{cells} cells, sum {sum}");
}

//! Tutorial, elements that come and go: counts the ways to place 8 queens on a board so that none attacks another.

use equipoise::prelude::*;
use equipoise::reduce;

/// The number of rows and of columns.
const SIDE: i32 = 8;
/// Elements share the work down to this number of queens; each then searches alone.
const SPLIT: usize = 3;
/// One more than the largest index: a tree of SIDE children per node has this many nodes down to SPLIT queens.
const BOUNDS: i32 = (SIDE.pow(SPLIT as u32 + 1) - 1) / (SIDE - 1);

/// The queens of the first rows, and what becomes of them.
#[derive(Serialize, Deserialize)]
struct Board {
    /// The column of the queen in each row.
    columns: Vec<i32>,
    solutions: u64,
    done: Exit<u64>,
}

#[chare(index = [i32; 1])]
impl Board {
    /// Places the next queen in every safe column, each on a board of its own.
    #[entry]
    fn search(&mut self, cx: &Cx<Self>) {
        if self.columns.len() == SPLIT {
            self.solutions = solutions(&mut self.columns);
            return;
        }
        let [me] = cx.index();
        for column in (0..SIDE).filter(|&column| is_safe(&self.columns, column)) {
            let child = [me * SIDE + column + 1];
            let columns = [&self.columns[..], &[column]].concat();
            cx.array().insert(cx, child, Board { columns, ..*self });
            cx.peer(child).search();
        }
        if me != 0 {
            cx.destroy();
        }
    }

    /// The search is over: contributes the solutions of this board.
    #[entry]
    fn report(&mut self, cx: &Cx<Self>) {
        cx.peer([0]).contribute().total(self.solutions);
    }

    /// Receives the solutions of all boards.
    #[entry(reduce = reduce::sum)]
    fn total(&mut self, cx: &Cx<Self>, solutions: u64) {
        self.done.exit(cx, solutions);
    }
}

/// Whether no queen attacks this column of the next row.
fn is_safe(columns: &[i32], column: i32) -> bool {
    let mut above = (1..).zip(columns.iter().rev());
    above.all(|(rows, &other)| other != column && (other - column).abs() != rows)
}

/// The number of ways to place the remaining queens.
fn solutions(columns: &mut Vec<i32>) -> u64 {
    if columns.len() == SIDE as usize {
        return 1;
    }
    let mut count = 0;
    for column in 0..SIDE {
        if is_safe(columns, column) {
            columns.push(column);
            count += solutions(columns);
            columns.pop();
        }
    }
    count
}

fn main() {
    let report = equipoise::run(equipoise::parse(), |pe, done| {
        let boards = pe.sparse([BOUNDS]);
        pe.main(move |pe| {
            boards.insert(pe, [0], Board { columns: Vec::new(), solutions: 0, done });
            boards.at(pe, [0]).search();
            boards.all(pe).at_quiescence().report();
        });
    });
    println!("{} solutions with {SIDE} queens", report.result);
}

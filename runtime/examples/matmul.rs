//! Tutorial, sections: the product of two matrices. Every element has a tile of each factor and of the product.

use equipoise::prelude::*;
use equipoise::reduce;

/// The number of tiles along a side of the matrices.
const SIDE: i32 = 4;
/// The number of rows and of columns of a tile.
const TILE: usize = 8;

/// A tile, row by row.
type Tile = Vec<i64>;

/// The tiles of an element: those of the factors, those of its row and column in this step, and that of the product.
#[derive(Serialize, Deserialize)]
struct Tiles {
    a: Tile,
    b: Tile,
    left: Tile,
    above: Tile,
    product: Tile,
    done: Exit<i64>,
}

#[chare(index = [i32; 2], sync)]
impl Tiles {
    /// In each step, one column of elements sends its tiles of `a` along the rows, and one row its tiles of `b` along the columns.
    #[flow]
    fn multiply(&mut self, cx: &Cx<Self>) {
        for step in 0i32..SIDE {
            self.send(cx, step);
            overlap! {
                left(s, tile) if s == step => self.left = tile,
                above(s, tile) if s == step => self.above = tile,
            }
            self.add_product();
            at_sync!(cx);
        }
        let sum: i64 = reduce!(cx, reduce::sum, self.product.iter().sum());
        self.done.exit(cx, sum);
    }

    /// The tile of `a` for a step, from the left or the right.
    #[entry]
    fn left(step: i32, tile: Tile);

    /// The tile of `b` for a step, from above or below.
    #[entry]
    fn above(step: i32, tile: Tile);
}

impl Tiles {
    fn send(&self, cx: &Cx<Self>, step: i32) {
        let [x, y] = cx.index();
        if x == step {
            let row = cx.array().section(cx, |[_, row]| row == y);
            row.all(cx).left(step, self.a.clone());
        }
        if y == step {
            let column = cx.array().section(cx, |[column, _]| column == x);
            column.all(cx).above(step, self.b.clone());
        }
    }

    fn add_product(&mut self) {
        for (row, sums) in self.left.chunks(TILE).zip(self.product.chunks_mut(TILE)) {
            for (factor, other) in row.iter().zip(self.above.chunks(TILE)) {
                sums.iter_mut().zip(other).for_each(|(sum, number)| *sum += factor * number);
            }
        }
    }
}

/// The number in a row and a column of the first factor; the second one is its transpose.
fn number(row: usize, column: usize) -> i64 {
    (row * 7 + column * column) as i64 % 10
}

/// A tile of the matrix of these numbers.
fn tile([x, y]: [i32; 2], number: impl Fn(usize, usize) -> i64) -> Tile {
    let (x, y) = (x as usize * TILE, y as usize * TILE);
    (y..y + TILE)
        .flat_map(|row| (x..x + TILE).map(move |column| (row, column)))
        .map(|(r, c)| number(r, c))
        .collect()
}

fn main() {
    let report = equipoise::run(equipoise::parse(), |pe, done| {
        let empty = || vec![0; TILE * TILE];
        let tiles = pe.array([SIDE, SIDE], |index| Tiles {
            a: tile(index, number),
            b: tile(index, |row, column| number(column, row)),
            left: empty(),
            above: empty(),
            product: empty(),
            done,
        });
        pe.main(move |pe| tiles.all(pe).multiply());
    });
    // The sum of all numbers of the product is that of the squares of the sums of columns.
    let size = SIDE as usize * TILE;
    let column = |column| (0..size).map(|row| number(row, column)).sum::<i64>();
    let expected: i64 = (0..size).map(|at| column(at).pow(2)).sum();
    assert_eq!(report.result, expected);
    println!("the numbers of the product have the sum {expected}");
}

//! Jacobi's method, by blocks: every block exchanges edges with its neighbors and replaces each of its cells by the mean
//! of the neighboring cells; a reduction finds the largest change.
//!
//! [`stencil2d`](crate::stencil2d) and [`stencil3d`](crate::stencil3d) are this program in 2 and 3 dimensions.

use equipoise::prelude::*;
use equipoise::{Index, Report, reduce};
use serde::de::DeserializeOwned;
use std::array::from_fn;
use std::fmt;
use std::str::FromStr;

use crate::cells::{Cells, Side};
use crate::command::{Outcome, seconds};

#[derive(Serialize, Deserialize)]
#[serde(bound(serialize = "Cells<D>: Serialize", deserialize = "Cells<D>: Deserialize<'de>"))]
struct Block<const D: usize> {
    rules: Rules,
    cells: Cells<D>,
    done: Exit<Solution>,
}

#[chare(index = [i32; D], sync)]
impl<const D: usize> Block<D>
where
    [i32; D]: Index,
    Cells<D>: Serialize + DeserializeOwned,
{
    /// Iterates until the rules say that it is enough.
    #[flow]
    fn life(&mut self, cx: &Cx<Self>) {
        let mut iteration: u32 = 0;
        loop {
            iteration += 1;
            for _ in 0usize..self.send_edges(cx, iteration) {
                when!(halo(i, side, edge) if i == iteration => self.set_halo(cx, side, &edge));
            }
            let change: f64 = reduce!(cx, f64::max, self.relax(cx, iteration));
            self.charge(cx, 0);
            if self.rules.finished(iteration, change) {
                // Added in the order of the blocks, not of arrival.
                let heat: f64 = reduce!(cx, reduce::sum, self.cells.sum());
                self.done.exit(cx, Solution { iterations: iteration, residual: change, heat });
                return;
            }
            if self.rules.balances(iteration) {
                at_sync!(cx); // balance, maybe migrate
            }
        }
    }

    /// A neighbor's edge in an iteration.
    #[entry]
    fn halo(iteration: u32, side: Side, edge: Vec<f64>);
}

impl<const D: usize> Block<D>
where
    [i32; D]: Index,
    Cells<D>: Serialize + DeserializeOwned,
{
    /// Sends the edge on each side to the neighbor there; returns the number of neighbors.
    fn send_edges(&self, cx: &Cx<Self>, iteration: u32) -> usize {
        self.charge(cx, 0);
        let mut count = 0;
        for (side, neighbor) in neighbors(cx.index(), cx.shape(), self.rules.periodic) {
            cx.peer(neighbor).halo(iteration, side.opposite(), self.cells.edge(side));
            count += 1;
        }
        count
    }

    fn set_halo(&mut self, cx: &Cx<Self>, side: Side, edge: &[f64]) {
        self.charge(cx, 0);
        self.cells.set_halo(side, edge);
    }

    /// Replaces the cells; returns the largest change.
    fn relax(&mut self, cx: &Cx<Self>, iteration: u32) -> f64 {
        let times = self.rules.repeats(cx.index(), cx.shape(), iteration);
        let change = self.cells.relax(times);
        self.charge(cx, self.cells.count() * times as usize);
        change
    }

    /// Charges the load of cell updates, unless loads are measured.
    fn charge(&self, cx: &Cx<Self>, updates: usize) {
        if let Some(seconds) = self.rules.charge {
            cx.charge(seconds * updates as f64);
        }
    }
}

/// Runs the program.
pub(crate) fn solve<const D: usize>(config: Config, options: &Options<D>) -> Report<Solution>
where
    [i32; D]: Index,
    Cells<D>: Serialize + DeserializeOwned,
{
    let (blocks, cells, rules) = (options.blocks.0, options.cells.0, options.rules);
    let world: [i64; D] = from_fn(|d| i64::from(blocks[d]) * i64::from(cells[d]));
    equipoise::run(config, |pe, done| {
        let array = pe.array(blocks, |index| {
            let position = |cell: [i64; D]| from_fn(|d| i64::from(index[d]) * i64::from(cells[d]) + cell[d]);
            let cells = Cells::new(cells, |cell| temperature(position(cell), world));
            Block { rules, cells, done }
        });
        pe.main(move |pe| array.all(pe).life());
    })
}

/// The flags of a stencil program in `D` dimensions.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct Options<const D: usize> {
    /// Blocks along each dimension; one number is used for all dimensions
    // Not `default_value_t`: clap would compute it once, for the first `D`, and use it for all.
    #[arg(long, value_name = by_dimension(D, "NxN", "NxNxN"), default_value = by_dimension(D, "8", "4"))]
    pub blocks: Extent<D>,

    /// Cells per block along each dimension; one number is used for all dimensions
    #[arg(long, value_name = by_dimension(D, "NxN", "NxNxN"), default_value = by_dimension(D, "128", "24"))]
    pub cells: Extent<D>,

    /// The flags for blocks.
    #[command(flatten)]
    #[serde(flatten)]
    pub rules: Rules,
}

fn by_dimension(d: usize, plane: &'static str, space: &'static str) -> &'static str {
    if d == 2 { plane } else { space }
}

/// The flags that every block needs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, clap::Args)]
pub struct Rules {
    /// Largest number of iterations
    #[arg(long, value_name = "N", default_value_t = Self::default().iterations, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Stop when the largest change of a cell is below this tolerance
    #[arg(long, value_name = "CHANGE", default_value_t = 0.0)]
    pub tolerance: f64,

    /// Periodic boundaries [default: walls of fixed temperature]
    #[arg(long)]
    pub periodic: bool,

    /// Iterations between load-balancing steps; 0: no load balancing
    #[arg(long, value_name = "N", default_value_t = Self::default().lb_every, allow_negative_numbers = true)]
    pub lb_every: u32,

    /// Work factor of the blocks in the lower corner (a quarter of all blocks in 2D, an eighth in 3D)
    #[arg(long, value_name = "FACTOR", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub imbalance: u32,

    /// Iterations after which the corner of --imbalance moves on by one block along each dimension, and around the domain; 0: it stays
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    pub move_every: u32,

    /// Load of the update of a cell, in seconds [default: the load is measured]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub charge: Option<f64>,
}

impl Default for Rules {
    /// The defaults of the flags.
    fn default() -> Self {
        Rules {
            iterations: 500,
            tolerance: 0.0,
            periodic: false,
            lb_every: 100,
            imbalance: 1,
            move_every: 0,
            charge: None,
        }
    }
}

impl Rules {
    /// Whether this iteration is the last one, given the largest change of a cell.
    pub fn finished(&self, iteration: u32, change: f64) -> bool {
        iteration >= self.iterations || change < self.tolerance
    }

    /// Whether there is a load-balancing step after this iteration.
    pub fn balances(&self, iteration: u32) -> bool {
        // No iteration is a multiple of 0.
        iteration.is_multiple_of(self.lb_every)
    }

    /// The work factor of a block in an iteration.
    pub fn repeats<const D: usize>(&self, index: [i32; D], shape: [i32; D], iteration: u32) -> u32 {
        let moved = i64::from(iteration.checked_div(self.move_every).unwrap_or(0));
        let in_the_corner = (0..D).all(|d| {
            let from_the_corner = (i64::from(index[d]) - moved).rem_euclid(i64::from(shape[d]));
            2 * from_the_corner < i64::from(shape[d])
        });
        if in_the_corner { self.imbalance } else { 1 }
    }
}

/// A size along each of `D` dimensions, all of them positive, with less than 2^31 points in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "Vec<i32>")]
pub struct Extent<const D: usize>(pub [i32; D]);

impl<const D: usize> FromStr for Extent<D> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sizes: Result<Vec<i32>, _> = text.split('x').map(str::parse).collect();
        let extent: [i32; D] = match sizes.as_deref() {
            Ok(&[all]) => [all; D],
            Ok(sizes) if sizes.len() == D => from_fn(|d| sizes[d]),
            _ => return Err(format!("give {D} sizes such as `{}`, or one size for all", Extent([16; D]))),
        };
        if extent.iter().any(|&size| size < 1) {
            return Err("every size must be at least 1".into());
        }
        let points = extent.iter().try_fold(1i32, |points, &size| points.checked_mul(size));
        points.map(|_| Extent(extent)).ok_or_else(|| "the product of the sizes must be less than 2^31".into())
    }
}

impl<const D: usize> From<Extent<D>> for Vec<i32> {
    fn from(extent: Extent<D>) -> Self {
        extent.0.into()
    }
}

impl<const D: usize> fmt::Display for Extent<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(i32::to_string).collect();
        f.write_str(&sizes.join("x"))
    }
}

/// The neighbors of a block, with their sides. With periodic boundaries a block may be its own neighbor; at a wall it
/// has none.
pub fn neighbors<const D: usize>(
    index: [i32; D],
    shape: [i32; D],
    periodic: bool,
) -> impl Iterator<Item = (Side, [i32; D])> {
    (0..2 * D).filter_map(move |end| {
        let (d, upper) = (end / 2, end % 2 == 1);
        let mut neighbor = index;
        neighbor[d] += if upper { 1 } else { -1 };
        if periodic {
            neighbor[d] = neighbor[d].rem_euclid(shape[d]);
        }
        let exists = (0..shape[d]).contains(&neighbor[d]);
        exists.then_some((Side { dimension: d as u8, upper }, neighbor))
    })
}

/// The initial temperature: varies from cell to cell inside the domain, is 1 at the lower wall of the first dimension,
/// and 0 at all other walls.
pub fn temperature<const D: usize>(position: [i64; D], world: [i64; D]) -> f64 {
    if (0..D).all(|d| (0..world[d]).contains(&position[d])) {
        let mixed: i64 = position.iter().zip([17, 31, 47]).map(|(x, factor)| x * factor).sum();
        (mixed % 101) as f64 / 101.0
    } else if position[0] < 0 {
        1.0
    } else {
        0.0
    }
}

/// The result. Every bit of it is independent of the number of PEs and of migrations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// Number of iterations.
    pub iterations: u32,
    /// The largest change of a cell in the last iteration.
    pub residual: f64,
    /// The sum of all cells.
    pub heat: f64,
}

impl Outcome for Solution {
    fn iterations(&self) -> u32 {
        self.iterations
    }
}

impl fmt::Display for Solution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `{:?}` prints enough digits to identify a float exactly.
        writeln!(f, "iterations    {}", self.iterations)?;
        writeln!(f, "residual      {:?}", self.residual)?;
        write!(f, "heat          {:?}", self.heat)
    }
}

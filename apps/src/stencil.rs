//! What [`stencil2d`](crate::stencil2d) and [`stencil3d`](crate::stencil3d) have in common: their flags,
//! their world, who is whose neighbor, and what comes out.

use crate::command::{Outcome, seconds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The size of a program's world.
#[derive(Clone, Debug, Serialize, clap::Args)]
pub struct Options<const D: usize> {
    /// Blocks along each dimension; one number stands for all
    // Not `default_value_t`, which is made only once, for the first `D` that is asked for.
    #[arg(long, value_name = by_dimension(D, "NxN", "NxNxN"), default_value = by_dimension(D, "8", "4"))]
    pub blocks: Extent<D>,

    /// Cells of a block along each dimension
    #[arg(long, value_name = by_dimension(D, "NxN", "NxNxN"), default_value = by_dimension(D, "128", "24"))]
    pub cells: Extent<D>,

    /// What all blocks go by.
    #[command(flatten)]
    #[serde(flatten)]
    pub rules: Rules,
}

fn by_dimension(d: usize, plane: &'static str, space: &'static str) -> &'static str {
    if d == 2 { plane } else { space }
}

/// What all blocks go by.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, clap::Args)]
pub struct Rules {
    /// Stop after so many iterations
    #[arg(long, value_name = "N", default_value_t = Self::default().iterations)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: u32,

    /// Stop earlier, once no cell changes by as much as this
    #[arg(long, value_name = "CHANGE", default_value_t = 0.0)]
    pub tolerance: f64,

    /// Opposite ends of the world are neighbors; without this, they are walls of a fixed temperature
    #[arg(long)]
    pub periodic: bool,

    /// Iterations between load-balancing steps; 0: no steps
    #[arg(long, value_name = "N", default_value_t = Self::default().lb_every)]
    pub lb_every: u32,

    /// The blocks of the lower corner (a quarter of them in 2D) do their work so many times over
    #[arg(long, value_name = "FACTOR", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub imbalance: u32,

    /// Seconds of load that updating a cell counts for, in place of what is measured
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub charge: Option<f64>,
}

impl Default for Rules {
    /// What the flags are by default.
    fn default() -> Self {
        Rules { iterations: 500, tolerance: 0.0, periodic: false, lb_every: 100, imbalance: 1, charge: None }
    }
}

impl Rules {
    /// Whether the iterations are over after this one, with this largest change of a cell.
    pub fn finished(&self, iteration: u32, change: f64) -> bool {
        iteration >= self.iterations || change < self.tolerance
    }

    /// Whether there is a load-balancing step after this iteration.
    pub fn balances(&self, iteration: u32) -> bool {
        // No iteration is a multiple of 0.
        iteration.is_multiple_of(self.lb_every)
    }

    /// How many times over a block does its work.
    pub fn repeats<const D: usize>(&self, index: [i32; D], shape: [i32; D]) -> u32 {
        let in_the_corner = (0..D).all(|d| 2 * index[d] < shape[d]);
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
            Ok(sizes) if sizes.len() == D => std::array::from_fn(|d| sizes[d]),
            _ => return Err(format!("write {D} sizes such as `{}`, or one for all", Extent([16; D]))),
        };
        if extent.iter().any(|&size| size < 1) {
            return Err("every size must be at least 1".into());
        }
        let points = extent.iter().try_fold(1i32, |points, &size| points.checked_mul(size));
        points.map(|_| Extent(extent)).ok_or_else(|| "more than 2^31 - 1 in all are too many".into())
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

/// One of the two ends of a block along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// The dimension.
    pub dimension: u8,
    /// Whether it is the end of the larger coordinates.
    pub upper: bool,
}

impl Side {
    /// The same side as the neighbor there sees it.
    pub fn opposite(self) -> Side {
        Side { upper: !self.upper, ..self }
    }
}

/// The neighbors of a block, with the side each is on; a block may be its own neighbor where the
/// world is periodic, and has none beyond a wall.
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

/// How warm the world is at first: rough inside, and beyond its walls hot below the first dimension and
/// cold elsewhere.
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

/// What comes out of a stencil: the same to the last bit on any number of PEs, whatever moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Solution {
    /// How often every cell was updated.
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
        // With as many digits as it takes to tell it from every other number.
        writeln!(f, "iterations    {}", self.iterations)?;
        writeln!(f, "residual      {:?}", self.residual)?;
        write!(f, "heat          {:?}", self.heat)
    }
}

//! Jacobi's method in 2D, by blocks that exchange edges with their neighbors: [`stencil`] with 2 dimensions.

use equipoise::{Config, Report};

use crate::stencil::{self, Solution};

/// The flags of this program.
pub type Options = stencil::Options<2>;

/// Runs the program.
pub fn solve(config: Config, options: &Options) -> Report<Solution> {
    stencil::solve(config, options)
}

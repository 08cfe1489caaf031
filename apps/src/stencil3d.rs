//! Jacobi's method in 3D, by blocks that exchange faces with their neighbors: [`stencil`] with 3 dimensions.

use equipoise::{Config, Report};

use crate::stencil::{self, Solution};

/// The flags of this program.
pub type Options = stencil::Options<3>;

/// Runs the program.
pub fn solve(config: Config, options: &Options) -> Report<Solution> {
    stencil::solve(config, options)
}

//! Rings and meshes, whose optimal embeddings are known (section 6.2).

use equipoise_model::grid::Grid;
use equipoise_model::params::Param;

use super::{Bodies, FLITS, Generator, ITERATIONS, Keys, N, WORK};
use crate::program::Program;

/// Every process exchanges messages with both neighbors on a ring.
pub(super) const RING: Generator = Generator {
    name: "ring",
    form: "",
    help: "Processes on a ring compute, send to both neighbors, and receive from both.",
    params: &[N, FLITS, WORK, ITERATIONS],
    item: |keys| {
        let n = keys.processes(2)?;
        neighbors(keys, &[(n, true)])
    },
};

/// Every process exchanges messages with its neighbors on a grid.
pub(super) const MESH: Generator = Generator {
    name: "mesh",
    form: "",
    help: "Processes on a grid without wraparound compute, send to their neighbors, and receive from them.",
    params: &[
        Param { key: "sizes", default: "4x4", help: "processes along each dimension" },
        FLITS,
        WORK,
        ITERATIONS,
    ],
    item: |keys| {
        let sizes: Vec<(usize, bool)> = keys.sizes("sizes")?.into_iter().map(|size| (size, false)).collect();
        neighbors(keys, &sizes)
    },
};

fn neighbors(keys: &mut Keys, sizes: &[(usize, bool)]) -> Result<Program, String> {
    let (flits, work, iterations) = (keys.flits()?, keys.work()?, keys.iterations()?);
    let grid = Grid::new(sizes)?;
    let mut ends: Vec<(usize, usize)> = (0..grid.links()).map(|link| grid.ends(link)).collect();
    ends.sort_unstable();
    let mut bodies = Bodies::new(grid.pes());
    (0..grid.pes()).for_each(|process| bodies.work(process, work));
    let messages: Vec<(usize, usize, u64)> = ends.into_iter().map(|(from, to)| (from, to, flits)).collect();
    bodies.exchange(&messages);
    Ok(bodies.repeated(iterations))
}

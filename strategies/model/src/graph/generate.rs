//! Generated task graphs: grids, rings, k neighbors, trees, butterflies, random graphs, and (in their own modules)
//! LeanMD, sparse matrices, adaptive meshes, the NAS multi-zone benchmarks, and training jobs.
//!
//! A spec is the name of the generator, a colon, and arguments separated by commas. Tasks have a load of one second,
//! except for LeanMD and the benchmarks. With `bytes=B`, every edge has B bytes in each direction, so its undirected
//! weight is 2B; for adaptive meshes, B is the number of bytes of a face. Training jobs have bytes of their own.

use std::collections::BTreeSet;

use super::making::{BYTES, Generator, Make, Pattern, SEED, check_size, one_number, uniform};
use super::{elements, kkt, leanmd, npb_mz, octree, parallel};
use crate::grid::Grid;
use crate::params::{Param, Params};
use crate::random::{below, generator};
use crate::table::count;

/// All generators, in the order of help texts.
pub const ALL: &[&Generator] = &[
    &Generator {
        name: "mesh",
        form: "mesh:16x16",
        help: "Neighbors on a grid that does not wrap; first dimension fastest.",
        params: &[BYTES],
        item: Make::Arguments(|arguments| Ok(uniform(grid(arguments, false)?, arguments)?)),
    },
    &Generator {
        name: "torus",
        form: "torus:8x8x8",
        help: "Neighbors on a grid that wraps, except in dimensions marked m (8x8x4m).",
        params: &[BYTES],
        item: Make::Arguments(|arguments| Ok(uniform(grid(arguments, true)?, arguments)?)),
    },
    &Generator {
        name: "ring",
        form: "ring:64",
        help: "Neighbors on a ring.",
        params: &[BYTES],
        item: Make::Arguments(|arguments| Ok(uniform(k_neighbor(one_number(arguments)?, 2)?, arguments)?)),
    },
    &Generator {
        name: "kneighbor",
        form: "kneighbor:64,7",
        help: "i and i+1 .. i+k/2 on a ring; if k is odd also i and i+(k+1)/2.",
        params: &[BYTES],
        item: Make::Arguments(|arguments| {
            let (size, k) = two_numbers(arguments, "the number of neighbors")?;
            if k >= size {
                return Err(format!(
                    "a task on a ring of {} has fewer than {}; use fewer",
                    count(size as u64, "task"),
                    count(k as u64, "neighbor")
                )
                .into());
            }
            Ok(uniform(k_neighbor(size, k)?, arguments)?)
        }),
    },
    &Generator {
        name: "tree",
        form: "tree:31,2",
        help: "Task i and its children k*i+1 .. k*i+k, if they exist (sums and broadcasts).",
        params: &[BYTES],
        item: Make::Arguments(|arguments| {
            let (size, k) = two_numbers(arguments, "the number of children")?;
            Ok(uniform(tree(size, k)?, arguments)?)
        }),
    },
    &Generator {
        name: "butterfly",
        form: "butterfly:64",
        help: "i and i with one bit flipped, one bit per stage: the exchanges of a fast Fourier transform of \
               2^stages tasks.",
        params: &[BYTES],
        item: Make::Arguments(|arguments| Ok(uniform(butterfly(one_number(arguments)?)?, arguments)?)),
    },
    &Generator {
        name: "random",
        form: "random:n=200,degree=7",
        help: "Tasks with random neighbors.",
        params: &[
            Param { key: "n", default: "", help: "tasks" },
            Param { key: "degree", default: "", help: "mean number of neighbors of a task" },
            SEED,
            BYTES,
        ],
        item: Make::Arguments(|arguments| Ok(uniform(random(arguments)?, arguments)?)),
    },
    &leanmd::GENERATOR,
    &npb_mz::GENERATOR,
    &kkt::GENERATOR,
    &elements::GENERATOR,
    &octree::GENERATOR,
    &parallel::GENERATOR,
];

/// The number of tasks and a second number.
fn two_numbers(arguments: &mut Params, other: &str) -> Result<(usize, usize), String> {
    let [size, other] = arguments.positional(["the number of tasks", other])?;
    let parse = |text: String| text.parse().map_err(|_| format!("expected a number, found `{text}`"));
    Ok((parse(size)?, parse(other)?))
}

fn grid(arguments: &mut Params, wraps: bool) -> Result<Pattern, String> {
    let [sizes] = arguments.positional(["sizes such as 16x16"])?;
    let grid = Grid::parse(&sizes, wraps)?;
    check_size(grid.pes(), grid.links() / 2)?;
    let links = (0..grid.links()).map(|link| grid.ends(link));
    let pairs = links.filter(|(from, to)| from < to).map(|(from, to)| (from as u32, to as u32)).collect();
    Ok(Pattern { vertices: grid.pes(), pairs, grid: Some(grid) })
}

fn k_neighbor(vertices: usize, k: usize) -> Result<Pattern, String> {
    check_size(vertices, vertices.saturating_mul(k.div_ceil(2)))?;
    let mut pairs = Vec::with_capacity(vertices * k.div_ceil(2));
    for v in 0..vertices {
        for step in 1..=k.div_ceil(2) {
            let other = (v + step) % vertices;
            pairs.push((v.min(other) as u32, v.max(other) as u32));
        }
    }
    // On a small ring, the neighbors in both directions coincide.
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|(a, b)| a != b);
    Ok(Pattern { vertices, pairs, grid: None })
}

fn tree(vertices: usize, children: usize) -> Result<Pattern, String> {
    check_size(vertices, vertices)?;
    if children == 0 && vertices > 1 {
        return Err(format!(
            "every task of a tree of {vertices} tasks has at least 1 child; use more children"
        ));
    }
    let pairs = (1..vertices).map(|v| (((v - 1) / children) as u32, v as u32)).collect();
    Ok(Pattern { vertices, pairs, grid: None })
}

fn butterfly(vertices: usize) -> Result<Pattern, String> {
    if !vertices.is_power_of_two() {
        return Err(format!("the number of tasks of a butterfly is a power of 2, not {vertices}"));
    }
    let stages = vertices.ilog2();
    check_size(vertices, vertices / 2 * stages as usize)?;
    let lower =
        |bit: usize| (0..vertices).filter(move |v| v & bit == 0).map(move |v| (v as u32, (v | bit) as u32));
    let pairs = (0..stages).flat_map(|stage| lower(1 << stage)).collect();
    Ok(Pattern { vertices, pairs, grid: None })
}

fn random(arguments: &mut Params) -> Result<Pattern, String> {
    let vertices: usize = arguments.take("n")?;
    let degree: f64 = arguments.take("degree")?;
    let all = vertices as u128 * vertices.saturating_sub(1) as u128 / 2;
    let wanted = (vertices as f64 * degree / 2.0).round();
    if !(degree >= 0.0 && wanted <= all as f64) {
        let most = vertices.saturating_sub(1);
        let tasks = count(vertices as u64, "task");
        return Err(format!("the mean degree of {tasks} is 0 to {most}, not {degree}"));
    }
    check_size(vertices, wanted as usize)?;
    let mut generator = generator(arguments.take("seed")?, 0);
    // Samples either the edges or the pairs without an edge, whichever are fewer, so that few samples are rejected.
    let count = (wanted as u128).min(all - wanted as u128) as usize;
    let mut sampled = BTreeSet::new();
    while sampled.len() < count {
        let a = below(&mut generator, vertices as u64) as u32;
        let b = below(&mut generator, vertices as u64) as u32;
        if a != b {
            sampled.insert((a.min(b), a.max(b)));
        }
    }
    let pairs = if count as u128 == wanted as u128 {
        sampled.into_iter().collect()
    } else {
        let every = (0..vertices as u32).flat_map(|a| (a + 1..vertices as u32).map(move |b| (a, b)));
        every.filter(|pair| !sampled.contains(pair)).collect()
    };
    Ok(Pattern { vertices, pairs, grid: None })
}

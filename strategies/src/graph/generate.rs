//! Task graphs by formula: grids, rings, k neighbors, trees, butterflies, random graphs, and (in files of their
//! own) LeanMD, sparse matrices and their products with vectors, adaptive meshes, and NAS's multi-zone benchmarks.
//!
//! A spec is the generator's name, a colon, and arguments separated by commas. But for LeanMD and the benchmarks, every
//! task has a load of one second. Where a generator takes `bytes=B`, every edge has B bytes each way (1 if it is left
//! out, so that its undirected weight is 2); of adaptive meshes every face.

use std::collections::BTreeSet;

use super::{GraphError, MAX_EDGES, MAX_VERTICES, edge, elements, kkt, leanmd, npb_mz, octree, spmv, tasks};
use crate::database::{Database, ObjectIndex};
use crate::random::{below, generator};
use crate::spelling::meant;
use crate::topology::{Grid, Topology as _};

/// Every generator, in the order help lists them.
pub const ALL: &[Generator] = &[
    Generator {
        name: "mesh",
        form: "mesh:16x16",
        help: "Neighbors on a grid that does not wrap; first dimension fastest.",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| Ok(uniform(arguments, grid(arguments, false)?)?)),
    },
    Generator {
        name: "torus",
        form: "torus:8x8x8",
        help: "Neighbors on a grid that wraps, except in dimensions marked m (8x8x4m).",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| Ok(uniform(arguments, grid(arguments, true)?)?)),
    },
    Generator {
        name: "ring",
        form: "ring:64",
        help: "Neighbors on a ring.",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| Ok(uniform(arguments, k_neighbor(one_number(arguments)?, 2)?)?)),
    },
    Generator {
        name: "kneighbor",
        form: "kneighbor:64,7",
        help: "i and i+1 .. i+k/2 on a ring; if k is odd also i and i+(k+1)/2.",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| {
            let (size, k) = two_numbers(arguments, "the number of neighbors")?;
            if k >= size {
                return Err(format!("a ring of {size} tasks has no {k} neighbors for each; use fewer").into());
            }
            Ok(uniform(arguments, k_neighbor(size, k)?)?)
        }),
    },
    Generator {
        name: "tree",
        form: "tree:31,2",
        help: "Task i and its children k*i+1 .. k*i+k, as far as there are so many tasks (sums and broadcasts).",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| {
            let (size, k) = two_numbers(arguments, "the number of children")?;
            Ok(uniform(arguments, tree(size, k)?)?)
        }),
    },
    Generator {
        name: "butterfly",
        form: "butterfly:64",
        help: "i and i with any one bit changed, a bit per stage: the exchanges of a fast Fourier transform of \
               2^stages tasks.",
        keys: &["bytes"],
        make: Make::Arguments(|arguments| Ok(uniform(arguments, butterfly(one_number(arguments)?)?)?)),
    },
    Generator {
        name: "random",
        form: "random:n=200,degree=7",
        help: "n tasks and n*degree/2 edges drawn at random (by seed=S, 0 if left out).",
        keys: &["n", "degree", "seed", "bytes"],
        make: Make::Arguments(|arguments| Ok(uniform(arguments, random(arguments)?)?)),
    },
    leanmd::GENERATOR,
    npb_mz::GENERATOR,
    kkt::GENERATOR,
    elements::GENERATOR,
    octree::GENERATOR,
    spmv::GENERATOR,
];

/// A generator of task graphs.
pub struct Generator {
    /// What a spec begins with, before the colon.
    pub name: &'static str,
    /// What a spec looks like, as in `mesh:16x16`.
    pub form: &'static str,
    /// Which tasks communicate.
    pub help: &'static str,
    /// The keys it takes.
    pub(super) keys: &'static [&'static str],
    /// Makes the graph.
    pub(super) make: Make,
}

/// Makes a graph of what stands after the colon, or says what is wrong with it.
pub(super) enum Make {
    /// Of arguments.
    Arguments(fn(&Arguments) -> Result<Database, Refusal>),
    /// Of a text with commas of its own.
    Text(fn(&str) -> Result<Database, Refusal>),
}

/// Why there is no graph of a generator.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The arguments, and what was expected.
    Arguments(String),
    /// Another graph, or file, that they name.
    Other(GraphError),
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Refusal::Arguments(reason)
    }
}

impl From<GraphError> for Refusal {
    fn from(error: GraphError) -> Self {
        Refusal::Other(error)
    }
}

/// Who talks to whom.
pub(super) struct Pattern {
    /// How many tasks there are.
    pub(super) vertices: usize,
    /// Any two tasks at most once, in any order.
    pub(super) pairs: Vec<(u32, u32)>,
    /// Where the tasks are on a grid, if they are.
    pub(super) grid: Option<Grid>,
}

/// What stands after the colon of a spec.
pub(super) struct Arguments<'a> {
    positional: Vec<&'a str>,
    named: Vec<(&'a str, &'a str)>,
}

impl<'a> Arguments<'a> {
    fn parse(text: &'a str, known: &[&str]) -> Result<Self, String> {
        let mut arguments = Arguments { positional: Vec::new(), named: Vec::new() };
        for part in text.split(',') {
            let Some((key, value)) = part.split_once('=') else {
                arguments.positional.push(part);
                continue;
            };
            if !known.contains(&key) {
                let meant = meant(key, known);
                return Err(format!("it takes no `{key}`{meant}; known are {}", known.join(", ")));
            }
            if arguments.named.iter().any(|(earlier, _)| *earlier == key) {
                return Err(format!("`{key}` is given twice"));
            }
            arguments.named.push((key, value));
        }
        Ok(arguments)
    }

    /// The arguments without a name, which stand for `meanings`.
    pub(super) fn positional<const N: usize>(&self, meanings: [&str; N]) -> Result<[&'a str; N], String> {
        self.positional.as_slice().try_into().map_err(|_| {
            let (found, expected) = (self.positional.len(), meanings.join(", then "));
            if N == 0 {
                "it takes named arguments only".into()
            } else {
                format!("expected {expected}; found {found}")
            }
        })
    }

    /// The value of `key`, or `default` if it is not given.
    pub(super) fn take<T: std::str::FromStr>(&self, key: &str, default: Option<T>) -> Result<T, String> {
        match (self.named.iter().find(|(given, _)| *given == key), default) {
            (Some((_, value)), _) => {
                value.parse().map_err(|_| format!("{key}={value} is not understood: expected a number"))
            }
            (None, Some(default)) => Ok(default),
            (None, None) => Err(format!("`{key}=` must be given")),
        }
    }
}

/// The graph that `generator` makes of the arguments `text`.
pub(super) fn make(generator: &Generator, text: &str) -> Result<Database, Refusal> {
    match generator.make {
        Make::Arguments(make) => make(&parse_arguments(generator, text)?),
        Make::Text(make) => make(text),
    }
}

/// The arguments of a generator.
pub(super) fn parse_arguments<'a>(generator: &Generator, text: &'a str) -> Result<Arguments<'a>, String> {
    Arguments::parse(text, generator.keys)
}

/// Tasks of one second that exchange `bytes=` in that pattern.
pub(super) fn uniform(arguments: &Arguments, pattern: Pattern) -> Result<Database, String> {
    let bytes: u64 = arguments.take("bytes", Some(1))?;
    if u64::checked_mul(bytes, 2 * pattern.pairs.len() as u64).is_none() {
        return Err(format!("bytes={bytes} make more than 2^64 bytes in all"));
    }
    let mut database = tasks(pattern.vertices);
    if let Some(grid) = pattern.grid {
        let mut coordinates = Vec::new();
        for (id, object) in database.objects.iter_mut().enumerate() {
            coordinates.clear();
            coordinates.extend(grid.coordinates(id).map(|coordinate| coordinate as i32));
            if coordinates.len() <= ObjectIndex::MAX_DIMENSIONS {
                object.index = ObjectIndex::new(&coordinates);
            }
        }
    }
    let both_ways = |(a, b)| [edge(a, b, 1, bytes), edge(b, a, 1, bytes)];
    database.edges = pattern.pairs.into_iter().flat_map(both_ways).collect();
    database.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    Ok(database)
}

/// The number of tasks, which is all that stands after the colon.
pub(super) fn one_number(arguments: &Arguments) -> Result<usize, String> {
    let [size] = arguments.positional(["the number of tasks"])?;
    size.parse().map_err(|_| format!("expected a number of tasks, found `{size}`"))
}

/// The number of tasks, and another one.
fn two_numbers(arguments: &Arguments, other: &str) -> Result<(usize, usize), String> {
    let [size, other] = arguments.positional(["the number of tasks", other])?;
    let parse = |text: &str| text.parse().map_err(|_| format!("expected a number, found `{text}`"));
    Ok((parse(size)?, parse(other)?))
}

fn grid(arguments: &Arguments, wraps: bool) -> Result<Pattern, String> {
    let [sizes] = arguments.positional(["sizes such as 16x16"])?;
    let grid = Grid::parse(sizes, wraps)?;
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
    // On a small ring the way forward meets the way back.
    pairs.sort_unstable();
    pairs.dedup();
    pairs.retain(|(a, b)| a != b);
    Ok(Pattern { vertices, pairs, grid: None })
}

fn tree(vertices: usize, children: usize) -> Result<Pattern, String> {
    check_size(vertices, vertices)?;
    if children == 0 && vertices > 1 {
        return Err(format!("a tree of {vertices} tasks has at least 1 child for each; use more"));
    }
    let pairs = (1..vertices).map(|v| (((v - 1) / children) as u32, v as u32)).collect();
    Ok(Pattern { vertices, pairs, grid: None })
}

fn butterfly(vertices: usize) -> Result<Pattern, String> {
    if !vertices.is_power_of_two() {
        return Err(format!("the tasks of a butterfly are a power of 2, not {vertices}"));
    }
    let stages = vertices.ilog2();
    check_size(vertices, vertices / 2 * stages as usize)?;
    let lower =
        |bit: usize| (0..vertices).filter(move |v| v & bit == 0).map(move |v| (v as u32, (v | bit) as u32));
    let pairs = (0..stages).flat_map(|stage| lower(1 << stage)).collect();
    Ok(Pattern { vertices, pairs, grid: None })
}

fn random(arguments: &Arguments) -> Result<Pattern, String> {
    arguments.positional::<0>([])?;
    let vertices: usize = arguments.take("n", None)?;
    let degree: f64 = arguments.take("degree", None)?;
    let all = vertices as u128 * vertices.saturating_sub(1) as u128 / 2;
    let wanted = (vertices as f64 * degree / 2.0).round();
    if !(degree >= 0.0 && wanted <= all as f64) {
        let most = vertices.saturating_sub(1);
        return Err(format!("the mean degree of {vertices} tasks is 0 to {most}, not {degree}"));
    }
    check_size(vertices, wanted as usize)?;
    let mut generator = generator(arguments.take("seed", Some(0))?, 0);
    // The smaller of the set and what it leaves out is drawn, so that few draws are repeated.
    let few = (wanted as u128).min(all - wanted as u128) as usize;
    let mut drawn = BTreeSet::new();
    while drawn.len() < few {
        let a = below(&mut generator, vertices as u64) as u32;
        let b = below(&mut generator, vertices as u64) as u32;
        if a != b {
            drawn.insert((a.min(b), a.max(b)));
        }
    }
    let pairs = if few as u128 == wanted as u128 {
        drawn.into_iter().collect()
    } else {
        let every = (0..vertices as u32).flat_map(|a| (a + 1..vertices as u32).map(move |b| (a, b)));
        every.filter(|pair| !drawn.contains(pair)).collect()
    };
    Ok(Pattern { vertices, pairs, grid: None })
}

/// Whether a graph of that size may be made.
pub(super) fn check_size(vertices: usize, edges: usize) -> Result<(), String> {
    if vertices > MAX_VERTICES || edges > MAX_EDGES {
        return Err(format!("it has more than {MAX_VERTICES} tasks or {MAX_EDGES} edges"));
    }
    Ok(())
}

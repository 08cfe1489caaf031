//! What generators of task graphs share: their arguments, their errors, and the graph of a pattern.

use super::{GraphError, MAX_EDGES, MAX_VERTICES, MEMORY_PER_PART, edge, tasks};
use crate::database::{Database, ObjectIndex};
use crate::descriptor::Descriptor;
use crate::fault::{Classified, Fault};
use crate::grid::Grid;
use crate::memory;
use crate::params::{Param, ParamError, Params};

/// A generator of task graphs.
pub type Generator = Descriptor<Make>;

/// Makes a graph from the arguments after the colon.
#[derive(Debug)]
pub enum Make {
    /// From parsed arguments.
    Arguments(fn(&mut Params) -> Result<Database, Refusal>),
    /// From the text, whose commas have a different meaning.
    Text(fn(&str) -> Result<Database, Refusal>),
}

/// Why a generator cannot make a graph.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The arguments are invalid.
    #[error("{0}")]
    Arguments(String),
    /// Another graph or file named in the arguments cannot be loaded.
    #[error(transparent)]
    Other(GraphError),
}

impl Classified for Refusal {
    fn fault(&self) -> Fault {
        match self {
            Refusal::Arguments(_) => Fault::Usage,
            Refusal::Other(error) => error.fault(),
        }
    }
}

impl From<String> for Refusal {
    fn from(reason: String) -> Self {
        Refusal::Arguments(reason)
    }
}

impl From<ParamError> for Refusal {
    fn from(error: ParamError) -> Self {
        Refusal::Arguments(error.into())
    }
}

impl From<GraphError> for Refusal {
    fn from(error: GraphError) -> Self {
        Refusal::Other(error)
    }
}

/// The key `bytes`.
pub(super) const BYTES: Param =
    Param { key: "bytes", default: "1", help: "bytes of an edge in each direction" };

/// The key `seed`.
pub(super) const SEED: Param =
    Param { key: "seed", default: "0", help: "seed of the random number generator" };

/// The communication pattern of the tasks.
pub(super) struct Pattern {
    /// The number of tasks.
    pub(super) vertices: usize,
    /// Pairs of tasks in any order, without repetitions.
    pub(super) pairs: Vec<(u32, u32)>,
    /// The grid of the tasks, if there is one.
    pub(super) grid: Option<Grid>,
}

/// Runs `generator` with the arguments `text`.
pub(super) fn make(generator: &Generator, text: &str) -> Result<Database, Refusal> {
    match generator.item {
        Make::Arguments(make) => Params::parse_with(generator.name, generator.params, text, make),
        Make::Text(make) => make(text),
    }
}

/// Tasks of one second that exchange `bytes=` bytes along the pairs of the pattern.
pub(super) fn uniform(pattern: Pattern, arguments: &mut Params) -> Result<Database, String> {
    let bytes: u64 = arguments.take("bytes")?;
    if u64::checked_mul(bytes, 2 * pattern.pairs.len() as u64).is_none() {
        return Err(format!("bytes={bytes} results in more than 2^64 bytes in total; use fewer"));
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

/// The number of tasks, as the only positional argument.
pub(super) fn one_number(arguments: &mut Params) -> Result<usize, String> {
    let [size] = arguments.positional(["the number of tasks"])?;
    size.parse().map_err(|_| format!("expected a number of tasks, found `{size}`"))
}

/// Checks that a graph of this size is allowed and fits into memory.
pub(super) fn check_size(vertices: usize, edges: usize) -> Result<(), String> {
    if vertices > MAX_VERTICES || edges > MAX_EDGES {
        return Err(format!("it has more than {MAX_VERTICES} tasks or {MAX_EDGES} edges"));
    }
    let what = format!("a graph of {vertices} tasks and {edges} edges");
    memory::check(MEMORY_PER_PART * (vertices + edges) as u64, &what, "use fewer tasks or edges")
}

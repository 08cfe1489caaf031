//! The weighted task graph in CSR form, with its generators, readers and writers.
//!
//! Task graphs of all formats are read as a [`Database`], so that every strategy can use them: object `i` is vertex
//! `i`. All objects are on a single PE; [`Database::remap`] spreads them over a machine. Algorithms use the [`Graph`]:
//! the undirected communication of the objects.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::database::{Database, DatabaseError, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use crate::descriptor::{self, find, split};
use crate::fault::{Classified, Fault};
use crate::files::{self, Unread};
use crate::memory;
use crate::quote::{quoted, sentence, shown};
use crate::table::count;

mod csv;
mod dense;
mod elements;
#[cfg(test)]
mod format_tests;
mod formats;
pub mod generate;
mod kkt;
pub mod leanmd;
pub mod making;
mod matrix;
mod matrix_market;
mod metis_format;
mod monitoring;
pub mod npb_mz;
mod octree;
pub mod parallel;
mod scotch_format;
mod sparse;
#[cfg(test)]
mod tests;

pub use csv::rows as edge_list;
pub(crate) use formats::extensions;
use formats::{FORMATS, format, read};
pub use formats::{formats, is_graph_file, reads_back, write};
pub use matrix::Matrix;

use making::{Generator, Refusal, make};

/// An undirected weighted graph in compressed sparse rows.
///
/// The weight of an edge is the number of bytes exchanged in both directions. There are no loops and no edges of weight
/// 0. The neighbors of a vertex are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The neighbors of `v` are `targets[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<usize>,
    targets: Vec<u32>,
    /// In the order of `targets`; an edge has the same weight in both directions.
    weights: Vec<u64>,
}

impl Graph {
    /// The graph with these edges `(vertex, vertex, weight)`. Weights of repeated pairs are added, regardless of
    /// direction (saturating at 2^64-1).
    ///
    /// # Panics
    /// If an edge has a vertex that does not exist.
    pub fn new(vertices: usize, edges: impl IntoIterator<Item = (u32, u32, u64)>) -> Graph {
        let edges: Vec<_> = edges.into_iter().filter(|&(a, b, weight)| a != b && weight > 0).collect();
        let mut starts = vec![0usize; vertices + 1];
        for &(a, b, _) in &edges {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut ends = vec![(0u32, 0u64); 2 * edges.len()];
        for (a, b, weight) in edges {
            for (from, to) in [(a, b), (b, a)] {
                ends[next[from as usize]] = (to, weight);
                next[from as usize] += 1;
            }
        }
        let mut graph = Graph { offsets: Vec::with_capacity(vertices + 1), targets: vec![], weights: vec![] };
        graph.offsets.push(0);
        for v in 0..vertices {
            let row = &mut ends[starts[v]..starts[v + 1]];
            row.sort_unstable_by_key(|&(target, _)| target);
            for pairs in row.chunk_by(|a, b| a.0 == b.0) {
                graph.targets.push(pairs[0].0);
                graph.weights.push(pairs.iter().fold(0, |sum, pair| pair.1.saturating_add(sum)));
            }
            graph.offsets.push(graph.targets.len());
        }
        graph
    }

    /// Like [`Graph::new`] with weight 1, but without a copy of the pairs: for matrices with a hundred million entries.
    /// Needs 12 bytes for each direction of an entry, and 4 more during sorting.
    ///
    /// # Panics
    /// If a pair has a vertex that does not exist.
    pub fn of_places(vertices: usize, pairs: &[(u32, u32)]) -> Graph {
        let pairs = || pairs.iter().filter(|(a, b)| a != b);
        let mut starts = vec![0usize; vertices + 1];
        for &(a, b) in pairs() {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut targets = vec![0u32; starts[vertices]];
        for &(a, b) in pairs() {
            for (from, to) in [(a, b), (b, a)] {
                targets[next[from as usize]] = to;
                next[from as usize] += 1;
            }
        }
        drop(next);
        let (mut offsets, mut weights, mut kept) = (Vec::with_capacity(vertices + 1), Vec::new(), 0);
        weights.reserve(targets.len());
        offsets.push(0);
        for v in 0..vertices {
            targets[starts[v]..starts[v + 1]].sort_unstable();
            // Merges equal targets in place; the write position never passes the read position.
            for at in starts[v]..starts[v + 1] {
                let target = targets[at];
                if kept > offsets[v] && targets[kept - 1] == target {
                    weights[kept - 1] += 1;
                } else {
                    targets[kept] = target;
                    weights.push(1);
                    kept += 1;
                }
            }
            offsets.push(kept);
        }
        targets.truncate(kept);
        Graph { offsets, targets, weights }
    }

    /// The communication of the objects of a consistent database, one vertex per object. Edges with PEs are ignored.
    pub fn of(database: &Database) -> Graph {
        let pair = |edge: &Edge| ends(edge).map(|(a, b)| (a, b, edge.bytes));
        Graph::new(database.objects.len(), database.edges.iter().filter_map(pair))
    }

    /// Like [`Graph::of`], with an additional vertex per PE after the objects, for edges between objects and PEs. Edges
    /// between two PEs are ignored, because no placement changes them.
    pub fn with_pes(database: &Database) -> Graph {
        let objects = database.objects.len();
        let vertex = |end: End| match end {
            End::Object(object) => object,
            End::Pe(pe) => objects as u32 + pe,
        };
        let between_pes = |edge: &&Edge| matches!((edge.from, edge.to), (End::Pe(_), End::Pe(_)));
        let edges = database.edges.iter().filter(|edge| !between_pes(edge));
        let edges = edges.map(|edge| (vertex(edge.from), vertex(edge.to), edge.bytes));
        Graph::new(objects + database.pes.len(), edges)
    }

    /// The number of vertices.
    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The number of undirected edges.
    pub fn edges(&self) -> usize {
        self.targets.len() / 2
    }

    /// The neighbors of `v` with the weights of the edges.
    pub fn neighbors(&self, v: usize) -> impl Iterator<Item = (usize, u64)> {
        let range = self.offsets[v]..self.offsets[v + 1];
        self.targets[range.clone()]
            .iter()
            .map(|&target| target as usize)
            .zip(self.weights[range].iter().copied())
    }

    /// The number of neighbors of `v`.
    pub fn degree(&self, v: usize) -> usize {
        self.offsets[v + 1] - self.offsets[v]
    }

    /// The total weight of the edges of `v`.
    pub fn weight(&self, v: usize) -> u64 {
        self.neighbors(v).fold(0, |sum, (_, weight)| weight.saturating_add(sum))
    }

    /// The CSR arrays: offsets, targets and weights (see the fields of the same names).
    pub fn rows(&self) -> (&[usize], &[u32], &[u64]) {
        (&self.offsets, &self.targets, &self.weights)
    }

    /// All edges as `(lower vertex, higher vertex, weight)`, in ascending order.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        (0..self.vertices()).flat_map(move |v| {
            let higher = move |&(u, _): &(usize, u64)| u > v;
            self.neighbors(v).filter(higher).map(move |(u, weight)| (v as u32, u as u32, weight))
        })
    }

    /// The subgraph induced by `vertices`, which are ascending; vertex `i` of the subgraph is `vertices[i]`.
    ///
    /// # Panics
    /// If a vertex does not exist.
    pub fn induced(&self, vertices: &[u32]) -> Graph {
        self.split(&[vertices]).swap_remove(0)
    }

    /// The [`induced`](Graph::induced) subgraphs of disjoint `parts`, in O(vertices + edges) in total.
    ///
    /// # Panics
    /// If a vertex does not exist.
    pub fn split<P: AsRef<[u32]>>(&self, parts: &[P]) -> Vec<Graph> {
        let mut place = vec![(u32::MAX, 0); self.vertices()];
        for (members, part) in parts.iter().zip(0..) {
            members.as_ref().iter().zip(0..).for_each(|(&v, position)| place[v as usize] = (part, position));
        }
        let inside = |(members, part): (&P, u32)| {
            let mut graph = Graph { offsets: vec![0], targets: vec![], weights: vec![] };
            for &v in members.as_ref() {
                for (u, weight) in self.neighbors(v as usize).filter(|&(u, _)| place[u].0 == part) {
                    graph.targets.push(place[u].1);
                    graph.weights.push(weight);
                }
                graph.offsets.push(graph.targets.len());
            }
            graph
        };
        parts.iter().zip(0..).map(inside).collect()
    }

    /// The quotient graph when vertex `v` belongs to part `part_of[v]`: the communication between parts.
    ///
    /// # Panics
    /// If a part is not below `parts`.
    pub fn quotient(&self, part_of: &[u32], parts: usize) -> Graph {
        Graph::new(
            parts,
            self.pairs().map(|(a, b, weight)| (part_of[a as usize], part_of[b as usize], weight)),
        )
    }
}

/// Why a task graph cannot be loaded or written. The message names what is wrong and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A generator cannot make the requested graph.
    #[error("`{}` is not a task graph: {}", quoted(.spec), sentence(.reason))]
    Spec {
        /// The spec as written.
        spec: String,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// The file cannot be read.
    #[error("cannot read the task graph `{}`: {source}; check its name and that it may be read", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The file cannot be written; the old content remains.
    #[error("cannot write the task graph `{}`: {source}; name a place that exists, is writable and has room", shown(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}:{line}: {}", shown(.path), sentence(.reason))]
    Content {
        /// The file.
        path: PathBuf,
        /// The line with the error, from 1.
        line: usize,
        /// What is wrong and what was expected.
        reason: String,
    },
    /// A database file cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl GraphError {
    /// The error for a file without text.
    fn unread(path: &Path, unread: Unread) -> GraphError {
        match unread {
            Unread::System(source) => GraphError::Read { path: path.into(), source },
            Unread::Content((line, reason)) => GraphError::Content { path: path.into(), line, reason },
        }
    }
}

impl Classified for GraphError {
    fn fault(&self) -> Fault {
        match self {
            GraphError::Spec { .. } | GraphError::Read { .. } => Fault::Usage,
            GraphError::Write { source, .. } => source.fault(),
            GraphError::Content { .. } => Fault::Input,
            GraphError::Database(error) => error.fault(),
        }
    }
}

/// Loads a task graph from a spec: a file, or a generator such as `mesh:16x16` if there is no file with this name.
///
/// The extension of the file name selects the format, one of [`formats`]. Any other file is read as a database; its first
/// step is used.
///
/// # Errors
/// If the spec names neither a generator nor a file, or the file does not have the format of its name.
pub fn load(spec: &str) -> Result<Database, GraphError> {
    Ok(load_steps(spec, &[])?.steps.swap_remove(0))
}

/// Loads all steps of a spec as in [`load`]: at least one, and more than one only for databases. `more` has the
/// generators of dependent crates.
///
/// # Errors
/// As for [`load`].
pub fn load_steps(spec: &str, more: &[&'static Generator]) -> Result<Dump, GraphError> {
    let one = |database| Dump { steps: vec![database], ..Dump::default() };
    let error = |reason| GraphError::Spec { spec: spec.to_string(), reason };
    let path = Path::new(spec);
    let (name, rest) = split(spec);
    if !path.exists() {
        match find("generator and no file", name, generate::ALL.iter().chain(more).copied()) {
            Ok(generator) if spec.contains(':') => {
                return make(generator, rest).map(one).map_err(|refusal| match refusal {
                    Refusal::Arguments(reason) => error(reason),
                    Refusal::Other(error) => error,
                });
            }
            Ok(generator) => {
                return Err(error(format!(
                    "there is no file with this name, and the generator needs arguments, as in {}",
                    generator.form
                )));
            }
            Err(unknown) if spec.contains(':') => return Err(error(unknown.into())),
            Err(_) => {}
        }
    }
    let Some(format) = format(path) else { return Ok(Dump::read_steps(path, None, None)?) };
    read(path, format).map(one)
}

/// The help text for task graphs: all generators, including `more`, and the file formats.
pub fn help(more: &[&'static Generator]) -> String {
    let mut text = descriptor::help(generate::ALL.iter().chain(more).copied());
    for format in FORMATS {
        let _ = writeln!(text, "FILE.{}\n    {}", format.name, format.help);
    }
    text += "any other FILE\n    A load-balancing database of equipoise, a dump of Charm++, or data.0.json or \
             data.%p.json (.br) of vt, read together with the files of the other ranks.\n";
    text
}

/// The ends of an edge between two objects.
fn ends(edge: &Edge) -> Option<(u32, u32)> {
    match (edge.from, edge.to) {
        (End::Object(from), End::Object(to)) => Some((from, to)),
        _ => None,
    }
}

/// The largest number of vertices of a generated graph, so that a typing error does not exhaust the memory.
pub const MAX_VERTICES: usize = 1 << 24;

/// The largest number of edges of a generated graph.
pub const MAX_EDGES: usize = 1 << 26;

/// Bytes of memory, at most, for a task, or for an edge in both directions: in a database, and in the lists of which it
/// is made. (Measured: 145 and 150.)
const MEMORY_PER_PART: u64 = 160;

/// Checks that the tasks of a file fit into memory.
fn check_tasks(vertices: usize) -> Result<(), String> {
    let what = format!("a graph of {vertices} vertices");
    memory::check(MEMORY_PER_PART * vertices as u64, &what, "use a smaller graph")
}

/// Limits the number of vertices of a file that does not list its vertices individually, so that a typing error in one
/// number does not allocate millions of vertices.
fn check_sparsity(vertices: usize, lines: usize) -> Result<(), String> {
    let most = (1 << 20).max(lines.saturating_mul(64));
    if vertices <= most {
        return check_tasks(vertices);
    }
    Err(format!(
        "{vertices} vertices are too many for {}; number them without gaps",
        count(lines as u64, "line")
    ))
}

/// A database of `vertices` objects with a load of one second, without edges, on one PE.
pub fn tasks(vertices: usize) -> Database {
    let object = |id: usize| Object {
        id: id as u64,
        array: 0,
        index: ObjectIndex::new(&[id as i32]),
        load_seconds: 1.0,
        bytes: None,
        pe: 0,
        migratable: true,
    };
    Database {
        arrays: vec!["task".into()],
        pes: vec![PeRecord::default()],
        objects: (0..vertices).map(object).collect(),
        ..Database::default()
    }
}

/// An edge between two objects.
fn edge(from: u32, to: u32, messages: u64, bytes: u64) -> Edge {
    Edge { from: End::Object(from), to: End::Object(to), messages, bytes }
}

/// Merges edges with the same sender and receiver, and sorts them.
///
/// # Errors
/// If the totals exceed 2^64.
pub fn merge(mut edges: Vec<Edge>) -> Result<Vec<Edge>, String> {
    let too_many =
        || "the edges have more than 2^64 bytes or messages in total; divide them by a number".to_string();
    let sum = |f: fn(&Edge) -> u64| edges.iter().try_fold(0u64, |sum, edge| sum.checked_add(f(edge)));
    sum(|edge| edge.bytes).and(sum(|edge| edge.messages)).ok_or_else(too_many)?;
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    edges.dedup_by(|later, first| {
        let same = (later.from, later.to) == (first.from, first.to);
        if same {
            first.messages += later.messages;
            first.bytes += later.bytes;
        }
        same
    });
    Ok(edges)
}

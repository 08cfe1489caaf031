//! The weighted task graph in CSR form, its generators, its readers and its writers.
//!
//! A task graph comes into the program as a [`Database`], whatever it was written in, so that every
//! strategy can be used on it: object `i` is vertex `i`, all on PE 0 of one, to be spread over a machine
//! with [`Database::remap`]. The algorithms see its [`Graph`]: who talks to whom, whichever way.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::database::{Database, DatabaseError, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use crate::files::{self, NOT_TEXT, Unread};
use crate::spelling::meant;

mod csv;
mod dense;
mod elements;
#[cfg(test)]
mod format_tests;
mod formats;
pub mod generate;
mod kkt;
pub mod leanmd;
mod matrix_market;
mod metis_format;
mod monitoring;
pub mod npb_mz;
mod octree;
mod scotch_format;
mod spmv;
#[cfg(test)]
mod tests;

pub(crate) use csv::rows as edge_list;
pub(crate) use formats::extensions;
use formats::{FORMATS, format, read};
pub use formats::{is_graph_file, reads_back, write};
use generate::Refusal;

/// An undirected weighted graph in compressed sparse rows.
///
/// The weight of an edge is all bytes its ends exchange, both ways. There are no loops, and no edges
/// without weight. The neighbors of a vertex are in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The neighbors of `v` are `targets[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<usize>,
    targets: Vec<u32>,
    /// In the order of `targets`; both directions of an edge have its weight.
    weights: Vec<u64>,
}

impl Graph {
    /// The graph with these `(vertex, vertex, weight)`; the weights of equal pairs, whichever way round,
    /// add up (to at most 2^64-1).
    ///
    /// # Panics
    /// When an edge names a vertex that there is not.
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

    /// As [`Graph::new`] with a weight of 1 each, and without a copy of the pairs: for matrices of a hundred million
    /// entries, which so take 12 bytes for each of their two places, and 4 more while they are sorted.
    ///
    /// # Panics
    /// When a pair names a vertex that there is not.
    pub(crate) fn of_places(vertices: usize, pairs: &[(u32, u32)]) -> Graph {
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
            // Equal targets become one, which stands no later than the first of them.
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

    /// Who talks to whom in a checked database: a vertex per object. Ends that are PEs do not count.
    pub fn of(database: &Database) -> Graph {
        let pair = |edge: &Edge| ends(edge).map(|(a, b)| (a, b, edge.bytes));
        Graph::new(database.objects.len(), database.edges.iter().filter_map(pair))
    }

    /// As [`Graph::of`], and after the objects a vertex per PE for the ends that are PEs. What PEs say to
    /// PEs does not count: nobody can place it better.
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

    /// How many vertices there are.
    pub fn vertices(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many edges there are, each counted once.
    pub fn edges(&self) -> usize {
        self.targets.len() / 2
    }

    /// The neighbors of `v`, and the weight of the edge to each.
    pub fn neighbors(&self, v: usize) -> impl Iterator<Item = (usize, u64)> {
        let range = self.offsets[v]..self.offsets[v + 1];
        self.targets[range.clone()]
            .iter()
            .map(|&target| target as usize)
            .zip(self.weights[range].iter().copied())
    }

    /// How many neighbors `v` has.
    pub fn degree(&self, v: usize) -> usize {
        self.offsets[v + 1] - self.offsets[v]
    }

    /// The weight of all edges of `v`.
    pub fn weight(&self, v: usize) -> u64 {
        self.neighbors(v).fold(0, |sum, (_, weight)| weight.saturating_add(sum))
    }

    /// Its rows: offsets, targets and weights (see the fields of the same names).
    pub fn rows(&self) -> (&[usize], &[u32], &[u64]) {
        (&self.offsets, &self.targets, &self.weights)
    }

    /// Every edge once, as `(lower vertex, higher vertex, weight)`, in ascending order.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32, u64)> {
        (0..self.vertices()).flat_map(move |v| {
            let higher = move |&(u, _): &(usize, u64)| u > v;
            self.neighbors(v).filter(higher).map(move |(u, weight)| (v as u32, u as u32, weight))
        })
    }

    /// The graph of some vertices, which are ascending, and the edges between them; vertex `i` of it is
    /// `vertices[i]`.
    ///
    /// # Panics
    /// When it names a vertex that there is not.
    pub fn induced(&self, vertices: &[u32]) -> Graph {
        self.split(&[vertices]).swap_remove(0)
    }

    /// The graphs that [`induced`](Graph::induced) gives for each of `parts`, which have no vertex in
    /// common. O(vertices + edges) for all of them.
    ///
    /// # Panics
    /// When a part names a vertex that there is not.
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

    /// The graph of the parts when vertex `v` belongs to `part_of[v]`: what they exchange.
    ///
    /// # Panics
    /// When a vertex belongs to none of the `parts` parts.
    pub fn quotient(&self, part_of: &[u32], parts: usize) -> Graph {
        Graph::new(
            parts,
            self.pairs().map(|(a, b, weight)| (part_of[a as usize], part_of[b as usize], weight)),
        )
    }
}

/// Why there is no task graph: a sentence that names what was wrong and the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A generator that was asked for something it cannot make.
    #[error("`{spec}` is not a task graph: {reason}")]
    Spec {
        /// The spec as written.
        spec: String,
        /// What is wrong with it and what was expected.
        reason: String,
    },
    /// A file that cannot be read.
    #[error("cannot read the task graph `{}`: {source}; check its name and that it may be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file that cannot be written; what stood there before still stands.
    #[error("cannot write the task graph `{}`: {source}; name a place that exists, is writable and has room", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file whose content is not what it should be.
    #[error("{}:{line}: {reason}", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The line at fault, from 1.
        line: usize,
        /// What is wrong with it and what was expected.
        reason: String,
    },
    /// A database file that cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl GraphError {
    /// That there is no text in a file.
    fn unread(path: &Path, unread: Unread) -> GraphError {
        match unread {
            Unread::System(source) => GraphError::Read { path: path.into(), source },
            Unread::NotText(line) => GraphError::Content { path: path.into(), line, reason: NOT_TEXT.into() },
        }
    }

    /// Whether another spec or name is the remedy; otherwise a file is broken, or there is no room.
    pub fn is_of_the_request(&self) -> bool {
        match self {
            GraphError::Spec { .. } | GraphError::Read { .. } => true,
            GraphError::Write { source, .. } => files::is_of_the_name(source),
            GraphError::Content { .. } => false,
            GraphError::Database(error) => error.is_of_the_request(),
        }
    }
}

/// What is wrong with a line of a file: its number, from 1, and a sentence.
type Fault = (usize, String);

/// The task graph of a spec: a generator such as `mesh:16x16`, or a file.
///
/// Files are told apart by their names: METIS (`.graph`), Matrix Market (`.mtx`), edge lists (`.csv`), Scotch
/// (`.grf`), square matrices (`.mat`), Open MPI's monitoring (`.prof`), and any other is a database, of which the
/// first step is taken.
///
/// # Errors
/// When the spec names no generator and no file, or the file is not what its name says.
pub fn load(spec: &str) -> Result<Database, GraphError> {
    Ok(load_steps(spec)?.steps.swap_remove(0))
}

/// All steps of what [`load`] understands: one, unless it is a database; never none.
///
/// # Errors
/// As [`load`].
pub fn load_steps(spec: &str) -> Result<Dump, GraphError> {
    let one = |database| Dump { steps: vec![database], ..Dump::default() };
    if let Some((name, rest)) = spec.split_once(':') {
        let error = |reason| GraphError::Spec { spec: spec.to_string(), reason };
        if let Some(generator) = generate::ALL.iter().find(|generator| generator.name == name) {
            return generate::make(generator, rest).map(one).map_err(|refusal| match refusal {
                Refusal::Arguments(reason) => error(reason),
                Refusal::Other(error) => error,
            });
        }
        if !Path::new(spec).exists() {
            let names: Vec<&str> = generate::ALL.iter().map(|generator| generator.name).collect();
            let forms: Vec<&str> = generate::ALL.iter().map(|generator| generator.form).collect();
            let meant = meant(name, &names);
            let known = forms.join(", ");
            return Err(error(format!(
                "there is no generator and no file of that name{meant}; known are {known}"
            )));
        }
    }
    let path = Path::new(spec);
    if let Some(generator) = generate::ALL.iter().find(|generator| generator.name == spec)
        && !path.exists()
    {
        let reason =
            format!("there is no file of that name; of the generator, say more, as in {}", generator.form);
        return Err(GraphError::Spec { spec: spec.to_string(), reason });
    }
    let Some(format) = format(path) else { return Ok(Dump::read_steps(path, None, None)?) };
    read(path, format).map(one)
}

/// What a person can write where a task graph is asked for: every generator, and the files.
pub fn help() -> String {
    let mut text = String::new();
    for generator in generate::ALL {
        let _ = writeln!(text, "{}\n    {}", generator.form, generator.help);
    }
    text +=
        "All generators but leanmd, spmv and npb-mz also take ,bytes=B: what each edge carries each way.\n";
    for format in FORMATS {
        let _ = writeln!(text, "FILE.{}\n    {}", format.extension, format.help);
    }
    text += "any other FILE\n    A load-balancing database: ours, a dump of Charm++, or vt's data.0.json or data.%p.json (.br) \
             with those of the other ranks beside it.\n";
    text
}

/// The ends of an edge between objects.
fn ends(edge: &Edge) -> Option<(u32, u32)> {
    match (edge.from, edge.to) {
        (End::Object(from), End::Object(to)) => Some((from, to)),
        _ => None,
    }
}

/// The most vertices and edges of a graph that is made here, so that a slip in a number is an error and
/// not the end of the memory.
const MAX_VERTICES: usize = 1 << 24;
const MAX_EDGES: usize = 1 << 26;

/// Whether a file with so many `lines` may have so many vertices, which it need not list one by one: a
/// slip in one number must not cost the memory of millions.
fn check_sparsity(vertices: usize, lines: usize) -> Result<(), String> {
    let most = (1 << 20).max(lines.saturating_mul(64));
    if vertices <= most {
        return Ok(());
    }
    Err(format!("{vertices} vertices are too many for {lines} lines; number them without gaps"))
}

/// A database of `vertices` objects without edges, each of one second, on one PE.
fn tasks(vertices: usize) -> Database {
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

/// An edge between vertices of a graph.
fn edge(from: u32, to: u32, messages: u64, bytes: u64) -> Edge {
    Edge { from: End::Object(from), to: End::Object(to), messages, bytes }
}

/// The same edges with one entry per sender and receiver, in ascending order, or what is wrong with
/// their sums.
fn merge(mut edges: Vec<Edge>) -> Result<Vec<Edge>, String> {
    let too_many =
        || "the edges have more than 2^64 bytes or messages in all; divide them by a number".to_string();
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

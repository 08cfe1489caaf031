//! The kinds of files that hold a task graph, told apart by what their names end in.

use std::path::{Path, PathBuf};

use super::{
    Fault, Graph, GraphError, csv, dense, ends, matrix_market, merge, metis_format, monitoring,
    scotch_format, tasks,
};
use crate::database::Database;
use crate::files::{self, write_whole};

/// A kind of file that holds a task graph.
pub(super) struct Format {
    /// What the name of such a file ends in.
    pub(super) extension: &'static str,
    /// What it is, for a person.
    pub(super) help: &'static str,
    read: fn(&str) -> Result<Database, Fault>,
    /// The text of a file; edges that end at a PE are not in the database.
    write: fn(&Database) -> String,
    /// Whether the second database is what a file of the first reads back as.
    is_same: fn(&Database, &Database) -> bool,
    /// What such a file does not hold.
    lacks: &'static str,
    /// What a file with tasks has.
    has: &'static str,
    /// Whether every process writes a file of its own, `NAME.RANK.EXTENSION`.
    is_of_ranks: bool,
}

pub(super) const FORMATS: &[Format] = &[
    Format {
        extension: "graph",
        help: "METIS.",
        read: metis_format::read,
        write: metis_format::write,
        is_same: metis_format::is_same,
        lacks: "PEs, numbers of messages, which way bytes go, parts of nanoseconds of loads, or sizes of objects \
                if one is unknown",
        has: "a header `vertices edges`, and a line for each vertex",
        is_of_ranks: false,
    },
    Format {
        extension: "mtx",
        help: "Matrix Market: bytes from the task of the row to that of the column.",
        read: matrix_market::read,
        write: matrix_market::write,
        is_same: is_same_graph,
        lacks: "PEs, loads, sizes of objects, or numbers of messages",
        has: "the numbers of rows, columns and entries",
        is_of_ranks: false,
    },
    Format {
        extension: "csv",
        help: "Lines of src,dst,bytes[,messages].",
        read: csv::read,
        write: csv::write,
        is_same: is_same_graph,
        lacks: "PEs, loads or sizes of objects",
        has: "lines such as `0,1,4096`",
        is_of_ranks: false,
    },
    Format {
        extension: "grf",
        help: "Scotch.",
        read: scotch_format::read,
        write: scotch_format::write,
        is_same: scotch_format::is_same,
        lacks: "PEs, numbers of messages, which way bytes go, sizes of objects, or the unit of loads (seconds if all \
                are whole, else nanoseconds, which read back as seconds)",
        has: "the version 0, and the number of vertices",
        is_of_ranks: false,
    },
    Format {
        extension: "mat",
        help: "A square matrix as TreeMatch takes it: a line per task, what it sends to each.",
        read: dense::read,
        write: dense::write,
        is_same: is_same_graph,
        lacks: "PEs, loads, sizes of objects, or numbers of messages",
        has: "a line of numbers for each task",
        is_of_ranks: false,
    },
    Format {
        extension: "prof",
        help: "What Open MPI's monitoring says was sent; of NAME.0.prof, also the files of the other ranks.",
        read: monitoring::read,
        write: monitoring::write,
        is_same: monitoring::is_same,
        lacks: "PEs, loads or sizes of objects",
        has: "lines such as `I 0 1 4096 bytes 8 msgs sent`; run with --mca pml_monitoring_enable 2 and --mca \
              pml_monitoring_enable_output 3",
        is_of_ranks: true,
    },
];

/// The task graph in a file of that kind.
///
/// # Errors
/// When it cannot be read, is not of that kind, or has no task.
pub(super) fn read(path: &Path, format: &Format) -> Result<Database, GraphError> {
    let database = read_all(path, format)?;
    if database.objects.is_empty() {
        let reason = format!("there is no task in it; expected {}", format.has);
        return Err(GraphError::Content { path: path.into(), line: 1, reason });
    }
    Ok(database)
}

/// The task graph in a file of that kind, or in those of all ranks beside it.
fn read_all(path: &Path, format: &Format) -> Result<Database, GraphError> {
    if !format.is_of_ranks {
        return read_one(path, format);
    }
    let ranks = files::of_ranks(path).map_err(|source| GraphError::Read { path: path.into(), source })?;
    let Some(ranks) = ranks else { return read_one(path, format) };
    let (mut edges, mut vertices, mut is_empty) = (Vec::new(), ranks.len(), true);
    let files = ranks.len();
    for path in ranks {
        let database = read_one(&path, format)?;
        is_empty &= database.objects.is_empty();
        // One file may hold all ranks.
        if files > 1 && database.objects.len() > files {
            let reason =
                format!("it names rank {}, and there is no file of that rank", database.objects.len() - 1);
            return Err(GraphError::Content { path, line: 1, reason });
        }
        vertices = vertices.max(database.objects.len());
        edges.extend(database.edges);
    }
    // A rank that sends nothing has no line; but if none has any, nothing was recorded.
    let mut database = tasks(if is_empty { 0 } else { vertices });
    database.edges =
        merge(edges).map_err(|reason| GraphError::Content { path: path.into(), line: 1, reason })?;
    Ok(database)
}

/// The task graph in one file.
fn read_one(path: &Path, format: &Format) -> Result<Database, GraphError> {
    let content = |(line, reason)| GraphError::Content { path: path.into(), line, reason };
    let text = files::text(path).map_err(|unread| GraphError::unread(path, unread))?;
    (format.read)(&text).map_err(content)
}

/// The kind of graph file that the name of a file says it is; `None` for a database.
pub(super) fn format(path: &Path) -> Option<&'static Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    FORMATS.iter().find(|format| format.extension == extension)
}

/// The kind of graph file that the name of a file must say it is.
fn form(path: &Path) -> Result<&'static Format, GraphError> {
    let reason = || format!("the name of a task graph ends in {}", extensions());
    format(path).ok_or_else(|| GraphError::Spec { spec: path.display().to_string(), reason: reason() })
}

/// What the names of task graphs end in, as in `.graph, .mtx or .csv`.
pub(crate) fn extensions() -> String {
    let all: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.extension)).collect();
    all.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// Whether a file of that name holds a task graph and is no database.
pub fn is_graph_file(path: &Path) -> bool {
    format(path).is_some()
}

/// Writes a task graph at `path`, in the form its name says; returns what files of that form do not hold
/// of a database, as a phrase.
///
/// Edges that end at a PE are left out. The file appears whole or not at all.
///
/// # Errors
/// When the name says no form, or the file system refuses.
pub fn write(path: &Path, database: &Database) -> Result<&'static str, GraphError> {
    let format = form(path)?;
    let mut tasks = database.clone();
    tasks.edges.retain(|edge| ends(edge).is_some());
    let text = (format.write)(&tasks);
    write_whole(path, text.as_bytes())
        .map_err(|source| GraphError::Write { path: PathBuf::from(path), source })?;
    Ok(format.lacks)
}

/// Whether the file that [`write()`] made at `path` of `database` reads back as what it holds.
///
/// # Errors
/// As [`super::load`] and [`write()`].
pub fn reads_back(path: &Path, database: &Database) -> Result<bool, GraphError> {
    let format = form(path)?;
    Ok((format.is_same)(database, &read_one(path, format)?))
}

fn is_same_graph(database: &Database, again: &Database) -> bool {
    Graph::of(database) == Graph::of(again)
}

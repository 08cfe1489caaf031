//! File formats of task graphs, selected by the extension of the file name.

use std::path::{Path, PathBuf};

use super::{
    Graph, GraphError, csv, dense, ends, matrix_market, merge, metis_format, monitoring, scotch_format, tasks,
};
use crate::database::Database;
use crate::descriptor::Descriptor;
use crate::files::{self, AtLine, write_whole};
use crate::memory;

/// A file format.
pub(super) type Format = Descriptor<FileOf>;

/// Reading and writing a format; the name of the [`Format`] is the extension.
pub(super) struct FileOf {
    /// What the files are, in a few words.
    kind: &'static str,
    read: fn(&str) -> Result<Database, AtLine>,
    /// Formats a database as text; the database has no edges with PEs.
    write: fn(&Database) -> String,
    /// Whether the second database is the content of a file written from the first.
    is_same: fn(&Database, &Database) -> bool,
    /// Data that the format cannot represent.
    lacks: &'static str,
    /// Content that every file with tasks has.
    has: &'static str,
    /// Whether the file has a number for each pair of tasks.
    is_table: bool,
    /// Whether every process writes its own file, `NAME.RANK.EXTENSION`.
    has_file_per_rank: bool,
}

pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "graph",
        form: "",
        help: "METIS.",
        params: &[],
        item: FileOf {
            kind: "METIS",
            read: metis_format::read,
            write: metis_format::write,
            is_same: metis_format::is_same,
            lacks: "PEs, numbers of messages, the direction of bytes, fractions of nanoseconds of loads, or \
                    sizes of objects if one is unknown",
            has: "a header `vertices edges`, and a line for each vertex",
            is_table: false,
            has_file_per_rank: false,
        },
    },
    Format {
        name: "mtx",
        form: "",
        help: "Matrix Market: bytes from the task of the row to the task of the column.",
        params: &[],
        item: FileOf {
            kind: "Matrix Market",
            read: matrix_market::read,
            write: matrix_market::write,
            is_same: is_same_graph,
            lacks: "PEs, loads, sizes of objects, or numbers of messages",
            has: "the numbers of rows, columns and entries",
            is_table: false,
            has_file_per_rank: false,
        },
    },
    Format {
        name: "csv",
        form: "",
        help: "Lines of src,dst,bytes[,messages]; the first line may have these names.",
        params: &[],
        item: FileOf {
            kind: "edge list",
            read: csv::read,
            write: csv::write,
            is_same: is_same_graph,
            lacks: "PEs, loads or sizes of objects",
            has: "lines such as `0,1,4096`",
            is_table: false,
            has_file_per_rank: false,
        },
    },
    Format {
        name: "grf",
        form: "",
        help: "Scotch.",
        params: &[],
        item: FileOf {
            kind: "Scotch",
            read: scotch_format::read,
            write: scotch_format::write,
            is_same: scotch_format::is_same,
            lacks: "PEs, numbers of messages, the direction of bytes, sizes of objects, or the unit of loads \
                    (seconds if all are whole, otherwise nanoseconds, which are read back as seconds)",
            has: "the version 0, and the number of vertices",
            is_table: false,
            has_file_per_rank: false,
        },
    },
    Format {
        name: "mat",
        form: "",
        help: "A square matrix as for TreeMatch: a line per task with the bytes sent to each task.",
        params: &[],
        item: FileOf {
            kind: "square matrix",
            read: dense::read,
            write: dense::write,
            is_same: is_same_graph,
            lacks: "PEs, loads, sizes of objects, or numbers of messages",
            has: "a line of numbers for each task",
            is_table: true,
            has_file_per_rank: false,
        },
    },
    Format {
        name: "prof",
        form: "",
        help: "Messages recorded by Open MPI's monitoring; NAME.0.prof is read together with the files of \
               the other ranks.",
        params: &[],
        item: FileOf {
            kind: "Open MPI monitoring",
            read: monitoring::read,
            write: monitoring::write,
            is_same: monitoring::is_same,
            lacks: "PEs, loads or sizes of objects",
            has: "lines such as `I 0 1 4096 bytes 8 msgs sent`; run with --mca pml_monitoring_enable 2 and --mca \
                  pml_monitoring_enable_output 3",
            is_table: false,
            has_file_per_rank: true,
        },
    },
];

/// Reads a task graph in this format.
///
/// # Errors
/// If the file cannot be read, does not have this format, or has no task.
pub(super) fn read(path: &Path, format: &Format) -> Result<Database, GraphError> {
    let database = read_all(path, format)?;
    if database.objects.is_empty() {
        let reason = format!("the file has no task; expected {}", format.item.has);
        return Err(GraphError::Content { path: path.into(), line: 1, reason });
    }
    Ok(database)
}

/// Reads the task graph in a file, or in the files of all ranks.
fn read_all(path: &Path, format: &Format) -> Result<Database, GraphError> {
    if !format.item.has_file_per_rank {
        return read_one(path, format);
    }
    let ranks = files::of_ranks(path).map_err(|source| GraphError::Read { path: path.into(), source })?;
    let Some(ranks) = ranks else { return read_one(path, format) };
    let (mut edges, mut vertices, mut is_empty) = (Vec::new(), ranks.len(), true);
    let files = ranks.len();
    for path in ranks {
        let database = read_one(&path, format)?;
        is_empty &= database.objects.is_empty();
        // A single file may contain all ranks.
        if files > 1 && database.objects.len() > files {
            let reason = format!(
                "there is communication with rank {}, but no file of this rank",
                database.objects.len() - 1
            );
            return Err(GraphError::Content { path, line: 1, reason });
        }
        vertices = vertices.max(database.objects.len());
        edges.extend(database.edges);
    }
    // A rank that sends nothing has no line. If all files are empty, nothing was recorded.
    let mut database = tasks(if is_empty { 0 } else { vertices });
    database.edges =
        merge(edges).map_err(|reason| GraphError::Content { path: path.into(), line: 1, reason })?;
    Ok(database)
}

/// Reads the task graph in one file.
fn read_one(path: &Path, format: &Format) -> Result<Database, GraphError> {
    let content = |(line, reason)| GraphError::Content { path: path.into(), line, reason };
    let text = files::text(path).map_err(|unread| GraphError::unread(path, unread))?;
    (format.item.read)(&text).map_err(content)
}

/// The format of a file by its name; `None` for a database.
pub(super) fn format(path: &Path) -> Option<&'static Format> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    FORMATS.iter().find(|format| format.name == extension)
}

/// The format of a file by its name; other names are an error.
fn required_format(path: &Path) -> Result<&'static Format, GraphError> {
    let reason = || format!("the name of a task graph ends in {}", extensions());
    format(path).ok_or_else(|| GraphError::Spec { spec: path.display().to_string(), reason: reason() })
}

/// All formats: the extension of the files, and what they are in a few words, as in `mtx` and `Matrix Market`.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.item.kind))
}

/// The file name extensions of task graphs as a phrase: `.graph, .mtx or .csv`.
pub(crate) fn extensions() -> String {
    let all: Vec<String> = FORMATS.iter().map(|format| format!(".{}", format.name)).collect();
    all.split_last().map_or_else(String::new, |(last, others)| format!("{} or {last}", others.join(", ")))
}

/// Whether a file with this name contains a task graph and is not a database.
pub fn is_graph_file(path: &Path) -> bool {
    format(path).is_some()
}

/// Writes a task graph to `path` in the format of its name. Returns the data that the format cannot represent, as a
/// phrase.
///
/// Edges with PEs are dropped. The file is replaced atomically.
///
/// # Errors
/// If the name has no known extension, or the file system reports an error.
pub fn write(path: &Path, database: &Database) -> Result<&'static str, GraphError> {
    let format = required_format(path)?;
    if format.item.is_table {
        let objects = database.objects.len() as u64;
        let what = format!("a table of all pairs of {objects} tasks");
        memory::check(2 * objects.pow(2), &what, "choose another format")
            .map_err(|reason| GraphError::Spec { spec: path.display().to_string(), reason })?;
    }
    let mut tasks = database.clone();
    tasks.edges.retain(|edge| ends(edge).is_some());
    let text = (format.item.write)(&tasks);
    write_whole(path, text.as_bytes())
        .map_err(|source| GraphError::Write { path: PathBuf::from(path), source })?;
    Ok(format.item.lacks)
}

/// Reads the file that [`write()`] made at `path` from `database`, and compares it with the representable content.
///
/// # Errors
/// As for [`super::load`] and [`write()`].
pub fn reads_back(path: &Path, database: &Database) -> Result<bool, GraphError> {
    let format = required_format(path)?;
    Ok((format.item.is_same)(database, &read_one(path, format)?))
}

fn is_same_graph(database: &Database, again: &Database) -> bool {
    Graph::of(database) == Graph::of(again)
}

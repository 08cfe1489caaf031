//! `spmv`: the communication of a parallel sparse matrix-vector multiplication.
//!
//! The workload of J. Wu, X. Xiong, Z. Lan ("Hierarchical task mapping for parallel applications on supercomputers", J.
//! Supercomput. 71, 2015, section 5.1.2): METIS partitions the rows of a matrix into one part per process. A process
//! also owns the vector entries with the indices of its rows. It needs the vector entries of all columns in which its
//! rows have matrix entries. It receives each of these vector entries once, 8 bytes each, from the process that owns
//! it.
//!
//! METIS uses its default settings: k-way partitioning, rows of equal weight, and parts up to 3 % above the average.

use equipoise_model::database::{Database, Edge, End};
use equipoise_model::descriptor::split;
use equipoise_model::graph::making::{Generator, Make, Refusal};
use equipoise_model::graph::{Graph, MAX_VERTICES, Matrix, tasks};

use crate::partition::metis;
use equipoise_model::table::count;

/// The generator `spmv`.
pub const GENERATOR: Generator = Generator {
    name: "spmv",
    form: "spmv:64,kkt:12",
    help: "Sparse matrix-vector multiplication: METIS partitions the matrix (FILE.mtx, kkt:, fem:, or any other task \
           graph) into one part per process; processes send each other the vector entries they need, 8 bytes each.",
    params: &[],
    item: Make::Text(make),
};

/// Bytes of a vector entry.
const ENTRY_BYTES: u64 = 8;

/// Allowed imbalance of METIS: max/avg - 1.
const IMBALANCE: f64 = 0.03;

/// The task graph of `PROCESSES,MATRIX`.
fn make(text: &str) -> Result<Database, Refusal> {
    let Some((number, matrix)) = text.split_once(',') else {
        return Err("expected a number of processes, then a matrix, as in 64,kkt:12 or 64,FILE.mtx"
            .to_string()
            .into());
    };
    let processes: usize =
        number.parse().ok().filter(|processes| (1..=MAX_VERTICES).contains(processes)).ok_or_else(|| {
            format!("expected a number of processes, then a matrix, as in 64,kkt:12; found `{number}`")
        })?;
    if matrix.contains(':') && split(matrix).0 == GENERATOR.name {
        return Err("`spmv:` is not a matrix; name the matrix to multiply, as in 64,kkt:12"
            .to_string()
            .into());
    }
    let mut matrix = Matrix::load(matrix)?;
    if matrix.rows < processes {
        let (rows, processes) = (count(matrix.rows as u64, "row"), count(processes as u64, "process"));
        return Err(format!("the matrix has {rows}, too few for {processes}; use fewer processes").into());
    }
    let graph = matrix.graph();
    if matrix.is_symmetric {
        // The entries are no longer needed, because the graph contains them. METIS needs the memory: nlpkkt120 has 47
        // million entries.
        matrix.entries = Vec::new();
    }
    let ones = vec![1; matrix.rows];
    let part_of = metis::partition(&graph, &ones, processes, IMBALANCE, metis::Method::Kway, 0)
        .map_err(|error| error.to_string())?;
    let mut database = tasks(processes);
    database.edges = volumes(&matrix, &graph, &part_of, processes);
    Ok(database)
}

/// The messages between parts: for every column, the part that owns the vector entry sends it to the parts that have a
/// matrix entry in this column.
fn volumes(matrix: &Matrix, graph: &Graph, part_of: &[u32], parts: usize) -> Vec<Edge> {
    let columns = (!matrix.is_symmetric).then(|| by_column(matrix));
    let (offsets, rows) = match &columns {
        Some((offsets, rows)) => (offsets.as_slice(), rows.as_slice()),
        None => (graph.rows().0, graph.rows().1),
    };
    let mut members = vec![Vec::new(); parts];
    part_of.iter().zip(0u32..).for_each(|(&part, column)| members[part as usize].push(column));
    let (mut edges, mut entries, mut last) = (Vec::new(), vec![0u64; parts], vec![u32::MAX; parts]);
    for (from, columns) in members.iter().enumerate() {
        let mut receivers = Vec::new();
        for &column in columns {
            for &row in &rows[offsets[column as usize]..offsets[column as usize + 1]] {
                let to = part_of[row as usize] as usize;
                if to != from && last[to] != column {
                    last[to] = column;
                    if entries[to] == 0 {
                        receivers.push(to);
                    }
                    entries[to] += 1;
                }
            }
        }
        receivers.sort_unstable();
        for to in receivers {
            let bytes = ENTRY_BYTES * std::mem::take(&mut entries[to]);
            let (from, to) = (End::Object(from as u32), End::Object(to as u32));
            edges.push(Edge { from, to, messages: 1, bytes });
        }
    }
    edges
}

/// The matrix by columns: the offset of each column, and the rows of its entries.
fn by_column(matrix: &Matrix) -> (Vec<usize>, Vec<u32>) {
    let mut offsets = vec![0usize; matrix.rows + 1];
    matrix.entries.iter().for_each(|&(_, column)| offsets[column as usize + 1] += 1);
    for column in 0..matrix.rows {
        offsets[column + 1] += offsets[column];
    }
    let (mut next, mut rows) = (offsets.clone(), vec![0; matrix.entries.len()]);
    for &(row, column) in &matrix.entries {
        rows[next[column as usize]] = row;
        next[column as usize] += 1;
    }
    (offsets, rows)
}

#[cfg(test)]
mod tests {
    use equipoise_model::fault::{Classified as _, Fault};
    use equipoise_model::graph::{GraphError, load_steps};

    use super::*;

    fn load(spec: &str) -> Result<Database, GraphError> {
        Ok(load_steps(spec, &[&GENERATOR])?.steps.swap_remove(0))
    }

    /// The volumes as `sender>receiver:bytes`.
    fn described(matrix: &Matrix, part_of: &[u32], parts: usize) -> String {
        let graph = matrix.graph();
        let name = |end| match end {
            End::Object(part) => part,
            End::Pe(pe) => panic!("PE {pe} is not a part"),
        };
        let edge = |edge: Edge| format!("{}>{}:{}", name(edge.from), name(edge.to), edge.bytes);
        volumes(matrix, &graph, part_of, parts).into_iter().map(edge).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_vector_entry_is_sent_once_to_every_part_that_needs_it() {
        // Rows 0 and 1 of part 0 need entries 2 and 3 of part 1, entry 2 both; row 4 of part 2 needs entry 0.
        let entries = vec![(0, 1), (0, 2), (1, 2), (1, 3), (4, 0)];
        let matrix = |is_symmetric| Matrix { rows: 5, entries: entries.clone(), is_symmetric };
        let part_of = [0, 0, 1, 1, 2];
        assert_eq!(described(&matrix(false), &part_of, 3), "0>2:8 1>0:16");
        // The mirrored entries add messages: vector entries 0 and 1 go to part 1, and entry 4 goes to part 0.
        assert_eq!(described(&matrix(true), &part_of, 3), "0>1:16 0>2:8 1>0:16 2>0:8");
    }

    #[test]
    fn the_bytes_match_a_count_of_all_pairs() {
        let database = load("spmv:12,fem:8x4x4").expect("a task graph");
        assert_eq!(database.check(), Ok(()));
        let matrix = Matrix::load("fem:8x4x4").expect("a matrix");
        let graph = Graph::new(matrix.rows, matrix.entries.iter().map(|&(a, b)| (a, b, 1)));
        let part_of = metis::partition(&graph, &vec![1; matrix.rows], 12, IMBALANCE, metis::Method::Kway, 0)
            .expect("METIS serves this");
        let mut needs: Vec<(u32, u32)> = Vec::new();
        for &(row, column) in &matrix.entries {
            for (row, column) in [(row, column), (column, row)] {
                needs.push((part_of[row as usize], column));
            }
        }
        needs.retain(|&(part, column)| part_of[column as usize] != part);
        needs.sort_unstable();
        needs.dedup();
        let bytes: u64 = database.edges.iter().map(|edge| edge.bytes).sum();
        assert_eq!(bytes, 8 * needs.len() as u64);
        // With a symmetric matrix, all exchanges are in both directions.
        let ends: Vec<_> = database.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert!(ends.iter().all(|&(from, to)| ends.contains(&(to, from))));
    }

    #[test]
    fn matrices_with_any_type_of_values_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let load = |name: &str, text: &str, processes: usize| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            load(&format!("spmv:{processes},{}", path.display()))
        };
        let bytes = |database: Database| database.edges.iter().map(|edge| edge.bytes).collect::<Vec<_>>();
        let real = "%%MatrixMarket matrix coordinate real symmetric\n% -1 is no bytes\n3 3 4\n1 1 2.5\n2 1 -1e-3\n3 2 -1\n3 3 2\n";
        assert_eq!(bytes(load("a.mtx", real, 3).expect("a matrix")), [8, 8, 8, 8]);
        let general = "%%MatrixMarket matrix coordinate complex general\n3 3 2\n2 1 1 -1\n1 3 0 1\n";
        assert_eq!(bytes(load("b.MTX", general, 3).expect("a matrix")), [8, 8]);
        let error = |text: &str, processes| load("c.mtx", text, processes).expect_err(text);
        let truncated = error("%%MatrixMarket matrix coordinate real general\n3 3 2\n2 1 1\n", 2);
        assert!(
            truncated.to_string().contains("c.mtx:2: the size line says 2 entries, but the file has 1"),
            "{truncated}"
        );
        assert!(truncated.fault() == Fault::Input);
        let word = error("%%MatrixMarket matrix coordinate real general\n3 3 1\n2 x 1\n", 2).to_string();
        assert!(word.contains("c.mtx:3: expected a row or column from 1 to 3, found `x`"), "{word}");
        let few = error("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n2 1\n", 4);
        assert!(
            few.to_string().contains("the matrix has 3 rows, too few for 4 processes; use fewer processes"),
            "{few}"
        );
        assert!(few.fault() == Fault::Usage);
    }

    #[test]
    fn invalid_specs_are_refused() {
        let error = |spec: &str| load(spec).expect_err(spec);
        for (spec, expected) in [
            ("spmv:64", "then a matrix, as in 64,kkt:12"),
            ("spmv:x,kkt:4", "found `x`"),
            ("spmv:0,kkt:4", "found `0`"),
            ("spmv:2,spmv:4,kkt:4", "`spmv:` is not a matrix; name the matrix to multiply"),
            ("spmv:2,kkt:0", "a side has 1 to"),
            ("spmv:2,kkt:4,size=3", "kkt has no parameter `size`"),
            ("spmv:2,none.mtx", "cannot read the task graph `none.mtx`"),
            ("spmv:2,kk:4", "there is no generator"),
        ] {
            let error = error(spec);
            assert!(error.to_string().contains(expected) && error.fault() == Fault::Usage, "{spec}: {error}");
        }
    }
}

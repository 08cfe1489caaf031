//! `spmv`: what processes exchange that multiply a sparse matrix by a vector.
//!
//! The workload of J. Wu, X. Xiong, Z. Lan ("Hierarchical task mapping for parallel applications on supercomputers",
//! J. Supercomput. 71, 2015, section 5.1.2): METIS cuts the rows of a matrix into as many parts as there are
//! processes, each of which has the entries of the vector in its rows, too. To multiply, a process needs the entries
//! in whose columns its rows have something; what one process sends another are the different ones of these that
//! it has, 8 bytes each.
//!
//! METIS cuts as it does for whoever calls it so: into all parts at once, with rows that count the same and parts
//! up to 3 % above their average.

use super::generate::{Arguments, Generator, Make, Pattern, Refusal, parse_arguments};
use super::{Graph, GraphError, edge, elements, files, kkt, load, matrix_market, tasks};
use crate::database::{Database, Edge};
use crate::partition::metis;

/// The generator of these exchanges.
pub(super) const GENERATOR: Generator = Generator {
    name: "spmv",
    form: "spmv:64,kkt:12",
    help: "Processes that multiply a matrix by a vector: METIS cuts the matrix (a FILE.mtx, kkt:, fem:, or any other \
           task graph) into as many parts, which send each other the entries they need, 8 bytes each.",
    keys: &[],
    make: Make::Text(make),
};

/// The bytes of an entry of the vector.
const ENTRY_BYTES: u64 = 8;

/// What METIS may leave above the average.
const IMBALANCE: f64 = 0.03;

/// The places of a square matrix that are not zero, off the diagonal.
pub(super) struct Places {
    /// How many rows, and columns, it has.
    pub rows: usize,
    /// Row and column.
    pub entries: Vec<(u32, u32)>,
    /// Whether every entry stands for the one on the other side of the diagonal, too.
    pub is_symmetric: bool,
}

/// The exchange of `PROCESSES,MATRIX`.
fn make(text: &str) -> Result<Database, Refusal> {
    let Some((number, matrix)) = text.split_once(',') else {
        return Err("expected a number of processes, then a matrix, as in 64,kkt:12 or 64,FILE.mtx"
            .to_string()
            .into());
    };
    let processes: usize =
        number.parse().ok().filter(|processes| (1..=super::MAX_VERTICES).contains(processes)).ok_or_else(
            || format!("expected a number of processes, then a matrix, as in 64,kkt:12; found `{number}`"),
        )?;
    let mut matrix = places(matrix)?;
    if matrix.rows < processes {
        return Err(
            format!("the matrix has {} rows for {processes} processes; take fewer", matrix.rows).into()
        );
    }
    let graph = Graph::of_places(matrix.rows, &matrix.entries);
    if matrix.is_symmetric {
        // The graph has them all, and METIS needs the room: those of nlpkkt120 are 47 million.
        matrix.entries = Vec::new();
    }
    let ones = vec![1; matrix.rows];
    let part_of = metis::partition(&graph, &ones, processes, IMBALANCE, metis::Method::Kway, 0)
        .map_err(|error| error.to_string())?;
    let mut database = tasks(processes);
    database.edges = volumes(&matrix, &graph, &part_of, processes);
    Ok(database)
}

/// The matrix that a spec or a file names.
fn places(spec: &str) -> Result<Places, Refusal> {
    if let Some((name, rest)) = spec.split_once(':') {
        // Those whose entries take less room than the edges of a task graph.
        for (generator, pattern) in [
            (kkt::GENERATOR, kkt::pattern as fn(&Arguments) -> Result<Pattern, String>),
            (elements::GENERATOR, elements::pattern),
        ] {
            if generator.name == name {
                let Pattern { vertices, pairs, .. } =
                    parse_arguments(&generator, rest).and_then(|rest| pattern(&rest))?;
                return Ok(Places { rows: vertices, entries: pairs, is_symmetric: true });
            }
        }
        if name == GENERATOR.name {
            return Err("a matrix is no exchange; name what is multiplied".to_string().into());
        }
    }
    if spec.to_lowercase().ends_with(".mtx") {
        let path = std::path::Path::new(spec);
        let text = files::text(path).map_err(|unread| GraphError::unread(path, unread))?;
        let places = matrix_market::places(&text);
        return Ok(places.map_err(|(line, reason)| GraphError::Content {
            path: path.into(),
            line,
            reason,
        })?);
    }
    let graph = Graph::of(&load(spec)?);
    let entries = graph.pairs().map(|(a, b, _)| (a, b)).collect();
    Ok(Places { rows: graph.vertices(), entries, is_symmetric: true })
}

/// What parts send each other: for every column the parts that have an entry in it get that of the vector from
/// the part that has it.
fn volumes(matrix: &Places, graph: &Graph, part_of: &[u32], parts: usize) -> Vec<Edge> {
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
            edges.push(edge(from as u32, to as u32, 1, ENTRY_BYTES * std::mem::take(&mut entries[to])));
        }
    }
    edges
}

/// The rows of every column's entries, and where those of each begin.
fn by_column(matrix: &Places) -> (Vec<usize>, Vec<u32>) {
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
    use super::*;
    use crate::database::End;

    /// The volumes as `sender>receiver:bytes`.
    fn told(matrix: &Places, part_of: &[u32], parts: usize) -> String {
        let graph = Graph::of_places(matrix.rows, &matrix.entries);
        let name = |end| match end {
            End::Object(part) => part,
            End::Pe(pe) => panic!("{pe} is no part"),
        };
        let edge = |edge: Edge| format!("{}>{}:{}", name(edge.from), name(edge.to), edge.bytes);
        volumes(matrix, &graph, part_of, parts).into_iter().map(edge).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn an_entry_of_the_vector_goes_once_to_every_part_that_needs_it() {
        // Rows 0 and 1 of part 0 need entries 2 and 3 of part 1, entry 2 both; row 4 of part 2 needs entry 0.
        let entries = vec![(0, 1), (0, 2), (1, 2), (1, 3), (4, 0)];
        let matrix = |is_symmetric| Places { rows: 5, entries: entries.clone(), is_symmetric };
        let part_of = [0, 0, 1, 1, 2];
        assert_eq!(told(&matrix(false), &part_of, 3), "0>2:8 1>0:16");
        // And the other way round: entries 0 and 1 to part 1, 4 to part 0.
        assert_eq!(told(&matrix(true), &part_of, 3), "0>1:16 0>2:8 1>0:16 2>0:8");
    }

    #[test]
    fn as_many_bytes_go_as_a_count_of_every_pair_says() {
        let database = load("spmv:12,fem:8x4x4").expect("an exchange");
        assert_eq!(database.check(), Ok(()));
        let matrix = places("fem:8x4x4").expect("a matrix");
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
        // A symmetric matrix has neighbors that need each other.
        let ends: Vec<_> = database.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert!(ends.iter().all(|&(from, to)| ends.contains(&(to, from))));
    }

    #[test]
    fn matrices_are_read_whatever_their_values_are() {
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
            truncated.to_string().contains("c.mtx:2: the sizes promise 2 entries, and there are 1"),
            "{truncated}"
        );
        assert!(!truncated.is_of_the_request());
        let word = error("%%MatrixMarket matrix coordinate real general\n3 3 1\n2 x 1\n", 2).to_string();
        assert!(word.contains("c.mtx:3: expected a row or column from 1 to 3, found `x`"), "{word}");
        let few = error("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n2 1\n", 4);
        assert!(few.to_string().contains("3 rows for 4 processes; take fewer"), "{few}");
        assert!(few.is_of_the_request());
    }

    #[test]
    fn what_is_no_exchange_is_said() {
        let error = |spec: &str| load(spec).expect_err(spec);
        for (spec, expected) in [
            ("spmv:64", "then a matrix, as in 64,kkt:12"),
            ("spmv:x,kkt:4", "found `x`"),
            ("spmv:0,kkt:4", "found `0`"),
            ("spmv:2,spmv:4,kkt:4", "name what is multiplied"),
            ("spmv:2,kkt:0", "a side has 1 to"),
            ("spmv:2,kkt:4,size=3", "it takes no `size`"),
            ("spmv:2,none.mtx", "cannot read the task graph `none.mtx`"),
            ("spmv:2,kk:4", "there is no generator"),
        ] {
            let error = error(spec);
            assert!(error.to_string().contains(expected) && error.is_of_the_request(), "{spec}: {error}");
        }
    }
}

//! `matrix:FILE`: a machine of which only the distances are known.
//!
//! A line per PE with its distances to all PEs, whole numbers with blanks or commas between them; the
//! diagonal is 0 and the matrix symmetric. Empty lines and lines that begin with `#` do not count. Every
//! PE has a link to every other, as long as they are apart.

use std::sync::Arc;

use super::spec::from_file;
use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, MAX_TABLE_PES, Topology};

/// `matrix:FILE` for the table of machines.
pub const KIND: Kind = Kind {
    name: "matrix",
    form: "matrix:FILE",
    help: "Distances from a file, a line per PE with those to all PEs; a link for each pair.",
    parse: |name| {
        if name.is_empty() {
            return Err("expected the name of a file with a line of distances per PE".into());
        }
        Ok(Arc::new(from_file("distances", name, |text| DistanceMatrix::read(name, text))?))
    },
};

/// A machine given by its distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceMatrix {
    /// The spec that reads it again.
    spec: String,
    pes: usize,
    /// Rows one after the other.
    distances: Vec<u32>,
}

impl DistanceMatrix {
    /// The machine of a file `source` with this text.
    ///
    /// # Errors
    /// When the text is not a symmetric matrix of distances for 1 to [`MAX_TABLE_PES`] PEs; the sentence
    /// begins with the line at fault.
    pub fn read(source: &str, text: &str) -> Result<Self, String> {
        let lines = text.lines().zip(1..).filter(|(line, _)| {
            let line = line.trim_start();
            !line.is_empty() && !line.starts_with('#')
        });
        let (mut distances, mut line_of, mut pes) = (Vec::new(), Vec::<usize>::new(), 0);
        for (line, number) in lines {
            let words = line.split(|letter: char| letter == ',' || letter.is_ascii_whitespace());
            let before = distances.len();
            for word in words.filter(|word| !word.is_empty()) {
                let distance = word.parse::<u32>().map_err(|_| {
                    format!("line {number}: expected a distance, a whole number below 2^32, found `{word}`")
                })?;
                distances.push(distance);
            }
            let found = distances.len() - before;
            if line_of.is_empty() {
                pes = found;
            }
            if pes > MAX_TABLE_PES {
                return Err(format!(
                    "line {number}: there are {pes} distances, and a matrix has at most {MAX_TABLE_PES} PEs"
                ));
            }
            if found != pes {
                return Err(format!(
                    "line {number}: there are {found} distances, and the first line has {pes}"
                ));
            }
            if line_of.len() == pes {
                return Err(format!(
                    "line {number}: the lines have {pes} distances, and this is one line more"
                ));
            }
            line_of.push(number);
        }
        if line_of.len() < pes || pes == 0 {
            let (found, last) = (line_of.len(), line_of.last().map_or(1, |&line| line));
            return Err(format!(
                "line {last}: there are {found} lines of {pes} distances; give a line for each PE"
            ));
        }
        let matrix = DistanceMatrix { spec: format!("matrix:{source}"), pes, distances };
        matrix.check(&line_of)?;
        Ok(matrix)
    }

    /// The machine that `spec` reads again, with these distances, rows one after the other: symmetric, and 0 in
    /// the diagonal only.
    pub(super) fn of(spec: &str, pes: usize, distances: Vec<u32>) -> Self {
        debug_assert_eq!(distances.len(), pes * pes);
        DistanceMatrix { spec: spec.to_string(), pes, distances }
    }

    /// Whether these are distances; if not, which line says so.
    fn check(&self, line_of: &[usize]) -> Result<(), String> {
        for a in 0..self.pes {
            let line = line_of[a];
            let itself = self.distance(a, a);
            if itself != 0 {
                return Err(format!("line {line}: the distance of PE {a} to itself is 0, found {itself}"));
            }
            for (b, other) in line_of[..a].iter().enumerate() {
                let (there, back) = (self.distance(a, b), self.distance(b, a));
                if there != back {
                    return Err(format!(
                        "line {line}: PE {a} is {there} from PE {b}, and line {other} says {back}; a distance is \
                         the same both ways"
                    ));
                }
                if there == 0 {
                    return Err(format!(
                        "line {line}: the distance of PE {a} to PE {b} is at least 1, found 0"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl Topology for DistanceMatrix {
    fn spec(&self) -> String {
        self.spec.clone()
    }

    fn pes(&self) -> usize {
        self.pes
    }

    fn distance(&self, a: usize, b: usize) -> u32 {
        self.distances[a * self.pes + b]
    }

    fn distances_from(&self, a: usize, row: &mut [u32]) {
        row.copy_from_slice(&self.distances[a * self.pes..][..self.pes]);
    }

    fn diameter(&self) -> u32 {
        self.distances.iter().copied().max().unwrap_or(0)
    }

    fn links(&self) -> usize {
        self.pes * (self.pes - 1)
    }

    fn link(&self, id: usize) -> Link {
        let (from, rank) = (id / (self.pes - 1), id % (self.pes - 1));
        let to = rank + usize::from(rank >= from);
        Link {
            name: format!("{from} -> {to}"),
            bandwidth: DEFAULT_BANDWIDTH,
            latency_seconds: DEFAULT_LATENCY_SECONDS,
            length: self.distance(from, to),
        }
    }

    fn route(&self, a: usize, b: usize, links: &mut Vec<usize>) {
        if a != b {
            links.push(a * (self.pes - 1) + b - usize::from(b > a));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::super::tests::{check, row};

    #[test]
    fn a_matrix_is_what_it_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("distances.txt");
        let machine = |text: &str| {
            std::fs::write(&file, text).expect("a file");
            parse(&format!("matrix:{}", file.display()))
        };
        let distances = machine("# three\n0 4,7\n4 0  1\n\n7, 1, 0\n").expect("a matrix");
        check(&*distances);
        assert_eq!((row(&*distances, 0), distances.links()), (vec![0, 4, 7], 6));
        check(&*machine("0").expect("one PE"));
        for (text, expected) in [
            ("", "line 1: there are 0 lines of 0 distances; give a line for each PE"),
            ("0 1\n\n", "line 1: there are 1 lines of 2 distances"),
            ("0 1\n1 0 2\n", "line 2: there are 3 distances, and the first line has 2"),
            ("0 1\n1 0\n1 0\n", "line 3: the lines have 2 distances, and this is one line more"),
            (
                "0 1\n\n2 0\n",
                "line 3: PE 1 is 2 from PE 0, and line 1 says 1; a distance is the same both ways",
            ),
            ("0 1\n1 3\n", "line 2: the distance of PE 1 to itself is 0, found 3"),
            ("0 0\n0 0\n", "line 2: the distance of PE 1 to PE 0 is at least 1, found 0"),
            ("0 1.5\n1.5 0\n", "line 1: expected a distance, a whole number below 2^32, found `1.5`"),
        ] {
            let error = machine(text).err().expect(expected).to_string();
            assert!(
                error.contains(&format!("distances.txt: {expected}")),
                "`{error}` does not contain `{expected}`"
            );
        }
    }
}

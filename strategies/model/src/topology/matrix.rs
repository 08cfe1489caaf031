//! `matrix:FILE`: a machine given by its distances only.
//!
//! A line per PE with its distances to all PEs, integers separated by blanks or commas. The diagonal is 0, and the
//! matrix is symmetric. The number of PEs may precede it, in a line of its own. Empty lines and lines that begin with `#` are ignored. There is a link between any two PEs,
//! whose length is their distance.

use std::sync::Arc;

use super::error::from_file;
use super::{DEFAULT_BANDWIDTH, DEFAULT_LATENCY_SECONDS, Kind, Link, MAX_TABLE_PES, Topology};
use crate::cells::numbers;
use crate::table::count;

/// The entry of `matrix:FILE` in the list of machines.
pub const KIND: Kind = Kind {
    name: "matrix",
    form: "matrix:FILE",
    help: "Distances from a file: a line per PE with the distances to all PEs. There is a link for each pair.",
    params: &[],
    item: |name| {
        if name.is_empty() {
            return Err("expected the name of a file with a line of distances per PE".into());
        }
        Ok(Arc::new(from_file("distances", name, |text| DistanceMatrix::read(name, text))?))
    },
};

/// A machine given by its distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistanceMatrix {
    /// The spec of this machine.
    spec: String,
    pes: usize,
    /// All rows, concatenated.
    distances: Vec<u32>,
}

impl DistanceMatrix {
    /// Parses the text of file `source`.
    ///
    /// # Errors
    /// If the text is not a symmetric matrix of distances for 1 to [`MAX_TABLE_PES`] PEs. The error begins with the
    /// line.
    pub fn read(source: &str, text: &str) -> Result<Self, String> {
        let is_content = |line: &str| !line.trim_start().is_empty() && !line.trim_start().starts_with('#');
        let mut lines = text.lines().zip(1..).filter(|(line, _)| is_content(line));
        let mut ahead = lines.clone();
        let announced = match (ahead.next(), ahead.next()) {
            // A line `0` is the row of PE 0 on a machine of one PE.
            (Some((line, _)), Some(_)) => line.trim().parse::<usize>().ok().filter(|&pes| pes > 0),
            _ => None,
        };
        if announced.is_some() {
            lines.next();
        }
        let (mut distances, mut line_of, mut pes) = (Vec::new(), Vec::<usize>::new(), 0);
        for (line, number) in lines {
            let before = distances.len();
            for word in numbers(line).map_err(|reason| format!("line {number}: {reason}"))? {
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
                    "line {number}: there are {pes} distances, but a matrix has at most {MAX_TABLE_PES} PEs"
                ));
            }
            if found != pes {
                return Err(format!(
                    "line {number}: this line has {}, but the first line has {pes}",
                    count(found as u64, "distance")
                ));
            }
            if line_of.len() == pes {
                return Err(format!(
                    "line {number}: there are more lines than the first line has distances ({pes})"
                ));
            }
            line_of.push(number);
        }
        if line_of.len() < pes || pes == 0 {
            let (found, last) = (line_of.len(), line_of.last().map_or(1, |&line| line));
            return Err(format!(
                "line {last}: found {} of {}; give a line of distances for each PE",
                count(found as u64, "line"),
                count(pes as u64, "distance")
            ));
        }
        if let Some(announced) = announced.filter(|&announced| announced != pes) {
            return Err(format!(
                "the first line announces {}, but the matrix has {}; correct the first line",
                count(announced as u64, "PE"),
                count(pes as u64, "line")
            ));
        }
        let matrix = DistanceMatrix { spec: format!("matrix:{source}"), pes, distances };
        matrix.check(&line_of)?;
        Ok(matrix)
    }

    /// The machine with spec `spec` and these distances, as concatenated rows: symmetric, and 0 only on the diagonal.
    pub(super) fn of(spec: &str, pes: usize, distances: Vec<u32>) -> Self {
        debug_assert_eq!(distances.len(), pes * pes);
        DistanceMatrix { spec: spec.to_string(), pes, distances }
    }

    /// Checks the distances; errors name the line.
    fn check(&self, line_of: &[usize]) -> Result<(), String> {
        for a in 0..self.pes {
            let line = line_of[a];
            let itself = self.distance(a, a);
            if itself != 0 {
                return Err(format!(
                    "line {line}: the distance of PE {a} to itself must be 0, found {itself}"
                ));
            }
            for (b, other) in line_of[..a].iter().enumerate() {
                let (there, back) = (self.distance(a, b), self.distance(b, a));
                if there != back {
                    return Err(format!(
                        "line {line}: the distance of PE {a} to PE {b} is {there}, but {back} in line \
                        {other}; distances are symmetric"
                    ));
                }
                if there == 0 {
                    return Err(format!(
                        "line {line}: the distance of PE {a} to PE {b} must be at least 1, found 0"
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
    fn reads_distances_and_names_errors() {
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
        let announced = machine("3\n0 4 7\n4 0 1\n7 1 0\n").expect("the number of PEs, then a matrix");
        assert_eq!((announced.pes(), row(&*announced, 0)), (3, vec![0, 4, 7]));
        for (text, expected) in [
            ("", "line 1: found 0 lines of 0 distances; give a line of distances for each PE"),
            ("0 1\n\n", "line 1: found 1 line of 2 distances"),
            ("3\n0 1\n1 0\n", "the first line announces 3 PEs, but the matrix has 2 lines"),
            ("0 1\n1 0 2\n", "line 2: this line has 3 distances, but the first line has 2"),
            ("0 1\n1 0\n1 0\n", "line 3: there are more lines than the first line has distances (2)"),
            (
                "0 1\n\n2 0\n",
                "line 3: the distance of PE 1 to PE 0 is 2, but 1 in line 1; distances are symmetric",
            ),
            ("0 1\n1 3\n", "line 2: the distance of PE 1 to itself must be 0, found 3"),
            ("0 0\n0 0\n", "line 2: the distance of PE 1 to PE 0 must be at least 1, found 0"),
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

//! `FileLB:path=FILE`: the mapping a file gives, one PE per line in object order.
//!
//! Empty lines and lines that begin with `#` do not count. The file is read when the strategy is
//! chosen, so that a missing or broken one is reported before the program runs.

use std::path::Path;

use crate::registry::{Named, Param, Params};
use crate::strategy::check;
use crate::{Assignment, Database, Strategy, StrategyError, Topology};

/// `FileLB` for the registry.
pub const NAMED: Named = Named {
    name: "FileLB",
    aliases: &[],
    help: "The mapping a file gives: one PE per line, in object order. To try a mapping made elsewhere.",
    params: &[Param { key: "path", default: "", help: "the file (without `,` and `+` in its name)" }],
    needs_communication: false,
    make: |params: &mut Params| {
        let path: String = params.take("path")?;
        let mapping = Mapping::read(Path::new(&path)).map_err(|error| params.bad("path", &path, error))?;
        Ok(Box::new(FromFile { path, mapping }))
    },
};

/// A mapping file: the PE of every object, in object order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// The PE of every object.
    pub pe_of: Vec<u32>,
    /// The line of the file that says so, from 1.
    pub line_of: Vec<u32>,
}

/// A mapping file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MappingError {
    /// The file is missing or not text.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line that is not a PE.
    #[error("line {line}: expected one PE number, found `{text}`")]
    Line {
        /// The line, from 1.
        line: usize,
        /// What is written there.
        text: String,
    },
}

impl Mapping {
    /// The mapping in a file.
    ///
    /// # Errors
    /// When the file cannot be read or a line is not a PE number.
    pub fn read(path: &Path) -> Result<Self, MappingError> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// The mapping in the text of a file.
    ///
    /// # Errors
    /// At the first line that is not a PE number.
    pub fn parse(text: &str) -> Result<Self, MappingError> {
        let mut mapping = Mapping::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let error = || MappingError::Line { line: number + 1, text: line.chars().take(40).collect() };
            mapping.pe_of.push(line.parse().map_err(|_| error())?);
            mapping.line_of.push(number as u32 + 1);
        }
        Ok(mapping)
    }
}

/// The strategy that does what a file says.
#[derive(Clone, Debug)]
pub struct FromFile {
    /// The file's name, for messages.
    pub path: String,
    /// What it says.
    pub mapping: Mapping,
}

impl Strategy for FromFile {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        check(database, topology)?;
        self.place(database).map_err(|reason| StrategyError(format!("{}: {reason}", self.path)))
    }
}

impl FromFile {
    fn place(&self, database: &Database) -> Result<Assignment, String> {
        let (lines, objects) = (self.mapping.pe_of.len(), database.objects.len());
        if lines != objects {
            return Err(format!("it places {lines} objects, and there are {objects}; give one PE per line"));
        }
        for (index, (&pe, object)) in self.mapping.pe_of.iter().zip(&database.objects).enumerate() {
            let line = self.mapping.line_of[index];
            let pes = database.pes.len();
            let Some(record) = database.pes.get(pe as usize) else {
                return Err(format!("line {line}: there is no PE {pe}; PEs are 0 to {}", pes - 1));
            };
            if pe != object.pe && !object.migratable {
                let home = object.pe;
                return Err(format!(
                    "line {line}: object {index} is not migratable; it must stay on PE {home}"
                ));
            }
            if pe != object.pe && !record.available {
                return Err(format!("line {line}: PE {pe} takes no objects"));
            }
        }
        Ok(Assignment::new(self.mapping.pe_of.clone()))
    }
}

#[cfg(test)]
mod tests {
    use crate::registry;
    use crate::testing::{assign, database};

    /// What the answer is, or the message of the failure, for a file with this text.
    fn run(text: &str) -> Result<Vec<u32>, String> {
        let file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
        std::fs::write(file.path(), text).expect("a temporary file can be written");
        let mut database = database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
        database.objects[1].migratable = false;
        database.pes[2].available = false;
        let spec = format!("FileLB:path={}", file.path().display());
        registry::parse(&spec, &[]).map_err(|error| error.to_string())?;
        assign(&spec, &database).map(|answer| answer.pe_of).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = run(text).expect_err(expected);
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }

    #[test]
    fn the_file_says_where_objects_go() {
        assert_eq!(run("# a comment\n 1\n\n1\n0\n"), Ok(vec![1, 1, 0]));
        assert_eq!(run("0\n1\n2"), Ok(vec![0, 1, 2]), "staying on an unavailable PE is no move");
    }

    #[test]
    fn what_is_wrong_with_it_is_said_with_its_line() {
        check("0\n1\n# x\ntwo\n", "line 4: expected one PE number, found `two`");
        check("0\n1\n", "it places 2 objects, and there are 3");
        check("0\n\n1\n7\n", "line 4: there is no PE 7; PEs are 0 to 2");
        check("0\n0\n0\n", "line 2: object 1 is not migratable; it must stay on PE 1");
        check("2\n1\n0\n", "line 1: PE 2 takes no objects");
        let missing =
            registry::parse("FileLB:path=/nowhere/at/all", &[]).expect_err("no such file").to_string();
        assert!(missing.contains("/nowhere/at/all") && missing.contains("No such file"), "{missing}");
        let none = registry::parse("FileLB", &[]).expect_err("a path is needed").to_string();
        assert!(none.contains("FileLB:path=") && none.contains("must be given"), "{none}");
    }
}

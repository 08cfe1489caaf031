//! `FileLB:path=FILE`: the mapping a file gives, one PE per line in object order.
//!
//! The file ([`crate::assignment::mapping_file`]) is read when the strategy is chosen, so that a missing or
//! broken one is reported before the program runs.

use std::path::Path;

use crate::assignment::MappingFile;
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
        let mapping =
            MappingFile::read(Path::new(&path)).map_err(|error| params.bad("path", &path, error))?;
        Ok(Box::new(FromFile { mapping }))
    },
};

/// The strategy that does what a file says.
#[derive(Clone, Debug)]
pub struct FromFile {
    /// What it says.
    pub mapping: MappingFile,
}

impl Strategy for FromFile {
    fn assign(
        &self,
        database: &Database,
        topology: &dyn Topology,
        _: u64,
    ) -> Result<Assignment, StrategyError> {
        check(database, topology)?;
        self.mapping.assignment(database).map_err(|error| StrategyError::Data(error.to_string()))
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
        let database = database(3, &[(1.0, 0), (1.0, 1), (1.0, 2)]);
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
    }

    #[test]
    fn a_file_that_is_broken_or_missing_is_refused_before_the_program_runs() {
        let parse = |spec: &str| registry::parse(spec, &[]).expect_err(spec).to_string();
        check("0\n1\ntwo\n", "is not understood: the mapping `");
        check("0\n1\ntwo\n", "line 3: expected one PE number, found `two`");
        let missing = parse("FileLB:path=/nowhere/at/all");
        assert!(missing.contains("/nowhere/at/all") && missing.contains("No such file"), "{missing}");
        let none = parse("FileLB");
        assert!(none.contains("FileLB:path=") && none.contains("must be given"), "{none}");
    }

    #[test]
    fn a_file_that_does_not_fit_the_step_is_refused_at_it() {
        check("0\n1\n", "places 2 objects, and there are 3");
        check("0\n1\n3\n", "line 3: there is no PE 3; PEs are 0 to 2");
    }
}

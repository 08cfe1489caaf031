//! `FileLB:path=FILE`: applies the mapping of a file, one PE per line in object order.
//!
//! The file ([`equipoise_model::assignment::mapping_file`]) is read when the strategy is created, so that a missing or
//! malformed file is reported before the program runs.

use std::path::Path;

use equipoise_model::assignment::MappingFile;
use equipoise_model::params::{Param, Params};
use equipoise_model::{Assignment, Database, Topology};

use crate::descriptor::Recipe;
use crate::strategy::check;
use crate::{Strategy, StrategyError};
use equipoise_model::descriptor::Descriptor;

/// `FileLB` for the registry.
pub const NAMED: Descriptor<Recipe> = Descriptor {
    name: "FileLB",
    form: "",
    help: "Applies the mapping of a file: one PE per line, in object order. To try a mapping made elsewhere.",
    params: &[Param { key: "path", default: "", help: "the mapping file; no `,` or `+` in its name" }],
    item: Recipe {
        needs_communication: false,
        make: |params: &mut Params| {
            let path: String = params.take("path")?;
            let mapping = MappingFile::read(Path::new(&path))
                .map_err(|error| params.bad_file("path", &path, &error))?;
            Ok(Box::new(FromFile { mapping }))
        },
    },
};

/// The strategy that applies the mapping of a file.
#[derive(Clone, Debug)]
pub struct FromFile {
    /// The mapping.
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

    /// The PE of each object, or the error message, for a mapping file with this text.
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
    fn objects_go_to_the_pes_in_the_file() {
        assert_eq!(run("# a comment\n 1\n\n1\n0\n"), Ok(vec![1, 1, 0]));
    }

    #[test]
    fn a_malformed_or_missing_file_is_refused_before_the_program_runs() {
        let parse = |spec: &str| registry::parse(spec, &[]).expect_err(spec).to_string();
        check("0\n1\ntwo\n", "cannot be used: the mapping `");
        check("0\n1\ntwo\n", "line 3: expected one PE number, found `two`");
        let missing = parse("FileLB:path=/nowhere/at/all");
        assert!(missing.contains("/nowhere/at/all") && missing.contains("No such file"), "{missing}");
        let none = parse("FileLB");
        assert_eq!(none, "FileLB: `path=` must be given");
    }

    #[test]
    fn a_file_that_does_not_fit_the_database_is_refused_at_the_step() {
        check("0\n1\n", "places 2 objects, not 3");
        check("0\n1\n3\n", "line 3: there is no PE 3; PEs are 0 to 2");
    }
}

//! Loads nonzero patterns of sparse matrices: from Matrix Market files, generators, or any task graph.

use super::making::Pattern;
use super::{Graph, GraphError, Matrix, elements, files, kkt, load, matrix_market};
use crate::descriptor::split;
use crate::params::Params;
use std::path::Path;

impl Matrix {
    /// Loads the matrix of a spec: `kkt:`, `fem:`, a file `.mtx`, or any other task graph, whose edges become the
    /// entries.
    ///
    /// # Errors
    /// As for [`load`].
    pub fn load(spec: &str) -> Result<Matrix, GraphError> {
        let path = Path::new(spec);
        if !path.exists() {
            let (name, rest) = split(spec);
            // Makes no task graph, whose edges would need more memory.
            for (generator, pattern) in [
                (kkt::GENERATOR, kkt::pattern as fn(&mut Params) -> Result<Pattern, String>),
                (elements::GENERATOR, elements::pattern),
            ] {
                if generator.name == name {
                    let pattern = Params::parse_with(generator.name, &[], rest, pattern);
                    let Pattern { vertices, pairs, .. } =
                        pattern.map_err(|reason| GraphError::Spec { spec: spec.to_string(), reason })?;
                    return Ok(Matrix { rows: vertices, entries: pairs, is_symmetric: true });
                }
            }
        }
        if spec.to_lowercase().ends_with(".mtx") {
            let text = files::text(path).map_err(|unread| GraphError::unread(path, unread))?;
            let places = matrix_market::nonzeros(&text);
            return places.map_err(|(line, reason)| GraphError::Content { path: path.into(), line, reason });
        }
        let graph = Graph::of(&load(spec)?);
        let entries = graph.pairs().map(|(a, b, _)| (a, b)).collect();
        Ok(Matrix { rows: graph.vertices(), entries, is_symmetric: true })
    }
}

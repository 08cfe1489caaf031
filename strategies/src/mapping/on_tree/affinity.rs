//! The measure of communication between chares: messages or bytes.

use std::borrow::Cow;
use std::str::FromStr;

use equipoise_model::Database;
use equipoise_model::params::Param;

/// The measure of communication between chares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// The number of messages (section VI of the 2013 paper).
    Messages,
    /// The number of bytes.
    Bytes,
}

impl FromStr for Affinity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "messages" => Ok(Affinity::Messages),
            "bytes" => Ok(Affinity::Bytes),
            _ => Err("expected `messages` or `bytes`".into()),
        }
    }
}

impl Affinity {
    /// The parameter for the registry.
    pub(crate) const fn param(default: &'static str) -> Param {
        Param {
            key: "affinity",
            default,
            help: "measure of communication between objects: number of `messages` or `bytes`; bytes if no messages \
                   were counted",
        }
    }

    /// The database with this measure in place of the bytes of its edges, so that graphs of it are weighted by the measure.
    pub(crate) fn of(self, database: &Database) -> Cow<'_, Database> {
        if self == Affinity::Bytes || database.edges.iter().all(|edge| edge.messages == 0) {
            return Cow::Borrowed(database);
        }
        let mut counted = database.clone();
        counted.edges.iter_mut().for_each(|edge| edge.bytes = edge.messages);
        Cow::Owned(counted)
    }
}

#[cfg(test)]
mod tests {
    use equipoise_model::database::{Edge, End};
    use equipoise_model::graph::Graph;

    use super::*;
    use crate::testing::database;

    #[test]
    fn messages_and_bytes_make_different_graphs() {
        let check = |affinity: &str, messages, expected| {
            let mut database = database(1, &[(1.0, 0), (1.0, 0)]);
            database.edges = vec![Edge { from: End::Object(1), to: End::Object(0), messages, bytes: 500 }];
            let affinity: Affinity = affinity.parse().expect("an affinity");
            assert_eq!(Graph::of(&affinity.of(&database)), Graph::new(2, [(0, 1, expected)]));
        };
        check("bytes", 3, 500);
        check("messages", 3, 3);
        check("messages", 0, 500);
        assert!("words".parse::<Affinity>().is_err());
    }
}

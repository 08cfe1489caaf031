//! Ends the run of a program.

use super::PeCx;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// A handle that ends the run with a result. It is plain data and `Copy`: closures can capture it, and elements can store
/// it.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Exit<R>(#[serde(skip)] pub(crate) PhantomData<fn(R)>);

impl<R> Clone for Exit<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Exit<R> {}

impl<R> std::fmt::Debug for Exit<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Exit")
    }
}

impl<R: Serialize + DeserializeOwned + Send + 'static> Exit<R> {
    /// Ends the run with this result. If called several times, only one result counts. Messages in flight are
    /// dropped. The entry that calls it runs to its end; if it panics, the message is printed, and the result counts.
    pub fn exit(self, pe: &PeCx, result: R) {
        let (node, rank) = (&pe.out.node, pe.out.rank);
        if let Some(log) = pe.out.log() {
            log.exits();
        }
        if node.settings.is_distributed {
            node.exit(rank, Box::new(pe.out.encoded(&result, || "the result of the run".into())));
        } else {
            node.exit(rank, Box::new(result));
        }
    }
}

//! Large read-only values that all elements of a process share.

use super::PeCx;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::marker::PhantomData;

/// A handle to a value made by [`Setup::shared`](crate::Setup::shared): a number on the wire, a
/// counted pointer inside a process.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Shared<V> {
    pub(crate) id: u32,
    #[serde(skip)]
    pub(crate) of: PhantomData<fn() -> V>,
}

impl<V> Clone for Shared<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Shared<V> {}

impl<V> std::fmt::Debug for Shared<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({})", self.id)
    }
}

impl<V: Send + Sync + 'static> Shared<V> {
    /// The value.
    ///
    /// # Panics
    /// If the handle comes from another run.
    #[track_caller]
    pub fn get<'a>(&self, pe: &'a PeCx) -> &'a V {
        let value = pe.shared.get(self.id as usize).and_then(Option::as_deref);
        match value.and_then(<dyn Any + Send + Sync>::downcast_ref) {
            Some(value) => value,
            None => panic!("read a shared value only in the run that created the value"),
        }
    }
}

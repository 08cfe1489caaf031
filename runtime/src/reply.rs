//! Closures parked on a PE for an answer from somewhere.

use crate::codec;
use crate::context::PeCx;
use crate::order::{Answer, PeOrder};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// The address of a parked closure: plain data, good for one answer.
///
/// Made by [`PeCx::reply`].
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Reply<V> {
    pub(crate) pe: u32,
    pub(crate) parked: u64,
    #[serde(skip)]
    pub(crate) of: PhantomData<fn(V)>,
}

impl<V> Clone for Reply<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Reply<V> {}

impl<V> std::fmt::Debug for Reply<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reply({} on PE {})", self.parked, self.pe)
    }
}

impl<V: Serialize + DeserializeOwned + Send + 'static> Reply<V> {
    /// Runs the parked closure with `value`, on the PE where it is parked.
    ///
    /// A second answer to the same closure ends the run with an error.
    pub fn send(self, pe: &PeCx, value: V) {
        let answer = if pe.shares_memory() {
            Answer::Value(Box::new(value))
        } else {
            Answer::Bytes(pe.encoded(&value, || "the answer to a parked closure".into()))
        };
        pe.tell(self.pe, PeOrder::Reply { parked: self.parked, answer });
    }
}

type Closure = Box<dyn FnOnce(&PeCx, Answer)>;

/// The closures parked on one PE.
#[derive(Default)]
pub(crate) struct Parked {
    next: u64,
    closures: FxHashMap<u64, Closure>,
}

impl Parked {
    pub(crate) fn park<V>(&mut self, answer: impl FnOnce(&PeCx, V) + 'static) -> u64
    where
        V: DeserializeOwned + Send + 'static,
    {
        self.next += 1;
        let closure: Closure = Box::new(move |pe, value| match value {
            Answer::Bytes(bytes) => match codec::decode(&bytes) {
                Ok(value) => answer(pe, value),
                Err(error) => pe.fail(format!("the answer to a parked closure cannot be read back: {error}")),
            },
            Answer::Value(value) => match value.downcast() {
                Ok(value) => answer(pe, *value),
                Err(_) => pe.fail("the answer to a parked closure has another type than it takes".into()),
            },
        });
        self.closures.insert(self.next, closure);
        self.next
    }

    /// How many wait.
    pub(crate) fn count(&self) -> usize {
        self.closures.len()
    }
}

impl PeCx {
    /// Runs a parked closure.
    pub(crate) fn answered(&self, parked: u64, answer: Answer) {
        let closure = self.parked.borrow_mut().closures.remove(&parked);
        match closure {
            Some(closure) => closure(self, answer),
            None => self.fail(format!("a parked closure on PE {} was answered twice", self.rank)),
        }
    }
}

//! Closures parked on a PE until they receive a reply.

use super::PeCx;
use crate::codec;
use crate::order::{Answer, PeOrder};
use crate::pulse::Activity;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::marker::PhantomData;

/// The address of a parked closure: plain data, valid for one reply.
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
    /// Runs the parked closure with `value`, on the PE of the closure.
    ///
    /// A second reply to the same closure ends the run with an error.
    ///
    /// # Panics
    /// If the closure is on a PE that this run does not have, because another run made the `Reply`.
    #[track_caller]
    pub fn send(self, pe: &PeCx, value: V) {
        assert!(self.pe < pe.out.pes, "send a `Reply` only in the run that made it");
        let answer = if pe.out.shares_memory_with(self.pe) {
            Answer::Value(Box::new(value))
        } else {
            Answer::Bytes(pe.out.encoded(&value, || "the reply to a parked closure".into()))
        };
        pe.out.tell(self.pe, PeOrder::Reply { parked: self.parked, answer });
    }
}

type Closure = Box<dyn FnOnce(&PeCx, Answer)>;

/// The closures parked on one PE.
#[derive(Default)]
pub(crate) struct Parked {
    next: u64,
    /// Each with what parked it.
    closures: FxHashMap<u64, (Activity, Closure)>,
}

impl Parked {
    pub(crate) fn park<V>(&mut self, by: Activity, answer: impl FnOnce(&PeCx, V) + 'static) -> u64
    where
        V: DeserializeOwned + Send + 'static,
    {
        self.next += 1;
        let closure: Closure = Box::new(move |pe, value| match value {
            Answer::Bytes(bytes) => match codec::decode(&bytes) {
                Ok(value) => answer(pe, value),
                Err(error) => pe.fail(codec::not_decoded("the reply to a parked closure", &error)),
            },
            Answer::Value(value) => match value.downcast() {
                Ok(value) => answer(pe, *value),
                Err(_) => pe.fail("the reply to a parked closure has the wrong type".into()),
            },
        });
        self.closures.insert(self.next, (by, closure));
        self.next
    }

    /// The number of parked closures.
    pub(crate) fn count(&self) -> usize {
        self.closures.len()
    }

    /// What parked the oldest closure.
    pub(crate) fn oldest(&self) -> Option<Activity> {
        self.closures.iter().min_by_key(|(number, _)| **number).map(|(_, (by, _))| *by)
    }
}

impl PeCx {
    /// Runs a parked closure.
    pub(crate) fn answered(&self, parked: u64, answer: Answer) {
        let closure = self.parked.borrow_mut().closures.remove(&parked);
        match closure {
            Some((_, closure)) => {
                self.delivery.running.during(Activity::ParkedClosure, || closure(self, answer));
            }
            None => self.fail(format!(
                "a parked closure on PE {} was answered twice, or does not exist; send each `Reply` once, in the run that made it",
                self.out.rank
            )),
        }
    }
}

//! Chare arrays from the view of a program: the handle, the trait of chares, the context of entry methods, and
//! proxies. [`Port`] is the part of an array on one PE.

mod chare;
mod contribute;
mod create;
mod cx;
mod local;
mod places;
mod port;
mod proxy;

pub use chare::{Chare, Synced};
pub use cx::Cx;
pub use proxy::{Contribution, Target, Targets};

pub(crate) use port::{ChareMail, ChareOrder, ChareSlot, Port, Shared};

use crate::index::Index;
use crate::pe::PeCx;
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::marker::PhantomData;

/// A handle to a chare array. It is plain data and `Copy`: closures can capture it, elements can store it, and messages can
/// contain it.
///
/// [`Index`] says in which order the elements are numbered, and on which PE each begins.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Array<T> {
    pub(crate) id: u16,
    #[serde(skip)]
    pub(crate) of: PhantomData<fn(T)>,
}

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Array({})", self.id)
    }
}

impl<T: Chare> Array<T> {
    #[inline]
    #[track_caller]
    fn port<'a>(&self, pe: &'a PeCx) -> &'a Port<T> {
        let port = pe.ports.get(usize::from(self.id)).map(|port| -> &dyn Any { &**port });
        match port.and_then(<dyn Any>::downcast_ref) {
            Some(port) => port,
            None => panic!("use an array handle only in the run that created the array"),
        }
    }

    /// Sends to one element.
    ///
    /// # Panics
    /// If the index is outside the array's shape, or another run made the array.
    #[inline]
    #[track_caller]
    pub fn at<'a>(&self, pe: &'a PeCx, index: T::Index) -> T::Proxy<'a> {
        let port = self.port(pe);
        Target::one(pe, port, port.rank(index)).into()
    }

    /// Sends to every element.
    ///
    /// # Panics
    /// If another run made the array.
    #[track_caller]
    pub fn all<'a>(&self, pe: &'a PeCx) -> T::Proxies<'a> {
        Targets::all(pe, self.port(pe)).into()
    }

    /// Sends to a section: the elements below the array's shape whose index satisfies `member`, in rank order (first
    /// dimension fastest).
    ///
    /// Each of these elements must exist now or later; until then its message waits. Every call evaluates `member` for
    /// all indices of the array; to reach few of many elements often, use [`at`](Self::at).
    ///
    /// # Panics
    /// If another run made the array.
    #[track_caller]
    pub fn only<'a>(&self, pe: &'a PeCx, member: impl Fn(T::Index) -> bool) -> T::Proxies<'a> {
        let port = self.port(pe);
        let (shape, count) = (port.shared.shape, port.shared.count);
        let ranks = (0..count).filter(|&rank| member(T::Index::unrank(rank, shape))).collect();
        Targets::section(pe, port, ranks).into()
    }
}

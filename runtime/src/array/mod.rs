//! Chare arrays from the view of a program: the handle, the trait of chares, the context of entry methods, and
//! proxies. [`Port`] is the part of an array on one PE.

mod callback;
mod chare;
mod contribute;
mod create;
mod cx;
mod local;
mod multicast;
mod places;
mod port;
mod proxy;
mod section;

pub use callback::Callback;
pub use chare::{Chare, Synced};
pub use cx::Cx;
pub use proxy::{Contribution, Target, Targets};
pub use section::Section;

pub(crate) use multicast::each_of;
pub(crate) use port::{ChareMail, ChareOrder, ChareSlot, Created, Port, Shared};

use crate::pe::PeCx;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// A handle to a chare array. It is plain data and `Copy`: closures can capture it, elements can store it, and messages can
/// contain it.
///
/// [`Index`](crate::Index) says in which order the elements are numbered, and on which PE each begins.
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
        match Port::of(pe, self.id) {
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

    /// Sends to the elements below the array's shape whose index satisfies `member`: `self.section(pe, member).all(pe)`.
    ///
    /// Each of these elements must exist now or later; until then its message waits. Every call evaluates `member` for
    /// all indices of the array; to reach the same elements again, keep the [`Section`].
    ///
    /// # Panics
    /// If another run made the array.
    #[track_caller]
    pub fn only<'a>(&self, pe: &'a PeCx, member: impl Fn(T::Index) -> bool) -> T::Proxies<'a> {
        self.section(pe, member).all(pe)
    }

    /// Makes the section of the elements below the array's shape whose index satisfies `member`, which is called once for each
    /// index.
    ///
    /// # Panics
    /// If another run made the array.
    #[track_caller]
    pub fn section(&self, pe: &PeCx, member: impl Fn(T::Index) -> bool) -> Section<T> {
        Section::filtered(self.port(pe), member)
    }

    /// Makes the section of the elements with these indices.
    ///
    /// # Panics
    /// If an index is outside the array's shape, or another run made the array.
    #[track_caller]
    pub fn section_of(&self, pe: &PeCx, indices: impl IntoIterator<Item = T::Index>) -> Section<T> {
        Section::listed(self.port(pe), indices)
    }
}

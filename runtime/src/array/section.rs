//! The sections of a program: [`Section`].

use super::Array;
use super::chare::Chare;
use super::port::Port;
use super::proxy::Targets;
use crate::index::Index;
use crate::load::element_key;
use crate::pe::PeCx;
use crate::section::Members;
use serde::{Deserialize, Serialize};
use std::marker::PhantomData;

/// A fixed set of elements of one or several arrays of one chare.
///
/// A section is plain data: elements can store it, and messages can contain it. Copies in a process share the list of
/// members. Sections with the same members are the same section, whichever elements made them.
///
/// ```
/// use equipoise::prelude::*;
///
/// #[derive(Serialize, Deserialize)]
/// struct Block {
///     done: Exit<i32>,
/// }
///
/// #[chare(index = [i32; 2])]
/// impl Block {
///     /// The elements of a column add their rows.
///     #[entry]
///     fn add(&mut self, cx: &Cx<Self>, column: Section<Block>) {
///         let [x, y] = cx.index();
///         cx.peer([x, 0]).contribute_in(&column).total(y);
///     }
///
///     /// Receives the sum.
///     #[entry(reduce = equipoise::reduce::sum)]
///     fn total(&mut self, cx: &Cx<Self>, sum: i32) {
///         self.done.exit(cx, sum);
///     }
/// }
///
/// let report = equipoise::run(Config::simulated(4, 0), |pe, done| {
///     let blocks = pe.array([8, 5], |_| Block { done });
///     pe.main(move |pe| {
///         let column = blocks.section(pe, |[x, _]| x == 3);
///         column.all(pe).add(column.clone());
///     });
/// });
/// assert_eq!(report.result, 10);
/// ```
///
/// # Members that end
///
/// The members do not change. A message to a member that does not exist waits until an element is inserted at its
/// index. A reduction over a section waits for all members. If an element is inserted at the index of a member that has ended,
/// its first contribution belongs to the first reduction of the section. So replace all members in this way, or make another
/// section.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Section<T> {
    pub(crate) members: Members,
    #[serde(skip)]
    of: PhantomData<fn(T)>,
}

impl<T> Clone for Section<T> {
    fn clone(&self) -> Self {
        Section { members: self.members.clone(), of: PhantomData }
    }
}

impl<T> PartialEq for Section<T> {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members
    }
}

impl<T> Eq for Section<T> {}

impl<T> std::fmt::Debug for Section<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let arrays = self.members.by_array().map(|(array, keys)| (array, keys.len()));
        f.write_str("Section")?;
        f.debug_map().entries(arrays).finish()
    }
}

impl<T> Section<T> {
    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.keys().len()
    }

    /// Whether the section has no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The section with the members of both, which may be elements of different arrays.
    #[must_use]
    pub fn and(&self, other: &Section<T>) -> Section<T> {
        Section { members: self.members.and(&other.members), of: PhantomData }
    }
}

impl<T: Chare> Section<T> {
    /// The elements of an array whose index satisfies `member`.
    pub(crate) fn filtered(port: &Port<T>, member: impl Fn(T::Index) -> bool) -> Self {
        let (shape, count) = (port.shared.shape, port.shared.count);
        let ranks = (0..count).filter(|&rank| member(T::Index::unrank(rank, shape)));
        Section { members: Members::of(port.id, ranks), of: PhantomData }
    }

    /// The elements of an array with these indices.
    #[track_caller]
    pub(crate) fn listed(port: &Port<T>, indices: impl IntoIterator<Item = T::Index>) -> Self {
        let mut ranks = Vec::new();
        for index in indices {
            ranks.push(port.rank(index));
        }
        Section { members: Members::of(port.id, ranks.into_iter()), of: PhantomData }
    }

    /// Whether an element is a member.
    ///
    /// # Panics
    /// If another run made the array.
    #[track_caller]
    pub fn contains(&self, pe: &PeCx, array: Array<T>, index: T::Index) -> bool {
        let rank = index.rank(array.port(pe).shared.shape);
        rank.is_some_and(|rank| self.members.position(element_key(array.id, rank)).is_some())
    }

    /// Sends to every member.
    ///
    /// The message goes once to each PE with members, along a tree of these PEs. It may overtake other messages of the same
    /// sender, and they may overtake it. Each member must exist now or later; until then its message waits.
    ///
    /// # Panics
    /// If another run made the section.
    #[track_caller]
    pub fn all<'a>(&self, pe: &'a PeCx) -> T::Proxies<'a> {
        let home = Array::<T> { id: self.members.id().array, of: PhantomData };
        for (id, keys) in self.members.by_array() {
            let array = Array::<T> { id, of: PhantomData };
            if let Some(sentence) = array.port(pe).misfit(keys) {
                panic!("{sentence}");
            }
        }
        Targets::section(pe, home.port(pe), self.members.clone()).into()
    }
}

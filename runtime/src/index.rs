//! The index of an element in its array: 1 to 6 coordinates, a struct of them, `()` for a singleton, or a PE.

use equipoise_model::database::ObjectIndex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::fmt::Debug;

/// The index of a chare array: `[i32; 1]` to `[i32; 6]`, a struct with [`#[derive(Index)]`](macro@crate::Index) whose fields
/// name the dimensions, `()` for a singleton, [`Pe`] for one element on every PE, [`Process`] for one element in every
/// process.
///
/// # Ranks
///
/// The *rank* of an index is its position among all indices below the array's shape, first dimension fastest.
/// Fortran orders the elements of a matrix in the same way; in C the last dimension is the fastest.
///
/// ```
/// use equipoise::Index;
///
/// let shape = [4, 3];
/// assert_eq!([0, 0].rank(shape), Some(0));
/// assert_eq!([1, 0].rank(shape), Some(1));
/// assert_eq!([0, 1].rank(shape), Some(4));
/// assert_eq!([3, 2].rank(shape), Some(11));
/// ```
///
/// # Initial placement
///
/// The placement `blocks`, the default, cuts the ranks into contiguous runs: of n elements on P PEs, the element with rank
/// r begins on PE `r * P / n`, rounded down. The numbers of elements per PE differ by at most 1. In an array with several
/// dimensions, a run is a slab: layers of the last dimension, of which the first and the last may be incomplete.
///
/// ```
/// use equipoise::prelude::*;
///
/// #[derive(Serialize, Deserialize)]
/// struct Block {
///     done: Exit<Vec<u32>>,
/// }
///
/// #[chare(index = [i32; 2])]
/// impl Block {
///     /// Contributes the PE of this block.
///     #[entry]
///     fn locate(&mut self, cx: &Cx<Self>) {
///         cx.peer([0, 0]).contribute().located(vec![cx.here().0]);
///     }
///
///     /// Receives the PEs of all blocks, by rank.
///     #[entry(reduce = equipoise::reduce::concat)]
///     fn located(&mut self, cx: &Cx<Self>, pes: Vec<u32>) {
///         self.done.exit(cx, pes);
///     }
/// }
///
/// // 4 PEs, messages in an order sampled with seed 0.
/// let report = equipoise::run(Config::simulated(4, 0), |pe, done| {
///     let blocks = pe.array([5, 2], |_| Block { done });
///     pe.main(move |pe| blocks.all(pe).locate());
/// });
/// assert_eq!(report.result, [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
/// ```
///
/// The other placements are `roundrobin` (rank modulo the number of PEs), `random`, a file with one PE per line, by
/// rank, and the function of [`Setup::array_placed`](crate::Setup::array_placed).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an index of chare arrays",
    label = "not an index",
    note = "an index is `[i32; N]` with N from 1 to 6, a struct with `#[derive(Index)]`, `()` for a singleton, `Pe` for one element per PE, or `Process` for one per process"
)]
pub trait Index: Copy + Eq + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// For one element on every PE or in every process, which never migrates: which of both.
    const GROUP: Option<Group> = None;

    /// How many indices there are below `shape`; `None` if the shape is negative or beyond 2^32 - 1.
    fn count(shape: Self) -> Option<u32>;

    /// The position of the index among all indices below this shape, first dimension fastest; `None` outside the shape.
    fn rank(self, shape: Self) -> Option<u32>;

    /// The index at a position below the count of `shape`.
    fn unrank(rank: u32, shape: Self) -> Self;

    /// The coordinates, for databases and messages to users.
    fn coordinates(self) -> ObjectIndex;
}

/// The number of a PE (processing element: one scheduler, one thread).
///
/// As the index of an array it means one element on every PE, which never migrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Pe(pub u32);

/// The number of a process. With threads, all PEs are in process 0.
///
/// As the index of an array it means one element in every process, on the first PE of the process, which never migrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process(pub u32);

/// What has one element each of an array whose elements do not migrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Every PE.
    Pe,
    /// Every process.
    Process,
}

impl std::fmt::Display for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Group::Pe => "on every PE",
            Group::Process => "in every process",
        })
    }
}

impl Index for () {
    fn count((): ()) -> Option<u32> {
        Some(1)
    }
    #[inline(always)]
    fn rank(self, (): ()) -> Option<u32> {
        Some(0)
    }
    #[inline(always)]
    fn unrank(_: u32, (): ()) {}
    fn coordinates(self) -> ObjectIndex {
        ObjectIndex::new(&[])
    }
}

macro_rules! group_index {
    ($($group:ident)*) => {$(
        impl Index for $group {
            const GROUP: Option<Group> = Some(Group::$group);

            fn count(shape: $group) -> Option<u32> {
                Some(shape.0)
            }
            #[inline(always)]
            fn rank(self, shape: $group) -> Option<u32> {
                (self.0 < shape.0).then_some(self.0)
            }
            #[inline(always)]
            fn unrank(rank: u32, _: $group) -> $group {
                $group(rank)
            }
            fn coordinates(self) -> ObjectIndex {
                ObjectIndex::new(&[self.0 as i32])
            }
        }
    )*};
}

group_index!(Pe Process);

/// One impl per dimension, so that a wrong dimension gives the diagnostic of [`Index`].
macro_rules! grid_index {
    ($($dimensions:literal)*) => {$(
        impl Index for [i32; $dimensions] {
            fn count(shape: Self) -> Option<u32> {
                shape.iter().try_fold(1u32, |count, &n| count.checked_mul(u32::try_from(n).ok()?))
            }
            #[inline(always)]
            fn rank(self, shape: Self) -> Option<u32> {
                let mut rank = 0u32;
                for d in (0..$dimensions).rev() {
                    // As `u32`, a negative coordinate exceeds every side.
                    if self[d] as u32 >= shape[d] as u32 {
                        return None;
                    }
                    rank = rank * shape[d] as u32 + self[d] as u32;
                }
                Some(rank)
            }
            #[inline(always)]
            fn unrank(mut rank: u32, shape: Self) -> Self {
                let mut index = [0; $dimensions];
                let (last, others) = index.split_last_mut().expect("an index has a dimension");
                for (coordinate, &side) in others.iter_mut().zip(&shape) {
                    *coordinate = (rank % side as u32) as i32;
                    rank /= side as u32;
                }
                *last = rank as i32;
                index
            }
            fn coordinates(self) -> ObjectIndex {
                ObjectIndex::new(&self)
            }
        }
    )*};
}
grid_index!(1 2 3 4 5 6);

/// The type of a field of a struct with [`#[derive(Index)]`](macro@crate::Index).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a dimension of an index",
    label = "not a dimension",
    note = "a field of an index is an integer of at most 64 bits, or a `bool`"
)]
pub trait Dimension: Copy {
    /// The number of values below that of the shape; none if that is negative or above 2^31 - 1.
    fn side(shape: Self) -> Option<u32>;
    /// The position of the value in its dimension; above 2^31 - 1 if it has none.
    fn coordinate(self) -> u32;
    /// The value at a position.
    fn of(coordinate: u32) -> Self;

    /// The rank of this value and of those of the slower dimensions, which have `rank`; none outside the shape.
    #[inline(always)]
    fn add_to_rank(self, rank: u32, shape: Self) -> Option<u32> {
        let (side, coordinate) = (Self::side(shape)?, self.coordinate());
        (coordinate < side).then(|| rank * side + coordinate)
    }

    /// Splits a rank into the value in this dimension, and the rank in the slower dimensions.
    #[inline(always)]
    fn take_from_rank(rank: &mut u32, shape: Self) -> Self {
        let side = Self::side(shape).unwrap_or(1).max(1);
        let coordinate = *rank % side;
        *rank /= side;
        Self::of(coordinate)
    }
}

macro_rules! dimension {
    ($($integer:ident)*) => {$(
        impl Dimension for $integer {
            #[inline(always)]
            fn side(shape: Self) -> Option<u32> {
                i32::try_from(shape).ok().and_then(|side| u32::try_from(side).ok())
            }
            #[inline(always)]
            fn coordinate(self) -> u32 {
                i32::try_from(self).map_or(u32::MAX, |coordinate| coordinate as u32)
            }
            #[inline(always)]
            fn of(coordinate: u32) -> Self {
                coordinate as Self
            }
        }
    )*};
}

dimension!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

impl Dimension for bool {
    #[inline(always)]
    fn side(shape: bool) -> Option<u32> {
        Some(1 + u32::from(shape))
    }
    #[inline(always)]
    fn coordinate(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn of(coordinate: u32) -> bool {
        coordinate == 1
    }
}

/// An index in messages to users: `[1, 3]`, and nothing for a singleton.
pub(crate) fn show<I: Index>(index: I) -> String {
    match index.coordinates().coordinates() {
        [] => String::new(),
        coordinates => format!("{coordinates:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_dimension_is_the_fastest() {
        assert_eq!([1, 0, 0].rank([4, 3, 2]), Some(1));
        assert_eq!([0, 1, 0].rank([4, 3, 2]), Some(4));
        assert_eq!([0, 0, 1].rank([4, 3, 2]), Some(12));
        assert_eq!(<[i32; 3]>::count([4, 3, 2]), Some(24));
    }

    #[test]
    fn an_index_outside_the_shape_has_no_rank() {
        assert_eq!([4, 0].rank([4, 3]), None);
        assert_eq!([0, -1].rank([4, 3]), None);
        assert_eq!(Pe(2).rank(Pe(2)), None);
        assert_eq!(<[i32; 2]>::count([1 << 16, 1 << 16]), None);
        assert_eq!(<[i32; 2]>::count([-1, 2]), None);
    }

    proptest! {
        #[test]
        fn rank_and_unrank_are_inverse(shape in prop::array::uniform6(1i32..6), seed: u32) {
            let rank = seed % Index::count(shape).unwrap();
            prop_assert_eq!(<[i32; 6]>::unrank(rank, shape).rank(shape), Some(rank));
        }
    }
}

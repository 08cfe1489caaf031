//! Creation of elements while a program runs.

use super::{Array, Chare};
use crate::index::{Index, Pe};
use crate::pe::PeCx;

impl<T: Chare> Array<T> {
    /// Creates an element while the program runs, on the PE that the array's placement (see [`Index`]) gives for the
    /// index. Messages to the element may be sent at once.
    ///
    /// If the creator is an element of the same array, the new element participates in the creator's next reduction and
    /// load-balancing step and all later ones, and receives the creator's next broadcast and all later ones.
    /// Otherwise it participates from the oldest incomplete reduction and step on, and receives broadcasts that
    /// PE 0 sends after the creation. If broadcast and creation race between PEs, send the broadcast
    /// `at_quiescence`.
    ///
    /// The index must be free: its previous element must have called `destroy`. If the previous element is still on
    /// its home PE, the run ends with an error; otherwise the new element waits for the end of the previous one.
    ///
    /// # Panics
    /// If the index is outside the array's shape, the array has one element on every PE or in every process, or another run made it.
    #[track_caller]
    pub fn insert(&self, pe: &PeCx, index: T::Index, chare: T) {
        let port = self.port(pe);
        let rank = port.rank(index);
        self.insert_at(pe, (port.home(&pe.out, rank), rank), chare);
    }

    /// Creates an element like [`insert`](Self::insert), but on PE `on`.
    ///
    /// The element may migrate like others. A restarted run puts it where the array's placement says, like every element.
    ///
    /// # Panics
    /// As `insert`, and if there is no such PE.
    #[track_caller]
    pub fn insert_on(&self, pe: &PeCx, index: T::Index, on: Pe, chare: T) {
        pe.check_exists(on);
        self.insert_at(pe, (on.0, self.port(pe).rank(index)), chare);
    }

    #[track_caller]
    fn insert_at(&self, pe: &PeCx, (on, rank): (u32, u32), chare: T) {
        if let Some(group) = T::Index::GROUP {
            panic!("{} has one element {group}; elements cannot be inserted", T::NAME);
        }
        let port = self.port(pe);
        if port.used.is_some() {
            panic!(
                "{} has indices that the runtime chooses; call `create`, or make the array with `sparse`",
                T::NAME
            );
        }
        port.insert(pe, on, rank, chare);
    }
}

impl<T: Chare<Index = [i32; 1]>> Array<T> {
    /// Creates an element of an array of [`Setup::chares`](crate::Setup::chares) while the program runs, on this PE. Returns its
    /// index, which no other element has or will have. Messages to the element may be sent at once.
    ///
    /// Reductions, load-balancing steps and broadcasts include the element as in [`insert`](Self::insert). Which index an element
    /// has depends on the PE of its creator, and so does the order in which a reduction combines the contributions: a sum of floating-point
    /// numbers may differ in the last bits on another number of PEs. Use `insert` where it must not.
    ///
    /// # Panics
    /// If the array is not made by `Setup::chares`, another run made it, or this PE has no more indices: on P PEs, each can create
    /// (2^31 - 1) / P elements, rounded down. Elements that end do not free their index.
    #[track_caller]
    pub fn create(&self, pe: &PeCx, chare: T) -> [i32; 1] {
        self.create_on(pe, pe.here(), chare)
    }

    /// Creates an element like [`create`](Self::create), on PE `on`.
    ///
    /// # Panics
    /// As `create`, and if there is no such PE.
    #[track_caller]
    pub fn create_on(&self, pe: &PeCx, on: Pe, chare: T) -> [i32; 1] {
        let port = self.port(pe);
        pe.check_exists(on);
        let Some(used) = &port.used else {
            panic!(
                "{} has indices that the program chooses; call `insert`, or make the array with `chares`",
                T::NAME
            );
        };
        // The indices of a PE are those that round-robin placement puts there, so it is their home.
        let (made, pes) = (used.get(), pe.out.pes);
        let limit = port.shared.count / pes;
        if made >= limit {
            panic!(
                "PE {} has used its {limit} indices of {}; end fewer elements, or make the array with `sparse` and use indices again",
                pe.out.rank,
                T::NAME
            );
        }
        used.set(made + 1);
        let rank = made * pes + pe.out.rank;
        port.insert(pe, on.0, rank, chare);
        T::Index::unrank(rank, port.shared.shape)
    }
}

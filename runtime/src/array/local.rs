//! Access to elements of other arrays on the same PE, without a message.

use super::{Array, Chare};
use crate::pe::{Delivery, PeCx};

impl<T: Chare> Array<T> {
    /// Calls `visit` with an element of this array, at once; `None` if the element is not on this PE.
    ///
    /// It is meant for elements that never migrate, such as those of arrays with one element on every PE
    /// (`array.local(cx, cx.here(), ..)` always has a result), and for bound arrays
    /// ([`Setup::array_bound`](crate::Setup::array_bound)). In an array with one element in every process, the element is on the first
    /// PE of its process, and only this PE can reach it.
    ///
    /// The call is no delivery: its time and its sends count for the caller, and it is not ordered with messages. Afterwards the
    /// guards of the element's waiting messages are evaluated again.
    ///
    /// # Panics
    /// If the index is outside the array's shape, another run made the array, or its elements are borrowed: from an element
    /// of the same array, and inside of another `visit` to this array.
    #[track_caller]
    pub fn local<R>(&self, pe: &PeCx, index: T::Index, visit: impl FnOnce(&mut T) -> R) -> Option<R> {
        let rank = self.port(pe).rank(index);
        let Ok(mut elements) = pe.elements[usize::from(self.id)].try_borrow_mut() else {
            self.panic_borrowed(&pe.delivery)
        };
        let (mut visit, mut result) = (Some(visit), None);
        elements.visit(pe, rank, &mut |element| {
            if let (Some(visit), Some(element)) = (visit.take(), element.downcast_mut()) {
                result = Some(visit(element));
            }
        });
        result
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn panic_borrowed(&self, delivery: &Delivery) -> ! {
        if delivery.running.get().is_some_and(|running| running.array == self.id) {
            panic!(
                "`local` reaches elements of other arrays than that of the caller; send a message to {}",
                T::NAME
            );
        }
        panic!(
            "`local` is called inside of another `local` on {}; make the calls one after the other",
            T::NAME
        );
    }
}

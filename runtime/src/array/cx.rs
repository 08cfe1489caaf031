//! The context of an entry method: [`Cx`].

use super::Array;
use super::chare::{Chare, Synced};
use super::port::Port;
use super::proxy::{Target, Targets};
use crate::index::{Index, Pe};
use crate::pe::{PeCx, post_delivery};
use std::marker::PhantomData;
use std::ops::Deref;

/// The context of an entry method: the element's index, its peers, and through [`Deref`] its PE.
pub struct Cx<'a, T: Chare> {
    pub(crate) pe: &'a PeCx,
    pub(crate) port: &'a Port<T>,
    pub(crate) rank: u32,
}

impl<T: Chare> Deref for Cx<'_, T> {
    type Target = PeCx;

    fn deref(&self) -> &PeCx {
        self.pe
    }
}

impl<T: Chare> Cx<'_, T> {
    /// The index of this element.
    #[inline(always)]
    pub fn index(&self) -> T::Index {
        T::Index::unrank(self.rank, self.port.shared.shape)
    }

    /// The shape of the element's array: one more than the largest index in each dimension.
    #[inline(always)]
    pub fn shape(&self) -> T::Index {
        self.port.shared.shape
    }

    /// The element's array.
    pub fn array(&self) -> Array<T> {
        Array { id: self.port.id, of: PhantomData }
    }

    /// Sends to one element of the same array.
    ///
    /// # Panics
    /// If the index is outside the array's shape.
    #[inline(always)]
    #[track_caller]
    pub fn peer(&self, index: T::Index) -> T::Proxy<'_> {
        Target::one(self.pe, self.port, self.port.rank(index)).into()
    }

    /// Sends to every element of the same array.
    pub fn peers(&self) -> T::Proxies<'_> {
        Targets::all(self.pe, self.port).into()
    }

    /// Joins the next load-balancing step. The message sent through the result is delivered after the step, on the
    /// element's new PE. Other messages are delivered meanwhile.
    ///
    /// Without a load balancer, `--lb-dump` or a flag of checkpoints or restarts there are no steps, and the message is sent at once. If
    /// the element then migrates, the message follows it like any other: if the element has ended meanwhile, the next element with its
    /// index receives the message.
    ///
    /// An element that calls `at_sync` again before it receives the message ends the run with an error (without steps, only if it has not
    /// migrated meanwhile).
    #[must_use = "call the entry that continues after load balancing, as in `cx.at_sync().step()`"]
    pub fn at_sync(&self) -> T::Proxy<'_>
    where
        T: Synced,
    {
        Target::after_sync(self.pe, self.port, self.rank).into()
    }

    /// Excludes this element from migration at load-balancing steps, or includes it again.
    pub fn pin(&self, pinned: bool) {
        self.pe.delivery.pin.set(pinned);
        self.pe.delivery.later(post_delivery::PIN);
    }

    /// Sets the work of this delivery to `seconds`, instead of the measured time; several charges add up.
    /// On a simulated machine the delivery takes this time at speed 1, and messages sent after a charge leave
    /// after the charged time. With `--uncharged measured`, nothing is measured from the charge to the end of the
    /// delivery, so charge first. `main`, parked closures and reducers cannot charge.
    ///
    /// # Panics
    /// If `seconds` is negative, not a number or more than 1e15.
    #[track_caller]
    pub fn charge(&self, seconds: f64) {
        if !(0.0..=1e15).contains(&seconds) {
            panic!("cannot charge {seconds:?} seconds; charge 0 to 1e15 seconds");
        }
        let delivery = &self.pe.delivery;
        let sum = if delivery.has(post_delivery::CHARGED) { delivery.charged.get() } else { 0.0 };
        delivery.charged.set(sum + seconds);
        if let Some(clock) = self.pe.clock.simulated() {
            clock.charge(seconds);
        }
        delivery.later(post_delivery::CHARGED);
    }

    /// Sets the load of this element, in seconds, for the next load-balancing step, instead of measured and charged
    /// time.
    ///
    /// # Panics
    /// If `seconds` is negative or not finite.
    #[track_caller]
    pub fn set_load(&self, seconds: f64) {
        if !(seconds.is_finite() && seconds >= 0.0) {
            panic!("cannot set a load of {seconds} seconds; give a finite number from 0 on");
        }
        self.pe.delivery.declared.set(seconds);
        self.pe.delivery.later(post_delivery::DECLARED);
    }

    /// Moves this element to another PE when the entry method returns.
    ///
    /// # Panics
    /// If there is no such PE, or the chare is `pinned`, has one element on every PE or in every process, or is bound to
    /// another array, whose elements move both.
    #[track_caller]
    pub fn migrate(&self, to: Pe) {
        self.pe.check_exists(to);
        if let Some(group) = T::Index::GROUP {
            panic!("{} cannot migrate: it has one element {group}", T::NAME);
        }
        if T::PINNED {
            panic!("{} cannot migrate: it is `pinned`", T::NAME);
        }
        if let Some(leader) = self.pe.infos[usize::from(self.port.id)].bound_to {
            let leader = self.pe.name(leader);
            panic!("{} cannot migrate: it is bound to {leader}; call `migrate` in {leader}", T::NAME);
        }
        self.pe.delivery.move_to.set(to.0);
        self.pe.delivery.later(post_delivery::MIGRATES);
    }

    /// Ends this element when the entry method returns, and frees its index. Messages to the index wait
    /// until another element is inserted there.
    ///
    /// # Panics
    /// If the chare has one element on every PE or in every process, or its array and another one are bound.
    #[track_caller]
    pub fn destroy(&self) {
        if let Some(group) = T::Index::GROUP {
            panic!("{} has one element {group}, which cannot be destroyed", T::NAME);
        }
        let info = &self.pe.infos[usize::from(self.port.id)];
        if let Some(&other) = info.followers.first().or(info.bound_to.as_ref()) {
            panic!("{} and {} are bound to each other and cannot be destroyed", T::NAME, self.pe.name(other));
        }
        self.pe.delivery.later(post_delivery::ENDS);
    }
}

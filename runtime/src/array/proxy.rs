//! The receivers of a message and the time of its delivery; the proxies that `#[chare]` generates use these types.
//!
//! A send takes effect now, at the end of a reduction, after load balancing, or at quiescence.

use super::callback::Callback;
use super::chare::Chare;
use super::contribute::Offered;
use super::port::Port;
use super::section::Section;
use crate::codec;
use crate::load::element_key;
use crate::order::Receivers;
use crate::pe::{PeCx, post_delivery};
use crate::pulse::Running;
use crate::section::{Members, SectionId};
use equipoise_model::table::count;
use std::time::Duration;

/// The remedy for a postponed contribution.
const NOT_LATER: &str = "call `contribute` without `at_sync`, `at_quiescence`, `at_checkpoint` and `after`";

/// The remedy for a postponed callback.
const UNPOSTPONED: &str = "call `callback` without `at_sync`, `at_quiescence`, `at_checkpoint` and `after`";

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    AfterSync,
    AtQuiescence,
    AtCheckpoint,
    After(Duration),
}

/// The remedy for a message that is postponed twice.
const ONCE: &str = "call `at_sync`, `at_quiescence`, `at_checkpoint` or `after`, once";

/// One element as the receiver of a message.
pub struct Target<'a, T: Chare> {
    pe: &'a PeCx,
    port: &'a Port<T>,
    rank: u32,
    when: When,
}

impl<'a, T: Chare> Target<'a, T> {
    #[inline(always)]
    pub(crate) fn one(pe: &'a PeCx, port: &'a Port<T>, rank: u32) -> Self {
        Target { pe, port, rank, when: When::Now }
    }

    #[inline(always)]
    pub(crate) fn after_sync(pe: &'a PeCx, port: &'a Port<T>, rank: u32) -> Self {
        Target { pe, port, rank, when: When::AfterSync }
    }

    /// Sends `msg`.
    ///
    /// # Panics
    /// If the running element has called `at_sync` before in this entry method, and this message is sent after it.
    #[inline(always)]
    #[track_caller]
    pub fn send(self, msg: T::Msg) {
        self.send_with(|| msg);
    }

    /// Sends the message that `make` makes: where it is queued, so that it is not copied there from the stack. It is written in parts
    /// and copied as a whole, for which the processor would wait.
    ///
    /// # Panics
    /// If the running element has called `at_sync` before in this entry method, and this message is sent after it.
    #[doc(hidden)]
    #[inline(always)]
    #[track_caller]
    pub fn send_with(self, make: impl FnOnce() -> T::Msg) {
        let Target { pe, port, rank, when } = self;
        if when != When::Now {
            return self.postpone(make());
        }
        if pe.delivery.has(post_delivery::COMM | post_delivery::TRACED) {
            return Self::send_recorded(pe, port, rank, make());
        }
        port.send_with(&pe.out, rank, make);
    }

    /// Sends `msg` and records it, as communication or for a trace.
    #[inline(never)]
    fn send_recorded(pe: &PeCx, port: &Port<T>, rank: u32, msg: T::Msg) {
        let (key, bytes) = (element_key(port.id, rank), codec::size(&msg));
        if pe.delivery.has(post_delivery::COMM) {
            pe.recorder.sent(pe.delivery.running.element(), key, bytes);
        }
        if pe.delivery.has(post_delivery::TRACED) {
            return Self::send_traced(pe, port, rank, msg, bytes);
        }
        port.send(&pe.out, rank, msg);
    }

    /// Sends `msg` and records it for a trace.
    #[cold]
    #[inline(never)]
    fn send_traced(pe: &PeCx, port: &Port<T>, rank: u32, msg: T::Msg, bytes: u64) {
        pe.out.trace(|tracer| tracer.sends(port.id, rank, bytes));
        match pe.out.log() {
            None => port.send(&pe.out, rank, msg),
            Some(log) => port.send_logged(&pe.out, log, rank, msg, bytes),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn postpone(self, msg: T::Msg) {
        let Target { pe, port, rank, when } = self;
        if when == When::AfterSync {
            if pe.delivery.has(post_delivery::SYNC) {
                let name = port.name(rank);
                panic!("{name} called `at_sync` twice in one entry method; call it once");
            }
            port.resume.set(Some(msg));
            pe.delivery.later(post_delivery::SYNC);
        } else if let When::After(duration) = when {
            port.keep_for(pe, Receivers::One(rank), msg, duration);
        } else {
            port.postpone(pe, Receivers::One(rank), msg, when == When::AtCheckpoint);
        }
    }

    /// Contributes to a reduction whose result this element receives.
    ///
    /// # Panics
    /// If the message is postponed.
    #[track_caller]
    pub fn contribute(self) -> Contribution<'a, T> {
        if self.when != When::Now {
            panic!("a contribution to {} cannot be postponed; {NOT_LATER}", T::NAME);
        }
        Contribution::new(self.pe, self.port, Receivers::One(self.rank))
    }

    /// Contributes to a reduction over a section whose result this element receives. The running element is a member of the
    /// section.
    ///
    /// # Panics
    /// If the message is postponed, outside an entry method, and if the running element is not a member.
    #[track_caller]
    pub fn contribute_in<S: Chare>(self, section: &Section<S>) -> Contribution<'a, T> {
        self.contribute().over(section)
    }

    /// Names an entry of this element as the receiver of values. `entry` has one argument of type `V`, or none if `V` is `()`.
    ///
    /// # Panics
    /// If the message is postponed.
    #[track_caller]
    pub fn callback<V>(self, entry: usize) -> Callback<V> {
        if self.when != When::Now {
            panic!("a callback to {} cannot be postponed; {UNPOSTPONED}", T::NAME);
        }
        Callback::entry(self.port.id, entry, Receivers::One(self.rank))
    }

    /// Postpones the message until no message is in flight.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn at_quiescence(self) -> Self {
        self.at(When::AtQuiescence)
    }

    /// Postpones the message until no message is in flight and, with `--checkpoint`, the state of the run is saved. A run that
    /// is restarted with this state begins with this message. A run that is restarted with an earlier state, of a sync point, delivers the
    /// message when nothing is in flight.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn at_checkpoint(self) -> Self {
        self.at(When::AtCheckpoint)
    }

    /// Postpones the message by a time: see the method of the proxy.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn after(self, duration: Duration) -> Self {
        self.at(When::After(duration))
    }

    #[track_caller]
    fn at(self, when: When) -> Self {
        if self.when != When::Now {
            panic!("a message to {} cannot wait for two things; {ONCE}", T::NAME);
        }
        Target { when, ..self }
    }
}

/// Several elements as the receivers of a message.
pub struct Targets<'a, T: Chare> {
    pe: &'a PeCx,
    port: &'a Port<T>,
    to: Receivers,
    when: When,
}

impl<'a, T: Chare> Targets<'a, T> {
    pub(crate) fn all(pe: &'a PeCx, port: &'a Port<T>) -> Self {
        Self::these(pe, port, Receivers::All)
    }

    pub(super) fn these(pe: &'a PeCx, port: &'a Port<T>, to: Receivers) -> Self {
        Targets { pe, port, to, when: When::Now }
    }

    pub(crate) fn section(pe: &'a PeCx, port: &'a Port<T>, members: Members) -> Self {
        Self::these(pe, port, Receivers::Section(members))
    }

    /// Sends `msg` to each of these elements.
    pub fn send(self, msg: T::Msg) {
        let Targets { pe, port, to, when } = self;
        if let When::After(duration) = when {
            return port.keep_for(pe, to, msg, duration);
        }
        if when != When::Now {
            return port.postpone(pe, to, msg, when == When::AtCheckpoint);
        }
        if let Receivers::Section(members) = &to
            && pe.delivery.has(post_delivery::COMM)
        {
            let bytes = codec::size(&msg);
            let running = pe.delivery.running.element();
            members.keys().iter().for_each(|&key| pe.recorder.sent(running, key, bytes));
        }
        port.send_to(pe, &to, msg);
    }

    /// Contributes to a reduction whose result these elements receive.
    ///
    /// # Panics
    /// If the message is postponed.
    #[track_caller]
    pub fn contribute(self) -> Contribution<'a, T> {
        if self.when != When::Now {
            panic!("a contribution to {} cannot be postponed; {NOT_LATER}", T::NAME);
        }
        Contribution::new(self.pe, self.port, self.to)
    }

    /// Contributes to a reduction over a section whose result these elements receive. The running element is a member of the
    /// section.
    ///
    /// # Panics
    /// If the message is postponed, outside an entry method, and if the running element is not a member.
    #[track_caller]
    pub fn contribute_in<S: Chare>(self, section: &Section<S>) -> Contribution<'a, T> {
        self.contribute().over(section)
    }

    /// Names an entry of these elements as the receiver of values. `entry` has one argument of type `V`, or none if `V` is `()`.
    ///
    /// # Panics
    /// If the message is postponed.
    #[track_caller]
    pub fn callback<V>(self, entry: usize) -> Callback<V> {
        if self.when != When::Now {
            panic!("a callback to {} cannot be postponed; {UNPOSTPONED}", T::NAME);
        }
        Callback::entry(self.port.id, entry, self.to)
    }

    /// Postpones the message until no message is in flight.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn at_quiescence(self) -> Self {
        self.at(When::AtQuiescence)
    }

    /// Postpones the message until no message is in flight and, with `--checkpoint`, the state of the run is saved. A run that
    /// is restarted with this state begins with this message.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn at_checkpoint(self) -> Self {
        self.at(When::AtCheckpoint)
    }

    /// Postpones the message by a time: see the method of the proxy.
    ///
    /// # Panics
    /// If the message is postponed already.
    #[track_caller]
    pub fn after(self, duration: Duration) -> Self {
        self.at(When::After(duration))
    }

    #[track_caller]
    fn at(self, when: When) -> Self {
        if self.when != When::Now {
            panic!("a message to {} cannot wait for two things; {ONCE}", T::NAME);
        }
        Targets { when, ..self }
    }
}

/// A reduction whose result goes to this target.
pub struct Contribution<'a, T: Chare> {
    pe: &'a PeCx,
    port: &'a Port<T>,
    to: Receivers,
    /// Whether each receiver receives the combination of the contributions up to its own.
    prefixes: bool,
    /// The section that contributes, and the position of the element in it; none for the array of the element.
    section: Option<(SectionId, u32)>,
}

impl<'a, T: Chare> Contribution<'a, T> {
    fn new(pe: &'a PeCx, port: &'a Port<T>, to: Receivers) -> Self {
        Contribution { pe, port, to, prefixes: false, section: None }
    }

    /// The running element.
    #[track_caller]
    fn contributor(&self) -> Running {
        match self.pe.delivery.running.get() {
            Some(running) => running,
            None => Self::refuse(),
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse() -> ! {
        panic!(
            "only elements contribute to a reduction; call `contribute` for {} in an entry method",
            T::NAME
        )
    }

    /// The reduction over a section.
    #[track_caller]
    fn over<S: Chare>(self, section: &Section<S>) -> Self {
        let Running { array, rank, .. } = self.contributor();
        let (key, members) = (element_key(array, rank), &section.members);
        let Some(position) = members.position(key) else {
            panic!(
                "{} contributes to a section of {} of {}, and is not a member; only its members contribute, which \
                 `section.contains(cx, cx.array(), cx.index())` tests",
                self.pe.element(key),
                count(section.len() as u64, "element"),
                S::NAME
            );
        };
        self.pe.collectives.remember(members);
        Contribution { section: Some((members.id(), position)), ..self }
    }

    /// Instead of one result for all, each element receives the combination of the contributions up to and including its own, in
    /// rank order. The elements that contribute are the elements that receive: `cx.peers().contribute().prefix()`, or
    /// `section.all(cx).contribute_in(&section).prefix()`.
    ///
    /// PE 0 combines the contributions and sends a message to each element.
    ///
    /// # Panics
    /// If the receivers are others than the elements that contribute, or outside an entry method.
    #[track_caller]
    pub fn prefix(self) -> Self {
        let own = self.contributor().array;
        let is_own = match (&self.to, self.section) {
            (Receivers::All, None) => own == self.port.id,
            (Receivers::Section(members), Some((section, _))) => members.id() == section,
            _ => false,
        };
        if !is_own {
            panic!(
                "the prefixes of a reduction go to the elements that contribute; call `cx.peers().contribute().prefix()`, or \
                 `section.all(cx).contribute_in(&section).prefix()`, for {}",
                T::NAME
            );
        }
        Contribution { prefixes: true, ..self }
    }

    /// Contributes `msg` for the running element.
    ///
    /// # Panics
    /// Outside an entry method: only elements contribute.
    #[inline(always)]
    #[track_caller]
    pub fn send(self, msg: T::Msg) {
        if self.pe.delivery.running.element().is_none() {
            Self::refuse();
        }
        let Contribution { pe, port, to, prefixes, section } = self;
        match section {
            None => port.offer(&pe.delivery, &to, prefixes, msg),
            Some(section) => port.offer_other(&pe.delivery, Some(section), Offered { to, prefixes, msg }),
        }
    }
}

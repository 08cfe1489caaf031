//! Where a message goes, and when: what the proxies that `#[chare]` generates are made of.
//!
//! Everything a program can wait for is a send, postponed: to now, to the end of a reduction, to
//! after load balancing, or to quiescence.

use crate::array::Port;
use crate::chare::Chare;
use crate::codec;
use crate::context::{PeCx, after};
use crate::load::element_key;
use crate::order::Receivers;
use std::rc::Rc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Now,
    AfterSync,
    AtQuiescence,
}

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
    #[inline(always)]
    pub fn send(self, msg: T::Msg) {
        let Target { pe, port, rank, when } = self;
        if when != When::Now {
            return self.postpone(msg);
        }
        if pe.after.get() & (after::COMM | after::TRACED) != 0 {
            pe.record(element_key(port.id, rank), codec::size(&msg));
        }
        port.send(pe, rank, msg);
    }

    #[cold]
    #[inline(never)]
    fn postpone(self, msg: T::Msg) {
        let Target { pe, port, rank, when } = self;
        if when == When::AfterSync {
            let twice = pe.after.get() & after::SYNC != 0;
            assert!(!twice, "{} called `at_sync` twice in one entry method", port.name(rank));
            port.resume.set(Some(msg));
            pe.after.set(pe.after.get() | after::SYNC);
        } else {
            let port = pe.shared_port(port);
            pe.when_quiet(Box::new(move |pe| port.send(pe, rank, msg)));
        }
    }

    /// Contributes to a reduction whose result this element receives.
    pub fn contribute(self) -> Contribution<'a, T> {
        assert!(self.when == When::Now, "a contribution cannot be postponed: {}", T::NAME);
        Contribution { pe: self.pe, port: self.port, to: Receivers::One(self.rank) }
    }

    /// Postpones the message until nothing is in flight.
    pub fn at_quiescence(self) -> Self {
        assert!(self.when == When::Now, "a message waits for one thing at a time: {}", T::NAME);
        Target { when: When::AtQuiescence, ..self }
    }
}

/// Several elements as the receivers of a message.
pub struct Targets<'a, T: Chare> {
    pe: &'a PeCx,
    port: &'a Port<T>,
    to: Receivers,
    at_quiescence: bool,
}

impl<'a, T: Chare> Targets<'a, T> {
    pub(crate) fn all(pe: &'a PeCx, port: &'a Port<T>) -> Self {
        Targets { pe, port, to: Receivers::All, at_quiescence: false }
    }

    pub(crate) fn section(pe: &'a PeCx, port: &'a Port<T>, ranks: Box<[u32]>) -> Self {
        Targets { pe, port, to: Receivers::Some(ranks), at_quiescence: false }
    }

    /// Sends `msg` to each of them.
    pub fn send(self, msg: T::Msg) {
        let Targets { pe, port, to, at_quiescence } = self;
        if at_quiescence {
            let port = pe.shared_port(port);
            return pe.when_quiet(Box::new(move |pe| port.send_to(pe, &to, msg)));
        }
        if let Receivers::Some(ranks) = &to
            && pe.after.get() & (after::COMM | after::TRACED) != 0
        {
            let bytes = codec::size(&msg);
            for &rank in ranks {
                pe.record(element_key(port.id, rank), bytes);
            }
        }
        port.send_to(pe, &to, msg);
    }

    /// Contributes to a reduction whose result these elements receive.
    pub fn contribute(self) -> Contribution<'a, T> {
        assert!(!self.at_quiescence, "a contribution cannot be postponed: {}", T::NAME);
        Contribution { pe: self.pe, port: self.port, to: self.to }
    }

    /// Postpones the message until nothing is in flight.
    pub fn at_quiescence(self) -> Self {
        Targets { at_quiescence: true, ..self }
    }
}

/// A reduction whose result goes to this target.
pub struct Contribution<'a, T: Chare> {
    pe: &'a PeCx,
    port: &'a Port<T>,
    to: Receivers,
}

impl<T: Chare> Contribution<'_, T> {
    /// Contributes `msg` on behalf of the element that runs.
    ///
    /// # Panics
    /// Outside an entry method: only elements contribute.
    #[inline]
    pub fn send(self, msg: T::Msg) {
        let Contribution { pe, port, to } = self;
        assert!(pe.running().is_some(), "only an entry method can contribute to a reduction ({})", T::NAME);
        pe.offer(port, to, msg);
        pe.after.set(pe.after.get() | after::CONTRIBUTED);
    }
}

impl<T: Chare> Port<T> {
    /// Sends a message to whoever is to receive it.
    pub(crate) fn send_to(&self, pe: &PeCx, to: &Receivers, msg: T::Msg) {
        match to {
            Receivers::One(rank) => self.send(pe, *rank, msg),
            Receivers::All => self.broadcast(pe, msg),
            Receivers::Some(ranks) => {
                if let Some((last, others)) = ranks.split_last() {
                    for &rank in others {
                        self.send(pe, rank, T::copy(&msg));
                    }
                    self.send(pe, *last, msg);
                }
            }
        }
    }
}

impl PeCx {
    /// The port as a counted pointer, for what is sent later.
    fn shared_port<T: Chare>(&self, port: &Port<T>) -> Rc<Port<T>> {
        let port: Rc<dyn std::any::Any> = self.ports[usize::from(port.id)].clone();
        port.downcast().expect("a port knows its own number")
    }
}

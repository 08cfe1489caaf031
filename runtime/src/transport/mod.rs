//! How messages travel between PEs: the only room that knows channels, threads and networks.
//!
//! Everything above it says *to which PE*; a carrier takes values (between threads of one process,
//! [`inbox`]) or bytes (where memory is not shared; [`simulated`] is such a place inside one thread).

mod inbox;
mod machine;
mod schedule;
pub(crate) mod simulated;
pub(crate) mod threads;

pub(crate) use inbox::{Bag, Bells, Mail};

use crate::context::PeCx;
use serde::Serialize;
use std::rc::Rc;

/// Who carries what one PE sends to others.
pub(crate) enum Carrier {
    /// Mailboxes in shared memory.
    Threads,
    /// The mailbag of the one thread that all PEs share.
    Simulated(Rc<simulated::Mailbag>),
}

impl PeCx {
    /// Gives an order to another PE: through that mailbox, or as bytes about that array (or the run).
    pub(crate) fn post<M, O: Serialize>(
        &self,
        mail: &Mail<M, O>,
        array: Option<u16>,
        to: u32,
        order: O,
        what: impl FnOnce() -> String,
    ) {
        match &self.carrier {
            Carrier::Threads => mail.push(self.rank, to, &self.node.bells, |bag| bag.orders.push(order)),
            Carrier::Simulated(bag) => bag.add(self, to, array, self.encoded(&order, what)),
        }
    }

    /// Books what it costs this PE to send a message to another; returns when it leaves, in virtual seconds.
    fn packet_leaves(&self) -> f64 {
        let Some(clock) = self.ticker.simulated() else { return 0.0 };
        clock.spend(self.node.settings.simulation.as_ref().map_or(0.0, |it| it.overhead));
        clock.now()
    }

    /// Whether what another PE is given need not be encoded.
    pub(crate) fn shares_memory(&self) -> bool {
        matches!(self.carrier, Carrier::Threads)
    }

    /// Whether nobody but this PE itself has work for it, as far as can be seen at a glance.
    #[inline(always)]
    pub(crate) fn quiet_outside(&self) -> bool {
        match &self.carrier {
            Carrier::Threads => self.node.bells.quiet(self.rank) && !self.node.stopped(),
            Carrier::Simulated(bag) => bag.coin() && !self.node.stopped(),
        }
    }
}

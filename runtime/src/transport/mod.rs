//! How messages travel between PEs: the only room that knows channels, threads and networks.
//!
//! Everything above it says *to which PE*; a carrier takes values (between threads of one process,
//! [`inbox`]) or bytes (where memory is not shared; [`simulated`] is such a place inside one thread).

mod inbox;
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
    /// The simulated network of one thread.
    Simulated(Rc<simulated::Network>),
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
            Carrier::Simulated(network) => {
                network.send(self.rank, to, array, self.encoded(&order, what));
            }
        }
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
            Carrier::Simulated(network) => network.coin() && !self.node.stopped(),
        }
    }
}

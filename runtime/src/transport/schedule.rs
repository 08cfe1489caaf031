//! What the schedulers of all transports do alike.

use crate::context::{ARRAY_BITS, PE_ORDERS, PeCx};
use crate::elements::Manager;

/// Runs what a PE has for itself.
pub(super) fn run_queued(pe: &PeCx, managers: &mut [Box<dyn Manager>], queued: u64) {
    let arrays = queued & !PE_ORDERS;
    for bit in bits(arrays & pe.expedited).chain(bits(arrays & !pe.expedited)) {
        for at in (bit..managers.len()).step_by(ARRAY_BITS) {
            managers[at].local(pe);
        }
    }
    if queued & PE_ORDERS != 0 {
        // Only those that are there now: an order may lead to another without end, and others wait.
        let count = pe.orders.borrow().len();
        for _ in 0..count {
            let order = pe.orders.borrow_mut().pop_front();
            let Some(order) = order else { break };
            pe.obeys_itself(None);
            pe.obey(order, managers);
        }
    }
}

/// Sends on what was collected for others, which must not wait for elements that may be elsewhere.
pub(super) fn pass_on(pe: &PeCx, managers: &mut [Box<dyn Manager>]) {
    for manager in managers {
        manager.idle(pe);
    }
    for port in &pe.ports {
        port.flush(pe);
    }
}

/// The positions of the bits that are set.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as usize;
        word &= word.wrapping_sub(1);
        (bit < 64).then_some(bit)
    })
}

//! Which message or order of a PE to itself a PE of a simulated machine takes.

use crate::elements::Held;
use crate::pe::{ARRAY_BITS, PE_ORDERS, PeCx, array_bit};
use crate::scheduler::{first_by_priority, run_one_by_priority, run_queued, without_priorities};

/// The lowest priority of the messages of a PE to itself, of the arrays `queued`.
pub(super) fn priority(pe: &PeCx, managers: &[Held], queued: u64) -> i64 {
    let first = first_by_priority(pe, managers, queued & pe.out.prioritized).map(|(priority, _)| priority);
    let others = if without_priorities(pe, managers, queued) == 0 { None } else { Some(0) };
    first.into_iter().chain(others).min().unwrap_or(0)
}

/// Runs one message or order of a PE to itself, of the arrays `queued`: by priority, and in round-robin order of the arrays
/// among those without priorities. One array with priorities, whose first message is as urgent as theirs, is among them.
pub(super) fn run_one(pe: &PeCx, managers: &[Held], mut queued: u64, next: &mut u32) {
    let others = without_priorities(pe, managers, queued);
    let first = first_by_priority(pe, managers, queued & pe.out.prioritized);
    if let Some((priority, at)) = first {
        let bit = array_bit(at as u16);
        if priority < 0 || others == 0 {
            if managers.len() <= ARRAY_BITS {
                // No other array shares the bit, which is set again if the array has more.
                pe.out.queued.set(pe.out.queued.get() & !bit);
            }
            return run_one_by_priority(pe, managers, at);
        }
        queued = if priority > 0 { others } else { others | bit };
    }
    let bit = (queued.rotate_right(*next).trailing_zeros() + *next) % 64;
    *next = (bit + 1) % 64;
    pe.out.queued.set(pe.out.queued.get() & !(1 << bit));
    if 1 << bit == PE_ORDERS {
        return run_queued(pe, managers, PE_ORDERS);
    }
    // Several arrays may share a bit.
    let is_shared = managers.len() > ARRAY_BITS;
    let is_less_urgent =
        |array: usize| managers[array].borrow_mut().first_priority(pe).is_some_and(|priority| priority > 0);
    for array in (bit as usize..managers.len()).step_by(ARRAY_BITS) {
        match first {
            // Less urgent than those without priorities, which share its bit.
            _ if is_shared && is_less_urgent(array) => pe.out.queue(1 << bit),
            Some((_, at)) if at == array => run_one_by_priority(pe, managers, at),
            _ => managers[array].borrow_mut().one(pe),
        }
    }
}

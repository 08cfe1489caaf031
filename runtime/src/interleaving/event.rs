//! The events of a PE, and their bytes.
//!
//! An event begins with a number: eight times the default answers before the event, plus the kind. Numbers are
//! LEB128: seven bits per byte, the lowest first. A batch of mail usually has four bytes.

/// An answer of a PE that is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The PE takes messages from a mailbox.
    Mail {
        /// Whether the PE took other mail before, in the same turn.
        same_turn: bool,
        /// The number of the mailbox ([`Mail::number`](crate::inbox::Mail::number)).
        mailbox: u32,
        /// How many messages it takes.
        count: u32,
        /// Eight bits of the digest of all executions on this PE so far.
        check: u8,
    },
    /// Another PE has sent work, or the run has ended: the PE interrupts its own work.
    Break,
    /// The PE finds quiescence.
    Quiet,
    /// PE 0 decides a load-balancing step.
    Plan(Plan),
    /// PE 0 decides whether a sync point becomes a load-balancing step.
    Sync {
        /// Whether it does.
        is_step: bool,
    },
    /// The PE sends the message of this number, which has waited for a time.
    Timer(u64),
}

/// What a strategy decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The objects that migrate, by their position in the database of the step, with their new PEs.
    pub(crate) moves: Vec<(u32, u32)>,
    /// Why the assignment of the strategy was not applied.
    pub(crate) error: Option<String>,
}

const MAIL: u64 = 0;
const MAIL_OF_SAME_TURN: u64 = 1;
const BREAK: u64 = 2;
const QUIET: u64 = 3;
const PLAN: u64 = 4;
const FAILED_PLAN: u64 = 5;
const TIMER: u64 = 6;
const SYNC: u64 = 7;

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn get(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn get_u32(rest: &mut &[u8]) -> Option<u32> {
    get(rest)?.try_into().ok()
}

impl Event {
    /// Appends the event, after `defaults` default answers.
    pub(super) fn encode(&self, defaults: u64, bytes: &mut Vec<u8>) {
        let kind = match self {
            Event::Mail { same_turn: false, .. } => MAIL,
            Event::Mail { same_turn: true, .. } => MAIL_OF_SAME_TURN,
            Event::Break => BREAK,
            Event::Quiet => QUIET,
            Event::Plan(Plan { error: None, .. }) => PLAN,
            Event::Plan(Plan { error: Some(_), .. }) => FAILED_PLAN,
            Event::Timer(_) => TIMER,
            Event::Sync { .. } => SYNC,
        };
        put(bytes, defaults << 3 | kind);
        match self {
            Event::Break | Event::Quiet => {}
            Event::Timer(number) => put(bytes, *number),
            Event::Sync { is_step } => put(bytes, u64::from(*is_step)),
            &Event::Mail { mailbox, count, check, .. } => {
                put(bytes, mailbox.into());
                put(bytes, count.into());
                bytes.push(check);
            }
            Event::Plan(Plan { moves, error }) => {
                put(bytes, moves.len() as u64);
                let mut last = 0;
                for &(object, to) in moves {
                    // Objects are sorted, so their differences are small.
                    put(bytes, u64::from(object - last));
                    put(bytes, to.into());
                    last = object;
                }
                if let Some(error) = error {
                    put(bytes, error.len() as u64);
                    bytes.extend_from_slice(error.as_bytes());
                }
            }
        }
    }

    /// Takes the first event of `rest`, with the number of default answers before it. `None` if the bytes are no event.
    pub(super) fn decode(rest: &mut &[u8]) -> Option<(u64, Event)> {
        let number = get(rest)?;
        let event = match number & 7 {
            kind @ (MAIL | MAIL_OF_SAME_TURN) => {
                let (mailbox, count) = (get_u32(rest)?, get_u32(rest)?);
                let (&check, after) = rest.split_first()?;
                *rest = after;
                Event::Mail { same_turn: kind == MAIL_OF_SAME_TURN, mailbox, count, check }
            }
            BREAK => Event::Break,
            QUIET => Event::Quiet,
            TIMER => Event::Timer(get(rest)?),
            SYNC => Event::Sync { is_step: get(rest)? != 0 },
            kind @ (PLAN | FAILED_PLAN) => {
                let mut moves = Vec::new();
                let mut last = 0u32;
                for _ in 0..get(rest)? {
                    last = last.checked_add(get_u32(rest)?)?;
                    moves.push((last, get_u32(rest)?));
                }
                let error = if kind == PLAN { None } else { Some(text(rest)?) };
                Event::Plan(Plan { moves, error })
            }
            _ => return None,
        };
        Some((number >> 3, event))
    }
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(get(rest)?).ok()?;
    let (text, after) = rest.split_at_checked(length)?;
    *rest = after;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events() -> impl Strategy<Value = Event> {
        let mail = (any::<bool>(), any::<u32>(), any::<u32>(), any::<u8>())
            .prop_map(|(same_turn, mailbox, count, check)| Event::Mail { same_turn, mailbox, count, check });
        let moves = prop::collection::btree_map(any::<u32>(), any::<u32>(), 0..9);
        let plan = (moves, prop::option::of(".{0,9}"))
            .prop_map(|(moves, error)| Event::Plan(Plan { moves: moves.into_iter().collect(), error }));
        let timer = any::<u64>().prop_map(Event::Timer);
        let sync = any::<bool>().prop_map(|is_step| Event::Sync { is_step });
        prop_oneof![mail, Just(Event::Break), Just(Event::Quiet), plan, timer, sync]
    }

    proptest! {
        #[test]
        fn events_are_read_as_written(all in prop::collection::vec((0u64..1 << 61, events()), 0..9)) {
            let mut bytes = Vec::new();
            all.iter().for_each(|(defaults, event)| event.encode(*defaults, &mut bytes));
            let mut rest = &bytes[..];
            for expected in all {
                prop_assert_eq!(Event::decode(&mut rest), Some(expected));
            }
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn other_bytes_are_refused_without_a_panic(bytes: Vec<u8>) {
            let mut rest = &bytes[..];
            while Event::decode(&mut rest).is_some() {}
        }
    }

    #[test]
    fn a_batch_has_four_bytes() {
        let mut bytes = Vec::new();
        Event::Mail { same_turn: false, mailbox: 7, count: 1, check: 200 }.encode(3, &mut bytes);
        assert_eq!(bytes.len(), 4);
    }
}

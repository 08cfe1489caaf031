//! The work of a PE, read from the records of its log: executions of elements and own executions, each with what happened
//! in it.

use super::{BY_ORDER, NO_ARRAY, NO_CAUSE, PeEvents, Record, TIME, kind};

/// The number of a message or an order, in the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A message between PEs of this process.
    Message { process: u32, number: u32 },
    /// An order on a channel from a PE to a PE.
    Order { channel: u16, from: u32, to: u32, number: u32 },
}

/// The array and the rank of an element.
pub(super) type Element = (u16, u32);

/// Why a message is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kept {
    /// The guard of its entry is false.
    Pending,
    /// Its element is not on this PE.
    Early { pe: u32 },
}

/// What happens in a piece of work, in order. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// A message or an order is sent; `receiver` if it is an element.
    Sends {
        key: Key,
        to: u32,
        receiver: Option<Element>,
        bytes: u64,
    },
    /// A message is kept; now there are `kept` of this kind for the element.
    Keeps {
        why: Kept,
        element: Element,
        entry: u16,
        cause: Option<Key>,
        kept: usize,
        time: u64,
    },
    /// The `nth` of `kept` messages is delivered; `number` if it is queued first, with this number.
    Releases {
        why: Kept,
        element: Element,
        nth: usize,
        kept: usize,
        number: Option<Key>,
        time: u64,
    },
    /// The messages kept for an element are sent again.
    Drops {
        element: Element,
    },
    /// The message `cause` continues under another number.
    Renames {
        number: Key,
        cause: Option<Key>,
    },
    Leaves {
        element: Element,
        to: u32,
        time: u64,
    },
    WasQuiet,
    Exits {
        time: u64,
    },
}

/// What a PE works at.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Executes { element: Element, entry: u16, charged_seconds: f64 },
    Own,
}

/// A piece of work.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) what: What,
    pub(super) cause: Option<Key>,
    /// Whether it follows the work before without another message in between.
    pub(super) same_turn: bool,
    pub(super) events: Box<[Event]>,
}

/// Whether records of a kind have a time.
pub(super) fn has_time(of: u64) -> bool {
    matches!(
        of,
        kind::RESUMED
            | kind::EXECUTED
            | kind::OWN
            | kind::PENDING
            | kind::EARLY
            | kind::RELEASED
            | kind::LEFT
            | kind::EXIT
    )
}

fn element(word: u64) -> Element {
    ((word >> 48) as u16, word as u32)
}

fn entry(word: u64) -> u16 {
    (word >> 32) as u16
}

/// Reads the records of one PE.
struct Reader {
    pe: u32,
    process: u32,
    /// The end of the work before; none at the begin of a log whose oldest records were dropped.
    last: Option<u64>,
    order: Option<Key>,
    /// The order that caused the work before.
    order_before: Option<Key>,
    events: Vec<Event>,
    works: Vec<Work>,
}

/// The work of a PE of a process, in order, for which its records are taken; `aligned` is a time on the clock of process 0.
/// Also returns the time after which no record of work is lost, if some record has a time.
pub(super) fn works(
    log: &mut PeEvents,
    process: u32,
    aligned: impl Fn(u64) -> u64,
) -> (Vec<Work>, Option<u64>) {
    let mut reader = Reader {
        pe: log.pe,
        process,
        last: None,
        order: None,
        order_before: None,
        events: Vec::new(),
        works: Vec::new(),
    };
    for record in std::mem::take(&mut log.words).chunks_exact(4) {
        let of = record[0] >> 60;
        let first = if has_time(of) { aligned(record[0] & TIME) } else { record[0] & TIME };
        reader.read(of, [first, record[1], record[2], record[3]]);
    }
    let first = reader.works.first().map(|work| work.begin);
    (reader.works, first.or(reader.last))
}

impl Reader {
    /// The message of a number, or the cause of this number.
    fn key(&self, number: u64) -> Option<Key> {
        match number as u32 {
            NO_CAUSE => None,
            BY_ORDER => self.order,
            number => Some(Key::Message { process: self.process, number }),
        }
    }

    /// Reads a record of a kind; its first word has only the time, or what stands there instead.
    fn read(&mut self, of: u64, [first, second, third, fourth]: Record) {
        let renamed = Key::Message { process: self.process, number: third as u32 };
        match of {
            kind::RESUMED => self.last = Some(first),
            kind::EXECUTED => {
                let charged_seconds = f64::from_bits(fourth);
                let what = What::Executes { element: element(second), entry: entry(second), charged_seconds };
                self.ends(first, what, self.key(third));
            }
            kind::OWN => self.ends(first, What::Own, self.key(second)),
            kind::SENT => {
                let receiver = Some(element(second));
                self.events.push(Event::Sends { key: renamed, to: first as u32, receiver, bytes: fourth });
            }
            kind::POSTED => {
                let (channel, to) = ((third >> 32) as u16, first as u32);
                let key = Key::Order { channel, from: self.pe, to, number: third as u32 };
                let receiver = Some(element(second)).filter(|(array, _)| *array != NO_ARRAY);
                self.events.push(Event::Sends { key, to, receiver, bytes: fourth });
            }
            kind::TAKEN => {
                let (channel, from) = ((second >> 32) as u16, second as u32);
                self.order = Some(Key::Order { channel, from, to: self.pe, number: third as u32 });
            }
            kind::PENDING | kind::EARLY => {
                let why = if of == kind::PENDING { Kept::Pending } else { Kept::Early { pe: self.pe } };
                self.events.push(Event::Keeps {
                    why,
                    element: element(second),
                    entry: entry(second),
                    cause: self.key(third),
                    kept: fourth as usize,
                    time: first,
                });
            }
            kind::RELEASED => self.events.push(Event::Releases {
                why: Kept::Pending,
                element: element(second),
                nth: (third >> 32) as usize,
                kept: third as u32 as usize,
                number: None,
                time: first,
            }),
            kind::REQUEUED => self.events.push(Event::Releases {
                why: Kept::Early { pe: self.pe },
                element: element(second),
                nth: 0,
                kept: fourth as usize,
                number: Some(renamed),
                time: 0,
            }),
            kind::DROPPED => self.events.push(Event::Drops { element: element(second) }),
            kind::DEFERRED => {
                let cause = self.key(fourth);
                self.events.push(Event::Renames { number: renamed, cause });
            }
            kind::LEFT => {
                let to = third as u32;
                self.events.push(Event::Leaves { element: element(second), to, time: first });
            }
            kind::QUIET => self.events.push(Event::WasQuiet),
            kind::EXIT => self.events.push(Event::Exits { time: first }),
            _ => {}
        }
    }

    /// A piece of work ends.
    fn ends(&mut self, end: u64, what: What, cause: Option<Key>) {
        let events = self.events.drain(..).collect::<Box<[Event]>>();
        let Some(begin) = self.last.replace(end) else { return };
        let order = cause.filter(|cause| matches!(cause, Key::Order { .. }));
        let is_released = events.iter().any(|it| matches!(it, Event::Releases { why: Kept::Pending, .. }));
        let same_turn =
            !self.works.is_empty() && (is_released || order.is_some() && order == self.order_before);
        self.order_before = order;
        self.works.push(Work { begin, end: end.max(begin), what, cause, same_turn, events });
    }
}

//! Batches of encoded orders for PEs of other processes.
//!
//! A PE encodes an order straight behind what it has for the same receiver ([`Post`]). A batch leaves the PE at the end of
//! a turn, or as soon as it is large, into the [`Desk`] of its process, from where the transport sends it. One batch is
//! one message of the network: its cost is shared by all its orders.
//!
//! A batch begins with its receiver (4 bytes). Then every order has a header of 8 bytes, its array (2 bytes) and the
//! length of its encoding (6 bytes). Numbers are little-endian. If the run is recorded, the origin of a batch comes first,
//! as if it were an order.

use crate::codec::{self, CodecError};
use crate::desk::{Desk, FULL_BYTES};
use equipoise_model::table::count;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// In the place of an array: an order about the run. No array has this number.
const RUN: u16 = u16::MAX;

/// In the place of an array: this is no order, but the [`Origin`] of the orders that follow.
const ORIGIN: u16 = u16::MAX - 1;

/// In the place of a receiver: the message is a control message between processes, and no batch of orders.
const CONTROL: u32 = u32::MAX;

/// The number of bytes before the first order.
const RECEIVER_BYTES: usize = 4;

/// The number of bytes before every order.
const HEADER_BYTES: usize = 8;

/// What a message of the network is.
pub(crate) enum Kind {
    /// Orders for this PE.
    Orders(u32),
    /// A control message between processes.
    Control,
}

/// What the first bytes of a message of the network say; none if there are too few.
pub(crate) fn kind(batch: &[u8]) -> Option<Kind> {
    let receiver = u32::from_le_bytes(*batch.first_chunk()?);
    Some(if receiver == CONTROL { Kind::Control } else { Kind::Orders(receiver) })
}

/// A control message between processes as a message of the network.
pub(crate) fn control<C: Serialize>(desk: &Desk, message: &C) -> Result<Vec<u8>, CodecError> {
    let mut bytes = desk.buffer();
    bytes.extend_from_slice(&CONTROL.to_le_bytes());
    codec::encode_into(message, &mut bytes)?;
    Ok(desk.in_fitting_buffer(bytes))
}

/// The encoding of a control message.
pub(crate) fn control_bytes(batch: &[u8]) -> &[u8] {
    batch.get(RECEIVER_BYTES..).unwrap_or_default()
}

/// An order of a batch: its array (`None`: an order about the run), and its encoding.
type Encoded<'a> = (Option<u16>, &'a [u8]);

/// The orders of a batch; at last what is wrong with the batch, if it is damaged.
pub(crate) fn orders(batch: &[u8]) -> impl Iterator<Item = Result<Encoded<'_>, String>> {
    let mut rest = batch.get(RECEIVER_BYTES..).unwrap_or_default();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some((order, next)) = first_order(rest) else {
            let bytes = count(std::mem::take(&mut rest).len() as u64, "byte");
            let what = "at its end that are no order; the network or the transport is at fault";
            return Some(Err(format!("is damaged: it has {bytes} {what}")));
        };
        rest = next;
        Some(Ok(order))
    })
}

/// The first order of these bytes, and the bytes behind it.
fn first_order(bytes: &[u8]) -> Option<(Encoded<'_>, &[u8])> {
    let (header, behind) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let header = u64::from_le_bytes(*header);
    let (array, length) = (header as u16, (header >> 16) as usize);
    let (order, next) = behind.split_at_checked(length)?;
    Some((((array != RUN).then_some(array), order), next))
}

/// The batches that a PE is filling.
pub(crate) struct Post {
    desk: Arc<Desk>,
    /// By receiver.
    open: Vec<RefCell<Vec<u8>>>,
    /// The receivers whose batch is not empty.
    receivers: RefCell<Vec<u32>>,
    /// Whether this PE itself drives the connection to other processes, and so must end its turns from time to time.
    drives: bool,
    /// How often the PE was asked whether it may continue since its last turn.
    asked: Cell<u32>,
    /// By process: whether it is on another computer.
    is_far: Box<[bool]>,
    /// The number of PEs in each process.
    local_pes: u32,
    /// The messages to other processes on this computer, and to other computers, so far.
    near: Cell<Amount>,
    far: Cell<Amount>,
}

/// Messages, and their encoded bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amount {
    /// The number of messages, including those of the runtime.
    pub messages: u64,
    /// Their encoded bytes.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, other: Amount) {
        self.messages += other.messages;
        self.bytes += other.bytes;
    }
}

/// Where the first order of a batch comes from, for recordings. The others follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The PE that sends it.
    pub(crate) pe: u32,
    /// Its number among the orders from this PE to its receiver.
    pub(crate) number: u32,
}

impl Origin {
    /// The origin in the place of an order, if it is one.
    pub(crate) fn of(array: Option<u16>, order: &[u8]) -> Option<Origin> {
        let (pe, number) = order.split_first_chunk::<4>().filter(|_| array == Some(ORIGIN))?;
        let number = *number.first_chunk::<4>()?;
        Some(Origin { pe: u32::from_le_bytes(*pe), number: u32::from_le_bytes(number) })
    }
}

/// How often a PE that drives the connection may continue before it ends its turn.
const ASKED: u32 = 8;

impl Post {
    /// The batches of a PE. `is_far` says of every process whether it is on another computer; each has `local_pes` PEs.
    pub(crate) fn new(desk: Arc<Desk>, is_far: Box<[bool]>, local_pes: u32, drives: bool) -> Self {
        Post {
            desk,
            open: (0..is_far.len() * local_pes as usize).map(|_| RefCell::default()).collect(),
            is_far,
            local_pes,
            near: Cell::default(),
            far: Cell::default(),
            receivers: RefCell::default(),
            drives,
            asked: Cell::new(0),
        }
    }

    /// The messages so far to other processes on this computer, and to other computers.
    pub(crate) fn traffic(&self) -> (Amount, Amount) {
        (self.near.get(), self.far.get())
    }

    /// The desk of the process.
    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Adds an order to the batch for a PE of another process.
    ///
    /// # Errors
    /// If the order cannot be encoded; then the batch is as before.
    pub(crate) fn add<O: Serialize>(
        &self,
        to: u32,
        array: Option<u16>,
        order: &O,
        origin: Option<Origin>,
    ) -> Result<(), CodecError> {
        let mut open = self.open[to as usize].borrow_mut();
        let is_first = open.is_empty();
        if is_first {
            if open.capacity() == 0 {
                *open = self.desk.buffer();
            }
            open.extend_from_slice(&to.to_le_bytes());
            if let Some(origin) = origin {
                open.extend_from_slice(&(u64::from(ORIGIN) | 8 << 16).to_le_bytes());
                open.extend_from_slice(&origin.pe.to_le_bytes());
                open.extend_from_slice(&origin.number.to_le_bytes());
            }
        }
        let start = open.len();
        open.extend_from_slice(&[0; HEADER_BYTES]);
        if let Err(error) = codec::encode_into(order, &mut open) {
            open.truncate(if is_first { 0 } else { start });
            return Err(error);
        }
        let length = (open.len() - start - HEADER_BYTES) as u64;
        let amount = if self.is_far[(to / self.local_pes) as usize] { &self.far } else { &self.near };
        let Amount { messages, bytes } = amount.get();
        amount.set(Amount { messages: messages + 1, bytes: bytes + length });
        let header = u64::from(array.unwrap_or(RUN)) | length << 16;
        open[start..start + HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
        if is_first {
            self.receivers.borrow_mut().push(to);
        }
        if open.len() >= FULL_BYTES {
            self.receivers.borrow_mut().retain(|&other| other != to);
            self.desk.hand_over(to, std::mem::take(&mut *open));
        }
        Ok(())
    }

    /// Hands all batches over. A PE does so at the end of every turn and before it rests.
    #[inline]
    pub(crate) fn dispatch(&self) {
        self.asked.set(0);
        if !self.receivers.borrow().is_empty() {
            self.dispatch_all();
        }
    }

    fn dispatch_all(&self) {
        for to in self.receivers.borrow_mut().drain(..) {
            self.desk.hand_over(to, self.open[to as usize].take());
        }
    }

    /// Whether PEs must not send more on their own account ([`Desk::is_congested`]).
    #[inline]
    pub(crate) fn is_congested(&self) -> bool {
        self.desk.is_congested()
    }

    /// Whether the PE may continue its turn, as far as the connection to other processes is concerned.
    #[inline]
    pub(crate) fn may_continue(&self) -> bool {
        if !self.drives {
            return true;
        }
        let asked = self.asked.get() + 1;
        self.asked.set(asked);
        asked < ASKED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(desk: &Desk) -> Vec<(u32, Vec<u8>)> {
        let mut taken = Vec::new();
        desk.take_outgoing(&mut taken, &mut 0);
        taken
    }

    #[test]
    fn orders_come_out_as_they_went_in_and_large_batches_leave_at_once() {
        let desk = Arc::new(Desk::new(2));
        let post = Post::new(Arc::clone(&desk), [false, true].into(), 2, false);
        post.add(3, Some(7), &(1u8, 2u8), None).expect("encodes");
        post.add(3, None, &"text", None).expect("encodes");
        post.add(2, Some(0), &(), None).expect("encodes");
        assert!(taken(&desk).is_empty() && desk.sent() == 0);
        let (near, far) = post.traffic();
        assert_eq!((near, far.messages, far.bytes), (Amount::default(), 3, 2 + 12));
        post.dispatch();
        assert_eq!(desk.sent(), 2);
        let mut batches = taken(&desk);
        batches.sort();
        let [(2, empty), (3, two)] = &batches[..] else { panic!("{batches:?}") };
        assert!(matches!(kind(two), Some(Kind::Orders(3))));
        let text = codec::encode(&"text").expect("encodes");
        assert_eq!(orders(two).collect::<Vec<_>>(), [Ok((Some(7), &[1, 2][..])), Ok((None, &text[..]))]);
        assert_eq!(orders(empty).collect::<Vec<_>>(), [Ok((Some(0), &[][..]))]);
        // Cut in the second order, in its header, and in the first order.
        for (length, whole, rest) in [(two.len() - 1, 1, "19 bytes"), (15, 1, "1 byte"), (13, 0, "9 bytes")] {
            let cut: Vec<_> = orders(&two[..length]).collect();
            let Some((Err(error), before)) = cut.split_last() else { panic!("{cut:?}") };
            assert_eq!(before.iter().filter(|order| order.is_ok()).count(), whole);
            assert!(before.len() == whole && error.contains(&format!("it has {rest} at its end")), "{error}");
        }
        post.add(1, Some(1), &vec![0u8; FULL_BYTES], None).expect("encodes");
        assert_eq!((desk.sent(), taken(&desk).len()), (3, 1));
        let bytes = batches.iter().map(|(_, batch)| batch.len()).sum::<usize>();
        assert!(desk.peak_unsent_bytes() > FULL_BYTES as u64 + bytes as u64);
    }

    #[test]
    fn an_order_that_cannot_be_encoded_leaves_no_bytes() {
        struct Refuses;
        impl Serialize for Refuses {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::{Error, SerializeTuple};
                let mut tuple = serializer.serialize_tuple(2)?;
                tuple.serialize_element(&7u64)?;
                Err(S::Error::custom("refused"))
            }
        }
        let desk = Arc::new(Desk::new(2));
        let post = Post::new(Arc::clone(&desk), [false, false].into(), 1, false);
        assert!(post.add(1, None, &Refuses, None).is_err());
        post.dispatch();
        assert_eq!(desk.sent(), 0);
        post.add(1, None, &5u8, None).expect("encodes");
        assert!(post.add(1, None, &Refuses, None).is_err());
        post.dispatch();
        let batches = taken(&desk);
        assert_eq!(orders(&batches[0].1).collect::<Vec<_>>(), [Ok((None, &[5][..]))]);
    }
}

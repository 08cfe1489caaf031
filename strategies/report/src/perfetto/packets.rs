//! The packets of Perfetto's format (`perfetto/trace/trace_packet.proto`), of which timelines need a few fields.

use std::hash::Hash;

use prost::encoding::{self, WireType};
use rustc_hash::FxHashMap;

/// A message of protobuf under construction.
#[derive(Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn number(mut self, tag: u32, value: u64) -> Self {
        encoding::uint64::encode(tag, &value, &mut self.0);
        self
    }

    pub(super) fn double(mut self, tag: u32, value: f64) -> Self {
        encoding::double::encode(tag, &value, &mut self.0);
        self
    }

    /// A number of 8 bytes, such as the number of a flow.
    pub(super) fn fixed(mut self, tag: u32, value: u64) -> Self {
        encoding::fixed64::encode(tag, &value, &mut self.0);
        self
    }

    pub(super) fn text(self, tag: u32, text: &str) -> Self {
        self.bytes(tag, text.as_bytes())
    }

    pub(super) fn fields(self, tag: u32, fields: Fields) -> Self {
        self.bytes(tag, &fields.0)
    }

    fn bytes(mut self, tag: u32, bytes: &[u8]) -> Self {
        encoding::encode_key(tag, WireType::LengthDelimited, &mut self.0);
        encoding::encode_varint(bytes.len() as u64, &mut self.0);
        self.0.extend_from_slice(bytes);
        self
    }
}

/// What happens on a track.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// The tags of the fields of a `TrackEvent`.
const ANNOTATION: u32 = 4;
const NAME: u32 = 10;
const COUNTER_VALUE: u32 = 44;
pub(super) const FLOW: u32 = 47;
pub(super) const LAST_OF_FLOW: u32 = 48;

/// The tags of the fields of `InternedData`.
const EVENT_NAMES: u32 = 2;
const ANNOTATION_NAMES: u32 = 3;

/// The flags of a packet: it begins a table of names, it needs the table.
const BEGINS_NAMES: u64 = 1;
const NEEDS_NAMES: u64 = 2;

/// A file under construction. Each name is in it once, and events have its number.
#[derive(Default)]
pub(super) struct Packets {
    file: Fields,
    /// The time in the run at which its recording begins.
    begin_seconds: f64,
    names: FxHashMap<String, u64>,
    annotations: FxHashMap<&'static str, u64>,
    /// The names that the next packet adds to the table.
    new_names: Fields,
}

impl Packets {
    /// A file whose times are those since the begin of a run, of which the recording begins at `begin_seconds`.
    pub(super) fn new(begin_seconds: f64) -> Packets {
        Packets { begin_seconds, ..Packets::default() }
    }

    /// The bytes of the file.
    pub(super) fn finish(self) -> Vec<u8> {
        self.file.0
    }

    /// Adds a packet. All packets are of one sequence, number 1.
    fn push(&mut self, packet: Fields) {
        let begins = if self.file.0.is_empty() { BEGINS_NAMES } else { 0 };
        let names = std::mem::take(&mut self.new_names);
        let packet = if names.0.is_empty() { packet } else { packet.fields(12, names) };
        let packet = packet.number(10, 1).number(13, NEEDS_NAMES | begins);
        self.file = std::mem::take(&mut self.file).fields(1, packet);
    }

    /// Declares a track; `descriptor` says of what.
    pub(super) fn track(&mut self, uuid: u64, descriptor: Fields) {
        self.push(Fields::default().fields(60, descriptor.number(1, uuid)));
    }

    /// An event of this name, for [`event`](Self::event).
    pub(super) fn named(&mut self, name: &str) -> Fields {
        let number = match self.names.get(name) {
            Some(&number) => number,
            None => number(&mut self.names, name.to_owned(), name, EVENT_NAMES, &mut self.new_names),
        };
        Fields::default().number(NAME, number)
    }

    /// The event with a whole number that has a name, which Perfetto shows with a slice. It shows no number that is 0.
    pub(super) fn annotate(&mut self, event: Fields, name: &'static str, value: u64) -> Fields {
        if value == 0 {
            return event;
        }
        let annotation = self.annotation(name).number(3, value);
        event.fields(ANNOTATION, annotation)
    }

    /// The event with a number that has a name.
    pub(super) fn annotate_number(&mut self, event: Fields, name: &'static str, value: f64) -> Fields {
        let annotation = self.annotation(name).double(5, value);
        event.fields(ANNOTATION, annotation)
    }

    fn annotation(&mut self, name: &'static str) -> Fields {
        let number = number(&mut self.annotations, name, name, ANNOTATION_NAMES, &mut self.new_names);
        Fields::default().number(1, number)
    }

    /// Adds an event of a track; `event` has its name, flows and annotations.
    pub(super) fn event(&mut self, seconds: f64, track: u64, kind: Kind, event: Fields) {
        let event = event.number(9, kind as u64).number(11, track);
        let time = nanoseconds(self.begin_seconds + seconds);
        self.push(Fields::default().number(8, time).fields(11, event));
    }

    pub(super) fn counter(&mut self, seconds: f64, track: u64, value: f64) {
        self.event(seconds, track, Kind::Counter, Fields::default().double(COUNTER_VALUE, value));
    }
}

/// The number of a name in a table; a new name is added to the table, and to the names of the next packet with this tag.
fn number<K: Hash + Eq>(
    table: &mut FxHashMap<K, u64>,
    key: K,
    name: &str,
    tag: u32,
    new_names: &mut Fields,
) -> u64 {
    let next = table.len() as u64 + 1;
    *table.entry(key).or_insert_with(|| {
        let entry = Fields::default().number(1, next).text(2, name);
        *new_names = std::mem::take(new_names).fields(tag, entry);
        next
    })
}

/// A time as the format has it. Times are at least 0, which [`equipoise_network::trace::Trace::check`] makes sure.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

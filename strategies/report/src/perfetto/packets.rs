//! The packets of Perfetto's format (`perfetto/trace/trace_packet.proto`), of which timelines need a few fields.

use prost::encoding::{self, WireType};

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
pub(super) const NAME: u32 = 23;
pub(super) const FLOW: u32 = 47;
pub(super) const LAST_OF_FLOW: u32 = 48;
const COUNTER_VALUE: u32 = 44;
const ANNOTATION: u32 = 4;

/// A file under construction.
#[derive(Default)]
pub(super) struct Packets {
    file: Fields,
}

impl Packets {
    /// The bytes of the file.
    pub(super) fn finish(self) -> Vec<u8> {
        self.file.0
    }

    /// Adds a packet. All packets are of one sequence, number 1.
    fn push(&mut self, packet: Fields) {
        self.file = std::mem::take(&mut self.file).fields(1, packet.number(10, 1));
    }

    /// Declares a track; `descriptor` says of what.
    pub(super) fn track(&mut self, uuid: u64, descriptor: Fields) {
        self.push(Fields::default().fields(60, descriptor.number(1, uuid)));
    }

    /// Adds an event of a track; `event` has its name, flows and annotations.
    pub(super) fn event(&mut self, seconds: f64, track: u64, kind: Kind, event: Fields) {
        let event = event.number(9, kind as u64).number(11, track);
        self.push(Fields::default().number(8, nanoseconds(seconds)).fields(11, event));
    }

    pub(super) fn counter(&mut self, seconds: f64, track: u64, value: f64) {
        self.event(seconds, track, Kind::Counter, Fields::default().double(COUNTER_VALUE, value));
    }
}

/// A whole number with a name, which Perfetto shows with a slice.
pub(super) fn annotate(event: Fields, name: &str, value: u64) -> Fields {
    event.fields(ANNOTATION, Fields::default().text(10, name).number(3, value))
}

/// A number with a name, which Perfetto shows with a slice.
pub(super) fn annotate_seconds(event: Fields, name: &str, seconds: f64) -> Fields {
    event.fields(ANNOTATION, Fields::default().text(10, name).double(5, seconds))
}

/// A time as the format has it. Times are at least 0, which [`equipoise_network::trace::Trace::check`] makes sure.
pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

//! A reader of timelines for Perfetto that shares no code with the writer.

use std::collections::{BTreeMap, BTreeSet};

/// What Perfetto shows of a file.
pub struct Timeline {
    /// All events by time; those of the same time as in the file.
    pub events: Vec<Event>,
}

/// Something that happens on a track.
#[derive(Debug)]
pub struct Event {
    /// When, in nanoseconds.
    pub nanoseconds: u64,
    /// The name of the track.
    pub track: String,
    /// What.
    pub kind: Kind,
    /// Its name; empty for the end of a slice and for counters.
    pub name: String,
    /// The flows that begin or continue here.
    pub flows: Vec<u64>,
    /// The flows that end here.
    pub last_of_flows: Vec<u64>,
}

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// The begin of a slice.
    Begin,
    /// The end of a slice.
    End,
    /// An instant.
    Instant,
    /// A value of a counter.
    Counter(f64),
}

impl Timeline {
    /// Reads a file, and checks that slices of a track do not overlap, and that a flow ends once, after its begin.
    ///
    /// # Panics
    /// If the file is not as it should be.
    pub fn read(file: &[u8]) -> Timeline {
        let mut tracks = BTreeMap::new();
        let mut names = BTreeMap::new();
        let mut numbered = Vec::new();
        for packet in fields(file).into_iter().map(|(_, value)| fields(&value.bytes())) {
            if let Some(descriptor) = first(&packet, 60).map(|it| fields(&it.bytes())) {
                let name = [(2, None), (3, Some(6)), (4, Some(5))].into_iter().find_map(|(tag, inner)| {
                    let named = first(&descriptor, tag)?;
                    let Some(inner) = inner else { return Some(named.text()) };
                    first(&fields(&named.bytes()), inner).map(|it| it.text())
                });
                let uuid = first(&descriptor, 1).expect("a track has a number").number();
                tracks.insert(uuid, name.expect("a track has a name"));
            }
            for (tag, name) in first(&packet, 12).map(|new| fields(&new.bytes())).unwrap_or_default() {
                let name = fields(&name.bytes());
                let [number, text] = [1, 2].map(|tag| first(&name, tag).expect("a name and its number"));
                if tag == 2 {
                    names.insert(number.number(), text.text());
                }
            }
            if let Some(event) = first(&packet, 11).map(|it| fields(&it.bytes())) {
                let time = first(&packet, 8).expect("an event has a time").number();
                numbered.push((time, event));
            }
        }
        numbered.sort_by_key(|(time, _)| *time);
        let events =
            numbered.into_iter().map(|(time, event)| Event::of(time, &event, &tracks, &names)).collect();
        let timeline = Timeline { events };
        timeline.check();
        timeline
    }

    /// The events on tracks of this name.
    pub fn on(&self, track: &str) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.track == track)
    }

    /// The names of slices on tracks whose names begin like this.
    pub fn slices(&self, tracks: &str) -> Vec<&str> {
        let is_begin = |event: &&Event| event.kind == Kind::Begin && event.track.starts_with(tracks);
        self.events.iter().filter(is_begin).map(|event| event.name.as_str()).collect()
    }

    fn check(&self) {
        let mut open: BTreeMap<&str, i32> = BTreeMap::new();
        let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
        for event in &self.events {
            let depth = open.entry(&event.track).or_default();
            match event.kind {
                Kind::Begin => *depth += 1,
                Kind::End => *depth -= 1,
                Kind::Instant | Kind::Counter(_) => {}
            }
            // Tracks of waits have the same name, and Perfetto shows them together.
            let most = if event.track.contains("waits for guards") { i32::MAX } else { 1 };
            assert!((0..=most).contains(depth), "{depth} slices at the same time: {event:?}");
            for flow in &event.last_of_flows {
                assert!(begun.contains(flow) && ended.insert(*flow), "a flow ends: {event:?}");
            }
            begun.extend(event.flows.iter().copied());
        }
        assert!(open.values().all(|depth| *depth == 0), "all slices end");
        assert_eq!(begun, ended, "all flows end");
    }
}

impl Event {
    fn of(
        nanoseconds: u64,
        event: &[(u64, Value)],
        tracks: &BTreeMap<u64, String>,
        names: &BTreeMap<u64, String>,
    ) -> Event {
        let all = |tag| event.iter().filter(move |field| field.0 == tag).map(|field| field.1.number());
        let uuid = first(event, 11).expect("an event has a track").number();
        let kind = match first(event, 9).expect("an event has a kind").number() {
            1 => Kind::Begin,
            2 => Kind::End,
            3 => Kind::Instant,
            4 => Kind::Counter(f64::from_bits(first(event, 44).expect("a counter has a value").number())),
            other => panic!("kind {other}"),
        };
        Event {
            nanoseconds,
            track: tracks[&uuid].clone(),
            kind,
            name: first(event, 10).map(|it| names[&it.number()].clone()).unwrap_or_default(),
            flows: all(47).collect(),
            last_of_flows: all(48).collect(),
        }
    }
}

/// The value of a field of protobuf.
enum Value {
    /// A number, or the bits of one.
    Number(u64),
    Bytes(Vec<u8>),
}

impl Value {
    fn number(&self) -> u64 {
        let Value::Number(number) = self else { panic!("a field is no number") };
        *number
    }

    fn bytes(&self) -> Vec<u8> {
        let Value::Bytes(bytes) = self else { panic!("a field has no bytes") };
        bytes.clone()
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("a name is a text")
    }
}

/// The first field of this tag.
fn first(fields: &[(u64, Value)], tag: u64) -> Option<&Value> {
    fields.iter().find(|field| field.0 == tag).map(|field| &field.1)
}

/// The fields of a message of protobuf, with their tags.
fn fields(mut rest: &[u8]) -> Vec<(u64, Value)> {
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let key = varint(&mut rest);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut rest)),
            1 => Value::Number(u64::from_le_bytes(take(&mut rest, 8).try_into().expect("8 bytes"))),
            2 => {
                let length = varint(&mut rest) as usize;
                Value::Bytes(take(&mut rest, length).to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (bytes, after) = rest.split_at(length);
    *rest = after;
    bytes
}

fn varint(rest: &mut &[u8]) -> u64 {
    let length = 1 + rest.iter().position(|byte| byte & 128 == 0).expect("the last byte of a number");
    take(rest, length).iter().rev().fold(0, |all, byte| all << 7 | u64::from(byte & 127))
}

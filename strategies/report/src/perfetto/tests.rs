//! Tests with a reader of protobuf that shares no code with the writer.

use equipoise_model::topology;
use equipoise_network::models;
use equipoise_network::trace::{
    Call, Details, Execution, LbStep, Memory, Migration, Step, TraceMessage, TraceObject, Wait, simulate,
};

use super::*;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message, with their tags.
struct Read(Vec<(u64, Value)>);

impl Read {
    fn new(mut rest: &[u8]) -> Read {
        let mut fields = Vec::new();
        while !rest.is_empty() {
            let key = varint(&mut rest);
            let value = match key & 7 {
                0 => Value::Number(varint(&mut rest)),
                1 => Value::Fixed(u64::from_le_bytes(take(&mut rest, 8).try_into().expect("8 bytes"))),
                2 => {
                    let length = varint(&mut rest) as usize;
                    Value::Bytes(take(&mut rest, length).to_vec())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, value));
        }
        Read(fields)
    }

    fn values(&self, tag: u64) -> impl Iterator<Item = &Value> {
        self.0.iter().filter(move |field| field.0 == tag).map(|field| &field.1)
    }

    fn number(&self, tag: u64) -> Option<u64> {
        self.values(tag).next().map(|value| match value {
            Value::Number(number) | Value::Fixed(number) => *number,
            Value::Bytes(_) => panic!("field {tag} is no number"),
        })
    }

    fn messages(&self, tag: u64) -> impl Iterator<Item = Read> {
        self.values(tag).map(|value| match value {
            Value::Bytes(bytes) => Read::new(bytes),
            _ => panic!("a field is no message"),
        })
    }

    fn message(&self, tag: u64) -> Option<Read> {
        self.messages(tag).next()
    }

    fn text(&self, tag: u64) -> Option<String> {
        self.values(tag).next().map(|value| match value {
            Value::Bytes(bytes) => String::from_utf8(bytes.clone()).expect("a text"),
            _ => panic!("field {tag} is no text"),
        })
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = take(rest, 1)[0];
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return value;
        }
        shift += 7;
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at(length);
    *rest = after;
    taken
}

/// An event: nanoseconds, kind, name, flows, and flows that end.
type Event = (u64, u64, Option<String>, Vec<u64>, Vec<u64>);

/// The events of a track, in the order of the file.
fn events(file: &[u8], track: Track) -> Vec<Event> {
    let mut names = std::collections::BTreeMap::new();
    let fixed = |event: &Read, tag| {
        let number = |value: &Value| match value {
            Value::Fixed(number) => *number,
            other => panic!("{other:?} is no flow"),
        };
        event.values(tag).map(number).collect()
    };
    let mut is_first = true;
    let of_track = |packet: Read| {
        assert_eq!(packet.number(10), Some(1), "all packets are of one sequence");
        let is_first = std::mem::take(&mut is_first);
        assert_eq!(
            packet.number(13),
            Some(if is_first { 3 } else { 2 }),
            "the first packet begins the names"
        );
        for name in packet.message(12).iter().flat_map(|new| new.messages(2)) {
            let known = names.insert(name.number(1).expect("a number"), name.text(2).expect("a name"));
            assert_eq!(known, None, "a name has one number");
        }
        let event = packet.message(11).filter(|event| event.number(11) == Some(track.uuid()))?;
        let kind = event.number(9)?;
        let name = event.number(10).map(|number| names[&number].clone());
        Some((packet.number(8)?, kind, name, fixed(&event, 47), fixed(&event, 48)))
    };
    Read::new(file).messages(1).filter_map(of_track).collect()
}

/// Element 0 works for 1 s on PE 0, sends 100 bytes to element 9 on PE 1, and works for 1 s more. Element 9 works for
/// 2 s, then for 1 s on PE 2.
fn trace() -> Trace {
    let trace = Trace {
        topology: "mesh:4".into(),
        network: "ideal".into(),
        pes: 4,
        seconds: 8.0,
        exit: Some(2),
        arrays: vec!["Some".into()],
        objects: vec![TraceObject { array: 0, rank: 0 }, TraceObject { array: 0, rank: 9 }],
        messages: vec![TraceMessage { to: 5, pe: 1, bytes: 100 }],
        executions: vec![
            Execution::new(4, 0, 0.0, None, vec![Step::Work(1.0), Step::Send(0), Step::Work(1.0)]),
            Execution::new(5, 1, 2.5, Some(0), vec![Step::Work(2.0)]),
            Execution::new(5, 2, 7.0, None, vec![Step::Work(5.0)]),
        ],
        ..Trace::default()
    };
    assert_eq!(trace.check(), Ok(()));
    trace
}

#[test]
fn executions_are_slices_and_messages_flows() {
    let trace = trace();
    let machine = topology::parse("mesh:4").expect("a machine");
    let run = Run { trace: &trace, simulated: None, machine: Some(&*machine), bandwidth: None };
    let file = encode(&run);
    assert_eq!(file, encode(&run), "the same run gives the same bytes");
    let name = |name: &str| Some(name.to_owned());
    let (second, none) = (1_000_000_000, Vec::new);
    assert_eq!(
        events(&file, Track::Pe(0)),
        [(0, 1, name("Some[0]"), vec![1], none()), (2 * second, 2, None, none(), none())]
    );
    assert_eq!(
        events(&file, Track::Pe(1)),
        [(2_500_000_000, 1, name("Some[9]"), none(), vec![1]), (4_500_000_000, 2, None, none(), none())]
    );
    // The run ends at 8 s.
    assert_eq!(
        events(&file, Track::Pe(2)),
        [
            (7 * second, 3, name("Some[9] arrived from PE 1"), none(), none()),
            (7 * second, 1, name("Some[9]"), none(), none()),
            (8 * second, 2, None, none(), none()),
        ]
    );
    assert_eq!(events(&file, Track::Pe(3)), []);
    let waiting = events(&file, Track::Waiting(1));
    assert_eq!(waiting.iter().map(|event| event.0).collect::<Vec<_>>(), [second, 2_500_000_000]);
    assert!(!events(&file, Track::Imbalance).is_empty());
    assert_eq!(events(&file, Track::Link(0)).len(), 3, "0, the bytes of the message, 0");
}

#[test]
fn tracks_are_declared_once_before_their_events() {
    let trace = trace();
    let machine = topology::parse("mesh:4").expect("a machine");
    let file = encode(&Run { trace: &trace, simulated: None, machine: Some(&*machine), bandwidth: None });
    let mut declared = Vec::new();
    let mut threads = Vec::new();
    for packet in Read::new(&file).messages(1) {
        if let Some(track) = packet.message(60) {
            let uuid = track.number(1).expect("a number");
            assert!(!declared.contains(&uuid), "track {uuid} is declared twice");
            declared.push(uuid);
            threads.extend(track.message(4).and_then(|thread| thread.text(5)));
        }
        if let Some(event) = packet.message(11) {
            assert!(declared.contains(&event.number(11).expect("a track")));
        }
    }
    assert_eq!(threads, ["PE 0", "PE 1", "PE 2", "PE 3"]);
}

#[test]
fn a_run_without_executions_has_only_its_pes() {
    let trace = Trace { pes: 2, ..Trace::default() };
    let file = encode(&Run { trace: &trace, simulated: None, machine: None, bandwidth: None });
    assert_eq!(Read::new(&file).messages(1).count(), 3, "a node and two PEs");
}

#[test]
fn slices_of_a_pe_do_not_overlap() {
    let mut trace = trace();
    trace.executions[1].pe = 0;
    trace.executions[1].begin_seconds = 1.5;
    let file = encode(&Run { trace: &trace, simulated: None, machine: None, bandwidth: None });
    let mut last = (0, 2);
    for (at, kind, ..) in events(&file, Track::Pe(0)) {
        assert!(at >= last.0 && kind != last.1, "{kind} at {at} follows {last:?}");
        last = (at, kind);
    }
}

#[test]
fn a_simulated_run_has_its_own_times_and_pes() {
    let trace = trace();
    let machine = topology::parse("mesh:4").expect("a machine");
    let model = models::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
    let mut network = model.on(&machine).expect("the model supports this machine");
    let placement = [3, 2];
    let timing = simulate(&trace, &mut *network, Some(&placement));
    let simulated = Some((&timing, Some(&placement[..])));
    let file = encode(&Run { trace: &trace, simulated, machine: Some(&*machine), bandwidth: None });
    let begins = |pe| {
        let begins = events(&file, Track::Pe(pe)).into_iter().filter(|event| event.1 == 1);
        begins.map(|event| event.0).collect::<Vec<_>>()
    };
    assert_eq!(begins(3), [0]);
    // The message leaves at 1 s, and crosses one link in 0.5 s and 1 s for its bytes.
    assert_eq!(begins(2), [2_500_000_000, 4_500_000_000]);
    assert!(begins(0).is_empty());
}

/// An event with its track: nanoseconds, track, kind, flows, and flows that end.
type TrackEvent = (u64, u64, u64, Vec<u64>, Vec<u64>);

/// Every event of the file, sorted by time, and at the same time as in the
/// file. So Perfetto reads them.
fn all_events(file: &[u8]) -> Vec<TrackEvent> {
    let fixed = |event: &Read, tag| {
        let number =
            |value: &Value| if let Value::Fixed(number) = value { *number } else { panic!("no flow") };
        event.values(tag).map(number).collect()
    };
    let read = |packet: Read| {
        let event = packet.message(11)?;
        let (track, kind) = (event.number(11)?, event.number(9)?);
        Some((packet.number(8)?, track, kind, fixed(&event, 47), fixed(&event, 48)))
    };
    let mut events: Vec<_> = Read::new(file).messages(1).filter_map(read).collect();
    events.sort_by_key(|event| event.0);
    events
}

#[test]
fn flows_begin_before_they_end_and_end_once_even_if_everything_happens_at_once() {
    // A message from PE 3 causes executions on PEs 0 and 1; the one on PE 0 causes one on PE 2. Nothing takes time.
    let trace = Trace {
        exit: None,
        objects: (0..4).map(|rank| TraceObject { array: 0, rank }).collect(),
        messages: vec![TraceMessage { to: 4, pe: 0, bytes: 1 }, TraceMessage { to: 6, pe: 2, bytes: 1 }],
        executions: vec![
            Execution::new(7, 3, 1.0, None, vec![Step::Send(0)]),
            Execution::new(4, 0, 1.0, Some(0), vec![Step::Send(1)]),
            Execution::new(5, 1, 1.0, Some(0), vec![]),
            Execution::new(6, 2, 1.0, Some(1), vec![]),
        ],
        ..trace()
    };
    assert_eq!(trace.check(), Ok(()));
    let file = encode(&Run { trace: &trace, simulated: None, machine: None, bandwidth: None });
    let mut open = Vec::new();
    let mut ended = Vec::new();
    for (_, track, _, begins, ends) in all_events(&file) {
        for flow in ends {
            let at = open.iter().position(|it| *it == flow).expect("the flow has begun");
            open.remove(at);
            ended.push((flow, track));
        }
        open.extend(begins);
    }
    assert!(open.is_empty());
    // The flow of the first message ends where the recorded order has its first execution.
    assert_eq!(ended, [(1, Track::Pe(0).uuid()), (2, Track::Pe(2).uuid())]);
}

#[test]
fn a_message_that_arrives_before_it_is_sent_has_no_flow() {
    let mut trace = trace();
    trace.details.clock_error_seconds = 1.0;
    let flows = |trace: &Trace| -> usize {
        let file = encode(&Run { trace, simulated: None, machine: None, bandwidth: None });
        all_events(&file).iter().map(|event| event.3.len() + event.4.len()).sum()
    };
    assert_eq!(flows(&trace), 2);
    // By the clock of its process, the sender begins later than the receiver.
    trace.executions[0].begin_seconds = 3.0;
    assert_eq!((trace.check(), flows(&trace)), (Ok(()), 0));
}

#[test]
fn recorded_details_are_shown_and_left_out_of_simulations() {
    let details = Details {
        entries: vec![vec!["begin".into(), "edge".into()]],
        indices: vec!["[0, 0]".into(), "[1, 4]".into()],
        calls: vec![
            Call { entry: Some(0), charged_seconds: 0.5 },
            Call { entry: Some(1), charged_seconds: 0.0 },
            Call { entry: Some(1), charged_seconds: 0.0 },
        ],
        waits: vec![
            Wait { object: 5, entry: 1, pe: 1, begin_seconds: 1.5, end_seconds: 2.5 },
            Wait { object: 5, entry: 1, pe: 1, begin_seconds: 2.0, end_seconds: 3.0 },
            Wait { object: 5, entry: 1, pe: 1, begin_seconds: 2.5, end_seconds: 4.0 },
        ],
        migrations: vec![Migration { object: 5, from: 1, to: 2, seconds: 6.0 }],
        steps: vec![LbStep {
            number: 3,
            strategy: "GreedyLB".into(),
            begin_seconds: 5.0,
            end_seconds: 6.5,
            migrations: 1,
            max_over_avg: [2.0, 1.25],
        }],
        memory: vec![Memory { pe: 0, seconds: 1.0, bytes: 4096 }],
        ..Details::default()
    };
    let trace = Trace { details, ..trace() };
    assert_eq!(trace.check(), Ok(()));
    let file = encode(&Run { trace: &trace, simulated: None, machine: None, bandwidth: None });
    let names = |file: &[u8], track| -> Vec<_> {
        events(file, track).into_iter().filter_map(|(at, _, name, ..)| Some((at, name?))).collect()
    };
    let second = 1_000_000_000;
    assert_eq!(names(&file, Track::Pe(0)), [(0, "Some[0, 0].begin".to_owned())]);
    assert_eq!(
        names(&file, Track::Pe(1)),
        [
            (5 * second / 2, "Some[1, 4].edge".to_owned()),
            (6 * second, "Some[1, 4] leaves for PE 2".to_owned())
        ]
    );
    assert_eq!(names(&file, Track::Steps), [(5 * second, "step 3: GreedyLB".to_owned())]);
    let waits = "Some[1, 4].edge waits for its guard".to_owned();
    // A wait begins on the lane of one that has ended.
    assert_eq!(
        names(&file, Track::Guarded(1, 0)),
        [(3 * second / 2, waits.clone()), (5 * second / 2, waits.clone())]
    );
    assert_eq!(names(&file, Track::Guarded(1, 1)), [(2 * second, waits)]);
    let counts: Vec<u64> = events(&file, Track::Guards(1)).iter().map(|event| event.0).collect();
    assert_eq!(counts, [3, 4, 5, 6, 8].map(|halves| halves * second / 2));
    assert_eq!(events(&file, Track::Memory(0)).len(), 1);

    let machine = topology::parse("mesh:4").expect("a machine");
    let model = models::parse("ideal:hop=0.5,bandwidth=100").expect("a network");
    let mut network = model.on(&machine).expect("the model supports this machine");
    let timing = simulate(&trace, &mut *network, None);
    let file =
        encode(&Run { trace: &trace, simulated: Some((&timing, None)), machine: None, bandwidth: None });
    for track in [Track::Steps, Track::Guarded(1, 0), Track::Memory(0)] {
        assert_eq!(events(&file, track), []);
    }
    assert_eq!(names(&file, Track::Pe(0))[0].1, "Some[0, 0].begin");
}

#[test]
fn of_too_many_waits_the_longest_are_shown() {
    let wait = |i: u32| Wait {
        object: 5,
        entry: 0,
        pe: 1,
        begin_seconds: 1.0,
        end_seconds: 1.0 + f64::from(1 + i * 7 % 20) / 16.0,
    };
    let details = Details { waits: (0..20).map(wait).collect(), begins_seconds: 2.0, ..Details::default() };
    let trace = Trace { details, ..trace() };
    let file = encode(&Run { trace: &trace, simulated: None, machine: None, bandwidth: None });
    let mut shown = Vec::new();
    for lane in 0..16 {
        let of_lane = events(&file, Track::Guarded(1, lane));
        assert_eq!(of_lane.len(), 2, "a begin and an end");
        shown.push((of_lane[1].0 - of_lane[0].0) / 62_500_000);
        // Times are those since the begin of the run.
        assert_eq!(of_lane[0].0, 3_000_000_000);
    }
    shown.sort_unstable();
    assert_eq!(shown, (5..=20).collect::<Vec<_>>());
    assert_eq!(events(&file, Track::Guarded(1, 16)), []);
    let begin = events(&file, Track::Node(0));
    assert_eq!(begin[0].2.as_deref(), Some("the recording begins 2.00 s after the begin of the run"));
}

#[test]
fn a_link_carries_at_most_its_bandwidth() {
    // 4 messages of 1 GB at once, on links of 1 GB/s.
    let message = TraceMessage { to: 5, pe: 1, bytes: 1_000_000_000 };
    let trace = Trace {
        messages: vec![message; 4],
        executions: vec![
            Execution::new(4, 0, 0.0, None, (0..4).map(Step::Send).chain([Step::Work(1.0)]).collect()),
            Execution::new(5, 1, 5.0, Some(3), vec![Step::Work(3.0)]),
        ],
        exit: Some(1),
        ..trace()
    };
    let machine = topology::parse("mesh:4").expect("a machine");
    // The network may give links another bandwidth than the machine.
    for (bandwidth, most) in [(None, 1e9), (Some(5e8), 5e8)] {
        let run = Run { trace: &trace, simulated: None, machine: Some(&*machine), bandwidth };
        let slices = Slices::new(&run);
        let windows = Windows::new(8.0).expect("a time");
        let links = hottest(&windows, &trace, &flights(&run, &slices), &*machine, run.bandwidth);
        let rates = &links[0].1;
        assert!(rates.iter().all(|&rate| rate <= most * (1.0 + 1e-9)), "{rates:?}");
        let sum: f64 = rates.iter().sum::<f64>() * 8.0 / rates.len() as f64;
        assert!(sum > 0.0 && (sum % 1e9 < 1.0 || sum % 1e9 > 1e9 - 1.0), "{sum} bytes");
    }
}

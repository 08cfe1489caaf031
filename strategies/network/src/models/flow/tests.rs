//! Tests of flows: comparison with progressive filling from scratch, and with results computed by hand.

use proptest::prelude::*;

use equipoise_model::testing::{at_full_size, some_of};
use equipoise_model::topology;

use super::*;
use crate::models::parse;

mod per_flow;

/// A weight and a route.
type Stream = (f64, Vec<u32>);

/// Max-min fair rates by progressive filling from scratch: the levels of all flows rise together, and the link that
/// saturates first stops its flows.
fn fill(capacities: &[f64], flows: &[Stream]) -> Vec<f64> {
    let (mut rates, mut rising) = (vec![0.0; flows.len()], vec![true; flows.len()]);
    while rising.contains(&true) {
        let level = |(link, capacity): (usize, &f64)| {
            let (mut room, mut weight) = (*capacity, 0.0);
            for (flow, (share, route)) in flows.iter().enumerate() {
                let crossings = route.iter().filter(|&&other| other as usize == link).count() as f64;
                room -= if rising[flow] { 0.0 } else { crossings * rates[flow] };
                weight += if rising[flow] { crossings * share } else { 0.0 };
            }
            (weight > 0.0).then_some((room / weight, link as u32))
        };
        let levels = capacities.iter().enumerate().filter_map(level);
        let (level, link) = levels.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a rising flow crosses a link");
        for (flow, (weight, route)) in flows.iter().enumerate() {
            if rising[flow] && route.contains(&link) {
                (rates[flow], rising[flow]) = (weight * level, false);
            }
        }
    }
    rates
}

/// Capacities with few different values, so that many links saturate at the same level.
fn capacities() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((1..5u32).prop_map(|tenths| f64::from(tenths) / 10.0), 8)
}

fn stream() -> impl Strategy<Value = Stream> {
    let weight = prop_oneof![4 => Just(1.0), 1 => (1..40u32).prop_map(|part| 1.0 / f64::from(part))];
    (weight, prop::sample::subsequence((0..8u32).collect::<Vec<_>>(), 1..5))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn incremental_rates_equal_those_from_scratch(
        capacities in capacities(),
        changes_of_flows in prop::collection::vec(prop::collection::vec((0..12usize, stream()), 1..4), 1..20),
    ) {
        let mut rates = MaxMin::new(capacities.iter().copied());
        let (mut flows, mut known, mut changes) = (vec![None; 12], vec![0.0; 12], Changes::default());
        let (mut bottlenecks, mut levels) = ([0; 12], [0.0; 8]);
        for batch in changes_of_flows {
            for (flow, stream) in batch {
                let before = flows[flow].take();
                if before.is_some() {
                    rates.end(flow as u32);
                } else {
                    rates.start(flow as u32, stream.0, stream.1.iter().copied());
                    flows[flow] = Some(stream);
                }
            }
            rates.fill(&mut changes);
            changes.links.drain(..).for_each(|link| levels[link as usize] = rates.level(link));
            changes.flows.drain(..).for_each(|flow| bottlenecks[flow as usize] = rates.bottleneck(flow));
            for (flow, stream) in flows.iter().enumerate() {
                if let Some((weight, _)) = stream {
                    known[flow] = weight * levels[bottlenecks[flow] as usize];
                    prop_assert_eq!(known[flow], rates.rate(flow as u32));
                }
            }
            let (ids, under_way): (Vec<usize>, Vec<Stream>) =
                flows.iter().enumerate().filter_map(|(id, flow)| Some((id, flow.clone()?))).unzip();
            let expected = fill(&capacities, &under_way);
            let mut loads = [0.0; 8];
            for ((&id, (_, route)), expected) in ids.iter().zip(&under_way).zip(expected) {
                prop_assert!((known[id] / expected - 1.0).abs() < 1e-9, "flow {}: {} for {}", id, known[id], expected);
                route.iter().for_each(|&link| loads[link as usize] += known[id]);
            }
            for (load, capacity) in loads.iter().zip(&capacities) {
                prop_assert!(*load <= capacity * (1.0 + 1e-9), "{} of {}", load, capacity);
            }
        }
    }

    #[test]
    fn arrivals_equal_those_of_a_simple_simulation(
        messages in prop::collection::vec((0..9u32, 0..9u32, 0..4u64, 0..6u32), 1..25),
        limited in any::<bool>(),
        weighs in any::<bool>(),
    ) {
        let messages = messages.into_iter().map(|(from, to, size, at)| (f64::from(at), from, to, 50 * size));
        let run = Run::new("mesh:3x3", messages, limited, weighs);
        run.check(&simulate(&run.case))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(some_of(60)))]

    /// Many messages with few different sizes and times, so that many flows begin and end together, and with receivers
    /// that most messages go to, so that bottlenecks have many flows.
    #[test]
    fn arrivals_equal_those_without_groups(
        messages in prop::collection::vec((0..64u32, 0..64u32, 0..8u64, 0..400u32), 300..1200),
        hot in 1..65u32,
        (exact, limited, weighs) in any::<(bool, bool, bool)>(),
        machine in prop::sample::select(vec!["torus:4x4x4", "torus:8x8", "mesh:64", "fattree:4:4:4/1:1:1"]),
    ) {
        let messages = messages.into_iter().map(|(from, to, size, at)| {
            let jitter = if exact { 0.0 } else { f64::from(from * to) * 0.013 };
            (f64::from(at) * 0.1 + jitter, from, if size % 2 == 0 { to % hot } else { to }, size * size * 10)
        });
        let run = Run::new(machine, messages, limited, weighs);
        run.check(&per_flow::arrivals(&run.case))?;
    }
}

/// Messages that the network `flow` has delivered.
struct Run {
    case: Case,
    /// By message: its arrival time.
    arrivals: Vec<f64>,
}

impl Run {
    /// Sends messages (time, from, to, bytes) on links of 100 byte/s and 0.25 s.
    fn new(
        machine: &str,
        messages: impl Iterator<Item = (f64, u32, u32, u64)>,
        limited: bool,
        weighs: bool,
    ) -> Self {
        let limits = if limited { "injection=150,ejection=120" } else { "injection=none" };
        let sharing = if weighs { "latency" } else { "equal" };
        let spec = format!("flow:bandwidth=100,latency=0.25,sharing={sharing},{limits}");
        let machine = topology::parse(machine).expect("a machine");
        let mut messages: Vec<_> =
            messages.map(|(at, from, to, bytes)| (at, Message { token: 0, from, to, bytes })).collect();
        messages.sort_by(|a, b| a.0.total_cmp(&b.0));
        (0..).zip(&mut messages).for_each(|(token, message)| message.1.token = token);
        let mut network =
            parse(&spec).expect("a network").on(&machine).expect("the model supports this machine");
        let mut arrivals = Vec::new();
        for &(now, message) in &messages {
            while let Some(next) = network.next_event().filter(|&next| next <= now) {
                network.advance(next, &mut arrivals);
            }
            network.send(now, message);
        }
        network.advance(f64::INFINITY, &mut arrivals);
        assert_eq!(network.next_event(), None);
        assert!(arrivals.is_sorted_by(|a, b| a.seconds <= b.seconds));
        let distance = |m: &Message| machine.distance(m.from as usize, m.to as usize);
        let hop_bytes: u64 = messages.iter().map(|(_, m)| m.bytes * u64::from(distance(m))).sum();
        assert_eq!(network.wires().bytes.iter().sum::<u64>(), hop_bytes);
        arrivals.sort_by_key(|arrival| arrival.token);
        assert!(arrivals.iter().map(|arrival| arrival.token).eq(0..messages.len() as u64));
        Run {
            case: Case::new(&*machine, &messages, limited.then_some((150.0, 120.0)), weighs),
            arrivals: arrivals.iter().map(|arrival| arrival.seconds).collect(),
        }
    }

    /// Compares the arrivals with those of another implementation.
    fn check(&self, expected: &[f64]) -> Result<(), TestCaseError> {
        for (message, (found, expected)) in self.arrivals.iter().zip(expected).enumerate() {
            prop_assert!(
                (found - expected).abs() <= 1e-9 * expected,
                "{}: {} for {}",
                message,
                found,
                expected
            );
        }
        Ok(())
    }
}

/// What happens to messages, in terms of flows.
struct Case {
    capacities: Vec<f64>,
    /// By message: its flow, when it begins, and its bytes; 0 if it crosses no link.
    streams: Vec<Stream>,
    begin: Vec<f64>,
    bytes: Vec<f64>,
}

impl Case {
    /// Messages on links of 100 byte/s and 0.25 s. `limits` are the maximum bytes per second that a PE sends and receives.
    fn new(
        machine: &dyn Topology,
        messages: &[(f64, Message)],
        limits: Option<(f64, f64)>,
        weighs: bool,
    ) -> Self {
        let (links, pes) = (machine.links(), machine.pes());
        let (injection, ejection) = limits.unwrap_or((1e9, 1e9));
        let mut capacities = vec![100.0; links];
        capacities.extend(vec![injection; pes]);
        capacities.extend(vec![ejection; pes]);
        let mut case = Case { capacities, streams: Vec::new(), begin: Vec::new(), bytes: Vec::new() };
        for (at, Message { from, to, bytes, .. }) in messages {
            let mut route = Vec::new();
            machine.route(*from as usize, *to as usize, &mut route);
            let latency = 0.25 * route.len() as f64;
            case.begin.push(at + latency);
            case.bytes.push(if from == to { 0.0 } else { *bytes as f64 });
            let mut route: Vec<u32> = route.into_iter().map(|link| link as u32).collect();
            route.extend([(links + *from as usize) as u32, (links + pes + *to as usize) as u32]);
            case.streams.push((if weighs { 1.0 / latency } else { 1.0 }, route));
        }
        case
    }
}

/// The arrival times of the messages of a case; all rates are computed from scratch at every event.
fn simulate(case: &Case) -> Vec<f64> {
    let Case { capacities, streams, begin, bytes } = case;
    let mut left = bytes.clone();
    let mut arrival = begin.clone();
    let mut now = 0.0;
    loop {
        let flowing: Vec<usize> = (0..left.len()).filter(|&i| begin[i] <= now && left[i] > 0.0).collect();
        let under_way: Vec<Stream> = flowing.iter().map(|&i| streams[i].clone()).collect();
        let rates = fill(capacities, &under_way);
        let ends = flowing.iter().zip(&rates).map(|(&i, rate)| now + left[i] / rate);
        let Some(next) = ends.chain(begin.iter().copied().filter(|&at| at > now)).reduce(f64::min) else {
            return arrival;
        };
        for (&i, rate) in flowing.iter().zip(&rates) {
            left[i] -= rate * (next - now);
            if left[i] < 1e-9 {
                (left[i], arrival[i]) = (0.0, next);
            }
        }
        now = next;
    }
}

/// Checks the arrival times of messages (from, to, bytes), all sent at time 0, on `mesh:4` with the network `spec`.
#[track_caller]
fn check(spec: &str, messages: &[(u32, u32, u64)], expected: &[f64]) {
    let machine = topology::parse("mesh:4").expect("a machine");
    let mut network = parse(spec).expect("a network").on(&machine).expect("the model supports this machine");
    for (&(from, to, bytes), token) in messages.iter().zip(0..) {
        network.send(0.0, Message { token, from, to, bytes });
    }
    let (mut arrivals, mut seconds) = (Vec::new(), vec![f64::NAN; messages.len()]);
    network.advance(1e9, &mut arrivals);
    arrivals.iter().for_each(|arrival| seconds[arrival.token as usize] = arrival.seconds);
    for (found, expected) in seconds.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-9, "{spec}: {seconds:?}");
    }
}

#[test]
fn a_message_without_contention_takes_latency_plus_bytes_over_bandwidth() {
    check("flow:bandwidth=100,latency=0.5", &[(0, 3, 200)], &[3.5]);
    check("flow:bandwidth=100,latency=0.5", &[(0, 3, 0), (1, 1, 700)], &[1.5, 0.0]);
    check("flow:bandwidth=100,latency=0.5,injection=50", &[(0, 3, 200)], &[5.5]);
    check("flow:bandwidth=100,latency=0,injection=50,ejection=20", &[(0, 3, 200), (2, 2, 9)], &[10.0, 0.0]);
    check("flow:bandwidth=100,latency=0,injection=50,ejection=none", &[(0, 3, 200)], &[4.0]);
}

#[test]
fn messages_share_a_link_equally() {
    // Both flow at 50 byte/s until the shorter one ends, then the longer one at 100 byte/s.
    check("flow:bandwidth=100,latency=0", &[(0, 1, 100), (0, 2, 200)], &[2.0, 3.0]);
    // Three messages share 1 -> 2 equally, so 0 -> 2 has a third of it. 0 -> 1 uses the rest of its link.
    check("flow:bandwidth=90,latency=0", &[(0, 2, 30), (1, 2, 30), (1, 2, 30), (0, 1, 60)], &[1.0; 4]);
    // Messages that the sender limits leave the rest of the links to others.
    let spec = "flow:bandwidth=100,latency=0,injection=40,ejection=none";
    check(spec, &[(0, 3, 20), (0, 3, 20), (1, 3, 60)], &[1.0, 1.0, 1.5]);
}

#[test]
fn sharing_by_latency_prefers_short_routes() {
    // Latencies 0.5 s and 1.5 s: the first message flows alone for 1 s, then the shares are 3/4 and 1/4.
    let spec = "flow:bandwidth=80,latency=0.5,sharing=latency";
    check(spec, &[(2, 3, 140), (0, 3, 60)], &[0.5 + 1.0 + 1.0, 2.5 + 0.5]);
    check("flow:bandwidth=80,latency=0,sharing=latency", &[(2, 3, 40), (0, 3, 40)], &[1.0, 1.0]);
}

#[test]
fn errors_name_the_problem_of_a_spec() {
    for (spec, expected) in [
        ("flow:bandwidth=0", "flow:bandwidth=0 is not understood: expected a number above 0, or `machine`"),
        (
            "flow:latency=-1",
            "flow:latency=-1 is not understood: expected seconds, at least 0, `machine` or `auto`",
        ),
        ("flow:injection=fast", "expected a number above 0, or `none`"),
        ("flow:ejection=-1", "expected a number above 0, `injection`, or `none`"),
        ("flow:sharing=fair", "flow:sharing=fair is not understood: expected `equal` or `latency`"),
        ("flow:share=equal", "flow has no parameter `share`"),
        ("flows", "there is no network `flows` (did you mean `flow`?)"),
    ] {
        let error = parse(spec).err().expect(spec).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
}

#[test]
#[ignore = "slow"]
fn arrivals_equal_those_without_groups_in_many_cases() {
    at_full_size(&[arrivals_equal_those_without_groups]);
}

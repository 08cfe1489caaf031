//! Tests of packets: minimum latency without contention, first come first served, and a simulation byte by byte.

use std::collections::VecDeque;

use proptest::prelude::*;

use equipoise_model::topology;

use super::*;
use crate::models::parse;

/// The arrival times of messages `(from, to, bytes)` sent at time 0, and the bytes of each link.
fn deliver(spec: &str, machine: &str, messages: &[(u32, u32, u64)]) -> (Vec<f64>, Vec<u64>) {
    let machine = topology::parse(machine).expect(machine);
    let mut network = parse(spec).expect(spec).on(&machine).expect("the model supports this machine");
    for (&(from, to, bytes), token) in messages.iter().zip(0..) {
        network.send(0.0, Message { token, from, to, bytes });
    }
    let (mut arrivals, mut times) = (Vec::new(), vec![f64::NAN; messages.len()]);
    while let Some(next) = network.next_event() {
        network.advance(next, &mut arrivals);
    }
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.seconds));
    for arrival in arrivals {
        let time = &mut times[arrival.token as usize];
        assert!(time.is_nan(), "message {} arrives once", arrival.token);
        *time = arrival.seconds;
    }
    (times, network.wires().bytes.clone())
}

/// Machines whose bandwidths and latencies are (nearly all) powers of two, so that sums are exact.
const MACHINES: &[&str] = &[
    "mesh:4",
    "torus:4x3",
    "hypercube:3",
    "flat:6",
    "tree:2:3",
    "fattree:2:2:2/8:2:4",
    "dragonfly:groups=3,routers=2,hosts=2",
    "graph:random:n=12,degree=3",
    "torus:3x3*mesh:2",
    "torus:4x4[random:7,seed=3]",
];

#[test]
fn a_message_without_contention_takes_latencies_and_bytes_over_the_minimum_bandwidth() {
    for (spec, to, bytes, expected) in [
        ("packet:size=16,bandwidth=8,latency=0.25", 15, 40, 6.0 * 0.25 + 40.0 / 8.0),
        ("packet:size=16,bandwidth=8,latency=0.25", 15, 0, 6.0 * 0.25),
        ("packet:size=16,bandwidth=8,latency=0", 1, 16, 2.0),
        ("packet:size=16,bandwidth=8,latency=0.25", 0, 1 << 40, 0.0),
        ("packet:size=16,bandwidth=8,latency=0.25,injection=4", 15, 40, 6.0 * 0.25 + 40.0 / 4.0),
        ("packet:size=16,bandwidth=8,latency=0.25,injection=16", 15, 40, 6.0 * 0.25 + 40.0 / 8.0),
        ("packet:size=16,bandwidth=8,latency=0.25,routing=adaptive", 15, 16, 6.0 * 0.25 + 16.0 / 8.0),
    ] {
        assert_eq!(deliver(spec, "mesh:4x4", &[(0, to, bytes)]).0, [expected], "{spec}, {bytes} B to {to}");
    }
    // The route has slow, fast and slow links. There are 10 packets of 8 bytes and one of 3.
    let tree = "fattree:2:2:2/8:2:4";
    let alone = |spec| deliver(spec, tree, &[(0, 7, 83)]).0[0];
    assert!((alone("packet:size=8") - (6e-6 + 83.0 / 2.0)).abs() < 1e-9, "{}", alone("packet:size=8"));
    assert_eq!(alone("ideal"), 6e-6 + 83.0 / 2.0);
}

#[test]
fn packets_for_the_same_link_queue_and_others_pass() {
    // 0 -> 2 takes link 0 -> 1 first, and 0 -> 1 waits for all of its packets. 3 -> 1 goes in the other direction.
    let messages = [(0, 2, 10), (0, 1, 10), (3, 1, 10), (1, 2, 4)];
    let (times, bytes) = deliver("packet:size=4,bandwidth=1,latency=1", "mesh:4", &messages);
    // 1 -> 2 begins at 0, so the first header from PE 0, which arrives at 1 s, waits until 4 s.
    assert_eq!(times, [4.0 + 10.0 + 1.0, 10.0 + 10.0 + 1.0, 12.0, 5.0]);
    assert_eq!(bytes, [20, 14, 0, 0, 10, 10]);
}

#[test]
fn adaptive_packets_take_a_free_shortest_route() {
    let messages = [(0, 3, 8), (0, 3, 8)];
    for (routing, expected) in [("fixed", [10.0, 18.0]), ("adaptive", [10.0, 10.0])] {
        let spec = format!("packet:size=8,bandwidth=1,latency=1,routing={routing}");
        assert_eq!(deliver(&spec, "hypercube:2", &messages).0, expected, "{routing}");
    }
    // Both directions around half a ring.
    let (_, bytes) = deliver("packet:size=1,routing=adaptive", "torus:4", &[(0, 2, 10)]);
    assert_eq!(bytes, [5, 5, 0, 0, 5, 0, 0, 5]);
}

#[test]
fn a_pe_sends_and_receives_no_more_than_its_limit() {
    let spec = "packet:size=4,bandwidth=8,latency=1,injection=2";
    // Out of PE 0: 16 bytes at 2 bytes per second, though over different links.
    assert_eq!(deliver(spec, "hypercube:2", &[(0, 1, 8), (0, 2, 8)]).0, [5.0, 9.0]);
    // Into PE 0.
    assert_eq!(deliver(spec, "hypercube:2", &[(1, 0, 8), (2, 0, 8)]).0, [7.0, 9.0]);
    let spec = "packet:size=4,bandwidth=8,latency=1,injection=2,ejection=none";
    assert_eq!(deliver(spec, "hypercube:2", &[(1, 0, 8), (2, 0, 8)]).0, [5.0, 5.0]);
}

#[test]
fn errors_name_the_problem_of_a_spec() {
    for (spec, expected) in [
        ("packet:size=0", "packet:size=0 is not understood: a packet has at least 1 byte"),
        ("packet:routing=random", "packet:routing=random is not understood: expected `fixed` or `adaptive`"),
        ("packet:injection=0", "packet:injection=0 is not understood: expected a number above 0, or `none`"),
        (
            "packet:latency=-1",
            "packet:latency=-1 is not understood: expected seconds, at least 0, or `machine`",
        ),
    ] {
        assert_eq!(parse(spec).err().expect(spec).to_string(), expected);
    }
}

/// A packet in the simulation byte by byte.
#[derive(Clone, Copy)]
struct Walker {
    message: usize,
    hop: usize,
    bytes: u64,
    /// Headers that arrive in the same second queue in the order in which they last entered a queue.
    ticket: u64,
}

/// The arrival times of messages on links of 1 byte/s and `latency` seconds, simulated second by second.
fn byte_by_byte(machine: &str, size: u64, latency: u64, messages: &[(u32, u32, u64)]) -> Vec<f64> {
    let machine = topology::parse(machine).expect(machine);
    let mut routes = vec![Vec::new(); messages.len()];
    // By link: the queue, and the remaining bytes of the packet on the link.
    let mut queues: Vec<VecDeque<Walker>> = vec![VecDeque::new(); machine.links()];
    let mut left = vec![0u64; machine.links()];
    let (mut coming, mut tickets): (Vec<(u64, Walker)>, u64) = (Vec::new(), 0);
    let mut arrived = vec![0.0; messages.len()];
    for (message, &(from, to, bytes)) in messages.iter().enumerate() {
        machine.route(from as usize, to as usize, &mut routes[message]);
        let packets = if from == to { 0 } else { bytes.div_ceil(size).max(1) };
        for packet in 0..packets {
            let bytes = size.min(bytes - packet * size);
            coming.push((0, Walker { message, hop: 0, bytes, ticket: tickets }));
            tickets += 1;
        }
    }
    let mut now = 0;
    while !coming.is_empty() || queues.iter().any(|queue| !queue.is_empty()) {
        left.iter_mut().for_each(|left| *left = left.saturating_sub(1));
        let (mut here, later): (Vec<_>, Vec<_>) = coming.into_iter().partition(|&(at, _)| at == now);
        coming = later;
        here.sort_by_key(|(_, walker)| walker.ticket);
        for (_, mut walker) in here {
            match routes[walker.message].get(walker.hop) {
                None => {
                    let arrived: &mut f64 = &mut arrived[walker.message];
                    *arrived = arrived.max((now + walker.bytes) as f64);
                }
                Some(&link) => {
                    walker.ticket = tickets;
                    tickets += 1;
                    queues[link].push_back(walker);
                }
            }
        }
        for (queue, left) in queues.iter_mut().zip(&mut left) {
            while *left == 0
                && let Some(walker) = queue.pop_front()
            {
                *left = walker.bytes;
                coming.push((now + latency, Walker { hop: walker.hop + 1, ..walker }));
            }
        }
        now += 1;
    }
    arrived
}

proptest! {
    #[test]
    fn arrivals_equal_those_of_the_simulation_byte_by_byte(
        machine in 0..MACHINES.len(),
        messages in prop::collection::vec((0..64u32, 0..64u32, 0..40u64), 1..40),
        (size, latency) in (1..20u64, 1..4u64),
    ) {
        let pes = topology::parse(MACHINES[machine]).expect("a machine").pes() as u32;
        let messages: Vec<_> = messages.iter().map(|&(a, b, bytes)| (a % pes, b % pes, bytes)).collect();
        let spec = format!("packet:size={size},bandwidth=1,latency={latency}");
        let (times, _) = deliver(&spec, MACHINES[machine], &messages);
        prop_assert_eq!(byte_by_byte(MACHINES[machine], size, latency, &messages), times);
    }

    #[test]
    fn every_byte_arrives_and_no_message_is_too_fast(
        machine in 0..MACHINES.len(),
        messages in prop::collection::vec((0..64u32, 0..64u32, 0..5000u64), 1..40),
        size in 1..3000u64,
        (adaptive, limited) in (any::<bool>(), any::<bool>()),
    ) {
        let name = MACHINES[machine];
        let machine = topology::parse(name).expect("a machine");
        let pes = machine.pes() as u32;
        let messages: Vec<_> = messages.iter().map(|&(a, b, bytes)| (a % pes, b % pes, bytes)).collect();
        let routing = if adaptive { "adaptive" } else { "fixed" };
        let limit = if limited { ",injection=64" } else { "" };
        let spec = format!("packet:size={size},bandwidth=64,latency=0.5,routing={routing}{limit}");
        let (times, bytes) = deliver(&spec, name, &messages);
        let carried: u64 = bytes.iter().zip(0..).map(|(bytes, id)| bytes * u64::from(machine.link(id).length)).sum();
        let distance = |from: u32, to: u32| u64::from(machine.distance(from as usize, to as usize));
        let hop_bytes: u64 = messages.iter().map(|&(from, to, bytes)| bytes * distance(from, to)).sum();
        prop_assert_eq!(carried, hop_bytes);
        for (&(from, to, bytes), &time) in messages.iter().zip(&times) {
            let mut route = Vec::new();
            machine.route(from as usize, to as usize, &mut route);
            let last_packet = bytes.min(size) as f64 / 64.0;
            // Another shortest route may have fewer links than the route of the machine.
            let links = if adaptive { 1.min(route.len()) } else { route.len() };
            let least = if from == to { 0.0 } else { links as f64 * 0.5 + last_packet };
            prop_assert!(time >= least, "{from} to {to}: {bytes} bytes at {time} s");
        }
        // No link transfers more than its bandwidth.
        let longest = bytes.iter().copied().max().unwrap_or(0) as f64 / 64.0;
        let end = times.iter().copied().fold(0.0, f64::max);
        prop_assert!(end >= longest, "the last message arrives at {end} s, but a link is busy for {longest} s");
    }
}

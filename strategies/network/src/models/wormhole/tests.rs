//! Tests of worms: the paper's equation and figure, BookSim's batches, and a simulation flit by flit.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use equipoise_model::topology;

use super::*;
use crate::models::parse;

/// The folder of the reference data, outside the repository.
const BOOKSIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/reference/booksim");

/// The arrival cycles of messages `(from, to, flits)` sent in cycle 0, and the network.
fn deliver(model: &Wormhole, machine: &str, messages: &[(u32, u32, u64)]) -> (Vec<f64>, WormholeNetwork) {
    let machine = topology::parse(machine).expect(machine);
    let prepared = model.prepare(&machine).expect("few PEs");
    let mut network = WormholeNetwork::new(&prepared).expect("few links");
    for (&(from, to, flits), token) in messages.iter().zip(0..) {
        network.send(0.0, Message { token, from, to, bytes: flits });
    }
    let (mut arrivals, mut cycles) = (Vec::new(), vec![f64::NAN; messages.len()]);
    while let Some(next) = network.next_event() {
        network.advance(next, &mut arrivals);
    }
    assert!(arrivals.is_sorted_by_key(|arrival| arrival.seconds));
    for arrival in arrivals {
        let cycle = &mut cycles[arrival.token as usize];
        assert!(cycle.is_nan(), "message {} arrives once", arrival.token);
        *cycle = arrival.seconds / model.cycle_seconds;
    }
    (cycles, network)
}

/// A model with 1 byte per flit and 1 s per cycle.
fn model(cycles_per_hop: u32, buffer_flits: u32, handoff_cycles: u32) -> Wormhole {
    Wormhole {
        flit_bytes: 1,
        cycles_per_hop,
        buffer_flits,
        handoff_cycles,
        cycle_seconds: 1.0,
        has_ports: true,
    }
}

#[test]
fn a_message_without_contention_has_the_latency_of_equation_1() {
    for (machine, to) in [("mesh:5", 4), ("mesh:8x8", 63), ("torus:4x4x4", 42), ("hypercube:6", 63)] {
        let distance = topology::parse(machine).expect(machine).distance(0, to as usize);
        for flits in [1, 2, 10, 1000] {
            let (cycles, _) = deliver(&model(1, 1, 0), machine, &[(0, to, flits)]);
            assert_eq!(cycles, [flits as f64 + f64::from(distance) - 1.0], "{machine}, {flits} flits");
            let (cycles, _) = deliver(&model(4, 16, 4), machine, &[(0, to, flits)]);
            assert_eq!(cycles, [4.0 * f64::from(distance) + flits as f64 - 1.0], "{machine}, {flits} flits");
        }
    }
}

/// Figure 1 of the paper: (1, 3) waits for (3, 4), although they share no link.
#[test]
fn a_message_can_wait_for_a_message_with_a_disjoint_route() {
    let messages = [(3, 4, 10), (2, 4, 10), (1, 3, 10)];
    let cycles = [10.0, 20.0, 29.0];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (arrived, _) = deliver(&model(1, 1, 0), "mesh:5", &order.map(|i| messages[i]));
        assert_eq!(arrived, order.map(|i| cycles[i]));
    }
}

#[test]
fn flits_and_cycles_have_the_sizes_of_the_spec() {
    let machine = topology::parse("mesh:3").expect("a mesh");
    let model = parse("wormhole:flit=4,cycles_per_hop=2,cycle=0.5").expect("a network");
    let mut network = model.on(&machine).expect("few PEs");
    let mut send = |now, bytes, to| {
        network.send(now, Message { token: 0, from: 0, to, bytes });
        let mut arrivals = Vec::new();
        while let Some(next) = network.next_event() {
            network.advance(next, &mut arrivals);
        }
        arrivals[0].seconds
    };
    // 9 bytes are 3 flits, and 0 bytes are 1 flit. A message that is sent within a cycle waits for the next cycle.
    assert_eq!([send(0.0, 9, 2), send(10.0, 0, 1), send(20.2, 1, 1)], [3.0, 11.0, 21.5]);
    assert_eq!(send(30.0, 1000, 0), 30.0);
    for (spec, expected) in [
        ("wormhole:flit=0", "wormhole:flit=0 is not understood: expected a whole number of at least 1"),
        ("wormhole:cycle=0", "wormhole:cycle=0 is not understood: a cycle takes more than 0 seconds"),
    ] {
        assert_eq!(parse(spec).err().expect(spec).to_string(), expected);
    }
    let large = topology::parse("torus:32x32x32").expect("a torus");
    let refusal = model.on(&large).err().expect("too many routes").to_string();
    assert!(refusal.contains("has 32768 PEs") && refusal.contains("use `packet`"), "{refusal}");
}

/// Pearson's correlation coefficient of pairs.
fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let product = |a: fn(&(f64, f64), f64, f64) -> f64| pairs.iter().map(|pair| a(pair, x, y)).sum::<f64>();
    let (xx, yy) = (product(|p, x, _| (p.0 - x).powi(2)), product(|p, _, y| (p.1 - y).powi(2)));
    product(|p, x, y| (p.0 - x) * (p.1 - y)) / (xx * yy).sqrt()
}

/// The mean of |found - expected| / expected.
fn mean_error(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|(found, expected)| (found - expected).abs() / expected).sum::<f64>()
        / pairs.len() as f64
}

/// By machine, BookSim's cases: (found, expected) cycles of the whole batch, and of the mean latency.
type Batches = BTreeMap<String, Vec<[(f64, f64); 2]>>;

fn batches() -> Option<Batches> {
    let read = |name: &str| std::fs::read_to_string(format!("{BOOKSIM}/{name}")).ok();
    let cases: Value = serde_json::from_str(&read("batch_cases.json")?).expect("cases");
    let booksim: BTreeMap<u64, Vec<String>> = read("batch_completion.csv")?
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(str::to_string).collect::<Vec<_>>())
        .map(|fields| (fields[0].parse().expect("a case"), fields))
        .collect();
    let model = model(4, 16, 4);
    let mut batches = Batches::new();
    for case in cases.as_array().expect("a list") {
        let expected = &booksim[&case["case"].as_u64().expect("a number")];
        let machine = match expected[1].as_str() {
            "mesh4x4" => "mesh:4x4",
            "mesh8x8" => "mesh:8x8",
            "hyper16" => "hypercube:4",
            "hyper64" => "hypercube:6",
            "torus8x8" => "torus:8x8",
            other => panic!("unknown machine {other}"),
        };
        let flits = case["flits"].as_u64().expect("a number");
        let mut messages = Vec::new();
        for (destinations, from) in case["dest"].as_array().expect("a list per node").iter().zip(0..) {
            for to in destinations.as_array().expect("a list") {
                messages.push((from, to.as_u64().expect("a node") as u32, flits));
            }
        }
        let (cycles, _) = deliver(&model, machine, &messages);
        let last = cycles.iter().copied().fold(0.0, f64::max);
        let mean = cycles.iter().sum::<f64>() / cycles.len() as f64;
        let number = |field: usize| expected[field].parse::<f64>().expect("cycles");
        let of_machine = batches.entry(machine.to_string()).or_default();
        of_machine.push([(last, number(5)), (mean, number(6))]);
    }
    Some(batches)
}

#[test]
fn batches_agree_with_booksim() {
    let Some(batches) = batches() else {
        equipoise_model::testing::skip(&format!("{BOOKSIM} does not exist"));
        return;
    };
    let of = |column: usize, is_wanted: fn(&str) -> bool| -> Vec<(f64, f64)> {
        let wanted = batches.iter().filter(|(machine, _)| is_wanted(machine));
        wanted.flat_map(|(_, cases)| cases.iter().map(move |case| case[column])).collect()
    };
    for (machine, cases) in &batches {
        let whole: Vec<_> = cases.iter().map(|case| case[0]).collect();
        let (r, error) = (correlation(&whole), mean_error(&whole));
        eprintln!("{machine}: {} cases, Pearson {r:.4}, mean error {error:.4}", whole.len());
    }
    let no_torus = |machine: &str| !machine.starts_with("torus");
    let (whole, mean) = (of(0, no_torus), of(1, no_torus));
    assert!(correlation(&whole) >= 0.998 && mean_error(&whole) <= 0.045, "{whole:?}");
    assert!(correlation(&mean) >= 0.998 && mean_error(&mean) <= 0.045, "{mean:?}");
}

/// By token and hop: (channel, [header crossed, tail crossed, free for the next worm]).
fn journeys(network: &WormholeNetwork, messages: usize) -> Vec<Vec<(u32, [f64; 3])>> {
    let mut journeys = vec![Vec::new(); messages];
    for &(channel, token, times) in &network.held {
        journeys[token as usize].push((channel, times));
    }
    journeys
}

/// The cycles a header takes to cross a channel.
fn crossing(network: &WormholeNetwork, channel: u32) -> f64 {
    if network.is_port(channel) { 0.0 } else { f64::from(network.model.cycles_per_hop) }
}

/// By channel, in the order of holding: when it was requested, held and free again, and by which worm.
fn holders(network: &WormholeNetwork, messages: usize) -> BTreeMap<u32, Vec<(f64, f64, f64, usize)>> {
    let mut holders: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for (journey, token) in journeys(network, messages).iter().zip(0..) {
        let mut requested = 0.0;
        for &(channel, [head, _, free]) in journey {
            let since = head - crossing(network, channel);
            holders.entry(channel).or_default().push((requested, since, free, token));
            requested = head;
        }
    }
    holders.values_mut().for_each(|of| of.sort_by(|a, b| a.1.total_cmp(&b.1)));
    holders
}

/// By channel, in the simulation flit by flit: the remaining holders, last first, and since when it is free.
type Turns = BTreeMap<u32, (Vec<usize>, f64)>;

/// The arrival cycles of the tails, simulated flit by flit and cycle by cycle. The order in which worms hold each
/// channel is taken from `network`; the times are computed independently.
fn flit_by_flit(network: &WormholeNetwork, flits: &[u64]) -> Vec<f64> {
    let journeys = journeys(network, flits.len());
    let in_turn = holders(network, flits.len());
    let in_turn = in_turn.into_iter().map(|(channel, of)| (channel, of.iter().rev().map(|o| o.3).collect()));
    let mut turns: Turns = in_turn.map(|(channel, turns): (_, Vec<_>)| (channel, (turns, 0.0))).collect();
    // By worm and hop: when each flit crossed the channel, and since when the worm holds it.
    let mut crossed: Vec<Vec<Vec<f64>>> = journeys.iter().map(|j| vec![Vec::new(); j.len()]).collect();
    let mut since: Vec<Vec<Option<f64>>> = journeys.iter().map(|j| vec![None; j.len()]).collect();
    let mut cycle = 0.0;
    while turns.values().any(|turns| !turns.0.is_empty()) {
        assert!(cycle < 1e5, "the worms are deadlocked");
        // The move of a flit can enable another move in the same cycle.
        let mut has_moved = true;
        while std::mem::take(&mut has_moved) {
            for (worm, journey) in journeys.iter().enumerate() {
                for (hop, &(channel, _)) in journey.iter().enumerate() {
                    let crossing = crossing(network, channel);
                    let flit = crossed[worm][hop].len();
                    let Some((turns, free)) = turns.get_mut(&channel) else { continue };
                    let behind = if hop == 0 { Some(0.0) } else { crossed[worm][hop - 1].get(flit).copied() };
                    let Some(behind) = behind else { continue };
                    if since[worm][hop].is_none() && turns.last() == Some(&worm) && cycle >= *free {
                        since[worm][hop] = Some(cycle);
                    }
                    let is_mine = since[worm][hop].is_some_and(|since| cycle >= since + crossing);
                    let is_here = hop == 0 || cycle >= behind + crossing;
                    let is_next = crossed[worm][hop].last().is_none_or(|&last| cycle > last);
                    let room = crossed[worm]
                        .get(hop + 1)
                        .map_or(usize::MAX, |further| further.len() + network.model.buffer_flits as usize);
                    if !(is_mine && is_here && is_next && flit < room && (flit as u64) < flits[worm]) {
                        continue;
                    }
                    crossed[worm][hop].push(cycle);
                    has_moved = true;
                    if flit as u64 + 1 == flits[worm] {
                        turns.pop();
                        let last_flit = f64::from(u8::from(network.is_port(channel)));
                        *free = cycle + last_flit + f64::from(network.model.handoff_cycles);
                    }
                }
            }
        }
        cycle += 1.0;
    }
    let tail = |of: &Vec<Vec<f64>>| of.last().and_then(|last| last.last().copied()).unwrap_or(0.0);
    crossed.iter().map(tail).collect()
}

/// Machines with different kinds of routes, with and without cyclic dependencies.
const MACHINES: &[&str] = &[
    "mesh:4",
    "mesh:3x3",
    "hypercube:3",
    "torus:5",
    "torus:4x3",
    "flat:6",
    "tree:2:3",
    "fattree:2:2:2",
    "dragonfly:groups=3,routers=2,hosts=1",
    "graph:ring:7",
];

proptest! {
    #[test]
    fn worms_hold_links_exclusively_in_order_and_arrive(
        machine in 0..MACHINES.len(),
        messages in prop::collection::vec((0..64u32, 0..64u32, 0..40u64), 1..60),
        (cycles_per_hop, more_buffer, handoff) in (1..4u32, 0..8u32, 0..4u32),
    ) {
        let pes = topology::parse(MACHINES[machine]).expect("a machine").pes() as u32;
        let messages: Vec<_> = messages.iter().map(|&(a, b, flits)| (a % pes, b % pes, flits)).collect();
        // With a buffer smaller than `cycles_per_hop`, the tail cannot keep up and the equation does not hold.
        let model = model(cycles_per_hop, cycles_per_hop + more_buffer, handoff);
        let (cycles, network) = deliver(&model, MACHINES[machine], &messages);

        prop_assert!(cycles.iter().all(|cycle| cycle.is_finite()), "every message arrives");
        prop_assert!(network.channels.iter().all(|channel| channel.holder == NONE), "no channel is held");
        prop_assert_eq!(network.free.len(), network.worms.len());
        for holders in holders(&network, messages.len()).values() {
            for pair in holders.windows(2) {
                prop_assert!(pair[0].2 <= pair[1].1, "a channel is held by one message: {:?}", pair);
                prop_assert!(pair[0].0 <= pair[1].0, "the first request is served first: {:?}", pair);
            }
        }
        for journey in journeys(&network, messages.len()) {
            for pair in journey.windows(2) {
                let ([head, tail, _], [next_head, next_tail, _]) = (pair[0].1, pair[1].1);
                prop_assert!(head <= next_head && tail <= next_tail && head <= tail, "{:?}", journey);
            }
        }
        let flits: Vec<u64> = messages.iter().map(|message| message.2.max(1)).collect();
        prop_assert_eq!(flit_by_flit(&network, &flits), cycles);
    }
}

#[test]
fn worms_on_a_full_ring_do_not_deadlock() {
    for machine in ["torus:8", "torus:6x6", "torus:4x4x4", "graph:torus:5x5"] {
        let pes = topology::parse(machine).expect(machine).pes() as u32;
        let all: Vec<_> = (0..pes).flat_map(|a| (1..pes).map(move |d| (a, (a + d) % pes, 200))).collect();
        let (cycles, network) = deliver(&model(1, 1, 0), machine, &all);
        assert!(cycles.iter().all(|cycle| cycle.is_finite()));
        let carried: u64 = network.wires().bytes.iter().sum();
        let machine = topology::parse(machine).expect(machine);
        let hops: u64 = all.iter().map(|m| u64::from(machine.distance(m.0 as usize, m.1 as usize))).sum();
        assert_eq!(carried, 200 * hops);
    }
}

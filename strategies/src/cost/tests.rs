//! Metrics compared with brute force, with an independent checker, and with published numbers.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;

use equipoise_model::database::{Dump, Edge, End, Object, PeRecord, arbitrary};
use equipoise_model::topology;

use super::*;
use crate::testing;

/// Machines of every shape with `pes` PEs.
fn machines(pes: usize) -> Vec<Arc<dyn Topology>> {
    let specs =
        [format!("flat:{pes}"), format!("torus:{pes}"), format!("mesh:{pes}"), format!("tree:1:{pes}/9:4")];
    let mut machines: Vec<_> = specs.iter().map(|spec| topology::parse(spec).unwrap()).collect();
    if pes.is_multiple_of(2) {
        machines.push(topology::parse(&format!("torus:2x{}", pes / 2)).unwrap());
    }
    machines
}

/// A database, a placement of its objects that may be invalid, and the index of a machine for it.
fn placed(pes: usize) -> impl Strategy<Value = (Database, Vec<u32>, usize)> {
    arbitrary::database(pes, 1 << 57, false).prop_flat_map(|database| {
        let placement = proptest::collection::vec(0..database.pes.len() as u32, database.objects.len());
        (Just(database), placement, 0..4usize)
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0)
}

/// The definition of every metric, one edge, object and PE at a time.
fn check_against_definition(database: &Database, machine: &dyn Topology, placement: &[u32]) {
    let metrics = Metrics::full(database, machine, placement);
    let (mut hop_bytes, mut bytes, mut remote_bytes, mut messages, mut remote_messages) = (0, 0, 0, 0, 0);
    let mut dilation = 0;
    for edge in &database.edges {
        let [a, b] = [edge.from, edge.to].map(|end| match end {
            End::Object(object) => placement[object as usize],
            End::Pe(pe) => pe,
        });
        let distance = machine.distance(a as usize, b as usize);
        hop_bytes += u128::from(edge.bytes) * u128::from(distance);
        dilation = dilation.max(distance);
        (bytes, messages) = (bytes + edge.bytes, messages + edge.messages);
        if a != b {
            (remote_bytes, remote_messages) = (remote_bytes + edge.bytes, remote_messages + edge.messages);
        }
    }
    assert_eq!(metrics.communication.is_some(), database.communication_recorded);
    let communication = metrics.communication.unwrap_or_default();
    assert_eq!((communication.hop_bytes, communication.max_dilation), (hop_bytes, dilation));
    assert_eq!((communication.total_bytes, communication.remote_bytes), (bytes, remote_bytes));
    assert_eq!((communication.total_messages, communication.remote_messages), (messages, remote_messages));
    assert!(close(communication.hops_per_byte * bytes as f64, hop_bytes as f64));
    assert!(close(communication.hops_per_remote_byte * remote_bytes as f64, hop_bytes as f64));

    let load = |pe: usize| {
        let own = database.objects.iter().zip(placement).filter(|&(_, &p)| p as usize == pe);
        let work: f64 = own.map(|(o, _)| o.load_seconds).sum();
        work / database.pes[pe].speed + database.pes[pe].background_seconds
    };
    let any = database.pes.iter().any(|pe| pe.available);
    let counts = |pe: &usize| !any || database.pes[*pe].available || placement.contains(&(*pe as u32));
    let max = (0..database.pes.len()).filter(counts).map(load).fold(0.0, f64::max);
    assert!(close(metrics.max_load_seconds, max));
    let takes = |pe: usize| !any || database.pes[pe].available;
    let shared = database.objects.iter().filter(|o| o.migratable || takes(o.pe as usize));
    let (mut work, mut speed) = (shared.map(|o| o.load_seconds).sum::<f64>(), 0.0);
    for pe in (0..database.pes.len()).filter(|&pe| takes(pe)).map(|pe| &database.pes[pe]) {
        work += pe.background_seconds * pe.speed;
        speed += pe.speed;
    }
    assert!(close(metrics.average_load_seconds, work / speed));
    assert!(close(metrics.imbalance, (max * speed / work - 1.0).max(0.0)) || work == 0.0);
    assert!(metrics.average_load_seconds <= metrics.lower_bound_seconds * (1.0 + 1e-12));
    let moved: Vec<&Object> =
        database.objects.iter().zip(placement).filter(|&(o, &pe)| o.pe != pe).map(|(o, _)| o).collect();
    assert_eq!(metrics.migrations, moved.len() as u64);
    assert_eq!(metrics.migrated_bytes, moved.iter().map(|o| o.bytes).sum());

    let loads = link_loads(database, machine, placement);
    let lengths = (0..machine.links()).map(|id| u128::from(machine.link(id).length));
    let travelled: u128 = loads.iter().zip(lengths).map(|(&bytes, length)| u128::from(bytes) * length).sum();
    assert_eq!(travelled, hop_bytes, "link loads times lengths on {}", machine.spec());
    if database.communication_recorded {
        assert_eq!(communication.max_link_bytes, loads.iter().copied().max().or(Some(0)));
        assert_eq!(communication.max_link_seconds, Some(mcf::cost(database, machine, placement)));
    }
}

/// Every placement of `objects` objects on `pes` PEs.
fn all_placements(objects: usize, pes: usize) -> impl Iterator<Item = Vec<u32>> {
    let digit = move |code: usize, i: usize| (code / pes.pow(i as u32) % pes) as u32;
    (0..pes.pow(objects as u32)).map(move |code| (0..objects).map(|i| digit(code, i)).collect())
}

/// Keeps only the first `objects` objects and the edges between them.
fn keep(database: &mut Database, objects: usize) {
    database.objects.truncate(objects);
    let there = |end| match end {
        End::Object(object) => (object as usize) < objects,
        End::Pe(_) => true,
    };
    database.edges.retain(|edge| there(edge.from) && there(edge.to));
}

proptest! {
    #[test]
    fn metrics_follow_their_definition((database, placement, machine) in placed(6)) {
        let machines = machines(database.pes.len());
        check_against_definition(&database, &*machines[machine % machines.len()], &placement);
    }

    #[test]
    fn no_placement_creates_or_loses_load((database, placement, _) in placed(6)) {
        let work = |placement: &[u32]| -> f64 {
            let loads = database.pe_loads(placement);
            loads.iter().zip(&database.pes).map(|(load, pe)| (load - pe.background_seconds) * pe.speed).sum()
        };
        prop_assert!(close(work(&database.placement()), database.load_seconds()));
        prop_assert!(close(work(&placement), database.load_seconds()));
        let moved = database.clone().placed(&placement);
        prop_assert_eq!(moved.summary(), database.summary());
        prop_assert_eq!(moved.placement(), placement);
    }

    #[test]
    fn no_possible_placement_is_below_the_bounds(
        mut database in arbitrary::database(3, 1 << 40, false),
        machine in 0..4usize,
    ) {
        keep(&mut database, 5);
        let pes = database.pes.len();
        let machines = machines(pes);
        let machine = &*machines[machine % machines.len()];
        let any = database.pes.iter().any(|pe| pe.available);
        let possible = |placement: &Vec<u32>| {
            database.objects.iter().zip(placement).all(|(o, &pe)| {
                if o.migratable { !any || database.pes[pe as usize].available } else { pe == o.pe }
            })
        };
        for placement in all_placements(database.objects.len(), pes).filter(possible) {
            let metrics = Metrics::full(&database, machine, &placement);
            prop_assert!(
                metrics.lower_bound_seconds <= metrics.max_load_seconds * (1.0 + 1e-12),
                "{metrics:?} at {placement:?}"
            );
            let Some(communication) = metrics.communication else { continue };
            let bound = communication.hop_bytes_lower_bound.unwrap();
            prop_assert!(bound <= communication.hop_bytes, "{metrics:?} at {placement:?}");
        }
    }
}

/// Objects with these loads on PE 0 of `pes` PEs.
fn objects(loads: &[f64], pes: usize) -> Database {
    testing::database(pes, &loads.iter().map(|&load| (load, 0)).collect::<Vec<_>>())
}

#[track_caller]
fn check_bound(database: &Database, average: f64, heaviest: f64, bound: f64) {
    let expected =
        LoadBound { average_seconds: average, heaviest_object_seconds: heaviest, bound_seconds: bound };
    assert_eq!(LoadBound::of(database), expected);
}

#[test]
fn the_load_bound_includes_speeds_background_and_pinned_objects() {
    check_bound(&objects(&[3.0, 1.0], 2), 2.0, 3.0, 3.0);
    check_bound(&objects(&[1.0; 6], 3), 2.0, 1.0, 2.0);
    check_bound(&objects(&[], 2), 0.0, 0.0, 0.0);

    let mut fast = objects(&[4.0, 2.0], 2);
    fast.pes[1].speed = 2.0;
    check_bound(&fast, 2.0, 2.0, 2.0);

    let mut busy = objects(&[1.0, 1.0], 3);
    busy.pes[2].background_seconds = 7.0;
    check_bound(&busy, 3.0, 1.0, 7.0);
    busy.pes[2].available = false;
    check_bound(&busy, 1.0, 1.0, 1.0);

    let mut pinned = objects(&[6.0, 2.0, 1.0], 2);
    pinned.objects[0].migratable = false;
    check_bound(&pinned, 4.5, 2.0, 6.0);
    pinned.pes.push(PeRecord { background_seconds: 1.5, ..PeRecord::default() });
    check_bound(&pinned, 3.5, 2.0, 6.0);
    // Load pinned to an unavailable PE cannot be shared by other PEs.
    pinned.pes[0].available = false;
    check_bound(&pinned, 2.25, 2.0, 6.0);

    let mut poured = objects(&[1.0, 1.0, 1.0, 1.0], 3);
    poured.pes[0].background_seconds = 1.0;
    poured.pes[1].background_seconds = 9.0;
    poured.pes[1].available = false;
    check_bound(&poured, 2.5, 1.0, 2.5);
}

#[test]
fn the_bound_on_hop_bytes_is_reached_by_a_ring_on_a_ring() {
    let mut ring = objects(&[1.0; 8], 8);
    let edge = |i: u32| Edge { from: End::Object(i), to: End::Object((i + 1) % 8), messages: 1, bytes: 10 };
    ring.edges = (0..8).map(edge).collect();
    let machine = topology::parse("torus:8").unwrap();
    let along: Vec<u32> = (0..8).collect();
    let cost = |placement: &[u32]| Metrics::full(&ring, &*machine, placement).communication.unwrap();
    let one_each = cost(&along);
    assert_eq!((one_each.hop_bytes, one_each.hop_bytes_lower_bound), (80, Some(80)));
    assert_eq!((one_each.max_link_bytes, one_each.mean_link_bytes), (Some(10), Some(5.0)));
    // Two adjacent objects on each PE: every other edge is local.
    let pairs: Vec<u32> = (0..8).map(|i| i / 2).collect();
    assert_eq!(cost(&pairs).hop_bytes_lower_bound, Some(40));
    assert_eq!(hop_bytes_bound(&ring, &*machine, 8), Some(0));
    assert_eq!(hop_bytes_bound(&ring, &*machine, 0), None);
}

#[test]
fn the_independent_checker_agrees() {
    let checker = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/checker/hbcheck.py");
    let python = Command::new("python3").arg("--version").output();
    if !fs::exists(checker).unwrap_or(false) || python.is_err() {
        equipoise_model::testing::skip(&format!("there is no {checker}, or no python3"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut random = 12345u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % bound
    };
    for (spec, tasks) in [
        ("torus:4x3", 12),
        ("torus:5x2x3", 90),
        ("mesh:4x4", 16),
        ("mesh:3x2x2x2", 60),
        ("tree:2:3:2/9:5:1", 40),
    ] {
        let machine = topology::parse(spec).unwrap();
        let mut database = objects(&vec![1.0; tasks], machine.pes());
        let mut csv = String::from("src,dst,bytes\n");
        for _ in 0..4 * tasks {
            // Equal volumes in both directions, as the link loads of the checker assume.
            let (a, b, bytes) = (below(tasks as u64) as u32, below(tasks as u64) as u32, 1 + below(1000));
            for (a, b) in [(a, b), (b, a)].iter().filter(|(a, b)| a != b) {
                database.edges.push(Edge { from: End::Object(*a), to: End::Object(*b), messages: 1, bytes });
                writeln!(csv, "{a},{b},{bytes}").unwrap();
            }
        }
        // The checker numbers tasks up to the last one with an edge.
        let last = tasks as u32 - 1;
        database.edges.push(Edge { from: End::Object(last), to: End::Object(0), messages: 1, bytes: 2 });
        database.edges.push(Edge { from: End::Object(0), to: End::Object(last), messages: 1, bytes: 2 });
        writeln!(csv, "{last},0,2\n0,{last},2").unwrap();
        let placement: Vec<u32> = (0..tasks).map(|_| below(machine.pes() as u64) as u32).collect();
        let [graph, map] = ["graph.csv", "map.txt"].map(|name| folder.path().join(name));
        fs::write(&graph, csv).unwrap();
        fs::write(&map, placement.iter().map(|pe| format!("{pe}\n")).collect::<String>()).unwrap();

        let output = Command::new("python3")
            .args([checker, "--json", "--topo", spec, "--graph"])
            .args([&graph, std::path::Path::new("--map"), &map].map(|part| part.as_os_str()))
            .output()
            .unwrap();
        let theirs: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&output.stderr)));
        let load = Metrics::full(&database, &*machine, &placement);
        let ours = load.communication.unwrap();
        let equal = |name: &str, ours: f64| {
            let theirs = theirs[name].as_f64().unwrap_or_else(|| panic!("no {name} in {theirs}"));
            assert!(close(ours, theirs), "{name} on {spec}: {ours}, and the checker has {theirs}");
        };
        equal("hop_bytes", ours.hop_bytes as f64);
        equal("bytes_total", ours.total_bytes as f64);
        equal("bytes_inter_pe", ours.remote_bytes as f64);
        equal("hops_per_byte", ours.hops_per_byte);
        equal("hops_per_inter_byte", ours.hops_per_remote_byte);
        equal("max_dilation", f64::from(ours.max_dilation));
        equal("imbalance", load.imbalance);
        equal("max_load", load.max_load_seconds);
        equal("avg_load", load.average_load_seconds);
        if !spec.starts_with("tree") {
            equal("max_link_load", ours.max_link_bytes.unwrap() as f64);
            equal("avg_link_load", ours.mean_link_bytes.unwrap());
        }
    }
}

#[test]
fn a_real_dump_has_the_metrics_that_were_measured_with_charm() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/reference/charm_dumps/leanmd_664_5616_p64.v6.0");
    if !fs::exists(path).unwrap_or(false) {
        equipoise_model::testing::skip(&format!("there is no {path}"));
        return;
    }
    let database = Dump::read(path).unwrap().steps.remove(0);
    let machine = topology::parse("torus:4x4x4").unwrap();
    let metrics = Metrics::full(&database, &*machine, &database.placement());
    let communication = metrics.communication.unwrap();
    let three_digits = |x: f64| (1000.0 * x).round() / 1000.0;
    assert_eq!(three_digits(metrics.imbalance), 0.494);
    assert_eq!(three_digits(communication.hops_per_byte), 3.137);
    assert_eq!(three_digits(communication.remote_bytes as f64 / communication.total_bytes as f64), 0.999);
    assert_eq!((metrics.migrations, metrics.migrated_bytes), (0, Some(0)));
}

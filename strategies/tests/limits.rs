//! What strategies cost follows the objects and the PEs in use, and parameters have a range.
//!
//! A test binary of its own, because memory and time are measured per process.

use std::alloc::System;
use std::time::Duration;

use cap::Cap;
use cpu_time::ProcessTime;
use equipoise_model::Topology;
use equipoise_model::database::{Database, Edge, End, Object, ObjectIndex, PeRecord};
use equipoise_model::topology;
use equipoise_strategies::cost::Metrics;
use equipoise_strategies::registry;
use parking_lot::Mutex;

/// Ends the process if it uses more: 1 kB for each PE of the large machine.
#[global_allocator]
static ALLOCATED: Cap<System> = Cap::new(System, 1 << 30);

/// Held by the test that measures, because [`ProcessTime`] counts all threads.
static MEASURING: Mutex<()> = Mutex::new(());

/// The most CPU time of a strategy with the largest values of its parameters, in units of [`unit`].
const MOST: u32 = 500;

/// The most CPU time of a strategy with its defaults, in units of [`unit`]: about four times the longest one measured, as is [`MOST`].
const MOST_BY_DEFAULT: u32 = 120;

/// No computer sorts in less: what takes fewer of these needs no comparison with [`unit`].
const LEAST_UNIT: Duration = Duration::from_millis(20);

/// CPU time of sorting two million numbers, which computers that other programs share take longer for, too.
fn unit() -> Duration {
    let mut numbers: Vec<u64> = (0..2_000_000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
    let start = ProcessTime::now();
    numbers.sort_unstable();
    let took = start.elapsed();
    std::hint::black_box(numbers);
    took
}

/// Machines with thousands of PEs.
const LARGE: [&str; 4] = ["flat:32769", "hypercube:15", "torus:128x256", "tree:8:64:64"];

/// Machines with up to a million PEs, for the slow group.
const LARGEST: [&str; 4] = ["flat:1048577", "hypercube:20", "torus:1024x1024", "tree:64:64:64"];

/// 20 objects, some of them on the last PE, which send to each other along a ring.
fn database(pes: u32) -> Database {
    let object = |id: u32| Object {
        id: u64::from(id),
        array: 0,
        index: ObjectIndex::new(&[id as i32]),
        load_seconds: 1.0 + f64::from(id % 3),
        bytes: Some(100),
        pe: if id % 2 == 0 { 0 } else { pes - 1 },
        migratable: id != 5,
    };
    let edge = |id| Edge { from: End::Object(id), to: End::Object((id + 1) % 20), messages: 2, bytes: 96 };
    Database {
        arrays: vec!["task".into()],
        pes: vec![PeRecord::default(); pes as usize],
        objects: (0..20).map(object).collect(),
        edges: (0..20).map(edge).collect(),
        communication_recorded: true,
        ..Database::default()
    }
}

/// Runs a strategy. It may refuse the machine, but not take more than `most` units of time or give an impossible assignment.
#[track_caller]
fn run(spec: &str, database: &Database, machine: &dyn Topology, most: u32) {
    let strategy = registry::parse(spec, &[]).unwrap_or_else(|error| panic!("{spec}: {error}")).strategy;
    let start = ProcessTime::now();
    let answer = strategy.assign(database, machine, 1);
    let took = start.elapsed();
    let metrics = answer.ok().map(|answer| {
        answer.check(database).unwrap_or_else(|error| panic!("{spec}: {error}"));
        Metrics::of(database, machine, &answer.pe_of)
    });
    let measured = start.elapsed() - took;
    let longest = took.max(measured);
    if longest >= most * LEAST_UNIT {
        let unit = unit();
        assert!(longest < most * unit, "{spec} on {} takes {took:?}, a unit {unit:?}", machine.spec());
    }
    assert!(metrics.is_none_or(|metrics| metrics.max_load_seconds > 0.0), "{spec}");
}

/// Runs all strategies on these machines, with this limit of CPU time in units of [`unit`].
fn run_all(machines: [&str; 4], most_by_default: u32) {
    for spec in machines {
        let machine = topology::parse(spec).expect(spec);
        let database = database(machine.pes() as u32);
        for choice in registry::without_required_parameters() {
            // McfLB follows all routes of its PEs, which on this torus have hundreds of links each.
            let has_long_routes = (&*choice.spec, spec) == ("McfLB", "torus:1024x1024");
            let most = if has_long_routes { MOST } else { most_by_default };
            run(&choice.spec, &database, &*machine, most);
        }
    }
}

#[test]
fn few_objects_on_many_pes_cost_little() {
    let _alone = MEASURING.lock();
    // What takes a time by the square of the number of PEs takes longer.
    run_all(LARGE, MOST_BY_DEFAULT / 4);
}

#[test]
#[ignore = "slow"]
fn few_objects_on_a_million_pes_cost_little() {
    let _alone = MEASURING.lock();
    run_all(LARGEST, MOST_BY_DEFAULT);
    let machine = topology::parse(LARGEST[0]).expect("a flat machine");
    let database = database(machine.pes() as u32);
    for spec in [
        "DistributedLB:known=65536",
        "DistributedLB:rounds=1000,phases=1000",
        "TemperedLB:knowledge=Complete,iters=2",
        "TemperedLB:fanout=1",
        "TemperedLB:rounds=1",
        "TemperedLB:iters=100,trials=100",
    ] {
        run(spec, &database, &*machine, MOST);
    }
}

/// The numbers of parameters that are no counts: any of them costs the same.
const FREE: &[&str] = &["memory", "order", "level"];

/// Pairs of a strategy and a parameter that takes numbers, with the largest number.
fn ranges() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for named in registry::ALL {
        for param in named.params.iter().filter(|param| !FREE.contains(&param.key)) {
            let spec = |value: &str| format!("{}:{}={value}", named.name, param.key);
            // Words are not numbers: nothing between 1 and 3 is accepted.
            if !["1", "2", "3"].iter().any(|number| registry::parse(&spec(number), &[]).is_ok()) {
                continue;
            }
            for silly in ["1000000000000000000", "99999999999999999999999", "-1", "nan", "inf"] {
                let error = match registry::parse(&spec(silly), &[]) {
                    Ok(_) => panic!("{} is accepted", spec(silly)),
                    Err(error) => error.to_string(),
                };
                assert!(error.contains("number from ") && error.contains(" to "), "{error}");
            }
            let error = registry::parse(&spec("1000000000000000000"), &[]).expect_err("refused").to_string();
            let most = error.split(" to ").nth(1).unwrap_or_else(|| panic!("no range: {error}"));
            let most: String = most.chars().take_while(|letter| letter.is_ascii_digit()).collect();
            all.push((spec(&most), most));
        }
    }
    all
}

#[test]
fn silly_values_of_every_parameter_are_refused_with_the_range() {
    let _alone = MEASURING.lock();
    let ranges = ranges();
    assert!(ranges.len() > 20, "{ranges:?}");
    for (spec, most) in ranges {
        registry::parse(&spec, &[]).unwrap_or_else(|error| panic!("{spec}: {most}: {error}"));
    }
}

#[test]
#[ignore = "slow"]
fn the_largest_values_end_soon_on_a_small_machine() {
    let _alone = MEASURING.lock();
    let (database, machine) = (database(8), topology::parse("torus:4x2").expect("a machine"));
    for (spec, _) in ranges() {
        run(&spec, &database, &*machine, MOST);
    }
}

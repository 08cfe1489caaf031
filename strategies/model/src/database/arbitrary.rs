//! Generators of arbitrary consistent databases, for property tests.

use std::collections::BTreeSet;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Database, Dump, Edge, End, Object, ObjectIndex, PeRecord};
use crate::constraints::{Constraints, Group, Level, MaxObjects, PerPe, Place, PlaceSet};
use crate::costs::{Costs, EndCosts, LinkLimits};

/// Any valid time, including the smallest and the largest.
fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![
        3 => 0.0..10.0f64,
        1 => Just(0.0),
        1 => (0..=1e30f64.to_bits()).prop_map(f64::from_bits),
    ]
}

fn pe_record(time: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = PeRecord> {
    let speed = prop_oneof![Just(1.0), 0.1..4.0f64];
    (speed, time.clone(), time.clone(), time, any::<bool>()).prop_map(
        |(speed, wall_seconds, idle_seconds, background_seconds, available)| PeRecord {
            speed,
            wall_seconds,
            idle_seconds,
            background_seconds,
            available,
        },
    )
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,8}", any::<String>()]
}

/// Costs of ends and links of which some are zero or unlimited.
fn costs() -> impl Strategy<Value = Costs> {
    let seconds = || prop_oneof![Just(0.0), 1e-9..1e-3f64];
    let ends = move || {
        (seconds(), seconds(), seconds(), seconds()).prop_map(
            |(send_seconds, send_seconds_per_byte, receive_seconds, receive_seconds_per_byte)| EndCosts {
                send_seconds,
                send_seconds_per_byte,
                receive_seconds,
                receive_seconds_per_byte,
            },
        )
    };
    let rate = || proptest::option::of(1.0..1e12f64);
    let links = (rate(), rate(), rate()).prop_map(|(bandwidth, injection, ejection)| LinkLimits {
        bandwidth,
        injection,
        ejection,
    });
    let strategies = proptest::collection::btree_map(name(), seconds(), 0..3);
    let parts = || proptest::collection::btree_map(name(), 1e-9..1e3f64, 0..3);
    let of_strategies = (strategies, parts(), parts());
    (ends(), ends(), ends(), ends(), 1..=8u32, proptest::option::of(links), of_strategies).prop_map(
        |(same_pe, same_process, other_process, migration, pes_per_process, links, of_strategies)| Costs {
            same_pe,
            same_process,
            other_process,
            migration,
            pes_per_process,
            links,
            strategies: of_strategies.0,
            delivered: of_strategies.1,
            found: of_strategies.2,
        },
    )
}

/// Databases of up to `pes` PEs whose edges have at most `bytes` bytes. If `extreme`, times have all magnitudes.
pub fn database(pes: usize, bytes: u64, extreme: bool) -> BoxedStrategy<Database> {
    let time = if extreme { seconds().boxed() } else { (0.0..10.0f64).boxed() };
    (1..=pes, 0..20usize, 0..3usize)
        .prop_flat_map(move |(pes, objects, arrays)| {
            let pe = 0..pes as u32;
            let index = vec(any::<i32>(), 0..=ObjectIndex::MAX_DIMENSIONS);
            let size = proptest::option::of(0..1u64 << 40);
            let array = 0..arrays.max(1) as u32;
            let object = (any::<u32>(), array, index, time.clone(), size, pe.clone(), any::<bool>())
                .prop_map(|(id, array, index, load_seconds, bytes, pe, migratable)| {
                    let index = ObjectIndex::new(&index);
                    Object { id: u64::from(id) << 32, array, index, load_seconds, bytes, pe, migratable }
                });
            let end = if objects == 0 {
                pe.prop_map(End::Pe).boxed()
            } else {
                prop_oneof![4 => (0..objects as u32).prop_map(End::Object), 1 => pe.prop_map(End::Pe)].boxed()
            };
            let edge = (end.clone(), end, 0..1u64 << 40, 0..=bytes);
            (
                any::<u64>(),
                vec(name(), arrays),
                vec(pe_record(time.clone()), pes),
                vec(object, objects),
                vec(edge, 0..60),
                any::<u64>(),
                prop::sample::select(vec![true, true, true, false]),
                proptest::option::of(costs()),
            )
        })
        .prop_map(|(step, arrays, pes, objects, edges, dangling_edges, communication_recorded, costs)| {
            // Adding the position makes ids unique, but not sorted.
            let object = |(position, o): (usize, Object)| Object { id: o.id | position as u64, ..o };
            let edge = |(from, to, messages, bytes)| Edge { from, to, messages, bytes };
            Database {
                step,
                arrays,
                pes,
                objects: objects.into_iter().enumerate().map(object).collect(),
                communication_recorded,
                edges: edges.into_iter().filter(|_| communication_recorded).map(edge).collect(),
                dangling_edges,
                costs,
                constraints: Constraints::default(),
            }
        })
        .boxed()
}

/// Constraints of all kinds about some of the objects with these ids. Often no placement keeps them.
fn constraints(ids: Vec<u64>) -> BoxedStrategy<Constraints> {
    if ids.is_empty() {
        return Just(Constraints::default()).boxed();
    }
    let per_pe =
        || prop_oneof![any::<u64>().prop_map(PerPe::All), vec(any::<u64>(), 0..4).prop_map(PerPe::Each)];
    let id = prop::sample::select(ids);
    let most = (per_pe(), any::<bool>()).prop_map(|(most, exact)| MaxObjects { most, exact });
    let set = prop::sample::select(vec!["3", "0-3,8", "!5", "node:2", "!node:0-1,7"])
        .prop_map(|text| Arc::new(PlaceSet::parse(text).expect("places")));
    let place = (id.clone(), set, proptest::option::of(seconds()))
        .prop_map(|(object, set, worth_seconds)| Place { object, set, worth_seconds });
    let level = prop::sample::select(vec![Level::Pe, Level::Node, Level::Switch]);
    let group = (any::<bool>(), level, vec(id.clone(), 0..4)).prop_map(|(together, level, objects)| Group {
        together,
        level,
        objects,
    });
    (
        proptest::option::of(most),
        proptest::option::of(per_pe()),
        vec((id.clone(), any::<u64>()), 0..3),
        vec(place, 0..3),
        vec(group, 0..3),
        vec((id, vec(seconds(), 2)), 0..3),
    )
        .prop_map(|(max_objects, memory, object_bytes, places, groups, phases)| Constraints {
            max_objects,
            memory,
            object_bytes: unique(object_bytes, |(id, _)| Some(*id)),
            // An object may have several wishes.
            places: unique(places, |place| place.worth_seconds.is_none().then_some(place.object)),
            groups,
            phases: unique(phases, |(id, _)| Some(*id)),
        })
        .boxed()
}

/// The entries without those of an id that an earlier one has.
fn unique<T>(mut entries: Vec<T>, id: impl Fn(&T) -> Option<u64>) -> Vec<T> {
    let mut known = BTreeSet::new();
    entries.retain(|entry| id(entry).is_none_or(|id| known.insert(id)));
    entries
}

/// Such a database, half of them with constraints.
fn constrained() -> impl Strategy<Value = Database> {
    database(6, 1 << 57, true).prop_flat_map(|database| {
        let ids = database.objects.iter().map(|object| object.id).collect();
        prop_oneof![Just(Constraints::default()), constraints(ids)]
            .prop_map(move |constraints| Database { constraints, ..database.clone() })
    })
}

/// Dumps of up to 3 such databases.
pub fn dump() -> impl Strategy<Value = Dump> {
    (name(), name(), vec(constrained(), 0..=3)).prop_map(|(program, topology, steps)| Dump {
        program,
        topology,
        steps,
        warnings: Vec::new(),
    })
}

//! Dumps of real programs compared with their text forms, constructed dumps in both layouts, and damaged dumps.

use super::*;
use crate::testing::charm_dumps;
use std::fs;

/// Parses the text form of a dump: a line per PE (P), object (O) and communication (C). A communication refers to
/// objects by position, to PEs as `pe0`, and to the receivers of a multicast as `m:1,2`.
fn text_form(text: &str) -> (Vec<PeRecord>, Vec<(String, Object)>, Vec<Edge>) {
    let (mut pes, mut objects, mut edges) = (Vec::new(), Vec::new(), Vec::new());
    let end = |word: &str| match word.strip_prefix("pe") {
        Some(pe) => End::Pe(pe.parse().unwrap()),
        None => End::Object(word.parse().unwrap()),
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [
                "P",
                _,
                "total",
                wall,
                "idle",
                idle,
                "bg",
                background,
                "speed",
                speed,
                "avail",
                available,
                ..,
            ] => pes.push(PeRecord {
                speed: speed.parse().unwrap(),
                wall_seconds: wall.parse().unwrap(),
                idle_seconds: idle.parse().unwrap(),
                background_seconds: background.parse().unwrap(),
                available: available == "1",
            }),
            ["O", _, "om", array, "id", id, "pe", pe, "wall", wall, "mig", migratable, ..] => {
                let object = Object {
                    id: unique_id(array.parse().unwrap(), id.parse().unwrap()),
                    array: 0,
                    index: ObjectIndex::default(),
                    load_seconds: wall.parse().unwrap(),
                    bytes: None,
                    pe: pe.parse().unwrap(),
                    migratable: migratable == "1",
                };
                objects.push((format!("array {array}"), object));
            }
            ["C", from, to, "msgs", messages, "bytes", bytes] => {
                for to in to.strip_prefix("m:").unwrap_or(to).split(',') {
                    let (messages, bytes) = (messages.parse().unwrap(), bytes.parse().unwrap());
                    edges.push(Edge { from: end(from), to: end(to), messages, bytes });
                }
            }
            _ => assert!(line.starts_with('#'), "unexpected line `{line}`"),
        }
    }
    (pes, objects, edges)
}

/// Equality up to the nine digits of the text form.
fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 0.5001e-9
}

#[test]
fn every_dump_equals_its_text_form() {
    for path in charm_dumps() {
        let name = path.display();
        let database = &decode(&fs::read(&path).unwrap(), 0).unwrap().steps[0];
        let text = fs::read_to_string(format!("{name}.txt")).unwrap();
        let (pes, objects, edges) = text_form(&text);

        assert_eq!(database.pes.len(), pes.len(), "{name}");
        for (ours, theirs) in database.pes.iter().zip(&pes) {
            assert!(close(ours.wall_seconds, theirs.wall_seconds), "{name}: {ours:?} {theirs:?}");
            assert!(close(ours.idle_seconds, theirs.idle_seconds), "{name}: {ours:?} {theirs:?}");
            assert!(close(ours.background_seconds, theirs.background_seconds), "{name}: {ours:?}");
            assert_eq!((ours.speed, ours.available), (theirs.speed, theirs.available), "{name}");
        }
        assert_eq!(database.objects.len(), objects.len(), "{name}");
        for (ours, (array, theirs)) in database.objects.iter().zip(&objects) {
            assert!(close(ours.load_seconds, theirs.load_seconds), "{name}: {ours:?} {theirs:?}");
            assert_eq!((ours.id, ours.pe, ours.migratable), (theirs.id, theirs.pe, theirs.migratable));
            assert_eq!(&database.arrays[ours.array as usize], array, "{name}: {ours:?}");
        }
        assert_eq!(database.dangling_edges, 0, "{name}");
        assert!(database.edges == edges, "{name}");
    }
}

#[test]
fn remap_equals_the_mapping_of_charm() {
    let all = charm_dumps();
    let find = |end: &str| all.iter().find(|path| path.ends_with(end));
    let (Some(two), Some(many)) = (find("stencil3d_512.dat.0"), find("stencil3d_512_p64.v6.0")) else {
        return;
    };
    let [two, many] = [two, many].map(|path| decode(&fs::read(path).unwrap(), 0).unwrap().steps.remove(0));
    let remapped = two.remap(64);
    assert_eq!(remapped.objects, many.objects);
    assert_eq!(remapped.edges, many.edges);
}

#[track_caller]
fn check_refused(bytes: &[u8], expected: &str) {
    let error = decode(bytes, 0).expect_err(expected).to_string();
    assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
}

/// A dump of 2 PEs, 2 objects and the given communications.
fn crafted(layout: Layout, communications: &[&[u8]]) -> Vec<u8> {
    let int = |n: i32| n.to_le_bytes().to_vec();
    let long = |n: u64| n.to_le_bytes().to_vec();
    let float = |x: f64| x.to_le_bytes().to_vec();
    let six = layout == Layout::Six;
    let counted = |n: usize| if six { Vec::new() } else { long(n as u64) };
    let mut parts = vec![MACHINE.to_vec(), int(VERSION), int(2)];
    match layout {
        Layout::Eight => parts.push(int(1)),
        Layout::Six => parts.extend([int(2), int(2), int(1), int(communications.len() as i32)]),
    }
    parts.push(counted(2));
    for (speed, idle) in [(4.0, -1e-9), (2.0, 0.25)] {
        parts.extend([float(1.0), float(idle), float(0.5), float(speed), vec![1], int(1), int(0)]);
    }
    parts.push(counted(2));
    for (array, migratable) in [(7, 1), (9, 0)] {
        if six {
            parts.extend([int(8), long(0xdead_beef)]);
        }
        parts.extend([int(array), int(0), long(5), int(0), float(0.75), vec![migratable, 0, 0xab, 0xcd]]);
    }
    parts.extend([counted(2), int(0), int(1)]);
    if six {
        parts.extend([int(0), int(0)]);
    }
    parts.push(counted(communications.len()));
    parts.extend(communications.iter().map(|bytes| bytes.to_vec()));
    parts.concat()
}

/// A communication from object `sender` of array 7 (or from PE 1) to `receiver`.
fn communication(from_pe: bool, sender: u64, receiver: &[u8], counts: [i32; 2]) -> Vec<u8> {
    let pe = if from_pe { 1 } else { FROM_OBJECT };
    let mut bytes = [&pe.to_le_bytes()[..], &7i32.to_le_bytes(), &sender.to_le_bytes(), receiver].concat();
    counts.iter().for_each(|count| bytes.extend(count.to_le_bytes()));
    bytes
}

fn object(array: i32, id: u64) -> Vec<u8> {
    [&[2][..], &array.to_le_bytes(), &id.to_le_bytes(), &0i32.to_le_bytes()].concat()
}

fn multicast(ids: &[(i32, u64)]) -> Vec<u8> {
    let mut bytes = [&[3][..], &(ids.len() as i32).to_le_bytes()].concat();
    for (array, id) in ids {
        bytes.extend(array.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn decodes_both_layouts_and_all_kinds_of_communication() {
    let records = [
        communication(false, 5, &object(9, 5), [3, 100]),
        communication(false, 5, &object(9, 6), [3, 100]),
        communication(false, 4, &multicast(&[(7, 5), (9, 5)]), [1, 10]),
        communication(false, 5, &multicast(&[(9, 5), (7, 1), (7, 5)]), [2, -1]),
        communication(true, 0, &[&[1][..], &0i32.to_le_bytes()].concat(), [1, 8]),
    ];
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    for layout in [Layout::Eight, Layout::Six] {
        let dump = decode(&crafted(layout, &records), 4).unwrap();
        let database = &dump.steps[0];
        let wrapped = u64::from(u32::MAX);
        let edge = |from, to, messages, bytes| Edge { from, to, messages, bytes };
        let (a, b) = (End::Object(0), End::Object(1));
        let expected = [
            edge(a, b, 3, 100),
            edge(a, b, 2, wrapped),
            edge(a, a, 2, wrapped),
            edge(End::Pe(1), End::Pe(0), 1, 8),
        ];
        assert_eq!(database.edges, expected);
        assert_eq!((database.step, database.dangling_edges), (4, 1 + 2 + 1));
        assert_eq!(database.arrays, ["array 7", "array 9"]);
        let objects = database.objects.iter().map(|o| (o.id, o.array, o.pe, o.migratable, o.load_seconds));
        let expected = [(7 << 48 | 5, 0, 0, true, 0.75), (9 << 48 | 5, 1, 1, false, 0.375)];
        assert_eq!(objects.collect::<Vec<_>>(), expected);
        assert_eq!(expected.map(|(id, array, ..)| id_in_array(&database.arrays[array as usize], id)), [5, 5]);
        assert_eq!(id_in_array("Block", 7 << 48 | 5), 7 << 48 | 5, "the array has no number");
        let pes = database.pes.iter().map(|pe| (pe.speed, pe.idle_seconds)).collect::<Vec<_>>();
        assert_eq!(pes, [(1.0, 0.0), (0.5, 0.25)]);
    }
}

#[test]
fn errors_name_the_problem() {
    let whole = crafted(Layout::Eight, &[]);
    let with = |at: usize, bytes: &[u8]| {
        let mut dump = whole.clone();
        dump[at..at + bytes.len()].copy_from_slice(bytes);
        dump
    };
    check_refused(&with(10, &[2]), "of a machine with other number types");
    check_refused(&with(16, &[4]), "of version 4, but this program reads version 3");
    check_refused(&[&whole[..], b"!"].concat(), "its end is followed by 1 byte");
    check_refused(&with(20, &[3]), "the header has 3 PEs, but the list has 1");
    // The PE of object 1 precedes the number of communications.
    check_refused(&with(whole.len() - 12, &[9]), "object 1 is on PE 9, but there are 2 PEs (0 and 1)");
    check_refused(&with(whole.len() - 9, &[0x80]), "an object is on PE -2147483647");
    check_refused(
        &crafted(
            Layout::Eight,
            &[&communication(true, 0, &[&[1][..], &8i32.to_le_bytes()].concat(), [1, 8])],
        ),
        "a communication is with PE 8, but there are 2 PEs",
    );
    check_refused(
        &crafted(Layout::Six, &[&communication(true, 0, &[4; 21], [1, 8])]),
        "a communication has the unknown kind 4",
    );
}

#[test]
fn truncations_and_flipped_bits_cause_neither_panics_nor_large_allocations() {
    let records = [communication(false, 5, &multicast(&[(7, 5), (9, 5)]), [1, 10])];
    for layout in [Layout::Eight, Layout::Six] {
        let whole = crafted(layout, &[&records[0], &records[0]]);
        for length in 0..whole.len() {
            check_refused(&whole[..length], "truncated");
        }
        for bit in 0..8 * whole.len() {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Many bits belong to numbers; flipping them gives another valid dump of the same size.
            if let Ok(dump) = decode(&damaged, 0) {
                let database = &dump.steps[0];
                assert_eq!(database.check(), Ok(()), "bit {bit}");
                assert!(
                    database.pes.len() + database.objects.len() + database.edges.len() <= 10,
                    "bit {bit}"
                );
            }
        }
    }
}

#[test]
fn damaged_dumps_never_panic() {
    for path in charm_dumps() {
        let whole = fs::read(&path).unwrap();
        // The step shares no factor with the record sizes, so that every field is hit.
        for at in (0..whole.len()).step_by(997) {
            check_refused(&whole[..at], "truncated");
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            if let Ok(dump) = decode(&damaged, 0) {
                assert_eq!(dump.steps[0].check(), Ok(()));
            }
        }
    }
}

//! Tests of the task graph, its generators and its readers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::files::AtLine;
use crate::testing::{at_full_size, reference, some_of};

/// Reads a file with this extension and text.
fn parse(extension: &str, text: &str) -> Result<Database, GraphError> {
    let file =
        tempfile::Builder::new().suffix(&format!(".{extension}")).tempfile().expect("a temporary file");
    std::fs::write(file.path(), text).expect("a temporary file can be written");
    let database = load(&file.path().display().to_string())?;
    assert_eq!(database.check().err(), None, "{text}");
    Ok(database)
}

/// The edges of a database as `sender>receiver:bytes`.
fn edges(database: &Database) -> String {
    let name = |end| match end {
        End::Object(vertex) => vertex,
        End::Pe(pe) => panic!("a task graph has no PE such as {pe}"),
    };
    let edge = |edge: &Edge| format!("{}>{}:{}", name(edge.from), name(edge.to), edge.bytes);
    database.edges.iter().map(edge).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn check_pairs(spec: &str, vertices: usize, expected: &[(u32, u32)]) {
    let database = load(spec).expect(spec);
    assert_eq!(database.check(), Ok(()), "{spec}");
    let graph = Graph::of(&database);
    assert_eq!(graph.vertices(), vertices, "{spec}");
    assert_eq!(graph.pairs().map(|(a, b, _)| (a, b)).collect::<Vec<_>>(), expected, "{spec}");
    assert!(graph.pairs().all(|(_, _, weight)| weight == 2), "{spec}");
    assert_eq!(database.edges.len(), 2 * expected.len(), "{spec}");
}

#[test]
fn generators_make_the_expected_edges() {
    check_pairs("mesh:3x2", 6, &[(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]);
    check_pairs("torus:3x2", 6, &[(0, 1), (0, 2), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (3, 5), (4, 5)]);
    check_pairs("torus:3mx2", 6, &[(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]);
    check_pairs("ring:4", 4, &[(0, 1), (0, 3), (1, 2), (2, 3)]);
    check_pairs("ring:2", 2, &[(0, 1)]);
    check_pairs("ring:1", 1, &[]);
    check_pairs("kneighbor:5,2", 5, &[(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)]);
    check_pairs(
        "kneighbor:6,3",
        6,
        &[(0, 1), (0, 2), (0, 4), (0, 5), (1, 2), (1, 3), (1, 5), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5)],
    );
    check_pairs("kneighbor:4,3", 4, &[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    check_pairs("tree:6,2", 6, &[(0, 1), (0, 2), (1, 3), (1, 4), (2, 5)]);
    check_pairs("tree:5,9", 5, &[(0, 1), (0, 2), (0, 3), (0, 4)]);
    check_pairs("tree:3,1", 3, &[(0, 1), (1, 2)]);
    check_pairs("tree:1,0", 1, &[]);
    check_pairs("butterfly:1", 1, &[]);
    check_pairs("butterfly:4", 4, &[(0, 1), (0, 2), (1, 3), (2, 3)]);
    check_pairs("random:n=4,degree=3", 4, &[(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    check_pairs("random:n=4,degree=0", 4, &[]);
}

#[test]
fn edges_have_both_directions_and_tasks_have_coordinates() {
    let database = load("mesh:2x1x2,bytes=5").expect("a mesh");
    assert_eq!(edges(&database), "0>1:5 0>2:5 1>0:5 1>3:5 2>0:5 2>3:5 3>1:5 3>2:5");
    assert_eq!(database.objects[3].index.coordinates(), [1, 0, 1]);
    assert_eq!(load("ring:9").expect("a ring").objects[7].index.coordinates(), [7]);
}

#[test]
fn random_graphs_have_the_requested_degree_and_depend_on_the_seed() {
    let graph = |spec| Graph::of(&load(spec).expect(spec));
    for (spec, edges) in [
        ("random:n=200,degree=7", 700),
        ("random:degree=5.5,n=100", 275),
        ("random:n=60,degree=50", 1500),
        ("random:n=60,degree=59", 1770),
    ] {
        assert_eq!(graph(spec).edges(), edges, "{spec}");
        assert_eq!(graph(spec), graph(spec), "{spec}");
    }
    assert_ne!(graph("random:n=200,degree=7,seed=1"), graph("random:n=200,degree=7"));
}

#[test]
fn the_graph_of_a_database_adds_both_directions_and_ignores_pes() {
    let mut database = tasks(3);
    database.edges = vec![
        edge(0, 1, 1, 1 << 40),
        edge(1, 0, 1, 5),
        edge(1, 1, 1, 9),
        edge(2, 1, 1, 0),
        Edge { from: End::Pe(0), to: End::Object(2), messages: 1, bytes: 7 },
    ];
    let graph = Graph::of(&database);
    assert_eq!(graph.pairs().collect::<Vec<_>>(), [(0, 1, (1 << 40) + 5)]);
    assert_eq!((graph.edges(), graph.degree(1), graph.weight(1), graph.degree(2)), (1, 1, (1 << 40) + 5, 0));
}

#[test]
fn metis_files_have_loads_sizes_and_undirected_edges() {
    let check = |text: &str, loads: &[f64], expected: &str| {
        let database = parse("graph", text).expect(text);
        assert_eq!(database.objects.iter().map(|o| o.load_seconds).collect::<Vec<_>>(), loads, "{text}");
        assert_eq!(edges(&database), expected, "{text}");
        database
    };
    check("3 2\n2\n1 3\n2\n", &[1.0; 3], "0>1:1 1>2:1");
    check("% a comment\n4 2 1\n2 7\n% between\n1 7 3 4\n2 4\n\n", &[1.0; 4], "0>1:4 1>0:3 1>2:2 2>1:2");
    check("\n2 1 010\n5 2\n0 1\n\n", &[5.0, 0.0], "0>1:1");
    check("2 1 11 2\n5 9 2 4\n3 9 1 4", &[5.0, 3.0], "0>1:2 1>0:2");
    let sized = check("2 1 111\n10 5 2 4\n20 3 1 4\n", &[5.0, 3.0], "0>1:2 1>0:2");
    assert_eq!(sized.objects.iter().map(|o| o.bytes).collect::<Vec<_>>(), [Some(10), Some(20)]);
}

#[test]
fn errors_name_the_line() {
    for (extension, text, expected) in [
        ("graph", "", ":1: the file is empty"),
        ("graph", "three 2\n", ":1: expected a header `vertices edges [fmt [ncon]]`, found `three 2`"),
        ("graph", "2 1 002\n2\n1\n", ":1: fmt has up to three digits 0 or 1, found `002`"),
        ("graph", "3 2\n2\n1 3\n", ":1: the header says 3 vertices, but the file has lines for 2"),
        ("graph", "2 1\n2\n1\n\n3\n", ":5: the header says 2 vertices, but there are more lines"),
        ("graph", "2 1\n2\n3\n", ":3: there is no vertex 3; vertices are 1 to 2"),
        ("graph", "2 1\n0\n1\n", ":2: there is no vertex 0; vertices are 1 to 2"),
        ("graph", "2 1\n2\n\n", ":2: the edge 1-2 is missing in the line of its other end"),
        ("graph", "2 1\n2 2\n1\n", ":2: the edge 1-2 occurs twice"),
        ("graph", "2 1 1\n2 5\n1 6\n", ":3: the edge 1-2 has different weights"),
        ("graph", "2 1 1\n2 5\n1\n", ":3: expected the weight of an edge, found the end of the line"),
        ("graph", "2 1 11\n1 2 5\nx 1 5\n", ":3: expected a vertex weight, found `x`"),
        ("graph", "2 3\n2\n1\n", ":1: the header says 3 edges, but the file has 1"),
        ("graph", "99999999999 1\n", ":1: 99999999999 vertices are more than"),
        (
            "csv",
            "src,dst,bytes\n0,1,5\n1,0\n",
            ":3: expected `src,dst,bytes` or `src,dst,bytes,messages`, found `1,0`",
        ),
        ("csv", "0,1,-5\n", ":1: bytes are whole numbers from 0 to 2^64 - 1, found `-5`"),
        ("csv", "0,1,2.5\n", ":1: bytes are whole numbers from 0 to 2^64 - 1, found `2.5`"),
        ("csv", "0,1,2,3,4\n", "; a matrix with a row for each task has the ending .mat"),
        ("csv", "0,1,5\nsrc,dst,bytes\n", ":2: expected `src,dst,bytes`"),
        ("csv", "0,99999999,5\n", ":1: vertex 99999999 is too large"),
        ("csv", "0,1,18446744073709551615\n1,0,1\n", ":1: the edges have more than 2^64 bytes"),
        ("mtx", "", ":1: expected a first line such as"),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate complex general\n",
            ":1: bytes are `integer`, `real` or `pattern`",
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real hermitian\n",
            ":1: communication is `general` or `symmetric`",
        ),
        ("mtx", "%%MatrixMarket matrix coordinate real general\n% x\n", ":1: expected a line of sizes"),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
            ":2: a matrix of 2 rows and 3 columns",
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 3 1\n",
            ":3: expected a row or column from 1 to 2, found `3`",
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 0.5\n",
            ":3: expected a whole number of bytes",
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1\n",
            ":2: the size line says 2 entries, but the file has 1",
        ),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n2 1 1\n",
            ":4: there are more entries than the 1 of the size line",
        ),
        ("json", "{\"steps\"", "the database `"),
    ] {
        let error = parse(extension, text).expect_err(text).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
}

#[test]
fn no_line_is_skipped_or_read_as_something_else() {
    for (extension, text, expected) in [
        // Only the documented names are a header.
        ("csv", "null\n", ":1: expected `src,dst,bytes` or `src,dst,bytes,messages`, found `null`"),
        ("csv", "from to size\n0,1,5\n", ":1: expected `src,dst,bytes`"),
        ("csv", "from,to,size\n0,1,5\n", ":1: expected `src,dst,bytes`"),
        ("csv", "O,1,100\n1,2,200\n", ":1: expected `src,dst,bytes`"),
        ("csv", "0,1,\u{1b}[31mRED\u{7}\n", r"found `0,1,\u{1b}[31mRED\u{7}`"),
        ("csv", "src,dst,bytes\n\n# none\n", ":1: the file has no task"),
        ("csv", "", ":1: the file has no task"),
        ("csv", "\"0\",\"1\n", ":1: expected `src,dst,bytes`"),
        ("mat", "0,,5\n1,0,2\n", ":1: a number is missing before or after a comma"),
        (
            "mtx",
            "%%MatrixMarket matrix coordinate integer general\n2 2 1 x\n1 2 3\n",
            ":2: expected the numbers",
        ),
    ] {
        let error = parse(extension, text).expect_err(text).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
    let quoted =
        parse("csv", "\"0\",\"1\",\"100\"\n\"SRC\",1,2\n").expect_err("a header only in the first line");
    assert!(quoted.to_string().contains(":2: expected `src,dst,bytes`"), "{quoted}");
    let quoted =
        parse("csv", "\"src\", \"dst\", \"bytes\"\n\"0\",\"1\",\"100\"\n1,2,200\n").expect("two edges");
    assert_eq!(edges(&quoted), "0>1:100 1>2:200");
}

#[test]
fn errors_describe_invalid_specs() {
    for (spec, expected) in [
        (
            "mash:4x4",
            "`mash:4x4` is not a task graph: there is no generator and no file `mash` (did you mean `mesh`?)",
        ),
        ("mesh:4x", "expected sizes such as"),
        (
            "mesh",
            "`mesh` is not a task graph: there is no file with this name, and the generator needs \
            arguments, as in mesh:16x16",
        ),
        ("mesh:4x4,byte=3", "mesh has no parameter `byte` (did you mean `bytes`?); known are bytes"),
        ("mesh:4x4,bytes=3,bytes=4", "`bytes` is given twice"),
        ("mesh:4x4,4", "expected sizes such as 16x16; found 2"),
        ("mesh:4x4,bytes=many", "bytes=many is not understood"),
        ("mesh:4x4,bytes=18446744073709551615", "more than 2^64 bytes"),
        ("mesh:100000x100000", "sizes multiply to at most"),
        ("kneighbor:64", "expected the number of tasks, then the number of neighbors; found 1"),
        ("kneighbor:4,4", "a task on a ring of 4 tasks has fewer than 4 neighbors"),
        ("kneighbor:1000000,1000", "it has more than"),
        ("random:n=5", "`degree=` must be given"),
        ("tree:5", "expected the number of tasks, then the number of children; found 1"),
        ("tree:5,0", "every task of a tree of 5 tasks has at least 1 child"),
        ("tree:99999999999,2", "it has more than"),
        ("butterfly:12", "the number of tasks of a butterfly is a power of 2, not 12"),
        ("butterfly:0", "the number of tasks of a butterfly is a power of 2, not 0"),
        ("butterfly:8,2", "expected the number of tasks; found 2"),
        ("random:n=5,degree=5", "the mean degree of 5 tasks is 0 to 4, not 5"),
        ("random:n=5,degree=-1", "the mean degree of 5 tasks is 0 to 4, not -1"),
        ("random:n=5,degree=NaN", "not NaN"),
        ("random:7,n=5,degree=2", "expected key=value, found `7`"),
        ("ring:99999999999", "it has more than"),
        ("/nowhere/at/all.graph", "cannot read the task graph `/nowhere/at/all.graph`"),
        ("/nowhere/at/all.db", "cannot read the database `/nowhere/at/all.db`"),
    ] {
        let error = load(spec).expect_err(spec).to_string();
        assert!(error.contains(expected), "`{error}` does not contain `{expected}`");
    }
}

#[test]
fn reads_the_reference_graphs() {
    for (name, vertices, edges) in [
        ("graphs/4elt.graph", 15606, 45878),
        ("graphs/lulesh_size_64.graph", 64, 468),
        ("graphs/delaunay_n15.graph", 32768, 98274),
        ("qaplib/sko64_flow.graph", 64, 1386),
    ] {
        let Some(text) = reference(name) else { return };
        let graph = Graph::of(&parse("graph", &text).expect(name));
        assert_eq!((graph.vertices(), graph.edges()), (vertices, edges), "{name}");
    }
}

/// Weights of edges by (sender, receiver), including loops.
fn traffic() -> impl Strategy<Value = (usize, BTreeMap<(u32, u32), u64>)> {
    (1..12usize).prop_flat_map(|n| {
        let end = 0..n as u32;
        (Just(n), prop::collection::btree_map((end.clone(), end), 0..1u64 << 50, 0..40))
    })
}

proptest! {
    #[test]
    fn of_places_equals_a_graph_with_edges_of_weight_one(
        pairs in prop::collection::vec((0u32..9, 0u32..9), 0..60),
    ) {
        let expected = Graph::new(9, pairs.iter().map(|&(a, b)| (a, b, 1)));
        prop_assert_eq!(Graph::of_places(9, &pairs), expected);
    }

    #[test]
    fn all_formats_give_the_same_graph((n, traffic) in traffic()) {
        let graph = Graph::new(n, traffic.iter().map(|(&(a, b), &bytes)| (a, b, bytes)));
        let mut sums: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (&(a, b), bytes) in traffic.iter().filter(|((a, b), bytes)| a != b && **bytes > 0) {
            *sums.entry((a.min(b), a.max(b))).or_default() += bytes;
        }
        let expected: Vec<_> = sums.iter().map(|(&(a, b), &bytes)| (a, b, bytes)).collect();
        prop_assert_eq!(graph.pairs().collect::<Vec<_>>(), expected);

        let mut csv = format!("src,dst,bytes\n{0},{0},1\n", n - 1);
        let mut mtx = format!("%%MatrixMarket matrix coordinate integer general\n{n} {n} {}\n", traffic.len());
        let mut dense = "%%MatrixMarket matrix array real general\n".to_string() + &format!("{n} {n}\n");
        for ((a, b), bytes) in &traffic {
            csv += &format!("{a},{b},{bytes}\n");
            mtx += &format!("{} {} {bytes}\n", a + 1, b + 1);
        }
        for (row, column) in (0..n as u32).flat_map(|column| (0..n as u32).map(move |row| (row, column))) {
            dense += &format!("{}\n", traffic.get(&(row, column)).unwrap_or(&0));
        }
        let mut metis = format!("{n} {} 1\n", sums.len());
        for v in 0..n {
            let row: Vec<String> = graph.neighbors(v).map(|(u, weight)| format!("{} {weight}", u + 1)).collect();
            metis += &format!("{}\n", row.join(" "));
        }
        for (extension, text) in [("csv", &csv), ("mtx", &mtx), ("mtx", &dense), ("graph", &metis)] {
            let read = Graph::of(&parse(extension, text).expect(text));
            prop_assert_eq!(&read, &graph, "{}", text);
        }
        for spelling in ["coordinate pattern symmetric", "coordinate integer symmetric"] {
            let value = if spelling.contains("integer") { " 3" } else { "" };
            let rows: Vec<String> = sums.keys().map(|(a, b)| format!("{} {}{value}\n", b + 1, a + 1)).collect();
            let text = format!("%%MatrixMarket matrix {spelling}\n{n} {n} {}\n{}", sums.len(), rows.concat());
            let weight = if value.is_empty() { 2 } else { 6 };
            let expected: Vec<_> = sums.keys().map(|&(a, b)| (a, b, weight)).collect();
            prop_assert_eq!(Graph::of(&parse("mtx", &text).expect(&text)).pairs().collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_quotient_keeps_the_weight_between_parts(((n, traffic), parts) in (traffic(), 1..4usize)) {
        let graph = Graph::new(n, traffic.iter().map(|(&(a, b), &bytes)| (a, b, bytes)));
        let part_of: Vec<u32> = (0..n).map(|v| (v * v % parts) as u32).collect();
        let quotient = graph.quotient(&part_of, parts);
        prop_assert_eq!(quotient.vertices(), parts);
        let across = |a: u32, b: u32| part_of[a as usize] != part_of[b as usize];
        let cut: u64 = graph.pairs().filter(|&(a, b, _)| across(a, b)).map(|edge| edge.2).sum();
        prop_assert_eq!(quotient.pairs().map(|edge| edge.2).sum::<u64>(), cut);
    }

    #[test]
    fn an_induced_graph_has_the_edges_between_its_vertices((n, traffic) in traffic(), chosen in any::<u16>()) {
        let graph = Graph::new(n, traffic.iter().map(|(&(a, b), &bytes)| (a, b, bytes)));
        let vertices: Vec<u32> = (0..n as u32).filter(|v| chosen >> v & 1 == 1).collect();
        let position = |v: u32| vertices.iter().position(|&u| u == v).map(|at| at as u32);
        let inside = graph.pairs().filter_map(|(a, b, weight)| Some((position(a)?, position(b)?, weight)));
        prop_assert_eq!(graph.induced(&vertices), Graph::new(vertices.len(), inside));
    }

    #[test]
    fn no_text_panics(text in "[0-9 %\n.,x-]{0,60}", extension in "graph|csv|mtx") {
        let banner = "%%MatrixMarket matrix coordinate real general\n";
        let _ = parse(&extension, &if extension == "mtx" { format!("{banner}{text}") } else { text });
    }
}

proptest! {
    // Some of these specs are those of large graphs.
    #![proptest_config(ProptestConfig::with_cases(some_of(24)))]

    #[test]
    fn no_spec_panics(rest in "[0-9x,=a-z]{0,12}") {
        for generator in generate::ALL {
            let _ = make(generator, &rest);
        }
    }
}

#[test]
#[ignore = "slow"]
fn no_spec_panics_in_many_cases() {
    at_full_size(&[no_spec_panics]);
}

/// Writes `database` in a format and reads it again.
fn write_and_read(database: &Database, extension: &str) -> Database {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join(format!("again.{extension}"));
    let lacks = write(&path, database).expect(extension);
    assert!(lacks.starts_with("PEs, "), "{lacks}");
    let read = load(&path.display().to_string()).expect(extension);
    assert!(reads_back(&path, database).expect(extension), "{extension}");
    // The comparison must detect a difference.
    let mut other = database.clone();
    other.edges.swap_remove(0);
    assert!(!reads_back(&path, &other).expect(extension), "{extension}");
    read
}

#[test]
fn written_files_are_read_back_as_the_same_graph() {
    let mut database = load("random:n=20,degree=3,bytes=7").expect("a graph");
    for (i, object) in database.objects.iter_mut().enumerate() {
        (object.load_seconds, object.bytes) = (i as f64, Some(10 * i as u64));
    }
    // The last object has no edges, some edges have only one direction, and one edge is heavier.
    let last = End::Object(19);
    database.edges.retain(|edge| edge.from != last && edge.to != last && edge.from != End::Object(3));
    database.edges[0].bytes = 1 << 60;
    for (extension, _) in formats() {
        let read = write_and_read(&database, extension);
        assert_eq!(Graph::of(&read), Graph::of(&database), "{extension}");
        if extension == "graph" || extension == "grf" {
            let facts = |o: &Object| (o.load_seconds, o.bytes.filter(|_| extension == "graph"));
            assert!(read.objects.iter().map(facts).eq(database.objects.iter().map(facts)));
        } else {
            assert_eq!(read.edges, database.edges, "{extension}");
        }
    }
}

#[test]
fn metis_files_use_smaller_units_for_fractions_of_seconds() {
    let mut database = load("ring:3").expect("a ring");
    assert_eq!(
        write_and_read(&database, "graph").objects,
        database.objects,
        "without a weight, a load is one second"
    );
    let mut check = |load_seconds: f64, line: &str, expected: &[f64]| {
        database.objects[1].load_seconds = load_seconds;
        let read = write_and_read(&database, "graph");
        assert_eq!(read.objects.iter().map(|o| o.load_seconds).collect::<Vec<_>>(), expected);
        let text = metis_format::write(&database);
        assert_eq!(text.lines().next(), Some(line), "{text}");
        let mut other = read.clone();
        other.objects[1].load_seconds *= 0.5;
        assert!(metis_format::is_same(&database, &read) && !metis_format::is_same(&database, &other));
        other = read;
        other.objects[0].bytes = Some(1);
        assert!(metis_format::is_same(&database, &other), "sizes are dropped unless all are known");
        other.objects.iter_mut().for_each(|o| o.bytes = Some(1));
        assert!(!metis_format::is_same(&other, &database), "sizes are kept if all are known");
    };
    check(0.25, "% vertex weights are loads in nanoseconds", &[1.0, 0.25, 1.0]);
    check(0.123_456_789_4, "% vertex weights are loads in nanoseconds", &[1.0, 0.123_456_789, 1.0]);
    check(1e7 + 0.25, "% vertex weights are loads in microseconds", &[1.0, 1e7 + 0.25, 1.0]);
    check(1e10 + 0.25, "% vertex weights are loads in milliseconds", &[1.0, 1e10 + 0.25, 1.0]);
    check(2.0, "3 3 011", &[1.0, 2.0, 1.0]);
    check(1e300, "3 3 011", &[1.0, 9_007_199_254_740_992.0, 1.0]);
    let own = parse("graph", "% weights are apples\n2 0 010\n5\n7\n").expect("a graph");
    assert_eq!(own.objects[1].load_seconds, 7.0);
}

#[test]
fn write_drops_edges_with_pes_and_refuses_unknown_extensions() {
    let mut database = load("ring:3").expect("a ring");
    let edges = database.edges.clone();
    database.edges.push(Edge { from: End::Pe(0), to: End::Object(1), messages: 1, bytes: 9 });
    for extension in ["mtx", "csv", "mat", "prof"] {
        assert_eq!(write_and_read(&database, extension).edges, edges);
    }
    let error = write(Path::new("x.txt"), &database).expect_err("unknown extension").to_string();
    assert!(error.contains(&format!("ends in {}", extensions())), "{error}");
    let error = write(Path::new("no/such/place.csv"), &database).expect_err("no place").to_string();
    assert!(error.contains("cannot write the task graph `no/such/place.csv`"), "{error}");
}

#[test]
fn help_names_every_generator_and_format() {
    let files = formats().map(|(extension, _)| format!("FILE.{extension}"));
    let generators = generate::ALL.iter().map(|generator| generator.form.to_string());
    for name in generators.chain(files).chain(["data.%p.json".into()]) {
        assert!(help(&[]).contains(&name), "{name}");
    }
}

#[test]
fn small_files_do_not_allocate_much_memory() {
    let check = |fault: Result<Database, AtLine>, expected: &str| {
        let (_, reason) = fault.expect_err(expected);
        assert!(reason.contains(expected), "`{reason}` does not contain `{expected}`");
    };
    check(metis_format::read("16777216 0\n\n"), "says 16777216 vertices, but the file has lines for 1");
    check(csv::read("0,16777215,1\n"), "16777216 vertices are too many for 1 line");
    let matrix = "%%MatrixMarket matrix coordinate integer general\n16777216 16777216 0\n";
    check(matrix_market::read(matrix), "16777216 vertices are too many for 0 lines");
}

#[test]
fn ignores_a_byte_order_mark() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("pair.csv");
    std::fs::write(&path, "\u{feff}0,1,5\n").expect("a temporary file can be written");
    assert_eq!(load(path.to_str().expect("UTF-8")).expect("an edge list").edges.len(), 1);
}

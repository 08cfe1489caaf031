//! Tests of the file formats of Scotch, Open MPI and TreeMatch.

use proptest::prelude::*;

use super::*;
use crate::files::AtLine;
use crate::testing::mutated;

/// Three vertices with labels and loads.
const GRF: &str = "0\n3 4\n0 111\n10 5 1 7 20\n20 2 2 7 10 4 30\n30 0 1\n4 20\n";

const PROF: &str = "# POINT TO POINT\n\
    I\t0\t1\t4096 bytes\t8 msgs sent\t0,0,8\n\
    E\t0\t1\t4 bytes\t1 msgs sent\n\
    [cx17:1] I was here\n\
    # OSC\n\
    S\t2\t1\t10 bytes\t1 msgs sent\n\
    R\t2\t1\t20 bytes\t2 msgs sent\n\
    I\t1\t1\t7 bytes\t1 msgs sent\n\
    D\tMPI_COMM_WORLD\tprocs: 0,1,2\n";

const MAT: &str = "# bytes\n1 2 3e1\n0,4.0,5\n\n6 0 0\n";

/// The edges of a text as `sender>receiver:bytes*messages`.
fn edges(read: fn(&str) -> Result<Database, AtLine>, text: &str) -> String {
    let database = read(text).expect(text);
    assert_eq!(database.check(), Ok(()), "{text}");
    let edge = |edge: &Edge| {
        let (from, to) = ends(edge).expect("objects");
        format!("{from}>{to}:{}*{}", edge.bytes, edge.messages)
    };
    database.edges.iter().map(edge).collect::<Vec<_>>().join(" ")
}

#[test]
fn reads_the_formats_of_other_programs() {
    assert_eq!(edges(scotch_format::read, GRF), "0>1:4*1 1>0:3*1 1>2:2*1 2>1:2*1");
    let loads: Vec<f64> =
        scotch_format::read(GRF).expect("a graph").objects.iter().map(|o| o.load_seconds).collect();
    assert_eq!(loads, [5.0, 2.0, 0.0]);
    assert_eq!(edges(scotch_format::read, "0 2 2 1 0 1 2 1 1"), "0>1:1*1");
    assert_eq!(edges(monitoring::read, PROF), "0>1:4100*9 1>2:20*2 2>1:10*1");
    assert_eq!(edges(dense::read, MAT), "0>1:2*1 0>2:30*1 1>2:5*1 2>0:6*1");
}

/// A file as Open MPI 5 writes it for rank 1 of 4 (`common_monitoring_output` in `common_monitoring.c`).
const PROF_OF_A_RANK: &str = "# POINT TO POINT\n\
    E\t1\t2\t104 bytes\t26 msgs sent\t0,0,0,26\n\
    E\t1\t3\t208 bytes\t52 msgs sent\t0,0,0,52\n\
    I\t1\t0\t140 bytes\t27 msgs sent\n\
    I\t1\t2\t2068 bytes\t1 msgs sent\n\
    # OSC\n\
    S\t1\t0\t0 bytes\t1 msgs sent\n\
    R\t1\t0\t40960 bytes\t1 msgs sent\n\
    S\t1\t2\t40960 bytes\t1 msgs sent\n\
    # COLLECTIVES\n\
    C\t1\t0\t140 bytes\t27 msgs sent\n\
    C\t1\t2\t140 bytes\t27 msgs sent\n\
    D\tcommunicator of bytes and msgs\tprocs: 0,1,2,3\n\
    O2A\t1\t10 bytes\t2 msgs sent\n\
    A2O\t1\t20 bytes\t2 msgs sent\n\
    A2A\t1\t276 bytes\t15 msgs sent\n";

#[test]
fn monitoring_counts_messages_once() {
    // A rank sends: messages of the program (E), messages of collective operations (I), and puts (S). It receives gets (R)
    // from the other rank. The collective operations (C, O2A, A2O, A2A) were sent as the messages in I.
    let expected = "0>1:40960*1 1>0:140*28 1>2:43132*28 1>3:208*52";
    assert_eq!(edges(monitoring::read, PROF_OF_A_RANK), expected);
    let without = PROF_OF_A_RANK.split("# COLLECTIVES").next().expect("a part");
    assert_eq!(edges(monitoring::read, without), expected);
}

#[test]
fn errors_name_the_line() {
    let check = |read: fn(&str) -> Result<Database, AtLine>, text: &str, line: usize, expected: &str| {
        let (at, reason) = read(text).expect_err(expected);
        assert!(reason.contains(expected), "`{reason}` does not contain `{expected}`");
        assert_eq!(at, line, "{reason}");
    };
    let grf = scotch_format::read;
    check(grf, "", 1, "expected the version of the format, 0, found the end of the file");
    check(grf, "1\n", 1, "the version is 1, but only version 0 is supported");
    check(grf, "0\n99999999 0\n", 2, "99999999 vertices and 0 arcs are more than");
    check(grf, "0\n9 9\n0 000\n", 2, "9 vertices and 9 arcs do not fit into a file of this size");
    check(grf, "0\n1 0\n0 200\n0\n", 3, "the flags are up to three digits 0 or 1, found 200");
    check(grf, &GRF.replace("20 2 2", "10 2 2"), 5, "the label 10 is used twice");
    check(grf, &GRF.replace("7 20", "7 40"), 4, "there is no vertex 40");
    check(
        grf,
        &GRF.replace("7 20", "8 20"),
        5,
        "the edge between vertices 0 and 1 (from 0) has two different weights",
    );
    check(
        grf,
        &GRF.replace("4 20", "4 10"),
        7,
        "the edge between vertices 0 and 2 (from 0) has only one arc",
    );
    check(grf, "0 2 2 0 0 2 1 1 0", 1, "the edge between vertices 0 and 1 (from 0) occurs twice");
    check(grf, "0 1 1 0 0 2 0 0 0", 1, "vertex 0 (from 0) has more arcs than the total of 1 in the header");
    check(grf, "0 2 4 0 0 1 1 1 0 ", 1, "the header says 4 arcs, but the file has 2");
    check(grf, &GRF.replace("4 20\n", "4\n\n"), 7, "expected the vertex at the end of an arc, found the end");
    check(grf, &format!("{GRF}5\n"), 8, "the graph ends before `5`");
    let prof = monitoring::read;
    check(
        prof,
        &PROF.replace("4 bytes\t1 msgs", "4 bites\t1 msgs"),
        3,
        "expected `E FROM TO N bytes M msgs sent`",
    );
    check(prof, "\nI 0 x 1 bytes 1 msgs sent\n", 2, "found `I 0 x 1 bytes 1 msgs sent`");
    check(prof, "I 0 99999999 1 bytes 1 msgs sent\n", 1, "rank 99999999 is too large");
    check(prof, "\nI 0 16777215 1 bytes 1 msgs sent\n", 2, "16777216 vertices are too many for 2 lines");
    let mat = dense::read;
    check(mat, "1 2\n", 1, "found 1 line of 2 numbers; give a line of numbers for each task");
    check(mat, "1 2\n\n1 2 3\n", 3, "this line has 3 numbers, but the first line has 2");
    check(mat, "0 1\n1 0\n1 0\n", 3, "a line has 2 numbers, but there are more lines");
    check(mat, "0 1\n0.5 0\n", 2, "expected a whole number of bytes that is not negative, found `0.5`");
}

#[test]
fn reads_the_monitoring_files_of_all_ranks_together() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(path("run.0.prof"), "I 0 1 5 bytes 1 msgs sent\n").expect("a file");
    std::fs::write(path("run.1.prof"), "# POINT TO POINT\nI 1 0 6 bytes 1 msgs sent\n").expect("a file");
    let both = load(&path("run.1.prof")).expect("two ranks");
    assert_eq!((both.objects.len(), both.edges.len(), both.bytes()), (2, 2, 11));
    // The messages of a rank without a file are unknown.
    std::fs::write(path("run.1.prof"), "I 1 2 6 bytes 1 msgs sent\n").expect("a file");
    let error = load(&path("run.0.prof")).expect_err("no rank 2").to_string();
    assert!(error.contains("there is communication with rank 2, but no file of this rank"), "{error}");
    // A rank that sends nothing writes only the heading.
    std::fs::write(path("run.1.prof"), "# POINT TO POINT\n").expect("a file");
    let one = load(&path("run.1.prof")).expect("two ranks");
    assert_eq!((one.objects.len(), one.edges.len(), one.bytes()), (2, 1, 5));
    std::fs::write(path("run.1.prof"), "I 1 0 6\n").expect("a file");
    let error = load(&path("run.0.prof")).expect_err("a broken rank").to_string();
    assert!(error.contains("run.1.prof:1: expected `I FROM TO N bytes M msgs sent`"), "{error}");
    std::fs::remove_file(path("run.0.prof")).expect("a file");
    let error = load(&path("run.1.prof")).expect_err("no rank 0");
    assert!(error.to_string().contains("the file of rank 0, run.0.prof, is missing"), "{error}");
    assert!(error.fault() == Fault::Usage);
}

#[test]
fn refuses_files_without_tasks_in_all_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |name: &str, text: &str, expected: &str| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).expect("a file");
        let error = load(&path).expect_err(expected);
        assert!(error.to_string().contains(expected) && error.fault() == Fault::Input, "{error}");
    };
    check("empty.csv", "", "empty.csv:1: the file has no task; expected lines such as `0,1,4096`");
    check("names.csv", "src,dst,bytes\n", "the file has no task");
    check("empty.mat", "# none\n", "the file has no task; expected a line of numbers for each task");
    check("empty.graph", "0 0\n", "the file has no task; expected a header");
    check("empty.graph", "", "the file is empty; expected a header");
    check("empty.grf", "0\n0 0\n0 000\n", "the file has no task; expected the version 0");
    check("no.mtx", "%%MatrixMarket matrix coordinate integer general\n0 0 0\n", "the file has no task");
    check("run.prof", "I am no graph\n", "pml_monitoring_enable_output 3");
    // Neither of the two ranks sends anything.
    std::fs::write(folder.path().join("no.1.prof"), "# POINT TO POINT\n").expect("a file");
    check("no.0.prof", "# POINT TO POINT\n", "expected lines such as `I 0 1 4096 bytes 8 msgs sent`");
}

#[test]
fn ignores_loops_in_all_formats() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [
        ("a.csv", "0,1,1e1\n0,0,5\n1,0,10\n"),
        ("a.mat", "5 10\n1e1 0\n"),
        ("a.mtx", "%%MatrixMarket matrix coordinate integer general\n2 2 3\n1 2 10\n1 1 5\n2 1 1e1\n"),
        ("a.prof", "I 0 0 5 bytes 1 msgs sent\nI 0 1 10 bytes 1 msgs sent\nE 1 0 10 bytes 1 msgs sent\n"),
        ("a.graph", "2 1 001\n1 5 2 20\n1 20\n"),
        ("b.graph", "2 2 001\n1 5 2 20\n1 20\n"),
        ("a.grf", "0\n2 3\n0 010\n2 5 0 20 1\n1 20 0\n"),
    ] {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).expect("a file");
        let database = load(&path).expect(name);
        let edges: Vec<u64> = database.edges.iter().map(|edge| edge.bytes).collect();
        assert_eq!((database.objects.len(), edges), (2, vec![10, 10]), "{name}");
    }
}

#[test]
fn scotch_files_use_nanoseconds_for_fractions_of_seconds() {
    let mut database = load("ring:3").expect("a ring");
    let text = scotch_format::write(&database);
    assert_eq!(text, "0\n3 6\n0 010\n2 2 1 2 2\n2 2 0 2 2\n2 2 0 2 1\n");
    database.objects[1].load_seconds = 0.25;
    let text = scotch_format::write(&database);
    assert!(text.contains("0 011\n1000000000 2 2 1 2 2\n250000000 2"), "{text}");
    let mut again = scotch_format::read(&text).expect("what was written");
    assert_eq!(again.objects[1].load_seconds, 250_000_000.0);
    assert!(scotch_format::is_same(&database, &again));
    again.objects[1].load_seconds += 1.0;
    assert!(!scotch_format::is_same(&database, &again));
}

proptest! {
    #[test]
    fn no_file_panics(which in 0..3usize, at in 0..400usize, word in "[0-9a-zIESR \n\t,.-]{0,5}") {
        let text = mutated([GRF, PROF, MAT][which], at, &word);
        let read = [scotch_format::read, monitoring::read, dense::read][which];
        if let Ok(database) = read(&text) {
            prop_assert_eq!(database.check(), Ok(()));
        }
    }
}

//! Hostile files: content that was once misread, echoed, or expanded without limit.

use equipoise::model::database::vt;
use equipoise_tests::Sandbox;
use equipoise_tests::fuzz::readers;

/// Loads whose sum is infinite.
const HUGE_LOADS: [&str; 2] = [
    r#"{"type": "equipoise-lb-database", "version": 1, "program": "x", "topology": "torus:2*tree:2", "steps": [{"step": 0, "pes": [{"speed": 1},
{"background_seconds": 1, "available": false},
{"idle_seconds": 0.0, "wall_seconds": 1e+18},
{"speed": 1e-300}], "objects": [{"id": 0, "load_seconds": 1.5, "pe": 0},
{"id": 1, "load_seconds": 1e+300, "pe": 3},
{"id": 2, "load_seconds": 1e-320, "pe": 3},
{"id": 3, "load_seconds": 1, "pe": 2},
{"id": 4, "load_seconds": 1, "pe": 3, "bytes": 1},
{"id": 5, "load_seconds": 1.7e+308, "pe": 1, "migratable": false},
{"id": 6, "load_seconds": 0, "pe": 1},
{"id": 7, "load_seconds": 1e-320, "pe": 0, "bytes": 9007199254740992},
{"id": 8, "load_seconds": 1e-320, "pe": 2, "bytes": 1000},
{"id": 9, "load_seconds": 1e+18, "pe": 0},
{"id": 10, "load_seconds": 1.7e+308, "pe": 3, "migratable": false},
{"id": 11, "load_seconds": 1.5, "pe": 3},
{"id": 12, "load_seconds": 1e+18, "pe": 2},
{"id": 13, "load_seconds": 3, "pe": 1, "bytes": 9223372036854775807},
{"id": 14, "load_seconds": 1e-09, "pe": 3, "migratable": false, "bytes": 10},
{"id": 15, "load_seconds": 1e+18, "pe": 1},
{"id": 16, "load_seconds": 1e+18, "pe": 1},
{"id": 17, "load_seconds": 0.0, "pe": 0},
{"id": 18, "load_seconds": 1e-320, "pe": 3, "migratable": false, "bytes": 2147483648},
{"id": 19, "load_seconds": 1e-320, "pe": 0}], "edges": []}]}"#,
    r#"{"type": "equipoise-lb-database", "version": 1, "program": "x", "topology": "torus:2*tree:2", "steps": [{"step": 0, "pes": [{},
{"speed": 2},
{},
{"background_seconds": 1e+300}], "objects": [{"id": 0, "load_seconds": 0, "pe": 3},
{"id": 1, "load_seconds": 1.5, "pe": 3},
{"id": 2, "load_seconds": 0, "pe": 3},
{"id": 3, "load_seconds": 1, "pe": 1, "bytes": 2305843009213693952},
{"id": 4, "load_seconds": 1.7e+308, "pe": 0},
{"id": 5, "load_seconds": 1.7e+308, "pe": 3, "migratable": false},
{"id": 6, "load_seconds": 1e-09, "pe": 2, "migratable": false},
{"id": 7, "load_seconds": 1.7e+308, "pe": 1},
{"id": 8, "load_seconds": 1e-320, "pe": 0},
{"id": 9, "load_seconds": 1.5, "pe": 1},
{"id": 10, "load_seconds": 1, "pe": 2, "bytes": 1},
{"id": 11, "load_seconds": 1e+18, "pe": 1},
{"id": 12, "load_seconds": 1e-320, "pe": 2, "bytes": 10},
{"id": 13, "load_seconds": 0.0, "pe": 2, "migratable": false},
{"id": 14, "load_seconds": 1e-320, "pe": 0},
{"id": 15, "load_seconds": 3, "pe": 1},
{"id": 16, "load_seconds": 1e-09, "pe": 0, "bytes": 1000},
{"id": 17, "load_seconds": 1.5, "pe": 0, "bytes": 0},
{"id": 18, "load_seconds": 1e-320, "pe": 2, "migratable": false},
{"id": 19, "load_seconds": 1.7e+308, "pe": 0}], "edges": []}]}"#,
];

#[track_caller]
fn check(name: &str, content: impl AsRef<[u8]>, line: &str, phrases: &[&str]) {
    let sandbox = Sandbox::new();
    sandbox.put(name, content);
    let output = sandbox.run(line);
    output.failed(1, phrases);
    assert!(!output.stderr.trim_end().contains(|letter: char| letter.is_control()), "{output:?}");
    assert!(output.stderr.len() < 1000, "{output:?}");
}

#[test]
fn compressed_files_expand_to_a_limit() {
    // A few bytes that stand for 20 MB.
    let bomb = vt::pack(&vec![b' '; 20 << 20]).expect("it can be compressed");
    assert!(bomb.len() < 1000);
    let limit = (16 << 20) + 64 * bomb.len();
    check(
        "bomb.0.json.br",
        &bomb,
        "inspect bomb.0.json.br",
        &[
            &format!("its {} bytes expand to more than {limit} bytes", bomb.len()),
            "decompress it yourself (brotli -d) if you trust it",
        ],
    );
}

#[test]
fn only_the_documented_header_is_a_header() {
    let messages = "simulate --messages x.csv --topology torus:4x4 --network ideal";
    for line in ["inspect x.csv", messages] {
        check("x.csv", "null\n", line, &["x.csv:1: expected `src,dst,bytes`", "found `null`"]);
        check("x.csv", "", line, &["x.csv:1: the file has no task"]);
        check("x.csv", "src,dst,bytes\n", line, &["x.csv:1: the file has no task"]);
        check("x.csv", "from to size\n0,1,5\n", line, &["x.csv:1: ", "found `from to size`"]);
        check("x.csv", "O,1,100\n1,2,200\n", line, &["x.csv:1: ", "found `O,1,100`"]);
    }
    let sandbox = Sandbox::new();
    sandbox.put("x.csv", "\"0\",\"1\",\"100\"\n1,2,200\n");
    assert_eq!(
        sandbox.run("inspect x.csv --format json").document()["steps"][0]["edges"],
        2,
        "no edge is lost"
    );
}

#[test]
fn errors_and_tables_show_no_control_characters() {
    check("x.csv", "0,1,\u{1b}[31mRED\u{7}\n", "inspect x.csv", &[r"found `0,1,\u{1b}[31mRED\u{7}`"]);
    check("x.csv", format!("0,1,{}\n", "9 ".repeat(3_000_000)), "inspect x.csv", &["x.csv:1: expected"]);
    check(
        "x.map",
        format!("{}\n", "9".repeat(5_000_000)),
        "evaluate --graph ring:2 --topology flat:2 --mapping x.map",
        &["line 1: expected one PE number"],
    );
    let database = r#"{"type":"equipoise-lb-database","version":1,"program":"\u001b]0;pwn\u0007\u001b[2J","topology":"flat:2",
        "steps":[{"step":0,"arrays":["\u001b[2J"],"pes":[{},{}],"objects":[{"id":7,"load_seconds":0.25,"pe":0}],"edges":[]}]}"#;
    let sandbox = Sandbox::new();
    sandbox.put("escape.json", database);
    let text = sandbox.run("inspect escape.json").result();
    assert!(text.contains(r"\u{1b}]0;pwn\u{7}\u{1b}[2J"), "{text}");
    assert!(!text.contains(|letter: char| letter.is_control() && letter != '\n'), "{text:?}");
    // Errors of the command line are those of clap.
    for (spec, says) in [
        ("tor\u{1b}[31mus:4", "there is a `[` that is not closed"),
        ("tor\u{1b}cus:4", r"there is no machine `tor\u{1b}cus`"),
    ] {
        let output = sandbox.run(&format!("topology {spec}"));
        output.failed(2, &[says]);
        assert!(!output.stderr.contains('\u{1b}'), "{output:?}");
    }
}

#[test]
fn text_after_coordinates_is_refused() {
    for text in ["(1,0)xyz", "(1,0)\0", "(1,0) core=4x\n"] {
        check(
            "x.vcoord",
            text,
            "launcher fugaku=x.vcoord --topology torus:2x2",
            &["line 1: expected coordinates"],
        );
    }
}

#[test]
fn a_byte_order_mark_and_line_ends_of_windows_change_nothing() {
    for reader in readers().iter().filter(|reader| !reader.command.is_empty()) {
        for golden in &reader.golden {
            // Binary formats have neither. A block of the PICL trace names its output.
            let Ok(text) = str::from_utf8(golden) else { continue };
            if reader.file.is_empty() || reader.name == "launcher_mpich" {
                continue;
            }
            let result = |text: String| {
                let sandbox = Sandbox::new();
                sandbox.put(reader.file, text);
                let line = reader.command.replace("{}", reader.file);
                let output = sandbox.run(&line);
                (output.code, output.stdout, output.stderr)
            };
            let expected = result(text.into());
            assert_eq!(expected, result(format!("\u{feff}{text}")), "a mark in {}", reader.name);
            assert_eq!(expected, result(text.replace('\n', "\r\n")), "line ends in {}", reader.name);
        }
    }
}

#[test]
fn bytes_that_are_not_of_the_format_are_refused_or_ignored() {
    let reader_of = |name: &str| readers().into_iter().find(|reader| reader.name == name).expect(name);
    let utf_16 = |text: &[u8]| {
        [&b"\xff\xfe"[..], &text.iter().flat_map(|&byte| [byte, 0]).collect::<Vec<_>>()].concat()
    };
    for name in [
        "graph_csv",
        "graph_graph",
        "database_json",
        "trace_json",
        "program",
        "mapping",
        "machine_slurm_yaml",
    ] {
        let reader = reader_of(name);
        let golden = &reader.golden[0];
        let parts: [&[u8]; 4] =
            [b"\0", b"\x1b[31mRED\x07\n", "\u{202e}\u{9b}31m\n".as_bytes(), b"1_000 0x10 1e400\n"];
        let damaged = parts.map(|part| [golden, part].concat());
        for input in damaged.into_iter().chain([utf_16(golden)]) {
            let sandbox = Sandbox::new();
            sandbox.put(reader.file, &input);
            let output = sandbox.run(&reader.command.replace("{}", reader.file));
            output.ended_well();
            assert_eq!(output.code, Some(1), "{name}: {}", String::from_utf8_lossy(&input));
        }
    }
}

#[test]
fn loads_have_finite_sums() {
    check(
        "x.json",
        HUGE_LOADS[0],
        "inspect x.json",
        &["the speed of PE 3 is 1e-300; a speed is from 1e-30 to 1e30"],
    );
    let line = "replay x.json --balancer GreedyLB";
    check(
        "x.json",
        HUGE_LOADS[1],
        line,
        &["background_seconds of PE 3 is 1e300; a time is from 0 to 1e30 seconds"],
    );
    let loads = HUGE_LOADS[0].replace("1e-300", "1");
    check("x.json", loads, "inspect x.json", &["load_seconds of object 1 is 1e300"]);
}

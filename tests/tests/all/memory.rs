//! Sizes that do not fit into memory end with a sentence and exit code 1 or 2, never with an abort.
#![cfg(target_os = "linux")]

use equipoise::model::graph;
use equipoise_model::testing::{at_full_size, is_full_size};
use equipoise_tests::Sandbox;
use equipoise_tests::fuzz::readers;

/// The memory that the processes of these tests may use, in kB.
const LIMIT: u32 = 400_000;

/// The smallest limit of these tests, in kB: 4,000 kB more than what the code, the libraries and the threads of parallel computations of a
/// small command need. With less, the process may not start.
fn least() -> u32 {
    let (sandbox, too_little) = (Sandbox::new(), 20_000);
    let starts = |limit: &u32| sandbox.run_limited(*limit, "inspect ring:8").code == Some(0);
    let limit = (too_little..LIMIT).step_by(4_000).find(starts).expect("it starts with much memory");
    assert!(limit > too_little, "begin with less");
    limit + 4_000
}

/// Runs `equipoise` with each line in a shell with limited memory. `phrase` is on stderr.
#[track_caller]
fn check(sandbox: &Sandbox, lines: &[&str], codes: &[i32], phrase: &str) {
    for line in lines {
        let output = sandbox.run_limited(LIMIT, line);
        let code = output.code.unwrap_or(-1);
        assert!(codes.contains(&code), "exit code {code} of `{line}`: {}{}", output.stdout, output.stderr);
        assert!(!output.stderr.contains("panicked"), "`{line}` panicked: {}", output.stderr);
        if code != 0 {
            assert!(output.stderr.contains(phrase), "stderr of `{line}`: {}", output.stderr);
        }
    }
}

/// The end of a sentence about memory.
const AVAILABLE: &str = "are available; ";

#[test]
fn machines_and_graphs_that_do_not_fit_are_refused_before_memory_is_used() {
    let sandbox = Sandbox::new();
    check(
        &sandbox,
        &[
            "topology torus:4096x4096",
            "topology hypercube:24",
            "topology flat:16777216",
            "topology fattree:4096:4096",
            "topology dragonfly:groups=1024,routers=128,hosts=128",
            "topology torus:1024x1024*tree:4:4",
            "topology graph:ring:16384",
            "inspect mesh:4096x4096",
            "inspect kneighbor:1000000,100",
            "inspect tree:16777216,2",
            "inspect butterfly:4194304",
            "inspect random:n=1000000,degree=100",
            "inspect leanmd:100x100x100",
            "inspect kkt:135",
            "inspect fem:64x32x32",
            "map --graph ring:8 --topology hypercube:23",
            "run kneighbor --transport simulated --pes 1000000",
        ],
        &[2],
        AVAILABLE,
    );
    check(&sandbox, &["run kneighbor --pes 2 --elements 30000000"], &[1], AVAILABLE);
    check(
        &sandbox,
        &[
            "topology torus:100000x100000",
            "topology hypercube:40",
            "topology flat:4294967295",
            "topology tree:100000:100000",
            "inspect random:n=4294967295,degree=3",
            "run kneighbor --pes 4294967295",
            "run kneighbor --pes 1000000",
        ],
        &[2],
        "error: ",
    );
}

#[test]
fn files_that_do_not_fit_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.put("empty.graph", "4194304 0\n".to_string() + &"\n".repeat(4_194_304));
    sandbox.put("far.csv", "0,1048575,8\n".repeat(2_000_000));
    sandbox.put("far.mtx", "%%MatrixMarket matrix coordinate real general\n1048576 1048576 1\n1 1048576 1\n");
    sandbox.put("hosts.json", "{\"hosts\": 16384, \"vertices\": 16384, \"links\": [], \"routes\": []}");
    sandbox.put("switches.conf", "SwitchName=s1 Nodes=n[1-4194304]\n");
    sandbox.put("wide.mat", "1 ".repeat(20_000_000));
    check(
        &sandbox,
        &["inspect empty.graph", "inspect far.csv", "inspect wide.mat", "topology platform:hosts.json"],
        &[1],
        AVAILABLE,
    );
    check(&sandbox, &["topology slurm:switches.conf"], &[1, 2], AVAILABLE);
    check(&sandbox, &["inspect far.mtx"], &[0, 1], AVAILABLE);
    check(&sandbox, &["convert ring:100000 x.mat"], &[2], AVAILABLE);
}

/// Runs `equipoise` with the words of `line` and `limit` kB of memory, which may be too little. True if it succeeds.
#[track_caller]
fn ends_with_a_sentence(sandbox: &Sandbox, limit: u32, line: &str) -> bool {
    let output = sandbox.run_limited(limit, line);
    let code = output.code.unwrap_or(-1);
    assert!((0..=2).contains(&code), "exit code {code} of `{line}` with {limit} kB: {}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "`{line}` with {limit} kB panicked: {}", output.stderr);
    let sentences = ["error: ", "memory allocation of "];
    let has_sentence = sentences.iter().any(|sentence| output.stderr.contains(sentence));
    assert!(code == 0 || has_sentence, "`{line}` with {limit} kB: {}", output.stderr);
    code == 0
}

/// Runs all subcommands with as many kB more than the least.
fn run_all_subcommands(more: &[u32]) {
    let (sandbox, least) = (Sandbox::new(), least());
    for limit in more.iter().map(|more| least + more) {
        for line in [
            "inspect mesh:300x300",
            "map --graph mesh:100x100 --topology torus:32x32",
            "map --graph ring:20 --topology torus:512x512 --balancer GreedyLB",
            "map --graph mesh:40x40 --topology torus:40x40 --balancer TopoLB",
            "convert mesh:300x300 x.json",
            "topology graph:ring:4000",
            "run stencil2d --pes 2 --iterations 2",
            "run kneighbor --pes 4 --iterations 20 --transport simulated --balancer GreedyLB",
            "run kneighbor --pes 2 --elements 3000000 --iterations 1",
        ] {
            ends_with_a_sentence(&sandbox, limit, line);
        }
    }
}

#[test]
fn every_subcommand_ends_with_a_sentence_when_memory_is_short() {
    run_all_subcommands(&[45_000]);
}

#[test]
#[ignore = "slow"]
fn every_subcommand_ends_with_a_sentence_at_many_limits() {
    // Between what the process needs to start and what these lines need, allocations fail at many places.
    run_all_subcommands(&[15_000, 45_000, 75_000, 115_000, 195_000]);
}

/// Gives the golden inputs of all readers, or of every `nth`, to the command, those in text with blank lines at their end, with these limits.
fn give_inputs_to_readers(nth: usize, limits: &[u32], blank_lines: usize) {
    let (mut failed, mut succeeded) = (0, 0);
    let readers = readers();
    let of_files = readers.iter().filter(|reader| !reader.file.is_empty() && !reader.command.is_empty());
    for reader in of_files.step_by(nth) {
        let sandbox = Sandbox::new();
        let mut input = reader.golden[0].clone();
        if str::from_utf8(&input).is_ok() {
            input.extend("\n".repeat(blank_lines).bytes());
        }
        sandbox.put(reader.file, &input);
        let line = reader.command.replace("{}", reader.file);
        // The shell would interpret brackets.
        let line: String = line.split_whitespace().map(|word| format!("'{word}' ")).collect();
        for &limit in limits {
            match ends_with_a_sentence(&sandbox, limit, &line) {
                true => succeeded += 1,
                false => failed += 1,
            }
        }
    }
    assert!(failed > 0 && succeeded > 0, "{failed} failed and {succeeded} succeeded: change the limits");
}

#[test]
fn some_readers_end_with_a_sentence_when_memory_is_short() {
    let least = least();
    give_inputs_to_readers(if is_full_size() { 1 } else { 4 }, &[least, 200_000], 4 << 20);
}

#[test]
#[ignore = "slow"]
fn every_reader_ends_with_a_sentence_at_many_limits() {
    let least = least();
    let limits = [0, 12_000, 24_000, 84_000, 144_000, 204_000].map(|more| least + more);
    give_inputs_to_readers(1, &limits, 24 << 20);
}

/// Reads files of a large graph in all formats that the command writes, or in every `nth`, with these limits.
fn read_large_files(nth: usize, side: u32, limits: &[u32]) {
    let sandbox = Sandbox::new();
    let (mut failed, mut succeeded) = (0, 0);
    // A table of all pairs of tasks would not fit.
    let of_graphs =
        graph::formats().map(|(extension, _)| format!("x.{extension}")).filter(|it| it != "x.mat");
    let of_databases = ["x.json", "x.db", "x.%p.json", "x.%p.json.br"].map(String::from);
    for name in of_graphs.chain(of_databases).step_by(nth) {
        sandbox.run(&format!("convert mesh:{side}x{side} {name}")).result();
        let line = format!("inspect {}", name.replace("%p", "0"));
        for &limit in limits {
            match ends_with_a_sentence(&sandbox, limit, &line) {
                true => succeeded += 1,
                false => failed += 1,
            }
        }
    }
    assert!(failed > 0 && succeeded > 0, "{failed} failed and {succeeded} succeeded: change the limits");
}

#[test]
fn large_files_end_with_a_sentence_when_memory_is_short() {
    let least = least();
    read_large_files(if is_full_size() { 1 } else { 3 }, 150, &[least, least + 16_000, 400_000]);
}

#[test]
#[ignore = "slow"]
fn larger_files_end_with_a_sentence_at_many_limits() {
    let least = least();
    let limits: Vec<u32> = (0..19).map(|nth| least + nth * 30_000).chain([1_500_000]).collect();
    read_large_files(1, 400, &limits);
}

#[test]
fn files_that_fit_are_read() {
    let sandbox = Sandbox::new();
    // A table of zeros has no edges: it needs little more than its text, 24.5 MB.
    sandbox.put("zeros.mat", ("0 ".repeat(3500) + "\n").repeat(3500));
    assert!(ends_with_a_sentence(&sandbox, LIMIT, "inspect zeros.mat"), "it fits");
}

#[test]
#[ignore = "slow"]
fn all_readers_and_formats_end_with_a_sentence_when_memory_is_short() {
    at_full_size(&[
        some_readers_end_with_a_sentence_when_memory_is_short,
        large_files_end_with_a_sentence_when_memory_is_short,
    ]);
}

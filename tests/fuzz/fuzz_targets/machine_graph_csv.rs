//! Fuzz target of the reader `machine_graph_csv`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("machine_graph_csv", input));

//! Fuzz target of the reader `graph_prof`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| equipoise_tests::fuzz::target("graph_prof", input));
